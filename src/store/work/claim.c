/* Claiming: acquiring the leases of units, by queue or for one given unit.
 *
 * A claim by queue is one transaction without reading first: statements that take the first
 * claimable rows of the queue, of fixed sizes from the engine's plan (plan->claims), a count of the
 * rate tokens that they used, and a read-back of the rows by the claim's owner, nonce and
 * incarnation. It also asks whether a sweep would find something (`attention`): then the claim
 * sweeps, and if it got nothing it claims once more. A handle remembers where its last claim of a
 * queue came to (scan.h). A claim of one unit reads the row and writes what core decides. */
#include "base/err.h"
#include "base/ident.h"
#include "base/json.h"
#include "base/text.h"
#include "core/ledger/policy.h"
#include "os/liveness.h"
#include "store/work/change.h"

/* A claim with all its defaults filled in. */
struct taker {
    struct sql_store *store;
    const struct hf_caller *who;
    const struct hf_claim *claim;
    const char *queue;
    const char *incarnation;
    const char *nonce;
    const char *holder;
    const char *note;
    const char *kinds; /* JSON array, or the only one where `one_kind`; NULL for any */
    bool one_kind;
    char fresh_nonce[HF_NONCE_TEXT];
};

static const char *kinds_json(struct hf_arena *arena, const struct hf_claim *claim)
{
    struct hf_buf buf;
    struct hf_json json;
    hf_buf_init(&buf, arena->alloc, 16384);
    hf_json_begin(&json, &buf);
    hf_json_array(&json);
    for (size_t i = 0; i < claim->kind_count; i++)
        hf_json_str(&json, claim->kinds[i]);
    hf_json_end(&json);
    return hf_buf_keep(&buf, arena);
}

/* The note of a claim is core's: {"lease":{…}} with sorted keys. The statement writes the
 * numbers, which differ from row to row; this is what is between them. */
static const char *claim_note(struct hf_arena *arena, const struct taker *taker)
{
    struct hf_buf buf;
    struct hf_json json;
    hf_buf_init(&buf, arena->alloc, 16384);
    if (taker->holder) {
        hf_buf_text(&buf, ",\"holder\":");
        hf_buf_text(&buf, taker->holder);
    }
    hf_buf_text(&buf, ",\"incarnation\":");
    hf_json_begin(&json, &buf);
    hf_json_str(&json, taker->incarnation);
    hf_buf_text(&buf, ",\"owner\":");
    hf_json_begin(&json, &buf);
    hf_json_str(&json, taker->claim->owner);
    hf_buf_text(&buf, ",\"ttl_ms\":");
    return hf_buf_keep(&buf, arena);
}

static int fill_in(struct taker *taker, struct hf_arena *arena, struct hf_err *err)
{
    const struct hf_claim *claim = taker->claim;
    taker->queue = claim->queue ? claim->queue : "default";
    taker->incarnation = claim->incarnation ? claim->incarnation
                                            : taker->store->handle.incarnation;
    taker->nonce = claim->nonce;
    int rc = 0;
    if (!taker->nonce) {
        rc = hf_nonce(taker->store->handle.random, taker->fresh_nonce, err);
        taker->nonce = taker->fresh_nonce;
    }
    if (rc == 0 && claim->pid)
        rc = hf_life_describe(arena, claim->pid, claim->lock, &taker->holder, err);
    if (rc)
        return rc;
    taker->note = claim_note(arena, taker);
    taker->one_kind = claim->kind_count == 1 &&
                      taker->store->plan->claims[0].one_kind != HF_SQL_NONE;
    if (taker->one_kind)
        taker->kinds = claim->kinds[0];
    else if (claim->kind_count)
        taker->kinds = kinds_json(arena, claim);
    if (!taker->note || (claim->kind_count && !taker->kinds))
        return hf_fail_plain(err, HF_ENOMEM);
    return 0;
}

static hf_ms default_ttl(const struct hf_claim *claim)
{
    return claim->ttl_default_ms ? claim->ttl_default_ms : hf_policy_builtin.ttl_ms;
}

/* Appends one claiming statement and the arguments that all of them have, in their order. The first
 * one is the queue; for HF_SQL_WORK_TAKE it is the id of the unit. The caller appends what further
 * arguments the statement has. A batch `holds` when it may take leases that name a process of this
 * machine, which its driver has to know. */
static void add_claim(struct hf_ops *ops, const struct taker *taker, enum hf_sql_id id)
{
    hf_ops_call(ops, id, HF_ANY_COUNT);
    hf_ops_text(ops, taker->queue);
    hf_ops_text(ops, taker->claim->owner);
    hf_ops_text(ops, taker->incarnation);
    hf_ops_text(ops, taker->nonce);
    hf_ops_i64_opt(ops, taker->claim->ttl_ms);
    hf_ops_text(ops, taker->holder);
    ops->batch.holds |= taker->holder != NULL;
    hf_ops_text(ops, taker->who->actor_kind);
    hf_ops_text(ops, taker->who->actor);
    hf_ops_text(ops, taker->note);
    hf_ops_text(ops, taker->who->correlation_id);
    hf_ops_i64(ops, default_ttl(taker->claim));
    hf_ops_i64(ops, hf_policy_builtin.grace_ms);
    if (taker->kinds)
        hf_ops_text(ops, taker->kinds);
}

/* What marks the rows that a claim took. */
static void add_claim_key(struct hf_ops *ops, const struct taker *taker)
{
    hf_ops_text(ops, taker->claim->owner);
    hf_ops_text(ops, taker->nonce);
    hf_ops_text(ops, taker->incarnation);
}

static size_t add_read_back(struct hf_ops *ops, const struct taker *taker)
{
    size_t call = hf_ops_call(ops, HF_SQL_WORK_CLAIMED, HF_ANY_COUNT);
    add_claim_key(ops, taker);
    return call;
}

/* Show what a claim took, in claim order, with a token each. */
static int show_taken(struct hf_ops *ops, size_t call, bool repeated,
                      struct hf_answer *answer, struct hf_err *err)
{
    const struct hf_call *rows = hf_ops_result(ops, call);
    struct hf_place *places = hf_arena_array(&ops->arena, rows->out_count,
                                             sizeof *places);
    if (!places)
        return hf_fail_plain(err, HF_ENOMEM);
    hf_rows_in_order(rows, places);
    for (size_t i = 0; i < rows->out_count; i++) {
        struct hf_row row;
        int rc = hf_row_read(rows, places[i].row, &row, err);
        struct hf_item *item = rc == 0 ? hf_answer_add(answer) : NULL;
        if (rc)
            return rc;
        if (!item || hf_item_show(answer, item, &row, false) ||
            sql_item_token(answer, item, &row))
            return hf_fail_plain(err, HF_ENOMEM);
        item->repeated = repeated;
    }
    return 0;
}

/* A nonce that was given may be that of a repeated claim; the two may even run at once. */
static void add_guard(struct hf_ops *ops, const struct taker *taker)
{
    if (!taker->claim->nonce)
        return;
    hf_ops_call(ops, HF_SQL_CLAIM_LOCK, HF_ANY_COUNT);
    hf_ops_text(ops, taker->claim->owner);
    hf_ops_text(ops, taker->nonce);
    hf_ops_call(ops, HF_SQL_CLAIM_FRESH, HF_ANY_COUNT);
    add_claim_key(ops, taker);
}

/* The rows that the claim took before are its answer. */
static int repeat_of(struct taker *taker, struct hf_ops *ops, struct hf_answer *answer,
                     struct hf_err *err)
{
    hf_ops_reset(ops);
    size_t call = add_read_back(ops, taker);
    int rc = hf_ops_read(ops, err);
    if (rc == 0)
        rc = show_taken(ops, call, true, answer, err);
    return rc;
}

static enum hf_sql_id statement_of(const struct hf_claim_size *size,
                                   const struct taker *taker,
                                   const struct sql_scan_start *from)
{
    if (taker->one_kind)
        return size->one_kind;
    if (taker->kinds)
        return size->some_kinds;
    return from->worn ? size->from_key : size->any_kind;
}

/* Appends the claiming statements for `want` rows, largest size first: from the start of the queue,
 * or from the key where the last claim came to. A size of 0 rows takes the number as an
 * argument. */
static void add_sizes(struct hf_ops *ops, const struct taker *taker,
                      const struct sql_scan_start *from, size_t want)
{
    const struct hf_plan *plan = taker->store->plan;
    for (size_t s = 0; s < plan->claim_count; s++) {
        const struct hf_claim_size *size = &plan->claims[s];
        while (want > 0 && want >= size->rows) {
            add_claim(ops, taker, statement_of(size, taker, from));
            if (!taker->kinds && from->worn) {
                hf_ops_i64(ops, from->priority);
                hf_ops_i64(ops, from->fair_tag);
                hf_ops_i64(ops, from->seq);
            }
            if (size->rows == 0)
                hf_ops_i64(ops, (int64_t)want);
            want -= size->rows ? size->rows : want;
        }
    }
}

/* Appends the count of the rate-limit tokens that the claimed rows used. */
static void add_tokens(struct hf_ops *ops, const struct taker *taker)
{
    enum hf_sql_id limit_rate = taker->store->plan->limit_rate;
    size_t rate = 0;
    if (limit_rate != HF_SQL_NONE)
        rate = hf_ops_call(ops, limit_rate, HF_ANY_COUNT);
    hf_ops_call(ops, HF_SQL_LIMIT_CLAIMED, HF_ANY_COUNT);
    if (limit_rate != HF_SQL_NONE)
        hf_ops_only_if(ops, rate);
    add_claim_key(ops, taker);
}

struct take_calls {
    size_t rows;
    size_t attention;
};

/* Take up to as many rows as wanted, read them back, and ask whether a sweep would find
 * something that could become claimable. HF_EGUARD: the same claim took rows before. */
static struct take_calls add_take(struct taker *taker, struct hf_ops *ops,
                                  struct sql_scan *scan)
{
    const struct sql_scan_start *from = &scan->from;
    struct take_calls calls;
    add_guard(ops, taker);
    if (scan->looks)
        scan->reads_before = hf_ops_call(ops, HF_SQL_CLAIM_READS, HF_ANY_COUNT);
    add_sizes(ops, taker, from, taker->claim->limit ? taker->claim->limit : 1);
    add_tokens(ops, taker);
    calls.rows = add_read_back(ops, taker);
    calls.attention = hf_ops_call(ops, HF_SQL_WORK_ATTENTION, HF_ANY_COUNT);
    hf_ops_i64(ops, from->leases_worn ? from->wakes_seen : 0);
    hf_ops_i64(ops, from->leases_worn ? from->leases_seen : 0);
    if (scan->looks)
        scan->reads_after = hf_ops_call(ops, HF_SQL_CLAIM_READS, HF_ANY_COUNT);
    return calls;
}

/* One transaction. */
static int take(struct taker *taker, struct hf_ops *ops, struct sql_scan *scan,
                struct hf_answer *answer, bool *ret_attention, struct hf_err *err)
{
    hf_ops_reset(ops);
    struct take_calls calls = add_take(taker, ops, scan);
    int rc = hf_ops_write(ops, err);
    if (rc)
        return rc;
    *ret_attention = hf_out_i64(hf_ops_result(ops, calls.attention), 0,
                                HF_COL_WORK_ATTENTION_ATTENTION) != 0;
    sql_scan_end(taker->store, scan, ops, hf_ops_result(ops, calls.rows), *ret_attention);
    return sql_answered(show_taken(ops, calls.rows, false, answer, err), err);
}

/* One statement, for one row of a queue that is as most are. Looks go the long way, so that once
 * in a while a caller asks whether there is something to sweep. */
static bool may_be_short(const struct taker *taker, const struct sql_scan *scan)
{
    return taker->store->plan->claim_lone != HF_SQL_NONE && taker->claim->limit <= 1 &&
           !taker->kinds && !taker->claim->nonce && !scan->looks && !scan->from.worn &&
           !scan->from.long_way;
}

static int take_short(struct taker *taker, struct hf_ops *ops,
                      const struct sql_scan *scan, struct hf_answer *answer,
                      struct hf_err *err)
{
    hf_ops_reset(ops);
    size_t rows = ops->batch.call_count;
    add_claim(ops, taker, taker->store->plan->claim_lone);
    int rc = hf_ops_write(ops, err);
    if (rc == 0 && ops->batch.lost) { /* what it took is found by its nonce */
        hf_ops_reset(ops);
        rows = add_read_back(ops, taker);
        rc = sql_answered(hf_ops_read(ops, err), err);
    }
    if (rc)
        return rc;
    sql_scan_end(taker->store, scan, ops, hf_ops_result(ops, rows), true);
    return sql_answered(show_taken(ops, rows, false, answer, err), err);
}

/* Continues where the last claim came to, and looks from the start where that finds nothing. */
static int take_some(struct taker *taker, struct hf_ops *ops, struct hf_answer *answer,
                     bool *ret_attention, struct hf_err *err)
{
    struct sql_scan scan;
    int rc = 0;
    sql_scan_begin(taker->store, taker->kinds ? "" : taker->queue, false, &scan);
    if (may_be_short(taker, &scan)) {
        rc = take_short(taker, ops, &scan, answer, err);
        scan.missed = true;
    }
    if (rc || hf_answer_count(answer))
        return rc;
    rc = take(taker, ops, &scan, answer, ret_attention, err);
    if (rc || hf_answer_count(answer) || !scan.from.worn)
        return rc;
    sql_scan_begin(taker->store, taker->queue, true, &scan);
    return take(taker, ops, &scan, answer, ret_attention, err);
}

static int claim_by_queue(struct taker *taker, struct hf_answer *answer,
                          struct hf_err *err)
{
    bool attention = false;
    struct hf_ops ops;
    hf_ops_init(&ops, taker->store->sql, taker->store->handle.alloc);
    int rc = take_some(taker, &ops, answer, &attention, err);
    if (rc == 0 && attention) {
        /* Due rows and lapsed leases do not wait for a monitor. */
        struct hf_sweep_report report;
        struct hf_err why = { 0 };
        bool taken = hf_answer_count(answer) > 0;
        int swept = sql_sweep(&taker->store->handle, taker->who, 64, &report, &why);
        if (!taken) /* otherwise what was taken is answered, and the next claim asks again */
            rc = hf_fail_as(err, swept, &why);
        if (rc == 0 && !taken && report.promoted + report.requeued > 0)
            rc = take_some(taker, &ops, answer, &attention, err);
    }
    if (rc == HF_EGUARD)
        rc = repeat_of(taker, &ops, answer, err);
    hf_ops_fini(&ops);
    return rc;
}

/* ---- one given row ------------------------------------------------------------------- */

/* `ret_row`: the call that reads a row that is running now. */
static int write_step(struct hf_ops *write, const struct hf_row *was,
                      const struct hf_step *step, size_t *ret_row, struct hf_err *err)
{
    hf_row_write(write, was, &step->row);
    if (step->extra_event)
        hf_event_append(write, &step->row, step->extra_event);
    if (step->row.status == HF_STATUS_RUNNING)
        *ret_row = change_begin_lease(write, &step->row);
    return hf_ops_write(write, err);
}

/* What a sweep would do to this row now, if that is what keeps it from being claimed: its
 * time has come, or its lease has lapsed and it may run again. */
static int make_claimable(struct taker *taker, struct hf_arena *arena,
                          const struct hf_row *was, const struct hf_env *env,
                          struct hf_err *err)
{
    struct hf_step step;
    struct hf_env with = *env;
    with.busy = hf_life_busy(was->w.holder);
    int rc = hf_step_sweep(arena, was, NULL, &with, &step, err);
    if (rc || step.kind == HF_STEP_NOTHING || step.row.status != HF_STATUS_QUEUED)
        return rc;
    struct hf_ops write;
    hf_ops_init(&write, taker->store->sql, taker->store->handle.alloc);
    rc = write_step(&write, was, &step, NULL, err); /* into its queue */
    hf_ops_fini(&write);
    return rc ? rc : HF_EGUARD; /* read again: a lane may have its say */
}

static int show_one(struct hf_answer *answer, const struct hf_row *row, bool repeated,
                    struct hf_err *err)
{
    struct hf_item *item = hf_answer_add(answer);
    if (!item || hf_item_show(answer, item, row, false) ||
        sql_item_token(answer, item, row))
        return hf_fail_plain(err, HF_ENOMEM);
    item->repeated = repeated;
    return 0;
}

static int show_begun(const struct hf_ops *write, size_t read_back,
                      const struct hf_row *written, struct hf_answer *answer,
                      struct hf_err *err)
{
    struct hf_row now;
    int rc = change_read_written(write, read_back, 0, written, &now, err);
    return rc ? rc : show_one(answer, &now, false, err);
}

/* One given row: read, decide, write if it is still as it was read. */
static int claim_once(struct taker *taker, struct hf_ops *ops, struct hf_arena *arena,
                      struct hf_answer *answer, struct hf_err *err)
{
    struct hf_row was;
    struct hf_env env;
    struct hf_policy policy, last = hf_policy_builtin;
    struct hf_step step;
    last.ttl_ms = default_ttl(taker->claim);
    last.renew_ms = hf_lease_renew_every(last.ttl_ms);
    int rc = sql_find(ops, taker->claim->id, &was, err);
    if (rc == 0)
        rc = sql_env(taker->store, taker->who, &ops->batch, &env, err);
    if (rc == 0)
        rc = sql_policy_over(taker->store, arena, &last, was.source, was.w.kind, &policy,
                             err);
    if (rc)
        return rc;
    env.policy = &policy;
    env.holder = taker->holder;
    struct hf_claimant claimant = { taker->claim->owner,  taker->incarnation,
                                    taker->nonce,         taker->holder,
                                    taker->claim->ttl_ms, env.store };
    rc = hf_step_claim(arena, &was, &claimant, &env, &step, err);
    if (rc == HF_EHELD || rc == HF_ETRANSITION) {
        int swept = make_claimable(taker, arena, &was, &env, err);
        return swept ? swept : rc;
    }
    if (rc)
        return rc;
    if (step.kind == HF_STEP_REPEAT)
        return show_one(answer, &was, true, err);
    struct hf_ops write;
    hf_ops_init(&write, taker->store->sql, taker->store->handle.alloc);
    size_t read_back = 0;
    rc = write_step(&write, &was, &step, &read_back, err);
    if (rc == HF_ECONFLICT)
        rc = hf_fail(err, HF_EHELD, "lane_key", "another unit of this lane is running");
    else if (rc == 0)
        rc = sql_answered(show_begun(&write, read_back, &step.row, answer, err), err);
    hf_ops_fini(&write);
    return rc;
}

static int claim_by_id(struct taker *taker, struct hf_arena *arena,
                       struct hf_answer *answer, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, taker->store->sql, taker->store->handle.alloc);
    int rc = HF_EGUARD;
    for (int i = 0; rc == HF_EGUARD && i < HF_TRIES; i++) {
        hf_ops_reset(&ops);
        rc = claim_once(taker, &ops, arena, answer, err);
    }
    hf_ops_fini(&ops);
    return rc == HF_EGUARD ? hf_fail_plain(err, HF_EBUSY) : rc;
}

int sql_claim(struct hf_store *handle, const struct hf_caller *who,
              const struct hf_claim *claim, struct hf_answer *answer, struct hf_err *err)
{
    struct taker taker = { .store = sql_store_of(handle), .who = who, .claim = claim };
    struct hf_arena arena;
    hf_arena_init(&arena, handle->alloc);
    int rc = fill_in(&taker, &arena, err);
    if (rc == 0)
        rc = claim->id ? claim_by_id(&taker, &arena, answer, err)
                       : claim_by_queue(&taker, answer, err);
    hf_arena_fini(&arena);
    return rc;
}

/* The memory of the batch is the claim's too. */
int sql_claim_add(struct sql_store *store, const struct hf_caller *who,
                  const struct hf_claim *claim, const char *work_id, struct hf_ops *ops,
                  struct hf_err *err)
{
    struct taker *taker = hf_arena_new(&ops->arena, struct taker);
    if (!taker)
        return hf_fail_plain(err, HF_ENOMEM);
    *taker = (struct taker){ .store = store, .who = who, .claim = claim };
    int rc = fill_in(taker, &ops->arena, err);
    taker->queue = work_id;
    if (rc == 0) {
        add_claim(ops, taker, HF_SQL_WORK_TAKE);
        add_tokens(ops, taker);
    }
    return rc;
}
