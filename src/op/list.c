/* The table as JSON, for documentation, tests and generators: what `holdfast call --list`
 * prints. Local operations and other names of the shell are left out. */
#include <string.h>

#include "base/text.h"
#include "op/op.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyz-"

static const char *const input_types[] = {
    [HF_IN_FLAG] = "flag",       [HF_IN_TEXT] = "text",   [HF_IN_TEXTS] = "texts",
    [HF_IN_PATH] = "path",       [HF_IN_JSON] = "json",   [HF_IN_WORD] = "word",
    [HF_IN_WORDS] = "words",     [HF_IN_INT] = "integer", [HF_IN_MS] = "milliseconds",
    [HF_IN_INSTANT] = "instant",
};

static const char *const field_types[] = {
    [HF_FIELD_TEXT] = "text",    [HF_FIELD_JSON] = "json",
    [HF_FIELD_I64] = "integer",  [HF_FIELD_INT] = "integer",
    [HF_FIELD_BOOL] = "boolean", [HF_FIELD_WORD] = "word",
    [HF_FIELD_TIME] = "instant", [HF_FIELD_BYTES] = "text",
    [HF_FIELD_ROW] = "row",      [HF_FIELD_TIMES] = "instants",
    [HF_FIELD_DIGEST] = "text",
};

static const char *const roles[] = { [OP_LOCAL] = "local",
                                     [OP_READ] = "read",
                                     [OP_WORKER] = "worker",
                                     [OP_OPERATOR] = "operator" };

static const char *const answers[] = {
    [OP_FACTS] = "facts", [OP_ROW] = "row", [OP_LIST] = "list"
};

static const struct {
    unsigned flag;
    const char *word;
} flags[] = {
    { OP_READS, "reads" }, { OP_STORE, "creates_store" },   { OP_DESTROYS, "destroys" },
    { OP_WAITS, "waits" }, { OP_REPEATABLE, "repeatable" }, { OP_PAGED, "paged" },
};

static void put_words(struct hf_json *json, const char *const *words)
{
    if (!words)
        return;
    hf_json_key(json, "words");
    hf_json_array(json);
    for (; *words; words++)
        hf_json_str(json, *words);
    hf_json_end(json);
}

static bool is_number(const struct hf_input *input)
{
    return input->kind == HF_IN_INT || input->kind == HF_IN_MS ||
           input->kind == HF_IN_INSTANT;
}

/* Help with the names that a call has: --payload is payload, --token is lease_token. */
static void put_help(struct hf_json *json, const struct op *op, const char *help)
{
    char text[512], option[HF_INPUT_NAME];
    size_t len = 0;
    while (*help) {
        const char *name = NULL;
        size_t word = help[0] == '-' && help[1] == '-' ? 2 + strspn(help + 2, LETTERS)
                                                       : 1;
        for (size_t t = 0; word > 2 && t < 2; t++)
            for (const struct hf_input *in = t ? op->more : op->in; in && in->name; in++)
                if (strlen(hf_input_option(in, option)) == word - 2 &&
                    memcmp(option, help + 2, word - 2) == 0)
                    name = in->name;
        size_t more = name ? strlen(name) : word;
        hf_assert(len + more < sizeof(text));
        memcpy(text + len, name ? name : help, more);
        len += more;
        help += word;
    }
    hf_json_key(json, "help");
    hf_json_strn(json, text, len);
}

static void put_input(struct hf_json *json, const struct op *op,
                      const struct hf_input *input)
{
    char option[HF_INPUT_NAME];
    bool sized = input->kind == HF_IN_TEXT || input->kind == HF_IN_TEXTS ||
                 input->kind == HF_IN_JSON;
    hf_json_object(json);
    hf_json_put_str(json, "name", input->name);
    hf_json_put_str(json, "type", input_types[input->kind]);
    put_help(json, op, input->help);
    hf_json_put_str(json, "option", hf_input_option(input, option));
    hf_json_put_bool(json, "bare", input->flags & HF_IN_BARE);
    hf_json_put_bool(json, "required", input->flags & HF_IN_NEEDED);
    hf_json_put_bool(json, "local", input->flags & HF_IN_LOCAL);
    if (is_number(input)) {
        hf_json_put_i64(json, "min", input->min);
        hf_json_put_i64(json, "max", hf_input_max(input));
    } else if (sized) {
        hf_json_put_i64(json, "max_bytes", hf_input_max(input));
    }
    put_words(json, input->words);
    if (input->flags & HF_IN_PAIRS)
        hf_json_put_bool(json, "pairs", true);
    if (input->flags & HF_IN_FILE)
        hf_json_put_bool(json, "file", true);
    hf_json_end(json);
}

static void put_inputs(struct hf_json *json, const struct op *op)
{
    const struct hf_input *const tables[] = { op->in, op->more };
    hf_json_key(json, "inputs");
    hf_json_array(json);
    for (size_t t = 0; t < 2; t++)
        for (const struct hf_input *input = tables[t]; input && input->name; input++)
            put_input(json, op, input);
    hf_json_end(json);
}

static void put_answer(struct hf_json *json, const struct op *op)
{
    const char *key = op->key ? op->key : op->shape ? op->shape->name : NULL;
    hf_json_key(json, "answer");
    hf_json_object(json);
    hf_json_put_str(json, "kind", answers[op->answer]);
    hf_json_put_str(json, "key", op->answer == OP_ROW ? key : NULL);
    hf_json_put_str(json, "shape", op->shape ? op->shape->name : NULL);
    hf_json_put_str(json, "facts", op->facts ? op->facts->name : NULL);
    hf_json_end(json);
}

/* "POST /v1/work" as two members. */
static void put_route(struct hf_json *json, const char *route)
{
    size_t len = strcspn(route, " ");
    hf_json_key(json, "method");
    hf_json_strn(json, route, len);
    hf_json_put_str(json, "path", route + len + 1);
}

static void put_op(struct hf_json *json, const struct op *op)
{
    hf_json_object(json);
    hf_json_put_str(json, "name", op->name);
    hf_json_put_str(json, "summary", op->summary);
    hf_json_put_str(json, "text", op->text);
    put_inputs(json, op);
    put_answer(json, op);
    hf_json_key(json, "errors");
    hf_json_array(json);
    for (const int *error = op->errors; error && *error; error++)
        hf_json_str(json, hf_err_wire(*error));
    hf_json_end(json);
    hf_json_put_str(json, "role", roles[op->role]);
    put_route(json, op->route);
    hf_json_key(json, "flags");
    hf_json_array(json);
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (op->flags & flags[i].flag)
            hf_json_str(json, flags[i].word);
    hf_json_end(json);
    hf_json_key(json, "examples");
    hf_json_array(json);
    for (const struct op_example *e = op->examples; e && e->what; e++)
        hf_json_str(json, e->command);
    hf_json_end(json);
    hf_json_end(json);
}

/* ---- shapes ------------------------------------------------------------------------ */

#define SHAPES_MAX 128

struct shapes {
    const struct hf_shape *at[SHAPES_MAX];
    size_t count;
};

static void collect(struct shapes *shapes, const struct hf_shape *shape)
{
    for (size_t i = 0; i < shapes->count; i++)
        if (shapes->at[i] == shape)
            return;
    if (!shape)
        return;
    hf_assert(shapes->count < SHAPES_MAX);
    shapes->at[shapes->count++] = shape;
    for (size_t i = 0; i < shape->count; i++)
        collect(shapes, shape->fields[i].of);
}

static void put_shape(struct hf_json *json, const struct hf_shape *shape)
{
    hf_json_object(json);
    hf_json_put_str(json, "name", shape->name);
    hf_json_key(json, "fields");
    hf_json_array(json);
    for (size_t i = 0; i < shape->count; i++) {
        const struct hf_field *field = &shape->fields[i];
        hf_json_object(json);
        hf_json_put_str(json, "name", field->name);
        hf_json_put_str(json, "type", field_types[field->kind]);
        hf_json_put_str(json, "help", field->help);
        hf_json_opt_str(json, "shape", field->of ? field->of->name : NULL);
        put_words(json, field->words);
        hf_json_end(json);
    }
    hf_json_end(json);
    hf_json_end(json);
}

bool op_is_listed(const struct op *op)
{
    return op->role != OP_LOCAL && !(op->flags & OP_ALIAS);
}

void op_put_list(struct hf_json *json)
{
    struct shapes shapes = { .count = 0 };
    hf_json_key(json, "items");
    hf_json_array(json);
    for (const struct op_group *group = op_groups; group->name; group++)
        for (const struct op *op = group->ops; op->name; op++)
            if (op_is_listed(op)) {
                put_op(json, op);
                collect(&shapes, op->shape);
                collect(&shapes, op->facts);
            }
    hf_json_end(json);
    hf_json_key(json, "shapes");
    hf_json_array(json);
    for (size_t i = 0; i < shapes.count; i++)
        put_shape(json, shapes.at[i]);
    hf_json_end(json);
}
