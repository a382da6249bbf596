/* Inside the turn machine.
 *
 * A handle holds a body (what a save holds) and four arenas: `stay` for what lives as long
 * as the handle (ids, causes, outcome), `keep` for own records, which live until they move
 * to the base, and two for what lives until the next accepted response. A change is a move:
 * it works on a copy of the body and in the arena that is not in use, and counts only when
 * it is committed. So a failed call has changed nothing, and pointers in an effect stay good
 * until the effect is answered. */
#ifndef HF_CORE_TURN_MACHINE_H
#define HF_CORE_TURN_MACHINE_H

#include <holdfast/sys/protocol.h>

#include "base/buf.h"
#include "core/turn/given.h"
#include "core/turn/pin.h"
#include "core/turn/schema.h"

#define HF_RENDER_VERSION 1
#define HF_BATCH_MAX 1024 /* calls; also of a save */

/* Prompt and tools as a turn uses them; borrowed from a surface or from a resolver. */
struct hf_face {
    struct hf_span prompt;
    struct hf_span tools;
    struct hf_span names; /* of the tools, comma-separated */
    uint8_t prompt_hash[32];
    uint8_t tools_hash[32];
};

struct hf_surface {
    const struct hf_alloc *alloc;
    struct hf_arena arena;
    struct hf_face face;
};

struct hf_setup {
    struct hf_turn_config config; /* defaults filled in; texts in the arena */
    struct hf_llm_retry retry;    /* likewise; the config's is this one */
    struct hf_arena arena;
    uint8_t options_hash[32];
};

/* An effect that takes no answer, until it is polled. */
struct hf_queued {
    enum hf_effect_kind kind;
    uint64_t id;
    uint64_t iteration;
    uint64_t from;
    uint64_t to;
    const struct hf_emit *emit;
    const struct hf_log *log;
};

/* The data to yield the outstanding effect again, and to continue after it. */
struct hf_outstanding {
    uint64_t id;  /* 0: nothing is out */
    bool yielded; /* it was polled, from this handle or from one before it */
    bool update;
    const struct hf_request *request;
    struct hf_tool_call *calls; /* ours: answers are put in */
    size_t call_count;
    const char *language;
    struct hf_span code;
    const char *bindings;
    const struct hf_driver_state *driver;
    enum hf_checkpoint_kind checkpoint;
    const struct hf_outcome *on_empty; /* NULL: another iteration */
    hf_ms duration_ms;
    hf_ms due_ms;
};

extern const struct hf_schema hf_s_outstanding; /* core/turn/image.c */

struct hf_turn_body {
    enum hf_turn_state state;
    bool grace;
    uint64_t next_id;
    uint64_t next_message;
    uint64_t next_call; /* of the turn: part of what call ids are made of */
    uint64_t iteration;
    uint64_t run_offset;
    uint64_t reported; /* records that a PROGRESS carried */
    uint64_t synced;   /* iteration + 1; 0: never */
    uint64_t stalled;
    bool last_step_known;
    uint64_t last_step; /* of base and own records: number + 1; 0: there is none */
    uint64_t given_up;  /* the model call that CANCEL_LLM named; 0: none */
    bool given_up_paid; /* and its usage came */
    struct hf_usage usage;
    struct hf_face face;
    const struct hf_evidence *cancel;
    const struct hf_outcome *outcome;
    struct hf_outstanding wait;
    struct hf_cause **causes;
    size_t cause_count;
    struct hf_record **own;
    size_t own_count;
    struct hf_queued **queue;
    size_t queue_count;
    size_t queue_room; /* of the array after its first item */
    struct hf_given given;
};

struct hf_turn {
    const struct hf_setup *setup;
    const struct hf_alloc *alloc;
    const char *session_id;
    const char *turn_id;
    struct hf_base base;
    struct hf_turn_body now;
    size_t own_room;
    bool delivered; /* the outstanding effect, or DONE, was polled from this handle */
    bool reset_due; /* a restored model call: what was shown of it is to be retracted */
    const struct hf_emit *reset; /* once it was yielded */
    uint8_t live;                /* which of `step` holds the body's short-lived parts */
    struct hf_arena stay;
    struct hf_arena keep;
    struct hf_arena step[2];
    struct hf_share *share; /* of `keep`; NULL until a render was made */
    struct hf_pin shown;    /* what hf_turn_record returned last */
    struct hf_buf json;
};

struct hf_move {
    struct hf_turn *turn;
    struct hf_pin seen; /* what hf_move_record returned last */
    struct hf_turn_body next;
    struct hf_arena *arena;
    bool flipped;
    bool ended;     /* a start or finish was seen */
    bool dirty;     /* a PROGRESS is due */
    bool tools_due; /* a batch was answered from the start */
    struct hf_tool_call
        *made; /* what hf_move_calls handed out last: in the arena already */
    size_t made_count;
    const struct hf_outcome
        *ending; /* set: whatever the protocol starts, end with this */
};

enum hf_turn_event {
    HF_ON_POLL,
    HF_ON_SYNCED,
    HF_ON_SYNC_FAILED,
    HF_ON_LLM_DONE,
    HF_ON_LLM_FAILED,
    HF_ON_TOOL_RESULTS,
    HF_ON_EXEC_DONE,
    HF_ON_CHECKPOINT,
    HF_ON_SLEEP_NOTED,
    HF_ON_SLEEP_OVER,
    HF_ON_CANCEL,
    HF_ON_FINISH,
    HF_ON_COUNT
};

struct hf_turn_input {
    enum hf_turn_event event;
    uint64_t id;      /* of the effect; levers have none */
    const void *data; /* what the event's function was given, in the move's arena */
    size_t count;
    hf_ms ms;
    const char *code; /* hf_turn_fail */
};

/* Rules: core/turn/rules.c. */
struct hf_turn_rule {
    enum hf_turn_state from;
    enum hf_turn_event on;
    bool (*guard)(const struct hf_move *move, const struct hf_turn_input *input);
    int (*act)(struct hf_move *move, const struct hf_turn_input *input,
               struct hf_err *err);
    uint32_t to;      /* states it may lead to, one bit each */
    const char *when; /* the guard, for people */
    const char *does; /* for people */
};
extern const struct hf_turn_rule hf_turn_rules[];
extern const size_t hf_turn_rule_count;
const char *hf_turn_event_name(enum hf_turn_event event);

/* Whether a response may be given now: HF_EFINISHED, HF_ESTALE, HF_ERESPONSE. */
HF_MUST_USE int hf_turn_expect(const struct hf_turn *turn, enum hf_turn_event event,
                               uint64_t id, struct hf_err *err);
/* Runs the first rule that fits, on a move that was begun. */
HF_MUST_USE int hf_turn_apply(struct hf_move *move, const struct hf_turn_input *input,
                              struct hf_err *err);

/* Moves: core/turn/move.c. begin never fails. A move is committed or dropped. */
void hf_move_begin(struct hf_move *move, struct hf_turn *turn);
/* A move in the arena that the body has now, so that what the effect that is out points to stays
 * valid until it is answered. */
void hf_move_begin_in_place(struct hf_move *move, struct hf_turn *turn);
void hf_move_commit(struct hf_move *move);
void hf_move_drop(struct hf_move *move);

/* Appends an effect that takes no answer to the queue. */
HF_MUST_USE int hf_move_queue(struct hf_move *move, const struct hf_queued *item,
                              struct hf_err *err);
/* An emit whose texts live in the move's arena already. */
HF_MUST_USE int hf_move_emit(struct hf_move *move, const struct hf_emit *emit,
                             struct hf_err *err);
HF_MUST_USE int hf_move_error(struct hf_move *move, const struct hf_emit *emit,
                              struct hf_err *err);
HF_MUST_USE int hf_move_log(struct hf_move *move, enum hf_log_kind kind,
                            struct hf_span text, struct hf_err *err);
HF_MUST_USE int hf_move_flush(struct hf_move *move, struct hf_err *err);
HF_MUST_USE int hf_move_append(struct hf_move *move, enum hf_value_copy_mode mode,
                               const struct hf_record *record, struct hf_err *err);
/* Appends a record all of which lies in the turn's `keep` already. A step is then the last. */
HF_MUST_USE int hf_move_adopt(struct hf_move *move, struct hf_record *record,
                              struct hf_err *err);
/* A message that is made in the turn's `keep`, to be given to hf_move_adopt. */
struct hf_kept {
    struct hf_record record;
    struct hf_message message;
    struct hf_part parts[];
};
/* Without parts yet and with room for this many; NULL when out of memory. */
struct hf_kept *hf_move_keep(struct hf_move *move, const char *purpose, enum hf_role role,
                             size_t room);
HF_MUST_USE int hf_move_add_cause(struct hf_move *move, const struct hf_cause *cause,
                                  struct hf_err *err);
/* The end of the turn, with everything that goes before DONE. */
HF_MUST_USE int hf_move_end(struct hf_move *move, const struct hf_outcome *outcome,
                            struct hf_err *err);
HF_MUST_USE int hf_move_end_kind(struct hf_move *move, enum hf_outcome_kind kind,
                                 struct hf_span text, struct hf_err *err);
/* message: what the model had said, or NULL. */
HF_MUST_USE int hf_move_end_cancelled(struct hf_move *move,
                                      const struct hf_message *message,
                                      struct hf_err *err);
/* The message of a final answer: "<turn>.<iteration>.answer" with these parts, which live in
 * the move's arena as long as it does. `reply` NULL: of no reply. */
HF_MUST_USE int hf_move_answer(struct hf_move *move, const struct hf_part *parts,
                               size_t count, const struct hf_llm_response *reply,
                               const struct hf_message **ret_message, struct hf_err *err);
/* An answer in words gets its message, unless it has one. */
HF_MUST_USE int hf_move_complete(struct hf_move *move, struct hf_outcome *outcome,
                                 struct hf_err *err);
/* The event of a call that is answered. */
HF_MUST_USE int hf_move_emit_answer(struct hf_move *move, const struct hf_tool_call *call,
                                    struct hf_err *err);
uint64_t hf_move_next_id(struct hf_move *move);
/* Leaves what was out and enters a state; wait data is fresh, with a new id if asked. */
void hf_move_enter(struct hf_move *move, enum hf_turn_state state, bool with_id);
/* Runs a protocol's method and what follows from it. */
HF_MUST_USE int hf_move_prepare(struct hf_move *move, struct hf_err *err);
HF_MUST_USE int hf_move_llm_done(struct hf_move *move,
                                 const struct hf_llm_response *response,
                                 struct hf_err *err);
HF_MUST_USE int hf_move_tools_done(struct hf_move *move, struct hf_err *err);
HF_MUST_USE int hf_move_exec_done(struct hf_move *move,
                                  const struct hf_exec_result *result,
                                  struct hf_err *err);
/* "<a>.<number>.<b>" in the arena, parts left out where NULL; NULL when out of memory. */
const char *hf_join_id(struct hf_arena *arena, const char *a, uint64_t number,
                       const char *b);
/* Whether it has the form of hf_move_call_id. */
bool hf_turn_is_call_id(const char *id);
/* Grace: core/turn/move.c. */
HF_MUST_USE int hf_move_give_grace(struct hf_move *move, struct hf_err *err);
bool hf_turn_limit_reached(const struct hf_turn *turn, uint64_t iteration);

/* Parts of the rules that have files of their own. */
HF_MUST_USE int hf_turn_take_response(struct hf_move *move,
                                      const struct hf_llm_response *response,
                                      const struct hf_llm_response **ret_response,
                                      struct hf_err *err);
bool hf_turn_usage_fits(const struct hf_move *move, const struct hf_usage *usage);
HF_MUST_USE int hf_turn_overflowed(struct hf_move *move, const struct hf_usage *usage,
                                   struct hf_err *err);
HF_MUST_USE int hf_move_account(struct hf_move *move, const struct hf_usage *usage,
                                struct hf_err *err);
HF_MUST_USE int hf_turn_take_error(struct hf_move *move, const struct hf_llm_error *error,
                                   const void **ret_error, struct hf_err *err);
HF_MUST_USE int hf_turn_call_cancelled(struct hf_move *move,
                                       const struct hf_llm_error *error,
                                       struct hf_err *err);
bool hf_turn_may_retry(const struct hf_move *move, const struct hf_llm_error *error);
HF_MUST_USE int hf_turn_retry(struct hf_move *move, const struct hf_llm_error *error,
                              struct hf_err *err);
HF_MUST_USE int hf_turn_call_failed(struct hf_move *move,
                                    const struct hf_llm_error *error, struct hf_err *err);
HF_MUST_USE int hf_turn_bad_end(struct hf_move *move,
                                const struct hf_llm_response *response,
                                enum hf_outcome_kind kind, struct hf_err *err);
/* A reply that says nothing: the error, and the end provider_error. */
HF_MUST_USE int hf_turn_end_empty(struct hf_move *move, struct hf_err *err);
HF_MUST_USE int hf_turn_answer(struct hf_move *move, const struct hf_tool_result *results,
                               size_t count, struct hf_err *err);
bool hf_turn_all_answered(const struct hf_outstanding *wait);
/* A call that cannot be run is answered: one past the limit, without a tool, or with
 * arguments that are not JSON. Its texts lie in the move's arena. */
HF_MUST_USE int hf_turn_judge_call(struct hf_move *move, struct hf_tool_call *call,
                                   size_t number, struct hf_err *err);
HF_MUST_USE int hf_turn_mark_unknown(struct hf_move *move, struct hf_err *err);
HF_MUST_USE int hf_turn_deliver(struct hf_move *move,
                                const struct hf_turn_delivery *delivery,
                                struct hf_err *err);
bool hf_turn_delivery_empty(const struct hf_turn_delivery *delivery);

/* A handle without records, for hf_turn_new and hf_turn_restore; the ids may be NULL. */
HF_MUST_USE int hf_turn_alloc(const struct hf_setup *setup, const char *session_id,
                              const char *turn_id, struct hf_turn **ret_turn,
                              struct hf_err *err);
HF_MUST_USE int hf_turn_set_base(struct hf_turn *turn, const struct hf_base *base,
                                 struct hf_err *err);
/* HF_EINVAL when last_step is no record of the base. */
HF_MUST_USE int hf_base_check_last_step(const struct hf_base *base, struct hf_err *err);
/* Takes over the facts of the base about the last step, where the body does not know it. HF_EBASE
 * when they differ. */
HF_MUST_USE int hf_body_take_last_step(struct hf_turn_body *body,
                                       const struct hf_base *base, struct hf_err *err);
HF_MUST_USE int hf_turn_room_for_own(struct hf_turn *turn, size_t count);
/* Names of the tools, comma-separated; the text must be a JSON array of objects. */
HF_MUST_USE int hf_turn_tool_names(struct hf_arena *arena, struct hf_span tools,
                                   struct hf_span *ret_names, struct hf_err *err);
HF_MUST_USE int hf_record_check(const struct hf_record *record, struct hf_err *err);
/* Likewise of an outcome: a message in it is an assistant's. */
HF_MUST_USE int hf_outcome_check(const struct hf_outcome *outcome, struct hf_err *err);
/* The rules for a result that tables cannot express; its value is not looked into. */
HF_MUST_USE int hf_result_check(const struct hf_tool_result *result, struct hf_err *err);

/* CANCEL_LLM and its like, which name another effect. */
static inline bool hf_effect_stops(enum hf_effect_kind kind)
{
    return kind == HF_EFFECT_CANCEL_LLM || kind == HF_EFFECT_CANCEL_TOOLS ||
           kind == HF_EFFECT_CANCEL_EXEC;
}

/* Whether a result's control ends the turn, and how. */
bool hf_result_decides(const struct hf_tool_result *result,
                       struct hf_outcome *ret_outcome);

#endif
