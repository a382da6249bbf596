/* The surface of the code protocol: the host's prompt, how cells are written, and the tools
 * as calls of the language with what their schemas say. It is made once; turns only name it
 * by its hash.
 */
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/json_get.h"
#include "base/text.h"
#include "core/turn/code/code.h"

#define DEPTH_MAX 4    /* of a type that is written out; deeper is any */
#define NOTE_BYTES 240 /* of a description */
#define CHOICES 8      /* values of an enum that are written out */

static void put_type(struct hf_buf *out, const struct json_t *schema, int depth);

/* The first line, cut to a length: descriptions are there to choose by. */
static void put_note(struct hf_buf *out, const char *text)
{
    size_t len = strcspn(text, "\r\n");
    size_t shown = len <= NOTE_BYTES ? len : hf_utf8_cut(text, NOTE_BYTES);
    hf_buf_bytes(out, text, shown);
    hf_buf_text(out, shown < strlen(text) ? " …" : "");
}

static void put_quoted(struct hf_buf *out, const char *text)
{
    struct hf_json json;
    hf_json_begin(&json, out);
    hf_json_str(&json, text);
}

static bool is_required(const struct json_t *schema, const char *key)
{
    const struct json_t *names = hf_json_member(schema, "required");
    for (size_t i = 0; i < hf_json_items(names); i++)
        if (hf_same(hf_json_as_text(hf_json_item(names, i)), key))
            return true;
    return false;
}

static void put_members(struct hf_buf *out, const struct json_t *schema, int depth)
{
    const struct json_t *properties = hf_json_member(schema, "properties");
    const struct json_t *member = NULL;
    const char *key = NULL;
    const char *gap = " ";
    void *at = NULL;
    hf_buf_char(out, '{');
    while (hf_json_next(properties, &at, &key, &member)) {
        hf_buf_text(out, gap);
        gap = ", ";
        if (hf_text_is_word(key, strlen(key))) {
            hf_buf_text(out, key);
        } else {
            hf_buf_char(out, '[');
            put_quoted(out, key);
            hf_buf_char(out, ']');
        }
        hf_buf_text(out, is_required(schema, key) ? " = " : "? = ");
        put_type(out, member, depth + 1);
    }
    hf_buf_text(out, *gap == ',' ? " }" : "}");
}

static void put_choices(struct hf_buf *out, const struct json_t *values)
{
    size_t count = hf_json_items(values);
    for (size_t i = 0; i < count && i < CHOICES; i++) {
        hf_buf_text(out, i > 0 ? " | " : "");
        if (hf_json_canonical(out, hf_json_item(values, i)))
            return; /* the buffer knows */
    }
    hf_buf_text(out, count > CHOICES ? " | …" : "");
}

static const char *word_of(const struct json_t *schema)
{
    const struct json_t *type = hf_json_member(schema, "type");
    const char *word = hf_json_as_text(
        hf_json_type_of(type) == HF_JSON_ARRAY ? hf_json_item(type, 0) : type);
    return word ? word : "any";
}

static void put_type(struct hf_buf *out, const struct json_t *schema, int depth)
{
    const struct json_t *values = hf_json_member(schema, "enum");
    struct hf_span word = hf_turn_span_of(word_of(schema));
    if (hf_json_items(values) > 0) {
        put_choices(out, values);
    } else if (depth < DEPTH_MAX && hf_json_member(schema, "properties")) {
        put_members(out, schema, depth);
    } else if (depth < DEPTH_MAX && hf_turn_span_same(word, hf_text_of("array"))) {
        hf_buf_char(out, '{');
        put_type(out, hf_json_member(schema, "items"), depth + 1);
        hf_buf_text(out, ", ...}");
    } else if (hf_turn_span_same(word, hf_text_of("object")) ||
               hf_turn_span_same(word, hf_text_of("array"))) {
        hf_buf_text(out, "table");
    } else {
        hf_buf_bytes(out, word.at, word.len);
    }
}

/* What the arguments are for, a line each, where the schema says it. */
static void put_notes(struct hf_buf *out, const struct json_t *schema)
{
    const struct json_t *member = NULL;
    const char *key = NULL;
    void *at = NULL;
    while (hf_json_next(hf_json_member(schema, "properties"), &at, &key, &member)) {
        const char *note = hf_json_as_text(hf_json_member(member, "description"));
        if (!note)
            continue;
        hf_buf_text(out, "\n  ");
        hf_buf_text(out, key);
        hf_buf_text(out, ": ");
        put_note(out, note);
    }
}

static void put_tool(struct hf_buf *out, const struct json_t *tool)
{
    const struct json_t *schema = hf_json_member(tool, "parameters");
    const char *note = hf_json_as_text(hf_json_member(tool, "description"));
    if (!schema)
        schema = hf_json_member(tool, "input_schema");
    hf_buf_text(out, "\n- call(");
    put_quoted(out, hf_json_as_text(hf_json_member(tool, "name")));
    hf_buf_text(out, ", ");
    put_members(out, schema, 0);
    hf_buf_char(out, ')');
    if (note) {
        hf_buf_text(out, ": ");
        put_note(out, note);
    }
    put_notes(out, schema);
}

static void put_section(struct hf_buf *out, const struct hf_code_protocol *code,
                        const struct json_t *tools)
{
    struct hf_code_tags tags;
    hf_code_tags(code->language, &tags);
    const struct hf_fill fills[] = {
        { .id = HF_FILL_LANGUAGE,
          .text = hf_turn_span_of(hf_code_language_name(code->language)) },
        { .id = HF_FILL_OPEN, .text = hf_turn_span_of(tags.open) },
        { .id = HF_FILL_CLOSE, .text = hf_turn_span_of(tags.close) },
        { .id = HF_FILL_CELL_BYTES, .number = (uint64_t)HF_MAX_CELL_BYTES },
        { .id = HF_FILL_SHOWN_BYTES, .number = (uint64_t)HF_MAX_CELL_SHOWN_BYTES },
    };
    const size_t count = sizeof(fills) / sizeof(fills[0]);
    hf_prompt_put(out, HF_PROMPT_CODE_SYSTEM, fills, count);
    if (code->language == HF_CODE_LUA) {
        hf_buf_text(out, "\n\n");
        hf_prompt_put(out, HF_PROMPT_CODE_LUA, fills, count);
    }
    hf_buf_char(out, '\n');
    hf_prompt_put(
        out, hf_json_items(tools) > 0 ? HF_PROMPT_CODE_TOOLS : HF_PROMPT_CODE_NO_TOOLS,
        fills, count);
    for (size_t i = 0; i < hf_json_items(tools); i++)
        put_tool(out, hf_json_item(tools, i));
}

int hf_code_surface(const struct hf_alloc *alloc, const struct hf_protocol *protocol,
                    struct hf_span prompt, struct hf_span tools,
                    struct hf_surface **ret_surface, struct hf_err *err)
{
    const struct hf_code_protocol *code = hf_code_of(protocol);
    struct hf_surface *plain = NULL;
    struct json_t *parsed = NULL;
    struct hf_buf text;
    if (!code)
        return hf_fail(err, HF_EPROTOCOL, "protocol", "it is not a code protocol");
    /* Everything about prompt and tools that can be wrong is found here. */
    int rc = hf_surface_new(alloc, prompt, tools, &plain, err);
    if (rc)
        return rc;
    hf_surface_free(plain);
    if (tools.len > 0)
        rc = hf_json_parse(tools, (size_t)HF_MAX_TURN_TEXT_BYTES, "tools", &parsed, err);
    if (rc)
        return rc;
    hf_buf_init(&text, alloc ? alloc : hf_alloc_system(), (size_t)HF_MAX_TURN_TEXT_BYTES);
    hf_buf_bytes(&text, prompt.at, prompt.len);
    hf_buf_text(&text, prompt.len > 0 ? "\n\n" : "");
    put_section(&text, code, parsed);
    hf_json_free(parsed);
    rc = hf_buf_state(&text);
    if (rc)
        rc = hf_fail_plain(err, rc);
    else
        rc = hf_surface_new(alloc, (struct hf_span){ text.at, text.len }, tools,
                            ret_surface, err);
    hf_buf_fini(&text);
    return rc;
}
