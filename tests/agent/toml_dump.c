/* Reads documents from standard input, each after a line with its length, and prints for each
 * a line of JSON: [[path, {key: value}], …], or null for one that is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/toml.h"

static void put_value(struct hf_json *json, const struct hf_toml_value *value)
{
    if (value->type == HF_TOML_STRING) {
        hf_json_str(json, value->text);
    } else if (value->type != HF_TOML_ARRAY) {
        hf_json_raw(json, value->text);
    } else {
        hf_json_array(json);
        for (const struct hf_toml_value *item = value->items; item; item = item->next)
            put_value(json, item);
        hf_json_end(json);
    }
}

static void put_table(struct hf_json *json, const struct hf_toml_table *table)
{
    hf_json_array(json);
    hf_json_array(json);
    for (int i = 0; i < table->depth; i++)
        hf_json_str(json, table->path[i]);
    hf_json_end(json);
    hf_json_object(json);
    for (const struct hf_toml_pair *pair = table->pairs; pair; pair = pair->next) {
        hf_json_key(json, pair->key);
        put_value(json, &pair->value);
    }
    hf_json_end(json);
    hf_json_end(json);
}

static void dump(struct hf_span text)
{
    struct hf_arena arena;
    struct hf_buf out;
    struct hf_json json;
    const struct hf_toml_table *table = NULL;
    hf_arena_init(&arena, hf_alloc_system());
    hf_buf_init(&out, hf_alloc_system(), 1 << 20);
    hf_json_begin(&json, &out);
    if (hf_toml_read(&arena, text, &table, NULL)) {
        hf_json_null(&json);
    } else {
        hf_json_array(&json);
        for (; table; table = table->next)
            put_table(&json, table);
        hf_json_end(&json);
    }
    puts(hf_buf_str(&out));
    hf_buf_fini(&out);
    hf_arena_fini(&arena);
}

int main(void)
{
    static char line[32];
    while (fgets(line, sizeof(line), stdin)) {
        size_t len = strtoul(line, NULL, 10);
        char *text = malloc(len + 1);
        if (!text || fread(text, 1, len, stdin) != len)
            return 1;
        dump((struct hf_span){ text, len });
        free(text);
    }
    return 0;
}
