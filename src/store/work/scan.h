/* Where the claims of a queue continue, on PostgreSQL.
 *
 * There an index keeps an entry for every version of a row that some open snapshot may still
 * see, so behind an old snapshot every claim walks over all that was claimed since: at the start
 * of its queue, and over leases that ended. So a handle remembers how far it came. Once in
 * SCAN_LOOK_MS, or, where that takes long, after SCAN_PATIENCE times as long, a claim looks
 * from the start and counts what it walked over for nothing. Only where that is much do the
 * claims in between continue from the last claimed key. More urgent rows are looked for from the
 * start always, and a claim that finds nothing looks from the start at once. So without wear
 * nothing differs; with it a row that comes back to the start, within its priority, waits for
 * the next look.
 *
 * Claims of some kinds only always look from the start. */
#ifndef HF_STORE_WORK_SCAN_H
#define HF_STORE_WORK_SCAN_H

#include <holdfast/types.h>

#define SCAN_QUEUES 8 /* that a handle remembers */
#define SCAN_LOOK_MS 1000
#define SCAN_PATIENCE 20
#define SCAN_WORN 1000 /* entries walked over for nothing */

struct hf_call;
struct hf_ops;
struct sql_store;

struct sql_scan_start {
    char queue[192]; /* "": no caller's */
    hf_ms look_at;   /* monotonic: the next look from the start */
    bool worn;       /* continues from this key: */
    int64_t priority, fair_tag, seq;
    bool long_way;    /* its rows are none for work_claim_lone: until the next look */
    bool leases_worn; /* looks only for what ended after these: */
    hf_ms leases_seen, wakes_seen;
};

/* A claim under way. */
struct sql_scan {
    struct sql_scan_start from;
    bool looks;  /* from the start, and counts */
    bool missed; /* work_claim_lone took nothing */
    hf_ms began_at;
    size_t reads_before, reads_after; /* calls */
};

/* `queue` "": from the start, and nothing is remembered. */
void sql_scan_begin(struct sql_store *store, const char *queue, bool from_start,
                    struct sql_scan *ret_scan);
/* The result of a scan: the rows that it took, in their order, and whether there is something to
 * sweep. */
void sql_scan_end(struct sql_store *store, const struct sql_scan *scan,
                  const struct hf_ops *ops, const struct hf_call *rows, bool attention);

#endif
