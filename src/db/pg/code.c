/* PostgreSQL's error codes as ours.
 *
 * A row names a whole SQLSTATE, or the first two characters of a class for all states
 * without a row of their own. What the server writes is shown only where it holds names and
 * never values: its primary message of some states, a constraint's name, and the columns of a
 * key, which are in the detail before the values. */
#include <string.h>

#include "base/text.h"
#include "db/pg/pg.h"

enum shown { HIDE, SHOW };

static const struct {
    const char *state;
    int ours;
    enum shown shown; /* the server's own words */
} codes[] = {
    { "HF001", HF_EGUARD, HIDE },
    { "HF002", HF_ETRANSITION, HIDE },
    { "HF003", PG_NEW_HISTORY, HIDE },
    { "22003", HF_EOVERFLOW, SHOW }, /* a sum beyond 64 bits */
    { "23505", HF_ECONFLICT, HIDE },
    { "23503", HF_ECONFLICT, HIDE },
    { "23", HF_EINTERNAL, HIDE },
    { "25006", HF_EREADONLY, SHOW },
    { "25P02", HF_EINTERNAL, SHOW },
    { "25P03", HF_EUNREACHABLE, SHOW },
    { "28", HF_EUNREACHABLE, SHOW },
    { "3D000", HF_ENOTSTORE, SHOW },
    { "3F000", HF_ENOTSTORE, SHOW },
    { "40", HF_EBUSY, SHOW },
    { "42501", HF_EREADONLY, SHOW },
    { "42P01", HF_ENOTSTORE, SHOW },
    { "42883", HF_ENOTSTORE, SHOW },
    { "42P05", HF_EUNREACHABLE, HIDE },
    { "26000", HF_EUNREACHABLE, HIDE },
    { "42", HF_EINTERNAL, SHOW },
    { "53100", HF_EFULL, SHOW },
    { "53", HF_EBUSY, SHOW },
    { "54", HF_ETOOBIG, SHOW },
    { "55P03", HF_EBUSY, SHOW },
    { "55000", HF_EREADONLY, SHOW }, /* pg_current_wal_lsn on a standby */
    { "57014", HF_EBUSY, SHOW },
    { "57P", HF_EUNREACHABLE, SHOW },
    { "08P01", HF_EUNREACHABLE, SHOW }, /* a pooler's own refusals */
    { "08", HF_EUNREACHABLE, SHOW },
    { "58030", HF_ESTOREIO, SHOW },
    { "58", HF_ESTOREIO, SHOW },
    { "XX001", HF_ECORRUPT, SHOW },
    { "XX002", HF_ECORRUPT, SHOW },
};

static const char pooler_advice[] =
    "the server lost prepared statements, as behind a pooler: add pooler=transaction to "
    "the address, or connect directly";
static const char standby_advice[] =
    "the server is a read-only standby; name all hosts in the address and add "
    "target_session_attrs=read-write (of a database or role that is set read-only: set "
    "its "
    "default_transaction_read_only to off)";

static size_t find(const char *state)
{
    const size_t count = sizeof(codes) / sizeof(codes[0]);
    size_t best = count;
    for (size_t i = 0; i < count; i++)
        if (hf_starts_with(state, codes[i].state) &&
            (best == count || strlen(codes[i].state) > strlen(codes[best].state)))
            best = i;
    return best;
}

static const char *field_of(const PGresult *result, int which)
{
    const char *text = PQresultErrorField(result, which);
    return text ? text : "";
}

/* "Key (a, b)=(1, 2) already exists.": the columns, and never what is in them. */
static void key_columns(const PGresult *result, char *out, size_t room)
{
    const char *detail = field_of(result, PG_DIAG_MESSAGE_DETAIL);
    const char *open = strchr(detail, '(');
    const char *close = open ? strstr(open, ")=(") : NULL;
    size_t len = close ? (size_t)(close - open) - 1 : 0;
    if (len >= room)
        len = hf_utf8_cut(open + 1, room - 1);
    if (len)
        memcpy(out, open + 1, len);
    out[len] = '\0';
}

static int fail_constraint(const PGresult *result, int code, const char *what,
                           struct hf_err *err)
{
    char columns[160];
    const char *name = field_of(result, PG_DIAG_CONSTRAINT_NAME);
    key_columns(result, columns, sizeof columns);
    return hf_fail(err, code, columns[0] ? columns : name,
                   "constraint %s refused %s (%s)", name, columns[0] ? columns : "a row",
                   what);
}

int pg_fail(const PGresult *result, const char *what, struct hf_err *err)
{
    const char *state = field_of(result, PG_DIAG_SQLSTATE);
    const char *message = field_of(result, PG_DIAG_MESSAGE_PRIMARY);
    size_t i = find(state);
    if (i == sizeof(codes) / sizeof(codes[0]))
        return hf_fail(err, HF_EINTERNAL, NULL, "%s: PostgreSQL answered %s", what,
                       state[0] ? state : "nothing");
    int code = codes[i].ours;
    if (code == HF_ETRANSITION)
        return hf_fail(err, code, NULL, "%s",
                       hf_starts_with(message, "holdfast: ") ? message + 10 : message);
    if (code == HF_EGUARD)
        return hf_fail(err, code, NULL, "statement %s %s", what, message);
    if (hf_starts_with(state, "23"))
        return fail_constraint(result, code, what, err);
    if (hf_starts_with(state, "26") || hf_starts_with(state, "42P05"))
        return hf_fail(err, code, "db", "%s", pooler_advice);
    if (hf_starts_with(state, "25006") || hf_starts_with(state, "55000"))
        return hf_fail(err, code, "db", "%s", standby_advice);
    if (codes[i].shown == SHOW)
        return hf_fail(err, code, NULL, "%s (%s, PostgreSQL %s)", message, what, state);
    return hf_fail(err, code, NULL, "%s: %s (PostgreSQL %s)", what,
                   code == PG_NEW_HISTORY ? "a new history" : hf_err_text(code), state);
}

bool pg_is_transient(const PGresult *result)
{
    const char *state = field_of(result, PG_DIAG_SQLSTATE);
    return hf_starts_with(state, "40001") || hf_starts_with(state, "40P01");
}

/* libpq returns no SQLSTATE for these. What it says names hosts, users and databases; of
 * an address that it could read (check_address) it shows no password. */
int pg_fail_connect(PGconn *db, struct hf_err *err)
{
    const char *text = db ? PQerrorMessage(db) : "out of memory";
    static const struct {
        const char *part;
        int code;
        const char *advice;
    } known[] = {
        { "too many clients", HF_EBUSY, "raise max_connections, or use a pooler" },
        { "remaining connection slots", HF_EBUSY,
          "raise max_connections, or use a pooler" },
        { "too many connections", HF_EBUSY, "raise the limit, or use a pooler" },
        { "no more connections allowed", HF_EBUSY, "raise the pooler's limits" },
        { "database system is starting up", HF_EUNREACHABLE, "wait for it" },
        { "database system is shutting down", HF_EUNREACHABLE, "wait for it" },
        { "session is read-only", HF_EUNREACHABLE,
          "no server of the address takes writes now; wait until a standby is promoted" },
        { "session is not read-only", HF_EREADONLY, "check target_session_attrs" },
        { "does not support SSL", HF_EUNREACHABLE,
          "switch TLS on at the server, or use another sslmode" },
        { "SSL", HF_EUNREACHABLE,
          "check sslmode, sslrootcert and the server's certificate" },
        { "password", HF_EUNREACHABLE, "check the user and the password (PGPASSFILE)" },
        { "authentication failed", HF_EUNREACHABLE, "check the user and pg_hba.conf" },
        { "no pg_hba.conf entry", HF_EUNREACHABLE, "allow this host in pg_hba.conf" },
        { "role \"", HF_EUNREACHABLE, "check the user" },
        { "permission denied for database", HF_EREADONLY,
          "GRANT CONNECT on it to the role" },
        { "not currently accepting connections", HF_EUNREACHABLE,
          "its ALLOW_CONNECTIONS is off" },
        { "database \"", HF_ENOTSTORE, "create the database, or correct its name" },
        { "no such database", HF_ENOTSTORE, "add the database to the pooler's settings" },
        { "could not translate host name", HF_EUNREACHABLE, "check the host's name" },
        { "invalid", HF_EINVAL, "correct the address" },
    };
    size_t end = strcspn(text, "\n");
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strstr(text, known[i].part))
            return hf_fail(err, known[i].code, "db", "%.*s: %s",
                           (int)(end < 300 ? end : 300), text, known[i].advice);
    return hf_fail(err, HF_EUNREACHABLE, "db", "%.*s", (int)(end < 300 ? end : 300),
                   text);
}

int pg_fail_lost(const char *what, struct hf_err *err)
{
    return hf_fail(err, HF_EUNREACHABLE, "db", "the connection to the server broke (%s)",
                   what);
}
