/* A run's grip on its unit: renewing the lease, and learning what became of it.
 *
 * The command may settle its unit itself, let it wait, or resume it under a token of its
 * own. Whatever the row says, the number of the attempt tells whose doing it was: it rises
 * at every claim and resume and belongs to one of them. */
#include "run/command/execute.h"

#include "base/text.h"

/* Has our token settled the unit this way? A repeat is answered, and writes nothing. */
static bool settled_as(const struct hf_run *run, enum hf_verb verb, enum hf_status status)
{
    struct hf_change change = { .size = sizeof change,
                                .verb = verb,
                                .id = run->work_id,
                                .token = run->token,
                                .status = status };
    struct hf_answer *answer = NULL;
    struct hf_err ignored;
    if (verb == HF_VERB_FAIL)
        change.error_class = "repeat";
    int rc = hf_work_change(run->store, &run->who, &change, 1, 0, &answer, &ignored);
    bool repeated = rc == 0 && hf_answer_at(answer, 0)->code == 0 &&
                    hf_answer_at(answer, 0)->repeated;
    hf_answer_free(answer);
    return repeated;
}

/* A row of our attempt that runs no more: by the command's own word, or over its head? */
static bool by_the_command(const struct hf_run *run, enum hf_status status)
{
    switch (status) {
    case HF_STATUS_DONE: return true; /* only a holder says so */
    case HF_STATUS_FAILED:
        return settled_as(run, HF_VERB_CLOSE_OUT, HF_STATUS_FAILED) ||
               settled_as(run, HF_VERB_FAIL, HF_STATUS_NONE);
    case HF_STATUS_TIMEOUT:
    case HF_STATUS_CANCELLED: return settled_as(run, HF_VERB_CLOSE_OUT, status);
    case HF_STATUS_RETRY_SCHEDULED: return settled_as(run, HF_VERB_FAIL, HF_STATUS_NONE);
    case HF_STATUS_QUEUED: return settled_as(run, HF_VERB_HAND_BACK, HF_STATUS_NONE);
    case HF_STATUS_ABANDONED: return settled_as(run, HF_VERB_ABANDON, HF_STATUS_NONE);
    case HF_STATUS_NONE:
    case HF_STATUS_RUNNING:
    case HF_STATUS_WAITING_USER:
    case HF_STATUS_WAITING_EXTERNAL:
    case HF_STATUS_COUNT: break;
    }
    return false;
}

static struct hf_seen seen_of(const struct hf_run *run, const struct hf_work *work,
                              int64_t attempt)
{
    enum hf_status status = hf_status_of(work->status);
    struct hf_seen seen = {
        .told = true,
        .ours = status == HF_STATUS_RUNNING && hf_same(work->owner, run->owner) &&
                hf_same(work->owner_incarnation, run->incarnation),
        .cancel = work->cancel_request != NULL,
        .status = status,
        .attempt = work->attempt_count,
        .next_retry_at = work->next_retry_at,
    };
    seen.itself = !seen.ours && seen.attempt == attempt && by_the_command(run, status);
    return seen;
}

/* A store that does not answer tells nothing; the lease is what it was. */
struct hf_seen hf_run_seen(const struct hf_run *run, int64_t attempt)
{
    struct hf_seen seen = { 0 };
    struct hf_answer *answer = NULL;
    struct hf_err ignored;
    int rc = hf_work_get(run->store, &run->who, run->work_id, &answer, &ignored);
    if (rc == 0)
        seen = seen_of(run, &hf_answer_at(answer, 0)->work, attempt);
    seen.told = seen.told || rc == HF_ENOTFOUND;
    seen.gone = rc == HF_ENOTFOUND;
    hf_answer_free(answer);
    return seen;
}

/* By owner and not by token: the command may have resumed the unit under a new one. */
struct hf_seen hf_run_renew(const struct hf_run *run, int64_t attempt)
{
    struct hf_renew_all wanted = { .size = sizeof wanted,
                                   .owner = run->owner,
                                   .incarnation = run->incarnation };
    struct hf_answer *renewed = NULL;
    struct hf_err ignored;
    if (hf_work_renew_all(run->store, &run->who, &wanted, &renewed, &ignored))
        return (struct hf_seen){ 0 }; /* tried again well before the term is over */
    bool found = false;
    for (size_t i = 0; !found && i < hf_answer_count(renewed); i++)
        found = hf_same(hf_answer_at(renewed, i)->work.work_id, run->work_id);
    hf_answer_free(renewed);
    return found ? (struct hf_seen){ 0 } : hf_run_seen(run, attempt);
}

static enum hf_grip grip_of(struct hf_run *run, const struct hf_seen *seen)
{
    if (seen->ours) {
        run->grip_attempt = seen->attempt; /* it may have resumed itself */
        if (seen->cancel && !run->exited &&
            run->result.stop ==
                HF_RUN_GOES_ON) /* once: asked twice, it would be killed */
            hf_run_stop(run, HF_RUN_CANCEL);
        return HF_GRIP_HOLDS;
    }
    if (seen->attempt != run->grip_attempt)
        return HF_GRIP_LOST;
    if (seen->status == HF_STATUS_WAITING_USER ||
        seen->status == HF_STATUS_WAITING_EXTERNAL)
        return HF_GRIP_WAITS;
    return seen->itself ? HF_GRIP_SETTLED : HF_GRIP_LOST;
}

void hf_run_judge(struct hf_run *run, const struct hf_seen *seen)
{
    if (!seen->told)
        return;
    if (seen->gone) {
        run->grip = HF_GRIP_LOST;
        return;
    }
    run->result.status = hf_status_word(seen->status);
    run->result.next_retry_at = seen->next_retry_at;
    run->grip = grip_of(run, seen);
}

void hf_run_look(struct hf_run *run)
{
    struct hf_seen seen = hf_run_seen(run, run->grip_attempt);
    hf_run_judge(run, &seen);
}
