/* What needs a human, with the very command that deals with it; and all that an operator looks
 * at, in one answer. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "core/ledger/reports.h"
#include "core/session/shapes.h"
#include "op/store.h"

bool op_schedule_late(hf_ms now, const struct hf_schedule *schedule)
{
    return schedule->next_at && now > schedule->next_at + schedule->miss_threshold_ms;
}

/* ---- reading --------------------------------------------------------------------------- */

static int read_rows(struct op_call *call, struct hf_filter filter,
                     struct hf_answer **ret)
{
    filter.size = sizeof(filter);
    filter.limit = filter.limit ? filter.limit : OP_WATCH_ROWS;
    return hf_work_list(call->store, &call->who, &filter, ret, call->err);
}

int op_watch_read(struct op_call *call, struct op_watch *ret_watch)
{
    static const enum hf_status running[] = { HF_RUNNING };
    static const enum hf_status waiting[] = { HF_WAITING_USER, HF_WAITING_EXTERNAL };
    static const enum hf_status queued[] = { HF_QUEUED };
    struct op_watch list = { 0 };
    struct hf_schedule_filter active = { .size = sizeof(active),
                                         .state = "active",
                                         .limit = OP_WATCH_ROWS };
    struct hf_session_filter open = { .size = sizeof(open),
                                      .open = true,
                                      .limit = OP_WATCH_ROWS };
    int rc = hf_work_stats(call->store, &call->who, &list.stats, call->err);
    if (rc == 0)
        rc = read_rows(call, (struct hf_filter){ .statuses = running, .status_count = 1 },
                       &list.running);
    if (rc == 0)
        rc = read_rows(call, (struct hf_filter){ .silent = true }, &list.silent);
    if (rc == 0)
        rc = read_rows(call, (struct hf_filter){ .statuses = waiting, .status_count = 2 },
                       &list.waiting);
    if (rc == 0)
        rc = read_rows(
            call,
            (struct hf_filter){ .statuses = queued, .status_count = 1, .gate = "held" },
            &list.held);
    if (rc == 0)
        rc = read_rows(
            call, (struct hf_filter){ .statuses = queued, .status_count = 1, .limit = 1 },
            &list.oldest);
    if (rc == 0)
        rc = hf_schedule_list(call->store, &call->who, &active, &list.schedules,
                              call->err);
    if (rc == 0)
        rc = hf_session_list(call->store, &call->who, &open, &list.sessions, call->err);
    list.now = hf_store_now(
        call->store); /* after the first answer, which tells a server's clock */
    if (rc)
        op_watch_free(&list);
    else
        *ret_watch = list;
    return rc;
}

void op_watch_free(struct op_watch *watch)
{
    hf_answer_free(watch->running);
    hf_answer_free(watch->silent);
    hf_answer_free(watch->waiting);
    hf_answer_free(watch->held);
    hf_answer_free(watch->oldest);
    hf_schedules_free(watch->schedules);
    hf_session_answer_free(watch->sessions);
    *watch = (struct op_watch){ 0 };
}

/* ---- saying ---------------------------------------------------------------------------- */

#define QUOTED 800 /* a key in a shell's quotes, each of its bytes a quote itself */

/* What is found, with room for its texts. */
struct finding {
    struct hf_attention is;
    char detail[160];
    char command[2 * QUOTED + 80];
};

struct teller {
    struct op_call *call;
    hf_ms now;
    size_t count;
    int rc;
};

static void tell(struct teller *teller, struct finding *finding)
{
    const struct op_row row = { .shape = &hf_attention_shape, .at = &finding->is };
    finding->is.detail = finding->detail;
    finding->is.command = finding->command;
    teller->count++;
    if (teller->rc == 0)
        teller->rc = teller->call->out->sink->item(teller->call->out, &row);
}

static void tell_silent(struct teller *teller, const struct hf_work *work)
{
    struct finding finding = {
        .is = { .what = "silent", .id = work->work_id, .kind = work->kind }
    };
    char age[24];
    bool bound = hf_same(work->disposition, hf_disposition_word(HF_OWNER_BOUND));
    (void)snprintf(finding.detail, sizeof(finding.detail),
                   "%.60s has not renewed its lease for %s past its end", work->owner,
                   op_age(-work->lease_remaining_ms, age));
    (void)snprintf(finding.command, sizeof(finding.command),
                   bound ? "holdfast work request-abandon %s --reason 'its owner is gone'"
                         : "holdfast work sweep",
                   work->work_id);
    tell(teller, &finding);
}

/* Waits count from when they were set; past half of the time a person should look. */
static bool half_over(hf_ms now, const struct hf_work *work)
{
    if (hf_same(work->status_reason, "wait_overdue"))
        return true;
    hf_ms budget = work->deadline_at - work->updated_at;
    return work->deadline_at && (now - work->updated_at) * 2 > budget;
}

/* What ends the wait: with a started owner_bound unit only its owner can go on. */
static void wait_command(const struct hf_work *work, struct finding *finding)
{
    const char *verb = "resume", *rest = "--payload JSON";
    if (hf_same(work->disposition, hf_disposition_word(HF_EXTERNALLY_OWNED))) {
        verb = "close-out";
        rest = "--authority \"$USER\" --status done";
    } else if (work->owner) {
        verb = "request-abandon";
        rest = "--reason 'no answer'";
    }
    (void)snprintf(finding->command, sizeof(finding->command), "holdfast work %s %s %s",
                   verb, work->work_id, rest);
}

static void tell_wait(struct teller *teller, const struct hf_work *work)
{
    struct finding finding = { .is = { "wait", work->work_id, work->kind, NULL, NULL } };
    char age[24], left[24];
    if (!half_over(teller->now, work))
        return;
    hf_ms until = work->deadline_at - teller->now;
    (void)snprintf(finding.detail, sizeof(finding.detail), "waits for %.60s since %s%s%s",
                   work->waiting_ref ? work->waiting_ref : "an answer",
                   op_age(teller->now - work->updated_at, age),
                   work->deadline_at ? (until > 0 ? ", ends in " : ", overdue by ")
                                     : ", overdue",
                   work->deadline_at ? op_age(until, left) : "");
    wait_command(work, &finding);
    tell(teller, &finding);
}

static void tell_held(struct teller *teller, const struct hf_work *work)
{
    struct finding finding = { .is = { "held", work->work_id, work->kind, NULL, NULL } };
    (void)snprintf(finding.detail, sizeof(finding.detail),
                   "lost its worker too often (%lld failures, last: %.60s)",
                   (long long)work->failures,
                   work->error_class ? work->error_class : "unknown");
    (void)snprintf(
        finding.command, sizeof(finding.command),
        work->session_id
            ? "holdfast work cancel %s --reason 'its session goes on without it'"
            : "holdfast job release %s --reason 'why it is safe now'",
        work->work_id);
    tell(teller, &finding);
}

/* In quotes that a shell reads back as it was. A key fits. */
static const char *quoted(const char *text, char out[QUOTED])
{
    char *at = out;
    *at++ = '\'';
    for (; *text && at < out + QUOTED - 6; text++) {
        if (*text == '\'') {
            memcpy(at, "'\\''", 4);
            at += 4;
        } else {
            *at++ = *text;
        }
    }
    *at++ = '\'';
    *at = 0;
    return out;
}

static void tell_schedule(struct teller *teller, const struct hf_schedule *schedule)
{
    struct finding finding = { .is = { .what = "schedule", .id = schedule->name } };
    char age[24], name[QUOTED], tenant[QUOTED];
    bool of_tenant = schedule->tenant && *schedule->tenant;
    if (schedule->last_error)
        (void)snprintf(finding.detail, sizeof(finding.detail), "fails: %.120s",
                       schedule->last_error);
    else if (op_schedule_late(teller->now, schedule))
        (void)snprintf(finding.detail, sizeof(finding.detail),
                       "its slot is %s late: no monitor makes it",
                       op_age(teller->now - schedule->next_at, age));
    else
        return;
    if (!schedule->last_error)
        (void)snprintf(finding.command, sizeof(finding.command), "holdfast monitor");
    else
        (void)snprintf(finding.command, sizeof(finding.command),
                       "holdfast %s%s%sschedule show %s", of_tenant ? "--tenant " : "",
                       of_tenant ? quoted(schedule->tenant, tenant) : "",
                       of_tenant ? " " : "", quoted(schedule->name, name));
    tell(teller, &finding);
}

static void tell_unknown(struct teller *teller, const struct hf_session_effect *effect)
{
    struct finding finding = {
        .is = { .what = "unknown_effect", .id = effect->turn_id, .kind = effect->kind }
    };
    char age[24], id[QUOTED];
    (void)snprintf(finding.detail, sizeof(finding.detail),
                   "%.50s of session %.40s, begun %s ago: did it happen?", effect->key,
                   effect->session_id, op_age(teller->now - effect->started_at, age));
    (void)snprintf(finding.command, sizeof(finding.command), "holdfast session log %s",
                   quoted(effect->session_id, id));
    tell(teller, &finding);
}

/* ---- all of it, a page at a time -------------------------------------------------------- */

/* The cursor outlives the page that gave it. NULL: there is no more. */
static int next_page(struct teller *teller, int rc, const char *next,
                     const char **ret_after)
{
    *ret_after = rc == 0 && next ? hf_arena_text(teller->call->arena, next) : NULL;
    if (rc == 0 && next && !*ret_after)
        rc = hf_fail_plain(teller->call->err, HF_ENOMEM);
    return rc ? rc : teller->rc;
}

static int tell_rows(struct teller *teller, struct hf_filter filter,
                     void (*tell_row)(struct teller *, const struct hf_work *))
{
    struct op_call *call = teller->call;
    int rc = 0;
    filter.size = sizeof(filter);
    filter.limit = (size_t)HF_MAX_PAGE;
    do {
        struct hf_answer *page = NULL;
        rc = hf_work_list(call->store, &call->who, &filter, &page, call->err);
        teller->now = hf_store_now(
            call->store); /* as the answer showed a server's clock */
        for (size_t i = 0; rc == 0 && i < hf_answer_count(page); i++)
            tell_row(teller, &hf_answer_at(page, i)->work);
        rc = next_page(teller, rc, rc ? NULL : hf_answer_next(page), &filter.after);
        hf_answer_free(page);
    } while (rc == 0 && filter.after);
    return rc;
}

static int tell_schedules(struct teller *teller)
{
    struct op_call *call = teller->call;
    struct hf_schedule_filter filter = { .size = sizeof(filter),
                                         .state = "active",
                                         .limit = (size_t)HF_MAX_PAGE };
    int rc = 0;
    do {
        struct hf_schedules *page = NULL;
        rc = hf_schedule_list(call->store, &call->who, &filter, &page, call->err);
        teller->now = hf_store_now(call->store);
        for (size_t i = 0; rc == 0 && i < hf_schedules_count(page); i++)
            tell_schedule(teller, hf_schedules_at(page, i));
        rc = next_page(teller, rc, rc ? NULL : hf_schedules_next(page), &filter.after);
        hf_schedules_free(page);
    } while (rc == 0 && filter.after);
    return rc;
}

static int tell_effects(struct teller *teller)
{
    struct op_call *call = teller->call;
    const char *after = NULL;
    int rc = 0;
    do {
        struct hf_session_answer *page = NULL;
        rc = hf_session_unknown(call->store, &call->who, after, (size_t)HF_MAX_PAGE,
                                &page, call->err);
        teller->now = hf_store_now(call->store);
        for (size_t i = 0; rc == 0 && i < page->effect_count; i++)
            tell_unknown(teller, &page->effects[i]);
        rc = next_page(teller, rc, rc ? NULL : page->next, &after);
        hf_session_answer_free(page);
    } while (rc == 0 && after);
    return rc;
}

static void tell_session(struct teller *teller, const struct hf_session *session)
{
    struct finding finding = { .is = { "silent", session->session_id, session->agent,
                                       NULL, NULL } };
    char age[24], id[QUOTED];
    if (!session->owner || session->lease_remaining_ms >= 0)
        return;
    (void)snprintf(finding.detail, sizeof(finding.detail),
                   "session: %.60s has not renewed its lease for %s past its end",
                   session->owner, op_age(-session->lease_remaining_ms, age));
    (void)snprintf(finding.command, sizeof(finding.command), "holdfast session show %s",
                   quoted(session->session_id, id));
    tell(teller, &finding);
}

static int tell_sessions(struct teller *teller)
{
    struct op_call *call = teller->call;
    struct hf_session_filter filter = { .size = sizeof(filter),
                                        .open = true,
                                        .limit = (size_t)HF_MAX_PAGE };
    int rc = 0;
    do {
        struct hf_session_answer *page = NULL;
        rc = hf_session_list(call->store, &call->who, &filter, &page, call->err);
        for (size_t i = 0; rc == 0 && i < page->session_count; i++)
            tell_session(teller, &page->sessions[i]);
        rc = next_page(teller, rc, rc ? NULL : page->next, &filter.after);
        hf_session_answer_free(page);
    } while (rc == 0 && filter.after);
    return rc;
}

static int tell_all(struct teller *teller)
{
    static const enum hf_status waiting[] = { HF_WAITING_USER, HF_WAITING_EXTERNAL };
    static const enum hf_status queued[] = { HF_QUEUED };
    int rc = tell_rows(teller, (struct hf_filter){ .silent = true }, tell_silent);
    if (rc == 0)
        rc = tell_rows(teller,
                       (struct hf_filter){ .statuses = waiting, .status_count = 2 },
                       tell_wait);
    if (rc == 0)
        rc = tell_rows(
            teller,
            (struct hf_filter){ .statuses = queued, .status_count = 1, .gate = "held" },
            tell_held);
    if (rc == 0)
        rc = tell_sessions(teller);
    if (rc == 0)
        rc = tell_effects(teller);
    return rc ? rc : tell_schedules(teller);
}

#define EXIT_ATTENTION 10

int op_run_attention(struct op_call *call)
{
    struct teller teller = { .call = call };
    const struct op_list list = { .key = "items",
                                  .shape = &hf_attention_shape,
                                  .none = "nothing needs you" };
    call->out->sink->begin(call->out, &list);
    int rc = tell_all(&teller);
    if (rc == 0)
        rc = call->out->sink->end(call->out, &list);
    call->exit_code = rc == 0 && teller.count ? EXIT_ATTENTION : 0;
    return rc;
}

/* ---- overview -------------------------------------------------------------------------- */

static int say_units(struct op_call *call, const char *key, const struct hf_answer *rows)
{
    const struct op_list list = { .key = key, .shape = &hf_work_shape };
    int rc = 0;
    call->out->sink->begin(call->out, &list);
    for (size_t i = 0; rc == 0 && i < hf_answer_count(rows); i++) {
        const struct op_row row = { .shape = &hf_work_shape,
                                    .at = &hf_answer_at(rows, i)->work };
        rc = call->out->sink->item(call->out, &row);
    }
    return rc ? rc : call->out->sink->end(call->out, &list);
}

static int say_schedules(struct op_call *call, const struct hf_schedules *schedules)
{
    const struct op_list list = { .key = "schedules", .shape = &hf_next_slot_shape };
    int rc = 0;
    call->out->sink->begin(call->out, &list);
    for (size_t i = 0; rc == 0 && i < hf_schedules_count(schedules); i++) {
        const struct op_row row = { .shape = &hf_next_slot_shape,
                                    .at = hf_schedules_at(schedules, i) };
        rc = call->out->sink->item(call->out, &row);
    }
    return rc ? rc : call->out->sink->end(call->out, &list);
}

static int say_sessions(struct op_call *call, const struct hf_session_answer *answer)
{
    const struct op_list list = { .key = "sessions", .shape = &hf_session_shape };
    int rc = 0;
    call->out->sink->begin(call->out, &list);
    for (size_t i = 0; rc == 0 && i < answer->session_count; i++) {
        const struct op_row row = { .shape = &hf_session_shape,
                                    .at = &answer->sessions[i] };
        rc = call->out->sink->item(call->out, &row);
    }
    return rc ? rc : call->out->sink->end(call->out, &list);
}

static int say_watch(struct op_call *call, const struct op_watch *watch)
{
    const struct hf_overview_more more = {
        .running = hf_answer_next(watch->running) != NULL,
        .silent = hf_answer_next(watch->silent) != NULL,
        .waiting = hf_answer_next(watch->waiting) != NULL,
        .held = hf_answer_next(watch->held) != NULL,
        .schedules = hf_schedules_next(watch->schedules) != NULL,
    };
    const struct hf_overview head = { .now = watch->now, .stats = watch->stats };
    int rc = op_row(call, &head);
    if (rc == 0)
        rc = say_units(call, "running", watch->running);
    if (rc == 0)
        rc = say_units(call, "silent", watch->silent);
    if (rc == 0)
        rc = say_units(call, "waiting", watch->waiting);
    if (rc == 0)
        rc = say_units(call, "held", watch->held);
    op_facts(call, &hf_overview_more_shape, &more);
    if (rc == 0)
        rc = say_schedules(call, watch->schedules);
    return rc ? rc : say_sessions(call, watch->sessions);
}

int op_run_overview(struct op_call *call)
{
    struct op_watch watch;
    int rc = op_watch_read(call, &watch);
    if (rc)
        return rc;
    rc = say_watch(call, &watch);
    op_watch_free(&watch);
    return rc;
}
