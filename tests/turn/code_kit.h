/* A kit for turns of the code protocol: short replies, short results, and what the model would
 * read next. */
#ifndef TESTS_TURN_CODE_KIT_H
#define TESTS_TURN_CODE_KIT_H

#include <holdfast/code.h>

#include "turn/kit.h"

/* A turn at its first model call. options NULL: hf_protocol_code(). */
struct code_kit {
    struct kit kit;
    struct hf_protocol *own;
};

void code_start(struct code_kit *code, const char *options);
void code_start_budget(struct code_kit *code, const char *options, int64_t turns,
                       int64_t no_progress);
void code_fini(struct code_kit *code);

/* Answers the model call that is out and polls to the next effect; the log since then stays. */
void code_reply(struct code_kit *code, const char *text);
void code_reply_cut(struct code_kit *code, const char *text);
void code_reply_parts(struct code_kit *code, const struct hf_part *parts, size_t count);

/* Answers the cell that is out and polls to the next effect. */
void code_result(struct code_kit *code, const struct hf_exec_result *result);
void code_printed(struct code_kit *code, const char *text);
void code_error(struct code_kit *code, const char *text);
void code_finished(struct code_kit *code, const char *json);

/* Past an empty checkpoint to the next effect. */
void code_nothing(struct code_kit *code);

/* The data of the n-th last event of that name, from 0; fails the test when there is none. */
const char *code_event(struct code_kit *code, const char *name, size_t n);

/* What the n-th last correction, from 0, says of its reply: "decision fingerprint bytes". */
const char *code_fix(struct code_kit *code, size_t n);

/* The request that is out, as "role: text" lines with blocks joined by " / ". Valid until the
 * next call. */
const char *code_prompt(struct code_kit *code);

#endif
