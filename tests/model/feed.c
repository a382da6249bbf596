/* The feed, and what monitors do. Events of the model have one order, that of their ids. */

#include "model/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"

struct place {
    long long incarnation;
    long long id;
    long long pruned;
};

static const char *place_text(struct hf_feed *feed, const struct place *at)
{
    char text[96];
    (void)snprintf(text, sizeof(text), "m.%lld.%lld.%lld", at->incarnation, at->id,
                   at->pruned);
    return hf_feed_text(feed, text);
}

static bool wanted(const struct m_call *call, const struct hf_feed_query *query,
                   const struct m_row *row, const struct hf_event *event)
{
    const char *tenant = call->who->tenant;
    return (!tenant[0] || m_same(tenant, row->w.tenant)) &&
           (!query->queue || m_same(query->queue, row->w.queue)) &&
           (!query->kind || m_same(query->kind, row->w.kind)) &&
           (!query->type || m_same(query->type, event->event_type));
}

static const struct m_row *row_of(const struct model_disk *disk, int64_t seq)
{
    for (size_t i = 0; i < disk->rows.count; i++) {
        if (disk->rows.at[i].seq == seq)
            return &disk->rows.at[i];
    }
    abort(); /* events go with their row */
}

static void show(struct m_call *call, struct hf_feed *feed, const struct m_row *row,
                 const struct m_event *event, struct place *at)
{
    struct hf_feed_item *item = hf_feed_add(feed);
    at->id = event->e.event_id;
    item->event = event->e;
    item->event.payload = m_payload(call->disk, event->e.payload);
    item->tenant = row->w.tenant;
    item->queue = row->w.queue;
    item->kind = row->w.kind;
    item->cursor = place_text(feed, at);
}

static bool read_place(const char *text, struct place *at)
{
    int64_t numbers[3] = { 0 };
    char copy[96];
    (void)snprintf(copy, sizeof(copy), "%s", text);
    char *part = copy;
    for (size_t i = 0; i < 3; i++) {
        part = strchr(part, '.');
        if (!part)
            return false;
        char *end = strchr(++part, '.');
        if (end)
            *end = '\0';
        if (hf_parse_i64(part, 0, INT64_MAX, "after", &numbers[i], NULL))
            return false;
        if (end)
            *end = '.';
    }
    *at = (struct place){ numbers[0], numbers[1], numbers[2] };
    return copy[0] == 'm' && !strchr(part, '.');
}

/* Where reading goes on, and what the reader cannot have. */
static int begin(const struct model_disk *disk, const char *after, struct place *at,
                 unsigned *notices, struct hf_err *err)
{
    if (after && !m_same(after, "end")) {
        if (!read_place(after, at) || at->incarnation > disk->incarnation)
            return hf_fail(err, HF_EINVAL, "after", "no cursor of this store");
        for (size_t i = 0; i < disk->histories.count; i++) {
            const struct m_history *history = &disk->histories.at[i];
            if (history->incarnation <= at->incarnation)
                continue;
            *notices |= HF_FEED_HISTORY;
            if (history->began_id < at->id)
                at->id = history->began_id;
        }
        if (at->id < disk->pruned_id && at->pruned < disk->pruned_id)
            *notices |= HF_FEED_GAP;
    } else if (after) {
        at->id = disk->next_event - 1;
    }
    at->incarnation = disk->incarnation;
    at->pruned = disk->pruned_id;
    return 0;
}

int m_feed(struct hf_store *store, const struct hf_caller *who,
           const struct hf_feed_query *query, struct hf_feed *feed, struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    struct place at = { 0 };
    unsigned notices = 0;
    bool more = false;
    int rc = begin(call.disk, query->after, &at, &notices, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < call.disk->events.count && !more; i++) {
        const struct m_event *event = &call.disk->events.at[i];
        const struct m_row *row = row_of(call.disk, event->seq);
        if (event->e.event_id <= at.id)
            continue;
        if (hf_feed_count(feed) == query->limit)
            more = true;
        else if (wanted(&call, query, row, &event->e))
            show(&call, feed, row, event, &at);
        else
            at.id = event->e.event_id;
    }
    hf_feed_set(feed, place_text(feed, &at), at.incarnation, notices, more);
    return 0;
}

/* ---- monitors ---------------------------------------------------------------------------- */

int m_pulse(struct hf_store *store, struct hf_err *err)
{
    (void)store;
    (void)err;
    return 0;
}

void m_log_add(struct m_call *call, const char *what, const char *detail)
{
    struct hf_store_log_entry *entry = m_add(call->disk->log);
    *entry = (struct hf_store_log_entry){ (int64_t)call->disk->log.count, call->now,
                                          m_text(call->disk, what),
                                          m_text(call->disk, detail) };
}

static bool kept_from_renewing(const struct m_call *call, hf_ms expires, hf_ms ttl,
                               hf_ms stalled_ms)
{
    return 3 * stalled_ms > ttl && expires >= call->lease_now - stalled_ms &&
           expires < call->lease_now + ttl / 3;
}

int m_amnesty(struct hf_store *store, hf_ms stalled_ms, int64_t *ret_rows,
              struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    *ret_rows = 0;
    for (size_t i = 0; i < call.disk->sessions.count; i++) {
        struct m_session *s = &call.disk->sessions.at[i];
        if (!s->nonce || s->store != call.disk->incarnation ||
            !kept_from_renewing(&call, s->expires_at, s->ttl_ms, stalled_ms))
            continue;
        s->expires_at = call.lease_now + s->ttl_ms;
        ++*ret_rows;
    }
    for (size_t i = 0; i < call.disk->rows.count; i++) {
        struct m_row *row = &call.disk->rows.at[i];
        hf_ms expires = row->w.lease_expires_at, ttl = row->w.lease_ttl_ms;
        bool ours = row->status == HF_STATUS_RUNNING && !row->w.session_id &&
                    row->lease_incarnation == call.disk->incarnation;
        if (!ours || !kept_from_renewing(&call, expires, ttl, stalled_ms))
            continue;
        row->w.lease_expires_at = call.lease_now + ttl;
        row->check_at = m_act_at(row);
        ++*ret_rows;
    }
    if (*ret_rows)
        m_log_add(&call, "amnesty",
                  m_say(call.disk, "{\"stalled_ms\":%lld,\"leases\":%lld}",
                        (long long)stalled_ms, (long long)*ret_rows));
    return 0;
}

int m_log(struct hf_store *store, int64_t before, size_t limit, hf_logged *each,
          void *user, struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    for (size_t i = call.disk->log.count; i > 0 && limit > 0; i--) {
        if (call.disk->log.at[i - 1].log_id >= before)
            continue;
        each(user, &call.disk->log.at[i - 1]);
        limit--;
    }
    return 0;
}
