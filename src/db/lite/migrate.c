/* The content of the file: is it ours, how old is it, and bringing it up to date.
 *
 * Each migration is one transaction together with its row in hf_schema, so a crash leaves
 * the version before or the version after. The first one also writes the application id:
 * a file has it exactly if it has a schema of ours. */
#include <string.h>

#include "base/ident.h"
#include "base/text.h"
#include "db/lite/lite.h"

/* The two integers of a one-row statement of ours. */
static int read_two(struct lite_conn *conn, enum db_own which, int64_t ret_two[2],
                    struct hf_err *err)
{
    struct lite_own_run run;
    int rc = lite_run_own(conn, which, NULL, &run, err);
    if (rc == 0 && run.call.out_count == 1)
        for (size_t i = 0; i < 2 && i < run.call.out_width; i++)
            ret_two[i] = run.call.out[i].i;
    lite_forget(NULL, &run.batch);
    return rc;
}

int lite_check_kind(struct lite_conn *conn, bool *ret_empty, struct hf_err *err)
{
    int64_t id = 0;
    int64_t objects[DB_COL_SCHEMA_OBJECTS_COUNT] = { 0 };
    int rc = lite_pragma(conn, "PRAGMA application_id", &id, err);
    if (rc == 0)
        rc = read_two(conn, DB_OWN_SCHEMA_OBJECTS, objects, err);
    if (rc != 0)
        return rc;
    bool ours = id == LITE_APPLICATION_ID && objects[DB_COL_SCHEMA_OBJECTS_OURS] == 1;
    bool empty = id == 0 && objects[DB_COL_SCHEMA_OBJECTS_OBJECTS] == 0;
    if (!ours && !empty)
        return hf_fail(
            err, HF_ENOTSTORE, "db",
            "the file is a SQLite database, but not a Holdfast store: name another file");
    *ret_empty = empty;
    return 0;
}

/* Constraints were off while tables were rebuilt: each row must have its parent now. */
static int check_foreign_keys(struct lite_conn *conn, const struct hf_migration *step,
                              struct hf_err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(conn->db, "PRAGMA foreign_key_check", -1, &st, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    (void)sqlite3_finalize(st); /* repeats the step's code */
    if (rc == SQLITE_ROW)
        return hf_fail(err, HF_ECORRUPT, NULL,
                       "after migration %d (%s) a row lacks the row it refers to",
                       step->version, step->name);
    return rc == SQLITE_DONE ? 0 : lite_fail(conn->db, rc, "foreign_key_check", err);
}

static int note_applied(struct lite_conn *conn, const struct hf_migration *step,
                        struct hf_err *err)
{
    uint8_t digest[HF_DIGEST_BYTES];
    char hex[2 * HF_DIGEST_BYTES + 1];
    int rc = hf_sha256(step->lite, strlen(step->lite), digest);
    if (rc != 0)
        return hf_fail_plain(err, rc);
    hf_hex(digest, sizeof(digest), hex);

    const struct lite *lite = conn->lite;
    const struct hf_val args[] = {
        lite_i64(step->version),
        lite_text(step->name),
        lite_i64(lite->clock->wall_ms(lite->clock->user)),
        lite_text(hex),
    };
    struct lite_own_run run;
    rc = lite_run_own(conn, DB_OWN_SCHEMA_APPLIED, args, &run, err);
    lite_forget(NULL, &run.batch);
    return rc;
}

static int run_script(struct lite_conn *conn, const struct hf_migration *step,
                      struct hf_err *err)
{
    int rc = sqlite3_exec(conn->db, step->lite, NULL, NULL, NULL);
    if (rc == SQLITE_ERROR || rc == SQLITE_CONSTRAINT) /* SQLite's words hold no values */
        return hf_fail(err, HF_EINTERNAL, NULL, "migration %d (%s): %s", step->version,
                       step->name, sqlite3_errmsg(conn->db));
    if (rc != SQLITE_OK)
        return lite_fail(conn->db, rc, step->name, err);
    if (step->version != 1)
        return 0;
    _Static_assert(LITE_APPLICATION_ID == 1212566596, "as in the text below");
    return lite_exec(conn, "PRAGMA application_id = 1212566596", err);
}

static int apply(struct lite_conn *conn, const struct hf_migration *step,
                 struct hf_err *err)
{
    int rc = lite_begin(conn, LITE_BEGIN_WRITE, err);
    if (rc != 0)
        return rc;
    rc = run_script(conn, step, err);
    if (rc == 0)
        rc = note_applied(conn, step, err);
    if (rc == 0)
        rc = check_foreign_keys(conn, step, err);
    int sqlite_rc;
    if (rc == 0)
        rc = lite_commit(conn, &sqlite_rc, err);
    if (rc != 0)
        lite_roll_back(conn);
    return rc;
}

static int read_version(struct lite_conn *conn, int *ret_version, struct hf_err *err)
{
    bool empty;
    int64_t version[2] = { 0, 0 };
    int rc = lite_check_kind(conn, &empty, err);
    if (rc == 0 && !empty)
        rc = read_two(conn, DB_OWN_SCHEMA_VERSION, version, err);
    if (rc == 0)
        *ret_version = (int)version[0];
    return rc;
}

static int refuse(int version, int latest, struct hf_err *err)
{
    if (version == 0)
        return hf_fail(err, HF_ENOTSTORE, "db", "there is no store here yet");
    if (version > latest)
        return hf_fail(err, HF_ESCHEMA, "db",
                       "the store has schema version %d, and this program supports up to "
                       "%d: use a newer program",
                       version, latest);
    return hf_fail(err, HF_ESCHEMAOLD, "db",
                   "the store has schema version %d, and this program needs %d: run "
                   "`holdfast migrate`",
                   version, latest);
}

int lite_migrate(struct lite *lite, bool may_change, struct hf_err *err)
{
    const struct db_schema *schema = lite->schema;
    struct lite_conn *conn = &lite->writer;
    int latest = (int)schema->migration_count;
    int version = 0;
    int rc = read_version(conn, &version, err);
    if (rc != 0)
        return rc;
    lite->schema_version = latest;
    if (version == latest)
        return 0;
    if (version > latest || !may_change)
        return refuse(version, latest, err);

    /* A table that is rebuilt loses its rows' children for a moment; the switch does
     * nothing inside a transaction, so it is around them all. */
    rc = lite_exec(conn, "PRAGMA foreign_keys = OFF", err);
    for (int i = version; rc == 0 && i < latest; i++) {
        hf_assert(schema->migrations[i].version == i + 1);
        rc = apply(conn, &schema->migrations[i], err);
    }
    return rc == 0 ? lite_exec(conn, "PRAGMA foreign_keys = ON", err) : rc;
}
