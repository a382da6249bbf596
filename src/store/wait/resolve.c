/* Closing waits: answers and revocations. The first writer closes a wait; all others get
 * its outcome.
 *
 * A wait belongs to a turn of a session, and its id names the turn and the kind of wait. The inputs
 * of the turn are units of work, which wait with it: closing the wait resumes them or ends them in
 * the same transaction. A caller proves its right to answer either as an actor, or by the wait's
 * key, a secret that was given out for this one wait.
 *
 * The row of a closed wait has the name of the call that closed it (`closed_by`): the operation's
 * id, or a nonce. By it a call sees whether it has closed the wait itself, also where the same
 * operation was called before. */
#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "store/wait/wait.h"

/* ---- appending ---------------------------------------------------------------------- */

static void put_who(struct hf_ops *ops, const struct hf_caller *who)
{
    hf_ops_text(ops, who->actor_kind);
    hf_ops_text(ops, who->actor);
}

void wait_close_add(struct hf_ops *ops, const struct hf_caller *who,
                    const struct wait_closing *closing)
{
    hf_ops_call(ops, HF_SQL_WAIT_WAKE, 1);
    hf_ops_text(ops, closing->wait_id);
    hf_ops_text(ops, closing->answerer);
    hf_ops_call(ops, HF_SQL_WAIT_CLOSE, 1);
    hf_ops_text(ops, closing->wait_id);
    hf_ops_text(ops, closing->answerer);
    hf_ops_text(ops, hf_wait_state_word(closing->state));
    hf_ops_text(ops, closing->outcome);
    put_who(ops, who);
    hf_ops_text(ops, closing->closed_by);
    hf_ops_i64_opt(ops, closing->check_at);
    session_ring(ops);
}

/* The event's JSON: which wait, and how it ended. The outcome itself is in the wait's row. */
static const char *closed_note(struct hf_ops *ops, const struct wait_closing *closing)
{
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, ops->arena.alloc, 1024);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    hf_json_put_str(&json, "state", hf_wait_state_word(closing->state));
    hf_json_put_str(&json, "wait_id", closing->wait_id);
    hf_json_end(&json);
    const char *note = hf_buf_keep(&text, &ops->arena);
    if (!note)
        ops->state = HF_ENOMEM;
    return note;
}

/* Appends what the close of the wait does to the units that are the inputs of its turn. */
static void add_units(struct hf_ops *ops, const struct hf_caller *who,
                      const struct wait_closing *closing, enum hf_sql_id statement)
{
    hf_ops_call(ops, statement, HF_ANY_COUNT);
    hf_ops_text(ops, closing->wait_id);
    put_who(ops, who);
    hf_ops_text(ops, closed_note(ops, closing));
    hf_ops_text(ops, who->correlation_id);
}

void wait_resume_add(struct hf_ops *ops, const struct hf_caller *who,
                     const struct wait_closing *closing)
{
    add_units(ops, who, closing, HF_SQL_INPUTS_RESUME);
}

void wait_fail_add(struct hf_ops *ops, const struct hf_caller *who,
                   const struct wait_closing *closing)
{
    add_units(ops, who, closing, HF_SQL_INPUTS_EXPIRE);
    hf_ops_text(ops, "wait_timeout");
    hf_ops_call(ops, HF_SQL_WAITS_CLOSE_OTHERS, HF_ANY_COUNT);
    hf_ops_text(ops, closing->wait_id);
    hf_ops_text(ops, closing->closed_by);
    hf_ops_text(ops, HF_WAIT_OUTCOME_CANCELLED);
    put_who(ops, who);
}

/* ---- one wait ----------------------------------------------------------------------- */

struct closing {
    struct sql_store *store;
    const struct hf_caller *who;
    struct wait_closing what;
    struct hf_wait_place place; /* what the wait's id names: its turn and kind */
    bool by_key; /* the caller has the wait's key, and learns nothing about other waits */
    char nonce[HF_NONCE_TEXT];
};

static int not_there(const struct closing *c, struct hf_err *err)
{
    return c->by_key ? hf_fail_plain(err, HF_EWAITKEY)
                     : hf_fail(err, HF_ENOTFOUND, "wait_id", "there is no wait %.80s",
                               c->what.wait_id);
}

/* Answers from a wait's row, which another call may have closed. Sets *answer to the wait;
 * answer->accepted says whether this operation closed it, with this outcome. HF_EGUARD: it is open.
 * HF_EANSWERER: it is open, and only another actor may answer it. If another call cancelled it, it
 * is not there for a caller with the key. */
static int answer_from(const struct closing *c, const struct hf_call *found,
                       struct hf_wait_answer *answer, struct hf_err *err)
{
    struct hf_wait wait;
    int rc = session_wait_read(found, 0, &wait, err);
    bool open = rc == 0 && hf_same(wait.state, hf_wait_state_word(HF_WAIT_IS_OPEN));
    bool cancelled = rc == 0 &&
                     hf_same(wait.state, hf_wait_state_word(HF_WAIT_IS_CANCELLED));
    bool ours = rc == 0 &&
                hf_same(hf_out_text(found, 0, SESSION_WAIT_CLOSED_BY),
                        c->what.closed_by) &&
                hf_same(wait.outcome, c->what.outcome);
    if (rc)
        return rc;
    if (open && c->what.answerer && wait.answerer &&
        !hf_same(wait.answerer, c->what.answerer))
        return hf_fail(err, HF_EANSWERER, "actor",
                       "%.80s may answer this wait, not %.80s", wait.answerer,
                       c->what.answerer);
    if (open)
        return HF_EGUARD;
    if (c->by_key && cancelled && !ours)
        return not_there(c, err);
    answer->accepted = ours;
    return wait_show(answer, found, err);
}

static size_t add_get(struct hf_ops *ops, const struct closing *c)
{
    size_t found = hf_ops_call(ops, HF_SQL_WAIT_GET, HF_ANY_COUNT);
    hf_ops_text(ops, c->what.wait_id);
    return found;
}

/* Closes a wait that is not there, as one that its turn may open later: its row is written with the
 * outcome. */
static int close_early(const struct closing *c, struct hf_wait_answer *answer,
                       struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, c->store->sql, c->store->handle.alloc);
    hf_ops_call(&ops, HF_SQL_WAIT_TURN_LOCK, HF_ANY_COUNT);
    hf_ops_text(&ops, c->place.turn_id);
    hf_ops_call(&ops, HF_SQL_WAIT_EARLY, HF_ANY_COUNT);
    hf_ops_text(&ops, c->place.turn_id);
    hf_ops_text(&ops, c->what.wait_id);
    hf_ops_text(&ops, hf_wait_kind_word(c->place.kind));
    hf_ops_text(&ops, hf_wait_state_word(c->what.state));
    hf_ops_text(&ops, c->what.outcome);
    put_who(&ops, c->who);
    hf_ops_text(&ops, c->what.closed_by);
    size_t found = add_get(&ops, c);
    int rc = hf_ops_write(&ops, err);
    if (rc == 0 && hf_ops_result(&ops, found)->out_count == 0)
        rc = not_there(c, err);
    else if (rc == 0)
        rc = answer_from(c, hf_ops_result(&ops, found), answer, err);
    hf_ops_fini(&ops);
    return rc;
}

/* Closes an open wait. HF_EGUARD: it is not open, is not there, or the caller may not answer it. */
static int close_open(const struct closing *c, struct hf_wait_answer *answer,
                      struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, c->store->sql, c->store->handle.alloc);
    wait_close_add(&ops, c->who, &c->what);
    wait_resume_add(&ops, c->who, &c->what);
    size_t found = add_get(&ops, c);
    int rc = hf_ops_write(&ops, err);
    if (rc == 0)
        rc = wait_show(answer, hf_ops_result(&ops, found), err);
    answer->accepted = rc == 0;
    hf_ops_fini(&ops);
    return rc;
}

/* Finds why close_open was refused, and answers; a wait that is not there is closed early.
 * HF_EGUARD: the wait is open now: try again. */
static int refused(const struct closing *c, struct hf_wait_answer *answer,
                   struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, c->store->sql, c->store->handle.alloc);
    size_t found = add_get(&ops, c);
    int rc = hf_ops_read(&ops, err);
    bool there = rc == 0 && hf_ops_result(&ops, found)->out_count > 0;
    if (there)
        rc = answer_from(c, hf_ops_result(&ops, found), answer, err);
    hf_ops_fini(&ops);
    return rc || there ? rc : close_early(c, answer, err);
}

/* Closes the wait as c->what says, or answers with how it was closed before. *answer is the wait.
 * HF_EBUSY: other callers changed it at each try. */
static int close_wait(struct closing *c, struct hf_wait_answer *answer,
                      struct hf_err *err)
{
    int rc = hf_nonce(c->store->handle.random, c->nonce, err);
    c->what.closed_by = c->who->operation_id ? c->who->operation_id : c->nonce;
    if (!hf_wait_id_read(c->what.wait_id, &c->place))
        return not_there(c, err);
    rc = rc ? rc : HF_EGUARD;
    for (int i = 0; rc == HF_EGUARD && i < HF_TRIES; i++) {
        rc = close_open(c, answer, err);
        if (rc == HF_EGUARD)
            rc = refused(c, answer, err);
    }
    return rc == HF_EGUARD ? hf_fail_plain(err, HF_EBUSY) : rc;
}

/* Refuses edited arguments of a wait that is not there. */
static int refuse_unasked(const struct closing *c, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, c->store->sql, c->store->handle.alloc);
    hf_ops_call(&ops, HF_SQL_WAIT_TURN_LOCK, HF_ANY_COUNT);
    hf_ops_text(&ops, c->place.turn_id);
    int rc = hf_ops_write(&ops, err);
    if (rc == 0 && hf_ops_result(&ops, 0)->out_count == 0)
        rc = not_there(c, err);
    else if (rc == 0)
        rc = hf_fail(err, HF_EINVAL, "value",
                     "the turn has not asked yet: approve without edited arguments");
    hf_ops_fini(&ops);
    return rc;
}

/* Edited arguments are checked against what was asked, which never changes. */
static int check_edits(const struct closing *c, const struct hf_wait_resolve *request,
                       struct hf_err *err)
{
    struct hf_ops ops;
    struct hf_wait wait;
    if (request->word != HF_ANSWER_APPROVE || !request->value)
        return 0;
    hf_ops_init(&ops, c->store->sql, c->store->handle.alloc);
    size_t found = add_get(&ops, c);
    int rc = hf_ops_read(&ops, err);
    if (rc == 0 && hf_ops_result(&ops, found)->out_count == 0)
        rc = refuse_unasked(c, err);
    else if (rc == 0)
        rc = session_wait_read(hf_ops_result(&ops, found), 0, &wait, err);
    if (rc == 0 && hf_same(wait.state, hf_wait_state_word(HF_WAIT_IS_OPEN)))
        rc = hf_wait_edits_check(c->store->handle.alloc, wait.asked, request->value, err);
    hf_ops_fini(&ops);
    return rc;
}

/* Answers a wait as the request says, in the caller's name. If it was closed before, the answer
 * shows the outcome that is stored, and answer->accepted is false; it is true if the same operation
 * with the same outcome closed it. An answer to a wait that its turn has not opened yet is kept.
 * HF_EWAITKEY or HF_ENOTFOUND: there is no such wait; with a key, one that was cancelled is
 * none. */
int sql_wait_resolve(struct hf_store *handle, const struct hf_caller *who,
                     const struct hf_wait_resolve *request, bool by_key,
                     struct hf_wait_answer *answer, struct hf_err *err)
{
    struct closing c = { .store = sql_store_of(handle), .who = who, .by_key = by_key };
    struct hf_arena arena;
    hf_arena_init(&arena, handle->alloc);
    c.what = (struct wait_closing){ .wait_id = request->wait_id,
                                    .answerer = who->actor,
                                    .state = HF_WAIT_IS_RESOLVED };
    int rc = hf_wait_id_read(request->wait_id, &c.place) ? 0 : not_there(&c, err);
    if (rc == 0)
        rc = hf_wait_outcome(&arena, c.place.kind, request, &c.what.outcome, err);
    if (rc == 0)
        rc = check_edits(&c, request, err);
    if (rc == 0)
        rc = close_wait(&c, answer, err);
    hf_arena_fini(&arena);
    return rc;
}

/* ---- revoking ----------------------------------------------------------------------- */

static int revoke_one(struct hf_store *handle, const struct hf_caller *who,
                      const struct hf_wait_revoke *request, struct hf_wait_answer *answer,
                      struct hf_err *err)
{
    struct closing c = { .store = sql_store_of(handle), .who = who };
    struct hf_arena arena;
    hf_arena_init(&arena, handle->alloc);
    c.what = (struct wait_closing){ .wait_id = request->wait_id,
                                    .state = HF_WAIT_IS_CANCELLED };
    int rc = hf_wait_cancelled(&arena, request->reason, &c.what.outcome, err);
    if (rc == 0)
        rc = close_wait(&c, answer, err);
    answer->revoked = rc == 0 && answer->accepted;
    hf_arena_fini(&arena);
    return rc;
}

/* Appends the revocation of a turn's open waits, except its timers. `closing` has the outcome and
 * the name of this call (`closed_by`). */
static void add_turn(struct hf_ops *ops, const struct hf_caller *who,
                     const char *session_id, const char *turn_id,
                     const struct wait_closing *closing)
{
    hf_ops_call(ops, HF_SQL_TURN_MAKE_READY, HF_ANY_COUNT);
    hf_ops_text(ops, session_id);
    hf_ops_text(ops, turn_id);
    hf_ops_call(ops, HF_SQL_TURN_REVOKE, HF_ANY_COUNT);
    hf_ops_text(ops, session_id);
    hf_ops_text(ops, turn_id);
    hf_ops_call(ops, HF_SQL_WAITS_CLOSE_TURN, HF_ANY_COUNT);
    hf_ops_text(ops, session_id);
    hf_ops_text(ops, turn_id);
    hf_ops_text(ops, closing->outcome);
    put_who(ops, who);
    hf_ops_text(ops, closing->closed_by);
    hf_ops_text(ops, hf_wait_kind_word(HF_WAIT_TIMER));
    hf_ops_call(ops, HF_SQL_INPUTS_RESUME_TURN, HF_ANY_COUNT);
    hf_ops_text(ops, session_id);
    hf_ops_text(ops, turn_id);
    put_who(ops, who);
    hf_ops_null(ops);
    hf_ops_text(ops, who->correlation_id);
    session_ring(ops);
}

static int revoke_turn(struct hf_store *handle, const struct hf_caller *who,
                       const struct hf_wait_revoke *request,
                       struct hf_wait_answer *answer, struct hf_err *err)
{
    struct session_facts facts;
    char nonce[HF_NONCE_TEXT];
    struct wait_closing closing = { .closed_by = nonce };
    struct hf_ops look, ops;
    hf_ops_init(&look, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    int rc = hf_nonce(handle->random, nonce, err);
    if (rc == 0)
        rc = hf_wait_cancelled(&ops.arena, request->reason, &closing.outcome, err);
    if (rc == 0)
        rc = session_facts_read(&look, request->session_id, request->turn_id, &facts,
                                err);
    const char *turn_id = rc == 0 && !request->turn_id ? facts.row.s.turn_id
                                                       : request->turn_id;
    if (rc == 0 && request->turn_id && !facts.turn_found)
        rc = hf_fail(err, HF_ENOTFOUND, "turn_id", "session %.60s has no turn %.60s",
                     request->session_id, request->turn_id);
    bool some = rc == 0 && turn_id && !(request->turn_id && facts.finished_at);
    size_t counted = 0;
    if (some) {
        add_turn(&ops, who, request->session_id, turn_id, &closing);
        counted = hf_ops_call(&ops, HF_SQL_TURN_CLOSED_NOW, HF_ANY_COUNT);
        hf_ops_text(&ops, request->session_id);
        hf_ops_text(&ops, turn_id);
        hf_ops_text(&ops, nonce);
        rc = hf_ops_write(&ops, err);
    }
    if (rc == 0 && some)
        answer->revoked = hf_out_i64(hf_ops_result(&ops, counted), 0,
                                     HF_COL_TURN_CLOSED_NOW_CLOSED);
    hf_ops_fini(&ops);
    hf_ops_fini(&look);
    return rc;
}

/* Cancels one wait, by its id, or the open waits of a turn except its timers. answer->revoked: how
 * many this call has cancelled. */
int sql_wait_revoke(struct hf_store *handle, const struct hf_caller *who,
                    const struct hf_wait_revoke *request, struct hf_wait_answer *answer,
                    struct hf_err *err)
{
    return request->wait_id ? revoke_one(handle, who, request, answer, err)
                            : revoke_turn(handle, who, request, answer, err);
}
