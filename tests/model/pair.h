/* Two stores in lockstep: the model and another, under one clock. After each operation the
 * answers and all raw rows and events are compared. */
#ifndef TESTS_MODEL_PAIR_H
#define TESTS_MODEL_PAIR_H

#include <holdfast/journal.h>
#include <holdfast/sys/store.h>

#include "base/arena.h"
#include "model/model.h"

enum { MODEL, OTHER, SIDES };

#define PAIR_UNITS 512
#define PAIR_TOKENS 4 /* the last tokens of a unit that are remembered */

struct pair_unit {
    const char *id[SIDES];
    const char *token[PAIR_TOKENS][SIDES]; /* newest first */
};

#define PAIR_NAMES 4096
#define PAIR_BUCKETS 1024

/* An id or nonce of the model's and the other store's for the same thing. */
struct pair_name {
    const char *of[SIDES];
    size_t next[SIDES]; /* of the same bucket; 0 ends it */
};

/* What operations on sessions and the journal have come to, of both stores. */
#define PAIR_REACHES(X)                                                                  \
    X(CREATED, "created")                                                                \
    X(CREATE_CONFLICT, "other content under an id")                                      \
    X(TURN_BEGUN, "a turn begun")                                                        \
    X(TURN_DISPLACED, "a turn taken from a lapsed lease")                                \
    X(NO_SESSION, "a claim that found none")                                             \
    X(BUSY, "session_busy")                                                              \
    X(STEPPED, "a step")                                                                 \
    X(STEP_REPEATED, "a repeated step")                                                  \
    X(COMMITTED, "a commit")                                                             \
    X(COMMIT_STEPPED, "a commit after steps")                                            \
    X(COMMIT_REPEATED, "a repeated commit")                                              \
    X(COMMIT_CONFLICT, "a commit with other content")                                    \
    X(LOST, "session_lease_lost")                                                        \
    X(HEAD_MOVED, "head_moved")                                                          \
    X(SUPERSEDED, "claim_superseded")                                                    \
    X(NO_BLOB, "a blob that is not stored")                                              \
    X(RELEASED, "a release")                                                             \
    X(HANDED_BACK, "a turn handed back")                                                 \
    X(EFFECT_BEGUN, "an effect begun")                                                   \
    X(EFFECT_SETTLED, "an effect settled")                                               \
    X(EFFECT_REFUSED, "an effect that does not fit")                                     \
    X(EFFECT_UNKNOWN, "an effect of unknown outcome")                                    \
    X(PUT_AWAY, "a turn put away")                                                       \
    X(ANSWERED, "a wait answered")                                                       \
    X(ANSWERED_AGAIN, "a wait answered again")                                           \
    X(REVOKED, "a wait revoked")                                                         \
    X(CANCEL_ASKED, "a cancel of a turn")                                                \
    X(JOURNAL_BEGUN, "an effect of a scope begun")                                       \
    X(JOURNAL_BUSY, "an effect of a scope that is performed")                            \
    X(JOURNAL_TAKEN, "an effect of a scope taken over")                                  \
    X(JOURNAL_REPLAYED, "an effect of a scope that has an outcome")                      \
    X(JOURNAL_MISMATCH, "another effect of a scope under a key")                         \
    X(JOURNAL_SETTLED, "an effect of a scope settled")                                   \
    X(JOURNAL_LOST, "a lost lease of an effect of a scope")                              \
    X(JOURNAL_UNKNOWN, "an effect of a scope that needs a person")                       \
    X(JOURNAL_RESOLVED, "an effect of a scope resolved")                                 \
    X(JOURNAL_HELD, "an effect of a scope that is held and not resolved")                \
    X(JOURNAL_RETIRED, "a scope retired")
#define X(name, text) PAIR_##name,
enum pair_reach { PAIR_REACHES(X) PAIR_REACH_COUNT };
#undef X

#define PAIR_SESSIONS 3
#define PAIR_TALKS 3 /* the last claims of a session that are remembered */

/* What the holder of a session knows of its open turn. */
struct pair_talk {
    const char *token[SIDES]; /* NULL: nothing was claimed */
    const char *turn_id[SIDES];
    int64_t head_revision;
    int64_t record_count;
    int64_t step;
    int64_t node_count;
    uint8_t chain[32];
    const char *begun; /* key of the last effect that was begun; NULL: none */
};

#define PAIR_HOLDS 4 /* the last effects of scopes that were begun or taken over */
struct pair_hold {
    struct hf_journal_key of[SIDES];
    const char *token[SIDES]; /* NULL: there is none yet */
};

struct pair_random {
    struct pair *pair;
    uint64_t state;
};

/* How the other store is opened, and opened again (NULL: it cannot be). */
struct pair_factory {
    void *user;
    int (*open)(void *user, const struct hf_store_options *options,
                struct hf_store **ret_store, struct hf_err *err);
    int (*again)(void *user, const struct hf_store_options *options,
                 struct hf_store **ret_store, struct hf_err *err);
    void (*discard)(void *user);
};

struct pair {
    const struct pair_factory *factory;
    struct model_disk *disk;
    struct hf_store *store[SIDES];
    struct hf_store_options options[SIDES];
    struct hf_clock clock;
    struct hf_random random[SIDES];
    struct pair_random source[SIDES];
    hf_ms wall;
    hf_ms mono;
    uint64_t seed;
    uint64_t step;
    struct hf_arena arena;
    struct pair_unit units[PAIR_UNITS];
    size_t unit_count;
    struct pair_name names[PAIR_NAMES]; /* from 1 */
    size_t buckets[PAIR_BUCKETS][SIDES];
    size_t name_count;
    struct pair_hold holds[PAIR_HOLDS];                /* newest first */
    uint64_t reached;                                  /* enum pair_reach */
    struct pair_talk talks[PAIR_SESSIONS][PAIR_TALKS]; /* newest first */
    char feed_at[SIDES][128]; /* the cursor of a reader of the feed; "": at the start */
    bool gate_may_move;       /* of rows that a batch found and returned */
    char did[1024];           /* the operation, for people */
    char complaint[1024];     /* "" while the stores agree */
};

/* False: a store could not be opened, and the complaint says why. */
bool pair_open(struct pair *pair, const struct pair_factory *factory, uint64_t seed);
void pair_close(struct pair *pair);
void pair_reopen(struct pair *pair);

/* Draws the next operation from `chance`, applies it to both and compares. */
void pair_step(struct pair *pair, uint64_t chance);

struct dice;
/* Now and then another unit, for whose close rule something can be done, and the verb for that;
 * otherwise HF_VERB_NONE. pair_rule_met fills the close-out of such a wait (plan_rule.c). */
enum hf_verb pair_rule(struct pair *pair, struct dice *dice,
                       const struct pair_unit **unit);
void pair_rule_met(struct dice *dice, struct hf_change *c);

/* One operation on sessions (plan_session.c). */
void pair_session(struct pair *pair, struct dice *dice);
/* Operations on waits of the session with this id and index (plan_wait.c). */
void pair_wait_step(struct pair *pair, struct dice *dice, const char *id, size_t at);
void pair_wait_resolve(struct pair *pair, struct dice *dice, const char *id, size_t at);
void pair_wait_revoke(struct pair *pair, struct dice *dice, const char *id, size_t at);
void pair_wait_cancel(struct pair *pair, struct dice *dice, const char *id, size_t at);
/* One operation on the journal of processes and operations (plan_journal.c). */
void pair_journal(struct pair *pair, struct dice *dice);

/* ---- shared by pair.c and plan.c ------------------------------------------------------- */

void pair_say(struct pair *pair, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void pair_differ(struct pair *pair, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *pair_text(struct pair *pair, const char *text);

/* The same text, except ids and nonces, which are matched one to one. */
bool pair_same(struct pair *pair, const char *model, const char *other);
void pair_codes(struct pair *pair, const char *what, int model, int other);
/* Compares and keeps ids and tokens; frees both. Either may be NULL. */
void pair_answers(struct pair *pair, const int codes[SIDES],
                  struct hf_answer *const answers[SIDES], unsigned flags);
void pair_everything(struct pair *pair);

#endif
