/* The table of edges. It is the only place that decides which change of status is legal:
 * steps assert against it, SQL guards and documentation are printed from it. */

#include "core/ledger/lifecycle.h"

#include "base/text.h"

/* Only units that are not external are ever queued or running: edges out of those two statuses
 * need not say so.
 *
 * "bound": a started owner_bound row. "external": an externally_owned row. */
#define E(from, to, verb, by, of, when)                                                  \
    {                                                                                    \
        HF_STATUS_##from, HF_STATUS_##to, verb, HF_BY_##by, HF_OF_##of, when             \
    }

/* clang-format off */
const struct hf_edge hf_edges[] = {
    E(NONE, QUEUED,           "create", CREATE,     HERE,     ""),
    E(NONE, WAITING_EXTERNAL, "create", CREATE,     EXTERNAL, "external; may have a reference; has no deadline"),
    E(NONE, DONE,             "create", CREATE,     ANY,      "detached: its command runs without supervision"),

    E(QUEUED, RUNNING,          "claim", CLAIM,       ANY,      "no gate, start deadline not passed"),
    E(QUEUED, CANCELLED,        "cancel", ANYBODY,    ANY,      "any time"),
    E(QUEUED, TIMEOUT,          "sweep", SWEEP,       ANY,      "its start deadline has passed (start_timeout)"),

    E(RUNNING, WAITING_USER,     "wait", HOLDER,       ANY,      "session-bound: only when its turn waits"),
    E(RUNNING, WAITING_EXTERNAL, "wait", HOLDER,       ANY,      "session-bound: only when its turn waits"),
    E(RUNNING, DONE,             "close_out", HOLDER,  ANY,      "evidence or reviewer, if its close rule asks"),
    E(RUNNING, FAILED,           "close_out", HOLDER,  ANY,      ""),
    E(RUNNING, TIMEOUT,          "close_out", HOLDER,  ANY,      ""),
    E(RUNNING, CANCELLED,        "close_out", HOLDER,  ANY,      ""),
    E(RUNNING, RETRY_SCHEDULED,  "fail", HOLDER,       FREE,     "not bound; class may be retried, attempts left"),
    E(RUNNING, FAILED,           "fail", HOLDER,       ANY,      "bound, class never retried, or no attempts left"),
    E(RUNNING, QUEUED,           "hand_back", HOLDER,  FREE,     "not bound"),
    E(RUNNING, QUEUED,           "sweep", SWEEP,       FREE,     "lapsed or holder dead; rerunnable; attempts left"),
    E(RUNNING, FAILED,           "sweep", SWEEP,       ANY,      "lapsed or holder dead; rerunnable; none left"),
    E(RUNNING, TIMEOUT,          "sweep", SWEEP,       ANY,      "expire: lapse + grace, or dead; all: exec deadline"),
    E(RUNNING, RETRY_SCHEDULED,  "sweep", SWEEP,       FREE,     "timeout whose reason is in retry_on; attempts left"),
    E(RUNNING, CANCELLED,        "cancel", ANYBODY,    ANY,      "not session-bound; owner_bound: only its holder"),
    E(RUNNING, ABANDONED,        "drain", HOLDER,      BOUND,    "bound"),
    E(RUNNING, ABANDONED,        "sweep", SWEEP,       BOUND,    "bound; holder proven dead"),
    E(RUNNING, ABANDONED,        "reconcile", SWEEP,   BOUND,    "bound; abandon requested; lease lapsed"),

    E(WAITING_USER, QUEUED,           "resume", ANYBODY,    FREE,     "not bound; session-bound: its wait has ended"),
    E(WAITING_USER, RUNNING,          "resume", CLAIM,      ANY,      "lane free; bound: its owner; session: claimant"),
    E(WAITING_USER, TIMEOUT,          "sweep", SWEEP,       FREE,     "not bound; wait deadline, or its turn failed"),
    E(WAITING_USER, CANCELLED,        "cancel", ANYBODY,    ANY,      "any time"),
    E(WAITING_USER, ABANDONED,        "drain", HOLDER,      BOUND,    "bound"),
    E(WAITING_USER, ABANDONED,        "sweep", SWEEP,       BOUND,    "bound; owner proven dead"),
    E(WAITING_USER, ABANDONED,        "reconcile", SWEEP,   BOUND,    "bound; abandon requested"),
    E(WAITING_USER, DONE,             "complete", AUTHORITY, HERE,    "waits for what its close rule asks"),
    E(WAITING_USER, FAILED,           "complete", AUTHORITY, HERE,    "waits for what its close rule asks"),

    E(WAITING_EXTERNAL, QUEUED,           "resume", ANYBODY, FREE,     "not external; otherwise as from waiting_user"),
    E(WAITING_EXTERNAL, RUNNING,          "resume", CLAIM, HERE,     "not external; otherwise as from waiting_user"),
    E(WAITING_EXTERNAL, TIMEOUT,          "sweep", SWEEP,  FREE,     "not bound; wait deadline, or its turn failed"),
    E(WAITING_EXTERNAL, CANCELLED,        "cancel", ANYBODY, ANY,      "any time"),
    E(WAITING_EXTERNAL, ABANDONED,        "drain", HOLDER, BOUND,    "bound"),
    E(WAITING_EXTERNAL, ABANDONED,        "sweep", SWEEP,  BOUND,    "bound; owner proven dead"),
    E(WAITING_EXTERNAL, ABANDONED,        "reconcile", SWEEP, KEPT,     "bound or external; abandon requested"),
    E(WAITING_EXTERNAL, DONE,             "complete", AUTHORITY, EXTERNAL, "external"),
    E(WAITING_EXTERNAL, FAILED,           "complete", AUTHORITY, EXTERNAL, "external"),
    E(WAITING_EXTERNAL, CANCELLED,        "complete", AUTHORITY, EXTERNAL, "external"),

    E(RETRY_SCHEDULED, QUEUED,           "sweep", SWEEP,       ANY,      "retry time reached"),
    E(RETRY_SCHEDULED, QUEUED,           "reschedule", ANYBODY, ANY,      "the new time is now"),
    E(RETRY_SCHEDULED, CANCELLED,        "cancel", ANYBODY,    ANY,      "any time"),

    E(DONE, QUEUED,           "requeue", ANYBODY,   HERE,     "not external; generation + 1, failures 0"),
    E(FAILED, QUEUED,           "requeue", ANYBODY,   HERE,     "not external; generation + 1, failures 0"),
    E(TIMEOUT, QUEUED,           "requeue", ANYBODY,   HERE,     "not external; generation + 1, failures 0"),
    E(CANCELLED, QUEUED,           "requeue", ANYBODY,   HERE,     "not external; generation + 1, failures 0"),
    E(ABANDONED, QUEUED,           "requeue", ANYBODY,   HERE,     "not external; generation + 1, failures 0"),
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

unsigned hf_edge_of(enum hf_status from, enum hf_status to)
{
    unsigned of = 0;
    for (size_t i = 0; i < hf_edge_count; i++)
        if (hf_edges[i].from == from && hf_edges[i].to == to)
            of |= hf_edges[i].of;
    return of;
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
    { NULL, HF_STATUS_NONE, HF_STATUS_RETRY_SCHEDULED, "retry_scheduled" },
    { "sweep", HF_STATUS_RETRY_SCHEDULED, HF_STATUS_QUEUED, "retry_promoted" },
    { "sweep", HF_STATUS_NONE, HF_STATUS_TIMEOUT, "timeout_marked" },
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
