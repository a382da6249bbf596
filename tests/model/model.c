/* The disk, handles, rows and the rules that every verb shares. */

#include "model/inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/ident.h"

/* ---- memory --------------------------------------------------------------------------- */

void *m_grow(void **at, size_t *count, size_t *room, size_t each)
{
    if (*count == *room) {
        size_t more = *room ? *room * 2 : 16;
        void *bigger = realloc(*at, more * each);
        if (!bigger)
            abort();
        *at = bigger;
        *room = more;
    }
    void *fresh = (char *)*at + (*count)++ * each;
    memset(fresh, 0, each);
    return fresh;
}

const char *m_text(struct model_disk *disk, const char *text)
{
    if (!text)
        return NULL;
    const char *copy = hf_arena_text(&disk->arena, text);
    if (!copy)
        abort();
    return copy;
}

const char *m_say(struct model_disk *disk, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (len < 0 || (size_t)len >= sizeof(text))
        abort();
    return m_text(disk, text);
}

bool m_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

hf_ms m_later(hf_ms a, hf_ms b)
{
    hf_ms sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

struct model_disk *model_disk_new(void)
{
    struct model_disk *disk = calloc(1, sizeof(*disk));
    if (!disk)
        return NULL;
    hf_arena_init(&disk->arena, hf_alloc_system());
    disk->incarnation = 1;
    disk->next_seq = 1;
    disk->next_event = 1;
    return disk;
}

void model_disk_free(struct model_disk *disk)
{
    if (!disk)
        return;
    hf_arena_fini(&disk->arena);
    free(disk->rows.at);
    free(disk->events.at);
    free(disk->policies.at);
    free(disk->limits.at);
    free(disk->fairs.at);
    free(disk->receipts.at);
    free(disk->waits.at);
    free(disk->scope_effects.at);
    for (size_t i = 0; i < disk->sessions.count; i++)
        free(disk->sessions.at[i].nodes.at);
    free(disk->sessions.at);
    for (size_t i = 0; i < disk->turns.count; i++) {
        free(disk->turns.at[i].stored.at);
        free(disk->turns.at[i].effects.at);
    }
    free(disk->turns.at);
    free(disk->inputs.at);
    free(disk->blobs.at);
    free(disk->spent.at);
    free(disk->histories.at);
    free(disk->log.at);
    free(disk);
}

struct m_call m_begin(struct hf_store *store, const struct hf_caller *who,
                      struct hf_err *err)
{
    struct model *m = (struct model *)store;
    const struct hf_clock *clock = store->clock;
    return (struct m_call){
        .m = m,
        .disk = m->disk,
        .who = who,
        .now = clock->wall_ms(clock->user),
        .lease_now = clock->mono_ms(clock->user) + m->disk->lease_offset_ms,
        .err = err,
    };
}

/* ---- rows ----------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *part)
{
    size_t len = strlen(text);
    size_t tail = strlen(part);
    return tail <= len && strcmp(text + len - tail, part) == 0;
}

struct m_row *m_find(struct model_disk *disk, const char *id, int *ret_code)
{
    struct m_row *found = NULL;
    bool whole = hf_uuid_valid(id);
    *ret_code = HF_ENOTFOUND;
    if (!whole && strlen(id) < 4)
        *ret_code = HF_EINVAL;
    for (size_t i = 0; i < disk->rows.count && *ret_code != HF_EINVAL; i++) {
        struct m_row *row = &disk->rows.at[i];
        bool match = whole ? m_same(id, row->w.work_id)
                           : strstr(row->w.work_id, id) == row->w.work_id ||
                                 ends_with(row->w.work_id, id);
        if (match && found) {
            *ret_code = HF_EAMBIGUOUS;
            return NULL;
        }
        if (match)
            found = row;
    }
    if (found)
        *ret_code = 0;
    return found;
}

bool m_waits(const struct m_row *row)
{
    return row->status == HF_STATUS_WAITING_USER ||
           row->status == HF_STATUS_WAITING_EXTERNAL;
}

bool m_bound(const struct m_row *row)
{
    return row->disposition == HF_DISPOSITION_OWNER_BOUND && row->w.first_started_at != 0;
}

bool m_waits_for_rule(const struct m_row *row)
{
    return row->status == HF_STATUS_WAITING_USER && row->w.close_rule &&
           m_same(row->w.waiting_ref, row->w.work_id);
}

hf_ms m_act_at(const struct m_row *row)
{
    bool graced = row->disposition == HF_DISPOSITION_EXPIRE;
    return m_later(row->w.lease_expires_at, graced ? row->grace_ms : 0);
}

const char *m_token(struct model_disk *disk, const struct m_row *row)
{
    return m_say(disk, "hf1.%lld.%lld.%s", (long long)row->lease_incarnation,
                 (long long)row->w.lease_fence, row->nonce);
}

/* Texts of the disk outlive every answer, so an answer may point to them. */
void m_show(struct m_call *call, struct hf_answer *answer, struct hf_item *item,
            const struct m_row *row, bool brief)
{
    (void)answer;
    if (brief) {
        item->work = (struct hf_work){ .work_id = row->w.work_id,
                                       .status = row->w.status };
        return;
    }
    item->work = row->w;
    if (row->w.lease_expires_at)
        item->work.lease_remaining_ms = row->w.lease_expires_at - call->lease_now;
}

void m_show_all(struct m_call *call, struct hf_answer *answer, unsigned flags)
{
    for (size_t i = 0; i < hf_answer_count(answer); i++) {
        /* An answer that is being made may be changed. */
        struct hf_item *item = (struct hf_item *)(uintptr_t)hf_answer_at(answer, i);
        int code = 0;
        struct m_row *row = item->work.work_id
                                ? m_find(call->disk, item->work.work_id, &code)
                                : NULL;
        if (row)
            m_show(call, answer, item, row, (flags & HF_BRIEF) != 0);
    }
}

static struct m_event *new_event(struct m_call *call, const struct m_row *row,
                                 struct m_say_event say)
{
    struct m_event *event = m_add(call->disk->events);
    event->seq = row->seq;
    event->e = (struct hf_event){
        .event_id = call->disk->next_event++,
        .work_id = row->w.work_id,
        .event_type = m_text(call->disk, say.type),
        .generation = row->w.generation,
        .attempt = row->w.attempt_count,
        .fence = row->w.lease_fence,
        .actor_kind = m_text(call->disk, call->who->actor_kind),
        .actor = m_text(call->disk, call->who->actor),
        .message = m_text(call->disk, say.message),
        .payload = m_text(call->disk, say.facts),
        .correlation_id = m_text(call->disk, call->who->correlation_id),
        .created_at = call->now,
    };
    return event;
}

void m_note(struct m_call *call, const struct m_row *row, struct m_say_event say)
{
    (void)new_event(call, row, say);
}

static void release(struct m_row *row)
{
    bool keeps_owner = m_waits(row) && m_bound(row);
    if (!keeps_owner) {
        row->w.owner = NULL;
        row->w.owner_incarnation = NULL;
        row->w.holder = NULL;
    }
    row->nonce = NULL;
    row->lease_incarnation = 0;
    row->grace_ms = 0;
    row->check_at = 0;
    row->session_fence = 0;
    row->w.lease_ttl_ms = 0;
    row->w.lease_expires_at = 0;
}

void m_enter(struct m_call *call, struct m_row *row, enum hf_status to,
             struct m_say_event say)
{
    const char *from = row->w.status;
    bool later = !from && row->w.due_at > call->now;
    if (to == HF_STATUS_QUEUED && row->status != HF_STATUS_QUEUED && !later)
        m_fair_come(call, row);
    row->status = to;
    row->w.status = hf_status_word(to);
    row->w.status_reason = NULL;
    row->w.gate = NULL;
    row->w.deadline_at = 0;
    row->w.next_retry_at = 0;
    row->w.waiting_kind = NULL;
    row->w.waiting_ref = NULL;
    row->w.escalate = NULL;
    row->w.escalate_at = 0;
    row->w.updated_at = call->now;
    release(row);
    if (to == HF_STATUS_QUEUED) {
        row->w.due_at = call->now;
        row->w.gate = m_first_gate(row);
        row->entered = row->w.limit_name != NULL;
        if (row->w.start_timeout_ms)
            row->w.deadline_at = m_later(call->now, row->w.start_timeout_ms);
    }
    row->w.finished_at = hf_status_terminal(to) ? call->now : 0;
    row->w.acked_at = 0;
    struct m_event *event = new_event(call, row, say);
    event->e.from_status = from;
    event->e.to_status = row->w.status;
}

void m_acquire(struct m_call *call, struct m_row *row, const struct m_taker *taker,
               struct m_say_event say)
{
    hf_ms last_ttl_ms = taker->ttl_default_ms ? taker->ttl_default_ms : 45000;
    struct hf_policy policy = m_policy_over(call->disk, last_ttl_ms, row->source,
                                            row->w.kind);
    hf_ms ttl_ms = taker->ttl_ms ? taker->ttl_ms : policy.ttl_ms;
    row->w.attempt_count++;
    row->w.lease_fence++;
    say.facts = m_say(call->disk, "\"ttl_ms\":%lld", (long long)ttl_ms);
    m_enter(call, row, HF_STATUS_RUNNING, say);
    row->w.owner = m_text(call->disk, taker->owner);
    row->w.owner_incarnation = m_text(call->disk, taker->incarnation);
    row->nonce = m_text(call->disk, taker->nonce);
    row->lease_incarnation = call->disk->incarnation;
    row->grace_ms = policy.grace_ms;
    row->w.lease_ttl_ms = ttl_ms;
    row->w.lease_expires_at = m_later(call->lease_now, row->w.lease_ttl_ms);
    row->check_at = m_act_at(row);
    row->w.started_at = call->now;
    row->w.active_at = call->now;
    if (row->w.first_started_at == 0)
        row->w.first_started_at = call->now;
    if (row->w.exec_timeout_ms)
        row->w.deadline_at = m_later(call->now, row->w.exec_timeout_ms);
}

/* ---- lanes ------------------------------------------------------------------------------ */

static bool same_lane(const struct m_row *a, const struct m_row *b)
{
    return a->w.lane_key && m_same(a->w.lane_key, b->w.lane_key) &&
           m_same(a->w.tenant, b->w.tenant);
}

bool m_lane_runs(const struct model_disk *disk, const struct m_row *row)
{
    for (size_t i = 0; i < disk->rows.count; i++) {
        const struct m_row *other = &disk->rows.at[i];
        if (other->seq != row->seq && other->status == HF_STATUS_RUNNING &&
            same_lane(other, row))
            return true;
    }
    return false;
}

/* Rows are in order of age, so of equal urgency the first wins. */
static bool is_next(const struct model_disk *disk, const struct m_row *row)
{
    for (size_t i = 0; i < disk->rows.count; i++) {
        const struct m_row *other = &disk->rows.at[i];
        if (other->seq == row->seq || !same_lane(other, row))
            continue;
        if (other->status == HF_STATUS_RUNNING)
            return false;
        bool waits_too = other->status == HF_STATUS_QUEUED &&
                         !m_same(other->w.gate, "due") && !m_same(other->w.gate, "held");
        if (waits_too && m_before(other, row))
            return false;
    }
    return true;
}

void m_lanes(struct model_disk *disk)
{
    for (size_t i = 0; i < disk->rows.count; i++) {
        struct m_row *row = &disk->rows.at[i];
        if (row->status == HF_STATUS_QUEUED && row->w.lane_key &&
            !m_same(row->w.gate, "due") && !m_same(row->w.gate, "held"))
            row->w.gate = is_next(disk, row) ? NULL : "lane";
    }
}

/* ---- the store as a whole ----------------------------------------------------------------- */

static int m_bump(struct hf_store *store, int64_t *ret_incarnation, struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    struct m_history *history = m_add(call.disk->histories);
    history->incarnation = ++call.disk->incarnation;
    history->began_id = call.disk->next_event - 1;
    m_log_add(&call, "bump", NULL);
    *ret_incarnation = call.disk->incarnation;
    return 0;
}

static int m_check(struct hf_store *store,
                   void (*found)(void *user, const struct hf_finding *f), void *user,
                   struct hf_err *err)
{
    (void)store;
    (void)found;
    (void)user;
    (void)err;
    return 0;
}

static int m_facts(struct hf_store *store, char **ret_json, struct hf_err *err)
{
    char *json = store->alloc->realloc(store->alloc->user, NULL, 3);
    if (!json)
        return hf_fail_plain(err, HF_ENOMEM);
    memcpy(json, "{}", 3);
    *ret_json = json;
    return 0;
}

static uint32_t m_bell_seen(struct hf_store *store, uint32_t topic)
{
    (void)store;
    return topic;
}

static bool m_bell_wait(struct hf_store *store, uint32_t topic, uint32_t seen, hf_ms ms)
{
    (void)topic;
    (void)seen;
    store->clock->wait_ms(store->clock->user, ms);
    return false;
}

static int m_holders(struct hf_store *store, void (*each)(void *user, const char *holder),
                     void *user, struct hf_err *err)
{
    (void)store;
    (void)each;
    (void)user;
    (void)err;
    return 0;
}

static void m_close(struct hf_store *store)
{
    free(store);
}

static const struct hf_store_methods methods = {
    .name = "model",
    .create = m_create,
    .claim = m_claim,
    .change = m_change,
    .renew_all = m_renew_all,
    .get = m_get,
    .list = m_list,
    .events = m_events,
    .feed = m_feed,
    .stats = m_stats,
    .sweep = m_sweep,
    .prune = m_prune,
    .pulse = m_pulse,
    .amnesty = m_amnesty,
    .log = m_log,
    .policy_set = m_policy_set,
    .policy_get = m_policy_get,
    .limit_set = m_limit_set,
    .limit_list = m_limit_list,
    .lease_take = m_lease_take,
    .lease_renew = m_lease_renew,
    .lease_release = m_lease_release,
    .lease_look = m_lease_look,
    .bump = m_bump,
    .check = m_check,
    .facts = m_facts,
    .dump = m_dump,
    .bell_seen = m_bell_seen,
    .bell_wait = m_bell_wait,
    .next_due = m_next_due,
    .holders = m_holders,
    .close = m_close,
    .sessions = &m_session_methods,
    .waits = &m_wait_methods,
    .watch = &m_overview_methods,
    .journal = &m_journal_methods,
};

int model_open(struct model_disk *disk, const struct hf_store_options *options,
               struct hf_store **ret_store, struct hf_err *err)
{
    struct model *m = calloc(1, sizeof(*m));
    if (!m)
        return hf_fail_plain(err, HF_ENOMEM);
    const struct hf_clock *clock = options->clock;
    m->disk = disk;
    m->handle = (struct hf_store){ .methods = &methods,
                                   .alloc = options->alloc,
                                   .clock = clock,
                                   .random = options->random };
    uint64_t seq = 0;
    char id[HF_UUID_TEXT];
    int rc = hf_uuid7(clock->wall_ms(clock->user), &seq, options->random, id, err);
    if (rc) {
        free(m);
        return rc;
    }
    memcpy(m->handle.incarnation, id, sizeof(id));
    if (!disk->used) /* at the first open it starts at wall time */
        disk->lease_offset_ms = clock->wall_ms(clock->user) - clock->mono_ms(clock->user);
    disk->used = true;
    *ret_store = &m->handle;
    return 0;
}
