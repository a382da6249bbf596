/* Envelopes: what identifies an effect, as canonical JSON. The journal keeps the envelope of an
 * intent; a worker that takes the turn over compares it with that of the effect which the machine
 * asks for. Members are written in the order of their names, so that no text has to be sorted. */
#include "agent/drive/drive.h"

#include "base/err.h"
#include "base/ident.h"
#include "base/json.h"
#include "base/text.h"

static void put_hash(struct hf_json *json, const char *key, const uint8_t hash[32])
{
    char text[65];
    hf_hex(hash, 32, text);
    hf_json_put_str(json, key, text);
}

const char *drive_model_envelope(struct hf_arena *arena, const struct hf_request *request)
{
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, arena->alloc, 4096);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    hf_json_put_i64(&json, "attempt", request->attempt);
    hf_json_put_i64(&json, "causes", (int64_t)request->causes);
    hf_json_put_i64(&json, "iteration", (int64_t)request->iteration);
    hf_json_put_str(&json, "kind", "llm_call");
    hf_json_put_str(&json, "model", request->model);
    put_hash(&json, "options", request->options_hash);
    put_hash(&json, "prompt", request->prompt_hash);
    hf_json_put_i64(&json, "records", (int64_t)request->records);
    hf_json_put_i64(&json, "render", request->render_version);
    hf_json_opt_str(&json, "route", request->route);
    hf_json_put_bool(&json, "tool_calls", request->tool_choice != HF_TOOLS_NONE);
    put_hash(&json, "tools", request->tools_hash);
    hf_json_end(&json);
    return hf_buf_keep(&text, arena);
}

const char *drive_tool_envelope(struct hf_arena *arena, const struct hf_tool_call *call,
                                struct hf_span args)
{
    struct hf_buf text;
    struct hf_json json;
    uint8_t hash[HF_DIGEST_BYTES];
    if (hf_sha256(args.at, args.len, hash))
        return NULL;
    hf_buf_init(&text, arena->alloc, 4096);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    put_hash(&json, "args", hash);
    hf_json_put_str(&json, "call", call->call_id);
    hf_json_put_str(&json, "kind", "tool_call");
    hf_json_put_str(&json, "tool", call->tool);
    hf_json_end(&json);
    return hf_buf_keep(&text, arena);
}
