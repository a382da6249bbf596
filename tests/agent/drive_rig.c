/* The world of drives in tests. */
#include "agent/drive_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char turn_id[] = "01234567-89ab-7cde-8f01-23456789abcd";

static struct hf_span span_of(const char *text)
{
    return (struct hf_span){ text, strlen(text) };
}

__attribute__((format(printf, 2, 3))) static void say(struct drig *rig,
                                                      const char *format, ...)
{
    va_list args;
    size_t used = strlen(rig->log);
    va_start(args, format);
    vsnprintf(rig->log + used, sizeof(rig->log) - used, format, args);
    va_end(args);
}

/* ---- names -------------------------------------------------------------------------- */

static const char *tool_of(struct drig *rig, const char *call_id)
{
    for (size_t i = 0; i < rig->call_count; i++)
        if (strcmp(rig->calls[i].id, call_id) == 0)
            return rig->calls[i].tool;
    return call_id;
}

static const char *call_of(struct drig *rig, const char *tool)
{
    for (size_t i = rig->call_count; i > 0; i--)
        if (strcmp(rig->calls[i - 1].tool, tool) == 0)
            return rig->calls[i - 1].id;
    return tool;
}

static void learn(struct drig *rig, const char *call_id, const char *tool)
{
    if (tool_of(rig, call_id) != call_id)
        return;
    assert_true(rig->call_count < DRIG_MAX);
    snprintf(rig->calls[rig->call_count].id, 32, "%s", call_id);
    snprintf(rig->calls[rig->call_count++].tool, 16, "%s", tool);
}

/* A key with the tool's name in place of the call's id. */
static const char *short_key(struct drig *rig, const char *key)
{
    static char text[HF_EFFECT_KEY_ROOM];
    struct hf_effect_name name;
    if (!hf_effect_key_read(key, &name)) { /* of a question: KEY/happened */
        char cut[HF_EFFECT_KEY_ROOM];
        const char *end = strrchr(key, '/');
        assert_true(end && (size_t)(end - key) < sizeof(cut));
        snprintf(cut, sizeof(cut), "%.*s", (int)(end - key), key);
        assert_true(hf_effect_key_read(cut, &name));
        snprintf(text, sizeof(text), "%d/%s/%d%s", (int)name.effect,
                 tool_of(rig, name.call_id), (int)name.attempt, end);
        return text;
    }
    if (name.attempt)
        snprintf(text, sizeof(text), "%d/%s/%d", (int)name.effect,
                 tool_of(rig, name.call_id), (int)name.attempt);
    else
        snprintf(text, sizeof(text), "%d", (int)name.effect);
    return text;
}

static struct drig_entry *entry_of(struct drig *rig, const char *key)
{
    for (size_t i = 0; i < rig->entry_count; i++)
        if (strcmp(rig->entries[i].key, key) == 0)
            return &rig->entries[i];
    return NULL;
}

const char *drig_status(struct drig *rig, const char *key)
{
    for (size_t i = 0; i < rig->entry_count; i++)
        if (strcmp(short_key(rig, rig->entries[i].key), key) == 0)
            return hf_entry_status_name(rig->entries[i].entry.status);
    return "";
}

int drig_performed(struct drig *rig, const char *key)
{
    for (size_t i = 0; i < rig->performed_count; i++)
        if (strcmp(short_key(rig, rig->performed[i].key), key) == 0)
            return rig->performed[i].count;
    return 0;
}

static void perform(struct drig *rig, const char *key)
{
    for (size_t i = 0; i < rig->performed_count; i++)
        if (strcmp(rig->performed[i].key, key) == 0) {
            rig->performed[i].count++;
            return;
        }
    assert_true(rig->performed_count < DRIG_MAX);
    snprintf(rig->performed[rig->performed_count].key, HF_EFFECT_KEY_ROOM, "%s", key);
    rig->performed[rig->performed_count++].count = 1;
}

/* ---- the store ---------------------------------------------------------------------- */

static void keep_records(struct drig *rig, const struct hf_record *records, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct hf_bytes json = { 0 };
        assert_true(rig->record_count < DRIG_MAX);
        assert_int_equal(hf_record_encode(NULL, &records[i], &json, NULL), 0);
        assert_true(json.len < sizeof(rig->records[0]));
        memcpy(rig->records[rig->record_count], json.at, json.len);
        rig->records[rig->record_count++][json.len] = '\0';
        assert_int_equal(hf_record_chain(rig->chain, &records[i], rig->chain, NULL), 0);
        hf_bytes_free(&json);
    }
}

static void keep_begun(struct drig *rig, const struct hf_effect_entry *begun)
{
    assert_null(entry_of(rig, begun->key));
    assert_true(rig->entry_count < DRIG_MAX);
    assert_int_equal(begun->status, HF_ENTRY_STARTED);
    assert_int_equal(begun->fence, rig->fence);
    struct drig_entry *kept = &rig->entries[rig->entry_count++];
    snprintf(kept->key, sizeof(kept->key), "%s", begun->key);
    assert_true(begun->envelope.len < sizeof(kept->envelope));
    memcpy(kept->envelope, begun->envelope.at, begun->envelope.len);
    kept->entry = *begun;
    kept->entry.key = kept->key;
    kept->entry.kind = NULL;
    kept->entry.envelope.at = kept->envelope;
    kept->entry.outcome = (struct hf_span){ 0 };
}

static void keep_settled(struct drig *rig, const struct hf_effect_settled *settled)
{
    struct drig_entry *entry = entry_of(rig, settled->key);
    assert_non_null(entry);
    assert_int_equal(entry->entry.status, HF_ENTRY_STARTED); /* once */
    assert_true(settled->outcome.len > 0 &&
                settled->outcome.len < sizeof(entry->outcome));
    memcpy(entry->outcome, settled->outcome.at, settled->outcome.len);
    entry->entry.outcome = (struct hf_span){ entry->outcome, settled->outcome.len };
    entry->entry.status = settled->status;
    entry->entry.due_at = settled->due_at;
    entry->taken_over = settled->taken_over;
    if (settled->usage)
        rig->tokens += settled->usage->output;
}

static void keep_blob(struct drig *rig, const struct hf_effect_blob *blob)
{
    for (size_t i = 0; i < rig->blob_count; i++)
        if (memcmp(rig->blobs[i].hash, blob->hash, 32) == 0)
            return;
    assert_true(rig->blob_count < DRIG_MAX);
    struct hf_effect_blob *kept = &rig->blobs[rig->blob_count++];
    *kept = *blob;
    char *bytes = malloc(blob->bytes.len + 1);
    assert_non_null(bytes);
    memcpy(bytes, blob->bytes.at, blob->bytes.len);
    kept->bytes.at = bytes;
}

static struct drig_wait *wait_of(struct drig *rig, const char *name)
{
    for (size_t i = 0; i < rig->wait_count; i++)
        if (strcmp(short_key(rig, rig->waits[i].name), name) == 0)
            return &rig->waits[i];
    return NULL;
}

const struct drig_wait *drig_wait(struct drig *rig, const char *name)
{
    const struct drig_wait *wait = wait_of(rig, name);
    if (!wait)
        fail_msg("there is no wait %s", name);
    return wait;
}

void drig_resolve(struct drig *rig, const char *name, const char *actor,
                  const char *outcome)
{
    struct drig_wait *wait = wait_of(rig, name);
    if (!wait)
        fail_msg("there is no wait %s", name);
    if (strcmp(wait->wait.state, "open") != 0)
        return; /* the first answer is the outcome */
    snprintf(wait->outcome, sizeof(wait->outcome), "%s", outcome);
    snprintf(wait->actor, sizeof(wait->actor), "%s", actor);
    wait->wait.state = "resolved";
    wait->wait.outcome = wait->outcome;
    wait->wait.actor = wait->actor;
}

void drig_resolve_early(struct drig *rig, uint64_t effect, const char *tool,
                        const char *outcome)
{
    assert_true(rig->wait_count < DRIG_MAX);
    struct drig_wait *kept = &rig->waits[rig->wait_count++];
    hf_effect_key(effect, call_of(rig, tool), 1, kept->name);
    assert_int_equal(hf_wait_id(turn_id, HF_WAIT_TOOL, kept->name, kept->id, NULL), 0);
    snprintf(kept->outcome, sizeof(kept->outcome), "%s", outcome);
    kept->wait = (struct hf_wait){ .wait_id = kept->id,
                                   .kind = hf_wait_kind_word(HF_WAIT_TOOL),
                                   .state = "resolved",
                                   .outcome = kept->outcome };
}

void drig_fail_turn(struct drig *rig, const char *name)
{
    drig_resolve(rig, name, "sweep", "{\"kind\":\"timeout\"}");
    struct hf_wait *wait = &wait_of(rig, name)->wait;
    wait->state = "timed_out";
    wait->policy = "fail_turn";
}

static bool same_wait(const struct drig_wait *kept, const struct hf_wait_spec *wait)
{
    return strcmp(kept->name, wait->name) == 0 &&
           strcmp(kept->wait.kind, hf_wait_kind_word(wait->kind)) == 0;
}

static void keep_wait(struct drig *rig, const struct hf_wait_spec *wait, bool fresh)
{
    for (size_t i = 0; i < rig->wait_count; i++)
        if (same_wait(&rig->waits[i], wait)) {
            assert_false(fresh);
            return;
        }
    assert_true(rig->wait_count < DRIG_MAX);
    struct drig_wait *kept = &rig->waits[rig->wait_count++];
    snprintf(kept->name, sizeof(kept->name), "%s", wait->name);
    snprintf(kept->asked, sizeof(kept->asked), "%s", wait->asked ? wait->asked : "");
    assert_int_equal(hf_wait_id(turn_id, wait->kind, wait->name, kept->id, NULL), 0);
    kept->wait = (struct hf_wait){ .wait_id = kept->id,
                                   .kind = hf_wait_kind_word(wait->kind),
                                   .name = kept->name,
                                   .state = "open",
                                   .asked = kept->asked,
                                   .policy = wait->policy ? "some" : "",
                                   .deadline_at = wait->deadline_at };
    assert_true(wait->policy ||
                wait->kind == HF_WAIT_TIMER); /* otherwise it is refused */
}

static void keep_waits(struct drig *rig, const struct hf_drive_step *step)
{
    size_t old = step->wait_count - step->new_wait_count;
    for (size_t i = 0; i < step->wait_count; i++)
        keep_wait(rig, &step->waits[i], i >= old);
    assert_true(!step->away || step->wait_count > 0);
    rig->away = step->away;
}

static void apply(struct drig *rig, const struct hf_drive_step *step)
{
    assert_int_equal(step->step, rig->step);
    assert_int_equal(step->node_count, rig->node_count);
    assert_memory_equal(step->chain, rig->chain, 32);
    assert_true(step->save.len > 0 && step->save.len <= sizeof(rig->save));
    keep_records(rig, step->records, step->record_count);
    memcpy(rig->save, step->save.at, step->save.len);
    rig->save_len = step->save.len;
    for (size_t i = 0; i < step->settled_count; i++)
        keep_settled(rig, &step->settled[i]);
    for (size_t i = 0; i < step->begun_count; i++)
        keep_begun(rig, &step->begun[i]);
    for (size_t i = 0; i < step->blob_count; i++)
        keep_blob(rig, &step->blobs[i]);
    keep_waits(rig, step);
    rig->step++;
    rig->node_count += (int64_t)step->record_count;
    rig->active_ms += step->active_ms;
}

static void apply_commit(struct drig *rig, const struct hf_drive_commit *commit)
{
    assert_int_equal(commit->step, rig->step);
    assert_int_equal(commit->node_count, rig->node_count);
    assert_memory_equal(commit->chain, rig->chain, 32);
    keep_records(rig, commit->records, commit->record_count);
    rig->committed = rig->record_count;
    rig->ended = true;
    rig->active_ms += commit->active_ms;
    assert_true(commit->outcome.len < sizeof(rig->outcome));
    memcpy(rig->outcome, commit->outcome.at, commit->outcome.len + 1);
}

void drig_store(struct drig *rig)
{
    assert_true(rig->waiting);
    rig->waiting = false;
    if (rig->action.kind == HF_DRIVE_COMMIT)
        apply_commit(rig, rig->action.commit);
    else
        apply(rig, rig->action.step);
    drig_event(rig, HF_DRIVEN_STORED, 0);
}

/* ---- actions ------------------------------------------------------------------------ */

/* Envelopes name the tool of a call; calls are learned from them. */
static void learn_calls(struct drig *rig, const struct hf_drive_step *step)
{
    for (size_t i = 0; i < step->begun_count; i++) {
        char envelope[1024] = "", tool[64] = "";
        struct hf_effect_name name;
        assert_true(hf_effect_key_read(step->begun[i].key, &name));
        memcpy(envelope, step->begun[i].envelope.at, step->begun[i].envelope.len);
        const char *at = strstr(envelope, "\"tool\":\"");
        if (at && strlen(at + 8) < sizeof(tool)) {
            memcpy(tool, at + 8, strcspn(at + 8, "\""));
            learn(rig, name.call_id, tool);
        }
    }
}

/* A call that was not begun is learned from what is asked about it. */
static void learn_asked(struct drig *rig, const struct hf_wait_spec *wait)
{
    char tool[16], call[32];
    const char *at = wait->asked ? strstr(wait->asked, "\"name\":\"") : NULL;
    const char *id = strchr(wait->name, '/');
    if (!at || !id)
        return;
    snprintf(tool, sizeof(tool), "%.*s", (int)strcspn(at + 8, "\""), at + 8);
    snprintf(call, sizeof(call), "%.*s", (int)strcspn(id + 1, "/"), id + 1);
    learn(rig, call, tool);
}

static void tell_step(struct drig *rig, const struct hf_drive_step *step)
{
    learn_calls(rig, step);
    say(rig, "store %d", (int)step->step);
    if (step->record_count)
        say(rig, " records %d", (int)step->record_count);
    for (size_t i = 0; i < step->settled_count; i++)
        say(rig, "%s %s:%s%s", i ? "" : " settle", short_key(rig, step->settled[i].key),
            hf_entry_status_name(step->settled[i].status),
            step->settled[i].taken_over ? "*" : "");
    for (size_t i = 0; i < step->begun_count; i++)
        say(rig, "%s %s", i ? "" : " begin", short_key(rig, step->begun[i].key));
    for (size_t i = 0; i < step->wait_count; i++) {
        const struct hf_wait_spec *wait = &step->waits[i];
        bool fresh = i >= step->wait_count - step->new_wait_count;
        learn_asked(rig, wait);
        say(rig, " %s %s:%s", fresh ? "ask" : "wait", hf_wait_kind_word(wait->kind),
            short_key(rig, wait->name));
    }
    say(rig, "%s\n", step->away ? " away" : "");
}

static void tell_tool(struct drig *rig, const char *word,
                      const struct hf_drive_call *call)
{
    char key[HF_EFFECT_KEY_ROOM];
    hf_effect_key(call->key.effect, call->key.call_id, call->key.attempt, key);
    learn(rig, call->key.call_id, call->tool);
    say(rig, "%s %s", word, short_key(rig, key));
    if (rig->action.kind == HF_DRIVE_TOOL && !call->probe) {
        struct drig_entry *entry = entry_of(rig, key);
        say(rig, " %s", (const char *)call->args.at);
        if (!rig->config.host || rig->config.host->journaled)
            assert_true(entry && entry->entry.status == HF_ENTRY_STARTED);
        perform(rig, key);
    }
    say(rig, "\n");
}

static void fetch(struct drig *rig)
{
    struct hf_drive_event event = { .kind = HF_DRIVEN_FETCHED,
                                    .wall_ms = rig->now,
                                    .mono_ms = rig->now,
                                    .code = HF_ENOTFOUND };
    for (size_t i = 0; i < rig->blob_count; i++)
        if (memcmp(rig->blobs[i].hash, rig->action.hash, 32) == 0) {
            event.code = 0;
            event.bytes = rig->blobs[i].bytes;
        }
    hf_drive_feed(rig->drive, &event);
}

static void tell_store(struct drig *rig)
{
    if (rig->action.kind == HF_DRIVE_STORE)
        tell_step(rig, rig->action.step);
    else
        say(rig, "commit %s records %d\n", hf_status_word(rig->action.commit->status),
            (int)rig->action.commit->record_count);
    rig->waiting = true;
    if (!rig->hold_store)
        drig_store(rig);
}

bool drig_act(struct drig *rig)
{
    struct hf_drive_action *action = &rig->action;
    if (!rig->drive || !hf_drive_next(rig->drive, action))
        return false;
    switch (action->kind) {
    case HF_DRIVE_STORE:
    case HF_DRIVE_COMMIT: tell_store(rig); break;
    case HF_DRIVE_MODEL: say(rig, "model %d\n", (int)action->id); break;
    case HF_DRIVE_STOP_MODEL: say(rig, "stop model %d\n", (int)action->id); break;
    case HF_DRIVE_TOOL:
        tell_tool(rig, action->call->probe ? "probe" : "tool", action->call);
        break;
    case HF_DRIVE_STOP_TOOL: tell_tool(rig, "stop tool", action->call); break;
    case HF_DRIVE_SYNC: say(rig, "sync\n"); break;
    case HF_DRIVE_BLOB:
        say(rig, "blob\n");
        fetch(rig);
        break;
    case HF_DRIVE_TIMER: say(rig, "timer +%d\n", (int)(action->due_ms - rig->now)); break;
    case HF_DRIVE_EMIT: break;
    case HF_DRIVE_BACK:
        rig->active_ms += action->active_ms;
        say(rig, "back +%d%s%s\n", (int)action->delay_ms, action->code ? " " : "",
            action->code ? hf_err_wire(action->code) : "");
        break;
    case HF_DRIVE_END:
        say(rig, "end\n");
        drig_kill(rig);
        break;
    }
    return true;
}

void drig_expect(struct drig *rig, const char *lines)
{
    while (drig_act(rig))
        ;
    if (strcmp(rig->log, lines) != 0)
        fail_msg("expected\n%sgot\n%s", lines, rig->log);
    rig->log[0] = '\0';
}

/* ---- events ------------------------------------------------------------------------- */

static void feed(struct drig *rig, struct hf_drive_event event)
{
    struct hf_evidence evidence = { .request_id = "r1" };
    event.wall_ms = event.mono_ms = rig->now;
    event.evidence = &evidence;
    hf_drive_feed(rig->drive, &event);
}

void drig_event(struct drig *rig, enum hf_drive_event_kind kind, int code)
{
    feed(rig, (struct hf_drive_event){ .kind = kind, .code = code });
}

void drig_cancel(struct drig *rig, enum hf_status status)
{
    feed(rig, (struct hf_drive_event){ .kind = HF_DRIVEN_CANCEL, .status = status });
}

void drig_pass(struct drig *rig, hf_ms ms)
{
    rig->now += ms;
    drig_event(rig, HF_DRIVEN_TIMER, 0);
}

static void reply(struct drig *rig, uint64_t id, const struct hf_part *parts,
                  size_t count)
{
    struct hf_llm_response response = { .size = sizeof(response),
                                        .parts = parts,
                                        .part_count = count,
                                        .usage = { .input = 10, .output = 5 } };
    response.reason = parts[0].kind == HF_PART_TOOL_CALL ? HF_REASON_TOOL_USE
                                                         : HF_REASON_STOP;
    struct hf_drive_event event = { .kind = HF_DRIVEN_REPLY,
                                    .wall_ms = rig->now,
                                    .mono_ms = rig->now,
                                    .id = id,
                                    .response = &response };
    hf_drive_feed(rig->drive, &event);
}

void drig_say(struct drig *rig, uint64_t id, const char *text)
{
    struct hf_part part = { .content = span_of(text) };
    reply(rig, id, &part, 1);
}

void drig_ask(struct drig *rig, uint64_t id, ...)
{
    struct hf_part parts[16];
    char ids[16][8];
    size_t count = 0;
    va_list args;
    va_start(args, id);
    for (const char *tool = va_arg(args, const char *); tool;
         tool = va_arg(args, const char *)) {
        snprintf(ids[count], sizeof(ids[0]), "p%d", (int)count);
        parts[count] = (struct hf_part){ .kind = HF_PART_TOOL_CALL,
                                         .call_id = ids[count],
                                         .tool = tool,
                                         .content = span_of(va_arg(args, const char *)) };
        count++;
    }
    va_end(args);
    reply(rig, id, parts, count);
}

void drig_model_fails(struct drig *rig, uint64_t id)
{
    struct hf_llm_error error = { .size = sizeof(error),
                                  .kind = HF_LLM_HTTP,
                                  .transient = true,
                                  .charge_safe = true,
                                  .code = "overloaded",
                                  .message = span_of("busy") };
    struct hf_drive_event event = { .kind = HF_DRIVEN_REPLY,
                                    .wall_ms = rig->now,
                                    .mono_ms = rig->now,
                                    .id = id,
                                    .error = &error };
    hf_drive_feed(rig->drive, &event);
}

static void answer(struct drig *rig, const char *tool,
                   const struct hf_invocation_result *result)
{
    struct hf_drive_event event = { .kind = HF_DRIVEN_ANSWER,
                                    .wall_ms = rig->now,
                                    .mono_ms = rig->now,
                                    .call_id = call_of(rig, tool),
                                    .result = result };
    hf_drive_feed(rig->drive, &event);
}

void drig_answer(struct drig *rig, const char *tool, const char *json)
{
    struct hf_tool_result value = { .value = span_of(json) };
    struct hf_invocation_result result = { .result = &value };
    answer(rig, tool, &result);
}

void drig_fail_tool(struct drig *rig, const char *tool, enum hf_failure_retry retry)
{
    struct hf_failure failure = { .code = "io", .retry = retry };
    struct hf_tool_result value = { .outcome = HF_TOOL_FAILURE, .failure = &failure };
    struct hf_invocation_result result = { .result = &value };
    answer(rig, tool, &result);
}

void drig_cut_tool(struct drig *rig, const char *tool, bool timed_out)
{
    struct hf_invocation_result result = { .timed_out = timed_out,
                                           .stopped = !timed_out };
    answer(rig, tool, &result);
}

void drig_defer(struct drig *rig, const char *tool)
{
    struct hf_deferred deferred = { .question = "is it done?" };
    struct hf_invocation_result result = { .deferred = &deferred };
    answer(rig, tool, &result);
}

void drig_probe(struct drig *rig, const char *tool, enum hf_probe probe, const char *json)
{
    struct hf_tool_result value = { .value = span_of(json ? json : "") };
    struct hf_invocation_result result = { .probe = probe,
                                           .result = json ? &value : NULL };
    answer(rig, tool, &result);
}

/* ---- claims ------------------------------------------------------------------------- */

static const struct hf_record *get_record(void *user, uint64_t i)
{
    struct drig *rig = user;
    return rig->lent[i];
}

static void forget_records(struct drig *rig)
{
    for (size_t i = 0; i < rig->lent_count; i++)
        hf_decoded_free(rig->lent_owner[i]);
    rig->lent_count = 0;
}

static void lend_records(struct drig *rig)
{
    forget_records(rig);
    for (size_t i = 0; i < rig->record_count; i++)
        assert_int_equal(hf_record_decode(NULL, span_of(rig->records[i]),
                                          &rig->lent_owner[i], &rig->lent[i], NULL),
                         0);
    rig->lent_count = rig->record_count;
}

int drig_try_claim(struct drig *rig, struct hf_err *err)
{
    struct hf_part part = { .content = span_of("hi") };
    struct hf_message message = { .id = "m1", .parts = &part, .part_count = 1 };
    struct hf_record input = { .message = &message };
    struct hf_base base = { .id = "0", .count = rig->record_count, .user = rig };
    struct hf_effect_entry entries[DRIG_MAX];
    struct hf_wait waits[DRIG_MAX];
    for (size_t i = 0; i < rig->entry_count; i++)
        entries[i] = rig->entries[i].entry;
    for (size_t i = 0; i < rig->wait_count; i++)
        waits[i] = rig->waits[i].wait;
    lend_records(rig);
    base.get = get_record;
    memcpy(base.digest, rig->chain, sizeof(base.digest));
    struct hf_drive_turn turn = { .size = sizeof(turn),
                                  .session_id = "s",
                                  .turn_id = turn_id,
                                  .base = &base,
                                  .step = rig->step,
                                  .node_count = rig->node_count,
                                  .effects_past = rig->effects_past,
                                  .save = { rig->save, rig->save_len },
                                  .inputs = &input,
                                  .input_count = 1,
                                  .entries = entries,
                                  .entry_count = rig->entry_count,
                                  .waits = waits,
                                  .wait_count = rig->wait_count,
                                  .fence = ++rig->fence,
                                  .wall_ms = rig->now,
                                  .mono_ms = rig->now };
    return hf_drive_new(&rig->config, &turn, &rig->drive, err);
}

void drig_claim(struct drig *rig)
{
    struct hf_err err = { 0 };
    if (drig_try_claim(rig, &err))
        fail_msg("%s", err.message);
}

void drig_kill(struct drig *rig)
{
    hf_drive_free(rig->drive);
    rig->drive = NULL;
    rig->waiting = false;
}

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

static void add_tool(struct drig *rig, const char *name, enum hf_recovery recovery)
{
    struct hf_err err = { 0 };
    struct hf_tool tool = {
        .size = sizeof(tool), .name = name, .recovery = recovery, .run = run_nothing
    };
    tool.schema = span_of("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":"
                          "\"integer\"}}}");
    if (recovery == HF_RECOVERY_PROBE)
        tool.probe = probe_nothing;
    if (strcmp(name, "buy") == 0)
        tool.approval.rule = "{\"/a\":{\"minimum\":100}}";
    if (hf_toolset_add(rig->tools, &tool, &err))
        fail_msg("%s", err.message);
}

void drig_init(struct drig *rig)
{
    struct hf_err err = { 0 };
    memset(rig, 0, sizeof(*rig));
    rig->now = 1000000;
    fail_alloc_init(&rig->memory, 0);
    assert_int_equal(hf_toolset_new(NULL, &rig->tools, &err), 0);
    add_tool(rig, "add", HF_RECOVERY_SAFE);
    add_tool(rig, "put", HF_RECOVERY_KEYED);
    add_tool(rig, "mail", HF_RECOVERY_PROBE);
    add_tool(rig, "pay", HF_RECOVERY_ASK);
    add_tool(rig, "buy", HF_RECOVERY_KEYED); /* from 100 on with an approval */
    assert_int_equal(hf_surface_new(NULL, span_of("Be brief."),
                                    hf_toolset_json(rig->tools), &rig->surface, &err),
                     0);
    struct hf_turn_config config = { .size = sizeof(config),
                                     .alloc = &rig->memory.alloc,
                                     .protocol = hf_protocol_standard(),
                                     .surface = rig->surface,
                                     .model = "model-1",
                                     .turn_budget = 8 };
    assert_int_equal(hf_setup_new(&config, &rig->setup, &err), 0);
    rig->config = (struct hf_drive_config){ .size = sizeof(rig->config),
                                            .alloc = &rig->memory.alloc,
                                            .setup = rig->setup,
                                            .tools = rig->tools };
}

void drig_fini(struct drig *rig)
{
    drig_kill(rig);
    forget_records(rig);
    for (size_t i = 0; i < rig->blob_count; i++)
        free((void *)(uintptr_t)rig->blobs[i].bytes.at);
    hf_setup_free(rig->setup);
    hf_surface_free(rig->surface);
    hf_toolset_unref(rig->tools);
    assert_int_equal(rig->memory.live, 0);
}
