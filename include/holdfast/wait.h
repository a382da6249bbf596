/* Waits: what an open turn waits for, as rows that any process can list and resolve.
 *
 * A wait belongs to one turn. It is named by kind and name, and its id follows from session, turn,
 * kind and name (hf_wait_id): the same wait has the same id and the same key, also before the turn
 * waits for it. A turn opens waits with a step (hf_session_step.waits). With `away` the same
 * transaction stores the save, takes the inputs to waiting_user or waiting_external and ends the
 * lease, so that no worker is needed until a wait is resolved.
 *
 *   open ──resolve──> resolved      the first answer; later calls return it
 *        ──deadline─> timed_out     by the wait's policy (hf_wait_policy)
 *        ──revoke───> cancelled     not a timer; also when the turn is cancelled, fails or ends
 *
 * When the first wait of a turn is resolved the inputs are queued again and the session is ready:
 * any worker continues the turn. Resolving before the turn waits is allowed; the outcome is kept,
 * unless the turn then names another answerer: the wait is open in this case.
 *
 * A key is a bearer capability: hfw1.KEYID.ID.MAC, where MAC is HMAC-SHA-256 over scope, kind and
 * id with a secret of the store. A key that is tampered with, unknown or revoked is always
 * HF_EWAITKEY with the same message, and nothing is written.
 *
 * Outcomes are JSON objects:
 *   {"kind":"ok","value":V}                      OK; V is null without a value
 *   {"kind":"error","message":TEXT,"value":V}    ERROR
 *   {"kind":"approve","arguments":V}             APPROVE; arguments only where they were edited
 *   {"kind":"deny","reason":TEXT}                DENY
 *   {"kind":"timeout"}                           no answer came in time
 *   {"kind":"cancelled","reason":TEXT}           revoked; reason only where one was named
 *
 * Every verb is one blocking call that may be made from any thread on one handle.
 */
#ifndef HOLDFAST_WAIT_H
#define HOLDFAST_WAIT_H

#include <holdfast/work.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of waits. The letter begins the id. */
#define HF_WAIT_KINDS(X)                                                                 \
    X(TOOL, "tool", 't')         /* a deferred call; name: the effect's key */           \
    X(APPROVAL, "approval", 'a') /* of a call, or a question about one; the same name */ \
    X(SIGNAL, "signal", 's')     /* name: the signal's */                                \
    X(TIMER, "timer", 'i')       /* name: the effect's key; due at deadline_at */        \
    X(CUSTOM, "custom", 'c')     /* name: the host's */
#define X(name, word, letter) HF_WAIT_##name,
enum hf_wait_kind { HF_WAIT_KINDS(X) HF_WAIT_KIND_COUNT };
#undef X
HF_API const char *hf_wait_kind_word(enum hf_wait_kind kind); /* NULL past the last */

#define HF_WAIT_STATES(X)                                                                \
    X(OPEN, "open")                                                                      \
    X(RESOLVED, "resolved")                                                              \
    X(CANCELLED, "cancelled")                                                            \
    X(TIMED_OUT, "timed_out")
#define X(name, word) HF_WAIT_IS_##name,
enum hf_wait_state { HF_WAIT_STATES(X) HF_WAIT_STATE_COUNT };
#undef X
HF_API const char *hf_wait_state_word(enum hf_wait_state state); /* NULL past the last */

/* What happens at the deadline. NONE is refused, except of a timer, which has no other.
 *   result     the outcome is {"kind":"timeout"}, and the turn continues with it
 *   fail_turn  the same, and the turn's other waits are cancelled. Inputs that wait end as timeout
 *              at once; the turn's next owner ends the turn as timeout
 *   deny       the outcome is a denial; approvals only
 *   approve    the outcome is an approval; approvals only
 *   next       another answerer gets next_ms more; then next_policy applies */
#define HF_WAIT_POLICIES(X)                                                              \
    X(NONE, "")                                                                          \
    X(RESULT, "result")                                                                  \
    X(FAIL_TURN, "fail_turn")                                                            \
    X(DENY, "deny")                                                                      \
    X(APPROVE, "approve")                                                                \
    X(NEXT, "next")
#define X(name, word) HF_AT_DEADLINE_##name,
enum hf_wait_policy { HF_WAIT_POLICIES(X) HF_WAIT_POLICY_COUNT };
#undef X
HF_API const char *hf_wait_policy_word(
    enum hf_wait_policy policy); /* NULL past the last */

#define HF_WAIT_ANSWERS(X)                                                               \
    X(OK, "ok")                                                                          \
    X(ERROR, "error")                                                                    \
    X(APPROVE, "approve")                                                                \
    X(DENY, "deny")
#define X(name, word) HF_ANSWER_##name,
enum hf_wait_word { HF_WAIT_ANSWERS(X) HF_WAIT_WORD_COUNT };
#undef X
HF_API const char *hf_wait_answer_word(enum hf_wait_word word); /* NULL past the last */

#define HF_WAIT_ID_TEXT 72   /* with the NUL */
#define HF_WAIT_KEY_TEXT 160 /* with the NUL */

/* The id of a wait: it depends on its arguments only. turn_id is the turn's (a UUID). HF_EINVAL for
 * a name or turn that is none. */
HF_API HF_MUST_USE int hf_wait_id(const char *turn_id, enum hf_wait_kind kind,
                                  const char *name, char ret_id[HF_WAIT_ID_TEXT],
                                  struct hf_err *err);

/* A wait that a turn opens. */
struct hf_wait_spec {
    uint32_t size;
    enum hf_wait_kind kind;
    const char *name;     /* see hf_wait_kind */
    const char *asked;    /* JSON object; NULL: none. question: a text for a person; call:
                             {"name","arguments"}; edits: a JSON Schema that edited arguments
                             must fit, or true for any (absent: no edits) */
    const char *answerer; /* the actor that may answer; NULL: any */
    hf_ms deadline_at; /* wall; 0: now + the policy's wait_user_ms or wait_external_ms */
    enum hf_wait_policy policy;
    const char *next_answerer;       /* of NEXT: required */
    hf_ms next_ms;                   /* of NEXT: 0: as long as the first answerer had */
    enum hf_wait_policy next_policy; /* of NEXT: required, and not NEXT */
    hf_ms escalate_at;               /* wall; 0: never */
    const char *escalate; /* "work:KIND": create a unit; "event" or NULL: an event only */
};

/* A wait as readers see it. Texts are NULL where there is none, times are 0. */
struct hf_wait {
    const char *wait_id;
    const char *session_id;
    const char *turn_id;
    const char *tenant;
    const char *agent;
    const char *kind;
    const char *name;
    const char *state;
    const char *asked; /* JSON */
    const char *answerer;
    const char *policy; /* what happens at deadline_at */
    const char *next_answerer;
    const char *next_policy;
    const char *escalate;
    const char *outcome; /* JSON, once it is not open */
    const char
        *actor_kind; /* of the one that resolved, revoked or swept it; while it is open:
                               of an early answer that did not count */
    const char *actor;
    hf_ms deadline_at;
    hf_ms escalate_at; /* 0: none, or it has been done */
    hf_ms opened_at;   /* 0: resolved before the turn waited */
    hf_ms closed_at;
};

/* The answer of a verb. It owns all that it shows. */
struct hf_wait_answer {
    const struct hf_wait *waits;
    size_t wait_count;
    const char *next; /* list: cursor of the next page, or NULL */
    bool
        accepted; /* resolve: this answer is the wait's outcome; false: the first one is */
    int64_t revoked; /* revoke: waits that became cancelled now */
};
HF_API void hf_wait_answer_free(struct hf_wait_answer *answer); /* NULL is fine */

/* ---- keys -------------------------------------------------------------------------- */

/* The key of a wait, whether or not it is open yet. The first key makes the store's first secret.
 * HF_EINVAL for an id that is none. */
HF_API HF_MUST_USE int hf_wait_key(struct hf_store *store, const char *wait_id,
                                   char ret_key[HF_WAIT_KEY_TEXT], struct hf_err *err);

/* Make a new secret. Keys of the one before hold for `valid_ms` more; older secrets end now.
 * HF_EINVAL, and the errors of a store. */
HF_API HF_MUST_USE int hf_wait_rotate(struct hf_store *store, const struct hf_caller *who,
                                      hf_ms valid_ms, struct hf_err *err);

/* ---- resolve, revoke --------------------------------------------------------------- */

struct hf_wait_resolve {
    uint32_t size;
    const char *key;     /* a key, or */
    const char *wait_id; /* an id, by a caller that may write the store */
    enum hf_wait_word
        word;           /* APPROVE and DENY of an approval, OK and ERROR of any other */
    const char *value;  /* JSON; APPROVE: edited arguments; NULL: none */
    const char *reason; /* ERROR: its message; DENY: why; NULL: none */
};

/* Answer a wait: outcome, inputs queued, session ready, one transaction. The first answer is the
 * outcome; a later one returns the wait with accepted = false. A wait that its turn has not opened
 * yet is stored as resolved, as long as the turn is open; if the turn then names another answerer,
 * that answer does not count and the wait is open. HF_EWAITKEY (by key) or HF_ENOTFOUND (by
 * id), HF_EANSWERER for an actor that may not answer, HF_EINVAL for an answer that does not fit the
 * kind or for edited arguments that do not fit. */
HF_API HF_MUST_USE int hf_wait_resolve(struct hf_store *store,
                                       const struct hf_caller *who,
                                       const struct hf_wait_resolve *request,
                                       struct hf_wait_answer **ret_answer,
                                       struct hf_err *err);

struct hf_wait_revoke {
    uint32_t size;
    const char *session_id; /* all waits of this session's open turn, or */
    const char *turn_id;    /* those of this turn of the session, or */
    const char *wait_id;    /* this one (session_id and turn_id NULL) */
    const char *reason;     /* NULL: none */
};

/* Cancel waits for good. Open ones become cancelled and their turn continues with that outcome;
 * their keys, and those of waits that the turn has not opened yet, are refused from then on. Timers
 * stay: a pause is no question, and it ends when it is due. The turn itself is not cancelled
 * (hf_session_cancel_turn). HF_ENOTFOUND, HF_EINVAL for a timer's id. */
HF_API HF_MUST_USE int hf_wait_revoke(struct hf_store *store, const struct hf_caller *who,
                                      const struct hf_wait_revoke *request,
                                      struct hf_wait_answer **ret_answer,
                                      struct hf_err *err);

/* ---- read -------------------------------------------------------------------------- */

struct hf_wait_filter {
    uint32_t size;
    const char *session_id; /* NULL: any; the same for the others */
    const char *kind;
    const char *answerer;
    bool closed;       /* also those that are not open; with session_id only */
    size_t limit;      /* 0: 100, at most 1,000 */
    const char *after; /* cursor of an earlier answer */
};

/* Open waits of the caller's tenant, or of all where it names none, the next deadline first.
 * HF_EINVAL names the field, HF_ETOOBIG for `limit`, and the errors of a store. */
HF_API HF_MUST_USE int hf_wait_list(struct hf_store *store, const struct hf_caller *who,
                                    const struct hf_wait_filter *filter,
                                    struct hf_wait_answer **ret_answer,
                                    struct hf_err *err);

/* One wait by its id, whatever its state. HF_ENOTFOUND. */
HF_API HF_MUST_USE int hf_wait_get(struct hf_store *store, const struct hf_caller *who,
                                   const char *wait_id,
                                   struct hf_wait_answer **ret_answer,
                                   struct hf_err *err);

#ifdef __cplusplus
}
#endif
#endif
