/* Requests from JSON objects and back. The text was checked before (UTF-8, depth, duplicate
 * keys), so that values can be taken from it byte for byte. */
#include <string.h>

#include "base/err.h"
#include "base/json_walk.h"
#include "base/near.h"
#include "base/text.h"
#include "core/inputs/inputs.h"

#define AS_TEXT "_text"
#define NAME_BYTES 64

/* One member of the object. */
struct given {
    struct hf_input_reading *reading;
    const struct hf_input *input;
    size_t index;     /* of the input in all tables */
    const char *name; /* as it was given */
    bool as_text;     /* NAME_text of a JSON input */
    struct hf_span value;
    void *request;
};

static char first_of(struct hf_span raw)
{
    return raw.len ? *(const char *)raw.at : '\0';
}

static int wrong(const struct given *given, const char *must)
{
    return hf_fail(given->reading->err, HF_EINVAL, given->name, "%s must be %s",
                   given->name, must);
}

static int take_text(const struct given *given, struct hf_span raw, const char **ret_text)
{
    struct hf_span text;
    if (first_of(raw) != '"')
        return wrong(given, "a text");
    int rc = hf_walk_text(given->reading->arena, raw, &text);
    if (rc)
        return hf_fail_plain(given->reading->err, rc);
    *ret_text = text.at;
    return 0;
}

static int read_text(const struct given *given)
{
    const char *text = NULL;
    int rc = take_text(given, given->value, &text);
    if (rc == 0)
        hf_input_store_text(given->input, text, given->request);
    return rc;
}

/* A string of a word, or of a time. */
static int read_parsed(const struct given *given)
{
    const char *text = NULL;
    int64_t number = 0;
    int rc = take_text(given, given->value, &text);
    if (rc == 0)
        rc = hf_input_parse(given->input, given->name, text, &number,
                            given->reading->err);
    if (rc)
        return rc;
    if (given->input->kind == HF_IN_WORD && given->input->width == sizeof(char *))
        hf_input_store_text(given->input, text, given->request);
    else
        hf_input_store_number(given->input, number, given->request);
    return 0;
}

static int read_number(const struct given *given)
{
    int64_t number = 0;
    if (!hf_walk_i64(given->value, &number))
        return wrong(given, "a whole number");
    int rc = hf_input_check_number(given->input, number, given->reading->err);
    if (rc == 0)
        hf_input_store_number(given->input, number, given->request);
    return rc;
}

static int read_flag(const struct given *given)
{
    char first = first_of(given->value);
    if (first != 't' && first != 'f')
        return wrong(given, "true or false");
    hf_input_store_number(given->input, first == 't', given->request);
    return 0;
}

static int read_texts(const struct given *given)
{
    struct hf_walk walk;
    size_t count = 0, room = 0;
    const char **texts = NULL;
    int64_t number = 0;
    int rc = 0;
    hf_walk_begin(&walk, given->value);
    if (!hf_walk_enter(&walk, '['))
        return wrong(given, "an array of texts");
    while (rc == 0 && hf_walk_more(&walk)) {
        if (count == room) { /* doubled: what it was before stays in the arena */
            const char **more = hf_arena_array(given->reading->arena, room ? 2 * room : 8,
                                               sizeof(*more));
            if (!more)
                return hf_fail_plain(given->reading->err, HF_ENOMEM);
            if (count)
                memcpy(more, texts, count * sizeof(*more));
            texts = more;
            room = room ? 2 * room : 8;
        }
        rc = take_text(given, hf_walk_value(&walk), &texts[count]);
        if (rc == 0)
            rc = hf_input_parse(given->input, given->name, texts[count++], &number,
                                given->reading->err);
    }
    if (rc)
        return rc;
    rc = hf_input_store_texts(given->input, texts, count, given->reading->arena,
                              given->request);
    return rc ? hf_fail_plain(given->reading->err, rc) : 0;
}

/* ---- JSON in JSON ------------------------------------------------------------------ */

static int read_json_text(const struct given *given)
{
    const char *text = NULL;
    struct hf_err *err = given->reading->err;
    int rc = take_text(given, given->value, &text);
    if (rc == 0 && hf_input_text(given->input, given->request))
        rc = hf_fail(err, HF_EINVAL, given->name,
                     "%s: %s is given too, which is its other form", given->name,
                     given->input->name);
    if (rc == 0)
        rc = hf_json_check((struct hf_span){ text, strlen(text) },
                           (size_t)hf_input_max(given->input), given->name, err);
    if (rc == 0)
        hf_input_store_text(given->input, text, given->request);
    return rc;
}

static int canonical(const struct given *given, const char **ret_text)
{
    struct hf_buf text;
    hf_buf_init(&text, given->reading->arena->alloc, (size_t)hf_input_max(given->input));
    int rc = hf_json_canonical_text(&text, given->value);
    if (rc) {
        hf_buf_fini(&text);
        return hf_fail(given->reading->err, rc, given->name, "%s: %s", given->name,
                       hf_err_text(rc));
    }
    *ret_text = hf_buf_keep(&text, given->reading->arena);
    return *ret_text ? 0 : hf_fail_plain(given->reading->err, HF_ENOMEM);
}

/* A JSON value. It is stored byte for byte as it was received, since the hash of a request is over
 * these bytes; in canonical form where the reading asks for it. */
static int read_json(const struct given *given)
{
    const struct hf_input_reading *reading = given->reading;
    struct hf_span value = given->value;
    int64_t max = hf_input_max(given->input);
    const char *text = NULL;
    int rc = 0;
    if (given->as_text)
        return read_json_text(given);
    if (hf_input_text(given->input, given->request))
        return hf_fail(reading->err, HF_EINVAL, given->name,
                       "%s: %s" AS_TEXT " is given too, which is its other form",
                       given->name, given->name);
    if (!reading->local && value.len > 1 && memcmp(value.at, "\"@", 2) == 0)
        return hf_fail(reading->err, HF_EINVAL, given->name,
                       "%s must be JSON: only the shell reads @FILE (a text that begins "
                       "with @ is given in %s" AS_TEXT ")",
                       given->name, given->name);
    if (value.len > (size_t)max)
        return hf_fail(reading->err, HF_ETOOBIG, given->name,
                       "%s must be at most %lld bytes", given->name, (long long)max);
    if (reading->canonical)
        rc = canonical(given, &text);
    else if (!(text = hf_arena_copy(reading->arena, value.at, value.len)))
        rc = hf_fail_plain(reading->err, HF_ENOMEM);
    if (rc == 0)
        hf_input_store_text(given->input, text, given->request);
    return rc;
}

/* ---- an object --------------------------------------------------------------------- */

static int read_value(const struct given *given)
{
    const struct hf_input *input = given->input;
    bool refused = (input->flags & HF_IN_LOCAL && !given->reading->local) ||
                   !input->width;
    if (refused)
        return hf_fail(given->reading->err, HF_EINVAL, given->name,
                       "%s is taken from the command line only", given->name);
    switch (input->kind) {
    case HF_IN_FLAG: return read_flag(given);
    case HF_IN_TEXT:
    case HF_IN_PATH: return read_text(given);
    case HF_IN_TEXTS:
    case HF_IN_WORDS: return read_texts(given);
    case HF_IN_JSON: return read_json(given);
    case HF_IN_WORD: return read_parsed(given);
    case HF_IN_INT:
    case HF_IN_MS: return read_number(given);
    case HF_IN_INSTANT:
        return first_of(given->value) == '"' ? read_parsed(given) : read_number(given);
    }
    return 0;
}

/* Whether the raw key is the name of the input, or NAME_text of a JSON input. */
static bool names(struct hf_span key, const struct hf_input *input, bool *ret_as_text)
{
    size_t len = strlen(input->name);
    const char *at = (const char *)key.at + 1; /* within the quotes */
    size_t left = key.len - 2;
    if (left < len || memcmp(at, input->name, len) != 0)
        return false;
    *ret_as_text = input->kind == HF_IN_JSON && left == len + sizeof(AS_TEXT) - 1 &&
                   memcmp(at + len, AS_TEXT, sizeof(AS_TEXT) - 1) == 0;
    return left == len || *ret_as_text;
}

static bool find(struct given *given, struct hf_span key)
{
    const struct hf_input_part *part = given->reading->parts;
    for (given->index = 0; part->table; part++) {
        given->request = part->request;
        for (given->input = part->table; given->input->name;
             given->input++, given->index++)
            if (names(key, given->input, &given->as_text))
                return true;
    }
    return false;
}

static int unknown(const struct given *given)
{
    struct hf_near near;
    hf_near_begin(&near, given->name);
    for (const struct hf_input_part *part = given->reading->parts; part->table; part++)
        for (const struct hf_input *input = part->table; input->name; input++)
            hf_near_try(&near, input->name);
    const char *no = given->reading->unknown ? given->reading->unknown
                                             : "is no input of this request";
    return hf_fail(given->reading->err, HF_EINVAL, given->name,
                   near.best ? "%.60s %s; did you mean %s?" : "%.60s %s%s", given->name,
                   no, near.best ? near.best : "");
}

static int check_needed(const struct hf_input_reading *reading)
{
    size_t index = 0;
    for (const struct hf_input_part *part = reading->parts; part->table; part++)
        for (const struct hf_input *input = part->table; input->name; input++, index++)
            if (input->flags & HF_IN_NEEDED && !(reading->given >> index & 1))
                return hf_fail(reading->err, HF_EINVAL, input->name, "%s is required",
                               input->name);
    return 0;
}

int hf_inputs_read(struct hf_span object, struct hf_input_reading *reading)
{
    struct hf_walk walk;
    int rc = 0;
    reading->given = 0;
    hf_walk_begin(&walk, object);
    if (!hf_walk_enter(&walk, '{'))
        return hf_fail(reading->err, HF_EINVAL, "in",
                       "the inputs must be one JSON object");
    while (rc == 0 && hf_walk_more(&walk)) {
        struct given given = { .reading = reading };
        struct hf_span key = hf_walk_key(&walk), name;
        given.value = hf_walk_value(&walk);
        bool known = find(&given, key);
        rc = hf_walk_text(reading->arena, key, &name);
        given.name = rc ? "" : name.at;
        if (rc)
            rc = hf_fail_plain(reading->err, rc);
        else if (!known)
            rc = unknown(&given);
        else if (first_of(given.value) != 'n')
            rc = read_value(&given);
        if (rc == 0 && first_of(given.value) != 'n')
            reading->given |= (uint64_t)1 << given.index;
    }
    return rc ? rc : check_needed(reading);
}

/* ---- writing ----------------------------------------------------------------------- */

static void write_text(struct hf_json *json, const struct hf_input *input,
                       const char *text)
{
    char name[NAME_BYTES];
    size_t len = strlen(input->name);
    if (!text)
        return;
    memcpy(name, input->name, len + 1);
    if (input->kind == HF_IN_JSON)
        memcpy(name + len, AS_TEXT, sizeof(AS_TEXT));
    hf_json_put_str(json, name, text);
}

/* A list with the count that is next to it; words of an enum are an array of int. */
static void write_list(struct hf_json *json, const struct hf_input *input,
                       const void *request)
{
    const char *at = (const char *)request + input->offset;
    const void *list = NULL;
    size_t count = 0;
    memcpy(&list, at, sizeof(list));
    memcpy(&count, at + sizeof(list), sizeof(count));
    if (!count)
        return;
    hf_json_key(json, input->name);
    hf_json_array(json);
    for (size_t i = 0; i < count; i++)
        hf_json_str(json, input->kind == HF_IN_WORDS
                              ? input->words[((const int *)list)[i] - input->min]
                              : ((const char *const *)list)[i]);
    hf_json_end(json);
}

void hf_inputs_write(struct hf_json *json, const struct hf_input *table,
                     const void *request, const void *blank)
{
    for (const struct hf_input *input = table; input->name; input++) {
        int64_t number = hf_input_number(input, request);
        bool is_text = input->kind == HF_IN_TEXT || input->kind == HF_IN_JSON ||
                       input->kind == HF_IN_PATH;
        hf_assert(strlen(input->name) < NAME_BYTES - sizeof(AS_TEXT));
        if (number == hf_input_number(input, blank))
            continue;
        if (input->kind == HF_IN_TEXTS || input->kind == HF_IN_WORDS)
            write_list(json, input, request);
        else if (is_text || (input->kind == HF_IN_WORD && input->width == sizeof(char *)))
            write_text(json, input, hf_input_text(input, request));
        else if (input->kind == HF_IN_WORD)
            hf_json_put_str(json, input->name, input->words[number - input->min]);
        else if (input->kind == HF_IN_FLAG)
            hf_json_put_bool(json, input->name, number != 0);
        else
            hf_json_put_i64(json, input->name, number);
    }
}
