/* holdfast work redrive: requeue all that ended badly and match a filter. */
#include "cli/cli.h"

#include <string.h>

#define STATUSES_MAX 4
#define PAGE 500 /* units of one change */

struct redrive {
    struct cli *cli;
    bool dry; /* only say what would be requeued */
    int64_t left;
    int64_t matched, requeued, refused;
    struct hf_change changes[PAGE];
};

static size_t wanted(struct cli *cli, enum hf_status statuses[STATUSES_MAX])
{
    size_t n = 0, given = 0;
    const char *const *words = cli_texts(cli, "status", &given);
    for (; n < given && n < STATUSES_MAX; n++)
        statuses[n] = hf_status_of(words[n]);
    if (n == 0) {
        statuses[n++] = HF_FAILED;
        statuses[n++] = HF_TIMEOUT;
    }
    return n;
}

static bool matches(struct cli *cli, const struct hf_work *work)
{
    const char *class_ = cli_text(cli, "class");
    return !class_ || (work->error_class && strcmp(class_, work->error_class) == 0);
}

static void say(struct redrive *r, const char *what, const struct hf_work *work,
                const char *more)
{
    if (!r->cli->json && !r->cli->quiet)
        cli_putf(r->cli, "%s %s: %s (%s)\n", what, work->work_id, work->status, more);
}

/* Each by itself: one that was requeued meanwhile, or whose key is taken, stops no other. */
static int requeue(struct redrive *r, size_t n)
{
    struct cli *cli = r->cli;
    struct hf_answer *answer = NULL;
    int rc = hf_work_change(cli->store, &cli->who, r->changes, n, 0, &answer, &cli->err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        const struct hf_item *item = hf_answer_at(answer, i);
        r->requeued += item->code == 0;
        r->refused += item->code != 0;
        if (item->code && !cli->json)
            cli_note(cli, "%s was left: %s", r->changes[i].id, item->message);
    }
    hf_answer_free(answer);
    return rc;
}

static int take_page(struct redrive *r, const struct hf_answer *page)
{
    struct cli *cli = r->cli;
    size_t n = 0;
    for (size_t i = 0; i < hf_answer_count(page) && r->left > 0; i++) {
        const struct hf_work *work = &hf_answer_at(page, i)->work;
        if (!matches(cli, work))
            continue;
        r->left--;
        r->matched++;
        say(r, r->dry ? "would requeue" : "requeue", work,
            work->status_reason ? work->status_reason : "-");
        r->changes[n++] = (struct hf_change){ .size = sizeof(struct hf_change),
                                              .verb = HF_VERB_REQUEUE,
                                              .id = work->work_id,
                                              .reason = cli_text(cli, "reason") };
    }
    return n == 0 || r->dry ? 0 : requeue(r, n);
}

static int walk(struct redrive *r)
{
    struct cli *cli = r->cli;
    enum hf_status statuses[STATUSES_MAX];
    struct hf_filter filter = { .size = sizeof(filter),
                                .statuses = statuses,
                                .status_count = wanted(cli, statuses),
                                .source = hf_source_of(cli_text(cli, "source")),
                                .queue = cli_text(cli, "queue"),
                                .kind = cli_text(cli, "kind"),
                                .older_than_ms = cli_number(cli, "older-than", 0),
                                .limit = PAGE };
    struct hf_answer *page = NULL;
    int rc = 0;
    do {
        struct hf_answer *before = page; /* whose cursor it goes on from */
        page = NULL;
        filter.after = before ? hf_answer_next(before) : NULL;
        rc = hf_work_list(cli->store, &cli->who, &filter, &page, &cli->err);
        hf_answer_free(before);
        if (rc == 0)
            rc = take_page(r, page);
    } while (rc == 0 && r->left > 0 && hf_answer_next(page));
    hf_answer_free(page);
    return rc;
}

int cmd_work_redrive(struct cli *cli)
{
    struct redrive *r = hf_arena_new(&cli->arena, struct redrive);
    if (!r)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    r->cli = cli;
    r->dry = cli_given(cli, "dry-run");
    r->left = cli_number(cli, "limit", INT64_MAX);
    int rc = walk(r);
    if (rc)
        return rc;
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_put_bool(&cli->writer, "dry_run", r->dry);
        hf_json_put_i64(&cli->writer, "matched", r->matched);
        hf_json_put_i64(&cli->writer, "requeued", r->requeued);
        hf_json_put_i64(&cli->writer, "refused", r->refused);
        cli_ok_end(cli);
    } else if (!cli->quiet) {
        cli_putf(cli, "%lld match, %lld were requeued%s\n", (long long)r->matched,
                 (long long)r->requeued, r->dry ? " (--dry-run)" : "");
    }
    return 0;
}
