/* The options of a request, checked by a table. */
#include <string.h>

#include <holdfast/bounds.h>

#include "agent/wire/codec.h"
#include "base/err.h"
#include "base/json_scan.h"
#include "base/json_walk.h"
#include "base/text.h"

static const char *const names[] = {
#define X(name, word) #word,
    HF_MODEL_OPTIONS(X)
#undef X
};

static const char *const efforts[] = { "none", "minimal", "low", "medium", "high" };

const char *hf_model_option_name(enum hf_model_option option)
{
    return (unsigned)option < HF_OPTION_COUNT ? names[option] : "?";
}

static char first_of(struct hf_span raw)
{
    return raw.len > 0 ? *(const char *)raw.at : '\0';
}

static bool is_number(struct hf_span raw)
{
    char c = first_of(raw);
    return (c >= '0' && c <= '9') || c == '-';
}

static bool is_bool(struct hf_span raw)
{
    return first_of(raw) == 't' || first_of(raw) == 'f';
}

static bool is_cap(struct hf_span raw)
{
    int64_t value = 0;
    return hf_walk_i64(raw, &value) && value > 0;
}

static bool is_temperature(struct hf_span raw)
{
    return is_number(raw) && first_of(raw) != '-';
}

static bool is_integer(struct hf_span raw)
{
    int64_t value = 0;
    return hf_walk_i64(raw, &value);
}

static bool is_stops(struct hf_span raw)
{
    struct hf_walk walk;
    int64_t count = 0;
    hf_walk_begin(&walk, raw);
    if (!hf_walk_enter(&walk, '['))
        return false;
    while (hf_walk_more(&walk)) {
        struct hf_span item = hf_walk_value(&walk);
        if (first_of(item) != '"' || item.len <= 2)
            return false;
        count++;
    }
    return count > 0 && count <= HF_MAX_MODEL_STOPS;
}

static bool is_effort(struct hf_span raw)
{
    return hf_wire_word_of(raw, efforts, sizeof(efforts) / sizeof(efforts[0])) >= 0;
}

/* The member of an object, empty when there is none. */
static struct hf_span member(struct hf_span object, const char *name)
{
    struct hf_walk walk;
    hf_walk_begin(&walk, object);
    if (hf_walk_enter(&walk, '{'))
        while (hf_walk_more(&walk)) {
            struct hf_span key = hf_walk_key(&walk);
            struct hf_span value = hf_walk_value(&walk);
            if (hf_walk_is(key, name))
                return value;
        }
    return (struct hf_span){ 0 };
}

static bool is_output(struct hf_span raw)
{
    struct hf_span type = member(raw, "type");
    struct hf_span strict = member(raw, "strict");
    if (hf_walk_is(type, "json_object"))
        return true;
    return hf_walk_is(type, "json_schema") && first_of(member(raw, "name")) == '"' &&
           first_of(member(raw, "schema")) == '{' && (strict.len == 0 || is_bool(strict));
}

static bool is_choice(struct hf_span raw)
{
    return hf_walk_is(raw, "required") || first_of(member(raw, "name")) == '"';
}

static const struct {
    bool (*fits)(struct hf_span raw);
    const char *wants;
} rules[HF_OPTION_COUNT] = {
    [HF_OPTION_MAX_OUTPUT_TOKENS] = { is_cap, "a whole number above 0" },
    [HF_OPTION_TEMPERATURE] = { is_temperature, "a number, 0 or above" },
    [HF_OPTION_SEED] = { is_integer, "a whole number" },
    [HF_OPTION_STOP] = { is_stops, "an array of 1 to 16 texts" },
    [HF_OPTION_REASONING] = { is_effort, "none, minimal, low, medium or high" },
    [HF_OPTION_OUTPUT] = { is_output, "an object: type json_object, or type json_schema "
                                      "with name and schema" },
    [HF_OPTION_TOOL_CHOICE] = { is_choice, "\"required\", or an object with a name" },
    [HF_OPTION_PARALLEL_TOOLS] = { is_bool, "true or false" },
    [HF_OPTION_STREAM] = { is_bool, "true or false" },
    [HF_OPTION_IMAGES] = { is_bool, "true or false" },
};

static int take_option(struct hf_span key, struct hf_span value,
                       struct hf_options *options, struct hf_err *err)
{
    int option = hf_wire_word_of(key, names, HF_OPTION_COUNT);
    if (option < 0)
        return hf_fail(err, HF_EINVAL, "options", "there is no option %.*s",
                       (int)(key.len < 60 ? key.len : 60), (const char *)key.at);
    if (!rules[option].fits(value))
        return hf_fail(err, HF_EINVAL, names[option], "the option %s must be %s",
                       names[option], rules[option].wants);
    options->value[option] = value;
    return 0;
}

int hf_options_read(struct hf_span json, struct hf_options *ret_options,
                    struct hf_err *err)
{
    struct hf_options options = { 0 };
    struct hf_walk walk;
    if (json.len > 0 && !hf_wire_is_object(json))
        return hf_fail(err, HF_EINVAL, "options", "the options must be a JSON object");
    hf_walk_begin(&walk, json);
    if (hf_walk_enter(&walk, '{'))
        while (hf_walk_more(&walk)) {
            struct hf_span key = hf_walk_key(&walk);
            struct hf_span value = hf_walk_value(&walk);
            int rc = take_option(key, value, &options, err);
            if (rc)
                return rc;
        }
    *ret_options = options;
    return 0;
}

int hf_options_effort(const struct hf_options *options)
{
    return hf_wire_word_of(options->value[HF_OPTION_REASONING], efforts,
                           sizeof(efforts) / sizeof(efforts[0]));
}

bool hf_options_images(const struct hf_options *options)
{
    return first_of(options->value[HF_OPTION_IMAGES]) != 'f';
}

bool hf_options_stream(const struct hf_options *options)
{
    return first_of(options->value[HF_OPTION_STREAM]) != 'f';
}
