/* Subscriptions, and the unit that an occurrence creates by one. Pure. */
#ifndef HF_CORE_TRIGGER_TRIGGER_H
#define HF_CORE_TRIGGER_TRIGGER_H

#include <holdfast/trigger.h>

#include "base/arena.h"
#include "core/ledger/fields.h"

/* All of struct hf_subscription, in the order of sql/trigger.sql's columns. */
extern const struct hf_field hf_subscription_fields[];
extern const struct hf_shape hf_subscription_shape;
extern const size_t hf_subscription_field_count;
/* Those that a change may write: from state to registrant. */
#define HF_SUBSCRIPTION_MUTABLE 4
#define HF_SUBSCRIPTION_MUTABLE_COUNT 19

#define HF_TRIGGER_ID 80 /* room for an id, with the NUL */

/* NULL, "host", "host:BINDING" or "session:ID". */
HF_MUST_USE int hf_owner_scope_check(const char *scope, struct hf_err *err);

/* Ids are made of what they name, so that every caller makes the same: 0 or HF_ENOMEM. */
HF_MUST_USE int hf_subscription_id(const char *tenant, const char *owner_scope,
                                   const char *key, char ret_id[HF_TRIGGER_ID]);
HF_MUST_USE int hf_occurrence_id(const char *tenant,
                                 const struct hf_occurrence_spec *occurrence,
                                 char ret_id[HF_TRIGGER_ID]);
HF_MUST_USE int hf_delivery_id(const char *occurrence_id, const char *subscription_id,
                               char ret_id[HF_TRIGGER_ID]);

/* Input checks: keys, template, and the unit of the target. */
HF_MUST_USE int hf_subscription_check(const struct hf_subscription_spec *wanted,
                                      struct hf_err *err);
HF_MUST_USE int hf_occurrence_check(const struct hf_occurrence_spec *occurrence,
                                    struct hf_err *err);
/* The identity of an emission: two of one key with this hash are the same; SHA-256. */
HF_MUST_USE int hf_occurrence_hash(const struct hf_occurrence_spec *occurrence,
                                   uint8_t *ret_hash);

/* The subscription that a request asks for: enabled, revision 1, without id, tenant,
 * incarnation and registrant. Texts are borrowed. */
void hf_subscription_build(const struct hf_subscription_spec *wanted, hf_ms now,
                           struct hf_subscription *ret_subscription);

/* Whether both define the same. */
bool hf_subscription_same(const struct hf_subscription *a,
                          const struct hf_subscription *b);

/* The unit of its target for an occurrence, and the one that wakes its session. The payload
 * is the filled template. Texts are borrowed or come from the arena. */
void hf_subscription_unit(const struct hf_subscription *subscription,
                          const char *occurrence_id, const char *payload,
                          struct hf_work_spec *ret_new);
HF_MUST_USE int hf_subscription_wake(struct hf_arena *arena,
                                     const struct hf_subscription *subscription,
                                     const char *occurrence_id, const char *work_id,
                                     struct hf_work_spec *ret_new, struct hf_err *err);

/* The subscription as JSON, in the arena; NULL: no memory. */
const char *hf_subscription_json(struct hf_arena *arena,
                                 const struct hf_subscription *subscription);

#endif
