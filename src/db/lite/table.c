/* See db/lite/table.h. */
#include "db/lite/table.h"

struct vtab {
    sqlite3_vtab base;
    const struct lite_table *table;
    struct lite_conn *conn;
};

struct cursor {
    sqlite3_vtab_cursor base;
    size_t row, rows;
};

/* What SQLite keeps with the module, and frees with it. */
struct given {
    const struct lite_table *table;
    struct lite_conn *conn;
};

static int connect_table(sqlite3 *db, void *aux, int argc, const char *const *argv,
                         sqlite3_vtab **ret_table, char **ret_error)
{
    (void)argc;
    (void)argv;
    (void)ret_error;
    const struct given *given = aux;
    int rc = sqlite3_declare_vtab(db, given->table->declaration);
    struct vtab *vtab = rc == SQLITE_OK ? sqlite3_malloc(sizeof *vtab) : NULL;
    if (!vtab)
        return rc == SQLITE_OK ? SQLITE_NOMEM : rc;
    *vtab = (struct vtab){ .table = given->table, .conn = given->conn };
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
    cursor_of(base)->rows = vtab->table->count(vtab->conn);
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
    return vtab->table->show(vtab->conn, cursor_of(base)->row, column, context);
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

int lite_table_add(struct lite_conn *conn, const struct lite_table *table,
                   struct hf_err *err)
{
    struct given *given = sqlite3_malloc(sizeof *given);
    if (!given)
        return hf_fail_plain(err, HF_ENOMEM);
    *given = (struct given){ table, conn };
    /* It frees `given` also where it fails. */
    int rc = sqlite3_create_module_v2(conn->db, table->name, &module, given,
                                      sqlite3_free);
    return rc == SQLITE_OK ? 0 : lite_fail(conn->db, rc, table->name, err);
}
