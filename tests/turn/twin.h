/* A second turn that is driven through the JSON form alone, in lock step with the turn of a
 * world: each answer goes to both, and after each poll their lines and their saves must be
 * equal. Off in a world that was opened without it.
 */
#ifndef TESTS_TURN_TWIN_H
#define TESTS_TURN_TWIN_H

#include "turn/world.h"

void twin_begin(struct world *world, const struct hf_turn_start *start);
/* The twin's next effect must be this line. */
void twin_poll(struct world *world, const char *line);
void twin_rebase(struct world *world, const struct hf_base *base);
/* The twin's save must be that of the finished turn; it is freed. */
void twin_end(struct world *world);

/* Answers to both. What the turn refuses is not said to the twin. */
int twin_llm_done(struct world *world, uint64_t id, const struct hf_llm_response *reply,
                  struct hf_err *err);
int twin_llm_failed(struct world *world, uint64_t id, const struct hf_llm_error *error,
                    struct hf_err *err);
int twin_tool_result(struct world *world, uint64_t id,
                     const struct hf_tool_result *result, struct hf_err *err);
int twin_exec_done(struct world *world, uint64_t id, const struct hf_exec_result *result,
                   struct hf_err *err);
int twin_checkpoint_done(struct world *world, uint64_t id,
                         const struct hf_turn_delivery *delivery, struct hf_err *err);
int twin_synced(struct world *world, uint64_t id, const struct hf_surface *update,
                struct hf_err *err);
int twin_sync_failed(struct world *world, uint64_t id, const char *message,
                     struct hf_err *err);
int twin_sleep_noted(struct world *world, uint64_t id, hf_ms due_ms, struct hf_err *err);
int twin_sleep_over(struct world *world, uint64_t id, struct hf_err *err);
int twin_cancel(struct world *world, struct hf_err *err);
int twin_fail(struct world *world, struct hf_err *err);
int twin_finish(struct world *world, struct hf_err *err);

#endif
