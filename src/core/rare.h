/* Marks on rare paths, for judging the simulator: a run that claims to have tried the library
 * must have been there. They count only in the library that build/holdfast-sim-planted links;
 * elsewhere they are nothing. A mark is a line in the list and HF_RARE at the place; the
 * test sim/rare fails while nobody gets there.
 */
#ifndef HF_CORE_RARE_H
#define HF_CORE_RARE_H

/* clang-format off */
/* name, word, the store on which the simulator gets there, what happens */
#define HF_RARE_LIST(X) \
    X(CLAIM_REPEATED,   "claim_repeated",   "sqlite", "a claim finds that it has taken rows before") \
    X(CLAIM_AGAIN,      "claim_again",      "sqlite", "a row changed between the look of a claim by id and its write") \
    X(CHANGE_AGAIN,     "change_again",     "sqlite", "a row changed between the look of a verb and its write") \
    X(CREATE_SORTED,    "create_sorted",    "sqlite", "a batch of new rows meets one that is there") \
    X(LIMIT_GUESSED,    "limit_guessed",    "sqlite", "a close-out guessed wrong about limits") \
    X(LEASE_AGAIN,      "lease_again",      "sqlite", "a session's lease changed between look and write") \
    X(SWEEP_APART,      "sweep_apart",      "sqlite", "somebody acted on a row of a sweep's chunk") \
    X(SWEEP_MOVED,      "sweep_moved",      "sqlite", "and that row is judged anew") \
    X(PASS_RACED,       "pass_raced",       "sqlite", "two passes make the same slots") \
    X(SCHEDULE_AGAIN,   "schedule_again",   "sqlite", "a schedule changed between look and write") \
    X(TRIGGER_AGAIN,    "trigger_again",    "sqlite", "a subscription changed between look and write") \
    X(EMIT_RACED,       "emit_raced",       "sqlite", "two emit the same, or a subscription changed") \
    X(POISON_HELD,      "poison_held",      "sqlite", "a row that crashes its holders is held") \
    X(WAIT_OVERDUE,     "wait_overdue",     "sqlite", "a bound row waits past its deadline") \
    X(LEASE_PUSHED,     "lease_pushed",     "sqlite", "a sweep finds a renewed lease and looks later") \
    X(STALL_OF_FAILURES, "stall_of_failures", "sqlite", "calls of a monitor failed for long, then one worked") \
    X(AMNESTY,          "amnesty",          "sqlite", "leases get one more term") \
    X(GROUP_SPOILT,     "group_spoilt",     "sqlite", "a member spoils its group's transaction") \
    X(COMMIT_NOT_THERE, "commit_not_there", "disk",   "a commit that failed has not happened") \
    X(COMMIT_UNKNOWN,   "commit_unknown",   "disk",   "nobody can say whether a commit happened")
/* clang-format on */

#ifdef HF_PLANTS
#    define X(name, word, store, what) HF_RARE_AT_##name,
enum hf_rare { HF_RARE_LIST(X) HF_RARE_COUNT };
#    undef X
extern unsigned long long hf_rare_hits[HF_RARE_COUNT]; /* one thread */
#    define HF_RARE(name) ((void)hf_rare_hits[HF_RARE_AT_##name]++)
#else
#    define HF_RARE(name) ((void)0)
#endif

/* Where `so` holds. */
#define HF_RARE_IF(so, name)                                                             \
    do {                                                                                 \
        if (so)                                                                          \
            HF_RARE(name);                                                               \
    } while (0)

#endif
