/* One step in the making: what step_*.c share. Not for the store. */
#ifndef HF_CORE_LEDGER_DRAFT_H
#define HF_CORE_LEDGER_DRAFT_H

#include "core/ledger/step.h"

struct hf_draft {
    struct hf_arena *arena;
    const struct hf_row *old;
    const struct hf_change *change; /* NULL in create, claim and sweep */
    const struct hf_env *env;
    struct hf_err *err;
    struct hf_step out; /* starts as the old row */
};

/* The facts of an event about its change. 0, NULL and false are left out; keys come out sorted. */
struct hf_note {
    const char *abandon_request; /* JSON */
    bool anew;
    const char *authority;
    hf_ms deadline_at;
    hf_ms delay_ms;
    bool detached;
    const char *disposition;
    hf_ms due_at;
    const char *error_class;
    const char *escalate;
    hf_ms escalate_at;
    const char *const *evidence;
    size_t evidence_count;
    hf_ms exec_timeout_ms;
    int64_t failures;
    const char *from; /* who set the values: "request" or "policy" */
    int64_t generation;
    const char *kind;
    const struct hf_row *lease; /* acquired */
    const struct hf_row
        *lease_lost; /* taken from its holder; left out if there is none */
    int64_t max_attempts;
    hf_ms next_retry_at;
    const char *const *outputs;
    size_t output_count;
    const char *payload; /* JSON */
    int64_t payload_bytes;
    const char *proof; /* JSON */
    const char *reason;
    const char *ref;
    int64_t released_fence;   /* given up by its holder */
    const char *retry_policy; /* JSON */
    const char *reviewer;
    hf_ms start_timeout_ms;
    const char *status;
    const char *summary;
    hf_ms timeout_ms;
    const char *writer;
};

/* a + b, or the ceiling. b >= 0. */
hf_ms hf_later(hf_ms a, hf_ms b);

/* The gate that a row meets when its time has come: its lane's or its limit's, or none. */
const char *hf_row_first_gate(const struct hf_row *row);

/* Whether this gate is why the queued row cannot be claimed now. */
bool hf_row_gated(const struct hf_row *row, const char *gate);

/* A started owner_bound row: only its owner, a proof or an operator's request ends it. */
bool hf_row_bound(const struct hf_row *row);
bool hf_row_waiting(const struct hf_row *row);

/* Waits for a person to add what the row's close rule asks: its execution has ended in order,
 * and its holder could not close it. Its reference is its own id. */
bool hf_row_waits_for_rule(const struct hf_row *row);
struct hf_lease hf_row_lease(const struct hf_row *row);

/* When peers may act on the row's lease: at its expiry, and for `expire`, and only there,
 * a grace later. On the lease clock. */
hf_ms hf_row_act_at(const struct hf_row *row);

struct hf_draft hf_draft_begin(struct hf_arena *arena, const struct hf_row *row,
                               const struct hf_env *env, struct hf_err *err);

/* The row in its new status: every column that belongs to the old one is cleared, those
 * that follow from status and time alone are set. The edge must be in the table. */
void hf_draft_enter(struct hf_draft *draft, enum hf_status to, const char *verb);

/* Makes the step one without a transition; `event` (NULL: none) is appended. */
void hf_draft_quiet(struct hf_draft *draft, const char *event);

/* Makes the step one that writes nothing: the answer is the row as it is. Returns 0. */
int hf_draft_repeat(struct hf_draft *draft);

/* The note as canonical JSON in the arena; hf_draft_note makes it the event's. */
int hf_note_text(struct hf_draft *draft, const struct hf_note *note,
                 const char **ret_text);
int hf_draft_note(struct hf_draft *draft, const struct hf_note *note);

/* The fence of the lease that the old row has, which a step that ends the lease writes into its
 * event's note; 0: the row has no lease. It does not look whether the step ends it. */
int64_t hf_draft_released_fence(const struct hf_draft *draft);

/* HF_ETRANSITION: `from -> to` by this verb; `why` may be NULL. */
int hf_draft_refuse(struct hf_draft *draft, enum hf_status to, const char *verb,
                    const char *why);

/* One more, or HF_EOVERFLOW naming the column. */
int hf_draft_count(struct hf_draft *draft, int64_t *counter, const char *field);

/* Writes a lease into the columns of the new row. */
void hf_draft_put_lease(struct hf_draft *draft, const struct hf_lease *lease);

/* Into running under a fresh lease: attempt, fence, term, deadlines (claim, resume). */
int hf_draft_acquire(struct hf_draft *draft, const struct hf_claimant *who,
                     const char *verb);

/* The row's retry policy, HF_ECORRUPT when it cannot be read. */
int hf_draft_policy(struct hf_draft *draft, struct hf_retry *ret_retry);

/* Into retry_scheduled, with the delay noted; the failure has been counted. */
void hf_draft_retry(struct hf_draft *draft, const struct hf_retry *retry,
                    const char *verb, struct hf_note *note);

/* {"at","by","reason"} in the arena: a request that its target has yet to see. */
int hf_draft_request(struct hf_draft *draft, const char **ret_text);

/* Verbs, by file. */
int hf_draft_close_out(struct hf_draft *draft);
int hf_draft_fail(struct hf_draft *draft);
int hf_draft_hand_back(struct hf_draft *draft);
int hf_draft_cancel(struct hf_draft *draft);
int hf_draft_requeue(struct hf_draft *draft);
int hf_draft_request_abandon(struct hf_draft *draft);
int hf_draft_abandon(struct hf_draft *draft);
int hf_draft_reschedule(struct hf_draft *draft);
int hf_draft_release(struct hf_draft *draft);
int hf_draft_wait(struct hf_draft *draft);
int hf_draft_resume(struct hf_draft *draft);

/* The wait of a started owner_bound row, whose signal is the change's payload. */
int hf_draft_signal(struct hf_draft *draft);

#endif
