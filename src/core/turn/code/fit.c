/* Whether a JSON value fits a schema: the part of JSON Schema that final values of agents
 * are described with. A keyword that is not known is refused when the schema is given, so
 * nothing is ever let through that a schema meant to forbid. How deep it goes is bounded by
 * the depth of JSON input. */
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/json_get.h"
#include "core/turn/code/code.h"

/* clang-format off */
#define KEYWORDS(X) \
    X(TYPE, "type") X(ENUM, "enum") X(CONST, "const") \
    X(ANY_OF, "anyOf") X(ONE_OF, "oneOf") X(ALL_OF, "allOf") \
    X(PROPERTIES, "properties") X(REQUIRED, "required") \
    X(ADDITIONAL, "additionalProperties") X(ITEMS, "items") \
    X(MIN_ITEMS, "minItems") X(MAX_ITEMS, "maxItems") \
    X(MIN_LENGTH, "minLength") X(MAX_LENGTH, "maxLength") \
    X(MINIMUM, "minimum") X(MAXIMUM, "maximum") \
    X(TITLE, "title") X(DESCRIPTION, "description") X(DEFAULT, "default") \
    X(EXAMPLES, "examples") X(COMMENT, "$comment") X(SCHEMA, "$schema") X(ID, "$id")
/* clang-format on */

#define X(name, word) name,
enum keyword { KEYWORDS(X) KEYWORD_COUNT };
#undef X
#define X(name, word) word,
static const char *const keywords[] = { KEYWORDS(X) };
#undef X

static const char *const type_words[] = { "null",   "boolean", "integer", "number",
                                          "string", "array",   "object" };
enum type { NULL_TYPE, BOOLEAN, INTEGER, NUMBER, STRING, ARRAY, OBJECT, TYPE_COUNT };

static size_t word_at(const char *const *words, size_t count, const char *word)
{
    size_t i = 0;
    while (i < count &&
           !hf_turn_span_same(hf_turn_span_of(words[i]), hf_turn_span_of(word)))
        i++;
    return i;
}

/* Checking a schema */

static int check_types(const struct json_t *value, struct hf_err *err)
{
    bool list = hf_json_type_of(value) == HF_JSON_ARRAY;
    size_t count = list ? hf_json_items(value) : 1;
    for (size_t i = 0; i < count; i++) {
        const char *word = hf_json_as_text(list ? hf_json_item(value, i) : value);
        if (!word || word_at(type_words, TYPE_COUNT, word) == TYPE_COUNT)
            return hf_fail(err, HF_EINVAL, "schema", "a type that is none");
    }
    return count > 0 ? 0 : hf_fail(err, HF_EINVAL, "schema", "a type that is none");
}

static int check_list(const struct json_t *value, struct hf_err *err)
{
    if (hf_json_items(value) == 0)
        return hf_fail(err, HF_EINVAL, "schema", "alternatives are a list of schemas");
    for (size_t i = 0; i < hf_json_items(value); i++) {
        int rc = hf_fit_check(hf_json_item(value, i), err);
        if (rc)
            return rc;
    }
    return 0;
}

static int check_properties(const struct json_t *value, struct hf_err *err)
{
    const struct json_t *schema = NULL;
    const char *key = NULL;
    void *at = NULL;
    if (hf_json_type_of(value) != HF_JSON_OBJECT)
        return hf_fail(err, HF_EINVAL, "schema", "properties are an object");
    while (hf_json_next(value, &at, &key, &schema)) {
        int rc = hf_fit_check(schema, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int check_names(const struct json_t *value, struct hf_err *err)
{
    if (hf_json_type_of(value) != HF_JSON_ARRAY)
        return hf_fail(err, HF_EINVAL, "schema", "required is a list of names");
    for (size_t i = 0; i < hf_json_items(value); i++)
        if (!hf_json_as_text(hf_json_item(value, i)))
            return hf_fail(err, HF_EINVAL, "schema", "required is a list of names");
    return 0;
}

static int check_keyword(enum keyword keyword, const struct json_t *value,
                         struct hf_err *err)
{
    enum hf_json_type type = hf_json_type_of(value);
    switch (keyword) {
    case TYPE: return check_types(value, err);
    case ENUM:
        return type == HF_JSON_ARRAY
                   ? 0
                   : hf_fail(err, HF_EINVAL, "schema", "enum is a list of values");
    case ANY_OF:
    case ONE_OF:
    case ALL_OF: return check_list(value, err);
    case PROPERTIES: return check_properties(value, err);
    case REQUIRED: return check_names(value, err);
    case ADDITIONAL:
    case ITEMS: return hf_fit_check(value, err);
    case MIN_ITEMS:
    case MAX_ITEMS:
    case MIN_LENGTH:
    case MAX_LENGTH:
        return type == HF_JSON_INT && hf_json_as_i64(value) >= 0
                   ? 0
                   : hf_fail(err, HF_EINVAL, "schema", "%s is a count",
                             keywords[keyword]);
    case MINIMUM:
    case MAXIMUM:
        return type == HF_JSON_INT || type == HF_JSON_REAL
                   ? 0
                   : hf_fail(err, HF_EINVAL, "schema", "%s is a number",
                             keywords[keyword]);
    case CONST:
    case TITLE:
    case DESCRIPTION:
    case DEFAULT:
    case EXAMPLES:
    case COMMENT:
    case SCHEMA:
    case ID:
    case KEYWORD_COUNT: break;
    }
    return 0;
}

int hf_fit_check(const struct json_t *schema, struct hf_err *err)
{
    const struct json_t *value = NULL;
    const char *key = NULL;
    void *at = NULL;
    if (hf_json_type_of(schema) == HF_JSON_BOOL)
        return 0;
    if (hf_json_type_of(schema) != HF_JSON_OBJECT)
        return hf_fail(err, HF_EINVAL, "schema", "a schema is an object or a boolean");
    while (hf_json_next(schema, &at, &key, &value)) {
        size_t keyword = word_at(keywords, KEYWORD_COUNT, key);
        if (keyword == KEYWORD_COUNT)
            return hf_fail(err, HF_EINVAL, "schema", "the keyword \"%.60s\" is not known",
                           key);
        int rc = check_keyword((enum keyword)keyword, value, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* Fitting a value */

struct place {
    const struct place *outer;
    const char *key; /* NULL: an item */
    size_t item;
};

struct fitting {
    const struct hf_alloc *alloc;
    struct hf_buf *why; /* NULL: no caller asks */
    int rc;             /* HF_ENOMEM */
};

static void put_place(struct hf_buf *out, const struct place *place)
{
    if (!place->outer) {
        hf_buf_text(out, "value");
        return;
    }
    put_place(out, place->outer);
    hf_buf_char(out, place->key ? '.' : '[');
    if (place->key)
        hf_buf_text(out, place->key);
    else
        hf_buf_i64(out, (int64_t)place->item);
    if (!place->key)
        hf_buf_char(out, ']');
}

static bool misfit(const struct fitting *fitting, const struct place *place,
                   const char *says, const char *what)
{
    if (!fitting->why || fitting->why->len > 0)
        return false;
    put_place(fitting->why, place);
    hf_buf_char(fitting->why, ' ');
    hf_buf_text(fitting->why, says);
    hf_buf_text(fitting->why, what);
    return false;
}

static bool misfit_number(const struct fitting *fitting, const struct place *place,
                          const char *says, const struct json_t *number)
{
    bool fits = misfit(fitting, place, says, "");
    if (fitting->why && hf_json_canonical(fitting->why, number))
        return fits; /* the buffer knows */
    return fits;
}

static bool is_type(const struct json_t *value, enum type type)
{
    double real = hf_json_as_real(value);
    switch (hf_json_type_of(value)) {
    case HF_JSON_NULL: return type == NULL_TYPE;
    case HF_JSON_BOOL: return type == BOOLEAN;
    case HF_JSON_INT: return type == INTEGER || type == NUMBER;
    case HF_JSON_REAL:
        return type == NUMBER || (type == INTEGER && real > -9e15 && real < 9e15 &&
                                  (double)(int64_t)real == real);
    case HF_JSON_TEXT: return type == STRING;
    case HF_JSON_ARRAY: return type == ARRAY;
    case HF_JSON_OBJECT: return type == OBJECT;
    }
    return false;
}

static bool fits_type(struct fitting *fitting, const struct place *place,
                      const struct json_t *types, const struct json_t *value)
{
    bool list = hf_json_type_of(types) == HF_JSON_ARRAY;
    size_t count = list ? hf_json_items(types) : 1;
    const char *word = NULL;
    for (size_t i = 0; i < count; i++) {
        word = hf_json_as_text(list ? hf_json_item(types, i) : types);
        if (is_type(value, (enum type)word_at(type_words, TYPE_COUNT, word)))
            return true;
    }
    return misfit(fitting, place, "must be of type ", word);
}

static bool same_value(struct fitting *fitting, const struct json_t *a,
                       const struct json_t *b)
{
    struct hf_buf a_text;
    struct hf_buf b_text;
    hf_buf_init(&a_text, fitting->alloc, 2 * (size_t)HF_MAX_TURN_TEXT_BYTES);
    hf_buf_init(&b_text, fitting->alloc, 2 * (size_t)HF_MAX_TURN_TEXT_BYTES);
    int rc = hf_json_canonical(&a_text, a);
    if (rc == 0)
        rc = hf_json_canonical(&b_text, b);
    bool same = rc == 0 && a_text.len == b_text.len &&
                memcmp(a_text.at, b_text.at, a_text.len) == 0;
    fitting->rc = rc == HF_ENOMEM ? rc : fitting->rc;
    hf_buf_fini(&a_text);
    hf_buf_fini(&b_text);
    return same;
}

static bool fits_enum(struct fitting *fitting, const struct place *place,
                      const struct json_t *values, const struct json_t *value)
{
    for (size_t i = 0; i < hf_json_items(values); i++)
        if (same_value(fitting, hf_json_item(values, i), value))
            return true;
    return misfit(fitting, place, "must be one of ", "the values of its enum");
}

static bool fits(struct fitting *fitting, const struct place *place,
                 const struct json_t *schema, const struct json_t *value);

static bool fits_alternatives(struct fitting *fitting, const struct place *place,
                              const struct json_t *list, const struct json_t *value,
                              enum keyword keyword)
{
    size_t count = 0;
    for (size_t i = 0; i < hf_json_items(list); i++) {
        struct fitting trial = { .alloc = fitting->alloc };
        bool fit = fits(keyword == ALL_OF ? fitting : &trial, place,
                        hf_json_item(list, i), value);
        fitting->rc = trial.rc ? trial.rc : fitting->rc;
        if (keyword == ALL_OF && !fit)
            return false;
        count += fit;
    }
    if (keyword == ALL_OF || count == 1 || (count > 1 && keyword == ANY_OF))
        return true;
    return misfit(fitting, place, count == 0 ? "fits none" : "fits more than one",
                  " of the alternatives");
}

static bool fits_object(struct fitting *fitting, const struct place *place,
                        const struct json_t *schema, const struct json_t *value)
{
    const struct json_t *properties = hf_json_member(schema, keywords[PROPERTIES]);
    const struct json_t *additional = hf_json_member(schema, keywords[ADDITIONAL]);
    const struct json_t *required = hf_json_member(schema, keywords[REQUIRED]);
    const struct json_t *member = NULL;
    const char *key = NULL;
    void *at = NULL;
    if (hf_json_type_of(value) != HF_JSON_OBJECT)
        return true;
    for (size_t i = 0; i < hf_json_items(required); i++) {
        const char *name = hf_json_as_text(hf_json_item(required, i));
        if (!hf_json_member(value, name))
            return misfit(fitting, place, "lacks the member ", name);
    }
    while (hf_json_next(value, &at, &key, &member)) {
        struct place inner = { .outer = place, .key = key };
        const struct json_t *known = hf_json_member(properties, key);
        const struct json_t *rule = known ? known : additional;
        if (rule && !fits(fitting, &inner, rule, member))
            return false;
    }
    return true;
}

static size_t characters(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

static bool fits_sizes(struct fitting *fitting, const struct place *place,
                       const struct json_t *schema, const struct json_t *value)
{
    bool text = hf_json_type_of(value) == HF_JSON_TEXT;
    if (!text && hf_json_type_of(value) != HF_JSON_ARRAY)
        return true;
    const struct json_t *min = hf_json_member(schema,
                                              keywords[text ? MIN_LENGTH : MIN_ITEMS]);
    const struct json_t *max = hf_json_member(schema,
                                              keywords[text ? MAX_LENGTH : MAX_ITEMS]);
    int64_t size = (int64_t)(text ? characters(hf_json_as_text(value))
                                  : hf_json_items(value));
    if (min && size < hf_json_as_i64(min))
        return misfit_number(fitting, place,
                             text ? "must be of a length of at least "
                                  : "must have at least this many items: ",
                             min);
    if (max && size > hf_json_as_i64(max))
        return misfit_number(fitting, place,
                             text ? "must be of a length of at most "
                                  : "must have at most this many items: ",
                             max);
    return true;
}

static bool fits_items(struct fitting *fitting, const struct place *place,
                       const struct json_t *schema, const struct json_t *value)
{
    const struct json_t *rule = hf_json_member(schema, keywords[ITEMS]);
    for (size_t i = 0; rule && i < hf_json_items(value); i++) {
        struct place inner = { .outer = place, .item = i };
        if (!fits(fitting, &inner, rule, hf_json_item(value, i)))
            return false;
    }
    return true;
}

static bool fits_range(struct fitting *fitting, const struct place *place,
                       const struct json_t *schema, const struct json_t *value)
{
    const struct json_t *min = hf_json_member(schema, keywords[MINIMUM]);
    const struct json_t *max = hf_json_member(schema, keywords[MAXIMUM]);
    if (!is_type(value, NUMBER))
        return true;
    if (min && hf_json_as_real(value) < hf_json_as_real(min))
        return misfit_number(fitting, place, "must be at least ", min);
    if (max && hf_json_as_real(value) > hf_json_as_real(max))
        return misfit_number(fitting, place, "must be at most ", max);
    return true;
}

static bool fits(struct fitting *fitting, const struct place *place,
                 const struct json_t *schema, const struct json_t *value)
{
    static const enum keyword lists[] = { ANY_OF, ONE_OF, ALL_OF };
    if (hf_json_type_of(schema) == HF_JSON_BOOL)
        return hf_json_as_bool(schema) || misfit(fitting, place, "is not allowed", "");
    const struct json_t *types = hf_json_member(schema, keywords[TYPE]);
    const struct json_t *values = hf_json_member(schema, keywords[ENUM]);
    const struct json_t *only = hf_json_member(schema, keywords[CONST]);
    if ((types && !fits_type(fitting, place, types, value)) ||
        (values && !fits_enum(fitting, place, values, value)))
        return false;
    if (only && !same_value(fitting, only, value))
        return misfit(fitting, place, "must be ", "the value of its const");
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        const struct json_t *list = hf_json_member(schema, keywords[lists[i]]);
        if (list && !fits_alternatives(fitting, place, list, value, lists[i]))
            return false;
    }
    return fits_object(fitting, place, schema, value) &&
           fits_sizes(fitting, place, schema, value) &&
           fits_items(fitting, place, schema, value) &&
           fits_range(fitting, place, schema, value);
}

int hf_fit(const struct hf_alloc *alloc, const struct json_t *schema,
           struct hf_span value, struct hf_buf *ret_why, struct hf_err *err)
{
    struct json_t *parsed = NULL;
    const struct place top = { 0 };
    struct fitting fitting = { .alloc = alloc, .why = ret_why };
    struct hf_err why = { 0 };
    int rc = hf_json_parse(value, (size_t)HF_MAX_TURN_TEXT_BYTES, "value", &parsed, &why);
    if (rc == HF_EINVAL) { /* it is JSON: a number of it is too large to compare */
        hf_buf_text(ret_why, why.message);
        return hf_buf_state(ret_why) ? hf_fail_plain(err, hf_buf_state(ret_why)) : 0;
    }
    if (rc)
        return hf_fail_as(err, rc, &why);
    bool fit = fits(&fitting, &top, schema, parsed);
    hf_json_free(parsed);
    if (fitting.rc == 0)
        fitting.rc = hf_buf_state(ret_why);
    hf_assert(fitting.rc || fit == (ret_why->len == 0));
    return fitting.rc ? hf_fail_plain(err, fitting.rc) : 0;
}
