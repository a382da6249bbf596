/* The connection that listens. It belongs to the bell's thread alone. */
#include <errno.h>
#include <poll.h>

#include "base/text.h"
#include "db/pg/pg.h"

#define SELF_TEST_MS 2000

bool pg_listen_take(struct pg *pg, struct pg_conn *conn, const char *expected)
{
    bool met = false;
    if (!PQconsumeInput(conn->db))
        conn->lost = true;
    for (PGnotify *one = PQnotifies(conn->db); one; one = PQnotifies(conn->db)) {
        if (expected && hf_same(one->extra, expected))
            met = true;
        pg_count(&pg->counts.notices);
        hf_lock(&pg->bell.lock);
        pg_bell_hear(&pg->bell, one->extra);
        hf_unlock(&pg->bell.lock);
        PQfreemem(one);
    }
    return met;
}

/* Rung as other processes ring: a listener at another database would hear only itself. */
static bool hears_itself(struct pg *pg, struct pg_conn *conn, const char *channel)
{
    static const char word[] = "self";
    hf_ms until = pg_mono_ms() + SELF_TEST_MS;
    if (pg_ring_alone(pg, channel, word))
        return false;
    while (!pg_listen_take(pg, conn, word)) {
        struct pollfd at = { .fd = PQsocket(conn->db), .events = POLLIN };
        hf_ms left = until - pg_mono_ms();
        if (conn->lost || left <= 0 || (poll(&at, 1, (int)left) < 0 && errno != EINTR))
            return false;
    }
    return true;
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
