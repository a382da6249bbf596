/* The body's tables, and what must hold of a body beyond them.
 *
 * A save's digest proves that the bytes are those that were written, not that a sane
 * machine wrote them. So everything that the machine later relies on is checked here.
 */
#include "core/turn/image.h"

#include <stddef.h>
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/ident.h"

/* clang-format off */
#define KEEP .flags = HF_M_KEEP
#define STAY .flags = HF_M_STAY
#define U64 .type = HF_M_U64
#define BOOL .type = HF_M_BOOL
#define HASH .type = HF_M_HASH
#define KEY .type = HF_M_TEXT, .max = 191
#define NEED_KEY .type = HF_M_TEXT, .max = 191, .flags = HF_M_REQUIRED
#define LONG .type = HF_M_SPAN, .max = 8388608
#define REF(s) .type = HF_M_REF, .of = &(s)
#define REFS(s) .type = HF_M_REFS, .of = &(s), .max = UINT32_MAX
#define PLACE(s) .type = HF_M_STRUCT, .of = &(s)

static const struct hf_member head[] = {
    { .key = 1, NEED_KEY, HF_AT(hf_save_head, session_id) },
    { .key = 2, NEED_KEY, HF_AT(hf_save_head, turn_id) },
    { .key = 3, NEED_KEY, HF_AT(hf_save_head, protocol) },
    { .key = 4, KEY, HF_AT(hf_save_head, base_id) },
    { .key = 5, U64, HF_AT(hf_save_head, base_count) },
    { .key = 6, HASH, HF_AT(hf_save_head, base_digest) },
};
HF_SCHEMA(hf_s_head, hf_save_head, head);

static const struct hf_member face[] = {
    { .key = 1, HASH, HF_AT(hf_face, prompt_hash) },
    { .key = 2, HASH, HF_AT(hf_face, tools_hash) },
};
static HF_SCHEMA(s_face, hf_face, face);

static const struct hf_member queued[] = {
    { .key = 1, .type = HF_M_ENUM, .words = &hf_w_effects, HF_AT(hf_queued, kind) },
    { .key = 2, U64, HF_AT(hf_queued, id) },
    { .key = 3, U64, HF_AT(hf_queued, iteration) },
    { .key = 4, U64, HF_AT(hf_queued, from) },
    { .key = 5, U64, HF_AT(hf_queued, to) },
    { .key = 6, REF(hf_s_emit), HF_AT(hf_queued, emit) },
    { .key = 7, REF(hf_s_log), HF_AT(hf_queued, log) },
};
static HF_SCHEMA(s_queued, hf_queued, queued);

static const struct hf_member wait[] = {
    { .key = 1, U64, HF_AT(hf_outstanding, id) },
    { .key = 2, BOOL, HF_AT(hf_outstanding, update) },
    { .key = 3, REF(hf_s_request), HF_AT(hf_outstanding, request) },
    { .key = 4, .type = HF_M_LIST, .of = &hf_s_tool_call, .max = HF_BATCH_MAX,
      HF_AT_LIST(hf_outstanding, calls, call_count) },
    { .key = 5, KEY, HF_AT(hf_outstanding, language) },
    { .key = 6, LONG, HF_AT(hf_outstanding, code) },
    { .key = 7, KEY, HF_AT(hf_outstanding, bindings) },
    { .key = 8, REF(hf_s_driver), HF_AT(hf_outstanding, driver) },
    { .key = 9, .type = HF_M_ENUM, .words = &hf_w_checkpoints, HF_AT(hf_outstanding, checkpoint) },
    { .key = 10, REF(hf_s_outcome), HF_AT(hf_outstanding, on_empty) },
    { .key = 11, .type = HF_M_I64, HF_AT(hf_outstanding, duration_ms) },
    { .key = 12, .type = HF_M_I64, HF_AT(hf_outstanding, due_ms) },
    { .key = 13, BOOL, HF_AT(hf_outstanding, yielded) },
};
HF_SCHEMA(hf_s_outstanding, hf_outstanding, wait);

static const struct hf_member given[] = {
    { .key = 1, .type = HF_M_JSON, .max = 8388608, HF_AT(hf_given, values), STAY },
    { .key = 2, .type = HF_M_JSON, .max = 8388608, HF_AT(hf_given, refs), STAY },
};
static HF_SCHEMA(s_given, hf_given, given);

static const struct hf_member body[] = {
    { .key = 1, .type = HF_M_ENUM, .words = &hf_w_states, HF_AT(hf_turn_body, state), .flags = HF_M_REQUIRED },
    { .key = 2, BOOL, HF_AT(hf_turn_body, grace) },
    { .key = 3, U64, HF_AT(hf_turn_body, next_id) },
    { .key = 4, U64, HF_AT(hf_turn_body, next_message) },
    { .key = 5, U64, HF_AT(hf_turn_body, iteration) },
    { .key = 6, U64, HF_AT(hf_turn_body, run_offset) },
    { .key = 7, U64, HF_AT(hf_turn_body, reported) },
    { .key = 8, U64, HF_AT(hf_turn_body, synced) },
    { .key = 9, U64, HF_AT(hf_turn_body, stalled) },
    { .key = 10, PLACE(hf_s_usage), HF_AT(hf_turn_body, usage) },
    { .key = 11, PLACE(s_face), HF_AT(hf_turn_body, face) },
    { .key = 12, REF(hf_s_evidence), HF_AT(hf_turn_body, cancel), STAY },
    { .key = 13, REF(hf_s_outcome), HF_AT(hf_turn_body, outcome), STAY },
    { .key = 14, PLACE(hf_s_outstanding), HF_AT(hf_turn_body, wait) },
    { .key = 15, REFS(hf_s_cause), HF_AT_LIST(hf_turn_body, causes, cause_count), STAY },
    { .key = 16, REFS(hf_s_record), HF_AT_LIST(hf_turn_body, own, own_count), KEEP },
    { .key = 17, REFS(s_queued), HF_AT_LIST(hf_turn_body, queue, queue_count) },
    { .key = 18, U64, HF_AT(hf_turn_body, next_call) },
    { .key = 19, PLACE(s_given), HF_AT(hf_turn_body, given) },
    { .key = 20, U64, HF_AT(hf_turn_body, given_up) },
    { .key = 21, BOOL, HF_AT(hf_turn_body, given_up_paid) },
    { .key = 22, BOOL, HF_AT(hf_turn_body, last_step_known) },
    { .key = 23, U64, HF_AT(hf_turn_body, last_step) },
};
static HF_SCHEMA(s_body, hf_turn_body, body);

static const struct hf_member blob[] = {
    { .key = 1, HASH, HF_AT(hf_blob, hash) },
    { .key = 2, LONG, HF_AT(hf_blob, bytes) },
};
static HF_SCHEMA(s_blob, hf_blob, blob);

static const struct hf_member image[] = {
    { .key = 1, PLACE(s_body), HF_AT(hf_image, body) },
    { .key = 2, REFS(hf_s_record), HF_AT_LIST(hf_image, base, base_count), STAY },
    { .key = 3, .type = HF_M_LIST, .of = &s_blob, .max = 16, HF_AT_LIST(hf_image, blobs, blob_count), STAY },
};
HF_SCHEMA(hf_s_image, hf_image, image);
/* clang-format on */

static int corrupt(struct hf_err *err, const char *field, const char *what)
{
    return hf_fail(err, HF_ECORRUPT, field, "%s", what);
}

static int check_request(const struct hf_save_head *top, const struct hf_turn_body *now,
                         struct hf_err *err)
{
    const struct hf_request *request = now->wait.request;
    if (!request)
        return corrupt(err, "request", "a call without a request");
    if (request->records > top->base_count + now->own_count ||
        request->causes > now->cause_count || request->attempt == 0)
        return corrupt(err, "request", "a request over records that are not there");
    return 0;
}

static int check_calls(const struct hf_outstanding *out, struct hf_err *err)
{
    bool open = false;
    for (size_t i = 0; i < out->call_count; i++) {
        const struct hf_tool_call *call = &out->calls[i];
        if (call->answered != (call->result != NULL))
            return corrupt(err, "calls", "an answered call has a result");
        open = open || !call->answered;
        if (call->result && hf_result_check(call->result, err))
            return corrupt(err, "result", "a result that is not well formed");
    }
    return open ? 0 : corrupt(err, "calls", "a batch without an open call");
}

static int check_wait(const struct hf_save_head *top, const struct hf_turn_body *now,
                      struct hf_err *err)
{
    const struct hf_outstanding *out = &now->wait;
    bool waits = now->state != HF_TURN_PREPARING &&
                 now->state != HF_TURN_PREPARE_ITERATION &&
                 now->state != HF_TURN_FINISHED;
    if (waits != (out->id != 0) || out->id >= now->next_id)
        return corrupt(err, "id", "the outstanding effect and the counter disagree");
    if ((now->state == HF_TURN_FINISHED) != (now->outcome != NULL))
        return corrupt(err, "outcome", "an outcome belongs to a finished turn");
    if ((now->outcome && hf_outcome_check(now->outcome, NULL)) ||
        (out->on_empty && hf_outcome_check(out->on_empty, NULL)))
        return corrupt(err, "outcome", "an outcome that is not well formed");
    if ((out->yielded && !waits) || now->given_up >= now->next_id ||
        (now->given_up_paid && now->given_up == 0))
        return corrupt(err, "given_up", "an effect that was never yielded");
    switch (now->state) {
    case HF_TURN_PREPARING:
    case HF_TURN_PREPARE_ITERATION:
    case HF_TURN_FINISHED:
    case HF_TURN_WAITING_SURFACE:
    case HF_TURN_WAITING_CHECKPOINT: return 0;
    case HF_TURN_WAITING_LLM: return check_request(top, now, err);
    case HF_TURN_WAITING_SLEEP:
        if (out->duration_ms < 0 || out->due_ms < 0)
            return corrupt(err, "duration_ms", "a negative time");
        return check_request(top, now, err);
    case HF_TURN_WAITING_TOOLS: return check_calls(out, err);
    case HF_TURN_WAITING_EXEC:
        return out->language ? 0 : corrupt(err, "language", "a cell without a language");
    }
    return corrupt(err, "state", "no such state");
}

static int check_queue(const struct hf_save_head *top, const struct hf_turn_body *now,
                       struct hf_err *err)
{
    for (size_t i = 0; i < now->queue_count; i++) {
        const struct hf_queued *item = now->queue[i];
        bool fine = (item->kind == HF_EFFECT_EMIT && item->emit) ||
                    (item->kind == HF_EFFECT_LOG && item->log) ||
                    (hf_effect_stops(item->kind) && item->id > 0) ||
                    item->kind == HF_EFFECT_PROGRESS;
        if (!fine || item->from > item->to || item->to > top->base_count + now->own_count)
            return corrupt(err, "queue", "an effect that is never queued");
    }
    return 0;
}

static int check_driver(const struct hf_save_head *top, const struct hf_turn_body *now,
                        struct hf_err *err)
{
    const struct hf_driver_state *driver = now->wait.request ? now->wait.request->driver
                                                             : now->wait.driver;
    if (driver && !hf_turn_span_same(hf_turn_span_of(driver->owner),
                                     hf_turn_span_of(top->protocol)))
        return corrupt(err, "driver", "a driver state of another protocol");
    return 0;
}

/* What an export brings: each blob is the one its hash names, used or not, and the records
 * are those of the digest. */
static int check_embedded(const struct hf_save_head *top, const struct hf_image *whole,
                          const struct hf_alloc *alloc, struct hf_err *err)
{
    uint8_t digest[32] = { 0 };
    for (size_t i = 0; i < whole->base_count; i++) {
        int rc = hf_record_chain_on(alloc, digest, whole->base[i], digest, err);
        if (rc)
            return rc;
    }
    if (memcmp(digest, top->base_digest, sizeof(digest)) != 0)
        return corrupt(err, "base", "the base is not the one of its digest");
    for (size_t i = 0; i < whole->blob_count; i++) {
        const struct hf_blob *one = &whole->blobs[i];
        if (hf_sha256(one->bytes.at, one->bytes.len, digest))
            return hf_fail_plain(err, HF_ENOMEM);
        if (memcmp(digest, one->hash, sizeof(digest)) != 0)
            return corrupt(err, "blobs", "a blob is not the one of its hash");
    }
    return 0;
}

/* Own records are at hand, so they are compared; a step of the base is looked at when it is
 * used. */
static int check_last_step(const struct hf_save_head *top, const struct hf_turn_body *now,
                           struct hf_err *err)
{
    uint64_t own = 0;
    for (size_t i = 0; i < now->own_count; i++)
        if (hf_record_is_step(now->own[i]))
            own = top->base_count + i + 1;
    bool known = now->last_step_known;
    bool fine = own > 0               ? known && now->last_step == own
                : top->base_count > 0 ? now->last_step <= (known ? top->base_count : 0)
                                      : known && now->last_step == 0;
    return fine ? 0 : corrupt(err, "last_step", "the last step is another record");
}

int hf_image_check(const struct hf_save_head *top, const struct hf_image *whole,
                   struct hf_err *err)
{
    const struct hf_turn_body *now = &whole->body;
    int64_t tokens = 0;
    uint64_t total = 0;
    if (__builtin_add_overflow(top->base_count, (uint64_t)now->own_count, &total) ||
        total > (uint64_t)INT64_MAX)
        return corrupt(err, "base_count", "more records than can be counted");
    if (now->reported < top->base_count || now->reported > total)
        return corrupt(err, "reported", "progress over records that are not there");
    if (now->iteration < now->run_offset || now->next_id == 0)
        return corrupt(err, "iteration", "a turn before its start");
    if ((now->iteration | now->next_id | now->next_message | now->next_call |
         now->stalled) > (uint64_t)INT64_MAX)
        return corrupt(err, "next_id", "a counter that no turn has reached");
    if (hf_usage_total(&now->usage, &tokens, NULL))
        return corrupt(err, "usage", "usage that does not fit");
    if ((top->base_count > 0) && !top->base_id)
        return corrupt(err, "base_id", "a base without an id");
    for (size_t i = 0; i < now->own_count; i++)
        if (hf_record_check(now->own[i], NULL))
            return corrupt(err, "own", "a record that is not well formed");
    for (size_t i = 0; i < whole->base_count; i++)
        if (hf_record_check(whole->base[i], NULL))
            return corrupt(err, "base", "a record that is not well formed");
    if (hf_given_check(&now->given, 2 * (size_t)HF_MAX_TURN_GIVEN_BYTES, NULL))
        return corrupt(err, "given", "names that cannot be given");
    int rc = check_last_step(top, now, err);
    if (rc == 0)
        rc = check_wait(top, now, err);
    if (rc == 0)
        rc = check_queue(top, now, err);
    return rc ? rc : check_driver(top, now, err);
}

int hf_image_read(const struct hf_frame *frame, struct hf_arena *stay,
                  struct hf_arena *keep, struct hf_arena *step,
                  struct hf_save_head *ret_head, struct hf_image *ret_image,
                  struct hf_err *err)
{
    struct hf_save_head top = { 0 };
    struct hf_image whole = { .base = NULL };
    struct hf_cbor cbor = { .stay = step, .keep = step, .step = step };
    cbor.at = frame->head.at;
    cbor.end = cbor.at + frame->head.len;
    int rc = hf_cbor_read(&cbor, &hf_s_head, &top, err);
    if (rc == 0 && cbor.at != cbor.end)
        rc = corrupt(err, "head", "bytes after the head");
    if (rc)
        return rc;
    cbor.stay = stay;
    cbor.keep = keep;
    cbor.at = frame->body.at;
    cbor.end = cbor.at + frame->body.len;
    rc = hf_cbor_read(&cbor, &hf_s_image, &whole, err);
    if (rc == 0 && cbor.at != cbor.end)
        rc = corrupt(err, "body", "bytes after the body");
    bool export = (frame->flags & HF_SAVE_EXPORT) != 0;
    if (rc == 0 && whole.base_count != (export ? top.base_count : 0))
        rc = corrupt(err, "base", "an export holds its base, and only an export does");
    if (rc == 0 && !export && whole.blob_count > 0)
        rc = corrupt(err, "blobs", "only an export holds blobs");
    if (rc == 0)
        rc = hf_image_check(&top, &whole, err);
    if (rc == 0 && export)
        rc = check_embedded(&top, &whole, keep->alloc, err);
    if (rc)
        return rc;
    *ret_head = top;
    *ret_image = whole;
    return 0;
}
