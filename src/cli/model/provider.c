/* holdfast provider list, provider check: the providers of the configuration. */
#include <string.h>

#include "cli/model/config.h"

/* ---- list --------------------------------------------------------------------------- */

/* The models of a provider, separated by commas; NULL when it has none. */
static const char *models_of(struct cli *cli, const struct hf_config *config,
                             const char *provider)
{
    struct hf_buf names;
    const char *name = NULL;
    hf_buf_init(&names, hf_alloc_system(), (size_t)HF_MAX_CONFIG_BYTES);
    for (size_t i = 0; (name = hf_config_name(config, HF_CONFIG_MODEL, i)); i++) {
        struct hf_model_config model;
        const char *its = NULL;
        if (hf_config_model(config, name, &model, &its, &cli->err) ||
            strcmp(its, provider) != 0)
            continue;
        hf_buf_text(&names, names.len ? ", " : "");
        hf_buf_text(&names, name);
    }
    if (names.len > 0)
        return hf_buf_keep(&names, &cli->arena);
    hf_buf_fini(&names);
    return NULL;
}

static void put_provider(struct cli *cli, const char *const row[5])
{
    static const char *const keys[] = { "name", "kind", "base_url", "key", "models" };
    hf_json_object(&cli->writer);
    for (size_t i = 0; i < 5; i++)
        hf_json_put_str(&cli->writer, keys[i], row[i]);
    hf_json_end(&cli->writer);
}

int cmd_provider_list(struct cli *cli)
{
    static const struct cli_column columns[] = {
        { .title = "provider" },
        { .title = "kind" },
        { .title = "base url", .rank = 2, .least = 16 },
        { .title = "key", .rank = 1 },
        { .title = "models", .least = 16 },
    };
    struct hf_config *config = NULL;
    struct hf_config_shown shown;
    struct cli_table table;
    const char *path = NULL;
    int rc = cli_config_read(cli, &path, &config);
    if (rc)
        return rc;
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_key(&cli->writer, "providers");
        hf_json_array(&cli->writer);
    } else {
        cli_table_begin(&table, cli, columns, 5);
    }
    for (size_t i = 0; hf_config_show(config, i, &shown); i++) {
        const char *row[] = { shown.name, shown.kind, shown.base_url, shown.key,
                              models_of(cli, config, shown.name) };
        if (cli->json)
            put_provider(cli, row);
        else
            cli_table_row(&table, row, 0, CLI_BOLD);
    }
    hf_config_free(config);
    if (!cli->json)
        return cli_table_end(&table);
    hf_json_end(&cli->writer);
    cli_ok_end(cli);
    return 0;
}

/* ---- check -------------------------------------------------------------------------- */

#define SPAN(text) ((struct hf_span){ (text), strlen(text) })

/* One call, and the events that it reported. The library's objects are freed in end_check. */
struct check {
    struct cli *cli;
    struct hf_config *config;
    const char *provider_name;
    const char *model_name;
    struct hf_loop *loop;
    struct hf_provider *provider;
    struct hf_model *model;
    struct hf_surface *surface;
    struct hf_setup *setup;
    struct hf_turn *turn;
    struct hf_render *render;
    hf_ms began;
    hf_ms first; /* until the first event; -1: none came */
    hf_ms total;
    bool answered;
    bool streamed;
    bool tools;  /* one was offered */
    bool called; /* it */
    const char *served;
    struct hf_usage usage;
};

static hf_ms mono_now(void)
{
    return hf_clock_system()->mono_ms(hf_clock_system()->user);
}

static void take_error(struct check *check, const struct hf_llm_error *error)
{
    struct cli *cli = check->cli;
    cli->action =
        error->transient
            ? "try again later; if the error persists, check base_url"
            : "correct the configuration or the account: the same call fails again";
    (void)hf_fail(&cli->err, error->transient ? HF_EUNREACHABLE : HF_EINVAL,
                  check->provider_name, "provider %.60s, model %.60s: %.120s (%s)",
                  check->provider_name, check->model_name,
                  (const char *)error->message.at, error->code);
}

static void on_event(void *user, const struct hf_model_event *event)
{
    struct check *check = user;
    if (check->first < 0)
        check->first = mono_now() - check->began;
    if (event->kind == HF_MODEL_PART && event->part->kind == HF_PART_TOOL_CALL)
        check->called = true;
    if (event->kind == HF_MODEL_EVIDENCE)
        check->streamed = event->evidence->streamed;
    if (event->kind != HF_MODEL_END)
        return;
    check->total = mono_now() - check->began;
    if (event->error) {
        take_error(check, event->error);
        return;
    }
    check->answered = true;
    check->usage = event->response->usage;
    if (event->response->model)
        check->served = hf_arena_text(&check->cli->arena, event->response->model);
}

/* --model, or the first model of the provider. */
static int choose_model(struct check *check)
{
    struct cli *cli = check->cli;
    const char *wanted = cli_text(cli, "model");
    struct hf_model_config entry;
    const char *provider = NULL;
    const char *name = NULL;
    for (size_t i = 0; !wanted; i++) {
        name = hf_config_name(check->config, HF_CONFIG_MODEL, i);
        if (!name)
            return hf_fail(
                &cli->err, HF_EINVAL, "model",
                "no model has provider = \"%.60s\"; add a [model.NAME] with it",
                check->provider_name);
        if (hf_config_model(check->config, name, &entry, &provider, &cli->err) == 0 &&
            strcmp(provider, check->provider_name) == 0)
            wanted = name;
    }
    int rc = hf_config_model(check->config, wanted, &entry, &provider, &cli->err);
    if (rc)
        return rc;
    if (strcmp(provider, check->provider_name) != 0)
        return hf_fail(&cli->err, HF_EINVAL, "--model",
                       "the provider of %.60s is %.60s, not %.60s", wanted, provider,
                       check->provider_name);
    check->model_name = wanted;
    entry.provider = check->provider;
    return hf_model_new(&entry, &check->model, &cli->err);
}

static int open_provider(struct check *check)
{
    struct cli *cli = check->cli;
    struct hf_http_config http;
    struct hf_endpoint endpoint;
    struct hf_transport *transport = NULL;
    const char *record = cli_text(cli, "record");
    int rc = hf_config_endpoint(check->config, check->provider_name, &http, &endpoint,
                                &cli->err);
    if (rc)
        cli->action =
            "run `holdfast provider list`, which shows the source of each provider's key";
    if (rc == 0)
        rc = hf_loop_new(NULL, &check->loop, &cli->err);
    if (rc == 0)
        rc = hf_http_new(check->loop, &http, &transport, &cli->err);
    if (rc == 0 && record)
        rc = hf_recorder_new(check->loop, transport, record, &transport, &cli->err);
    if (rc == 0)
        rc = hf_endpoint_new(check->loop, &endpoint, transport, &check->provider,
                             &cli->err);
    return rc;
}

/* A turn of one user message, up to its model call. */
static int make_request(struct check *check, struct hf_effect *effect)
{
    static const char tools[] =
        "[{\"name\":\"ping\",\"description\":\"Reports that tools "
        "work.\"}]";
    struct hf_err *err = &check->cli->err;
    struct hf_part part = { .content = SPAN(check->tools
                                                ? "Say OK, then call the tool ping once."
                                                : "Say OK.") };
    struct hf_message message = { .id = "q", .parts = &part, .part_count = 1 };
    struct hf_record input = { .message = &message };
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = "check",
                                   .turn_id = "check",
                                   .inputs = &input,
                                   .input_count = 1 };
    struct hf_turn_config config = { .size = sizeof(config), .turn_budget = 1 };
    int rc = hf_surface_new(NULL, SPAN("You are brief."), SPAN(check->tools ? tools : ""),
                            &check->surface, err);
    if (rc)
        return rc;
    config.surface = check->surface;
    config.protocol = hf_protocol_standard();
    hf_model_apply(check->model, &config);
    rc = hf_setup_new(&config, &check->setup, err);
    if (rc == 0)
        rc = hf_turn_new(check->setup, &start, &check->turn, err);
    while (rc == 0 && effect->kind != HF_EFFECT_LLM_CALL)
        rc = hf_turn_poll(check->turn, effect, err);
    return rc ? rc : hf_render_new(check->turn, effect->request, &check->render, err);
}

static int run_check(struct check *check)
{
    struct hf_err *err = &check->cli->err;
    struct hf_effect effect = { .kind = HF_EFFECT_DONE };
    struct hf_model_sink sink = { check, on_event };
    uint64_t id = 0;
    int rc = open_provider(check);
    if (rc == 0)
        rc = choose_model(check);
    if (rc == 0)
        rc = make_request(check, &effect);
    if (rc)
        return rc;
    struct hf_model_call call = { .size = sizeof(call),
                                  .request = effect.request,
                                  .render = check->render };
    check->began = mono_now();
    rc = hf_provider_start(check->provider, &call, &sink, &id, err);
    if (rc == 0)
        hf_loop_run(check->loop);
    return rc ? rc : check->answered ? 0 : err->code;
}

static void end_check(struct check *check)
{
    hf_render_free(check->render);
    hf_turn_free(check->turn);
    hf_setup_free(check->setup);
    hf_surface_free(check->surface);
    hf_model_free(check->model);
    hf_provider_free(check->provider);
    hf_loop_free(check->loop);
    hf_config_free(check->config);
}

static void show_json(const struct check *check)
{
    struct hf_json *json = &check->cli->writer;
    cli_ok_begin(check->cli);
    hf_json_put_str(json, "provider", check->provider_name);
    hf_json_put_str(json, "model", check->model_name);
    hf_json_put_str(json, "served", check->served);
    hf_json_put_i64(json, "first_ms", check->first);
    hf_json_put_i64(json, "total_ms", check->total);
    hf_json_put_bool(json, "streaming", check->streamed);
    hf_json_put_raw(json, "tools",
                    !check->tools   ? "null"
                    : check->called ? "true"
                                    : "false");
    hf_json_key(json, "usage");
    hf_json_object(json);
    hf_json_put_i64(json, "input", check->usage.input);
    hf_json_put_i64(json, "output", check->usage.output);
    hf_json_put_i64(json, "cache_read", check->usage.cache_read);
    hf_json_put_i64(json, "cache_write", check->usage.cache_write);
    hf_json_put_i64(json, "reasoning", check->usage.reasoning);
    hf_json_end(json);
    cli_ok_end(check->cli);
}

static void show(const struct check *check)
{
    struct cli *cli = check->cli;
    if (cli->json) {
        show_json(check);
        return;
    }
    cli_put(cli, "model      ");
    cli_put_clean(cli, check->model_name);
    cli_put(cli, ", answered by ");
    cli_put_clean(cli, check->served ? check->served : "an unnamed model");
    cli_putf(cli, "\nlatency    %lldms to the first event, %lldms in all\n",
             (long long)check->first, (long long)check->total);
    cli_putf(cli, "streaming  %s\n", check->streamed ? "yes" : "no");
    cli_putf(cli, "tools      %s\n",
             !check->tools   ? "not offered"
             : check->called ? "yes"
                             : "accepted, but the model called none");
    cli_putf(cli, "usage      %lld tokens in, %lld out\n", (long long)check->usage.input,
             (long long)check->usage.output);
}

int cmd_provider_check(struct cli *cli)
{
    struct check check = { .cli = cli, .first = -1 };
    const char *path = NULL;
    check.provider_name = cli_text(cli, "name");
    check.tools = !cli_given(cli, "no-tools");
    int rc = cli_config_read(cli, &path, &check.config);
    if (rc)
        return rc;
    rc = run_check(&check);
    if (rc == 0)
        show(&check);
    end_check(&check);
    return rc;
}
