/* The model's own: its rows, what a call knows, and what the files share. */
#ifndef TESTS_MODEL_INSIDE_H
#define TESTS_MODEL_INSIDE_H

#include <holdfast/bounds.h>

#include "base/arena.h"
#include "model/model.h"

/* One unit: what readers see, and what only the store knows. Texts live on the disk's arena
 * and are never changed, so a row may be copied. */
struct m_row {
    struct hf_work w;
    int64_t seq;
    enum hf_status status;
    enum hf_disposition disposition;
    enum hf_source source;
    uint8_t asked[32]; /* digest of the request as typed */
    const char *nonce; /* NULL: no lease */
    int64_t lease_incarnation;
    hf_ms grace_ms;
    hf_ms check_at; /* on the lease clock */
    const char *settled_token;
    const char *settled_verb;
    int64_t tag;
    int64_t weight;
    int64_t crashes;
    hf_ms crashed_at;
    bool entered;          /* came to wait behind its limit since it was last looked at */
    bool place, open;      /* as its limit counts it */
    int64_t session_fence; /* of the lease of its session that it runs under */
};

struct m_limit {
    const char *name;
    int64_t max, count, burst;
    hf_ms period;
    int64_t used, reserved, level, back;
    hf_ms level_at, wake_at;
    bool touched;
};

struct m_fair {
    const char *queue;
    const char *key;
    int64_t priority;
    int64_t next;
};

/* `facts` are what the model knows of the event's payload: "=" and the whole text, or
 * lines of which each must be in it. NULL: it claims nothing. */
struct m_event {
    struct hf_event e;
    int64_t seq;
};

struct m_policy {
    const char *scope;
    struct hf_policy policy;
};

struct m_receipt {
    const char *tenant;
    const char *scope;
    const char *operation_id;
    uint8_t asked[32];
    const char **ids; /* of the items, in order; NULL where one was refused */
    int *codes;
    size_t count;
};

#define M_LIST(type)                                                                     \
    struct {                                                                             \
        type *at;                                                                        \
        size_t count;                                                                    \
        size_t room;                                                                     \
    }

/* One record of a session: committed, or stored by a step of the open turn. */
struct m_node {
    const char *turn_id;
    const char *json;
    uint8_t chain[32]; /* after it */
    bool transient;    /* in no history */
};

/* One effect of a turn. */
struct m_effect {
    struct hf_effect_entry entry;
    hf_ms started_at;
    hf_ms settled_at;
    bool spent; /* it has a usage */
    struct hf_usage usage;
};

struct m_turn {
    const char *session_id;
    const char *turn_id;
    int64_t seq; /* of its input's unit, which may be pruned */
    int64_t base_revision;
    int64_t step;
    int64_t claimed_step; /* the step at the last claim */
    int64_t node_count;   /* nodes of its steps, which other turns drop from `stored` */
    int64_t effects_past; /* the last effect before it began anew */
    uint8_t chain[32];
    M_LIST(struct m_node) stored;
    M_LIST(struct m_effect) effects;
    struct hf_span save;
    hf_ms started_at;
    hf_ms finished_at;
    bool committed;
    bool revoked;      /* none of its waits can be answered */
    uint8_t asked[32]; /* digest of the commit */
    struct hf_session_committed done;
};

struct m_input {
    const char *session_id;
    int64_t seq;
    const char *turn_id; /* NULL: in no turn */
};

struct m_blob {
    uint8_t hash[32];
    struct hf_span bytes;
};

struct m_spent {
    const char *session_id;
    struct hf_session_spent spent;
};

/* One session: what readers see, without the lease; the lease; and its history. */
struct m_session {
    struct hf_session s;
    uint8_t asked[32]; /* digest of the request that made it */
    const char *owner;
    const char *incarnation;
    const char *nonce; /* NULL: no lease */
    int64_t fence;
    int64_t store;
    hf_ms ttl_ms;
    hf_ms claimed_at;
    hf_ms expires_at;
    const char *ended_token; /* of the last release or hand-back */
    const char *ended_verb;
    M_LIST(struct m_node) nodes;
};

struct m_wait {
    struct hf_wait w;
    hf_ms check_at; /* 0: no sweep acts on it */
    hf_ms next_ms;
    const char *closed_by;
};

/* An effect of a process or an operation; the lease stays as it was when it is settled. */
struct m_scope_effect {
    enum hf_scope scope;
    const char *scope_id;
    const char *key;
    const char *tenant;
    const char *kind;
    enum hf_recovery recovery;
    enum hf_entry_status status;
    const char *envelope;
    const char *outcome;
    const char *known;
    const char *actor_kind;
    const char *actor; /* NULL: not resolved */
    hf_ms started_at;
    hf_ms settled_at;
    hf_ms resolved_at;
    const char *owner;
    const char *incarnation;
    const char *nonce;
    int64_t fence;
    int64_t store;
    hf_ms ttl_ms;
    hf_ms expires_at;
};

struct m_history {
    int64_t incarnation;
    int64_t began_id; /* the last event before it */
};

struct model_disk {
    struct hf_arena arena;
    M_LIST(struct m_row) rows; /* in order of seq */
    M_LIST(struct m_event) events;
    M_LIST(struct m_policy) policies;
    M_LIST(struct m_receipt) receipts;
    M_LIST(struct m_session) sessions;
    M_LIST(struct m_turn) turns;
    M_LIST(struct m_input) inputs; /* in order of seq */
    M_LIST(struct m_blob) blobs;
    M_LIST(struct m_spent) spent;
    M_LIST(struct m_wait) waits;
    M_LIST(struct m_scope_effect) scope_effects;
    int64_t secret; /* which one makes keys; the one before is valid until: */
    hf_ms secret_until;
    M_LIST(struct m_history) histories;
    M_LIST(struct hf_store_log_entry) log;
    int64_t pruned_id; /* the last event that prune took */
    M_LIST(struct m_limit) limits;
    M_LIST(struct m_fair) fairs;
    int64_t next_seq;
    int64_t next_event;
    int64_t incarnation;
    bool used;             /* the lease clock is set */
    hf_ms lease_offset_ms; /* lease clock = monotonic clock + this */
};

struct model {
    struct hf_store handle;
    struct model_disk *disk;
    uint64_t uuid_seq;
};

/* What a call knows: who calls, when, and where a refusal is told. */
struct m_call {
    struct model *m;
    struct model_disk *disk;
    const struct hf_caller *who;
    hf_ms now;
    hf_ms lease_now;
    struct hf_err *err;
};

/* Room for one more at the end of a list, zeroed. Memory that runs out ends the test. */
void *m_grow(void **at, size_t *count, size_t *room, size_t each);
#define m_add(list)                                                                      \
    (m_grow((void **)&(list).at, &(list).count, &(list).room, sizeof(*(list).at)))

struct m_call m_begin(struct hf_store *store, const struct hf_caller *who,
                      struct hf_err *err);
const char *m_text(struct model_disk *disk, const char *text); /* a copy; NULL is NULL */
const char *m_say(struct model_disk *disk, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool m_same(const char *a, const char *b);
hf_ms m_later(hf_ms a, hf_ms b); /* a sum that stops at the ceiling */

/* ---- rows ---------------------------------------------------------------------------- */

/* By id, or a unique prefix or suffix. NULL with *ret_code saying why. */
struct m_row *m_find(struct model_disk *disk, const char *id, int *ret_code);
bool m_waits(const struct m_row *row);
bool m_bound(const struct m_row *row); /* a started owner_bound row */
/* Waits for what its close rule demands for `done`: its reference is its own id. */
bool m_waits_for_rule(const struct m_row *row);
hf_ms m_act_at(const struct m_row *row); /* when peers may act on the lease */
void m_show(struct m_call *call, struct hf_answer *answer, struct hf_item *item,
            const struct m_row *row, bool brief);
/* Every item that names a row, as the row is after the whole call. */
void m_show_all(struct m_call *call, struct hf_answer *answer, unsigned flags);
const char *m_token(struct model_disk *disk, const struct m_row *row);

struct m_say_event {
    const char *type;
    const char *message;
    const char *facts;
};
/* An event that is no transition. */
void m_note(struct m_call *call, const struct m_row *row, struct m_say_event say);
/* Into a status: all that belongs to the old one goes, one event is written. */
void m_enter(struct m_call *call, struct m_row *row, enum hf_status to,
             struct m_say_event say);
/* Of each lane the best claimable row is free to go if nothing of it runs. */
void m_lanes(struct model_disk *disk);
bool m_lane_runs(const struct model_disk *disk, const struct m_row *row);

/* What a call that fails as a whole must leave as it was: limits and fair shares. */
struct m_shares {
    struct m_limit *limits;
    struct m_fair *fairs;
    size_t limit_count, fair_count;
};
struct m_shares m_shares_keep(const struct model_disk *disk);
void m_shares_back(struct model_disk *disk, const struct m_shares *kept);
void m_shares_drop(struct m_shares *kept);

/* In the order of claims: urgency, fair tag, age. */
bool m_before(const struct m_row *a, const struct m_row *b);
/* A row with a fair key comes to its queue; before it is there. */
void m_fair_come(struct m_call *call, struct m_row *row);
/* What a row whose time has come waits for. */
const char *m_first_gate(const struct m_row *row);
bool m_kind_limited(const struct model_disk *disk, const char *kind);
/* At the end of a call: count anew and let go on the rows that may; returns how many. */
int64_t m_limits(struct m_call *call);
void m_limits_claimed(struct m_call *call);
void m_limit_touch(struct model_disk *disk, const char *name);
bool m_limits_due(struct m_call *call);
int64_t m_limits_sweep(struct m_call *call);
hf_ms m_limits_next(const struct model_disk *disk);

/* Into running under a fresh lease. */
struct m_taker {
    const char *owner;
    const char *incarnation;
    const char *nonce;
    hf_ms ttl_ms;         /* 0: the policy's */
    hf_ms ttl_default_ms; /* where that says nothing */
};
void m_acquire(struct m_call *call, struct m_row *row, const struct m_taker *taker,
               struct m_say_event say);

/* What a sweep does to one row, if anything is due. */
enum m_swept {
    M_NOTHING,
    M_REQUEUED,
    M_TIMED_OUT,
    M_FAILED,
    M_ABANDONED,
    M_PROMOTED,
    M_ESCALATED,
    M_PUSHED,
    M_SILENT,
    M_HELD
};
enum m_swept m_sweep_row(struct m_call *call, struct m_row *row);
bool m_due(const struct m_call *call, const struct m_row *row);
void m_sweep_all(struct m_call *call, struct hf_sweep_report *ret_report);
bool m_attention(struct m_call *call);

/* ---- policies ------------------------------------------------------------------------- */

struct hf_policy m_policy_of(struct model_disk *disk, enum hf_source source,
                             const char *kind);
/* With another term where no policy says. */
struct hf_policy m_policy_over(struct model_disk *disk, hf_ms last_ttl_ms,
                               enum hf_source source, const char *kind);

struct m_retry {
    int64_t max_attempts; /* 0: not given */
    hf_ms initial_ms;
    hf_ms max_ms;
    double multiplier;
    bool jitter;
};
struct m_retry m_retry_read(const char *json);
/* Is the word in the policy's list `key`? */
bool m_retry_lists(const char *json, const char *key, const char *word);
/* The policy with every field, as a row keeps it. */
const char *m_retry_fixed(struct model_disk *disk, const char *json, int64_t attempts);
bool m_retry_allows(const char *json, const char *word, bool timeout);
hf_ms m_retry_delay(struct m_call *call, const char *json, int64_t failures);

/* ---- operation ids --------------------------------------------------------------------- */

/* 0: not seen before. HF_ECONFLICT: seen with other content. 1: *ret_receipt is its. */
int m_receipt_find(struct m_call *call, const char *scope, const uint8_t asked[32],
                   const struct m_receipt **ret_receipt);
void m_receipt_show(struct m_call *call, const struct m_receipt *receipt, unsigned flags,
                    struct hf_answer *answer);
void m_receipt_add(struct m_call *call, const char *scope, const uint8_t asked[32],
                   const struct hf_answer *answer);

/* ---- verbs ------------------------------------------------------------------------------ */

int m_create(struct hf_store *store, const struct hf_caller *who,
             const struct hf_work_spec *news, size_t n, unsigned flags,
             struct hf_answer *answer, struct hf_err *err);
/* One row made from a request; *ret_row may be one that was there. */
int m_create_one(struct m_call *call, const struct hf_work_spec *request,
                 struct m_row **ret_row, bool *ret_created);
int m_claim(struct hf_store *store, const struct hf_caller *who,
            const struct hf_claim *claim, struct hf_answer *answer, struct hf_err *err);
int m_change(struct hf_store *store, const struct hf_caller *who,
             const struct hf_change *changes, size_t n, unsigned flags,
             struct hf_answer *answer, struct hf_err *err);
int m_renew_all(struct hf_store *store, const struct hf_caller *who,
                const struct hf_renew_all *renew, struct hf_answer *answer,
                struct hf_err *err);
void m_note_renewal(struct m_call *call, const struct m_row *row);
int m_sweep(struct hf_store *store, const struct hf_caller *who, size_t limit,
            struct hf_sweep_report *ret_report, struct hf_err *err);
int m_next_due(struct hf_store *store, hf_ms *ret_at, struct hf_err *err);
int m_get(struct hf_store *store, const char *id, struct hf_answer *answer,
          struct hf_err *err);
int m_list(struct hf_store *store, const struct hf_caller *who,
           const struct hf_filter *filter, struct hf_answer *answer, struct hf_err *err);
int m_events(struct hf_store *store, const char *id, int64_t after, size_t limit,
             struct hf_events **ret_events, struct hf_err *err);
/* An event's payload as readers want it. */
const char *m_payload(struct model_disk *disk, const char *facts);
int m_feed(struct hf_store *store, const struct hf_caller *who,
           const struct hf_feed_query *query, struct hf_feed *feed, struct hf_err *err);
int m_pulse(struct hf_store *store, struct hf_err *err);
int m_amnesty(struct hf_store *store, hf_ms stalled_ms, int64_t *ret_rows,
              struct hf_err *err);
int m_log(struct hf_store *store, int64_t before, size_t limit, hf_logged *each,
          void *user, struct hf_err *err);
void m_log_add(struct m_call *call, const char *what, const char *detail);
int m_stats(struct hf_store *store, const struct hf_caller *who,
            struct hf_stats *ret_stats, struct hf_err *err);
int m_prune(struct hf_store *store, hf_ms older_than_ms, size_t limit, int64_t *ret_rows,
            struct hf_err *err);
int m_dump(struct hf_store *store, const struct hf_dump *dump, struct hf_err *err);
int m_policy_set(struct hf_store *store, const char *scope,
                 const struct hf_policy *policy, struct hf_err *err);
int m_policy_get(struct hf_store *store, enum hf_source source, const char *kind,
                 struct hf_policy_answer **ret_answer, struct hf_err *err);
int m_limit_set(struct hf_store *store, const char *name, const struct hf_limit *wanted,
                struct hf_err *err);
int m_limit_list(struct hf_store *store, hf_each_limit *each, void *user,
                 struct hf_err *err);

/* ---- sessions --------------------------------------------------------------------------- */

extern const struct hf_session_methods m_session_methods;
extern const struct hf_overview_methods m_overview_methods;
extern const struct hf_journal_methods m_journal_methods;
int m_queues(struct hf_store *store, const struct hf_caller *who, hf_each_queue *each,
             void *user, struct hf_err *err);
int m_holder_list(struct hf_store *store, const struct hf_caller *who, const char *owner,
                  hf_each_holder_row *each, void *user, struct hf_err *err);
int m_ages(struct hf_store *store, const struct hf_caller *who,
           struct hf_age_table *ret_ages, struct hf_err *err);

struct m_session *m_session_of(struct model_disk *disk, const char *session_id);
/* The session, or NULL and HF_ENOTFOUND in *ret_code. */
struct m_session *m_session_find(struct m_call *call, const char *session_id,
                                 int *ret_code);
struct m_turn *m_turn_of(struct model_disk *disk, const char *session_id,
                         const char *turn_id);
struct m_turn *m_turn_open(struct model_disk *disk, const struct m_session *s);
struct m_row *m_row_by_seq(struct model_disk *disk, int64_t seq);

/* Acquire, or enter a live lease of one's own again. */
bool m_session_live(const struct m_call *call, const struct m_session *s);
bool m_session_mine(const struct m_call *call, const struct m_session *s,
                    const struct m_taker *taker);
void m_session_acquire(struct m_call *call, struct m_session *s,
                       const struct m_taker *taker);
void m_session_enter_again(struct m_call *call, struct m_session *s,
                           const struct m_taker *taker);
const char *m_session_token(struct model_disk *disk, const struct m_session *s);
/* 0; HF_EINVAL for what is no token; HF_ESESSIONLOST. */
int m_session_held(struct m_call *call, const struct m_session *s, const char *token);
void m_session_extend(struct m_call *call, struct m_session *s);
/* The lease ends; an open turn wants to go on at `until`, 0: at once. */
void m_session_free(struct m_call *call, struct m_session *s, hf_ms until);
/* There may be something to do. */
/* A release or a hand-back, which a repeat is known by. */
void m_session_ended(struct m_call *call, struct m_session *s, const char *token,
                     const char *verb);
bool m_session_ended_by(const struct m_session *s, const char *token, const char *verb);
void m_session_make_ready(struct m_call *call, const char *session_id,
                          const char *cancel);
/* The first input that can begin a turn, or NULL. */
struct m_input *m_session_pending(struct model_disk *disk, const struct m_session *s);
/* The turn of a held input that is released: it is open again if it is whole. HF_ETRANSITION if it
 * would perform effects again, and the release does not say `anew`. */
int m_session_reopen(struct m_call *call, const struct m_row *row, bool anew);
/* The input of the open turn is queued again. */
void m_input_back(struct m_call *call, struct m_row *row, const char *gate,
                  struct m_say_event say);

void m_session_show(struct m_call *call, struct hf_session_answer *answer,
                    const struct m_session *s);
/* The open turn without its records. */
struct hf_session_turn *m_turn_show(struct m_call *call, struct hf_session_answer *answer,
                                    const struct m_session *s);
/* A first page of the history, and the open turn with its records and entries. */
int m_session_page(struct m_call *call, const struct m_session *s,
                   const struct hf_session_load *request,
                   struct hf_session_answer *answer);
void *m_answer_memory(struct hf_session_answer *answer, size_t bytes);

int m_session_claim(struct hf_store *store, const struct hf_caller *who,
                    const struct hf_session_claim *claim,
                    struct hf_session_answer *answer, struct hf_err *err);
int m_session_step(struct hf_store *store, const struct hf_caller *who,
                   const struct hf_session_step *step,
                   struct hf_session_stepped *ret_stepped, struct hf_err *err);
int m_session_commit(struct hf_store *store, const struct hf_caller *who,
                     const struct hf_session_commit *commit,
                     struct hf_session_committed *ret_committed, struct hf_err *err);
int m_session_hand_back(struct hf_store *store, const struct hf_caller *who,
                        const struct hf_session_back *back, struct hf_err *err);
int m_session_head(struct hf_store *store, const char *session_id,
                   struct hf_session_answer *answer, struct hf_err *err);
int m_session_load(struct hf_store *store, const struct hf_session_load *request,
                   struct hf_session_answer *answer, struct hf_err *err);
int m_session_node(struct hf_store *store, const char *session_id, int64_t ordinal,
                   struct hf_session_answer *answer, struct hf_err *err);
int m_session_list(struct hf_store *store, const struct hf_caller *who,
                   const struct hf_session_filter *filter,
                   struct hf_session_answer *answer, struct hf_err *err);
int m_session_inputs(struct hf_store *store, const char *session_id, const char *after,
                     size_t limit, struct hf_session_answer *answer, struct hf_err *err);
/* ---- waits ------------------------------------------------------------------------------ */

extern const struct hf_wait_methods m_wait_methods;

/* The waits of a step; and its put-away, true if the session is ready again. */
void m_waits_open(struct m_call *call, struct m_turn *turn,
                  const struct hf_session_step *step);
bool m_put_away(struct m_call *call, struct m_session *s, const struct m_turn *turn,
                const struct hf_session_step *step);
/* Open waits of a turn become cancelled; how many. */
int64_t m_waits_end(struct m_call *call, const char *turn_id, const char *closed_by);
void m_waits_drop(struct model_disk *disk, const char *turn_id);
/* Those that closed when the turn was set aside. */
void m_waits_reopen(struct model_disk *disk, const char *turn_id);
/* Those of finished turns that were closed before this time. */
void m_waits_prune(struct model_disk *disk, hf_ms before);
/* The effects of a process that is pruned. */
void m_scope_effects_prune(struct model_disk *disk, const char *work_id);
/* The timers of the open turn that are due. */
void m_waits_due(struct m_call *call, const struct m_session *s);
void m_waits_show(struct m_call *call, struct hf_session_answer *answer,
                  struct hf_session_turn *turn);
void m_waits_sweep(struct m_call *call, size_t limit, struct hf_sweep_report *report);
hf_ms m_waits_next(const struct model_disk *disk);
/* The unit of a turn that waits was cancelled. */
void m_cancel_waiting(struct m_call *call, const struct m_row *row);
int m_cancel_turn(struct hf_store *store, const struct hf_caller *who,
                  const struct hf_session_cancel *request,
                  enum hf_session_turn_cancel *ret_answer, struct hf_err *err);

/* Effects and blobs. A step's effects are checked first, then stored. */
int m_effects_check(const struct m_call *call, const struct m_turn *turn,
                    const struct hf_session_step *step);
void m_effects_store(struct m_call *call, struct m_turn *turn,
                     const struct hf_session_step *step, int64_t fence);
/* Those that are under way when their turn begins anew. Returns the number of the last effect. */
int64_t m_effects_leave(struct m_call *call, struct m_turn *turn);
/* The member "model" of what was asked for; "": none. */
const char *m_effect_model(struct m_call *call, const struct m_effect *effect);
/* There is one that may do harm if it happens again under another key. */
bool m_effects_performed(const struct m_turn *turn);
void m_effects_show(struct hf_session_answer *answer, const struct m_turn *turn,
                    struct hf_session_turn *out);
bool m_blob_there(const struct model_disk *disk, const uint8_t hash[32]);
void m_blob_add(struct model_disk *disk, const uint8_t hash[32], struct hf_span bytes);
int m_session_blob_put(struct hf_store *store, const uint8_t hash[32],
                       struct hf_span bytes, struct hf_err *err);
int m_session_blob(struct hf_store *store, const uint8_t hash[32],
                   struct hf_session_answer *answer, struct hf_err *err);
int m_session_unknown(struct hf_store *store, const struct hf_caller *who,
                      const char *after, size_t limit, struct hf_session_answer *answer,
                      struct hf_err *err);
int m_lease_take(struct hf_store *store, const struct hf_lease_claim *claim,
                 struct hf_lease_info *ret_info, struct hf_err *err);
int m_lease_renew(struct hf_store *store, enum hf_leased leased, const char *key,
                  const char *token, struct hf_lease_info *ret_info, struct hf_err *err);
int m_lease_release(struct hf_store *store, enum hf_leased leased, const char *key,
                    const char *token, struct hf_err *err);
int m_lease_look(struct hf_store *store, enum hf_leased leased, const char *key,
                 struct hf_lease_info *ret_info, struct hf_err *err);

#endif
