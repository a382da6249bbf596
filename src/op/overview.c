/* See overview.h. */
#include "op/overview.h"

#include "op/shapes/ledger.h"

/* Rows that the library passes one by one. */
struct rows {
    struct op_call *call;
    const struct hf_shape *shape;
    const char *next; /* cursor of the last row */
    int64_t count;
    int rc;
};

static void say_row(struct rows *rows, const void *at)
{
    const struct op_row row = { .shape = rows->shape, .at = at };
    rows->count++;
    if (rows->rc == 0)
        rows->rc = rows->call->out->sink->item(rows->call->out, &row);
}

static struct rows begin(struct op_call *call, struct op_list *list)
{
    list->key = "items";
    list->shape = call->op->shape;
    call->out->sink->begin(call->out, list);
    return (struct rows){ .call = call, .shape = list->shape };
}

static int end(const struct rows *rows, int rc, const struct op_list *list)
{
    rc = rc ? rc : rows->rc;
    return rc ? rc : rows->call->out->sink->end(rows->call->out, list);
}

static void say_queue(void *user, const struct hf_queue *queue)
{
    say_row(user, queue);
}

int op_run_queues(struct op_call *call)
{
    struct op_list list = { .none = "no queue has open units" };
    struct rows rows = begin(call, &list);
    int rc = hf_queue_list(call->store, &call->who, say_queue, &rows, call->err);
    return end(&rows, rc, &list);
}

static void say_holder(void *user, const struct hf_holder *holder)
{
    say_row(user, holder);
}

int op_run_holders(struct op_call *call)
{
    const struct hf_filter *in = call->in;
    struct op_list list = { .none = "nothing runs" };
    struct rows rows = begin(call, &list);
    int rc = hf_holder_list(call->store, &call->who, in->owner, say_holder, &rows,
                            call->err);
    return end(&rows, rc, &list);
}

int op_run_ages(struct op_call *call)
{
    struct hf_age_table ages;
    int rc = hf_work_ages(call->store, &call->who, &ages, call->err);
    if (rc)
        return rc;
    struct op_list list = { .none = "nothing is open" };
    struct rows rows = begin(call, &list);
    for (int status = 1; status < HF_STATUS_COUNT; status++) {
        const int64_t *of = ages.open[status];
        const struct hf_age_row row = { hf_status_word((enum hf_status)status),
                                        of[0],
                                        of[1],
                                        of[2],
                                        of[3],
                                        of[4],
                                        of[5] };
        if (!hf_status_terminal((enum hf_status)status))
            say_row(&rows, &row);
    }
    const struct hf_lease_parts leases = { ages.leases[0], ages.leases[1], ages.leases[2],
                                           ages.leases[3] };
    rc = end(&rows, 0, &list);
    op_facts(call, &hf_lease_parts_shape, &leases);
    op_say(call,
           "leases: %lld with over two thirds left, %lld with over one third, %lld with "
           "less, %lld lapsed",
           (long long)leases.over_two_thirds, (long long)leases.over_one_third,
           (long long)leases.less, (long long)leases.lapsed);
    return rc;
}

static void say_occurrence(void *user, const struct hf_occurrence *occurrence,
                           const char *cursor)
{
    struct rows *rows = user;
    rows->next = hf_arena_text(rows->call->arena, cursor);
    say_row(rows, occurrence);
}

int op_run_occurrences(struct op_call *call)
{
    const struct hf_occurrence_filter *in = call->in;
    struct op_list list = { .none = "nothing has happened", .paged = true };
    struct rows rows = begin(call, &list);
    int rc = hf_occurrence_list(call->store, &call->who, in, say_occurrence, &rows,
                                call->err);
    if (rows.count == (int64_t)(in->limit ? in->limit : 100))
        list.next = rows.next;
    return end(&rows, rc, &list);
}
