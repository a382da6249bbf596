/* The framer: however the bytes are cut, the same events or the same refusal, and none over
 * the limit. The first byte says how long the pieces are. */
#include <string.h>

#include "agent/wire/sse.h"
#include "fuzz/fuzz.h"

#define EVENT_MAX 256

struct tally {
    uint64_t hash;
};

static int on_event(void *user, struct hf_span data)
{
    struct tally *tally = user;
    const unsigned char *at = data.at;
    fuzz_require(data.len <= EVENT_MAX);
    for (size_t i = 0; i < data.len; i++)
        tally->hash = (tally->hash ^ at[i]) * UINT64_C(1099511628211);
    tally->hash = (tally->hash ^ data.len ^ 0x100) * UINT64_C(1099511628211);
    return 0;
}

static int frame(const uint8_t *data, size_t size, size_t piece, struct tally *tally)
{
    struct hf_sse sse;
    int rc = 0;
    *tally = (struct tally){ UINT64_C(14695981039346656037) };
    hf_sse_init(&sse, hf_alloc_system(), EVENT_MAX);
    sse.user = tally;
    sse.event = on_event;
    for (size_t at = 0; rc == 0 && at < size; at += piece)
        rc = hf_sse_feed(&sse, data + at, piece < size - at ? piece : size - at);
    if (rc == 0)
        rc = hf_sse_end(&sse);
    hf_sse_fini(&sse);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tally whole;
    struct tally cut;
    if (size == 0)
        return 0;
    int rc = frame(data + 1, size - 1, size, &whole);
    fuzz_require(frame(data + 1, size - 1, 1, &cut) == rc);
    fuzz_require(rc != 0 || cut.hash == whole.hash);
    fuzz_require(frame(data + 1, size - 1, 2u + data[0] % 31, &cut) == rc);
    fuzz_require(rc != 0 || cut.hash == whole.hash);
    return 0;
}
