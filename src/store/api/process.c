/* The public verbs of process.h, as steps of a call (call.h). A process is a unit of work with
 * facts of its own: who observes it, its labels, its output. The verbs check and complete requests
 * here: registering one, reading lists and records, telling one something, and reading its output,
 * of which the head and the tail are kept. */
#include <holdfast/bounds.h>
#include <holdfast/process.h>

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/json_get.h"
#include "base/text.h"
#include "core/ledger/step.h"
#include "store/api/call.h"
#include "store/api/page.h"
#include "store/api/request.h"
#include "store/api/work.h"
#include "store/process/process.h"

#define KEY_MAX ((size_t)HF_MAX_KEY_BYTES)

static struct api_call begin(const struct hf_store *store, const struct hf_caller *given)
{
    struct api_call call = { .rc = 0 };
    API_STEP(call, store->methods->process
                       ? 0
                       : hf_fail(&call.why, HF_EINVAL, "store",
                                 "this store does not implement processes"));
    if (call.rc == 0)
        call = api_begin(given);
    return call;
}

#define SESSION_MAX (KEY_MAX - (sizeof "session:" - 1)) /* its queue has a name too */

/* ---- register ---------------------------------------------------------------------- */

static int check_disposition(const struct hf_work_spec *work, struct hf_err *err)
{
    if (work->disposition == HF_DISPOSITION_NONE ||
        work->disposition == HF_DISPOSITION_EXPIRE)
        return hf_fail(err, HF_EINVAL, "disposition",
                       "a process declares its disposition: rerunnable, owner_bound or "
                       "externally_owned; there is no default");
    return 0;
}

static int check_facts(const struct hf_process_spec *request, struct hf_err *err)
{
    const struct {
        const char *value, *field;
    } keys[] = { { request->identity_label, "identity_label" },
                 { request->originator, "originator" },
                 { request->cause_occurrence, "cause_occurrence" },
                 { request->cause_subscription, "cause_subscription" },
                 { request->env_ref, "env_ref" } };
    int rc = hf_check_key(request->identity_kind, KEY_MAX, "identity_kind", err);
    for (size_t i = 0; rc == 0 && i < sizeof keys / sizeof keys[0]; i++)
        rc = hf_check_key_opt(keys[i].value, KEY_MAX, keys[i].field, err);
    if (rc == 0)
        rc = hf_check_key_opt(request->wake_session, SESSION_MAX, "wake_session", err);
    if (rc == 0 && request->event_type_count > (size_t)HF_MAX_REFS)
        rc = hf_fail(err, HF_ETOOBIG, "event_types",
                     "a process declares at most %lld types of events",
                     (long long)HF_MAX_REFS);
    if (rc == 0)
        rc = hf_sized_array(request->event_types, request->event_type_count,
                            "event_types", err);
    for (size_t i = 0; rc == 0 && i < request->event_type_count; i++)
        rc = hf_check_key(request->event_types[i], KEY_MAX, "event_types", err);
    return rc;
}

static int by_text(const void *a, const void *b)
{
    return hf_text_order(*(const char *const *)a, *(const char *const *)b);
}

/* In order, each once: so the same observers are the same request. */
static int sort_observers(struct hf_arena *arena, struct hf_process_spec *request,
                          struct hf_err *err)
{
    size_t count = request->observer_count, kept = 0;
    if (count > (size_t)HF_MAX_REFS)
        return hf_fail(err, HF_ETOOBIG, "observers",
                       "a process begins with at most %lld observers",
                       (long long)HF_MAX_REFS);
    if (hf_sized_array(request->observers, count, "observers", err))
        return HF_EINVAL;
    const char **sorted = hf_arena_array(arena, count, sizeof *sorted);
    if (!sorted)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; i < count; i++) {
        int rc = hf_check_key(request->observers[i], KEY_MAX, "observers", err);
        if (rc)
            return rc;
        sorted[i] = request->observers[i];
    }
    if (count > 0)
        qsort(sorted, count, sizeof *sorted, by_text);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || !hf_same(sorted[kept - 1], sorted[i]))
            sorted[kept++] = sorted[i];
    request->observers = sorted;
    request->observer_count = kept;
    return 0;
}

static int check_request(struct hf_arena *arena, struct hf_process_spec *request,
                         struct hf_err *err)
{
    if (!request->work)
        return hf_fail(err, HF_EINVAL, "work", "the unit of the process is required");
    int rc = hf_create_check(request->work, 1, err);
    if (rc == 0)
        rc = check_disposition(request->work, err);
    if (rc == 0)
        rc = check_facts(request, err);
    if (rc == 0)
        rc = hf_api_json(arena, &request->definition, "definition", err);
    if (rc == 0)
        rc = hf_api_json(arena, &request->labels, "labels", err);
    if (rc == 0)
        rc = hf_api_labels(request->labels, err);
    if (rc == 0)
        rc = sort_observers(arena, request, err);
    if (rc == 0 && request->claim)
        rc = hf_claim_check(request->claim, err);
    if (rc == 0 && request->claim &&
        (request->work->delay_ms || request->work->due_at || request->work->detached ||
         request->work->disposition == HF_DISPOSITION_EXTERNALLY_OWNED))
        rc = hf_fail(err, HF_EINVAL, "claim",
                     "only a process that can run now is claimed as it is made");
    if (!request->originator)
        request->originator = "host";
    return rc;
}

int hf_process_register(struct hf_store *store, const struct hf_caller *given,
                        const struct hf_process_spec *wanted,
                        struct hf_answer **ret_answer, struct hf_err *err)
{
    struct hf_arena arena;
    struct hf_process_spec request;
    struct api_call call = begin(store, given);
    hf_arena_init(&arena, store->alloc);
    API_COPY(call, wanted, &request);
    API_STEP(call, check_request(&arena, &request, &call.why));
    struct hf_answer *answer = api_answer(&call, store);
    API_STEP(call, store->methods->process->register_process(store, &call.who, &request,
                                                             answer, &call.why));
    hf_arena_fini(&arena);
    return api_answered(&call, answer, ret_answer, err);
}

/* ---- reading ----------------------------------------------------------------------- */

/* "KEY=VALUE" as it is in the labels: "KEY":"VALUE". */
static int label_member(struct hf_arena *arena, const char **label, struct hf_err *err)
{
    const char *equals = *label ? strchr(*label, '=') : NULL;
    if (!*label)
        return 0;
    if (!equals || equals == *label)
        return hf_fail(err, HF_EINVAL, "label", "label must be KEY=VALUE");
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, arena->alloc, 8 * (size_t)HF_MAX_EVENT_BYTES);
    hf_json_begin(&json, &text);
    hf_json_strn(&json, *label, (size_t)(equals - *label));
    hf_buf_char(&text, ':');
    hf_json_begin(&json, &text);
    hf_json_str(&json, equals + 1);
    *label = hf_buf_keep(&text, arena);
    return *label ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

static int check_filter(struct hf_arena *arena, struct hf_process_filter *filter,
                        struct hf_err *err)
{
    const struct {
        const char *value, *field;
    } keys[] = { { filter->id, "id" },
                 { filter->originator, "originator" },
                 { filter->identity_kind, "identity_kind" },
                 { filter->identity_label, "identity_label" },
                 { filter->cause_occurrence, "cause_occurrence" },
                 { filter->cause_subscription, "cause_subscription" },
                 { filter->env_ref, "env_ref" },
                 { filter->observer, "observer" } };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof keys / sizeof keys[0]; i++)
        rc = hf_check_key_opt(keys[i].value, KEY_MAX, keys[i].field, err);
    if (rc == 0 && filter->status && !hf_status_word(filter->status))
        rc = hf_fail(err, HF_EINVAL, "status", "the filter has a status that is unknown");
    if (rc == 0)
        rc = api_check_page(filter->limit, "rows", err);
    if (!filter->limit)
        filter->limit = 100;
    if (rc == 0)
        rc = label_member(arena, &filter->label, err);
    return rc ? rc : hf_api_json(arena, &filter->definition, "definition", err);
}

static struct api_page page_of(const struct hf_caller *who,
                               const struct hf_process_filter *filter)
{
    const char *const texts[] = { who->tenant,
                                  filter->id,
                                  filter->originator,
                                  filter->identity_kind,
                                  filter->identity_label,
                                  filter->definition,
                                  filter->label,
                                  filter->cause_occurrence,
                                  filter->cause_subscription,
                                  filter->env_ref,
                                  filter->observer };
    const int64_t numbers[] = { filter->all, filter->status, filter->waiting,
                                filter->created_from, filter->created_before };
    struct api_page page = { .what = "processes", .newest = filter->newest };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        api_page_text(&page, texts[i]);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        api_page_number(&page, numbers[i]);
    return page;
}

/* The answer's cursor, with its mark. */
static int mark_next(struct hf_processes *processes, const struct api_page *page,
                     struct hf_arena *arena)
{
    const char *next = NULL;
    int rc = api_page_next(page, arena, hf_processes_next(processes), &next);
    return rc || !next ? rc : hf_processes_set_next(processes, next);
}

int hf_process_list(struct hf_store *store, const struct hf_caller *given,
                    const struct hf_process_filter *wanted,
                    struct hf_processes **ret_processes, struct hf_err *err)
{
    struct hf_arena arena;
    struct hf_process_filter filter;
    struct api_call call = begin(store, given);
    hf_arena_init(&arena, store->alloc);
    API_COPY(call, wanted, &filter);
    API_STEP(call, check_filter(&arena, &filter, &call.why));
    struct api_page page = { .what = "processes" };
    if (call.rc == 0)
        page = page_of(&call.who, &filter);
    API_STEP(call, api_page_open(&page, filter.after, &filter.after, &call.why));
    struct hf_processes *processes = call.rc ? NULL : hf_processes_new(store->alloc);
    API_STEP(call, processes ? 0 : HF_ENOMEM);
    API_STEP(call, store->methods->process->list(store, &call.who, &filter, processes,
                                                 &call.why));
    API_STEP(call, mark_next(processes, &page, &arena));
    hf_arena_fini(&arena);
    if (call.rc)
        hf_processes_free(processes);
    else
        *ret_processes = processes;
    return api_end(&call, err);
}

/* ---- telling ----------------------------------------------------------------------- */

static int check_signal(const char *name, struct hf_err *err)
{
    for (const char *at = name; *at; at++) {
        bool plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                     (*at >= '0' && *at <= '9') || *at == '_' || *at == '-';
        if (!plain || at - name > 100)
            return hf_fail(err, HF_EINVAL, "name",
                           "a signal's name is up to 100 letters, digits, _ and -");
    }
    return 0;
}

static int check_tell(struct hf_arena *arena, struct hf_process_tell *tell,
                      struct hf_err *err)
{
    int rc = hf_check_key(tell->id, KEY_MAX, "id", err);
    if (rc == 0 && (unsigned)tell->what >= HF_TELL_COUNT)
        rc = hf_fail(err, HF_EINVAL, "what", "what must be a value of enum hf_tell");
    bool retarget = rc == 0 && tell->what == HF_TELL_RETARGET;
    if (rc == 0 && (!retarget || tell->name))
        rc = hf_check_key(tell->name, retarget ? SESSION_MAX : KEY_MAX, "name", err);
    if (rc == 0 && tell->wake && tell->what != HF_TELL_APPEND)
        rc = hf_fail(err, HF_EINVAL, "wake", "only an appended event wakes");
    if (rc == 0)
        rc = hf_check_key_opt(tell->key, KEY_MAX, "key", err);
    if (rc == 0 && tell->what == HF_TELL_SIGNAL)
        rc = check_signal(tell->name, err);
    if (rc == 0 && tell->what == HF_TELL_APPEND && hf_event_reserved(tell->name))
        rc = hf_fail(err, HF_EINVAL, "type", "this event type is the ledger's own");
    return rc ? rc : hf_api_json(arena, &tell->payload, "payload", err);
}

int hf_process_tell(struct hf_store *store, const struct hf_caller *given,
                    const struct hf_process_tell *wanted, bool *ret_repeated,
                    struct hf_err *err)
{
    struct hf_arena arena;
    struct hf_process_tell tell;
    struct api_call call = begin(store, given);
    hf_arena_init(&arena, store->alloc);
    API_COPY(call, wanted, &tell);
    API_STEP(call, check_tell(&arena, &tell, &call.why));
    API_STEP(call, store->methods->process->tell(store, &call.who, &tell, ret_repeated,
                                                 &call.why));
    hf_arena_fini(&arena);
    return api_end(&call, err);
}

int hf_process_prune(struct hf_store *store, const struct hf_caller *given,
                     hf_ms older_than_ms, struct hf_prune_report *ret_report,
                     struct hf_err *err)
{
    struct api_call call = begin(store, given);
    API_STEP(call, api_check_time(older_than_ms, "older_than_ms", &call.why));
    API_STEP(call,
             store->methods->process->prune(store, older_than_ms, ret_report, &call.why));
    return api_end(&call, err);
}

int hf_process_records(struct hf_store *store, const struct hf_caller *given,
                       const char *id, char **ret_stored, char **ret_folded,
                       struct hf_err *err)
{
    struct api_call call = begin(store, given);
    API_STEP(call, hf_check_key(id, KEY_MAX, "id", &call.why));
    API_STEP(call, store->methods->process->records(store, id, ret_stored, ret_folded,
                                                    &call.why));
    return api_end(&call, err);
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

static int check_output(const struct hf_output_add *add, struct hf_err *err)
{
    int rc = hf_check_key(add->id, KEY_MAX, "id", err);
    if (rc == 0 && add->attempt < 1)
        rc = hf_fail(err, HF_EINVAL, "attempt", "attempts count from 1");
    if (rc == 0)
        rc = hf_check_key_opt(add->event, KEY_MAX, "event", err);
    if (rc == 0 && add->chunk_count && !add->chunks)
        rc = hf_fail(err, HF_EINVAL, "chunks", "chunks are counted, and none are given");
    for (size_t i = 0; rc == 0 && i < add->chunk_count; i++) {
        const struct hf_output_chunk *one = &add->chunks[i];
        if (!hf_stream_word(one->stream) || one->chunk < 0 || one->data.len == 0 ||
            one->data.len > HF_OUTPUT_CHUNK)
            rc = hf_fail(err, HF_EINVAL, "chunks",
                         "chunk %zu must name a stream, and hold 1 to %d bytes", i,
                         HF_OUTPUT_CHUNK);
    }
    return rc;
}

int hf_output_add(struct hf_store *store, const struct hf_caller *given,
                  const struct hf_output_add *wanted, struct hf_err *err)
{
    struct hf_output_add add;
    struct api_call call = begin(store, given);
    API_COPY(call, wanted, &add);
    API_STEP(call, check_output(&add, &call.why));
    API_STEP(call,
             store->methods->process->output_add(store, &call.who, &add, &call.why));
    return api_end(&call, err);
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

void hf_output_forget(struct hf_output *output, enum hf_stream stream, int64_t attempt)
{
    output->attempt = attempt;
    hf_buf_reset(&output->head[stream].bytes);
    hf_buf_reset(&output->tail[stream].bytes);
    output->tail[stream].at = 0;
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
    struct api_call call = begin(store, NULL);
    API_STEP(call, hf_check_key(id, KEY_MAX, "id", &call.why));
    struct hf_output *output = call.rc ? NULL : output_new(store->alloc);
    API_STEP(call, output ? 0 : HF_ENOMEM);
    API_STEP(call,
             store->methods->process->output_read(store, id, attempt, output, &call.why));
    if (call.rc)
        hf_output_free(output);
    else
        *ret_output = output;
    return api_end(&call, err);
}
