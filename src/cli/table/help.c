/* --help, made from the tables. */
#include "cli/cli.h"

#include <string.h>

#define WIDTH 80

const struct hf_input *cli_option_table(const struct op *command, size_t i)
{
    switch (i) {
    case 0: return command->in;
    case 1: return command->more;
    case 2: return command->flags & (OP_SHELL | OP_FIELD) ? cli_rows_options : NULL;
    default: return command->flags & OP_SHELL ? cli_row_options : NULL;
    }
}

/* Whether a list such as "3 125" has the word. */
static bool listed(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = list; at && *at; at += strspn(at, " ")) {
        size_t next = strcspn(at, " ");
        if (next == len && memcmp(at, word, len) == 0)
            return true;
        at += next;
    }
    return false;
}

bool cli_exits_with(const struct op *op, const char *code)
{
    int digit = code[1] ? 0 : code[0] - '0';
    return op_exits_with(op, digit) || listed(op->exits, code);
}

static void put_spaces(struct cli *cli, size_t count)
{
    while (count--)
        hf_buf_char(&cli->out, ' ');
}

/* Words filled into lines that begin at `indent`; the first begins where `at` is. A
 * newline in the text begins a new line. */
static void put_wrapped(struct cli *cli, const char *text, size_t at, size_t indent)
{
    bool first = true;
    while (*text) {
        size_t len = strcspn(text, " \n");
        if (!first && at + 1 + len > WIDTH) {
            cli_put(cli, "\n");
            put_spaces(cli, indent);
            at = indent;
        } else if (!first) {
            cli_put(cli, " ");
            at++;
        }
        hf_buf_bytes(&cli->out, text, len);
        at += len;
        text += len;
        first = false;
        if (*text == '\n') {
            cli_put(cli, "\n");
            put_spaces(cli, text[1] ? indent : 0);
            at = indent;
            first = true;
        }
        if (*text)
            text++;
    }
    cli_put(cli, "\n");
}

/* A term in the left column and what it means in the right one. */
static void put_pair(struct cli *cli, const char *left, const char *right, size_t column)
{
    size_t len = strlen(left) + 2;
    cli_put(cli, "  ");
    cli_put(cli, left);
    if (len + 2 > column) {
        cli_put(cli, "\n");
        put_spaces(cli, column);
    } else {
        put_spaces(cli, column - len);
    }
    put_wrapped(cli, right, column, column);
}

static void put_heading(struct cli *cli, const char *text)
{
    cli_put(cli, "\n");
    cli_colour(cli, CLI_BOLD);
    cli_put(cli, text);
    cli_colour(cli, CLI_PLAIN);
    cli_put(cli, "\n");
}

void cli_put_usage(struct cli *cli, const struct hf_input *option)
{
    char name[HF_INPUT_NAME];
    bool needed = option->flags & HF_IN_NEEDED;
    const char *close = needed ? "" : "]", *more = hf_input_many(option) ? "..." : "";
    cli_put(cli, needed ? " " : " [");
    if (option->flags & HF_IN_BARE)
        cli_putf(cli, "%s%s%s", option->value, close, more);
    else
        cli_putf(cli, "--%s%s%s%s%s", hf_input_option(option, name),
                 option->value ? " " : "", option->value ? option->value : "", close,
                 more);
}

static void put_range(struct cli *cli, const struct hf_input *option)
{
    cli_putf(cli, "%lld to %lld", (long long)option->min,
             (long long)hf_input_max(option));
}

void cli_put_option_notes(struct cli *cli, const struct hf_input *option)
{
    const char *gap = " [";
    if (option->flags & HF_IN_NEEDED) {
        cli_putf(cli, "%srequired", gap);
        gap = "; ";
    }
    if (option->words) {
        cli_put(cli, gap);
        cli_put(cli, option->kind == HF_IN_WORD || option->kind == HF_IN_WORDS
                         ? "one of "
                         : "such as ");
        for (const char *const *word = option->words; *word; word++)
            cli_putf(cli, "%s%s", word == option->words ? "" : ", ", *word);
        gap = "; ";
    }
    if (option->kind == HF_IN_INT && hf_input_max(option) < INT32_MAX) {
        cli_put(cli, gap);
        put_range(cli, option);
        gap = "; ";
    }
    if (option->kind == HF_IN_JSON && !(option->flags & (HF_IN_FILE | HF_IN_PAIRS))) {
        cli_putf(cli, "%sJSON, @FILE, or - for standard input", gap);
        gap = "; ";
    }
    if (hf_input_many(option)) {
        cli_putf(cli, "%smay be repeated", gap);
        gap = "; ";
    }
    if (gap[0] == ';')
        cli_put(cli, "]");
}

/* Help text with its notes, built aside since both go through the wrapping. */
static void put_option(struct cli *cli, const struct hf_input *option)
{
    char left[80] = "", name[HF_INPUT_NAME];
    struct hf_buf whole = cli->out, part;
    hf_buf_init(&part, hf_alloc_system(), 4096);
    cli->out = part;
    cli_putf(cli, "--%s%s%s", hf_input_option(option, name), option->value ? " " : "",
             option->value ? option->value : "");
    if (cli->out.len < sizeof(left))
        memcpy(left, hf_buf_str(&cli->out), cli->out.len + 1);
    hf_buf_reset(&cli->out);
    cli_put(cli, option->help);
    cli_put_option_notes(cli, option);
    part = cli->out;
    cli->out = whole;
    put_pair(cli, left, hf_buf_str(&part), 28);
    hf_buf_fini(&part);
}

static void put_options(struct cli *cli, const char *heading,
                        const struct hf_input *options)
{
    if (!options || !options->name)
        return;
    if (heading)
        put_heading(cli, heading);
    for (; options->name; options++)
        put_option(cli, options);
}

static void put_examples(struct cli *cli, const struct op *command)
{
    if (!command->examples)
        return;
    put_heading(cli, "Examples");
    for (const struct op_example *e = command->examples; e->what; e++)
        cli_putf(cli, "%s  # %s\n  %s\n", e == command->examples ? "" : "\n", e->what,
                 e->command);
}

static void put_duration_note(struct cli *cli, const struct op *command)
{
    for (const struct hf_input *o = command->in; o && o->name; o++) {
        if (o->kind == HF_IN_MS) {
            cli_put(cli, "\n" CLI_DURATION_NOTE "\n");
            return;
        }
    }
}

/* A command is written after --, behind all options. */
static bool is_command(const struct hf_input *option)
{
    return strcmp(option->name, "command") == 0;
}

static const struct hf_input *command_input(const struct hf_input *options)
{
    for (; options && options->name; options++)
        if (is_command(options))
            return options;
    return NULL;
}

/* One line, or several where it is longer than a terminal is wide. */
static void put_usage(struct cli *cli, const struct op *command)
{
    char path[OP_PATH], name[HF_INPUT_NAME];
    size_t line = cli->out.len;
    cli_putf(cli, "Usage: holdfast %s", op_path(command, path));
    for (const struct hf_input *o = command->in; o && o->name; o++) {
        if (!(o->flags & (HF_IN_NEEDED | HF_IN_BARE)) || is_command(o))
            continue;
        size_t room = 4 + strlen(hf_input_option(o, name)) +
                      (o->value ? strlen(o->value) : 0) + 12;
        if (cli->out.len - line + room > 80) {
            cli_put(cli, "\n      ");
            line = cli->out.len - 6;
        }
        cli_put_usage(cli, o);
    }
    cli_put(cli, " [options]");
    if (command_input(command->in))
        cli_put(cli, " -- CMD [ARG...]");
    else if (command_input(command->more))
        cli_put(cli, " [-- CMD [ARG...]]");
    cli_put(cli, "\n");
}

void cli_print_command_help(struct cli *cli, const struct op *command)
{
    char path[OP_PATH];
    cli_putf(cli, "holdfast %s: %s\n\n", op_path(command, path), command->summary);
    put_usage(cli, command);
    put_examples(cli, command);
    if (command->text) {
        cli_put(cli, "\n");
        put_wrapped(cli, command->text, 0, 0);
    }
    const char *heading = "Options";
    for (size_t i = 0; i < CLI_OPTION_TABLES; i++) {
        const struct hf_input *table = cli_option_table(command, i);
        put_options(cli, heading, table);
        heading = table && table->name ? NULL : heading;
    }
    put_duration_note(cli, command);
    cli_put(cli, "\nOptions of every command, and exit codes: holdfast help all\n");
}

static void put_commands(struct cli *cli, const struct op_group *group)
{
    char path[OP_PATH];
    for (const struct op *c = group->ops; c->name; c++) {
        if (!(c->flags & OP_HIDDEN))
            put_pair(cli, op_path(c, path), c->summary, 26);
    }
}

void cli_print_group_help(struct cli *cli, const struct op_group *group)
{
    cli_putf(cli, "holdfast %s: %s\n\nUsage: holdfast %s COMMAND [options]\n",
             group->name, group->summary, group->name);
    put_heading(cli, "Commands");
    put_commands(cli, group);
    cli_putf(cli, "\n`holdfast %s COMMAND --help` describes one command.\n", group->name);
}

static void put_usage_line(struct cli *cli)
{
    cli_put(cli, "holdfast: a durable runtime for long-running agents\n\n"
                 "Usage: holdfast [--db PATH|URL] [--json] COMMAND [options]\n");
    put_heading(cli, "First steps");
    for (const struct cli_fact *step = cli_first_steps; step->name; step++)
        put_pair(cli, step->name, step->text, 24);
}

void cli_print_short_overview(struct cli *cli)
{
    put_usage_line(cli);
    put_heading(cli, "Groups of commands");
    for (const struct op_group *g = op_groups; g->name; g++) {
        if (*g->name)
            put_pair(cli, g->name, g->summary, 14);
    }
    cli_put(cli, "\n`holdfast COMMAND --help` describes one command or group, `holdfast "
                 "help all`\nlists everything.\n");
}

/* "schedule: work that is made at set times": who reads from the top finds the subject. */
static void put_group_heading(struct cli *cli, const struct op_group *group)
{
    bool named = *group->name;
    cli_put(cli, "\n");
    cli_colour(cli, CLI_BOLD);
    cli_put(cli, named ? group->name : "Other commands");
    cli_colour(cli, CLI_PLAIN);
    cli_putf(cli, "%s%s\n", named ? ": " : "", named ? group->summary : "");
}

void cli_print_overview(struct cli *cli)
{
    put_usage_line(cli);
    for (const struct op_group *g = op_groups; g->name; g++) {
        put_group_heading(cli, g);
        put_commands(cli, g);
    }
    put_options(cli, "Global options", cli_global_options);
    put_heading(cli, "Variables");
    for (const struct cli_fact *fact = cli_variables; fact->name; fact++)
        put_pair(cli, fact->name, fact->text, 26);
    put_heading(cli, "Exit codes");
    for (const struct cli_fact *fact = cli_exit_codes; fact->name; fact++)
        put_pair(cli, fact->name, fact->text, 7);
    cli_put(cli, "\n`holdfast COMMAND --help` describes one command, `man holdfast` all "
                 "of them.\n");
}
