/* holdfast top: a live view of a terminal. Plain ANSI: its other screen, no cursor, tables that
 * fit; what was there is overwritten, not cleared, so that it does not flicker. The terminal is
 * put back as it was however the command ends, except by SIGKILL. */
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
struct top_screen {
    struct cli *cli;
    struct hf_arena *arena; /* of what one look shows */
    bool live;
    size_t lines;
    size_t columns; /* 0: no bound */
};

/* ---- lines ------------------------------------------------------------------------------ */

static const char *line_end(const struct top_screen *screen)
{
    return screen->live ? "\x1b[K\n" : "\n";
}

/* One line, cut at the width. Control characters are replaced. */
static void line(struct top_screen *screen, enum cli_colour colour, const char *text)
{
    char cut[512];
    size_t most = screen->columns && screen->columns < sizeof(cut) - 1 ? screen->columns
                                                                       : sizeof(cut) - 1;
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
    cli_put(screen->cli, line_end(screen));
    screen->lines--;
}

/* ---- counts ----------------------------------------------------------------------------- */

static void counts(struct top_screen *screen, const struct op_watch *list)
{
    const struct hf_stats *stats = &list->stats;
    char text[160];
    (void)snprintf(text, sizeof(text),
                   "running %lld   queued %lld (%lld cannot start now)   waiting %lld   "
                   "retry %lld",
                   (long long)stats->by_status[HF_STATUS_RUNNING],
                   (long long)stats->by_status[HF_STATUS_QUEUED], (long long)stats->gated,
                   (long long)(stats->by_status[HF_STATUS_WAITING_USER] +
                               stats->by_status[HF_STATUS_WAITING_EXTERNAL]),
                   (long long)stats->by_status[HF_STATUS_RETRY_SCHEDULED]);
    line(screen, CLI_PLAIN, text);
    (void)snprintf(text, sizeof(text), "silent %lld   about to lapse %lld   held %zu%s",
                   (long long)stats->silent, (long long)stats->lapsing,
                   hf_answer_count(list->held), hf_answer_next(list->held) ? "+" : "");
    line(screen, stats->silent || hf_answer_count(list->held) ? CLI_YELLOW : CLI_PLAIN,
         text);
}

/* Bad ends that are not acknowledged. */
static void bad_ends(struct top_screen *screen, const struct op_watch *list)
{
    char text[160];
    if (list->stats.ended_badly == 0)
        return;
    (void)snprintf(text, sizeof(text),
                   "ended badly in the last hour: %lld   (holdfast attention)",
                   (long long)list->stats.ended_badly);
    line(screen, CLI_RED, text);
}

/* Since when the unit that has been queued the longest waits for a worker. */
static void oldest_queued(struct top_screen *screen, const struct op_watch *list)
{
    char text[OP_WHAT + 160], what[OP_WHAT], age[24];
    if (hf_answer_count(list->oldest) == 0)
        return;
    const struct hf_work *work = &hf_answer_at(list->oldest, 0)->work;
    (void)snprintf(text, sizeof(text), "oldest queued: %s, %s in %s, for %s",
                   op_short_id(work->work_id), op_what(work, what), work->queue,
                   op_age(list->now - work->created_at, age));
    line(screen, CLI_PLAIN, text);
}

/* ---- sections --------------------------------------------------------------------------- */

static const struct cli_column running_columns[] = {
    { .title = "RUNNING" },
    { .title = "WHAT", .least = 14 },
    { .title = "KIND", .rank = 2, .least = 6 },
    { .title = "QUEUE", .rank = 3, .least = 8 },
    { .title = "OWNER", .rank = 1, .least = 12 },
    { .title = ">FOR" },
    { .title = ">LEASE" },
};

static void running_row(struct cli_table *table, const struct op_watch *list, size_t i)
{
    const struct hf_work *work = &hf_answer_at(list->running, i)->work;
    char what[OP_WHAT], age[24], left[24], lease[40];
    bool silent = work->lease_remaining_ms <= 0;
    bool lapsing = work->lease_remaining_ms * 3 < work->lease_ttl_ms;
    if (work->session_id)
        return; /* its session has the lease */
    (void)snprintf(lease, sizeof(lease), "%s%s", silent ? "silent for " : "",
                   op_age(work->lease_remaining_ms, left));
    const char *cells[] = { op_short_id(work->work_id),
                            op_what(work, what),
                            work->kind,
                            work->queue,
                            work->owner,
                            op_age(list->now - work->started_at, age),
                            lease };
    cli_table_row(table, cells, 6, silent ? CLI_RED : lapsing ? CLI_YELLOW : CLI_PLAIN);
}

static const struct cli_column session_columns[] = {
    { .title = "SESSION", .least = 20 },
    { .title = "AGENT", .least = 8 },
    { .title = "HOLDER", .least = 12 },
    { .title = ">LEASE" },
};

static void session_row(struct cli_table *table, const struct op_watch *list, size_t i)
{
    const struct hf_session *session = &list->sessions->sessions[i];
    char left[24], lease[40] = "";
    bool silent = session->owner && session->lease_remaining_ms <= 0;
    if (session->owner)
        (void)snprintf(lease, sizeof(lease), "%s%s", silent ? "silent for " : "",
                       op_age(session->lease_remaining_ms, left));
    const char *cells[] = { session->session_id, session->agent, session->owner, lease };
    cli_table_row(table, cells, 3, silent ? CLI_RED : CLI_PLAIN);
}

static const struct cli_column waiting_columns[] = {
    { .title = "WAITING" },
    { .title = "WHAT", .least = 14 },
    { .title = "KIND", .rank = 2, .least = 6 },
    { .title = "WAITS FOR", .rank = 1 },
    { .title = "REF", .rank = 3, .least = 12 },
    { .title = ">SINCE" },
    { .title = ">TIME LEFT" },
};

static void waiting_row(struct cli_table *table, const struct op_watch *list, size_t i)
{
    const struct hf_work *work = &hf_answer_at(list->waiting, i)->work;
    char what[OP_WHAT], age[24], left[24];
    bool over = work->deadline_at && work->deadline_at <= list->now;
    bool user = hf_status_of(work->status) == HF_STATUS_WAITING_USER;
    const char *cells[] = { op_short_id(work->work_id),
                            op_what(work, what),
                            work->kind,
                            user ? "a person" : "elsewhere",
                            work->waiting_ref,
                            op_age(list->now - work->updated_at, age),
                            over ? "over"
                            : work->deadline_at
                                ? op_age(work->deadline_at - list->now, left)
                                : NULL };
    cli_table_row(table, cells, 6, over ? CLI_RED : CLI_PLAIN);
}

static const char *count_text(int64_t count, char out[24])
{
    (void)snprintf(out, 24, count ? "%lld" : "-", (long long)count);
    return out;
}

static const struct cli_column queue_columns[] = {
    { .title = "QUEUE", .least = 10 },
    { .title = ">CAN START" },
    { .title = ">CANNOT", .rank = 2 },
    { .title = ">RUNNING" },
    { .title = ">WAITING", .rank = 3 },
    { .title = ">SILENT", .rank = 1 },
    { .title = ">OLDEST" },
};

static void queue_row(struct cli_table *table, const struct op_watch *list, size_t i)
{
    const struct hf_queue *queue = &list->queues[i];
    char text[6][24];
    const char *cells[] = {
        queue->queue,
        count_text(queue->claimable, text[0]),
        count_text(queue->due + queue->lane + queue->limit + queue->rate + queue->held,
                   text[1]),
        count_text(queue->running, text[2]),
        count_text(queue->waiting + queue->retry, text[3]),
        count_text(queue->silent, text[4]),
        queue->claimable ? op_age(queue->oldest_claimable_ms, text[5]) : NULL,
    };
    cli_table_row(table, cells, 6, queue->silent ? CLI_RED : CLI_PLAIN);
}

static const struct cli_column holder_columns[] = {
    { .title = "HOLDER", .least = 12 },
    { .title = ">PID", .rank = 1 },
    { .title = ">RUNNING" },
    { .title = ">SILENT" },
    { .title = ">LEASE" },
};

static void holder_row(struct cli_table *table, const struct op_watch *list, size_t i)
{
    const struct hf_holder *holder = &list->holders[i];
    char text[4][24], name[224];
    bool lapsed = holder->least_left_ms <= 0;
    (void)snprintf(name, sizeof(name), "%s%s", holder->owner,
                   holder->twin ? " (twin)" : "");
    const char *cells[] = {
        name,
        count_text(holder->pid, text[0]),
        count_text(holder->running, text[1]),
        count_text(holder->silent, text[2]),
        lapsed ? "lapsed" : op_age(holder->least_left_ms, text[3]),
    };
    cli_table_row(table, cells, 4, lapsed || holder->twin ? CLI_RED : CLI_PLAIN);
}

static const struct cli_column schedule_columns[] = {
    { .title = "NEXT SCHEDULE", .least = 20 },
    { .title = "RUNS", .least = 12 },
    { .title = ">SLOT" },
};

/* The i-th schedule in order of its next slot: few, so each is looked for. NULL: no more. */
static const struct hf_schedule *nth_schedule(const struct op_watch *list, size_t n)
{
    size_t count = hf_schedules_count(list->schedules);
    for (size_t i = 0; i < count; i++) {
        const struct hf_schedule *one = hf_schedules_at(list->schedules, i);
        size_t before = 0;
        for (size_t k = 0; one->next_at && k < count; k++) {
            hf_ms other = hf_schedules_at(list->schedules, k)->next_at;
            before += other && (other < one->next_at || (other == one->next_at && k < i));
        }
        if (one->next_at && before == n)
            return one;
    }
    return NULL;
}

static void schedule_row(struct cli_table *table, const struct op_watch *list, size_t i)
{
    const struct hf_schedule *schedule = nth_schedule(list, i);
    char runs[OP_WHAT], in[24], slot[40];
    if (!schedule)
        return;
    bool late = op_schedule_late(list->now, schedule);
    (void)snprintf(slot, sizeof(slot), "%s%s", late ? "late by " : "in ",
                   op_age(schedule->next_at - list->now, in));
    const char *cells[] = { schedule->name,
                            op_command_text(schedule->payload, runs) ? runs
                                                                     : schedule->kind,
                            slot };
    cli_table_row(table, cells, 2, late || schedule->last_error ? CLI_RED : CLI_PLAIN);
}

/* ---- the screen ------------------------------------------------------------------------- */

struct section {
    const struct cli_column *columns;
    size_t count;
    void (*row)(struct cli_table *table, const struct op_watch *list, size_t i);
    size_t rows;  /* that were read */
    int64_t of;   /* all that there are; a page was read of them */
    size_t lines; /* that it gets, below its titles */
};

#define COUNT(columns) (sizeof(columns) / sizeof((columns)[0]))
#define SECTIONS 6
#define SECTION_HEAD 2 /* an empty line and the titles */
#define SCHEDULES_SHOWN 5

/* The rows that were read, and a line that counts the others. */
static size_t wanted_lines(const struct section *section)
{
    return section->rows + (section->of > (int64_t)section->rows);
}

/* Every section gets a row and the line that counts the others, if there is room for its titles
 * too; then each gets some more, and the first ones what is left. */
static void share_lines(struct section sections[SECTIONS], size_t lines)
{
    static const size_t most[] = { 2, 3, SIZE_MAX };
    for (size_t pass = 0; pass < COUNT(most); pass++) {
        for (size_t i = 0; i < SECTIONS; i++) {
            struct section *section = &sections[i];
            size_t want = wanted_lines(section);
            size_t head = pass == 0 && want ? SECTION_HEAD : 0;
            want = want < most[pass] ? want : most[pass];
            if (lines <= head)
                return;
            lines -= head;
            size_t more = want - section->lines < lines ? want - section->lines : lines;
            section->lines += more;
            lines -= more;
        }
    }
}

static int put_section(struct top_screen *screen, const struct op_watch *list,
                       const struct section *section)
{
    struct cli_table table;
    char text[80];
    bool cut = section->lines < section->rows || section->of > (int64_t)section->rows;
    size_t shown = section->lines - (cut ? 1 : 0);
    if (section->lines == 0)
        return 0;
    line(screen, CLI_PLAIN, "");
    cli_table_begin(&table, screen->cli, section->columns, section->count);
    table.arena = screen->arena;
    table.width = screen->columns;
    table.line_end = line_end(screen);
    for (size_t i = 0; i < shown; i++)
        section->row(&table, list, i);
    screen->lines -= table.rows + 1;
    int rc = cli_table_end(&table);
    (void)snprintf(text, sizeof(text), "... and %lld more",
                   (long long)(section->of - (int64_t)shown));
    if (cut)
        line(screen, CLI_DIM, text);
    return rc;
}

static int draw(struct top_screen *screen, const struct op_watch *list)
{
    const struct hf_stats *stats = &list->stats;
    size_t running = hf_answer_count(list->running);
    size_t waiting = hf_answer_count(list->waiting);
    size_t schedules = hf_schedules_count(list->schedules);
    int64_t waits = stats->by_status[HF_STATUS_WAITING_USER] +
                    stats->by_status[HF_STATUS_WAITING_EXTERNAL];
    struct section sections[SECTIONS] = {
        { running_columns, COUNT(running_columns), running_row, running,
          hf_answer_next(list->running) ? stats->by_status[HF_STATUS_RUNNING]
                                        : (int64_t)running,
          0 },
        { session_columns, COUNT(session_columns), session_row,
          list->sessions->session_count, (int64_t)list->sessions->session_count, 0 },
        { waiting_columns, COUNT(waiting_columns), waiting_row, waiting,
          hf_answer_next(list->waiting) ? waits : (int64_t)waiting, 0 },
        { queue_columns, COUNT(queue_columns), queue_row, list->queue_count,
          (int64_t)list->queue_count, 0 },
        { holder_columns, COUNT(holder_columns), holder_row, list->holder_count,
          (int64_t)list->holder_count, 0 },
        { schedule_columns, COUNT(schedule_columns), schedule_row,
          schedules < SCHEDULES_SHOWN ? schedules : SCHEDULES_SHOWN, (int64_t)schedules,
          0 },
    };
    char text[80], time[25];
    (void)snprintf(text, sizeof(text), "holdfast top  %s%s",
                   hf_time_text(list->now, time), screen->live ? "   q quits" : "");
    line(screen, CLI_BOLD, text);
    counts(screen, list);
    bad_ends(screen, list);
    oldest_queued(screen, list);
    share_lines(sections, screen->lines);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < SECTIONS; i++)
        rc = put_section(screen, list, &sections[i]);
    return rc;
}

/* ---- once ------------------------------------------------------------------------------- */

/* What was read lives until it is shown; so does the memory of its tables. */
static int look(struct cli *cli, struct top_screen *screen)
{
    struct op_watch list;
    struct hf_arena arena;
    int rc = op_watch_read(&cli->call, &list);
    if (rc)
        return rc;
    hf_arena_init(&arena, hf_alloc_system());
    screen->cli = cli;
    screen->arena = &arena;
    cli_put(cli, screen->live ? "\x1b[H" : "");
    rc = draw(screen, &list);
    cli_put(cli, screen->live ? "\x1b[J" : "");
    hf_arena_fini(&arena);
    op_watch_free(&list);
    return rc;
}

static int show_once(struct cli *cli)
{
    struct top_screen screen = { .lines = LINES_ONCE,
                                 .columns = cli_terminal_width(cli) };
    return look(cli, &screen);
}

/* ---- live -------------------------------------------------------------------------------- */

static void resized(int signum)
{
    (void)signum; /* it has ended the wait */
}

static void measure(struct top_screen *screen)
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
    struct top_screen screen = { .live = true };
    measure(&screen);
    int rc = look(cli, &screen);
    return rc ? rc : cli_flush(cli);
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
