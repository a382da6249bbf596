/* Creating sessions, and the table of methods of the SQL store. The same request with the same id
 * is the same session: the row keeps a hash of the request, and another request is a conflict. */
#include "base/err.h"
#include "base/ident.h"
#include "store/session/session.h"

const struct hf_session_methods sql_session_methods = {
    .create = sql_session_create,
    .send = sql_session_send,
    .claim = sql_session_claim,
    .head = sql_session_head,
    .load = sql_session_load,
    .node = sql_session_node,
    .blob = sql_session_blob,
    .blob_put = sql_session_blob_put,
    .unknown = sql_session_unknown,
    .turn = sql_session_turn,
    .list = sql_session_list,
    .inputs = sql_session_inputs,
    .step = sql_session_step,
    .commit = sql_session_commit,
    .renew_all = sql_session_renew_all,
    .release = sql_session_release,
    .hand_back = sql_session_hand_back,
    .next = sql_session_next,
    .cancel_turn = sql_session_cancel_turn,
};

static int request_hash(const struct hf_caller *who,
                        const struct hf_session_spec *request,
                        uint8_t ret_hash[HF_DIGEST_BYTES])
{
    struct hf_digest digest;
    hf_digest_begin(&digest, "session.create", 1);
    hf_digest_text(&digest, who->tenant);
    hf_digest_text(&digest, request->session_id);
    hf_digest_text(&digest, request->agent);
    hf_digest_text(&digest, request->config);
    hf_digest_text(&digest, hf_relation_word(request->relation));
    hf_digest_text(&digest, request->parent_id);
    hf_digest_text(&digest, request->cause);
    hf_digest_text(&digest, request->labels);
    return hf_digest_end(&digest, ret_hash);
}

static void add_calls(struct hf_ops *ops, const struct hf_caller *who,
                      const struct hf_session_spec *request, const uint8_t *hash)
{
    static const uint8_t no_records[32];
    hf_ops_call(ops, HF_SQL_SESSION_INSERT, HF_ANY_COUNT);
    hf_ops_text(ops, request->session_id);
    hf_ops_text(ops, who->tenant);
    hf_ops_text(ops, request->agent);
    hf_ops_text(ops, request->config);
    hf_ops_bytes(ops, no_records, sizeof no_records);
    hf_ops_call(ops, HF_SQL_SESSION_INSERT_META, HF_ANY_COUNT);
    hf_ops_text(ops, request->session_id);
    hf_ops_text(ops, hf_relation_word(request->relation));
    hf_ops_text(ops, request->parent_id);
    hf_ops_text(ops, request->cause);
    hf_ops_text(ops, request->labels);
    hf_ops_bytes(ops, hash, HF_DIGEST_BYTES);
    hf_ops_call(ops, HF_SQL_SESSION_GET, HF_ANY_COUNT);
    hf_ops_text(ops, request->session_id);
}

static int answer_found(const struct hf_ops *ops, const struct hf_session_spec *request,
                        const uint8_t *hash, struct hf_session_answer *answer,
                        struct hf_err *err)
{
    const struct hf_call *found = hf_ops_result(ops, 2);
    if (found->out_count == 0)
        return hf_fail(err, HF_EINTERNAL, "session_id",
                       "the session was not found again");
    int rc = session_show(answer, found, 1, err);
    if (rc)
        return rc;
    if (answer->sessions->deleted_at)
        return hf_fail(err, HF_ESESSIONDELETED, "session_id",
                       "session %.100s was deleted", request->session_id);
    if (!session_bytes_same(hf_out(found, 0, HF_COL_SESSION_GET_REQUEST_HASH), hash,
                            HF_DIGEST_BYTES))
        return hf_fail(err, HF_ECONFLICT, "session_id",
                       "session %.100s exists with other content", request->session_id);
    answer->created = hf_ops_result(ops, 0)->changed > 0;
    return 0;
}

int sql_session_create(struct hf_store *handle, const struct hf_caller *who,
                       const struct hf_session_spec *request,
                       struct hf_session_answer *answer, struct hf_err *err)
{
    uint8_t hash[HF_DIGEST_BYTES];
    struct hf_ops ops;
    if (request_hash(who, request, hash))
        return hf_fail_plain(err, HF_ENOMEM);
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    add_calls(&ops, who, request, hash);
    int rc = hf_ops_write(&ops, err);
    if (rc == 0)
        rc = answer_found(&ops, request, hash, answer, err);
    hf_ops_fini(&ops);
    return rc;
}
