/* Retry policy: reading, writing, and the arithmetic of delays. */

#include "core/ledger/retry.h"

#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/json_get.h"
#include "base/text.h"

#define FIELD "retry_policy"
#define MULTIPLIER_MAX 1000.0
#define CLASSES_MAX 64

const struct hf_retry hf_retry_default = {
    .max_attempts = 3,
    .initial_ms = 5000,
    .multiplier = 2.0,
    .max_ms = 300000,
    .jitter = HF_JITTER_FULL,
};

const char hf_retry_default_text[] =
    "{\"backoff_multiplier\":2,\"initial_backoff_ms\":5000,\"jitter\":\"full\","
    "\"max_attempts\":3,\"max_backoff_ms\":300000}";

static const char *const known_keys[] = {
    "backoff_multiplier", "initial_backoff_ms", "initial_backoff_sec", "jitter",
    "max_attempts",       "max_backoff_ms",     "max_backoff_sec",     "never_on",
    "retry_on",
};

static const char *const never_classes[] = { "validation", "policy_denied",
                                             "misconfigured" };

static bool is_number(const struct json_t *value)
{
    enum hf_json_type type = hf_json_type_of(value);
    return type == HF_JSON_INT || type == HF_JSON_REAL;
}

static int read_attempts(const struct json_t *all, struct hf_retry *retry,
                         struct hf_err *err)
{
    const struct json_t *value = hf_json_member(all, "max_attempts");
    retry->max_attempts = 0;
    if (!value)
        return 0;
    int64_t attempts = hf_json_as_i64(value);
    if (hf_json_type_of(value) != HF_JSON_INT || attempts < 1 ||
        attempts > HF_MAX_ATTEMPTS_MAX)
        return hf_fail(err, HF_EINVAL, FIELD, "max_attempts must be 1 to %lld",
                       (long long)HF_MAX_ATTEMPTS_MAX);
    retry->max_attempts = attempts;
    return 0;
}

/* A span given as `<name>_ms` or `<name>_sec`; untouched when neither is there. */
static int read_span(const struct json_t *all, const char *in_ms, const char *in_sec,
                     hf_ms *ret_ms, struct hf_err *err)
{
    const struct json_t *ms = hf_json_member(all, in_ms);
    const struct json_t *sec = hf_json_member(all, in_sec);
    if (ms && sec)
        return hf_fail(err, HF_EINVAL, FIELD, "%s and %s exclude each other", in_ms,
                       in_sec);
    const struct json_t *value = ms ? ms : sec;
    if (!value)
        return 0;
    double span = hf_json_as_real(value) * (ms ? 1.0 : 1000.0);
    bool typed = ms ? hf_json_type_of(ms) == HF_JSON_INT : is_number(sec);
    if (!typed || !(span >= 0.0 && span <= (double)HF_MAX_DURATION_MAX_MS))
        return hf_fail(err, HF_EINVAL, FIELD, "%s must be a number from 0 to 100 years",
                       ms ? in_ms : in_sec);
    *ret_ms = ms ? hf_json_as_i64(ms) : (hf_ms)span;
    return 0;
}

static int read_shape(const struct json_t *all, struct hf_retry *retry,
                      struct hf_err *err)
{
    const struct json_t *multiplier = hf_json_member(all, "backoff_multiplier");
    if (multiplier) {
        double value = hf_json_as_real(multiplier);
        if (!is_number(multiplier) || !(value >= 1.0 && value <= MULTIPLIER_MAX))
            return hf_fail(err, HF_EINVAL, FIELD,
                           "backoff_multiplier must be a number from 1 to 1000");
        retry->multiplier = value;
    }
    const struct json_t *jitter = hf_json_member(all, "jitter");
    if (jitter) {
        const char *word = hf_json_as_text(jitter);
        if (!word || (!hf_same(word, "full") && !hf_same(word, "none")))
            return hf_fail(err, HF_EINVAL, FIELD, "jitter must be \"full\" or \"none\"");
        retry->jitter = hf_same(word, "none") ? HF_JITTER_NONE : HF_JITTER_FULL;
    }
    return 0;
}

static int check_classes(const struct json_t *all, const char *key, struct hf_err *err)
{
    const struct json_t *list = hf_json_member(all, key);
    if (!list)
        return 0;
    if (hf_json_type_of(list) != HF_JSON_ARRAY || hf_json_items(list) > CLASSES_MAX)
        return hf_fail(err, HF_EINVAL, FIELD, "%s must be an array of at most %d words",
                       key, CLASSES_MAX);
    for (size_t i = 0; i < hf_json_items(list); i++) {
        const char *word = hf_json_as_text(hf_json_item(list, i));
        if (hf_check_key(word, (size_t)HF_MAX_KEY_BYTES, FIELD, NULL) != 0)
            return hf_fail(err, HF_EINVAL, FIELD,
                           "%s[%zu] must be an error class or timeout reason", key, i);
    }
    return 0;
}

static int read_object(const struct json_t *all, struct hf_retry *retry,
                       struct hf_err *err)
{
    if (hf_json_type_of(all) != HF_JSON_OBJECT)
        return hf_fail(err, HF_EINVAL, FIELD, "a retry policy is a JSON object");
    const char *stranger = hf_json_stranger(all, known_keys,
                                            sizeof(known_keys) / sizeof(known_keys[0]));
    if (stranger)
        return hf_fail(err, HF_EINVAL, FIELD, "unknown key \"%.60s\"", stranger);

    int rc = read_attempts(all, retry, err);
    if (rc == 0)
        rc = read_span(all, "initial_backoff_ms", "initial_backoff_sec",
                       &retry->initial_ms, err);
    if (rc == 0)
        rc = read_span(all, "max_backoff_ms", "max_backoff_sec", &retry->max_ms, err);
    if (rc == 0)
        rc = read_shape(all, retry, err);
    if (rc == 0)
        rc = check_classes(all, "retry_on", err);
    if (rc == 0)
        rc = check_classes(all, "never_on", err);
    return rc;
}

static int parse(const char *json, struct json_t **ret_value, struct hf_err *err)
{
    struct hf_span text = { json, strlen(json) };
    return hf_json_parse(text, (size_t)HF_MAX_POLICY_BYTES, FIELD, ret_value, err);
}

int hf_retry_read(const char *json, struct hf_retry *ret_retry, struct hf_err *err)
{
    if (!json) {
        *ret_retry = hf_retry_default;
        return 0;
    }
    struct json_t *all = NULL;
    int rc = parse(json, &all, err);
    if (rc)
        return rc;
    struct hf_retry retry = hf_retry_default;
    rc = read_object(all, &retry, err);
    hf_json_free(all);
    retry.json = json;
    if (rc == 0)
        *ret_retry = retry;
    return rc;
}

static void put_classes(struct hf_json *json, const struct json_t *all, const char *key)
{
    const struct json_t *list = hf_json_member(all, key);
    if (!list)
        return;
    hf_json_key(json, key);
    hf_json_array(json);
    for (size_t i = 0; i < hf_json_items(list); i++)
        hf_json_str(json, hf_json_as_text(hf_json_item(list, i)));
    hf_json_end(json);
}

int hf_retry_write(struct hf_buf *out, const struct hf_retry *retry)
{
    struct json_t *all = NULL;
    int rc = retry->json ? parse(retry->json, &all, NULL) : 0;
    if (rc)
        return rc;
    struct hf_json json;
    hf_json_begin(&json, out);
    hf_json_object(&json); /* keys in order: the form is canonical */
    hf_json_key(&json, "backoff_multiplier");
    if (retry->multiplier == (double)(int64_t)retry->multiplier)
        hf_json_i64(&json, (int64_t)retry->multiplier);
    else
        hf_json_f64(&json, retry->multiplier);
    hf_json_put_i64(&json, "initial_backoff_ms", retry->initial_ms);
    hf_json_put_str(&json, "jitter", retry->jitter == HF_JITTER_NONE ? "none" : "full");
    hf_json_opt_i64(&json, "max_attempts", retry->max_attempts);
    hf_json_put_i64(&json, "max_backoff_ms", retry->max_ms);
    put_classes(&json, all, "never_on");
    put_classes(&json, all, "retry_on");
    hf_json_end(&json);
    hf_json_free(all);
    return hf_buf_state(out);
}

static bool lists(const struct json_t *all, const char *key, const char *word)
{
    const struct json_t *list = hf_json_member(all, key);
    for (size_t i = 0; i < hf_json_items(list); i++) {
        if (hf_same(hf_json_as_text(hf_json_item(list, i)), word))
            return true;
    }
    return false;
}

static bool allowed_by_default(const char *error_class)
{
    for (size_t i = 0; i < sizeof(never_classes) / sizeof(never_classes[0]); i++) {
        if (hf_same(never_classes[i], error_class))
            return false;
    }
    return true;
}

bool hf_retry_allows(const struct hf_retry *retry, const char *error_class, bool timeout)
{
    struct json_t *all = NULL;
    if (retry->json && parse(retry->json, &all, NULL) != 0)
        return false;
    bool allows;
    if (lists(all, "never_on", error_class))
        allows = false;
    else if (lists(all, "retry_on", error_class))
        allows = true;
    else
        allows = !timeout && allowed_by_default(error_class);
    hf_json_free(all);
    return allows;
}

hf_ms hf_retry_delay(const struct hf_retry *retry, int64_t failures, uint64_t random)
{
    if (retry->initial_ms <= 0 || retry->max_ms <= 0)
        return 0;
    double cap = (double)retry->max_ms;
    double delay = (double)retry->initial_ms;
    /* Ends early: a factor above 1 reaches the cap, any other changes nothing. */
    for (int64_t i = 1; i < failures && delay < cap && retry->multiplier > 1.0; i++)
        delay *= retry->multiplier;
    hf_ms most = delay < cap ? (hf_ms)delay : retry->max_ms;
    if (retry->jitter == HF_JITTER_NONE)
        return most;
    return (hf_ms)(random % ((uint64_t)most + 1));
}
