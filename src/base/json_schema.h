/* JSON Schema: whether a value has the shape that a schema asks for, and where it has not.
 *
 * What is checked: type, enum, const; properties, required, additionalProperties,
 * propertyNames, minProperties, maxProperties, dependentRequired; items, prefixItems,
 * minItems, maxItems, uniqueItems; minLength, maxLength; minimum, maximum,
 * exclusiveMinimum, exclusiveMaximum, multipleOf; allOf, anyOf, oneOf, not, if, then,
 * else; $ref within the same schema. Words that only describe (title, default,
 * format, …) are read over. Any other keyword is passed over, and a notice names it.
 *
 * Numbers are compared by value: 1.0 is 1, and an integer. A schema never changes after it
 * was made, so any number of threads may check with it. */
#ifndef HF_BASE_JSON_SCHEMA_H
#define HF_BASE_JSON_SCHEMA_H

#include "base/json.h"

struct hf_json_schema;

/* Reads a schema of at most `max` bytes: an object, or true or false. HF_EINVAL with the
 * place in the message: no JSON, a known keyword of the wrong type, a reference that leads
 * nowhere or back to itself. HF_ETOOBIG, HF_ENOMEM. */
HF_MUST_USE int hf_json_schema_new(const struct hf_alloc *alloc, struct hf_span text,
                                   size_t max, struct hf_json_schema **ret_schema,
                                   struct hf_err *err);
void hf_json_schema_free(struct hf_json_schema *schema); /* NULL is fine */

/* The i-th thing that is not checked, as a sentence; NULL past the last. At most 16 are
 * kept. */
const char *hf_json_schema_notice(const struct hf_json_schema *schema, size_t i);

/* HF_EINVAL: the value does not fit, and the message begins with its place as a JSON pointer
 * ("/a/0: …", "value: …" for the whole). HF_ETOOBIG: the check takes more steps than any
 * sensible schema. HF_ENOMEM. */
HF_MUST_USE int hf_json_schema_check(const struct hf_json_schema *schema,
                                     const struct json_t *value, struct hf_err *err);

#endif
