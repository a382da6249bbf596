/* Rows of sessions, turns and inputs, read and shown; what a refused call finds out; and the pieces
 * of batches that several verbs append. Verbs write without reading first. Only where a guard has
 * refused are the facts read (session_facts_read), to say what the caller does not have: the
 * session, the lease, the open turn. */
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "store/session/session.h"

/* ---- reading ----------------------------------------------------------------------- */

/* Every statement that returns sessions has the columns of the fragment `session`, and its own
 * behind them. */
#define COL(name) HF_COL_SESSION_GET_##name
#define SEEN(name) HF_COL_SESSION_LOOK_##name
#define INPUT(name) HF_COL_SESSION_INPUTS_##name
#define TURN(name) HF_COL_TURN_OPEN_##name

struct column {
    size_t offset; /* in struct hf_session */
    size_t column;
};

static const struct column numbers[] = {
    { offsetof(struct hf_session, head_revision), COL(HEAD_REVISION) },
    { offsetof(struct hf_session, record_count), COL(RECORD_COUNT) },
    { offsetof(struct hf_session, ready_at), COL(READY_AT) },
    { offsetof(struct hf_session, waiting_until), COL(WAITING_UNTIL) },
    { offsetof(struct hf_session, lease_fence), COL(LEASE_FENCE) },
    { offsetof(struct hf_session, lease_ttl_ms), COL(LEASE_TTL_MS) },
    { offsetof(struct hf_session, lease_expires_at), COL(LEASE_EXPIRES_AT) },
    { offsetof(struct hf_session, lease_remaining_ms), COL(LEASE_REMAINING_MS) },
    { offsetof(struct hf_session, deleted_at), COL(DELETED_AT) },
    { offsetof(struct hf_session, created_at), COL(CREATED_AT) },
    { offsetof(struct hf_session, updated_at), COL(UPDATED_AT) },
};
#define NUMBERS (sizeof numbers / sizeof numbers[0])

static const struct column texts[] = {
    { offsetof(struct hf_session, session_id), COL(SESSION_ID) },
    { offsetof(struct hf_session, tenant), COL(TENANT) },
    { offsetof(struct hf_session, agent), COL(AGENT) },
    { offsetof(struct hf_session, config), COL(CONFIG) },
    { offsetof(struct hf_session, turn_id), COL(TURN_ID) },
    { offsetof(struct hf_session, owner), COL(OWNER) },
    { offsetof(struct hf_session, owner_incarnation), COL(OWNER_INCARNATION) },
    { offsetof(struct hf_session, holder), COL(HOLDER) },
    { offsetof(struct hf_session, cancel_request), COL(CANCEL_REQUEST) },
    { offsetof(struct hf_session, relation), COL(RELATION) },
    { offsetof(struct hf_session, parent_id), COL(PARENT_ID) },
    { offsetof(struct hf_session, cause), COL(CAUSE) },
    { offsetof(struct hf_session, labels), COL(LABELS) },
};
#define TEXTS (sizeof texts / sizeof texts[0])

static int64_t *number_at(struct hf_session *s, size_t i)
{
    return (int64_t *)(void *)((char *)s + numbers[i].offset);
}

static const char **text_at(struct hf_session *s, size_t i)
{
    return (const char **)(void *)((char *)s + texts[i].offset);
}

bool session_bytes_same(const struct hf_val *cell, const void *bytes, size_t len)
{
    return cell->type == HF_VAL_BYTES && cell->len == len &&
           memcmp(cell->at, bytes, len) == 0;
}

int session_chain_read(const struct hf_val *cell, uint8_t ret_chain[32],
                       struct hf_err *err)
{
    if (cell->type != HF_VAL_BYTES || cell->len != 32)
        return hf_fail(err, HF_ECORRUPT, "chain", "a digest must have 32 bytes");
    memcpy(ret_chain, cell->at, 32);
    return 0;
}

int session_read(const struct hf_call *call, size_t i, struct hf_session_row *ret_row,
                 struct hf_err *err)
{
    struct hf_session_row row = { .step = 0 };
    for (size_t f = 0; f < NUMBERS; f++)
        *number_at(&row.s, f) = hf_out_i64(call, i, numbers[f].column);
    for (size_t f = 0; f < TEXTS; f++)
        *text_at(&row.s, f) = hf_out_text(call, i, texts[f].column);
    row.turn_key = hf_out_i64(call, i, COL(TURN_KEY));
    row.check_at = hf_out_i64(call, i, COL(LEASE_CHECK_AT));
    row.lease = (struct hf_lease){
        .owner = row.s.owner,
        .incarnation = row.s.owner_incarnation,
        .nonce = hf_out_text(call, i, COL(CLAIM_GROUP)),
        .holder = row.s.holder,
        .fence = row.s.lease_fence,
        .store = hf_out_i64(call, i, COL(LEASE_INCARNATION)),
        .ttl_ms = row.s.lease_ttl_ms,
        .claimed_at = hf_out_i64(call, i, COL(LEASE_CLAIMED_AT)),
        .expires_at = row.s.lease_expires_at,
    };
    int rc = session_chain_read(hf_out(call, i, COL(CHAIN)), row.s.chain, err);
    if (rc == 0 &&
        (row.s.head_revision < 0 || row.s.record_count < 0 || row.s.lease_fence < 0))
        rc = hf_fail(err, HF_ECORRUPT, "head_revision",
                     "session %.100s has a negative counter", row.s.session_id);
    if (rc == 0 && !row.s.relation)
        rc = hf_fail(err, HF_ECORRUPT, "relation",
                     "session %.100s has lost its row in session_meta", row.s.session_id);
    if (rc == 0)
        *ret_row = row;
    return rc;
}

int session_read_seen(const struct hf_call *call, size_t i,
                      struct hf_session_row *ret_row, struct hf_err *err)
{
    int rc = session_read(call, i, ret_row, err);
    if (rc)
        return rc;
    ret_row->step = hf_out_i64(call, i, SEEN(STEP));
    ret_row->claimed_step = hf_out_i64(call, i, SEEN(CLAIMED_STEP));
    ret_row->input_status = hf_status_of(hf_out_text(call, i, SEEN(STATUS)));
    ret_row->crashes = hf_out_i64(call, i, SEEN(CRASHES));
    ret_row->crashed_at = hf_out_i64(call, i, SEEN(CRASHED_AT));
    return 0;
}

/* ---- showing ----------------------------------------------------------------------- */

/* A copy of a text or of bytes; NULL for null, or if there is no memory. */
const char *session_copied(struct hf_session_answer *answer, const struct hf_val *cell,
                           bool *failed)
{
    if (cell->type != HF_VAL_TEXT && cell->type != HF_VAL_BYTES)
        return NULL;
    const char *copy = hf_session_answer_copy(answer,
                                              (struct hf_span){ cell->at, cell->len });
    *failed |= !copy;
    return copy;
}

int session_show(struct hf_session_answer *answer, const struct hf_call *call,
                 size_t count, struct hf_err *err)
{
    struct hf_session *all = hf_session_answer_memory(answer, count * sizeof *all);
    bool failed = !all;
    int rc = 0;
    for (size_t i = 0; rc == 0 && !failed && i < count; i++) {
        struct hf_session_row row;
        rc = session_read(call, i, &row, err);
        if (rc)
            break;
        all[i] = row.s;
        for (size_t f = 0; f < TEXTS; f++)
            *text_at(&all[i], f) = session_copied(
                answer, hf_out(call, i, texts[f].column), &failed);
    }
    if (rc == 0 && failed)
        rc = hf_fail_plain(err, HF_ENOMEM);
    if (rc == 0) {
        answer->sessions = all;
        answer->session_count = count;
    }
    return rc;
}

int session_inputs_show(struct hf_session_answer *answer, const struct hf_call *call,
                        const struct hf_session_input **ret_inputs, size_t *ret_count,
                        struct hf_err *err)
{
    size_t count = call->out_count;
    struct hf_session_input *all = hf_session_answer_memory(answer, count * sizeof *all);
    bool failed = !all;
    for (size_t i = 0; !failed && i < count; i++) {
        struct hf_session_input *input = &all[i];
        input->attempt_count = hf_out_i64(call, i, INPUT(ATTEMPT_COUNT));
        input->crashes = hf_out_i64(call, i, INPUT(CRASHES));
        input->created_at = hf_out_i64(call, i, INPUT(CREATED_AT));
        if (!hf_session_input_kind_of(hf_out_text(call, i, INPUT(KIND)), &input->kind))
            return hf_fail(err, HF_ECORRUPT, "kind", "an input has an unknown kind");
        input->work_id = session_copied(answer, hf_out(call, i, INPUT(WORK_ID)), &failed);
        input->status = session_copied(answer, hf_out(call, i, INPUT(STATUS)), &failed);
        input->gate = session_copied(answer, hf_out(call, i, INPUT(GATE)), &failed);
        input->payload = session_copied(answer, hf_out(call, i, INPUT(PAYLOAD)), &failed);
        input->turn_id = session_copied(answer, hf_out(call, i, INPUT(TURN_ID)), &failed);
    }
    if (failed)
        return hf_fail_plain(err, HF_ENOMEM);
    *ret_inputs = all;
    *ret_count = count;
    return 0;
}

struct session_turn_reads session_turn_add(struct hf_ops *ops, const char *session_id,
                                           bool waits)
{
    struct session_turn_reads reads = { .waits = 0 };
    reads.turn = hf_ops_call(ops, HF_SQL_TURN_OPEN, HF_ANY_COUNT);
    hf_ops_text(ops, session_id);
    reads.inputs = hf_ops_call(ops, HF_SQL_TURN_OPEN_INPUTS, HF_ANY_COUNT);
    hf_ops_text(ops, session_id);
    if (waits) {
        reads.waits = hf_ops_call(ops, HF_SQL_WAITS_OF_TURN, HF_ANY_COUNT);
        hf_ops_text(ops, session_id);
    }
    return reads;
}

static void *keep_memory(void *answer, size_t bytes)
{
    return hf_session_answer_memory(answer, bytes);
}

static const char *keep_copy(void *answer, struct hf_span bytes)
{
    return hf_session_answer_copy(answer, bytes);
}

static int show_waits(struct hf_session_answer *answer, const struct hf_call *found,
                      struct hf_session_turn *turn, struct hf_err *err)
{
    const struct session_wait_keeper keeper = { answer, keep_memory, keep_copy };
    turn->wait_count = found->out_count;
    return session_waits_show(&keeper, found, &turn->waits, err);
}

int session_turn_show(struct hf_session_answer *answer, const struct hf_ops *ops,
                      struct session_turn_reads reads, struct hf_session_turn **ret_turn,
                      struct hf_err *err)
{
    const struct hf_call *call = hf_ops_result(ops, reads.turn);
    *ret_turn = NULL;
    if (call->out_count == 0)
        return 0;
    struct hf_session_turn *turn = hf_session_answer_memory(answer, sizeof *turn);
    bool failed = !turn;
    if (failed)
        return hf_fail_plain(err, HF_ENOMEM);
    const struct hf_val *save = hf_out(call, 0, TURN(SAVE));
    turn->base_revision = hf_out_i64(call, 0, TURN(BASE_REVISION));
    turn->step = hf_out_i64(call, 0, TURN(STEP));
    turn->node_count = hf_out_i64(call, 0, TURN(NODE_COUNT));
    turn->effects_past = hf_out_i64(call, 0, TURN(EFFECTS_PAST));
    turn->started_at = hf_out_i64(call, 0, TURN(STARTED_AT));
    turn->turn_id = session_copied(answer, hf_out(call, 0, TURN(TURN_ID)), &failed);
    turn->save.at = session_copied(answer, save, &failed);
    turn->save.len = turn->save.at ? save->len : 0;
    int rc = failed ? hf_fail_plain(err, HF_ENOMEM)
                    : session_chain_read(hf_out(call, 0, TURN(CHAIN)), turn->chain, err);
    if (rc == 0)
        rc = session_inputs_show(answer, hf_ops_result(ops, reads.inputs), &turn->inputs,
                                 &turn->input_count, err);
    if (rc == 0 && reads.waits)
        rc = show_waits(answer, hf_ops_result(ops, reads.waits), turn, err);
    if (rc == 0) {
        answer->turn = turn;
        *ret_turn = turn;
    }
    return rc;
}

/* ---- what a refused call finds out -------------------------------------------------- */

int session_facts_read(struct hf_ops *ops, const char *session_id, const char *turn_id,
                       struct session_facts *ret_facts, struct hf_err *err)
{
    hf_ops_reset(ops);
    size_t session = hf_ops_call(ops, HF_SQL_SESSION_GET, HF_ANY_COUNT);
    hf_ops_text(ops, session_id);
    size_t turn = hf_ops_call(ops, HF_SQL_TURN_GET, HF_ANY_COUNT);
    hf_ops_text(ops, session_id);
    hf_ops_text(ops, turn_id);
    int rc = hf_ops_read(ops, err);
    if (rc == 0 && hf_ops_result(ops, session)->out_count == 0)
        rc = hf_fail(err, HF_ENOTFOUND, "session_id", "there is no session %.100s",
                     session_id);
    struct session_facts facts = { .turn_found = false };
    if (rc == 0)
        rc = session_read(hf_ops_result(ops, session), 0, &facts.row, err);
    if (rc == 0) {
        facts.ended_token = hf_out_text(hf_ops_result(ops, session), 0, COL(ENDED_TOKEN));
        facts.ended_verb = hf_out_text(hf_ops_result(ops, session), 0, COL(ENDED_VERB));
    }
    if (rc == 0 && facts.row.s.deleted_at)
        rc = hf_fail(err, HF_ESESSIONDELETED, "session_id", "session %.100s was deleted",
                     session_id);
    if (rc)
        return rc;
    const struct hf_call *found = hf_ops_result(ops, turn);
    facts.turn_found = found->out_count > 0;
    if (facts.turn_found) {
        facts.step = hf_out_i64(found, 0, HF_COL_TURN_GET_STEP);
        facts.node_count = hf_out_i64(found, 0, HF_COL_TURN_GET_NODE_COUNT);
        facts.finished_at = hf_out_i64(found, 0, HF_COL_TURN_GET_FINISHED_AT);
        facts.save_bytes = (size_t)hf_out_i64(found, 0, HF_COL_TURN_GET_SAVE_BYTES);
        facts.chain = hf_out(found, 0, HF_COL_TURN_GET_CHAIN);
        facts.commit_hash = hf_out(found, 0, HF_COL_TURN_GET_COMMIT_HASH);
        facts.result = hf_out_text(found, 0, HF_COL_TURN_GET_RESULT);
        facts.save_end = hf_out(found, 0, HF_COL_TURN_GET_SAVE_END);
        facts.open_waits = hf_out_i64(found, 0, HF_COL_TURN_GET_OPEN_WAITS);
        facts.input_status = hf_status_of(
            hf_out_text(found, 0, HF_COL_TURN_GET_INPUT_STATUS));
    }
    *ret_facts = facts;
    return 0;
}

int session_lease_check(const struct hf_ops *ops, const struct session_facts *facts,
                        const struct hf_token *token, struct hf_err *err)
{
    struct hf_err why = { 0 };
    int rc = hf_lease_check(&facts->row.lease, token, ops->batch.lease_now,
                            ops->batch.incarnation, true, &why);
    if (rc == HF_ELEASELOST)
        rc = HF_ESESSIONLOST;
    return rc ? hf_fail(err, rc, "token", "%s", why.message) : 0;
}

/* ---- appending ---------------------------------------------------------------------- */

int session_token(const char *text, struct hf_token *ret_token, struct hf_err *err)
{
    return hf_token_read(text, ret_token, err);
}

void session_put_token(struct hf_ops *ops, const char *session_id,
                       const struct hf_token *token)
{
    hf_ops_text(ops, session_id);
    hf_ops_i64(ops, token->store);
    hf_ops_i64(ops, token->fence);
    hf_ops_text(ops, token->nonce);
}

/* All sessions have one topic, and a waiter may be for other agents: this many are woken. */
#define WAITERS 64

void session_ring(struct hf_ops *ops)
{
    hf_ops_ring_queue(ops, HF_SESSION_QUEUE, WAITERS);
}

/* On PostgreSQL the statement locks the session until the commit: a release at the same time comes
 * before it, or sees the input. */
void session_input_add(struct hf_ops *ops, const char *session_id, const char *work_id,
                       enum hf_session_input_kind kind)
{
    hf_ops_call(ops, HF_SQL_SESSION_MAKE_READY, 1);
    hf_ops_text(ops, session_id);
    hf_ops_null(ops);
    hf_ops_text(ops, work_id);
    hf_ops_call(ops, HF_SQL_SESSION_ADD_INPUT, HF_ANY_COUNT);
    hf_ops_text(ops, session_id);
    hf_ops_text(ops, work_id);
    hf_ops_text(ops, hf_session_input_kind_word(kind));
    session_ring(ops);
}

void session_free_add(struct hf_ops *ops, const char *session_id,
                      const struct hf_token *token, const struct session_end *end)
{
    hf_ops_call(ops, HF_SQL_SESSION_FREE, 1);
    hf_ops_text(ops, session_id);
    hf_ops_text(ops, token->nonce);
    hf_ops_i64_opt(ops, end->delay_ms);
    hf_ops_text(ops, end->token);
    hf_ops_text(ops, end->verb);
    session_ring(ops);
}

void session_nodes_add(struct hf_ops *ops, const char *session_id, const char *turn_id,
                       int64_t node_count, const struct hf_packed *packed)
{
    if (packed->count == 0)
        return;
    hf_ops_call(ops, HF_SQL_NODES_ADD, (int64_t)packed->count);
    for (size_t i = 0; i < packed->count; i++) {
        if (i > 0)
            hf_ops_again(ops);
        hf_ops_text(ops, session_id);
        hf_ops_text(ops, turn_id);
        hf_ops_i64(ops, node_count + (int64_t)i);
        hf_ops_bytes(ops, packed->nodes[i].chain, 32);
        hf_ops_text(ops, packed->nodes[i].json);
    }
}
