/* The table of edges. It is the only place that decides which change of status is legal:
 * steps assert against it, SQL guards and documentation are printed from it. */

#include "core/ledger/lifecycle.h"

#include "base/text.h"

/* "bound": a started owner_bound row. "external": an externally_owned row. */
#define E(from, to, verb, by, when)                                                      \
    {                                                                                    \
        HF_##from, HF_##to, verb, HF_BY_##by, when                                       \
    }

/* clang-format off */
const struct hf_edge hf_edges[] = {
    E(STATUS_NONE,      QUEUED,           "create",    CREATE,    ""),
    E(STATUS_NONE,      WAITING_EXTERNAL, "create",    CREATE,    "external; reference optional, no deadline"),
    E(STATUS_NONE,      DONE,             "create",    CREATE,    "detached: its hand-off is what was done"),

    E(QUEUED,           RUNNING,          "claim",     CLAIM,     "gate null, lane free"),
    E(QUEUED,           CANCELLED,        "cancel",    ANYBODY,   "any time"),
    E(QUEUED,           TIMEOUT,          "sweep",     SWEEP,     "start deadline (start_timeout)"),

    E(RUNNING,          WAITING_USER,     "wait",      HOLDER,    ""),
    E(RUNNING,          WAITING_EXTERNAL, "wait",      HOLDER,    ""),
    E(RUNNING,          DONE,             "close_out", HOLDER,    "evidence or reviewer where asked for"),
    E(RUNNING,          FAILED,           "close_out", HOLDER,    ""),
    E(RUNNING,          TIMEOUT,          "close_out", HOLDER,    ""),
    E(RUNNING,          CANCELLED,        "close_out", HOLDER,    ""),
    E(RUNNING,          RETRY_SCHEDULED,  "fail",      HOLDER,    "class may be retried, failures left; not bound"),
    E(RUNNING,          FAILED,           "fail",      HOLDER,    "otherwise"),
    E(RUNNING,          QUEUED,           "hand_back", HOLDER,    "not a bound row"),
    E(RUNNING,          QUEUED,           "sweep",     SWEEP,     "lapsed or proven dead; rerunnable, failures left"),
    E(RUNNING,          FAILED,           "sweep",     SWEEP,     "the same, failures used up (attempts_exhausted)"),
    E(RUNNING,          TIMEOUT,          "sweep",     SWEEP,     "expire: lapse + grace or proof; execution deadline"),
    E(RUNNING,          RETRY_SCHEDULED,  "sweep",     SWEEP,     "timeout reason in retry_on, failures left"),
    E(RUNNING,          CANCELLED,        "cancel",    ANYBODY,   "owner_bound: the holder; others record a request"),
    E(RUNNING,          ABANDONED,        "drain",     HOLDER,    "a bound row: its own drain"),
    E(RUNNING,          ABANDONED,        "sweep",     SWEEP,     "a bound row: holder proven dead"),
    E(RUNNING,          ABANDONED,        "reconcile", SWEEP,     "a bound row: abandon request, after the lapse"),

    E(WAITING_USER,     QUEUED,           "resume",    ANYBODY,   "not a bound row"),
    E(WAITING_USER,     RUNNING,          "resume",    CLAIM,     "lane free; bound: its own owner"),
    E(WAITING_USER,     TIMEOUT,          "sweep",     SWEEP,     "deadline (wait_timeout); bound: only reported"),
    E(WAITING_USER,     CANCELLED,        "cancel",    ANYBODY,   "any time"),
    E(WAITING_USER,     ABANDONED,        "drain",     HOLDER,    "a bound row: its own drain"),
    E(WAITING_USER,     ABANDONED,        "sweep",     SWEEP,     "a bound row: owner proven dead"),
    E(WAITING_USER,     ABANDONED,        "reconcile", SWEEP,     "a bound row: abandon request"),

    E(WAITING_EXTERNAL, QUEUED,           "resume",    ANYBODY,   "not a bound row, never external"),
    E(WAITING_EXTERNAL, RUNNING,          "resume",    CLAIM,     "lane free; bound: its own owner; never external"),
    E(WAITING_EXTERNAL, TIMEOUT,          "sweep",     SWEEP,     "deadline (wait_timeout); bound: only reported"),
    E(WAITING_EXTERNAL, CANCELLED,        "cancel",    ANYBODY,   "any time"),
    E(WAITING_EXTERNAL, ABANDONED,        "drain",     HOLDER,    "a bound row: its own drain"),
    E(WAITING_EXTERNAL, ABANDONED,        "sweep",     SWEEP,     "a bound row: owner proven dead"),
    E(WAITING_EXTERNAL, ABANDONED,        "reconcile", SWEEP,     "an external or bound row: abandon request"),
    E(WAITING_EXTERNAL, DONE,             "complete",  AUTHORITY, "external"),
    E(WAITING_EXTERNAL, FAILED,           "complete",  AUTHORITY, "external"),
    E(WAITING_EXTERNAL, CANCELLED,        "complete",  AUTHORITY, "external"),

    E(RETRY_SCHEDULED,  QUEUED,           "sweep",     SWEEP,     "retry time reached"),
    E(RETRY_SCHEDULED,  QUEUED,           "reschedule", ANYBODY,  "now"),
    E(RETRY_SCHEDULED,  CANCELLED,        "cancel",    ANYBODY,   "any time"),

    E(DONE,             QUEUED,           "requeue",   ANYBODY,   "generation + 1, failures 0; never external"),
    E(FAILED,           QUEUED,           "requeue",   ANYBODY,   "generation + 1, failures 0; never external"),
    E(TIMEOUT,          QUEUED,           "requeue",   ANYBODY,   "generation + 1, failures 0; never external"),
    E(CANCELLED,        QUEUED,           "requeue",   ANYBODY,   "generation + 1, failures 0; never external"),
    E(ABANDONED,        QUEUED,           "requeue",   ANYBODY,   "generation + 1, failures 0; never external"),
};
/* clang-format on */

const size_t hf_edge_count = sizeof(hf_edges) / sizeof(hf_edges[0]);

bool hf_edge_legal(enum hf_status from, enum hf_status to, const char *verb)
{
    for (size_t i = 0; i < hf_edge_count; i++) {
        const struct hf_edge *edge = &hf_edges[i];
        if (edge->from == from && edge->to == to && (!verb || hf_same(edge->verb, verb)))
            return true;
    }
    return false;
}

/* First match wins; NULL and NONE match anything. */
struct event_rule {
    const char *verb;
    enum hf_status from;
    enum hf_status to;
    const char *type;
};

static const struct event_rule event_rules[] = {
    { "create", HF_STATUS_NONE, HF_STATUS_NONE, "work_created" },
    { "claim", HF_STATUS_NONE, HF_STATUS_NONE, "claimed" },
    { "wait", HF_STATUS_NONE, HF_STATUS_NONE, "waiting_set" },
    { "resume", HF_STATUS_NONE, HF_STATUS_NONE, "resumed" },
    { "close_out", HF_STATUS_NONE, HF_STATUS_NONE, "close_out" },
    { "complete", HF_STATUS_NONE, HF_STATUS_NONE, "close_out" },
    { "requeue", HF_STATUS_NONE, HF_STATUS_NONE, "requeued" },
    { "reschedule", HF_STATUS_NONE, HF_STATUS_NONE, "rescheduled" },
    { NULL, HF_STATUS_NONE, HF_RETRY_SCHEDULED, "retry_scheduled" },
    { "sweep", HF_RETRY_SCHEDULED, HF_QUEUED, "retry_promoted" },
    { "sweep", HF_STATUS_NONE, HF_TIMEOUT, "timeout_marked" },
};

const char *hf_edge_event(enum hf_status from, enum hf_status to, const char *verb)
{
    for (size_t i = 0; i < sizeof(event_rules) / sizeof(event_rules[0]); i++) {
        const struct event_rule *rule = &event_rules[i];
        if ((!rule->verb || hf_same(rule->verb, verb)) &&
            (rule->from == HF_STATUS_NONE || rule->from == from) &&
            (rule->to == HF_STATUS_NONE || rule->to == to))
            return rule->type;
    }
    return "transition";
}
