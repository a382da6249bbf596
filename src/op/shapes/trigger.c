/* The shapes of subscriptions and deliveries: which fields an operation shows, in their order,
 * with the text that documents each. JSON and tables are made from them. */
#include "op/shapes/trigger.h"

/* clang-format off */
#define TEXT(member, ...) HF_FIELD(TEXT, hf_delivery, member, false, __VA_ARGS__)

static const struct hf_field delivery_fields[] = {
    TEXT(delivery_id, "id of the delivery, derived from occurrence and subscription"),
    TEXT(subscription_id, "the subscription"),
    TEXT(owner_scope, "tenant"),
    { "key", HF_FIELD_TEXT, offsetof(struct hf_delivery, subscription_key),
      .help = "its key" },
    TEXT(subscription_key, "the same id under the name that a subscription has for it"),
    TEXT(incarnation, "generation of the subscription"),
    HF_FIELD(I64, hf_delivery, revision, false, "revision of the subscription"),
    TEXT(work_id, "the unit that was started"),
    TEXT(wake_work_id, "the unit that wakes a session"),
    HF_FIELD(JSON, hf_delivery, snapshot, false, "definition of the subscription at "
                                                 "that time"),
    HF_FIELD(I64, hf_delivery, created_at, false, "time of the delivery"),
};
const struct hf_shape hf_delivery_shape = HF_SHAPE("delivery", delivery_fields);

static const struct hf_field emission_fields[] = {
    { .name = "occurrence_id", .kind = HF_FIELD_TEXT, .help = "the occurrence" },
    { .name = "created", .kind = HF_FIELD_BOOL, .help = "false: the occurrence "
                                                        "existed already" },
};
const struct hf_shape hf_emission_shape = HF_SHAPE("emission", emission_fields);
/* clang-format on */
