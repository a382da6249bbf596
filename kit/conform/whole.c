/* The store as a whole: a picture to compare, and what must hold at any time. */

#include "conform/kit.h"

#include <string.h>

/* ---- a growing text -------------------------------------------------------------------- */

struct text {
    struct hf_conform *t;
    char *at;
    size_t len;
    size_t room;
};

static void put(struct text *text, const char *more)
{
    size_t len = strlen(more);
    if (text->len + len + 1 > text->room) {
        size_t room = 2 * (text->len + len + 512);
        char *bigger = kit_memory(text->t, room);
        if (!bigger)
            return;
        if (text->at)
            memcpy(bigger, text->at, text->len);
        text->at = bigger;
        text->room = room;
    }
    memcpy(text->at + text->len, more, len + 1);
    text->len += len;
}

static void put_text(struct text *text, const char *name, const char *value)
{
    if (!value)
        return;
    put(text, " ");
    put(text, name);
    put(text, "=");
    put(text, value);
}

static void put_i64(struct text *text, const char *name, int64_t value)
{
    char digits[24];
    size_t at = sizeof(digits) - 1;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    if (value == 0)
        return;
    digits[at] = 0;
    for (; rest > 0; rest /= 10)
        digits[--at] = (char)('0' + rest % 10);
    if (value < 0)
        digits[--at] = '-';
    put_text(text, name, digits + at);
}

/* ---- the picture ----------------------------------------------------------------------- */

#define ROW_TEXTS(X)                                                                     \
    X(work_id)                                                                           \
    X(tenant)                                                                            \
    X(source_system)                                                                     \
    X(source_id)                                                                         \
    X(source_run_id)                                                                     \
    X(kind)                                                                              \
    X(queue)                                                                             \
    X(lane_key)                                                                          \
    X(dedup_key)                                                                         \
    X(idempotency_key)                                                                   \
    X(ref)                                                                               \
    X(parent_work_id)                                                                    \
    X(correlation_id)                                                                    \
    X(session_id)                                                                        \
    X(status)                                                                            \
    X(status_reason)                                                                     \
    X(gate)                                                                              \
    X(disposition)                                                                       \
    X(owner)                                                                             \
    X(owner_incarnation)                                                                 \
    X(holder)                                                                            \
    X(waiting_kind)                                                                      \
    X(waiting_ref)                                                                       \
    X(escalate)                                                                          \
    X(resume_payload)                                                                    \
    X(error_class)                                                                       \
    X(result)                                                                            \
    X(payload)                                                                           \
    X(payload_ref)                                                                       \
    X(retry_policy)                                                                      \
    X(close_rule)                                                                        \
    X(cancel_request)                                                                    \
    X(abandon_request)

#define ROW_NUMBERS(X)                                                                   \
    X(priority)                                                                          \
    X(generation)                                                                        \
    X(attempt_count)                                                                     \
    X(failures)                                                                          \
    X(max_attempts)                                                                      \
    X(due_at)                                                                            \
    X(next_retry_at)                                                                     \
    X(deadline_at)                                                                       \
    X(start_timeout_ms)                                                                  \
    X(exec_timeout_ms)                                                                   \
    X(lease_fence)                                                                       \
    X(lease_ttl_ms)                                                                      \
    X(lease_expires_at)                                                                  \
    X(escalate_at)                                                                       \
    X(active_at)                                                                         \
    X(first_started_at)                                                                  \
    X(started_at)                                                                        \
    X(finished_at)                                                                       \
    X(created_at)                                                                        \
    X(updated_at)

static void picture_row(void *user, const struct hf_work *work, const char *settled_verb,
                        hf_ms lease_check_at, int64_t lease_incarnation)
{
    struct text *text = user;
    put(text, "row");
#define X(name) put_text(text, #name, work->name);
    ROW_TEXTS(X)
#undef X
#define X(name) put_i64(text, #name, work->name);
    ROW_NUMBERS(X)
#undef X
    put_text(text, "settled_verb", settled_verb);
    put_i64(text, "lease_check_at", lease_check_at);
    put_i64(text, "lease_incarnation", lease_incarnation);
    put(text, "\n");
}

static bool diagnostic(const struct hf_event *event)
{
    return same(event->event_type, "transition_rejected") ||
           same(event->event_type, "late_result");
}

static void picture_event(void *user, const struct hf_event *event)
{
    struct text *text = user;
    if (diagnostic(event))
        return;
    put(text, "event");
    put_text(text, "work_id", event->work_id);
    put_text(text, "type", event->event_type);
    put_text(text, "from", event->from_status);
    put_text(text, "to", event->to_status);
    put_i64(text, "generation", event->generation);
    put_i64(text, "attempt", event->attempt);
    put_i64(text, "fence", event->fence);
    put_text(text, "actor_kind", event->actor_kind);
    put_text(text, "actor", event->actor);
    put_text(text, "message", event->message);
    put_text(text, "payload", event->payload);
    put_i64(text, "created_at", event->created_at);
    put(text, "\n");
}

const char *kit_picture(struct hf_conform *t)
{
    struct text text = { .t = t };
    struct hf_dump dump = { &text, picture_row, picture_event };
    put(&text, "");
    if (t->failed)
        return "";
    t->code = kit_called(t, t->store->methods->dump(t->store, &dump, kit_err(t)));
    kit_code(t, "dump", 0, t->code);
    return text.at ? text.at : "";
}

void kit_unchanged(struct hf_conform *t, const char *before)
{
    const char *now = kit_picture(t);
    if (t->failed || same(before, now))
        return;
    size_t at = 0;
    while (before[at] && before[at] == now[at])
        at++;
    size_t from = at > 40 ? at - 40 : 0;
    kit_fail(t, "a refused or repeated call wrote: was …%.160s, is …%.160s",
             before + from, now + from);
}

/* ---- what always holds ------------------------------------------------------------------ */

#define ROWS_MAX 4096

struct folded {
    const char *work_id;
    const char *status; /* of the last transition */
    int64_t event_id;
    bool row_seen;
    /* of the row, for what holds between rows */
    const char *lane_key;
    const char *dedup_key;
    const char *tenant;
    int64_t priority;
    bool runs;
    bool queues; /* and is due */
    bool free;   /* queued and not gated */
    bool ended;
};

struct fold {
    struct hf_conform *t;
    struct folded *rows;
    size_t count;
};

static struct folded *folded_of(struct fold *fold, const char *work_id)
{
    for (size_t i = 0; i < fold->count; i++) {
        if (same(fold->rows[i].work_id, work_id))
            return &fold->rows[i];
    }
    if (fold->count == ROWS_MAX) {
        kit_fail(fold->t, "a case made more rows than can be folded");
        return NULL;
    }
    fold->rows[fold->count].work_id = kit_say(fold->t, "%s", work_id);
    return &fold->rows[fold->count++];
}

/* The pairs of the lifecycle, by hand: rows are `from`, columns `to`, in the order of
 * enum hf_status without NONE (q r wu we rs | d f t c a). Requeue is the only way out of a
 * terminal status. retry_scheduled from running also by a sweep. */
/* clang-format off */
static const char *const legal[] = {
    /*                     qrWXsdftca */
    /* queued           */ "-r-----tc-",
    /* running          */ "q-WXsdftca",
    /* waiting_user     */ "qr---dftca",
    /* waiting_external */ "qr---dftca",
    /* retry_scheduled  */ "q-------c-",
    /* done             */ "q---------",
    /* failed           */ "q---------",
    /* timeout          */ "q---------",
    /* cancelled        */ "q---------",
    /* abandoned        */ "q---------",
};
/* clang-format on */

static bool legal_pair(const char *from, const char *to)
{
    enum hf_status to_status = hf_status_of(to);
    if (!from)
        return to_status == HF_STATUS_QUEUED || to_status == HF_STATUS_WAITING_EXTERNAL ||
               to_status == HF_STATUS_DONE;
    enum hf_status from_status = hf_status_of(from);
    return from_status && to_status && legal[from_status - 1][to_status - 1] != '-';
}

static void fold_event(void *user, const struct hf_event *event)
{
    struct fold *fold = user;
    struct hf_conform *t = fold->t;
    if (t->failed)
        return;
    struct folded *trail = folded_of(fold, event->work_id);
    if (!trail)
        return;
    /* An event that moved a lease may be shown once more as such, under its own id. */
    if (event->event_id < trail->event_id ||
        (event->to_status && event->event_id == trail->event_id))
        kit_fail(t, "%s: event ids do not rise", event->work_id);
    trail->event_id = event->event_id;
    if (!event->actor || !event->actor_kind)
        kit_fail(t, "%s: event %s names no actor", event->work_id, event->event_type);
    if (!event->to_status) {
        if (event->from_status)
            kit_fail(t, "%s: %s has a from but no to", event->work_id, event->event_type);
        return;
    }
    if (!same(event->from_status, trail->status))
        kit_fail(t, "%s: %s goes from %s, but the row was %s", event->work_id,
                 event->event_type, event->from_status ? event->from_status : "nothing",
                 trail->status ? trail->status : "nothing");
    if (!legal_pair(event->from_status, event->to_status))
        kit_fail(t, "%s: %s to %s is in no table", event->work_id,
                 event->from_status ? event->from_status : "nothing", event->to_status);
    trail->status = hf_status_word(hf_status_of(event->to_status));
}

static void fold_row(void *user, const struct hf_work *work, const char *settled_verb,
                     hf_ms lease_check_at, int64_t lease_incarnation)
{
    struct fold *fold = user;
    struct hf_conform *t = fold->t;
    (void)settled_verb; /* part of the picture only */
    if (t->failed)
        return;
    struct folded *trail = folded_of(fold, work->work_id);
    if (!trail)
        return;
    trail->row_seen = true;
    enum hf_status status = hf_status_of(work->status);
    bool leased = work->lease_expires_at != 0;
    bool waits = status == HF_STATUS_WAITING_USER || status == HF_STATUS_WAITING_EXTERNAL;
    if (!status)
        kit_fail(t, "%s: unknown status %s", work->work_id, work->status);
    bool pinned = status == HF_STATUS_RUNNING &&
                  work->session_id; /* by its session's lease */
    if ((status == HF_STATUS_RUNNING && !pinned) != leased)
        kit_fail(t, "%s: %s, lease_expires_at %lld", work->work_id, work->status,
                 (long long)work->lease_expires_at);
    if (leased && (!work->owner || work->lease_fence < 1 || work->lease_ttl_ms == 0 ||
                   lease_check_at == 0 || lease_incarnation < 1))
        kit_fail(t, "%s: runs without a whole lease", work->work_id);
    if (!leased && lease_check_at)
        kit_fail(t, "%s: %s, but a lease is looked at", work->work_id, work->status);
    /* A started owner_bound row that waits is still its owner's. */
    if (!leased && work->owner && !pinned &&
        !(waits && same(work->disposition, "owner_bound")))
        kit_fail(t, "%s: %s, but owned by %s", work->work_id, work->status, work->owner);
    if (waits != (work->waiting_kind != NULL))
        kit_fail(t, "%s: %s, waiting_kind %s", work->work_id, work->status,
                 work->waiting_kind ? work->waiting_kind : "null");
    if (hf_status_terminal(status) != (work->finished_at != 0))
        kit_fail(t, "%s: %s, finished_at %lld", work->work_id, work->status,
                 (long long)work->finished_at);
    if ((status == HF_STATUS_RETRY_SCHEDULED) != (work->next_retry_at != 0))
        kit_fail(t, "%s: %s, next_retry_at %lld", work->work_id, work->status,
                 (long long)work->next_retry_at);
    if (work->gate && status != HF_STATUS_QUEUED)
        kit_fail(t, "%s: %s, gate %s", work->work_id, work->status, work->gate);
    trail->lane_key = work->lane_key ? kit_say(t, "%s", work->lane_key) : NULL;
    trail->dedup_key = work->dedup_key ? kit_say(t, "%s", work->dedup_key) : NULL;
    trail->tenant = kit_say(t, "%s", work->tenant ? work->tenant : "");
    trail->priority = work->priority;
    trail->runs = status == HF_STATUS_RUNNING;
    trail->queues = status == HF_STATUS_QUEUED && !same(work->gate, "due");
    trail->free = status == HF_STATUS_QUEUED && !work->gate;
    trail->ended = hf_status_terminal(status);
}

/* At most one row of a lane runs or may be claimed; if none runs, the best may be. At most
 * one live row has a dedup key. */
static void check_between(struct hf_conform *t, const struct folded *a,
                          const struct folded *b)
{
    if (!same(a->tenant, b->tenant))
        return;
    if (a->dedup_key && same(a->dedup_key, b->dedup_key) && !a->ended && !b->ended)
        kit_fail(t, "%s and %s live under the dedup key %s", a->work_id, b->work_id,
                 a->dedup_key);
    if (!a->lane_key || !same(a->lane_key, b->lane_key))
        return;
    if ((a->runs || a->free) && (b->runs || b->free))
        kit_fail(t, "%s and %s both have the lane %s", a->work_id, b->work_id,
                 a->lane_key);
    if (a->free && b->queues && b->priority < a->priority)
        kit_fail(t, "%s has the lane %s before the more urgent %s", a->work_id,
                 a->lane_key, b->work_id);
}

static void check_lane_is_used(struct fold *fold, const struct folded *a)
{
    for (size_t i = 0; i < fold->count; i++) {
        const struct folded *b = &fold->rows[i];
        if (same(a->lane_key, b->lane_key) && same(a->tenant, b->tenant) &&
            (b->runs || b->free))
            return;
    }
    kit_fail(fold->t, "%s waits for the lane %s, which is free", a->work_id, a->lane_key);
}

static void fold_between(struct fold *fold)
{
    for (size_t i = 0; i < fold->count && !fold->t->failed; i++) {
        const struct folded *a = &fold->rows[i];
        if (a->lane_key && a->queues)
            check_lane_is_used(fold, a);
        for (size_t k = 0; k < fold->count && (a->lane_key || a->dedup_key); k++) {
            if (k != i)
                check_between(fold->t, a, &fold->rows[k]);
        }
    }
}

static void found_fault(void *user, const struct hf_finding *finding)
{
    if (finding->bad && !same(finding->what, "disk")) /* the machine's, not the store's */
        kit_fail(user, "the store's own check: %s: %s", finding->what, finding->detail);
}

void kit_fold(struct hf_conform *t)
{
    struct fold fold = { .t = t };
    fold.rows = kit_memory(t, ROWS_MAX * sizeof(*fold.rows));
    if (!fold.rows)
        return;
    /* A store may pass rows and events in any order of the two. */
    struct hf_dump dump = { &fold, fold_row, fold_event };
    t->code = kit_called(t, t->store->methods->dump(t->store, &dump, kit_err(t)));
    kit_code(t, "dump", 0, t->code);
    for (size_t i = 0; i < fold.count && !t->failed; i++) {
        struct folded *trail = &fold.rows[i];
        if (!trail->row_seen)
            kit_fail(t, "%s: events without a row", trail->work_id);
        else
            IS(trail->status, trail->work_id);
    }
    fold_between(&fold);
    t->code = kit_called(t, hf_store_check(t->store, found_fault, t, kit_err(t)));
    kit_code(t, "hf_store_check", 0, t->code);
}
