/* Bringing a set of schedules in line with its file, in one transaction. */
#include "base/err.h"
#include "base/text.h"
#include "store/schedule/schedule.h"

static const char orphan[] = "orphan";

struct sync {
    struct schedule_call call;
    const struct hf_schedule_set *set;
    struct hf_sync_report report;
};

static int read_all(struct sync *sync, struct hf_err *err)
{
    struct hf_ops *look = &sync->call.look;
    hf_ops_reset(look);
    hf_ops_reset(&sync->call.write);
    sync->report = (struct hf_sync_report){ 0 };
    hf_ops_call(look, HF_SQL_SCHEDULE_OF_ORIGIN, HF_ANY_COUNT);
    hf_ops_text(look, sync->call.who->tenant);
    hf_ops_text(look, sync->set->name);
    for (size_t i = 0; i < sync->set->count; i++) {
        if (i == 0)
            hf_ops_call(look, HF_SQL_SCHEDULE_GET, HF_ANY_COUNT);
        else
            hf_ops_again(look);
        hf_ops_text(look, sync->set->items[i].name);
        hf_ops_text(look, sync->call.who->tenant);
    }
    return hf_ops_read(look, err);
}

/* The stored one of that name, among those that were read. */
static bool stored(const struct sync *sync, const char *name,
                   struct hf_schedule_row *ret_row)
{
    const struct hf_call *found = hf_ops_result(&sync->call.look, 1);
    for (size_t i = 0; i < found->out_count; i++) {
        if (hf_same(hf_out_text(found, i, HF_COL_SCHEDULE_OF_ORIGIN_NAME), name)) {
            schedule_read(found, i, ret_row);
            return true;
        }
    }
    return false;
}

static int foreign(struct hf_err *err, const struct hf_schedule *schedule)
{
    return hf_fail(err, HF_ECONFLICT, "name", "schedule %s belongs to the set %s",
                   schedule->name, schedule->origin);
}

/* One that is there. What the set itself had paused as an orphan continues. */
static int align(struct sync *sync, const struct hf_schedule_spec *wanted,
                 const struct hf_schedule_row *was, struct hf_err *err)
{
    struct hf_schedule_row row, next;
    if (was->s.origin && !hf_same(was->s.origin, sync->set->name))
        return foreign(err, &was->s);
    int rc = schedule_define(&sync->call, wanted, was, &row, err);
    if (rc)
        return rc;
    bool back = hf_same(was->s.state, "paused") && hf_same(was->s.state_reason, orphan);
    bool same = hf_schedule_same(&row.s, &was->s);
    if (!same && sync->set->keep_existing) {
        row = *was;
        sync->report.kept++;
    } else if (same && !back) {
        sync->report.unchanged++;
    } else {
        sync->report.updated++;
    }
    if (back) {
        rc = schedule_resume(&sync->call, &row, &next, err);
        if (rc)
            return rc;
        row = next;
    }
    row.s.origin = sync->set->name;
    bool moved = !hf_same(was->s.origin, row.s.origin);
    if (moved || row.s.revision != was->s.revision)
        schedule_write(&sync->call.write, &row);
    return 0;
}

static int apply_item(struct sync *sync, const struct hf_schedule_spec *wanted,
                      struct hf_err *err)
{
    struct hf_schedule_row was, row;
    if (stored(sync, wanted->name, &was))
        return align(sync, wanted, &was, err);
    int rc = schedule_define(&sync->call, wanted, NULL, &row, err);
    if (rc)
        return rc;
    row.s.origin = sync->set->name;
    schedule_insert(&sync->call.write, &row);
    sync->report.added++;
    return 0;
}

static bool declared(const struct hf_schedule_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++)
        if (hf_same(set->items[i].name, name))
            return true;
    return false;
}

static void apply_orphan(struct sync *sync, const struct hf_schedule_row *was)
{
    struct hf_schedule_row row;
    bool active = hf_same(was->s.state, "active");
    if (sync->set->orphans == HF_ORPHANS_REMOVE) {
        schedule_delete(&sync->call.write, was);
        sync->report.removed++;
    } else if (sync->set->orphans == HF_ORPHANS_PAUSE && active) {
        schedule_pause(was, orphan, sync->call.look.batch.now, &row);
        schedule_write(&sync->call.write, &row);
        sync->report.paused++;
    } else {
        sync->report.kept++;
    }
}

static int sync_once(struct sync *sync, struct hf_err *err)
{
    int rc = read_all(sync, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < sync->set->count; i++) {
        struct hf_err why = { 0 };
        const struct hf_schedule_spec *wanted = &sync->set->items[i];
        rc = apply_item(sync, wanted, &why);
        if (rc)
            return hf_fail(err, rc, why.field, "schedules[%zu] (%.80s): %s", i,
                           wanted->name, why.message);
    }
    const struct hf_call *of_set = hf_ops_result(&sync->call.look, 0);
    for (size_t i = 0; i < of_set->out_count; i++) {
        struct hf_schedule_row row;
        schedule_read(of_set, i, &row);
        if (!declared(sync->set, row.s.name))
            apply_orphan(sync, &row);
    }
    return sync->call.write.batch.call_count || sync->call.write.state
               ? hf_ops_write(&sync->call.write, err)
               : 0;
}

int sql_schedule_sync(struct hf_store *handle, const struct hf_caller *who,
                      const struct hf_schedule_set *set,
                      struct hf_sync_report *ret_report, struct hf_err *err)
{
    struct sync sync = { .set = set };
    schedule_begin(&sync.call, handle, who);
    int rc = HF_EGUARD;
    for (int i = 0; rc == HF_EGUARD && i < HF_TRIES; i++)
        rc = sync_once(&sync, err);
    if (rc == HF_EGUARD)
        rc = hf_fail_plain(err, HF_EBUSY);
    if (rc == 0)
        *ret_report = sync.report;
    schedule_end(&sync.call);
    return rc;
}
