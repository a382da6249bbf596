/* A conversation on a terminal (screen.h): the bytes of each block, in the order in which they
 * appear. A block is one thing that was said or that happened: a message, an answer, a tool call,
 * a note. The status line and the line editor are below the last block, and are erased before the
 * next. */
#include "cli/chat/screen.h"

#include <stdio.h>
#include <string.h>

#include "base/json_walk.h"
#include "base/text.h"
#include "cli/chat/glyph.h"

#define OUT_BYTES_MAX (64u << 20)
#define PLAIN "\x1b[0m"
#define BOLD "\x1b[1m"
#define DIM "\x1b[2m"
#define RED "\x1b[31m"
#define GREEN "\x1b[32m"
#define YELLOW "\x1b[33m"
#define BLUE "\x1b[34m"

static const struct show_methods screen_methods;

void screen_init(struct screen *screen, size_t width, size_t height, bool colour)
{
    *screen = (struct screen){ .show.methods = &screen_methods,
                               .width = width,
                               .height = height,
                               .mark = SCREEN_MARK,
                               .colour = colour };
    hf_buf_init(&screen->out, hf_alloc_system(), OUT_BYTES_MAX);
    hf_buf_init(&screen->status, hf_alloc_system(), 4096);
    flow_init(&screen->flow, &screen->out, width);
}

void screen_fini(struct screen *screen)
{
    flow_fini(&screen->flow);
    paint_fini(&screen->paint);
    hf_buf_fini(&screen->status);
    hf_buf_fini(&screen->out);
}

static void colour(struct screen *screen, const char *code)
{
    if (screen->colour)
        hf_buf_text(&screen->out, code);
}

static size_t limit_of(const struct screen *screen)
{
    return screen->width > 1 ? screen->width - 1 : 1;
}

/* ---- lines ---------------------------------------------------------------------------- */

/* Writes text until `columns` are full; line feeds and tabs become spaces. A text that is cut
 * ends in "…". Returns the columns that it took. */
static size_t put_cut(struct screen *screen, const char *text, size_t len, size_t columns)
{
    struct glyph glyph;
    bool whole = glyph_columns(text, len) <= columns;
    size_t most = whole ? columns : columns - (columns > 0);
    size_t taken = 0;
    while (len) {
        size_t used = glyph_read(text, len, &glyph);
        if (*glyph.bytes == '\n' || *glyph.bytes == '\t')
            glyph = (struct glyph){ " ", 1, 1 };
        if (used == 0 || taken + glyph.columns > most)
            break;
        hf_buf_bytes(&screen->out, glyph.bytes, glyph.len);
        taken += glyph.columns;
        text += used;
        len -= used;
    }
    if (!whole && taken < columns) {
        hf_buf_text(&screen->out, "…");
        taken++;
    }
    return taken;
}

static void erase_status(struct screen *screen)
{
    if (screen->status_columns == 0)
        return;
    for (size_t i = (screen->status_columns - 1) / screen->width; i > 0; i--)
        hf_buf_text(&screen->out, "\x1b[A"); /* a narrower terminal has broken it */
    hf_buf_text(&screen->out, "\r\x1b[J");
    screen->status_columns = 0;
}

static void end_text(struct screen *screen)
{
    if (screen->streaming)
        flow_end(&screen->flow);
    screen->streaming = false;
}

/* Writes the blank line before a block, unless it is there. */
static void put_gap(struct screen *screen)
{
    if (screen->last != BLOCK_NONE && !screen->gap)
        hf_buf_text(&screen->out, "\r\n");
    screen->gap = true;
}

/* Makes the cursor be at the start of an empty row where a block of that kind may begin. */
static void begin_block(struct screen *screen, enum screen_block block)
{
    erase_status(screen);
    screen_prompt_end(screen);
    end_text(screen);
    if (block != BLOCK_TOOL || screen->last != BLOCK_TOOL)
        put_gap(screen);
    screen->gap = false;
    screen->last = block;
}

static void show_status(struct screen *screen)
{
    size_t room = limit_of(screen) > 2 ? limit_of(screen) - 2 : 0;
    erase_status(screen);
    if (screen->status.len == 0)
        return;
    if (screen->last != BLOCK_TOOL)
        put_gap(screen);
    colour(screen, DIM);
    hf_buf_text(&screen->out, "  ");
    screen->status_columns = 2 + put_cut(screen, hf_buf_str(&screen->status),
                                         screen->status.len, room);
    colour(screen, PLAIN);
}

void screen_status(struct screen *screen, const char *text)
{
    hf_buf_reset(&screen->status);
    hf_buf_text(&screen->status, text ? text : "");
    if (!screen->streaming)
        show_status(screen);
}

/* ---- blocks --------------------------------------------------------------------------- */

void screen_title(struct screen *screen, const char *title, const char *detail)
{
    begin_block(screen, BLOCK_NOTE);
    colour(screen, BOLD);
    (void)put_cut(screen, title, strlen(title), limit_of(screen));
    colour(screen, PLAIN);
    hf_buf_text(&screen->out, "\r\n");
    colour(screen, DIM);
    (void)put_cut(screen, detail, strlen(detail), limit_of(screen));
    colour(screen, PLAIN);
    hf_buf_text(&screen->out, "\r\n");
}

/* A whole text behind a mark, under which its lines are indented. */
static void put_hung(struct screen *screen, const char *mark, struct hf_span text)
{
    struct flow flow;
    flow_init(&flow, &screen->out, screen->width);
    flow_hang(&flow, mark, glyph_columns(mark, strlen(mark)));
    flow_text(&flow, text.at, text.len);
    flow_end(&flow);
    flow_fini(&flow);
}

static void put_marked(struct screen *screen, const char *mark, const char *text)
{
    put_hung(screen, mark, (struct hf_span){ text, strlen(text) });
}

void screen_user(struct screen *screen, const char *text)
{
    begin_block(screen, BLOCK_TEXT);
    colour(screen, BOLD);
    put_marked(screen, "› ", text);
    colour(screen, PLAIN);
}

void screen_answer(struct screen *screen, struct hf_span text)
{
    begin_block(screen, BLOCK_TEXT);
    flow_text(&screen->flow, text.at, text.len);
    flow_end(&screen->flow);
}

void screen_note(struct screen *screen, const char *text, bool failed)
{
    begin_block(screen, BLOCK_NOTE);
    colour(screen, failed ? RED : DIM);
    put_marked(screen, "  ", text);
    colour(screen, PLAIN);
}

/* ---- the editor ----------------------------------------------------------------------- */

void screen_prompt(struct screen *screen, const struct editor *editor)
{
    struct paint_style style = { .width = screen->width,
                                 .height = screen->height,
                                 .mark = screen->mark,
                                 .mark_columns = glyph_columns(screen->mark,
                                                               strlen(screen->mark)),
                                 .mark_colour = screen->colour ? BOLD BLUE : "",
                                 .plain = screen->colour ? PLAIN : "" };
    if (screen->paint.rows == 0) {
        erase_status(screen);
        end_text(screen);
        put_gap(screen);
    }
    paint_draw(&screen->paint, &screen->out, editor, &style);
}

void screen_prompt_end(struct screen *screen)
{
    paint_erase(&screen->paint, &screen->out, screen->width);
}

void screen_clear(struct screen *screen, const struct editor *editor)
{
    hf_buf_text(&screen->out, "\x1b[H\x1b[2J");
    screen->paint.rows = screen->paint.cursor_row = 0;
    screen->status_columns = 0;
    screen->last = BLOCK_NONE;
    screen->gap = false;
    screen_prompt(screen, editor);
}

void screen_resize(struct screen *screen, size_t width, size_t height)
{
    screen->height = height;
    screen->width = width;
    flow_resize(&screen->flow, width);
    if (screen->status_columns)
        show_status(screen);
}

/* ---- numbers -------------------------------------------------------------------------- */

static const char *time_text(hf_ms ms, char *out, size_t room)
{
    if (ms < 1000)
        (void)snprintf(out, room, "%lldms", (long long)ms);
    else if (ms < 60000)
        (void)snprintf(out, room, "%lld.%llds", (long long)(ms / 1000),
                       (long long)(ms % 1000 / 100));
    else
        (void)snprintf(out, room, "%lldm %llds", (long long)(ms / 60000),
                       (long long)(ms % 60000 / 1000));
    return out;
}

static const char *count_text(int64_t count, char *out, size_t room)
{
    if (count < 10000)
        (void)snprintf(out, room, "%lld", (long long)count);
    else
        (void)snprintf(out, room, "%lld.%lldk", (long long)(count / 1000),
                       (long long)(count % 1000 / 100));
    return out;
}

void screen_usage(const struct hf_usage *usage, hf_ms ms, char *out, size_t room)
{
    char in[24], from[24], time[40];
    (void)snprintf(
        out, room, "%s tokens in · %s out · %s",
        count_text(usage->input + usage->cache_read + usage->cache_write, in, sizeof(in)),
        count_text(usage->output, from, sizeof(from)), time_text(ms, time, sizeof(time)));
}

/* ---- a turn --------------------------------------------------------------------------- */

static struct screen *screen_of(struct show *show)
{
    return (struct screen *)show;
}

static void on_text(struct show *show, struct hf_span text)
{
    struct screen *screen = screen_of(show);
    if (!screen->streaming)
        begin_block(screen, BLOCK_TEXT);
    screen->streaming = true;
    flow_text(&screen->flow, text.at, text.len);
}

static void on_reset(struct show *show)
{
    struct screen *screen = screen_of(show);
    if (screen->streaming)
        screen_note(screen, "the model is called again; its text so far is discarded",
                    false);
}

/* The bytes of the result without the line feeds at its end. */
static size_t result_len(const struct show_tool *tool)
{
    size_t len = tool->text ? strlen(tool->text) : 0;
    while (len && strchr(" \n\t\r", tool->text[len - 1]))
        len--;
    return len;
}

/* The columns of the result with its arrow; 0: there is none. */
static size_t result_columns(const struct show_tool *tool)
{
    size_t len = result_len(tool);
    return len ? 3 + glyph_columns(tool->text, len) : 0;
}

/* The arguments, unless there are none: what the result leaves, and at least a third. */
static size_t put_args(struct screen *screen, const struct show_tool *tool, size_t room)
{
    size_t result = result_columns(tool);
    size_t most = room > result && room - result > room / 3 ? room - result : room / 3;
    if (tool->args.len <= 2 || most < 8) /* {} */
        return 0;
    hf_buf_char(&screen->out, ' ');
    return 1 + put_cut(screen, tool->args.at, tool->args.len, most - 1);
}

/* Shows the result of a call after an arrow, in at most `room` columns. */
static void put_result(struct screen *screen, const struct show_tool *tool, size_t room)
{
    if (result_columns(tool) == 0 || room < 6)
        return;
    hf_buf_text(&screen->out, " → ");
    (void)put_cut(screen, tool->text, result_len(tool), room - 3);
}

/* "  ✓ add {"n":1} → 3 · 12 ms" on one row. */
static void put_tool(struct screen *screen, const struct show_tool *tool)
{
    static const struct {
        const char *mark;
        const char *colour;
    } marks[] = { [HF_TOOL_SUCCESS] = { "✓", GREEN },
                  [HF_TOOL_FAILURE] = { "✗", RED },
                  [HF_TOOL_CANCELLED] = { "✗", YELLOW },
                  [HF_TOOL_UNKNOWN] = { "?", YELLOW } };
    char time[40], end[48] = "";
    size_t left = limit_of(screen);
    bool past = tool->duration_ms < 0;
    hf_buf_text(&screen->out, "  ");
    colour(screen, past ? DIM : marks[tool->outcome].colour);
    hf_buf_text(&screen->out, past ? "•" : marks[tool->outcome].mark);
    colour(screen, PLAIN);
    colour(screen, DIM);
    hf_buf_char(&screen->out, ' ');
    if (!past)
        (void)snprintf(end, sizeof(end), " · %s",
                       time_text(tool->duration_ms, time, sizeof(time)));
    size_t tail = glyph_columns(end, strlen(end));
    left = left > 4 + tail ? left - 4 - tail : 0;
    left -= put_cut(screen, tool->tool, strlen(tool->tool), left / 2);
    left -= put_args(screen, tool, left);
    put_result(screen, tool, left);
    hf_buf_text(&screen->out, end);
    colour(screen, PLAIN);
    hf_buf_text(&screen->out, "\r\n");
}

static void on_model_called(struct show *show)
{
    end_text(screen_of(show));
}

static void on_tool_began(struct show *show, const struct show_tool *tool)
{
    struct screen *screen = screen_of(show);
    end_text(screen);
    (void)tool; /* the status line names it */
}

static void on_tool_ended(struct show *show, const struct show_tool *tool)
{
    struct screen *screen = screen_of(show);
    begin_block(screen, BLOCK_TOOL);
    put_tool(screen, tool);
}

/* ---- a question ----------------------------------------------------------------------- */

#define KEY_COLUMNS 14
#define SHOWN_MEMBERS 8
#define SHOWN_LINES 5
#define SHOWN_BYTES 300

/* "    amount  ": the name of an argument, cut or filled up to this many columns. */
static const char *member_mark(struct hf_span name, size_t columns, char out[128])
{
    struct glyph glyph;
    size_t at = 4, taken = 0;
    const char *text = name.at;
    memcpy(out, "    ", 5);
    while (name.len) {
        size_t used = glyph_read(text, name.len, &glyph);
        if (used == 0 || taken + glyph.columns > columns || at + glyph.len > 100)
            break;
        if (glyph.bytes[0] != '\n' && glyph.bytes[0] != '\t') {
            memcpy(out + at, glyph.bytes, glyph.len);
            at += glyph.len;
            taken += glyph.columns;
        }
        text += used;
        name.len -= used;
    }
    for (; taken < columns + 2; taken++)
        out[at++] = ' ';
    out[at] = 0;
    return out;
}

/* The bytes of the first lines of a value. */
static size_t first_part(struct hf_span value)
{
    const char *text = value.at;
    size_t len = value.len < SHOWN_BYTES ? value.len : SHOWN_BYTES, lines = 0;
    for (size_t i = 0; i < len; i++)
        if (text[i] == '\n' && ++lines == SHOWN_LINES)
            len = i;
    return len == value.len ? len : hf_utf8_cut(text, len);
}

/* Returns whether it is shown whole. */
static bool put_value(struct screen *screen, const char *mark, struct hf_span value,
                      bool whole)
{
    size_t len = whole ? value.len : first_part(value);
    char more[160];
    put_hung(screen, mark,
             value.len ? (struct hf_span){ value.at, len }
                       : (struct hf_span){ "\"\"", 2 });
    if (len == value.len)
        return true;
    (void)snprintf(more, sizeof(more), "%*s… and %zu bytes more",
                   (int)glyph_columns(mark, strlen(mark)), "", value.len - len);
    put_marked(screen, "", more);
    return false;
}

/* What a value is shown as: a text as it reads, any other value as its JSON. */
static struct hf_span readable(struct hf_arena *arena, struct hf_span raw)
{
    struct hf_span text = { NULL, 0 };
    const char *at = raw.at;
    return raw.len && *at == '"' && hf_walk_text(arena, raw, &text) == 0 ? text : raw;
}

static size_t widest_key(const struct screen *screen, struct hf_span args)
{
    size_t most = limit_of(screen) / 4 < KEY_COLUMNS ? limit_of(screen) / 4 : KEY_COLUMNS;
    struct hf_walk walk;
    size_t widest = 0;
    hf_walk_begin(&walk, args);
    if (hf_walk_enter(&walk, '{'))
        while (hf_walk_more(&walk)) {
            struct hf_span key = hf_walk_key(&walk);
            size_t columns = glyph_columns(key.at, key.len) - 2; /* the quotes */
            (void)hf_walk_value(&walk);
            widest = columns > widest ? columns : widest;
        }
    return widest < most ? widest : most;
}

/* A row or more per argument. Returns whether all of them are shown whole. */
static bool put_arguments(struct screen *screen, const struct show_wait *wait)
{
    struct hf_arena arena;
    struct hf_walk walk;
    size_t count = 0, columns = widest_key(screen, wait->args);
    bool all = true;
    char mark[128];
    hf_arena_init(&arena, hf_alloc_system());
    hf_walk_begin(&walk, wait->args);
    if (!hf_walk_enter(&walk, '{'))
        all = put_value(screen, "    ", wait->args, wait->whole);
    else
        while (hf_walk_more(&walk)) {
            struct hf_span key = readable(&arena, hf_walk_key(&walk));
            struct hf_span value = readable(&arena, hf_walk_value(&walk));
            if (!wait->whole && count++ >= SHOWN_MEMBERS)
                continue;
            all &= put_value(screen, member_mark(key, columns, mark), value, wait->whole);
        }
    if (!wait->whole && count > SHOWN_MEMBERS) {
        (void)snprintf(mark, sizeof(mark), "… and %zu arguments more",
                       count - SHOWN_MEMBERS);
        put_marked(screen, "    ", mark);
        all = false;
    }
    hf_arena_fini(&arena);
    return all;
}

/* Shows how a question is answered, and what happens without an answer. `wait->here`: it is asked
 * at the prompt below, and these are its keys; waits.c never asks SHOW_OUTSIDE there. Otherwise
 * commands answer it. `wait->edits`: the answer may have other arguments, or a result. `all`: the
 * arguments are shown whole. */
static void put_ways(struct screen *screen, const struct show_wait *wait, bool all)
{
    static const char *const ways[] = {
        [SHOW_APPROVAL] = "y approves · n REASON denies",
        [SHOW_HAPPENED] = "y it happened · n REASON it did not",
    };
    char text[400], command[2][SHOW_COMMAND_BYTES], date[SHOW_DATE_BYTES];
    if (wait->here)
        (void)snprintf(text, sizeof(text), "%s%s%s", ways[wait->ask],
                       !wait->edits                 ? ""
                       : wait->ask == SHOW_APPROVAL ? " · e edits the arguments"
                                                    : " · e it happened, with a result",
                       all ? "" : " · v shows all of it");
    else if (wait->answerer)
        (void)snprintf(text, sizeof(text), "%.80s is to answer: %s", wait->answerer,
                       show_command(wait, true, command[0]));
    else
        (void)snprintf(text, sizeof(text), "%s", show_command(wait, true, command[0]));
    put_marked(screen, "    ", text);
    if (!wait->here && wait->ask != SHOW_OUTSIDE)
        put_marked(screen, "    ", show_command(wait, false, command[1]));
    (void)snprintf(text, sizeof(text), "without an answer by %s: %s",
                   show_date(wait->deadline_at, date), show_policy(wait));
    if (wait->deadline_at)
        put_marked(screen, "    ", text);
}

static void on_asked(struct show *show, const struct show_wait *wait)
{
    static const char *const titles[] = { [SHOW_APPROVAL] = "may it be called?",
                                          [SHOW_HAPPENED] = "did it happen?",
                                          [SHOW_OUTSIDE] = "waits for its result" };
    struct screen *screen = screen_of(show);
    char title[160];
    (void)snprintf(title, sizeof(title), "%.80s · %s",
                   wait->tool ? wait->tool : "the turn", titles[wait->ask]);
    begin_block(screen, BLOCK_NOTE);
    colour(screen, YELLOW);
    put_marked(screen, "  ? ", title);
    colour(screen, PLAIN);
    if (wait->question && !show_is_usual(wait))
        put_marked(screen, "    ", wait->question);
    bool all = wait->args.len <= 2 || put_arguments(screen, wait);
    colour(screen, DIM);
    put_ways(screen, wait, all);
    colour(screen, PLAIN);
}

static void on_answered(struct show *show, const struct show_answer *answer)
{
    struct screen *screen = screen_of(show);
    char text[600];
    begin_block(screen, BLOCK_TOOL);
    colour(screen, hf_same(answer->kind, "approve") || hf_same(answer->kind, "ok")
                       ? GREEN
                       : YELLOW);
    put_marked(screen, "  ! ", show_answered(answer, text, sizeof(text)));
    colour(screen, PLAIN);
}

static void put_failure(struct screen *screen, const struct show_end *end)
{
    char text[512];
    (void)snprintf(text, sizeof(text), "%s%s%.400s%s",
                   end->outcome ? end->outcome : "failed", end->text ? ": " : "",
                   end->text ? end->text : "",
                   end->retryable ? "\n/retry sends the message again" : "");
    screen_note(screen, text, true);
}

static void on_ended(struct show *show, const struct show_end *end)
{
    struct screen *screen = screen_of(show);
    char usage[128], line[160];
    if (!end->turn_id) {
        screen_note(screen,
                    "this turn is not finished: it continues when the session is opened "
                    "again, or in a worker",
                    false);
        return;
    }
    if (!end->text_shown && !end->failed && end->text)
        screen_answer(screen, (struct hf_span){ end->text, strlen(end->text) });
    if (end->failed && !end->cancelled)
        put_failure(screen, end);
    screen_usage(&end->usage, end->whole_ms, usage, sizeof(usage));
    (void)snprintf(line, sizeof(line), "%s%s", end->cancelled ? "cancelled · " : "",
                   usage);
    screen_note(screen, line, false);
}

static void on_note(struct show *show, const char *text)
{
    screen_note(screen_of(show), text, false);
}

static const struct show_methods screen_methods = {
    .text = on_text,
    .reset = on_reset,
    .model_called = on_model_called,
    .tool_began = on_tool_began,
    .tool_ended = on_tool_ended,
    .ended = on_ended,
    .asked = on_asked,
    .answered = on_answered,
    .note = on_note,
};
