/* A worker on a real store, with a model that the test speaks for. */
#include "support/unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>

#include <holdfast/process.h>
#include <holdfast/sys/store.h>
#include <holdfast/worker.h>

#include "base/ident.h"
#include "support/pg.h"

#define TEXT(s) ((struct hf_span){ (s), strlen(s) })

/* ---- a model ------------------------------------------------------------------------- */

/* It answers when the test says so; one call is out at a time. */
struct model {
    struct hf_provider provider;
    struct hf_model_sink sink;
    uint64_t calls; /* made so far */
    uint64_t out;   /* the number of the one that is out; 0: none */
};

static const char *model_name(const struct hf_provider *provider)
{
    (void)provider;
    return "spoken";
}

static int model_start(struct hf_provider *provider, const struct hf_model_call *call,
                       const struct hf_model_sink *sink, uint64_t *ret_call,
                       struct hf_err *err)
{
    struct model *model = (struct model *)(void *)provider;
    (void)call;
    (void)err;
    model->sink = *sink;
    *ret_call = model->out = ++model->calls;
    return 0;
}

static int model_cancel(struct hf_provider *provider, uint64_t call)
{
    struct model *model = (struct model *)(void *)provider;
    bool there = model->out == call;
    model->out = there ? 0 : model->out;
    return there ? 0 : HF_ENOTFOUND;
}

static int model_close(struct hf_provider *provider, const struct hf_closed *closed)
{
    (void)provider;
    (void)closed;
    return 0;
}

static void model_free(struct hf_provider *provider)
{
    (void)provider;
}

static const struct hf_provider_methods model_methods = { model_name, model_start,
                                                          model_cancel, model_close,
                                                          model_free };

/* ---- the world ----------------------------------------------------------------------- */

static struct world {
    struct hf_store *store;
    struct hf_loop *loop;
    struct model model;
    struct hf_toolset *tools;
    struct hf_surface *surface;
    struct hf_setup *setup;
    struct hf_worker_agent agent;
    struct hf_worker_config config;
    struct hf_worker *worker;
    bool stopped;
    bool stops; /* the host stops the worker again whenever it is told something */
    char log[4096];
    int added; /* tools of the source */
} world;

static struct hf_err err;

static void must(int rc)
{
    if (rc)
        fail_msg("%s", err.message);
}

static void on_stopped(void *user)
{
    bool *stopped = user;
    *stopped = true;
}

static void on_heard(void *user, const struct hf_worker_event *event)
{
    size_t used = strlen(world.log);
    struct hf_task stopped = { &world.stopped, on_stopped };
    if (world.stops)
        hf_worker_stop(world.worker, 0, &stopped);
    (void)user;
    if (event->kind == HF_WORKER_EMIT || event->kind == HF_WORKER_TEXT ||
        event->kind == HF_WORKER_RESET)
        return;
    snprintf(world.log + used, sizeof(world.log) - used, "%s%s%s\n",
             hf_worker_event_name(event->kind), event->call ? " " : "",
             event->call ? event->call->tool : "");
}

static void answer_args(void *user, struct hf_invocation *call)
{
    (void)user;
    assert_int_equal(hf_invocation_value(call, hf_invocation_args(call)), 0);
}

static int list_tools(void *user, struct hf_toolset *into, struct hf_err *why)
{
    struct hf_tool tool = { .size = sizeof(tool),
                            .recovery = HF_RECOVERY_SAFE,
                            .run = answer_args };
    (void)user;
    tool.name = "one";
    int rc = hf_toolset_add(into, &tool, why);
    tool.name = "two";
    return rc || world.added == 0 ? rc : hf_toolset_add(into, &tool, why);
}

static const struct hf_tool_source source = { NULL, list_tools };

static void make_setup(bool sync)
{
    struct hf_turn_config config = { .size = sizeof(config),
                                     .protocol = hf_protocol_standard(),
                                     .surface = world.surface,
                                     .model = "model-1",
                                     .turn_budget = 8,
                                     .sync = sync };
    hf_setup_free(world.setup);
    must(hf_setup_new(&config, &world.setup, &err));
    world.agent.setup = world.setup;
}

static int open_world(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    world.model.provider.methods = &model_methods;
    must(hf_store_open("sqlite::memory:", NULL, &world.store, &err));
    must(hf_loop_new(NULL, &world.loop, &err));
    must(hf_toolset_new(NULL, &world.tools, &err));
    must(hf_toolset_ask(world.tools, &source, &err));
    must(hf_surface_new(NULL, TEXT("Be brief."), hf_toolset_json(world.tools),
                        &world.surface, &err));
    make_setup(false);
    world.agent = (struct hf_worker_agent){ .name = "a",
                                            .setup = world.setup,
                                            .provider = &world.model.provider,
                                            .model = "model-1",
                                            .tools = world.tools,
                                            .prompt = TEXT("Be brief.") };
    world.config = (struct hf_worker_config){ .size = sizeof(world.config),
                                              .loop = world.loop,
                                              .store = world.store,
                                              .agents = &world.agent,
                                              .agent_count = 1,
                                              .poll_ms = 5,
                                              .heard = on_heard };
    return 0;
}

static void start_worker(void)
{
    must(hf_worker_new(&world.config, &world.worker, &err));
}

/* Steps until the worker, which was told to stop, has stopped. */
static void free_worker(void)
{
    while (!world.stopped)
        (void)hf_loop_step(world.loop, -1);
    hf_worker_free(world.worker);
    world.worker = NULL;
    while (hf_loop_step(world.loop, 0)) /* messages that are still on their way */
        ;
}

static void stop_worker(hf_ms grace_ms)
{
    struct hf_task stopped = { &world.stopped, on_stopped };
    world.stopped = false;
    hf_worker_stop(world.worker, grace_ms, &stopped);
    free_worker();
}

static int close_world(void **state)
{
    (void)state;
    if (world.worker)
        stop_worker(0);
    hf_setup_free(world.setup);
    hf_surface_free(world.surface);
    hf_toolset_unref(world.tools);
    hf_loop_free(world.loop);
    hf_store_close(world.store);
    return 0;
}

static void send_message(const char *session, const char *text)
{
    char message[256];
    struct hf_session_answer *made = NULL;
    struct hf_answer *sent = NULL;
    struct hf_session_spec fresh = { .size = sizeof(fresh),
                                     .session_id = session,
                                     .agent = "a" };
    must(hf_session_create(world.store, NULL, &fresh, &made, &err));
    hf_session_answer_free(made);
    snprintf(message, sizeof(message),
             "{\"message\":{\"id\":\"u1\",\"parts\":[{\"content\":\"%s\"}]}}", text);
    struct hf_session_send send = { .size = sizeof(send),
                                    .session_id = session,
                                    .message = message };
    must(hf_session_send(world.store, NULL, &send, &sent, &err));
    hf_answer_free(sent);
}

/* Steps until a model call is out. */
static void await_model(void)
{
    while (world.model.out == 0)
        (void)hf_loop_step(world.loop, -1);
}

static void await_log(const char *lines)
{
    while (strlen(world.log) < strlen(lines))
        (void)hf_loop_step(world.loop, -1);
    assert_string_equal(world.log, lines);
    world.log[0] = '\0';
}

static void reply(const struct hf_part *part)
{
    struct hf_llm_response response = { .size = sizeof(response),
                                        .parts = part,
                                        .part_count = 1,
                                        .usage = { .input = 3, .output = 2 } };
    struct hf_model_event event = { .kind = HF_MODEL_END, .response = &response };
    response.reason = part->kind == HF_PART_TOOL_CALL ? HF_REASON_TOOL_USE
                                                      : HF_REASON_STOP;
    world.model.out = 0;
    world.model.sink.event(world.model.sink.user, &event);
}

static void say(const char *text)
{
    struct hf_part part = { .content = TEXT(text) };
    reply(&part);
}

static void ask(const char *tool)
{
    struct hf_part part = {
        .kind = HF_PART_TOOL_CALL, .call_id = "p1", .tool = tool, .content = TEXT("{}")
    };
    reply(&part);
}

static struct hf_session_answer *loaded(const char *session)
{
    struct hf_session_answer *answer = NULL;
    struct hf_session_load load = { .size = sizeof(load), .session_id = session };
    must(hf_session_load(world.store, &load, &answer, &err));
    return answer;
}

/* ---- turns --------------------------------------------------------------------------- */

static void a_message_is_answered_and_committed(void **state)
{
    (void)state;
    send_message("s", "hi");
    start_worker();
    await_model();
    ask("one");
    await_model();
    say("hello");
    await_log("claimed\ntool_started one\ntool_ended one\nturn_ended\n");
    struct hf_session_answer *s = loaded("s");
    assert_int_equal(s->sessions[0].head_revision, 1);
    assert_int_equal(s->node_count, 4);
    assert_non_null(strstr(s->nodes[3].json, "hello"));
    assert_null(s->turn);
    assert_int_equal(s->usage_count, 1);
    assert_string_equal(s->usage[0].source, "model");
    assert_int_equal(s->usage[0].usage.output, 4);
    hf_session_answer_free(s);
}

static void a_session_goes_on_with_its_next_message(void **state)
{
    (void)state;
    send_message("s", "one");
    send_message("s", "two");
    start_worker();
    await_model();
    say("1");
    await_model();
    say("2");
    while (hf_worker_held(world.worker) > 0) /* the next claim may be told of first */
        (void)hf_loop_step(world.loop, -1);
    struct hf_session_answer *s = loaded("s");
    assert_int_equal(s->sessions[0].head_revision, 2);
    assert_int_equal(s->node_count, 4);
    hf_session_answer_free(s);
}

static void a_wake_begins_a_turn(void **state)
{
    (void)state;
    struct hf_answer *made = NULL, *ended = NULL;
    struct hf_work_spec unit = { .size = sizeof(unit),
                                 .source = HF_SOURCE_MANUAL,
                                 .source_id = "p1",
                                 .disposition = HF_DISPOSITION_RERUNNABLE };
    struct hf_process_spec process = { .size = sizeof(process),
                                       .work = &unit,
                                       .identity_kind = "shell",
                                       .wake_session = "s" };
    send_message("s", "hi");
    start_worker();
    await_model();
    say("hello");
    await_log("claimed\nturn_ended\n");
    must(hf_process_register(world.store, NULL, &process, &made, &err));
    struct hf_change cancel = { .size = sizeof(cancel),
                                .verb = HF_VERB_CANCEL,
                                .id = hf_answer_at(made, 0)->work.work_id,
                                .reason = "enough" };
    must(hf_work_change(world.store, NULL, &cancel, 1, 0, &ended, &err));
    hf_answer_free(ended);
    hf_answer_free(made);
    await_model(); /* without a message: the end of the process is the cause */
    say("I see");
    await_log("claimed\nturn_ended\n");
    struct hf_session_answer *s = loaded("s");
    assert_int_equal(s->sessions[0].head_revision, 2);
    assert_non_null(strstr(s->nodes[2].json, "\"event\"")); /* the role of a cause */
    hf_session_answer_free(s);
}

/* ---- ways out ------------------------------------------------------------------------ */

static void a_stopped_worker_hands_back_and_another_goes_on(void **state)
{
    (void)state;
    send_message("s", "hi");
    start_worker();
    await_model();
    stop_worker(20);
    await_log("claimed\nback\n");
    struct hf_session_answer *s = loaded("s");
    assert_null(s->sessions[0].owner);
    assert_non_null(s->turn);
    assert_int_equal(s->turn->step, 1);
    assert_int_equal(s->turn->entry_count, 1);
    assert_string_equal(s->turn->entries[0].key, "1");
    assert_int_equal(s->turn->entries[0].status, HF_ENTRY_STARTED);
    assert_string_equal(s->turn->inputs[0].status, "queued"); /* nothing terminal */
    hf_session_answer_free(s);
    start_worker();
    await_model();
    say("hello");
    await_log("claimed\nturn_ended\n");
}

static void a_stop_waits_for_what_runs(void **state)
{
    (void)state;
    struct hf_task stopped = { &world.stopped, on_stopped };
    send_message("s", "hi");
    start_worker();
    await_model();
    hf_worker_stop(world.worker, 60000, &stopped);
    say("hello");
    free_worker();
    await_log("claimed\nturn_ended\n");
}

/* Another claim takes the session once the lease has lapsed; it may take it only then. */
static struct hf_session_answer *steal(const char *session)
{
    struct hf_session_answer *answer = NULL;
    struct hf_session_claim claim = { .size = sizeof(claim), .session_id = session };
    int rc = HF_ESESSIONBUSY;
    while (rc == HF_ESESSIONBUSY)
        rc = hf_session_claim(world.store, NULL, &claim, &answer, &err);
    must(rc);
    return answer;
}

static void a_worker_past_its_lease_commits_nothing(void **state)
{
    (void)state;
    send_message("s", "hi");
    world.config.ttl_ms = 750;
    start_worker();
    await_model();
    struct hf_session_answer *stolen = steal("s"); /* the loop does not run meanwhile */
    say("too late");
    await_log("claimed\nlost\n");
    struct hf_session_answer *s = loaded("s");
    assert_int_equal(s->sessions[0].head_revision, 0);
    assert_int_equal(s->turn->step, 1);
    assert_string_equal(s->sessions[0].owner, stolen->sessions[0].owner);
    hf_session_answer_free(s);
    struct hf_session_back back = { .size = sizeof(back),
                                    .session_id = "s",
                                    .token = stolen->token };
    must(hf_session_hand_back(world.store, NULL, &back, &err));
    hf_session_answer_free(stolen);
    await_model(); /* the next claim finishes the turn */
    say("in time");
    await_log("claimed\nturn_ended\n");
}

/* ---- a save of a newer build ----------------------------------------------------------- */

/* As hf_turn_save would write it in the next version: the version is at byte 9, the digest of all
 * that precedes it at the end. */
static void make_newer(uint8_t *save, size_t len)
{
    save[9]++;
    must(hf_sha256(save, len - HF_DIGEST_BYTES, save + len - HF_DIGEST_BYTES));
}

/* A turn whose last step was stored by a newer build, and that is ready. */
static void leave_newer_save(void)
{
    send_message("s", "hi");
    start_worker();
    await_model();
    stop_worker(20);
    world.model.out = 0;
    world.log[0] = '\0';
    struct hf_session_answer *held = steal("s");
    const struct hf_session_turn *turn = held->turn;
    uint8_t *save = malloc(turn->save.len);
    assert_non_null(save);
    memcpy(save, turn->save.at, turn->save.len);
    make_newer(save, turn->save.len);
    struct hf_session_stepped stepped;
    struct hf_session_step step = { .size = sizeof(step),
                                    .session_id = "s",
                                    .token = held->token,
                                    .turn_id = turn->turn_id,
                                    .step = turn->step,
                                    .node_count = turn->node_count,
                                    .chain = turn->chain,
                                    .save = { (const char *)save, turn->save.len } };
    must(hf_session_step(world.store, NULL, &step, &stepped, &err));
    free(save);
    struct hf_session_back back = { .size = sizeof(back),
                                    .session_id = "s",
                                    .token = held->token };
    must(hf_session_hand_back(world.store, NULL, &back, &err));
    hf_session_answer_free(held);
}

static void wait_half_a_minute(void)
{
    static const char *const agents[] = { "a" };
    struct hf_session_claim claim = { .size = sizeof(claim),
                                      .agents = agents,
                                      .agent_count = 1 };
    struct hf_session_answer *taken = NULL;
    leave_newer_save();
    struct hf_session_answer *s = loaded("s");
    int64_t fence = s->sessions[0].lease_fence, step = s->turn->step;
    hf_session_answer_free(s);
    hf_ms before = hf_store_now(world.store);
    start_worker();
    await_log("claimed\nback\n");
    stop_worker(60000); /* it has handed the session back then */
    hf_ms after = hf_store_now(world.store);
    s = loaded("s");
    assert_in_range(s->sessions[0].ready_at, before + 30000, after + 30000);
    assert_int_equal(s->sessions[0].lease_fence, fence + 1); /* claimed once */
    assert_int_equal(s->turn->step, step);                   /* and nothing was written */
    assert_null(s->sessions[0].owner);
    hf_session_answer_free(s);
    must(hf_session_claim(world.store, NULL, &claim, &taken, &err));
    assert_int_equal(taken->session_count, 0);
    hf_session_answer_free(taken);
}

static void a_newer_save_waits_half_a_minute(void **state)
{
    (void)state;
    wait_half_a_minute();
}

static struct pg_server server; /* it is stopped at exit too */

static void a_newer_save_waits_half_a_minute_on_postgres(void **state)
{
    (void)state;
    pg_server_start(&server);
    hf_store_close(world.store);
    world.config.store = world.store = pg_server_store(&server, "newer");
    wait_half_a_minute();
}

/* ---- a host that stops the worker in a callback, and a store that is slow --------------- */

static struct slow {
    struct hf_store_methods methods;
    const struct hf_store_methods *real;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t renewals; /* since the commit */
    bool committed;
    bool may_return; /* the commit */
} slow = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static int slow_commit(struct hf_store *store, const struct hf_caller *who,
                       const struct hf_session_commit *commit,
                       struct hf_session_committed *ret_committed, struct hf_err *why)
{
    int rc = slow.real->sessions->commit(store, who, commit, ret_committed, why);
    pthread_mutex_lock(&slow.lock);
    slow.committed = true;
    while (!slow.may_return)
        pthread_cond_wait(&slow.changed, &slow.lock);
    pthread_mutex_unlock(&slow.lock);
    return rc;
}

static int counted_renewal(struct hf_store *store, struct hf_session_renewal *renewals,
                           size_t count, struct hf_err *why)
{
    int rc = slow.real->sessions->renew_all(store, renewals, count, why);
    pthread_mutex_lock(&slow.lock);
    slow.renewals += slow.committed;
    pthread_mutex_unlock(&slow.lock);
    return rc;
}

static int64_t renewals(void)
{
    pthread_mutex_lock(&slow.lock);
    int64_t count = slow.renewals;
    pthread_mutex_unlock(&slow.lock);
    return count;
}

/* The second renewal begins after the result of the first one was applied. */
static void a_renewal_that_meets_the_commit_loses_no_lease(void **state)
{
    (void)state;
    struct hf_session_methods session = *world.store->methods->sessions;
    send_message("s", "hi");
    slow.real = world.store->methods;
    slow.methods = *slow.real;
    slow.methods.sessions = &session;
    session.commit = slow_commit;
    session.renew_all = counted_renewal;
    world.config.ttl_ms = 750;
    world.store->methods = &slow.methods;
    start_worker();
    await_model();
    say("hello");
    while (renewals() < 2 && !strstr(world.log, "lost"))
        (void)hf_loop_step(world.loop, -1);
    pthread_mutex_lock(&slow.lock);
    slow.may_return = true;
    pthread_cond_signal(&slow.changed);
    pthread_mutex_unlock(&slow.lock);
    await_log("claimed\nturn_ended\n");
    stop_worker(0);
    world.store->methods = slow.real;
}

static int slow_claim(struct hf_store *store, const struct hf_caller *who,
                      const struct hf_session_claim *claim,
                      struct hf_session_answer *answer, struct hf_err *why)
{
    int rc = slow.real->sessions->claim(store, who, claim, answer, why);
    pthread_mutex_lock(&slow.lock);
    slow.committed = true;
    while (!slow.may_return)
        pthread_cond_wait(&slow.changed, &slow.lock);
    pthread_mutex_unlock(&slow.lock);
    return rc;
}

static void set_slow(bool *flag, bool to)
{
    pthread_mutex_lock(&slow.lock);
    *flag = to;
    pthread_cond_broadcast(&slow.changed);
    pthread_mutex_unlock(&slow.lock);
}

static bool is_out(void)
{
    pthread_mutex_lock(&slow.lock);
    bool out = slow.committed;
    pthread_mutex_unlock(&slow.lock);
    return out;
}

/* The stop and the end of the grace reach the seats that there are. */
static void a_claim_that_returns_after_the_stop_is_handed_back(void **state)
{
    (void)state;
    struct hf_session_methods session = *world.store->methods->sessions;
    struct hf_task stopped = { &world.stopped, on_stopped };
    send_message("s", "hi");
    start_worker();
    await_model();
    stop_worker(20);
    world.log[0] = '\0';
    slow.real = world.store->methods;
    slow.methods = *slow.real;
    slow.methods.sessions = &session;
    session.claim = slow_claim;
    set_slow(&slow.committed, false);
    set_slow(&slow.may_return, false);
    world.store->methods = &slow.methods;
    start_worker();
    while (!is_out())
        (void)hf_loop_step(world.loop, 0);
    world.stopped = false;
    hf_worker_stop(world.worker, 60000, &stopped);
    set_slow(&slow.may_return, true);
    free_worker();
    world.store->methods = slow.real;
    set_slow(&slow.committed, false);
    set_slow(&slow.may_return, false);
    assert_string_equal(world.log, "claimed\nback\n");
    assert_int_equal(world.model.calls, 1); /* the open call is the next worker's */
    struct hf_session_answer *s = loaded("s");
    assert_null(s->sessions[0].owner);
    hf_session_answer_free(s);
}

static int no_hand_back(struct hf_store *store, const struct hf_caller *who,
                        const struct hf_session_back *back, struct hf_err *why)
{
    (void)store;
    (void)who;
    (void)back;
    (void)why;
    return HF_EBUSY;
}

static void a_host_may_stop_the_worker_in_any_callback(void **state)
{
    (void)state;
    struct hf_session_methods session = *world.store->methods->sessions;
    const struct hf_store_methods *real = world.store->methods;
    struct hf_store_methods broken = *real;
    broken.sessions = &session;
    session.hand_back = no_hand_back;
    send_message("s", "hi");
    world.store->methods = &broken; /* before the worker's threads read it */
    start_worker();
    await_model();
    world.stops = true; /* again at "back" and at "fault" */
    stop_worker(0);
    world.store->methods = real;
    await_log("claimed\nback\nfault\n");
}

static void a_host_may_stop_the_worker_when_a_session_is_claimed(void **state)
{
    (void)state;
    send_message("s", "hi");
    world.stops = true;
    start_worker();
    free_worker();
    await_log("claimed\nback\n");
    struct hf_session_answer *s = loaded("s");
    assert_null(s->sessions[0].owner);
    hf_session_answer_free(s);
}

/* ---- tools --------------------------------------------------------------------------- */

static void sources_are_asked_before_each_iteration(void **state)
{
    (void)state;
    make_setup(true);
    world.agent.sources = &source;
    world.agent.source_count = 1;
    send_message("s", "hi");
    start_worker();
    await_model();
    world.added = 1; /* a tool that was not there when the turn began */
    ask("one");
    await_model();
    ask("two");
    await_model();
    say("done");
    await_log("claimed\ntool_started one\ntool_ended one\ntool_started two\ntool_ended "
              "two\nturn_ended\n");
}

/* ---- without a journal --------------------------------------------------------------- */

static void an_inline_turn_begins_again_from_the_last_commit(void **state)
{
    (void)state;
    world.config.host = hf_effect_host_inline();
    world.config.turns = 1; /* no claim is out that could take the session back */
    send_message("s", "hi");
    start_worker();
    await_model();
    ask("one");
    await_model();
    struct hf_session_answer *s = loaded("s");
    assert_int_equal(s->turn->step, 0); /* nothing is stored before the commit */
    assert_int_equal(s->turn->stored_count, 0);
    assert_int_equal(s->turn->entry_count, 0);
    hf_session_answer_free(s);
    stop_worker(0);
    await_log("claimed\ntool_started one\ntool_ended one\nback\n");
    start_worker();
    await_model();
    ask("one"); /* as its promise says, the tool runs a second time */
    await_model();
    say("hello");
    await_log("claimed\ntool_started one\ntool_ended one\nturn_ended\n");
    s = loaded("s");
    assert_int_equal(s->sessions[0].head_revision, 1);
    assert_int_equal(s->node_count, 4);
    assert_int_equal(s->usage[0].usage.output, 4); /* what was lost is not counted */
    hf_session_answer_free(s);
}

static void what_cannot_work_is_refused(void **state)
{
    (void)state;
    struct hf_worker *worker = NULL;
    struct hf_worker_agent twice[] = { world.agent, world.agent };
    world.config.ttl_ms = 1000;
    world.config.renew_ms = 500;
    assert_int_equal(hf_worker_new(&world.config, &worker, &err), HF_EINVAL);
    assert_string_equal(err.field, "ttl_ms");
    world.config.renew_ms = 0;
    world.config.ttl_ms = 749;
    assert_int_equal(hf_worker_new(&world.config, &worker, &err), HF_EINVAL);
    assert_string_equal(err.message, "a lease lasts 750 to 86400000 ms");
    world.config.ttl_ms = 1000;
    world.config.away_ms = 1001; /* a turn would stay resident past its lease's term */
    assert_int_equal(hf_worker_new(&world.config, &worker, &err), HF_EINVAL);
    assert_string_equal(err.field, "away_ms");
    world.config.away_ms = 0;
    world.config.ttl_ms = 0;
    world.config.agents = twice;
    world.config.agent_count = 2;
    assert_int_equal(hf_worker_new(&world.config, &worker, &err), HF_EINVAL);
    assert_string_equal(err.message, "there are two agents named a");
    world.config.agent_count = 0;
    assert_int_equal(hf_worker_new(&world.config, &worker, &err), HF_EINVAL);
    assert_string_equal(err.message, "a worker has 1 to 32 agents");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_message_is_answered_and_committed),
        CASE(a_session_goes_on_with_its_next_message),
        CASE(a_wake_begins_a_turn),
        CASE(a_stopped_worker_hands_back_and_another_goes_on),
        CASE(a_claim_that_returns_after_the_stop_is_handed_back),
        CASE(a_stop_waits_for_what_runs),
        CASE(a_worker_past_its_lease_commits_nothing),
        CASE(a_newer_save_waits_half_a_minute),
        CASE(a_newer_save_waits_half_a_minute_on_postgres),
        CASE(a_renewal_that_meets_the_commit_loses_no_lease),
        CASE(a_host_may_stop_the_worker_in_any_callback),
        CASE(a_host_may_stop_the_worker_when_a_session_is_claimed),
        CASE(sources_are_asked_before_each_iteration),
        CASE(an_inline_turn_begins_again_from_the_last_commit),
        CASE(what_cannot_work_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
