/* Sessions: creating, sending, the lease and what ends it. */

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "model/inside.h"

/* ---- finding ---------------------------------------------------------------------------- */

struct m_session *m_session_of(struct model_disk *disk, const char *session_id)
{
    for (size_t i = 0; i < disk->sessions.count; i++) {
        if (m_same(disk->sessions.at[i].s.session_id, session_id))
            return &disk->sessions.at[i];
    }
    return NULL;
}

struct m_session *m_session_find(struct m_call *call, const char *session_id,
                                 int *ret_code)
{
    struct m_session *s = m_session_of(call->disk, session_id);
    *ret_code = s ? 0 : hf_fail_plain(call->err, HF_ENOTFOUND);
    return s;
}

struct m_turn *m_turn_of(struct model_disk *disk, const char *session_id,
                         const char *turn_id)
{
    for (size_t i = 0; i < disk->turns.count; i++) {
        struct m_turn *turn = &disk->turns.at[i];
        if (m_same(turn->turn_id, turn_id) && m_same(turn->session_id, session_id))
            return turn;
    }
    return NULL;
}

struct m_turn *m_turn_open(struct model_disk *disk, const struct m_session *s)
{
    return s->s.turn_id ? m_turn_of(disk, s->s.session_id, s->s.turn_id) : NULL;
}

struct m_row *m_row_by_seq(struct model_disk *disk, int64_t seq)
{
    for (size_t i = 0; i < disk->rows.count; i++) {
        if (disk->rows.at[i].seq == seq)
            return &disk->rows.at[i];
    }
    return NULL;
}

struct m_input *m_session_pending(struct model_disk *disk, const struct m_session *s)
{
    for (size_t i = 0; i < disk->inputs.count; i++) {
        struct m_input *input = &disk->inputs.at[i];
        const struct m_row *row = m_row_by_seq(disk, input->seq);
        if (m_same(input->session_id, s->s.session_id) && !input->turn_id && row &&
            row->status == HF_STATUS_QUEUED && m_same(row->w.gate, "lane"))
            return input;
    }
    return NULL;
}

/* ---- the lease -------------------------------------------------------------------------- */

const char *m_session_token(struct model_disk *disk, const struct m_session *s)
{
    return m_say(disk, "hf1.%lld.%lld.%s", (long long)s->store, (long long)s->fence,
                 s->nonce);
}

bool m_session_live(const struct m_call *call, const struct m_session *s)
{
    return s->nonce && s->expires_at > call->lease_now;
}

bool m_session_mine(const struct m_call *call, const struct m_session *s,
                    const struct m_taker *taker)
{
    return s->nonce && s->store == call->disk->incarnation &&
           m_same(s->owner, taker->owner) && m_same(s->incarnation, taker->incarnation);
}

void m_session_acquire(struct m_call *call, struct m_session *s,
                       const struct m_taker *taker)
{
    s->fence++;
    s->owner = m_text(call->disk, taker->owner);
    s->incarnation = m_text(call->disk, taker->incarnation);
    s->nonce = m_text(call->disk, taker->nonce);
    s->store = call->disk->incarnation;
    s->ttl_ms = taker->ttl_ms;
    s->claimed_at = call->lease_now;
    s->expires_at = m_later(call->lease_now, taker->ttl_ms);
    s->s.ready_at = 0;
}

void m_session_enter_again(struct m_call *call, struct m_session *s,
                           const struct m_taker *taker)
{
    if (m_same(s->nonce, taker->nonce))
        return;
    s->nonce = m_text(call->disk, taker->nonce);
    s->ttl_ms = taker->ttl_ms;
    m_session_extend(call, s);
}

void m_session_extend(struct m_call *call, struct m_session *s)
{
    hf_ms until = m_later(call->lease_now, s->ttl_ms);
    if (until > s->expires_at)
        s->expires_at = until;
}

/* hf1.STORE.FENCE.NONCE */
static bool is_token(const char *text)
{
    if (!text || strncmp(text, "hf1.", 4) != 0)
        return false;
    text += 4;
    for (int part = 0; part < 2; part++) {
        size_t digits = strspn(text, "0123456789");
        if (digits == 0 || text[digits] != '.')
            return false;
        text += digits + 1;
    }
    return *text != 0;
}

int m_session_held(struct m_call *call, const struct m_session *s, const char *token)
{
    if (!is_token(token))
        return hf_fail(call->err, HF_EINVAL, "token", "not a token");
    bool held = s && m_session_live(call, s) && s->store == call->disk->incarnation &&
                m_same(token, m_session_token(call->disk, s));
    return held ? 0 : hf_fail(call->err, HF_ESESSIONLOST, "token", "lost");
}

void m_session_free(struct m_call *call, struct m_session *s, hf_ms until)
{
    const struct m_input *next = m_session_pending(call->disk, s);
    s->owner = s->incarnation = s->nonce = NULL;
    s->store = s->ttl_ms = s->claimed_at = s->expires_at = 0;
    s->s.waiting_until = until;
    if (s->s.turn_id)
        s->s.ready_at = until ? until : call->now;
    else
        s->s.ready_at = next ? m_row_by_seq(call->disk, next->seq)->w.due_at : 0;
}

void m_session_ended(struct m_call *call, struct m_session *s, const char *token,
                     const char *verb)
{
    s->ended_token = m_text(call->disk, token);
    s->ended_verb = verb;
}

bool m_session_ended_by(const struct m_session *s, const char *token, const char *verb)
{
    return s && token && m_same(s->ended_token, token) && m_same(s->ended_verb, verb);
}

void m_session_make_ready(struct m_call *call, const char *session_id, const char *cancel)
{
    struct m_session *s = m_session_of(call->disk, session_id);
    if (!s)
        return;
    bool waits = s->s.turn_id && !cancel; /* what came is not about the open turn */
    if (!waits && !s->nonce && (!s->s.ready_at || s->s.ready_at > call->now))
        s->s.ready_at = call->now;
    if (cancel && !s->s.cancel_request)
        s->s.cancel_request = cancel;
}

void m_input_back(struct m_call *call, struct m_row *row, const char *gate,
                  struct m_say_event say)
{
    hf_ms due_at = row->w.due_at; /* it keeps its age */
    m_enter(call, row, HF_STATUS_QUEUED, say);
    row->w.due_at = due_at;
    row->w.gate = gate;
}

/* ---- create ----------------------------------------------------------------------------- */

static void digest_of(const struct m_call *call, const struct hf_session_spec *r,
                      uint8_t out[32])
{
    const char *const texts[] = { call->who->tenant, r->agent, r->config,
                                  r->parent_id,      r->cause, r->labels };
    struct hf_digest digest;
    hf_digest_begin(&digest, "model.session", 1);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        hf_digest_text(&digest, texts[i]);
    hf_digest_i64(&digest, (int64_t)r->relation);
    if (hf_digest_end(&digest, out) != 0)
        abort();
}

static struct m_session *add_session(struct m_call *call, const struct hf_session_spec *r)
{
    struct model_disk *disk = call->disk;
    struct m_session *s = m_add(disk->sessions);
    s->s = (struct hf_session){
        .session_id = m_text(disk, r->session_id),
        .tenant = m_text(disk, call->who->tenant),
        .agent = m_text(disk, r->agent),
        .config = m_text(disk, r->config),
        .relation = hf_relation_word(r->relation),
        .parent_id = m_text(disk, r->parent_id),
        .cause = m_text(disk, r->cause),
        .labels = m_text(disk, r->labels),
        .created_at = call->now,
        .updated_at = call->now,
    };
    return s;
}

static int session_create(struct hf_store *store, const struct hf_caller *who,
                          const struct hf_session_spec *request,
                          struct hf_session_answer *answer, struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    uint8_t asked[32];
    digest_of(&call, request, asked);
    struct m_session *s = m_session_of(call.disk, request->session_id);
    if (s && memcmp(s->asked, asked, sizeof(asked)) != 0)
        return hf_fail(err, HF_ECONFLICT, "session_id", "other content");
    if (!s) {
        s = add_session(&call, request);
        memcpy(s->asked, asked, sizeof(asked));
        answer->created = true;
    }
    m_session_show(&call, answer, s);
    return 0;
}

/* ---- send ------------------------------------------------------------------------------- */

static struct m_row *sent_before(struct m_call *call, const struct hf_session_send *r)
{
    for (size_t i = 0; r->source_key && i < call->disk->rows.count; i++) {
        struct m_row *row = &call->disk->rows.at[i];
        if (row->source == HF_SOURCE_CONVERSATION &&
            m_same(row->w.tenant, call->who->tenant) &&
            m_same(row->w.source_id, r->session_id) &&
            m_same(row->w.source_run_id, r->source_key))
            return row;
    }
    return NULL;
}

static struct m_row *add_unit(struct m_call *call, const struct hf_session_send *r,
                              const char *id)
{
    struct model_disk *disk = call->disk;
    struct m_row *row = m_add(disk->rows);
    row->seq = disk->next_seq++;
    row->source = HF_SOURCE_CONVERSATION;
    row->weight = 1;
    row->w = (struct hf_work){
        .work_id = m_text(disk, id),
        .tenant = m_text(disk, call->who->tenant),
        .source_system = "conversation",
        .source_id = m_text(disk, r->session_id),
        .source_run_id = m_text(disk, r->source_key ? r->source_key : id),
        .kind = "input",
        .queue = "session",
        .correlation_id = m_text(disk, call->who->correlation_id),
        .session_id = m_text(disk, r->session_id),
        .payload = m_text(disk, r->message),
        .priority = 3,
        .max_attempts = 3,
        .retry_policy = m_retry_fixed(disk, NULL, 3),
        .created_at = call->now,
    };
    m_enter(
        call, row, HF_STATUS_QUEUED,
        (struct m_say_event){ "work_created", NULL,
                              m_say(disk, "={\"session_id\":\"%s\"}", r->session_id) });
    return row;
}

static int session_send(struct hf_store *store, const struct hf_caller *who,
                        const struct hf_session_send *request, struct hf_answer *answer,
                        struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    int rc = 0;
    char id[HF_UUID_TEXT];
    if (!m_session_find(&call, request->session_id, &rc))
        return rc;
    rc = hf_uuid7(call.now, &call.m->uuid_seq, store->random, id, err);
    if (rc)
        return rc;
    struct m_row *row = sent_before(&call, request);
    bool created = !row;
    if (row && !m_same(row->w.payload, request->message))
        return hf_fail(err, HF_ECONFLICT, "source_key", "other content");
    if (created) {
        row = add_unit(&call, request, id);
        struct m_input *input = m_add(call.disk->inputs);
        *input = (struct m_input){ .session_id = row->w.session_id, .seq = row->seq };
        m_session_make_ready(&call, request->session_id, NULL);
    }
    struct hf_item *item = hf_answer_add(answer);
    m_show(&call, answer, item, row, false);
    item->created = created;
    item->repeated = !created;
    return 0;
}

/* ---- keeping and ending a lease ---------------------------------------------------------- */

static int session_renew_all(struct hf_store *store, struct hf_session_renewal *renewals,
                             size_t count, struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    for (size_t i = 0; i < count; i++) {
        if (!is_token(renewals[i].token))
            return hf_fail(err, HF_EINVAL, "token", "not a token");
    }
    for (size_t i = 0; i < count; i++) {
        struct hf_session_renewal *one = &renewals[i];
        struct m_session *s = m_session_of(call.disk, one->session_id);
        one->code = m_session_held(&call, s, one->token);
        one->lease_remaining_ms = 0;
        one->cancel_requested = one->code == 0 && s->s.cancel_request;
        if (one->code)
            continue;
        m_session_extend(&call, s);
        one->lease_remaining_ms = s->expires_at - call.lease_now;
    }
    return 0;
}

static int session_release(struct hf_store *store, const struct hf_caller *who,
                           const char *session_id, const char *token, struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    int rc = 0;
    struct m_session *s = is_token(token) ? m_session_find(&call, session_id, &rc) : NULL;
    if (m_session_ended_by(s, token, "release"))
        return 0;
    if (rc == 0)
        rc = m_session_held(&call, s, token);
    if (rc)
        return rc;
    if (s->s.turn_id)
        return hf_fail(err, HF_ETRANSITION, "session_id", "a turn is open");
    m_session_free(&call, s, 0);
    m_session_ended(&call, s, token, "release");
    return 0;
}

const struct hf_session_methods m_session_methods = {
    .create = session_create,
    .send = session_send,
    .claim = m_session_claim,
    .head = m_session_head,
    .load = m_session_load,
    .node = m_session_node,
    .blob = m_session_blob,
    .blob_put = m_session_blob_put,
    .unknown = m_session_unknown,
    .list = m_session_list,
    .inputs = m_session_inputs,
    .step = m_session_step,
    .commit = m_session_commit,
    .renew_all = session_renew_all,
    .release = session_release,
    .hand_back = m_session_hand_back,
    .cancel_turn = m_cancel_turn,
};
