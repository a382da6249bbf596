/* Counts by queue, holder and age, by walking all rows. */

#include <stdlib.h>
#include <string.h>

#include "model/inside.h"

static bool counts(const struct m_call *call, const struct m_row *row)
{
    return !hf_status_terminal(row->status) &&
           (!call->who->tenant[0] || m_same(call->who->tenant, row->w.tenant));
}

static hf_ms sooner(hf_ms a, hf_ms b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static void count_row(const struct m_call *call, const struct m_row *row,
                      struct hf_queue *queue, hf_ms *oldest)
{
    const struct hf_work *w = &row->w;
    queue->due += m_same(w->gate, "due");
    queue->lane += m_same(w->gate, "lane");
    queue->limit += m_same(w->gate, "limit");
    queue->rate += m_same(w->gate, "rate");
    queue->held += m_same(w->gate, "held");
    queue->running += row->status == HF_STATUS_RUNNING;
    queue->waiting += m_waits(row);
    queue->retry += row->status == HF_STATUS_RETRY_SCHEDULED;
    queue->silent += w->lease_expires_at && w->lease_expires_at <= call->lease_now;
    if (m_same(w->gate, "due"))
        queue->next_due_at = sooner(queue->next_due_at, w->due_at);
    if (row->status == HF_STATUS_RETRY_SCHEDULED)
        queue->next_due_at = sooner(queue->next_due_at, w->next_retry_at);
    if (row->status == HF_STATUS_QUEUED && !w->gate) {
        queue->claimable++;
        *oldest = sooner(*oldest, w->updated_at > w->due_at ? w->updated_at : w->due_at);
    }
}

/* The kinds of a queue as an array, in order. */
static const char *kinds_of(const struct m_call *call, const char *queue)
{
    const char *text = "[", *last = NULL;
    for (;;) {
        const char *next = NULL;
        for (size_t i = 0; i < call->disk->rows.count; i++) {
            const struct m_row *row = &call->disk->rows.at[i];
            if (counts(call, row) && m_same(row->w.queue, queue) &&
                (!last || strcmp(row->w.kind, last) > 0) &&
                (!next || strcmp(row->w.kind, next) < 0))
                next = row->w.kind;
        }
        if (!next)
            return m_say(call->disk, "%s]", text);
        text = m_say(call->disk, "%s%s\"%s\"", text, last ? "," : "", next);
        last = next;
    }
}

int m_queues(struct hf_store *store, const struct hf_caller *who, hf_each_queue *each,
             void *user, struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    for (const char *last = NULL;;) {
        struct hf_queue queue = { .queue = NULL };
        hf_ms oldest = 0;
        for (size_t i = 0; i < call.disk->rows.count; i++) {
            const struct m_row *row = &call.disk->rows.at[i];
            if (counts(&call, row) && (!last || strcmp(row->w.queue, last) > 0) &&
                (!queue.queue || strcmp(row->w.queue, queue.queue) < 0))
                queue.queue = row->w.queue;
        }
        if (!queue.queue)
            return 0;
        for (size_t i = 0; i < call.disk->rows.count; i++) {
            const struct m_row *row = &call.disk->rows.at[i];
            if (counts(&call, row) && m_same(row->w.queue, queue.queue))
                count_row(&call, row, &queue, &oldest);
        }
        queue.oldest_claimable_ms = oldest && oldest < call.now ? call.now - oldest : 0;
        queue.kinds = kinds_of(&call, queue.queue);
        each(user, &queue);
        last = queue.queue;
    }
}

/* ---- holders ------------------------------------------------------------------------------- */

struct held_by {
    struct hf_holder holder;
    hf_ms renewed_at;
};

static void hold(const struct m_call *call, const struct m_row *row, struct held_by *by)
{
    const struct hf_work *w = &row->w;
    const struct m_session *s = row->session_fence
                                    ? m_session_of(call->disk, w->session_id)
                                    : NULL;
    hf_ms expires_at = s ? s->expires_at : w->lease_expires_at;
    hf_ms ttl_ms = s ? s->ttl_ms : w->lease_ttl_ms;
    hf_ms left = expires_at - call->lease_now;
    hf_ms renewed = expires_at - ttl_ms + call->now - call->lease_now;
    struct hf_holder *h = &by->holder;
    bool first = h->running == 0;
    h->owner = w->owner;
    h->incarnation = w->owner_incarnation;
    h->running++;
    h->started_at = sooner(h->started_at, w->started_at);
    h->active_at = w->active_at > h->active_at ? w->active_at : h->active_at;
    h->silent += left <= 0;
    h->least_left_ms = first || left < h->least_left_ms ? left : h->least_left_ms;
    h->most_left_ms = first || left > h->most_left_ms ? left : h->most_left_ms;
    by->renewed_at = renewed > by->renewed_at ? renewed : by->renewed_at;
}

static int by_owner(const void *a, const void *b)
{
    const struct hf_holder *x = &((const struct held_by *)a)->holder;
    const struct hf_holder *y = &((const struct held_by *)b)->holder;
    int order = strcmp(x->owner, y->owner);
    if (order)
        return order;
    if (x->started_at != y->started_at)
        return x->started_at < y->started_at ? -1 : 1;
    return strcmp(x->incarnation, y->incarnation);
}

/* All holders in their order, each with whether it has a twin; the caller frees them. */
static struct held_by *holders_of(const struct m_call *call, size_t *ret_count)
{
    const struct model_disk *disk = call->disk;
    struct held_by *all = calloc(disk->rows.count + 1, sizeof(*all));
    size_t count = 0;
    for (size_t i = 0; all && i < disk->rows.count; i++) {
        const struct m_row *row = &disk->rows.at[i];
        size_t h = 0;
        if (row->status != HF_STATUS_RUNNING || !counts(call, row))
            continue;
        while (h < count &&
               !(m_same(all[h].holder.owner, row->w.owner) &&
                 m_same(all[h].holder.incarnation, row->w.owner_incarnation)))
            h++;
        count += h == count;
        hold(call, row, &all[h]);
    }
    qsort(all, count, sizeof(*all), by_owner);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++) {
            size_t first = k < i ? k : i, second = k < i ? i : k;
            if (k != i && m_same(all[k].holder.owner, all[i].holder.owner) &&
                all[first].renewed_at > all[second].holder.started_at)
                all[i].holder.twin = true;
        }
    *ret_count = count;
    return all;
}

int m_holder_list(struct hf_store *store, const struct hf_caller *who, const char *owner,
                  hf_each_holder_row *each, void *user, struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    size_t count = 0;
    struct held_by *all = holders_of(&call, &count);
    for (size_t i = 0; i < count; i++)
        if (!owner || m_same(owner, all[i].holder.owner))
            each(user, &all[i].holder);
    free(all);
    return 0;
}

/* ---- ages ----------------------------------------------------------------------------------- */

static size_t part_left(hf_ms left, hf_ms ttl_ms)
{
    return left <= 0 ? 3 : 3 * left < ttl_ms ? 2 : 3 * left < 2 * ttl_ms ? 1 : 0;
}

static void count_turns(const struct m_call *call, struct hf_age_table *ages)
{
    for (size_t i = 0; i < call->disk->sessions.count; i++) {
        const struct m_session *s = &call->disk->sessions.at[i];
        bool mine = !call->who->tenant[0] || m_same(call->who->tenant, s->s.tenant);
        if (mine && s->nonce && m_turn_open(call->disk, s))
            ages->leases[part_left(s->expires_at - call->lease_now, s->ttl_ms)]++;
    }
}

int m_ages(struct hf_store *store, const struct hf_caller *who,
           struct hf_age_table *ret_ages, struct hf_err *err)
{
    static const hf_ms bounds[] = { 60000, 600000, 3600000, 86400000, 604800000 };
    struct m_call call = m_begin(store, who, err);
    memset(ret_ages, 0, sizeof(*ret_ages));
    for (size_t i = 0; i < call.disk->rows.count; i++) {
        const struct m_row *row = &call.disk->rows.at[i];
        hf_ms left = row->w.lease_expires_at - call.lease_now;
        size_t age = 0;
        if (!counts(&call, row))
            continue;
        while (age < 5 && call.now - row->w.created_at >= bounds[age])
            age++;
        ret_ages->open[row->status][age]++;
        if (row->status == HF_STATUS_RUNNING && row->w.lease_expires_at)
            ret_ages->leases[part_left(left, row->w.lease_ttl_ms)]++;
    }
    count_turns(&call, ret_ages);
    return 0;
}
