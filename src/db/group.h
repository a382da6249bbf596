/* Group commit: batches that are waiting become one transaction.
 *
 * Callers queue their batches. While fewer than `leaders_max` callers lead, a caller leads: it
 * takes what is queued by then, runs it with the driver's function, answers the callers, and
 * wakes the first that still waits. A lone caller runs its batch on its own thread, at the
 * cost of one uncontended lock. There is no thread in here.
 *
 * Threads: all functions may be called from any thread, except init and fini.
 */
#ifndef HF_DB_GROUP_H
#define HF_DB_GROUP_H

#include <pthread.h>
#include <stdatomic.h>

#include <holdfast/sys/driver.h>

#define DB_GROUP_MAX 128 /* batches of one transaction */

/* One batch and its answer, on its caller's stack. */
struct db_member {
    struct db_member *next;
    struct hf_batch *batch; /* NULL: the caller wants the lead alone (db_group_enter) */
    _Atomic uint32_t state; /* of group.c */
    int rc;
    struct hf_err err;
};

/* Runs the batches of `count` members, sets rc and err of each, and returns how many it has
 * run: it may add members with db_group_more. `members` has room for DB_GROUP_MAX. */
typedef size_t db_group_lead(void *driver, struct db_member **members, size_t count);

struct db_group_rules {
    db_group_lead *lead;
    size_t members_max; /* of one transaction; at most DB_GROUP_MAX */
    size_t rows_max; /* argument sets of one transaction, so that no caller waits long */
    uint32_t leaders_max;
    uint32_t worth; /* a further leader needs this many queued batches, */
    hf_ms slow_ms; /* or the last one to have led for this long; 0: waits have no bound */
};

struct db_group {
    const struct db_group_rules *rules;
    void *driver;
    pthread_mutex_t lock; /* of all below */
    struct db_member *head;
    struct db_member **tail;
    uint32_t queued;
    uint32_t leaders;
    hf_ms led_at; /* when the last leader began; monotonic */
    /* figures for people */
    _Atomic int64_t groups;
    _Atomic int64_t members;
    _Atomic int64_t largest;
    _Atomic int64_t late; /* members that db_group_more has added */
};

void db_group_init(struct db_group *group, const struct db_group_rules *rules,
                   void *driver);
void db_group_fini(struct db_group *group);

/* Runs a batch, alone or with others, and returns its answer. */
HF_MUST_USE int db_group_run(struct db_group *group, struct hf_batch *batch,
                             struct hf_err *err);

/* By the driver's function, before its commit: takes what came meanwhile behind the `count`
 * members that it has. Returns how many there are then. */
size_t db_group_more(struct db_group *group, struct db_member **members, size_t count);

/* Waits for the lead without a batch, and releases it: for work on the store that no
 * batch may see half done. */
void db_group_enter(struct db_group *group);
void db_group_leave(struct db_group *group);

#endif
