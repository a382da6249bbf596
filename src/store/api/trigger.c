/* The public verbs over triggers: check the input, complete the caller, hand over. */
#include <holdfast/limits.h>

#include "base/err.h"
#include "base/sized.h"
#include "base/text.h"
#include "store/api/work.h"
#include "store/trigger/trigger.h"

#define LIST_DEFAULT 100

static int begin(struct hf_store *store, const struct hf_caller *given,
                 struct hf_caller *ret_who, struct hf_err *err)
{
    if (!store->methods->triggers)
        return hf_fail(err, HF_EINVAL, "store", "this store has no triggers");
    return hf_caller_complete(given, "system", "holdfast", ret_who, err);
}

static int end(int rc, struct hf_subscriptions *found,
               struct hf_subscriptions **ret_subscriptions)
{
    if (rc == 0)
        *ret_subscriptions = found;
    else
        hf_subscriptions_free(found);
    return rc;
}

static struct hf_subscriptions *room_for(struct hf_store *store, size_t count,
                                         struct hf_err *err)
{
    struct hf_subscriptions *found = hf_subscriptions_new(store->alloc, count);
    if (!found)
        (void)hf_fail_plain(err, HF_ENOMEM); /* the caller sees NULL */
    return found;
}

static int define(struct hf_store *store, const struct hf_caller *given,
                  const struct hf_subscription_new *wanted, int64_t revision,
                  struct hf_subscriptions **ret_subscriptions, struct hf_err *err)
{
    struct hf_caller who;
    struct hf_subscription_new full;
    struct hf_err why = { 0 };
    int rc = begin(store, given, &who, err);
    if (rc == 0)
        rc = hf_sized_copy(wanted, sizeof full, sizeof full, &full, err);
    if (rc == 0)
        rc = hf_subscription_check(&full, err);
    if (rc)
        return rc;
    struct hf_subscriptions *found = room_for(store, 1, err);
    if (!found)
        return HF_ENOMEM;
    rc = store->methods->triggers->define(store, &who, &full, revision, found, &why);
    return end(hf_fail_as(err, rc, &why), found, ret_subscriptions);
}

int hf_trigger_subscribe(struct hf_store *store, const struct hf_caller *who,
                         const struct hf_subscription_new *wanted,
                         struct hf_subscriptions **ret_subscriptions, struct hf_err *err)
{
    return define(store, who, wanted, 0, ret_subscriptions, err);
}

int hf_trigger_update(struct hf_store *store, const struct hf_caller *who,
                      const struct hf_subscription_new *wanted, int64_t revision,
                      struct hf_subscriptions **ret_subscriptions, struct hf_err *err)
{
    if (revision < 1)
        return hf_fail(err, HF_EINVAL, "revision",
                       "revision must be the one that you have seen");
    return define(store, who, wanted, revision, ret_subscriptions, err);
}

static int check_name(const char *owner_scope, const char *key, struct hf_err *err)
{
    size_t max = (size_t)HF_MAX_KEY_BYTES;
    int rc = hf_owner_scope_check(owner_scope, err);
    return rc ? rc : hf_check_key(key, max, "key", err);
}

int hf_trigger_change(struct hf_store *store, const struct hf_caller *given,
                      const struct hf_trigger_change *change,
                      struct hf_subscriptions **ret_subscriptions, struct hf_err *err)
{
    struct hf_caller who;
    struct hf_trigger_change full;
    struct hf_err why = { 0 };
    int rc = begin(store, given, &who, err);
    if (rc == 0)
        rc = hf_sized_copy(change, sizeof full, sizeof full, &full, err);
    if (rc == 0)
        rc = check_name(full.owner_scope, full.key, err);
    if (rc == 0 && (unsigned)full.verb > HF_TRIGGER_REVIVE)
        rc = hf_fail(err, HF_EINVAL, "verb", "there is no such change");
    if (rc)
        return rc;
    struct hf_subscriptions *found = room_for(store, 1, err);
    if (!found)
        return HF_ENOMEM;
    rc = store->methods->triggers->change(store, &who, &full, found, &why);
    return end(hf_fail_as(err, rc, &why), found, ret_subscriptions);
}

int hf_trigger_get(struct hf_store *store, const struct hf_caller *given,
                   const char *owner_scope, const char *key,
                   struct hf_subscriptions **ret_subscriptions, struct hf_err *err)
{
    struct hf_caller who;
    struct hf_err why = { 0 };
    int rc = begin(store, given, &who, err);
    if (rc == 0)
        rc = check_name(owner_scope, key, err);
    if (rc)
        return rc;
    struct hf_subscriptions *found = room_for(store, 1, err);
    if (!found)
        return HF_ENOMEM;
    rc = store->methods->triggers->get(store, &who, owner_scope ? owner_scope : "host",
                                       key, found, &why);
    return end(hf_fail_as(err, rc, &why), found, ret_subscriptions);
}

static int check_filter(struct hf_trigger_filter *filter, struct hf_err *err)
{
    size_t max = (size_t)HF_MAX_KEY_BYTES;
    bool known = !filter->state || hf_same(filter->state, "enabled") ||
                 hf_same(filter->state, "disabled") || hf_same(filter->state, "deleted");
    int rc = known ? 0
                   : hf_fail(err, HF_EINVAL, "state",
                             "state must be enabled, disabled or deleted");
    if (rc == 0 && filter->limit > (size_t)HF_MAX_PAGE)
        rc = hf_fail(err, HF_ETOOBIG, "limit",
                     "a page must hold at most %lld subscriptions",
                     (long long)HF_MAX_PAGE);
    if (rc == 0)
        rc = hf_check_key_opt(filter->owner_scope, max, "owner_scope", err);
    if (rc == 0)
        rc = hf_check_key_opt(filter->source_type, max, "source_type", err);
    if (rc == 0)
        rc = hf_check_key_opt(filter->source_key, max, "source_key", err);
    filter->limit = filter->limit ? filter->limit : LIST_DEFAULT;
    return rc;
}

int hf_trigger_list(struct hf_store *store, const struct hf_caller *given,
                    const struct hf_trigger_filter *wanted,
                    struct hf_subscriptions **ret_subscriptions, struct hf_err *err)
{
    struct hf_caller who;
    struct hf_trigger_filter filter;
    struct hf_err why = { 0 };
    int rc = begin(store, given, &who, err);
    if (rc == 0)
        rc = hf_sized_copy(wanted, sizeof filter, sizeof filter, &filter, err);
    if (rc == 0)
        rc = check_filter(&filter, err);
    if (rc)
        return rc;
    struct hf_subscriptions *found = room_for(store, filter.limit, err);
    if (!found)
        return HF_ENOMEM;
    rc = store->methods->triggers->list(store, &who, &filter, found, &why);
    return end(hf_fail_as(err, rc, &why), found, ret_subscriptions);
}

static int end_emission(int rc, struct hf_emission *emission,
                        struct hf_emission **ret_emission)
{
    if (rc == 0)
        *ret_emission = emission;
    else
        hf_emission_free(emission);
    return rc;
}

int hf_trigger_emit(struct hf_store *store, const struct hf_caller *given,
                    const struct hf_occurrence_new *wanted,
                    struct hf_emission **ret_emission, struct hf_err *err)
{
    struct hf_caller who;
    struct hf_occurrence_new occurrence;
    struct hf_err why = { 0 };
    int rc = begin(store, given, &who, err);
    if (rc == 0)
        rc = hf_sized_copy(wanted, sizeof occurrence, sizeof occurrence, &occurrence,
                           err);
    if (rc == 0)
        rc = hf_occurrence_check(&occurrence, err);
    if (rc)
        return rc;
    struct hf_emission *emission = hf_emission_new(store->alloc);
    if (!emission)
        return hf_fail_plain(err, HF_ENOMEM);
    rc = store->methods->triggers->emit(store, &who, &occurrence, emission, &why);
    return end_emission(hf_fail_as(err, rc, &why), emission, ret_emission);
}

int hf_trigger_deliveries(struct hf_store *store, const struct hf_caller *given,
                          const char *occurrence_id, struct hf_emission **ret_emission,
                          struct hf_err *err)
{
    struct hf_caller who;
    struct hf_err why = { 0 };
    int rc = begin(store, given, &who, err);
    if (rc == 0)
        rc = hf_check_key(occurrence_id, (size_t)HF_MAX_KEY_BYTES, "occurrence_id", err);
    if (rc)
        return rc;
    struct hf_emission *emission = hf_emission_new(store->alloc);
    if (!emission)
        return hf_fail_plain(err, HF_ENOMEM);
    rc = store->methods->triggers->deliveries(store, &who, occurrence_id, emission, &why);
    return end_emission(hf_fail_as(err, rc, &why), emission, ret_emission);
}

int hf_trigger_granted(struct hf_store *store, const struct hf_caller *given,
                       const char *session_id, size_t limit,
                       struct hf_answer **ret_answer, struct hf_err *err)
{
    struct hf_caller who;
    struct hf_err why = { 0 };
    int rc = begin(store, given, &who, err);
    if (rc == 0)
        rc = hf_check_key(session_id, (size_t)HF_MAX_KEY_BYTES, "session_id", err);
    if (rc == 0 && limit > (size_t)HF_MAX_PAGE)
        rc = hf_fail(err, HF_ETOOBIG, "limit", "a page must hold at most %lld units",
                     (long long)HF_MAX_PAGE);
    if (rc)
        return rc;
    struct hf_answer *answer = hf_answer_new(store->alloc);
    if (!answer)
        return hf_fail_plain(err, HF_ENOMEM);
    rc = store->methods->triggers->granted(store, &who, session_id,
                                           limit ? limit : LIST_DEFAULT, answer, &why);
    if (rc == 0)
        *ret_answer = answer;
    else
        hf_answer_free(answer);
    return hf_fail_as(err, rc, &why);
}
