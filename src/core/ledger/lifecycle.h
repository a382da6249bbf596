/* The lifecycle as data: which change of status is legal, by which verb, for which
 * caller.
 *
 * SQL guards, the tables of docs/internals/lifecycle.md and the edge-matrix test are made
 * from hf_edges; nothing more decides legality. */
#ifndef HF_CORE_LEDGER_LIFECYCLE_H
#define HF_CORE_LEDGER_LIFECYCLE_H

#include <holdfast/work.h>

/* the callers that may make a change */
enum hf_by {
    HF_BY_CREATE,
    HF_BY_CLAIM,
    HF_BY_HOLDER,    /* a valid token */
    HF_BY_ANYBODY,   /* resume, cancel, requeue: an operator or another program */
    HF_BY_AUTHORITY, /* names itself, for rows that no holder can end */
    HF_BY_SWEEP
};

/* Of which units, by their disposition; sets of bits. */
enum hf_of {
    HF_OF_FREE = 1,  /* any other disposition, or none */
    HF_OF_BOUND = 2, /* owner_bound */
    HF_OF_EXTERNAL = 4,
    HF_OF_HERE = HF_OF_FREE | HF_OF_BOUND,
    HF_OF_KEPT = HF_OF_BOUND | HF_OF_EXTERNAL,
    HF_OF_ANY = HF_OF_FREE | HF_OF_BOUND | HF_OF_EXTERNAL
};

/* One edge by one verb. */
struct hf_edge {
    enum hf_status from; /* HF_STATUS_NONE: creation */
    enum hf_status to;
    const char *verb; /* create claim wait close_out fail hand_back sweep cancel resume
                         complete requeue drain reconcile */
    enum hf_by by;
    enum hf_of of;
    const char *condition; /* for people */
};

extern const struct hf_edge hf_edges[];
extern const size_t hf_edge_count;

/* Is there any edge from -> to (by this verb; NULL: by any)? */
bool hf_edge_legal(enum hf_status from, enum hf_status to, const char *verb);

/* Of which units there is an edge from -> to, by any verb: bits of enum hf_of, 0 for none. */
unsigned hf_edge_of(enum hf_status from, enum hf_status to);

/* The event type that carries this transition: work_created, claimed, waiting_set, resumed,
 * retry_scheduled, retry_promoted, timeout_marked, close_out, requeued, otherwise
 * "transition". */
const char *hf_edge_event(enum hf_status from, enum hf_status to, const char *verb);

#endif
