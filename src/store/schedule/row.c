/* The rows of schedules: read from results, appended to batches, and changed by the verbs.
 *
 * A slot is one time at which a schedule is due; its work is made once, as a unit of work, or
 * skipped with a record. `next_at` is the next slot. `look_at` is when a pass of the scheduler has
 * to look at the row: the next slot, or later after a failure; 0 means never. `tick` counts the
 * writes of the row, and each write names the tick that it has read. */
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/text.h"
#include "store/schedule/schedule.h"

void schedule_read(const struct hf_call *call, size_t i, struct hf_schedule_row *ret_row)
{
    struct hf_schedule_row row = {
        .look_at = hf_out_i64(call, i, HF_COL_SCHEDULE_GET_LOOK_AT),
        .tick = hf_out_i64(call, i, HF_COL_SCHEDULE_GET_TICK)
    };
    hf_assert(hf_schedule_field_count == HF_COL_SCHEDULE_GET_LOOK_AT);
    hf_fields_read(call, i, hf_schedule_table, &row.s);
    *ret_row = row;
}

static void add_columns(struct hf_ops *ops, const struct hf_schedule_row *row)
{
    hf_fields_append(ops, hf_schedule_table, &row->s);
    hf_ops_i64_opt(ops, row->look_at);
    hf_ops_i64(ops, row->tick);
}

void schedule_insert(struct hf_ops *ops, const struct hf_schedule_row *row)
{
    hf_ops_call(ops, HF_SQL_SCHEDULE_INSERT, 1);
    add_columns(ops, row);
}

void schedule_write(struct hf_ops *ops, const struct hf_schedule_row *row)
{
    hf_ops_call(ops, HF_SQL_SCHEDULE_WRITE, 1);
    add_columns(ops, row);
}

void schedule_skip(struct hf_ops *ops, const struct hf_schedule *schedule,
                   const struct hf_slot_skips *skips, const char *work_id)
{
    hf_ops_call(ops, HF_SQL_SCHEDULE_SKIP_ADD, HF_ANY_COUNT);
    hf_ops_text(ops, schedule->name);
    hf_ops_text(ops, schedule->tenant);
    hf_ops_i64(ops, skips->first_at);
    hf_ops_text(ops, skips->reason);
    hf_ops_i64(ops, skips->last_at);
    hf_ops_i64(ops, skips->slots);
    hf_ops_i64(ops, skips->more);
    hf_ops_text(ops, work_id);
}

/* ---- a verb at work ---------------------------------------------------------------- */

void schedule_begin(struct schedule_call *call, struct hf_store *store,
                    const struct hf_caller *who)
{
    *call = (struct schedule_call){ .store = sql_store_of(store), .who = who };
    hf_zones_init(&call->zones, store->alloc);
    hf_arena_init(&call->arena, store->alloc);
    hf_ops_init(&call->old, call->store->sql, store->alloc);
    hf_ops_init(&call->look, call->store->sql, store->alloc);
    hf_ops_init(&call->write, call->store->sql, store->alloc);
}

void schedule_end(struct schedule_call *call)
{
    hf_ops_fini(&call->write);
    hf_ops_fini(&call->look);
    hf_ops_fini(&call->old);
    hf_arena_fini(&call->arena);
    hf_zones_fini(&call->zones);
}

int schedule_find(struct schedule_call *call, const char *name,
                  struct hf_schedule_row *ret_row, struct hf_err *err)
{
    hf_ops_reset(&call->look);
    hf_ops_reset(&call->write);
    hf_ops_call(&call->look, HF_SQL_SCHEDULE_GET, HF_ANY_COUNT);
    hf_ops_text(&call->look, name);
    hf_ops_text(&call->look, call->who->tenant);
    int rc = hf_ops_read(&call->look, err);
    if (rc || hf_ops_result(&call->look, 0)->out_count == 0)
        return rc;
    schedule_read(hf_ops_result(&call->look, 0), 0, ret_row);
    return 1;
}

int schedule_timing(struct schedule_call *call, const struct hf_schedule *schedule,
                    struct hf_timing *ret_timing, struct hf_err *err)
{
    const struct hf_zone *zone = NULL;
    int rc = hf_zones_get(&call->zones, schedule->zone, &zone, err);
    return rc ? rc : hf_schedule_timing(schedule, zone, ret_timing, err);
}

/* ---- changes ----------------------------------------------------------------------- */

/* The slot from now on, and what follows from there being one or none. */
static void set_next(struct hf_schedule_row *row, hf_ms next_at)
{
    bool paused = hf_same(row->s.state, "paused");
    row->s.next_at = next_at;
    if (next_at == 0)
        row->s.state = "finished";
    else if (!paused)
        row->s.state = "active";
    row->look_at = next_at != 0 && !paused ? next_at : 0;
    row->s.failures = 0;
    row->s.last_error = NULL;
}

static void note_change(struct hf_schedule_row *row, hf_ms now)
{
    row->s.revision++;
    row->s.updated_at = now;
}

/* Appends the record of the slots that are due and will never be made, and counts them in
 * row->s.skipped. A time zone that cannot be read any more is no error here: there is no record
 * then, and the change of the schedule continues. */
static void drop_due(struct schedule_call *call, struct hf_schedule_row *row,
                     const char *reason, hf_ms now)
{
    struct hf_timing timing;
    struct hf_slot_skips skips;
    struct hf_err ignored;
    if (row->s.next_at == 0 || row->s.next_at > now ||
        schedule_timing(call, &row->s, &timing, &ignored) ||
        !hf_slots_skip(&timing, row->s.next_at, now, reason, &skips))
        return;
    schedule_skip(&call->write, &row->s, &skips, NULL);
    row->s.skipped += skips.slots;
}

int schedule_make(struct schedule_call *call, const struct hf_caller *who,
                  struct hf_env *env, const struct hf_schedule *schedule,
                  const char *run_id, struct hf_making *ret_making, struct hf_err *err)
{
    struct hf_work_spec unit;
    struct hf_row *row = hf_arena_new(&call->arena, struct hf_row);
    uint8_t *hash = hf_arena_take(&call->arena, HF_DIGEST_BYTES);
    if (!row || !hash)
        return hf_fail_plain(err, HF_ENOMEM);
    int rc = hf_schedule_unit(&call->arena, schedule, run_id, &unit, err);
    struct sql_waking waking = { schedule->wake_session, &unit };
    struct hf_making making = { .row = row, .hash = hash };
    if (rc == 0 && waking.session_id)
        rc = sql_wake_row(call->store, &call->arena, who, env, &waking, &making, err);
    else if (rc == 0)
        rc = sql_make_row(call->store, &call->arena, who, env, &unit, row, hash, err);
    if (rc == 0 && waking.session_id && !making.row->w.session_id)
        rc = hf_fail(err, HF_ENOTFOUND, "wake_session", "there is no session %.100s",
                     waking.session_id);
    if (rc)
        return rc;
    if (waking.session_id) { /* an input has the key of the overlap rule too */
        *row = *making.row;
        row->w.dedup_key = unit.dedup_key;
        making.row = row;
    }
    *ret_making = making;
    return 0;
}

int schedule_unit(struct schedule_call *call, const struct hf_schedule *schedule,
                  const char *run_id, struct hf_making *ret_making, struct hf_err *err)
{
    struct hf_env env;
    int rc = sql_env(call->store, call->who, &call->look.batch, &env, err);
    return rc ? rc
              : schedule_make(call, call->who, &env, schedule, run_id, ret_making, err);
}

int schedule_replace(struct schedule_call *call, const struct hf_env *env,
                     const struct hf_row *old, const char *run_id,
                     struct hf_step *ret_step, struct hf_err *err)
{
    struct hf_policy policy;
    struct hf_env with = *env;
    struct hf_change cancel = { .size = sizeof cancel,
                                .verb = HF_VERB_CANCEL,
                                .id = old->w.work_id,
                                .reason = hf_arena_join(&call->arena, "replaced by ",
                                                        run_id) };
    if (!cancel.reason)
        return hf_fail_plain(err, HF_ENOMEM);
    int rc = sql_policy(call->store, &call->arena, old->source, old->w.kind, &policy,
                        err);
    with.policy = &policy;
    if (rc == 0)
        rc = hf_step_change(&call->arena, old, &cancel, &with, ret_step, err);
    if (rc == 0 && !hf_status_terminal(ret_step->row.status))
        rc = hf_fail(
            err, HF_ETRANSITION, "overlap",
            "unit %s is owner_bound and cannot be replaced at once: wait for its "
            "end, or ask for it with `holdfast work cancel`",
            old->w.work_id);
    return rc;
}

int schedule_replace_write(struct schedule_call *call, const struct hf_row *old,
                           const struct hf_step *step, struct hf_err *err)
{
    hf_row_write(&call->write, old, &step->row);
    return sql_wake_ended(call->store, call->who, &call->write, old, &step->row, err);
}

/* What stays when the definition is replaced. `failures` and `last_error` do not, since they are
 * about the old definition. */
static void keep_facts(struct hf_schedule_row *row, const struct hf_schedule_row *was)
{
    const struct hf_schedule *old = &was->s;
    row->tick = was->tick;
    row->look_at = was->look_at;
    row->s.state = old->state;
    row->s.state_reason = old->state_reason;
    row->s.origin = old->origin;
    row->s.revision = old->revision;
    row->s.next_at = old->next_at;
    row->s.last_slot_at = old->last_slot_at;
    row->s.last_work_id = old->last_work_id;
    row->s.made = old->made;
    row->s.skipped = old->skipped;
    row->s.created_at = old->created_at;
}

/* Makes the row that `wanted` asks for in *ret_row: a new one where `was` is NULL, otherwise `was`
 * with another definition. The caller writes it. Appends to call->write the record of the slots
 * that a changed timing drops. The errors are those of a bad definition, and of a unit that the
 * policy in force refuses. */
int schedule_define(struct schedule_call *call, const struct hf_schedule_spec *wanted,
                    const struct hf_schedule_row *was, struct hf_schedule_row *ret_row,
                    struct hf_err *err)
{
    struct hf_schedule_row row = { .tick = 1 };
    struct hf_timing timing;
    const struct hf_zone *zone = NULL;
    struct hf_making unit;
    hf_ms now = call->look.batch.now;
    int rc = hf_zones_get(&call->zones, wanted->zone ? wanted->zone : "UTC", &zone, err);
    if (rc == 0)
        rc = hf_schedule_build(wanted, zone, now, &row.s, err);
    row.s.tenant = call->who->tenant;
    if (rc ==
        0) /* a trial, under any run id: does the policy allow such a unit? It is dropped */
        rc = schedule_unit(call, &row.s, "slot", &unit, err);
    if (rc == 0 && was && wanted->every_ms && !wanted->start &&
        was->s.every_ms == wanted->every_ms)
        row.s.start_at =
            was->s.start_at; /* the same interval: its slots stay where they are */
    if (rc == 0)
        rc = hf_schedule_timing(&row.s, zone, &timing, err);
    if (rc)
        return rc;
    bool retimed = !was || !hf_schedule_same_timing(&row.s, &was->s);
    if (was) {
        keep_facts(&row, was);
        if (!hf_schedule_same(&row.s, &was->s))
            note_change(&row, now);
        else
            row.s.updated_at = was->s.updated_at;
        if (retimed) {
            struct hf_schedule_row old = *was; /* its timing says which slots were due */
            drop_due(call, &old, "updated", now);
            row.s.skipped =
                old.s.skipped; /* drop_due has counted the dropped slots there */
        }
    }
    if (retimed)
        set_next(&row, hf_schedule_first(&row.s, &timing, now));
    *ret_row = row;
    return 0;
}

void schedule_pause(const struct hf_schedule_row *was, const char *reason, hf_ms now,
                    struct hf_schedule_row *ret_row)
{
    *ret_row = *was;
    ret_row->s.state = "paused";
    ret_row->s.state_reason = reason;
    ret_row->look_at = 0;
    note_change(ret_row, now);
}

int schedule_resume(struct schedule_call *call, const struct hf_schedule_row *was,
                    struct hf_schedule_row *ret_row, struct hf_err *err)
{
    struct hf_timing timing;
    hf_ms now = call->look.batch.now;
    struct hf_schedule_row row = *was;
    int rc = schedule_timing(call, &row.s, &timing, err);
    if (rc)
        return rc;
    row.s.state = "active";
    row.s.state_reason = NULL;
    if (timing.kind == HF_TIMING_ONCE) {
        set_next(&row, row.s.next_at); /* the catch-up rule decides about it */
    } else {
        drop_due(call, &row, "paused", now);
        set_next(&row, hf_schedule_first(&row.s, &timing, now));
    }
    note_change(&row, now);
    *ret_row = row;
    return 0;
}
