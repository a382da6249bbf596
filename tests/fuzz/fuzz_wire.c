/* The decoders of model responses: whatever bytes come and however they are cut, the same is
 * heard, and exactly one end. The first byte chooses codec and form, the second the size of
 * the pieces. */
#include <string.h>

#include "agent/wire/wire.h"
#include "fuzz/fuzz.h"

struct tally {
    uint64_t hash;
    int ends;
};

static void mix(struct tally *tally, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < len; i++)
        tally->hash = (tally->hash ^ at[i]) * UINT64_C(1099511628211);
}

static void on_event(void *user, const struct hf_model_event *event)
{
    struct tally *tally = user;
    fuzz_require(tally->ends == 0);
    mix(tally, &event->kind, sizeof(event->kind));
    if (event->text.len > 0)
        mix(tally, event->text.at, event->text.len);
    if (event->part) {
        mix(tally, event->part->content.at, event->part->content.len);
        mix(tally, event->part->replay.at, event->part->replay.len);
    }
    if (event->usage)
        mix(tally, event->usage, sizeof(*event->usage));
    if (event->error)
        mix(tally, event->error->code, strlen(event->error->code));
    tally->ends += event->kind == HF_MODEL_END;
}

static struct tally decode(const struct hf_codec *codec, const char *type,
                           const uint8_t *data, size_t size, size_t piece)
{
    struct tally tally = { UINT64_C(14695981039346656037), 0 };
    struct hf_wire wire;
    struct hf_model_sink sink = { &tally, on_event };
    struct hf_http_header header = { "content-type", type, NULL };
    hf_wire_init(&wire, hf_alloc_system(), codec, "route", &sink);
    hf_wire_head(&wire, type[0] == 'x' ? 400 : 200, &header, 1, 0);
    for (size_t at = 0; at < size; at += piece)
        hf_wire_body(&wire, data + at, piece < size - at ? piece : size - at);
    hf_wire_end(&wire, HF_HTTP_NONE);
    hf_wire_fini(&wire);
    fuzz_require(tally.ends == 1);
    return tally;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const types[] = { "text/event-stream", "text/event-stream",
                                         "application/json", "x/error" };
    if (size < 2)
        return 0;
    const struct hf_codec *codec = data[0] & 1 ? &hf_codec_messages : &hf_codec_chat;
    const char *type = types[data[0] >> 1 & 3];
    struct tally whole = decode(codec, type, data + 2, size - 2, size);
    struct tally bytes = decode(codec, type, data + 2, size - 2, 1);
    struct tally pieces = decode(codec, type, data + 2, size - 2, 2u + data[1] % 61);
    fuzz_require(whole.hash == bytes.hash && whole.hash == pieces.hash);
    return 0;
}
