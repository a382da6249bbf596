/* Sessions for people. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/civil.h"
#include "core/session/shapes.h"

/* ---- sessions ------------------------------------------------------------------------- */

/* What it does: a worker drives it, one may take it, or it waits for a message. */
static const char *state_of(const struct hf_session *session)
{
    if (session->deleted_at)
        return "deleted";
    if (session->owner)
        return session->lease_remaining_ms >= 0 ? "held" : "silent";
    return session->ready_at ? "ready" : "idle";
}

static enum cli_colour state_colour(const struct hf_session *session)
{
    if (session->owner)
        return session->lease_remaining_ms >= 0 ? CLI_GREEN : CLI_RED;
    return session->ready_at ? CLI_YELLOW : CLI_PLAIN;
}

static const struct cli_column session_columns[] = {
    { .title = "SESSION", .least = 20 },
    { .title = "TENANT", .rank = 4 },
    { .title = "AGENT", .least = 8 },
    { .title = "STATE" },
    { .title = ">REVISION", .rank = 3 },
    { .title = ">RECORDS", .rank = 2 },
    { .title = "HOLDER", .rank = 1, .least = 8 },
};

static void session_cells(struct cli_table *table, const void *row)
{
    const struct hf_session *session = row;
    char revision[24], records[24];
    (void)snprintf(revision, sizeof(revision), "%lld", (long long)session->head_revision);
    (void)snprintf(records, sizeof(records), "%lld", (long long)session->record_count);
    const char *cells[] = { session->session_id,
                            *session->tenant ? session->tenant : NULL,
                            session->agent,
                            state_of(session),
                            revision,
                            records,
                            session->owner };
    cli_table_row(table, cells, 3, state_colour(session));
}

static void session_line(struct cli *cli, const struct op_row *row)
{
    const struct hf_session *session = row->at;
    cli_putf(cli, "%s ", row->did);
    cli_put_clean(cli, session->session_id);
    cli_putf(cli, ": %s, revision %lld, %lld records\n", state_of(session),
             (long long)session->head_revision, (long long)session->record_count);
}

static void usage_line(struct cli *cli, const struct op_row *row)
{
    const struct hf_session_usage *spent = row->at;
    cli_putf(cli, "%-18s ", row->did);
    cli_put_clean(cli, spent->model ? spent->model : spent->source);
    cli_putf(cli, ": %lld in, %lld out, %lld from cache\n", (long long)spent->usage.input,
             (long long)spent->usage.output, (long long)spent->usage.cache_read);
}

/* ---- records -------------------------------------------------------------------------- */

#define SHOWN_BYTES 60

/* The beginning of a text on one line. */
static const char *beginning(struct hf_span span, char out[SHOWN_BYTES + 4])
{
    const char *text = span.at;
    size_t len = span.len;
    while (len > SHOWN_BYTES || (len && len < span.len && (text[len] & 0xc0) == 0x80))
        len--;
    for (size_t i = 0; i < len; i++)
        out[i] = (char)((unsigned char)text[i] < ' ' ? ' ' : text[i]);
    (void)snprintf(out + len, 4, "%s", len < span.len ? "..." : "");
    return out;
}

/* The first text of a message; of files alone the name of the first one. */
static struct hf_span shown_part(const struct hf_message *message)
{
    const struct hf_part *first = &message->parts[0];
    for (size_t i = 0; i < message->part_count; i++)
        if (message->parts[i].content.len > 0)
            return message->parts[i].content;
    const char *name = first->attachment ? first->attachment->name : NULL;
    return (struct hf_span){ name, name ? strlen(name) : 0 };
}

static const struct cli_column node_columns[] = {
    { .title = ">#" },  { .title = "TURN", .rank = 2 },   { .title = "STATE", .rank = 1 },
    { .title = "WHO" }, { .title = "WHAT", .least = 24 },
};

static void node_cells(struct cli_table *table, const void *row)
{
    const struct hf_node *node = row;
    const struct hf_message *message = node->record->message;
    char ordinal[24], what[SHOWN_BYTES + 4] = "";
    (void)snprintf(ordinal, sizeof(ordinal), "%lld", (long long)node->ordinal);
    if (message && message->part_count)
        (void)beginning(shown_part(message), what);
    const char *cells[] = { node->ordinal < 0 ? NULL : ordinal, node->turn_id,
                            node->provisional ? "provisional" : "committed",
                            message ? hf_role_name(message->role) : node->record->name,
                            what };
    cli_table_row(table, cells, 2, node->provisional ? CLI_YELLOW : CLI_GREEN);
}

/* ---- inputs --------------------------------------------------------------------------- */

static const struct cli_column input_columns[] = {
    { .title = "INPUT" },           { .title = "KIND", .rank = 2 }, { .title = "STATUS" },
    { .title = "TURN", .rank = 3 }, { .title = "SENT", .rank = 1 },
};

static void input_cells(struct cli_table *table, const void *row)
{
    const struct hf_input_shown *shown = row;
    const struct hf_session_input *input = &shown->input;
    char sent[HF_INSTANT_TEXT];
    const char *cells[] = { input->work_id, shown->kind,
                            input->gate && *input->gate == 'h' ? "held" : input->status,
                            input->turn_id, hf_instant_text(input->created_at, sent) };
    cli_table_row(table, cells, 2, cli_status_colour(input->status));
}

const struct cli_view cli_session_views[] = {
    { &hf_session_shape, session_columns, 7, session_cells, session_line,
      cli_any_detail },
    { .shape = &hf_session_usage_shape, .line = usage_line },
    { &hf_node_shape, node_columns, 5, node_cells, NULL, NULL },
    { &hf_session_input_shape, input_columns, 5, input_cells, NULL, NULL },
    { .shape = NULL },
};
