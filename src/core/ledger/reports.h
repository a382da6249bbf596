/* Shapes of answers that are no rows of the ledger: counts, reports, captured output. */
#ifndef HF_CORE_LEDGER_REPORTS_H
#define HF_CORE_LEDGER_REPORTS_H

#include <holdfast/process.h>
#include <holdfast/store.h>

#include "core/ledger/fields.h"

/* Both streams of a command, as one row. */
struct hf_output_streams {
    struct hf_output_view of[HF_STREAM_COUNT];
};

/* Facts next to a row, or instead of one. Their fields have no place in a struct: they say
 * what an envelope can have. */
extern const struct hf_shape hf_created_shape;
extern const struct hf_shape hf_pruned_shape;
extern const struct hf_shape hf_redrive_shape;

extern const struct hf_shape hf_output_shape; /* struct hf_output_streams */
extern const struct hf_shape hf_stats_shape;  /* struct hf_stats */
extern const struct hf_shape hf_sweep_shape;  /* struct hf_sweep_report */

#endif
