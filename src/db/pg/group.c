/* Who runs the batches that are waiting.
 *
 * Callers queue their batches. While nobody writes, the first to come takes what is queued by
 * then, runs it all as one transaction, answers, and nudges the first that waits. A lone caller
 * so runs its batch on its own thread. Few large transactions are cheaper than many small ones,
 * so a second one goes beside the first only if it is worth it: when PG_GROUP_WORTH batches wait
 * (while one is being synced the server works on the other; measured with 16 callers in
 * docs/internals/postgres.md), or when the first is slow, because it waits for somebody's lock.
 * Submitted batches have no caller: a thread, started at the first one, leads for them and calls
 * `done`.
 */
#include <time.h>

#include "db/pg/pg.h"
#include "os/futex.h"

/* What a caller waits for. A nudge tells it to look whether it may lead. */
enum { WAITING, NUDGED, ANSWERED };

static void lock(struct pg_group *group)
{
    int rc = pthread_mutex_lock(&group->lock);
    hf_assert(rc == 0);
}

static void unlock(struct pg_group *group)
{
    int rc = pthread_mutex_unlock(&group->lock);
    hf_assert(rc == 0);
}

static void push(struct pg_group *group, struct pg_member *member)
{
    member->next = NULL;
    *group->tail = member;
    group->tail = &member->next;
    group->queued++;
}

static size_t rows_of(const struct hf_batch *batch)
{
    size_t rows = 0;
    for (size_t i = 0; i < batch->call_count; i++)
        rows += batch->calls[i].rows;
    return rows;
}

/* Under the lock: at least one, and no more than a transaction should hold. One that reads
 * goes alone. */
static size_t take(struct pg_group *group, struct pg_member **members)
{
    size_t count = 0, rows = 0;
    bool reads = group->head->batch->read_only;
    while (group->head && count < (reads ? 1 : PG_GROUP_MAX)) {
        rows += rows_of(group->head->batch);
        if (count > 0 && (rows > PG_GROUP_ROWS || group->head->batch->read_only))
            break;
        members[count++] = group->head;
        group->head = group->head->next;
    }
    if (!group->head)
        group->tail = &group->head;
    group->queued -= (uint32_t)count;
    return count;
}

/* Under the lock. */
static bool may_lead(const struct pg_group *group)
{
    return group->head &&
           (group->leaders == 0 || (group->leaders < PG_LEADERS_MAX &&
                                    (group->queued >= PG_GROUP_WORTH ||
                                     pg_mono_ms() - group->led_at >= PG_SLOW_MS)));
}

/* Under the lock: whoever is first may lead. */
static void nudge_first(struct pg_group *group)
{
    struct pg_member *first = group->head;
    if (!may_lead(group))
        return;
    if (first->done) {
        (void)pthread_cond_signal(&group->wake); /* cannot fail */
        return;
    }
    atomic_store_explicit(&first->state, NUDGED, memory_order_relaxed);
    futex_wake(&first->state);
}

static void count_group(struct pg *pg, size_t count)
{
    struct pg_counts *counts = &pg->counts;
    pg_count(&counts->groups);
    (void)atomic_fetch_add_explicit(&counts->members, (int64_t)count,
                                    memory_order_relaxed);
    int64_t largest = atomic_load_explicit(&counts->largest_group, memory_order_relaxed);
    while (largest < (int64_t)count &&
           !atomic_compare_exchange_weak_explicit(&counts->largest_group, &largest,
                                                  (int64_t)count, memory_order_relaxed,
                                                  memory_order_relaxed))
        continue;
}

static void call_done(struct pg *pg, struct pg_member *const *members, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct pg_member *member = members[i];
        if (!member->done)
            continue;
        member->done(member->user, member->batch, member->rc, &member->err);
        pg->alloc->free(pg->alloc->user, member);
    }
}

/* Its caller's again from the store on: nothing of the member may be touched after it. */
static void answer(struct pg_member *member)
{
    atomic_store_explicit(&member->state, ANSWERED, memory_order_release);
    futex_wake(&member->state);
}

/* Under the lock, which is let go meanwhile: one transaction of what is queued. */
static void lead(struct pg *pg)
{
    struct pg_group *group = &pg->group;
    struct pg_member *members[PG_GROUP_MAX], *submitted[PG_GROUP_MAX];
    size_t count = take(group, members), submits = 0;
    group->leaders++;
    group->led_at = pg_mono_ms();
    unlock(group);
    if (members[0]->batch->read_only)
        members[0]->rc = pg_run_read(pg, members[0]->batch, &members[0]->err);
    else
        pg_run_group(pg, members, count);
    count_group(pg, count);
    pg_local_count(pg, members, count);
    pg_bell_ring_members(pg, members, count);
    for (size_t i = 0; i < count; i++) {
        if (members[i]->done)
            submitted[submits++] = members[i];
        else
            answer(members[i]);
    }
    lock(group);
    group->leaders--;
    nudge_first(group);
    if (submits) {
        unlock(group);
        call_done(pg, submitted, submits);
        lock(group);
    }
}

/* Until it is answered, nudged, or time to see whether somebody is slow. True: answered. */
static bool wait_for_word(struct pg_member *self)
{
    uint32_t nudged = NUDGED;
    futex_wait_ms(&self->state, WAITING, PG_SLOW_MS);
    (void)atomic_compare_exchange_strong(&self->state, &nudged, WAITING);
    return atomic_load_explicit(&self->state, memory_order_acquire) == ANSWERED;
}

int pg_group_run(struct pg *pg, struct hf_batch *batch, struct hf_err *err)
{
    struct pg_group *group = &pg->group;
    struct pg_member self = { .batch = batch };
    bool answered = false;
    lock(group);
    push(group, &self);
    while (!answered) {
        if (may_lead(group))
            lead(pg);
        unlock(group);
        answered = wait_for_word(&self);
        if (!answered)
            lock(group);
    }
    return hf_fail_as(err, self.rc, &self.err);
}

/* Under the lock: until there is something to lead, or time to see whether somebody is slow.
 * The condition runs on the realtime clock, and a jump of it only makes the thread look too
 * soon or a moment late. */
static void wait_for_turn(struct pg_group *group)
{
    const struct hf_clock *clock = hf_clock_system();
    hf_ms until = clock->wall_ms(clock->user) + PG_SLOW_MS;
    struct timespec at = { .tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000 };
    (void)pthread_cond_timedwait(&group->wake, &group->lock, &at);
}

static void *thread_main(void *arg)
{
    struct pg *pg = arg;
    struct pg_group *group = &pg->group;
    lock(group);
    while (group->head || !group->stopping) {
        if (may_lead(group))
            lead(pg);
        else if (group->head)
            wait_for_turn(group);
        else
            (void)pthread_cond_wait(&group->wake, &group->lock); /* cannot fail */
    }
    unlock(group);
    return NULL;
}

static int run_now(struct pg *pg, struct hf_batch *batch, hf_batch_done *done, void *user)
{
    struct hf_err err = { 0 };
    int rc = pg->sql.methods->run(&pg->sql, batch, &err);
    done(user, batch, rc, &err);
    return 0;
}

/* Under the lock. */
static int start(struct pg *pg, struct hf_err *err)
{
    struct pg_group *group = &pg->group;
    if (group->started)
        return 0;
    if (pthread_create(&group->thread, NULL, thread_main, pg))
        return hf_fail(err, HF_ENOMEM, NULL, "the writer thread cannot be started");
    group->started = true;
    return 0;
}

int pg_submit(struct hf_sql *sql, struct hf_batch *batch, hf_batch_done *done, void *user,
              struct hf_err *err)
{
    struct pg *pg = pg_of(sql);
    if (pg->inline_mode)
        return run_now(pg, batch, done, user);
    if (pg->read_only && !batch->read_only)
        return hf_fail_plain(err, HF_EREADONLY);
    struct pg_member *member = pg->alloc->realloc(pg->alloc->user, NULL, sizeof(*member));
    if (!member)
        return hf_fail_plain(err, HF_ENOMEM);
    *member = (struct pg_member){ .batch = batch, .done = done, .user = user };
    lock(&pg->group);
    int rc = start(pg, err);
    if (rc == 0) {
        push(&pg->group, member);
        (void)pthread_cond_signal(&pg->group.wake); /* cannot fail */
    }
    unlock(&pg->group);
    if (rc)
        pg->alloc->free(pg->alloc->user, member);
    return rc;
}

int pg_group_init(struct pg *pg)
{
    pg->group.tail = &pg->group.head;
    if (pthread_mutex_init(&pg->group.lock, NULL) ||
        pthread_cond_init(&pg->group.wake, NULL))
        return HF_ENOMEM;
    return 0;
}

void pg_group_stop(struct pg *pg)
{
    lock(&pg->group);
    bool started = pg->group.started;
    pg->group.stopping = true;
    (void)pthread_cond_signal(&pg->group.wake); /* cannot fail */
    unlock(&pg->group);
    if (started)
        (void)pthread_join(pg->group.thread,
                           NULL); /* it is ours, and nobody else joins it */
}

void pg_group_fini(struct pg *pg)
{
    (void)pthread_cond_destroy(&pg->group.wake);
    (void)pthread_mutex_destroy(&pg->group.lock);
}
