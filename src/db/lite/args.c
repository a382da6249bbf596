/* hf_args: the argument sets of the running call as a table, a1 to a32, and two columns more:
 *
 *   made_id  the new_id that the call before took for its set of the same place, so that what
 *            goes with a new row need not look for it. Null where that call did not make a row
 *            of every set
 *   new_id   what hf_next_id() gives; but a column is no function, for which SQLite would keep a
 *            journal of every page that the statement changes
 *
 * A statement that reads it is run once for all sets of a call, and not once a set: SQLite
 * opens a cursor for every index of a table each time a statement starts, and a frame for
 * each trigger, so a hundred rows in one statement cost about two thirds of a hundred
 * statements (measured on the close-out).
 */
#include "db/lite/table.h"

enum { MADE_ID = 32, NEW_ID }; /* columns, from 0 */

static size_t count_sets(const struct lite_conn *conn)
{
    return conn->sets ? conn->sets->rows : 0;
}

static int show_new_id(struct lite_conn *conn, sqlite3_context *context)
{
    int64_t id = 0;
    int rc = lite_next_id(conn, &id);
    if (rc == SQLITE_OK)
        sqlite3_result_int64(context, id);
    return rc;
}

static void show_argument(const struct hf_call *call, size_t row, size_t column,
                          sqlite3_context *context)
{
    const struct hf_val *val = &call->args[call->once + row * call->width + column];
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

/* What is not said is null. */
static int show_column(struct lite_conn *conn, size_t row, int column,
                       sqlite3_context *context)
{
    if (column == NEW_ID)
        return show_new_id(conn, context);
    if (column == MADE_ID) {
        if (conn->made_after >= 0)
            sqlite3_result_int64(context, conn->made_after + 1 + (int64_t)row);
    } else if ((uint32_t)column < conn->sets->width) {
        show_argument(conn->sets, row, (size_t)column, context);
    }
    return SQLITE_OK;
}

static const struct lite_table table = {
    .name = "hf_args",
    .declaration =
        "CREATE TABLE "
        "x(a1,a2,a3,a4,a5,a6,a7,a8,a9,a10,a11,a12,a13,a14,a15,a16,a17,a18,a19,a20,"
        "a21,a22,a23,a24,a25,a26,a27,a28,a29,a30,a31,a32,made_id,new_id)",
    .count = count_sets,
    .show = show_column,
};

int lite_args(struct lite_conn *conn, struct hf_err *err)
{
    return lite_table_add(conn, &table, err);
}
