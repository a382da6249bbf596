/* hf_store_check: the engine's own check, schema, clocks, disk, leases, and every trail
 * folded again. Nothing is changed; what a check cannot read is a finding, not a failure. */
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/json_get.h"
#include "base/text.h"
#include "core/ledger/lifecycle.h"
#include "store/doctor/doctor.h"

#define DRIFT_MS 3600000 /* wall and lease clock further apart: one of them was moved */
#define AHEAD_MS 1000    /* events of others, while we look */
#define DISK_LEAST 67108864LL
#define FACTS_BYTES 65536
#define UNITS_AT_A_TIME 5000
#define CHAINS_TOLD 100

#define RESTORE "restore it from a backup, then run `holdfast store bump`"

void doctor_say(struct doctor_finder *finder, const char *text)
{
    hf_buf_text(&finder->detail, text);
}

void doctor_say_i64(struct doctor_finder *finder, int64_t number, const char *text)
{
    hf_buf_i64(&finder->detail, number);
    hf_buf_text(&finder->detail, text);
}

/* What was said since the last finding. */
void doctor_tell(struct doctor_finder *finder, bool bad, const char *what,
                 const char *advice)
{
    struct hf_finding finding = { what, hf_buf_str(&finder->detail), advice, bad };
    finder->faults += bad;
    finder->found(finder->user, &finding);
    hf_buf_reset(&finder->detail);
}

int doctor_ask(struct doctor_finder *finder, struct hf_ops *ops, enum hf_sql_id statement,
               struct hf_err *err)
{
    hf_ops_init(ops, sql_store_of(finder->handle)->sql, finder->handle->alloc);
    hf_ops_call(ops, statement, HF_ANY_COUNT);
    return hf_ops_read(ops, err);
}

/* ---- the engine and the schema ------------------------------------------------------ */

static int check_engine(struct doctor_finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_INTEGRITY, err);
    const struct hf_call *rows = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
    for (size_t i = 0; rc == 0 && i < rows->out_count; i++) {
        doctor_say(finder, hf_out_text(rows, i, HF_COL_DOCTOR_INTEGRITY_FAULT));
        doctor_tell(finder, true, "store", "the file is damaged: " RESTORE);
    }
    if (rc == 0 && rows->out_count == 0) {
        doctor_say(finder, "the engine finds nothing wrong");
        doctor_tell(finder, false, "store", "");
    }
    hf_ops_fini(&ops);
    return rc;
}

static bool has_checksum(const char *text, const char *checksum)
{
    uint8_t digest[HF_DIGEST_BYTES];
    char hex[2 * HF_DIGEST_BYTES + 1];
    if (hf_sha256(text, strlen(text), digest))
        return false;
    hf_hex(digest, sizeof digest, hex);
    return hf_same(hex, checksum);
}

static bool as_applied(const struct hf_migration *step, const char *checksum)
{
    return has_checksum(step->lite, checksum) || has_checksum(step->pg, checksum);
}

/* What could be opened is not older. One version ahead is what a fleet has while its programs
 * are exchanged: no fault. */
static void tell_version(struct doctor_finder *finder, int64_t newest)
{
    bool ahead = newest > hf_store_schema_version();
    doctor_say(finder, "version ");
    doctor_say_i64(finder, newest,
                   ahead ? ", of the next program: this one has "
                         : ", as this program has it");
    if (ahead)
        doctor_say_i64(finder, hf_store_schema_version(), "");
    doctor_tell(finder, false, "schema",
                ahead ? "both versions work at the same time; replace this holdfast by "
                        "the newer one"
                      : "");
}

static int check_schema(struct doctor_finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    size_t before = finder->faults;
    int64_t newest = 0;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_SCHEMA, err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++) {
        const struct hf_call *rows = hf_ops_result(&ops, 0);
        int64_t version = hf_out_i64(rows, i, HF_COL_DOCTOR_SCHEMA_VERSION);
        newest = version > newest ? version : newest;
        if (version < 1 || version > HF_MIGRATION_COUNT ||
            as_applied(&hf_migrations[version - 1],
                       hf_out_text(rows, i, HF_COL_DOCTOR_SCHEMA_CHECKSUM)))
            continue;
        doctor_say(finder, "schema ");
        doctor_say_i64(finder, version,
                       " was made by another text than this program has");
        doctor_tell(
            finder, true, "schema",
            "another build made it, or its row was changed: use the program that made "
            "it, or " RESTORE);
    }
    if (rc == 0 && finder->faults == before)
        tell_version(finder, newest);
    hf_ops_fini(&ops);
    return rc;
}

/* ---- clocks and disk ------------------------------------------------------------------ */

static int check_clock(struct doctor_finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_NEWEST_EVENT, err);
    if (rc == 0) {
        const struct hf_call *row = hf_ops_result(&ops, 0);
        hf_ms newest = row->out_count
                           ? hf_out_i64(row, 0, HF_COL_DOCTOR_NEWEST_EVENT_CREATED_AT)
                           : 0;
        hf_ms now = ops.batch.now, drift = ops.batch.lease_now - now;
        bool behind = newest > now + AHEAD_MS;
        bool apart = drift > DRIFT_MS || drift < -DRIFT_MS;
        if (behind) {
            doctor_say(finder, "the wall clock is ");
            doctor_say_i64(finder, newest - now, " ms before the newest event");
            doctor_tell(finder, false, "clock",
                        "set the clock of the machine; until then due times and "
                        "deadlines are late");
        }
        if (apart) {
            doctor_say(finder, "the lease clock is ");
            doctor_say_i64(finder, drift < 0 ? -drift : drift,
                           drift < 0 ? " ms behind the wall clock"
                                     : " ms ahead of the wall clock");
            doctor_tell(
                finder, false, "clock",
                "leases are right all the same; check the machine's clock if it was not "
                "set or suspended on purpose");
        }
        if (!behind && !apart) {
            doctor_say(finder, "wall clock and lease clock agree");
            doctor_tell(finder, false, "clock", "");
        }
    }
    hf_ops_fini(&ops);
    return rc;
}

static void judge_disk(struct doctor_finder *finder, int64_t free_bytes, int64_t used)
{
    bool full = free_bytes < DISK_LEAST, tight = free_bytes < 2 * used;
    doctor_say_i64(finder, free_bytes >> 20, " MB are left");
    if (tight) {
        doctor_say(finder, ", less than twice the store's ");
        doctor_say_i64(finder, used >> 20, " MB");
    }
    doctor_tell(finder, full, "disk",
                full || tight ? "free disk space, or move the store to a larger disk"
                              : "");
}

/* The facts of the driver about its files; a store in memory has none. */
static int check_disk(struct doctor_finder *finder, struct hf_err *err)
{
    char *facts = NULL;
    struct json_t *json = NULL;
    const struct hf_alloc *alloc = finder->handle->alloc;
    int rc = finder->handle->methods->facts(finder->handle, &facts, err);
    if (rc == 0)
        rc = hf_json_parse((struct hf_span){ facts, strlen(facts) }, FACTS_BYTES, "facts",
                           &json, err);
    const struct json_t *left = rc == 0 ? hf_json_member(json, "disk_free_bytes") : NULL;
    if (left)
        judge_disk(finder, hf_json_as_i64(left),
                   hf_json_as_i64(hf_json_member(json, "db_bytes")));
    hf_json_free(json);
    alloc->free(alloc->user, facts);
    return rc;
}

/* ---- rows and trails ------------------------------------------------------------------- */

/* Units after the first seq, up to the second; `units` of them. */
struct stretch {
    int64_t after;
    int64_t last;
    int64_t units;
};

/* The next of them; the last one continues to the end, for events whose unit is gone. */
static int next_stretch(struct doctor_finder *finder, struct stretch *stretch,
                        struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(finder->handle)->sql, finder->handle->alloc);
    hf_ops_call(&ops, HF_SQL_DOCTOR_PAGE, 1);
    hf_ops_i64(&ops, stretch->last);
    hf_ops_i64(&ops, UNITS_AT_A_TIME);
    int rc = hf_ops_read(&ops, err);
    if (rc == 0) {
        const struct hf_call *row = hf_ops_result(&ops, 0);
        stretch->after = stretch->last;
        stretch->units = hf_out_i64(row, 0, HF_COL_DOCTOR_PAGE_UNITS);
        stretch->last = stretch->units < UNITS_AT_A_TIME
                            ? INT64_MAX
                            : hf_out_i64(row, 0, HF_COL_DOCTOR_PAGE_LAST_SEQ);
    }
    hf_ops_fini(&ops);
    return rc;
}

static void tell_chains(struct doctor_finder *finder, const struct hf_call *rows)
{
    for (size_t i = 0; i < rows->out_count; i++) {
        doctor_say(finder, hf_out_text(rows, i, HF_COL_DOCTOR_CHAINS_WORK_ID));
        doctor_say(finder, ": ");
        doctor_say(finder, hf_out_text(rows, i, HF_COL_DOCTOR_CHAINS_FAULT));
        doctor_tell(finder, true, "chains",
                    "the file was changed around the guards: " RESTORE);
    }
}

/* ",from>to/kind," of every edge and each kind of unit that may take it. */
static void put_edges(struct hf_buf *text)
{
    static const char *const kinds[] = { "/f", "/b",
                                         "/e" }; /* of the bits of enum hf_of */
    for (int from = 0; from < HF_STATUS_COUNT; from++)
        for (int to = 1; to < HF_STATUS_COUNT; to++)
            for (unsigned i = 0; i < 3; i++) {
                if (!(hf_edge_of((enum hf_status)from, (enum hf_status)to) & (1U << i)))
                    continue;
                hf_buf_text(text, ",");
                hf_buf_text(text, from ? hf_status_word((enum hf_status)from) : "");
                hf_buf_text(text, ">");
                hf_buf_text(text, hf_status_word((enum hf_status)to));
                hf_buf_text(text, kinds[i]);
            }
    hf_buf_text(text, ",");
}

static int fold_stretch(struct doctor_finder *finder, const struct stretch *stretch,
                        const char *edges, struct hf_err *err)
{
    static const enum hf_sql_id asked[] = { HF_SQL_DOCTOR_CHAINS, HF_SQL_DOCTOR_EVENTS };
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(finder->handle)->sql, finder->handle->alloc);
    for (size_t i = 0; i < 2; i++) {
        hf_ops_call(&ops, asked[i], HF_ANY_COUNT);
        hf_ops_i64(&ops, stretch->after);
        hf_ops_i64(&ops, stretch->last);
        if (i == 0)
            hf_ops_text(&ops, edges);
    }
    int rc = hf_ops_read(&ops, err);
    if (rc == 0) {
        tell_chains(finder, hf_ops_result(&ops, 0));
        finder->units += stretch->units;
        finder->events += stretch->units + hf_out_i64(hf_ops_result(&ops, 1), 0,
                                                      HF_COL_DOCTOR_EVENTS_EVENTS);
    }
    hf_ops_fini(&ops);
    return rc;
}

static int fold_all(struct doctor_finder *finder, const char *edges, struct hf_err *err)
{
    struct stretch stretch = { 0 };
    size_t before = finder->faults;
    int rc = 0;
    while (rc == 0 && stretch.last < INT64_MAX && finder->faults - before < CHAINS_TOLD) {
        rc = next_stretch(finder, &stretch, err);
        if (rc == 0)
            rc = fold_stretch(finder, &stretch, edges, err);
    }
    if (rc == 0 && finder->faults - before >= CHAINS_TOLD) {
        doctor_say_i64(finder, CHAINS_TOLD,
                       " faults are enough: of these units and of those"
                       " after them not all were looked at");
        doctor_tell(finder, true, "chains", RESTORE);
    }
    return rc;
}

static int check_chains(struct doctor_finder *finder, struct hf_err *err)
{
    struct hf_buf edges;
    hf_buf_init(&edges, finder->handle->alloc, 16384);
    put_edges(&edges);
    int rc = hf_buf_state(&edges);
    rc = rc ? hf_fail_plain(err, rc) : fold_all(finder, hf_buf_str(&edges), err);
    hf_buf_fini(&edges);
    return rc;
}

/* The record of a process is what its events alone tell. One that is pruned while we
 * look has no record to compare. */
static int check_record(struct doctor_finder *finder, const char *id, struct hf_err *err)
{
    char *stored = NULL, *folded = NULL;
    int rc = sql_process_records(finder->handle, id, &stored, &folded, err);
    if (rc == 0 && !hf_same(stored, folded)) {
        doctor_say(finder, id);
        doctor_say(finder, ": the process is not what its events say");
        doctor_tell(finder, true, "processes",
                    "the file was changed around the guards: " RESTORE);
    }
    if (rc == 0) {
        hf_store_text_free(finder->handle, stored);
        hf_store_text_free(finder->handle, folded);
    }
    return rc == HF_ENOTFOUND ? 0 : rc;
}

static int check_processes(struct doctor_finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_PROCESSES, err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++)
        rc = check_record(
            finder,
            hf_out_text(hf_ops_result(&ops, 0), i, HF_COL_DOCTOR_PROCESSES_WORK_ID), err);
    hf_ops_fini(&ops);
    return rc;
}

static int check_limits(struct doctor_finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_LIMITS, err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++) {
        const struct hf_call *rows = hf_ops_result(&ops, 0);
        doctor_say(finder, hf_out_text(rows, i, HF_COL_DOCTOR_LIMITS_NAME));
        doctor_say(finder, ": ");
        doctor_say(finder, hf_out_text(rows, i, HF_COL_DOCTOR_LIMITS_FAULT));
        doctor_tell(finder, true, "limits", "set the limit again: that counts anew");
    }
    hf_ops_fini(&ops);
    return rc;
}

static void tell_leases(struct doctor_finder *finder, int64_t lapsed, int64_t silent)
{
    if (lapsed) {
        doctor_say_i64(finder, lapsed,
                       " running with a lapsed lease that a sweep acts on");
        doctor_tell(finder, false, "leases",
                    "run `holdfast monitor`, or `holdfast work sweep` once");
    }
    if (silent) {
        doctor_say_i64(finder, silent,
                       " owner_bound and silent: time alone never ends them");
        doctor_tell(
            finder, false, "leases",
            "see `holdfast work list --silent`; if the owner is gone for good, run "
            "`holdfast work request-abandon`");
    }
    if (!lapsed && !silent) {
        doctor_say(finder, "none has lapsed");
        doctor_tell(finder, false, "leases", "");
    }
}

static int check_counts(struct doctor_finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_COUNTS, err);
    if (rc == 0) {
        const struct hf_call *row = hf_ops_result(&ops, 0);
        if (finder->faults == 0) {
            doctor_say_i64(finder, finder->units, " units, ");
            doctor_say_i64(finder, finder->events,
                           " events, every trail folds to its row's status and counts");
            doctor_tell(finder, false, "chains", "");
        }
        tell_leases(finder, hf_out_i64(row, 0, HF_COL_DOCTOR_COUNTS_LAPSED),
                    hf_out_i64(row, 0, HF_COL_DOCTOR_COUNTS_SILENT));
    }
    hf_ops_fini(&ops);
    return rc;
}

static const struct {
    const char *name;
    int (*run)(struct doctor_finder *, struct hf_err *);
} checks[] = {
    { "engine", check_engine },    { "schema", check_schema },
    { "clock", check_clock },      { "disk", check_disk },
    { "chains", check_chains },    { "processes", check_processes },
    { "limits", check_limits },    { "sessions", doctor_sessions },
    { "effects", doctor_effects }, { "waits", doctor_waits },
    { "leases", check_counts },    { "guards", doctor_lite_guards },
    { "server", doctor_postgres },
};

#define CHECKS (sizeof checks / sizeof checks[0])

/* What cannot be read is a fault of the store, and the other checks continue. */
static void tell_unread(struct doctor_finder *finder, const char *name,
                        const struct hf_err *why)
{
    doctor_say(finder, why->message);
    doctor_say(finder, "; the check of ");
    doctor_say(finder, name);
    doctor_say(finder, " did not come to its end");
    doctor_tell(finder, true, "store", "the file is damaged: " RESTORE);
}

/* The error with the names of what was not looked at. */
static int fail_unreached(struct doctor_finder *finder, size_t from, int rc,
                          const struct hf_err *why, struct hf_err *err)
{
    hf_buf_reset(&finder->detail);
    for (size_t i = from; i < CHECKS; i++) {
        doctor_say(finder, i > from ? ", " : "");
        doctor_say(finder, checks[i].name);
    }
    return hf_fail(err, rc, why->field, "%s; not checked: %s", why->message,
                   hf_buf_str(&finder->detail));
}

int sql_check(struct hf_store *handle, hf_found *found, void *user, struct hf_err *err)
{
    struct doctor_finder finder = { .handle = handle, .found = found, .user = user };
    int rc = 0;
    hf_buf_init(&finder.detail, handle->alloc, 1024);
    for (size_t i = 0; rc == 0 && i < CHECKS; i++) {
        struct hf_err why = { 0 };
        rc = checks[i].run(&finder, &why);
        if (rc == HF_ECORRUPT) {
            tell_unread(&finder, checks[i].name, &why);
            rc = 0;
        } else if (rc) {
            rc = fail_unreached(&finder, i, rc, &why, err);
        }
    }
    hf_buf_fini(&finder.detail);
    return rc;
}

int sql_check_quickly(struct hf_store *handle, hf_found *found, void *user,
                      struct hf_err *err)
{
    struct doctor_finder finder = { .handle = handle, .found = found, .user = user };
    hf_buf_init(&finder.detail, handle->alloc, 1024);
    int rc = check_schema(&finder, err);
    if (rc == 0)
        rc = check_disk(&finder, err);
    if (rc == 0)
        rc = doctor_lite_guards(&finder, err);
    if (rc == 0)
        rc = doctor_postgres_quick(&finder, err);
    hf_buf_fini(&finder.detail);
    return rc;
}
