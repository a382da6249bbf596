/* Where the last step of the history is: what a base says of it, and what a turn keeps. The
 * history is in pages, which count the records that are read. */
#include <string.h>

#include "base/ident.h"
#include "turn/code_kit.h"
#include "turn/pages.h"

struct story {
    struct code_kit code;
    struct pages pages;
};

static void store_step(struct pages *pages, const char *json)
{
    struct hf_record record = { .kind = HF_RECORD_EVENT,
                                .name = "hf.code.step",
                                .data = kit_span(json) };
    pages_store(pages, &record);
}

static void store_message(struct pages *pages)
{
    struct hf_part part = { .content = kit_span("words") };
    struct hf_message message = kit_message("h", HF_ROLE_USER, &part);
    struct hf_record record = { .message = &message };
    pages_store(pages, &record);
}

/* Steps 1 and 2 are records 0 and 2; records 1, 3, 4 and 5 are messages. */
static void fill(struct story *story)
{
    memset(story, 0, sizeof(*story));
    pages_open(&story->pages);
    store_step(&story->pages, "{\"step\":1,\"cell\":\"t0.0.cell\",\"after\":\"h1\"}");
    store_message(&story->pages);
    store_step(&story->pages, "{\"step\":2,\"cell\":\"t0.1.cell\",\"after\":\"h2\"}");
    for (int i = 0; i < 3; i++)
        store_message(&story->pages);
}

static void start_on(struct story *story, const struct hf_base *base)
{
    struct kit *kit = &story->code.kit;
    struct hf_turn_start start = {
        .size = sizeof(start), .session_id = "s1", .turn_id = "t1", .base = base
    };
    kit_init(kit);
    kit->config.protocol = hf_protocol_code();
    kit_start_with(kit, &start);
    kit_next(kit);
}

static void fini(struct story *story)
{
    code_fini(&story->code);
    pages_close(&story->pages);
}

/* Answers the model call that is out with a cell. */
static int reply_cell(struct story *story)
{
    struct kit *kit = &story->code.kit;
    struct hf_part part = { .content = kit_span("<lua>\nf()\n</lua>") };
    struct hf_llm_response reply = { .size = sizeof(reply),
                                     .parts = &part,
                                     .part_count = 1 };
    return hf_turn_llm_done(kit->turn, hf_turn_outstanding(kit->turn), &reply, &kit->err);
}

/* The next cell has this cursor and these bindings, and this many records are read for it. */
static void expect_cell(struct story *story, const char *cursor, const char *bindings,
                        uint64_t gets)
{
    struct kit *kit = &story->code.kit;
    uint64_t before = story->pages.gets;
    assert_int_equal(reply_cell(story), 0);
    assert_int_equal(story->pages.gets - before, gets);
    kit_next(kit);
    assert_int_equal(kit->effect.kind, HF_EFFECT_EXEC_CODE);
    assert_string_equal(kit->effect.driver->data.at, cursor);
    if (bindings)
        assert_string_equal(kit->effect.bindings, bindings);
    else
        assert_null(kit->effect.bindings);
}

static void to_next_call(struct story *story)
{
    code_printed(&story->code, "ok");
    code_nothing(&story->code);
    assert_int_equal(story->code.kit.effect.kind, HF_EFFECT_LLM_CALL);
}

/* Stores what was reported and moves it to the base. */
static int rebase(struct story *story)
{
    struct kit *kit = &story->code.kit;
    for (uint64_t i = story->pages.stored; i < hf_turn_record_count(kit->turn); i++)
        pages_store(&story->pages, hf_turn_record(kit->turn, i));
    struct hf_base base = pages_base(&story->pages, story->pages.stored);
    return hf_turn_rebase(kit->turn, &base, &kit->err);
}

/* The turn goes on as another handle, over that base. */
static int restore_on(struct story *story, const struct hf_base *base)
{
    struct kit *kit = &story->code.kit;
    struct hf_bytes save = { 0 };
    struct hf_turn *turn = NULL;
    struct hf_restore with = { .size = sizeof(with), .base = base };
    assert_int_equal(hf_turn_save(kit->turn, &save, &kit->err), 0);
    int rc = hf_turn_restore(kit->setup, (struct hf_span){ save.at, save.len }, &with,
                             &turn, &kit->err);
    hf_bytes_free(&save);
    if (rc)
        return rc;
    hf_turn_free(kit->turn);
    kit->turn = turn;
    kit_next(kit);
    return 0;
}

static void of_a_base_that_names_its_last_step_only_that_is_read(void **state)
{
    (void)state;
    static struct story story;
    fill(&story);
    story.pages.tells_steps = true;
    struct hf_base base = pages_base(&story.pages, 6);
    assert_int_equal(base.last_step, 3);
    start_on(&story, &base);
    expect_cell(&story, "step.3", "h2", 1);
    to_next_call(&story);
    expect_cell(&story, "step.4", "h2", 0); /* the turn's own record */
    fini(&story);
}

static void of_a_base_that_says_it_has_no_step_nothing_is_read(void **state)
{
    (void)state;
    static struct story story;
    memset(&story, 0, sizeof(story));
    pages_open(&story.pages);
    for (int i = 0; i < 3; i++)
        store_message(&story.pages);
    story.pages.tells_steps = true;
    struct hf_base base = pages_base(&story.pages, 3);
    start_on(&story, &base);
    expect_cell(&story, "step.1", NULL, 0);
    fini(&story);
}

static void without_a_hint_the_step_is_found_once_and_kept(void **state)
{
    (void)state;
    static struct story story;
    fill(&story);
    struct hf_base base = pages_base(&story.pages, 6);
    start_on(&story, &base);
    expect_cell(&story, "step.3", "h2", 5); /* 5, 4, 3, 2, and 2 again to read it */
    to_next_call(&story);
    assert_int_equal(rebase(&story), 0);
    expect_cell(&story, "step.4", "h2", 1);
    fini(&story);
}

static void the_hint_survives_saves_and_rebases_that_do_not_repeat_it(void **state)
{
    (void)state;
    static struct story story;
    fill(&story);
    story.pages.tells_steps = true;
    struct hf_base base = pages_base(&story.pages, 6);
    start_on(&story, &base);
    story.pages.tells_steps = false;
    assert_int_equal(rebase(&story), 0);
    base = pages_base(&story.pages, story.pages.stored);
    assert_false(base.last_step_known);
    assert_int_equal(restore_on(&story, &base), 0);
    expect_cell(&story, "step.3", "h2", 1);
    fini(&story);
}

static void a_hint_that_comes_with_a_restore_or_a_rebase_is_taken(void **state)
{
    (void)state;
    for (int restored = 0; restored < 2; restored++) {
        static struct story story;
        fill(&story);
        struct hf_base base = pages_base(&story.pages, 6);
        start_on(&story, &base);
        story.pages.tells_steps = true;
        base = pages_base(&story.pages, 6);
        assert_int_equal(restored ? restore_on(&story, &base) : rebase(&story), 0);
        expect_cell(&story, "step.3", "h2", 1);
        fini(&story);
    }
}

static void a_hint_that_names_no_step_is_refused_when_it_is_used(void **state)
{
    (void)state;
    static struct story story;
    fill(&story);
    struct hf_base base = pages_base(&story.pages, 6);
    base.last_step_known = true;
    base.last_step = 4;
    start_on(&story, &base);
    assert_int_equal(reply_cell(&story), HF_EBASE);
    assert_string_equal(story.code.kit.err.field, "last_step");
    assert_int_equal(hf_turn_state(story.code.kit.turn), HF_TURN_WAITING_LLM);
    assert_int_equal(hf_turn_fail(story.code.kit.turn, "base", "wrong", NULL), 0);
    fini(&story);
}

static void a_hint_that_differs_from_what_the_turn_knows_is_refused(void **state)
{
    (void)state;
    static struct story story;
    fill(&story);
    story.pages.tells_steps = true;
    struct hf_base base = pages_base(&story.pages, 6);
    start_on(&story, &base);
    struct kit *kit = &story.code.kit;
    base.last_step = 1;
    assert_int_equal(restore_on(&story, &base), HF_EBASE);
    assert_string_equal(kit->err.field, "last_step");
    kit->err = (struct hf_err){ 0 };
    assert_int_equal(hf_turn_rebase(kit->turn, &base, &kit->err), HF_EBASE);
    assert_string_equal(kit->err.field, "last_step");
    expect_cell(&story, "step.3", "h2", 1); /* nothing changed */
    fini(&story);
}

static void a_hint_outside_of_the_base_or_without_its_flag_is_refused(void **state)
{
    (void)state;
    static struct story story;
    fill(&story);
    struct hf_base good = pages_base(&story.pages, 6);
    start_on(&story, &good);
    struct kit *kit = &story.code.kit;
    for (int i = 0; i < 2; i++) {
        struct hf_base bad = good;
        struct hf_turn *turn = NULL;
        struct hf_turn_start start = {
            .size = sizeof(start), .session_id = "s1", .turn_id = "t1", .base = &bad
        };
        bad.last_step_known = i == 0;
        bad.last_step = i == 0 ? 7 : 3;
        assert_int_equal(hf_turn_new(kit->setup, &start, &turn, &kit->err), HF_EINVAL);
        assert_string_equal(kit->err.field, "last_step");
        assert_int_equal(hf_turn_rebase(kit->turn, &bad, &kit->err), HF_EINVAL);
    }
    fini(&story);
}

/* An input that is a step, as of a session that was forked, counts too. */
static void an_input_that_is_a_step_is_the_last(void **state)
{
    (void)state;
    static struct story story;
    struct kit *kit = &story.code.kit;
    fill(&story);
    story.pages.tells_steps = true;
    struct hf_base base = pages_base(&story.pages, 6);
    struct hf_record input = { .kind = HF_RECORD_EVENT,
                               .name = "hf.code.step",
                               .data = kit_span("{\"step\":7,\"cell\":\"c\"}") };
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = "s1",
                                   .turn_id = "t1",
                                   .base = &base,
                                   .inputs = &input,
                                   .input_count = 1 };
    kit_init(kit);
    kit->config.protocol = hf_protocol_code();
    kit_start_with(kit, &start);
    kit_next(kit);
    assert_int_equal(restore_on(&story, &base), 0); /* of the base it is still right */
    expect_cell(&story, "step.8", NULL, 0);
    fini(&story);
}

/* The save has the members 22 (last step known): true, and 23 (last step): 8, for record 7. */
static void a_save_whose_last_step_is_another_record_is_refused(void **state)
{
    (void)state;
    static struct story story;
    static const uint8_t said[] = { 0x16, 0xf5, 0x17, 0x08 };
    struct kit *kit = &story.code.kit;
    struct hf_bytes save = { 0 };
    struct hf_turn *turn = NULL;
    fill(&story);
    struct hf_base base = pages_base(&story.pages, 6);
    start_on(&story, &base);
    expect_cell(&story, "step.3", "h2", 5);
    code_printed(&story.code, "ok"); /* records 6 (the cell) and 7 (its step) */
    struct hf_restore with = { .size = sizeof(with), .base = &base };
    assert_int_equal(hf_turn_save(kit->turn, &save, &kit->err), 0);
    uint8_t *bytes = save.at;
    uint8_t *at = memmem(bytes, save.len, said, sizeof(said));
    assert_non_null(at);
    at[3] = 0x07;
    assert_int_equal(hf_sha256(bytes, save.len - 32, bytes + save.len - 32), 0);
    assert_int_equal(hf_turn_restore(kit->setup, (struct hf_span){ bytes, save.len },
                                     &with, &turn, &kit->err),
                     HF_ECORRUPT);
    assert_string_equal(kit->err.field, "last_step");
    hf_bytes_free(&save);
    fini(&story);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_base_that_names_its_last_step_only_that_is_read),
        cmocka_unit_test(of_a_base_that_says_it_has_no_step_nothing_is_read),
        cmocka_unit_test(without_a_hint_the_step_is_found_once_and_kept),
        cmocka_unit_test(the_hint_survives_saves_and_rebases_that_do_not_repeat_it),
        cmocka_unit_test(a_hint_that_comes_with_a_restore_or_a_rebase_is_taken),
        cmocka_unit_test(a_hint_that_names_no_step_is_refused_when_it_is_used),
        cmocka_unit_test(a_hint_that_differs_from_what_the_turn_knows_is_refused),
        cmocka_unit_test(a_hint_outside_of_the_base_or_without_its_flag_is_refused),
        cmocka_unit_test(an_input_that_is_a_step_is_the_last),
        cmocka_unit_test(a_save_whose_last_step_is_another_record_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
