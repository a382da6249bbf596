/* Steps and commits of the open turn, and handing it back. */

#include <stdlib.h>
#include <string.h>

#include <holdfast/turn_json.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/json_get.h"
#include "base/text.h"
#include "core/ledger/step.h"
#include "model/inside.h"

/* ---- records ------------------------------------------------------------------------------ */

/* Records of a step or a commit, encoded, with the chain after them. */
struct packed {
    struct m_node *nodes;
    size_t count;
    int64_t kept; /* those that are not transient */
    size_t bytes;
    uint8_t chain[32];
};

static int pack(struct m_call *call, const struct hf_record *records, size_t count,
                const uint8_t chain[32], struct packed *ret)
{
    *ret = (struct packed){ .count = count };
    memcpy(ret->chain, chain, sizeof(ret->chain));
    ret->nodes = hf_arena_array(&call->disk->arena, count + 1, sizeof(*ret->nodes));
    if (!ret->nodes)
        abort();
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        struct hf_bytes json = { 0 };
        struct m_node *node = &ret->nodes[i];
        const struct hf_message *message = records[i].message;
        rc = hf_record_encode(hf_alloc_system(), &records[i], &json, call->err);
        if (rc)
            break;
        node->transient = records[i].kind == HF_RECORD_MESSAGE && message &&
                          message->origin && message->origin->transient;
        if (!node->transient)
            rc = hf_record_chain(ret->chain, &records[i], ret->chain, call->err);
        ret->kept += !node->transient;
        ret->bytes += json.len;
        memcpy(node->chain, ret->chain, sizeof(node->chain));
        node->json = hf_arena_copy(&call->disk->arena, json.at, json.len);
        hf_bytes_free(&json);
    }
    return rc;
}

static int within(struct m_call *call, size_t bytes, size_t rows)
{
    if (bytes > (size_t)HF_MAX_COMMIT_BYTES)
        return hf_fail(call->err, HF_ETOOBIG, "records",
                       "it has %zu bytes; commit_bytes allows %lld", bytes,
                       (long long)HF_MAX_COMMIT_BYTES);
    if (rows > (size_t)HF_MAX_COMMIT_ROWS)
        return hf_fail(call->err, HF_ETOOBIG, "records",
                       "it has %zu rows; commit_rows allows %lld", rows,
                       (long long)HF_MAX_COMMIT_ROWS);
    return 0;
}

static bool as_given(const struct m_turn *turn, int64_t step, int64_t node_count,
                     const uint8_t *chain)
{
    return turn->step == step && turn->node_count == node_count &&
           memcmp(turn->chain, chain, sizeof(turn->chain)) == 0;
}

/* ---- step ---------------------------------------------------------------------------------- */

static bool same_bytes(struct hf_span a, struct hf_span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static void store_step(struct m_call *call, struct m_turn *turn,
                       const struct hf_session_step *step, const struct packed *packed,
                       int64_t fence)
{
    m_effects_store(call, turn, step, fence);
    for (size_t i = 0; i < step->blob_count; i++)
        m_blob_add(call->disk, step->blobs[i].hash, step->blobs[i].bytes);
    for (size_t i = 0; i < packed->count; i++) {
        struct m_node *node = m_add(turn->stored);
        *node = packed->nodes[i];
        node->turn_id = turn->turn_id;
    }
    turn->step++;
    turn->node_count += packed->kept;
    memcpy(turn->chain, packed->chain, sizeof(turn->chain));
    turn->save = (struct hf_span){
        hf_arena_copy(&call->disk->arena, step->save.at, step->save.len), step->save.len
    };
}

int m_session_step(struct hf_store *store, const struct hf_caller *who,
                   const struct hf_session_step *step,
                   struct hf_session_stepped *ret_stepped, struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    struct packed packed;
    int rc = pack(&call, step->records, step->record_count, step->chain, &packed);
    size_t bytes = packed.bytes;
    for (size_t i = 0; i < step->blob_count; i++)
        bytes += step->blobs[i].bytes.len;
    if (rc == 0)
        rc = within(&call, bytes, step->record_count + step->blob_count);
    struct m_session *s = rc ? NULL : m_session_find(&call, step->session_id, &rc);
    if (rc)
        return rc;
    struct m_turn *turn = m_turn_of(call.disk, step->session_id, step->turn_id);
    int64_t nodes = step->node_count + packed.kept;
    bool repeated = turn && !turn->finished_at &&
                    as_given(turn, step->step + 1, nodes, packed.chain) &&
                    same_bytes(turn->save, step->save);
    if (!(repeated && step->away))
        rc = m_session_held(&call, s, step->token);
    if (rc)
        return rc;
    if (!(repeated && step->away) && (!turn || !m_same(s->s.turn_id, step->turn_id)))
        return hf_fail(err, HF_ESUPERSEDED, "turn_id", "not open");
    if (!repeated && !as_given(turn, step->step, step->node_count, step->chain))
        return hf_fail(err, HF_ESUPERSEDED, "step", "another step");
    if (!repeated) {
        rc = m_effects_check(&call, turn, step);
        if (rc)
            return rc;
        store_step(&call, turn, step, &packed, s->fence);
        m_session_extend(&call, s);
        m_waits_open(&call, turn, step);
    }
    *ret_stepped = (struct hf_session_stepped){ .step = turn->step,
                                                .node_count = nodes,
                                                .repeated = repeated,
                                                .cancel_requested = s->s.cancel_request !=
                                                                    NULL };
    if (!repeated && step->away)
        ret_stepped->ready = m_put_away(&call, s, turn, step);
    memcpy(ret_stepped->chain, turn->chain, sizeof(turn->chain));
    return 0;
}

/* ---- commit --------------------------------------------------------------------------------- */

static void digest_of(const struct m_call *call, const struct hf_session_commit *c,
                      const struct packed *packed, uint8_t out[32])
{
    struct hf_digest digest;
    hf_digest_begin(&digest, "model.commit", 1);
    hf_digest_text(&digest, call->who->tenant);
    hf_digest_i64(&digest, c->head_revision);
    hf_digest_i64(&digest, c->record_count);
    hf_digest_i64(&digest, c->node_count + packed->kept);
    hf_digest_bytes(&digest, packed->chain, sizeof(packed->chain));
    hf_digest_i64(&digest, (int64_t)c->status);
    hf_digest_text(&digest, c->outcome);
    hf_digest_text(&digest, c->config);
    hf_digest_i64(&digest, (int64_t)c->blob_count);
    for (size_t i = 0; i < c->blob_count; i++)
        hf_digest_bytes(&digest, c->blobs[i].hash, sizeof(c->blobs[i].hash));
    hf_digest_i64(&digest, (int64_t)c->spent_count);
    for (size_t i = 0; i < c->spent_count; i++) {
        hf_digest_text(&digest, c->spent[i].source);
        hf_digest_text(&digest, c->spent[i].model);
        hf_digest_bytes(&digest, &c->spent[i].usage, sizeof(c->spent[i].usage));
    }
    hf_digest_i64(&digest, (int64_t)c->unit_count);
    for (size_t i = 0; i < c->unit_count; i++) {
        hf_digest_i64(&digest, (int64_t)c->units[i].source);
        hf_digest_text(&digest, c->units[i].source_id);
        hf_digest_text(&digest, c->units[i].kind);
        hf_digest_text(&digest, c->units[i].payload);
    }
    if (hf_digest_end(&digest, out) != 0)
        abort();
}

/* In the order of the contract: the receipt, the lease, the head, the turn. 1: repeated. */
static int check(struct m_call *call, const struct hf_session_commit *c,
                 const struct m_session *s, const uint8_t asked[32],
                 struct hf_session_committed *ret_committed)
{
    const struct m_turn *turn = m_turn_of(call->disk, c->session_id, c->turn_id);
    if (turn && turn->finished_at) {
        if (!turn->committed || memcmp(turn->asked, asked, 32) != 0)
            return hf_fail(call->err, HF_ECONFLICT, "turn_id", "other content");
        *ret_committed = turn->done;
        ret_committed->repeated = true;
        return 1;
    }
    int rc = m_session_held(call, s, c->token);
    if (rc)
        return rc;
    if (s->s.head_revision != c->head_revision || s->s.record_count != c->record_count)
        return hf_fail(call->err, HF_EHEADMOVED, "head_revision", "moved");
    if (c->status == HF_STATUS_DONE && s->s.cancel_request)
        return hf_fail(call->err, HF_ECANCELASKED, "status", "a cancel was asked for");
    if (!turn || !m_same(s->s.turn_id, c->turn_id))
        return hf_fail(call->err, HF_ESUPERSEDED, "turn_id", "not open");
    if (!as_given(turn, c->step, c->node_count, c->chain))
        return hf_fail(call->err, HF_ESUPERSEDED, "step", "another step");
    return 0;
}

static bool brings_blob(const struct hf_session_commit *c, const uint8_t hash[32])
{
    for (size_t i = 0; i < c->blob_count; i++) {
        if (c->blobs[i].bytes.at && memcmp(c->blobs[i].hash, hash, 32) == 0)
            return true;
    }
    return false;
}

/* Blobs are there, the input runs under this lease. */
static int check_parts(struct m_call *call, const struct hf_session_commit *c,
                       const struct m_session *s)
{
    const struct m_turn *turn = m_turn_open(call->disk, s);
    const struct m_row *row = m_row_by_seq(call->disk, turn->seq);
    for (size_t i = 0; i < c->blob_count; i++) {
        if (!m_blob_there(call->disk, c->blobs[i].hash) &&
            !brings_blob(c, c->blobs[i].hash))
            return hf_fail(call->err, HF_EBLOB, "blobs", "not stored");
    }
    if (row && hf_status_terminal(row->status))
        return row->status == c->status
                   ? 0
                   : hf_fail(call->err, HF_ESUPERSEDED, "turn_id", "it ended otherwise");
    if (!row || row->status != HF_STATUS_RUNNING || !m_same(row->nonce, s->nonce) ||
        row->session_fence != s->fence)
        return hf_fail(call->err, HF_ESUPERSEDED, "turn_id", "not this claim's");
    return 0;
}

/* All of them, or none. */
static int make_units(struct m_call *call, const struct hf_session_commit *c)
{
    struct model_disk *disk = call->disk;
    size_t rows = disk->rows.count, events = disk->events.count;
    struct m_shares shares = m_shares_keep(disk);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < c->unit_count; i++) {
        struct m_row *row = NULL;
        bool created = false;
        rc = m_create_one(call, &c->units[i], &row, &created);
        if (rc || !created)
            rc = hf_fail(call->err, HF_ECONFLICT, "units", "it exists");
    }
    if (rc) {
        disk->rows.count = rows;
        disk->events.count = events;
        m_shares_back(disk, &shares);
        m_lanes(disk);
    } else if (c->unit_count) {
        (void)m_limits(call);
    }
    m_shares_drop(&shares);
    return rc;
}

static void add_node(struct m_session *s, const struct m_node *from, const char *turn_id)
{
    if (from->transient)
        return;
    struct m_node *node = m_add(s->nodes);
    *node = *from;
    node->turn_id = turn_id;
}

/* "KIND: TEXT" of the outcome, at most 1,024 bytes. */
static const char *reason_of(struct m_call *call, const struct hf_session_commit *c)
{
    struct json_t *outcome = NULL;
    struct hf_span json = { c->outcome, strlen(c->outcome) };
    if (c->status == HF_STATUS_DONE)
        return NULL;
    if (hf_json_parse(json, 1 << 20, "outcome", &outcome, NULL))
        abort();
    const char *kind = hf_json_as_text(hf_json_member(outcome, "kind"));
    const char *text = hf_json_as_text(hf_json_member(outcome, "text"));
    const char *whole = m_say(call->disk, "%s%s%s",
                              kind ? kind : hf_status_word(c->status), text ? ": " : "",
                              text ? text : "");
    size_t len = strlen(whole);
    hf_json_free(outcome);
    return hf_arena_copy(&call->disk->arena, whole,
                         len > 1024 ? hf_utf8_cut(whole, 1024) : len);
}

static void end_input(struct m_call *call, const struct hf_session_commit *c,
                      const struct m_turn *turn)
{
    struct m_row *row = m_row_by_seq(call->disk, turn->seq);
    (void)m_waits_end(call, turn->turn_id, "end"); /* how many does not matter */
    if (hf_status_terminal(row->status))
        return; /* it ended while the turn waited */
    m_enter(call, row, c->status, (struct m_say_event){ "close_out", NULL, NULL });
    row->w.status_reason = reason_of(call, c);
    row->settled_token = m_text(call->disk, c->token);
    row->settled_verb = "close_out";
    row->crashes = row->crashed_at = 0;
}

static void keep_side(struct m_call *call, const struct hf_session_commit *c,
                      const struct m_session *s)
{
    struct model_disk *disk = call->disk;
    for (size_t i = 0; i < c->blob_count; i++)
        m_blob_add(disk, c->blobs[i].hash, c->blobs[i].bytes);
    for (size_t i = 0; i < c->spent_count; i++) {
        const struct hf_session_spent *spent = &c->spent[i];
        struct m_spent *kept = m_add(disk->spent);
        *kept = (struct m_spent){ .session_id = s->s.session_id,
                                  .spent = { .source = m_text(disk, spent->source),
                                             .model = m_text(
                                                 disk, spent->model ? spent->model : ""),
                                             .usage = spent->usage } };
    }
}

static void apply(struct m_call *call, const struct hf_session_commit *c,
                  struct m_session *s, const struct packed *packed)
{
    struct m_turn *turn = m_turn_open(call->disk, s);
    end_input(call, c, turn);
    keep_side(call, c, s);
    for (size_t i = 0; i < turn->stored.count; i++)
        add_node(s, &turn->stored.at[i], turn->turn_id);
    for (size_t i = 0; i < packed->count; i++)
        add_node(s, &packed->nodes[i], turn->turn_id);
    s->s.head_revision++;
    s->s.record_count = (int64_t)s->nodes.count;
    memcpy(s->s.chain, packed->chain, sizeof(s->s.chain));
    s->s.turn_id = NULL;
    s->s.cancel_request = NULL;
    if (c->config)
        s->s.config = m_text(call->disk, c->config);
    s->s.updated_at = call->now;
    turn->finished_at = call->now;
    turn->committed = true;
    turn->done = (struct hf_session_committed){ .head_revision = s->s.head_revision,
                                                .record_count = s->s.record_count };
    memcpy(turn->done.chain, s->s.chain, sizeof(turn->done.chain));
    m_session_extend(call, s);
    if (c->release) {
        m_session_free(call, s, 0);
        m_session_ended(call, s, NULL, NULL);
    }
}

static size_t bytes_of(const struct hf_session_commit *c, const struct packed *packed)
{
    size_t bytes = packed->bytes + strlen(c->outcome) +
                   (c->config ? strlen(c->config) : 0);
    for (size_t i = 0; i < c->blob_count; i++)
        bytes += c->blobs[i].bytes.len;
    for (size_t i = 0; i < c->spent_count; i++)
        bytes += strlen(c->spent[i].source) +
                 (c->spent[i].model ? strlen(c->spent[i].model) : 0);
    for (size_t i = 0; i < c->unit_count; i++)
        bytes += hf_work_spec_bytes(&c->units[i]);
    return bytes;
}

int m_session_commit(struct hf_store *store, const struct hf_caller *who,
                     const struct hf_session_commit *commit,
                     struct hf_session_committed *ret_committed, struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    struct packed packed;
    uint8_t asked[32];
    size_t rows = commit->added_count + commit->blob_count + commit->spent_count +
                  commit->unit_count;
    int rc = pack(&call, commit->records, commit->added_count, commit->chain, &packed);
    if (rc == 0)
        rc = within(&call, bytes_of(commit, &packed), rows);
    if (rc == 0 && commit->head_revision == INT64_MAX)
        rc = hf_fail(err, HF_EOVERFLOW, "head_revision", "at its ceiling");
    struct m_session *s = rc ? NULL : m_session_find(&call, commit->session_id, &rc);
    if (rc)
        return rc;
    digest_of(&call, commit, &packed, asked);
    rc = check(&call, commit, s, asked, ret_committed);
    if (rc == 0)
        rc = check_parts(&call, commit, s);
    if (rc == 0)
        rc = make_units(&call, commit);
    if (rc)
        return rc == 1 ? 0 : rc;
    apply(&call, commit, s, &packed);
    struct m_turn *turn = m_turn_of(call.disk, commit->session_id, commit->turn_id);
    memcpy(turn->asked, asked, sizeof(asked));
    *ret_committed = turn->done;
    return 0;
}

/* ---- hand back ------------------------------------------------------------------------------ */

int m_session_hand_back(struct hf_store *store, const struct hf_caller *who,
                        const struct hf_session_back *back, struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    struct m_session *s = m_session_of(call.disk, back->session_id);
    if (m_session_ended_by(s, back->token, "hand_back"))
        return 0;
    int rc = m_session_held(&call, s, back->token);
    if (rc == HF_ESESSIONLOST && !s)
        rc = hf_fail_plain(err, HF_ENOTFOUND);
    if (rc)
        return rc;
    const struct m_turn *turn = m_turn_open(call.disk, s);
    struct m_row *row = turn ? m_row_by_seq(call.disk, turn->seq) : NULL;
    if (row && row->status == HF_STATUS_RUNNING && m_same(row->nonce, s->nonce) &&
        row->session_fence == s->fence) {
        const char *reason = back->reason ? back->reason : "handed_back";
        m_input_back(&call, row, "lane",
                     (struct m_say_event){
                         "transition", back->reason,
                         m_say(call.disk, "\"fence\":%lld", (long long)s->fence) });
        row->w.status_reason = m_text(call.disk, reason);
        row->crashes = row->crashed_at = 0;
    }
    m_session_free(&call, s, back->delay_ms ? m_later(call.now, back->delay_ms) : 0);
    m_session_ended(&call, s, back->token, "hand_back");
    return 0;
}
