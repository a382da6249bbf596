/* Text that arrives in pieces, wrapped at the width of a terminal as it comes.
 *
 * Every piece is shown at once, also half of a word. A word that turns out not to fit is taken
 * off its line and written on the next one: the line is written again without it, so a
 * terminal that counts columns differently does no harm. The last column is never written,
 * so the cursor is always where the flow believes it to be.
 *
 * It is pure: bytes go in, bytes for the terminal come out.
 */
#ifndef HF_CLI_CHAT_FLOW_H
#define HF_CLI_CHAT_FLOW_H

#include "base/buf.h"

/* The beginning of the current line, to indent the lines that continue a list's item. */
enum flow_lead { LEAD_SPACE, LEAD_BULLET, LEAD_NUMBER, LEAD_NUMBER_END, LEAD_OVER };

struct flow {
    struct hf_buf *out;
    size_t limit;       /* columns that are written; 0: lines are not wrapped */
    struct hf_buf line; /* what is on the current line */
    size_t column;
    size_t word;        /* in the line: where the last word begins */
    size_t word_column; /* its column */
    const char *mark;   /* what the first line begins with (flow_hang) */
    size_t margin;      /* columns that all other lines begin with */
    size_t indent;      /* columns that further lines of this paragraph begin with */
    enum flow_lead lead;
    size_t ticks;    /* backticks that the line has begun with */
    bool verbatim;   /* in a fenced block: broken at the margin, not between words */
    bool after_wide; /* a line may be broken before the next character */
    bool begun;      /* anything was shown since flow_end */
    size_t feeds;    /* line feeds that are written when more text comes */
    char tail[4];    /* the first bytes of a character whose rest has not come */
    size_t tail_len;
};

/* Begins with an empty line. width 0: lines are not wrapped. `out` is borrowed until flow_fini. */
void flow_init(struct flow *flow, struct hf_buf *out, size_t width);
void flow_fini(struct flow *flow);
/* Before any text: its first line begins with a mark of this many columns, which lasts as long as
 * the flow, and all others with as many spaces. */
void flow_hang(struct flow *flow, const char *mark, size_t columns);

/* Adds a piece of text. */
void flow_text(struct flow *flow, const char *text, size_t len);
/* The text is over: an incomplete character is shown as one that is none, and the cursor is
 * at the start of an empty line. The next text begins anew. */
void flow_end(struct flow *flow);
/* The terminal has another width. A line that no longer fits is ended. */
void flow_resize(struct flow *flow, size_t width);
/* Whether the cursor is on a line with text. */
bool flow_open(const struct flow *flow);

#endif
