/* The checks of doctor on a PostgreSQL server: who holds back vacuum, dead rows, settings,
 * guards, the distance of the clocks, and whether events and wake-ups arrive. */
#include "store/doctor/doctor.h"

#include <string.h>

#include "base/json_get.h"
#include "base/text.h"

#define HELD_MS 60000 /* a snapshot older than this holds back vacuum */
#define HELD_AGE 100000
#define SKEW_MS 1000
#define FACTS_BYTES 65536
#define BELL_TEST_MS 3000
#define BELL_QUICK_MS 150
#define BEHIND_MS 1000 /* a transaction that is older keeps the feed back */

#define MAY_SEE "GRANT pg_read_all_stats to the role that doctor uses"

/* "connection 17 (user program state)" */
static void say_holder(struct doctor_finder *finder, const struct hf_call *rows, size_t i)
{
    doctor_say(finder, hf_out_text(rows, i, HF_COL_DOCTOR_PG_VACUUM_WHAT));
    doctor_say(finder, " ");
    doctor_say(finder, hf_out_text(rows, i, HF_COL_DOCTOR_PG_VACUUM_NAME));
    doctor_say(finder, " (");
    doctor_say(finder, hf_out_text(rows, i, HF_COL_DOCTOR_PG_VACUUM_WHO));
    doctor_say(finder, ")");
}

static void tell_holder(struct doctor_finder *finder, const struct hf_call *rows,
                        size_t i)
{
    bool connection = hf_same(hf_out_text(rows, i, HF_COL_DOCTOR_PG_VACUUM_WHAT),
                              "connection");
    say_holder(finder, rows, i);
    doctor_say(finder, " holds back vacuum: its snapshot is ");
    doctor_say_i64(finder, hf_out_i64(rows, i, HF_COL_DOCTOR_PG_VACUUM_AGE),
                   " transactions");
    if (hf_out_i64(rows, i, HF_COL_DOCTOR_PG_VACUUM_MS)) {
        doctor_say(finder, " and ");
        doctor_say_i64(finder, hf_out_i64(rows, i, HF_COL_DOCTOR_PG_VACUUM_MS) / 1000,
                       " s");
    }
    doctor_say(finder, " old");
    doctor_tell(finder, false, "vacuum",
                connection
                    ? "end what it does, or the connection (pg_terminate_backend); set "
                      "idle_in_transaction_session_timeout"
                    : "finish the prepared transaction, or drop the slot if it is not "
                      "needed (pg_drop_replication_slot)");
}

/* No caller is known to be at it for long. */
static void tell_no_holder(struct doctor_finder *finder, const struct hf_call *rows)
{
    bool hidden = false;
    for (size_t i = 0; i < rows->out_count; i++)
        hidden |= hf_out_i64(rows, i, HF_COL_DOCTOR_PG_VACUUM_HIDDEN) != 0;
    doctor_say(finder, "no snapshot holds it back");
    if (rows->out_count) {
        doctor_say(finder, "; the oldest snapshot is ");
        doctor_say_i64(finder, hf_out_i64(rows, 0, HF_COL_DOCTOR_PG_VACUUM_AGE),
                       " transactions old");
    }
    doctor_say(finder, hidden ? ", and for how long is hidden from this role" : "");
    doctor_tell(finder, false, "vacuum", hidden ? MAY_SEE : "");
}

static int check_vacuum(struct doctor_finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_PG_VACUUM, err);
    const struct hf_call *rows = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
    size_t told = 0;
    for (size_t i = 0; rc == 0 && i < rows->out_count; i++) {
        bool old = hf_out_i64(rows, i, HF_COL_DOCTOR_PG_VACUUM_MS) >= HELD_MS ||
                   hf_out_i64(rows, i, HF_COL_DOCTOR_PG_VACUUM_AGE) >= HELD_AGE;
        if (old)
            tell_holder(finder, rows, i);
        told += old;
    }
    if (rc == 0 && told == 0)
        tell_no_holder(finder, rows);
    hf_ops_fini(&ops);
    return rc;
}

static int check_tables(struct doctor_finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_PG_TABLES, err);
    const struct hf_call *rows = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
    for (size_t i = 0; rc == 0 && i < rows->out_count; i++) {
        int64_t live = hf_out_i64(rows, i, HF_COL_DOCTOR_PG_TABLES_LIVE),
                dead = hf_out_i64(rows, i, HF_COL_DOCTOR_PG_TABLES_DEAD);
        doctor_say(finder, hf_out_text(rows, i, HF_COL_DOCTOR_PG_TABLES_NAME));
        doctor_say(finder, " has ");
        doctor_say_i64(finder, dead, " dead rows, ");
        doctor_say_i64(finder, 100 * dead / (live + dead), " % of all, in ");
        doctor_say_i64(finder, hf_out_i64(rows, i, HF_COL_DOCTOR_PG_TABLES_BYTES) >> 20,
                       " MB");
        doctor_tell(finder, false, "bloat",
                    "VACUUM the table; check that autovacuum runs and that no old "
                    "snapshot holds it back");
    }
    if (rc == 0 && rows->out_count == 0) {
        doctor_say(finder, "no table has many dead rows");
        doctor_tell(finder, false, "bloat", "");
    }
    hf_ops_fini(&ops);
    return rc;
}

static int check_settings(struct doctor_finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_PG_SETTINGS, err);
    const struct hf_call *rows = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
    for (size_t i = 0; rc == 0 && i < rows->out_count; i++) {
        bool grave = hf_out_i64(rows, i, HF_COL_DOCTOR_PG_SETTINGS_GRAVE) != 0;
        doctor_say(finder, hf_out_text(rows, i, HF_COL_DOCTOR_PG_SETTINGS_NAME));
        doctor_say(finder, " is ");
        doctor_say(finder, hf_out_text(rows, i, HF_COL_DOCTOR_PG_SETTINGS_SETTING));
        doctor_say(finder, grave ? ": a crash of the server can lose committed changes"
                                 : ": dead rows are never removed");
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
static int check_guards(struct doctor_finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_PG_GUARDS, err);
    const struct hf_call *rows = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
    for (size_t i = 0; rc == 0 && i < rows->out_count; i++) {
        doctor_say(finder, hf_out_text(rows, i, HF_COL_DOCTOR_PG_GUARDS_FAULT));
        doctor_say(finder, ": plain SQL can write what the ledger would refuse");
        doctor_tell(finder, false, "guards",
                    hf_out_text(rows, i, HF_COL_DOCTOR_PG_GUARDS_ADVICE));
    }
    if (rc == 0 && rows->out_count == 0) {
        doctor_say(finder, "all are in place");
        doctor_tell(finder, false, "guards", "");
    }
    hf_ops_fini(&ops);
    return rc;
}

/* The caller that works on a standby is refused at every write; the caller that looks
 * sees what was. */
static int check_role(struct doctor_finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_PG_ROLE, err);
    const struct hf_call *row = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
    bool standby = row && hf_out_i64(row, 0, HF_COL_DOCTOR_PG_ROLE_STANDBY) != 0;
    if (standby) {
        doctor_say(finder,
                   "the server is a standby: it can be read, and takes no writes");
        if (hf_out(row, 0, HF_COL_DOCTOR_PG_ROLE_BEHIND_MS)->type == HF_VAL_I64) {
            doctor_say(finder, "; the last transaction that it has is ");
            doctor_say_i64(finder, hf_out_i64(row, 0, HF_COL_DOCTOR_PG_ROLE_BEHIND_MS),
                           " ms old");
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

static void tell_behind(struct doctor_finder *finder, const struct hf_call *row)
{
    bool hidden = hf_out_i64(row, 0, HF_COL_DOCTOR_PG_BEHIND_HIDDEN) != 0;
    say_holder(finder, row, 0);
    doctor_say(finder, " keeps events back from `work tail`: it has written, and has not "
                       "ended");
    if (!hidden) {
        doctor_say(finder, " for ");
        doctor_say_i64(finder, hf_out_i64(row, 0, HF_COL_DOCTOR_PG_BEHIND_MS) / 1000,
                       " s");
    }
    doctor_tell(finder, false, "feed",
                hidden ? "if it lasts: end it; to see since when, " MAY_SEE
                       : "end what it does (of a connection: pg_terminate_backend), in "
                         "whichever database of the server; set "
                         "idle_in_transaction_session_timeout");
}

/* A transaction that has written, anywhere on the server, and continues: what began after it is
 * given to no reader before it has ended. */
static int check_behind(struct doctor_finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_PG_BEHIND, err);
    const struct hf_call *row = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
    bool held = row && row->out_count;
    bool seen = held && hf_out_text(row, 0, HF_COL_DOCTOR_PG_BEHIND_WHAT);
    if (seen && (hf_out_i64(row, 0, HF_COL_DOCTOR_PG_BEHIND_MS) >= BEHIND_MS ||
                 hf_out_i64(row, 0, HF_COL_DOCTOR_PG_BEHIND_HIDDEN))) {
        tell_behind(finder, row);
    } else if (held && !seen) {
        doctor_say(finder, "`work tail` withholds events until a transaction ends that "
                           "this server cannot show");
        doctor_tell(finder, false, "feed",
                    "if it lasts: run doctor on the server that takes writes");
    } else if (row) {
        doctor_say(finder, "no event is held back");
        doctor_tell(finder, false, "feed", "");
    }
    hf_ops_fini(&ops);
    return rc;
}

static int check_feed(struct doctor_finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_PG_FEED, err);
    int64_t ahead =
        rc == 0 ? hf_out_i64(hf_ops_result(&ops, 0), 0, HF_COL_DOCTOR_PG_FEED_AHEAD) : 0;
    hf_ops_fini(&ops);
    if (rc || ahead <= 0)
        return rc ? rc : check_behind(finder, err);
    /* A dump that was restored on another server. */
    doctor_say(finder, "events of another server are held back from `work tail` for ");
    doctor_say_i64(finder, ahead, " transactions");
    doctor_tell(
        finder, false, "feed",
        "move a ledger to another server by `holdfast store copy`, not by a dump");
    return 0;
}

/* Due times are the server's; a worker whose clock is another shows them wrong. */
static int check_skew(struct doctor_finder *finder, struct hf_err *err)
{
    const struct hf_clock *clock = finder->handle->clock;
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

/* The caller that waits makes the driver listen, which then tries whether it hears
 * itself; with that every caller is woken. */
static void try_bell(struct hf_store *handle, hf_ms ms)
{
    uint32_t topic = hf_topic_of_end("");
    uint32_t seen = handle->methods->bell_seen(handle, topic);
    hf_ms end = handle->clock->mono_ms(handle->clock->user) + ms;
    for (hf_ms left = ms; left > 0 && handle->methods->bell_seen(handle, topic) == seen;
         left = end - handle->clock->mono_ms(handle->clock->user))
        (void)handle->methods->bell_wait(handle, topic, seen, left);
}

/* What the driver knows, as JSON. The caller frees *ret_text and *ret_json in any case. */
static int read_facts(struct hf_store *handle, char **ret_text, struct json_t **ret_json,
                      struct hf_err *err)
{
    int rc = handle->methods->facts(handle, ret_text, err);
    struct hf_span text = { *ret_text, rc == 0 ? strlen(*ret_text) : 0 };
    return rc ? rc : hf_json_parse(text, FACTS_BYTES, "facts", ret_json, err);
}

static void tell_bell(struct doctor_finder *finder, const char *bell, const char *pooler)
{
    bool polls = hf_same(bell, "polling");
    doctor_say(finder, "wake-ups: ");
    doctor_say(finder, bell ? bell : "-");
    doctor_say(finder, "; pooler: ");
    doctor_say(finder, pooler ? pooler : "-");
    doctor_tell(finder, false, "bell",
                !polls ? ""
                : hf_same(pooler, "none")
                    ? "waiting workers poll four times per second: the server cannot "
                      "LISTEN, as a standby cannot"
                    : "waiting workers poll four times per second: set listen_url= to an "
                      "address without the pooler");
}

/* How wake-ups travel, as the driver knows it. `ms`: how long it may try. */
static int ask_bell(struct doctor_finder *finder, hf_ms ms, struct hf_err *err)
{
    char *facts = NULL;
    struct json_t *json = NULL;
    const struct hf_alloc *alloc = finder->handle->alloc;
    try_bell(finder->handle, ms);
    int rc = read_facts(finder->handle, &facts, &json, err);
    if (rc == 0)
        tell_bell(finder, hf_json_as_text(hf_json_member(json, "bell")),
                  hf_json_as_text(hf_json_member(json, "pooler")));
    hf_json_free(json);
    alloc->free(alloc->user, facts);
    return rc;
}

static int check_bell(struct doctor_finder *finder, struct hf_err *err)
{
    return ask_bell(finder, BELL_TEST_MS, err);
}

/* Only a pooler can keep wake-ups back that a server sends. */
static int check_bell_quickly(struct doctor_finder *finder, struct hf_err *err)
{
    char *facts = NULL;
    struct json_t *json = NULL;
    const struct hf_alloc *alloc = finder->handle->alloc;
    int rc = read_facts(finder->handle, &facts, &json, err);
    const char *pooler = rc == 0 ? hf_json_as_text(hf_json_member(json, "pooler")) : NULL;
    bool pooled = pooler && !hf_same(pooler, "none");
    hf_json_free(json);
    alloc->free(alloc->user, facts);
    return rc || !pooled ? rc : ask_bell(finder, BELL_QUICK_MS, err);
}

static int run_all(int (*const *checks)(struct doctor_finder *, struct hf_err *),
                   size_t count, struct doctor_finder *finder, struct hf_err *err)
{
    int rc = 0;
    if (!hf_same(sql_store_of(finder->handle)->sql->methods->name, "postgres"))
        return 0;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = checks[i](finder, err);
    return rc;
}

int doctor_postgres(struct doctor_finder *finder, struct hf_err *err)
{
    static int (*const checks[])(struct doctor_finder *, struct hf_err *) = {
        check_role,   check_vacuum, check_tables, check_settings,
        check_guards, check_feed,   check_skew,   check_bell,
    };
    return run_all(checks, sizeof checks / sizeof checks[0], finder, err);
}

int doctor_postgres_quick(struct doctor_finder *finder, struct hf_err *err)
{
    static int (*const checks[])(struct doctor_finder *,
                                 struct hf_err *) = { check_guards, check_feed,
                                                      check_bell_quickly };
    return run_all(checks, sizeof checks / sizeof checks[0], finder, err);
}
