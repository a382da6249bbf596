/* Values read, over jansson. */

#include "base/json_get.h"

#include <jansson.h>

#include "base/text.h"

enum hf_json_type hf_json_type_of(const struct json_t *value)
{
    if (!value)
        return HF_JSON_NULL;
    switch (json_typeof(value)) {
    case JSON_OBJECT: return HF_JSON_OBJECT;
    case JSON_ARRAY: return HF_JSON_ARRAY;
    case JSON_STRING: return HF_JSON_TEXT;
    case JSON_INTEGER: return HF_JSON_INT;
    case JSON_REAL: return HF_JSON_REAL;
    case JSON_TRUE:
    case JSON_FALSE: return HF_JSON_BOOL;
    case JSON_NULL: return HF_JSON_NULL;
    }
    return HF_JSON_NULL;
}

const struct json_t *hf_json_member(const struct json_t *object, const char *key)
{
    return json_object_get(object, key);
}

size_t hf_json_items(const struct json_t *array)
{
    return json_array_size(array);
}

const struct json_t *hf_json_item(const struct json_t *array, size_t i)
{
    return json_array_get(array, i);
}

int64_t hf_json_as_i64(const struct json_t *value)
{
    return json_integer_value(value);
}

double hf_json_as_real(const struct json_t *value)
{
    return json_number_value(value);
}

bool hf_json_as_bool(const struct json_t *value)
{
    return json_is_true(value);
}

const char *hf_json_as_text(const struct json_t *value)
{
    return json_string_value(value);
}

bool hf_json_next(const struct json_t *object, void **at, const char **ret_key,
                  const struct json_t **ret_value)
{
    /* jansson's iterators ask for a value that may be changed; none is. */
    json_t *mutable = (json_t *)(uintptr_t)object;
    *at = *at ? json_object_iter_next(mutable, *at) : json_object_iter(mutable);
    if (!*at)
        return false;
    *ret_key = json_object_iter_key(*at);
    *ret_value = json_object_iter_value(*at);
    return true;
}

const char *hf_json_stranger(const struct json_t *object, const char *const *names,
                             size_t count)
{
    const struct json_t *value = NULL;
    const char *key = NULL;
    void *at = NULL;
    while (hf_json_next(object, &at, &key, &value)) {
        size_t i = 0;
        while (i < count && !hf_same(names[i], key))
            i++;
        if (i == count)
            return key;
    }
    return NULL;
}

struct json_t *hf_json_of_text(const char *text)
{
    return json_string(text);
}

void hf_json_free(struct json_t *value)
{
    json_decref(value);
}

void hf_json_f64(struct hf_json *json, double value)
{
    struct hf_buf text;
    hf_buf_init(&text, json->out->alloc, 64);
    json_t *number = json_real(value);
    if (!number || hf_json_canonical(&text, number) != 0)
        json->out->state = HF_ENOMEM;
    hf_json_raw(json, hf_buf_str(&text));
    json_decref(number);
    hf_buf_fini(&text);
}
