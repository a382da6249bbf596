/* Opening the PostgreSQL driver. */
#ifndef HF_DB_PG_OPEN_H
#define HF_DB_PG_OPEN_H

#include "db/schema.h"

/* As hf_postgres_open. `options` may be NULL. The schema is borrowed for as long as the handle
 * lives. */
HF_MUST_USE int pg_open(const char *url, const struct hf_sql_options *options,
                        const struct db_schema *schema, struct hf_sql **ret_sql,
                        struct hf_err *err);

#endif
