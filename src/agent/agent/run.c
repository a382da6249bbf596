/* Runs: one input, stored first and then driven here, or awaited from another worker. */
#include "agent/agent/agent.h"

#include <string.h>

#include <holdfast/process.h>
#include <holdfast/turn_json.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/sized.h"
#include "base/text.h"

#define LOOK_MS 100  /* between two looks at who drives the input */
#define AWAIT_MS 200 /* how long one look waits for an end elsewhere */

struct run {
    struct agent_work work;
    struct hf_agent *agent;
    struct hf_arena arena;
    const char *session_id;
    const char *work_id; /* NULL: until the session has nothing to do */
    const char *turn_id; /* that ended here last, or was seen to be open */
    bool ended;
    bool looking;        /* a look is on the executor */
    bool cancel_asked;   /* hf_agent_cancel was called */
    bool cancel_wanted;  /* and the turn is not driven here */
    bool look_cancels;   /* the look asks for it */
    bool look_cancelled; /* and has done so */
    struct hf_timer timer;
    bool looked_ended;
    char looked_turn[64]; /* the open turn, where no input was sent; "": none */
    int looked_code;
    struct hf_err looked_err;
};

/* ---- before it is driven ------------------------------------------------------------ */

/* The session, made if it is not there. */
static int find_session(struct run *run, const char *session_id, struct hf_err *err)
{
    struct hf_session_answer *answer = NULL;
    struct hf_store *store = run->agent->config.store;
    const char *name = run->agent->config.name;
    struct hf_session_spec fresh = { .size = sizeof(fresh),
                                     .session_id = session_id,
                                     .agent = name };
    int rc = session_id ? hf_session_head(store, session_id, &answer, err) : HF_ENOTFOUND;
    if (rc == HF_ENOTFOUND)
        rc = hf_session_create(store, NULL, &fresh, &answer, err);
    if (rc)
        return rc;
    const struct hf_session *session = &answer->sessions[0];
    run->session_id = hf_arena_text(&run->arena, session->session_id);
    if (!run->session_id)
        rc = hf_fail_plain(err, HF_ENOMEM);
    else if (session->deleted_at)
        rc = hf_fail(err, HF_ESESSIONDELETED, "session_id", "session %.100s was deleted",
                     session_id);
    else if (!hf_same(session->agent, name))
        rc = hf_fail(err, HF_ECONFLICT, "session_id",
                     "session %.80s belongs to agent %.60s, and not to %.60s", session_id,
                     session->agent, name);
    hf_session_answer_free(answer);
    return rc;
}

/* The JSON of a user's message. Its id is the key, so that a repeat is the same record. */
static int message_json(const struct hf_agent_run *given, struct hf_bytes *ret_json,
                        struct hf_err *err)
{
    char fresh[HF_NONCE_TEXT];
    int rc = hf_nonce(hf_random_system(), fresh, err);
    if (rc)
        return rc;
    struct hf_part part = { .content = { given->text, strlen(given->text) } };
    struct hf_message message = { .id = given->source_key ? given->source_key : fresh,
                                  .parts = &part,
                                  .part_count = 1 };
    struct hf_record record = { .message = &message };
    return hf_record_encode(NULL, &record, ret_json, err);
}

static int send_input(struct run *run, const struct hf_agent_run *given,
                      struct hf_err *err)
{
    struct hf_bytes json = { 0 };
    struct hf_answer *sent = NULL;
    if (!given->text && !given->message)
        return 0;
    int rc = given->text ? message_json(given, &json, err) : 0;
    const char *text = json.at ? hf_arena_copy(&run->arena, json.at, json.len)
                               : given->message;
    hf_bytes_free(&json);
    if (rc == 0 && !text)
        rc = hf_fail_plain(err, HF_ENOMEM);
    if (rc)
        return rc;
    struct hf_session_send send = { .size = sizeof(send),
                                    .session_id = run->session_id,
                                    .source_key = given->source_key,
                                    .message = text };
    rc = hf_session_send(run->agent->config.store, NULL, &send, &sent, err);
    if (rc)
        return rc;
    run->work_id = hf_arena_text(&run->arena, hf_answer_at(sent, 0)->work.work_id);
    hf_answer_free(sent);
    return run->work_id ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

/* ---- while it is driven -------------------------------------------------------------- */

/* The turn that the input is in, or the open one where none was sent. A unit that runs after the
 * head was read runs in a turn that was open then. NULL: nothing is left to cancel. */
static int turn_to_cancel(struct run *run, struct hf_arena *arena, const char **ret_turn,
                          struct hf_err *err)
{
    struct hf_store *store = run->agent->config.store;
    struct hf_session_answer *head = NULL;
    struct hf_answer *unit = NULL;
    enum hf_status status = HF_STATUS_RUNNING;
    int rc = hf_session_head(store, run->session_id, &head, err);
    if (rc == 0 && run->work_id)
        rc = hf_work_get(store, NULL, run->work_id, &unit, err);
    if (rc == 0 && unit)
        status = hf_status_of(hf_answer_at(unit, 0)->work.status);
    const char *turn = rc == 0 ? head->sessions[0].turn_id : NULL;
    if (status == HF_STATUS_QUEUED)
        turn = run->work_id; /* not begun */
    else if (hf_status_terminal(status))
        turn = NULL;
    *ret_turn = turn ? hf_arena_text(arena, turn) : NULL;
    if (turn && !*ret_turn)
        rc = hf_fail_plain(err, HF_ENOMEM);
    hf_answer_free(unit);
    hf_session_answer_free(head);
    return rc;
}

/* Asks the store to cancel the turn; whichever worker drives it sees that. */
static int cancel_elsewhere(struct run *run, struct hf_err *err)
{
    struct hf_session_cancel request = { .size = sizeof(request),
                                         .session_id = run->session_id };
    enum hf_session_turn_cancel answer = HF_TURN_CANCEL_COUNT;
    struct hf_arena arena;
    hf_arena_init_small(&arena, run->arena.alloc, 256, 256);
    int rc = turn_to_cancel(run, &arena, &request.turn_id, err);
    if (rc == 0 && request.turn_id)
        rc = hf_session_cancel_turn(run->agent->config.store, NULL, &request, &answer,
                                    err);
    hf_arena_fini(&arena);
    return rc;
}

/* On a thread of the executor. The input of a turn that was cancelled while it waited has ended
 * before its turn: that ends with the commit of the next owner. */
static void look(void *user)
{
    struct run *run = user;
    struct hf_err ignored = { 0 }; /* the next look asks again */
    if (run->look_cancels)
        run->look_cancelled = cancel_elsewhere(run, &ignored) == 0;
    struct hf_store *store = run->agent->config.store;
    struct hf_answer *unit = NULL;
    struct hf_session_answer *head = NULL;
    int rc = 0;
    if (run->work_id)
        rc = hf_process_await(store, NULL, run->work_id, AWAIT_MS, &unit,
                              &run->looked_err);
    if (rc == 0 && (unit || !run->work_id))
        rc = hf_session_head(store, run->session_id, &head, &run->looked_err);
    run->looked_code = rc;
    const char *turn = head && !run->work_id ? head->sessions[0].turn_id : NULL;
    size_t len = turn ? strlen(turn) : 0;
    len = len < sizeof(run->looked_turn) ? len : 0;
    memcpy(run->looked_turn, turn ? turn : "", len);
    run->looked_turn[len] = 0;
    run->looked_ended = head && (unit ? !hf_same(head->sessions[0].turn_id, run->work_id)
                                      : !head->sessions[0].turn_id &&
                                            !head->sessions[0].ready_at);
    hf_answer_free(unit);
    hf_session_answer_free(head);
}

static void end_run(struct run *run)
{
    run->ended = true;
    agent_work_stop(&run->work, 0); /* the next input of the session is not its matter */
}

static void on_look(void *user);

static bool cancel_here(struct run *run)
{
    static const struct hf_evidence evidence = { .request_id = "caller",
                                                 .origin = "caller" };
    return hf_worker_cancel(run->work.worker, run->session_id, &evidence) == 0;
}

static void look_later(struct run *run)
{
    struct hf_task task = { run, on_look };
    if (!run->work.stopping &&
        hf_timer_start(run->agent->config.loop, &run->timer, LOOK_MS, &task))
        agent_work_stop(&run->work, 0); /* no memory: the caller may ask again */
}

static void on_looked(void *user)
{
    struct run *run = user;
    run->looking = false;
    if (run->look_cancelled)
        run->cancel_wanted = false; /* otherwise the next look asks again */
    if (run->looked_turn[0] && !hf_same(run->turn_id, run->looked_turn))
        run->turn_id = hf_arena_text(&run->arena, run->looked_turn);
    if (run->looked_ended ||
        (run->looked_code && hf_err_class(run->looked_code) == HF_CLASS_TERMINAL))
        end_run(run);
    else
        look_later(run);
}

/* Nothing is looked up while the session is driven here: its end will be told. */
static void on_look(void *user)
{
    struct run *run = user;
    struct hf_task work = { run, look }, done = { run, on_looked };
    if (run->work.stopping)
        return;
    bool held = hf_worker_held(run->work.worker) > 0;
    if (held && run->cancel_wanted)
        run->cancel_wanted = !cancel_here(run); /* it was taken over meanwhile */
    run->look_cancels = run->cancel_wanted;
    run->look_cancelled = false;
    if (held || hf_loop_work(run->agent->config.loop, &work, &done, NULL))
        look_later(run);
    else
        run->looking = true;
}

static void on_heard(void *user, const struct hf_worker_event *event)
{
    struct run *run = user;
    if (event->kind != HF_WORKER_TURN_ENDED)
        return;
    run->turn_id = hf_arena_text(&run->arena, event->turn_id);
    if (hf_same(run->work_id, event->turn_id)) /* a turn has the id of its first input */
        end_run(run);
}

/* The run was left before its end: a cancel that was asked for must be recorded, since this process
 * cannot ask again. */
static int leave_cancelled(struct run *run, struct hf_err *err)
{
    struct hf_err why = { 0 };
    int rc = cancel_elsewhere(run, &why);
    if (rc)
        hf_fail(err, rc, NULL, "the turn continues, its cancel could not be recorded: %s",
                why.message);
    return rc;
}

static int drive(struct run *run, struct hf_err *err)
{
    struct hf_worker_config config = { .session_id = run->session_id, .turns = 1 };
    int rc = agent_work_begin(&run->work, &run->arena, config, err);
    if (rc)
        return rc;
    if (run->work_id)
        look_later(run);
    else
        on_look(run);
    agent_work_end(&run->work);
    while (run->looking)
        (void)hf_loop_step(run->agent->config.loop, -1);
    hf_timer_stop(run->agent->config.loop, &run->timer);
    if (run->cancel_asked && !run->ended) {
        rc = leave_cancelled(run, err);
        if (rc)
            return rc;
    }
    if (run->looked_code && hf_err_class(run->looked_code) == HF_CLASS_TERMINAL) {
        if (err)
            *err = run->looked_err;
        return run->looked_code;
    }
    return 0;
}

/* ---- the call ------------------------------------------------------------------------ */

static int check_run(const struct hf_agent *agent, const struct hf_agent_run *given,
                     struct hf_err *err)
{
    int rc = hf_sized_check(given->size, sizeof(*given), sizeof(*given), err);
    if (rc)
        return rc;
    if (!agent->setup)
        return hf_fail(err, HF_ENOTCONFIGURED, "model", "agent %.100s has no model",
                       agent->config.name);
    if (agent->work)
        return hf_fail(err, HF_EBUSY, "agent", "agent %.100s runs already",
                       agent->config.name);
    if (given->text && given->message)
        return hf_fail(err, HF_EINVAL, "message", "text and message exclude each other");
    if (!given->text && !given->message && !given->session_id)
        return hf_fail(err, HF_EINVAL, "session_id",
                       "without a message the session to finish is required");
    return 0;
}

int hf_agent_run(struct hf_agent *agent, const struct hf_agent_run *given,
                 struct hf_agent_report **ret_report, struct hf_err *err)
{
    struct run run = { .agent = agent };
    struct hf_agent_report *report = NULL;
    int rc = check_run(agent, given, err);
    if (rc)
        return rc;
    run.work = (struct agent_work){
        .agents = &run.agent, .count = 1, .user = &run, .heard = on_heard
    };
    hf_arena_init_small(&run.arena, agent->arena.alloc, 1024, 16384);
    rc = find_session(&run, given->session_id, err);
    if (rc == 0)
        rc = send_input(&run, given, err);
    if (rc == 0)
        rc = drive(&run, err);
    if (rc == 0)
        rc = agent_report_run(agent->config.store,
                              &(struct agent_ran){ .session_id = run.session_id,
                                                   .work_id = run.work_id,
                                                   .turn_id = run.turn_id,
                                                   .ended = run.ended },
                              &report, err);
    hf_arena_fini(&run.arena);
    if (rc == 0)
        *ret_report = report;
    return rc;
}

bool hf_agent_cancel(struct hf_agent *agent)
{
    const struct agent_work *work = agent->work;
    if (!work || !work->heard || work->stopping)
        return false;
    struct run *run = work->user;
    run->cancel_asked = true;
    run->cancel_wanted = !cancel_here(run); /* then by the store, at the next look */
    return true;
}
