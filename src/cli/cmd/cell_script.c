/* A script is a JSON object:
 *
 *     {"tools": {"search": {"result": …}, "fetch": [{"args": {…}, "result": …},
 *                                                   {"error": {"code": …, "message": …}}]},
 *      "reads": {"report": {"result": …}},
 *      "now": 1700000000000, "random": 42, "signals": {"go": …}, "processes": {"job": …}}
 *
 * Of a list of answers the first counts whose "args", if it has any, are those of the call, or
 * the reference that is read.
 */
#include "cli/cmd/cell_script.h"

#include <string.h>

#include <jansson.h>

#include "base/json_get.h"
#include "base/text.h"

struct cell_script {
    json_t *root;
};

static int refuse(struct cli *cli, const char *what)
{
    return hf_fail(&cli->err, HF_EINVAL, "tools", "--tools: %s", what);
}

static bool is_answer(const json_t *answer)
{
    static const char *const keys[] = { "args", "error", "result" };
    const json_t *error = json_object_get(answer, "error");
    bool one = (error != NULL) != (json_object_get(answer, "result") != NULL);
    return json_is_object(answer) && one && !hf_json_stranger(answer, keys, 3) &&
           (!error || json_is_string(json_object_get(error, "code")));
}

static bool are_answers(const json_t *answers)
{
    if (!json_is_array(answers))
        return is_answer(answers);
    for (size_t i = 0; i < json_array_size(answers); i++)
        if (!is_answer(json_array_get(answers, i)))
            return false;
    return true;
}

static int check_group(struct cli *cli, json_t *group)
{
    const char *name = NULL;
    json_t *answers = NULL;
    if (group && !json_is_object(group))
        return refuse(cli, "tools and reads must be objects with one member per name");
    json_object_foreach(group, name, answers)
    {
        if (hf_check_key(name, (size_t)HF_MAX_KEY_BYTES, "tools", &cli->err))
            return HF_EINVAL;
        if (!are_answers(answers))
            return hf_fail(&cli->err, HF_EINVAL, "tools",
                           "--tools: %s needs {\"result\": …} or {\"error\": {\"code\": "
                           "…}}, or a list of these",
                           name);
    }
    return 0;
}

static int check(struct cli *cli, json_t *root)
{
    static const char *const keys[] = { "now",   "processes", "random",
                                        "reads", "signals",   "tools" };
    const char *stranger = hf_json_stranger(root, keys, 6);
    if (!json_is_object(root))
        return refuse(cli, "a script must be a JSON object");
    if (stranger)
        return hf_fail(&cli->err, HF_EINVAL, "tools",
                       "--tools: a script has no member %s", stranger);
    int rc = check_group(cli, json_object_get(root, "tools"));
    return rc ? rc : check_group(cli, json_object_get(root, "reads"));
}

int cell_script_new(struct cli *cli, const char *text, struct cell_script **ret_script)
{
    struct cell_script *script = hf_arena_new(&cli->arena, struct cell_script);
    if (!script)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    int rc = 0;
    if (text)
        rc = hf_json_parse((struct hf_span){ text, strlen(text) },
                           (size_t)HF_MAX_TURN_TEXT_BYTES, "tools", &script->root,
                           &cli->err);
    if (rc == 0 && text)
        rc = check(cli, script->root);
    if (rc)
        cell_script_free(script);
    else
        *ret_script = script;
    return rc;
}

void cell_script_free(struct cell_script *script)
{
    if (script)
        json_decref(script->root);
}

int cell_script_tools(struct cli *cli, const struct cell_script *script,
                      const char *const **ret_names, size_t *ret_count)
{
    json_t *tools = json_object_get(script->root, "tools");
    size_t count = 0;
    const char *name = NULL;
    json_t *ignored = NULL;
    *ret_names = NULL;
    *ret_count = 0;
    if (!script->root)
        return 0;
    const char **names = hf_arena_array(&cli->arena, json_object_size(tools) + 1,
                                        sizeof(*names));
    if (!names)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    json_object_foreach(tools, name, ignored) names[count++] = name;
    *ret_names = names;
    *ret_count = count;
    return 0;
}

static int write_json(struct cli *cli, const json_t *value, const char **ret_json)
{
    struct hf_buf text;
    hf_buf_init(&text, hf_alloc_system(), (size_t)HF_MAX_TURN_TEXT_BYTES);
    int rc = hf_json_canonical(&text, value);
    const char *json = rc ? NULL : hf_buf_keep(&text, &cli->arena);
    hf_buf_fini(&text);
    if (!json)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    *ret_json = json;
    return 0;
}

/* Whether the answer is for these arguments, which are canonical. */
static int fits(struct cli *cli, const json_t *answer, struct hf_span args,
                bool *ret_fits)
{
    const char *wanted = NULL;
    const json_t *given = json_object_get(answer, "args");
    *ret_fits = true;
    if (!given)
        return 0;
    int rc = write_json(cli, given, &wanted);
    if (rc == 0)
        *ret_fits = strlen(wanted) == args.len && memcmp(wanted, args.at, args.len) == 0;
    return rc;
}

static int find_answer(struct cli *cli, const json_t *group,
                       const struct hf_op_call *call, const json_t **ret_answer)
{
    const json_t *answers = json_object_get(group, call->tool);
    size_t count = json_is_array(answers) ? json_array_size(answers) : answers ? 1 : 0;
    for (size_t i = 0; i < count; i++) {
        const json_t *answer = json_is_array(answers) ? json_array_get(answers, i)
                                                      : answers;
        bool is = false;
        int rc = fits(cli, answer, call->args, &is);
        if (rc)
            return rc;
        if (is) {
            *ret_answer = answer;
            return 0;
        }
    }
    return 0;
}

static int fail_call(struct cli *cli, const char *code, const char *message,
                     struct hf_tool_result *ret_result)
{
    struct hf_failure *failure = hf_arena_new(&cli->arena, struct hf_failure);
    if (!failure)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    failure->class_ = HF_FAILURE_EXECUTION;
    failure->code = code;
    failure->message = (struct hf_span){ message, strlen(message) };
    ret_result->outcome = HF_TOOL_FAILURE;
    ret_result->failure = failure;
    return 0;
}

int cell_script_call(struct cli *cli, const struct cell_script *script,
                     enum hf_op_kind kind, const struct hf_op_call *call,
                     struct hf_tool_result *ret_result)
{
    const char *group = kind == HF_OP_READ ? "reads" : "tools";
    const json_t *answer = NULL;
    const char *json = NULL;
    *ret_result = (struct hf_tool_result){ .call_id = call->id };
    int rc = find_answer(cli, json_object_get(script->root, group), call, &answer);
    if (rc)
        return rc;
    if (!answer)
        return fail_call(cli, "not_scripted",
                         "--tools has no answer for this call; see `man holdfast-cell`",
                         ret_result);
    const json_t *error = json_object_get(answer, "error");
    if (error) {
        const char *said = json_string_value(json_object_get(error, "message"));
        return fail_call(cli, json_string_value(json_object_get(error, "code")),
                         said ? said : "", ret_result);
    }
    rc = write_json(cli, json_object_get(answer, "result"), &json);
    if (rc == 0)
        ret_result->value = (struct hf_span){ json, strlen(json) };
    return rc;
}

static int machine_value(struct cli *cli, enum hf_op_kind kind, json_t **ret_value)
{
    int64_t number = cli_now();
    if (kind == HF_OP_RANDOM &&
        hf_random_system()->fill(hf_random_system()->user, &number, sizeof(number)))
        return hf_fail_plain(&cli->err, HF_EINTERNAL);
    *ret_value = json_integer(number);
    return *ret_value ? 0 : hf_fail_plain(&cli->err, HF_ENOMEM);
}

int cell_script_value(struct cli *cli, const struct cell_script *script,
                      const struct hf_op *op, const char **ret_json)
{
    json_t *value = NULL;
    json_t *made = NULL;
    int rc = 0;
    if (op->kind == HF_OP_NOW || op->kind == HF_OP_RANDOM)
        value = json_object_get(script->root, hf_op_name(op->kind));
    else if (op->kind == HF_OP_WAIT_SIGNAL)
        value = json_object_get(json_object_get(script->root, "signals"), op->name);
    else if (op->kind == HF_OP_START_PROCESS)
        value = json_object_get(json_object_get(script->root, "processes"), op->name);
    if (!value && (op->kind == HF_OP_NOW || op->kind == HF_OP_RANDOM)) {
        rc = machine_value(cli, op->kind, &made);
        value = made;
    }
    if (rc == 0 && value)
        rc = write_json(cli, value, ret_json);
    else if (rc == 0)
        *ret_json = "null";
    json_decref(made);
    return rc;
}
