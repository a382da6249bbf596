/* What doctor looks at on a PostgreSQL server: who holds back vacuum, dead rows, settings,
 * guards, the distance of the clocks, and whether events and wake-ups arrive. */
#include "store/doctor.h"

#include <string.h>

#include "base/json_get.h"
#include "base/text.h"

#define HELD_MS 60000 /* a snapshot older than this holds back vacuum */
#define HELD_AGE 100000
#define SKEW_MS 1000
#define FACTS_BYTES 65536
#define BELL_TEST_MS 3000

static void tell_holder(struct finder *finder, const struct hf_call *rows, size_t i)
{
    const char *what = hf_cell_text(rows, i, 0);
    bool connection = hf_same(what, "connection");
    doctor_say(finder, what);
    doctor_say(finder, " ");
    doctor_say(finder, hf_cell_text(rows, i, 1));
    doctor_say(finder, " (");
    doctor_say(finder, hf_cell_text(rows, i, 2));
    doctor_say(finder, ") holds back vacuum: its snapshot is ");
    doctor_say_i64(finder, hf_cell_i64(rows, i, 3), " transactions");
    if (hf_cell_i64(rows, i, 4)) {
        doctor_say(finder, " and ");
        doctor_say_i64(finder, hf_cell_i64(rows, i, 4) / 1000, " s");
    }
    doctor_say(finder, " old");
    doctor_tell(finder, false, "vacuum",
                connection
                    ? "end what it does, or the connection (pg_terminate_backend); set "
                      "idle_in_transaction_session_timeout"
                    : "finish the prepared transaction, or drop the slot if nobody "
                      "needs it (pg_drop_replication_slot)");
}

static int check_vacuum(struct finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_PG_VACUUM, err);
    const struct hf_call *rows = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
    size_t told = 0;
    for (size_t i = 0; rc == 0 && i < rows->out_count; i++) {
        bool old = hf_cell_i64(rows, i, 4) >= HELD_MS ||
                   hf_cell_i64(rows, i, 3) >= HELD_AGE;
        if (old)
            tell_holder(finder, rows, i);
        told += old;
    }
    if (rc == 0 && told == 0) {
        doctor_say(finder, "nobody holds it back");
        if (rows->out_count) {
            doctor_say(finder, "; the oldest snapshot is ");
            doctor_say_i64(finder, hf_cell_i64(rows, 0, 3), " transactions old");
        }
        doctor_tell(finder, false, "vacuum", "");
    }
    hf_ops_fini(&ops);
    return rc;
}

static int check_tables(struct finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_PG_TABLES, err);
    const struct hf_call *rows = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
    for (size_t i = 0; rc == 0 && i < rows->out_count; i++) {
        int64_t live = hf_cell_i64(rows, i, 1), dead = hf_cell_i64(rows, i, 2);
        doctor_say(finder, hf_cell_text(rows, i, 0));
        doctor_say(finder, " has ");
        doctor_say_i64(finder, dead, " dead rows, ");
        doctor_say_i64(finder, 100 * dead / (live + dead), " % of all, in ");
        doctor_say_i64(finder, hf_cell_i64(rows, i, 3) >> 20, " MB");
        doctor_tell(finder, false, "bloat",
                    "VACUUM it; see that autovacuum runs and that nobody holds it back");
    }
    if (rc == 0 && rows->out_count == 0) {
        doctor_say(finder, "no table has many dead rows");
        doctor_tell(finder, false, "bloat", "");
    }
    hf_ops_fini(&ops);
    return rc;
}

static int check_settings(struct finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_PG_SETTINGS, err);
    const struct hf_call *rows = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
    for (size_t i = 0; rc == 0 && i < rows->out_count; i++) {
        bool grave = hf_cell_i64(rows, i, 3) != 0;
        doctor_say(finder, hf_cell_text(rows, i, 0));
        doctor_say(finder, " is ");
        doctor_say(finder, hf_cell_text(rows, i, 1));
        doctor_say(finder, grave ? ": what was acknowledged may be lost in a crash"
                                 : ": dead rows stay");
        doctor_tell(finder, false, "settings", "set it to on, and reload the server");
    }
    if (rc == 0 && rows->out_count == 0) {
        doctor_say(finder, "durability and vacuum are as they should be");
        doctor_tell(finder, false, "settings", "");
    }
    hf_ops_fini(&ops);
    return rc;
}

/* Loads of data switch triggers off. */
static int check_guards(struct finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_PG_GUARDS, err);
    const struct hf_call *rows = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
    for (size_t i = 0; rc == 0 && i < rows->out_count; i++) {
        doctor_say(finder, hf_cell_text(rows, i, 0));
        doctor_say(finder, ": plain SQL can write what the ledger would refuse");
        doctor_tell(finder, false, "guards", hf_cell_text(rows, i, 1));
    }
    if (rc == 0 && rows->out_count == 0) {
        doctor_say(finder, "all are in place");
        doctor_tell(finder, false, "guards", "");
    }
    hf_ops_fini(&ops);
    return rc;
}

/* Whoever works on a standby is refused at every write; whoever looks sees what was. */
static int check_role(struct finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_PG_ROLE, err);
    const struct hf_call *row = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
    bool standby = row && hf_cell_i64(row, 0, 0) != 0;
    if (standby) {
        doctor_say(finder,
                   "the server is a standby: it can be read, and takes no writes");
        if (hf_cell(row, 0, 1)->type == HF_VAL_I64) {
            doctor_say(finder, "; the last transaction that it has is ");
            doctor_say_i64(finder, hf_cell_i64(row, 0, 1), " ms old");
        }
    } else if (row) {
        doctor_say(finder, "the server takes writes");
    }
    if (row)
        doctor_tell(finder, false, "role",
                    standby ? "name all hosts in the address and add "
                              "target_session_attrs=read-write"
                            : "");
    hf_ops_fini(&ops);
    return rc;
}

/* A dump that was restored on another server. */
static int check_feed(struct finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_PG_FEED, err);
    int64_t ahead = rc == 0 ? hf_cell_i64(hf_ops_result(&ops, 0), 0, 0) : 0;
    if (rc == 0 && ahead > 0) {
        doctor_say(finder,
                   "events of another server are held back from `work tail` for ");
        doctor_say_i64(finder, ahead, " transactions");
        doctor_tell(
            finder, false, "feed",
            "move a ledger to another server by `holdfast store copy`, not by a dump");
    } else if (rc == 0) {
        doctor_say(finder, "no event is held back");
        doctor_tell(finder, false, "feed", "");
    }
    hf_ops_fini(&ops);
    return rc;
}

/* Due times are the server's; a worker whose clock is another shows them wrong. */
static int check_skew(struct finder *finder, struct hf_err *err)
{
    const struct hf_clock *clock = finder->base->clock;
    struct hf_ops ops;
    hf_ms before = clock->wall_ms(clock->user);
    int rc = doctor_ask(finder, &ops, HF_SQL_COPY_LOOK, err);
    hf_ms after = clock->wall_ms(clock->user);
    if (rc == 0) {
        hf_ms skew = ops.batch.now - (before + after) / 2;
        hf_ms sure = (after - before) / 2;
        bool apart = skew - sure > SKEW_MS || -skew - sure > SKEW_MS;
        doctor_say(finder, "the server's clock is ");
        doctor_say_i64(finder, skew < 0 ? -skew : skew, " ms ");
        doctor_say(finder,
                   skew < 0 ? "behind this machine's" : "ahead of this machine's");
        doctor_tell(
            finder, false, "skew",
            apart ? "set both clocks by the same source; leases and due times are the "
                    "server's all the same"
                  : "");
    }
    hf_ops_fini(&ops);
    return rc;
}

/* Whoever waits makes the driver listen, which then tries whether it hears itself; with that
 * everybody is woken. */
static void try_bell(struct hf_store *base)
{
    uint32_t topic = hf_topic_of_end("");
    uint32_t seen = base->methods->bell_seen(base, topic);
    hf_ms end = base->clock->mono_ms(base->clock->user) + BELL_TEST_MS;
    for (hf_ms left = BELL_TEST_MS;
         left > 0 && base->methods->bell_seen(base, topic) == seen;
         left = end - base->clock->mono_ms(base->clock->user))
        (void)base->methods->bell_wait(base, topic, seen, left);
}

/* How wake-ups travel, as the driver knows it. */
static int check_bell(struct finder *finder, struct hf_err *err)
{
    char *facts = NULL;
    struct json_t *json = NULL;
    const struct hf_alloc *alloc = finder->base->alloc;
    try_bell(finder->base);
    int rc = finder->base->methods->facts(finder->base, &facts, err);
    if (rc == 0)
        rc = hf_json_parse((struct hf_span){ facts, strlen(facts) }, FACTS_BYTES, "facts",
                           &json, err);
    if (rc == 0) {
        const char *bell = hf_json_as_text(hf_json_member(json, "bell"));
        const char *pooler = hf_json_as_text(hf_json_member(json, "pooler"));
        bool polls = hf_same(bell, "polling");
        doctor_say(finder, "wake-ups: ");
        doctor_say(finder, bell ? bell : "-");
        doctor_say(finder, "; pooler: ");
        doctor_say(finder, pooler ? pooler : "-");
        doctor_tell(finder, false, "bell",
                    !polls ? ""
                    : hf_same(pooler, "none")
                        ? "waiting workers look four times a second: the server cannot "
                          "LISTEN, as a standby cannot"
                        : "waiting workers look four times a second: give listen_url= an "
                          "address past the pooler");
    }
    hf_json_free(json);
    alloc->free(alloc->user, facts);
    return rc;
}

int doctor_postgres(struct finder *finder, struct hf_err *err)
{
    static int (*const checks[])(struct finder *, struct hf_err *) = {
        check_role,   check_vacuum, check_tables, check_settings,
        check_guards, check_feed,   check_skew,   check_bell,
    };
    int rc = 0;
    if (!hf_same(sql_store_of(finder->base)->sql->methods->name, "postgres"))
        return 0;
    for (size_t i = 0; rc == 0 && i < sizeof checks / sizeof checks[0]; i++)
        rc = checks[i](finder, err);
    return rc;
}
