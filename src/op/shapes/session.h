/* Sessions as rows that operations show. */
#ifndef HF_OP_SHAPES_SESSION_H
#define HF_OP_SHAPES_SESSION_H

#include <holdfast/session.h>

#include "core/ledger/fields.h"

/* An input with its kind as a word. */
struct hf_input_shown {
    const char *kind;
    struct hf_session_input input;
};

/* How a turn ended, for those who asked. */
struct hf_turn_answer {
    const char *turn_id;
    const char *outcome; /* NULL: it has not ended */
    const char *text;
    int64_t input;
    int64_t output;
};

extern const struct hf_shape hf_turn_answer_shape;    /* struct hf_turn_answer */
extern const struct hf_shape hf_session_effect_shape; /* struct hf_session_effect */
extern const struct hf_shape hf_session_sent_shape;   /* facts next to a sent input */
extern const struct hf_shape hf_session_turned_shape; /* facts next to one turn */
extern const struct hf_shape hf_session_shape;        /* struct hf_session */
extern const struct hf_shape hf_session_turn_shape;   /* struct hf_session_turn */
extern const struct hf_shape hf_session_usage_shape;  /* struct hf_session_usage */
extern const struct hf_shape hf_session_input_shape;  /* struct hf_input_shown */
extern const struct hf_shape hf_node_shape;           /* struct hf_node */
extern const struct hf_shape hf_session_made_shape;   /* facts next to a new session */
extern const struct hf_shape hf_session_shown_shape;  /* facts next to one session */

#endif
