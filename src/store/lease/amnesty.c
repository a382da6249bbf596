/* The work of monitors in addition to sweeps: a pulse, amnesty, and the store's log. */
#include "base/buf.h"
#include "base/err.h"
#include "store/store.h"

int sql_pulse(struct hf_store *handle, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_PULSE, HF_ANY_COUNT);
    int rc = hf_ops_write(&ops, err);
    hf_ops_fini(&ops);
    return rc;
}

int sql_amnesty(struct hf_store *handle, hf_ms stalled_ms, int64_t *ret_rows,
                struct hf_err *err)
{
    struct hf_ops ops;
    struct hf_buf note;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_buf_init(&note, handle->alloc, 128);
    hf_buf_text(&note, "{\"stalled_ms\":");
    hf_buf_i64(&note, stalled_ms);
    hf_buf_text(&note, ",\"leases\":");
    hf_ops_call(&ops, HF_SQL_AMNESTY_LOG, HF_ANY_COUNT);
    hf_ops_i64(&ops, stalled_ms);
    hf_ops_text(&ops, hf_buf_str(&note));
    size_t give = hf_ops_call(&ops, HF_SQL_AMNESTY_GIVE, HF_ANY_COUNT);
    hf_ops_i64(&ops, stalled_ms);
    size_t sessions = hf_ops_call(&ops, HF_SQL_AMNESTY_GIVE_SESSIONS, HF_ANY_COUNT);
    hf_ops_i64(&ops, stalled_ms);
    int rc = hf_buf_state(&note) ? hf_fail_plain(err, hf_buf_state(&note))
                                 : hf_ops_write(&ops, err);
    if (rc == 0)
        rc = hf_ops_counted(&ops, err);
    if (rc == 0)
        *ret_rows = hf_ops_result(&ops, give)->changed +
                    hf_ops_result(&ops, sessions)->changed;
    hf_buf_fini(&note);
    hf_ops_fini(&ops);
    return rc;
}

int sql_log(struct hf_store *handle, int64_t before, size_t limit, hf_logged *each,
            void *user, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_STORE_LOG_READ, HF_ANY_COUNT);
    hf_ops_i64(&ops, before);
    hf_ops_i64(&ops, (int64_t)limit);
    int rc = hf_ops_read(&ops, err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++) {
        const struct hf_call *rows = hf_ops_result(&ops, 0);
        struct hf_store_log_entry entry = {
            .log_id = hf_out_i64(rows, i, HF_COL_STORE_LOG_READ_LOG_ID),
            .at = hf_out_i64(rows, i, HF_COL_STORE_LOG_READ_AT),
            .what = hf_out_text(rows, i, HF_COL_STORE_LOG_READ_WHAT),
            .detail = hf_out_text(rows, i, HF_COL_STORE_LOG_READ_DETAIL)
        };
        each(user, &entry);
    }
    hf_ops_fini(&ops);
    return rc;
}
