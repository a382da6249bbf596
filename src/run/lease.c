/* A run's grip on its unit: renewing the lease, and learning what became of it.
 *
 * The command may settle its unit itself, let it wait, or resume it under a token of its
 * own. Whatever the row says, the number of the attempt tells whose doing it was: it rises
 * at every claim and resume and belongs to one of them. */
#include "run/execute.h"

#include "base/text.h"

/* Has our token settled the unit this way? A repeat is answered, and writes nothing. */
static bool settled_as(struct hf_run *run, enum hf_verb verb, enum hf_status status)
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
static bool by_the_command(struct hf_run *run, enum hf_status status)
{
    switch (status) {
    case HF_DONE: return true; /* only a holder says so */
    case HF_FAILED:
        return settled_as(run, HF_VERB_CLOSE_OUT, HF_FAILED) ||
               settled_as(run, HF_VERB_FAIL, HF_STATUS_NONE);
    case HF_TIMEOUT:
    case HF_CANCELLED: return settled_as(run, HF_VERB_CLOSE_OUT, status);
    case HF_RETRY_SCHEDULED: return settled_as(run, HF_VERB_FAIL, HF_STATUS_NONE);
    case HF_QUEUED: return settled_as(run, HF_VERB_HAND_BACK, HF_STATUS_NONE);
    case HF_ABANDONED: return settled_as(run, HF_VERB_ABANDON, HF_STATUS_NONE);
    case HF_STATUS_NONE:
    case HF_RUNNING:
    case HF_WAITING_USER:
    case HF_WAITING_EXTERNAL:
    case HF_STATUS_COUNT: break;
    }
    return false;
}

static enum hf_grip judge(struct hf_run *run, const struct hf_work *work)
{
    enum hf_status status = hf_status_of(work->status);
    bool ours = hf_same(work->owner, run->owner) &&
                hf_same(work->owner_incarnation, run->incarnation);
    run->result.status = hf_status_word(status);
    run->result.next_retry_at = work->next_retry_at;
    if (status == HF_RUNNING && ours) {
        run->grip_attempt = work->attempt_count; /* it may have resumed itself */
        if (work->cancel_request && !run->exited &&
            run->result.stop ==
                HF_RUN_GOES_ON) /* once: asked twice, it would be killed */
            hf_run_stop(run, HF_RUN_CANCEL);
        return HF_GRIP_HOLDS;
    }
    if (work->attempt_count != run->grip_attempt)
        return HF_GRIP_LOST;
    if (status == HF_WAITING_USER || status == HF_WAITING_EXTERNAL)
        return HF_GRIP_WAITS;
    return by_the_command(run, status) ? HF_GRIP_SETTLED : HF_GRIP_LOST;
}

/* A store that does not answer tells nothing; the lease is what it was. */
void hf_run_look(struct hf_run *run)
{
    struct hf_answer *answer = NULL;
    struct hf_err ignored;
    int rc = hf_work_get(run->store, &run->who, run->work_id, &answer, &ignored);
    if (rc == HF_ENOTFOUND)
        run->grip = HF_GRIP_LOST;
    if (rc)
        return;
    run->grip = judge(run, &hf_answer_at(answer, 0)->work);
    hf_answer_free(answer);
}

/* By owner and not by token: the command may have resumed the unit under a new one. */
static void renew(struct hf_run *run)
{
    struct hf_renew_all wanted = { .size = sizeof wanted,
                                   .owner = run->owner,
                                   .incarnation = run->incarnation };
    struct hf_answer *renewed = NULL;
    struct hf_err ignored;
    if (hf_work_renew_all(run->store, &run->who, &wanted, &renewed, &ignored))
        return; /* tried again well before the term is over */
    bool found = false;
    for (size_t i = 0; !found && i < hf_answer_count(renewed); i++)
        found = hf_same(hf_answer_at(renewed, i)->work.work_id, run->work_id);
    hf_answer_free(renewed);
    if (!found)
        hf_run_look(run);
}

void hf_run_tend(struct hf_run *run, hf_ms now)
{
    if (run->grip == HF_GRIP_LOST || run->grip == HF_GRIP_SETTLED)
        return;
    if (now >= run->look_at) {
        run->look_at = now + HF_RUN_LOOK_MS;
        hf_run_look(run);
    }
    if (run->grip == HF_GRIP_HOLDS && now >= run->renew_at) {
        run->renew_at = now + run->ttl_ms / 3;
        renew(run);
    }
}
