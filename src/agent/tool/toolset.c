/* Toolsets: declared tools, checked when they are added. */
#include <holdfast/tool.h>

#include <stdatomic.h>
#include <string.h>

#include <holdfast/bounds.h>

#include "agent/tool/approval.h"
#include "base/err.h"
#include "base/json_get.h"
#include "base/json_schema.h"
#include "base/sized.h"
#include "base/text.h"

#define NAME_BYTES 64
#define TIMEOUT_MS 60000
#define OUTPUT_BYTES 16384

struct tool {
    struct hf_tool tool; /* with the defaults filled in */
    struct hf_json_schema *schema;
    struct approval_rule *rule; /* NULL: no call needs an approval */
    struct tool *next;
};

struct hf_toolset {
    const struct hf_alloc *alloc;
    atomic_int refs;
    struct hf_arena arena; /* the tools and their texts */
    struct tool *first;
    struct tool *last;
    struct hf_buf json; /* without the bracket at the end */
    struct hf_buf whole;
    struct hf_buf notices; /* each ends in a NUL */
};

int hf_toolset_new(const struct hf_alloc *alloc, struct hf_toolset **ret_tools,
                   struct hf_err *err)
{
    if (!alloc)
        alloc = hf_alloc_system();
    struct hf_toolset *tools = alloc->realloc(alloc->user, NULL, sizeof(*tools));
    if (!tools)
        return hf_fail_plain(err, HF_ENOMEM);
    *tools = (struct hf_toolset){ .alloc = alloc };
    atomic_init(&tools->refs, 1);
    hf_arena_init_small(&tools->arena, alloc, 1024, 8192);
    hf_buf_init(&tools->json, alloc, (size_t)HF_MAX_TURN_TEXT_BYTES);
    hf_buf_init(&tools->whole, alloc, (size_t)HF_MAX_TURN_TEXT_BYTES);
    hf_buf_init(&tools->notices, alloc, 64 * 1024);
    hf_buf_text(&tools->whole, "[]");
    if (hf_buf_state(&tools->whole)) {
        hf_toolset_unref(tools);
        return hf_fail_plain(err, HF_ENOMEM);
    }
    *ret_tools = tools;
    return 0;
}

struct hf_toolset *hf_toolset_ref(struct hf_toolset *tools)
{
    if (tools)
        atomic_fetch_add(&tools->refs, 1);
    return tools;
}

void hf_toolset_unref(struct hf_toolset *tools)
{
    if (!tools || atomic_fetch_sub(&tools->refs, 1) > 1)
        return;
    for (struct tool *tool = tools->first; tool; tool = tool->next) {
        hf_json_schema_free(tool->schema);
        approval_rule_free(tool->rule);
    }
    hf_buf_fini(&tools->json);
    hf_buf_fini(&tools->whole);
    hf_buf_fini(&tools->notices);
    hf_arena_fini(&tools->arena);
    tools->alloc->free(tools->alloc->user, tools);
}

static const struct tool *find(const struct hf_toolset *tools, const char *name)
{
    for (const struct tool *tool = tools->first; tool; tool = tool->next)
        if (hf_same(tool->tool.name, name))
            return tool;
    return NULL;
}

const struct hf_tool *hf_toolset_find(const struct hf_toolset *tools, const char *name)
{
    const struct tool *tool = find(tools, name);
    return tool ? &tool->tool : NULL;
}

static bool is_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_-";
    size_t len = name ? strlen(name) : 0;
    return len > 0 && len <= NAME_BYTES && strspn(name, letters) == len;
}

static int check_limits(const struct hf_tool *tool, struct hf_err *err)
{
    if (tool->timeout_ms < 0 || tool->timeout_ms > HF_MAX_DURATION_MAX_MS)
        return hf_fail(err, HF_EINVAL, "timeout_ms", "the time limit is out of range");
    if (tool->output_bytes < 0 || tool->output_bytes > HF_MAX_PAYLOAD_BYTES)
        return hf_fail(err, HF_EINVAL, "output_bytes",
                       "the output limit must be at most %lld",
                       (long long)HF_MAX_PAYLOAD_BYTES);
    return hf_check_text(tool->description, (size_t)HF_MAX_PAYLOAD_BYTES, "description",
                         err);
}

static int check_tool(const struct hf_toolset *tools, const struct hf_tool *tool,
                      struct hf_err *err)
{
    if (!is_name(tool->name))
        return hf_fail(err, HF_EINVAL, "name",
                       "a tool's name has 1 to 64 letters, digits, _ or -");
    if (find(tools, tool->name))
        return hf_fail(err, HF_EINVAL, "name", "there are two tools named %s",
                       tool->name);
    if (tool->recovery <= HF_RECOVERY_NONE || tool->recovery >= HF_RECOVERY_COUNT)
        return hf_fail(err, HF_EINVAL, "recovery",
                       "tool %s must declare its class: safe, keyed, probe or ask",
                       tool->name);
    if (!tool->run)
        return hf_fail(err, HF_EINVAL, "run", "tool %s has no function", tool->name);
    if ((tool->recovery == HF_RECOVERY_PROBE) != (tool->probe != NULL))
        return hf_fail(err, HF_EINVAL, "probe",
                       "tool %s: the class probe, and only it, has a probe function",
                       tool->name);
    if (tool->stop && !tool->asynchronous)
        return hf_fail(err, HF_EINVAL, "stop",
                       "tool %s: only an asynchronous tool has a stop function",
                       tool->name);
    return check_limits(tool, err);
}

/* The text with one more tool, which may fail; the set is changed by keep_tool only. */
static int write_tool(struct hf_toolset *tools, const struct hf_tool *tool,
                      struct hf_buf *out)
{
    struct hf_json json;
    hf_buf_bytes(out, hf_buf_str(&tools->json), tools->json.len);
    hf_buf_char(out, tools->first ? ',' : '[');
    hf_json_begin(&json, out);
    hf_json_object(&json);
    hf_json_put_str(&json, "name", tool->name);
    hf_json_opt_str(&json, "description", tool->description);
    hf_json_key(&json, "parameters");
    if (tool->schema.len > 0)
        hf_json_rawn(&json, tool->schema.at, tool->schema.len);
    else
        hf_json_raw(&json, "{\"type\":\"object\"}");
    hf_json_end(&json);
    return hf_buf_state(out);
}

static int copy_tool(struct hf_toolset *tools, const struct hf_tool *given,
                     struct tool **ret_tool)
{
    struct tool *tool = hf_arena_new(&tools->arena, struct tool);
    if (!tool)
        return HF_ENOMEM;
    struct hf_tool *kept = &tool->tool;
    *kept = *given;
    kept->timeout_ms = given->timeout_ms ? given->timeout_ms : TIMEOUT_MS;
    kept->output_bytes = given->output_bytes ? given->output_bytes : OUTPUT_BYTES;
    kept->name = hf_arena_text(&tools->arena, given->name);
    if (given->description)
        kept->description = hf_arena_text(&tools->arena, given->description);
    if (given->schema.len > 0)
        kept->schema.at = hf_arena_copy(&tools->arena, given->schema.at,
                                        given->schema.len);
    if (!kept->name || (given->description && !kept->description) ||
        (given->schema.len > 0 && !kept->schema.at) ||
        approval_copy(&tools->arena, &kept->approval))
        return HF_ENOMEM;
    *ret_tool = tool;
    return 0;
}

/* Notices are a help: one that finds no room is dropped. */
static void keep_notices(struct hf_toolset *tools, const struct tool *tool)
{
    const char *text = NULL;
    for (size_t i = 0; (text = hf_json_schema_notice(tool->schema, i)); i++) {
        size_t need = strlen(tool->tool.name) + strlen(text) + 3;
        if (tools->notices.max - tools->notices.len < need ||
            !hf_buf_room(&tools->notices, need))
            return;
        hf_buf_text(&tools->notices, tool->tool.name);
        hf_buf_text(&tools->notices, ": ");
        hf_buf_bytes(&tools->notices, text, strlen(text) + 1);
    }
}

static void keep_tool(struct hf_toolset *tools, struct tool *tool, struct hf_buf *json,
                      struct hf_buf *whole)
{
    if (tools->last)
        tools->last->next = tool;
    else
        tools->first = tool;
    tools->last = tool;
    hf_buf_fini(&tools->json);
    hf_buf_fini(&tools->whole);
    tools->json = *json;
    tools->whole = *whole;
    if (tool->schema)
        keep_notices(tools, tool);
}

int hf_toolset_add(struct hf_toolset *tools, const struct hf_tool *tool,
                   struct hf_err *err)
{
    struct hf_json_schema *schema = NULL;
    struct approval_rule *rule = NULL;
    struct tool *made = NULL;
    struct hf_buf json, whole;
    int rc = hf_sized_check(tool->size, sizeof(*tool), sizeof(*tool), err);
    if (rc == 0)
        rc = check_tool(tools, tool, err);
    if (rc == 0 && tool->schema.len > 0)
        rc = hf_json_schema_new(tools->alloc, tool->schema, (size_t)HF_MAX_PAYLOAD_BYTES,
                                &schema, err);
    if (rc == 0)
        rc = approval_rule_new(tools->alloc, tool->approval.rule, &rule, err);
    if (rc) {
        hf_json_schema_free(schema);
        return rc;
    }
    hf_buf_init(&json, tools->alloc, (size_t)HF_MAX_TURN_TEXT_BYTES);
    hf_buf_init(&whole, tools->alloc, (size_t)HF_MAX_TURN_TEXT_BYTES);
    rc = copy_tool(tools, tool, &made);
    if (rc == 0)
        rc = write_tool(tools, tool, &json);
    hf_buf_bytes(&whole, hf_buf_str(&json), json.len);
    hf_buf_char(&whole, ']');
    if (rc == 0)
        rc = hf_buf_state(&whole);
    if (rc) {
        hf_json_schema_free(schema);
        approval_rule_free(rule);
        hf_buf_fini(&json);
        hf_buf_fini(&whole);
        return hf_fail_plain(err, rc);
    }
    made->schema = schema;
    made->rule = rule;
    keep_tool(tools, made, &json, &whole);
    return 0;
}

int hf_toolset_ask(struct hf_toolset *tools, const struct hf_tool_source *source,
                   struct hf_err *err)
{
    return source->list(source->user, tools, err);
}

struct hf_span hf_toolset_json(const struct hf_toolset *tools)
{
    return (struct hf_span){ hf_buf_str(&tools->whole), tools->whole.len };
}

const char *hf_toolset_notice(const struct hf_toolset *tools, size_t i)
{
    const char *at = hf_buf_str(&tools->notices);
    const char *end = at + tools->notices.len;
    for (; at < end && i > 0; i--)
        at += strlen(at) + 1;
    return at < end ? at : NULL;
}

int hf_toolset_check(const struct hf_toolset *tools, const char *name,
                     struct hf_span args, struct hf_err *err)
{
    const struct tool *tool = find(tools, name);
    struct json_t *value = NULL;
    if (!tool)
        return hf_fail(err, HF_ENOTFOUND, "tool", "there is no tool named %.80s", name);
    int rc = hf_json_parse(args, (size_t)HF_MAX_TURN_TEXT_BYTES, "args", &value, err);
    if (rc == 0 && tool->schema)
        rc = hf_json_schema_check(tool->schema, value, err);
    else if (rc == 0 && hf_json_type_of(value) != HF_JSON_OBJECT)
        rc = hf_fail(err, HF_EINVAL, "args", "value: must be of type object");
    hf_json_free(value);
    return rc;
}

int hf_toolset_approval(const struct hf_toolset *tools, const char *name,
                        struct hf_span args, bool *ret_needed, struct hf_err *err)
{
    const struct tool *tool = find(tools, name);
    struct json_t *value = NULL;
    if (!tool)
        return hf_fail(err, HF_ENOTFOUND, "tool", "there is no tool named %.80s", name);
    int rc = hf_json_parse(args, (size_t)HF_MAX_TURN_TEXT_BYTES, "args", &value, err);
    if (rc == 0)
        *ret_needed = approval_needed(tool->rule, value);
    hf_json_free(value);
    return rc;
}
