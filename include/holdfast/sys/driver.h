/* The driver seam: a SQL engine under the store, and nothing of the ledger.
 *
 * A verb appends calls to a batch; a driver runs the batch as one transaction. A batch is
 * data (statements, arguments, expected row counts), so it can be run again whole: that
 * is what group commit and lost answers need. Statements are named by number; their texts
 * are written once in sql/ and are generated into a table per engine.
 *
 * Five functions are known to every statement:
 *   hf_now()          wall time, ms        hf_lease_now()    lease clock, ms
 *   hf_incarnation()  of this store        hf_expect(n, m)   fails the batch unless n = m
 *   hf_next_id()      a number for a new row, larger than every one in use
 * The clocks may advance from one statement of a transaction to the next: a statement that waited
 * for a lock reads the time after the wait. The incarnation is constant within a transaction.
 * They are for statements only: never in views, triggers, CHECKs or indexes, which plain
 * tools read too.
 */
#ifndef HOLDFAST_SYS_DRIVER_H
#define HOLDFAST_SYS_DRIVER_H

#include <holdfast/store.h>

#ifdef __cplusplus
extern "C" {
#endif

enum hf_val_type { HF_VAL_NULL, HF_VAL_I64, HF_VAL_TEXT, HF_VAL_BYTES };

/* Borrowed by a call until the batch has ended; owned by the batch's arena in results.
 * Texts in results end in a NUL that is not counted. */
struct hf_val {
    enum hf_val_type type;
    int64_t i;
    const void *at;
    size_t len;
};

#define HF_ANY_COUNT (-1)

/* One statement, run once for each of `rows` sets of `width` arguments. */
struct hf_call {
    int statement;
    uint32_t once; /* arguments that are alike for all sets, before the first */
    uint32_t width;
    uint32_t rows;
    const struct hf_val *args; /* once, then rows * width, row by row */
    int64_t expect;            /* total rows changed (or returned, for a SELECT) */
    uint32_t only_if; /* above 0: nothing to do, and may be left out, where the call of
                         this number less one, before it, returned no rows */
    size_t
        bytes_max; /* of one argument set that reads: rows end with the one whose values make
                         this many bytes; 0: no bound. A server may have sent more */
    /* filled by the driver */
    bool full; /* bytes_max was reached: there may be more rows */
    int64_t changed;
    size_t out_count; /* rows returned, over all argument sets, in order */
    size_t out_width;
    struct hf_val *out; /* out_count * out_width, row by row */
};

/* Wake-ups to send once the batch is durable: a topic and how many waiters it can feed.
 * HF_TOPIC_ANY is rung by the driver itself: each commit that wrote wakes its waiters, so
 * it is for followers of everything. It costs something only while there is a waiter. */
#define HF_TOPIC_ANY 0u
struct hf_ring {
    uint32_t topic;
    uint32_t count;
};

/* Zero it before filling it in: the driver looks for results of an earlier run. */
struct hf_batch {
    const struct hf_alloc
        *alloc; /* of results; safe for the threads that run the batch */
    struct hf_call *calls;
    size_t call_count;
    bool read_only;        /* runs on a snapshot, takes no lock, is never grouped */
    bool holds;            /* it may take leases that name a process of this machine */
    struct hf_ring *rings; /* each topic once */
    size_t ring_count;
    /* filled by the driver */
    size_t failed_call; /* index, when the answer is HF_EGUARD or a constraint's code */
    hf_ms now;          /* hf_now() and hf_lease_now() as the transaction began */
    hf_ms lease_now;
    int64_t incarnation;
    bool
        lost; /* it was committed, but the answers were lost and its reads were run again: rows
                  that its writes returned, and counts that no call expected, are missing */
    void *results; /* the driver's memory of `out`; freed by the driver's forget() */
};

struct hf_sql;

/* Methods. Threads: all may be called from any thread at the same time, except close. */
struct hf_sql_methods {
    const char *name;

    /* Run a batch as one transaction and wait for it.
     *   0              done; a write is durable, a crash after return keeps it
     *   HF_EGUARD      a call's expectation was unmet: nothing was written
     *   HF_ECONFLICT   a unique key or a foreign key refused, named in err.field: nothing
     *                  was written
     *   HF_EINTERNAL   another constraint refused, or a statement is none: nothing was
     *                  written
     *   HF_ETRANSITION a guard (SQL trigger) refused: nothing was written
     *   HF_EOVERFLOW   a sum of a statement is beyond 64 bits: nothing was written
     *   HF_EBUSY, HF_EFULL, HF_EREADONLY, HF_ESTOREIO, HF_ECORRUPT, HF_ENOMEM
     *                  nothing was written
     *   HF_EUNCERTAIN  the commit's outcome is not known: read before doing it again
     * The batch may be run again after any answer.                                     */
    int (*run)(struct hf_sql *sql, struct hf_batch *batch, struct hf_err *err);

    /* Release the results of a batch that ran. Safe on one that did not. */
    void (*forget)(struct hf_sql *sql, struct hf_batch *batch);

    /* By how much the store's wall clock is ahead of the handle's, as last seen. Any thread. NULL:
     * they are the same. */
    hf_ms (*ahead_ms)(struct hf_sql *sql);

    /* Wake-up hints. bell_seen returns a ticket, to be taken BEFORE looking for work;
     * bell_wait returns true when the topic was rung since (or something may have
     * changed), false when `ms` passed. Hints may come for nothing; a lost one is made
     * good by the wait's own bound (250 ms). */
    uint32_t (*bell_seen)(struct hf_sql *sql, uint32_t topic);
    bool (*bell_wait)(struct hf_sql *sql, uint32_t topic, uint32_t seen, hf_ms ms);
    void (*bell_ring)(struct hf_sql *sql, uint32_t topic, uint32_t count);

    /* A number that is another one when a process of this machine has taken a lease since
     * it was given: until then its holders need not be read again. A hint: others may
     * take leases uncounted. False: leases are not counted. May be NULL. */
    bool (*taken_here)(struct hf_sql *sql, uint32_t *ret_count);

    /* Facts for doctor and for people, as one JSON object that ends in a NUL. It comes from
     * the handle's allocator, and the caller frees it. */
    int (*facts)(struct hf_sql *sql, struct hf_span *ret_json, struct hf_err *err);

    /* Ends all threads; no thread may be in a call. */
    void (*close)(struct hf_sql *sql);
};

/* Every driver's handle begins so. */
struct hf_sql {
    const struct hf_sql_methods *methods;
};

struct hf_sql_options {
    uint32_t size;
    const struct hf_alloc *alloc; /* NULL: the system's, for each of the three */
    const struct hf_clock *clock;
    const struct hf_random *random;
    bool inline_mode; /* no threads of the driver's own */
    bool read_only;
    bool must_exist; /* refuse to create the store */
    hf_ms busy_ms;   /* wait for a turn; 0: HF_MAX_STORE_WAIT_MS */
    enum hf_migrate migrate;
};

/* A generated statement or migration. */
struct hf_sql_text {
    const char *name;
    const char *text;
    int params;
    int columns; /* -1: not declared */
};

/* SQLite. `path` is a file, or ":memory:". Creates and migrates as the options allow. The
 * handle does not survive a fork: the child opens its own. The errors of hf_store_open. */
HF_API HF_MUST_USE int hf_sqlite_open(const char *path,
                                      const struct hf_sql_options *options,
                                      struct hf_sql **ret_sql, struct hf_err *err);

/* PostgreSQL 14 or newer. `url` is postgres:// or postgresql:// with what libpq takes, and
 * three parameters of our own: `schema` (default holdfast), `pooler` (none, session,
 * transaction), `listen_url` (a way around the pooler for wake-ups). An empty schema is filled;
 * an older one is brought up to date only with `migrate`. The server's clock decides, unless
 * a clock is injected. The handle does not survive a fork. The errors of hf_store_open. */
HF_API HF_MUST_USE int hf_postgres_open(const char *url,
                                        const struct hf_sql_options *options,
                                        struct hf_sql **ret_sql, struct hf_err *err);

#ifdef __cplusplus
}
#endif
#endif
