/* Moves: a change of the machine that counts whole or not at all.
 *
 * While effects are still in the queue, the arena they live in cannot be given up: the move
 * then adds to it instead of changing over. A host that polls as it should never sees the
 * difference. */
#include <string.h>

#include "base/err.h"
#include "core/turn/machine.h"

#define QUEUE_ROOM ((size_t)8)
#define NUMBER_DIGITS 20
/* Kept of the arena not in use, to spare a malloc a move, unless the other one is large:
 * a waiting turn is to hold little. */
#define STEP_KEPT ((size_t)1024)

void hf_move_begin(struct hf_move *move, struct hf_turn *turn)
{
    bool flip = turn->now.queue_count == 0;
    hf_move_begin_in_place(move, turn);
    move->flipped = flip;
    move->arena = &turn->step[flip ? !turn->live : turn->live];
    if (flip) {
        move->next.queue = NULL; /* what is left of its room is in the other arena */
        move->next.queue_room = 0;
    }
}

void hf_move_begin_in_place(struct hf_move *move, struct hf_turn *turn)
{
    move->turn = turn;
    move->seen = (struct hf_pin){ 0 };
    move->next = turn->now;
    move->arena = &turn->step[turn->live];
    move->flipped = move->ended = move->dirty = move->tools_due = false;
    move->made = NULL;
    move->made_count = 0;
    move->ending = NULL;
}

void hf_move_commit(struct hf_move *move)
{
    struct hf_turn *turn = move->turn;
    bool same = move->next.state == turn->now.state &&
                move->next.wait.id == turn->now.wait.id;
    hf_pin_drop(&move->seen);
    turn->now = move->next;
    turn->delivered = same && turn->delivered;
    turn->reset_due = same && turn->reset_due;
    if (move->flipped) {
        bool lean = move->arena->held <= STEP_KEPT + 64;
        hf_arena_trim(&turn->step[turn->live], lean ? STEP_KEPT : 0);
        turn->live = !turn->live;
    }
}

void hf_move_drop(struct hf_move *move)
{
    hf_pin_drop(&move->seen);
    if (move->flipped)
        hf_arena_trim(move->arena, STEP_KEPT);
}

uint64_t hf_move_next_id(struct hf_move *move)
{
    return move->next.next_id++;
}

void hf_move_enter(struct hf_move *move, enum hf_turn_state state, bool with_id)
{
    move->next.state = state;
    move->next.wait = (struct hf_outstanding){ 0 };
    if (with_id)
        move->next.wait.id = hf_move_next_id(move);
    move->ended = true;
}

const char *hf_join_id(struct hf_arena *arena, const char *a, uint64_t number,
                       const char *b)
{
    char digits[NUMBER_DIGITS];
    char *at = digits + sizeof(digits);
    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    size_t digit_count = (size_t)(digits + sizeof(digits) - at);

    size_t a_len = strlen(a);
    size_t b_len = b ? strlen(b) : 0;
    char *id = hf_arena_room(arena, a_len + digit_count + b_len + 3, 1);
    if (!id)
        return NULL;
    memcpy(id, a, a_len);
    char *end = id + a_len;
    *end++ = '.';
    memcpy(end, at, digit_count);
    end += digit_count;
    if (b) {
        *end++ = '.';
        memcpy(end, b, b_len);
    }
    end[b_len] = '\0';
    return id;
}

int hf_move_queue(struct hf_move *move, const struct hf_queued *item, struct hf_err *err)
{
    struct hf_turn_body *next = &move->next;
    if (next->queue_count == next->queue_room) {
        size_t room = next->queue_room < QUEUE_ROOM ? QUEUE_ROOM : next->queue_room * 2;
        struct hf_queued **queue = hf_arena_array(move->arena, room, sizeof(*queue));
        if (!queue)
            return hf_fail_plain(err, HF_ENOMEM);
        if (next->queue_count > 0)
            memcpy(queue, next->queue, next->queue_count * sizeof(*queue));
        next->queue = queue;
        next->queue_room = room;
    }
    struct hf_queued *copy = hf_arena_dup(move->arena, item, sizeof(*item));
    if (!copy)
        return hf_fail_plain(err, HF_ENOMEM);
    copy->iteration = next->iteration;
    next->queue[next->queue_count++] = copy;
    return 0;
}

int hf_move_emit(struct hf_move *move, const struct hf_emit *emit, struct hf_err *err)
{
    struct hf_emit *copy = hf_arena_dup(move->arena, emit, sizeof(*emit));
    if (!copy)
        return hf_fail_plain(err, HF_ENOMEM);
    copy->iteration = move->next.iteration;
    return hf_move_queue(
        move, &(struct hf_queued){ .kind = HF_EFFECT_EMIT, .emit = copy }, err);
}

static int queue_emit(struct hf_move *move, enum hf_value_copy_mode mode,
                      const struct hf_emit *emit, struct hf_err *err)
{
    struct hf_emit copy;
    int rc = hf_value_copy(move->arena, &hf_s_emit, mode, emit, &copy, err);
    return rc ? rc : hf_move_emit(move, &copy, err);
}

int hf_move_error(struct hf_move *move, const struct hf_emit *emit, struct hf_err *err)
{
    struct hf_emit error = *emit;
    error.kind = HF_EMIT_ERROR;
    return queue_emit(move, HF_COPY_TRUST, &error, err);
}

int hf_move_log(struct hf_move *move, enum hf_log_kind kind, struct hf_span text,
                struct hf_err *err)
{
    if (!move->turn->setup->config.trace)
        return 0;
    struct hf_log line = { .kind = kind,
                           .iteration = move->next.iteration,
                           .effect_id = move->turn->now.wait.id,
                           .text = text };
    const void *copy = NULL;
    int rc = hf_value_copy_ref(move->arena, &hf_s_log, HF_COPY_TRUST, &line, &copy, err);
    if (rc)
        return rc;
    return hf_move_queue(move, &(struct hf_queued){ .kind = HF_EFFECT_LOG, .log = copy },
                         err);
}

int hf_move_flush(struct hf_move *move, struct hf_err *err)
{
    if (!move->dirty)
        return 0;
    uint64_t to = move->turn->base.count + move->next.own_count;
    struct hf_queued progress = { .kind = HF_EFFECT_PROGRESS,
                                  .from = move->next.reported,
                                  .to = to };
    int rc = hf_move_queue(move, &progress, err);
    if (rc)
        return rc;
    move->next.reported = to;
    move->dirty = false;
    return 0;
}

int hf_turn_room_for_own(struct hf_turn *turn, size_t count)
{
    if (count <= turn->own_room)
        return 0;
    size_t room = turn->own_room < 4 ? 4 : turn->own_room * 2;
    room = room < count ? count : room;
    size_t bytes = 0;
    if (__builtin_mul_overflow(room, sizeof(*turn->now.own), &bytes))
        return HF_ENOMEM;
    struct hf_record **own = turn->alloc->realloc(turn->alloc->user, turn->now.own,
                                                  bytes);
    if (!own)
        return HF_ENOMEM;
    turn->now.own = own;
    turn->own_room = room;
    return 0;
}

/* A record may lie past the committed count for a while: it does not count until then. */
int hf_move_append(struct hf_move *move, enum hf_value_copy_mode mode,
                   const struct hf_record *record, struct hf_err *err)
{
    struct hf_turn *turn = move->turn;
    int rc = mode == HF_COPY_STRICT ? hf_record_check(record, err) : 0;
    if (rc)
        return rc;
    struct hf_record *copy = hf_arena_dup(&turn->keep, record, sizeof(*record));
    if (!copy)
        return hf_fail_plain(err, HF_ENOMEM);
    rc = hf_value_copy(&turn->keep, &hf_s_record, mode, copy, copy, err);
    return rc ? rc : hf_move_adopt(move, copy, err);
}

int hf_move_adopt(struct hf_move *move, struct hf_record *record, struct hf_err *err)
{
    struct hf_turn *turn = move->turn;
    if (hf_turn_room_for_own(turn, move->next.own_count + 1))
        return hf_fail_plain(err, HF_ENOMEM);
    move->next.own = turn->now.own;
    move->next.own[move->next.own_count++] = record;
    if (record->kind == HF_RECORD_EVENT && hf_record_is_step(record)) {
        move->next.last_step_known = true;
        move->next.last_step = turn->base.count + move->next.own_count;
    }
    move->dirty = true;
    return 0;
}

struct hf_kept *hf_move_keep(struct hf_move *move, const char *purpose, enum hf_role role,
                             size_t room)
{
    struct hf_turn *turn = move->turn;
    struct hf_kept *kept = hf_arena_take(&turn->keep,
                                         sizeof(*kept) + room * sizeof(struct hf_part));
    const char *id = hf_join_id(&turn->keep, turn->turn_id, move->next.iteration,
                                purpose);
    if (!kept || !id)
        return NULL;
    kept->record = (struct hf_record){ .kind = HF_RECORD_MESSAGE,
                                       .message = &kept->message };
    kept->message = (struct hf_message){ .id = id, .role = role, .parts = kept->parts };
    return kept;
}

/* A cause that is known already is not new. Each new one is also a message, which is how
 * later turns see it. */
int hf_move_add_cause(struct hf_move *move, const struct hf_cause *cause,
                      struct hf_err *err)
{
    struct hf_turn_body *next = &move->next;
    for (size_t i = 0; i < next->cause_count; i++)
        if (hf_turn_span_same(hf_turn_span_of(next->causes[i]->id),
                              hf_turn_span_of(cause->id)))
            return 0;

    struct hf_arena *stay = &move->turn->stay;
    struct hf_cause **causes = hf_arena_array(stay, next->cause_count + 1,
                                              sizeof(*causes));
    const void *copy = NULL;
    if (!causes)
        return hf_fail_plain(err, HF_ENOMEM);
    int rc = hf_value_copy_ref(stay, &hf_s_cause, HF_COPY_STRICT, cause, &copy, err);
    if (rc)
        return rc;
    if (next->cause_count > 0)
        memcpy(causes, next->causes, next->cause_count * sizeof(*causes));
    memcpy(&causes[next->cause_count], &copy, sizeof(copy));
    next->causes = causes;
    next->cause_count++;

    struct hf_origin origin = { .kind = HF_ORIGIN_PROCESS,
                                .id = cause->id,
                                .event_type = cause->event_type,
                                .cause = cause->origin };
    struct hf_part part = { .kind = HF_PART_TEXT, .content = cause->text };
    struct hf_message message = { .id = cause->id,
                                  .role = HF_ROLE_EVENT,
                                  .parts = &part,
                                  .part_count = 1,
                                  .origin = &origin };
    struct hf_record record = { .kind = HF_RECORD_MESSAGE, .message = &message };
    return hf_move_append(move, HF_COPY_STRICT, &record, err);
}

int hf_move_answer(struct hf_move *move, const struct hf_part *parts, size_t count,
                   const struct hf_llm_response *reply,
                   const struct hf_message **ret_message, struct hf_err *err)
{
    struct hf_message *message = hf_arena_new(move->arena, struct hf_message);
    const char *id = hf_move_id(move, "answer");
    if (!message || !id)
        return hf_fail_plain(err, HF_ENOMEM);
    *message = (struct hf_message){ .id = id,
                                    .role = HF_ROLE_ASSISTANT,
                                    .parts = parts,
                                    .part_count = count,
                                    .response_id = reply ? reply->response_id : NULL,
                                    .model = reply ? reply->model : NULL };
    *ret_message = message;
    return 0;
}

int hf_move_complete(struct hf_move *move, struct hf_outcome *outcome, struct hf_err *err)
{
    if (outcome->kind != HF_OUTCOME_ASSISTANT_MESSAGE || outcome->message ||
        outcome->text.len == 0)
        return 0;
    struct hf_part *part = hf_arena_new(move->arena, struct hf_part);
    if (!part)
        return hf_fail_plain(err, HF_ENOMEM);
    *part = (struct hf_part){ .kind = HF_PART_PROSE, .content = outcome->text };
    return hf_move_answer(move, part, 1, NULL, &outcome->message, err);
}

int hf_move_end(struct hf_move *move, const struct hf_outcome *outcome,
                struct hf_err *err)
{
    const void *copy = NULL;
    struct hf_outcome whole = *outcome;
    int rc = hf_move_complete(move, &whole, err);
    if (rc == 0)
        rc = hf_value_copy_ref(&move->turn->stay, &hf_s_outcome, HF_COPY_TRUST, &whole,
                               &copy, err);
    if (rc == 0)
        rc = hf_move_flush(move, err);
    if (rc)
        return rc;
    hf_move_enter(move, HF_TURN_FINISHED, false);
    move->next.outcome = copy;
    move->next.face = (struct hf_face){ 0 }; /* no request will need it */

    /* The copy lives as long as the handle: the emit need not have its own. */
    struct hf_emit emit = { .kind = HF_EMIT_TURN_OUTCOME, .turn_outcome = copy };
    rc = hf_move_emit(move, &emit, err);
    return rc ? rc : hf_move_emit(move, &(struct hf_emit){ .kind = HF_EMIT_DONE }, err);
}

int hf_move_end_kind(struct hf_move *move, enum hf_outcome_kind kind, struct hf_span text,
                     struct hf_err *err)
{
    struct hf_outcome outcome = { .kind = kind, .text = text };
    return hf_move_end(move, &outcome, err);
}

int hf_move_end_cancelled(struct hf_move *move, const struct hf_message *message,
                          struct hf_err *err)
{
    struct hf_evidence minted = { 0 };
    struct hf_outcome outcome = { .kind = HF_OUTCOME_CANCELLED,
                                  .evidence = move->next.cancel,
                                  .message = message };
    if (!outcome.evidence) {
        minted.request_id = hf_join_id(move->arena, "provider_cancelled",
                                       move->next.iteration, NULL);
        if (!minted.request_id)
            return hf_fail_plain(err, HF_ENOMEM);
        outcome.evidence = &minted;
    }
    return hf_move_end(move, &outcome, err);
}

bool hf_turn_limit_reached(const struct hf_turn *turn, uint64_t iteration)
{
    int64_t budget = turn->setup->config.turn_budget;
    return budget != HF_UNBOUNDED && iteration - turn->now.run_offset >= (uint64_t)budget;
}

int hf_move_give_grace(struct hf_move *move, struct hf_err *err)
{
    if (move->next.grace || !hf_turn_limit_reached(move->turn, move->next.iteration))
        return 0;
    const char *id = hf_join_id(move->arena, move->turn->turn_id, move->next.iteration,
                                "limit");
    if (!id)
        return hf_fail_plain(err, HF_ENOMEM);
    struct hf_part part = { .kind = HF_PART_TEXT,
                            .content = hf_turn_span_of(
                                move->turn->setup->config.limit_text) };
    struct hf_message message = {
        .id = id, .role = HF_ROLE_SYSTEM, .parts = &part, .part_count = 1
    };
    struct hf_record record = { .kind = HF_RECORD_MESSAGE, .message = &message };
    int rc = hf_move_append(move, HF_COPY_STRICT, &record, err);
    if (rc == 0)
        move->next.grace = true;
    return rc;
}

/* The protocol's turn */

static int check_ended(const struct hf_move *move, int rc, struct hf_err *err)
{
    if (rc == 0 && !move->ended)
        rc = hf_fail(err, HF_EPROTOCOL, NULL,
                     "the protocol %s neither started anything nor finished",
                     move->turn->setup->config.protocol->ops->id);
    return rc;
}

int hf_move_emit_answer(struct hf_move *move, const struct hf_tool_call *call,
                        struct hf_err *err)
{
    struct hf_emit emit = { .kind = HF_EMIT_TOOL_CALL,
                            .call_id = hf_arena_text(move->arena, call->call_id),
                            .tool = hf_arena_text(move->arena, call->tool),
                            .outcome = call->result->outcome,
                            .duration_ms = call->result->duration_ms };
    return emit.call_id && emit.tool ? hf_move_emit(move, &emit, err)
                                     : hf_fail_plain(err, HF_ENOMEM);
}

static int tools_done_once(struct hf_move *move, struct hf_err *err)
{
    const struct hf_protocol *protocol = move->turn->setup->config.protocol;
    struct hf_outstanding wait = move->next.wait;
    move->ended = false;
    int rc = protocol->ops->tools_done(protocol, move, wait.calls, wait.call_count, err);
    return check_ended(move, rc, err);
}

/* A batch that was answered from the start continues at once. A protocol that answers every such
 * batch with another one would never end: that is its fault, not a state. */
static int complete(struct hf_move *move, int rc, struct hf_err *err)
{
    for (int i = 0; rc == 0 && move->tools_due; i++) {
        if (i == 100)
            return hf_fail(err, HF_EPROTOCOL, NULL, "the protocol answers without end");
        move->tools_due = false;
        rc = tools_done_once(move, err);
    }
    return rc;
}

int hf_move_prepare(struct hf_move *move, struct hf_err *err)
{
    const struct hf_protocol *protocol = move->turn->setup->config.protocol;
    /* What the turn was started with is stored before the first model call. */
    if (move->next.reported < move->turn->base.count + move->next.own_count)
        move->dirty = true;
    int rc = check_ended(move, protocol->ops->prepare(protocol, move, err), err);
    return complete(move, rc, err);
}

int hf_move_llm_done(struct hf_move *move, const struct hf_llm_response *response,
                     struct hf_err *err)
{
    const struct hf_protocol *protocol = move->turn->setup->config.protocol;
    const struct hf_driver_state *driver = move->turn->now.wait.request->driver;
    int rc = protocol->ops->llm_done(protocol, move, response, driver, err);
    return complete(move, check_ended(move, rc, err), err);
}

int hf_move_tools_done(struct hf_move *move, struct hf_err *err)
{
    return complete(move, tools_done_once(move, err), err);
}

int hf_move_exec_done(struct hf_move *move, const struct hf_exec_result *result,
                      struct hf_err *err)
{
    const struct hf_protocol *protocol = move->turn->setup->config.protocol;
    const struct hf_driver_state *driver = move->turn->now.wait.driver;
    if (!protocol->ops->exec_done)
        return hf_fail(err, HF_EPROTOCOL, NULL, "the protocol %s runs no code",
                       protocol->ops->id);
    int rc = protocol->ops->exec_done(protocol, move, result, driver, err);
    return complete(move, check_ended(move, rc, err), err);
}

/* Acts that are only emits live here, next to the queue. */
int hf_act_emit(struct hf_move *move, const struct hf_emit *emit, struct hf_err *err)
{
    if (move->ended)
        return hf_fail(err, HF_EPROTOCOL, NULL, "an emit after a start or finish");
    return queue_emit(move, HF_COPY_STRICT, emit, err);
}
