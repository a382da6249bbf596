/* A unit in addition to the slots: on request, under the schedule's overlap rule. */
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/text.h"
#include "store/schedule/schedule.h"

static int in_the_way(struct hf_err *err, const struct hf_schedule *schedule,
                      const char *work_id)
{
    return hf_fail(err, HF_ECONFLICT, "overlap",
                   "schedule %s has unit %s under way, and its overlap rule is %s",
                   schedule->name, work_id, schedule->overlap);
}

static int manual_id(struct schedule_call *call, hf_ms now, const char **ret_id,
                     struct hf_err *err)
{
    static const char prefix[] = "manual:";
    char fresh[HF_UUID_TEXT];
    const char *id = call->who->operation_id;
    int rc = id ? hf_check_key(id, (size_t)HF_MAX_KEY_BYTES - sizeof prefix + 1,
                               "operation_id", err)
                : sql_new_id(call->store, now, fresh, err);
    if (rc)
        return rc;
    id = id ? id : fresh;
    char *text = hf_arena_take(&call->arena, sizeof prefix + strlen(id));
    if (!text)
        return hf_fail_plain(err, HF_ENOMEM);
    memcpy(text, prefix, sizeof prefix - 1);
    memcpy(text + sizeof prefix - 1, id, strlen(id) + 1);
    *ret_id = text;
    return 0;
}

static int look(struct schedule_call *call, const char *name, const char *run_id,
                struct hf_err *err)
{
    hf_ops_reset(&call->look);
    hf_ops_reset(&call->write);
    hf_ops_call(&call->look, HF_SQL_SCHEDULE_LOOK, HF_ANY_COUNT);
    hf_ops_text(&call->look, name);
    hf_ops_text(&call->look, call->who->tenant);
    hf_ops_call(&call->look, HF_SQL_WORK_BY_SOURCE, HF_ANY_COUNT);
    hf_ops_text(&call->look, call->who->tenant);
    hf_ops_text(&call->look, hf_source_word(HF_SOURCE_SCHEDULER));
    hf_ops_text(&call->look, name);
    hf_ops_text(&call->look, run_id);
    int rc = hf_ops_read(&call->look, err);
    if (rc == 0 && hf_ops_result(&call->look, 0)->out_count == 0)
        rc = hf_fail(err, HF_ENOTFOUND, "name", "there is no schedule %s", name);
    return rc;
}

static int show(const struct hf_call *found, bool created, struct hf_answer *answer,
                struct hf_err *err)
{
    struct hf_row row;
    int rc = hf_row_read(found, 0, &row, err);
    struct hf_item *item = rc == 0 ? hf_answer_add(answer) : NULL;
    if (rc == 0 && (!item || hf_item_show(answer, item, &row, false)))
        rc = hf_fail_plain(err, HF_ENOMEM);
    if (rc == 0) {
        item->created = created;
        item->repeated = !created;
    }
    return rc;
}

/* A unit in the way is replaced, or the new one refused: by the overlap rule. */
static int replace(struct schedule_call *call, const struct hf_schedule *schedule,
                   const char *work_id, const char *run_id, struct hf_err *err)
{
    struct hf_row old;
    struct hf_env env;
    struct hf_step step;
    if (hf_overlap_of(schedule->overlap) != HF_OVERLAP_REPLACE)
        return in_the_way(err, schedule, work_id);
    hf_ops_reset(&call->old);
    int rc = sql_find(&call->old, work_id, &old, err);
    if (rc == 0)
        rc = sql_env(call->store, call->who, &call->old.batch, &env, err);
    if (rc || hf_status_terminal(old.status))
        return rc;
    rc = schedule_replace(call, &env, &old, run_id, &step, err);
    return rc ? rc : schedule_replace_write(call, &old, &step, err);
}

static int trigger_once(struct schedule_call *call, const char *run_id, const char *name,
                        struct hf_answer *answer, struct hf_err *err)
{
    struct hf_schedule_row row;
    struct hf_making making;
    int rc = look(call, name, run_id, err);
    if (rc)
        return rc;
    if (hf_ops_result(&call->look, 1)->out_count > 0)
        return show(hf_ops_result(&call->look, 1), false, answer, err);
    const struct hf_call *found = hf_ops_result(&call->look, 0);
    schedule_read(found, 0, &row);
    rc = schedule_unit(call, &row.s, run_id, &making, err);
    if (rc)
        return rc;
    struct hf_ops *ops = &call->write;
    hf_ops_call(ops, HF_SQL_SCHEDULE_TOUCH, 1);
    hf_ops_text(ops, row.s.name);
    hf_ops_text(ops, row.s.tenant);
    hf_ops_i64(ops, row.tick);
    hf_ops_text(ops, making.row->w.work_id);
    if (hf_out_text(found, 0, HF_COL_SCHEDULE_LOOK_IN_THE_WAY))
        rc = replace(call, &row.s, hf_out_text(found, 0, HF_COL_SCHEDULE_LOOK_IN_THE_WAY),
                     run_id, err);
    if (rc)
        return rc;
    hf_rows_insert(ops, &making, 1);
    hf_rows_expect_all(ops);
    sql_wake_input(ops, &making); /* or the bell of its queue */
    size_t read_back = hf_ops_call(ops, HF_SQL_WORK_BY_ID, 1);
    hf_ops_text(ops, making.row->w.work_id);
    rc = hf_ops_write(ops, err);
    return rc ? rc : show(hf_ops_result(ops, read_back), true, answer, err);
}

int sql_schedule_run_now(struct hf_store *handle, const struct hf_caller *who,
                         const char *name, struct hf_answer *answer, struct hf_err *err)
{
    struct schedule_call call;
    schedule_begin(&call, handle, who);
    const char *run_id = NULL;
    int rc = manual_id(&call, handle->clock->wall_ms(handle->clock->user), &run_id, err);
    rc = rc ? rc : HF_EGUARD;
    for (int i = 0; rc == HF_EGUARD && i < HF_TRIES; i++) {
        rc = trigger_once(&call, run_id, name, answer, err);
        if (rc == HF_ECONFLICT && !hf_same(err->field, "overlap"))
            rc = HF_EGUARD; /* a unit of it came meanwhile: look again */
    }
    if (rc == HF_EGUARD)
        rc = hf_fail_plain(err, HF_EBUSY);
    schedule_end(&call);
    return rc;
}
