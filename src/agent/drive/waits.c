/* The waits of a turn: approvals, calls that are completed from outside (deferred), the truth
 * about a call of which it is not known whether it happened, and times that are far away.
 *
 * A call that waits has a wait with a name made of its effect's key. The waits of the turn were
 * loaded with it; the outcome of one that is closed decides its call (apply_*). A turn that only
 * waits, and for long, goes away: its step ends the lease too. */
#include "agent/drive/drive.h"

#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/text.h"

static struct hf_span span_of(const char *text)
{
    return (struct hf_span){ text, strlen(text) };
}

/* ---- what was loaded --------------------------------------------------------------- */

static int copy_wait(struct hf_arena *arena, const struct hf_wait *given,
                     struct drive_wait *wait)
{
    const char *actor = given->actor ? given->actor : given->actor_kind;
    *wait = (struct drive_wait){
        .open = hf_same(given->state, hf_wait_state_word(HF_WAIT_IS_OPEN)),
        .opened = given->name != NULL,
        .id = hf_arena_text(arena, given->wait_id),
    };
    wait->actor = hf_arena_text(arena, actor ? actor : "an unknown actor");
    if (given->outcome) {
        wait->outcome.len = strlen(given->outcome);
        wait->outcome.at = hf_arena_copy(arena, given->outcome, wait->outcome.len);
    }
    return wait->id && wait->actor && (!given->outcome || wait->outcome.at) ? 0
                                                                            : HF_ENOMEM;
}

static bool fails_turn(const struct hf_wait *given)
{
    return hf_same(given->state, hf_wait_state_word(HF_WAIT_IS_TIMED_OUT)) &&
           hf_same(given->policy, hf_wait_policy_word(HF_AT_DEADLINE_FAIL_TURN));
}

/* A wait whose deadline failed the turn ends it, also if the deadline passed while the inputs did
 * not wait, and so have not ended. */
int drive_copy_waits(struct hf_drive *drive, const struct hf_drive_turn *turn)
{
    static const struct hf_evidence evidence = { .request_id = "session",
                                                 .origin = "session" };
    int rc = 0;
    if (turn->wait_count == 0)
        return 0;
    drive->waits = hf_arena_array(&drive->stay, turn->wait_count, sizeof(*drive->waits));
    if (!drive->waits)
        return HF_ENOMEM;
    for (size_t i = 0; rc == 0 && i < turn->wait_count; i++) {
        rc = copy_wait(&drive->stay, &turn->waits[i], &drive->waits[i]);
        if (fails_turn(&turn->waits[i])) {
            drive->ended = HF_STATUS_TIMEOUT;
            drive->cancel = &evidence;
        }
    }
    drive->wait_count = turn->wait_count;
    return rc;
}

/* By the id: a wait that was answered before it was opened has no name yet. Such an approval is
 * none, since the actor may be one that may not answer: the opening decides. A result is one, since
 * how the call was deferred is lost. */
static int find(struct hf_drive *drive, enum hf_wait_kind kind, const char *name,
                const struct drive_wait **ret_wait)
{
    char id[HF_WAIT_ID_TEXT];
    int rc = name ? hf_wait_id(drive->turn_id, kind, name, id, &drive->err) : HF_ENOMEM;
    *ret_wait = NULL;
    for (size_t i = 0; rc == 0 && i < drive->wait_count; i++)
        if (hf_same(drive->waits[i].id, id) &&
            (drive->waits[i].opened || kind == HF_WAIT_TOOL))
            *ret_wait = &drive->waits[i];
    return rc;
}

/* A text of an outcome, in the batch's arena; "" when there is none. */
static int outcome_text(struct hf_drive *drive, const struct drive_wait *wait,
                        const char *word, const char **ret_text)
{
    struct hf_span raw = drive_member(wait->outcome, word);
    struct hf_span text = { "", 0 };
    int rc = raw.len > 0 && ((const char *)raw.at)[0] == '"'
                 ? hf_walk_text(&drive->batch, raw, &text)
                 : 0;
    *ret_text = text.at;
    return rc;
}

static bool outcome_is(const struct drive_wait *wait, const char *word)
{
    return hf_walk_is(drive_member(wait->outcome, "kind"), word);
}

/* ---- names ------------------------------------------------------------------------- */

/* A wait is named by the key of its effect. An approval is one for all attempts. The question about
 * a call has a name of its own, since the call may have been approved before. */
static const char *name_of(struct hf_drive *drive, const struct drive_call *call,
                           enum drive_for what)
{
    char key[HF_EFFECT_KEY_ROOM];
    struct hf_buf text;
    hf_effect_key(drive->effect.id, call->call->call_id,
                  what == DRIVE_FOR_APPROVAL ? 1 : call->attempt, key);
    hf_buf_init(&text, drive->alloc, 128);
    hf_buf_text(&text, key);
    if (what == DRIVE_FOR_TRUTH)
        hf_buf_text(&text, "/happened");
    return hf_buf_keep(&text, &drive->batch);
}

static enum hf_wait_kind kind_of(enum drive_for what)
{
    return what == DRIVE_FOR_RESULT ? HF_WAIT_TOOL : HF_WAIT_APPROVAL;
}

/* ---- beginning to wait ------------------------------------------------------------- */

/* `asked` NULL: no memory. */
static int wait_from_now(struct hf_drive *drive, struct drive_call *call,
                         enum drive_for what, const char *asked,
                         const struct hf_tool_wait_terms *terms)
{
    const char *name = name_of(drive, call, what);
    if (!name || !asked)
        return HF_ENOMEM;
    enum hf_wait_policy usual = what == DRIVE_FOR_APPROVAL ? HF_AT_DEADLINE_DENY
                                                           : HF_AT_DEADLINE_RESULT;
    call->run.at = DRIVE_WAITING;
    call->run.due = 0;
    call->waits_for = what;
    call->wait = (struct hf_wait_spec){
        .size = sizeof(call->wait),
        .kind = kind_of(what),
        .name = name,
        .asked = asked,
        .answerer = terms->answerer,
        .deadline_at = terms->within_ms ? drive->wall + terms->within_ms : 0,
        .policy = terms->at_deadline ? terms->at_deadline : usual,
        .next_answerer = terms->next_answerer,
        .next_ms = terms->next_ms,
        .next_policy = terms->next_policy,
        .escalate_at = terms->escalate_ms ? drive->wall + terms->escalate_ms : 0,
        .escalate = terms->escalate,
    };
    drive_pending(drive)->dirty = true;
    return 0;
}

/* {"question":…,"call":{"name":…,"arguments":…},"edits":…} in the batch's arena. Without edits
 * where they are empty. */
static const char *asked_of(struct hf_drive *drive, const struct drive_call *call,
                            const char *question, struct hf_span edits)
{
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, drive->alloc, SIZE_MAX / 2);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    hf_json_put_str(&json, "question", question);
    hf_json_key(&json, "call");
    hf_json_object(&json);
    hf_json_put_str(&json, "name", call->call->tool);
    hf_json_key(&json, "arguments");
    hf_json_rawn(&json, call->args.at, call->args.len);
    hf_json_end(&json);
    if (edits.len > 0) {
        hf_json_key(&json, "edits");
        hf_json_rawn(&json, edits.at, edits.len);
    }
    hf_json_end(&json);
    return hf_buf_keep(&text, &drive->batch);
}

/* "FIRST TOOL LAST" in the batch's arena. */
static const char *question_of(struct hf_drive *drive, const char *first,
                               const struct drive_call *call, const char *last)
{
    struct hf_buf text;
    hf_buf_init(&text, drive->alloc, 4096);
    hf_buf_text(&text, first);
    hf_buf_text(&text, call->call->tool);
    hf_buf_text(&text, last);
    return hf_buf_keep(&text, &drive->batch);
}

int drive_ask_approval(struct hf_drive *drive, struct drive_call *call)
{
    const struct hf_tool *tool = drive_tool(drive, call);
    struct hf_span edits = tool && tool->schema.len > 0 ? tool->schema : span_of("true");
    const char *question = tool && tool->approval.question
                               ? tool->approval.question
                               : question_of(drive, "May ", call, " be called?");
    const char *asked = question ? asked_of(drive, call, question, edits) : NULL;
    return wait_from_now(drive, call, DRIVE_FOR_APPROVAL, asked,
                         tool ? &tool->approval.terms
                              : &(struct hf_tool_wait_terms){ 0 });
}

int drive_defer(struct hf_drive *drive, struct drive_call *call,
                const struct hf_deferred *deferred)
{
    const char *asked = asked_of(drive, call, deferred->question, (struct hf_span){ 0 });
    struct hf_tool_wait_terms terms = deferred->terms;
    const char **const texts[] = { &terms.answerer, &terms.next_answerer,
                                   &terms.escalate };
    if (!drive->host->journaled)
        return drive_finish_unknown(drive, call,
                                    "the call was deferred, and this host cannot wait");
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (*texts[i] && !(*texts[i] = hf_arena_text(&drive->batch, *texts[i])))
            return HF_ENOMEM;
    }
    return wait_from_now(drive, call, DRIVE_FOR_RESULT, asked, &terms);
}

int drive_ask_truth(struct hf_drive *drive, struct drive_call *call, const char *why)
{
    if (!drive->host->journaled || drive->cancelled || hf_turn_cancelling(drive->turn))
        return drive_finish_unknown(drive, call, why);
    const char *last = " happen? It is not known: ";
    struct hf_buf text;
    hf_buf_init(&text, drive->alloc, 4096);
    hf_buf_text(&text, last);
    hf_buf_text(&text, why);
    hf_buf_text(&text, ". Approve: it happened; deny: it did not");
    last = hf_buf_keep(&text, &drive->batch);
    const char *question = last ? question_of(drive, "Did ", call, last) : NULL;
    const char *asked = question ? asked_of(drive, call, question, span_of("true"))
                                 : NULL;
    return wait_from_now(drive, call, DRIVE_FOR_TRUTH, asked,
                         &(struct hf_tool_wait_terms){ 0 });
}

/* ---- answers ----------------------------------------------------------------------- */

/* "ACTOR WHAT: REASON" in the batch's arena. */
static const char *told(struct hf_drive *drive, const char *actor, const char *what,
                        const char *reason)
{
    struct hf_buf text;
    hf_buf_init(&text, drive->alloc, SIZE_MAX / 2);
    hf_buf_text(&text, actor);
    hf_buf_text(&text, what);
    if (reason[0]) {
        hf_buf_text(&text, ": ");
        hf_buf_text(&text, reason);
    }
    return hf_buf_keep(&text, &drive->batch);
}

static int deny(struct hf_drive *drive, struct drive_call *call, const char *code,
                const char *message)
{
    struct hf_failure failure = { .class_ = HF_FAILURE_PERMISSION_DENIED,
                                  .source = HF_FROM_RUNTIME,
                                  .code = code,
                                  .message = span_of(message) };
    struct hf_tool_result result = { .outcome = HF_TOOL_FAILURE, .failure = &failure };
    return drive_finish_unbegun(drive, call, &result);
}

static int apply_approval(struct hf_drive *drive, struct drive_call *call,
                          const struct drive_wait *wait)
{
    const char *reason = NULL;
    if (outcome_is(wait, "approve")) {
        struct hf_span edited = drive_member(wait->outcome, "arguments");
        if (edited.len > 0) {
            call->args.at = hf_arena_copy(&drive->batch, edited.at, edited.len);
            call->args.len = edited.len;
        }
        call->approved_by = wait->actor;
        return call->args.at ? 0 : HF_ENOMEM;
    }
    if (outcome_is(wait, "timeout"))
        return deny(drive, call, "not_approved", "no approval came in time");
    int rc = outcome_text(drive, wait, "reason", &reason);
    bool withdrawn = outcome_is(wait, "cancelled");
    const char *message = rc ? NULL
                          : withdrawn
                              ? told(drive, "", "the request for approval was withdrawn",
                                     reason)
                              : told(drive, wait->actor, " denied the call", reason);
    return message ? deny(drive, call, withdrawn ? "not_approved" : "denied", message)
                   : HF_ENOMEM;
}

int drive_recall_approval(struct hf_drive *drive, struct drive_call *call)
{
    const struct drive_wait *wait = NULL;
    int rc = find(drive, HF_WAIT_APPROVAL, name_of(drive, call, DRIVE_FOR_APPROVAL),
                  &wait);
    if (rc)
        return rc;
    if (!wait || (hf_turn_cancelling(drive->turn) && outcome_is(wait, "cancelled")))
        return 0; /* with its turn: the call is answered as cancelled */
    if (!wait->open)
        return apply_approval(drive, call, wait);
    call->listed = true;
    return drive_ask_approval(drive, call);
}

/* The answer of a deferred call. */
static int apply_result(struct hf_drive *drive, struct drive_call *call,
                        const struct drive_wait *wait)
{
    struct hf_failure failure = { .class_ = HF_FAILURE_EXTERNAL, .code = "external" };
    struct hf_tool_result result = { .value = drive_member(wait->outcome, "value") };
    const char *message = NULL;
    if (outcome_is(wait, "ok"))
        return drive_finish(drive, call, &result);
    result = (struct hf_tool_result){ .outcome = HF_TOOL_FAILURE, .failure = &failure };
    int rc = outcome_text(drive, wait, "message", &message);
    if (rc)
        return rc;
    failure.message = span_of(message);
    if (outcome_is(wait, "cancelled")) {
        rc = outcome_text(drive, wait, "reason", &message);
        message = rc ? NULL : told(drive, "", "the call was withdrawn", message);
        if (!message)
            return HF_ENOMEM;
        result = (struct hf_tool_result){ .outcome = HF_TOOL_CANCELLED,
                                          .reason = span_of(message) };
    }
    if (outcome_is(wait, "timeout")) {
        failure.class_ = HF_FAILURE_TIMEOUT;
        failure.code = "timeout";
        failure.message = span_of("the call was not completed in time");
    }
    return drive_finish(drive, call, &result);
}

/* {"happened":true,"said_by":ACTOR,"result":…} */
static int apply_happened(struct hf_drive *drive, struct drive_call *call,
                          const struct drive_wait *wait)
{
    struct hf_span value = drive_member(wait->outcome, "arguments");
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, drive->alloc, SIZE_MAX / 2);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    hf_json_put_bool(&json, "happened", true);
    hf_json_put_str(&json, "said_by", wait->actor);
    if (value.len > 0) {
        hf_json_key(&json, "result");
        hf_json_rawn(&json, value.at, value.len);
    }
    hf_json_end(&json);
    struct hf_tool_result result = { .value = { NULL, text.len } };
    result.value.at = hf_buf_keep(&text, &drive->batch);
    return result.value.at ? drive_finish(drive, call, &result) : HF_ENOMEM;
}

static int apply_truth(struct hf_drive *drive, struct drive_call *call,
                       const struct drive_wait *wait)
{
    const char *reason = NULL;
    if (outcome_is(wait, "approve"))
        return apply_happened(drive, call, wait);
    if (!outcome_is(wait, "deny"))
        return drive_finish_unknown(drive, call,
                                    "an earlier worker started the call; a person was "
                                    "asked whether it happened, and no answer came");
    int rc = outcome_text(drive, wait, "reason", &reason);
    const char *message = rc ? NULL
                             : told(drive, wait->actor,
                                    " says that the call did not happen", reason);
    if (!message)
        return HF_ENOMEM;
    struct hf_failure failure = { .class_ = HF_FAILURE_EXECUTION,
                                  .source = HF_FROM_RUNTIME,
                                  .code = "did_not_happen",
                                  .message = span_of(message) };
    struct hf_tool_result result = { .outcome = HF_TOOL_FAILURE, .failure = &failure };
    return drive_finish(drive, call, &result);
}

int drive_recall_end(struct hf_drive *drive, struct drive_call *call, bool *ret_known)
{
    const struct drive_wait *result = NULL, *truth = NULL;
    int rc = find(drive, HF_WAIT_TOOL, name_of(drive, call, DRIVE_FOR_RESULT), &result);
    if (rc == 0)
        rc = find(drive, HF_WAIT_APPROVAL, name_of(drive, call, DRIVE_FOR_TRUTH), &truth);
    if (rc)
        return rc;
    *ret_known = result || truth;
    if (result && !result->open)
        return apply_result(drive, call, result);
    if (truth && !truth->open)
        return apply_truth(drive, call, truth);
    call->listed = true;
    if (result)
        return drive_defer(drive, call,
                           &(struct hf_deferred){ .question = "the call is awaited" });
    if (truth)
        return drive_ask_truth(drive, call, "an earlier worker started the call");
    call->listed = false;
    return 0;
}

/* ---- going away -------------------------------------------------------------------- */

bool drive_may_go_away(const struct hf_drive *drive)
{
    hf_ms soon = drive->wall + drive->away_ms;
    bool waits = drive->sleep_due > soon;
    if (!drive->host->journaled || drive->done || drive->cancelled ||
        hf_turn_cancelling(drive->turn) || (drive->sleep_due && !waits) ||
        (drive->model.at != DRIVE_NOT_BEGUN && drive->model.at != DRIVE_SETTLED))
        return false;
    for (size_t i = 0; i < drive->call_count; i++) {
        const struct drive_run *run = &drive->calls[i].run;
        if (run->at == DRIVE_SETTLED)
            continue;
        if (run->at != DRIVE_WAITING && (run->at != DRIVE_NOT_BEGUN || run->due <= soon))
            return false;
        waits = true;
    }
    return waits;
}

/* call NULL: the sleep of the turn. */
static void timer_name(const struct hf_drive *drive, const struct drive_call *call,
                       char name[HF_EFFECT_KEY_ROOM])
{
    hf_effect_key(drive->effect.id, call ? call->call->call_id : NULL,
                  call ? call->attempt : 0, name);
}

int drive_recall_timer(struct hf_drive *drive, const struct drive_call *call,
                       hf_ms *ret_due)
{
    char name[HF_EFFECT_KEY_ROOM];
    const struct drive_wait *wait = NULL;
    timer_name(drive, call, name);
    int rc = find(drive, HF_WAIT_TIMER, name, &wait);
    if (rc == 0 && wait && !wait->open && *ret_due > drive->wall)
        *ret_due = drive->wall;
    return rc;
}

static int add_timer(const struct hf_drive *drive, struct hf_arena *arena,
                     const struct drive_call *call, struct hf_wait_spec *wait)
{
    char key[HF_EFFECT_KEY_ROOM];
    timer_name(drive, call, key);
    *wait = (struct hf_wait_spec){ .size = sizeof(*wait),
                                   .kind = HF_WAIT_TIMER,
                                   .name = hf_arena_text(arena, key),
                                   .deadline_at = call ? call->run.due
                                                       : drive->sleep_due };
    return wait->name ? 0 : HF_ENOMEM;
}

/* Calls that wait, opened by an earlier step or not. */
static size_t add_calls(struct hf_drive *drive, bool listed, struct hf_wait_spec *all)
{
    size_t count = 0;
    for (size_t i = 0; i < drive->call_count; i++)
        if (drive->calls[i].run.at == DRIVE_WAITING && drive->calls[i].listed == listed)
            all[count++] = drive->calls[i].wait;
    return count;
}

/* Times are waits only if the turn goes away. */
int drive_list_waits(struct hf_drive *drive, struct hf_arena *arena,
                     struct hf_drive_step *step)
{
    struct hf_wait_spec *all = hf_arena_array(arena, drive->call_count + 1, sizeof(*all));
    size_t count = 0;
    int rc = all ? 0 : HF_ENOMEM;
    if (rc == 0 && step->away && drive->sleep_due)
        rc = add_timer(drive, arena, NULL, &all[count++]);
    for (size_t i = 0; rc == 0 && step->away && i < drive->call_count; i++) {
        const struct drive_call *call = &drive->calls[i];
        if (call->run.at == DRIVE_NOT_BEGUN)
            rc = add_timer(drive, arena, call, &all[count++]);
    }
    if (rc)
        return rc;
    count += add_calls(drive, true, all + count);
    step->new_wait_count = add_calls(drive, false, all + count);
    for (size_t i = 0; i < drive->call_count; i++)
        drive->calls[i].listed = drive->calls[i].run.at == DRIVE_WAITING;
    step->waits = all;
    step->wait_count = count + step->new_wait_count;
    return 0;
}
