/* Wake-ups: words in this process, LISTEN and NOTIFY between processes.
 *
 * A ring bumps its topic's word, wakes as many waiters of this process as it can feed, and is
 * told to the others: at once, then at most every 5 ms, all topics of that time in one message.
 * The first one goes behind the commit that it is about (db/pg/ring.c), the later ones are sent by
 * the bell's thread. It is never part of a transaction that does work, since a commit with a
 * NOTIFY waits for every other such commit of the server.
 *
 * Others are listened to from the first wait on, on a connection of its own (db/pg/listen.c), which
 * must first hear itself. Where it cannot (behind a transaction pooler, in inline mode) waiters
 * look by themselves. Hints only: each waiter looks again after each slice. */
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/ident.h"
#include "base/text.h"
#include "db/pg/pg.h"

#define POLL_SLICE_MS 250
#define HEARD_SLICE_MS 1000
#define RING_EVERY_MS 5
#define AGAIN_MS 5000 /* between attempts to listen */
#define APART_MS 5000
#define FOLLOW_TEXT "60000" /* for how long a follower says that it is one, ms; */
#define FOLLOW_AGAIN_MS 20000

int pg_bell_init(struct pg *pg)
{
    struct pg_bell *bell = &pg->bell;
    hf_lock_init(&bell->lock);
    hf_threads_init(&bell->thread, &bell->lock, NULL);
    for (size_t i = 0; i <= PG_ANY_BELL; i++)
        hf_cond_init(&bell->rung[i]);
    /* Of the system whatever was injected: two processes may be given the same numbers. */
    char nonce[HF_NONCE_TEXT];
    int rc = hf_nonce(hf_random_system(), nonce, NULL);
    if (rc == 0)
        memcpy(bell->tag, nonce, PG_TAG_TEXT - 1);
    bell->told_at = pg_mono_ms() - RING_EVERY_MS;
    bell->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return rc || bell->wake_fd < 0 ? HF_ENOMEM : 0;
}

void pg_bell_fini(struct pg *pg)
{
    for (size_t i = 0; i <= PG_ANY_BELL; i++)
        hf_cond_fini(&pg->bell.rung[i]);
    hf_threads_fini(&pg->bell.thread);
    hf_lock_fini(&pg->bell.lock);
    (void)close(pg->bell.wake_fd); /* an eventfd has nothing to lose */
}

void pg_bell_wake(struct pg_bell *bell)
{
    uint64_t one = 1;
    ssize_t done = write(bell->wake_fd, &one, sizeof one);
    (void)done; /* full: the thread was woken before */
}

/* ---- ringing ----------------------------------------------------------------------- */

/* Waiters for HF_TOPIC_ANY are woken by all of them. */
static size_t bell_of(uint32_t topic)
{
    return topic != HF_TOPIC_ANY ? topic % PG_BELLS : PG_ANY_BELL;
}

/* Under the lock. */
static void ring_here(struct pg_bell *bell, uint32_t topic, uint32_t count)
{
    size_t at = bell_of(topic);
    bell->words[at]++;
    for (uint32_t i = 0; i < count && i < 64; i++)
        (void)pthread_cond_signal(&bell->rung[at]); /* cannot fail */
    bell->words[PG_ANY_BELL]++;
    (void)pthread_cond_broadcast(&bell->rung[PG_ANY_BELL]); /* cannot fail */
}

/* Under the lock: every process is to look. */
static void ring_all(struct pg_bell *bell)
{
    for (size_t i = 0; i <= PG_ANY_BELL; i++) {
        bell->words[i]++;
        (void)pthread_cond_broadcast(&bell->rung[i]); /* cannot fail */
    }
}

static void owe(struct pg_due *due, const struct hf_ring *ring)
{
    size_t i = 0;
    while (i < due->count && due->rings[i].topic != ring->topic)
        i++;
    if (i == sizeof due->rings / sizeof due->rings[0]) {
        due->all = true;
        return;
    }
    if (i == due->count)
        due->rings[due->count++] = (struct hf_ring){ .topic = ring->topic };
    due->rings[i].count += ring->count < 64 ? ring->count : 64;
}

static bool is_due(const struct pg_due *due)
{
    return due->count > 0 || due->all;
}

/* "tag topic:count,topic:count", or "tag *". */
static void write_message(const struct pg_bell *bell, const struct pg_due *due,
                          struct hf_buf *out)
{
    hf_buf_text(out, bell->tag);
    hf_buf_char(out, ' ');
    for (size_t i = 0; !due->all && i < due->count; i++) {
        if (i)
            hf_buf_char(out, ',');
        hf_buf_i64(out, due->rings[i].topic);
        hf_buf_char(out, ':');
        hf_buf_i64(out, due->rings[i].count);
    }
    if (due->all)
        hf_buf_char(out, '*');
}

/* Empties the list; false: it was empty. */
static bool take_due(struct pg_bell *bell, struct hf_buf *out)
{
    hf_lock(&bell->lock);
    bool due = is_due(&bell->due);
    if (due)
        write_message(bell, &bell->due, out);
    bell->due = (struct pg_due){ 0 };
    bell->told_at = pg_mono_ms();
    hf_unlock(&bell->lock);
    return due;
}

bool pg_bell_channel(const struct pg *pg, struct hf_buf *out)
{
    hf_buf_text(out, "hf_");
    hf_buf_text(out, pg->url.schema);
    return hf_buf_state(out) == 0;
}

/* Tells the other processes, on the listening connection or on any of the pool. A hint that cannot
 * be given is lost, and made good by the waiters' own looks. */
static void tell(struct pg *pg, struct pg_conn *listener)
{
    struct hf_buf due, channel;
    hf_buf_init(&due, pg->alloc, 2048);
    hf_buf_init(&channel, pg->alloc, 64);
    if (take_due(&pg->bell, &due) && pg_bell_channel(pg, &channel)) {
        const char *const args[] = { hf_buf_str(&channel), hf_buf_str(&due) };
        int rc = listener ? pg_conn_ask(listener, DB_OWN_PG_RING, args, NULL, NULL)
                          : pg_ring_alone(pg, args[0], args[1]);
        if (rc == 0)
            pg_count(&pg->counts.rings);
    }
    hf_buf_fini(&due);
    hf_buf_fini(&channel);
}

/* Our own messages come back too: the waiters here were woken already. */
void pg_bell_hear(struct pg_bell *bell, const char *text)
{
    const char *space = strchr(text, ' ');
    if (!space || (space - text == PG_TAG_TEXT - 1 &&
                   memcmp(text, bell->tag, PG_TAG_TEXT - 1) == 0))
        return;
    text = space + 1;
    if (text[0] == '*') {
        ring_all(bell);
        return;
    }
    while (*text) {
        uint64_t numbers[2] = { 0, 0 };
        for (size_t i = 0; i < 2; i++) {
            for (; *text >= '0' && *text <= '9'; text++)
                numbers[i] = (numbers[i] * 10 + (uint64_t)(*text - '0')) & UINT32_MAX;
            if (*text)
                text++;
        }
        ring_here(bell, (uint32_t)numbers[0], (uint32_t)numbers[1]);
    }
}

/* ---- the thread -------------------------------------------------------------------- */

struct bell_thread {
    struct pg *pg;
    struct pg_conn *conn; /* it listens; NULL: none does */
    hf_ms tried_at;
};

/* Begins to listen, or continues without; after a gap every process looks. */
static void keep_listening(struct bell_thread *thread, bool wanted)
{
    struct pg_bell *bell = &thread->pg->bell;
    hf_ms now = pg_mono_ms();
    if (thread->conn && thread->conn->lost) {
        pg_conn_close(thread->conn);
        thread->tried_at = 0;
    } else if (thread->conn || !wanted ||
               (thread->tried_at && now - thread->tried_at < AGAIN_MS)) {
        return;
    }
    thread->tried_at = now;
    thread->conn = pg_listen_open(thread->pg);
    hf_lock(&bell->lock);
    bell->heard = thread->conn != NULL;
    bell->failed = !thread->conn;
    ring_all(bell);
    hf_unlock(&bell->lock);
}

/* Says in the store that every commit is waited for, so that writers ring. What was committed
 * before they knew is looked for once more. On a standby, and for a role that may only read, it is
 * not possible: such followers look by themselves. */
static void follow(struct bell_thread *thread)
{
    struct pg_bell *bell = &thread->pg->bell;
    const char *const args[] = { FOLLOW_TEXT };
    hf_lock(&bell->lock);
    bool due = bell->follow && thread->conn;
    if (due)
        bell->follow = false;
    hf_unlock(&bell->lock);
    if (!due || pg_conn_ask(thread->conn, DB_OWN_PG_FOLLOW, args, NULL, NULL))
        return;
    hf_lock(&bell->lock);
    ring_here(bell, HF_TOPIC_ANY, 1);
    hf_unlock(&bell->lock);
}

/* How long to sleep: until the next message may go out, or it is woken. */
static int pause_of(const struct bell_thread *thread, bool due, hf_ms left, bool wanted)
{
    if (due)
        return left > 0 ? (int)left : 0;
    return wanted && !thread->conn ? AGAIN_MS : -1;
}

static void sleep_until_woken(struct bell_thread *thread, int pause)
{
    struct pollfd at[] = { { .fd = thread->pg->bell.wake_fd, .events = POLLIN },
                           { .fd = thread->conn ? PQsocket(thread->conn->db) : -1,
                             .events = POLLIN } };
    if (thread->conn) /* notices that came with an answer */
        (void)pg_listen_take(thread->pg, thread->conn, NULL);
    if (thread->conn && thread->conn->lost)
        return;
    int count = poll(at, 2, pause);
    if (count > 0 && at[0].revents) {
        uint64_t ignored;
        ssize_t got = read(thread->pg->bell.wake_fd, &ignored, sizeof ignored);
        (void)got; /* nothing to read: another thread was faster */
    }
    if (count > 0 && at[1].revents)
        (void)pg_listen_take(thread->pg, thread->conn, NULL); /* rung as they are read */
}

static void *thread_main(void *arg)
{
    struct bell_thread thread = { .pg = arg };
    struct pg_bell *bell = &thread.pg->bell;
    for (bool stopping = false; !stopping;) {
        hf_lock(&bell->lock);
        bool due = is_due(&bell->due);
        hf_ms left = bell->told_at + RING_EVERY_MS - pg_mono_ms();
        bool wanted = bell->wanted;
        stopping = bell->thread.stopping;
        hf_unlock(&bell->lock);
        if (!stopping) {
            keep_listening(&thread, wanted);
            follow(&thread);
        }
        if (due && (stopping || left <= 0)) {
            tell(thread.pg, thread.conn);
            due = false;
        }
        if (!stopping)
            sleep_until_woken(&thread, pause_of(&thread, due, left, wanted));
    }
    if (thread.conn)
        pg_conn_close(thread.conn);
    return NULL;
}

/* Under the lock. */
static void start(struct pg *pg)
{
    struct hf_threads *thread = &pg->bell.thread;
    if (thread->count > 0 || pg->inline_mode || thread->stopping)
        return;
    int rc = hf_threads_start(thread, thread_main, pg);
    (void)rc; /* without a thread, waiters look by themselves */
}

void pg_bell_stop(struct pg *pg)
{
    hf_lock(&pg->bell.lock);
    pg->bell.thread.stopping = true; /* seen after the wake below */
    ring_all(&pg->bell);             /* those that still wait are to leave */
    hf_unlock(&pg->bell.lock);
    pg_bell_wake(&pg->bell);
    hf_threads_stop(&pg->bell.thread);
}

/* ---- the seam ---------------------------------------------------------------------- */

/* Under the lock. */
static void ring_batch(struct pg_bell *bell, const struct hf_ring *rings, size_t count,
                       bool told)
{
    for (size_t i = 0; i < count; i++) {
        ring_here(bell, rings[i].topic, rings[i].count);
        if (!told)
            owe(&bell->due, &rings[i]);
    }
}

/* Lets the lock go, and sees that others are told. One wake is enough for all that is due. */
static void end_ringing(struct pg *pg, bool owed_before)
{
    struct pg_bell *bell = &pg->bell;
    bool owed = is_due(&bell->due);
    if (owed)
        start(pg);
    bool threaded = bell->thread.count > 0;
    hf_unlock(&bell->lock);
    if (!owed || (threaded && owed_before))
        return;
    if (threaded)
        pg_bell_wake(bell);
    else if (pg->system_clock) /* a virtual time has no other processes */
        tell(pg, NULL);
}

/* Takes the lock; true: something is owed already. */
static bool begin_ringing(struct pg_bell *bell)
{
    hf_lock(&bell->lock);
    return is_due(&bell->due);
}

void pg_bell_ring(struct hf_sql *sql, uint32_t topic, uint32_t count)
{
    struct pg *pg = pg_of(sql);
    const struct hf_ring ring = { .topic = topic, .count = count };
    bool owed = begin_ringing(&pg->bell);
    ring_batch(&pg->bell, &ring, 1, false);
    end_ringing(pg, owed);
}

void pg_bell_ring_members(struct pg *pg, struct pg_member *const *members, size_t count)
{
    static const struct hf_ring any = { .topic = HF_TOPIC_ANY, .count = 1 };
    bool followed = atomic_load_explicit(&pg->bell.followed, memory_order_relaxed);
    bool owed = begin_ringing(&pg->bell);
    for (size_t i = 0; i < count; i++) {
        const struct hf_batch *batch = members[i]->batch;
        if (members[i]->rc == 0)
            ring_batch(&pg->bell, batch->rings, batch->ring_count, members[i]->told);
        /* Every other told batch wakes followers too. */
        bool heard = members[i]->told && batch->ring_count > 0;
        if (members[i]->rc == 0 && !batch->read_only && followed && !heard)
            ring_batch(&pg->bell, &any, 1, false);
    }
    end_ringing(pg, owed);
}

static void owe_all(struct pg_due *due, struct pg_member *const *members, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < members[i]->batch->ring_count; k++)
            owe(due, &members[i]->batch->rings[k]);
}

bool pg_bell_carry(struct pg *pg, struct pg_member *const *members, size_t count,
                   struct hf_buf *message)
{
    struct pg_bell *bell = &pg->bell;
    struct pg_due due = { 0 };
    for (size_t i = 0; i < count; i++)
        owe_all(&due, members[i]->parts ? members[i]->parts : &members[i],
                members[i]->parts ? members[i]->part_count : 1);
    if (!is_due(&due) || !pg->system_clock) /* a virtual time has no other processes */
        return false;
    hf_ms now = pg_mono_ms();
    hf_lock(&bell->lock);
    bool may = !is_due(&bell->due) && now - bell->told_at >= RING_EVERY_MS &&
               now >= bell->apart_until;
    if (may)
        bell->told_at = now;
    hf_unlock(&bell->lock);
    if (may)
        write_message(bell, &due, message);
    return may && hf_buf_state(message) == 0;
}

void pg_bell_apart(struct pg *pg)
{
    hf_lock(&pg->bell.lock);
    pg->bell.apart_until = pg_mono_ms() + APART_MS;
    hf_unlock(&pg->bell.lock);
}

uint32_t pg_bell_seen(struct hf_sql *sql, uint32_t topic)
{
    struct pg *pg = pg_of(sql);
    struct pg_bell *bell = &pg->bell;
    hf_lock(&bell->lock);
    uint32_t word = bell->words[bell_of(topic)];
    hf_unlock(&bell->lock);
    return word;
}

/* Under the lock: waits for a ring, a slice or the end, whichever comes first. */
static void wait_slice(struct pg *pg, uint32_t topic, hf_ms slice)
{
    struct pg_bell *bell = &pg->bell;
    if (!pg->system_clock) {
        hf_unlock(&bell->lock);
        pg->clock->wait_ms(pg->clock->user, slice);
        hf_lock(&bell->lock);
        return;
    }
    (void)hf_cond_wait(&bell->rung[bell_of(topic)], &bell->lock, slice);
}

bool pg_bell_wait(struct hf_sql *sql, uint32_t topic, uint32_t seen, hf_ms ms)
{
    struct pg *pg = pg_of(sql);
    struct pg_bell *bell = &pg->bell;
    hf_ms began = pg->clock->mono_ms(pg->clock->user);
    hf_lock(&bell->lock);
    if (!bell->wanted && pg->system_clock) {
        bell->wanted = true;
        start(pg);
        pg_bell_wake(bell);
    }
    if (topic == HF_TOPIC_ANY && pg->system_clock && pg->may_follow &&
        began >= bell->follow_due) {
        bell->follow = true;
        bell->follow_due = began + FOLLOW_AGAIN_MS;
        pg_bell_wake(bell);
    }
    bool rung = bell->words[bell_of(topic)] != seen;
    hf_ms look = bell->heard ? HEARD_SLICE_MS : POLL_SLICE_MS;
    if (!rung && ms > 0) {
        wait_slice(pg, topic, ms < look ? ms : look);
        hf_ms passed = pg->clock->mono_ms(pg->clock->user) - began;
        /* After a whole slice something may have changed without a message. */
        rung = bell->words[bell_of(topic)] != seen || passed < ms;
    }
    hf_unlock(&bell->lock);
    return rung;
}
