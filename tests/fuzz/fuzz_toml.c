/* Configuration text: what is read has whole texts and numbers that are JSON, and what is not
 * read has an error. */
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "base/toml.h"
#include "fuzz/fuzz.h"

static void check_value(const struct hf_toml_value *value)
{
    struct hf_err err = { 0 };
    if (value->type == HF_TOML_ARRAY) {
        for (const struct hf_toml_value *item = value->items; item; item = item->next)
            check_value(item);
        return;
    }
    struct hf_span text = { value->text, strlen(value->text) };
    fuzz_require(hf_utf8_valid(text.at, text.len));
    if (value->type != HF_TOML_STRING)
        fuzz_require(hf_json_check_raw(text, 100, "value", &err) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_arena arena;
    struct hf_err err = { 0 };
    const struct hf_toml_table *table = NULL;
    uint8_t *copy = malloc(size ? size : 1); /* a read past the end is then a fault */
    memcpy(copy, data, size);
    hf_arena_init(&arena, hf_alloc_system());
    int rc = hf_toml_read(&arena, (struct hf_span){ copy, size }, &table, &err);
    free(copy);
    fuzz_require(rc == 0 || rc == HF_EINVAL || rc == HF_ETOOBIG);
    fuzz_require((rc == 0) == (table != NULL));
    fuzz_require(rc == 0 || err.message[0] != '\0');
    for (; table; table = table->next)
        for (const struct hf_toml_pair *pair = table->pairs; pair; pair = pair->next) {
            fuzz_require(hf_utf8_valid(pair->key, strlen(pair->key)));
            check_value(&pair->value);
        }
    hf_arena_fini(&arena);
    return 0;
}
