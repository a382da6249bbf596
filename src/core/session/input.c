/* The units that are inputs of sessions. */
#include "base/err.h"
#include "base/json.h"
#include "core/ledger/retry.h"
#include "core/session/session.h"

#define PRIORITY 3

static const char *created_note(struct hf_arena *arena, const char *session_id)
{
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, arena->alloc, 4096);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    hf_json_put_str(&json, "session_id", session_id);
    hf_json_end(&json);
    return hf_buf_keep(&text, arena);
}

static bool is_blank(struct hf_span text)
{
    const char *at = text.at;
    for (size_t i = 0; i < text.len; i++)
        if (at[i] != ' ' && at[i] != '\t' && at[i] != '\r' && at[i] != '\n')
            return false;
    return true;
}

int hf_session_message_check(const struct hf_message *message, struct hf_err *err)
{
    for (size_t i = 0; i < message->part_count; i++)
        if (message->parts[i].kind != HF_PART_TEXT ||
            !is_blank(message->parts[i].content))
            return 0;
    return hf_fail(
        err, HF_EINVAL, "message",
        "the message is empty: write a text that is not blank, or add an attachment");
}

int hf_session_input_row(struct hf_arena *arena,
                         const struct hf_session_input_spec *input,
                         const struct hf_caller *who, const struct hf_env *env,
                         struct hf_row *ret_row, struct hf_err *err)
{
    const struct hf_work_spec *request = input->request;
    const char *note = created_note(arena, input->session_id);
    if (!note)
        return hf_fail_plain(err, HF_ENOMEM);
    *ret_row = (struct hf_row){
        .w = {
            .work_id = input->work_id,
            .tenant = who->tenant,
            .source_system = hf_source_word(request->source),
            .source_id = request->source_id,
            .source_run_id = request->source_run_id ? request->source_run_id
                                                    : input->work_id,
            .kind = request->kind,
            .queue = HF_SESSION_QUEUE,
            .parent_work_id = request->parent_work_id,
            .correlation_id = who->correlation_id,
            .session_id = input->session_id,
            .status = hf_status_word(HF_STATUS_QUEUED),
            .gate = "lane",
            .priority = PRIORITY,
            .max_attempts = hf_retry_default.max_attempts,
            .due_at = env->now,
            .payload = request->payload,
            .retry_policy = hf_retry_default_text,
            .created_at = env->now,
            .updated_at = env->now,
        },
        .status = HF_STATUS_QUEUED,
        .source = request->source,
        .fair_weight = 1,
        .actor_kind = env->actor_kind,
        .actor = env->actor,
        .note = note,
    };
    return 0;
}
