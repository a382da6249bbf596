/* hf_args: the argument sets of the running call as a table, a1 to a32, and three columns more:
 *
 *   made_id  the new_id that the call before took for its set of the same place, so that what
 *            goes with a new row need not look for it. Null where that call did not make a row
 *            of every set
 *   new_id   what hf_next_id() returns; but a column is no function, for which SQLite
 *            would keep a journal of every page that the statement changes
 *   place    of the set in the call, from 1
 *
 * A statement that reads it is run once for all sets of a call, and not once per set:
 * SQLite opens a cursor for every index of a table each time a statement starts, and a
 * frame for each trigger, so a hundred rows in one statement cost about two thirds of a
 * hundred statements (measured on the close-out). It is an eponymous table: nothing of it
 * is in the schema. */
#include "db/lite/lite.h"

static const char declaration[] =
    "CREATE TABLE "
    "x(a1,a2,a3,a4,a5,a6,a7,a8,a9,a10,a11,a12,a13,a14,a15,a16,a17,a18,a19,a20,"
    "a21,a22,a23,a24,a25,a26,a27,a28,a29,a30,a31,a32,made_id,new_id,place)";

enum { MADE_ID = 32, NEW_ID, PLACE }; /* columns, from 0 */

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
static int show_cell(struct lite_conn *conn, size_t row, int column,
                     sqlite3_context *context)
{
    if (column == NEW_ID)
        return show_new_id(conn, context);
    if (column == PLACE) {
        sqlite3_result_int64(context, (int64_t)row + 1);
    } else if (column == MADE_ID) {
        if (conn->made_after >= 0)
            sqlite3_result_int64(context, conn->made_after + 1 + (int64_t)row);
    } else if ((uint32_t)column < conn->sets->width) {
        show_argument(conn->sets, row, (size_t)column, context);
    }
    return SQLITE_OK;
}

struct vtab {
    sqlite3_vtab base;
    struct lite_conn *conn;
};

struct cursor {
    sqlite3_vtab_cursor base;
    size_t row, rows;
};

static int connect_table(sqlite3 *db, void *aux, int argc, const char *const *argv,
                         sqlite3_vtab **ret_table, char **ret_error)
{
    (void)argc;
    (void)argv;
    (void)ret_error;
    int rc = sqlite3_declare_vtab(db, declaration);
    struct vtab *vtab = rc == SQLITE_OK ? sqlite3_malloc(sizeof *vtab) : NULL;
    if (!vtab)
        return rc == SQLITE_OK ? SQLITE_NOMEM : rc;
    *vtab = (struct vtab){ .conn = aux };
    *ret_table = &vtab->base;
    return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *vtab)
{
    sqlite3_free(vtab);
    return SQLITE_OK;
}

/* Always a scan, and always the outer loop: few rows, no index. */
static int plan_scan(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    (void)vtab;
    info->estimatedCost = 10;
    info->estimatedRows = 10;
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **ret_cursor)
{
    (void)vtab;
    struct cursor *cursor = sqlite3_malloc(sizeof *cursor);
    if (!cursor)
        return SQLITE_NOMEM;
    *cursor = (struct cursor){ 0 };
    *ret_cursor = &cursor->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static struct cursor *cursor_of(sqlite3_vtab_cursor *base)
{
    return (struct cursor *)(void *)base;
}

static const struct vtab *vtab_of(const sqlite3_vtab_cursor *base)
{
    return (const struct vtab *)(const void *)base->pVtab;
}

static int first_row(sqlite3_vtab_cursor *base, int number, const char *text, int argc,
                     sqlite3_value **argv)
{
    (void)number;
    (void)text;
    (void)argc;
    (void)argv;
    const struct vtab *vtab = vtab_of(base);
    cursor_of(base)->row = 0;
    cursor_of(base)->rows = vtab->conn->sets ? vtab->conn->sets->rows : 0;
    return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *base)
{
    cursor_of(base)->row++;
    return SQLITE_OK;
}

static int past_last(sqlite3_vtab_cursor *base)
{
    return cursor_of(base)->row >= cursor_of(base)->rows;
}

static int show_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct vtab *vtab = vtab_of(base);
    return show_cell(vtab->conn, cursor_of(base)->row, column, context);
}

static int show_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret_id)
{
    *ret_id = (sqlite3_int64)cursor_of(base)->row + 1;
    return SQLITE_OK;
}

static const sqlite3_module module = {
    .xConnect = connect_table,
    .xBestIndex = plan_scan,
    .xDisconnect = disconnect_table,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = first_row,
    .xNext = next_row,
    .xEof = past_last,
    .xColumn = show_column,
    .xRowid = show_rowid,
};

int lite_args(struct lite_conn *conn, struct hf_err *err)
{
    int rc = sqlite3_create_module_v2(conn->db, "hf_args", &module, conn, NULL);
    return rc == SQLITE_OK ? 0 : lite_fail(conn->db, rc, "hf_args", err);
}
