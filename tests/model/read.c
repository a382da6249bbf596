/* Reading, counting, pruning. */

#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "model/inside.h"

int m_get(struct hf_store *store, const char *id, struct hf_answer *answer,
          struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    int code = 0;
    const struct m_row *row = m_find(call.disk, id, &code);
    if (!row)
        return hf_fail_plain(err, code);
    m_show(&call, answer, hf_answer_add(answer), row, false);
    return 0;
}

static bool of_status(const struct hf_filter *filter, const struct m_row *row)
{
    if (filter->status_count == 0)
        return !hf_status_terminal(row->status);
    for (size_t i = 0; i < filter->status_count; i++) {
        if (filter->statuses[i] == row->status)
            return true;
    }
    return false;
}

static bool touches(const char *text, const char *part)
{
    size_t len = text ? strlen(text) : 0, most = strlen(part);
    return len >= most &&
           (strncmp(text, part, most) == 0 || m_same(text + len - most, part));
}

/* The stored name of a tenant's limit ends with the tenant, after a separator. */
static bool of_limit(const struct hf_work *w, const char *name)
{
    size_t len = strlen(name);
    return w->limit_name && strncmp(w->limit_name, name, len) == 0 &&
           (w->limit_name[len] == '\0' || w->limit_name[len] == '\x1f');
}

static bool matches(const struct m_call *call, const struct hf_filter *filter,
                    const struct m_row *row)
{
    const struct hf_work *w = &row->w;
    const char *tenant = call->who->tenant;
    if (!of_status(filter, row) || (filter->source && filter->source != row->source) ||
        (filter->queue && !m_same(filter->queue, w->queue)) ||
        (filter->kind && !m_same(filter->kind, w->kind)) ||
        (filter->gate && !m_same(filter->gate, w->gate)) ||
        (filter->owner && !m_same(filter->owner, w->owner)) ||
        (filter->ref && !m_same(filter->ref, w->waiting_ref)) ||
        (tenant[0] && !m_same(tenant, w->tenant)))
        return false;
    if ((filter->source_id && !m_same(filter->source_id, w->source_id)) ||
        (filter->source_run_id && !m_same(filter->source_run_id, w->source_run_id)) ||
        (filter->parent_work_id && !m_same(filter->parent_work_id, w->parent_work_id)) ||
        (filter->session_id && !m_same(filter->session_id, w->session_id)) ||
        (filter->lane_key && !m_same(filter->lane_key, w->lane_key)) ||
        (filter->correlation_id && !m_same(filter->correlation_id, w->correlation_id)) ||
        (filter->error_class && !m_same(filter->error_class, w->error_class)) ||
        (filter->disposition && filter->disposition != row->disposition))
        return false;
    if (filter->find && !touches(w->work_id, filter->find) &&
        !touches(w->source_id, filter->find) && !touches(w->waiting_ref, filter->find))
        return false;
    hf_ms at = filter->finished ? w->finished_at : w->created_at;
    if ((filter->since_ms || filter->from || filter->before) &&
        (!at || (filter->since_ms && at < call->now - filter->since_ms) ||
         (filter->from && at < filter->from) || (filter->before && at >= filter->before)))
        return false;
    if (filter->older_than_ms && w->updated_at > call->now - filter->older_than_ms)
        return false;
    if (filter->unacked &&
        (w->acked_at || !hf_status_terminal(row->status) ||
         row->status == HF_STATUS_DONE || row->status == HF_STATUS_CANCELLED))
        return false;
    if (filter->limit_name && !of_limit(w, filter->limit_name))
        return false;
    return !filter->silent ||
           (w->lease_expires_at && w->lease_expires_at <= call->lease_now);
}

static void show_brief(struct hf_item *item)
{
    item->work.payload = NULL;
    item->work.resume_payload = NULL;
    item->work.result = NULL;
    item->work.retry_policy = NULL;
    item->work.holder = NULL;
}

/* The bytes of a row's texts that may be long; the others are not worth counting here. */
static size_t bytes_of(const struct hf_work *w)
{
    const char *const texts[] = { w->payload, w->result, w->resume_payload };
    size_t bytes = 0;
    for (size_t i = 0; i < 3; i++)
        bytes += texts[i] ? strlen(texts[i]) : 0;
    return bytes;
}

int m_list(struct hf_store *store, const struct hf_caller *who,
           const struct hf_filter *filter, struct hf_answer *answer, struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    size_t limit = filter->limit ? filter->limit : 100;
    size_t count = call.disk->rows.count;
    int64_t after = filter->newest ? INT64_MAX : 0;
    int64_t last = 0;
    size_t bytes = 0;
    int rc = filter->after
                 ? hf_parse_i64(filter->after, 0, INT64_MAX, "after", &after, err)
                 : 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        const struct m_row *row = &call.disk->rows.at[filter->newest ? count - 1 - i : i];
        bool past = filter->newest ? row->seq >= after : row->seq <= after;
        if (past || !matches(&call, filter, row))
            continue;
        if (hf_answer_count(answer) == limit || bytes >= (size_t)HF_PAGE_BYTES) {
            hf_answer_set_next(answer, m_say(call.disk, "%lld", (long long)last));
            break;
        }
        struct hf_item *item = hf_answer_add(answer);
        m_show(&call, answer, item, row, false);
        if (filter->brief)
            show_brief(item);
        bytes += bytes_of(&item->work);
        last = row->seq;
    }
    return rc;
}

/* ---- trails ------------------------------------------------------------------------------- */

/* A transition that moved the lease is shown once more as such. */
static void show_lease(struct hf_events *trail, const struct hf_event *event)
{
    bool acquired = m_same(event->to_status, "running");
    bool released = m_same(event->from_status, "running");
    if (!acquired && !released)
        return;
    struct hf_event *shown = hf_events_add(trail);
    *shown = *event;
    shown->event_type = acquired ? "lease_acquired" : "lease_released";
    shown->from_status = NULL;
    shown->to_status = NULL;
    shown->message = NULL;
    shown->payload = NULL;
}

/* Readers want JSON: facts are given as an object, an exact payload as it is. */
const char *m_payload(struct model_disk *disk, const char *facts)
{
    if (!facts)
        return NULL;
    if (facts[0] == '=')
        return facts + 1;
    char *object = hf_arena_copy(&disk->arena, facts, strlen(facts));
    for (char *c = object; c && *c; c++) {
        if (*c == '\n')
            *c = ',';
    }
    return m_say(disk, "{%s}", object);
}

int m_events(struct hf_store *store, const char *id, int64_t after, size_t limit,
             struct hf_events **ret_events, struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    int code = 0;
    const struct m_row *row = m_find(call.disk, id, &code);
    if (!row)
        return hf_fail_plain(err, code);
    struct hf_events *trail = hf_events_new(store->alloc);
    if (!trail)
        return hf_fail_plain(err, HF_ENOMEM);
    size_t taken = 0;
    for (size_t i = 0; i < call.disk->events.count && taken < limit; i++) {
        const struct m_event *event = &call.disk->events.at[i];
        if (event->seq != row->seq || event->e.event_id <= after)
            continue;
        taken++;
        struct hf_event *shown = hf_events_add(trail);
        *shown = event->e;
        shown->payload = m_payload(call.disk, event->e.payload);
        show_lease(trail, &event->e);
    }
    *ret_events = trail;
    return 0;
}

/* Rows, and the facts that the model states of each event. */
int m_dump(struct hf_store *store, const struct hf_dump *dump, struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    for (size_t i = 0; i < call.disk->rows.count; i++) {
        const struct m_row *row = &call.disk->rows.at[i];
        dump->row(dump->user, &row->w, row->settled_verb, row->check_at,
                  row->lease_incarnation);
    }
    for (size_t i = 0; i < call.disk->events.count; i++)
        dump->event(dump->user, &call.disk->events.at[i].e);
    return 0;
}

/* ---- counts --------------------------------------------------------------------------------- */

static hf_ms sooner(hf_ms a, hf_ms b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

int m_stats(struct hf_store *store, const struct hf_caller *who,
            struct hf_stats *ret_stats, struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    struct hf_stats s = { .gated = 0 };
    hf_ms queued = 0;
    hf_ms started = 0;
    for (size_t i = 0; i < call.disk->rows.count; i++) {
        const struct m_row *row = &call.disk->rows.at[i];
        hf_ms left = row->w.lease_expires_at - call.lease_now;
        bool ours = !who->tenant[0] || m_same(who->tenant, row->w.tenant);
        bool bad = row->status == HF_STATUS_FAILED || row->status == HF_STATUS_TIMEOUT ||
                   row->status == HF_STATUS_ABANDONED;
        s.ended_badly += ours && bad && !row->w.acked_at &&
                         row->w.finished_at >= call.now - 3600000;
        if (hf_status_terminal(row->status) ||
            (who->tenant[0] && !m_same(who->tenant, row->w.tenant)))
            continue;
        s.by_status[row->status]++;
        s.by_source[row->source]++;
        s.gated += row->w.gate != NULL;
        s.silent += row->w.lease_expires_at && left <= 0;
        s.lapsing += row->w.lease_expires_at && left > 0 &&
                     3 * left < row->w.lease_ttl_ms;
        if (row->status == HF_STATUS_QUEUED && !row->w.gate)
            queued = sooner(queued, row->w.due_at);
        if (row->status == HF_STATUS_RUNNING)
            started = sooner(started, row->w.started_at);
        if (m_waits(row))
            s.next_wait_deadline_at = sooner(s.next_wait_deadline_at, row->w.deadline_at);
        s.next_retry_at = sooner(s.next_retry_at, row->w.next_retry_at);
    }
    s.oldest_queued_ms = queued ? call.now - queued : 0;
    s.oldest_running_ms = started ? call.now - started : 0;
    *ret_stats = s;
    return 0;
}

/* ---- prune ----------------------------------------------------------------------------------- */

static void drop_events(struct model_disk *disk, int64_t seq)
{
    size_t kept = 0;
    for (size_t i = 0; i < disk->events.count; i++) {
        if (disk->events.at[i].seq != seq)
            disk->events.at[kept++] = disk->events.at[i];
        else if (disk->events.at[i].e.event_id > disk->pruned_id)
            disk->pruned_id = disk->events.at[i].e.event_id;
    }
    disk->events.count = kept;
}

int m_prune(struct hf_store *store, hf_ms older_than_ms, size_t limit, int64_t *ret_rows,
            struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    struct model_disk *disk = call.disk;
    size_t kept = 0;
    int64_t dropped = 0;
    for (size_t i = 0; i < disk->rows.count; i++) {
        const struct m_row *row = &disk->rows.at[i];
        bool old = row->w.finished_at && row->w.finished_at < call.now - older_than_ms;
        if (old && (limit == 0 || (size_t)dropped < limit)) {
            drop_events(disk, row->seq);
            m_scope_effects_prune(disk, row->w.work_id);
            dropped++;
        } else {
            disk->rows.at[kept++] = *row;
        }
    }
    disk->rows.count = kept;
    m_waits_prune(disk, call.now - older_than_ms);
    *ret_rows = dropped;
    return 0;
}
