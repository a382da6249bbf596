/* Bindings as they are stored, with the engine that wrote them:
 *
 *   {"engine":"lua","version":"…","bindings":{…}}
 *
 * and how a cell finds those that it starts from.
 */
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/text.h"
#include "core/turn/schema.h"
#include "exec/cell/bindings.h"
#include "exec/cell/cell.h"

/* Room for the names around the bindings. */
#define SEALED_MAX ((size_t)HF_MAX_CELL_BINDINGS_BYTES + 4096)

int hf_bindings_seal(const struct hf_alloc *alloc, const struct hf_engine *engine,
                     struct hf_span bindings, struct hf_bytes *ret_sealed,
                     struct hf_err *err)
{
    struct hf_buf out;
    struct hf_json json;
    struct hf_span object = bindings.len > 0 ? bindings : hf_text_of("{}");
    int rc = hf_bindings_look(object, err);
    if (rc)
        return rc;
    alloc = alloc ? alloc : hf_alloc_system();
    hf_buf_init(&out, alloc, SEALED_MAX);
    hf_json_begin(&json, &out);
    hf_json_object(&json);
    hf_json_put_str(&json, "engine", engine->ops->language);
    hf_json_put_str(&json, "version", engine->ops->version);
    hf_json_key(&json, "bindings");
    hf_buf_bytes(&out, object.at, object.len);
    hf_buf_char(&out, '}');
    rc = hf_buf_state(&out);
    if (rc) {
        hf_buf_fini(&out);
        return hf_fail_plain(err, rc);
    }
    *ret_sealed = (struct hf_bytes){ .alloc = alloc, .at = out.at, .len = out.len };
    return 0;
}

static int no_seal(struct hf_err *err)
{
    return hf_fail(err, HF_EINVAL, "bindings",
                   "stored bindings are {\"engine\":…,\"version\":…,\"bindings\":{…}}");
}

/* Whether a raw string is that text; both are short. */
static bool says(struct hf_span raw, const char *text)
{
    struct hf_arena arena;
    struct hf_span said = { 0 };
    hf_arena_init(&arena, hf_alloc_system());
    bool same = hf_walk_text(&arena, raw, &said) == 0 &&
                hf_turn_span_same(said, hf_turn_span_of(text));
    hf_arena_fini(&arena);
    return same;
}

int hf_bindings_open(const struct hf_engine *engine, struct hf_span sealed,
                     struct hf_span *ret_bindings, struct hf_err *err)
{
    struct hf_walk walk;
    struct hf_span language = { 0 };
    struct hf_span version = { 0 };
    struct hf_span bindings = { 0 };
    int rc = hf_json_check(sealed, SEALED_MAX, "bindings", err);
    if (rc)
        return rc;
    hf_walk_begin(&walk, sealed);
    if (!hf_walk_enter(&walk, '{'))
        return no_seal(err);
    while (hf_walk_more(&walk)) {
        struct hf_span key = hf_walk_key(&walk);
        struct hf_span *to = hf_walk_is(key, "engine")     ? &language
                             : hf_walk_is(key, "version")  ? &version
                             : hf_walk_is(key, "bindings") ? &bindings
                                                           : NULL;
        if (!to)
            return no_seal(err);
        *to = hf_walk_value(&walk);
    }
    if (language.len == 0 || version.len == 0 || bindings.len == 0)
        return no_seal(err);
    if (!says(language, engine->ops->language))
        return hf_fail(err, HF_EBLOB, "engine", "%.*s wrote the bindings, not %s",
                       (int)language.len, (const char *)language.at,
                       engine->ops->language);
    if (!says(version, engine->ops->version))
        return hf_fail(err, HF_EBLOB, "version",
                       "version %.*s wrote the bindings, and this is %s",
                       version.len < 80 ? (int)version.len : 80, (const char *)version.at,
                       engine->ops->version);
    rc = hf_bindings_look(bindings, err);
    if (rc == 0)
        *ret_bindings = bindings;
    return rc;
}

int hf_cell_find_bindings(const struct hf_engine *engine,
                          const struct hf_cell_start *start, struct hf_span *ret_bindings,
                          struct hf_err *err)
{
    struct hf_span sealed = { 0 };
    struct hf_span bindings = { 0 };
    char hash[65];
    if (!start->bindings_hash) {
        *ret_bindings = start->bindings;
        return 0;
    }
    if (start->bindings.len > 0)
        return hf_fail(err, HF_EINVAL, "bindings",
                       "bindings are given, or their hash, and not both");
    if (!start->resolve)
        return hf_fail(err, HF_EINVAL, "resolve", "a hash needs a resolver");
    int rc = start->resolve(start->user, start->bindings_hash, &sealed);
    if (rc == HF_EBLOB)
        return hf_fail(err, rc, "bindings_hash", "the bindings %.64s cannot be found",
                       start->bindings_hash);
    if (rc == 0)
        rc = hf_bindings_open(engine, sealed, &bindings, err);
    else
        return hf_fail_plain(err, rc);
    if (rc == 0)
        rc = hf_bindings_hash(bindings, hash, err);
    if (rc == 0 && !hf_same(hash, start->bindings_hash))
        rc = hf_fail(err, HF_EBLOB, "bindings_hash", "the bindings %.64s were changed",
                     start->bindings_hash);
    if (rc == 0)
        *ret_bindings = bindings;
    return rc;
}
