/* Tables that show what a connection holds in memory: scanned from the first row to the last. They
 * are eponymous, so nothing of them is in the schema. */
#ifndef HF_DB_LITE_TABLE_H
#define HF_DB_LITE_TABLE_H

#include "db/lite/lite.h"

struct lite_table {
    const char *name;
    const char *declaration; /* CREATE TABLE x(…) */
    size_t (*count)(const struct lite_conn *conn);
    /* Nothing shown is null. SQLITE_OK, or the code with which the statement fails. */
    int (*show)(struct lite_conn *conn, size_t row, int column, sqlite3_context *context);
};

/* `table` is static. */
HF_MUST_USE int lite_table_add(struct lite_conn *conn, const struct lite_table *table,
                               struct hf_err *err);

#endif
