/* Structs to JSON and back, by table. What says nothing is left out; enums are words,
 * hashes are hex, JSON stays as it was written.
 */
#include "core/turn/json.h"

#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/text.h"

void hf_turn_json_put_span(struct hf_turn_json_out *out, const char *key,
                           struct hf_span text)
{
    hf_json_key(&out->json, key);
    hf_json_strn(&out->json, text.at ? text.at : "", text.len);
}

void hf_turn_json_put_json(struct hf_turn_json_out *out, const char *key,
                           struct hf_span json)
{
    char *copy = hf_arena_copy(out->scratch, json.at, json.len);
    if (!copy)
        out->out_of_memory = true;
    hf_json_put_raw(&out->json, key, copy);
}

void hf_turn_json_put_hash(struct hf_turn_json_out *out, const char *key,
                           const uint8_t hash[32])
{
    char hex[65];
    hf_hex(hash, 32, hex);
    hf_json_put_str(&out->json, key, hex);
}

static void put_list(struct hf_turn_json_out *out, const struct hf_member *member,
                     const void *from)
{
    hf_json_key(&out->json, member->name);
    hf_json_array(&out->json);
    for (size_t i = 0; i < hf_member_count(member, from); i++) {
        hf_json_object(&out->json);
        hf_turn_json_members(out, member->of, hf_member_item(member, from, i));
        hf_json_end(&out->json);
    }
    hf_json_end(&out->json);
}

static void put_member(struct hf_turn_json_out *out, const struct hf_member *member,
                       const void *from)
{
    const char *at = (const char *)from + member->offset;
    uint32_t word = 0;
    switch ((enum hf_member_type)member->type) {
    case HF_M_BOOL: hf_json_put_bool(&out->json, member->name, true); break;
    case HF_M_ENUM:
        word = (uint32_t)hf_member_number(member, from);
        hf_json_put_str(&out->json, member->name, hf_turn_word(member->words, word));
        break;
    case HF_M_U32:
    case HF_M_U64:
    case HF_M_I64:
        if (member->type != HF_M_I64 && hf_member_number(member, from) > INT64_MAX)
            out->unfit = member;
        hf_json_put_i64(&out->json, member->name,
                        (int64_t)hf_member_number(member, from));
        break;
    case HF_M_TEXT:
        hf_json_put_str(&out->json, member->name, hf_member_text(member, from));
        break;
    case HF_M_SPAN:
        hf_turn_json_put_span(out, member->name, hf_member_span(member, from));
        break;
    case HF_M_JSON:
        hf_turn_json_put_json(out, member->name, hf_member_span(member, from));
        break;
    case HF_M_HASH: hf_turn_json_put_hash(out, member->name, (const uint8_t *)at); break;
    case HF_M_STRUCT: hf_turn_json_put_struct(out, member->name, member->of, at); break;
    case HF_M_REF:
        hf_turn_json_put_struct(out, member->name, member->of,
                                hf_member_ptr(member, from));
        break;
    case HF_M_LIST:
    case HF_M_REFS: put_list(out, member, from); break;
    }
}

void hf_turn_json_members(struct hf_turn_json_out *out, const struct hf_schema *schema,
                          const void *from)
{
    for (size_t i = 0; i < schema->count; i++) {
        const struct hf_member *member = &schema->members[i];
        bool shown = (member->flags & HF_M_REQUIRED) != 0 && member->type == HF_M_ENUM;
        if (shown || !hf_member_absent(member, from))
            put_member(out, member, from);
    }
}

void hf_turn_json_put_struct(struct hf_turn_json_out *out, const char *key,
                             const struct hf_schema *schema, const void *from)
{
    if (!from)
        return;
    hf_json_key(&out->json, key);
    hf_json_object(&out->json);
    hf_turn_json_members(out, schema, from);
    hf_json_end(&out->json);
}

/* Reading */

static int wrong(struct hf_err *err, const struct hf_member *member)
{
    return hf_fail(err, HF_EINVAL, member->name, "%s is of another type", member->name);
}

static int read_number(const struct hf_member *member, struct hf_span raw, void *to,
                       struct hf_err *err)
{
    int64_t value = 0;
    if (!hf_walk_i64(raw, &value) || (member->type != HF_M_I64 && value < 0) ||
        (member->type == HF_M_U32 && value > UINT32_MAX))
        return wrong(err, member);
    hf_member_set_number(member, to, (uint64_t)value);
    return 0;
}

static int read_word(const struct hf_member *member, struct hf_span raw, void *to,
                     struct hf_err *err)
{
    for (uint32_t i = 0; i < member->words->count; i++) {
        if (!hf_walk_is(raw, member->words->words[i]))
            continue;
        hf_member_set_number(member, to, i);
        return 0;
    }
    return hf_fail(err, HF_EINVAL, member->name, "%s has no such word", member->name);
}

static int read_text(struct hf_arena *arena, const struct hf_member *member,
                     struct hf_span raw, void *to, struct hf_err *err)
{
    struct hf_span text = raw;
    int rc = 0;
    if (member->type == HF_M_JSON)
        text.at = hf_arena_copy(arena, raw.at, raw.len);
    else
        rc = hf_walk_text(arena, raw, &text);
    if (rc == HF_EINVAL)
        return wrong(err, member);
    if (rc || !text.at)
        return hf_fail_plain(err, HF_ENOMEM);
    if (member->type == HF_M_TEXT)
        memcpy((char *)to + member->offset, &text.at, sizeof(text.at));
    else
        memcpy((char *)to + member->offset, &text, sizeof(text));
    return 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int read_hash(const struct hf_member *member, struct hf_span raw, void *to,
                     struct hf_err *err)
{
    const char *at = raw.at;
    uint8_t hash[32];
    if (raw.len != 66)
        return wrong(err, member);
    for (size_t i = 0; i < 32; i++) {
        int high = hex_digit(at[1 + 2 * i]);
        int low = hex_digit(at[2 + 2 * i]);
        if (high < 0 || low < 0)
            return wrong(err, member);
        hash[i] = (uint8_t)(high << 4 | low);
    }
    memcpy((char *)to + member->offset, hash, sizeof(hash));
    return 0;
}

static size_t count_items(struct hf_span raw)
{
    struct hf_walk walk;
    size_t count = 0;
    hf_walk_begin(&walk, raw);
    if (hf_walk_enter(&walk, '['))
        for (; hf_walk_more(&walk); count++)
            (void)hf_walk_value(&walk); /* only counted */
    return count;
}

static int read_list(struct hf_arena *arena, const struct hf_member *member,
                     struct hf_span raw, void *to, struct hf_err *err)
{
    struct hf_walk walk;
    size_t count = count_items(raw);
    hf_walk_begin(&walk, raw);
    if (!hf_walk_enter(&walk, '['))
        return wrong(err, member);
    if (count > member->max)
        return hf_fail(err, HF_ETOOBIG, member->name, "%s has too many items",
                       member->name);
    char *items = hf_arena_array(arena, count, member->of->size);
    if (!items)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; hf_walk_more(&walk); i++) {
        int rc = hf_turn_json_take(arena, member->of, hf_walk_value(&walk),
                                   items + i * member->of->size, err);
        if (rc)
            return rc;
    }
    memcpy((char *)to + member->offset, &items, sizeof(items));
    memcpy((char *)to + member->count_offset, &count, sizeof(count));
    return 0;
}

static int read_ref(struct hf_arena *arena, const struct hf_member *member,
                    struct hf_span raw, void *to, struct hf_err *err)
{
    void *inner = hf_arena_take(arena, member->of->size);
    if (!inner)
        return hf_fail_plain(err, HF_ENOMEM);
    int rc = hf_turn_json_take(arena, member->of, raw, inner, err);
    if (rc == 0)
        memcpy((char *)to + member->offset, &inner, sizeof(inner));
    return rc;
}

static int read_member(struct hf_arena *arena, const struct hf_member *member,
                       struct hf_span raw, void *to, struct hf_err *err)
{
    switch ((enum hf_member_type)member->type) {
    case HF_M_BOOL:
        if (raw.len != 4 && raw.len != 5)
            return wrong(err, member);
        hf_member_set_number(member, to, raw.len == 4);
        return *(const char *)raw.at == (raw.len == 4 ? 't' : 'f') ? 0
                                                                   : wrong(err, member);
    case HF_M_U32:
    case HF_M_U64:
    case HF_M_I64: return read_number(member, raw, to, err);
    case HF_M_ENUM: return read_word(member, raw, to, err);
    case HF_M_TEXT:
    case HF_M_SPAN:
    case HF_M_JSON: return read_text(arena, member, raw, to, err);
    case HF_M_HASH: return read_hash(member, raw, to, err);
    case HF_M_STRUCT:
        return hf_turn_json_take(arena, member->of, raw, (char *)to + member->offset,
                                 err);
    case HF_M_REF: return read_ref(arena, member, raw, to, err);
    case HF_M_LIST: return read_list(arena, member, raw, to, err);
    case HF_M_REFS: break;
    }
    return wrong(err, member);
}

/* Names the member without its quotes. */
static int unknown_member(struct hf_err *err, const struct hf_schema *schema,
                          struct hf_span key)
{
    char name[40];
    size_t len = key.len - 2 < sizeof(name) ? key.len - 2 : sizeof(name) - 1;
    memcpy(name, (const char *)key.at + 1, len);
    name[len] = '\0';
    return hf_fail(err, HF_EINVAL, name, "%s has no member %s", schema->name, name);
}

int hf_turn_json_take(struct hf_arena *arena, const struct hf_schema *schema,
                      struct hf_span text, void *ret_to, struct hf_err *err)
{
    struct hf_walk walk;
    hf_walk_begin(&walk, text);
    if (!hf_walk_enter(&walk, '{'))
        return hf_fail(err, HF_EINVAL, schema->name, "%s is an object", schema->name);
    while (hf_walk_more(&walk)) {
        struct hf_span key = hf_walk_key(&walk);
        struct hf_span raw = hf_walk_value(&walk);
        const struct hf_member *member = NULL;
        for (size_t i = 0; !member && i < schema->count; i++)
            if (hf_walk_is(key, schema->members[i].name))
                member = &schema->members[i];
        if (!member)
            return unknown_member(err, schema, key);
        bool null = raw.len == 4 && *(const char *)raw.at == 'n';
        int rc = null && member->type != HF_M_JSON
                     ? 0 /* as if it were not there; of JSON it is the value null */
                     : read_member(arena, member, raw, ret_to, err);
        if (rc)
            return rc;
    }
    return 0;
}
