/* Messages and values: what a provider is shown of a history, and tool values. */
#include <string.h>

#include "core/turn/cbor.h"
#include "turn/kit.h"

/* A turn over the given records, and its first request rendered. */
static void show(struct kit *kit, const struct hf_turn_start *start,
                 struct hf_render **ret_render)
{
    struct hf_turn_start whole = *start;
    whole.size = sizeof(whole);
    whole.session_id = "s1";
    whole.turn_id = "t1";
    kit_init(kit);
    kit_start_with(kit, &whole);
    kit_next(kit);
    assert_int_equal(kit->effect.kind, HF_EFFECT_LLM_CALL);
    assert_int_equal(hf_render_new(kit->turn, kit->effect.request, ret_render, &kit->err),
                     0);
}

static void hide(struct kit *kit, struct hf_render *render)
{
    hf_render_free(render);
    kit_fini(kit);
}

static struct hf_record record_of(const struct hf_message *message)
{
    return (struct hf_record){ .kind = HF_RECORD_MESSAGE, .message = message };
}

static void an_active_event_is_shown_once_as_the_users_and_later_as_history(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_render *render = NULL;
    struct hf_part text = { .content = kit_span("hi") };
    struct hf_message message = kit_message("m1", HF_ROLE_USER, &text);
    struct hf_record input = record_of(&message);
    struct hf_cause causes[2] = {
        { .id = "e1", .event_type = "timer", .text = kit_span("tick") },
        { .id = "e1", .event_type = "timer", .text = kit_span("tick") },
    };
    show(&kit,
         &(struct hf_turn_start){
             .inputs = &input, .input_count = 1, .causes = causes, .cause_count = 2 },
         &render);
    assert_int_equal(hf_turn_cause_count(kit.turn), 1);
    const struct hf_rendered *last = hf_render_message(render, 2);
    assert_int_equal(last->role, HF_ROLE_USER);
    assert_string_equal(last->blocks[0].text.at,
                        "This turn was caused by:\n- timer: tick\n");
    assert_null(hf_render_message(render, 3));
    hide(&kit, render);

    /* In a later turn it is history: a runtime event, still the user's. */
    struct hf_part past = { .content = kit_span("tick") };
    struct hf_message event = kit_message("e1", HF_ROLE_EVENT, &past);
    struct hf_record records[2] = { record_of(&event), record_of(&message) };
    show(&kit, &(struct hf_turn_start){ .inputs = records, .input_count = 2 }, &render);
    const struct hf_rendered *first = hf_render_message(render, 1);
    assert_int_equal(first->role, HF_ROLE_USER);
    assert_string_equal(first->blocks[0].text.at, "[runtime event] tick");
    hide(&kit, render);
}

static void system_messages_are_runtime_notes_of_the_user(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_render *render = NULL;
    struct hf_part text = { .content = kit_span("mind the gap") };
    struct hf_message message = kit_message("m1", HF_ROLE_SYSTEM, &text);
    struct hf_record input = record_of(&message);
    show(&kit, &(struct hf_turn_start){ .inputs = &input, .input_count = 1 }, &render);
    assert_int_equal(hf_render_message(render, 1)->role, HF_ROLE_USER);
    assert_string_equal(hf_render_message(render, 1)->blocks[0].text.at,
                        "[runtime note] mind the gap");
    hide(&kit, render);
}

static void attachments_become_numbered_blocks_where_they_stand(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_render *render = NULL;
    struct hf_attachment image = { .ref = "blob-1", .media_type = "image/png" };
    struct hf_attachment pdf = { .ref = "blob-2" };
    struct hf_part parts[4] = { { .content = kit_span("look") },
                                { .kind = HF_PART_ATTACHMENT, .attachment = &image },
                                { .content = kit_span("and") },
                                { .kind = HF_PART_ATTACHMENT, .attachment = &pdf } };
    struct hf_message messages[2] = {
        { .id = "m1", .role = HF_ROLE_ASSISTANT, .parts = parts, .part_count = 2 },
        { .id = "m2", .role = HF_ROLE_USER, .parts = parts, .part_count = 4 },
    };
    struct hf_record inputs[2] = { record_of(&messages[0]), record_of(&messages[1]) };
    show(&kit, &(struct hf_turn_start){ .inputs = inputs, .input_count = 2 }, &render);
    assert_int_equal(hf_render_message(render, 1)->block_count,
                     1); /* not the assistant's */
    const struct hf_rendered *user = hf_render_message(render, 2);
    assert_int_equal(user->block_count, 4);
    assert_int_equal(user->blocks[1].kind, HF_BLOCK_ATTACHMENT);
    assert_int_equal(user->blocks[1].attachment, 0);
    assert_int_equal(user->blocks[2].kind, HF_BLOCK_TEXT);
    assert_int_equal(user->blocks[3].attachment, 1);
    assert_string_equal(hf_render_attachment(render, 0)->ref, "blob-1");
    assert_string_equal(hf_render_attachment(render, 1)->ref, "blob-2");
    assert_null(hf_render_attachment(render, 2));
    hide(&kit, render);
}

static void transcript_order_and_tool_protocol_are_kept_and_blanks_skipped(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_render *render = NULL;
    struct hf_part call = { .kind = HF_PART_TOOL_CALL,
                            .call_id = "c1",
                            .tool = "add",
                            .content = kit_span("{}") };
    struct hf_part result = { .kind = HF_PART_TOOL_RESULT, .call_id = "c1" };
    struct hf_part blank = { .content = kit_span("  \n") };
    struct hf_message messages[3] = {
        kit_message("m1", HF_ROLE_ASSISTANT, &call),
        kit_message("m2", HF_ROLE_USER, &result),
        kit_message("m3", HF_ROLE_USER, &blank),
    };
    struct hf_record inputs[4] = {
        record_of(&messages[0]),
        record_of(&messages[1]),
        { .kind = HF_RECORD_EVENT, .name = "note", .data = kit_span("{}") },
        record_of(&messages[2])
    };
    show(&kit, &(struct hf_turn_start){ .inputs = inputs, .input_count = 4 }, &render);
    const struct hf_rendered *first = hf_render_message(render, 1);
    const struct hf_rendered *second = hf_render_message(render, 2);
    assert_int_equal(first->blocks[0].kind, HF_BLOCK_TOOL_CALL);
    assert_string_equal(first->blocks[0].text.at, "{}");
    assert_int_equal(second->blocks[0].kind, HF_BLOCK_TOOL_RESULT);
    assert_string_equal(second->blocks[0].call_id, "c1");
    assert_int_equal(second->blocks[0].text.len, 0); /* empty, and kept */
    assert_null(hf_render_message(render, 3));
    hide(&kit, render);
}

static void replay_is_bound_to_its_route_and_reasoning_is_never_text(void **state)
{
    (void)state;
    static const struct {
        const char *route;
        const char *replay;
        size_t blocks;
    } cases[] = {
        { "prov/model-1", "sig", 1 }, /* the setup's route */
        { "other/model", "sig", 0 },
        { NULL, "sig", 0 }, /* not stamped */
        { "prov/model-1", "", 0 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct kit kit;
        struct hf_render *render = NULL;
        struct hf_part part = { .kind = HF_PART_REASONING,
                                .content = kit_span("secret thought"),
                                .route = cases[i].route,
                                .replay = kit_span(cases[i].replay) };
        struct hf_message message = kit_message("m1", HF_ROLE_ASSISTANT, &part);
        struct hf_record input = record_of(&message);
        show(&kit, &(struct hf_turn_start){ .inputs = &input, .input_count = 1 },
             &render);
        const struct hf_rendered *shown = hf_render_message(render, 1);
        assert_int_equal(shown ? shown->block_count : 0, cases[i].blocks);
        if (shown) {
            assert_int_equal(shown->blocks[0].kind, HF_BLOCK_REASONING);
            assert_int_equal(shown->blocks[0].text.len, 0);
            assert_string_equal(shown->blocks[0].replay.at, "sig");
        }
        hide(&kit, render);
    }
}

static void a_tool_calls_replay_is_bound_to_its_route_too(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_render *render = NULL;
    struct hf_part part = { .kind = HF_PART_TOOL_CALL,
                            .call_id = "c1",
                            .tool = "add",
                            .content = kit_span("{}"),
                            .route = "other/model",
                            .replay = kit_span("sig") };
    struct hf_message message = kit_message("m1", HF_ROLE_ASSISTANT, &part);
    struct hf_record input = record_of(&message);
    show(&kit, &(struct hf_turn_start){ .inputs = &input, .input_count = 1 }, &render);
    assert_int_equal(hf_render_message(render, 1)->blocks[0].replay.len, 0);
    hide(&kit, render);
}

static void reasoning_counts_zero_for_pruning_and_pruned_parts_keep_their_place(
    void **state)
{
    (void)state;
    struct kit kit;
    struct hf_render *render = NULL;
    struct hf_part reasoning = { .kind = HF_PART_REASONING, .content = kit_span("long") };
    struct hf_part text = { .content = kit_span("long") };
    assert_int_equal(hf_part_weight(&reasoning), 0);
    assert_int_equal(hf_part_weight(&text), 4);
    struct hf_part parts[2] = {
        { .kind = HF_PART_TOOL_CALL, .call_id = "c1", .tool = "add" },
        { .kind = HF_PART_TOOL_RESULT, .call_id = "c1", .pruned = true }
    };
    struct hf_message messages[2] = { kit_message("m1", HF_ROLE_ASSISTANT, &parts[0]),
                                      kit_message("m2", HF_ROLE_USER, &parts[1]) };
    struct hf_record inputs[2] = { record_of(&messages[0]), record_of(&messages[1]) };
    show(&kit, &(struct hf_turn_start){ .inputs = inputs, .input_count = 2 }, &render);
    assert_string_equal(hf_render_message(render, 2)->blocks[0].text.at,
                        "[removed to save space]");
    hide(&kit, render);
}

static bool resumable(const struct hf_part *parts, const enum hf_role *roles,
                      size_t count)
{
    struct kit kit;
    struct hf_message messages[4];
    struct hf_record inputs[4];
    bool safe = false;
    for (size_t i = 0; i < count; i++) {
        messages[i] = kit_message("m", roles[i], &parts[i]);
        inputs[i] = record_of(&messages[i]);
    }
    kit_init(&kit);
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = "s1",
                                   .turn_id = "t1",
                                   .inputs = inputs,
                                   .input_count = count };
    kit_start_with(&kit, &start);
    assert_int_equal(hf_turn_resumable(kit.turn, &safe, &kit.err), 0);
    kit_fini(&kit);
    return safe;
}

static void resume_safety_accepts_pairs_and_rejects_all_else(void **state)
{
    (void)state;
    struct hf_part call = { .kind = HF_PART_TOOL_CALL, .call_id = "c1", .tool = "add" };
    struct hf_part result = { .kind = HF_PART_TOOL_RESULT, .call_id = "c1" };
    struct hf_part other = { .kind = HF_PART_TOOL_RESULT, .call_id = "c2" };
    enum hf_role a = HF_ROLE_ASSISTANT;
    enum hf_role u = HF_ROLE_USER;
    assert_true(
        resumable((struct hf_part[]){ call, result }, (enum hf_role[]){ a, u }, 2));
    assert_true(resumable(NULL, NULL, 0));
    assert_false(resumable((struct hf_part[]){ call }, (enum hf_role[]){ a }, 1));
    assert_false(
        resumable((struct hf_part[]){ result, call }, (enum hf_role[]){ u, a }, 2));
    assert_false(
        resumable((struct hf_part[]){ call, other }, (enum hf_role[]){ a, u }, 2));
    assert_false(
        resumable((struct hf_part[]){ call, result }, (enum hf_role[]){ u, u }, 2));
    assert_false(
        resumable((struct hf_part[]){ call, result }, (enum hf_role[]){ a, a }, 2));
    assert_false(resumable((struct hf_part[]){ call, result, result },
                           (enum hf_role[]){ a, u, u }, 3));
    assert_false(resumable((struct hf_part[]){ call, result, call },
                           (enum hf_role[]){ a, u, a }, 3));
}

/* The parts that the model sees of one value. */
static size_t view(struct kit *kit, const char *json, int *ret_rc)
{
    kit_init(kit);
    kit_start(kit);
    kit_next(kit);
    kit_reply_calls(kit, "c1", NULL);
    kit_next(kit);
    struct hf_tool_result result = { .call_id = "c1", .value = kit_span(json) };
    *ret_rc = kit_results(kit, 2, &result, 1);
    return *ret_rc ? 0 : hf_turn_record(kit->turn, 2)->message->part_count;
}

static void an_attachment_in_a_value_is_shown_where_it_stands(void **state)
{
    (void)state;
    struct kit kit;
    int rc = 0;
    size_t count = view(&kit,
                        "{\"a\":[1,{\"$attachment\":{\"ref\":\"b1\",\"media_type\":"
                        "\"image/png\",\"bytes\":12}}],\"b\":2}",
                        &rc);
    assert_int_equal(count, 3);
    assert_string_equal(kit_part(&kit, 2, 0), "{\"a\":[1,");
    assert_string_equal(kit_part(&kit, 2, 2), "],\"b\":2}");
    const struct hf_part *part = &hf_turn_record(kit.turn, 2)->message->parts[1];
    assert_int_equal(part->kind, HF_PART_ATTACHMENT);
    assert_string_equal(part->attachment->ref, "b1");
    assert_string_equal(part->attachment->media_type, "image/png");
    assert_int_equal(part->attachment->bytes, 12);
    kit_fini(&kit);

    count = view(&kit, "{\"$attachment\":{\"ref\":\"b1\"}}", &rc);
    assert_int_equal(count, 2); /* an empty text keeps the pair, then the attachment */
    assert_string_equal(kit_part(&kit, 2, 0), "");
    kit_fini(&kit);
}

static void a_malformed_attachment_is_rejected(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{\"$attachment\":1}",
        "{\"$attachment\":{}}",
        "{\"$attachment\":{\"ref\":7}}",
        "{\"$attachment\":{\"ref\":\"b\",\"colour\":\"red\"}}",
        "[{\"$attachment\":{\"ref\":\"b\"},\"more\":1}]",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct kit kit;
        int rc = 0;
        (void)view(&kit, bad[i], &rc);
        assert_int_equal(rc, HF_EINVAL);
        kit_success(&kit, "c1", "1"); /* the call is still open */
        kit_fini(&kit);
    }
}

static void escaping_makes_any_json_mean_itself(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_bytes value = { 0 };
    int rc = 0;
    struct hf_span json = kit_span(
        "{\"$attachment\": {\"$$attachment\":\"$attachment\"}, \"x\":1}");
    assert_int_equal(hf_value_escape(NULL, json, &value, NULL), 0);
    assert_string_equal(
        value.at, "{\"$$attachment\": {\"$$$attachment\":\"$attachment\"}, \"x\":1}");
    size_t count = view(&kit, value.at, &rc);
    assert_int_equal(count, 1); /* no attachment any more */
    kit_fini(&kit);
    hf_bytes_free(&value);
    assert_int_equal(hf_value_escape(NULL, kit_span("{"), &value, NULL), HF_EINVAL);
}

static void a_hosts_own_view_is_kept_in_order(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_attachment image = { .ref = "b1" };
    struct hf_part parts[3] = { { .kind = HF_PART_ATTACHMENT, .attachment = &image },
                                { .content = kit_span("text") },
                                { .kind = HF_PART_CODE } };
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_calls(&kit, "c1", NULL);
    kit_next(&kit);
    struct hf_tool_result result = { .call_id = "c1", .parts = parts, .part_count = 3 };
    assert_int_equal(kit_results(&kit, 2, &result, 1), HF_EINVAL);
    result.part_count = 2;
    assert_int_equal(kit_results(&kit, 2, &result, 1), 0);
    const struct hf_message *message = hf_turn_record(kit.turn, 2)->message;
    assert_int_equal(message->part_count, 3);
    assert_int_equal(message->parts[0].kind, HF_PART_TOOL_RESULT);
    assert_int_equal(message->parts[1].kind, HF_PART_ATTACHMENT);
    assert_string_equal(message->parts[2].content.at, "text");
    kit_fini(&kit);
}

static void inputs_that_are_not_well_formed_are_refused(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_turn *turn = NULL;
    struct hf_part call = { .kind = HF_PART_TOOL_CALL, .tool = "add" };
    struct hf_message message = kit_message("m1", HF_ROLE_ASSISTANT, &call);
    struct hf_record input = record_of(&message);
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = "s1",
                                   .turn_id = "t1",
                                   .inputs = &input,
                                   .input_count = 1 };
    kit_init(&kit);
    kit_start(&kit);
    assert_int_equal(hf_turn_new(kit.setup, &start, &turn, &kit.err), HF_EINVAL);
    assert_string_equal(kit.err.field, "call_id");
    call = (struct hf_part){ .kind = HF_PART_ATTACHMENT };
    assert_int_equal(hf_turn_new(kit.setup, &start, &turn, &kit.err), HF_EINVAL);
    call = (struct hf_part){ .content = kit_span("x") };
    message.id = NULL;
    assert_int_equal(hf_turn_new(kit.setup, &start, &turn, &kit.err), HF_EINVAL);
    assert_string_equal(kit.err.field, "id");
    input =
        (struct hf_record){ .kind = HF_RECORD_EVENT, .name = "n", .data = kit_span("{") };
    assert_int_equal(hf_turn_new(kit.setup, &start, &turn, &kit.err), HF_EINVAL);
    start.turn_id = "";
    assert_int_equal(hf_turn_new(kit.setup, &start, &turn, &kit.err), HF_EINVAL);
    assert_string_equal(kit.err.field, "turn_id");
    kit_fini(&kit);
}

/* ---- lists that claim the same bytes ------------------------------------------------- */

struct twig {
    uint64_t number;
};

struct branch {
    const struct twig *twigs;
    size_t twig_count;
};

struct tree {
    const struct branch *branches;
    size_t branch_count;
};

static const struct hf_member twig_table[] = {
    { .key = 1, .type = HF_M_U64, HF_AT(twig, number) },
};
static HF_SCHEMA(s_twig, twig, twig_table);
static const struct hf_member branch_table[] = {
    { .key = 1,
      .type = HF_M_LIST,
      HF_AT_LIST(branch, twigs, twig_count),
      .max = 100,
      .of = &s_twig },
};
static HF_SCHEMA(s_branch, branch, branch_table);
static const struct hf_member tree_table[] = {
    { .key = 1,
      .type = HF_M_LIST,
      HF_AT_LIST(tree, branches, branch_count),
      .max = 100,
      .of = &s_branch },
};
static HF_SCHEMA(s_tree, tree, tree_table);

static int read_tree(const uint8_t *bytes, size_t len, struct tree *ret_tree,
                     struct hf_err *err)
{
    struct hf_arena arena;
    hf_arena_init(&arena, hf_alloc_system());
    struct hf_cbor cbor = {
        .at = bytes, .end = bytes + len, .keep = &arena, .step = &arena
    };
    int rc = hf_cbor_read(&cbor, &s_tree, ret_tree, err);
    hf_arena_fini(&arena);
    return rc;
}

/* {1: [{1: [{}, {}]}, {}, {}]}: the inner list leaves two bytes for the branches that follow;
 * with three twigs it would take one of theirs, and is refused before it is given room. */
static void lists_never_claim_the_same_bytes(void **state)
{
    (void)state;
    struct tree tree;
    struct hf_err err = { 0 };
    const uint8_t fair[] = { 0xa1, 1, 0x83, 0xa1, 1, 0x82, 0xa0, 0xa0, 0xa0, 0xa0 };
    uint8_t greedy[sizeof fair];
    memcpy(greedy, fair, sizeof fair);
    greedy[5] = 0x83;
    assert_int_equal(read_tree(fair, sizeof fair, &tree, &err), 0);
    assert_int_equal(tree.branch_count, 3);
    assert_int_equal(read_tree(greedy, sizeof greedy, &tree, &err), HF_ECORRUPT);
    assert_string_equal(err.field, "twigs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_active_event_is_shown_once_as_the_users_and_later_as_history),
        cmocka_unit_test(system_messages_are_runtime_notes_of_the_user),
        cmocka_unit_test(attachments_become_numbered_blocks_where_they_stand),
        cmocka_unit_test(transcript_order_and_tool_protocol_are_kept_and_blanks_skipped),
        cmocka_unit_test(replay_is_bound_to_its_route_and_reasoning_is_never_text),
        cmocka_unit_test(a_tool_calls_replay_is_bound_to_its_route_too),
        cmocka_unit_test(
            reasoning_counts_zero_for_pruning_and_pruned_parts_keep_their_place),
        cmocka_unit_test(resume_safety_accepts_pairs_and_rejects_all_else),
        cmocka_unit_test(an_attachment_in_a_value_is_shown_where_it_stands),
        cmocka_unit_test(a_malformed_attachment_is_rejected),
        cmocka_unit_test(escaping_makes_any_json_mean_itself),
        cmocka_unit_test(a_hosts_own_view_is_kept_in_order),
        cmocka_unit_test(inputs_that_are_not_well_formed_are_refused),
        cmocka_unit_test(lists_never_claim_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
