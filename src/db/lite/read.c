/* Batches that only read: on a snapshot, on a connection from a small pool, so they wait for
 * no writer and no writer waits for them. A memory store has one connection, and its reads
 * go through the group.
 */
#include "db/lite/lite.h"

void lite_readers_init(struct lite *lite)
{
    hf_lock_init(&lite->readers.lock);
    hf_cond_init(&lite->readers.freed);
}

void lite_readers_fini(struct lite *lite)
{
    struct lite_conn *conn = lite->readers.free;
    while (conn) {
        struct lite_conn *next = conn->next;
        lite_conn_free(conn);
        conn = next;
    }
    hf_cond_fini(&lite->readers.freed);
    hf_lock_fini(&lite->readers.lock);
}

/* `opened`: the pool has that many connections more. */
static void unlock(struct lite_readers *readers, int opened)
{
    readers->open += (uint32_t)opened;
    hf_unlock(&readers->lock);
}

static void give_back(struct lite_readers *readers, struct lite_conn *conn)
{
    hf_lock(&readers->lock);
    conn->next = readers->free;
    readers->free = conn;
    (void)pthread_cond_signal(&readers->freed); /* cannot fail on a good condition */
    unlock(readers, 0);
}

static int take(struct lite *lite, struct lite_conn **ret_conn, struct hf_err *err)
{
    struct lite_readers *readers = &lite->readers;
    hf_lock(&readers->lock);
    while (!readers->free && readers->open >= LITE_READERS_MAX)
        (void)hf_cond_wait(&readers->freed, &readers->lock, HF_NO_END);
    struct lite_conn *conn = readers->free;
    if (conn) {
        readers->free = conn->next;
        unlock(readers, 0);
        *ret_conn = conn;
        return 0;
    }
    unlock(readers, 1);
    int rc = lite_conn_new(lite, LITE_READS, ret_conn, err);
    if (rc != 0) {
        hf_lock(&readers->lock);
        (void)pthread_cond_signal(&readers->freed); /* a place is free again */
        unlock(readers, -1);
    }
    return rc;
}

static int run_on(struct lite_conn *conn, struct hf_batch *batch, struct hf_err *err)
{
    struct lite_store_facts facts;
    int rc = lite_begin(conn, LITE_BEGIN_READ, err);
    if (rc != 0)
        return rc;
    rc = lite_store_read(conn, &facts, err); /* the snapshot is taken here */
    if (rc == HF_EBUSY)
        rc = lite_fail_locked(conn->lite, LITE_WAL_LOCK, err);
    if (rc == 0) {
        lite_sample(conn, facts.incarnation, facts.high_water);
        rc = lite_run_calls(conn, batch, err);
    }
    lite_roll_back(conn);
    return rc;
}

int lite_read_run(struct lite *lite, struct hf_batch *batch, struct hf_err *err)
{
    struct lite_conn *conn;
    int rc = lite_usable(lite, err);
    if (rc == 0)
        rc = take(lite, &conn, err);
    if (rc != 0)
        return rc;
    rc = run_on(conn, batch, err);
    give_back(&lite->readers, conn);
    return rc;
}
