/* A history in pages, and what must outlive a rebase: texts, effects that are out, renders. */
#include <stdlib.h>
#include <string.h>

#include <holdfast/code.h>

#include "turn/kit.h"
#include "turn/pages.h"

static struct hf_record text_record(struct hf_part *part, struct hf_message *message,
                                    const char *id, const char *text)
{
    *part = (struct hf_part){ .content = kit_span(text) };
    *message = kit_message(id, HF_ROLE_USER, part);
    return (struct hf_record){ .message = message };
}

static void store_text(struct pages *pages, const char *id, const char *text)
{
    struct hf_part part;
    struct hf_message message;
    struct hf_record record = text_record(&part, &message, id, text);
    pages_store(pages, &record);
}

/* A turn over two stored messages, "one" and "two". */
static void start_over(struct kit *kit, struct pages *pages)
{
    static const char given[] = "{\"env\":{\"user\":\"ada\"}}";
    static const char refs[] = "{\"doc\":{\"about\":\"a text\"}}";
    struct hf_part part;
    struct hf_message message;
    struct hf_record input = text_record(&part, &message, "m1", "hi");
    struct hf_cause cause = { .id = "cause-1", .text = kit_span("tick") };
    pages_open(pages);
    store_text(pages, "h1", "one");
    store_text(pages, "h2", "two");
    struct hf_base base = pages_base(pages, 2);
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = "s1",
                                   .turn_id = "t1",
                                   .base = &base,
                                   .inputs = &input,
                                   .input_count = 1,
                                   .causes = &cause,
                                   .cause_count = 1 };
    if (kit->config.protocol == hf_protocol_code()) {
        start.given = kit_span(given);
        start.given_refs = kit_span(refs);
    }
    kit_start_with(kit, &start);
}

/* Stores what was reported and moves it to the base. */
static void rebase(struct kit *kit, struct pages *pages, uint64_t count)
{
    for (uint64_t i = pages->stored; i < count; i++)
        pages_store(pages, hf_turn_record(kit->turn, i));
    struct hf_base base = pages_base(pages, count);
    assert_int_equal(hf_turn_rebase(kit->turn, &base, &kit->err), 0);
}

static const char *block_text(const struct hf_render *render, size_t message, size_t b)
{
    return hf_render_message(render, message)->blocks[b].text.at;
}

/* The first record that the turn has not reported. */
static uint64_t reported_to(struct kit *kit)
{
    const char *line = strstr(kit->log, "progress ");
    const char *to = line ? strchr(line, '-') : NULL;
    assert_non_null(to);
    return strtoull(to + 1, NULL, 10);
}

static void texts_causes_and_the_outcome_outlive_a_rebase(void **state)
{
    (void)state;
    struct kit kit;
    static struct pages pages;
    kit_init(&kit);
    start_over(&kit, &pages);
    const char *session_id = hf_turn_session_id(kit.turn);
    const char *turn_id = hf_turn_id(kit.turn);
    const struct hf_cause *cause = hf_turn_cause(kit.turn, 0);
    kit_next(&kit);
    kit_reply_calls(&kit, "c1", NULL);
    kit_next(&kit);
    rebase(&kit, &pages, reported_to(&kit));
    assert_ptr_equal(hf_turn_session_id(kit.turn), session_id);
    assert_string_equal(session_id, "s1");
    assert_string_equal(turn_id, "t1");
    assert_string_equal(cause->id, "cause-1");
    assert_memory_equal(cause->text.at, "tick", 4);
    assert_int_equal(hf_turn_finish(kit.turn,
                                    &(struct hf_outcome){ .text = kit_span("enough") },
                                    &kit.err),
                     0);
    while (kit.effect.kind != HF_EFFECT_DONE)
        kit_next(&kit);
    const struct hf_outcome *outcome = hf_turn_outcome(kit.turn);
    rebase(&kit, &pages, kit.effect.from);
    assert_ptr_equal(hf_turn_outcome(kit.turn), outcome);
    assert_string_equal(kit.effect.outcome->text.at, "enough");
    kit_fini(&kit);
    pages_close(&pages);
}

/* The driver polled the cell before it stored the PROGRESS that led to it. */
static void a_cell_that_is_out_keeps_what_it_is_given_over_a_rebase(void **state)
{
    (void)state;
    struct kit kit;
    static struct pages pages;
    kit_init(&kit);
    kit.config.protocol = hf_protocol_code();
    start_over(&kit, &pages);
    kit_next(&kit);
    kit_reply_text(&kit, "<lua>\nx = 1\n</lua>");
    kit_next(&kit);
    assert_int_equal(kit.effect.kind, HF_EFFECT_EXEC_CODE);
    for (int i = 0; i < 2; i++) { /* as it was made, and as it was restored */
        rebase(&kit, &pages, reported_to(&kit));
        assert_string_equal(kit.effect.given.at, "{\"env\":{\"user\":\"ada\"}}");
        assert_string_equal(kit.effect.given_refs.at, "{\"doc\":{\"about\":\"a text\"}}");
        assert_string_equal(kit.effect.code.at, "x = 1");
        struct hf_bytes save = { 0 };
        struct hf_base base = pages_base(&pages, pages.stored);
        struct hf_restore with = { .size = sizeof(with), .base = &base };
        kit_save(&kit, &save);
        hf_turn_free(kit.turn);
        assert_int_equal(hf_turn_restore(kit.setup, (struct hf_span){ save.at, save.len },
                                         &with, &kit.turn, &kit.err),
                         0);
        hf_bytes_free(&save);
        assert_int_equal(hf_turn_poll(kit.turn, &kit.effect, &kit.err), 0);
    }
    kit_fini(&kit);
    pages_close(&pages);
}

static void check_shown(const struct hf_render *render)
{
    assert_string_equal(block_text(render, 0, 0), "You help.");
    assert_string_equal(block_text(render, 1, 0), "one");
    assert_string_equal(block_text(render, 2, 0), "two");
    assert_string_equal(block_text(render, 3, 0), "hi");
    assert_string_equal(block_text(render, 4, 0), "{\"a\":1}");
    assert_string_equal(hf_render_message(render, 4)->blocks[0].tool, "add");
    assert_string_equal(block_text(render, 5, 0), "1");
    assert_string_equal(block_text(render, 6, 0), "This turn was caused by:\n- tick\n");
    assert_null(hf_render_message(render, 7));
}

static void a_render_outlives_rebase_answer_and_turn(void **state)
{
    (void)state;
    struct kit kit;
    static struct pages pages;
    struct hf_render *renders[2] = { 0 };
    kit_init(&kit);
    start_over(&kit, &pages);
    kit_next(&kit);
    kit_reply_calls(&kit, "c1", NULL);
    kit_next(&kit);
    kit_success(&kit, kit.effect.calls[0].call_id, "1");
    kit_next(&kit);
    kit_nothing(&kit);
    kit_next(&kit);
    assert_int_equal(kit.effect.kind, HF_EFFECT_LLM_CALL);
    assert_int_equal(hf_render_new(kit.turn, kit.effect.request, &renders[0], &kit.err),
                     0);
    check_shown(renders[0]);
    rebase(&kit, &pages, hf_turn_record_count(kit.turn));
    check_shown(renders[0]);
    assert_int_equal(hf_render_new(kit.turn, kit.effect.request, &renders[1], &kit.err),
                     0);
    kit_reply_text(&kit, "Done.");
    kit_next(&kit);
    kit_nothing(&kit);
    kit_next(&kit);
    check_shown(renders[0]);
    hf_turn_free(kit.turn);
    kit.turn = NULL;
    check_shown(renders[0]);
    check_shown(renders[1]);
    hf_render_free(renders[0]);
    check_shown(renders[1]);
    hf_render_free(renders[1]);
    kit_fini(&kit);
    pages_close(&pages);
}

static void a_record_that_was_lent_is_pinned_until_the_next_one(void **state)
{
    (void)state;
    struct kit kit;
    static struct pages pages;
    kit_init(&kit);
    start_over(&kit, &pages);
    assert_string_equal(hf_turn_record(kit.turn, 0)->message->id, "h1");
    assert_int_equal(pages.pinned, 1);
    assert_string_equal(hf_turn_record(kit.turn, 1)->message->id, "h2");
    assert_int_equal(pages.pinned, 1);
    assert_string_equal(hf_turn_record(kit.turn, 2)->message->id, "m1");
    assert_int_equal(pages.pinned, 0);
    assert_null(hf_turn_record(kit.turn, 4));
    assert_non_null(hf_turn_record(kit.turn, 0));
    kit_fini(&kit); /* puts it back */
    pages_close(&pages);
}

/* Saves and steps of the machine need no record of the base at all. */
static void a_turn_reads_only_the_pages_that_it_shows(void **state)
{
    (void)state;
    struct kit kit;
    static struct pages pages;
    struct hf_bytes save = { 0 };
    kit_init(&kit);
    start_over(&kit, &pages);
    kit_next(&kit);
    kit_reply_calls(&kit, "c1", NULL);
    kit_next(&kit);
    kit_save(&kit, &save);
    hf_bytes_free(&save);
    assert_int_equal(pages.gets, 0);
    kit_fini(&kit);
    pages_close(&pages);
}

/* Each get of each call that reads the base finds nothing once: HF_EBASE, no pin is left,
 * the save is what it was, and the same call then succeeds. */
#define gone_once(kit, pages, call, undo)                                                \
    do {                                                                                 \
        struct hf_bytes before_ = { 0 };                                                 \
        struct hf_bytes after_ = { 0 };                                                  \
        uint64_t start_ = (pages)->gets;                                                 \
        kit_save(kit, &before_);                                                         \
        assert_int_equal((call), 0);                                                     \
        undo;                                                                            \
        uint64_t count_ = (pages)->gets - start_;                                        \
        assert_true(count_ > 0);                                                         \
        for (uint64_t n_ = 1; n_ <= count_; n_++) {                                      \
            (pages)->gone_at = (pages)->gets + n_;                                       \
            assert_int_equal((call), HF_EBASE);                                          \
            assert_int_equal((pages)->pinned, 0);                                        \
        }                                                                                \
        (pages)->gone_at = 0;                                                            \
        assert_int_equal((call), 0);                                                     \
        undo;                                                                            \
        assert_int_equal((pages)->pinned, 0);                                            \
        kit_save(kit, &after_);                                                          \
        assert_int_equal(before_.len, after_.len);                                       \
        assert_memory_equal(before_.at, after_.at, after_.len);                          \
        hf_bytes_free(&before_);                                                         \
        hf_bytes_free(&after_);                                                          \
    } while (0)

static void a_base_that_is_gone_for_a_moment_changes_nothing(void **state)
{
    (void)state;
    struct kit kit;
    static struct pages pages;
    struct hf_render *render = NULL;
    struct hf_bytes bytes = { 0 };
    bool safe = false;
    kit_init(&kit);
    start_over(&kit, &pages);
    kit_next(&kit);
    gone_once(&kit, &pages,
              hf_render_new(kit.turn, kit.effect.request, &render, &kit.err),
              hf_render_free(render));
    gone_once(&kit, &pages, hf_turn_export(kit.turn, &bytes, &kit.err),
              hf_bytes_free(&bytes));
    gone_once(&kit, &pages, hf_turn_resumable(kit.turn, &safe, &kit.err), (void)safe);
    assert_true(safe);
    kit_fini(&kit);
    pages_close(&pages);
}

static void a_poll_over_a_base_that_is_gone_can_be_made_again(void **state)
{
    (void)state;
    struct kit kit;
    static struct pages pages;
    const char *json = NULL;
    kit_init(&kit);
    start_over(&kit, &pages);
    do { /* up to the model call, whose text shows the base */
        pages.gone_at = pages.gets + 2;
        int rc = hf_turn_poll_json(kit.turn, &json, &kit.err);
        if (rc) {
            assert_int_equal(rc, HF_EBASE);
            pages.gone_at = 0;
            assert_int_equal(hf_turn_poll_json(kit.turn, &json, &kit.err), 0);
            break;
        }
    } while (json);
    assert_non_null(json);
    assert_non_null(strstr(json, "\"effect\":\"llm_call\",\"id\":1,"));
    assert_non_null(strstr(json, "\"text\":\"two\""));
    kit_fini(&kit);
    pages_close(&pages);
}

/* A cell asks for an output of a step that lies in the base. */
static void history_of_cells_is_read_from_pages(void **state)
{
    (void)state;
    struct kit kit;
    static struct pages pages;
    struct hf_bytes value = { 0 };
    kit_init(&kit);
    kit.config.protocol = hf_protocol_code();
    start_over(&kit, &pages);
    kit_next(&kit);
    kit_reply_text(&kit, "<lua>\nprint(1)\n</lua>");
    kit_next(&kit);
    struct hf_observation seen = { .text = kit_span("1") };
    struct hf_exec_result result = { .size = sizeof(result),
                                     .observations = &seen,
                                     .observation_count = 1 };
    assert_int_equal(hf_turn_exec_done(kit.turn, kit.effect.id, &result, &kit.err), 0);
    kit_next(&kit);
    rebase(&kit, &pages, hf_turn_record_count(kit.turn));
    gone_once(&kit, &pages,
              hf_code_history(kit.turn, kit_span("{\"step\":1}"), &value, &kit.err),
              hf_bytes_free(&value));
    assert_int_equal(
        hf_code_history(kit.turn, kit_span("{\"step\":1}"), &value, &kit.err), 0);
    assert_memory_equal(value.at, "{\"code\":\"print(1)\",\"output\":[\"1\"]}", 34);
    hf_bytes_free(&value);
    kit_nothing(&kit);
    kit_next(&kit);
    kit_reply_text(&kit, "<lua>\nprint(2)\n</lua>"); /* its number follows the base's */
    kit_next(&kit);
    assert_string_equal(kit.effect.driver->data.at, "step.2");
    kit_fini(&kit);
    pages_close(&pages);
}

/* Each allocation of a render and of a rebase under it fails once. */
static void memory_that_is_gone_for_a_moment_leaves_no_pin(void **state)
{
    (void)state;
    struct kit kit;
    static struct pages pages;
    struct hf_render *render = NULL;
    kit_init(&kit);
    start_over(&kit, &pages);
    kit_next(&kit);
    bool reached = true;
    for (int64_t i = 1; reached; i++) {
        kit.memory.fail_at = kit.memory.calls + i;
        int rc = hf_render_new(kit.turn, kit.effect.request, &render, &kit.err);
        reached = rc != 0;
        assert_int_equal(rc, reached ? HF_ENOMEM : 0);
        kit.memory.fail_at = 0;
        assert_true(!reached || pages.pinned == 0);
    }
    struct hf_base base = pages_base(&pages, 2);
    reached = true;
    for (int64_t i = 1; reached; i++) {
        kit.memory.fail_at = kit.memory.calls + i;
        int rc = hf_turn_rebase(kit.turn, &base, &kit.err);
        reached = rc != 0;
        assert_int_equal(rc, reached ? HF_ENOMEM : 0);
        kit.memory.fail_at = 0;
        assert_string_equal(block_text(render, 2, 0), "two");
        assert_string_equal(block_text(render, 3, 0), "hi");
    }
    hf_render_free(render);
    kit_fini(&kit);
    pages_close(&pages);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_causes_and_the_outcome_outlive_a_rebase),
        cmocka_unit_test(a_cell_that_is_out_keeps_what_it_is_given_over_a_rebase),
        cmocka_unit_test(a_render_outlives_rebase_answer_and_turn),
        cmocka_unit_test(a_record_that_was_lent_is_pinned_until_the_next_one),
        cmocka_unit_test(a_turn_reads_only_the_pages_that_it_shows),
        cmocka_unit_test(a_base_that_is_gone_for_a_moment_changes_nothing),
        cmocka_unit_test(a_poll_over_a_base_that_is_gone_can_be_made_again),
        cmocka_unit_test(history_of_cells_is_read_from_pages),
        cmocka_unit_test(memory_that_is_gone_for_a_moment_leaves_no_pin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
