/* Opening the SQLite driver. */
#ifndef HF_DB_LITE_OPEN_H
#define HF_DB_LITE_OPEN_H

#include "db/schema.h"

struct lite_under {
    const struct db_schema *schema;
    const char *vfs; /* NULL: SQLite's default; of tests that inject faults */
};

/* As hf_sqlite_open. `options` may be NULL. The schema is borrowed for as long as the handle
 * lives. */
HF_MUST_USE int lite_open(const char *path, const struct hf_sql_options *options,
                          const struct lite_under *under, struct hf_sql **ret_sql,
                          struct hf_err *err);

#endif
