/* A turn shown in a pipe (lines.h): two tables of methods for the same events. One writes plain
 * text, the other JSON. */
#include "cli/chat/lines.h"

#include <string.h>

#include "cli/chat/glyph.h"
#include "cli/chat/screen.h"

static struct lines *lines_of(struct show *show)
{
    return (struct lines *)show;
}

/* ---- plain text ----------------------------------------------------------------------- */

/* A text for one line of standard error, cut at `room` bytes. */
static const char *one_line(const char *text, size_t len, char *out, size_t room)
{
    struct glyph glyph;
    size_t at = 0;
    while (len) {
        size_t used = glyph_read(text, len, &glyph);
        if (used == 0 || at + glyph.len + 1 > room)
            break;
        if (*glyph.bytes == '\n' || *glyph.bytes == '\t')
            glyph.bytes[0] = ' ';
        memcpy(out + at, glyph.bytes, glyph.len);
        at += glyph.len;
        text += used;
        len -= used;
    }
    out[at] = 0;
    return out;
}

/* Writes what standard output has so far, so that it comes before what follows on standard
 * error. */
static void flush(struct show *show)
{
    if (cli_flush(lines_of(show)->cli))
        return; /* the chat flushes too, and notices */
}

static void plain_text(struct show *show, struct hf_span text)
{
    flow_text(&lines_of(show)->flow, text.at, text.len);
}

static void plain_note(struct show *show, const char *text)
{
    char line[600];
    flush(show);
    cli_note(lines_of(show)->cli, "%s", one_line(text, strlen(text), line, sizeof(line)));
}

static void plain_reset(struct show *show)
{
    flow_end(&lines_of(show)->flow);
    plain_note(show, "the model is called again; its text so far is discarded");
}

static void plain_model_called(struct show *show)
{
    flow_end(&lines_of(show)->flow);
}

static void plain_tool_began(struct show *show, const struct show_tool *tool)
{
    flow_end(&lines_of(show)->flow);
    (void)tool; /* one line per tool: at its end */
}

static void plain_tool_ended(struct show *show, const struct show_tool *tool)
{
    static const char *const words[] = { [HF_TOOL_SUCCESS] = "",
                                         [HF_TOOL_FAILURE] = " failed",
                                         [HF_TOOL_CANCELLED] = " was cancelled",
                                         [HF_TOOL_UNKNOWN] =
                                             ": it is not known whether it happened" };
    char name[80], args[120], text[300];
    const char *said = tool->text ? tool->text : "";
    flush(show);
    cli_note(lines_of(show)->cli, "tool %s %s%s: %s",
             one_line(tool->tool, strlen(tool->tool), name, sizeof(name)),
             one_line(tool->args.at, tool->args.len, args, sizeof(args)),
             words[tool->outcome], one_line(said, strlen(said), text, sizeof(text)));
}

static void plain_ended(struct show *show, const struct show_end *end)
{
    struct lines *lines = lines_of(show);
    char usage[128], text[300];
    if (!end->text_shown && !end->failed && end->text)
        flow_text(&lines->flow, end->text, strlen(end->text));
    flow_end(&lines->flow);
    screen_usage(&end->usage, end->whole_ms, usage, sizeof(usage));
    flush(show);
    if (!end->turn_id)
        cli_note(lines->cli,
                 "session %s: the turn is not finished; it continues when the session is "
                 "opened again",
                 end->session_id);
    else if (end->failed)
        cli_note(lines->cli, "session %s: %s%s%s", end->session_id,
                 end->outcome ? end->outcome : "failed", end->text ? ": " : "",
                 end->text ? one_line(end->text, strlen(end->text), text, sizeof(text))
                           : "");
    if (end->turn_id)
        cli_note(lines->cli, "session %s: %s", end->session_id, usage);
}

static void plain_asked(struct show *show, const struct show_wait *wait)
{
    static const char *const words[] = { [SHOW_APPROVAL] = "needs an approval",
                                         [SHOW_HAPPENED] = "may have happened",
                                         [SHOW_OUTSIDE] = "waits for its result" };
    struct cli *cli = lines_of(show)->cli;
    char tool[80], args[300], question[300], command[2][SHOW_COMMAND_BYTES];
    const char *name = wait->tool ? wait->tool : "the turn";
    const char *text = wait->question ? wait->question : "";
    flow_end(&lines_of(show)->flow);
    flush(show);
    cli_note(cli, "%s %s %s%s%s", one_line(name, strlen(name), tool, sizeof(tool)),
             one_line(wait->args.at, wait->args.len, args, sizeof(args)),
             words[wait->ask], *text ? ": " : "",
             one_line(text, strlen(text), question, sizeof(question)));
    (void)show_command(wait, true, command[0]);
    (void)show_command(wait, false, command[1]);
    if (wait->ask == SHOW_OUTSIDE)
        cli_note(cli, "it is answered by: %s", command[0]);
    else
        cli_note(cli, "it is answered by: %s, or: %s", command[0], command[1]);
    cli_note(
        cli,
        "the turn continues when that is done: here, in a worker, or when session %s "
        "is opened again",
        wait->session_id);
}

static void plain_answered(struct show *show, const struct show_answer *answer)
{
    char text[600];
    plain_note(show, show_answered(answer, text, sizeof(text)));
}

static const struct show_methods plain_methods = {
    .text = plain_text,
    .reset = plain_reset,
    .model_called = plain_model_called,
    .tool_began = plain_tool_began,
    .tool_ended = plain_tool_ended,
    .ended = plain_ended,
    .asked = plain_asked,
    .answered = plain_answered,
    .note = plain_note,
};

/* ---- JSON ----------------------------------------------------------------------------- */

static struct hf_json *begin(struct show *show, const char *event)
{
    struct cli *cli = lines_of(show)->cli;
    hf_json_begin(&cli->writer, &cli->out);
    hf_json_object(&cli->writer);
    hf_json_put_str(&cli->writer, "event", event);
    return &cli->writer;
}

static void end(struct show *show)
{
    cli_ok_end(lines_of(show)->cli);
}

static void put_span(struct hf_json *json, const char *key, struct hf_span text)
{
    hf_json_key(json, key);
    hf_json_strn(json, text.at, text.len);
}

static void json_text(struct show *show, struct hf_span text)
{
    put_span(begin(show, "text"), "text", text);
    end(show);
}

static void json_reset(struct show *show)
{
    (void)begin(show, "reset");
    end(show);
}

static void json_model_called(struct show *show)
{
    (void)begin(show, "model_called");
    end(show);
}

static void json_tool_began(struct show *show, const struct show_tool *tool)
{
    struct hf_json *json = begin(show, "tool_started");
    hf_json_put_str(json, "call_id", tool->call_id);
    hf_json_put_str(json, "tool", tool->tool);
    put_span(json, "args", tool->args);
    end(show);
}

static void json_tool_ended(struct show *show, const struct show_tool *tool)
{
#define X(name, word) [HF_TOOL_##name] = #word,
    static const char *const outcomes[] = { HF_TOOL_OUTCOMES(X) };
#undef X
    struct hf_json *json = begin(show, "tool_ended");
    hf_json_put_str(json, "call_id", tool->call_id);
    hf_json_put_str(json, "tool", tool->tool);
    hf_json_put_str(json, "outcome", outcomes[tool->outcome]);
    hf_json_put_str(json, "text", tool->text);
    hf_json_put_i64(json, "duration_ms", tool->duration_ms);
    end(show);
}

static void json_ended(struct show *show, const struct show_end *turn)
{
    struct hf_json *json = begin(show, "turn");
    hf_json_put_str(json, "session_id", turn->session_id);
    hf_json_put_str(json, "turn_id", turn->turn_id);
    hf_json_put_str(json, "outcome", turn->outcome);
    hf_json_put_bool(json, "answered", !turn->failed);
    hf_json_put_bool(json, "retryable", turn->retryable);
    hf_json_put_str(json, "text", turn->text);
    hf_json_put_str(json, "issue", turn->issue);
    hf_json_key(json, "usage");
    hf_json_object(json);
    hf_json_put_i64(json, "input", turn->usage.input);
    hf_json_put_i64(json, "output", turn->usage.output);
    hf_json_put_i64(json, "cache_read", turn->usage.cache_read);
    hf_json_put_i64(json, "cache_write", turn->usage.cache_write);
    hf_json_put_i64(json, "reasoning", turn->usage.reasoning);
    hf_json_end(json);
    hf_json_put_i64(json, "whole_ms", turn->whole_ms);
    end(show);
}

static void put_raw(struct hf_json *json, const char *key, struct hf_span raw)
{
    hf_json_key(json, key);
    if (raw.len)
        hf_json_rawn(json, raw.at, raw.len);
    else
        hf_json_null(json);
}

static void json_asked(struct show *show, const struct show_wait *wait)
{
    static const char *const words[] = { [SHOW_APPROVAL] = "approval",
                                         [SHOW_HAPPENED] = "happened",
                                         [SHOW_OUTSIDE] = "result" };
    struct hf_json *json = begin(show, "asked");
    hf_json_put_str(json, "wait_id", wait->wait_id);
    hf_json_put_str(json, "session_id", wait->session_id);
    hf_json_put_str(json, "about", words[wait->ask]);
    hf_json_put_str(json, "question", wait->question);
    hf_json_put_str(json, "tool", wait->tool);
    put_raw(json, "arguments", wait->args);
    hf_json_put_bool(json, "edits", wait->edits);
    hf_json_put_str(json, "answerer", wait->answerer);
    hf_json_put_i64(json, "deadline_at", wait->deadline_at);
    hf_json_put_str(json, "policy", wait->policy);
    end(show);
}

static void json_answered(struct show *show, const struct show_answer *answer)
{
    struct hf_json *json = begin(show, "answered");
    hf_json_put_str(json, "wait_id", answer->wait_id);
    put_raw(json, "outcome",
            (struct hf_span){ answer->outcome,
                              answer->outcome ? strlen(answer->outcome) : 0 });
    hf_json_put_str(json, "actor", answer->actor);
    end(show);
}

static void json_note(struct show *show, const char *text)
{
    hf_json_put_str(begin(show, "note"), "text", text);
    end(show);
}

static const struct show_methods json_methods = {
    .text = json_text,
    .reset = json_reset,
    .model_called = json_model_called,
    .tool_began = json_tool_began,
    .tool_ended = json_tool_ended,
    .ended = json_ended,
    .asked = json_asked,
    .answered = json_answered,
    .note = json_note,
};

void lines_init(struct lines *lines, struct cli *cli)
{
    *lines = (struct lines){ .show.methods = cli->json ? &json_methods : &plain_methods,
                             .cli = cli };
    flow_init(&lines->flow, &cli->out, 0);
}

void lines_fini(struct lines *lines)
{
    flow_fini(&lines->flow);
}
