/* The command line, read against the declared tables.
 *
 * Global options may be before or after the words of the command, its own options are after them.
 * A value is checked by its type when it is read, so that no store is opened for input that cannot
 * be right. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/near.h"
#include "base/text.h"

#define NOT_FOUND SIZE_MAX
#define CLI_WORDS_MAX 64 /* more than any group has */

/* The position in argv, and what the words so far have named. */
struct walk {
    struct cli *cli;
    char **argv;
    int argc;
    int at;
    bool only_words; /* after "--" */
};

#define usage(cli, ...) hf_fail(&(cli)->err, HF_EINVAL, NULL, __VA_ARGS__)

static int no_memory(struct cli *cli)
{
    return hf_fail_plain(&cli->err, HF_ENOMEM);
}

/* ---- values ------------------------------------------------------------------------ */

static void add_options(struct cli *cli, const struct hf_input *options)
{
    for (; options && options->name; options++) {
        hf_assert(cli->value_count < CLI_VALUES_MAX);
        cli->values[cli->value_count++] = (struct cli_value){ .option = options };
    }
}

static size_t find_option(const struct cli *cli, const char *name, size_t len)
{
    for (size_t i = 0; i < cli->value_count; i++) {
        char known[HF_INPUT_NAME];
        (void)hf_input_option(cli->values[i].option, known);
        if (strlen(known) == len && memcmp(known, name, len) == 0)
            return i;
    }
    return NOT_FOUND;
}

static const struct cli_value *declared(const struct cli *cli, const char *name)
{
    size_t i = find_option(cli, name, strlen(name));
    hf_assert(i != NOT_FOUND);
    return &cli->values[i];
}

const char *cli_text(const struct cli *cli, const char *name)
{
    const struct cli_value *value = declared(cli, name);
    return value->count ? value->texts[value->count - 1] : NULL;
}

bool cli_given(const struct cli *cli, const char *name)
{
    return declared(cli, name)->count > 0;
}

int64_t cli_number(const struct cli *cli, const char *name, int64_t fallback)
{
    const struct cli_value *value = declared(cli, name);
    return value->count ? value->number : fallback;
}

const char *const *cli_texts(const struct cli *cli, const char *name, size_t *ret_count)
{
    const struct cli_value *value = declared(cli, name);
    *ret_count = value->count;
    return value->texts;
}

/* Room is doubled whenever a power of two is full. */
static int keep_text(struct cli *cli, struct cli_value *value, const char *text)
{
    size_t count = value->count;
    if ((count & (count - 1)) == 0) {
        size_t room = count ? 2 * count : 1;
        const char **texts = hf_arena_array(&cli->arena, room, sizeof(*texts));
        if (!texts)
            return no_memory(cli);
        if (count)
            memcpy(texts, value->texts, count * sizeof(*texts));
        value->texts = texts;
    }
    value->texts[value->count++] = text;
    return 0;
}

/* "--name" in `out`. */
static const char *label_of(const struct hf_input *option, char out[HF_INPUT_NAME + 2])
{
    out[0] = out[1] = '-';
    (void)hf_input_option(option, out + 2);
    return out;
}

/* Checks a value and keeps it. */
static int set_value(struct cli *cli, struct cli_value *value, const char *text)
{
    const struct hf_input *option = value->option;
    char label[HF_INPUT_NAME + 2];
    (void)label_of(option, label);
    if (value->count && !hf_input_many(option) && option->kind != HF_IN_FLAG)
        return usage(cli, "%s was given more than once", label);
    int rc = hf_input_parse(option, label, text, &value->number, &cli->err);
    if (rc && option->words)
        cli->err.field[0] = '\0'; /* the message says what to do */
    bool inner = option->flags & (HF_IN_FILE | HF_IN_PAIRS); /* read when it is run */
    if (rc == 0 && option->kind == HF_IN_JSON && !inner)
        rc = cli_read_json(cli, option, text, &text);
    return rc ? rc : keep_text(cli, value, text);
}

/* ---- options ----------------------------------------------------------------------- */

static int unknown_option(struct cli *cli, const char *name, size_t len)
{
    struct hf_near near;
    char names[CLI_VALUES_MAX][HF_INPUT_NAME], path[OP_PATH];
    char *typed = hf_arena_copy(&cli->arena, name, len);
    if (!typed)
        return no_memory(cli);
    hf_near_begin(&near, typed);
    for (size_t i = 0; i < cli->value_count; i++)
        hf_near_try(&near, hf_input_option(cli->values[i].option, names[i]));
    const char *of = cli->op ? op_path(cli->op, path) : "";
    const char *gap = cli->op ? " " : "";
    if (near.best)
        return usage(cli,
                     "unknown option --%.60s: did you mean --%s? (holdfast%s%s --help)",
                     typed, near.best, gap, of);
    if (!cli->op)
        return usage(cli, "unknown option --%.60s before the command (holdfast --help)",
                     typed);
    return usage(cli, "unknown option --%.60s (holdfast %s --help)", typed, of);
}

/* An option of the command that is to be run was read as ours. */
static bool lacks_dashes(const struct cli *cli)
{
    size_t i = cli->op ? find_option(cli, "command", strlen("command")) : NOT_FOUND;
    return i != NOT_FOUND && cli->values[i].count > 0;
}

static int misplaced_option(struct cli *cli, const char *option)
{
    char path[OP_PATH];
    return usage(
        cli,
        "unknown option %.60s: if it belongs to the command, write -- before the "
        "command: holdfast %s -- %.60s %.60s",
        option, op_path(cli->op, path), cli_text(cli, "command"), option);
}

/* "--name", "--name value" or "--name=value". */
static int read_option(struct walk *walk)
{
    struct cli *cli = walk->cli;
    const char *name = walk->argv[walk->at++] + 2;
    const char *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    size_t i = find_option(cli, name, len);
    if (i == NOT_FOUND && lacks_dashes(cli))
        return misplaced_option(cli, name - 2);
    if (i == NOT_FOUND)
        return unknown_option(cli, name, len);
    struct cli_value *value = &cli->values[i];
    char known[HF_INPUT_NAME];
    (void)hf_input_option(value->option, known);
    if (value->option->kind == HF_IN_FLAG)
        return equals ? usage(cli, "--%s takes no value", known)
                      : set_value(cli, value, "");
    if (equals)
        return set_value(cli, value, equals + 1);
    if (walk->at >= walk->argc)
        return usage(cli, "--%s needs a value: %s", known, value->option->value);
    const char *text = walk->argv[walk->at];
    if (strncmp(text, "--", 2) == 0)
        return usage(cli,
                     "--%s needs a value: %s (one that begins with -- is given as "
                     "--%s=VALUE)",
                     known, value->option->value, known);
    walk->at++;
    return set_value(cli, value, text);
}

/* ---- words ------------------------------------------------------------------------- */

/* "hand-back" of work.hand_back, in `out`. */
static const char *last_word(const struct op *op, char out[OP_PATH])
{
    const char *gap = strchr(op_path(op, out), ' ');
    return gap ? gap + 1 : out;
}

static size_t count_options(const struct hf_input *options)
{
    size_t count = 0;
    while (options[count].name)
        count++;
    return count;
}

/* The words so far name this operation: its options may follow. They are in several tables (its
 * inputs, further ones, and those of printing rows). "attention" is an operation, and "attention
 * ack" another one (longer), so the options of a shorter one are removed. The global options, which
 * cli_parse has added first, stay. */
static void choose(struct cli *cli, const struct op *op)
{
    if (cli->op)
        cli->value_count = count_options(cli_global_options);
    cli->op = op;
    for (size_t i = 0; i < CLI_OPTION_TABLES; i++)
        add_options(cli, cli_option_table(op, i));
}

/* Words that other programs have for these. */
static const char *known_elsewhere(const char *word)
{
    static const char *const words[][2] = {
        { "list", "work list" },      { "ls", "work list" },
        { "status", "top" },          { "ps", "process list" },
        { "logs", "work output" },    { "log", "work output" },
        { "output", "work output" },  { "cancel", "work cancel" },
        { "kill", "work cancel" },    { "stop", "work cancel" },
        { "show", "work show" },      { "events", "work events" },
        { "retry", "work requeue" },  { "start", "process start" },
        { "cron", "schedule add" },   { "exec", "run --" },
        { "worker", "run --worker" },
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(words[i][0], word) == 0)
            return words[i][1];
    return NULL;
}

/* The group's own word for what others call `word`, otherwise the nearest one. */
static int unknown_in_group(struct cli *cli, const char *word)
{
    struct hf_near near;
    char words[CLI_WORDS_MAX][OP_PATH]; /* the nearest one is borrowed */
    size_t n = 0;
    const char *other = known_elsewhere(word), *same = other ? strchr(other, ' ') : NULL;
    hf_near_begin(&near, word);
    for (const struct op *c = cli->group->ops; c->name && n < CLI_WORDS_MAX; c++, n++) {
        const char *own = last_word(c, words[n]);
        hf_near_try(&near, own);
        if (same && strcmp(own, same + 1) == 0)
            return usage(cli, "unknown command \"%s %.60s\": did you mean \"%s %s\"?",
                         cli->group->name, word, cli->group->name, own);
    }
    if (near.best)
        return usage(cli, "unknown command \"%s %.60s\": did you mean \"%s %s\"?",
                     cli->group->name, word, cli->group->name, near.best);
    if (other)
        return usage(cli, "unknown command \"%s %.60s\": did you mean \"holdfast %s\"?",
                     cli->group->name, word, other);
    return usage(cli, "unknown command \"%s %.60s\" (holdfast %s --help)",
                 cli->group->name, word, cli->group->name);
}

static int unknown_command(struct cli *cli, const char *word)
{
    struct hf_near near;
    const char *other = known_elsewhere(word);
    if (cli->group)
        return unknown_in_group(cli, word);
    if (other)
        return usage(cli, "unknown command \"%.60s\": did you mean \"holdfast %s\"?",
                     word, other);
    hf_near_begin(&near, word);
    for (const struct op_group *g = op_groups; g->name; g++) {
        if (*g->name)
            hf_near_try(&near, g->name);
        else
            for (const struct op *c = g->ops; c->name; c++)
                hf_near_try(&near, c->flags & OP_HIDDEN ? "" : c->name);
    }
    if (near.best)
        return usage(cli, "unknown command \"%.60s\": did you mean \"%s\"?", word,
                     near.best);
    return usage(cli, "unknown command \"%.60s\" (holdfast --help)", word);
}

/* The first or second word of a command. */
static int read_command(struct cli *cli, const char *word)
{
    if (!cli->group && strcmp(word, "help") == 0) {
        cli->help = true;
        return 0;
    }
    if (!cli->group && cli->help && strcmp(word, "all") == 0) {
        cli->help_all = true;
        return 0;
    }
    char last[OP_PATH];
    for (const struct op_group *g = op_groups; g->name; g++) {
        if (cli->group ? g != cli->group : *g->name != '\0') {
            if (!cli->group && strcmp(g->name, word) == 0) {
                cli->group = g;
                return 0;
            }
            continue;
        }
        for (const struct op *c = g->ops; c->name; c++) {
            const char *known = *g->name ? last_word(c, last) : op_path(c, last);
            if (strcmp(known, word) == 0) {
                cli->group = g;
                choose(cli, c);
                return 0;
            }
        }
    }
    return unknown_command(cli, word);
}

/* A second word of a command that is one without it: "attention ack". */
static const struct op *longer(const struct cli *cli, const char *word)
{
    char path[OP_PATH], first[OP_PATH];
    size_t len = strlen(op_path(cli->op, first));
    for (const struct op *c = cli->group->ops; c->name; c++)
        if (strncmp(op_path(c, path), first, len) == 0 && path[len] == ' ' &&
            strcmp(path + len + 1, word) == 0)
            return c;
    return NULL;
}

/* The options that were given so far belong to the shorter command. */
static int choose_longer(struct cli *cli, const struct op *second)
{
    char label[HF_INPUT_NAME + 2], path[OP_PATH];
    for (size_t i = count_options(cli_global_options); i < cli->value_count; i++)
        if (cli->values[i].count > 0)
            return usage(cli, "write %s behind the words of the command: %s %s",
                         label_of(cli->values[i].option, label), op_path(second, path),
                         label);
    choose(cli, second);
    return 0;
}

static int read_word(struct walk *walk, const char *word)
{
    struct cli *cli = walk->cli;
    if (!cli->op)
        return read_command(cli, word);
    const struct op *second = longer(cli, word);
    if (second)
        return choose_longer(cli, second);
    /* Words after -- are the command's, where there can be one. */
    size_t command = find_option(cli, "command", strlen("command"));
    size_t first = walk->only_words && command != NOT_FOUND ? command : 0;
    for (size_t i = first; i < cli->value_count; i++) {
        struct cli_value *value = &cli->values[i];
        bool taken = value->count && !hf_input_many(value->option);
        if ((value->option->flags & HF_IN_BARE) && !taken)
            return set_value(cli, value, word);
    }
    char path[OP_PATH];
    return usage(cli, "unexpected argument \"%.60s\" (holdfast %s --help)", word,
                 op_path(cli->op, path));
}

/* ---- the whole --------------------------------------------------------------------- */

static int read_next(struct walk *walk)
{
    const char *arg = walk->argv[walk->at];
    if (walk->only_words || arg[0] != '-' || arg[1] == '\0') {
        walk->at++;
        return read_word(walk, arg);
    }
    if (strcmp(arg, "--") == 0) {
        walk->at++;
        walk->only_words = true;
        return 0;
    }
    if (strcmp(arg, "-h") == 0) {
        walk->at++;
        walk->cli->help = true;
        return 0;
    }
    if (arg[1] != '-' && lacks_dashes(walk->cli))
        return misplaced_option(walk->cli, arg);
    if (arg[1] != '-')
        return usage(walk->cli, "unknown option %.60s: options begin with two dashes",
                     arg);
    return read_option(walk);
}

/* A command that `holdfast run` started names its unit by its environment. Only a holder's
 * verbs do: what takes no token is meant for others. */
static int fill_from_run(struct cli *cli)
{
    static const char *const names[] = { "id", "token" };
    static const char *const variables[] = { "HOLDFAST_WORK_ID", "HOLDFAST_LEASE_TOKEN" };
    size_t at[2];
    const char *texts[2];
    for (size_t i = 0; i < 2; i++) {
        at[i] = find_option(cli, names[i], strlen(names[i]));
        texts[i] = getenv(variables[i]);
        if (at[i] == NOT_FOUND || !texts[i] || !*texts[i])
            return 0;
    }
    struct cli_value *id = &cli->values[at[0]], *token = &cli->values[at[1]];
    size_t authority = find_option(cli, "authority", strlen("authority"));
    if (!(id->option->flags & HF_IN_NEEDED) ||
        (authority != NOT_FOUND && cli->values[authority].count))
        return 0;
    int rc = id->count ? 0 : set_value(cli, id, texts[0]);
    bool own = rc == 0 && strcmp(id->texts[0], texts[0]) == 0;
    return own && !token->count ? set_value(cli, token, texts[1]) : rc;
}

static int check_needed(struct cli *cli)
{
    char name[HF_INPUT_NAME], path[OP_PATH];
    int rc = fill_from_run(cli);
    if (rc)
        return rc;
    for (size_t i = 0; i < cli->value_count; i++) {
        const struct hf_input *option = cli->values[i].option;
        if (!(option->flags & HF_IN_NEEDED) || cli->values[i].count)
            continue;
        struct hf_buf words;
        hf_buf_init(&words, hf_alloc_system(), 400);
        for (size_t w = 0; option->words && option->words[w]; w++) {
            hf_buf_text(&words, w ? ", " : ": one of ");
            hf_buf_text(&words, option->words[w]);
        }
        rc = hf_fail(&cli->err, HF_EINVAL, hf_input_option(option, name),
                     "--%s %s is required%s (holdfast %s --help)", name, option->value,
                     hf_buf_str(&words), op_path(cli->op, path));
        hf_buf_fini(&words);
        return rc;
    }
    return 0;
}

/* An error in what comes before --json is to be an envelope too. */
static bool says_json(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--json") == 0)
            return true;
    }
    return false;
}

int cli_parse(struct cli *cli, int argc, char **argv)
{
    struct walk walk = { .cli = cli, .argv = argv, .argc = argc, .at = 1 };
    cli->json = says_json(argc, argv);
    add_options(cli, cli_global_options);
    int rc = 0;
    while (rc == 0 && walk.at < argc)
        rc = read_next(&walk);
    if (rc)
        return rc;
    cli->json = cli_given(cli, "json");
    cli->quiet = cli_given(cli, "quiet");
    cli->help = cli->help || cli_given(cli, "help");
    if (cli_given(cli, "no-color"))
        cli->colour = false;
    if (cli->help || cli_given(cli, "version") || !cli->op)
        return 0;
    rc = check_needed(cli);
    return rc ? rc : cli_check_field(cli);
}
