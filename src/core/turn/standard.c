/* The standard protocol: the model calls tools by the provider's own means.
 *
 * A reply with calls becomes one assistant message and a batch; the answers become one user
 * message. A reply without calls ends the turn at a checkpoint, where new input may still
 * come in; its text is the outcome and is not appended here, so that the host's last commit
 * writes it once. */
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/text.h"
#include "core/turn/machine.h"

static int prepare(const struct hf_protocol *protocol, struct hf_move *move,
                   struct hf_err *err)
{
    (void)protocol;
    return hf_act_start_llm(move, true, NULL, err);
}

/* Once a model marks its final answer, what it said on the way is not shown. */
static bool shows(const struct hf_llm_response *response, const struct hf_part *part)
{
    if (part->kind != HF_PART_TEXT || hf_turn_span_blank(part->content))
        return false;
    if (part->phase == HF_PHASE_FINAL)
        return true;
    for (size_t i = 0; i < response->part_count; i++)
        if (response->parts[i].kind == HF_PART_TEXT &&
            response->parts[i].phase == HF_PHASE_FINAL)
            return part->phase != HF_PHASE_COMMENTARY;
    return true;
}

static size_t newlines_at_end(const char *text, size_t len)
{
    size_t count = 0;
    while (count < len && text[len - 1 - count] == '\n')
        count++;
    return count;
}

static size_t newlines_at_start(struct hf_span text)
{
    const char *at = text.at;
    size_t count = 0;
    while (count < text.len && at[count] == '\n')
        count++;
    return count;
}

/* The visible text as one, parts set apart by a blank line at least. */
static int join_text(struct hf_move *move, const struct hf_llm_response *response,
                     struct hf_span *ret_text, struct hf_err *err)
{
    size_t room = 1;
    size_t used = 0;
    for (size_t i = 0; i < response->part_count; i++)
        if (shows(response, &response->parts[i]))
            room += response->parts[i].content.len + 2;
    char *text = hf_move_take(move, room);
    if (!text)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; i < response->part_count; i++) {
        const struct hf_part *part = &response->parts[i];
        if (!shows(response, part))
            continue;
        size_t gap = newlines_at_end(text, used) + newlines_at_start(part->content);
        for (; used > 0 && gap < 2; gap++)
            text[used++] = '\n';
        memcpy(text + used, part->content.at, part->content.len);
        used += part->content.len;
    }
    if (used > (size_t)HF_MAX_TURN_TEXT_BYTES)
        used = hf_utf8_cut(text, (size_t)HF_MAX_TURN_TEXT_BYTES);
    text[used] = '\0';
    *ret_text = (struct hf_span){ text, used };
    return 0;
}

/* What came with the reply is clean and lives in the move, so it is not copied again. */
static int show_reply(struct hf_move *move, const struct hf_llm_response *response,
                      struct hf_span text, struct hf_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < response->part_count; i++) {
        if (response->text_streamed || !shows(response, &response->parts[i]))
            continue;
        struct hf_emit delta = { .kind = HF_EMIT_TEXT_DELTA,
                                 .text = response->parts[i].content };
        rc = hf_move_emit(move, &delta, err);
    }
    struct hf_emit whole = { .kind = HF_EMIT_LLM_RESPONSE,
                             .text = text,
                             .code = response->response_id };
    return rc ? rc : hf_move_emit(move, &whole, err);
}

static bool has_kind(const struct hf_llm_response *response, enum hf_part_kind kind)
{
    for (size_t i = 0; i < response->part_count; i++)
        if (response->parts[i].kind == kind)
            return true;
    return false;
}

/* Whether the last message answers a tool call. A base that cannot lend it now is not an
 * answer to that: HF_EBASE, and the host feeds the reply again. */
static int after_tool_result(struct hf_move *move, bool *ret_after, struct hf_err *err)
{
    *ret_after = false;
    for (uint64_t i = hf_move_record_count(move); i > 0; i--) {
        const struct hf_record *record = hf_move_record(move, i - 1);
        if (!record)
            return hf_fail_plain(err, HF_EBASE);
        if (record->kind != HF_RECORD_MESSAGE)
            continue;
        const struct hf_message *message = record->message;
        for (size_t p = 0; p < message->part_count; p++)
            *ret_after = *ret_after || message->parts[p].kind == HF_PART_TOOL_RESULT;
        return 0;
    }
    return 0;
}

static int append_clean(struct hf_move *move, const struct hf_message *message,
                        struct hf_err *err)
{
    struct hf_record record = { .kind = HF_RECORD_MESSAGE, .message = message };
    return hf_move_append(move, HF_COPY_TRUST, &record, err);
}

static int keep_part(struct hf_move *move, struct hf_kept *kept,
                     const struct hf_part *part, struct hf_err *err)
{
    return hf_value_copy(&move->turn->keep, &hf_s_part, HF_COPY_TRUST, part,
                         &kept->parts[kept->message.part_count++], err);
}

static int keep_prose(struct hf_move *move, struct hf_kept *kept,
                      const struct hf_llm_response *response, struct hf_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < response->part_count; i++) {
        if (!shows(response, &response->parts[i]))
            continue;
        struct hf_part part = response->parts[i];
        part.kind = HF_PART_PROSE;
        rc = keep_part(move, kept, &part, err);
    }
    return rc;
}

/* The calls in order under their ids here, each with the reasoning that was before it. */
static int keep_calls(struct hf_move *move, struct hf_kept *kept,
                      const struct hf_llm_response *response,
                      const struct hf_tool_call *calls, struct hf_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < response->part_count; i++) {
        struct hf_part part = response->parts[i];
        if (part.kind == HF_PART_TOOL_CALL) {
            const char *given = part.call_id;
            part.provider_id = given && given[0] ? given : NULL;
            part.call_id = calls->call_id;
            part.tool = calls++->tool;
        }
        if (part.kind == HF_PART_REASONING || part.kind == HF_PART_TOOL_CALL)
            rc = keep_part(move, kept, &part, err);
    }
    return rc;
}

static bool keep_note(struct hf_move *move, const char *note, const char **ret_kept)
{
    *ret_kept = hf_arena_text(&move->turn->keep, note);
    return !note || *ret_kept;
}

/* Prose first, then the calls. No part becomes two, so there is room for all. */
static int append_calls(struct hf_move *move, const struct hf_llm_response *response,
                        const struct hf_tool_call *calls, struct hf_err *err)
{
    struct hf_kept *kept = hf_move_keep(move, "calls", HF_ROLE_ASSISTANT,
                                        response->part_count);
    if (!kept || !keep_note(move, response->response_id, &kept->message.response_id) ||
        !keep_note(move, response->model, &kept->message.model))
        return hf_fail_plain(err, HF_ENOMEM);
    int rc = keep_prose(move, kept, response, err);
    if (rc == 0)
        rc = keep_calls(move, kept, response, calls, err);
    return rc ? rc : hf_move_adopt(move, &kept->record, err);
}

static int start_calls(struct hf_move *move, const struct hf_llm_response *response,
                       struct hf_err *err)
{
    const struct hf_tool_call *calls = NULL;
    size_t count = 0;
    int rc = hf_move_calls(move, response, &calls, &count, err);
    if (rc == 0)
        rc = append_calls(move, response, calls, err);
    return rc ? rc : hf_act_start_tools(move, calls, count, err);
}

/* The answer with the reasoning that came with it, in the model's order. Without words there
 * is no message: reasoning alone is none that a provider takes back. */
static int plan_answer(struct hf_move *move, const struct hf_llm_response *response,
                       struct hf_span text, struct hf_err *err)
{
    struct hf_outcome outcome = { .kind = HF_OUTCOME_ASSISTANT_MESSAGE, .text = text };
    struct hf_part *parts = hf_move_take(move, response->part_count * sizeof(*parts));
    size_t count = 0;
    if (!parts)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; i < response->part_count; i++) {
        bool words = shows(response, &response->parts[i]);
        if (!words && response->parts[i].kind != HF_PART_REASONING)
            continue;
        parts[count] = response->parts[i];
        if (words)
            parts[count].kind = HF_PART_PROSE;
        count++;
    }
    int rc = text.len == 0
                 ? 0
                 : hf_move_answer(move, parts, count, response, &outcome.message, err);
    return rc ? rc
              : hf_act_checkpoint(move, HF_CHECKPOINT_BEFORE_COMPLETION, &outcome, err);
}

static int llm_done(const struct hf_protocol *protocol, struct hf_move *move,
                    const struct hf_llm_response *response,
                    const struct hf_driver_state *driver, struct hf_err *err)
{
    (void)protocol;
    (void)driver;
    struct hf_span text = { 0 };
    int rc = join_text(move, response, &text, err);
    if (rc == 0)
        rc = show_reply(move, response, text, err);
    if (rc)
        return rc;
    if (has_kind(response, HF_PART_TOOL_CALL))
        return start_calls(move, response, err);
    bool fine = text.len > 0 || has_kind(response, HF_PART_REASONING);
    if (!fine)
        rc = after_tool_result(move, &fine, err);
    if (rc || !fine)
        return rc ? rc : hf_turn_end_empty(move, err);
    return plan_answer(move, response, text, err);
}

/* Results */

static int append_results(struct hf_move *move, const struct hf_tool_call *calls,
                          size_t count, struct hf_err *err)
{
    const struct hf_part **views = hf_move_take(move, count * sizeof(*views));
    size_t *counts = hf_move_take(move, count * sizeof(*counts));
    const char *id = hf_move_id(move, "results");
    if (!views || !counts || !id)
        return hf_fail_plain(err, HF_ENOMEM);
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        int rc = hf_move_view(move, &calls[i], &views[i], &counts[i], err);
        if (rc)
            return rc;
        total += counts[i];
    }
    struct hf_part *parts = hf_move_take(move, total * sizeof(*parts));
    if (!parts)
        return hf_fail_plain(err, HF_ENOMEM);
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        memcpy(parts + used, views[i], counts[i] * sizeof(*parts));
        used += counts[i];
    }
    struct hf_message message = {
        .id = id, .role = HF_ROLE_USER, .parts = parts, .part_count = total
    };
    return append_clean(move, &message, err);
}

static int end_at_limit(struct hf_move *move, struct hf_err *err)
{
    const char *id = hf_move_id(move, "limit");
    if (!id)
        return hf_fail_plain(err, HF_ENOMEM);
    struct hf_part part = { .kind = HF_PART_ERROR,
                            .content = hf_text_of("the turn stopped at its limit") };
    struct hf_message message = {
        .id = id, .role = HF_ROLE_SYSTEM, .parts = &part, .part_count = 1
    };
    struct hf_outcome outcome = { .kind = HF_OUTCOME_MAX_TURNS };
    int rc = hf_act_message(move, &message, err);
    return rc ? rc : hf_act_finish(move, &outcome, err);
}

static int tools_done(const struct hf_protocol *protocol, struct hf_move *move,
                      const struct hf_tool_call *calls, size_t count, struct hf_err *err)
{
    (void)protocol;
    int rc = append_results(move, calls, count, err);
    if (rc)
        return rc;
    struct hf_outcome outcome;
    /* The first success with a control that ends the turn decides. */
    for (size_t i = 0; i < count; i++)
        if (hf_result_decides(calls[i].result, &outcome))
            return hf_act_finish(move, &outcome, err);
    rc = hf_act_advance(move, err);
    if (rc)
        return rc;
    if (hf_move_limit_reached(move))
        return end_at_limit(move, err);
    return hf_act_checkpoint(move, HF_CHECKPOINT_AFTER_WORK, NULL, err);
}

const struct hf_protocol *hf_protocol_standard(void)
{
    static const struct hf_protocol_ops ops = { .id = "standard",
                                                .prepare = prepare,
                                                .llm_done = llm_done,
                                                .tools_done = tools_done };
    static const struct hf_protocol standard = { .ops = &ops };
    return &standard;
}
