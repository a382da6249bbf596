/* The verb seam: the methods behind the public functions of work.h, lease.h and store.h.
 *
 * Two implementations: the SQL store (any driver of sys/driver.h) and the reference model of
 * the tests. Input has been checked before a method sees it: limits, UTF-8, JSON, required
 * and exclusive fields; `who` is complete (no NULL but operation_id and correlation_id).
 * A method gets an empty answer to fill; on failure of the whole call it may leave it half
 * filled. Threads: any, at the same time.
 */
#ifndef HOLDFAST_SYS_STORE_H
#define HOLDFAST_SYS_STORE_H

#include <holdfast/attention.h>
#include <holdfast/feed.h>
#include <holdfast/journal.h>
#include <holdfast/lease.h>
#include <holdfast/overview.h>
#include <holdfast/process.h>
#include <holdfast/schedule.h>
#include <holdfast/session.h>
#include <holdfast/store.h>
#include <holdfast/trigger.h>
#include <holdfast/wait.h>
#include <holdfast/work.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For comparing stores: every row in order of creation, then every event in order, raw. */
struct hf_dump {
    void *user;
    void (*row)(void *user, const struct hf_work *work, const char *settled_verb,
                hf_ms lease_check_at, int64_t lease_incarnation);
    void (*event)(void *user, const struct hf_event *event);
};

/* Called for each process that holds a lease. */
typedef void hf_each_holder(void *user, const char *holder);

enum hf_schedule_verb { HF_SCHEDULE_PAUSE, HF_SCHEDULE_RESUME, HF_SCHEDULE_REMOVE };

struct hf_schedule_change {
    enum hf_schedule_verb verb;
    const char *name;
    const char *reason;
    int64_t revision; /* 0: any */
};

enum hf_orphans { HF_ORPHANS_PAUSE, HF_ORPHANS_KEEP, HF_ORPHANS_REMOVE };

/* A declared set of schedules; see hf_schedule_sync. */
struct hf_schedule_set {
    const char *name;
    enum hf_orphans orphans;
    bool keep_existing;
    const struct hf_schedule_spec *items;
    size_t count;
};

/* The verbs of schedule.h; each as declared there, with an empty answer to fill. */
struct hf_schedule_methods {
    int (*add)(struct hf_store *store, const struct hf_caller *who,
               const struct hf_schedule_spec *wanted, struct hf_schedules *schedules,
               struct hf_err *err);
    int (*update)(struct hf_store *store, const struct hf_caller *who,
                  const struct hf_schedule_spec *wanted, int64_t revision,
                  struct hf_schedules *schedules, struct hf_err *err);
    /* Answers with the schedule after the change; of a removal, before it. */
    int (*change)(struct hf_store *store, const struct hf_caller *who,
                  const struct hf_schedule_change *change, struct hf_schedules *schedules,
                  struct hf_err *err);
    int (*run_now)(struct hf_store *store, const struct hf_caller *who, const char *name,
                   struct hf_answer *answer, struct hf_err *err);
    int (*get)(struct hf_store *store, const struct hf_caller *who, const char *name,
               struct hf_schedules *schedules, struct hf_err *err);
    int (*list)(struct hf_store *store, const struct hf_caller *who,
                const struct hf_schedule_filter *filter, struct hf_schedules *schedules,
                struct hf_err *err);
    int (*skips)(struct hf_store *store, const struct hf_caller *who, const char *name,
                 size_t limit, struct hf_schedule_skips *skips, struct hf_err *err);
    int (*sync)(struct hf_store *store, const struct hf_caller *who,
                const struct hf_schedule_set *set, struct hf_sync_report *ret_report,
                struct hf_err *err);
    /* One transaction's worth; `more` unless there was nothing to do. */
    int (*pass)(struct hf_store *store, const struct hf_caller *who,
                struct hf_schedule_report *ret_report, struct hf_err *err);
    /* When a pass has something to do next (the caller's wall ms; 0: nothing in sight). */
    int (*next)(struct hf_store *store, hf_ms *ret_at, struct hf_err *err);
};

/* The verbs of trigger.h; each as declared there, with an empty answer to fill. */
struct hf_trigger_methods {
    /* A revision of 0 subscribes, any other updates. */
    int (*define)(struct hf_store *store, const struct hf_caller *who,
                  const struct hf_subscription_spec *wanted, int64_t revision,
                  struct hf_subscriptions *subscriptions, struct hf_err *err);
    int (*change)(struct hf_store *store, const struct hf_caller *who,
                  const struct hf_trigger_change *change,
                  struct hf_subscriptions *subscriptions, struct hf_err *err);
    int (*get)(struct hf_store *store, const struct hf_caller *who,
               const char *owner_scope, const char *key,
               struct hf_subscriptions *subscriptions, struct hf_err *err);
    int (*list)(struct hf_store *store, const struct hf_caller *who,
                const struct hf_trigger_filter *filter,
                struct hf_subscriptions *subscriptions, struct hf_err *err);
    int (*emit)(struct hf_store *store, const struct hf_caller *who,
                const struct hf_occurrence_spec *occurrence, struct hf_emission *emission,
                struct hf_err *err);
    int (*deliveries)(struct hf_store *store, const struct hf_caller *who,
                      const char *occurrence_id, struct hf_emission *emission,
                      struct hf_err *err);
    int (*granted)(struct hf_store *store, const struct hf_caller *who,
                   const char *session_id, size_t limit, struct hf_answer *answer,
                   struct hf_err *err);
};

/* The verbs of process.h. Input has been checked. */
struct hf_process_methods {
    int (*register_process)(struct hf_store *store, const struct hf_caller *who,
                            const struct hf_process_spec *request,
                            struct hf_answer *answer, struct hf_err *err);
    int (*output_add)(struct hf_store *store, const struct hf_caller *who,
                      const struct hf_output_add *add, struct hf_err *err);
    /* Fills an empty output through hf_output_put. */
    int (*output_read)(struct hf_store *store, const char *id, int64_t attempt,
                       struct hf_output *output, struct hf_err *err);
    int (*list)(struct hf_store *store, const struct hf_caller *who,
                const struct hf_process_filter *filter, struct hf_processes *processes,
                struct hf_err *err);
    int (*tell)(struct hf_store *store, const struct hf_caller *who,
                const struct hf_process_tell *tell, bool *ret_repeated,
                struct hf_err *err);
    int (*records)(struct hf_store *store, const char *id, char **ret_stored,
                   char **ret_folded, struct hf_err *err);
    int (*prune)(struct hf_store *store, hf_ms older_than_ms,
                 struct hf_prune_report *ret_report, struct hf_err *err);
};

/* The verbs of session.h; each as declared there, with an empty answer to fill; a claim is one
 * try. Input has been checked, JSON objects are canonical except outcomes, and claims are
 * complete: owner, incarnation, nonce and ttl_ms are set. */
struct hf_session_methods {
    int (*create)(struct hf_store *store, const struct hf_caller *who,
                  const struct hf_session_spec *request, struct hf_session_answer *answer,
                  struct hf_err *err);
    int (*send)(struct hf_store *store, const struct hf_caller *who,
                const struct hf_session_send *request, struct hf_answer *answer,
                struct hf_err *err);
    int (*claim)(struct hf_store *store, const struct hf_caller *who,
                 const struct hf_session_claim *claim, struct hf_session_answer *answer,
                 struct hf_err *err);
    int (*head)(struct hf_store *store, const char *session_id,
                struct hf_session_answer *answer, struct hf_err *err);
    int (*load)(struct hf_store *store, const struct hf_session_load *request,
                struct hf_session_answer *answer, struct hf_err *err);
    int (*node)(struct hf_store *store, const char *session_id, int64_t ordinal,
                struct hf_session_answer *answer, struct hf_err *err);
    int (*turn)(struct hf_store *store, const char *session_id, const char *name,
                struct hf_session_answer *answer, struct hf_err *err);
    int (*blob)(struct hf_store *store, const uint8_t hash[32],
                struct hf_session_answer *answer, struct hf_err *err);
    /* The hash is that of the bytes. */
    int (*blob_put)(struct hf_store *store, const uint8_t hash[32], struct hf_span bytes,
                    struct hf_err *err);
    /* after: "TURN_KEY EFFECT_KEY", as an answer's `next`. */
    int (*unknown)(struct hf_store *store, const struct hf_caller *who, const char *after,
                   size_t limit, struct hf_session_answer *answer, struct hf_err *err);
    int (*list)(struct hf_store *store, const struct hf_caller *who,
                const struct hf_session_filter *filter, struct hf_session_answer *answer,
                struct hf_err *err);
    int (*inputs)(struct hf_store *store, const char *session_id, const char *after,
                  size_t limit, struct hf_session_answer *answer, struct hf_err *err);
    int (*step)(struct hf_store *store, const struct hf_caller *who,
                const struct hf_session_step *step,
                struct hf_session_stepped *ret_stepped, struct hf_err *err);
    int (*commit)(struct hf_store *store, const struct hf_caller *who,
                  const struct hf_session_commit *commit,
                  struct hf_session_committed *ret_committed, struct hf_err *err);
    /* At most 1,000. */
    int (*renew_all)(struct hf_store *store, struct hf_session_renewal *renewals,
                     size_t count, struct hf_err *err);
    int (*release)(struct hf_store *store, const struct hf_caller *who,
                   const char *session_id, const char *token, struct hf_err *err);
    int (*hand_back)(struct hf_store *store, const struct hf_caller *who,
                     const struct hf_session_back *back, struct hf_err *err);
    /* When a claim by these agents has something to look at next (the caller's wall ms; 0:
     * nothing in sight). */
    int (*next)(struct hf_store *store, const struct hf_session_claim *claim,
                hf_ms *ret_at, struct hf_err *err);
    int (*cancel_turn)(struct hf_store *store, const struct hf_caller *who,
                       const struct hf_session_cancel *request,
                       enum hf_session_turn_cancel *ret_answer, struct hf_err *err);
};

/* The verbs of journal.h. Input has been checked, the envelope is canonical, ttl_ms is not 0,
 * and the token is one. */
struct hf_journal_methods {
    int (*begin)(struct hf_store *store, const struct hf_caller *who,
                 const struct hf_journal_begin *request, struct hf_journal_answer *answer,
                 struct hf_err *err);
    int (*renew)(struct hf_store *store, const struct hf_journal_key *of,
                 const char *token, struct hf_err *err);
    int (*settle)(struct hf_store *store, const struct hf_journal_key *of,
                  const char *token, enum hf_entry_status status, const char *outcome,
                  struct hf_err *err);
    int (*retire)(struct hf_store *store, enum hf_scope scope, const char *scope_id,
                  int64_t *ret_count, struct hf_err *err);
    /* After the entry of the key `after` (NULL: from the first); adds at most `limit` effects. */
    int (*unknown)(struct hf_store *store, const struct hf_caller *who,
                   const struct hf_journal_key *after, size_t limit,
                   struct hf_journal_effects *effects, struct hf_err *err);
    /* `outcome` is canonical JSON. Adds the one effect. */
    int (*resolve)(struct hf_store *store, const struct hf_caller *who,
                   const struct hf_journal_resolve *resolve,
                   struct hf_journal_effects *effects, struct hf_err *err);
};

/* The verbs of wait.h; each as declared there, with an empty answer to fill. Input has been
 * checked. A resolve has an id, and its value is canonical JSON; `by_key`: it was named by a key,
 * which holds, so that a wait that is cancelled or not there is HF_EWAITKEY. */
struct hf_wait_methods {
    int (*resolve)(struct hf_store *store, const struct hf_caller *who,
                   const struct hf_wait_resolve *request, bool by_key,
                   struct hf_wait_answer *answer, struct hf_err *err);
    int (*revoke)(struct hf_store *store, const struct hf_caller *who,
                  const struct hf_wait_revoke *request, struct hf_wait_answer *answer,
                  struct hf_err *err);
    int (*list)(struct hf_store *store, const struct hf_caller *who,
                const struct hf_wait_filter *filter, struct hf_wait_answer *answer,
                struct hf_err *err);
    /* By id, or by a unique part of at least 4 characters at its beginning or end. */
    int (*get)(struct hf_store *store, const char *wait_id, struct hf_wait_answer *answer,
               struct hf_err *err);
    /* The key of an id that is one; false in *ret_holds for a key that does not hold. */
    int (*key)(struct hf_store *store, const char *wait_id,
               char ret_key[HF_WAIT_KEY_TEXT], struct hf_err *err);
    int (*key_check)(struct hf_store *store, const char *key,
                     char ret_wait_id[HF_WAIT_ID_TEXT], bool *ret_holds,
                     struct hf_err *err);
    int (*rotate)(struct hf_store *store, hf_ms valid_ms, struct hf_err *err);
};

/* A page of a list ends with the row that brings its texts to this many bytes, and after the store
 * has looked at this many rows. */
#define HF_PAGE_BYTES ((int64_t)4 << 20)
#define HF_PAGE_ROWS 20000

/* The facts of a store about one finding. Texts are borrowed until the callback returns. */
struct hf_look_row {
    /* The unit, without resume_payload, result and retry_policy, and with a payload only where
     * its kind is run or question; NULL: the finding is not about a unit. */
    const struct hf_work *work;
    /* The wait of a turn: what it is, who may answer, what was asked and its times; of a long
     * `asked` the question and the call's name. NULL: the finding is not about one. */
    const struct hf_wait *wait;
    const char *tenant;
    const char *id;   /* of what is neither */
    const char *kind; /* unserved: NULL if `id` is an agent whose sessions are ready */
    const char *owner;
    const char *text;    /* silent: which proof is missing; otherwise what is wrong */
    const char *advice;  /* store: what to do */
    const char *said;    /* with the event that brought the unit's status */
    const char *said_by; /* "KIND:NAME" */
    hf_ms since;
    hf_ms until;
    int64_t count;
    int64_t most;
};

/* A code other than 0 ends the reading and is its code. */
typedef int hf_each_look(void *user, const struct hf_look_row *seen);

struct hf_look {
    enum hf_need what;
    bool rest;         /* of bad ends: those after the first `limit`, by kind and class */
    size_t limit;      /* findings */
    hf_ms unserved_ms; /* see struct hf_attention_query */
    hf_each_look *each;
    void *user;
};

/* A look counts no further. */
#define HF_LOOK_BOUND 20000

/* How many findings of a kind there are, those that were not shown included. */
struct hf_look_found {
    int64_t units; /* and what a kind has instead of units: schedules, owners, queues … */
    int64_t others; /* sessions, agents and waits of turns: they are in another list */
    bool cut;       /* not all that may be findings were looked at */
};

/* The verbs of attention.h and overview.h. */
struct hf_overview_methods {
    /* One kind of finding: units first, then others, `limit` of both together. Each is counted
     * up to HF_LOOK_BOUND. */
    int (*look)(struct hf_store *store, const struct hf_caller *who,
                const struct hf_look *look, struct hf_look_found *ret_found,
                struct hf_err *err);
    int (*ack)(struct hf_store *store, const struct hf_caller *who,
               const struct hf_ack *ack, int64_t *ret_count, struct hf_err *err);
    int (*queues)(struct hf_store *store, const struct hf_caller *who,
                  hf_each_queue *each, void *user, struct hf_err *err);
    int (*holders)(struct hf_store *store, const struct hf_caller *who, const char *owner,
                   hf_each_holder_row *each, void *user, struct hf_err *err);
    int (*ages)(struct hf_store *store, const struct hf_caller *who,
                struct hf_age_table *ret_ages, struct hf_err *err);
    /* `limit` is set; `after` and ret_next are the store's own cursors. NULL: a store without
     * triggers. */
    int (*occurrences)(struct hf_store *store, const struct hf_caller *who,
                       const struct hf_occurrence_filter *filter,
                       hf_each_occurrence *each, void *user,
                       struct hf_occurrence_next *ret_next, struct hf_err *err);
};

struct hf_store_methods {
    const char *name;
    int (*create)(struct hf_store *store, const struct hf_caller *who,
                  const struct hf_work_spec *news, size_t n, unsigned flags,
                  struct hf_answer *answer, struct hf_err *err);
    /* One try; waiting is done above. */
    int (*claim)(struct hf_store *store, const struct hf_caller *who,
                 const struct hf_claim *claim, struct hf_answer *answer,
                 struct hf_err *err);
    int (*change)(struct hf_store *store, const struct hf_caller *who,
                  const struct hf_change *changes, size_t n, unsigned flags,
                  struct hf_answer *answer, struct hf_err *err);
    int (*renew_all)(struct hf_store *store, const struct hf_caller *who,
                     const struct hf_renew_all *renew, struct hf_answer *answer,
                     struct hf_err *err);
    int (*get)(struct hf_store *store, const char *id, struct hf_answer *answer,
               struct hf_err *err);
    int (*list)(struct hf_store *store, const struct hf_caller *who,
                const struct hf_filter *filter, struct hf_answer *answer,
                struct hf_err *err);
    int (*events)(struct hf_store *store, const char *id, int64_t after, size_t limit,
                  struct hf_events **ret_events, struct hf_err *err);
    /* One page, without waiting; `feed` is empty. */
    int (*feed)(struct hf_store *store, const struct hf_caller *who,
                const struct hf_feed_query *query, struct hf_feed *feed,
                struct hf_err *err);
    /* Of who->tenant; "" counts all tenants, as in a list. */
    int (*stats)(struct hf_store *store, const struct hf_caller *who,
                 struct hf_stats *ret_stats, struct hf_err *err);
    int (*sweep)(struct hf_store *store, const struct hf_caller *who, size_t limit,
                 struct hf_sweep_report *ret_report, struct hf_err *err);
    int (*prune)(struct hf_store *store, hf_ms older_than_ms, size_t limit,
                 int64_t *ret_rows, struct hf_err *err);
    /* A write that takes as long as any, for a monitor that times it; it need not do
     * anything while no lease is held. */
    int (*pulse)(struct hf_store *store, struct hf_err *err);
    /* Rule 13: calls of a monitor stalled for `stalled_ms` until now. Work leases of less
     * than three times that, which lived when the stall began and have lapsed or will
     * within a third of their term, get one more term; that is noted in the store's log. */
    int (*amnesty)(struct hf_store *store, hf_ms stalled_ms, int64_t *ret_rows,
                   struct hf_err *err);
    /* Changes of the store as a whole: entries before `before`, newest first. */
    int (*log)(struct hf_store *store, int64_t before, size_t limit, hf_logged *each,
               void *user, struct hf_err *err);
    int (*policy_set)(struct hf_store *store, const char *scope,
                      const struct hf_policy *policy, struct hf_err *err);
    int (*policy_get)(struct hf_store *store, enum hf_source source, const char *kind,
                      struct hf_policy_answer **ret_answer, struct hf_err *err);
    /* `name` as rows carry it; `limit` is complete (burst set where there is a rate). */
    int (*limit_set)(struct hf_store *store, const char *name,
                     const struct hf_limit *limit, struct hf_err *err);
    int (*limit_list)(struct hf_store *store, hf_each_limit *each, void *user,
                      struct hf_err *err);
    int (*lease_take)(struct hf_store *store, const struct hf_lease_claim *claim,
                      struct hf_lease_info *ret_info, struct hf_err *err);
    int (*lease_renew)(struct hf_store *store, enum hf_leased leased, const char *key,
                       const char *token, struct hf_lease_info *ret_info,
                       struct hf_err *err);
    int (*lease_release)(struct hf_store *store, enum hf_leased leased, const char *key,
                         const char *token, struct hf_err *err);
    int (*lease_look)(struct hf_store *store, enum hf_leased leased, const char *key,
                      struct hf_lease_info *ret_info, struct hf_err *err);
    int (*bump)(struct hf_store *store, int64_t *ret_incarnation, struct hf_err *err);
    int (*check)(struct hf_store *store, hf_found *found, void *user, struct hf_err *err);
    int (*facts)(struct hf_store *store, char **ret_json, struct hf_err *err);
    int (*dump)(struct hf_store *store, const struct hf_dump *dump, struct hf_err *err);
    /* Wake-up hints for a topic; see sys/driver.h. */
    uint32_t (*bell_seen)(struct hf_store *store, uint32_t topic);
    bool (*bell_wait)(struct hf_store *store, uint32_t topic, uint32_t seen, hf_ms ms);
    /* When a sweep has something to do next (the caller's wall ms; 0: nothing in sight). */
    int (*next_due)(struct hf_store *store, hf_ms *ret_at, struct hf_err *err);
    /* The processes that hold leases, each once, as hf_work.holder shows them. May be
     * NULL: then no death is noticed before the lease lapses. */
    int (*holders)(struct hf_store *store, hf_each_holder *each, void *user,
                   struct hf_err *err);
    /* See sys/driver.h. May be NULL. */
    bool (*taken_here)(struct hf_store *store, uint32_t *ret_count);
    /* NULL: a store without processes. */
    const struct hf_process_methods *process;
    void (*close)(struct hf_store *store);
    const struct hf_schedule_methods *schedules; /* NULL: this store has none */
    const struct hf_trigger_methods *triggers;   /* the same */
    const struct hf_session_methods *sessions;   /* the same */
    const struct hf_wait_methods *waits;         /* the same */
    const struct hf_overview_methods *watch;     /* the same */
    const struct hf_journal_methods *journal;    /* the same */
    /* Whether there is a unit of this tenant, source, id and run. May be NULL: none is. */
    int (*known)(struct hf_store *store, const char *tenant,
                 const struct hf_work_spec *request, bool *ret_known, struct hf_err *err);
    /* hf_store_now. May be NULL: the store has no clock but the handle's. */
    hf_ms (*now)(const struct hf_store *store);
};

/* Every store begins so. */
struct hf_store {
    const struct hf_store_methods *methods;
    const struct hf_alloc *alloc;
    const struct hf_clock *clock;
    const struct hf_random *random;
    char incarnation[64]; /* of this handle */
};

/* For implementers: filling an answer. Memory comes from the answer and lives as long. */
HF_API struct hf_answer *hf_answer_new(const struct hf_alloc *alloc);
HF_API struct hf_item *hf_answer_add(
    struct hf_answer *answer); /* zeroed; NULL: no memory */
HF_API const char *hf_journal_answer_copy(struct hf_journal_answer *answer,
                                          struct hf_span bytes);
/* The next effect of a page, copied; HF_ENOMEM. */
HF_API HF_MUST_USE int hf_journal_effects_add(struct hf_journal_effects *effects,
                                              const struct hf_journal_effect *effect);
HF_API void *hf_answer_memory(struct hf_answer *answer, size_t bytes);
HF_API const char *hf_answer_text(struct hf_answer *answer,
                                  const char *text); /* a copy */
HF_API void hf_answer_set_next(struct hf_answer *answer, const char *cursor);

/* The same for a trail. */
HF_API struct hf_events *hf_events_new(const struct hf_alloc *alloc);
HF_API struct hf_event *hf_events_add(struct hf_events *events);
HF_API const char *hf_events_text(struct hf_events *events, const char *text);

/* The same for a page of the feed. `next` lives in the feed (hf_feed_text). */
HF_API struct hf_feed *hf_feed_new(const struct hf_alloc *alloc);
HF_API struct hf_feed_item *hf_feed_add(
    struct hf_feed *feed); /* zeroed; NULL: no memory */
HF_API const char *hf_feed_text(struct hf_feed *feed, const char *text); /* a copy */
HF_API void hf_feed_set(struct hf_feed *feed, const char *next, int64_t incarnation,
                        unsigned notices, bool more);

/* The same for processes: the next one, copied; HF_ENOMEM. At most as many as the filter's
 * limit. */
HF_API HF_MUST_USE int hf_processes_add(struct hf_processes *processes,
                                        const struct hf_process *process);
HF_API HF_MUST_USE int hf_processes_set_next(struct hf_processes *processes,
                                             const char *cursor);

/* The same for the output of a command: the next chunk, copied; HF_ENOMEM. */
HF_API HF_MUST_USE int hf_output_put(struct hf_output *output, enum hf_stream stream,
                                     int64_t attempt, int64_t chunk, struct hf_span data);

/* The same for sessions: zeroed memory, and copies, that live as long as the answer; NULL: no
 * memory. hf_session_answer_record decodes a record; HF_ECORRUPT if it is none. */
HF_API struct hf_session_answer *hf_session_answer_new(const struct hf_alloc *alloc);
HF_API void *hf_session_answer_memory(struct hf_session_answer *answer, size_t bytes);
HF_API const char *hf_session_answer_copy(struct hf_session_answer *answer,
                                          struct hf_span bytes);
HF_API HF_MUST_USE int hf_session_answer_record(struct hf_session_answer *answer,
                                                const char *json,
                                                const struct hf_record **ret_record,
                                                struct hf_err *err);

/* The same for waits. */
HF_API struct hf_wait_answer *hf_wait_answer_new(const struct hf_alloc *alloc);
HF_API void *hf_wait_answer_memory(struct hf_wait_answer *answer, size_t bytes);
HF_API const char *hf_wait_answer_copy(struct hf_wait_answer *answer,
                                       struct hf_span bytes);

/* A policy to return, with copies of its texts; NULL: no memory. */
HF_API struct hf_policy_answer *hf_policy_answer_new(const struct hf_alloc *alloc,
                                                     const struct hf_policy *policy);

#ifdef __cplusplus
}
#endif
#endif
