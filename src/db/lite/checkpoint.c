/* Moving the WAL's pages into the file, off the commit path.
 *
 * Commits only note how long the WAL is. A thread, started when it first passes a
 * threshold, copies what no reader needs (PASSIVE: it waits for no process). Under steady
 * writing that never catches up with the end, and a WAL starts over only when all of it was
 * copied; so the thread then copies the rest inside the turnstile, when there is little left.
 * A reader that stays pins the WAL: it then grows, and commits continue.
 *
 * A WAL that starts over is written in place, and that syncs about twice as fast as one that
 * grows: so the threshold is low, and the rest is worth one passage of the turnstile.
 *
 * When writing has stopped for a while, the thread returns the page cache's memory,
 * so that a store that is only open costs little.
 *
 * A handle without threads, or one that lives for one command, copies inline, at a larger
 * threshold after a commit. At close see leave_store.
 *
 * The turnstile is the pair of locks inside which one process at a time writes; they are in the
 * sidecar, a small file next to the database that every process has open (db/lite/side.c). A group
 * is the batches that are committed together. */
#include <errno.h>
#include <malloc.h>
#include <time.h>
#include <unistd.h>

#include "db/lite/lite.h"

#define DUE_PAGES 4000    /* 8 MB */
#define INLINE_PAGES 8000 /* 16 MB */
#define CLOSE_PAGES 250   /* half a MB */
#define CLOSE_WAIT_MS 100
#define IDLE_MS 2000

static int on_commit(void *arg, sqlite3 *db, const char *name, int pages)
{
    (void)db;
    (void)name;
    struct lite *lite = arg;
    atomic_store_explicit(&lite->checkpoint.wal_pages, pages, memory_order_relaxed);
    return SQLITE_OK;
}

void lite_checkpoint_init(struct lite *lite)
{
    hf_lock_init(&lite->checkpoint.lock);
    hf_threads_init(&lite->checkpoint.thread, &lite->checkpoint.lock, NULL);
    atomic_init(&lite->checkpoint.due_pages, DUE_PAGES);
}

void lite_checkpoint_watch(struct lite *lite)
{
    (void)sqlite3_wal_hook(lite->writer.db, on_commit,
                           lite); /* returns the hook before */
}

/* Frames in the WAL, and how many of them are in the file now. A failure leaves all in the
 * WAL, where they are as safe as before; the next attempt tries again. */
static void copy_pages(struct lite *lite, sqlite3 *db, int *ret_log, int *ret_copied)
{
    int log = -1;
    int copied = -1;
    if (sqlite3_wal_checkpoint_v2(db, "main", SQLITE_CHECKPOINT_PASSIVE, &log, &copied) !=
        SQLITE_OK)
        copied = -1;
    (void)atomic_fetch_add_explicit(&lite->counts.checkpoints, 1, memory_order_relaxed);
    *ret_log = log;
    *ret_copied = copied;
}

static void copy_in_turnstile(struct lite *lite, sqlite3 *db, int *ret_log,
                              int *ret_copied)
{
    if (lite_group_enter(lite, NULL) != 0)
        return; /* busy: later */
    copy_pages(lite, db, ret_log, ret_copied);
    lite_group_leave(lite);
    (void)atomic_fetch_add_explicit(&lite->counts.checkpoints_in_turnstile, 1,
                                    memory_order_relaxed);
}

static void set_due(struct lite *lite, int log, int copied)
{
    /* A process pins the rest: ask again when there is more to gain. */
    int64_t due = copied < log ? (int64_t)log + DUE_PAGES : DUE_PAGES;
    atomic_store_explicit(&lite->checkpoint.due_pages, due, memory_order_relaxed);
}

static void run_once(struct lite *lite, sqlite3 *db)
{
    int log = 0;
    int copied = 0;
    copy_pages(lite, db, &log, &copied);
    copy_in_turnstile(lite, db, &log, &copied);
    set_due(lite, log, copied);
}

/* By the leader, between transactions. */
static void run_inline(struct lite *lite)
{
    int log = 0;
    int copied = 0;
    copy_pages(lite, lite->writer.db, &log, &copied);
    set_due(lite, log, copied);
}

/* No process wrote for IDLE_MS. What SQLite frees stays in the heap in small pieces, so
 * the heap is asked to let go of them too. */
static void give_memory_back(struct lite *lite)
{
    if (lite_group_enter(lite, NULL) != 0)
        return;                                       /* busy, so not idle */
    (void)sqlite3_db_release_memory(lite->writer.db); /* what it can */
    lite_group_leave(lite);
    (void)malloc_trim(0); /* tells whether memory was returned */
}

/* Waits for IDLE_MS at most. True when that passed and nothing was wanted. */
static bool wait_a_while(struct lite_checkpoint *checkpoint)
{
    const struct hf_clock *clock = hf_clock_system();
    hf_ms until = clock->mono_ms(clock->user) + IDLE_MS;
    bool in_time = true;
    while (in_time && !checkpoint->wanted && !checkpoint->thread.stopping)
        in_time = hf_threads_sleep(&checkpoint->thread,
                                   until - clock->mono_ms(clock->user));
    return !checkpoint->wanted && !checkpoint->thread.stopping;
}

/* Under the lock, after work: returns when there is more to do, or when the store has
 * fallen idle and was told so. */
static void watch_for_idleness(struct lite *lite)
{
    struct lite_checkpoint *checkpoint = &lite->checkpoint;
    int64_t before = -1;
    while (wait_a_while(checkpoint)) {
        int64_t groups = atomic_load_explicit(&lite->group.groups, memory_order_relaxed);
        if (groups == before) {
            hf_unlock(&checkpoint->lock);
            give_memory_back(lite);
            hf_lock(&checkpoint->lock);
            return;
        }
        before = groups;
    }
}

static bool wait_until_wanted(struct lite *lite)
{
    struct lite_checkpoint *checkpoint = &lite->checkpoint;
    hf_lock(&checkpoint->lock);
    watch_for_idleness(lite);
    while (!checkpoint->wanted && !checkpoint->thread.stopping)
        (void)hf_threads_sleep(&checkpoint->thread, HF_NO_END);
    checkpoint->wanted = false;
    bool go_on = !checkpoint->thread.stopping;
    hf_unlock(&checkpoint->lock);
    return go_on;
}

static void *checkpoint_main(void *arg)
{
    struct lite *lite = arg;
    struct lite_conn *conn = NULL;
    while (wait_until_wanted(lite)) {
        /* Without memory or descriptors the WAL just stays longer. */
        if (conn || lite_conn_new(lite, LITE_WRITES, &conn, NULL) == 0)
            run_once(lite, conn->db);
    }
    lite_conn_free(conn);
    return NULL;
}

static void ask_thread(struct lite *lite)
{
    struct lite_checkpoint *checkpoint = &lite->checkpoint;
    hf_lock(&checkpoint->lock);
    if (checkpoint->thread.count > 0 ||
        hf_threads_start(&checkpoint->thread, checkpoint_main, lite) == 0) {
        checkpoint->wanted = true;
        hf_threads_wake(&checkpoint->thread);
    }
    hf_unlock(&checkpoint->lock);
}

void lite_checkpoint_look(struct lite *lite)
{
    struct lite_checkpoint *checkpoint = &lite->checkpoint;
    int64_t pages = atomic_load_explicit(&checkpoint->wal_pages, memory_order_relaxed);
    int64_t due = atomic_load_explicit(&checkpoint->due_pages, memory_order_relaxed);
    if (pages < due)
        return;
    if (!lite->inline_mode) {
        /* Not again until the thread has said when. */
        atomic_store_explicit(&checkpoint->due_pages, INT64_MAX, memory_order_relaxed);
        ask_thread(lite);
    } else if (pages >= INLINE_PAGES) {
        run_inline(lite);
    }
}

static void empty_wal(sqlite3 *db)
{
    (void)sqlite3_busy_timeout(db, 0); /* fails for no open handle */
    /* On failure the WAL stays, complete. */
    (void)sqlite3_wal_checkpoint_v2(db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
}

/* At close: signs this process off in the sidecar, and moves the WAL into the file if this was the
 * last process, so that the file without its WAL is the whole store while no process has it open. A
 * long WAL is moved by any process that leaves, since the next process to open the file would read
 * all of it.
 *
 * Processes sign off inside the turnstile, so one of them is the last. A turnstile that stays busy
 * for CLOSE_WAIT_MS is given up: the lock that counts this process ends when its descriptor is
 * closed, and the process inside the turnstile leaves later. Readers are not waited for. */
static void leave_store(struct lite *lite)
{
    int64_t pages = atomic_load_explicit(&lite->checkpoint.wal_pages,
                                         memory_order_relaxed);
    if (lite->busy_ms > CLOSE_WAIT_MS)
        lite->busy_ms = CLOSE_WAIT_MS; /* no other thread is in a call any more */
    if (lite_turnstile_enter(lite, NULL) != 0)
        return;
    bool last = lite_side_leave(lite);
    if (last || pages >= CLOSE_PAGES)
        empty_wal(lite->writer.db);
    lite_turnstile_leave(lite);
}

void lite_checkpoint_fini(struct lite *lite)
{
    struct lite_checkpoint *checkpoint = &lite->checkpoint;
    hf_threads_stop(&checkpoint->thread);
    if (lite->opened && !lite->memory && getpid() == lite->pid)
        leave_store(lite);
    hf_threads_fini(&checkpoint->thread);
    hf_lock_fini(&checkpoint->lock);
}
