/* What a driver relies on: one that stores each step, calls models asynchronously, cancels,
 * and restores turns in other processes. */
#include <stdio.h>
#include <string.h>

#include <holdfast/code.h>
#include <holdfast/exec.h>

#include "base/buf.h"
#include "base/ident.h"
#include "turn/kit.h"

/* A base of text messages that can be out of reach. */
struct pile {
    struct hf_part parts[8];
    struct hf_message messages[8];
    struct hf_record records[8];
    bool gone;
    struct hf_base base;
};

static const struct hf_record *pile_get(void *user, uint64_t i)
{
    const struct pile *pile = user;
    return pile->gone ? NULL : &pile->records[i];
}

static void pile_fill(struct pile *pile, uint64_t count)
{
    static const char *const ids[] = { "b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7" };
    memset(pile, 0, sizeof(*pile));
    pile->base =
        (struct hf_base){ .id = "base-1", .count = count, .user = pile, .get = pile_get };
    for (uint64_t i = 0; i < count; i++) {
        pile->parts[i] = (struct hf_part){ .content = kit_span("stored words") };
        pile->messages[i] = kit_message(ids[i], HF_ROLE_USER, &pile->parts[i]);
        pile->records[i] = (struct hf_record){ .message = &pile->messages[i] };
        assert_int_equal(hf_record_chain(pile->base.digest, &pile->records[i],
                                         pile->base.digest, NULL),
                         0);
    }
}

static void start_on(struct kit *kit, const struct hf_base *base)
{
    struct hf_turn_start start = {
        .size = sizeof(start), .session_id = "s1", .turn_id = "t1", .base = base
    };
    kit_start_with(kit, &start);
}

/* The call must be refused for its struct's size, and the turn must stay as it is. */
static void refused(struct kit *kit, int rc)
{
    assert_int_equal(rc, HF_EINVAL);
    assert_string_equal(kit->err.field, "size");
}

static void a_struct_of_a_size_above_the_librarys_is_refused(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_turn *turn = NULL;
    struct hf_setup *setup = NULL;
    struct hf_cell *cell = NULL;
    struct hf_bytes before = { 0 };
    struct hf_bytes after = { 0 };
    struct hf_llm_response response = { .size = sizeof(response) + 8 };
    struct hf_llm_error error = { .size = sizeof(error) + 1 };
    struct hf_turn_start start = { .size = sizeof(start) + 8,
                                   .session_id = "s1",
                                   .turn_id = "t1" };
    struct hf_restore restore = { .size = sizeof(restore) + 8 };
    struct hf_exec_result result = { .size = sizeof(result) + 8 };
    struct hf_turn_delivery delivery = { .size = sizeof(delivery) + 8 };
    struct hf_cell_start cell_start = { .size = sizeof(cell_start) + 8, .id = "1" };
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_save(&kit, &before);
    struct hf_turn_config config = kit.config;
    config.size = sizeof(config) + ((size_t)1 << 32);
    refused(&kit, hf_setup_new(&config, &setup, &kit.err));
    refused(&kit, hf_turn_new(kit.setup, &start, &turn, &kit.err));
    refused(&kit, hf_turn_restore(kit.setup, (struct hf_span){ before.at, before.len },
                                  &restore, &turn, &kit.err));
    refused(&kit, hf_turn_llm_done(kit.turn, 1, &response, &kit.err));
    refused(&kit, hf_turn_llm_failed(kit.turn, 1, &error, &kit.err));
    refused(&kit, hf_turn_exec_done(kit.turn, 1, &result, &kit.err));
    refused(&kit, hf_turn_checkpoint_done(kit.turn, 1, &delivery, &kit.err));
    refused(&kit, hf_cell_new(hf_engine_lua(), &cell_start, &cell, &kit.err));
    kit_save(&kit, &after);
    assert_int_equal(before.len, after.len);
    assert_memory_equal(before.at, after.at, before.len);
    hf_bytes_free(&before);
    hf_bytes_free(&after);
    kit_fini(&kit);
}

static void a_transient_record_leaves_the_chain_as_it_was(void **state)
{
    (void)state;
    struct hf_origin origin = { .id = "checkpoint", .transient = true };
    struct hf_part part = { .content = kit_span("for this turn") };
    struct hf_message message = kit_message("m1", HF_ROLE_SYSTEM, &part);
    struct hf_record record = { .message = &message };
    struct hf_err err = { 0 };
    uint8_t kept[32];
    uint8_t previous[32] = { 7 };
    uint8_t digest[32];
    message.origin = &origin;
    memcpy(kept, previous, sizeof(kept));
    assert_int_equal(hf_record_chain(previous, &record, digest, &err), 0);
    assert_memory_equal(digest, kept, sizeof(digest));
    assert_int_equal(hf_record_chain(previous, &record, previous, &err), 0);
    assert_memory_equal(previous, kept, sizeof(digest));
    origin.transient = false;
    assert_int_equal(hf_record_chain(previous, &record, digest, &err), 0);
    assert_memory_not_equal(digest, kept, sizeof(digest));
    record.message = NULL; /* it must be well formed all the same */
    assert_int_equal(hf_record_chain(previous, &record, digest, &err), HF_EINVAL);
}

static void an_empty_reply_while_the_base_is_gone_is_refused_and_not_an_end(void **state)
{
    (void)state;
    struct kit kit;
    struct pile pile;
    struct hf_bytes before = { 0 };
    struct hf_bytes after = { 0 };
    pile_fill(&pile, 2);
    struct hf_part answer = { .kind = HF_PART_TOOL_RESULT,
                              .call_id = "c1",
                              .content = kit_span("3") };
    pile.parts[1] = answer; /* the last message answers a tool: a silent end is fine */
    memset(pile.base.digest, 0, 32);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(
            hf_record_chain(pile.base.digest, &pile.records[i], pile.base.digest, NULL),
            0);
    kit_init(&kit);
    start_on(&kit, &pile.base);
    kit_next(&kit);
    kit_save(&kit, &before);
    struct hf_llm_response reply = { .size = sizeof(reply), .reason = HF_REASON_STOP };
    pile.gone = true;
    assert_int_equal(hf_turn_llm_done(kit.turn, 1, &reply, &kit.err), HF_EBASE);
    assert_int_equal(hf_turn_state(kit.turn), HF_TURN_WAITING_LLM);
    kit_save(&kit, &after);
    assert_int_equal(before.len, after.len);
    assert_memory_equal(before.at, after.at, before.len);
    pile.gone = false;
    assert_int_equal(hf_turn_llm_done(kit.turn, 1, &reply, &kit.err), 0);
    assert_int_equal(hf_turn_state(kit.turn), HF_TURN_WAITING_CHECKPOINT);
    hf_bytes_free(&before);
    hf_bytes_free(&after);
    kit_fini(&kit);
}

/* The export with one word changed into another of the same length, and sealed again. */
static int restore_changed(struct kit *kit, const struct hf_bytes *save, const char *word,
                           const char *other)
{
    struct hf_turn *turn = NULL;
    uint8_t *bytes = save->at;
    size_t len = strlen(word);
    uint8_t *at = memmem(bytes, save->len, word, len);
    assert_non_null(at);
    memcpy(at, other, len);
    assert_int_equal(hf_sha256(bytes, save->len - 32, bytes + save->len - 32), 0);
    int rc = hf_turn_restore(kit->setup, (struct hf_span){ bytes, save->len }, NULL,
                             &turn, &kit->err);
    memcpy(at, word, len);
    assert_int_equal(hf_sha256(bytes, save->len - 32, bytes + save->len - 32), 0);
    return rc;
}

static void an_export_whose_base_or_blobs_are_not_those_it_names_is_refused(void **state)
{
    (void)state;
    struct kit kit;
    struct pile pile;
    struct hf_bytes save = { 0 };
    struct hf_turn *turn = NULL;
    pile_fill(&pile, 3);
    kit_init(&kit);
    start_on(&kit, &pile.base);
    kit_next(&kit);
    assert_int_equal(hf_turn_export(kit.turn, &save, &kit.err), 0);
    assert_int_equal(restore_changed(&kit, &save, "stored words", "stored wordz"),
                     HF_ECORRUPT);
    assert_string_equal(kit.err.field, "base");
    /* The setup has this prompt, so the blob would not be used. */
    assert_int_equal(restore_changed(&kit, &save, "You help.", "You harm."), HF_ECORRUPT);
    assert_string_equal(kit.err.field, "blobs");
    assert_int_equal(hf_turn_restore(kit.setup, (struct hf_span){ save.at, save.len },
                                     NULL, &turn, &kit.err),
                     0);
    hf_turn_free(turn);
    hf_bytes_free(&save);

    pile.parts[2].content = kit_span("other words"); /* the host lends other bytes */
    assert_int_equal(hf_turn_export(kit.turn, &save, &kit.err), HF_EBASE);
    kit_fini(&kit);
}

static void respond(struct kit *kit, const char *json)
{
    int rc = hf_turn_respond_json(kit->turn, kit_span(json), &kit->err);
    if (rc)
        print_error("%s: %s\n", json, kit->err.message);
    assert_int_equal(rc, 0);
}

/* The next effect with an id, or DONE, as JSON. */
static const char *next_json(struct kit *kit)
{
    const char *json = NULL;
    do
        assert_int_equal(hf_turn_poll_json(kit->turn, &json, &kit->err), 0);
    while (json && (strstr(json, "{\"effect\":\"emit\"") == json ||
                    strstr(json, "{\"effect\":\"progress\"") == json));
    return json;
}

static void a_cell_that_finishes_with_null_ends_the_turn(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit.config.protocol = hf_protocol_code();
    kit_start(&kit);
    (void)next_json(&kit);
    respond(&kit, "{\"response\":\"llm_done\",\"id\":1,\"reply\":{\"reason\":\"stop\","
                  "\"parts\":[{\"kind\":\"text\",\"content\":\"<lua>\\nfinish(null)\\n"
                  "</lua>\"}]}}");
    (void)next_json(&kit);
    respond(&kit, "{\"response\":\"exec_done\",\"id\":2,\"result\":{\"finish\":null}}");
    assert_non_null(strstr(next_json(&kit), "before_completion"));
    /* New input: the model is shown what the step finished with. */
    respond(&kit,
            "{\"response\":\"checkpoint_done\",\"id\":3,\"delivery\":{\"messages\":["
            "{\"role\":\"user\",\"parts\":[{\"kind\":\"text\",\"content\":\"more\"}"
            "]}]}}");
    const char *request = next_json(&kit);
    assert_null(strstr(request, "printed nothing"));
    assert_non_null(strstr(request, "null"));
    respond(&kit, "{\"response\":\"llm_done\",\"id\":4,\"reply\":{\"reason\":\"stop\","
                  "\"parts\":[{\"kind\":\"text\",\"content\":\"<lua>\\nfinish(null)\\n"
                  "</lua>\"}]}}");
    (void)next_json(&kit);
    respond(&kit, "{\"response\":\"exec_done\",\"id\":5,\"result\":{\"finish\":null}}");
    (void)next_json(&kit);
    respond(&kit, "{\"response\":\"checkpoint_done\",\"id\":6}");
    assert_non_null(strstr(next_json(&kit), "\"effect\":\"done\""));
    assert_int_equal(hf_turn_outcome(kit.turn)->kind, HF_OUTCOME_FINAL_VALUE);
    assert_string_equal(hf_turn_outcome(kit.turn)->value.at, "null");
    kit_fini(&kit);
}

static void a_tool_value_of_null_is_shown_as_null(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_calls(&kit, "c1", NULL);
    kit_next(&kit);
    char json[256];
    snprintf(json, sizeof(json),
             "{\"response\":\"tool_results\",\"id\":2,\"results\":[{\"call_id\":\"%s\","
             "\"failure\":null,\"value\":null}]}",
             kit.effect.calls[0].call_id);
    respond(&kit, json);
    assert_string_equal(kit_part(&kit, 2, 0), "null");
    kit_fini(&kit);
}

/* Arguments and values are kept as they were written, so no number is too large for them. */
static void numbers_of_any_size_pass_in_arguments_and_values(void **state)
{
    (void)state;
    static const char *const numbers[] = {
        "9223372036854775808", "-1e400",
        "{\"a\":1e400,\"\\u0061b\":[18446744073709551616]}"
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct kit kit;
        struct hf_part call = { .kind = HF_PART_TOOL_CALL,
                                .call_id = "c1",
                                .tool = "add",
                                .content = kit_span(numbers[i]) };
        kit_init(&kit);
        kit_start(&kit);
        kit_next(&kit);
        kit_reply_parts(&kit, &call, 1);
        kit_next(&kit);
        assert_int_equal(kit.effect.kind, HF_EFFECT_TOOL_CALLS);
        assert_string_equal(kit.effect.calls[0].args.at, numbers[i]);
        struct hf_tool_result result = { .call_id = kit.effect.calls[0].call_id,
                                         .value = kit_span(numbers[i]),
                                         .control = HF_CONTROL_FINISH,
                                         .control_value = kit_span(numbers[i]) };
        assert_int_equal(kit_results(&kit, 2, &result, 1), 0);
        assert_string_equal(kit_part(&kit, 2, 0), numbers[i]);
        kit_cut(&kit);
        assert_string_equal(hf_turn_outcome(kit.turn)->value.at, numbers[i]);
        kit_fini(&kit);
    }
}

static void what_a_model_wrote_is_repaired_in_the_json_form_too(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    respond(
        &kit,
        "{\"response\":\"llm_done\",\"id\":1,\"reply\":{\"reason\":\"stop\",\"parts\":[{"
        "\"kind\":\"text\",\"content\":\"a\\u0000b\\ud800c\\udc00\\ud83d\\ude00\"}]}}");
    kit_next(&kit);
    /* A host's own text is not repaired behind its back. */
    assert_int_equal(
        hf_turn_respond_json(
            kit.turn,
            kit_span("{\"response\":\"checkpoint_done\",\"id\":2,\"delivery\":{"
                     "\"messages\":[{\"role\":\"user\",\"parts\":[{\"kind\":\"text\","
                     "\"content\":\"\\u0000\"}]}]}}"),
            &kit.err),
        HF_EINVAL);
    respond(&kit, "{\"response\":\"checkpoint_done\",\"id\":2}");
    kit_next(&kit);
    assert_string_equal(kit.effect.outcome->text.at, "a\xef\xbf\xbd"
                                                     "b\xef\xbf\xbd"
                                                     "c\xef\xbf\xbd\xf0\x9f\x98\x80");
    kit_fini(&kit);
}

static void a_tool_value_too_large_for_a_number_is_an_error_of_the_cell(void **state)
{
    (void)state;
    struct hf_cell *cell = NULL;
    const struct hf_op *op = NULL;
    struct hf_err err = { 0 };
    struct hf_cell_start start = {
        .size = sizeof(start),
        .id = "1",
        .code = kit_span("print(select(2, pcall(call, 'big'))) finish(call('big'))")
    };
    struct hf_tool_result result = { .value = kit_span("[1e400]") };
    assert_int_equal(hf_cell_new(hf_engine_lua(), &start, &cell, &err), 0);
    assert_int_equal(hf_cell_poll(cell, &op, &err), 0);
    result.call_id = op->calls[0].id;
    assert_int_equal(hf_cell_results(cell, 1, &result, 1, &err), 0);
    assert_int_equal(hf_cell_poll(cell, &op, &err), 0);
    assert_non_null(strstr(op->args.at, "out of range"));
    assert_int_equal(hf_cell_poll(cell, &op, &err), 0);
    result.value = kit_span("9223372036854775808");
    result.call_id = op->calls[0].id;
    assert_int_equal(hf_cell_results(cell, 3, &result, 1, &err), 0);
    assert_int_equal(hf_cell_poll(cell, &op, &err), 0);
    assert_int_equal(hf_cell_end(cell, NULL), HF_CELL_ERROR);
    hf_cell_free(cell);
}

/* Cancelling */

static const struct hf_evidence by_user = { .request_id = "r1", .origin = "user" };

static void a_call_that_was_never_yielded_is_not_told_to_stop(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_effect effect;
    for (int cut = 0; cut < 2; cut++) {
        kit_init(&kit);
        kit_start(&kit);
        assert_int_equal(hf_turn_poll(kit.turn, &effect, &kit.err), 0); /* progress */
        assert_int_equal(hf_turn_state(kit.turn), HF_TURN_WAITING_LLM);
        if (cut)
            kit_cut(&kit);
        assert_int_equal(hf_turn_cancel(kit.turn, &by_user, &kit.err), 0);
        kit_expect(&kit, "emit llm_request\nemit turn_outcome cancelled\nemit done\n"
                         "done cancelled 1-1\n");
        struct hf_usage usage = { .input = 1 };
        assert_int_equal(hf_turn_account(kit.turn, 1, &usage, &kit.err), HF_ESTALE);
        kit_fini(&kit);
    }
}

static void what_was_yielded_before_a_restore_is_told_to_stop(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_cut(&kit);
    kit_forget(&kit);
    assert_int_equal(hf_turn_cancel(kit.turn, &by_user, &kit.err), 0);
    kit_expect(&kit, "cancel_llm 1\nemit turn_outcome cancelled\nemit done\n"
                     "done cancelled 1-1\n");
    kit_fini(&kit);
}

static void a_standing_request_is_seen_after_a_restore(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_calls(&kit, "c1", "c2");
    kit_next(&kit);
    kit_success(&kit, "c1", "1");
    assert_null(hf_turn_cancelling(kit.turn));
    assert_int_equal(hf_turn_cancel(kit.turn, &by_user, &kit.err), 0);
    kit_forget(&kit);
    kit_expect(&kit, "emit tool_call c1 success\ncancel_tools 2\nnone\n");
    kit_cut(&kit);
    assert_string_equal(hf_turn_cancelling(kit.turn)->request_id, "r1");
    kit_expect(&kit, "tools 2 c1:add* c2:sub\n");
    struct hf_tool_result stopped = { .call_id = "c2",
                                      .outcome = HF_TOOL_CANCELLED,
                                      .reason = kit_span("told to") };
    assert_int_equal(kit_results(&kit, 2, &stopped, 1), 0);
    kit_expect(&kit, "emit tool_call c2 cancelled\nprogress 2-3\n"
                     "emit turn_outcome cancelled\nemit done\ndone cancelled 3-3\n");
    assert_string_equal(hf_turn_outcome(kit.turn)->evidence->origin, "user");
    kit_fini(&kit);
}

/* Usage */

static void a_cancelled_call_is_accounted_for(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_llm_error error = { .size = sizeof(error),
                                  .cancelled = true,
                                  .usage = { .input = 7, .output = 3 } };
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_forget(&kit);
    assert_int_equal(hf_turn_llm_failed(kit.turn, 1, &error, &kit.err), 0);
    kit_expect(&kit, "emit token_usage 7 of 7\nemit turn_outcome cancelled\nemit done\n"
                     "done cancelled 1-1\n");
    assert_int_equal(hf_turn_usage(kit.turn)->output, 3);
    kit_fini(&kit);
}

static void the_usage_of_a_call_that_was_given_up_is_accepted_once_after_the_end(
    void **state)
{
    (void)state;
    struct kit kit;
    struct hf_usage usage = { .input = 5, .output = 2 };
    struct hf_usage huge = { .input = INT64_MAX };
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_calls(&kit, "c1", NULL);
    kit_next(&kit);
    kit_success(&kit, "c1", "1");
    kit_next(&kit);
    kit_nothing(&kit);
    kit_next(&kit); /* llm 4 */
    assert_int_equal(hf_turn_account(kit.turn, 4, &usage, &kit.err), HF_ESTALE);
    assert_int_equal(hf_turn_cancel(kit.turn, &by_user, &kit.err), 0);
    kit_next(&kit);
    assert_true(hf_turn_is_done(kit.turn));
    kit_cut(&kit);
    assert_int_equal(hf_turn_account(kit.turn, 0, &usage, &kit.err), HF_ESTALE);
    assert_int_equal(hf_turn_account(kit.turn, 1, &usage, &kit.err), HF_ESTALE);
    assert_int_equal(hf_turn_account(kit.turn, 4, NULL, &kit.err), HF_EINVAL);
    assert_int_equal(hf_turn_account(kit.turn, 4, &huge, &kit.err), HF_EOVERFLOW);
    assert_string_equal(kit.err.field, "input");
    assert_int_equal(hf_turn_usage(kit.turn)->input, 10); /* of the first reply */
    respond(&kit, "{\"response\":\"account\",\"id\":4,\"usage\":{\"input\":5,"
                  "\"output\":2}}");
    assert_int_equal(hf_turn_usage(kit.turn)->input, 15);
    kit_cut(&kit);
    assert_int_equal(hf_turn_account(kit.turn, 4, &usage, &kit.err), HF_EANSWERED);
    assert_int_equal(hf_turn_usage(kit.turn)->input, 15);
    kit_fini(&kit);
}

/* Answers and checkpoints */

static void a_checkpoint_shows_the_answer_that_is_about_to_be_final(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_part parts[] = {
        { .kind = HF_PART_REASONING, .route = "prov/model-1", .replay = kit_span("sig") },
        { .content = kit_span("It is 4.") },
    };
    struct hf_llm_response reply = { .size = sizeof(reply),
                                     .parts = parts,
                                     .part_count = 2,
                                     .reason = HF_REASON_STOP,
                                     .response_id = "resp-1",
                                     .model = "model-1-0613" };
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    assert_int_equal(hf_turn_llm_done(kit.turn, 1, &reply, &kit.err), 0);
    for (int cut = 0; cut < 2; cut++) {
        kit_next(&kit);
        assert_int_equal(kit.effect.kind, HF_EFFECT_CHECKPOINT);
        const struct hf_outcome *plan = kit.effect.outcome;
        assert_string_equal(plan->text.at, "It is 4.");
        assert_string_equal(plan->message->id, "t1.0.answer");
        assert_int_equal(plan->message->role, HF_ROLE_ASSISTANT);
        assert_int_equal(plan->message->part_count, 2);
        assert_string_equal(plan->message->parts[0].replay.at, "sig");
        assert_int_equal(plan->message->parts[1].kind, HF_PART_PROSE);
        assert_string_equal(plan->message->response_id, "resp-1");
        assert_string_equal(plan->message->model, "model-1-0613");
        kit_cut(&kit);
    }
    assert_non_null(
        strstr(next_json(&kit), "\"outcome\":{\"kind\":\"assistant_message\""));

    /* A guard refuses it: the answer is history, once, and the model is asked again. */
    struct hf_part no = { .content = kit_span("Show your work.") };
    struct hf_message guard = kit_message(NULL, HF_ROLE_SYSTEM, &no);
    struct hf_turn_delivery delivery = { .size = sizeof(delivery),
                                         .messages = &guard,
                                         .message_count = 1 };
    assert_int_equal(hf_turn_checkpoint_done(kit.turn, 2, &delivery, &kit.err), 0);
    const struct hf_message *said = hf_turn_record(kit.turn, 1)->message;
    assert_string_equal(said->id, "t1.0.answer");
    assert_int_equal(said->part_count, 2);
    assert_string_equal(said->response_id, "resp-1");
    kit_next(&kit);
    kit_reply_text(&kit, "2 + 2 = 4.");
    kit_next(&kit);
    kit_nothing(&kit);
    kit_next(&kit);
    kit_cut(&kit);
    const struct hf_outcome *end = hf_turn_outcome(kit.turn);
    assert_string_equal(end->message->id, "t1.1.answer");
    assert_string_equal(end->message->parts[0].content.at, "2 + 2 = 4.");
    /* No record holds it: the host's commit appends it. */
    assert_int_equal(hf_turn_record_count(kit.turn), 3);
    kit_fini(&kit);
}

static void an_after_work_checkpoint_plans_nothing(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_calls(&kit, "c1", NULL);
    kit_next(&kit);
    kit_success(&kit, "c1", "1");
    kit_next(&kit);
    assert_int_equal(kit.effect.kind, HF_EFFECT_CHECKPOINT);
    assert_null(kit.effect.outcome);
    struct hf_part part = { .content = kit_span("x") };
    struct hf_message user = kit_message("u", HF_ROLE_USER, &part);
    struct hf_outcome outcome = { .message = &user };
    assert_int_equal(hf_turn_finish(kit.turn, &outcome, &kit.err), HF_EINVAL);
    assert_string_equal(kit.err.field, "message");
    assert_int_equal(hf_turn_state(kit.turn), HF_TURN_WAITING_CHECKPOINT);
    kit_fini(&kit);
}

static void a_lever_with_an_answer_in_words_has_its_message_too(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_outcome outcome = { .text = kit_span("Enough.") };
    kit_init(&kit);
    kit_start(&kit);
    assert_int_equal(hf_turn_finish(kit.turn, &outcome, &kit.err), 0);
    assert_string_equal(hf_turn_outcome(kit.turn)->message->parts[0].content.at,
                        "Enough.");
    kit_fini(&kit);
}

/* Streams */

static void a_failed_call_keeps_what_came_of_its_reply(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_part parts[] = {
        { .kind = HF_PART_REASONING, .replay = kit_span("half a signature") },
        { .content = kit_span("The answer is\xff") },
        { .kind = HF_PART_TOOL_CALL, .call_id = "c1", .tool = "add" },
    };
    struct hf_llm_error error = { .size = sizeof(error),
                                  .kind = HF_LLM_STREAM,
                                  .message = kit_span("cut"),
                                  .parts = parts,
                                  .part_count = 3,
                                  .position = HF_LLM_AT_OUTPUT_STARTED,
                                  .request_id = "req-9" };
    for (int streamed = 0; streamed < 2; streamed++) {
        kit_init(&kit);
        kit_start(&kit);
        kit_next(&kit);
        kit_forget(&kit);
        error.text_streamed = streamed;
        assert_int_equal(hf_turn_llm_failed(kit.turn, 1, &error, &kit.err), 0);
        kit_cut(&kit);
        struct hf_effect effect;
        do
            assert_int_equal(hf_turn_poll(kit.turn, &effect, &kit.err), 0);
        while (effect.emit->kind != HF_EMIT_ERROR && streamed);
        if (!streamed)
            assert_string_equal(effect.emit->text.at, "The answer is\xef\xbf\xbd");
        else
            assert_string_equal(effect.emit->request_id, "req-9");
        kit_next(&kit);
        const struct hf_message *said = kit.effect.outcome->message;
        assert_int_equal(said->part_count, 1); /* neither its call nor its reasoning */
        assert_string_equal(said->parts[0].content.at, "The answer is\xef\xbf\xbd");
        kit_fini(&kit);
    }
    error.parts = NULL;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    assert_int_equal(hf_turn_llm_failed(kit.turn, 1, &error, &kit.err), HF_EINVAL);
    assert_string_equal(kit.err.field, "parts");
    kit_fini(&kit);
}

static void a_restored_model_call_is_preceded_by_one_reset(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    for (int i = 0; i < 2; i++) {
        kit_cut(&kit);
        kit_forget(&kit);
        kit_expect(&kit, "emit attempt_reset the turn was restored\nllm 1 records=1\n");
        kit_expect(&kit, "none\n");
    }
    kit_cut(&kit); /* answered without being polled: there is nothing to retract */
    kit.effect.id = 1;
    kit_reply_calls(&kit, "c1", NULL);
    kit_forget(&kit);
    kit_expect(&kit, "emit token_usage 10 of 10\nemit llm_response\nprogress 1-2\n"
                     "tools 2 c1:add\n");
    kit_cut(&kit); /* tools have shown nothing */
    kit_expect(&kit, "tools 2 c1:add\n");
    kit_fini(&kit);
}

static void a_retry_policy_is_of_its_own_size(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_setup *setup = NULL;
    struct hf_llm_retry retry = { .size = sizeof(retry) + 8 };
    kit_init(&kit);
    kit_start(&kit);
    kit.config.retry = &retry;
    refused(&kit, hf_setup_new(&kit.config, &setup, &kit.err));
    retry.size = 0;
    refused(&kit, hf_setup_new(&kit.config, &setup, &kit.err));
    retry = (struct hf_llm_retry){ .size = sizeof(retry), .attempts = -1 };
    assert_int_equal(hf_setup_new(&kit.config, &setup, &kit.err), HF_EINVAL);
    assert_string_equal(kit.err.field, "retry");
    kit_fini(&kit);
}

/* Cells */

static int new_cell(const struct hf_alloc *alloc, const char *code,
                    struct hf_cell **ret_cell, struct hf_err *err)
{
    struct hf_cell_start start = { .size = sizeof(start),
                                   .alloc = alloc,
                                   .id = "7",
                                   .code = kit_span(code),
                                   .bindings = kit_span("{\"x\":1}") };
    return hf_cell_new(hf_engine_lua(), &start, ret_cell, err);
}

static void a_cell_that_never_ends_can_be_polled_in_slices_and_cancelled(void **state)
{
    (void)state;
    struct hf_cell *cell = NULL;
    const struct hf_op *op = NULL;
    struct hf_err err = { 0 };
    struct hf_cell_cost cost;
    assert_int_equal(new_cell(NULL, "x = 2 while true do end", &cell, &err), 0);
    assert_int_equal(hf_cell_poll_steps(cell, 0, &op, &err), HF_EINVAL);
    assert_string_equal(err.field, "steps");
    for (int64_t i = 1; i <= 3; i++) {
        assert_int_equal(hf_cell_poll_steps(cell, 5000, &op, &err), 0);
        assert_null(op);
        assert_int_equal(hf_cell_end(cell, NULL), HF_CELL_RUNNING);
        assert_null(hf_cell_result(cell));
        hf_cell_cost(cell, &cost);
        assert_in_range(cost.steps, 5000 * i, 6000 * i);
    }
    assert_int_equal(hf_cell_cancel(cell, &err), 0);
    assert_int_equal(hf_cell_end(cell, NULL), HF_CELL_CANCELLED);
    assert_int_equal(hf_cell_cancel(cell, &err), HF_EFINISHED);
    const struct hf_exec_result *result = hf_cell_result(cell);
    assert_true(result->cancelled);
    assert_string_equal(result->error.at,
                        "the cell was cancelled. Nothing that this cell "
                        "assigned was kept");
    assert_string_equal(result->bindings_before, result->bindings_after);
    assert_int_equal(hf_cell_poll_steps(cell, 5000, &op, &err), 0);
    assert_null(op);
    hf_cell_free(cell);
}

/* Everything that a cell does and costs, polled whole or in slices. */
static void slices_change_neither_what_a_cell_does_nor_what_it_costs(void **state)
{
    (void)state;
    static const char code[] =
        "local t = {} for i = 1, 3000 do t[i] = (i * 7919) % 1009 end table.sort(t) "
        "print(t[1], t[1500]) local n = 0 "
        "for i = 1, 40 do local ok, e = pcall(function() for j = 1, 200 do n = n + j end "
        "if i % 9 == 0 then error('e' .. i) end end) if not ok then print(e) end end "
        "x = call('echo', {n = n}) for i = 1, 5000 do n = n + i % 3 end "
        "y = (('a'):rep(2000):gsub('a', function(c) n = n + 1 return c end)):len() "
        "finish({n = n, x = x, y = y})";
    struct hf_buf seen[2];
    int64_t steps[2];
    size_t slices = 0;
    for (size_t run = 0; run < 2; run++) {
        struct hf_cell *cell = NULL;
        const struct hf_op *op = NULL;
        struct hf_err err = { 0 };
        struct hf_cell_cost cost;
        hf_buf_init(&seen[run], hf_alloc_system(), 4096);
        assert_int_equal(new_cell(NULL, code, &cell, &err), 0);
        while (hf_cell_end(cell, NULL) == HF_CELL_RUNNING) {
            assert_int_equal(run ? hf_cell_poll_steps(cell, 1000, &op, &err)
                                 : hf_cell_poll(cell, &op, &err),
                             0);
            slices += !op;
            if (!op)
                continue;
            hf_buf_bytes(&seen[run], op->args.at, op->args.len);
            struct hf_tool_result result = { .value = kit_span("[1,2]") };
            if (op->kind != HF_OP_CALL)
                continue;
            result.call_id = op->calls[0].id;
            assert_int_equal(hf_cell_results(cell, op->ordinal, &result, 1, &err), 0);
        }
        assert_int_equal(hf_cell_end(cell, NULL), HF_CELL_FINISHED);
        hf_buf_text(&seen[run], hf_cell_result(cell)->finish.at);
        hf_cell_cost(cell, &cost);
        steps[run] = cost.steps;
        hf_cell_free(cell);
    }
    assert_true(slices > 20);
    assert_string_equal(hf_buf_str(&seen[0]), hf_buf_str(&seen[1]));
    hf_buf_fini(&seen[0]);
    hf_buf_fini(&seen[1]);
    assert_int_equal(steps[0], steps[1]);
}

static int cancel_batch(const struct hf_alloc *alloc)
{
    struct hf_cell *cell = NULL;
    const struct hf_op *op = NULL;
    struct hf_err err = { 0 };
    int rc = new_cell(alloc, "x = 5 call_batch{{'add', {n = 1}}, {'sub', {}}}", &cell,
                      &err);
    if (rc == 0)
        rc = hf_cell_poll(cell, &op, &err);
    if (rc == 0) {
        struct hf_tool_result result = { .call_id = op->calls[0].id,
                                         .value = kit_span("1") };
        rc = hf_cell_results(cell, op->ordinal, &result, 1, &err);
    }
    if (rc == 0)
        rc = hf_cell_cancel(cell, &err);
    if (rc == 0) {
        const struct hf_exec_result *result = hf_cell_result(cell);
        assert_int_equal(result->call_count, 2);
        assert_string_equal(result->calls[0].call_id, "7:1:1");
        assert_int_equal(result->calls[0].outcome, HF_TOOL_SUCCESS);
        assert_string_equal(result->calls[1].call_id, "7:1:2");
        assert_string_equal(result->calls[1].tool, "sub");
        assert_int_equal(result->calls[1].outcome, HF_TOOL_UNKNOWN);
        struct hf_tool_result late = { .call_id = "7:1:2", .value = kit_span("1") };
        assert_int_equal(hf_cell_results(cell, 1, &late, 1, &err), HF_ESTALE);
    }
    hf_cell_free(cell);
    return rc;
}

static void a_cancelled_cell_says_which_calls_it_does_not_know_of(void **state)
{
    (void)state;
    struct fail_alloc memory;
    assert_int_equal(cancel_batch(NULL), 0);
    fail_alloc_init(&memory, 0);
    assert_int_equal(cancel_batch(&memory.alloc), 0);
    int64_t all = memory.calls;
    for (int64_t i = 1; i <= all; i++) {
        fail_alloc_init(&memory, i);
        int rc = cancel_batch(&memory.alloc);
        assert_true(rc == 0 || rc == HF_ENOMEM);
        assert_int_equal(memory.live, 0);
    }
}

static void a_cancelled_cell_is_a_result_of_the_turn(void **state)
{
    (void)state;
    for (int standing = 0; standing < 2; standing++) {
        struct kit kit;
        kit_init(&kit);
        kit.config.protocol = hf_protocol_code();
        kit_start(&kit);
        kit_next(&kit);
        kit_reply_text(&kit, "<lua>\nwhile true do end\n</lua>");
        kit_next(&kit);
        if (standing)
            assert_int_equal(hf_turn_cancel(kit.turn, &by_user, &kit.err), 0);
        kit_forget(&kit);
        kit_expect(&kit, standing ? "cancel_exec 2\nnone\n" : "none\n");
        assert_int_equal(
            hf_turn_respond_json(kit.turn,
                                 kit_span("{\"response\":\"exec_done\",\"id\":2,"
                                          "\"result\":{\"cancelled\":true,"
                                          "\"finish\":1}}"),
                                 &kit.err),
            HF_EINVAL);
        assert_string_equal(kit.err.field, "cancelled");
        respond(&kit, "{\"response\":\"exec_done\",\"id\":2,\"result\":{"
                      "\"cancelled\":true}}");
        const struct hf_record *step = hf_turn_record(kit.turn, 2);
        assert_non_null(strstr(step->data.at, "\"cancelled\":true"));
        assert_non_null(strstr(step->data.at, "\"error\":\"the cell was cancelled\""));
        kit_next(&kit);
        assert_int_equal(kit.effect.kind,
                         standing ? HF_EFFECT_DONE : HF_EFFECT_CHECKPOINT);
        if (standing)
            assert_int_equal(kit.effect.outcome->kind, HF_OUTCOME_CANCELLED);
        kit_fini(&kit);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_struct_of_a_size_above_the_librarys_is_refused),
        cmocka_unit_test(a_transient_record_leaves_the_chain_as_it_was),
        cmocka_unit_test(an_empty_reply_while_the_base_is_gone_is_refused_and_not_an_end),
        cmocka_unit_test(an_export_whose_base_or_blobs_are_not_those_it_names_is_refused),
        cmocka_unit_test(a_cell_that_finishes_with_null_ends_the_turn),
        cmocka_unit_test(a_tool_value_of_null_is_shown_as_null),
        cmocka_unit_test(numbers_of_any_size_pass_in_arguments_and_values),
        cmocka_unit_test(what_a_model_wrote_is_repaired_in_the_json_form_too),
        cmocka_unit_test(a_tool_value_too_large_for_a_number_is_an_error_of_the_cell),
        cmocka_unit_test(a_call_that_was_never_yielded_is_not_told_to_stop),
        cmocka_unit_test(what_was_yielded_before_a_restore_is_told_to_stop),
        cmocka_unit_test(a_standing_request_is_seen_after_a_restore),
        cmocka_unit_test(a_cancelled_call_is_accounted_for),
        cmocka_unit_test(
            the_usage_of_a_call_that_was_given_up_is_accepted_once_after_the_end),
        cmocka_unit_test(a_checkpoint_shows_the_answer_that_is_about_to_be_final),
        cmocka_unit_test(an_after_work_checkpoint_plans_nothing),
        cmocka_unit_test(a_lever_with_an_answer_in_words_has_its_message_too),
        cmocka_unit_test(a_failed_call_keeps_what_came_of_its_reply),
        cmocka_unit_test(a_restored_model_call_is_preceded_by_one_reset),
        cmocka_unit_test(a_retry_policy_is_of_its_own_size),
        cmocka_unit_test(a_cell_that_never_ends_can_be_polled_in_slices_and_cancelled),
        cmocka_unit_test(slices_change_neither_what_a_cell_does_nor_what_it_costs),
        cmocka_unit_test(a_cancelled_cell_says_which_calls_it_does_not_know_of),
        cmocka_unit_test(a_cancelled_cell_is_a_result_of_the_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
