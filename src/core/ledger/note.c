/* The JSON next to an event. One writer, so that every note spells the same fact
 * alike. */

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/json.h"
#include "core/ledger/draft.h"

static void opt_raw(struct hf_json *json, const char *key, const char *text)
{
    if (text)
        hf_json_put_raw(json, key, text);
}

static void opt_list(struct hf_json *json, const char *key, const char *const *items,
                     size_t count)
{
    if (count == 0)
        return;
    hf_json_key(json, key);
    hf_json_array(json);
    for (size_t i = 0; i < count; i++)
        hf_json_str(json, items[i]);
    hf_json_end(json);
}

static void opt_lease(struct hf_json *json, const char *key, const struct hf_row *row)
{
    if (!row || !row->claim_group)
        return;
    hf_json_key(json, key);
    hf_json_object(json);
    hf_json_put_i64(json, "expires_at", row->w.lease_expires_at);
    hf_json_put_i64(json, "fence", row->w.lease_fence);
    hf_json_opt_i64(json, "grace_ms", row->grace_ms);
    opt_raw(json, "holder", row->w.holder);
    hf_json_opt_str(json, "incarnation", row->w.owner_incarnation);
    hf_json_opt_str(json, "owner", row->w.owner);
    hf_json_put_i64(json, "ttl_ms", row->w.lease_ttl_ms);
    hf_json_end(json);
}

/* What a holder stops itself needs no more than its number: who held it, and how, is
 * in the event of its claim. */
static void put_released(struct hf_json *json, int64_t fence)
{
    hf_json_key(json, "lease_released");
    hf_json_object(json);
    hf_json_put_i64(json, "fence", fence);
    hf_json_end(json);
}

static void put_note(struct hf_json *json, const struct hf_note *note)
{
    hf_json_object(json);
    opt_raw(json, "abandon_request", note->abandon_request);
    if (note->anew)
        hf_json_put_bool(json, "anew", true);
    hf_json_opt_str(json, "authority", note->authority);
    hf_json_opt_i64(json, "deadline_at", note->deadline_at);
    hf_json_opt_i64(json, "delay_ms", note->delay_ms);
    if (note->detached)
        hf_json_put_bool(json, "detached", true);
    hf_json_opt_str(json, "disposition", note->disposition);
    hf_json_opt_i64(json, "due_at", note->due_at);
    hf_json_opt_str(json, "error_class", note->error_class);
    hf_json_opt_str(json, "escalate", note->escalate);
    hf_json_opt_i64(json, "escalate_at", note->escalate_at);
    opt_list(json, "evidence", note->evidence, note->evidence_count);
    hf_json_opt_i64(json, "exec_timeout_ms", note->exec_timeout_ms);
    hf_json_opt_i64(json, "failures", note->failures);
    hf_json_opt_str(json, "from", note->from);
    hf_json_opt_i64(json, "generation", note->generation);
    hf_json_opt_str(json, "kind", note->kind);
    opt_lease(json, "lease", note->lease);
    opt_lease(json, "lease_released", note->lease_lost);
    if (note->released_fence)
        put_released(json, note->released_fence);
    hf_json_opt_i64(json, "max_attempts", note->max_attempts);
    hf_json_opt_i64(json, "next_retry_at", note->next_retry_at);
    opt_list(json, "outputs", note->outputs, note->output_count);
    opt_raw(json, "payload", note->payload);
    hf_json_opt_i64(json, "payload_bytes", note->payload_bytes);
    opt_raw(json, "proof", note->proof);
    hf_json_opt_str(json, "reason", note->reason);
    hf_json_opt_str(json, "ref", note->ref);
    opt_raw(json, "retry_policy", note->retry_policy);
    hf_json_opt_str(json, "reviewer", note->reviewer);
    hf_json_opt_i64(json, "start_timeout_ms", note->start_timeout_ms);
    hf_json_opt_str(json, "status", note->status);
    hf_json_opt_str(json, "summary", note->summary);
    hf_json_opt_i64(json, "timeout_ms", note->timeout_ms);
    hf_json_opt_str(json, "writer", note->writer);
    hf_json_end(json);
}

static int keep(struct hf_draft *draft, struct hf_buf *text, const char **ret_text)
{
    int rc = hf_buf_state(text);
    char *copy = rc ? NULL : hf_arena_copy(draft->arena, hf_buf_str(text), text->len);
    if (rc == 0 && !copy)
        rc = HF_ENOMEM;
    hf_buf_fini(text);
    if (rc)
        return hf_fail_plain(draft->err, rc);
    *ret_text = copy;
    return 0;
}

int hf_note_text(struct hf_draft *draft, const struct hf_note *note,
                 const char **ret_text)
{
    struct hf_buf text;
    struct hf_json json;
    /* An event may carry a payload whole, and escapes make texts longer. */
    hf_buf_init(&text, draft->arena->alloc, 2 * (size_t)HF_MAX_PAYLOAD_BYTES);
    hf_json_begin(&json, &text);
    put_note(&json, note);
    return keep(draft, &text, ret_text);
}

int hf_draft_note(struct hf_draft *draft, const struct hf_note *note)
{
    return hf_note_text(draft, note, &draft->out.row.note);
}

int hf_draft_request(struct hf_draft *draft, const char **ret_text)
{
    const struct hf_row *row = &draft->out.row;
    struct hf_buf by;
    hf_buf_init(&by, draft->arena->alloc, 1024);
    hf_buf_text(&by, row->actor_kind);
    hf_buf_char(&by, ':');
    hf_buf_text(&by, row->actor);

    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, draft->arena->alloc, (size_t)HF_MAX_PAYLOAD_BYTES);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    hf_json_put_i64(&json, "at", draft->env->now);
    hf_json_put_str(&json, "by", hf_buf_str(&by));
    hf_json_opt_str(&json, "reason", draft->change->reason);
    hf_json_end(&json);
    if (text.state == 0)
        text.state = hf_buf_state(&by);
    hf_buf_fini(&by);
    return keep(draft, &text, ret_text);
}
