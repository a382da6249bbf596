/* The schema that the ledger passes to the drivers, and the public functions that open one. */
#include "store/schema.h"

#include <holdfast/store.h>

#include "db/lite/open.h"
#include "db/pg/open.h"
#include "store/batch/sql_gen.h"

const struct db_schema hf_ledger_schema = {
    .lite = hf_sql_lite,
    .pg = hf_sql_pg,
    .statement_count = HF_SQL_COUNT,
    .migrations = hf_migrations,
    .migration_count = HF_MIGRATION_COUNT,
    .last_id = HF_SQL_LAST_ID,
    .lock_writers = HF_SQL_STORE_LOCK,
    .grows = "work_state",
    .frozen = "work_spec,work_event,session_meta,node,blob,usage",
    .unread = "runtime_work,runtime_process,runtime_session,runtime_turn",
};

int hf_sqlite_open(const char *path, const struct hf_sql_options *options,
                   struct hf_sql **ret_sql, struct hf_err *err)
{
    const struct lite_under under = { .schema = &hf_ledger_schema };
    return lite_open(path, options, &under, ret_sql, err);
}

int hf_postgres_open(const char *url, const struct hf_sql_options *options,
                     struct hf_sql **ret_sql, struct hf_err *err)
{
    return pg_open(url, options, &hf_ledger_schema, ret_sql, err);
}

int hf_store_schema_version(void)
{
    return HF_MIGRATION_COUNT;
}
