#include "agent/kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hf_span span(const char *text)
{
    return (struct hf_span){ text, strlen(text) };
}

static void put(struct heard *heard, const char *text)
{
    size_t len = strlen(text);
    assert_true(heard->used + len < sizeof(heard->text));
    memcpy(heard->text + heard->used, text, len + 1);
    heard->used += len;
}

static void put_word(struct heard *heard, const char *text)
{
    put(heard, " ");
    put(heard, text ? text : "-");
}

static void put_span(struct heard *heard, struct hf_span text)
{
    char *copy = strndup(text.len ? text.at : "", text.len);
    put_word(heard, copy);
    free(copy);
}

static void put_number(struct heard *heard, int64_t number)
{
    char text[32];
    snprintf(text, sizeof(text), " %lld", (long long)number);
    put(heard, text);
}

static const char *failure_word(enum hf_llm_failure kind)
{
    static const char *const words[] = {
#define X(name, word) #word,
        HF_LLM_FAILURES(X)
#undef X
    };
    return words[kind];
}

static const char *reason_word(enum hf_reason reason)
{
    static const char *const words[] = {
#define X(name, word) #word,
        HF_REASONS(X)
#undef X
    };
    return words[reason];
}

static void put_part(struct heard *heard, const struct hf_part *part)
{
    static const char *const words[] = {
#define X(name, word) #word,
        HF_PARTS(X)
#undef X
    };
    put_word(heard, words[part->kind]);
    if (part->kind == HF_PART_TOOL_CALL) {
        put_word(heard, part->call_id);
        put_word(heard, part->tool);
    }
    put_span(heard, part->content);
    if (part->replay.len > 0) {
        put_word(heard, part->route);
        put_span(heard, part->replay);
    }
}

static void put_end(struct heard *heard, const struct hf_model_event *event)
{
    heard->ends++;
    if (event->response) {
        put_word(heard, reason_word(event->response->reason));
        put_number(heard, (int64_t)event->response->part_count);
        return;
    }
    put(heard, " error");
    put_word(heard, failure_word(event->error->kind));
    put_word(heard, event->error->code);
    if (event->error->transient || event->error->charge_safe)
        put(heard, " ");
    put(heard, event->error->transient ? "t" : "");
    put(heard, event->error->charge_safe ? "s" : "");
    if (event->error->retry_after_ms > 0)
        put_number(heard, event->error->retry_after_ms);
}

void heard_event(void *user, const struct hf_model_event *event)
{
    struct heard *heard = user;
    assert_int_equal(heard->ends, 0); /* nothing comes after the end */
    put(heard, hf_model_event_name(event->kind));
    switch (event->kind) {
    case HF_MODEL_TEXT:
    case HF_MODEL_REASONING: put_span(heard, event->text); break;
    case HF_MODEL_PART: put_part(heard, event->part); break;
    case HF_MODEL_USAGE:
        put_number(heard, event->usage->input);
        put_number(heard, event->usage->output);
        put_number(heard, event->usage->cache_read);
        put_number(heard, event->usage->cache_write);
        put_number(heard, event->usage->reasoning);
        break;
    case HF_MODEL_EVIDENCE:
        put_number(heard, event->evidence->status);
        put_word(heard, event->evidence->request_id);
        put_word(heard, event->evidence->response_id);
        put_word(heard, event->evidence->model);
        put_word(heard, event->evidence->finish);
        put(heard, event->evidence->repaired ? " repaired" : "");
        break;
    case HF_MODEL_END: put_end(heard, event); break;
    case HF_MODEL_RESET: break;
    }
    put(heard, "\n");
}

void heard_expect(const struct heard *heard, const char *lines)
{
    assert_string_equal(heard->used ? heard->text : "", lines);
}

void asked_init(struct asked *asked, const struct hf_message *messages, size_t count,
                const char *tools, const char *options)
{
    struct hf_err err = { 0 };
    struct hf_record records[16] = { 0 };
    memset(asked, 0, sizeof(*asked));
    assert_true(count <= 16);
    for (size_t i = 0; i < count; i++)
        records[i].message = &messages[i];
    if (hf_surface_new(NULL, span("You help."), span(tools), &asked->surface, &err))
        fail_msg("%s", err.message);
    struct hf_turn_config config = { .size = sizeof(config),
                                     .protocol = hf_protocol_standard(),
                                     .surface = asked->surface,
                                     .model = "model-1",
                                     .route = "prov/model-1",
                                     .options = span(options),
                                     .turn_budget = 8 };
    if (hf_setup_new(&config, &asked->setup, &err))
        fail_msg("%s", err.message);
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = "s1",
                                   .turn_id = "t1",
                                   .inputs = records,
                                   .input_count = count };
    if (hf_turn_new(asked->setup, &start, &asked->turn, &err))
        fail_msg("%s: %s", err.field, err.message);
    while (asked->effect.kind != HF_EFFECT_LLM_CALL)
        assert_int_equal(hf_turn_poll(asked->turn, &asked->effect, &err), 0);
    assert_int_equal(
        hf_render_new(asked->turn, asked->effect.request, &asked->render, &err), 0);
    asked->call = (struct hf_model_call){ .size = sizeof(asked->call),
                                          .request = asked->effect.request,
                                          .render = asked->render };
}

void asked_simply(struct asked *asked, const char *tools, const char *options)
{
    struct hf_part part = { .content = span("hi") };
    struct hf_message message = { .id = "m1", .parts = &part, .part_count = 1 };
    asked_init(asked, &message, 1, tools, options);
}

static int lend(void *user, const struct hf_attachment *attachment,
                struct hf_span *ret_bytes, struct hf_err *err)
{
    (void)user;
    (void)err;
    assert_string_equal(attachment->ref, "sha256:77");
    *ret_bytes = (struct hf_span){ "\x00\x01\xfe\xff", 4 };
    if (strcmp(attachment->media_type, "text/plain") == 0)
        *ret_bytes = span("a \"b\"\n");
    return 0;
}

void asked_image(struct asked *asked, const char *media_type, const char *options)
{
    static struct hf_attachment image;
    image = (struct hf_attachment){ .ref = "sha256:77",
                                    .media_type = media_type,
                                    .name = "note" };
    struct hf_part parts[] = { { .content = span("look") },
                               { .kind = HF_PART_ATTACHMENT, .attachment = &image } };
    struct hf_message message = { .id = "m1", .parts = parts, .part_count = 2 };
    asked_init(asked, &message, 1, "", options);
    asked->call.attachment = lend;
}

void asked_fini(struct asked *asked)
{
    hf_render_free(asked->render);
    hf_turn_free(asked->turn);
    hf_setup_free(asked->setup);
    hf_surface_free(asked->surface);
}

void expect_request(const struct asked *asked, const struct hf_codec *codec,
                    const struct hf_dialect *dialect, const char *json,
                    struct hf_encode *ret_encode)
{
    struct hf_err err = { 0 };
    struct hf_buf out;
    struct hf_encode encode = { .call = &asked->call,
                                .dialect = dialect,
                                .alloc = hf_alloc_system() };
    hf_buf_init(&out, hf_alloc_system(), 1 << 20);
    assert_int_equal(
        hf_options_read(asked->effect.request->options, &encode.options, &err), 0);
    hf_json_begin(&encode.json, &out);
    assert_int_equal(codec->encode(&encode, &err), 0);
    assert_int_equal(hf_buf_state(&out), 0);
    assert_int_equal(
        hf_json_check((struct hf_span){ out.at, out.len }, 1 << 20, "request", &err), 0);
    assert_string_equal(hf_buf_str(&out), json);
    hf_buf_fini(&out);
    if (ret_encode)
        *ret_encode = encode;
}

static void feed(struct hf_wire *wire, const char *at, size_t len)
{
    /* A copy of its own: a read past the chunk is then a fault. */
    char *copy = malloc(len ? len : 1);
    memcpy(copy, at, len);
    hf_wire_body(wire, copy, len);
    free(copy);
}

void play(const struct hf_codec *codec, const struct hf_alloc *alloc, int status,
          const char *type, const char *body, size_t piece, struct heard *heard)
{
    struct hf_wire wire;
    struct hf_model_sink sink = { heard, heard_event };
    struct hf_http_header headers[] = { { "content-type", type, NULL },
                                        { "x-request-id", "req-1", NULL } };
    size_t len = strlen(body);
    memset(heard, 0, sizeof(*heard));
    hf_wire_init(&wire, alloc, codec, "prov/model-1", &sink);
    hf_wire_head(&wire, status, headers, 2, 0);
    for (size_t at = 0; at < len;) {
        size_t now = piece && piece < len - at ? piece : len - at;
        feed(&wire, body + at, now);
        at += now;
    }
    hf_wire_end(&wire, HF_HTTP_NONE);
    hf_wire_fini(&wire);
    assert_int_equal(heard->ends, 1);
}

static void play_split(const struct hf_codec *codec, const char *body, size_t at,
                       struct heard *heard)
{
    struct hf_wire wire;
    struct hf_model_sink sink = { heard, heard_event };
    struct hf_http_header headers[] = { { "content-type", "text/event-stream", NULL },
                                        { "x-request-id", "req-1", NULL } };
    memset(heard, 0, sizeof(*heard));
    hf_wire_init(&wire, hf_alloc_system(), codec, "prov/model-1", &sink);
    hf_wire_head(&wire, 200, headers, 2, 0);
    feed(&wire, body, at);
    feed(&wire, body + at, strlen(body) - at);
    hf_wire_end(&wire, HF_HTTP_NONE);
    hf_wire_fini(&wire);
}

void play_every_way(const struct hf_codec *codec, const char *body, const char *lines)
{
    static struct heard heard;
    for (size_t piece = 0; piece < 4; piece++) {
        play(codec, hf_alloc_system(), 200, "text/event-stream", body, piece, &heard);
        heard_expect(&heard, lines);
    }
    for (size_t at = 1; at < strlen(body); at++) {
        play_split(codec, body, at, &heard);
        heard_expect(&heard, lines);
    }
}

void play_cut_anywhere(const struct hf_codec *codec, const char *body, size_t needed)
{
    static struct heard heard;
    size_t len = strlen(body);
    for (size_t at = 0; at <= len; at++) {
        char *front = strndup(body, at);
        play(codec, hf_alloc_system(), 200, "text/event-stream", front, 0, &heard);
        free(front);
        bool early = strstr(heard.text, "end error stream ended_early t\n") != NULL;
        bool answered = strstr(heard.text, "end stop 1\n") != NULL;
        if (early != (at < needed) || answered != (at >= needed))
            fail_msg("cut at %zu of %zu: %s", at, len, heard.text);
    }
}
