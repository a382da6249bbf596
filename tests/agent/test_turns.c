/* Turns over providers: retries are the machine's, records do not depend on the transport, and a
 * wrapped provider sees every attempt. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/server.h"

static struct heard heard;

/* A host: one turn on one provider; each effect that takes an answer is a line. */
struct host {
    struct hf_loop *loop;
    struct hf_provider *provider;
    struct hf_model *model;
    struct hf_surface *surface;
    struct hf_setup *setup;
    struct hf_turn *turn;
    struct hf_effect effect;
    bool waiting;
    char log[4096];
};

static void note(struct host *host, const char *word, int64_t number)
{
    size_t used = strlen(host->log);
    snprintf(host->log + used, sizeof(host->log) - used, "%s %lld\n", word,
             (long long)number);
}

static void on_event(void *user, const struct hf_model_event *event)
{
    struct host *host = user;
    struct hf_err err = { 0 };
    int rc = 0;
    if (event->kind != HF_MODEL_END)
        return;
    host->waiting = false;
    if (event->response)
        rc = hf_turn_llm_done(host->turn, host->effect.id, event->response, &err);
    else
        rc = hf_turn_llm_failed(host->turn, host->effect.id, event->error, &err);
    if (rc)
        fail_msg("%s", err.message);
}

static void call_model(struct host *host)
{
    struct hf_err err = { 0 };
    struct hf_render *render = NULL;
    struct hf_model_sink sink = { host, on_event };
    uint64_t id = 0;
    assert_int_equal(hf_render_new(host->turn, host->effect.request, &render, &err), 0);
    struct hf_model_call call = { .size = sizeof(call),
                                  .request = host->effect.request,
                                  .render = render };
    if (hf_provider_start(host->provider, &call, &sink, &id, &err))
        fail_msg("%s", err.message);
    hf_render_free(render);
    host->waiting = true;
    note(host, "llm", host->effect.request->attempt);
    while (host->waiting)
        (void)hf_loop_step(host->loop, -1);
}

static void handle(struct host *host)
{
    struct hf_effect *effect = &host->effect;
    struct hf_err err = { 0 };
    int rc = 0;
    if (effect->kind == HF_EFFECT_LLM_CALL) {
        call_model(host);
    } else if (effect->kind == HF_EFFECT_TOOL_CALLS) {
        struct hf_tool_result result = { .call_id = effect->calls[0].call_id,
                                         .value = span("2") };
        note(host, effect->calls[0].args.at, (int64_t)effect->call_count);
        rc = hf_turn_tool_results(host->turn, effect->id, &result, 1, &err);
    } else if (effect->kind == HF_EFFECT_CHECKPOINT) {
        rc = hf_turn_checkpoint_done(host->turn, effect->id, NULL, &err);
    } else if (effect->kind == HF_EFFECT_SLEEP) {
        note(host, "sleep", effect->duration_ms);
        rc = hf_turn_sleep_over(host->turn, effect->id, &err);
    } else if (effect->kind == HF_EFFECT_DONE) {
        note(host, hf_outcome_name(effect->outcome->kind), 0);
    }
    if (rc)
        fail_msg("%s", err.message);
}

static void host_start(struct host *host, struct hf_loop *loop,
                       struct hf_provider *provider, const char *model)
{
    struct hf_err err = { 0 };
    struct hf_part part = { .content = span("add them") };
    struct hf_message message = { .id = "m1", .parts = &part, .part_count = 1 };
    struct hf_record input = { .message = &message };
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = "s1",
                                   .turn_id = "t1",
                                   .inputs = &input,
                                   .input_count = 1 };
    struct hf_turn_config config = { .size = sizeof(config), .turn_budget = 8 };
    struct hf_model_config entry = { .size = sizeof(entry),
                                     .provider = provider,
                                     .id = model,
                                     .context_tokens = 1000,
                                     .output_tokens = 100,
                                     .route = "test" };
    memset(host, 0, sizeof(*host));
    host->loop = loop;
    host->provider = provider;
    assert_int_equal(hf_model_new(&entry, &host->model, &err), 0);
    assert_int_equal(hf_surface_new(NULL, span("You add."), span("[{\"name\":\"add\"}]"),
                                    &host->surface, &err),
                     0);
    config.protocol = hf_protocol_standard();
    config.surface = host->surface;
    hf_model_apply(host->model, &config);
    assert_int_equal(hf_setup_new(&config, &host->setup, &err), 0);
    assert_int_equal(hf_turn_new(host->setup, &start, &host->turn, &err), 0);
}

static void host_run(struct host *host)
{
    struct hf_err err = { 0 };
    while (!hf_turn_is_done(host->turn)) {
        assert_int_equal(hf_turn_poll(host->turn, &host->effect, &err), 0);
        handle(host);
    }
}

static void host_digest(struct host *host, uint8_t digest[32])
{
    struct hf_err err = { 0 };
    memset(digest, 0, 32);
    for (uint64_t i = 0; i < hf_turn_record_count(host->turn); i++)
        assert_int_equal(
            hf_record_chain(digest, hf_turn_record(host->turn, i), digest, &err), 0);
}

static void host_fini(struct host *host)
{
    hf_turn_free(host->turn);
    hf_setup_free(host->setup);
    hf_surface_free(host->surface);
    hf_model_free(host->model);
}

static struct hf_span load(const char *path)
{
    static char bytes[65536];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t len = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    return (struct hf_span){ bytes, len };
}

#define ROUNDS                                                                           \
    "llm 1\n{\"n\": 1} 1\nllm 1\n{\"n\": 2} 1\nllm 1\n{\"n\": 3} 1\nllm 1\n"             \
    "assistant_message 0\n"

static void three_tool_rounds(const char *kind)
{
    struct server server;
    struct client client;
    struct host host;
    uint8_t live[32];
    uint8_t played[32];
    struct hf_err err = { 0 };
    struct hf_transport *script = NULL;
    char path[] = "/tmp/holdfast-rounds.XXXXXX";
    close(mkstemp(path));
    server_start(&server, NULL);
    client_init(&client, &server, kind, NULL, path);
    host_start(&host, client.loop, client.provider, "tools");
    host_run(&host);
    assert_string_equal(host.log, ROUNDS);
    host_digest(&host, live);
    host_fini(&host);
    hf_provider_free(client.provider);
    server_stop(&server);

    assert_int_equal(hf_script_new(client.loop, load(path), &script, &err), 0);
    struct hf_endpoint endpoint = { .size = sizeof(endpoint),
                                    .name = "demo",
                                    .kind = kind,
                                    .base_url = "http://localhost" };
    assert_int_equal(
        hf_endpoint_new(client.loop, &endpoint, script, &client.provider, &err), 0);
    host_start(&host, client.loop, client.provider, "tools");
    host_run(&host);
    assert_string_equal(host.log, ROUNDS);
    host_digest(&host, played);
    assert_memory_equal(live, played, 32);
    host_fini(&host);
    client_fini(&client);
    unlink(path);
}

static void a_turn_over_http_has_the_same_records_as_by_script(void **state)
{
    (void)state;
    three_tool_rounds("openai-chat");
    three_tool_rounds("anthropic-messages");
}

static void a_rate_limit_is_slept_over_and_the_turn_goes_on(void **state)
{
    (void)state;
    struct server server;
    struct client client;
    struct host host;
    server_start(&server, NULL);
    client_init(&client, &server, "openai-chat", NULL, NULL);
    host_start(&host, client.loop, client.provider, "once-429");
    host_run(&host);
    char *sleep = strstr(host.log, "sleep ");
    assert_non_null(sleep);
    assert_true(strtol(sleep + 6, NULL, 10) >= 1000); /* as the server asked */
    memcpy(sleep + 6, "____", 4);
    assert_string_equal(host.log, "llm 1\nsleep ____\nllm 2\nassistant_message 0\n");
    assert_int_equal(server_saw(&server, "\"model\": \"once-429\""), 2);
    host_fini(&host);
    client_fini(&client);
    server_stop(&server);
}

static void a_stream_that_was_cut_is_not_bought_twice(void **state)
{
    (void)state;
    struct server server;
    struct client client;
    struct host host;
    server_start(&server, NULL);
    client_init(&client, &server, "anthropic-messages", NULL, NULL);
    host_start(&host, client.loop, client.provider, "cut");
    host_run(&host);
    assert_string_equal(host.log, "llm 1\nprovider_error 0\n");
    assert_int_equal(server_saw(&server, "\"model\": \"cut\""), 1);
    host_fini(&host);
    client_fini(&client);
    server_stop(&server);
}

/* A wrapper that lets two attempts through, as a host's breaker would. */
struct breaker {
    struct hf_provider handle;
    struct hf_provider *inner;
    int attempts;
};

static const char *breaker_name(const struct hf_provider *provider)
{
    return hf_provider_name(((const struct breaker *)provider)->inner);
}

static int breaker_start(struct hf_provider *provider, const struct hf_model_call *call,
                         const struct hf_model_sink *sink, uint64_t *ret_call,
                         struct hf_err *err)
{
    struct breaker *breaker = (struct breaker *)provider;
    if (++breaker->attempts > 2)
        return HF_EBUSY;
    return hf_provider_start(breaker->inner, call, sink, ret_call, err);
}

static int breaker_cancel(struct hf_provider *provider, uint64_t call)
{
    return hf_provider_cancel(((struct breaker *)provider)->inner, call);
}

static int breaker_close(struct hf_provider *provider, const struct hf_closed *closed)
{
    return hf_provider_close(((struct breaker *)provider)->inner, closed);
}

static void breaker_free(struct hf_provider *provider)
{
    hf_provider_free(((struct breaker *)provider)->inner);
}

static void a_wrapped_provider_sees_every_attempt(void **state)
{
    (void)state;
    static const struct hf_provider_methods methods = { breaker_name, breaker_start,
                                                        breaker_cancel, breaker_close,
                                                        breaker_free };
    struct server server;
    struct client client;
    struct host host;
    server_start(&server, NULL);
    client_init(&client, &server, "openai-chat", NULL, NULL);
    struct breaker breaker = { { &methods }, client.provider, 0 };
    client.provider = &breaker.handle;
    host_start(&host, client.loop, client.provider, "once-429");
    host_run(&host);
    assert_int_equal(breaker.attempts, 2);
    host_fini(&host);
    client_fini(&client);
    server_stop(&server);
}

/* Scripts on a clock that only waiting moves on: hours pass at once. */
static hf_ms still_now(void *user)
{
    return *(hf_ms *)user;
}

static void still_wait(void *user, hf_ms ms)
{
    *(hf_ms *)user += ms;
}

static void a_script_plays_gaps_and_cuts_without_waiting(void **state)
{
    (void)state;
    static const char script[] =
        "{\"holdfast_script\":1}\n"
        "{\"status\":200,\"headers\":{\"content-type\":\"text/event-stream\"}}\n"
        "{\"body\":\"data: "
        "{\\\"choices\\\":[{\\\"delta\\\":{\\\"content\\\":\\\"x\\\"}}]}\"}\n"
        "{\"wait_ms\":3600000}\n"
        "{\"base64\":\"Cgo=\"}\n"
        "{\"end\":\"cut\"}\n"
        "{\"end\":\"connect\"}\n";
    hf_ms now = 0;
    struct hf_clock clock = { &now, still_now, still_now, still_wait };
    struct hf_loop_config config = { .size = sizeof(config), .clock = &clock };
    struct client client = { 0 };
    struct hf_transport *transport = NULL;
    struct hf_err err = { 0 };
    assert_int_equal(hf_loop_new(&config, &client.loop, &err), 0);
    assert_int_equal(hf_script_new(client.loop, span(script), &transport, &err), 0);
    struct hf_endpoint endpoint = { .size = sizeof(endpoint),
                                    .name = "demo",
                                    .kind = "openai-chat",
                                    .base_url = "http://localhost" };
    assert_int_equal(
        hf_endpoint_new(client.loop, &endpoint, transport, &client.provider, &err), 0);
    client_ask(&client, "any", &heard);
    heard_expect(&heard, "text x\nevidence 200 - - - -\n"
                         "end error transport connection_lost t\n");
    assert_int_equal(now, 3600000);
    client_ask(&client, "any", &heard);
    heard_expect(&heard, "end error transport connect_failed ts\n");
    client_fini(&client);
}

static void a_bad_script_is_named_by_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *says;
    } rows[] = {
        { "", "ends with" },
        { "{}\n", "line 1" },
        { "{\"holdfast_script\":1}\n{\"end\":\"odd\"}\n", "line 2" },
        { "{\"holdfast_script\":1}\n{\"base64\":\"A\"}\n", "line 2" },
        { "{\"holdfast_script\":1}\n{\"status\":20}\n", "line 2" },
        { "{\"holdfast_script\":1}\n{\"wait_ms\":-1}\n", "line 2" },
        { "{\"holdfast_script\":1}\n{\"body\":\"x\"}\n", "ends with" },
    };
    struct hf_loop *loop = NULL;
    struct hf_err err = { 0 };
    struct hf_transport *transport = NULL;
    assert_int_equal(hf_loop_new(NULL, &loop, &err), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(hf_script_new(loop, span(rows[i].text), &transport, &err),
                         HF_EINVAL);
        assert_non_null(strstr(err.message, rows[i].says));
    }
    hf_loop_free(loop);
}

static const char one_answer[] =
    "{\"holdfast_script\":1}\n"
    "{\"status\":200,\"headers\":{\"content-type\":\"text/event-stream\"}}\n"
    "{\"body\":\"data: {\\\"choices\\\":[{\\\"delta\\\":{\\\"content\\\":\\\"x\\\"},"
    "\\\"finish_reason\\\":\\\"stop\\\"}]}\\n\\ndata: [DONE]\\n\\n\"}\n"
    "{\"end\":\"none\"}\n";

/* One call, with everything that it needs, in memory that runs out at the `fail_at`-th
 * allocation. Returns how many were asked for. */
static int64_t call_in(int64_t fail_at, const struct server *server)
{
    struct fail_alloc memory;
    struct hf_loop *loop = NULL;
    struct hf_transport *transport = NULL;
    struct hf_provider *provider = NULL;
    struct asked asked;
    struct hf_err err = { 0 };
    struct hf_model_sink sink = { &heard, heard_event };
    uint64_t id = 0;
    char url[64];
    memset(&heard, 0, sizeof(heard));
    asked_simply(&asked, "", "");
    struct hf_request request = *asked.effect.request;
    request.model = "text";
    asked.call.request = &request;
    fail_alloc_init(&memory, fail_at);
    struct hf_loop_config config = { .size = sizeof(config), .alloc = &memory.alloc };
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/v1", server ? server->port : 1);
    struct hf_endpoint endpoint = {
        .size = sizeof(endpoint), .name = "demo", .kind = "openai-chat", .base_url = url
    };
    int rc = hf_loop_new(&config, &loop, &err);
    if (rc == 0 && server)
        rc = hf_http_new(loop, NULL, &transport, &err);
    else if (rc == 0)
        rc = hf_script_new(loop, span(one_answer), &transport, &err);
    if (rc == 0)
        rc = hf_endpoint_new(loop, &endpoint, transport, &provider, &err);
    if (rc == 0)
        rc = hf_provider_start(provider, &asked.call, &sink, &id, &err);
    while (rc == 0 && heard.ends == 0)
        (void)hf_loop_step(loop, -1);
    assert_true(rc == 0 || rc == HF_ENOMEM);
    hf_provider_free(provider);
    hf_loop_free(loop);
    asked_fini(&asked);
    assert_int_equal(memory.live, 0);
    return memory.calls;
}

static void every_allocation_of_a_call_fails_once(void **state)
{
    (void)state;
    struct server server;
    server_start(&server, NULL);
    for (int http = 0; http < 2; http++) {
        int64_t calls = call_in(0, http ? &server : NULL);
        assert_non_null(strstr(heard.text, "end stop 1\n"));
        assert_true(calls > 8);
        for (int64_t i = 1; i <= calls; i++)
            (void)call_in(i, http ? &server : NULL);
    }
    server_stop(&server);
}

static void a_model_entry_is_checked_when_it_is_made(void **state)
{
    (void)state;
    static const struct {
        int64_t window;
        int64_t output;
        const char *options;
        const char *field;
    } rows[] = {
        { 0, 1, "", "context_tokens" },
        { 100, 0, "", "output_tokens" },
        { 100, 100, "", "output_tokens" },
        { 100, 50, "{\"max_output_tokens\":51}", "max_output_tokens" },
        { 100, 50, "{\"odd\":1}", "options" },
    };
    struct hf_provider provider = { 0 };
    struct hf_model *model = NULL;
    struct hf_err err = { 0 };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hf_model_config config = { .size = sizeof(config),
                                          .provider = &provider,
                                          .id = "m",
                                          .context_tokens = rows[i].window,
                                          .output_tokens = rows[i].output,
                                          .route = "r",
                                          .options = span(rows[i].options) };
        assert_int_equal(hf_model_new(&config, &model, &err), HF_EINVAL);
        assert_string_equal(err.field, rows[i].field);
    }
    struct hf_model_config config = { .size = sizeof(config),
                                      .provider = &provider,
                                      .id = "m",
                                      .context_tokens = 100,
                                      .output_tokens = 99,
                                      .route = "r",
                                      .options = span("{\"seed\":7}") };
    struct hf_turn_config turn = { 0 };
    assert_int_equal(hf_model_new(&config, &model, &err), 0);
    hf_model_apply(model, &turn);
    assert_string_equal(turn.options.at, "{\"max_output_tokens\":99,\"seed\":7}");
    assert_int_equal(turn.max_context_tokens, 100);
    hf_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_over_http_has_the_same_records_as_by_script),
        cmocka_unit_test(a_rate_limit_is_slept_over_and_the_turn_goes_on),
        cmocka_unit_test(a_stream_that_was_cut_is_not_bought_twice),
        cmocka_unit_test(a_wrapped_provider_sees_every_attempt),
        cmocka_unit_test(a_script_plays_gaps_and_cuts_without_waiting),
        cmocka_unit_test(a_bad_script_is_named_by_its_line),
        cmocka_unit_test(every_allocation_of_a_call_fails_once),
        cmocka_unit_test(a_model_entry_is_checked_when_it_is_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
