/* The line editor of the chat: bytes from a terminal in, an edited text out.
 *
 * Each byte goes to editor_feed, which is a small machine: in GROUND a byte is a key or a
 * character; ESCAPE, SEQUENCE and FUNCTION collect what follows an ESC; PARTIAL collects the bytes
 * of a character that has several. `held` has the bytes of what is being collected. What is pasted
 * comes between two sequences of the terminal, and is text, whatever bytes it has. */
#include "cli/chat/editor.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/chat/glyph.h"

enum { GROUND, ESCAPE, SEQUENCE, FUNCTION, PARTIAL };

void editor_init(struct editor *editor)
{
    *editor = (struct editor){ .state = GROUND };
}

void editor_fini(struct editor *editor)
{
    for (size_t i = 0; i < editor->history_count; i++)
        free(editor->history[i]);
    free(editor->text);
    free(editor->killed);
    free(editor->draft);
    editor_init(editor);
}

const char *editor_text(const struct editor *editor)
{
    return editor->text ? editor->text : "";
}

bool editor_busy(const struct editor *editor)
{
    return editor->state != GROUND || editor->pasting;
}

/* ---- the text ------------------------------------------------------------------------- */

static bool make_room(struct editor *editor, size_t more)
{
    size_t need = editor->len + more + 1;
    if (need <= editor->room)
        return true;
    size_t room = editor->room ? editor->room * 2 : 256;
    while (room < need)
        room *= 2;
    char *text = need > EDITOR_BYTES_MAX ? NULL : realloc(editor->text, room);
    if (!text) {
        editor->full = true;
        return false;
    }
    if (!editor->text)
        text[0] = 0;
    editor->text = text;
    editor->room = room;
    return true;
}

static void insert(struct editor *editor, const char *bytes, size_t len)
{
    if (!make_room(editor, len))
        return;
    memmove(editor->text + editor->cursor + len, editor->text + editor->cursor,
            editor->len - editor->cursor + 1);
    memcpy(editor->text + editor->cursor, bytes, len);
    editor->len += len;
    editor->cursor += len;
}

static void erase(struct editor *editor, size_t from, size_t to)
{
    if (to <= from)
        return;
    memmove(editor->text + from, editor->text + to, editor->len - to + 1);
    editor->len -= to - from;
    editor->cursor = from;
}

static void cut(struct editor *editor, size_t from, size_t to)
{
    if (to <= from)
        return;
    free(editor->killed);
    editor->killed = strndup(editor->text + from, to - from);
    erase(editor, from, to);
}

void editor_clear(struct editor *editor)
{
    editor->len = editor->cursor = 0;
    if (editor->text)
        editor->text[0] = 0;
    editor->full = false;
    editor->place = editor->history_count;
}

static void replace(struct editor *editor, const char *text)
{
    editor->len = editor->cursor = 0;
    if (editor->text)
        editor->text[0] = 0;
    if (text)
        insert(editor, text, strlen(text));
}

/* ---- places in it --------------------------------------------------------------------- */

/* The character before or after a place, with the marks that are written over it. */
static size_t before(const struct editor *editor, size_t at)
{
    struct glyph glyph;
    if (at == 0)
        return 0;
    do {
        do
            at--;
        while (at > 0 && (editor->text[at] & 0xc0) == 0x80);
        (void)glyph_read(editor->text + at, editor->len - at, &glyph); /* it is whole */
    } while (at > 0 && glyph.columns == 0 && glyph.bytes[0] != '\n' &&
             glyph.bytes[0] != '\t');
    return at;
}

static size_t after(const struct editor *editor, size_t at)
{
    struct glyph glyph;
    if (at >= editor->len)
        return editor->len;
    at += glyph_read(editor->text + at, editor->len - at, &glyph);
    while (at < editor->len) {
        size_t used = glyph_read(editor->text + at, editor->len - at, &glyph);
        if (glyph.columns || glyph.bytes[0] == '\n' || glyph.bytes[0] == '\t')
            break;
        at += used;
    }
    return at;
}

static bool blank_at(const struct editor *editor, size_t at)
{
    return editor->text[at] == ' ' || editor->text[at] == '\n' ||
           editor->text[at] == '\t';
}

static size_t word_before(const struct editor *editor, size_t at)
{
    while (at > 0 && blank_at(editor, at - 1))
        at--;
    while (at > 0 && !blank_at(editor, at - 1))
        at--;
    return at;
}

static size_t word_after(const struct editor *editor, size_t at)
{
    while (at < editor->len && blank_at(editor, at))
        at++;
    while (at < editor->len && !blank_at(editor, at))
        at++;
    return at;
}

static size_t line_start(const struct editor *editor, size_t at)
{
    while (at > 0 && editor->text[at - 1] != '\n')
        at--;
    return at;
}

static size_t line_end(const struct editor *editor, size_t at)
{
    while (at < editor->len && editor->text[at] != '\n')
        at++;
    return at;
}

/* ---- history -------------------------------------------------------------------------- */

void editor_remember(struct editor *editor, const char *text)
{
    size_t count = editor->history_count;
    if (!*text || (count && strcmp(editor->history[count - 1], text) == 0))
        return;
    char *copy = strdup(text);
    if (!copy)
        return; /* a history with a hole harms nothing */
    if (count == EDITOR_HISTORY_MAX) {
        free(editor->history[0]);
        count--;
        memmove(editor->history, editor->history + 1, count * sizeof(char *));
    }
    editor->history[count] = copy;
    editor->history_count = editor->place = count + 1;
}

static void show_place(struct editor *editor, size_t place)
{
    if (editor->place == editor->history_count) {
        free(editor->draft);
        editor->draft = strdup(editor_text(editor));
    }
    editor->place = place;
    replace(editor,
            place == editor->history_count ? editor->draft : editor->history[place]);
}

/* One line up, to the same place in it; from the first line, to the text sent before. */
static void go_up(struct editor *editor)
{
    size_t start = line_start(editor, editor->cursor);
    if (start > 0) {
        size_t above = line_start(editor, start - 1);
        size_t into = editor->cursor - start;
        editor->cursor = above + into < start - 1 ? above + into : start - 1;
        editor->cursor = hf_utf8_cut(editor->text, editor->cursor);
    } else if (editor->place > 0) {
        show_place(editor, editor->place - 1);
    }
}

static void go_down(struct editor *editor)
{
    size_t end = line_end(editor, editor->cursor);
    if (end < editor->len) {
        size_t into = editor->cursor - line_start(editor, editor->cursor);
        size_t last = line_end(editor, end + 1);
        editor->cursor = end + 1 + into < last ? end + 1 + into : last;
        editor->cursor = hf_utf8_cut(editor->text, editor->cursor);
    } else if (editor->place < editor->history_count) {
        show_place(editor, editor->place + 1);
    }
}

/* ---- keys ----------------------------------------------------------------------------- */

static void kill_line_end(struct editor *editor)
{
    size_t end = line_end(editor, editor->cursor);
    cut(editor, editor->cursor, end == editor->cursor ? after(editor, end) : end);
}

static enum editor_event control(struct editor *editor, char key)
{
    size_t at = editor->cursor;
    switch (key) {
    case 1: editor->cursor = line_start(editor, at); break; /* Ctrl-A */
    case 2: editor->cursor = before(editor, at); break;     /* Ctrl-B */
    case 4:                                                 /* Ctrl-D */
        if (editor->len == 0)
            return EDITOR_CLOSED;
        erase(editor, at, after(editor, at));
        break;
    case 5: editor->cursor = line_end(editor, at); break; /* Ctrl-E */
    case 6: editor->cursor = after(editor, at); break;    /* Ctrl-F */
    case 8:                                               /* Backspace */
    case 127: erase(editor, before(editor, at), at); break;
    case 9: insert(editor, "  ", 2); break;                   /* Tab */
    case 10: insert(editor, "\n", 1); break;                  /* Ctrl-J */
    case 11: kill_line_end(editor); break;                    /* Ctrl-K */
    case 12: return EDITOR_REDRAW;                            /* Ctrl-L */
    case 13: return EDITOR_SENT;                              /* Enter */
    case 14: go_down(editor); break;                          /* Ctrl-N */
    case 16: go_up(editor); break;                            /* Ctrl-P */
    case 21: cut(editor, line_start(editor, at), at); break;  /* Ctrl-U */
    case 23: cut(editor, word_before(editor, at), at); break; /* Ctrl-W */
    case 25:                                                  /* Ctrl-Y */
        if (editor->killed)
            insert(editor, editor->killed, strlen(editor->killed));
        break;
    default: return EDITOR_NONE;
    }
    return EDITOR_CHANGED;
}

/* Alt and a key. */
static enum editor_event meta(struct editor *editor, char key)
{
    size_t at = editor->cursor;
    switch (key) {
    case 'b': editor->cursor = word_before(editor, at); break;
    case 'f': editor->cursor = word_after(editor, at); break;
    case 'd': cut(editor, at, word_after(editor, at)); break;
    case 127: cut(editor, word_before(editor, at), at); break;
    case '\r':
    case '\n': insert(editor, "\n", 1); break;
    default: return EDITOR_NONE;
    }
    return EDITOR_CHANGED;
}

/* The key that a sequence ESC [ … FINAL or ESC O FINAL names. */
static enum editor_event function(struct editor *editor, char final)
{
    static const struct {
        const char *held;
        char key;
    } tildes[] = { { "1", 1 }, { "7", 1 }, { "4", 5 }, { "8", 5 }, { "3", 4 } };
    bool word = editor->held_len > 2 && editor->held[editor->held_len - 2] == ';' &&
                editor->held[editor->held_len - 1] > '1'; /* with Ctrl or Alt */
    switch (final) {
    case 'A': return control(editor, 16);
    case 'B': return control(editor, 14);
    case 'C': return word ? meta(editor, 'f') : control(editor, 6);
    case 'D': return word ? meta(editor, 'b') : control(editor, 2);
    case 'F': return control(editor, 5);
    case 'H': return control(editor, 1);
    case '~': break;
    default: return EDITOR_NONE;
    }
    if (strcmp(editor->held, "200") == 0)
        editor->pasting = true;
    if (strcmp(editor->held, "3") == 0 && editor->len == 0)
        return EDITOR_NONE; /* Delete closes nothing */
    for (size_t i = 0; i < sizeof(tildes) / sizeof(tildes[0]); i++)
        if (strcmp(editor->held, tildes[i].held) == 0)
            return control(editor, tildes[i].key);
    return EDITOR_NONE;
}

/* ---- bytes ---------------------------------------------------------------------------- */

static void hold(struct editor *editor, char byte)
{
    if (editor->held_len < sizeof(editor->held) - 1)
        editor->held[editor->held_len++] = byte;
    editor->held[editor->held_len] = 0;
}

static void turn_to(struct editor *editor, int state)
{
    editor->state = state;
    editor->held_len = 0;
    editor->held[0] = 0;
}

/* The next byte of a character that has several (UTF-8). The character is inserted with its last
 * byte. Bytes that are no character are left out: a byte that cannot begin one, and a character
 * that its next byte breaks off. That byte then counts by itself, since it may begin the next
 * one. */
static enum editor_event collect_character(struct editor *editor, char byte)
{
    struct glyph glyph;
    hold(editor, byte);
    size_t len = editor->held_len;
    size_t used = glyph_read(editor->held, len, &glyph); /* 0: more bytes belong to it */
    if (used == 0)
        return EDITOR_NONE;
    bool whole = used == len && len > 1;
    if (whole)
        insert(editor, glyph.bytes, glyph.len);
    turn_to(editor, GROUND);
    if (whole)
        return EDITOR_CHANGED;
    return len > 1 ? editor_feed(editor, byte) : EDITOR_NONE;
}

/* A byte of text: a character of its own, or a part of one. */
static enum editor_event text_byte(struct editor *editor, char byte)
{
    if (editor->state != PARTIAL && (byte & 0x80) == 0) {
        insert(editor, &byte, 1);
        return EDITOR_CHANGED;
    }
    if (editor->state != PARTIAL)
        turn_to(editor, PARTIAL);
    return collect_character(editor, byte);
}

static enum editor_event escape(struct editor *editor, char byte)
{
    turn_to(editor, byte == '[' ? SEQUENCE : byte == 'O' ? FUNCTION : GROUND);
    return editor->state == GROUND ? meta(editor, byte) : EDITOR_NONE;
}

static enum editor_event sequence(struct editor *editor, char byte)
{
    if (editor->state == SEQUENCE && (byte < 0x40 || byte > 0x7e)) {
        hold(editor, byte);
        return EDITOR_NONE;
    }
    enum editor_event event = function(editor, byte);
    turn_to(editor, GROUND);
    return event;
}

/* While text is pasted: everything is text until ESC [ 201 ~. Other control characters than
 * the end of a line and a tab are left out. */
static enum editor_event paste(struct editor *editor, char byte)
{
    static const char end[] = "\x1b[201~";
    if (byte == end[editor->matched]) {
        if (++editor->matched < sizeof(end) - 1)
            return EDITOR_NONE;
        editor->pasting = false;
        editor->matched = 0;
        turn_to(editor, GROUND);
        return EDITOR_CHANGED;
    }
    if (editor->matched > 1)
        insert(editor, end + 1, editor->matched - 1);
    editor->matched = byte == 0x1b;
    byte = byte == '\r' ? '\n' : byte;
    if ((unsigned char)byte >= 0x20 ? byte != 0x7f : byte == '\n' || byte == '\t')
        (void)text_byte(editor, byte); /* it is shown when all was pasted */
    return EDITOR_NONE;
}

enum editor_event editor_feed(struct editor *editor, char byte)
{
    if (editor->pasting)
        return paste(editor, byte);
    if (editor->state == ESCAPE)
        return escape(editor, byte);
    if (editor->state == SEQUENCE || editor->state == FUNCTION)
        return sequence(editor, byte);
    if (editor->state == GROUND && byte == 0x1b) {
        turn_to(editor, ESCAPE);
        return EDITOR_NONE;
    }
    if (editor->state == GROUND && ((unsigned char)byte < 0x20 || byte == 0x7f))
        return control(editor, byte);
    return text_byte(editor, byte);
}
