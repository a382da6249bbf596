/* Group commit: who runs the batches that are waiting.
 *
 * Callers queue their batches. If nobody leads, the caller leads: it takes the store's turn,
 * takes what is queued by then, runs it all in one transaction, answers, and passes the lead
 * to the first waiter if more have come. A lone caller so runs its batch on its own thread,
 * with one uncontended lock more than SQLite alone.
 *
 * Submitted batches have no caller to lead. The writer thread, started at the first one,
 * leads when such a batch is first in the queue, and calls `done` of all of them.
 *
 * The lead lasts for one transaction. `leading` is true from the moment somebody decides to
 * lead until nobody is meant to. When it is false and the queue is not empty, the writer
 * thread has been told.
 */
#include <sched.h>

#include "db/lite/lite.h"
#include "os/futex.h"

enum { WAITING, LEAD, ANSWERED };

static void push(struct lite_member ***tail, struct lite_member *member)
{
    member->next = NULL;
    **tail = member;
    *tail = &member->next;
}

static void lock(struct lite_group *group)
{
    int rc = pthread_mutex_lock(&group->lock);
    hf_assert(rc == 0);
}

static void unlock(struct lite_group *group)
{
    int rc = pthread_mutex_unlock(&group->lock);
    hf_assert(rc == 0);
}

static void signal_writer(struct lite_group *group)
{
    int rc = pthread_cond_signal(&group->wake);
    hf_assert(rc == 0);
}

static size_t rows_of(const struct hf_batch *batch)
{
    size_t rows = 0;
    for (size_t i = 0; i < batch->call_count; i++)
        rows += batch->calls[i].rows;
    return rows;
}

/* Takes the first batches off the queue, behind the `count` that a transaction has: no more
 * than it should hold, and at least one where it has none. Gives how many it has then. */
static size_t take(struct lite_group *group, struct lite_member **members, size_t count)
{
    size_t rows = 0;
    for (size_t i = 0; i < count; i++)
        rows += rows_of(members[i]->batch);
    lock(group);
    /* A place is kept for a patient one, or a full queue would leave it behind for ever. */
    size_t most = LITE_GROUP_MAX - (group->patient ? 1 : 0);
    while (group->head && group->head->batch && count < most) {
        struct lite_member *member = group->head;
        rows += rows_of(member->batch);
        if (count > 0 && rows > LITE_GROUP_ROWS)
            break;
        members[count++] = member;
        group->head = member->next;
    }
    if (!group->head)
        group->tail = &group->head;
    if (group->patient && count > 0 && count < LITE_GROUP_MAX) {
        members[count++] = group->patient;
        group->patient = NULL;
    }
    unlock(group);
    return count;
}

/* Who came while the others ran goes with them, and needs no sync of his own. */
size_t lite_group_late(struct lite *lite, struct lite_member **members, size_t count)
{
    size_t all = take(&lite->group, members, count);
    (void)atomic_fetch_add_explicit(&lite->counts.late, (int64_t)(all - count),
                                    memory_order_relaxed);
    return all;
}

/* The member is its caller's again from the store on: nothing of it may be touched after. */
static void answer(struct lite_member *member)
{
    atomic_store_explicit(&member->state, ANSWERED, memory_order_release);
    futex_wake(&member->state);
}

static void queue_done(struct lite_group *group, struct lite_member *member)
{
    lock(group);
    push(&group->done_tail, member);
    signal_writer(group);
    unlock(group);
}

static void answer_members(struct lite *lite, struct lite_member *const *members,
                           size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (members[i]->done)
            queue_done(&lite->group, members[i]);
        else
            answer(members[i]);
    }
}

static void count_group(struct lite *lite, size_t count)
{
    struct lite_counts *counts = &lite->counts;
    (void)atomic_fetch_add_explicit(&counts->groups, 1, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&counts->members, (int64_t)count,
                                    memory_order_relaxed);
    /* Only the leader writes it. */
    if ((int64_t)count >
        atomic_load_explicit(&counts->largest_group, memory_order_relaxed))
        atomic_store_explicit(&counts->largest_group, (int64_t)count,
                              memory_order_relaxed);
}

/* Passes the lead on, or drops it if nobody waits. */
static void pass_lead(struct lite_group *group)
{
    lock(group);
    group->moved++;
    struct lite_member *next = group->head;
    if (next && !next->done) {
        atomic_store_explicit(&next->state, LEAD, memory_order_release);
        futex_wake(&next->state);
    } else {
        group->leading = false;
        if (next)
            signal_writer(group);
    }
    unlock(group);
}

/* One transaction with what is queued, then the lead goes on. `self` is answered by its
 * caller's return and is not woken. True when it was among them. */
static bool lead_once(struct lite *lite, struct lite_member *self)
{
    struct lite_member *members[LITE_GROUP_MAX];
    struct hf_err err = { 0 };
    int rc = lite_turn_take(lite, &err);
    size_t count = take(&lite->group, members, 0);
    if (rc == 0) {
        count = lite_txn_lead(lite, members, count);
        lite_turn_release(lite);
        count_group(lite, count);
        lite_ring_members(lite, members, count);
        lite_checkpoint_look(lite);
    }
    size_t others = 0, hasty = 0;
    for (size_t i = 0; i < count; i++) {
        if (rc != 0) {
            members[i]->rc = rc;
            members[i]->err = err;
        }
        hasty += members[i] != self && !members[i]->batch->patient;
        if (members[i] != self)
            members[others++] = members[i];
    }
    bool served = others < count;
    if (self)
        atomic_store_explicit(&self->state, WAITING, memory_order_relaxed);
    answer_members(lite, members, others);
    /* Those just answered often come back at once: letting them queue before the lead goes
     * on makes the next group whole (measured with 4 callers: 3.8 members instead of 2.9;
     * with 64 it makes no difference). A lone caller has nobody to wait for, and patient ones
     * wait themselves. */
    if (hasty > 0)
        (void)sched_yield();
    pass_lead(&lite->group);
    return served;
}

static uint32_t wait_for_word(struct lite_member *member)
{
    uint32_t state;
    while ((state = atomic_load_explicit(&member->state, memory_order_acquire)) ==
           WAITING)
        futex_wait(&member->state, WAITING);
    return state;
}

/* Joins the queue, or takes the lead that nobody has. True: the caller leads now. */
static bool join(struct lite_group *group, struct lite_member *self, bool queue)
{
    lock(group);
    bool lead = !group->leading;
    group->leading = true;
    group->joined++;
    group->moved++;
    if (queue || !lead)
        push(&group->tail, self);
    unlock(group);
    return lead;
}

/* ---- patience ------------------------------------------------------------------------ */

/* A patient batch does not lead where others commit anyway: it goes with the next of theirs,
 * one sync for both. It waits as long as something moves, and in vain where nothing did for
 * PATIENCE_MS; then some patient batches do not wait, twice as many each time. */
#define PATIENCE_MS 1
#define SKIPS_MOST 64

static bool begin_waiting(struct lite_group *group, struct lite_member *self,
                          uint64_t *ret_moved)
{
    lock(group);
    bool others = group->joined != group->joined_then && !group->patient;
    group->joined_then = group->joined;
    bool waits = others && group->skips == 0;
    if (waits)
        group->patient = self;
    else if (others)
        group->skips--;
    *ret_moved = group->moved;
    unlock(group);
    return waits;
}

/* Whether the batch is still nobody's, and nothing has moved since `moved`. */
static bool in_vain(struct lite_group *group, struct lite_member *self, uint64_t *moved)
{
    lock(group);
    bool vain = group->patient == self && !group->leading && group->moved == *moved;
    *moved = group->moved;
    if (vain) {
        group->patient = NULL;
        if (group->skips_next < SKIPS_MOST)
            group->skips_next = group->skips_next * 2 + 1;
        group->skips = group->skips_next;
    }
    unlock(group);
    return vain;
}

/* True: it went with others and is answered. */
static bool go_with_others(struct lite *lite, struct lite_member *self)
{
    struct lite_group *group = &lite->group;
    uint64_t moved;
    if (!begin_waiting(group, self, &moved))
        return false;
    while (atomic_load_explicit(&self->state, memory_order_acquire) == WAITING) {
        futex_wait_ms(&self->state, WAITING, PATIENCE_MS);
        if (in_vain(group, self, &moved))
            return false;
    }
    (void)atomic_fetch_add_explicit(&lite->counts.carried, 1, memory_order_relaxed);
    return true;
}

static void end_patience(struct lite_group *group, bool carried)
{
    lock(group);
    if (carried)
        group->skips_next /= 4;
    else
        group->joined_then++; /* its own */
    unlock(group);
}

int lite_group_run(struct lite *lite, struct hf_batch *batch, struct hf_err *err)
{
    struct lite_group *group = &lite->group;
    struct lite_member self = { .batch = batch };
    bool patient = batch->patient && !lite->inline_mode;
    bool carried = patient && go_with_others(lite, &self);
    bool lead = !carried && (join(group, &self, true) || wait_for_word(&self) == LEAD);
    while (lead) {
        bool served = lead_once(lite, &self);
        lead = !served && wait_for_word(&self) == LEAD;
    }
    if (patient)
        end_patience(group, carried);
    if (self.rc != 0 && err)
        *err = self.err;
    return self.rc;
}

int lite_group_enter(struct lite *lite, struct hf_err *err)
{
    struct lite_group *group = &lite->group;
    struct lite_member self = { 0 };
    if (!join(group, &self, false)) {
        uint32_t state = wait_for_word(&self);
        hf_assert(state == LEAD); /* without a batch there is nothing to answer */
        lock(group);
        hf_assert(group->head == &self); /* the lead goes to the first */
        group->head = self.next;
        if (!group->head)
            group->tail = &group->head;
        unlock(group);
    }
    int rc = lite_turn_take(lite, err);
    if (rc != 0)
        pass_lead(group);
    return rc;
}

void lite_group_leave(struct lite *lite)
{
    lite_turn_release(lite);
    pass_lead(&lite->group);
}

static void free_member(struct lite *lite, struct lite_member *member)
{
    lite->alloc->free(lite->alloc->user, member);
}

static void call_done(struct lite *lite, struct lite_member *member)
{
    if (member->batch->read_only && !lite->memory)
        member->rc = lite_read_run(lite, member->batch, &member->err);
    member->done(member->user, member->batch, member->rc, &member->err);
    free_member(lite, member);
}

/* Calls what is to be called, without the lock. True when there was any. */
static bool call_all_done(struct lite *lite)
{
    struct lite_group *group = &lite->group;
    lock(group);
    struct lite_member *member = group->done_head;
    group->done_head = NULL;
    group->done_tail = &group->done_head;
    unlock(group);
    bool any = member;
    while (member) {
        struct lite_member *next = member->next;
        call_done(lite, member);
        member = next;
    }
    return any;
}

/* Waits until there is something for the writer thread; false at the end. */
static bool wait_for_work(struct lite_group *group, bool *ret_lead)
{
    lock(group);
    while (!group->done_head && !(group->head && !group->leading) &&
           !(group->stopping && !group->head)) {
        int rc = pthread_cond_wait(&group->wake, &group->lock);
        hf_assert(rc == 0);
    }
    *ret_lead = group->head && !group->leading;
    if (*ret_lead)
        group->leading = true;
    bool more = group->done_head || *ret_lead;
    unlock(group);
    return more;
}

static void *writer_main(void *arg)
{
    struct lite *lite = arg;
    bool lead;
    while (wait_for_work(&lite->group, &lead)) {
        if (lead) {
            (void)lead_once(lite, NULL); /* it has no batch of its own */
        }
        while (call_all_done(lite))
            continue;
    }
    return NULL;
}

/* Under the lock. */
static int start_writer(struct lite *lite, struct hf_err *err)
{
    if (lite->group.started)
        return 0;
    int rc = pthread_create(&lite->group.thread, NULL, writer_main, lite);
    if (rc != 0)
        return hf_fail(err, HF_ENOMEM, NULL, "the writer thread cannot be started");
    lite->group.started = true;
    return 0;
}

static int run_now(struct lite *lite, struct hf_batch *batch, hf_batch_done *done,
                   void *user)
{
    struct hf_err err = { 0 };
    int rc = lite->sql.methods->run(&lite->sql, batch, &err);
    done(user, batch, rc, &err);
    return 0;
}

int lite_submit(struct hf_sql *sql, struct hf_batch *batch, hf_batch_done *done,
                void *user, struct hf_err *err)
{
    struct lite *lite = lite_of(sql);
    struct lite_group *group = &lite->group;
    if (lite->inline_mode)
        return run_now(lite, batch, done, user);
    if (lite->read_only && !batch->read_only)
        return hf_fail_plain(err, HF_EREADONLY);

    struct lite_member *member = lite->alloc->realloc(lite->alloc->user, NULL,
                                                      sizeof(*member));
    if (!member)
        return hf_fail_plain(err, HF_ENOMEM);
    *member = (struct lite_member){ .batch = batch, .done = done, .user = user };
    lock(group);
    int rc = start_writer(lite, err);
    if (rc == 0) {
        bool reads = batch->read_only && !lite->memory;
        push(reads ? &group->done_tail : &group->tail, member);
        group->joined += !reads;
        group->moved += !reads;
        if (reads || !group->leading)
            signal_writer(group);
    }
    unlock(group);
    if (rc != 0)
        free_member(lite, member);
    return rc;
}

void lite_group_init(struct lite *lite)
{
    lite->group.tail = &lite->group.head;
    lite->group.done_tail = &lite->group.done_head;
    lite_sync_init(&lite->group.lock, &lite->group.wake);
}

void lite_group_stop(struct lite *lite)
{
    struct lite_group *group = &lite->group;
    lock(group);
    bool started = group->started;
    group->stopping = true;
    signal_writer(group);
    unlock(group);
    if (started) {
        int rc = pthread_join(group->thread, NULL);
        hf_assert(rc == 0);
    }
}

void lite_group_fini(struct lite *lite)
{
    lite_sync_fini(&lite->group.lock, &lite->group.wake);
}
