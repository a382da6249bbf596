/* Making what is due: units, records of skipped slots and the schedules' next slots in one
 * transaction, each schedule as it was read. The caller that loses a race reads again;
 * every lost race is another pass's progress, or a slot that exists already, which is
 * then recorded as such and passed: a duplicate never holds its schedule up. */
#include <string.h>

#include "base/civil.h"
#include "base/err.h"
#include "base/ident.h"
#include "base/text.h"
#include "store/schedule/schedule.h"

#define BATCH 500 /* schedules of one transaction */

struct record {
    struct hf_slot_skips is;
    const char *work_id;
};

/* One schedule that is due, and what becomes of it. */
struct due {
    struct hf_schedule_row row;
    const char *in_the_way; /* a unit, by the overlap rule */
    struct hf_row old;      /* the same, where the new one replaces it */
    bool replaces;
    struct hf_step end; /* of the old one */
    struct hf_slot_plan plan;
    struct record *records;
    size_t record_count;
    int64_t skipped;
    const char *fault; /* it cannot be handled; nothing more holds then */
    const char *last_work_id;
};

struct pass {
    struct schedule_call call;
    struct due *dues;
    size_t count;
    bool careful; /* look whether slots exist before making them */
    struct hf_schedule_report report;
};

/* ---- deciding ---------------------------------------------------------------------- */

static const char *slot_id(struct hf_arena *arena, hf_ms slot)
{
    char text[HF_INSTANT_TEXT];
    return hf_arena_text(arena, hf_instant_text(slot, text));
}

static void record(struct due *due, struct hf_slot_skips is, const char *work_id)
{
    due->records[due->record_count++] = (struct record){ is, work_id };
    due->skipped += is.slots;
}

/* Faults of one schedule (its zone is gone, its policy forbids its work) are its own. */
static int note_fault(struct pass *pass, struct due *due, int rc,
                      const struct hf_err *why, struct hf_err *err)
{
    if (rc == HF_ENOMEM)
        return hf_fail_plain(err, rc);
    due->fault = hf_arena_text(&pass->call.arena, why->message);
    due->plan.made_count = due->record_count = 0;
    return due->fault ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

static int plan_one(struct pass *pass, struct due *due, struct hf_err *err)
{
    struct hf_timing timing;
    struct hf_err why = { 0 };
    int rc = schedule_timing(&pass->call, &due->row.s, &timing, &why);
    if (rc)
        return note_fault(pass, due, rc, &why, err);
    hf_schedule_plan(&due->row.s, &timing, due->in_the_way != NULL,
                     pass->call.look.batch.now, &due->plan);
    due->records = hf_arena_array(&pass->call.arena, HF_PLAN_SKIPS + due->plan.made_count,
                                  sizeof *due->records);
    if (!due->records)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; i < due->plan.skip_count; i++) {
        bool blocked = !hf_same(due->plan.skips[i].reason, "missed") &&
                       !hf_same(due->plan.skips[i].reason, "replaced");
        record(due, due->plan.skips[i], blocked ? due->in_the_way : NULL);
    }
    return 0;
}

/* Units that exist already for the slots of one plan. */
static int drop_duplicates(struct pass *pass, struct due *due, struct hf_err *err)
{
    struct hf_ops ops;
    size_t kept = 0;
    int rc = 0;
    hf_ops_init(&ops, pass->call.store->sql, pass->call.arena.alloc);
    for (size_t i = 0; rc == 0 && i < due->plan.made_count; i++) {
        hf_ms slot = due->plan.made[i];
        hf_ops_reset(&ops);
        hf_ops_call(&ops, HF_SQL_SCHEDULE_SLOT, HF_ANY_COUNT);
        hf_ops_text(&ops, due->row.s.tenant);
        hf_ops_text(&ops, due->row.s.name);
        hf_ops_text(&ops, slot_id(&ops.arena, slot));
        rc = hf_ops_read(&ops, err);
        const struct hf_call *found = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
        if (rc == 0 && found->out_count == 0) {
            due->plan.made[kept++] = slot;
        } else if (rc == 0) {
            const char *id = hf_arena_text(
                &pass->call.arena, hf_out_text(found, 0, HF_COL_SCHEDULE_SLOT_WORK_ID));
            record(due, (struct hf_slot_skips){ slot, slot, 1, false, "duplicate" }, id);
        }
    }
    due->plan.made_count = kept;
    hf_ops_fini(&ops);
    return rc;
}

static bool replaces(const struct due *due)
{
    return due->in_the_way && due->plan.made_count > 0 &&
           hf_overlap_of(due->row.s.overlap) == HF_OVERLAP_REPLACE;
}

/* Reads the units that new ones replace. A unit that is gone by now needs no end. */
static int read_replaced(struct pass *pass, struct hf_err *err)
{
    struct hf_ops *ops = &pass->call.old;
    size_t wanted = 0, at = 0;
    hf_ops_reset(ops);
    for (size_t i = 0; i < pass->count; i++) {
        if (!replaces(&pass->dues[i]))
            continue;
        if (wanted++ == 0)
            hf_ops_call(ops, HF_SQL_WORK_BY_ID, HF_ANY_COUNT);
        else
            hf_ops_again(ops);
        hf_ops_text(ops, pass->dues[i].in_the_way);
    }
    int rc = wanted > 0 ? hf_ops_read(ops, err) : 0;
    if (rc || wanted == 0)
        return rc;
    const struct hf_call *rows = hf_ops_result(ops, 0);
    for (size_t i = 0; rc == 0 && i < pass->count && at < rows->out_count; i++) {
        struct due *due = &pass->dues[i];
        if (!replaces(due) || !hf_same(due->in_the_way, hf_row_id(rows, at)))
            continue;
        rc = hf_row_read(rows, at++, &due->old, err);
        due->replaces = !hf_status_terminal(due->old.status);
    }
    return rc;
}

static int read_due(struct pass *pass, size_t limit, struct hf_err *err)
{
    struct hf_ops *look = &pass->call.look;
    hf_ops_reset(look);
    hf_ops_reset(&pass->call.write);
    hf_arena_reset(&pass->call.arena);
    hf_ops_call(look, HF_SQL_SCHEDULE_DUE, HF_ANY_COUNT);
    hf_ops_i64(look, (int64_t)limit);
    hf_ops_call(look, HF_SQL_SCHEDULE_NEXT, HF_ANY_COUNT);
    int rc = hf_ops_read(look, err);
    if (rc)
        return rc;
    const struct hf_call *found = hf_ops_result(look, 0);
    pass->count = found->out_count;
    pass->report.next_at = hf_out_i64(hf_ops_result(look, 1), 0,
                                      HF_COL_SCHEDULE_NEXT_LOOK_AT);
    pass->dues = hf_arena_array(&pass->call.arena, pass->count, sizeof *pass->dues);
    if (!pass->dues)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; rc == 0 && i < pass->count; i++) {
        schedule_read(found, i, &pass->dues[i].row);
        pass->dues[i].in_the_way = hf_out_text(found, i, HF_COL_SCHEDULE_DUE_IN_THE_WAY);
        rc = plan_one(pass, &pass->dues[i], err);
        if (rc == 0 && pass->careful)
            rc = drop_duplicates(pass, &pass->dues[i], err);
    }
    return rc ? rc : read_replaced(pass, err);
}

/* ---- writing ----------------------------------------------------------------------- */

/* The rows of one schedule's slots, appended to `makings`. */
static int make_units(struct pass *pass, struct due *due, struct hf_env *env,
                      struct hf_making *makings, size_t *count, struct hf_err *err)
{
    struct hf_arena *arena = &pass->call.arena;
    struct hf_caller who = *pass->call.who;
    size_t before = *count;
    who.tenant = due->row.s.tenant;
    who.operation_id = NULL;
    env->actor_kind = "schedule";
    env->actor = due->row.s.name;
    for (size_t i = 0; i < due->plan.made_count; i++) {
        struct hf_making making;
        struct hf_err why = { 0 };
        const char *run_id = slot_id(arena, due->plan.made[i]);
        if (!run_id)
            return hf_fail_plain(err, HF_ENOMEM);
        int rc = schedule_make(&pass->call, &who, env, &due->row.s, run_id, &making,
                               &why);
        if (rc == 0 && due->replaces)
            rc = schedule_replace(&pass->call, env, &due->old, run_id, &due->end, &why);
        if (rc) {
            *count = before;
            return note_fault(pass, due, rc, &why, err);
        }
        makings[(*count)++] = making;
        due->last_work_id = making.row->w.work_id;
    }
    return 0;
}

static void advance(struct hf_ops *ops, const struct due *due, bool first)
{
    const struct hf_slot_plan *plan = &due->plan;
    if (first)
        hf_ops_call(ops, HF_SQL_SCHEDULE_ADVANCE, 1);
    else
        hf_ops_again(ops);
    hf_ops_text(ops, due->row.s.name);
    hf_ops_text(ops, due->row.s.tenant);
    hf_ops_i64(ops, due->row.tick);
    hf_ops_text(ops, plan->next_at ? "active" : "finished");
    hf_ops_i64_opt(ops, plan->next_at);
    hf_ops_i64_opt(ops, plan->next_at);
    hf_ops_i64_opt(ops, plan->made_count ? plan->made[plan->made_count - 1] : 0);
    hf_ops_text(ops, due->last_work_id);
    hf_ops_i64(ops, (int64_t)plan->made_count);
    hf_ops_i64(ops, due->skipped);
}

static void park(struct pass *pass, const struct due *due)
{
    struct hf_ops *ops = &pass->call.write;
    hf_ops_call(ops, HF_SQL_SCHEDULE_PARK, 1);
    hf_ops_text(ops, due->row.s.name);
    hf_ops_text(ops, due->row.s.tenant);
    hf_ops_i64(ops, due->row.tick);
    hf_ops_i64(ops, hf_schedule_retry_at(due->row.s.failures, pass->call.look.batch.now));
    hf_ops_text(ops, due->fault);
}

/* First all compare-and-sets, so that a lost race costs nothing more. */
static void append_schedules(struct pass *pass)
{
    struct hf_ops *ops = &pass->call.write;
    int64_t advanced = 0;
    for (size_t i = 0; i < pass->count; i++)
        if (!pass->dues[i].fault)
            advance(ops, &pass->dues[i], advanced++ == 0);
    if (advanced > 0 && !ops->state)
        ops->batch.calls[0].expect = advanced;
    for (size_t i = 0; i < pass->count; i++)
        if (pass->dues[i].fault)
            park(pass, &pass->dues[i]);
}

static void append_records(struct pass *pass)
{
    for (size_t i = 0; i < pass->count; i++) {
        const struct due *due = &pass->dues[i];
        for (size_t k = 0; k < due->record_count; k++)
            schedule_skip(&pass->call.write, &due->row.s, &due->records[k].is,
                          due->records[k].work_id);
    }
}

static int write_batch(struct pass *pass, struct hf_err *err)
{
    struct hf_ops *ops = &pass->call.write;
    struct hf_env env;
    size_t room = 0, count = 0;
    for (size_t i = 0; i < pass->count; i++)
        room += pass->dues[i].plan.made_count;
    struct hf_making *makings = hf_arena_array(&pass->call.arena, room, sizeof *makings);
    int rc = makings ? 0 : hf_fail_plain(err, HF_ENOMEM);
    if (rc == 0)
        rc = sql_env(pass->call.store, pass->call.who, &pass->call.look.batch, &env, err);
    for (size_t i = 0; rc == 0 && i < pass->count; i++)
        rc = make_units(pass, &pass->dues[i], &env, makings, &count, err);
    if (rc)
        return rc;
    append_schedules(pass);
    append_records(pass);
    for (size_t i = 0; rc == 0 && i < pass->count; i++) {
        struct due *due = &pass->dues[i];
        if (due->replaces && !due->fault)
            rc = schedule_replace_write(&pass->call, &due->old, &due->end, err);
    }
    if (rc)
        return rc;
    hf_rows_insert(ops, makings, count);
    hf_rows_expect_all(ops);
    for (size_t i = 0; i < count; i++)
        if (makings[i].row->status == HF_STATUS_QUEUED)
            sql_wake_input(ops, &makings[i]); /* or the bell of its queue */
    return hf_ops_write(ops, err);
}

static void add_up(struct pass *pass)
{
    struct hf_schedule_report *report = &pass->report;
    report->looked_at += (int64_t)pass->count;
    for (size_t i = 0; i < pass->count; i++) {
        const struct due *due = &pass->dues[i];
        report->failed += due->fault != NULL;
        if (due->fault)
            continue;
        report->made += (int64_t)due->plan.made_count;
        report->skipped += due->skipped;
    }
}

/* One transaction, tried with ever fewer schedules while others are faster. */
static int one_batch(struct pass *pass, struct hf_err *err)
{
    size_t limit = BATCH;
    int rc = HF_EGUARD;
    for (int i = 0; i < HF_TRIES && (rc == HF_EGUARD || rc == HF_ECONFLICT); i++) {
        if (i > 0) {
            pass->report.races++;
            pass->careful = true;
            limit = limit > 1 ? limit / 2 : 1;
        }
        rc = read_due(pass, limit, err);
        if (rc == 0 && pass->count > 0)
            rc = write_batch(pass, err);
    }
    if (rc == HF_EGUARD || rc == HF_ECONFLICT)
        rc = hf_fail_plain(err, HF_EBUSY);
    return rc;
}

int sql_schedule_pass(struct hf_store *handle, const struct hf_caller *who,
                      struct hf_schedule_report *ret_report, struct hf_err *err)
{
    struct pass pass = { 0 };
    schedule_begin(&pass.call, handle, who);
    int rc = one_batch(&pass, err);
    if (rc == 0) {
        add_up(&pass);
        pass.report.more = pass.count > 0;
        *ret_report = pass.report;
    }
    schedule_end(&pass.call);
    return rc;
}
