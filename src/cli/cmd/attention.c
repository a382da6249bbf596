/* `attention --watch` and `--exec`: what is new and what is gone, as lines, and a program that is
 * run for each new finding. */
#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <holdfast/child.h>

#include "base/text.h"
#include "op/act.h"
#include "op/attention.h"

#define INTERVAL_MS 5000
#define EXEC_MS 30000
#define STOP_MS 1000 /* for a program that runs when the watch is told to end */
#define JSON_MAX 262144

extern char **environ;

/* One finding of a look. `key` is the same as long as the finding lasts. */
struct told {
    const char *key;
    enum hf_need what;
    struct hf_attention_row row;
};

/* All findings of one look; its texts live in its arena. */
struct round {
    struct hf_arena arena;
    struct told *at;
    size_t count;
    bool cut[HF_NEED_COUNT]; /* not all of this kind were read */
};

/* ---- one look ------------------------------------------------------------------------ */

/* A unit that ends badly again is another finding; of other kinds the time may be corrected. */
static const char *key_of(struct hf_arena *arena, const struct hf_attention_item *item)
{
    struct hf_buf key;
    hf_buf_init(&key, hf_alloc_system(), 4096);
    hf_buf_text(&key, hf_need_word(item->what));
    hf_buf_char(&key, '\n');
    hf_buf_text(&key, item->subject);
    hf_buf_char(&key, '\n');
    hf_buf_text(&key, item->tenant);
    hf_buf_char(&key, '\n');
    hf_buf_text(&key, item->id);
    hf_buf_char(&key, '\n');
    hf_buf_text(&key, item->kind ? item->kind : "");
    if (item->what == HF_NEED_ENDED_BADLY)
        hf_buf_i64(&key, item->since);
    return hf_buf_keep(&key, arena);
}

static const char *kept(struct hf_arena *arena, const char *text)
{
    return text ? hf_arena_text(arena, text) : NULL;
}

/* Texts of the row that are the finding's own are copied: it ends before the round does. */
static int keep_told(struct round *round, const struct told *one)
{
    struct told copy = *one;
    struct hf_arena *arena = &round->arena;
    copy.key = kept(arena, one->key);
    copy.row.id = kept(arena, one->row.id);
    copy.row.tenant = kept(arena, one->row.tenant);
    copy.row.name = kept(arena, one->row.name);
    copy.row.kind = kept(arena, one->row.kind);
    copy.row.detail = kept(arena, one->row.detail);
    copy.row.facts = kept(arena, one->row.facts);
    copy.row.act = kept(arena, one->row.act);
    copy.row.command = kept(arena, one->row.command);
    round->at[round->count++] = copy;
    return copy.key && copy.row.id && copy.row.detail && copy.row.command ? 0 : HF_ENOMEM;
}

/* Room for what was found and for what stays of the round before. */
static int take(struct cli *cli, const struct hf_attention *found, size_t before,
                struct round *round)
{
    int rc = 0;
    round->at = hf_arena_array(&round->arena, found->count + before + 1,
                               sizeof(*round->at));
    for (size_t i = 0; i < found->more_count; i++)
        round->cut[found->more[i].what] = true;
    for (size_t i = 0; round->at && rc == 0 && i < found->count; i++) {
        const struct hf_attention_item *item = &found->items[i];
        struct told one = { .key = key_of(&round->arena, item), .what = item->what };
        rc = op_attention_row(&cli->call, &round->arena, found->now, item, &one.row);
        if (rc == 0 && keep_told(round, &one))
            rc = hf_fail_plain(&cli->err, HF_ENOMEM);
    }
    return round->at ? rc : hf_fail_plain(&cli->err, HF_ENOMEM);
}

static bool has(const struct round *round, const char *key)
{
    for (size_t i = 0; i < round->count; i++)
        if (strcmp(round->at[i].key, key) == 0)
            return true;
    return false;
}

/* ---- telling --------------------------------------------------------------------------- */

static void put_change(struct cli *cli, const char *change, const struct told *one)
{
    const struct hf_attention_row *row = &one->row;
    if (cli->json) {
        struct hf_json json;
        hf_json_begin(&json, &cli->out);
        hf_json_object(&json);
        hf_json_put_str(&json, "change", change);
        hf_json_key(&json, "item");
        op_put_shape(&json, &hf_attention_shape, row);
        hf_json_end(&json);
        cli_put(cli, "\n");
        return;
    }
    cli_putf(cli, "%-5s%-17s", change, row->what);
    cli_put_clean(cli, row->id);
    if (row->name) {
        cli_put(cli, "  ");
        cli_put_clean(cli, row->name);
    }
    cli_put(cli, ": ");
    cli_put_clean(cli, row->detail);
    cli_put(cli, "\n");
}

static void note(struct cli *cli, const char *command, const char *what)
{
    if (!cli->quiet)
        (void)fprintf(stderr, "holdfast: attention --exec %s: %s\n", command, what);
}

/* A file in memory that holds the finding: the program may read it or not. -1: there is none. */
static int json_file(const struct told *one)
{
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, hf_alloc_system(), JSON_MAX);
    hf_json_begin(&json, &text);
    op_put_shape(&json, &hf_attention_shape, &one->row);
    hf_buf_char(&text, '\n');
    int fd = memfd_create("finding", MFD_CLOEXEC);
    bool whole = fd >= 0 && hf_buf_state(&text) == 0 &&
                 write(fd, text.at, text.len) == (ssize_t)text.len &&
                 lseek(fd, 0, SEEK_SET) == 0;
    hf_buf_fini(&text);
    if (fd >= 0 && !whole) {
        (void)close(fd); /* nothing of it is used */
        fd = -1;
    }
    return fd;
}

static void say_end(struct cli *cli, const char *command, hf_ms killed_after,
                    const struct hf_child_exit *how)
{
    char text[80], age[24];
    if (killed_after)
        (void)snprintf(text, sizeof(text), "ended after %s", op_age(killed_after, age));
    else if (how->signal)
        (void)snprintf(text, sizeof(text), "ended by signal %d", how->signal);
    else
        (void)snprintf(text, sizeof(text), "exit code %d", how->exit_code);
    if (killed_after || how->signal || how->exit_code)
        note(cli, command, text);
}

/* Waits for its end. It is killed when its time is over, which is soon once the watch was told
 * to end. */
static void wait_for(struct cli *cli, struct hf_child *child, const char *command)
{
    hf_ms limit = cli_number(cli, "exec-timeout", EXEC_MS);
    const struct hf_clock *clock = hf_clock_system();
    hf_ms began = clock->mono_ms(clock->user), killed_after = 0;
    struct hf_child_exit how = { 0 };
    while (!hf_child_exited(child, &how)) {
        struct pollfd fds[] = { { .fd = hf_child_pidfd(child), .events = POLLIN },
                                { .fd = cli->stop.fd, .events = POLLIN } };
        hf_ms spent = clock->mono_ms(clock->user) - began;
        if (cli_stop_told(&cli->stop, 0) && limit > spent + STOP_MS)
            limit = spent + STOP_MS;
        if (spent >= limit && !killed_after) {
            hf_child_signal(child, SIGKILL);
            killed_after = limit;
        }
        (void)poll(fds, cli->stop.by ? 1 : 2,
                   killed_after ? STOP_MS : (int)(limit - spent));
    }
    say_end(cli, command, killed_after, &how);
}

static void execute(struct cli *cli, const struct told *one)
{
    const char *command = cli_text(cli, "exec");
    const char *const argv[] = { command, NULL };
    const int outputs[] = { STDERR_FILENO, STDERR_FILENO };
    char folder[PATH_MAX];
    struct hf_err why = { 0 };
    struct hf_child *child = NULL;
    int fd = json_file(one);
    if (fd < 0 || !getcwd(folder, sizeof(folder))) {
        note(cli, command, "not started: out of memory, or the folder is missing");
    } else {
        struct hf_child_plan plan = { .size = sizeof(plan),
                                      .argv = argv,
                                      .env = (const char *const *)environ,
                                      .cwd = folder,
                                      .stdin_fd = fd,
                                      .inherit_fd = -1,
                                      .output_fds = outputs };
        if (hf_child_start(hf_alloc_system(), &plan, &child, &why))
            note(cli, command, why.message);
        else
            wait_for(cli, child, command);
    }
    hf_child_free(child);
    if (fd >= 0)
        (void)close(fd); /* a file in memory */
}

/* What is new is told, then run; what is gone is told. A finding of a kind that was not read
 * whole stays: it may be among those that were left out. */
static int tell(struct cli *cli, const struct round *old, struct round *now)
{
    size_t found = now->count;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < found; i++) {
        if (has(old, now->at[i].key))
            continue;
        put_change(cli, "new", &now->at[i]);
        rc = cli_flush(cli);
        if (rc == 0 && cli_given(cli, "exec"))
            execute(cli, &now->at[i]);
    }
    for (size_t i = 0; rc == 0 && i < old->count; i++) {
        if (has(now, old->at[i].key))
            continue;
        if (now->cut[old->at[i].what])
            rc = keep_told(now, &old->at[i]);
        else
            put_change(cli, "gone", &old->at[i]);
    }
    return rc ? rc : cli_flush(cli);
}

/* ---- the loop ------------------------------------------------------------------------------ */

static int look(struct cli *cli, struct round *old)
{
    struct round now = { .count = 0 };
    struct hf_attention *found = NULL;
    int rc = cli->store ? 0 : cli_open_store(cli);
    cli->call.store = cli->store;
    if (rc == 0)
        rc = op_attention_read(&cli->call, &found);
    if (rc)
        return rc;
    hf_arena_init(&now.arena, hf_alloc_system());
    rc = take(cli, found, old->count, &now);
    hf_attention_free(found);
    if (rc == 0)
        rc = tell(cli, old, &now);
    if (rc) {
        hf_arena_fini(&now.arena);
        return rc;
    }
    hf_arena_fini(&old->arena);
    *old = now;
    return 0;
}

/* A store that cannot be read now is asked again; that is said once. Its file may be moved away,
 * its disk full or not mounted, for as long as another program works on them. */
static bool may_come_back(struct cli *cli, int rc, bool *said)
{
    bool away = rc == HF_ESTOREIO || rc == HF_EFULL || rc == HF_EREADONLY ||
                rc == HF_ENOTSTORE;
    if (!away && hf_err_class(rc) != HF_CLASS_RETRYABLE)
        return false;
    if (!*said && !cli->quiet)
        (void)fprintf(stderr, "holdfast: %s; the pass is repeated\n", cli->err.message);
    *said = true;
    cli->err = (struct hf_err){ 0 };
    return true;
}

static void say_back(struct cli *cli, bool *said)
{
    if (*said && !cli->quiet)
        (void)fprintf(stderr, "holdfast: the store can be read again\n");
    *said = false;
}

int check_attention(struct cli *cli)
{
    char path[PATH_MAX], folder[PATH_MAX];
    const char *command = cli_text(cli, "exec");
    if (cli_given(cli, "interval") && !cli_given(cli, "watch"))
        return hf_fail(&cli->err, HF_EINVAL, "interval", "--interval goes with --watch");
    if (cli_given(cli, "exec-timeout") && !command)
        return hf_fail(&cli->err, HF_EINVAL, "exec-timeout",
                       "--exec-timeout goes with --exec");
    if (!command)
        return 0;
    struct hf_err why = { 0 };
    if (!getcwd(folder, sizeof(folder)))
        return hf_fail(&cli->err, HF_EINVAL, "exec", "--exec: %s", strerror(errno));
    int rc = hf_child_find(command, (const char *const *)environ, folder, sizeof(path),
                           path, &why);
    return rc ? hf_fail(&cli->err, HF_EINVAL, "exec", "--exec: %s", why.message) : 0;
}

/* Printed commands name the store if it was named by an option. */
static int name_program(struct cli *cli)
{
    const char *db = cli_text(cli, "db");
    struct hf_buf text;
    if (!db)
        return 0;
    hf_buf_init(&text, hf_alloc_system(), JSON_MAX);
    hf_buf_text(&text, "holdfast --db ");
    op_put_quoted(&text, db);
    cli->call.program = hf_buf_keep(&text, &cli->arena);
    return cli->call.program ? 0 : hf_fail_plain(&cli->err, HF_ENOMEM);
}

int cmd_attention(struct cli *cli)
{
    hf_ms interval = cli_number(cli, "interval", INTERVAL_MS);
    bool watch = cli_given(cli, "watch"), said = false;
    struct round round = { .count = 0 };
    int rc = name_program(cli);
    if (rc || (!watch && !cli_given(cli, "exec")))
        return rc ? rc : cli_perform(cli);
    rc = cli_stop_take(cli, &cli->stop);
    if (rc)
        return rc;
    hf_arena_init(&round.arena, hf_alloc_system());
    do {
        rc = look(cli, &round);
        if (rc == 0)
            say_back(cli, &said);
    } while ((rc == 0 || may_come_back(cli, rc, &said)) && watch &&
             !cli_stop_told(&cli->stop, interval));
    if (cli->stop.by)
        rc = 0;
    cli->exit_code = rc == 0 && !watch && round.count ? 10 : 0;
    hf_arena_fini(&round.arena);
    cli_stop_end(&cli->stop);
    return rc;
}
