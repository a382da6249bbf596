/* The acts of a protocol, and its view of the turn.
 *
 * The last act flushes PROGRESS before its effect goes out, so that a host has stored what
 * led to an effect before it performs it. Once a cancellation or a lever has decided how
 * the turn ends, every last act becomes that end.
 */
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "core/turn/machine.h"

const struct hf_turn *hf_move_turn(const struct hf_move *move)
{
    return move->turn;
}

uint64_t hf_move_record_count(const struct hf_move *move)
{
    return move->turn->base.count + move->next.own_count;
}

const struct hf_record *hf_move_record(struct hf_move *move, uint64_t i)
{
    uint64_t base = move->turn->base.count;
    hf_pin_drop(&move->seen);
    if (i < base)
        return hf_pin_take(&move->seen, &move->turn->base, i);
    return i - base < move->next.own_count ? move->next.own[i - base] : NULL;
}

uint64_t hf_move_iteration(const struct hf_move *move)
{
    return move->next.iteration;
}

int64_t hf_move_turn_budget(const struct hf_move *move)
{
    return move->turn->setup->config.turn_budget;
}

bool hf_move_grace_used(const struct hf_move *move)
{
    return move->next.grace;
}

bool hf_move_limit_reached(const struct hf_move *move)
{
    return hf_turn_limit_reached(move->turn, move->next.iteration);
}

void *hf_move_take(struct hf_move *move, size_t bytes)
{
    return hf_arena_take(move->arena, bytes);
}

const char *hf_move_id(struct hf_move *move, const char *purpose)
{
    return hf_join_id(move->arena, move->turn->turn_id, move->next.iteration, purpose);
}

static int check_open(const struct hf_move *move, const char *act, struct hf_err *err)
{
    if (!move->ended)
        return 0;
    return hf_fail(err, HF_EPROTOCOL, NULL, "the protocol %s: %s after a start or finish",
                   move->turn->setup->config.protocol->ops->id, act);
}

int hf_act_message(struct hf_move *move, const struct hf_message *message,
                   struct hf_err *err)
{
    int rc = check_open(move, "append", err);
    if (rc)
        return rc;
    struct hf_record record = { .kind = HF_RECORD_MESSAGE, .message = message };
    return hf_move_append(move, HF_COPY_STRICT, &record, err);
}

int hf_act_event(struct hf_move *move, const char *name, struct hf_span json,
                 struct hf_err *err)
{
    int rc = check_open(move, "append", err);
    if (rc)
        return rc;
    struct hf_record record = { .kind = HF_RECORD_EVENT, .name = name, .data = json };
    return hf_move_append(move, HF_COPY_STRICT, &record, err);
}

int hf_act_advance(struct hf_move *move, struct hf_err *err)
{
    int rc = check_open(move, "advance", err);
    if (rc)
        return rc;
    move->next.iteration++;
    move->next.synced = 0;
    move->dirty = true;
    return 0;
}

int hf_act_stall(struct hf_move *move, bool *ret_spent, struct hf_err *err)
{
    int rc = check_open(move, "stall", err);
    if (rc)
        return rc;
    int64_t budget = move->turn->setup->config.no_progress_budget;
    move->next.stalled++;
    *ret_spent = budget != HF_UNBOUNDED && move->next.stalled >= (uint64_t)budget;
    return 0;
}

int hf_act_progress(struct hf_move *move, struct hf_err *err)
{
    int rc = check_open(move, "progress", err);
    if (rc == 0)
        move->next.stalled = 0;
    return rc;
}

int hf_act_grace(struct hf_move *move, struct hf_err *err)
{
    int rc = check_open(move, "grace", err);
    return rc ? rc : hf_move_give_grace(move, err);
}

/* Before a last act: true in *ret_over when the turn has ended instead. */
static int begin_last(struct hf_move *move, const char *act, bool *ret_over,
                      struct hf_err *err)
{
    int rc = check_open(move, act, err);
    *ret_over = false;
    if (rc)
        return rc;
    if (move->ending) {
        *ret_over = true;
        return hf_move_end(move, move->ending, err);
    }
    if (move->next.cancel) {
        *ret_over = true;
        return hf_move_end_cancelled(move, NULL, err);
    }
    return hf_move_flush(move, err);
}

static int check_driver(const struct hf_move *move, const struct hf_driver_state *driver,
                        struct hf_err *err)
{
    const char *id = move->turn->setup->config.protocol->ops->id;
    if (driver && !hf_turn_span_same(hf_turn_span_of(driver->owner), hf_turn_span_of(id)))
        return hf_fail(err, HF_EPROTOCOL, "driver", "a driver state of %s under %s",
                       driver->owner ? driver->owner : "no protocol", id);
    return 0;
}

/* The driver state as the move's own; check_driver has seen its owner. */
static int own_driver(struct hf_move *move, const struct hf_driver_state *driver,
                      const struct hf_driver_state **ret_own, struct hf_err *err)
{
    *ret_own = NULL;
    if (!driver)
        return 0;
    if (driver->data.len > (size_t)HF_MAX_TURN_TEXT_BYTES)
        return hf_fail(err, HF_ETOOBIG, "driver",
                       "the driver state must have at most %lld bytes",
                       (long long)HF_MAX_TURN_TEXT_BYTES);
    if (!hf_text_clean(driver->data.at, driver->data.len))
        return hf_fail(err, HF_EINVAL, "driver",
                       "the driver state must be UTF-8 text without NUL");
    struct hf_driver_state *own = hf_arena_new(move->arena, struct hf_driver_state);
    char *data = hf_arena_copy(move->arena, driver->data.at, driver->data.len);
    if (!own || !data)
        return hf_fail_plain(err, HF_ENOMEM);
    own->owner = move->turn->setup->config.protocol->ops->id; /* the same, and it stays */
    own->data = (struct hf_span){ data, driver->data.len };
    *ret_own = own;
    return 0;
}

static int announce_request(struct hf_move *move, const struct hf_request *request,
                            struct hf_err *err)
{
    struct hf_emit emit = { .kind = HF_EMIT_LLM_REQUEST, .records = request->records };
    if (request->tool_choice == HF_TOOLS_AUTO)
        emit.tools = move->next.face.names;
    return hf_act_emit(move, &emit, err);
}

int hf_act_start_llm(struct hf_move *move, bool use_tools,
                     const struct hf_driver_state *driver, struct hf_err *err)
{
    bool over = false;
    int rc = check_driver(move, driver, err);
    if (rc == 0)
        rc = begin_last(move, "start_llm", &over, err);
    if (rc || over)
        return rc;

    const struct hf_setup *setup = move->turn->setup;
    const struct hf_face *face = &move->next.face;
    struct hf_request *request = hf_arena_new(move->arena, struct hf_request);
    if (!request)
        return hf_fail_plain(err, HF_ENOMEM);
    struct hf_request built = { .model = setup->config.model,
                                .route = setup->config.route,
                                .prompt = face->prompt,
                                .tools = face->tools,
                                .options = setup->config.options,
                                .records = hf_move_record_count(move),
                                .causes = move->next.cause_count,
                                .iteration = move->next.iteration,
                                .tool_choice = use_tools ? HF_TOOLS_AUTO : HF_TOOLS_NONE,
                                .render_version = HF_RENDER_VERSION,
                                .attempt = 1,
                                .driver = driver };
    memcpy(built.prompt_hash, face->prompt_hash, sizeof(built.prompt_hash));
    memcpy(built.tools_hash, face->tools_hash, sizeof(built.tools_hash));
    memcpy(built.options_hash, setup->options_hash, sizeof(built.options_hash));
    rc = hf_value_copy(move->arena, &hf_s_request, HF_COPY_STRICT, &built, request, err);
    if (rc == 0)
        rc = announce_request(move, request, err);
    if (rc)
        return rc;
    hf_move_enter(move, HF_TURN_WAITING_LLM, true);
    move->next.wait.request = request;
    return 0;
}

int hf_act_start_exec(struct hf_move *move, const struct hf_exec_start *start,
                      struct hf_err *err)
{
    bool over = false;
    int rc = check_driver(move, start->driver, err);
    if (rc == 0)
        rc = begin_last(move, "start_exec", &over, err);
    if (rc || over)
        return rc;
    if (!start->language || !hf_text_clean(start->code.at, start->code.len))
        return hf_fail(err, HF_EINVAL, "code",
                       "a cell must name its language, and be UTF-8 text without NUL");
    if (start->code.len > (size_t)HF_MAX_TURN_TEXT_BYTES)
        return hf_fail(err, HF_ETOOBIG, "code", "a cell must have at most %lld bytes",
                       (long long)HF_MAX_TURN_TEXT_BYTES);

    struct hf_outstanding wait = { .language = hf_arena_text(move->arena,
                                                             start->language) };
    char *code = hf_arena_copy(move->arena, start->code.at, start->code.len);
    wait.bindings = hf_arena_text(move->arena, start->bindings);
    if (!wait.language || !code || (start->bindings && !wait.bindings))
        return hf_fail_plain(err, HF_ENOMEM);
    const struct hf_driver_state *driver = NULL;
    rc = own_driver(move, start->driver, &driver, err);
    if (rc)
        return rc;
    hf_move_enter(move, HF_TURN_WAITING_EXEC, true);
    wait.id = move->next.wait.id;
    wait.code = (struct hf_span){ code, start->code.len };
    wait.driver = driver;
    move->next.wait = wait;
    return 0;
}

/* A protocol's outcome as the move's own. */
static int own_outcome(struct hf_move *move, const struct hf_outcome *outcome,
                       struct hf_outcome **ret_own, struct hf_err *err)
{
    struct hf_outcome *own = hf_arena_new(move->arena, struct hf_outcome);
    int rc = own ? hf_outcome_check(outcome, err) : hf_fail_plain(err, HF_ENOMEM);
    if (rc == 0)
        rc = hf_value_copy(move->arena, &hf_s_outcome, HF_COPY_STRICT, outcome, own, err);
    *ret_own = own;
    return rc;
}

int hf_act_checkpoint(struct hf_move *move, enum hf_checkpoint_kind kind,
                      const struct hf_outcome *on_empty, struct hf_err *err)
{
    bool over = false;
    struct hf_outcome *outcome = NULL;
    int rc = begin_last(move, "checkpoint", &over, err);
    if (rc == 0 && !over && on_empty)
        rc = own_outcome(move, on_empty, &outcome, err);
    if (rc == 0 && outcome)
        rc = hf_move_complete(move, outcome, err);
    if (rc || over)
        return rc;
    hf_move_enter(move, HF_TURN_WAITING_CHECKPOINT, true);
    move->next.wait.checkpoint = kind;
    move->next.wait.on_empty = outcome;
    return 0;
}

int hf_act_finish(struct hf_move *move, const struct hf_outcome *outcome,
                  struct hf_err *err)
{
    bool over = false;
    struct hf_outcome *copy = NULL;
    int rc = begin_last(move, "finish", &over, err);
    if (rc == 0 && !over)
        rc = own_outcome(move, outcome, &copy, err);
    if (rc || over)
        return rc;
    return hf_move_end(move, copy, err);
}

/* The id of a call that a protocol made: kept if it is one of ours and not in the batch
 * yet. Two calls of one id would make a batch that can never be completed. */
static const char *batch_id(struct hf_move *move, const struct hf_tool_call *before,
                            size_t count, const char *given)
{
    bool fine = hf_turn_is_call_id(given);
    for (size_t i = 0; fine && i < count; i++)
        fine = !hf_turn_span_same(hf_turn_span_of(before[i].call_id),
                                  hf_turn_span_of(given));
    return fine ? given : hf_move_call_id(move);
}

/* One call that a protocol made, made fit to run as those of a reply are. */
static int own_call(struct hf_move *move, struct hf_tool_call *own, size_t i,
                    const struct hf_tool_call *given, struct hf_err *err)
{
    struct hf_tool_call call = *given;
    struct hf_tool_result result = { 0 };
    if (call.answered != (call.result != NULL))
        return hf_fail(err, HF_EPROTOCOL, NULL, "an answered call has a result");
    call.call_id = batch_id(move, own, i, call.call_id);
    if (!call.call_id)
        return hf_fail_plain(err, HF_ENOMEM);
    if (!call.tool)
        call.tool = ""; /* the judge sees to that */
    if (call.result) {
        result = *call.result;
        result.call_id = call.call_id;
        result.tool = call.tool;
        call.result = &result;
    }
    int rc = hf_value_copy(move->arena, &hf_s_tool_call, HF_COPY_STRICT, &call, &own[i],
                           err);
    if (rc == 0 && call.answered)
        rc = hf_result_check(own[i].result, err);
    if (rc == 0 && !call.answered)
        rc = hf_turn_judge_call(move, &own[i], i, err);
    return rc;
}

/* The calls as the move's own, so that answers can be put into them. */
static int own_calls(struct hf_move *move, const struct hf_tool_call *calls, size_t count,
                     struct hf_tool_call **ret_own, struct hf_err *err)
{
    if (calls == move->made && count == move->made_count) {
        *ret_own = move->made;
        return 0;
    }
    if (count > HF_BATCH_MAX)
        return hf_fail(err, HF_EPROTOCOL, NULL, "a batch has at most %d calls",
                       HF_BATCH_MAX);
    struct hf_tool_call *own = hf_arena_array(move->arena, count, sizeof(*own));
    if (!own)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; i < count; i++) {
        int rc = own_call(move, own, i, &calls[i], err);
        if (rc)
            return rc;
    }
    *ret_own = own;
    return 0;
}

/* All of them answered: no effect, no id, and the protocol is called about it when its method has
 * returned. */
int hf_act_start_tools(struct hf_move *move, const struct hf_tool_call *calls,
                       size_t count, struct hf_err *err)
{
    bool over = false;
    bool open = false;
    struct hf_tool_call *own = NULL;
    if (count == 0)
        return hf_fail(err, HF_EPROTOCOL, NULL, "a batch without calls");
    int rc = check_open(move, "start_tools", err);
    if (rc == 0)
        rc = own_calls(move, calls, count, &own, err);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        open = open || !own[i].answered;
        if (own[i].answered) /* at birth */
            rc = hf_move_emit_answer(move, &own[i], err);
    }
    if (rc == 0 && open)
        rc = begin_last(move, "start_tools", &over, err);
    if (rc || over)
        return rc;
    hf_move_enter(move, HF_TURN_WAITING_TOOLS, open);
    move->next.wait.calls = own;
    move->next.wait.call_count = count;
    move->tools_due = !open;
    return 0;
}
