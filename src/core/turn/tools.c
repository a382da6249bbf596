/* Tool batches: calls made fit to run, answers taken one by one, and what the model sees.
 *
 * A model's faults end as answers that the model sees; a host's faults are errors. A call
 * that is answered is never open again.
 */
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/sized.h"
#include "core/turn/machine.h"
#include "core/turn/view.h"

bool hf_turn_all_answered(const struct hf_outstanding *wait)
{
    for (size_t i = 0; i < wait->call_count; i++)
        if (!wait->calls[i].answered)
            return false;
    return true;
}

static struct hf_tool_call *find_call(const struct hf_outstanding *wait,
                                      const char *call_id)
{
    for (size_t i = 0; i < wait->call_count; i++)
        if (hf_turn_span_same(hf_turn_span_of(wait->calls[i].call_id),
                              hf_turn_span_of(call_id)))
            return &wait->calls[i];
    return NULL;
}

static int check_parts(const struct hf_tool_result *result, struct hf_err *err)
{
    for (size_t i = 0; i < result->part_count; i++) {
        const struct hf_part *part = &result->parts[i];
        if (part->kind != HF_PART_TEXT && part->kind != HF_PART_ATTACHMENT)
            return hf_fail(err, HF_EINVAL, "parts",
                           "a result shows text and attachments");
        if ((part->kind == HF_PART_ATTACHMENT) != (part->attachment != NULL))
            return hf_fail(err, HF_EINVAL, "parts",
                           "an attachment part has an attachment");
    }
    return 0;
}

int hf_result_check(const struct hf_tool_result *result, struct hf_err *err)
{
    if (hf_sized_array(result->parts, result->part_count, "parts", err))
        return HF_EINVAL;
    if ((result->outcome == HF_TOOL_FAILURE) != (result->failure != NULL))
        return hf_fail(err, HF_EINVAL, "failure",
                       "a failed result has one, others have none");
    if (result->outcome != HF_TOOL_SUCCESS &&
        (result->value.len > 0 || result->control != HF_CONTROL_NONE))
        return hf_fail(err, HF_EINVAL, "outcome",
                       "only a success has a value or a control");
    return check_parts(result, err);
}

/* Copies a host's result into the arena of the turn that lives until the next accepted response
 * (turn->step[turn->live]); the name of the tool is that of the call. Refused are texts that are
 * not UTF-8 (by the copy), members that exclude each other (by hf_result_check), and attachments in
 * the value that are not well formed (by hf_value_check). On failure nothing of the turn has
 * changed. */
static int take_result(struct hf_turn *turn, const struct hf_tool_call *call,
                       const struct hf_tool_result *result,
                       const struct hf_tool_result **ret_result, struct hf_err *err)
{
    struct hf_arena *arena = &turn->step[turn->live];
    struct hf_tool_result *copy = hf_arena_new(arena, struct hf_tool_result);
    if (!copy)
        return hf_fail_plain(err, HF_ENOMEM);
    struct hf_tool_result named = *result;
    named.tool = call->tool;
    int rc = hf_value_copy(arena, &hf_s_tool_result, HF_COPY_STRICT, &named, copy, err);
    if (rc == 0)
        rc = hf_result_check(copy, err);
    if (rc == 0)
        rc = hf_value_check(arena, copy->value, err);
    if (rc == 0)
        *ret_result = copy;
    return rc;
}

static void take_back(struct hf_outstanding *wait, const struct hf_tool_result *results,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct hf_tool_call *call = find_call(wait, results[i].call_id);
        call->answered = false;
        call->result = NULL;
    }
}

/* Fills in the answers; a failed one takes back those before it. */
static int answer_all(struct hf_turn *turn, const struct hf_tool_result *results,
                      size_t count, struct hf_err *err)
{
    struct hf_outstanding *wait = &turn->now.wait;
    for (size_t i = 0; i < count; i++) {
        int rc = 0;
        const struct hf_tool_result *copy = NULL;
        struct hf_tool_call *call = results[i].call_id
                                        ? find_call(wait, results[i].call_id)
                                        : NULL;
        if (!call)
            rc = hf_fail(err, HF_ENOCALL, "call_id", "the batch has no call %s",
                         results[i].call_id ? results[i].call_id : "without an id");
        else if (call->answered)
            rc = hf_fail(err, HF_EANSWERED, "call_id", "call %s is answered",
                         results[i].call_id);
        else
            rc = take_result(turn, call, &results[i], &copy, err);
        if (rc) {
            take_back(wait, results, i);
            return rc;
        }
        call->answered = true;
        call->result = copy;
    }
    return 0;
}

int hf_turn_tool_results(struct hf_turn *turn, uint64_t id,
                         const struct hf_tool_result *results, size_t count,
                         struct hf_err *err)
{
    int rc = hf_turn_expect(turn, HF_ON_TOOL_RESULTS, id, err);
    if (rc)
        return rc;
    if (count == 0 || !results)
        return hf_fail(err, HF_EINVAL, "results", "at least one result is needed");
    rc = answer_all(turn, results, count, err);
    if (rc)
        return rc;

    struct hf_move move;
    struct hf_turn_input input = { .event = HF_ON_TOOL_RESULTS, .id = id };
    if (hf_turn_all_answered(&turn->now.wait))
        hf_move_begin(&move, turn);
    else
        hf_move_begin_in_place(&move, turn);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = hf_move_emit_answer(&move, find_call(&turn->now.wait, results[i].call_id),
                                 err);
    if (rc == 0)
        rc = hf_turn_apply(&move, &input, err);
    if (rc == 0) {
        hf_move_commit(&move);
    } else {
        hf_move_drop(&move);
        take_back(&turn->now.wait, results, count);
    }
    return rc;
}

/* On a copy of the batch: the calls that are out must not change if the move fails. */
int hf_turn_mark_unknown(struct hf_move *move, struct hf_err *err)
{
    static const char reason[] = "the turn was ended before the tool answered";
    struct hf_outstanding *wait = &move->next.wait;
    struct hf_tool_call *calls = hf_arena_array(move->arena, wait->call_count,
                                                sizeof(*calls));
    if (!calls)
        return hf_fail_plain(err, HF_ENOMEM);
    memcpy(calls, wait->calls, wait->call_count * sizeof(*calls));
    for (size_t i = 0; i < wait->call_count; i++) {
        struct hf_tool_result *result = NULL;
        if (calls[i].answered)
            continue;
        result = hf_arena_new(move->arena, struct hf_tool_result);
        if (!result)
            return hf_fail_plain(err, HF_ENOMEM);
        *result = (struct hf_tool_result){ .call_id = calls[i].call_id,
                                           .tool = calls[i].tool,
                                           .outcome = HF_TOOL_UNKNOWN,
                                           .reason = { reason, sizeof(reason) - 1 } };
        calls[i].answered = true;
        calls[i].result = result;
        int rc = hf_move_emit_answer(move, &calls[i], err);
        if (rc)
            return rc;
    }
    wait->calls = calls;
    return 0;
}

/* Making a reply's calls fit */

static int answer_at_birth(struct hf_move *move, struct hf_tool_call *call,
                           const struct hf_failure *failure, struct hf_err *err)
{
    struct hf_tool_result *result = hf_arena_new(move->arena, struct hf_tool_result);
    struct hf_failure *copy = hf_arena_new(move->arena, struct hf_failure);
    if (!result || !copy)
        return hf_fail_plain(err, HF_ENOMEM);
    *copy = *failure;
    copy->source = HF_FROM_RUNTIME;
    *result = (struct hf_tool_result){ .call_id = call->call_id,
                                       .tool = call->tool,
                                       .outcome = HF_TOOL_FAILURE,
                                       .failure = copy };
    call->answered = true;
    call->result = result;
    return 0;
}

static int check_args(const struct hf_tool_call *call, struct hf_err *err)
{
    return hf_turn_text_json(call->args, (size_t)HF_MAX_TURN_TEXT_BYTES, "arguments",
                             err);
}

/* What is wrong with arguments that did not pass; NULL when out of memory. */
static const char *args_fault(struct hf_move *move, const struct hf_tool_call *call)
{
    struct hf_err why = { 0 };
    int rc = check_args(call, &why);
    return rc == HF_ENOMEM ? NULL : hf_arena_text(move->arena, why.message);
}

int hf_turn_judge_call(struct hf_move *move, struct hf_tool_call *call, size_t number,
                       struct hf_err *err)
{
    struct hf_failure failure = { .class_ = HF_FAILURE_INVALID_REQUEST };
    if (number >= (size_t)HF_MAX_TURN_CALLS) {
        failure.class_ = HF_FAILURE_RESOURCE_LIMIT;
        failure.code = "too_many_calls";
        failure.message = hf_text_of(
            "too many tool calls in one reply; this one was not run");
    } else if (!call->tool || hf_turn_span_blank(hf_turn_span_of(call->tool))) {
        call->tool = "unnamed";
        failure.code = "tool_name_missing";
        failure.message = hf_text_of("the call names no tool");
    } else {
        int rc = check_args(call, NULL); /* most pass, and then no text is needed */
        if (rc == 0)
            return 0;
        if (rc == HF_ENOMEM)
            return hf_fail_plain(err, HF_ENOMEM);
        failure.code = "invalid_arguments";
        const char *said = args_fault(move, call);
        if (!said)
            return hf_fail_plain(err, HF_ENOMEM);
        failure.message = hf_turn_span_of(said);
    }
    return answer_at_birth(move, call, &failure, err);
}

int hf_move_calls(struct hf_move *move, const struct hf_llm_response *response,
                  const struct hf_tool_call **ret_calls, size_t *ret_count,
                  struct hf_err *err)
{
    size_t count = 0;
    struct hf_tool_call *calls = hf_arena_array(move->arena, response->part_count,
                                                sizeof(*calls));
    if (!calls)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; i < response->part_count; i++) {
        const struct hf_part *part = &response->parts[i];
        if (part->kind != HF_PART_TOOL_CALL)
            continue;
        struct hf_tool_call call = { .tool = part->tool,
                                     .args = part->content,
                                     .route = part->route,
                                     .replay = part->replay };
        call.call_id = hf_move_call_id(move);
        if (!call.call_id)
            return hf_fail_plain(err, HF_ENOMEM);
        int rc = hf_turn_judge_call(move, &call, count, err);
        if (rc)
            return rc;
        calls[count++] = call;
    }
    *ret_calls = move->made = calls;
    *ret_count = move->made_count = count;
    return 0;
}

bool hf_result_decides(const struct hf_tool_result *result,
                       struct hf_outcome *ret_outcome)
{
    *ret_outcome = (struct hf_outcome){ .tool = result->tool,
                                        .value = result->control_value };
    switch (result->control) {
    case HF_CONTROL_NONE: return false;
    case HF_CONTROL_FINISH: ret_outcome->kind = HF_OUTCOME_TOOL_VALUE; return true;
    case HF_CONTROL_FAIL: ret_outcome->kind = HF_OUTCOME_TOOL_ERROR; return true;
    case HF_CONTROL_SWITCH_FRAME: break;
    }
    ret_outcome->kind = HF_OUTCOME_FRAME_SWITCH;
    ret_outcome->frame_key = result->frame_key;
    ret_outcome->task = result->task;
    return !hf_turn_span_blank(result->task);
}
