/* Common functions of the files of hf_store_check: they put findings together. */
#ifndef HF_STORE_DOCTOR_DOCTOR_H
#define HF_STORE_DOCTOR_DOCTOR_H

#include "store/store.h"

struct doctor_finder {
    struct hf_store *handle;
    hf_found *found;
    void *user;
    struct hf_buf detail; /* of the finding that is being put together */
    size_t faults;
    int64_t units; /* whose trails were folded */
    int64_t events;
};

void doctor_say(struct doctor_finder *finder, const char *text);
void doctor_say_i64(struct doctor_finder *finder, int64_t number, const char *text);
/* Reports the text since the last finding as one. */
void doctor_tell(struct doctor_finder *finder, bool bad, const char *what,
                 const char *advice);

/* Reads with one statement without arguments; `ops` is the caller's to end in any case. */
HF_MUST_USE int doctor_ask(struct doctor_finder *finder, struct hf_ops *ops,
                           enum hf_sql_id statement, struct hf_err *err);

/* store/doctor/pg.c: what only a server has; nothing on other engines. */
HF_MUST_USE int doctor_postgres(struct doctor_finder *finder, struct hf_err *err);
/* store/doctor/guards.c: what a file has in place of the server's guards; faults alone. */
HF_MUST_USE int doctor_lite_guards(struct doctor_finder *finder, struct hf_err *err);
/* store/doctor/sessions.c */
HF_MUST_USE int doctor_sessions(struct doctor_finder *finder, struct hf_err *err);
/* The server's checks that cost little: guards, feed, wake-ups. */
HF_MUST_USE int doctor_postgres_quick(struct doctor_finder *finder, struct hf_err *err);
/* Entries of the effect journal that do not fit their turn, or themselves. */
int doctor_effects(struct doctor_finder *finder, struct hf_err *err);
/* Waits that do not fit their turn. */
int doctor_waits(struct doctor_finder *finder, struct hf_err *err);

#endif
