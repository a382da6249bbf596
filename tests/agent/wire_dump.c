/* What our codecs make of streams: reads from standard input lines "KIND PIECE LENGTH", each
 * followed by the bytes of a stream, feeds them in pieces of that size, and prints one line of
 * JSON per stream. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/wire/wire.h"

static struct hf_json json;

static void put_span(const char *key, struct hf_span text)
{
    hf_json_key(&json, key);
    hf_json_strn(&json, text.len ? text.at : "", text.len);
}

static void put_parts(const struct hf_llm_response *response)
{
    static const char *const words[] = {
#define X(name, word) #word,
        HF_PARTS(X)
#undef X
    };
    hf_json_key(&json, "parts");
    hf_json_array(&json);
    for (size_t i = 0; i < response->part_count; i++) {
        const struct hf_part *part = &response->parts[i];
        hf_json_object(&json);
        hf_json_put_str(&json, "kind", words[part->kind]);
        put_span("content", part->content);
        hf_json_opt_str(&json, "id", part->call_id);
        hf_json_opt_str(&json, "tool", part->tool);
        if (part->replay.len > 0)
            put_span("replay", part->replay);
        hf_json_end(&json);
    }
    hf_json_end(&json);
}

static void on_event(void *user, const struct hf_model_event *event)
{
    (void)user;
    if (event->kind == HF_MODEL_EVIDENCE) {
        hf_json_put_str(&json, "id", event->evidence->response_id);
        hf_json_put_str(&json, "model", event->evidence->model);
        hf_json_put_str(&json, "finish", event->evidence->finish);
    }
    if (event->kind != HF_MODEL_END)
        return;
    hf_json_put_str(&json, "error", event->error ? event->error->code : NULL);
    if (!event->response)
        return;
    const struct hf_usage *usage = &event->response->usage;
    put_parts(event->response);
    hf_json_put_i64(&json, "reason", (int64_t)event->response->reason);
    hf_json_key(&json, "usage");
    hf_json_array(&json);
    hf_json_i64(&json, usage->input);
    hf_json_i64(&json, usage->output);
    hf_json_i64(&json, usage->cache_read);
    hf_json_i64(&json, usage->cache_write);
    hf_json_i64(&json, usage->reasoning);
    hf_json_end(&json);
}

static void dump(const struct hf_codec *codec, const char *bytes, size_t len,
                 size_t piece)
{
    struct hf_buf out;
    struct hf_wire wire;
    struct hf_model_sink sink = { NULL, on_event };
    struct hf_http_header header = { "content-type", "text/event-stream", NULL };
    hf_buf_init(&out, hf_alloc_system(), 1 << 20);
    hf_json_begin(&json, &out);
    hf_json_object(&json);
    hf_wire_init(&wire, hf_alloc_system(), codec, "route", &sink);
    hf_wire_head(&wire, 200, &header, 1, 0);
    for (size_t at = 0; at < len; at += piece)
        hf_wire_body(&wire, bytes + at, piece < len - at ? piece : len - at);
    hf_wire_end(&wire, HF_HTTP_NONE);
    hf_wire_fini(&wire);
    hf_json_end(&json);
    puts(hf_buf_str(&out));
    hf_buf_fini(&out);
}

int main(void)
{
    char line[64];
    while (fgets(line, sizeof(line), stdin)) {
        char *blank = strchr(line, ' ');
        char *end = NULL;
        size_t piece = blank ? strtoul(blank, &end, 10) : 0;
        size_t len = piece ? strtoul(end, NULL, 10) : 0;
        char *bytes = malloc(len + 1);
        if (!piece || !bytes || fread(bytes, 1, len, stdin) != len)
            return 1;
        dump(line[0] == 'o' ? &hf_codec_chat : &hf_codec_messages, bytes, len, piece);
        free(bytes);
    }
    return 0;
}
