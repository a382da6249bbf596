/* Recorded turns: one JSON line that says what the turn began with, then every effect and
 * every response in the order in which they were seen. Replaying feeds the responses to
 * this build and compares the effects; white space and the order of keys do not matter.
 */
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/json.h"
#include "core/turn/code/code.h"
#include "core/turn/json.h"
#include "core/turn/wire.h"

#define RECORDING_VERSION 1

struct head {
    uint64_t recording;
    const char *protocol;
    const char *model;
    const char *route;
    struct hf_span options;
    struct hf_span prompt;
    struct hf_span tools;
    int64_t max_context_tokens;
    int64_t turn_budget;
    int64_t no_progress_budget;
    bool sync;
    bool trace;
    int64_t retry_attempts;
    int64_t retry_initial_ms;
    int64_t retry_cap_ms;
    int64_t retry_after_max_ms;
    const char *limit_text;
    const char *session_id;
    const char *turn_id;
    uint64_t run_offset;
    const char *base_id;
    uint8_t base_digest[32];
    const struct hf_record *base;
    size_t base_count;
    const struct hf_record *inputs;
    size_t input_count;
    const struct hf_cause *causes;
    size_t cause_count;
    struct hf_span protocol_options;
    struct hf_span given;
    struct hf_span given_refs;
    uint64_t effects_past;
};

/* clang-format off */
#define NUMBER .type = HF_M_I64
#define KEY .type = HF_M_TEXT, .max = 1024
#define RECORDS(member, counter) \
    .type = HF_M_LIST, .of = &hf_s_record, .max = UINT32_MAX, HF_AT_LIST(head, member, counter)
static const struct hf_member head_members[] = {
    { .key = 1, .type = HF_M_U64, HF_AT(head, recording) },
    { .key = 2, KEY, HF_AT(head, protocol) },
    { .key = 3, KEY, HF_AT(head, model) },
    { .key = 4, KEY, HF_AT(head, route) },
    { .key = 5, .type = HF_M_JSON, .max = 8388608, HF_AT(head, options) },
    { .key = 6, .type = HF_M_SPAN, .max = 8388608, HF_AT(head, prompt) },
    { .key = 7, .type = HF_M_JSON, .max = 8388608, HF_AT(head, tools) },
    { .key = 8, NUMBER, HF_AT(head, max_context_tokens) },
    { .key = 9, NUMBER, HF_AT(head, turn_budget) },
    { .key = 10, NUMBER, HF_AT(head, no_progress_budget) },
    { .key = 11, .type = HF_M_BOOL, HF_AT(head, sync) },
    { .key = 12, .type = HF_M_BOOL, HF_AT(head, trace) },
    { .key = 13, NUMBER, HF_AT(head, retry_attempts) },
    { .key = 14, NUMBER, HF_AT(head, retry_initial_ms) },
    { .key = 15, NUMBER, HF_AT(head, retry_cap_ms) },
    { .key = 16, NUMBER, HF_AT(head, retry_after_max_ms) },
    { .key = 17, .type = HF_M_TEXT, .max = 8192, HF_AT(head, limit_text) },
    { .key = 18, KEY, HF_AT(head, session_id) },
    { .key = 19, KEY, HF_AT(head, turn_id) },
    { .key = 20, .type = HF_M_U64, HF_AT(head, run_offset) },
    { .key = 21, KEY, HF_AT(head, base_id) },
    { .key = 22, .type = HF_M_HASH, HF_AT(head, base_digest) },
    { .key = 23, RECORDS(base, base_count) },
    { .key = 24, RECORDS(inputs, input_count) },
    { .key = 25, .type = HF_M_LIST, .of = &hf_s_cause, .max = 1024, HF_AT_LIST(head, causes, cause_count) },
    { .key = 26, .type = HF_M_JSON, .max = 8388608, HF_AT(head, protocol_options) },
    { .key = 27, .type = HF_M_JSON, .max = 8388608, HF_AT(head, given) },
    { .key = 28, .type = HF_M_JSON, .max = 8388608, HF_AT(head, given_refs) },
    { .key = 29, .type = HF_M_U64, HF_AT(head, effects_past) },
};
static HF_SCHEMA(s_head, head, head_members);
/* clang-format on */

/* Writing */

static int fill_head(struct hf_arena *arena, const struct hf_setup *setup,
                     const struct hf_turn_start *start, struct head *ret_head,
                     struct hf_err *err)
{
    const struct hf_turn_config *config = &setup->config;
    struct head head = { .recording = RECORDING_VERSION,
                         .protocol = config->protocol->ops->id,
                         .model = config->model,
                         .route = config->route,
                         .options = config->options,
                         .prompt = config->surface->face.prompt,
                         .tools = config->surface->face.tools,
                         .max_context_tokens = config->max_context_tokens,
                         .turn_budget = config->turn_budget,
                         .no_progress_budget = config->no_progress_budget,
                         .sync = config->sync,
                         .trace = config->trace,
                         .retry_attempts = config->retry->attempts,
                         .retry_initial_ms = config->retry->initial_ms,
                         .retry_cap_ms = config->retry->cap_ms,
                         .retry_after_max_ms = config->retry->retry_after_max_ms,
                         .limit_text = config->limit_text,
                         .session_id = start->session_id,
                         .turn_id = start->turn_id,
                         .run_offset = start->run_offset,
                         .inputs = start->inputs,
                         .input_count = start->input_count,
                         .causes = start->causes,
                         .cause_count = start->cause_count,
                         .given = start->given,
                         .given_refs = start->given_refs,
                         .effects_past = start->effects_past };
    if (config->protocol->ops->options)
        head.protocol_options = config->protocol->ops->options(config->protocol);
    size_t count = start->base ? (size_t)start->base->count : 0;
    struct hf_record *records = hf_arena_array(arena, count, sizeof(*records));
    if (!records)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; i < count; i++) {
        struct hf_pin pin;
        const struct hf_record *record = hf_pin_take(&pin, start->base, i);
        if (!record)
            return hf_fail_plain(err, HF_EBASE);
        int rc = hf_value_copy(arena, &hf_s_record, HF_COPY_STRICT, record, &records[i],
                               err);
        hf_pin_drop(&pin);
        if (rc)
            return rc;
    }
    if (start->base) {
        head.base_id = start->base->id;
        memcpy(head.base_digest, start->base->digest, 32);
    }
    head.base = records;
    head.base_count = count;
    *ret_head = head;
    return 0;
}

int hf_recording_head(const struct hf_setup *setup, const struct hf_turn_start *start,
                      struct hf_bytes *ret_line, struct hf_err *err)
{
    const struct hf_alloc *alloc = setup->config.alloc;
    struct hf_arena arena;
    struct hf_buf text;
    struct head head = { 0 };
    hf_arena_init(&arena, alloc);
    hf_buf_init(&text, alloc, (size_t)HF_MAX_TURN_SAVE_BYTES);
    int rc = fill_head(&arena, setup, start, &head, err);
    if (rc == 0) {
        struct hf_turn_json_out out = { .scratch = &arena };
        hf_json_begin(&out.json, &text);
        hf_json_object(&out.json);
        hf_turn_json_members(&out, &s_head, &head);
        hf_json_end(&out.json);
        rc = out.out_of_memory ? HF_ENOMEM : hf_buf_state(&text);
        rc = rc ? hf_fail_plain(err, rc) : 0;
    }
    hf_arena_fini(&arena);
    if (rc) {
        hf_buf_fini(&text);
        return rc;
    }
    *ret_line = (struct hf_bytes){ alloc, text.at, text.len };
    return 0;
}

/* Replaying */

struct hf_replay {
    const struct hf_alloc *alloc;
    struct hf_arena arena;
    struct head head;
    struct hf_protocol *own; /* made from the recording */
    struct hf_surface *surface;
    struct hf_setup *setup;
    struct hf_turn *turn;
};

static const struct hf_record *lend(void *user, uint64_t i)
{
    const struct hf_replay *replay = user;
    return &replay->head.base[i];
}

static int open_turn(struct hf_replay *replay, const struct hf_protocol *protocol,
                     struct hf_err *err)
{
    const struct head *head = &replay->head;
    struct hf_llm_retry retry = { .size = sizeof(retry),
                                  .attempts = head->retry_attempts,
                                  .initial_ms = head->retry_initial_ms,
                                  .cap_ms = head->retry_cap_ms,
                                  .retry_after_max_ms = head->retry_after_max_ms };
    struct hf_turn_config config = { .size = sizeof(config),
                                     .alloc = replay->alloc,
                                     .protocol = protocol,
                                     .surface = replay->surface,
                                     .model = head->model,
                                     .route = head->route,
                                     .options = head->options,
                                     .max_context_tokens = head->max_context_tokens,
                                     .turn_budget = head->turn_budget,
                                     .no_progress_budget = head->no_progress_budget,
                                     .sync = head->sync,
                                     .trace = head->trace,
                                     .retry = &retry,
                                     .limit_text = head->limit_text };
    int rc = hf_setup_new(&config, &replay->setup, err);
    if (rc)
        return rc;
    struct hf_base base = {
        .id = head->base_id, .count = head->base_count, .user = replay, .get = lend
    };
    memcpy(base.digest, head->base_digest, 32);
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = head->session_id,
                                   .turn_id = head->turn_id,
                                   .base = &base,
                                   .inputs = head->inputs,
                                   .input_count = head->input_count,
                                   .causes = head->causes,
                                   .cause_count = head->cause_count,
                                   .given = head->given,
                                   .given_refs = head->given_refs,
                                   .run_offset = head->run_offset,
                                   .effects_past = head->effects_past };
    return hf_turn_new(replay->setup, &start, &replay->turn, err);
}

/* The protocol that the recording names, unless the caller brought one. */
static int find_protocol(struct hf_replay *replay, const struct hf_protocol *given,
                         const struct hf_protocol **ret_protocol, struct hf_err *err)
{
    const struct head *head = &replay->head;
    struct hf_span name = hf_turn_span_of(head->protocol);
    if (!given && hf_turn_span_same(name, hf_text_of(HF_CODE_ID))) {
        int rc = hf_code_new(replay->alloc, head->protocol_options, &replay->own, err);
        *ret_protocol = replay->own;
        return rc;
    }
    *ret_protocol = given ? given : hf_protocol_standard();
    if (!hf_turn_span_same(name, hf_turn_span_of((*ret_protocol)->ops->id)))
        return hf_fail(err, HF_EPROTOCOL, "protocol", "the recording is of protocol %s",
                       head->protocol ? head->protocol : "(none)");
    return 0;
}

static int open_replay(struct hf_replay *replay, struct hf_span text,
                       const struct hf_protocol *protocol, struct hf_err *err)
{
    int rc = hf_json_check(text, (size_t)HF_MAX_TURN_SAVE_BYTES, "recording", err);
    if (rc == 0)
        rc = hf_turn_json_take(&replay->arena, &s_head, text, &replay->head, err);
    if (rc)
        return rc;
    const struct head *head = &replay->head;
    if (head->recording == 0)
        return hf_fail(err, HF_EINVAL, "recording",
                       "the first line is not a recording's");
    if (head->recording > RECORDING_VERSION)
        return hf_fail(err, HF_ENEWER, "recording", "the recording is of version %llu",
                       (unsigned long long)head->recording);
    rc = find_protocol(replay, protocol, &protocol, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < head->base_count; i++) {
        rc = hf_record_check(&head->base[i], err);
        if (rc)
            return rc;
    }
    rc = hf_surface_new(replay->alloc, head->prompt, head->tools, &replay->surface, err);
    return rc ? rc : open_turn(replay, protocol, err);
}

int hf_replay_new(const struct hf_alloc *alloc, struct hf_span head,
                  const struct hf_protocol *protocol, struct hf_replay **ret_replay,
                  struct hf_err *err)
{
    if (!alloc)
        alloc = hf_alloc_system();
    struct hf_replay *replay = alloc->realloc(alloc->user, NULL, sizeof(*replay));
    if (!replay)
        return hf_fail_plain(err, HF_ENOMEM);
    *replay = (struct hf_replay){ .alloc = alloc };
    hf_arena_init(&replay->arena, alloc);
    int rc = open_replay(replay, head, protocol, err);
    if (rc) {
        hf_replay_free(replay);
        return rc;
    }
    *ret_replay = replay;
    return 0;
}

void hf_replay_free(struct hf_replay *replay)
{
    if (!replay)
        return;
    hf_turn_free(replay->turn);
    hf_setup_free(replay->setup);
    hf_surface_free(replay->surface);
    hf_code_free(replay->own);
    hf_arena_fini(&replay->arena);
    replay->alloc->free(replay->alloc->user, replay);
}

static int canonical(const struct hf_alloc *alloc, struct hf_span text,
                     struct hf_buf *out)
{
    hf_buf_init(out, alloc, 2 * (size_t)HF_MAX_TURN_SAVE_BYTES);
    int rc = hf_json_canonical_text(out, text);
    return rc ? rc : hf_buf_state(out);
}

static int diverged(struct hf_replay *replay, const char *actual,
                    struct hf_bytes *ret_actual, struct hf_err *err)
{
    struct hf_buf copy;
    hf_buf_init(&copy, replay->alloc, (size_t)HF_MAX_TURN_SAVE_BYTES);
    hf_buf_text(&copy, actual ? actual : "");
    if (hf_buf_state(&copy)) {
        hf_buf_fini(&copy);
        return hf_fail_plain(err, HF_ENOMEM);
    }
    *ret_actual = (struct hf_bytes){ replay->alloc, copy.at, copy.len };
    return hf_fail(err, HF_ECONFLICT, "effect", "%s",
                   actual ? "this build yields another effect"
                          : "this build yields no effect here");
}

static int replay_effect(struct hf_replay *replay, struct hf_span line,
                         struct hf_bytes *ret_actual, struct hf_err *err)
{
    const char *actual = NULL;
    struct hf_buf want;
    struct hf_buf have;
    int rc = hf_turn_poll_json(replay->turn, &actual, err);
    if (rc)
        return rc;
    if (!actual)
        return diverged(replay, NULL, ret_actual, err);
    if (hf_turn_span_same(line, hf_turn_span_of(actual)))
        return 0;
    rc = canonical(replay->alloc, line, &want);
    int rc_have = canonical(replay->alloc, hf_turn_span_of(actual), &have);
    bool same = rc == 0 && rc_have == 0 && want.len == have.len &&
                memcmp(want.at, have.at, want.len) == 0;
    hf_buf_fini(&want);
    hf_buf_fini(&have);
    if (rc || rc_have)
        return hf_fail_plain(err, rc ? rc : rc_have);
    return same ? 0 : diverged(replay, actual, ret_actual, err);
}

int hf_replay_line(struct hf_replay *replay, struct hf_span line,
                   struct hf_bytes *ret_actual, struct hf_err *err)
{
    struct hf_walk walk;
    bool foul = false;
    int rc = hf_json_check_said(line, (size_t)HF_MAX_TURN_SAVE_BYTES, "line", &foul, err);
    if (rc)
        return rc;
    hf_walk_begin(&walk, line);
    if (!hf_walk_enter(&walk, '{'))
        return hf_fail(err, HF_EINVAL, "line", "a line is an object");
    while (hf_walk_more(&walk)) {
        struct hf_span key = hf_walk_key(&walk);
        (void)hf_walk_value(&walk); /* only the keys matter */
        if (hf_walk_is(key, "effect"))
            return replay_effect(replay, line, ret_actual, err);
        if (hf_walk_is(key, "response"))
            return hf_turn_respond_json(replay->turn, line, err);
    }
    return hf_fail(err, HF_EINVAL, "line", "a line is an effect or a response");
}

int hf_replay_end(struct hf_replay *replay, struct hf_bytes *ret_actual,
                  struct hf_err *err)
{
    const char *actual = NULL;
    int rc = hf_turn_poll_json(replay->turn, &actual, err);
    if (rc || !actual)
        return rc;
    return diverged(replay, actual, ret_actual, err);
}
