#include "support/cuts.h"

#include "support/unit.h"

#include <holdfast/err.h>
#include <stdio.h>
#include <unistd.h>

#define MESSAGES_MAX 400 /* of one call; none comes near */
#define REPEATS_MAX 20

struct tally {
    int cuts;
    int said_done;
    int said_nothing;
    int said_unknown;
};

/* What the caller of a call that was cut was told. */
static void count(struct tally *tally, int rc)
{
    tally->cuts++;
    tally->said_done += rc == 0;
    tally->said_nothing += rc && hf_err_class(rc) == HF_CLASS_RETRYABLE;
    tally->said_unknown += rc && hf_err_class(rc) == HF_CLASS_UNKNOWN;
}

static void check_first(const struct cut_case *c, void *user, int rc, uint32_t n)
{
    int64_t found = c->times(user);
    enum hf_class class = hf_err_class(rc);
    if (rc && class != HF_CLASS_RETRYABLE && class != HF_CLASS_UNKNOWN)
        fail_msg("%s, cut at %u: %s", c->name, n, hf_err_wire(rc));
    if (found < 0)
        return;
    if (rc == 0 && found != c->once)
        fail_msg("%s, cut at %u: said done, and happened %lld times", c->name, n,
                 (long long)found);
    if (class == HF_CLASS_RETRYABLE && rc && found != 0)
        fail_msg("%s, cut at %u: said that nothing was written (%s), and it was", c->name,
                 n, hf_err_wire(rc));
    if (found != 0 && found != c->once)
        fail_msg("%s, cut at %u: happened %lld times", c->name, n, (long long)found);
}

/* The same call again, until it is answered: it must have happened once in the end. */
static void check_again(const struct cut_case *c, void *user, uint32_t n)
{
    int rc = c->call(user);
    for (int i = 0; rc && rc != c->done_as && hf_err_class(rc) != HF_CLASS_TERMINAL &&
                    i < REPEATS_MAX;
         i++)
        rc = c->call(user);
    if (rc && rc != c->done_as)
        fail_msg("%s, cut at %u: again: %s", c->name, n, hf_err_wire(rc));
    int64_t found = c->times(user);
    if (found >= 0 && found != c->once)
        fail_msg("%s, cut at %u: again: happened %lld times", c->name, n,
                 (long long)found);
}

/* True while the exchange has a message n. */
static bool try_at(struct wire_proxy *proxy, const struct cut_case *c, void *user,
                   uint32_t n, enum wire_act how, struct tally *tally)
{
    static int number;
    c->prepare(user, ++number);
    wire_proxy_arm(proxy, n, how, WIRE_BOTH);
    int rc = c->call(user);
    bool was_cut = wire_proxy_disarm(proxy);
    check_first(c, user, rc, n);
    check_again(c, user, n);
    if (was_cut)
        count(tally, rc);
    return was_cut;
}

void cut_everywhere(struct wire_proxy *proxy, const struct cut_case *c, void *user)
{
    struct tally tally = { 0 };
    (void)try_at(proxy, c, user, 0, WIRE_BEFORE, &tally); /* statements are prepared */
    for (int how = WIRE_BEFORE; how <= WIRE_AFTER; how++)
        for (uint32_t n = 1; try_at(proxy, c, user, n, (enum wire_act)how, &tally); n++)
            assert_true(n < MESSAGES_MAX);
    assert_true(tally.cuts >= 8);
    assert_int_equal(tally.said_done + tally.said_nothing + tally.said_unknown,
                     tally.cuts);
    /* Once the commit is under way, its outcome is found out by its receipt. */
    assert_true(3 * tally.said_done >= tally.cuts);
    (void)printf(
        "# %-12s %3d cuts: %d answered as done, %d as not written, %d as unknown\n",
        c->name, tally.cuts, tally.said_done, tally.said_nothing, tally.said_unknown);
}

/* ---- the rig ------------------------------------------------------------------------ */

static hf_ms a_day_ahead(void *user)
{
    (void)user;
    const struct hf_clock *clock = hf_clock_system();
    return clock->wall_ms(clock->user) + 86400000;
}

static void no_wait(void *user, hf_ms ms)
{
    (void)user;
    (void)ms;
}

void cut_rig_start(struct cut_rig *rig, const char *schema, int port)
{
    static const struct hf_clock ahead = { NULL, a_day_ahead, a_day_ahead, no_wait };
    struct hf_store_options options = { .size = sizeof(options), .clock = &ahead };
    /* No thread's wake-ups pass between a verb's messages. */
    struct hf_store_options alone = { .size = sizeof(alone), .inline_mode = true };
    char url[400], through[400], socket_path[160];
    struct hf_err err = { 0 };
    pg_server_start(&rig->server);
    port += (int)getpid() % 400;
    (void)snprintf(socket_path, sizeof(socket_path), "%s/.s.PGSQL.%d", rig->server.folder,
                   rig->server.port);
    rig->proxy = wire_proxy_start("/tmp", port, socket_path);
    (void)pg_server_schema(rig->server.url, schema, url);
    (void)snprintf(through, sizeof(through),
                   "postgres:///hf?host=/tmp&port=%d&user=hf&schema=%s", port, schema);
    rig->outside = PQconnectdb(rig->server.url);
    assert_int_equal(PQstatus(rig->outside), CONNECTION_OK);
    if (hf_store_open(url, NULL, &rig->judge, &err) ||
        hf_store_open(through, &alone, &rig->cut, &err) ||
        hf_store_open(url, &options, &rig->late, &err))
        fail_msg("open: %s", err.message);
}

void cut_rig_stop(struct cut_rig *rig)
{
    hf_store_close(rig->cut);
    hf_store_close(rig->judge);
    hf_store_close(rig->late);
    PQfinish(rig->outside);
    wire_proxy_stop(rig->proxy);
    pg_server_stop(&rig->server);
}
