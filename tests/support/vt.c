#include "support/vt.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

struct vt *vt_new(size_t width, size_t height)
{
    struct vt *vt = calloc(1, sizeof(*vt));
    if (!vt)
        abort();
    vt->width = width;
    vt->height = height;
    return vt;
}

void vt_free(struct vt *vt)
{
    free(vt);
}

static void erase(struct vt *vt, size_t row, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        vt->cells[row][i][0] = 0;
}

static void down(struct vt *vt)
{
    if (vt->row + 1 < VT_ROWS_MAX)
        vt->row++;
    if (vt->row >= vt->top + vt->height)
        vt->top = vt->row + 1 - vt->height;
}

/* ---- sequences ---------------------------------------------------------------------- */

static void move(struct vt *vt, char final, size_t by)
{
    size_t bottom = vt->top + vt->height - 1;
    by = by ? by : 1;
    if (final == 'A')
        vt->row = vt->row >= vt->top + by ? vt->row - by : vt->top;
    else if (final == 'B')
        vt->row = vt->row + by < bottom ? vt->row + by : bottom;
    else if (final == 'C')
        vt->column = vt->column + by < vt->width ? vt->column + by : vt->width - 1;
    else
        vt->column = vt->column > by ? vt->column - by : 0;
}

static void erase_below(struct vt *vt)
{
    erase(vt, vt->row, vt->column, VT_COLUMNS_MAX);
    for (size_t row = vt->row + 1; row < VT_ROWS_MAX; row++)
        erase(vt, row, 0, VT_COLUMNS_MAX);
}

static void act(struct vt *vt, char final, const char *held, size_t number)
{
    if (final >= 'A' && final <= 'D')
        move(vt, final, number);
    else if (final == 'H' && !*held)
        vt->row = vt->top, vt->column = 0;
    else if (final == 'J' && number == 0)
        erase_below(vt);
    else if (final == 'J' && number == 2)
        for (size_t row = vt->top; row < VT_ROWS_MAX; row++)
            erase(vt, row, 0, VT_COLUMNS_MAX);
    else if (final == 'K' && number == 0)
        erase(vt, vt->row, vt->column, VT_COLUMNS_MAX);
    else if (final != 'm' && strcmp(held, "?25") != 0 && strcmp(held, "?2004") != 0)
        vt->strange++;
}

/* ESC [ … FINAL. Returns its length. */
static size_t sequence(struct vt *vt, const char *at, size_t len)
{
    char held[16] = "";
    size_t i = 2;
    if (len < 3 || at[1] != '[') {
        vt->strange++;
        return 1;
    }
    for (; i < len && (at[i] < 0x40 || at[i] > 0x7e); i++)
        if (i - 2 < sizeof(held) - 1)
            held[i - 2] = at[i];
    act(vt, i < len ? at[i] : 0, held, strtoul(held, NULL, 10));
    return i + 1;
}

/* ---- characters --------------------------------------------------------------------- */

static void put(struct vt *vt, const char *at, size_t len, int columns)
{
    if (columns == 0 && vt->column > 0) { /* over the one before */
        size_t before = vt->column - 1;
        while (before > 0 && vt->cells[vt->row][before][0] == 1)
            before--;
        if (strlen(vt->cells[vt->row][before]) + len < sizeof(vt->cells[0][0]))
            memcpy(vt->cells[vt->row][before] + strlen(vt->cells[vt->row][before]), at,
                   len);
        return;
    }
    if (vt->column + (size_t)columns > vt->width) {
        vt->wrapped++;
        vt->column = 0;
        down(vt);
    }
    memcpy(vt->cells[vt->row][vt->column], at, len);
    vt->cells[vt->row][vt->column][len] = 0;
    if (columns == 2)
        memcpy(vt->cells[vt->row][vt->column + 1], "\1", 2);
    vt->column += (size_t)columns;
}

void vt_feed(struct vt *vt, const char *bytes, size_t len)
{
    while (len) {
        size_t used = 1;
        unsigned char c = (unsigned char)*bytes;
        if (c == '\r') {
            vt->column = 0;
        } else if (c == '\n') {
            down(vt);
        } else if (c == 0x1b) {
            used = sequence(vt, bytes, len);
        } else if (c < 0x20 || c == 0x7f) {
            vt->strange++;
        } else {
            wchar_t wide = 0;
            mbstate_t state = { 0 };
            used = mbrtowc(&wide, bytes, len, &state);
            if (used > 4 || (wide >= 0x80 && wide < 0xa0)) {
                vt->strange++;
                used = 1;
            } else {
                int columns = wcwidth(wide);
                put(vt, bytes, used, columns < 0 ? 1 : columns);
            }
        }
        bytes += used < len ? used : len;
        len -= used < len ? used : len;
    }
}

/* ---- what is shown ------------------------------------------------------------------- */

const char *vt_row(struct vt *vt, size_t row)
{
    size_t len = 0, kept = 0;
    for (size_t i = 0; i < VT_COLUMNS_MAX && len + 32 < sizeof(vt->text); i++) {
        const char *cell = vt->cells[row][i];
        if (cell[0] == 1)
            continue;
        size_t more = cell[0] ? strlen(cell) : 1;
        memcpy(vt->text + len, cell[0] ? cell : " ", more);
        len += more;
        kept = cell[0] && strcmp(cell, " ") != 0 ? len : kept;
    }
    vt->text[kept] = 0;
    return vt->text;
}

char *vt_text(struct vt *vt)
{
    size_t rows = 0, len = 0;
    char *text = calloc(VT_ROWS_MAX, sizeof(vt->text));
    if (!text)
        abort();
    for (size_t i = 0; i < VT_ROWS_MAX; i++)
        if (*vt_row(vt, i))
            rows = i + 1;
    for (size_t i = 0; i < rows; i++) {
        const char *row = vt_row(vt, i);
        memcpy(text + len, row, strlen(row));
        len += strlen(row);
        text[len++] = '\n';
    }
    return text;
}
