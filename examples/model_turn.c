/* A whole turn with a real model: tools, retries after a pause, and the records it leaves.
 *
 *   model_turn CONFIG MODEL QUESTION [--record FILE | --script FILE]
 *
 * MODEL is a [model.MODEL] of the configuration file CONFIG (docs/configuration.md). Each
 * effect that the machine yields is a line; the records of the turn follow, as JSON.
 * --record writes what the endpoint answered, and --script plays that again, offline.
 *
 *   cc model_turn.c $(pkg-config --cflags --libs holdfast-net)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/config.h>
#include <holdfast/turn_json.h>

#define TEXT(s) ((struct hf_span){ (s), strlen(s) })
#define must(rc) ((rc) ? die(err.message) : (void)0)

static struct hf_err err;
static struct hf_loop *loop;
static struct hf_provider *provider;
static struct hf_model *model;
static struct hf_turn *turn;
static struct hf_effect effect; /* the one that is out */
static bool answered;

static void die(const char *why)
{
    fprintf(stderr, "model_turn: %s\n", why);
    exit(1);
}

static struct hf_span read_file(const char *name)
{
    static char bytes[1 << 20];
    FILE *file = fopen(name, "rb");
    if (!file)
        die("a file cannot be read");
    size_t len = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    return (struct hf_span){ bytes, len };
}

/* The machine decides what a failure means: another attempt after a pause, or the end. */
static void on_event(void *user, const struct hf_model_event *event)
{
    (void)user;
    if (event->kind == HF_MODEL_TEXT)
        printf("text %.*s\n", (int)event->text.len, (const char *)event->text.at);
    fflush(stdout);
    if (event->kind != HF_MODEL_END)
        return;
    answered = true;
    if (event->response) {
        must(hf_turn_llm_done(turn, effect.id, event->response, &err));
        return;
    }
    printf("failed: %s\n", event->error->code);
    must(hf_turn_llm_failed(turn, effect.id, event->error, &err));
}

static void call_model(void)
{
    struct hf_render *render = NULL;
    struct hf_model_sink sink = { NULL, on_event };
    uint64_t id = 0;
    printf("model call, attempt %d\n", (int)effect.request->attempt);
    fflush(stdout);
    must(hf_render_new(turn, effect.request, &render, &err));
    struct hf_model_call call = { sizeof(call), .request = effect.request };
    call.render = render;
    must(hf_provider_start(provider, &call, &sink, &id, &err));
    hf_render_free(render);
    for (answered = false; !answered;)
        hf_loop_step(loop, -1);
}

/* Every tool says that it is done. */
static void run_tools(void)
{
    struct hf_tool_result results[16] = { 0 };
    size_t count = effect.call_count < 16 ? effect.call_count : 16;
    for (size_t i = 0; i < count; i++) {
        printf("tool %s(%s)\n", effect.calls[i].tool,
               (const char *)effect.calls[i].args.at);
        results[i].call_id = effect.calls[i].call_id;
        results[i].value = TEXT("\"done\"");
    }
    must(hf_turn_tool_results(turn, effect.id, results, count, &err));
}

static void wake(void *user)
{
    (void)user;
    answered = true;
}

static void sleep_for(hf_ms ms)
{
    struct hf_timer timer = { 0 };
    struct hf_task task = { NULL, wake };
    printf("sleep %d ms\n", (int)ms);
    fflush(stdout);
    must(hf_timer_start(loop, &timer, ms, &task));
    for (answered = false; !answered;)
        hf_loop_step(loop, -1);
    must(hf_turn_sleep_over(turn, effect.id, &err));
}

static void run_turn(void)
{
    while (!hf_turn_is_done(turn)) {
        must(hf_turn_poll(turn, &effect, &err));
        if (effect.kind == HF_EFFECT_LLM_CALL)
            call_model();
        if (effect.kind == HF_EFFECT_TOOL_CALLS)
            run_tools();
        if (effect.kind == HF_EFFECT_SLEEP)
            sleep_for(effect.duration_ms);
        if (effect.kind == HF_EFFECT_CHECKPOINT)
            must(hf_turn_checkpoint_done(turn, effect.id, NULL, &err));
    }
    const struct hf_outcome *outcome = hf_turn_outcome(turn);
    printf("%s: %s\n", hf_outcome_name(outcome->kind),
           outcome->text.at ? (const char *)outcome->text.at : "");
    for (uint64_t i = 0; i < hf_turn_record_count(turn); i++) {
        struct hf_bytes json = { 0 };
        must(hf_record_encode(NULL, hf_turn_record(turn, i), &json, &err));
        printf("%.*s\n", (int)json.len, (const char *)json.at);
        hf_bytes_free(&json);
    }
}

/* The provider of the model, over HTTP or over a script. */
static void open_model(struct hf_config *config, char **argv)
{
    struct hf_http_config http;
    struct hf_endpoint endpoint;
    struct hf_model_config entry;
    struct hf_transport *transport = NULL;
    const char *name = NULL;
    const char *how = argv[4] ? argv[4] : "";
    must(hf_config_model(config, argv[2], &entry, &name, &err));
    must(hf_config_endpoint(config, name, &http, &endpoint, &err));
    if (strcmp(how, "--script") == 0)
        must(hf_script_new(loop, read_file(argv[5]), &transport, &err));
    else
        must(hf_http_new(loop, &http, &transport, &err));
    if (strcmp(how, "--record") == 0)
        must(hf_recorder_new(loop, transport, argv[5], &transport, &err));
    must(hf_endpoint_new(loop, &endpoint, transport, &provider, &err));
    entry.provider = provider;
    must(hf_model_new(&entry, &model, &err));
}

int main(int argc, char **argv)
{
    struct hf_config *config = NULL;
    struct hf_surface *surface = NULL;
    struct hf_setup *setup = NULL;
    if (argc != 4 && argc != 6)
        die("usage: model_turn CONFIG MODEL QUESTION [--record FILE | --script FILE]");
    must(hf_loop_new(NULL, &loop, &err));
    must(hf_config_read(read_file(argv[1]), &config, &err));
    open_model(config, argv);
    const char *tools = "[{\"name\":\"add\",\"description\":\"Adds to the sum.\"}]";
    must(hf_surface_new(NULL, TEXT("You are brief."), TEXT(tools), &surface, &err));
    struct hf_turn_config turn_config = { sizeof(turn_config), .turn_budget = 8 };
    turn_config.surface = surface;
    turn_config.protocol = hf_protocol_standard();
    hf_model_apply(model, &turn_config);
    must(hf_setup_new(&turn_config, &setup, &err));
    struct hf_part part = { .content = TEXT(argv[3]) };
    struct hf_message message = { .id = "q", .parts = &part, .part_count = 1 };
    struct hf_turn_start start = { sizeof(start), .session_id = "demo", .turn_id = "t1" };
    start.inputs = &(struct hf_record){ .message = &message };
    start.input_count = 1;
    must(hf_turn_new(setup, &start, &turn, &err));
    run_turn();
    hf_turn_free(turn);
    hf_setup_free(setup);
    hf_surface_free(surface);
    hf_model_free(model);
    hf_provider_free(provider);
    hf_config_free(config);
    hf_loop_free(loop);
}
