/* One call of a tool: on the executor or on the loop, with its time limit.
 *
 * hf_invocation_start begins it. A tool runs on a thread of the executor (perform), which may
 * block; one that is asynchronous is called on the loop's thread, returns at once, and ends its
 * call later by hf_invocation_end. A probe runs instead of the tool, for a call that a lost worker
 * had started: it finds out whether that call happened, and if so sets its answer.
 *
 * A call is used by two sides. The loop's side starts it, reports it once and stops its timer; the
 * tool's side performs it and sets the answer. A call whose time is over is reported while the tool
 * may still run, so the call is released when both sides are through with it. */
#include <holdfast/tool.h>

#include <stdatomic.h>
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/json.h"
#include "base/sized.h"
#include "base/text.h"

struct hf_invocation {
    const struct hf_alloc *alloc;
    struct hf_loop *loop;
    struct hf_toolset *tools;
    const struct hf_tool *tool;
    struct hf_arena arena; /* key and arguments */
    struct hf_invocation_key key;
    const char *key_text;
    struct hf_span args;
    bool probe; /* the tool's probe is called, and not the tool */
    struct hf_tool_wait_keys keys;
    void *user;
    void (*done)(void *user, const struct hf_invocation_result *result);

    hf_ms started;  /* on the loop's monotonic clock */
    hf_ms deadline; /* likewise */
    struct hf_timer timer;
    bool reported;
    bool given_up;
    atomic_bool stopped;
    atomic_bool ended;    /* the tool's side is through */
    atomic_bool unposted; /* the loop did not get a message about it: the timer looks */

    /* The tool's side writes these before it ends. */
    struct hf_arena answers;
    struct hf_tool_result result;
    struct hf_failure failure;
    struct hf_deferred deferred; /* question NULL: it was not deferred */
    bool answered;
    enum hf_probe happened;
};

const struct hf_invocation_key *hf_invocation_key(const struct hf_invocation *call)
{
    return &call->key;
}

const char *hf_invocation_key_text(const struct hf_invocation *call)
{
    return call->key_text;
}

struct hf_span hf_invocation_args(const struct hf_invocation *call)
{
    return call->args;
}

struct hf_loop *hf_invocation_loop(const struct hf_invocation *call)
{
    return call->loop;
}

static hf_ms mono(const struct hf_invocation *call)
{
    const struct hf_clock *clock = hf_loop_clock(call->loop);
    return clock->mono_ms(clock->user);
}

hf_ms hf_invocation_left_ms(const struct hf_invocation *call)
{
    hf_ms left = call->deadline - mono(call);
    return left > 0 ? left : 0;
}

bool hf_invocation_stopped(const struct hf_invocation *call)
{
    return atomic_load(&call->stopped);
}

/* ---- answers ---------------------------------------------------------------------- */

/* The text as a JSON string, cut to the tool's limit. */
static int keep_text(struct hf_invocation *call, struct hf_span text)
{
    size_t most = (size_t)call->tool->output_bytes;
    size_t len = text.len > most ? hf_utf8_cut(text.at, most) : text.len;
    struct hf_buf plain, quoted;
    struct hf_json json;
    hf_buf_init(&plain, call->alloc, 2 * (size_t)HF_MAX_PAYLOAD_BYTES);
    hf_buf_init(&quoted, call->alloc, 16 * (size_t)HF_MAX_PAYLOAD_BYTES);
    hf_buf_bytes(&plain, text.at, len);
    if (len < text.len) {
        hf_buf_text(&plain, "\n[cut: ");
        hf_buf_i64(&plain, (int64_t)(text.len - len));
        hf_buf_text(&plain, " of ");
        hf_buf_i64(&plain, (int64_t)text.len);
        hf_buf_text(&plain, " bytes are left out]");
    }
    hf_json_begin(&json, &quoted);
    hf_json_strn(&json, hf_buf_str(&plain), plain.len);
    size_t bytes = quoted.len;
    int rc = hf_buf_state(&plain);
    const char *kept = rc ? NULL : hf_buf_keep(&quoted, &call->answers);
    if (rc)
        hf_buf_fini(&quoted);
    hf_buf_fini(&plain);
    if (!kept)
        return HF_ENOMEM;
    call->result = (struct hf_tool_result){ .value = { kept, bytes } };
    call->answered = true;
    return 0;
}

int hf_invocation_text(struct hf_invocation *call, struct hf_span text)
{
    if (!hf_utf8_valid(text.at, text.len))
        return HF_EINVAL;
    return keep_text(call, text);
}

int hf_invocation_value(struct hf_invocation *call, struct hf_span json)
{
    int rc = hf_json_check_raw(json, (size_t)HF_MAX_TURN_TEXT_BYTES, "value", NULL);
    if (rc)
        return rc;
    if (json.len > (size_t)call->tool->output_bytes)
        return keep_text(call, json);
    const char *kept = hf_arena_copy(&call->answers, json.at, json.len);
    if (!kept)
        return HF_ENOMEM;
    call->result = (struct hf_tool_result){ .value = { kept, json.len } };
    call->answered = true;
    return 0;
}

static int keep_span(struct hf_invocation *call, struct hf_span *span)
{
    if (span->len == 0)
        return 0;
    if (span->len > (size_t)HF_MAX_PAYLOAD_BYTES)
        return HF_ETOOBIG;
    span->at = hf_arena_copy(&call->answers, span->at, span->len);
    return span->at ? 0 : HF_ENOMEM;
}

int hf_invocation_fail(struct hf_invocation *call, const struct hf_failure *failure)
{
    struct hf_failure kept = *failure;
    if (!failure->code || !hf_utf8_valid(failure->message.at, failure->message.len))
        return HF_EINVAL;
    int rc = keep_span(call, &kept.message);
    if (rc == 0)
        rc = keep_span(call, &kept.raw);
    if (rc == 0)
        kept.code = hf_arena_text(&call->answers, failure->code);
    if (rc || !kept.code)
        return rc ? rc : HF_ENOMEM;
    call->failure = kept;
    call->result = (struct hf_tool_result){ .outcome = HF_TOOL_FAILURE,
                                            .failure = &call->failure };
    call->answered = true;
    return 0;
}

int hf_invocation_unknown(struct hf_invocation *call, const char *why)
{
    struct hf_span reason = { why, strlen(why) };
    if (!hf_utf8_valid(reason.at, reason.len))
        return HF_EINVAL;
    int rc = keep_span(call, &reason);
    if (rc)
        return rc;
    call->result = (struct hf_tool_result){ .outcome = HF_TOOL_UNKNOWN,
                                            .reason = reason };
    call->answered = true;
    return 0;
}

/* ---- the end ----------------------------------------------------------------------- */

static void release(struct hf_invocation *call)
{
    hf_toolset_unref(call->tools);
    hf_arena_fini(&call->answers);
    hf_arena_fini(&call->arena);
    call->alloc->free(call->alloc->user, call);
}

/* An answer for a tool that set none. The call may have happened: only one that may be performed
 * again can be called a failure. */
static void set_no_answer(struct hf_invocation *call)
{
    static const char text[] = "the tool ended without an answer";
    enum hf_recovery recovery = call->tool->recovery;
    if (recovery == HF_RECOVERY_PROBE || recovery == HF_RECOVERY_ASK) {
        call->result = (struct hf_tool_result){ .outcome = HF_TOOL_UNKNOWN,
                                                .reason = { text, sizeof(text) - 1 } };
        return;
    }
    call->failure = (struct hf_failure){ .class_ = HF_FAILURE_INTERNAL,
                                         .code = "no_answer",
                                         .message = { text, sizeof(text) - 1 } };
    call->result = (struct hf_tool_result){ .outcome = HF_TOOL_FAILURE,
                                            .failure = &call->failure };
}

/* ---- deferring --------------------------------------------------------------------- */

int hf_invocation_wait_key(struct hf_invocation *call, char ret_key[HF_WAIT_KEY_TEXT],
                           struct hf_err *err)
{
    if (!call->keys.make)
        return hf_fail(err, HF_EINVAL, "call", "this host cannot defer calls");
    return call->keys.make(call->keys.user, &call->key, ret_key, err);
}

static int keep_opt(struct hf_invocation *call, const char **text)
{
    if (*text)
        *text = hf_arena_text(&call->answers, *text);
    return *text ? 0 : HF_ENOMEM;
}

int hf_invocation_defer(struct hf_invocation *call, const char *question,
                        const struct hf_tool_wait_terms *terms)
{
    struct hf_deferred made = { .question = question };
    struct hf_buf text;
    if (terms)
        made.terms = *terms;
    if (!question) {
        hf_buf_init(&text, call->alloc, 256);
        hf_buf_text(&text, call->tool->name);
        hf_buf_text(&text, " has not ended yet");
        made.question = hf_buf_keep(&text, &call->answers);
    }
    if ((question && keep_opt(call, &made.question)) || !made.question ||
        (made.terms.answerer && keep_opt(call, &made.terms.answerer)) ||
        (made.terms.next_answerer && keep_opt(call, &made.terms.next_answerer)) ||
        (made.terms.escalate && keep_opt(call, &made.terms.escalate)))
        return HF_ENOMEM;
    call->deferred = made;
    return 0;
}

/* ---- running and reporting ------------------------------------------------------------- */

/* Tells the caller the result, once, on the loop's thread. */
static void report(struct hf_invocation *call, bool timed_out)
{
    struct hf_invocation_result result = { .timed_out = timed_out,
                                           .stopped = call->given_up };
    bool ended = atomic_load(&call->ended);
    hf_timer_stop(call->loop, &call->timer);
    call->reported = true;
    if (ended && !call->given_up && call->deferred.question && !call->probe) {
        result.timed_out = false;
        result.deferred = &call->deferred;
    } else if (ended && !call->given_up) {
        if (!call->answered && !call->probe)
            set_no_answer(call);
        call->result.call_id = call->key.call_id;
        call->result.duration_ms = mono(call) - call->started;
        result.timed_out = false;
        result.probe = call->happened;
        if (!call->probe || (call->happened == HF_PROBE_HAPPENED && call->answered))
            result.result = &call->result;
        else if (call->happened == HF_PROBE_HAPPENED)
            result.probe = HF_PROBE_CANNOT_TELL; /* without its result it is of no use */
    }
    call->done(call->user, &result);
}

static void on_timer(void *user)
{
    struct hf_invocation *call = user;
    bool ended = atomic_load(&call->ended);
    if (!call->given_up && !ended) {
        atomic_store(&call->stopped, true);
        if (call->tool->stop && !call->probe)
            call->tool->stop(call->tool->user, call);
    }
    report(call, !call->given_up);
    if (atomic_load(&call->unposted))
        release(call);
}

/* The tool's side is through; on the loop's thread. */
static void on_ended(void *user)
{
    struct hf_invocation *call = user;
    if (!call->reported)
        report(call, false);
    release(call);
}

/* The tool's side, on a thread of the executor; the loop is told by on_ended. */
static void perform(void *user)
{
    struct hf_invocation *call = user;
    if (call->probe)
        call->happened = call->tool->probe(call->tool->user, call);
    else
        call->tool->run(call->tool->user, call);
    atomic_store(&call->ended, true);
}

void hf_invocation_end(struct hf_invocation *call)
{
    struct hf_task task = { call, on_ended };
    atomic_store(&call->ended, true);
    if (hf_loop_post(call->loop, &task))
        atomic_store(&call->unposted, true); /* no memory: left to the timer */
}

void hf_invocation_stop(struct hf_invocation *call)
{
    struct hf_task task = { call, on_timer };
    call->given_up = true;
    atomic_store(&call->stopped, true);
    if (call->tool->stop && !call->probe)
        call->tool->stop(call->tool->user, call);
    int rc = hf_timer_start(call->loop, &call->timer, 0, &task);
    hf_assert(rc == 0); /* it runs already: moving it needs no memory */
}

static int copy_request(struct hf_invocation *call,
                        const struct hf_invocation_request *request)
{
    struct hf_invocation_key *key = &call->key;
    char inner[HF_EFFECT_KEY_ROOM];
    struct hf_buf text;
    *key = request->key;
    key->session_id = hf_arena_text(&call->arena, request->key.session_id);
    key->turn_id = hf_arena_text(&call->arena, request->key.turn_id);
    key->call_id = hf_arena_text(&call->arena, request->key.call_id);
    call->args.at = hf_arena_copy(&call->arena, request->args.at, request->args.len);
    call->args.len = request->args.len;
    if (!key->session_id || !key->turn_id || !key->call_id || !call->args.at)
        return HF_ENOMEM;
    hf_effect_key(key->effect, key->call_id, key->attempt, inner);
    hf_buf_init(&text, call->alloc, 1024);
    hf_buf_text(&text, key->session_id);
    hf_buf_char(&text, '/');
    hf_buf_text(&text, key->turn_id);
    hf_buf_char(&text, '/');
    hf_buf_text(&text, inner);
    call->key_text = hf_buf_keep(&text, &call->arena);
    return call->key_text ? 0 : HF_ENOMEM;
}

/* Starts the timer first: what fails afterwards has called nothing. */
static int begin(struct hf_invocation *call, struct hf_err *err)
{
    struct hf_task timer = { call, on_timer };
    struct hf_task work = { call, perform };
    struct hf_task done = { call, on_ended };
    call->started = mono(call);
    call->deadline = call->started + call->tool->timeout_ms;
    int rc = hf_timer_start(call->loop, &call->timer, call->tool->timeout_ms, &timer);
    if (rc)
        return hf_fail_plain(err, rc);
    if (call->tool->asynchronous && !call->probe) {
        call->tool->run(call->tool->user, call);
        return 0;
    }
    rc = hf_loop_work(call->loop, &work, &done, err);
    if (rc)
        hf_timer_stop(call->loop, &call->timer);
    return rc;
}

int hf_invocation_start(struct hf_loop *loop, const struct hf_invocation_request *request,
                        struct hf_invocation **ret_call, struct hf_err *err)
{
    const struct hf_alloc *alloc = hf_loop_alloc(loop);
    int rc = hf_sized_check(request->size, sizeof(*request), sizeof(*request), err);
    const struct hf_tool *tool = rc ? NULL
                                    : hf_toolset_find(request->tools, request->tool);
    if (rc)
        return rc;
    if (!tool || (request->probe && !tool->probe))
        return hf_fail(err, HF_ENOTFOUND, "tool", "there is no tool named %.80s",
                       request->tool);
    struct hf_invocation *call = alloc->realloc(alloc->user, NULL, sizeof(*call));
    if (!call)
        return hf_fail_plain(err, HF_ENOMEM);
    *call = (struct hf_invocation){ .alloc = alloc, .loop = loop, .tool = tool };
    call->tools = hf_toolset_ref(request->tools);
    call->probe = request->probe;
    call->keys = request->keys;
    call->user = request->user;
    call->done = request->done;
    hf_arena_init_small(&call->arena, alloc, 512, 4096);
    hf_arena_init_small(&call->answers, alloc, 512, 4096);
    rc = copy_request(call, request);
    rc = rc ? hf_fail_plain(err, rc) : begin(call, err);
    if (rc) {
        release(call);
        return rc;
    }
    *ret_call = call;
    return 0;
}
