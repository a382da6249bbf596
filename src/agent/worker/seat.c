/* A seat: one session that a worker holds, with the drive of its turn. This file is the adapter
 * between the drive and the world: it takes the drive's actions (seat_pump), starts what they ask
 * for, and feeds what came of it as events. Store calls run on a thread, one per seat at a time;
 * the rest runs on the loop's thread. An effect is performed only while the lease is certainly
 * held. */
#include "agent/worker/worker.h"

#include <string.h>

#include <holdfast/turn_json.h>

#include "base/buf.h"
#include "base/text.h"

struct seat *seat_new(struct hf_worker *worker)
{
    struct seat *seat = worker->alloc->realloc(worker->alloc->user, NULL, sizeof(*seat));
    if (!seat)
        return NULL;
    *seat = (struct seat){ .worker = worker };
    hf_arena_init_small(&seat->arena, worker->alloc, 512, 8192);
    return seat;
}

void seat_free(struct seat *seat)
{
    struct hf_worker *worker = seat->worker;
    hf_timer_stop(worker->config.loop, &seat->timer);
    hf_drive_free(seat->drive);
    for (struct seat_page *page = seat->pages; page; page = page->next)
        hf_session_answer_free(page->answer);
    hf_session_answer_free(seat->claim);
    hf_session_answer_free(seat->blob);
    hf_arena_fini(&seat->arena);
    worker->alloc->free(worker->alloc->user, seat);
}

/* ---- beginning --------------------------------------------------------------------- */

static const struct hf_record *get_record(void *user, uint64_t i)
{
    struct seat *seat = user;
    return seat->records[i];
}

/* Inputs as the machine takes them. */
struct inputs {
    struct hf_record *records;
    size_t record_count;
    struct hf_cause *causes;
    size_t cause_count;
    struct hf_decoded **owners;
    size_t owner_count;
};

static int add_input(struct seat *seat, const struct hf_session_input *input,
                     struct inputs *inputs, struct hf_err *err)
{
    const struct hf_record *record = NULL;
    struct hf_span payload = { input->payload, strlen(input->payload) };
    if (input->kind == HF_INPUT_WAKE) {
        inputs->causes[inputs->cause_count++] = (struct hf_cause){ .id = input->work_id,
                                                                   .event_type = "wake",
                                                                   .text = payload };
        return 0;
    }
    int rc = hf_record_decode(seat->worker->alloc, payload,
                              &inputs->owners[inputs->owner_count], &record, err);
    if (rc)
        return rc;
    inputs->owner_count++;
    inputs->records[inputs->record_count++] = *record;
    return 0;
}

static int make_inputs(struct seat *seat, struct inputs *inputs, struct hf_err *err)
{
    const struct hf_session_turn *turn = seat->loaded->turn;
    size_t count = turn->input_count;
    int rc = 0;
    inputs->records = hf_arena_array(&seat->arena, count + 1, sizeof(*inputs->records));
    inputs->causes = hf_arena_array(&seat->arena, count + 1, sizeof(*inputs->causes));
    inputs->owners = hf_arena_array(&seat->arena, count + 1, sizeof(*inputs->owners));
    if (!inputs->records || !inputs->causes || !inputs->owners)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = add_input(seat, &turn->inputs[i], inputs, err);
    return rc;
}

static const struct hf_worker_agent *agent_of(const struct seat *seat)
{
    const struct hf_worker_config *config = &seat->worker->config;
    for (size_t i = 0; i < config->agent_count; i++)
        if (hf_same(config->agents[i].name, seat->claim->sessions[0].agent))
            return &config->agents[i];
    return NULL;
}

/* A turn's base is named by the head revision in decimal. NULL: no memory. */
static const char *revision_text(struct seat *seat, int64_t revision)
{
    struct hf_buf text;
    hf_buf_init(&text, seat->worker->alloc, 24);
    hf_buf_i64(&text, revision);
    return hf_buf_keep(&text, &seat->arena);
}

static int make_drive(struct seat *seat, const struct inputs *inputs, struct hf_err *err)
{
    const struct hf_worker_config *config = &seat->worker->config;
    const struct hf_session_turn *turn = seat->loaded->turn;
    struct hf_base base = { .id = revision_text(seat, turn->base_revision),
                            .count = seat->record_count,
                            .user = seat,
                            .get = get_record };
    memcpy(base.digest, turn->chain, sizeof(base.digest));
    struct hf_drive_config made = { .size = sizeof(made),
                                    .alloc = seat->worker->alloc,
                                    .setup = seat->agent->setup,
                                    .tools = seat->agent->tools,
                                    .host = config->host,
                                    .tool_limit = config->tool_limit,
                                    .tool_retries = config->tool_retries,
                                    .away_ms = config->away_ms };
    struct hf_drive_turn begun = { .size = sizeof(begun),
                                   .session_id = seat->claim->sessions[0].session_id,
                                   .turn_id = turn->turn_id,
                                   .base = &base,
                                   .step = turn->step,
                                   .node_count = turn->node_count,
                                   .effects_past = turn->effects_past,
                                   .save = turn->save,
                                   .inputs = inputs->records,
                                   .input_count = inputs->record_count,
                                   .causes = inputs->causes,
                                   .cause_count = inputs->cause_count,
                                   .entries = turn->entries,
                                   .entry_count = turn->entry_count,
                                   .waits = turn->waits,
                                   .wait_count = turn->wait_count,
                                   .fence = seat->claim->sessions[0].lease_fence,
                                   .wall_ms = worker_wall(seat->worker),
                                   .mono_ms = worker_mono(seat->worker) };
    if (!base.id)
        return hf_fail_plain(err, HF_ENOMEM);
    return hf_drive_new(&made, &begun, &seat->drive, err);
}

int seat_begin(struct seat *seat, struct hf_err *err)
{
    struct inputs inputs = { 0 };
    seat->agent = agent_of(seat);
    if (!seat->agent) /* of a worker for one session */
        return hf_fail(err, HF_EINVAL, "session_id", "the worker has no agent %.100s",
                       seat->claim->sessions[0].agent);
    int rc = make_inputs(seat, &inputs, err);
    if (rc == 0)
        rc = make_drive(seat, &inputs, err);
    for (size_t i = 0; i < inputs.owner_count; i++)
        hf_decoded_free(inputs.owners[i]);
    return rc;
}

/* ---- events and actions ------------------------------------------------------------ */

static void feed(struct seat *seat, struct hf_drive_event event)
{
    event.wall_ms = worker_wall(seat->worker);
    event.mono_ms = worker_mono(seat->worker);
    if (!seat->ended)
        hf_drive_feed(seat->drive, &event);
}

void seat_feed(struct seat *seat, struct hf_drive_event event)
{
    feed(seat, event);
    seat_pump(seat);
}

struct hf_drive_event worker_cancel(void)
{
    static const struct hf_evidence evidence = { .request_id = "session",
                                                 .origin = "session" };
    return (struct hf_drive_event){ .kind = HF_DRIVEN_CANCEL, .evidence = &evidence };
}

void seat_drive(struct seat *seat)
{
    const struct hf_session_turn *turn = seat->loaded->turn;
    struct hf_drive_event cancel = worker_cancel();
    if (turn->input_count > 0)
        cancel.status = hf_status_of(turn->inputs[0].status);
    if (cancel.status != HF_STATUS_CANCELLED && cancel.status != HF_STATUS_TIMEOUT)
        cancel.status = HF_STATUS_NONE;
    if (cancel.status || seat->loaded->sessions[0].cancel_request)
        feed(seat, cancel);
    if (seat->worker->stopping)
        feed(seat,
             (struct hf_drive_event){ .kind = HF_DRIVEN_GIVE_UP }); /* claimed late */
    seat_pump(seat);
}

static void on_timer(void *user)
{
    struct hf_worker *worker = ((struct seat *)user)->worker;
    worker_enter(worker);
    seat_feed(user, (struct hf_drive_event){ .kind = HF_DRIVEN_TIMER });
    worker_leave(worker);
}

/* Waits that a step has opened, and that the turn is put away. */
static void tell_waits(struct seat *seat)
{
    const struct hf_drive_step *step = seat->action.step;
    const char *turn_id = seat->claim->turn->turn_id;
    for (size_t i = step->wait_count - step->new_wait_count; i < step->wait_count; i++) {
        char wait_id[HF_WAIT_ID_TEXT];
        struct hf_worker_event event = { .kind = HF_WORKER_ASKED,
                                         .wait = &step->waits[i],
                                         .wait_id = wait_id };
        if (hf_wait_id(turn_id, step->waits[i].kind, step->waits[i].name, wait_id,
                       NULL) == 0)
            worker_tell(seat->worker, seat, event);
    }
    if (step->away)
        worker_tell(seat->worker, seat,
                    (struct hf_worker_event){ .kind = HF_WORKER_AWAY });
}

static void tell_stored(struct seat *seat)
{
    struct hf_worker_event event = { .kind = HF_WORKER_FAULT,
                                     .code = seat->code,
                                     .message = seat->err.message };
    if (seat->code == 0 && seat->action.kind == HF_DRIVE_STORE)
        tell_waits(seat);
    if ((seat->code == 0 && seat->action.kind != HF_DRIVE_COMMIT) ||
        seat->code == HF_ECANCELASKED)
        return;
    if (seat->code == 0) {
        event.kind = HF_WORKER_TURN_ENDED;
        event.status = seat->action.commit->status;
        event.usage = seat->action.commit->usage;
    } else if (seat_is_lost(seat->code)) {
        if (seat->ended)
            return; /* that was told */
        event.kind = HF_WORKER_LOST;
    }
    worker_tell(seat->worker, seat, event);
}

/* What a store call came to. */
static void take_stored(struct seat *seat)
{
    struct hf_drive_event event = { .kind = HF_DRIVEN_STORED, .code = seat->code };
    seat->job_out = false;
    tell_stored(seat);
    if (seat->action.kind == HF_DRIVE_BACK) { /* done, or left to the lease's end */
        seat_pump(seat);
        return;
    }
    if (seat->action.kind == HF_DRIVE_BLOB) {
        event.kind = HF_DRIVEN_FETCHED;
        if (seat->blob)
            event.bytes = seat->blob->blob;
    }
    if (seat_is_lost(seat->code))
        event = (struct hf_drive_event){ .kind = HF_DRIVEN_LEASE_LOST };
    bool cancel = seat->cancel_requested && seat->code == 0;
    seat->cancel_requested = false;
    feed(seat, event);
    if (cancel) /* before anything new begins */
        feed(seat, worker_cancel());
    seat_pump(seat);
}

/* On the loop. */
static void on_stored(void *user)
{
    struct hf_worker *worker = ((struct seat *)user)->worker;
    worker_enter(worker);
    take_stored(user);
    worker_leave(worker);
}

void seat_start_job(struct seat *seat, const struct hf_drive_action *action)
{
    hf_assert(!seat->job_out); /* the drive has one store call out at most */
    hf_session_answer_free(seat->blob);
    seat->blob = NULL;
    seat->action = *action;
    seat->err = (struct hf_err){ 0 };
    seat->code = 0;
    seat->job_out = true;
    seat->job =
        (struct worker_job){ .user = seat, .run = seat_run_action, .done = on_stored };
    worker_threads_add(seat->worker->threads, &seat->job);
}

static void start_timer(struct seat *seat, hf_ms due)
{
    struct hf_task task = { seat, on_timer };
    hf_ms after = due - worker_wall(seat->worker);
    if (hf_timer_start(seat->worker->config.loop, &seat->timer, after > 0 ? after : 0,
                       &task))
        seat_feed(seat, (struct hf_drive_event){ .kind = HF_DRIVEN_GIVE_UP });
}

/* An effect is performed only under a lease that is certainly held. A worker that was stopped
 * for longer than its lease finds out here. */
bool seat_still_held(struct seat *seat)
{
    if (worker_mono(seat->worker) < seat->valid_until)
        return true;
    worker_tell(seat->worker, seat, (struct hf_worker_event){ .kind = HF_WORKER_LOST });
    seat_feed(seat, (struct hf_drive_event){ .kind = HF_DRIVEN_LEASE_LOST });
    return false;
}

/* Text that came as no stream is told as if it had; the rest is told as it is. */
static void tell_emit(struct seat *seat, const struct hf_emit *emit)
{
    struct hf_worker_event event = { .kind = HF_WORKER_EMIT, .emit = emit };
    if (emit->kind == HF_EMIT_TEXT_DELTA)
        event = (struct hf_worker_event){ .kind = HF_WORKER_TEXT, .text = emit->text };
    else if (emit->kind == HF_EMIT_ATTEMPT_RESET)
        event = (struct hf_worker_event){ .kind = HF_WORKER_RESET };
    worker_tell(seat->worker, seat, event);
}

static void act(struct seat *seat, const struct hf_drive_action *action)
{
    switch (action->kind) {
    case HF_DRIVE_BACK:
        worker_tell(seat->worker, seat,
                    (struct hf_worker_event){ .kind = HF_WORKER_BACK,
                                              .code = action->code,
                                              .message = action->message });
        seat_start_job(seat, action);
        break;
    case HF_DRIVE_STORE:
    case HF_DRIVE_COMMIT:
    case HF_DRIVE_BLOB: seat_start_job(seat, action); break;
    case HF_DRIVE_MODEL:
        if (seat_still_held(seat))
            seat_start_model(seat, action);
        break;
    case HF_DRIVE_STOP_MODEL: seat_stop_model(seat, action->id); break;
    case HF_DRIVE_TOOL:
        if (!seat_still_held(seat))
            break;
        if (!action->call->probe)
            worker_tell(seat->worker, seat,
                        (struct hf_worker_event){ .kind = HF_WORKER_TOOL_STARTED,
                                                  .call = action->call });
        seat_start_tool(seat, action->call);
        break;
    case HF_DRIVE_STOP_TOOL: seat_stop_tool(seat, action->call); break;
    case HF_DRIVE_SYNC: seat_sync(seat); break;
    case HF_DRIVE_TIMER: start_timer(seat, action->due_ms); break;
    case HF_DRIVE_EMIT: tell_emit(seat, action->emit); break;
    case HF_DRIVE_END: seat->ended = true; break;
    }
}

bool seat_is_over(const struct seat *seat)
{
    return seat->ended && !seat->job_out && !seat->calls && !seat->model_call &&
           seat->fetches == 0;
}

void seat_pump(struct seat *seat)
{
    struct hf_drive_action action;
    if (seat->pumping) /* an event that came from inside an action */
        return;
    seat->pumping = true;
    while (!seat->ended && hf_drive_next(seat->drive, &action))
        act(seat, &action);
    seat->pumping = false;
    if (seat_is_over(seat))
        seat->worker->some_ended = true;
}
