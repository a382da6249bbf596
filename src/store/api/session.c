/* The public verbs of session.h, as steps of a call (call.h).
 *
 * A verb copies the request, checks its fields, fills in what the caller left out (ids, nonces,
 * defaults), and calls the method of the store, which trusts the copy. What a step replaces in the
 * copy lives in the verb's arena, until the method has returned. After a step that failed, the
 * following API_STEPs do nothing. */
#include <holdfast/bounds.h>
#include <holdfast/turn_json.h>

#include <string.h>

#include "base/ident.h"
#include "base/json_get.h"
#include "base/text.h"
#include "core/session/session.h"
#include "core/wait/wait.h"
#include "store/api/call.h"
#include "store/api/page.h"
#include "store/api/request.h"
#include "store/api/session.h"
#include "store/api/work.h"

#define KEY_MAX ((size_t)HF_MAX_KEY_BYTES)
#define DEFAULT_TTL_MS 30000
#define RENEWALS 1000
#define AGENTS 32
#define LIST_DEFAULT 100

/* ---- answers ------------------------------------------------------------------------ */

/* A record that was decoded for an answer. */
struct decoded {
    struct decoded *next;
    struct hf_decoded *owner;
};

struct answer {
    struct hf_session_answer shown; /* first: callers see it alone */
    struct hf_arena arena;
    struct decoded *records;
};

static struct answer *answer_of(struct hf_session_answer *shown)
{
    return (struct answer *)(void *)shown;
}

struct hf_session_answer *hf_session_answer_new(const struct hf_alloc *alloc)
{
    struct answer *answer = alloc->realloc(alloc->user, NULL, sizeof *answer);
    if (!answer)
        return NULL;
    *answer = (struct answer){ .records = NULL };
    hf_arena_init(&answer->arena, alloc);
    return &answer->shown;
}

void hf_session_answer_free(struct hf_session_answer *shown)
{
    if (!shown)
        return;
    struct answer *answer = answer_of(shown);
    const struct hf_alloc *alloc = answer->arena.alloc;
    for (struct decoded *one = answer->records; one; one = one->next)
        hf_decoded_free(one->owner);
    hf_arena_fini(&answer->arena);
    alloc->free(alloc->user, answer);
}

void *hf_session_answer_memory(struct hf_session_answer *shown, size_t bytes)
{
    return hf_arena_array(&answer_of(shown)->arena, 1, bytes);
}

const char *hf_session_answer_copy(struct hf_session_answer *shown, struct hf_span bytes)
{
    return hf_arena_copy(&answer_of(shown)->arena, bytes.at, bytes.len);
}

int hf_session_answer_record(struct hf_session_answer *shown, const char *json,
                             const struct hf_record **ret_record, struct hf_err *err)
{
    struct answer *answer = answer_of(shown);
    struct decoded *one = hf_arena_new(&answer->arena, struct decoded);
    struct hf_err why = { 0 };
    if (!one)
        return hf_fail_plain(err, HF_ENOMEM);
    int rc = hf_record_decode(answer->arena.alloc, (struct hf_span){ json, strlen(json) },
                              &one->owner, ret_record, &why);
    if (rc == HF_ENOMEM)
        return hf_fail_plain(err, rc);
    if (rc)
        return hf_fail(err, HF_ECORRUPT, "record", "a stored record cannot be read: %s",
                       why.message);
    one->next = answer->records;
    answer->records = one;
    return 0;
}

/* ---- calls --------------------------------------------------------------------------- */

static struct api_call begin(const struct hf_store *store, const struct hf_caller *given)
{
    struct api_call call = { .rc = 0 };
    API_STEP(call, store->methods->sessions
                       ? 0
                       : hf_fail(&call.why, HF_EINVAL, "store",
                                 "this store does not implement sessions"));
    return call.rc ? call : api_begin(given);
}

/* An answer for the store's method to fill. NULL where an earlier step failed, and without memory,
 * which is then the failed step. */
static struct hf_session_answer *new_answer(struct api_call *call,
                                            const struct hf_store *store)
{
    struct hf_session_answer *answer = call->rc ? NULL
                                                : hf_session_answer_new(store->alloc);
    API_STEP(*call, answer ? 0 : hf_fail_plain(&call->why, HF_ENOMEM));
    return answer;
}

/* Ends a call: the answer goes to the caller if all steps succeeded, otherwise it is freed. */
static int answered(const struct api_call *call, struct hf_session_answer *answer,
                    struct hf_session_answer **ret_answer, struct hf_err *err)
{
    if (call->rc)
        hf_session_answer_free(answer);
    else
        *ret_answer = answer;
    return api_end(call, err);
}

int hf_session_id_check(const char *session_id, struct hf_err *err)
{
    return hf_check_key(session_id, KEY_MAX, "session_id", err);
}

static int check_object(const char *json, size_t max, const char *field,
                        struct hf_err *err)
{
    struct json_t *value = NULL;
    int rc = hf_json_parse((struct hf_span){ json, strlen(json) }, max, field, &value,
                           err);
    bool object = rc == 0 && hf_json_type_of(value) == HF_JSON_OBJECT;
    hf_json_free(value);
    return rc || object
               ? rc
               : hf_fail(err, HF_EINVAL, field, "%s must be a JSON object", field);
}

/* A JSON object, canonical; NULL stays. */
static int given_object(struct hf_arena *arena, const char **json, const char *field,
                        struct hf_err *err)
{
    int rc = hf_api_json(arena, json, field, err);
    return rc || !*json ? rc : check_object(*json, SIZE_MAX, field, err);
}

static int fresh_id(const struct hf_store *store, struct hf_arena *arena,
                    const char **ret_id, struct hf_err *err)
{
    uint64_t seq = 0;
    char *id = hf_arena_take(arena, HF_UUID_TEXT);
    *ret_id = id;
    return id ? hf_uuid7(store->clock->wall_ms(store->clock->user), &seq, store->random,
                         id, err)
              : hf_fail_plain(err, HF_ENOMEM);
}

/* ---- create --------------------------------------------------------------------------- */

static int check_relation(const struct hf_session_spec *request, struct hf_err *err)
{
    bool needs = request->relation == HF_RELATION_CHILD ||
                 request->relation == HF_RELATION_FORK;
    if (!hf_relation_word(request->relation))
        return hf_fail(err, HF_EINVAL, "relation",
                       "relation must be root, child, fork or caused");
    if (needs && !request->parent_id)
        return hf_fail(err, HF_EINVAL, "parent_id", "a %s has a parent",
                       hf_relation_word(request->relation));
    if (request->relation == HF_RELATION_ROOT && request->parent_id)
        return hf_fail(err, HF_EINVAL, "parent_id", "a root has no parent");
    if (request->relation == HF_RELATION_CAUSED && !request->cause)
        return hf_fail(err, HF_EINVAL, "cause", "a session that was caused has a cause");
    return hf_check_key_opt(request->parent_id, KEY_MAX, "parent_id", err);
}

/* Checks a request. Config, cause and labels become canonical JSON, so that the same request has
 * the same bytes. Config and labels are objects; a cause belongs to the caller, and may be any
 * JSON. */
static int check_new(struct hf_arena *arena, struct hf_session_spec *request,
                     struct hf_err *err)
{
    int rc = hf_check_key_opt(request->session_id, KEY_MAX, "session_id", err);
    if (rc == 0)
        rc = hf_check_key(request->agent, KEY_MAX, "agent", err);
    if (rc == 0)
        rc = check_relation(request, err);
    if (rc == 0)
        rc = given_object(arena, &request->config, "config", err);
    if (rc == 0)
        rc = hf_api_json(arena, &request->cause, "cause", err);
    if (rc == 0)
        rc = given_object(arena, &request->labels, "labels", err);
    return rc ? rc : hf_api_labels(request->labels, err);
}

int hf_session_create_check(struct hf_arena *arena, const struct hf_session_spec *wanted,
                            struct hf_session_spec *ret_request, struct hf_err *err)
{
    size_t size = sizeof *ret_request;
    int rc = hf_sized_copy(wanted, size, size, ret_request, err);
    return rc ? rc : check_new(arena, ret_request, err);
}

int hf_session_create(struct hf_store *store, const struct hf_caller *given,
                      const struct hf_session_spec *wanted,
                      struct hf_session_answer **ret_answer, struct hf_err *err)
{
    struct hf_session_spec request;
    struct hf_arena arena;
    struct api_call call = begin(store, given);
    hf_arena_init(&arena, store->alloc);
    API_STEP(call, hf_session_create_check(&arena, wanted, &request, &call.why));
    if (call.rc == 0 && !request.session_id)
        API_STEP(call, fresh_id(store, &arena, &request.session_id, &call.why));
    struct hf_session_answer *answer = new_answer(&call, store);
    API_STEP(call, store->methods->sessions->create(store, &call.who, &request, answer,
                                                    &call.why));
    hf_arena_fini(&arena);
    return answered(&call, answer, ret_answer, err);
}

/* ---- send ------------------------------------------------------------------------------ */

/* The message in the machine's own form, so that the same message is the same bytes. */
static int own_form(struct hf_arena *arena, struct hf_span text, const char **ret_message,
                    struct hf_err *err)
{
    struct hf_decoded *owner = NULL;
    const struct hf_record *record = NULL;
    struct hf_bytes json = { 0 };
    struct hf_err why = { 0 };
    int rc = hf_record_decode(arena->alloc, text, &owner, &record, &why);
    if (rc == 0 && (record->kind != HF_RECORD_MESSAGE || !record->message))
        rc = hf_fail(&why, HF_EINVAL, "message", "it is a record, but not a message");
    if (rc)
        rc = hf_fail(err, rc, "message", "message must be a record of kind message: %s",
                     why.message);
    if (rc == 0)
        rc = hf_session_message_check(record->message, err);
    if (rc == 0)
        rc = hf_record_encode(arena->alloc, record, &json, err);
    if (rc == 0) {
        *ret_message = hf_arena_copy(arena, json.at, json.len);
        rc = *ret_message ? 0 : hf_fail_plain(err, HF_ENOMEM);
    }
    hf_bytes_free(&json);
    hf_decoded_free(owner);
    return rc;
}

static int check_send(struct hf_arena *arena, struct hf_session_send *request,
                      struct hf_err *err)
{
    struct hf_span text = { request->message,
                            request->message ? strlen(request->message) : 0 };
    int rc = hf_session_id_check(request->session_id, err);
    if (rc == 0)
        rc = hf_check_key_opt(request->source_key, KEY_MAX, "source_key", err);
    if (rc == 0 && text.len == 0)
        rc = hf_fail(err, HF_EINVAL, "message", "a message is needed");
    if (rc == 0 && text.len > (size_t)HF_MAX_INPUT_BYTES)
        rc = hf_fail(err, HF_ETOOBIG, "message",
                     "message has %zu bytes; input_bytes allows %lld", text.len,
                     (long long)HF_MAX_INPUT_BYTES);
    return rc ? rc : own_form(arena, text, &request->message, err);
}

int hf_session_send_check(struct hf_arena *arena, const struct hf_session_send *wanted,
                          struct hf_session_send *ret_request, struct hf_err *err)
{
    size_t size = sizeof *ret_request;
    int rc = hf_sized_copy(wanted, size, size, ret_request, err);
    return rc ? rc : check_send(arena, ret_request, err);
}

int hf_session_send(struct hf_store *store, const struct hf_caller *given,
                    const struct hf_session_send *wanted, struct hf_answer **ret_answer,
                    struct hf_err *err)
{
    struct hf_session_send request;
    struct hf_arena arena;
    struct api_call call = begin(store, given);
    hf_arena_init(&arena, store->alloc);
    API_STEP(call, hf_session_send_check(&arena, wanted, &request, &call.why));
    struct hf_answer *answer = api_answer(&call, store);
    API_STEP(call, store->methods->sessions->send(store, &call.who, &request, answer,
                                                  &call.why));
    hf_arena_fini(&arena);
    return api_answered(&call, answer, ret_answer, err);
}

/* ---- claim ----------------------------------------------------------------------------- */

static int check_which(const struct hf_session_claim *claim, struct hf_err *err)
{
    int rc = 0;
    if (claim->session_id && claim->agent_count)
        return hf_fail(err, HF_EINVAL, "agents",
                       "a claim names a session or agents, not both");
    if (claim->session_id)
        return hf_session_id_check(claim->session_id, err);
    if (!claim->agents || claim->agent_count == 0 || claim->agent_count > AGENTS)
        return hf_fail(err, HF_EINVAL, "agents",
                       "a claim names a session, or 1 to %d agents", AGENTS);
    for (size_t i = 0; rc == 0 && i < claim->agent_count; i++)
        rc = hf_check_key(claim->agents[i], KEY_MAX, "agents", err);
    return rc;
}

static int check_claim(const struct hf_session_claim *claim, struct hf_err *err)
{
    int rc = check_which(claim, err);
    if (rc == 0)
        rc = hf_check_key_opt(claim->owner, KEY_MAX, "owner", err);
    if (rc == 0)
        rc = hf_check_key_opt(claim->incarnation, KEY_MAX, "incarnation", err);
    if (rc == 0)
        rc = hf_check_key_opt(claim->nonce, KEY_MAX, "nonce", err);
    if (rc == 0 && !claim->owner && claim->incarnation)
        rc = hf_fail(err, HF_EINVAL, "owner", "an incarnation is of an owner: name it");
    if (rc == 0 && claim->pid < 0)
        rc = hf_fail(err, HF_EINVAL, "pid", "pid must not be negative");
    if (rc == 0)
        rc = api_check_time(claim->wait_ms, "wait_ms", err);
    if (rc == 0)
        rc = api_check_page(claim->records, "records", err);
    return rc || !claim->ttl_ms ? rc : hf_lease_timing(claim->ttl_ms, 0, err);
}

/* The owner, the incarnation, the nonce and the term that the caller leaves out. */
static int complete_claim(const struct hf_store *store, struct hf_arena *arena,
                          struct hf_session_claim *claim, struct hf_err *err)
{
    int rc = 0;
    if (!claim->owner) {
        claim->owner = claim->nonce;
        rc = claim->owner ? 0 : fresh_id(store, arena, &claim->owner, err);
        claim->incarnation = claim->owner;
    } else if (!claim->incarnation) {
        claim->incarnation = store->incarnation;
    }
    if (!claim->ttl_ms)
        claim->ttl_ms = DEFAULT_TTL_MS;
    if (rc || claim->nonce)
        return rc;
    char *nonce = hf_arena_take(arena, HF_NONCE_TEXT);
    claim->nonce = nonce;
    return nonce ? hf_nonce(store->random, nonce, err) : hf_fail_plain(err, HF_ENOMEM);
}

int hf_session_claim_check(const struct hf_session_claim *wanted,
                           struct hf_session_claim *ret_claim, struct hf_err *err)
{
    int rc = hf_sized_copy(wanted, sizeof *ret_claim, sizeof *ret_claim, ret_claim, err);
    return rc ? rc : check_claim(ret_claim, err);
}

int hf_session_claim_once(struct hf_store *store, const struct hf_caller *given,
                          const struct hf_session_claim *checked,
                          struct hf_session_answer **ret_answer, struct hf_err *err)
{
    struct hf_session_claim claim = *checked;
    struct hf_arena arena;
    struct api_call call = begin(store, given);
    hf_arena_init(&arena, store->alloc);
    API_STEP(call, complete_claim(store, &arena, &claim, &call.why));
    API_STEP(call,
             hf_caller_complete(given, "worker", claim.owner, &call.who, &call.why));
    struct hf_session_answer *answer = new_answer(&call, store);
    API_STEP(call, store->methods->sessions->claim(store, &call.who, &claim, answer,
                                                   &call.why));
    hf_arena_fini(&arena);
    return answered(&call, answer, ret_answer, err);
}

/* ---- reading ---------------------------------------------------------------------------- */

int hf_session_head(struct hf_store *store, const char *session_id,
                    struct hf_session_answer **ret_answer, struct hf_err *err)
{
    struct api_call call = begin(store, NULL);
    API_STEP(call, hf_session_id_check(session_id, &call.why));
    struct hf_session_answer *answer = new_answer(&call, store);
    API_STEP(call, store->methods->sessions->head(store, session_id, answer, &call.why));
    return answered(&call, answer, ret_answer, err);
}

static int check_load(struct hf_session_load *request, struct hf_err *err)
{
    int rc = hf_session_id_check(request->session_id, err);
    if (rc == 0)
        rc = api_check_page(request->limit, "records", err);
    if (rc)
        return rc;
    request->limit = request->limit ? request->limit : (size_t)HF_MAX_PAGE;
    if (request->from_ordinal < 0)
        return hf_fail(err, HF_EINVAL, "from_ordinal", "an ordinal must not be negative");
    if (request->from_ordinal > 0 &&
        (request->head_revision < 1 || request->record_count <= request->from_ordinal))
        return hf_fail(
            err, HF_EINVAL, "record_count",
            "a later page names the revision and the record count of the first "
            "page's head, and begins below that count");
    return 0;
}

int hf_session_load_check(const struct hf_session_load *wanted,
                          struct hf_session_load *ret_request, struct hf_err *err)
{
    size_t size = sizeof *ret_request;
    int rc = hf_sized_copy(wanted, size, size, ret_request, err);
    return rc ? rc : check_load(ret_request, err);
}

int hf_session_load(struct hf_store *store, const struct hf_session_load *wanted,
                    struct hf_session_answer **ret_answer, struct hf_err *err)
{
    struct hf_session_load request;
    struct api_call call = begin(store, NULL);
    API_STEP(call, hf_session_load_check(wanted, &request, &call.why));
    struct hf_session_answer *answer = new_answer(&call, store);
    API_STEP(call, store->methods->sessions->load(store, &request, answer, &call.why));
    return answered(&call, answer, ret_answer, err);
}

int hf_session_node(struct hf_store *store, const char *session_id, int64_t ordinal,
                    struct hf_session_answer **ret_answer, struct hf_err *err)
{
    struct api_call call = begin(store, NULL);
    API_STEP(call, hf_session_id_check(session_id, &call.why));
    API_STEP(call, ordinal >= 0 ? 0
                                : hf_fail(&call.why, HF_EINVAL, "ordinal",
                                          "an ordinal must not be negative"));
    struct hf_session_answer *answer = new_answer(&call, store);
    API_STEP(call, store->methods->sessions->node(store, session_id, ordinal, answer,
                                                  &call.why));
    return answered(&call, answer, ret_answer, err);
}

int hf_session_turn(struct hf_store *store, const char *session_id, const char *name,
                    struct hf_session_answer **ret_answer, struct hf_err *err)
{
    struct api_call call = begin(store, NULL);
    API_STEP(call, hf_session_id_check(session_id, &call.why));
    API_STEP(call, hf_check_key_opt(name, KEY_MAX, "turn", &call.why));
    struct hf_session_answer *answer = new_answer(&call, store);
    API_STEP(call,
             store->methods->sessions->turn(store, session_id, name, answer, &call.why));
    return answered(&call, answer, ret_answer, err);
}

int hf_session_blob_put(struct hf_store *store, struct hf_span bytes,
                        uint8_t ret_hash[32], struct hf_err *err)
{
    struct api_call call = begin(store, NULL);
    uint8_t hash[HF_DIGEST_BYTES];
    API_STEP(call, bytes.at && bytes.len > 0 ? 0
                                             : hf_fail(&call.why, HF_EINVAL, "bytes",
                                                       "there are no bytes to store"));
    API_STEP(call, bytes.len <= (size_t)HF_MAX_ATTACHMENT_BYTES
                       ? 0
                       : hf_fail(&call.why, HF_ETOOBIG, "bytes",
                                 "%zu bytes are over the limit of %lld", bytes.len,
                                 (long long)HF_MAX_ATTACHMENT_BYTES));
    API_STEP(call, hf_sha256(bytes.at, bytes.len, hash) ? HF_EINTERNAL : 0);
    API_STEP(call, store->methods->sessions->blob_put(store, hash, bytes, &call.why));
    if (call.rc == 0)
        memcpy(ret_hash, hash, sizeof hash);
    return api_end(&call, err);
}

int hf_session_blob_get(struct hf_store *store, const uint8_t hash[32],
                        struct hf_session_answer **ret_answer, struct hf_err *err)
{
    struct api_call call = begin(store, NULL);
    API_STEP(call, hash ? 0 : hf_fail(&call.why, HF_EINVAL, "hash", "a hash is needed"));
    struct hf_session_answer *answer = new_answer(&call, store);
    API_STEP(call, store->methods->sessions->blob(store, hash, answer, &call.why));
    return answered(&call, answer, ret_answer, err);
}

static int check_filter(struct hf_session_filter *filter, struct hf_err *err)
{
    int rc = api_check_page(filter->limit, "sessions", err);
    if (rc == 0)
        rc = hf_check_key_opt(filter->agent, KEY_MAX, "agent", err);
    filter->limit = filter->limit ? filter->limit : LIST_DEFAULT;
    return rc ? rc : hf_check_key_opt(filter->parent_id, KEY_MAX, "parent_id", err);
}

int hf_session_unknown(struct hf_store *store, const struct hf_caller *given,
                       const char *after, size_t limit,
                       struct hf_session_answer **ret_answer, struct hf_err *err)
{
    struct api_call call = begin(store, given);
    API_STEP(call, api_check_page(limit, "effects", &call.why));
    struct hf_session_answer *answer = new_answer(&call, store);
    API_STEP(call, store->methods->sessions->unknown(store, &call.who, after,
                                                     limit ? limit : LIST_DEFAULT, answer,
                                                     &call.why));
    return answered(&call, answer, ret_answer, err);
}

int hf_session_filter_check(const struct hf_session_filter *wanted,
                            struct hf_session_filter *ret_filter, struct hf_err *err)
{
    size_t size = sizeof *ret_filter;
    int rc = hf_sized_copy(wanted, size, size, ret_filter, err);
    return rc ? rc : check_filter(ret_filter, err);
}

int hf_session_list(struct hf_store *store, const struct hf_caller *given,
                    const struct hf_session_filter *wanted,
                    struct hf_session_answer **ret_answer, struct hf_err *err)
{
    struct hf_session_filter filter;
    struct api_call call = begin(store, given);
    API_STEP(call, hf_session_filter_check(wanted, &filter, &call.why));
    struct api_page page = { .what = "sessions", .newest = filter.newest };
    struct hf_arena arena;
    if (call.rc == 0) {
        api_page_text(&page, call.who.tenant);
        api_page_text(&page, filter.agent);
        api_page_text(&page, filter.parent_id);
        api_page_number(&page, filter.open);
    }
    API_STEP(call, api_page_open(&page, filter.after, &filter.after, &call.why));
    struct hf_session_answer *answer = new_answer(&call, store);
    API_STEP(call, store->methods->sessions->list(store, &call.who, &filter, answer,
                                                  &call.why));
    hf_arena_init(&arena, store->alloc);
    if (call.rc == 0 && answer->next) {
        const char *next = api_page_close(&page, &arena, answer->next);
        answer->next = next ? hf_session_answer_copy(
                                  answer, (struct hf_span){ next, strlen(next) })
                            : NULL;
        API_STEP(call, answer->next ? 0 : HF_ENOMEM);
    }
    hf_arena_fini(&arena);
    return answered(&call, answer, ret_answer, err);
}

int hf_session_inputs(struct hf_store *store, const char *session_id, const char *after,
                      size_t limit, struct hf_session_answer **ret_answer,
                      struct hf_err *err)
{
    struct api_call call = begin(store, NULL);
    API_STEP(call, hf_session_id_check(session_id, &call.why));
    API_STEP(call, hf_check_key_opt(after, KEY_MAX, "after", &call.why));
    API_STEP(call, api_check_page(limit, "inputs", &call.why));
    struct hf_session_answer *answer = new_answer(&call, store);
    API_STEP(call, store->methods->sessions->inputs(store, session_id, after,
                                                    limit ? limit : LIST_DEFAULT, answer,
                                                    &call.why));
    return answered(&call, answer, ret_answer, err);
}

/* ---- under the lease ---------------------------------------------------------------------- */

/* What names a turn in a step and in a commit. */
struct place {
    const char *session_id;
    const char *token;
    const char *turn_id;
    int64_t step;
    int64_t node_count;
    const uint8_t *chain;
};

static int check_place(const struct place *place, struct hf_err *err)
{
    int rc = hf_session_id_check(place->session_id, err);
    if (rc == 0 && !place->token)
        rc = hf_fail(err, HF_EINVAL, "token", "the token of the claim is needed");
    if (rc == 0)
        rc = hf_check_key(place->turn_id, KEY_MAX, "turn_id", err);
    if (rc == 0 && (place->step < 0 || place->node_count < 0))
        rc = hf_fail(err, HF_EINVAL, place->step < 0 ? "step" : "node_count",
                     "step and node_count must not be negative");
    if (rc == 0 && !place->chain)
        rc = hf_fail(err, HF_EINVAL, "chain", "the turn's chain is needed");
    return rc;
}

static int check_blobs(const struct hf_session_blob *blobs, size_t count,
                       struct hf_err *err)
{
    int rc = hf_sized_array(blobs, count, "blobs", err);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        uint8_t hash[HF_DIGEST_BYTES];
        if (!blobs[i].bytes.at)
            continue;
        if (hf_sha256(blobs[i].bytes.at, blobs[i].bytes.len, hash))
            return hf_fail_plain(err, HF_ENOMEM);
        if (memcmp(hash, blobs[i].hash, sizeof hash) != 0)
            return hf_fail(err, HF_EINVAL, "blobs",
                           "the hash of blob %zu is not that of its bytes", i);
    }
    return rc;
}

static bool is_effect_key(const char *key)
{
    struct hf_effect_name name;
    return key && hf_effect_key_read(key, &name);
}

/* What the key says in addition to its parts: the attempt, and whether it is a call of a tool. */
static bool is_as_its_key(const struct hf_effect_entry *one)
{
    struct hf_effect_name name;
    bool call = hf_effect_key_read(one->key, &name) && name.call_id[0];
    return one->attempt == (call ? name.attempt : 0) &&
           !hf_same(one->kind, call ? "llm_call" : "tool_call");
}

static int check_begun(const struct hf_effect_entry *one, struct hf_err *err)
{
    if (!is_effect_key(one->key) || !one->kind)
        return hf_fail(err, HF_EINVAL, "begun", "an effect has a key and a kind");
    if (!is_as_its_key(one))
        return hf_fail(err, HF_EINVAL, "begun",
                       "effect %s: its key is of another kind or attempt", one->key);
    if (one->recovery <= HF_RECOVERY_NONE || one->recovery >= HF_RECOVERY_COUNT)
        return hf_fail(err, HF_EINVAL, "begun",
                       "effect %s must declare its class: safe, keyed, probe or ask",
                       one->key);
    return hf_json_check(one->envelope, (size_t)HF_MAX_PAYLOAD_BYTES, "begun", err);
}

static int check_settled(const struct hf_effect_settled *one, struct hf_err *err)
{
    if (!is_effect_key(one->key) || one->status <= HF_ENTRY_STARTED ||
        one->status >= HF_ENTRY_STATUS_COUNT)
        return hf_fail(err, HF_EINVAL, "settled",
                       "an effect has a key, and ends done, failed or unknown");
    return hf_json_check_raw(one->outcome, (size_t)HF_MAX_TURN_SAVE_BYTES, "settled",
                             err);
}

static int check_effects(const struct hf_session_step *step, struct hf_err *err)
{
    int rc = hf_sized_array(step->begun, step->begun_count, "begun", err);
    if (rc == 0)
        rc = hf_sized_array(step->settled, step->settled_count, "settled", err);
    if (rc == 0)
        rc = hf_sized_array(step->blobs, step->blob_count, "blobs", err);
    for (size_t i = 0; rc == 0 && i < step->begun_count; i++)
        rc = check_begun(&step->begun[i], err);
    for (size_t i = 0; rc == 0 && i < step->settled_count; i++)
        rc = check_settled(&step->settled[i], err);
    if (rc == 0 && step->active_ms < 0)
        rc = hf_fail(err, HF_EINVAL, "active_ms", "active_ms must not be negative");
    return rc;
}

static int check_waits(const struct hf_session_step *step, struct hf_err *err)
{
    int rc = hf_sized_array(step->waits, step->wait_count, "waits", err);
    if (rc == 0 && step->wait_count > (size_t)HF_MAX_TURN_CALLS)
        rc = hf_fail(err, HF_ETOOBIG, "waits", "a step has %zu waits; %lld are allowed",
                     step->wait_count, (long long)HF_MAX_TURN_CALLS);
    if (rc == 0 && step->away && step->wait_count == 0)
        rc = hf_fail(err, HF_EINVAL, "waits",
                     "a turn that is put away waits for something: list it");
    for (size_t i = 0; rc == 0 && i < step->wait_count; i++)
        rc = hf_wait_spec_check(&step->waits[i], err);
    return rc;
}

static int check_step(const struct hf_session_step *step, struct hf_err *err)
{
    int rc = check_place(&(struct place){ step->session_id, step->token, step->turn_id,
                                          step->step, step->node_count, step->chain },
                         err);
    if (rc == 0)
        rc = hf_sized_array(step->records, step->record_count, "records", err);
    if (rc == 0)
        rc = check_effects(step, err);
    if (rc == 0)
        rc = check_waits(step, err);
    if (rc == 0 && (!step->save.at || step->save.len == 0))
        rc = hf_fail(err, HF_EINVAL, "save", "the turn's save is needed");
    if (rc == 0 && step->save.len > (size_t)HF_MAX_TURN_SAVE_BYTES)
        rc = hf_fail(err, HF_ETOOBIG, "save",
                     "save has %zu bytes; turn_save_bytes allows %lld", step->save.len,
                     (long long)HF_MAX_TURN_SAVE_BYTES);
    return rc;
}

int hf_session_step_check(const struct hf_session_step *wanted,
                          struct hf_session_step *ret_step, struct hf_err *err)
{
    int rc = hf_sized_copy(wanted, sizeof *ret_step, sizeof *ret_step, ret_step, err);
    return rc ? rc : check_step(ret_step, err);
}

int hf_session_step(struct hf_store *store, const struct hf_caller *given,
                    const struct hf_session_step *wanted,
                    struct hf_session_stepped *ret_stepped, struct hf_err *err)
{
    struct hf_session_step step;
    struct api_call call = begin(store, given);
    API_STEP(call, hf_session_step_check(wanted, &step, &call.why));
    API_STEP(call, store->methods->sessions->step(store, &call.who, &step, ret_stepped,
                                                  &call.why));
    return api_end(&call, err);
}

static int check_spent(const struct hf_session_commit *commit, struct hf_err *err)
{
    int rc = hf_sized_array(commit->spent, commit->spent_count, "spent", err);
    for (size_t i = 0; rc == 0 && i < commit->spent_count; i++) {
        const struct hf_session_spent *spent = &commit->spent[i];
        const struct hf_usage *u = &spent->usage;
        rc = hf_check_key(spent->source, KEY_MAX, "source", err);
        if (rc == 0)
            rc = hf_check_key_opt(spent->model, KEY_MAX, "model", err);
        if (rc == 0 && (u->input < 0 || u->output < 0 || u->cache_read < 0 ||
                        u->cache_write < 0 || u->reasoning < 0))
            rc = hf_fail(err, HF_EINVAL, "spent",
                         "numbers of tokens must not be negative");
    }
    return rc;
}

static int check_units(const struct hf_session_commit *commit, struct hf_err *err)
{
    int rc = hf_sized_array(commit->units, commit->unit_count, "units", err);
    return rc || commit->unit_count == 0
               ? rc
               : hf_create_check(commit->units, commit->unit_count, err);
}

static int check_commit(struct hf_arena *arena, struct hf_session_commit *commit,
                        struct hf_err *err)
{
    int rc = check_place(&(struct place){ commit->session_id, commit->token,
                                          commit->turn_id, commit->step,
                                          commit->node_count, commit->chain },
                         err);
    if (rc == 0 && (commit->head_revision < 0 || commit->record_count < 0))
        rc = hf_fail(err, HF_EINVAL, "head_revision",
                     "head_revision and record_count must not be negative");
    if (rc == 0 && commit->status != HF_STATUS_DONE &&
        commit->status != HF_STATUS_FAILED && commit->status != HF_STATUS_TIMEOUT &&
        commit->status != HF_STATUS_CANCELLED)
        rc = hf_fail(err, HF_EINVAL, "status",
                     "status must be done, failed, timeout or cancelled");
    if (rc == 0 && !commit->outcome)
        rc = hf_fail(err, HF_EINVAL, "outcome", "the turn's outcome is needed");
    if (rc == 0) /* it keeps its bytes */
        rc = check_object(commit->outcome, (size_t)HF_MAX_PAYLOAD_BYTES, "outcome", err);
    if (rc == 0)
        rc = given_object(arena, &commit->config, "config", err);
    if (rc == 0)
        rc = hf_sized_array(commit->records, commit->added_count, "records", err);
    if (rc == 0)
        rc = check_blobs(commit->blobs, commit->blob_count, err);
    if (rc == 0)
        rc = check_spent(commit, err);
    return rc ? rc : check_units(commit, err);
}

int hf_session_commit_check(struct hf_arena *arena,
                            const struct hf_session_commit *wanted,
                            struct hf_session_commit *ret_commit, struct hf_err *err)
{
    size_t size = sizeof *ret_commit;
    int rc = hf_sized_copy(wanted, size, size, ret_commit, err);
    return rc ? rc : check_commit(arena, ret_commit, err);
}

int hf_session_commit(struct hf_store *store, const struct hf_caller *given,
                      const struct hf_session_commit *wanted,
                      struct hf_session_committed *ret_committed, struct hf_err *err)
{
    struct hf_session_commit commit;
    struct hf_arena arena;
    struct api_call call = begin(store, given);
    hf_arena_init(&arena, store->alloc);
    API_STEP(call, hf_session_commit_check(&arena, wanted, &commit, &call.why));
    API_STEP(call, store->methods->sessions->commit(store, &call.who, &commit,
                                                    ret_committed, &call.why));
    hf_arena_fini(&arena);
    return api_end(&call, err);
}

int hf_session_renewals_check(const struct hf_session_renewal *renewals, size_t count,
                              struct hf_err *err)
{
    int rc = hf_sized_array(renewals, count, "renewals", err);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = hf_session_id_check(renewals[i].session_id, err);
        if (rc == 0 && !renewals[i].token)
            rc = hf_fail(err, HF_EINVAL, "token", "each renewal needs its token");
    }
    return rc;
}

int hf_session_renew_all(struct hf_store *store, struct hf_session_renewal *renewals,
                         size_t count, struct hf_err *err)
{
    struct api_call call = begin(store, NULL);
    API_STEP(call, hf_session_renewals_check(renewals, count, &call.why));
    for (size_t i = 0; call.rc == 0 && i < count; i += RENEWALS) {
        size_t left = count - i;
        API_STEP(call,
                 store->methods->sessions->renew_all(
                     store, renewals + i, left < RENEWALS ? left : RENEWALS, &call.why));
    }
    return api_end(&call, err);
}

int hf_session_release(struct hf_store *store, const struct hf_caller *given,
                       const char *session_id, const char *token, struct hf_err *err)
{
    struct api_call call = begin(store, given);
    API_STEP(call, hf_session_id_check(session_id, &call.why));
    API_STEP(call, store->methods->sessions->release(store, &call.who, session_id, token,
                                                     &call.why));
    return api_end(&call, err);
}

static int check_back(const struct hf_session_back *back, struct hf_err *err)
{
    int rc = hf_session_id_check(back->session_id, err);
    if (rc == 0 && back->reason)
        rc = hf_check_text(back->reason, (size_t)HF_MAX_REASON_BYTES, "reason", err);
    if (rc == 0 && back->active_ms < 0)
        rc = hf_fail(err, HF_EINVAL, "active_ms", "active_ms must not be negative");
    return rc ? rc : api_check_time(back->delay_ms, "delay_ms", err);
}

int hf_session_back_check(const struct hf_session_back *wanted,
                          struct hf_session_back *ret_back, struct hf_err *err)
{
    int rc = hf_sized_copy(wanted, sizeof *ret_back, sizeof *ret_back, ret_back, err);
    return rc ? rc : check_back(ret_back, err);
}

int hf_session_hand_back(struct hf_store *store, const struct hf_caller *given,
                         const struct hf_session_back *wanted, struct hf_err *err)
{
    struct hf_session_back back;
    struct api_call call = begin(store, given);
    API_STEP(call, hf_session_back_check(wanted, &back, &call.why));
    API_STEP(call,
             store->methods->sessions->hand_back(store, &call.who, &back, &call.why));
    return api_end(&call, err);
}

int hf_session_cancel_turn(struct hf_store *store, const struct hf_caller *given,
                           const struct hf_session_cancel *wanted,
                           enum hf_session_turn_cancel *ret_answer, struct hf_err *err)
{
    struct hf_session_cancel request;
    struct api_call call = begin(store, given);
    API_COPY(call, wanted, &request);
    API_STEP(call, hf_session_id_check(request.session_id, &call.why));
    API_STEP(call, hf_check_key(request.turn_id, KEY_MAX, "turn_id", &call.why));
    if (call.rc == 0 && request.reason)
        API_STEP(call, hf_check_text(request.reason, (size_t)HF_MAX_REASON_BYTES,
                                     "reason", &call.why));
    API_STEP(call, store->methods->sessions->cancel_turn(store, &call.who, &request,
                                                         ret_answer, &call.why));
    return api_end(&call, err);
}
