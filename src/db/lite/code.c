/* SQLite's result codes as ours.
 *
 * A row names an extended code, or a primary one for all extended codes without a row of
 * their own. Text that SQLite wrote is shown only where it is known to hold names and never
 * values: of constraints, and of statements that could not be prepared. */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "db/lite/lite.h"

static const struct {
    int sqlite;
    int ours;
} codes[] = {
    { SQLITE_CONSTRAINT_UNIQUE, HF_ECONFLICT },
    { SQLITE_CONSTRAINT_PRIMARYKEY, HF_ECONFLICT },
    { SQLITE_CONSTRAINT_ROWID, HF_ECONFLICT },
    /* One that waits for COMMIT may be refused there; db/lite/txn.c knows it by this. */
    { SQLITE_CONSTRAINT_FOREIGNKEY, HF_ECONFLICT },
    /* A CHECK, a NOT NULL, a type: input was checked before, so the fault is our own. */
    { SQLITE_CONSTRAINT, HF_EINTERNAL },
    { SQLITE_BUSY, HF_EBUSY },
    /* Another connection of this process; we share no caches, so only by a schema change. */
    { SQLITE_LOCKED, HF_EBUSY },
    /* Many processes raced for the WAL's read marks: rare, and over in a moment. */
    { SQLITE_PROTOCOL, HF_EBUSY },
    { SQLITE_FULL, HF_EFULL },
    { SQLITE_NOMEM, HF_ENOMEM },
    /* A failed allocation that SQLite reports as a failed read or write. */
    { SQLITE_IOERR_NOMEM, HF_ENOMEM },
    { SQLITE_IOERR, HF_ESTOREIO },
    { SQLITE_CORRUPT, HF_ECORRUPT },
    { SQLITE_NOTADB, HF_ENOTSTORE },
    { SQLITE_READONLY, HF_EREADONLY },
    /* The file was there when the handle was opened: descriptors ran out, or its folder
     * went away. db/lite/open.c looks closer at an open that fails. */
    { SQLITE_CANTOPEN, HF_ESTOREIO },
    /* The WAL's index cannot be opened: the folder is write-protected. */
    { SQLITE_READONLY_CANTINIT, HF_EREADONLY },
    { SQLITE_PERM, HF_EREADONLY },
    { SQLITE_AUTH, HF_EREADONLY },
    { SQLITE_TOOBIG, HF_ETOOBIG },
};

static int look_up(int sqlite_rc)
{
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (codes[i].sqlite == sqlite_rc)
            return codes[i].ours;
    return 0;
}

int lite_code(int sqlite_rc, int system_errno)
{
    int code = look_up(sqlite_rc);
    if (code == 0)
        code = look_up(sqlite_rc & 0xff);
    if (code == 0)
        return HF_EINTERNAL;
    /* SQLite calls only ENOSPC "full"; a quota or a limit on file sizes is the same to
     * the process that must make room. */
    if (code == HF_ESTOREIO &&
        (system_errno == ENOSPC || system_errno == EDQUOT || system_errno == EFBIG))
        return HF_EFULL;
    /* Side files that cannot be made: the folder is what is write-protected. */
    if (code == HF_ESTOREIO &&
        (system_errno == EACCES || system_errno == EPERM || system_errno == EROFS))
        return HF_EREADONLY;
    return code;
}

/* The text after `prefix`, or NULL. */
static const char *after(const char *text, const char *prefix)
{
    size_t len = strlen(prefix);
    return strlen(text) >= len && memcmp(text, prefix, len) == 0 ? text + len : NULL;
}

/* "UNIQUE constraint failed: t.a, t.b": what follows the colon is the field. */
static int fail_constraint(int code, const char *message, const char *what,
                           struct hf_err *err)
{
    const char *colon = strstr(message, ": ");
    return hf_fail(err, code, colon ? colon + 2 : NULL, "%s (%s)", message, what);
}

int lite_fail(sqlite3 *db, int sqlite_rc, const char *what, struct hf_err *err)
{
    return lite_fail_system(db, sqlite_rc, db ? sqlite3_system_errno(db) : 0, what, err);
}

int lite_fail_system(sqlite3 *db, int sqlite_rc, int system_errno, const char *what,
                     struct hf_err *err)
{
    int code = lite_code(sqlite_rc, system_errno);
    const char *message = db ? sqlite3_errmsg(db) : "";
    if (sqlite_rc == SQLITE_ERROR && hf_same(message, "integer overflow"))
        code = HF_EOVERFLOW; /* of a sum; it has no code of its own */
    if (sqlite_rc == SQLITE_CONSTRAINT_TRIGGER) {
        const char *reason = after(message, "holdfast: ");
        if (reason) /* the steps decide before they write: no caller can be at fault */
            return hf_fail(err, HF_EINTERNAL, NULL, "a guard refused it: %s", reason);
    }
    if ((sqlite_rc & 0xff) == SQLITE_CONSTRAINT)
        return fail_constraint(code, message, what, err);
    return hf_fail(err, code, NULL, "%s: %s (%s, SQLite code %d)", what,
                   hf_err_text(code), sqlite3_errstr(sqlite_rc), sqlite_rc);
}
