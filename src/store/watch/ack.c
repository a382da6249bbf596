/* Acknowledging bad ends: a mark on the row, and an event that names the actor. */
#include "base/err.h"
#include "store/watch/watch.h"

#define CHUNK 100 /* rows of one transaction */

struct acking {
    struct hf_store *handle;
    const struct hf_caller *who;
    const struct hf_ack *ack;
    int64_t seqs[CHUNK];
    size_t count;
    struct hf_err *err;
};

static bool is_bad_end(const struct hf_row *row)
{
    return hf_status_terminal(row->status) && row->status != HF_STATUS_DONE &&
           row->status != HF_STATUS_CANCELLED;
}

/* HF_EGUARD: one of the rows was changed by another caller, and none is marked. */
static int mark(struct acking *a)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(a->handle)->sql, a->handle->alloc);
    for (size_t i = 0; i < a->count; i++) {
        const struct hf_row row = { .seq = a->seqs[i],
                                    .actor_kind = a->who->actor_kind,
                                    .actor = a->who->actor,
                                    .message = a->ack->reason,
                                    .event_correlation_id = a->who->correlation_id };
        hf_ops_call(&ops, HF_SQL_WORK_ACK, 1);
        hf_ops_i64(&ops, row.seq);
        hf_event_append(&ops, &row, "work_acknowledged");
    }
    int rc = a->count ? hf_ops_write(&ops, a->err) : 0;
    hf_ops_fini(&ops);
    return rc;
}

/* ---- by id --------------------------------------------------------------------------- */

static int find(struct acking *a, const char *id)
{
    struct hf_ops ops;
    struct hf_row row;
    hf_ops_init(&ops, sql_store_of(a->handle)->sql, a->handle->alloc);
    int rc = sql_find(&ops, id, &row, a->err);
    if (rc == 0 && !is_bad_end(&row))
        rc = hf_fail(a->err, HF_ETRANSITION, "ids",
                     "unit %s is %s: only failed, timeout and abandoned are acknowledged",
                     row.w.work_id, row.w.status);
    bool known = false;
    for (size_t i = 0; rc == 0 && i < a->count; i++)
        known = known || a->seqs[i] == row.seq;
    if (rc == 0 && !row.w.acked_at && !known)
        a->seqs[a->count++] = row.seq;
    hf_ops_fini(&ops);
    return rc;
}

static int ack_ids(struct acking *a, int64_t *ret_count)
{
    int rc = HF_EGUARD;
    for (int try = 0; rc == HF_EGUARD && try < HF_TRIES; try++) {
        rc = 0;
        a->count = 0;
        for (size_t i = 0; rc == 0 && i < a->ack->id_count; i++)
            rc = find(a, a->ack->ids[i]);
        if (rc == 0)
            rc = mark(a);
    }
    if (rc == 0)
        *ret_count = (int64_t)a->count;
    return rc == HF_EGUARD ? hf_fail_plain(a->err, HF_EBUSY) : rc;
}

/* ---- of a kind, or all ------------------------------------------------------------------ */

static int read_chunk(struct acking *a)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(a->handle)->sql, a->handle->alloc);
    hf_ops_call(&ops, HF_SQL_WORK_UNACKED, HF_ANY_COUNT);
    hf_ops_text(&ops, a->who->tenant[0] ? a->who->tenant : NULL);
    hf_ops_text(&ops, a->ack->kind);
    hf_ops_i64(&ops, CHUNK);
    int rc = hf_ops_read(&ops, a->err);
    a->count = rc == 0 ? hf_ops_result(&ops, 0)->out_count : 0;
    for (size_t i = 0; i < a->count; i++)
        a->seqs[i] = hf_out_i64(hf_ops_result(&ops, 0), i, HF_COL_WORK_UNACKED_SEQ);
    hf_ops_fini(&ops);
    return rc;
}

static int ack_many(struct acking *a, int64_t *ret_count)
{
    int64_t marked = 0;
    int rc = 0, refused = 0;
    do {
        rc = read_chunk(a);
        if (rc == 0)
            rc = mark(a);
        if (rc == 0)
            marked += (int64_t)a->count;
        refused = rc == HF_EGUARD ? refused + 1 : 0;
    } while ((rc == 0 && a->count == CHUNK) || (rc == HF_EGUARD && refused < HF_TRIES));
    if (rc == 0)
        *ret_count = marked;
    return rc == HF_EGUARD ? hf_fail_plain(a->err, HF_EBUSY) : rc;
}

int sql_ack(struct hf_store *handle, const struct hf_caller *who,
            const struct hf_ack *ack, int64_t *ret_count, struct hf_err *err)
{
    struct acking acking = { .handle = handle, .who = who, .ack = ack, .err = err };
    return ack->id_count ? ack_ids(&acking, ret_count) : ack_many(&acking, ret_count);
}
