/* Operation ids and what is noted of refusals. */
#include <holdfast/limits.h>
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/json.h"
#include "store/sql_change.h"

#define SCOPE "work.change"
#define NOTE_EVERY_MS 60000

/* What the operation asks, as typed: the same id with other content is a conflict. */
static int content_hash(const struct changing *c, uint8_t ret_hash[HF_DIGEST_BYTES])
{
    struct hf_digest digest;
    hf_digest_begin(&digest, SCOPE, 1);
    for (size_t i = 0; i < c->n; i++) {
        const struct hf_change *change = c->slots[i].change;
        hf_digest_i64(&digest, change->verb);
        hf_digest_text(&digest, change->id);
        hf_digest_text(&digest, change->ref);
        hf_digest_i64(&digest, change->status);
        hf_digest_text(&digest, change->reason);
        hf_digest_text(&digest, change->error_class);
        hf_digest_text(&digest, change->payload);
        hf_digest_text(&digest, change->owner);
        hf_digest_text(&digest, change->authority);
        hf_digest_text(&digest, change->summary);
    }
    return hf_digest_end(&digest, ret_hash);
}

/* A repeated operation is answered with the rows as they are now. */
static int show_repeated(struct changing *c, struct hf_err *err)
{
    for (size_t i = 0; i < c->n; i++) {
        struct slot *slot = &c->slots[i];
        struct hf_ops ops;
        struct hf_row row;
        hf_ops_init(&ops, c->store->sql, c->store->base.alloc);
        int rc = slot->change->id ? sql_find(&ops, slot->change->id, &row, err) : 0;
        if (rc == 0 && slot->change->id &&
            hf_item_show(c->answer, slot->item, &row, (c->flags & HF_BRIEF) != 0))
            rc = hf_fail_plain(err, HF_ENOMEM);
        hf_ops_fini(&ops);
        if (rc && rc != HF_ENOTFOUND)
            return rc;
        slot->item->repeated = true;
        slot->settled = true;
    }
    c->answered = true;
    return 0;
}

int change_repeat(struct changing *c, struct hf_err *err)
{
    uint8_t hash[HF_DIGEST_BYTES];
    if (!c->who->operation_id)
        return 0;
    if (content_hash(c, hash))
        return hf_fail_plain(err, HF_ENOMEM);
    struct hf_ops ops;
    hf_ops_init(&ops, c->store->sql, c->store->base.alloc);
    hf_ops_call(&ops, HF_SQL_RECEIPT_READ, HF_ANY_COUNT);
    hf_ops_text(&ops, c->who->tenant);
    hf_ops_text(&ops, SCOPE);
    hf_ops_text(&ops, c->who->operation_id);
    int rc = hf_ops_read(&ops, err);
    const struct hf_call *found = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
    bool seen = found && found->out_count > 0;
    bool same = seen && hf_cell(found, 0, 0)->len == sizeof hash &&
                memcmp(hf_cell(found, 0, 0)->at, hash, sizeof hash) == 0;
    hf_ops_fini(&ops);
    if (rc || !seen)
        return rc;
    if (!same)
        return hf_fail(err, HF_ECONFLICT, "operation_id",
                       "operation id %s was used before with other content",
                       c->who->operation_id);
    return show_repeated(c, err);
}

void change_add_receipt(struct changing *c, struct hf_ops *ops)
{
    if (!c->who->operation_id)
        return;
    uint8_t *hash = hf_arena_take(&ops->arena, HF_DIGEST_BYTES);
    if (!hash || content_hash(c, hash)) {
        ops->state = HF_ENOMEM;
        return;
    }
    hf_ops_call(ops, HF_SQL_RECEIPT_WRITE, 1);
    hf_ops_text(ops, c->who->tenant);
    hf_ops_text(ops, SCOPE);
    hf_ops_text(ops, c->who->operation_id);
    hf_ops_bytes(ops, hash, HF_DIGEST_BYTES);
    hf_ops_null(ops);
}

bool change_is_receipt(const struct changing *c, const struct hf_ops *ops)
{
    return c->who->operation_id && ops->batch.failed_call + 1 == ops->batch.call_count;
}

/* A refusal changes no row; one event a minute and row tells the operator of it. A result
 * that came too late is kept whole: it may be all that is left of the work. */
static const char *note_type(const struct slot *slot)
{
    bool result = slot->change->verb == HF_VERB_CLOSE_OUT ||
                  slot->change->verb == HF_VERB_FAIL;
    if (slot->item->code == HF_ETRANSITION)
        return "transition_rejected";
    return slot->item->code == HF_ELEASELOST && result ? "late_result" : NULL;
}

static const char *note_json(struct hf_arena *arena, const struct hf_change *change)
{
    struct hf_buf buf;
    struct hf_json json;
    hf_buf_init(&buf, arena->alloc, (size_t)HF_MAX_SUMMARY_BYTES * 8);
    hf_json_begin(&json, &buf);
    hf_json_object(&json);
    hf_json_opt_str(&json, "error_class", change->error_class);
    hf_json_opt_str(&json, "reason", change->reason);
    hf_json_opt_str(&json, "status", hf_status_word(change->status));
    hf_json_opt_str(&json, "summary", change->summary);
    hf_json_put_str(&json, "verb", hf_verb_word(change->verb));
    hf_json_end(&json);
    const char *text = hf_buf_state(&buf)
                           ? NULL
                           : hf_arena_copy(arena, hf_buf_str(&buf), buf.len);
    hf_buf_fini(&buf);
    return text;
}

static void add_note(struct changing *c, struct hf_ops *ops, const struct slot *slot,
                     const char *type)
{
    hf_ops_call(ops, HF_SQL_EVENT_APPEND_RARE, HF_ANY_COUNT);
    hf_ops_i64(ops, slot->was.seq);
    hf_ops_text(ops, type);
    hf_ops_text(ops, c->who->actor_kind);
    hf_ops_text(ops, c->who->actor);
    hf_ops_text(ops, slot->item->message);
    hf_ops_text(ops, note_json(&c->arena, slot->change));
    hf_ops_text(ops, c->who->correlation_id);
    hf_ops_i64(ops, NOTE_EVERY_MS);
}

void change_note_refusals(struct changing *c)
{
    struct hf_ops ops;
    hf_ops_init(&ops, c->store->sql, c->store->base.alloc);
    for (size_t i = 0; i < c->n; i++) {
        const struct slot *slot = &c->slots[i];
        const char *type = slot->refused && slot->was.seq ? note_type(slot) : NULL;
        if (type)
            add_note(c, &ops, slot, type);
    }
    if (ops.batch.call_count > 0)
        (void)hf_ops_write(&ops,
                           NULL); /* best effort: the refusal itself is the answer */
    hf_ops_fini(&ops);
}
