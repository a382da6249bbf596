/* Values as JSON, by the same tables as saves. */
#ifndef HF_CORE_TURN_JSON_H
#define HF_CORE_TURN_JSON_H

#include "base/json.h"
#include "base/json_walk.h"
#include "core/turn/schema.h"

/* Where raw JSON is made NUL-terminated on its way into the writer. */
struct hf_turn_json_out {
    struct hf_json json;
    struct hf_arena *scratch;
    bool out_of_memory;
    const struct hf_member *unfit; /* a number that no JSON reader of ours takes */
};

/* The members of a struct, into an object that is open. */
void hf_turn_json_members(struct hf_turn_json_out *out, const struct hf_schema *schema,
                          const void *from);
/* "key": {…}; nothing for NULL. */
void hf_turn_json_put_struct(struct hf_turn_json_out *out, const char *key,
                             const struct hf_schema *schema, const void *from);
void hf_turn_json_put_span(struct hf_turn_json_out *out, const char *key,
                           struct hf_span text);
void hf_turn_json_put_json(struct hf_turn_json_out *out, const char *key,
                           struct hf_span json);
void hf_turn_json_put_hash(struct hf_turn_json_out *out, const char *key,
                           const uint8_t hash[32]);

/* Reads an object of text that hf_json_check accepted into a zeroed struct. Members that
 * are not in the table are refused, as are values of another type: HF_EINVAL with the
 * member's name. HF_ENOMEM. Texts go into the arena; limits are checked by the caller
 * that takes the value in. */
HF_MUST_USE int hf_turn_json_take(struct hf_arena *arena, const struct hf_schema *schema,
                                  struct hf_span text, void *ret_to, struct hf_err *err);

#endif
