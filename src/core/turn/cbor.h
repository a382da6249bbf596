/* Values as deterministic CBOR: a small subset of RFC 8949 in which every value has one
 * encoding (docs/internals/turn-format.md). The decoder takes nothing more. */
#ifndef HF_CORE_TURN_CBOR_H
#define HF_CORE_TURN_CBOR_H

#include "base/buf.h"
#include "core/turn/schema.h"

/* Appends the value; the buffer keeps any error. */
void hf_cbor_write(struct hf_buf *out, const struct hf_schema *schema, const void *from);

/* Where decoded values go: members marked HF_M_STAY into `stay`, those marked HF_M_KEEP
 * into `keep`, all others into `step`. */
struct hf_cbor {
    const uint8_t *at;
    const uint8_t *end;
    struct hf_arena *stay;
    struct hf_arena *keep;
    struct hf_arena *step;
    size_t owed; /* items that lists around this one still have to bring; begin with 0 */
};

/* One value. HF_ECORRUPT with the member's name for anything that hf_cbor_write would not
 * have written, HF_ENOMEM. Bytes after the value are the caller's business. */
HF_MUST_USE int hf_cbor_read(struct hf_cbor *cbor, const struct hf_schema *schema,
                             void *ret_to, struct hf_err *err);

#endif
