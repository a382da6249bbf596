/* Which verb, and whether the caller's token lets it. */

#include "base/err.h"
#include "base/text.h"
#include "core/ledger/act.h"

/* Verbs that end what a token was given for. */
static bool settles(enum hf_verb verb)
{
    switch (verb) {
    case HF_VERB_WAIT:
    case HF_VERB_CLOSE_OUT:
    case HF_VERB_FAIL:
    case HF_VERB_HAND_BACK:
    case HF_VERB_CANCEL:
    case HF_VERB_ABANDON: return true;
    case HF_VERB_NONE:
    case HF_VERB_RENEW:
    case HF_VERB_TOUCH:
    case HF_VERB_APPEND:
    case HF_VERB_RESUME:
    case HF_VERB_REQUEUE:
    case HF_VERB_REQUEST_ABANDON:
    case HF_VERB_RESCHEDULE:
    case HF_VERB_RELEASE:
    case HF_VERB_COUNT: break;
    }
    return false;
}

/* What the change does with its token, in words. A wait names its reference: the row forgets
 * it when the wait is over. NULL: no memory. */
static const char *settled_as(const struct hf_act *act)
{
    const struct hf_change *change = act->change;
    if (change->verb != HF_VERB_WAIT)
        return hf_verb_word(change->verb);
    return hf_arena_join(
        act->arena, change->status == HF_WAITING_USER ? "wait user " : "wait external ",
        change->ref);
}

/* The same again. A closed row keeps its status until a requeue, which forgets the token. */
static bool is_repeat(const struct hf_act *act, const char *as)
{
    const struct hf_row *old = act->old;
    return hf_same(old->settled_verb, as) &&
           (act->change->verb != HF_VERB_CLOSE_OUT || old->status == act->change->status);
}

/* The token that settled the row last. Only its own repeat is welcome, and the drain of a
 * bound row that waits: the wait was that owner's last word. */
static int check_settled(struct hf_act *act, bool *ret_repeat)
{
    const struct hf_row *old = act->old;
    enum hf_verb verb = act->change->verb;
    const char *as = old->settled_verb ? old->settled_verb : "settled";
    const char *again = settled_as(act);
    if (!again)
        return hf_fail_plain(act->err, HF_ENOMEM);
    *ret_repeat = is_repeat(act, again);
    if (*ret_repeat)
        return 0;
    if (verb == HF_VERB_ABANDON && hf_row_waiting(old) && hf_row_bound(old))
        return 0;
    if (!settles(verb))
        return hf_fail(act->err, HF_ELEASELOST, "token",
                       "lease lost: it ended with this token's own %.150s", as);
    return hf_fail(act->err, HF_ETRANSITION, "status",
                   "this token has settled the row before (%.150s, now %s)", as,
                   hf_status_word(old->status));
}

static int check_token(struct hf_act *act, bool *ret_repeat)
{
    const char *text = act->change->token;
    *ret_repeat = false;
    if (hf_same(act->old->settled_token, text))
        return check_settled(act, ret_repeat);
    struct hf_token token;
    int rc = hf_token_read(text, &token, act->err);
    if (rc)
        return rc;
    struct hf_lease lease = hf_row_lease(act->old);
    return hf_lease_check(&lease, &token, act->env->lease_now, act->env->store,
                          false /* late is fine while nobody acted */, act->err);
}

/* Only the expiry moves: a renewal must touch no indexed column. */
static int renew(struct hf_act *act)
{
    hf_ms ttl_ms = act->change->ttl_ms;
    int rc = ttl_ms ? hf_lease_timing(ttl_ms, 0, act->err) : 0;
    if (rc)
        return rc;
    struct hf_lease lease = hf_row_lease(act->old);
    struct hf_lease renewed = hf_lease_renewed(&lease, act->env->lease_now, ttl_ms);
    act->out.row.w.lease_expires_at = renewed.expires_at;
    act->out.row.w.lease_remaining_ms = renewed.expires_at - act->env->lease_now;
    hf_act_quiet(act, NULL);
    return 0;
}

static int touch(struct hf_act *act)
{
    act->out.row.w.active_at = act->env->now;
    hf_act_quiet(act, NULL);
    return 0;
}

static int append(struct hf_act *act)
{
    act->out.row.message = act->change->reason;
    act->out.row.note = act->change->payload;
    hf_act_quiet(act, act->change->type);
    return 0;
}

struct verb_rule {
    int (*act)(struct hf_act *act);
    bool needs_token;
};

static const struct verb_rule verb_rules[HF_VERB_COUNT] = {
    [HF_VERB_RENEW] = { renew, true },
    [HF_VERB_TOUCH] = { touch, true },
    [HF_VERB_APPEND] = { append, true },
    [HF_VERB_WAIT] = { hf_act_wait, true },
    [HF_VERB_RESUME] = { hf_act_resume, false },
    [HF_VERB_CLOSE_OUT] = { hf_act_close_out, false }, /* or an authority */
    [HF_VERB_FAIL] = { hf_act_fail, true },
    [HF_VERB_HAND_BACK] = { hf_act_hand_back, true },
    [HF_VERB_CANCEL] = { hf_act_cancel, false },
    [HF_VERB_REQUEUE] = { hf_act_requeue, false },
    [HF_VERB_REQUEST_ABANDON] = { hf_act_request_abandon, false },
    [HF_VERB_ABANDON] = { hf_act_abandon, true },
    [HF_VERB_RESCHEDULE] = { hf_act_reschedule, false },
    [HF_VERB_RELEASE] = { hf_act_release, false },
};

static int apply(struct hf_act *act)
{
    const struct hf_change *change = act->change;
    const struct verb_rule *rule = &verb_rules[change->verb];
    if (act->old->w.session_id && change->verb != HF_VERB_CANCEL &&
        change->verb != HF_VERB_RELEASE)
        return hf_act_refuse(act, HF_STATUS_NONE, hf_verb_word(change->verb),
                             "the row is bound to a session, which alone moves it");
    if (rule->needs_token && !change->token)
        return hf_fail(act->err, HF_EINVAL, "token", "%s needs the holder's token",
                       hf_verb_word(change->verb));
    bool repeat = false;
    int rc = change->token ? check_token(act, &repeat) : 0;
    if (rc)
        return rc;
    if (repeat)
        return hf_act_repeat(act);
    rc = rule->act(act);
    if (rc == 0 && change->token && act->out.kind == HF_STEP_WRITE) {
        act->out.row.settled_token = change->token;
        act->out.row.settled_verb = settled_as(act);
        if (!act->out.row.settled_verb)
            rc = hf_fail_plain(act->err, HF_ENOMEM);
    }
    return rc;
}

int hf_step_change(struct hf_arena *arena, const struct hf_row *row,
                   const struct hf_change *change, const struct hf_env *env,
                   struct hf_step *ret_step, struct hf_err *err)
{
    if (!hf_verb_word(change->verb))
        return hf_fail(err, HF_EINVAL, "verb", "unknown verb");
    struct hf_act act = hf_act_begin(arena, row, env, err);
    act.change = change;
    int rc = apply(&act);
    if (rc == 0)
        *ret_step = act.out;
    return rc;
}
