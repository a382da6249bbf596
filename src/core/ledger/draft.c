/* Common parts of all steps: entering a status, acquiring a lease, refusing.
 *
 * A step builds its result in a draft: `old` is the row as it was read, `out.row` the row as it
 * will be written. A row has a lease exactly if it has a claim_group, the lease's nonce. */

#include "core/ledger/draft.h"

#include "base/err.h"
#include "base/text.h"
#include "core/ledger/lifecycle.h"

hf_ms hf_later(hf_ms a, hf_ms b)
{
    return b > 0 && a > INT64_MAX - b ? INT64_MAX : a + b;
}

bool hf_row_bound(const struct hf_row *row)
{
    return row->disposition == HF_DISPOSITION_OWNER_BOUND && row->w.first_started_at != 0;
}

bool hf_row_gated(const struct hf_row *row, const char *gate)
{
    return row->w.gate && hf_same(row->w.gate, gate);
}

const char *hf_row_first_gate(const struct hf_row *row)
{
    if (row->w.lane_key || row->w.session_id) /* a session's claim alone opens it */
        return "lane";
    if (!row->w.limit_name)
        return NULL;
    return hf_starts_with(row->w.limit_name, "rate:") ? "rate" : "limit";
}

bool hf_row_waiting(const struct hf_row *row)
{
    return row->status == HF_STATUS_WAITING_USER ||
           row->status == HF_STATUS_WAITING_EXTERNAL;
}

bool hf_row_waits_for_rule(const struct hf_row *row)
{
    return row->status == HF_STATUS_WAITING_USER && row->w.close_rule &&
           hf_same(row->w.waiting_ref, row->w.work_id);
}

hf_ms hf_row_act_at(const struct hf_row *row)
{
    bool graced = row->disposition == HF_DISPOSITION_EXPIRE;
    hf_ms grace_ms = graced ? row->grace_ms : 0;
    return hf_later(row->w.lease_expires_at, grace_ms);
}

struct hf_lease hf_row_lease(const struct hf_row *row)
{
    return (struct hf_lease){
        .owner = row->w.owner,
        .incarnation = row->w.owner_incarnation,
        .nonce = row->claim_group,
        .holder = row->w.holder,
        .fence = row->w.lease_fence,
        .store = row->lease_incarnation,
        .ttl_ms = row->w.lease_ttl_ms,
        .claimed_at = row->w.started_at,
        .expires_at = row->w.lease_expires_at,
    };
}

struct hf_draft hf_draft_begin(struct hf_arena *arena, const struct hf_row *row,
                               const struct hf_env *env, struct hf_err *err)
{
    struct hf_draft draft = { .arena = arena, .old = row, .env = env, .err = err };
    draft.out.row = *row;
    draft.out.row.event_type = NULL;
    draft.out.row.message = NULL;
    draft.out.row.note = NULL;
    draft.out.row.actor_kind = env->actor_kind ? env->actor_kind : "system";
    draft.out.row.actor = env->actor ? env->actor : "holdfast";
    draft.out.row.event_correlation_id = env->correlation_id;
    return draft;
}

/* The fence stays for ever. A bound row that waits keeps its owner and its holder: only
 * they may continue with it, and only their death is a proof. */
static void release(struct hf_row *row)
{
    if (!hf_row_waiting(row) || !hf_row_bound(row)) {
        row->w.owner = NULL;
        row->w.owner_incarnation = NULL;
        row->w.holder = NULL;
    }
    row->claim_group = NULL;
    row->lease_incarnation = 0;
    row->grace_ms = 0;
    row->lease_check_at = 0;
    row->w.lease_ttl_ms = 0;
    row->w.lease_expires_at = 0;
    row->w.lease_remaining_ms = 0;
}

static void enter_queued(struct hf_row *row, hf_ms now)
{
    /* The start deadline counts from here, not from the first time it was due. */
    row->w.due_at = now;
    row->w.gate = hf_row_first_gate(row);
    row->w.deadline_at = row->w.start_timeout_ms ? hf_later(now, row->w.start_timeout_ms)
                                                 : 0;
}

void hf_draft_enter(struct hf_draft *draft, enum hf_status to, const char *verb)
{
    struct hf_row *row = &draft->out.row;
    hf_assert(hf_edge_legal(draft->old->status, to, verb));
    draft->out.kind = HF_STEP_WRITE;
    row->status = to;
    row->w.status = hf_status_word(to);
    row->w.status_reason = NULL;
    row->w.updated_at = draft->env->now;
    row->event_type = hf_edge_event(draft->old->status, to, verb);
    row->w.gate = NULL;
    row->w.deadline_at = 0;
    row->w.next_retry_at = 0;
    row->w.waiting_kind = NULL;
    row->w.waiting_ref = NULL;
    row->w.escalate = NULL;
    row->w.escalate_at = 0;
    release(row);
    if (draft->old->status == HF_STATUS_RUNNING && !hf_same(verb, "sweep")) {
        row->crashes = 0; /* this execution ended in order */
        row->crashed_at = 0;
    }
    if (to == HF_STATUS_QUEUED)
        enter_queued(row, draft->env->now);
    if (hf_status_terminal(to))
        row->w.finished_at = draft->env->now;
}

void hf_draft_quiet(struct hf_draft *draft, const char *event)
{
    draft->out.kind = HF_STEP_QUIET;
    draft->out.extra_event = event;
}

int hf_draft_repeat(struct hf_draft *draft)
{
    draft->out = (struct hf_step){ .kind = HF_STEP_REPEAT, .row = *draft->old };
    return 0;
}

int64_t hf_draft_released_fence(const struct hf_draft *draft)
{
    return draft->old->claim_group ? draft->old->w.lease_fence : 0;
}

int hf_draft_refuse(struct hf_draft *draft, enum hf_status to, const char *verb,
                    const char *why)
{
    const char *from = hf_status_word(draft->old->status);
    const char *into = hf_status_word(to);
    return hf_fail(draft->err, HF_ETRANSITION, "status",
                   "%s cannot take a row from %s%s%s%s%s", verb, from ? from : "nothing",
                   into ? " to " : "", into ? into : "", why ? ": " : "", why ? why : "");
}

int hf_draft_count(struct hf_draft *draft, int64_t *counter, const char *field)
{
    if (*counter < 0)
        return hf_fail(draft->err, HF_ECORRUPT, field, "%s is negative", field);
    if (*counter == INT64_MAX)
        return hf_fail(draft->err, HF_EOVERFLOW, field, "%s is at its ceiling", field);
    (*counter)++;
    return 0;
}

void hf_draft_put_lease(struct hf_draft *draft, const struct hf_lease *lease)
{
    struct hf_row *row = &draft->out.row;
    row->w.owner = lease->owner;
    row->w.owner_incarnation = lease->incarnation;
    row->w.holder = lease->holder;
    row->w.lease_fence = lease->fence;
    row->w.lease_ttl_ms = lease->ttl_ms;
    row->w.lease_expires_at = lease->expires_at;
    row->w.lease_remaining_ms = lease->expires_at - draft->env->lease_now;
    row->claim_group = lease->nonce;
    row->lease_incarnation = lease->store;
}

int hf_draft_acquire(struct hf_draft *draft, const struct hf_claimant *who,
                     const char *verb)
{
    const struct hf_env *env = draft->env;
    struct hf_row *row = &draft->out.row;
    struct hf_claimant with = *who;
    if (with.ttl_ms == 0)
        with.ttl_ms = env->policy->ttl_ms;

    struct hf_lease before = hf_row_lease(draft->old);
    struct hf_lease free_row = hf_lease_released(&before);
    struct hf_lease lease;
    enum hf_lease_outcome outcome;
    int rc = hf_lease_claim(&free_row, &with, env->lease_now, false, &lease, &outcome,
                            draft->err);
    if (rc == 0)
        rc = hf_draft_count(draft, &row->w.attempt_count, "attempt_count");
    if (rc)
        return rc;

    hf_draft_enter(draft, HF_STATUS_RUNNING, verb);
    hf_draft_put_lease(draft, &lease);
    row->grace_ms = env->policy->grace_ms;
    row->lease_check_at = hf_row_act_at(row);
    row->w.started_at = env->now;
    row->w.active_at = env->now;
    if (row->w.first_started_at == 0)
        row->w.first_started_at = env->now;
    /* Time alone never ends a bound row, so it gets no execution deadline. */
    if (row->w.exec_timeout_ms != 0 && !hf_row_bound(row))
        row->w.deadline_at = hf_later(env->now, row->w.exec_timeout_ms);
    return 0;
}

int hf_draft_policy(struct hf_draft *draft, struct hf_retry *ret_retry)
{
    int rc = hf_retry_read(draft->old->w.retry_policy, ret_retry, draft->err);
    if (rc == HF_EINVAL || rc == HF_ETOOBIG)
        return hf_fail(draft->err, HF_ECORRUPT, "retry_policy",
                       "the row's retry policy cannot be read");
    return rc;
}

void hf_draft_retry(struct hf_draft *draft, const struct hf_retry *retry,
                    const char *verb, struct hf_note *note)
{
    struct hf_row *row = &draft->out.row;
    hf_draft_enter(draft, HF_STATUS_RETRY_SCHEDULED, verb);
    note->delay_ms = hf_retry_delay(retry, row->w.failures, draft->env->random);
    row->w.next_retry_at = hf_later(draft->env->now, note->delay_ms);
    note->next_retry_at = row->w.next_retry_at;
}
