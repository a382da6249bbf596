/* The connection that listens, and who reads it.
 *
 * A waiter that is alone reads the notices itself: it sleeps on the socket, so that one wake-up is
 * enough, and the bell's thread keeps off. Where several wait the thread reads, and wakes those
 * whom a notice is for: else each one that leaves would have to find another to read on. When
 * nobody has read for a while the thread does it too, since a listener that does not read holds
 * up the server's queue.
 *
 * All of struct pg_ear is under the bell's lock. Notices are read under it as well, which never
 * blocks. Where the thread has to wait for an answer it is `busy` instead, and then nobody else
 * touches the connection. The reader sleeps outside the lock and holds nothing but the socket's
 * number, so whoever closes the connection first waits until it has woken.
 */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/text.h"
#include "db/pg/pg.h"

#define SELF_TEST_MS 2000
/* For so long the thread leaves the socket to a reader that has gone to look for work. So often it
 * wakes while there is one, since a reader that leaves tells nobody: what comes then stays in the
 * socket for no longer, and nobody hears late who waits or takes a ticket. */
#define KEEP_OFF_MS 1000
/* For so long after two have waited at once nobody reads but the thread: they come and go, and
 * would hand the socket to and fro. */
#define SHARED_MS 1000

int pg_listen_init(struct pg_ear *ear)
{
    int rc = pthread_cond_init(&ear->woken, NULL);
    ear->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return rc || ear->kick < 0 ? HF_ENOMEM : 0;
}

void pg_listen_fini(struct pg_ear *ear)
{
    (void)pthread_cond_destroy(&ear->woken);
    (void)close(ear->kick); /* an eventfd has nothing to lose */
}

/* ---- notices ----------------------------------------------------------------------- */

/* Under the lock: what came in; true if one of them was `expected`. */
static bool take_notices(struct pg *pg, struct pg_conn *conn, const char *expected)
{
    bool met = false;
    if (!PQconsumeInput(conn->db))
        conn->lost = true;
    for (PGnotify *one = PQnotifies(conn->db); one; one = PQnotifies(conn->db)) {
        if (expected && hf_same(one->extra, expected))
            met = true;
        pg_count(&pg->counts.notices);
        pg_bell_hear(&pg->bell, one->extra);
        PQfreemem(one);
    }
    pg->bell.ear.read_at = pg_mono_ms();
    return met;
}

/* The same by a thread that waits, or is about to. */
static void take_as_waiter(struct pg *pg)
{
    struct pg_ear *ear = &pg->bell.ear;
    int64_t before = atomic_load_explicit(&pg->counts.notices, memory_order_relaxed);
    (void)take_notices(pg, ear->conn, NULL); /* none is expected */
    int64_t now = atomic_load_explicit(&pg->counts.notices, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&pg->counts.notices_waiting, now - before,
                                    memory_order_relaxed);
    if (ear->conn->lost)
        pg_bell_nudge(&pg->bell); /* the thread connects again */
}

/* ---- what the thread does ---------------------------------------------------------- */

/* Rung as others ring: a listener at another database would hear itself and nobody else. */
static bool hears_itself(struct pg *pg, struct pg_conn *conn, const char *channel)
{
    static const char word[] = "self";
    hf_ms until = pg_mono_ms() + SELF_TEST_MS;
    if (pg_ring_alone(pg, channel, word))
        return false;
    for (;;) {
        pg_bell_lock(&pg->bell);
        bool met = take_notices(pg, conn, word);
        pg_bell_unlock(&pg->bell);
        struct pollfd at = { .fd = PQsocket(conn->db), .events = POLLIN };
        hf_ms left = until - pg_mono_ms();
        if (met)
            return true;
        if (conn->lost || left <= 0 || (poll(&at, 1, (int)left) < 0 && errno != EINTR))
            return false;
    }
}

struct pg_conn *pg_listen_open(struct pg *pg)
{
    const char *where = pg->url.listen ? pg->url.listen : pg->url.conninfo;
    struct pg_conn *conn = NULL;
    struct hf_buf channel, text;
    hf_buf_init(&channel, pg->alloc, 64);
    hf_buf_init(&text, pg->alloc, 128);
    bool fine = (pg->url.pooler != PG_POOLER_TRANSACTION || pg->url.listen) &&
                pg_bell_channel(pg, &channel) &&
                pg_conn_open(pg, where, &conn, NULL) == 0;
    if (fine) {
        hf_buf_text(&text, "LISTEN ");
        hf_buf_text(&text, hf_buf_str(&channel));
        fine = hf_buf_state(&text) == 0 &&
               pg_conn_exec(conn, hf_buf_str(&text), "LISTEN", NULL, NULL) == 0 &&
               hears_itself(pg, conn, hf_buf_str(&channel));
    }
    if (!fine && conn) {
        pg_conn_close(conn);
        conn = NULL;
    }
    hf_buf_fini(&channel);
    hf_buf_fini(&text);
    return conn;
}

/* Under the lock: ends the reader's sleep. One byte is enough until it has woken. */
static void wake_reader(struct pg_ear *ear)
{
    uint64_t one = 1;
    if (!ear->asleep || ear->kicked)
        return;
    ear->kicked = true;
    ssize_t done = write(ear->kick, &one, sizeof one);
    (void)done; /* it was empty: there is room */
}

void pg_listen_close(struct pg *pg)
{
    struct pg_ear *ear = &pg->bell.ear;
    pg_bell_lock(&pg->bell);
    struct pg_conn *conn = ear->conn;
    ear->conn = NULL;
    wake_reader(ear);
    while (ear->asleep) /* the socket's number must not become another's meanwhile */
        (void)pthread_cond_wait(&ear->woken, &pg->bell.lock); /* cannot fail */
    pg_bell_unlock(&pg->bell);
    pg_conn_close(conn);
}

int pg_listen_ask(struct pg *pg, enum hf_sql_id id, const char *const *args)
{
    struct pg_ear *ear = &pg->bell.ear;
    pg_bell_lock(&pg->bell);
    struct pg_conn *conn = ear->conn; /* nobody but this thread changes it */
    ear->busy = true;
    pg_bell_unlock(&pg->bell);
    int rc = pg_conn_ask(conn, id, args, NULL, NULL);
    pg_bell_lock(&pg->bell);
    ear->busy = false;
    (void)take_notices(pg, conn, NULL); /* those that came with the answer */
    pg_bell_unlock(&pg->bell);
    return rc;
}

/* Under the lock: for how long the thread keeps off; 0: it is to read. */
static hf_ms keep_off_ms(const struct pg_ear *ear)
{
    if (ear->reading)
        return KEEP_OFF_MS;
    hf_ms left = ear->left_at + KEEP_OFF_MS - pg_mono_ms();
    return ear->waiters > 0 || left < 0 ? 0 : left;
}

int pg_listen_watch(struct pg *pg, int *pause_ms)
{
    struct pg_ear *ear = &pg->bell.ear;
    int fd = -1;
    pg_bell_lock(&pg->bell);
    hf_ms off_ms = ear->conn ? keep_off_ms(ear) : -1;
    ear->watched = off_ms == 0;
    if (ear->watched)
        fd = PQsocket(ear->conn->db);
    else if (off_ms > 0 && (*pause_ms < 0 || *pause_ms > off_ms))
        *pause_ms = (int)off_ms;
    if (ear->conn && ear->conn->lost)
        *pause_ms = 0; /* there is no socket left that would say anything */
    pg_bell_unlock(&pg->bell);
    return fd;
}

bool pg_listen_watched(struct pg *pg, bool stirred)
{
    struct pg_ear *ear = &pg->bell.ear;
    pg_bell_lock(&pg->bell);
    ear->watched = false;
    if (stirred)
        (void)take_notices(pg, ear->conn, NULL); /* rung as they are read */
    bool lost = ear->conn && ear->conn->lost;
    pg_bell_unlock(&pg->bell);
    return lost;
}

/* ---- what waiters do --------------------------------------------------------------- */

bool pg_listen_rouse(struct pg_ear *ear)
{
    bool slept = ear->reading && !ear->rung;
    ear->rung = true;
    if (slept)
        wake_reader(ear);
    return slept;
}

static bool may_touch(const struct pg_ear *ear)
{
    return ear->conn && !ear->busy && !ear->conn->lost;
}

void pg_listen_drain(struct pg *pg)
{
    struct pg_ear *ear = &pg->bell.ear;
    if (may_touch(ear) && !ear->reading && !ear->watched &&
        ear->read_at != pg_mono_ms() &&
        pg->pid == getpid()) /* a child has its parent's */
        take_as_waiter(pg);
}

/* Under the lock, but for the sleep itself; true: the socket has something to say. */
static bool sleep_on_socket(struct pg_bell *bell, hf_ms ms)
{
    struct pg_ear *ear = &bell->ear;
    struct pollfd at[] = { { .fd = ear->kick, .events = POLLIN },
                           { .fd = PQsocket(ear->conn->db), .events = POLLIN } };
    ear->asleep = true;
    pg_bell_unlock(bell);
    int count = poll(at, 2, (int)ms);
    pg_bell_lock(bell);
    ear->asleep = false;
    if (ear->kicked) {
        uint64_t ignored;
        ssize_t got = read(ear->kick, &ignored, sizeof ignored);
        (void)got; /* it was written under the lock, so it is there */
        ear->kicked = false;
    }
    if (!ear->conn)
        (void)pthread_cond_signal(&ear->woken); /* cannot fail */
    return count > 0 && at[1].revents;
}

bool pg_listen_wait(struct pg *pg, uint32_t topic, hf_ms until)
{
    struct pg_bell *bell = &pg->bell;
    struct pg_ear *ear = &bell->ear;
    hf_ms now = pg_mono_ms(), left = until - now;
    if (!may_touch(ear) || ear->reading || ear->waiters > 0 || now < ear->shared_until)
        return false;
    ear->reading = true;
    ear->rung = false;
    ear->topic = topic;
    if (ear->watched)
        pg_bell_nudge(bell);
    while (!ear->rung && left > 0 && may_touch(ear)) {
        if (sleep_on_socket(bell, left) && may_touch(ear))
            take_as_waiter(pg);
        left = until - pg_mono_ms();
    }
    ear->reading = false;
    ear->left_at = pg_mono_ms();
    if (ear->waiters > 0)
        pg_bell_nudge(bell);
    return ear->rung || left <= 0;
}

void pg_listen_begin(struct pg_bell *bell)
{
    struct pg_ear *ear = &bell->ear;
    if (ear->reading || ear->waiters > 0)
        ear->shared_until = pg_mono_ms() + SHARED_MS;
    if (++ear->waiters == 1 && may_touch(ear) && !ear->reading && !ear->watched)
        pg_bell_nudge(bell);
}

void pg_listen_end(struct pg_bell *bell)
{
    bell->ear.waiters--;
}
