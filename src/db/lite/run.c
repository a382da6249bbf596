/* The calls of one batch, inside a transaction that another process began.
 *
 * Results live in an arena of the batch's own allocator. A batch can be run again at any
 * time: what an earlier run left is dropped first. */
#include <string.h>

#include "db/batch.h"
#include "db/lite/lite.h"

void lite_forget(struct hf_sql *sql, struct hf_batch *batch)
{
    hf_results_forget(sql, batch);
}

static int bind(sqlite3_stmt *st, int slot, const struct hf_val *val)
{
    /* A NULL pointer would bind NULL; a value of no bytes is still a value. */
    const void *at = val->at ? val->at : "";
    switch (val->type) {
    case HF_VAL_NULL: return sqlite3_bind_null(st, slot);
    case HF_VAL_I64: return sqlite3_bind_int64(st, slot, val->i);
    case HF_VAL_TEXT:
        return sqlite3_bind_text64(st, slot, at, val->len, SQLITE_STATIC, SQLITE_UTF8);
    case HF_VAL_BYTES: return sqlite3_bind_blob64(st, slot, at, val->len, SQLITE_STATIC);
    }
    return SQLITE_MISUSE;
}

static int bind_all(const struct lite_stmt *stmt, const struct hf_val *args)
{
    for (uint32_t i = 0; i < stmt->width; i++) {
        if (stmt->slot[i] == 0)
            continue;
        int rc = bind(stmt->st, stmt->slot[i], &args[i]);
        if (rc != SQLITE_OK)
            return rc;
    }
    return SQLITE_OK;
}

/* The key of the only row that the call before made; null where there is none. */
static int bind_made(const struct lite_conn *conn, const struct lite_stmt *stmt)
{
    if (stmt->made_slot == 0)
        return SQLITE_OK;
    return conn->made_after >= 0 && conn->sets->rows == 1
               ? sqlite3_bind_int64(stmt->st, stmt->made_slot, conn->made_after + 1)
               : sqlite3_bind_null(stmt->st, stmt->made_slot);
}

/* The schema holds integers, text and bytes; a real number is a mistake in a statement. */
static int read_column(sqlite3_stmt *st, int i, struct hf_arena *arena,
                       struct hf_val *ret_val)
{
    /* The connection is one thread's, so what is found once needs no mutex: each function of a
     * column would look for it again. */
    sqlite3_value *cell = sqlite3_column_value(st, i);
    struct hf_val val = { .type = HF_VAL_NULL };
    switch (sqlite3_value_type(cell)) {
    case SQLITE_NULL: break;
    case SQLITE_INTEGER:
        val.type = HF_VAL_I64;
        val.i = sqlite3_value_int64(cell);
        break;
    case SQLITE_TEXT:
        val.type = HF_VAL_TEXT;
        val.at = sqlite3_value_text(cell);
        break;
    case SQLITE_BLOB:
        val.type = HF_VAL_BYTES;
        val.at = sqlite3_value_blob(cell);
        break;
    default: return HF_EINTERNAL;
    }
    if (val.type == HF_VAL_TEXT || val.type == HF_VAL_BYTES) {
        val.len = (size_t)sqlite3_value_bytes(cell);
        if (!val.at && val.len > 0)
            return HF_ENOMEM;
        val.at = hf_arena_copy(arena, val.at ? val.at : "", val.len);
        if (!val.at)
            return HF_ENOMEM;
    }
    *ret_val = val;
    return 0;
}

static int read_row(sqlite3_stmt *st, struct hf_batch *batch, struct hf_call *call)
{
    struct hf_arena *arena = hf_results_of(batch);
    if (!arena)
        return HF_ENOMEM;
    call->out_width = (size_t)sqlite3_column_count(st);
    int rc = hf_results_grow(batch, call, 1);
    struct hf_val *row = rc == 0 ? call->out + call->out_count * call->out_width : NULL;
    for (size_t i = 0; rc == 0 && i < call->out_width; i++)
        rc = read_column(st, (int)i, arena, &row[i]);
    if (rc == 0)
        call->out_count++;
    return rc;
}

static int fail_step(struct lite_conn *conn, int rc, const char *name, struct hf_err *err)
{
    /* A statement says by a key that is no integer that it found none. */
    if (conn->expect_unmet || rc == SQLITE_MISMATCH)
        return hf_fail(err, HF_EGUARD, NULL, "statement %s found other data", name);
    return lite_fail(conn->db, rc, name, err);
}

/* One argument set, or all of them. The statement is reset on the way out whatever happened:
 * a statement left open would keep the transaction from ending. */
static int run_set(struct lite_conn *conn, struct lite_stmt *stmt, struct hf_batch *batch,
                   struct hf_call *call, uint32_t set, struct hf_err *err)
{
    const char *name = lite_text_of(conn->lite, call->statement)->name;
    conn->expect_unmet = false;
    conn->last_id = 0;
    conn->ids_given = 0;
    int ours = 0;
    size_t bytes = 0;
    int rc = bind_all(stmt, call->args ? call->args + (size_t)set * call->width : NULL);
    if (rc == SQLITE_OK)
        rc = bind_made(conn, stmt);
    while (rc == SQLITE_OK && ours == 0) {
        rc = sqlite3_step(stmt->st);
        if (rc == SQLITE_ROW) {
            ours = read_row(stmt->st, batch, call);
            rc = ours == 0 && hf_results_full(call, &bytes) ? SQLITE_DONE : SQLITE_OK;
        }
    }
    if (ours != 0)
        hf_fail(err, ours, NULL, "statement %s: its results cannot be kept", name);
    else if (rc != SQLITE_DONE)
        ours = fail_step(conn, rc, name, err);
    else if (!stmt->reads)
        call->changed += sqlite3_changes64(conn->db);
    (void)sqlite3_reset(stmt->st); /* repeats the step's code, which is answered above */
    return ours;
}

/* For the column `made_id`: one row was made of each set, in one go, and each took one id. */
static void note_made(struct lite_conn *conn, const struct hf_call *call, uint32_t runs)
{
    bool all = runs == 1 && conn->ids_given == call->rows && call->changed == call->rows;
    conn->made_after = all ? conn->last_id - conn->ids_given : -1;
}

static int run_call(struct lite_conn *conn, struct hf_batch *batch, struct hf_call *call,
                    struct hf_err *err)
{
    struct lite_stmt *stmt;
    int rc = lite_stmt_get(conn, call->statement, &stmt, err);
    if (rc != 0)
        return rc;
    const char *name = lite_text_of(conn->lite, call->statement)->name;
    if (stmt->width != (stmt->takes_sets ? call->once : call->width) ||
        (call->once > 0 && !stmt->takes_sets))
        return hf_fail(err, HF_EINTERNAL, NULL,
                       "statement %s takes %u arguments and was given %u", name,
                       stmt->width, call->once + call->width);
    /* SQLite would say so too, but not on a memory store's only connection. */
    if (batch->read_only && !stmt->reads)
        return hf_fail(err, HF_EREADONLY, NULL, "statement %s writes, in a batch to read",
                       name);
    uint32_t runs = stmt->takes_sets ? 1 : call->rows;
    conn->sets = call;
    for (uint32_t set = 0; rc == 0 && set < runs; set++)
        rc = run_set(conn, stmt, batch, call, set, err);
    note_made(conn, call, runs);
    if (rc != 0 || call->expect == HF_ANY_COUNT)
        return rc;
    int64_t count = stmt->reads ? (int64_t)call->out_count : call->changed;
    if (count != call->expect)
        return hf_fail(err, HF_EGUARD, NULL, "statement %s met %lld rows, not %lld", name,
                       (long long)count, (long long)call->expect);
    return 0;
}

int lite_run_calls(struct lite_conn *conn, struct hf_batch *batch, struct hf_err *err)
{
    if (batch->results)
        lite_forget(NULL, batch);
    lite_stamp(conn, batch);
    conn->made_after = -1;
    for (size_t i = 0; i < batch->call_count; i++) {
        struct hf_call *call = &batch->calls[i];
        call->changed = 0;
        call->full = false;
        call->out = NULL;
        call->out_count = 0;
        call->out_width = 0;
        if (call->only_if > 0 && batch->calls[call->only_if - 1].out_count == 0)
            continue;
        int rc = run_call(conn, batch, call, err);
        if (rc != 0) {
            batch->failed_call = i;
            return rc;
        }
    }
    return 0;
}

int lite_run_own(struct lite_conn *conn, enum db_own which, const struct hf_val *args,
                 struct lite_own_run *run, struct hf_err *err)
{
    *run = (struct lite_own_run){
        .batch = { .alloc = conn->lite->alloc, .calls = &run->call, .call_count = 1 },
        .call = { .statement = lite_own(conn->lite, which),
                  .rows = 1,
                  .args = args,
                  .expect = HF_ANY_COUNT }
    };
    struct lite_stmt *stmt;
    int rc = lite_stmt_get(conn, run->call.statement, &stmt, err);
    if (rc != 0)
        return rc;
    run->call.width = stmt->width;
    return lite_run_calls(conn, &run->batch, err);
}
