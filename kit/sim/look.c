/* A look at the store: all rows and all new events, folded into what the checker knows.
 *
 * A shadow is what the checker remembers of one row: its columns at this look, those of the look
 * before (`was_*`), and what its events say. sim_look moves the current columns to `was_*`, reads
 * every row (on_row) and every new event (on_event, which judge.c checks), and then checks each
 * row. A row that was there at the last look and is not read now is lost, unless it was pruned. */
#include <string.h>

#include "sim/inside.h"

static size_t slot_of(const char *id)
{
    uint64_t hash = 1469598103934665603u;
    for (const char *c = id; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    return (size_t)(hash ^ (hash >> 32)) & (SIM_SLOTS - 1);
}

struct sim_shadow *sim_shadow_of(struct hf_sim *sim, const char *id)
{
    for (size_t at = slot_of(id); sim->slots[at]; at = (at + 1) & (SIM_SLOTS - 1)) {
        struct sim_shadow *s = &sim->shadows[sim->slots[at] - 1];
        if (sim_same(s->id, id))
            return s;
    }
    return NULL;
}

struct sim_shadow *sim_shadow_add(struct hf_sim *sim, const char *id)
{
    struct sim_shadow *s = sim_shadow_of(sim, id);
    if (s || sim->shadow_count == SIM_SHADOWS)
        return s;
    size_t at = slot_of(id);
    while (sim->slots[at])
        at = (at + 1) & (SIM_SLOTS - 1);
    s = &sim->shadows[sim->shadow_count++];
    *s = (struct sim_shadow){ .unit = -1, .fresh = true };
    sim_copy(s->id, sizeof(s->id), id);
    sim->slots[at] = (uint16_t)sim->shadow_count;
    return s;
}

static int pid_of(const char *holder)
{
    const char *at = holder ? strstr(holder, "\"pid\":") : NULL;
    int pid = 0;
    for (const char *c = at ? at + 6 : ""; *c >= '0' && *c <= '9' && pid < 100000000; c++)
        pid = pid * 10 + (*c - '0');
    return pid;
}

/* The row's columns become those of the look before, and it counts as not seen at this look until
 * on_row has read it. */
static void remember_last_look(struct sim_shadow *s)
{
    s->here = false;
    s->was_status = s->status;
    s->was_generation = s->generation;
    s->was_failures = s->failures;
    s->was_fence = s->fence;
    s->was_expires_at = s->expires_at;
    s->was_ttl_ms = s->ttl_ms;
    s->was_lease_incarnation = s->lease_incarnation;
    s->was_deadline_at = s->deadline_at;
    s->was_next_retry_at = s->next_retry_at;
    s->was_abandon_asked = s->abandon_asked;
    s->was_holder_pid = s->holder_pid;
}

static void read_row(struct sim_shadow *s, const struct hf_work *work)
{
    s->status = hf_status_of(work->status);
    s->disposition = work->disposition ? hf_disposition_of(work->disposition)
                                       : HF_DISPOSITION_NONE;
    s->generation = work->generation;
    s->attempts = work->attempt_count;
    s->failures = work->failures;
    s->max_attempts = work->max_attempts;
    s->fence = work->lease_fence;
    s->expires_at = work->lease_expires_at;
    s->ttl_ms = work->lease_ttl_ms;
    s->deadline_at = work->deadline_at;
    s->next_retry_at = work->next_retry_at;
    s->due_at = work->due_at;
    s->owned = work->owner != NULL;
    s->leased = work->lease_expires_at != 0;
    s->gated = work->gate != NULL;
    s->gate_of_limit = sim_same(work->gate, "limit") || sim_same(work->gate, "rate");
    s->waiting_lane = work->gate && work->gate[0] == 'l' && work->gate[1] == 'a';
    s->held = work->gate && work->gate[0] == 'h';
    s->abandon_asked = work->abandon_request != NULL;
    s->bound = s->disposition == HF_DISPOSITION_OWNER_BOUND &&
               work->first_started_at != 0;
    s->holder_pid = pid_of(work->holder);
    s->talk = sim_talk_of(work->session_id);
    sim_limits_read(s, work);
}

/* A unit has one row, as long as it is not pruned. */
static void place_unit(struct hf_sim *sim, struct sim_shadow *s, const char *source_id)
{
    s->unit = sim_unit_of(sim, source_id);
    if (s->unit < 0)
        return;
    int *row = &sim->row_of[s->unit];
    const struct sim_shadow *other = *row ? &sim->shadows[*row - 1] : NULL;
    if (other && other != s && !other->gone && other->here)
        sim_violate(sim, "unit u%d has two rows: %s and %s", s->unit, other->id, s->id);
    *row = (int)(s - sim->shadows) + 1;
}

/* Units of one occurrence appear together. */
static void place_delivery(struct hf_sim *sim, struct sim_shadow *s,
                           const struct hf_work *work)
{
    s->occurrence = sim_text_hash(work->source_run_id, NULL);
    for (size_t i = 0; i < sim->shadow_count; i++) {
        const struct sim_shadow *other = &sim->shadows[i];
        if (other->occurrence == s->occurrence && !other->fresh)
            sim_violate(sim, "occurrence %s: row %s came after the others were there",
                        work->source_run_id, s->id);
    }
}

/* A slot of a schedule, or an occurrence for a subscription, has one row, even if an
 * earlier one was pruned. */
static void place_slot(struct hf_sim *sim, struct sim_shadow *s,
                       const struct hf_work *work)
{
    enum hf_source source = hf_source_of(work->source_system);
    bool escalated = work->source_run_id && work->source_run_id[0] == 'e';
    if (!work->source_run_id || escalated ||
        (source != HF_SOURCE_SCHEDULER && source != HF_SOURCE_CONTROL))
        return;
    s->slot = sim_text_hash(work->source_id, work->source_run_id);
    if (source == HF_SOURCE_SCHEDULER) {
        s->schedule = sim_schedule_of(work->source_id);
        sim_mark(sim, HF_SIM_MARK_SLOT_MADE);
    } else {
        place_delivery(sim, s, work);
    }
    for (size_t i = 0; i < sim->shadow_count; i++) {
        const struct sim_shadow *other = &sim->shadows[i];
        if (other != s && other->slot == s->slot)
            sim_violate(sim, "%s of %s was made twice", work->source_run_id,
                        work->source_id);
    }
}

static void on_row(void *user, const struct hf_work *work, const char *settled_verb,
                   hf_ms check_at, int64_t store)
{
    struct hf_sim *sim = user;
    struct sim_shadow *s = NULL;
    (void)settled_verb;
    (void)check_at;
    while (sim->look_at < sim->shadow_count && sim->shadows[sim->look_at].gone)
        sim->look_at++;
    if (sim->look_at < sim->shadow_count &&
        sim_same(sim->shadows[sim->look_at].id, work->work_id))
        s = &sim->shadows[sim->look_at++];
    else
        s = sim_shadow_add(sim, work->work_id);
    if (!s)
        return; /* more rows than are watched */
    s->here = true;
    read_row(s, work);
    s->lease_incarnation = store;
    if (s->unit < 0 && s->fresh)
        place_unit(sim, s, work->source_id);
    if (s->slot == 0 && s->fresh)
        place_slot(sim, s, work);
}

static void on_event(void *user, const struct hf_event *event)
{
    struct hf_sim *sim = user;
    if (event->event_id <= sim->last_event)
        return;
    sim->last_event = event->event_id;
    struct sim_shadow *s = sim_shadow_of(sim, event->work_id);
    if (s)
        sim_judge_event(sim, s, event);
}

/* Prune takes a row's events with it. Could another actor have ended it while prune was
 * at work? */
static bool may_have_ended(const struct hf_sim *sim, const struct sim_shadow *s)
{
    for (size_t i = 0; i < sim->window_count; i++) {
        const struct sim_op *op = &sim->window[i].op;
        if (sim_sweeps(op->kind) ||
            ((op->kind == SIM_OP_CHANGE || op->kind == SIM_OP_COMMIT) &&
             sim_same(op->id, s->id)))
            return true;
    }
    return hf_status_terminal(s->at) || s->fresh;
}

/* After all rows were read: the rows that are gone, and each that is there. */
static void check_rows(struct hf_sim *sim)
{
    for (size_t i = 0; i < sim->shadow_count; i++) {
        struct sim_shadow *s = &sim->shadows[i];
        if (!s->here && !s->gone) {
            if (!sim->pruned || !may_have_ended(sim, s))
                sim_violate(sim, "row %s (%s) is lost", s->id, hf_status_word(s->at));
            s->gone = true;
            sim_mark(sim, HF_SIM_MARK_PRUNED);
        }
        if (!s->gone)
            sim_judge_row(sim, s);
        s->fresh = false;
    }
}

void sim_look(struct hf_sim *sim)
{
    struct hf_dump dump = { sim, on_row, on_event };
    struct hf_store *store = sim->handles[0];
    struct hf_err err = { 0 };
    if (sim->nesting > 0)
        return;
    int armed = sim->armed;
    sim->armed = -1;
    sim->fail_alloc = 0;
    sim->look_at = 0;
    for (size_t i = 0; i < sim->shadow_count; i++)
        remember_last_look(&sim->shadows[i]);
    int rc = store->methods->dump(store, &dump, &err);
    if (rc)
        sim_violate(sim, "the store cannot be read: %s", err.message);
    else
        check_rows(sim);
    sim_judge_all(sim);
    sim_limits_look(sim);
    sim_cron_look(sim);
    sim_talks_look(sim);
    sim->armed = armed;
    sim->window_count = 0;
    sim->calls_since_look = 0;
    sim->pruned = false;
    sim->wall_most = INT64_MIN;
    sim->mono_most = INT64_MIN;
}
