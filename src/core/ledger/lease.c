/* Lease rules. No clock is read here: `now` is always the lease clock's. */

#include "core/ledger/lease.h"

#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/text.h"

#define RENEW_MIN_MS 250
#define RENEWALS_PER_TERM 3

static hf_ms later(hf_ms at, hf_ms by)
{
    return by > 0 && at > INT64_MAX - by ? INT64_MAX : at + by;
}

int hf_token_write(struct hf_buf *out, int64_t store, int64_t fence, const char *nonce)
{
    hf_buf_text(out, "hf1.");
    hf_buf_i64(out, store);
    hf_buf_char(out, '.');
    hf_buf_i64(out, fence);
    hf_buf_char(out, '.');
    hf_buf_text(out, nonce);
    return hf_buf_state(out);
}

static bool skip(const char **at, const char *prefix)
{
    const char *c = *at;
    while (*prefix && *c == *prefix) {
        c++;
        prefix++;
    }
    *at = c;
    return *prefix == 0;
}

/* A decimal number in its one spelling, then a dot. Moves *at behind the dot. */
static bool read_number(const char **at, int64_t *ret_value)
{
    const char *c = *at;
    int64_t value = 0;
    if (*c < '0' || *c > '9' || (*c == '0' && c[1] != '.'))
        return false;
    for (; *c >= '0' && *c <= '9'; c++) {
        int64_t digit = *c - '0';
        if (value > (INT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    if (*c != '.')
        return false;
    *at = c + 1;
    *ret_value = value;
    return true;
}

int hf_token_read(const char *text, struct hf_token *ret_token, struct hf_err *err)
{
    struct hf_token token = { 0 };
    const char *at = text ? text : "";
    bool well = skip(&at, "hf1.") && read_number(&at, &token.store) &&
                read_number(&at, &token.fence) &&
                hf_check_key(at, sizeof(token.nonce) - 1, "token", NULL) == 0;
    if (!well)
        return hf_fail(
            err, HF_EINVAL, "token",
            "this is not a lease token: use the token that the claim returned");
    memcpy(token.nonce, at, strlen(at) + 1);
    *ret_token = token;
    return 0;
}

bool hf_lease_live(const struct hf_lease *row, hf_ms now)
{
    return row->nonce && row->expires_at > now;
}

bool hf_lease_mine(const struct hf_lease *row, const struct hf_claimant *who)
{
    return row->nonce && row->store == who->store && hf_same(row->owner, who->owner) &&
           hf_same(row->incarnation, who->incarnation);
}

struct hf_lease hf_lease_reentered(const struct hf_lease *row,
                                   const struct hf_claimant *who, hf_ms now)
{
    struct hf_lease lease = *row;
    hf_ms until = later(now, who->ttl_ms);
    lease.nonce = who->nonce;
    lease.holder = who->holder;
    lease.ttl_ms = who->ttl_ms;
    lease.expires_at = until > row->expires_at ? until : row->expires_at;
    return lease;
}

static int acquire(const struct hf_lease *row, const struct hf_claimant *who, hf_ms now,
                   struct hf_lease *ret_lease, struct hf_err *err)
{
    if (row->fence == INT64_MAX)
        return hf_fail(err, HF_EOVERFLOW, "lease_fence", "the fence is at its ceiling");
    *ret_lease = (struct hf_lease){
        .owner = who->owner,
        .incarnation = who->incarnation,
        .nonce = who->nonce,
        .holder = who->holder,
        .fence = row->fence + 1,
        .store = who->store,
        .ttl_ms = who->ttl_ms,
        .claimed_at = now,
        .expires_at = later(now, who->ttl_ms),
    };
    return 0;
}

int hf_lease_claim(const struct hf_lease *row, const struct hf_claimant *who, hf_ms now,
                   bool proven_dead, struct hf_lease *ret_lease,
                   enum hf_lease_outcome *ret_outcome, struct hf_err *err)
{
    int rc = hf_lease_timing(who->ttl_ms, 0, err);
    if (rc)
        return rc;
    if (row->fence < 0)
        return hf_fail(err, HF_ECORRUPT, "lease_fence", "the fence is negative");

    bool live = hf_lease_live(row, now);
    if (live && hf_lease_mine(row, who)) {
        bool repeated = hf_same(row->nonce, who->nonce);
        *ret_lease = repeated ? *row : hf_lease_reentered(row, who, now);
        *ret_outcome = repeated ? HF_LEASE_REPEATED : HF_LEASE_REENTERED;
        return 0;
    }
    if (live && !proven_dead)
        return hf_fail(err, HF_EHELD, "owner", "held by %s for another %lld ms",
                       row->owner ? row->owner : "an owner without a name",
                       (long long)(row->expires_at - now));
    rc = acquire(row, who, now, ret_lease, err);
    if (rc == 0)
        *ret_outcome = live ? HF_LEASE_RECLAIMED : HF_LEASE_ACQUIRED;
    return rc;
}

static int lost(struct hf_err *err, const char *why)
{
    return hf_fail(err, HF_ELEASELOST, "token", "lease lost: %s", why);
}

int hf_lease_check(const struct hf_lease *row, const struct hf_token *token, hf_ms now,
                   int64_t store, bool must_be_live, struct hf_err *err)
{
    if (token->store != store)
        return lost(err, "the store was restored or bumped after this token was issued");
    if (!row->nonce)
        return lost(err, "the lease was released");
    if (token->fence != row->fence)
        return lost(err, "the unit was claimed again (the fence moved)");
    if (!hf_same(row->nonce, token->nonce))
        return lost(err, "the token was rotated by a later claim");
    if (row->store != store)
        return lost(err, "the lease is of another store incarnation");
    if (must_be_live && !hf_lease_live(row, now))
        return lost(err, "the term of the lease has lapsed");
    return 0;
}

struct hf_lease hf_lease_renewed(const struct hf_lease *row, hf_ms now, hf_ms ttl_ms)
{
    struct hf_lease lease = *row;
    hf_ms until = later(now, ttl_ms > 0 ? ttl_ms : row->ttl_ms);
    if (until > lease.expires_at)
        lease.expires_at = until;
    return lease;
}

struct hf_lease hf_lease_released(const struct hf_lease *row)
{
    return (struct hf_lease){ .fence = row->fence };
}

int hf_lease_timing(hf_ms ttl_ms, hf_ms renew_ms, struct hf_err *err)
{
    if (ttl_ms < HF_MAX_TTL_MIN_MS || ttl_ms > HF_MAX_TTL_MAX_MS)
        return hf_fail(err, HF_EINVAL, "ttl_ms",
                       "ttl is %lld ms; it must be %lld to %lld ms", (long long)ttl_ms,
                       (long long)HF_MAX_TTL_MIN_MS, (long long)HF_MAX_TTL_MAX_MS);
    if (renew_ms == 0)
        return 0;
    if (renew_ms < RENEW_MIN_MS)
        return hf_fail(err, HF_EINVAL, "renew_ms",
                       "renew is %lld ms; it must be at least %d ms", (long long)renew_ms,
                       RENEW_MIN_MS);
    if (renew_ms > ttl_ms / RENEWALS_PER_TERM)
        return hf_fail(err, HF_EINVAL, "ttl_ms",
                       "ttl must be at least 3 * renew: %lld ms < 3 * %lld ms",
                       (long long)ttl_ms, (long long)renew_ms);
    return 0;
}

hf_ms hf_lease_renew_every(hf_ms ttl_ms)
{
    hf_ms every = ttl_ms / RENEWALS_PER_TERM;
    return every > RENEW_MIN_MS ? every : RENEW_MIN_MS;
}
