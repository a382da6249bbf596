/* Opening the SQLite driver with other tables than the generated ones: for the driver's own
 * tests, and for tests that put a fault-injecting VFS under it. */
#ifndef HF_DB_LITE_OPEN_H
#define HF_DB_LITE_OPEN_H

#include <holdfast/sys/driver.h>

#include "db/sql_gen.h"

/* What it points to is borrowed for as long as the handle lives. The statements must include
 * those of sql/driver.sql, which are found by name. */
struct lite_tables {
    const struct hf_sql_text *texts;
    size_t text_count;
    const struct hf_migration *migrations; /* in order, versions 1..n */
    size_t migration_count;
};

struct lite_inner {
    const struct lite_tables *tables;
    const char *vfs; /* NULL: SQLite's default */
};

/* As hf_sqlite_open. `options` may be NULL. */
HF_MUST_USE int lite_open_with(const char *path, const struct hf_sql_options *options,
                               const struct lite_inner *inner, struct hf_sql **ret_sql,
                               struct hf_err *err);

#endif
