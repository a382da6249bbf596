/* What the files of the verb `look` share. */
#ifndef HF_STORE_WATCH_WATCH_H
#define HF_STORE_WATCH_WATCH_H

#include "store/store.h"

/* One look under way: its reads, and how many findings there are. */
struct watch_look {
    struct hf_store *base;
    const struct hf_look *asked;
    const char *tenant; /* NULL: all */
    size_t shown;
    int64_t matched;
    struct hf_err *err;
};

/* Passes a finding on unless the look is full. */
HF_MUST_USE int watch_show(struct watch_look *look, const struct hf_look_row *seen);

/* watch/unserved.c */
HF_MUST_USE int watch_unserved(struct watch_look *look);
/* watch/ack.c */
int sql_ack(struct hf_store *base, const struct hf_caller *who, const struct hf_ack *ack,
            int64_t *ret_count, struct hf_err *err);

#endif
