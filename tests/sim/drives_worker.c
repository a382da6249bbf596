/* A worker: the adapter between a drive and the world, one session at a time. It does what
 * src/agent/worker does with a loop and threads. */
#include "sim/drives.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/turn_json.h>

static hf_ms some(struct drives *d, unsigned most_ms)
{
    return 1 + (hf_ms)drives_roll(&d->dice, most_ms);
}

static const char *session_id(const struct drives_worker *w)
{
    return w->claim->sessions[0].session_id;
}

void drives_worker_drop(struct drives *d, struct drives_worker *w)
{
    const struct hf_setup *setup = d->setups[drives_roll(&d->dice, 2)];
    struct hf_alloc alloc = w->alloc;
    hf_drive_free(w->drive);
    hf_session_answer_free(w->claim);
    hf_session_answer_free(w->loaded);
    hf_session_answer_free(w->blob);
    free(w->records);
    *w = (struct drives_worker){ .setup = setup, .alloc = alloc };
}

/* ---- the end of a worker ------------------------------------------------------------ */

/* It is killed: only rows stay. */
static void die(struct drives *d, struct drives_actor *actor)
{
    drives_say(d, "worker %d dies", (int)(actor - d->actors));
    drives_worker_drop(d, actor->worker);
    actor->wake_at = d->mono + some(d, 4000);
}

/* True: it died. */
static bool killed(struct drives *d, struct drives_actor *actor)
{
    if (!drives_fault(d, DRIVES_KILL, 60))
        return false;
    die(d, actor);
    return true;
}

/* ---- claim and load ----------------------------------------------------------------- */

static const struct hf_record *get_record(void *user, uint64_t i)
{
    struct drives_worker *w = user;
    return w->records[i];
}

static int load(struct drives *d, struct drives_worker *w)
{
    struct hf_session_load request = { .size = sizeof(request),
                                       .session_id = session_id(w) };
    int rc = hf_session_load(d->store, &request, &w->loaded, NULL);
    if (rc)
        return rc;
    const struct hf_session_turn *turn = w->loaded->turn;
    if (!turn)
        return HF_ESESSIONLOST;
    size_t room = w->loaded->node_count + turn->stored_count + 1;
    w->records = calloc(room, sizeof(const struct hf_record *));
    for (size_t i = 0; w->records && i < w->loaded->node_count; i++)
        w->records[w->record_count++] = w->loaded->nodes[i].record;
    for (size_t i = 0; w->records && i < turn->stored_count; i++)
        w->records[w->record_count++] = turn->nodes[i].record;
    return w->records ? 0 : HF_ENOMEM;
}

/* The turn's one input as the machine takes it. */
static int make_drive(struct drives *d, struct drives_worker *w)
{
    const struct hf_session_turn *turn = w->loaded->turn;
    const struct hf_session_input *input = &turn->inputs[0];
    const struct hf_record *record = NULL;
    struct hf_decoded *owner = NULL;
    struct hf_span payload = DRIVES_TEXT(input->payload);
    struct hf_cause cause = { .id = input->work_id, .event_type = "wake" };
    bool wakes = input->kind == HF_INPUT_WAKE;
    struct hf_base base = {
        .id = w->base_id, .count = w->record_count, .user = w, .get = get_record
    };
    snprintf(w->base_id, sizeof(w->base_id), "%lld", (long long)turn->base_revision);
    memcpy(base.digest, turn->chain, sizeof(base.digest));
    struct hf_drive_config config = { .size = sizeof(config),
                                      .alloc = &w->alloc,
                                      .setup = w->setup,
                                      .tools = d->tools,
                                      .tool_limit = 1 + (int64_t)drives_roll(&d->dice, 3),
                                      .away_ms = 1500 };
    struct hf_drive_turn begun = { .size = sizeof(begun),
                                   .session_id = session_id(w),
                                   .turn_id = turn->turn_id,
                                   .base = &base,
                                   .step = turn->step,
                                   .node_count = turn->node_count,
                                   .effects_past = turn->effects_past,
                                   .save = turn->save,
                                   .causes = &cause,
                                   .cause_count = wakes ? 1 : 0,
                                   .entries = turn->entries,
                                   .entry_count = turn->entry_count,
                                   .waits = turn->waits,
                                   .wait_count = turn->wait_count,
                                   .fence = w->claim->sessions[0].lease_fence,
                                   .wall_ms = d->wall,
                                   .mono_ms = d->mono };
    cause.text = payload;
    int rc = wakes ? 0 : hf_record_decode(NULL, payload, &owner, &record, NULL);
    begun.inputs = record;
    begun.input_count = wakes ? 0 : 1;
    if (rc == 0)
        rc = hf_drive_new(&config, &begun, &w->drive, NULL);
    hf_decoded_free(owner);
    return rc;
}

static void feed(struct drives *d, struct drives_worker *w, struct hf_drive_event event)
{
    event.wall_ms = d->wall;
    event.mono_ms = d->mono;
    if (event.kind == HF_DRIVEN_LEASE_LOST) {
        w->lost = true;
        drives_mark(d, DRIVES_MARK_LEASE_LOST);
    }
    if (!w->ended)
        hf_drive_feed(w->drive, &event);
}

static void feed_cancel(struct drives *d, struct drives_worker *w, enum hf_status status)
{
    static const struct hf_evidence evidence = { .request_id = "session",
                                                 .origin = "session" };
    feed(d, w,
         (struct hf_drive_event){
             .kind = HF_DRIVEN_CANCEL, .evidence = &evidence, .status = status });
}

/* A turn whose input has ended while it waited, or that is to be cancelled. */
static void feed_what_is_known(struct drives *d, struct drives_worker *w)
{
    const char *was = w->loaded->turn->inputs[0].status;
    enum hf_status status = strcmp(was, "cancelled") == 0 ? HF_STATUS_CANCELLED
                            : strcmp(was, "timeout") == 0 ? HF_STATUS_TIMEOUT
                                                          : HF_STATUS_NONE;
    if (status || w->loaded->sessions[0].cancel_request)
        feed_cancel(d, w, status);
    if (w->stopping)
        feed(d, w, (struct hf_drive_event){ .kind = HF_DRIVEN_STOP });
}

static int begin(struct drives *d, struct drives_worker *w)
{
    w->session = session_id(w)[1] - '0';
    int rc = load(d, w);
    if (rc)
        return rc;
    const struct hf_session_turn *turn = w->loaded->turn;
    if (turn->input_count == 1)
        w->plan = drives_turn_of(&d->sessions[w->session], turn->inputs[0].payload);
    if (!w->plan) {
        drives_violate(d, "%s: the input of the open turn is none that was sent",
                       session_id(w));
        return HF_EINVAL;
    }
    if (turn->step > 0)
        drives_mark(d, DRIVES_MARK_CONTINUED);
    if (w->plan->cause != DRIVES_BY_MESSAGE)
        drives_mark(d, DRIVES_MARK_WOKEN);
    return make_drive(d, w);
}

static bool pump(struct drives *d, struct drives_actor *actor);

static void claim(struct drives *d, struct drives_actor *actor)
{
    static const char *const agents[] = { DRIVES_AGENT };
    struct drives_worker *w = actor->worker;
    struct hf_session_claim request = { .size = sizeof(request),
                                        .agents = agents,
                                        .agent_count = 1,
                                        .ttl_ms = DRIVES_TTL_MS };
    actor->wake_at = d->mono + some(d, 800);
    w->valid_until = d->mono + DRIVES_TTL_MS;
    drives_before_call(d, true);
    int rc = hf_session_claim(d->store, NULL, &request, &w->claim, NULL);
    bool found = rc == 0 && w->claim && w->claim->session_count > 0;
    bool turned = found && w->claim->turn;
    if (turned && !d->dead)
        rc = begin(d, w);
    else if (found && !d->dead)
        rc = hf_session_release(d->store, NULL, session_id(w), w->claim->token, NULL);
    if (!drives_after_call(d, found ? session_id(w) : "claim", rc)) {
        die(d, actor);
        return;
    }
    if (!turned || rc) { /* what was claimed lapses, unless it was released */
        drives_worker_drop(d, w);
        return;
    }
    drives_say(d, "worker %d has %s, fence %lld, step %lld", (int)(actor - d->actors),
               session_id(w), (long long)w->claim->sessions[0].lease_fence,
               (long long)w->loaded->turn->step);
    w->renew_at = d->mono + DRIVES_TTL_MS / 3;
    feed_what_is_known(d, w);
    (void)pump(d, actor);
}

/* ---- store calls -------------------------------------------------------------------- */

static int store_step(struct drives *d, struct drives_worker *w)
{
    const struct hf_drive_step *step = w->job_action.step;
    struct hf_session_stepped stepped = { .step = 0 };
    struct hf_session_step request = {
        .size = sizeof(request),
        .session_id = session_id(w),
        .token = w->claim->token,
        .turn_id = w->loaded->turn->turn_id,
        .step = step->step,
        .node_count = step->node_count,
        .chain = step->chain,
        .records = step->records,
        .record_count = step->record_count,
        .save = step->save,
        .begun = step->begun,
        .begun_count = step->begun_count,
        .settled = step->settled,
        .settled_count = step->settled_count,
        .blobs = step->blobs,
        .blob_count = step->blob_count,
        .active_ms = step->active_ms,
        .waits = step->waits,
        .wait_count = step->wait_count,
        .away = step->away,
    };
    int rc = hf_session_step(d->store, NULL, &request, &stepped, NULL);
    w->cancel_requested = rc == 0 && stepped.cancel_requested;
    if (rc == 0 && stepped.repeated)
        drives_mark(d, DRIVES_MARK_STEP_REPEATED);
    else if (rc == 0)
        drives_judge_stored(d, w);
    if (rc == 0 && step->away)
        drives_mark(d, DRIVES_MARK_PUT_AWAY);
    return rc;
}

static int store_commit(struct drives *d, struct drives_worker *w)
{
    const struct hf_drive_commit *commit = w->job_action.commit;
    const struct hf_session *session = &w->loaded->sessions[0];
    struct hf_session_spent spent = { "model", "model-1", *commit->usage };
    struct hf_session_committed committed = { .head_revision = 0 };
    struct hf_session_commit request = {
        .size = sizeof(request),
        .session_id = session->session_id,
        .token = w->claim->token,
        .turn_id = w->loaded->turn->turn_id,
        .head_revision = w->loaded->turn->base_revision,
        .record_count = session->record_count,
        .step = commit->step,
        .node_count = commit->node_count,
        .chain = commit->chain,
        .records = commit->records,
        .added_count = commit->record_count,
        .status = commit->status,
        .outcome = commit->outcome.at,
        .spent = &spent,
        .spent_count = 1,
        .active_ms = commit->active_ms,
        .release = true,
    };
    int rc = hf_session_commit(d->store, NULL, &request, &committed, NULL);
    if (rc)
        return rc;
    drives_mark(d, DRIVES_MARK_COMMITTED);
    if (!committed.repeated)
        drives_judge_stored(d, w);
    w->plan->committed = true;
    w->plan->status = commit->status;
    return 0;
}

static int hand_back(struct drives *d, struct drives_worker *w)
{
    struct hf_session_back back = { .size = sizeof(back),
                                    .session_id = session_id(w),
                                    .token = w->claim->token,
                                    .delay_ms = w->job_action.delay_ms,
                                    .active_ms = w->job_action.active_ms };
    int rc = hf_session_hand_back(d->store, NULL, &back, NULL);
    if (rc == 0)
        drives_mark(d, DRIVES_MARK_HANDED_BACK);
    return rc;
}

static bool is_lost(int code)
{
    return code == HF_ESESSIONLOST || code == HF_ESUPERSEDED || code == HF_EHEADMOVED ||
           code == HF_ESESSIONDELETED;
}

/* The call of the action, inline. False: the worker has died. */
static bool make_call(struct drives *d, struct drives_actor *actor)
{
    struct drives_worker *w = actor->worker;
    const char *what = hf_drive_action_name(w->job_action.kind);
    int rc = 0;
    drives_before_call(d, true);
    if (w->job_action.kind == HF_DRIVE_STORE)
        rc = store_step(d, w);
    else if (w->job_action.kind == HF_DRIVE_COMMIT)
        rc = store_commit(d, w);
    else if (w->job_action.kind == HF_DRIVE_BLOB) {
        hf_session_answer_free(w->blob);
        w->blob = NULL;
        rc = hf_session_blob_get(d->store, w->job_action.hash, &w->blob, NULL);
        drives_mark(d, DRIVES_MARK_FETCHED);
    } else
        rc = hand_back(d, w);
    if (is_lost(rc))
        drives_mark(d, DRIVES_MARK_STALE_REFUSED);
    if (!drives_after_call(d, what, rc)) {
        die(d, actor);
        return false;
    }
    drives_say(d, "worker %d: %s of %s: %s", (int)(actor - d->actors), what,
               session_id(w), rc ? hf_err_wire(rc) : "ok");
    w->job = 2;
    w->job_code = rc;
    w->job_at = d->mono + some(d, drives_fault(d, DRIVES_LATE, 20) ? 2500 : 30);
    return true;
}

static void tell_job(struct drives *d, struct drives_worker *w)
{
    struct hf_drive_event event = { .kind = HF_DRIVEN_STORED, .code = w->job_code };
    w->job = 0;
    if (w->job_action.kind == HF_DRIVE_BACK)
        return;
    if (w->job_action.kind == HF_DRIVE_BLOB) {
        event.kind = HF_DRIVEN_FETCHED;
        if (w->blob)
            event.bytes = w->blob->blob;
    }
    bool cancel = w->cancel_requested && w->job_code == 0;
    w->cancel_requested = false;
    if (is_lost(w->job_code))
        event = (struct hf_drive_event){ .kind = HF_DRIVEN_LEASE_LOST };
    feed(d, w, event);
    if (cancel) /* before anything new begins */
        feed_cancel(d, w, HF_STATUS_NONE);
}

/* ---- effects ------------------------------------------------------------------------ */

static struct drives_out *new_out(struct drives *d, struct drives_worker *w)
{
    for (size_t i = 0; i < DRIVES_OUT; i++)
        if (!w->outs[i].used) {
            w->outs[i] = (struct drives_out){ .used = true,
                                              .due = d->mono + some(d, 400) };
            return &w->outs[i];
        }
    abort();
}

/* The lease is certainly held; otherwise the drive is told. */
static bool still_held(struct drives *d, struct drives_worker *w)
{
    if (d->mono < w->valid_until)
        return true;
    feed(d, w, (struct hf_drive_event){ .kind = HF_DRIVEN_LEASE_LOST });
    return false;
}

static void start_model(struct drives *d, struct drives_worker *w,
                        const struct hf_drive_action *action)
{
    char key[HF_EFFECT_KEY_ROOM];
    struct drives_out *out = new_out(d, w);
    hf_effect_key(action->id, NULL, 0, key);
    out->model = action->id;
    out->attempt = action->request->attempt;
    out->iteration = action->request->iteration;
    if (out->iteration > (uint64_t)w->plan->round_count) {
        drives_violate(d, "%s: a model call after the final answer", session_id(w));
        out->iteration = (uint64_t)w->plan->round_count;
    }
    drives_judge_effect(d, w, key, HF_RECOVERY_KEYED);
}

/* What a deferred call starts outside has the key under which its end is told. */
static void take_key(struct drives *d, const struct drives_worker *w, const char *name)
{
    char id[HF_WAIT_ID_TEXT];
    struct drives_wait *wait = NULL;
    if (hf_wait_id(w->loaded->turn->turn_id, HF_WAIT_TOOL, name, id, NULL) == 0)
        wait = drives_wait_of(d, id);
    if (!wait)
        return;
    wait->session = w->session;
    snprintf(wait->name, sizeof(wait->name), "%s", name);
    d->judging = true;
    if (hf_wait_key(d->store, id, wait->key, NULL))
        drives_violate(d, "no key of %s", id);
    d->judging = false;
}

static void start_tool(struct drives *d, struct drives_worker *w,
                       const struct hf_drive_call *call)
{
    const struct hf_tool *tool = hf_toolset_find(d->tools, call->tool);
    struct drives_out *out = new_out(d, w);
    hf_effect_key(call->key.effect, call->key.call_id, call->key.attempt, out->key);
    snprintf(out->call_id, sizeof(out->call_id), "%s", call->key.call_id);
    out->attempt = (uint32_t)call->key.attempt;
    out->probe = call->probe;
    out->call = drives_call_of(w->plan, call->tool, call->args);
    if (!out->call) {
        drives_violate(d, "%s: %s was called, and the model did not ask for it",
                       session_id(w), call->tool);
        out->used = false;
        return;
    }
    if (call->probe) {
        struct drives_key *key = drives_key_of(d, session_id(w), w->loaded->turn->turn_id,
                                               out->key);
        drives_mark(d, DRIVES_MARK_PROBED);
        out->happened = key && key->performed > 0;
        return;
    }
    drives_judge_effect(d, w, out->key, tool->recovery);
    if (out->call->tool == DRIVES_TOOL_LATER)
        take_key(d, w, out->key);
}

/* What is stopped answers at once. */
static void stop_model(struct drives_worker *w, uint64_t model)
{
    for (size_t i = 0; i < DRIVES_OUT; i++)
        if (w->outs[i].used && w->outs[i].model == model)
            w->outs[i].due = 1;
}

static void stop_tool(struct drives_worker *w, const char *call_id)
{
    for (size_t i = 0; i < DRIVES_OUT; i++)
        if (w->outs[i].used && w->outs[i].call &&
            strcmp(w->outs[i].call_id, call_id) == 0)
            w->outs[i].due = 1;
}

static void end_out(struct drives *d, struct drives_worker *w, struct drives_out *out)
{
    struct hf_drive_event event = { .wall_ms = d->wall, .mono_ms = d->mono };
    struct drives_out now = *out;
    out->used = false;
    if (w->ended)
        return;
    if (now.call)
        drives_say(d, "%s: %s%s answers%s", session_id(w), now.probe ? "probe " : "",
                   now.key, now.again ? " again" : "");
    if (now.sync)
        feed(d, w, (struct hf_drive_event){ .kind = HF_DRIVEN_SYNCED });
    else if (now.model)
        drives_reply(w, &now, event);
    else
        drives_tool_answers(w, &now, event);
    /* An answer is for the call that is out: of one that is tried again no second one may come. */
    bool once = !now.call || now.again || now.probe || now.call->fails > 0;
    if (!once && drives_fault(d, DRIVES_TWICE, 6)) {
        struct drives_out *more = new_out(d, w);
        hf_ms due = more->due;
        *more = now;
        more->due = due;
        more->again = true;
    }
}

/* ---- actions ------------------------------------------------------------------------ */

/* A drive whose lease is lost stores nothing and begins nothing. */
static void judge_lost(struct drives *d, const struct drives_worker *w,
                       enum hf_drive_action_kind kind)
{
    if (w->lost &&
        (kind == HF_DRIVE_STORE || kind == HF_DRIVE_COMMIT || kind == HF_DRIVE_MODEL ||
         kind == HF_DRIVE_TOOL || kind == HF_DRIVE_BACK))
        drives_violate(d, "%s: %s after the lease was lost", session_id(w),
                       hf_drive_action_name(kind));
}

static void do_action(struct drives *d, struct drives_worker *w,
                      const struct hf_drive_action *action)
{
    switch (action->kind) {
    case HF_DRIVE_STORE:
    case HF_DRIVE_COMMIT:
    case HF_DRIVE_BLOB:
    case HF_DRIVE_BACK:
        w->job_action = *action;
        w->job = 1;
        w->job_at = d->mono + some(d, drives_fault(d, DRIVES_LATE, 20) ? 2500 : 30);
        break;
    case HF_DRIVE_MODEL:
        if (still_held(d, w))
            start_model(d, w, action);
        break;
    case HF_DRIVE_TOOL:
        if (still_held(d, w))
            start_tool(d, w, action->call);
        break;
    case HF_DRIVE_STOP_MODEL: stop_model(w, action->id); break;
    case HF_DRIVE_STOP_TOOL: stop_tool(w, action->call->key.call_id); break;
    case HF_DRIVE_SYNC: new_out(d, w)->sync = true; break;
    case HF_DRIVE_TIMER:
        w->timer = action->due_ms > d->wall ? d->mono + action->due_ms - d->wall
                                            : d->mono;
        break;
    case HF_DRIVE_END: w->ended = true; break;
    case HF_DRIVE_EMIT: break;
    }
}

/* False: the worker has died. */
static bool act(struct drives *d, struct drives_actor *actor,
                const struct hf_drive_action *action)
{
    if (action->kind == HF_DRIVE_EMIT)
        return true;
    drives_note(d, (uint64_t)action->kind);
    judge_lost(d, actor->worker, action->kind);
    if (killed(d, actor))
        return false;
    do_action(d, actor->worker, action);
    return !killed(d, actor);
}

static void sooner(hf_ms at, hf_ms *io_at)
{
    if (at && at < *io_at)
        *io_at = at;
}

static void rest(struct drives *d, struct drives_actor *actor)
{
    const struct drives_worker *w = actor->worker;
    hf_ms at = w->ended ? w->job_at : w->renew_at;
    for (size_t i = 0; i < DRIVES_OUT && !w->ended; i++)
        if (w->outs[i].used)
            sooner(w->outs[i].due, &at);
    sooner(w->ended ? 0 : w->timer, &at);
    sooner(w->job ? w->job_at : 0, &at);
    sooner(w->ended ? 0 : w->give_up_at, &at);
    actor->wake_at = at > d->mono ? at : d->mono;
    if (drives_fault(d, DRIVES_STOP, 80))
        actor->wake_at = d->mono + DRIVES_TTL_MS / 2 + some(d, 3 * DRIVES_TTL_MS);
}

/* Takes actions until there are none. False: the worker has died, or its turn is over. */
static bool pump(struct drives *d, struct drives_actor *actor)
{
    struct drives_worker *w = actor->worker;
    struct hf_drive_action action;
    while (!w->ended && hf_drive_next(w->drive, &action))
        if (!act(d, actor, &action))
            return false;
    if (w->ended && w->job != 1) {
        drives_worker_drop(d, w);
        actor->wake_at = d->mono + some(d, 200);
        return false;
    }
    rest(d, actor);
    return true;
}

/* ---- a step ------------------------------------------------------------------------- */

/* False: the worker has died. */
static bool renew(struct drives *d, struct drives_actor *actor)
{
    struct drives_worker *w = actor->worker;
    struct hf_session_renewal one = { .session_id = session_id(w),
                                      .token = w->claim->token };
    hf_ms sent = d->mono;
    drives_before_call(d, true);
    int rc = hf_session_renew_all(d->store, &one, 1, NULL);
    if (!drives_after_call(d, "renewal", rc)) {
        die(d, actor);
        return false;
    }
    w->renew_at = d->mono + DRIVES_TTL_MS / 3;
    if (rc == 0 && one.code == 0)
        w->valid_until = sent + one.lease_remaining_ms;
    if ((rc == 0 && one.code) || d->mono >= w->valid_until)
        feed(d, w, (struct hf_drive_event){ .kind = HF_DRIVEN_LEASE_LOST });
    else if (rc == 0 && one.cancel_requested)
        feed_cancel(d, w, HF_STATUS_NONE);
    return true;
}

static void tell_outs(struct drives *d, struct drives_worker *w)
{
    for (size_t i = 0; i < DRIVES_OUT; i++)
        if (w->outs[i].used && w->outs[i].due <= d->mono)
            end_out(d, w, &w->outs[i]);
}

static void maybe_stop(struct drives *d, struct drives_worker *w)
{
    if (w->give_up_at && w->give_up_at <= d->mono) {
        w->give_up_at = 0;
        feed(d, w, (struct hf_drive_event){ .kind = HF_DRIVEN_GIVE_UP });
    }
    if (w->stopping || !drives_fault(d, DRIVES_SHUTDOWN, 100))
        return;
    w->stopping = true;
    w->give_up_at = d->mono + some(d, 3000);
    feed(d, w, (struct hf_drive_event){ .kind = HF_DRIVEN_STOP });
}

void drives_worker_step(struct drives *d, struct drives_actor *actor)
{
    struct drives_worker *w = actor->worker;
    if (!w->drive) {
        claim(d, actor);
        return;
    }
    if (drives_fault(d, DRIVES_NOMEM, 60))
        w->fail_alloc = 1 + (int64_t)drives_roll(&d->dice, 40);
    if (w->job == 1 && w->job_at <= d->mono) {
        if (!make_call(d, actor))
            return;
    } else if (w->job == 2 && w->job_at <= d->mono)
        tell_job(d, w);
    tell_outs(d, w);
    if (w->timer && w->timer <= d->mono) {
        w->timer = 0;
        feed(d, w, (struct hf_drive_event){ .kind = HF_DRIVEN_TIMER });
    }
    if (w->renew_at <= d->mono && !w->ended && !renew(d, actor))
        return;
    maybe_stop(d, w);
    w->fail_alloc = pump(d, actor) ? w->fail_alloc : 0;
}
