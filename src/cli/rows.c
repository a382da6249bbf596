/* Rows of the ledger: as JSON, as one plain value, as shell assignments, and for people.
 * A token is shown only where the library gave one: to whoever took the lease. */
#include "cli/cli.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/ident.h"
#include "base/near.h"
#include "base/text.h"
#include "core/ledger/fields.h"

#define TOKEN_FIELD "lease_token"
#define SHOWN_ID 12 /* characters at the end of an id, in lists */

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
    return ms == 0 ? "-" : cli_age(ms, out);
}

const char *cli_age(hf_ms ms, char out[24])
{
    ms = ms < 0 ? -ms : ms;
    return hf_duration_text(ms >= 1000 ? ms - ms % 1000 : ms, out, 24);
}

/* ---- JSON -------------------------------------------------------------------------- */

/* No lease, no time left on it: a 0 there would read as "just lapsed". */
static bool null_field(const struct hf_field *field, const void *row, bool is_work)
{
    const struct hf_work *work = is_work ? row : NULL;
    if (work && field->offset == offsetof(struct hf_work, lease_remaining_ms))
        return work->lease_expires_at == 0;
    return hf_field_null(field, row);
}

static void json_field(struct cli *cli, const struct hf_field *field, const void *row,
                       bool is_work)
{
    struct hf_json *json = &cli->writer;
    hf_json_key(json, field->name);
    if (null_field(field, row, is_work)) {
        hf_json_null(json);
        return;
    }
    switch (field->kind) {
    case HF_FIELD_TEXT: hf_json_str(json, hf_field_text(field, row)); return;
    case HF_FIELD_I64: hf_json_i64(json, hf_field_i64(field, row)); return;
    case HF_FIELD_JSON: break;
    }
    struct hf_buf line;
    hf_buf_init(&line, hf_alloc_system(), cli->out.max);
    cli_compact(&line, hf_field_text(field, row));
    if (hf_buf_state(&line))
        cli->out.state = hf_buf_state(&line); /* told when it is flushed */
    hf_json_raw(json, hf_buf_str(&line));
    hf_buf_fini(&line);
}

static void json_work(struct cli *cli, const struct hf_item *item)
{
    hf_json_object(&cli->writer);
    for (size_t i = 0; i < hf_work_field_count; i++)
        json_field(cli, &hf_work_fields[i], &item->work, true);
    hf_json_opt_str(&cli->writer, TOKEN_FIELD, item->token);
    hf_json_end(&cli->writer);
}

void cli_json_fields(struct cli *cli, const struct hf_field *fields, size_t count,
                     const void *row)
{
    hf_json_object(&cli->writer);
    for (size_t i = 0; i < count; i++)
        json_field(cli, &fields[i], row, false);
    hf_json_end(&cli->writer);
}

static bool ends_in(const char *text, const char *end)
{
    size_t len = strlen(text), of = strlen(end);
    return len >= of && strcmp(text + len - of, end) == 0;
}

static void put_fact(struct cli *cli, const struct hf_field *field, const void *row)
{
    char text[HF_INSTANT_TEXT], length[24];
    int64_t number = hf_field_i64(field, row);
    cli_putf(cli, "%-18s ", field->name);
    if (field->kind != HF_FIELD_I64)
        cli_put_clean(cli, hf_field_text(field, row));
    else if (ends_in(field->name, "_at"))
        cli_put(cli, hf_instant_text(number, text));
    else if (ends_in(field->name, "_ms"))
        cli_put(cli, cli_duration(number, length));
    else
        cli_putf(cli, "%lld", (long long)number);
    cli_put(cli, "\n");
}

void cli_put_facts(struct cli *cli, const struct hf_field *fields, size_t count,
                   const void *row)
{
    for (size_t i = 0; i < count; i++)
        if (!hf_field_null(&fields[i], row) &&
            !hf_same(hf_field_text(&fields[i], row), ""))
            put_fact(cli, &fields[i], row);
}

/* {"ok":true,"items":[…],"next":…} over a function that writes item i. */
static int json_items(struct cli *cli, const struct hf_answer *answer)
{
    int rc = 0;
    cli_ok_begin(cli);
    hf_json_key(&cli->writer, "items");
    hf_json_array(&cli->writer);
    for (size_t i = 0; rc == 0 && i < hf_answer_count(answer); i++) {
        json_work(cli, hf_answer_at(answer, i));
        rc = cli_flush_some(cli);
    }
    if (rc)
        return rc;
    hf_json_end(&cli->writer);
    hf_json_put_str(&cli->writer, "next", hf_answer_next(answer));
    cli_ok_end(cli);
    return 0;
}

/* ---- one plain value, and shell assignments ---------------------------------------- */

bool cli_wants_field(const struct cli *cli)
{
    return (cli->command->flags & (CLI_ROW | CLI_ROWS)) && cli_given(cli, "field");
}

static bool wants_shell(const struct cli *cli)
{
    return (cli->command->flags & CLI_ROW) && cli_given(cli, "shell");
}

static const struct hf_field *find_field(const char *name)
{
    for (size_t i = 0; i < hf_work_field_count; i++) {
        if (strcmp(hf_work_fields[i].name, name) == 0)
            return &hf_work_fields[i];
    }
    return NULL;
}

int cli_check_field(struct cli *cli)
{
    bool field = cli_wants_field(cli), shell = wants_shell(cli);
    if ((field && shell) || ((field || shell) && cli->json))
        return hf_fail(&cli->err, HF_EINVAL, NULL,
                       "--json, --field and --shell exclude each other");
    if (!field)
        return 0;
    const char *name = cli_text(cli, "field");
    if (find_field(name) || strcmp(name, TOKEN_FIELD) == 0)
        return 0;
    struct hf_near near;
    hf_near_begin(&near, name);
    for (size_t i = 0; i < hf_work_field_count; i++)
        hf_near_try(&near, hf_work_fields[i].name);
    return hf_fail(&cli->err, HF_EINVAL, "--field",
                   near.best ? "--field: no field is called \"%.60s\"; did you mean %s?"
                             : "--field: no field is called \"%.60s\"%s",
                   name, near.best ? near.best : "");
}

/* The value as it is, "" for null. */
static void put_plain(struct cli *cli, const struct hf_field *field,
                      const struct hf_work *work)
{
    if (null_field(field, work, true))
        return;
    switch (field->kind) {
    case HF_FIELD_TEXT: cli_put(cli, hf_field_text(field, work)); return;
    case HF_FIELD_I64: hf_buf_i64(&cli->out, hf_field_i64(field, work)); return;
    case HF_FIELD_JSON: cli_compact(&cli->out, hf_field_text(field, work)); return;
    }
}

static void put_field_line(struct cli *cli, const struct hf_item *item)
{
    const struct hf_field *field = find_field(cli_text(cli, "field"));
    if (field)
        put_plain(cli, field, &item->work);
    else if (item->token)
        cli_put(cli, item->token);
    cli_put(cli, "\n");
}

/* NAME='value' with the one quoting that every POSIX shell reads back as it was. */
static void put_assignment(struct cli *cli, const char *name, const char *value)
{
    cli_put(cli, "HF_");
    for (; *name; name++)
        hf_buf_char(&cli->out, (char)toupper((unsigned char)*name));
    cli_put(cli, "='");
    for (; *value; value++) {
        if (*value == '\'')
            cli_put(cli, "'\\''");
        else
            hf_buf_char(&cli->out, *value);
    }
    cli_put(cli, "'\n");
}

/* Every name is assigned, so that none keeps the value of an earlier row. */
static int put_shell(struct cli *cli, const struct hf_item *item)
{
    for (size_t i = 0; i < hf_work_field_count; i++) {
        struct hf_buf value;
        const struct hf_field *field = &hf_work_fields[i];
        hf_buf_init(&value, hf_alloc_system(), cli->out.max);
        if (item && !null_field(field, &item->work, true)) {
            if (field->kind == HF_FIELD_I64)
                hf_buf_i64(&value, hf_field_i64(field, &item->work));
            else if (field->kind == HF_FIELD_JSON)
                cli_compact(&value, hf_field_text(field, &item->work));
            else
                hf_buf_text(&value, hf_field_text(field, &item->work));
        }
        int rc = hf_buf_state(&value);
        put_assignment(cli, field->name, hf_buf_str(&value));
        hf_buf_fini(&value);
        if (rc)
            return hf_fail_plain(&cli->err, rc);
    }
    put_assignment(cli, TOKEN_FIELD, item && item->token ? item->token : "");
    return 0;
}

/* ---- one row ----------------------------------------------------------------------- */

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

/* What a holder needs to go on. */
static void put_lease(struct cli *cli, const struct hf_item *item)
{
    const struct hf_work *work = &item->work;
    char text[24];
    cli_put(cli, "  token    ");
    cli_put(cli, item->token);
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

static void put_line(struct cli *cli, const struct hf_item *item, const char *did)
{
    cli_put(cli, did);
    cli_put(cli, " ");
    cli_put_clean(cli, item->work.work_id ? item->work.work_id : "-");
    cli_put(cli, ": ");
    put_status(cli, &item->work);
    if (item->repeated)
        cli_put(cli, "; it had been done before, nothing was written");
    cli_put(cli, "\n");
    if (item->token)
        put_lease(cli, item);
}

static int item_failed(struct cli *cli, const struct hf_item *item)
{
    const char *message = item->message ? item->message : hf_err_text(item->code);
    return hf_fail(&cli->err, item->code, item->field, "%s", message);
}

/* Its row may have been there before, which the caller is told. */
static bool creates(const struct cli_command *command)
{
    return command->run == cmd_work_create || command->run == cmd_process_start ||
           command->run == cmd_job_enqueue || command->run == cmd_schedule_trigger;
}

int cli_print_row(struct cli *cli, const struct hf_item *item, const char *did)
{
    if (item->code)
        return item_failed(cli, item);
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_key(&cli->writer, "work");
        json_work(cli, item);
        if (creates(cli->command))
            hf_json_put_bool(&cli->writer, "created", item->created);
        if (cli->resumed)
            hf_json_put_bool(&cli->writer, "resumed", true);
        if (item->repeated)
            hf_json_put_bool(&cli->writer, "repeated", true);
        cli_ok_end(cli);
    } else if (wants_shell(cli)) {
        return put_shell(cli, item);
    } else if (cli_wants_field(cli)) {
        put_field_line(cli, item);
    } else if (!cli->quiet || item->token) {
        put_line(cli, item, did);
    }
    return 0;
}

int cli_print_claimed(struct cli *cli, const struct hf_answer *answer)
{
    size_t count = hf_answer_count(answer);
    if (cli->json)
        return json_items(cli, answer);
    if (wants_shell(cli))
        return put_shell(cli, count ? hf_answer_at(answer, 0) : NULL);
    for (size_t i = 0; i < count; i++) {
        if (cli_wants_field(cli))
            put_field_line(cli, hf_answer_at(answer, i));
        else
            put_line(cli, hf_answer_at(answer, i), "claimed");
    }
    if (!count && !cli->quiet && !cli_wants_field(cli))
        cli_put(cli, "nothing to claim\n");
    return cli_flush_some(cli);
}

/* ---- lists ------------------------------------------------------------------------- */

static const char *short_id(const char *id)
{
    size_t len = id ? strlen(id) : 0;
    return len > SHOWN_ID ? id + len - SHOWN_ID : id;
}

/* The moment that matters next, in words. */
static void put_next(const struct hf_work *work, hf_ms now, char *out, size_t room)
{
    char text[24];
    enum hf_status status = hf_status_of(work->status);
    hf_ms at = status == HF_RETRY_SCHEDULED ? work->next_retry_at : work->deadline_at;
    const char *what = "deadline in";
    out[0] = '\0';
    if (status == HF_RUNNING && work->lease_expires_at) {
        hf_ms left = work->lease_remaining_ms;
        (void)snprintf(out, room, left > 0 ? "lease %s" : "silent for %s",
                       cli_age(left, text));
        return;
    }
    if (status == HF_QUEUED && work->gate) {
        (void)snprintf(out, room, "gate: %s", work->gate);
        return;
    }
    if (status == HF_RETRY_SCHEDULED)
        what = "retry in";
    if (at)
        (void)snprintf(out, room, "%s %s", what, cli_age(at > now ? at - now : 0, text));
}

static void list_row(struct cli_table *table, const struct hf_work *work, hf_ms now)
{
    char age[24], priority[24], next[64];
    (void)snprintf(priority, sizeof(priority), "%lld", (long long)work->priority);
    put_next(work, now, next, sizeof(next));
    hf_ms since = now > work->created_at ? now - work->created_at : 0;
    const char *cells[] = { short_id(work->work_id),
                            work->status,
                            work->source_system,
                            work->kind,
                            work->queue,
                            priority,
                            cli_age(since, age),
                            work->owner,
                            next,
                            work->status_reason };
    cli_table_row(table, cells, 1, cli_status_colour(work->status));
}

int cli_print_list(struct cli *cli, const struct hf_answer *answer, const char *none)
{
    static const char *const titles[] = { "ID",   "STATUS", "SOURCE", "KIND", "QUEUE",
                                          ">PRI", ">AGE",   "OWNER",  "NEXT", "REASON" };
    size_t count = hf_answer_count(answer);
    if (cli->json)
        return json_items(cli, answer);
    if (cli_wants_field(cli)) {
        for (size_t i = 0; i < count; i++)
            put_field_line(cli, hf_answer_at(answer, i));
    } else if (count == 0) {
        cli_put(cli, none);
        cli_put(cli, "\n");
    } else {
        struct cli_table table;
        hf_ms now = cli_store_now(cli);
        cli_table_begin(&table, cli, titles, sizeof(titles) / sizeof(titles[0]));
        for (size_t i = 0; i < count; i++)
            list_row(&table, &hf_answer_at(answer, i)->work, now);
        int rc = cli_table_end(&table);
        if (rc)
            return rc;
    }
    int rc = hf_answer_next(answer) ? cli_flush(cli) : 0; /* rows first, then the note */
    if (rc == 0 && hf_answer_next(answer))
        cli_note(cli, "there is more: --after %s", hf_answer_next(answer));
    return rc;
}

/* ---- detail ------------------------------------------------------------------------ */

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
        cli_put(cli, cli_age(away, text));
        cli_put(cli, away > 0 ? "" : " ago");
        cli_put(cli, lease ? "" : ")");
    } else if (ends_in(field->name, "_ms")) {
        cli_put(cli, value < 0 ? "-" : "");
        cli_put(cli, hf_duration_text(value < 0 ? -value : value, text, sizeof(text)));
    } else {
        hf_buf_i64(&cli->out, value);
    }
}

int cli_print_detail(struct cli *cli, const struct hf_item *item)
{
    const struct hf_work *work = &item->work;
    if (cli->json || wants_shell(cli) || cli_wants_field(cli))
        return cli_print_row(cli, item, "");
    for (size_t i = 0; i < hf_work_field_count; i++) {
        const struct hf_field *field = &hf_work_fields[i];
        if (null_field(field, work, true) || hf_same(hf_field_text(field, work), "") ||
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

/* ---- events ------------------------------------------------------------------------ */

static int64_t event_id(const struct hf_events *events, size_t i)
{
    return hf_events_at(events, i)->event_id;
}

/* A cursor names an event, and one event may be several rows (a transition, the lease that
 * it took, the one that it gave back), so a page ends at the end of an event. `asked` is
 * what the store was asked for: when it gave as much, the last event may be cut. */
static size_t whole_events(const struct hf_events *events, size_t limit, size_t asked)
{
    size_t count = hf_events_count(events), whole = count;
    if (count == asked) {
        while (whole > 0 && event_id(events, whole - 1) == event_id(events, count - 1))
            whole--;
        whole = whole ? whole : count;
    }
    size_t shown = whole < limit ? whole : limit;
    while (shown < whole && event_id(events, shown) == event_id(events, shown - 1))
        shown++;
    return shown;
}

void cli_json_event(struct cli *cli, const struct hf_event *event)
{
    for (size_t f = 0; f < hf_event_field_count; f++)
        json_field(cli, &hf_event_fields[f], event, false);
}

static int json_events(struct cli *cli, const struct hf_events *events, size_t shown)
{
    int rc = 0;
    cli_ok_begin(cli);
    hf_json_key(&cli->writer, "items");
    hf_json_array(&cli->writer);
    for (size_t i = 0; rc == 0 && i < shown; i++) {
        hf_json_object(&cli->writer);
        cli_json_event(cli, hf_events_at(events, i));
        hf_json_end(&cli->writer);
        rc = cli_flush_some(cli);
    }
    if (rc)
        return rc;
    hf_json_end(&cli->writer);
    hf_json_key(&cli->writer, "next");
    if (shown == hf_events_count(events))
        hf_json_null(&cli->writer);
    else
        hf_json_i64(&cli->writer, event_id(events, shown - 1));
    cli_ok_end(cli);
    return 0;
}

static void event_row(struct cli_table *table, const struct hf_event *event)
{
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

int cli_print_events(struct cli *cli, const struct hf_events *events, size_t limit,
                     size_t asked)
{
    static const char *const titles[] = { ">EVENT", "WHEN",  "TYPE",
                                          "CHANGE", "ACTOR", "NOTE" };
    size_t shown = whole_events(events, limit, asked);
    if (cli->json)
        return json_events(cli, events, shown);
    if (shown == 0) {
        cli_put(cli, "no events\n");
        return 0;
    }
    struct cli_table table;
    cli_table_begin(&table, cli, titles, sizeof(titles) / sizeof(titles[0]));
    for (size_t i = 0; i < shown; i++)
        event_row(&table, hf_events_at(events, i));
    int rc = cli_table_end(&table);
    bool more = shown < hf_events_count(events);
    if (rc == 0 && more)
        rc = cli_flush(cli);
    if (rc == 0 && more)
        cli_note(cli, "there is more: --after %lld",
                 (long long)event_id(events, shown - 1));
    return rc;
}

/* ---- ids --------------------------------------------------------------------------- */

int cli_full_id(struct cli *cli, const char *id, const char **ret_id)
{
    struct hf_answer *answer = NULL;
    if (!id || hf_uuid_valid(id)) {
        *ret_id = id;
        return 0;
    }
    int rc = hf_work_get(cli->store, &cli->who, id, &answer, &cli->err);
    if (rc)
        return rc;
    const char *full = hf_arena_text(&cli->arena, hf_answer_at(answer, 0)->work.work_id);
    hf_answer_free(answer);
    if (!full)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    *ret_id = full;
    return 0;
}
