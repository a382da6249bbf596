/* What a model call comes to: usage, retries, and replies that are no answer. */
#include <string.h>

#include "base/err.h"
#include "core/turn/machine.h"

static bool add_fits(int64_t a, int64_t b, int64_t *ret_sum)
{
    return !__builtin_add_overflow(a, b, ret_sum);
}

static int overflow(const char *bucket, struct hf_err *err)
{
    return hf_fail(err, HF_EOVERFLOW, bucket, "the token counter %s overflows", bucket);
}

int hf_usage_add(struct hf_usage *sum, const struct hf_usage *more, struct hf_err *err)
{
    struct hf_usage next;
    if (!add_fits(sum->input, more->input, &next.input))
        return overflow("input", err);
    if (!add_fits(sum->output, more->output, &next.output))
        return overflow("output", err);
    if (!add_fits(sum->cache_read, more->cache_read, &next.cache_read))
        return overflow("cache_read", err);
    if (!add_fits(sum->cache_write, more->cache_write, &next.cache_write))
        return overflow("cache_write", err);
    if (!add_fits(sum->reasoning, more->reasoning, &next.reasoning))
        return overflow("reasoning", err);
    *sum = next;
    return 0;
}

int hf_usage_prompt(const struct hf_usage *usage, int64_t *ret_tokens, struct hf_err *err)
{
    int64_t sum = 0;
    if (!add_fits(usage->input, usage->cache_read, &sum) ||
        !add_fits(sum, usage->cache_write, &sum))
        return overflow("prompt", err);
    *ret_tokens = sum;
    return 0;
}

/* The prompt side is checked by itself: with a negative output the total could fit while
 * the prompt does not. */
int hf_usage_total(const struct hf_usage *usage, int64_t *ret_tokens, struct hf_err *err)
{
    int64_t sum = 0;
    int rc = hf_usage_prompt(usage, &sum, err);
    if (rc)
        return rc;
    if (!add_fits(sum, usage->output, &sum))
        return overflow("total", err);
    *ret_tokens = sum;
    return 0;
}

static int try_usage(const struct hf_move *move, const struct hf_usage *usage,
                     struct hf_usage *ret_sum, struct hf_err *err)
{
    struct hf_usage sum = move->next.usage;
    int64_t tokens = 0;
    int rc = hf_usage_total(usage, &tokens, err);
    if (rc == 0)
        rc = hf_usage_add(&sum, usage, err);
    if (rc == 0)
        rc = hf_usage_total(&sum, &tokens, err);
    if (rc == 0)
        *ret_sum = sum;
    return rc;
}

bool hf_turn_usage_fits(const struct hf_move *move, const struct hf_usage *usage)
{
    struct hf_usage sum;
    return try_usage(move, usage, &sum, NULL) == 0;
}

int hf_turn_overflowed(struct hf_move *move, const struct hf_usage *usage,
                       struct hf_err *err)
{
    struct hf_usage sum;
    struct hf_err why = { 0 };
    hf_assert(try_usage(move, usage, &sum, &why) == HF_EOVERFLOW);
    struct hf_span text = hf_span_of(why.message);
    struct hf_emit emit = { .name = "token_usage_accounting",
                            .code = "token_usage_overflow",
                            .text = text };
    int rc = hf_move_error(move, &emit, err);
    return rc ? rc : hf_move_end_kind(move, HF_OUTCOME_RUNTIME_ERROR, text, err);
}

int hf_turn_account(struct hf_move *move, const struct hf_usage *usage,
                    struct hf_err *err)
{
    struct hf_usage sum = move->next.usage;
    int rc = hf_usage_add(&sum, usage, err); /* a guard saw that all of it fits */
    if (rc)
        return rc;
    move->next.usage = sum;
    struct hf_usage *both = hf_arena_array(move->arena, 2, sizeof(*both));
    if (!both)
        return hf_fail_plain(err, HF_ENOMEM);
    both[0] = *usage;
    both[1] = sum;
    struct hf_emit emit = { .kind = HF_EMIT_TOKEN_USAGE,
                            .usage = &both[0],
                            .cumulative = &both[1] };
    return hf_move_emit(move, &emit, err);
}

static bool any_usage(const struct hf_usage *usage)
{
    return usage->input || usage->output || usage->cache_read || usage->cache_write ||
           usage->reasoning;
}

/* Replies */

/* A prompt that fills the window leaves no room for an answer: providers call that an
 * output limit, but a shorter answer would not help. */
static enum hf_reason true_reason(const struct hf_move *move,
                                  const struct hf_llm_response *response)
{
    int64_t window = move->turn->setup->config.max_context_tokens;
    int64_t prompt = 0;
    bool full = window > 0 && hf_usage_prompt(&response->usage, &prompt, NULL) == 0 &&
                prompt >= window - window / 20;
    if (response->reason == HF_REASON_OUTPUT_LIMIT && response->usage.output == 0 && full)
        return HF_REASON_CONTEXT_OVERFLOW;
    return response->reason;
}

int hf_turn_take_response(struct hf_move *move, const struct hf_llm_response *response,
                          const struct hf_llm_response **ret_response, struct hf_err *err)
{
    struct hf_llm_response *copy = hf_arena_new(move->arena, struct hf_llm_response);
    if (!copy)
        return hf_fail_plain(err, HF_ENOMEM);
    int rc = hf_copy(move->arena, &hf_s_llm_response, HF_COPY_REPAIR, response, copy,
                     err);
    if (rc)
        return rc;
    struct hf_part *parts = NULL; /* ours now, so they may be changed */
    memcpy(&parts, &copy->parts, sizeof(parts));
    for (size_t i = 0; i < copy->part_count; i++)
        parts[i].attachment = NULL; /* a model sends none; half a one must not be kept */
    copy->reason = true_reason(move, copy);
    *ret_response = copy;
    return 0;
}

static int show_text(struct hf_move *move, const struct hf_llm_response *response,
                     struct hf_err *err)
{
    const struct hf_protocol *protocol = move->turn->setup->config.protocol;
    for (size_t i = 0; i < response->part_count; i++) {
        struct hf_span text = response->parts[i].content;
        if (response->parts[i].kind != HF_PART_TEXT)
            continue;
        if (protocol->ops->visible)
            text = protocol->ops->visible(protocol, text);
        struct hf_emit delta = { .kind = HF_EMIT_TEXT_DELTA, .text = text };
        int rc = response->text_streamed || text.len == 0
                     ? 0
                     : hf_act_emit(move, &delta, err);
        if (rc)
            return rc;
    }
    struct hf_emit whole = { .kind = HF_EMIT_LLM_RESPONSE,
                             .code = response->response_id };
    return hf_act_emit(move, &whole, err);
}

int hf_turn_bad_end(struct hf_move *move, const struct hf_llm_response *response,
                    enum hf_outcome_kind kind, struct hf_err *err)
{
    const char *reason = hf_word(&hf_w_reasons, response->reason);
    int rc = hf_turn_account(move, &response->usage, err);
    if (rc == 0)
        rc = hf_move_log(move, HF_LOG_LLM_DEBUG, response->raw, err);
    if (rc == 0)
        rc = show_text(move, response, err);
    if (rc)
        return rc;
    if (kind == HF_OUTCOME_CANCELLED)
        return hf_move_end_cancelled(move, err);

    struct hf_emit emit = { .name = "llm_provider",
                            .code = reason,
                            .text = hf_span_of(reason) };
    rc = hf_move_error(move, &emit, err);
    return rc ? rc : hf_move_end_kind(move, kind, hf_span_of(reason), err);
}

int hf_turn_end_empty(struct hf_move *move, struct hf_err *err)
{
    struct hf_span why = hf_text_of("the model's reply was empty");
    struct hf_emit emit = { .kind = HF_EMIT_ERROR,
                            .name = "llm_provider",
                            .code = "empty_response",
                            .text = why };
    struct hf_outcome outcome = { .kind = HF_OUTCOME_PROVIDER_ERROR, .text = why };
    int rc = hf_act_emit(move, &emit, err);
    return rc ? rc : hf_act_finish(move, &outcome, err);
}

/* Failed calls */

bool hf_turn_may_retry(const struct hf_move *move, const struct hf_llm_error *error)
{
    const struct hf_llm_retry *retry = &move->turn->setup->config.retry;
    return error->transient && error->charge_safe &&
           move->next.wait.request->attempt < retry->attempts &&
           error->retry_after_ms <= retry->retry_after_max_ms;
}

/* Spreads the retries of many turns; the same for the same turn and attempt. */
static uint64_t jitter(const char *turn_id, uint32_t attempt)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ attempt; /* FNV-1a, then a mixer */
    for (const char *at = turn_id; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    hash ^= hash >> 33;
    hash *= UINT64_C(0xff51afd7ed558ccd);
    return hash ^ hash >> 33;
}

static hf_ms pause_before(const struct hf_move *move, uint32_t attempt,
                          hf_ms retry_after_ms)
{
    const struct hf_llm_retry *retry = &move->turn->setup->config.retry;
    hf_ms pause = retry->initial_ms;
    for (uint32_t i = 1; i < attempt && pause < retry->cap_ms; i++)
        pause = pause <= retry->cap_ms / 2 ? pause * 2 : retry->cap_ms;
    if (pause > retry->cap_ms)
        pause = retry->cap_ms;
    uint64_t spread = (uint64_t)pause / 4 + 1;
    pause -= (hf_ms)(jitter(move->turn->turn_id, attempt) % spread);
    return pause < retry_after_ms ? retry_after_ms : pause;
}

static int account_failure(struct hf_move *move, const struct hf_llm_error *error,
                           struct hf_err *err)
{
    int rc = any_usage(&error->usage) ? hf_turn_account(move, &error->usage, err) : 0;
    if (rc)
        return rc;
    return hf_move_log(move, HF_LOG_LLM_ERROR,
                       error->raw.len ? error->raw : error->message, err);
}

int hf_turn_retry(struct hf_move *move, const struct hf_llm_error *error,
                  struct hf_err *err)
{
    const struct hf_request *request = move->next.wait.request;
    const void *copy = NULL;
    struct hf_emit reset = { .kind = HF_EMIT_ATTEMPT_RESET,
                             .attempt = request->attempt,
                             .text = error->message };
    int rc = account_failure(move, error, err);
    if (rc == 0 && error->text_streamed)
        rc = hf_act_emit(move, &reset, err);
    if (rc == 0)
        rc = hf_copy_ref(move->arena, &hf_s_request, HF_COPY_TRUST, request, &copy, err);
    if (rc)
        return rc;
    hf_move_enter(move, HF_TURN_WAITING_SLEEP, true);
    move->next.wait.request = copy;
    move->next.wait.duration_ms = pause_before(move, request->attempt,
                                               error->retry_after_ms);
    return 0;
}

int hf_turn_call_failed(struct hf_move *move, const struct hf_llm_error *error,
                        struct hf_err *err)
{
    struct hf_emit emit = { .name = "llm_provider",
                            .code = error->code,
                            .retryable = error->transient,
                            .text = error->message };
    if (error->kind != HF_LLM_UNKNOWN)
        emit.failure = hf_word(&hf_w_llm_failures, error->kind);
    int rc = account_failure(move, error, err);
    if (rc == 0)
        rc = hf_move_error(move, &emit, err);
    return rc ? rc
              : hf_move_end_kind(move, HF_OUTCOME_PROVIDER_ERROR, error->message, err);
}
