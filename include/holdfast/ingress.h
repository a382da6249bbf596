/* Ingress: how a conversation, a control channel or a scheduler hands its units to the
 * ledger without ever depending on it.
 *
 * A source must not stop because its ledger does. So a request is given to the ledger with
 * a bounded wait; when that fails or takes too long it goes into a spool, a bounded file of
 * JSON lines that is synced; and the source continues. hf_spool_reconcile brings a spool, or
 * an export that the source wrote itself, into the ledger later. Creating is idempotent (the
 * same source triple is the same unit), so a request that reached both is still one unit.
 *
 * The line of a request is one JSON object. Keys are the names of the columns of
 * runtime_work, and those of struct hf_work_spec where there is no column:
 *   source_system source_id source_run_id kind queue lane_key dedup_key limit_key rate_key
 *   fair_key fair_weight idempotency_key ref reply_ref parent_work_id payload payload_ref
 *   disposition priority max_attempts retry_policy
 *   delay_ms due_at start_timeout_ms exec_timeout_ms close_rule detached
 *   tenant actor_kind actor operation_id correlation_id spooled_at
 * `payload` and `retry_policy` are JSON values, kept in canonical form; `payload_text` and
 * `retry_policy_text` are texts that hold JSON, kept to the byte. Only source_system and
 * source_id are needed. A line with any other key is malformed.
 */
#ifndef HOLDFAST_INGRESS_H
#define HOLDFAST_INGRESS_H

#include <holdfast/store.h>
#include <holdfast/work.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Hand a message to the unit that waits for it, or make a unit of it.
 *
 * With reply_ref: where exactly one unit of the caller's tenant waits for a user under
 * this reference (who answers, and where: the adapter's own words), the request's payload
 * resumes it, and no unit is made. Where none or several wait, it becomes a unit as any
 * other. A channel whose messages are never answers leaves reply_ref NULL. *ret_resumed
 * says which it was; the answer's item is the unit that continues, or the new one. A wait of a
 * turn is answered with hf_wait_resolve: its id as reply_ref is HF_EINVAL, and no unit is made.
 *
 * A message that comes again is found again, whichever it was, as long as its unit or, for
 * 30 days, its receipt is kept. (Should two adapters deliver one message at the same moment,
 * and the wait begin between their looks, it can be taken both ways.) HF_ECONFLICT: the same
 * message with other content. */
HF_API HF_MUST_USE int hf_work_deliver(struct hf_store *store,
                                       const struct hf_caller *who,
                                       const struct hf_work_spec *request,
                                       struct hf_answer **ret_answer, bool *ret_resumed,
                                       struct hf_err *err);

struct hf_ingress;

struct hf_ingress_options {
    uint32_t size;
    const char *url;                      /* of the ledger, as for hf_store_open */
    const struct hf_store_options *store; /* NULL: the defaults */
    const char *spool; /* path, or NULL: the caller keeps what the ledger does not take */
    int64_t spool_bytes; /* 0: the limit spool_bytes */
    hf_ms budget_ms;     /* longest wait of one call; 0: 50 */
};

/* Opens nothing and waits for nothing: the ledger is opened by the first request, on a
 * thread of its own. The options are copied. HF_EINVAL, HF_ENOMEM. */
HF_API HF_MUST_USE int hf_ingress_open(const struct hf_ingress_options *options,
                                       struct hf_ingress **ret_ingress,
                                       struct hf_err *err);

/* Returns within the budget too: a thread that hangs in the ledger or the spool ends by
 * itself. No thread may be in a call. NULL is fine. */
HF_API void hf_ingress_close(struct hf_ingress *ingress);

enum hf_ingress_place {
    HF_INGRESS_LEDGER, /* a row of the ledger, durable */
    HF_INGRESS_SPOOL   /* a line of the spool, durable; the ledger may have it too */
};

struct hf_ingress_result {
    enum hf_ingress_place place;
    struct hf_answer *answer; /* LEDGER: one item, the caller's to free; otherwise NULL */
    struct hf_err why;        /* SPOOL: why the ledger does not have it, to be logged */
    bool resumed; /* LEDGER: the unit is the one that waited (hf_work_deliver) */
};

/* Hand over one request, in at most the budget.
 *   0              see ret_result
 *   HF_EINVAL, HF_ETOOBIG, HF_ECONFLICT, HF_EPOLICY …
 *                  the request itself is refused, as hf_work_create would; nothing is kept
 *   HF_EFULL, HF_EREADONLY, HF_ESTOREIO, HF_EBUSY
 *                  neither the ledger nor the spool took it; the message has both reasons
 *   HF_EUNCERTAIN  neither has answered yet, and both keep trying; or the spool failed, and
 *                  the ledger may still have it. Hand it over again: it stays one unit.
 * Threads: any, at the same time. */
HF_API HF_MUST_USE int hf_ingress_put(struct hf_ingress *ingress,
                                      const struct hf_caller *who,
                                      const struct hf_work_spec *request,
                                      struct hf_ingress_result *ret_result,
                                      struct hf_err *err);

/* Append a request to a spool, without a ledger: waits up to `wait_ms` for other writers,
 * and for the disk. Several processes may append to one file. */
struct hf_spool {
    uint32_t size;
    const char *path;
    int64_t bytes_max; /* 0: the limit spool_bytes */
    hf_ms wait_ms;
};
/* HF_EINVAL, HF_ETOOBIG; HF_EBUSY: the file is locked for longer than wait_ms; HF_EFULL,
 * HF_EREADONLY, HF_ESTOREIO; HF_ENOMEM. */
HF_API HF_MUST_USE int hf_spool_append(const struct hf_spool *spool,
                                       const struct hf_caller *who,
                                       const struct hf_work_spec *request,
                                       struct hf_err *err);

/* A line that made no unit, and will not by itself. */
struct hf_spool_problem {
    int64_t line; /* from 1 */
    int code;     /* HF_E*; HF_ECONFLICT: the ledger has other content */
    bool torn;    /* the last line, without its end: its writer died */
    const char *field;
    const char *message;
    const char *source_system; /* NULL where the line does not say */
    const char *source_id;
};
typedef void hf_spool_found(void *user, const struct hf_spool_problem *problem);

struct hf_spool_report {
    int64_t lines;       /* requests that were read */
    int64_t created;     /* units made now */
    int64_t existing;    /* already there, with the same content */
    int64_t resumed;     /* replies that ended a wait now */
    int64_t conflicting; /* already there, with other content */
    int64_t malformed;   /* not a request: named by line and field */
    int64_t refused;     /* by the ledger, for another reason */
    bool spool;          /* false: an export, which is never written to */
    bool trimmed;        /* durable lines were taken out of it; not by a link's name */
    int64_t left;        /* lines that stay in the spool */
};

/* Bring a spool or an export into the ledger. Lines that name no actor or tenant get the
 * caller's. When all lines were tried, durable lines are taken out of a spool, and a line that
 * made a problem, or was appended meanwhile, stays. On a failure of the ledger the file
 * stays whole: a second run finds the work of the first. HF_ENOTFOUND, HF_EINVAL: the file. */
HF_API HF_MUST_USE int hf_spool_reconcile(struct hf_store *store,
                                          const struct hf_caller *who, const char *path,
                                          hf_spool_found *found, void *user,
                                          struct hf_spool_report *ret_report,
                                          struct hf_err *err);

#ifdef __cplusplus
}
#endif
#endif
