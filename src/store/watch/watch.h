/* Common parts of the files of the verb `look`. */
#ifndef HF_STORE_WATCH_WATCH_H
#define HF_STORE_WATCH_WATCH_H

#include "store/store.h"

/* One look under way: its reads, and how many findings there are. */
struct watch_look {
    struct hf_store *handle;
    const struct hf_look *asked;
    const char *tenant; /* NULL: all */
    size_t shown;
    struct hf_look_found found;
    struct hf_err *err;
};

/* Counts a finding, and passes it on unless the look is full. `count` is a member of
 * look->found. */
HF_MUST_USE int watch_show(struct watch_look *look, int64_t *count,
                           const struct hf_look_row *seen);

/* watch/unserved.c */
HF_MUST_USE int watch_unserved(struct watch_look *look);
/* watch/overview.c: rows of overview_holders. The end of an owner's rows, and whether one of
 * them has a twin among those from `from` up to `to`. */
size_t watch_owner_end(const struct hf_call *rows, size_t from);
bool watch_is_twin(const struct hf_call *rows, size_t from, size_t to, size_t i);

int sql_queues(struct hf_store *handle, const struct hf_caller *who, hf_each_queue *each,
               void *user, struct hf_err *err);
int sql_holder_list(struct hf_store *handle, const struct hf_caller *who,
                    const char *owner, hf_each_holder_row *each, void *user,
                    struct hf_err *err);
int sql_ages(struct hf_store *handle, const struct hf_caller *who,
             struct hf_age_table *ret_ages, struct hf_err *err);
int sql_occurrences(struct hf_store *handle, const struct hf_caller *who,
                    const struct hf_occurrence_filter *filter, hf_each_occurrence *each,
                    void *user, struct hf_occurrence_next *ret_next, struct hf_err *err);
/* watch/ack.c */
int sql_ack(struct hf_store *handle, const struct hf_caller *who,
            const struct hf_ack *ack, int64_t *ret_count, struct hf_err *err);

#endif
