/* Requests as tables (inputs.h): the kinds of values as text, and the way of a value into a request
 * and out of it. A row of a table (struct hf_input) describes one member of a request struct: its
 * name, kind, bounds, and its offset and width in the struct. */
#include "core/inputs/inputs.h"

#include <string.h>

#include "base/err.h"
#include "base/text.h"

int64_t hf_input_max(const struct hf_input *input)
{
    int64_t max = input->bound ? hf_bound_at(input->bound)->value : input->max;
    if (max)
        return max;
    switch (input->kind) {
    case HF_IN_TEXT:
    case HF_IN_TEXTS: return HF_MAX_KEY_BYTES;
    case HF_IN_MS: return HF_MAX_DURATION_MAX_MS;
    case HF_IN_INSTANT: return 253402300799999; /* the year 9999 */
    case HF_IN_FLAG:
    case HF_IN_PATH:
    case HF_IN_JSON:
    case HF_IN_WORD:
    case HF_IN_WORDS:
    case HF_IN_INT: return INT64_MAX;
    }
    return INT64_MAX;
}

bool hf_input_many(const struct hf_input *input)
{
    return input->kind == HF_IN_TEXTS || input->kind == HF_IN_WORDS ||
           input->flags & HF_IN_PAIRS;
}

const char *hf_input_option(const struct hf_input *input, char out[HF_INPUT_NAME])
{
    const char *from = input->option ? input->option : input->name;
    size_t len = 0;
    for (; from[len] && len < HF_INPUT_NAME - 1; len++)
        out[len] = from[len] == '_' ? '-' : from[len];
    out[len] = '\0';
    return out;
}

/* ---- values as text ---------------------------------------------------------------- */

static int parse_word(const struct hf_input *input, const char *label, const char *text,
                      int64_t *ret_number, struct hf_err *err)
{
    struct hf_buf list;
    hf_buf_init(&list, hf_alloc_system(), 400);
    for (const char *const *word = input->words; *word; word++) {
        if (hf_same(*word, text)) {
            hf_buf_fini(&list);
            *ret_number = input->min + (word - input->words);
            return 0;
        }
        hf_buf_text(&list, word == input->words ? "" : ", ");
        hf_buf_text(&list, *word);
    }
    int rc = hf_fail(err, HF_EINVAL, label, "%s must be one of %s, not \"%.60s\"", label,
                     hf_buf_str(&list), text);
    hf_buf_fini(&list);
    return rc;
}

/* Where 0 would mean "as if not given", min is 1: a value that was given is never ignored. */
static int check_ms(const struct hf_input *input, const char *label, hf_ms ms,
                    struct hf_err *err)
{
    char bound[24];
    if (ms < input->min && input->min == 1)
        return hf_fail(err, HF_EINVAL, label,
                       "%s must be above 0; leave it out for the default", label);
    if (ms < input->min)
        return hf_fail(err, HF_EINVAL, label, "%s must be at least %s", label,
                       hf_duration_text(input->min, bound, sizeof(bound)));
    if (input->max && ms > input->max)
        return hf_fail(err, HF_EINVAL, label, "%s must be at most %s", label,
                       hf_duration_text(input->max, bound, sizeof(bound)));
    return 0;
}

int hf_input_parse(const struct hf_input *input, const char *label, const char *text,
                   int64_t *ret_number, struct hf_err *err)
{
    int rc = 0;
    if (input->kind != HF_IN_PATH && !hf_utf8_valid(text, strlen(text)))
        return hf_fail(err, HF_EINVAL, label, "%s must be UTF-8", label);
    switch (input->kind) {
    case HF_IN_WORD:
    case HF_IN_WORDS: return parse_word(input, label, text, ret_number, err);
    case HF_IN_INT:
        return hf_parse_i64(text, input->min, hf_input_max(input), label, ret_number,
                            err);
    case HF_IN_MS:
        rc = hf_parse_duration(text, label, ret_number, err);
        return rc ? rc : check_ms(input, label, *ret_number, err);
    case HF_IN_INSTANT: return hf_parse_instant(text, label, ret_number, err);
    case HF_IN_FLAG:
    case HF_IN_TEXT:
    case HF_IN_TEXTS:
    case HF_IN_PATH:
    case HF_IN_JSON: return 0;
    }
    return 0;
}

int hf_input_check_number(const struct hf_input *input, int64_t number,
                          struct hf_err *err)
{
    if (input->kind == HF_IN_MS)
        return check_ms(input, input->name, number, err);
    if (number >= input->min && number <= hf_input_max(input))
        return 0;
    return hf_fail(err, HF_EINVAL, input->name, "%s must be from %lld to %lld",
                   input->name, (long long)input->min, (long long)hf_input_max(input));
}

/* ---- members ----------------------------------------------------------------------- */

static void *member(const struct hf_input *input, void *request)
{
    return (char *)request + input->offset;
}

/* Stores a number in the member that the row describes. The width tells the member's type: bool,
 * int (which an enum is, too), or a number of 64 bits such as hf_ms. A number that does not fit an
 * int was refused before: a row over an int has a bound that fits. */
void hf_input_store_number(const struct hf_input *input, int64_t number, void *request)
{
    int word = (int)number;
    bool flag = number != 0;
    switch (input->width) {
    case sizeof(bool): memcpy(member(input, request), &flag, sizeof(flag)); return;
    case sizeof(int): memcpy(member(input, request), &word, sizeof(word)); return;
    default: memcpy(member(input, request), &number, sizeof(number)); return;
    }
}

void hf_input_store_text(const struct hf_input *input, const char *text, void *request)
{
    memcpy(member(input, request), &text, sizeof(text));
}

int hf_input_store_texts(const struct hf_input *input, const char *const *texts,
                         size_t count, struct hf_arena *arena, void *request)
{
    char *at = member(input, request);
    const void *array = texts;
    if (input->kind == HF_IN_WORDS) {
        int *values = hf_arena_array(arena, count, sizeof(*values));
        if (!values)
            return HF_ENOMEM;
        for (size_t i = 0; i < count; i++)
            for (size_t w = 0; input->words[w]; w++)
                if (hf_same(input->words[w], texts[i]))
                    values[i] = (int)input->min + (int)w;
        array = values;
    }
    memcpy(at, &array, sizeof(array));
    memcpy(at + sizeof(array), &count, sizeof(count));
    return 0;
}

int64_t hf_input_number(const struct hf_input *input, const void *request)
{
    const char *at = (const char *)request + input->offset;
    int64_t number = 0;
    int word = 0;
    switch (input->width) {
    case sizeof(bool): return *at != 0;
    case sizeof(int): memcpy(&word, at, sizeof(word)); return word;
    default: memcpy(&number, at, sizeof(number)); return number;
    }
}

const char *hf_input_text(const struct hf_input *input, const void *request)
{
    const char *text = NULL;
    memcpy(&text, (const char *)request + input->offset, sizeof(text));
    return text;
}
