/* hf_args: the argument sets of the running call as a table, a1 to a32.
 *
 * A statement that reads it is run once for all sets of a call, and not once a set: SQLite
 * opens a cursor for every index of a table each time a statement starts, and a frame for
 * each trigger, so a hundred rows in one statement cost about two thirds of a hundred
 * statements (measured on the close-out). It is eponymous, so nothing of it is in the schema.
 */
#include "store/lite.h"

#define COLUMNS 32

struct args_table {
    sqlite3_vtab base;
    struct lite_conn *conn;
};

struct args_cursor {
    sqlite3_vtab_cursor base;
    const struct hf_call *call;
    uint32_t row;
};

static const char declaration[] =
    "CREATE TABLE "
    "x(a1,a2,a3,a4,a5,a6,a7,a8,a9,a10,a11,a12,a13,a14,a15,a16,a17,a18,a19,a20,"
    "a21,a22,a23,a24,a25,a26,a27,a28,a29,a30,a31,a32)";

static int connect_table(sqlite3 *db, void *aux, int argc, const char *const *argv,
                         sqlite3_vtab **ret_table, char **ret_error)
{
    (void)argc;
    (void)argv;
    (void)ret_error;
    int rc = sqlite3_declare_vtab(db, declaration);
    struct args_table *table = rc == SQLITE_OK ? sqlite3_malloc(sizeof *table) : NULL;
    if (!table)
        return rc == SQLITE_OK ? SQLITE_NOMEM : rc;
    *table = (struct args_table){ .conn = aux };
    *ret_table = &table->base;
    return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *table)
{
    sqlite3_free(table);
    return SQLITE_OK;
}

/* Always a scan, and always the outer loop: few rows, no index. */
static int plan_scan(sqlite3_vtab *table, sqlite3_index_info *info)
{
    (void)table;
    info->estimatedCost = 10;
    info->estimatedRows = 10;
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **ret_cursor)
{
    (void)table;
    struct args_cursor *cursor = sqlite3_malloc(sizeof *cursor);
    if (!cursor)
        return SQLITE_NOMEM;
    *cursor = (struct args_cursor){ 0 };
    *ret_cursor = &cursor->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static struct args_cursor *cursor_of(sqlite3_vtab_cursor *base)
{
    return (struct args_cursor *)(void *)base;
}

static int first_row(sqlite3_vtab_cursor *base, int number, const char *text, int argc,
                     sqlite3_value **argv)
{
    (void)number;
    (void)text;
    (void)argc;
    (void)argv;
    struct args_cursor *cursor = cursor_of(base);
    cursor->call = ((struct args_table *)(void *)base->pVtab)->conn->sets;
    cursor->row = 0;
    return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *base)
{
    cursor_of(base)->row++;
    return SQLITE_OK;
}

static int past_last(sqlite3_vtab_cursor *base)
{
    const struct args_cursor *cursor = cursor_of(base);
    return !cursor->call || cursor->row >= cursor->call->rows;
}

static int show_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct args_cursor *cursor = cursor_of(base);
    const struct hf_call *call = cursor->call;
    if ((uint32_t)column >= call->width)
        return SQLITE_OK; /* null */
    const struct hf_val *val =
        &call->args[(size_t)cursor->row * call->width + (size_t)column];
    const void *at = val->at ? val->at : "";
    switch (val->type) {
    case HF_VAL_NULL: break;
    case HF_VAL_I64: sqlite3_result_int64(context, val->i); break;
    case HF_VAL_TEXT:
        sqlite3_result_text64(context, at, val->len, SQLITE_STATIC, SQLITE_UTF8);
        break;
    case HF_VAL_BYTES: sqlite3_result_blob64(context, at, val->len, SQLITE_STATIC); break;
    }
    return SQLITE_OK;
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
