/* holdfast work tail: the change feed, from a cursor on, until told to end. */
#include "cli/cli.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include <holdfast/feed.h>

#include "base/text.h"

#define SLICE_MS 250 /* how long a signal may go unseen */
#define PAGE 500

struct tail {
    struct cli *cli;
    bool follow;
    const char *cursor; /* of the page that is held, or as given */
    struct hf_feed *page;
    int64_t events;
    bool unread; /* the reader has gone */
};

/* ---- printing ------------------------------------------------------------------------ */

static void json_item(struct cli *cli, const struct hf_feed_item *item)
{
    struct hf_json *json = &cli->writer;
    hf_json_begin(json, &cli->out);
    hf_json_object(json);
    cli_json_event(cli, &item->event);
    hf_json_put_str(json, "tenant", item->tenant);
    hf_json_put_str(json, "queue", item->queue);
    hf_json_put_str(json, "kind", item->kind);
    hf_json_put_str(json, "cursor", item->cursor);
    cli_ok_end(cli);
}

static void text_item(struct cli *cli, const struct hf_feed_item *item)
{
    const struct hf_event *event = &item->event;
    char when[25];
    cli_putf(cli, "%s  %-20s ", hf_time_text(event->created_at, when), event->event_type);
    cli_put_clean(cli, event->work_id);
    cli_put(cli, "  ");
    cli_colour(cli, cli_status_colour(event->to_status));
    if (event->to_status)
        cli_putf(cli, "%s -> %s", event->from_status ? event->from_status : "-",
                 event->to_status);
    cli_colour(cli, CLI_PLAIN);
    cli_put(cli, event->to_status ? "  " : "");
    cli_put_clean(cli, event->actor_kind);
    cli_put(cli, ":");
    cli_put_clean(cli, event->actor);
    if (event->message) {
        cli_put(cli, "  ");
        cli_put_clean(cli, event->message);
    }
    cli_put(cli, "\n");
}

static void put_notice(struct tail *tail, const char *notice, const char *text)
{
    struct cli *cli = tail->cli;
    if (!cli->json) {
        cli_colour(cli, CLI_YELLOW);
        cli_putf(cli, "%s: %s\n", notice, text);
        cli_colour(cli, CLI_PLAIN);
        return;
    }
    hf_json_begin(&cli->writer, &cli->out);
    hf_json_object(&cli->writer);
    hf_json_put_str(&cli->writer, "notice", notice);
    hf_json_put_str(&cli->writer, "message", text);
    hf_json_put_i64(&cli->writer, "incarnation", hf_feed_incarnation(tail->page));
    cli_ok_end(cli);
}

static int put_page(struct tail *tail)
{
    struct cli *cli = tail->cli;
    unsigned notices = hf_feed_notices(tail->page);
    if (notices & HF_FEED_HISTORY)
        put_notice(tail, "history",
                   "the store has a new incarnation; the following events belong to it, "
                   "and unread events of the old one no longer apply");
    if (notices & HF_FEED_GAP)
        put_notice(tail, "gap", "earlier events were pruned before they were read");
    for (size_t i = 0; i < hf_feed_count(tail->page); i++) {
        const struct hf_feed_item *item = hf_feed_at(tail->page, i);
        if (cli->json)
            json_item(cli, item);
        else
            text_item(cli, item);
    }
    tail->events += (int64_t)hf_feed_count(tail->page);
    return cli->out.len ? cli_flush(cli) : 0;
}

/* ---- following ----------------------------------------------------------------------- */

/* A store that is busy or away for a while is waited for, where a caller follows it. */
static int next_page(struct tail *tail)
{
    struct cli *cli = tail->cli;
    struct hf_feed *page = NULL;
    struct hf_feed_query query = { .size = sizeof(query),
                                   .after = tail->cursor,
                                   .limit = PAGE,
                                   .queue = cli_text(cli, "queue"),
                                   .kind = cli_text(cli, "kind"),
                                   .type = cli_text(cli, "type"),
                                   .wait_ms = tail->follow ? SLICE_MS : 0 };
    int rc = hf_work_feed(cli->store, &cli->who, &query, &page, &cli->err);
    if (rc && tail->follow && hf_err_class(rc) == HF_CLASS_RETRYABLE) {
        cli_note(cli, "%s; trying again", cli->err.message);
        (void)cli_stop_told(&tail->cli->stop, SLICE_MS); /* looked at by the loop */
        return 0;
    }
    if (rc)
        return rc;
    hf_feed_free(tail->page);
    tail->page = page;
    tail->cursor = hf_feed_next(page);
    return put_page(tail);
}

/* Has the reader closed its end? Nothing may come for hours that a write could fail with. */
static bool reader_gone(void)
{
    struct pollfd out = { .fd = STDOUT_FILENO };
    return poll(&out, 1, 0) > 0 && (out.revents & (POLLERR | POLLHUP));
}

static int loop(struct tail *tail)
{
    for (;;) {
        int rc = next_page(tail);
        bool more = tail->page && hf_feed_more(tail->page);
        if (rc || cli_stop_told(&tail->cli->stop, 0) || (!tail->follow && !more))
            return rc;
        tail->unread = reader_gone();
        if (tail->unread)
            return 0;
    }
}

/* Where to continue from: the last line. */
static void put_end(struct tail *tail)
{
    struct cli *cli = tail->cli;
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_put_i64(&cli->writer, "events", tail->events);
        hf_json_put_str(&cli->writer, "cursor", tail->cursor);
        cli_ok_end(cli);
    } else {
        cli_note(cli, "continue with --after %s", tail->cursor);
    }
}

/* Before the store is opened. */
int check_tail(struct cli *cli)
{
    return cli_stop_take(cli, &cli->stop);
}

int cmd_work_tail(struct cli *cli)
{
    const char *after = cli_text(cli, "after");
    struct tail tail = { .cli = cli,
                         .follow = !cli_given(cli, "no-follow"),
                         .cursor = after ? after : "end" };
    if (hf_same(tail.cursor, "start"))
        tail.cursor = NULL;
    int rc = loop(&tail);
    if (rc && cli->stdout_closed && cli->wrote)
        rc = 0; /* the caller that read this has gone, as readers of a tail do */
    else if (rc == 0 && !tail.unread)
        put_end(&tail);
    if (rc == 0 && !cli->stdout_closed)
        rc = cli_flush(cli);
    hf_feed_free(tail.page);
    cli_stop_end(&cli->stop);
    return rc;
}
