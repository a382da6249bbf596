/* The script: what each turn is about, the agent's tools, and what the model and the tools
 * answer. All of it is decided by the seed before the schedule begins. */
#include "sim/drives.h"

#include <stdio.h>
#include <string.h>

#define X(name, word, class) [DRIVES_TOOL_##name] = { word, HF_RECOVERY_##class },
static const struct {
    const char *word;
    enum hf_recovery recovery;
} tools[] = { DRIVES_TOOLS(X) };
#undef X

const char *drives_tool_word(enum drives_tool tool)
{
    return tools[tool].word;
}

/* ---- dice --------------------------------------------------------------------------- */

uint64_t drives_draw(struct drives_dice *dice)
{
    uint64_t z = dice->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

unsigned drives_roll(struct drives_dice *dice, unsigned sides)
{
    return (unsigned)(drives_draw(dice) % sides);
}

bool drives_one_in(struct drives_dice *dice, unsigned odds)
{
    return drives_roll(dice, odds) == 0;
}

/* ---- the plan of each turn ---------------------------------------------------------- */

static void plan_call(struct drives_dice *dice, struct drives_call *call, int number)
{
    call->tool = (enum drives_tool)drives_roll(dice, DRIVES_TOOL_COUNT);
    call->number = number;
    call->hangs = (call->tool == DRIVES_TOOL_PAY || call->tool == DRIVES_TOOL_MAIL) &&
                  drives_one_in(dice, 4);
    call->mute = call->tool == DRIVES_TOOL_MAIL && drives_one_in(dice, 4);
    if (call->tool != DRIVES_TOOL_FLAKY)
        return;
    call->fails = 1 + (int)drives_roll(dice, 2);
    call->after_ms = drives_one_in(dice, 2) ? 300 : 20000;
}

static void plan_turn(struct drives_dice *dice, struct drives_turn *turn)
{
    turn->round_count = (int)drives_roll(dice, DRIVES_ROUNDS + 1);
    turn->cause = (enum drives_cause)drives_roll(dice, 3);
    for (int r = 0; r <= turn->round_count; r++) {
        struct drives_round *round = &turn->rounds[r];
        round->fails = drives_one_in(dice, 5) ? 1 + (int)drives_roll(dice, 2) : 0;
        round->after_ms = drives_one_in(dice, 2) ? 0 : 20000;
        if (r == turn->round_count)
            return; /* the final answer */
        round->call_count = 1 + (int)drives_roll(dice, DRIVES_CALLS);
        for (int c = 0; c < round->call_count; c++)
            plan_call(dice, &round->calls[c], 10 * r + c);
    }
}

void drives_plan(struct drives *d)
{
    d->session_count = 1 + (int)drives_roll(&d->dice, DRIVES_SESSIONS);
    for (int s = 0; s < d->session_count; s++) {
        struct drives_session *session = &d->sessions[s];
        snprintf(session->id, sizeof(session->id), "s%d", s);
        session->turn_count = 1 + (int)drives_roll(&d->dice, DRIVES_TURNS);
        for (int t = 0; t < session->turn_count; t++)
            plan_turn(&d->dice, &session->turns[t]);
    }
}

/* Messages and subscriptions name the turn, "plan-N"; a wake by a process names that. */
struct drives_turn *drives_turn_of(struct drives_session *session, const char *payload)
{
    const char *at = strstr(payload, "plan-");
    int number = at ? at[5] - '0' : -1;
    if (number >= 0 && number < session->turn_count)
        return &session->turns[number];
    for (int t = 0; t < session->turn_count; t++) {
        const char *process = session->turns[t].process;
        if (process[0] && strstr(payload, process))
            return &session->turns[t];
    }
    return NULL;
}

/* {"a":N}; an approval may have added hundreds to it. */
int drives_number(const char *args)
{
    static const char begins[] = "{\"a\":";
    int number = 0;
    if (strncmp(args, begins, sizeof(begins) - 1) != 0)
        return -1;
    for (const char *c = args + sizeof(begins) - 1; *c >= '0' && *c <= '9'; c++)
        number = (10 * number + (*c - '0')) % 100;
    return number;
}

const struct drives_call *drives_call_of(const struct drives_turn *plan, const char *tool,
                                         struct hf_span args)
{
    int number = args.len < 6 ? -1 : drives_number(args.at);
    for (int r = 0; r < plan->round_count; r++)
        for (int c = 0; c < plan->rounds[r].call_count; c++) {
            const struct drives_call *call = &plan->rounds[r].calls[c];
            if (call->number == number && strcmp(tools[call->tool].word, tool) == 0)
                return call;
        }
    return NULL;
}

/* ---- the agent ---------------------------------------------------------------------- */

static void run_nothing(void *user, struct hf_invocation *call)
{
    (void)user;
    (void)call;
}

static enum hf_probe probe_nothing(void *user, struct hf_invocation *call)
{
    (void)user;
    (void)call;
    return HF_PROBE_CANNOT_TELL;
}

static int add_tool(struct drives *d, enum drives_tool which, struct hf_err *err)
{
    struct hf_tool tool = { .size = sizeof(tool),
                            .name = tools[which].word,
                            .recovery = tools[which].recovery,
                            .run = run_nothing };
    tool.schema = DRIVES_TEXT("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":"
                              "\"integer\"}}}");
    if (tool.recovery == HF_RECOVERY_PROBE)
        tool.probe = probe_nothing;
    if (which == DRIVES_TOOL_BUY || which == DRIVES_TOOL_TRUST ||
        which == DRIVES_TOOL_URGENT) {
        tool.approval.rule = "always";
        tool.approval.terms.within_ms = 9000;
    }
    if (which == DRIVES_TOOL_TRUST)
        tool.approval.terms.at_deadline = HF_AT_DEADLINE_APPROVE;
    if (which == DRIVES_TOOL_URGENT)
        tool.approval.terms.at_deadline = HF_AT_DEADLINE_FAIL_TURN;
    return hf_toolset_add(d->tools, &tool, err);
}

/* Two setups that differ in their prompt: a turn may be continued by the other one. */
int drives_make_agent(struct drives *d, struct hf_err *err)
{
    static const char *const prompts[] = { "Be brief.", "Be kind." };
    int rc = hf_toolset_new(NULL, &d->tools, err);
    for (int i = 0; rc == 0 && i < DRIVES_TOOL_COUNT; i++)
        rc = add_tool(d, (enum drives_tool)i, err);
    for (int i = 0; rc == 0 && i < 2; i++) {
        struct hf_turn_config config = { .size = sizeof(config),
                                         .protocol = hf_protocol_standard(),
                                         .model = "model-1",
                                         .turn_budget = 8 };
        rc = hf_surface_new(NULL, DRIVES_TEXT(prompts[i]), hf_toolset_json(d->tools),
                            &d->surfaces[i], err);
        config.surface = d->surfaces[i];
        if (rc == 0)
            rc = hf_setup_new(&config, &d->setups[i], err);
    }
    return rc;
}

void drives_free_agent(struct drives *d)
{
    for (int i = 0; i < 2; i++) {
        hf_setup_free(d->setups[i]);
        hf_surface_free(d->surfaces[i]);
    }
    hf_toolset_unref(d->tools);
}

/* ---- what the world answers --------------------------------------------------------- */

void drives_reply(struct drives_worker *w, const struct drives_out *out,
                  struct hf_drive_event event)
{
    const struct drives_round *round = &w->plan->rounds[out->iteration];
    struct hf_part parts[DRIVES_CALLS] = { { 0 } };
    char ids[DRIVES_CALLS][8], args[DRIVES_CALLS][16];
    struct hf_llm_error error = { .size = sizeof(error),
                                  .kind = HF_LLM_HTTP,
                                  .transient = true,
                                  .charge_safe = true,
                                  .retry_after_ms = round->after_ms,
                                  .code = "overloaded",
                                  .message = DRIVES_TEXT("busy") };
    struct hf_llm_response response = { .size = sizeof(response),
                                        .parts = parts,
                                        .part_count = 1,
                                        .reason = HF_REASON_STOP,
                                        .usage = { .input = 10, .output = 5 } };
    for (int c = 0; c < round->call_count; c++) {
        snprintf(ids[c], sizeof(ids[c]), "p%d", c);
        snprintf(args[c], sizeof(args[c]), "{\"a\":%d}", round->calls[c].number);
        parts[c] = (struct hf_part){ .kind = HF_PART_TOOL_CALL,
                                     .call_id = ids[c],
                                     .tool = tools[round->calls[c].tool].word,
                                     .content = DRIVES_TEXT(args[c]) };
        response.part_count = (size_t)round->call_count;
        response.reason = HF_REASON_TOOL_USE;
    }
    if (round->call_count == 0)
        parts[0].content = DRIVES_TEXT("finished");
    event.kind = HF_DRIVEN_REPLY;
    event.id = out->model;
    if (out->attempt <= (uint32_t)round->fails)
        event.error = &error;
    else
        event.response = &response;
    hf_drive_feed(w->drive, &event);
}

/* The answer of a call that comes a second time: another one, which must be ignored. */
static bool again(const struct drives_out *out, struct hf_tool_result *value)
{
    value->value = DRIVES_TEXT("{\"again\":true}");
    return out->again;
}

void drives_tool_answers(struct drives_worker *w, const struct drives_out *out,
                         struct hf_drive_event event)
{
    char text[64];
    const struct drives_call *call = out->call;
    struct hf_failure failure = { .class_ = HF_FAILURE_IO,
                                  .code = "io",
                                  .retry = HF_RETRY_SAFE,
                                  .after_ms = call->after_ms };
    struct hf_tool_result value = { 0 };
    struct hf_deferred deferred = { .question = "has it ended?",
                                    .terms = { .within_ms = 15000 } };
    struct hf_invocation_result result = { .result = &value };
    snprintf(text, sizeof(text), "{\"%s\":%d}", tools[call->tool].word, call->number);
    if (again(out, &value))
        ;
    else if (out->probe) {
        result.result = NULL;
        result.probe = call->mute      ? HF_PROBE_CANNOT_TELL
                       : out->happened ? HF_PROBE_HAPPENED
                                       : HF_PROBE_NOT_HAPPENED;
        if (result.probe == HF_PROBE_HAPPENED)
            result.result = &value;
        value.value = DRIVES_TEXT(text);
    } else if (call->hangs) {
        result = (struct hf_invocation_result){ .timed_out = true };
    } else if (call->tool == DRIVES_TOOL_LATER) {
        result = (struct hf_invocation_result){ .deferred = &deferred };
    } else if ((int)out->attempt <= call->fails) {
        value = (struct hf_tool_result){ .outcome = HF_TOOL_FAILURE,
                                         .failure = &failure };
    } else {
        value.value = DRIVES_TEXT(text);
    }
    event.kind = HF_DRIVEN_ANSWER;
    event.call_id = out->call_id;
    event.result = &result;
    hf_drive_feed(w->drive, &event);
}
