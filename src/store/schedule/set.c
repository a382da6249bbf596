/* Verbs over one schedule, and reading them. Every change reads, decides and writes under a
 * compare-and-set on the tick that it read. */
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "store/batch/place.h"
#include "store/schedule/schedule.h"

static int not_there(struct hf_err *err, const char *name)
{
    return hf_fail(err, HF_ENOTFOUND, "name", "there is no schedule %s", name);
}

static int check_revision(const struct hf_schedule_row *row, int64_t revision,
                          struct hf_err *err)
{
    if (revision == 0 || revision == row->s.revision)
        return 0;
    return hf_fail(err, HF_ECONFLICT, "revision",
                   "schedule %s has revision %lld, not %lld: read it again", row->s.name,
                   (long long)row->s.revision, (long long)revision);
}

static int answer_row(struct hf_schedules *schedules, const struct hf_schedule *schedule,
                      bool changed, struct hf_err *err)
{
    if (changed)
        hf_schedules_set_changed(schedules);
    return hf_schedules_add(schedules, schedule) ? hf_fail_plain(err, HF_ENOMEM) : 0;
}

/* One try of a change: 0 done, HF_EGUARD a caller was faster. */
typedef int attempt(struct schedule_call *call, const void *request,
                    struct hf_schedules *schedules, struct hf_err *err);

static int run_change(struct hf_store *handle, const struct hf_caller *who, attempt *try,
                      const void *request, struct hf_schedules *schedules,
                      struct hf_err *err)
{
    struct schedule_call call;
    schedule_begin(&call, handle, who);
    int rc = HF_EGUARD;
    for (int i = 0; rc == HF_EGUARD && i < HF_TRIES; i++)
        rc = try(&call, request, schedules, err);
    if (rc == HF_EGUARD)
        rc = hf_fail_plain(err, HF_EBUSY);
    schedule_end(&call);
    return rc;
}

/* ---- add, update ------------------------------------------------------------------- */

static int try_add(struct schedule_call *call, const void *request,
                   struct hf_schedules *schedules, struct hf_err *err)
{
    const struct hf_schedule_spec *wanted = request;
    struct hf_schedule_row was, row;
    int found = schedule_find(call, wanted->name, &was, err);
    if (found < 0)
        return found;
    int rc = schedule_define(call, wanted, found ? &was : NULL, &row, err);
    if (rc)
        return rc;
    if (found && !hf_schedule_same(&row.s, &was.s))
        return hf_fail(err, HF_ECONFLICT, "name",
                       "schedule %s exists with another definition; update changes it",
                       wanted->name);
    if (found)
        return answer_row(schedules, &was.s, false, err);
    schedule_insert(&call->write, &row);
    rc = hf_ops_write(&call->write, err);
    return rc ? rc : answer_row(schedules, &row.s, true, err);
}

static int sql_schedule_add(struct hf_store *handle, const struct hf_caller *who,
                            const struct hf_schedule_spec *wanted,
                            struct hf_schedules *schedules, struct hf_err *err)
{
    return run_change(handle, who, try_add, wanted, schedules, err);
}

struct update {
    const struct hf_schedule_spec *wanted;
    int64_t revision;
};

static int try_update(struct schedule_call *call, const void *request,
                      struct hf_schedules *schedules, struct hf_err *err)
{
    const struct update *update = request;
    struct hf_schedule_row was, row;
    int found = schedule_find(call, update->wanted->name, &was, err);
    if (found <= 0)
        return found ? found : not_there(err, update->wanted->name);
    int rc = check_revision(&was, update->revision, err);
    if (rc == 0)
        rc = schedule_define(call, update->wanted, &was, &row, err);
    if (rc)
        return rc;
    bool changed = !hf_schedule_same(&row.s, &was.s);
    if (changed) {
        schedule_write(&call->write, &row);
        rc = hf_ops_write(&call->write, err);
    }
    return rc ? rc : answer_row(schedules, changed ? &row.s : &was.s, changed, err);
}

static int sql_schedule_update(struct hf_store *handle, const struct hf_caller *who,
                               const struct hf_schedule_spec *wanted, int64_t revision,
                               struct hf_schedules *schedules, struct hf_err *err)
{
    struct update update = { wanted, revision };
    return run_change(handle, who, try_update, &update, schedules, err);
}

/* ---- pause, resume, remove --------------------------------------------------------- */

static int decide(struct schedule_call *call, const struct hf_schedule_change *change,
                  const struct hf_schedule_row *was, struct hf_schedule_row *ret_row,
                  bool *ret_changed, struct hf_err *err)
{
    bool paused = hf_same(was->s.state, "paused");
    bool wants_pause = change->verb == HF_SCHEDULE_PAUSE;
    *ret_row = *was;
    *ret_changed = paused != wants_pause;
    if (hf_same(was->s.state, "finished"))
        return hf_fail(err, HF_ETRANSITION, "state",
                       "schedule %s is finished: it has no slot left", was->s.name);
    if (!*ret_changed)
        return 0;
    if (!wants_pause)
        return schedule_resume(call, was, ret_row, err);
    schedule_pause(was, change->reason, call->look.batch.now, ret_row);
    return 0;
}

void schedule_delete(struct hf_ops *ops, const struct hf_schedule_row *row)
{
    hf_ops_call(ops, HF_SQL_SCHEDULE_DELETE, 1);
    hf_ops_text(ops, row->s.name);
    hf_ops_text(ops, row->s.tenant);
    hf_ops_i64(ops, row->tick);
    hf_ops_call(ops, HF_SQL_SCHEDULE_SKIP_DELETE, HF_ANY_COUNT);
    hf_ops_text(ops, row->s.name);
    hf_ops_text(ops, row->s.tenant);
}

static int try_change(struct schedule_call *call, const void *request,
                      struct hf_schedules *schedules, struct hf_err *err)
{
    const struct hf_schedule_change *change = request;
    struct hf_schedule_row was, row;
    bool changed = true;
    int found = schedule_find(call, change->name, &was, err);
    if (found <= 0)
        return found ? found : not_there(err, change->name);
    int rc = check_revision(&was, change->revision, err);
    if (rc)
        return rc;
    if (change->verb == HF_SCHEDULE_REMOVE) {
        row = was;
        schedule_delete(&call->write, &was);
    } else {
        rc = decide(call, change, &was, &row, &changed, err);
        if (rc == 0 && changed)
            schedule_write(&call->write, &row);
    }
    if (rc == 0 && changed)
        rc = hf_ops_write(&call->write, err);
    return rc ? rc : answer_row(schedules, &row.s, changed, err);
}

static int sql_schedule_change(struct hf_store *handle, const struct hf_caller *who,
                               const struct hf_schedule_change *change,
                               struct hf_schedules *schedules, struct hf_err *err)
{
    return run_change(handle, who, try_change, change, schedules, err);
}

/* ---- reading ----------------------------------------------------------------------- */

static int sql_schedule_get(struct hf_store *handle, const struct hf_caller *who,
                            const char *name, struct hf_schedules *schedules,
                            struct hf_err *err)
{
    struct schedule_call call;
    struct hf_schedule_row row;
    schedule_begin(&call, handle, who);
    int rc = schedule_find(&call, name, &row, err);
    if (rc == 0)
        rc = not_there(err, name);
    else if (rc == 1)
        rc = answer_row(schedules, &row.s, false, err);
    schedule_end(&call);
    return rc;
}

static void add_list(struct hf_ops *ops, const struct sql_named_list *list,
                     const struct sql_range *range,
                     const struct hf_schedule_filter *filter)
{
    hf_ops_call(ops, list->newest ? HF_SQL_SCHEDULE_LIST_NEWEST : HF_SQL_SCHEDULE_LIST,
                HF_ANY_COUNT);
    sql_range_names(ops, list, range);
    hf_ops_text(ops, list->tenant);
    hf_ops_text(ops, filter->state);
    hf_ops_text(ops, filter->origin);
    sql_range_bounds(ops, list, range, filter->limit);
}

static int add_row(void *schedules, const struct hf_call *found, size_t i,
                   struct sql_place *ret_place)
{
    struct hf_schedule_row row;
    schedule_read(found, i, &row);
    *ret_place = (struct sql_place){ row.s.created_at, { row.s.tenant, row.s.name } };
    return hf_schedules_add(schedules, &row.s);
}

static int sql_schedule_list(struct hf_store *handle, const struct hf_caller *who,
                             const struct hf_schedule_filter *filter,
                             struct hf_schedules *schedules, struct hf_err *err)
{
    struct hf_ops ops;
    struct sql_range range;
    const struct sql_named_list list = { .window = filter->newest
                                                       ? HF_SQL_SCHEDULE_WINDOW_NEWEST
                                                       : HF_SQL_SCHEDULE_WINDOW,
                                         .names = 2,
                                         .newest = filter->newest,
                                         .tenant = who->tenant,
                                         .cursor = filter->after };
    const char *next = NULL;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    int rc = sql_range_read(ops.sql, &ops.arena, &list, &range, err);
    if (rc == 0) {
        add_list(&ops, &list, &range, filter);
        rc = hf_ops_read(&ops, err);
    }
    if (rc == 0 &&
        sql_range_show(hf_ops_result(&ops, 0), filter->limit, add_row, schedules, &range))
        rc = hf_fail_plain(err, HF_ENOMEM);
    if (rc == 0 && range.more) {
        next = sql_place_cursor(&ops.arena, &list, &range.last);
        if (!next || hf_schedules_set_next(schedules, next))
            rc = hf_fail_plain(err, HF_ENOMEM);
    }
    hf_ops_fini(&ops);
    return rc;
}

static int sql_schedule_skips(struct hf_store *handle, const struct hf_caller *who,
                              const char *name, size_t limit,
                              struct hf_schedule_skips *skips, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_SCHEDULE_SKIP_LIST, HF_ANY_COUNT);
    hf_ops_text(&ops, name);
    hf_ops_text(&ops, who->tenant);
    hf_ops_i64(&ops, (int64_t)limit);
    int rc = hf_ops_read(&ops, err);
    const struct hf_call *found = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
    for (size_t i = 0; rc == 0 && i < found->out_count; i++) {
        struct hf_schedule_skip skip = {
            .first_at = hf_out_i64(found, i, HF_COL_SCHEDULE_SKIP_LIST_FIRST_AT),
            .last_at = hf_out_i64(found, i, HF_COL_SCHEDULE_SKIP_LIST_LAST_AT),
            .slots = hf_out_i64(found, i, HF_COL_SCHEDULE_SKIP_LIST_SLOTS),
            .more = hf_out_i64(found, i, HF_COL_SCHEDULE_SKIP_LIST_MORE) != 0,
            .reason = hf_out_text(found, i, HF_COL_SCHEDULE_SKIP_LIST_REASON),
            .work_id = hf_out_text(found, i, HF_COL_SCHEDULE_SKIP_LIST_WORK_ID),
            .created_at = hf_out_i64(found, i, HF_COL_SCHEDULE_SKIP_LIST_CREATED_AT),
        };
        rc = hf_schedule_skips_add(skips, &skip) ? hf_fail_plain(err, HF_ENOMEM) : 0;
    }
    hf_ops_fini(&ops);
    return rc;
}

static int sql_schedule_next(struct hf_store *handle, hf_ms *ret_at, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_SCHEDULE_NEXT, HF_ANY_COUNT);
    int rc = hf_ops_read(&ops, err);
    if (rc == 0)
        *ret_at = sql_by_caller(
            handle, hf_out_i64(hf_ops_result(&ops, 0), 0, HF_COL_SCHEDULE_NEXT_LOOK_AT),
            ops.batch.now);
    hf_ops_fini(&ops);
    return rc;
}

const struct hf_schedule_methods sql_schedule_methods = {
    .add = sql_schedule_add,
    .update = sql_schedule_update,
    .change = sql_schedule_change,
    .run_now = sql_schedule_run_now,
    .get = sql_schedule_get,
    .list = sql_schedule_list,
    .skips = sql_schedule_skips,
    .sync = sql_schedule_sync,
    .pass = sql_schedule_pass,
    .next = sql_schedule_next,
};
