/* Looking into a value that hf_json_parse returned, for code that must not see jansson.
 * All of it borrows: texts and members live as long as the value. */
#ifndef HF_BASE_JSON_GET_H
#define HF_BASE_JSON_GET_H

#include "base/json.h"

enum hf_json_type {
    HF_JSON_NULL,
    HF_JSON_BOOL,
    HF_JSON_INT,
    HF_JSON_REAL,
    HF_JSON_TEXT,
    HF_JSON_ARRAY,
    HF_JSON_OBJECT
};

enum hf_json_type hf_json_type_of(const struct json_t *value); /* NULL: HF_JSON_NULL */

/* A member of an object, or NULL when there is none or `object` is no object. */
const struct json_t *hf_json_member(const struct json_t *object, const char *key);

/* Items of an array; 0 and NULL for another type. */
size_t hf_json_items(const struct json_t *array);
const struct json_t *hf_json_item(const struct json_t *array, size_t i);

/* The value of that type, otherwise 0, false or NULL. A real is given for integers
 * too. */
int64_t hf_json_as_i64(const struct json_t *value);
double hf_json_as_real(const struct json_t *value);
bool hf_json_as_bool(const struct json_t *value);
const char *hf_json_as_text(const struct json_t *value);

/* A key of the object that is not among the names, or NULL. */
const char *hf_json_stranger(const struct json_t *object, const char *const *names,
                             size_t count);

/* The members of an object one by one, in any order: *at is NULL at first. False at the end,
 * and for anything but an object. */
bool hf_json_next(const struct json_t *object, void **at, const char **ret_key,
                  const struct json_t **ret_value);

/* A new value that is a string of UTF-8; NULL without memory. Free it with hf_json_free. */
struct json_t *hf_json_of_text(const char *text);

void hf_json_free(struct json_t *value); /* NULL is fine */

/* Writes a number in canonical form; it must be finite. */
void hf_json_f64(struct hf_json *json, double value);

#endif
