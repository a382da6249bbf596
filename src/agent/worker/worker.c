/* A worker holds sessions of its agents and drives their turns, on one event loop.
 *
 * It claims a session while it may hold one more, and makes a seat of it (seat.c). A heartbeat
 * renews the leases of all seats together; a lease that could not be renewed in its term counts as
 * lost. A renewal also tells which turns are to be cancelled, so it is made early when the bell of
 * the sessions was rung. Stopping begins nothing new, and after a grace hands back what is left. A
 * seat that has ended is released when the outermost call into the worker ends (worker_enter,
 * worker_leave). */
#include "agent/worker/worker.h"

#include <string.h>

#include "base/sized.h"
#include "base/text.h"

/* How often the bell of the sessions is looked at, and how long after a renewal at the earliest
 * another one is made because of it. */
#define LISTEN_MS 100
#define LISTEN_REST_MS 500

#define X(name, word) #word,
static const char *const event_words[] = { HF_WORKER_EVENTS(X) };
#undef X

const char *hf_worker_event_name(enum hf_worker_event_kind kind)
{
    size_t count = sizeof(event_words) / sizeof(event_words[0]);
    return (size_t)kind < count ? event_words[kind] : "?";
}

void worker_tell(struct hf_worker *worker, const struct seat *seat,
                 struct hf_worker_event event)
{
    if (!worker->config.heard)
        return;
    if (seat && seat->claim && seat->claim->session_count > 0) {
        event.agent = seat->claim->sessions[0].agent;
        event.session_id = seat->claim->sessions[0].session_id;
        event.turn_id = seat->claim->turn ? seat->claim->turn->turn_id : NULL;
    }
    worker->config.heard(worker->config.user, &event);
}

static void tell_fault(struct hf_worker *worker, const struct seat *seat, int code,
                       const char *message)
{
    worker_tell(worker, seat,
                (struct hf_worker_event){
                    .kind = HF_WORKER_FAULT, .code = code, .message = message });
}

/* ---- the end ----------------------------------------------------------------------- */

/* Tells the host, once, that a stopping worker holds nothing and has no call out. */
static void maybe_stopped(struct hf_worker *worker)
{
    if (!worker->stopping || worker->stop_said || worker->seat_count > 0 ||
        worker->claiming || worker->renewing)
        return;
    worker->stop_said = true;
    hf_timer_stop(worker->config.loop, &worker->poll);
    hf_timer_stop(worker->config.loop, &worker->heartbeat);
    hf_timer_stop(worker->config.loop, &worker->listen);
    hf_timer_stop(worker->config.loop, &worker->grace);
    if (worker->stopped.run)
        worker->stopped.run(worker->stopped.user);
}

static void release_ended(struct hf_worker *worker)
{
    struct seat **at = &worker->seats;
    worker->some_ended = false;
    while (*at) {
        struct seat *seat = *at;
        if (!seat_is_over(seat)) {
            at = &seat->next;
            continue;
        }
        *at = seat->next;
        worker->seat_count--;
        seat_free(seat);
        worker->none_ready = false;
    }
    worker_claim(worker);
}

void worker_enter(struct hf_worker *worker)
{
    worker->depth++;
}

void worker_leave(struct hf_worker *worker)
{
    if (--worker->depth > 0)
        return;
    if (worker->some_ended)
        release_ended(worker);
    maybe_stopped(worker);
}

static void feed_all(struct hf_worker *worker, enum hf_drive_event_kind kind)
{
    for (struct seat *seat = worker->seats; seat; seat = seat->next)
        seat_feed(seat, (struct hf_drive_event){ .kind = kind });
}

/* The grace of a stop is over: what still runs is given up, and handed back. */
static void on_grace(void *user)
{
    worker_enter(user);
    feed_all(user, HF_DRIVEN_GIVE_UP);
    worker_leave(user);
}

void hf_worker_stop(struct hf_worker *worker, hf_ms grace_ms,
                    const struct hf_task *stopped)
{
    struct hf_task task = { worker, on_grace };
    worker_enter(worker);
    worker->stopping = true;
    worker->stopped = stopped ? *stopped : (struct hf_task){ 0 };
    feed_all(worker, HF_DRIVEN_STOP);
    if (hf_timer_start(worker->config.loop, &worker->grace, grace_ms, &task))
        feed_all(worker, HF_DRIVEN_GIVE_UP); /* no memory for patience */
    worker_leave(worker);
}

int hf_worker_cancel(struct hf_worker *worker, const char *session_id,
                     const struct hf_evidence *evidence)
{
    struct seat *seat = worker->seats;
    while (seat &&
           (seat->ended || !hf_same(seat->claim->sessions[0].session_id, session_id)))
        seat = seat->next;
    if (!seat)
        return HF_ENOTFOUND;
    worker_enter(worker);
    seat_feed(seat,
              (struct hf_drive_event){ .kind = HF_DRIVEN_CANCEL, .evidence = evidence });
    worker_leave(worker);
    return 0;
}

size_t hf_worker_held(const struct hf_worker *worker)
{
    return worker->seat_count;
}

/* ---- claims ------------------------------------------------------------------------ */

static void on_poll(void *user)
{
    struct hf_worker *worker = user;
    worker->none_ready = false;
    worker_threads_collect(worker->threads);
    worker_claim(worker);
}

/* Another claim after a while. Without memory for the timer the heartbeat looks. */
static void poll_later(struct hf_worker *worker)
{
    struct hf_task task = { worker, on_poll };
    worker->none_ready = true;
    if (!worker->stopping &&
        hf_timer_start(worker->config.loop, &worker->poll, worker->config.poll_ms, &task))
        worker->none_ready = false;
}

/* The turn cannot be driven here: it is handed back, and the seat ends with that. */
static void refuse(struct seat *seat, const struct hf_err *why)
{
    struct hf_drive_action action = { .kind = HF_DRIVE_BACK,
                                      .delay_ms = 30000,
                                      .code = why->code,
                                      .message = why->message };
    worker_tell(seat->worker, seat,
                (struct hf_worker_event){
                    .kind = HF_WORKER_BACK, .code = why->code, .message = why->message });
    seat_start_job(seat, &action);
}

static void take_seat(struct hf_worker *worker, struct seat *seat)
{
    struct hf_err *why = &seat->refusal;
    seat->next = worker->seats;
    worker->seats = seat;
    worker->seat_count++;
    why->code = seat_begin(seat, why);
    seat->ended = why->code != 0;
    worker_tell(worker, seat,
                (struct hf_worker_event){ .kind = HF_WORKER_CLAIMED,
                                          .step = seat->loaded->turn->step });
    if (why->code)
        refuse(seat, why);
    else
        seat_drive(seat);
}

static void on_claimed(void *user)
{
    struct seat *seat = user;
    struct hf_worker *worker = seat->worker;
    int seat_code = seat->code;
    bool found = seat_code == 0 && seat->claim && seat->claim->session_count > 0;
    bool later = seat_code || (worker->config.session_id && !found);
    worker_enter(worker);
    worker->claiming = NULL;
    if (seat->code)
        tell_fault(worker, seat, seat->code, seat->err.message);
    if (found && seat->claim->turn)
        take_seat(worker, seat);
    else
        seat_free(seat);
    if (later) /* the store is away, or the session has nothing to do: not at once again */
        poll_later(worker);
    worker_claim(worker);
    worker_leave(worker);
}

void worker_claim(struct hf_worker *worker)
{
    if (worker->stopping || worker->claiming || worker->none_ready ||
        (int64_t)worker->seat_count >= worker->config.turns)
        return;
    struct seat *seat = seat_new(worker);
    if (!seat) {
        poll_later(worker);
        return;
    }
    worker->claiming = seat;
    seat->job =
        (struct worker_job){ .user = seat, .run = seat_run_claim, .done = on_claimed };
    worker_threads_add(worker->threads, &seat->job);
}

/* ---- leases ------------------------------------------------------------------------ */

static struct seat *seat_of(struct hf_worker *worker, const char *token)
{
    for (struct seat *seat = worker->seats; seat; seat = seat->next)
        if (hf_same(seat->claim->token, token))
            return seat;
    return NULL;
}

/* The seat's lease is lost: its drive stops, and stores nothing more. */
static void lose(struct seat *seat)
{
    worker_tell(seat->worker, seat, (struct hf_worker_event){ .kind = HF_WORKER_LOST });
    seat_feed(seat, (struct hf_drive_event){ .kind = HF_DRIVEN_LEASE_LOST });
}

/* A store call is out that ends the lease, so that a renewal may find it ended. What became of the
 * lease is said by that call. */
static bool ends_lease(const struct seat *seat)
{
    const struct hf_drive_action *action = &seat->action;
    return seat->job_out &&
           (action->kind == HF_DRIVE_COMMIT || action->kind == HF_DRIVE_BACK ||
            (action->kind == HF_DRIVE_STORE && action->step->away));
}

static void apply_renewal(struct hf_worker *worker,
                          const struct hf_session_renewal *renewal)
{
    struct seat *seat = seat_of(worker, renewal->token);
    if (!seat || seat->ended)
        return;
    if (renewal->code) {
        if (!ends_lease(seat))
            lose(seat);
        return;
    }
    seat->valid_until = worker->renewal_sent + renewal->lease_remaining_ms;
    if (renewal->cancel_requested)
        seat_feed(seat, worker_cancel());
}

/* Leases that could not be renewed in their term may be another worker's by now. */
static void lose_lapsed(struct hf_worker *worker)
{
    hf_ms now = worker_mono(worker);
    for (struct seat *seat = worker->seats; seat; seat = seat->next)
        if (!seat->ended && now >= seat->valid_until)
            lose(seat);
}

static void on_renewed(void *user)
{
    struct hf_worker *worker = user;
    worker_enter(worker);
    worker->renewing = false;
    if (worker->renewal_code)
        tell_fault(worker, NULL, worker->renewal_code, hf_err_text(worker->renewal_code));
    for (size_t i = 0; worker->renewal_code == 0 && i < worker->renewal_count; i++)
        apply_renewal(worker, &worker->renewals[i]);
    lose_lapsed(worker);
    worker_leave(worker);
}

/* Copies of what the thread reads: a seat may end meanwhile. */
static int copy_leases(struct hf_worker *worker)
{
    struct hf_arena *arena = &worker->renewal_arena;
    hf_arena_reset(arena);
    worker->renewal_count = 0;
    worker->renewals = hf_arena_array(arena, worker->seat_count,
                                      sizeof(*worker->renewals));
    if (!worker->renewals)
        return HF_ENOMEM;
    for (struct seat *seat = worker->seats; seat; seat = seat->next) {
        struct hf_session_renewal *one = &worker->renewals[worker->renewal_count];
        one->session_id = hf_arena_text(arena, seat->claim->sessions[0].session_id);
        one->token = hf_arena_text(arena, seat->claim->token);
        if (!one->session_id || !one->token)
            return HF_ENOMEM;
        worker->renewal_count += seat->ended ? 0 : 1;
    }
    return 0;
}

/* Renews all leases, unless that is under way. */
static void renew(struct hf_worker *worker)
{
    if (worker->renewing || worker->seat_count == 0 || copy_leases(worker) ||
        worker->renewal_count == 0)
        return; /* the next heartbeat tries again */
    worker->renewing = true;
    worker->bell = hf_session_bell(worker->config.store);
    worker->renewal_sent = worker_mono(worker);
    worker->renewal = (struct worker_job){ .user = worker,
                                           .run = worker_run_renewal,
                                           .done = on_renewed };
    worker_threads_add(worker->threads, &worker->renewal);
}

/* Starts a timer that has just fired, so that its place needs no memory. */
static void again(struct hf_worker *worker, struct hf_timer *timer, hf_ms after_ms,
                  void (*run)(void *user))
{
    struct hf_task task = { worker, run };
    int rc = hf_timer_start(worker->config.loop, timer, after_ms, &task);
    hf_assert(rc == 0);
}

static void on_heartbeat(void *user)
{
    struct hf_worker *worker = user;
    again(worker, &worker->heartbeat, worker->config.renew_ms, on_heartbeat);
    worker_enter(worker);
    worker_threads_collect(worker->threads);
    lose_lapsed(worker);
    if (worker->renewing || worker->seat_count == 0)
        worker_claim(worker);
    else
        renew(worker);
    worker_leave(worker);
}

/* Something was told about sessions since the last renewal: a renewal says whether one of ours is
 * to be cancelled. */
static void on_listen(void *user)
{
    struct hf_worker *worker = user;
    again(worker, &worker->listen, LISTEN_MS, on_listen);
    if (worker->seat_count > 0 &&
        worker_mono(worker) - worker->renewal_sent >= LISTEN_REST_MS &&
        hf_session_bell(worker->config.store) != worker->bell)
        renew(worker);
}

/* ---- making ------------------------------------------------------------------------ */

static int check_agents(const struct hf_worker_config *config, struct hf_err *err)
{
    if (config->agent_count == 0 || config->agent_count > 32)
        return hf_fail(err, HF_EINVAL, "agents", "a worker has 1 to 32 agents");
    if (hf_sized_array(config->agents, config->agent_count, "agents", err))
        return HF_EINVAL;
    for (size_t i = 0; i < config->agent_count; i++) {
        const struct hf_worker_agent *agent = &config->agents[i];
        if (hf_sized_array(agent->sources, agent->source_count, "sources", err))
            return HF_EINVAL;
        if (!agent->name || !agent->setup || !agent->provider || !agent->model)
            return hf_fail(err, HF_EINVAL, "agents",
                           "an agent has a name, a setup, a provider and a model");
        for (size_t j = 0; j < i; j++)
            if (hf_same(agent->name, config->agents[j].name))
                return hf_fail(err, HF_EINVAL, "agents",
                               "there are two agents named %.80s", agent->name);
    }
    return 0;
}

static int complete(struct hf_worker_config *config, struct hf_err *err)
{
    if (!config->loop || !config->store)
        return hf_fail(err, HF_EINVAL, config->loop ? "store" : "loop",
                       "a worker needs a loop and a store");
    config->turns = config->turns ? config->turns : 64;
    config->ttl_ms = config->ttl_ms ? config->ttl_ms : 30000;
    config->renew_ms = config->renew_ms ? config->renew_ms : config->ttl_ms / 3;
    config->store_threads = config->store_threads ? config->store_threads : 4;
    config->poll_ms = config->poll_ms ? config->poll_ms : 200;
    if (config->poll_ms > config->renew_ms)
        config->poll_ms =
            config->renew_ms; /* a lease counts from the claim's beginning */
    config->away_ms = config->away_ms          ? config->away_ms
                      : config->ttl_ms < 30000 ? config->ttl_ms
                                               : 30000;
    if (config->away_ms < 1 || config->away_ms > config->ttl_ms)
        return hf_fail(err, HF_EINVAL, "away_ms",
                       "a turn stays resident for 1 ms to the term of its lease");
    if (config->renew_ms < 1 || config->ttl_ms < 3 * config->renew_ms)
        return hf_fail(err, HF_EINVAL, "ttl_ms",
                       "a lease lasts at least three renewals: ttl_ms >= 3 * renew_ms");
    if (config->turns < 1 || config->poll_ms < 1 || config->store_threads < 1)
        return hf_fail(err, HF_EINVAL, "turns",
                       "turns, poll_ms and store_threads must be at least 1");
    return check_agents(config, err);
}

int hf_worker_new(const struct hf_worker_config *config, struct hf_worker **ret_worker,
                  struct hf_err *err)
{
    int rc = hf_sized_check(config->size, sizeof(*config), sizeof(*config), err);
    struct hf_worker_config full = *config;
    if (rc == 0)
        rc = complete(&full, err);
    if (rc)
        return rc;
    const struct hf_alloc *alloc = hf_loop_alloc(full.loop);
    struct hf_worker *worker = alloc->realloc(alloc->user, NULL, sizeof(*worker));
    if (!worker)
        return hf_fail_plain(err, HF_ENOMEM);
    *worker = (struct hf_worker){ .config = full, .alloc = alloc };
    worker->clock = hf_loop_clock(full.loop);
    hf_arena_init(&worker->renewal_arena, alloc);
    struct hf_task beat = { worker, on_heartbeat }, look = { worker, on_poll };
    struct hf_task listen = { worker, on_listen };
    rc = worker_threads_new(full.loop, full.store_threads, &worker->threads, err);
    if (rc == 0)
        rc = hf_timer_start(full.loop, &worker->heartbeat, full.renew_ms, &beat);
    if (rc == 0)
        rc = hf_timer_start(full.loop, &worker->listen, LISTEN_MS, &listen);
    if (rc == 0)
        rc = hf_timer_start(full.loop, &worker->poll, 0, &look);
    if (rc) {
        worker->stop_said = true;
        hf_worker_free(worker);
        return rc == HF_ENOMEM ? hf_fail_plain(err, rc) : rc;
    }
    worker->none_ready = true; /* until the first look */
    *ret_worker = worker;
    return 0;
}

void hf_worker_free(struct hf_worker *worker)
{
    if (!worker)
        return;
    hf_assert(worker->stop_said);
    hf_timer_stop(worker->config.loop, &worker->poll);
    hf_timer_stop(worker->config.loop, &worker->heartbeat);
    hf_timer_stop(worker->config.loop, &worker->listen);
    worker_threads_free(worker->threads);
    for (struct worker_surface *at = worker->surfaces, *next = NULL; at; at = next) {
        next = at->next;
        hf_toolset_unref(at->tools);
        hf_surface_free(at->surface);
        worker->alloc->free(worker->alloc->user, at);
    }
    hf_arena_fini(&worker->renewal_arena);
    worker->alloc->free(worker->alloc->user, worker);
}
