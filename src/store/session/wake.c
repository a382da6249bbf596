/* Waking a session: the row of the unit that does it. A wake of a session that exists is one of its
 * inputs, which begins a turn. Of any other name it is a plain unit in the queue session:ID. */
#include "base/err.h"
#include "base/ident.h"
#include "store/session/session.h"

static int is_known(struct sql_store *store, const char *session_id, bool *ret_known,
                    struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, store->sql, store->handle.alloc);
    hf_ops_call(&ops, HF_SQL_SESSION_KNOWN, HF_ANY_COUNT);
    hf_ops_text(&ops, session_id);
    int rc = hf_ops_read(&ops, err);
    if (rc == 0)
        *ret_known = hf_ops_result(&ops, 0)->out_count > 0;
    hf_ops_fini(&ops);
    return rc;
}

int sql_wake_row(struct sql_store *store, struct hf_arena *arena,
                 const struct hf_caller *who, struct hf_env *env,
                 const struct sql_waking *waking, struct hf_making *ret_making,
                 struct hf_err *err)
{
    bool known = false;
    struct hf_row *row = hf_arena_new(arena, struct hf_row);
    uint8_t *hash = hf_arena_take(arena, HF_DIGEST_BYTES);
    char *id = hf_arena_take(arena, HF_UUID_TEXT);
    if (!row || !hash || !id)
        return hf_fail_plain(err, HF_ENOMEM);
    int rc = is_known(store, waking->session_id, &known, err);
    if (rc == 0 && !known)
        rc = sql_make_row(store, arena, who, env, waking->unit, row, hash, err);
    if (rc == 0 && known)
        rc = hf_work_spec_hash(waking->unit, who, hash, err);
    if (rc == 0 && known)
        rc = sql_new_id(store, env->now, id, err);
    if (rc == 0 && known)
        rc = hf_session_input_row(
            arena,
            &(struct hf_session_input_spec){ waking->unit, waking->session_id, id }, who,
            env, row, err);
    if (rc == 0)
        *ret_making = (struct hf_making){ .row = row, .hash = hash };
    return rc;
}

void sql_wake_input(struct hf_ops *ops, const struct hf_making *wake)
{
    const struct hf_work *w = &wake->row->w;
    if (!w->session_id) {
        hf_ops_ring_queue(ops, w->queue, 1);
        return;
    }
    session_input_add(ops, w->session_id, w->work_id, HF_INPUT_WAKE);
}
