/* holdfast attention: what needs a human, and the very command that deals with it. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/cmd/watchlist.h"

#define SHORT_ID 8

const char *cli_short_id(const char *id)
{
    size_t len = strlen(id);
    return len > SHORT_ID ? id + len - SHORT_ID : id;
}

bool cli_schedule_late(hf_ms now, const struct hf_schedule *schedule)
{
    return schedule->next_at && now > schedule->next_at + schedule->miss_threshold_ms;
}

/* ---- reading --------------------------------------------------------------------------- */

static int read_rows(struct cli *cli, struct hf_filter filter, struct hf_answer **ret)
{
    filter.size = sizeof(filter);
    filter.limit = WATCH_ROWS;
    return hf_work_list(cli->store, &cli->who, &filter, ret, &cli->err);
}

int cli_watchlist_read(struct cli *cli, struct watchlist *ret_list)
{
    static const enum hf_status running[] = { HF_RUNNING };
    static const enum hf_status waiting[] = { HF_WAITING_USER, HF_WAITING_EXTERNAL };
    static const enum hf_status queued[] = { HF_QUEUED };
    struct watchlist list = { 0 };
    struct hf_schedule_filter active = { .size = sizeof(active),
                                         .state = "active",
                                         .limit = WATCH_ROWS };
    int rc = hf_work_stats(cli->store, &cli->who, &list.stats, &cli->err);
    if (rc == 0)
        rc = read_rows(cli, (struct hf_filter){ .statuses = running, .status_count = 1 },
                       &list.running);
    if (rc == 0)
        rc = read_rows(cli, (struct hf_filter){ .silent = true }, &list.silent);
    if (rc == 0)
        rc = read_rows(cli, (struct hf_filter){ .statuses = waiting, .status_count = 2 },
                       &list.waiting);
    if (rc == 0)
        rc = read_rows(
            cli,
            (struct hf_filter){ .statuses = queued, .status_count = 1, .gate = "held" },
            &list.held);
    if (rc == 0)
        rc = hf_schedule_list(cli->store, &cli->who, &active, &list.schedules, &cli->err);
    list.now = cli_store_now(
        cli); /* after the first answer, which tells a server's clock */
    if (rc)
        cli_watchlist_free(&list);
    else
        *ret_list = list;
    return rc;
}

void cli_watchlist_free(struct watchlist *list)
{
    hf_answer_free(list->running);
    hf_answer_free(list->silent);
    hf_answer_free(list->waiting);
    hf_answer_free(list->held);
    hf_schedules_free(list->schedules);
    *list = (struct watchlist){ 0 };
}

/* ---- saying ---------------------------------------------------------------------------- */

#define QUOTED 800 /* a key in a shell's quotes, each of its bytes a quote itself */

struct finding {
    const char *what; /* silent, wait, held, schedule */
    const char *id;   /* a unit's, or a schedule's name */
    const char *kind;
    char detail[160];
    char command[2 * QUOTED + 80];
};

struct teller {
    struct cli *cli;
    hf_ms now;
    size_t count;
};

static void tell(struct teller *teller, const struct finding *finding)
{
    struct cli *cli = teller->cli;
    teller->count++;
    if (cli->json) {
        hf_json_object(&cli->writer);
        hf_json_put_str(&cli->writer, "what", finding->what);
        hf_json_put_str(&cli->writer, "id", finding->id);
        hf_json_opt_str(&cli->writer, "kind", finding->kind);
        hf_json_put_str(&cli->writer, "detail", finding->detail);
        hf_json_put_str(&cli->writer, "command", finding->command);
        hf_json_end(&cli->writer);
        return;
    }
    cli_colour(cli, CLI_YELLOW);
    cli_putf(cli, "%-9s", finding->what);
    cli_colour(cli, CLI_PLAIN);
    cli_put_clean(cli, hf_same(finding->what, "schedule") ? finding->id
                                                          : cli_short_id(finding->id));
    cli_put(cli, "  ");
    if (finding->kind) {
        cli_put_clean(cli, finding->kind);
        cli_put(cli, ": ");
    }
    cli_put_clean(cli, finding->detail);
    cli_put(cli, "\n         ");
    cli_put_clean(cli, finding->command);
    cli_put(cli, "\n");
}

static void tell_silent(struct teller *teller, const struct hf_work *work)
{
    struct finding finding = { .what = "silent",
                               .id = work->work_id,
                               .kind = work->kind };
    char age[24];
    bool bound = hf_same(work->disposition, hf_disposition_word(HF_OWNER_BOUND));
    (void)snprintf(finding.detail, sizeof(finding.detail),
                   "%.60s has not renewed its lease for %s past its end", work->owner,
                   cli_age(-work->lease_remaining_ms, age));
    (void)snprintf(finding.command, sizeof(finding.command),
                   bound ? "holdfast work request-abandon %s --reason 'its owner is gone'"
                         : "holdfast work sweep",
                   work->work_id);
    tell(teller, &finding);
}

/* Waits count from when they were set; past half of the time a person should look. */
static bool half_over(hf_ms now, const struct hf_work *work)
{
    if (hf_same(work->status_reason, "wait_overdue"))
        return true;
    hf_ms budget = work->deadline_at - work->updated_at;
    return work->deadline_at && (now - work->updated_at) * 2 > budget;
}

/* What ends the wait: with a started owner_bound unit only its owner can go on. */
static void wait_command(const struct hf_work *work, struct finding *finding)
{
    const char *verb = "resume", *rest = "--payload JSON";
    if (hf_same(work->disposition, hf_disposition_word(HF_EXTERNALLY_OWNED))) {
        verb = "close-out";
        rest = "--authority \"$USER\" --status done";
    } else if (work->owner) {
        verb = "request-abandon";
        rest = "--reason 'nobody answers'";
    }
    (void)snprintf(finding->command, sizeof(finding->command), "holdfast work %s %s %s",
                   verb, work->work_id, rest);
}

static void tell_wait(struct teller *teller, const struct hf_work *work)
{
    struct finding finding = { .what = "wait", .id = work->work_id, .kind = work->kind };
    char age[24], left[24];
    if (!half_over(teller->now, work))
        return;
    hf_ms until = work->deadline_at - teller->now;
    (void)snprintf(finding.detail, sizeof(finding.detail), "waits for %.60s since %s%s%s",
                   work->waiting_ref ? work->waiting_ref : "somebody",
                   cli_age(teller->now - work->updated_at, age),
                   work->deadline_at ? (until > 0 ? ", ends in " : ", overdue by ")
                                     : ", overdue",
                   work->deadline_at ? cli_age(until, left) : "");
    wait_command(work, &finding);
    tell(teller, &finding);
}

static void tell_held(struct teller *teller, const struct hf_work *work)
{
    struct finding finding = { .what = "held", .id = work->work_id, .kind = work->kind };
    (void)snprintf(finding.detail, sizeof(finding.detail),
                   "lost its worker too often (%lld failures, last: %.60s)",
                   (long long)work->failures,
                   work->error_class ? work->error_class : "unknown");
    (void)snprintf(finding.command, sizeof(finding.command),
                   "holdfast job release %s --reason 'why it is safe now'",
                   work->work_id);
    tell(teller, &finding);
}

/* In quotes that a shell reads back as it was. A key fits. */
static const char *quoted(const char *text, char out[QUOTED])
{
    char *at = out;
    *at++ = '\'';
    for (; *text && at < out + QUOTED - 6; text++) {
        if (*text == '\'') {
            memcpy(at, "'\\''", 4);
            at += 4;
        } else {
            *at++ = *text;
        }
    }
    *at++ = '\'';
    *at = 0;
    return out;
}

static void tell_schedule(struct teller *teller, const struct hf_schedule *schedule)
{
    struct finding finding = { .what = "schedule", .id = schedule->name };
    char age[24], name[QUOTED], tenant[QUOTED];
    bool of_tenant = schedule->tenant && *schedule->tenant;
    if (schedule->last_error)
        (void)snprintf(finding.detail, sizeof(finding.detail), "fails: %.120s",
                       schedule->last_error);
    else if (cli_schedule_late(teller->now, schedule))
        (void)snprintf(finding.detail, sizeof(finding.detail),
                       "its slot is %s late: no monitor makes it",
                       cli_age(teller->now - schedule->next_at, age));
    else
        return;
    if (!schedule->last_error)
        (void)snprintf(finding.command, sizeof(finding.command), "holdfast monitor");
    else
        (void)snprintf(finding.command, sizeof(finding.command),
                       "holdfast %s%s%sschedule show %s", of_tenant ? "--tenant " : "",
                       of_tenant ? quoted(schedule->tenant, tenant) : "",
                       of_tenant ? " " : "", quoted(schedule->name, name));
    tell(teller, &finding);
}

/* ---- all of it, a page at a time -------------------------------------------------------- */

/* The cursor outlives the page that gave it. NULL: there is no more. */
static int next_page(struct cli *cli, int rc, const char *next, const char **ret_after)
{
    *ret_after = rc == 0 && next ? hf_arena_text(&cli->arena, next) : NULL;
    if (rc == 0 && next && !*ret_after)
        rc = hf_fail_plain(&cli->err, HF_ENOMEM);
    return rc ? rc : cli_flush_some(cli);
}

static int tell_rows(struct teller *teller, struct hf_filter filter,
                     void (*tell_row)(struct teller *, const struct hf_work *))
{
    struct cli *cli = teller->cli;
    int rc = 0;
    filter.size = sizeof(filter);
    filter.limit = (size_t)HF_MAX_PAGE;
    do {
        struct hf_answer *page = NULL;
        rc = hf_work_list(cli->store, &cli->who, &filter, &page, &cli->err);
        teller->now = cli_store_now(cli); /* as the answer showed a server's clock */
        for (size_t i = 0; rc == 0 && i < hf_answer_count(page); i++)
            tell_row(teller, &hf_answer_at(page, i)->work);
        rc = next_page(cli, rc, rc ? NULL : hf_answer_next(page), &filter.after);
        hf_answer_free(page);
    } while (rc == 0 && filter.after);
    return rc;
}

static int tell_schedules(struct teller *teller)
{
    struct cli *cli = teller->cli;
    struct hf_schedule_filter filter = { .size = sizeof(filter),
                                         .state = "active",
                                         .limit = (size_t)HF_MAX_PAGE };
    int rc = 0;
    do {
        struct hf_schedules *page = NULL;
        rc = hf_schedule_list(cli->store, &cli->who, &filter, &page, &cli->err);
        teller->now = cli_store_now(cli);
        for (size_t i = 0; rc == 0 && i < hf_schedules_count(page); i++)
            tell_schedule(teller, hf_schedules_at(page, i));
        rc = next_page(cli, rc, rc ? NULL : hf_schedules_next(page), &filter.after);
        hf_schedules_free(page);
    } while (rc == 0 && filter.after);
    return rc;
}

static int tell_all(struct teller *teller)
{
    static const enum hf_status waiting[] = { HF_WAITING_USER, HF_WAITING_EXTERNAL };
    static const enum hf_status queued[] = { HF_QUEUED };
    int rc = tell_rows(teller, (struct hf_filter){ .silent = true }, tell_silent);
    if (rc == 0)
        rc = tell_rows(teller,
                       (struct hf_filter){ .statuses = waiting, .status_count = 2 },
                       tell_wait);
    if (rc == 0)
        rc = tell_rows(
            teller,
            (struct hf_filter){ .statuses = queued, .status_count = 1, .gate = "held" },
            tell_held);
    return rc ? rc : tell_schedules(teller);
}

#define EXIT_ATTENTION 10

int cmd_attention(struct cli *cli)
{
    struct teller teller = { .cli = cli };
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_key(&cli->writer, "items");
        hf_json_array(&cli->writer);
    }
    int rc = tell_all(&teller);
    if (rc)
        return rc;
    if (cli->json) {
        hf_json_end(&cli->writer);
        cli_ok_end(cli);
    } else if (teller.count == 0) {
        cli_put(cli, "nothing needs you\n");
    }
    cli->exit_code = teller.count ? EXIT_ATTENTION : 0;
    return 0;
}
