/* The code protocol after a cell: what it did becomes a step of the history, and the step decides
 * how the turn continues.
 *
 * A cell is a piece of code that the model wrote and the host ran; its result comes in here. A step
 * is the record of it, which later requests show to the model. Bindings are the variables that a
 * cell leaves for the next one, named by the hash of their bytes. A change of the turn is a move:
 * it is built on a copy of the turn's body (move->next), while move->turn->now is still the turn as
 * it waited for the cell; the two change places when the move is committed. */
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/text.h"
#include "core/turn/code/code.h"

#define CURSOR "step."

/* The number that run_cell noted. A driver state that says another one is not ours,
 * and the turn must not continue as if it were. */
static int read_cursor(const struct hf_driver_state *driver, uint64_t *ret_step,
                       struct hf_err *err)
{
    const size_t before = sizeof(CURSOR) - 1;
    int64_t step = 0;
    const char *text = driver ? driver->data.at : NULL;
    if (!driver ||
        !hf_turn_span_same(hf_turn_span_of(driver->owner), hf_text_of(HF_CODE_ID)) ||
        driver->data.len <= before || memcmp(text, CURSOR, before) != 0 ||
        hf_parse_i64(text + before, 1, INT64_MAX, "driver", &step, NULL))
        return hf_fail(err, HF_EPROTOCOL, "driver",
                       "the cell's driver state is not of the code protocol");
    *ret_step = (uint64_t)step;
    return 0;
}

/* What is printed is kept up to a limit, and what is past it is said to be cut. */
static int keep_output(struct hf_move *move, const struct hf_exec_result *result,
                       struct hf_code_step *step, struct hf_err *err)
{
    size_t left = (size_t)HF_MAX_CELL_OUTPUT_BYTES;
    struct hf_observation *kept = hf_arena_array(move->arena, result->observation_count,
                                                 sizeof(*kept));
    if (!kept)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; i < result->observation_count; i++) {
        kept[i] = result->observations[i];
        if (kept[i].text.len > left) {
            kept[i].text.len = hf_utf8_cut(kept[i].text.at, left);
            kept[i].truncated = true;
        }
        left -= kept[i].text.len;
    }
    step->output = kept;
    step->output_count = result->observation_count;
    return 0;
}

/* Of the value or the message of one call; all of them have as much room as the output. */
#define CALL_BYTES ((size_t)HF_MAX_CELL_OUTPUT_BYTES / 8)

/* The value and the message of one call, as far as there is room. JSON cannot be cut, so a
 * value that does not fit is left out, and the step says how long it was. */
static void keep_outcome(const struct hf_tool_result *result, size_t *left,
                         struct hf_code_call *call)
{
    const struct hf_failure *failure = result->failure;
    struct hf_span message = failure ? failure->message : result->reason;
    size_t room = CALL_BYTES < *left ? CALL_BYTES : *left;
    if (failure) {
        call->class_ = failure->class_;
        call->code = failure->code;
    }
    if (message.len > room)
        message.len = hf_utf8_cut(message.at, room);
    call->message = message;
    if (result->value.len <= room)
        call->value = result->value;
    else
        call->value_bytes = result->value.len;
    *left -= call->message.len + call->value.len;
}

static int keep_calls(struct hf_move *move, const struct hf_exec_result *result,
                      struct hf_code_step *step, struct hf_err *err)
{
    size_t count = result->call_count < HF_CODE_CALLS ? result->call_count
                                                      : HF_CODE_CALLS;
    struct hf_code_call *calls = hf_arena_array(move->arena, count, sizeof(*calls));
    size_t left = (size_t)HF_MAX_CELL_OUTPUT_BYTES;
    if (!calls)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; i < count; i++) {
        /* Of many, the last ones: what a model asks about is what came before the end. */
        const struct hf_tool_result *call =
            &result->calls[result->call_count - count + i];
        calls[i] = (struct hf_code_call){ .id = call->call_id,
                                          .tool = call->tool,
                                          .outcome = call->outcome,
                                          .control = call->control,
                                          .duration_ms = call->duration_ms };
        keep_outcome(call, &left, &calls[i]);
    }
    step->calls = calls;
    step->call_count = count;
    step->calls_omitted = result->call_count - count;
    return 0;
}

/* Fills the step from the result of the cell that the turn waits for. `failed` is a host that could
 * not run the cell, and says why in `message`; a cell that ran and ended badly has an `error`. With
 * `unknown` nothing is known about how it ended. A result that names no bindings has changed none,
 * so those that the cell began with stay. The texts stay the result's. */
static int fill_step(struct hf_move *move, const struct hf_exec_result *result,
                     uint64_t number, struct hf_code_step *ret_step, struct hf_err *err)
{
    const char *before = move->turn->now.wait.bindings;
    const char *cell = hf_move_id(move, "cell");
    if (!cell)
        return hf_fail_plain(err, HF_ENOMEM);
    *ret_step = (struct hf_code_step){
        .step = number,
        .cell = cell,
        .iteration = move->next.iteration,
        .failed = result->failed,
        .unknown = result->unknown,
        .cancelled = result->cancelled,
        .error = result->failed ? result->message : result->error,
        .images = result->images,
        .image_count = result->image_count,
        .final = result->finish,
        .before = result->bindings_before ? result->bindings_before : before,
        .after = result->bindings_after ? result->bindings_after : before,
        .delta = result->bindings_delta,
        .duration_ms = result->duration_ms,
        .variables = result->variables,
    };
    if (result->cancelled && ret_step->error.len == 0)
        ret_step->error = hf_text_of("the cell was cancelled");
    int rc = keep_output(move, result, ret_step, err);
    return rc ? rc : keep_calls(move, result, ret_step, err);
}

/* Live accounting of the calls; nothing of it is emitted again by a restored turn. */
static int emit_calls(struct hf_move *move, const struct hf_code_step *step,
                      struct hf_err *err)
{
    for (size_t i = 0; i < step->call_count; i++) {
        struct hf_emit emit = { .kind = HF_EMIT_TOOL_CALL,
                                .call_id = step->calls[i].id,
                                .tool = step->calls[i].tool,
                                .outcome = step->calls[i].outcome,
                                .duration_ms = step->calls[i].duration_ms };
        int rc = hf_move_emit(move, &emit, err);
        if (rc)
            return rc;
    }
    struct hf_emit omitted = { .kind = HF_EMIT_CUSTOM,
                               .name = HF_CODE_ID ".calls_omitted",
                               .records = step->calls_omitted };
    return step->calls_omitted > 0 ? hf_move_emit(move, &omitted, err) : 0;
}

/* The first call that succeeded with a control decides, as it does for a batch of tools. */
static bool call_decides(const struct hf_exec_result *result,
                         struct hf_outcome *ret_outcome)
{
    for (size_t i = 0; i < result->call_count; i++)
        if (hf_result_decides(&result->calls[i], ret_outcome))
            return true;
    return false;
}

static int complete(struct hf_move *move, const struct hf_outcome *outcome,
                    struct hf_err *err)
{
    int rc = hf_act_progress(move, err);
    return rc ? rc
              : hf_act_checkpoint(move, HF_CHECKPOINT_BEFORE_COMPLETION, outcome, err);
}

/* A final value that does not fit is an error of the step, and not final. */
static int check_final(const struct hf_code_protocol *code, struct hf_move *move,
                       struct hf_code_step *step, struct hf_err *err)
{
    struct hf_buf why;
    if (!code->schema || step->final.len == 0)
        return 0;
    hf_buf_init(&why, move->turn->alloc, (size_t)HF_MAX_TURN_TEXT_BYTES);
    int rc = hf_fit(move->turn->alloc, code->schema, step->final, &why, err);
    if (rc == 0 && why.len > 0) {
        const struct hf_fill fill = { .id = HF_FILL_WHY, .text = { why.at, why.len } };
        step->error = hf_prompt_text(move->arena, HF_PROMPT_CODE_FIX_VALUE, &fill, 1);
        step->final = (struct hf_span){ 0 };
        rc = step->error.at ? 0 : hf_fail_plain(err, HF_ENOMEM);
    }
    hf_buf_fini(&why);
    return rc;
}

int hf_code_exec_done(const struct hf_protocol *protocol, struct hf_move *move,
                      const struct hf_exec_result *result,
                      const struct hf_driver_state *driver, struct hf_err *err)
{
    const struct hf_code_protocol *code = hf_code_of(protocol);
    struct hf_code_step step;
    struct hf_outcome outcome;
    uint64_t number = 0;
    int rc = read_cursor(driver, &number, err);
    if (rc == 0)
        rc = fill_step(move, result, number, &step, err);
    bool decided = rc == 0 && call_decides(result, &outcome);
    if (rc == 0 && !decided)
        rc = check_final(code, move, &step, err);
    if (rc == 0)
        rc = emit_calls(move, &step, err);
    if (rc == 0)
        rc = hf_code_event(move, HF_CODE_STEP, &hf_s_code_step, &step, err);
    if (rc)
        return rc;
    if (decided)
        return complete(move, &outcome, err);
    if (step.final.len > 0 && hf_code_step_good(&step)) {
        outcome = (struct hf_outcome){ .kind = HF_OUTCOME_FINAL_VALUE,
                                       .value = step.final };
        return complete(move, &outcome, err);
    }
    return hf_code_go_on(code, move, !hf_code_step_good(&step), err);
}
