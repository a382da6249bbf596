/* Claiming: by queue in order of urgency and age, or one given row. */

#include "base/err.h"
#include "base/ident.h"
#include "model/inside.h"

static bool too_late(const struct m_call *call, const struct m_row *row)
{
    return row->w.deadline_at && call->now >= row->w.deadline_at;
}

static bool wanted(const struct m_call *call, const struct hf_claim *claim,
                   const struct m_row *row)
{
    if (row->status != HF_STATUS_QUEUED || row->w.gate || too_late(call, row) ||
        !m_same(row->w.queue, claim->queue ? claim->queue : "default"))
        return false;
    for (size_t i = 0; i < claim->kind_count; i++) {
        if (m_same(claim->kinds[i], row->w.kind))
            return true;
    }
    return claim->kind_count == 0;
}

static struct m_row *best(struct m_call *call, const struct hf_claim *claim)
{
    struct m_row *found = NULL;
    for (size_t i = 0; i < call->disk->rows.count; i++) {
        struct m_row *row = &call->disk->rows.at[i];
        if (wanted(call, claim, row) && (!found || m_before(row, found)))
            found = row;
    }
    return found;
}

static void answer_with(struct m_call *call, struct hf_answer *answer,
                        const struct m_row *row, bool repeated)
{
    struct hf_item *item = hf_answer_add(answer);
    m_show(call, answer, item, row, false);
    item->token = m_token(call->disk, row);
    item->repeated = repeated;
}

static bool mine(const struct m_call *call, const struct m_row *row,
                 const struct m_taker *taker)
{
    return row->status == HF_STATUS_RUNNING &&
           row->lease_incarnation == call->disk->incarnation &&
           m_same(row->w.owner, taker->owner) &&
           m_same(row->w.owner_incarnation, taker->incarnation);
}

/* Rows come in order of claiming. */
static void show_group(struct m_call *call, const struct m_taker *taker,
                       struct hf_answer *answer, bool repeated)
{
    const struct m_row *last = NULL;
    for (;;) {
        const struct m_row *next = NULL;
        for (size_t i = 0; i < call->disk->rows.count; i++) {
            const struct m_row *row = &call->disk->rows.at[i];
            if (mine(call, row, taker) && m_same(row->nonce, taker->nonce) &&
                (!last || m_before(last, row)) && (!next || m_before(row, next)))
                next = row;
        }
        if (!next)
            return;
        answer_with(call, answer, next, repeated);
        last = next;
    }
}

static void take(struct m_call *call, const struct hf_claim *claim,
                 const struct m_taker *taker, struct hf_answer *answer)
{
    size_t limit = claim->limit ? claim->limit : 1;
    struct m_row *row = NULL;
    /* A lane has one place: a row that is taken gates the rest of its lane. */
    for (size_t n = 0; n < limit && (row = best(call, claim)); n++) {
        m_acquire(call, row, taker, (struct m_say_event){ .type = "claimed" });
        m_lanes(call->disk);
    }
    m_limits_claimed(call);
    show_group(call, taker, answer, false);
}

static int by_queue(struct m_call *call, const struct hf_claim *claim,
                    const struct m_taker *taker, struct hf_answer *answer)
{
    if (claim->nonce)
        show_group(call, taker, answer, true);
    if (hf_answer_count(answer) > 0)
        return 0;
    take(call, claim, taker, answer);
    if (!m_attention(call))
        return 0;
    /* Due rows and lapsed leases do not wait for a monitor. */
    struct hf_sweep_report report;
    m_sweep_all(call, &report);
    if (hf_answer_count(answer) == 0 && report.promoted + report.requeued > 0)
        take(call, claim, taker, answer);
    return 0;
}

static int enter_again(struct m_call *call, const struct hf_claim *claim,
                       const struct m_taker *taker, struct m_row *row,
                       struct hf_answer *answer)
{
    bool repeated = m_same(row->nonce, taker->nonce);
    if (!repeated) {
        hf_ms ttl_ms = claim->ttl_ms ? claim->ttl_ms : row->w.lease_ttl_ms;
        hf_ms until = m_later(call->lease_now, ttl_ms);
        row->nonce = m_text(call->disk, taker->nonce);
        row->w.lease_ttl_ms = ttl_ms;
        if (until > row->w.lease_expires_at)
            row->w.lease_expires_at = until;
        m_note(call, row, (struct m_say_event){ .type = "lease_rotated" });
    }
    answer_with(call, answer, row, repeated);
    return 0;
}

/* Would a sweep make the row claimable now? Then it is done here. */
static void help_along(struct m_call *call, struct m_row *row)
{
    bool lapsed = row->status == HF_STATUS_RUNNING &&
                  row->disposition == HF_DISPOSITION_RERUNNABLE &&
                  call->lease_now >= row->w.lease_expires_at &&
                  row->w.failures + 1 < row->w.max_attempts && !too_late(call, row);
    bool due = row->status == HF_STATUS_QUEUED && m_same(row->w.gate, "due") &&
               call->now >= row->w.due_at && !too_late(call, row);
    bool retry = row->status == HF_STATUS_RETRY_SCHEDULED &&
                 call->now >= row->w.next_retry_at;
    if (lapsed || due || retry) {
        (void)m_sweep_row(call, row); /* what it is called does not matter here */
        m_lanes(call->disk);
        (void)m_limits(call);
    }
}

static int by_id(struct m_call *call, const struct hf_claim *claim,
                 const struct m_taker *taker, struct hf_answer *answer)
{
    int code = 0;
    struct m_row *row = m_find(call->disk, claim->id, &code);
    if (!row)
        return hf_fail_plain(call->err, code);
    if (row->w.session_id) /* claimed under its session's lease alone */
        return hf_fail_plain(call->err, HF_ETRANSITION);
    if (mine(call, row, taker))
        return enter_again(call, claim, taker, row, answer);
    help_along(call, row);
    if (row->status == HF_STATUS_RUNNING)
        return hf_fail_plain(call->err, HF_EHELD);
    if (row->status != HF_STATUS_QUEUED || row->w.gate || too_late(call, row))
        return hf_fail_plain(call->err, HF_ETRANSITION);
    m_acquire(call, row, taker, (struct m_say_event){ .type = "claimed" });
    m_lanes(call->disk);
    (void)m_limits(call);
    answer_with(call, answer, row, false);
    return 0;
}

int m_claim(struct hf_store *store, const struct hf_caller *who,
            const struct hf_claim *claim, struct hf_answer *answer, struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    char fresh[HF_NONCE_TEXT];
    if (!claim->nonce) {
        int rc = hf_nonce(store->random, fresh, err);
        if (rc)
            return rc;
    }
    struct m_taker taker = {
        .owner = claim->owner,
        .incarnation = claim->incarnation ? claim->incarnation : store->incarnation,
        .nonce = claim->nonce ? claim->nonce : fresh,
        .ttl_ms = claim->ttl_ms,
        .ttl_default_ms = claim->ttl_default_ms,
    };
    return claim->id ? by_id(&call, claim, &taker, answer)
                     : by_queue(&call, claim, &taker, answer);
}
