/* The SQL store: the ledger's verbs over a driver. One file per group of verbs. */
#ifndef HF_STORE_STORE_H
#define HF_STORE_STORE_H

#include <holdfast/sys/driver.h>
#include <holdfast/sys/store.h>

#include "core/ledger/step.h"
#include "core/wait/wait.h"
#include "os/threads.h"
#include "store/batch/ops.h"
#include "store/batch/plan.h"
#include "store/batch/rowio.h"
#include "store/work/scan.h"

struct policy_set;

/* The system's random bytes, drawn many at a time: a call into the kernel for each id costs
 * more than the id. A handle does not survive a fork, so no two processes share them. */
struct sql_random {
    struct hf_random handle;
    pthread_mutex_t lock;
    size_t left;
    uint8_t bytes[512];
};

/* The secrets of waits' keys as last read, the current one first. */
struct sql_secrets {
    size_t count;
    struct hf_wait_secret all[2];
    hf_ms valid_until[2]; /* wall; 0: the current one */
    hf_ms read_at;        /* monotonic */
};

struct sql_store {
    struct hf_store handle;
    struct hf_sql *sql;
    struct sql_random random;
    const struct hf_plan *plan; /* of its engine */
    pthread_mutex_t lock;       /* of what follows */
    struct sql_scan_start scan_starts[SCAN_QUEUES];
    uint64_t uuid_seq;
    struct policy_set *policies; /* as last read; NULL: read again */
    hf_ms policies_at;           /* monotonic */
    struct sql_secrets secrets;
};

static inline struct sql_store *sql_store_of(struct hf_store *store)
{
    return (struct sql_store *)(void *)store;
}

/* How often a verb reads, decides and writes again when others change the row meanwhile,
 * before it says HF_EBUSY. */
#define HF_TRIES 32

/* Open the engine that an address names: "PATH", "sqlite:PATH", "sqlite::memory:". */
int hf_sql_open(const char *url, const struct hf_sql_options *options,
                struct hf_sql **ret_sql, struct hf_err *err);

/* Make the store over an open driver; takes the driver over on success. */
int hf_sql_store_new(struct hf_sql *sql, const struct hf_store_options *options,
                     struct hf_store **ret_store, struct hf_err *err);

/* An id for a new unit. */
int sql_new_id(struct sql_store *store, hf_ms now, char ret_id[37], struct hf_err *err);

/* The row that a request makes, with a fresh id, under the policy in force; its texts live in
 * the arena or are the request's. ret_hash has 32 bytes. The request has been checked. */
int sql_make_row(struct sql_store *store, struct hf_arena *arena,
                 const struct hf_caller *who, struct hf_env *env,
                 const struct hf_work_spec *request, struct hf_row *ret_row,
                 uint8_t *ret_hash, struct hf_err *err);

/* The code of an answer that was to be built after its commit: what is done is not told as a
 * failure that wrote nothing. */
int sql_answered(int rc, struct hf_err *err);

/* The moment of a call as core wants it: times and incarnation as a batch saw them. */
int sql_env(struct sql_store *store, const struct hf_caller *who,
            const struct hf_batch *seen, struct hf_env *ret_env, struct hf_err *err);

/* The policy in force, texts copied into the arena. Other processes' changes are seen
 * within a second, this handle's own at once. */
int sql_policy(struct sql_store *store, struct hf_arena *arena, enum hf_source source,
               const char *kind, struct hf_policy *ret_policy, struct hf_err *err);
/* The same with `last` in place of what is built in. */
int sql_policy_over(struct sql_store *store, struct hf_arena *arena,
                    const struct hf_policy *last, enum hf_source source, const char *kind,
                    struct hf_policy *ret_policy, struct hf_err *err);
void sql_policies_forget(struct sql_store *store);
/* Whether any limit has a rate; as fresh as the policies. */
int sql_limits_rated(struct sql_store *store, bool *ret_rated, struct hf_err *err);
/* Whether a limit is set for the kind; as fresh as the policies. */
int sql_kind_limited(struct sql_store *store, const char *kind, bool *ret_limited,
                     struct hf_err *err);

/* Was this operation applied before? 0: no. 1: yes, with the same content; *ret_result is
 * what it left, and lives in `ops`. HF_ECONFLICT: with other content. `ops` is empty. */
int sql_receipt_find(struct hf_ops *ops, const struct hf_caller *who, const char *scope,
                     const uint8_t hash[32], const char **ret_result, struct hf_err *err);
/* Append the receipt to a batch; a second one refuses the batch with HF_ECONFLICT. `result`
 * may be NULL. */
void sql_receipt_add(struct hf_ops *ops, const struct hf_caller *who, const char *scope,
                     const uint8_t hash[32], const char *result);

/* The rows that are inserted next to one new unit: in its transaction, and only if
 * it is created. */
struct sql_beside {
    /* Appends calls that name the unit by its id and do nothing where there is none. */
    int (*add)(void *user, struct hf_ops *ops, const char *work_id, struct hf_err *err);
    void *user;
    const uint8_t *hash; /* 32 bytes: of the extra rows, which are part of the request */
};
int sql_create_with(struct hf_store *store, const struct hf_caller *who,
                    const struct hf_work_spec *request, const struct sql_beside *beside,
                    struct hf_answer *ret_answer, struct hf_err *err);

/* Append the claim of a unit that the same batch makes. */
int sql_claim_add(struct sql_store *store, const struct hf_caller *who,
                  const struct hf_claim *claim, const char *work_id, struct hf_ops *ops,
                  struct hf_err *err);

/* Append an event that is no transition; attempt 0: of the unit, not of an attempt. */
struct sql_note {
    const char *work_id;
    int64_t attempt;
    const char *type;
    const char *message;
    const char *payload; /* JSON */
};
size_t sql_note_add(struct hf_ops *ops, const struct hf_caller *who,
                    const struct sql_note *note);

/* Append the unit that wakes the session of a row (process/wake.c); and, for a row that is
 * about to be written, what its end means to others, if it ends: the bell of those who await
 * it, and the wake. */
struct hf_wake_cause;
int sql_wake_add(struct sql_store *store, const struct hf_caller *who, struct hf_ops *ops,
                 const struct hf_row *row, const struct hf_wake_cause *cause,
                 struct hf_err *err);
/* The row of a wake, whose request is `unit`; `who` has the tenant of what it is for. After the
 * row's insert sql_wake_input appends what makes it an input of its session, if it is one. */
struct sql_waking {
    const char *session_id;
    const struct hf_work_spec *unit;
};
int sql_wake_row(struct sql_store *store, struct hf_arena *arena,
                 const struct hf_caller *who, struct hf_env *env,
                 const struct sql_waking *waking, struct hf_making *ret_making,
                 struct hf_err *err);
void sql_wake_input(struct hf_ops *ops, const struct hf_making *wake);
int sql_wake_ended(struct sql_store *store, const struct hf_caller *who,
                   struct hf_ops *ops, const struct hf_row *was, const struct hf_row *row,
                   struct hf_err *err);

/* Act on open waits whose time has come, at most `limit`; counts into the report. */
int sql_waits_sweep(struct sql_store *store, const struct hf_caller *who, size_t limit,
                    struct hf_sweep_report *report, struct hf_err *err);

/* Find one row by id, unique prefix or unique suffix. The row's texts live in `ops`. */
int sql_find(struct hf_ops *ops, const char *id, struct hf_row *ret_row,
             struct hf_err *err);

/* Wall time by the store's clock, as far as it is known without asking: what is written is
 * held against it by others. */
hf_ms sql_wall(const struct sql_store *store);
/* A time of the store's clock, which said `now`, as the caller's clock will show it: a server's
 * may be another. 0 stays 0. */
hf_ms sql_by_caller(const struct hf_store *handle, hf_ms at, hf_ms now);

/* Pass the token of a row that was just leased to an item. */
int sql_item_token(struct hf_answer *answer, struct hf_item *item,
                   const struct hf_row *row);

/* The methods, by file. */
int sql_create(struct hf_store *store, const struct hf_caller *who,
               const struct hf_work_spec *news, size_t n, unsigned flags,
               struct hf_answer *ret_answer, struct hf_err *err);
int sql_claim(struct hf_store *store, const struct hf_caller *who,
              const struct hf_claim *claim, struct hf_answer *answer, struct hf_err *err);
int sql_change(struct hf_store *store, const struct hf_caller *who,
               const struct hf_change *changes, size_t n, unsigned flags,
               struct hf_answer *ret_answer, struct hf_err *err);
int sql_renew_all(struct hf_store *store, const struct hf_caller *who,
                  const struct hf_renew_all *renew, struct hf_answer *answer,
                  struct hf_err *err);
int sql_known(struct hf_store *store, const char *tenant,
              const struct hf_work_spec *request, bool *ret_known, struct hf_err *err);
int sql_get(struct hf_store *store, const char *id, struct hf_answer *answer,
            struct hf_err *err);
int sql_list(struct hf_store *store, const struct hf_caller *who,
             const struct hf_filter *filter, struct hf_answer *answer,
             struct hf_err *err);
int sql_events(struct hf_store *store, const char *id, int64_t after, size_t limit,
               struct hf_events **ret_events, struct hf_err *err);
int sql_feed(struct hf_store *store, const struct hf_caller *who,
             const struct hf_feed_query *query, struct hf_feed *feed, struct hf_err *err);
int sql_pulse(struct hf_store *store, struct hf_err *err);
int sql_amnesty(struct hf_store *store, hf_ms stalled_ms, int64_t *ret_rows,
                struct hf_err *err);
int sql_log(struct hf_store *store, int64_t before, size_t limit, hf_logged *each,
            void *user, struct hf_err *err);
int sql_stats(struct hf_store *handle, const struct hf_caller *who,
              struct hf_stats *ret_stats, struct hf_err *err);
int sql_sweep(struct hf_store *store, const struct hf_caller *who, size_t limit,
              struct hf_sweep_report *ret_report, struct hf_err *err);
int sql_holders(struct hf_store *store, hf_each_holder *each, void *user,
                struct hf_err *err);
int sql_next_due(struct hf_store *store, hf_ms *ret_at, struct hf_err *err);
int sql_prune(struct hf_store *store, hf_ms older_than_ms, size_t limit,
              int64_t *ret_rows, struct hf_err *err);
int sql_policy_set(struct hf_store *store, const char *scope,
                   const struct hf_policy *policy, struct hf_err *err);
int sql_policy_get(struct hf_store *store, enum hf_source source, const char *kind,
                   struct hf_policy_answer **ret_answer, struct hf_err *err);
int sql_limit_set(struct hf_store *store, const char *name, const struct hf_limit *limit,
                  struct hf_err *err);
int sql_limit_list(struct hf_store *store, hf_each_limit *each, void *user,
                   struct hf_err *err);
int sql_lease_take(struct hf_store *store, const struct hf_lease_claim *claim,
                   struct hf_lease_info *ret_info, struct hf_err *err);
int sql_lease_renew(struct hf_store *store, enum hf_leased leased, const char *key,
                    const char *token, struct hf_lease_info *ret_info,
                    struct hf_err *err);
int sql_lease_release(struct hf_store *store, enum hf_leased leased, const char *key,
                      const char *token, struct hf_err *err);
int sql_lease_look(struct hf_store *store, enum hf_leased leased, const char *key,
                   struct hf_lease_info *ret_info, struct hf_err *err);
int sql_process_register(struct hf_store *store, const struct hf_caller *who,
                         const struct hf_process_spec *request, struct hf_answer *answer,
                         struct hf_err *err);
int sql_process_list(struct hf_store *store, const struct hf_caller *who,
                     const struct hf_process_filter *filter,
                     struct hf_processes *processes, struct hf_err *err);
int sql_process_tell(struct hf_store *store, const struct hf_caller *who,
                     const struct hf_process_tell *tell, bool *ret_repeated,
                     struct hf_err *err);
int sql_process_records(struct hf_store *store, const char *id, char **ret_stored,
                        char **ret_folded, struct hf_err *err);
int sql_process_prune(struct hf_store *store, hf_ms older_than_ms,
                      struct hf_prune_report *ret_report, struct hf_err *err);
int sql_output_add(struct hf_store *store, const struct hf_caller *who,
                   const struct hf_output_add *add, struct hf_err *err);
int sql_output_read(struct hf_store *store, const char *id, int64_t attempt,
                    struct hf_output *output, struct hf_err *err);
int sql_check(struct hf_store *store, hf_found *found, void *user, struct hf_err *err);
/* The checks that cost little: schema, disk, and on a server guards, feed and wake-ups. */
int sql_check_quickly(struct hf_store *store, hf_found *found, void *user,
                      struct hf_err *err);
extern const struct hf_overview_methods sql_overview_methods;
int sql_dump(struct hf_store *store, const struct hf_dump *dump, struct hf_err *err);

#endif
