/* JSON text as a row of events: strict, iterative, without memory. It accepts JSON
 * (RFC 8259) in UTF-8, nested at most HF_MAX_JSON_DEPTH deep, without NUL in strings; that
 * keys are not repeated and numbers not too large is for its callers to see. With
 * `any_text` strings may have \u0000 and lone surrogates as escapes. `most` is set to allow
 * less nesting.
 */
#ifndef HF_BASE_JSON_SCAN_H
#define HF_BASE_JSON_SCAN_H

#include <holdfast/types.h>

enum hf_json_event {
    HF_JSON_EV_BAD,    /* `code` and `fault` say why, `at` where */
    HF_JSON_EV_DONE,   /* the one value is complete, and the text with it */
    HF_JSON_EV_OBJECT, /* begins */
    HF_JSON_EV_ARRAY,  /* begins */
    HF_JSON_EV_CLOSE,  /* of the innermost of these */
    HF_JSON_EV_KEY,    /* with a token; its value comes next */
    HF_JSON_EV_STRING, /* with a token */
    HF_JSON_EV_NUMBER, /* with a token */
    HF_JSON_EV_TRUE,
    HF_JSON_EV_FALSE,
    HF_JSON_EV_NULL
};

/* Read-only to callers, except any_text and most, which are set after hf_json_scan_begin. */
struct hf_json_scan {
    bool any_text;
    int most;  /* levels of nesting */
    bool foul; /* such an escape was seen */
    const char *start;
    const char *at;
    const char *end;
    int depth;          /* objects and arrays that are open */
    uint64_t in_object; /* one bit a level */
    int want;

    const char *token; /* of a string, what is between the quotes */
    size_t token_len;
    bool token_escaped; /* a string that has escapes */
    bool token_real;    /* a number that has a fraction or an exponent */

    int code;
    const char *fault;
};

/* The text must stay until the last event. */
void hf_json_scan_begin(struct hf_json_scan *scan, struct hf_span text);
enum hf_json_event hf_json_scan_next(struct hf_json_scan *scan);

/* The text of a string token without its escapes, which is never longer: `out` has room
 * for token_len bytes. Returns the length; there is no NUL. \u0000 and a lone surrogate
 * become U+FFFD. */
size_t hf_json_unescape(const char *token, size_t len, char *out);

#endif
