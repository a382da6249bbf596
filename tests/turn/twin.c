#include "turn/twin.h"

#include <string.h>

#include <holdfast/turn_json.h>

#include "base/json.h"
#include "core/turn/wire.h"
#include "support/unit.h"

static void must(int rc, const struct hf_err *err)
{
    if (rc)
        print_error("%s: %s (%s)\n", hf_err_wire(rc), err->message, err->field);
    assert_int_equal(rc, 0);
}

/* {"response": what, "id": id, member: json}, what is NULL or 0 left out; frees json. */
static void say(struct world *world, const char *what, uint64_t id, const char *member,
                struct hf_bytes *json)
{
    struct hf_err err = { 0 };
    struct hf_buf text;
    struct hf_json out;
    hf_buf_init(&text, hf_alloc_system(), 1 << 26);
    hf_json_begin(&out, &text);
    hf_json_object(&out);
    hf_json_put_str(&out, "response", what);
    hf_json_opt_i64(&out, "id", (int64_t)id);
    if (member)
        hf_json_put_raw(&out, member, json->at);
    hf_json_end(&out);
    must(hf_turn_respond_json(world->twin, (struct hf_span){ text.at, text.len }, &err),
         &err);
    hf_buf_fini(&text);
    if (json)
        hf_bytes_free(json);
}

void twin_begin(struct world *world, const struct hf_turn_start *start)
{
    struct hf_err err = { 0 };
    struct hf_bytes json = { 0 };
    struct hf_decoded *owner = NULL;
    const struct hf_turn_start *said = NULL;
    if (!world->twinned)
        return;
    must(hf_turn_start_encode(NULL, start, &json, &err), &err);
    must(hf_turn_start_decode(NULL, (struct hf_span){ json.at, json.len }, &owner, &said,
                              &err),
         &err);
    struct hf_turn_start again = *said;
    struct hf_base base = *said->base;
    base.user = start->base->user;
    base.get = start->base->get;
    base.put = start->base->put;
    again.base = &base;
    must(hf_turn_new(world->setup, &again, &world->twin, &err), &err);
    hf_decoded_free(owner);
    hf_bytes_free(&json);
}

static void check_saves(struct world *world)
{
    struct hf_err err = { 0 };
    struct hf_bytes mine = { 0 };
    struct hf_bytes twins = { 0 };
    must(hf_turn_save(world->turn, &mine, &err), &err);
    must(hf_turn_save(world->twin, &twins, &err), &err);
    assert_int_equal(mine.len, twins.len);
    assert_memory_equal(mine.at, twins.at, mine.len);
    hf_bytes_free(&mine);
    hf_bytes_free(&twins);
}

void twin_poll(struct world *world, const char *line)
{
    struct hf_err err = { 0 };
    const char *json = NULL;
    if (!world->twin)
        return;
    must(hf_turn_poll_json(world->twin, &json, &err), &err);
    assert_non_null(json);
    assert_string_equal(json, line);
    check_saves(world);
}

void twin_rebase(struct world *world, const struct hf_base *base)
{
    struct hf_err err = { 0 };
    if (world->twin)
        must(hf_turn_rebase(world->twin, base, &err), &err);
}

void twin_end(struct world *world)
{
    if (!world->twin)
        return;
    assert_true(hf_turn_is_done(world->twin));
    check_saves(world);
    hf_turn_free(world->twin);
    world->twin = NULL;
}

int twin_llm_done(struct world *world, uint64_t id, const struct hf_llm_response *reply,
                  struct hf_err *err)
{
    struct hf_bytes json = { 0 };
    int rc = hf_turn_llm_done(world->turn, id, reply, err);
    if (rc || !world->twin)
        return rc;
    must(hf_llm_response_encode(NULL, reply, &json, err), err);
    say(world, "llm_done", id, "reply", &json);
    return 0;
}

int twin_llm_failed(struct world *world, uint64_t id, const struct hf_llm_error *error,
                    struct hf_err *err)
{
    struct hf_bytes json = { 0 };
    int rc = hf_turn_llm_failed(world->turn, id, error, err);
    if (rc || !world->twin)
        return rc;
    must(hf_llm_error_encode(NULL, error, &json, err), err);
    say(world, "llm_failed", id, "error", &json);
    return 0;
}

int twin_tool_result(struct world *world, uint64_t id,
                     const struct hf_tool_result *result, struct hf_err *err)
{
    struct hf_bytes json = { 0 };
    struct hf_buf list;
    struct hf_tool_result kept = *result; /* its id is the effect's, which ends here */
    char call_id[256];
    size_t len = strlen(result->call_id);
    assert_true(len < sizeof(call_id));
    memcpy(call_id, result->call_id, len + 1);
    kept.call_id = call_id;
    int rc = hf_turn_tool_results(world->turn, id, result, 1, err);
    if (rc || !world->twin)
        return rc;
    must(hf_tool_result_encode(NULL, &kept, &json, err), err);
    hf_buf_init(&list, hf_alloc_system(), 1 << 26);
    hf_buf_char(&list, '[');
    hf_buf_bytes(&list, json.at, json.len);
    hf_buf_char(&list, ']');
    hf_bytes_free(&json);
    json = (struct hf_bytes){ hf_alloc_system(), list.at, list.len };
    say(world, "tool_results", id, "results", &json);
    return 0;
}

int twin_exec_done(struct world *world, uint64_t id, const struct hf_exec_result *result,
                   struct hf_err *err)
{
    struct hf_bytes json = { 0 };
    int rc = hf_turn_exec_done(world->turn, id, result, err);
    if (rc || !world->twin)
        return rc;
    must(hf_exec_result_encode(NULL, result, &json, err), err);
    say(world, "exec_done", id, "result", &json);
    return 0;
}

int twin_checkpoint_done(struct world *world, uint64_t id,
                         const struct hf_turn_delivery *delivery, struct hf_err *err)
{
    struct hf_bytes json = { 0 };
    int rc = hf_turn_checkpoint_done(world->turn, id, delivery, err);
    if (rc || !world->twin)
        return rc;
    if (delivery)
        must(hf_turn_delivery_encode(NULL, delivery, &json, err), err);
    say(world, "checkpoint_done", id, delivery ? "delivery" : NULL, &json);
    return 0;
}

static struct hf_bytes object(const char *key, struct hf_span text, const char *raw_key,
                              struct hf_span raw)
{
    struct hf_buf out;
    struct hf_json json;
    hf_buf_init(&out, hf_alloc_system(), 1 << 20);
    hf_json_begin(&json, &out);
    hf_json_object(&json);
    hf_json_key(&json, key);
    hf_json_strn(&json, text.at, text.len);
    if (raw_key)
        hf_json_put_raw(&json, raw_key, raw.at);
    hf_json_end(&json);
    return (struct hf_bytes){ hf_alloc_system(), out.at, out.len };
}

static struct hf_bytes quoted(const char *text)
{
    struct hf_buf out;
    struct hf_json json;
    hf_buf_init(&out, hf_alloc_system(), 1 << 20);
    hf_json_begin(&json, &out);
    hf_json_str(&json, text);
    return (struct hf_bytes){ hf_alloc_system(), out.at, out.len };
}

int twin_synced(struct world *world, uint64_t id, const struct hf_surface *update,
                struct hf_err *err)
{
    int rc = hf_turn_synced(world->turn, id, update, err);
    if (rc || !world->twin)
        return rc;
    struct hf_bytes json = { 0 };
    if (update)
        json = object("prompt", update->face.prompt, "tools", update->face.tools);
    say(world, "synced", id, update ? "surface" : NULL, &json);
    return 0;
}

int twin_sync_failed(struct world *world, uint64_t id, const char *message,
                     struct hf_err *err)
{
    int rc = hf_turn_sync_failed(world->turn, id, message, err);
    if (rc || !world->twin)
        return rc;
    struct hf_bytes json = quoted(message);
    say(world, "sync_failed", id, "message", &json);
    return 0;
}

int twin_sleep_noted(struct world *world, uint64_t id, hf_ms due_ms, struct hf_err *err)
{
    int rc = hf_turn_sleep_noted(world->turn, id, due_ms, err);
    if (rc || !world->twin)
        return rc;
    struct hf_buf out;
    hf_buf_init(&out, hf_alloc_system(), 64);
    hf_buf_i64(&out, due_ms);
    struct hf_bytes json = { hf_alloc_system(), out.at, out.len };
    say(world, "sleep_noted", id, "due_ms", &json);
    return 0;
}

int twin_sleep_over(struct world *world, uint64_t id, struct hf_err *err)
{
    int rc = hf_turn_sleep_over(world->turn, id, err);
    if (rc == 0 && world->twin)
        say(world, "sleep_over", id, NULL, NULL);
    return rc;
}

int twin_cancel(struct world *world, struct hf_err *err)
{
    static const struct hf_evidence evidence = { .request_id = "req",
                                                 .reason = "enough" };
    int rc = hf_turn_cancel(world->turn, &evidence, err);
    if (rc || !world->twin)
        return rc;
    struct hf_bytes json = object("request_id", (struct hf_span){ "req", 3 }, "reason",
                                  (struct hf_span){ "\"enough\"", 8 });
    say(world, "cancel", 0, "evidence", &json);
    return 0;
}

int twin_fail(struct world *world, struct hf_err *err)
{
    struct hf_err why = { 0 };
    static const char text[] =
        "{\"response\":\"fail\",\"code\":\"host\",\"message\":\"told to\"}";
    int rc = hf_turn_fail(world->turn, "host", "told to", err);
    if (rc == 0 && world->twin)
        must(hf_turn_respond_json(world->twin, (struct hf_span){ text, sizeof(text) - 1 },
                                  &why),
             &why);
    return rc;
}

int twin_finish(struct world *world, struct hf_err *err)
{
    static const struct hf_outcome outcome = { .kind = HF_OUTCOME_PLUGIN_ABORT };
    struct hf_bytes json = { 0 };
    int rc = hf_turn_finish(world->turn, &outcome, err);
    if (rc || !world->twin)
        return rc;
    must(hf_outcome_encode(NULL, &outcome, &json, err), err);
    say(world, "finish", 0, "outcome", &json);
    return 0;
}
