/* The effect journal of processes and operations (holdfast/journal.h). An entry has a lease of its
 * own: to begin an effect is to take it. The entry is read, core decides (begin it, replay its
 * outcome, take it over, refuse), and it is written if it is still as it was read. */
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/text.h"
#include "core/ledger/lease.h"
#include "store/session/session.h"

#define ROW(name) HF_COL_JOURNAL_READ_##name

struct beginning {
    struct sql_store *store;
    const struct hf_caller *who;
    const struct hf_journal_begin *request;
    struct hf_claimant claimant;
    struct hf_journal_answer *answer;
};

/* An entry as it is read; texts are the result's. */
struct journal_row {
    struct hf_effect_entry entry;
    struct hf_lease lease;
};

static void put_key(struct hf_ops *ops, const struct hf_journal_key *of)
{
    hf_ops_text(ops, hf_scope_name(of->scope));
    hf_ops_text(ops, of->scope_id);
    hf_ops_text(ops, of->key);
}

static struct hf_span span_of(const struct hf_call *found, size_t column)
{
    const struct hf_val *cell = hf_out(found, 0, column);
    return cell->type == HF_VAL_TEXT ? (struct hf_span){ cell->at, cell->len }
                                     : (struct hf_span){ 0 };
}

/* HF_ENOTFOUND where there is no entry. */
static int read_row(struct hf_ops *ops, const struct hf_journal_key *of,
                    struct journal_row *ret_row, struct hf_err *err)
{
    hf_ops_call(ops, HF_SQL_JOURNAL_READ, HF_ANY_COUNT);
    put_key(ops, of);
    int rc = hf_ops_read(ops, err);
    const struct hf_call *found = rc == 0 ? hf_ops_result(ops, 0) : NULL;
    if (rc || found->out_count == 0)
        return rc ? rc : HF_ENOTFOUND;
    struct journal_row row = {
        .lease = { .owner = hf_out_text(found, 0, ROW(OWNER)),
                   .incarnation = hf_out_text(found, 0, ROW(OWNER_INCARNATION)),
                   .nonce = hf_out_text(found, 0, ROW(CLAIM_GROUP)),
                   .fence = hf_out_i64(found, 0, ROW(LEASE_FENCE)),
                   .store = hf_out_i64(found, 0, ROW(LEASE_INCARNATION)),
                   .ttl_ms = hf_out_i64(found, 0, ROW(LEASE_TTL_MS)),
                   .claimed_at = hf_out_i64(found, 0, ROW(LEASE_CLAIMED_AT)),
                   .expires_at = hf_out_i64(found, 0, ROW(LEASE_EXPIRES_AT)) },
        .entry = { .envelope = span_of(found, ROW(ENVELOPE)),
                   .outcome = span_of(found, ROW(OUTCOME)) },
    };
    row.entry.expires_at = row.lease.expires_at;
    if (!hf_recovery_read(hf_out_text(found, 0, ROW(RECOVERY)), &row.entry.recovery) ||
        !hf_entry_status_read(hf_out_text(found, 0, ROW(STATUS)), &row.entry.status))
        return hf_fail(err, HF_ECORRUPT, "effect",
                       "an entry of the journal is not known");
    *ret_row = row;
    return 0;
}

/* ---- begin ----------------------------------------------------------------------------- */

static void put_lease(struct hf_ops *ops, const struct hf_lease *lease)
{
    hf_ops_text(ops, lease->owner);
    hf_ops_text(ops, lease->incarnation);
    hf_ops_text(ops, lease->nonce);
    hf_ops_i64(ops, lease->fence);
    hf_ops_i64(ops, lease->store);
    hf_ops_i64(ops, lease->ttl_ms);
    hf_ops_i64(ops, lease->claimed_at);
    hf_ops_i64(ops, lease->expires_at);
}

/* HF_EGUARD: others have changed the entry since it was read. */
static int write_lease(const struct beginning *b, const struct journal_row *seen,
                       const struct hf_lease *lease, struct hf_err *err)
{
    const struct hf_journal_begin *request = b->request;
    struct hf_ops ops;
    hf_ops_init(&ops, b->store->sql, b->store->handle.alloc);
    hf_ops_call(&ops, seen ? HF_SQL_JOURNAL_TAKE : HF_SQL_JOURNAL_BEGIN, 1);
    put_key(&ops, &request->of);
    if (seen) {
        hf_ops_i64(&ops, seen->lease.fence);
        hf_ops_i64(&ops, seen->lease.expires_at);
    } else {
        hf_ops_text(&ops, b->who->tenant);
        hf_ops_text(&ops, request->kind);
        hf_ops_text(&ops, hf_recovery_name(request->recovery));
        hf_ops_text(&ops, request->envelope);
    }
    put_lease(&ops, lease);
    int rc = hf_ops_write(&ops, err);
    hf_ops_fini(&ops);
    return rc;
}

static int show_token(const struct beginning *b, const struct hf_lease *lease,
                      struct hf_err *err)
{
    struct hf_buf token;
    hf_buf_init(&token, b->store->handle.alloc, HF_TOKEN_TEXT);
    int rc = hf_token_write(&token, lease->store, lease->fence, lease->nonce);
    if (rc == 0)
        b->answer->token = hf_journal_answer_copy(
            b->answer, (struct hf_span){ hf_buf_str(&token), token.len });
    hf_buf_fini(&token);
    b->answer->fence = lease->fence;
    return rc || !b->answer->token ? hf_fail_plain(err, HF_ENOMEM) : 0;
}

/* Under a lease of this call's; entry NULL: it is the first one. A live lease is this call's own:
 * its answer was lost. */
static int acquire(struct beginning *b, const struct journal_row *seen, hf_ms now,
                   struct hf_err *err)
{
    static const struct hf_lease none;
    struct hf_lease lease;
    enum hf_lease_outcome outcome;
    int rc = hf_lease_claim(seen ? &seen->lease : &none, &b->claimant, now, false, &lease,
                            &outcome, err);
    if (rc == 0 && outcome != HF_LEASE_REPEATED)
        rc = write_lease(b, seen, &lease, err);
    if (rc)
        return rc;
    bool first = lease.fence == 1;
    b->answer->decision = first ? HF_DECISION_ABSENT : HF_DECISION_TAKE_OVER;
    b->answer->act = first
                         ? HF_RECOVER_RUN
                         : hf_effect_recover(seen->entry.recovery, b->request->can_probe);
    return sql_answered(show_token(b, &lease, err), err);
}

static int replay(struct beginning *b, const struct hf_effect_entry *entry,
                  struct hf_err *err)
{
    b->answer->status = entry->status;
    b->answer->outcome = hf_journal_answer_copy(b->answer, entry->outcome);
    return b->answer->outcome ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

static int decide(struct beginning *b, const struct journal_row *seen, hf_ms now,
                  struct hf_err *err)
{
    const char *envelope = b->request->envelope;
    const struct hf_effect_ask ask = { .scope = b->request->of.scope,
                                       .envelope = { envelope, strlen(envelope) },
                                       .now = now };
    const struct hf_effect_entry *entry = seen ? &seen->entry : NULL;
    b->answer->decision = hf_effect_decide(entry, &ask);
    switch (b->answer->decision) {
    case HF_DECISION_ABSENT:
    case HF_DECISION_TAKE_OVER: return acquire(b, seen, now, err);
    case HF_DECISION_REPLAY: return replay(b, entry, err);
    case HF_DECISION_BUSY:
        if (hf_lease_mine(&seen->lease, &b->claimant) &&
            hf_same(seen->lease.nonce, b->claimant.nonce))
            return acquire(b, seen, now, err);
        b->answer->busy_ms = seen->lease.expires_at - now;
        return 0;
    case HF_DECISION_MISMATCH:
        return hf_effect_mismatch(b->request->of.key, entry->envelope, ask.envelope, err);
    case HF_DECISION_CORRUPT: break;
    }
    return hf_fail(err, HF_ECORRUPT, "effect", "the entry of effect %.100s is corrupt",
                   b->request->of.key);
}

static int begin_once(struct beginning *b, struct hf_err *err)
{
    struct hf_ops ops;
    struct journal_row row;
    hf_ops_init(&ops, b->store->sql, b->store->handle.alloc);
    int rc = read_row(&ops, &b->request->of, &row, err);
    b->claimant.store = ops.batch.incarnation;
    if (rc == 0 || rc == HF_ENOTFOUND)
        rc = decide(b, rc ? NULL : &row, ops.batch.lease_now, err);
    hf_ops_fini(&ops);
    return rc;
}

static int journal_begin(struct hf_store *handle, const struct hf_caller *who,
                         const struct hf_journal_begin *request,
                         struct hf_journal_answer *answer, struct hf_err *err)
{
    char nonce[HF_NONCE_TEXT];
    struct beginning b = { .store = sql_store_of(handle),
                           .who = who,
                           .request = request,
                           .claimant = { .owner = request->owner,
                                         .incarnation = handle->incarnation,
                                         .nonce = request->nonce ? request->nonce : nonce,
                                         .ttl_ms = request->ttl_ms },
                           .answer = answer };
    int rc = request->nonce ? 0 : hf_nonce(handle->random, nonce, err);
    rc = rc ? rc : HF_EGUARD;
    for (int i = 0; rc == HF_EGUARD && i < HF_TRIES; i++)
        rc = begin_once(&b, err);
    return rc == HF_EGUARD ? hf_fail_plain(err, HF_EBUSY) : rc;
}

/* ---- the holder's verbs ------------------------------------------------------------------- */

/* Why the token was refused; 0 where the entry was settled by it as it says. */
static int explain(struct hf_store *handle, const struct hf_journal_key *of,
                   const struct hf_token *token, const char *status, const char *outcome,
                   struct hf_err *err)
{
    struct hf_ops ops;
    struct journal_row row;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    int rc = read_row(&ops, of, &row, err);
    if (rc == HF_ENOTFOUND)
        rc = hf_fail(err, HF_ELEASELOST, "token", "there is no entry of this effect");
    bool settled = rc == 0 && row.entry.status != HF_ENTRY_STARTED;
    if (rc == 0)
        rc = hf_lease_check(&row.lease, token, ops.batch.lease_now, ops.batch.incarnation,
                            !settled, err);
    if (rc == 0 && !settled)
        rc = HF_EGUARD; /* it holds after all: the same again */
    else if (rc == 0 && !outcome)
        rc = hf_fail(err, HF_ELEASELOST, "token", "the effect is settled");
    else if (rc == 0 && (!hf_same(status, hf_entry_status_name(row.entry.status)) ||
                         !hf_same(outcome, row.entry.outcome.at)))
        rc = hf_fail(err, HF_ECONFLICT, "outcome", "the effect was settled as %s",
                     hf_entry_status_name(row.entry.status));
    hf_ops_fini(&ops);
    return rc;
}

static int by_holder(struct hf_store *handle, const struct hf_journal_key *of,
                     const char *token_text, const char *status, const char *outcome,
                     struct hf_err *err)
{
    struct hf_token token;
    int rc = hf_token_read(token_text, &token, err);
    rc = rc ? rc : HF_EGUARD;
    for (int i = 0; rc == HF_EGUARD && i < HF_TRIES; i++) {
        struct hf_ops ops;
        hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
        hf_ops_call(&ops, outcome ? HF_SQL_JOURNAL_SETTLE : HF_SQL_JOURNAL_RENEW, 1);
        put_key(&ops, of);
        hf_ops_i64(&ops, token.store);
        hf_ops_i64(&ops, token.fence);
        hf_ops_text(&ops, token.nonce);
        if (outcome) {
            hf_ops_text(&ops, status);
            hf_ops_text(&ops, outcome);
        }
        rc = hf_ops_write(&ops, err);
        hf_ops_fini(&ops);
        if (rc == HF_EGUARD)
            rc = explain(handle, of, &token, status, outcome, err);
    }
    return rc == HF_EGUARD ? hf_fail_plain(err, HF_EBUSY) : rc;
}

static int journal_renew(struct hf_store *handle, const struct hf_journal_key *of,
                         const char *token, struct hf_err *err)
{
    return by_holder(handle, of, token, NULL, NULL, err);
}

static int journal_settle(struct hf_store *handle, const struct hf_journal_key *of,
                          const char *token, enum hf_entry_status status,
                          const char *outcome, struct hf_err *err)
{
    return by_holder(handle, of, token, hf_entry_status_name(status), outcome, err);
}

static int journal_retire(struct hf_store *handle, enum hf_scope scope,
                          const char *scope_id, int64_t *ret_count, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_JOURNAL_RETIRE, HF_ANY_COUNT);
    hf_ops_text(&ops, hf_scope_name(scope));
    hf_ops_text(&ops, scope_id);
    hf_ops_call(&ops, HF_SQL_JOURNAL_BUSY, HF_ANY_COUNT);
    hf_ops_text(&ops, hf_scope_name(scope));
    hf_ops_text(&ops, scope_id);
    int rc = hf_ops_write(&ops, err);
    if (rc == 0 && hf_ops_result(&ops, 1)->out_count > 0)
        rc = hf_fail(err, HF_EHELD, "scope_id", "an effect of %s %.100s is performed",
                     hf_scope_name(scope), scope_id);
    if (rc == 0)
        *ret_count = hf_ops_result(&ops, 0)->changed;
    hf_ops_fini(&ops);
    return rc;
}

const struct hf_journal_methods sql_journal_methods = {
    .begin = journal_begin,
    .renew = journal_renew,
    .settle = journal_settle,
    .retire = journal_retire,
    .unknown = sql_journal_unknown,
    .resolve = sql_journal_resolve,
};
