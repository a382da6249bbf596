/* holdfast top: a live view of a terminal. Plain ANSI: its other screen, no cursor, a line a
 * row cut to the width; what was there is overwritten, not cleared, so that it does not
 * flicker. The terminal is put back as it was however the command ends, but by SIGKILL. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "op/store.h"

#define LINES_ONCE 1000
#define INTERVAL_MS 1000

/* Lines still to fill, and how wide they are. */
struct screen {
    struct cli *cli;
    bool live;
    size_t lines;
    size_t columns;
};

/* ---- lines ------------------------------------------------------------------------------ */

static void end_line(struct screen *screen)
{
    cli_put(screen->cli, screen->live ? "\x1b[K\n" : "\n");
    screen->lines--;
}

/* One line, cut at the width. Control characters are replaced. */
static void line(struct screen *screen, enum cli_colour colour, const char *text)
{
    char cut[512];
    size_t most = screen->columns < sizeof(cut) - 1 ? screen->columns : sizeof(cut) - 1;
    size_t len = strlen(text);
    if (screen->lines == 0)
        return;
    if (len > most)
        len = hf_utf8_cut(text, most);
    memcpy(cut, text, len);
    cut[len] = 0;
    cli_colour(screen->cli, colour);
    cli_put_clean(screen->cli, cut);
    cli_colour(screen->cli, CLI_PLAIN);
    end_line(screen);
}

static void heading(struct screen *screen, const char *title)
{
    line(screen, CLI_PLAIN, "");
    line(screen, CLI_BOLD, title);
}

static void counts(struct screen *screen, const struct op_watch *list)
{
    const struct hf_stats *stats = &list->stats;
    char text[256];
    (void)snprintf(text, sizeof(text),
                   "running %lld   queued %lld (%lld cannot start now)   waiting %lld   "
                   "retry %lld   "
                   "silent %lld   about to lapse %lld   held %zu%s",
                   (long long)stats->by_status[HF_RUNNING],
                   (long long)stats->by_status[HF_QUEUED], (long long)stats->gated,
                   (long long)(stats->by_status[HF_WAITING_USER] +
                               stats->by_status[HF_WAITING_EXTERNAL]),
                   (long long)stats->by_status[HF_RETRY_SCHEDULED],
                   (long long)stats->silent, (long long)stats->lapsing,
                   hf_answer_count(list->held), hf_answer_next(list->held) ? "+" : "");
    line(screen, stats->silent || hf_answer_count(list->held) ? CLI_YELLOW : CLI_PLAIN,
         text);
}

static void running_line(struct screen *screen, const struct op_watch *list,
                         const struct hf_work *work)
{
    char text[512], age[24], left[24];
    bool silent = work->lease_remaining_ms <= 0;
    bool lapsing = work->lease_remaining_ms * 3 < work->lease_ttl_ms;
    (void)snprintf(text, sizeof(text), "%-8s  %-20.20s  %-14.14s  %-24.24s  %8s  %s%s",
                   cli_short_id(work->work_id), work->kind, work->queue,
                   work->owner ? work->owner : "-",
                   op_age(list->now - work->started_at, age), silent ? "silent for " : "",
                   op_age(work->lease_remaining_ms, left));
    line(screen, silent ? CLI_RED : lapsing ? CLI_YELLOW : CLI_PLAIN, text);
}

static void session_line(struct screen *screen, const struct hf_session *session)
{
    char text[512], left[24];
    bool silent = session->owner && session->lease_remaining_ms <= 0;
    (void)snprintf(text, sizeof(text), "%-30.30s  %-14.14s  %-32.32s  %s%s",
                   session->session_id, session->agent,
                   session->owner ? session->owner : "-", silent ? "silent for " : "",
                   session->owner ? op_age(session->lease_remaining_ms, left) : "-");
    line(screen, silent ? CLI_RED : CLI_PLAIN, text);
}

static void waiting_line(struct screen *screen, const struct op_watch *list,
                         const struct hf_work *work)
{
    char text[512], age[24], left[24];
    (void)snprintf(text, sizeof(text), "%-8s  %-20.20s  %-14.14s  %-24.24s  %8s  %s",
                   cli_short_id(work->work_id), work->kind, work->status,
                   work->waiting_ref ? work->waiting_ref : "-",
                   op_age(list->now - work->updated_at, age),
                   work->deadline_at ? op_age(work->deadline_at - list->now, left) : "-");
    line(screen,
         work->deadline_at && work->deadline_at <= list->now ? CLI_RED : CLI_PLAIN, text);
}

static void schedule_line(struct screen *screen, const struct op_watch *list,
                          const struct hf_schedule *schedule)
{
    char text[512], in[24];
    bool late = op_schedule_late(list->now, schedule);
    (void)snprintf(text, sizeof(text), "%-32.32s  %-20.20s  %s%s", schedule->name,
                   schedule->kind ? schedule->kind : "work", late ? "late by " : "in ",
                   op_age(schedule->next_at - list->now, in));
    line(screen, late || schedule->last_error ? CLI_RED : CLI_PLAIN, text);
}

/* The schedules that come next, soonest first: few, so each is looked for. */
static void next_schedules(struct screen *screen, const struct op_watch *list)
{
    hf_ms after = -1;
    size_t shown = 0, at_after = 0;
    while (shown < 5) {
        const struct hf_schedule *next = NULL;
        size_t next_at = 0;
        for (size_t i = 0; i < hf_schedules_count(list->schedules); i++) {
            const struct hf_schedule *s = hf_schedules_at(list->schedules, i);
            bool later = s->next_at > after || (s->next_at == after && i > at_after);
            if (s->next_at && later && (!next || s->next_at < next->next_at)) {
                next = s;
                next_at = i;
            }
        }
        if (!next)
            break;
        if (shown++ == 0)
            heading(screen, hf_schedules_next(list->schedules)
                                ? "NEXT SCHEDULES, of the first " OP_WATCH_ROWS_TEXT
                                  " names"
                                : "NEXT SCHEDULES");
        schedule_line(screen, list, next);
        after = next->next_at;
        at_after = next_at;
    }
}

/* A page was read of them; the counts above are of all. */
static void rest_line(struct screen *screen, const struct hf_answer *rows, int64_t of)
{
    char text[80];
    int64_t shown = (int64_t)hf_answer_count(rows);
    if (!hf_answer_next(rows))
        return;
    (void)snprintf(text, sizeof(text), "... and %lld more, younger",
                   (long long)(of > shown ? of - shown : 1));
    line(screen, CLI_DIM, text);
}

static void draw(struct screen *screen, const struct op_watch *list)
{
    const struct hf_stats *stats = &list->stats;
    char text[64], time[25];
    (void)snprintf(text, sizeof(text), "holdfast top  %s", hf_time_text(list->now, time));
    line(screen, CLI_BOLD, text);
    counts(screen, list);
    heading(screen, "RUNNING   KIND                  QUEUE           OWNER"
                    "                        FOR  LEASE LEFT");
    for (size_t i = 0; i < hf_answer_count(list->running); i++)
        if (!hf_answer_at(list->running, i)
                 ->work.session_id) /* its session has the lease */
            running_line(screen, list, &hf_answer_at(list->running, i)->work);
    rest_line(screen, list->running, stats->by_status[HF_RUNNING]);
    if (list->sessions->session_count)
        heading(screen, "SESSION                         AGENT           HOLDER"
                        "                            LEASE LEFT");
    for (size_t i = 0; i < list->sessions->session_count; i++)
        session_line(screen, &list->sessions->sessions[i]);
    if (hf_answer_count(list->waiting) > 0)
        heading(screen, "WAITING   KIND                  STATUS          REF"
                        "                          FOR  TIME LEFT");
    for (size_t i = 0; i < hf_answer_count(list->waiting); i++)
        waiting_line(screen, list, &hf_answer_at(list->waiting, i)->work);
    rest_line(screen, list->waiting,
              stats->by_status[HF_WAITING_USER] + stats->by_status[HF_WAITING_EXTERNAL]);
    next_schedules(screen, list);
}

/* ---- once ------------------------------------------------------------------------------- */

static int show_once(struct cli *cli)
{
    struct op_watch list;
    struct screen screen = { .cli = cli, .lines = LINES_ONCE, .columns = 500 };
    int rc = op_watch_read(&cli->call, &list);
    if (rc)
        return rc;
    draw(&screen, &list);
    op_watch_free(&list);
    return 0;
}

/* ---- live -------------------------------------------------------------------------------- */

static void resized(int signum)
{
    (void)signum; /* it has ended the wait */
}

static void measure(struct screen *screen)
{
    struct winsize size;
    screen->lines = 24;
    screen->columns = 80;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 &&
        size.ws_col > 0) {
        screen->lines = size.ws_row;
        screen->columns = size.ws_col;
    }
    screen->lines--; /* the last one stays empty: a line end there would scroll */
}

static int refresh(struct cli *cli)
{
    struct op_watch list;
    struct screen screen = { .cli = cli, .live = true };
    int rc = op_watch_read(&cli->call, &list);
    if (rc)
        return rc;
    measure(&screen);
    cli_put(cli, "\x1b[H");
    draw(&screen, &list);
    cli_put(cli, "\x1b[J");
    op_watch_free(&list);
    return cli_flush(cli);
}

/* True when it is time to end: q, the end of the input, or a signal. */
static bool told(struct cli *cli, hf_ms ms)
{
    struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
                            { .fd = cli->stop.fd, .events = POLLIN } };
    if (poll(fds, 2, (int)ms) <= 0)
        return false; /* the time is up, or the window has another size */
    char key = 'q';
    if (fds[0].revents && read(STDIN_FILENO, &key, 1) < 0)
        key = 'q';
    return (fds[0].revents && (key == 'q' || key == 'Q')) ||
           (fds[1].revents && cli_stop_told(&cli->stop, 0));
}

static int watch(struct cli *cli)
{
    hf_ms interval = cli_number(cli, "interval", INTERVAL_MS);
    struct termios before, raw;
    struct sigaction on_resize = { .sa_handler = resized };
    int rc = cli_stop_take(cli, &cli->stop);
    if (rc)
        return rc;
    (void)sigaction(SIGWINCH, &on_resize, NULL);
    bool keys = tcgetattr(STDIN_FILENO, &before) == 0;
    raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    if (keys)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    cli_put(cli, "\x1b[?1049h\x1b[?25l");
    do
        rc = refresh(cli);
    while (rc == 0 && !told(cli, interval));
    cli_put(cli, "\x1b[?25h\x1b[?1049l");
    int flushed = cli_flush(cli);
    if (keys)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
    cli_stop_end(&cli->stop);
    return rc ? rc : flushed;
}

int cmd_top(struct cli *cli)
{
    bool terminal = isatty(STDOUT_FILENO) && isatty(STDIN_FILENO);
    if (cli->json) {
        cli->call.op = op_find("overview");
        return cli_perform(cli);
    }
    return cli_given(cli, "once") || !terminal ? show_once(cli) : watch(cli);
}
