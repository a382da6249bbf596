/* The protocol seam: how a turn talks with a model.
 *
 * The machine owns states, ids, budgets, usage and saving; a protocol decides what a reply
 * means and what comes next. It is called with a struct hf_move, reads from it, and answers
 * by calling hf_act_* on it: any number of emits and appends, and as its last act exactly
 * one start or finish. None, two, or an act after it is HF_EPROTOCOL, and the machine is as before
 * the call.
 *
 * A protocol keeps no state of its own between calls: what it must remember goes into
 * records or into a driver state. It must be deterministic. Its methods run on the thread
 * of the call that caused them; one protocol may serve many turns on many threads at once.
 */
#ifndef HOLDFAST_SYS_PROTOCOL_H
#define HOLDFAST_SYS_PROTOCOL_H

#include <holdfast/turn.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_move;

/* Every method returns 0 or a code for the host; after a code nothing it did counts, and
 * it may be called again with the same input. It passes on the first failure of an
 * hf_act_*. All pointers in its arguments live until it returns. */
struct hf_protocol_ops {
    const char *id; /* in every save; a turn is restored only under the same one */

    /* Whether llm_done is to see replies that were cut by the output limit. */
    bool takes_cut_replies;

    /* An iteration begins. */
    int (*prepare)(const struct hf_protocol *protocol, struct hf_move *move,
                   struct hf_err *err);
    /* A reply came; usage is accounted for. `driver` is what start_llm was given. */
    int (*llm_done)(const struct hf_protocol *protocol, struct hf_move *move,
                    const struct hf_llm_response *response,
                    const struct hf_driver_state *driver, struct hf_err *err);
    /* All calls are answered; `calls` in the model's order, each with its result. */
    int (*tools_done)(const struct hf_protocol *protocol, struct hf_move *move,
                      const struct hf_tool_call *calls, size_t count, struct hf_err *err);
    /* The cell ended. NULL for a protocol that never starts one. */
    int (*exec_done)(const struct hf_protocol *protocol, struct hf_move *move,
                     const struct hf_exec_result *result,
                     const struct hf_driver_state *driver, struct hf_err *err);
    /* The part of a reply that people may see. NULL: all of its text. The result may point
     * into `text`. */
    struct hf_span (*visible)(const struct hf_protocol *protocol, struct hf_span text);
    /* What the instance was made with, as JSON, so that a recording can make it again. NULL,
     * or empty: nothing. It lives as long as the instance. */
    struct hf_span (*options)(const struct hf_protocol *protocol);
};

/* An instance; implementations put it first into a struct of their own. */
struct hf_protocol {
    const struct hf_protocol_ops *ops;
};

/* A record, those that the move appended included. NULL past the end, and when the base
 * cannot lend it: pass on HF_EBASE then. The pointer lives until the next hf_move_record of
 * this move. */
HF_API const struct hf_record *hf_move_record(struct hf_move *move, uint64_t i);

/* Looking in. The turn is as it was before the move; the count includes what the move
 * appended. */
HF_API const struct hf_turn *hf_move_turn(const struct hf_move *move);
HF_API uint64_t hf_move_record_count(const struct hf_move *move);
HF_API uint64_t hf_move_iteration(const struct hf_move *move);
HF_API int64_t hf_move_turn_budget(const struct hf_move *move);
HF_API bool hf_move_grace_used(const struct hf_move *move);

/* True once `iteration` iterations from the turn's offset have used up the budget. */
HF_API bool hf_move_limit_reached(const struct hf_move *move);

/* Memory until the move ends, NUL-terminated or zeroed; NULL when out of memory. `id`
 * makes a message id "<turn>.<iteration>.<purpose>" for this turn and iteration. */
HF_API void *hf_move_take(struct hf_move *move, size_t bytes);
HF_API const char *hf_move_id(struct hf_move *move, const char *purpose);

/* Acts that may be repeated. All copy what they are given. HF_ENOMEM, HF_EINVAL for data
 * that is not well formed, HF_EPROTOCOL after a start or finish.
 *   advance    iteration + 1
 *   stall      one more attempt without progress; *ret_spent when the budget is used up
 *   progress   forgets the stalls
 *   grace      if the limit is reached and grace was not used yet: appends the note that
 *              tells the model so, and grants it                                         */
HF_API HF_MUST_USE int hf_act_emit(struct hf_move *move, const struct hf_emit *emit,
                                   struct hf_err *err);
HF_API HF_MUST_USE int hf_act_message(struct hf_move *move,
                                      const struct hf_message *message,
                                      struct hf_err *err);
HF_API HF_MUST_USE int hf_act_event(struct hf_move *move, const char *name,
                                    struct hf_span json, struct hf_err *err);
HF_API HF_MUST_USE int hf_act_advance(struct hf_move *move, struct hf_err *err);
HF_API HF_MUST_USE int hf_act_stall(struct hf_move *move, bool *ret_spent,
                                    struct hf_err *err);
HF_API HF_MUST_USE int hf_act_progress(struct hf_move *move, struct hf_err *err);
HF_API HF_MUST_USE int hf_act_grace(struct hf_move *move, struct hf_err *err);

/* A cell to run. */
struct hf_exec_start {
    const char *language; /* required */
    struct hf_span code;
    const char *bindings; /* hash of the bindings it starts from */
    const struct hf_driver_state *driver;
};

/* Acts that come last. `driver` may be NULL.
 *   start_tools   a call whose id is not of hf_move_call_id or hf_move_calls, or is in the
 *                 batch already, gets another; one without a tool or with arguments that
 *                 are not JSON is answered from the start. If all are answered, tools_done follows
 *                 at once and no effect goes out
 *   checkpoint    on_empty NULL: then another iteration; otherwise the turn ends with it
 * HF_EPROTOCOL: an act was the last one already, or the driver state is malformed; HF_EINVAL,
 * HF_ETOOBIG for what was passed; HF_ENOMEM. */
HF_API HF_MUST_USE int hf_act_start_llm(struct hf_move *move, bool use_tools,
                                        const struct hf_driver_state *driver,
                                        struct hf_err *err);
HF_API HF_MUST_USE int hf_act_start_tools(struct hf_move *move,
                                          const struct hf_tool_call *calls, size_t count,
                                          struct hf_err *err);
HF_API HF_MUST_USE int hf_act_start_exec(struct hf_move *move,
                                         const struct hf_exec_start *start,
                                         struct hf_err *err);
HF_API HF_MUST_USE int hf_act_checkpoint(struct hf_move *move,
                                         enum hf_checkpoint_kind kind,
                                         const struct hf_outcome *on_empty,
                                         struct hf_err *err);
HF_API HF_MUST_USE int hf_act_finish(struct hf_move *move,
                                     const struct hf_outcome *outcome,
                                     struct hf_err *err);

/* An id for a call that the protocol makes itself, for the message that records it and for
 * start_tools. NULL when out of memory. */
HF_API const char *hf_move_call_id(struct hf_move *move);

/* The calls of a reply, with ids of our own: what start_tools will use, for the message that
 * records them. The array is the move's; given to start_tools as it is, it is not copied
 * again, so it is only to be read. To be asked for once a reply: each time the ids are new.
 * HF_EINVAL, HF_ETOOBIG, HF_ENOMEM. */
HF_API HF_MUST_USE int hf_move_calls(struct hf_move *move,
                                     const struct hf_llm_response *response,
                                     const struct hf_tool_call **ret_calls,
                                     size_t *ret_count, struct hf_err *err);

/* What the model is to see of one answered call: text and attachment parts, in order. HF_EINVAL,
 * HF_ETOOBIG, HF_ENOMEM. */
HF_API HF_MUST_USE int hf_move_view(struct hf_move *move, const struct hf_tool_call *call,
                                    const struct hf_part **ret_parts, size_t *ret_count,
                                    struct hf_err *err);

#ifdef __cplusplus
}
#endif
#endif
