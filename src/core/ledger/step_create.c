/* The row that a create request makes. */

#include "base/err.h"
#include "base/text.h"
#include "core/ledger/draft.h"
#include "core/ledger/lifecycle.h"
#include "core/ledger/limit.h"

#define PRIORITY_DEFAULT 3

static const char *or_else(const char *given, const char *otherwise)
{
    return given ? given : otherwise;
}

/* Wishes that the disposition, which policy may have decided, cannot keep. */
static int check_fit(const struct hf_work_spec *request, enum hf_disposition disposition,
                     struct hf_err *err)
{
    if (disposition == HF_DISPOSITION_OWNER_BOUND && request->exec_timeout_ms != 0)
        return hf_fail(
            err, HF_EINVAL, "exec_timeout_ms",
            "an owner_bound row has no execution timeout: only its owner ends it");
    if (disposition != HF_DISPOSITION_EXTERNALLY_OWNED)
        return 0;
    const char *field = request->lane_key           ? "lane_key"
                        : request->limit_key        ? "limit_key"
                        : request->rate_key         ? "rate_key"
                        : request->fair_key         ? "fair_key"
                        : request->delay_ms         ? "delay_ms"
                        : request->due_at           ? "due_at"
                        : request->start_timeout_ms ? "start_timeout_ms"
                        : request->exec_timeout_ms  ? "exec_timeout_ms"
                                                    : NULL;
    if (field)
        return hf_fail(err, HF_EINVAL, field,
                       "%s is not allowed for an externally_owned row: it runs elsewhere",
                       field);
    return 0;
}

/* request > its retry policy > the policy in force > built in. Fixed in the row, so that a
 * later change of policy does not move work that exists. */
static int fix_retry(struct hf_draft *draft, const struct hf_work_spec *request)
{
    const struct hf_policy *policy = draft->env->policy;
    struct hf_row *row = &draft->out.row;
    struct hf_retry retry;
    int rc = hf_retry_read(or_else(request->retry_policy, policy->retry_policy), &retry,
                           draft->err);
    if (rc)
        return rc;
    int64_t attempts = request->max_attempts;
    if (attempts == 0 && request->retry_policy)
        attempts = retry.max_attempts;
    if (attempts == 0)
        attempts = policy->max_attempts;
    if (attempts == 0)
        attempts = retry.max_attempts ? retry.max_attempts
                                      : hf_retry_default.max_attempts;
    retry.max_attempts = attempts;
    row->w.max_attempts = attempts;
    if (!retry.json && attempts == hf_retry_default.max_attempts) {
        row->w.retry_policy = hf_retry_default_text;
        return 0;
    }

    struct hf_buf text;
    hf_buf_init(&text, draft->arena->alloc, 65536);
    rc = hf_retry_write(&text, &retry);
    if (rc == 0) {
        row->w.retry_policy = hf_arena_copy(draft->arena, hf_buf_str(&text), text.len);
        rc = row->w.retry_policy ? 0 : HF_ENOMEM;
    }
    hf_buf_fini(&text);
    return rc ? hf_fail_plain(draft->err, rc) : 0;
}

static void copy_request(struct hf_work *w, const struct hf_work_spec *request)
{
    w->source_system = hf_source_word(request->source);
    w->source_id = request->source_id;
    w->source_run_id = request->source_run_id;
    w->kind = or_else(request->kind, "work");
    w->queue = or_else(request->queue, "default");
    w->lane_key = request->lane_key;
    w->dedup_key = request->dedup_key;
    w->idempotency_key = request->idempotency_key;
    w->ref = request->ref;
    w->parent_work_id = request->parent_work_id;
    w->payload = request->payload;
    w->payload_ref = request->payload_ref;
    w->priority = request->priority < 0 ? PRIORITY_DEFAULT : request->priority;
}

/* The name of the limit that the row will be under. */
static int fix_limit(struct hf_draft *draft, const struct hf_work_spec *request)
{
    struct hf_row *row = &draft->out.row;
    const char *key = request->limit_key ? request->limit_key : request->rate_key;
    row->w.fair_key = request->fair_key;
    row->fair_weight = request->fair_weight ? request->fair_weight : 1;
    if (row->disposition == HF_DISPOSITION_EXTERNALLY_OWNED || request->detached)
        return 0;
    if (key)
        return hf_limit_full_name(draft->arena,
                                  request->limit_key ? "key:" : "rate:", key,
                                  row->w.tenant, &row->w.limit_name, draft->err);
    if (draft->env->kind_limited && !request->lane_key)
        return hf_limit_full_name(draft->arena, "kind:", row->w.kind, NULL,
                                  &row->w.limit_name, draft->err);
    return 0;
}

static void fix_policy(struct hf_row *row, const struct hf_work_spec *request,
                       const struct hf_policy *policy)
{
    row->disposition = request->disposition;
    if (row->disposition == HF_DISPOSITION_NONE)
        row->disposition = policy->disposition;
    if (row->disposition == HF_DISPOSITION_NONE)
        row->disposition = HF_DISPOSITION_EXPIRE;
    row->w.disposition = hf_disposition_word(row->disposition);
    row->w.close_rule = or_else(request->close_rule, policy->close_rule);
    if (row->disposition == HF_DISPOSITION_EXTERNALLY_OWNED)
        return;
    row->w.start_timeout_ms = request->start_timeout_ms ? request->start_timeout_ms
                                                        : policy->start_timeout_ms;
    if (row->disposition != HF_DISPOSITION_OWNER_BOUND)
        row->w.exec_timeout_ms = request->exec_timeout_ms ? request->exec_timeout_ms
                                                          : policy->exec_timeout_ms;
}

static void enter_first(struct hf_draft *draft, const struct hf_work_spec *request)
{
    struct hf_row *row = &draft->out.row;
    hf_ms now = draft->env->now;
    hf_ms due_at = request->due_at ? request->due_at : hf_later(now, request->delay_ms);
    if (request->detached) {
        hf_draft_enter(draft, HF_STATUS_DONE, "create");
        row->w.status_reason = "detached";
    } else if (row->disposition == HF_DISPOSITION_EXTERNALLY_OWNED) {
        hf_draft_enter(draft, HF_STATUS_WAITING_EXTERNAL, "create");
        row->w.waiting_kind = "external";
        row->w.waiting_ref = request->ref;
        row->w.status_reason = row->w.status;
    } else {
        hf_draft_enter(draft, HF_STATUS_QUEUED, "create");
        if (row->w.start_timeout_ms)
            row->w.deadline_at = hf_later(due_at, row->w.start_timeout_ms);
        if (due_at > now)
            row->w.gate = "due";
    }
    row->w.due_at = due_at;
    row->w.created_at = now;
}

static bool sets_policy(const struct hf_work_spec *request)
{
    return request->disposition != HF_DISPOSITION_NONE || request->max_attempts ||
           request->retry_policy || request->start_timeout_ms ||
           request->exec_timeout_ms || request->close_rule;
}

static struct hf_note created_note(const struct hf_draft *draft,
                                   const struct hf_work_spec *request)
{
    const struct hf_work *w = &draft->out.row.w;
    return (struct hf_note){
        .deadline_at = w->deadline_at,
        .detached = request->detached,
        .disposition = w->disposition,
        .due_at = w->due_at > w->created_at ? w->due_at : 0,
        .exec_timeout_ms = w->exec_timeout_ms,
        .from = sets_policy(request) ? "request" : "policy",
        .max_attempts = w->max_attempts,
        .ref = w->waiting_ref,
        .retry_policy = request->retry_policy || draft->env->policy->retry_policy
                            ? w->retry_policy
                            : NULL,
        .start_timeout_ms = w->start_timeout_ms,
    };
}

/* Requests of one call mostly say the same, so its text is written once. */
static int note_created(struct hf_draft *draft, const struct hf_work_spec *request)
{
    struct hf_note note = created_note(draft, request);
    struct hf_note_kept *kept = draft->env->kept;
    bool short_one = !note.deadline_at && !note.detached && !note.due_at &&
                     !note.exec_timeout_ms && !note.ref && !note.retry_policy &&
                     !note.start_timeout_ms;
    if (!kept || !short_one)
        return hf_draft_note(draft, &note);
    bool same = kept->text && hf_same(kept->disposition, note.disposition) &&
                hf_same(kept->from, note.from) && kept->max_attempts == note.max_attempts;
    int rc = same ? 0 : hf_draft_note(draft, &note);
    if (rc)
        return rc;
    if (same)
        draft->out.row.note = kept->text;
    else
        *kept = (struct hf_note_kept){ note.disposition, note.from, note.max_attempts,
                                       draft->out.row.note };
    return 0;
}

int hf_step_create(struct hf_arena *arena, const struct hf_work_spec *request,
                   const char *work_id, const struct hf_caller *who,
                   const struct hf_env *env, struct hf_row *ret_row, struct hf_err *err)
{
    static const struct hf_row no_row;
    struct hf_draft draft = hf_draft_begin(arena, &no_row, env, err);
    struct hf_row *row = &draft.out.row;
    row->source = request->source;
    row->w.work_id = work_id;
    row->w.tenant = who && who->tenant ? who->tenant : "";
    row->w.correlation_id = who && who->correlation_id ? who->correlation_id
                                                       : env->correlation_id;
    copy_request(&row->w, request);
    fix_policy(row, request, env->policy);
    int rc = check_fit(request, row->disposition, err);
    if (rc == 0)
        rc = fix_retry(&draft, request);
    if (rc == 0)
        rc = fix_limit(&draft, request);
    if (rc)
        return rc;
    enter_first(&draft, request);
    rc = note_created(&draft, request);
    if (rc == 0)
        *ret_row = *row;
    return rc;
}
