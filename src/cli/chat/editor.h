/* A line editor: the bytes that a terminal sends go in, a text with a cursor comes out.
 *
 * It is pure. It knows the usual keys of a shell (arrows, Home, End, Ctrl-A E B F D K U W Y P N,
 * Alt-B F D), UTF-8, and bracketed paste: what is pasted is inserted as it is, line feeds too,
 * and sends nothing. Alt-Enter and Ctrl-J insert a line feed. A sequence that it does not know
 * is left out as a whole. The signals of a terminal (Ctrl-C, Ctrl-Z) do not come here.
 */
#ifndef HF_CLI_CHAT_EDITOR_H
#define HF_CLI_CHAT_EDITOR_H

#include "base/buf.h"

#define EDITOR_BYTES_MAX (256u << 10) /* of a text; what is beyond is left out */
#define EDITOR_HISTORY_MAX 200

/* The result of a byte. */
enum editor_event {
    EDITOR_NONE,    /* nothing to show */
    EDITOR_CHANGED, /* the text or its cursor */
    EDITOR_SENT,    /* Enter: the text is complete */
    EDITOR_CLOSED,  /* Ctrl-D on an empty text */
    EDITOR_REDRAW   /* Ctrl-L */
};

struct editor {
    char *text; /* NUL-terminated UTF-8; NULL: empty (editor_text) */
    size_t len;
    size_t cursor;
    size_t room;
    char *killed; /* by Ctrl-K, U or W; NULL: nothing */
    char *history[EDITOR_HISTORY_MAX];
    size_t history_count;
    size_t place; /* in the history; history_count: the text is new */
    char *draft;  /* the new text, while another one is shown */
    bool full;    /* something was left out: no room, or no memory */
    int state;    /* of the sequence that is being read */
    bool pasting;
    size_t matched; /* bytes of the sequence that ends a paste */
    char held[32];  /* parameters of a sequence, or the start of a character */
    size_t held_len;
};

void editor_init(struct editor *editor);
void editor_fini(struct editor *editor);

enum editor_event editor_feed(struct editor *editor, char byte);
/* The text, never NULL, until the next byte. */
const char *editor_text(const struct editor *editor);
/* Whether a sequence or a paste is incomplete: more bytes are on their way. */
bool editor_busy(const struct editor *editor);
/* Empties the text. */
void editor_clear(struct editor *editor);
/* Adds a text to the history; one that repeats the last is left out. */
void editor_remember(struct editor *editor, const char *text);

#endif
