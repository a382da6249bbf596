/* The output of a command, on its way into the store and to the process that follows it. The
 * beginning and the end are kept, and the middle is counted, so that memory is bounded (capture.h).
 * */
#include "run/command/capture.h"

#include <assert.h>
#include <string.h>

#include "base/err.h"

static_assert(HF_CAPTURE_HEAD > 0 && HF_CAPTURE_TAIL > 0, "both ends are kept");

int hf_capture_init(struct hf_capture *capture, const struct hf_alloc *alloc,
                    struct hf_err *err)
{
    *capture = (struct hf_capture){ .dropped = HF_CAPTURE_HEAD };
    capture->memory = alloc->realloc(alloc->user, NULL,
                                     HF_CAPTURE_SLOTS * (size_t)HF_OUTPUT_CHUNK);
    return capture->memory ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

void hf_capture_fini(struct hf_capture *capture, const struct hf_alloc *alloc)
{
    alloc->free(alloc->user, capture->memory);
    capture->memory = NULL;
}

/* The head has slots of its own; what follows goes round in the others. */
static int64_t slot_of(int64_t chunk)
{
    return chunk < HF_CAPTURE_HEAD
               ? chunk
               : HF_CAPTURE_HEAD + chunk % (HF_CAPTURE_SLOTS - HF_CAPTURE_HEAD);
}

void hf_capture_add(struct hf_capture *capture, const char *bytes, size_t len)
{
    while (len > 0) {
        int64_t chunk = capture->bytes / HF_OUTPUT_CHUNK, slot = slot_of(chunk);
        size_t at = (size_t)(capture->bytes % HF_OUTPUT_CHUNK);
        size_t room = HF_OUTPUT_CHUNK - at, n = len < room ? len : room;
        memcpy(capture->memory + slot * HF_OUTPUT_CHUNK + at, bytes, n);
        capture->chunk_of[slot] = chunk;
        capture->dirty[slot] = true;
        capture->bytes += (int64_t)n;
        bytes += n;
        len -= n;
    }
}

bool hf_capture_dirty(const struct hf_capture *capture)
{
    bool dirty = false;
    for (int64_t i = 0; i < HF_CAPTURE_SLOTS; i++)
        dirty |= capture->dirty[i];
    return dirty;
}

int64_t hf_capture_tail(int64_t bytes)
{
    int64_t last = (bytes - 1) / HF_OUTPUT_CHUNK;
    int64_t from = last - HF_CAPTURE_TAIL;
    return from > HF_CAPTURE_HEAD ? from : HF_CAPTURE_HEAD;
}

size_t hf_capture_collect(const struct hf_capture *capture, enum hf_stream stream,
                          struct hf_output_chunk *chunks, struct hf_output_add *add)
{
    size_t n = 0;
    if (capture->bytes == 0)
        return 0;
    for (int64_t i = 0; i < HF_CAPTURE_SLOTS; i++) {
        int64_t chunk = capture->chunk_of[i], at = chunk * HF_OUTPUT_CHUNK;
        if (!capture->dirty[i])
            continue;
        int64_t len = capture->bytes - at;
        chunks[n++] = (struct hf_output_chunk){
            .stream = stream,
            .chunk = chunk,
            .data = { capture->memory + i * HF_OUTPUT_CHUNK,
                      (size_t)(len < HF_OUTPUT_CHUNK ? len : HF_OUTPUT_CHUNK) },
        };
    }
    add->drop_from[stream] = capture->dropped;
    add->drop_before[stream] = hf_capture_tail(capture->bytes);
    return n;
}

void hf_capture_stored(struct hf_capture *capture, int64_t bytes)
{
    for (int64_t i = 0; i < HF_CAPTURE_SLOTS; i++)
        capture->dirty[i] &= capture->bytes > bytes &&
                             capture->chunk_of[i] >= bytes / HF_OUTPUT_CHUNK;
    if (bytes > 0)
        capture->dropped = hf_capture_tail(bytes);
}
