/* Rules of approvals: JSON pointers into the arguments, each with a schema. */
#include "agent/tool/approval.h"

#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/json_get.h"
#include "base/text.h"

struct condition {
    struct condition *next;
    const char *pointer;
    struct hf_json_schema *schema;
};

struct approval_rule {
    struct hf_arena arena;
    struct condition *first; /* NULL: always */
};

/* The part of a pointer at *at, unescaped into `part`, and past it. False: it is too long, or ~ is
 * followed by another letter than 0 or 1. */
static bool take_part(const char **at, char part[256])
{
    size_t len = 0;
    const char *from = *at + 1; /* past the slash */
    for (; *from && *from != '/'; from++) {
        char c = *from;
        if (c == '~') {
            from++;
            if (*from != '0' && *from != '1')
                return false;
            c = *from == '0' ? '~' : '/';
        }
        if (len + 1 == 256)
            return false;
        part[len++] = c;
    }
    part[len] = '\0';
    *at = from;
    return true;
}

static bool is_pointer(const char *pointer)
{
    char part[256];
    while (*pointer == '/')
        if (!take_part(&pointer, part))
            return false;
    return *pointer == '\0';
}

/* The value that the pointer names, or NULL. */
static const struct json_t *find(const struct json_t *value, const char *pointer)
{
    char part[256];
    while (value && *pointer == '/' && take_part(&pointer, part)) {
        int64_t place = 0;
        if (hf_json_type_of(value) != HF_JSON_ARRAY)
            value = hf_json_member(value, part);
        else if (hf_parse_i64(part, 0, INT32_MAX, "place", &place, NULL) == 0)
            value = hf_json_item(value, (size_t)place);
        else
            value = NULL;
    }
    return value;
}

static int add_condition(struct approval_rule *rule, const char *pointer,
                         const struct json_t *schema, struct hf_err *err)
{
    struct condition *made = hf_arena_new(&rule->arena, struct condition);
    struct hf_buf text;
    if (!is_pointer(pointer))
        return hf_fail(err, HF_EINVAL, "approval",
                       "%.80s is no JSON pointer into the arguments (/amount)", pointer);
    hf_buf_init(&text, rule->arena.alloc, (size_t)HF_MAX_PAYLOAD_BYTES);
    int rc = made ? hf_json_canonical(&text, schema) : HF_ENOMEM;
    if (rc == 0) {
        made->pointer = hf_arena_text(&rule->arena, pointer);
        rc = made->pointer
                 ? hf_json_schema_new(rule->arena.alloc,
                                      (struct hf_span){ hf_buf_str(&text), text.len },
                                      (size_t)HF_MAX_PAYLOAD_BYTES, &made->schema, err)
                 : HF_ENOMEM;
    }
    hf_buf_fini(&text);
    if (rc)
        return rc == HF_ENOMEM
                   ? hf_fail_plain(err, rc)
                   : hf_fail(err, HF_EINVAL, "approval",
                             "what %.80s is compared with is no JSON Schema", pointer);
    made->next = rule->first;
    rule->first = made;
    return 0;
}

static int read_rule(struct approval_rule *rule, const char *text, struct hf_err *err)
{
    struct json_t *object = NULL;
    void *at = NULL;
    const char *pointer = NULL;
    const struct json_t *schema = NULL;
    int rc = hf_json_parse((struct hf_span){ text, strlen(text) },
                           (size_t)HF_MAX_PAYLOAD_BYTES, "approval", &object, NULL);
    if (rc == HF_ENOMEM)
        return hf_fail_plain(err, rc);
    if (rc || hf_json_type_of(object) != HF_JSON_OBJECT ||
        !hf_json_next(object, &at, &pointer, &schema))
        rc = hf_fail(err, HF_EINVAL, "approval",
                     "an approval rule is never, always, or {\"/POINTER\": SCHEMA, …}");
    at = NULL;
    while (rc == 0 && hf_json_next(object, &at, &pointer, &schema))
        rc = add_condition(rule, pointer, schema, err);
    hf_json_free(object);
    return rc;
}

int approval_rule_new(const struct hf_alloc *alloc, const char *text,
                      struct approval_rule **ret_rule, struct hf_err *err)
{
    *ret_rule = NULL;
    if (!text || hf_same(text, "never"))
        return 0;
    struct approval_rule *rule = alloc->realloc(alloc->user, NULL, sizeof(*rule));
    if (!rule)
        return hf_fail_plain(err, HF_ENOMEM);
    *rule = (struct approval_rule){ .first = NULL };
    hf_arena_init_small(&rule->arena, alloc, 256, 4096);
    int rc = hf_same(text, "always") ? 0 : read_rule(rule, text, err);
    if (rc) {
        approval_rule_free(rule);
        return rc;
    }
    *ret_rule = rule;
    return 0;
}

void approval_rule_free(struct approval_rule *rule)
{
    if (!rule)
        return;
    const struct hf_alloc *alloc = rule->arena.alloc;
    for (struct condition *at = rule->first; at; at = at->next)
        hf_json_schema_free(at->schema);
    hf_arena_fini(&rule->arena);
    alloc->free(alloc->user, rule);
}

int approval_copy(struct hf_arena *arena, struct hf_approval *approval)
{
    const char **const texts[] = { &approval->rule, &approval->question,
                                   &approval->terms.answerer,
                                   &approval->terms.next_answerer,
                                   &approval->terms.escalate };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (*texts[i] && !(*texts[i] = hf_arena_text(arena, *texts[i])))
            return HF_ENOMEM;
    return 0;
}

bool approval_needed(const struct approval_rule *rule, const struct json_t *args)
{
    if (!rule)
        return false;
    for (const struct condition *at = rule->first; at; at = at->next) {
        const struct json_t *value = find(args, at->pointer);
        if (value && hf_json_schema_check(at->schema, value, NULL) == HF_EINVAL)
            return false;
    }
    return true;
}
