/* The SQLite driver, as its parts see it.
 *
 *   db/lite/open.c        open and close a handle
 *   db/lite/conn.c        a connection and its prepared statements
 *   db/lite/code.c        SQLite's result codes as ours
 *   db/lite/migrate.c     the schema's versions
 *   db/lite/clock.c       the two clocks and the SQL functions
 *   db/lite/side.c        the sidecar file and its locks: who uses the store, who may write
 *   db/lite/holder.c      which process holds a lock, for errors
 *   db/lite/bell.c        wake-ups through the sidecar
 *   db/lite/run.c         the calls of one batch inside an open transaction
 *   db/lite/txn.c         one write transaction for many batches
 *   db/lite/group.c       its leader: the turnstile, rings, checkpoints
 *   db/lite/read.c        batches that only read
 *   db/lite/checkpoint.c  moving the WAL into the file, off the commit path
 *   db/lite/facts.c       what doctor and people want to know
 *
 * Threads. `writer` belongs to the process that leads (db/lite/group.c). A reader belongs
 * to the process that took it from the pool. The checkpoint thread and the bell have
 * connections of their own.
 * All the rest is fixed after open, atomic, or under the lock named next to it. */
#ifndef HF_DB_LITE_LITE_H
#define HF_DB_LITE_LITE_H

#include <sqlite3.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/types.h>

#include <holdfast/bounds.h>
#include <holdfast/sys/driver.h>

#include "base/arena.h"
#include "base/err.h"
#include "db/group.h"
#include "db/lite/open.h"
#include "db/own_gen.h"
#include "os/threads.h"

#define LITE_APPLICATION_ID 0x48464c44 /* "HFLD" */
#define LITE_READERS_MAX 4
#define LITE_BELLS 64
#define LITE_BELL_SLICE_MS 250
#define LITE_LOCKED_MS                                                                   \
    5000 /* wait for SQLite's locks; our own processes pass the turnstile first */

/* Transaction control, prepared once per connection. */
enum lite_control {
    LITE_BEGIN_READ,
    LITE_BEGIN_WRITE,
    LITE_COMMIT,
    LITE_ROLLBACK,
    LITE_SAVE,
    LITE_RELEASE,
    LITE_BACK,
    LITE_CONTROL_COUNT
};

/* The results of the SQL functions; fixed for one transaction. */
struct lite_instant {
    hf_ms now;
    hf_ms lease_now;
    int64_t incarnation;
};

/* hf_store, as every transaction reads it. */
struct lite_store_facts {
    int64_t incarnation;
    int64_t commit_seq;
    hf_ms high_water;
};

struct lite_stmt {
    sqlite3_stmt *st; /* NULL: not yet prepared */
    uint16_t *slot;   /* of $n at n - 1: SQLite's number for it, 0 where it is not used */
    uint32_t width;
    int made_slot; /* of ":made", the key that the call before made; 0: not used */
    bool reads;
    bool takes_sets; /* reads hf_args: run once for all argument sets */
};

struct lite;

/* One thread at a time. */
struct lite_conn {
    struct lite *lite;
    sqlite3 *db;
    struct lite_stmt *stmts; /* by statement number, those of the schema first */
    sqlite3_stmt *control[LITE_CONTROL_COUNT];
    struct lite_instant instant;
    bool expect_unmet;          /* set by hf_expect just before it fails its statement */
    const struct hf_call *sets; /* what hf_args shows */
    int64_t last_id;            /* that hf_next_id returned in this statement; 0: none */
    int64_t ids_given;          /* by hf_next_id in this statement */
    int64_t made_after; /* the ids that the last call returned follow it; -1: none */
    struct lite_conn *next;
};

/* The sidecar's locks are on these bytes, past the page's end. */
#define LITE_ENTRY_BYTE ((off_t)1 << 30)
#define LITE_WRITE_BYTE (LITE_ENTRY_BYTE + 1)
#define LITE_OPEN_BYTE (LITE_ENTRY_BYTE + 2)

/* The mapped page. The first line's fields keep their places in every version, so that any
 * program can tell whether the file under it was replaced. */
struct lite_page {
    uint64_t magic;
    uint32_t version;
    uint32_t bytes;
    _Atomic int64_t commit_seq; /* of the last durable commit that a handle saw */
    _Atomic int64_t incarnation;
    char store_id[40];
    _Atomic int32_t schema_version; /* that the store has by now */
    _Atomic uint32_t entry_word;    /* bumped at each release of the lock */
    _Atomic uint32_t write_word;
    _Atomic uint32_t bells[LITE_BELLS];
    _Atomic uint32_t followed; /* a process waits for whatever is committed next */
    /* How many wait, so that no other process pays for a call to the kernel. Hints: one
     * who died waiting is counted until a process opens the store alone. */
    _Atomic uint32_t turnstile_waiters;
    _Atomic uint32_t bell_waiters[LITE_BELLS];
    _Atomic int32_t
        turnstile_pid; /* the process that may write; 0: none, or not yet known */
    _Atomic int64_t
        turnstile_pid_ns; /* the pid namespace (inode) in which turnstile_pid counts */
};

struct lite_side {
    int fd; /* -1: no file, a page of our own (":memory:", or nothing to share) */
    struct lite_page *page;
    int64_t pid_ns; /* of this process; 0: not known */
    bool mapped;
    bool alone; /* at open: no other handle had the store open */
    bool known; /* at open: the file had been a sidecar before */
};

struct lite_lease_clock {
    hf_ms offset_ms;
    char boot_id[40];
    char time_ns[40];
};

struct lite_readers {
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t freed;
    struct lite_conn *free;
    uint32_t open;
};

struct lite_watch {
    pthread_mutex_t lock; /* of all below that is not atomic */
    struct lite_conn *conn;
    _Atomic bool ready; /* there is a version to compare with */
    int64_t data_version;
    hf_ms looked_at;
    _Atomic uint32_t stir; /* part of every ticket: others may have changed something */
};

struct lite_checkpoint {
    pthread_mutex_t lock;     /* of all below that is not atomic */
    struct hf_threads thread; /* at most one, started when it is first wanted */
    bool wanted;
    _Atomic int64_t wal_pages;
    _Atomic int64_t due_pages; /* ask the thread at this size */
};

struct lite_counts {
    _Atomic int64_t replays;
    _Atomic int64_t failed_commits;
    _Atomic int64_t turnstile_waits;
    _Atomic int64_t turnstile_wait_ms;
    _Atomic int64_t checkpoints;
    _Atomic int64_t checkpoints_in_turnstile;
};

struct lite {
    struct hf_sql sql; /* first: what callers hold */
    const struct hf_alloc *alloc;
    const struct hf_clock *clock;
    const struct hf_random *random;
    const struct db_schema *schema;
    char *path;
    char *vfs; /* NULL: the default */
    bool memory;
    bool read_only;
    bool inline_mode;
    bool system_clock;
    bool opened; /* to write, and with success */
    hf_ms busy_ms;
    pid_t pid; /* that opened it: a handle does not survive a fork */
    int schema_version;
    char store_id[40];

    struct lite_conn writer;
    struct db_group group;
    struct lite_readers readers;
    struct lite_side side;
    struct lite_lease_clock lease;
    struct lite_watch watch;
    struct lite_checkpoint checkpoint;
    struct lite_counts counts;
};

/* db/lite/code.c. `what` names a statement or a deed; no argument's value is ever shown. */
int lite_code(int sqlite_rc, int system_errno);
int lite_fail(sqlite3 *db, int sqlite_rc, const char *what, struct hf_err *err);
int lite_fail_system(sqlite3 *db, int sqlite_rc, int system_errno, const char *what,
                     struct hf_err *err);

/* db/lite/conn.c */
enum lite_use { LITE_WRITES, LITE_READS };

HF_MUST_USE int lite_conn_open(struct lite *lite, enum lite_use use,
                               struct lite_conn *conn, struct hf_err *err);
void lite_conn_close(struct lite_conn *conn);
HF_MUST_USE int lite_conn_new(struct lite *lite, enum lite_use use,
                              struct lite_conn **ret_conn, struct hf_err *err);
void lite_conn_free(struct lite_conn *conn);

/* The numbers of the driver's own statements follow those of the schema. */
int lite_own(const struct lite *lite, enum db_own which);
const struct hf_sql_text *lite_text_of(const struct lite *lite, int statement);
/* The statement, prepared at its first use. */
HF_MUST_USE int lite_stmt_get(struct lite_conn *conn, int statement,
                              struct lite_stmt **ret_stmt, struct hf_err *err);
/* SQLite's result code, with the statement reset. */
HF_MUST_USE int lite_control(struct lite_conn *conn, enum lite_control which);
/* One of the two that begin; its caller is inside the turnstile. */
HF_MUST_USE int lite_begin(struct lite_conn *conn, enum lite_control how,
                           struct hf_err *err);
/* 0 or our code, and SQLite's next to it. The transaction may still be open on
 * failure. */
HF_MUST_USE int lite_commit(struct lite_conn *conn, int *ret_sqlite, struct hf_err *err);
/* Does nothing outside a transaction; always leaves it. */
void lite_roll_back(struct lite_conn *conn);
HF_MUST_USE int lite_exec(struct lite_conn *conn, const char *sql, struct hf_err *err);
/* One PRAGMA's value. */
HF_MUST_USE int lite_pragma(struct lite_conn *conn, const char *sql, int64_t *ret_value,
                            struct hf_err *err);

/* db/lite/run.c. Runs the calls in order and stops at the first that fails. */
HF_MUST_USE int lite_run_calls(struct lite_conn *conn, struct hf_batch *batch,
                               struct hf_err *err);
void lite_forget(struct hf_sql *sql, struct hf_batch *batch);

/* Runs one of the driver's own statements in the open transaction, if any. The results are
 * in run->call until run->batch is forgotten, which is due after failure too. */
struct lite_own_run {
    struct hf_batch batch;
    struct hf_call call;
};

HF_MUST_USE int lite_run_own(struct lite_conn *conn, enum db_own which,
                             const struct hf_val *args, struct lite_own_run *run,
                             struct hf_err *err);

static inline struct hf_val lite_i64(int64_t value)
{
    return (struct hf_val){ .type = HF_VAL_I64, .i = value };
}

static inline struct hf_val lite_text(const char *text)
{
    return (struct hf_val){ .type = HF_VAL_TEXT, .at = text, .len = strlen(text) };
}

/* db/lite/clock.c */
HF_MUST_USE int lite_functions(struct lite_conn *conn, struct hf_err *err);

/* The table hf_args. */
int lite_args(struct lite_conn *conn, struct hf_err *err);

/* Samples the clocks into conn->instant; nothing earlier than `high_water` is given. */
void lite_sample(struct lite_conn *conn, int64_t incarnation, hf_ms high_water);
void lite_stamp(const struct lite_conn *conn, struct hf_batch *batch);
hf_ms lite_lease_now(const struct lite *lite);
/* The next result of hf_next_id(), or SQLite's code. It can fail for a statement's first row
 * only. */
HF_MUST_USE int lite_next_id(struct lite_conn *conn, int64_t *ret_id);
/* Finds out the boot and time namespace of this process. */
HF_MUST_USE int lite_clock_identify(struct lite *lite, struct hf_err *err);

struct lite_clock_row {
    const char *boot_id;
    const char *time_ns;
    hf_ms offset_ms;
    hf_ms high_water;
};

/* Sets lite->lease.offset_ms by what the store's row says; HF_ECLOCK if the row belongs to
 * another time namespace of this boot. `ret_changed`: the row must be written. */
HF_MUST_USE int lite_clock_set(struct lite *lite, const struct lite_clock_row *row,
                               bool *ret_changed, struct hf_err *err);

/* db/lite/migrate.c. Under the turnstile; brings the schema up to date. */
HF_MUST_USE int lite_migrate(struct lite *lite, bool may_change, struct hf_err *err);
/* 0, or HF_ENOTSTORE: the file holds something different. In a transaction, or inside the
 * turnstile. */
HF_MUST_USE int lite_check_kind(struct lite_conn *conn, bool *ret_empty,
                                struct hf_err *err);

/* db/lite/side.c */
/* Whether there is a sidecar next to the path that knows a store. Opens nothing to
 * write. */
bool lite_side_knows(struct lite *lite);
HF_MUST_USE int lite_side_open(struct lite *lite, struct hf_err *err);
void lite_side_close(struct lite *lite);
/* Of a handle that only reads, once the schema's version is known: a page that is not this
 * store's is replaced by one of the handle's own, which brings no wake-ups. */
HF_MUST_USE int lite_side_for_reader(struct lite *lite, struct hf_err *err);
/* Inside the turnstile: marks the store as open in this process, and finds out whether it is
 * so in others (side.alone) and whether the sidecar knew it (side.known). */
HF_MUST_USE int lite_side_enter(struct lite *lite, struct hf_err *err);
/* Inside the turnstile: the opposite. True when no other process has the store open to write. */
bool lite_side_leave(struct lite *lite);
/* Inside the turnstile: makes the sidecar this store's. */
void lite_side_adopt(struct lite *lite, const struct lite_store_facts *facts);
/* Only the process inside the turnstile writes. Bounded by busy_ms: then HF_EBUSY. */
HF_MUST_USE int lite_turnstile_enter(struct lite *lite, struct hf_err *err);
void lite_turnstile_leave(struct lite *lite);
/* Counts a waiter in the page. The process that bumps a word and then finds no process
 * counted need not wake:
 * one who counts itself later looks at the word once more, in the kernel, before it sleeps. */
void lite_wait_begins(_Atomic uint32_t *waiters);
void lite_wait_ends(_Atomic uint32_t *waiters);

/* db/lite/holder.c. HF_EBUSY that names the process inside the turnstile, or in one of SQLite's
 * locks (`what` says which), and what to do about it. */
int lite_fail_turnstile(const struct lite *lite, struct hf_err *err);
int lite_fail_locked(const struct lite *lite, const char *what, struct hf_err *err);
int64_t lite_pid_namespace(void);
#define LITE_WAL_LOCK "SQLite's lock for recovering the write-ahead log"

/* db/lite/bell.c */
uint32_t lite_bell_seen(struct hf_sql *sql, uint32_t topic);
bool lite_bell_wait(struct hf_sql *sql, uint32_t topic, uint32_t seen, hf_ms ms);
void lite_bell_ring(struct hf_sql *sql, uint32_t topic, uint32_t count);
void lite_ring_members(struct lite *lite, struct db_member *const *members, size_t count);

/* db/lite/txn.c. Runs the members' batches in one durable transaction, and sets rc and err of
 * each. By the leader, inside the turnstile. */
void lite_txn_run(struct lite *lite, struct db_member *const *members, size_t count);
/* The same for what is queued: who comes before the commit goes with them. `members` has room
 * for DB_GROUP_MAX. Returns how many there are then. */
size_t lite_txn_lead(struct lite *lite, struct db_member **members, size_t count);
/* Begins a write transaction, reads the store's row and samples the clocks. */
HF_MUST_USE int lite_txn_begin(struct lite *lite, struct lite_store_facts *ret_facts,
                               struct hf_err *err);
/* Raises commit_seq and commits; rolls back on failure, after which the outcome is open. */
HF_MUST_USE int lite_txn_end(struct lite *lite, struct lite_store_facts *facts,
                             struct hf_err *err);

/* Reads the store's row in the open transaction. */
HF_MUST_USE int lite_store_read(struct lite_conn *conn,
                                struct lite_store_facts *ret_facts, struct hf_err *err);

/* db/lite/group.c */
void lite_group_init(struct lite *lite);
/* Waits for the lead and the turnstile without a batch: for work on the store that no
 * writer may see half done. */
HF_MUST_USE int lite_group_enter(struct lite *lite, struct hf_err *err);
void lite_group_leave(struct lite *lite);

/* db/lite/read.c */
void lite_readers_init(struct lite *lite);
void lite_readers_fini(struct lite *lite);
int lite_read_run(struct lite *lite, struct hf_batch *batch, struct hf_err *err);

/* db/lite/checkpoint.c */
void lite_checkpoint_init(struct lite *lite);
void lite_checkpoint_watch(struct lite *lite); /* once the writer is open */
void lite_checkpoint_fini(struct lite *lite);
/* After a commit: has the WAL grown enough? */
void lite_checkpoint_look(struct lite *lite);

/* db/lite/open.c */
/* May this handle still be used? Not after a fork, nor after a newer program migrated. */
HF_MUST_USE int lite_usable(const struct lite *lite, struct hf_err *err);

/* db/lite/facts.c */
int lite_facts(struct hf_sql *sql, struct hf_span *ret_json, struct hf_err *err);

static inline hf_ms lite_locked_ms(const struct lite *lite)
{
    return lite->busy_ms < LITE_LOCKED_MS ? lite->busy_ms : LITE_LOCKED_MS;
}

static inline struct lite *lite_of(struct hf_sql *sql)
{
    return (struct lite *)sql;
}

#endif
