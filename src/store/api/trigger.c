/* The public verbs of trigger.h, as steps of a call.
 *
 * A subscription says which unit an occurrence of a source creates; it has an owner scope and a
 * key. An occurrence is one event of a source that a caller emits, and each unit that it created,
 * by one subscription, is a delivery. An emission is an occurrence with its deliveries: the answer
 * to emitting it, and to asking for it later.
 *
 * API_STEP (call.h) does a step only if no step before it has failed, so a verb is a plain list of
 * steps, and its end returns the error of the one that failed. */
#include <holdfast/bounds.h>

#include "base/text.h"
#include "store/api/call.h"
#include "store/api/page.h"
#include "store/trigger/trigger.h"

#define LIST_DEFAULT 100

static struct api_call begin(const struct hf_store *store, const struct hf_caller *given)
{
    struct api_call call = api_begin(given);
    API_STEP(call, store->methods->triggers
                       ? 0
                       : hf_fail(&call.why, HF_EINVAL, "store",
                                 "this store does not implement triggers"));
    return call;
}

/* Ends a call: `found` goes to the caller if all steps succeeded, otherwise it is freed. */
static int end(const struct api_call *call, struct hf_subscriptions *found,
               struct hf_subscriptions **ret_subscriptions, struct hf_err *err)
{
    if (call->rc)
        hf_subscriptions_free(found);
    else
        *ret_subscriptions = found;
    return api_end(call, err);
}

/* An answer with room for this many. NULL where an earlier step failed, and without memory, which
 * is then the failed step. */
static struct hf_subscriptions *room_for(struct api_call *call,
                                         const struct hf_store *store, size_t count)
{
    struct hf_subscriptions *found = call->rc ? NULL
                                              : hf_subscriptions_new(store->alloc, count);
    API_STEP(*call, found ? 0 : HF_ENOMEM);
    return found;
}

static int define(struct hf_store *store, const struct hf_caller *given,
                  const struct hf_subscription_spec *wanted, int64_t revision,
                  struct hf_subscriptions **ret_subscriptions, struct hf_err *err)
{
    struct hf_subscription_spec full;
    struct api_call call = begin(store, given);
    API_COPY(call, wanted, &full);
    API_STEP(call, hf_subscription_check(&full, &call.why));
    struct hf_subscriptions *found = room_for(&call, store, 1);
    API_STEP(call, store->methods->triggers->define(store, &call.who, &full, revision,
                                                    found, &call.why));
    return end(&call, found, ret_subscriptions, err);
}

int hf_trigger_subscribe(struct hf_store *store, const struct hf_caller *who,
                         const struct hf_subscription_spec *wanted,
                         struct hf_subscriptions **ret_subscriptions, struct hf_err *err)
{
    return define(store, who, wanted, 0, ret_subscriptions, err);
}

int hf_trigger_update(struct hf_store *store, const struct hf_caller *who,
                      const struct hf_subscription_spec *wanted, int64_t revision,
                      struct hf_subscriptions **ret_subscriptions, struct hf_err *err)
{
    if (revision < 1)
        return hf_fail(err, HF_EINVAL, "revision",
                       "revision must be the present revision of the subscription");
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
    struct hf_trigger_change full;
    struct api_call call = begin(store, given);
    API_COPY(call, change, &full);
    API_STEP(call, check_name(full.owner_scope, full.key, &call.why));
    API_STEP(call, (unsigned)full.verb <= HF_TRIGGER_REVIVE
                       ? 0
                       : hf_fail(&call.why, HF_EINVAL, "verb",
                                 "verb must be a value of enum hf_trigger_verb"));
    struct hf_subscriptions *found = room_for(&call, store, 1);
    API_STEP(call,
             store->methods->triggers->change(store, &call.who, &full, found, &call.why));
    return end(&call, found, ret_subscriptions, err);
}

int hf_trigger_get(struct hf_store *store, const struct hf_caller *given,
                   const char *owner_scope, const char *key,
                   struct hf_subscriptions **ret_subscriptions, struct hf_err *err)
{
    struct api_call call = begin(store, given);
    API_STEP(call, check_name(owner_scope, key, &call.why));
    struct hf_subscriptions *found = room_for(&call, store, 1);
    API_STEP(call, store->methods->triggers->get(store, &call.who,
                                                 owner_scope ? owner_scope : "host", key,
                                                 found, &call.why));
    return end(&call, found, ret_subscriptions, err);
}

/* Checks a filter, and fills in the default limit. Any text that can be an owner scope may be
 * looked for, also a scope that no caller could subscribe in; NULL means all scopes. */
static int complete_filter(struct hf_trigger_filter *filter, struct hf_err *err)
{
    size_t max = (size_t)HF_MAX_KEY_BYTES;
    bool known = !filter->state || hf_same(filter->state, "enabled") ||
                 hf_same(filter->state, "disabled") || hf_same(filter->state, "deleted");
    int rc = known ? 0
                   : hf_fail(err, HF_EINVAL, "state",
                             "state must be enabled, disabled or deleted");
    if (rc == 0)
        rc = api_check_page(filter->limit, "subscriptions", err);
    if (rc == 0)
        rc = hf_check_key_opt(filter->owner_scope, max, "owner_scope", err);
    if (rc == 0)
        rc = hf_check_key_opt(filter->source_type, max, "source_type", err);
    if (rc == 0)
        rc = hf_check_key_opt(filter->source_key, max, "source_key", err);
    filter->limit = filter->limit ? filter->limit : LIST_DEFAULT;
    return rc;
}

/* The answer's cursor, with its mark. */
static int mark_next(struct hf_subscriptions *found, const struct api_page *page,
                     struct hf_arena *arena)
{
    const char *next = NULL;
    int rc = api_page_next(page, arena, hf_subscriptions_next(found), &next);
    return rc || !next ? rc : hf_subscriptions_set_next(found, next);
}

int hf_trigger_list(struct hf_store *store, const struct hf_caller *given,
                    const struct hf_trigger_filter *wanted,
                    struct hf_subscriptions **ret_subscriptions, struct hf_err *err)
{
    struct hf_trigger_filter filter;
    struct hf_arena arena;
    struct api_call call = begin(store, given);
    API_COPY(call, wanted, &filter);
    API_STEP(call, complete_filter(&filter, &call.why));
    struct api_page page = { .what = "triggers" };
    if (call.rc == 0) {
        page.newest = filter.newest;
        api_page_text(&page, call.who.tenant);
        api_page_text(&page, filter.owner_scope);
        api_page_text(&page, filter.source_type);
        api_page_text(&page, filter.source_key);
        api_page_text(&page, filter.state);
    }
    API_STEP(call, api_page_open(&page, filter.after, &filter.after, &call.why));
    struct hf_subscriptions *found = room_for(&call, store, call.rc ? 0 : filter.limit);
    API_STEP(call,
             store->methods->triggers->list(store, &call.who, &filter, found, &call.why));
    hf_arena_init(&arena, store->alloc);
    API_STEP(call, mark_next(found, &page, &arena));
    hf_arena_fini(&arena);
    return end(&call, found, ret_subscriptions, err);
}

/* As room_for, for an emission. */
static struct hf_emission *new_emission(struct api_call *call,
                                        const struct hf_store *store)
{
    struct hf_emission *emission = call->rc ? NULL : hf_emission_new(store->alloc);
    API_STEP(*call, emission ? 0 : HF_ENOMEM);
    return emission;
}

static int end_emission(const struct api_call *call, struct hf_emission *emission,
                        struct hf_emission **ret_emission, struct hf_err *err)
{
    if (call->rc)
        hf_emission_free(emission);
    else
        *ret_emission = emission;
    return api_end(call, err);
}

int hf_trigger_emit(struct hf_store *store, const struct hf_caller *given,
                    const struct hf_occurrence_spec *wanted,
                    struct hf_emission **ret_emission, struct hf_err *err)
{
    struct hf_occurrence_spec occurrence;
    struct api_call call = begin(store, given);
    API_COPY(call, wanted, &occurrence);
    API_STEP(call, hf_occurrence_check(&occurrence, &call.why));
    struct hf_emission *emission = new_emission(&call, store);
    API_STEP(call, store->methods->triggers->emit(store, &call.who, &occurrence, emission,
                                                  &call.why));
    return end_emission(&call, emission, ret_emission, err);
}

/* Reads an occurrence that was emitted before, by its id, and its deliveries: the same content as
 * the answer to hf_trigger_emit. HF_ENOTFOUND is the store's, for an id that is none. */
int hf_trigger_deliveries(struct hf_store *store, const struct hf_caller *given,
                          const char *occurrence_id, struct hf_emission **ret_emission,
                          struct hf_err *err)
{
    struct api_call call = begin(store, given);
    API_STEP(call, hf_check_key(occurrence_id, (size_t)HF_MAX_KEY_BYTES, "occurrence_id",
                                &call.why));
    struct hf_emission *emission = new_emission(&call, store);
    API_STEP(call, store->methods->triggers->deliveries(store, &call.who, occurrence_id,
                                                        emission, &call.why));
    return end_emission(&call, emission, ret_emission, err);
}

int hf_trigger_granted(struct hf_store *store, const struct hf_caller *given,
                       const char *session_id, size_t limit,
                       struct hf_answer **ret_answer, struct hf_err *err)
{
    struct api_call call = begin(store, given);
    API_STEP(call,
             hf_check_key(session_id, (size_t)HF_MAX_KEY_BYTES, "session_id", &call.why));
    API_STEP(call, api_check_page(limit, "units", &call.why));
    struct hf_answer *answer = api_answer(&call, store);
    API_STEP(call, store->methods->triggers->granted(store, &call.who, session_id,
                                                     limit ? limit : LIST_DEFAULT, answer,
                                                     &call.why));
    return api_answered(&call, answer, ret_answer, err);
}
