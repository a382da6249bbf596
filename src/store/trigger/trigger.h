/* Answers about triggers, and what the verbs over them share. */
#ifndef HF_STORE_TRIGGER_TRIGGER_H
#define HF_STORE_TRIGGER_TRIGGER_H

#include "core/trigger/trigger.h"
#include "store/batch/fieldio.h"
#include "store/store.h"

#define hf_subscription_table                                                            \
    ((struct hf_field_table){ hf_subscription_fields, hf_subscription_field_count })

/* Room for `room` subscriptions; NULL: no memory. */
struct hf_subscriptions *hf_subscriptions_new(const struct hf_alloc *alloc, size_t room);
/* A copy of one more; 0 or HF_ENOMEM. */
int hf_subscriptions_add(struct hf_subscriptions *subscriptions,
                         const struct hf_subscription *subscription);
void hf_subscriptions_set_changed(struct hf_subscriptions *subscriptions);
int hf_subscriptions_set_next(struct hf_subscriptions *subscriptions, const char *cursor);

struct hf_emission *hf_emission_new(const struct hf_alloc *alloc);
/* Its occurrence, and room for this many deliveries: 0 or HF_ENOMEM. */
int hf_emission_begin(struct hf_emission *emission, const char *occurrence_id,
                      size_t room);
int hf_emission_add(struct hf_emission *emission, const struct hf_delivery *delivery);
void hf_emission_set_created(struct hf_emission *emission);

extern const struct hf_trigger_methods sql_trigger_methods;

int sql_trigger_emit(struct hf_store *store, const struct hf_caller *who,
                     const struct hf_occurrence_spec *occurrence,
                     struct hf_emission *emission, struct hf_err *err);
int sql_trigger_deliveries(struct hf_store *store, const struct hf_caller *who,
                           const char *occurrence_id, struct hf_emission *emission,
                           struct hf_err *err);

#endif
