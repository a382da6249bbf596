/* Triggers: when something happens, every subscription makes a unit of work.
 *
 * A subscription says what it waits for (source type and key) and what to start. An
 * occurrence is emitted once under an idempotency key of its source; in one transaction it
 * is stored, and every enabled subscription that matches gets a delivery: a snapshot of the
 * subscription, the unit of its target (source "control", source id the subscription, run id
 * the occurrence), and, where it names a session to wake, a unit that wakes it and a grant
 * of the handle. Emitting the same again starts nothing again.
 *
 * Threads: all functions may be called from any thread on one store handle.
 */
#ifndef HOLDFAST_TRIGGER_H
#define HOLDFAST_TRIGGER_H

#include <holdfast/work.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One subscription as readers see it. */
struct hf_subscription {
    const char *subscription_id; /* made of tenant, owner scope and key */
    const char *tenant;
    const char *owner_scope;
    const char *subscription_key;
    const char *state;       /* enabled | disabled | deleted */
    const char *incarnation; /* another one after each revival */
    int64_t revision;        /* raised by every change */
    const char *source_type;
    const char *source_key;
    const char *payload_template; /* JSON; NULL: the payload as it is */
    const char *kind;             /* of the target, like all that follow */
    const char *queue;
    const char *lane_key;
    int64_t priority;
    int64_t max_attempts;
    const char *retry_policy;
    const char *disposition;
    hf_ms start_timeout_ms;
    hf_ms exec_timeout_ms;
    const char *wake_session;
    const char *process_kind; /* the target is a process (process.h); NULL: it is not */
    const char *process_name;
    const char *registrant; /* who changed it last, as KIND:NAME */
    int64_t deliveries;
    hf_ms last_at; /* of the last delivery */
    hf_ms created_at;
    hf_ms updated_at;
};

struct hf_subscription_spec {
    uint32_t size;
    const char *owner_scope; /* "session:ID", "host:BINDING"; NULL: "host" */
    const char *key;
    const char *source_type;
    const char *source_key;
    const char *payload_template; /* JSON in which {"$event": "a.b"} is that member
                                     of the payload, {"$event": ""} all of it; with a
                                     "default" next to it the member may be missing */
    const char *kind;             /* as in struct hf_work_spec, like all that follow */
    const char *queue;
    const char *lane_key;
    int priority;
    int max_attempts;
    const char *retry_policy;
    enum hf_disposition disposition; /* NONE: rerunnable */
    hf_ms start_timeout_ms;
    hf_ms exec_timeout_ms;
    const char
        *wake_session; /* gets a unit "wake" in its queue, session:ID, and a grant */
    const char *process_kind; /* makes the target a process of this kind, which the owner
                                 began; its end wakes the session once more */
    const char *process_name; /* its label; needs process_kind */
};

/* Subscriptions that were read own all the memory they show. */
struct hf_subscriptions;
HF_API size_t hf_subscriptions_count(const struct hf_subscriptions *subscriptions);
HF_API const struct hf_subscription *hf_subscriptions_at(
    const struct hf_subscriptions *subscriptions, size_t i);
HF_API const char *hf_subscriptions_next(const struct hf_subscriptions *subscriptions);
HF_API bool hf_subscriptions_changed(const struct hf_subscriptions *subscriptions);
HF_API void hf_subscriptions_free(struct hf_subscriptions *subscriptions);

/* Subscribe. The same definition again changes nothing; another one under the same key is
 * HF_ECONFLICT (update it), and so is one that was removed (revive it). */
HF_API HF_MUST_USE int hf_trigger_subscribe(struct hf_store *store,
                                            const struct hf_caller *who,
                                            const struct hf_subscription_spec *wanted,
                                            struct hf_subscriptions **ret_subscriptions,
                                            struct hf_err *err);

/* Replace the definition of one at the revision that the caller saw; any other is
 * HF_ECONFLICT naming "revision". It stays enabled or disabled. */
HF_API HF_MUST_USE int hf_trigger_update(struct hf_store *store,
                                         const struct hf_caller *who,
                                         const struct hf_subscription_spec *wanted,
                                         int64_t revision,
                                         struct hf_subscriptions **ret_subscriptions,
                                         struct hf_err *err);

enum hf_trigger_verb {
    HF_TRIGGER_ENABLE,
    HF_TRIGGER_DISABLE,
    HF_TRIGGER_REMOVE, /* it is kept as deleted, with its history */
    HF_TRIGGER_REVIVE  /* of one that was removed: enabled, a new incarnation */
};

struct hf_trigger_change {
    uint32_t size;
    enum hf_trigger_verb verb;
    const char *owner_scope; /* NULL: "host" */
    const char *key;
    int64_t revision; /* 0: any */
};

/* Change one. A change to the state that it has changes nothing. Of one that was removed only a
 * revival, and of one that was not none: HF_ETRANSITION. */
HF_API HF_MUST_USE int hf_trigger_change(struct hf_store *store,
                                         const struct hf_caller *who,
                                         const struct hf_trigger_change *change,
                                         struct hf_subscriptions **ret_subscriptions,
                                         struct hf_err *err);

/* One by owner scope (NULL: "host") and key. HF_EINVAL, HF_ENOTFOUND, and the errors of a store. */
HF_API HF_MUST_USE int hf_trigger_get(struct hf_store *store, const struct hf_caller *who,
                                      const char *owner_scope, const char *key,
                                      struct hf_subscriptions **ret_subscriptions,
                                      struct hf_err *err);

struct hf_trigger_filter {
    uint32_t size;
    const char *owner_scope; /* NULL: any; the same for those below */
    const char *source_type;
    const char *source_key;
    const char *state; /* NULL: all but deleted */
    size_t limit;      /* 0: 100 */
    const char *after; /* cursor of an earlier answer */
    bool newest;       /* in the order of creation, the newest first */
};

/* Subscriptions of the caller's tenant, or of all tenants if it names none, in the order of
 * tenants, owner scopes and keys, a page at a time. Pages end, and cursors continue, as those of
 * hf_schedule_list. HF_EINVAL names the field, HF_ETOOBIG for `limit`, and the errors of a
 * store. */
HF_API HF_MUST_USE int hf_trigger_list(struct hf_store *store,
                                       const struct hf_caller *who,
                                       const struct hf_trigger_filter *filter,
                                       struct hf_subscriptions **ret_subscriptions,
                                       struct hf_err *err);

/* ---- emitting ---------------------------------------------------------------------- */

struct hf_occurrence_spec {
    uint32_t size;
    const char *source_type;
    const char *source_key;
    const char *idempotency_key; /* of this source */
    const char *payload;         /* JSON; NULL: null */
    const char *scope;           /* only subscriptions of this owner scope; NULL: all */
    hf_ms occurred_at;           /* 0: now */
};

struct hf_delivery {
    const char *delivery_id; /* made of occurrence and subscription */
    const char *subscription_id;
    const char *owner_scope;
    const char *subscription_key;
    const char *incarnation; /* these three as they were then */
    int64_t revision;
    const char *snapshot; /* JSON */
    const char *work_id;
    const char *wake_work_id; /* NULL: no session is woken */
    hf_ms created_at;
};

/* The result of an emission, now or when it was first made. */
struct hf_emission;
HF_API const char *hf_emission_occurrence(const struct hf_emission *emission);
HF_API bool hf_emission_created(const struct hf_emission *emission);
HF_API size_t hf_emission_count(const struct hf_emission *emission); /* deliveries */
HF_API const struct hf_delivery *hf_emission_at(const struct hf_emission *emission,
                                                size_t i);
HF_API void hf_emission_free(struct hf_emission *emission);

/* Emit one occurrence. The same key of the same source with the same content returns what
 * the first made, with other content HF_ECONFLICT. A template that names a member that
 * the payload does not have is HF_EINVAL naming "template", and nothing is written. */
HF_API HF_MUST_USE int hf_trigger_emit(struct hf_store *store,
                                       const struct hf_caller *who,
                                       const struct hf_occurrence_spec *occurrence,
                                       struct hf_emission **ret_emission,
                                       struct hf_err *err);

/* The units that an occurrence created, by its id. HF_EINVAL, HF_ENOTFOUND, and the errors of a
 * store. */
HF_API HF_MUST_USE int hf_trigger_deliveries(struct hf_store *store,
                                             const struct hf_caller *who,
                                             const char *occurrence_id,
                                             struct hf_emission **ret_emission,
                                             struct hf_err *err);

/* The units that a session was granted the handles of, in order of creation, at most `limit`
 * (0: 100). HF_EINVAL, HF_ETOOBIG for `limit`, and the errors of a store. */
HF_API HF_MUST_USE int hf_trigger_granted(struct hf_store *store,
                                          const struct hf_caller *who,
                                          const char *session_id, size_t limit,
                                          struct hf_answer **ret_answer,
                                          struct hf_err *err);

#ifdef __cplusplus
}
#endif
#endif
