#include "support/pg.h"

#include <libpq-fe.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "db/pg/pg.h"
#include "store/store.h"
#include "support/unit.h"

static struct pg_server *running; /* what exit must stop */

/* Runs tests/support/pg; its first line goes into `out`. */
static bool script(const char *verb, const char *folder, char *out, size_t room)
{
    int ends[2];
    const char *path = getenv("PG_SCRIPT");
    if (!path || pipe(ends))
        return false;
    pid_t child = fork();
    if (child == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)close(ends[0]);
        (void)close(ends[1]);
        (void)execl(path, path, verb, folder, (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    size_t len = 0;
    for (ssize_t got;
         len + 1 < room && (got = read(ends[0], out + len, room - len - 1)) > 0;)
        len += (size_t)got;
    out[len] = '\0';
    out[strcspn(out, "\n")] = '\0';
    (void)close(ends[0]);
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

void pg_server_stop(struct pg_server *server)
{
    char out[16];
    if (running != server)
        return;
    running = NULL;
    (void)script("down", server->folder, out, sizeof(out)); /* what is left is in /tmp */
    (void)rmdir(server->folder);
}

static void stop_running(void)
{
    if (running)
        pg_server_stop(running);
}

static void must(struct pg_server *server, const char *verb, char *out, size_t room)
{
    if (!script(verb, server->folder, out, room)) {
        print_error("%s: it could not be had; run scripts/setup test\n", verb);
        exit(1);
    }
}

void pg_server_start(struct pg_server *server)
{
    char folder[60];
    *server = (struct pg_server){ .folder = "" };
    (void)snprintf(folder, sizeof(folder), "/tmp/hf-pg-XXXXXX");
    if (!mkdtemp(folder) || rmdir(folder)) {
        print_error("no folder for a server\n");
        exit(1);
    }
    (void)snprintf(server->folder, sizeof(server->folder), "%s", folder);
    running = server;
    (void)atexit(stop_running);
    must(server, "up", server->url, sizeof(server->url));
    const char *port = strstr(server->url, "port=");
    server->port = port ? (int)strtol(port + strlen("port="), NULL, 10) : 0;
}

void pg_server_pooler(struct pg_server *server)
{
    must(server, "pooler", server->pooled, sizeof(server->pooled));
}

void pg_server_session_pooler(struct pg_server *server, char out[256])
{
    must(server, "session_pooler", out, 256);
}

void pg_server_wrong_pooler(struct pg_server *server, char out[256])
{
    must(server, "wrong_pooler", out, 256);
}

void pg_server_standby(struct pg_server *server)
{
    must(server, "standby", server->standby, sizeof(server->standby));
}

void pg_server_promote(struct pg_server *server)
{
    char out[16];
    must(server, "promote", out, sizeof(out));
}

const char *pg_server_schema(const char *base, const char *schema, char *out)
{
    (void)snprintf(out, 400, "%s&schema=%s", base, schema);
    return out;
}

struct hf_store *pg_server_store(const struct pg_server *server, const char *schema)
{
    char url[400];
    struct hf_store *store = NULL;
    assert_int_equal(
        hf_store_open(pg_server_schema(server->url, schema, url), NULL, &store, NULL), 0);
    return store;
}

long pg_store_ran(struct hf_store *store, const char *like)
{
    const char *const args[] = { like };
    PGresult *result = PQexecParams(
        pg_of(sql_store_of(store)->sql)->pool.free->db,
        "SELECT coalesce(sum(generic_plans + custom_plans), 0) "
        "FROM pg_prepared_statements WHERE statement LIKE $1",
        1, NULL, args, NULL, NULL, 0);
    assert_int_equal(PQntuples(result), 1);
    long count = strtol(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return count;
}

const char *pg_server_sql(const struct pg_server *server, const char *sql)
{
    static char cell[4096];
    PGconn *db = PQconnectdb(server->url);
    PGresult *result = PQexec(db, sql);
    ExecStatusType status = PQresultStatus(result);
    bool fine = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
    (void)snprintf(cell, sizeof(cell), "%s",
                   !fine                   ? PQerrorMessage(db)
                   : PQntuples(result) > 0 ? PQgetvalue(result, 0, 0)
                                           : "");
    PQclear(result);
    PQfinish(db);
    if (!fine)
        fail_msg("%s: %s", sql, cell);
    return cell;
}

/* ---- stores for suites --------------------------------------------------------------------- */

int pg_place_again(void *user, const struct hf_store_options *options,
                   struct hf_store **ret_store, struct hf_err *err)
{
    const struct pg_place *place = user;
    char url[400];
    return hf_store_open(pg_server_schema(place->base, place->schema, url), options,
                         ret_store, err);
}

void pg_server_await(const struct pg_server *server, const char *sql, const char *wanted)
{
    while (strcmp(pg_server_sql(server, sql), wanted) != 0)
        (void)sched_yield();
}

static void set_standby(const struct pg_server *server, const char *name)
{
    char sql[100];
    (void)snprintf(sql, sizeof(sql), "ALTER SYSTEM SET synchronous_standby_names = '%s'",
                   name);
    (void)pg_server_sql(server, sql);
    (void)pg_server_sql(server, "SELECT pg_reload_conf()");
    pg_server_await(
        server,
        "SELECT setting FROM pg_settings WHERE name = 'synchronous_standby_names'", name);
}

static void drain(PGconn *db)
{
    for (PGresult *one = PQgetResult(db); one; one = PQgetResult(db))
        PQclear(one);
}

/* Until the server's checkpointer has read the setting too, no caller waits. */
void pg_server_stick(const struct pg_server *server, PGconn *db, const char *sql)
{
    static const char waits[] =
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    bool stuck = false;
    set_standby(server, "missing");
    while (!stuck) {
        assert_true(PQsendQuery(db, sql));
        for (bool over = false; !over && !stuck; over = !PQisBusy(db)) {
            stuck = strcmp(pg_server_sql(server, waits), "1") == 0;
            assert_true(PQconsumeInput(db));
        }
        if (!stuck)
            drain(db);
    }
}

void pg_server_unstick(const struct pg_server *server, PGconn *db)
{
    set_standby(server, "");
    drain(db);
}

int pg_place_open(void *user, const struct hf_store_options *options,
                  struct hf_store **ret_store, struct hf_err *err)
{
    return pg_place_again(user, options, ret_store, err);
}

/* Empties every table, with the guards off, and is many times faster than making the schema
 * anew. The next handle makes the store's row. */
void pg_place_discard(void *user)
{
    const struct pg_place *place = user;
    char sql[700];
    (void)snprintf(sql, sizeof(sql),
                   "SET session_replication_role = replica;"
                   "DO $$ DECLARE one text; BEGIN FOR one IN "
                   "SELECT format('%%I.%%I', schemaname, tablename) FROM pg_tables"
                   " WHERE schemaname = '%s' AND tablename <> 'hf_schema' "
                   "LOOP EXECUTE 'DELETE FROM ' || one; END LOOP; END $$;"
                   "ALTER SEQUENCE %s.hf_ids RESTART",
                   place->schema, place->schema);
    (void)pg_server_sql(place->server, sql);
}
