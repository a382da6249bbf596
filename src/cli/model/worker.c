/* holdfast worker: drives sessions of the configured agents until it is told to end. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/model/agent.h"
#include "cli/model/config.h"

#define GRACE_MS 30000

struct serving {
    struct cli *cli;
    struct hf_loop *loop;
    struct hf_watch *watch;
    struct cli_agents *agents;
    struct cli_stop stop;
    int64_t turns;
    int64_t failed;
};

/* ---- the log ------------------------------------------------------------------------------ */

/* One line on standard error: {"at":…,"event":…, …} or "TIME event: …". */
static void log_line(const struct serving *serving, const char *name,
                     const struct hf_worker_event *event, const char *text)
{
    char when[25];
    struct hf_buf line;
    struct hf_json json;
    size_t held = hf_agent_held(cli_agents_at(serving->agents, 0));
    if (serving->cli->quiet)
        return;
    if (!serving->cli->json) {
        (void)fprintf(stderr, "%s %s: %s%s%s (%zu held)\n", hf_time_text(cli_now(), when),
                      name, event && event->session_id ? event->session_id : "",
                      event && event->session_id && text[0] ? ", " : "", text, held);
        return; /* a log that cannot be written stops no worker */
    }
    hf_buf_init(&line, hf_alloc_system(), 65536);
    hf_json_begin(&json, &line);
    hf_json_object(&json);
    hf_json_put_i64(&json, "at", cli_now());
    hf_json_put_str(&json, "event", name);
    hf_json_put_i64(&json, "held", (int64_t)held);
    hf_json_opt_str(&json, "agent", event ? event->agent : NULL);
    hf_json_opt_str(&json, "session_id", event ? event->session_id : NULL);
    hf_json_opt_str(&json, "turn_id", event ? event->turn_id : NULL);
    hf_json_put_str(&json, "message", text);
    hf_json_end(&json);
    (void)fprintf(stderr, "%s\n", hf_buf_str(&line));
    hf_buf_fini(&line);
}

static void log_ended(struct serving *serving, const struct hf_worker_event *event)
{
    char text[120];
    serving->turns++;
    serving->failed += event->status != HF_STATUS_DONE;
    (void)snprintf(text, sizeof(text), "%s, %lld tokens in, %lld out",
                   hf_status_word(event->status), (long long)event->usage->input,
                   (long long)event->usage->output);
    log_line(serving, "turn_ended", event, text);
}

static void on_heard(void *user, const struct hf_worker_event *event)
{
    struct serving *serving = user;
    char text[300] = "";
    switch (event->kind) {
    case HF_WORKER_TEXT:
    case HF_WORKER_REASONING:
    case HF_WORKER_RESET:
    case HF_WORKER_EMIT: return;
    case HF_WORKER_TURN_ENDED: log_ended(serving, event); return;
    case HF_WORKER_CLAIMED:
        (void)snprintf(text, sizeof(text), "agent %.100s, step %lld", event->agent,
                       (long long)event->step);
        break;
    case HF_WORKER_TOOL_STARTED:
        (void)snprintf(text, sizeof(text), "%s", event->call->tool);
        break;
    case HF_WORKER_TOOL_ENDED:
        (void)snprintf(text, sizeof(text), "%s: ", event->call->tool);
        if (event->result)
            hf_tool_result_line(event->result, sizeof(text) - strlen(text),
                                text + strlen(text));
        else
            (void)snprintf(text, sizeof(text), "%s: %s", event->call->tool,
                           event->message);
        break;
    case HF_WORKER_ASKED:
        (void)snprintf(text, sizeof(text), "%s %s",
                       event->wait->kind == HF_WAIT_APPROVAL
                           ? "answer with: holdfast approve"
                           : "answer with: holdfast wait resolve",
                       event->wait_id);
        break;
    case HF_WORKER_AWAY:
        (void)snprintf(text, sizeof(text), "until it is answered");
        break;
    case HF_WORKER_BACK:
    case HF_WORKER_LOST:
    case HF_WORKER_FAULT:
        (void)snprintf(text, sizeof(text), "%s", event->message ? event->message : "");
        break;
    }
    log_line(serving, hf_worker_event_name(event->kind), event, text);
}

static void log_begin(const struct serving *serving)
{
    for (size_t i = 0; i < cli_agents_count(serving->agents); i++) {
        const char *notice = NULL;
        char text[300];
        (void)snprintf(text, sizeof(text), "agent %.100s, model %.100s",
                       hf_agent_name(cli_agents_at(serving->agents, i)),
                       cli_agents_model(serving->agents, i));
        log_line(serving, "serving", NULL, text);
        for (size_t n = 0; (notice = cli_agents_notice(serving->agents, i, n)); n++)
            log_line(serving, "notice", NULL, notice);
    }
}

/* ---- the end ------------------------------------------------------------------------------ */

/* A second signal ends it without waiting for what runs. */
static void on_signal(void *user, int events)
{
    struct serving *serving = user;
    bool again = serving->stop.by != NULL;
    (void)events;
    serving->stop.by = NULL;
    if (!cli_stop_told(&serving->stop, 0))
        return;
    log_line(serving, "stopping", NULL, serving->stop.by);
    hf_agent_stop(cli_agents_at(serving->agents, 0),
                  again ? 0 : cli_number(serving->cli, "grace", GRACE_MS));
}

static int serve(struct serving *serving)
{
    struct cli *cli = serving->cli;
    struct hf_watcher watcher = { serving, on_signal };
    struct cli_agents_request request = { .scripted = cli_given(cli, "scripted"),
                                          .loop = serving->loop,
                                          .store = cli->store,
                                          .ttl_ms = cli_number(cli, "ttl", 0),
                                          .user = serving,
                                          .heard = on_heard };
    request.names = cli_texts(cli, "agent", &request.count);
    int rc = cli_agents_open(cli, &request, &serving->agents);
    if (rc == 0)
        rc = hf_watch_new(serving->loop, serving->stop.fd, HF_READABLE, &watcher,
                          &serving->watch, &cli->err);
    if (rc)
        return rc;
    log_begin(serving);
    return hf_agent_serve(cli_agents_all(serving->agents),
                          cli_agents_count(serving->agents), cli_number(cli, "turns", 0),
                          &cli->err);
}

/* A configuration that cannot be used makes no store. */
int check_worker_config(struct cli *cli)
{
    struct hf_config *config = NULL;
    const char *path = NULL;
    int rc = cli_given(cli, "scripted") ? 0 : cli_config_read(cli, &path, &config);
    hf_config_free(config);
    return rc;
}

int cmd_worker(struct cli *cli)
{
    struct serving serving = { .cli = cli, .stop = { .fd = -1 } };
    int rc = cli_stop_take(cli, &serving.stop);
    if (rc == 0)
        rc = cli_open_store(cli);
    if (rc == 0)
        rc = hf_loop_new(NULL, &serving.loop, &cli->err);
    if (rc == 0)
        rc = serve(&serving);
    if (rc == 0 && serving.stop.by)
        log_line(&serving, "ended", NULL, serving.stop.by);
    hf_watch_free(serving.watch);
    cli_agents_close(serving.agents);
    hf_loop_free(serving.loop);
    cli_stop_end(&serving.stop);
    if (rc == 0 && cli->json) {
        cli_ok_begin(cli);
        hf_json_put_i64(&cli->writer, "turns", serving.turns);
        hf_json_put_i64(&cli->writer, "failed", serving.failed);
        cli_ok_end(cli);
    }
    return rc;
}
