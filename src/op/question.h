/* Questions to people, shared by `ask`, `answer` and what is short for it. */
#ifndef HF_OP_QUESTION_H
#define HF_OP_QUESTION_H

#include "op/op.h"

struct op_answer_request {
    const char *id;
    const char *answer;
    const char *reason;
};

int op_run_answer(struct op_call *call);

/* Which of the choices of a question's payload the word is, from 0; 0 where it has none. -1: it
 * is none of them. */
int op_choice_place(const char *payload, const char *word);
/* The answer that a unit was resumed with, in the arena. False: there is none. */
bool op_answer_text(const struct hf_work *work, struct hf_arena *arena,
                    const char **ret_text);

#endif
