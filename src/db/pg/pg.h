/* The PostgreSQL driver, as its parts see it.
 *
 *   db/pg/open.c      open and close a handle
 *   db/pg/url.c       the address: what is ours and what is libpq's
 *   db/pg/conn.c      a connection: settings, identity, prepared statements
 *   db/pg/pooler.c    whether a pooler that is to keep sessions does
 *   db/pg/pool.c      the connections of a handle
 *   db/pg/code.c      PostgreSQL's error codes as ours
 *   db/pg/value.c     arguments and results
 *   db/pg/pipe.c      messages on their way: send many, then take the answers in order
 *   db/pg/run.c       batches as one transaction
 *   db/pg/gather.c    small batches of many callers as one
 *   db/pg/group.c     its leaders: a transaction, then the rings
 *   db/pg/outcome.c   the answer to a commit was lost
 *   db/pg/migrate.c   the schema's versions, the store's row, its history
 *   db/pg/bell.c      wake-ups by LISTEN and NOTIFY
 *   db/pg/listen.c    the connection that listens, and who reads it
 *   db/pg/ring.c      a NOTIFY behind a commit, on its connection
 *   db/pg/local.c     how often processes of this machine have taken leases
 *   db/pg/facts.c     what doctor and people want to know
 *
 * Threads. A connection belongs to the thread that took it from the pool. All the rest is
 * fixed after open, atomic, or under the lock named next to it. */
#ifndef HF_DB_PG_PG_H
#define HF_DB_PG_PG_H

#include <libpq-fe.h>
#include <stdatomic.h>
#include <sys/types.h>

#include <holdfast/bounds.h>
#include <holdfast/sys/driver.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/ident.h"
#include "db/group.h"
#include "db/own_gen.h"
#include "db/pg/open.h"
#include "os/threads.h"

#define PG_POOL_MAX 8      /* connections of one handle */
#define PG_LEADERS_MAX 2   /* of which this many write */
#define PG_SLOW_MS 100     /* after which the first one is slow */
#define PG_GROUP_WORTH 8   /* batches that are worth a transaction next to another */
#define PG_GROUP_MAX 64    /* batches of one transaction */
#define PG_GROUP_ROWS 4096 /* argument sets, so that no caller waits too long */
#define PG_SCHEMA_MAX 48   /* bytes of a schema's name */
/* A statement that takes longer is a fault of ours or of the server's; a caller that waits for a
 * lock keeps others waiting, so it is not for long. In ms. */
#define PG_STATEMENT_TIMEOUT "60000"
#define PG_LOCK_TIMEOUT "2000"
/* So a server that sends nothing for this long is gone. */
#define PG_SILENCE_MS 90000

/* Behind a pooler a connection is another server session in every transaction. */
enum pg_pooler { PG_POOLER_NONE, PG_POOLER_SESSION, PG_POOLER_TRANSACTION };

struct pg_url {
    char *conninfo; /* what libpq gets */
    char *listen;   /* the same for the bell; NULL: conninfo */
    char *schema;   /* a plain name: it needs no quotes except for reserved words */
    char *quoted;
    enum pg_pooler pooler;
};

struct pg;

/* A process of a server, so that no other one can be taken for it. */
struct pg_process {
    int64_t pid;   /* 0: not known */
    int64_t began; /* in us of the server's clock */
    int64_t timeline;
    int64_t system_id;
};

/* By what a transaction can be found if its answer is lost. */
struct pg_trace {
    char nonce[HF_NONCE_TEXT]; /* in its row of hf_commit */
    int64_t epoch;             /* of hf_commit, known before the transaction began */
    struct pg_process process; /* that runs it */
};

/* One thread at a time. */
struct pg_conn {
    struct pg *pg;
    PGconn *db;
    struct pg_conn *next;
    bool ready;   /* it is set up */
    bool lost;    /* nothing more can be said on it */
    bool ringing; /* a NOTIFY is on its way, its answers are still to be read */
    bool ring_prepared;
    bool spoiled;          /* half of one is queued: it ends with its transaction */
    hf_ms freed_at;        /* monotonic: when it went back to the pool */
    int64_t bytes;         /* of the table that grows, as last seen, */
    int64_t planned_bytes; /* and when the oldest plan may have been made; 0: none is */
    uint32_t begun;        /* transactions so far, while its size is asked for */
    struct pg_process process; /* behind a pooler: the one that answered first */
    unsigned char *prepared;   /* by 2 * statement, + 1 for its guarded form */
};

/* Who the server is, asked at each connection. */
struct pg_identity {
    char system_id[32];
    bool standby;
    int64_t version;
    bool schema_exists;
    int64_t objects;
    bool ours;
    bool may_create;
    bool may_create_schema;
    int64_t max_connections;
};

struct pg_pool {
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t freed;
    struct pg_conn *free;
    uint32_t open;
    uint32_t most;
};

/* One batch of a transaction. */
struct pg_member {
    struct hf_batch *batch;
    int rc;
    struct hf_err err;
    struct pg_member *const *parts; /* those that it was gathered from; NULL: itself */
    size_t part_count;
    bool told; /* its rings went out behind its commit */
};

#define PG_BELLS 64
#define PG_TAG_TEXT 17
#define PG_ANY_BELL PG_BELLS /* rung with each of the others */

/* To be told to other processes. */
struct pg_due {
    struct hf_ring rings[32];
    size_t count;
    bool all; /* more topics than fit: every process is to look */
};

struct pg_bell {
    char tag[PG_TAG_TEXT]; /* fixed: begins our messages, since they come back to us */
    pthread_mutex_t lock;  /* of all below */
    pthread_cond_t rung[PG_BELLS + 1];
    uint32_t words[PG_BELLS + 1]; /* bumped at each ring of their topics */
    struct pg_due due;
    hf_ms told_at;            /* monotonic: the last message */
    hf_ms apart_until;        /* until then no message goes behind a commit */
    struct hf_threads thread; /* at most one; it sleeps in poll, so `wake_fd` wakes it */
    int wake_fd;              /* an eventfd */
    bool wanted;              /* a thread waits, so others are to be heard */
    bool heard;               /* the listening connection heard itself */
    bool failed;              /* it did not: waiters look by themselves */
    bool follow;      /* a thread here waits for whatever is committed: to be said */
    hf_ms follow_due; /* when it is to be said again */
    _Atomic bool
        followed; /* a reader does, here or elsewhere, as of the last transaction */
};

struct pg_counts {
    _Atomic int64_t replays;
    _Atomic int64_t two_trips;
    _Atomic int64_t gathered; /* batches that became one with others */
    _Atomic int64_t connects;
    _Atomic int64_t lost;
    _Atomic int64_t resolved;
    _Atomic int64_t uncertain;
    _Atomic int64_t rings;
    _Atomic int64_t notices; /* heard */
};

struct pg {
    struct hf_sql sql; /* first: what callers hold */
    const struct hf_alloc *alloc;
    const struct hf_clock *clock;
    const struct hf_random *random;
    bool system_clock;
    bool inline_mode;
    bool read_only;
    bool may_follow; /* its role may write that it follows the feed */
    hf_ms busy_ms;
    pid_t pid;
    struct pg_url url;
    const struct db_schema *schema;
    char store_id[40];
    char system_id[32];
    hf_ms lease_offset_ms; /* of an injected clock */
    int schema_version;
    int64_t server_version;
    int64_t max_connections;

    struct pg_pool pool;
    struct db_group group;
    _Atomic hf_ms ahead_ms; /* of our wall clock, by which the server's is */
    _Atomic int64_t epoch;  /* of hf_commit, as last seen */
    struct pg_bell bell;
    struct pg_counts counts;
    _Atomic uint32_t *local_page; /* NULL: none could be had */
    size_t local_word;            /* this store's in it */
};

static inline struct pg *pg_of(struct hf_sql *sql)
{
    return (struct pg *)(void *)sql;
}

/* The numbers of the driver's own statements follow those of the schema. */
static inline int pg_own(const struct pg *pg, enum db_own which)
{
    return (int)pg->schema->statement_count + (int)which;
}

static inline const struct hf_pg_text *pg_text_of(const struct pg *pg, int statement)
{
    size_t count = pg->schema->statement_count, at = (size_t)statement;
    return at < count ? &pg->schema->pg[at] : &db_own_pg[at - count];
}

static inline void pg_count(_Atomic int64_t *counter)
{
    (void)atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* Real time, whatever clock was injected: servers live in it. */
static inline hf_ms pg_mono_ms(void)
{
    const struct hf_clock *clock = hf_clock_system();
    return clock->mono_ms(clock->user);
}

/* db/pg/url.c */
HF_MUST_USE int pg_url_read(const struct hf_alloc *alloc, const char *url,
                            struct pg_url *ret_url, struct hf_err *err);
void pg_url_free(const struct hf_alloc *alloc, struct pg_url *url);

/* db/pg/code.c. `what` names a statement or a deed; no argument's value is ever shown. */
#define PG_NEW_HISTORY (-1000) /* not an answer: the incarnation must rise first */
int pg_fail(const PGresult *result, const char *what, struct hf_err *err);
/* Of a connection that could not be made. */
int pg_fail_connect(PGconn *db, struct hf_err *err);
/* Of one that broke. */
int pg_fail_lost(const char *what, struct hf_err *err);
/* May the same batch succeed if it is run again at once? */
bool pg_is_transient(const PGresult *result);

/* db/pg/conn.c */
HF_MUST_USE int pg_conn_open(struct pg *pg, const char *conninfo,
                             struct pg_conn **ret_conn, struct hf_err *err);
void pg_conn_close(struct pg_conn *conn);
/* Has the server hung up, or said something unasked, while it was not in use? */
bool pg_conn_stale(struct pg_conn *conn);
HF_MUST_USE int pg_conn_identity(struct pg_conn *conn, struct pg_identity *ret_identity,
                                 struct hf_err *err);
/* db/pg/pooler.c: refuses a pooler that does not keep the connection's session to itself. */
HF_MUST_USE int pg_check_pooler(struct pg_conn *conn, struct hf_err *err);
/* Until PQgetResult will not block; false: not by then (monotonic), or the connection is gone. */
bool pg_await_answer(PGconn *db, hf_ms until);
/* One statement or script by itself, outside a pipeline. The caller clears the result. */
HF_MUST_USE int pg_conn_exec(struct pg_conn *conn, const char *sql, const char *what,
                             PGresult **ret_result, struct hf_err *err);
HF_MUST_USE int pg_conn_ask(struct pg_conn *conn, enum db_own which,
                            const char *const *args, PGresult **ret_result,
                            struct hf_err *err);
/* The table whose size the next transaction asks for, or NULL. */
const char *pg_conn_sized(struct pg_conn *conn);
/* The table that grows takes this many bytes now. */
void pg_conn_note_size(struct pg_conn *conn, int64_t bytes);
/* Has statements planned anew if the table has grown much since; false: the connection is of no
 * use any more. */
bool pg_conn_replan(struct pg_conn *conn);
/* The text with @schema@ in its place; NULL when out of memory. The caller frees it. */
char *pg_schema_text(const struct pg *pg, const char *text);

/* db/pg/pool.c */
HF_MUST_USE int pg_pool_take(struct pg *pg, struct pg_conn **ret_conn,
                             struct hf_err *err);
void pg_pool_give(struct pg_conn *conn); /* a lost one is closed */
void pg_pool_init(struct pg *pg);
void pg_pool_fini(struct pg *pg);

/* db/pg/value.c */
struct pg_args {
    const char **values;
    int *lengths;
    int *formats;
    int count;
};
const char *pg_i64_text(struct hf_arena *arena, int64_t value); /* NULL: no memory */
/* Arguments of one set, or of all sets as arrays; with room for one more. */
HF_MUST_USE int pg_args_set(struct hf_arena *arena, const struct hf_call *call,
                            uint32_t set, struct pg_args *ret_args);
HF_MUST_USE int pg_args_sets(struct hf_arena *arena, const struct hf_call *call,
                             const char *types, struct pg_args *ret_args);
HF_MUST_USE int pg_args_expect(struct hf_arena *arena, int64_t expect,
                               struct pg_args *args);
/* Append a result's rows to the call's rows, until the call is full (hf_call.bytes_max). The rest
 * of the result is dropped. 0 or HF_ENOMEM. */
HF_MUST_USE int pg_rows_add(struct hf_batch *batch, struct hf_call *call,
                            const PGresult *result);
int64_t pg_cell_i64(const PGresult *result, int row, int column);

/* db/pg/pipe.c */
struct pg_sent {
    struct pg_sent *next;
    enum {
        PG_SENT_PREPARE,
        PG_SENT_HEAD,
        PG_SENT_CALL,
        PG_SENT_OTHER,
        PG_SENT_SYNC
    } kind;
    int statement; /* 2 * id + guarded */
    size_t member;
    size_t call;
};

struct pg_pipe {
    struct pg_conn *conn;
    struct hf_arena *arena; /* of what is sent */
    struct pg_sent *first;
    struct pg_sent **last;
    bool
        failed; /* libpq could not take a message: no memory, or the connection is gone */
    bool flushed; /* the server may have all of it */
};

/* Begin a pipe of messages; send a prepared statement, or plain SQL; ask the server to flush its
 * answers; end the messages of one transaction. */
void pg_pipe_begin(struct pg_pipe *pipe, struct pg_conn *conn, struct hf_arena *arena);
void pg_pipe_send(struct pg_pipe *pipe, int statement, bool guarded,
                  const struct pg_args *args, struct pg_sent note);
void pg_pipe_plain(struct pg_pipe *pipe, const char *sql);
void pg_pipe_flush_request(struct pg_pipe *pipe);
void pg_pipe_sync(struct pg_pipe *pipe);
/* Hands everything to the kernel; false when the connection is gone. */
bool pg_pipe_flush(struct pg_pipe *pipe);
/* The answer to the next thing sent; NULL: the connection is gone. */
PGresult *pg_pipe_answer(struct pg_pipe *pipe, const struct pg_sent *sent);
void pg_pipe_end(struct pg_pipe *pipe);

/* db/pg/run.c */
/* Runs the members' batches, in one transaction if that can be, and sets rc and err of each.
 * At most PG_GROUP_MAX. */
void pg_run_group(struct pg *pg, struct pg_member *const *members, size_t count);
HF_MUST_USE int pg_run_read(struct pg *pg, struct hf_batch *batch, struct hf_err *err);
/* What an earlier run of the batch left. */
void pg_run_forget(struct pg *pg, struct hf_batch *batch);
/* Can every expectation of the batch be checked in SQL? */
bool pg_checked_in_sql(const struct pg *pg, const struct hf_batch *batch);

/* db/pg/gather.c */
#define PG_GATHER_CALLS 8

struct pg_gathered {
    struct pg_member member;
    struct hf_batch batch;
    struct hf_call calls[PG_GATHER_CALLS];
};

/* Whether a batch can be gathered with the batch `first`: it has the same calls, and each of them
 * can be one statement for both. */
bool pg_gather_fits(const struct pg *pg, const struct hf_batch *batch,
                    const struct hf_batch *first);
HF_MUST_USE int pg_gather(const struct pg *pg, struct pg_gathered *all,
                          struct pg_member *const *members, size_t count,
                          struct hf_arena *arena);
/* Tells each member what became of them all. */
void pg_gather_answer(struct pg *pg, const struct pg_gathered *all,
                      struct pg_member *const *members, size_t count);

/* db/pg/outcome.c */
enum pg_outcome { PG_COMMITTED, PG_NOTHING, PG_UNKNOWN };
/* A trace for a new transaction on this connection. */
HF_MUST_USE int pg_trace_begin(struct pg *pg, const struct pg_conn *conn,
                               struct pg_trace *ret_trace, struct hf_err *err);
/* Rarely true: the thread that ran this transaction is to delete old rows of hf_commit. */
bool pg_trace_forgets(const struct pg_trace *trace);
void pg_forget_commits(struct pg_conn *conn);
/* Finds the outcome of a transaction whose answer was lost. Its connection must be closed by then.
 * PG_NOTHING: it wrote nothing and never will. */
enum pg_outcome pg_outcome_of(struct pg *pg, const struct pg_trace *trace);

/* db/pg/group.c */
void pg_group_init(struct pg *pg);

/* db/pg/migrate.c */
HF_MUST_USE int pg_migrate(struct pg *pg, struct pg_conn *conn,
                           const struct hf_sql_options *options, struct hf_err *err);
/* Raises the incarnation if the server's history is not the store's. */
HF_MUST_USE int pg_raise_history(struct pg_conn *conn, struct hf_err *err);

/* db/pg/bell.c */
int pg_bell_init(struct pg *pg);
void pg_bell_stop(struct pg *pg);
void pg_bell_fini(struct pg *pg);
void pg_bell_ring_members(struct pg *pg, struct pg_member *const *members, size_t count);
uint32_t pg_bell_seen(struct hf_sql *sql, uint32_t topic);
bool pg_bell_wait(struct hf_sql *sql, uint32_t topic, uint32_t seen, hf_ms ms);
void pg_bell_ring(struct hf_sql *sql, uint32_t topic, uint32_t count);
/* The members' rings as a message, if one may go out now; then they count as told. */
bool pg_bell_carry(struct pg *pg, struct pg_member *const *members, size_t count,
                   struct hf_buf *message);
bool pg_bell_channel(const struct pg *pg, struct hf_buf *out);
/* Messages take long: for a while they use a connection of their own. */
void pg_bell_apart(struct pg *pg);
void pg_bell_wake(struct pg_bell *bell); /* the thread has something to do */
/* Under the lock: rings what another process has told. */
void pg_bell_hear(struct pg_bell *bell, const char *text);

/* db/pg/listen.c */
/* Only by the bell's thread, without its lock.
 * A connection that listens and has heard itself; NULL: none can be had. */
struct pg_conn *pg_listen_open(struct pg *pg);
/* Rings what has come in; true: one of the notices was `expected`, which may be NULL. */
bool pg_listen_take(struct pg *pg, struct pg_conn *conn, const char *expected);

/* db/pg/ring.c */
/* Queues a NOTIFY behind the transaction that this connection has just been sent. */
void pg_ring_behind(struct pg_conn *conn, struct pg_member *const *members, size_t count);
void pg_ring_mark(struct pg_member *const *members, size_t count, bool told);
/* Takes in what is left of it; false: the connection is of no use any more. */
bool pg_ring_done(struct pg_conn *conn);
/* A NOTIFY by itself, on a connection of the pool. */
HF_MUST_USE int pg_ring_alone(struct pg *pg, const char *channel, const char *message);

/* db/pg/local.c */
void pg_local_open(struct pg *pg);
void pg_local_close(struct pg *pg);
void pg_local_count(struct pg *pg, struct pg_member *const *members, size_t count);
bool pg_local_taken(struct hf_sql *sql, uint32_t *ret_count);

/* db/pg/facts.c */
int pg_facts(struct hf_sql *sql, struct hf_span *ret_json, struct hf_err *err);

#endif
