/* Waits of turns: their ids and keys, what an answer is, what a deadline does. Pure functions. The
 * store reads, asks, and writes under a guard. */
#ifndef HF_CORE_WAIT_WAIT_H
#define HF_CORE_WAIT_WAIT_H

#include <holdfast/wait.h>

#include "base/arena.h"
#include "base/ident.h"

/* Words that are read; false for one that is unknown. NULL is the policy NONE. */
bool hf_wait_kind_of(const char *word, enum hf_wait_kind *ret_kind);
bool hf_wait_state_of(const char *word, enum hf_wait_state *ret_state);
bool hf_wait_policy_of(const char *word, enum hf_wait_policy *ret_policy);
bool hf_wait_answer_of(const char *word, enum hf_wait_word *ret_word);

/* The parts of an id; false for a text that is no id. */
struct hf_wait_place {
    enum hf_wait_kind kind;
    char turn_id[HF_UUID_TEXT];
};
bool hf_wait_id_read(const char *wait_id, struct hf_wait_place *ret_place);

/* Checks the reference by which a unit is to be resumed; `ref` may be NULL. HF_EINVAL naming
 * `field` where it is the id of a wait: a wait is answered, also where a unit shows its id. */
HF_MUST_USE int hf_wait_ref_check(const char *ref, const char *field, struct hf_err *err);

/* A secret with which keys are made and checked. */
#define HF_WAIT_KEYID_TEXT 9 /* with the NUL */
struct hf_wait_secret {
    char key_id[HF_WAIT_KEYID_TEXT];
    uint8_t bytes[HF_DIGEST_BYTES];
};

/* The key of an id, which has been read. HF_ENOMEM. */
HF_MUST_USE int hf_wait_key_write(const struct hf_wait_secret *secret,
                                  const char *wait_id, char ret_key[HF_WAIT_KEY_TEXT],
                                  struct hf_err *err);
/* The parts of a key; false for a text that is no key. The MAC is not checked. */
struct hf_wait_claim {
    char key_id[HF_WAIT_KEYID_TEXT];
    char wait_id[HF_WAIT_ID_TEXT];
    uint8_t mac[HF_DIGEST_BYTES];
};
bool hf_wait_key_read(const char *key, struct hf_wait_claim *ret_claim);
/* Whether the claim was made with this secret. Takes the same time for all MACs. */
bool hf_wait_key_holds(const struct hf_wait_claim *claim,
                       const struct hf_wait_secret *secret);

/* Checks of what a turn wants to open. HF_EINVAL, HF_ETOOBIG with the field. */
HF_MUST_USE int hf_wait_spec_check(const struct hf_wait_spec *wait, struct hf_err *err);

/* A wait as its row will be. */
struct hf_wait_opening {
    hf_ms deadline_at;
    hf_ms check_at; /* 0: no sweep acts on it */
    hf_ms next_ms;
};
/* `budget_ms` is the policy's, for a wait without a deadline of its own. */
struct hf_wait_opening hf_wait_open(const struct hf_wait_spec *wait, hf_ms now,
                                    hf_ms budget_ms);

/* The outcome of an answer, as canonical JSON in the arena. HF_EINVAL naming "answer" where the
 * answer does not fit the kind. */
HF_MUST_USE int hf_wait_outcome(struct hf_arena *arena, enum hf_wait_kind kind,
                                const struct hf_wait_resolve *answer,
                                const char **ret_outcome, struct hf_err *err);
/* The outcome of a wait that is revoked; `reason` may be NULL. HF_ENOMEM. */
HF_MUST_USE int hf_wait_cancelled(struct hf_arena *arena, const char *reason,
                                  const char **ret_outcome, struct hf_err *err);
/* May the arguments of the call that was asked about be replaced by these? HF_EINVAL naming
 * "value". `asked` may be NULL. */
HF_MUST_USE int hf_wait_edits_check(const struct hf_alloc *alloc, const char *asked,
                                    const char *value, struct hf_err *err);

#define HF_WAIT_OUTCOME_CANCELLED "{\"kind\":\"cancelled\"}"
#define HF_WAIT_OUTCOME_TIMER "{\"kind\":\"ok\",\"value\":null}"

/* The change of a wait by a sweep, when its check_at has come. */
enum hf_wait_act {
    HF_WAIT_ESCALATE, /* tells, and looks again at the deadline */
    HF_WAIT_PASS_ON,  /* the next answerer's time begins */
    HF_WAIT_EXPIRE,   /* it is closed as timed_out, and the turn continues */
    HF_WAIT_FAIL      /* the same, and the turn's units end */
};
struct hf_wait_due {
    enum hf_wait_act act;
    const char *outcome; /* of EXPIRE and FAIL */
    hf_ms deadline_at;   /* of the others, as it is then */
};
struct hf_wait_due hf_wait_due(const struct hf_wait *wait, hf_ms next_ms, hf_ms now);

#endif
