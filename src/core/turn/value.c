/* Values of the turn machine: reading a value's members, and copying a whole value with the checks
 * that its source needs (enum hf_value_copy_mode). The members are described by tables (struct
 * hf_schema). A copy needs no stack deeper than the tables are nested, which is fixed.
 */
#include <stddef.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/sized.h"
#include "base/text.h"
#include "core/turn/schema.h"

const char *hf_turn_word(const struct hf_words *words, uint32_t value)
{
    return value < words->count ? words->words[value] : "?";
}

struct hf_span hf_turn_span_of(const char *text)
{
    return (struct hf_span){ text ? text : "", text ? strlen(text) : 0 };
}

bool hf_turn_span_blank(struct hf_span text)
{
    const char *at = text.at;
    for (size_t i = 0; i < text.len; i++)
        if (at[i] != ' ' && at[i] != '\n' && at[i] != '\t' && at[i] != '\r')
            return false;
    return true;
}

bool hf_turn_span_same(struct hf_span a, struct hf_span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

/* Both checks allow fewer levels of nesting than a JSON document may have ("inner"): the value
 * becomes an inner part of a record, and must fit where the record is stored. */
int hf_turn_text_json(struct hf_span text, size_t max, const char *field,
                      struct hf_err *err)
{
    return hf_json_check_inner(text, max, HF_VALUE_LEVELS, field, err);
}

int hf_member_check_json(const struct hf_member *member, struct hf_span text,
                         struct hf_err *err)
{
    bool deep = (member->flags & HF_M_DEEP) != 0;
    return hf_json_check_inner(text, member->max, deep ? HF_DATA_LEVELS : HF_VALUE_LEVELS,
                               member->name, err);
}

struct hf_span hf_member_span(const struct hf_member *member, const void *from)
{
    struct hf_span span;
    memcpy(&span, (const char *)from + member->offset, sizeof(span));
    return span;
}

const char *hf_member_text(const struct hf_member *member, const void *from)
{
    const char *text = NULL;
    memcpy(&text, (const char *)from + member->offset, sizeof(text));
    return text;
}

const void *hf_member_ptr(const struct hf_member *member, const void *from)
{
    const void *at = NULL;
    memcpy(&at, (const char *)from + member->offset, sizeof(at));
    return at;
}

size_t hf_member_count(const struct hf_member *member, const void *from)
{
    size_t count = 0;
    memcpy(&count, (const char *)from + member->count_offset, sizeof(count));
    return count;
}

const void *hf_member_item(const struct hf_member *member, const void *from, size_t i)
{
    const char *items = hf_member_ptr(member, from);
    if (member->type == HF_M_LIST)
        return items + i * member->of->size;
    const void *at = NULL;
    memcpy(&at, items + i * sizeof(at), sizeof(at));
    return at;
}

uint64_t hf_member_number(const struct hf_member *member, const void *from)
{
    const char *at = (const char *)from + member->offset;
    uint64_t wide = 0;
    uint32_t word = 0;
    bool truth = false;
    switch ((enum hf_member_type)member->type) {
    case HF_M_BOOL: memcpy(&truth, at, sizeof(truth)); return truth;
    case HF_M_U32:
    case HF_M_ENUM: memcpy(&word, at, sizeof(word)); return word;
    case HF_M_U64:
    case HF_M_I64: memcpy(&wide, at, sizeof(wide)); return wide;
    case HF_M_TEXT:
    case HF_M_SPAN:
    case HF_M_JSON:
    case HF_M_HASH:
    case HF_M_STRUCT:
    case HF_M_REF:
    case HF_M_LIST:
    case HF_M_REFS: break;
    }
    hf_assert(member->type <= HF_M_ENUM); /* only numbers are asked for */
    return 0;
}

void hf_member_set_number(const struct hf_member *member, void *to, uint64_t value)
{
    char *at = (char *)to + member->offset;
    uint32_t word = (uint32_t)value;
    bool truth = value != 0;
    if (member->type == HF_M_BOOL)
        memcpy(at, &truth, sizeof(truth));
    else if (member->type == HF_M_U32 || member->type == HF_M_ENUM)
        memcpy(at, &word, sizeof(word));
    else
        memcpy(at, &value, sizeof(value));
}

static bool struct_absent(const struct hf_schema *schema, const void *from)
{
    for (size_t i = 0; i < schema->count; i++)
        if (!hf_member_absent(&schema->members[i], from))
            return false;
    return true;
}

bool hf_member_absent(const struct hf_member *member, const void *from)
{
    static const uint8_t none[32] = { 0 };
    const char *at = (const char *)from + member->offset;
    switch ((enum hf_member_type)member->type) {
    case HF_M_BOOL:
    case HF_M_U32:
    case HF_M_ENUM:
    case HF_M_U64:
    case HF_M_I64: return hf_member_number(member, from) == 0;
    case HF_M_TEXT: return hf_member_text(member, from) == NULL;
    case HF_M_SPAN:
    case HF_M_JSON: return hf_member_span(member, from).len == 0;
    case HF_M_HASH: return memcmp(at, none, sizeof(none)) == 0;
    case HF_M_STRUCT: return struct_absent(member->of, at);
    case HF_M_REF: return hf_member_ptr(member, from) == NULL;
    case HF_M_LIST:
    case HF_M_REFS: return hf_member_count(member, from) == 0;
    }
    return true;
}

/* Fails with HF_ETOOBIG: the member's bound, counted in `unit`, is exceeded. */
static int too_big(struct hf_err *err, const struct hf_member *member, const char *unit)
{
    return hf_fail(err, HF_ETOOBIG, member->name, "%s must have at most %u %s",
                   member->name, member->max, unit);
}

static int must_be(struct hf_err *err, const struct hf_member *member, const char *rule)
{
    return hf_fail(err, HF_EINVAL, member->name, "%s must be %s", member->name, rule);
}

/* Copies a text or JSON into the arena, checked or repaired as the mode says. */
static int copy_text(struct hf_arena *arena, const struct hf_member *member,
                     enum hf_value_copy_mode mode, struct hf_span from,
                     struct hf_span *ret_to, struct hf_err *err)
{
    if (mode == HF_COPY_STRICT) {
        if (from.len > member->max)
            return too_big(err, member, "bytes");
        int rc = member->type == HF_M_JSON ? hf_member_check_json(member, from, err)
                 : hf_text_clean(from.at, from.len)
                     ? 0
                     : must_be(err, member, "UTF-8 text without NUL");
        if (rc)
            return rc;
    } else if (mode == HF_COPY_REPAIR &&
               (from.len > member->max || !hf_text_clean(from.at, from.len))) {
        return hf_text_repair(arena, from, member->max, ret_to)
                   ? hf_fail_plain(err, HF_ENOMEM)
                   : 0;
    }
    char *copy = hf_arena_copy(arena, from.at, from.len);
    if (!copy)
        return hf_fail_plain(err, HF_ENOMEM);
    *ret_to = (struct hf_span){ copy, from.len };
    return 0;
}

static int copy_span_member(struct hf_arena *arena, const struct hf_member *member,
                            enum hf_value_copy_mode mode, void *to, struct hf_err *err)
{
    struct hf_span span = hf_member_span(member, to);
    int rc = copy_text(arena, member, mode, span, &span, err);
    if (rc == 0)
        memcpy((char *)to + member->offset, &span, sizeof(span));
    return rc;
}

static int copy_text_member(struct hf_arena *arena, const struct hf_member *member,
                            enum hf_value_copy_mode mode, void *to, struct hf_err *err)
{
    struct hf_span span = hf_turn_span_of(hf_member_text(member, to));
    int rc = copy_text(arena, member, mode, span, &span, err);
    if (rc == 0)
        memcpy((char *)to + member->offset, &span.at, sizeof(span.at));
    return rc;
}

static int copy_list_member(struct hf_arena *arena, const struct hf_member *member,
                            enum hf_value_copy_mode mode, void *to, struct hf_err *err)
{
    size_t count = hf_member_count(member, to);
    const void *from = hf_member_ptr(member, to);
    size_t each = member->of->size;
    char *items = NULL;
    if (count > 0) {
        if (mode == HF_COPY_REPAIR && count > member->max)
            count = member->max;
        if (hf_sized_array(from, count, member->name, err))
            return HF_EINVAL;
        if (mode != HF_COPY_TRUST && count > member->max)
            return too_big(err, member, "entries");
        items = hf_arena_dup(arena, from, count * each); /* bounded by max, or ours */
        if (!items)
            return hf_fail_plain(err, HF_ENOMEM);
    }
    for (size_t i = 0; i < count; i++) {
        int rc = hf_value_copy(arena, member->of, mode, items + i * each,
                               items + i * each, err);
        if (rc)
            return rc;
    }
    memcpy((char *)to + member->offset, &items, sizeof(items));
    memcpy((char *)to + member->count_offset, &count, sizeof(count));
    return 0;
}

/* Copies what one member of *to points to, and sets the member to the copy. *to is the copied
 * struct, whose members still have the pointers of the source. */
static int copy_member(struct hf_arena *arena, const struct hf_member *member,
                       enum hf_value_copy_mode mode, void *to, struct hf_err *err)
{
    const void *from = NULL;
    switch ((enum hf_member_type)member->type) {
    case HF_M_ENUM:
        if (mode != HF_COPY_REPAIR)
            return must_be(err, member, "a value of its enum");
        hf_member_set_number(member, to, 0);
        return 0;
    case HF_M_BOOL:
    case HF_M_U32:
    case HF_M_U64:
    case HF_M_I64:
    case HF_M_HASH: return 0;
    case HF_M_TEXT: return copy_text_member(arena, member, mode, to, err);
    case HF_M_SPAN:
    case HF_M_JSON: return copy_span_member(arena, member, mode, to, err);
    case HF_M_STRUCT:
        from = (char *)to + member->offset; /* in place: the bytes are copied already */
        return hf_value_copy(arena, member->of, mode, from, (char *)to + member->offset,
                             err);
    case HF_M_REF: {
        int rc = hf_value_copy_ref(arena, member->of, mode, hf_member_ptr(member, to),
                                   &from, err);
        if (rc == 0)
            memcpy((char *)to + member->offset, &from, sizeof(from));
        return rc;
    }
    case HF_M_LIST: return copy_list_member(arena, member, mode, to, err);
    case HF_M_REFS: break;
    }
    return hf_fail_plain(err, HF_EINTERNAL);
}

/* Where, from its offset on, a member of each type has a word that is 0 when there is
 * nothing to copy. Most members of most values say nothing, so to see that fast is what
 * copying costs. */
enum { PLAIN = 0xfe, SLOW = 0xff };
static const uint8_t probe[] = {
    [HF_M_BOOL] = PLAIN,
    [HF_M_U32] = PLAIN,
    [HF_M_U64] = PLAIN,
    [HF_M_I64] = PLAIN,
    [HF_M_ENUM] = SLOW,
    [HF_M_TEXT] = 0,
    [HF_M_SPAN] = offsetof(struct hf_span, len),
    [HF_M_JSON] = offsetof(struct hf_span, len),
    [HF_M_HASH] = PLAIN,
    [HF_M_STRUCT] = SLOW,
    [HF_M_REF] = 0,
    [HF_M_LIST] = SLOW,
    [HF_M_REFS] = SLOW,
};

/* A member that says nothing: an empty text is handed out as "". */
static int fill_empty(const struct hf_member *member, enum hf_value_copy_mode mode,
                      char *at, struct hf_err *err)
{
    static const char empty[] = "";
    const char *none = empty;
    if (member->type == HF_M_SPAN || member->type == HF_M_JSON)
        memcpy(at, &none, sizeof(none));
    if ((member->flags & HF_M_REQUIRED) != 0 && member->type == HF_M_TEXT &&
        mode == HF_COPY_STRICT)
        return hf_fail(err, HF_EINVAL, member->name, "%s is missing", member->name);
    return 0;
}

static bool enum_fits(const struct hf_member *member, const char *at)
{
    uint32_t word = 0;
    memcpy(&word, at, sizeof(word));
    return word < member->words->count;
}

int hf_value_copy(struct hf_arena *arena, const struct hf_schema *schema,
                  enum hf_value_copy_mode mode, const void *from, void *ret_to,
                  struct hf_err *err)
{
    if (from != ret_to)
        memcpy(ret_to, from, schema->size);
    if (schema->plain)
        return 0;
    const struct hf_member *end = schema->members + schema->count;
    for (const struct hf_member *member = schema->members; member < end; member++) {
        char *at = (char *)ret_to + member->offset;
        uint8_t where = probe[member->type];
        uint64_t word = 0;
        int rc = 0;
        if (where == PLAIN)
            continue;
        if (where != SLOW)
            memcpy(&word, at + where, sizeof(word));
        if (where != SLOW && word == 0)
            rc = fill_empty(member, mode, at, err);
        else if (member->type != HF_M_ENUM || !enum_fits(member, at))
            rc = copy_member(arena, member, mode, ret_to, err);
        if (rc)
            return rc;
    }
    return 0;
}

int hf_value_copy_ref(struct hf_arena *arena, const struct hf_schema *schema,
                      enum hf_value_copy_mode mode, const void *from, const void **ret_to,
                      struct hf_err *err)
{
    *ret_to = NULL;
    if (!from)
        return 0;
    void *to = hf_arena_dup(arena, from, schema->size);
    if (!to)
        return hf_fail_plain(err, HF_ENOMEM);
    int rc = hf_value_copy(arena, schema, mode, to, to, err);
    if (rc == 0)
        *ret_to = to;
    return rc;
}
