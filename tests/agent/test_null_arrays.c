/* A count above 0 with an array that is NULL is HF_EINVAL and no crash, in every public call that
 * takes one: as an argument, or in what it takes. */
#include <holdfast/agent.h>
#include <holdfast/attach.h>
#include <holdfast/attention.h>
#include <holdfast/code.h>
#include <holdfast/exec.h>
#include <holdfast/job.h>
#include <holdfast/process.h>
#include <holdfast/tools.h>
#include <holdfast/turn_json.h>
#include <holdfast/worker.h>
#include <string.h>

#include "support/unit.h"

#define TEXT(s) ((struct hf_span){ (s), strlen(s) })
#define TOKEN "hf1.1.1.n"

struct world {
    struct hf_store *store;
    struct hf_loop *loop;
    struct hf_surface *surface;
    struct hf_setup *setup;
    struct hf_setup *code_setup;
    struct hf_err err;
};

/* ---- units --------------------------------------------------------------------------- */

static int create(struct world *w)
{
    struct hf_answer *answer = NULL;
    return hf_work_create(w->store, NULL, NULL, 1, 0, &answer, &w->err);
}

static int change(struct world *w)
{
    struct hf_answer *answer = NULL;
    return hf_work_change(w->store, NULL, NULL, 1, 0, &answer, &w->err);
}

static int close_out(struct world *w, struct hf_change end)
{
    struct hf_answer *answer = NULL;
    end.size = sizeof(end);
    end.verb = HF_VERB_CLOSE_OUT;
    end.id = "u";
    end.token = TOKEN;
    end.status = HF_STATUS_DONE;
    return hf_work_change(w->store, NULL, &end, 1, 0, &answer, &w->err);
}

static int outputs(struct world *w)
{
    return close_out(w, (struct hf_change){ .output_count = 1 });
}

static int evidence(struct world *w)
{
    return close_out(w, (struct hf_change){ .evidence_count = 1 });
}

static int kinds(struct world *w)
{
    struct hf_answer *answer = NULL;
    struct hf_claim claim = { .size = sizeof(claim), .owner = "w", .kind_count = 1 };
    return hf_work_claim(w->store, NULL, &claim, &answer, &w->err);
}

static int statuses(struct world *w)
{
    struct hf_answer *answer = NULL;
    struct hf_filter filter = { .size = sizeof(filter), .status_count = 1 };
    return hf_work_list(w->store, NULL, &filter, &answer, &w->err);
}

static int ack(struct world *w)
{
    int64_t count = 0;
    struct hf_ack ids = { .size = sizeof(ids), .id_count = 1 };
    return hf_attention_ack(w->store, NULL, &ids, &count, &w->err);
}

static int registered(struct world *w, struct hf_process_spec process)
{
    struct hf_answer *answer = NULL;
    struct hf_work_spec unit = { .size = sizeof(unit),
                                 .source = HF_SOURCE_MANUAL,
                                 .source_id = "p",
                                 .priority = -1,
                                 .disposition = HF_DISPOSITION_RERUNNABLE };
    process.size = sizeof(process);
    process.work = &unit;
    process.identity_kind = "shell";
    return hf_process_register(w->store, NULL, &process, &answer, &w->err);
}

static int event_types(struct world *w)
{
    return registered(w, (struct hf_process_spec){ .event_type_count = 1 });
}

static int observers(struct world *w)
{
    return registered(w, (struct hf_process_spec){ .observer_count = 1 });
}

/* ---- sessions ------------------------------------------------------------------------ */

static int paths(struct world *w)
{
    char *json = NULL;
    struct hf_user_message message = {
        .size = sizeof(message), .id = "m", .text = "t", .path_count = 1
    };
    return hf_user_message_write(w->store, &message, &json, &w->err);
}

static int renewals(struct world *w)
{
    return hf_session_renew_all(w->store, NULL, 1, &w->err);
}

static int agents_of_a_claim(struct world *w)
{
    struct hf_session_answer *answer = NULL;
    struct hf_session_claim claim = { .size = sizeof(claim),
                                      .owner = "w",
                                      .agent_count = 1 };
    return hf_session_claim(w->store, NULL, &claim, &answer, &w->err);
}

static int step(struct world *w, struct hf_session_step more)
{
    static const uint8_t chain[32];
    struct hf_session_stepped stepped;
    more.size = sizeof(more);
    more.session_id = "s";
    more.token = TOKEN;
    more.turn_id = "t";
    more.chain = chain;
    more.save = TEXT("save");
    return hf_session_step(w->store, NULL, &more, &stepped, &w->err);
}

static int commit(struct world *w, struct hf_session_commit more)
{
    static const uint8_t chain[32];
    struct hf_session_committed committed;
    more.size = sizeof(more);
    more.session_id = "s";
    more.token = TOKEN;
    more.turn_id = "t";
    more.chain = chain;
    more.status = HF_STATUS_DONE;
    more.outcome = "{}";
    return hf_session_commit(w->store, NULL, &more, &committed, &w->err);
}

#define STEP(name, member)                                                               \
    static int name(struct world *w)                                                     \
    {                                                                                    \
        return step(w, (struct hf_session_step){ .member = 1 });                         \
    }
STEP(step_records, record_count)
STEP(step_begun, begun_count)
STEP(step_settled, settled_count)
STEP(step_blobs, blob_count)
STEP(step_waits, wait_count)

#define COMMIT(name, member)                                                             \
    static int name(struct world *w)                                                     \
    {                                                                                    \
        return commit(w, (struct hf_session_commit){ .member = 1 });                     \
    }
COMMIT(commit_records, added_count)
COMMIT(commit_blobs, blob_count)
COMMIT(commit_spent, spent_count)
COMMIT(commit_units, unit_count)

/* ---- turns and cells ----------------------------------------------------------------- */

static int turn(struct world *w, struct hf_turn_start start, struct hf_turn **ret_turn)
{
    start.size = sizeof(start);
    start.session_id = "s";
    start.turn_id = "t";
    return hf_turn_new(w->setup, &start, ret_turn, &w->err);
}

static int turn_inputs(struct world *w)
{
    struct hf_turn *none = NULL;
    return turn(w, (struct hf_turn_start){ .input_count = 1 }, &none);
}

static int turn_causes(struct world *w)
{
    struct hf_turn *none = NULL;
    return turn(w, (struct hf_turn_start){ .cause_count = 1 }, &none);
}

static int message_parts(struct world *w)
{
    struct hf_turn *none = NULL;
    struct hf_message message = { .id = "m", .role = HF_ROLE_USER, .part_count = 1 };
    struct hf_record record = { .kind = HF_RECORD_MESSAGE, .message = &message };
    return turn(w, (struct hf_turn_start){ .inputs = &record, .input_count = 1 }, &none);
}

/* A turn whose model call is out. */
static struct hf_turn *asking(struct world *w, struct hf_effect *ret_effect)
{
    struct hf_turn *made = NULL;
    assert_int_equal(turn(w, (struct hf_turn_start){ .run_offset = 0 }, &made), 0);
    do
        assert_int_equal(hf_turn_poll(made, ret_effect, &w->err), 0);
    while (ret_effect->kind != HF_EFFECT_LLM_CALL && ret_effect->kind != HF_EFFECT_NONE);
    assert_int_equal(ret_effect->kind, HF_EFFECT_LLM_CALL);
    return made;
}

static int response_parts(struct world *w)
{
    struct hf_effect effect;
    struct hf_turn *made = asking(w, &effect);
    struct hf_llm_response response = { .size = sizeof(response), .part_count = 1 };
    int rc = hf_turn_llm_done(made, effect.id, &response, &w->err);
    hf_turn_free(made);
    return rc;
}

static int tool_results(struct world *w)
{
    struct hf_effect effect;
    struct hf_turn *made = asking(w, &effect);
    struct hf_part call = {
        .kind = HF_PART_TOOL_CALL, .call_id = "c", .tool = "add", .content = TEXT("{}")
    };
    struct hf_llm_response response = { .size = sizeof(response),
                                        .parts = &call,
                                        .part_count = 1 };
    assert_int_equal(hf_turn_llm_done(made, effect.id, &response, &w->err), 0);
    do
        assert_int_equal(hf_turn_poll(made, &effect, &w->err), 0);
    while (effect.kind != HF_EFFECT_TOOL_CALLS && effect.kind != HF_EFFECT_NONE);
    assert_int_equal(effect.kind, HF_EFFECT_TOOL_CALLS);
    int rc = hf_turn_tool_results(made, effect.id, NULL, 1, &w->err);
    hf_turn_free(made);
    return rc;
}

static int delivery(struct world *w, struct hf_turn_delivery more)
{
    struct hf_effect effect;
    struct hf_turn *made = asking(w, &effect);
    struct hf_part text = { .kind = HF_PART_TEXT, .content = TEXT("It is 4.") };
    struct hf_llm_response response = { .size = sizeof(response),
                                        .parts = &text,
                                        .part_count = 1 };
    assert_int_equal(hf_turn_llm_done(made, effect.id, &response, &w->err), 0);
    do
        assert_int_equal(hf_turn_poll(made, &effect, &w->err), 0);
    while (effect.kind != HF_EFFECT_CHECKPOINT && effect.kind != HF_EFFECT_NONE);
    assert_int_equal(effect.kind, HF_EFFECT_CHECKPOINT);
    more.size = sizeof(more);
    int rc = hf_turn_checkpoint_done(made, effect.id, &more, &w->err);
    hf_turn_free(made);
    return rc;
}

#define DELIVERY(name, member)                                                           \
    static int name(struct world *w)                                                     \
    {                                                                                    \
        return delivery(w, (struct hf_turn_delivery){ .member = 1 });                    \
    }
DELIVERY(delivered_committed, committed_count)
DELIVERY(delivered_messages, message_count)
DELIVERY(delivered_transient, transient_count)
DELIVERY(delivered_causes, cause_count)

/* A turn of the code protocol whose cell is out. */
static int executed(struct world *w, struct hf_exec_result result)
{
    struct hf_effect effect;
    struct hf_setup *standard = w->setup;
    w->setup = w->code_setup;
    struct hf_turn *made = asking(w, &effect);
    w->setup = standard;
    struct hf_part text = { .kind = HF_PART_TEXT,
                            .content = TEXT("<lua>\nprint(1)\n</lua>\n") };
    struct hf_llm_response response = { .size = sizeof(response),
                                        .parts = &text,
                                        .part_count = 1 };
    assert_int_equal(hf_turn_llm_done(made, effect.id, &response, &w->err), 0);
    do
        assert_int_equal(hf_turn_poll(made, &effect, &w->err), 0);
    while (effect.kind != HF_EFFECT_EXEC_CODE && effect.kind != HF_EFFECT_NONE);
    assert_int_equal(effect.kind, HF_EFFECT_EXEC_CODE);
    result.size = sizeof(result);
    int rc = hf_turn_exec_done(made, effect.id, &result, &w->err);
    hf_turn_free(made);
    return rc;
}

#define EXECUTED(name, member)                                                           \
    static int name(struct world *w)                                                     \
    {                                                                                    \
        return executed(w, (struct hf_exec_result){ .member = 1 });                      \
    }
EXECUTED(result_observations, observation_count)
EXECUTED(result_calls, call_count)
EXECUTED(result_images, image_count)

static int cell(struct world *w, struct hf_cell_start start, struct hf_cell **ret_cell)
{
    start.size = sizeof(start);
    start.id = "s/t/1";
    start.code = TEXT("call('add')");
    return hf_cell_new(hf_engine_lua(), &start, ret_cell, &w->err);
}

static int cell_journal(struct world *w)
{
    struct hf_cell *none = NULL;
    return cell(w, (struct hf_cell_start){ .journal_count = 1 }, &none);
}

static int cell_tools(struct world *w)
{
    struct hf_cell *none = NULL;
    return cell(w, (struct hf_cell_start){ .tool_count = 1 }, &none);
}

static int cell_results(struct world *w)
{
    struct hf_cell *made = NULL;
    const struct hf_op *op = NULL;
    assert_int_equal(cell(w, (struct hf_cell_start){ .tools = NULL }, &made), 0);
    assert_int_equal(hf_cell_poll(made, &op, &w->err), 0);
    assert_non_null(op);
    int rc = hf_cell_results(made, op->ordinal, NULL, 1, &w->err);
    hf_cell_free(made);
    return rc;
}

static int job_evidence(struct world *w)
{
    struct hf_pool *pool = NULL;
    const struct hf_pool_options options = { .size = sizeof(options) };
    assert_int_equal(hf_pool_new(w->store, &options, &pool, &w->err), 0);
    const struct hf_job_end end = { .size = sizeof(end), .evidence_count = 1 };
    int rc = hf_pool_complete(pool, "u", TOKEN, &end, &w->err);
    hf_pool_free(pool);
    return rc;
}

static int op_records(struct world *w)
{
    struct hf_bytes json = { 0 };
    return hf_op_records_encode(NULL, NULL, 1, &json, &w->err);
}

/* ---- agents -------------------------------------------------------------------------- */

static int serve(struct world *w)
{
    return hf_agent_serve(NULL, 1, 1, &w->err);
}

static int agent_sources(struct world *w)
{
    struct hf_agent *none = NULL;
    struct hf_agent_config config = { .size = sizeof(config),
                                      .loop = w->loop,
                                      .store = w->store,
                                      .name = "a",
                                      .source_count = 1 };
    return hf_agent_new(&config, &none, &w->err);
}

static int worker_agents(struct world *w)
{
    struct hf_worker *none = NULL;
    struct hf_worker_config config = {
        .size = sizeof(config), .loop = w->loop, .store = w->store, .agent_count = 1
    };
    return hf_worker_new(&config, &none, &w->err);
}

static int shell_tools(struct world *w)
{
    struct hf_tools *none = NULL;
    struct hf_tools_config config = { .size = sizeof(config), .shell_count = 1 };
    return hf_tools_new(&config, &none, &w->err);
}

static const struct {
    const char *name;
    int (*call)(struct world *w);
} calls[] = {
#define CALL(name)                                                                       \
    {                                                                                    \
#        name, name                                                                      \
    }
    CALL(create),
    CALL(change),
    CALL(outputs),
    CALL(evidence),
    CALL(kinds),
    CALL(statuses),
    CALL(ack),
    CALL(event_types),
    CALL(observers),
    CALL(paths),
    CALL(renewals),
    CALL(agents_of_a_claim),
    CALL(step_records),
    CALL(step_begun),
    CALL(step_settled),
    CALL(step_blobs),
    CALL(step_waits),
    CALL(commit_records),
    CALL(commit_blobs),
    CALL(commit_spent),
    CALL(commit_units),
    CALL(turn_inputs),
    CALL(turn_causes),
    CALL(message_parts),
    CALL(response_parts),
    CALL(tool_results),
    CALL(delivered_committed),
    CALL(delivered_messages),
    CALL(delivered_transient),
    CALL(delivered_causes),
    CALL(result_observations),
    CALL(result_calls),
    CALL(result_images),
    CALL(cell_journal),
    CALL(cell_tools),
    CALL(cell_results),
    CALL(op_records),
    CALL(job_evidence),
    CALL(serve),
    CALL(agent_sources),
    CALL(worker_agents),
    CALL(shell_tools),
};

static void an_array_that_is_missing_is_invalid(void **state)
{
    (void)state;
    struct world w = { .store = NULL };
    const struct hf_store_options options = { .size = sizeof(options),
                                              .inline_mode = true };
    assert_int_equal(hf_store_open(":memory:", &options, &w.store, &w.err), 0);
    assert_int_equal(hf_loop_new(NULL, &w.loop, &w.err), 0);
    assert_int_equal(
        hf_surface_new(NULL, TEXT(""), TEXT("[{\"name\":\"add\"}]"), &w.surface, &w.err),
        0);
    struct hf_turn_config config = { .size = sizeof(config),
                                     .protocol = hf_protocol_standard(),
                                     .surface = w.surface,
                                     .model = "m",
                                     .turn_budget = 4,
                                     .no_progress_budget = 4 };
    assert_int_equal(hf_setup_new(&config, &w.setup, &w.err), 0);
    config.protocol = hf_protocol_code();
    assert_int_equal(hf_setup_new(&config, &w.code_setup, &w.err), 0);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        w.err = (struct hf_err){ 0 };
        int rc = calls[i].call(&w);
        if (rc != HF_EINVAL || w.err.code != HF_EINVAL || !w.err.field[0])
            fail_msg("%s: %d, field \"%s\": %s", calls[i].name, rc, w.err.field,
                     w.err.message);
    }
    hf_setup_free(w.setup);
    hf_setup_free(w.code_setup);
    hf_surface_free(w.surface);
    hf_loop_free(w.loop);
    hf_store_close(w.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_that_is_missing_is_invalid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
