/* Counts for operators: by queue, holder and age. Each call is one read on one
 * snapshot. Rows that have ended are never counted.
 *
 * Rows are passed to a callback one by one; their texts are borrowed until it returns. `who` names
 * the tenant; without one all tenants are counted.
 */
#ifndef HOLDFAST_OVERVIEW_H
#define HOLDFAST_OVERVIEW_H

#include <holdfast/work.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_queue {
    const char *queue;
    int64_t claimable;
    int64_t due; /* queued behind this gate; the same for the next four */
    int64_t lane;
    int64_t limit;
    int64_t rate;
    int64_t held;
    int64_t running;
    int64_t waiting;
    int64_t retry;
    int64_t silent;            /* of those that run */
    hf_ms oldest_claimable_ms; /* for how long; 0: none */
    hf_ms next_due_at;         /* when the next unit falls due; 0: none */
    const char *kinds;         /* JSON: an array of the kinds, in order */
};
typedef void hf_each_queue(void *user, const struct hf_queue *queue);

/* The queues that have open units, by name, at most 1,000. HF_EINVAL, and the errors of a store. */
HF_API HF_MUST_USE int hf_queue_list(struct hf_store *store, const struct hf_caller *who,
                                     hf_each_queue *each, void *user, struct hf_err *err);

/* A host is known by its boot id. No host name is stored: hosts may share a name or change it, and
 * the id also tells a host from the same one before a restart. */
struct hf_holder {
    const char *owner;
    const char *incarnation;
    int64_t running;
    int64_t silent;
    hf_ms started_at;    /* of the oldest */
    hf_ms least_left_ms; /* of a lease; negative: it has lapsed */
    hf_ms most_left_ms;
    hf_ms active_at;  /* the last activity that was reported */
    const char *boot; /* boot id of the host; NULL: not known */
    int64_t pid;      /* on it; 0: not known */
    bool twin;        /* another incarnation of this owner holds work at once */
};
typedef void hf_each_holder_row(void *user, const struct hf_holder *holder);

/* Who holds work, by owner and beginning, at most 1,000. `owner` NULL: all. HF_EINVAL, and the
 * errors of a store. */
HF_API HF_MUST_USE int hf_holder_list(struct hf_store *store, const struct hf_caller *who,
                                      const char *owner, hf_each_holder_row *each,
                                      void *user, struct hf_err *err);

/* Under a minute, ten minutes, an hour, a day, a week; older. */
#define HF_AGES 6
/* Over two thirds of the term are left, over one third, less, none. */
#define HF_LEASE_PARTS 4

struct hf_age_table {
    int64_t open[HF_STATUS_COUNT][HF_AGES]; /* by the age of the unit */
    int64_t leases[HF_LEASE_PARTS];         /* of units that run, and of open turns */
};

/* Open units by status and age, and leases by the rest of their term. The units of an open turn
 * run on one lease, that of their session. HF_EINVAL, and the errors of a store. */
HF_API HF_MUST_USE int hf_work_ages(struct hf_store *store, const struct hf_caller *who,
                                    struct hf_age_table *ret_ages, struct hf_err *err);

struct hf_occurrence {
    const char *occurrence_id;
    const char *tenant;
    const char *source_type;
    const char *source_key;
    const char *idempotency_key;
    hf_ms occurred_at;
    hf_ms created_at;
    const char *deliveries; /* JSON: an array of subscription_key, work_id and status */
    bool deliveries_more;   /* these are 100, and there are more */
};
typedef void hf_each_occurrence(void *user, const struct hf_occurrence *occurrence);

struct hf_occurrence_next {
    char cursor[256]; /* "": there is no next page */
};

struct hf_occurrence_filter {
    uint32_t size;
    const char *source_type;
    const char *source_key;
    size_t limit;      /* 0: 100 */
    const char *after; /* cursor of an earlier page */
};

/* Occurrences, the newest first, each with the units that it started. A page ends after
 * `limit` rows, with the row that brings the deliveries to 4 MiB, or after 20,000 rows were looked
 * at: it may have fewer rows than asked for, or none, and still a next one. *ret_next is the cursor
 * of the next page, of this list with the same filter; "": this was the last. HF_EINVAL names the
 * field, HF_ETOOBIG for `limit`, HF_ENOMEM, and the errors of a store. */
HF_API HF_MUST_USE int hf_occurrence_list(struct hf_store *store,
                                          const struct hf_caller *who,
                                          const struct hf_occurrence_filter *filter,
                                          hf_each_occurrence *each, void *user,
                                          struct hf_occurrence_next *ret_next,
                                          struct hf_err *err);

#ifdef __cplusplus
}
#endif
#endif
