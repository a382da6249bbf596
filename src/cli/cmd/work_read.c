/* holdfast work list, show, events, stats. */
#include "cli/cli.h"

#include <stdio.h>

#define EVENTS_LIMIT 1000

/* The statuses to list: as given, all of them, or none, which means the unfinished. */
static size_t wanted_statuses(const struct cli *cli, enum hf_status *out)
{
    size_t count = 0;
    const char *const *words = cli_texts(cli, "status", &count);
    if (cli_given(cli, "all")) {
        for (int i = 1; i < HF_STATUS_COUNT; i++)
            out[i - 1] = (enum hf_status)i;
        return HF_STATUS_COUNT - 1;
    }
    size_t kept = 0;
    for (size_t i = 0; i < count && kept < HF_STATUS_COUNT; i++)
        out[kept++] = hf_status_of(words[i]);
    return kept;
}

int check_list(struct cli *cli)
{
    if (cli_given(cli, "all") && cli_given(cli, "status"))
        return hf_fail(&cli->err, HF_EINVAL, NULL,
                       "--all and --status exclude each other");
    return 0;
}

int cmd_work_list(struct cli *cli)
{
    enum hf_status statuses[HF_STATUS_COUNT];
    struct hf_filter filter = {
        .size = sizeof(filter),
        .statuses = statuses,
        .status_count = wanted_statuses(cli, statuses),
        .source = hf_source_of(cli_text(cli, "source")),
        .queue = cli_text(cli, "queue"),
        .kind = cli_text(cli, "kind"),
        .owner = cli_text(cli, "owner"),
        .ref = cli_text(cli, "ref"),
        .older_than_ms = cli_number(cli, "older-than", 0),
        .silent = cli_given(cli, "silent"),
        .limit = (size_t)cli_number(cli, "limit", 0),
        .after = cli_text(cli, "after"),
        .gate = cli_text(cli, "gate"),
    };
    struct hf_answer *answer = NULL;
    int rc = hf_work_list(cli->store, &cli->who, &filter, &answer, &cli->err);
    if (rc == 0)
        rc = cli_print_list(cli, answer,
                            filter.status_count
                                ? "no such work"
                                : "no open work; --all lists what ended too");
    hf_answer_free(answer);
    return rc;
}

int cmd_work_show(struct cli *cli)
{
    struct hf_answer *answer = NULL;
    int rc = hf_work_get(cli->store, &cli->who, cli_text(cli, "id"), &answer, &cli->err);
    if (rc == 0)
        rc = cli_print_detail(cli, hf_answer_at(answer, 0));
    hf_answer_free(answer);
    return rc;
}

int cmd_work_events(struct cli *cli)
{
    struct hf_events *events = NULL;
    size_t limit = (size_t)cli_number(cli, "limit", EVENTS_LIMIT);
    size_t asked = limit + CLI_EVENT_PARTS - 1;
    if (asked > (size_t)HF_MAX_PAGE)
        asked = (size_t)HF_MAX_PAGE;
    int rc = hf_work_events(cli->store, &cli->who, cli_text(cli, "id"),
                            cli_number(cli, "after", 0), asked, &events, &cli->err);
    if (rc == 0)
        rc = cli_print_events(cli, events, limit, asked);
    hf_events_free(events);
    return rc;
}

/* ---- stats ------------------------------------------------------------------------- */

struct figure {
    const char *name;
    int64_t value;
    bool is_time; /* or a duration: 0 is none */
};

static void opt_i64(struct hf_json *json, const struct figure *figure)
{
    hf_json_key(json, figure->name);
    if (figure->is_time && figure->value == 0)
        hf_json_null(json);
    else
        hf_json_i64(json, figure->value);
}

static void json_stats(struct cli *cli, const struct hf_stats *stats,
                       const struct figure *figures, size_t count)
{
    struct hf_json *json = &cli->writer;
    cli_ok_begin(cli);
    hf_json_key(json, "by_status");
    hf_json_object(json);
    for (int i = 1; i < HF_STATUS_COUNT; i++) {
        if (!hf_status_terminal((enum hf_status)i))
            hf_json_put_i64(json, hf_status_word((enum hf_status)i), stats->by_status[i]);
    }
    hf_json_end(json);
    hf_json_key(json, "by_source");
    hf_json_object(json);
    for (int i = 1; i < HF_SOURCE_COUNT; i++)
        hf_json_put_i64(json, hf_source_word((enum hf_source)i), stats->by_source[i]);
    hf_json_end(json);
    for (size_t i = 0; i < count; i++)
        opt_i64(json, &figures[i]);
    cli_ok_end(cli);
}

static void stats_row(struct cli_table *table, const char *name, const char *value)
{
    const char *cells[] = { name, value };
    cli_table_row(table, cells, 0, CLI_PLAIN);
}

static void stats_count(struct cli_table *table, const char *name, int64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%lld", (long long)value);
    stats_row(table, name, text);
}

static int people_stats(struct cli *cli, const struct hf_stats *stats)
{
    static const char *const titles[] = { "OPEN WORK", ">COUNT" };
    struct cli_table table;
    char text[24];
    hf_ms now = cli_store_now(cli), wait = stats->next_wait_deadline_at,
          retry = stats->next_retry_at;
    cli_table_begin(&table, cli, titles, 2);
    for (int i = 1; i < HF_STATUS_COUNT; i++) {
        if (!hf_status_terminal((enum hf_status)i))
            stats_count(&table, hf_status_word((enum hf_status)i), stats->by_status[i]);
    }
    for (int i = 1; i < HF_SOURCE_COUNT; i++) {
        (void)snprintf(text, sizeof(text), "from %s", hf_source_word((enum hf_source)i));
        stats_count(&table, text, stats->by_source[i]);
    }
    stats_count(&table, "queued, not claimable now", stats->gated);
    stats_count(&table, "running, lease lapsed", stats->silent);
    stats_count(&table, "running, lease about to lapse", stats->lapsing);
    stats_row(&table, "oldest queued", cli_duration(stats->oldest_queued_ms, text));
    stats_row(&table, "oldest running", cli_duration(stats->oldest_running_ms, text));
    stats_row(&table, "next wait deadline in",
              cli_duration(wait > now ? wait - now : 0, text));
    stats_row(&table, "next retry in", cli_duration(retry > now ? retry - now : 0, text));
    return cli_table_end(&table);
}

int cmd_work_stats(struct cli *cli)
{
    struct hf_stats stats;
    int rc = hf_work_stats(cli->store, &cli->who, &stats, &cli->err);
    if (rc)
        return rc;
    struct figure figures[] = {
        { "gated", stats.gated, false },
        { "silent", stats.silent, false },
        { "lapsing", stats.lapsing, false },
        { "oldest_queued_ms", stats.oldest_queued_ms, true },
        { "oldest_running_ms", stats.oldest_running_ms, true },
        { "next_wait_deadline_at", stats.next_wait_deadline_at, true },
        { "next_retry_at", stats.next_retry_at, true },
    };
    if (!cli->json)
        return people_stats(cli, &stats);
    json_stats(cli, &stats, figures, sizeof(figures) / sizeof(figures[0]));
    return 0;
}
