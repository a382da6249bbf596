/* The commit of a turn: one transaction that makes the turn's records the head of the session's
 * history.
 *
 * In the batch come the guard (the lease, the head and the chain that the commit follows), the
 * nodes, the blobs they refer to, the usage, the end of the turn's input, new units, and the
 * receipt, by which a repeated commit is answered even without a lease. It reads nothing before it
 * writes; only a commit that is refused reads, to say why. */
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/json.h"
#include "base/text.h"
#include "store/session/session.h"

struct committing {
    struct sql_store *store;
    const struct hf_caller *who;
    const struct hf_session_commit *commit;
    struct hf_arena arena;
    struct hf_token token;
    struct hf_packed packed;
    uint8_t hash[32];
    struct hf_session_committed done;
    const char *result;        /* JSON, as the turn's row keeps it */
    const char *reason;        /* of the inputs */
    bool ended;                /* the inputs ended while the turn waited */
    bool ends_waits;           /* some are open */
    struct hf_making *makings; /* of the units */
    /* Where parts of the batch begin, to tell which was refused. */
    size_t blobs_call;
    size_t inputs_call;
    size_t units_call;
};

/* ---- what is written ---------------------------------------------------------------- */

static int make_units(struct committing *c, struct hf_err *err)
{
    const struct hf_session_commit *commit = c->commit;
    struct hf_batch moment = { .now = sql_wall(c->store) };
    struct hf_env env;
    int rc = sql_env(c->store, c->who, &moment, &env, err);
    c->makings = hf_arena_array(&c->arena, commit->unit_count, sizeof *c->makings);
    struct hf_row *rows = hf_arena_array(&c->arena, commit->unit_count, sizeof *rows);
    uint8_t *hashes = hf_arena_array(&c->arena, commit->unit_count, HF_DIGEST_BYTES);
    if (rc == 0 && (!c->makings || !rows || !hashes))
        rc = hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; rc == 0 && i < commit->unit_count; i++) {
        uint8_t *hash = hashes + i * HF_DIGEST_BYTES;
        rc = sql_make_row(c->store, &c->arena, c->who, &env, &commit->units[i], &rows[i],
                          hash, err);
        c->makings[i] = (struct hf_making){ .row = &rows[i], .hash = hash };
    }
    return rc;
}

static int prepare(struct committing *c, struct hf_err *err)
{
    const struct hf_session_commit *commit = c->commit;
    size_t rows = commit->added_count + commit->blob_count + commit->spent_count +
                  commit->unit_count;
    int rc = session_token(commit->token, &c->token, err);
    if (rc == 0)
        rc = hf_records_pack(&c->arena, commit->records, commit->added_count,
                             commit->node_count, commit->chain, &c->packed, err);
    if (rc == 0)
        rc = hf_commit_budget(hf_commit_bytes(commit, &c->packed), rows, err);
    if (rc == 0 && commit->head_revision == INT64_MAX)
        rc = hf_fail(err, HF_EOVERFLOW, "head_revision",
                     "the revision is at its ceiling");
    if (rc == 0)
        rc = hf_commit_hash(commit, c->who, &c->packed, c->hash, err);
    if (rc == 0)
        rc = hf_commit_reason(&c->arena, commit, &c->reason, err);
    if (rc == 0)
        rc = make_units(c, err);
    if (rc)
        return rc;
    c->done.head_revision = commit->head_revision + 1;
    c->done.record_count = commit->record_count + commit->node_count +
                           (int64_t)c->packed.count;
    memcpy(c->done.chain, c->packed.chain, sizeof c->done.chain);
    c->result = hf_commit_result(&c->arena, c->done.head_revision, c->done.record_count,
                                 c->done.chain);
    return c->result ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

static void add_guard(struct committing *c, struct hf_ops *ops)
{
    const struct hf_session_commit *commit = c->commit;
    hf_ops_call(ops, HF_SQL_SESSION_COMMIT, 1);
    session_put_token(ops, commit->session_id, &c->token);
    hf_ops_text(ops, commit->turn_id);
    hf_ops_i64(ops, commit->head_revision);
    hf_ops_i64(ops, commit->record_count);
    hf_ops_i64(ops, c->done.record_count);
    hf_ops_bytes(ops, c->done.chain, 32);
    hf_ops_text(ops, commit->config);
    hf_ops_i64(ops, commit->status == HF_STATUS_DONE);
    if (c->ends_waits)
        session_waits_end(ops, c->who, commit->session_id, commit->turn_id);
    hf_ops_call(ops, HF_SQL_TURN_COMMIT, 1);
    hf_ops_text(ops, commit->session_id);
    hf_ops_text(ops, commit->turn_id);
    hf_ops_i64(ops, commit->step);
    hf_ops_i64(ops, commit->node_count);
    hf_ops_bytes(ops, commit->chain, 32);
    hf_ops_bytes(ops, c->hash, sizeof c->hash);
    hf_ops_text(ops, commit->outcome);
    hf_ops_text(ops, c->result);
    hf_ops_i64(ops, commit->active_ms);
}

/* Stores the blobs that came with their bytes; afterwards all must be in the store, also those that
 * are only named by their hash. Returns the number of the first call. */
static size_t add_blobs(struct hf_ops *ops, const struct hf_session_blob *blobs,
                        size_t count)
{
    size_t first = ops->batch.call_count, given = 0;
    for (size_t i = 0; i < count; i++) {
        if (!blobs[i].bytes.at)
            continue;
        if (given++ == 0)
            hf_ops_call(ops, HF_SQL_BLOBS_ADD, HF_ANY_COUNT);
        else
            hf_ops_again(ops);
        hf_ops_bytes(ops, blobs[i].hash, sizeof blobs[i].hash);
        hf_ops_bytes(ops, blobs[i].bytes.at, blobs[i].bytes.len);
    }
    if (given == count)
        return first;
    hf_ops_call(ops, HF_SQL_BLOBS_THERE, HF_ANY_COUNT);
    hf_ops_i64(ops, (int64_t)count);
    hf_ops_sets(ops);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            hf_ops_again(ops);
        hf_ops_bytes(ops, blobs[i].hash, sizeof blobs[i].hash);
    }
    return first;
}

static void add_usage(struct committing *c, struct hf_ops *ops)
{
    const struct hf_session_commit *commit = c->commit;
    if (commit->spent_count == 0)
        return;
    hf_ops_call(ops, HF_SQL_USAGE_ADD, (int64_t)commit->spent_count);
    for (size_t i = 0; i < commit->spent_count; i++) {
        const struct hf_session_spent *spent = &commit->spent[i];
        if (i > 0)
            hf_ops_again(ops);
        hf_ops_text(ops, commit->session_id);
        hf_ops_text(ops, commit->turn_id);
        hf_ops_i64(ops, (int64_t)i);
        hf_ops_text(ops, spent->source);
        hf_ops_text(ops, spent->model ? spent->model : "");
        hf_ops_i64(ops, spent->usage.input);
        hf_ops_i64(ops, spent->usage.output);
        hf_ops_i64(ops, spent->usage.cache_read);
        hf_ops_i64(ops, spent->usage.cache_write);
        hf_ops_i64(ops, spent->usage.reasoning);
    }
}

/* A turn has one input. */
static void add_inputs(struct committing *c, struct hf_ops *ops)
{
    const struct hf_session_commit *commit = c->commit;
    const char *status = hf_status_word(commit->status);
    const struct hf_lease lease = { .fence = c->token.fence };
    if (c->ended) {
        c->inputs_call = hf_ops_call(ops, HF_SQL_INPUTS_ENDED, HF_ANY_COUNT);
        hf_ops_text(ops, commit->session_id);
        hf_ops_text(ops, commit->turn_id);
        hf_ops_text(ops, status);
        return;
    }
    c->inputs_call = hf_ops_call(ops, HF_SQL_INPUTS_SETTLE, 1);
    hf_ops_text(ops, commit->session_id);
    hf_ops_text(ops, commit->turn_id);
    hf_ops_text(ops, c->token.nonce);
    hf_ops_i64(ops, c->token.fence);
    hf_ops_text(ops, status);
    hf_ops_text(ops, c->reason);
    hf_ops_text(ops, commit->token);
    hf_ops_text(ops, c->who->actor_kind);
    hf_ops_text(ops, c->who->actor);
    hf_ops_text(ops, hf_session_input_note(&ops->arena, &lease, NULL, 0));
    hf_ops_text(ops, c->who->correlation_id);
    hf_ops_ring_ended(ops, commit->turn_id);
}

static void add_units(struct committing *c, struct hf_ops *ops)
{
    size_t count = c->commit->unit_count;
    c->units_call = ops->batch.call_count;
    if (count == 0)
        return;
    hf_rows_insert(ops, c->makings, count);
    hf_rows_expect_all(ops);
    for (size_t i = 0; i < count; i++)
        if (c->makings[i].row->status == HF_STATUS_QUEUED)
            hf_ops_ring_queue(ops, c->makings[i].row->w.queue, 1);
}

/* ---- refusals ------------------------------------------------------------------------ */

/* The turn was committed before: the receipt decides, before the lease and the head. */
static int answer_receipt(struct committing *c, const struct session_facts *facts,
                          struct hf_err *err)
{
    if (!session_bytes_same(facts->commit_hash, c->hash, sizeof c->hash))
        return hf_fail(err, HF_ECONFLICT, "turn_id",
                       "turn %.100s was finished before with other content",
                       c->commit->turn_id);
    int rc = hf_commit_result_read(facts->result, &c->done, err);
    c->done.repeated = true;
    return rc;
}

static int check_turn(const struct committing *c, const struct session_facts *facts,
                      struct hf_err *err)
{
    const struct hf_session_commit *commit = c->commit;
    if (!facts->turn_found || !hf_same(facts->row.s.turn_id, commit->turn_id))
        return hf_fail(err, HF_ESUPERSEDED, "turn_id", "turn %.100s is not open",
                       commit->turn_id);
    if (facts->step != commit->step || facts->node_count != commit->node_count ||
        !session_bytes_same(facts->chain, commit->chain, 32))
        return hf_fail(err, HF_ESUPERSEDED, "step",
                       "the turn is at step %lld with %lld nodes, not at step %lld with "
                       "%lld, or its chain is another",
                       (long long)facts->step, (long long)facts->node_count,
                       (long long)commit->step, (long long)commit->node_count);
    return 0;
}

/* Why the guard refused; 0: the commit had been made before. HF_EGUARD: try again. */
static int refused(struct committing *c, struct hf_ops *ops, struct hf_err *err)
{
    struct session_facts facts;
    const struct hf_session_commit *commit = c->commit;
    int rc = session_facts_read(ops, commit->session_id, commit->turn_id, &facts, err);
    if (rc)
        return rc;
    if (facts.turn_found && facts.finished_at)
        return answer_receipt(c, &facts, err);
    rc = session_lease_check(ops, &facts, &c->token, err);
    if (rc)
        return rc;
    if (facts.row.s.head_revision != commit->head_revision ||
        facts.row.s.record_count != commit->record_count)
        return hf_fail(err, HF_EHEADMOVED, "head_revision",
                       "the head has revision %lld and %lld records, not %lld and %lld",
                       (long long)facts.row.s.head_revision,
                       (long long)facts.row.s.record_count,
                       (long long)commit->head_revision, (long long)commit->record_count);
    if (commit->status == HF_STATUS_DONE && facts.row.s.cancel_request)
        return hf_fail(err, HF_ECANCELASKED, "status",
                       "a cancel of turn %.100s was asked for: commit it as cancelled",
                       commit->turn_id);
    rc = check_turn(c, &facts, err);
    if (rc)
        return rc;
    /* What few turns have is looked at only where it was in the way. */
    c->ends_waits = facts.open_waits > 0;
    c->ended = hf_status_terminal(facts.input_status);
    return HF_EGUARD;
}

static int refused_at(struct committing *c, struct hf_ops *ops, struct hf_err *err)
{
    size_t at = ops->batch.failed_call;
    bool ended = c->ended;
    int rc = refused(c, ops, err);
    if (rc != HF_EGUARD || at < c->blobs_call || c->ended != ended)
        return rc;
    if (at < c->inputs_call)
        return hf_fail(err, HF_EBLOB, "blobs", "a blob that it refers to is not stored");
    if (at < c->units_call)
        return hf_fail(err, HF_ESUPERSEDED, "turn_id",
                       "an input of turn %.100s is not this claim's", c->commit->turn_id);
    return hf_fail(err, HF_ECONFLICT, "units",
                   "a unit with the source or key of one of them exists");
}

/* ---- the commit ---------------------------------------------------------------------- */

static int commit_once(struct committing *c, struct hf_err *err)
{
    const struct hf_session_commit *commit = c->commit;
    struct hf_ops ops;
    hf_ops_init(&ops, c->store->sql, c->store->handle.alloc);
    add_guard(c, &ops);
    c->blobs_call = add_blobs(&ops, commit->blobs, commit->blob_count);
    session_nodes_add(&ops, commit->session_id, commit->turn_id, commit->node_count,
                      &c->packed);
    add_usage(c, &ops);
    add_inputs(c, &ops);
    add_units(c, &ops);
    if (commit->release)
        session_free_add(&ops, commit->session_id, &c->token,
                         &(struct session_end){ .token = NULL });
    int rc = hf_ops_write(&ops, err);
    if (rc == HF_EGUARD)
        rc = refused_at(c, &ops, err);
    hf_ops_fini(&ops);
    return rc;
}

int sql_session_commit(struct hf_store *handle, const struct hf_caller *who,
                       const struct hf_session_commit *commit,
                       struct hf_session_committed *ret_committed, struct hf_err *err)
{
    struct committing c = { .store = sql_store_of(handle), .who = who, .commit = commit };
    hf_arena_init(&c.arena, handle->alloc);
    int rc = prepare(&c, err);
    rc = rc ? rc : HF_EGUARD;
    for (int i = 0; rc == HF_EGUARD && i < HF_TRIES; i++)
        rc = commit_once(&c, err);
    if (rc == 0)
        *ret_committed = c.done;
    hf_arena_fini(&c.arena);
    return rc == HF_EGUARD ? hf_fail_plain(err, HF_EBUSY) : rc;
}
