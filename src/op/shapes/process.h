/* Processes as rows that operations show, and the answers of their operations. */
#ifndef HF_OP_SHAPES_PROCESS_H
#define HF_OP_SHAPES_PROCESS_H

#include "core/process/process.h"

struct hf_process_deferred { /* what a drain left */
    const char *work_id;
    const char *code; /* of the error, as JSON has it */
    const char *message;
};
extern const struct hf_shape hf_process_prune_shape;    /* struct hf_prune_report */
extern const struct hf_shape hf_drain_shape;            /* struct hf_drain_report */
extern const struct hf_shape hf_process_deferred_shape; /* struct hf_process_deferred */

#endif
