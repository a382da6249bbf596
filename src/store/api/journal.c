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

#define KEY_MAX ((size_t)HF_MAX_KEY_BYTES)
#define DEFAULT_TTL_MS 30000

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
    API_STEP(call, status > HF_ENTRY_STARTED && status < HF_ENTRY_STATUS_COUNT
                       ? 0
                       : hf_fail(&call.why, HF_EINVAL, "status",
                                 "an effect ends done, failed or unknown"));
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
