/* The simulator of turns: drives (holdfast/sys/drive.h) over the real store, in virtual time.
 *
 * One thread, one number. A few workers claim sessions and drive their turns with a scripted
 * model and scripted tools of each recovery class. Others send messages, answer and revoke
 * waits, cancel turns and sweep. Workers die before, in the middle of and after store calls and
 * effects, and stop for longer than their leases; transactions fail, or what became of them is
 * not known. The tools keep a log of their own, and the judge compares it, all that callers were
 * told, the rows, and the committed history with what the plan of each turn says.
 *
 * It is no part of kit/sim: it needs libholdfast-net, where drives are.
 */
#ifndef HF_TESTS_SIM_DRIVES_H
#define HF_TESTS_SIM_DRIVES_H

#include <holdfast/session.h>
#include <holdfast/store.h>
#include <holdfast/sys/drive.h>
#include <holdfast/sys/sim.h>

#define DRIVES_SESSIONS 3
#define DRIVES_TURNS 3
#define DRIVES_ROUNDS 3
#define DRIVES_CALLS 5
#define DRIVES_WORKERS 4
#define DRIVES_ACTORS 10
#define DRIVES_OUT 16
#define DRIVES_KEYS 600
#define DRIVES_WAITS 300
#define DRIVES_ID 80
#define DRIVES_TTL_MS 3000
#define DRIVES_REVOKED_REASON "taken back"
#define DRIVES_AGENT "turns"
#define DRIVES_TEXT(text) ((struct hf_span){ (text), strlen(text) })

/* What can go wrong. */
#define DRIVES_FAULTS(X)                                                                 \
    X(KILL, "kill")                 /* a worker dies between two of its actions  */      \
    X(KILL_IN_CALL, "kill_in_call") /* before or after a transaction of a call */        \
    X(STOP, "stop")                 /* a worker stops past its lease             */      \
    X(STALL, "stall")               /* the same, in the middle of a store call   */      \
    X(BUSY, "busy")                 /* the store is busy                         */      \
    X(AWAY, "away")                 /* the store is away                         */      \
    X(UNKNOWN_DONE, "unknown_done") /* a commit that happened is called unknown */       \
    X(UNKNOWN_NOT, "unknown_not")   /* one that did not happen is, too           */      \
    X(LATE, "late")                 /* the answer of a store call comes late     */      \
    X(TWICE, "twice")               /* a tool answers again, with another answer */      \
    X(SHUTDOWN, "shutdown")         /* a worker is told to stop                  */      \
    X(NOMEM, "nomem")               /* an allocation of a drive fails            */

#define X(name, word) DRIVES_##name,
enum drives_fault { DRIVES_FAULTS(X) DRIVES_FAULT_COUNT };
#undef X

/* Paths that a long run must have taken. */
#define DRIVES_MARKS(X)                                                                  \
    X(COMMITTED, "committed")                                                            \
    X(CONTINUED, "continued") /* by another claim */                                     \
    X(REPERFORMED, "reperformed")                                                        \
    X(PROBED, "probed")                                                                  \
    X(ASKED_TRUTH, "asked_truth")                                                        \
    X(PUT_AWAY, "put_away")                                                              \
    X(TIMER, "timer")                                                                    \
    X(EDITED, "edited")                                                                  \
    X(DENIED, "denied")                                                                  \
    X(DEFERRED, "deferred")                                                              \
    X(RESOLVED_EARLY, "resolved_early")                                                  \
    X(RESOLVED_SECOND, "resolved_second") /* told the first outcome */                   \
    X(TIMED_OUT, "timed_out")                                                            \
    X(TURN_FAILED, "turn_failed") /* by a deadline */                                    \
    X(REVOKED, "revoked")                                                                \
    X(CANCELLED, "cancelled")                                                            \
    X(CANCEL_LATE, "cancel_late") /* the turn had ended */                               \
    X(LEASE_LOST, "lease_lost")                                                          \
    X(STALE_REFUSED, "stale_refused") /* the store refused an old holder */              \
    X(STEP_REPEATED, "step_repeated")                                                    \
    X(HANDED_BACK, "handed_back")                                                        \
    X(FETCHED, "fetched") /* an older prompt */                                          \
    X(WOKEN, "woken")     /* a turn that a wake began */

#define X(name, word) DRIVES_MARK_##name,
enum drives_mark { DRIVES_MARKS(X) DRIVES_MARK_COUNT };
#undef X

/* The tools. */
#define DRIVES_TOOLS(X)                                                                  \
    X(ADD, "add", SAFE)                                                                  \
    X(PUT, "put", KEYED)                                                                 \
    X(MAIL, "mail", PROBE)                                                               \
    X(PAY, "pay", ASK)                                                                   \
    X(BUY, "buy", KEYED)     /* with an approval; denied at the deadline */              \
    X(TRUST, "trust", SAFE)  /* the same; approved at the deadline */                    \
    X(URGENT, "urgent", ASK) /* the same; the turn fails at the deadline */              \
    X(LATER, "later", KEYED) /* deferred */                                              \
    X(FLAKY, "flaky", SAFE)  /* its first attempts fail */

#define X(name, word, class) DRIVES_TOOL_##name,
enum drives_tool { DRIVES_TOOLS(X) DRIVES_TOOL_COUNT };
#undef X

struct drives_dice {
    uint64_t state;
};
uint64_t drives_draw(struct drives_dice *dice);
unsigned drives_roll(struct drives_dice *dice, unsigned sides); /* 0 … sides - 1 */
bool drives_one_in(struct drives_dice *dice, unsigned odds);

/* One call as the model will ask for it. */
struct drives_call {
    enum drives_tool tool;
    int number;     /* its argument: unique in its turn */
    int fails;      /* flaky: so many attempts */
    hf_ms after_ms; /* flaky: each is to be retried so much later */
    bool hangs;     /* mail, pay: it happens, and is then out of time */
    bool mute;      /* mail: the probe cannot tell */
};

/* What begins a turn. */
enum drives_cause { DRIVES_BY_MESSAGE, DRIVES_BY_TRIGGER, DRIVES_BY_PROCESS };

/* One reply of the model: calls, or, in the last round, none. */
struct drives_round {
    int call_count;
    struct drives_call calls[DRIVES_CALLS];
    int fails; /* attempts of the model that fail first */
    hf_ms after_ms;
};

struct drives_turn {
    enum drives_cause cause;
    char process[DRIVES_ID]; /* whose end begins it; "": it is not registered yet */
    int round_count;
    struct drives_round rounds[DRIVES_ROUNDS + 1];
    bool cancel_told; /* REQUESTED or ALREADY was returned */
    bool cancel_perhaps;
    bool committed; /* as some caller was told */
    enum hf_status status;
};

struct drives_session {
    char id[16];
    int turn_count;
    struct drives_turn turns[DRIVES_TURNS];
    int sent; /* turns whose input is acknowledged */
    int64_t head;
};

/* A wait, as it was seen or told. */
struct drives_wait {
    char id[HF_WAIT_ID_TEXT];
    int session;
    bool opened;
    bool fails;        /* at its deadline: the turn */
    hf_ms deadline_at; /* of the open wait; 0: not seen yet */
    char kind[16];
    char state[16];
    char told[512]; /* the outcome; "": it was not told or seen yet */
    bool accepted;  /* an answer was */
    char key[HF_WAIT_KEY_TEXT];
    int number; /* of the call; -1: not known */
    char name[HF_EFFECT_KEY_ROOM + 16];
};

/* What was performed under one key, and what the journal was seen to say of it. */
struct drives_key {
    char text[160]; /* SESSION/TURN/KEY */
    int performed;
    int64_t fence; /* of the last */
    bool settled;
    uint64_t outcome; /* its hash, once it is settled */
};

/* An effect that is performed, until its answer. */
struct drives_out {
    bool used;
    hf_ms due;
    uint64_t model; /* the effect's id; 0: a call */
    uint32_t attempt;
    uint64_t iteration;
    const struct drives_call *call;
    char call_id[32];
    char key[DRIVES_ID];
    bool probe;
    bool happened; /* of a probe: what it will say */
    bool again;    /* answers once more, otherwise */
    bool sync;
};

struct drives_worker {
    const struct hf_setup *setup;
    struct hf_session_answer *claim;
    struct hf_session_answer *loaded;
    struct hf_session_answer *blob;
    const struct hf_record **records;
    uint64_t record_count;
    char base_id[24];
    struct hf_drive *drive;
    int session;
    struct drives_turn *plan;
    struct hf_drive_action job_action; /* the store call */
    int job; /* 0: none; 1: to be made at job_at; 2: made, to be told at job_at */
    hf_ms job_at;
    int job_code;
    bool cancel_requested;
    struct drives_out outs[DRIVES_OUT];
    hf_ms timer; /* 0: none */
    hf_ms valid_until, renew_at, stop_at, give_up_at;
    bool lost, ended, stopping;
    struct hf_alloc alloc;
    int64_t fail_alloc;
};

enum drives_role {
    DRIVES_WORKER,
    DRIVES_SENDER,
    DRIVES_ANSWERER,
    DRIVES_CANCELLER,
    DRIVES_MONITOR
};

struct drives_actor {
    enum drives_role role;
    hf_ms wake_at;
    bool busy; /* in a call: another actor runs in the middle of it */
    struct drives_worker *worker;
    /* The request that has no certain answer yet. */
    bool pending;
    char pending_id[HF_WAIT_ID_TEXT];
    bool pending_revoke, pending_by_key;
    unsigned pending_scope; /* of a revocation: 0 the wait, 1 its turn, 2 its session */
    enum hf_wait_word word;
    char value[64];
    int64_t idle_sweeps;
};

struct drives {
    struct drives_dice dice;
    struct drives_dice noise;
    uint64_t seed;
    uint64_t hash;
    uint64_t steps;
    uint64_t faults;
    uint64_t *marks;
    uint32_t may;   /* kinds that this schedule has */
    uint32_t fired; /* kinds that it had */
    bool healing;
    bool judging; /* the calls are the judge's: nothing goes wrong */
    hf_ms mono, wall;
    hf_ms began;
    struct hf_clock clock;
    struct hf_random random;
    struct hf_store_options options;
    struct hf_sim_hooks hooks;
    const struct hf_sim_factory *factory;
    struct hf_store *store;
    struct hf_toolset *tools;
    struct hf_surface *surfaces[2];
    struct hf_setup *setups[2];
    struct drives_session sessions[DRIVES_SESSIONS];
    int session_count;
    struct drives_actor actors[DRIVES_ACTORS];
    size_t actor_count;
    size_t worker_count;
    struct drives_wait waits[DRIVES_WAITS];
    size_t wait_count;
    struct drives_key keys[DRIVES_KEYS];
    size_t key_count;
    unsigned answer_ms; /* how often waits are answered */
    uint64_t sweeps;
    uint64_t changes; /* store calls that changed something, and expiries */
    /* The present call. */
    int nesting;
    int armed; /* a fault for its next transactions, -1: none */
    int armed_in;
    bool dead; /* the caller has died: no transaction runs any more */
    bool trace;
    char violation[600];
};

struct drives_options {
    uint64_t seed, schedules;
    uint32_t without;
    bool trace, go_on;
};

struct drives_report {
    uint64_t schedules, steps, faults, violations, hash, first_seed, first_step, sweeps;
    uint64_t fault_schedules[DRIVES_FAULT_COUNT];
    uint64_t marks[DRIVES_MARK_COUNT];
    char first[600];
    char low[200];
};

const char *drives_fault_word(enum drives_fault fault);
const char *drives_mark_word(enum drives_mark mark);
int drives_run(const struct drives_options *options, struct drives_report *ret_report);

/* drives.c */
bool drives_fault(struct drives *d, enum drives_fault fault, unsigned odds);
void drives_mark(struct drives *d, enum drives_mark mark);
void drives_note(struct drives *d, uint64_t what);
__attribute__((format(printf, 2, 3))) void drives_say(struct drives *d,
                                                      const char *format, ...);
__attribute__((format(printf, 2, 3))) void drives_violate(struct drives *d,
                                                          const char *format, ...);
/* Around each store call of an actor: draws what goes wrong in it. False from `after`: the caller
 * has died. */
void drives_before_call(struct drives *d, bool mortal);
bool drives_after_call(struct drives *d, const char *what, int code);

/* drives_plan.c: the script. */
void drives_plan(struct drives *d);
int drives_subscribe(struct drives *d, struct hf_err *err);
int drives_make_agent(struct drives *d, struct hf_err *err);
void drives_free_agent(struct drives *d);
const char *drives_tool_word(enum drives_tool tool);
/* The number of a call's arguments; -1: there is none. */
int drives_number(const char *args);
const struct drives_call *drives_call_of(const struct drives_turn *plan, const char *tool,
                                         struct hf_span args);
/* The model's event for this attempt of a round. */
void drives_reply(struct drives_worker *w, const struct drives_out *out,
                  struct hf_drive_event event);
void drives_tool_answers(struct drives_worker *w, const struct drives_out *out,
                         struct hf_drive_event event);

/* The plan of the turn with this input; NULL: it is none that was sent. */
struct drives_turn *drives_turn_of(struct drives_session *session, const char *payload);

/* drives_worker.c */
void drives_worker_step(struct drives *d, struct drives_actor *actor);
void drives_worker_drop(struct drives *d, struct drives_worker *w); /* it is gone */

/* drives_others.c */
void drives_other_step(struct drives *d, struct drives_actor *actor);
bool drives_uncertain(int code); /* the same request is to be made again */

/* drives_judge.c */
struct drives_wait *drives_wait_of(struct drives *d, const char *id);
struct drives_key *drives_key_of(struct drives *d, const char *session, const char *turn,
                                 const char *key);
/* An effect is about to be performed. */
void drives_judge_effect(struct drives *d, struct drives_worker *w, const char *key,
                         enum hf_recovery recovery);
/* A step or commit was stored under the worker's claim. */
void drives_judge_stored(struct drives *d, const struct drives_worker *w);
void drives_judge_told(struct drives *d, const struct hf_wait *wait, bool accepted);
void drives_look(struct drives *d, int session);
void drives_say_left(struct drives *d);
bool drives_ended(struct drives *d);
void drives_judge_end(struct drives *d);

#endif
