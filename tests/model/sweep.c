/* What time does to rows that no caller acts on. The model knows no processes, so no
 * holder is ever proven dead here. */

#include <string.h>

#include "base/json.h"
#include "model/inside.h"

static bool passed(hf_ms at, hf_ms now)
{
    return at != 0 && now >= at;
}

/* A lost execution of a rerunnable row. */
static enum m_swept rerun(struct m_call *call, struct m_row *row)
{
    row->w.failures++;
    bool left = row->w.failures < row->w.max_attempts;
    if (row->crashed_at == 0 || call->now - row->crashed_at > 3600000) {
        row->crashed_at = call->now;
        row->crashes = 0;
    }
    bool held = ++row->crashes >= 5 && left;
    m_enter(call, row, left ? HF_STATUS_QUEUED : HF_STATUS_FAILED,
            (struct m_say_event){
                "transition", NULL,
                m_say(call->disk, "\"failures\":%lld", (long long)row->w.failures) });
    row->w.error_class = "heartbeat_timeout";
    row->w.status_reason = left ? "heartbeat_timeout" : "attempts_exhausted";
    if (!held)
        return left ? M_REQUEUED : M_FAILED;
    row->w.gate = "held";
    row->w.status_reason = "poison";
    row->w.deadline_at = 0;
    row->entered = false;
    return M_HELD;
}

static enum m_swept time_out_running(struct m_call *call, struct m_row *row,
                                     const char *reason)
{
    row->w.failures++;
    bool retries = row->w.failures < row->w.max_attempts &&
                   m_retry_allows(row->w.retry_policy, reason, true);
    m_enter(call, row, retries ? HF_STATUS_RETRY_SCHEDULED : HF_STATUS_TIMEOUT,
            (struct m_say_event){ retries ? "retry_scheduled" : "timeout_marked", NULL,
                                  m_say(call->disk, "\"reason\":\"%s\"", reason) });
    if (retries)
        row->w.next_retry_at = m_later(
            call->now, m_retry_delay(call, row->w.retry_policy, row->w.failures));
    row->w.error_class = reason;
    row->w.status_reason = reason;
    return M_TIMED_OUT;
}

static enum m_swept time_out_idle(struct m_call *call, struct m_row *row,
                                  const char *reason)
{
    m_enter(call, row, HF_STATUS_TIMEOUT,
            (struct m_say_event){ "timeout_marked", NULL,
                                  m_say(call->disk, "\"reason\":\"%s\"", reason) });
    row->w.status_reason = reason;
    return M_TIMED_OUT;
}

static enum m_swept abandon(struct m_call *call, struct m_row *row)
{
    m_enter(
        call, row, HF_STATUS_ABANDONED,
        (struct m_say_event){ "transition", NULL, "\"writer\":\"reconciled_request\"" });
    row->w.status_reason = "reconciled_request";
    return M_ABANDONED;
}

static enum m_swept sweep_running(struct m_call *call, struct m_row *row)
{
    bool lapsed = call->lease_now >= m_act_at(row);
    bool looked = call->lease_now >= row->check_at;
    if (row->disposition == HF_DISPOSITION_OWNER_BOUND) {
        if (!looked)
            return M_NOTHING;
        if (!lapsed) {
            row->check_at = m_act_at(row);
            return M_PUSHED;
        }
        if (row->w.abandon_request)
            return abandon(call, row);
        row->check_at = m_later(call->lease_now, row->w.lease_ttl_ms);
        return M_SILENT;
    }
    if (passed(row->w.deadline_at, call->now))
        return time_out_running(call, row, "exec_timeout");
    if (lapsed && row->disposition == HF_DISPOSITION_RERUNNABLE)
        return rerun(call, row);
    if (lapsed)
        return time_out_running(call, row, "heartbeat_timeout");
    if (!looked)
        return M_NOTHING;
    row->check_at = m_act_at(row);
    return M_PUSHED;
}

static enum m_swept sweep_queued(struct m_call *call, struct m_row *row)
{
    if (passed(row->w.deadline_at, call->now))
        return time_out_idle(call, row, "start_timeout");
    if (!m_same(row->w.gate, "due") || call->now < row->w.due_at)
        return M_NOTHING;
    m_fair_come(call, row);
    row->w.gate = m_first_gate(row);
    row->entered = row->w.limit_name != NULL;
    return M_PROMOTED;
}

/* The extra unit, in the queue and tenant of the one that waits. */
static void make_beside(struct m_call *call, const struct m_row *row, const char *kind)
{
    struct hf_caller who = *call->who;
    struct m_call as = *call;
    struct hf_buf buf;
    struct hf_json json;
    hf_buf_init(&buf, hf_alloc_system(), 1 << 16);
    hf_json_begin(&json, &buf);
    hf_json_object(&json);
    hf_json_opt_str(&json, "waiting_kind", row->w.waiting_kind);
    hf_json_opt_str(&json, "waiting_ref", row->w.waiting_ref);
    hf_json_put_str(&json, "work_id", row->w.work_id);
    hf_json_end(&json);
    struct hf_work_spec request = {
        .size = sizeof(request),
        .source = HF_SOURCE_CONTROL,
        .source_id = row->w.work_id,
        .source_run_id = m_say(call->disk, "escalation:%lld",
                               (long long)row->w.attempt_count),
        .kind = kind,
        .queue = row->w.queue,
        .parent_work_id = row->w.work_id,
        .payload = m_text(call->disk, hf_buf_str(&buf)),
        .priority = -1,
    };
    hf_buf_fini(&buf);
    struct m_row *made = NULL;
    bool created = false;
    who.tenant = row->w.tenant;
    as.who = &who;
    (void)m_create_one(&as, &request, &made, &created); /* one per wait, in any sweep */
}

static enum m_swept escalate(struct m_call *call, struct m_row *row)
{
    const char *how = row->w.escalate;
    row->w.escalate_at = 0;
    row->w.updated_at = call->now;
    m_note(call, row, (struct m_say_event){ .type = "escalated" });
    if (strncmp(how, "work:", 5) == 0)
        make_beside(call, row, how + 5); /* may move the rows: last */
    return M_ESCALATED;
}

static enum m_swept sweep_waiting(struct m_call *call, struct m_row *row)
{
    bool external = row->disposition == HF_DISPOSITION_EXTERNALLY_OWNED;
    if ((external || m_bound(row)) && row->w.abandon_request)
        return abandon(call, row);
    if (passed(row->w.escalate_at, call->now))
        return escalate(call, row);
    if (external || !passed(row->w.deadline_at, call->now))
        return M_NOTHING;
    if (!m_bound(row))
        return time_out_idle(call, row, "wait_timeout");
    /* Reported once; time alone never ends it. */
    row->w.deadline_at = 0;
    row->w.status_reason = "wait_overdue";
    row->w.updated_at = call->now;
    m_note(call, row, (struct m_say_event){ .type = "wait_overdue" });
    return M_SILENT;
}

enum m_swept m_sweep_row(struct m_call *call, struct m_row *row)
{
    if (row->w.session_id)
        return M_NOTHING; /* the next lease of its session takes it up */
    if (row->status == HF_STATUS_RUNNING)
        return sweep_running(call, row);
    if (row->status == HF_STATUS_QUEUED)
        return sweep_queued(call, row);
    if (m_waits(row))
        return sweep_waiting(call, row);
    if (row->status == HF_STATUS_RETRY_SCHEDULED && call->now >= row->w.next_retry_at) {
        m_enter(call, row, HF_STATUS_QUEUED,
                (struct m_say_event){ .type = "retry_promoted" });
        row->w.status_reason = "retry_due";
        return M_PROMOTED;
    }
    return M_NOTHING;
}

/* The next moment on the wall clock at which time may do something to the row. */
static hf_ms wake_at(const struct m_row *row)
{
    hf_ms at = 0;
    const hf_ms times[] = {
        row->w.deadline_at,
        row->w.escalate_at,
        row->w.next_retry_at,
        m_same(row->w.gate, "due") ? row->w.due_at : 0,
        row->w.abandon_request && m_waits(row) ? row->w.updated_at : 0,
    };
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        if (times[i] && (!at || times[i] < at))
            at = times[i];
    }
    /* Of a session's unit the waits of its turn are due. */
    return hf_status_terminal(row->status) || row->w.session_id ? 0 : at;
}

bool m_due(const struct m_call *call, const struct m_row *row)
{
    return passed(wake_at(row), call->now) || passed(row->check_at, call->lease_now);
}

bool m_attention(struct m_call *call)
{
    for (size_t i = 0; i < call->disk->rows.count; i++) {
        if (m_due(call, &call->disk->rows.at[i]))
            return true;
    }
    return m_limits_due(call);
}

static void count(struct hf_sweep_report *report, enum m_swept swept)
{
    switch (swept) {
    case M_NOTHING: break;
    case M_REQUEUED: report->requeued++; break;
    case M_TIMED_OUT: report->timed_out++; break;
    case M_FAILED: report->failed++; break;
    case M_ABANDONED: report->abandoned++; break;
    case M_PROMOTED: report->promoted++; break;
    case M_ESCALATED: report->escalated++; break;
    case M_PUSHED: report->pushed++; break;
    case M_SILENT: report->silent++; break;
    case M_HELD: report->held++; break;
    }
}

static void sweep_some(struct m_call *call, size_t limit,
                       struct hf_sweep_report *ret_report)
{
    size_t rows = call->disk->rows.count; /* not those that an escalation makes */
    *ret_report = (struct hf_sweep_report){ 0 };
    for (size_t i = 0; i < rows && (size_t)ret_report->looked_at < limit; i++) {
        if (!m_due(call, &call->disk->rows.at[i]))
            continue;
        ret_report->looked_at++;
        count(ret_report, m_sweep_row(call, &call->disk->rows.at[i]));
        m_lanes(call->disk);
    }
    ret_report->more = (size_t)ret_report->looked_at >= limit;
    ret_report->promoted += m_limits(call);
    ret_report->promoted += m_limits_sweep(call);
    m_waits_sweep(call, limit, ret_report);
}

void m_sweep_all(struct m_call *call, struct hf_sweep_report *ret_report)
{
    sweep_some(call, 64, ret_report);
}

int m_next_due(struct hf_store *store, hf_ms *ret_at, struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    hf_ms next = 0;
    for (size_t i = 0; i < call.disk->rows.count; i++) {
        const struct m_row *row = &call.disk->rows.at[i];
        hf_ms lease_at = row->check_at ? call.now + (row->check_at - call.lease_now) : 0;
        hf_ms wall_at = wake_at(row);
        if (lease_at && (!next || lease_at < next))
            next = lease_at;
        if (wall_at && (!next || wall_at < next))
            next = wall_at;
    }
    hf_ms wait_at = m_waits_next(call.disk);
    if (wait_at && (!next || wait_at < next))
        next = wait_at;
    hf_ms limit_at = m_limits_next(call.disk);
    *ret_at = limit_at && (!next || limit_at < next) ? limit_at : next;
    return 0;
}

int m_sweep(struct hf_store *store, const struct hf_caller *who, size_t limit,
            struct hf_sweep_report *ret_report, struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    sweep_some(&call, limit, ret_report);
    return m_next_due(store, &ret_report->next_at, err);
}
