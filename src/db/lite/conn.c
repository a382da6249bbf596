/* A connection: how it is set up, and its prepared statements.
 *
 * Statements are prepared at first use and kept for the life of the connection. SQLite
 * numbers parameters of the form $n by first appearance, so each statement keeps the map
 * from our numbers to SQLite's. */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "db/lite/lite.h"

#define WRITER_CACHE "PRAGMA cache_size = -8192;"
#define READER_CACHE "PRAGMA cache_size = -256;"

static const char *const control_texts[LITE_CONTROL_COUNT] = {
    [LITE_BEGIN_READ] = "BEGIN",        [LITE_BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [LITE_COMMIT] = "COMMIT",           [LITE_ROLLBACK] = "ROLLBACK",
    [LITE_SAVE] = "SAVEPOINT member",   [LITE_RELEASE] = "RELEASE member",
    [LITE_BACK] = "ROLLBACK TO member",
};

int lite_exec(struct lite_conn *conn, const char *sql, struct hf_err *err)
{
    int rc = sqlite3_exec(conn->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : lite_fail(conn->db, rc, "setting up the store", err);
}

int lite_pragma(struct lite_conn *conn, const char *sql, int64_t *ret_value,
                struct hf_err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(conn->db, sql, -1, &st, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    bool found = rc == SQLITE_ROW;
    int64_t value = found ? sqlite3_column_int64(st, 0) : 0;
    int end = sqlite3_finalize(st);
    if (!found)
        return lite_fail(conn->db, end != SQLITE_OK ? end : rc, "reading the store", err);
    *ret_value = value;
    return 0;
}

/* An answer other than OK means a SQLite built without the switch: no reason to stop. */
static void harden(sqlite3 *db)
{
    /* The process that closes last would checkpoint under an exclusive lock, and others
     * would see "locked": db/lite/checkpoint.c does it inside the turnstile. */
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
    /* Otherwise each bound value that a partial index could depend on prepares its statement anew
     * at every execution. Indexes that only a value would select are not used here. */
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_QPSG, 1, NULL);
}

/* All at once: a ROLLBACK must not fail for want of memory to prepare it. */
static int prepare_control(struct lite_conn *conn, struct hf_err *err)
{
    for (size_t i = 0; i < LITE_CONTROL_COUNT; i++) {
        int rc = sqlite3_prepare_v3(conn->db, control_texts[i], -1,
                                    SQLITE_PREPARE_PERSISTENT, &conn->control[i], NULL);
        if (rc != SQLITE_OK)
            return lite_fail(conn->db, rc, control_texts[i], err);
    }
    return 0;
}

static int set_up(struct lite_conn *conn, enum lite_use use, struct hf_err *err)
{
    const struct lite *lite = conn->lite;
    int rc = sqlite3_busy_timeout(conn->db, (int)lite_locked_ms(lite));
    if (rc != SQLITE_OK)
        return lite_fail(conn->db, rc, "setting up the store", err);
    harden(conn->db);
    int ours = lite_exec(conn,
                         "PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY;"
                         "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;",
                         err);
    if (ours == 0)
        ours = lite_exec(conn, use == LITE_WRITES ? WRITER_CACHE : READER_CACHE, err);
    if (ours == 0)
        ours = prepare_control(conn, err);
    if (ours == 0)
        ours = lite_functions(conn, err);
    return ours == 0 ? lite_args(conn, err) : ours;
}

int lite_own(const struct lite *lite, enum db_own which)
{
    return (int)lite->schema->statement_count + (int)which;
}

const struct hf_sql_text *lite_text_of(const struct lite *lite, int statement)
{
    size_t count = lite->schema->statement_count, at = (size_t)statement;
    return at < count ? &lite->schema->lite[at] : &db_own_lite[at - count];
}

static size_t statement_count(const struct lite *lite)
{
    return lite->schema->statement_count + DB_OWN_COUNT;
}

int lite_conn_open(struct lite *lite, enum lite_use use, struct lite_conn *conn,
                   struct hf_err *err)
{
    *conn = (struct lite_conn){ .lite = lite };
    size_t bytes = statement_count(lite) * sizeof(*conn->stmts);
    conn->stmts = lite->alloc->realloc(lite->alloc->user, NULL, bytes);
    if (!conn->stmts)
        return hf_fail_plain(err, HF_ENOMEM);
    memset(conn->stmts, 0, bytes);

    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    if (use == LITE_READS || lite->read_only)
        flags |= SQLITE_OPEN_READONLY;
    else
        flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    int rc = sqlite3_open_v2(lite->path, &conn->db, flags, lite->vfs);
    int ours;
    if (rc == SQLITE_OK) {
        (void)sqlite3_extended_result_codes(conn->db, 1); /* fails for no open handle */
        ours = set_up(conn, use, err);
    } else {
        ours = lite_fail(conn->db, rc, "opening the store", err);
    }
    if (ours == HF_EBUSY)
        ours = lite_fail_locked(lite, LITE_WAL_LOCK, err);
    if (ours != 0)
        lite_conn_close(conn);
    return ours;
}

/* Reset and finalize repeat the last step's failure, which was answered already. */
void lite_conn_close(struct lite_conn *conn)
{
    if (!conn->lite)
        return;
    const struct hf_alloc *alloc = conn->lite->alloc;
    for (size_t i = 0; conn->stmts && i < statement_count(conn->lite); i++) {
        (void)sqlite3_finalize(conn->stmts[i].st);
        alloc->free(alloc->user, conn->stmts[i].slot);
    }
    for (size_t i = 0; i < LITE_CONTROL_COUNT; i++)
        (void)sqlite3_finalize(conn->control[i]);
    alloc->free(alloc->user, conn->stmts);
    int rc = sqlite3_close(conn->db);
    hf_assert(rc == SQLITE_OK); /* otherwise a statement is still open */
    *conn = (struct lite_conn){ 0 };
}

int lite_conn_new(struct lite *lite, enum lite_use use, struct lite_conn **ret_conn,
                  struct hf_err *err)
{
    struct lite_conn *conn = lite->alloc->realloc(lite->alloc->user, NULL, sizeof(*conn));
    if (!conn)
        return hf_fail_plain(err, HF_ENOMEM);
    int rc = lite_conn_open(lite, use, conn, err);
    if (rc != 0) {
        lite->alloc->free(lite->alloc->user, conn);
        return rc;
    }
    *ret_conn = conn;
    return 0;
}

void lite_conn_free(struct lite_conn *conn)
{
    if (!conn)
        return;
    const struct hf_alloc *alloc = conn->lite->alloc;
    lite_conn_close(conn);
    alloc->free(alloc->user, conn);
}

/* n of "$n", or 0. */
static uint32_t number_of(const char *name)
{
    uint32_t n = 0;
    if (!name || name[0] != '$')
        return 0;
    for (const char *at = name + 1; *at; at++) {
        if (*at < '0' || *at > '9' || n > UINT16_MAX / 10)
            return 0;
        n = n * 10 + (uint32_t)(*at - '0');
    }
    return n;
}

/* Fills stmt->slot. A parameter that only another engine's text uses has no slot here. */
static int map_parameters(struct lite_conn *conn, struct lite_stmt *stmt,
                          const struct hf_sql_text *text, struct hf_err *err)
{
    const struct hf_alloc *alloc = conn->lite->alloc;
    int count = sqlite3_bind_parameter_count(stmt->st);
    uint32_t width = text->params > 0 ? (uint32_t)text->params : 0;
    stmt->made_slot = sqlite3_bind_parameter_index(stmt->st, ":made");
    for (int i = 1; i <= count; i++) {
        uint32_t n = number_of(sqlite3_bind_parameter_name(stmt->st, i));
        if (n == 0 && i != stmt->made_slot)
            return hf_fail(err, HF_EINTERNAL, NULL,
                           "statement %s: a parameter is not of the form $n", text->name);
        width = n > width ? n : width;
    }
    stmt->width = width;
    if (width == 0)
        return 0;
    stmt->slot = alloc->realloc(alloc->user, NULL, width * sizeof(*stmt->slot));
    if (!stmt->slot)
        return hf_fail_plain(err, HF_ENOMEM);
    memset(stmt->slot, 0, width * sizeof(*stmt->slot));
    for (int i = 1; i <= count; i++)
        if (i != stmt->made_slot)
            stmt->slot[number_of(sqlite3_bind_parameter_name(stmt->st, i)) - 1] =
                (uint16_t)i;
    return 0;
}

static int prepare(struct lite_conn *conn, struct lite_stmt *stmt,
                   const struct hf_sql_text *text, struct hf_err *err)
{
    int rc = sqlite3_prepare_v3(conn->db, text->text, -1, SQLITE_PREPARE_PERSISTENT,
                                &stmt->st, NULL);
    if (rc == SQLITE_ERROR) /* of the text itself: SQLite's words name what it misses */
        return hf_fail(err, HF_EINTERNAL, NULL, "statement %s: %s", text->name,
                       sqlite3_errmsg(conn->db));
    if (rc != SQLITE_OK)
        return lite_fail(conn->db, rc, text->name, err);
    stmt->reads = sqlite3_stmt_readonly(stmt->st) != 0;
    stmt->takes_sets = strstr(text->text, "hf_args") != NULL;
    int ours = map_parameters(conn, stmt, text, err);
    if (ours != 0) {
        (void)sqlite3_finalize(stmt->st); /* never stepped: nothing to report */
        *stmt = (struct lite_stmt){ 0 };
    }
    return ours;
}

int lite_stmt_get(struct lite_conn *conn, int statement, struct lite_stmt **ret_stmt,
                  struct hf_err *err)
{
    const struct lite *lite = conn->lite;
    if (statement < 0 || (size_t)statement >= statement_count(lite))
        return hf_fail(err, HF_EINTERNAL, NULL, "there is no statement %d", statement);
    struct lite_stmt *stmt = &conn->stmts[statement];
    if (!stmt->st) {
        int rc = prepare(conn, stmt, lite_text_of(lite, statement), err);
        if (rc != 0)
            return rc;
    }
    *ret_stmt = stmt;
    return 0;
}

int lite_control(struct lite_conn *conn, enum lite_control which)
{
    sqlite3_stmt *st = conn->control[which];
    int rc = sqlite3_step(st);
    int again = sqlite3_reset(st);
    return rc == SQLITE_DONE ? SQLITE_OK : again != SQLITE_OK ? again : rc;
}

int lite_begin(struct lite_conn *conn, enum lite_control how, struct hf_err *err)
{
    const struct lite *lite = conn->lite;
    int rc = lite_control(conn, how);
    /* The turnstile keeps our own processes out: this is another program. */
    if (rc == SQLITE_BUSY && how == LITE_BEGIN_WRITE && lite->side.fd >= 0)
        return lite_fail_locked(lite, "SQLite's write lock without the store's turnstile",
                                err);
    return rc == SQLITE_OK ? 0 : lite_fail(conn->db, rc, "BEGIN", err);
}

int lite_commit(struct lite_conn *conn, int *ret_sqlite, struct hf_err *err)
{
    /* A failed COMMIT does not pass on its errno; nothing that succeeds after it in the
     * same step resets it. */
    errno = 0;
    int rc = lite_control(conn, LITE_COMMIT);
    *ret_sqlite = rc;
    return rc == SQLITE_OK ? 0 : lite_fail_system(conn->db, rc, errno, "COMMIT", err);
}

void lite_roll_back(struct lite_conn *conn)
{
    if (sqlite3_get_autocommit(conn->db))
        return;
    int rc = lite_control(conn, LITE_ROLLBACK);
    /* Where memory failed it may not even have begun; that it says so makes it able to. */
    if (rc == SQLITE_NOMEM && !sqlite3_get_autocommit(conn->db))
        rc = lite_control(conn, LITE_ROLLBACK);
    /* It may report what it met on the disk; the transaction is over all the same. */
    hf_assert(rc == SQLITE_OK || sqlite3_get_autocommit(conn->db));
}
