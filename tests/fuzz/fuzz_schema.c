/* JSON Schemas: the first line is a schema, the rest a value. Nothing is read past its end, a
 * refusal says why, and the same check has the same answer. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_get.h"
#include "base/json_schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define require(condition) ((condition) ? (void)0 : abort())
#define ROOM ((size_t)1 << 16)

static void check(const struct hf_json_schema *schema, const struct json_t *value)
{
    struct hf_err first = { 0 }, second = { 0 };
    int rc = hf_json_schema_check(schema, value, &first);
    require(rc == hf_json_schema_check(schema, value, &second));
    require(rc == 0 || rc == HF_EINVAL || rc == HF_ETOOBIG);
    require(rc == first.code && (rc == 0 || first.message[0] != '\0'));
    require(strcmp(first.message, second.message) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *line = size > 0 ? memchr(data, '\n', size) : NULL;
    struct hf_json_schema *schema = NULL;
    struct json_t *value = NULL;
    struct hf_err err = { 0 };
    if (!line)
        return 0;
    struct hf_span text = { data, (size_t)(line - data) };
    struct hf_span rest = { line + 1, size - text.len - 1 };
    if (hf_json_schema_new(hf_alloc_system(), text, ROOM, &schema, &err)) {
        require(err.message[0] != '\0');
        return 0;
    }
    for (size_t i = 0; hf_json_schema_notice(schema, i); i++)
        require(hf_json_schema_notice(schema, i)[0] == '#');
    if (hf_json_parse(rest, ROOM, "value", &value, &err) == 0)
        check(schema, value);
    hf_json_free(value);
    hf_json_schema_free(schema);
    return 0;
}
