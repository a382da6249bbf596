/* Every key of a configuration file: one table for people, one for where values go. */
#include <stddef.h>

#include "agent/config/config.h"

/* P, M, A and T: name, field, type, needed, member, meaning. O: name, type, option, meaning. */
#define PROVIDER_KEYS(P)                                                                 \
    P("kind", TEXT, "string", true, endpoint.kind, "openai-chat or anthropic-messages")  \
    P("base_url", TEXT, "string", true, endpoint.base_url,                               \
      "base URL, without /chat/completions or /v1/messages")                             \
    P("key_file", TEXT, "string", false, key_from[HF_SECRET_FILE],                       \
      "the key is in this file, which only its owner may read")                          \
    P("key_env", TEXT, "string", false, key_from[HF_SECRET_ENV],                         \
      "the key is in this variable of the environment")                                  \
    P("key_command", TEXT, "string", false, key_from[HF_SECRET_COMMAND],                 \
      "this command prints the key; it is run without a shell")                          \
    P("key_credential", TEXT, "string", false, key_from[HF_SECRET_CREDENTIAL],           \
      "the key is this credential of systemd")                                           \
    P("ca_file", TEXT, "string", false, http.ca_file,                                    \
      "certificates to trust instead of the system's")                                   \
    P("start_timeout", DURATION, "duration", false, http.start_ms,                       \
      "until the head of a response (120s)")                                             \
    P("gap_timeout", DURATION, "duration", false, http.gap_ms,                           \
      "between two pieces of a response (120s)")                                         \
    P("whole_timeout", DURATION, "duration", false, http.whole_ms,                       \
      "for a whole call (300s); \"none\": no limit")                                     \
    P("token_field", TEXT, "string", false, endpoint.token_field,                        \
      "openai-chat: the field that max_output_tokens is sent as (max_tokens)")           \
    P("omit", OMIT, "array", false, endpoint.omit,                                       \
      "options of models that the endpoint does not have and are not sent")              \
    P("no_stream_usage", FLAG, "boolean", false, endpoint.no_stream_usage,               \
      "openai-chat: the endpoint refuses stream_options (false)")                        \
    P("max_tokens", COUNT, "integer", false, endpoint.max_tokens,                        \
      "anthropic-messages: used if omit names max_output_tokens (32768)")

#define MODEL_KEYS(M, O)                                                                 \
    M("provider", TEXT, "string", true, provider, "the NAME of a [provider.NAME]")       \
    M("id", TEXT, "string", false, config.id,                                            \
      "as the endpoint names the model (the name of the table)")                         \
    M("context_tokens", COUNT, "integer", true, config.context_tokens,                   \
      "tokens of a request and its answer together")                                     \
    M("output_tokens", COUNT, "integer", true, config.output_tokens,                     \
      "most tokens that the model can write; below context_tokens")                      \
    M("route", TEXT, "string", false, config.route,                                      \
      "models with the same route share opaque reasoning data (PROVIDER/ID)")            \
    O("max_output_tokens", "integer", MAX_OUTPUT_TOKENS,                                 \
      "most tokens that a request asks for (output_tokens)")                             \
    O("temperature", "number", TEMPERATURE, "0 or above")                                \
    O("seed", "integer", SEED, "for endpoints that take one")                            \
    O("stop", "array", STOP, "1 to 16 texts at which the model is to stop")              \
    O("reasoning", "string", REASONING, "none, minimal, low, medium or high")            \
    O("parallel_tools", "boolean", PARALLEL_TOOLS,                                       \
      "whether several tools may be called at once")                                     \
    O("stream", "boolean", STREAM, "whether the answer comes as a stream (true)")        \
    O("images", "boolean", IMAGES,                                                       \
      "whether it takes images (true); otherwise it reads a note for each")

#define AGENT_KEYS(A)                                                                    \
    A("model", TEXT, "string", true, shown.model, "the NAME of a [model.NAME]")          \
    A("prompt", TEXT, "string", false, shown.prompt,                                     \
      "system prompt of the agent; or prompt_file")                                      \
    A("prompt_file", TEXT, "string", false, shown.prompt_file,                           \
      "a file with the prompt; relative to the folder of this file")                     \
    A("tools", LIST, "array", false, shown.tools,                                        \
      "tools of the agent: the NAME of a [tool.NAME], or a built-in tool")               \
    A("root", TEXT, "string", false, shown.root,                                         \
      "the folder of the built-in file tools and of run_command")                        \
    A("allow", LIST, "array", false, shown.allow,                                        \
      "hosts that fetch_url may reach although a rule refuses their address")            \
    A("turn_budget", COUNT, "integer", false, shown.turn_budget,                         \
      "most model calls of one turn (50)")                                               \
    A("no_progress_budget", COUNT, "integer", false, shown.no_progress_budget,           \
      "failed attempts in a row that end a turn (12)")                                   \
    A("protocol", TEXT, "string", false, protocol, "standard (standard)")

#define TOOL_KEYS(T)                                                                     \
    T("command", LIST, "array", true, shown.argv,                                        \
      "a program and its arguments; no shell is between")                                \
    T("description", TEXT, "string", true, shown.description, "for the model")           \
    T("recovery", TEXT, "string", true, recovery,                                        \
      "what happens if its worker dies: safe, keyed, probe or ask")                      \
    T("schema", TEXT, "string", false, schema,                                           \
      "JSON Schema of the arguments (any object)")                                       \
    T("input", TEXT, "string", false, input,                                             \
      "where the arguments go: stdin, as JSON, or flags (stdin)")                        \
    T("probe", LIST, "array", false, shown.probe_argv,                                   \
      "for recovery probe: a command that tells whether a call happened")                \
    T("env", LIST, "array", false, shown.env, "its environment: \"NAME=VALUE\"")         \
    T("pass_env", LIST, "array", false, shown.pass_env,                                  \
      "variables that it gets from the worker's environment")                            \
    T("folder", TEXT, "string", false, shown.folder,                                     \
      "working folder (root of the agent)")                                              \
    T("timeout", DURATION, "duration", false, shown.timeout_ms, "of one call (60s)")     \
    T("output_bytes", COUNT, "integer", false, shown.output_bytes,                       \
      "bytes of its output that are kept (16384)")                                       \
    T("approve", TEXT, "string", false, shown.approval.rule,                             \
      "calls that need an approval: never, always, or a rule in JSON (never)")           \
    T("approve_question", TEXT, "string", false, shown.approval.question,                \
      "what is asked (May NAME be called?)")                                             \
    T("approve_by", TEXT, "string", false, shown.approval.terms.answerer,                \
      "the name of the actor that may answer (any)")                                     \
    T("approve_within", DURATION, "duration", false, shown.approval.terms.within_ms,     \
      "how long an answer is waited for (policy: 24h)")                                  \
    T("approve_otherwise", TEXT, "string", false, approve_otherwise,                     \
      "what an unanswered call does: deny, approve, result or fail_turn (deny)")

#define P(name, field, type, needed, member, what)                                       \
    { "provider", (name), (type), (needed), (what) },
#define M(name, field, type, needed, member, what)                                       \
    { "model", (name), (type), (needed), (what) },
#define O(name, type, option, what) { "model", (name), (type), false, (what) },
#define A(name, field, type, needed, member, what)                                       \
    { "agent", (name), (type), (needed), (what) },
#define T(name, field, type, needed, member, what)                                       \
    { "tool", (name), (type), (needed), (what) },
static const struct hf_config_key keys[] = { PROVIDER_KEYS(P) MODEL_KEYS(M, O)
                                                 AGENT_KEYS(A) TOOL_KEYS(T) };
#undef P
#undef M
#undef O
#undef A
#undef T

/* Where the value of each key goes. */
#define P(name, field, type, needed, member, what)                                       \
    { field, offsetof(struct provider, member) },
#define M(name, field, type, needed, member, what)                                       \
    { field, offsetof(struct model, member) },
#define O(name, type, option, what)                                                      \
    { OPTION, offsetof(struct model, options) +                                          \
                  HF_OPTION_##option * sizeof(struct hf_toml_value) },
#define A(name, field, type, needed, member, what)                                       \
    { field, offsetof(struct agent, member) },
#define T(name, field, type, needed, member, what)                                       \
    { field, offsetof(struct config_tool, member) },
static const struct config_place places[] = { PROVIDER_KEYS(P) MODEL_KEYS(M, O)
                                                  AGENT_KEYS(A) TOOL_KEYS(T) };
#undef P
#undef M
#undef O
#undef A
#undef T

const struct hf_config_key *hf_config_keys(size_t *ret_count)
{
    *ret_count = sizeof(keys) / sizeof(keys[0]);
    return keys;
}

const struct config_place *config_place(size_t i)
{
    return &places[i];
}
