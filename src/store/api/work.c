/* The public verbs over units of work, policies, limits, leases and the store as a whole, as steps
 * of a call (call.h): check the input, complete the caller, make the answer, call the store's
 * method. Nothing here decides anything about the ledger. hf_work_claim, which may wait, is in
 * run/. */
#include <holdfast/bounds.h>
#include <string.h>

#include "base/ident.h"
#include "base/text.h"
#include "core/ledger/limit.h"
#include "core/ledger/policy.h"
#include "core/ledger/step.h"
#include "core/wait/wait.h"
#include "store/api/call.h"
#include "store/api/page.h"
#include "store/api/work.h"

int hf_caller_complete(const struct hf_caller *given, const char *actor_kind,
                       const char *actor, struct hf_caller *ret_who, struct hf_err *err)
{
    struct hf_caller who = { .size = sizeof who };
    int rc = given ? hf_sized_copy(given, sizeof who, sizeof who, &who, err) : 0;
    if (rc == 0)
        rc = hf_caller_check(&who, err);
    if (rc)
        return rc;
    if (!who.actor_kind)
        who.actor_kind = who.actor ? "system" : actor_kind;
    if (!who.actor)
        who.actor = actor;
    if (!who.tenant)
        who.tenant = "";
    *ret_who = who;
    return 0;
}

static int check_batch(size_t n, struct hf_err *err)
{
    if (n == 0)
        return hf_fail(err, HF_EINVAL, "n", "a batch must hold at least one item");
    if (n > (size_t)HF_MAX_BATCH)
        return hf_fail(err, HF_ETOOBIG, "n", "a batch must hold at most %lld items",
                       (long long)HF_MAX_BATCH);
    return 0;
}

/* A flag that this version does not know would be a wish that is passed over. */
int hf_flags_check(unsigned flags, struct hf_err *err)
{
    return flags & ~(HF_ALL_OR_NONE | HF_BRIEF)
               ? hf_fail(err, HF_EINVAL, "flags", "flags %#x are not known here", flags)
               : 0;
}

int hf_create_check(const struct hf_work_spec *news, size_t n, struct hf_err *err)
{
    int rc = check_batch(n, err);
    if (rc == 0)
        rc = hf_sized_array(news, n, "news", err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = hf_work_spec_check(&news[i], err);
        if (rc == 0 && news[i].reply_ref)
            rc = hf_fail(err, HF_EINVAL, "reply_ref",
                         "a reply is delivered, not created: hf_work_deliver");
    }
    return rc;
}

int hf_work_known(struct hf_store *store, const struct hf_caller *given,
                  const struct hf_work_spec *request, bool *ret_known, struct hf_err *err)
{
    struct api_call call = api_begin(given);
    *ret_known = false;
    if (store->methods->known)
        API_STEP(call, store->methods->known(store, call.who.tenant, request, ret_known,
                                             &call.why));
    return api_end(&call, err);
}

int hf_work_create_checked(struct hf_store *store, const struct hf_caller *given,
                           const struct hf_work_spec *news, size_t n, unsigned flags,
                           struct hf_answer **ret_answer, struct hf_err *err)
{
    struct api_call call = api_begin(given);
    struct hf_answer *answer = api_answer(&call, store);
    API_STEP(call,
             store->methods->create(store, &call.who, news, n, flags, answer, &call.why));
    return api_answered(&call, answer, ret_answer, err);
}

int hf_work_create(struct hf_store *store, const struct hf_caller *who,
                   const struct hf_work_spec *news, size_t n, unsigned flags,
                   struct hf_answer **ret_answer, struct hf_err *err)
{
    int rc = hf_create_check(news, n, err);
    if (rc == 0)
        rc = hf_flags_check(flags, err);
    return rc ? rc : hf_work_create_checked(store, who, news, n, flags, ret_answer, err);
}

int hf_work_claim_once(struct hf_store *store, const struct hf_caller *who,
                       const struct hf_claim *claim, struct hf_answer **ret_answer,
                       struct hf_err *err)
{
    struct api_call call = { .rc = 0 };
    struct hf_answer *answer = api_answer(&call, store);
    API_STEP(call, store->methods->claim(store, who, claim, answer, &call.why));
    return api_answered(&call, answer, ret_answer, err);
}

#define NAMED_SLOTS 2048 /* half of them stay empty */

/* A batch may name a row only once: two changes of one row would be decided on the same
 * reading of it. The store looks for rows that are named in different ways. */
static int check_distinct(const struct hf_change *changes, size_t n, struct hf_err *err)
{
    uint16_t named[NAMED_SLOTS] = { 0 }; /* a change's number plus one, by its id's sum */
    hf_assert(2 * n <= NAMED_SLOTS);
    for (size_t i = 0; n > 1 && i < n; i++) {
        const char *id = changes[i].id;
        if (!id)
            continue;
        size_t slot = hf_crc32c(0, id, strlen(id)) % NAMED_SLOTS;
        for (; named[slot]; slot = (slot + 1) % NAMED_SLOTS)
            if (hf_same(id, changes[named[slot] - 1].id))
                return hf_fail(err, HF_EINVAL, "id", "a batch may name unit %s only once",
                               id);
        named[slot] = (uint16_t)(i + 1);
    }
    return 0;
}

static int check_change(const struct hf_change *change, struct hf_err *err)
{
    int rc = hf_change_check(change, err);
    return rc || change->verb != HF_VERB_RESUME
               ? rc
               : hf_wait_ref_check(change->ref, "ref", err);
}

int hf_changes_check(const struct hf_change *changes, size_t n, struct hf_err *err)
{
    int rc = check_batch(n, err);
    if (rc == 0)
        rc = hf_sized_array(changes, n, "changes", err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = check_change(&changes[i], err);
    return rc ? rc : check_distinct(changes, n, err);
}

int hf_work_change(struct hf_store *store, const struct hf_caller *given,
                   const struct hf_change *changes, size_t n, unsigned flags,
                   struct hf_answer **ret_answer, struct hf_err *err)
{
    struct api_call call = api_begin(given);
    API_STEP(call, hf_changes_check(changes, n, &call.why));
    API_STEP(call, hf_flags_check(flags, &call.why));
    struct hf_answer *answer = api_answer(&call, store);
    API_STEP(call, store->methods->change(store, &call.who, changes, n, flags, answer,
                                          &call.why));
    return api_answered(&call, answer, ret_answer, err);
}

static int check_renew_all(const struct hf_renew_all *renew, struct hf_err *err)
{
    size_t max = (size_t)HF_MAX_KEY_BYTES;
    int rc = hf_check_key(renew->owner, max, "owner", err);
    if (rc == 0)
        rc = hf_check_key_opt(renew->incarnation, max, "incarnation", err);
    return rc ? rc : api_check_time(renew->fresh_within_ms, "fresh_within_ms", err);
}

int hf_renew_all_check(const struct hf_renew_all *wanted, struct hf_renew_all *ret_renew,
                       struct hf_err *err)
{
    int rc = hf_sized_copy(wanted, sizeof *ret_renew, sizeof *ret_renew, ret_renew, err);
    return rc ? rc : check_renew_all(ret_renew, err);
}

int hf_work_renew_all(struct hf_store *store, const struct hf_caller *given,
                      const struct hf_renew_all *wanted, struct hf_answer **ret_answer,
                      struct hf_err *err)
{
    struct hf_renew_all renew;
    struct api_call call = api_begin(given);
    API_STEP(call, hf_renew_all_check(wanted, &renew, &call.why));
    struct hf_answer *answer = api_answer(&call, store);
    API_STEP(call,
             store->methods->renew_all(store, &call.who, &renew, answer, &call.why));
    return api_answered(&call, answer, ret_answer, err);
}

static enum hf_verb verb_towards(enum hf_status to)
{
    switch (to) {
    case HF_STATUS_DONE:
    case HF_STATUS_FAILED:
    case HF_STATUS_TIMEOUT:
    case HF_STATUS_CANCELLED: return HF_VERB_CLOSE_OUT;
    case HF_STATUS_WAITING_USER:
    case HF_STATUS_WAITING_EXTERNAL: return HF_VERB_WAIT;
    case HF_STATUS_QUEUED: return HF_VERB_HAND_BACK;
    case HF_STATUS_RETRY_SCHEDULED: return HF_VERB_FAIL;
    case HF_STATUS_NONE:
    case HF_STATUS_RUNNING:
    case HF_STATUS_ABANDONED:
    case HF_STATUS_COUNT: break;
    }
    return HF_VERB_NONE;
}

int hf_work_transition(struct hf_store *store, const struct hf_caller *who,
                       const struct hf_change *change, struct hf_answer **ret_answer,
                       struct hf_err *err)
{
    struct hf_change typed;
    int rc = hf_sized_copy(change, sizeof typed, sizeof typed, &typed, err);
    if (rc)
        return rc;
    typed.verb = verb_towards(typed.status);
    if (typed.verb == HF_VERB_NONE)
        return hf_fail(err, HF_ETRANSITION, "status",
                       "a holder cannot bring a unit to %s",
                       typed.status ? hf_status_word(typed.status) : "no status");
    return hf_work_change(store, who, &typed, 1, 0, ret_answer, err);
}

static int check_id(const char *id, struct hf_err *err)
{
    return hf_check_key(id, (size_t)HF_MAX_KEY_BYTES, "id", err);
}

int hf_work_get(struct hf_store *store, const struct hf_caller *given, const char *id,
                struct hf_answer **ret_answer, struct hf_err *err)
{
    struct api_call call = api_begin(given);
    API_STEP(call, check_id(id, &call.why));
    struct hf_answer *answer = api_answer(&call, store);
    API_STEP(call, store->methods->get(store, id, answer, &call.why));
    return api_answered(&call, answer, ret_answer, err);
}

#define FIND_MIN 4

static int check_values(const struct hf_filter *filter, struct hf_err *err)
{
    if (filter->from < 0 || filter->before < 0)
        return hf_fail(err, HF_EINVAL, filter->from < 0 ? "from" : "before",
                       "a time must not be negative");
    if (filter->before && filter->from >= filter->before)
        return hf_fail(err, HF_EINVAL, "from", "from must be earlier than before");
    if (filter->find && strlen(filter->find) < FIND_MIN)
        return hf_fail(err, HF_EINVAL, "find",
                       "find must have at least %d bytes: of an id, source id or waiting "
                       "reference",
                       FIND_MIN);
    if (filter->disposition && !hf_disposition_word(filter->disposition))
        return hf_fail(
            err, HF_EINVAL, "disposition",
            "disposition must be rerunnable, owner_bound, expire or externally_owned");
    return 0;
}

static int check_filter(const struct hf_filter *filter, struct hf_err *err)
{
    const struct {
        const char *value, *field;
    } keys[] = { { filter->queue, "queue" },
                 { filter->kind, "kind" },
                 { filter->owner, "owner" },
                 { filter->ref, "ref" },
                 { filter->gate, "gate" },
                 { filter->source_id, "source_id" },
                 { filter->source_run_id, "source_run_id" },
                 { filter->parent_work_id, "parent_work_id" },
                 { filter->session_id, "session_id" },
                 { filter->lane_key, "lane_key" },
                 { filter->correlation_id, "correlation_id" },
                 { filter->error_class, "error_class" },
                 { filter->limit_name, "limit_name" },
                 { filter->find, "find" } };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof keys / sizeof keys[0]; i++)
        rc = hf_check_key_opt(keys[i].value, (size_t)HF_MAX_KEY_BYTES, keys[i].field,
                              err);
    if (rc == 0)
        rc = hf_sized_array(filter->statuses, filter->status_count, "statuses", err);
    for (size_t i = 0; rc == 0 && i < filter->status_count; i++)
        if (!hf_status_word(filter->statuses[i]))
            rc = hf_fail(err, HF_EINVAL, "status", "status %zu of the filter is unknown",
                         i);
    if (rc == 0)
        rc = api_check_page(filter->limit, "rows", err);
    if (rc == 0)
        rc = api_check_time(filter->since_ms, "since_ms", err);
    if (rc == 0)
        rc = check_values(filter, err);
    return rc ? rc : api_check_time(filter->older_than_ms, "older_than_ms", err);
}

static struct api_page page_of(const struct hf_caller *who,
                               const struct hf_filter *filter)
{
    const char *const texts[] = {
        who->tenant,         filter->queue,         filter->kind,
        filter->owner,       filter->ref,           filter->gate,
        filter->source_id,   filter->source_run_id, filter->parent_work_id,
        filter->session_id,  filter->lane_key,      filter->correlation_id,
        filter->error_class, filter->find,          filter->limit_name,
    };
    const int64_t numbers[] = {
        filter->source,   filter->older_than_ms, filter->silent,
        filter->finished, filter->since_ms,      filter->from,
        filter->before,   filter->disposition,   filter->unacked,
    };
    struct api_page page = { .what = "work", .newest = filter->newest };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        api_page_text(&page, texts[i]);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        api_page_number(&page, numbers[i]);
    for (size_t i = 0; i < filter->status_count; i++)
        api_page_number(&page, filter->statuses[i]);
    return page;
}

/* What can be acknowledged has ended badly: other units are not asked for. */
static void complete_filter(struct hf_filter *filter)
{
    static const enum hf_status bad[] = { HF_STATUS_FAILED, HF_STATUS_TIMEOUT,
                                          HF_STATUS_ABANDONED };
    if (!filter->unacked || filter->status_count)
        return;
    filter->statuses = bad;
    filter->status_count = sizeof(bad) / sizeof(bad[0]);
}

int hf_work_list(struct hf_store *store, const struct hf_caller *given,
                 const struct hf_filter *wanted, struct hf_answer **ret_answer,
                 struct hf_err *err)
{
    struct hf_filter filter;
    struct api_call call = api_begin(given);
    API_COPY(call, wanted, &filter);
    API_STEP(call, check_filter(&filter, &call.why));
    struct api_page page = { .what = "work" };
    if (call.rc == 0) {
        complete_filter(&filter);
        page = page_of(&call.who, &filter);
    }
    API_STEP(call, api_page_open(&page, filter.after, &filter.after, &call.why));
    struct hf_answer *answer = api_answer(&call, store);
    API_STEP(call, store->methods->list(store, &call.who, &filter, answer, &call.why));
    API_STEP(call, hf_answer_mark_next(answer, &page) ? 0 : HF_ENOMEM);
    return api_answered(&call, answer, ret_answer, err);
}

int hf_work_events(struct hf_store *store, const struct hf_caller *given, const char *id,
                   int64_t after, size_t limit, struct hf_events **ret_events,
                   struct hf_err *err)
{
    struct api_call call = api_begin(given);
    API_STEP(call, check_id(id, &call.why));
    API_STEP(call, api_check_page(limit, "events", &call.why));
    API_STEP(call,
             store->methods->events(store, id, after, limit ? limit : (size_t)HF_MAX_PAGE,
                                    ret_events, &call.why));
    return api_end(&call, err);
}

int hf_work_stats(struct hf_store *store, const struct hf_caller *given,
                  struct hf_stats *ret_stats, struct hf_err *err)
{
    struct api_call call = api_begin(given);
    API_STEP(call, store->methods->stats(store, &call.who, ret_stats, &call.why));
    return api_end(&call, err);
}

int hf_work_sweep(struct hf_store *store, const struct hf_caller *given, size_t limit,
                  struct hf_sweep_report *ret_report, struct hf_err *err)
{
    struct api_call call = api_begin_as(given, "sweep");
    if (limit > (size_t)HF_MAX_SWEEP)
        API_STEP(call,
                 hf_fail(&call.why, HF_ETOOBIG, "limit",
                         "a sweep acts on at most %lld rows", (long long)HF_MAX_SWEEP));
    API_STEP(call,
             store->methods->sweep(store, &call.who, limit ? limit : (size_t)HF_MAX_SWEEP,
                                   ret_report, &call.why));
    return api_end(&call, err);
}

int hf_work_prune(struct hf_store *store, const struct hf_caller *given,
                  hf_ms older_than_ms, size_t limit, int64_t *ret_rows,
                  struct hf_err *err)
{
    struct api_call call = api_begin(given);
    API_STEP(call, api_check_time(older_than_ms, "older_than_ms", &call.why));
    API_STEP(call,
             store->methods->prune(store, older_than_ms, limit, ret_rows, &call.why));
    return api_end(&call, err);
}

int hf_policy_set(struct hf_store *store, const struct hf_caller *given,
                  const char *scope, const struct hf_policy *wanted, struct hf_err *err)
{
    struct hf_policy policy;
    struct api_call call = api_begin(given);
    API_COPY(call, wanted, &policy);
    API_STEP(call, hf_policy_scope_check(scope, &call.why));
    API_STEP(call, hf_policy_check(&policy, &call.why));
    API_STEP(call, store->methods->policy_set(store, scope, &policy, &call.why));
    return api_end(&call, err);
}

int hf_policy_get(struct hf_store *store, enum hf_source source, const char *kind,
                  struct hf_policy_answer **ret_answer, struct hf_err *err)
{
    struct api_call call = { .rc = 0 };
    API_STEP(call, hf_check_key_opt(kind, (size_t)HF_MAX_KEY_BYTES, "kind", &call.why));
    API_STEP(call,
             store->methods->policy_get(store, source, kind, ret_answer, &call.why));
    return api_end(&call, err);
}

/* ---- limits ------------------------------------------------------------------------ */

int hf_limit_set(struct hf_store *store, const struct hf_caller *given,
                 const struct hf_limit *wanted, struct hf_err *err)
{
    struct hf_limit limit;
    struct hf_arena arena;
    const char *name = NULL;
    struct api_call call = api_begin(given);
    API_COPY(call, wanted, &limit);
    API_STEP(call, hf_limit_check(&limit, &call.why));
    if (call.rc == 0 && limit.burst == 0)
        limit.burst = limit.rate_count;
    hf_arena_init(&arena, store->alloc);
    API_STEP(call,
             hf_limit_name_of(&arena, limit.name, call.who.tenant, &name, &call.why));
    API_STEP(call, store->methods->limit_set(store, name, &limit, &call.why));
    hf_arena_fini(&arena);
    return api_end(&call, err);
}

int hf_limit_list(struct hf_store *store, const struct hf_caller *given,
                  hf_each_limit *each, void *user, struct hf_err *err)
{
    struct api_call call = api_begin(given);
    API_STEP(call, each ? 0
                        : hf_fail(&call.why, HF_EINVAL, "each",
                                  "a function for the limits is required"));
    API_STEP(call, store->methods->limit_list(store, each, user, &call.why));
    return api_end(&call, err);
}

/* ---- leases ------------------------------------------------------------------------ */

static int check_leased(enum hf_leased leased, const char *key, struct hf_err *err)
{
    if ((unsigned)leased >= HF_LEASED_COUNT)
        return hf_fail(err, HF_EINVAL, "leased", "leased must be HF_LEASED_SESSION");
    return hf_check_key(key, (size_t)HF_MAX_KEY_BYTES, "key", err);
}

static int check_lease_claim(const struct hf_lease_claim *claim, struct hf_err *err)
{
    size_t max = (size_t)HF_MAX_KEY_BYTES;
    int rc = check_leased(claim->leased, claim->key, err);
    if (rc == 0)
        rc = hf_check_key(claim->owner, max, "owner", err);
    if (rc == 0)
        rc = hf_check_key_opt(claim->incarnation, max, "incarnation", err);
    if (rc == 0)
        rc = hf_check_key_opt(claim->nonce, max, "nonce", err);
    if (rc == 0 && claim->ttl_ms)
        rc = hf_lease_timing(claim->ttl_ms, 0, err);
    return rc;
}

int hf_lease_take(struct hf_store *store, const struct hf_lease_claim *wanted,
                  struct hf_lease_info *ret_info, struct hf_err *err)
{
    struct hf_lease_claim claim;
    struct api_call call = { .rc = 0 };
    API_COPY(call, wanted, &claim);
    API_STEP(call, check_lease_claim(&claim, &call.why));
    API_STEP(call, store->methods->lease_take(store, &claim, ret_info, &call.why));
    return api_end(&call, err);
}

int hf_lease_renew(struct hf_store *store, enum hf_leased leased, const char *key,
                   const char *token, struct hf_lease_info *ret_info, struct hf_err *err)
{
    struct api_call call = { .rc = 0 };
    API_STEP(call, check_leased(leased, key, &call.why));
    API_STEP(call,
             store->methods->lease_renew(store, leased, key, token, ret_info, &call.why));
    return api_end(&call, err);
}

int hf_lease_release(struct hf_store *store, enum hf_leased leased, const char *key,
                     const char *token, struct hf_err *err)
{
    struct api_call call = { .rc = 0 };
    API_STEP(call, check_leased(leased, key, &call.why));
    API_STEP(call, store->methods->lease_release(store, leased, key, token, &call.why));
    return api_end(&call, err);
}

int hf_lease_look(struct hf_store *store, enum hf_leased leased, const char *key,
                  struct hf_lease_info *ret_info, struct hf_err *err)
{
    struct api_call call = { .rc = 0 };
    API_STEP(call, check_leased(leased, key, &call.why));
    API_STEP(call, store->methods->lease_look(store, leased, key, ret_info, &call.why));
    return api_end(&call, err);
}

/* ---- the store as a whole ---------------------------------------------------------- */

void hf_store_close(struct hf_store *store)
{
    if (store)
        store->methods->close(store);
}

const char *hf_store_incarnation(const struct hf_store *store)
{
    return store->incarnation;
}

hf_ms hf_store_now(const struct hf_store *store)
{
    return store->methods->now ? store->methods->now(store)
                               : store->clock->wall_ms(store->clock->user);
}

hf_ms hf_store_mono(const struct hf_store *store)
{
    return store->clock->mono_ms(store->clock->user);
}

int hf_store_facts(struct hf_store *store, char **ret_json, struct hf_err *err)
{
    struct hf_err why = { 0 };
    int rc = store->methods->facts(store, ret_json, &why);
    return hf_fail_as(err, rc, &why);
}

void hf_store_text_free(struct hf_store *store, char *text)
{
    store->alloc->free(store->alloc->user, text);
}

int hf_store_bump(struct hf_store *store, int64_t *ret_incarnation, struct hf_err *err)
{
    struct hf_err why = { 0 };
    int rc = store->methods->bump(store, ret_incarnation, &why);
    return hf_fail_as(err, rc, &why);
}

int hf_store_log(struct hf_store *store, int64_t before, size_t limit, hf_logged *each,
                 void *user, struct hf_err *err)
{
    if (!each)
        return hf_fail(err, HF_EINVAL, "each", "a function for the entries is required");
    if (before < 0)
        return hf_fail(err, HF_EINVAL, "before", "before must not be negative");
    struct api_call call = { .rc = 0 };
    API_STEP(call, api_check_page(limit, "entries", &call.why));
    API_STEP(call, store->methods->log(store, before ? before : INT64_MAX,
                                       limit ? limit : 100, each, user, &call.why));
    return api_end(&call, err);
}

int hf_store_check(struct hf_store *store, hf_found *found, void *user,
                   struct hf_err *err)
{
    if (!found)
        return hf_fail(err, HF_EINVAL, "found",
                       "a function for the findings is required");
    struct hf_err why = { 0 };
    int rc = store->methods->check(store, found, user, &why);
    return hf_fail_as(err, rc, &why);
}
