/* A throw-away PostgreSQL for one test program (tests/support/pg), and schemas in it. */
#ifndef HF_TESTS_SUPPORT_PG_H
#define HF_TESTS_SUPPORT_PG_H

#include <holdfast/sys/conformance.h>
#include <libpq-fe.h>

struct pg_server {
    char folder[64];
    char url[256];
    char pooled[256];  /* through PgBouncer, once it runs; otherwise "" */
    char standby[256]; /* once it runs; otherwise "" */
    int port;
};

/* Starts it, or ends the program: a missing server is a failure. It is stopped by
 * pg_server_stop, and at exit. */
void pg_server_start(struct pg_server *server);
void pg_server_pooler(struct pg_server *server);
/* Other PgBouncers, in session and in statement mode; `out` gets their address. */
void pg_server_session_pooler(struct pg_server *server, char out[256]);
void pg_server_wrong_pooler(struct pg_server *server, char out[256]);
void pg_server_standby(struct pg_server *server);
void pg_server_promote(struct pg_server *server); /* the standby */
void pg_server_stop(struct pg_server *server);

/* `base` with another schema; `out` has room for 400. */
const char *pg_server_schema(const char *base, const char *schema, char *out);

/* A store in this schema, as most would open it; anything but success fails the test. */
struct hf_store *pg_server_store(const struct pg_server *server, const char *schema);

/* How often the store's free connection has run the prepared statements whose text is like this. */
long pg_store_ran(struct hf_store *store, const char *like);

/* One plain statement, as an outsider would; returns the first cell, or "" . Fails the
 * test on an error. The result lives until the next call. */
const char *pg_server_sql(const struct pg_server *server, const char *sql);

/* Waits until the first cell is this. */
void pg_server_await(const struct pg_server *server, const char *sql, const char *wanted);

/* From now on commits wait for a standby that there is not: returns when that of `sql`, which is
 * run again and again on `db` until then, does. */
void pg_server_stick(const struct pg_server *server, PGconn *db, const char *sql);
void pg_server_unstick(const struct pg_server *server, PGconn *db);

/* Stores for suites, one after the other in one schema. */
struct pg_place {
    const struct pg_server *server;
    const char *base; /* url or pooled */
    const char *schema;
};
int pg_place_open(void *user, const struct hf_store_options *options,
                  struct hf_store **ret_store, struct hf_err *err);
int pg_place_again(void *user, const struct hf_store_options *options,
                   struct hf_store **ret_store, struct hf_err *err);
void pg_place_discard(void *user);

#endif
