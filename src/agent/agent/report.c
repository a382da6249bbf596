/* The report about a turn, from the store: its outcome, its records and its journal. */
#include <string.h>

#include <holdfast/turn_json.h>

#include "agent/agent/agent.h"
#include "base/err.h"
#include "base/json_walk.h"
#include "base/text.h"

/* A report and what it shows. */
struct report {
    struct hf_agent_report shown; /* first: it is freed by this address */
    struct hf_arena arena;        /* the report is in it */
    struct hf_session_answer *turn;
    struct hf_agent_call *calls;
    struct hf_agent_issue *issues;
};

#define X(name, word) #word,
static const char *const failures[] = { HF_LLM_FAILURES(X) };
#undef X

/* ---- texts --------------------------------------------------------------------------- */

/* What a JSON string says, or other JSON as it is. */
static struct hf_span plain(struct hf_arena *arena, struct hf_span json)
{
    struct hf_span text = json;
    if (json.len == 0 || ((const char *)json.at)[0] != '"' ||
        hf_walk_text(arena, json, &text))
        return json;
    return text;
}

/* What people read of an answer. */
static struct hf_span answer_text(struct hf_arena *arena,
                                  const struct hf_tool_result *result)
{
    const struct hf_failure *failure = result->failure;
    if (result->outcome == HF_TOOL_FAILURE && failure)
        return failure->message.len > 0
                   ? failure->message
                   : (struct hf_span){ failure->code, strlen(failure->code) };
    if (result->outcome != HF_TOOL_SUCCESS)
        return result->reason;
    for (size_t i = 0; i < result->part_count; i++)
        if (result->parts[i].kind == HF_PART_TEXT)
            return result->parts[i].content;
    return plain(arena, result->value);
}

void hf_tool_result_line(const struct hf_tool_result *result, size_t room, char *ret_line)
{
    struct hf_arena arena;
    hf_arena_init_small(&arena, hf_alloc_system(), 512, 65536);
    struct hf_span text = answer_text(&arena, result);
    size_t len = text.len < room ? text.len : room - 1;
    if (len < text.len)
        len = hf_utf8_cut(text.at, len);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = ((const unsigned char *)text.at)[i];
        ret_line[i] = c < 0x20 || c == 0x7f ? ' ' : (char)c;
    }
    ret_line[len] = '\0';
    hf_arena_fini(&arena);
}

/* ---- the journal ---------------------------------------------------------------------- */

static struct hf_span member(struct hf_span object, const char *name)
{
    struct hf_walk walk;
    hf_walk_begin(&walk, object);
    if (hf_walk_enter(&walk, '{'))
        while (hf_walk_more(&walk)) {
            bool it = hf_walk_is(hf_walk_key(&walk), name);
            struct hf_span value = hf_walk_value(&walk);
            if (it)
                return value;
        }
    return (struct hf_span){ 0 };
}

static struct hf_span span_of(const char *text)
{
    return (struct hf_span){ text, text ? strlen(text) : 0 };
}

/* A copy that ends in a NUL; NULL: there is none, or no memory, which *rc says. */
static const char *kept(struct report *report, struct hf_span text, int *rc)
{
    const char *copy = text.at ? hf_arena_copy(&report->arena, text.at, text.len) : NULL;
    if (text.at && !copy)
        *rc = HF_ENOMEM;
    return copy;
}

static int add_model(struct report *report, const struct hf_session_effect *effect,
                     struct hf_err *err)
{
    struct hf_decoded *owner = NULL;
    const struct hf_llm_error *error = NULL;
    struct hf_span json = member(span_of(effect->outcome), "error");
    if (json.len == 0)
        return 0;
    int rc = hf_llm_error_decode(report->arena.alloc, json, &owner, &error, err);
    if (rc == 0 && !error->cancelled)
        report->issues[report->shown.issue_count++] =
            (struct hf_agent_issue){ .source = "model",
                                     .code = kept(report, span_of(error->code), &rc),
                                     .failure = failures[error->kind],
                                     .message = kept(report, error->message, &rc),
                                     .retryable = error->transient };
    hf_decoded_free(owner);
    return rc;
}

static int add_failure(struct report *report, const char *tool,
                       const struct hf_failure *failure)
{
    int rc = 0;
    report->issues[report->shown.issue_count++] =
        (struct hf_agent_issue){ .source = tool,
                                 .code = kept(report, span_of(failure->code), &rc),
                                 .message = kept(report, failure->message, &rc),
                                 .retryable = failure->retry == HF_RETRY_SAFE };
    return rc;
}

static int add_tool(struct report *report, const struct hf_session_effect *effect,
                    struct hf_err *err)
{
    struct hf_agent_call *call = &report->calls[report->shown.call_count++];
    struct hf_decoded *owner = NULL;
    const struct hf_tool_result *result = NULL;
    struct hf_span tool = { 0 }, id = { 0 };
    struct hf_span envelope = span_of(effect->envelope);
    int rc = hf_walk_text(&report->arena, member(envelope, "tool"), &tool);
    if (rc == 0)
        rc = hf_walk_text(&report->arena, member(envelope, "call"), &id);
    *call = (struct hf_agent_call){ .tool = tool.at,
                                    .call_id = id.at,
                                    .attempt = effect->attempt,
                                    .status = effect->status,
                                    .started_at = effect->started_at,
                                    .ended_at = effect->settled_at,
                                    .taken_over = effect->taken_over };
    if (rc == HF_EINVAL)
        rc = hf_fail(err, HF_ECORRUPT, "effect", "entry %.100s has no tool", effect->key);
    if (rc || !effect->outcome)
        return rc;
    rc = hf_tool_result_decode(report->arena.alloc, span_of(effect->outcome), &owner,
                               &result, err);
    if (rc == 0)
        call->text = kept(report, answer_text(&report->arena, result), &rc);
    if (rc == 0 && result->failure)
        rc = add_failure(report, call->tool, result->failure);
    hf_decoded_free(owner);
    return rc;
}

static int add_effects(struct report *report, struct hf_err *err)
{
    const struct hf_session_answer *turn = report->turn;
    size_t count = turn->effect_count;
    int rc = 0;
    report->calls = hf_arena_array(&report->arena, count + 1, sizeof(*report->calls));
    report->issues = hf_arena_array(&report->arena, count + 1, sizeof(*report->issues));
    if (!report->calls || !report->issues)
        return HF_ENOMEM;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        const struct hf_session_effect *effect = &turn->effects[i];
        if (hf_same(effect->kind, "tool_call"))
            rc = add_tool(report, effect, err);
        else if (effect->outcome)
            rc = add_model(report, effect, err);
    }
    report->shown.calls = report->calls;
    report->shown.issues = report->issues;
    return rc;
}

/* ---- the turn -------------------------------------------------------------------------- */

static int add_outcome(struct report *report, struct hf_err *err)
{
    struct hf_decoded *owner = NULL;
    const struct hf_outcome *outcome = NULL;
    const struct hf_session_turn *turn = report->turn->turn;
    if (!turn->outcome)
        return 0;
    int rc = hf_outcome_decode(report->arena.alloc, span_of(turn->outcome), &owner,
                               &outcome, err);
    if (rc)
        return rc;
    report->shown.outcome = hf_outcome_name(outcome->kind);
    report->shown.answered = outcome->kind <= HF_OUTCOME_FRAME_SWITCH;
    struct hf_span text = outcome->text.len > 0 ? outcome->text
                                                : plain(&report->arena, outcome->value);
    report->shown.text = kept(report, text, &rc);
    hf_decoded_free(owner);
    return rc;
}

static int add_usage(struct report *report, struct hf_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < report->turn->usage_count; i++)
        rc = hf_usage_add(&report->shown.usage, &report->turn->usage[i].usage, err);
    return rc;
}

static void add_times(struct report *report)
{
    const struct hf_session_turn *turn = report->turn->turn;
    hf_ms sent = turn->input_count > 0 ? turn->inputs[0].created_at : turn->started_at;
    report->shown.queued_ms = turn->started_at - sent;
    report->shown.active_ms = turn->active_ms;
    report->shown.whole_ms = turn->finished_at ? turn->finished_at - sent : 0;
}

static struct report *report_new(struct hf_err *err)
{
    struct hf_arena arena;
    hf_arena_init_small(&arena, hf_alloc_system(), 1024, 16384);
    struct report *report = hf_arena_new(&arena, struct report);
    if (report)
        report->arena = arena;
    else
        (void)hf_fail_plain(err, HF_ENOMEM);
    return report;
}

static int fill(struct report *report, struct hf_store *store, const char *session_id,
                const char *name, struct hf_err *err)
{
    int rc = hf_session_turn(store, session_id, name, &report->turn, err);
    if (rc)
        return rc;
    const struct hf_session_turn *turn = report->turn->turn;
    report->shown.turn_id = turn->turn_id;
    report->shown.ended = turn->finished_at != 0;
    report->shown.nodes = report->turn->nodes;
    report->shown.node_count = report->turn->node_count;
    add_times(report);
    rc = add_outcome(report, err);
    if (rc == 0)
        rc = add_usage(report, err);
    if (rc == 0)
        rc = add_effects(report, err);
    return rc == HF_ENOMEM ? hf_fail_plain(err, rc) : rc;
}

int agent_report_run(struct hf_store *store, const struct agent_ran *ran,
                     struct hf_agent_report **ret_report, struct hf_err *err)
{
    struct report *report = report_new(err);
    const char *name = ran->work_id ? ran->work_id : ran->turn_id;
    int rc = 0;
    if (!report)
        return HF_ENOMEM;
    report->shown.session_id = hf_arena_text(&report->arena, ran->session_id);
    report->shown.work_id = hf_arena_text(&report->arena, ran->work_id);
    if (!report->shown.session_id || (ran->work_id && !report->shown.work_id))
        rc = hf_fail_plain(err, HF_ENOMEM);
    if (rc == 0 && name)
        rc = fill(report, store, ran->session_id, name, err);
    if (rc == HF_ENOTFOUND)
        rc = 0; /* no turn has begun */
    if (rc) {
        hf_agent_report_free(&report->shown);
        return rc;
    }
    report->shown.ended = ran->ended;
    report->shown.driven_here = ran->turn_id &&
                                hf_same(ran->turn_id, report->shown.turn_id);
    *ret_report = &report->shown;
    return 0;
}

int hf_agent_report(struct hf_store *store, const char *session_id, const char *name,
                    struct hf_agent_report **ret_report, struct hf_err *err)
{
    struct report *report = report_new(err);
    int rc = report ? fill(report, store, session_id, name, err) : HF_ENOMEM;
    if (rc == 0) {
        report->shown.session_id = report->turn->sessions[0].session_id;
        *ret_report = &report->shown;
    } else if (report)
        hf_agent_report_free(&report->shown);
    return rc;
}

void hf_agent_report_free(struct hf_agent_report *shown)
{
    struct report *report = (struct report *)shown;
    if (!report)
        return;
    hf_session_answer_free(report->turn);
    struct hf_arena arena = report->arena;
    hf_arena_fini(&arena);
}
