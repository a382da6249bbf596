/* The lease rules, for any leased row (session, work, effect): pure functions of the row,
 * the caller and the lease clock. Rules 1 to 5 and 12 of the lifecycle (see
 * docs/internals/leases.md). Nothing here reads a clock or a process table. */
#ifndef HF_CORE_LEDGER_LEASE_H
#define HF_CORE_LEDGER_LEASE_H

#include <holdfast/types.h>

#include "base/buf.h"

#define HF_TOKEN_TEXT 240 /* the longest token with its NUL */

/* The token a holder passes: one opaque string holding store incarnation, fence and nonce:
 * "hf1.<store>.<fence>.<nonce>". */
struct hf_token {
    int64_t store;
    int64_t fence;
    char nonce[192]; /* as given by the claimant, or 32 hex digits */
};

/* Writes the token of a lease: the text by which a caller proves that it holds the lease. */
int hf_token_write(struct hf_buf *out, int64_t store, int64_t fence, const char *nonce);
/* HF_EINVAL, naming the field "token", for anything that is not a token. */
int hf_token_read(const char *text, struct hf_token *ret_token, struct hf_err *err);

/* The lease columns of a row. `nonce` NULL: free (the fence stays). */
struct hf_lease {
    const char *owner;
    const char *incarnation;
    const char *nonce;
    const char *holder; /* JSON, see os/liveness.h; NULL: opaque */
    int64_t fence;
    int64_t store;
    hf_ms ttl_ms;
    hf_ms claimed_at;
    hf_ms expires_at;
};

struct hf_claimant {
    const char *owner;
    const char *incarnation;
    const char *nonce;
    const char *holder;
    hf_ms ttl_ms;
    int64_t store; /* the store's incarnation now */
};

enum hf_lease_outcome {
    HF_LEASE_ACQUIRED,  /* free or lapsed before: fence + 1 */
    HF_LEASE_RECLAIMED, /* live, but its holder is proven dead: fence + 1 */
    HF_LEASE_REENTERED, /* same owner and incarnation, new nonce: token rotates */
    HF_LEASE_REPEATED,  /* same nonce: the same token, nothing rotates */
};

/* Claim. `proven_dead` is a proof about exactly the holder that `row` names.
 *   0             *ret_lease is the row to write, *ret_outcome says how
 *   HF_EHELD      live and another caller's
 *   HF_EINVAL     ttl out of limits
 *   HF_EOVERFLOW  the fence is at its ceiling, HF_ECORRUPT it is negative              */
int hf_lease_claim(const struct hf_lease *row, const struct hf_claimant *who, hf_ms now,
                   bool proven_dead, struct hf_lease *ret_lease,
                   enum hf_lease_outcome *ret_outcome, struct hf_err *err);

/* Does the row's lease, live or lapsed, belong to this owner, incarnation and store
 * incarnation? Work rows let a late holder in again as long as no caller acted. */
bool hf_lease_mine(const struct hf_lease *row, const struct hf_claimant *who);

/* After hf_lease_mine: the row under the claimant's nonce and term; fence and claim time
 * stay, and an expiry never moves back. */
struct hf_lease hf_lease_reentered(const struct hf_lease *row,
                                   const struct hf_claimant *who, hf_ms now);

/* Is this token the row's? `must_be_live`: also not lapsed (sessions, effects, processes);
 * work rows accept a late holder as long as no caller acted. HF_ELEASELOST otherwise,
 * with text that says what differs (rotated, fence moved, store incarnation, lapsed,
 * free). */
int hf_lease_check(const struct hf_lease *row, const struct hf_token *token, hf_ms now,
                   int64_t store, bool must_be_live, struct hf_err *err);

/* After hf_lease_check: the row with expires_at = now + ttl (the row's own term when ttl_ms
 * is 0); an expiry never moves back. */
struct hf_lease hf_lease_renewed(const struct hf_lease *row, hf_ms now, hf_ms ttl_ms);

/* After hf_lease_check: the row, free, its fence kept. */
struct hf_lease hf_lease_released(const struct hf_lease *row);

/* Live if expires_at > now; equality is lapsed. */
bool hf_lease_live(const struct hf_lease *row, hf_ms now);

/* ttl_ms within limits and at least three times renew_ms (0: not given). The error says
 * the rule and the least term. */
int hf_lease_timing(hf_ms ttl_ms, hf_ms renew_ms, struct hf_err *err);

/* A third of the term, at least 250 ms. */
hf_ms hf_lease_renew_every(hf_ms ttl_ms);

#endif
