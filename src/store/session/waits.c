/* Waits as parts of a session's verbs. A step may open waits (for an approval, for the result of a
 * call), and may put its turn away: the turn then holds no lease while it waits, and its inputs
 * wait with it. The end of a turn closes its open waits as cancelled. Rows of waits are read and
 * shown here too. */
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "store/session/session.h"

/* ---- reading ------------------------------------------------------------------------ */

enum { TEXTS_AT = 6 };
static const size_t texts[] = {
    offsetof(struct hf_wait, wait_id),     offsetof(struct hf_wait, session_id),
    offsetof(struct hf_wait, turn_id),     offsetof(struct hf_wait, tenant),
    offsetof(struct hf_wait, agent),       offsetof(struct hf_wait, kind),
    offsetof(struct hf_wait, name),        offsetof(struct hf_wait, state),
    offsetof(struct hf_wait, asked),       offsetof(struct hf_wait, answerer),
    offsetof(struct hf_wait, policy),      offsetof(struct hf_wait, next_answerer),
    offsetof(struct hf_wait, next_policy), offsetof(struct hf_wait, escalate),
    offsetof(struct hf_wait, outcome),     offsetof(struct hf_wait, actor_kind),
    offsetof(struct hf_wait, actor),
};
#define TEXTS (sizeof texts / sizeof texts[0])
_Static_assert(TEXTS_AT + TEXTS == SESSION_WAIT_CLOSED_BY, "the fragment `wait`");

static const char **text_at(struct hf_wait *wait, size_t i)
{
    return (const char **)(void *)((char *)wait + texts[i]);
}

int session_wait_read(const struct hf_call *found, size_t i, struct hf_wait *ret_wait,
                      struct hf_err *err)
{
    struct hf_wait wait = {
        .deadline_at = hf_out_i64(found, i, 0),
        .escalate_at = hf_out_i64(found, i, 1),
        .opened_at = hf_out_i64(found, i, 2),
        .closed_at = hf_out_i64(found, i, 3),
    };
    enum hf_wait_kind kind;
    enum hf_wait_state state;
    enum hf_wait_policy policy;
    for (size_t f = 0; f < TEXTS; f++)
        *text_at(&wait, f) = hf_out_text(found, i, TEXTS_AT + f);
    if (!hf_wait_kind_of(wait.kind, &kind) || !hf_wait_state_of(wait.state, &state) ||
        !hf_wait_policy_of(wait.policy, &policy))
        return hf_fail(err, HF_ECORRUPT, "wait",
                       "wait %.80s has a kind, state or policy that is unknown",
                       wait.wait_id);
    *ret_wait = wait;
    return 0;
}

int session_waits_show(const struct session_wait_keeper *keeper,
                       const struct hf_call *found, const struct hf_wait **ret_waits,
                       struct hf_err *err)
{
    struct hf_wait *all = keeper->memory(keeper->answer,
                                         (found->out_count + 1) * sizeof *all);
    int rc = all ? 0 : hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; rc == 0 && i < found->out_count; i++) {
        rc = session_wait_read(found, i, &all[i], err);
        for (size_t f = 0; rc == 0 && f < TEXTS; f++) {
            const char *text = *text_at(&all[i], f);
            if (!text)
                continue;
            *text_at(&all[i], f) = keeper->copy(keeper->answer,
                                                (struct hf_span){ text, strlen(text) });
            rc = *text_at(&all[i], f) ? 0 : hf_fail_plain(err, HF_ENOMEM);
        }
    }
    if (rc == 0)
        *ret_waits = all;
    return rc;
}

/* ---- opening ------------------------------------------------------------------------ */

/* How long a wait may last without a deadline of its own. */
static int budget_of(struct sql_store *store, struct hf_ops *ops,
                     const struct hf_wait_spec *wait, hf_ms *ret_ms, struct hf_err *err)
{
    struct hf_policy policy;
    *ret_ms = 0;
    if (wait->deadline_at)
        return 0;
    int rc = sql_policy(store, &ops->arena, HF_SOURCE_CONVERSATION, "input", &policy,
                        err);
    if (rc == 0)
        *ret_ms = wait->kind == HF_WAIT_APPROVAL ? policy.wait_user_ms
                                                 : policy.wait_external_ms;
    return rc;
}

static int put_wait(struct sql_store *store, struct hf_ops *ops, const char *turn_id,
                    const struct hf_wait_spec *wait, struct hf_err *err)
{
    char *id = hf_arena_take(&ops->arena, HF_WAIT_ID_TEXT);
    hf_ms budget = 0;
    int rc = id ? hf_wait_id(turn_id, wait->kind, wait->name, id, err)
                : hf_fail_plain(err, HF_ENOMEM);
    if (rc == 0)
        rc = budget_of(store, ops, wait, &budget, err);
    if (rc)
        return rc;
    struct hf_wait_opening opening = hf_wait_open(wait, sql_wall(store), budget);
    bool next = wait->policy == HF_AT_DEADLINE_NEXT;
    hf_ops_text(ops, id);
    hf_ops_text(ops, hf_wait_kind_word(wait->kind));
    hf_ops_text(ops, wait->name);
    hf_ops_i64(ops, opening.deadline_at);
    hf_ops_i64_opt(ops, wait->escalate_at);
    hf_ops_i64_opt(ops, opening.check_at);
    hf_ops_i64_opt(ops, opening.next_ms);
    hf_ops_text(ops, wait->asked);
    hf_ops_text(ops, wait->answerer);
    hf_ops_text(ops, wait->policy ? hf_wait_policy_word(wait->policy) : NULL);
    hf_ops_text(ops, wait->next_answerer);
    hf_ops_text(ops, next ? hf_wait_policy_word(wait->next_policy) : NULL);
    hf_ops_text(ops, wait->escalate);
    return 0;
}

static int add_open(struct sql_store *store, struct hf_ops *ops,
                    const struct hf_session_step *step, struct hf_err *err)
{
    int rc = 0;
    hf_ops_call(ops, HF_SQL_WAITS_OPEN, HF_ANY_COUNT);
    hf_ops_text(ops, step->session_id);
    hf_ops_text(ops, step->turn_id);
    hf_ops_text(ops, HF_WAIT_OUTCOME_CANCELLED);
    hf_ops_sets(ops);
    for (size_t i = 0; rc == 0 && i < step->wait_count; i++) {
        if (i > 0)
            hf_ops_again(ops);
        rc = put_wait(store, ops, step->turn_id, &step->waits[i], err);
    }
    return rc;
}

/* ---- putting away ------------------------------------------------------------------- */

static int add_free(struct hf_ops *ops, const struct hf_session_step *step,
                    const struct hf_token *token, struct hf_err *err)
{
    int rc = 0;
    hf_ops_call(ops, HF_SQL_SESSION_AWAY, 1);
    hf_ops_text(ops, step->session_id);
    hf_ops_text(ops, token->nonce);
    hf_ops_sets(ops);
    for (size_t i = 0; rc == 0 && i < step->wait_count; i++) {
        char *id = hf_arena_take(&ops->arena, HF_WAIT_ID_TEXT);
        if (i > 0)
            hf_ops_again(ops);
        rc = id ? hf_wait_id(step->turn_id, step->waits[i].kind, step->waits[i].name, id,
                             err)
                : hf_fail_plain(err, HF_ENOMEM);
        hf_ops_text(ops, id);
    }
    return rc;
}

/* Inputs wait; those of a turn that is ready at once are queued, as if it were handed back. */
static void add_inputs(struct hf_ops *ops, const struct hf_caller *who,
                       const struct hf_session_step *step, const struct hf_token *token)
{
    const struct hf_lease lease = { .fence = token->fence };
    hf_ops_call(ops, HF_SQL_INPUTS_WAIT, HF_ANY_COUNT);
    hf_ops_text(ops, step->session_id);
    hf_ops_text(ops, token->nonce);
    hf_ops_i64(ops, token->fence);
    hf_ops_text(ops, who->actor_kind);
    hf_ops_text(ops, who->actor);
    hf_ops_text(ops, hf_session_input_note(&ops->arena, &lease, NULL, 0));
    hf_ops_text(ops, who->correlation_id);
    session_back_add(ops, who, step->session_id, token, "resumed");
}

int session_waits_add(struct sql_store *store, struct hf_ops *ops,
                      const struct hf_caller *who, const struct hf_session_step *step,
                      const struct hf_token *token, size_t *ret_call, struct hf_err *err)
{
    int rc = step->wait_count ? add_open(store, ops, step, err) : 0;
    if (rc || !step->away)
        return rc;
    rc = add_free(ops, step, token, err);
    if (rc)
        return rc;
    add_inputs(ops, who, step, token);
    session_ring(ops);
    *ret_call = hf_ops_call(ops, HF_SQL_SESSION_PUT_AWAY, HF_ANY_COUNT);
    hf_ops_text(ops, step->session_id);
    return 0;
}

void session_waits_end(struct hf_ops *ops, const struct hf_caller *who,
                       const char *session_id, const char *turn_id)
{
    hf_ops_call(ops, HF_SQL_WAITS_CLOSE_TURN, HF_ANY_COUNT);
    hf_ops_text(ops, session_id);
    hf_ops_text(ops, turn_id);
    hf_ops_text(ops, HF_WAIT_OUTCOME_CANCELLED);
    hf_ops_text(ops, who->actor_kind);
    hf_ops_text(ops, who->actor);
    hf_ops_text(ops, "end");
    hf_ops_null(ops);
}
