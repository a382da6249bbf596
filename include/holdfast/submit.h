/* Verbs without waiting: hand an operation over, be called when it is durable.
 *
 * For hosts with an event loop, and for many callers at once: operations that were submitted by the
 * time a transaction begins go into it together, and requests of one kind share its
 * statements. An operation means the same as its blocking form; those that are in flight at
 * the same time may be applied in any order, so submit what must come second from the
 * first's `done`.
 *
 * Verbs over sessions run one per thread of the submitter. Those that several threads write at
 * the same time share a transaction. A read waits for its turn like any other operation: a host
 * with many writes opens a second submitter for its reads.
 */
#ifndef HOLDFAST_SUBMIT_H
#define HOLDFAST_SUBMIT_H

#include <holdfast/session.h>
#include <holdfast/work.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The outcome of an operation. It and the items live until `done` returns. */
struct hf_submitted {
    int code;                       /* as the blocking form returns */
    const struct hf_err *err;       /* when it is not 0 */
    const struct hf_answer *answer; /* of units, when it is 0: use hf_submitted_at */
    size_t first;
    size_t count; /* of items: one per request or change, or the claimed units */
    /* The answers of the verbs over sessions; NULL for the others, and when `code` is not 0. */
    const struct hf_session_answer *session; /* create, claim, head, load, list */
    const struct hf_session_stepped *stepped;
    const struct hf_session_committed *committed;
};
HF_API const struct hf_item *hf_submitted_at(const struct hf_submitted *outcome,
                                             size_t i);

/* Called exactly once for each operation that was taken, by a thread of the submitter's, and
 * by several of them at a time for different operations. It should be quick: others wait for
 * the thread. It may submit, but not close the submitter. */
typedef void hf_done(void *user, const struct hf_submitted *outcome);

struct hf_submitter;

struct hf_submitter_options {
    uint32_t size;
    unsigned
        threads; /* 0: 1, at most 16; one gathers most, more help a store that works on
                          several transactions at once */
    size_t max_queued; /* 0: 65536 operations; more are HF_EBUSY */
};

/* The store must outlive it. A submitter does not survive a fork. HF_EINVAL names the option;
 * HF_ENOMEM. */
HF_API HF_MUST_USE int hf_submitter_open(struct hf_store *store,
                                         const struct hf_submitter_options *options,
                                         struct hf_submitter **ret_submitter,
                                         struct hf_err *err);
/* Waits until every operation is done. NULL is allowed. */
HF_API void hf_submitter_close(struct hf_submitter *submitter);

/* One verb: exactly one of the pointers after `who` is given. */
struct hf_operation {
    uint32_t size;
    const struct hf_caller *who;       /* may be NULL */
    const struct hf_work_spec *create; /* n of them, as hf_work_create */
    const struct hf_change *change;    /* n of them, as hf_work_change */
    const struct hf_claim *claim;      /* as hf_work_claim, but wait_ms must be 0 */
    const struct hf_renew_all *renew;  /* as hf_work_renew_all */
    size_t n;
    unsigned flags;
    /* Verbs over sessions, each as hf_session_ and the name. */
    const struct hf_session_spec *session_create;
    const struct hf_session_send *session_send;   /* the answer has the one unit */
    const struct hf_session_claim *session_claim; /* wait_ms must be 0 */
    const struct hf_session_step *session_step;
    const struct hf_session_commit *session_commit;
    struct hf_session_renewal *session_renew_all; /* n of them, which the call fills in */
    const struct hf_session_release *session_release;
    const struct hf_session_back *session_hand_back;
    const char *session_head; /* the session's id */
    const struct hf_session_load *session_load;
    const struct hf_session_filter *session_list;
};

/* Input is checked at once, and its error is returned: then `done` is not called.
 * The operation is copied; the requests, the caller and all that they point to are not, and
 * must stay as they are until `done` is called. Any thread may submit. HF_EINVAL and HF_ETOOBIG
 * name the field; HF_EBUSY: `max_queued` are queued; HF_ENOMEM. `done` gets the errors
 * of the blocking form. */
HF_API HF_MUST_USE int hf_submit(struct hf_submitter *submitter,
                                 const struct hf_operation *operation, hf_done *done,
                                 void *user, struct hf_err *err);

#ifdef __cplusplus
}
#endif
#endif
