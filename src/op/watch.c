/* All that an operator looks at, in one answer: what `top` shows and the operation `overview`
 * returns. Units by state, schedules, sessions, queues and holders are read at once, a bounded
 * number of each. */
#include "op/shapes/ledger.h"
#include "op/shapes/session.h"
#include "op/store.h"
#include "op/work.h"

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
    return op_list_page(call, &filter, ret);
}

/* Queues and holders come one by one; the first of them are kept. */
static void keep_queue(void *user, const struct hf_queue *queue)
{
    struct op_watch *list = user;
    if (!list->queues || list->queue_count == OP_WATCH_ROWS)
        return;
    struct hf_queue *kept = &list->queues[list->queue_count++];
    *kept = *queue;
    kept->queue = hf_arena_text(&list->arena, queue->queue);
    kept->kinds = hf_arena_text(&list->arena, queue->kinds);
    list->failed |= !kept->queue || !kept->kinds;
}

static void keep_holder(void *user, const struct hf_holder *holder)
{
    struct op_watch *list = user;
    if (!list->holders || list->holder_count == OP_WATCH_ROWS)
        return;
    struct hf_holder *kept = &list->holders[list->holder_count++];
    const char **const texts[] = { &kept->owner, &kept->incarnation, &kept->boot };
    *kept = *holder;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const char *text = *texts[i];
        *texts[i] = text ? hf_arena_text(&list->arena, text) : NULL;
        list->failed |= text && !*texts[i];
    }
}

static int read_counts(struct op_call *call, struct op_watch *list)
{
    list->queues = hf_arena_array(&list->arena, OP_WATCH_ROWS, sizeof *list->queues);
    list->holders = hf_arena_array(&list->arena, OP_WATCH_ROWS, sizeof *list->holders);
    int rc = hf_queue_list(call->store, &call->who, keep_queue, list, call->err);
    if (rc == 0)
        rc = hf_holder_list(call->store, &call->who, NULL, keep_holder, list, call->err);
    if (rc == 0 && (list->failed || !list->queues || !list->holders))
        rc = hf_fail_plain(call->err, HF_ENOMEM);
    return rc;
}

int op_watch_read(struct op_call *call, struct op_watch *ret_watch)
{
    static const enum hf_status running[] = { HF_STATUS_RUNNING };
    static const enum hf_status waiting[] = { HF_STATUS_WAITING_USER,
                                              HF_STATUS_WAITING_EXTERNAL };
    static const enum hf_status queued[] = { HF_STATUS_QUEUED };
    struct op_watch list = { 0 };
    struct hf_schedule_filter active = { .size = sizeof(active),
                                         .state = "active",
                                         .limit = OP_WATCH_ROWS };
    struct hf_session_filter open = { .size = sizeof(open),
                                      .open = true,
                                      .limit = OP_WATCH_ROWS };
    hf_arena_init(&list.arena, hf_alloc_system());
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
    if (rc == 0)
        rc = read_counts(call, &list);
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
    hf_arena_fini(&watch->arena);
    *watch = (struct op_watch){ 0 };
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

static int say_queues(struct op_call *call, const struct op_watch *watch)
{
    const struct op_list list = { .key = "queues", .shape = &hf_queue_shape };
    int rc = 0;
    call->out->sink->begin(call->out, &list);
    for (size_t i = 0; rc == 0 && i < watch->queue_count; i++)
        rc = call->out->sink->item(
            call->out,
            &(struct op_row){ .shape = &hf_queue_shape, .at = &watch->queues[i] });
    return rc ? rc : call->out->sink->end(call->out, &list);
}

static int say_holders(struct op_call *call, const struct op_watch *watch)
{
    const struct op_list list = { .key = "holders", .shape = &hf_holder_shape };
    int rc = 0;
    call->out->sink->begin(call->out, &list);
    for (size_t i = 0; rc == 0 && i < watch->holder_count; i++)
        rc = call->out->sink->item(
            call->out,
            &(struct op_row){ .shape = &hf_holder_shape, .at = &watch->holders[i] });
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
    if (rc == 0)
        rc = say_sessions(call, watch->sessions);
    if (rc == 0)
        rc = say_queues(call, watch);
    return rc ? rc : say_holders(call, watch);
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
