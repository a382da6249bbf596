/* Common parts of the JSON forms of responses and of recordings. */
#ifndef HF_CORE_TURN_WIRE_H
#define HF_CORE_TURN_WIRE_H

#include "core/turn/machine.h"

struct hf_new_surface {
    struct hf_span prompt;
    struct hf_span tools;
};

extern const struct hf_schema hf_s_new_surface;

/* The JSON of an effect that was just polled, into turn->json. */
HF_MUST_USE int hf_turn_write_effect(struct hf_turn *turn, const struct hf_effect *effect,
                                     struct hf_err *err);

#endif
