/* Leases of keyed rows, whichever table they are in: read, decide by core's rules, write if the row
 * is still as it was read. Each kind of row has its statements in the table below. A renewal is one
 * statement whose guard is the token; only one that is refused reads. */
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/text.h"
#include "os/liveness.h"
#include "store/store.h"

#define DEFAULT_TTL_MS 30000

static const struct leased_table {
    enum hf_sql_id read;
    enum hf_sql_id lock; /* before a release */
    enum hf_sql_id write;
    enum hf_sql_id begin;
    enum hf_sql_id renew;
    bool must_be_live; /* rule 1: are holder verbs refused after the lapse? */
} tables[HF_LEASED_COUNT] = {
    [HF_LEASED_SESSION] = { HF_SQL_LEASE_READ_SESSION, HF_SQL_LEASE_LOCK_SESSION,
                            HF_SQL_LEASE_WRITE_SESSION, HF_SQL_LEASE_BEGIN_SESSION,
                            HF_SQL_LEASE_RENEW_SESSION, true },
};

/* One look at a leased row. `lease` points into `ops`. */
struct look {
    struct hf_ops ops;
    struct hf_lease lease;
};

/* The lease in the first row. All statements of `tables` that return rows return the columns of
 * lease_read_session, in its order (sql/lease.sql). */
static struct hf_lease first_lease(const struct hf_call *row)
{
    return (struct hf_lease){
        .owner = hf_out_text(row, 0, HF_COL_LEASE_READ_SESSION_OWNER),
        .incarnation = hf_out_text(row, 0, HF_COL_LEASE_READ_SESSION_OWNER_INCARNATION),
        .nonce = hf_out_text(row, 0, HF_COL_LEASE_READ_SESSION_CLAIM_GROUP),
        .holder = hf_out_text(row, 0, HF_COL_LEASE_READ_SESSION_HOLDER),
        .fence = hf_out_i64(row, 0, HF_COL_LEASE_READ_SESSION_LEASE_FENCE),
        .store = hf_out_i64(row, 0, HF_COL_LEASE_READ_SESSION_LEASE_INCARNATION),
        .ttl_ms = hf_out_i64(row, 0, HF_COL_LEASE_READ_SESSION_LEASE_TTL_MS),
        .claimed_at = hf_out_i64(row, 0, HF_COL_LEASE_READ_SESSION_LEASE_CLAIMED_AT),
        .expires_at = hf_out_i64(row, 0, HF_COL_LEASE_READ_SESSION_LEASE_EXPIRES_AT),
    };
}

static int read_lease(struct hf_store *handle, enum hf_leased leased, const char *key,
                      struct look *look, struct hf_err *err)
{
    hf_ops_init(&look->ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&look->ops, tables[leased].read, HF_ANY_COUNT);
    hf_ops_text(&look->ops, key);
    int rc = hf_ops_read(&look->ops, err);
    if (rc)
        return rc;
    if (hf_ops_result(&look->ops, 0)->out_count == 0)
        return hf_fail(err, HF_ENOTFOUND, "key", "there is no session %.100s", key);
    look->lease = first_lease(hf_ops_result(&look->ops, 0));
    return 0;
}

/* A term begins when the row is written, which may have waited: the expiry, and the moment of the
 * look by which it was decided, are moved on by that. */
static int write_lease(struct hf_store *handle, enum hf_leased leased, const char *key,
                       struct look *look, struct hf_lease *lease, struct hf_err *err)
{
    const struct hf_lease *was = &look->lease;
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    if (!lease->nonce) {
        hf_ops_call(&ops, tables[leased].lock, HF_ANY_COUNT);
        hf_ops_text(&ops, key);
    }
    hf_ops_call(&ops, tables[leased].write, 1);
    hf_ops_text(&ops, key);
    hf_ops_i64(&ops, was->fence);
    hf_ops_text(&ops, was->nonce);
    hf_ops_i64_opt(&ops, was->expires_at);
    hf_ops_text(&ops, lease->owner);
    hf_ops_text(&ops, lease->incarnation);
    hf_ops_text(&ops, lease->nonce);
    hf_ops_text(&ops, lease->holder);
    hf_ops_i64(&ops, lease->fence);
    hf_ops_i64_opt(&ops, lease->store);
    hf_ops_i64_opt(&ops, lease->ttl_ms);
    hf_ops_i64_opt(&ops, lease->claimed_at);
    hf_ops_i64_opt(&ops, lease->expires_at);
    if (lease->nonce) {
        hf_ops_call(&ops, tables[leased].begin, 1);
        hf_ops_text(&ops, key);
        hf_ops_i64(&ops, lease->fence);
        hf_ops_text(&ops, lease->nonce);
    }
    size_t again = hf_ops_call(&ops, tables[leased].read, HF_ANY_COUNT);
    hf_ops_text(&ops, key);
    int rc = hf_ops_write(&ops, err);
    const struct hf_call *row = rc == 0 ? hf_ops_result(&ops, again) : NULL;
    struct hf_lease written = row && row->out_count ? first_lease(row) : *lease;
    if (row && hf_same(written.nonce, lease->nonce)) {
        look->ops.batch.lease_now += written.expires_at - lease->expires_at;
        lease->expires_at = written.expires_at;
    } /* otherwise the answer was lost, and others changed the row since */
    hf_ops_fini(&ops);
    return rc;
}

/* ---- showing ----------------------------------------------------------------------- */

static void copy(char *out, size_t room, const char *text)
{
    size_t len = text ? hf_utf8_cut(text, strlen(text) < room ? strlen(text) : room - 1)
                      : 0;
    if (len)
        memcpy(out, text, len);
    out[len] = '\0';
}

static void show(const struct hf_lease *lease, hf_ms now, struct hf_lease_info *info)
{
    copy(info->owner, sizeof info->owner, lease->owner);
    copy(info->incarnation, sizeof info->incarnation, lease->incarnation);
    copy(info->holder, sizeof info->holder, lease->holder);
    info->fence = lease->fence;
    info->ttl_ms = lease->ttl_ms;
    info->claimed_at = lease->claimed_at;
    info->expires_at = lease->expires_at;
    info->remaining_ms = lease->expires_at ? lease->expires_at - now : 0;
    info->held = lease->nonce != NULL;
}

static int show_token(const struct hf_alloc *alloc, const struct hf_lease *lease,
                      struct hf_lease_info *info)
{
    struct hf_buf buf;
    hf_buf_init(&buf, alloc, sizeof info->token);
    int rc = hf_token_write(&buf, lease->store, lease->fence, lease->nonce);
    copy(info->token, sizeof info->token, hf_buf_str(&buf));
    hf_buf_fini(&buf);
    return rc;
}

/* ---- verbs ------------------------------------------------------------------------- */

/* Whose lapsed lease this claim took over; a released or re-entered one has none. */
static void show_displaced(const struct hf_lease *was, enum hf_lease_outcome outcome,
                           struct hf_lease_info *info)
{
    if (!was->nonce || (outcome != HF_LEASE_ACQUIRED && outcome != HF_LEASE_RECLAIMED))
        return;
    info->displaced = true;
    copy(info->displaced_owner, sizeof info->displaced_owner, was->owner);
    info->displaced_fence = was->fence;
    info->displaced_expires_at = was->expires_at;
}

static int take_once(struct hf_store *handle, const struct hf_lease_claim *claim,
                     struct hf_claimant *who, struct hf_arena *arena,
                     struct hf_lease_info *info, struct hf_err *err)
{
    struct look look;
    struct hf_lease lease;
    enum hf_lease_outcome outcome;
    const char *proof = NULL;
    int rc = read_lease(handle, claim->leased, claim->key, &look, err);
    hf_ms now = look.ops.batch.lease_now;
    who->store = look.ops.batch.incarnation;
    bool dead = rc == 0 && claim->reclaim && look.lease.holder &&
                hf_life_judge(arena, look.lease.holder, now, &proof) == HF_LIFE_DEAD;
    if (rc == 0)
        rc = hf_lease_claim(&look.lease, who, now, dead, &lease, &outcome, err);
    if (rc == HF_EHELD) {
        *info = (struct hf_lease_info){ 0 };
        show(&look.lease, now, info);
    }
    if (rc == 0 && outcome != HF_LEASE_REPEATED)
        rc = write_lease(handle, claim->leased, claim->key, &look, &lease, err);
    if (rc == 0) {
        *info = (struct hf_lease_info){ 0 };
        show(&lease, look.ops.batch.lease_now, info);
        show_displaced(&look.lease, outcome, info);
        rc = show_token(handle->alloc, &lease, info);
    }
    hf_ops_fini(&look.ops);
    return rc;
}

int sql_lease_take(struct hf_store *handle, const struct hf_lease_claim *claim,
                   struct hf_lease_info *ret_info, struct hf_err *err)
{
    char nonce[HF_NONCE_TEXT];
    struct hf_arena arena;
    hf_arena_init(&arena, handle->alloc);
    struct hf_claimant who = {
        .owner = claim->owner,
        .incarnation = claim->incarnation ? claim->incarnation : handle->incarnation,
        .nonce = claim->nonce ? claim->nonce : nonce,
        .ttl_ms = claim->ttl_ms ? claim->ttl_ms : DEFAULT_TTL_MS,
    };
    int rc = claim->nonce ? 0 : hf_nonce(handle->random, nonce, err);
    if (rc == 0 && claim->pid)
        rc = hf_life_describe(&arena, claim->pid, NULL, &who.holder, err);
    if (rc == 0)
        rc = HF_EGUARD;
    for (int i = 0; rc == HF_EGUARD && i < HF_TRIES; i++)
        rc = take_once(handle, claim, &who, &arena, ret_info, err);
    hf_arena_fini(&arena);
    return rc == HF_EGUARD ? hf_fail_plain(err, HF_EBUSY) : rc;
}

/* Read, check the token, renew; or, with no caller to show it to, release. */
static int holder_verb(struct hf_store *handle, enum hf_leased leased, const char *key,
                       const char *token_text, struct hf_lease_info *ret_info,
                       struct hf_err *err)
{
    bool release = !ret_info;
    struct hf_token token;
    int rc = hf_token_read(token_text, &token, err);
    if (rc)
        return rc;
    rc = HF_EGUARD;
    for (int i = 0; rc == HF_EGUARD && i < HF_TRIES; i++) {
        struct look look;
        rc = read_lease(handle, leased, key, &look, err);
        if (rc == HF_ENOTFOUND)
            rc = hf_fail(err, HF_ELEASELOST, "token", "%s was never leased", key);
        hf_ms now = look.ops.batch.lease_now;
        if (rc == 0)
            rc = hf_lease_check(&look.lease, &token, now, look.ops.batch.incarnation,
                                tables[leased].must_be_live && !release, err);
        if (rc == 0) {
            struct hf_lease next = release ? hf_lease_released(&look.lease)
                                           : hf_lease_renewed(&look.lease, now, 0);
            rc = write_lease(handle, leased, key, &look, &next, err);
            if (rc == 0 && ret_info) {
                struct hf_lease_info info = { 0 };
                show(&next, look.ops.batch.lease_now, &info);
                copy(info.token, sizeof info.token, token_text);
                *ret_info = info; /* at last: token_text may be a part of it */
            }
        }
        hf_ops_fini(&look.ops);
    }
    return rc == HF_EGUARD ? hf_fail_plain(err, HF_EBUSY) : rc;
}

/* Renews by one statement, whose guard is the token, and shows the lease that it returns.
 * HF_EGUARD, with `err` as it was: the token is not of a live lease; holder_verb then reads the row
 * and finds the reason. */
static int renew_in_one_statement(struct hf_store *handle, enum hf_leased leased,
                                  const char *key, const char *token_text,
                                  struct hf_lease_info *ret_info, struct hf_err *err)
{
    struct hf_ops ops;
    struct hf_token token;
    int rc = hf_token_read(token_text, &token, err);
    if (rc)
        return rc;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, tables[leased].renew, HF_ANY_COUNT);
    hf_ops_text(&ops, key);
    hf_ops_i64(&ops, token.store);
    hf_ops_i64(&ops, token.fence);
    hf_ops_text(&ops, token.nonce);
    rc = hf_ops_write(&ops, err);
    if (rc == 0 && hf_ops_result(&ops, 0)->out_count == 0)
        rc = HF_EGUARD;
    if (rc == 0) {
        struct hf_lease lease = first_lease(hf_ops_result(&ops, 0));
        struct hf_lease_info info = { 0 };
        show(&lease, ops.batch.lease_now, &info);
        copy(info.token, sizeof info.token, token_text);
        *ret_info = info; /* at last: token_text may be a part of it */
    }
    hf_ops_fini(&ops);
    return rc;
}

int sql_lease_renew(struct hf_store *handle, enum hf_leased leased, const char *key,
                    const char *token, struct hf_lease_info *ret_info, struct hf_err *err)
{
    int rc = renew_in_one_statement(handle, leased, key, token, ret_info, err);
    if (rc != HF_EGUARD)
        return rc;
    return holder_verb(handle, leased, key, token, ret_info, err);
}

int sql_lease_release(struct hf_store *handle, enum hf_leased leased, const char *key,
                      const char *token, struct hf_err *err)
{
    return holder_verb(handle, leased, key, token, NULL, err);
}

int sql_lease_look(struct hf_store *handle, enum hf_leased leased, const char *key,
                   struct hf_lease_info *ret_info, struct hf_err *err)
{
    struct look look;
    int rc = read_lease(handle, leased, key, &look, err);
    if (rc == 0) {
        *ret_info = (struct hf_lease_info){ 0 };
        show(&look.lease, look.ops.batch.lease_now, ret_info);
    }
    hf_ops_fini(&look.ops);
    return rc;
}
