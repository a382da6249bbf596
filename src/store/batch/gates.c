/* Limits and fair shares of the rows that a batch writes. A gate is the reason why a queued row
 * cannot be claimed. Each write of a row notes what it changes about the count of its limit;
 * before the batch runs, each limit gets two statements, which count, grant places, and open the
 * gates of the granted rows (gates.h). */
#include "store/batch/gates.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "core/ledger/limit.h"

/* ---- limits -------------------------------------------------------------------------- */

static bool is_open(const struct hf_row *row)
{
    return row && row->status == HF_STATUS_QUEUED && !row->w.gate;
}

static bool has_place(const struct hf_row *row)
{
    return is_open(row) || (row && row->status == HF_STATUS_RUNNING);
}

/* The entry of a name, in the order of names: that is the order of locks. */
static struct hf_gate_note *entry(struct hf_ops *ops, const char *name)
{
    size_t low = 0, high = ops->gate_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = hf_text_order(ops->gates[middle].name, name);
        if (order == 0)
            return &ops->gates[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (ops->gate_count == ops->gate_room) {
        struct hf_gate_note *more = hf_ops_grow(ops, ops->gates, sizeof *more,
                                                &ops->gate_room);
        if (!more)
            return NULL;
        ops->gates = more;
    }
    memmove(&ops->gates[low + 1], &ops->gates[low],
            (ops->gate_count - low) * sizeof *ops->gates);
    ops->gates[low] = (struct hf_gate_note){ .name = name };
    ops->gate_count++;
    return &ops->gates[low];
}

void hf_gates_note_name(struct hf_ops *ops, const char *name)
{
    (void)entry(ops, name); /* no memory: it sticks to the batch */
}

void hf_gates_note(struct hf_ops *ops, const struct hf_row *was, const struct hf_row *row)
{
    if (!row->w.limit_name)
        return;
    bool waits = row->w.gate && !hf_same(row->w.gate, "due") &&
                 !hf_same(row->w.gate, "held");
    if (!waits && has_place(was) == has_place(row) && is_open(was) == is_open(row))
        return;
    struct hf_gate_note *note = entry(ops, row->w.limit_name);
    if (!note)
        return;
    note->used += has_place(row) - has_place(was);
    note->open += is_open(row) - is_open(was);
    note->back += is_open(was) && !has_place(row);
}

/* ---- rows that are made -------------------------------------------------------------- */

static int by_limit(const void *a, const void *b)
{
    const struct hf_making *const *left = a, *const *right = b;
    const struct hf_row *one = (*left)->row, *other = (*right)->row;
    int order = hf_text_order(one->w.limit_name, other->w.limit_name);
    if (order == 0)
        order = (one->w.priority > other->w.priority) -
                (one->w.priority < other->w.priority);
    return order ? order : (*left > *right) - (*left < *right);
}

static bool comes_under(const struct hf_row *row)
{
    return row->status == HF_STATUS_QUEUED && row->w.limit_name && row->w.gate &&
           !row->w.fair_key && !row->w.lane_key &&
           (hf_same(row->w.gate, "limit") || hf_same(row->w.gate, "rate"));
}

/* Rows of one limit are together. */
static size_t same_limit(struct hf_making *const *sorted, size_t count, size_t first)
{
    size_t end = first + 1;
    while (end < count &&
           hf_same(sorted[end]->row->w.limit_name, sorted[first]->row->w.limit_name))
        end++;
    return end;
}

static void admit(struct hf_ops *ops, struct hf_making **sorted, size_t count)
{
    enum hf_sql_id statement = count > 1 ? HF_SQL_LIMIT_ADMITS : HF_SQL_LIMIT_ADMIT;
    for (size_t first = 0, end; first < count; first = end) {
        end = same_limit(sorted, count, first);
        for (size_t i = first; i < end; i++)
            sorted[i]->place = (int64_t)(i - first + 1);
        if (first == 0)
            hf_ops_call(ops, statement, HF_ANY_COUNT);
        else
            hf_ops_again(ops);
        hf_ops_text(ops, sorted[first]->row->w.limit_name);
        hf_ops_i64(ops, (int64_t)(end - first));
    }
}

void hf_gates_admit(struct hf_ops *ops, struct hf_making *makings, size_t n)
{
    struct hf_making **sorted = hf_arena_array(&ops->arena, n,
                                               sizeof(struct hf_making *));
    size_t count = 0;
    if (!sorted) {
        ops->state = HF_ENOMEM;
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (comes_under(makings[i].row))
            sorted[count++] = &makings[i];
    qsort(sorted, count, sizeof *sorted, by_limit);
    admit(ops, sorted, count);
}

/* ---- granting ------------------------------------------------------------------------ */

static void for_each_name(struct hf_ops *ops, enum hf_sql_id statement, bool changes)
{
    for (size_t i = 0; i < ops->gate_count; i++) {
        const struct hf_gate_note *note = &ops->gates[i];
        if (i == 0)
            hf_ops_call(ops, statement, HF_ANY_COUNT);
        else
            hf_ops_again(ops);
        hf_ops_text(ops, note->name);
        if (!changes)
            continue;
        hf_ops_i64(ops, note->used);
        hf_ops_i64(ops, note->open);
        hf_ops_i64(ops, note->back);
    }
}

void hf_gates_grant(struct hf_ops *ops)
{
    for_each_name(ops, HF_SQL_LIMIT_LOCK, false);
    for_each_name(ops, HF_SQL_LIMIT_COUNT, true);
    for_each_name(ops, HF_SQL_LIMIT_OPEN, false);
    for_each_name(ops, HF_SQL_LIMIT_TAKEN, false);
    ops->gate_count = 0;
}

static bool promotes(const struct hf_call *call)
{
    return call->statement == HF_SQL_LIMIT_OPEN;
}

void hf_gates_ring(struct hf_ops *ops)
{
    for (size_t i = 0; i < ops->batch.call_count; i++) {
        const struct hf_call *call = &ops->batch.calls[i];
        for (size_t k = 0; promotes(call) && k < call->out_count; k++)
            ops->sql->methods->bell_ring(
                ops->sql,
                hf_topic_of_queue(hf_out_text(call, k, HF_COL_LIMIT_OPEN_QUEUE)), 1);
    }
}

int hf_gates_promoted(const struct hf_ops *ops, int64_t *promoted, struct hf_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ops->batch.call_count; i++)
        if (promotes(&ops->batch.calls[i])) {
            rc = hf_ops_counted(ops, err);
            *promoted += (int64_t)ops->batch.calls[i].out_count;
        }
    return rc;
}

/* ---- fair shares --------------------------------------------------------------------- */

static int64_t share(const struct hf_row *row)
{
    return HF_FAIR_STRIDE / (row->fair_weight > 0 ? row->fair_weight : 1);
}

static bool same_turn(const struct hf_row *a, const struct hf_row *b)
{
    return a->w.priority == b->w.priority && hf_same(a->w.fair_key, b->w.fair_key) &&
           hf_same(a->w.queue, b->w.queue);
}

/* Rows that wait for their time get their tag when it has come. */
static bool comes(const struct hf_row *row)
{
    return row->w.fair_key && row->status == HF_STATUS_QUEUED &&
           !(row->w.gate && hf_same(row->w.gate, "due"));
}

bool hf_fair_comes(const struct hf_row *was, const struct hf_row *row)
{
    return comes(row) && !comes(was);
}

/* The shares of the rows of the same key before row `at`, or of all of them from it on. */
static int64_t shares_before(const struct hf_making *makings, size_t at)
{
    int64_t sum = 0;
    for (size_t i = 0; i < at; i++)
        if (comes(makings[i].row) && same_turn(makings[i].row, makings[at].row))
            sum += share(makings[i].row);
    return sum;
}

static int64_t shares_from(const struct hf_making *makings, size_t n, size_t at)
{
    int64_t sum = 0;
    for (size_t i = at; i < n; i++)
        if (comes(makings[i].row) && same_turn(makings[i].row, makings[at].row))
            sum += share(makings[i].row);
    return sum;
}

void hf_fair_take(struct hf_ops *ops, const struct hf_making *makings, size_t n)
{
    bool begun = false;
    for (size_t i = 0; i < n; i++) {
        const struct hf_row *row = makings[i].row;
        if (!comes(row) || shares_before(makings, i) > 0)
            continue;
        if (begun)
            hf_ops_again(ops);
        else
            hf_ops_call(ops, HF_SQL_FAIR_TAKE, HF_ANY_COUNT);
        begun = true;
        hf_ops_text(ops, row->w.queue);
        hf_ops_i64(ops, row->w.priority);
        hf_ops_text(ops, row->w.fair_key);
        hf_ops_i64(ops, shares_from(makings, n, i));
    }
}

void hf_fair_tag(struct hf_ops *ops, const struct hf_making *makings, size_t n)
{
    bool begun = false;
    for (size_t i = 0; i < n; i++) {
        const struct hf_row *row = makings[i].row;
        if (!comes(row))
            continue;
        if (begun)
            hf_ops_again(ops);
        else
            hf_ops_call(ops, HF_SQL_FAIR_TAG, HF_ANY_COUNT);
        begun = true;
        hf_ops_text(ops, row->w.work_id);
        hf_ops_text(ops, row->w.queue);
        hf_ops_i64(ops, row->w.priority);
        hf_ops_text(ops, row->w.fair_key);
        hf_ops_i64(ops, shares_before(makings, i));
    }
}
