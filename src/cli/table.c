/* Aligned columns for people. On a terminal a table fits its width and has colours; in a pipe
 * all columns are printed whole, unless COLUMNS is exported. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"

#define COLUMNS_MAX 12
#define GAP 2
#define NOTHING "-"             /* a cell without a value */
#define ELLIPSIS "\xe2\x80\xa6" /* one character */

static const char *const codes[] = {
    [CLI_PLAIN] = "\033[0m", [CLI_BOLD] = "\033[1m",   [CLI_DIM] = "\033[2m",
    [CLI_RED] = "\033[31m",  [CLI_GREEN] = "\033[32m", [CLI_YELLOW] = "\033[33m",
    [CLI_BLUE] = "\033[34m",
};

void cli_colour(struct cli *cli, enum cli_colour colour)
{
    if (cli->colour)
        cli_put(cli, codes[colour]);
}

enum cli_colour cli_status_colour(const char *status)
{
    switch (hf_status_of(status)) {
    case HF_STATUS_RUNNING: return CLI_BLUE;
    case HF_STATUS_DONE: return CLI_GREEN;
    case HF_STATUS_WAITING_USER:
    case HF_STATUS_WAITING_EXTERNAL:
    case HF_STATUS_RETRY_SCHEDULED: return CLI_YELLOW;
    case HF_STATUS_FAILED:
    case HF_STATUS_TIMEOUT:
    case HF_STATUS_ABANDONED: return CLI_RED;
    case HF_STATUS_CANCELLED: return CLI_DIM;
    case HF_STATUS_QUEUED:
    case HF_STATUS_NONE:
    case HF_STATUS_COUNT: return CLI_PLAIN;
    }
    return CLI_PLAIN;
}

/* ---- widths -------------------------------------------------------------------------- */

/* The code point of a well-formed character. */
static uint32_t code_point(const char *at, size_t len)
{
    static const unsigned char first_bits[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    uint32_t code = (unsigned char)at[0] & first_bits[len];
    for (size_t i = 1; i < len; i++)
        code = code << 6 | ((unsigned char)at[i] & 0x3f);
    return code;
}

/* Terminal columns of a character: 0 for marks that combine, 2 for East Asian wide ones and
 * pictures, 1 for all others. */
static size_t width_of_code(uint32_t code)
{
    static const struct {
        uint32_t first, last;
        size_t width;
    } ranges[] = {
        { 0x300, 0x36f, 0 },   { 0x1100, 0x115f, 2 },   { 0x200b, 0x200f, 0 },
        { 0x2e80, 0xa4cf, 2 }, { 0xac00, 0xd7a3, 2 },   { 0xf900, 0xfaff, 2 },
        { 0xfe00, 0xfe0f, 0 }, { 0xfe30, 0xfe6f, 2 },   { 0xff00, 0xff60, 2 },
        { 0xffe0, 0xffe6, 2 }, { 0x1f300, 0x1faff, 2 }, { 0x20000, 0x3fffd, 2 },
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return ranges[i].width;
    return 1;
}

/* The next character of a text: its bytes and its terminal columns. A byte that begins no
 * character counts as one, since it is shown as one. */
static size_t next_char(const char *at, size_t left, size_t *ret_width)
{
    size_t len = hf_utf8_next(at, left);
    *ret_width = len ? width_of_code(code_point(at, len)) : 1;
    return len ? len : 1;
}

size_t cli_width_of(const char *text)
{
    size_t left = strlen(text), total = 0, width = 0;
    while (left) {
        size_t len = next_char(text, left, &width);
        total += width;
        text += len;
        left -= len;
    }
    return total;
}

/* The bytes of `text` that fit into `room` terminal columns. */
static size_t bytes_within(const char *text, size_t room)
{
    size_t left = strlen(text), used = 0, width = 0;
    const char *at = text;
    while (left) {
        size_t len = next_char(at, left, &width);
        if (used + width > room)
            break;
        used += width;
        at += len;
        left -= len;
    }
    return (size_t)(at - text);
}

size_t cli_terminal_width(const struct cli *cli)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    int64_t number = 0;
    if (cli_given(cli, "wide"))
        return 0;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    if (columns && hf_parse_i64(columns, 1, 10000, "COLUMNS", &number, NULL) == 0)
        return (size_t)number;
    return 0;
}

/* ---- rows ---------------------------------------------------------------------------- */

void cli_table_begin(struct cli_table *table, struct cli *cli,
                     const struct cli_column *columns, size_t count)
{
    hf_assert(count <= COLUMNS_MAX);
    *table = (struct cli_table){ .cli = cli,
                                 .arena = &cli->arena,
                                 .columns = columns,
                                 .count = count,
                                 .width = cli_terminal_width(cli),
                                 .line_end = "\n" };
}

static bool make_room(struct cli_table *table)
{
    if (table->rows < table->room)
        return true;
    size_t room = table->room ? table->room * 2 : 16;
    size_t count = room * table->count;
    const char **cells = hf_arena_array(table->arena, count, sizeof(*cells));
    enum cli_colour *colours = hf_arena_array(table->arena, count, sizeof(*colours));
    if (!cells || !colours)
        return false;
    if (table->rows) {
        count = table->rows * table->count;
        memcpy(cells, table->cells, count * sizeof(*cells));
        memcpy(colours, table->colours, count * sizeof(*colours));
    }
    table->cells = cells;
    table->colours = colours;
    table->room = room;
    return true;
}

void cli_table_row(struct cli_table *table, const char *const *texts, size_t coloured,
                   enum cli_colour colour)
{
    if (table->failed || !make_room(table)) {
        table->failed = true;
        return;
    }
    size_t first = table->rows++ * table->count;
    for (size_t i = 0; i < table->count; i++) {
        const char *text = texts[i] && *texts[i] ? texts[i] : NOTHING;
        text = hf_arena_text(table->arena, text);
        table->failed = table->failed || !text;
        table->cells[first + i] = text;
        table->colours[first + i] = i == coloured ? colour : CLI_PLAIN;
    }
}

/* ---- layout -------------------------------------------------------------------------- */

static const char *title_text(const struct cli_table *table, size_t column)
{
    const char *title = table->columns[column].title;
    return *title == '>' ? title + 1 : title;
}

/* As wide as the widest cell. */
static size_t natural_width(const struct cli_table *table, size_t column)
{
    size_t most = cli_width_of(title_text(table, column));
    for (size_t row = 0; row < table->rows; row++) {
        size_t width = cli_width_of(table->cells[row * table->count + column]);
        most = width > most ? width : most;
    }
    return most;
}

/* What a column may shrink to. */
static size_t floor_of(const struct cli_table *table, size_t column, size_t width)
{
    size_t least = table->columns[column].least;
    size_t title = cli_width_of(title_text(table, column));
    if (!least)
        return width;
    least = least > title ? least : title;
    return least < width ? least : width;
}

static bool is_empty(const struct cli_table *table, size_t column)
{
    for (size_t row = 0; row < table->rows; row++)
        if (strcmp(table->cells[row * table->count + column], NOTHING) != 0)
            return false;
    return true;
}

/* The width of a line; with `least` what it can shrink to. */
static size_t total_width(const struct cli_table *table, const size_t *widths, bool least)
{
    size_t total = 0;
    for (size_t i = 0; i < table->count; i++) {
        if (!widths[i])
            continue;
        total += total ? GAP : 0;
        total += least ? floor_of(table, i, widths[i]) : widths[i];
    }
    return total;
}

/* Hides the columns that have no value and may be hidden. */
static void drop_empty(const struct cli_table *table, size_t *widths)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->columns[i].rank && is_empty(table, i))
            widths[i] = 0;
}

/* Hides one column of the highest rank, of at least `from`. False: there is none. */
static bool drop_column(const struct cli_table *table, size_t *widths, unsigned char from)
{
    size_t worst = COLUMNS_MAX;
    for (size_t i = 0; i < table->count; i++) {
        unsigned char rank = table->columns[i].rank;
        if (widths[i] && rank >= from &&
            (worst == COLUMNS_MAX || rank > table->columns[worst].rank))
            worst = i;
    }
    if (worst == COLUMNS_MAX)
        return false;
    widths[worst] = 0;
    return true;
}

/* Takes one character from the widest column that may shrink. False: none may. */
static bool shrink_column(const struct cli_table *table, size_t *widths)
{
    size_t widest = COLUMNS_MAX;
    for (size_t i = 0; i < table->count; i++)
        if (widths[i] > floor_of(table, i, widths[i]) &&
            (widest == COLUMNS_MAX || widths[i] > widths[widest]))
            widest = i;
    if (widest == COLUMNS_MAX)
        return false;
    widths[widest]--;
    return true;
}

/* The width of each column; 0: it is not shown. */
static void lay_out(const struct cli_table *table, size_t widths[COLUMNS_MAX])
{
    for (size_t i = 0; i < table->count; i++)
        widths[i] = natural_width(table, i);
    if (!table->width || total_width(table, widths, false) <= table->width)
        return;
    drop_empty(table, widths);
    while (total_width(table, widths, false) > table->width &&
           drop_column(table, widths, CLI_MINOR))
        ;
    while (total_width(table, widths, false) > table->width &&
           drop_column(table, widths, CLI_MINOR))
        ;
    while (total_width(table, widths, true) > table->width &&
           drop_column(table, widths, 1))
        ;
    while (total_width(table, widths, false) > table->width &&
           shrink_column(table, widths))
        ;
}

/* ---- output -------------------------------------------------------------------------- */

static void put_spaces(struct cli *cli, size_t count)
{
    while (count--)
        hf_buf_char(&cli->out, ' ');
}

/* A text of at most `width` terminal columns; what was cut ends in `mark`. */
static void put_cut(struct cli *cli, const char *text, size_t width, const char *mark)
{
    if (cli_width_of(text) <= width) {
        cli_put_clean(cli, text);
        return;
    }
    char part[512];
    size_t room = width - cli_width_of(mark);
    size_t len = bytes_within(text, room);
    len = len < sizeof(part) - 1 ? len : hf_utf8_cut(text, sizeof(part) - 1);
    memcpy(part, text, len);
    part[len] = '\0';
    cli_put_clean(cli, part);
    cli_put(cli, mark);
    put_spaces(cli, room - cli_width_of(part)); /* half of a wide character */
}

struct cell {
    size_t column;
    const char *text;
    enum cli_colour colour;
    size_t width; /* of its column */
    bool last;    /* of its line, which does not end in blanks */
};

static void put_cell(const struct cli_table *table, const struct cell *cell)
{
    struct cli *cli = table->cli;
    size_t taken = cli_width_of(cell->text);
    size_t pad = taken < cell->width ? cell->width - taken : 0;
    bool right = table->columns[cell->column].title[0] == '>';
    put_spaces(cli, right ? pad : 0);
    if (cell->colour != CLI_PLAIN)
        cli_colour(cli, cell->colour);
    put_cut(cli, cell->text, cell->width,
            table->columns[cell->column].clips ? "" : ELLIPSIS);
    if (cell->colour != CLI_PLAIN)
        cli_colour(cli, CLI_PLAIN);
    if (cell->last)
        cli_put(cli, table->line_end);
    else
        put_spaces(cli, (right ? 0 : pad) + GAP);
}

int cli_table_end(struct cli_table *table)
{
    size_t widths[COLUMNS_MAX], last = 0;
    if (table->failed)
        return hf_fail_plain(&table->cli->err, HF_ENOMEM);
    lay_out(table, widths);
    for (size_t i = 0; i < table->count; i++)
        last = widths[i] ? i : last;
    for (size_t i = 0; i < table->count; i++)
        if (widths[i])
            put_cell(table, &(struct cell){ i, title_text(table, i), CLI_BOLD, widths[i],
                                            i == last });
    for (size_t n = 0; n < table->rows * table->count; n++) {
        size_t i = n % table->count;
        if (widths[i])
            put_cell(table, &(struct cell){ i, table->cells[n], table->colours[n],
                                            widths[i], i == last });
    }
    return table->line_end[0] == '\n' ? cli_flush_some(table->cli) : 0;
}
