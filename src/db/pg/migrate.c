/* The content of the schema: is it ours, how old is it, and bringing it up to date; the
 * store's own row, and the history it belongs to.
 *
 * Everything pending runs in one transaction under an advisory lock of the schema's name, so
 * a crash leaves what was there before, and two programs never migrate at once. */
#include <string.h>

#include "base/ident.h"
#include "base/text.h"
#include "db/pg/pg.h"

#define OLDEST_SERVER 140000

/* An old program runs next to the next version's for as long as a fleet is exchanged:
 * a migration keeps the statements of the version before it working. */
#define AHEAD_MAX 1

/* A transaction that knows our schema, on whatever session a pooler returned. */
static int begin(struct pg_conn *conn, struct hf_err *err)
{
    const struct pg *pg = conn->pg;
    int rc = pg_conn_exec(conn, "BEGIN", "BEGIN", NULL, err);
    /* A migration may take its time, and waits for the others who migrate. */
    const char *const args[] = { pg->url.quoted, "0", "60000" };
    return rc ? rc : pg_conn_ask(conn, DB_OWN_PG_TRANSACTION_SETTINGS, args, NULL, err);
}

/* COMMIT, or ROLLBACK after a failure, whose code it keeps. */
static int finish(struct pg_conn *conn, int rc, struct hf_err *err)
{
    if (rc == 0)
        return pg_conn_exec(conn, "COMMIT", "COMMIT", NULL, err);
    if (!conn->lost && pg_conn_exec(conn, "ROLLBACK", "ROLLBACK", NULL, NULL))
        conn->lost = true; /* then it ends with the connection */
    return rc;
}

/* ---- the history ------------------------------------------------------------------- */

static int raise_in(struct pg_conn *conn, struct hf_err *err)
{
    struct pg_identity identity;
    const struct db_schema *schema = conn->pg->schema;
    const struct hf_pg_text *lock = &schema->pg[schema->lock_writers];
    int rc = pg_conn_identity(conn, &identity, err);
    if (rc == 0)
        rc = pg_conn_exec(conn, lock->text, lock->name, NULL, err);
    const char *const args[] = { identity.system_id };
    return rc ? rc : pg_conn_ask(conn, DB_OWN_PG_NEW_HISTORY, args, NULL, err);
}

int pg_raise_history(struct pg_conn *conn, struct hf_err *err)
{
    int rc = begin(conn, err);
    if (rc == 0)
        rc = raise_in(conn, err);
    return finish(conn, rc, err);
}

/* ---- migrations -------------------------------------------------------------------- */

static int note_applied(struct pg_conn *conn, const struct hf_migration *step,
                        struct hf_err *err)
{
    uint8_t digest[HF_DIGEST_BYTES];
    char hex[2 * HF_DIGEST_BYTES + 1];
    const struct hf_clock *clock = conn->pg->clock;
    if (hf_sha256(step->pg, strlen(step->pg), digest))
        return hf_fail_plain(err, HF_ENOMEM);
    hf_hex(digest, sizeof digest, hex);
    struct hf_buf version, now;
    hf_buf_init(&version, conn->pg->alloc, 32);
    hf_buf_init(&now, conn->pg->alloc, 32);
    hf_buf_i64(&version, step->version);
    hf_buf_i64(&now, clock->wall_ms(clock->user));
    const char *const args[] = { hf_buf_str(&version), step->name, hf_buf_str(&now),
                                 hex };
    int rc = pg_conn_ask(conn, DB_OWN_SCHEMA_APPLIED, args, NULL, err);
    hf_buf_fini(&version);
    hf_buf_fini(&now);
    return rc;
}

static int run_script(struct pg_conn *conn, const char *script, const char *what,
                      struct hf_err *err)
{
    const struct hf_alloc *alloc = conn->pg->alloc;
    char *text = pg_schema_text(conn->pg, script);
    if (!text)
        return hf_fail_plain(err, HF_ENOMEM);
    int rc = pg_conn_exec(conn, text, what, NULL, err);
    alloc->free(alloc->user, text);
    return rc;
}

static int read_version(struct pg_conn *conn, int *ret_version, struct hf_err *err)
{
    PGresult *result = NULL;
    int rc = pg_conn_ask(conn, DB_OWN_SCHEMA_VERSION, NULL, &result, err);
    if (rc == 0)
        *ret_version = (int)pg_cell_i64(result, 0, DB_COL_SCHEMA_VERSION_VERSION);
    PQclear(result);
    return rc;
}

/* In a transaction, under the lock: what others did meanwhile is looked at first. */
static int apply_pending(struct pg_conn *conn, const struct hf_sql_options *options,
                         struct hf_err *err)
{
    struct pg_identity identity;
    int version = 0;
    int rc = pg_conn_identity(conn, &identity, err);
    if (rc == 0 && !identity.schema_exists)
        rc = run_script(conn, db_own_pg[DB_OWN_PG_CREATE_SCHEMA].text, "create schema",
                        err);
    if (rc == 0 && identity.ours)
        rc = read_version(conn, &version, err);
    if (rc == 0 && version > 0 && options->migrate != HF_MIGRATE_UPGRADE)
        return 0; /* a process made the store just now */
    const struct db_schema *schema = conn->pg->schema;
    for (size_t i = (size_t)version; rc == 0 && i < schema->migration_count; i++) {
        const struct hf_migration *step = &schema->migrations[i];
        rc = run_script(conn, step->pg, step->name, err);
        if (rc == 0)
            rc = note_applied(conn, step, err);
    }
    return rc;
}

static int apply(struct pg_conn *conn, const struct hf_sql_options *options,
                 struct hf_err *err)
{
    const char *const args[] = { conn->pg->url.schema };
    int rc = begin(conn, err);
    if (rc == 0)
        rc = pg_conn_ask(conn, DB_OWN_PG_MIGRATION_LOCK, args, NULL, err);
    if (rc == 0)
        rc = apply_pending(conn, options, err);
    return finish(conn, rc, err);
}

/* ---- the store's row --------------------------------------------------------------- */

static int create_row(struct pg_conn *conn, const char *system_id, struct hf_err *err)
{
    struct pg *pg = conn->pg;
    const struct hf_clock *clock = pg->clock;
    hf_ms wall = clock->wall_ms(clock->user);
    char id[HF_UUID_TEXT];
    uint64_t seq = 0;
    struct hf_buf offset;
    int rc = hf_uuid7(wall, &seq, pg->random, id, err);
    hf_buf_init(&offset, pg->alloc, 32);
    hf_buf_i64(&offset, pg->system_clock ? 0 : wall - clock->mono_ms(clock->user));
    const char *const args[] = { id, system_id, hf_buf_str(&offset) };
    if (rc == 0)
        rc = pg_conn_ask(conn, DB_OWN_PG_STORE_CREATE, args, NULL, err);
    hf_buf_fini(&offset);
    return rc;
}

static void keep_row(struct pg *pg, const PGresult *result)
{
    size_t len = (size_t)PQgetlength(result, 0, DB_COL_PG_STORE_ROW_STORE_ID);
    if (len < sizeof pg->store_id)
        memcpy(pg->store_id, PQgetvalue(result, 0, DB_COL_PG_STORE_ROW_STORE_ID),
               len + 1);
    pg->lease_offset_ms = pg_cell_i64(result, 0, DB_COL_PG_STORE_ROW_LEASE_OFFSET_MS);
    atomic_store_explicit(&pg->epoch, pg_cell_i64(result, 0, DB_COL_PG_STORE_ROW_EPOCH),
                          memory_order_relaxed);
}

static int update_row(struct pg_conn *conn, const struct pg_identity *identity,
                      struct hf_err *err)
{
    const char *const args[] = { identity->system_id };
    PGresult *result = NULL;
    bool moved = false;
    int rc = begin(conn, err);
    if (rc == 0 && !identity->standby && !conn->pg->read_only)
        rc = create_row(conn, identity->system_id, err);
    if (rc == 0 && identity->standby)
        rc = pg_conn_ask(conn, DB_OWN_PG_STORE_READ, NULL, &result, err);
    else if (rc == 0)
        rc = pg_conn_ask(conn, DB_OWN_PG_STORE_ROW, args, &result, err);
    if (rc == 0 && PQntuples(result) != 1)
        rc = hf_fail(err, HF_ENOTSTORE, "db", "the row of hf_store is missing");
    if (rc == 0 && pg_cell_i64(result, 0, DB_COL_PG_STORE_ROW_INCARNATION) <= 0)
        rc = hf_fail(err, HF_ENOTSTORE, "db",
                     "schema %s is an unfinished copy: drop it, and copy again",
                     conn->pg->url.schema);
    if (rc == 0) {
        keep_row(conn->pg, result);
        moved = !identity->standby &&
                pg_cell_i64(result, 0, DB_COL_PG_STORE_ROW_MOVED) != 0;
    }
    PQclear(result);
    rc = finish(conn, rc, err);
    return rc == 0 && moved && !conn->pg->read_only ? pg_raise_history(conn, err) : rc;
}

/* ---- together ---------------------------------------------------------------------- */

static int refuse_empty(const struct pg *pg, const struct pg_identity *identity,
                        const struct hf_sql_options *options, struct hf_err *err)
{
    if (identity->standby)
        return hf_fail(
            err, HF_EREADONLY, "db",
            "there is no store in schema %s, and the server is a read-only standby: "
            "add target_session_attrs=read-write to the address",
            pg->url.schema);
    if (options->must_exist || options->migrate == HF_MIGRATE_NEVER || options->read_only)
        return hf_fail(err, HF_ENOTSTORE, "db", "there is no store in schema %s yet",
                       pg->url.schema);
    if (!identity->schema_exists && !identity->may_create_schema)
        return hf_fail(err, HF_EREADONLY, "db",
                       "privilege missing: CREATE, on this database, to add schema %s",
                       pg->url.schema);
    if (identity->schema_exists && !identity->may_create)
        return hf_fail(err, HF_EREADONLY, "db",
                       "privilege missing: CREATE, on schema %s, to add its tables",
                       pg->url.schema);
    return 0;
}

static int check_version(const struct pg *pg, int version, struct hf_err *err)
{
    int latest = (int)pg->schema->migration_count;
    if (version > latest + AHEAD_MAX)
        return hf_fail(err, HF_ESCHEMA, "db",
                       "schema %s has version %d, and this program supports up to %d: "
                       "use a newer program",
                       pg->url.schema, version, latest);
    if (version < latest)
        return hf_fail(
            err, HF_ESCHEMAOLD, "db",
            "schema %s has version %d, and this program needs %d: run `holdfast migrate`",
            pg->url.schema, version, latest);
    return 0;
}

static int check_privileges(struct pg_conn *conn, struct hf_err *err)
{
    const struct db_schema *schema = conn->pg->schema;
    const char *const args[] = { conn->pg->url.schema, conn->pg->read_only ? "1" : "0",
                                 schema->frozen, schema->unread };
    PGresult *result = NULL;
    int rc = pg_conn_ask(conn, DB_OWN_PG_PRIVILEGES, args, &result, err);
    if (rc == 0 && !PQgetisnull(result, 0, DB_COL_PG_PRIVILEGES_LACKS))
        rc = hf_fail(err, HF_EREADONLY, "db", "role %.60s lacks privileges; GRANT it %s",
                     PQgetvalue(result, 0, DB_COL_PG_PRIVILEGES_ROLE),
                     PQgetvalue(result, 0, DB_COL_PG_PRIVILEGES_LACKS));
    if (rc == 0)
        conn->pg->may_follow = pg_cell_i64(result, 0, DB_COL_PG_PRIVILEGES_MAY_WRITE) !=
                               0;
    PQclear(result);
    return rc;
}

static int current_version(struct pg_conn *conn, int *ret_version, struct hf_err *err)
{
    int rc = begin(conn, err);
    if (rc == 0)
        rc = read_version(conn, ret_version, err);
    return finish(conn, rc, err);
}

int pg_migrate(struct pg *pg, struct pg_conn *conn, const struct hf_sql_options *options,
               struct hf_err *err)
{
    struct pg_identity identity;
    int version = 0;
    int rc = pg_conn_identity(conn, &identity, err);
    if (rc)
        return rc;
    pg->server_version = identity.version;
    pg->max_connections = identity.max_connections;
    if (identity.version < OLDEST_SERVER)
        return hf_fail(err, HF_ENOTSTORE, "db", "PostgreSQL 14 or newer is needed");
    if (identity.objects > 0 && !identity.ours)
        return hf_fail(
            err, HF_ENOTSTORE, "db",
            "schema %s has tables that are not a Holdfast store: name another schema",
            pg->url.schema);
    bool empty = !identity.ours;
    if (empty)
        rc = refuse_empty(pg, &identity, options, err);
    else
        rc = check_privileges(conn, err);
    if (rc == 0 && (empty || options->migrate == HF_MIGRATE_UPGRADE))
        rc = apply(conn, options, err);
    pg->may_follow |= empty;
    if (rc == 0)
        rc = current_version(conn, &version, err);
    if (rc == 0)
        rc = check_version(pg, version, err);
    if (rc)
        return rc;
    pg->schema_version = version;
    return update_row(conn, &identity, err);
}
