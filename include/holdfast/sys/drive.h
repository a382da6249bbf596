/* The driver of a turn: a step machine between the turn machine and the world.
 *
 * Events go in (hf_drive_feed), actions come out (hf_drive_next). It has no loop, no clock and
 * no thread, and it does no I/O: a worker's loop is one adapter, a simulator is another. It
 * decides what is recorded and when:
 *
 *   - an effect is performed only after its intent was stored;
 *   - the outcome of an effect, the records and the usage that came of it, the intent of the
 *     next effect and the machine's save are one step, which is one transaction;
 *   - an effect that a lost worker left open is handled by its recorded class;
 *   - a turn that only waits (for an approval, for a call that is completed from outside, for a
 *     time that is far away) is put away by its last step, which also ends the lease;
 *   - after the lease is lost nothing is stored and nothing new is performed.
 *
 *     while (hf_drive_next(drive, &action)) {
 *         perform the action; some are answered by an event, at once or later
 *     }
 *     wait for an event; hf_drive_feed(drive, &event); again
 *
 * Threads: a drive is used by one thread at a time.
 */
#ifndef HOLDFAST_SYS_DRIVE_H
#define HOLDFAST_SYS_DRIVE_H

#include <holdfast/sys/effect.h>
#include <holdfast/tool.h>
#include <holdfast/turn.h>
#include <holdfast/work.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_drive;

/* The configuration that drives of one agent share. The setup and the host outlive them.
 *   tools         NULL: none; the drive holds a reference
 *   host          NULL: journal
 *   tool_limit    calls of a batch that run at once; 0: 8
 *   tool_retries  how often a recorded failure of a safe or keyed tool is retried; 0: 3;
 *                 -1: never
 *   away_ms       a turn that waits for a time stays resident if that time is at most this far
 *                 away; 0: 30,000 */
struct hf_drive_config {
    size_t size;
    const struct hf_alloc *alloc; /* NULL: the system's */
    const struct hf_setup *setup;
    struct hf_toolset *tools;
    const struct hf_effect_host *host;
    int64_t tool_limit;
    int64_t tool_retries;
    hf_ms away_ms;
};

/* A turn as it was claimed and loaded. All is copied except what base lends; that must last as
 * long as the drive.
 *   base     the whole history: committed records and those of the turn's steps
 *   step, node_count  stored so far
 *   effects_past      of a turn that begins anew: the number of its last effect before
 *   save     of the last step; empty: the turn begins
 *   inputs, causes    of a turn that begins
 *   entries  the journal's entries of the turn; settled ones may be left out, except failures
 *            that wait for a retry
 *   waits    all of the turn, in any state
 *   fence    of the claim; above that of every entry
 *   wall_ms, mono_ms  now */
struct hf_drive_turn {
    size_t size;
    const char *session_id;
    const char *turn_id;
    const struct hf_base *base;
    int64_t step;
    int64_t node_count;
    int64_t effects_past;
    struct hf_span save;
    const struct hf_record *inputs;
    size_t input_count;
    const struct hf_cause *causes;
    size_t cause_count;
    const struct hf_effect_entry *entries;
    size_t entry_count;
    const struct hf_wait *waits;
    size_t wait_count;
    int64_t fence;
    hf_ms wall_ms;
    hf_ms mono_ms;
};

/* One transaction. `chain` is the digest before it. With `away` it also ends the lease, and END is
 * the next action. */
struct hf_drive_step {
    int64_t step;
    int64_t node_count;
    const uint8_t *chain;
    const struct hf_record *records; /* new ones */
    size_t record_count;
    struct hf_span save;
    const struct hf_effect_entry *begun; /* status started; the fence is the claim's */
    size_t begun_count;
    const struct hf_effect_settled *settled;
    size_t settled_count;
    const struct hf_effect_blob *blobs; /* of the begun model call */
    size_t blob_count;
    const struct hf_wait_spec *waits; /* all that the turn waits for now, new ones last */
    size_t wait_count;
    size_t new_wait_count;
    bool away;
    hf_ms active_ms; /* since the step before, or since the claim */
};

/* The end of the turn, as the session's commit takes it. */
struct hf_drive_commit {
    int64_t step;
    int64_t node_count;
    const uint8_t *chain;
    const struct hf_record *records; /* not stored by any step, with the final answer */
    size_t record_count;
    enum hf_status status;
    struct hf_span outcome; /* JSON; NUL-terminated */
    const struct hf_usage *usage;
    hf_ms active_ms;
};

/* One tool call to perform. */
struct hf_drive_call {
    struct hf_invocation_key key;
    const char *tool;
    struct hf_span args;
    bool probe;
    struct hf_toolset *tools;
};

#define HF_DRIVE_ACTIONS(X)                                                              \
    X(STORE, store)           /* step; STORED or LEASE_LOST follows */                   \
    X(COMMIT, commit)         /* commit, and release; likewise */                        \
    X(MODEL, model)           /* turn, request, id; REPLY follows */                     \
    X(STOP_MODEL, stop_model) /* id; no REPLY follows, or one that is ignored */         \
    X(TOOL, tool)             /* call; ANSWER follows */                                 \
    X(STOP_TOOL, stop_tool)   /* call; ANSWER follows, or one that is ignored */         \
    X(SYNC, sync)             /* SYNCED follows */                                       \
    X(BLOB, blob)             /* hash; FETCHED follows */                                \
    X(TIMER, timer)           /* TIMER follows at due_ms of wall time; moves the last */ \
    X(EMIT, emit)             /* emit: for those who watch */                            \
    X(BACK, back)             /* hand back after delay_ms; active_ms is in no step */    \
    X(END, end)               /* nothing follows: free the drive */

#define HF_DRIVE_EVENTS(X)                                                               \
    X(STORED, stored)         /* code: 0, or why not */                                  \
    X(REPLY, reply)           /* id; response, error, or code: it was never sent */      \
    X(ANSWER, answer)         /* call_id; result, or code: it was never started */       \
    X(SYNCED, synced)         /* surface or NULL, tools or NULL; or code */              \
    X(FETCHED, fetched)       /* bytes; or code */                                       \
    X(TIMER, timer)           /* it is due_ms */                                         \
    X(CANCEL, cancel)         /* evidence; status: of inputs that have ended already */  \
    X(STOP, stop)             /* begin nothing new; what runs may end */                 \
    X(GIVE_UP, give_up)       /* stop what runs, then hand back */                       \
    X(LEASE_LOST, lease_lost) /* stop what runs, store nothing */

#define X(name, word) HF_DRIVE_##name,
enum hf_drive_action_kind { HF_DRIVE_ACTIONS(X) };
#undef X
#define X(name, word) HF_DRIVEN_##name,
enum hf_drive_event_kind { HF_DRIVE_EVENTS(X) };
#undef X
/* Their words; "?" for a value that is none. */
HF_API const char *hf_drive_action_name(enum hf_drive_action_kind kind);
HF_API const char *hf_drive_event_name(enum hf_drive_event_kind kind);

/* An action for the host. Its pointers live until the event that answers it; of EMIT, BACK and END
 * until the next call on the drive. */
struct hf_drive_action {
    enum hf_drive_action_kind kind;
    const struct hf_drive_step *step;
    const struct hf_drive_commit *commit;
    struct hf_turn *turn; /* for hf_render_new */
    const struct hf_request *request;
    uint64_t id;
    const struct hf_drive_call *call;
    uint8_t hash[32];
    hf_ms due_ms;
    const struct hf_emit *emit;
    hf_ms delay_ms;
    hf_ms active_ms;
    int code;
    const char *message;
};

/* An event for the drive. Its pointers are lent until hf_drive_feed returns; a surface outlives the
 * drive. */
struct hf_drive_event {
    enum hf_drive_event_kind kind;
    hf_ms wall_ms; /* now */
    hf_ms mono_ms;
    int code;
    uint64_t id;
    const struct hf_llm_response *response;
    const struct hf_llm_error *error;
    const char *call_id;
    const struct hf_invocation_result *result;
    const struct hf_surface *surface;
    struct hf_toolset *tools;
    struct hf_span bytes;
    const struct hf_evidence *evidence;
    enum hf_status status;
};

/* A drive for a claimed turn. HF_EINVAL, HF_ENOMEM. A fault of the save is reported by the
 * action BACK: HF_ENEWER waits 30 s, so that a newer worker takes the turn. */
HF_API HF_MUST_USE int hf_drive_new(const struct hf_drive_config *config,
                                    const struct hf_drive_turn *turn,
                                    struct hf_drive **ret_drive, struct hf_err *err);
HF_API void hf_drive_free(struct hf_drive *drive); /* NULL is fine */

/* The next action; false: there is none until an event was fed. */
HF_API bool hf_drive_next(struct hf_drive *drive, struct hf_drive_action *ret_action);

/* Takes an event. One that answers nothing (a late reply, a call that was settled) is ignored.
 * A fault inside, also of memory, becomes the action BACK: the turn is handed back as its
 * last step left it. */
HF_API void hf_drive_feed(struct hf_drive *drive, const struct hf_drive_event *event);

/* Bytes that the drive holds, with its turn, and how many of them are records. */
HF_API size_t hf_drive_bytes(const struct hf_drive *drive, size_t *ret_record_bytes);

#ifdef __cplusplus
}
#endif
#endif
