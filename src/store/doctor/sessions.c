/* Sessions whose rows do not fit together, and histories whose digests do not fold. */
#include "store/doctor/doctor.h"

#include <holdfast/session.h>

#define RESTORE                                                                          \
    "the store was changed around the guards: restore it from a backup, then run "       \
    "`holdfast store bump`"
#define TOO_MUCH                                                                         \
    "its history was not checked. A worker reported numbers of tokens that cannot be "   \
    "right, or the store was changed around the guards: restore it from a backup, then " \
    "run `holdfast store bump`"

static int check_rows(struct doctor_finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_SESSIONS, err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++) {
        const struct hf_call *rows = hf_ops_result(&ops, 0);
        doctor_say(finder, "session ");
        doctor_say(finder, hf_out_text(rows, i, HF_COL_DOCTOR_SESSIONS_SESSION_ID));
        doctor_say(finder, ": ");
        doctor_say(finder, hf_out_text(rows, i, HF_COL_DOCTOR_SESSIONS_FAULT));
        doctor_tell(finder, true, "sessions", RESTORE);
    }
    hf_ops_fini(&ops);
    return rc;
}

/* A load checks the digest of each record; later pages belong to the first page's head. */
static int fold(struct doctor_finder *finder, const char *id, struct hf_err *err)
{
    struct hf_session_load page = { .size = sizeof(page), .session_id = id };
    int rc = 0;
    do {
        struct hf_session_answer *answer = NULL;
        rc = hf_session_load(finder->handle, &page, &answer, err);
        if (rc == 0 && page.from_ordinal == 0) {
            page.head_revision = answer->sessions[0].head_revision;
            page.record_count = answer->sessions[0].record_count;
        }
        page.from_ordinal = rc ? 0 : answer->next_ordinal;
        hf_session_answer_free(answer);
    } while (rc == 0 && page.from_ordinal);
    if (rc != HF_ECORRUPT && rc != HF_EOVERFLOW)
        return rc == HF_ENOTFOUND ? 0 : rc;
    doctor_say(finder, err->message);
    doctor_tell(finder, true, "sessions", rc == HF_EOVERFLOW ? TOO_MUCH : RESTORE);
    return 0;
}

int doctor_sessions(struct doctor_finder *finder, struct hf_err *err)
{
    int64_t after = 0;
    size_t count = 0;
    int rc = check_rows(finder, err);
    do {
        struct hf_ops ops;
        hf_ops_init(&ops, sql_store_of(finder->handle)->sql, finder->handle->alloc);
        hf_ops_call(&ops, HF_SQL_DOCTOR_SESSION_IDS, HF_ANY_COUNT);
        hf_ops_i64(&ops, after);
        rc = rc ? rc : hf_ops_read(&ops, err);
        const struct hf_call *rows = rc ? NULL : hf_ops_result(&ops, 0);
        count = rc ? 0 : rows->out_count;
        for (size_t i = 0; rc == 0 && i < count; i++) {
            after = hf_out_i64(rows, i, HF_COL_DOCTOR_SESSION_IDS_SESSION_KEY);
            rc = fold(finder, hf_out_text(rows, i, HF_COL_DOCTOR_SESSION_IDS_SESSION_ID),
                      err);
        }
        hf_ops_fini(&ops);
    } while (rc == 0 && count);
    return rc;
}
