/* Aligned columns for people, the same on a terminal and in a pipe; colours on a terminal
 * only. Widths count characters, not bytes. */
#include "cli/cli.h"

#include <string.h>

#include "base/text.h"

#define COLUMNS_MAX 12
#define GAP 2

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
    case HF_RUNNING: return CLI_BLUE;
    case HF_DONE: return CLI_GREEN;
    case HF_WAITING_USER:
    case HF_WAITING_EXTERNAL:
    case HF_RETRY_SCHEDULED: return CLI_YELLOW;
    case HF_FAILED:
    case HF_TIMEOUT:
    case HF_ABANDONED: return CLI_RED;
    case HF_CANCELLED: return CLI_DIM;
    case HF_QUEUED:
    case HF_STATUS_NONE:
    case HF_STATUS_COUNT: return CLI_PLAIN;
    }
    return CLI_PLAIN;
}

/* Characters; a byte that begins none counts as one, since it is shown as one. */
static size_t width_of(const char *text)
{
    size_t left = strlen(text), width = 0;
    for (; left; width++) {
        size_t len = hf_utf8_next(text, left);
        len = len ? len : 1;
        text += len;
        left -= len;
    }
    return width;
}

void cli_table_begin(struct cli_table *table, struct cli *cli, const char *const *titles,
                     size_t columns)
{
    hf_assert(columns <= COLUMNS_MAX);
    *table = (struct cli_table){ .cli = cli, .titles = titles, .columns = columns };
}

static bool make_room(struct cli_table *table)
{
    if (table->rows < table->room)
        return true;
    size_t room = table->room ? table->room * 2 : 16;
    struct hf_arena *arena = &table->cli->arena;
    size_t count = room * table->columns;
    const char **cells = hf_arena_array(arena, count, sizeof(*cells));
    enum cli_colour *colours = hf_arena_array(arena, count, sizeof(*colours));
    if (!cells || !colours)
        return false;
    if (table->rows) {
        count = table->rows * table->columns;
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
    size_t first = table->rows++ * table->columns;
    for (size_t i = 0; i < table->columns; i++) {
        const char *text = texts[i] && *texts[i] ? texts[i] : "-";
        text = hf_arena_text(&table->cli->arena, text);
        table->failed = table->failed || !text;
        table->cells[first + i] = text;
        table->colours[first + i] = i == coloured ? colour : CLI_PLAIN;
    }
}

static void put_spaces(struct cli *cli, size_t count)
{
    while (count--)
        hf_buf_char(&cli->out, ' ');
}

struct cell {
    size_t column;
    const char *text;
    enum cli_colour colour;
    size_t width; /* of its column */
};

static void put_cell(const struct cli_table *table, const struct cell *cell)
{
    struct cli *cli = table->cli;
    size_t pad = cell->width - width_of(cell->text);
    bool right = table->titles[cell->column][0] == '>';
    bool last = cell->column + 1 == table->columns; /* no line ends in blanks */
    put_spaces(cli, right ? pad : 0);
    if (cell->colour != CLI_PLAIN)
        cli_colour(cli, cell->colour);
    cli_put_clean(cli, cell->text);
    if (cell->colour != CLI_PLAIN)
        cli_colour(cli, CLI_PLAIN);
    if (last)
        cli_put(cli, "\n");
    else
        put_spaces(cli, (right ? 0 : pad) + GAP);
}

static const char *title_text(const struct cli_table *table, size_t column)
{
    const char *title = table->titles[column];
    return *title == '>' ? title + 1 : title;
}

int cli_table_end(struct cli_table *table)
{
    size_t widths[COLUMNS_MAX];
    if (table->failed)
        return hf_fail_plain(&table->cli->err, HF_ENOMEM);
    for (size_t i = 0; i < table->columns; i++) {
        widths[i] = width_of(title_text(table, i));
        for (size_t row = 0; row < table->rows; row++) {
            size_t width = width_of(table->cells[row * table->columns + i]);
            widths[i] = width > widths[i] ? width : widths[i];
        }
    }
    for (size_t i = 0; i < table->columns; i++)
        put_cell(table, &(struct cell){ i, title_text(table, i), CLI_BOLD, widths[i] });
    for (size_t n = 0; n < table->rows * table->columns; n++) {
        size_t i = n % table->columns;
        put_cell(table,
                 &(struct cell){ i, table->cells[n], table->colours[n], widths[i] });
    }
    return cli_flush_some(table->cli);
}
