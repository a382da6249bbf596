/* The simulator's own: one schedule, its actors, what they ask, and what the checker knows.
 *
 *   run.c     schedules one after the other, the report, floors, shrinking
 *   world.c   one schedule: clocks, chance, memory, handles; steps; the drain
 *   actor.c   what an actor does next: crash, pause, wake; its pending call
 *   worker.c  workers: claim, work, renew, settle, by workload
 *   others.c  submitters, sweepers, renewers, operators, session holders
 *   cron.c    schedules
 *   limits.c  units under a cap or a rate, and jobs with a dedup key
 *   triggers.c  subscriptions and what is emitted to them
 *   processes.c  registrations, and what a sweep must do by disposition
 *   monitor.c  a monitor that keeps running, and amnesty
 *   sessions.c  senders and workers of sessions; talks.c what must be true of them
 *   turns.c   turns in which a model writes cells; code.c one of them
 *   call.c     a call on its way: lost, late, twice, failed; executed on the store
 *   look.c    all rows and events, folded into what the checker knows
 *   judge.c   the checks
 *   say.c     text
 *
 * Nothing here reads a clock or is random but through `dice`.
 */
#ifndef HF_SIM_INSIDE_H
#define HF_SIM_INSIDE_H

#include <holdfast/session.h>
#include <holdfast/sys/sim.h>

#define SIM_ACTORS 16
#define SIM_UNITS 96
#define SIM_HANDLES 3
#define SIM_HOLDS 2
#define SIM_GHOSTS 24
#define SIM_SHADOWS 192
#define SIM_SLOTS 512 /* of the id table: a power of two above SIM_SHADOWS */
#define SIM_WINDOW 32
#define SIM_KEYS 2
#define SIM_SCHEDULES 4
#define SIM_OCCURRENCES 6
#define SIM_SUBSCRIPTIONS 3
#define SIM_JOB_KEYS 2
#define SIM_PROCESSES 128
#define SIM_FENCES 32
#define SIM_TALKS 2
#define SIM_MESSAGES 6 /* of a session */
#define SIM_REFUSALS 8
#define SIM_BACKS 16
#define SIM_PERHAPS 0x80u /* with a status: another actor may have brought it about */
#define SIM_GRACE_MS 2000 /* of kind "expire": the policy that sim_play sets */
#define SIM_ID 40
#define SIM_TOKEN 128
#define SIM_NAME 24

/* ---- chance ---------------------------------------------------------------------- */

struct sim_dice {
    uint64_t state;
};

static inline uint64_t sim_mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline uint64_t sim_draw(struct sim_dice *dice)
{
    dice->state += 0x9e3779b97f4a7c15u;
    return sim_mix(dice->state);
}

/* 0 to n - 1. */
static inline unsigned sim_roll(struct sim_dice *dice, unsigned n)
{
    return (unsigned)(((sim_draw(dice) >> 32) * n) >> 32);
}

static inline bool sim_one_in(struct sim_dice *dice, unsigned n)
{
    return sim_roll(dice, n) == 0;
}

/* ---- what is asked --------------------------------------------------------------- */

/* A unit of work as it was planned. Its index is its source id, so every request for it
 * is the same request, of any actor. */
struct sim_unit {
    enum hf_sim_workload workload;
    enum hf_disposition disposition;
    int chain;  /* which chain, ring or family; the lane of a chain */
    int next;   /* of a chain or ring: the unit after it, -1 until it is asked for */
    int left;   /* links to come */
    int parent; /* of a child, -1 */
    int children[3];
    int attempts;
    hf_ms delay_ms;
    hf_ms start_timeout_ms;
    hf_ms exec_timeout_ms;
    bool asked;      /* some request for it was sent */
    bool acked;      /* some caller was told of it */
    char id[SIM_ID]; /* as told */
};

enum sim_kind {
    SIM_OP_NONE,
    SIM_OP_CREATE,
    SIM_OP_CLAIM,
    SIM_OP_CHANGE,
    SIM_OP_RENEW_ALL,
    SIM_OP_SWEEP,
    SIM_OP_PRUNE,
    SIM_OP_POLICY,
    SIM_OP_BUMP,
    SIM_OP_TAKE,
    SIM_OP_KEEP,
    SIM_OP_RELEASE,
    SIM_OP_PASS,
    SIM_OP_SCHEDULE, /* pause or resume one */
    SIM_OP_LIMIT,    /* another cap */
    SIM_OP_JOB,
    SIM_OP_EMIT,
    SIM_OP_SUBSCRIPTION, /* enable or disable one */
    SIM_OP_REGISTER,
    SIM_OP_MONITOR,
    SIM_OP_SEND, /* a message to a session */
    SIM_OP_OPEN, /* claim one */
    SIM_OP_STEP,
    SIM_OP_COMMIT,
    SIM_OP_BACK,
};

/* What the holder of a session knows of its turn. */
struct sim_place {
    int64_t head_revision;
    int64_t record_count;
    int64_t step;
    int64_t node_count;
    int message; /* that began the turn, -1: there is none */
    uint8_t chain[32];
};

/* A request. Texts are copies: a request may outlive its caller. */
struct sim_op {
    enum sim_kind kind;
    enum hf_verb verb;
    enum hf_status status;
    int actor;
    int boot; /* of the actor, when it asked */
    int pid;  /* of that boot; 0: opaque */
    int hold; /* of a worker: which of its rows */
    int key;  /* of a session lease; which schedule, job, occurrence, subscription */
    size_t count;
    int units[4];
    unsigned flags;
    int limit;
    hf_ms ttl_ms;
    hf_ms span_ms;
    int64_t fence; /* of the token, where there is one */
    int64_t store;
    const char *why;        /* static */
    struct sim_place place; /* of a step or a commit */
    char id[SIM_ID];
    char token[SIM_TOKEN];
    char name[SIM_NAME]; /* nonce, reference or operation id */
};

struct sim_told {
    int code;
    bool created;
    bool repeated;
    bool resumed; /* the row has a resume payload */
    enum hf_status status;
    int unit; /* -1: none of ours */
    int64_t fence;
    int64_t store; /* of the token */
    hf_ms ttl_ms;
    hf_ms expires_at;
    char id[SIM_ID];
    char token[SIM_TOKEN];
};

struct sim_answer {
    int code;
    size_t count;
    bool displaced;
    bool created;        /* of an emission */
    uint64_t occurrence; /* its id, hashed */
    hf_ms stalled_ms;    /* of a monitor's pass */
    struct sim_place place;
    struct sim_told items[4];
};

/* On its way from a caller to the store and back. */
struct sim_pending {
    struct sim_op op;
    struct sim_answer answer;
    bool out;
    bool executed;
    hf_ms execute_at;
    hf_ms answer_at;
};

/* ---- who asks -------------------------------------------------------------------- */

enum sim_role {
    SIM_WORKER,
    SIM_SUBMITTER,
    SIM_SWEEPER,
    SIM_RENEWER,
    SIM_OPERATOR,
    SIM_LEASER,
    SIM_MONITOR,
    SIM_SENDER,
    SIM_TALKER,
};

/* A row that a worker believes to hold. */
struct sim_hold {
    bool used;
    bool resumed;
    bool settling; /* `last` was sent and is repeated until it is answered */
    int unit;
    int progress;
    int64_t fence;
    int64_t store;
    hf_ms ttl_ms;
    hf_ms renew_at;
    hf_ms done_at;
    struct sim_op last;
    char id[SIM_ID];
    char token[SIM_TOKEN];
};

struct sim_actor {
    enum sim_role role;
    int boot;
    int pid;
    bool down;
    bool has_claim; /* `claim` had no certain answer and is repeated */
    hf_ms wake_at;  /* nothing before */
    hf_ms skew_ms;
    int rate; /* of its own timers, in percent */
    int nonces;
    hf_ms since;            /* of a monitor: what it knows of calls that failed */
    struct sim_place place; /* of a talker */
    struct sim_op claim;
    struct sim_pending pending;
    struct sim_hold holds[SIM_HOLDS];
};

/* ---- what the checker knows ------------------------------------------------------ */

/* One row of the store: as it was read last, and as its events fold. */
struct sim_shadow {
    char id[SIM_ID];
    int unit;
    uint64_t slot;       /* of a schedule, or delivery of an occurrence; 0: none */
    uint64_t occurrence; /* 0: none */
    int schedule;        /* + 1 */
    int limit;           /* enum sim_limit */
    int dedup;           /* key of a job, + 1 */
    int talk;            /* session that it is an input of, + 1 */
    bool here;           /* met by the present look */
    bool gone;           /* pruned */
    bool fresh;
    /* read; `was_*` before this look */
    enum hf_status status, was_status;
    enum hf_disposition disposition;
    int64_t generation, was_generation;
    int64_t attempts;
    int64_t failures, was_failures;
    int64_t max_attempts;
    int64_t fence, was_fence;
    hf_ms expires_at, was_expires_at;
    hf_ms ttl_ms, was_ttl_ms;
    hf_ms deadline_at, was_deadline_at;
    hf_ms next_retry_at, was_next_retry_at;
    hf_ms due_at;
    int64_t lease_incarnation, was_lease_incarnation;
    bool gate_of_limit;
    bool owned, leased, gated, waiting_lane, held, was_abandon_asked, abandon_asked,
        bound;
    int holder_pid, was_holder_pid;
    /* folded */
    enum hf_status at;
    int64_t fold_generation;
    int64_t fold_attempts;
    int64_t fold_fence;
    int ends;                    /* terminal transitions of this generation */
    int64_t requeued_fence;      /* tokens up to it are forgotten */
    uint8_t settled[SIM_FENCES]; /* by fence: the status its holder left it in */
    /* promised to callers since the last look */
    bool told_there;
    bool seen_dead;  /* its holder was dead at the last look */
    int actor, boot; /* that claimed it last, where token_sure */
    bool token_sure; /* `token` is the one that holds the row, if it is held */
    char token[SIM_TOKEN];
    int64_t told_fence;
    enum hf_status told_status;
    int64_t renewed_fence;
    hf_ms renewed_until;
};

/* A call that was executed since the last look. */
struct sim_did {
    struct sim_op op;
    bool known; /* the answer below is the store's */
    int code;
    hf_ms lease_at;   /* when it ended */
    int64_t store;    /* the store's incarnation at its end; 0: a bump was not answered */
    hf_ms stalled_ms; /* of a monitor: until then, since its calls began to fail */
};

/* Limits that units of the simulator are under. */
enum sim_limit { SIM_NO_LIMIT, SIM_CAPPED, SIM_PACED };

/* What is known of limits. */
struct sim_limits {
    int64_t cap;      /* the largest that may be in force */
    int64_t cap_most; /* the largest since the last look */
    int64_t places;   /* that were taken at the last look */
    int64_t rate_count, rate_ms, burst;
    int64_t level; /* of the bucket, in tokens times rate_ms */
    hf_ms level_at;
    int jobs_left;
};

/* What is known of an occurrence. */
struct sim_occurrence {
    uint64_t hash; /* of its id; 0: no actor was told of it */
    bool acked;    /* its emitter knows */
    size_t count;  /* of units, as first told */
    char ids[SIM_SUBSCRIPTIONS][SIM_ID];
};

struct sim_key {
    int64_t fence;
    int actor;
    int boot;
    int pid;
    hf_ms expires_at;
    bool may_be_free;
};

/* What is known of a session that messages are sent to. */
struct sim_talk {
    struct sim_key lease; /* as the last claim was told of it */
    int messages;         /* planned */
    int acked;            /* the first so many */
    char ids[SIM_MESSAGES][SIM_ID];
    int64_t head;      /* at least this, as was told */
    int64_t seen_head; /* at the last look */
    bool held;         /* an input was held: the next ones went ahead */
};

/* A commit that was refused, with the name that its record would have. */
struct sim_refusal {
    int talk;
    int code;
    char name[SIM_NAME];
};

struct sim_process {
    int pid;
    bool dead;
};

struct hf_sim {
    const struct hf_sim_factory *factory;
    const struct hf_sim_options *options;
    struct hf_sim_report *report;
    struct sim_dice dice;
    struct sim_dice noise; /* for ids and nonces: what a store draws */
    uint64_t seed;
    uint64_t hash;
    uint32_t step;
    bool healing; /* the faults have stopped */

    hf_ms mono;
    hf_ms wall;
    hf_ms lease_offset;
    hf_ms wall_most; /* that the store was shown since the last look */
    hf_ms wall_least;
    hf_ms mono_most;
    int current; /* the actor on whose behalf a call runs */
    struct hf_clock clock;
    struct hf_random random;
    struct hf_alloc alloc;
    int64_t fail_alloc; /* allocations until one fails; 0: none will */
    struct hf_store_options store_options;
    struct hf_sim_hooks hooks;
    struct hf_store *handles[SIM_HANDLES];
    size_t handle_count;

    struct sim_actor actors[SIM_ACTORS];
    size_t actor_count;
    size_t worker_count;
    struct sim_process processes[SIM_PROCESSES];
    size_t process_count;
    bool has_processes; /* in this schedule */
    bool power_out;
    int nesting; /* of calls: one runs between two transactions of another */
    size_t look_every;
    struct sim_unit units[SIM_UNITS];
    size_t unit_count;
    struct sim_pending ghosts[SIM_GHOSTS];
    size_t ghost_count;

    /* faults */
    uint32_t may;   /* kinds that this schedule has */
    uint32_t fired; /* kinds that it had */
    unsigned odds[HF_SIM_FAULT_COUNT];
    int armed;    /* a kind of store fault for the present call, -1: none */
    int armed_in; /* transactions until it strikes */
    bool struck;
    bool first_transaction;         /* of the present call: none was begun yet */
    const struct sim_op *executing; /* the present call, the outer one of two */
    uint32_t workloads;

    /* the checker */
    int row_of[SIM_UNITS]; /* shadow of a unit's row, + 1 */
    struct sim_shadow shadows[SIM_SHADOWS];
    size_t shadow_count;
    uint16_t slots[SIM_SLOTS]; /* index + 1 */
    int64_t last_event;
    size_t look_at; /* shadow that the next row is compared with first */
    struct sim_did window[SIM_WINDOW];
    size_t window_count;
    size_t calls_since_look;
    bool pruned;         /* since the last look */
    int64_t incarnation; /* at least this */
    bool bumped;         /* perhaps: by a call without an answer */
    struct sim_key keys[SIM_KEYS];
    struct sim_talk talks[SIM_TALKS];
    struct sim_refusal refusals[SIM_REFUSALS];
    size_t refusal_count;
    char backs[SIM_BACKS][SIM_NAME]; /* the last hand-backs that may have been made */
    size_t back_count;
    struct sim_limits limits;
    struct sim_occurrence occurrences[SIM_OCCURRENCES];
    size_t occurrence_count;
    bool turning;                         /* subscriptions are switched on and off */
    int64_t revisions[SIM_SUBSCRIPTIONS]; /* of each, the latest that a change returned */
    bool autumn;                          /* the night of the schedules */
    bool resumed;                         /* a schedule was, perhaps */
    struct sim_turns *turns;              /* turns.c */
    char violation[600];
};

/* ---- say.c ----------------------------------------------------------------------- */

/* Whether two texts are the same; both may be NULL. */
bool sim_same(const char *a, const char *b);
void sim_copy(char *out, size_t room, const char *text); /* NULL is "" */
void sim_format(char *out, size_t room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The first is kept. */
void sim_violate(struct hf_sim *sim, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void sim_trace(struct hf_sim *sim, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The unit that a source id names, -1 where it is none of ours. */
int sim_unit_of(const struct hf_sim *sim, const char *source_id);
const char *sim_op_word(const struct sim_op *op);

/* ---- world.c --------------------------------------------------------------------- */

/* One schedule. A code when the store could not be opened. */
int sim_play(struct hf_sim *sim, struct hf_err *err);
void sim_note(struct hf_sim *sim, uint64_t what); /* into the hash */
void sim_mark(struct hf_sim *sim, enum hf_sim_mark mark);
/* Does this fault strike now? Counts it. */
bool sim_fault(struct hf_sim *sim, enum hf_sim_fault fault);
void sim_count_fault(struct hf_sim *sim, enum hf_sim_fault fault);
hf_ms sim_lease_now(const struct hf_sim *sim);
/* The machine boots after a power failure: all actors died, the store is opened again. */
void sim_boot(struct hf_sim *sim);
/* Time passes in the middle of a call. */
void sim_stall(struct hf_sim *sim);
/* Another actor's step, in the middle of a call. */
void sim_meanwhile(struct hf_sim *sim);
int sim_add_unit(struct hf_sim *sim, enum hf_sim_workload workload);

/* ---- actor.c --------------------------------------------------------------------- */

/* Boots an actor: it begins, or begins again after a crash. */
void sim_actor_begin(struct hf_sim *sim, int actor);
bool sim_is_dead(const struct hf_sim *sim, int pid);
void sim_actor_crash(struct hf_sim *sim, int actor, hf_ms back_in_ms);
void sim_actor_step(struct hf_sim *sim, int actor);
/* An empty request in the actor's name. */
struct sim_op sim_request(const struct hf_sim *sim, int actor, enum sim_kind kind);
/* In how many ms of the world one of the actor's own timers of `ms` ends. */
hf_ms sim_own_ms(const struct sim_actor *actor, hf_ms ms);

/* worker.c, others.c: what an idle actor does, and what it makes of an answer. */
void sim_worker_act(struct hf_sim *sim, int actor);
void sim_worker_hear(struct hf_sim *sim, int actor, const struct sim_op *op,
                     const struct sim_answer *answer);
void sim_other_act(struct hf_sim *sim, int actor);
void sim_other_hear(struct hf_sim *sim, int actor, const struct sim_op *op,
                    const struct sim_answer *answer);
/* Note that callers know of a unit. */
void sim_hear_created(struct hf_sim *sim, const struct sim_op *op,
                      const struct sim_answer *answer);

/* cron.c: schedules, where the schedule and the store have them. */
bool sim_has_cron(const struct hf_sim *sim);
void sim_cron_plan(struct hf_sim *sim); /* the night */
int sim_cron_start(struct hf_sim *sim, struct hf_err *err);
void sim_cron_stop(struct hf_sim *sim);
void sim_cron_judge(struct hf_sim *sim);
void sim_cron_look(struct hf_sim *sim); /* after each look */
/* Whether the event is the end of a unit that its schedule replaced. */
bool sim_cron_replaced(const struct sim_shadow *s, const struct hf_event *event);
int sim_cron_call(struct hf_sim *sim, struct hf_store *store, const struct sim_op *op);
uint64_t sim_text_hash(const char *one, const char *two); /* two may be NULL; never 0 */
int sim_schedule_of(const char *name);                    /* + 1; 0: none of ours */

/* limits.c */
void sim_limits_plan(struct hf_sim *sim);
int sim_limits_start(struct hf_sim *sim, struct hf_err *err);
/* The keys of a unit of this workload. */
void sim_limits_fill(const struct sim_unit *unit, struct hf_work_spec *new);
int sim_limits_call(struct hf_store *store, const struct sim_op *op);
int sim_job_call(struct hf_store *store, const struct sim_op *op, const char *actor,
                 struct hf_answer **ret_answer);
void sim_limits_answer(struct hf_sim *sim, const struct sim_op *op,
                       const struct sim_answer *answer, bool known);
void sim_limits_read(struct sim_shadow *s, const struct hf_work *work);
/* A row under a rate begins to run. */
void sim_limits_start_of(struct hf_sim *sim, const struct sim_shadow *s, hf_ms at);
void sim_limits_look(struct hf_sim *sim); /* after each look */

/* triggers.c: where the schedule and the store have them. */
bool sim_has_triggers(const struct hf_sim *sim);
int sim_triggers_start(struct hf_sim *sim, struct hf_err *err);
int sim_emit_call(struct hf_sim *sim, struct hf_store *store, const struct sim_op *op,
                  struct sim_answer *ret_answer);
int sim_subscription_call(struct hf_sim *sim, struct hf_store *store,
                          const struct sim_op *op);
void sim_turn_subscription(struct hf_sim *sim);
void sim_emit_answer(struct hf_sim *sim, const struct sim_op *op,
                     const struct sim_answer *answer);
void sim_triggers_judge(struct hf_sim *sim);
bool sim_triggers_ended(const struct hf_sim *sim);

/* processes.c: where the store has them. */
int sim_register_call(struct hf_sim *sim, struct hf_store *store, const struct sim_op *op,
                      const struct hf_work_spec *work, struct hf_answer **ret_answer);
/* What a sweep that is over must not have left as it is, by the row's disposition. */
void sim_judge_verdict(struct hf_sim *sim, const struct sim_shadow *s);

/* monitor.c */
int sim_monitor_call(struct hf_sim *sim, struct hf_store *store, const struct sim_op *op,
                     hf_ms *ret_stalled_ms);
/* Did an actor that may do so move this row's expiry to what it is now? */
void sim_judge_expiry(struct hf_sim *sim, const struct sim_shadow *s);
/* A monitor that saw a stall takes no lease away that the stall may have let lapse. */
bool sim_spares(const struct hf_sim *sim, const struct sim_shadow *s);

/* turns.c: continues with the turn of the unit that is held. */
enum sim_work { SIM_WORK_MORE, SIM_WORK_DONE, SIM_WORK_LOST };
enum sim_work sim_turn_work(struct hf_sim *sim, int actor, int hold);
void sim_turns_judge(struct hf_sim *sim);
void sim_turns_free(struct hf_sim *sim);

/* sessions.c */
bool sim_has_talks(const struct hf_sim *sim);
int sim_talks_start(struct hf_sim *sim, struct hf_err *err);
int sim_talk_of(const char *session_id); /* + 1; 0: none of ours */
void sim_talk_call(struct hf_store *store, const struct sim_op *op, const char *owner,
                   const char *incarnation, struct sim_answer *ret_answer);
void sim_sender_act(struct hf_sim *sim, int actor);
void sim_sender_hear(struct hf_sim *sim, int actor, const struct sim_op *op,
                     const struct sim_answer *answer);
void sim_talker_act(struct hf_sim *sim, int actor);
void sim_talker_hear(struct hf_sim *sim, int actor, const struct sim_op *op,
                     const struct sim_answer *answer);

/* talks.c: the checks of them. */
void sim_judge_talk(struct hf_sim *sim, const struct sim_op *op,
                    const struct sim_answer *answer, bool known);
/* An input stops running. */
void sim_talk_left(struct hf_sim *sim, const struct sim_shadow *s,
                   const struct hf_event *event, enum hf_status to);
void sim_talks_look(struct hf_sim *sim); /* after each look */
bool sim_talks_ended(const struct hf_sim *sim);
void sim_talks_judge(struct hf_sim *sim); /* in the end */

/* ---- call.c ---------------------------------------------------------------------- */

/* May the same request be sent again? (It was not refused.) */
bool sim_retryable(int code);
/* Requests that the network may bring twice at the same time. */
bool sim_can_race_itself(enum sim_kind kind);
/* Send a request on behalf of its actor, with whatever becomes of it. */
void sim_send(struct hf_sim *sim, const struct sim_op *op);
/* Execute on the store, judge the answer, and look at everything when it is time. */
void sim_execute(struct hf_sim *sim, const struct sim_op *op,
                 struct sim_answer *ret_answer);
/* Requests whose callers are gone. */
void sim_add_ghost(struct hf_sim *sim, const struct sim_pending *pending);
void sim_run_ghost(struct hf_sim *sim, size_t i);
int sim_before(void *user, bool writes);
int sim_after(void *user, bool writes);
void sim_power_failed(void *user);

/* ---- look.c, judge.c ------------------------------------------------------------- */

/* Reads all rows and new events from the store, and compares them with what the checker knows. */
void sim_look(struct hf_sim *sim);
struct sim_shadow *sim_shadow_of(struct hf_sim *sim, const char *id); /* NULL: unknown */
struct sim_shadow *sim_shadow_add(struct hf_sim *sim, const char *id);

/* A repeated operation no longer finds a row that it made. */
bool sim_was_pruned(const struct hf_sim *sim, const struct sim_op *op, int code);
/* Does this kind of call sweep? Sweeps, claims and monitors do. */
bool sim_sweeps(enum sim_kind kind);
/* An answer as it left the store; `known` false: the caller's answer was made up. */
void sim_judge_answer(struct hf_sim *sim, const struct sim_op *op,
                      const struct sim_answer *answer, bool known);
/* One new event, against the row as it was before. */
void sim_judge_event(struct hf_sim *sim, struct sim_shadow *s,
                     const struct hf_event *event);
/* After all events of a look were folded. */
void sim_judge_row(struct hf_sim *sim, struct sim_shadow *s);
void sim_judge_all(struct hf_sim *sim);
/* When everything has been drained. */
void sim_judge_end(struct hf_sim *sim);
bool sim_ended(struct hf_sim *sim); /* nothing is left to be done */

#endif
