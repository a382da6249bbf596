/* Lines of `holdfast call` on a store in memory: each is answered by one line of JSON that has
 * "ok", whatever it holds. */
#include <stdlib.h>
#include <string.h>

#include "base/json_get.h"
#include "fuzz/fuzz.h"
#include "op/lines.h"

#define ANSWER_MAX ((size_t)16 << 20)

static struct hf_store *store;

static void serve(struct hf_arena *arena, struct hf_buf *out, struct hf_span line)
{
    struct hf_err err = { 0 };
    struct json_t *answer = NULL;
    int rc = lines_serve(store, arena, line, out, &err);
    fuzz_require(hf_buf_state(out) == 0 && out->len > 0 && out->at[out->len - 1] == '\n');
    fuzz_require(!memchr(out->at, '\n', out->len - 1));
    struct hf_span text = { out->at, out->len - 1 };
    fuzz_require(hf_json_parse(text, ANSWER_MAX, "answer", &answer, &err) == 0);
    const struct json_t *ok = hf_json_member(answer, "ok");
    fuzz_require(hf_json_type_of(ok) == HF_JSON_BOOL);
    fuzz_require(rc == 0 || !hf_json_as_bool(ok));
    hf_json_free(answer);
    hf_buf_reset(out);
    hf_arena_reset(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_arena arena;
    struct hf_buf out;
    struct hf_err err = { 0 };
    const char *at = (const char *)data, *end = at + size;
    if (!store)
        fuzz_require(hf_store_open("sqlite::memory:", NULL, &store, &err) == 0);
    hf_arena_init(&arena, hf_alloc_system());
    hf_buf_init(&out, hf_alloc_system(), ANSWER_MAX);
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        serve(&arena, &out, (struct hf_span){ at, (size_t)(stop - at) });
        at = stop + 1;
    }
    hf_buf_fini(&out);
    hf_arena_fini(&arena);
    return 0;
}
