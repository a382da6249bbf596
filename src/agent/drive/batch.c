/* The calls of one TOOL_CALLS effect (a batch): begun up to a limit, settled one by one.
 *
 * A call is checked, and may need an approval first. To begin it is to add its intent to the
 * pending step; it runs when that step is stored (enum drive_at). Its outcome joins a later step
 * and answers the machine. A call that a lost worker had begun is answered from its entry, or
 * handled by the recovery class of its tool. A call that waits for an answer from outside
 * (DRIVE_WAITING) runs nowhere, and takes no place under the limit. */
#include "agent/drive/drive.h"

#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/text.h"

static struct hf_span span_of(const char *text)
{
    return (struct hf_span){ text, strlen(text) };
}

struct drive_call *drive_call_of(struct hf_drive *drive, const char *call_id)
{
    for (size_t i = 0; i < drive->call_count; i++)
        if (hf_same(drive->calls[i].call->call_id, call_id))
            return &drive->calls[i];
    return NULL;
}

const struct hf_tool *drive_tool(const struct hf_drive *drive,
                                 const struct drive_call *call)
{
    return drive->tools ? hf_toolset_find(drive->tools, call->call->tool) : NULL;
}

/* Tells the machine. After the last answer of a batch its calls are gone. */
int drive_finish_unbegun(struct hf_drive *drive, struct drive_call *call,
                         const struct hf_tool_result *result)
{
    struct hf_tool_result named = *result;
    named.call_id = call->call->call_id;
    call->run.at = DRIVE_SETTLED;
    call->run.stop = false;
    drive_pending(drive)->dirty = true;
    int rc = hf_turn_tool_results(drive->turn, drive->effect.id, &named, 1, &drive->err);
    if (rc == 0 && hf_turn_outstanding(drive->turn) != drive->effect.id)
        drive->call_count = 0;
    return rc;
}

static enum hf_entry_status status_of(const struct hf_tool_result *result)
{
    if (result->outcome == HF_TOOL_SUCCESS)
        return HF_ENTRY_DONE;
    return result->outcome == HF_TOOL_UNKNOWN ? HF_ENTRY_UNKNOWN : HF_ENTRY_FAILED;
}

/* Records what came of an attempt. due_at: it will be retried then. */
static int settle(struct hf_drive *drive, const struct drive_call *call,
                  const struct hf_tool_result *result, hf_ms due_at)
{
    struct hf_tool_result named = *result;
    struct hf_bytes json = { 0 };
    char key[HF_EFFECT_KEY_ROOM];
    named.call_id = call->call->call_id;
    named.tool = call->call->tool;
    hf_effect_key(drive->effect.id, call->call->call_id, call->attempt, key);
    int rc = hf_tool_result_encode(drive->alloc, &named, &json, &drive->err);
    struct hf_effect_settled settled = { .key = key,
                                         .status = status_of(result),
                                         .outcome = { json.at, json.len },
                                         .due_at = due_at,
                                         .taken_over = call->run.taken_over };
    if (rc == 0)
        rc = drive_settle(drive, &settled);
    hf_bytes_free(&json);
    return rc;
}

/* What the model is shown of a call that was approved: the approval, and then the value. */
static int show_approval(struct hf_drive *drive, const struct drive_call *call,
                         struct hf_tool_result *result)
{
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, drive->alloc, SIZE_MAX / 2);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    hf_json_put_str(&json, "approved_by", call->approved_by);
    if (call->args.at != call->call->args.at) {
        hf_json_key(&json, "arguments");
        hf_json_rawn(&json, call->args.at, call->args.len);
    }
    hf_json_key(&json, "result");
    if (result->value.len > 0)
        hf_json_rawn(&json, result->value.at, result->value.len);
    else
        hf_json_raw(&json, "null");
    hf_json_end(&json);
    result->value.len = text.len;
    result->value.at = hf_buf_keep(&text, &drive->batch);
    return result->value.at ? 0 : HF_ENOMEM;
}

int drive_finish(struct hf_drive *drive, struct drive_call *call,
                 const struct hf_tool_result *result)
{
    struct hf_tool_result shown = *result;
    int rc = 0;
    if (call->approved_by && result->outcome == HF_TOOL_SUCCESS)
        rc = show_approval(drive, call, &shown);
    if (rc == 0)
        rc = settle(drive, call, &shown, 0);
    return rc ? rc : drive_finish_unbegun(drive, call, &shown);
}

int drive_finish_unknown(struct hf_drive *drive, struct drive_call *call, const char *why)
{
    struct hf_tool_result result = { .outcome = HF_TOOL_UNKNOWN, .reason = span_of(why) };
    return drive_finish(drive, call, &result);
}

/* ---- beginning --------------------------------------------------------------------- */

/* A call that must not run is answered; no entry is written, because nothing was begun. */
static int refuse(struct hf_drive *drive, struct drive_call *call, const char *code,
                  const char *message)
{
    struct hf_failure failure = { .class_ = HF_FAILURE_INVALID_REQUEST,
                                  .source = HF_FROM_RUNTIME,
                                  .code = code,
                                  .message = span_of(message) };
    struct hf_tool_result result = { .outcome = HF_TOOL_FAILURE, .failure = &failure };
    return drive_finish_unbegun(drive, call, &result);
}

static int begin(struct hf_drive *drive, struct drive_call *call)
{
    struct hf_arena *arena = &drive_pending(drive)->arena;
    const struct hf_tool *tool = drive_tool(drive, call);
    const char *envelope = drive_tool_envelope(arena, call->call, call->args);
    char key[HF_EFFECT_KEY_ROOM];
    if (!envelope)
        return HF_ENOMEM;
    hf_effect_key(drive->effect.id, call->call->call_id, call->attempt, key);
    call->recovery = tool->recovery;
    call->run.at = DRIVE_INTENT;
    call->run.due = 0;
    struct hf_effect_entry entry = { .key = key,
                                     .kind = "tool_call",
                                     .recovery = tool->recovery,
                                     .attempt = call->attempt,
                                     .envelope = span_of(envelope) };
    return drive_begin(drive, &entry);
}

static int check_and_begin(struct hf_drive *drive, struct drive_call *call)
{
    struct hf_err why = { 0 };
    bool approval = false;
    int rc = drive->tools
                 ? hf_toolset_check(drive->tools, call->call->tool, call->args, &why)
                 : hf_fail(&why, HF_ENOTFOUND, "tool", "there are no tools");
    if (rc == 0 && !call->approved_by)
        rc = hf_toolset_approval(drive->tools, call->call->tool, call->args, &approval,
                                 &why);
    if (rc == 0 && approval && !drive->host->journaled)
        return refuse(drive, call, "approval_unavailable",
                      "the call needs an approval, and this host cannot wait for one");
    if (rc == 0)
        return approval ? drive_ask_approval(drive, call) : begin(drive, call);
    if (rc == HF_ENOTFOUND)
        return refuse(drive, call, "unknown_tool", why.message);
    if (rc == HF_EINVAL || rc == HF_ETOOBIG)
        return refuse(drive, call, "invalid_arguments", why.message);
    return rc;
}

/* Begun and not ended: from the intent on, which counts so that a step never begins more calls than
 * may run. */
static bool takes_a_place(enum drive_at at)
{
    return at == DRIVE_INTENT || at == DRIVE_STORING || at == DRIVE_ARMED ||
           at == DRIVE_OUT;
}

/* The calls of the batch that count against the limit of calls that run at once. */
static int64_t count_running(const struct hf_drive *drive)
{
    int64_t count = 0;
    for (size_t i = 0; i < drive->call_count; i++)
        count += takes_a_place(drive->calls[i].run.at);
    return count;
}

bool drive_has_room(const struct hf_drive *drive)
{
    int64_t limit = drive->host->serial ? 1 : drive->tool_limit;
    return !drive->stopping && !drive->cancelled && count_running(drive) < limit;
}

int drive_fill(struct hf_drive *drive)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < drive->call_count; i++) {
        struct drive_call *call = &drive->calls[i];
        if (call->run.at == DRIVE_NOT_BEGUN && call->run.due <= drive->wall &&
            drive_has_room(drive))
            rc = check_and_begin(drive, call);
    }
    return rc;
}

/* ---- a batch that is met again ----------------------------------------------------- */

static int replay(struct hf_drive *drive, struct drive_call *call,
                  const struct hf_effect_entry *entry)
{
    struct hf_decoded *owner = NULL;
    const struct hf_tool_result *result = NULL;
    if (entry->status == HF_ENTRY_FAILED && entry->due_at > 0) {
        call->attempt++; /* a recorded failure, to be retried */
        call->run.due = entry->due_at;
        return drive_recall_timer(drive, call, &call->run.due);
    }
    int rc = hf_tool_result_decode(drive->alloc, entry->outcome, &owner, &result,
                                   &drive->err);
    if (rc == 0)
        rc = drive_finish_unbegun(drive, call, result);
    hf_decoded_free(owner);
    return rc;
}

static int take_over(struct hf_drive *drive, struct drive_call *call)
{
    const struct hf_tool *tool = drive_tool(drive, call);
    enum hf_recover_act act = hf_effect_recover(call->recovery, tool && tool->probe);
    bool known = false;
    call->run.taken_over = true;
    int rc = drive_recall_end(drive, call, &known);
    if (rc || known)
        return rc;
    if (!tool)
        return drive_finish_unknown(
            drive, call,
            "an earlier worker started the call, and there is no such tool now");
    if (act == HF_RECOVER_UNKNOWN)
        return drive_ask_truth(
            drive, call,
            "an earlier worker started the call; whether it happened is not known");
    call->run.at = DRIVE_ARMED;
    call->shown.probe = act == HF_RECOVER_PROBE;
    return 0;
}

static int recover(struct hf_drive *drive, struct drive_call *call)
{
    const struct hf_effect_entry *entry = drive_entry(drive, drive->effect.id,
                                                      call->call->call_id);
    struct hf_effect_name name;
    int rc = drive_recall_approval(drive, call);
    if (rc || call->run.at != DRIVE_NOT_BEGUN || !entry)
        return rc;
    const char *text = drive_tool_envelope(&drive_pending(drive)->arena, call->call,
                                           call->args);
    if (!text || !hf_effect_key_read(entry->key, &name))
        return HF_ENOMEM;
    struct hf_effect_ask ask = { HF_SCOPE_TURN, span_of(text), drive->fence, 0 };
    enum hf_decision decision = hf_effect_decide(entry, &ask);
    call->attempt = name.attempt;
    call->recovery = entry->recovery;
    if (decision == HF_DECISION_TAKE_OVER)
        return take_over(drive, call);
    if (decision == HF_DECISION_REPLAY)
        return replay(drive, call, entry);
    rc = drive_contradiction(drive, decision, entry, ask.envelope);
    drive->call_count = 0; /* the batch is over with its turn */
    return rc;
}

static void show(const struct hf_drive *drive, struct drive_call *call)
{
    call->shown = (struct hf_drive_call){
        .key = { drive->session_id, drive->turn_id, drive->effect.id, call->call->call_id,
                 call->attempt, drive->fence },
        .tool = call->call->tool,
        .args = call->call->args,
        .tools = drive->tools,
    };
}

int drive_batch(struct hf_drive *drive)
{
    const struct hf_effect *effect = &drive->effect;
    int rc = 0;
    hf_arena_reset(&drive->batch);
    drive->calls = hf_arena_array(&drive->batch, effect->call_count,
                                  sizeof(*drive->calls));
    if (!drive->calls)
        return HF_ENOMEM;
    drive->call_count = effect->call_count;
    for (size_t i = 0; i < drive->call_count; i++) {
        struct drive_call *call = &drive->calls[i];
        call->call = &effect->calls[i];
        call->args = call->call->args;
        call->attempt = 1;
        show(drive, call);
        call->run.at = call->call->answered ? DRIVE_SETTLED : DRIVE_NOT_BEGUN;
    }
    for (size_t i = 0; rc == 0 && i < drive->call_count; i++)
        if (drive->calls[i].run.at == DRIVE_NOT_BEGUN)
            rc = recover(drive, &drive->calls[i]);
    if (rc == 0 && hf_turn_cancelling(drive->turn))
        return drive_cancel_batch(drive);
    if (drive->stopping)
        drive_pending(drive)->dirty = true; /* the next worker begins the calls */
    return rc ? rc : drive_fill(drive);
}

/* ---- answers ----------------------------------------------------------------------- */

static bool repeatable(const struct drive_call *call)
{
    return call->recovery == HF_RECOVERY_SAFE || call->recovery == HF_RECOVERY_KEYED;
}

static int retry_or_finish(struct hf_drive *drive, struct drive_call *call,
                           const struct hf_tool_result *result)
{
    const struct hf_failure *failure = result->failure;
    bool again = result->outcome == HF_TOOL_FAILURE && failure->retry == HF_RETRY_SAFE &&
                 repeatable(call) && !drive->host->retries && !drive->cancelled &&
                 call->attempt <= drive->tool_retries;
    if (!again)
        return drive_finish(drive, call, result);
    hf_ms wait = DRIVE_RETRY_MS << (call->attempt < 6 ? call->attempt - 1 : 5);
    if (wait > DRIVE_RETRY_MAX_MS)
        wait = DRIVE_RETRY_MAX_MS;
    if (failure->after_ms > 0)
        wait = failure->after_ms;
    int rc = settle(drive, call, result, drive->wall + wait);
    call->run = (struct drive_run){ .due = drive->wall + wait };
    call->attempt++;
    return rc;
}

/* A call that did not end by itself. It may have happened, and a retry has another key, under
 * which the service behind a keyed tool would do it once more. */
static int finish_cut(struct hf_drive *drive, struct drive_call *call, bool timed_out)
{
    bool safe = call->recovery == HF_RECOVERY_SAFE;
    struct hf_failure late = { .class_ = HF_FAILURE_TIMEOUT,
                               .source = HF_FROM_RUNTIME,
                               .retry = safe ? HF_RETRY_SAFE : HF_RETRY_NEVER,
                               .code = "timeout",
                               .message = span_of("the tool did not end in its time") };
    struct hf_tool_result result = { .outcome = HF_TOOL_FAILURE, .failure = &late };
    if (!repeatable(call))
        return drive_ask_truth(drive, call,
                               timed_out
                                   ? "the call was out of time; whether it happened "
                                     "is not known"
                                   : "the call was stopped; whether it happened "
                                     "is not known");
    if (timed_out)
        return retry_or_finish(drive, call, &result);
    result = (struct hf_tool_result){ .outcome = HF_TOOL_CANCELLED,
                                      .reason = span_of("the call was stopped") };
    return drive_finish(drive, call, &result);
}

static int finish_probe(struct hf_drive *drive, struct drive_call *call,
                        const struct hf_invocation_result *result)
{
    if (result->result)
        return drive_finish(drive, call, result->result);
    if (result->probe == HF_PROBE_NOT_HAPPENED && !drive->cancelled) {
        call->shown.probe = false; /* under the same key: the attempt is the same */
        call->run.at = DRIVE_ARMED;
        return 0;
    }
    return drive_ask_truth(drive, call,
                           "an earlier worker started the call, and the tool cannot find "
                           "out whether it happened");
}

int drive_answer(struct hf_drive *drive, const struct hf_drive_event *event)
{
    struct drive_call *call = drive_call_of(drive, event->call_id);
    const struct hf_invocation_result *result = event->result;
    int rc = 0;
    if (!call || call->run.at != DRIVE_OUT ||
        hf_turn_outstanding(drive->turn) != drive->effect.id)
        return 0;
    if (event->code) { /* it was never started */
        call->run.at = DRIVE_ARMED;
        call->run.due = drive->wall + DRIVE_AGAIN_MS;
        return drive->cancelled ? drive_cancel_batch(drive) : 0;
    }
    if (result->deferred && drive->cancelled) /* nothing waits in a turn that ends */
        rc = drive_finish_unknown(drive, call,
                                  "the call was deferred, and the turn was cancelled "
                                  "before it was known what came of it");
    else if (result->deferred)
        rc = drive_defer(drive, call, result->deferred);
    else if (call->shown.probe)
        rc = finish_probe(drive, call, result);
    else if (result->timed_out || result->stopped || !result->result)
        rc = finish_cut(drive, call, result->timed_out);
    else
        rc = retry_or_finish(drive, call, result->result);
    return rc ? rc : drive_fill(drive);
}

/* What is known about a call that was not started, or not again after its last attempt failed. */
static struct hf_tool_result cancelled_result(const struct drive_call *call)
{
    return (struct hf_tool_result){
        .outcome = HF_TOOL_CANCELLED,
        .reason = span_of(call->attempt > 1
                              ? "the call failed, and the turn was cancelled "
                                "before it was tried again"
                              : "the call was not started"),
    };
}

/* Ends what has not started; what runs is told to stop and answers by itself. */
int drive_cancel_batch(struct hf_drive *drive)
{
    int rc = 0;
    drive->cancelled = true;
    for (size_t i = 0; rc == 0 && i < drive->call_count; i++) {
        struct drive_call *call = &drive->calls[i];
        const struct hf_tool_result result = cancelled_result(call);
        if (call->run.at == DRIVE_OUT)
            call->run.stop = true;
        else if (call->run.at == DRIVE_NOT_BEGUN ||
                 (call->run.at == DRIVE_WAITING && call->waits_for == DRIVE_FOR_APPROVAL))
            rc = drive_finish_unbegun(drive, call, &result);
        else if (call->run.at == DRIVE_WAITING)
            rc = drive_finish_unknown(drive, call,
                                      "the turn was cancelled before it was known what "
                                      "came of the call");
        else if (call->run.at != DRIVE_SETTLED && call->run.taken_over)
            rc = drive_finish_unknown(
                drive, call,
                "an earlier worker started the call, and the turn was cancelled");
        else if (call->run.at != DRIVE_SETTLED)
            rc = drive_finish(drive, call, &result);
    }
    return rc;
}
