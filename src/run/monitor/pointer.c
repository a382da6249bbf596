/* Reconciling the pointer file with the ledger. One way only: from the ledger to the file. */
#include "run/monitor/pointer.h"

#include <limits.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/sized.h"
#include "base/text.h"
#include "run/monitor/pointer_file.h"

#define X(name, word) [HF_POINTER_##name] = (word),
static const char *const action_words[] = { HF_POINTER_ACTIONS(X) };
#undef X

/* What one reconciliation knows. */
struct look {
    struct hf_store *store;
    const struct hf_caller *who;
    const struct hf_pointer_plan *plan;
    const struct hf_pointer_hook *hook;
    struct hf_arena arena;
    enum hf_pointer_state state;
    struct hf_pointer file;   /* GOOD: what it says */
    struct hf_pointer newest; /* work_id NULL: nothing of the owner runs */
    const char *owner;
    struct hf_pointer_report report;
};

const char *hf_pointer_word(enum hf_pointer_action action)
{
    return action < HF_POINTER_ACTION_COUNT ? action_words[action] : "unknown";
}

/* Cuts at the front: the end of a path or id tells more. */
static void keep_end(char *out, size_t room, const char *text)
{
    size_t len = text ? strlen(text) : 0;
    size_t skip = len >= room ? len - room + 1 : 0;
    memcpy(out, text ? text + skip : "", len - skip + 1);
}

/* ---- the ledger's side ------------------------------------------------------------- */

static bool present_incarnation(const struct look *look, const char *incarnation)
{
    return !look->plan->incarnation || hf_same(look->plan->incarnation, incarnation);
}

static bool is_newer(const struct look *look, const struct hf_work *work)
{
    if (!look->newest.work_id || work->started_at > look->newest.started_at)
        return true;
    /* Ids grow with time: they decide between units of one millisecond. */
    size_t len = strlen(work->work_id) + 1;
    return work->started_at == look->newest.started_at &&
           strlen(look->newest.work_id) + 1 == len &&
           memcmp(work->work_id, look->newest.work_id, len) > 0;
}

static int take_newest(struct look *look, const struct hf_work *work, struct hf_err *err)
{
    struct hf_arena *arena = &look->arena;
    look->newest = (struct hf_pointer){
        .work_id = hf_arena_text(arena, work->work_id),
        .source_system = hf_arena_text(arena, work->source_system),
        .source_id = hf_arena_text(arena, work->source_id),
        .source_run_id = hf_arena_text(arena, work->source_run_id),
        .owner = hf_arena_text(arena, work->owner),
        .owner_incarnation = hf_arena_text(arena, work->owner_incarnation),
        .lease_expires_at = work->lease_expires_at,
        .started_at = work->started_at,
    };
    bool lost = !look->newest.work_id || !look->newest.source_system ||
                !look->newest.source_id || !look->newest.owner ||
                (work->source_run_id && !look->newest.source_run_id) ||
                (work->owner_incarnation && !look->newest.owner_incarnation);
    return lost ? hf_fail_plain(err, HF_ENOMEM) : 0;
}

static int read_page(struct look *look, const struct hf_answer *page, struct hf_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < hf_answer_count(page); i++) {
        const struct hf_work *work = &hf_answer_at(page, i)->work;
        if (!present_incarnation(look, work->owner_incarnation))
            continue;
        look->report.running++;
        if (is_newer(look, work))
            rc = take_newest(look, work, err);
    }
    return rc;
}

/* The owner's newest running unit, and how many run. */
static int read_running(struct look *look, struct hf_err *err)
{
    static const enum hf_status running = HF_STATUS_RUNNING;
    struct hf_filter filter = { .size = sizeof(filter),
                                .statuses = &running,
                                .status_count = 1,
                                .owner = look->owner,
                                .limit = (size_t)HF_MAX_PAGE };
    struct hf_answer *page = NULL;
    int rc = 0;
    look->report.running = 0;
    do {
        struct hf_answer *next = NULL;
        rc = hf_work_list(look->store, look->who, &filter, &next, err);
        hf_answer_free(page); /* its cursor was still needed */
        page = rc ? NULL : next;
        if (rc == 0)
            rc = read_page(look, page, err);
        filter.after = rc ? NULL : hf_answer_next(page);
    } while (filter.after);
    hf_answer_free(page);
    look->newest.running = look->report.running;
    return rc;
}

/* What has become of the unit that the file names. */
static int read_named(struct look *look, struct hf_err *err)
{
    struct hf_answer *answer = NULL;
    struct hf_err detail = { 0 };
    int rc = hf_work_get(look->store, look->who, look->file.work_id, &answer, &detail);
    if (rc == HF_ENOTFOUND || rc == HF_EAMBIGUOUS || rc == HF_EINVAL) {
        look->report.row_missing = true; /* a part of an id is no unit's name */
        return 0;
    }
    if (rc)
        return hf_fail(err, rc, detail.field, "%s", detail.message);
    const struct hf_work *work = &hf_answer_at(answer, 0)->work;
    look->report.row_missing = !hf_same(work->work_id, look->file.work_id);
    look->report.older_incarnation = !look->report.row_missing &&
                                     hf_status_of(work->status) == HF_STATUS_RUNNING &&
                                     hf_same(work->owner, look->owner) &&
                                     !present_incarnation(look, work->owner_incarnation);
    hf_answer_free(answer);
    if (!look->report.older_incarnation)
        return 0;
    struct hf_sweep_report sweep;
    return hf_work_sweep(look->store, look->who, 0, &sweep, err);
}

/* ---- the file's side --------------------------------------------------------------- */

static bool same_facts(const struct hf_pointer *a, const struct hf_pointer *b)
{
    return hf_same(a->work_id, b->work_id) && hf_same(a->owner, b->owner) &&
           hf_same(a->source_system, b->source_system) &&
           hf_same(a->source_id, b->source_id) &&
           hf_same(a->source_run_id, b->source_run_id) &&
           hf_same(a->owner_incarnation, b->owner_incarnation) &&
           a->lease_expires_at == b->lease_expires_at && a->started_at == b->started_at &&
           a->running == b->running;
}

static int bring_in_line(struct look *look, struct hf_err *err)
{
    bool good = look->state == HF_POINTER_GOOD;
    struct hf_pointer_report *report = &look->report;
    if (!look->newest.work_id) {
        report->action = good ? HF_POINTER_CLEARED : HF_POINTER_NOTHING;
        return good ? hf_pointer_remove(look->plan->path, err) : 0;
    }
    keep_end(report->names, sizeof(report->names), look->newest.work_id);
    if (good && same_facts(&look->file, &look->newest)) {
        report->action = HF_POINTER_KEPT;
        return 0;
    }
    report->action = HF_POINTER_WROTE;
    if (good)
        report->action = hf_same(look->file.work_id, look->newest.work_id)
                             ? HF_POINTER_REFRESHED
                             : HF_POINTER_REPLACED;
    const struct hf_clock *clock = hf_clock_system();
    look->newest.updated_at = clock->wall_ms(clock->user);
    return hf_pointer_write(look->plan->path, &look->newest, look->hook, err);
}

static int set_aside(struct look *look, struct hf_err *err)
{
    const struct hf_clock *clock = hf_clock_system();
    struct hf_buf aside;
    hf_buf_init(&aside, hf_alloc_system(), PATH_MAX);
    int rc = hf_pointer_set_aside(look->plan->path, clock->wall_ms(clock->user), &aside,
                                  err);
    if (rc == 0) {
        look->report.corrupt = true;
        keep_end(look->report.aside, sizeof(look->report.aside), hf_buf_str(&aside));
    }
    hf_buf_fini(&aside);
    return rc;
}

static int reconcile(struct look *look, struct hf_err *err)
{
    int rc = hf_pointer_read(look->plan->path, &look->arena, &look->state, &look->file,
                             err);
    if (rc)
        return rc;
    bool good = look->state == HF_POINTER_GOOD;
    look->owner = look->plan->owner;
    if (!look->owner && good)
        look->owner = look->file.owner;
    if (!look->owner)
        return hf_fail(err, HF_EINVAL, "owner",
                       "owner is required: there is no pointer file that names one");
    if (good) {
        keep_end(look->report.named, sizeof(look->report.named), look->file.work_id);
        rc = read_named(look, err);
    }
    if (rc == 0)
        rc = read_running(look, err);
    if (rc == 0 && look->hook->at)
        look->hook->at(look->hook->user, HF_POINTER_READ);
    if (rc == 0 && look->state == HF_POINTER_CORRUPT)
        rc = set_aside(look, err);
    return rc ? rc : bring_in_line(look, err);
}

int hf_pointer_reconcile_at(struct hf_store *store, const struct hf_caller *who,
                            const struct hf_pointer_plan *plan,
                            const struct hf_pointer_hook *hook,
                            struct hf_pointer_report *ret_report, struct hf_err *err)
{
    struct hf_pointer_plan full;
    struct hf_err why = { 0 };
    int rc = hf_sized_copy(plan, sizeof(full), sizeof(full), &full, &why);
    if (rc == 0 && !full.path)
        rc = hf_fail(&why, HF_EINVAL, "path", "the path of the pointer file is needed");
    if (rc)
        return hf_fail_as(err, rc, &why);
    struct look look = { .store = store, .who = who, .plan = &full, .hook = hook };
    hf_arena_init(&look.arena, hf_alloc_system());
    rc = reconcile(&look, err);
    if (rc == 0)
        *ret_report = look.report;
    hf_arena_fini(&look.arena);
    return rc;
}

int hf_pointer_reconcile(struct hf_store *store, const struct hf_caller *who,
                         const struct hf_pointer_plan *plan,
                         struct hf_pointer_report *ret_report, struct hf_err *err)
{
    static const struct hf_pointer_hook none = { NULL, NULL };
    return hf_pointer_reconcile_at(store, who, plan, &none, ret_report, err);
}
