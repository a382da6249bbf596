/* hf_work_change with an operation id (operation.c has the receipts themselves), and the events
 * about refused changes. A refusal changes no row; one event per minute and row tells the operator
 * of it. */
#include <holdfast/bounds.h>
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/json_get.h"
#include "store/work/change.h"

#define SCOPE "work.change"
#define NOTE_EVERY_MS 60000
#define RESULT_BYTES (1 << 20)

static void digest_list(struct hf_digest *digest, const char *const *items, size_t n)
{
    hf_digest_i64(digest, (int64_t)n);
    for (size_t i = 0; i < n; i++)
        hf_digest_text(digest, items[i]);
}

/* What the operation asks, as typed: the same id with other content is a conflict. */
static int content_hash(const struct changing *c, uint8_t ret_hash[HF_DIGEST_BYTES])
{
    struct hf_digest digest;
    hf_digest_begin(&digest, SCOPE, 1);
    for (size_t i = 0; i < c->n; i++) {
        const struct hf_change *change = c->slots[i].change;
        const char *const texts[] = {
            change->id,          change->token,       change->authority, change->reason,
            change->summary,     change->error_class, change->reviewer,  change->type,
            change->payload,     change->ref,         change->escalate,  change->owner,
            change->incarnation, change->nonce,
        };
        const int64_t numbers[] = { change->verb,       change->status,
                                    change->timeout_ms, change->escalate_after_ms,
                                    change->pid,        change->ttl_ms,
                                    change->anew };
        for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++)
            hf_digest_text(&digest, texts[k]);
        for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
            hf_digest_i64(&digest, numbers[k]);
        digest_list(&digest, change->outputs, change->output_count);
        digest_list(&digest, change->evidence, change->evidence_count);
    }
    return hf_digest_end(&digest, ret_hash);
}

/* What was answered: a code and an id for each item. */
static const char *result_json(const struct changing *c, struct hf_arena *arena)
{
    struct hf_buf buf;
    struct hf_json json;
    hf_buf_init(&buf, arena->alloc, RESULT_BYTES);
    hf_json_begin(&json, &buf);
    hf_json_array(&json);
    for (size_t i = 0; i < c->n; i++) {
        const struct change_slot *slot = &c->slots[i];
        /* Of a refused item nothing is left to look at: its row was of an earlier read. */
        const char *id = slot->change->id || slot->refused ? slot->change->id
                                                           : slot->was.w.work_id;
        hf_json_array(&json);
        hf_json_i64(&json, slot->item->code);
        hf_json_str(&json, id);
        hf_json_end(&json);
    }
    hf_json_end(&json);
    return hf_buf_keep(&buf, arena);
}

static int show_again(struct changing *c, struct change_slot *slot,
                      const struct json_t *told, struct hf_err *err)
{
    int code = (int)hf_json_as_i64(hf_json_item(told, 0));
    const char *id = hf_json_as_text(hf_json_item(told, 1));
    *slot->item = (struct hf_item){ .repeated = true };
    slot->answered = true;
    slot->refused = false;
    if (code) {
        struct hf_err why = { 0 };
        (void)hf_fail_plain(&why, code);
        return hf_item_fail(c->answer, slot->item, &why);
    }
    struct hf_ops ops;
    struct hf_row row;
    hf_ops_init(&ops, c->store->sql, c->store->handle.alloc);
    int rc = id ? sql_find(&ops, id, &row, err) : HF_ENOTFOUND;
    if (rc == 0 && hf_item_show(c->answer, slot->item, &row, (c->flags & HF_BRIEF) != 0))
        rc = hf_fail_plain(err, HF_ENOMEM);
    hf_ops_fini(&ops);
    if (rc != HF_ENOTFOUND)
        return rc;
    slot->item->work.work_id = hf_answer_text(c->answer, id); /* pruned meanwhile */
    return 0;
}

/* A repeated operation is answered as the first, with the rows as they are now. */
static int show_repeated(struct changing *c, const char *result, struct hf_err *err)
{
    struct json_t *told = NULL;
    struct hf_span text = { result ? result : "[]", result ? strlen(result) : 2 };
    int rc = hf_json_parse(text, RESULT_BYTES, "receipt", &told, err);
    for (size_t i = 0; rc == 0 && i < c->n; i++)
        rc = show_again(c, &c->slots[i], hf_json_item(told, i), err);
    hf_json_free(told);
    c->answered = rc == 0;
    return rc;
}

int change_repeat(struct changing *c, struct hf_err *err)
{
    uint8_t hash[HF_DIGEST_BYTES];
    if (!c->who->operation_id)
        return 0;
    if (content_hash(c, hash))
        return hf_fail_plain(err, HF_ENOMEM);
    const char *result = NULL;
    struct hf_ops ops;
    hf_ops_init(&ops, c->store->sql, c->store->handle.alloc);
    int rc = sql_receipt_find(&ops, c->who, SCOPE, hash, &result, err);
    if (rc == 1)
        rc = show_repeated(c, result, err);
    hf_ops_fini(&ops);
    return rc;
}

void change_add_receipt(struct changing *c, struct hf_ops *ops)
{
    uint8_t hash[HF_DIGEST_BYTES];
    if (!c->who->operation_id)
        return;
    const char *result = result_json(c, &ops->arena);
    if (!result || content_hash(c, hash))
        ops->state = HF_ENOMEM;
    else
        sql_receipt_add(ops, c->who, SCOPE, hash, result);
}

bool change_is_receipt(const struct changing *c, const struct hf_ops *ops)
{
    return c->who->operation_id && ops->batch.failed_call + 1 == ops->batch.call_count;
}

/* The type of the event about a refused change; NULL: none is written. A result that came too late
 * is kept whole: it may be all that is left of the work. */
static const char *note_type(const struct change_slot *slot)
{
    bool result = slot->change->verb == HF_VERB_CLOSE_OUT ||
                  slot->change->verb == HF_VERB_FAIL;
    if (slot->item->code == HF_ETRANSITION)
        return "transition_rejected";
    return slot->item->code == HF_ELEASELOST && result ? "late_result" : NULL;
}

static void put_list(struct hf_json *json, const char *key, const char *const *items,
                     size_t n)
{
    if (n == 0)
        return;
    hf_json_key(json, key);
    hf_json_array(json);
    for (size_t i = 0; i < n; i++)
        hf_json_str(json, items[i]);
    hf_json_end(json);
}

/* NULL: no memory, or more than an event may hold. */
static const char *note_of(struct hf_arena *arena, const struct hf_change *change,
                           bool whole)
{
    struct hf_buf buf;
    struct hf_json json;
    hf_buf_init(&buf, arena->alloc, (size_t)HF_MAX_EVENT_BYTES);
    hf_json_begin(&json, &buf);
    hf_json_object(&json);
    hf_json_opt_str(&json, "error_class", change->error_class);
    if (whole) {
        put_list(&json, "evidence", change->evidence, change->evidence_count);
        put_list(&json, "outputs", change->outputs, change->output_count);
    }
    hf_json_opt_str(&json, "reason", change->reason);
    hf_json_opt_str(&json, "reviewer", change->reviewer);
    hf_json_opt_str(&json, "status", hf_status_word(change->status));
    if (whole)
        hf_json_opt_str(&json, "summary", change->summary);
    else
        hf_json_put_bool(&json, "too_large", true);
    hf_json_put_str(&json, "verb", hf_verb_word(change->verb));
    hf_json_end(&json);
    return hf_buf_keep(&buf, arena);
}

/* What does not fit into an event is left out, and that is said. */
static const char *note_json(struct hf_arena *arena, const struct hf_change *change)
{
    const char *text = note_of(arena, change, true);
    return text ? text : note_of(arena, change, false);
}

static void add_note(struct changing *c, struct hf_ops *ops,
                     const struct change_slot *slot, const char *type)
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
    hf_ops_init(&ops, c->store->sql, c->store->handle.alloc);
    for (size_t i = 0; i < c->n; i++) {
        const struct change_slot *slot = &c->slots[i];
        const char *type = slot->refused && slot->was.seq ? note_type(slot) : NULL;
        if (type)
            add_note(c, &ops, slot, type);
    }
    if (ops.batch.call_count > 0)
        (void)hf_ops_write(&ops,
                           NULL); /* best effort: the refusal itself is the answer */
    hf_ops_fini(&ops);
}
