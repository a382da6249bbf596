/* Sessions: a conversation with one writer at a time, committed whole.
 *
 * A session has a head (revision, number of records, digest of their chain), a history of
 * records (nodes) that never change once they are committed, and inputs: units of the ledger
 * that begin its turns. A worker claims a session. The claim is a lease on the session, and it
 * opens a turn over the oldest input. The turn stores its progress step by step, and one
 * fenced commit makes all of it part of the session, or nothing.
 *
 *   send ──> input (queued) ──claim──> turn open, input running ──commit──> nodes, input done
 *                                        │   ▲
 *                                       step─┘      hand_back: input queued, turn stays open
 *
 * A turn's base id (holdfast/turn.h) is the head revision in decimal. A turn's id is the work
 * id of its first input, and the turn's row is the receipt of its commit: the same commit
 * again returns the stored result, without a lease.
 *
 * Every verb is one blocking call that may be made from any thread on one handle; writes of
 * several threads share a commit. A host with an event loop submits them (holdfast/submit.h), or
 * runs them on its executor.
 *
 * Errors of their own:
 *   HF_ESESSIONBUSY     another owner holds the session: retry later
 *   HF_ESESSIONLOST     the lease is not the caller's any more: open the session again
 *   HF_EHEADMOVED       the head is not the one that the caller loaded: load again
 *   HF_ESESSIONDELETED  the session was deleted; its id is never used again
 *   HF_ESUPERSEDED      the turn or its inputs belong to a later claim, or have ended
 * All others are as in holdfast/err.h. A refused call writes nothing.
 */
#ifndef HOLDFAST_SESSION_H
#define HOLDFAST_SESSION_H

#include <holdfast/effect.h>
#include <holdfast/turn.h>
#include <holdfast/wait.h>
#include <holdfast/work.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a session came to be. */
#define HF_RELATIONS(X)                                                                  \
    X(ROOT, "root")     /* by itself */                                                  \
    X(CHILD, "child")   /* started by its parent */                                      \
    X(FORK, "fork")     /* shares its parent's history */                                \
    X(CAUSED, "caused") /* by what `cause` says */
#define X(name, word) HF_RELATION_##name,
enum hf_relation { HF_RELATIONS(X) HF_RELATION_COUNT };
#undef X
HF_API const char *hf_relation_word(enum hf_relation relation); /* NULL past the last */

/* The cause that began a turn. */
#define HF_INPUT_KINDS(X)                                                                \
    X(MESSAGE, "message") /* payload: a record in the machine's JSON form */             \
    X(WAKE, "wake")       /* payload: JSON of the wake; begins the turn as a cause */
#define X(name, word) HF_INPUT_##name,
enum hf_session_input_kind { HF_INPUT_KINDS(X) HF_INPUT_KIND_COUNT };
#undef X
HF_API const char *hf_session_input_kind_word(
    enum hf_session_input_kind kind); /* NULL past the last */

/* A session as readers see it. Texts are NULL where there is none, times are 0. */
struct hf_session {
    const char *session_id;
    const char *tenant;
    const char *agent;     /* which workers may claim it */
    int64_t head_revision; /* commits so far */
    int64_t record_count;  /* committed records */
    uint8_t chain[32];     /* hf_record_chain over them */
    const char *config;    /* JSON, the caller's */
    const char *turn_id;   /* the open turn */
    hf_ms ready_at;      /* since when a worker may claim it; 0: held, or nothing to do */
    hf_ms waiting_until; /* when the open turn continues; 0: at once */
    const char *owner;   /* of the lease, which may have lapsed */
    const char *owner_incarnation;
    const char *holder; /* JSON: the known facts about the holder's process */
    int64_t lease_fence;
    hf_ms lease_ttl_ms;
    hf_ms lease_expires_at;   /* on the lease clock */
    hf_ms lease_remaining_ms; /* at the moment of reading; negative when lapsed */
    const char
        *cancel_request; /* JSON: a cancellation of the running input was asked for */
    const char *relation;
    const char *parent_id;
    const char *cause;  /* JSON */
    const char *labels; /* JSON object of texts */
    hf_ms deleted_at;
    hf_ms created_at;
    hf_ms updated_at; /* of the last commit */
};

/* One input of the open turn. */
struct hf_session_input {
    enum hf_session_input_kind kind;
    const char *work_id;
    const char *status;  /* of its unit */
    const char *gate;    /* of its unit, while it is queued: lane, or held */
    const char *payload; /* JSON; see hf_session_input_kind */
    const char *turn_id; /* NULL: in no turn yet */
    int64_t attempt_count;
    int64_t crashes; /* claims that were lost in a row without a new step */
    hf_ms created_at;
};

/* One record of the history. */
struct hf_node {
    int64_t ordinal; /* -1: transient, in the base of the open turn only */
    const char *turn_id;
    bool provisional;  /* past the head's count: of the open turn, and not committed */
    uint8_t chain[32]; /* after it */
    const char *json;
    const struct hf_record *record;
};

/* The open turn; of the verb `turn` any turn. */
struct hf_session_turn {
    const char *turn_id;
    int64_t base_revision; /* the head's when it began */
    int64_t step;          /* steps stored so far */
    int64_t node_count;    /* provisional nodes that steps have stored */
    int64_t effects_past;  /* of one that began anew: its last effect before; 0: none */
    uint8_t chain[32];     /* over the history and those nodes */
    struct hf_span save;   /* as the last step left it; len 0: none */
    hf_ms started_at;
    hf_ms finished_at; /* turn: 0 while it is open */
    hf_ms active_ms;   /* turn: time that its owners spent on it */
    const char
        *outcome; /* turn: JSON, as hf_outcome_encode writes it; NULL while it is open */
    const struct hf_session_input *inputs; /* in order */
    size_t input_count;
    const struct hf_node
        *nodes; /* load: the records that steps have stored, with transient ones */
    size_t stored_count;
    const struct hf_effect_entry
        *entries; /* load: effects without a result, and failures that wait for a retry */
    size_t entry_count;
    const struct hf_wait *waits; /* claim, load: all of the turn, in order of their ids */
    size_t wait_count;
};

/* Tokens of one source and model: what commits have reported, and what the model's attempts have
 * used in turns that are not committed, or that began anew. */
struct hf_session_usage {
    const char *source;
    const char *model;
    struct hf_usage usage;
};

/* An effect of a turn. */
struct hf_session_effect {
    const char *session_id;
    const char *turn_id;
    const char *key; /* holdfast/effect.h */
    const char *kind;
    const char *recovery;
    int64_t attempt;
    hf_ms started_at;
    hf_ms settled_at;
    const char *outcome; /* JSON: the facts that are known */
    /* The rest is set by the verb `turn` only. */
    const char *status;   /* started, done, failed or unknown */
    const char *envelope; /* JSON: the action */
    const char *usage;    /* JSON; NULL: none */
    hf_ms due_at;         /* of a failure: when it is retried; 0: it is not */
    int64_t fence;        /* of the claim that began it */
    bool taken_over;      /* it was performed again after a worker was lost */
};

/* The answer of a verb. It owns all that it shows. Members that a verb does not name are zero. */
struct hf_session_answer {
    const struct hf_session *sessions;
    size_t session_count;
    bool created;      /* create: the session is new */
    const char *next;  /* list: cursor of the next page, or NULL */
    const char *token; /* claim: of the lease */
    bool
        displaced; /* claim: a lapsed or dead holder lost the session; its facts follow */
    const char *displaced_owner;
    int64_t displaced_fence;
    bool loaded;                           /* claim: with its records */
    const struct hf_session_turn *turn;    /* claim, load: the open turn, or NULL; turn */
    const struct hf_session_input *inputs; /* inputs */
    size_t input_count;
    const struct hf_node *nodes; /* claim, load, node, turn */
    size_t node_count;
    int64_t
        next_ordinal; /* claim, load: first committed node of the next page; 0: none */
    const struct hf_session_usage *usage; /* load; turn: its own */
    size_t usage_count;
    struct hf_span blob;                     /* blob_get */
    const struct hf_session_effect *effects; /* unknown, turn */
    size_t effect_count;
};
HF_API void hf_session_answer_free(struct hf_session_answer *answer); /* NULL is fine */

/* ---- create ------------------------------------------------------------------------ */

struct hf_session_spec {
    uint32_t size;
    const char *session_id; /* NULL: a fresh one */
    const char *agent;      /* required */
    const char *config;     /* JSON object; NULL: none */
    enum hf_relation relation;
    const char *parent_id; /* required for child and fork, refused for root */
    const char *cause;     /* JSON; NULL: none */
    const char *labels;    /* JSON object of texts; NULL: none */
};

/* Create a session. The same request again returns the session as it is now; other content
 * under its id is HF_ECONFLICT. Ids are global: the tenant is a part of the content. */
HF_API HF_MUST_USE int hf_session_create(struct hf_store *store,
                                         const struct hf_caller *who,
                                         const struct hf_session_spec *request,
                                         struct hf_session_answer **ret_answer,
                                         struct hf_err *err);

/* ---- send -------------------------------------------------------------------------- */

struct hf_session_send {
    uint32_t size;
    const char *session_id;
    const char
        *source_key; /* names this message in its session; NULL: it is never repeated */
    const char *message; /* JSON of a record that is a message (holdfast/turn_json.h) */
};

/* Send a message: one unit of the ledger from the moment that this returns 0. The same key and
 * content return the same unit with created = false; other content is HF_ECONFLICT. HF_EINVAL for a
 * message without an attachment whose text is blank. HF_ENOTFOUND, HF_ESESSIONDELETED. */
HF_API HF_MUST_USE int hf_session_send(struct hf_store *store,
                                       const struct hf_caller *who,
                                       const struct hf_session_send *request,
                                       struct hf_answer **ret_answer, struct hf_err *err);

/* ---- claim ------------------------------------------------------------------------- */

struct hf_session_claim {
    uint32_t size;
    const char *session_id;    /* this one; or, if NULL, any that is ready of */
    const char *const *agents; /* these agents */
    size_t agent_count;
    const char *owner; /* NULL: an owner of this claim alone: the nonce, or a fresh one */
    const char
        *incarnation;  /* NULL: a fresh one with a fresh owner, otherwise the handle's */
    const char *nonce; /* NULL: fresh. Set one, which no other claim has, to repeat it */
    int pid;           /* 0: opaque; otherwise ties the lease to that local process */
    hf_ms wait_ms;     /* block up to this long until there is a session; not by id */
    hf_ms ttl_ms;      /* 0: 30 s */
    size_t records;    /* also load the first records, at most this many and one page */
};

/* Take the lease of a session and open a turn over its oldest input. An open turn is continued
 * with exactly its inputs, its step and its save. A claim by agents takes a session that is
 * ready, whose lease has lapsed or whose holder is proven dead; if there is none the answer has
 * no session. A claim by id also takes one with nothing to do: then there is no turn.
 * HF_ESESSIONBUSY, HF_ENOTFOUND, HF_ESESSIONDELETED (by id).
 *
 * The same owner and incarnation may claim a session that it holds: with the same nonce it
 * keeps its token, with another one the token rotates; the fence stays. A claim by agents with
 * the same nonce returns the session that it took, as long as it has the lease and the turn.
 *
 * Each claim after a death without a new step counts a crash. At `poison_crashes` within the
 * window (holdfast bounds) the input gets the gate `held`, its turn is set aside with all that its
 * steps have stored, and the session continues with the next one. HF_VERB_RELEASE says what becomes
 * of the turn (holdfast/work.h): it continues, if no other was begun since, or begins anew.
 *
 * With `records` the answer also has what hf_session_load shows, except the usage: a page of the
 * history, the open turn's own records and its entries. `loaded` false: they could not be shown,
 * and hf_session_load says why. */
HF_API HF_MUST_USE int hf_session_claim(struct hf_store *store,
                                        const struct hf_caller *who,
                                        const struct hf_session_claim *claim,
                                        struct hf_session_answer **ret_answer,
                                        struct hf_err *err);

/* ---- read -------------------------------------------------------------------------- */

/* The head alone, to know whether loaded records are still fresh and whether there is something
 * to do: session_id, agent, head_revision, record_count, chain, turn_id, ready_at, owner and
 * deleted_at. The other members are zero. HF_ENOTFOUND. */
HF_API HF_MUST_USE int hf_session_head(struct hf_store *store, const char *session_id,
                                       struct hf_session_answer **ret_answer,
                                       struct hf_err *err);

struct hf_session_load {
    uint32_t size;
    const char *session_id;
    size_t limit;          /* nodes of a page; 0: 1000 */
    int64_t from_ordinal;  /* of a later page: next_ordinal of the one before */
    int64_t head_revision; /* of a later page: those of the first page's head */
    int64_t record_count;
};

/* Head, open turn with its save and the records of its steps, usage, and the first page of
 * committed records, in one snapshot. Later pages have records only. They are of the first
 * page's head, whatever was committed since; HF_EHEADMOVED if the store does not have that head.
 * The digest of each record is checked: a broken chain is HF_ECORRUPT. HF_EOVERFLOW if a sum of
 * tokens is beyond 64 bits. HF_ENOTFOUND only if there is certainly no such session. */
HF_API HF_MUST_USE int hf_session_load(struct hf_store *store,
                                       const struct hf_session_load *request,
                                       struct hf_session_answer **ret_answer,
                                       struct hf_err *err);

/* One node, committed or provisional. HF_ENOTFOUND. */
HF_API HF_MUST_USE int hf_session_node(struct hf_store *store, const char *session_id,
                                       int64_t ordinal,
                                       struct hf_session_answer **ret_answer,
                                       struct hf_err *err);

/* One turn, open or ended, in one snapshot: its facts and inputs, its records (`nodes`), its usage
 * and all its effects in their order. `name` is the id of the turn or of any of its inputs; NULL:
 * the last turn. A turn without effects has none in the answer. HF_ENOTFOUND: there is no such
 * session, or no such turn of it. */
HF_API HF_MUST_USE int hf_session_turn(struct hf_store *store, const char *session_id,
                                       const char *name,
                                       struct hf_session_answer **ret_answer,
                                       struct hf_err *err);

/* A blob by its SHA-256, as `blob`. HF_EBLOB: it is not stored. */
HF_API HF_MUST_USE int hf_session_blob_get(struct hf_store *store, const uint8_t hash[32],
                                           struct hf_session_answer **ret_answer,
                                           struct hf_err *err);

/* Stores bytes under their SHA-256, for a message that refers to them as "sha256:" and the hash
 * in hex. The same bytes again are the same blob. HF_ETOOBIG for more than `attachment_bytes`. */
HF_API HF_MUST_USE int hf_session_blob_put(struct hf_store *store, struct hf_span bytes,
                                           uint8_t ret_hash[32], struct hf_err *err);

/* Effects of which it is not known whether they happened and after which nothing came: their turn
 * is the last one of its session. At most `limit` (0: 100), after the cursor `after` (NULL: from
 * the first). HF_EINVAL for the cursor, HF_ETOOBIG for `limit`, and the errors of a store. */
HF_API HF_MUST_USE int hf_session_unknown(struct hf_store *store,
                                          const struct hf_caller *who, const char *after,
                                          size_t limit,
                                          struct hf_session_answer **ret_answer,
                                          struct hf_err *err);

struct hf_session_filter {
    uint32_t size;
    const char *agent; /* NULL: any; the same for parent_id */
    const char *parent_id;
    bool open;         /* only with an open turn */
    size_t limit;      /* 0: 100 */
    const char *after; /* cursor of an earlier answer */
    bool newest;       /* from the newest down */
};

/* Sessions of the caller's tenant, or of all where it names none, in order of creation, or from the
 * newest down. Pages end as those of hf_work_list, and so do their cursors.
 * HF_EINVAL for the cursor, HF_ETOOBIG for `limit`, and the errors of a store. */
HF_API HF_MUST_USE int hf_session_list(struct hf_store *store,
                                       const struct hf_caller *who,
                                       const struct hf_session_filter *filter,
                                       struct hf_session_answer **ret_answer,
                                       struct hf_err *err);

/* The inputs of a session in order, from the one after work id `after` (NULL: the first), at
 * most `limit` (0: 100). Inputs whose unit was pruned are left out. HF_EINVAL, also for an `after`
 * that is no input of the session or was pruned, HF_ENOTFOUND, HF_ETOOBIG for `limit`, and the
 * errors of a store. */
HF_API HF_MUST_USE int hf_session_inputs(struct hf_store *store, const char *session_id,
                                         const char *after, size_t limit,
                                         struct hf_session_answer **ret_answer,
                                         struct hf_err *err);

/* ---- writing under the lease ------------------------------------------------------- */

/* Bytes that the session refers to, by their SHA-256. bytes.at NULL: they must be stored
 * already. */
struct hf_session_blob {
    uint8_t hash[32];
    struct hf_span bytes;
};

/* The records that the holder of a turn adds to it, and the state that it adds to. */
struct hf_session_step {
    uint32_t size;
    const char *session_id;
    const char *token;
    const char *turn_id;
    int64_t step;                    /* steps stored before this one */
    int64_t node_count;              /* provisional nodes stored before this one */
    const uint8_t *chain;            /* 32 bytes: of the turn before this step */
    const struct hf_record *records; /* new since then; transient ones are stored apart */
    size_t record_count;
    struct hf_span save;                 /* hf_turn_save's bytes */
    const struct hf_effect_entry *begun; /* intents; the fence is the token's.
                                            Kind and attempt are those of the key */
    size_t begun_count;
    const struct hf_effect_settled
        *settled; /* outcomes of effects that were begun before */
    size_t settled_count;
    const struct hf_effect_blob *blobs; /* stored unless they are there */
    size_t blob_count;
    hf_ms active_ms; /* the owner's time since the last step, or since its claim */
    const struct hf_wait_spec *waits; /* what the turn waits for now (holdfast/wait.h) */
    size_t wait_count;
    bool away; /* the turn is put away: its inputs wait, the lease ends; needs waits */
};

/* The state of a turn after a step. */
struct hf_session_stepped {
    int64_t step;
    int64_t node_count;
    uint8_t chain[32];
    bool repeated;         /* the same step was stored before */
    bool cancel_requested; /* cancel the turn, and commit it as cancelled */
    bool ready;            /* away: a wait is closed already; claim the session again */
};

/* Store one step: new provisional nodes, intents and outcomes of effects, and the save, under
 * compare-and-set on the step's number; one transaction. It extends the lease by its term. A repeat
 * of the last step returns its result. HF_ESESSIONLOST, HF_ESUPERSEDED, HF_ETOOBIG; HF_EEFFECT
 * for a key that was begun before, or settled, or never begun.
 *
 * `waits` are opened unless they are there: the first deadline of a wait counts. With `away` the
 * step puts the turn away: its inputs become waiting_user or waiting_external, as the most urgent
 * open wait asks for, and the lease ends. The session is ready again when one of the listed waits
 * is closed, which may be at once, or when the first timer is due. */
HF_API HF_MUST_USE int hf_session_step(struct hf_store *store,
                                       const struct hf_caller *who,
                                       const struct hf_session_step *step,
                                       struct hf_session_stepped *ret_stepped,
                                       struct hf_err *err);

/* Tokens that the turn spent, of one source ("model", "tool", …) and model. */
struct hf_session_spent {
    const char *source;
    const char *model;
    struct hf_usage usage;
};

struct hf_session_commit {
    uint32_t size;
    const char *session_id;
    const char *token;
    const char *turn_id;
    int64_t head_revision;           /* that the turn began with */
    int64_t record_count;            /* the head's */
    int64_t step;                    /* steps stored */
    int64_t node_count;              /* provisional nodes stored */
    const uint8_t *chain;            /* 32 bytes: of the turn after its last step */
    const struct hf_record *records; /* new since then; transient ones are dropped */
    size_t added_count;
    enum hf_status status; /* of the turn's inputs: DONE, FAILED, TIMEOUT or CANCELLED */
    const char *outcome;   /* JSON object (hf_outcome_encode) */
    const char *config;    /* JSON object; NULL: as it is */
    const struct hf_session_blob *blobs;
    size_t blob_count;
    const struct hf_session_spent *spent;
    size_t spent_count;
    const struct hf_work_spec *units; /* to be created with the commit */
    size_t unit_count;
    bool release;    /* also release the lease; otherwise it is extended by its term */
    hf_ms active_ms; /* as of a step; repeats are not compared by it */
};

struct hf_session_committed {
    int64_t head_revision;
    int64_t record_count;
    uint8_t chain[32];
    bool repeated; /* the same commit is stored already; nothing was written now */
};

/* Make a turn part of its session, whole: guard (token, live lease, head), nodes, blobs, usage,
 * the end of its inputs, new units, release; one transaction. The same turn with the same
 * content returns the stored result, also when another owner holds the session; with other
 * content it is HF_ECONFLICT. In this order: HF_ENOTFOUND, HF_ESESSIONDELETED, the receipt,
 * HF_ESESSIONLOST, HF_EHEADMOVED, HF_ESUPERSEDED. HF_EBLOB for a blob that is not stored,
 * HF_ETOOBIG for more than `commit_bytes` or `commit_rows`. HF_ECANCELASKED for status DONE after
 * hf_session_cancel_turn has returned REQUESTED.
 *
 * Inputs that ended while the turn waited (cancelled, timeout) keep their status, and the commit
 * must have the same one; otherwise it is HF_ESUPERSEDED. Waits that are open become cancelled. */
HF_API HF_MUST_USE int hf_session_commit(struct hf_store *store,
                                         const struct hf_caller *who,
                                         const struct hf_session_commit *commit,
                                         struct hf_session_committed *ret_committed,
                                         struct hf_err *err);

/* One lease of a renewal: the caller sets the first two, the call sets the others. */
struct hf_session_renewal {
    const char *session_id;
    const char *token;
    int code; /* 0, or HF_ESESSIONLOST */
    hf_ms lease_remaining_ms;
    bool cancel_requested;
};

/* Extend leases by their own terms, each by its token, 1,000 per statement. A row that another
 * transaction has locked is not extended this time; its remaining term says so. HF_EINVAL, and
 * the errors of a store; a lost lease is the `code` of its item. */
HF_API HF_MUST_USE int hf_session_renew_all(struct hf_store *store,
                                            struct hf_session_renewal *renewals,
                                            size_t count, struct hf_err *err);

/* A number that changes when something happens to any session: an input, an answer to a wait, a
 * request to cancel, the end of a lease. It may change without cause. Reading it costs no
 * transaction: a holder compares it before it asks for more. */
HF_API uint32_t hf_session_bell(struct hf_store *store);

/* The arguments of hf_session_release, for hf_submit. */
struct hf_session_release {
    uint32_t size;
    const char *session_id;
    const char *token;
};

/* Release a session without an open turn. With one it is HF_ETRANSITION: commit it or hand it
 * back. The same call again returns 0 until another lease has ended. HF_ESESSIONLOST. */
HF_API HF_MUST_USE int hf_session_release(struct hf_store *store,
                                          const struct hf_caller *who,
                                          const char *session_id, const char *token,
                                          struct hf_err *err);

struct hf_session_back {
    uint32_t size;
    const char *session_id;
    const char *token;
    const char *reason; /* NULL: none */
    hf_ms delay_ms;     /* the turn continues this much later; 0: at once */
    hf_ms active_ms;    /* the owner's time since the last step, or since its claim */
};

/* Hand a session back with its open turn as the last step left it: the inputs are queued again
 * and no attempt is spent. A repeat is as for a release. HF_ESESSIONLOST. */
HF_API HF_MUST_USE int hf_session_hand_back(struct hf_store *store,
                                            const struct hf_caller *who,
                                            const struct hf_session_back *back,
                                            struct hf_err *err);

/* ---- cancel a turn ----------------------------------------------------------------- */

#define HF_TURN_CANCELS(X)                                                               \
    X(REQUESTED, "requested")       /* this request is the first */                      \
    X(ALREADY, "already_requested") /* another one was */                                \
    X(COMPLETED, "completed_before")
#define X(name, word) HF_TURN_CANCEL_##name,
enum hf_session_turn_cancel { HF_TURN_CANCELS(X) HF_TURN_CANCEL_COUNT };
#undef X
HF_API const char *hf_session_turn_cancel_word(
    enum hf_session_turn_cancel answer); /* NULL past the last */

struct hf_session_cancel {
    uint32_t size;
    const char *session_id;
    const char *turn_id; /* the work id of the turn's input */
    const char *reason;  /* NULL: none */
};

/* Ask that a turn be cancelled, from any process. A turn that has not begun: its input is
 * cancelled. A turn that waits: its waits and inputs are cancelled at once and the session is
 * ready; the next owner cancels the turn and commits it. Otherwise the owner, or a later one, sees
 * `cancel_request` (claim, head), `cancel_requested` (renewals, steps), and does the same. After
 * REQUESTED the turn can no longer be committed as done. HF_ENOTFOUND, HF_ESESSIONDELETED. */
HF_API HF_MUST_USE int hf_session_cancel_turn(struct hf_store *store,
                                              const struct hf_caller *who,
                                              const struct hf_session_cancel *request,
                                              enum hf_session_turn_cancel *ret_answer,
                                              struct hf_err *err);

#ifdef __cplusplus
}
#endif
#endif
