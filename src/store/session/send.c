/* Sending a message to a session. One transaction creates a unit, makes it an input of the session,
 * and makes the session ready for a claim. The source key of the caller makes it repeatable. */
#include "base/err.h"
#include "base/ident.h"
#include "base/text.h"
#include "store/session/session.h"

/* One message on its way. */
struct sending {
    struct sql_store *store;
    const struct hf_caller *who;
    const struct hf_session_send *request;
    struct hf_row row;
    uint8_t hash[32];
    char id[HF_UUID_TEXT];
};

static int make_row(struct sending *s, struct hf_arena *arena, struct hf_err *err)
{
    struct hf_env env;
    struct hf_batch moment = { .now = sql_wall(s->store) };
    struct hf_work_spec unit = {
        .size = sizeof unit,
        .source = HF_SOURCE_CONVERSATION,
        .source_id = s->request->session_id,
        .source_run_id = s->request->source_key,
        .kind = "input",
        .queue = HF_SESSION_QUEUE,
        .payload = s->request->message,
        .priority = -1,
    };
    int rc = sql_env(s->store, s->who, &moment, &env, err);
    if (rc == 0)
        rc = hf_work_spec_hash(&unit, s->who, s->hash, err);
    if (rc == 0)
        rc = sql_new_id(s->store, env.now, s->id, err);
    if (rc == 0)
        rc = hf_session_input_row(
            arena,
            &(struct hf_session_input_spec){ &unit, s->request->session_id, s->id },
            s->who, &env, &s->row, err);
    return rc;
}

static size_t add_calls(struct sending *s, struct hf_ops *ops)
{
    hf_rows_insert(ops, &(struct hf_making){ .row = &s->row, .hash = s->hash }, 1);
    session_input_add(ops, s->request->session_id, s->id, HF_INPUT_MESSAGE);
    size_t found = hf_ops_call(ops, HF_SQL_WORK_BY_SOURCE, HF_ANY_COUNT);
    hf_ops_text(ops, s->row.w.tenant);
    hf_ops_text(ops, s->row.w.source_system);
    hf_ops_text(ops, s->row.w.source_id);
    hf_ops_text(ops, s->row.w.source_run_id);
    return found;
}

/* The unit of this key: made now, or before with the same content. */
static int answer_found(struct sending *s, const struct hf_call *found,
                        struct hf_answer *answer, struct hf_err *err)
{
    struct hf_row row;
    if (found->out_count == 0)
        return hf_fail(err, HF_EINTERNAL, "source_key", "the unit was not found again");
    if (!session_bytes_same(hf_out(found, 0, HF_COL_WORK_BY_SOURCE_REQUEST_HASH), s->hash,
                            sizeof s->hash))
        return hf_fail(err, HF_ECONFLICT, "source_key",
                       "the same key was used earlier with other content (unit %s)",
                       hf_row_id(found, 0));
    int rc = hf_row_read(found, 0, &row, err);
    struct hf_item *item = rc == 0 ? hf_answer_add(answer) : NULL;
    if (rc == 0 && (!item || hf_item_show(answer, item, &row, false)))
        rc = hf_fail_plain(err, HF_ENOMEM);
    if (rc == 0) {
        item->created = hf_same(row.w.work_id, s->id);
        item->repeated = !item->created;
    }
    return rc;
}

int sql_session_send(struct hf_store *handle, const struct hf_caller *who,
                     const struct hf_session_send *request, struct hf_answer *answer,
                     struct hf_err *err)
{
    struct sending s = { .store = sql_store_of(handle), .who = who, .request = request };
    struct session_facts facts;
    struct hf_ops ops;
    hf_ops_init(&ops, s.store->sql, handle->alloc);
    int rc = make_row(&s, &ops.arena, err);
    size_t found = rc == 0 ? add_calls(&s, &ops) : 0;
    if (rc == 0)
        rc = hf_ops_write(&ops, err);
    if (rc == 0)
        rc = answer_found(&s, hf_ops_result(&ops, found), answer, err);
    else if (rc == HF_EGUARD) { /* the session is not there, or deleted */
        rc = session_facts_read(&ops, request->session_id, NULL, &facts, err);
        rc = rc ? rc : hf_fail_plain(err, HF_EBUSY);
    }
    hf_ops_fini(&ops);
    return rc;
}
