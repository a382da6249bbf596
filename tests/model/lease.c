/* The lease on the session lane: its holder must be live. */

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "model/inside.h"

#define TERM_MS 30000

static struct m_session *session_of(struct model_disk *disk, const char *key)
{
    for (size_t i = 0; i < disk->sessions.count; i++) {
        if (m_same(disk->sessions.at[i].key, key))
            return &disk->sessions.at[i];
    }
    return NULL;
}

static const char *token_of(struct model_disk *disk, const struct m_session *s)
{
    return m_say(disk, "hf1.%lld.%lld.%s", (long long)s->store, (long long)s->fence,
                 s->nonce);
}

static void show(const struct m_call *call, const struct m_session *s,
                 struct hf_lease_info *info)
{
    *info = (struct hf_lease_info){ .fence = s->fence };
    info->held = s->nonce != NULL;
    if (!s->nonce)
        return;
    (void)snprintf(info->owner, sizeof(info->owner), "%s", s->owner);
    (void)snprintf(info->incarnation, sizeof(info->incarnation), "%s", s->incarnation);
    info->ttl_ms = s->ttl_ms;
    info->claimed_at = s->claimed_at;
    info->expires_at = s->expires_at;
    info->remaining_ms = s->expires_at - call->lease_now;
}

static void show_token(const struct m_call *call, const struct m_session *s,
                       struct hf_lease_info *info)
{
    (void)snprintf(info->token, sizeof(info->token), "%s", token_of(call->disk, s));
}

static void acquire(struct m_call *call, struct m_session *s, const struct m_taker *taker)
{
    s->fence++;
    s->owner = m_text(call->disk, taker->owner);
    s->incarnation = m_text(call->disk, taker->incarnation);
    s->nonce = m_text(call->disk, taker->nonce);
    s->store = call->disk->incarnation;
    s->ttl_ms = taker->ttl_ms;
    s->claimed_at = call->lease_now;
    s->expires_at = m_later(call->lease_now, taker->ttl_ms);
}

static void enter_again(struct m_call *call, struct m_session *s,
                        const struct m_taker *taker)
{
    hf_ms until = m_later(call->lease_now, taker->ttl_ms);
    if (m_same(s->nonce, taker->nonce))
        return;
    s->nonce = m_text(call->disk, taker->nonce);
    s->ttl_ms = taker->ttl_ms;
    if (until > s->expires_at)
        s->expires_at = until;
}

/* For leases only: of what was asked nothing is kept but the id. */
int m_session_create(struct hf_store *store, const struct hf_caller *who,
                     const struct hf_session_new *request,
                     struct hf_session_answer *answer, struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    struct hf_session *shown = hf_session_answer_memory(answer, sizeof *shown);
    if (!shown)
        return hf_fail_plain(err, HF_ENOMEM);
    if (!session_of(call.disk, request->session_id)) {
        struct m_session *s = m_add(call.disk->sessions);
        s->key = m_text(call.disk, request->session_id);
        answer->created = true;
    }
    shown->session_id = hf_session_answer_copy(
        answer, (struct hf_span){ request->session_id, strlen(request->session_id) });
    answer->sessions = shown;
    answer->session_count = 1;
    return shown->session_id ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

static int take(struct m_call *call, const char *key, const struct m_taker *taker,
                struct hf_lease_info *ret_info)
{
    struct m_session *s = session_of(call->disk, key);
    if (!s)
        return hf_fail_plain(call->err, HF_ENOTFOUND);
    struct m_session was = *s;
    bool live = s->nonce && s->expires_at > call->lease_now;
    bool mine = s->store == call->disk->incarnation && m_same(s->owner, taker->owner) &&
                m_same(s->incarnation, taker->incarnation);
    if (live && !mine) {
        show(call, s, ret_info);
        return hf_fail_plain(call->err, HF_EHELD);
    }
    if (live)
        enter_again(call, s, taker);
    else
        acquire(call, s, taker);
    show(call, s, ret_info);
    show_token(call, s, ret_info);
    if (!live && was.nonce) {
        ret_info->displaced = true;
        (void)snprintf(ret_info->displaced_owner, sizeof(ret_info->displaced_owner), "%s",
                       was.owner);
        ret_info->displaced_fence = was.fence;
        ret_info->displaced_expires_at = was.expires_at;
    }
    return 0;
}

int m_lease_take(struct hf_store *store, const struct hf_lease_claim *claim,
                 struct hf_lease_info *ret_info, struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    char fresh[HF_NONCE_TEXT];
    int rc = claim->nonce ? 0 : hf_nonce(store->random, fresh, err);
    if (rc)
        return rc;
    struct m_taker taker = {
        .owner = claim->owner,
        .incarnation = claim->incarnation ? claim->incarnation : store->incarnation,
        .nonce = claim->nonce ? claim->nonce : fresh,
        .ttl_ms = claim->ttl_ms ? claim->ttl_ms : TERM_MS,
    };
    return take(&call, claim->key, &taker, ret_info);
}

/* The session, if the token is its own. */
static struct m_session *held_by(struct m_call *call, const char *key, const char *token)
{
    struct m_session *s = session_of(call->disk, key);
    if (!s || !s->nonce || s->store != call->disk->incarnation ||
        !m_same(token, token_of(call->disk, s)))
        return NULL;
    return s;
}

int m_lease_renew(struct hf_store *store, enum hf_lane lane, const char *key,
                  const char *token, struct hf_lease_info *ret_info, struct hf_err *err)
{
    (void)lane;
    struct m_call call = m_begin(store, NULL, err);
    struct m_session *s = held_by(&call, key, token);
    if (!s || s->expires_at <= call.lease_now)
        return hf_fail_plain(err, HF_ELEASELOST);
    s->expires_at = m_later(call.lease_now, s->ttl_ms);
    show(&call, s, ret_info);
    show_token(&call, s, ret_info);
    return 0;
}

int m_lease_release(struct hf_store *store, enum hf_lane lane, const char *key,
                    const char *token, struct hf_err *err)
{
    (void)lane;
    struct m_call call = m_begin(store, NULL, err);
    struct m_session *s = held_by(&call, key, token);
    if (!s)
        return hf_fail_plain(err, HF_ELEASELOST);
    *s = (struct m_session){ .key = s->key, .fence = s->fence };
    return 0;
}

int m_lease_look(struct hf_store *store, enum hf_lane lane, const char *key,
                 struct hf_lease_info *ret_info, struct hf_err *err)
{
    (void)lane;
    struct m_call call = m_begin(store, NULL, err);
    const struct m_session *s = session_of(call.disk, key);
    if (!s)
        return hf_fail_plain(err, HF_ENOTFOUND);
    show(&call, s, ret_info);
    return 0;
}
