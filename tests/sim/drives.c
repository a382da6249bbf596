/* One schedule of drives: the world, its faults, and the steps. */
#include "sim/drives.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/stores.h"

#define WALL_MS 1800000000000
#define MONO_MS 7000000
#define STEPS 260
#define DRAIN_STEPS 20000
#define DRAIN_MS 3600000

#define X(name, word) word,
static const char *const fault_words[] = { DRIVES_FAULTS(X) };
static const char *const mark_words[] = { DRIVES_MARKS(X) };
#undef X

const char *drives_fault_word(enum drives_fault fault)
{
    return fault_words[fault];
}

const char *drives_mark_word(enum drives_mark mark)
{
    return mark_words[mark];
}

/* ---- notes -------------------------------------------------------------------------- */

void drives_note(struct drives *d, uint64_t what)
{
    d->hash = (d->hash ^ what ^ (uint64_t)d->mono) * 0x100000001b3u;
}

void drives_mark(struct drives *d, enum drives_mark mark)
{
    d->marks[mark]++;
    drives_note(d, 0x3a00u + (uint64_t)mark);
}

bool drives_fault(struct drives *d, enum drives_fault fault, unsigned odds)
{
    if (d->healing || !(d->may & (1u << fault)) || !drives_one_in(&d->dice, odds))
        return false;
    d->faults++;
    d->fired |= 1u << fault;
    drives_note(d, 0xfa00u + (uint64_t)fault);
    return true;
}

void drives_say(struct drives *d, const char *format, ...)
{
    char line[400];
    va_list args;
    if (!d->trace)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    printf("%5llu %9lld %s\n", (unsigned long long)d->steps,
           (long long)(d->mono - d->began), line);
}

void drives_violate(struct drives *d, const char *format, ...)
{
    char line[600];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    drives_say(d, "VIOLATION: %s", line);
    if (!d->violation[0])
        memcpy(d->violation, line, sizeof(line));
}

/* ---- seams -------------------------------------------------------------------------- */

static hf_ms wall_ms(void *user)
{
    const struct drives *d = user;
    return d->wall;
}

static hf_ms mono_ms(void *user)
{
    const struct drives *d = user;
    return d->mono;
}

static void wait_ms(void *user, hf_ms ms)
{
    (void)user; /* a call takes no time */
    (void)ms;
}

static int fill(void *user, void *out, size_t bytes)
{
    struct drives *d = user;
    unsigned char *at = out;
    for (size_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)drives_draw(&d->noise);
    return 0;
}

/* Memory of a worker's drives, which may fail once. */
static void *allocate(void *user, void *old, size_t bytes)
{
    struct drives_worker *w = user;
    const struct hf_alloc *alloc = hf_alloc_system();
    if (w->fail_alloc > 0 && --w->fail_alloc == 0)
        return NULL;
    return alloc->realloc(alloc->user, old, bytes);
}

static void release(void *user, void *old)
{
    const struct hf_alloc *alloc = hf_alloc_system();
    (void)user;
    alloc->free(alloc->user, old);
}

/* ---- faults of a store call --------------------------------------------------------- */

static const enum drives_fault of_calls[] = { DRIVES_KILL_IN_CALL, DRIVES_STALL,
                                              DRIVES_BUSY,         DRIVES_AWAY,
                                              DRIVES_UNKNOWN_DONE, DRIVES_UNKNOWN_NOT };

void drives_before_call(struct drives *d, bool mortal)
{
    d->armed = -1;
    d->dead = false;
    for (size_t i = 0; i < sizeof(of_calls) / sizeof(of_calls[0]); i++) {
        bool may = mortal || of_calls[i] != DRIVES_KILL_IN_CALL;
        if (d->nesting > 0 && of_calls[i] == DRIVES_STALL)
            may = false;
        if (may && drives_fault(d, of_calls[i], 22)) {
            d->armed = (int)of_calls[i];
            d->armed_in = (int)drives_roll(&d->dice, 5);
            return;
        }
    }
}

bool drives_after_call(struct drives *d, const char *what, int code)
{
    bool alive = !d->dead;
    drives_note(d, (uint64_t)(unsigned)code);
    if (!alive)
        drives_say(d, "dead in %s", what);
    d->dead = false;
    d->armed = -1;
    return alive;
}

static void run_others(struct drives *d, hf_ms until);

/* The caller stops in the middle of its call, and time passes for the others. */
static void stall(struct drives *d)
{
    hf_ms until = d->mono + DRIVES_TTL_MS / 2 +
                  (hf_ms)drives_roll(&d->dice, 2 * DRIVES_TTL_MS);
    drives_say(d, "  stops in the middle of the call until %lld",
               (long long)(until - d->began));
    d->nesting++;
    run_others(d, until);
    d->nesting--;
    d->armed = -1;
    d->dead = false;
}

/* Whether the armed fault strikes at this transaction, before (or after) which it is asked. */
static bool strikes(struct drives *d, bool writes, bool before)
{
    if (d->armed < 0 || d->judging)
        return false;
    bool on_writes = d->armed == DRIVES_STALL || d->armed == DRIVES_UNKNOWN_DONE ||
                     d->armed == DRIVES_UNKNOWN_NOT;
    bool early = d->armed != DRIVES_UNKNOWN_DONE;
    if (d->armed == DRIVES_KILL_IN_CALL)
        return d->armed_in-- == 0; /* each transaction has two moments */
    if ((on_writes && !writes) || early != before)
        return false;
    return on_writes || d->armed_in-- == 0;
}

static int before(void *user, bool writes)
{
    struct drives *d = user;
    if (d->dead && !d->judging)
        return HF_ESTOREIO;
    if (!strikes(d, writes, true))
        return 0;
    int fault = d->armed;
    d->armed = -1;
    if (fault == DRIVES_STALL) {
        stall(d);
        return 0;
    }
    d->dead = fault == DRIVES_KILL_IN_CALL;
    return fault == DRIVES_BUSY          ? HF_EBUSY
           : fault == DRIVES_UNKNOWN_NOT ? HF_EUNCERTAIN
                                         : HF_ESTOREIO;
}

static int after(void *user, bool writes)
{
    struct drives *d = user;
    if (!strikes(d, writes, false))
        return 0;
    d->dead = d->armed == DRIVES_KILL_IN_CALL;
    d->armed = -1;
    return HF_EUNCERTAIN;
}

/* ---- steps -------------------------------------------------------------------------- */

static void step(struct drives *d, struct drives_actor *actor)
{
    d->steps++;
    actor->busy = true;
    drives_note(d, (uint64_t)(actor - d->actors));
    if (actor->role == DRIVES_WORKER)
        drives_worker_step(d, actor);
    else
        drives_other_step(d, actor);
    actor->busy = false;
}

/* The actor that is next, one of those whose time has come at random; NULL: all are busy. */
static struct drives_actor *next_actor(struct drives *d)
{
    struct drives_actor *first = NULL;
    for (size_t i = 0; i < d->actor_count; i++) {
        struct drives_actor *actor = &d->actors[i];
        if (!actor->busy && (!first || actor->wake_at < first->wake_at))
            first = actor;
    }
    size_t start = drives_roll(&d->dice, (unsigned)d->actor_count);
    hf_ms now = first && first->wake_at > d->mono ? first->wake_at : d->mono;
    for (size_t i = 0; first && i < d->actor_count; i++) {
        struct drives_actor *actor = &d->actors[(start + i) % d->actor_count];
        if (!actor->busy && actor->wake_at <= now)
            return actor;
    }
    return first;
}

static void pass_until(struct drives *d, hf_ms at)
{
    if (at <= d->mono)
        return;
    d->wall += at - d->mono;
    d->mono = at;
}

static void run_others(struct drives *d, hf_ms until)
{
    for (int i = 0; i < 200 && !d->violation[0]; i++) {
        struct drives_actor *actor = next_actor(d);
        if (!actor || actor->wake_at > until)
            break;
        pass_until(d, actor->wake_at);
        step(d, actor);
    }
    pass_until(d, until);
}

static void run_one(struct drives *d)
{
    struct drives_actor *actor = next_actor(d);
    pass_until(d, actor->wake_at);
    step(d, actor);
    if (d->steps % 3 == 0)
        drives_look(d, (int)(d->steps / 3 % (unsigned)d->session_count));
}

/* All actors come to an end without faults. */
static void drain(struct drives *d)
{
    hf_ms most = d->mono + DRAIN_MS;
    d->healing = true;
    for (size_t i = 0; i < d->actor_count; i++)
        if (d->actors[i].wake_at > d->mono + 5000)
            d->actors[i].wake_at = d->mono + 5000;
    for (int i = 0; i < DRAIN_STEPS && d->mono < most && !d->violation[0]; i++) {
        if (i % 8 == 0 && drives_ended(d))
            break;
        run_one(d);
    }
    if (!d->violation[0] && !drives_ended(d)) {
        drives_violate(d, "turns do not end after the faults have");
        drives_say_left(d);
    }
    if (!d->violation[0])
        drives_judge_end(d);
}

/* ---- a schedule --------------------------------------------------------------------- */

static void add_actor(struct drives *d, enum drives_role role)
{
    struct drives_actor *actor = &d->actors[d->actor_count++];
    *actor = (struct drives_actor){ .role = role, .wake_at = d->mono };
    if (role != DRIVES_WORKER)
        return;
    actor->worker = calloc(1, sizeof(*actor->worker));
    if (!actor->worker)
        abort();
    actor->worker->alloc = (struct hf_alloc){ actor->worker, allocate, release };
    drives_worker_drop(d, actor->worker);
    d->worker_count++;
}

static int begin(struct drives *d, struct hf_err *err)
{
    int rc = d->factory->open(d->factory->user, &d->options, &d->hooks, &d->store, err);
    d->judging = true;
    if (rc == 0)
        rc = drives_make_agent(d, err);
    for (int s = 0; rc == 0 && s < d->session_count; s++) {
        struct hf_session_answer *made = NULL;
        struct hf_session_spec new = { .size = sizeof(new),
                                       .session_id = d->sessions[s].id,
                                       .agent = DRIVES_AGENT };
        rc = hf_session_create(d->store, NULL, &new, &made, err);
        hf_session_answer_free(made);
    }
    if (rc == 0)
        rc = drives_subscribe(d, err);
    d->judging = false;
    return rc;
}

static int play(struct drives *d, struct hf_err *err)
{
    drives_plan(d);
    int rc = begin(d, err);
    size_t workers = 2 + drives_roll(&d->dice, DRIVES_WORKERS - 1);
    for (size_t i = 0; rc == 0 && i < workers; i++)
        add_actor(d, DRIVES_WORKER);
    if (rc == 0) {
        add_actor(d, DRIVES_SENDER);
        add_actor(d, DRIVES_ANSWERER);
        add_actor(d, DRIVES_ANSWERER);
        add_actor(d, DRIVES_CANCELLER);
        add_actor(d, DRIVES_MONITOR);
    }
    while (rc == 0 && d->steps < STEPS && !d->violation[0])
        run_one(d);
    if (rc == 0)
        drain(d);
    for (size_t i = 0; i < d->worker_count; i++) {
        drives_worker_drop(d, d->actors[i].worker);
        free(d->actors[i].worker);
    }
    drives_free_agent(d);
    hf_store_close(d->store);
    if (d->factory->discard)
        d->factory->discard(d->factory->user);
    return rc;
}

static struct drives *prepare(const struct drives_options *options, uint64_t seed,
                              struct drives_report *report)
{
    struct drives *d = calloc(1, sizeof(*d));
    if (!d)
        abort();
    d->seed = seed;
    d->dice.state = seed * 0x2545f4914f6cdd1du;
    d->noise.state = ~d->dice.state;
    d->marks = report->marks;
    d->mono = d->began = MONO_MS;
    d->wall = WALL_MS;
    d->armed = -1;
    d->trace = options->trace;
    d->factory = sim_store("sqlite");
    d->clock = (struct hf_clock){ d, wall_ms, mono_ms, wait_ms };
    d->random = (struct hf_random){ d, fill };
    d->hooks = (struct hf_sim_hooks){ .user = d, .before = before, .after = after };
    d->options = (struct hf_store_options){ .size = sizeof(d->options),
                                            .alloc = hf_alloc_system(),
                                            .clock = &d->clock,
                                            .random = &d->random,
                                            .inline_mode = true };
    for (int i = 0; i < DRIVES_FAULT_COUNT; i++)
        if (drives_one_in(&d->dice, 2))
            d->may |= 1u << i;
    d->may &= ~options->without;
    d->answer_ms = drives_one_in(&d->dice, 2) ? 5000 : 60000;
    return d;
}

static void add_up(struct drives_report *report, const struct drives *d)
{
    report->schedules++;
    report->steps += d->steps;
    report->faults += d->faults;
    report->sweeps += d->sweeps;
    report->hash = (report->hash ^ d->hash) * 0x100000001b3u;
    for (int i = 0; i < DRIVES_FAULT_COUNT; i++)
        report->fault_schedules[i] += (d->fired >> i) & 1;
    if (!d->violation[0])
        return;
    if (report->violations++ == 0) {
        report->first_seed = d->seed;
        report->first_step = d->steps;
        memcpy(report->first, d->violation, sizeof(report->first));
    }
}

/* A long run that did not show enough has failed. */
static void judge_coverage(const struct drives_options *options,
                           struct drives_report *report)
{
    if (report->schedules < 1000 || report->violations || options->without)
        return;
    for (int i = 0; i < DRIVES_FAULT_COUNT; i++)
        if (report->fault_schedules[i] * 50 < report->schedules)
            snprintf(report->low, sizeof(report->low),
                     "fault %s struck in %llu schedules", fault_words[i],
                     (unsigned long long)report->fault_schedules[i]);
    for (int i = 0; i < DRIVES_MARK_COUNT; i++)
        if (report->marks[i] == 0)
            snprintf(report->low, sizeof(report->low), "%s was never reached",
                     mark_words[i]);
}

int drives_run(const struct drives_options *options, struct drives_report *ret_report)
{
    struct hf_err err = { 0 };
    int rc = 0;
    *ret_report = (struct drives_report){ 0 };
    for (uint64_t i = 0; rc == 0 && i < options->schedules; i++) {
        struct drives *d = prepare(options, options->seed + i, ret_report);
        rc = play(d, &err);
        if (rc)
            fprintf(stderr, "seed %llu: %s\n", (unsigned long long)d->seed, err.message);
        add_up(ret_report, d);
        free(d);
        if (ret_report->violations && !options->go_on)
            break;
    }
    judge_coverage(options, ret_report);
    return rc;
}
