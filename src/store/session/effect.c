/* The effect journal of turns, as far as the store is concerned: intents (an effect will be
 * performed) and outcomes join the batch of a step, and a load shows the entries that are open.
 * What an entry means is told by core/effect. The last part lists effects of which no outcome is
 * known. */
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "store/session/session.h"

static const char *usage_json(struct hf_ops *ops, const struct hf_usage *usage)
{
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, ops->arena.alloc, 512);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    hf_json_put_i64(&json, "cache_read", usage->cache_read);
    hf_json_put_i64(&json, "cache_write", usage->cache_write);
    hf_json_put_i64(&json, "input", usage->input);
    hf_json_put_i64(&json, "output", usage->output);
    hf_json_put_i64(&json, "reasoning", usage->reasoning);
    hf_json_end(&json);
    const char *kept = hf_buf_keep(&text, &ops->arena);
    if (!kept)
        ops->state = HF_ENOMEM;
    return kept;
}

/* A text of the caller's that need not end in a NUL. */
static void put_span(struct hf_ops *ops, struct hf_span span)
{
    const char *kept = hf_arena_copy(&ops->arena, span.at, span.len);
    if (!kept)
        ops->state = HF_ENOMEM;
    hf_ops_text(ops, kept);
}

static void add_settled(struct hf_ops *ops, const struct hf_session_step *step)
{
    hf_ops_call(ops, HF_SQL_EFFECTS_SETTLE, (int64_t)step->settled_count);
    for (size_t i = 0; i < step->settled_count; i++) {
        const struct hf_effect_settled *one = &step->settled[i];
        if (i > 0)
            hf_ops_again(ops);
        hf_ops_text(ops, step->session_id);
        hf_ops_text(ops, step->turn_id);
        hf_ops_text(ops, one->key);
        hf_ops_text(ops, hf_entry_status_name(one->status));
        put_span(ops, one->outcome);
        hf_ops_text(ops, one->usage ? usage_json(ops, one->usage) : NULL);
        hf_ops_i64_opt(ops, one->due_at);
        hf_ops_i64(ops, one->taken_over);
    }
}

static void add_begun(struct hf_ops *ops, const struct hf_session_step *step,
                      int64_t fence)
{
    hf_ops_call(ops, HF_SQL_EFFECTS_BEGIN, (int64_t)step->begun_count);
    for (size_t i = 0; i < step->begun_count; i++) {
        const struct hf_effect_entry *one = &step->begun[i];
        if (i > 0)
            hf_ops_again(ops);
        hf_ops_text(ops, step->session_id);
        hf_ops_text(ops, step->turn_id);
        hf_ops_i64(ops, fence);
        hf_ops_text(ops, one->key);
        hf_ops_text(ops, one->kind);
        hf_ops_text(ops, hf_recovery_name(one->recovery));
        hf_ops_i64(ops, one->attempt);
        put_span(ops, one->envelope);
    }
}

static void add_blobs(struct hf_ops *ops, const struct hf_session_step *step)
{
    hf_ops_call(ops, HF_SQL_BLOBS_ADD, HF_ANY_COUNT);
    for (size_t i = 0; i < step->blob_count; i++) {
        if (i > 0)
            hf_ops_again(ops);
        hf_ops_bytes(ops, step->blobs[i].hash, sizeof step->blobs[i].hash);
        hf_ops_bytes(ops, step->blobs[i].bytes.at, step->blobs[i].bytes.len);
    }
}

size_t session_effects_add(struct hf_ops *ops, const struct hf_session_step *step,
                           int64_t fence)
{
    size_t first = ops->batch.call_count;
    if (step->settled_count > 0)
        add_settled(ops, step);
    if (step->begun_count > 0)
        add_begun(ops, step, fence);
    if (step->blob_count > 0)
        add_blobs(ops, step);
    return first;
}

/* ---- reading ------------------------------------------------------------------------- */

#define OPEN(name) HF_COL_EFFECTS_OPEN_##name
#define UNKNOWN(name) HF_COL_EFFECTS_UNKNOWN_##name

static struct hf_span copy_cell(struct hf_session_answer *answer,
                                const struct hf_val *cell, bool *failed)
{
    if (cell->type != HF_VAL_TEXT)
        return (struct hf_span){ 0 };
    const char *kept = hf_session_answer_copy(answer,
                                              (struct hf_span){ cell->at, cell->len });
    *failed = *failed || !kept;
    return (struct hf_span){ kept, cell->len };
}

static int show_entry(struct hf_session_answer *answer, const struct hf_call *found,
                      size_t i, struct hf_effect_entry *entry, struct hf_err *err)
{
    bool failed = false;
    entry->attempt = hf_out_i64(found, i, OPEN(ATTEMPT));
    entry->due_at = hf_out_i64(found, i, OPEN(DUE_AT));
    entry->fence = hf_out_i64(found, i, OPEN(FENCE));
    entry->key = copy_cell(answer, hf_out(found, i, OPEN(EFFECT_KEY)), &failed).at;
    entry->kind = copy_cell(answer, hf_out(found, i, OPEN(KIND)), &failed).at;
    entry->envelope = copy_cell(answer, hf_out(found, i, OPEN(ENVELOPE)), &failed);
    entry->outcome = copy_cell(answer, hf_out(found, i, OPEN(OUTCOME)), &failed);
    if (failed)
        return hf_fail_plain(err, HF_ENOMEM);
    if (!hf_recovery_read(hf_out_text(found, i, OPEN(RECOVERY)), &entry->recovery) ||
        !hf_entry_status_read(hf_out_text(found, i, OPEN(STATUS)), &entry->status) ||
        !entry->key)
        return hf_fail(err, HF_ECORRUPT, "effect",
                       "an entry of the journal is not known");
    return 0;
}

int session_effects_show(struct hf_session_answer *answer, const struct hf_call *found,
                         struct hf_session_turn *turn, struct hf_err *err)
{
    struct hf_effect_entry *entries = hf_session_answer_memory(
        answer, found->out_count * sizeof *entries);
    int rc = entries ? 0 : hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; rc == 0 && i < found->out_count; i++)
        rc = show_entry(answer, found, i, &entries[i], err);
    if (rc)
        return rc;
    turn->entries = entries;
    turn->entry_count = found->out_count;
    return 0;
}

int sql_session_blob_put(struct hf_store *handle, const uint8_t hash[32],
                         struct hf_span bytes, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_BLOBS_ADD, HF_ANY_COUNT);
    hf_ops_bytes(&ops, hash, 32);
    hf_ops_bytes(&ops, bytes.at, bytes.len);
    int rc = hf_ops_write(&ops, err);
    hf_ops_fini(&ops);
    return rc;
}

int sql_session_blob(struct hf_store *handle, const uint8_t hash[32],
                     struct hf_session_answer *answer, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_BLOB_GET, HF_ANY_COUNT);
    hf_ops_bytes(&ops, hash, 32);
    int rc = hf_ops_read(&ops, err);
    const struct hf_call *found = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
    if (rc == 0 && found->out_count == 0)
        rc = hf_fail(err, HF_EBLOB, "hash", "the store has no blob of this hash");
    if (rc == 0) {
        const struct hf_val *cell = hf_out(found, 0, HF_COL_BLOB_GET_BYTES);
        answer->blob.len = cell->len;
        answer->blob.at = hf_session_answer_copy(answer,
                                                 (struct hf_span){ cell->at, cell->len });
        rc = answer->blob.at ? 0 : hf_fail_plain(err, HF_ENOMEM);
    }
    hf_ops_fini(&ops);
    return rc;
}

/* "TURN_KEY EFFECT_KEY": where the next page begins. */
static int read_cursor(struct hf_arena *arena, const char *after, int64_t *ret_turn,
                       const char **ret_key, struct hf_err *err)
{
    const char *gap = after ? strchr(after, ' ') : NULL;
    *ret_turn = 0;
    *ret_key = "";
    if (!after)
        return 0;
    const char *turn = gap ? hf_arena_copy(arena, after, (size_t)(gap - after)) : NULL;
    if (!turn)
        return hf_fail(err, HF_EINVAL, "after", "the cursor is not one of an answer");
    *ret_key = gap + 1;
    return hf_parse_i64(turn, 1, INT64_MAX, "after", ret_turn, err);
}

static int show_cursor(struct hf_session_answer *answer, const struct hf_call *found,
                       const struct hf_alloc *alloc, struct hf_err *err)
{
    struct hf_buf next;
    size_t last = found->out_count - 1;
    hf_buf_init(&next, alloc, 512);
    hf_buf_i64(&next, hf_out_i64(found, last, UNKNOWN(TURN_KEY)));
    hf_buf_char(&next, ' ');
    hf_buf_text(&next, hf_out_text(found, last, UNKNOWN(EFFECT_KEY)));
    answer->next = hf_session_answer_copy(
        answer, (struct hf_span){ hf_buf_str(&next), next.len });
    hf_buf_fini(&next);
    return answer->next ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

static int show_unknown(struct hf_session_answer *answer, const struct hf_call *found,
                        struct hf_err *err)
{
    struct hf_session_effect *all = hf_session_answer_memory(answer, found->out_count *
                                                                         sizeof *all);
    bool failed = !all;
    for (size_t i = 0; !failed && i < found->out_count; i++)
        all[i] = (struct hf_session_effect){
            .started_at = hf_out_i64(found, i, UNKNOWN(STARTED_AT)),
            .settled_at = hf_out_i64(found, i, UNKNOWN(SETTLED_AT)),
            .attempt = hf_out_i64(found, i, UNKNOWN(ATTEMPT)),
            .session_id =
                copy_cell(answer, hf_out(found, i, UNKNOWN(SESSION_ID)), &failed).at,
            .turn_id = copy_cell(answer, hf_out(found, i, UNKNOWN(TURN_ID)), &failed).at,
            .key = copy_cell(answer, hf_out(found, i, UNKNOWN(EFFECT_KEY)), &failed).at,
            .kind = copy_cell(answer, hf_out(found, i, UNKNOWN(KIND)), &failed).at,
            .recovery =
                copy_cell(answer, hf_out(found, i, UNKNOWN(RECOVERY)), &failed).at,
            .outcome = copy_cell(answer, hf_out(found, i, UNKNOWN(OUTCOME)), &failed).at,
        };
    if (failed)
        return hf_fail_plain(err, HF_ENOMEM);
    answer->effects = all;
    answer->effect_count = found->out_count;
    return 0;
}

int sql_session_unknown(struct hf_store *handle, const struct hf_caller *who,
                        const char *after, size_t limit, struct hf_session_answer *answer,
                        struct hf_err *err)
{
    struct hf_ops ops;
    int64_t turn = 0;
    const char *key = NULL;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    int rc = read_cursor(&ops.arena, after, &turn, &key, err);
    if (rc == 0) {
        hf_ops_call(&ops, HF_SQL_EFFECTS_UNKNOWN, HF_ANY_COUNT);
        hf_ops_text(&ops, who->tenant[0] ? who->tenant : NULL);
        hf_ops_i64(&ops, turn);
        hf_ops_text(&ops, key);
        hf_ops_i64(&ops, (int64_t)limit);
        rc = hf_ops_read(&ops, err);
    }
    const struct hf_call *found = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
    if (rc == 0)
        rc = show_unknown(answer, found, err);
    if (rc == 0 && found->out_count == limit)
        rc = show_cursor(answer, found, handle->alloc, err);
    hf_ops_fini(&ops);
    return rc;
}
