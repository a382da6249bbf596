/* holdfast: the program. Reads the command line, runs the command, prints the answer or the
 * failure, and gives the exit code of the table. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/ledger/step.h"

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
    if (cli->command)
        cli_print_command_help(cli, cli->command);
    else if (cli->group)
        cli_print_group_help(cli, cli->group);
    else
        cli_print_overview(cli);
    return 0;
}

/* No command was named: that is a mistake of a script, and a question of a person, who gets
 * the overview on stderr. */
static int incomplete(struct cli *cli)
{
    const char *group = cli->group ? cli->group->name : "";
    const char *gap = cli->group ? " " : "";
    int rc = hf_fail(&cli->err, HF_EINVAL, NULL,
                     "holdfast%s%s needs a command (holdfast%s%s --help)", gap, group,
                     gap, group);
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

static int run(struct cli *cli, int argc, char **argv)
{
    int rc = cli_parse(cli, argc, argv);
    if (rc)
        return rc;
    if (cli->help)
        return show_help(cli);
    if (cli_given(cli, "version"))
        return cmd_version(cli);
    if (!cli->command)
        return incomplete(cli);
    rc = cli->command->check ? cli->command->check(cli) : 0;
    if (rc == 0)
        rc = cli_set_caller(cli);
    if (rc == 0)
        rc = hf_caller_check(&cli->who, &cli->err); /* before a store is made */
    unsigned flags = cli->command->flags;
    if (rc == 0 && flags & (CLI_STORE | CLI_MUST_EXIST | CLI_READS) &&
        !(flags & CLI_OPENS))
        rc = cli_open_store(cli);
    return rc ? rc : cli->command->run(cli);
}

int main(int argc, char **argv)
{
    struct cli cli = { 0 };
    begin(&cli);
    int rc = run(&cli, argc, argv);
    if (rc == 0)
        rc = cli_flush(&cli);
    int code = rc ? cli_report(&cli, rc) : cli.exit_code;
    if (rc && cli.command && (cli.command->flags & CLI_WRAPS))
        code = 125; /* so that a caller can tell it from the command's own */
    hf_store_close(cli.store);
    hf_buf_fini(&cli.out);
    hf_arena_fini(&cli.arena);
    return code;
}
