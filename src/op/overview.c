/* Counts by queue, holder and age, and the list of occurrences, as operations.
 *
 * The library passes rows to a callback one by one. Here each goes to the sink of the call, which
 * is JSON or a table: begin, one item per row, end. In addition to rows an operation may tell a
 * sink facts (members of the JSON envelope) and say a sentence for people. */
#include "op/overview.h"

#include "op/shapes/ledger.h"

/* Rows that the library passes one by one. */
struct rows {
    struct op_call *call;
    const struct hf_shape *shape;
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

static struct rows begin_list(struct op_call *call, struct op_list *list)
{
    list->key = "items";
    list->shape = call->op->shape;
    call->out->sink->begin(call->out, list);
    return (struct rows){ .call = call, .shape = list->shape };
}

static int end_list(const struct rows *rows, int rc, const struct op_list *list)
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
    struct rows rows = begin_list(call, &list);
    int rc = hf_queue_list(call->store, &call->who, say_queue, &rows, call->err);
    return end_list(&rows, rc, &list);
}

static void say_holder(void *user, const struct hf_holder *holder)
{
    say_row(user, holder);
}

int op_run_holders(struct op_call *call)
{
    const struct hf_filter *in = call->in;
    struct op_list list = { .none = "nothing runs" };
    struct rows rows = begin_list(call, &list);
    int rc = hf_holder_list(call->store, &call->who, in->owner, say_holder, &rows,
                            call->err);
    return end_list(&rows, rc, &list);
}

/* Open units of one status, by how long ago they were created. */
static struct hf_age_row age_row(const struct hf_age_table *ages, enum hf_status status)
{
    const int64_t *units = ages->open[status];
    return (struct hf_age_row){ .status = hf_status_word(status),
                                .under_1m = units[0],
                                .under_10m = units[1],
                                .under_1h = units[2],
                                .under_1d = units[3],
                                .under_1w = units[4],
                                .older = units[5] };
}

/* The leases of running units and of sessions, by how much of their term is left. */
static void tell_leases(struct op_call *call, const struct hf_age_table *ages)
{
    const struct hf_lease_parts leases = { .over_two_thirds = ages->leases[0],
                                           .over_one_third = ages->leases[1],
                                           .less = ages->leases[2],
                                           .lapsed = ages->leases[3] };
    op_facts(call, &hf_lease_parts_shape, &leases);
    op_say(call,
           "leases: %lld with over two thirds left, %lld with over one third, %lld with "
           "less, %lld lapsed",
           (long long)leases.over_two_thirds, (long long)leases.over_one_third,
           (long long)leases.less, (long long)leases.lapsed);
}

/* One row per status that is not terminal, then the leases. */
int op_run_ages(struct op_call *call)
{
    struct hf_age_table ages;
    int rc = hf_work_ages(call->store, &call->who, &ages, call->err);
    if (rc)
        return rc;
    struct op_list list = { .none = "nothing is open" };
    struct rows rows = begin_list(call, &list);
    for (int i = HF_STATUS_NONE + 1; i < HF_STATUS_COUNT; i++) {
        enum hf_status status = (enum hf_status)i;
        const struct hf_age_row row = age_row(&ages, status);
        if (!hf_status_terminal(status))
            say_row(&rows, &row);
    }
    rc = end_list(&rows, 0, &list);
    if (rc == 0)
        tell_leases(call, &ages);
    return rc;
}

static void say_occurrence(void *user, const struct hf_occurrence *occurrence)
{
    say_row(user, occurrence);
}

int op_run_occurrences(struct op_call *call)
{
    const struct hf_occurrence_filter *in = call->in;
    struct op_list list = { .none = "nothing has happened", .paged = true };
    struct rows rows = begin_list(call, &list);
    struct hf_occurrence_next next = { "" };
    int rc = hf_occurrence_list(call->store, &call->who, in, say_occurrence, &rows, &next,
                                call->err);
    list.next = *next.cursor ? next.cursor : NULL;
    return end_list(&rows, rc, &list);
}
