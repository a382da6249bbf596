/* Wake-ups through the sidecar's page: a page of the file next to the database, which every process
 * that has the store open maps into its memory.
 *
 * A topic is a word of the page and one bit of that word's waiters. A ring bumps the word
 * and wakes as many waiters of its bit as it can feed. Hints only: the process that waits
 * looks again after each slice, both at the word (a ring that woke another process) and
 * at the database (a process that died between its commit and its ring, a foreign
 * writer).
 *
 * A ticket is the word plus `stir`, a count of changes that this handle noticed by looking at the
 * database: so one look makes good for all its waiters. A waiter takes a ticket (lite_bell_seen),
 * reads the store, and waits until the ticket is another one (lite_bell_wait). */
#include "db/lite/lite.h"
#include "os/futex.h"

/* The least time between two looks of a handle, however many of its waiters ask for one. */
#define LOOK_EVERY_MS 20

static _Atomic uint32_t *word_of(struct lite *lite, uint32_t topic)
{
    return &lite->side.page->bells[topic % LITE_BELLS];
}

static _Atomic uint32_t *waiters_of(struct lite *lite, uint32_t topic)
{
    return &lite->side.page->bell_waiters[topic % LITE_BELLS];
}

static uint32_t bits_of(uint32_t topic)
{
    return 1u << (topic / LITE_BELLS % 32);
}

static uint32_t ticket(struct lite *lite, uint32_t topic)
{
    return atomic_load_explicit(word_of(lite, topic), memory_order_acquire) +
           atomic_load_explicit(&lite->watch.stir, memory_order_acquire);
}

void lite_bell_ring(struct hf_sql *sql, uint32_t topic, uint32_t count)
{
    struct lite *lite = lite_of(sql);
    if (lite->read_only)
        return;
    _Atomic uint32_t *word = word_of(lite, topic);
    (void)atomic_fetch_add(word, 1);
    if (atomic_load(waiters_of(lite, topic)) > 0)
        futex_wake_shared(word, bits_of(topic), count);
}

/* Whether another connection has changed the database since the last call. Under the watch's lock.
 * An error counts as a change: the caller then reads the store, meets the error and can report it.
 * The first call finds nothing: lite_bell_seen makes it before it returns the first ticket, so
 * every ticket is of a later moment. */
static bool data_moved(struct lite *lite)
{
    struct lite_watch *watch = &lite->watch;
    int64_t version = 0;
    bool first = !watch->conn;
    if (first && lite_conn_new(lite, LITE_READS, &watch->conn, NULL) != 0)
        return true;
    if (lite_pragma(watch->conn, "PRAGMA data_version", &version, NULL) != 0)
        return true;
    bool moved = !first && version != watch->data_version;
    watch->data_version = version;
    atomic_store_explicit(&watch->ready, true, memory_order_release);
    return moved;
}

/* Notes in `stir` that another connection has changed the database. By the system's clock and not
 * the handle's: it limits how often the file is read, also where the clock of a test does not move.
 * */
static void look_at_database(struct lite *lite)
{
    struct lite_watch *watch = &lite->watch;
    if (lite->memory)
        return; /* no other process can have changed it */
    hf_lock(&watch->lock);
    const struct hf_clock *clock = hf_clock_system();
    hf_ms now = clock->mono_ms(clock->user);
    if (now - watch->looked_at >= LOOK_EVERY_MS) {
        watch->looked_at = now;
        if (data_moved(lite))
            (void)atomic_fetch_add_explicit(&watch->stir, 1, memory_order_release);
    }
    hf_unlock(&watch->lock);
}

/* A follower asks for one ring each time, before it looks: so a commit that no process
 * waits for costs one load, and one that many wait for one call. */
uint32_t lite_bell_seen(struct hf_sql *sql, uint32_t topic)
{
    struct lite *lite = lite_of(sql);
    if (topic == HF_TOPIC_ANY)
        atomic_store(&lite->side.page->followed, 1);
    if (!atomic_load_explicit(&lite->watch.ready, memory_order_acquire))
        look_at_database(lite);
    return ticket(lite, topic);
}

/* Until the ticket is another, or for `ms`. */
static bool wait_for_ring(struct lite *lite, uint32_t topic, uint32_t seen, hf_ms ms)
{
    while (ticket(lite, topic) == seen) {
        if (ms <= 0)
            return false;
        hf_ms slice = ms < LITE_BELL_SLICE_MS ? ms : LITE_BELL_SLICE_MS;
        hf_ms start = lite->clock->mono_ms(lite->clock->user);
        if (lite->system_clock) {
            uint32_t stir = atomic_load_explicit(&lite->watch.stir, memory_order_acquire);
            futex_wait_shared(word_of(lite, topic), seen - stir, bits_of(topic), slice);
        } else {
            lite->clock->wait_ms(lite->clock->user, slice);
        }
        hf_ms passed = lite->clock->mono_ms(lite->clock->user) - start;
        ms -= passed > 0 ? passed
                         : 1; /* a clock that does not advance must not hold us */
        if (passed + 1 >= slice)
            look_at_database(lite);
    }
    return true;
}

bool lite_bell_wait(struct hf_sql *sql, uint32_t topic, uint32_t seen, hf_ms ms)
{
    struct lite *lite = lite_of(sql);
    lite_wait_begins(waiters_of(lite, topic));
    bool rung = wait_for_ring(lite, topic, seen, ms);
    lite_wait_ends(waiters_of(lite, topic));
    return rung;
}

static void ring_followers(struct lite *lite, struct db_member *const *members,
                           size_t count)
{
    _Atomic uint32_t *followed = &lite->side.page->followed;
    size_t i = 0;
    while (i < count && (members[i]->rc || members[i]->batch->read_only))
        i++;
    if (i < count && atomic_load(followed) && atomic_exchange(followed, 0))
        lite_bell_ring(&lite->sql, HF_TOPIC_ANY, INT32_MAX);
}

/* One call for each topic of a group, whatever the number of members that ring it. */
void lite_ring_members(struct lite *lite, struct db_member *const *members, size_t count)
{
    struct hf_ring rings[32];
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        const struct hf_batch *batch = members[i]->batch;
        for (size_t j = 0; members[i]->rc == 0 && j < batch->ring_count; j++) {
            size_t at = 0;
            while (at < used && rings[at].topic != batch->rings[j].topic)
                at++;
            if (at < used) {
                uint32_t more = batch->rings[j].count;
                uint32_t room = UINT32_MAX - rings[at].count;
                rings[at].count += more < room ? more : room;
            } else if (used < sizeof(rings) / sizeof(rings[0])) {
                rings[used++] = batch->rings[j];
            } else {
                lite_bell_ring(&lite->sql, batch->rings[j].topic, batch->rings[j].count);
            }
        }
    }
    for (size_t i = 0; i < used; i++)
        lite_bell_ring(&lite->sql, rings[i].topic, rings[i].count);
    ring_followers(lite, members, count);
}
