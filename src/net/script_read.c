/* Reading a script. See script.h. */
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/json_get.h"
#include "base/text.h"
#include "net/script.h"

static int word_fault(const char *word)
{
    for (int i = 0; i < HF_HTTP_FAULT_COUNT; i++)
        if (hf_same(word, hf_http_fault_name((enum hf_http_fault)i)))
            return i;
    return -1;
}

static int digit_of(char c)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = c ? strchr(digits, c) : NULL;
    return found ? (int)(found - digits) : -1;
}

static int read_base64(struct hf_arena *arena, const char *text,
                       struct hf_span *ret_bytes)
{
    size_t len = strlen(text);
    unsigned char *out = hf_arena_take(arena, len / 4 * 3 + 1);
    size_t used = 0;
    if (!out)
        return HF_ENOMEM;
    if (len % 4 != 0)
        return HF_EINVAL;
    for (size_t i = 0; i < len; i += 4) {
        int pad = (text[i + 3] == '=') + (text[i + 2] == '=');
        uint32_t bits = 0;
        for (size_t k = 0; k < 4; k++) {
            int digit = k >= (size_t)(4 - pad) ? 0 : digit_of(text[i + k]);
            if (digit < 0 || (pad && i + 4 != len))
                return HF_EINVAL;
            bits = bits << 6 | (uint32_t)digit;
        }
        for (int k = 0; k < 3 - pad; k++)
            out[used++] = (unsigned char)(bits >> (16 - 8 * k));
    }
    *ret_bytes = (struct hf_span){ out, used };
    return 0;
}

static int read_headers(struct hf_arena *arena, const struct json_t *object,
                        struct hf_script_step *step)
{
    const char *name = NULL;
    const struct json_t *value = NULL;
    struct hf_http_header *headers = NULL;
    size_t count = 0;
    for (void *at = NULL; hf_json_next(object, &at, &name, &value);)
        count++;
    headers = hf_arena_array(arena, count + 1, sizeof(*headers));
    if (!headers)
        return HF_ENOMEM;
    step->headers = headers;
    for (void *at = NULL; hf_json_next(object, &at, &name, &value); headers++) {
        if (hf_json_type_of(value) != HF_JSON_TEXT)
            return HF_EINVAL;
        headers->name = hf_arena_text(arena, name);
        headers->value = hf_arena_text(arena, hf_json_as_text(value));
        if (!headers->name || !headers->value)
            return HF_ENOMEM;
    }
    step->header_count = count;
    return 0;
}

static int read_head(struct hf_arena *arena, const struct json_t *value,
                     struct hf_script_step *step)
{
    int64_t status = hf_json_as_i64(hf_json_member(value, "status"));
    if (status < 100 || status > 599)
        return HF_EINVAL;
    step->kind = HF_SCRIPT_HEAD;
    step->status = (int)status;
    return read_headers(arena, hf_json_member(value, "headers"), step);
}

static int read_body(struct hf_arena *arena, const char *text,
                     struct hf_script_step *step)
{
    step->kind = HF_SCRIPT_BODY;
    char *copy = hf_arena_text(arena, text);
    step->body = (struct hf_span){ copy, strlen(text) };
    return copy ? 0 : HF_ENOMEM;
}

static int read_step(struct hf_arena *arena, const struct json_t *value,
                     struct hf_script_step *step)
{
    const char *body = hf_json_as_text(hf_json_member(value, "body"));
    const char *base64 = hf_json_as_text(hf_json_member(value, "base64"));
    const char *end = hf_json_as_text(hf_json_member(value, "end"));
    const struct json_t *wait = hf_json_member(value, "wait_ms");
    if (hf_json_member(value, "status"))
        return read_head(arena, value, step);
    if (body)
        return read_body(arena, body, step);
    if (base64) {
        step->kind = HF_SCRIPT_BODY;
        return read_base64(arena, base64, &step->body);
    }
    if (wait) {
        step->kind = HF_SCRIPT_WAIT;
        step->wait_ms = hf_json_as_i64(wait);
        return step->wait_ms >= 0 && step->wait_ms <= 86400000 ? 0 : HF_EINVAL;
    }
    int fault = end ? word_fault(end) : -1;
    step->kind = HF_SCRIPT_END;
    step->fault = (enum hf_http_fault)fault;
    return fault >= 0 ? 0 : HF_EINVAL;
}

/* The next line of the text, without its end. */
static struct hf_span take_line(struct hf_span *rest)
{
    const char *at = rest->at;
    const char *end = rest->len ? memchr(at, '\n', rest->len) : NULL;
    size_t len = end ? (size_t)(end - at) : rest->len;
    size_t step = end ? len + 1 : len;
    *rest = (struct hf_span){ at + step, rest->len - step };
    return (struct hf_span){ at, len };
}

static int bad_line(size_t number, struct hf_err *err)
{
    return hf_fail(err, HF_EINVAL, "script", "line %zu is no step of a script", number);
}

static int read_line(struct hf_arena *arena, struct hf_span line, size_t number,
                     struct hf_script_step *ret_step, struct hf_err *err)
{
    struct json_t *value = NULL;
    if (hf_json_parse(line, (size_t)HF_MAX_MODEL_EVENT_BYTES * 2, "script", &value, NULL))
        return bad_line(number, err);
    int rc = 0;
    if (number == 1)
        rc = hf_json_as_i64(hf_json_member(value, "holdfast_script")) == 1 ? 0
                                                                           : HF_EINVAL;
    else
        rc = read_step(arena, value, ret_step);
    hf_json_free(value);
    return rc == HF_EINVAL ? bad_line(number, err) : rc ? hf_fail_plain(err, rc) : 0;
}

int hf_script_read(struct hf_arena *arena, struct hf_span text,
                   struct hf_script_step **ret_steps, size_t *ret_count,
                   struct hf_err *err)
{
    size_t lines = 1;
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        lines += ((const char *)text.at)[i] == '\n';
    struct hf_script_step *steps = hf_arena_array(arena, lines, sizeof(*steps));
    if (!steps)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t number = 1; text.len > 0; number++) {
        struct hf_span line = take_line(&text);
        if (line.len == 0)
            continue;
        int rc = read_line(arena, line, number, &steps[count], err);
        if (rc)
            return rc;
        count += number > 1;
    }
    if (count == 0 || steps[count - 1].kind != HF_SCRIPT_END)
        return hf_fail(err, HF_EINVAL, "script", "a script ends with an \"end\" line");
    *ret_steps = steps;
    *ret_count = count;
    return 0;
}
