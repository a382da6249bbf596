/* Cancelling a turn. A request to cancel is JSON in the session's row (the column cancel_request,
 * here called the gate): the first one stays until the turn's commit, and the worker that holds the
 * session finds it at its next step or renewal. Inputs of the turn that wait or are queued are
 * cancelled in the same transaction. The request has a fresh id, so that a caller can tell its own
 * from an earlier one. */
#include "base/err.h"
#include "base/ident.h"
#include "base/json.h"
#include "base/text.h"
#include "store/session/session.h"

struct cancelling {
    struct sql_store *store;
    const struct hf_caller *who;
    const struct hf_session_cancel *request;
    const char *gate; /* JSON of this request */
    char nonce[HF_NONCE_TEXT];
};

/* The id makes each request another text, so that a caller knows its own. */
static int make_gate(struct cancelling *c, struct hf_arena *arena, struct hf_err *err)
{
    struct hf_buf text;
    struct hf_json json;
    int rc = hf_nonce(c->store->handle.random, c->nonce, err);
    if (rc)
        return rc;
    hf_buf_init(&text, arena->alloc, 8192);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    hf_json_put_i64(&json, "at", sql_wall(c->store));
    hf_json_key(&json, "by");
    hf_json_str(&json, hf_arena_join(arena, hf_arena_join(arena, c->who->actor_kind, ":"),
                                     c->who->actor));
    hf_json_opt_str(&json, "reason", c->request->reason);
    hf_json_put_str(&json, "request_id", c->nonce);
    hf_json_end(&json);
    c->gate = hf_buf_keep(&text, arena);
    return c->gate ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

static void put_turn(const struct cancelling *c, struct hf_ops *ops)
{
    hf_ops_text(ops, c->request->session_id);
    hf_ops_text(ops, c->request->turn_id);
    hf_ops_text(ops, c->gate);
}

static void add_units(const struct cancelling *c, struct hf_ops *ops,
                      enum hf_sql_id statement)
{
    hf_ops_call(ops, statement, HF_ANY_COUNT);
    put_turn(c, ops);
    hf_ops_text(ops, c->who->actor_kind);
    hf_ops_text(ops, c->who->actor);
    hf_ops_text(ops, c->request->reason);
    hf_ops_text(ops, c->who->correlation_id);
}

/* Returns the call that reads what came of it. */
static size_t add_calls(const struct cancelling *c, struct hf_ops *ops)
{
    hf_ops_call(ops, HF_SQL_LEASE_LOCK_SESSION, HF_ANY_COUNT);
    hf_ops_text(ops, c->request->session_id);
    hf_ops_call(ops, HF_SQL_SESSION_CANCEL, HF_ANY_COUNT);
    put_turn(c, ops);
    add_units(c, ops, HF_SQL_INPUTS_CANCEL_WAITING);
    hf_ops_call(ops, HF_SQL_WAITS_CANCEL_TURN, HF_ANY_COUNT);
    put_turn(c, ops);
    hf_ops_text(ops, HF_WAIT_OUTCOME_CANCELLED);
    hf_ops_text(ops, c->who->actor_kind);
    hf_ops_text(ops, c->who->actor);
    hf_ops_text(ops, c->nonce);
    add_units(c, ops, HF_SQL_INPUT_CANCEL_QUEUED);
    session_ring(ops);
    hf_ops_ring_ended(ops, c->request->turn_id);
    size_t seen = hf_ops_call(ops, HF_SQL_TURN_CANCEL_SEEN, HF_ANY_COUNT);
    hf_ops_text(ops, c->request->session_id);
    hf_ops_text(ops, c->request->turn_id);
    return seen;
}

/* HF_EGUARD: the turn began or continued meanwhile. */
static int judge(const struct cancelling *c, const struct hf_call *seen,
                 enum hf_session_turn_cancel *ret_answer, struct hf_err *err)
{
    const char *gate = hf_out_text(seen, 0, HF_COL_TURN_CANCEL_SEEN_GATE);
    const char *request = hf_out_text(seen, 0, HF_COL_TURN_CANCEL_SEEN_REQUEST);
    bool open = hf_out_i64(seen, 0, HF_COL_TURN_CANCEL_SEEN_IS_OPEN) != 0;
    enum hf_status status = hf_status_of(
        hf_out_text(seen, 0, HF_COL_TURN_CANCEL_SEEN_STATUS));
    if (hf_out_i64(seen, 0, HF_COL_TURN_CANCEL_SEEN_DELETED_AT))
        return hf_fail(err, HF_ESESSIONDELETED, "session_id",
                       "session %.100s was deleted", c->request->session_id);
    if (open && !gate)
        return HF_EGUARD;
    if (open) {
        *ret_answer = hf_same(gate, c->gate) ? HF_TURN_CANCEL_REQUESTED
                                             : HF_TURN_CANCEL_ALREADY;
        return 0;
    }
    bool finished = hf_out_i64(seen, 0, HF_COL_TURN_CANCEL_SEEN_FINISHED_AT) != 0;
    if (!finished && !hf_status_terminal(status))
        return HF_EGUARD;
    *ret_answer = finished || !request        ? HF_TURN_CANCEL_COMPLETED
                  : hf_same(request, c->gate) ? HF_TURN_CANCEL_REQUESTED
                                              : HF_TURN_CANCEL_ALREADY;
    return 0;
}

static int cancel_once(const struct cancelling *c,
                       enum hf_session_turn_cancel *ret_answer, struct hf_err *err)
{
    struct hf_ops ops;
    struct session_facts facts;
    hf_ops_init(&ops, c->store->sql, c->store->handle.alloc);
    size_t seen = add_calls(c, &ops);
    int rc = hf_ops_write(&ops, err);
    if (rc == 0 && hf_ops_result(&ops, seen)->out_count > 0)
        rc = judge(c, hf_ops_result(&ops, seen), ret_answer, err);
    else if (rc == 0) {
        rc = session_facts_read(&ops, c->request->session_id, c->request->turn_id, &facts,
                                err);
        if (rc == 0 && facts.finished_at) /* its unit was pruned */
            *ret_answer = HF_TURN_CANCEL_COMPLETED;
        else if (rc == 0)
            rc = hf_fail(err, HF_ENOTFOUND, "turn_id", "session %.60s has no turn %.60s",
                         c->request->session_id, c->request->turn_id);
    }
    hf_ops_fini(&ops);
    return rc;
}

int sql_session_cancel_turn(struct hf_store *handle, const struct hf_caller *who,
                            const struct hf_session_cancel *request,
                            enum hf_session_turn_cancel *ret_answer, struct hf_err *err)
{
    struct cancelling c = { .store = sql_store_of(handle),
                            .who = who,
                            .request = request };
    struct hf_arena arena;
    hf_arena_init(&arena, handle->alloc);
    int rc = make_gate(&c, &arena, err);
    rc = rc ? rc : HF_EGUARD;
    for (int i = 0; rc == HF_EGUARD && i < HF_TRIES; i++)
        rc = cancel_once(&c, ret_answer, err);
    hf_arena_fini(&arena);
    return rc == HF_EGUARD ? hf_fail_plain(err, HF_EBUSY) : rc;
}
