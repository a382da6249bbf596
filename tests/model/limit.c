/* Limits and fair shares, kept the plain way: every row is looked at, every time. */

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "model/inside.h"

#define SHARE ((int64_t)1 << 20)
#define MANY 1000000000

/* ---- keeping ----------------------------------------------------------------------------- */

static void *copy(const void *from, size_t bytes)
{
    void *to = malloc(bytes ? bytes : 1);
    if (!to)
        abort();
    if (bytes)
        memcpy(to, from, bytes);
    return to;
}

struct m_shares m_shares_keep(const struct model_disk *disk)
{
    return (struct m_shares){
        .limits = copy(disk->limits.at, disk->limits.count * sizeof(struct m_limit)),
        .fairs = copy(disk->fairs.at, disk->fairs.count * sizeof(struct m_fair)),
        .limit_count = disk->limits.count,
        .fair_count = disk->fairs.count,
    };
}

void m_shares_back(struct model_disk *disk, const struct m_shares *kept)
{
    disk->limits.count = kept->limit_count;
    disk->fairs.count = kept->fair_count;
    if (kept->limit_count)
        memcpy(disk->limits.at, kept->limits, kept->limit_count * sizeof *kept->limits);
    if (kept->fair_count)
        memcpy(disk->fairs.at, kept->fairs, kept->fair_count * sizeof *kept->fairs);
}

void m_shares_drop(struct m_shares *kept)
{
    free(kept->limits);
    free(kept->fairs);
}

/* ---- order ------------------------------------------------------------------------------ */

bool m_before(const struct m_row *a, const struct m_row *b)
{
    if (a->w.priority != b->w.priority)
        return a->w.priority < b->w.priority;
    if (a->tag != b->tag)
        return a->tag < b->tag;
    return a->seq < b->seq;
}

static bool is_open(const struct m_row *row)
{
    return row->status == HF_STATUS_QUEUED && !row->w.gate;
}

static bool waits_for_limit(const struct m_row *row)
{
    return m_same(row->w.gate, "limit") || m_same(row->w.gate, "rate");
}

/* ---- fair shares -------------------------------------------------------------------------- */

static struct m_fair *turn_of(struct model_disk *disk, const struct m_row *row)
{
    for (size_t i = 0; i < disk->fairs.count; i++) {
        struct m_fair *fair = &disk->fairs.at[i];
        if (m_same(fair->queue, row->w.queue) && fair->priority == row->w.priority &&
            m_same(fair->key, row->w.fair_key))
            return fair;
    }
    return NULL;
}

/* The tag that is being served; where no row waits, all that were handed out have
 * been. */
static int64_t served(const struct model_disk *disk, const struct m_row *row)
{
    int64_t tag = 0;
    for (size_t i = 0; i < disk->rows.count; i++) {
        const struct m_row *other = &disk->rows.at[i];
        if (is_open(other) && other->tag > 0 && m_same(other->w.queue, row->w.queue) &&
            other->w.priority == row->w.priority && (!tag || other->tag < tag))
            tag = other->tag;
    }
    for (size_t i = 0; !tag && i < disk->fairs.count; i++) {
        int64_t most = 0;
        for (size_t k = 0; k < disk->fairs.count; k++) {
            const struct m_fair *fair = &disk->fairs.at[k];
            if (m_same(fair->queue, row->w.queue) && fair->priority == row->w.priority &&
                fair->next > most)
                most = fair->next;
        }
        return most ? most : 1;
    }
    return tag ? tag : 1;
}

void m_fair_come(struct m_call *call, struct m_row *row)
{
    if (!row->w.fair_key)
        return;
    int64_t tag = served(call->disk, row);
    struct m_fair *turn = turn_of(call->disk, row);
    if (!turn) {
        turn = m_add(call->disk->fairs);
        turn->queue = row->w.queue;
        turn->priority = row->w.priority;
        turn->key = row->w.fair_key;
    }
    row->tag = turn->next > tag ? turn->next : tag;
    turn->next = row->tag + SHARE / row->weight;
}

/* ---- limits --------------------------------------------------------------------------------- */

static struct m_limit *limit_named(struct model_disk *disk, const char *name)
{
    for (size_t i = 0; i < disk->limits.count; i++)
        if (m_same(disk->limits.at[i].name, name))
            return &disk->limits.at[i];
    struct m_limit *limit = m_add(disk->limits);
    limit->name = m_text(disk, name);
    return limit;
}

void m_limit_touch(struct model_disk *disk, const char *name)
{
    limit_named(disk, name)->touched = true;
}

bool m_kind_limited(const struct model_disk *disk, const char *kind)
{
    for (size_t i = 0; i < disk->limits.count; i++) {
        const struct m_limit *limit = &disk->limits.at[i];
        if (strncmp(limit->name, "kind:", 5) == 0 && m_same(limit->name + 5, kind))
            return limit->max > 0 || limit->period > 0;
    }
    return false;
}

const char *m_first_gate(const struct m_row *row)
{
    if (row->w.lane_key || row->w.session_id)
        return "lane";
    if (!row->w.limit_name)
        return NULL;
    return strncmp(row->w.limit_name, "rate:", 5) == 0 ? "rate" : "limit";
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void fill(struct m_limit *limit, hf_ms now, int64_t back)
{
    hf_ms since = now > limit->level_at ? now - limit->level_at : 0;
    int64_t most = (limit->burst - limit->reserved) * limit->period;
    limit->level = least(most,
                         limit->level + since * limit->count + back * limit->period);
    if (limit->level < 0)
        limit->level = 0;
    limit->level_at = now;
}

static struct m_row *first_waiting(struct model_disk *disk, const struct m_limit *limit)
{
    struct m_row *first = NULL;
    for (size_t i = 0; i < disk->rows.count; i++) {
        struct m_row *row = &disk->rows.at[i];
        if (waits_for_limit(row) && m_same(row->w.limit_name, limit->name) &&
            (!first || m_before(row, first)))
            first = row;
    }
    return first;
}

/* Lets rows go on while there is a place and a token. Returns how many. */
static int64_t grant(struct m_call *call, struct m_limit *limit, int64_t back)
{
    int64_t places = limit->max ? limit->max - limit->used : MANY;
    int64_t granted = 0;
    if (places < 0)
        places = 0;
    if (limit->period)
        fill(limit, call->now, back);
    struct m_row *row = NULL;
    limit->wake_at = 0;
    while (granted < places && (row = first_waiting(call->disk, limit))) {
        if (limit->period && limit->level < limit->period) {
            limit->wake_at = call->now +
                             (limit->period - limit->level + limit->count - 1) /
                                 limit->count;
            break;
        }
        row->w.gate = NULL;
        row->place = row->open = true;
        limit->used++;
        if (limit->period) {
            limit->level -= limit->period;
            limit->reserved++;
        }
        granted++;
    }
    return granted;
}

static bool has_place(const struct m_row *row)
{
    return is_open(row) || row->status == HF_STATUS_RUNNING;
}

/* Limits of rows that have changed. Their buckets filled next to what was reserved until
 * now. */
static void touch_changed(struct m_call *call)
{
    struct model_disk *disk = call->disk;
    for (size_t i = 0; i < disk->rows.count; i++) {
        const struct m_row *row = &disk->rows.at[i];
        if (row->w.limit_name &&
            (row->entered || has_place(row) != row->place || is_open(row) != row->open))
            m_limit_touch(disk, row->w.limit_name);
    }
    for (size_t i = 0; i < disk->limits.count; i++) {
        struct m_limit *limit = &disk->limits.at[i];
        if (limit->touched && limit->period)
            fill(limit, call->now, 0);
    }
}

int64_t m_limits(struct m_call *call)
{
    struct model_disk *disk = call->disk;
    int64_t granted = 0;
    touch_changed(call);
    for (size_t i = 0; i < disk->rows.count; i++) {
        struct m_row *row = &disk->rows.at[i];
        bool place = has_place(row);
        bool open = is_open(row);
        if (!row->w.limit_name)
            continue;
        struct m_limit *limit = limit_named(disk, row->w.limit_name);
        limit->used += place - row->place;
        if (limit->period)
            limit->reserved += open - row->open;
        limit->back += row->open && !place;
        row->place = place;
        row->open = open;
        row->entered = false;
    }
    for (size_t i = 0; i < disk->limits.count; i++) {
        struct m_limit *limit = &disk->limits.at[i];
        if (limit->touched)
            granted += grant(call, limit, limit->back);
        limit->touched = false;
        limit->back = 0;
    }
    return granted;
}

/* Rows that a claim by queue took: the tokens of those with a rate are spent. */
void m_limits_claimed(struct m_call *call)
{
    struct model_disk *disk = call->disk;
    for (size_t i = 0; i < disk->limits.count; i++) {
        struct m_limit *limit = &disk->limits.at[i];
        int64_t started = 0;
        for (size_t k = 0; k < disk->rows.count; k++) {
            struct m_row *row = &disk->rows.at[k];
            if (row->status == HF_STATUS_RUNNING && row->open &&
                m_same(row->w.limit_name, limit->name)) {
                row->open = false;
                started++;
            }
        }
        if (!limit->period || !started)
            continue;
        fill(limit, call->now, 0);
        limit->reserved -= started;
        if (!limit->wake_at)
            limit->wake_at = call->now;
    }
}

bool m_limits_due(struct m_call *call)
{
    for (size_t i = 0; i < call->disk->limits.count; i++)
        if (call->disk->limits.at[i].wake_at &&
            call->disk->limits.at[i].wake_at <= call->now)
            return true;
    return false;
}

int64_t m_limits_sweep(struct m_call *call)
{
    for (size_t i = 0; i < call->disk->limits.count; i++) {
        struct m_limit *limit = &call->disk->limits.at[i];
        limit->touched |= limit->wake_at && limit->wake_at <= call->now;
    }
    return m_limits(call);
}

hf_ms m_limits_next(const struct model_disk *disk)
{
    hf_ms next = 0;
    for (size_t i = 0; i < disk->limits.count; i++) {
        hf_ms at = disk->limits.at[i].wake_at;
        if (at && (!next || at < next))
            next = at;
    }
    return next;
}

int m_limit_set(struct hf_store *store, const char *name, const struct hf_limit *wanted,
                struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    struct m_limit *limit = limit_named(call.disk, name);
    bool same_rate = limit->period && limit->period == wanted->rate_ms;
    limit->max = wanted->max_running;
    limit->count = wanted->rate_count;
    limit->period = wanted->rate_ms;
    limit->burst = wanted->burst;
    if (!same_rate) {
        limit->level = limit->period * limit->burst;
        limit->level_at = call.now;
    }
    limit->reserved = 0;
    for (size_t i = 0; i < call.disk->rows.count; i++)
        limit->reserved += limit->period && call.disk->rows.at[i].open &&
                           m_same(call.disk->rows.at[i].w.limit_name, name);
    limit->touched = true;
    (void)m_limits(&call);
    return 0;
}

int m_limit_list(struct hf_store *store, hf_each_limit *each, void *user,
                 struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    for (size_t i = 0; i < call.disk->limits.count; i++) {
        const struct m_limit *limit = &call.disk->limits.at[i];
        struct hf_limit_state state = { .limit = { .size = sizeof state.limit,
                                                   .name = limit->name,
                                                   .max_running = limit->max },
                                        .tenant = "",
                                        .used = limit->used };
        each(user, &state);
    }
    return 0;
}
