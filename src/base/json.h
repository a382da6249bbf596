/* JSON: strict reading into jansson's values, a canonical form, and a writer.
 *
 * Canonical form: keys sorted by their bytes, no white space, whole numbers that fit
 * int64_t as decimal (1.0 and 1e0 are 1), other numbers with the fewest digits that read
 * back equal, with an exponent (1e21, 1e-7) outside int64_t and under 1e-6, -0 as 0, only
 * the two-character escapes and \u00xx for control bytes. Same value, same bytes. */
#ifndef HF_BASE_JSON_H
#define HF_BASE_JSON_H

#include "base/arena.h"
#include "base/buf.h"

struct json_t; /* jansson's; only the functions below and code that needs values see it */

/* Checks one JSON value: UTF-8, no duplicate keys, no NUL in strings, integers within
 * int64_t, nothing after it (otherwise HF_EINVAL); depth up to HF_MAX_JSON_DEPTH and at
 * most `max` bytes (otherwise HF_ETOOBIG). Errors name `field` and the place. */
HF_MUST_USE int hf_json_check(struct hf_span text, size_t max, const char *field,
                              struct hf_err *err);

/* As hf_json_check for text that is kept as it is written: numbers of any size. */
HF_MUST_USE int hf_json_check_raw(struct hf_span text, size_t max, const char *field,
                                  struct hf_err *err);

/* As hf_json_check_raw for a value that will be a part of other JSON: at most `levels` of
 * nesting, so that the whole stays within HF_MAX_JSON_DEPTH. */
HF_MUST_USE int hf_json_check_inner(struct hf_span text, size_t max, int levels,
                                    const char *field, struct hf_err *err);

/* As hf_json_check_raw for text around what a model said: \u0000 and lone surrogates are
 * accepted too, and *ret_foul says that there are some. hf_walk_text reads them as
 * U+FFFD. */
HF_MUST_USE int hf_json_check_said(struct hf_span text, size_t max, const char *field,
                                   bool *ret_foul, struct hf_err *err);

/* As hf_json_check, and returns the value. Free with json_decref. */
HF_MUST_USE int hf_json_parse(struct hf_span text, size_t max, const char *field,
                              struct json_t **ret_value, struct hf_err *err);

/* Appends the canonical form of a value, or of a text that holds one (HF_EINVAL if not,
 * HF_ETOOBIG if too deep or more than the buffer takes). On failure the buffer holds a
 * part of it, or nothing. */
HF_MUST_USE int hf_json_canonical(struct hf_buf *out, const struct json_t *value);
HF_MUST_USE int hf_json_canonical_text(struct hf_buf *out, struct hf_span text);

/* Writer. Commas and quotes are its business; misuse (a value without a key inside an
 * object, unbalanced ends) is caught by hf_assert. The buffer keeps any error.
 *   hf_json_raw appends a text known to be valid JSON; NULL or "" becomes null.
 *   hf_json_str of NULL becomes null; bytes that are not UTF-8 become U+FFFD.
 * One hf_json_begin for each top-level value.                                     */
struct hf_json {
    struct hf_buf *out;
    uint64_t in_object; /* one bit a level */
    uint64_t has_item;
    int depth;
    bool key_open;
};

void hf_json_begin(struct hf_json *json, struct hf_buf *out);
void hf_json_object(struct hf_json *json);
void hf_json_array(struct hf_json *json);
void hf_json_end(struct hf_json *json); /* of the innermost object or array */
void hf_json_key(struct hf_json *json, const char *key);
void hf_json_str(struct hf_json *json, const char *text);
void hf_json_strn(struct hf_json *json, const char *text, size_t len);
void hf_json_i64(struct hf_json *json, int64_t value);
void hf_json_bool(struct hf_json *json, bool value);
void hf_json_null(struct hf_json *json);
void hf_json_raw(struct hf_json *json, const char *text);
void hf_json_rawn(struct hf_json *json, const char *text, size_t len); /* not empty */

/* Appends a key as one part of a JSON pointer, without its slash. */
void hf_json_pointer_part(struct hf_buf *out, const char *key);

/* key + value in one call; the _opt forms leave the pair out for NULL or 0. */
void hf_json_put_str(struct hf_json *json, const char *key, const char *text);
void hf_json_put_i64(struct hf_json *json, const char *key, int64_t value);
void hf_json_put_bool(struct hf_json *json, const char *key, bool value);
void hf_json_put_raw(struct hf_json *json, const char *key, const char *text);
void hf_json_opt_str(struct hf_json *json, const char *key, const char *text);
void hf_json_opt_i64(struct hf_json *json, const char *key, int64_t value);

#endif
