/* Text as it arrives, wrapped at the width of a terminal (flow.h).
 *
 * A paragraph is what lies between two line feeds of the text. If it is broken, its further lines
 * begin at the column `indent`, which is past the bullet or number of a list's item, or at `margin`
 * in a fenced block of code (`verbatim`). `margin` is the column at which all lines begin. A place
 * to break is after a space, and at wide characters (Chinese, Japanese). Combining marks take no
 * columns, so a line has a bound of bytes in addition. */
#include "cli/chat/flow.h"

#include <string.h>

#include "cli/chat/glyph.h"

#define LINE_BYTES_MAX (64u << 10)
#define LINE_BYTES_FULL (32u << 10) /* the line is broken there */
#define LIMIT_MAX 100               /* longer lines are hard to read */
#define TAB 4

static size_t limit_of(size_t width)
{
    size_t limit = width > 1 ? width - 1 : width;
    return limit > LIMIT_MAX ? LIMIT_MAX : limit;
}

static void begin_line(struct flow *flow)
{
    hf_buf_reset(&flow->line);
    flow->column = flow->word = flow->word_column = 0;
    flow->after_wide = false;
}

static void begin_paragraph(struct flow *flow)
{
    begin_line(flow);
    flow->indent = flow->margin;
    flow->lead = LEAD_SPACE;
    flow->ticks = 0;
}

void flow_init(struct flow *flow, struct hf_buf *out, size_t width)
{
    *flow = (struct flow){ .out = out, .limit = limit_of(width) };
    hf_buf_init(&flow->line, hf_alloc_system(), LINE_BYTES_MAX);
    begin_paragraph(flow);
}

void flow_hang(struct flow *flow, const char *mark, size_t columns)
{
    flow->mark = mark;
    flow->margin = flow->indent = columns;
}

void flow_fini(struct flow *flow)
{
    hf_buf_fini(&flow->line);
}

bool flow_open(const struct flow *flow)
{
    return flow->column > 0;
}

/* ---- lines ---------------------------------------------------------------------------- */

static void feed(struct flow *flow)
{
    hf_buf_text(flow->out, flow->limit ? "\r\n" : "\n");
}

static void add(struct flow *flow, const char *bytes, size_t len, size_t columns)
{
    if (flow->limit)
        hf_buf_bytes(&flow->line, bytes, len);
    hf_buf_bytes(flow->out, bytes, len);
    flow->column += columns;
}

/* The column at which the further lines of a broken paragraph begin. */
static size_t indent_of(const struct flow *flow)
{
    return flow->verbatim ? flow->margin : flow->indent;
}

static void put_spaces(struct flow *flow, size_t until)
{
    while (flow->column < until)
        add(flow, " ", 1, 1);
}

/* The line may be broken at the cursor. */
static void mark_word(struct flow *flow)
{
    flow->word = flow->line.len;
    flow->word_column = flow->column;
}

/* Ends the current line and begins the next one with the line's last word, which is what came after
 * the last place to break. The row on the terminal is written again without that word. A verbatim
 * line, and one without a place to break, is broken at its end: no word is moved. */
static void wrap(struct flow *flow)
{
    char word[LIMIT_MAX * 8];
    bool split = !flow->verbatim && flow->word_column > flow->indent;
    size_t len = split ? flow->line.len - flow->word : 0;
    size_t columns = split ? flow->column - flow->word_column : 0;
    if (len > sizeof(word))
        len = columns = 0; /* many combining marks: the line is broken at its end */
    memcpy(word, hf_buf_str(&flow->line) + flow->line.len - len, len);
    if (len) {
        size_t kept = flow->word;
        while (kept && flow->line.at[kept - 1] == ' ')
            kept--;
        hf_buf_char(flow->out, '\r');
        hf_buf_bytes(flow->out, flow->line.at, kept);
        hf_buf_text(flow->out, "\x1b[K");
    }
    feed(flow);
    begin_line(flow);
    put_spaces(flow, indent_of(flow));
    mark_word(flow);
    add(flow, word, len, columns);
}

/* ---- characters ----------------------------------------------------------------------- */

/* Follows spaces, "- ", "12. " and the like at the start of a line, and a fence. */
static void follow_lead(struct flow *flow, char c)
{
    bool digit = c >= '0' && c <= '9';
    if (flow->ticks == flow->line.len - flow->indent && c == '`')
        flow->ticks++;
    if (flow->lead == LEAD_OVER)
        return;
    if (c == ' ' && flow->lead == LEAD_SPACE)
        flow->indent = flow->column + 1;
    else if (c == ' ' && (flow->lead == LEAD_BULLET || flow->lead == LEAD_NUMBER_END)) {
        flow->indent = flow->column + 1;
        flow->lead = LEAD_OVER;
    } else if (flow->lead == LEAD_SPACE && (c == '-' || c == '*' || c == '+'))
        flow->lead = LEAD_BULLET;
    else if ((flow->lead == LEAD_SPACE || flow->lead == LEAD_NUMBER) && digit)
        flow->lead = LEAD_NUMBER;
    else if (flow->lead == LEAD_NUMBER && (c == '.' || c == ')'))
        flow->lead = LEAD_NUMBER_END;
    else
        flow->lead = LEAD_OVER;
    if (flow->indent > flow->limit / 2)
        flow->indent = flow->limit / 2;
}

/* Signs that do not begin a line: they belong to what is before them. */
static bool closes(const struct glyph *glyph)
{
    static const char *const signs[] = { "、", "。", "，", "．", "！", "？", "：",
                                         "；", "）", "」", "』", "】", "》", "ー" };
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
        if (strcmp(glyph->bytes, signs[i]) == 0)
            return true;
    return false;
}

static void put_feeds(struct flow *flow)
{
    for (; flow->feeds; flow->feeds--) {
        feed(flow);
        if (flow->ticks >= 3)
            flow->verbatim = !flow->verbatim;
        begin_paragraph(flow);
    }
}

static void put_space(struct flow *flow)
{
    follow_lead(flow, ' ');
    if (!flow->limit || flow->column < flow->limit)
        add(flow, " ", 1, 1);
    flow->after_wide = false;
    mark_word(flow);
}

static void put_visible(struct flow *flow, const struct glyph *glyph)
{
    bool wide = glyph->columns > 1;
    follow_lead(flow, glyph->bytes[0]);
    if (glyph->columns && (wide || flow->after_wide) && !closes(glyph))
        mark_word(flow);
    if (glyph->columns)
        flow->after_wide = wide;
    while (flow->limit && flow->column + glyph->columns > flow->limit &&
           flow->column > indent_of(flow))
        wrap(flow);
    if (flow->line.len > LINE_BYTES_FULL) {
        mark_word(flow);
        wrap(flow);
    }
    add(flow, glyph->bytes, glyph->len, glyph->columns);
}

static void put(struct flow *flow, const struct glyph *glyph)
{
    if (glyph->len == 0)
        return;
    if (glyph->bytes[0] == '\n') {
        flow->feeds += flow->begun;
        return;
    }
    put_feeds(flow);
    if (flow->column == 0 && flow->margin && !flow->begun)
        add(flow, flow->mark, strlen(flow->mark), flow->margin);
    put_spaces(flow, flow->column == 0 ? flow->margin : 0);
    flow->begun = true;
    if (glyph->bytes[0] == '\t')
        do
            put_space(flow);
        while (flow->column % TAB && (!flow->limit || flow->column < flow->limit));
    else if (glyph->bytes[0] == ' ')
        put_space(flow);
    else
        put_visible(flow, glyph);
}

void flow_text(struct flow *flow, const char *text, size_t len)
{
    struct glyph glyph;
    while (flow->tail_len && len) { /* the rest of a character comes byte by byte */
        flow->tail[flow->tail_len++] = *text++;
        len--;
        size_t used = glyph_read(flow->tail, flow->tail_len, &glyph);
        while (used) {
            put(flow, &glyph);
            flow->tail_len -= used;
            memmove(flow->tail, flow->tail + used, flow->tail_len);
            used = flow->tail_len ? glyph_read(flow->tail, flow->tail_len, &glyph) : 0;
        }
    }
    while (len) {
        size_t used = glyph_read(text, len, &glyph);
        if (used == 0) {
            memcpy(flow->tail, text, len);
            flow->tail_len = len;
            return;
        }
        put(flow, &glyph);
        text += used;
        len -= used;
    }
}

void flow_end(struct flow *flow)
{
    if (flow->tail_len)
        put(flow, &(struct glyph){ "\xef\xbf\xbd", 3, 1 });
    if (flow_open(flow))
        feed(flow);
    begin_paragraph(flow);
    flow->feeds = flow->tail_len = 0;
    flow->begun = flow->verbatim = false;
}

void flow_resize(struct flow *flow, size_t width)
{
    flow->limit = limit_of(width);
    if (flow->column > flow->limit) {
        feed(flow);
        begin_line(flow);
    }
    if (flow->indent > flow->limit / 2)
        flow->indent = flow->limit / 2;
}
