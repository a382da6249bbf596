/* Verbs without waiting: see submit.h.
 *
 * Operations queue up; each thread takes the first, and with it all others that one call can
 * carry: creates by the same caller, or changes. Items of a call are independent of each
 * other, so sharing one changes nothing but the cost. */
#include <holdfast/submit.h>

#include <string.h>

#include <holdfast/bounds.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/sized.h"
#include "base/text.h"
#include "core/ledger/step.h"
#include "os/threads.h"
#include "store/api/work.h"

#define THREADS_DEFAULT 1
#define THREADS_MAX 16
#define QUEUED_DEFAULT 65536
#define LOOK_FAR 1024 /* how deep in the queue company is looked for */

struct submitted_op {
    struct submitted_op *next;
    struct hf_operation what;
    struct hf_caller who;      /* complete */
    struct hf_renew_all renew; /* what.renew with all its fields */
    hf_done *done;
    void *user;
};

struct hf_submitter {
    struct hf_store *store;
    pthread_mutex_t lock; /* of what follows */
    struct hf_threads threads;
    pthread_t ids[THREADS_MAX];
    struct submitted_op *head;
    struct submitted_op **tail;
    size_t queued;
    size_t max_queued;
};

const struct hf_item *hf_submitted_at(const struct hf_submitted *outcome, size_t i)
{
    return i < outcome->count ? hf_answer_at(outcome->answer, outcome->first + i) : NULL;
}

/* ---- taking ---------------------------------------------------------------------------- */

static bool same_caller(const struct hf_caller *a, const struct hf_caller *b)
{
    return hf_same(a->tenant, b->tenant) && hf_same(a->actor, b->actor) &&
           hf_same(a->actor_kind, b->actor_kind) &&
           hf_same(a->correlation_id, b->correlation_id);
}

/* Whole batches and repeatable operations are alone: each is one transaction's answer. */
static bool shares(const struct submitted_op *op)
{
    return (op->what.create || op->what.change) && !op->who.operation_id &&
           !(op->what.flags & HF_ALL_OR_NONE);
}

static bool goes_with(const struct submitted_op *first, const struct submitted_op *op)
{
    return shares(op) && !first->what.create == !op->what.create &&
           first->what.flags == op->what.flags && same_caller(&first->who, &op->who);
}

static void unlink_op(struct hf_submitter *s, struct submitted_op **at)
{
    struct submitted_op *op = *at;
    *at = op->next;
    if (!op->next)
        s->tail = at;
    op->next = NULL;
    s->queued--;
}

/* The first operation and its company, as a list; NULL at the end. */
static struct submitted_op *take(struct hf_submitter *s)
{
    hf_lock(&s->lock);
    while (!s->head && !s->threads.stopping)
        (void)hf_threads_sleep(&s->threads, HF_NO_END);
    struct submitted_op *first = s->head;
    if (first)
        unlink_op(s, &s->head);
    if (first && shares(first)) {
        struct submitted_op **last = &first->next;
        size_t items = first->what.n;
        struct submitted_op **at = &s->head;
        for (int i = 0; *at && i < LOOK_FAR && items < (size_t)HF_MAX_BATCH; i++) {
            struct submitted_op *op = *at;
            if (!goes_with(first, op) || items + op->what.n > (size_t)HF_MAX_BATCH) {
                at = &op->next;
                continue;
            }
            unlink_op(s, at);
            items += op->what.n;
            *last = op;
            last = &op->next;
        }
    }
    hf_unlock(&s->lock);
    return first;
}

/* ---- doing ----------------------------------------------------------------------------- */

static void finish(struct hf_submitter *s, struct submitted_op *op,
                   const struct hf_submitted *outcome)
{
    op->done(op->user, outcome);
    s->store->alloc->free(s->store->alloc->user, op);
}

/* Every operation of the list gets its part of the answer, or the failure. */
static void finish_all(struct hf_submitter *s, struct submitted_op *ops,
                       struct hf_submitted outcome)
{
    while (ops) {
        struct submitted_op *next = ops->next;
        bool by_count = ops->what.create || ops->what.change;
        if (outcome.code == 0)
            outcome.count = by_count ? ops->what.n : hf_answer_count(outcome.answer);
        finish(s, ops, &outcome);
        outcome.first += outcome.count;
        ops = next;
    }
}

static int do_creates(struct hf_store *store, const struct submitted_op *ops,
                      size_t items, struct hf_answer *answer, struct hf_err *err)
{
    struct hf_arena arena;
    hf_arena_init(&arena, store->alloc);
    struct hf_work_spec *news = hf_arena_room(&arena, items, sizeof *news);
    size_t n = 0;
    for (const struct submitted_op *op = ops; news && op; op = op->next) {
        memcpy(news + n, op->what.create, op->what.n * sizeof *news);
        n += op->what.n;
    }
    int rc = news ? store->methods->create(store, &ops->who, news, n, ops->what.flags,
                                           answer, err)
                  : hf_fail_plain(err, HF_ENOMEM);
    hf_arena_fini(&arena);
    return rc;
}

/* Two operations may name one row, which one call may not. */
static int do_changes(struct hf_store *store, const struct submitted_op *ops,
                      size_t items, struct hf_answer *answer, struct hf_err *err)
{
    struct hf_arena arena;
    hf_arena_init(&arena, store->alloc);
    struct hf_change *changes = hf_arena_room(&arena, items, sizeof *changes);
    size_t n = 0;
    for (const struct submitted_op *op = ops; changes && op; op = op->next) {
        memcpy(changes + n, op->what.change, op->what.n * sizeof *changes);
        n += op->what.n;
    }
    int rc = changes ? 0 : hf_fail_plain(err, HF_ENOMEM);
    if (rc == 0 && ops->next)
        rc = hf_changes_check(changes, n, err);
    if (rc == 0)
        rc = store->methods->change(store, &ops->who, changes, n, ops->what.flags, answer,
                                    err);
    hf_arena_fini(&arena);
    return rc;
}

static int do_ops(struct hf_store *store, const struct submitted_op *ops,
                  struct hf_answer *answer, struct hf_err *err)
{
    size_t items = 0;
    for (const struct submitted_op *op = ops; op; op = op->next)
        items += op->what.n;
    if (ops->what.create)
        return do_creates(store, ops, items, answer, err);
    if (ops->what.change)
        return do_changes(store, ops, items, answer, err);
    if (ops->what.claim)
        return store->methods->claim(store, &ops->who, ops->what.claim, answer, err);
    return store->methods->renew_all(store, &ops->who, &ops->renew, answer, err);
}

/* Failures of the store itself, which say nothing about any one operation. */
static bool of_the_store(int code)
{
    switch (code) {
    case HF_EUNCERTAIN:
    case HF_EBUSY:
    case HF_EFULL:
    case HF_EREADONLY:
    case HF_ESTOREIO:
    case HF_ECORRUPT:
    case HF_ENOMEM: return true;
    default: return false;
    }
}

/* What refuses a call as a whole may be one operation's fault: then each is done alone. */
static void run_ops(struct hf_submitter *s, struct submitted_op *ops)
{
    struct hf_err err = { 0 };
    struct hf_submitted outcome = { .err = &err,
                                    .answer = hf_answer_new(s->store->alloc) };
    struct hf_answer *answer = (struct hf_answer *)(uintptr_t)outcome.answer;
    outcome.code = answer ? do_ops(s->store, ops, answer, &err)
                          : hf_fail_plain(&err, HF_ENOMEM);
    if (outcome.code != 0 && ops->next && !of_the_store(outcome.code)) {
        while (ops) {
            struct submitted_op *next = ops->next;
            ops->next = NULL;
            run_ops(s, ops);
            ops = next;
        }
    } else {
        finish_all(s, ops, outcome);
    }
    hf_answer_free(answer);
}

static void *thread_main(void *arg)
{
    struct hf_submitter *s = arg;
    for (struct submitted_op *ops; (ops = take(s));)
        run_ops(s, ops);
    return NULL;
}

/* ---- submitting ------------------------------------------------------------------------ */

static int check_what(struct submitted_op *op, struct hf_err *err)
{
    const struct hf_operation *what = &op->what;
    int given = !!what->create + !!what->change + !!what->claim + !!what->renew;
    if (given != 1)
        return hf_fail(err, HF_EINVAL, "operation",
                       "exactly one of create, change, claim and renew must be set");
    if (what->create)
        return hf_create_check(what->create, what->n, err);
    if (what->change)
        return hf_changes_check(what->change, what->n, err);
    if (what->renew)
        return hf_renew_all_check(what->renew, &op->renew, err);
    if (what->claim->wait_ms)
        return hf_fail(err, HF_EINVAL, "wait_ms",
                       "a submitted claim does not wait for work: wait_ms must be 0");
    return hf_claim_check(what->claim, err);
}

static int check(struct submitted_op *op, const struct hf_operation *operation,
                 struct hf_err *err)
{
    size_t size = sizeof op->what;
    int rc = hf_sized_copy(operation, size, size, &op->what, err);
    if (rc == 0)
        rc = hf_flags_check(op->what.flags, err);
    if (rc == 0)
        rc = check_what(op, err);
    bool claims = rc == 0 && op->what.claim;
    if (rc == 0)
        rc = hf_caller_complete(op->what.who, claims ? "worker" : "system",
                                claims ? op->what.claim->owner : "holdfast", &op->who,
                                err);
    return rc;
}

static int enqueue(struct hf_submitter *s, struct submitted_op *op, struct hf_err *err)
{
    int rc = 0;
    hf_lock(&s->lock);
    if (s->queued >= s->max_queued) {
        rc = hf_fail(err, HF_EBUSY, NULL, "%zu operations are waiting already",
                     s->queued);
    } else {
        *s->tail = op;
        s->tail = &op->next;
        s->queued++;
        hf_threads_wake(&s->threads);
    }
    hf_unlock(&s->lock);
    return rc;
}

int hf_submit(struct hf_submitter *submitter, const struct hf_operation *operation,
              hf_done *done, void *user, struct hf_err *err)
{
    const struct hf_alloc *alloc = submitter->store->alloc;
    if (!done)
        return hf_fail(err, HF_EINVAL, "done", "a function for the outcome is required");
    struct submitted_op *op = alloc->realloc(alloc->user, NULL, sizeof *op);
    if (!op)
        return hf_fail_plain(err, HF_ENOMEM);
    *op = (struct submitted_op){ .done = done, .user = user };
    int rc = check(op, operation, err);
    if (rc == 0)
        rc = enqueue(submitter, op, err);
    if (rc)
        alloc->free(alloc->user, op);
    return rc;
}

/* ---- opening and closing --------------------------------------------------------------- */

void hf_submitter_close(struct hf_submitter *submitter)
{
    if (!submitter)
        return;
    hf_threads_stop(&submitter->threads); /* what waits is done first */
    hf_threads_fini(&submitter->threads);
    hf_lock_fini(&submitter->lock);
    const struct hf_alloc *alloc = submitter->store->alloc;
    alloc->free(alloc->user, submitter);
}

int hf_submitter_open(struct hf_store *store, const struct hf_submitter_options *options,
                      struct hf_submitter **ret_submitter, struct hf_err *err)
{
    struct hf_submitter_options use = { .size = sizeof use };
    int rc = options ? hf_sized_copy(options, sizeof use, sizeof use, &use, err) : 0;
    if (rc)
        return rc;
    if (use.threads > THREADS_MAX)
        return hf_fail(err, HF_EINVAL, "threads", "threads must be at most %d",
                       THREADS_MAX);
    struct hf_submitter *s = store->alloc->realloc(store->alloc->user, NULL, sizeof *s);
    if (!s)
        return hf_fail_plain(err, HF_ENOMEM);
    *s = (struct hf_submitter){ .store = store, .tail = &s->head };
    s->max_queued = use.max_queued ? use.max_queued : QUEUED_DEFAULT;
    hf_lock_init(&s->lock);
    hf_threads_init(&s->threads, &s->lock, s->ids);
    size_t count = use.threads ? use.threads : THREADS_DEFAULT;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = hf_threads_start(&s->threads, thread_main, s);
    if (rc) {
        hf_submitter_close(s);
        return hf_fail(err, rc, NULL, "no thread could be started");
    }
    *ret_submitter = s;
    return 0;
}
