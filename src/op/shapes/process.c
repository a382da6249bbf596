/* The shapes of processes, and of the answers of their operations: which fields are shown, in
 * their order, with the text that documents each. JSON and tables are made from them. */
#include "op/shapes/process.h"

/* clang-format off */
#define COUNTED(member, help) HF_FIELD(I64, hf_prune_report, member, false, help)
static const struct hf_field prune_fields[] = {
    COUNTED(processes, "processes that were deleted"),
    COUNTED(events, "their events"),
    COUNTED(grants, "grants of their handles"),
    COUNTED(chunks, "chunks of their output"),
};
const struct hf_shape hf_process_prune_shape = HF_SHAPE("process_prune", prune_fields);

static const struct hf_field drain_fields[] = {
    HF_FIELD(I64, hf_drain_report, ended, false, "processes that were abandoned"),
    HF_FIELD(I64, hf_drain_report, deferred, false, "processes that were not abandoned"),
};
const struct hf_shape hf_drain_shape = HF_SHAPE("drain", drain_fields);

static const struct hf_field deferred_fields[] = {
    HF_FIELD(TEXT, hf_process_deferred, work_id, false, "id of a process that was not abandoned"),
    HF_FIELD(TEXT, hf_process_deferred, code, false, "code of the refusal"),
    HF_FIELD(TEXT, hf_process_deferred, message, false, "why it was not abandoned"),
};
const struct hf_shape hf_process_deferred_shape = HF_SHAPE("deferred", deferred_fields);
/* clang-format on */
