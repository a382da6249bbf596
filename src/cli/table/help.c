/* --help, made from the tables. */
#include "cli/cli.h"

#include <string.h>

#define WIDTH 80

const struct cli_option *cli_option_table(const struct cli_command *command, size_t i)
{
    if (i == 0)
        return command->options;
    if (i == 1)
        return command->flags & (CLI_ROW | CLI_ROWS) ? cli_rows_options : NULL;
    return command->flags & CLI_ROW ? cli_row_options : NULL;
}

const char *cli_exit_text(const char *code)
{
    const struct cli_fact *fact = cli_exit_codes;
    while (fact->name && strcmp(fact->name, code) != 0)
        fact++;
    hf_assert(fact->name); /* the tables are wrong */
    return fact->text;
}

const char *cli_next_exit(const char **at, char out[4])
{
    size_t len = 0;
    while (**at == ' ')
        (*at)++;
    while (**at && **at != ' ' && len < 3)
        out[len++] = *(*at)++;
    out[len] = '\0';
    return len ? out : NULL;
}

static void put_spaces(struct cli *cli, size_t count)
{
    while (count--)
        hf_buf_char(&cli->out, ' ');
}

/* Words filled into lines that begin at `indent`; the first begins where `at` stands. A
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

void cli_put_usage(struct cli *cli, const struct cli_option *option)
{
    bool needed = option->flags & CLI_NEEDED, bare = option->flags & CLI_BARE;
    cli_putf(cli, "%s%s--%s%s%s%s%s%s", needed ? " " : " [", bare ? "[" : "",
             option->name, bare ? "]" : "", option->value ? " " : "",
             option->value ? option->value : "", needed ? "" : "]",
             option->flags & CLI_MANY ? "..." : "");
}

static void put_range(struct cli *cli, const struct cli_option *option)
{
    cli_putf(cli, "%lld to %lld", (long long)option->min, (long long)cli_max(option));
}

void cli_put_option_notes(struct cli *cli, const struct cli_option *option)
{
    const char *gap = " [";
    if (option->flags & CLI_NEEDED) {
        cli_putf(cli, "%srequired", gap);
        gap = "; ";
    }
    if (option->words) {
        cli_put(cli, gap);
        cli_put(cli, option->type == CLI_WORD ? "one of " : "such as ");
        for (const char *const *word = option->words; *word; word++)
            cli_putf(cli, "%s%s", word == option->words ? "" : ", ", *word);
        gap = "; ";
    }
    if (option->type == CLI_INT && cli_max(option) < INT32_MAX) {
        cli_put(cli, gap);
        put_range(cli, option);
        gap = "; ";
    }
    if (option->type == CLI_JSON) {
        cli_putf(cli, "%sJSON, @FILE, or - for standard input", gap);
        gap = "; ";
    }
    if (option->flags & CLI_MANY) {
        cli_putf(cli, "%smay be repeated", gap);
        gap = "; ";
    }
    if (gap[0] == ';')
        cli_put(cli, "]");
}

/* Help text with its notes, built aside since both go through the wrapping. */
static void put_option(struct cli *cli, const struct cli_option *option)
{
    char left[80] = "";
    struct hf_buf whole = cli->out, part;
    hf_buf_init(&part, hf_alloc_system(), 4096);
    cli->out = part;
    cli_putf(cli, "--%s%s%s", option->name, option->value ? " " : "",
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
                        const struct cli_option *options)
{
    if (!options || !options->name)
        return;
    if (heading)
        put_heading(cli, heading);
    for (; options->name; options++)
        put_option(cli, options);
}

static void put_exits(struct cli *cli, const struct cli_command *command)
{
    char code[4];
    const char *at = command->exits;
    put_heading(cli, "Exit codes");
    put_pair(cli, "0", cli_exit_text("0"), 7);
    put_pair(cli, "1", cli_exit_text("1"), 7);
    put_pair(cli, "2", cli_exit_text("2"), 7);
    while (at && cli_next_exit(&at, code))
        put_pair(cli, code, cli_exit_text(code), 7);
}

static void put_examples(struct cli *cli, const struct cli_command *command)
{
    if (!command->examples)
        return;
    put_heading(cli, "Examples");
    for (const struct cli_example *e = command->examples; e->what; e++)
        cli_putf(cli, "%s  # %s\n  %s\n", e == command->examples ? "" : "\n", e->what,
                 e->command);
}

static void put_duration_note(struct cli *cli, const struct cli_command *command)
{
    for (const struct cli_option *o = command->options; o && o->name; o++) {
        if (o->type == CLI_DURATION) {
            cli_put(cli, "\n" CLI_DURATION_NOTE "\n");
            return;
        }
    }
}

static bool is_shown(const struct cli_option *option)
{
    return option->flags & (CLI_NEEDED | CLI_BARE);
}

/* One line, or several where it is longer than a terminal is wide. */
static void put_usage(struct cli *cli, const struct cli_command *command)
{
    size_t line = cli->out.len;
    cli_putf(cli, "Usage: holdfast %s", command->path);
    for (const struct cli_option *o = command->options; o && o->name; o++) {
        if (!is_shown(o))
            continue;
        size_t room = 4 + strlen(o->name) + (o->value ? strlen(o->value) : 0) + 12;
        if (cli->out.len - line + room > 80) {
            cli_put(cli, "\n      ");
            line = cli->out.len - 6;
        }
        cli_put_usage(cli, o);
    }
    cli_put(cli, " [options]\n");
}

void cli_print_command_help(struct cli *cli, const struct cli_command *command)
{
    cli_putf(cli, "holdfast %s: %s\n\n", command->path, command->summary);
    put_usage(cli, command);
    if (command->text) {
        cli_put(cli, "\n");
        put_wrapped(cli, command->text, 0, 0);
    }
    put_options(cli, "Options", command->options);
    if (!command->options || !command->options->name)
        put_options(cli, "Options", cli_option_table(command, 1));
    else
        put_options(cli, NULL, cli_option_table(command, 1));
    put_options(cli, NULL, cli_option_table(command, 2));
    put_duration_note(cli, command);
    put_options(cli, "Global options", cli_global_options);
    put_exits(cli, command);
    put_examples(cli, command);
}

static void put_commands(struct cli *cli, const struct cli_group *group)
{
    for (const struct cli_command *c = group->commands; c->path; c++) {
        if (!(c->flags & CLI_HIDDEN))
            put_pair(cli, c->path, c->summary, 26);
    }
}

void cli_print_group_help(struct cli *cli, const struct cli_group *group)
{
    cli_putf(cli, "holdfast %s: %s\n\nUsage: holdfast %s COMMAND [options]\n",
             group->name, group->summary, group->name);
    put_heading(cli, "Commands");
    put_commands(cli, group);
    put_options(cli, "Global options", cli_global_options);
    cli_putf(cli, "\n`holdfast %s COMMAND --help` says more of one command.\n",
             group->name);
}

static void put_usage_line(struct cli *cli)
{
    cli_put(cli, "holdfast: a durable ledger of work for long-running agents\n\n"
                 "Usage: holdfast [--db PATH|URL] [--json] COMMAND [options]\n");
    put_heading(cli, "First steps");
    for (const struct cli_fact *step = cli_first_steps; step->name; step++)
        put_pair(cli, step->name, step->text, 26);
}

void cli_print_short_overview(struct cli *cli)
{
    put_usage_line(cli);
    put_heading(cli, "Commands");
    for (const struct cli_group *g = cli_groups; g->name; g++) {
        if (*g->name)
            put_pair(cli, g->name, g->summary, 14);
    }
    for (const struct cli_command *c = cli_top_commands; c->path; c++) {
        if (!(c->flags & CLI_HIDDEN))
            put_pair(cli, c->path, c->summary, 14);
    }
    cli_put(cli,
            "\n`holdfast --help` lists everything, `holdfast COMMAND --help` says more "
            "of one\ncommand.\n");
}

/* "schedule: work that is made at set times": who reads from the top finds the subject. */
static void put_group_heading(struct cli *cli, const struct cli_group *group)
{
    bool named = *group->name;
    cli_put(cli, "\n");
    cli_colour(cli, CLI_BOLD);
    cli_put(cli, named ? group->name : "The rest");
    cli_colour(cli, CLI_PLAIN);
    cli_putf(cli, "%s%s\n", named ? ": " : "", named ? group->summary : "");
}

void cli_print_overview(struct cli *cli)
{
    put_usage_line(cli);
    for (const struct cli_group *g = cli_groups; g->name; g++) {
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
    cli_put(cli,
            "\n`holdfast COMMAND --help` says more of one command, `man holdfast` of "
            "all.\n");
}
