/* Writing and strict reading of the CBOR subset.
 *
 * A struct is a map from member numbers, ascending, to values; members that say nothing
 * (0, false, empty) are left out, and a decoder that finds one refuses the bytes. Depth is
 * that of the tables, and a list is never made longer than the bytes that are left, so
 * decoding is bounded in stack and memory.
 */
#include "core/turn/cbor.h"

#include <string.h>

#include "base/err.h"

enum major { UNSIGNED = 0, NEGATIVE = 1, BYTES = 2, TEXT = 3, ARRAY = 4, MAP = 5 };

#define TRUE_BYTE 0xf5

static void put_head(struct hf_buf *out, enum major major, uint64_t value)
{
    uint8_t head[9];
    size_t bytes = value < 24            ? 0
                   : value <= UINT8_MAX  ? 1
                   : value <= UINT16_MAX ? 2
                   : value <= UINT32_MAX ? 4
                                         : 8;
    unsigned info = bytes == 0   ? (unsigned)value
                    : bytes == 1 ? 24
                    : bytes == 2 ? 25
                    : bytes == 4 ? 26
                                 : 27;
    head[0] = (uint8_t)((unsigned)major << 5 | info);
    for (size_t i = 0; i < bytes; i++)
        head[bytes - i] = (uint8_t)(value >> (8 * i));
    hf_buf_bytes(out, head, bytes + 1);
}

static void put_i64(struct hf_buf *out, int64_t value)
{
    if (value < 0)
        put_head(out, NEGATIVE, ~(uint64_t)value);
    else
        put_head(out, UNSIGNED, (uint64_t)value);
}

static void put_span(struct hf_buf *out, struct hf_span text)
{
    put_head(out, TEXT, text.len);
    hf_buf_bytes(out, text.at, text.len);
}

static void put_list(struct hf_buf *out, const struct hf_member *member, const void *from)
{
    size_t count = hf_member_count(member, from);
    put_head(out, ARRAY, count);
    for (size_t i = 0; i < count; i++)
        hf_cbor_write(out, member->of, hf_member_item(member, from, i));
}

static void put_member(struct hf_buf *out, const struct hf_member *member,
                       const void *from)
{
    const char *at = (const char *)from + member->offset;
    switch ((enum hf_member_type)member->type) {
    case HF_M_BOOL: hf_buf_char(out, (char)TRUE_BYTE); break;
    case HF_M_U32:
    case HF_M_ENUM:
    case HF_M_U64: put_head(out, UNSIGNED, hf_member_number(member, from)); break;
    case HF_M_I64: put_i64(out, (int64_t)hf_member_number(member, from)); break;
    case HF_M_TEXT: put_span(out, hf_turn_span_of(hf_member_text(member, from))); break;
    case HF_M_SPAN:
    case HF_M_JSON: put_span(out, hf_member_span(member, from)); break;
    case HF_M_HASH:
        put_head(out, BYTES, 32);
        hf_buf_bytes(out, at, 32);
        break;
    case HF_M_STRUCT: hf_cbor_write(out, member->of, at); break;
    case HF_M_REF: hf_cbor_write(out, member->of, hf_member_ptr(member, from)); break;
    case HF_M_LIST:
    case HF_M_REFS: put_list(out, member, from); break;
    }
}

void hf_cbor_write(struct hf_buf *out, const struct hf_schema *schema, const void *from)
{
    size_t count = 0;
    for (size_t i = 0; i < schema->count; i++)
        count += !hf_member_absent(&schema->members[i], from);
    put_head(out, MAP, count);
    for (size_t i = 0; i < schema->count; i++) {
        const struct hf_member *member = &schema->members[i];
        if (hf_member_absent(member, from))
            continue;
        put_head(out, UNSIGNED, member->key);
        put_member(out, member, from);
    }
}

/* Reading */

static bool get_head(struct hf_cbor *cbor, enum major major, uint64_t *ret_value)
{
    static const uint64_t least[] = { 24, UINT8_MAX + UINT64_C(1),
                                      UINT16_MAX + UINT64_C(1),
                                      UINT32_MAX + UINT64_C(1) };
    if (cbor->at == cbor->end || *cbor->at >> 5 != (unsigned)major)
        return false;
    unsigned info = *cbor->at & 31;
    cbor->at++;
    if (info < 24) {
        *ret_value = info;
        return true;
    }
    if (info > 27)
        return false;
    size_t bytes = (size_t)1 << (info - 24);
    if ((size_t)(cbor->end - cbor->at) < bytes)
        return false;
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | cbor->at[i];
    cbor->at += bytes;
    *ret_value = value;
    return value >= least[info - 24]; /* a smaller value has a shorter form */
}

static int corrupt(struct hf_err *err, const char *name)
{
    return hf_fail(err, HF_ECORRUPT, name,
                   "the save has a value of %s that no version of it writes", name);
}

static int get_number(struct hf_cbor *cbor, const struct hf_member *member, void *to,
                      struct hf_err *err)
{
    uint64_t value = 0;
    bool negative = member->type == HF_M_I64 && cbor->at < cbor->end &&
                    *cbor->at >> 5 == NEGATIVE;
    if (!get_head(cbor, negative ? NEGATIVE : UNSIGNED, &value))
        return corrupt(err, member->name);
    if (member->type == HF_M_I64 && value > (uint64_t)INT64_MAX)
        return corrupt(err, member->name);
    if (member->type == HF_M_U32 && value > UINT32_MAX)
        return corrupt(err, member->name);
    if (member->type == HF_M_ENUM && value >= member->words->count)
        return corrupt(err, member->name);
    hf_member_set_number(member, to, negative ? ~value : value);
    return 0;
}

static int get_text(struct hf_cbor *cbor, const struct hf_member *member,
                    struct hf_arena *arena, struct hf_span *ret_text, struct hf_err *err)
{
    uint64_t len = 0;
    if (!get_head(cbor, TEXT, &len) || len > (size_t)(cbor->end - cbor->at) ||
        len > member->max)
        return corrupt(err, member->name);
    struct hf_span text = { cbor->at, (size_t)len };
    cbor->at += len;
    if (member->type == HF_M_JSON ? hf_member_check_json(member, text, NULL) != 0
                                  : !hf_text_clean(text.at, text.len))
        return corrupt(err, member->name);
    char *copy = hf_arena_copy(arena, text.at, text.len);
    if (!copy)
        return hf_fail_plain(err, HF_ENOMEM);
    *ret_text = (struct hf_span){ copy, text.len };
    return 0;
}

static int get_text_member(struct hf_cbor *cbor, const struct hf_member *member,
                           struct hf_arena *arena, void *to, struct hf_err *err)
{
    struct hf_span text = { 0 };
    int rc = get_text(cbor, member, arena, &text, err);
    if (rc)
        return rc;
    if (member->type == HF_M_TEXT)
        memcpy((char *)to + member->offset, &text.at, sizeof(text.at));
    else
        memcpy((char *)to + member->offset, &text, sizeof(text));
    return 0;
}

static int get_hash(struct hf_cbor *cbor, const struct hf_member *member, void *to,
                    struct hf_err *err)
{
    uint64_t len = 0;
    if (!get_head(cbor, BYTES, &len) || len != 32 || cbor->end - cbor->at < 32)
        return corrupt(err, member->name);
    memcpy((char *)to + member->offset, cbor->at, 32);
    cbor->at += 32;
    return 0;
}

static int get_ref(struct hf_cbor *cbor, const struct hf_member *member,
                   struct hf_arena *arena, const void **ret_to, struct hf_err *err)
{
    struct hf_cbor inner = *cbor;
    void *to = hf_arena_take(arena, member->of->size);
    if (!to)
        return hf_fail_plain(err, HF_ENOMEM);
    inner.stay = inner.keep = inner.step = arena;
    int rc = hf_cbor_read(&inner, member->of, to, err);
    cbor->at = inner.at;
    if (rc == 0)
        *ret_to = to;
    return rc;
}

/* Each item takes a byte at least, also those that the lists around this one still owe: a
 * count past what is left for it is a lie. So all lists of a save together never hold more
 * items than it has bytes. */
static int get_list(struct hf_cbor *cbor, const struct hf_member *member,
                    struct hf_arena *arena, void *to, struct hf_err *err)
{
    uint64_t count = 0;
    bool good = get_head(cbor, ARRAY, &count);
    size_t left = (size_t)(cbor->end - cbor->at);
    if (!good || count > left || cbor->owed > left - count || count > member->max)
        return corrupt(err, member->name);
    bool refs = member->type == HF_M_REFS;
    size_t each = refs ? sizeof(void *) : member->of->size;
    char *items = hf_arena_array(arena, (size_t)count, each);
    struct hf_cbor inner = *cbor;
    int rc = items ? 0 : hf_fail_plain(err, HF_ENOMEM);
    inner.stay = inner.keep = inner.step = arena;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        const void *item = NULL;
        inner.owed = cbor->owed + (size_t)count - 1 - i;
        rc = refs ? get_ref(&inner, member, arena, &item, err)
                  : hf_cbor_read(&inner, member->of, items + i * each, err);
        if (rc == 0 && refs)
            memcpy(items + i * each, &item, sizeof(item));
    }
    cbor->at = inner.at;
    if (rc)
        return rc;
    size_t size = (size_t)count;
    memcpy((char *)to + member->offset, &items, sizeof(items));
    memcpy((char *)to + member->count_offset, &size, sizeof(size));
    return 0;
}

static int get_member(struct hf_cbor *cbor, const struct hf_member *member, void *to,
                      struct hf_err *err)
{
    struct hf_arena *arena = (member->flags & HF_M_STAY) != 0   ? cbor->stay
                             : (member->flags & HF_M_KEEP) != 0 ? cbor->keep
                                                                : cbor->step;
    const void *ref = NULL;
    int rc = 0;
    switch ((enum hf_member_type)member->type) {
    case HF_M_BOOL:
        if (cbor->at == cbor->end || *cbor->at++ != TRUE_BYTE)
            return corrupt(err, member->name);
        hf_member_set_number(member, to, 1);
        return 0;
    case HF_M_U32:
    case HF_M_ENUM:
    case HF_M_U64:
    case HF_M_I64: return get_number(cbor, member, to, err);
    case HF_M_TEXT:
    case HF_M_SPAN:
    case HF_M_JSON: return get_text_member(cbor, member, arena, to, err);
    case HF_M_HASH: return get_hash(cbor, member, to, err);
    case HF_M_STRUCT:
        return hf_cbor_read(cbor, member->of, (char *)to + member->offset, err);
    case HF_M_REF:
        rc = get_ref(cbor, member, arena, &ref, err);
        if (rc == 0)
            memcpy((char *)to + member->offset, &ref, sizeof(ref));
        return rc;
    case HF_M_LIST:
    case HF_M_REFS: return get_list(cbor, member, arena, to, err);
    }
    return corrupt(err, member->name);
}

static int check_required(const struct hf_schema *schema, const void *to,
                          struct hf_err *err)
{
    for (size_t i = 0; i < schema->count; i++) {
        const struct hf_member *member = &schema->members[i];
        if ((member->flags & HF_M_REQUIRED) != 0 && member->type == HF_M_TEXT &&
            !hf_member_text(member, to))
            return corrupt(err, member->name);
    }
    return 0;
}

int hf_cbor_read(struct hf_cbor *cbor, const struct hf_schema *schema, void *ret_to,
                 struct hf_err *err)
{
    uint64_t count = 0;
    size_t next = 0;
    if (!get_head(cbor, MAP, &count))
        return corrupt(err, schema->name);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t key = 0;
        if (!get_head(cbor, UNSIGNED, &key))
            return corrupt(err, schema->name);
        while (next < schema->count && schema->members[next].key < key)
            next++;
        if (next == schema->count || schema->members[next].key != key)
            return corrupt(err, schema->name);
        const struct hf_member *member = &schema->members[next++];
        int rc = get_member(cbor, member, ret_to, err);
        if (rc)
            return rc;
        if (hf_member_absent(member, ret_to))
            return corrupt(err, member->name);
    }
    return check_required(schema, ret_to, err);
}
