/* Making a code protocol from its options. */
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/json_get.h"
#include "core/turn/code/code.h"

static int bad(struct hf_err *err, const char *field, const char *rule)
{
    return hf_fail(err, HF_EINVAL, field, "%s", rule);
}

static int read_language(const struct json_t *value, struct hf_code_protocol *code,
                         struct hf_err *err)
{
    if (!value)
        return 0;
    const char *word = hf_json_as_text(value);
    for (int i = 0; word && i <= HF_CODE_PERL; i++) {
        enum hf_code_language language = (enum hf_code_language)i;
        if (!hf_turn_span_same(hf_turn_span_of(word),
                               hf_turn_span_of(hf_code_language_name(language))))
            continue;
        code->language = language;
        return 0;
    }
    return bad(err, "language", "language is a word of HF_CODE_LANGUAGES");
}

static int read_finish(const struct json_t *value, struct hf_code_protocol *code,
                       struct hf_err *err)
{
    if (!value)
        return 0;
    struct hf_span word = hf_turn_span_of(hf_json_as_text(value));
    code->finish_required = hf_turn_span_same(word, hf_text_of("required"));
    if (code->finish_required || hf_turn_span_same(word, hf_text_of("optional")))
        return 0;
    return bad(err, "finish", "finish is \"optional\" or \"required\"");
}

/* The schema's own bytes, for the model to read. */
static struct hf_span raw_member(struct hf_span object, const char *name)
{
    struct hf_walk walk;
    struct hf_span found = { 0 };
    hf_walk_begin(&walk, object);
    if (hf_walk_enter(&walk, '{'))
        while (hf_walk_more(&walk)) {
            bool here = hf_walk_is(hf_walk_key(&walk), name);
            struct hf_span value = hf_walk_value(&walk);
            found = here ? value : found;
        }
    return found;
}

static int read_schema(const struct json_t *options, struct hf_code_protocol *code,
                       struct hf_err *err)
{
    const struct json_t *value = hf_json_member(options, "schema");
    if (!value)
        return 0;
    if (!code->finish_required)
        return bad(err, "schema", "a schema needs \"finish\": \"required\"");
    int rc = hf_fit_check(value, err);
    if (rc)
        return rc;
    code->schema_text = raw_member(code->options_text, "schema");
    return hf_json_parse(code->schema_text, (size_t)HF_MAX_TURN_TEXT_BYTES, "schema",
                         &code->schema, err);
}

static int read_options(const struct json_t *options, struct hf_code_protocol *code,
                        struct hf_err *err)
{
    static const char *const known[] = { "language", "finish", "schema" };
    if (hf_json_type_of(options) != HF_JSON_OBJECT)
        return bad(err, "options", "options are a JSON object");
    const char *stranger = hf_json_stranger(options, known, 3);
    if (stranger)
        return hf_fail(err, HF_EINVAL, "options", "there is no option \"%.60s\"",
                       stranger);
    int rc = read_language(hf_json_member(options, "language"), code, err);
    if (rc == 0)
        rc = read_finish(hf_json_member(options, "finish"), code, err);
    return rc ? rc : read_schema(options, code, err);
}

int hf_code_new(const struct hf_alloc *alloc, struct hf_span options,
                struct hf_protocol **ret_protocol, struct hf_err *err)
{
    struct json_t *parsed = NULL;
    int rc = 0;
    if (!alloc)
        alloc = hf_alloc_system();
    struct hf_code_protocol *code = alloc->realloc(alloc->user, NULL,
                                                   sizeof(*code) + options.len + 1);
    if (!code)
        return hf_fail_plain(err, HF_ENOMEM);
    char *text = (char *)(code + 1); /* the options are behind the struct */
    if (options.len > 0)
        memcpy(text, options.at, options.len);
    text[options.len] = '\0';
    *code = (struct hf_code_protocol){ .protocol = { .ops = &hf_code_ops },
                                       .alloc = alloc,
                                       .options_text = { text, options.len } };
    if (options.len > 0)
        rc = hf_json_parse(code->options_text, (size_t)HF_MAX_CODE_OPTIONS_BYTES,
                           "options", &parsed, err);
    if (rc == 0 && parsed)
        rc = read_options(parsed, code, err);
    hf_json_free(parsed);
    if (rc) {
        hf_code_free(&code->protocol);
        return rc;
    }
    *ret_protocol = &code->protocol;
    return 0;
}

void hf_code_free(struct hf_protocol *protocol)
{
    struct hf_code_protocol *code = (struct hf_code_protocol *)protocol;
    if (!code || !code->alloc)
        return;
    hf_json_free(code->schema);
    code->alloc->free(code->alloc->user, code);
}
