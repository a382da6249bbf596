/* Manual pages, made from the tables: `holdfast __man` prints holdfast(1), `holdfast __man
 * work` holdfast-work(1). The build runs it. */
#include "cli/cli.h"

#include <ctype.h>
#include <string.h>

#include <holdfast/version.h>

/* Text that troff takes as it is: a backslash and a dash are written out, and no line may
 * begin with a dot or an apostrophe. */
static void put_roff(struct cli *cli, const char *text)
{
    bool line_start = true;
    for (; *text; text++) {
        if (line_start && (*text == '.' || *text == '\''))
            cli_put(cli, "\\&");
        if (*text == '\\')
            cli_put(cli, "\\e");
        else if (*text == '-')
            cli_put(cli, "\\-");
        else
            hf_buf_char(&cli->out, *text);
        line_start = *text == '\n';
    }
}

static void put_upper(struct cli *cli, const char *text)
{
    for (; *text; text++)
        hf_buf_char(&cli->out, (char)toupper((unsigned char)*text));
}

/* `page` is "" for holdfast(1), otherwise the first word of the commands. */
static void put_title(struct cli *cli, const char *page, const char *summary)
{
    cli_put(cli, ".TH HOLDFAST");
    cli_put(cli, *page ? "\\-" : "");
    put_upper(cli, page);
    cli_put(cli, " 1 \"\" \"holdfast " HF_VERSION "\" \"User Commands\"\n.SH NAME\n");
    cli_putf(cli, "holdfast%s%s \\- ", *page ? "\\-" : "", page);
    put_roff(cli, summary);
    cli_put(cli, "\n");
}

static void put_synopsis(struct cli *cli, const struct op *command)
{
    char path[OP_PATH];
    cli_putf(cli, ".HP\n.B holdfast %s\n", op_path(command, path));
    struct hf_buf whole = cli->out, part;
    hf_buf_init(&part, hf_alloc_system(), 8192);
    cli->out = part;
    for (size_t i = 0; i < CLI_OPTION_TABLES; i++) {
        const struct hf_input *o = cli_option_table(command, i);
        for (; o && o->name; o++)
            cli_put_usage(cli, o);
    }
    part = cli->out;
    cli->out = whole;
    put_roff(cli, part.len ? hf_buf_str(&part) + 1 : "");
    cli_put(cli, part.len ? "\n" : "");
    hf_buf_fini(&part);
}

static void put_option(struct cli *cli, const struct hf_input *option)
{
    char name[HF_INPUT_NAME];
    cli_put(cli, ".TP\n\\fB\\-\\-");
    put_roff(cli, hf_input_option(option, name));
    cli_put(cli, "\\fR");
    if (option->value) {
        cli_put(cli, " \\fI");
        put_roff(cli, option->value);
        cli_put(cli, "\\fR");
    }
    cli_put(cli, "\n");
    put_roff(cli, option->help);
    cli_put_option_notes(cli, option);
    cli_put(cli, "\n");
}

static void put_options(struct cli *cli, const struct hf_input *options)
{
    for (; options && options->name; options++)
        put_option(cli, options);
}

static void put_examples(struct cli *cli, const struct op *command)
{
    if (!command->examples)
        return;
    cli_put(cli, ".PP\nExamples:\n");
    for (const struct op_example *e = command->examples; e->what; e++) {
        cli_put(cli, ".PP\n.RS\n.nf\n# ");
        put_roff(cli, e->what);
        cli_put(cli, "\n");
        put_roff(cli, e->command);
        cli_put(cli, "\n.fi\n.RE\n");
    }
}

static void put_command(struct cli *cli, const struct op *command)
{
    char path[OP_PATH];
    cli_put(cli, ".SS holdfast ");
    put_roff(cli, op_path(command, path));
    cli_put(cli, "\n");
    hf_buf_char(&cli->out, (char)toupper((unsigned char)command->summary[0]));
    put_roff(cli, command->summary + 1);
    cli_put(cli, ".\n");
    if (command->text) {
        cli_put(cli, ".PP\n");
        put_roff(cli, command->text);
        cli_put(cli, "\n");
    }
    for (size_t i = 0; i < CLI_OPTION_TABLES; i++)
        put_options(cli, cli_option_table(command, i));
    const char *sep = ".PP\nExit codes in addition to 0, 1 and 2: ";
    for (const struct cli_fact *fact = cli_exit_codes; fact->name; fact++)
        if (cli_exits_with(command, fact->name)) {
            cli_putf(cli, "%s%s", sep, fact->name);
            sep = ", ";
        }
    cli_put(cli, sep[0] == ',' ? ".\n" : "");
    put_examples(cli, command);
}

static void put_facts(struct cli *cli, const char *heading, const struct cli_fact *facts)
{
    cli_putf(cli, ".SH %s\n", heading);
    for (; facts->name; facts++) {
        cli_put(cli, ".TP\n.B ");
        put_roff(cli, facts->name);
        cli_put(cli, "\n");
        put_roff(cli, facts->text);
        cli_put(cli, "\n");
    }
}

static bool on_page(const struct op_group *group, const char *page)
{
    return strcmp(group->name, page) == 0;
}

static void put_see_also(struct cli *cli, const char *page)
{
    const char *sep = "";
    cli_put(cli, ".SH SEE ALSO\n");
    if (*page) {
        cli_put(cli, ".BR holdfast (1)");
        sep = ",\n";
    }
    for (const struct op_group *g = op_groups; g->name; g++) {
        if (!*g->name || on_page(g, page))
            continue;
        cli_putf(cli, "%s.BR holdfast\\-%s (1)", sep, g->name);
        sep = ",\n";
    }
    cli_put(cli, "\n");
}

static void put_description(struct cli *cli, const char *page)
{
    cli_put(cli, ".SH DESCRIPTION\n");
    if (!*page) {
        cli_put(
            cli,
            "Holdfast keeps every unit of work of an agent runtime in one ledger, a\n"
            "SQLite file that needs no set\\-up, and always answers: what is running,\n"
            "who holds it, until when, what waits, and why did that end.\n"
            ".PP\nA unit is created, claimed by an owner under a lease, and ends by an\n"
            "explicit close\\-out; or it waits, retries, or is ended by a rule that was\n"
            "declared when it was created. Every change is one event in its trail.\n"
            ".PP\nGlobal options may be written before or after the words of a command.\n"
            "An id may be shortened to a unique prefix or suffix of at least four\n"
            "characters; lists show the suffix.\n"
            ".PP\n\\fBholdfast\\fR without a command prints its overview to standard\n"
            "error and exits with 2.\n");
        return;
    }
    cli_put(cli, "The global options, the variables and the exit codes are described "
                 "in\n.BR holdfast (1).\n");
}

int cmd_man(struct cli *cli)
{
    const char *page = cli_text(cli, "page");
    const struct op_group *group = op_groups;
    page = page ? page : "";
    while (group->name && !on_page(group, page))
        group++;
    if (!group->name)
        return hf_fail(&cli->err, HF_ENOTFOUND, NULL, "there is no group \"%.60s\"",
                       page);
    put_title(cli, page, group->summary);
    cli_put(cli, ".SH SYNOPSIS\n.nh\n.ad l\n");
    for (const struct op *c = group->ops; c->name; c++) {
        if (!(c->flags & OP_HIDDEN))
            put_synopsis(cli, c);
    }
    if (!*page)
        for (const struct op_group *g = op_groups; g->name; g++)
            cli_putf(cli, *g->name ? ".HP\n.B holdfast %s\n\\fICOMMAND\\fR ...\n" : "%s",
                     g->name);
    cli_put(cli, ".ad b\n.hy\n");
    put_description(cli, page);
    cli_put(cli, ".SH COMMANDS\n");
    for (const struct op *c = group->ops; c->name; c++) {
        if (!(c->flags & OP_HIDDEN))
            put_command(cli, c);
    }
    if (!*page) {
        cli_put(cli, ".SH GLOBAL OPTIONS\n");
        put_options(cli, cli_global_options);
        put_facts(cli, "ENVIRONMENT", cli_variables);
        put_facts(cli, "EXIT STATUS", cli_exit_codes);
    }
    put_see_also(cli, page);
    return 0;
}
