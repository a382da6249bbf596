/* Verbs without waiting: see submit.h.
 *
 * Operations queue up; each thread takes the first, and with it all others that one call can
 * carry: creates by the same caller, or changes. Items of a call are independent of each
 * other, so sharing one changes nothing but the cost.
 *
 * One table says for each verb how its request is checked and how it is done. A verb over sessions
 * is done by its blocking form, which checks the request again: between the two the request is
 * the caller's. */
#include <holdfast/submit.h>

#include <string.h>

#include <holdfast/bounds.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/sized.h"
#include "base/text.h"
#include "core/ledger/step.h"
#include "os/threads.h"
#include "store/api/session.h"
#include "store/api/work.h"

#define THREADS_DEFAULT 1
#define THREADS_MAX 16
#define QUEUED_DEFAULT 65536
#define LOOK_FAR 1024 /* how deep in the queue company is looked for */

struct submitted_op {
    struct submitted_op *next;
    const struct verb *verb;
    const void *request; /* the one that `what` has */
    struct hf_operation what;
    struct hf_caller who;              /* complete */
    struct hf_renew_all renew;         /* what.renew with all its fields */
    struct hf_session_release release; /* the same */
    const struct hf_alloc *alloc;
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

/* What a call returns, until the operations that share it are done. */
struct result {
    struct hf_submitted shown;
    struct hf_answer *answer;
    struct hf_session_answer *session;
    struct hf_session_stepped stepped;
    struct hf_session_committed committed;
    struct hf_err err;
};

struct verb {
    size_t request; /* where hf_operation has it */
    /* What is wrong with the request itself. */
    int (*check)(struct submitted_op *op, struct hf_err *err);
    /* Does all of a list. */
    int (*run)(struct hf_store *store, const struct submitted_op *ops,
               struct result *result, struct hf_err *err);
    bool batch; /* n items, with an answer each; others of the kind may share the call */
};

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
    return op->verb->batch && !op->who.operation_id && !(op->what.flags & HF_ALL_OR_NONE);
}

static bool goes_with(const struct submitted_op *first, const struct submitted_op *op)
{
    return shares(op) && first->verb == op->verb && first->what.flags == op->what.flags &&
           same_caller(&first->who, &op->who);
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

static void finish(struct submitted_op *op, const struct hf_submitted *outcome)
{
    op->done(op->user, outcome);
    op->alloc->free(op->alloc->user, op);
}

/* Every operation of the list gets its part of the answer, or the failure. */
static void finish_all(struct submitted_op *ops, struct hf_submitted outcome)
{
    while (ops) {
        struct submitted_op *next = ops->next;
        if (outcome.answer)
            outcome.count = ops->verb->batch ? ops->what.n
                                             : hf_answer_count(outcome.answer);
        finish(ops, &outcome);
        outcome.first += outcome.count;
        ops = next;
    }
}

static size_t items_of(const struct submitted_op *ops)
{
    size_t items = 0;
    for (; ops; ops = ops->next)
        items += ops->what.n;
    return items;
}

/* An answer for a method of the store to fill. */
static int new_answer(const struct hf_store *store, struct result *result,
                      struct hf_err *err)
{
    result->answer = hf_answer_new(store->alloc);
    return result->answer ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

static int do_creates(struct hf_store *store, const struct submitted_op *ops,
                      struct result *result, struct hf_err *err)
{
    struct hf_arena arena;
    hf_arena_init(&arena, store->alloc);
    struct hf_work_spec *news = hf_arena_room(&arena, items_of(ops), sizeof *news);
    size_t n = 0;
    for (const struct submitted_op *op = ops; news && op; op = op->next) {
        memcpy(news + n, op->what.create, op->what.n * sizeof *news);
        n += op->what.n;
    }
    int rc = news ? new_answer(store, result, err) : hf_fail_plain(err, HF_ENOMEM);
    if (rc == 0)
        rc = store->methods->create(store, &ops->who, news, n, ops->what.flags,
                                    result->answer, err);
    hf_arena_fini(&arena);
    return rc;
}

/* Two operations may name one row, which one call may not. */
static int do_changes(struct hf_store *store, const struct submitted_op *ops,
                      struct result *result, struct hf_err *err)
{
    struct hf_arena arena;
    hf_arena_init(&arena, store->alloc);
    struct hf_change *changes = hf_arena_room(&arena, items_of(ops), sizeof *changes);
    size_t n = 0;
    for (const struct submitted_op *op = ops; changes && op; op = op->next) {
        memcpy(changes + n, op->what.change, op->what.n * sizeof *changes);
        n += op->what.n;
    }
    int rc = changes ? new_answer(store, result, err) : hf_fail_plain(err, HF_ENOMEM);
    if (rc == 0 && ops->next)
        rc = hf_changes_check(changes, n, err);
    if (rc == 0)
        rc = store->methods->change(store, &ops->who, changes, n, ops->what.flags,
                                    result->answer, err);
    hf_arena_fini(&arena);
    return rc;
}

static int do_claim(struct hf_store *store, const struct submitted_op *op,
                    struct result *result, struct hf_err *err)
{
    int rc = new_answer(store, result, err);
    return rc ? rc
              : store->methods->claim(store, &op->who, op->request, result->answer, err);
}

static int do_renew(struct hf_store *store, const struct submitted_op *op,
                    struct result *result, struct hf_err *err)
{
    int rc = new_answer(store, result, err);
    return rc ? rc
              : store->methods->renew_all(store, &op->who, &op->renew, result->answer,
                                          err);
}

static int do_session_create(struct hf_store *store, const struct submitted_op *op,
                             struct result *result, struct hf_err *err)
{
    return hf_session_create(store, op->what.who, op->request, &result->session, err);
}

static int do_session_send(struct hf_store *store, const struct submitted_op *op,
                           struct result *result, struct hf_err *err)
{
    return hf_session_send(store, op->what.who, op->request, &result->answer, err);
}

static int do_session_claim(struct hf_store *store, const struct submitted_op *op,
                            struct result *result, struct hf_err *err)
{
    return hf_session_claim(store, op->what.who, op->request, &result->session, err);
}

static int do_session_step(struct hf_store *store, const struct submitted_op *op,
                           struct result *result, struct hf_err *err)
{
    result->shown.stepped = &result->stepped;
    return hf_session_step(store, op->what.who, op->request, &result->stepped, err);
}

static int do_session_commit(struct hf_store *store, const struct submitted_op *op,
                             struct result *result, struct hf_err *err)
{
    result->shown.committed = &result->committed;
    return hf_session_commit(store, op->what.who, op->request, &result->committed, err);
}

static int do_session_renew_all(struct hf_store *store, const struct submitted_op *op,
                                struct result *result, struct hf_err *err)
{
    (void)result; /* the answers are in the renewals */
    return hf_session_renew_all(store, op->what.session_renew_all, op->what.n, err);
}

static int do_session_release(struct hf_store *store, const struct submitted_op *op,
                              struct result *result, struct hf_err *err)
{
    (void)result; /* it has no answer */
    return hf_session_release(store, op->what.who, op->release.session_id,
                              op->release.token, err);
}

static int do_session_hand_back(struct hf_store *store, const struct submitted_op *op,
                                struct result *result, struct hf_err *err)
{
    (void)result; /* it has no answer */
    return hf_session_hand_back(store, op->what.who, op->request, err);
}

static int do_session_head(struct hf_store *store, const struct submitted_op *op,
                           struct result *result, struct hf_err *err)
{
    return hf_session_head(store, op->request, &result->session, err);
}

static int do_session_load(struct hf_store *store, const struct submitted_op *op,
                           struct result *result, struct hf_err *err)
{
    return hf_session_load(store, op->request, &result->session, err);
}

static int do_session_list(struct hf_store *store, const struct submitted_op *op,
                           struct result *result, struct hf_err *err)
{
    return hf_session_list(store, op->what.who, op->request, &result->session, err);
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
    struct result result = { .answer = NULL };
    int rc = ops->verb->run(s->store, ops, &result, &result.err);
    result.shown.answer = result.answer;
    result.shown.session = result.session;
    if (rc)
        result.shown = (struct hf_submitted){ .code = rc, .err = &result.err };
    if (rc && ops->next && !of_the_store(rc)) {
        while (ops) {
            struct submitted_op *next = ops->next;
            ops->next = NULL;
            run_ops(s, ops);
            ops = next;
        }
    } else {
        finish_all(ops, result.shown);
    }
    hf_answer_free(result.answer);
    hf_session_answer_free(result.session);
}

static void *thread_main(void *arg)
{
    struct hf_submitter *s = arg;
    for (struct submitted_op *ops; (ops = take(s));)
        run_ops(s, ops);
    return NULL;
}

/* ---- submitting ------------------------------------------------------------------------ */

static int no_wait(hf_ms wait_ms, struct hf_err *err)
{
    return wait_ms ? hf_fail(err, HF_EINVAL, "wait_ms",
                             "a submitted claim does not wait: wait_ms must be 0")
                   : 0;
}

static int check_creates(struct submitted_op *op, struct hf_err *err)
{
    return hf_create_check(op->request, op->what.n, err);
}

static int check_changes(struct submitted_op *op, struct hf_err *err)
{
    return hf_changes_check(op->request, op->what.n, err);
}

static int check_claim(struct submitted_op *op, struct hf_err *err)
{
    int rc = no_wait(op->what.claim->wait_ms, err);
    return rc ? rc : hf_claim_check(op->request, err);
}

static int check_renew(struct submitted_op *op, struct hf_err *err)
{
    return hf_renew_all_check(op->request, &op->renew, err);
}

static int check_session_create(struct submitted_op *op, struct hf_err *err)
{
    struct hf_session_spec request;
    struct hf_arena arena;
    hf_arena_init(&arena, op->alloc);
    int rc = hf_session_create_check(&arena, op->request, &request, err);
    hf_arena_fini(&arena);
    return rc;
}

static int check_session_send(struct submitted_op *op, struct hf_err *err)
{
    struct hf_session_send request;
    struct hf_arena arena;
    hf_arena_init(&arena, op->alloc);
    int rc = hf_session_send_check(&arena, op->request, &request, err);
    hf_arena_fini(&arena);
    return rc;
}

static int check_session_claim(struct submitted_op *op, struct hf_err *err)
{
    struct hf_session_claim claim;
    int rc = hf_session_claim_check(op->request, &claim, err);
    return rc ? rc : no_wait(claim.wait_ms, err);
}

static int check_session_step(struct submitted_op *op, struct hf_err *err)
{
    struct hf_session_step step;
    return hf_session_step_check(op->request, &step, err);
}

static int check_session_commit(struct submitted_op *op, struct hf_err *err)
{
    struct hf_session_commit commit;
    struct hf_arena arena;
    hf_arena_init(&arena, op->alloc);
    int rc = hf_session_commit_check(&arena, op->request, &commit, err);
    hf_arena_fini(&arena);
    return rc;
}

static int check_session_renew_all(struct submitted_op *op, struct hf_err *err)
{
    return hf_session_renewals_check(op->request, op->what.n, err);
}

static int check_session_release(struct submitted_op *op, struct hf_err *err)
{
    size_t size = sizeof op->release;
    int rc = hf_sized_copy(op->request, size, size, &op->release, err);
    return rc ? rc : hf_session_id_check(op->release.session_id, err);
}

static int check_session_hand_back(struct submitted_op *op, struct hf_err *err)
{
    struct hf_session_back back;
    return hf_session_back_check(op->request, &back, err);
}

static int check_session_head(struct submitted_op *op, struct hf_err *err)
{
    return hf_session_id_check(op->request, err);
}

static int check_session_load(struct submitted_op *op, struct hf_err *err)
{
    struct hf_session_load request;
    return hf_session_load_check(op->request, &request, err);
}

static int check_session_list(struct submitted_op *op, struct hf_err *err)
{
    struct hf_session_filter filter;
    return hf_session_filter_check(op->request, &filter, err);
}

#define AT(name) offsetof(struct hf_operation, name)
static const struct verb verbs[] = {
    { AT(create), check_creates, do_creates, true },
    { AT(change), check_changes, do_changes, true },
    { AT(claim), check_claim, do_claim, false },
    { AT(renew), check_renew, do_renew, false },
    { AT(session_create), check_session_create, do_session_create, false },
    { AT(session_send), check_session_send, do_session_send, false },
    { AT(session_claim), check_session_claim, do_session_claim, false },
    { AT(session_step), check_session_step, do_session_step, false },
    { AT(session_commit), check_session_commit, do_session_commit, false },
    { AT(session_renew_all), check_session_renew_all, do_session_renew_all, false },
    { AT(session_release), check_session_release, do_session_release, false },
    { AT(session_hand_back), check_session_hand_back, do_session_hand_back, false },
    { AT(session_head), check_session_head, do_session_head, false },
    { AT(session_load), check_session_load, do_session_load, false },
    { AT(session_list), check_session_list, do_session_list, false },
};
#undef AT

/* The one verb whose request is given. */
static int find_verb(struct submitted_op *op, struct hf_err *err)
{
    int given = 0;
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        const void *request;
        memcpy(&request, (const char *)&op->what + verbs[i].request, sizeof request);
        if (!request)
            continue;
        given++;
        op->verb = &verbs[i];
        op->request = request;
    }
    return given == 1 ? 0
                      : hf_fail(err, HF_EINVAL, "operation",
                                "the request of exactly one verb must be set");
}

static int check(struct submitted_op *op, const struct hf_operation *operation,
                 struct hf_err *err)
{
    int rc = hf_sized_copy(operation, offsetof(struct hf_operation, session_create),
                           sizeof op->what, &op->what, err);
    if (rc == 0)
        rc = hf_flags_check(op->what.flags, err);
    if (rc == 0)
        rc = find_verb(op, err);
    if (rc == 0)
        rc = op->verb->check(op, err);
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
    *op = (struct submitted_op){ .alloc = alloc, .done = done, .user = user };
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
