/* Units by the names that people use for them: that of `run --name` or `process start --name`, or
 * that of a schedule. A name means its unit that has not ended, otherwise the newest one. */
#include <holdfast/process.h>
#include <holdfast/schedule.h>

#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "op/op.h"

static int keep_id(struct op_call *call, const char *id, const char **ret_id)
{
    *ret_id = hf_arena_text(call->arena, id);
    return *ret_id ? 0 : hf_fail_plain(call->err, HF_ENOMEM);
}

#define SHORT_ID 8

const char *op_short_id(const char *id)
{
    size_t len = id ? strlen(id) : 0;
    return len > SHORT_ID ? id + len - SHORT_ID : id;
}

#define NAMED 3 /* ids that are listed of one name */

/* Which of them is meant? Their ids as lists show them. */
static int ambiguous(struct op_call *call, const char *name,
                     const struct hf_processes *found)
{
    struct hf_buf ids;
    hf_buf_init(&ids, call->arena->alloc, NAMED * (SHORT_ID + 2));
    for (size_t i = 0; i < hf_processes_count(found); i++) {
        hf_buf_text(&ids, i ? ", " : "");
        hf_buf_text(&ids, op_short_id(hf_processes_at(found, i)->work.work_id));
    }
    int rc = hf_fail(call->err, HF_EAMBIGUOUS, "id",
                     "several open units have the name %.60s: use the id of one: %s%s "
                     "(holdfast process list --name %.60s)",
                     name, hf_buf_str(&ids), hf_processes_next(found) ? ", ..." : "",
                     name);
    hf_buf_fini(&ids);
    return rc;
}

/* The one open process of that name. */
static int find_open(struct op_call *call, const char *name, const char **ret_id)
{
    struct hf_processes *found = NULL;
    const struct hf_process_filter filter = {
        .size = sizeof(filter), .identity_label = name, .brief = true, .limit = NAMED
    };
    int rc = hf_process_list(call->store, &call->who, &filter, &found, call->err);
    if (rc)
        return rc;
    if (hf_processes_count(found) > 1)
        rc = ambiguous(call, name, found);
    else if (hf_processes_count(found) == 1)
        rc = keep_id(call, hf_processes_at(found, 0)->work.work_id, ret_id);
    hf_processes_free(found);
    return rc;
}

/* The last page of the ended ones; names have few runs that were not pruned. */
static int find_ended(struct op_call *call, const char *name, const char **ret_id)
{
    struct hf_process_filter filter = { .size = sizeof(filter),
                                        .identity_label = name,
                                        .all = true,
                                        .limit = (size_t)HF_MAX_PAGE };
    int rc = 0;
    do {
        struct hf_processes *page = NULL;
        rc = hf_process_list(call->store, &call->who, &filter, &page, call->err);
        size_t count = rc ? 0 : hf_processes_count(page);
        if (count)
            rc = keep_id(call, hf_processes_at(page, count - 1)->work.work_id, ret_id);
        const char *next = rc ? NULL : hf_processes_next(page);
        filter.after = next ? hf_arena_text(call->arena, next) : NULL;
        hf_processes_free(page);
    } while (rc == 0 && filter.after);
    return rc;
}

/* The newest unit of a schedule. */
static int find_scheduled(struct op_call *call, const char *name, const char **ret_id)
{
    struct hf_schedules *found = NULL;
    int rc = hf_schedule_get(call->store, &call->who, name, &found, call->err);
    const char *last = rc ? NULL : hf_schedules_at(found, 0)->last_work_id;
    if (last)
        rc = keep_id(call, last, ret_id);
    hf_schedules_free(found);
    return rc == HF_ENOTFOUND || rc == HF_EINVAL ? 0 : rc;
}

int op_named_unit(struct op_call *call, const char *name, int missing,
                  const char **ret_id)
{
    const struct hf_err why = *call->err;
    *ret_id = NULL;
    int rc = find_open(call, name, ret_id);
    if (rc == 0 && !*ret_id)
        rc = find_scheduled(call, name, ret_id);
    if (rc == 0 && !*ret_id)
        rc = find_ended(call, name, ret_id);
    if (rc || *ret_id)
        return rc == HF_EINVAL ? missing : rc;
    *call->err = why;
    return missing;
}
