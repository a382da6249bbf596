/* Instructions of the model codecs: per byte of a recorded stream, and per byte of a request
 * beyond rendering it.
 *
 *   bench_wire            counts with callgrind, prints the figures and a verdict on each
 *   bench_wire decode|encode CODEC [BYTES]   the work that is counted                     */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/wire/wire.h"
#include "count.h"

#define DECODED_BYTES (10 * 1000 * 1000)
#define CHUNK 1400 /* what a packet carries */

static const char chat_event[] =
    "data: "
    "{\"id\":\"chatcmpl-9f2c41d07\",\"object\":\"chat.completion.chunk\",\"created\":"
    "1763308800,\"model\":\"gpt-test-2026-01-01\",\"system_fingerprint\":\"fp_"
    "44709d6fcb\","
    "\"choices\":[{\"index\":0,\"delta\":{\"content\":\" the tide "
    "tables\"},\"logprobs\":null,"
    "\"finish_reason\":null}]}\n\n";
static const char messages_begin[] =
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,"
    "\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n";
static const char messages_event[] =
    "event: content_block_delta\ndata: "
    "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":"
    "{\"type\":\"text_delta\",\"text\":\" the tide tables\"}}\n\n";

static void ignore(void *user, const struct hf_model_event *event)
{
    (void)user;
    (void)event;
}

/* Counted. */
__attribute__((noinline)) static void decode_all(struct hf_wire *wire, const char *bytes,
                                                 size_t len)
{
    for (size_t at = 0; at < len; at += CHUNK)
        hf_wire_body(wire, bytes + at, len - at < CHUNK ? len - at : CHUNK);
}

static void decode(const struct hf_codec *codec, size_t len)
{
    struct hf_wire wire;
    struct hf_model_sink sink = { NULL, ignore };
    struct hf_http_header header = { "content-type", "text/event-stream", NULL };
    const char *event = codec == &hf_codec_chat ? chat_event : messages_event;
    char *bytes = malloc(len + 1024);
    size_t used = 0;
    if (codec == &hf_codec_messages) {
        memcpy(bytes, messages_begin, sizeof(messages_begin) - 1);
        used = sizeof(messages_begin) - 1;
    }
    for (; used + strlen(event) <= len; used += strlen(event))
        memcpy(bytes + used, event, strlen(event));
    hf_wire_init(&wire, hf_alloc_system(), codec, "route", &sink);
    hf_wire_head(&wire, 200, &header, 1, 0);
    decode_all(&wire, bytes, used);
    if (hf_wire_is_over(&wire))
        exit(1);
    hf_wire_fini(&wire);
    free(bytes);
}

/* Counted. Called by a pointer that can change, so that it stays one function. */
__attribute__((noinline)) static int encode_all(const struct hf_codec *codec,
                                                struct hf_encode *encode)
{
    struct hf_err err;
    return codec->encode(encode, &err);
}

static void encode(const struct hf_codec *codec, size_t len)
{
    struct hf_err err = { 0 };
    struct hf_surface *surface = NULL;
    struct hf_setup *setup = NULL;
    struct hf_turn *turn = NULL;
    struct hf_render *render = NULL;
    struct hf_effect effect = { 0 };
    char *text = malloc(1000);
    memset(text, 'x', 1000);
    for (int i = 0; i < 1000; i += 80)
        text[i] = '\n';
    size_t count = len / 1000;
    struct hf_part part = { .content = { text, 1000 } };
    struct hf_message *messages = calloc(count, sizeof(*messages));
    struct hf_record *records = calloc(count, sizeof(*records));
    char(*ids)[32] = calloc(count, sizeof(*ids));
    for (size_t i = 0; i < count; i++) {
        snprintf(ids[i], sizeof(ids[i]), "m%zu", i);
        messages[i] =
            (struct hf_message){ .id = ids[i], .parts = &part, .part_count = 1 };
        messages[i].role = i % 2 ? HF_ROLE_ASSISTANT : HF_ROLE_USER;
        records[i].message = &messages[i];
    }
    struct hf_turn_config config = { .size = sizeof(config),
                                     .protocol = hf_protocol_standard(),
                                     .model = "m",
                                     .turn_budget = 1 };
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = "s",
                                   .turn_id = "t",
                                   .inputs = records,
                                   .input_count = count };
    int rc = hf_surface_new(NULL, (struct hf_span){ "", 0 }, (struct hf_span){ "", 0 },
                            &surface, &err);
    config.surface = surface;
    rc = rc ? rc : hf_setup_new(&config, &setup, &err);
    rc = rc ? rc : hf_turn_new(setup, &start, &turn, &err);
    while (rc == 0 && effect.kind != HF_EFFECT_LLM_CALL)
        rc = hf_turn_poll(turn, &effect, &err);
    rc = rc ? rc : hf_render_new(turn, effect.request, &render, &err);
    struct hf_model_call call = { .size = sizeof(call),
                                  .request = effect.request,
                                  .render = render };
    struct hf_dialect dialect = { 0 };
    struct hf_buf out;
    struct hf_encode work = { .call = &call,
                              .dialect = &dialect,
                              .alloc = hf_alloc_system() };
    hf_buf_init(&out, hf_alloc_system(), 64 << 20);
    hf_json_begin(&work.json, &out);
    int (*volatile call_it)(const struct hf_codec *, struct hf_encode *) = encode_all;
    rc = rc ? rc : call_it(codec, &work);
    if (rc || hf_buf_state(&out)) {
        fprintf(stderr, "bench_wire: %s\n", err.message);
        exit(1);
    }
}

static double counted(const char *function, const char *what, const char *codec, long len)
{
    char text[32];
    snprintf(text, sizeof(text), "%ld", len);
    const char *args[] = { what, codec, text, NULL };
    return bench_instructions(function, args);
}

static void report(const char *codec)
{
    double each = counted("decode_all", "decode", codec, DECODED_BYTES) / DECODED_BYTES;
    printf("%-20s decode  %6.1f instructions a byte (at most 40)", codec, each);
    bench_check(each <= 40);
    double one = counted("encode_all", "encode", codec, 100000) / 100000;
    double ten = counted("encode_all", "encode", codec, 1000000) / 1000000;
    printf("%-20s encode  %6.1f instructions a byte (at most 20)", codec, one);
    bench_check(one <= 20);
    printf("%-20s encode  %6.2f times that a byte when ten times as long", codec,
           ten / one);
    bench_check(ten / one < 1.15);
}

int main(int argc, char **argv)
{
    if (argc > 3) {
        const struct hf_codec *codec = strcmp(argv[2], hf_codec_chat.name)
                                           ? &hf_codec_messages
                                           : &hf_codec_chat;
        size_t len = (size_t)strtoul(argv[3], NULL, 10);
        if (strcmp(argv[1], "decode") == 0)
            decode(codec, len);
        else
            encode(codec, len);
        return 0;
    }
    report(hf_codec_chat.name);
    report(hf_codec_messages.name);
    return bench_passed() ? 0 : 1;
}
