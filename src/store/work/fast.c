/* The two hot verbs of a holder, close-out and renewal: one guarded statement per row, without
 * reading first.
 *
 * What a close-out writes is still decided by core: it is given the row that the statement's guard
 * vouches for, that is, the row must be so or the guard refuses (running, this token's, no close
 * rule). If one row of a batch does not match its guard, nothing is written and the general path
 * (change.c) takes the whole batch: it finds out why, and keeps it in one transaction. Rows under a
 * limit or of a lane do not match: their end lets others continue. */
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/text.h"
#include "core/ledger/policy.h"
#include "store/work/change.h"

static bool all_verbs(const struct changing *c, enum hf_verb verb)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct hf_change *change = c->slots[i].change;
        if (change->verb != verb || !change->token || !change->id || c->slots[i].answered)
            return false;
    }
    return true;
}

/* Reads every row back, in order, in the same transaction. The statement before has vouched
 * that they are there: to expect them once more would take PostgreSQL another trip. */
static size_t add_read_back(struct changing *c, struct hf_ops *ops)
{
    size_t call = hf_ops_call(ops, HF_SQL_WORK_BY_ID, HF_ANY_COUNT);
    for (size_t i = 0; i < c->n; i++) {
        if (i > 0)
            hf_ops_again(ops);
        hf_ops_text(ops, c->slots[i].change->id);
    }
    return call;
}

/* `read_back` 0: brief answers, from what was decided. */
static int show_written(struct changing *c, const struct hf_ops *ops, size_t read_back,
                        struct hf_err *err)
{
    if (read_back && hf_ops_result(ops, read_back)->out_count != c->n)
        /* after a lost answer, and a prune since */
        return hf_fail(err, HF_EUNCERTAIN, NULL,
                       "it was written, but its answer cannot be read");
    for (size_t i = 0; i < c->n; i++) {
        struct change_slot *slot = &c->slots[i];
        struct hf_row now;
        int rc = 0;
        if (read_back && slot->change->verb == HF_VERB_CLOSE_OUT)
            rc = change_read_written(ops, read_back, i, &slot->step.row, &now, err);
        else if (read_back)
            rc = hf_row_read(hf_ops_result(ops, read_back), i, &now, err);
        if (rc)
            return rc;
        if (hf_item_show(c->answer, slot->item, read_back ? &now : &slot->step.row,
                         (c->flags & HF_BRIEF) != 0))
            return hf_fail_plain(err, HF_ENOMEM);
        slot->answered = true;
    }
    c->answered = true;
    return 0;
}

/* ---- close-out --------------------------------------------------------------------- */

/* The row that the guard of work_settle vouches for. */
static void vouched_row(const struct hf_change *change, const struct hf_token *token,
                        struct hf_row *ret_row)
{
    *ret_row = (struct hf_row){
        .w.work_id = change->id,
        .w.status = hf_status_word(HF_STATUS_RUNNING),
        .w.lease_fence = token->fence,
        .w.lease_expires_at = INT64_MAX,
        .w.owner = "",
        .w.owner_incarnation = "",
        .status = HF_STATUS_RUNNING,
        .source = HF_SOURCE_MANUAL,
        .disposition = HF_DISPOSITION_RERUNNABLE,
        .claim_group = token->nonce,
        .lease_incarnation = token->store,
    };
}

/* False: not for this path. */
static bool decide_close(struct changing *c, struct change_slot *slot, struct hf_env *env,
                         struct hf_token *ret_token)
{
    struct hf_row row;
    if (slot->change->authority || slot->change->reviewer ||
        hf_token_read(slot->change->token, ret_token, NULL))
        return false;
    vouched_row(slot->change, ret_token, &row);
    env->store = ret_token->store;
    return hf_step_change(&c->arena, &row, slot->change, env, &slot->step, NULL) == 0 &&
           slot->step.kind == HF_STEP_WRITE;
}

static void add_settle(struct changing *c, struct hf_ops *ops, size_t i,
                       const struct hf_token *token)
{
    const struct hf_row *row = &c->slots[i].step.row;
    hf_ops_text(ops, c->slots[i].change->id);
    hf_ops_i64(ops, token->store);
    hf_ops_i64(ops, token->fence);
    hf_ops_text(ops, token->nonce);
    hf_ops_text(ops, hf_status_word(row->status));
    hf_ops_text(ops, row->w.status_reason);
    hf_ops_text(ops, row->w.error_class);
    hf_ops_text(ops, row->w.result);
    hf_ops_text(ops, row->settled_token);
    hf_ops_text(ops, row->actor_kind);
    hf_ops_text(ops, row->actor);
    hf_ops_text(ops, row->message);
    hf_ops_text(ops, row->note);
    hf_ops_text(ops, row->event_correlation_id);
}

/* What the statement for many alike takes from the first set; on PostgreSQL all but the note. */
static bool all_alike(const struct changing *c)
{
    const struct hf_row *first = &c->slots[0].step.row;
    for (size_t i = 1; i < c->n; i++) {
        const struct hf_row *row = &c->slots[i].step.row;
        if (row->status != first->status ||
            !hf_same(row->w.status_reason, first->w.status_reason) ||
            !hf_same(row->w.error_class, first->w.error_class) ||
            !hf_same(row->w.result, first->w.result) ||
            !hf_same(row->message, first->message) || !hf_same(row->note, first->note))
            return false;
    }
    return true;
}

static enum hf_sql_id settle_statement(const struct changing *c)
{
    size_t least = c->store->plan->settle_alike_min;
    bool alike = least > 0 && c->n >= least && all_alike(c);
    return alike ? HF_SQL_WORK_SETTLE_ALIKE : HF_SQL_WORK_SETTLE;
}

static bool add_settles(struct changing *c, struct hf_ops *ops, struct hf_err *err)
{
    struct hf_env env;
    struct hf_batch moment = { 0 };
    struct hf_token *tokens = hf_arena_array(&c->arena, c->n, sizeof *tokens);
    moment.now = sql_wall(c->store);
    if (!tokens || sql_env(c->store, c->who, &moment, &env, err))
        return false;
    env.policy = &hf_policy_builtin;
    for (size_t i = 0; i < c->n; i++)
        if (!decide_close(c, &c->slots[i], &env, &tokens[i]))
            return false;
    for (size_t i = 0; i < c->n; i++) {
        if (i == 0)
            hf_ops_call(ops, settle_statement(c), (int64_t)c->n);
        else
            hf_ops_again(ops);
        add_settle(c, ops, i, &tokens[i]);
    }
    return true;
}

/* One transaction without reading first. What does not match its guard is left to the general
 * way. */
static int settle_fast(struct changing *c, struct hf_err *err)
{
    struct hf_ops ops;
    struct hf_err why = { 0 };
    bool brief = (c->flags & HF_BRIEF) != 0;
    size_t rows = 0;
    hf_ops_init(&ops, c->store->sql, c->store->handle.alloc);
    int rc = add_settles(c, &ops, &why) ? 0 : why.code ? why.code : HF_EGUARD;
    if (rc == 0 && !brief)
        rows = add_read_back(c, &ops);
    if (rc == 0)
        rc = hf_ops_write(&ops, err);
    if (rc == 0)
        rc = sql_answered(show_written(c, &ops, rows, err), err);
    hf_ops_fini(&ops);
    return rc == HF_EGUARD ? 0 : rc;
}

/* ---- renewal ----------------------------------------------------------------------- */

/* Rule 8: nothing but lease_expires_at. */
static void add_renewal(struct hf_ops *ops, const struct hf_change *change,
                        const struct hf_token *token)
{
    hf_ops_text(ops, change->id);
    hf_ops_i64(ops, token->store);
    hf_ops_i64(ops, token->fence);
    hf_ops_text(ops, token->nonce);
    hf_ops_i64_opt(ops, change->ttl_ms);
}

/* The event is a sample. */
static void add_renewed(struct changing *c, struct hf_ops *ops,
                        const struct hf_change *change, const struct hf_token *token)
{
    hf_ops_text(ops, change->id);
    hf_ops_text(ops, token->nonce);
    hf_ops_text(ops, c->who->actor_kind);
    hf_ops_text(ops, c->who->actor);
    hf_ops_text(ops, c->who->correlation_id);
    hf_ops_i64(ops, token->store);
    hf_ops_i64(ops, token->fence);
}

static bool add_renewals(struct changing *c, struct hf_ops *ops)
{
    struct hf_token *tokens = hf_arena_array(&c->arena, c->n, sizeof *tokens);
    if (!tokens)
        return false;
    hf_ops_call(ops, HF_SQL_WORK_RENEW, (int64_t)c->n);
    for (size_t i = 0; i < c->n; i++) {
        if (hf_token_read(c->slots[i].change->token, &tokens[i], NULL))
            return false;
        if (i > 0)
            hf_ops_again(ops);
        add_renewal(ops, c->slots[i].change, &tokens[i]);
    }
    hf_ops_call(ops, HF_SQL_EVENT_RENEWED, HF_ANY_COUNT);
    for (size_t i = 0; i < c->n; i++) {
        if (i > 0)
            hf_ops_again(ops);
        add_renewed(c, ops, c->slots[i].change, &tokens[i]);
    }
    return true;
}

void change_add_renewal(struct changing *c, struct hf_ops *ops,
                        const struct change_slot *slot)
{
    struct hf_token *token = hf_arena_new(&ops->arena, struct hf_token);
    if (!token || hf_token_read(slot->change->token, token, NULL)) {
        ops->state = HF_ENOMEM; /* the token has been read before */
        return;
    }
    hf_ops_call(ops, HF_SQL_WORK_RENEW, 1);
    add_renewal(ops, slot->change, token);
    hf_ops_call(ops, HF_SQL_EVENT_RENEWED, HF_ANY_COUNT);
    add_renewed(c, ops, slot->change, token);
}

/* The owner sees a recorded cancel request in the row it gets back. */
static int renew_fast(struct changing *c, struct hf_ops *ops, struct hf_err *err)
{
    if (!add_renewals(c, ops))
        return 0;
    size_t rows = add_read_back(c, ops);
    int rc = hf_ops_write(ops, err);
    if (rc == HF_EGUARD)
        return 0;
    return rc ? rc : sql_answered(show_written(c, ops, rows, err), err);
}

int change_fast(struct changing *c, struct hf_err *err)
{
    bool close_out = all_verbs(c, HF_VERB_CLOSE_OUT);
    if (!close_out && !all_verbs(c, HF_VERB_RENEW))
        return 0;
    if (close_out)
        return settle_fast(c, err);
    struct hf_ops ops;
    hf_ops_init(&ops, c->store->sql, c->store->handle.alloc);
    int rc = renew_fast(c, &ops, err);
    hf_ops_fini(&ops);
    return rc;
}
