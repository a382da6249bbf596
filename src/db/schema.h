/* The schema that the layer above passes to a driver at open. A driver knows the tables of its own
 * statements (sql/driver: hf_schema, hf_store, hf_store_log, hf_commit), which the first migration
 * makes, and nothing of any other table. */
#ifndef HF_DB_SCHEMA_H
#define HF_DB_SCHEMA_H

#include <holdfast/sys/driver.h>

/* A statement of PostgreSQL. `guarded` has one parameter more, the number of rows it must change;
 * NULL where there is no such form. `sets` is a letter for each column of hf_args: t, i or b.
 * `many` is the form for many callers, -1: none; not for sets whose argument `unless` (from 0)
 * is given (-1: for all). */
struct hf_pg_text {
    const char *name;
    const char *text; /* NULL: not of this engine */
    const char *guarded;
    const char *sets;
    int params;
    int columns; /* -1: not known */
    bool reads;
    bool
        before; /* it reads in order to assert or to lock, for what its batch writes after it */
    bool places; /* it reads, and its last column is the place of a row's set, from 1 */
    int many;
    int unless;
};

struct hf_migration {
    int version;
    const char *name;
    const char *lite;
    const char *pg;
};

/* Borrowed for as long as the handle lives. A call names its statement by its place in `lite` and
 * `pg`. */
struct db_schema {
    const struct hf_sql_text *lite; /* text NULL: not of this engine */
    const struct hf_pg_text *pg;
    size_t statement_count;
    const struct hf_migration *migrations; /* in order, versions 1..n */
    size_t migration_count;
    int last_id; /* SQLite: the statement that reads the largest id, for hf_next_id() */
    int lock_writers; /* PostgreSQL: the statement that keeps out all that write */
    /* Of PostgreSQL: the table by whose size statements are planned anew; tables that are never
     * updated, and views that no statement reads, each with commas between. */
    const char *grows;
    const char *frozen;
    const char *unread;
};

/* The options with all that was not given filled in. `given` may be NULL. */
HF_MUST_USE int db_options_read(const struct hf_sql_options *given,
                                struct hf_sql_options *ret_options, struct hf_err *err);

#endif
