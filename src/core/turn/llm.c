/* The results of a model call: usage, retries, and replies that are no answer. */
#include <string.h>

#include "base/err.h"
#include "core/turn/machine.h"

#define WINDOW_SLACK 20 /* the share of a context window that a full one may leave free */

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

static bool prompt_fits(const struct hf_usage *usage, int64_t *ret_sum)
{
    return add_fits(usage->input, usage->cache_read, ret_sum) &&
           add_fits(*ret_sum, usage->cache_write, ret_sum);
}

int hf_usage_prompt(const struct hf_usage *usage, int64_t *ret_tokens, struct hf_err *err)
{
    int64_t sum = 0;
    if (!prompt_fits(usage, &sum))
        return overflow("prompt", err);
    *ret_tokens = sum;
    return 0;
}

/* The prompt side is checked by itself: with a negative output the total could fit while
 * the prompt does not. */
int hf_usage_total(const struct hf_usage *usage, int64_t *ret_tokens, struct hf_err *err)
{
    int64_t sum = 0;
    if (!prompt_fits(usage, &sum))
        return overflow("prompt", err);
    if (!add_fits(sum, usage->output, &sum))
        return overflow("total", err);
    *ret_tokens = sum;
    return 0;
}

static int try_usage(const struct hf_usage *before, const struct hf_usage *usage,
                     struct hf_usage *ret_sum, struct hf_err *err)
{
    struct hf_usage sum = *before;
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
    return try_usage(&move->next.usage, usage, &sum, NULL) == 0;
}

int hf_turn_overflowed(struct hf_move *move, const struct hf_usage *usage,
                       struct hf_err *err)
{
    struct hf_usage sum;
    struct hf_err why = { 0 };
    hf_assert(try_usage(&move->next.usage, usage, &sum, &why) == HF_EOVERFLOW);
    struct hf_span text = hf_turn_span_of(why.message);
    struct hf_emit emit = { .name = "token_usage_accounting",
                            .code = "token_usage_overflow",
                            .text = text };
    int rc = hf_move_error(move, &emit, err);
    return rc ? rc : hf_move_end_kind(move, HF_OUTCOME_RUNTIME_ERROR, text, err);
}

int hf_move_account(struct hf_move *move, const struct hf_usage *usage,
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

int hf_turn_account(struct hf_turn *turn, uint64_t id, const struct hf_usage *usage,
                    struct hf_err *err)
{
    struct hf_turn_body *now = &turn->now;
    if (id == 0 || now->given_up != id)
        return hf_fail(err, HF_ESTALE, "id",
                       "effect %llu is no model call that was given up",
                       (unsigned long long)id);
    if (now->given_up_paid)
        return hf_fail(err, HF_EANSWERED, "id", "its usage is accounted for");
    if (!usage)
        return hf_fail(err, HF_EINVAL, "usage", "no usage");
    int rc = try_usage(&now->usage, usage, &now->usage, err);
    if (rc == 0)
        now->given_up_paid = true;
    return rc;
}

static bool any_usage(const struct hf_usage *usage)
{
    return usage->input || usage->output || usage->cache_read || usage->cache_write ||
           usage->reasoning;
}

/* Replies */

/* The reason for which a reply ended, as the turn has to treat it. A prompt that fills the model's
 * context window leaves no room for an answer, which providers report as an output limit. A
 * protocol may ask for a shorter answer after an output limit, which would not help here: so the
 * reason is a context overflow. Providers count tokens in different ways, so a prompt within a
 * twentieth of the window counts as one that fills it. */
static enum hf_reason true_reason(const struct hf_move *move,
                                  const struct hf_llm_response *response)
{
    int64_t window = move->turn->setup->config.max_context_tokens;
    int64_t prompt = 0;
    bool full = window > 0 && hf_usage_prompt(&response->usage, &prompt, NULL) == 0 &&
                prompt >= window - window / WINDOW_SLACK;
    if (response->reason == HF_REASON_OUTPUT_LIMIT && response->usage.output == 0 && full)
        return HF_REASON_CONTEXT_OVERFLOW;
    return response->reason;
}

/* A model sends no attachments; half a one must not be kept. The parts are the move's. */
static void drop_attachments(const struct hf_part *made, size_t count)
{
    struct hf_part *parts = NULL;
    memcpy(&parts, &made, sizeof(parts));
    for (size_t i = 0; i < count; i++)
        parts[i].attachment = NULL;
}

int hf_turn_take_error(struct hf_move *move, const struct hf_llm_error *error,
                       const void **ret_error, struct hf_err *err)
{
    int rc = hf_value_copy_ref(move->arena, &hf_s_llm_error, HF_COPY_REPAIR, error,
                               ret_error, err);
    const struct hf_llm_error *copy = *ret_error;
    if (rc == 0)
        drop_attachments(copy->parts, copy->part_count);
    return rc;
}

int hf_turn_take_response(struct hf_move *move, const struct hf_llm_response *response,
                          const struct hf_llm_response **ret_response, struct hf_err *err)
{
    struct hf_llm_response *copy = hf_arena_new(move->arena, struct hf_llm_response);
    if (!copy)
        return hf_fail_plain(err, HF_ENOMEM);
    int rc = hf_value_copy(move->arena, &hf_s_llm_response, HF_COPY_REPAIR, response,
                           copy, err);
    if (rc)
        return rc;
    drop_attachments(copy->parts, copy->part_count);
    copy->reason = true_reason(move, copy);
    *ret_response = copy;
    return 0;
}

/* What people may see of a part of a reply. */
static struct hf_span visible(const struct hf_move *move, const struct hf_part *part)
{
    const struct hf_protocol *protocol = move->turn->setup->config.protocol;
    if (part->kind != HF_PART_TEXT)
        return (struct hf_span){ "", 0 };
    return protocol->ops->visible ? protocol->ops->visible(protocol, part->content)
                                  : part->content;
}

static int show_parts(struct hf_move *move, const struct hf_part *parts, size_t count,
                      struct hf_err *err)
{
    for (size_t i = 0; i < count; i++) {
        struct hf_emit delta = { .kind = HF_EMIT_TEXT_DELTA,
                                 .text = visible(move, &parts[i]) };
        int rc = delta.text.len == 0 ? 0 : hf_act_emit(move, &delta, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int show_text(struct hf_move *move, const struct hf_llm_response *response,
                     struct hf_err *err)
{
    int rc = response->text_streamed
                 ? 0
                 : show_parts(move, response->parts, response->part_count, err);
    if (rc)
        return rc;
    struct hf_emit whole = { .kind = HF_EMIT_LLM_RESPONSE,
                             .code = response->response_id };
    return hf_act_emit(move, &whole, err);
}

int hf_turn_bad_end(struct hf_move *move, const struct hf_llm_response *response,
                    enum hf_outcome_kind kind, struct hf_err *err)
{
    const char *reason = hf_turn_word(&hf_w_reasons, response->reason);
    int rc = hf_move_account(move, &response->usage, err);
    if (rc == 0)
        rc = hf_move_log(move, HF_LOG_LLM_DEBUG, response->raw, err);
    if (rc == 0)
        rc = show_text(move, response, err);
    if (rc)
        return rc;
    if (kind == HF_OUTCOME_CANCELLED)
        return hf_move_end_cancelled(move, NULL, err);

    struct hf_emit emit = { .name = "llm_provider",
                            .code = reason,
                            .text = hf_turn_span_of(reason) };
    rc = hf_move_error(move, &emit, err);
    return rc ? rc : hf_move_end_kind(move, kind, hf_turn_span_of(reason), err);
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
    const struct hf_llm_retry *retry = move->turn->setup->config.retry;
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
    const struct hf_llm_retry *retry = move->turn->setup->config.retry;
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
    int rc = any_usage(&error->usage) ? hf_move_account(move, &error->usage, err) : 0;
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
        rc = hf_value_copy_ref(move->arena, &hf_s_request, HF_COPY_TRUST, request, &copy,
                               err);
    if (rc)
        return rc;
    hf_move_enter(move, HF_TURN_WAITING_SLEEP, true);
    move->next.wait.request = copy;
    move->next.wait.duration_ms = pause_before(move, request->attempt,
                                               error->retry_after_ms);
    return 0;
}

/* The words of a reply that was cut off, as a message. Its reasoning is not kept: a provider
 * takes that back only whole. NULL when there are none. */
static int keep_partial(struct hf_move *move, const struct hf_llm_error *error,
                        const struct hf_message **ret_message, struct hf_err *err)
{
    size_t count = 0;
    struct hf_part *parts = hf_arena_array(move->arena, error->part_count,
                                           sizeof(*parts));
    *ret_message = NULL;
    if (!parts)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; i < error->part_count; i++) {
        struct hf_span text = visible(move, &error->parts[i]);
        if (!hf_turn_span_blank(text))
            parts[count++] = (struct hf_part){ .kind = HF_PART_PROSE, .content = text };
    }
    return count > 0 ? hf_move_answer(move, parts, count, NULL, ret_message, err) : 0;
}

/* A failure that ends the turn: accounted for, and what came of the reply shown. */
static int close_failure(struct hf_move *move, const struct hf_llm_error *error,
                         const struct hf_message **ret_message, struct hf_err *err)
{
    int rc = account_failure(move, error, err);
    if (rc == 0 && !error->text_streamed)
        rc = show_parts(move, error->parts, error->part_count, err);
    return rc ? rc : keep_partial(move, error, ret_message, err);
}

int hf_turn_call_failed(struct hf_move *move, const struct hf_llm_error *error,
                        struct hf_err *err)
{
    struct hf_outcome outcome = { .kind = HF_OUTCOME_PROVIDER_ERROR,
                                  .text = error->message };
    struct hf_emit emit = { .name = "llm_provider",
                            .code = error->code,
                            .retryable = error->transient,
                            .text = error->message,
                            .position = error->position,
                            .request_id = error->request_id };
    if (error->kind != HF_LLM_UNKNOWN)
        emit.failure = hf_turn_word(&hf_w_llm_failures, error->kind);
    int rc = close_failure(move, error, &outcome.message, err);
    if (rc == 0)
        rc = hf_move_error(move, &emit, err);
    return rc ? rc : hf_move_end(move, &outcome, err);
}

int hf_turn_call_cancelled(struct hf_move *move, const struct hf_llm_error *error,
                           struct hf_err *err)
{
    const struct hf_message *message = NULL;
    int rc = close_failure(move, error, &message, err);
    return rc ? rc : hf_move_end_cancelled(move, message, err);
}
