/* Common parts of the encoders and decoders of holdfast/turn_json.h. */
#ifndef HF_CORE_TURN_CODEC_H
#define HF_CORE_TURN_CODEC_H

#include <holdfast/turn_json.h>

#include "core/turn/schema.h"

/* How a value of one kind is taken in. */
struct hf_turn_codec {
    const struct hf_schema *schema;
    enum hf_value_copy_mode mode; /* STRICT, or REPAIR for what a model said */
    bool sized;                   /* the struct begins with its size */
    /* Checks that tables cannot express; NULL: none. */
    int (*check)(const void *value, struct hf_err *err);
};

/* Writes a value as JSON, after the checks of the codec. */
HF_MUST_USE int hf_turn_encode(const struct hf_turn_codec *codec,
                               const struct hf_alloc *alloc, const void *value,
                               struct hf_bytes *ret_json, struct hf_err *err);
HF_MUST_USE int hf_turn_decode(const struct hf_turn_codec *codec,
                               const struct hf_alloc *alloc, struct hf_span json,
                               struct hf_decoded **ret_owner, void **ret_value,
                               struct hf_err *err);
/* Where a decoded value lies, for what is made of it afterwards. */
struct hf_arena *hf_decoded_arena(struct hf_decoded *owner);

#endif
