/* Group commit: batches that wait become one transaction. A caller whose batch is queued becomes
 * the leader if there is room for one; it runs all that is queued, answers the other callers, and
 * wakes the first that still waits. There is no thread in here (group.h). */
#include "db/group.h"

#include "base/err.h"
#include "os/futex.h"
#include "os/threads.h"

/* What a caller waits for. A woken one looks whether it may lead. */
enum { WAITING, WOKEN, ANSWERED };

/* Real time, also where the store's clock is injected: threads wait in real time. */
static hf_ms mono_ms(void)
{
    const struct hf_clock *clock = hf_clock_system();
    return clock->mono_ms(clock->user);
}

void db_group_init(struct db_group *group, const struct db_group_rules *rules,
                   void *driver)
{
    *group = (struct db_group){ .rules = rules, .driver = driver };
    group->tail = &group->head;
    hf_lock_init(&group->lock);
}

void db_group_fini(struct db_group *group)
{
    hf_lock_fini(&group->lock);
}

/* ---- the queue, under the lock -------------------------------------------------------- */

static void push(struct db_group *group, struct db_member *member)
{
    *group->tail = member;
    group->tail = &member->next;
    group->queued++;
}

static struct db_member *pop(struct db_group *group)
{
    struct db_member *member = group->head;
    group->head = member->next;
    if (!group->head)
        group->tail = &group->head;
    group->queued--;
    return member;
}

static size_t rows_of(const struct hf_batch *batch)
{
    size_t rows = 0;
    for (size_t i = 0; i < batch->call_count; i++)
        rows += batch->calls[i].rows;
    return rows;
}

/* Takes the first batches off the queue, behind the `count` that the transaction has: no more
 * than it should hold, and at least one where it has none. */
static size_t take(struct db_group *group, struct db_member **members, size_t count)
{
    size_t rows = 0;
    for (size_t i = 0; i < count; i++)
        rows += rows_of(members[i]->batch);
    while (group->head && group->head->batch && count < group->rules->members_max) {
        rows += rows_of(group->head->batch);
        if (count > 0 && rows > group->rules->rows_max)
            break;
        members[count++] = pop(group);
    }
    return count;
}

/* Whether the first in the queue may begin now. A member without batch leads alone. */
static bool may_lead(const struct db_group *group)
{
    const struct db_group_rules *rules = group->rules;
    if (!group->head || group->leaders == 0)
        return group->head != NULL;
    return group->head->batch && group->leaders < rules->leaders_max &&
           (group->queued >= rules->worth || mono_ms() - group->led_at >= rules->slow_ms);
}

static void wake_first(struct db_group *group)
{
    if (!may_lead(group))
        return;
    atomic_store_explicit(&group->head->state, WOKEN, memory_order_relaxed);
    futex_wake(&group->head->state);
}

static void begin_to_lead(struct db_group *group)
{
    group->leaders++;
    group->led_at = mono_ms();
}

static void end_to_lead(struct db_group *group)
{
    group->leaders--;
    wake_first(group);
}

/* ---- leading -------------------------------------------------------------------------- */

static void count_group(struct db_group *group, size_t count)
{
    int64_t largest = atomic_load_explicit(&group->largest, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&group->groups, 1, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&group->members, (int64_t)count,
                                    memory_order_relaxed);
    while (largest < (int64_t)count && !atomic_compare_exchange_weak_explicit(
                                           &group->largest, &largest, (int64_t)count,
                                           memory_order_relaxed, memory_order_relaxed))
        continue;
}

/* The member is its caller's again from the store on: nothing of it is touched after. The
 * leader's own member needs no wake-up. */
static void answer(struct db_member *member, const struct db_member *self)
{
    atomic_store_explicit(&member->state, ANSWERED, memory_order_release);
    if (member != self)
        futex_wake(&member->state);
}

/* Under the lock, which is released meanwhile: one transaction of what is queued. */
static void lead(struct db_group *group, const struct db_member *self)
{
    struct db_member *members[DB_GROUP_MAX];
    size_t count = take(group, members, 0);
    begin_to_lead(group);
    hf_unlock(&group->lock);
    count = group->rules->lead(group->driver, members, count);
    count_group(group, count);
    for (size_t i = 0; i < count; i++)
        answer(members[i], self);
    hf_lock(&group->lock);
    end_to_lead(group);
}

/* Until the member is answered, woken, or it is time to see whether the leader is slow. Returns
 * whether it is answered. */
static bool wait_for_word(const struct db_group *group, struct db_member *self)
{
    uint32_t woken = WOKEN;
    if (group->rules->slow_ms)
        futex_wait_ms(&self->state, WAITING, group->rules->slow_ms);
    else
        futex_wait(&self->state, WAITING);
    (void)atomic_compare_exchange_strong(&self->state, &woken, WAITING);
    return atomic_load_explicit(&self->state, memory_order_acquire) == ANSWERED;
}

static bool is_answered(struct db_member *self)
{
    return atomic_load_explicit(&self->state, memory_order_acquire) == ANSWERED;
}

int db_group_run(struct db_group *group, struct hf_batch *batch, struct hf_err *err)
{
    struct db_member self = { .batch = batch };
    hf_lock(&group->lock);
    push(group, &self);
    for (;;) {
        if (may_lead(group) && group->head->batch)
            lead(group, &self);
        hf_unlock(&group->lock);
        if (is_answered(&self) || wait_for_word(group, &self))
            break;
        hf_lock(&group->lock);
    }
    return hf_fail_as(err, self.rc, &self.err);
}

size_t db_group_more(struct db_group *group, struct db_member **members, size_t count)
{
    hf_lock(&group->lock);
    size_t all = take(group, members, count);
    hf_unlock(&group->lock);
    (void)atomic_fetch_add_explicit(&group->late, (int64_t)(all - count),
                                    memory_order_relaxed);
    return all;
}

void db_group_enter(struct db_group *group)
{
    struct db_member self = { 0 };
    hf_lock(&group->lock);
    push(group, &self);
    while (group->head != &self || group->leaders > 0) {
        wake_first(group);
        hf_unlock(&group->lock);
        (void)wait_for_word(group, &self); /* the condition above decides */
        hf_lock(&group->lock);
    }
    (void)pop(group); /* it is `self` */
    begin_to_lead(group);
    hf_unlock(&group->lock);
}

void db_group_leave(struct db_group *group)
{
    hf_lock(&group->lock);
    end_to_lead(group);
    hf_unlock(&group->lock);
}
