/* Objects that a host makes before a turn, and its view of one: surfaces, setups, records. */
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/sized.h"
#include "base/text.h"
#include "core/turn/machine.h"

/* Surfaces */

static int add_name(struct hf_arena *arena, struct hf_span tool, struct hf_buf *names,
                    struct hf_err *err)
{
    struct hf_walk walk;
    struct hf_span name = { 0 };
    hf_walk_begin(&walk, tool);
    if (!hf_walk_enter(&walk, '{'))
        return hf_fail(err, HF_EINVAL, "tools", "a tool is an object");
    while (hf_walk_more(&walk)) {
        bool is_name = hf_walk_is(hf_walk_key(&walk), "name");
        struct hf_span raw = hf_walk_value(&walk);
        if (is_name && hf_walk_text(arena, raw, &name) == HF_ENOMEM)
            return hf_fail_plain(err, HF_ENOMEM);
    }
    if (name.len == 0 || name.len > (size_t)HF_MAX_KEY_BYTES)
        return hf_fail(err, HF_EINVAL, "tools", "a tool has a name of 1 to 191 bytes");
    if (names->len > 0)
        hf_buf_char(names, ',');
    hf_buf_bytes(names, name.at, name.len);
    return 0;
}

int hf_turn_tool_names(struct hf_arena *arena, struct hf_span tools,
                       struct hf_span *ret_names, struct hf_err *err)
{
    struct hf_walk walk;
    struct hf_buf names;
    int rc = 0;
    hf_buf_init(&names, arena->alloc, (size_t)HF_MAX_TURN_TEXT_BYTES);
    hf_walk_begin(&walk, tools);
    if (tools.len > 0 && !hf_walk_enter(&walk, '['))
        rc = hf_fail(err, HF_EINVAL, "tools", "tools are an array");
    else if (tools.len > 0)
        while (rc == 0 && hf_walk_more(&walk))
            rc = add_name(arena, hf_walk_value(&walk), &names, err);
    char *copy = NULL;
    if (rc == 0) {
        copy = hf_buf_state(&names) == 0 ? hf_arena_copy(arena, names.at, names.len)
                                         : NULL;
        rc = copy ? 0 : hf_fail_plain(err, HF_ENOMEM);
    }
    if (rc == 0)
        *ret_names = (struct hf_span){ copy, names.len };
    hf_buf_fini(&names);
    return rc;
}

static int fill_face(struct hf_arena *arena, struct hf_span prompt, struct hf_span tools,
                     struct hf_face *ret_face, struct hf_err *err)
{
    size_t max = (size_t)HF_MAX_TURN_TEXT_BYTES;
    if (prompt.len > max)
        return hf_fail(err, HF_ETOOBIG, "prompt",
                       "the prompt must have at most %lld bytes",
                       (long long)HF_MAX_TURN_TEXT_BYTES);
    if (!hf_text_clean(prompt.at, prompt.len))
        return hf_fail(err, HF_EINVAL, "prompt",
                       "the prompt must be UTF-8 text without NUL");
    int rc = tools.len ? hf_json_check(tools, max, "tools", err) : 0;
    if (rc == 0)
        rc = hf_turn_tool_names(arena, tools, &ret_face->names, err);
    if (rc)
        return rc;
    char *prompt_copy = hf_arena_copy(arena, prompt.at, prompt.len);
    char *tools_copy = hf_arena_copy(arena, tools.at, tools.len);
    if (!prompt_copy || !tools_copy)
        return hf_fail_plain(err, HF_ENOMEM);
    ret_face->prompt = (struct hf_span){ prompt_copy, prompt.len };
    ret_face->tools = (struct hf_span){ tools_copy, tools.len };
    if (hf_sha256(prompt_copy, prompt.len, ret_face->prompt_hash) ||
        hf_sha256(tools_copy, tools.len, ret_face->tools_hash))
        return hf_fail_plain(err, HF_ENOMEM);
    return 0;
}

int hf_surface_new(const struct hf_alloc *alloc, struct hf_span prompt,
                   struct hf_span tools, struct hf_surface **ret_surface,
                   struct hf_err *err)
{
    if (!alloc)
        alloc = hf_alloc_system();
    struct hf_surface *surface = alloc->realloc(alloc->user, NULL, sizeof(*surface));
    if (!surface)
        return hf_fail_plain(err, HF_ENOMEM);
    *surface = (struct hf_surface){ .alloc = alloc };
    hf_arena_init(&surface->arena, alloc);
    int rc = fill_face(&surface->arena, prompt, tools, &surface->face, err);
    if (rc) {
        hf_surface_free(surface);
        return rc;
    }
    *ret_surface = surface;
    return 0;
}

void hf_surface_free(struct hf_surface *surface)
{
    if (!surface)
        return;
    hf_arena_fini(&surface->arena);
    surface->alloc->free(surface->alloc->user, surface);
}

/* Setups */

static const char limit_text[] =
    "The limit of iterations for this turn is reached. Answer now with what you have; do "
    "not start anything new.";

static int check_config(const struct hf_turn_config *config, struct hf_err *err)
{
    int rc = hf_sized_check(config->size, sizeof(*config), sizeof(*config), err);
    if (rc)
        return rc;
    if (!config->protocol)
        return hf_fail(err, HF_EINVAL, "protocol", "a turn has a protocol");
    if (!config->surface)
        return hf_fail(err, HF_EINVAL, "surface", "a turn has a surface");
    if (config->turn_budget < 1 && config->turn_budget != HF_UNBOUNDED)
        return hf_fail(err, HF_EINVAL, "turn_budget",
                       "the turn budget is at least 1, or HF_UNBOUNDED");
    if (config->no_progress_budget < 0 && config->no_progress_budget != HF_UNBOUNDED)
        return hf_fail(err, HF_EINVAL, "no_progress_budget",
                       "the budget is positive, or HF_UNBOUNDED");
    static const struct hf_llm_retry usual = { .size = sizeof(usual) };
    const struct hf_llm_retry *retry = config->retry ? config->retry : &usual;
    rc = hf_sized_check(retry->size, sizeof(*retry), sizeof(*retry), err);
    if (rc)
        return rc;
    if (retry->attempts < 0 || retry->attempts > 1000 || retry->initial_ms < 0 ||
        retry->cap_ms < 0 || retry->retry_after_max_ms < 0 ||
        retry->cap_ms > HF_MAX_DURATION_MAX_MS)
        return hf_fail(err, HF_EINVAL, "retry", "the retry policy is out of range");
    rc = hf_check_key(config->model, (size_t)HF_MAX_KEY_BYTES, "model", err);
    if (rc == 0)
        rc = hf_check_key_opt(config->route, (size_t)HF_MAX_REASON_BYTES, "route", err);
    if (rc == 0)
        rc = hf_check_text(config->limit_text, (size_t)HF_MAX_SUMMARY_BYTES, "limit_text",
                           err);
    if (rc == 0 && config->options.len > 0)
        rc = hf_json_check(config->options, (size_t)HF_MAX_TURN_TEXT_BYTES, "options",
                           err);
    return rc;
}

static void fill_defaults(struct hf_setup *setup)
{
    struct hf_turn_config *config = &setup->config;
    struct hf_llm_retry *retry = &setup->retry;
    if (config->retry)
        *retry = *config->retry;
    config->retry = retry;
    if (config->no_progress_budget == 0)
        config->no_progress_budget = 12;
    if (retry->attempts == 0)
        retry->attempts = 4;
    if (retry->initial_ms == 0)
        retry->initial_ms = 2000;
    if (retry->cap_ms == 0)
        retry->cap_ms = 10000;
    if (retry->retry_after_max_ms == 0)
        retry->retry_after_max_ms = 60000;
    if (!config->limit_text)
        config->limit_text = limit_text;
}

static int fill_setup(struct hf_setup *setup, struct hf_err *err)
{
    struct hf_turn_config *config = &setup->config;
    size_t len = config->options.len;
    char *options = hf_arena_copy(&setup->arena, len ? config->options.at : "{}",
                                  len ? len : 2);
    bool routed = config->route != NULL;
    config->model = hf_arena_text(&setup->arena, config->model);
    config->route = hf_arena_text(&setup->arena, config->route);
    config->limit_text = hf_arena_text(&setup->arena, config->limit_text);
    if (!options || !config->model || (routed && !config->route) || !config->limit_text)
        return hf_fail_plain(err, HF_ENOMEM);
    config->options = (struct hf_span){ options, len ? len : 2 };
    if (hf_sha256(options, config->options.len, setup->options_hash))
        return hf_fail_plain(err, HF_ENOMEM);
    return 0;
}

int hf_setup_new(const struct hf_turn_config *config, struct hf_setup **ret_setup,
                 struct hf_err *err)
{
    int rc = check_config(config, err);
    if (rc)
        return rc;
    const struct hf_alloc *alloc = config->alloc ? config->alloc : hf_alloc_system();
    struct hf_setup *setup = alloc->realloc(alloc->user, NULL, sizeof(*setup));
    if (!setup)
        return hf_fail_plain(err, HF_ENOMEM);
    *setup = (struct hf_setup){ .config = *config };
    setup->config.alloc = alloc;
    hf_arena_init(&setup->arena, alloc);
    fill_defaults(setup);
    rc = fill_setup(setup, err);
    if (rc) {
        hf_setup_free(setup);
        return rc;
    }
    *ret_setup = setup;
    return 0;
}

void hf_setup_free(struct hf_setup *setup)
{
    if (!setup)
        return;
    const struct hf_alloc *alloc = setup->config.alloc;
    hf_arena_fini(&setup->arena);
    alloc->free(alloc->user, setup);
}

/* Records */

static int check_message(const struct hf_message *message, struct hf_err *err)
{
    if (hf_sized_array(message->parts, message->part_count, "parts", err))
        return HF_EINVAL;
    for (size_t i = 0; i < message->part_count; i++) {
        const struct hf_part *part = &message->parts[i];
        bool call = part->kind == HF_PART_TOOL_CALL || part->kind == HF_PART_TOOL_RESULT;
        if (call && (!part->call_id || !part->call_id[0]))
            return hf_fail(err, HF_EINVAL, "call_id", "a call or result has an id");
        if (part->kind == HF_PART_ATTACHMENT && !part->attachment)
            return hf_fail(err, HF_EINVAL, "attachment", "the attachment is missing");
    }
    return 0;
}

/* What the tables cannot say. */
int hf_record_check(const struct hf_record *record, struct hf_err *err)
{
    switch (record->kind) {
    case HF_RECORD_MESSAGE:
        if (!record->message || record->name || record->data.len > 0)
            return hf_fail(err, HF_EINVAL, "record",
                           "a message record has only a message");
        return check_message(record->message, err);
    case HF_RECORD_EVENT:
        if (record->message || !record->name || record->data.len == 0)
            return hf_fail(err, HF_EINVAL, "record",
                           "an event record has a name and data");
        return 0;
    }
    return hf_fail(err, HF_EINVAL, "kind", "the kind of the record is unknown");
}

int hf_outcome_check(const struct hf_outcome *outcome, struct hf_err *err)
{
    if (!outcome->message)
        return 0;
    if (outcome->message->role != HF_ROLE_ASSISTANT)
        return hf_fail(err, HF_EINVAL, "message",
                       "the message of an outcome is the "
                       "assistant's");
    return check_message(outcome->message, err);
}

uint64_t hf_turn_record_count(const struct hf_turn *turn)
{
    return turn->base.count + turn->now.own_count;
}

uint64_t hf_turn_base_count(const struct hf_turn *turn)
{
    return turn->base.count;
}

uint64_t hf_turn_cause_count(const struct hf_turn *turn)
{
    return turn->now.cause_count;
}

const struct hf_cause *hf_turn_cause(const struct hf_turn *turn, uint64_t i)
{
    return i < turn->now.cause_count ? turn->now.causes[i] : NULL;
}

const char *hf_turn_session_id(const struct hf_turn *turn)
{
    return turn->session_id;
}

const char *hf_turn_id(const struct hf_turn *turn)
{
    return turn->turn_id;
}

enum hf_turn_state hf_turn_state(const struct hf_turn *turn)
{
    return turn->now.state;
}

uint64_t hf_turn_outstanding(const struct hf_turn *turn)
{
    return turn->now.wait.id;
}

uint64_t hf_turn_iteration(const struct hf_turn *turn)
{
    return turn->now.iteration;
}

const struct hf_usage *hf_turn_usage(const struct hf_turn *turn)
{
    return &turn->now.usage;
}

const struct hf_evidence *hf_turn_cancelling(const struct hf_turn *turn)
{
    return turn->now.cancel;
}

const struct hf_outcome *hf_turn_outcome(const struct hf_turn *turn)
{
    return turn->now.outcome;
}

size_t hf_turn_bytes(const struct hf_turn *turn, size_t *ret_record_bytes)
{
    size_t array = turn->own_room * sizeof(*turn->now.own);
    if (ret_record_bytes)
        *ret_record_bytes = turn->keep.taken + array;
    return sizeof(*turn) + array + turn->stay.held + turn->keep.held +
           turn->step[0].held + turn->step[1].held + turn->json.room;
}

size_t hf_part_weight(const struct hf_part *part)
{
    return part->kind == HF_PART_REASONING ? 0 : part->content.len;
}

void hf_bytes_free(struct hf_bytes *bytes)
{
    if (bytes->at)
        bytes->alloc->free(bytes->alloc->user, bytes->at);
    *bytes = (struct hf_bytes){ 0 };
}

const char *hf_turn_state_name(enum hf_turn_state state)
{
    return hf_turn_word(&hf_w_states, state);
}

bool hf_effect_takes_response(enum hf_effect_kind kind)
{
    return kind == HF_EFFECT_SYNC || kind == HF_EFFECT_LLM_CALL ||
           kind == HF_EFFECT_TOOL_CALLS || kind == HF_EFFECT_EXEC_CODE ||
           kind == HF_EFFECT_CHECKPOINT || kind == HF_EFFECT_SLEEP;
}

const char *hf_effect_name(enum hf_effect_kind kind)
{
    return hf_turn_word(&hf_w_effects, kind);
}

const char *hf_outcome_name(enum hf_outcome_kind kind)
{
    return hf_turn_word(&hf_w_outcomes, kind);
}

const char *hf_role_name(enum hf_role role)
{
    return hf_turn_word(&hf_w_roles, role);
}
