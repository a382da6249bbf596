/* The effect journal of a host: effects of background processes and of operations of the host's
 * own. (Effects of turns are journaled by the driver; see worker.h.)
 *
 * An effect is begun before it is performed and settled afterwards. Its key is unique in its
 * scope. The handle that began it holds a lease on it, and renews the lease while the effect is
 * performed. When a process dies, the next begin under the same key takes the effect over once the
 * lease has lapsed, and says what the declared class allows. Where only a person can say what
 * became of the effect, an operator resolves it.
 *
 * Threads: any, on one handle. The texts of an answer live until the answer is freed.
 */
#ifndef HOLDFAST_JOURNAL_H
#define HOLDFAST_JOURNAL_H

#include <holdfast/effect.h>
#include <holdfast/work.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An effect of one scope. `scope` is PROCESS or OPERATION, scope_id the id of the process, or a
 * name of the host's for the operation. Both texts are 1 to 191 bytes. */
struct hf_journal_key {
    enum hf_scope scope;
    const char *scope_id;
    const char *key;
};

/* The effect that is about to be performed.
 *   envelope   JSON of the action; its canonical form is the effect's identity
 *   recovery   required
 *   can_probe  the caller has a function that tells whether a `probe` effect happened
 *   owner      for readers; required
 *   nonce      makes the call repeatable: the same nonce gets the same token. NULL: a fresh one
 *   ttl_ms     of the lease; 0: 30 s */
struct hf_journal_begin {
    uint32_t size;
    struct hf_journal_key of;
    const char *kind;
    enum hf_recovery recovery;
    const char *envelope;
    bool can_probe;
    const char *owner;
    const char *nonce;
    hf_ms ttl_ms;
};

/* The decision of a begin: what to do now.
 *   ABSENT     it was begun: perform it, then settle it with `token`
 *   TAKE_OVER  it is held now, with `token`: `act` says to perform it again, to ask the probe, or
 *              to settle it as unknown
 *   REPLAY     it is settled: `status` and `outcome`
 *   BUSY       another holder performs it, for busy_ms at most unless it renews */
struct hf_journal_answer {
    enum hf_decision decision;
    enum hf_recover_act act;
    enum hf_entry_status status;
    const char *outcome;
    const char *token;
    int64_t fence;
    hf_ms busy_ms;
};

/* Begins an effect, or finds out what became of it. HF_EEFFECT: the key was used for another
 * effect; the message has the path at which the envelopes differ. HF_ECORRUPT: the entry
 * contradicts itself. HF_EINVAL names the field. */
HF_API HF_MUST_USE int hf_journal_begin(struct hf_store *store,
                                        const struct hf_caller *caller,
                                        const struct hf_journal_begin *begin,
                                        struct hf_journal_answer **ret_answer,
                                        struct hf_err *err);
HF_API void hf_journal_answer_free(struct hf_journal_answer *answer);

/* Extends the lease by its term. HF_ELEASELOST: it lapsed, the effect was taken over or settled;
 * stop performing it. */
HF_API HF_MUST_USE int hf_journal_renew(struct hf_store *store,
                                        const struct hf_journal_key *of,
                                        const char *token, struct hf_err *err);

/* Records what came of the effect, as JSON: done, failed or unknown. A repeat with the same token,
 * status and outcome is 0; other content is HF_ECONFLICT. HF_ELEASELOST: the lease is not held any
 * more, and nothing was recorded. */
HF_API HF_MUST_USE int hf_journal_settle(struct hf_store *store,
                                         const struct hf_journal_key *of,
                                         const char *token, enum hf_entry_status status,
                                         const char *outcome, struct hf_err *err);

/* Removes all entries of a scope, such as those of a process that has ended. HF_EHELD: one of them
 * is performed; nothing is removed. (A prune of a process removes its entries, held or not.) */
HF_API HF_MUST_USE int hf_journal_retire(struct hf_store *store, enum hf_scope scope,
                                         const char *scope_id, int64_t *ret_count,
                                         struct hf_err *err);

/* An effect whose outcome is not known, or was reported by an operator.
 *   status      started: its holder's lease lapsed; unknown; of a resolved one the new status
 *   envelope    as begun, and outcome: as settled. NULL where it is longer than 2,048 characters;
 *               the view runtime_scope_effect has it
 *   known       of a resolved one: its earlier outcome; NULL: it was not settled
 *   settled_at  0: not settled; resolved_at 0: not resolved, and actor_kind and actor are NULL */
struct hf_journal_effect {
    const char *scope;
    const char *scope_id;
    const char *key;
    const char *tenant;
    const char *kind;
    const char *recovery;
    const char *status;
    const char *owner;
    const char *envelope;
    const char *outcome;
    const char *known;
    hf_ms started_at;
    hf_ms settled_at;
    hf_ms resolved_at;
    const char *actor_kind;
    const char *actor;
};

/* Owns all the memory that it shows. */
struct hf_journal_effects {
    const struct hf_journal_effect *items;
    size_t count;
    const char *next; /* cursor of the rest; NULL: that was all */
};
HF_API void hf_journal_effects_free(
    struct hf_journal_effects *effects); /* NULL is fine */

/* Effects that need a person to say what became of them, in the order of scope, scope_id and key:
 *   - those that were settled as unknown, and
 *   - those whose lease lapsed without an outcome, if their class is `ask`, or if it is not `safe`
 *     and they belong to a process that has ended.
 * Of the caller's tenant, or of all where it names none. At most `limit` (0: 100), after the cursor
 * `after` (NULL: from the first). HF_EINVAL for the cursor, HF_ETOOBIG for `limit`, and the errors
 * of a store. */
HF_API HF_MUST_USE int hf_journal_unknown(struct hf_store *store,
                                          const struct hf_caller *who, const char *after,
                                          size_t limit,
                                          struct hf_journal_effects **ret_effects,
                                          struct hf_err *err);

/* The decision of an operator about an effect.
 *   status   done, failed, or unknown: it stays unknown, and needs no person any more
 *   outcome  JSON, which later begins of the effect return. NULL: {"reason":REASON}
 *   reason   instead of an outcome. One of the two is required */
struct hf_journal_resolve {
    uint32_t size;
    struct hf_journal_key of;
    enum hf_entry_status status;
    const char *outcome;
    const char *reason;
};

/* Records the decision of an operator about an effect that was settled as unknown, or whose lease
 * lapsed without an outcome; the caller's actor is recorded with it. *ret_effects has the effect. A
 * repeat with the same status and outcome is 0. HF_ENOTFOUND; HF_EHELD: its holder performs it;
 * HF_ECONFLICT: it was settled or resolved otherwise; HF_EINVAL and HF_ETOOBIG name the field. */
HF_API HF_MUST_USE int hf_journal_resolve(struct hf_store *store,
                                          const struct hf_caller *who,
                                          const struct hf_journal_resolve *resolve,
                                          struct hf_journal_effects **ret_effects,
                                          struct hf_err *err);

#ifdef __cplusplus
}
#endif
#endif
