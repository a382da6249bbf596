/* Rows for people: one line for what happened, a table for a list, a block for all of a row.
 * What is stored is shown without control characters. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include <holdfast/process.h>

#include "base/text.h"
#include "op/shapes/ledger.h"

hf_ms cli_now(void)
{
    return hf_clock_system()->wall_ms(hf_clock_system()->user);
}

hf_ms cli_store_now(const struct cli *cli)
{
    return cli->store ? hf_store_now(cli->store) : cli_now();
}

const char *cli_duration(hf_ms ms, char out[24])
{
    return ms == 0 ? "-" : op_age(ms, out);
}

static bool ends_in(const char *text, const char *end)
{
    size_t len = strlen(text), of = strlen(end);
    return len >= of && strcmp(text + len - of, end) == 0;
}

static void put_fact(struct cli *cli, const struct hf_field *field, const void *row)
{
    char text[HF_INSTANT_TEXT], length[24], digits[2 * 32 + 1];
    int64_t number = hf_field_i64(field, row);
    cli_putf(cli, "%-18s ", field->name);
    if (field->kind == HF_FIELD_DIGEST) {
        hf_hex((const char *)row + field->offset, 32, digits);
        cli_put(cli, digits);
    } else if (hf_field_text(field, row))
        cli_put_clean(cli, hf_field_text(field, row));
    else if (ends_in(field->name, "_at"))
        cli_put(cli, hf_instant_text(number, text));
    else if (ends_in(field->name, "_ms"))
        cli_put(cli, cli_duration(number, length));
    else
        cli_putf(cli, "%lld", (long long)number);
    cli_put(cli, "\n");
}

static void put_facts(struct cli *cli, const struct hf_field *fields, size_t count,
                      const void *row)
{
    for (size_t i = 0; i < count; i++)
        if (fields[i].kind != HF_FIELD_ROW && !hf_field_null(&fields[i], row) &&
            !hf_same(hf_field_text(&fields[i], row), ""))
            put_fact(cli, &fields[i], row);
}

/* ---- a unit: what happened ---------------------------------------------------------- */

static void put_status(struct cli *cli, const struct hf_work *work)
{
    cli_colour(cli, cli_status_colour(work->status));
    cli_put_clean(cli, work->status ? work->status : "-");
    cli_colour(cli, CLI_PLAIN);
    if (work->status_reason) {
        cli_put(cli, " (");
        cli_put_clean(cli, work->status_reason);
        cli_put(cli, ")");
    }
}

/* What a holder needs to continue. */
static void put_lease(struct cli *cli, const struct hf_work *work, const char *token)
{
    char text[24];
    cli_put(cli, "  token    ");
    cli_put(cli, token);
    cli_putf(cli, "\n  lease    %s of %s, attempt %lld\n",
             hf_duration_text(work->lease_ttl_ms, text, sizeof(text)),
             work->owner ? work->owner : "-", (long long)work->attempt_count);
    cli_put(cli, "  kind     ");
    cli_put_clean(cli, work->kind ? work->kind : "-");
    cli_put(cli, "\n  payload  ");
    cli_put_clean(cli, work->payload ? work->payload : "null");
    if (work->resume_payload) {
        cli_put(cli, "\n  resumed  ");
        cli_put_clean(cli, work->resume_payload);
    }
    cli_put(cli, "\n");
}

static void work_line(struct cli *cli, const struct op_row *row)
{
    const struct hf_work *work = row->at;
    cli_put(cli, row->did);
    cli_put(cli, " ");
    cli_put_clean(cli, work->work_id ? work->work_id : "-");
    cli_put(cli, ": ");
    put_status(cli, work);
    if (row->repeated)
        cli_put(cli, "; the same call was applied earlier, nothing was written");
    cli_put(cli, "\n");
    if (row->token)
        put_lease(cli, work, row->token);
}

/* ---- a unit: lists -------------------------------------------------------------------- */

/* The moment that matters next, in words. */
static void put_next(const struct hf_work *work, hf_ms now, char *out, size_t room)
{
    char text[24];
    enum hf_status status = hf_status_of(work->status);
    hf_ms at = status == HF_STATUS_RETRY_SCHEDULED ? work->next_retry_at
                                                   : work->deadline_at;
    const char *what = "ends in";
    out[0] = '\0';
    if (status == HF_STATUS_RUNNING && work->lease_expires_at) {
        hf_ms left = work->lease_remaining_ms;
        (void)snprintf(out, room, left > 0 ? "lease %s" : "silent for %s",
                       op_age(left, text));
        return;
    }
    if (status == HF_STATUS_QUEUED && work->gate) {
        (void)snprintf(out, room, "gate: %s", work->gate);
        return;
    }
    if (status == HF_STATUS_RETRY_SCHEDULED)
        what = "retry in";
    if (at)
        (void)snprintf(out, room, "%s %s", what, op_age(at > now ? at - now : 0, text));
}

static const struct cli_column work_columns[] = {
    { .title = "ID" },
    { .title = "STATUS" },
    { .title = "WHAT", .least = 10 },
    { .title = "KIND", .rank = 3, .least = 8 },
    { .title = ">AGE" },
    { .title = "NEXT", .rank = 1, .least = 18 },
    { .title = "REASON", .rank = 2, .least = 11 },
    { .title = "OWNER", .rank = 3, .least = 8 },
    { .title = "QUEUE", .rank = 4, .least = 8 },
    { .title = "SOURCE", .rank = 6 },
    { .title = ">PRI", .rank = 5 },
};
#define WORK_COLUMNS (sizeof(work_columns) / sizeof(work_columns[0]))

/* The class of the failure that used up the last attempt is worth more than the fact, and a
 * reason that repeats the status or the question is worth nothing. */
static const char *reason_text(const struct hf_work *work, const char *what, char *out,
                               size_t room)
{
    if (hf_same(work->status_reason, work->status) || hf_same(work->status_reason, what))
        return NULL;
    if (!work->error_class || !hf_same(work->status_reason, "attempts_exhausted"))
        return work->status_reason;
    (void)snprintf(out, room, "%s, %lld attempts", work->error_class,
                   (long long)work->attempt_count);
    return out;
}

static void work_cells(struct cli_table *table, const void *row)
{
    const struct hf_work *work = row;
    hf_ms now = cli_store_now(table->cli);
    char age[24], priority[24], next[64], what[OP_WHAT], reason[128];
    (void)snprintf(priority, sizeof(priority), "%lld", (long long)work->priority);
    put_next(work, now, next, sizeof(next));
    hf_ms since = now > work->created_at ? now - work->created_at : 0;
    const char *cells[WORK_COLUMNS] = {
        op_short_id(work->work_id),
        work->status,
        op_what(work, what),
        work->kind,
        op_age(since, age),
        next,
        reason_text(work, what, reason, sizeof(reason)),
        work->owner,
        work->queue,
        work->source_system,
        priority,
    };
    cli_table_row(table, cells, 1, cli_status_colour(work->status));
}

/* ---- a unit: all of it ---------------------------------------------------------------- */

static void put_detail(struct cli *cli, const struct hf_field *field,
                       const struct hf_work *work)
{
    char text[25];
    int64_t value = hf_field_i64(field, work);
    if (field->kind != HF_FIELD_I64) {
        cli_put_clean(cli, hf_field_text(field, work));
    } else if (ends_in(field->name, "_at")) {
        hf_ms away = value - cli_store_now(cli);
        bool lease = ends_in(field->name, "lease_expires_at"); /* another clock */
        away = lease ? work->lease_remaining_ms : away;
        cli_put(cli, lease ? "" : hf_time_text(value, text));
        cli_put(cli, lease ? "" : "  (");
        cli_put(cli, away > 0 ? "in " : "");
        cli_put(cli, op_age(away, text));
        cli_put(cli, away > 0 ? "" : " ago");
        cli_put(cli, lease ? "" : ")");
    } else if (ends_in(field->name, "_ms")) {
        cli_put(cli, value < 0 ? "-" : "");
        cli_put(cli, hf_duration_text(value < 0 ? -value : value, text, sizeof(text)));
    } else {
        hf_buf_i64(&cli->out, value);
    }
}

static int work_detail(struct cli *cli, const struct op_row *row)
{
    const struct hf_work *work = row->at;
    for (size_t i = 0; i < hf_work_field_count; i++) {
        const struct hf_field *field = &hf_work_fields[i];
        if (hf_field_null(field, work) || hf_same(hf_field_text(field, work), "") ||
            field->offset == offsetof(struct hf_work, lease_remaining_ms))
            continue;
        cli_putf(cli, "%-18s ", field->name);
        if (field->offset == offsetof(struct hf_work, status))
            cli_colour(cli, cli_status_colour(work->status));
        put_detail(cli, field, work);
        if (field->offset == offsetof(struct hf_work, status))
            cli_colour(cli, CLI_PLAIN);
        cli_put(cli, "\n");
    }
    return cli_flush_some(cli);
}

/* ---- events --------------------------------------------------------------------------- */

static const struct cli_column event_columns[] = {
    { .title = ">EVENT", .rank = 3 },
    { .title = "WHEN", .least = 19, .clips = true },
    { .title = "TYPE" },
    { .title = "CHANGE" },
    { .title = "ACTOR", .rank = 2, .least = 10 },
    { .title = "NOTE", .rank = 1, .least = 10 },
};

static void event_cells(struct cli_table *table, const void *row)
{
    const struct hf_event *event = row;
    char id[24], when[25], change[64], actor[256], note[512];
    const char *message = event->message ? event->message : "";
    (void)snprintf(id, sizeof(id), "%lld", (long long)event->event_id);
    (void)snprintf(change, sizeof(change), "%s%s%s",
                   event->from_status ? event->from_status : "",
                   event->to_status ? (event->from_status ? " -> " : "-> ") : "",
                   event->to_status ? event->to_status : "");
    (void)snprintf(actor, sizeof(actor), "%s:%s",
                   event->actor_kind ? event->actor_kind : "",
                   event->actor ? event->actor : "");
    (void)snprintf(note, sizeof(note), "%s%s%s", message,
                   *message && event->payload ? " " : "",
                   event->payload ? event->payload : "");
    note[hf_utf8_cut(note, strlen(note))] = '\0';
    const char *cells[] = { id,
                            hf_time_text(event->created_at, when),
                            event->event_type,
                            *change ? change : NULL,
                            actor,
                            note };
    cli_table_row(table, cells, 3, cli_status_colour(event->to_status));
}

/* ---- captured output ------------------------------------------------------------------ */

/* Text that a terminal can show: bytes that are no UTF-8 become U+FFFD, and so do control
 * characters except line ends and tabs. */
static void put_shown(struct hf_buf *out, struct hf_span span)
{
    const char *at = span.at;
    size_t left = span.len;
    while (left > 0) {
        size_t len = hf_utf8_next(at, left);
        bool fine = *at == '\n' || *at == '\t' || cli_is_harmless(at, len);
        if (len > 0 && fine)
            hf_buf_bytes(out, at, len);
        else
            hf_buf_bytes(out, "\xef\xbf\xbd", 3);
        len = len ? len : 1;
        at += len;
        left -= len;
    }
}

/* Each stream that has anything, under a heading. */
static void put_output(struct cli *cli, const struct hf_output_streams *output)
{
    for (int s = 0; s < HF_STREAM_COUNT; s++) {
        struct hf_output_view view = output->of[s];
        if (view.bytes == 0)
            continue;
        cli_putf(cli, "--- %s of attempt %lld, %lld bytes\n",
                 hf_stream_word((enum hf_stream)s), (long long)view.attempt,
                 (long long)view.bytes);
        put_shown(&cli->out, view.head);
        if (view.lost)
            cli_putf(cli, "\n--- %lld bytes in the middle were not kept\n",
                     (long long)view.lost);
        put_shown(&cli->out, view.tail);
    }
}

/* With --stream the bytes as they were written. What is missing is said on stderr. */
static int output_detail(struct cli *cli, const struct op_row *row)
{
    const struct hf_output_streams *output = row->at;
    const struct hf_read_request *in = cli->call.in;
    if (!in->stream) {
        put_output(cli, output);
        return 0;
    }
    bool is_err = strcmp(in->stream, hf_stream_word(HF_STDERR)) == 0;
    struct hf_output_view view = output->of[is_err ? HF_STDERR : HF_STDOUT];
    hf_buf_bytes(&cli->out, view.head.at, view.head.len);
    hf_buf_bytes(&cli->out, view.tail.at, view.tail.len);
    if (view.lost)
        cli_note(cli, "%lld of %lld bytes were not kept: those after the first %zu",
                 (long long)view.lost, (long long)view.bytes, view.head.len);
    return 0;
}

/* ---- counts and upkeep ------------------------------------------------------------------ */

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

static int stats_detail(struct cli *cli, const struct op_row *row)
{
    const struct hf_stats *stats = row->at;
    static const struct cli_column columns[] = { { .title = "OPEN WORK" },
                                                 { .title = ">COUNT" } };
    struct cli_table table;
    char text[24];
    hf_ms now = cli_store_now(cli), wait = stats->next_wait_deadline_at,
          retry = stats->next_retry_at;
    cli_table_begin(&table, cli, columns, 2);
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

static int sweep_detail(struct cli *cli, const struct op_row *row)
{
    const struct hf_sweep_report *report = row->at;
    char text[512];
    if (cli->quiet)
        return 0;
    cli_text_sweep(report, text, sizeof(text));
    cli_putf(cli, "read %lld: %s%s\n", (long long)report->looked_at,
             *text ? text : "nothing to do", report->more ? "; more rows are left" : "");
    return 0;
}

/* ---- all views -------------------------------------------------------------------------- */

static const struct cli_view views[] = {
    { &hf_work_shape, work_columns, WORK_COLUMNS, work_cells, work_line, work_detail },
    { &hf_event_shape, event_columns, 6, event_cells, NULL, NULL },
    { .shape = &hf_output_shape, .detail = output_detail },
    { .shape = &hf_stats_shape, .detail = stats_detail },
    { .shape = &hf_sweep_shape, .detail = sweep_detail },
    { .shape = NULL },
};

int cli_any_detail(struct cli *cli, const struct op_row *row)
{
    put_facts(cli, row->shape->fields, row->shape->count, row->at);
    return cli_flush_some(cli);
}

/* Of a shape that has no view of its own. */
static void any_line(struct cli *cli, const struct op_row *row)
{
    put_facts(cli, row->shape->fields, row->shape->count, row->at);
}

const struct cli_view *cli_view_of(const struct hf_shape *shape)
{
    static const struct cli_view any = { .line = any_line, .detail = cli_any_detail };
    const struct cli_view *const tables[] = { views,
                                              cli_effect_views,
                                              cli_overview_views,
                                              cli_process_views,
                                              cli_schedule_views,
                                              cli_session_views,
                                              cli_store_views,
                                              cli_trigger_views,
                                              cli_wait_views };
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
        for (const struct cli_view *view = tables[t]; view->shape; view++)
            if (view->shape == shape)
                return view;
    return &any;
}
