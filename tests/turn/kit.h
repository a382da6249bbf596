/* A host for turns in tests: makes a setup and a turn, polls, and writes each effect as one
 * short line, so that a test can say by hand what must happen:
 *
 *   sync 1 update=0 | llm 2 records=1 | tools 3 c1:add c2:sub* | exec 4 lua | sleep 5 1800
 *   checkpoint 4 after_work | cancel_llm 2 | emit text_delta hello | progress 0-2
 *   done assistant_message 2-2 hello
 *
 * A star marks a call that is answered. Calls are named by their provider's id. */
#ifndef TESTS_TURN_KIT_H
#define TESTS_TURN_KIT_H

#include <holdfast/sys/protocol.h>
#include <holdfast/turn.h>

#include "support/fail_alloc.h"
#include "support/unit.h"

#define KIT_TOOLS "[{\"name\":\"add\"},{\"name\":\"sub\"}]"

struct kit {
    struct fail_alloc memory;
    struct hf_turn_config config;
    struct hf_surface *surface;
    struct hf_setup *setup;
    struct hf_turn *turn;
    struct hf_effect effect; /* the last one polled */
    struct hf_err err;
    char log[65536];
    size_t used;
};

struct hf_span kit_span(const char *text);

/* A kit with the standard protocol and a budget of 8 iterations; a test may change
 * kit->config before kit_start. */
void kit_init(struct kit *kit);
/* Setup and turn "s1"/"t1" with one user message "hi" unless start says otherwise. */
void kit_start(struct kit *kit);
void kit_start_with(struct kit *kit, const struct hf_turn_start *start);
void kit_fini(struct kit *kit); /* fails the test when memory is left */

/* A user message as a record; valid until the end of the program's scope that called. */
struct hf_message kit_message(const char *id, enum hf_role role,
                              const struct hf_part *part);

/* Polls until an effect with an id, DONE, or nothing; returns its id (0 for the others). */
uint64_t kit_next(struct kit *kit);
/* kit_next, then the log since the last look must be exactly `lines`. */
void kit_expect(struct kit *kit, const char *lines);
/* Forgets the log so far. */
void kit_forget(struct kit *kit);

/* Answers to the effect polled last. All must be accepted. */
void kit_reply_text(struct kit *kit, const char *text);
void kit_reply_calls(struct kit *kit, const char *id1, const char *id2);
void kit_reply_parts(struct kit *kit, const struct hf_part *parts, size_t count);
void kit_success(struct kit *kit, const char *call_id, const char *json);
/* hf_turn_tool_results with calls named by their provider's ids. */
int kit_results(struct kit *kit, uint64_t id, const struct hf_tool_result *results,
                size_t count);
void kit_nothing(struct kit *kit); /* an empty checkpoint */

/* The machine's id of the call that has this provider's id; otherwise what was given. */
const char *kit_id(const struct kit *kit, const char *provider_id);

/* Saves, frees the turn, restores it from the bytes; the same turn goes on. */
void kit_cut(struct kit *kit);
void kit_save(struct kit *kit, struct hf_bytes *ret_save);

/* Record i's part p as text. */
const char *kit_part(struct kit *kit, uint64_t i, size_t p);

#endif
