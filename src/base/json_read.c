/* Reading JSON: a check that builds nothing, and a parse into jansson's values.
 *
 * jansson is the model of values only. Its own reader ignores that memory ran out while a
 * token grew, and then returns a value that lacks a byte (2.14); so the text is read here.
 * jansson takes its memory from malloc by way of its own, process-wide hooks, and not from
 * a handle's allocator; the hooks are the host's to change, never ours.
 *
 * An integer outside int64_t and a number past DBL_MAX are refused: to round them would
 * change the caller's data without a word. No message quotes the input, which may hold
 * secrets. */
#include "base/json_read.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/json.h"
#include "base/json_scan.h"

#define LEVELS_MAX 64
#define KEYS_MAX 128 /* whose hashes are kept, of all objects open at a time */
#define EXPONENT_MAX INT64_C(1000000000) /* past any text's length in zeros */
#define NUMBER_ROOM 32                   /* for what hf_json_real writes */

static const char out_of_range[] = "has a number that is out of range";
static const char duplicate_key[] = "has a duplicate key";

static const char *name_of(const char *field)
{
    return field ? field : "JSON";
}

static int refuse_token(struct hf_json_scan *scan, const char *fault)
{
    scan->code = HF_EINVAL;
    scan->fault = fault;
    scan->at = scan->token;
    return HF_EINVAL;
}

static int report(const struct hf_json_scan *scan, int rc, const char *field,
                  struct hf_err *err)
{
    if (rc == HF_ENOMEM)
        return hf_fail(err, rc, field, "out of memory reading %s", name_of(field));
    if (rc == HF_ETOOBIG)
        return hf_fail(err, rc, field, "%s is nested deeper than %lld levels (byte %td)",
                       name_of(field), (long long)scan->most, scan->at - scan->start);
    return hf_fail(err, rc, field, "%s %s (byte %td)", name_of(field), scan->fault,
                   scan->at - scan->start);
}

static bool i64_of(const char *token, size_t len, int64_t *ret_value)
{
    bool minus = token[0] == '-';
    int64_t value = 0;
    for (size_t i = minus ? 1 : 0; i < len; i++) {
        int64_t digit = token[i] - '0';
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, digit, &value))
            return false; /* kept negative: there is one more of those */
    }
    if (!minus && value == INT64_MIN)
        return false;
    *ret_value = minus ? value : -value;
    return true;
}

/* Without a decimal point strtod reads the same in every locale. */
double hf_json_real(char *digits, int64_t exponent)
{
    char *at = digits + strlen(digits);
    *at++ = 'e';
    if (exponent < 0)
        *at++ = '-';
    uint64_t rest = (uint64_t)(exponent < 0 ? -exponent : exponent);
    uint64_t power = 1;
    while (rest / power >= 10)
        power *= 10;
    for (; power > 0; power /= 10)
        *at++ = (char)('0' + rest / power % 10);
    *at = '\0';
    return strtod(digits, NULL);
}

/* "-12.5e3" becomes "-125" and the exponent 2. `scratch` has room for token and NUL. */
static int64_t split_real(const char *token, size_t len, char *scratch)
{
    int64_t exponent = 0;
    size_t i = 0;
    bool fraction = false;
    for (; i < len && token[i] != 'e' && token[i] != 'E'; i++) {
        if (token[i] == '.') {
            fraction = true;
            continue;
        }
        *scratch++ = token[i];
        exponent -= fraction ? 1 : 0;
    }
    *scratch = '\0';
    bool minus = i + 1 < len && token[i + 1] == '-';
    int64_t given = 0;
    for (; i < len; i++)
        if (token[i] >= '0' && token[i] <= '9' && given < EXPONENT_MAX)
            given = given * 10 + (token[i] - '0');
    return exponent + (minus ? -given : given);
}

/* True for everyday reals; false says nothing. 200 digits and two of exponent stay under
 * DBL_MAX, and a number too small is 0. */
static bool surely_finite(const char *token, size_t len)
{
    const char *mark = memchr(token, 'e', len);
    if (!mark)
        mark = memchr(token, 'E', len);
    size_t digits = mark ? (size_t)(mark - token) : len;
    size_t after = len - digits; /* the mark, a sign, the exponent */
    return digits <= 200 &&
           (after <= 3 || (after <= 4 && !(mark[1] >= '0')) || mark[1] == '-');
}

/* Keys of the objects that are open, as hashes: equal keys have equal hashes. */
struct seen {
    size_t count;
    size_t first[LEVELS_MAX];
    uint64_t hashes[KEYS_MAX];
};

static uint64_t hash_of(const char *at, size_t len)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static bool surely_new_key(struct seen *seen, const struct hf_json_scan *scan)
{
    if (scan->token_escaped || seen->count == KEYS_MAX)
        return false;
    uint64_t hash = hash_of(scan->token, scan->token_len);
    for (size_t i = seen->first[scan->depth - 1]; i < seen->count; i++)
        if (seen->hashes[i] == hash)
            return false;
    seen->hashes[seen->count++] = hash;
    return true;
}

static bool surely_in_range(const struct hf_json_scan *scan)
{
    return scan->token_real ? surely_finite(scan->token, scan->token_len)
                            : i64_of(scan->token, scan->token_len, &(int64_t){ 0 });
}

/* 0 for a text that hf_json_read accepts too. Otherwise the scan may have found the
 * fault, or only met something for which keys and numbers must be kept: *ret_unsure. */
static int look(struct hf_json_scan *scan, bool any_number, bool *ret_unsure)
{
    struct seen seen;
    seen.count = 0;
    for (;;) {
        bool sure = true;
        enum hf_json_event event = hf_json_scan_next(scan);
        if (event == HF_JSON_EV_BAD)
            return scan->code;
        if (event == HF_JSON_EV_DONE)
            return 0;
        if (event == HF_JSON_EV_OBJECT || event == HF_JSON_EV_ARRAY)
            seen.first[scan->depth - 1] = seen.count;
        else if (event == HF_JSON_EV_CLOSE)
            seen.count = seen.first[scan->depth];
        else if (event == HF_JSON_EV_KEY)
            sure = surely_new_key(&seen, scan);
        else if (event == HF_JSON_EV_NUMBER)
            sure = any_number || surely_in_range(scan);
        if (!sure) {
            *ret_unsure = true;
            return 0;
        }
    }
}

struct reader {
    struct hf_json_scan scan;
    bool any_number; /* one that is out of range is null here: only a check asks */
    const struct hf_alloc *alloc;
    char *scratch; /* as long as the text, made when first needed */
    json_t *root;
    json_t *open[LEVELS_MAX]; /* borrowed: each is in the one before */
    const char *key;
    size_t key_len;
    bool key_escaped;
};

static char *scratch_of(struct reader *reader)
{
    size_t bytes = (size_t)(reader->scan.end - reader->scan.start);
    if (!reader->scratch && bytes < SIZE_MAX - NUMBER_ROOM)
        reader->scratch = reader->alloc->realloc(reader->alloc->user, NULL,
                                                 bytes + NUMBER_ROOM);
    return reader->scratch;
}

static int read_string(struct reader *reader, json_t **ret_value)
{
    const char *text = reader->scan.token;
    size_t len = reader->scan.token_len;
    if (reader->scan.token_escaped) {
        char *scratch = scratch_of(reader);
        if (!scratch)
            return HF_ENOMEM;
        len = hf_json_unescape(text, len, scratch);
        text = scratch;
    }
    *ret_value = json_stringn_nocheck(text, len);
    return *ret_value ? 0 : HF_ENOMEM;
}

static int out_of_bounds(struct reader *reader, json_t **ret_value)
{
    if (!reader->any_number)
        return refuse_token(&reader->scan, out_of_range);
    *ret_value = json_null();
    return 0;
}

static int read_number(struct reader *reader, json_t **ret_value)
{
    struct hf_json_scan *scan = &reader->scan;
    if (!scan->token_real) {
        int64_t value = 0;
        if (!i64_of(scan->token, scan->token_len, &value))
            return out_of_bounds(reader, ret_value);
        *ret_value = json_integer(value);
        return *ret_value ? 0 : HF_ENOMEM;
    }
    char *scratch = scratch_of(reader);
    if (!scratch)
        return HF_ENOMEM;
    int64_t exponent = split_real(scan->token, scan->token_len, scratch);
    double value = hf_json_real(scratch, exponent);
    if (value > DBL_MAX || value < -DBL_MAX)
        return out_of_bounds(reader, ret_value);
    *ret_value = json_real(value);
    return *ret_value ? 0 : HF_ENOMEM;
}

static int read_value(struct reader *reader, enum hf_json_event event, json_t **ret_value)
{
    switch (event) {
    case HF_JSON_EV_STRING: return read_string(reader, ret_value);
    case HF_JSON_EV_NUMBER: return read_number(reader, ret_value);
    case HF_JSON_EV_OBJECT: *ret_value = json_object(); break;
    case HF_JSON_EV_ARRAY: *ret_value = json_array(); break;
    case HF_JSON_EV_TRUE: *ret_value = json_true(); break;
    case HF_JSON_EV_FALSE: *ret_value = json_false(); break;
    case HF_JSON_EV_NULL: *ret_value = json_null(); break;
    case HF_JSON_EV_BAD:
    case HF_JSON_EV_DONE:
    case HF_JSON_EV_CLOSE:
    case HF_JSON_EV_KEY: return HF_EINTERNAL; /* these carry no value */
    }
    return *ret_value ? 0 : HF_ENOMEM;
}

static int put_member(struct reader *reader, json_t *object, json_t *value)
{
    const char *key = reader->key;
    size_t len = reader->key_len;
    if (reader->key_escaped) {
        char *scratch = scratch_of(reader);
        if (!scratch) {
            json_decref(value);
            return HF_ENOMEM;
        }
        len = hf_json_unescape(key, len, scratch);
        key = scratch;
    }
    if (json_object_getn(object, key, len)) {
        json_decref(value);
        reader->scan.token = reader->key;
        return refuse_token(&reader->scan, duplicate_key);
    }
    return json_object_setn_new_nocheck(object, key, len, value) ? HF_ENOMEM : 0;
}

/* Adds the value to what it is in, so that the root owns all there is. `depth` is
 * that of the container, 0 for none. */
static int attach(struct reader *reader, int depth, json_t *value)
{
    if (depth == 0) {
        reader->root = value;
        return 0;
    }
    json_t *parent = reader->open[depth - 1];
    if (json_is_object(parent))
        return put_member(reader, parent, value);
    return json_array_append_new(parent, value) ? HF_ENOMEM : 0;
}

static int read_event(struct reader *reader, enum hf_json_event event)
{
    struct hf_json_scan *scan = &reader->scan;
    if (event == HF_JSON_EV_CLOSE)
        return 0;
    if (event == HF_JSON_EV_KEY) {
        reader->key = scan->token;
        reader->key_len = scan->token_len;
        reader->key_escaped = scan->token_escaped;
        return 0;
    }
    json_t *value = NULL;
    bool opens = event == HF_JSON_EV_OBJECT || event == HF_JSON_EV_ARRAY;
    int rc = read_value(reader, event, &value);
    if (rc == 0)
        rc = attach(reader, opens ? scan->depth - 1 : scan->depth, value);
    if (rc == 0 && opens)
        reader->open[scan->depth - 1] = value;
    return rc;
}

static int read_all(struct reader *reader, const char *field, struct json_t **ret_value,
                    struct hf_err *err)
{
    int rc = 0;
    enum hf_json_event event = hf_json_scan_next(&reader->scan);
    while (rc == 0 && event != HF_JSON_EV_DONE) {
        rc = event == HF_JSON_EV_BAD ? reader->scan.code : read_event(reader, event);
        if (rc == 0)
            event = hf_json_scan_next(&reader->scan);
    }
    if (reader->scratch)
        reader->alloc->free(reader->alloc->user, reader->scratch);
    if (rc) {
        json_decref(reader->root);
        return report(&reader->scan, rc, field, err);
    }
    *ret_value = reader->root;
    return 0;
}

static void begin_reading(struct reader *reader, struct hf_span text,
                          const struct hf_alloc *alloc)
{
    reader->any_number = false;
    reader->alloc = alloc;
    reader->scratch = NULL;
    reader->root = NULL;
    hf_json_scan_begin(&reader->scan, text);
}

int hf_json_read(struct hf_span text, const struct hf_alloc *alloc, const char *field,
                 struct json_t **ret_value, struct hf_err *err)
{
    struct reader reader;
    begin_reading(&reader, text, alloc);
    return read_all(&reader, field, ret_value, err);
}

static int check_size(struct hf_span text, size_t max, const char *field,
                      struct hf_err *err)
{
    if (text.len > max)
        return hf_fail(err, HF_ETOOBIG, field, "%s must be at most %zu bytes",
                       name_of(field), max);
    return 0;
}

int hf_json_parse(struct hf_span text, size_t max, const char *field,
                  struct json_t **ret_value, struct hf_err *err)
{
    int rc = check_size(text, max, field, err);
    return rc ? rc : hf_json_read(text, hf_alloc_system(), field, ret_value, err);
}

/* A look first, which mostly decides it; the reader knows about keys for sure. */
static int check(struct hf_span text, int most, bool any_number, const char *field,
                 bool *foul, struct hf_err *err)
{
    struct reader reader;
    struct hf_json_scan scan;
    hf_json_scan_begin(&scan, text);
    scan.any_text = foul != NULL;
    scan.most = most;
    bool unsure = false;
    int rc = look(&scan, any_number, &unsure);
    if (rc)
        return report(&scan, rc, field, err);
    if (foul)
        *foul = scan.foul;
    if (!unsure)
        return 0;
    json_t *value = NULL;
    begin_reading(&reader, text, hf_alloc_system());
    reader.scan.any_text = foul != NULL;
    reader.scan.most = most;
    reader.any_number = any_number;
    rc = read_all(&reader, field, &value, err);
    if (rc)
        return rc;
    json_decref(value);
    if (foul)
        *foul = reader.scan.foul;
    return 0;
}

int hf_json_check(struct hf_span text, size_t max, const char *field, struct hf_err *err)
{
    int rc = check_size(text, max, field, err);
    return rc ? rc : check(text, (int)HF_MAX_JSON_DEPTH, false, field, NULL, err);
}

int hf_json_check_raw(struct hf_span text, size_t max, const char *field,
                      struct hf_err *err)
{
    int rc = check_size(text, max, field, err);
    return rc ? rc : check(text, (int)HF_MAX_JSON_DEPTH, true, field, NULL, err);
}

int hf_json_check_inner(struct hf_span text, size_t max, int levels, const char *field,
                        struct hf_err *err)
{
    int rc = check_size(text, max, field, err);
    return rc ? rc : check(text, levels, true, field, NULL, err);
}

int hf_json_check_said(struct hf_span text, size_t max, const char *field, bool *ret_foul,
                       struct hf_err *err)
{
    int rc = check_size(text, max, field, err);
    return rc ? rc : check(text, (int)HF_MAX_JSON_DEPTH, true, field, ret_foul, err);
}
