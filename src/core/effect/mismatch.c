/* Where the envelopes of two effects under one key differ. Both are read in canonical form: equal
 * values have equal bytes, and the members of an object are in the order of their names. */
#include <holdfast/effect.h>

#include <string.h>

#include <holdfast/bounds.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/text.h"

#define PATH_BYTES 120 /* what a message has room for */

/* Two values that differ, and the JSON pointer to them. */
struct search {
    struct hf_arena arena;
    struct hf_buf path;
    struct hf_span recorded;
    struct hf_span wanted;
    bool done; /* the path goes no deeper */
};

/* Appends a key, or an index where key is NULL. What does not fit ends the search above it. */
static void add_part(struct search *s, const char *key, size_t index)
{
    struct hf_buf part;
    hf_buf_init(&part, s->arena.alloc, PATH_BYTES);
    hf_buf_char(&part, '/');
    if (key)
        hf_json_pointer_part(&part, key);
    else
        hf_buf_i64(&part, (int64_t)index);
    if (hf_buf_state(&part) || s->path.len + part.len > PATH_BYTES)
        s->done = true;
    else
        hf_buf_bytes(&s->path, hf_buf_str(&part), part.len);
    hf_buf_fini(&part);
}

/* The values of a member or item; whether they differ. */
static bool descend(struct search *s, struct hf_walk *recorded, struct hf_walk *wanted)
{
    struct hf_span one = hf_walk_value(recorded), two = hf_walk_value(wanted);
    if (one.len == two.len && memcmp(one.at, two.at, one.len) == 0)
        return false;
    s->recorded = one;
    s->wanted = two;
    return true;
}

/* The next key; NULL: there is none, or no memory. */
static const char *next_key(struct search *s, struct hf_walk *walk)
{
    struct hf_span text = { 0 };
    return hf_walk_more(walk) && hf_walk_text(&s->arena, hf_walk_key(walk), &text) == 0
               ? text.at
               : NULL;
}

static void step_object(struct search *s, struct hf_walk recorded, struct hf_walk wanted)
{
    for (;;) {
        const char *one = next_key(s, &recorded), *two = next_key(s, &wanted);
        int order = one && two ? hf_text_order(one, two) : one ? -1 : 1;
        s->done = order != 0;
        if (one == NULL && two == NULL)
            return;
        if (s->done || descend(s, &recorded, &wanted)) {
            add_part(s, order <= 0 ? one : two, 0);
            return;
        }
    }
}

static void step_array(struct search *s, struct hf_walk recorded, struct hf_walk wanted)
{
    for (size_t i = 0;; i++) {
        bool one = hf_walk_more(&recorded), two = hf_walk_more(&wanted);
        s->done = !one || !two;
        if (s->done || descend(s, &recorded, &wanted)) {
            add_part(s, NULL, i);
            return;
        }
    }
}

static void find(struct search *s)
{
    while (!s->done) {
        struct hf_walk one, two;
        hf_walk_begin(&one, s->recorded);
        hf_walk_begin(&two, s->wanted);
        if (hf_walk_enter(&one, '{') && hf_walk_enter(&two, '{'))
            step_object(s, one, two);
        else if (hf_walk_enter(&one, '[') && hf_walk_enter(&two, '['))
            step_array(s, one, two);
        else
            s->done = true;
    }
}

static struct hf_span canonical(struct search *s, struct hf_span text)
{
    struct hf_buf out;
    hf_buf_init(&out, s->arena.alloc, (size_t)HF_MAX_PAYLOAD_BYTES);
    const char *kept = hf_json_canonical_text(&out, text) == 0
                           ? hf_buf_keep(&out, &s->arena)
                           : NULL;
    hf_buf_fini(&out);
    return (struct hf_span){ kept, kept ? strlen(kept) : 0 };
}

int hf_effect_mismatch(const char *key, struct hf_span recorded, struct hf_span wanted,
                       struct hf_err *err)
{
    struct search s = { .done = false };
    hf_arena_init(&s.arena, hf_alloc_system());
    hf_buf_init(&s.path, s.arena.alloc, PATH_BYTES);
    s.recorded = canonical(&s, recorded);
    s.wanted = canonical(&s, wanted);
    if (s.recorded.at && s.wanted.at)
        find(&s);
    int rc = hf_fail(err, HF_EEFFECT, "effect",
                     "effect %.80s was recorded with another %s", key,
                     s.path.len ? hf_buf_str(&s.path) : "envelope");
    hf_buf_fini(&s.path);
    hf_arena_fini(&s.arena);
    return rc;
}
