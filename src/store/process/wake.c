/* Waking a session: a unit of its own, in the transaction of what it is woken for. */
#include "base/err.h"
#include "store/process/process.h"

int sql_wake_add(struct sql_store *store, const struct hf_caller *given,
                 struct hf_ops *ops, const struct hf_row *row,
                 const struct hf_wake_cause *cause, struct hf_err *err)
{
    struct hf_env env;
    struct hf_work_spec unit;
    struct hf_caller who = *given;
    struct hf_batch moment = { .now = sql_wall(store) };
    struct hf_making wake;
    who.tenant = row->w.tenant; /* not the caller's */
    int rc = sql_env(store, &who, &moment, &env, err);
    if (rc == 0)
        rc = hf_wake_of_row(&ops->arena, row, cause, &unit, err);
    if (rc == 0)
        rc = sql_wake_row(store, &ops->arena, &who, &env,
                          &(struct sql_waking){ row->wake_session, &unit }, &wake, err);
    if (rc == 0) {
        hf_rows_insert(ops, &wake, 1);
        sql_wake_input(ops, &wake);
    }
    return rc;
}

int sql_wake_ended(struct sql_store *store, const struct hf_caller *who,
                   struct hf_ops *ops, const struct hf_row *was, const struct hf_row *row,
                   struct hf_err *err)
{
    if (!was->wake_session || hf_status_terminal(was->status) ||
        !hf_status_terminal(row->status))
        return 0;
    hf_ops_ring_ended(ops, was->w.work_id);
    if (!*was->wake_session)
        return 0;
    struct hf_buf life;
    hf_buf_init(&life, ops->arena.alloc, 64);
    hf_buf_text(&life, "end:");
    hf_buf_i64(&life, row->w.generation);
    struct hf_wake_cause cause = { .event = row->event_type,
                                   .status = row->w.status,
                                   .run_id = hf_buf_keep(&life, &ops->arena),
                                   .payload = row->w.result };
    return cause.run_id ? sql_wake_add(store, who, ops, was, &cause, err)
                        : hf_fail_plain(err, HF_ENOMEM);
}
