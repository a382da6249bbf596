/* What the JSON form of responses and of recordings share. */
#ifndef HF_CORE_TURN_WIRE_H
#define HF_CORE_TURN_WIRE_H

#include "core/turn_schema.h"

struct hf_new_surface {
    struct hf_span prompt;
    struct hf_span tools;
};

extern const struct hf_schema hf_s_new_surface;

#endif
