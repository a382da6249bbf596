/* One table of a configuration file, as "[model.fast]": path[0] is its kind ("model"), path[1] its
 * name ("fast"). Each pair KEY = VALUE is looked up in the list of keys (keys.c), checked by its
 * type, and stored in the struct that is being filled (reading->into). Errors name the line.
 * In a partial reading keys may be missing: the table of a built-in tool says only which of its
 * calls need an approval. */
#include "agent/config/config.h"
#include "base/err.h"
#include "base/text.h"

int config_fail(const struct config_reading *reading, int line, const char *what)
{
    const struct hf_toml_table *table = reading->table;
    return hf_fail(reading->err, HF_EINVAL, "config", "line %d: [%s.%.60s]: %s", line,
                   table->path[0], table->path[1], what);
}

int config_fail_word(const struct config_reading *reading, int line, const char *what,
                     const char *word)
{
    struct hf_err said = { 0 };
    (void)hf_fail(&said, HF_EINVAL, NULL, "%s %.60s", what, word);
    return config_fail(reading, line, said.message);
}

static int fail_type(const struct config_reading *reading, int line,
                     const struct hf_config_key *key, enum hf_toml_type type)
{
    struct hf_err said = { 0 };
    (void)hf_fail(&said, HF_EINVAL, NULL, "%s must be %s: %s", key->name,
                  hf_toml_type_name(type), key->what);
    return config_fail(reading, line, said.message);
}

int config_fail_unknown(const struct config_reading *reading, int line, const char *what,
                        const struct hf_near *near)
{
    struct hf_err said = { 0 };
    (void)hf_fail(&said, HF_EINVAL, NULL,
                  near->best ? "unknown %s %.60s; did you mean %s?"
                             : "unknown %s %.60s%s (`holdfast config keys` lists them)",
                  what, near->typed, near->best ? near->best : "");
    return config_fail(reading, line, said.message);
}

static int read_duration(const struct config_reading *reading, const char *key,
                         const struct hf_toml_value *value, hf_ms *ret_ms)
{
    bool unlimited = hf_same(key, "whole_timeout") && hf_same(value->text, "none");
    if (unlimited)
        *ret_ms = -1;
    else if (hf_parse_duration(value->text, key, ret_ms, NULL) || *ret_ms <= 0)
        return config_fail_word(reading, value->line,
                                "a duration such as \"90s\" is needed for", key);
    return 0;
}

static int read_omit(const struct config_reading *reading,
                     const struct hf_toml_value *value, uint32_t *ret_bits)
{
    for (const struct hf_toml_value *item = value->items; item; item = item->next) {
        struct hf_near near;
        int option = 0;
        if (item->type != HF_TOML_STRING)
            return config_fail(reading, item->line, "the items of omit are strings");
        hf_near_begin(&near, item->text);
        for (; option < HF_OPTION_COUNT; option++) {
            const char *name = hf_model_option_name((enum hf_model_option)option);
            if (hf_same(name, item->text))
                break;
            hf_near_try(&near, name);
        }
        if (option == HF_OPTION_COUNT)
            return config_fail_unknown(reading, item->line, "option", &near);
        *ret_bits |= 1u << option;
    }
    return 0;
}

/* Strings, as a list that ends in NULL. */
static int read_list(const struct config_reading *reading,
                     const struct hf_toml_value *value, const char *key,
                     const char *const **ret_list)
{
    const char **list = NULL;
    size_t count = 0;
    for (const struct hf_toml_value *item = value->items; item; item = item->next)
        count++;
    list = hf_arena_array(&reading->config->arena, count + 1, sizeof(*list));
    if (!list)
        return hf_fail_plain(reading->err, HF_ENOMEM);
    count = 0;
    for (const struct hf_toml_value *item = value->items; item; item = item->next) {
        if (item->type != HF_TOML_STRING)
            return config_fail_word(reading, item->line, "strings are the items of", key);
        list[count++] = item->text;
    }
    *ret_list = list;
    return 0;
}

static int read_value(const struct config_reading *reading,
                      const struct hf_config_key *key, const struct config_place *at,
                      const struct hf_toml_value *value)
{
    static const enum hf_toml_type types[] = {
        [TEXT] = HF_TOML_STRING,     [COUNT] = HF_TOML_INTEGER, [FLAG] = HF_TOML_BOOLEAN,
        [DURATION] = HF_TOML_STRING, [LIST] = HF_TOML_ARRAY,    [OMIT] = HF_TOML_ARRAY,
    };
    enum field field = at->field;
    const char *name = key->name;
    void *place = (char *)reading->into + at->offset;
    if (field == OPTION) {
        *(struct hf_toml_value *)place = *value; /* the reader of options checks it */
        return 0;
    }
    if (value->type != types[field])
        return fail_type(reading, value->line, key, types[field]);
    switch (field) {
    case TEXT: *(const char **)place = value->text; break;
    case COUNT: *(int64_t *)place = value->integer; break;
    case FLAG: *(bool *)place = value->integer != 0; break;
    case DURATION: return read_duration(reading, name, value, place);
    case LIST: return read_list(reading, value, name, place);
    case OMIT: return read_omit(reading, value, place);
    case OPTION: break;
    }
    return 0;
}

static int read_pair(const struct config_reading *reading,
                     const struct hf_toml_pair *pair)
{
    struct hf_near near;
    size_t count = 0;
    const struct hf_config_key *keys = hf_config_keys(&count);
    hf_near_begin(&near, pair->key);
    for (size_t i = 0; i < count; i++) {
        if (!hf_same(keys[i].table, reading->table->path[0]))
            continue;
        if (hf_same(keys[i].name, pair->key))
            return read_value(reading, &keys[i], config_place(i), &pair->value);
        hf_near_try(&near, keys[i].name);
    }
    return config_fail_unknown(reading, pair->value.line, "key", &near);
}

static bool has_pair(const struct hf_toml_table *table, const char *key)
{
    const struct hf_toml_pair *pair = table->pairs;
    while (pair && !hf_same(pair->key, key))
        pair = pair->next;
    return pair != NULL;
}

/* Stores every pair of the table. Then, unless the reading is partial, HF_EINVAL for a key that
 * this kind of table needs and does not have. The first error ends the reading. */
int config_read_pairs(const struct config_reading *reading)
{
    int rc = 0;
    size_t count = 0;
    const struct hf_config_key *keys = hf_config_keys(&count);
    for (const struct hf_toml_pair *p = reading->table->pairs; p && rc == 0; p = p->next)
        rc = read_pair(reading, p);
    for (size_t i = 0; i < count && rc == 0 && !reading->partial; i++)
        if (keys[i].needed && hf_same(keys[i].table, reading->table->path[0]) &&
            !has_pair(reading->table, keys[i].name))
            rc = config_fail_word(reading, reading->table->line,
                                  "this table needs the key", keys[i].name);
    return rc;
}
