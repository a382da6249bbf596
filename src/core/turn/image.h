/* A turn as it is saved: the tables of the machine's body, and the frame around it. */
#ifndef HF_CORE_TURN_IMAGE_H
#define HF_CORE_TURN_IMAGE_H

#include "core/turn/cbor.h"
#include "core/turn/machine.h"

#define HF_SAVE_VERSION 1
#define HF_SAVE_EXPORT 1u /* flag: base and blobs are inside */

struct hf_save_head {
    const char *session_id;
    const char *turn_id;
    const char *protocol;
    const char *base_id;
    uint64_t base_count;
    uint8_t base_digest[32];
};

struct hf_blob {
    uint8_t hash[32];
    struct hf_span bytes;
};

struct hf_image {
    struct hf_turn_body body;
    const struct hf_record **base; /* export: all records under the turn */
    size_t base_count;
    const struct hf_blob *blobs; /* export */
    size_t blob_count;
};

extern const struct hf_schema hf_s_head;
extern const struct hf_schema hf_s_image;

/* The parts of a save whose frame and digest are right. */
struct hf_frame {
    uint16_t version;
    uint16_t flags;
    struct hf_span head;
    struct hf_span body;
};

/* Finds the parts of a save and checks its frame. *ret_frame borrows the save. */
HF_MUST_USE int hf_frame_open(struct hf_span save, struct hf_frame *ret_frame,
                              struct hf_err *err);
/* Reads head and image, each part into the arena of its lifetime (core/turn/machine.h). Both
 * are well formed afterwards and fit together. */
HF_MUST_USE int hf_image_read(const struct hf_frame *frame, struct hf_arena *stay,
                              struct hf_arena *keep, struct hf_arena *step,
                              struct hf_save_head *ret_head, struct hf_image *ret_image,
                              struct hf_err *err);
/* hf_record_chain of a record that is well formed. */
HF_MUST_USE int hf_record_chain_on(const struct hf_alloc *alloc,
                                   const uint8_t previous[32],
                                   const struct hf_record *record, uint8_t ret_digest[32],
                                   struct hf_err *err);
/* Whether the body is one that the machine can be in. HF_ECORRUPT. */
HF_MUST_USE int hf_image_check(const struct hf_save_head *head,
                               const struct hf_image *image, struct hf_err *err);

#endif
