/* hf_args: the argument sets of the running call as a table, a1 to a32.
 *
 * A statement that reads it is run once for all sets of a call, and not once a set: SQLite
 * opens a cursor for every index of a table each time a statement starts, and a frame for
 * each trigger, so a hundred rows in one statement cost about two thirds of a hundred
 * statements (measured on the close-out).
 */
#include "store/lite_table.h"

static size_t count_sets(const struct lite_conn *conn)
{
    return conn->sets ? conn->sets->rows : 0;
}

static void show_argument(const struct lite_conn *conn, size_t row, int column,
                          sqlite3_context *context)
{
    const struct hf_call *call = conn->sets;
    if ((uint32_t)column >= call->width)
        return; /* null */
    const struct hf_val *val = &call->args[row * call->width + (size_t)column];
    const void *at = val->at ? val->at : "";
    switch (val->type) {
    case HF_VAL_NULL: break;
    case HF_VAL_I64: sqlite3_result_int64(context, val->i); break;
    case HF_VAL_TEXT:
        sqlite3_result_text64(context, at, val->len, SQLITE_STATIC, SQLITE_UTF8);
        break;
    case HF_VAL_BYTES: sqlite3_result_blob64(context, at, val->len, SQLITE_STATIC); break;
    }
}

static const struct lite_table table = {
    .name = "hf_args",
    .declaration =
        "CREATE TABLE "
        "x(a1,a2,a3,a4,a5,a6,a7,a8,a9,a10,a11,a12,a13,a14,a15,a16,a17,a18,a19,a20,"
        "a21,a22,a23,a24,a25,a26,a27,a28,a29,a30,a31,a32)",
    .count = count_sets,
    .show = show_argument,
};

int lite_args(struct lite_conn *conn, struct hf_err *err)
{
    return lite_table_add(conn, &table, err);
}
