/* The public verbs of journal.h: begin, renew and settle an effect of a process or of an operation,
 * and retire all effects of one. An effect is an action outside the ledger; its entry in the
 * journal is written before it is performed, and settled with its outcome. The verbs check the
 * request, make the envelope (what identifies the effect) canonical, complete the caller, and call
 * the store. */
#include <holdfast/journal.h>

#include <string.h>

#include <holdfast/bounds.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/text.h"
#include "core/ledger/lease.h"
#include "store/api/call.h"
#include "store/api/page.h"

#define KEY_MAX ((size_t)HF_MAX_KEY_BYTES)
#define DEFAULT_TTL_MS 30000
#define LIST_DEFAULT 100

struct answer {
    struct hf_journal_answer shown; /* first: callers see it alone */
    struct hf_arena arena;
};

static struct answer *answer_of(struct hf_journal_answer *shown)
{
    return (struct answer *)(void *)shown;
}

const char *hf_journal_answer_copy(struct hf_journal_answer *shown, struct hf_span bytes)
{
    return hf_arena_copy(&answer_of(shown)->arena, bytes.at, bytes.len);
}

void hf_journal_answer_free(struct hf_journal_answer *shown)
{
    if (!shown)
        return;
    struct answer *answer = answer_of(shown);
    const struct hf_alloc *alloc = answer->arena.alloc;
    hf_arena_fini(&answer->arena);
    alloc->free(alloc->user, answer);
}

static struct answer *new_answer(struct api_call *call, const struct hf_store *store)
{
    const struct hf_alloc *alloc = store->alloc;
    struct answer *answer = call->rc ? NULL
                                     : alloc->realloc(alloc->user, NULL, sizeof *answer);
    API_STEP(*call, answer ? 0 : hf_fail_plain(&call->why, HF_ENOMEM));
    if (answer) {
        *answer = (struct answer){ .shown = { .decision = HF_DECISION_ABSENT } };
        hf_arena_init(&answer->arena, alloc);
    }
    return answer;
}

/* ---- begin ---------------------------------------------------------------------------- */

static struct api_call begin(const struct hf_store *store, const struct hf_caller *given)
{
    struct api_call call = api_begin(given);
    API_STEP(call, store->methods->journal ? 0
                                           : hf_fail(&call.why, HF_EINVAL, "store",
                                                     "this store has no journal"));
    return call;
}

/* Effects of turns are written by their steps only. */
static int check_scope(enum hf_scope scope, const char *scope_id, struct hf_err *err)
{
    if (scope != HF_SCOPE_PROCESS && scope != HF_SCOPE_OPERATION)
        return hf_fail(err, HF_EINVAL, "scope", "the scope is process or operation");
    return hf_check_key(scope_id, KEY_MAX, "scope_id", err);
}

static int check_of(const struct hf_journal_key *of, struct hf_err *err)
{
    int rc = check_scope(of->scope, of->scope_id, err);
    return rc ? rc : hf_check_key(of->key, KEY_MAX, "key", err);
}

static int check_settled(enum hf_entry_status status, struct hf_err *err)
{
    return status > HF_ENTRY_STARTED && status < HF_ENTRY_STATUS_COUNT
               ? 0
               : hf_fail(err, HF_EINVAL, "status",
                         "an effect ends done, failed or unknown");
}

static int check_token(const char *token, struct hf_err *err)
{
    struct hf_token read;
    return hf_token_read(token, &read, err);
}

static int check_begin(const struct hf_journal_begin *request, struct hf_err *err)
{
    int rc = check_of(&request->of, err);
    if (rc == 0)
        rc = hf_check_key(request->kind, KEY_MAX, "kind", err);
    if (rc == 0 &&
        (request->recovery <= HF_RECOVERY_NONE || request->recovery >= HF_RECOVERY_COUNT))
        rc = hf_fail(err, HF_EINVAL, "recovery",
                     "an effect must declare its class: safe, keyed, probe or ask");
    if (rc == 0)
        rc = hf_check_key(request->owner, KEY_MAX, "owner", err);
    if (rc == 0)
        rc = hf_check_key_opt(request->nonce, KEY_MAX, "nonce", err);
    return rc ? rc : hf_lease_timing(request->ttl_ms, 0, err);
}

/* The envelope's bytes are the effect's identity, so its spelling must not matter. */
static int make_canonical(struct hf_arena *arena, struct hf_journal_begin *request,
                          struct hf_err *err)
{
    const char *given = request->envelope ? request->envelope : "";
    struct hf_span text = { given, strlen(given) };
    struct hf_buf out;
    hf_buf_init(&out, arena->alloc, (size_t)HF_MAX_PAYLOAD_BYTES);
    int rc = hf_json_check(text, (size_t)HF_MAX_PAYLOAD_BYTES, "envelope", err);
    if (rc == 0) {
        rc = hf_json_canonical_text(&out, text);
        request->envelope = rc ? NULL : hf_buf_keep(&out, arena);
        rc = request->envelope ? 0 : hf_fail_plain(err, rc ? rc : HF_ENOMEM);
    }
    hf_buf_fini(&out);
    return rc;
}

int hf_journal_begin(struct hf_store *store, const struct hf_caller *given,
                     const struct hf_journal_begin *wanted,
                     struct hf_journal_answer **ret_answer, struct hf_err *err)
{
    struct hf_journal_begin request;
    struct api_call call = begin(store, given);
    API_COPY(call, wanted, &request);
    if (call.rc == 0 && request.ttl_ms == 0)
        request.ttl_ms = DEFAULT_TTL_MS;
    API_STEP(call, check_begin(&request, &call.why));
    struct answer *answer = new_answer(&call, store);
    API_STEP(call, make_canonical(&answer->arena, &request, &call.why));
    API_STEP(call, store->methods->journal->begin(store, &call.who, &request,
                                                  &answer->shown, &call.why));
    if (call.rc == 0)
        *ret_answer = &answer->shown;
    else if (answer)
        hf_journal_answer_free(&answer->shown);
    return api_end(&call, err);
}

/* ---- the holder's verbs --------------------------------------------------------------- */

int hf_journal_renew(struct hf_store *store, const struct hf_journal_key *of,
                     const char *token, struct hf_err *err)
{
    struct api_call call = begin(store, NULL);
    API_STEP(call, check_of(of, &call.why));
    API_STEP(call, check_token(token, &call.why));
    API_STEP(call, store->methods->journal->renew(store, of, token, &call.why));
    return api_end(&call, err);
}

int hf_journal_settle(struct hf_store *store, const struct hf_journal_key *of,
                      const char *token, enum hf_entry_status status, const char *outcome,
                      struct hf_err *err)
{
    struct hf_span text = { outcome ? outcome : "", outcome ? strlen(outcome) : 0 };
    struct api_call call = begin(store, NULL);
    API_STEP(call, check_of(of, &call.why));
    API_STEP(call, check_token(token, &call.why));
    API_STEP(call, check_settled(status, &call.why));
    API_STEP(call,
             hf_json_check_raw(text, (size_t)HF_MAX_PAYLOAD_BYTES, "outcome", &call.why));
    API_STEP(call, store->methods->journal->settle(store, of, token, status, outcome,
                                                   &call.why));
    return api_end(&call, err);
}

int hf_journal_retire(struct hf_store *store, enum hf_scope scope, const char *scope_id,
                      int64_t *ret_count, struct hf_err *err)
{
    int64_t count = 0;
    struct api_call call = begin(store, NULL);
    API_STEP(call, check_scope(scope, scope_id, &call.why));
    API_STEP(call,
             store->methods->journal->retire(store, scope, scope_id, &count, &call.why));
    if (call.rc == 0)
        *ret_count = count;
    return api_end(&call, err);
}

/* ---- effects that need a person ------------------------------------------------------- */

struct effects {
    struct hf_journal_effects shown; /* first: callers see it alone */
    struct hf_arena arena;
    struct hf_journal_effect *items;
    size_t room;
};

static struct effects *effects_of(struct hf_journal_effects *shown)
{
    return (struct effects *)(void *)shown;
}

static struct effects *new_effects(struct api_call *call, const struct hf_store *store)
{
    const struct hf_alloc *alloc = store->alloc;
    struct effects *made = call->rc ? NULL
                                    : alloc->realloc(alloc->user, NULL, sizeof *made);
    API_STEP(*call, made ? 0 : hf_fail_plain(&call->why, HF_ENOMEM));
    if (made) {
        *made = (struct effects){ .room = 0 };
        hf_arena_init(&made->arena, alloc);
    }
    return made;
}

void hf_journal_effects_free(struct hf_journal_effects *shown)
{
    if (!shown)
        return;
    struct effects *made = effects_of(shown);
    const struct hf_alloc *alloc = made->arena.alloc;
    hf_arena_fini(&made->arena);
    alloc->free(alloc->user, made);
}

static int keep_texts(struct hf_arena *arena, struct hf_journal_effect *effect)
{
    const char **const texts[] = {
        &effect->scope,    &effect->scope_id, &effect->key,    &effect->tenant,
        &effect->kind,     &effect->recovery, &effect->status, &effect->owner,
        &effect->envelope, &effect->outcome,  &effect->known,  &effect->actor_kind,
        &effect->actor,
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *given = *texts[i];
        *texts[i] = given ? hf_arena_text(arena, given) : NULL;
        if (given && !*texts[i])
            return HF_ENOMEM;
    }
    return 0;
}

int hf_journal_effects_add(struct hf_journal_effects *shown,
                           const struct hf_journal_effect *effect)
{
    struct effects *made = effects_of(shown);
    if (shown->count == made->room) {
        size_t room = made->room ? 2 * made->room : 8;
        struct hf_journal_effect *items = hf_arena_array(&made->arena, room,
                                                         sizeof *items);
        if (!items)
            return HF_ENOMEM;
        if (shown->count)
            memcpy(items, made->items, shown->count * sizeof *items);
        made->items = items;
        made->room = room;
        shown->items = items;
    }
    struct hf_journal_effect *copy = &made->items[shown->count];
    *copy = *effect;
    if (keep_texts(&made->arena, copy))
        return HF_ENOMEM;
    shown->count++;
    return 0;
}

/* A store's own cursor is "SCOPE LENGTH SCOPE_IDKEY": the length tells where the id ends. */
static int read_cursor(struct hf_arena *arena, const char *own,
                       struct hf_journal_key *ret_key, struct hf_err *err)
{
    const char *gap = strchr(own, ' '), *texts = gap ? strchr(gap + 1, ' ') : NULL;
    const char *word = texts ? hf_arena_copy(arena, own, (size_t)(gap - own)) : NULL;
    const char *digits = texts ? hf_arena_copy(arena, gap + 1, (size_t)(texts - gap - 1))
                               : NULL;
    int64_t len = 0;
    for (int scope = HF_SCOPE_PROCESS; scope <= HF_SCOPE_OPERATION; scope++)
        if (hf_same(word, hf_scope_name((enum hf_scope)scope)))
            ret_key->scope = (enum hf_scope)scope;
    if (!digits || !ret_key->scope ||
        hf_parse_i64(digits, 1, (int64_t)strlen(texts + 1), "after", &len, NULL))
        return hf_fail(err, HF_EINVAL, "after", "the cursor is not one of an answer");
    ret_key->scope_id = hf_arena_copy(arena, texts + 1, (size_t)len);
    ret_key->key = texts + 1 + len;
    return ret_key->scope_id ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

static int set_next(struct effects *made, const struct api_page *page)
{
    const struct hf_journal_effect *last = &made->items[made->shown.count - 1];
    struct hf_buf own;
    hf_buf_init(&own, made->arena.alloc, 512);
    hf_buf_text(&own, last->scope);
    hf_buf_char(&own, ' ');
    hf_buf_i64(&own, (int64_t)strlen(last->scope_id));
    hf_buf_char(&own, ' ');
    hf_buf_text(&own, last->scope_id);
    hf_buf_text(&own, last->key);
    if (hf_buf_state(&own) == 0)
        made->shown.next = api_page_close(page, &made->arena, hf_buf_str(&own));
    hf_buf_fini(&own);
    return made->shown.next ? 0 : HF_ENOMEM;
}

static int answer_effects(struct api_call *call, struct effects *made,
                          struct hf_journal_effects **ret_effects, struct hf_err *err)
{
    if (call->rc == HF_ENOMEM)
        (void)hf_fail_plain(&call->why, HF_ENOMEM);
    if (call->rc == 0)
        *ret_effects = &made->shown;
    else if (made)
        hf_journal_effects_free(&made->shown);
    return api_end(call, err);
}

int hf_journal_unknown(struct hf_store *store, const struct hf_caller *given,
                       const char *after, size_t limit,
                       struct hf_journal_effects **ret_effects, struct hf_err *err)
{
    struct hf_journal_key key = { .key = NULL };
    struct api_page page = { .what = "effects" };
    const char *own = NULL;
    struct api_call call = begin(store, given);
    API_STEP(call, api_check_page(limit, "effects", &call.why));
    if (call.rc == 0)
        api_page_text(&page, call.who.tenant);
    API_STEP(call, api_page_open(&page, after, &own, &call.why));
    struct effects *made = new_effects(&call, store);
    limit = limit ? limit : LIST_DEFAULT;
    if (own)
        API_STEP(call, read_cursor(&made->arena, own, &key, &call.why));
    API_STEP(call, store->methods->journal->unknown(store, &call.who, own ? &key : NULL,
                                                    limit, &made->shown, &call.why));
    if (call.rc == 0 && made->shown.count == limit)
        API_STEP(call, set_next(made, &page));
    return answer_effects(&call, made, ret_effects, err);
}

/* The outcome in canonical form: as given, or made of the reason. */
static int make_outcome(struct hf_arena *arena, struct hf_journal_resolve *request,
                        struct hf_err *err)
{
    struct hf_buf out;
    struct hf_json json;
    struct hf_span text = { request->outcome,
                            request->outcome ? strlen(request->outcome) : 0 };
    int rc = 0;
    hf_buf_init(&out, arena->alloc, (size_t)HF_MAX_PAYLOAD_BYTES);
    if (request->outcome) {
        rc = hf_json_canonical_text(&out, text);
    } else {
        hf_json_begin(&json, &out);
        hf_json_object(&json);
        hf_json_put_str(&json, "reason", request->reason);
        hf_json_end(&json);
    }
    request->outcome = rc ? NULL : hf_buf_keep(&out, arena);
    hf_buf_fini(&out);
    return request->outcome ? 0 : hf_fail_plain(err, rc ? rc : HF_ENOMEM);
}

static int check_resolve(const struct hf_journal_resolve *request, struct hf_err *err)
{
    const char *outcome = request->outcome;
    int rc = check_of(&request->of, err);
    if (rc == 0)
        rc = check_settled(request->status, err);
    if (rc == 0 && (outcome == NULL) == (request->reason == NULL))
        rc = hf_fail(err, HF_EINVAL, "outcome",
                     "an outcome or a reason is required, and only one of the two");
    if (rc == 0 && outcome)
        rc = hf_json_check((struct hf_span){ outcome, strlen(outcome) },
                           (size_t)HF_MAX_PAYLOAD_BYTES, "outcome", err);
    return rc ? rc
              : hf_check_text(request->reason, (size_t)HF_MAX_REASON_BYTES, "reason",
                              err);
}

int hf_journal_resolve(struct hf_store *store, const struct hf_caller *given,
                       const struct hf_journal_resolve *wanted,
                       struct hf_journal_effects **ret_effects, struct hf_err *err)
{
    struct hf_journal_resolve request;
    struct api_call call = begin(store, given);
    API_COPY(call, wanted, &request);
    API_STEP(call, check_resolve(&request, &call.why));
    struct effects *made = new_effects(&call, store);
    API_STEP(call, make_outcome(&made->arena, &request, &call.why));
    API_STEP(call, store->methods->journal->resolve(store, &call.who, &request,
                                                    &made->shown, &call.why));
    return answer_effects(&call, made, ret_effects, err);
}
