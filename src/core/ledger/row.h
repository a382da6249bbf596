/* One row of the ledger as core and store see it: what readers see, plus what only the
 * store may know. Texts are borrowed from the caller that read or made the row. */
#ifndef HF_CORE_LEDGER_ROW_H
#define HF_CORE_LEDGER_ROW_H

#include <holdfast/work.h>

struct hf_row {
    struct hf_work w; /* the words of enums below are in it too */
    int64_t seq;      /* internal integer key */
    int64_t revision; /* raised by every write but a renewal */
    enum hf_status status;
    enum hf_source source;
    enum hf_disposition disposition;
    const char *claim_group;   /* the lease's nonce; NULL when not leased */
    int64_t lease_incarnation; /* store incarnation of the lease */
    hf_ms grace_ms;
    hf_ms lease_check_at; /* when a sweep looks at the lease again */
    const char *settled_token;
    const char *settled_verb;
    int64_t session_fence;
    int64_t fair_tag;
    int64_t fair_weight;
    int64_t crashes; /* executions lost in a row since crashed_at */
    hf_ms crashed_at;
    const char *wake_session; /* woken at its end; '': only who awaits it is told; NULL:
                                 no caller is */
    /* the event that goes with the row's last transition */
    const char *event_type;
    const char *actor_kind;
    const char *actor;
    const char *message;
    const char *note; /* JSON payload of that event */
    const char *event_correlation_id;
};

#endif
