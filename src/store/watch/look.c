/* The findings of one kind, read by one or two statements. What they mean is said above
 * (store/api/attention.c). */
#include "base/err.h"
#include "base/text.h"
#include "core/ledger/limit.h"
#include "os/liveness.h"
#include "store/watch/watch.h"

int watch_show(struct watch_look *look, int64_t *count, const struct hf_look_row *seen)
{
    (*count)++;
    if (look->shown == look->asked->limit)
        return 0;
    look->shown++;
    return look->asked->each(look->asked->user, seen);
}

/* Reads with one statement that has the arguments tenant, then a number, then the room that is
 * left and one more, which says that there are more. */
static void begin(struct watch_look *look, struct hf_ops *ops, enum hf_sql_id statement)
{
    hf_ops_init(ops, sql_store_of(look->handle)->sql, look->handle->alloc);
    hf_ops_call(ops, statement, HF_ANY_COUNT);
    hf_ops_text(ops, look->tenant);
}

static void add_limit(struct watch_look *look, struct hf_ops *ops)
{
    hf_ops_i64(ops, (int64_t)(look->asked->limit - look->shown + 1));
}

/* ---- units -------------------------------------------------------------------------- */

/* The columns behind those of a row are the same in all of these statements. */
static const struct {
    enum hf_sql_id statement;
    size_t counted; /* column of seen_counts: units, and others */
    size_t others;
} units[HF_NEED_COUNT] = {
    [HF_NEED_SILENT] = { HF_SQL_SEEN_SILENT, HF_COL_SEEN_COUNTS_SILENT,
                         HF_COL_SEEN_COUNTS_SILENT_SESSIONS },
    [HF_NEED_LAPSING] = { HF_SQL_SEEN_LAPSING, HF_COL_SEEN_COUNTS_LAPSING,
                          HF_COL_SEEN_COUNTS_LAPSING_SESSIONS },
    [HF_NEED_QUESTION] = { HF_SQL_SEEN_QUESTION, HF_COL_SEEN_COUNTS_QUESTION,
                           HF_COL_SEEN_COUNTS_APPROVALS },
    [HF_NEED_WAIT] = { HF_SQL_SEEN_WAIT, HF_COL_SEEN_COUNTS_WAIT,
                       HF_COL_SEEN_COUNTS_TURN_WAITS },
    [HF_NEED_HELD] = { HF_SQL_SEEN_HELD, HF_COL_SEEN_COUNTS_HELD,
                       HF_COL_SEEN_COUNTS_NONE },
    [HF_NEED_ENDED_BADLY] = { HF_SQL_SEEN_ENDED, 0, 0 },
};

/* Which proof of death is missing. */
static const char *missing_proof(const char *holder)
{
    if (!holder)
        return "no_pid";
    if (hf_life_busy(holder))
        return "work_alive";
    if (hf_life_living(holder))
        return "process_alive";
    return hf_life_dead(holder) ? "none" : "other_host";
}

static int show_unit(struct watch_look *look, const struct hf_call *rows, size_t i)
{
    struct hf_row row;
    int rc = hf_row_read(rows, i, &row, look->err);
    row.w.retry_policy = NULL;
    struct hf_look_row seen = {
        .work = &row.w,
        .said = hf_out_text(rows, i, HF_COL_SEEN_SILENT_SAID),
        .said_by = hf_out_text(rows, i, HF_COL_SEEN_SILENT_SAID_BY),
    };
    if (rc == 0 && look->asked->what == HF_NEED_SILENT)
        seen.text = missing_proof(row.w.holder);
    return rc ? rc : watch_show(look, &look->found.units, &seen);
}

/* Where the page was full: how many there are. Bad ends are counted by kind and class (rest). */
static int count_units(struct watch_look *look)
{
    struct hf_ops ops;
    if (look->asked->what == HF_NEED_ENDED_BADLY ||
        (size_t)(look->found.units + look->found.others) <= look->asked->limit)
        return 0;
    begin(look, &ops, HF_SQL_SEEN_COUNTS);
    hf_ops_i64(&ops, HF_LOOK_BOUND);
    int rc = hf_ops_read(&ops, look->err);
    if (rc == 0) {
        const struct hf_call *row = hf_ops_result(&ops, 0);
        look->found.units = hf_out_i64(row, 0, units[look->asked->what].counted);
        look->found.others = hf_out_i64(row, 0, units[look->asked->what].others);
    }
    hf_ops_fini(&ops);
    return rc;
}

static int read_units(struct watch_look *look)
{
    struct hf_ops ops;
    begin(look, &ops, units[look->asked->what].statement);
    add_limit(look, &ops);
    int rc = hf_ops_read(&ops, look->err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++)
        rc = show_unit(look, hf_ops_result(&ops, 0), i);
    hf_ops_fini(&ops);
    return rc;
}

static int look_units(struct watch_look *look)
{
    int rc = read_units(look);
    return rc ? rc : count_units(look);
}

/* ---- waits of turns ------------------------------------------------------------------- */

static int show_wait(struct watch_look *look, const struct hf_call *rows, size_t i)
{
#define TEXT(name) hf_out_text(rows, i, HF_COL_SEEN_APPROVAL_##name)
#define TIME(name) hf_out_i64(rows, i, HF_COL_SEEN_APPROVAL_##name)
    const struct hf_wait wait = {
        .wait_id = TEXT(WAIT_ID),
        .session_id = TEXT(SESSION_ID),
        .turn_id = TEXT(TURN_ID),
        .tenant = TEXT(TENANT),
        .agent = TEXT(AGENT),
        .kind = TEXT(KIND),
        .name = TEXT(NAME),
        .asked = TEXT(ASKED),
        .answerer = TEXT(ANSWERER),
        .policy = TEXT(POLICY),
        .next_answerer = TEXT(NEXT_ANSWERER),
        .escalate = TEXT(ESCALATE),
        .escalate_at = TIME(ESCALATE_AT),
        .deadline_at = TIME(DEADLINE_AT),
        .opened_at = TIME(OPENED_AT),
    };
#undef TEXT
#undef TIME
    const struct hf_look_row seen = { .wait = &wait };
    return watch_show(look, &look->found.others, &seen);
}

/* Units first, then turns. */
static int look_waits(struct watch_look *look)
{
    struct hf_ops ops;
    int rc = read_units(look);
    if (rc)
        return rc;
    begin(look, &ops,
          look->asked->what == HF_NEED_QUESTION ? HF_SQL_SEEN_APPROVAL
                                                : HF_SQL_SEEN_TURN_WAIT);
    add_limit(look, &ops);
    rc = hf_ops_read(&ops, look->err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++)
        rc = show_wait(look, hf_ops_result(&ops, 0), i);
    hf_ops_fini(&ops);
    return rc ? rc : count_units(look);
}

/* ---- bad ends beyond the page ----------------------------------------------------------- */

#define GROUPS 50 /* of kinds and classes that are told apart */

/* The largest groups one by one, and all others as one without a kind. */
static int look_rest(struct watch_look *look)
{
    struct hf_ops ops;
    struct hf_look_row others = { .count = 0 };
    begin(look, &ops, HF_SQL_SEEN_ENDED_REST);
    hf_ops_i64(&ops, HF_LOOK_BOUND);
    hf_ops_i64(&ops, (int64_t)look->asked->limit);
    int rc = hf_ops_read(&ops, look->err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++) {
        const struct hf_call *rows = hf_ops_result(&ops, 0);
        const struct hf_look_row seen = {
            .kind = hf_out_text(rows, i, HF_COL_SEEN_ENDED_REST_KIND),
            .text = hf_out_text(rows, i, HF_COL_SEEN_ENDED_REST_ERROR_CLASS),
            .count = hf_out_i64(rows, i, HF_COL_SEEN_ENDED_REST_UNITS),
        };
        look->found.units += seen.count;
        if (i < GROUPS)
            rc = look->asked->each(look->asked->user, &seen);
        else
            others.count += seen.count;
    }
    look->found.cut = look->found.units >= HF_LOOK_BOUND;
    if (rc == 0 && (others.count || look->found.cut))
        rc = look->asked->each(look->asked->user, &others);
    hf_ops_fini(&ops);
    return rc;
}

/* ---- sessions and schedules ----------------------------------------------------------- */

static int look_sessions(struct watch_look *look)
{
    struct hf_ops ops;
    bool silent = look->asked->what == HF_NEED_SILENT;
    begin(look, &ops, HF_SQL_SEEN_SESSIONS);
    hf_ops_i64(&ops, silent);
    add_limit(look, &ops);
    int rc = hf_ops_read(&ops, look->err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++) {
        const struct hf_call *rows = hf_ops_result(&ops, 0);
        hf_ms left = hf_out_i64(rows, i, HF_COL_SEEN_SESSIONS_LEASE_REMAINING_MS);
        struct hf_look_row seen = {
            .id = hf_out_text(rows, i, HF_COL_SEEN_SESSIONS_SESSION_ID),
            .tenant = hf_out_text(rows, i, HF_COL_SEEN_SESSIONS_TENANT),
            .kind = hf_out_text(rows, i, HF_COL_SEEN_SESSIONS_AGENT),
            .owner = hf_out_text(rows, i, HF_COL_SEEN_SESSIONS_OWNER),
            .count = left,
            .most = hf_out_i64(rows, i, HF_COL_SEEN_SESSIONS_LEASE_TTL_MS),
        };
        if (silent)
            seen.text = missing_proof(hf_out_text(rows, i, HF_COL_SEEN_SESSIONS_HOLDER));
        rc = watch_show(look, &look->found.others, &seen);
    }
    hf_ops_fini(&ops);
    return rc;
}

static int look_leases(struct watch_look *look)
{
    int rc = read_units(look);
    if (rc == 0)
        rc = look_sessions(look);
    return rc ? rc : count_units(look);
}

static int look_schedules(struct watch_look *look)
{
    struct hf_ops ops;
    bool failing = look->asked->what == HF_NEED_SCHEDULE_FAILING;
    begin(look, &ops, HF_SQL_SEEN_SCHEDULES);
    hf_ops_i64(&ops, failing);
    add_limit(look, &ops);
    int rc = hf_ops_read(&ops, look->err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++) {
        const struct hf_call *rows = hf_ops_result(&ops, 0);
        const struct hf_look_row seen = {
            .id = hf_out_text(rows, i, HF_COL_SEEN_SCHEDULES_NAME),
            .tenant = hf_out_text(rows, i, HF_COL_SEEN_SCHEDULES_TENANT),
            .kind = hf_out_text(rows, i, HF_COL_SEEN_SCHEDULES_KIND),
            .text = hf_out_text(rows, i, HF_COL_SEEN_SCHEDULES_LAST_ERROR),
            .count = hf_out_i64(rows, i, HF_COL_SEEN_SCHEDULES_FAILURES),
            .since = hf_out_i64(rows, i,
                                failing ? HF_COL_SEEN_SCHEDULES_UPDATED_AT
                                        : HF_COL_SEEN_SCHEDULES_NEXT_AT),
        };
        rc = watch_show(look, &look->found.units, &seen);
    }
    hf_ops_fini(&ops);
    return rc;
}

/* ---- owners and limits ------------------------------------------------------------------ */

static int show_twins(struct watch_look *look, const struct hf_call *rows, size_t from,
                      size_t to)
{
    int64_t twins = 0;
    hf_ms since = 0;
    for (size_t i = from; i < to; i++)
        if (watch_is_twin(rows, from, to, i)) {
            twins++;
            since = hf_out_i64(rows, i, HF_COL_OVERVIEW_HOLDERS_SINCE);
        }
    const struct hf_look_row seen = {
        .id = hf_out_text(rows, from, HF_COL_OVERVIEW_HOLDERS_OWNER),
        .count = twins,
        .since = since,
    };
    return twins ? watch_show(look, &look->found.units, &seen) : 0;
}

static int look_twins(struct watch_look *look)
{
    struct hf_ops ops;
    begin(look, &ops, HF_SQL_OVERVIEW_HOLDERS);
    hf_ops_null(&ops);
    hf_ops_i64(&ops, HF_LOOK_BOUND);
    int rc = hf_ops_read(&ops, look->err);
    size_t count = rc == 0 ? hf_ops_result(&ops, 0)->out_count : 0, to = 0;
    for (size_t from = 0; rc == 0 && from < count; from = to) {
        to = watch_owner_end(hf_ops_result(&ops, 0), from);
        rc = show_twins(look, hf_ops_result(&ops, 0), from, to);
    }
    hf_ops_fini(&ops);
    return rc;
}

static int show_limit(struct watch_look *look, struct hf_ops *ops,
                      const struct hf_call *rows, size_t i)
{
    char *name = hf_arena_text(&ops->arena,
                               hf_out_text(rows, i, HF_COL_SEEN_LIMITS_NAME));
    if (!name)
        return hf_fail_plain(look->err, HF_ENOMEM);
    const char *tenant = "";
    for (char *at = name; *at; at++)
        if (*at == HF_LIMIT_TENANT) {
            *at = 0;
            tenant = at + 1;
            break;
        }
    const struct hf_look_row seen = {
        .id = name,
        .tenant = tenant,
        .since = hf_out_i64(rows, i, HF_COL_SEEN_LIMITS_SINCE),
        .count = hf_out_i64(rows, i, HF_COL_SEEN_LIMITS_WAITING),
        .most = hf_out_i64(rows, i, HF_COL_SEEN_LIMITS_MAX_RUNNING),
    };
    return look->tenant && *tenant && !hf_same(look->tenant, tenant)
               ? 0
               : watch_show(look, &look->found.units, &seen);
}

static int look_limits(struct watch_look *look)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(look->handle)->sql, look->handle->alloc);
    hf_ops_call(&ops, HF_SQL_SEEN_LIMITS, HF_ANY_COUNT);
    hf_ops_i64(&ops, HF_LOOK_BOUND);
    int rc = hf_ops_read(&ops, look->err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++)
        rc = show_limit(look, &ops, hf_ops_result(&ops, 0), i);
    hf_ops_fini(&ops);
    return rc;
}

/* ---- the store ---------------------------------------------------------------------------- */

struct trouble {
    struct watch_look *look;
    int rc;
};

/* A disk that is only tight, and a schema that is one version ahead, need no person now. */
static void found(void *user, const struct hf_finding *finding)
{
    struct trouble *trouble = user;
    bool advice = finding->advice && *finding->advice;
    bool mild = hf_same(finding->what, "disk") || hf_same(finding->what, "schema");
    const struct hf_look_row seen = { .id = finding->what,
                                      .text = finding->detail,
                                      .advice = finding->advice };
    if (trouble->rc == 0 && (finding->bad || (advice && !mild)))
        trouble->rc = watch_show(trouble->look, &trouble->look->found.units, &seen);
}

static int look_store(struct watch_look *look)
{
    struct trouble trouble = { .look = look };
    int rc = sql_check_quickly(look->handle, found, &trouble, look->err);
    return rc ? rc : trouble.rc;
}

/* ---- all of them --------------------------------------------------------------------------- */

static int (*const looks[HF_NEED_COUNT])(struct watch_look *) = {
    [HF_NEED_SILENT] = look_leases,
    [HF_NEED_LAPSING] = look_leases,
    [HF_NEED_QUESTION] = look_waits,
    [HF_NEED_WAIT] = look_waits,
    [HF_NEED_HELD] = look_units,
    [HF_NEED_ENDED_BADLY] = look_units,
    [HF_NEED_UNSERVED] = watch_unserved,
    [HF_NEED_SCHEDULE_FAILING] = look_schedules,
    [HF_NEED_SCHEDULE_LATE] = look_schedules,
    [HF_NEED_TWINS] = look_twins,
    [HF_NEED_LIMIT_STUCK] = look_limits,
    [HF_NEED_STORE] = look_store,
};

static int sql_look(struct hf_store *handle, const struct hf_caller *who,
                    const struct hf_look *asked, struct hf_look_found *ret_found,
                    struct hf_err *err)
{
    struct watch_look look = { .handle = handle,
                               .asked = asked,
                               .tenant = who->tenant[0] ? who->tenant : NULL,
                               .err = err };
    int rc = 0;
    if (asked->rest)
        rc = look_rest(&look);
    else if (looks[asked->what])
        rc = looks[asked->what](&look);
    if (rc == 0)
        *ret_found = look.found;
    return rc;
}

const struct hf_overview_methods sql_overview_methods = {
    .look = sql_look,
    .ack = sql_ack,
    .queues = sql_queues,
    .holders = sql_holder_list,
    .ages = sql_ages,
    .occurrences = sql_occurrences,
};
