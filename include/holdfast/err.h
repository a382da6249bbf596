/* Errors: one table of codes, one caller-owned record of the detail.
 *
 * Every fallible call returns 0 or a negative HF_E* code. What a caller must do about a
 * code is part of the code: its class, its action, its exit code and its HTTP status are
 * in the same table as its text, so that they cannot drift apart.
 */
#ifndef HOLDFAST_ERR_H
#define HOLDFAST_ERR_H

#ifdef __cplusplus
extern "C" {
#endif

#define HF_API __attribute__((visibility("default")))
#define HF_MUST_USE __attribute__((warn_unused_result))

enum hf_class {
    HF_CLASS_TERMINAL,  /* the same call will fail again                     */
    HF_CLASS_RETRYABLE, /* nothing was written; the same call may succeed    */
    HF_CLASS_UNKNOWN    /* it may or may not have happened: ask, then decide */
};

/* name, value, wire code, text, class, action, exit code, HTTP status */
#define HF_ERRORS(X)                                                                     \
    X(INTERNAL, -1, "internal", "internal error", TERMINAL,                              \
      "report this with the message and the output of `holdfast doctor`", 1, 500)        \
    X(NOMEM, -2, "out_of_memory", "out of memory", RETRYABLE, "free memory, then retry", \
      1, 503)                                                                            \
    X(INVAL, -3, "invalid_argument", "invalid argument", TERMINAL,                       \
      "correct the named field", 2, 400)                                                 \
    X(TOOBIG, -4, "too_large", "over a limit", TERMINAL,                                 \
      "make the named field smaller; `holdfast bounds` lists the bounds", 2, 413)        \
    X(NOTFOUND, -5, "not_found", "not found", TERMINAL, "check the id or name", 3, 404)  \
    X(AMBIGUOUS, -6, "ambiguous_id", "several rows match", TERMINAL,                     \
      "use the whole id, or more characters of it", 3, 409)                              \
    X(TRANSITION, -7, "illegal_transition", "this status does not allow that", TERMINAL, \
      "look at the row with `holdfast work show`", 4, 409)                               \
    X(POLICY, -8, "policy_unmet", "the row's policy asks for more", TERMINAL,            \
      "add what the message names, then retry", 4, 409)                                  \
    X(LEASELOST, -9, "lease_lost", "the lease is no longer yours", TERMINAL,             \
      "stop this work; claim again to continue", 5, 409)                                 \
    X(HELD, -10, "lease_held", "another holder has the lease", RETRYABLE,                \
      "wait for the holder, then retry", 6, 409)                                         \
    X(BUSY, -11, "busy", "the store is busy", RETRYABLE, "retry later", 6, 503)          \
    X(UNREACHABLE, -12, "unreachable", "the store cannot be reached", RETRYABLE,         \
      "check the address and that the store runs, then retry", 6, 503)                   \
    X(CONFLICT, -13, "conflict", "the same key was used with other content", TERMINAL,   \
      "use a new key, or repeat the first request unchanged", 7, 409)                    \
    X(UNCERTAIN, -14, "outcome_uncertain", "the outcome is not known", UNKNOWN,          \
      "read the row before doing anything again", 8, 503)                                \
    X(CORRUPT, -15, "corrupt", "stored data failed its check", TERMINAL,                 \
      "restore it from a backup; after a store, run `holdfast store bump`", 9, 500)      \
    X(NOTSTORE, -16, "not_a_store", "not a Holdfast store", TERMINAL,                    \
      "name the address of a Holdfast store, or of a new one", 9, 500)                   \
    X(SCHEMA, -17, "schema_newer", "the store has a newer schema", TERMINAL,             \
      "use a newer holdfast", 9, 500)                                                    \
    X(FULL, -18, "store_full", "no space left for the store", TERMINAL,                  \
      "free disk space; nothing was written", 9, 507)                                    \
    X(READONLY, -19, "store_read_only", "the store cannot be written", TERMINAL,         \
      "check who may write: to the file and its folder, or to a server's schema", 9,     \
      500)                                                                               \
    X(STOREIO, -20, "store_io", "the store's disk reported an error", TERMINAL,          \
      "check the disk; run `holdfast doctor`", 9, 500)                                   \
    X(CLOCK, -21, "foreign_clock", "the store belongs to another time namespace",        \
      TERMINAL, "open the file from the namespace that uses it", 9, 500)                 \
    X(OVERFLOW, -22, "counter_exhausted", "a counter has reached its ceiling", TERMINAL, \
      "run `holdfast doctor`", 9, 500)                                                   \
    X(GUARD, -23, "guard_unmet", "a guarded write found other data", RETRYABLE,          \
      "read again, then retry", 1, 500)                                                  \
    X(SCHEMAOLD, -24, "schema_older", "the store has an older schema", TERMINAL,         \
      "run `holdfast migrate`", 9, 500)                                                  \
    X(STALE, -40, "stale_effect", "the response is for an effect that is not out",       \
      TERMINAL, "drop the response; poll for what is out", 4, 409)                       \
    X(RESPONSE, -41, "wrong_response", "the effect that is out takes another response",  \
      TERMINAL, "answer the effect with the response of its kind", 4, 409)               \
    X(FINISHED, -42, "turn_finished", "the turn has ended", TERMINAL,                    \
      "drop the response; the outcome is final", 4, 409)                                 \
    X(ANSWERED, -43, "already_answered", "the call is answered already", TERMINAL,       \
      "drop this answer; the first is kept", 4, 409)                                     \
    X(NOCALL, -44, "unknown_call", "the batch has no such call", TERMINAL,               \
      "answer only calls of the batch", 3, 404)                                          \
    X(NOTSAVE, -45, "not_a_save", "these bytes are no save of a turn", TERMINAL,         \
      "pass the bytes that a save returned", 9, 422)                                     \
    X(FOREIGN, -46, "foreign_save", "the save belongs to another turn", TERMINAL,        \
      "pass the save of this session and turn", 7, 409)                                  \
    X(NEWER, -47, "save_newer", "the save was written by a newer version", TERMINAL,     \
      "use a newer holdfast", 9, 422)                                                    \
    X(BASE, -48, "base_differs", "the history under the turn is gone or another",        \
      TERMINAL, "load the history that the save names", 7, 409)                          \
    X(BLOB, -49, "blob_missing", "a prompt or tool list of the turn is gone or another", \
      TERMINAL, "pass a resolver that knows the hash", 7, 409)                           \
    X(PROTOCOL, -50, "protocol_fault", "the turn's protocol broke its rules", TERMINAL,  \
      "fail the turn; correct the protocol", 1, 500)                                     \
    X(CELL, -60, "cell_failed", "the cell did not end well", TERMINAL,                   \
      "correct the cell as its message says", 2, 422)                                    \
    X(SESSIONBUSY, -70, "session_busy", "another owner holds the session", RETRYABLE,    \
      "wait for the holder, then retry", 6, 409)                                         \
    X(SESSIONLOST, -71, "session_lease_lost", "the session's lease is no longer yours",  \
      RETRYABLE, "open the session again, then retry", 5, 409)                           \
    X(HEADMOVED, -72, "head_moved", "the session's head is another one", UNKNOWN,        \
      "load the session again, then decide", 7, 409)                                     \
    X(SESSIONDELETED, -73, "session_deleted", "the session was deleted", TERMINAL,       \
      "use another session id: this one is never used again", 3, 410)                    \
    X(SUPERSEDED, -74, "claim_superseded", "the turn or its inputs are another claim's", \
      TERMINAL, "drop this turn; claim the session again to continue", 5, 409)           \
    X(CANCELASKED, -75, "cancel_requested", "a cancel of the turn was asked for before", \
      TERMINAL, "cancel the turn, then commit it as cancelled", 4, 409)                  \
    X(EFFECT, -80, "effect_mismatch", "the key was recorded for another effect",         \
      TERMINAL, "look at the turn with `holdfast doctor`; use another key", 7, 409)      \
    X(WAITKEY, -85, "wait_key_unknown", "no wait can be answered with this key",         \
      TERMINAL, "check the key; ask for a new one", 3, 404)                              \
    X(ANSWERER, -86, "not_the_answerer", "this actor may not answer the wait", TERMINAL, \
      "let the answerer answer that `holdfast wait show` names", 4, 403)                 \
    X(NOTCONFIGURED, -90, "not_configured", "no model is configured", TERMINAL,          \
      "name a model in the configuration: `holdfast config check` says what is missing", \
      2, 422)

enum hf_err_code {
    HF_OK = 0,
#define X(name, value, wire, text, class, action, exit, http) HF_E##name = (value),
    HF_ERRORS(X)
#undef X
};

/* Detail of one failure. The caller owns it; a call that succeeds leaves it untouched. A
 * call given NULL keeps the detail to itself. No secret is ever put into it. */
struct hf_err {
    int code;
    char field[40]; /* the input or column at fault, "" where none is */
    char message[240];
};

/* The columns of the table for a code; unknown codes are answered as HF_EINTERNAL. HF_OK is
 * "ok" with exit code 0 and HTTP status 200. */
HF_API const char *hf_err_wire(int code);
HF_API const char *hf_err_text(int code);
HF_API const char *hf_err_action(int code);
HF_API enum hf_class hf_err_class(int code);
HF_API const char *hf_class_name(enum hf_class class_);
HF_API int hf_err_exit(int code);
HF_API int hf_err_http(int code);

#ifdef __cplusplus
}
#endif
#endif
