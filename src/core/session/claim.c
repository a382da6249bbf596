/* The effect of a claim on a session: the lease by the ledger's rules, then the turn. */
#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/json.h"
#include "core/session/session.h"

/* A claim was lost without a new step since. The input may be what kills its workers. */
static bool poisonous(const struct hf_session_row *row, hf_ms now,
                      struct hf_session_plan *plan)
{
    if (row->step > row->claimed_step)
        return false;
    plan->crashes = row->crashes;
    plan->crashed_at = row->crashed_at;
    if (!plan->crashed_at || now - plan->crashed_at > HF_MAX_POISON_WINDOW_MS) {
        plan->crashed_at = now;
        plan->crashes = 0;
    }
    return ++plan->crashes >= HF_MAX_POISON_CRASHES;
}

static enum hf_session_move move_of(const struct hf_session_row *row, hf_ms now,
                                    struct hf_session_plan *plan)
{
    bool mine = plan->outcome == HF_LEASE_REPEATED || plan->outcome == HF_LEASE_REENTERED;
    if (!row->turn_key)
        return HF_TURN_BEGIN;
    if (row->input_status == HF_STATUS_QUEUED ||
        row->input_status == HF_STATUS_WAITING_USER ||
        row->input_status == HF_STATUS_WAITING_EXTERNAL)
        return HF_TURN_RESUME;
    bool ended = row->input_status == HF_STATUS_CANCELLED ||
                 row->input_status == HF_STATUS_TIMEOUT;
    if (row->input_status != HF_STATUS_RUNNING && !(ended && row->step > 0))
        return HF_TURN_VOID;
    if (plan->outcome == HF_LEASE_REPEATED)
        return HF_TURN_LEAVE;
    if (!mine && row->lease.nonce && poisonous(row, now, plan))
        return ended ? HF_TURN_VOID : HF_TURN_HOLD;
    if (mine) {
        plan->crashes = row->crashes;
        plan->crashed_at = row->crashed_at;
    }
    return ended ? HF_TURN_CLOSE : HF_TURN_TAKE;
}

int hf_session_plan(const struct hf_session_row *row, const struct hf_claimant *who,
                    const struct hf_env *env, bool dead, struct hf_session_plan *ret_plan,
                    struct hf_err *err)
{
    struct hf_session_plan plan = { .crashes = 0 };
    struct hf_err why = { 0 };
    int rc = hf_lease_claim(&row->lease, who, env->lease_now, dead, &plan.lease,
                            &plan.outcome, &why);
    if (rc == HF_EHELD)
        return hf_fail(err, HF_ESESSIONBUSY, "session_id", "session %.60s is %s",
                       row->s.session_id, why.message);
    if (rc)
        return hf_fail(err, rc, why.field, "session %.60s: %s", row->s.session_id,
                       why.message);
    plan.move = move_of(row, env->now, &plan);
    *ret_plan = plan;
    return 0;
}

const char *hf_session_input_note(struct hf_arena *arena, const struct hf_lease *lease,
                                  const char *reason, int64_t crashes)
{
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, arena->alloc, 8192);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    hf_json_opt_i64(&json, "crashes", crashes);
    hf_json_opt_str(&json, "reason", reason);
    hf_json_key(&json, "session_lease");
    hf_json_object(&json);
    hf_json_put_i64(&json, "fence", lease->fence);
    hf_json_opt_str(&json, "incarnation", lease->incarnation);
    hf_json_opt_str(&json, "owner", lease->owner);
    hf_json_end(&json);
    hf_json_end(&json);
    return hf_buf_keep(&text, arena);
}
