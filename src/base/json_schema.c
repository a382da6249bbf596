/* Checking a value against a JSON Schema. How schemas are read: json_schema_read.c. */
#include "base/json_schema_in.h"

#include <string.h>

#include "base/text.h"

/* Nested applications of schemas, and applications in all, of one check. A sensible schema
 * needs a few per level and value. */
#define DEPTH_MAX 512
#define STEPS_MAX 200000

/* Where the check is in the value; innermost first. */
struct place {
    const struct place *up;
    const char *key; /* NULL: an item */
    size_t item;
};

struct check {
    const struct hf_json_schema *schema;
    struct hf_err *err;
    int depth;
    int steps;
};

static int apply(struct check *check, const struct json_t *rule,
                 const struct json_t *value, const struct place *at);

static void write_place(struct hf_buf *out, const struct place *at)
{
    if (!at->up)
        return;
    write_place(out, at->up);
    hf_buf_char(out, '/');
    if (at->key)
        hf_json_pointer_part(out, at->key);
    else
        hf_buf_i64(out, (int64_t)at->item);
}

/* The one way to say that a value does not fit. */
static int misfit(struct check *check, const struct place *at, const char *what,
                  const char *detail)
{
    struct hf_buf path;
    if (!check->err)
        return HF_EINVAL;
    hf_buf_init(&path, check->schema->alloc, 4096);
    write_place(&path, at);
    const char *where = path.len > 0 ? hf_buf_str(&path) : "value";
    hf_fail(check->err, HF_EINVAL, "args", "%.120s: %s%.80s", where, what, detail);
    hf_buf_fini(&path);
    return HF_EINVAL;
}

static int misfit_number(struct check *check, const struct place *at, const char *what,
                         double bound)
{
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, check->schema->alloc, 64);
    hf_json_begin(&json, &text);
    hf_json_f64(&json, bound);
    int rc = misfit(check, at, what, hf_buf_str(&text));
    hf_buf_fini(&text);
    return rc;
}

/* The nearest whole number. A double of 2^53 or more is one itself. */
static double nearest(double real)
{
    if (real >= 0x1p53 || real <= -0x1p53)
        return real;
    return (double)(int64_t)(real < 0 ? real - 0.5 : real + 0.5);
}

static bool is_whole(const struct json_t *value)
{
    double real = hf_json_as_real(value);
    return hf_json_type_of(value) == HF_JSON_INT ||
           (hf_json_type_of(value) == HF_JSON_REAL && nearest(real) == real);
}

/* Whether real is a multiple of step, as far as doubles can tell: 0.3 is one of 0.1. */
static bool is_multiple(double real, double step)
{
    double quotient = real / step;
    double away = quotient - nearest(quotient);
    double size = quotient < 0 ? -quotient : quotient;
    return (away < 0 ? -away : away) <= 1e-9 * (size > 1 ? size : 1);
}

static bool is_number(const struct json_t *value)
{
    enum hf_json_type type = hf_json_type_of(value);
    return type == HF_JSON_INT || type == HF_JSON_REAL;
}

static bool is_type(const struct json_t *value, const char *word)
{
    enum hf_json_type type = hf_json_type_of(value);
    if (hf_same(word, "integer"))
        return is_whole(value);
    if (hf_same(word, "number"))
        return is_number(value);
    return (type == HF_JSON_NULL && hf_same(word, "null")) ||
           (type == HF_JSON_BOOL && hf_same(word, "boolean")) ||
           (type == HF_JSON_TEXT && hf_same(word, "string")) ||
           (type == HF_JSON_ARRAY && hf_same(word, "array")) ||
           (type == HF_JSON_OBJECT && hf_same(word, "object"));
}

static int check_type(struct check *check, const struct json_t *rule,
                      const struct json_t *value, const struct place *at)
{
    const struct json_t *type = hf_json_member(rule, "type");
    const char *word = hf_json_as_text(type);
    if (!type)
        return 0;
    if (word)
        return is_type(value, word) ? 0 : misfit(check, at, "must be of type ", word);
    for (size_t i = 0; i < hf_json_items(type); i++)
        if (is_type(value, hf_json_as_text(hf_json_item(type, i))))
            return 0;
    return misfit(check, at, "has none of the types that are allowed", "");
}

/* Same value: by the canonical form, in which 1.0 is 1. */
static int equal(struct check *check, const struct json_t *a, const struct json_t *b,
                 bool *ret_equal)
{
    struct hf_buf one, two;
    hf_buf_init(&one, check->schema->alloc, SIZE_MAX / 2);
    hf_buf_init(&two, check->schema->alloc, SIZE_MAX / 2);
    int rc = hf_json_canonical(&one, a);
    if (rc == 0)
        rc = hf_json_canonical(&two, b);
    *ret_equal = rc == 0 && one.len == two.len && memcmp(one.at, two.at, one.len) == 0;
    hf_buf_fini(&one);
    hf_buf_fini(&two);
    return rc ? hf_fail_plain(check->err, rc) : 0;
}

static int check_enum(struct check *check, const struct json_t *rule,
                      const struct json_t *value, const struct place *at)
{
    const struct json_t *fixed = hf_json_member(rule, "const");
    const struct json_t *list = hf_json_member(rule, "enum");
    bool same = true;
    int rc = fixed ? equal(check, fixed, value, &same) : 0;
    if (rc == 0 && !same)
        return misfit(check, at, "is not the one value that is allowed", "");
    same = list == NULL;
    for (size_t i = 0; rc == 0 && !same && i < hf_json_items(list); i++)
        rc = equal(check, hf_json_item(list, i), value, &same);
    if (rc == 0 && !same)
        return misfit(check, at, "is none of the values that are allowed", "");
    return rc;
}

static int check_number(struct check *check, const struct json_t *rule,
                        const struct json_t *value, const struct place *at)
{
    double real = hf_json_as_real(value);
    const struct json_t *bound = hf_json_member(rule, "minimum");
    if (bound && real < hf_json_as_real(bound))
        return misfit_number(check, at, "must be at least ", hf_json_as_real(bound));
    bound = hf_json_member(rule, "maximum");
    if (bound && real > hf_json_as_real(bound))
        return misfit_number(check, at, "must be at most ", hf_json_as_real(bound));
    bound = hf_json_member(rule, "exclusiveMinimum");
    if (bound && real <= hf_json_as_real(bound))
        return misfit_number(check, at, "must be above ", hf_json_as_real(bound));
    bound = hf_json_member(rule, "exclusiveMaximum");
    if (bound && real >= hf_json_as_real(bound))
        return misfit_number(check, at, "must be below ", hf_json_as_real(bound));
    bound = hf_json_member(rule, "multipleOf");
    if (bound && !is_multiple(real, hf_json_as_real(bound)))
        return misfit_number(check, at, "must be a multiple of ", hf_json_as_real(bound));
    return 0;
}

/* A count within two optional bounds. */
static int check_count(struct check *check, const struct json_t *rule,
                       const struct hf_json_schema_bounds *bounds, size_t count,
                       const struct place *at)
{
    const struct json_t *least = hf_json_member(rule, bounds->least);
    const struct json_t *most = hf_json_member(rule, bounds->most);
    if (least && (double)count < hf_json_as_real(least))
        return misfit_number(check, at, bounds->too_few, hf_json_as_real(least));
    if (most && (double)count > hf_json_as_real(most))
        return misfit_number(check, at, bounds->too_many, hf_json_as_real(most));
    return 0;
}

static int check_text(struct check *check, const struct json_t *rule,
                      const struct json_t *value, const struct place *at)
{
    static const struct hf_json_schema_bounds length = {
        "minLength", "maxLength", "its number of characters must be at least ",
        "its number of characters must be at most "
    };
    const char *text = hf_json_as_text(value);
    size_t left = strlen(text), count = 0;
    for (size_t step = 0; left > 0; left -= step, text += step, count++) {
        step = hf_utf8_next(text, left);
        hf_assert(step > 0); /* the reader took UTF-8 only */
    }
    return check_count(check, rule, &length, count, at);
}

static int check_unique(struct check *check, const struct json_t *value,
                        const struct place *at)
{
    size_t count = hf_json_items(value);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++) {
            bool same = false;
            if (++check->steps > STEPS_MAX)
                return hf_fail(check->err, HF_ETOOBIG, "schema", HF_JSON_SCHEMA_TOO_LONG);
            int rc = equal(check, hf_json_item(value, i), hf_json_item(value, j), &same);
            if (rc == 0 && same)
                rc = misfit(check, at, "has the same item twice", "");
            if (rc)
                return rc;
        }
    return 0;
}

static int check_array(struct check *check, const struct json_t *rule,
                       const struct json_t *value, const struct place *at)
{
    static const struct hf_json_schema_bounds number = {
        "minItems", "maxItems", "its number of items must be at least ",
        "its number of items must be at most "
    };
    const struct json_t *first = hf_json_member(rule, "prefixItems");
    const struct json_t *rest = hf_json_member(rule, "items");
    size_t firsts = hf_json_items(first);
    int rc = check_count(check, rule, &number, hf_json_items(value), at);
    for (size_t i = 0; rc == 0 && i < hf_json_items(value); i++) {
        struct place inner = { at, NULL, i };
        const struct json_t *item = i < firsts ? hf_json_item(first, i) : rest;
        rc = item ? apply(check, item, hf_json_item(value, i), &inner) : 0;
    }
    if (rc == 0 && hf_json_as_bool(hf_json_member(rule, "uniqueItems")))
        rc = check_unique(check, value, at);
    return rc;
}

/* All of these keys must be members. */
static int check_required(struct check *check, const struct json_t *keys,
                          const struct json_t *value, const struct place *at)
{
    for (size_t i = 0; i < hf_json_items(keys); i++) {
        const char *key = hf_json_as_text(hf_json_item(keys, i));
        if (!hf_json_member(value, key))
            return misfit(check, at, "must have the member ", key);
    }
    return 0;
}

static int check_member(struct check *check, const struct json_t *rule, const char *key,
                        const struct json_t *value, const struct place *inner)
{
    const struct json_t *known = hf_json_member(hf_json_member(rule, "properties"), key);
    const struct json_t *others = hf_json_member(rule, "additionalProperties");
    if (known)
        return apply(check, known, value, inner);
    if (!others || hf_json_member(rule, "patternProperties"))
        return 0; /* a pattern may name the member: its keyword has a notice */
    if (hf_json_type_of(others) == HF_JSON_BOOL && !hf_json_as_bool(others))
        return misfit(check, inner, "is a member that is not known", "");
    return apply(check, others, value, inner);
}

static int check_names(struct check *check, const struct json_t *names, const char *key,
                       const struct place *inner)
{
    struct json_t *text = names ? hf_json_of_text(key) : NULL;
    int rc = 0;
    if (names)
        rc = text ? apply(check, names, text, inner)
                  : hf_fail_plain(check->err, HF_ENOMEM);
    hf_json_free(text);
    return rc;
}

static int check_object(struct check *check, const struct json_t *rule,
                        const struct json_t *value, const struct place *at)
{
    static const struct hf_json_schema_bounds number = {
        "minProperties", "maxProperties", "its number of members must be at least ",
        "its number of members must be at most "
    };
    const struct json_t *names = hf_json_member(rule, "propertyNames");
    const struct json_t *linked = hf_json_member(rule, "dependentRequired");
    const struct json_t *member = NULL;
    const char *key = NULL;
    size_t count = 0;
    int rc = check_required(check, hf_json_member(rule, "required"), value, at);
    for (void *step = NULL; rc == 0 && hf_json_next(value, &step, &key, &member);
         count++) {
        struct place inner = { at, key, 0 };
        rc = check_member(check, rule, key, member, &inner);
        if (rc == 0)
            rc = check_names(check, names, key, &inner);
        if (rc == 0)
            rc = check_required(check, hf_json_member(linked, key), value, at);
    }
    return rc ? rc : check_count(check, rule, &number, count, at);
}

/* Whether a value fits, when not fitting is no failure of the whole check. */
static int fits(struct check *check, const struct json_t *rule,
                const struct json_t *value, const struct place *at, bool *ret_fits)
{
    struct hf_err *err = check->err;
    check->err = NULL;
    int rc = apply(check, rule, value, at);
    check->err = err;
    *ret_fits = rc == 0;
    if (rc == 0 || rc == HF_EINVAL)
        return 0;
    if (rc == HF_ETOOBIG)
        return hf_fail(err, rc, "schema", HF_JSON_SCHEMA_TOO_LONG);
    return hf_fail_plain(err, rc);
}

static int count_fits(struct check *check, const struct json_t *list,
                      const struct json_t *value, const struct place *at,
                      size_t *ret_count)
{
    bool one = false;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < hf_json_items(list); i++) {
        rc = fits(check, hf_json_item(list, i), value, at, &one);
        *ret_count += one ? 1 : 0;
    }
    return rc;
}

static int check_choice(struct check *check, const struct json_t *rule,
                        const struct json_t *value, const struct place *at)
{
    const struct json_t *any = hf_json_member(rule, "anyOf");
    const struct json_t *one = hf_json_member(rule, "oneOf");
    const struct json_t *none = hf_json_member(rule, "not");
    size_t count = 0;
    bool bad = false;
    int rc = any ? count_fits(check, any, value, at, &count) : 0;
    if (rc == 0 && any && count == 0)
        return misfit(check, at, "fits none of the schemas of anyOf", "");
    count = 0;
    if (rc == 0 && one)
        rc = count_fits(check, one, value, at, &count);
    if (rc == 0 && one && count != 1)
        return misfit(check, at, "must fit exactly one of the schemas of oneOf", "");
    if (rc == 0 && none)
        rc = fits(check, none, value, at, &bad);
    return rc == 0 && bad ? misfit(check, at, "fits the schema of not", "") : rc;
}

static int check_all(struct check *check, const struct json_t *rule,
                     const struct json_t *value, const struct place *at)
{
    const struct json_t *all = hf_json_member(rule, "allOf");
    const struct json_t *cond = hf_json_member(rule, "if");
    bool holds = false;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < hf_json_items(all); i++)
        rc = apply(check, hf_json_item(all, i), value, at);
    if (rc || !cond)
        return rc;
    rc = fits(check, cond, value, at, &holds);
    const struct json_t *next = hf_json_member(rule, holds ? "then" : "else");
    return rc == 0 && next ? apply(check, next, value, at) : rc;
}

static int apply_object(struct check *check, const struct json_t *rule,
                        const struct json_t *value, const struct place *at)
{
    enum hf_json_type type = hf_json_type_of(value);
    const struct json_t *target = hf_json_schema_target(check->schema, rule);
    int rc = target ? apply(check, target, value, at) : 0;
    if (rc == 0)
        rc = check_type(check, rule, value, at);
    if (rc == 0)
        rc = check_enum(check, rule, value, at);
    if (rc == 0 && is_number(value))
        rc = check_number(check, rule, value, at);
    if (rc == 0 && type == HF_JSON_TEXT)
        rc = check_text(check, rule, value, at);
    if (rc == 0 && type == HF_JSON_ARRAY)
        rc = check_array(check, rule, value, at);
    if (rc == 0 && type == HF_JSON_OBJECT)
        rc = check_object(check, rule, value, at);
    if (rc == 0)
        rc = check_choice(check, rule, value, at);
    return rc ? rc : check_all(check, rule, value, at);
}

static int apply(struct check *check, const struct json_t *rule,
                 const struct json_t *value, const struct place *at)
{
    if (++check->steps > STEPS_MAX || check->depth >= DEPTH_MAX)
        return hf_fail(check->err, HF_ETOOBIG, "schema", HF_JSON_SCHEMA_TOO_LONG);
    if (hf_json_type_of(rule) == HF_JSON_BOOL)
        return hf_json_as_bool(rule) ? 0 : misfit(check, at, "is not allowed", "");
    check->depth++;
    int rc = apply_object(check, rule, value, at);
    check->depth--;
    return rc;
}

int hf_json_schema_check(const struct hf_json_schema *schema, const struct json_t *value,
                         struct hf_err *err)
{
    struct check check = { schema, err, 0, 0 };
    struct place top = { NULL, NULL, 0 };
    return apply(&check, schema->root, value, &top);
}
