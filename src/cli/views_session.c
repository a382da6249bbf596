/* How sessions, their records, effects and turns are shown to people: a line for what happened, and
 * tables for lists. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include <holdfast/turn_json.h>

#include "base/civil.h"
#include "base/json_walk.h"
#include "op/shapes/session.h"

/* ---- sessions ------------------------------------------------------------------------- */

/* The state of a session in one word, as docs/sessions.md lists them. `silent` is a session whose
 * holder has not renewed its lease in time. Without a holder, `ready_at` is the time from which a
 * worker may claim it: an open turn that no worker may claim yet waits, for an answer or for that
 * time; a session without an open turn has a `ready_at` exactly if it has an input. */
static const char *state_of(const struct hf_session *session, hf_ms now)
{
    if (session->deleted_at)
        return "deleted";
    if (session->owner)
        return session->lease_remaining_ms >= 0 ? "running" : "silent";
    if (session->turn_id && (!session->ready_at || session->ready_at > now))
        return "waiting";
    return session->ready_at ? "ready" : "idle";
}

static enum cli_colour state_colour(const struct hf_session *session)
{
    if (session->owner)
        return session->lease_remaining_ms >= 0 ? CLI_GREEN : CLI_RED;
    return session->ready_at || session->turn_id ? CLI_YELLOW : CLI_PLAIN;
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
                            state_of(session, cli_store_now(table->cli)),
                            revision,
                            records,
                            session->owner };
    cli_table_row(table, cells, 3, state_colour(session));
}

/* A line about one session. row->did says what was done to it: "created". */
static void session_line(struct cli *cli, const struct op_row *row)
{
    const struct hf_session *session = row->at;
    cli_putf(cli, "%s ", row->did);
    cli_put_clean(cli, session->session_id);
    cli_putf(cli, ": %s, revision %lld, %lld records\n",
             state_of(session, cli_store_now(cli)), (long long)session->head_revision,
             (long long)session->record_count);
}

/* A line about the tokens of one model, or of one source where the model is not known. row->did is
 * the label "usage", filled up to the column in which views.c shows the values of fields. */
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

/* A provider is told the results of tools in the name of the user, who did not say them. */
static const char *speaker(const struct hf_message *message)
{
    bool tool = message->part_count && message->parts[0].kind == HF_PART_TOOL_RESULT;
    return tool ? "tool" : hf_role_name(message->role);
}

/* Writes what was said into `out`: the first text, or the names of the tools that were called.
 * Without either, `out` stays as it is. */
static void said_text(const struct hf_part *parts, size_t count,
                      char out[SHOWN_BYTES + 4])
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        const struct hf_part *part = &parts[i];
        bool text = part->kind == HF_PART_TEXT || part->kind == HF_PART_PROSE;
        if (text && part->content.len) {
            (void)beginning(part->content, out);
            return;
        }
        if (part->kind == HF_PART_TOOL_CALL && used < SHOWN_BYTES)
            used += (size_t)snprintf(out + used, SHOWN_BYTES + 4 - used, "%s%.20s",
                                     used ? ", " : "calls ", part->tool);
    }
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
    if (message)
        said_text(message->parts, message->part_count, what);
    if (message && message->part_count && !what[0])
        (void)beginning(shown_part(message), what);
    const char *cells[] = { node->ordinal < 0 ? NULL : ordinal, node->turn_id,
                            node->provisional ? "provisional" : "committed",
                            message ? speaker(message) : node->record->name, what };
    cli_table_row(table, cells, 2, node->provisional ? CLI_YELLOW : CLI_GREEN);
}

/* ---- effects -------------------------------------------------------------------------- */

/* A member of an object, as it is written; empty: it has none. */
static struct hf_span member(struct hf_span object, const char *name)
{
    struct hf_walk walk;
    hf_walk_begin(&walk, object);
    if (hf_walk_enter(&walk, '{'))
        while (hf_walk_more(&walk)) {
            bool it = hf_walk_is(hf_walk_key(&walk), name);
            struct hf_span value = hf_walk_value(&walk);
            if (it)
                return value;
        }
    return (struct hf_span){ 0 };
}

static struct hf_span result_text(const struct hf_tool_result *result)
{
    if (result->failure)
        return result->failure->message;
    if (result->part_count && result->parts[0].kind == HF_PART_TEXT)
        return result->parts[0].content;
    return result->value.len ? result->value : result->reason;
}

/* The beginning of what came of an effect. Text that cannot be decoded is shown as it is. */
static void effect_text(const struct hf_session_effect *effect, char out[SHOWN_BYTES + 4])
{
    struct hf_decoded *owner = NULL;
    const struct hf_tool_result *result = NULL;
    const struct hf_llm_response *reply = NULL;
    const struct hf_llm_error *error = NULL;
    struct hf_span json = { effect->outcome,
                            effect->outcome ? strlen(effect->outcome) : 0 };
    struct hf_span inner = member(json, "reply");
    if (!json.len)
        return;
    if (inner.len && !hf_llm_response_decode(NULL, inner, &owner, &reply, NULL))
        said_text(reply->parts, reply->part_count, out);
    else if ((inner = member(json, "error")).len &&
             !hf_llm_error_decode(NULL, inner, &owner, &error, NULL))
        (void)beginning(error->message, out);
    else if (!hf_tool_result_decode(NULL, json, &owner, &result, NULL))
        (void)beginning(result_text(result), out);
    else
        (void)beginning(json, out);
    hf_decoded_free(owner);
}

static const struct cli_column effect_columns[] = {
    { .title = "EFFECT", .least = 4 },  { .title = "WHAT", .least = 8 },
    { .title = ">ATTEMPT", .rank = 3 }, { .title = "STATUS" },
    { .title = ">TOOK", .rank = 1 },    { .title = "CLASS", .rank = 4 },
    { .title = "RESULT", .least = 24 },
};

static void effect_cells(struct cli_table *table, const void *row)
{
    const struct hf_session_effect *effect = row;
    char number[24], attempt[24], took[24], status[40], what[80] = "model";
    char result[SHOWN_BYTES + 4] = "";
    struct hf_span envelope = { effect->envelope, strlen(effect->envelope) };
    struct hf_span tool = member(envelope, "tool"); /* in quotes */
    if (tool.len > 2)
        (void)snprintf(what, sizeof(what), "%.*s", (int)tool.len - 2,
                       (const char *)tool.at + 1);
    (void)snprintf(number, sizeof(number), "%.*s", (int)strcspn(effect->key, "/"),
                   effect->key);
    (void)snprintf(attempt, sizeof(attempt), "%lld", (long long)effect->attempt);
    (void)snprintf(status, sizeof(status), "%s%s", effect->status,
                   effect->taken_over ? ", again" : "");
    effect_text(effect, result);
    const char *cells[] = {
        number,
        what,
        effect->attempt ? attempt : NULL,
        status,
        effect->settled_at ? cli_duration(effect->settled_at - effect->started_at, took)
                           : NULL,
        effect->recovery,
        result
    };
    cli_table_row(table, cells, 3,
                  *effect->status == 'd'   ? CLI_GREEN
                  : *effect->status == 's' ? CLI_YELLOW
                                           : CLI_RED);
}

/* ---- a turn --------------------------------------------------------------------------- */

static void answer_line(struct cli *cli, const struct op_row *row)
{
    const struct hf_turn_answer *answer = row->at;
    if (!answer->outcome) {
        cli_put(cli, "the turn is open\n");
        return;
    }
    if (answer->text)
        cli_put_clean(cli, answer->text);
    cli_put(cli, answer->text ? "\n" : "");
    cli_colour(cli, CLI_DIM);
    cli_putf(cli, "%s, %lld tokens in, %lld out", answer->outcome,
             (long long)answer->input, (long long)answer->output);
    cli_colour(cli, CLI_PLAIN);
    cli_put(cli, "\n");
}

static int turn_detail(struct cli *cli, const struct op_row *row)
{
    const struct hf_session_turn *turn = row->at;
    char begun[HF_INSTANT_TEXT], took[24], active[24];
    cli_put(cli, "turn ");
    cli_put_clean(cli, turn->turn_id);
    cli_putf(cli, "\nbegan %s, ", hf_instant_text(turn->started_at, begun));
    if (turn->finished_at)
        cli_putf(cli, "took %s",
                 cli_duration(turn->finished_at - turn->started_at, took));
    else
        cli_put(cli, "open");
    cli_putf(cli, ", %lld steps, %s active\n", (long long)turn->step,
             cli_duration(turn->active_ms, active));
    return 0;
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
    { &hf_session_effect_shape, effect_columns, 7, effect_cells, NULL, NULL },
    { .shape = &hf_turn_answer_shape, .line = answer_line },
    { .shape = &hf_session_turn_shape, .detail = turn_detail },
    { &hf_node_shape, node_columns, 5, node_cells, NULL, NULL },
    { &hf_session_input_shape, input_columns, 5, input_cells, NULL, NULL },
    { .shape = NULL },
};
