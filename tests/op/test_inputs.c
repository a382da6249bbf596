/* Every request of the table, filled, written as JSON and read again: the same request. */
#include "support/unit.h"

#include <string.h>

#include "op/op.h"

#define OBJECT_MAX ((size_t)1 << 20)

static const char *const texts[] = { "a \"b\"", "c" };

static bool is_text(const struct hf_input *in)
{
    return in->kind == HF_IN_TEXT || in->kind == HF_IN_JSON || in->kind == HF_IN_PATH ||
           (in->kind == HF_IN_WORD && in->width == sizeof(char *));
}

/* A legal value, which is not that of a blank request. */
static void fill(const struct hf_input *in, struct hf_arena *arena, void *request)
{
    const char *const words[] = { in->words ? in->words[0] : "" };
    int64_t word = in->min ? in->min : 1;
    switch (in->kind) {
    case HF_IN_FLAG: hf_input_store_number(in, 1, request); return;
    case HF_IN_TEXT:
    case HF_IN_PATH: hf_input_store_text(in, "text \\ \"", request); return;
    case HF_IN_TEXTS:
        assert_int_equal(hf_input_store_texts(in, texts, 2, arena, request), 0);
        return;
    case HF_IN_JSON: hf_input_store_text(in, "{ \"n\": 1.0 }", request); return;
    case HF_IN_WORD:
        if (is_text(in))
            hf_input_store_text(in, in->words[0], request);
        else
            hf_input_store_number(in, word, request);
        return;
    case HF_IN_WORDS:
        assert_int_equal(hf_input_store_texts(in, words, 1, arena, request), 0);
        return;
    case HF_IN_INT:
    case HF_IN_MS:
    case HF_IN_INSTANT: hf_input_store_number(in, in->min + 1, request); return;
    }
}

static void assert_same(const struct op *op, const struct hf_input *in, const void *a,
                        const void *b)
{
    bool same = hf_input_number(in, a) == hf_input_number(in, b);
    if (is_text(in)) {
        const char *before = hf_input_text(in, a), *after = hf_input_text(in, b);
        same = before && after && strcmp(before, after) == 0;
    } else if (in->kind == HF_IN_TEXTS || in->kind == HF_IN_WORDS) {
        size_t counts[2];
        memcpy(&counts[0], (const char *)a + in->offset + sizeof(void *), sizeof(size_t));
        memcpy(&counts[1], (const char *)b + in->offset + sizeof(void *), sizeof(size_t));
        same = counts[0] == counts[1] && counts[0] > 0;
    }
    if (!same)
        fail_msg("%s: %s is another after it was written and read", op->name, in->name);
}

/* Each input of a row by itself, since some share a member. */
static void check_input(const struct op *op, const struct hf_input *in)
{
    if (!in->width)
        return; /* read by the command itself, from the shell alone */
    struct hf_arena arena;
    struct hf_buf text;
    struct hf_json json;
    struct hf_err err = { 0 };
    const struct hf_input table[] = { *in, { .name = NULL } };
    hf_arena_init(&arena, hf_alloc_system());
    hf_buf_init(&text, hf_alloc_system(), OBJECT_MAX);
    char *request = hf_arena_take(&arena, op->in_size);
    char *again = hf_arena_take(&arena, op->in_size);
    const char *blank = hf_arena_take(&arena, op->in_size);
    const struct hf_input_part parts[] = { { table, again }, { NULL, NULL } };
    struct hf_input_reading reading = {
        .parts = parts, .arena = &arena, .local = true, .err = &err
    };
    fill(in, &arena, request);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    hf_inputs_write(&json, table, request, blank);
    hf_json_end(&json);
    int rc = hf_inputs_read((struct hf_span){ hf_buf_str(&text), text.len }, &reading);
    if (rc)
        fail_msg("%s: %s: %s: %s", op->name, in->name, hf_buf_str(&text), err.message);
    assert_true(reading.given & 1);
    assert_same(op, in, request, again);
    hf_buf_fini(&text);
    hf_arena_fini(&arena);
}

static void what_is_written_is_read_as_the_same_request(void **state)
{
    (void)state;
    for (const struct op_group *group = op_groups; group->name; group++)
        for (const struct op *op = group->ops; op->name; op++)
            for (size_t t = 0; t < 2 && op->run; t++)
                for (const struct hf_input *in = t ? op->more : op->in; in && in->name;
                     in++)
                    check_input(op, in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_as_the_same_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
