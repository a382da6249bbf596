/* Shapes of answers that are no rows of the ledger: counts, reports, captured output. */
#ifndef HF_OP_SHAPES_LEDGER_H
#define HF_OP_SHAPES_LEDGER_H

#include <holdfast/attention.h>
#include <holdfast/bounds.h>
#include <holdfast/overview.h>
#include <holdfast/process.h>
#include <holdfast/schedule.h>
#include <holdfast/store.h>

#include "core/ledger/fields.h"

/* Both streams of a command, as one row. */
struct hf_output_streams {
    struct hf_output_view of[HF_STREAM_COUNT];
};

/* Facts next to a row, or instead of one. Their fields have no place in a struct: they say
 * what an envelope can have. */
extern const struct hf_shape hf_created_shape;
extern const struct hf_shape hf_changed_shape;
extern const struct hf_shape hf_pruned_shape;
extern const struct hf_shape hf_output_facts_shape;
extern const struct hf_shape hf_redrive_shape;
extern const struct hf_shape hf_name_shape;
extern const struct hf_shape hf_scope_shape;
extern const struct hf_shape hf_doctor_shape;

extern const struct hf_shape hf_output_shape;  /* struct hf_output_streams */
extern const struct hf_shape hf_stats_shape;   /* struct hf_stats */
extern const struct hf_shape hf_sweep_shape;   /* struct hf_sweep_report */
extern const struct hf_shape hf_limit_shape;   /* struct hf_limit_state */
extern const struct hf_shape hf_policy_shape;  /* struct hf_policy */
extern const struct hf_shape hf_log_shape;     /* struct hf_store_log_entry */
extern const struct hf_shape hf_finding_shape; /* struct hf_finding */
extern const struct hf_shape hf_bound_shape;   /* struct hf_bound_info */

struct hf_store_facts_row {
    const char *facts; /* JSON */
};
extern const struct hf_shape hf_store_facts_shape;

struct hf_version_row {
    const char *version;
    int schema_version;
    const char *sqlite;
};
extern const struct hf_shape hf_version_shape;

/* Something that needs a person. */
struct hf_attention_row {
    const char *what;
    const char *severity;
    const char *subject;
    const char *id;
    const char *tenant;
    const char *name;
    const char *kind;
    hf_ms since;
    hf_ms until;
    const char *detail;
    const char *facts; /* JSON */
    const char *act;   /* JSON */
    const char *command;
};
extern const struct hf_shape hf_attention_shape;

struct hf_attention_more_row {
    const char *what;
    const char *kind;
    const char *error_class;
    int64_t count;
    bool at_least;
    const char *act; /* JSON */
    const char *command;
};
extern const struct hf_shape hf_attention_more_shape;
extern const struct hf_shape hf_attention_facts_shape; /* the envelope of attention */
extern const struct hf_shape hf_acked_shape;

extern const struct hf_shape hf_queue_shape;      /* struct hf_queue */
extern const struct hf_shape hf_holder_shape;     /* struct hf_holder */
extern const struct hf_shape hf_occurrence_shape; /* struct hf_occurrence */

struct hf_age_row {
    const char *status;
    int64_t under_1m;
    int64_t under_10m;
    int64_t under_1h;
    int64_t under_1d;
    int64_t under_1w;
    int64_t older;
};
extern const struct hf_shape hf_age_shape;

struct hf_lease_parts {
    int64_t over_two_thirds;
    int64_t over_one_third;
    int64_t less;
    int64_t lapsed;
};
extern const struct hf_shape hf_lease_parts_shape;

struct hf_overview {
    hf_ms now;
    struct hf_stats stats;
};
struct hf_overview_more { /* which lists continue after their last row */
    bool running;
    bool silent;
    bool waiting;
    bool held;
    bool schedules;
};
extern const struct hf_shape hf_overview_shape;
extern const struct hf_shape hf_overview_more_shape;
extern const struct hf_shape
    hf_overview_facts_shape;                     /* what comes after the first rows */
extern const struct hf_shape hf_next_slot_shape; /* struct hf_schedule */

#endif
