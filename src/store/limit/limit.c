/* Limits: setting them, and showing how they are. The counting is in gates.c. */
#include "core/ledger/limit.h"
#include "base/err.h"
#include "store/batch/gates.h"
#include "store/store.h"

int sql_limit_set(struct hf_store *handle, const char *name, const struct hf_limit *limit,
                  struct hf_err *err)
{
    struct sql_store *store = sql_store_of(handle);
    struct hf_ops ops;
    hf_ops_init(&ops, store->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_LIMIT_WRITE, 1);
    hf_ops_text(&ops, name);
    hf_ops_i64_opt(&ops, limit->max_running);
    hf_ops_i64_opt(&ops, limit->rate_count);
    hf_ops_i64_opt(&ops, limit->rate_ms);
    hf_ops_i64_opt(&ops, limit->burst);
    hf_gates_note_name(&ops, name);
    int rc = hf_ops_write(&ops, err);
    hf_ops_fini(&ops);
    sql_policies_forget(store);
    return rc;
}

/* The name as people write it, and the tenant behind it. */
static void split(char *name, struct hf_limit_state *state)
{
    char *at = name;
    while (*at && *at != HF_LIMIT_TENANT)
        at++;
    state->tenant = *at ? at + 1 : "";
    *at = 0;
    state->limit.name = name;
}

int sql_limit_list(struct hf_store *handle, hf_each_limit *each, void *user,
                   struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_LIMIT_LIST, HF_ANY_COUNT);
    int rc = hf_ops_read(&ops, err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++) {
        const struct hf_call *rows = hf_ops_result(&ops, 0);
        char *name = hf_arena_text(&ops.arena,
                                   hf_out_text(rows, i, HF_COL_LIMIT_LIST_NAME));
        if (!name) {
            rc = hf_fail_plain(err, HF_ENOMEM);
            break;
        }
        struct hf_limit_state state = {
            .limit = { .size = sizeof state.limit,
                       .max_running = hf_out_i64(rows, i, HF_COL_LIMIT_LIST_MAX_RUNNING),
                       .rate_count = hf_out_i64(rows, i, HF_COL_LIMIT_LIST_RATE_COUNT),
                       .rate_ms = hf_out_i64(rows, i, HF_COL_LIMIT_LIST_RATE_MS),
                       .burst = hf_out_i64(rows, i, HF_COL_LIMIT_LIST_RATE_BURST) },
            .used = hf_out_i64(rows, i, HF_COL_LIMIT_LIST_USED),
            .open = hf_out_i64(rows, i, HF_COL_LIMIT_LIST_RESERVED),
            .next_at = hf_out_i64(rows, i, HF_COL_LIMIT_LIST_WAKE_AT),
            .waiting = hf_out_i64(rows, i, HF_COL_LIMIT_LIST_WAITING),
        };
        split(name, &state);
        each(user, &state);
    }
    hf_ops_fini(&ops);
    return rc;
}
