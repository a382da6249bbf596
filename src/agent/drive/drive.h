/* The inside of a drive. One file per concern:
 *   drive.c     events in, actions out
 *   effects.c   what each effect of the turn machine asks for
 *   batch.c     the calls of one TOOL_CALLS effect
 *   waits.c     what the turn waits for, and what came of it
 *   step.c      what the next transaction will hold
 *   envelope.c  what identifies an effect
 */
#ifndef HF_AGENT_DRIVE_DRIVE_H
#define HF_AGENT_DRIVE_DRIVE_H

#include <holdfast/sys/drive.h>
#include <holdfast/turn_json.h>

#include "base/arena.h"
#include "base/buf.h"

/* How long to wait before trying again, in milliseconds. */
#define DRIVE_BACK_MS 30000 /* a turn that this worker cannot continue with */
#define DRIVE_AGAIN_MS 200  /* an effect that could not be started here */
#define DRIVE_STORE_MS                                                                   \
    100 /* the first wait for a store that is away, doubled each time */
#define DRIVE_STORE_MAX_MS 5000
#define DRIVE_RETRY_MS 1000 /* the first retry of a tool, doubled each time */
#define DRIVE_RETRY_MAX_MS 30000

enum drive_phase {
    DRIVE_FETCHING, /* the save needs a blob */
    DRIVE_RUNNING,
    DRIVE_BACKING, /* stops what runs, then BACK */
    DRIVE_ENDING,  /* stops what runs, then END */
    DRIVE_OVER     /* END was said */
};

/* How far one effect that is performed outside has come. */
enum drive_at {
    DRIVE_NOT_BEGUN, /* no intent is stored */
    DRIVE_INTENT,    /* the intent is in the next step */
    DRIVE_STORING,   /* the intent is in the step that is being stored */
    DRIVE_ARMED,     /* may start, from `due` on */
    DRIVE_OUT,       /* an action asked for it */
    DRIVE_SETTLED,
    DRIVE_WAITING /* of a call: for an answer from outside (struct drive_call.wait) */
};

struct drive_run {
    enum drive_at at;
    bool stop;       /* STOP_MODEL or STOP_TOOL is owed */
    bool taken_over; /* a lost worker had started it */
    hf_ms due;       /* wall time; 0: now */
};

/* What a call waits for. */
enum drive_for {
    DRIVE_FOR_APPROVAL, /* it has not begun */
    DRIVE_FOR_RESULT,   /* it was deferred */
    DRIVE_FOR_TRUTH     /* it was begun, and whether it happened is asked */
};

/* A wait of the turn, as it was loaded. */
struct drive_wait {
    const char *id;
    bool open;
    bool opened;            /* false: it was answered before it was opened */
    struct hf_span outcome; /* JSON, once it is not open */
    const char *actor;
};

/* One call of a batch. Its texts are the effect's, or in the batch's arena. */
struct drive_call {
    struct drive_run run;
    const struct hf_tool_call *call;
    int64_t attempt;
    enum hf_recovery recovery; /* as declared when it was begun */
    struct hf_span
        args; /* the model's, or those that an approval has put in their place */
    const char *approved_by; /* NULL: no approval was needed */
    enum drive_for waits_for;
    struct hf_wait_spec wait;   /* of a call that waits */
    bool listed;                /* an earlier step has opened the wait */
    struct hf_drive_call shown; /* what the action shows */
};

/* A record that the drive lends to the machine as part of the base. */
struct drive_held {
    struct hf_decoded *owner;
    const struct hf_record *record;
};

/* The content of the next transaction, in an arena of its own. */
struct drive_pending {
    struct hf_arena arena;
    struct hf_effect_entry *begun;
    size_t begun_count;
    size_t begun_room;
    struct hf_effect_settled *settled;
    size_t settled_count;
    size_t settled_room;
    struct hf_effect_blob blobs[3];
    size_t blob_count;
    size_t record_from; /* place in `held` of its first record */
    bool dirty;         /* there is something to store */
};

struct hf_drive {
    const struct hf_alloc *alloc;
    const struct hf_setup *setup;
    struct hf_toolset *tools;
    const struct hf_effect_host *host;
    int64_t tool_limit;
    int64_t tool_retries;
    hf_ms away_ms;

    struct hf_arena stay; /* lives as long as the drive: ids, entries, blobs */
    const char *session_id;
    const char *turn_id;
    int64_t fence;
    struct hf_effect_entry
        *entries; /* as loaded; one that was used has no key any more */
    size_t entry_count;
    struct drive_wait *waits; /* as loaded */
    size_t wait_count;

    struct hf_base lent; /* the adapter's */
    struct hf_base base; /* lent, and then `held` */
    struct drive_held *held;
    size_t held_count;
    size_t held_room;
    size_t held_bytes; /* of the JSON that they came from */

    struct hf_turn *turn;
    struct hf_span save; /* of a turn that is yet to be restored */
    struct drive_blob {
        struct drive_blob *next;
        struct hf_effect_blob blob;
    } * blobs; /* that the adapter fetched */
    uint8_t wanted[32];
    bool blob_out;

    enum drive_phase phase;
    bool stopping; /* nothing new begins */
    bool cancelled;
    const struct hf_evidence *cancel; /* asked for while the save was fetched */
    enum hf_status ended;             /* of the inputs, where they have; NONE: they run */
    bool done;                        /* the machine has said DONE */
    hf_ms wall;
    hf_ms mono;
    hf_ms counted; /* monotonic time up to which active time was reported */

    int64_t step;
    int64_t node_count;
    struct drive_pending pending[2];
    int now; /* the pending that is filled; the other one is in the store */
    bool storing;
    bool store_said; /* its action is out */
    hf_ms store_due; /* 0: not waiting to try again */
    int store_tries;
    struct hf_drive_step stored; /* what STORE shows */
    uint8_t chain[32];           /* before it */
    int64_t nodes;               /* node_count after it */
    struct hf_bytes stored_save;
    struct hf_record *records;
    bool committing;
    struct hf_drive_commit commit;
    struct hf_bytes outcome;

    struct hf_effect effect; /* that is out; kind NONE: none is */
    struct drive_run model;
    struct hf_arena batch;
    struct drive_call *calls;
    size_t call_count;
    hf_ms sleep_due;

    hf_ms timer; /* what the last TIMER action said; 0: none runs */
    struct hf_err err;
    hf_ms back_ms;
};

static inline struct drive_pending *drive_pending(struct hf_drive *drive)
{
    return &drive->pending[drive->now];
}

/* Something went wrong here: the turn is handed back as its last step left it. `why` NULL: the
 * table's text. */
void drive_fail(struct hf_drive *drive, int code, const struct hf_err *why);

/* envelope.c: canonical JSON in the arena; NULL without memory. */
const char *drive_model_envelope(struct hf_arena *arena,
                                 const struct hf_request *request);
const char *drive_tool_envelope(struct hf_arena *arena, const struct hf_tool_call *call,
                                struct hf_span args);

/* step.c. Each returns 0 or HF_ENOMEM, and the rest of the machine's codes. */
void drive_base_init(struct hf_drive *drive, const struct hf_base *lent);
int drive_hold(struct hf_drive *drive, uint64_t from, uint64_t to);
int drive_begin(struct hf_drive *drive, const struct hf_effect_entry *entry);
int drive_settle(struct hf_drive *drive, const struct hf_effect_settled *settled);
int drive_add_blobs(struct hf_drive *drive, const struct hf_request *request);
/* Makes the step that STORE will show, from what is pending and the machine's state. away: it puts
 * the turn away. */
int drive_flush(struct hf_drive *drive, bool away);
int drive_make_commit(struct hf_drive *drive);
/* The same commit as a cancelled turn, without the final answer. */
int drive_commit_cancelled(struct hf_drive *drive);
void drive_stored(struct hf_drive *drive); /* the step is stored */
void drive_clear(struct drive_pending *pending);
/* The intents of the next step are in the store now. */
void drive_send(struct hf_drive *drive);
/* Those that were are stored, or need not be: they may be performed. */
void drive_arm(struct hf_drive *drive);

/* The entry of this key, or of the call's highest attempt; NULL: none. */
struct hf_effect_entry *drive_entry(struct hf_drive *drive, uint64_t effect,
                                    const char *call_id);

/* The value of a member of a JSON object; len 0: there is none. */
struct hf_span drive_member(struct hf_span object, const char *word);

/* effects.c. Handles the effects of the machine until one of them needs an action or an event;
 * true: *action is one. */
bool drive_poll(struct hf_drive *drive, struct hf_drive_action *action);
/* After a cancel: settles the call with this id if a lost worker left it open and the drive has not
 * come to it. A machine that was restored does not yield the call again. */
int drive_give_up_model(struct hf_drive *drive, uint64_t id);
void drive_reply(struct hf_drive *drive, const struct hf_drive_event *event);
/* An entry contradicts the turn: the turn fails with what is known. */
int drive_contradiction(struct hf_drive *drive, enum hf_decision decision,
                        const struct hf_effect_entry *entry, struct hf_span envelope);

/* waits.c */
int drive_copy_waits(struct hf_drive *drive, const struct hf_drive_turn *turn);
/* An approval that the call has, or waits for: it may run, waits, or is answered. NOT_BEGUN with
 * approved_by NULL: there is none. */
int drive_recall_approval(struct hf_drive *drive, struct drive_call *call);
/* A call that a lost worker had begun waits for its end or for a question, or is answered by the
 * outcome; *ret_known false: no wait has it. */
int drive_recall_end(struct hf_drive *drive, struct drive_call *call, bool *ret_known);
/* The call waits from now on. */
int drive_ask_approval(struct hf_drive *drive, struct drive_call *call);
int drive_defer(struct hf_drive *drive, struct drive_call *call,
                const struct hf_deferred *deferred);
/* Whether the call happened is not known: a person is asked, unless the turn is about to end. */
int drive_ask_truth(struct hf_drive *drive, struct drive_call *call, const char *why);
/* A pause of the turn (call NULL) or of a call is over when the store says so, by its own clock. */
int drive_recall_timer(struct hf_drive *drive, const struct drive_call *call,
                       hf_ms *ret_due);
/* Nothing is left to do here except to wait, and for long. */
bool drive_may_go_away(const struct hf_drive *drive);
/* Adds the waits of the turn to the step. */
int drive_list_waits(struct hf_drive *drive, struct hf_arena *arena,
                     struct hf_drive_step *step);

/* batch.c */
/* The call is over: recorded, and told to the machine; _unbegun: told alone. */
int drive_finish(struct hf_drive *drive, struct drive_call *call,
                 const struct hf_tool_result *result);
int drive_finish_unknown(struct hf_drive *drive, struct drive_call *call,
                         const char *why);
int drive_finish_unbegun(struct hf_drive *drive, struct drive_call *call,
                         const struct hf_tool_result *result);
/* The tool of a call, or NULL. */
const struct hf_tool *drive_tool(const struct hf_drive *drive,
                                 const struct drive_call *call);
int drive_batch(struct hf_drive *drive);
/* Begins as many calls as may run; 0 or HF_ENOMEM. */
int drive_fill(struct hf_drive *drive);
/* One more call may begin. */
bool drive_has_room(const struct hf_drive *drive);
int drive_answer(struct hf_drive *drive, const struct hf_drive_event *event);
int drive_cancel_batch(struct hf_drive *drive);
struct drive_call *drive_call_of(struct hf_drive *drive, const char *call_id);

#endif
