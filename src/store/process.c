/* The public verbs of process.h: check the input, complete the caller, hand over. */
#include <holdfast/limits.h>
#include <holdfast/process.h>

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/sized.h"
#include "base/text.h"
#include "core/step.h"
#include "store/api.h"

#define KEY_MAX ((size_t)HF_MAX_KEY_BYTES)

static int methods_of(struct hf_store *store, const struct hf_process_methods **ret,
                      struct hf_err *err)
{
    *ret = store->methods->process;
    return *ret ? 0 : hf_fail(err, HF_EINVAL, "store", "this store has no processes");
}

/* ---- register ---------------------------------------------------------------------- */

/* Canonical, so that the same facts are the same bytes. */
static int canonical(struct hf_arena *arena, const char **json, const char *field,
                     struct hf_err *err)
{
    if (!*json)
        return 0;
    struct hf_span text = { *json, strlen(*json) };
    int rc = hf_json_check(text, (size_t)HF_MAX_EVENT_BYTES, field, err);
    if (rc)
        return rc;
    struct hf_buf buf;
    hf_buf_init(&buf, arena->alloc, 2 * (size_t)HF_MAX_EVENT_BYTES);
    rc = hf_json_canonical_text(&buf, text);
    const char *kept = rc ? NULL : hf_buf_keep(&buf, arena);
    if (rc)
        hf_buf_fini(&buf);
    if (!kept)
        return hf_fail(err, rc ? rc : HF_ENOMEM, field, "%s cannot be kept", field);
    *json = kept;
    return 0;
}

static int check_disposition(const struct hf_new *work, struct hf_err *err)
{
    if (work->disposition == HF_DISPOSITION_NONE || work->disposition == HF_EXPIRE)
        return hf_fail(err, HF_EINVAL, "disposition",
                       "a process declares its disposition: rerunnable, owner_bound or "
                       "externally_owned; there is no default");
    return 0;
}

static int check_facts(const struct hf_process_new *request, struct hf_err *err)
{
    const struct {
        const char *value, *field;
    } keys[] = { { request->identity_label, "identity_label" },
                 { request->originator, "originator" },
                 { request->wake_session, "wake_session" },
                 { request->cause_occurrence, "cause_occurrence" },
                 { request->cause_subscription, "cause_subscription" },
                 { request->env_ref, "env_ref" } };
    int rc = hf_check_key(request->identity_kind, KEY_MAX, "identity_kind", err);
    for (size_t i = 0; rc == 0 && i < sizeof keys / sizeof keys[0]; i++)
        rc = hf_check_key_opt(keys[i].value, KEY_MAX, keys[i].field, err);
    if (rc == 0 && request->event_type_count > (size_t)HF_MAX_REFS)
        rc = hf_fail(err, HF_ETOOBIG, "event_types",
                     "a process declares at most %lld types of events",
                     (long long)HF_MAX_REFS);
    for (size_t i = 0; rc == 0 && i < request->event_type_count; i++)
        rc = hf_check_key(request->event_types[i], KEY_MAX, "event_types", err);
    return rc;
}

static int check_request(struct hf_arena *arena, struct hf_process_new *request,
                         struct hf_err *err)
{
    if (!request->work)
        return hf_fail(err, HF_EINVAL, "work", "a process is a unit of work: give it");
    int rc = hf_new_check(request->work, err);
    if (rc == 0)
        rc = check_disposition(request->work, err);
    if (rc == 0)
        rc = check_facts(request, err);
    if (rc == 0)
        rc = canonical(arena, &request->definition, "definition", err);
    if (rc == 0)
        rc = canonical(arena, &request->labels, "labels", err);
    if (rc == 0 && request->labels && request->labels[0] != '{')
        rc = hf_fail(err, HF_EINVAL, "labels", "labels must be a JSON object");
    if (rc == 0 && request->claim)
        rc = hf_claim_check(request->claim, err);
    if (rc == 0 && request->claim &&
        (request->work->delay_ms || request->work->due_at || request->work->detached ||
         request->work->disposition == HF_EXTERNALLY_OWNED))
        rc = hf_fail(err, HF_EINVAL, "claim",
                     "only a process that can run now is claimed as it is made");
    if (!request->originator)
        request->originator = "host";
    return rc;
}

int hf_process_register(struct hf_store *store, const struct hf_caller *given,
                        const struct hf_process_new *wanted,
                        struct hf_answer **ret_answer, struct hf_err *err)
{
    const struct hf_process_methods *methods;
    struct hf_process_new request;
    struct hf_caller who;
    struct hf_arena arena;
    hf_arena_init(&arena, store->alloc);
    int rc = methods_of(store, &methods, err);
    if (rc == 0)
        rc = hf_sized_copy(wanted, sizeof request, sizeof request, &request, err);
    if (rc == 0)
        rc = hf_caller_complete(given, "system", "holdfast", &who, err);
    if (rc == 0)
        rc = check_request(&arena, &request, err);
    struct hf_answer *answer = rc ? NULL : hf_answer_new(store->alloc);
    if (rc == 0 && !answer)
        rc = hf_fail_plain(err, HF_ENOMEM);
    if (rc == 0) {
        struct hf_err why = { 0 };
        rc = methods->enroll(store, &who, &request, answer, &why);
        (void)hf_fail_as(err, rc, &why);
    }
    hf_arena_fini(&arena);
    if (rc)
        hf_answer_free(answer);
    else
        *ret_answer = answer;
    return rc;
}

/* ---- output ------------------------------------------------------------------------ */

const char *hf_stream_word(enum hf_stream stream)
{
    switch (stream) {
    case HF_STDOUT: return "stdout";
    case HF_STDERR: return "stderr";
    case HF_STREAM_COUNT: break;
    }
    return NULL;
}

static int check_chunks(const struct hf_output_add *add, struct hf_err *err)
{
    for (size_t i = 0; i < add->chunk_count; i++) {
        const struct hf_output_chunk *one = &add->chunks[i];
        if (!hf_stream_word(one->stream) || one->chunk < 0 || one->data.len == 0 ||
            one->data.len > HF_OUTPUT_CHUNK)
            return hf_fail(err, HF_EINVAL, "chunks",
                           "chunk %zu must name a stream, and hold 1 to %d bytes", i,
                           HF_OUTPUT_CHUNK);
    }
    return 0;
}

int hf_output_add(struct hf_store *store, const struct hf_caller *given,
                  const struct hf_output_add *wanted, struct hf_err *err)
{
    const struct hf_process_methods *methods;
    struct hf_output_add add;
    struct hf_caller who;
    int rc = methods_of(store, &methods, err);
    if (rc == 0)
        rc = hf_sized_copy(wanted, sizeof add, sizeof add, &add, err);
    if (rc == 0)
        rc = hf_caller_complete(given, "system", "holdfast", &who, err);
    if (rc == 0)
        rc = hf_check_key(add.id, KEY_MAX, "id", err);
    if (rc == 0 && add.attempt < 1)
        rc = hf_fail(err, HF_EINVAL, "attempt", "attempts count from 1");
    if (rc == 0)
        rc = hf_check_key_opt(add.event, KEY_MAX, "event", err);
    if (rc == 0)
        rc = check_chunks(&add, err);
    if (rc)
        return rc;
    struct hf_err why = { 0 };
    rc = methods->output_add(store, &who, &add, &why);
    return hf_fail_as(err, rc, &why);
}

/* Runs of chunks without a gap: the first is the head, the last the tail. */
struct run {
    int64_t at;
    struct hf_buf bytes;
};

struct hf_output {
    const struct hf_alloc *alloc;
    int64_t attempt;
    struct run head[HF_STREAM_COUNT];
    struct run tail[HF_STREAM_COUNT];
};

#define RUN_BYTES_MAX ((size_t)64 << 20)

static struct hf_output *output_new(const struct hf_alloc *alloc)
{
    struct hf_output *output = alloc->realloc(alloc->user, NULL, sizeof *output);
    if (!output)
        return NULL;
    *output = (struct hf_output){ .alloc = alloc };
    for (int s = 0; s < HF_STREAM_COUNT; s++) {
        hf_buf_init(&output->head[s].bytes, alloc, RUN_BYTES_MAX);
        hf_buf_init(&output->tail[s].bytes, alloc, RUN_BYTES_MAX);
    }
    return output;
}

void hf_output_free(struct hf_output *output)
{
    if (!output)
        return;
    for (int s = 0; s < HF_STREAM_COUNT; s++) {
        hf_buf_fini(&output->head[s].bytes);
        hf_buf_fini(&output->tail[s].bytes);
    }
    output->alloc->free(output->alloc->user, output);
}

int hf_output_put(struct hf_output *output, enum hf_stream stream, int64_t attempt,
                  int64_t chunk, struct hf_span data)
{
    struct run *head = &output->head[stream], *tail = &output->tail[stream];
    int64_t at = chunk * HF_OUTPUT_CHUNK;
    struct run *run = at == (int64_t)head->bytes.len ? head : tail;
    output->attempt = attempt;
    if (run == tail && at != tail->at + (int64_t)tail->bytes.len) {
        hf_buf_reset(&tail->bytes); /* a run in the middle is not shown */
        tail->at = at;
    }
    hf_buf_bytes(&run->bytes, data.at, data.len);
    return hf_buf_state(&run->bytes);
}

struct hf_output_view hf_output_view(const struct hf_output *output,
                                     enum hf_stream stream)
{
    const struct run *head = &output->head[stream], *tail = &output->tail[stream];
    struct hf_output_view view = {
        .attempt = output->attempt,
        .head = { hf_buf_str(&head->bytes), head->bytes.len },
        .tail = { hf_buf_str(&tail->bytes), tail->bytes.len },
        .bytes = (int64_t)head->bytes.len,
    };
    if (tail->bytes.len > 0) {
        view.bytes = tail->at + (int64_t)tail->bytes.len;
        view.lost = tail->at - (int64_t)head->bytes.len;
    }
    return view;
}

int hf_output_read(struct hf_store *store, const char *id, int64_t attempt,
                   struct hf_output **ret_output, struct hf_err *err)
{
    const struct hf_process_methods *methods;
    int rc = methods_of(store, &methods, err);
    if (rc == 0)
        rc = hf_check_key(id, KEY_MAX, "id", err);
    struct hf_output *output = rc ? NULL : output_new(store->alloc);
    if (rc == 0 && !output)
        rc = hf_fail_plain(err, HF_ENOMEM);
    if (rc == 0) {
        struct hf_err why = { 0 };
        rc = methods->output_read(store, id, attempt, output, &why);
        (void)hf_fail_as(err, rc, &why);
    }
    if (rc)
        hf_output_free(output);
    else
        *ret_output = output;
    return rc;
}
