/* The calls of a holder on a session's lease: renew it, release it, or hand the session back. A
 * release needs a session without an open turn; a hand-back leaves the turn open, and its inputs
 * are queued again for the next worker. The row keeps the token and the verb that ended the lease,
 * so that a repeated call is recognised. */
#include "base/err.h"
#include "base/text.h"
#include "store/session/session.h"

/* ---- renew -------------------------------------------------------------------------- */

static void add_tokens(struct hf_ops *ops, enum hf_sql_id statement,
                       const struct hf_session_renewal *renewals,
                       const struct hf_token *tokens, size_t count)
{
    hf_ops_call(ops, statement, HF_ANY_COUNT);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            hf_ops_again(ops);
        session_put_token(ops, renewals[i].session_id, &tokens[i]);
        hf_ops_i64(ops, (int64_t)i);
    }
}

#define RENEWED(name) hf_out_i64(found, i, HF_COL_SESSION_RENEWED_##name)

/* Fills in what became of each renewal: the rows that the read-back found are held, all others
 * lost. */
static void fill_renewals(const struct hf_call *found,
                          struct hf_session_renewal *renewals, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        renewals[i].code = HF_ESESSIONLOST;
        renewals[i].lease_remaining_ms = 0;
        renewals[i].cancel_requested = false;
    }
    for (size_t i = 0; i < found->out_count; i++) {
        struct hf_session_renewal *one = &renewals[RENEWED(PLACE)];
        one->code = 0;
        one->lease_remaining_ms = RENEWED(LEASE_REMAINING_MS);
        one->cancel_requested = RENEWED(CANCEL_REQUESTED) != 0;
    }
}

int sql_session_renew_all(struct hf_store *handle, struct hf_session_renewal *renewals,
                          size_t count, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    struct hf_token *tokens = hf_arena_array(&ops.arena, count, sizeof *tokens);
    int rc = tokens ? 0 : hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = session_token(renewals[i].token, &tokens[i], err);
    if (rc == 0) {
        add_tokens(&ops, HF_SQL_SESSION_RENEW, renewals, tokens, count);
        add_tokens(&ops, HF_SQL_SESSION_RENEWED, renewals, tokens, count);
        rc = hf_ops_write(&ops, err);
    }
    if (rc == 0)
        fill_renewals(hf_ops_result(&ops, 1), renewals, count);
    hf_ops_fini(&ops);
    return rc;
}

/* ---- release, hand back -------------------------------------------------------------- */

static const char release_verb[] = "release", hand_back_verb[] = "hand_back";

/* Why the guard refused. 0: the same call ended the lease before. HF_EGUARD: it was in the way only
 * at that moment. */
static int refused(struct hf_ops *ops, const char *session_id,
                   const struct hf_token *token, const struct session_end *end,
                   struct hf_err *err)
{
    struct session_facts facts;
    int rc = session_facts_read(ops, session_id, NULL, &facts, err);
    if (rc == 0 && hf_same(facts.ended_token, end->token) &&
        hf_same(facts.ended_verb, end->verb))
        return 0;
    if (rc == 0)
        rc = session_lease_check(ops, &facts, token, err);
    if (rc == 0 && end->verb == release_verb && facts.row.turn_key)
        rc = hf_fail(err, HF_ETRANSITION, "session_id",
                     "turn %.100s is open: commit it, or hand the session back",
                     facts.row.s.turn_id);
    return rc ? rc : HF_EGUARD;
}

static int release_once(struct hf_store *handle, const char *session_id,
                        const struct hf_token *token, const struct session_end *end,
                        struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_SESSION_FENCED_TURN, 1);
    session_put_token(&ops, session_id, token);
    hf_ops_null(&ops);
    hf_ops_i64(&ops, 0);
    session_free_add(&ops, session_id, token, end);
    int rc = hf_ops_write(&ops, err);
    if (rc == HF_EGUARD)
        rc = refused(&ops, session_id, token, end, err);
    hf_ops_fini(&ops);
    return rc;
}

int sql_session_release(struct hf_store *handle, const struct hf_caller *who,
                        const char *session_id, const char *token_text,
                        struct hf_err *err)
{
    (void)who; /* no unit changes */
    const struct session_end end = { .token = token_text, .verb = release_verb };
    struct hf_token token;
    int rc = session_token(token_text, &token, err);
    rc = rc ? rc : HF_EGUARD;
    for (int i = 0; rc == HF_EGUARD && i < HF_TRIES; i++)
        rc = release_once(handle, session_id, &token, &end, err);
    return rc == HF_EGUARD ? hf_fail_plain(err, HF_EBUSY) : rc;
}

void session_back_add(struct hf_ops *ops, const struct hf_caller *who,
                      const char *session_id, const struct hf_token *token,
                      const char *given)
{
    const char *reason = given ? given : "handed_back";
    struct hf_lease lease = { .fence = token->fence };
    hf_ops_call(ops, HF_SQL_INPUTS_BACK, HF_ANY_COUNT);
    hf_ops_text(ops, session_id);
    hf_ops_text(ops, token->nonce);
    hf_ops_i64(ops, token->fence);
    hf_ops_text(ops, "lane");
    hf_ops_text(ops, reason);
    hf_ops_i64(ops, 0);
    hf_ops_null(ops);
    hf_ops_text(ops, "transition");
    hf_ops_text(ops, who->actor_kind);
    hf_ops_text(ops, who->actor);
    hf_ops_text(ops, given);
    hf_ops_text(ops, hf_session_input_note(&ops->arena, &lease, reason, 0));
    hf_ops_text(ops, who->correlation_id);
}

static int hand_back_once(struct hf_store *handle, const struct hf_caller *who,
                          const struct hf_session_back *back,
                          const struct hf_token *token, struct hf_err *err)
{
    const struct session_end end = { .token = back->token,
                                     .verb = hand_back_verb,
                                     .delay_ms = back->delay_ms };
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_SESSION_FENCED, 1);
    session_put_token(&ops, back->session_id, token);
    if (back->active_ms > 0) {
        hf_ops_call(&ops, HF_SQL_TURN_ACTIVE, HF_ANY_COUNT);
        hf_ops_text(&ops, back->session_id);
        hf_ops_i64(&ops, back->active_ms);
    }
    session_back_add(&ops, who, back->session_id, token, back->reason);
    session_free_add(&ops, back->session_id, token, &end);
    int rc = hf_ops_write(&ops, err);
    if (rc == HF_EGUARD)
        rc = refused(&ops, back->session_id, token, &end, err);
    hf_ops_fini(&ops);
    return rc;
}

int sql_session_hand_back(struct hf_store *handle, const struct hf_caller *who,
                          const struct hf_session_back *back, struct hf_err *err)
{
    struct hf_token token;
    int rc = session_token(back->token, &token, err);
    rc = rc ? rc : HF_EGUARD;
    for (int i = 0; rc == HF_EGUARD && i < HF_TRIES; i++)
        rc = hand_back_once(handle, who, back, &token, err);
    return rc == HF_EGUARD ? hf_fail_plain(err, HF_EBUSY) : rc;
}
