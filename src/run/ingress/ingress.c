/* Accepting requests without waiting for the ledger.
 *
 * There are two outlets, each a thread with a queue: one writes requests into the ledger, one into
 * the spool. A caller passes its request to the first and waits for half of its budget, then to
 * the second and waits for the rest. Only an outlet's thread can hang: while the ledger's has been
 * busy for longer than a caller would wait, requests go straight to the spool.
 *
 * A request is passed on as its spool line, so the ledger and the spool get the same bytes. All
 * changing state is under one lock; an outlet holds no lock while it works. Handle, outlets and
 * callers share the memory: the last of them to release it frees it. */
#include <holdfast/ingress.h>

#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/sized.h"
#include "base/text.h"
#include "core/ledger/step.h"
#include "os/threads.h"
#include "run/ingress/spool.h"
#include "run/ingress/spool_line.h"

#define BUDGET_MS 50
#define LEAST_BUDGET_MS 2
#define QUEUE_MAX 1024
#define REST_MS 100 /* after the ledger could not be opened; doubled each time */
#define REST_MAX_MS 5000

enum outlet_name { LEDGER, SPOOL, OUTLETS };

struct outcome {
    bool done;
    int rc;
    struct hf_err err;
};

struct request {
    struct request *next; /* in an outlet's queue */
    enum outlet_name queued_at;
    bool queued;
    int refs; /* the caller, and each outlet that has it */
    struct hf_span line;
    struct outcome outcomes[OUTLETS];
    struct hf_answer *answer;
    bool resumed; /* and is that of the unit that waited for it */
    bool begun;   /* the ledger has begun with it, and may still take it */
};

struct outlet {
    bool made; /* `thread` is to be joined, or detached */
    bool started;
    pthread_t thread;
    struct request *first;
    struct request *last;
    size_t count;
    hf_ms busy_since; /* 0: idle */
    pthread_cond_t wake;
};

struct hf_ingress {
    const struct hf_alloc *alloc;
    char *url;
    char *spool_path;
    struct hf_store_options store_options;
    int64_t spool_bytes;
    hf_ms budget_ms;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t done;
    bool closing;
    int refs; /* the handle, and each thread */
    struct outlet outlets[OUTLETS];
    hf_ms ledger_rests_until;
    struct hf_err ledger_fault; /* the last one, for those who are not even queued */
    /* of the ledger's thread alone */
    struct hf_store *store;
    hf_ms rest_ms;
};

static hf_ms now_ms(void)
{
    const struct hf_clock *clock = hf_clock_system();
    return clock->mono_ms(clock->user);
}

/* ---- memory -------------------------------------------------------------------------- */

static void *take(const struct hf_alloc *alloc, size_t bytes)
{
    void *at = alloc->realloc(alloc->user, NULL, bytes);
    if (at)
        memset(at, 0, bytes);
    return at;
}

/* Under the lock. */
static void let_go(struct hf_ingress *in, struct request *request)
{
    if (--request->refs)
        return;
    hf_answer_free(request->answer);
    in->alloc->free(in->alloc->user, (void *)(uintptr_t)request->line.at);
    in->alloc->free(in->alloc->user, request);
}

static void free_ingress(struct hf_ingress *in)
{
    const struct hf_alloc *alloc = in->alloc;
    hf_store_close(in->store);
    for (size_t i = 0; i < OUTLETS; i++)
        hf_cond_fini(&in->outlets[i].wake);
    hf_cond_fini(&in->done);
    hf_lock_fini(&in->lock);
    alloc->free(alloc->user, in->url);
    alloc->free(alloc->user, in->spool_path);
    alloc->free(alloc->user, in);
}

/* ---- queues, under the lock ---------------------------------------------------------- */

static void enqueue(struct hf_ingress *in, enum outlet_name name, struct request *request)
{
    struct outlet *outlet = &in->outlets[name];
    request->next = NULL;
    request->queued_at = name;
    request->queued = true;
    request->refs++;
    if (outlet->last)
        outlet->last->next = request;
    else
        outlet->first = request;
    outlet->last = request;
    outlet->count++;
    (void)pthread_cond_signal(&outlet->wake); /* cannot fail on one that was made */
}

static struct request *dequeue(struct outlet *outlet)
{
    struct request *request = outlet->first;
    outlet->first = request->next;
    if (!outlet->first)
        outlet->last = NULL;
    outlet->count--;
    request->queued = false;
    return request;
}

/* Takes a request back that its outlet has not begun with. False: it has. */
static bool withdraw(struct hf_ingress *in, struct request *request)
{
    struct outlet *outlet = &in->outlets[request->queued_at];
    struct request **at = &outlet->first, *before = NULL;
    if (!request->queued)
        return false;
    while (*at != request) {
        before = *at;
        at = &(*at)->next;
    }
    *at = request->next;
    if (outlet->last == request)
        outlet->last = before;
    outlet->count--;
    request->queued = false;
    let_go(in, request);
    return true;
}

/* ---- the work of the outlets, without the lock ----------------------------------------- */

static int open_ledger(struct hf_ingress *in, struct hf_err *err)
{
    struct hf_store_options options = in->store_options;
    if (in->store)
        return 0;
    int rc = hf_store_open(in->url, &options, &in->store, err);
    if (rc == 0) {
        in->rest_ms = 0;
        return 0;
    }
    in->rest_ms = in->rest_ms ? 2 * in->rest_ms : REST_MS;
    if (in->rest_ms > REST_MAX_MS)
        in->rest_ms = REST_MAX_MS;
    return rc;
}

/* Whether the request is at fault, so that no spool would help. */
static bool is_refusal(int rc)
{
    return rc == HF_EINVAL || rc == HF_ETOOBIG || rc == HF_ENOTFOUND ||
           rc == HF_ECONFLICT || rc == HF_EPOLICY || rc == HF_ETRANSITION;
}

static int put_into_ledger(struct hf_ingress *in, struct hf_span text,
                           struct hf_answer **ret_answer, bool *ret_resumed,
                           struct hf_err *err)
{
    struct hf_arena arena;
    struct hf_spool_line line;
    int rc = open_ledger(in, err);
    if (rc) /* its address may be wrong: that is no fault of the request */
        return is_refusal(rc) ? hf_fail(err, HF_EUNREACHABLE, "url", "%s", err->message)
                              : rc;
    hf_arena_init(&arena, in->alloc);
    rc = hf_spool_decode((struct hf_span){ text.at, text.len - 1 }, &arena, &line, err);
    if (rc == 0)
        rc = hf_work_deliver(in->store, &line.who, &line.request, ret_answer, ret_resumed,
                             err);
    hf_arena_fini(&arena);
    if (rc && !is_refusal(rc) && rc != HF_EBUSY) {
        hf_store_close(in->store); /* it may be another one by now */
        in->store = NULL;
    }
    return rc;
}

static int put_into_spool(const struct hf_ingress *in, struct hf_span line,
                          struct hf_err *err)
{
    struct hf_spool spool = { .size = sizeof(spool),
                              .path = in->spool_path,
                              .bytes_max = in->spool_bytes,
                              .wait_ms = in->budget_ms };
    return hf_spool_write(&spool, line, err);
}

/* ---- the outlets ------------------------------------------------------------------------ */

/* One request, taken under the lock and worked on without it. */
static void work_on(struct hf_ingress *in, enum outlet_name name)
{
    struct outlet *outlet = &in->outlets[name];
    struct request *request = dequeue(outlet);
    struct outcome out = { .done = true };
    struct hf_answer *answer = NULL;
    bool resumed = false;
    outlet->busy_since = now_ms();
    hf_unlock(&in->lock);
    out.rc = name == LEDGER
                 ? put_into_ledger(in, request->line, &answer, &resumed, &out.err)
                 : put_into_spool(in, request->line, &out.err);
    hf_lock(&in->lock);
    outlet->busy_since = 0;
    if (name == LEDGER) {
        in->ledger_rests_until = in->rest_ms ? now_ms() + in->rest_ms : 0;
        if (out.rc)
            in->ledger_fault = out.err;
    }
    request->outcomes[name] = out;
    if (answer) {
        request->answer = answer;
        request->resumed = resumed;
    }
    let_go(in, request);
    (void)pthread_cond_broadcast(&in->done);
}

static void run_outlet(struct hf_ingress *in, enum outlet_name name)
{
    struct outlet *outlet = &in->outlets[name];
    hf_lock(&in->lock);
    for (;;) {
        while (!outlet->first && !in->closing)
            (void)hf_cond_wait(&outlet->wake, &in->lock, HF_NO_END);
        if (!outlet->first)
            break; /* what was queued is done before the end */
        work_on(in, name);
    }
    bool last = --in->refs == 0;
    outlet->started = false;
    (void)pthread_cond_broadcast(&in->done);
    hf_unlock(&in->lock);
    if (last)
        free_ingress(in);
}

static void *ledger_thread(void *in)
{
    run_outlet(in, LEDGER);
    return NULL;
}

static void *spool_thread(void *in)
{
    run_outlet(in, SPOOL);
    return NULL;
}

/* Under the lock. Threads are made by the first request that needs them. */
static int start(struct hf_ingress *in, enum outlet_name name, struct hf_err *err)
{
    static void *(*const bodies[])(void *) = { ledger_thread, spool_thread };
    struct outlet *outlet = &in->outlets[name];
    if (outlet->started)
        return 0;
    if (pthread_create(&outlet->thread, NULL, bodies[name], in) != 0)
        return hf_fail(err, HF_ENOMEM, NULL, "no thread can be started");
    outlet->made = outlet->started = true;
    in->refs++;
    return 0;
}

/* ---- waiting, under the lock ----------------------------------------------------------- */

/* Waits until `until` for news. False when the time is up. */
static bool wait_until(struct hf_ingress *in, hf_ms until)
{
    return hf_cond_wait(&in->done, &in->lock, until - now_ms());
}

static void wait_for(struct hf_ingress *in, const struct outcome *out, hf_ms until)
{
    while (!out->done && wait_until(in, until))
        ;
}

/* ---- one request ------------------------------------------------------------------------ */

/* Whether the ledger is worth a wait: not while it rests, or hangs. */
static bool ledger_answers(const struct hf_ingress *in, hf_ms now, hf_ms share)
{
    const struct outlet *outlet = &in->outlets[LEDGER];
    bool hangs = outlet->busy_since && now - outlet->busy_since >= share;
    return now >= in->ledger_rests_until && !hangs && outlet->count < QUEUE_MAX;
}

static void try_ledger(struct hf_ingress *in, struct request *request, hf_ms until)
{
    struct outcome *out = &request->outcomes[LEDGER];
    hf_ms now = now_ms();
    int rc = ledger_answers(in, now, until - now) ? start(in, LEDGER, &out->err)
                                                  : HF_EUNREACHABLE;
    if (rc == 0) {
        enqueue(in, LEDGER, request);
        wait_for(in, out, until);
        request->begun = !withdraw(in, request);
    } else if (rc == HF_EUNREACHABLE && in->ledger_fault.code) {
        out->err = in->ledger_fault;
    }
    if (!out->done && !out->err.code)
        (void)hf_fail(&out->err, HF_EBUSY, NULL, "the ledger does not answer in time");
}

/* Neither took it: the reasons of both, the spool's code. */
static int neither(const struct request *request, struct hf_err *err)
{
    const struct outcome *spool = &request->outcomes[SPOOL];
    const char *why = request->outcomes[LEDGER].err.message;
    if (spool->done)
        return hf_fail(err, spool->rc, spool->err.field, "%.110s; and the ledger: %.110s",
                       spool->err.message, why);
    return hf_fail(err, HF_EUNCERTAIN, "spool",
                   "the spool does not answer in time, and keeps trying; and the "
                   "ledger: %.110s",
                   why);
}

static int try_spool(struct hf_ingress *in, struct request *request, hf_ms until,
                     struct hf_err *err)
{
    struct outcome *out = &request->outcomes[SPOOL];
    if (!in->spool_path) {
        const struct hf_err *why = &request->outcomes[LEDGER].err;
        return hf_fail(err, why->code, why->field, "%s", why->message);
    }
    int rc = start(in, SPOOL, err);
    if (rc)
        return rc;
    if (in->outlets[SPOOL].count >= QUEUE_MAX)
        return hf_fail(err, HF_EBUSY, "spool", "too many requests wait for the spool");
    enqueue(in, SPOOL, request);
    wait_for(in, out, until);
    return out->done && out->rc == 0 ? 0 : neither(request, err);
}

/* Whether the ledger has said yes or no; then *ret_rc is the answer to the caller. */
static bool ledger_said(struct request *request, struct hf_ingress_result *ret_result,
                        int *ret_rc, struct hf_err *err)
{
    const struct outcome *ledger = &request->outcomes[LEDGER];
    if (!ledger->done || (ledger->rc && !is_refusal(ledger->rc)))
        return false;
    *ret_rc = ledger->rc;
    if (ledger->rc) {
        (void)hf_fail(err, ledger->rc, ledger->err.field, "%s", ledger->err.message);
        return true;
    }
    *ret_result = (struct hf_ingress_result){ .place = HF_INGRESS_LEDGER,
                                              .answer = request->answer,
                                              .resumed = request->resumed };
    request->answer = NULL;
    return true;
}

/* The spool did not take it, and `rc` says why: the message adds what is not known about the
 * ledger. */
static int without_spool(struct request *request, int rc, struct hf_err *err)
{
    const struct outcome *ledger = &request->outcomes[LEDGER];
    bool open = ledger->done ? ledger->rc == HF_EUNCERTAIN : request->begun;
    struct hf_err why = *err;
    if (!open || rc == HF_EUNCERTAIN)
        return rc;
    return hf_fail(err, HF_EUNCERTAIN, why.field, "%.190s; it may have it all the same",
                   why.message);
}

static int hand_over(struct hf_ingress *in, struct request *request,
                     struct hf_ingress_result *ret_result, struct hf_err *err)
{
    hf_ms begun = now_ms();
    int rc = 0;
    try_ledger(in, request, begun + in->budget_ms / 2);
    if (ledger_said(request, ret_result, &rc, err))
        return rc;
    struct hf_err why = request->outcomes[LEDGER].err;
    int spooled = try_spool(in, request, begun + in->budget_ms, err);
    if (spooled == 0) {
        *ret_result = (struct hf_ingress_result){ .place = HF_INGRESS_SPOOL, .why = why };
        return 0;
    }
    if (request->begun) /* the rest of the time is the ledger's */
        wait_for(in, &request->outcomes[LEDGER], begun + in->budget_ms);
    return ledger_said(request, ret_result, &rc, err)
               ? rc
               : without_spool(request, spooled, err);
}

static struct request *new_request(const struct hf_ingress *in,
                                   const struct hf_caller *who,
                                   const struct hf_work_spec *news, struct hf_err *err)
{
    const struct hf_clock *clock = hf_clock_system();
    struct hf_buf line;
    struct request *request = take(in->alloc, sizeof(*request));
    hf_buf_init(&line, in->alloc, (size_t)HF_MAX_SPOOL_LINE_BYTES);
    hf_spool_encode(who, news, clock->wall_ms(clock->user), &line);
    char *text = hf_buf_state(&line) ? NULL : hf_text_copy(in->alloc, hf_buf_str(&line));
    if (!request || !text) {
        int rc = hf_buf_state(&line) ? hf_buf_state(&line) : HF_ENOMEM;
        (void)hf_fail_plain(err, rc); /* NULL says so */
        in->alloc->free(in->alloc->user, request);
        in->alloc->free(in->alloc->user, text);
        request = NULL;
    } else {
        request->refs = 1;
        request->line = (struct hf_span){ text, line.len };
    }
    hf_buf_fini(&line);
    return request;
}

int hf_ingress_put(struct hf_ingress *in, const struct hf_caller *who,
                   const struct hf_work_spec *news, struct hf_ingress_result *ret_result,
                   struct hf_err *err)
{
    struct hf_err why = { 0 };
    int rc = hf_caller_check(who, err);
    if (rc == 0)
        rc = hf_work_spec_check(news, err);
    if (rc)
        return rc;
    struct request *request = new_request(in, who, news, &why);
    if (!request)
        return hf_fail_as(err, why.code, &why);
    hf_lock(&in->lock);
    rc = hand_over(in, request, ret_result, &why);
    let_go(in, request);
    hf_unlock(&in->lock);
    return hf_fail_as(err, rc, &why);
}

/* ---- opening and closing ------------------------------------------------------------------ */

static int check_options(const struct hf_ingress_options *options, struct hf_err *err)
{
    if (!options->url || !*options->url)
        return hf_fail(err, HF_EINVAL, "url", "an ingress needs the ledger's address");
    if (options->spool && !*options->spool)
        return hf_fail(err, HF_EINVAL, "spool", "the spool's path is empty");
    if (options->spool_bytes < 0)
        return hf_fail(err, HF_EINVAL, "spool_bytes", "spool_bytes must not be negative");
    if (options->budget_ms && (options->budget_ms < LEAST_BUDGET_MS ||
                               options->budget_ms > HF_MAX_STORE_WAIT_MS))
        return hf_fail(err, HF_EINVAL, "budget_ms", "budget_ms must be %d to %lld",
                       LEAST_BUDGET_MS, (long long)HF_MAX_STORE_WAIT_MS);
    return options->store ? hf_sized_check(options->store->size, sizeof(*options->store),
                                           sizeof(*options->store), err)
                          : 0;
}

static void init_locks(struct hf_ingress *in)
{
    hf_lock_init(&in->lock);
    hf_cond_init(&in->done);
    for (size_t i = 0; i < OUTLETS; i++)
        hf_cond_init(&in->outlets[i].wake);
}

int hf_ingress_open(const struct hf_ingress_options *given,
                    struct hf_ingress **ret_ingress, struct hf_err *err)
{
    struct hf_ingress_options options;
    int rc = hf_sized_copy(given, sizeof(options), sizeof(options), &options, err);
    if (rc == 0)
        rc = check_options(&options, err);
    if (rc)
        return rc;
    const struct hf_alloc *alloc = options.store && options.store->alloc
                                       ? options.store->alloc
                                       : hf_alloc_system();
    struct hf_ingress *in = take(alloc, sizeof(*in));
    if (!in)
        return hf_fail_plain(err, HF_ENOMEM);
    in->alloc = alloc;
    in->refs = 1;
    in->url = hf_text_copy(alloc, options.url);
    in->spool_path = hf_text_copy(alloc, options.spool);
    in->spool_bytes = options.spool_bytes;
    in->budget_ms = options.budget_ms ? options.budget_ms : BUDGET_MS;
    in->store_options =
        options.store ? *options.store
                      : (struct hf_store_options){ .size = sizeof(in->store_options) };
    if (!in->store_options.busy_ms)
        in->store_options.busy_ms = in->budget_ms / 2;
    in->store_options.inline_mode = true; /* the outlet has the thread */
    init_locks(in);
    if (!in->url || (options.spool && !in->spool_path)) {
        free_ingress(in);
        return hf_fail_plain(err, HF_ENOMEM);
    }
    *ret_ingress = in;
    return 0;
}

/* Under the lock: the threads that have ended, or are at their last line; who is still at work
 * continues alone. */
static size_t part_with(struct hf_ingress *in, pthread_t ret_ended[OUTLETS])
{
    size_t count = 0;
    for (size_t i = 0; i < OUTLETS; i++) {
        const struct outlet *outlet = &in->outlets[i];
        if (outlet->made && outlet->started)
            (void)pthread_detach(outlet->thread); /* no other process does */
        else if (outlet->made)
            ret_ended[count++] = outlet->thread;
    }
    return count;
}

void hf_ingress_close(struct hf_ingress *in)
{
    pthread_t ended[OUTLETS];
    if (!in)
        return;
    hf_lock(&in->lock);
    hf_ms until = now_ms() + in->budget_ms;
    in->closing = true;
    for (size_t i = 0; i < OUTLETS; i++)
        (void)pthread_cond_broadcast(&in->outlets[i].wake);
    while (in->refs > 1 && wait_until(in, until))
        ; /* an idle outlet ends at once */
    bool last = --in->refs == 0;
    size_t count = part_with(in, ended);
    hf_unlock(&in->lock);
    for (size_t k = 0; k < count; k++)
        (void)pthread_join(ended[k], NULL); /* or it would end while the process does */
    if (last)
        free_ingress(in);
}
