/* Planted bugs, for judging the simulator: each stands at the very place where a mistake
 * could be made, and is on only in the library that build/holdfast-sim-planted links
 * (-DHF_PLANTS), one at a time. Elsewhere HF_PLANT is false and costs nothing.
 */
#ifndef HF_CORE_PLANT_H
#define HF_CORE_PLANT_H

#include <stdbool.h>
#include <stddef.h>

/* clang-format off */
/* name, word, the store on which it shows, what is wrong */
#define HF_PLANT_LIST(X) \
    X(FENCE_IGNORED,      "fence_ignored",      "sqlite", "a token is taken whatever its fence and nonce") \
    X(FENCE_KEPT,         "fence_kept",         "sqlite", "a claim of one row does not raise its fence") \
    X(FENCE_KEPT_IN_SQL,  "fence_kept_in_sql",  "sqlite", "a claim by queue does not raise the fence") \
    X(SETTLE_UNFENCED,    "settle_unfenced",    "sqlite", "the fast close-out compares no token") \
    X(RENEW_UNFENCED,     "renew_unfenced",     "sqlite", "a renewal compares no token: it works after a takeover") \
    X(OLD_STORE,          "old_store",          "sqlite", "tokens of an old store incarnation are accepted") \
    X(REENTRY_BY_OWNER,   "reentry_by_owner",   "sqlite", "a new boot enters its old lease by the owner's name") \
    X(SESSION_UNCHECKED,  "session_unchecked",  "sqlite", "a session's lease is renewed without its token") \
    X(SESSION_RELEASED,   "session_released",   "sqlite", "a stale holder releases its successor's session") \
    X(CAS_DROPPED,        "cas_dropped",        "sqlite", "a row is written though it changed since it was read") \
    X(LEASE_CAS_DROPPED,  "lease_cas_dropped",  "sqlite", "a session's lease likewise") \
    X(EARLY_LAPSE,        "early_lapse",        "sqlite", "peers act before the lease has lapsed") \
    X(GRACE_IGNORED,      "grace_ignored",      "sqlite", "expire rows time out without their grace") \
    X(WALL_LEASES,        "wall_leases",        "sqlite", "leases are judged by the wall clock, which jumps") \
    X(BOUND_BY_TIME,      "bound_by_time",      "sqlite", "time ends a bound row: its disposition is ignored") \
    X(EXPIRE_RERUN,       "expire_rerun",       "sqlite", "an expire row is run again: its disposition is ignored") \
    X(PAUSED_IS_DEAD,     "paused_is_dead",     "sqlite", "a living holder is taken for dead") \
    X(DEAD_IS_ALIVE,      "dead_is_alive",      "sqlite", "a dead holder is taken for alive") \
    X(CANCEL_BOUND,       "cancel_bound",       "sqlite", "anybody's cancel ends a running owner_bound row") \
    X(RETRY_EARLY,        "retry_early",        "sqlite", "a retry is promoted before its time") \
    X(TRIES_UNBOUNDED,    "tries_unbounded",    "sqlite", "a lapse never uses the last attempt up") \
    X(ATTEMPT_UNCOUNTED,  "attempt_uncounted",  "sqlite", "an execution begins that attempt_count does not know") \
    X(FAILURES_KEPT,      "failures_kept",      "sqlite", "a requeue does not give the attempts back") \
    X(REPEAT_REFUSED,     "repeat_refused",     "sqlite", "a repeated close-out is refused") \
    X(BLIND_RETRY,        "blind_retry",        "sqlite", "a claim of unknown outcome is sent again as a new one") \
    X(NONCE_IGNORED,      "nonce_ignored",      "sqlite", "a repeated claim takes more rows") \
    X(EVENT_LOST,         "event_lost",         "sqlite", "a transition writes no event") \
    X(EVENT_TWICE,        "event_twice",        "sqlite", "a close-out writes its event twice: it ends twice") \
    X(LANE_STUCK,         "lane_stuck",         "sqlite", "the slot of a lane is passed on to nobody") \
    X(GROUP_LOST,         "group_lost",         "sqlite", "members of a rolled-back group are told: done") \
    X(CELL_FORGETS,       "cell_forgets",       "model",  "a cell that is run again forgets answers of an open batch") \
    X(TURN_RENUMBERED,    "turn_renumbered",    "model",  "a restored turn counts its effects anew") \
    X(ACK_BEFORE_SYNC,    "ack_before_sync",    "disk",   "a commit is acknowledged before it is synced") \
    X(COMMIT_MADE_UP,     "commit_made_up",     "disk",   "a failed commit is called done") \
    X(NONCE_RACED,        "nonce_raced",        "sqlite", "a repeated claim is looked for beforehand only") \
    X(LIMIT_OVER,         "limit_over",         "sqlite", "a limit lets one more go on than it has places for") \
    X(LIMIT_STUCK,        "limit_stuck",        "sqlite", "a place that was left goes to nobody") \
    X(RATE_FREE,          "rate_free",          "sqlite", "rows under a rate spend no token") \
    X(DEDUP_IGNORED,      "dedup_ignored",      "sqlite", "a dedup key keeps nobody out") \
    X(SLOT_TWICE,         "slot_twice",         "sqlite", "two passes fire one slot of a schedule") \
    X(SLOT_LOST,          "slot_lost",          "sqlite", "slots that were missed are recorded nowhere") \
    X(OCCURRENCE_TWICE,   "occurrence_twice",   "sqlite", "an occurrence emitted again starts its targets again") \
    X(DELIVERY_LOST,      "delivery_lost",      "sqlite", "the last of several subscribers gets no unit") \
    X(PROCESS_UNCLAIMED,  "process_unclaimed",  "sqlite", "a process registered with a claim is not claimed") \
    X(LAPSE_FORGOTTEN,    "lapse_forgotten",    "sqlite", "sweeps leave lapsed rerunnable rows alone") \
    X(AMNESTY_NONE,       "amnesty_none",       "sqlite", "a stalled store lets healthy leases lapse") \
    X(AMNESTY_ALWAYS,     "amnesty_always",     "sqlite", "leases get one more term without a stall") \
    X(AMNESTY_LAPSED,     "amnesty_lapsed",     "sqlite", "a stall revives leases that had lapsed before it")
/* clang-format on */

#ifdef HF_PLANTS
#    define X(name, word, store, what) HF_PLANT_##name,
enum hf_plant { HF_PLANT_NONE, HF_PLANT_LIST(X) HF_PLANT_COUNT };
#    undef X

extern int hf_planted; /* set once, before anything runs */
extern int
    hf_plant_edits; /* statements that were changed; they move, and a plant must follow */

bool hf_plant_in_sql(void); /* is it an edit of a statement? */

#    define HF_PLANT(name) (hf_planted == HF_PLANT_##name)

/* The text of a statement with the plant's mistake in it. */
const char *hf_plant_sql(const char *name, const char *text);
#    define HF_PLANT_SQL(name, text) hf_plant_sql(name, text)
#else
#    define HF_PLANT(name) false
#    define HF_PLANT_SQL(name, text) (text)
#endif

#endif
