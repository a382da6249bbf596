/* Saving and restoring: the same effect under the same id, from every state, and every kind
 * of wrong bytes told apart. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ident.h"
#include "core/turn/machine.h"
#include "turn/kit.h"

static void checkpoint_before_llm_completion_reissues_same_logical_llm_call(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_forget(&kit);
    for (int i = 0; i < 3; i++) {
        kit_cut(&kit);
        kit_expect(&kit, "emit attempt_reset the turn was restored\n"
                         "llm 1 records=1\n");
        assert_string_equal(kit.effect.request->model, "model-1");
        assert_string_equal(kit.effect.request->route, "prov/model-1");
        assert_string_equal(kit.effect.request->prompt.at, "You help.");
        assert_string_equal(kit.effect.request->tools.at, KIT_TOOLS);
        assert_string_equal(kit.effect.request->options.at, "{}");
    }
    kit_fini(&kit);
}

static void checkpoint_after_llm_result_replays_checkpoint_without_second_llm(
    void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_text(&kit, "hello");
    kit_next(&kit);
    kit_cut(&kit);
    kit_forget(&kit);
    kit_expect(&kit, "checkpoint 2 before_completion\n");
    kit_nothing(&kit);
    kit_expect(&kit, "emit turn_outcome assistant_message\n"
                     "emit done\n"
                     "done assistant_message 1-1 hello\n");
    kit_fini(&kit);
}

static void effects_not_yet_polled_come_out_after_a_restore(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_text(&kit, "hello");
    assert_int_equal(hf_turn_poll(kit.turn, &kit.effect, &kit.err), 0); /* the usage */
    kit_cut(&kit);
    kit_forget(&kit);
    kit_expect(&kit, "emit text_delta hello\nemit llm_response hello\n"
                     "checkpoint 2 before_completion\n");
    kit_fini(&kit);
}

static void checkpoint_preserves_parallel_tool_batch_before_any_result(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    struct hf_part parts[2] = {
        { .kind = HF_PART_TOOL_CALL,
          .call_id = "c1",
          .tool = "add",
          .content = kit_span("{\"n\": 1.10}"),
          .route = "prov/model-1",
          .replay = kit_span("sig-1") },
        { .kind = HF_PART_TOOL_CALL,
          .call_id = "c2",
          .tool = "sub",
          .content = kit_span("[]") },
    };
    kit_reply_parts(&kit, parts, 2);
    kit_next(&kit);
    kit_cut(&kit);
    kit_forget(&kit);
    kit_expect(&kit, "tools 2 c1:add c2:sub\n");
    assert_string_equal(kit.effect.calls[0].args.at, "{\"n\": 1.10}");
    assert_string_equal(kit.effect.calls[0].replay.at, "sig-1");
    assert_string_equal(kit.effect.calls[0].route, "prov/model-1");
    assert_string_equal(kit.effect.calls[1].args.at, "[]");
    kit_fini(&kit);
}

static void a_partial_batch_comes_back_with_its_answers_marked(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_calls(&kit, "c1", "c2");
    kit_next(&kit);
    kit_success(&kit, "c2", "\"two\"");
    kit_cut(&kit);
    kit_forget(&kit);
    kit_expect(&kit, "emit tool_call c2 success\n"
                     "tools 2 c1:add c2:sub*\n");
    assert_string_equal(kit.effect.calls[1].result->value.at, "\"two\"");
    struct hf_tool_result again = { .call_id = "c2", .value = kit_span("9") };
    struct hf_tool_result stranger = { .call_id = "c9", .value = kit_span("9") };
    struct hf_tool_result both[2] = { { .call_id = "c1", .value = kit_span("1") },
                                      again };
    assert_int_equal(kit_results(&kit, 2, &again, 1), HF_EANSWERED);
    assert_int_equal(kit_results(&kit, 2, &stranger, 1), HF_ENOCALL);
    assert_int_equal(kit_results(&kit, 2, both, 2), HF_EANSWERED);
    assert_false(kit.effect.calls[0].answered); /* none of that call counted */
    kit_success(&kit, "c1", "1");
    kit_expect(&kit, "emit tool_call c1 success\n"
                     "progress 2-3\n"
                     "checkpoint 3 after_work\n");
    assert_string_equal(kit_part(&kit, 2, 0), "1");
    assert_string_equal(kit_part(&kit, 2, 1), "two");
    kit_fini(&kit);
}

static void checkpoint_after_mixed_tool_batch_results_replays_model_feedback_once(
    void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    struct hf_part parts[3];
    for (size_t i = 0; i < 3; i++)
        parts[i] = (struct hf_part){ .kind = HF_PART_TOOL_CALL,
                                     .call_id = i == 0   ? "a"
                                                : i == 1 ? "b"
                                                         : "c",
                                     .tool = "add",
                                     .content = kit_span("{}") };
    kit_reply_parts(&kit, parts, 3);
    kit_next(&kit);
    struct hf_failure failure = { .class_ = HF_FAILURE_TIMEOUT,
                                  .code = "slow",
                                  .message = kit_span("took too long") };
    struct hf_tool_result results[3] = {
        { .call_id = "a", .value = kit_span("{\"ok\":1}") },
        { .call_id = "b", .outcome = HF_TOOL_FAILURE, .failure = &failure },
        { .call_id = "c", .outcome = HF_TOOL_CANCELLED, .reason = kit_span("by user") },
    };
    assert_int_equal(kit_results(&kit, 2, results, 3), 0);
    kit_next(&kit);
    kit_cut(&kit);
    kit_forget(&kit);
    kit_expect(&kit, "checkpoint 3 after_work\n"); /* no tool event a second time */
    kit_nothing(&kit);
    kit_expect(&kit, "emit llm_request\nllm 4 records=3\n");
    assert_string_equal(kit_part(&kit, 2, 0), "{\"ok\":1}");
    assert_string_equal(kit_part(&kit, 2, 1), "error (timeout, slow): took too long");
    assert_string_equal(kit_part(&kit, 2, 2), "cancelled: by user");
    kit_fini(&kit);
}

static void standard_checkpoint_redrives_parallel_tool_batch_without_losing_calls(
    void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_cut(&kit);
    kit_next(&kit);
    kit_reply_calls(&kit, "c1", "c2");
    kit_cut(&kit);
    kit_next(&kit);
    kit_cut(&kit);
    kit_next(&kit);
    assert_int_equal(kit.effect.call_count, 2);
    kit_success(&kit, "c1", "1");
    kit_success(&kit, "c2", "2");
    kit_cut(&kit);
    kit_next(&kit);
    kit_nothing(&kit);
    kit_cut(&kit);
    kit_forget(&kit);
    kit_expect(&kit, "emit llm_request\nllm 4 records=3\n");
    kit_fini(&kit);
}

static void standard_checkpoint_after_tool_control_finish_preserves_terminal_outcome(
    void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_calls(&kit, "c1", NULL);
    kit_next(&kit);
    struct hf_tool_result result = { .call_id = "c1",
                                     .value = kit_span("1"),
                                     .control = HF_CONTROL_FINISH,
                                     .control_value = kit_span("{\"answer\":42}") };
    assert_int_equal(kit_results(&kit, 2, &result, 1), 0);
    kit_cut(&kit);
    kit_forget(&kit);
    kit_expect(&kit, "emit tool_call c1 success\nprogress 2-3\n"
                     "emit turn_outcome tool_value\nemit done\ndone tool_value 3-3\n");
    kit_cut(&kit);
    assert_false(hf_turn_is_done(kit.turn));
    kit_expect(&kit, "done tool_value 3-3\n"); /* a finished turn says so again */
    assert_string_equal(kit.effect.outcome->value.at, "{\"answer\":42}");
    assert_string_equal(kit.effect.outcome->tool, "add");
    assert_true(hf_turn_is_done(kit.turn));
    kit_fini(&kit);
}

static void sync_and_sleep_come_back_as_they_were(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit.config.sync = true;
    kit_start(&kit);
    kit_cut(&kit); /* before the first poll */
    kit_next(&kit);
    kit_cut(&kit);
    kit_forget(&kit);
    kit_expect(&kit, "sync 1 update=0\n");
    assert_int_equal(hf_turn_synced(kit.turn, 1, NULL, &kit.err), 0);
    kit_cut(&kit); /* between iterations */
    kit_next(&kit);
    struct hf_llm_error error = { .size = sizeof(error),
                                  .transient = true,
                                  .charge_safe = true };
    assert_int_equal(hf_turn_llm_failed(kit.turn, 2, &error, &kit.err), 0);
    kit_next(&kit);
    hf_ms duration = kit.effect.duration_ms;
    kit_cut(&kit);
    kit_next(&kit);
    assert_int_equal(kit.effect.kind, HF_EFFECT_SLEEP);
    assert_int_equal(kit.effect.id, 3);
    assert_int_equal(kit.effect.duration_ms, duration);
    assert_int_equal(hf_turn_sleep_over(kit.turn, 3, &kit.err), 0);
    kit_cut(&kit);
    kit_forget(&kit);
    kit_expect(&kit, "emit attempt_reset the turn was restored\n"
                     "llm 4 records=1\n");
    kit_fini(&kit);
}

/* A base of four messages, lent from here. */
struct shelf {
    struct hf_part parts[4];
    struct hf_message messages[4];
    struct hf_record records[4];
    struct hf_base base;
};

static const struct hf_record *lend(void *user, uint64_t i)
{
    struct shelf *shelf = user;
    return &shelf->records[i];
}

static void fill_shelf(struct shelf *shelf, uint64_t count)
{
    static const char *const ids[] = { "b0", "b1", "b2", "b3" };
    shelf->base =
        (struct hf_base){ .id = "base-1", .count = count, .user = shelf, .get = lend };
    for (uint64_t i = 0; i < 4; i++) {
        shelf->parts[i] = (struct hf_part){ .content = kit_span(ids[i]) };
        shelf->messages[i] = kit_message(ids[i], i % 2 ? HF_ROLE_ASSISTANT : HF_ROLE_USER,
                                         &shelf->parts[i]);
        shelf->records[i] = (struct hf_record){ .message = &shelf->messages[i] };
        if (i < count)
            assert_int_equal(hf_record_chain(shelf->base.digest, &shelf->records[i],
                                             shelf->base.digest, NULL),
                             0);
    }
}

static void start_on(struct kit *kit, const struct hf_base *base)
{
    struct hf_part part = { .content = kit_span("hi") };
    struct hf_message message = kit_message("m1", HF_ROLE_USER, &part);
    struct hf_record input = { .message = &message };
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = "s1",
                                   .turn_id = "t1",
                                   .base = base,
                                   .inputs = &input,
                                   .input_count = 1 };
    kit_start_with(kit, &start);
}

static int restore(struct kit *kit, const struct hf_bytes *save,
                   const struct hf_restore *with, struct hf_turn **ret_turn)
{
    struct hf_span bytes = { save->at, save->len };
    return hf_turn_restore(kit->setup, bytes, with, ret_turn, &kit->err);
}

static void a_base_that_is_gone_or_another_is_refused(void **state)
{
    (void)state;
    struct kit kit;
    struct shelf shelf;
    struct hf_bytes save = { 0 };
    struct hf_turn *turn = NULL;
    struct hf_save_info info;
    fill_shelf(&shelf, 4);
    kit_init(&kit);
    start_on(&kit, &shelf.base);
    kit_expect(&kit, "progress 4-5\n"
                     "emit llm_request\n"
                     "llm 1 records=5\n");
    kit_save(&kit, &save);
    assert_int_equal(hf_turn_peek((struct hf_span){ save.at, save.len }, &info, &kit.err),
                     0);
    assert_string_equal(info.session_id, "s1");
    assert_string_equal(info.turn_id, "t1");
    assert_string_equal(info.protocol, "standard");
    assert_string_equal(info.base_id, "base-1");
    assert_int_equal(info.base_count, 4);
    assert_memory_equal(info.base_digest, shelf.base.digest, 32);
    assert_false(info.exported);

    struct hf_restore with = { .size = sizeof(with) };
    struct hf_base other = shelf.base;
    assert_int_equal(restore(&kit, &save, &with, &turn), HF_EBASE);
    with.base = &other;
    other.id = "base-2";
    assert_int_equal(restore(&kit, &save, &with, &turn), HF_EBASE);
    other = shelf.base;
    other.count = 3;
    assert_int_equal(restore(&kit, &save, &with, &turn), HF_EBASE);
    other = shelf.base;
    other.digest[31] ^= 1;
    assert_int_equal(restore(&kit, &save, &with, &turn), HF_EBASE);
    other = shelf.base;
    assert_int_equal(restore(&kit, &save, &with, &turn), 0);
    assert_string_equal(hf_turn_record(turn, 2)->message->id, "b2");
    hf_turn_free(turn);
    hf_bytes_free(&save);
    kit_fini(&kit);
}

static void committed_history_is_referred_to_and_not_copied(void **state)
{
    (void)state;
    struct kit kit;
    struct shelf shelf;
    struct hf_bytes small = { 0 };
    struct hf_bytes large = { 0 };
    for (int i = 0; i < 2; i++) {
        fill_shelf(&shelf, i ? 4 : 1);
        kit_init(&kit);
        start_on(&kit, &shelf.base);
        kit_next(&kit);
        struct hf_bytes *save = i ? &large : &small;
        assert_int_equal(hf_turn_save(kit.turn, save, &kit.err), 0);
        char *copy = malloc(save->len);
        memcpy(copy, save->at, save->len);
        size_t len = save->len;
        hf_bytes_free(save);
        *save = (struct hf_bytes){ hf_alloc_system(), copy, len };
        kit_fini(&kit);
    }
    assert_int_equal(small.len, large.len);
    hf_bytes_free(&small);
    hf_bytes_free(&large);
}

static void rebase_moves_reported_records_to_the_base(void **state)
{
    (void)state;
    struct kit kit;
    struct shelf shelf;
    struct hf_bytes before = { 0 };
    struct hf_bytes after = { 0 };
    fill_shelf(&shelf, 1);
    kit_init(&kit);
    start_on(&kit, &shelf.base);
    kit_next(&kit);
    struct hf_base next = shelf.base;
    next.count = 2;
    assert_int_equal(hf_turn_rebase(kit.turn, &next, &kit.err),
                     HF_EBASE); /* not reported */
    kit_reply_calls(&kit, "c1", NULL);
    kit_next(&kit); /* progress 1-3 */
    kit_save(&kit, &before);
    shelf.records[1] = *hf_turn_record(kit.turn, 1);
    shelf.records[2] = *hf_turn_record(kit.turn, 2);
    next.count = 3;
    assert_int_equal(hf_turn_rebase(kit.turn, &next, &kit.err), HF_EBASE); /* digest */
    for (int i = 1; i < 3; i++)
        assert_int_equal(
            hf_record_chain(next.digest, &shelf.records[i], next.digest, NULL), 0);
    /* What the host stored is its own copy, as after a commit. */
    struct hf_part kept[2] = { { .content = kit_span("hi") },
                               { .kind = HF_PART_TOOL_CALL,
                                 .call_id = "cjqysgh0iopgi1gvmrgcktefk",
                                 .provider_id = "c1",
                                 .tool = "add",
                                 .content = kit_span("{\"a\":1}") } };
    shelf.messages[1] = kit_message("m1", HF_ROLE_USER, &kept[0]);
    shelf.messages[2] = kit_message("t1.0.calls", HF_ROLE_ASSISTANT, &kept[1]);
    shelf.records[1] = (struct hf_record){ .message = &shelf.messages[1] };
    shelf.records[2] = (struct hf_record){ .message = &shelf.messages[2] };
    assert_int_equal(hf_turn_rebase(kit.turn, &next, &kit.err), 0);
    kit_save(&kit, &after);
    assert_true(after.len < before.len);
    hf_bytes_free(&before);
    hf_bytes_free(&after);
    assert_int_equal(hf_turn_record_count(kit.turn), 3);
    assert_string_equal(kit_part(&kit, 1, 0), "hi");
    kit_success(&kit, "c1", "1");
    kit_forget(&kit);
    kit_expect(&kit,
               "emit tool_call c1 success\nprogress 3-4\ncheckpoint 3 after_work\n");
    kit_nothing(&kit);
    kit_next(&kit);
    kit_reply_calls(&kit, "c1", "c2"); /* its ids do not depend on where the base ends */
    kit_next(&kit);
    assert_string_equal(kit.effect.calls[0].call_id, "ctwc3hv1bjwncd103nbpw2ifc");
    assert_string_equal(kit.effect.calls[1].call_id, "cphyzltwcrfa4ald1zculxldm");
    kit_fini(&kit);
}

/* Nothing of a call stays in the save once its records are the base's. */
static void a_save_after_5000_rebased_iterations_is_small(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_bytes save = { 0 };
    struct hf_base base = { .id = "all", .get = lend };
    kit_init(&kit);
    kit.config.turn_budget = HF_UNBOUNDED;
    kit_start(&kit);
    for (int i = 0; i < 5000; i++) {
        kit_next(&kit);
        kit_reply_calls(&kit, "call_0", NULL);
        kit_next(&kit);
        struct hf_tool_result result = { .call_id = kit.effect.calls[0].call_id,
                                         .value = kit_span("1") };
        assert_int_equal(
            hf_turn_tool_results(kit.turn, kit.effect.id, &result, 1, &kit.err), 0);
        kit_next(&kit);
        for (; base.count < hf_turn_record_count(kit.turn); base.count++)
            assert_int_equal(hf_record_chain(base.digest,
                                             hf_turn_record(kit.turn, base.count),
                                             base.digest, NULL),
                             0);
        assert_int_equal(hf_turn_rebase(kit.turn, &base, &kit.err), 0);
        kit_nothing(&kit);
        kit_forget(&kit);
    }
    kit_save(&kit, &save);
    assert_in_range(save.len, 1, 4095);
    hf_bytes_free(&save);
    kit_fini(&kit);
}

static int know_nothing(void *user, const uint8_t hash[32], struct hf_span *ret_blob)
{
    (void)user;
    (void)hash;
    (void)ret_blob;
    return HF_EBLOB;
}

static int know_wrong(void *user, const uint8_t hash[32], struct hf_span *ret_blob)
{
    (void)user;
    (void)hash;
    *ret_blob = kit_span("another text");
    return 0;
}

static int know_all(void *user, const uint8_t hash[32], struct hf_span *ret_blob)
{
    (void)user;
    uint8_t digest[32];
    static const char *const blobs[] = { "You help.", KIT_TOOLS, "{}" };
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(hf_sha256(blobs[i], strlen(blobs[i]), digest), 0);
        if (memcmp(digest, hash, 32) == 0) {
            *ret_blob = kit_span(blobs[i]);
            return 0;
        }
    }
    return HF_EBLOB;
}

static void a_changed_prompt_is_resolved_by_hash_or_refused(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_bytes save = { 0 };
    struct hf_turn *turn = NULL;
    struct hf_surface *other = NULL;
    struct hf_setup *setup = NULL;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_save(&kit, &save);
    assert_int_equal(hf_surface_new(&kit.memory.alloc, kit_span("Another prompt."),
                                    kit_span(KIT_TOOLS), &other, &kit.err),
                     0);
    kit.config.surface = other;
    assert_int_equal(hf_setup_new(&kit.config, &setup, &kit.err), 0);
    struct hf_span bytes = { save.at, save.len };
    struct hf_restore with = { .size = sizeof(with) };
    assert_int_equal(hf_turn_restore(setup, bytes, &with, &turn, &kit.err), HF_EBLOB);
    with.resolve = know_nothing;
    assert_int_equal(hf_turn_restore(setup, bytes, &with, &turn, &kit.err), HF_EBLOB);
    with.resolve = know_wrong;
    assert_int_equal(hf_turn_restore(setup, bytes, &with, &turn, &kit.err), HF_EBLOB);
    assert_string_equal(kit.err.field, "prompt");
    with.resolve = know_all;
    assert_int_equal(hf_turn_restore(setup, bytes, &with, &turn, &kit.err), 0);
    hf_turn_free(kit.turn);
    kit.turn = turn;
    kit_next(&kit);
    assert_string_equal(kit.effect.request->prompt.at, "You help.");
    hf_turn_free(kit.turn);
    kit.turn = NULL;
    hf_setup_free(setup);
    hf_surface_free(other);
    hf_bytes_free(&save);
    kit_fini(&kit);
}

static void an_export_needs_neither_base_nor_blobs(void **state)
{
    (void)state;
    struct kit kit;
    struct shelf shelf;
    struct hf_bytes save = { 0 };
    struct hf_turn *turn = NULL;
    struct hf_surface *other = NULL;
    struct hf_setup *setup = NULL;
    fill_shelf(&shelf, 4);
    kit_init(&kit);
    start_on(&kit, &shelf.base);
    kit_next(&kit);
    assert_int_equal(hf_turn_export(kit.turn, &save, &kit.err), 0);
    assert_int_equal(hf_surface_new(&kit.memory.alloc, kit_span("Another prompt."),
                                    (struct hf_span){ 0 }, &other, &kit.err),
                     0);
    kit.config.surface = other;
    assert_int_equal(hf_setup_new(&kit.config, &setup, &kit.err), 0);
    struct hf_span bytes = { save.at, save.len };
    assert_int_equal(hf_turn_restore(setup, bytes, NULL, &turn, &kit.err), 0);
    hf_turn_free(kit.turn);
    kit.turn = turn;
    kit_forget(&kit);
    kit_expect(&kit, "emit attempt_reset the turn was restored\n"
                     "llm 1 records=5\n");
    assert_string_equal(kit.effect.request->prompt.at, "You help.");
    assert_string_equal(kit.effect.request->tools.at, KIT_TOOLS);
    assert_string_equal(kit_part(&kit, 3, 0), "b3");
    hf_bytes_free(&save);
    assert_int_equal(hf_turn_export(kit.turn, &save, &kit.err),
                     0); /* and goes on being one */
    hf_bytes_free(&save);
    hf_turn_free(kit.turn);
    kit.turn = NULL;
    hf_setup_free(setup);
    hf_surface_free(other);
    kit_fini(&kit);
}

static void any_flipped_bit_and_any_cut_is_refused(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_bytes save = { 0 };
    struct hf_turn *turn = NULL;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_calls(&kit, "c1", "c2");
    kit_next(&kit);
    kit_save(&kit, &save);
    uint8_t *bytes = save.at;
    for (size_t bit = 0; bit < save.len * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        int rc = restore(&kit, &save, NULL, &turn);
        assert_true(rc == HF_ECORRUPT || (bit < 64 && rc == HF_ENOTSAVE));
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t len = 0; len < save.len; len++) {
        struct hf_span cut = { save.at, len };
        int rc = hf_turn_restore(kit.setup, cut, NULL, &turn, &kit.err);
        assert_int_equal(rc, len < 8 ? HF_ENOTSAVE : HF_ECORRUPT);
    }
    hf_bytes_free(&save);
    kit_fini(&kit);
}

static void foreign_newer_and_other_protocols_are_told_apart(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_bytes save = { 0 };
    struct hf_turn *turn = NULL;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_save(&kit, &save);
    struct hf_restore with = { .size = sizeof(with), .session_id = "s2" };
    assert_int_equal(restore(&kit, &save, &with, &turn), HF_EFOREIGN);
    with =
        (struct hf_restore){ .size = sizeof(with), .session_id = "s1", .turn_id = "t2" };
    assert_int_equal(restore(&kit, &save, &with, &turn), HF_EFOREIGN);
    struct hf_span text = kit_span(
        "{\"not\": \"a save at all, but long enough to be one\"}");
    assert_int_equal(hf_turn_restore(kit.setup, text, NULL, &turn, &kit.err),
                     HF_ENOTSAVE);

    uint8_t *bytes = save.at;
    bytes[9] = 2; /* a version from the future, with a digest that is right */
    assert_int_equal(hf_sha256(bytes, save.len - 32, bytes + save.len - 32), 0);
    assert_int_equal(restore(&kit, &save, NULL, &turn), HF_ENEWER);
    hf_bytes_free(&save);

    struct hf_protocol_ops ops = *hf_protocol_standard()->ops;
    struct hf_protocol protocol = { .ops = &ops };
    struct hf_setup *setup = NULL;
    ops.id = "other";
    kit.config.protocol = &protocol;
    assert_int_equal(hf_setup_new(&kit.config, &setup, &kit.err), 0);
    kit_save(&kit, &save);
    struct hf_span whole = { save.at, save.len };
    assert_int_equal(hf_turn_restore(setup, whole, NULL, &turn, &kit.err), HF_EPROTOCOL);
    hf_setup_free(setup);
    hf_bytes_free(&save);
    kit_fini(&kit);
}

static void empty_parts_take_at_most_100_bytes_a_byte_to_decode(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_bytes save = { 0 };
    struct hf_turn *turn = NULL;
    struct hf_part *parts = calloc(5000, sizeof(*parts)); /* one byte each in a save */
    struct hf_message message = { .id = "m", .parts = parts, .part_count = 5000 };
    struct hf_record input = { .message = &message };
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = "s1",
                                   .turn_id = "t1",
                                   .inputs = &input,
                                   .input_count = 1 };
    kit_init(&kit);
    kit_start_with(&kit, &start);
    kit_save(&kit, &save);
    assert_in_range(save.len, 5000, 5300);
    assert_int_equal(restore(&kit, &save, NULL, &turn), 0);
    assert_in_range(hf_turn_bytes(turn, NULL), 1, 100 * save.len + 4096);
    hf_turn_free(turn);
    hf_bytes_free(&save);
    free(parts);
    kit_fini(&kit);
}

static void same_state_same_bytes(void **state)
{
    (void)state;
    struct kit a;
    struct kit b;
    struct hf_bytes save_a = { 0 };
    struct hf_bytes save_b = { 0 };
    kit_init(&a);
    kit_init(&b);
    kit_start(&a);
    kit_start(&b);
    kit_next(&a);
    kit_next(&b);
    kit_reply_calls(&a, "c1", "c2");
    kit_reply_calls(&b, "c1", "c2");
    kit_next(&a);
    kit_next(&b);
    kit_success(&a, "c1", "1"); /* other order, same state */
    kit_cut(&b);
    kit_next(&b);
    kit_success(&b, "c1", "1");
    kit_save(&a, &save_a);
    kit_save(&b, &save_b);
    assert_int_equal(save_a.len, save_b.len);
    assert_memory_equal(save_a.at, save_b.at, save_a.len);
    hf_bytes_free(&save_a);
    hf_bytes_free(&save_b);
    kit_fini(&a);
    kit_fini(&b);
}

static void a_description_names_state_effect_messages_and_usage(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_bytes save = { 0 };
    struct hf_bytes text = { 0 };
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_calls(&kit, "c1", NULL);
    kit_next(&kit);
    kit_save(&kit, &save);
    struct hf_span bytes = { save.at, save.len };
    assert_int_equal(hf_turn_describe(NULL, bytes, &text, &kit.err), 0);
    assert_non_null(
        strstr(text.at, "\nsession_id: s1\nturn_id: t1\nprotocol: standard\n"));
    assert_non_null(strstr(text.at, "\nbody.state: waiting_tools\n"));
    assert_non_null(strstr(text.at, "\nbody.wait.id: 2\nbody.wait.calls[0].call_id: "
                                    "cjqysgh0iopgi1gvmrgcktefk\n"));
    assert_non_null(strstr(text.at, "\nbody.usage.input: 10\n"));
    assert_non_null(strstr(text.at, "\nbody.next_call: 1\n"));
    assert_non_null(strstr(text.at, "\nbody.own[0].message.parts[0].content: hi\n"));
    hf_bytes_free(&save);
    hf_bytes_free(&text);
    kit_fini(&kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoint_before_llm_completion_reissues_same_logical_llm_call),
        cmocka_unit_test(
            checkpoint_after_llm_result_replays_checkpoint_without_second_llm),
        cmocka_unit_test(effects_not_yet_polled_come_out_after_a_restore),
        cmocka_unit_test(checkpoint_preserves_parallel_tool_batch_before_any_result),
        cmocka_unit_test(a_partial_batch_comes_back_with_its_answers_marked),
        cmocka_unit_test(
            checkpoint_after_mixed_tool_batch_results_replays_model_feedback_once),
        cmocka_unit_test(
            standard_checkpoint_redrives_parallel_tool_batch_without_losing_calls),
        cmocka_unit_test(
            standard_checkpoint_after_tool_control_finish_preserves_terminal_outcome),
        cmocka_unit_test(sync_and_sleep_come_back_as_they_were),
        cmocka_unit_test(a_base_that_is_gone_or_another_is_refused),
        cmocka_unit_test(committed_history_is_referred_to_and_not_copied),
        cmocka_unit_test(rebase_moves_reported_records_to_the_base),
        cmocka_unit_test(a_save_after_5000_rebased_iterations_is_small),
        cmocka_unit_test(a_changed_prompt_is_resolved_by_hash_or_refused),
        cmocka_unit_test(an_export_needs_neither_base_nor_blobs),
        cmocka_unit_test(any_flipped_bit_and_any_cut_is_refused),
        cmocka_unit_test(foreign_newer_and_other_protocols_are_told_apart),
        cmocka_unit_test(empty_parts_take_at_most_100_bytes_a_byte_to_decode),
        cmocka_unit_test(same_state_same_bytes),
        cmocka_unit_test(a_description_names_state_effect_messages_and_usage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
