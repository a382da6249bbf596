/* Views of queues, holders, ages and occurrences. */
#include "cli/cli.h"

#include <stdio.h>

#include "op/shapes/ledger.h"

static const char *count_text(int64_t count, char out[24])
{
    (void)snprintf(out, 24, count ? "%lld" : "-", (long long)count);
    return out;
}

static const struct cli_column queue_columns[] = {
    { .title = "QUEUE", .least = 10 },
    { .title = ">CLAIMABLE" },
    { .title = ">GATED" },
    { .title = ">HELD", .rank = 2 },
    { .title = ">RUNNING" },
    { .title = ">WAITING" },
    { .title = ">RETRY", .rank = 3 },
    { .title = ">SILENT" },
    { .title = ">OLDEST" },
    { .title = "KINDS", .rank = 1, .least = 12 },
};

static void queue_cells(struct cli_table *table, const void *row)
{
    const struct hf_queue *queue = row;
    char text[8][24];
    const char *cells[] = {
        queue->queue,
        count_text(queue->claimable, text[0]),
        count_text(queue->due + queue->lane + queue->limit + queue->rate, text[1]),
        count_text(queue->held, text[2]),
        count_text(queue->running, text[3]),
        count_text(queue->waiting, text[4]),
        count_text(queue->retry, text[5]),
        count_text(queue->silent, text[6]),
        cli_duration(queue->oldest_claimable_ms, text[7]),
        queue->kinds,
    };
    cli_table_row(table, cells, 7, queue->silent ? CLI_RED : CLI_PLAIN);
}

static const struct cli_column holder_columns[] = {
    { .title = "OWNER", .least = 12 }, { .title = "INCARNATION", .rank = 2, .least = 8 },
    { .title = ">RUNNING" },           { .title = ">SILENT" },
    { .title = ">LEAST LEFT" },        { .title = ">MOST LEFT", .rank = 1 },
    { .title = ">PID", .rank = 3 },    { .title = "TWIN" },
};

static const char *left_text(hf_ms ms, char out[24])
{
    return ms < 0 ? "lapsed" : cli_duration(ms, out);
}

static void holder_cells(struct cli_table *table, const void *row)
{
    const struct hf_holder *holder = row;
    char text[5][24];
    const char *cells[] = {
        holder->owner,
        holder->incarnation ? op_short_id(holder->incarnation) : "-",
        count_text(holder->running, text[0]),
        count_text(holder->silent, text[1]),
        left_text(holder->least_left_ms, text[2]),
        left_text(holder->most_left_ms, text[3]),
        count_text(holder->pid, text[4]),
        holder->twin ? "twin" : "-",
    };
    cli_table_row(table, cells, 3, holder->silent || holder->twin ? CLI_RED : CLI_PLAIN);
}

static const struct cli_column age_columns[] = {
    { .title = "STATUS" }, { .title = ">UNDER 1m" }, { .title = ">10m" },
    { .title = ">1h" },    { .title = ">1d" },       { .title = ">1w" },
    { .title = ">OLDER" },
};

static void age_cells(struct cli_table *table, const void *row)
{
    const struct hf_age_row *age = row;
    char text[6][24];
    const char *cells[] = {
        age->status,
        count_text(age->under_1m, text[0]),
        count_text(age->under_10m, text[1]),
        count_text(age->under_1h, text[2]),
        count_text(age->under_1d, text[3]),
        count_text(age->under_1w, text[4]),
        count_text(age->older, text[5]),
    };
    cli_table_row(table, cells, 6, CLI_PLAIN);
}

static const struct cli_column occurrence_columns[] = {
    { .title = "OCCURRENCE" },
    { .title = ">AGE" },
    { .title = "SOURCE", .least = 12 },
    { .title = "KEY", .rank = 2, .least = 8 },
    { .title = "DELIVERIES", .rank = 1, .least = 20 },
};

static void occurrence_cells(struct cli_table *table, const void *row)
{
    const struct hf_occurrence *one = row;
    char source[400], age[24];
    (void)snprintf(source, sizeof(source), "%s %s", one->source_type, one->source_key);
    const char *cells[] = {
        op_short_id(one->occurrence_id),
        cli_duration(cli_now() - one->created_at, age),
        source,
        one->idempotency_key,
        one->deliveries,
    };
    cli_table_row(table, cells, 0, CLI_PLAIN);
}

#define VIEW(shape_, columns_, cells_)                                                   \
    {                                                                                    \
        .shape = &(shape_), .columns = (columns_),                                       \
        .count = sizeof(columns_) / sizeof((columns_)[0]), .cells = (cells_)             \
    }

const struct cli_view cli_overview_views[] = {
    VIEW(hf_queue_shape, queue_columns, queue_cells),
    VIEW(hf_holder_shape, holder_columns, holder_cells),
    VIEW(hf_age_shape, age_columns, age_cells),
    VIEW(hf_occurrence_shape, occurrence_columns, occurrence_cells),
    { .shape = NULL },
};
