/* One message of the chat and its turn: it is sent, and the loop runs until the turn has ended or
 * waits. Meanwhile the events of the worker are shown. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/attach.h>

#include "base/text.h"
#include "cli/chat/chat.h"

#define TICK_MS 1000

/* ---- current activity ------------------------------------------------------------------ */

static const struct chat_tool *running_tool(const struct chat *chat, size_t *ret_count)
{
    const struct chat_tool *first = NULL;
    *ret_count = 0;
    for (size_t i = 0; i < CHAT_TOOLS_MAX; i++)
        if (chat->tools[i].call_id && !chat->tools[i].ended) {
            (*ret_count)++;
            if (!first || chat->tools[i].began < first->began)
                first = &chat->tools[i];
        }
    return first;
}

/* One line: what the turn waits for, and for how long. */
static void show_status(struct chat *chat)
{
    char line[512], time[32] = "", more[32] = "";
    size_t count = 0;
    if (!chat->on_screen || !chat->running || chat->interrupts ||
        chat->waits.asks != ASKS_NOTHING)
        return;
    const struct chat_tool *tool = running_tool(chat, &count);
    hf_ms ms = chat_now(chat) - (tool ? tool->began : chat->began);
    if (ms >= 1000)
        (void)snprintf(time, sizeof(time), " · %llds", (long long)(ms / 1000));
    if (count > 1)
        (void)snprintf(more, sizeof(more), " and %zu more", count - 1);
    if (tool)
        (void)snprintf(line, sizeof(line), "… %.80s %.200s%s%s", tool->tool, tool->args,
                       more, time);
    else
        (void)snprintf(line, sizeof(line), "…%s", time);
    screen_status(&chat->screen, line);
}

static void tick(void *user)
{
    struct chat *chat = user;
    struct hf_task task = { chat, tick };
    show_status(chat);
    chat_flush(chat);
    if (chat->running && hf_timer_start(chat->loop, &chat->tick, TICK_MS, &task))
        return; /* no memory: the line stays as it is */
}

/* ---- events ----------------------------------------------------------------------------- */

static void forget(struct chat_tool *tool)
{
    free(tool->call_id);
    free(tool->tool);
    free(tool->args);
    *tool = (struct chat_tool){ 0 };
}

static void forget_all(struct chat *chat)
{
    for (size_t i = 0; i < CHAT_TOOLS_MAX; i++)
        forget(&chat->tools[i]);
}

/* The place of a call; NULL: no event had it. */
static struct chat_tool *place_of(struct chat *chat, const char *call_id)
{
    for (size_t i = 0; i < CHAT_TOOLS_MAX; i++)
        if (chat->tools[i].call_id && hf_same(chat->tools[i].call_id, call_id))
            return &chat->tools[i];
    return NULL;
}

/* A place for another call, of one that has ended if all are taken; NULL: all run. */
static struct chat_tool *free_place(struct chat *chat)
{
    struct chat_tool *place = NULL;
    for (size_t i = 0; i < CHAT_TOOLS_MAX; i++) {
        if (!chat->tools[i].call_id)
            return &chat->tools[i];
        if (chat->tools[i].ended)
            place = &chat->tools[i];
    }
    if (place)
        forget(place);
    return place;
}

static void tool_began(struct chat *chat, const struct hf_drive_call *call)
{
    struct show_tool shown = { .call_id = call->key.call_id,
                               .tool = call->tool,
                               .args = call->args };
    struct chat_tool *place = free_place(chat);
    chat->show->methods->tool_began(chat->show, &shown);
    if (place) { /* without memory for them they are not shown */
        *place = (struct chat_tool){ .call_id = strdup(call->key.call_id),
                                     .tool = strdup(call->tool),
                                     .args = strndup(call->args.at, call->args.len),
                                     .began = chat_now(chat) };
        if (!place->call_id || !place->tool || !place->args)
            forget(place);
    }
    show_status(chat);
}

static void tool_ended(struct chat *chat, const struct hf_worker_event *event)
{
    struct chat_tool *place = place_of(chat, event->call->key.call_id);
    const char *args = place ? place->args : "";
    char line[512] = "";
    struct show_tool shown = { .call_id = event->call->key.call_id,
                               .tool = event->call->tool,
                               .args = { args, strlen(args) },
                               .outcome = HF_TOOL_UNKNOWN,
                               .text = event->message,
                               .duration_ms = place ? chat_now(chat) - place->began : 0 };
    if (event->result) {
        hf_tool_result_line(event->result, sizeof(line), line);
        shown.outcome = event->result->outcome;
        shown.text = line;
    }
    chat->show->methods->tool_ended(chat->show, &shown);
    if (place)
        place->ended = true;
    chat->text_shown = false;
    chat->began = chat_now(chat);
    show_status(chat);
}

/* Events of the machine: the start of a model call, and calls that were answered without any
 * tool (it does not exist, its arguments do not fit). */
static void emitted(struct chat *chat, const struct hf_emit *emit)
{
    if (emit->kind == HF_EMIT_LLM_REQUEST) {
        chat->show->methods->model_called(chat->show);
        chat->text_shown = false;
        chat->began = chat_now(chat);
    } else if (emit->kind == HF_EMIT_TOOL_CALL && !place_of(chat, emit->call_id)) {
        struct show_tool shown = { .call_id = emit->call_id,
                                   .tool = emit->tool,
                                   .args = { "", 0 },
                                   .outcome = emit->outcome,
                                   .text = "was not called" };
        chat->show->methods->tool_ended(chat->show, &shown);
    }
    show_status(chat);
}

void chat_heard(void *user, const struct hf_worker_event *event)
{
    struct chat *chat = user;
    switch (event->kind) {
    case HF_WORKER_TEXT:
        chat->text_shown = true;
        chat->show->methods->text(chat->show, event->text);
        break;
    case HF_WORKER_RESET:
        if (chat->text_shown) /* and not by a process that was killed */
            chat->show->methods->reset(chat->show);
        chat->text_shown = false;
        break;
    case HF_WORKER_TOOL_STARTED: tool_began(chat, event->call); break;
    case HF_WORKER_TOOL_ENDED: tool_ended(chat, event); break;
    case HF_WORKER_LOST:
        chat_note(chat, false, "another worker has taken over this session");
        break;
    case HF_WORKER_FAULT:
        chat_note(chat, false, "the store does not answer, trying again: %s",
                  event->message ? event->message : hf_err_text(event->code));
        break;
    case HF_WORKER_EMIT: emitted(chat, event->emit); break;
    case HF_WORKER_ASKED: chat_waits_look(chat); break;
    case HF_WORKER_CLAIMED: chat_waits_refresh(chat); break;
    case HF_WORKER_REASONING:
    case HF_WORKER_AWAY:
    case HF_WORKER_TURN_ENDED:
    case HF_WORKER_BACK: return;
    }
    chat_flush(chat);
}

/* ---- a turn ----------------------------------------------------------------------------- */

static void show_end(struct chat *chat, const struct hf_agent_report *report)
{
    const struct hf_agent_issue *issue = report->issue_count
                                             ? &report->issues[report->issue_count - 1]
                                             : NULL;
    struct show_end end = { .session_id = report->session_id,
                            .turn_id = report->ended ? report->turn_id : NULL,
                            .outcome = report->outcome,
                            .failed = !report->answered,
                            .cancelled = hf_same(report->outcome, "cancelled"),
                            .text = report->text,
                            .usage = report->usage,
                            .whole_ms = report->whole_ms,
                            .text_shown = chat->text_shown };
    if (issue && report->ended && end.failed) {
        end.issue = issue->code;
        end.retryable = issue->retryable;
        end.text = end.text && *end.text ? end.text : issue->message;
    }
    chat->failed = end.failed;
    chat->cancelled = end.cancelled;
    if (report->turn_id || report->work_id)
        chat->show->methods->ended(chat->show, &end);
    if (chat->files_sent && hf_same(end.issue, "request_refused"))
        chat_note(chat, false,
                  "if the model takes no images, write images = false into its table "
                  "[model.%.60s]",
                  cli_agents_model(chat->agents, 0));
}

static int run_turn(struct chat *chat, const struct hf_agent_run *run)
{
    struct hf_agent_report *report = NULL;
    chat->running = true;
    chat->interrupts = 0;
    chat->text_shown = false;
    chat->began = chat_now(chat);
    tick(chat);
    chat_waits_begin(chat, !run->text && !run->message);
    int rc = hf_agent_run(chat->agent, run, &report, &chat->cli->err);
    chat->running = false;
    chat_waits_end(chat);
    hf_timer_stop(chat->loop, &chat->tick);
    forget_all(chat);
    if (rc == 0)
        show_end(chat, report);
    hf_agent_report_free(report);
    if (chat->on_screen)
        screen_status(&chat->screen, NULL);
    chat_flush(chat);
    return rc;
}

/* The message that the run sends: with files it is written before, and they are stored. */
static int write_message(struct chat *chat, const char *text, struct hf_agent_run *run,
                         char **ret_json)
{
    struct hf_user_message message = { .size = sizeof(message),
                                       .text = text,
                                       .paths = chat->attached,
                                       .path_count = chat->attached_count };
    if (!text || chat->attached_count == 0) {
        run->text = text;
        return 0;
    }
    int rc = hf_user_message_write(chat->cli->store, &message, ret_json, &chat->cli->err);
    if (rc == 0)
        run->message = *ret_json;
    chat->files_sent = true;
    chat->attached_count = 0; /* also if one was refused: it can be named again */
    return rc;
}

int chat_run(struct chat *chat, const char *text)
{
    struct hf_agent_run run = { .size = sizeof(run), .session_id = chat->session_id };
    char *json = NULL;
    int rc = write_message(chat, text, &run, &json);
    if (rc == 0)
        rc = run_turn(chat, &run);
    hf_store_text_free(chat->cli->store, json);
    return rc;
}
