/* What a session has when the chat opens it: its agent, the last messages of its history, and
 * messages that were sent and are in no turn yet. */
#include <stdlib.h>
#include <string.h>

#include <holdfast/turn_json.h>

#include "base/text.h"
#include "cli/chat/chat.h"

#define SHOWN_RECORDS 40 /* of a long history, the last ones */

/* ---- which agent ---------------------------------------------------------------------- */

int chat_look_up(struct chat *chat, bool *ret_open)
{
    struct cli *cli = chat->cli;
    struct hf_session_answer *answer = NULL;
    int rc = hf_session_head(cli->store, chat->session_id, &answer, &cli->err);
    *ret_open = false;
    if (rc == HF_ENOTFOUND)
        return 0;
    if (rc)
        return rc;
    const struct hf_session *session = &answer->sessions[0];
    *ret_open = session->turn_id || session->ready_at || session->owner;
    if (!chat->agent_name)
        chat->agent_name = hf_arena_text(&cli->arena, session->agent);
    else if (!hf_same(chat->agent_name, session->agent))
        rc = hf_fail(&cli->err, HF_EINVAL, "agent",
                     "the session %.100s belongs to the agent %.100s, not to %.100s",
                     chat->session_id, session->agent, chat->agent_name);
    if (rc)
        cli->action = "leave out --agent, or name another session";
    else if (!chat->agent_name)
        rc = hf_fail_plain(&cli->err, HF_ENOMEM);
    hf_session_answer_free(answer);
    return rc;
}

/* ---- what was said -------------------------------------------------------------------- */

/* The records that are shown: committed ones, and behind them those of the open turn. */
struct past {
    const struct hf_node *committed;
    size_t committed_count;
    const struct hf_node *open;
    size_t count; /* of both */
};

static const struct hf_message *message_at(const struct past *past, size_t i)
{
    const struct hf_node *node = i < past->committed_count
                                     ? &past->committed[i]
                                     : &past->open[i - past->committed_count];
    return node->record->message;
}

static bool is_tool(const struct hf_part *part)
{
    return part->kind == HF_PART_TOOL_CALL || part->kind == HF_PART_TOOL_RESULT;
}

/* The call that a result answers, among the records before it. */
static const struct hf_part *call_of(const struct past *past, size_t before,
                                     const char *call_id)
{
    for (size_t i = before; i-- > 0;) {
        const struct hf_message *message = message_at(past, i);
        for (size_t p = 0; message && p < message->part_count; p++)
            if (message->parts[p].kind == HF_PART_TOOL_CALL &&
                hf_same(message->parts[p].call_id, call_id))
                return &message->parts[p];
    }
    return NULL;
}

static void show_result(struct chat *chat, const struct past *past, size_t record,
                        const struct hf_part *result)
{
    const struct hf_part *call = call_of(past, record, result->call_id);
    char *text = hf_arena_copy(&chat->cli->arena, result->content.at,
                               result->content.len);
    struct show_tool tool = { .call_id = result->call_id,
                              .tool = call ? call->tool : "a tool",
                              .args = call ? call->content : (struct hf_span){ "", 0 },
                              .text = text,
                              .duration_ms = -1 };
    chat->show->methods->tool_ended(chat->show, &tool);
}

static void show_message(struct chat *chat, const struct past *past, size_t record,
                         const struct hf_message *message)
{
    bool user = message->role == HF_ROLE_USER;
    for (size_t p = 0; p < message->part_count; p++) {
        const struct hf_part *part = &message->parts[p];
        if (part->kind == HF_PART_TOOL_RESULT)
            show_result(chat, past, record, part);
        if (is_tool(part) || part->kind == HF_PART_REASONING || part->content.len == 0)
            continue;
        char *text = hf_arena_copy(&chat->cli->arena, part->content.at,
                                   part->content.len);
        if (!text)
            continue; /* the history is a courtesy */
        if (!user) {
            screen_answer(&chat->screen, part->content);
            continue;
        }
        screen_user(&chat->screen, text);
        editor_remember(&chat->editor, text);
        free(chat->last_text);
        chat->last_text = strdup(text);
    }
}

static bool begins_turn(const struct hf_message *message)
{
    return message && message->role == HF_ROLE_USER && message->part_count &&
           !is_tool(&message->parts[0]);
}

/* From a message of the user on, if there is more than what is shown. */
static void show_past(struct chat *chat, const struct past *past, int64_t left_out)
{
    size_t first = 0;
    while (left_out && first < past->count && !begins_turn(message_at(past, first)))
        first++;
    first = first == past->count ? 0 : first;
    left_out += (int64_t)first;
    if (left_out)
        chat_note(chat, false, "%lld earlier record%s: holdfast session log %.100s",
                  (long long)left_out, left_out == 1 ? "" : "s", chat->session_id);
    for (size_t i = first; i < past->count; i++)
        if (message_at(past, i))
            show_message(chat, past, i, message_at(past, i));
}

/* ---- what was sent and is in no record yet ----------------------------------------------- */

static void show_input(struct chat *chat, const struct hf_session_input *input)
{
    struct hf_span json = { input->payload, input->payload ? strlen(input->payload) : 0 };
    struct hf_decoded *owner = NULL;
    const struct hf_record *record = NULL;
    enum hf_status status = hf_status_of(input->status);
    if (input->kind != HF_INPUT_MESSAGE ||
        (status != HF_STATUS_QUEUED && status != HF_STATUS_RUNNING))
        return;
    if (hf_record_decode(NULL, json, &owner, &record, NULL) == 0 && record->message)
        show_message(chat, NULL, 0, record->message);
    hf_decoded_free(owner);
}

/* Inputs that are not over, except those that the open turn has stored as records. */
static int show_waiting(struct chat *chat, const struct hf_session_turn *turn)
{
    struct cli *cli = chat->cli;
    const char *stored = turn && turn->stored_count ? turn->turn_id : NULL;
    const char *after = NULL;
    bool more = true;
    int rc = 0;
    while (rc == 0 && more) {
        struct hf_session_answer *page = NULL;
        rc = hf_session_inputs(cli->store, chat->session_id, after, 0, &page, &cli->err);
        more = rc == 0 && page->input_count > 0;
        for (size_t i = 0; more && i < page->input_count; i++)
            if (!stored || !hf_same(page->inputs[i].turn_id, stored))
                show_input(chat, &page->inputs[i]);
        if (more)
            after = hf_arena_text(&cli->arena,
                                  page->inputs[page->input_count - 1].work_id);
        if (more && !after)
            rc = hf_fail_plain(&cli->err, HF_ENOMEM);
        hf_session_answer_free(page);
    }
    return rc;
}

int chat_history(struct chat *chat, bool open)
{
    struct cli *cli = chat->cli;
    struct hf_session_load load = { .size = sizeof(load),
                                    .session_id = chat->session_id,
                                    .limit = SHOWN_RECORDS };
    struct hf_session_answer *head = NULL, *last = NULL;
    int rc = hf_session_load(cli->store, &load, &head, &cli->err);
    if (rc == HF_ENOTFOUND)
        return 0; /* it is made with the first message */
    if (rc)
        return rc;
    int64_t count = head->sessions[0].record_count;
    if (count > SHOWN_RECORDS) {
        load.head_revision = head->sessions[0].head_revision;
        load.record_count = count;
        load.from_ordinal = count - SHOWN_RECORDS;
        rc = hf_session_load(cli->store, &load, &last, &cli->err);
    }
    if (rc == 0) {
        const struct hf_session_answer *page = last ? last : head;
        const struct hf_session_turn *turn = head->turn;
        struct past past = { .committed = page->nodes,
                             .committed_count = page->node_count,
                             .open = turn ? turn->nodes : NULL,
                             .count = page->node_count +
                                      (turn ? turn->stored_count : 0) };
        show_past(chat, &past, last ? load.from_ordinal : 0);
        rc = open ? show_waiting(chat, turn) : 0;
    }
    hf_session_answer_free(last);
    hf_session_answer_free(head);
    return rc;
}
