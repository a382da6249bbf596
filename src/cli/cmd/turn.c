/* holdfast turn inspect: the save of a turn as text for people, with the cells that are in it, or
 * the difference of two saves.
 *
 * A save is the stored state of a turn; a cell is a piece of code that the model wrote in the turn.
 * A description (hf_turn_describe) has one line "path: value" per member of a save. */
#include <stdlib.h>
#include <string.h>

#include <holdfast/turn.h>

#include "cli/cli.h"
#include "cli/cmd/turn_cells.h"

/* One line "path: value" of a description. */
struct line {
    const char *at;
    size_t path; /* bytes before ": " */
    size_t len;
};

struct turn_lines {
    struct line *items;
    size_t count;
};

static int describe(struct cli *cli, const char *path, struct hf_span *ret_save,
                    const char **ret_text)
{
    struct hf_bytes text = { 0 };
    int rc = cli_read_file(cli, path, (size_t)HF_MAX_TURN_SAVE_BYTES, ret_save);
    if (rc == 0)
        rc = hf_turn_describe(NULL, *ret_save, &text, &cli->err);
    if (rc)
        return rc;
    *ret_text = hf_arena_copy(&cli->arena, text.at, text.len);
    hf_bytes_free(&text);
    return *ret_text ? 0 : hf_fail_plain(&cli->err, HF_ENOMEM);
}

static int split(struct cli *cli, const char *text, struct turn_lines *ret_lines)
{
    size_t count = 0;
    for (const char *at = text; *at; at++)
        count += *at == '\n';
    ret_lines->items = hf_arena_array(&cli->arena, count, sizeof(*ret_lines->items));
    ret_lines->count = count;
    if (!ret_lines->items)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    for (size_t i = 0; i < count; i++) {
        const char *end = strchr(text, '\n');
        const char *colon = strstr(text, ": ");
        ret_lines->items[i].at = text;
        ret_lines->items[i].len = (size_t)(end - text);
        ret_lines->items[i].path = (size_t)((colon && colon < end ? colon : end) - text);
        text = end + 1;
    }
    return 0;
}

static const struct line *find(const struct turn_lines *lines, const struct line *wanted)
{
    for (size_t i = 0; i < lines->count; i++)
        if (lines->items[i].path == wanted->path &&
            memcmp(lines->items[i].at, wanted->at, wanted->path) == 0)
            return &lines->items[i];
    return NULL;
}

static bool same(const struct line *a, const struct line *b)
{
    return a->len == b->len && memcmp(a->at, b->at, a->len) == 0;
}

static void put_line(struct cli *cli, const char *sign, const struct line *line)
{
    if (cli->json) {
        hf_json_object(&cli->writer);
        hf_json_put_str(&cli->writer, "side", *sign == '-' ? "first" : "second");
        hf_json_key(&cli->writer, "path");
        hf_json_strn(&cli->writer, line->at, line->path);
        hf_json_key(&cli->writer, "value");
        size_t skip = line->path + 2 <= line->len ? line->path + 2 : line->len;
        hf_json_strn(&cli->writer, line->at + skip, line->len - skip);
        hf_json_end(&cli->writer);
        return;
    }
    cli_colour(cli, *sign == '-' ? CLI_RED : CLI_GREEN);
    cli_put(cli, sign);
    hf_buf_bytes(&cli->out, line->at, line->len);
    cli_colour(cli, CLI_PLAIN);
    cli_put(cli, "\n");
}

/* What is only in the first, or differently there, then what only in the second. */
static size_t put_differences(struct cli *cli, const struct turn_lines *a,
                              const struct turn_lines *b)
{
    size_t count = 0;
    for (size_t i = 0; i < a->count; i++) {
        const struct line *other = find(b, &a->items[i]);
        if (other && same(other, &a->items[i]))
            continue;
        put_line(cli, "- ", &a->items[i]);
        if (other)
            put_line(cli, "+ ", other);
        count++;
    }
    for (size_t i = 0; i < b->count; i++) {
        if (find(a, &b->items[i]))
            continue;
        put_line(cli, "+ ", &b->items[i]);
        count++;
    }
    return count;
}

static int show_difference(struct cli *cli, const char *a_text, const char *b_text)
{
    struct turn_lines a;
    struct turn_lines b;
    int rc = split(cli, a_text, &a);
    if (rc == 0)
        rc = split(cli, b_text, &b);
    if (rc)
        return rc;
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_key(&cli->writer, "differences");
        hf_json_array(&cli->writer);
        (void)put_differences(cli, &a, &b); /* the array says how many */
        hf_json_end(&cli->writer);
        cli_ok_end(cli);
        return 0;
    }
    if (put_differences(cli, &a, &b) == 0)
        cli_put(cli, "no difference\n");
    return 0;
}

static int put_save(struct cli *cli, const char *text)
{
    struct turn_lines lines;
    int rc = split(cli, text, &lines);
    if (rc)
        return rc;
    hf_json_key(&cli->writer, "save");
    hf_json_object(&cli->writer);
    for (size_t i = 0; i < lines.count; i++) {
        const struct line *line = &lines.items[i];
        char *key = hf_arena_copy(&cli->arena, line->at, line->path);
        if (!key)
            return hf_fail_plain(&cli->err, HF_ENOMEM);
        size_t skip = line->path + 2 <= line->len ? line->path + 2 : line->len;
        hf_json_key(&cli->writer, key);
        hf_json_strn(&cli->writer, line->at + skip, line->len - skip);
    }
    hf_json_end(&cli->writer);
    return 0;
}

/* Reads the save, and the other one if there is one, and prints. A difference shows no cells of
 * their own: what they are made of is in the lines that differ. */
int cmd_turn_inspect(struct cli *cli)
{
    const char *other = cli_text(cli, "other");
    const char *text = NULL;
    const char *other_text = NULL;
    struct hf_span save = { 0 };
    struct hf_span other_save = { 0 };
    int rc = describe(cli, cli_text(cli, "save"), &save, &text);
    if (rc)
        return rc;
    if (other) {
        rc = describe(cli, other, &other_save, &other_text);
        return rc ? rc : show_difference(cli, text, other_text);
    }
    if (!cli->json) {
        cli_put(cli, text);
        return cli_turn_cells(cli, save);
    }
    cli_ok_begin(cli);
    rc = put_save(cli, text);
    if (rc == 0)
        rc = cli_turn_cells(cli, save);
    if (rc == 0)
        cli_ok_end(cli);
    return rc;
}
