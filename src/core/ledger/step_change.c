/* The step of a change: the verb's own function, once the caller's token allows the verb. */

#include "base/err.h"
#include "base/text.h"
#include "core/ledger/draft.h"

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
static const char *settled_as(const struct hf_draft *draft)
{
    const struct hf_change *change = draft->change;
    if (change->verb != HF_VERB_WAIT)
        return hf_verb_word(change->verb);
    return hf_arena_join(draft->arena,
                         change->status == HF_STATUS_WAITING_USER ? "wait user "
                                                                  : "wait external ",
                         change->ref);
}

/* The same again. A closed row keeps its status until a requeue, which forgets the token. */
static bool is_repeat(const struct hf_draft *draft, const char *as)
{
    const struct hf_row *old = draft->old;
    return hf_same(old->settled_verb, as) && (draft->change->verb != HF_VERB_CLOSE_OUT ||
                                              old->status == draft->change->status);
}

/* The token that settled the row last. Only its own repeat is welcome, and the drain of a
 * bound row that waits: the wait was that owner's last word. */
static int check_settled(struct hf_draft *draft, bool *ret_repeat)
{
    const struct hf_row *old = draft->old;
    enum hf_verb verb = draft->change->verb;
    const char *as = old->settled_verb ? old->settled_verb : "settled";
    const char *again = settled_as(draft);
    if (!again)
        return hf_fail_plain(draft->err, HF_ENOMEM);
    *ret_repeat = is_repeat(draft, again);
    if (*ret_repeat)
        return 0;
    if (verb == HF_VERB_ABANDON && hf_row_waiting(old) && hf_row_bound(old))
        return 0;
    if (!settles(verb))
        return hf_fail(draft->err, HF_ELEASELOST, "token",
                       "lease lost: it ended with this token's own %.150s", as);
    return hf_fail(draft->err, HF_ETRANSITION, "status",
                   "this token has settled the row before (%.150s, now %s)", as,
                   hf_status_word(old->status));
}

/* A wait that found its signal has not ended its lease, and its token is remembered for the repeat
 * of that wait only. Under an operation id the receipt tells a repeat from the next wait. */
static int check_signalled(const struct hf_draft *draft, bool *ret_repeat)
{
    const char *again = settled_as(draft);
    if (!again)
        return hf_fail_plain(draft->err, HF_ENOMEM);
    *ret_repeat = !draft->env->operation && is_repeat(draft, again);
    return 0;
}

static int check_token(struct hf_draft *draft, bool *ret_repeat)
{
    const char *text = draft->change->token;
    struct hf_lease lease = hf_row_lease(draft->old);
    bool settled = hf_same(draft->old->settled_token, text);
    struct hf_token token;
    *ret_repeat = false;
    int rc = hf_token_read(text, &token, draft->err);
    if (rc)
        return rc;
    bool ended = !lease.nonce || lease.fence != token.fence;
    if (settled && ended)
        return check_settled(draft, ret_repeat);
    rc = settled ? check_signalled(draft, ret_repeat) : 0;
    if (rc || *ret_repeat)
        return rc;
    return hf_lease_check(&lease, &token, draft->env->lease_now, draft->env->store,
                          false /* late is fine while no caller acted */, draft->err);
}

/* Only the expiry moves: a renewal must touch no indexed column. */
static int renew(struct hf_draft *draft)
{
    hf_ms ttl_ms = draft->change->ttl_ms;
    int rc = ttl_ms ? hf_lease_timing(ttl_ms, 0, draft->err) : 0;
    if (rc)
        return rc;
    struct hf_lease lease = hf_row_lease(draft->old);
    struct hf_lease renewed = hf_lease_renewed(&lease, draft->env->lease_now, ttl_ms);
    draft->out.row.w.lease_expires_at = renewed.expires_at;
    draft->out.row.w.lease_remaining_ms = renewed.expires_at - draft->env->lease_now;
    hf_draft_quiet(draft, NULL);
    return 0;
}

static int touch(struct hf_draft *draft)
{
    draft->out.row.w.active_at = draft->env->now;
    hf_draft_quiet(draft, NULL);
    return 0;
}

static int append(struct hf_draft *draft)
{
    draft->out.row.message = draft->change->reason;
    draft->out.row.note = draft->change->payload;
    hf_draft_quiet(draft, draft->change->type);
    return 0;
}

struct verb_rule {
    int (*draft)(struct hf_draft *draft);
    bool needs_token;
};

static const struct verb_rule verb_rules[HF_VERB_COUNT] = {
    [HF_VERB_RENEW] = { renew, true },
    [HF_VERB_TOUCH] = { touch, true },
    [HF_VERB_APPEND] = { append, true },
    [HF_VERB_WAIT] = { hf_draft_wait, true },
    [HF_VERB_RESUME] = { hf_draft_resume, false },
    [HF_VERB_CLOSE_OUT] = { hf_draft_close_out, false }, /* or an authority */
    [HF_VERB_FAIL] = { hf_draft_fail, true },
    [HF_VERB_HAND_BACK] = { hf_draft_hand_back, true },
    [HF_VERB_CANCEL] = { hf_draft_cancel, false },
    [HF_VERB_REQUEUE] = { hf_draft_requeue, false },
    [HF_VERB_REQUEST_ABANDON] = { hf_draft_request_abandon, false },
    [HF_VERB_ABANDON] = { hf_draft_abandon, true },
    [HF_VERB_RESCHEDULE] = { hf_draft_reschedule, false },
    [HF_VERB_RELEASE] = { hf_draft_release, false },
};

static int apply(struct hf_draft *draft)
{
    const struct hf_change *change = draft->change;
    const struct verb_rule *rule = &verb_rules[change->verb];
    if (draft->old->w.session_id && change->verb != HF_VERB_CANCEL &&
        change->verb != HF_VERB_RELEASE)
        return hf_draft_refuse(draft, HF_STATUS_NONE, hf_verb_word(change->verb),
                               "the row is bound to a session, which alone moves it");
    if (rule->needs_token && !change->token)
        return hf_fail(draft->err, HF_EINVAL, "token", "%s needs the holder's token",
                       hf_verb_word(change->verb));
    bool repeat = false;
    int rc = change->token ? check_token(draft, &repeat) : 0;
    if (rc)
        return rc;
    if (repeat)
        return hf_draft_repeat(draft);
    rc = rule->draft(draft);
    if (rc == 0 && change->token && draft->out.kind == HF_STEP_WRITE) {
        draft->out.row.settled_token = change->token;
        draft->out.row.settled_verb = settled_as(draft);
        if (!draft->out.row.settled_verb)
            rc = hf_fail_plain(draft->err, HF_ENOMEM);
    }
    return rc;
}

int hf_step_change(struct hf_arena *arena, const struct hf_row *row,
                   const struct hf_change *change, const struct hf_env *env,
                   struct hf_step *ret_step, struct hf_err *err)
{
    if (!hf_verb_word(change->verb))
        return hf_fail(err, HF_EINVAL, "verb",
                       "verb must be a value of enum hf_verb, not %d", (int)change->verb);
    struct hf_draft draft = hf_draft_begin(arena, row, env, err);
    draft.change = change;
    int rc = apply(&draft);
    if (rc == 0)
        *ret_step = draft.out;
    return rc;
}

int hf_step_signal(struct hf_arena *arena, const struct hf_row *row,
                   const struct hf_change *wait, const char *payload,
                   const struct hf_env *env, struct hf_step *ret_step, struct hf_err *err)
{
    struct hf_draft draft = hf_draft_begin(arena, row, env, err);
    struct hf_change with = *wait;
    with.payload = payload;
    draft.change = &with;
    int rc = hf_draft_signal(&draft);
    draft.out.row.settled_token = wait->token;
    draft.out.row.settled_verb = settled_as(&draft);
    if (rc == 0 && !draft.out.row.settled_verb)
        rc = hf_fail_plain(err, HF_ENOMEM);
    if (rc == 0)
        *ret_step = draft.out;
    return rc;
}
