/* The handle of a turn: making and ending it, polling, and the simple responses (tools.c and llm.c
 * have the others). The rules are in core/turn/rules.c.
 *
 * The body of a turn (turn->now) is what a save holds. Its `queue` has effects that take no answer,
 * such as events for watchers; its `wait` has the one effect that the host must answer. A change is
 * a move on a copy of the body (machine.h), so a call that failed has changed nothing.
 *
 * Memory: `keep` holds the turn's own records, `stay` what lives as long as the handle, and
 * step[live] what the body needs until the next accepted response; the other one of `step` is where
 * the next move is built. */
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/sized.h"
#include "base/text.h"
#include "core/turn/machine.h"

/* Small enough that a waiting turn holds little it does not use. */
#define STAY_FIRST ((size_t)192)
#define STAY_LARGEST ((size_t)1024)
#define KEEP_FIRST ((size_t)1024)
#define KEEP_LARGEST ((size_t)1024)
#define STEP_FIRST ((size_t)1024)
#define STEP_LARGEST ((size_t)1024)
#define SCRAPS_MAX ((size_t)3072)

int hf_turn_alloc(const struct hf_setup *setup, const char *session_id,
                  const char *turn_id, struct hf_turn **ret_turn, struct hf_err *err)
{
    const struct hf_alloc *alloc = setup->config.alloc;
    struct hf_turn *turn = alloc->realloc(alloc->user, NULL, sizeof(*turn));
    if (!turn)
        return hf_fail_plain(err, HF_ENOMEM);
    *turn = (struct hf_turn){ .setup = setup, .alloc = alloc };
    hf_arena_init_small(&turn->keep, alloc, KEEP_FIRST, KEEP_LARGEST);
    for (size_t i = 0; i < 2; i++)
        hf_arena_init_small(&turn->step[i], alloc, STEP_FIRST, STEP_LARGEST);
    hf_arena_init_small(&turn->stay, alloc, STAY_FIRST, STAY_LARGEST);
    hf_buf_init(&turn->json, alloc, (size_t)HF_MAX_TURN_SAVE_BYTES);
    turn->session_id = hf_arena_text(&turn->stay, session_id);
    turn->turn_id = hf_arena_text(&turn->stay, turn_id);
    turn->now.next_id = 1;
    if ((session_id && !turn->session_id) || (turn_id && !turn->turn_id)) {
        hf_turn_free(turn);
        return hf_fail_plain(err, HF_ENOMEM);
    }
    *ret_turn = turn;
    return 0;
}

void hf_turn_free(struct hf_turn *turn)
{
    if (!turn)
        return;
    hf_pin_drop(&turn->shown);
    hf_turn_leave_records(turn);
    hf_arena_fini(&turn->stay);
    hf_arena_fini(&turn->step[0]);
    hf_arena_fini(&turn->step[1]);
    hf_buf_fini(&turn->json);
    turn->alloc->free(turn->alloc->user, turn->now.own);
    turn->alloc->free(turn->alloc->user, turn);
}

int hf_base_check_last_step(const struct hf_base *base, struct hf_err *err)
{
    if (base->last_step > 0 && !base->last_step_known)
        return hf_fail(err, HF_EINVAL, "last_step",
                       "last_step is set without last_step_known");
    if (base->last_step > base->count)
        return hf_fail(err, HF_EINVAL, "last_step", "last_step is at most count");
    return 0;
}

int hf_turn_set_base(struct hf_turn *turn, const struct hf_base *base, struct hf_err *err)
{
    struct hf_base copy = base ? *base : (struct hf_base){ 0 };
    if (copy.count > 0 && !copy.get)
        return hf_fail(err, HF_EINVAL, "base", "the base lends no records");
    int rc = hf_base_check_last_step(&copy, err);
    if (rc)
        return rc;
    if (copy.count > 0 || copy.id) {
        rc = hf_check_key(copy.id, (size_t)HF_MAX_KEY_BYTES, "base", err);
        if (rc)
            return rc;
        copy.id = hf_arena_text(&turn->keep, copy.id);
        if (!copy.id)
            return hf_fail_plain(err, HF_ENOMEM);
    }
    turn->base = copy;
    return 0;
}

int hf_body_take_last_step(struct hf_turn_body *body, const struct hf_base *base,
                           struct hf_err *err)
{
    if (!base->last_step_known && base->count > 0)
        return 0;
    if (!body->last_step_known) {
        body->last_step_known = true;
        body->last_step = base->last_step;
    }
    /* A step that is not yet in the base comes after all that are. */
    if (body->last_step <= base->count && body->last_step != base->last_step)
        return hf_fail(err, HF_EBASE, "last_step", "last_step is %llu and not %llu",
                       (unsigned long long)body->last_step,
                       (unsigned long long)base->last_step);
    return 0;
}

static int check_start(const struct hf_turn_start *start, struct hf_err *err)
{
    int rc = hf_sized_check(start->size, sizeof(*start), sizeof(*start), err);
    if (rc == 0)
        rc = hf_check_key(start->session_id, (size_t)HF_MAX_KEY_BYTES, "session_id", err);
    if (rc == 0)
        rc = hf_check_key(start->turn_id, (size_t)HF_MAX_KEY_BYTES, "turn_id", err);
    if (rc == 0 && start->run_offset > (uint64_t)INT64_MAX)
        rc = hf_fail(err, HF_EINVAL, "run_offset", "the run offset is too large");
    if (rc == 0 && start->effects_past > (uint64_t)INT64_MAX - 1)
        rc = hf_fail(err, HF_EINVAL, "effects_past", "the effect is too large");
    if (rc == 0 && ((start->input_count > 0 && !start->inputs) ||
                    (start->cause_count > 0 && !start->causes)))
        rc = hf_fail(err, HF_EINVAL, "inputs", "inputs or causes are missing");
    return rc;
}

static int take_start(struct hf_turn *turn, const struct hf_turn_start *start,
                      struct hf_err *err)
{
    struct hf_move move;
    hf_move_begin_in_place(&move, turn);
    const struct hf_given given = { start->given, start->given_refs };
    int rc = hf_given_copy(&turn->stay, &given, (size_t)HF_MAX_TURN_GIVEN_BYTES,
                           &move.next.given, err);
    for (size_t i = 0; rc == 0 && i < start->input_count; i++)
        rc = hf_move_append(&move, HF_COPY_STRICT, &start->inputs[i], err);
    for (size_t i = 0; rc == 0 && i < start->cause_count; i++)
        rc = hf_move_add_cause(&move, &start->causes[i], err);
    if (rc == 0)
        hf_move_commit(&move);
    else
        hf_move_drop(&move);
    return rc;
}

int hf_turn_new(const struct hf_setup *setup, const struct hf_turn_start *start,
                struct hf_turn **ret_turn, struct hf_err *err)
{
    struct hf_turn *turn = NULL;
    int rc = check_start(start, err);
    if (rc == 0)
        rc = hf_turn_alloc(setup, start->session_id, start->turn_id, &turn, err);
    if (rc)
        return rc;
    turn->now.iteration = turn->now.run_offset = start->run_offset;
    turn->now.next_id = start->effects_past + 1;
    turn->now.face = setup->config.surface->face;
    rc = hf_turn_set_base(turn, start->base, err);
    if (rc == 0)
        rc = hf_body_take_last_step(&turn->now, &turn->base, err);
    if (rc == 0) {
        turn->now.reported = turn->base.count;
        rc = take_start(turn, start, err);
    }
    if (rc) {
        hf_turn_free(turn);
        return rc;
    }
    *ret_turn = turn;
    return 0;
}

/* Polling: the effects that the turn has for its host. */

/* Moves the first queued effect to *ret_effect. */
static void pop(struct hf_turn *turn, struct hf_effect *ret_effect)
{
    const struct hf_queued *item = turn->now.queue[0];
    *ret_effect = (struct hf_effect){ .kind = item->kind,
                                      .id = item->id,
                                      .iteration = item->iteration,
                                      .from = item->from,
                                      .to = item->to,
                                      .emit = item->emit,
                                      .log = item->log };
    turn->now.queue++;
    turn->now.queue_count--;
    turn->now.queue_room--;
}

static const enum hf_effect_kind effect_of[] = {
    [HF_TURN_PREPARING] = HF_EFFECT_NONE,
    [HF_TURN_PREPARE_ITERATION] = HF_EFFECT_NONE,
    [HF_TURN_WAITING_SURFACE] = HF_EFFECT_SYNC,
    [HF_TURN_WAITING_LLM] = HF_EFFECT_LLM_CALL,
    [HF_TURN_WAITING_TOOLS] = HF_EFFECT_TOOL_CALLS,
    [HF_TURN_WAITING_EXEC] = HF_EFFECT_EXEC_CODE,
    [HF_TURN_WAITING_CHECKPOINT] = HF_EFFECT_CHECKPOINT,
    [HF_TURN_WAITING_SLEEP] = HF_EFFECT_SLEEP,
    [HF_TURN_FINISHED] = HF_EFFECT_DONE,
};

/* Makes *ret_effect of the effect that the host must answer, or of DONE. */
static void yield_outstanding(const struct hf_turn *turn, struct hf_effect *ret_effect)
{
    const struct hf_turn_body *now = &turn->now;
    const struct hf_outstanding *wait = &now->wait;
    *ret_effect = (struct hf_effect){ .kind = effect_of[now->state],
                                      .id = wait->id,
                                      .iteration = now->iteration,
                                      .update = wait->update,
                                      .calls = wait->calls,
                                      .call_count = wait->call_count,
                                      .language = wait->language,
                                      .code = wait->code,
                                      .bindings = wait->bindings,
                                      .driver = wait->driver,
                                      .checkpoint = wait->checkpoint,
                                      .duration_ms = wait->duration_ms,
                                      .due_ms = wait->due_ms };
    if (now->state == HF_TURN_WAITING_LLM)
        ret_effect->request = wait->request;
    if (now->state == HF_TURN_WAITING_CHECKPOINT)
        ret_effect->outcome = wait->on_empty;
    if (now->state == HF_TURN_WAITING_EXEC) {
        ret_effect->given = now->given.values;
        ret_effect->given_refs = now->given.refs;
    }
    if (now->state == HF_TURN_FINISHED) {
        ret_effect->from = now->reported;
        ret_effect->to = hf_turn_record_count(turn);
        ret_effect->outcome = now->outcome;
    }
}

/* Once after a restore, before the model call comes again: what observers were shown of it
 * is not part of what they will be shown. */
static int yield_reset(struct hf_turn *turn, struct hf_effect *ret_effect,
                       struct hf_err *err)
{
    static const char why[] = "the turn was restored";
    struct hf_emit *reset = hf_arena_new(&turn->stay, struct hf_emit);
    if (!reset)
        return hf_fail_plain(err, HF_ENOMEM);
    *reset = (struct hf_emit){ .kind = HF_EMIT_ATTEMPT_RESET,
                               .iteration = turn->now.iteration,
                               .attempt = turn->now.wait.request->attempt,
                               .text = { why, sizeof(why) - 1 } };
    turn->reset = reset;
    turn->reset_due = false;
    *ret_effect = (struct hf_effect){ .kind = HF_EFFECT_EMIT,
                                      .iteration = turn->now.iteration,
                                      .emit = reset };
    return 0;
}

/* Runs a move over a cleaned input; what it fails with has changed nothing. */
static int run(struct hf_move *move, const struct hf_turn_input *input, int rc,
               struct hf_err *err)
{
    if (rc == 0)
        rc = hf_turn_apply(move, input, err);
    if (rc == 0)
        hf_move_commit(move);
    else
        hf_move_drop(move);
    return rc;
}

/* A large reply leaves much in step[live] that is not needed any more. Once the queue is empty,
 * what `wait` needs is copied to the other arena, and this one is freed. Without memory for the
 * copy nothing changes. */
static void shed_scraps(struct hf_turn *turn)
{
    struct hf_arena *other = &turn->step[!turn->live];
    struct hf_outstanding wait;
    if (turn->step[turn->live].held <= SCRAPS_MAX)
        return;
    hf_arena_fini(other);
    if (hf_value_copy(other, &hf_s_outstanding, HF_COPY_TRUST, &turn->now.wait, &wait,
                      NULL) == 0) {
        turn->now.wait = wait;
        turn->now.queue = NULL;
        turn->now.queue_room = 0;
        turn->live = !turn->live;
    }
    hf_arena_fini(&turn->step[!turn->live]);
}

/* The next effect for the host, in this order: the queued ones, one at a time; after a restore, a
 * notice that the text which watchers saw of a model call is void; the effect that the host must
 * answer, or DONE, once per handle and effect (`delivered`); then NONE. Where the turn waits for
 * nothing, the machine first runs on. `wait.yielded`, which is a part of the save, says that some
 * handle has yielded the effect. */
int hf_turn_poll(struct hf_turn *turn, struct hf_effect *ret_effect, struct hf_err *err)
{
    bool runs_on = turn->now.state == HF_TURN_PREPARING ||
                   turn->now.state == HF_TURN_PREPARE_ITERATION;
    if (turn->now.queue_count == 0 && runs_on) {
        struct hf_move move;
        struct hf_turn_input input = { .event = HF_ON_POLL };
        hf_move_begin(&move, turn);
        int rc = run(&move, &input, 0, err);
        if (rc)
            return rc;
    }
    if (turn->now.queue_count > 0) {
        pop(turn, ret_effect);
    } else if (turn->reset_due) {
        return yield_reset(turn, ret_effect, err);
    } else if (!turn->delivered) {
        shed_scraps(turn);
        turn->now.wait.yielded = turn->now.wait.id != 0;
        yield_outstanding(turn, ret_effect);
        turn->delivered = true;
    } else {
        *ret_effect = (struct hf_effect){ .kind = HF_EFFECT_NONE };
    }
    return 0;
}

bool hf_turn_is_done(const struct hf_turn *turn)
{
    return turn->now.state == HF_TURN_FINISHED && turn->now.queue_count == 0 &&
           turn->delivered;
}

/* Responses: answers of the host to the effect that it was handed. */

int hf_turn_synced(struct hf_turn *turn, uint64_t id, const struct hf_surface *update,
                   struct hf_err *err)
{
    struct hf_move move;
    struct hf_turn_input input = { .event = HF_ON_SYNCED, .id = id, .data = update };
    int rc = hf_turn_expect(turn, input.event, id, err);
    if (rc)
        return rc;
    hf_move_begin(&move, turn);
    return run(&move, &input, 0, err);
}

int hf_turn_sync_failed(struct hf_turn *turn, uint64_t id, const char *message,
                        struct hf_err *err)
{
    struct hf_move move;
    struct hf_turn_input input = { .event = HF_ON_SYNC_FAILED,
                                   .id = id,
                                   .data = message };
    int rc = hf_turn_expect(turn, input.event, id, err);
    if (rc == 0)
        rc = hf_check_text(message, (size_t)HF_MAX_SUMMARY_BYTES, "message", err);
    if (rc)
        return rc;
    hf_move_begin(&move, turn);
    return run(&move, &input, 0, err);
}

/* A response that is a struct with its size first; NULL has none. */
static int check_size(const void *response, size_t ours, struct hf_err *err)
{
    size_t size = 0;
    if (response)
        memcpy(&size, response, sizeof(size));
    return hf_sized_check(size, ours, ours, err);
}

int hf_turn_llm_done(struct hf_turn *turn, uint64_t id,
                     const struct hf_llm_response *response, struct hf_err *err)
{
    struct hf_move move;
    struct hf_turn_input input = { .event = HF_ON_LLM_DONE, .id = id };
    const struct hf_llm_response *taken = NULL;
    int rc = hf_turn_expect(turn, input.event, id, err);
    if (rc)
        return rc;
    rc = check_size(response, sizeof(*response), err);
    if (rc == 0)
        rc = hf_sized_array(response->parts, response->part_count, "parts", err);
    if (rc)
        return rc;
    hf_move_begin(&move, turn);
    rc = hf_turn_take_response(&move, response, &taken, err);
    input.data = taken;
    return run(&move, &input, rc, err);
}

/* Takes a response that is a struct: copies it by its table, strictly, and runs the move. */
static int respond(struct hf_turn *turn, struct hf_turn_input *input,
                   const struct hf_schema *schema, const void *data, struct hf_err *err)
{
    struct hf_move move;
    int rc = hf_turn_expect(turn, input->event, input->id, err);
    if (rc)
        return rc;
    hf_move_begin(&move, turn);
    rc = hf_value_copy_ref(move.arena, schema, HF_COPY_STRICT, data, &input->data, err);
    return run(&move, input, rc, err);
}

int hf_turn_llm_failed(struct hf_turn *turn, uint64_t id,
                       const struct hf_llm_error *error, struct hf_err *err)
{
    struct hf_turn_input input = { .event = HF_ON_LLM_FAILED, .id = id };
    struct hf_move move;
    int rc = hf_turn_expect(turn, input.event, id, err);
    if (rc)
        return rc;
    rc = check_size(error, sizeof(*error), err);
    if (rc)
        return rc;
    if (error->retry_after_ms < 0)
        return hf_fail(err, HF_EINVAL, "retry_after_ms",
                       "retry_after_ms must not be negative");
    if (hf_sized_array(error->parts, error->part_count, "parts", err))
        return HF_EINVAL;
    hf_move_begin(&move, turn);
    rc = hf_turn_take_error(&move, error, &input.data, err);
    return run(&move, &input, rc, err);
}

int hf_turn_exec_done(struct hf_turn *turn, uint64_t id,
                      const struct hf_exec_result *result, struct hf_err *err)
{
    struct hf_turn_input input = { .event = HF_ON_EXEC_DONE, .id = id };
    int rc = check_size(result, sizeof(*result), err);
    if (rc)
        return rc;
    if (result->unknown)
        return hf_fail(err, HF_EINVAL, "unknown",
                       "only a forced end leaves this unknown");
    if (result->cancelled && result->finish.len > 0)
        return hf_fail(err, HF_EINVAL, "cancelled",
                       "a cancelled cell has no final value");
    return respond(turn, &input, &hf_s_exec_result, result, err);
}

int hf_turn_checkpoint_done(struct hf_turn *turn, uint64_t id,
                            const struct hf_turn_delivery *delivery, struct hf_err *err)
{
    struct hf_turn_input input = { .event = HF_ON_CHECKPOINT, .id = id };
    int rc = delivery ? check_size(delivery, sizeof(*delivery), err) : 0;
    return rc ? rc : respond(turn, &input, &hf_s_delivery, delivery, err);
}

int hf_turn_sleep_noted(struct hf_turn *turn, uint64_t id, hf_ms due_ms,
                        struct hf_err *err)
{
    struct hf_move move;
    struct hf_turn_input input = { .event = HF_ON_SLEEP_NOTED, .id = id, .ms = due_ms };
    int rc = hf_turn_expect(turn, input.event, id, err);
    if (rc)
        return rc;
    if (due_ms <= 0)
        return hf_fail(err, HF_EINVAL, "due_ms", "due_ms must be above 0");
    if (turn->now.wait.due_ms == due_ms)
        return 0;
    if (turn->now.wait.due_ms != 0)
        return hf_fail(err, HF_EANSWERED, "due_ms", "the due time was noted before");
    hf_move_begin_in_place(&move, turn);
    return run(&move, &input, 0, err);
}

int hf_turn_sleep_over(struct hf_turn *turn, uint64_t id, struct hf_err *err)
{
    struct hf_move move;
    struct hf_turn_input input = { .event = HF_ON_SLEEP_OVER, .id = id };
    int rc = hf_turn_expect(turn, input.event, id, err);
    if (rc)
        return rc;
    hf_move_begin(&move, turn);
    return run(&move, &input, 0, err);
}

/* Requests of the host that answer no effect: cancelling the turn, and ending it. Their moves are
 * made in place, in the arena that the body has now: queued effects that were not polled still come
 * out, and what the effect that is out points to stays valid. */

int hf_turn_cancel(struct hf_turn *turn, const struct hf_evidence *evidence,
                   struct hf_err *err)
{
    struct hf_move move;
    struct hf_turn_input input = { .event = HF_ON_CANCEL };
    int rc = hf_turn_expect(turn, input.event, 0, err);
    if (rc)
        return rc;
    if (!evidence)
        return hf_fail(err, HF_EINVAL, "evidence", "a cancellation says who asked");
    if (turn->now.cancel)
        return hf_fail(err, HF_EANSWERED, "evidence", "the turn is being cancelled");
    hf_move_begin_in_place(&move, turn);
    rc = hf_value_copy_ref(move.arena, &hf_s_evidence, HF_COPY_STRICT, evidence,
                           &input.data, err);
    return run(&move, &input, rc, err);
}

/* Ends the turn with an outcome that the host has chosen. `code` is the host's code of a failure;
 * NULL: none. */
static int finish(struct hf_turn *turn, const struct hf_outcome *outcome,
                  const char *code, struct hf_err *err)
{
    struct hf_move move;
    struct hf_turn_input input = { .event = HF_ON_FINISH, .code = code };
    int rc = hf_turn_expect(turn, input.event, 0, err);
    if (rc == 0)
        rc = hf_outcome_check(outcome, err);
    if (rc)
        return rc;
    hf_move_begin_in_place(&move, turn);
    rc = hf_value_copy_ref(move.arena, &hf_s_outcome, HF_COPY_STRICT, outcome,
                           &input.data, err);
    return run(&move, &input, rc, err);
}

/* Ends the turn with the outcome runtime_error: the host cannot continue it. */
int hf_turn_fail(struct hf_turn *turn, const char *code, const char *message,
                 struct hf_err *err)
{
    struct hf_outcome outcome = { .kind = HF_OUTCOME_RUNTIME_ERROR,
                                  .text = hf_turn_span_of(message) };
    int rc = hf_check_key(code, (size_t)HF_MAX_KEY_BYTES, "code", err);
    return rc ? rc : finish(turn, &outcome, code, err);
}

int hf_turn_finish(struct hf_turn *turn, const struct hf_outcome *outcome,
                   struct hf_err *err)
{
    if (!outcome)
        return hf_fail(err, HF_EINVAL, "outcome", "no outcome");
    return finish(turn, outcome, NULL, err);
}
