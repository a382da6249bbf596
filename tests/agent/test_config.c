/* Configuration files: what becomes of each key, and what is named when one is wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/bounds.h>
#include <holdfast/config.h>

#include "agent/kit.h"

#define MAIN                                                                             \
    "[provider.main]\nkind = 'openai-chat'\nbase_url = 'https://api.example/v1'\n"
#define SMALL                                                                            \
    "[model.small]\nprovider = \"main\"\ncontext_tokens = 1000\noutput_tokens = 100\n"

static struct hf_config *read_config(const char *text)
{
    struct hf_config *config = NULL;
    struct hf_err err = { 0 };
    if (hf_config_read(span(text), &config, &err))
        fail_msg("%s", err.message);
    return config;
}

static void refuse(const char *text, const char *says)
{
    struct hf_config *config = NULL;
    struct hf_err err = { 0 };
    assert_int_equal(hf_config_read(span(text), &config, &err), HF_EINVAL);
    if (!strstr(err.message, says))
        fail_msg("\"%s\" does not say \"%s\"", err.message, says);
    assert_null(strstr(err.message, "CANARY"));
}

static void every_key_of_a_provider_gets_to_its_struct(void **state)
{
    (void)state;
    struct hf_config *config = read_config(
        "[provider.main]\nkind = 'anthropic-messages'\nbase_url = 'https://a.example'\n"
        "ca_file = '/ca.pem'\nstart_timeout = '1s'\ngap_timeout = '2500ms'\n"
        "whole_timeout = 'none'\ntoken_field = 'max_completion_tokens'\n"
        "omit = ['seed', 'temperature']\nno_stream_usage = true\nmax_tokens = 512\n");
    struct hf_http_config http;
    struct hf_endpoint endpoint;
    struct hf_err err = { 0 };
    assert_int_equal(hf_config_endpoint(config, "main", &http, &endpoint, &err), 0);
    assert_int_equal(http.size, sizeof(http));
    assert_string_equal(http.ca_file, "/ca.pem");
    assert_int_equal(http.start_ms, 1000);
    assert_int_equal(http.gap_ms, 2500);
    assert_int_equal(http.whole_ms, -1);
    assert_int_equal(endpoint.size, sizeof(endpoint));
    assert_string_equal(endpoint.name, "main");
    assert_string_equal(endpoint.kind, "anthropic-messages");
    assert_string_equal(endpoint.base_url, "https://a.example");
    assert_string_equal(endpoint.token_field, "max_completion_tokens");
    assert_int_equal(endpoint.omit, 1u << HF_OPTION_SEED | 1u << HF_OPTION_TEMPERATURE);
    assert_true(endpoint.no_stream_usage);
    assert_int_equal(endpoint.max_tokens, 512);
    assert_null(endpoint.key);
    hf_config_free(config);
}

static void every_key_of_a_model_gets_to_its_struct(void **state)
{
    (void)state;
    struct hf_config *config = read_config(
        SMALL "id = \"m-1\"\nroute = \"r\"\nmax_output_tokens = 50\ntemperature = 0.25\n"
              "seed = -7\nstop = [\"a\\n\", \"b\"]\nreasoning = \"low\"\n"
              "parallel_tools = false\nstream = true\n" MAIN);
    struct hf_model_config model;
    const char *provider = NULL;
    struct hf_err err = { 0 };
    assert_int_equal(hf_config_model(config, "small", &model, &provider, &err), 0);
    assert_string_equal(provider, "main");
    assert_string_equal(model.id, "m-1");
    assert_string_equal(model.route, "r");
    assert_int_equal(model.context_tokens, 1000);
    assert_int_equal(model.output_tokens, 100);
    assert_string_equal(model.options.at,
                        "{\"max_output_tokens\":50,\"temperature\":0.25,\"seed\":-7,"
                        "\"stop\":[\"a\\n\",\"b\"],\"reasoning\":\"low\","
                        "\"parallel_tools\":false,\"stream\":true}");
    hf_config_free(config);
}

#define HELPER "[agent.helper]\nmodel = 'small'\n"
#define TODAY "[tool.today]\ncommand = ['date', '+%F']\ndescription = 'The date.'\n"

static void every_key_of_an_agent_gets_to_its_struct(void **state)
{
    (void)state;
    struct hf_config *config = read_config(
        HELPER "prompt = 'Be brief.'\ntools = ['today', 'read_file', 'fetch_url']\n"
               "root = 'files'\nallow = ['127.0.0.1']\nturn_budget = 7\n"
               "no_progress_budget = 3\nprotocol = 'standard'\n" TODAY
               "recovery = 'safe'\n" MAIN SMALL);
    struct hf_agent_entry agent;
    struct hf_err err = { 0 };
    assert_int_equal(hf_config_agent(config, "helper", &agent, &err), 0);
    assert_string_equal(agent.name, "helper");
    assert_string_equal(agent.model, "small");
    assert_string_equal(agent.prompt, "Be brief.");
    assert_null(agent.prompt_file);
    assert_string_equal(agent.tools[0], "today");
    assert_string_equal(agent.tools[2], "fetch_url");
    assert_null(agent.tools[3]);
    assert_string_equal(agent.root, "files");
    assert_string_equal(agent.allow[0], "127.0.0.1");
    assert_int_equal(agent.turn_budget, 7);
    assert_int_equal(agent.no_progress_budget, 3);
    assert_string_equal(hf_config_name(config, HF_CONFIG_AGENT, 0), "helper");
    assert_int_equal(hf_config_agent(config, "helpr", &agent, &err), HF_ENOTFOUND);
    assert_string_equal(err.message,
                        "the configuration has no [agent.helpr]; did you mean helper?");
    hf_config_free(config);
}

static void every_key_of_a_tool_gets_to_its_struct(void **state)
{
    (void)state;
    struct hf_config *config = read_config(
        TODAY "recovery = 'probe'\nprobe = ['ask']\ninput = 'flags'\n"
              "schema = '{\"type\":\"object\"}'\nenv = ['A=1']\npass_env = ['PATH']\n"
              "folder = '/tmp'\ntimeout = '5s'\noutput_bytes = 100\n");
    struct hf_shell_tool tool;
    struct hf_err err = { 0 };
    assert_int_equal(hf_config_tool(config, "today", &tool, &err), 0);
    assert_int_equal(tool.size, sizeof(tool));
    assert_string_equal(tool.name, "today");
    assert_string_equal(tool.description, "The date.");
    assert_string_equal(tool.argv[1], "+%F");
    assert_null(tool.argv[2]);
    assert_string_equal(tool.probe_argv[0], "ask");
    assert_int_equal(tool.recovery, HF_RECOVERY_PROBE);
    assert_true(tool.flags);
    assert_string_equal(tool.schema.at, "{\"type\":\"object\"}");
    assert_string_equal(tool.env[0], "A=1");
    assert_string_equal(tool.pass_env[0], "PATH");
    assert_string_equal(tool.folder, "/tmp");
    assert_int_equal(tool.timeout_ms, 5000);
    assert_int_equal(tool.output_bytes, 100);
    hf_config_free(config);
}

#define PAY TODAY "recovery = 'ask'\n"
#define RULE "{\"/amount\":{\"minimum\":100}}"

static void approvals_of_commands_and_of_builtin_tools_get_to_their_structs(void **state)
{
    (void)state;
    struct hf_config *config = read_config(
        PAY "approve = '" RULE "'\napprove_question = 'May it?'\napprove_by = 'anna'\n"
            "approve_within = '10m'\napprove_otherwise = 'fail_turn'\n"
            "[tool.run_command]\napprove = 'always'\n");
    struct hf_approval approval = hf_config_approval(config, "today");
    assert_string_equal(approval.rule, RULE);
    assert_string_equal(approval.question, "May it?");
    assert_string_equal(approval.terms.answerer, "anna");
    assert_int_equal(approval.terms.within_ms, 600000);
    assert_int_equal(approval.terms.at_deadline, HF_AT_DEADLINE_FAIL_TURN);
    approval = hf_config_approval(config, "run_command");
    assert_string_equal(approval.rule, "always");
    assert_int_equal(approval.terms.at_deadline, HF_AT_DEADLINE_NONE);
    assert_null(hf_config_approval(config, "read_file").rule);
    hf_config_free(config);
}

static void an_approval_that_cannot_work_is_named_with_its_key(void **state)
{
    static const char *const rules[] = {
        "alway", "", "{", "{}", "[]", "{\"amount\":{}}", "{\"/amount\":1}", "{\"/~2\":{}}"
    };
    char text[512];
    (void)state;
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        (void)snprintf(text, sizeof(text), "%sapprove = '%s'\n", PAY, rules[i]);
        refuse(text, "[tool.today]: approve is \"never\", \"always\", or a rule such as");
    }
    refuse("[tool.write_file]\napprove = 'maybe'\n", "[tool.write_file]: approve is ");
    refuse(PAY "approve = true\n",
           "approve must be a string: calls that need an approval: never, always, or a "
           "rule");
    refuse(PAY "approve_by = 'anna'\n", "need the key approve");
    refuse(PAY "approve = 'always'\napprove_otherwise = 'next'\n",
           "approve_otherwise is deny, approve, result or fail_turn, and not next");
    refuse(PAY "approve = 'always'\napprove_within = 'soon'\n",
           "a duration such as \"90s\" is needed for approve_within");
    refuse(PAY "aprove = 'always'\n", "unknown key aprove; did you mean approve?");
    refuse("[tool.run_command]\napprove = 'always'\ntimeout = '1s'\n",
           "its table takes approve and the like, and not timeout");
}

static void an_agent_or_a_tool_that_cannot_work_is_named(void **state)
{
    (void)state;
    refuse("[agent.a]\nprompt = 'x'\n", "[agent.a]: this table needs the key model");
    refuse(MAIN SMALL "[agent.a]\nmodel = 'smal'\n",
           "[agent.a]: there is no [model.smal]; did you mean small?");
    refuse(MAIN SMALL HELPER "prompt = 'a'\nprompt_file = 'b'\n",
           "[agent.helper]: prompt and prompt_file exclude each other");
    refuse(MAIN SMALL HELPER "tools = ['today']\n",
           "[agent.helper]: there is no tool today: write a [tool.today]");
    refuse(MAIN SMALL HELPER "tools = ['read_fil']\nroot = '/'\n",
           "[agent.helper]: there is no tool read_fil; did you mean read_file?");
    refuse(MAIN SMALL HELPER "tools = ['read_file']\n",
           "the key root (a folder) is needed for the tool read_file");
    refuse(MAIN SMALL HELPER "tools = ['fetch_url', 'fetch_url']\n",
           "tools names this tool twice: fetch_url");
    refuse(MAIN SMALL HELPER "protocol = 'code'\n", "protocol must be standard");
    refuse(MAIN SMALL HELPER "tools = [1]\n", "strings are the items of tools");
    refuse(TODAY, "[tool.today]: this table needs the key recovery");
    refuse(TODAY "recovery = 'maybe'\n", "recovery must be safe, keyed, probe or ask");
    refuse(TODAY "recovery = 'probe'\n", "the class probe needs the key probe");
    refuse(TODAY "recovery = 'safe'\ninput = 'args'\n", "input must be stdin or flags");
    refuse(TODAY "recovery = 'safe'\nschema = '{'\n", "[tool.today]: ");
    refuse("[tool.read_file]\ncommand = ['x']\ndescription = 'x'\nrecovery = 'safe'\n",
           "a built-in tool has this name");
    refuse("[tool.x]\ncommand = []\ndescription = 'x'\nrecovery = 'safe'\n",
           "command names no program");
    refuse("[tool.'a b']\ncommand = ['x']\ndescription = 'x'\nrecovery = 'safe'\n",
           "[tool.a b]: ");
}

static void names_are_listed_in_the_order_of_the_file(void **state)
{
    (void)state;
    struct hf_config *config = read_config(
        MAIN SMALL "[provider.\"b c\"]\nkind = 'openai-chat'\n"
                   "base_url = 'http://localhost'\nkey_env = 'B_KEY'\n");
    struct hf_config_shown shown;
    assert_string_equal(hf_config_name(config, HF_CONFIG_PROVIDER, 0), "main");
    assert_string_equal(hf_config_name(config, HF_CONFIG_PROVIDER, 1), "b c");
    assert_null(hf_config_name(config, HF_CONFIG_PROVIDER, 2));
    assert_string_equal(hf_config_name(config, HF_CONFIG_MODEL, 0), "small");
    assert_null(hf_config_name(config, HF_CONFIG_MODEL, 1));
    assert_true(hf_config_show(config, 0, &shown));
    assert_string_equal(shown.key, "none");
    assert_true(hf_config_show(config, 1, &shown));
    assert_string_equal(shown.key, "env B_KEY");
    assert_string_equal(shown.base_url, "http://localhost");
    assert_false(hf_config_show(config, 2, &shown));
    hf_config_free(config);
}

static void a_key_is_read_when_it_is_needed_and_once(void **state)
{
    (void)state;
    struct hf_config *config = read_config(MAIN "key_env = 'HF_TEST_KEY'\n");
    struct hf_http_config http;
    struct hf_endpoint endpoint;
    struct hf_err err = { 0 };
    unsetenv("HF_TEST_KEY");
    assert_int_equal(hf_config_endpoint(config, "main", &http, &endpoint, &err),
                     HF_ENOTFOUND);
    assert_non_null(strstr(err.message, "[secret:main]"));
    setenv("HF_TEST_KEY", "sk-CANARY", 1);
    assert_int_equal(hf_config_endpoint(config, "main", &http, &endpoint, &err), 0);
    const struct hf_secret *key = endpoint.key;
    assert_string_equal(hf_secret_text(key), "[secret:main]");
    unsetenv("HF_TEST_KEY");
    assert_int_equal(hf_config_endpoint(config, "main", &http, &endpoint, &err), 0);
    assert_ptr_equal(endpoint.key, key);
    hf_config_free(config);
}

static void an_unknown_word_is_named_with_the_nearest_known(void **state)
{
    (void)state;
    refuse("[provder.main]",
           "line 1: unknown table [provder]; did you mean [provider.NAME]?");
    refuse("[zzz.main]", "line 1: unknown table [zzz]; there are [provider.NAME]");
    refuse(MAIN "bse_url = 'x'",
           "line 4: [provider.main]: unknown key bse_url; did you mean base_url?");
    refuse(MAIN "api_key = 'sk-CANARY'", "unknown key api_key");
    refuse(MAIN "omit = ['sed']",
           "line 4: [provider.main]: unknown option sed; did you mean seed?");
    refuse(MAIN "[model.a]\nprovider = 'mian'\ncontext_tokens = 9\noutput_tokens = 1",
           "[model.a]: there is no [provider.mian]; did you mean main?");
    struct hf_config *config = read_config(MAIN SMALL);
    struct hf_http_config http;
    struct hf_endpoint endpoint;
    struct hf_model_config model;
    const char *provider = NULL;
    struct hf_err err = { 0 };
    assert_int_equal(hf_config_endpoint(config, "mian", &http, &endpoint, &err),
                     HF_ENOTFOUND);
    assert_string_equal(err.message,
                        "the configuration has no [provider.mian]; did you mean main?");
    assert_int_equal(hf_config_model(config, "x", &model, &provider, &err), HF_ENOTFOUND);
    assert_string_equal(err.message, "the configuration has no [model.x]");
    hf_config_free(config);
}

static void what_is_wrong_with_a_table_is_named(void **state)
{
    (void)state;
    refuse("a = 1", "line 1: the key a is in no table");
    refuse("[provider]", "line 1: write [provider.NAME]");
    refuse("[provider.main]\nkind = 'openai-chat'", "this table needs the key base_url");
    refuse(MAIN "[model.a]\nprovider = 'main'",
           "this table needs the key context_tokens");
    refuse(MAIN "max_tokens = 'CANARY'",
           "line 4: [provider.main]: max_tokens must be an integer");
    refuse(MAIN "start_timeout = '0s'",
           "a duration such as \"90s\" is needed for start_timeout");
    refuse(MAIN "gap_timeout = 'none'", "is needed for gap_timeout");
    refuse(MAIN "key_env = 'A'\nkey_file = 'B'", "can have only one of key_file");
    refuse("[provider.main]\nkind = 'chat'\nbase_url = 'https://a'",
           "a provider is of kind openai-chat or anthropic-messages");
    refuse("[provider.main]\nkind = 'openai-chat'\nbase_url = 'https://me:CANARY@a'",
           "no user or password");
    refuse("[provider.main]\nkind = 'openai-chat'\nbase_url = 'https://a/?x=CANARY'",
           "no ? and no #");
    refuse("[provider.main]\nkind = 'openai-chat'\nbase_url = 'ftp://a'",
           "[provider.main]");
    refuse(MAIN SMALL "temperature = 'CANARY'", "temperature");
    refuse(MAIN SMALL "stop = []", "stop");
    refuse(MAIN SMALL "max_output_tokens = 101",
           "max_output_tokens is above the model's output_tokens");
    refuse(MAIN "[model.a]\nprovider = 'main'\ncontext_tokens = 10\noutput_tokens = 10",
           "output_tokens must be above 0 and below context_tokens");
}

static void a_file_over_the_limit_is_refused(void **state)
{
    (void)state;
    struct hf_config *config = NULL;
    struct hf_err err = { 0 };
    size_t len = (size_t)HF_MAX_CONFIG_BYTES + 1;
    char *text = malloc(len);
    memset(text, '\n', len);
    assert_int_equal(hf_config_read((struct hf_span){ text, len - 1 }, &config, &err), 0);
    hf_config_free(config);
    assert_int_equal(hf_config_read((struct hf_span){ text, len }, &config, &err),
                     HF_ETOOBIG);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_of_a_provider_gets_to_its_struct),
        cmocka_unit_test(every_key_of_a_model_gets_to_its_struct),
        cmocka_unit_test(every_key_of_an_agent_gets_to_its_struct),
        cmocka_unit_test(every_key_of_a_tool_gets_to_its_struct),
        cmocka_unit_test(approvals_of_commands_and_of_builtin_tools_get_to_their_structs),
        cmocka_unit_test(an_approval_that_cannot_work_is_named_with_its_key),
        cmocka_unit_test(an_agent_or_a_tool_that_cannot_work_is_named),
        cmocka_unit_test(names_are_listed_in_the_order_of_the_file),
        cmocka_unit_test(a_key_is_read_when_it_is_needed_and_once),
        cmocka_unit_test(an_unknown_word_is_named_with_the_nearest_known),
        cmocka_unit_test(what_is_wrong_with_a_table_is_named),
        cmocka_unit_test(a_file_over_the_limit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
