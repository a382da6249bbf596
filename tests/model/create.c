/* Creating: rule 15, births, what is fixed at creation; operation ids. */

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "model/inside.h"

/* The request as typed, so that what policy adds does not matter. */
static void digest_of(const struct m_call *call, const struct hf_work_spec *r,
                      uint8_t out[32])
{
    const char *const texts[] = {
        call->who->tenant, r->source_id,       r->source_run_id,
        r->kind,           r->queue,           r->lane_key,
        r->dedup_key,      r->idempotency_key, r->ref,
        r->payload,        r->payload_ref,     r->parent_work_id,
        r->retry_policy,   r->close_rule,      r->limit_key,
        r->rate_key,       r->fair_key
    };
    const int64_t numbers[] = { (int64_t)r->source,  (int64_t)r->disposition,
                                r->priority,         r->max_attempts,
                                r->delay_ms,         r->due_at,
                                r->start_timeout_ms, r->exec_timeout_ms,
                                r->detached,         r->fair_weight };
    struct hf_digest digest;
    hf_digest_begin(&digest, "model.create", 1);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        hf_digest_text(&digest, texts[i]);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        hf_digest_i64(&digest, numbers[i]);
    if (hf_digest_end(&digest, out) != 0)
        abort();
}

/* The row that the request's keys lead to, if any. */
static struct m_row *existing(struct m_call *call, const struct hf_work_spec *r,
                              bool *ret_by_dedup)
{
    struct m_row *by_dedup = NULL;
    for (size_t i = 0; i < call->disk->rows.count; i++) {
        struct m_row *row = &call->disk->rows.at[i];
        if (!m_same(row->w.tenant, call->who->tenant))
            continue;
        bool triple = row->source == r->source &&
                      m_same(row->w.source_id, r->source_id) &&
                      m_same(row->w.source_run_id, r->source_run_id);
        bool key = r->idempotency_key &&
                   m_same(row->w.idempotency_key, r->idempotency_key);
        if (triple || key) {
            *ret_by_dedup = false;
            return row;
        }
        if (r->dedup_key && !hf_status_terminal(row->status) &&
            m_same(row->w.dedup_key, r->dedup_key))
            by_dedup = row;
    }
    *ret_by_dedup = by_dedup != NULL;
    return by_dedup;
}

static const char *unfit(const struct hf_work_spec *r, enum hf_disposition disposition)
{
    if (disposition == HF_DISPOSITION_OWNER_BOUND && r->exec_timeout_ms)
        return "exec_timeout_ms";
    if (disposition != HF_DISPOSITION_EXTERNALLY_OWNED)
        return NULL;
    if (r->lane_key || r->limit_key || r->rate_key || r->fair_key || r->delay_ms ||
        r->due_at || r->start_timeout_ms || r->exec_timeout_ms)
        return "disposition";
    return NULL;
}

static void copy_request(struct m_call *call, struct m_row *row,
                         const struct hf_work_spec *r)
{
    struct model_disk *disk = call->disk;
    struct hf_work *w = &row->w;
    row->source = r->source;
    w->tenant = m_text(disk, call->who->tenant);
    w->source_system = hf_source_word(r->source);
    w->source_id = m_text(disk, r->source_id);
    w->source_run_id = m_text(disk, r->source_run_id);
    w->kind = m_text(disk, r->kind ? r->kind : "work");
    w->queue = m_text(disk, r->queue ? r->queue : "default");
    w->lane_key = m_text(disk, r->lane_key);
    w->dedup_key = m_text(disk, r->dedup_key);
    w->idempotency_key = m_text(disk, r->idempotency_key);
    w->ref = m_text(disk, r->ref);
    w->parent_work_id = m_text(disk, r->parent_work_id);
    w->correlation_id = m_text(disk, call->who->correlation_id);
    w->payload = m_text(disk, r->payload);
    w->payload_ref = m_text(disk, r->payload_ref);
    w->priority = r->priority < 0 ? 3 : r->priority;
    w->created_at = call->now;
    w->fair_key = m_text(disk, r->fair_key);
    row->weight = r->fair_weight ? r->fair_weight : 1;
    w->due_at = r->due_at ? r->due_at : m_later(call->now, r->delay_ms);
}

/* work > kind > source > default; all of it fixed now. */
static void fix_policy(struct m_call *call, struct m_row *row,
                       const struct hf_work_spec *r, const struct hf_policy *policy)
{
    struct hf_work *w = &row->w;
    const char *retry = r->retry_policy ? r->retry_policy : policy->retry_policy;
    int64_t attempts = r->max_attempts;
    if (attempts == 0 && r->retry_policy)
        attempts = m_retry_read(r->retry_policy).max_attempts;
    if (attempts == 0)
        attempts = policy->max_attempts;
    w->max_attempts = attempts;
    w->retry_policy = m_retry_fixed(call->disk, retry, attempts);
    w->disposition = hf_disposition_word(row->disposition);
    w->close_rule = m_text(call->disk,
                           r->close_rule ? r->close_rule : policy->close_rule);
    if (row->disposition == HF_DISPOSITION_EXTERNALLY_OWNED)
        return;
    w->start_timeout_ms = r->start_timeout_ms ? r->start_timeout_ms
                                              : policy->start_timeout_ms;
    if (row->disposition != HF_DISPOSITION_OWNER_BOUND)
        w->exec_timeout_ms = r->exec_timeout_ms ? r->exec_timeout_ms
                                                : policy->exec_timeout_ms;
}

static void be_born(struct m_call *call, struct m_row *row, const struct hf_work_spec *r)
{
    hf_ms due_at = row->w.due_at;
    struct m_say_event say = { "work_created", NULL,
                               m_say(call->disk, "\"max_attempts\":%lld%s",
                                     (long long)row->w.max_attempts,
                                     r->detached ? "\n\"detached\":true" : "") };
    if (r->detached) {
        m_enter(call, row, HF_STATUS_DONE, say);
        row->w.status_reason = "detached";
    } else if (row->disposition == HF_DISPOSITION_EXTERNALLY_OWNED) {
        m_enter(call, row, HF_STATUS_WAITING_EXTERNAL, say);
        row->w.waiting_kind = "external";
        row->w.waiting_ref = m_text(call->disk, r->ref);
        row->w.status_reason = "waiting_external";
    } else {
        m_enter(call, row, HF_STATUS_QUEUED, say);
        if (row->w.start_timeout_ms)
            row->w.deadline_at = m_later(due_at, row->w.start_timeout_ms);
        if (due_at > call->now) {
            row->w.gate = "due";
            row->entered = false;
        }
    }
    row->w.due_at = due_at;
}

static struct hf_policy policy_of(struct m_call *call, const struct hf_work_spec *r)
{
    return m_policy_of(call->disk, r->source, r->kind ? r->kind : "work");
}

/* Bad input comes before every other check, and refuses the call. */
static int check_all(struct m_call *call, const struct hf_work_spec *news, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct hf_policy policy = policy_of(call, &news[i]);
        const char *field = unfit(&news[i], news[i].disposition ? news[i].disposition
                                                                : policy.disposition);
        if (field)
            return hf_fail(call->err, HF_EINVAL, field, "does not fit the disposition");
    }
    return 0;
}

static const char *limit_of(struct m_call *call, const struct m_row *row,
                            const struct hf_work_spec *r)
{
    const char *key = r->limit_key ? r->limit_key : r->rate_key;
    const char *tenant = row->w.tenant;
    if (key)
        return m_say(call->disk, *tenant ? "%s:%s\x1f%s" : "%s:%s%s",
                     r->limit_key ? "key" : "rate", key, tenant);
    if (!r->lane_key && m_kind_limited(call->disk, row->w.kind))
        return m_say(call->disk, "kind:%s", row->w.kind);
    return NULL;
}

int m_create_one(struct m_call *call, const struct hf_work_spec *request,
                 struct m_row **ret_row, bool *ret_created)
{
    uint8_t asked[32];
    bool by_dedup = false;
    struct hf_policy policy = policy_of(call, request);
    enum hf_disposition disposition = request->disposition ? request->disposition
                                                           : policy.disposition;
    digest_of(call, request, asked);
    struct m_row *row = existing(call, request, &by_dedup);
    *ret_created = false;
    *ret_row = row;
    if (row && !by_dedup && memcmp(row->asked, asked, sizeof(asked)) != 0)
        return hf_fail(call->err, HF_ECONFLICT, "source_id", "other content");
    if (row)
        return 0;
    char id[HF_UUID_TEXT];
    int rc = hf_uuid7(call->now, &call->m->uuid_seq, call->m->handle.random, id,
                      call->err);
    if (rc)
        return rc;
    row = m_add(call->disk->rows);
    row->seq = call->disk->next_seq++;
    row->w.work_id = m_text(call->disk, id);
    row->disposition = disposition;
    memcpy(row->asked, asked, sizeof(asked));
    copy_request(call, row, request);
    fix_policy(call, row, request, &policy);
    if (row->disposition != HF_DISPOSITION_EXTERNALLY_OWNED && !request->detached)
        row->w.limit_name = limit_of(call, row, request);
    be_born(call, row, request);
    m_lanes(call->disk);
    *ret_created = true;
    *ret_row = row;
    return 0;
}

/* A request that made no row has all the same taken its turn and looked at its limit, as
 * far as its batch was not refused as a whole. */
static void charge(struct m_call *call, const struct hf_work_spec *request)
{
    struct m_row ghost = { 0 };
    struct hf_policy policy = policy_of(call, request);
    enum hf_disposition disposition = request->disposition ? request->disposition
                                                           : policy.disposition;
    if (disposition == HF_DISPOSITION_EXTERNALLY_OWNED || request->detached)
        return;
    copy_request(call, &ghost, request);
    if (ghost.w.due_at > call->now)
        return;
    m_fair_come(call, &ghost);
    const char *name = limit_of(call, &ghost, request);
    if (name)
        m_limit_touch(call->disk, name);
}

static void digest_all(const struct m_call *call, const struct hf_work_spec *news,
                       size_t n, uint8_t out[32])
{
    struct hf_digest digest;
    hf_digest_begin(&digest, "model.creates", 1);
    for (size_t i = 0; i < n; i++) {
        uint8_t one[32];
        digest_of(call, &news[i], one);
        hf_digest_bytes(&digest, one, sizeof(one));
    }
    if (hf_digest_end(&digest, out) != 0)
        abort();
}

static int create_all(struct m_call *call, const struct hf_work_spec *news, size_t n,
                      unsigned flags, struct hf_answer *answer)
{
    for (size_t i = 0; i < n; i++) {
        struct m_row *row = NULL;
        struct hf_item *item = hf_answer_add(answer);
        int rc = m_create_one(call, &news[i], &row, &item->created);
        if (rc && (flags & HF_ALL_OR_NONE))
            return rc;
        if (!item->created && !(flags & HF_ALL_OR_NONE))
            charge(call, &news[i]);
        item->code = rc;
        if (rc == 0)
            item->work.work_id = row->w.work_id;
    }
    (void)m_limits(call);
    m_show_all(call, answer, flags);
    return 0;
}

/* A unit that was made by the operation and pruned since. */
static void say_what_is_gone(struct m_call *call, struct hf_answer *answer)
{
    for (size_t i = 0; i < hf_answer_count(answer); i++) {
        struct hf_item *item = (struct hf_item *)(uintptr_t)hf_answer_at(answer, i);
        int code = 0;
        if (item->work.work_id && !m_find(call->disk, item->work.work_id, &code)) {
            item->code = HF_ENOTFOUND;
            item->work = (struct hf_work){ 0 };
        }
    }
}

int m_create(struct hf_store *store, const struct hf_caller *who,
             const struct hf_work_spec *news, size_t n, unsigned flags,
             struct hf_answer *answer, struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    struct model_disk *disk = call.disk;
    uint8_t asked[32];
    const struct m_receipt *receipt = NULL;
    digest_all(&call, news, n, asked);
    int rc = check_all(&call, news, n);
    if (rc == 0)
        rc = m_receipt_find(&call, "create", asked, &receipt);
    if (rc == 1) {
        m_receipt_show(&call, receipt, flags, answer);
        say_what_is_gone(&call, answer);
    }
    if (rc)
        return rc == 1 ? 0 : rc;
    size_t rows = disk->rows.count;
    size_t events = disk->events.count;
    struct m_shares shares = m_shares_keep(disk);
    rc = create_all(&call, news, n, flags, answer);
    if (rc) { /* nothing of it happened */
        disk->rows.count = rows;
        disk->events.count = events;
        m_shares_back(disk, &shares);
        m_lanes(disk);
    }
    m_shares_drop(&shares);
    if (rc)
        return rc;
    m_receipt_add(&call, "create", asked, answer);
    return 0;
}

/* ---- operation ids ------------------------------------------------------------------------ */

int m_receipt_find(struct m_call *call, const char *scope, const uint8_t asked[32],
                   const struct m_receipt **ret_receipt)
{
    const char *id = call->who->operation_id;
    for (size_t i = 0; id && i < call->disk->receipts.count; i++) {
        const struct m_receipt *receipt = &call->disk->receipts.at[i];
        if (!m_same(receipt->operation_id, id) || !m_same(receipt->scope, scope) ||
            !m_same(receipt->tenant, call->who->tenant))
            continue;
        if (memcmp(receipt->asked, asked, 32) != 0)
            return hf_fail(call->err, HF_ECONFLICT, "operation_id", "other content");
        *ret_receipt = receipt;
        return 1;
    }
    return 0;
}

void m_receipt_add(struct m_call *call, const char *scope, const uint8_t asked[32],
                   const struct hf_answer *answer)
{
    if (!call->who->operation_id)
        return;
    struct m_receipt *receipt = m_add(call->disk->receipts);
    size_t n = hf_answer_count(answer);
    receipt->tenant = m_text(call->disk, call->who->tenant);
    receipt->scope = scope;
    receipt->operation_id = m_text(call->disk, call->who->operation_id);
    memcpy(receipt->asked, asked, 32);
    receipt->count = n;
    receipt->ids = hf_arena_array(&call->disk->arena, n, sizeof(*receipt->ids));
    receipt->codes = hf_arena_array(&call->disk->arena, n, sizeof(*receipt->codes));
    if (!receipt->ids || !receipt->codes)
        abort();
    for (size_t i = 0; i < n; i++) {
        receipt->ids[i] = hf_answer_at(answer, i)->work.work_id;
        receipt->codes[i] = hf_answer_at(answer, i)->code;
    }
}

/* The first answer again, the rows as they are now. */
void m_receipt_show(struct m_call *call, const struct m_receipt *receipt, unsigned flags,
                    struct hf_answer *answer)
{
    for (size_t i = 0; i < receipt->count; i++) {
        struct hf_item *item = hf_answer_add(answer);
        item->repeated = true;
        item->code = receipt->codes[i];
        item->work.work_id = receipt->ids[i];
    }
    m_show_all(call, answer, flags);
}
