/* Painting the line editor (paint.h): the text is broken into rows by a walk over its characters,
 * first to find where the cursor is, then to draw the rows that fit on the screen. */
#include "cli/chat/paint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/chat/glyph.h"

#define TAB 4

/* A walk over the text as it is broken into rows. */
struct walk {
    const struct editor *editor;
    size_t limit; /* columns of a row */
    size_t indent;
    size_t at;  /* the next byte */
    size_t row; /* where it is shown */
    size_t column;
};

/* The next glyph, moved to the next row if it does not fit. False at the end. */
static bool walk_next(struct walk *walk, struct glyph *ret_glyph)
{
    const struct editor *editor = walk->editor;
    if (walk->at >= editor->len)
        return false;
    size_t used = glyph_read(editor->text + walk->at, editor->len - walk->at, ret_glyph);
    if (ret_glyph->bytes[0] == '\t')
        *ret_glyph = (struct glyph){ "    ", TAB, TAB };
    if (walk->column + ret_glyph->columns > walk->limit && walk->column > walk->indent) {
        walk->row++;
        walk->column = walk->indent;
    }
    walk->at += used ? used : 1;
    return true;
}

static void walk_past(struct walk *walk, const struct glyph *glyph)
{
    bool feed = glyph->bytes[0] == '\n';
    walk->row += feed;
    walk->column = feed ? walk->indent : walk->column + glyph->columns;
}

/* ---- moving --------------------------------------------------------------------------- */

static void move(struct hf_buf *out, size_t by, char direction)
{
    char text[32];
    if (by == 0)
        return;
    (void)snprintf(text, sizeof(text), "\x1b[%zu%c", by, direction);
    hf_buf_text(out, text);
}

void paint_fini(struct paint *paint)
{
    free(paint->columns);
    *paint = (struct paint){ 0 };
}

void paint_erase(struct paint *paint, struct hf_buf *out, size_t width)
{
    if (paint->rows == 0)
        return;
    size_t up = paint->cursor_row + paint->cursor_column / width;
    for (size_t i = 0; i < paint->cursor_row; i++)
        if (paint->columns[i] > width)
            up += (paint->columns[i] - 1) / width;
    move(out, up, 'A');
    hf_buf_text(out, "\r\x1b[J");
    paint->rows = paint->cursor_row = 0;
}

/* ---- drawing -------------------------------------------------------------------------- */

static bool keep_rows(struct paint *paint, size_t rows)
{
    if (rows <= paint->room)
        return true;
    size_t *columns = realloc(paint->columns, rows * sizeof(*columns));
    if (!columns)
        return false;
    paint->columns = columns;
    paint->room = rows;
    return true;
}

/* The row and the column of the cursor, and the number of rows. */
static size_t measure(const struct walk *start, size_t cursor, struct walk *ret_cursor)
{
    struct walk walk = *start;
    struct glyph glyph;
    size_t before = 0;
    bool found = false;
    while (walk_next(&walk, &glyph)) {
        if (!found && before >= cursor) {
            *ret_cursor = walk;
            found = true;
        }
        walk_past(&walk, &glyph);
        before = walk.at;
    }
    if (!found)
        *ret_cursor = walk;
    return walk.row + 1;
}

static void draw_rows(struct paint *paint, struct hf_buf *out, struct walk walk,
                      size_t first)
{
    struct glyph glyph;
    size_t row = 0;
    while (walk_next(&walk, &glyph)) {
        for (; row < walk.row; row++)
            if (row >= first && row + 1 < first + paint->rows) {
                hf_buf_text(out, "\r\n");
                for (size_t i = 0; i < walk.indent; i++)
                    hf_buf_char(out, ' ');
            }
        if (row >= first && row < first + paint->rows && glyph.bytes[0] != '\n') {
            hf_buf_bytes(out, glyph.bytes, glyph.len);
            paint->columns[row - first] = walk.column + glyph.columns;
        }
        walk_past(&walk, &glyph);
    }
    for (; row < walk.row; row++)
        if (row >= first && row + 1 < first + paint->rows)
            hf_buf_text(out, "\r\n");
}

void paint_draw(struct paint *paint, struct hf_buf *out, const struct editor *editor,
                const struct paint_style *style)
{
    struct walk start = { .editor = editor,
                          .limit = style->width > 1 ? style->width - 1 : 1,
                          .indent = style->mark_columns,
                          .column = style->mark_columns };
    struct walk cursor;
    size_t total = measure(&start, editor->cursor, &cursor);
    size_t most = style->height > 2 ? style->height - 1 : 1;
    size_t rows = total < most ? total : most;
    size_t first = cursor.row >= rows ? cursor.row - rows + 1 : 0;
    paint_erase(paint, out, style->width);
    if (!keep_rows(paint, rows))
        return; /* nothing is shown until there is memory; the text is kept */
    for (size_t i = 0; i < rows; i++)
        paint->columns[i] = start.indent;
    paint->rows = rows;
    hf_buf_text(out, style->mark_colour);
    hf_buf_text(out, style->mark);
    hf_buf_text(out, style->plain);
    draw_rows(paint, out, start, first);
    move(out, rows - 1 - (cursor.row - first), 'A');
    hf_buf_char(out, '\r');
    move(out, cursor.column, 'C');
    paint->cursor_row = cursor.row - first;
    paint->cursor_column = cursor.column;
}
