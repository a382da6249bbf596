/* Every allocation of a call, failed once: an error, no leak, and never half an answer. */
#include "support/unit.h"

#include <string.h>

#include "base/json_get.h"
#include "op/lines.h"
#include "support/fail_alloc.h"

#define ANSWER_MAX ((size_t)1 << 20)

static const char created[] =
    "{\"op\":\"work.create\",\"id\":1,\"in\":{\"source_system\":"
    "\"manual\",\"source_id\":\"s1\",\"payload\":{\"a\": 1}}}";

/* The answer is whole, or there is none because its own memory failed. */
static void assert_whole(const struct hf_buf *out, int rc)
{
    struct json_t *answer = NULL;
    struct hf_err err = { 0 };
    if (hf_buf_state(out)) {
        assert_int_equal(out->len, 0);
        return;
    }
    assert_true(out->len > 0 && out->at[out->len - 1] == '\n');
    assert_int_equal(hf_json_parse((struct hf_span){ out->at, out->len - 1 }, ANSWER_MAX,
                                   "answer", &answer, &err),
                     0);
    assert_int_equal(hf_json_as_bool(hf_json_member(answer, "ok")), rc == 0);
    hf_json_free(answer);
}

/* What is there before: a unit to be listed. */
static struct hf_store *open_store(const struct hf_alloc *alloc)
{
    struct hf_store *store = NULL;
    struct hf_err err = { 0 };
    struct hf_work_spec unit = { .size = sizeof(unit),
                                 .source = HF_SOURCE_MANUAL,
                                 .source_id = "s0",
                                 .priority = -1 };
    struct hf_answer *answer = NULL;
    struct hf_store_options options = { .size = sizeof(options),
                                        .alloc = alloc,
                                        .inline_mode = true };
    assert_int_equal(hf_store_open("sqlite::memory:", &options, &store, &err), 0);
    assert_int_equal(hf_work_create(store, NULL, &unit, 1, 0, &answer, &err), 0);
    hf_answer_free(answer);
    return store;
}

/* Serves the line with the first, second, … allocation failing, also those of the store, until
 * it needs no more. A create whose answer is lost may be uncertain, and is said to be. */
static void assert_survives(const char *line, int wanted)
{
    for (int64_t fail_at = 1; fail_at < 2000; fail_at++) {
        struct fail_alloc memory;
        struct hf_arena arena;
        struct hf_buf out;
        struct hf_err err = { 0 };
        fail_alloc_init(&memory, 0);
        struct hf_store *store = open_store(&memory.alloc);
        memory.calls = 0;
        memory.fail_at = fail_at;
        hf_arena_init(&arena, &memory.alloc);
        hf_buf_init(&out, &memory.alloc, ANSWER_MAX);
        int rc = lines_serve(store, &arena, (struct hf_span){ line, strlen(line) }, &out,
                             &err);
        bool enough = memory.calls < fail_at;
        assert_whole(&out, rc);
        assert_true(rc == wanted ||
                    (!enough && (rc == HF_ENOMEM || rc == HF_EUNCERTAIN)));
        hf_buf_fini(&out);
        hf_arena_fini(&arena);
        hf_store_close(store);
        assert_int_equal(memory.live, 0);
        if (enough) {
            assert_true(fail_at > 2); /* it did allocate */
            return;
        }
    }
    fail_msg("it never had enough");
}

static void a_create_survives_any_allocation_that_fails(void **state)
{
    (void)state;
    assert_survives(created, 0);
}

static void a_list_survives_any_allocation_that_fails(void **state)
{
    (void)state;
    assert_survives("{\"op\":\"work.list\",\"in\":{\"statuses\":[\"queued\"]}}", 0);
}

static void a_bad_request_survives_any_allocation_that_fails(void **state)
{
    (void)state;
    assert_survives("{\"op\":\"work.create\",\"in\":{\"source_systen\":1}}", HF_EINVAL);
    assert_survives("{\"op\":\"work.renew\",\"in\":{\"owner\":\"w\",\"work_id\":\"x\"}}",
                    HF_EINVAL);
    assert_survives("nonsense", HF_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_create_survives_any_allocation_that_fails),
        cmocka_unit_test(a_list_survives_any_allocation_that_fails),
        cmocka_unit_test(a_bad_request_survives_any_allocation_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
