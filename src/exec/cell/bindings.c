/* Bindings between cells: their form, delta, hash. No engine is needed to read them. */
#include "exec/cell/bindings.h"

#include <math.h>
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/json.h"
#include "base/json_get.h"
#include "base/json_walk.h"
#include "base/text.h"

static const struct hf_span no_bindings = { "{}", 2 };

static struct hf_span or_none(struct hf_span bindings)
{
    return bindings.len > 0 ? bindings : no_bindings;
}

bool hf_bindings_is_tag(const char *key, size_t len)
{
    return len == 4 && key[0] == '$' &&
           (memcmp(key, "$hex", 4) == 0 || memcmp(key, "$map", 4) == 0 ||
            memcmp(key, "$num", 4) == 0);
}

/* The canonical number of base, which shows a whole one without a point. */
void hf_bindings_put_real(struct hf_buf *out, double value)
{
    size_t before = out->len;
    struct hf_json json;
    if (value == 0) {
        hf_buf_text(out, signbit(value) ? "-0.0" : "0.0");
        return;
    }
    hf_json_begin(&json, out);
    hf_json_f64(&json, value);
    if (hf_buf_state(out))
        return;
    const char *text = hf_buf_str(out) + before;
    if (!memchr(text, '.', out->len - before) && !memchr(text, 'e', out->len - before))
        hf_buf_text(out, ".0");
}

static bool is_name(struct hf_span raw)
{
    return raw.len - 2 <= (size_t)HF_MAX_KEY_BYTES &&
           hf_text_is_word((const char *)raw.at + 1, raw.len - 2);
}

/* Raw keys are words in quotes: their order is that of their bytes, and a key that another
 * begins with comes before it, since a quote is less than any letter. */
static int compare(struct hf_span a, struct hf_span b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = memcmp(a.at, b.at, common);
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

int hf_bindings_look(struct hf_span bindings, struct hf_err *err)
{
    struct hf_walk walk;
    struct hf_span before = { "", 0 };
    bindings = or_none(bindings);
    int rc = hf_json_check(bindings, (size_t)HF_MAX_CELL_BINDINGS_BYTES, "bindings", err);
    if (rc)
        return rc;
    hf_walk_begin(&walk, bindings);
    if (!hf_walk_enter(&walk, '{'))
        return hf_fail(err, HF_EINVAL, "bindings", "bindings must be a JSON object");
    while (hf_walk_more(&walk)) {
        struct hf_span key = hf_walk_key(&walk);
        if (!is_name(key))
            return hf_fail(err, HF_EINVAL, "bindings",
                           "a name must be a word of at most %lld bytes",
                           (long long)HF_MAX_KEY_BYTES);
        if (compare(before, key) >= 0)
            return hf_fail(err, HF_EINVAL, "bindings", "names must be in order");
        before = key;
        (void)hf_walk_value(&walk); /* checked above */
    }
    return 0;
}

/* A cursor over the members of an object. */
struct members {
    struct hf_walk walk;
    bool more;
    struct hf_span key;
    struct hf_span value;
};

static void next(struct members *at)
{
    at->more = at->more && hf_walk_more(&at->walk);
    if (!at->more)
        return;
    at->key = hf_walk_key(&at->walk);
    at->value = hf_walk_value(&at->walk);
}

static struct members members_of(struct hf_span object)
{
    struct members at = { .more = false };
    hf_walk_begin(&at.walk, object);
    at.more = hf_walk_enter(&at.walk, '{');
    next(&at);
    return at;
}

static bool same(struct hf_span a, struct hf_span b)
{
    return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

static void put_member(struct hf_buf *out, bool *first, const struct members *at)
{
    if (!*first)
        hf_buf_char(out, ',');
    *first = false;
    hf_buf_bytes(out, at->key.at, at->key.len);
    hf_buf_char(out, ':');
    hf_buf_bytes(out, at->value.at, at->value.len);
}

/* <0: only `a` has the next key; >0: only `b`; 0: both. */
static int which(const struct members *a, const struct members *b)
{
    if (!a->more || !b->more)
        return a->more ? -1 : 1;
    return compare(a->key, b->key);
}

static bool put_set(struct hf_span before, struct hf_span after, struct hf_buf *out)
{
    bool first = true;
    struct members old = members_of(before);
    struct members new = members_of(after);
    while (new.more) {
        int side = which(&old, &new);
        if (side > 0 || (side == 0 && !same(old.value, new.value))) {
            if (first)
                hf_buf_text(out, "\"set\":{");
            put_member(out, &first, &new);
        }
        if (side <= 0)
            next(&old);
        if (side >= 0)
            next(&new);
    }
    if (!first)
        hf_buf_char(out, '}');
    return !first;
}

static void put_unset(struct hf_span before, struct hf_span after, struct hf_buf *out,
                      bool comma)
{
    bool first = true;
    struct members old = members_of(before);
    struct members new = members_of(after);
    while (old.more) {
        int side = which(&old, &new);
        if (side < 0) {
            hf_buf_text(out, first && comma ? "," : "");
            hf_buf_text(out, first ? "\"unset\":[" : ",");
            hf_buf_bytes(out, old.key.at, old.key.len);
            first = false;
        }
        if (side <= 0)
            next(&old);
        if (side >= 0)
            next(&new);
    }
    if (!first)
        hf_buf_char(out, ']');
}

int hf_bindings_delta(struct hf_span before, struct hf_span after, struct hf_buf *out)
{
    before = or_none(before);
    after = or_none(after);
    hf_buf_char(out, '{');
    bool set = put_set(before, after, out);
    put_unset(before, after, out, set);
    hf_buf_char(out, '}');
    return hf_buf_state(out);
}

/* The parts of a delta; HF_EINVAL for another type. */
static int delta_parts(struct hf_span delta, struct hf_span *ret_set,
                       struct hf_span *ret_unset, struct hf_err *err)
{
    struct hf_walk walk;
    int rc = hf_json_check(delta, (size_t)HF_MAX_CELL_BINDINGS_BYTES * 2, "delta", err);
    if (rc)
        return rc;
    hf_walk_begin(&walk, delta);
    bool fine = hf_walk_enter(&walk, '{');
    while (fine && hf_walk_more(&walk)) {
        struct hf_span key = hf_walk_key(&walk);
        char kind = hf_walk_next(&walk);
        struct hf_span value = hf_walk_value(&walk);
        if (hf_walk_is(key, "set") && kind == '{')
            *ret_set = value;
        else if (hf_walk_is(key, "unset") && kind == '[')
            *ret_unset = value;
        else
            fine = false;
    }
    if (!fine)
        return hf_fail(err, HF_EINVAL, "delta", "a delta is {\"set\":{…},\"unset\":[…]}");
    return hf_bindings_look(*ret_set, err);
}

/* A cursor over an array of names. */
struct names {
    struct hf_walk walk;
    bool more;
    struct hf_span name;
};

static void next_name(struct names *at)
{
    at->more = at->more && hf_walk_more(&at->walk);
    if (at->more)
        at->name = hf_walk_value(&at->walk);
}

static struct names names_of(struct hf_span array)
{
    struct names at = { .more = false };
    hf_walk_begin(&at.walk, array);
    at.more = hf_walk_enter(&at.walk, '[');
    next_name(&at);
    return at;
}

/* Names to unset are in order, as all names are; one that is not met is a conflict. */
static int merge(struct hf_span bindings, struct hf_span set, struct hf_span unset,
                 struct hf_buf *out)
{
    bool first = true;
    struct members old = members_of(bindings);
    struct members new = members_of(set);
    struct names gone = names_of(unset);
    hf_buf_char(out, '{');
    while (old.more || new.more) {
        int side = which(&old, &new);
        if (side < 0 && gone.more && same(gone.name, old.key))
            next_name(&gone);
        else
            put_member(out, &first, side < 0 ? &old : &new);
        if (side <= 0)
            next(&old);
        if (side >= 0)
            next(&new);
    }
    hf_buf_char(out, '}');
    int rc = hf_buf_state(out);
    return rc || !gone.more ? rc : HF_ECONFLICT;
}

static int give(struct hf_buf *buf, int rc, const struct hf_alloc *alloc,
                struct hf_bytes *ret_bytes, struct hf_err *err)
{
    if (rc) {
        hf_buf_fini(buf);
        return rc == HF_ECONFLICT ? hf_fail(err, rc, "delta",
                                            "the delta unsets a name that is not there")
                                  : hf_fail_plain(err, rc);
    }
    *ret_bytes = (struct hf_bytes){ .alloc = alloc, .at = buf->at, .len = buf->len };
    return 0;
}

int hf_bindings_apply(const struct hf_alloc *alloc, struct hf_span bindings,
                      struct hf_span delta, struct hf_bytes *ret_bindings,
                      struct hf_err *err)
{
    struct hf_buf out;
    struct hf_span set = no_bindings;
    struct hf_span unset = { "[]", 2 };
    alloc = alloc ? alloc : hf_alloc_system();
    bindings = or_none(bindings);
    int rc = hf_bindings_look(bindings, err);
    if (rc == 0)
        rc = delta_parts(delta, &set, &unset, err);
    if (rc)
        return rc;
    hf_buf_init(&out, alloc, (size_t)HF_MAX_CELL_BINDINGS_BYTES);
    rc = merge(bindings, set, unset, &out);
    return give(&out, rc, alloc, ret_bindings, err);
}

int hf_bindings_import(const struct hf_alloc *alloc, struct hf_span json,
                       struct hf_bytes *ret_bindings, struct hf_err *err)
{
    struct hf_buf out;
    alloc = alloc ? alloc : hf_alloc_system();
    hf_buf_init(&out, alloc, (size_t)HF_MAX_CELL_BINDINGS_BYTES);
    int rc = hf_bindings_convert(alloc, or_none(json), false, &out, err);
    if (rc == 0)
        rc = hf_bindings_look((struct hf_span){ hf_buf_str(&out), out.len }, err);
    if (rc) {
        hf_buf_fini(&out);
        return rc;
    }
    return give(&out, 0, alloc, ret_bindings, err);
}

int hf_bindings_check(struct hf_span bindings, struct hf_err *err)
{
    struct hf_buf again;
    bindings = or_none(bindings);
    int rc = hf_bindings_look(bindings, err);
    if (rc)
        return rc;
    hf_buf_init(&again, hf_alloc_system(), (size_t)HF_MAX_CELL_BINDINGS_BYTES);
    rc = hf_bindings_convert(hf_alloc_system(), bindings, true, &again, err);
    if (rc == 0 && !same((struct hf_span){ hf_buf_str(&again), again.len }, bindings))
        rc = hf_fail(err, HF_EINVAL, "bindings",
                     "the bindings are not in canonical form");
    hf_buf_fini(&again);
    return rc;
}

int hf_bindings_hash(struct hf_span bindings, char ret_hash[65], struct hf_err *err)
{
    struct hf_digest digest;
    uint8_t bytes[HF_DIGEST_BYTES];
    bindings = or_none(bindings);
    hf_digest_begin(&digest, "bindings", 1);
    hf_digest_bytes(&digest, bindings.at, bindings.len);
    int rc = hf_digest_end(&digest, bytes);
    if (rc)
        return hf_fail_plain(err, rc);
    hf_hex(bytes, sizeof(bytes), ret_hash);
    return 0;
}
