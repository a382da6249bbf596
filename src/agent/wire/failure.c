/* See failure.h. Structured evidence comes before text: the words of an error object, then
 * phrases in its message, then words that say little, then the status. */
#include "agent/wire/failure.h"

#include <string.h>

#include "base/json_walk.h"
#include "base/text.h"

/* One verdict. `refused`: the server says that it did not begin to work, so that a repeat
 * cannot be charged twice. */
struct verdict {
    enum hf_llm_failure kind;
    bool transient;
    bool refused;
    const char *code;
    const char *message;
};

/* clang-format off */
static const struct verdict by_transport[HF_HTTP_FAULT_COUNT] = {
    [HF_HTTP_NONE] =    { HF_LLM_UNKNOWN,   true,  false, "unknown",           "the call failed" },
    [HF_HTTP_CONNECT] = { HF_LLM_TRANSPORT, true,  false, "connect_failed",    "no connection to the endpoint" },
    [HF_HTTP_TLS] =     { HF_LLM_TRANSPORT, false, false, "tls_untrusted",
          "the endpoint's certificate is not trusted" },
    [HF_HTTP_CUT] =     { HF_LLM_TRANSPORT, true,  false, "connection_lost",   "the connection was lost" },
    [HF_HTTP_START] =   { HF_LLM_TIMEOUT,   true,  false, "start_timeout",
          "the endpoint did not begin to answer in time" },
    [HF_HTTP_GAP] =     { HF_LLM_TIMEOUT,   true,  false, "gap_timeout",
          "the endpoint was silent for too long" },
    [HF_HTTP_WHOLE] =   { HF_LLM_TIMEOUT,   true,  false, "whole_timeout",     "the call took too long" },
    [HF_HTTP_LARGE] =   { HF_LLM_STREAM,    false, false, "sse_response_too_large",
          "the response is over the limit" },
    [HF_HTTP_NOMEM] =   { HF_LLM_UNKNOWN,   true,  false, "out_of_memory",     "out of memory" },
};

static const struct verdict by_source[] = {
    [HF_FAULT_JSON] =     { HF_LLM_UNKNOWN, false, false, "bad_json",
          "the endpoint sent something that is not the JSON of this protocol" },
    [HF_FAULT_EVENT] =    { HF_LLM_STREAM,  false, false, "sse_event_too_large",
          "one event of the stream is over the limit" },
    [HF_FAULT_RESPONSE] = { HF_LLM_STREAM,  false, false, "sse_response_too_large",
          "the response is over the limit" },
    [HF_FAULT_PARTS] =    { HF_LLM_STREAM,  false, false, "too_many_parts",     "the response has too many parts" },
    [HF_FAULT_ENDED] =    { HF_LLM_STREAM,  true,  false, "ended_early",
          "the stream ended without its last event" },
    [HF_FAULT_IDENTITY] = { HF_LLM_STREAM,  false, false, "identity_changed",
          "an id or the model changed within the stream" },
    [HF_FAULT_MEMORY] =   { HF_LLM_UNKNOWN, true,  false, "out_of_memory",      "out of memory" },
};

#define QUOTA    { HF_LLM_QUOTA,       false, false, "quota_exhausted",   "the account's quota or credit is used up" }
#define RATE     { HF_LLM_QUOTA,       true,  true,  "rate_limited",      "the endpoint's rate limit is reached" }
#define OVERFLOW { HF_LLM_VALIDATION,  false, false, "context_overflow", \
          "the request is longer than the model's context" }
#define FILTER   { HF_LLM_VALIDATION,  false, false, "content_filter", \
          "the endpoint's content filter refused the request" }
#define MODEL    { HF_LLM_UNSUPPORTED, false, false, "model_unsupported", \
          "the endpoint does not have this model or feature" }
#define AUTH     { HF_LLM_AUTH,        false, false, "auth_refused",      "the endpoint refused the key" }
#define INVALID  { HF_LLM_VALIDATION,  false, false, "request_refused", \
          "the endpoint refused the request as invalid" }
#define BUSY     { HF_LLM_HTTP,        true,  true,  "overloaded",        "the endpoint is overloaded" }
#define BROKEN   { HF_LLM_HTTP,        true,  false, "server_error",      "the endpoint failed" }
#define SLOW     { HF_LLM_TIMEOUT,     true,  false, "server_timeout",    "the endpoint reported a timeout of its own" }

/* The words of `error.code` and `error.type`. A vague one is asked last. */
static const struct {
    const char *word;
    bool vague;
    struct verdict verdict;
} by_word[] = {
    { "insufficient_quota",         false, QUOTA },
    { "billing_hard_limit_reached", false, QUOTA },
    { "billing_not_active",         false, QUOTA },
    { "billing_error",              false, QUOTA },
    { "usage_limit_reached",        false, QUOTA },
    { "rate_limit_exceeded",        false, RATE },
    { "rate_limit_error",           true,  RATE },
    { "tokens",                     true,  RATE },
    { "requests",                   true,  RATE },
    { "context_length_exceeded",    false, OVERFLOW },
    { "string_above_max_length",    false, OVERFLOW },
    { "content_filter",             false, FILTER },
    { "content_policy_violation",   false, FILTER },
    { "model_not_found",            false, MODEL },
    { "unsupported_model",          false, MODEL },
    { "unsupported_parameter",      false, MODEL },
    { "unsupported_value",          false, MODEL },
    { "not_found_error",            false, MODEL },
    { "invalid_api_key",            false, AUTH },
    { "authentication_error",       false, AUTH },
    { "permission_error",           false, AUTH },
    { "overloaded_error",           false, BUSY },
    { "engine_overloaded",          false, BUSY },
    { "server_overloaded",          false, BUSY },
    { "request_too_large",          false, INVALID },
    { "invalid_request_error",      true,  INVALID },
    { "timeout_error",              false, SLOW },
    { "api_error",                  true,  BROKEN },
    { "server_error",               true,  BROKEN },
    { "internal_server_error",      true,  BROKEN },
};

/* Phrases in a message, in lower case. One about a rate is never about length. */
static const struct {
    const char *phrase;
    bool about_length;
    struct verdict verdict;
} by_phrase[] = {
    { "insufficient_quota",           false, QUOTA },
    { "exceeded your current quota",  false, QUOTA },
    { "credit balance is too low",    false, QUOTA },
    { "usage limit",                  false, QUOTA },
    { "requests per day",             false, QUOTA },
    { "daily limit",                  false, QUOTA },
    { "maximum context length",       true,  OVERFLOW },
    { "context length",               true,  OVERFLOW },
    { "context window",               true,  OVERFLOW },
    { "context size",                 true,  OVERFLOW },
    { "prompt is too long",           true,  OVERFLOW },
    { "input is too long",            true,  OVERFLOW },
    { "too many tokens",              true,  OVERFLOW },
    { "content filter",               false, FILTER },
    { "content management policy",    false, FILTER },
    { "safety system",                false, FILTER },
    { "model not found",              false, MODEL },
    { "unknown model",                false, MODEL },
    { "unsupported model",            false, MODEL },
};

static const char *const rate_phrases[] = { "rate limit", "per minute", "per second", "per day" };

static const struct {
    int status;
    struct verdict verdict;
} by_status[] = {
    { 400, INVALID },
    { 401, AUTH },
    { 403, AUTH },
    { 408, BROKEN },
    { 409, BROKEN },
    { 413, INVALID },
    { 422, INVALID },
    { 425, BROKEN },
    { 429, { HF_LLM_QUOTA, true, false, "rate_limited", "the endpoint's rate limit is reached" } },
    { 500, BROKEN },
    { 502, BROKEN },
    { 503, BROKEN },
    { 504, BROKEN },
    { 529, BROKEN },
};

static const struct verdict other_status = { HF_LLM_HTTP, false, false, "unexpected_status",
          "the endpoint answered with an unexpected status" };
static const struct verdict redirected = { HF_LLM_HTTP, false, false, "redirected",
          "the endpoint redirects; redirects are not followed" };
static const struct verdict nothing_known = { HF_LLM_UNKNOWN, true, false, "unknown",
          "the endpoint reported an error" };
/* clang-format on */

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

void hf_fault_read(struct hf_fault *fault, struct hf_span raw)
{
    struct hf_walk walk;
    hf_walk_begin(&walk, raw);
    if (!hf_walk_enter(&walk, '{')) {
        fault->text = raw;
        return;
    }
    while (hf_walk_more(&walk)) {
        struct hf_span key = hf_walk_key(&walk);
        struct hf_span value = hf_walk_value(&walk);
        if (hf_walk_is(key, "type"))
            fault->type = value;
        else if (hf_walk_is(key, "code"))
            fault->code = value;
        else if (hf_walk_is(key, "message"))
            fault->text = value;
    }
}

static const struct verdict *word_verdict(struct hf_span raw, bool vague)
{
    for (size_t i = 0; i < COUNT(by_word); i++)
        if (by_word[i].vague == vague && hf_walk_is(raw, by_word[i].word))
            return &by_word[i].verdict;
    return NULL;
}

static const struct verdict *words_verdict(const struct hf_fault *fault, bool vague)
{
    const struct verdict *found = word_verdict(fault->code, vague);
    return found ? found : word_verdict(fault->type, vague);
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool has_phrase(struct hf_span text, const char *phrase)
{
    const char *at = text.at;
    size_t len = strlen(phrase);
    for (size_t i = 0; i + len <= text.len; i++) {
        size_t same = 0;
        while (same < len && lower(at[i + same]) == phrase[same])
            same++;
        if (same == len)
            return true;
    }
    return false;
}

static const struct verdict *phrase_verdict(struct hf_span text)
{
    bool rate = false;
    for (size_t i = 0; i < COUNT(rate_phrases); i++)
        rate |= has_phrase(text, rate_phrases[i]);
    for (size_t i = 0; i < COUNT(by_phrase); i++)
        if (!(rate && by_phrase[i].about_length) && has_phrase(text, by_phrase[i].phrase))
            return &by_phrase[i].verdict;
    return NULL;
}

static const struct verdict *status_verdict(int status)
{
    for (size_t i = 0; i < COUNT(by_status); i++)
        if (by_status[i].status == status)
            return &by_status[i].verdict;
    if (status >= 300 && status < 400)
        return &redirected;
    return status >= 400 ? &other_status : &nothing_known;
}

static const struct verdict *verdict_of(const struct hf_fault *fault)
{
    if (fault->source == HF_FAULT_TRANSPORT)
        return &by_transport[fault->http];
    if (fault->source != HF_FAULT_STATUS && fault->source != HF_FAULT_SERVER)
        return &by_source[fault->source];
    const struct verdict *found = words_verdict(fault, false);
    if (!found)
        found = phrase_verdict(fault->text);
    if (!found)
        found = words_verdict(fault, true);
    return found ? found : status_verdict(fault->status);
}

/* No response: nothing was bought. A response without output: only when the server says
 * that it did not begin, by a word or, for a transient refusal, by a time to come back. */
static bool is_charge_safe(const struct hf_fault *fault, const struct verdict *verdict)
{
    if (fault->position == HF_LLM_AT_NO_RESPONSE)
        return true;
    if (fault->position != HF_LLM_AT_RESPONSE_OBSERVED)
        return false;
    bool come_back = fault->source == HF_FAULT_STATUS && fault->retry_after_ms > 0 &&
                     verdict->transient &&
                     (fault->status == 429 || fault->status == 503 ||
                      fault->status == 529);
    return verdict->refused || come_back;
}

void hf_fault_judge(const struct hf_fault *fault, struct hf_llm_error *ret_error)
{
    const struct verdict *verdict = verdict_of(fault);
    *ret_error = (struct hf_llm_error){
        .size = sizeof(*ret_error),
        .kind = verdict->kind,
        .transient = verdict->transient,
        .charge_safe = is_charge_safe(fault, verdict),
        .retry_after_ms = fault->retry_after_ms,
        .position = fault->position,
        .code = verdict->code,
        .message = { verdict->message, strlen(verdict->message) },
    };
}
