/* Reading a JSON Schema: known keywords must be well formed, references must lead
 * somewhere, and what is not checked is noted. */
#include "base/json_schema_in.h"

#include <string.h>

#include "base/text.h"

/* References that lead to references, in a row. */
#define CHAIN_MAX 32

enum form {
    ANY,       /* any value, or one that needs no look */
    WORDS,     /* a type's word, or several */
    LIST,      /* an array that is not empty */
    TEXTS,     /* an array of strings */
    TEXTS_MAP, /* an object of arrays of strings */
    COUNT,     /* a whole number of at least 0 */
    NUMBER,
    ABOVE_0,
    FLAG,
    RULE,      /* a schema */
    RULES,     /* an array of schemas, not empty */
    RULES_MAP, /* an object of schemas */
    REF
};

static const struct keyword {
    const char *name;
    enum form form;
} keywords[] = {
    { "$anchor", ANY },
    { "$comment", ANY },
    { "$defs", RULES_MAP },
    { "$id", ANY },
    { "$ref", REF },
    { "$schema", ANY },
    { "additionalProperties", RULE },
    { "allOf", RULES },
    { "anyOf", RULES },
    { "const", ANY },
    { "contentEncoding", ANY },
    { "contentMediaType", ANY },
    { "default", ANY },
    { "definitions", RULES_MAP },
    { "dependentRequired", TEXTS_MAP },
    { "deprecated", ANY },
    { "description", ANY },
    { "else", RULE },
    { "enum", LIST },
    { "examples", ANY },
    { "exclusiveMaximum", NUMBER },
    { "exclusiveMinimum", NUMBER },
    { "format", ANY },
    { "if", RULE },
    { "items", RULE },
    { "maxItems", COUNT },
    { "maxLength", COUNT },
    { "maxProperties", COUNT },
    { "maximum", NUMBER },
    { "minItems", COUNT },
    { "minLength", COUNT },
    { "minProperties", COUNT },
    { "minimum", NUMBER },
    { "multipleOf", ABOVE_0 },
    { "not", RULE },
    { "oneOf", RULES },
    { "prefixItems", RULES },
    { "properties", RULES_MAP },
    { "propertyNames", RULE },
    { "readOnly", ANY },
    { "required", TEXTS },
    { "then", RULE },
    { "title", ANY },
    { "type", WORDS },
    { "uniqueItems", FLAG },
    { "writeOnly", ANY },
};

static const char *const type_words[] = { "array",  "boolean", "integer", "null",
                                          "number", "object",  "string" };

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct read {
    struct hf_json_schema *schema;
    struct hf_buf path; /* JSON pointer of the schema that is read */
    struct hf_err *err;
};

static int read_rule(struct read *read, const struct json_t *rule);

static int fault(struct read *read, const char *keyword, const char *what)
{
    return hf_fail(read->err, HF_EINVAL, "schema", "#%.140s/%.40s %s",
                   hf_buf_str(&read->path), keyword, what);
}

/* One part of a JSON pointer, as the key that it names. False when it does not fit. */
static bool unescape(const char **at, char *out, size_t room)
{
    size_t len = 0;
    for (; **at && **at != '/'; (*at)++) {
        char c = **at;
        if (c == '~') {
            c = (*at)[1] == '0' ? '~' : '/';
            if ((*at)[1] != '0' && (*at)[1] != '1')
                return false;
            (*at)++;
        }
        if (len + 1 >= room)
            return false;
        out[len++] = c;
    }
    out[len] = '\0';
    return true;
}

static const struct json_t *step_into(const struct json_t *value, const char *key)
{
    int64_t item = 0;
    if (hf_json_type_of(value) != HF_JSON_ARRAY)
        return hf_json_member(value, key);
    if (hf_parse_i64(key, 0, INT64_MAX, "item", &item, NULL))
        return NULL;
    return hf_json_item(value, (size_t)item);
}

const struct json_t *hf_json_schema_target(const struct hf_json_schema *schema,
                                           const struct json_t *rule)
{
    const char *ref = hf_json_as_text(hf_json_member(rule, "$ref"));
    const struct json_t *value = schema->root;
    char key[256];
    if (!ref || ref[0] != '#' || (ref[1] && ref[1] != '/'))
        return NULL;
    for (ref++; value && *ref == '/';) {
        ref++;
        value = unescape(&ref, key, sizeof(key)) ? step_into(value, key) : NULL;
    }
    return value;
}

/* Keeps a notice; those past the last place are dropped, as is one without memory. */
static void note(struct read *read, const char *keyword, const char *what)
{
    struct hf_json_schema *schema = read->schema;
    struct hf_buf text;
    if (schema->notice_count == HF_JSON_SCHEMA_NOTICES)
        return;
    hf_buf_init(&text, schema->alloc, 4096);
    hf_buf_char(&text, '#');
    hf_buf_bytes(&text, hf_buf_str(&read->path), read->path.len);
    hf_buf_char(&text, '/');
    hf_json_pointer_part(&text, keyword);
    hf_buf_text(&text, what);
    if (hf_buf_state(&text) == 0)
        schema->notices[schema->notice_count++] = text.at;
    else
        hf_buf_fini(&text);
}

static int read_ref(struct read *read, const struct json_t *rule,
                    const struct json_t *value)
{
    const char *ref = hf_json_as_text(value);
    int chain = 0;
    if (!ref)
        return fault(read, "$ref", "must be a string");
    if (ref[0] != '#') {
        note(read, "$ref", " leads out of the schema and is not followed");
        return 0;
    }
    for (const struct json_t *at = rule; hf_json_member(at, "$ref"); chain++) {
        const char *next = hf_json_as_text(hf_json_member(at, "$ref"));
        if (next && next[0] != '#')
            return 0; /* the one that leads out has the notice */
        at = hf_json_schema_target(read->schema, at);
        if (!at)
            return fault(read, "$ref", "leads nowhere");
        if (hf_json_type_of(at) != HF_JSON_OBJECT && hf_json_type_of(at) != HF_JSON_BOOL)
            return fault(read, "$ref", "does not lead to a schema");
        if (chain == CHAIN_MAX)
            return fault(read, "$ref", "leads back to itself");
    }
    return 0;
}

static bool is_type_word(const struct json_t *value)
{
    const char *word = hf_json_as_text(value);
    for (size_t i = 0; word && i < COUNT_OF(type_words); i++)
        if (hf_same(word, type_words[i]))
            return true;
    return false;
}

static bool are_texts(const struct json_t *value)
{
    if (hf_json_type_of(value) != HF_JSON_ARRAY)
        return false;
    for (size_t i = 0; i < hf_json_items(value); i++)
        if (!hf_json_as_text(hf_json_item(value, i)))
            return false;
    return true;
}

static bool are_text_lists(const struct json_t *value)
{
    const struct json_t *list = NULL;
    const char *key = NULL;
    bool good = hf_json_type_of(value) == HF_JSON_OBJECT;
    for (void *at = NULL; good && hf_json_next(value, &at, &key, &list);)
        good = are_texts(list);
    return good;
}

static bool are_type_words(const struct json_t *value)
{
    if (hf_json_items(value) == 0)
        return is_type_word(value);
    for (size_t i = 0; i < hf_json_items(value); i++)
        if (!is_type_word(hf_json_item(value, i)))
            return false;
    return true;
}

/* What a keyword without a schema in it must be; NULL when it is. */
static const char *wrong_form(enum form form, const struct json_t *value)
{
    enum hf_json_type type = hf_json_type_of(value);
    double real = hf_json_as_real(value);
    bool number = type == HF_JSON_INT || type == HF_JSON_REAL;
    if (form == WORDS && !are_type_words(value))
        return "must be a type's word or an array of them";
    if (form == LIST && hf_json_items(value) == 0)
        return "must be an array that is not empty";
    if (form == TEXTS && !are_texts(value))
        return "must be an array of strings";
    if (form == TEXTS_MAP && !are_text_lists(value))
        return "must be an object of arrays of strings";
    if (form == COUNT && (type != HF_JSON_INT || real < 0))
        return "must be a whole number of at least 0";
    if (form == NUMBER && !number)
        return "must be a number";
    if (form == ABOVE_0 && !(number && real > 0))
        return "must be a number above 0";
    if (form == FLAG && type != HF_JSON_BOOL)
        return "must be true or false";
    return NULL;
}

static int read_inner(struct read *read, const char *key, const struct json_t *rule)
{
    size_t len = read->path.len;
    hf_buf_char(&read->path, '/');
    hf_json_pointer_part(&read->path, key);
    int rc = hf_buf_state(&read->path);
    rc = rc ? hf_fail_plain(read->err, rc) : read_rule(read, rule);
    if (hf_buf_state(&read->path) == 0) {
        read->path.len = len;
        read->path.at[len] = '\0';
    }
    return rc;
}

static int read_rules(struct read *read, const char *name, const struct json_t *rules)
{
    if (hf_json_type_of(rules) != HF_JSON_ARRAY || hf_json_items(rules) == 0)
        return fault(read, name, "must be an array of schemas that is not empty");
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < hf_json_items(rules); i++)
        rc = read_inner(read, name, hf_json_item(rules, i));
    return rc;
}

static int read_rules_map(struct read *read, const char *name, const struct json_t *rules)
{
    const struct json_t *rule = NULL;
    const char *key = NULL;
    int rc = 0;
    if (hf_json_type_of(rules) != HF_JSON_OBJECT)
        return fault(read, name, "must be an object of schemas");
    for (void *at = NULL; rc == 0 && hf_json_next(rules, &at, &key, &rule);)
        rc = read_inner(read, key, rule);
    return rc;
}

static const struct keyword *find_keyword(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(keywords); i++)
        if (hf_same(name, keywords[i].name))
            return &keywords[i];
    return NULL;
}

static int read_keyword(struct read *read, const struct json_t *rule, const char *name,
                        const struct json_t *value)
{
    const struct keyword *keyword = find_keyword(name);
    if (!keyword) {
        note(read, name, " is a keyword that is not checked");
        return 0;
    }
    if (keyword->form == REF)
        return read_ref(read, rule, value);
    if (keyword->form == RULE)
        return read_inner(read, name, value);
    if (keyword->form == RULES)
        return read_rules(read, name, value);
    if (keyword->form == RULES_MAP)
        return read_rules_map(read, name, value);
    const char *wrong = wrong_form(keyword->form, value);
    return wrong ? fault(read, name, wrong) : 0;
}

static int read_rule(struct read *read, const struct json_t *rule)
{
    const struct json_t *value = NULL;
    const char *name = NULL;
    int rc = 0;
    if (hf_json_type_of(rule) == HF_JSON_BOOL)
        return 0;
    if (hf_json_type_of(rule) != HF_JSON_OBJECT)
        return hf_fail(read->err, HF_EINVAL, "schema",
                       "#%.180s must be an object, true or false",
                       hf_buf_str(&read->path));
    for (void *at = NULL; rc == 0 && hf_json_next(rule, &at, &name, &value);)
        rc = read_keyword(read, rule, name, value);
    return rc;
}

int hf_json_schema_new(const struct hf_alloc *alloc, struct hf_span text, size_t max,
                       struct hf_json_schema **ret_schema, struct hf_err *err)
{
    struct hf_json_schema *schema = alloc->realloc(alloc->user, NULL, sizeof(*schema));
    if (!schema)
        return hf_fail_plain(err, HF_ENOMEM);
    *schema = (struct hf_json_schema){ .alloc = alloc };
    struct read read = { .schema = schema, .err = err };
    hf_buf_init(&read.path, alloc, 64 * 1024);
    int rc = hf_json_parse(text, max, "schema", &schema->root, err);
    if (rc == 0)
        rc = read_rule(&read, schema->root);
    hf_buf_fini(&read.path);
    if (rc) {
        hf_json_schema_free(schema);
        return rc;
    }
    *ret_schema = schema;
    return 0;
}

void hf_json_schema_free(struct hf_json_schema *schema)
{
    if (!schema)
        return;
    for (size_t i = 0; i < schema->notice_count; i++)
        schema->alloc->free(schema->alloc->user, schema->notices[i]);
    hf_json_free(schema->root);
    schema->alloc->free(schema->alloc->user, schema);
}

const char *hf_json_schema_notice(const struct hf_json_schema *schema, size_t i)
{
    return i < schema->notice_count ? schema->notices[i] : NULL;
}
