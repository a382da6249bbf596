/* The effect journal: the effects that a worker is about to perform, and their outcomes.
 *
 * An entry is written before its effect is performed (started) and settled afterwards (done,
 * failed, unknown). A worker that finds an entry decides from it whether the effect has a
 * result, is under way, or was left open by a worker that is gone. Only facts are recorded: a
 * failure of the store or the host leaves an entry as it was.
 *
 * Keys: "N" is effect N of a turn. "N/CALL_ID/ATTEMPT" is one tool call of it; ATTEMPT counts
 * from 1 and rises only when a recorded failure is retried. A takeover keeps the key.
 */
#ifndef HOLDFAST_EFFECT_H
#define HOLDFAST_EFFECT_H

#include <holdfast/turn_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What an effect belongs to. */
#define HF_SCOPES(X)                                                                     \
    X(TURN, turn)                                                                        \
    X(PROCESS, process)                                                                  \
    X(OPERATION, operation)

#define HF_ENTRY_STATUSES(X)                                                             \
    X(STARTED, started)                                                                  \
    X(DONE, done)                                                                        \
    X(FAILED, failed)                                                                    \
    X(UNKNOWN, unknown)

/* Recovery classes: what a worker may do with an effect that was started and has no result.
 *   none   not declared; no effect may have it
 *   safe   performing it again does no harm
 *   keyed  performing it again under the same key does it once
 *   probe  another function tells whether it happened
 *   ask    only a person can tell */
#define HF_RECOVERIES(X)                                                                 \
    X(NONE, none)                                                                        \
    X(SAFE, safe)                                                                        \
    X(KEYED, keyed)                                                                      \
    X(PROBE, probe)                                                                      \
    X(ASK, ask)

/* The meaning of an entry for a worker that wants to perform its effect.
 *   absent     there is none: record the intent, then perform it
 *   replay     it is settled: take the recorded result
 *   busy       its holder is alive: wait
 *   take_over  it was left open: hf_effect_recover says what to do
 *   mismatch   the key was used for another effect: stop
 *   corrupt    the entry contradicts itself: stop */
#define HF_DECISIONS(X)                                                                  \
    X(ABSENT, absent)                                                                    \
    X(REPLAY, replay)                                                                    \
    X(BUSY, busy)                                                                        \
    X(TAKE_OVER, take_over)                                                              \
    X(MISMATCH, mismatch)                                                                \
    X(CORRUPT, corrupt)

/* What to do about an effect that is taken over. */
#define HF_RECOVER_ACTS(X)                                                               \
    X(RUN, run)                                                                          \
    X(PROBE, probe)                                                                      \
    X(UNKNOWN, unknown)

#define X(name, word) HF_SCOPE_##name,
enum hf_scope { HF_SCOPES(X) };
#undef X
#define X(name, word) HF_ENTRY_##name,
enum hf_entry_status { HF_ENTRY_STATUSES(X) HF_ENTRY_STATUS_COUNT };
#undef X
#define X(name, word) HF_RECOVERY_##name,
enum hf_recovery { HF_RECOVERIES(X) HF_RECOVERY_COUNT };
#undef X
#define X(name, word) HF_DECISION_##name,
enum hf_decision { HF_DECISIONS(X) };
#undef X
#define X(name, word) HF_RECOVER_##name,
enum hf_recover_act { HF_RECOVER_ACTS(X) };
#undef X

/* Their words; "?" for a value that is none. */
HF_API const char *hf_scope_name(enum hf_scope scope);
HF_API const char *hf_entry_status_name(enum hf_entry_status status);
HF_API const char *hf_recovery_name(enum hf_recovery recovery);
HF_API const char *hf_decision_name(enum hf_decision decision);
HF_API const char *hf_recover_act_name(enum hf_recover_act act);
/* The other way; false for a word that is none. */
HF_API bool hf_entry_status_read(const char *word, enum hf_entry_status *ret_status);
HF_API bool hf_recovery_read(const char *word, enum hf_recovery *ret_recovery);

/* One entry of the journal, as it is stored.
 *   envelope   canonical JSON of the action; its bytes are its identity
 *   outcome    JSON of the result; of an unknown entry, the facts that are known
 *   fence      of a turn's entry: the session's fence under which it was started
 *   expires_at of another scope's entry: end of its lease
 *   due_at     of a failed entry that will be retried: when. 0: none */
struct hf_effect_entry {
    const char *key;
    const char *kind;
    enum hf_recovery recovery;
    enum hf_entry_status status;
    int64_t attempt;
    hf_ms due_at;
    struct hf_span envelope;
    struct hf_span outcome;
    int64_t fence;
    hf_ms expires_at;
};

/* A worker that wants to perform an effect. `fence` is the fence that it holds, `now` the time
 * of the lease clock. */
struct hf_effect_ask {
    enum hf_scope scope;
    struct hf_span envelope;
    int64_t fence;
    hf_ms now;
};

/* How an entry is settled.
 *   outcome     JSON; required
 *   usage       of a model call; NULL: none
 *   due_at      of a failure that will be retried: when. 0: never
 *   taken_over  it was performed again after a worker was lost: of a model call, a second
 *               generation may have been bought */
struct hf_effect_settled {
    const char *key;
    enum hf_entry_status status;
    struct hf_span outcome;
    const struct hf_usage *usage;
    hf_ms due_at;
    bool taken_over;
};

/* Bytes that effects refer to by their SHA-256: prompts, tool lists, options. */
struct hf_effect_blob {
    uint8_t hash[32];
    struct hf_span bytes;
};

/* The meaning of the entry; entry NULL: there is none. It depends on its arguments only. */
HF_API enum hf_decision hf_effect_decide(const struct hf_effect_entry *entry,
                                         const struct hf_effect_ask *ask);

/* What to do about an effect that is taken over, by its recorded class. can_probe: there is a
 * function that can be asked. */
HF_API enum hf_recover_act hf_effect_recover(enum hf_recovery recovery, bool can_probe);

/* HF_EEFFECT. The message has the JSON pointer to the first place where the two envelopes differ,
 * in the order of their members, as far as it fits; a hash in an envelope is a value as others. */
HF_API HF_MUST_USE int hf_effect_mismatch(const char *key, struct hf_span recorded,
                                          struct hf_span wanted, struct hf_err *err);

/* Bytes of a key, with the NUL. */
#define HF_EFFECT_KEY_ROOM 80
/* A key as text. call_id NULL: the effect as a whole; otherwise at most 31 bytes, and an
 * attempt from 1. */
HF_API void hf_effect_key(uint64_t effect, const char *call_id, int64_t attempt,
                          char ret_key[HF_EFFECT_KEY_ROOM]);

/* The parts of a key. call_id "" and attempt 0: the effect as a whole. */
struct hf_effect_name {
    uint64_t effect;
    char call_id[32];
    int64_t attempt;
};
/* False for a text that hf_effect_key does not write. */
HF_API bool hf_effect_key_read(const char *key, struct hf_effect_name *ret_name);

#ifdef __cplusplus
}
#endif
#endif
