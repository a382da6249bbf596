/* holdfast: the program. Reads the command line, runs the command, prints the answer or the
 * failure, and returns the exit code of the table. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A descriptor that is closed at the start would be given to the first file that is opened:
 * messages would go into the database. Open for reading, so that a write to it fails. */
static bool was_closed(int fd)
{
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
        return false;
    int got = open("/dev/null", O_RDONLY);
    hf_assert(got == fd || got < 0);
    return true;
}

static void begin(struct cli *cli)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    cli->stdin_closed = was_closed(STDIN_FILENO);
    cli->stdout_closed = was_closed(STDOUT_FILENO);
    (void)was_closed(STDERR_FILENO); /* what is said there is lost, as its user asked */
    (void)signal(SIGPIPE, SIG_IGN);  /* a closed pipe is a failed write, and told */
    (void)signal(SIGXFSZ, SIG_IGN);  /* and so is a file over its limit */
    cli->colour = isatty(STDOUT_FILENO) && !(no_color && *no_color) && term && *term &&
                  !(term[0] == 'd' && term[1] == 'u'); /* dumb */
    hf_arena_init(&cli->arena, hf_alloc_system());
    cli_out_init(cli);
}

static int show_help(struct cli *cli)
{
    if (cli->op)
        cli_print_command_help(cli, cli->op);
    else if (cli->group)
        cli_print_group_help(cli, cli->group);
    else if (cli->help_all)
        cli_print_overview(cli);
    else
        cli_print_short_overview(cli);
    return 0;
}

/* No command was named: that is a mistake of a script, and a question of a person, who gets
 * the overview on stderr. */
static int incomplete(struct cli *cli)
{
    const char *group = cli->group ? cli->group->name : "";
    const char *gap = cli->group ? " " : "";
    int rc = hf_fail(&cli->err, HF_EINVAL, NULL,
                     "holdfast%s%s: a command is missing (holdfast%s%s --help)", gap,
                     group, gap, group);
    if (cli->json)
        return rc;
    if (cli->group)
        cli_print_group_help(cli, cli->group);
    else
        cli_print_short_overview(cli);
    (void)fputs(hf_buf_str(&cli->out), stderr); /* only a courtesy */
    hf_buf_reset(&cli->out);
    cli->reported = true;
    return rc;
}

/* JSON whose file was named. */
static int fill_from_file(struct cli *cli, const struct cli_value *value)
{
    struct hf_span file = { 0 };
    int rc = cli_read_file(cli, value->texts[0], (size_t)hf_input_max(value->option),
                           &file);
    if (rc == 0)
        hf_input_store_text(value->option, file.at, cli->call.in);
    return rc;
}

/* KEY=VALUE, … as an object of texts. */
static int fill_from_pairs(struct cli *cli, const struct cli_value *value)
{
    char option[HF_INPUT_NAME];
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, hf_alloc_system(), (size_t)1 << 20);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    for (size_t i = 0; i < value->count; i++) {
        const char *pair = value->texts[i];
        size_t len = strcspn(pair, "=");
        char *key = len && pair[len] ? hf_arena_copy(&cli->arena, pair, len) : NULL;
        if (!key) {
            (void)hf_input_option(value->option, option);
            hf_buf_fini(&text);
            return hf_fail(&cli->err, HF_EINVAL, option, "--%s takes KEY=VALUE", option);
        }
        hf_json_put_str(&json, key, pair + len + 1);
    }
    hf_json_end(&json);
    const char *object = hf_buf_keep(&text, &cli->arena);
    if (object)
        hf_input_store_text(value->option, object, cli->call.in);
    return object ? 0 : hf_fail_plain(&cli->err, HF_ENOMEM);
}

/* Input i of all tables was given. Those of the request are the first values after the global
 * options. */
static int fill(struct cli *cli, size_t i, const struct cli_value *value)
{
    const struct hf_input *input = value->option;
    void *request = cli->call.in;
    int rc = 0;
    if (!value->count || !input->width)
        return 0;
    cli->call.given |= (uint64_t)1 << i;
    if (input->flags & HF_IN_FILE)
        return fill_from_file(cli, value);
    if (input->flags & HF_IN_PAIRS)
        return fill_from_pairs(cli, value);
    if (hf_input_many(input))
        rc = hf_input_store_texts(input, value->texts, value->count, &cli->arena,
                                  request);
    else if (input->kind == HF_IN_FLAG)
        hf_input_store_number(input, 1, request);
    else if (input->kind == HF_IN_INT || input->kind == HF_IN_MS ||
             input->kind == HF_IN_INSTANT ||
             (input->kind == HF_IN_WORD && input->width != sizeof(char *)))
        hf_input_store_number(input, value->number, request);
    else
        hf_input_store_text(input, value->texts[0], request);
    return rc ? hf_fail_plain(&cli->err, rc) : 0;
}

static int open_call(struct op_call *call)
{
    struct cli *cli = (struct cli *)(void *)((char *)call - offsetof(struct cli, call));
    return cli->store ? 0 : cli_open_store(cli);
}

/* The command line as a call of the table. */
static int begin_call(struct cli *cli)
{
    struct op_call *call = &cli->call;
    size_t first = 0, count = 0;
    *call = (struct op_call){ .op = cli->op,
                              .arena = &cli->arena,
                              .dashes = true,
                              .err = &cli->err,
                              .open = open_call,
                              .locks = cli_locks };
    int rc = op_begin(call);
    while (cli_global_options[first].name)
        first++;
    for (size_t t = 0; t < 2; t++)
        for (const struct hf_input *o = cli_option_table(cli->op, t); o && o->name; o++)
            count++;
    for (size_t i = 0; rc == 0 && cli->op->run && i < count; i++)
        rc = fill(cli, i, &cli->values[first + i]);
    return rc;
}

static const char *owner_given(const struct cli *cli)
{
    for (size_t i = 0; i < cli->value_count; i++)
        if (cli->values[i].count && strcmp(cli->values[i].option->name, "owner") == 0)
            return cli->values[i].texts[0];
    return NULL;
}

/* An operation of the table, with the part of it that is about this machine. */
static int run_op(struct cli *cli)
{
    const struct cli_local *local = cli_local_of(cli->op);
    const struct cli_caller given = cli_caller_given(cli);
    unsigned flags = cli->op->flags;
    int rc = begin_call(cli);
    if (rc == 0 && local && local->check)
        rc = local->check(cli);
    if (rc == 0)
        rc = cli_set_caller(cli, &given, owner_given(cli), &cli->who);
    cli->call.who = cli->who;
    if (rc == 0 && cli->op->run && flags & OP_STORE)
        cli->call.absent = cli_store_absent(cli);
    if (rc || cli->op->run)
        return rc ? rc : local ? local->run(cli) : cli_perform(cli);
    rc = op_check_caller(&cli->call); /* before a store is made */
    if (rc == 0 && flags & (OP_STORE | OP_MUST_EXIST | OP_READS) && !(flags & OP_OPENS))
        rc = cli_open_store(cli);
    return rc ? rc : local->run(cli);
}

static int run(struct cli *cli, int argc, char **argv)
{
    int rc = cli_parse(cli, argc, argv);
    cli->json |= cli->op && cli->op->flags & OP_JSON && !cli->help;
    if (rc)
        return rc;
    if (cli->help)
        return show_help(cli);
    if (cli_given(cli, "version"))
        cli->op = op_find("version");
    if (!cli->op)
        return incomplete(cli);
    return run_op(cli);
}

int main(int argc, char **argv)
{
    struct cli cli = { 0 };
    begin(&cli);
    int rc = run(&cli, argc, argv);
    if (rc == 0)
        rc = cli_flush(&cli);
    int code = rc ? cli_report(&cli, rc) : cli.exit_code;
    if (rc && cli.op && (cli.op->flags & OP_WRAPS))
        code = 125; /* so that a caller can tell it from the command's own */
    hf_store_close(cli.store);
    hf_buf_fini(&cli.out);
    hf_arena_fini(&cli.arena);
    return code;
}
