/* Many waiting turns on PostgreSQL, by one statement per table: copies of the rows of one turn that
 * was put away through the library. By the verbs each takes four transactions. The guards are off
 * meanwhile, so the role must be a superuser. */
#include <libpq-fe.h>
#include <stdio.h>

#include "base/err.h"
#include "bench.h"

/* $1 is the number of copies. Keys are far beyond those that the store assigns. A record with some
 * members replaced keeps the types of all others, whatever the columns are. */
#define FAR "1000000000"
#define COPY(table, changes)                                                             \
    "INSERT INTO " table " SELECT (jsonb_populate_record(r, jsonb_build_object(" changes \
    "))).* FROM " table " r, generate_series(1, $1::bigint) AS g"
#define KEY FAR " + g"
#define TURN_ID(id) "left(" id ", 24) || lpad(to_hex(g), 12, '0')"
#define WAIT_ID(id)                                                                      \
    "left(" id ", 1) || " TURN_ID("substr(" id ", 2, 36)") " || substr(" id ", 38)"

/* clang-format off */
static const char *const copies[] = {
    COPY("session", "'session_key', " KEY ", 'session_id', r.session_id || '.' || g,"
                    "'turn_key', " KEY),
    COPY("session_meta", "'session_key', " KEY),
    COPY("work_spec", "'seq', " KEY ", 'work_id', " TURN_ID("r.work_id") ","
                      "'source_id', r.source_id || '.' || g"),
    COPY("work_state", "'seq', " KEY ", 'session_id', r.session_id || '.' || g,"
                       "'waiting_ref', " WAIT_ID("r.waiting_ref")),
    COPY("session_input", "'seq', " KEY ", 'session_key', " KEY ", 'turn_key', " KEY),
    COPY("session_turn", "'turn_key', " KEY ", 'session_key', " KEY ","
                         "'turn_id', " TURN_ID("r.turn_id")),
    COPY("effect", "'turn_key', " KEY),
    COPY("wait", "'session_key', " KEY ", 'turn_key', " KEY ","
                 "'wait_id', " WAIT_ID("r.wait_id")),
    COPY("work_event", "'seq', " KEY ", 'event_id', 2 * " FAR " + 1000 * g + r.event_id"),
};
/* clang-format on */

int bench_pg_copy_waiting(struct bench *bench, size_t count)
{
    char text[24];
    const char *const args[] = { text };
    PGconn *db = PQconnectdb(bench->url[BENCH_RAW]);
    bool good = PQstatus(db) == CONNECTION_OK;
    (void)snprintf(text, sizeof text, "%zu", count);
    static const char *const before[] = { "SET search_path = holdfast_bench_large",
                                          "SET session_replication_role = replica",
                                          "BEGIN" };
    for (size_t i = 0; good && i < sizeof before / sizeof *before; i++) {
        PGresult *done = PQexec(db, before[i]);
        good = PQresultStatus(done) == PGRES_COMMAND_OK;
        PQclear(done);
    }
    for (size_t i = 0; good && i < sizeof copies / sizeof *copies; i++) {
        PGresult *done = PQexecParams(db, copies[i], 1, NULL, args, NULL, NULL, 0);
        good = PQresultStatus(done) == PGRES_COMMAND_OK;
        PQclear(done);
    }
    PGresult *done = good ? PQexec(db, "COMMIT; ANALYZE") : NULL;
    good = good && PQresultStatus(done) == PGRES_COMMAND_OK;
    PQclear(done);
    int rc = good ? 0
                  : hf_fail(&bench->err, HF_EINTERNAL, "db",
                            "waiting turns cannot be copied: %.160s", PQerrorMessage(db));
    PQfinish(db);
    return rc;
}
