/* Common parts of reading a schema and checking with it. */
#ifndef HF_BASE_JSON_SCHEMA_IN_H
#define HF_BASE_JSON_SCHEMA_IN_H

#include "base/err.h"
#include "base/json_get.h"
#include "base/json_schema.h"

#define HF_JSON_SCHEMA_TOO_LONG "the check takes too many steps"
#define HF_JSON_SCHEMA_NOTICES 16

struct hf_json_schema {
    const struct hf_alloc *alloc;
    struct json_t *root;
    char *notices[HF_JSON_SCHEMA_NOTICES];
    size_t notice_count;
};

/* Two keywords that bound a count, and the messages for a count outside. */
struct hf_json_schema_bounds {
    const char *least;
    const char *most;
    const char *too_few;
    const char *too_many;
};

/* The schema that $ref of `rule` names; NULL when it has none, or none within the schema. */
const struct json_t *hf_json_schema_target(const struct hf_json_schema *schema,
                                           const struct json_t *rule);

#endif
