/* Completion: `holdfast __complete -- WORD...` prints what the last word can become, from the
 * tables and from the store. The scripts of the shells only ask it. */
#include "cli/cli.h"

#include <string.h>

#include <holdfast/schedule.h>

#include "base/text.h"

#define IDS_MAX 50
#define FILES ":files" /* the shell completes names of files itself */

struct completion {
    struct cli *cli;
    const char *begun; /* the last word */
    const struct op_group *group;
    const struct op *op;
    size_t bare; /* words that the operation took without an option's name */
};

static void offer(const struct completion *c, const char *word)
{
    if (!hf_starts_with(word, c->begun))
        return;
    cli_put_clean(c->cli, word);
    cli_put(c->cli, "\n");
}

/* ---- words of the store -------------------------------------------------------------- */

/* Short ids and names of what has not ended. A store that cannot be read offers nothing. */
static void offer_units(const struct completion *c)
{
    struct cli *cli = c->cli;
    struct hf_answer *found = NULL;
    const struct hf_filter filter = { .size = sizeof(filter), .limit = IDS_MAX };
    if (hf_work_list(cli->store, &cli->who, &filter, &found, &cli->err))
        return;
    for (size_t i = 0; i < hf_answer_count(found); i++) {
        const struct hf_work *work = &hf_answer_at(found, i)->work;
        offer(c, op_short_id(work->work_id));
        if (work->source_run_id && hf_source_of(work->source_system) == HF_SOURCE_MANUAL)
            offer(c, work->source_id);
    }
    hf_answer_free(found);
}

static void offer_schedules(const struct completion *c)
{
    struct cli *cli = c->cli;
    struct hf_schedules *found = NULL;
    const struct hf_schedule_filter filter = { .size = sizeof(filter), .limit = IDS_MAX };
    if (hf_schedule_list(cli->store, &cli->who, &filter, &found, &cli->err))
        return;
    for (size_t i = 0; i < hf_schedules_count(found); i++)
        offer(c, hf_schedules_at(found, i)->name);
    hf_schedules_free(found);
}

static void offer_from_store(const struct completion *c, bool schedules)
{
    struct cli *cli = c->cli;
    if (cli_store_absent(cli))
        return;
    cli->op = op_find("work.list"); /* opened for reading only */
    if (cli_open_store(cli))
        return;
    if (!schedules)
        offer_units(c);
    offer_schedules(c); /* the name of a schedule is that of its newest unit */
}

/* ---- words of the tables ------------------------------------------------------------- */

static void offer_options(const struct completion *c, const struct hf_input *options)
{
    char name[HF_INPUT_NAME + 2] = "--";
    for (; options && options->name; options++) {
        (void)hf_input_option(options, name + 2);
        offer(c, name);
    }
}

static void offer_value(const struct completion *c, const struct hf_input *input)
{
    char name[HF_INPUT_NAME];
    bool schedules = c->group && strcmp(c->group->name, "schedule") == 0;
    if (input->words) {
        for (const char *const *word = input->words; *word; word++)
            offer(c, *word);
    } else if (input->kind == HF_IN_PATH || input->kind == HF_IN_JSON ||
               strcmp(input->name, "command") == 0) {
        cli_put(c->cli, FILES "\n");
    } else if (strcmp(hf_input_option(input, name), "id") == 0) {
        offer_from_store(c, false);
    } else if (schedules && strcmp(input->name, "name") == 0) {
        offer_from_store(c, true);
    }
}

static void offer_commands(const struct completion *c)
{
    char path[OP_PATH];
    for (const struct op_group *g = op_groups; g->name; g++) {
        if (!c->group && *g->name)
            offer(c, g->name);
        for (const struct op *op = g->ops; op->name; op++) {
            const char *gap = strchr(op_path(op, path), ' ');
            bool own = c->group == (*g->name ? g : NULL);
            bool further = !*g->name && gap; /* a second word of one-word commands */
            if ((op->flags & OP_HIDDEN) == 0 && own && !further)
                offer(c, gap ? gap + 1 : path);
        }
    }
    if (!c->group)
        offer(c, "help");
}

/* The input that the option names: of the operation, if the words so far name one, otherwise of the
 * global options, which are the table after the last. */
static const struct hf_input *find_input(const struct completion *c, const char *option)
{
    char name[HF_INPUT_NAME];
    for (size_t t = 0; t <= CLI_OPTION_TABLES; t++) {
        const struct hf_input *o = t == CLI_OPTION_TABLES ? cli_global_options
                                   : c->op                ? cli_option_table(c->op, t)
                                                          : NULL;
        for (; o && o->name; o++)
            if (strcmp(hf_input_option(o, name), option) == 0)
                return o;
    }
    return NULL;
}

/* The input that the next word without an option's name is. */
static const struct hf_input *next_bare(const struct completion *c)
{
    size_t left = c->bare;
    for (size_t t = 0; t < 2; t++)
        for (const struct hf_input *o = cli_option_table(c->op, t); o && o->name; o++)
            if (o->flags & HF_IN_BARE && (hf_input_many(o) || left-- == 0))
                return o;
    return NULL;
}

/* ---- the words so far ---------------------------------------------------------------- */

static void take_word(struct completion *c, const char *word)
{
    char path[OP_PATH];
    if (c->op) {
        c->bare++;
        return;
    }
    for (const struct op_group *g = op_groups; g->name; g++) {
        if (!c->group && *g->name && strcmp(g->name, word) == 0) {
            c->group = g;
            return;
        }
        for (const struct op *op = g->ops; op->name; op++) {
            const char *gap = strchr(op_path(op, path), ' ');
            if (c->group == (*g->name ? g : NULL) && (*g->name || !gap) &&
                strcmp(gap ? gap + 1 : path, word) == 0) {
                c->op = op;
                return;
            }
        }
    }
}

int cmd_complete(struct cli *cli)
{
    size_t count = 0;
    const char *const *words = cli_texts(cli, "words", &count);
    struct completion c = { .cli = cli, .begun = count ? words[count - 1] : "" };
    const struct hf_input *value = NULL; /* the option whose value comes next */
    bool command = false;                /* after -- */
    for (size_t i = 0; i + 1 < count && !command; i++) {
        bool option = strncmp(words[i], "--", 2) == 0;
        command = strcmp(words[i], "--") == 0;
        if (value)
            value = NULL;
        else if (option && !strchr(words[i], '=')) {
            value = find_input(&c, words[i] + 2);
            value = value && value->value ? value : NULL;
        } else if (!option)
            take_word(&c, words[i]);
    }
    if (command)
        cli_put(cli, FILES "\n");
    else if (value)
        offer_value(&c, value);
    else if (c.begun[0] == '-') {
        for (size_t t = 0; c.op && t < CLI_OPTION_TABLES; t++)
            offer_options(&c, cli_option_table(c.op, t));
        offer_options(&c, cli_global_options);
    } else if (!c.op)
        offer_commands(&c);
    else if (next_bare(&c))
        offer_value(&c, next_bare(&c));
    return 0;
}

/* ---- the scripts --------------------------------------------------------------------- */

static const char bash_script[] =
    "# Completion of holdfast for bash.\n"
    "_holdfast()\n{\n"
    "    mapfile -t COMPREPLY < <(\"${COMP_WORDS[0]}\" __complete -- "
    "\"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
    "    if [ \"${COMPREPLY[0]}\" = " FILES " ]; then\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(compgen -f -- \"${COMP_WORDS[COMP_CWORD]}\")\n"
    "    fi\n"
    "}\ncomplete -F _holdfast holdfast\n";

static const char zsh_script[] =
    "#compdef holdfast\n"
    "# Completion of holdfast for zsh.\n"
    "_holdfast() {\n"
    "    local -a found\n"
    "    found=(\"${(@f)$(${words[1]} __complete -- \"${(@)words[2,CURRENT]}\" "
    "2>/dev/null)}\")\n"
    "    if [[ ${found[1]} == " FILES " ]]; then\n"
    "        _files\n"
    "        return\n"
    "    fi\n"
    "    [[ -n ${found[1]} ]] && compadd -- \"${found[@]}\"\n"
    "}\n"
    "compdef _holdfast holdfast\n";

static const char fish_script[] =
    "# Completion of holdfast for fish.\n"
    "function __holdfast_complete\n"
    "    set -l words (commandline -opc) (commandline -ct)\n"
    "    set -l found (command $words[1] __complete -- $words[2..-1] 2>/dev/null)\n"
    "    if test \"$found[1]\" = " FILES "\n"
    "        __fish_complete_path (commandline -ct)\n"
    "        return\n"
    "    end\n"
    "    printf '%s\\n' $found\n"
    "end\n"
    "complete -c holdfast -f -a '(__holdfast_complete)'\n";

int cmd_completion(struct cli *cli)
{
    const char *shell = cli_text(cli, "shell");
    cli_put(cli, hf_same(shell, "zsh")    ? zsh_script
                 : hf_same(shell, "fish") ? fish_script
                                          : bash_script);
    return 0;
}
