/* The output of a command, on its way into the store and to the process that follows it.
 *
 * Kept is the beginning and the end; the middle is counted. Memory is bounded whatever the
 * command writes. One thread at a time. */
#ifndef HF_RUN_COMMAND_CAPTURE_H
#define HF_RUN_COMMAND_CAPTURE_H

#include <holdfast/bounds.h>
#include <holdfast/process.h>

#define HF_CAPTURE_HEAD ((int64_t)(65536 / HF_OUTPUT_CHUNK))
#define HF_CAPTURE_TAIL ((int64_t)(65536 / HF_OUTPUT_CHUNK))
#define HF_CAPTURE_SLOTS (HF_CAPTURE_HEAD + HF_CAPTURE_TAIL + 1)

struct hf_capture {
    char *memory; /* a chunk a slot */
    int64_t bytes;
    int64_t chunk_of[HF_CAPTURE_SLOTS]; /* which chunk is in the slot */
    bool dirty[HF_CAPTURE_SLOTS];
    int64_t dropped; /* chunks before this one, past the head, are not in the store */
};

HF_MUST_USE int hf_capture_init(struct hf_capture *capture, const struct hf_alloc *alloc,
                                struct hf_err *err);
void hf_capture_fini(struct hf_capture *capture, const struct hf_alloc *alloc);
void hf_capture_add(struct hf_capture *capture, const char *bytes, size_t len);
/* The first chunk of the tail that is kept of a stream of `bytes` bytes. */
int64_t hf_capture_tail(int64_t bytes);
bool hf_capture_dirty(const struct hf_capture *capture);

/* Adds what the store has not got yet: at most HF_CAPTURE_SLOTS chunks from `chunks` on,
 * and which to drop. Returns how many. The chunks lie in the capture. */
size_t hf_capture_collect(const struct hf_capture *capture, enum hf_stream stream,
                          struct hf_output_chunk *chunks, struct hf_output_add *add);
/* The store has them: what was collected when `bytes` had been written. */
void hf_capture_stored(struct hf_capture *capture, int64_t bytes);

#endif
