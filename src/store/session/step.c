/* A step of an open turn: one transaction, under the session's lease, that stores the turn
 * machine's save and what came since the step before.
 *
 * New records join the history as provisional nodes, which the commit of the turn makes final. The
 * chain is a digest over all nodes so far: a step names the chain that it follows, so two workers
 * cannot both follow the same one. Transients are records that the turn needs until it ends, and
 * that never become nodes. A step may put the turn away: it waits for something far off, so the
 * step ends the lease too.
 *
 * The batch reads nothing before it writes; guards in it refuse. Only a step that was refused
 * reads, to find out why. */
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "store/session/session.h"

struct stepping {
    struct sql_store *store;
    const struct hf_session_step *step;
    struct hf_token token;
    struct hf_packed packed;
    const struct hf_caller *who;
    int64_t nodes; /* provisional nodes afterwards */
    bool
        cancel_asked; /* a refused try has found that a cancel of the turn was asked for */
    size_t effects;   /* the first call about effects, and the one behind the last */
    size_t effects_end;
    size_t
        away; /* the call that tells whether a put-away session is ready; 0: not put away */
};

/* Appends the calls of the step: the guard (the lease, and that the turn is open), the turn's row,
 * the nodes, the effects and the waits. The guard also refuses a turn whose cancel was asked for,
 * since a step has to tell its caller so. That refusal sets cancel_asked, and the step is tried
 * again without this part of the guard. */
static int add_step(struct stepping *s, struct hf_ops *ops, struct hf_err *err)
{
    const struct hf_session_step *step = s->step;
    hf_ops_call(ops, HF_SQL_SESSION_FENCED_TURN, 1);
    session_put_token(ops, step->session_id, &s->token);
    hf_ops_text(ops, step->turn_id);
    hf_ops_i64(ops, !s->cancel_asked);
    hf_ops_call(ops, HF_SQL_TURN_STEP, 1);
    hf_ops_text(ops, step->session_id);
    hf_ops_text(ops, step->turn_id);
    hf_ops_i64(ops, step->step);
    hf_ops_i64(ops, step->node_count);
    hf_ops_bytes(ops, step->chain, 32);
    hf_ops_i64(ops, s->nodes);
    hf_ops_bytes(ops, s->packed.chain, 32);
    hf_ops_text(ops, s->packed.transients);
    hf_ops_bytes(ops, step->save.at, step->save.len);
    hf_ops_i64(ops, step->active_ms);
    hf_ops_i64(ops, (int64_t)step->begun_count);
    session_nodes_add(ops, step->session_id, step->turn_id, step->node_count, &s->packed);
    s->effects = session_effects_add(ops, step, s->token.fence);
    s->effects_end = ops->batch.call_count;
    return session_waits_add(s->store, ops, s->who, step, &s->token, &s->away, err);
}

/* The same step, stored before: it left the same nodes and the same save, whose last 32 bytes
 * are its digest. */
static bool is_repeat(const struct stepping *s, const struct session_facts *facts)
{
    struct hf_span save = s->step->save;
    size_t end = save.len < 32 ? save.len : 32;
    return facts->step == s->step->step + 1 && facts->node_count == s->nodes &&
           session_bytes_same(facts->chain, s->packed.chain, 32) &&
           facts->save_bytes == save.len &&
           session_bytes_same(facts->save_end, (const char *)save.at + save.len - end,
                              end);
}

/* Why the guards refused; 0: it is a repeat. */
static int refused(struct stepping *s, struct hf_ops *ops,
                   struct hf_session_stepped *stepped, struct hf_err *err)
{
    struct session_facts facts;
    const struct hf_session_step *step = s->step;
    size_t call = ops->batch.failed_call;
    int rc = session_facts_read(ops, step->session_id, step->turn_id, &facts, err);
    /* A turn that this step has put away has no lease. */
    if (rc == 0 && step->away && !facts.finished_at && is_repeat(s, &facts)) {
        stepped->repeated = true;
        stepped->cancel_requested = facts.row.s.cancel_request != NULL;
        return 0;
    }
    if (rc == 0)
        rc = session_lease_check(ops, &facts, &s->token, err);
    if (rc)
        return rc;
    if (!facts.turn_found || facts.finished_at ||
        !hf_same(facts.row.s.turn_id, step->turn_id))
        return hf_fail(err, HF_ESUPERSEDED, "turn_id", "turn %.100s is not open",
                       step->turn_id);
    if (is_repeat(s, &facts)) {
        stepped->repeated = true;
        stepped->cancel_requested = facts.row.s.cancel_request != NULL;
        return 0;
    }
    if (facts.step != step->step || facts.node_count != step->node_count ||
        !session_bytes_same(facts.chain, step->chain, 32))
        return hf_fail(err, HF_ESUPERSEDED, "step",
                       "the turn is at step %lld with %lld nodes, not at step %lld with "
                       "%lld, or its chain is another",
                       (long long)facts.step, (long long)facts.node_count,
                       (long long)step->step, (long long)step->node_count);
    if (call >= s->effects && call < s->effects_end)
        return hf_fail(err, HF_EEFFECT, "effects",
                       "an effect was begun before, or is settled, or was never begun");
    s->cancel_asked = facts.row.s.cancel_request != NULL;
    return HF_EGUARD; /* that, or it was in the way only at that moment */
}

static int step_once(struct stepping *s, struct hf_session_stepped *stepped,
                     struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, s->store->sql, s->store->handle.alloc);
    int rc = add_step(s, &ops, err);
    if (rc == 0)
        rc = hf_ops_write(&ops, err);
    if (rc == 0) {
        stepped->cancel_requested = s->cancel_asked;
        stepped->ready = s->away > 0 && hf_ops_result(&ops, s->away)->out_count > 0 &&
                         hf_out_i64(hf_ops_result(&ops, s->away), 0,
                                    HF_COL_SESSION_PUT_AWAY_READY) != 0;
    } else if (rc == HF_EGUARD) {
        rc = refused(s, &ops, stepped, err);
    }
    hf_ops_fini(&ops);
    return rc;
}

int sql_session_step(struct hf_store *handle, const struct hf_caller *who,
                     const struct hf_session_step *step,
                     struct hf_session_stepped *ret_stepped, struct hf_err *err)
{
    struct stepping s = { .store = sql_store_of(handle), .step = step, .who = who };
    struct hf_session_stepped stepped = { .step = step->step + 1 };
    struct hf_arena arena;
    hf_arena_init(&arena, handle->alloc);
    int rc = session_token(step->token, &s.token, err);
    if (rc == 0)
        rc = hf_records_pack(&arena, step->records, step->record_count, step->node_count,
                             step->chain, &s.packed, err);
    size_t bytes = s.packed.bytes;
    for (size_t i = 0; i < step->blob_count; i++)
        bytes += step->blobs[i].bytes.len;
    if (rc == 0)
        rc = hf_commit_budget(bytes, step->record_count + step->blob_count, err);
    s.nodes = step->node_count + (int64_t)s.packed.count;
    rc = rc ? rc : HF_EGUARD;
    for (int i = 0; rc == HF_EGUARD && i < HF_TRIES; i++)
        rc = step_once(&s, &stepped, err);
    if (rc == 0) {
        stepped.node_count = s.nodes;
        memcpy(stepped.chain, s.packed.chain, sizeof stepped.chain);
        *ret_stepped = stepped;
    }
    hf_arena_fini(&arena);
    return rc == HF_EGUARD ? hf_fail_plain(err, HF_EBUSY) : rc;
}
