/* Jobs: enqueueing, and what the code that runs one may ask and say. */
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/sized.h"
#include "base/text.h"
#include "core/ledger/step.h"
#include "run/pool/pool.h"

/* A job that is in the way of another of its dedup key: put off, if its time has not
 * come. HF_ETRANSITION: it has. */
static int put_off(struct hf_store *store, const struct hf_caller *who, const char *id,
                   const struct hf_job_spec *job, struct hf_answer **ret_answer)
{
    struct hf_change later = { .size = sizeof later,
                               .verb = HF_VERB_RESCHEDULE,
                               .id = id,
                               .timeout_ms = job->debounce_ms,
                               .reason = "debounced" };
    return hf_work_change(store, who, &later, 1, HF_ALL_OR_NONE, ret_answer, NULL);
}

static struct hf_work_spec request_of(const struct hf_job_spec *job,
                                      const char *source_id)
{
    return (struct hf_work_spec){
        .size = sizeof(struct hf_work_spec),
        .source = HF_SOURCE_MANUAL,
        .source_id = source_id,
        .kind = job->kind,
        .queue = job->queue,
        .lane_key = job->lane_key,
        .dedup_key = job->dedup_key,
        .idempotency_key = job->idempotency_key,
        .ref = job->ref,
        .parent_work_id = job->parent_work_id,
        .payload = job->payload,
        .disposition = HF_DISPOSITION_RERUNNABLE,
        .priority = job->priority,
        .max_attempts = job->max_attempts,
        .retry_policy = job->retry_policy,
        .delay_ms = job->debounce_ms ? job->debounce_ms : job->delay_ms,
        .due_at = job->at,
        .start_timeout_ms = job->start_timeout_ms,
        .exec_timeout_ms = job->exec_timeout_ms,
        .limit_key = job->limit_key,
        .rate_key = job->rate_key,
        .fair_key = job->fair_key,
        .fair_weight = job->fair_weight,
    };
}

static int check_job(const struct hf_job_spec *job, struct hf_err *err)
{
    size_t max = (size_t)HF_MAX_KEY_BYTES;
    int rc = hf_check_key(job->kind, max, "kind", err);
    if (rc == 0) /* it is the source id too, which is not a job's field */
        rc = hf_check_key_opt(job->idempotency_key, max, "idempotency_key", err);
    if (rc == 0 && (job->at < 0 || job->at > HF_TIME_MAX_MS))
        rc = hf_fail(err, HF_EINVAL, "at", "at must lie in 1970 to 9999");
    if (rc == 0 && job->at != 0 && job->delay_ms != 0)
        rc = hf_fail(err, HF_EINVAL, "at", "at and delay_ms exclude each other");
    if (rc || job->debounce_ms == 0)
        return rc;
    if (!job->dedup_key)
        return hf_fail(err, HF_EINVAL, "debounce_ms", "a debounce needs a dedup_key");
    if (job->idempotency_key)
        return hf_fail(err, HF_EINVAL, "idempotency_key",
                       "a debounced job is never the same request again");
    if (job->at != 0 || job->delay_ms != 0)
        return hf_fail(err, HF_EINVAL, job->at ? "at" : "delay_ms",
                       "the debounce says when the job is due");
    return 0;
}

int hf_job_check(const struct hf_job_spec *given, struct hf_err *err)
{
    struct hf_job_spec job;
    int rc = hf_sized_copy(given, sizeof job, sizeof job, &job, err);
    if (rc == 0)
        rc = check_job(&job, err);
    if (rc)
        return rc;
    struct hf_work_spec request = request_of(
        &job, job.idempotency_key ? job.idempotency_key : "any");
    return hf_work_spec_check(&request, err);
}

int hf_job_enqueue(struct hf_store *store, const struct hf_caller *who,
                   const struct hf_job_spec *given, struct hf_answer **ret_answer,
                   struct hf_err *err)
{
    struct hf_job_spec job;
    char nonce[HF_NONCE_TEXT];
    int rc = hf_sized_copy(given, sizeof job, sizeof job, &job, err);
    if (rc == 0)
        rc = check_job(&job, err);
    if (rc == 0 && !job.idempotency_key)
        rc = hf_nonce(store->random, nonce, err);
    if (rc)
        return rc;
    struct hf_work_spec request = request_of(
        &job, job.idempotency_key ? job.idempotency_key : nonce);
    struct hf_answer *answer = NULL, *moved = NULL;
    rc = hf_work_create(store, who, &request, 1, HF_ALL_OR_NONE, &answer, err);
    if (rc)
        return rc;
    const struct hf_item *item = hf_answer_at(answer, 0);
    bool unstarted = !item->created && item->work.attempt_count == 0;
    if (job.debounce_ms && unstarted && /* a retry keeps its own time */
        put_off(store, who, item->work.work_id, &job, &moved) == 0) {
        hf_answer_free(answer);
        answer = moved;
    }
    *ret_answer = answer;
    return 0;
}

/* ---- what a job's code may ask ------------------------------------------------------- */

const struct hf_work *hf_job_work(const struct hf_job *job)
{
    return &job->item->work;
}

const char *hf_job_token(const struct hf_job *job)
{
    return job->item->token;
}

enum hf_job_stop hf_job_stop(const struct hf_job *job)
{
    return (enum hf_job_stop)atomic_load(&job->stop);
}

enum hf_job_stop hf_job_sleep(struct hf_job *job, hf_ms ms)
{
    struct hf_pool *pool = job->pool;
    hf_ms end = pool_now(pool) + ms;
    hf_lock(&pool->lock);
    for (hf_ms left = ms; left > 0 && hf_job_stop(job) == HF_JOB_GO_ON;
         left = end - pool_now(pool))
        (void)hf_cond_wait(&pool->for_stop, &pool->lock, left);
    hf_unlock(&pool->lock);
    return hf_job_stop(job);
}

/* ---- what it may say ----------------------------------------------------------------- */

static void put_text(struct hf_job *job, char **at, const char *text)
{
    const struct hf_alloc *alloc = job->pool->store->alloc;
    char *copy = hf_text_copy(job->pool->store->alloc, text);
    alloc->free(alloc->user, *at);
    *at = copy;
}

int hf_job_fail(struct hf_job *job, const char *error_class, const char *reason)
{
    put_text(job, &job->end.error_class, error_class);
    put_text(job, &job->end.reason, reason);
    return HF_JOB_FAILED;
}

int hf_job_summary(struct hf_job *job, const char *summary, struct hf_err *err)
{
    int rc = hf_check_text(summary, (size_t)HF_MAX_SUMMARY_BYTES, "summary", err);
    if (rc)
        return rc;
    put_text(job, &job->end.summary, summary);
    return job->end.summary ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

/* Room for all of them at once: few jobs have any. */
static int keep_evidence(struct hf_job *job, const char *evidence, struct hf_err *err)
{
    const struct hf_alloc *alloc = job->pool->store->alloc;
    struct job_end *end = &job->end;
    if (!end->evidence)
        end->evidence = alloc->realloc(alloc->user, NULL,
                                       (size_t)HF_MAX_REFS * sizeof *end->evidence);
    char *copy = end->evidence ? hf_text_copy(job->pool->store->alloc, evidence) : NULL;
    if (!copy)
        return hf_fail_plain(err, HF_ENOMEM);
    end->evidence[end->evidence_count++] = copy;
    return 0;
}

static void drop_evidence(struct hf_job *job)
{
    const struct hf_alloc *alloc = job->pool->store->alloc;
    for (size_t i = 0; i < job->end.evidence_count; i++)
        alloc->free(alloc->user, job->end.evidence[i]);
    alloc->free(alloc->user, job->end.evidence);
    job->end.evidence = NULL;
    job->end.evidence_count = 0;
}

int hf_job_evidence(struct hf_job *job, const char *evidence, struct hf_err *err)
{
    struct hf_change closing = { .size = sizeof closing,
                                 .verb = HF_VERB_CLOSE_OUT,
                                 .id = job->item->work.work_id,
                                 .token = job->item->token,
                                 .status = HF_STATUS_DONE,
                                 .evidence = &evidence,
                                 .evidence_count = 1 };
    if (job->end.evidence_count == (size_t)HF_MAX_REFS)
        return hf_fail(err, HF_ETOOBIG, "evidence", "evidence: more than %lld",
                       (long long)HF_MAX_REFS);
    int rc = hf_change_check(&closing, err);
    return rc ? rc : keep_evidence(job, evidence, err);
}

void job_fini(struct hf_job *job)
{
    drop_evidence(job);
    put_text(job, &job->end.error_class, NULL);
    put_text(job, &job->end.reason, NULL);
    put_text(job, &job->end.summary, NULL);
}

/* ---- how it ended -------------------------------------------------------------------- */

/* The class by which the retry policy decides on a code that a function returned. */
static const char *class_of(int code)
{
    switch (code) {
    case HF_EINVAL:
    case HF_ETOOBIG: return "validation";
    case HF_EPOLICY: return "policy_denied";
    default: return hf_err_wire(code);
    }
}

static struct hf_change settling(const struct hf_job *job, enum hf_verb verb)
{
    return (struct hf_change){ .size = sizeof(struct hf_change),
                               .verb = verb,
                               .id = job->item->work.work_id,
                               .token = job->item->token,
                               .reason = job->end.reason };
}

struct hf_change job_change(const struct hf_job *job)
{
    struct hf_change change;
    int verdict = job->end.verdict;
    bool cancelled = hf_job_stop(job) == HF_JOB_CANCELLED;
    if (verdict == HF_JOB_DONE || (verdict == HF_JOB_STOPPED && cancelled)) {
        change = settling(job, HF_VERB_CLOSE_OUT);
        change.status = verdict == HF_JOB_DONE ? HF_STATUS_DONE : HF_STATUS_CANCELLED;
        change.summary = job->end.summary;
        change.evidence = (const char *const *)job->end.evidence;
        change.evidence_count = job->end.evidence_count;
    } else if (verdict == HF_JOB_STOPPED || verdict == HF_JOB_HAND_BACK) {
        change = settling(job, HF_VERB_HAND_BACK);
    } else {
        change = settling(job, HF_VERB_FAIL);
        change.error_class = verdict < 0 ? class_of(verdict) : job->end.error_class;
        if (!change.error_class)
            change.error_class = "failed";
    }
    return change;
}

void job_set_end(struct hf_job *job, const struct hf_job_end *end)
{
    struct hf_err why = { 0 };
    job->end.verdict = end->verdict;
    if (end->error_class)
        put_text(job, &job->end.error_class, end->error_class);
    if (end->reason)
        put_text(job, &job->end.reason, end->reason);
    if (end->summary)
        put_text(job, &job->end.summary, end->summary);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < end->evidence_count; i++)
        rc = hf_job_evidence(job, end->evidence[i], &why);
    struct hf_change change = job_change(job);
    if (rc == 0 && hf_change_check(&change, &why) == 0)
        return;
    drop_evidence(job);
    put_text(job, &job->end.summary, NULL);
    put_text(job, &job->end.error_class, "invalid_result");
    put_text(job, &job->end.reason, why.message);
    job->end.verdict = HF_JOB_FAILED;
}
