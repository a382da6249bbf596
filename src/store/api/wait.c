/* The public verbs of wait.h, as steps of a call (call.h). A turn of a session waits for an answer
 * from outside: to resolve a wait is to answer it, to revoke it is to cancel it. A wait is named by
 * its id, or by its key, a secret text that proves the right to answer; to rotate is to replace the
 * secret that keys are made with. */
#include <holdfast/bounds.h>

#include <string.h>

#include "base/text.h"
#include "core/wait/wait.h"
#include "store/api/call.h"
#include "store/api/request.h"

#define KEY_MAX ((size_t)HF_MAX_KEY_BYTES)
#define LIST_DEFAULT 100

/* ---- answers ------------------------------------------------------------------------ */

struct answer {
    struct hf_wait_answer shown; /* first: callers see it alone */
    struct hf_arena arena;
};

static struct answer *answer_of(struct hf_wait_answer *shown)
{
    return (struct answer *)(void *)shown;
}

struct hf_wait_answer *hf_wait_answer_new(const struct hf_alloc *alloc)
{
    struct answer *answer = alloc->realloc(alloc->user, NULL, sizeof *answer);
    if (!answer)
        return NULL;
    *answer = (struct answer){ .shown = { 0 } };
    hf_arena_init(&answer->arena, alloc);
    return &answer->shown;
}

void hf_wait_answer_free(struct hf_wait_answer *shown)
{
    if (!shown)
        return;
    struct answer *answer = answer_of(shown);
    const struct hf_alloc *alloc = answer->arena.alloc;
    hf_arena_fini(&answer->arena);
    alloc->free(alloc->user, answer);
}

void *hf_wait_answer_memory(struct hf_wait_answer *shown, size_t bytes)
{
    return hf_arena_array(&answer_of(shown)->arena, 1, bytes);
}

const char *hf_wait_answer_copy(struct hf_wait_answer *shown, struct hf_span bytes)
{
    return hf_arena_copy(&answer_of(shown)->arena, bytes.at, bytes.len);
}

/* ---- calls -------------------------------------------------------------------------- */

static struct api_call begin(const struct hf_store *store, const struct hf_caller *given)
{
    struct api_call call = { .rc = 0 };
    API_STEP(call, store->methods->waits
                       ? 0
                       : hf_fail(&call.why, HF_EINVAL, "store",
                                 "this store does not implement waits"));
    return call.rc ? call : api_begin(given);
}

/* An answer for the store's method to fill. NULL where an earlier step failed, and without memory,
 * which is then the failed step. */
static struct hf_wait_answer *new_answer(struct api_call *call,
                                         const struct hf_store *store)
{
    struct hf_wait_answer *answer = call->rc ? NULL : hf_wait_answer_new(store->alloc);
    API_STEP(*call, answer ? 0 : hf_fail_plain(&call->why, HF_ENOMEM));
    return answer;
}

static int answered(const struct api_call *call, struct hf_wait_answer *answer,
                    struct hf_wait_answer **ret_answer, struct hf_err *err)
{
    if (call->rc)
        hf_wait_answer_free(answer);
    else
        *ret_answer = answer;
    return api_end(call, err);
}

/* ---- resolve ------------------------------------------------------------------------ */

static int check_resolve(struct hf_arena *arena, struct hf_wait_resolve *request,
                         struct hf_err *err)
{
    if (!request->key == !request->wait_id)
        return hf_fail(err, HF_EINVAL, "wait_id",
                       "an answer names a wait by its id or by a key, not both");
    if (!hf_wait_answer_word(request->word))
        return hf_fail(err, HF_EINVAL, "answer",
                       "the answer must be ok, error, approve or deny");
    int rc = request->reason ? hf_check_text(request->reason, (size_t)HF_MAX_REASON_BYTES,
                                             "reason", err)
                             : 0;
    return rc ? rc : hf_api_json(arena, &request->value, "value", err);
}

/* The id that a key names, if the key holds. */
static int open_key(struct hf_store *store, struct hf_wait_resolve *request, char *id,
                    struct hf_err *err)
{
    bool holds = false;
    if (!request->key)
        return 0;
    int rc = store->methods->waits->key_check(store, request->key, id, &holds, err);
    request->wait_id = id;
    return rc || holds ? rc : hf_fail_plain(err, HF_EWAITKEY);
}

int hf_wait_resolve(struct hf_store *store, const struct hf_caller *given,
                    const struct hf_wait_resolve *wanted,
                    struct hf_wait_answer **ret_answer, struct hf_err *err)
{
    struct hf_wait_resolve request;
    struct hf_arena arena;
    char id[HF_WAIT_ID_TEXT];
    struct api_call call = begin(store, given);
    hf_arena_init(&arena, store->alloc);
    API_COPY(call, wanted, &request);
    API_STEP(call, check_resolve(&arena, &request, &call.why));
    API_STEP(call, open_key(store, &request, id, &call.why));
    struct hf_wait_answer *answer = new_answer(&call, store);
    API_STEP(call,
             store->methods->waits->resolve(store, &call.who, &request,
                                            request.key != NULL, answer, &call.why));
    hf_arena_fini(&arena);
    return answered(&call, answer, ret_answer, err);
}

/* ---- revoke ------------------------------------------------------------------------- */

static int check_revoke(const struct hf_wait_revoke *request, struct hf_err *err)
{
    struct hf_wait_place place;
    if (!request->session_id == !request->wait_id ||
        (request->wait_id && request->turn_id))
        return hf_fail(
            err, HF_EINVAL, "wait_id",
            "a revocation names a wait, or a session, or a session and a turn");
    if (hf_wait_id_read(request->wait_id, &place) && place.kind == HF_WAIT_TIMER)
        return hf_fail(err, HF_EINVAL, "wait_id",
                       "a timer is no question, and is not revoked: to end the pause, "
                       "cancel the turn");
    int rc = hf_check_key_opt(request->session_id, KEY_MAX, "session_id", err);
    if (rc == 0)
        rc = hf_check_key_opt(request->turn_id, KEY_MAX, "turn_id", err);
    if (rc == 0 && request->reason)
        rc = hf_check_text(request->reason, (size_t)HF_MAX_REASON_BYTES, "reason", err);
    return rc;
}

int hf_wait_revoke(struct hf_store *store, const struct hf_caller *given,
                   const struct hf_wait_revoke *wanted,
                   struct hf_wait_answer **ret_answer, struct hf_err *err)
{
    struct hf_wait_revoke request;
    struct api_call call = begin(store, given);
    API_COPY(call, wanted, &request);
    API_STEP(call, check_revoke(&request, &call.why));
    struct hf_wait_answer *answer = new_answer(&call, store);
    API_STEP(call, store->methods->waits->revoke(store, &call.who, &request, answer,
                                                 &call.why));
    return answered(&call, answer, ret_answer, err);
}

/* ---- read --------------------------------------------------------------------------- */

static int check_filter(struct hf_wait_filter *filter, struct hf_err *err)
{
    enum hf_wait_kind kind;
    int rc = api_check_page(filter->limit, "waits", err);
    filter->limit = filter->limit ? filter->limit : LIST_DEFAULT;
    if (rc == 0 && filter->kind && !hf_wait_kind_of(filter->kind, &kind))
        rc = hf_fail(err, HF_EINVAL, "kind",
                     "kind must be tool, approval, signal, timer or custom");
    if (rc == 0 && filter->closed && !filter->session_id)
        rc = hf_fail(err, HF_EINVAL, "session_id",
                     "closed waits are listed per session: name one");
    if (rc == 0)
        rc = hf_check_key_opt(filter->session_id, KEY_MAX, "session_id", err);
    return rc ? rc : hf_check_key_opt(filter->answerer, KEY_MAX, "answerer", err);
}

int hf_wait_list(struct hf_store *store, const struct hf_caller *given,
                 const struct hf_wait_filter *wanted, struct hf_wait_answer **ret_answer,
                 struct hf_err *err)
{
    struct hf_wait_filter filter;
    struct api_call call = begin(store, given);
    API_COPY(call, wanted, &filter);
    API_STEP(call, check_filter(&filter, &call.why));
    struct hf_wait_answer *answer = new_answer(&call, store);
    API_STEP(call,
             store->methods->waits->list(store, &call.who, &filter, answer, &call.why));
    return answered(&call, answer, ret_answer, err);
}

int hf_wait_get(struct hf_store *store, const struct hf_caller *given,
                const char *wait_id, struct hf_wait_answer **ret_answer,
                struct hf_err *err)
{
    struct api_call call = begin(store, given);
    API_STEP(call, hf_check_key(wait_id, KEY_MAX, "wait_id", &call.why));
    struct hf_wait_answer *answer = new_answer(&call, store);
    API_STEP(call, store->methods->waits->get(store, wait_id, answer, &call.why));
    return answered(&call, answer, ret_answer, err);
}

/* ---- keys --------------------------------------------------------------------------- */

static int check_id(const char *wait_id, struct hf_err *err)
{
    struct hf_wait_place place;
    return hf_wait_id_read(wait_id, &place)
               ? 0
               : hf_fail(err, HF_EINVAL, "wait_id", "this is no id of a wait");
}

int hf_wait_key(struct hf_store *store, const char *wait_id,
                char ret_key[HF_WAIT_KEY_TEXT], struct hf_err *err)
{
    struct api_call call = begin(store, NULL);
    API_STEP(call, check_id(wait_id, &call.why));
    API_STEP(call, store->methods->waits->key(store, wait_id, ret_key, &call.why));
    return api_end(&call, err);
}

int hf_wait_rotate(struct hf_store *store, const struct hf_caller *given, hf_ms valid_ms,
                   struct hf_err *err)
{
    struct api_call call = begin(store, given);
    API_STEP(call, api_check_time(valid_ms, "valid_ms", &call.why));
    API_STEP(call, store->methods->waits->rotate(store, valid_ms, &call.why));
    return api_end(&call, err);
}
