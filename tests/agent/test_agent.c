/* Agents over a real store, on SQLite and on PostgreSQL, with the scripted model. */
#include <holdfast/agent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/pg.h"
#include "support/unit.h"

#define TEXT(s) ((struct hf_span){ (s), strlen(s) })

static struct pg_server server;
static struct hf_err err;

static void must(int rc)
{
    if (rc)
        fail_msg("%s", err.message);
}

/* ---- the world ----------------------------------------------------------------------- */

/* One process: a loop, a model and an agent over the store. */
struct place {
    struct hf_store *store;
    struct hf_loop *loop;
    struct hf_provider *provider;
    struct hf_model *model;
    struct hf_tool_source source;
    struct hf_agent_config config;
    struct hf_agent *agent;
    int tool_runs;
    bool cancel_in_tool;
    bool stop_in_tool;
    char log[4096];
};

static void note(struct place *place, const char *word, struct hf_span more)
{
    size_t used = strlen(place->log);
    (void)snprintf(place->log + used, sizeof(place->log) - used, "%s%s%.*s\n", word,
                   more.len ? " " : "", (int)more.len,
                   more.len ? (const char *)more.at : "");
}

static void on_heard(void *user, const struct hf_worker_event *event)
{
    struct place *place = user;
    char line[64];
    if (event->kind == HF_WORKER_EMIT || event->kind == HF_WORKER_CLAIMED)
        return;
    if (event->kind == HF_WORKER_TOOL_ENDED && event->result) {
        hf_tool_result_line(event->result, sizeof(line), line);
        note(place, "tool_ended", TEXT(line));
        return;
    }
    note(place, hf_worker_event_name(event->kind),
         event->call ? TEXT(event->call->tool) : event->text);
}

static void double_it(void *user, struct hf_invocation *call)
{
    struct place *place = user;
    place->tool_runs++;
    if (place->cancel_in_tool)
        assert_true(hf_agent_cancel(place->agent));
    if (place->stop_in_tool)
        hf_agent_stop(place->agent, 0);
    if (place->cancel_in_tool || place->stop_in_tool)
        return; /* hf_invocation_end follows when it is stopped */
    assert_int_equal(hf_invocation_text(call, TEXT("42\nis it")), 0);
    hf_invocation_end(call);
}

static void stop_it(void *user, struct hf_invocation *call)
{
    (void)user;
    hf_invocation_end(call);
}

static int list_tools(void *user, struct hf_toolset *into, struct hf_err *why)
{
    struct hf_tool tool = { .size = sizeof(tool),
                            .name = "double",
                            .recovery = HF_RECOVERY_SAFE,
                            .user = user,
                            .run = double_it,
                            .asynchronous = true,
                            .stop = stop_it };
    return hf_toolset_add(into, &tool, why);
}

static void open_place(struct place *place, struct hf_store *store)
{
    *place = (struct place){ .store = store };
    place->source = (struct hf_tool_source){ place, list_tools };
    must(hf_loop_new(NULL, &place->loop, &err));
    must(hf_scripted_new(place->loop, 0, &place->provider, &err));
    struct hf_model_config model = { .size = sizeof(model),
                                     .provider = place->provider,
                                     .id = "scripted",
                                     .context_tokens = 100000,
                                     .output_tokens = 1000 };
    must(hf_model_new(&model, &place->model, &err));
    place->config = (struct hf_agent_config){ .size = sizeof(place->config),
                                              .loop = place->loop,
                                              .store = store,
                                              .name = "helper",
                                              .model = place->model,
                                              .prompt = TEXT("Be brief."),
                                              .sources = &place->source,
                                              .source_count = 1,
                                              .poll_ms = 20,
                                              .user = place,
                                              .heard = on_heard };
    must(hf_agent_new(&place->config, &place->agent, &err));
}

static void close_place(struct place *place)
{
    hf_agent_free(place->agent);
    hf_model_free(place->model);
    hf_provider_free(place->provider);
    hf_loop_free(place->loop);
}

static struct hf_agent_report *ran(struct place *place, const char *session,
                                   const char *text)
{
    struct hf_agent_report *report = NULL;
    struct hf_agent_run run = { .size = sizeof(run),
                                .session_id = session,
                                .text = text };
    must(hf_agent_run(place->agent, &run, &report, &err));
    return report;
}

/* Each claim on both engines, on a store of its own. */
static void on_both(const char *name, void (*check)(struct hf_store *store))
{
    char url[400];
    struct hf_store *store = NULL;
    must(hf_store_open("sqlite::memory:", NULL, &store, &err));
    check(store);
    hf_store_close(store);
    must(hf_store_open(pg_server_schema(server.url, name, url), NULL, &store, &err));
    check(store);
    hf_store_close(store);
}

/* ---- runs ---------------------------------------------------------------------------- */

static void check_report(struct hf_store *store)
{
    struct place place;
    open_place(&place, store);
    struct hf_agent_report *report = ran(&place, "s", "use double {\"n\":21}");
    assert_true(report->ended && report->driven_here && report->answered);
    assert_string_equal(report->session_id, "s");
    assert_string_equal(report->outcome, "assistant_message");
    assert_string_equal(report->text, "The tool answered: 42\nis it");
    assert_string_equal(report->turn_id, report->work_id);
    assert_int_equal(report->node_count, 4); /* message, call, result, answer */
    assert_int_equal(report->call_count, 1);
    assert_string_equal(report->calls[0].tool, "double");
    assert_string_equal(report->calls[0].status, "done");
    assert_string_equal(report->calls[0].text, "42\nis it");
    assert_int_equal(report->calls[0].attempt, 1);
    assert_false(report->calls[0].taken_over);
    assert_int_equal(report->issue_count, 0);
    assert_true(report->usage.output > 0);
    assert_true(report->whole_ms >= report->queued_ms);
    assert_string_equal(place.log, "text I will use double.\n"
                                   "tool_started double\n"
                                   "tool_ended 42 is it\n"
                                   "text The tool answered: 42\nis it\n"
                                   "turn_ended\n");
    assert_int_equal(hf_agent_held(place.agent), 0);
    hf_agent_report_free(report);
    report = NULL;
    must(hf_agent_report(store, "s", NULL, &report, &err)); /* as any reader sees it */
    assert_string_equal(report->text, "The tool answered: 42\nis it");
    hf_agent_report_free(report);
    close_place(&place);
}

static void a_run_reports_what_the_store_has(void **state)
{
    (void)state;
    on_both("report", check_report);
}

/* A host's task that is due in each step of the loop, also in the last one of a run. */
struct asking {
    struct place *place;
    struct hf_timer timer;
    size_t most;
    bool over;
};

static void ask_what_is_held(void *user)
{
    struct asking *asking = user;
    struct hf_task again = { asking, ask_what_is_held };
    size_t held = hf_agent_held(asking->place->agent);
    asking->most = held > asking->most ? held : asking->most;
    if (!asking->over)
        must(hf_timer_start(asking->place->loop, &asking->timer, 0, &again));
}

static void check_asked(struct hf_store *store)
{
    struct place place;
    struct asking asking = { .place = &place };
    open_place(&place, store);
    ask_what_is_held(&asking);
    hf_agent_report_free(ran(&place, "s", "use double {\"n\":21}"));
    asking.over = true;
    hf_timer_stop(place.loop, &asking.timer);
    assert_int_equal(asking.most, 1);
    close_place(&place);
}

static void a_task_may_ask_what_is_held_until_the_run_ends(void **state)
{
    (void)state;
    on_both("asked", check_asked);
}

static void check_unknown_tool(struct hf_store *store)
{
    struct place place;
    open_place(&place, store);
    struct hf_agent_report *report = ran(&place, "s", "use nothing");
    assert_true(report->answered); /* the model was told */
    assert_non_null(strstr(report->text, "nothing"));
    assert_int_equal(report->call_count, 0);
    hf_agent_report_free(report);
    close_place(&place);
}

static void an_unknown_tool_is_told_to_the_model(void **state)
{
    (void)state;
    on_both("unknown_tool", check_unknown_tool);
}

static void check_repeat(struct hf_store *store)
{
    struct place place;
    struct hf_agent_report *one = NULL, *two = NULL;
    open_place(&place, store);
    struct hf_agent_run run = {
        .size = sizeof(run), .session_id = "s", .text = "hi", .source_key = "mail-1"
    };
    must(hf_agent_run(place.agent, &run, &one, &err));
    must(hf_agent_run(place.agent, &run, &two, &err));
    assert_string_equal(one->work_id, two->work_id);
    assert_string_equal(one->text, two->text);
    assert_true(one->driven_here && !two->driven_here);
    hf_agent_report_free(one);
    hf_agent_report_free(two);
    run.text = "another text";
    assert_int_equal(hf_agent_run(place.agent, &run, &one, &err), HF_ECONFLICT);
    close_place(&place);
}

static void a_repeated_run_returns_the_first_answer(void **state)
{
    (void)state;
    on_both("repeat", check_repeat);
}

static void check_cancel(struct hf_store *store)
{
    struct place place;
    open_place(&place, store);
    place.cancel_in_tool = true;
    struct hf_agent_report *report = ran(&place, "s", "use double");
    assert_true(report->ended && !report->answered);
    assert_string_equal(report->outcome, "cancelled");
    assert_int_equal(report->call_count, 1);
    hf_agent_report_free(report);
    place.cancel_in_tool = false;
    report = ran(&place, "s", "and now?");
    assert_true(report->answered); /* the session goes on */
    hf_agent_report_free(report);
    assert_false(hf_agent_cancel(place.agent));
    close_place(&place);
}

static void a_cancelled_turn_ends_and_the_session_goes_on(void **state)
{
    (void)state;
    on_both("cancel", check_cancel);
}

static void check_resume(struct hf_store *store)
{
    struct place place;
    struct hf_agent_report *report = NULL;
    struct hf_agent_run finish = { .size = sizeof(finish), .session_id = "s" };
    open_place(&place, store);
    place.stop_in_tool = true;
    report = ran(&place, "s", "use double");
    assert_false(report->ended);
    assert_non_null(report->turn_id); /* it is open */
    assert_null(report->outcome);
    hf_agent_report_free(report);
    close_place(&place);
    open_place(&place, store); /* another process */
    must(hf_agent_run(place.agent, &finish, &report, &err));
    assert_true(report->ended && report->driven_here);
    assert_string_equal(report->text, "The tool answered: 42\nis it");
    assert_int_equal(place.tool_runs, 1); /* a safe tool is performed again */
    assert_true(report->calls[0].taken_over);
    assert_int_equal(report->calls[0].attempt, 1);
    hf_agent_report_free(report);
    must(hf_agent_run(place.agent, &finish, &report, &err));
    assert_true(report->ended);
    assert_null(report->turn_id); /* nothing to do */
    hf_agent_report_free(report);
    close_place(&place);
}

static void an_interrupted_turn_is_finished_by_the_next_run(void **state)
{
    (void)state;
    on_both("resume", check_resume);
}

/* ---- with others --------------------------------------------------------------------- */

struct answer_later {
    struct hf_store *store;
    struct hf_session_answer *claim;
    struct hf_timer timer;
};

/* What another worker would do: it commits the turn that it holds. */
static void commit_elsewhere(void *user)
{
    struct answer_later *later = user;
    const struct hf_session_answer *claim = later->claim;
    struct hf_session_committed committed;
    struct hf_session_commit commit = {
        .size = sizeof(commit),
        .session_id = "s",
        .token = claim->token,
        .turn_id = claim->turn->turn_id,
        .chain = claim->turn->chain,
        .status = HF_STATUS_DONE,
        .outcome = "{\"kind\":\"assistant_message\",\"text\":\"from elsewhere\"}",
        .release = true,
    };
    must(hf_session_commit(later->store, NULL, &commit, &committed, &err));
}

static void check_elsewhere(struct hf_store *store)
{
    struct place place;
    struct answer_later later = { .store = store };
    struct hf_task task = { &later, commit_elsewhere };
    struct hf_session_answer *made = NULL;
    struct hf_answer *sent = NULL;
    struct hf_session_spec fresh = { .size = sizeof(fresh),
                                     .session_id = "s",
                                     .agent = "helper" };
    struct hf_session_send send = {
        .size = sizeof(send),
        .session_id = "s",
        .source_key = "k",
        .message = "{\"message\":{\"id\":\"k\",\"parts\":[{\"content\":\"hi\"}]}}"
    };
    struct hf_session_claim claim = { .size = sizeof(claim), .session_id = "s" };
    open_place(&place, store);
    must(hf_session_create(store, NULL, &fresh, &made, &err));
    hf_session_answer_free(made);
    must(hf_session_send(store, NULL, &send, &sent, &err));
    hf_answer_free(sent);
    must(hf_session_claim(store, NULL, &claim, &later.claim, &err));
    must(hf_timer_start(place.loop, &later.timer, 60, &task));
    struct hf_agent_run run = {
        .size = sizeof(run), .session_id = "s", .text = "hi", .source_key = "k"
    };
    struct hf_agent_report *report = NULL;
    must(hf_agent_run(place.agent, &run, &report, &err));
    assert_true(report->ended && report->answered && !report->driven_here);
    assert_string_equal(report->text, "from elsewhere");
    assert_string_equal(place.log, "");
    hf_agent_report_free(report);
    hf_session_answer_free(later.claim);
    close_place(&place);
}

static void a_run_waits_for_a_turn_that_is_driven_elsewhere(void **state)
{
    (void)state;
    on_both("elsewhere", check_elsewhere);
}

static void on_served(void *user, const struct hf_worker_event *event)
{
    struct place *place = user;
    if (event->kind != HF_WORKER_TURN_ENDED)
        return;
    note(place, event->agent, TEXT(event->session_id));
    if (++place->tool_runs == 2)
        hf_agent_stop(place->agent, 1000);
}

static void send_to(struct hf_store *store, const char *session, const char *agent)
{
    struct hf_session_answer *made = NULL;
    struct hf_answer *sent = NULL;
    struct hf_session_spec fresh = { .size = sizeof(fresh),
                                     .session_id = session,
                                     .agent = agent };
    struct hf_session_send send = {
        .size = sizeof(send),
        .session_id = session,
        .message = "{\"message\":{\"id\":\"m\",\"parts\":[{\"content\":\"hi\"}]}}"
    };
    must(hf_session_create(store, NULL, &fresh, &made, &err));
    hf_session_answer_free(made);
    must(hf_session_send(store, NULL, &send, &sent, &err));
    hf_answer_free(sent);
}

static void check_serve(struct hf_store *store)
{
    struct place place;
    struct hf_agent *both[2] = { NULL, NULL };
    open_place(&place, store);
    hf_agent_free(place.agent);
    place.config.heard = on_served;
    must(hf_agent_new(&place.config, &place.agent, &err));
    both[0] = place.agent;
    place.config.name = "other";
    must(hf_agent_new(&place.config, &both[1], &err));
    send_to(store, "s", "helper");
    send_to(store, "t", "other");
    send_to(store, "u", "stranger");
    must(hf_agent_serve(both, 2, 0, &err));
    assert_non_null(strstr(place.log, "helper s\n"));
    assert_non_null(strstr(place.log, "other t\n"));
    assert_null(strstr(place.log, " u\n"));
    hf_agent_free(both[1]);
    close_place(&place);
}

static void a_serve_answers_sessions_of_its_agents_only(void **state)
{
    (void)state;
    on_both("serve", check_serve);
}

/* ---- what is refused ----------------------------------------------------------------- */

static void what_cannot_run_is_refused_and_sends_nothing(void **state)
{
    (void)state;
    struct place place;
    struct hf_store *store = NULL;
    struct hf_agent *bare = NULL;
    struct hf_agent_report *report = NULL;
    struct hf_session_answer *none = NULL;
    must(hf_store_open("sqlite::memory:", NULL, &store, &err));
    open_place(&place, store);
    place.config.model = NULL;
    must(hf_agent_new(&place.config, &bare, &err));
    struct hf_agent_run run = { .size = sizeof(run), .session_id = "s", .text = "hi" };
    assert_int_equal(hf_agent_run(bare, &run, &report, &err), HF_ENOTCONFIGURED);
    assert_string_equal(err.message, "agent helper has no model");
    assert_int_equal(hf_err_class(HF_ENOTCONFIGURED), HF_CLASS_TERMINAL);
    assert_int_equal(hf_agent_serve(&bare, 1, 0, &err), HF_ENOTCONFIGURED);
    assert_int_equal(hf_session_head(store, "s", &none, &err), HF_ENOTFOUND);
    hf_agent_free(bare);
    send_to(store, "theirs", "another");
    run.session_id = "theirs";
    assert_int_equal(hf_agent_run(place.agent, &run, &report, &err), HF_ECONFLICT);
    assert_string_equal(err.message,
                        "session theirs belongs to agent another, and not to helper");
    run = (struct hf_agent_run){ .size = sizeof(run) };
    assert_int_equal(hf_agent_run(place.agent, &run, &report, &err), HF_EINVAL);
    assert_string_equal(err.field, "session_id");
    run.text = run.message = "x";
    assert_int_equal(hf_agent_run(place.agent, &run, &report, &err), HF_EINVAL);
    struct hf_tool_source twice[] = { place.source, place.source };
    place.config.sources = twice;
    place.config.source_count = 2;
    assert_int_equal(hf_agent_new(&place.config, &bare, &err), HF_EINVAL);
    assert_non_null(strstr(err.message, "double"));
    place.config.name = "";
    assert_int_equal(hf_agent_new(&place.config, &bare, &err), HF_EINVAL);
    assert_string_equal(err.field, "name");
    close_place(&place);
    hf_store_close(store);
}

static int begin(void **state)
{
    (void)state;
    pg_server_start(&server);
    return 0;
}

static int end(void **state)
{
    (void)state;
    pg_server_stop(&server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_reports_what_the_store_has),
        cmocka_unit_test(a_task_may_ask_what_is_held_until_the_run_ends),
        cmocka_unit_test(an_unknown_tool_is_told_to_the_model),
        cmocka_unit_test(a_repeated_run_returns_the_first_answer),
        cmocka_unit_test(a_cancelled_turn_ends_and_the_session_goes_on),
        cmocka_unit_test(an_interrupted_turn_is_finished_by_the_next_run),
        cmocka_unit_test(a_run_waits_for_a_turn_that_is_driven_elsewhere),
        cmocka_unit_test(a_serve_answers_sessions_of_its_agents_only),
        cmocka_unit_test(what_cannot_run_is_refused_and_sends_nothing),
    };
    return cmocka_run_group_tests_name("agent", tests, begin, end);
}
