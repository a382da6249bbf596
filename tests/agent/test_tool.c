/* Tools: declarations, arguments, calls on both kinds of thread, time and output limits. */
#include "support/unit.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <holdfast/tool.h>

static struct hf_loop *loop;
static struct hf_toolset *tools;
static sem_t gate;

static struct hf_span span_of(const char *text)
{
    return (struct hf_span){ text, strlen(text) };
}

static int open_all(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    return sem_init(&gate, 0, 0) || hf_loop_new(NULL, &loop, &err) ||
           hf_toolset_new(NULL, &tools, &err);
}

static int close_all(void **state)
{
    (void)state;
    hf_toolset_unref(tools);
    hf_loop_free(loop);
    return sem_destroy(&gate);
}

/* ---- declarations ------------------------------------------------------------------ */

static void answer_five(void *user, struct hf_invocation *call)
{
    (void)user;
    assert_int_equal(hf_invocation_value(call, span_of("5")), 0);
}

static enum hf_probe cannot_tell(void *user, struct hf_invocation *call)
{
    (void)user;
    (void)call;
    return HF_PROBE_CANNOT_TELL;
}

static struct hf_tool tool_named(const char *name)
{
    return (struct hf_tool){ .size = sizeof(struct hf_tool),
                             .name = name,
                             .recovery = HF_RECOVERY_SAFE,
                             .run = answer_five };
}

static void refused(struct hf_tool tool, const char *field, const char *message)
{
    struct hf_err err = { 0 };
    assert_int_equal(hf_toolset_add(tools, &tool, &err), HF_EINVAL);
    assert_string_equal(err.field, field);
    assert_string_equal(err.message, message);
    assert_string_equal(hf_toolset_json(tools).at, "[]");
}

static void a_tool_that_is_not_well_declared_is_refused(void **state)
{
    (void)state;
    struct hf_tool tool = tool_named("a tool");
    refused(tool, "name", "a tool's name has 1 to 64 letters, digits, _ or -");
    tool = tool_named("t");
    tool.recovery = HF_RECOVERY_NONE;
    refused(tool, "recovery", "tool t must declare its class: safe, keyed, probe or ask");
    tool = tool_named("t");
    tool.run = NULL;
    refused(tool, "run", "tool t has no function");
    tool = tool_named("t");
    tool.recovery = HF_RECOVERY_PROBE;
    refused(tool, "probe", "tool t: the class probe, and only it, has a probe function");
    tool = tool_named("t");
    tool.probe = cannot_tell;
    refused(tool, "probe", "tool t: the class probe, and only it, has a probe function");
    tool = tool_named("t");
    tool.schema = span_of("{\"type\":\"text\"}");
    refused(tool, "schema", "#/type must be a type's word or an array of them");
    tool = tool_named("t");
    tool.output_bytes = 1048577;
    refused(tool, "output_bytes", "output_bytes must be 0 to 1048576");
}

static int list_two(void *user, struct hf_toolset *into, struct hf_err *err)
{
    struct hf_tool one = tool_named("one"), two = tool_named("two");
    (void)user;
    one.description = "says \"5\"";
    two.schema = span_of("{\"properties\":{\"n\":{\"type\":\"integer\","
                         "\"pattern\":\"x\"}},\"required\":[\"n\"]}");
    int rc = hf_toolset_add(into, &one, err);
    return rc ? rc : hf_toolset_add(into, &two, err);
}

static void a_source_adds_its_tools_once(void **state)
{
    (void)state;
    struct hf_tool_source source = { NULL, list_two };
    struct hf_err err = { 0 };
    assert_int_equal(hf_toolset_ask(tools, &source, &err), 0);
    assert_string_equal(
        hf_toolset_json(tools).at,
        "[{\"name\":\"one\",\"description\":\"says \\\"5\\\"\",\"parameters\":"
        "{\"type\":\"object\"}},{\"name\":\"two\",\"parameters\":{\"properties\":{\"n\":"
        "{\"type\":\"integer\",\"pattern\":\"x\"}},\"required\":[\"n\"]}}]");
    assert_string_equal(hf_toolset_notice(tools, 0),
                        "two: #/n/pattern is a keyword that is not checked");
    assert_null(hf_toolset_notice(tools, 1));
    assert_int_equal(hf_toolset_ask(tools, &source, &err), HF_EINVAL);
    assert_string_equal(err.message, "there are two tools named one");
}

static void arguments_are_checked_with_their_place(void **state)
{
    (void)state;
    struct hf_tool_source source = { NULL, list_two };
    struct hf_err err = { 0 };
    assert_int_equal(hf_toolset_ask(tools, &source, &err), 0);
    assert_int_equal(hf_toolset_check(tools, "one", span_of("{}"), &err), 0);
    assert_int_equal(hf_toolset_check(tools, "two", span_of("{\"n\":1}"), &err), 0);
    assert_int_equal(hf_toolset_check(tools, "two", span_of("{\"n\":\"1\"}"), &err),
                     HF_EINVAL);
    assert_string_equal(err.message, "/n: must be of type integer");
    assert_int_equal(hf_toolset_check(tools, "two", span_of("{}"), &err), HF_EINVAL);
    assert_string_equal(err.message, "value: must have the member n");
    assert_int_equal(hf_toolset_check(tools, "one", span_of("[]"), &err), HF_EINVAL);
    assert_string_equal(err.message, "value: must be of type object");
    assert_int_equal(hf_toolset_check(tools, "one", span_of("{"), &err), HF_EINVAL);
    assert_int_equal(hf_toolset_check(tools, "three", span_of("{}"), &err), HF_ENOTFOUND);
    assert_string_equal(err.message, "there is no tool named three");
}

/* ---- calls ------------------------------------------------------------------------- */

static char heard[512];

static const char *const probe_words[] = { "cannot tell", "happened", "not happened" };

static void on_done(void *user, const struct hf_invocation_result *result)
{
    const struct hf_tool_result *answer = result->result;
    (void)user;
    assert_string_equal(heard, ""); /* once */
    if (result->timed_out || result->stopped)
        snprintf(heard, sizeof(heard), "%s", result->stopped ? "stopped" : "timed out");
    else if (!answer)
        snprintf(heard, sizeof(heard), "%s", probe_words[result->probe]);
    else if (answer->outcome == HF_TOOL_SUCCESS)
        snprintf(heard, sizeof(heard), "%s value %s", answer->call_id,
                 (const char *)answer->value.at);
    else if (answer->outcome == HF_TOOL_FAILURE)
        snprintf(heard, sizeof(heard), "failure %s %s", answer->failure->code,
                 (const char *)answer->failure->message.at);
    else
        snprintf(heard, sizeof(heard), "unknown %s", (const char *)answer->reason.at);
}

static struct hf_invocation *started(struct hf_tool tool, bool probe)
{
    struct hf_invocation *call = NULL;
    struct hf_err err = { 0 };
    struct hf_invocation_request request = { .size = sizeof(request),
                                             .tools = tools,
                                             .tool = tool.name,
                                             .key = { "s", "t", 3, "c1", 2, 0 },
                                             .args = span_of("{\"n\":1}"),
                                             .probe = probe,
                                             .done = on_done };
    heard[0] = '\0';
    tool.size = sizeof(tool);
    if (hf_toolset_add(tools, &tool, &err) ||
        hf_invocation_start(loop, &request, &call, &err))
        fail_msg("%s", err.message);
    assert_string_equal(heard, "");
    return call;
}

static const char *outcome(struct hf_tool tool, bool probe)
{
    (void)started(tool, probe);
    while (heard[0] == '\0')
        (void)hf_loop_step(loop, -1);
    return heard;
}

static void tell_key(void *user, struct hf_invocation *call)
{
    char text[256];
    const struct hf_invocation_key *key = hf_invocation_key(call);
    (void)user;
    snprintf(text, sizeof(text), "%s %s %d %s %d %s %s", key->session_id, key->turn_id,
             (int)key->effect, key->call_id, (int)key->attempt,
             hf_invocation_key_text(call), (const char *)hf_invocation_args(call).at);
    assert_true(hf_invocation_left_ms(call) > 0 && hf_invocation_left_ms(call) <= 60000);
    assert_false(hf_invocation_stopped(call));
    assert_int_equal(hf_invocation_text(call, span_of(text)), 0);
}

static void a_call_knows_its_key_and_arguments(void **state)
{
    (void)state;
    struct hf_tool tool = { .name = "t", .recovery = HF_RECOVERY_KEYED, .run = tell_key };
    assert_string_equal(outcome(tool, false),
                        "c1 value \"s t 3 c1 2 s/t/3/c1/2 {\\\"n\\\":1}\"");
}

static void *end_elsewhere(void *user)
{
    struct hf_invocation *call = user;
    assert_int_equal(hf_invocation_value(call, span_of("[1]")), 0);
    hf_invocation_end(call);
    return NULL;
}

static pthread_t other;

static void run_elsewhere(void *user, struct hf_invocation *call)
{
    (void)user;
    assert_int_equal(pthread_create(&other, NULL, end_elsewhere, call), 0);
}

static void an_asynchronous_call_is_ended_from_any_thread(void **state)
{
    (void)state;
    struct hf_tool tool = { .name = "t",
                            .recovery = HF_RECOVERY_SAFE,
                            .run = run_elsewhere,
                            .asynchronous = true };
    assert_string_equal(outcome(tool, false), "c1 value [1]");
    assert_int_equal(pthread_join(other, NULL), 0);
}

static void say_nothing(void *user, struct hf_invocation *call)
{
    (void)user;
    assert_int_equal(hf_invocation_value(call, span_of("no JSON")), HF_EINVAL);
    assert_int_equal(hf_invocation_text(call, span_of("\xff")), HF_EINVAL);
}

static void fail_it(void *user, struct hf_invocation *call)
{
    struct hf_failure failure = { .class_ = HF_FAILURE_IO,
                                  .code = "disk",
                                  .message = span_of("no disk") };
    (void)user;
    assert_int_equal(hf_invocation_value(call, span_of("1")), 0);
    assert_int_equal(hf_invocation_fail(call, &failure), 0);
}

static void not_sure(void *user, struct hf_invocation *call)
{
    (void)user;
    assert_int_equal(hf_invocation_unknown(call, "the line was cut"), 0);
}

static void every_kind_of_answer_is_heard(void **state)
{
    (void)state;
    struct hf_tool tool = { .name = "a", .recovery = HF_RECOVERY_SAFE };
    tool.run = say_nothing;
    assert_string_equal(outcome(tool, false),
                        "failure no_answer the tool ended without an answer");
    tool.name = "n";
    tool.recovery = HF_RECOVERY_ASK;
    assert_string_equal(outcome(tool, false), "unknown the tool ended without an answer");
    tool.name = "p";
    tool.recovery = HF_RECOVERY_PROBE;
    tool.probe = cannot_tell;
    assert_string_equal(outcome(tool, false), "unknown the tool ended without an answer");
    tool = (struct hf_tool){ .name = "b", .recovery = HF_RECOVERY_SAFE };
    tool.run = fail_it;
    assert_string_equal(outcome(tool, false), "failure disk no disk");
    tool.name = "c";
    tool.run = not_sure;
    assert_string_equal(outcome(tool, false), "unknown the line was cut");
}

static void talk_much(void *user, struct hf_invocation *call)
{
    (void)user;
    assert_int_equal(hf_invocation_text(call, span_of("abc\xc3\xa4"
                                                      "def")),
                     0);
}

static void list_much(void *user, struct hf_invocation *call)
{
    (void)user;
    assert_int_equal(hf_invocation_value(call, span_of("[1,2,3,4,5]")), 0);
}

static void output_over_the_limit_is_cut_and_says_so(void **state)
{
    (void)state;
    struct hf_tool tool = {
        .name = "a", .recovery = HF_RECOVERY_SAFE, .run = talk_much, .output_bytes = 4
    };
    assert_string_equal(outcome(tool, false),
                        "c1 value \"abc\\n[cut: 5 of 8 bytes are left out]\"");
    tool.name = "b";
    tool.output_bytes = 8;
    assert_string_equal(outcome(tool, false), "c1 value \"abc\xc3\xa4"
                                              "def\"");
    tool.name = "c";
    tool.run = list_much;
    assert_string_equal(outcome(tool, false),
                        "c1 value \"[1,2,3,4\\n[cut: 3 of 11 bytes are left out]\"");
}

/* Stays until the gate opens, and answers too late. */
static void wait_for_gate(void *user, struct hf_invocation *call)
{
    (void)user;
    assert_int_equal(sem_wait(&gate), 0);
    assert_true(hf_invocation_stopped(call));
    assert_int_equal(hf_invocation_left_ms(call), 0);
    assert_int_equal(hf_invocation_value(call, span_of("1")), 0);
}

static void a_blocking_call_out_of_time_is_reported_while_it_runs(void **state)
{
    (void)state;
    struct hf_tool tool = {
        .name = "t", .recovery = HF_RECOVERY_ASK, .run = wait_for_gate, .timeout_ms = 5
    };
    assert_string_equal(outcome(tool, false), "timed out");
    assert_int_equal(sem_post(&gate), 0);
    while (hf_loop_step(loop, -1)) /* until the thread has returned */
        ;
    assert_string_equal(heard, "timed out");
}

static struct hf_invocation *open_call;
static int stops;

static void keep_open(void *user, struct hf_invocation *call)
{
    (void)user;
    open_call = call;
}

static void on_stop(void *user, struct hf_invocation *call)
{
    (void)user;
    assert_true(hf_invocation_stopped(call));
    stops++;
}

static void an_asynchronous_call_is_told_to_stop(void **state)
{
    (void)state;
    struct hf_tool tool = { .name = "t",
                            .recovery = HF_RECOVERY_SAFE,
                            .run = keep_open,
                            .asynchronous = true,
                            .stop = on_stop };
    stops = 0;
    struct hf_invocation *call = started(tool, false);
    assert_ptr_equal(call, open_call);
    hf_invocation_stop(call);
    assert_int_equal(stops, 1);
    assert_string_equal(heard, "");
    while (heard[0] == '\0')
        (void)hf_loop_step(loop, -1);
    assert_string_equal(heard, "stopped");
    assert_int_equal(stops, 1);
    hf_invocation_end(call); /* the tool's side is through now */
    while (hf_loop_step(loop, -1))
        ;
}

static enum hf_probe it_happened(void *user, struct hf_invocation *call)
{
    const bool *with_answer = user;
    if (*with_answer)
        assert_int_equal(hf_invocation_value(call, span_of("7")), 0);
    return HF_PROBE_HAPPENED;
}

static enum hf_probe it_did_not(void *user, struct hf_invocation *call)
{
    (void)user;
    (void)call;
    return HF_PROBE_NOT_HAPPENED;
}

static void a_probe_tells_whether_a_call_happened(void **state)
{
    (void)state;
    bool with_answer = true;
    struct hf_tool tool = { .name = "a",
                            .recovery = HF_RECOVERY_PROBE,
                            .run = answer_five,
                            .probe = it_happened,
                            .user = &with_answer };
    assert_string_equal(outcome(tool, true), "c1 value 7");
    tool.name = "b";
    with_answer = false;
    assert_string_equal(outcome(tool, true), "cannot tell"); /* it has no result */
    tool.name = "c";
    tool.probe = it_did_not;
    assert_string_equal(outcome(tool, true), "not happened");
    tool.name = "d";
    tool.probe = cannot_tell;
    assert_string_equal(outcome(tool, true), "cannot tell");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_tool_that_is_not_well_declared_is_refused),
        CASE(a_source_adds_its_tools_once),
        CASE(arguments_are_checked_with_their_place),
        CASE(a_call_knows_its_key_and_arguments),
        CASE(an_asynchronous_call_is_ended_from_any_thread),
        CASE(every_kind_of_answer_is_heard),
        CASE(output_over_the_limit_is_cut_and_says_so),
        CASE(a_blocking_call_out_of_time_is_reported_while_it_runs),
        CASE(an_asynchronous_call_is_told_to_stop),
        CASE(a_probe_tells_whether_a_call_happened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
