#include "turn/cells.h"

#include <stdio.h>
#include <string.h>

static struct hf_span span(const char *text)
{
    return (struct hf_span){ text, strlen(text) };
}

static int prepare(const struct hf_protocol *protocol, struct hf_move *move,
                   struct hf_err *err)
{
    (void)protocol;
    char data[32];
    snprintf(data, sizeof(data), "ask %d", (int)hf_move_iteration(move));
    struct hf_driver_state driver = { .owner = "cells", .data = span(data) };
    return hf_act_start_llm(move, false, &driver, err);
}

static int next_iteration(struct hf_move *move, struct hf_err *err)
{
    int rc = hf_act_advance(move, err);
    if (rc)
        return rc;
    if (hf_move_limit_reached(move)) {
        struct hf_outcome outcome = { .kind = HF_OUTCOME_MAX_TURNS };
        if (hf_move_grace_used(move))
            return hf_act_finish(move, &outcome, err);
        rc = hf_act_grace(move, err);
    }
    return rc ? rc : hf_act_checkpoint(move, HF_CHECKPOINT_AFTER_WORK, NULL, err);
}

static int stalled(struct hf_move *move, struct hf_err *err)
{
    bool spent = false;
    struct hf_outcome outcome = { .kind = HF_OUTCOME_NO_PROGRESS };
    int rc = hf_act_stall(move, &spent, err);
    if (rc)
        return rc;
    return spent ? hf_act_finish(move, &outcome, err) : next_iteration(move, err);
}

static int llm_done(const struct hf_protocol *protocol, struct hf_move *move,
                    const struct hf_llm_response *response,
                    const struct hf_driver_state *driver, struct hf_err *err)
{
    (void)protocol;
    const char *text = response->part_count ? response->parts[0].content.at : "";
    if (strncmp(text, "run: ", 5) == 0) {
        struct hf_exec_start start = {
            .language = "lua", .code = span(text + 5), .bindings = "b0", .driver = driver
        };
        return hf_act_start_exec(move, &start, err);
    }
    if (strcmp(text, "stall") == 0)
        return stalled(move, err);
    struct hf_outcome outcome = { .kind = HF_OUTCOME_ASSISTANT_MESSAGE,
                                  .text = span(text) };
    return hf_act_checkpoint(move, HF_CHECKPOINT_BEFORE_COMPLETION, &outcome, err);
}

static int tools_done(const struct hf_protocol *protocol, struct hf_move *move,
                      const struct hf_tool_call *calls, size_t count, struct hf_err *err)
{
    (void)protocol;
    (void)move;
    (void)calls;
    (void)count;
    (void)err;
    return HF_EINTERNAL; /* it never starts tools */
}

static int exec_done(const struct hf_protocol *protocol, struct hf_move *move,
                     const struct hf_exec_result *result,
                     const struct hf_driver_state *driver, struct hf_err *err)
{
    (void)protocol;
    char json[256];
    snprintf(json, sizeof(json), "{\"asked\":\"%.*s\",\"calls\":%zu,\"is\":\"%s\"}",
             (int)driver->data.len, (const char *)driver->data.at, result->call_count,
             result->unknown         ? "unknown"
             : result->failed        ? "failed"
             : result->error.len > 0 ? "error"
                                     : "ok");
    int rc = hf_act_event(move, "cell", span(json), err);
    if (rc)
        return rc;
    if (result->finish.len > 0) {
        struct hf_outcome outcome = { .kind = HF_OUTCOME_FINAL_VALUE,
                                      .value = result->finish };
        return hf_act_finish(move, &outcome, err);
    }
    if (result->failed || result->error.len > 0)
        return stalled(move, err);
    rc = hf_act_progress(move, err);
    return rc ? rc : next_iteration(move, err);
}

const struct hf_protocol *cells_protocol(void)
{
    static const struct hf_protocol_ops ops = { .id = "cells",
                                                .takes_cut_replies = true,
                                                .prepare = prepare,
                                                .llm_done = llm_done,
                                                .tools_done = tools_done,
                                                .exec_done = exec_done };
    static const struct hf_protocol protocol = { .ops = &ops };
    return &protocol;
}
