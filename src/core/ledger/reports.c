/* See reports.h. */
#include "core/ledger/reports.h"

/* clang-format off */
#define COUNT(type, member, ...) HF_FIELD(I64, type, member, false, __VA_ARGS__)
#define MS(type, member, ...)    HF_FIELD(I64, type, member, true, __VA_ARGS__)
#define BOOL(type, member, ...)  HF_FIELD(BOOL, type, member, false, __VA_ARGS__)
/* A field under another name than the member's. */
#define AS(name_, kind_, type, member, ...)                                              \
    { .name = name_, .kind = HF_FIELD_##kind_, .offset = offsetof(struct type, member),  \
      .help = __VA_ARGS__ }

/* ---- facts --------------------------------------------------------------------------- */

#define FACT(name_, kind_, help_) { .name = name_, .kind = HF_FIELD_##kind_, .help = help_ }

static const struct hf_field created_fields[] = {
    FACT("created", BOOL, "false where the unit was there already"),
    FACT("resumed", BOOL, "true where a waiting unit was resumed; otherwise left out"),
    FACT("repeated", BOOL, "true where the same call had been applied before; otherwise left out"),
};
const struct hf_shape hf_created_shape = HF_SHAPE("created", created_fields);

static const struct hf_field pruned_fields[] = {
    FACT("pruned", I64, "units that were deleted"),
};
const struct hf_shape hf_pruned_shape = HF_SHAPE("pruned", pruned_fields);

static const struct hf_field redrive_fields[] = {
    FACT("dry_run", BOOL, "nothing was done"),
    FACT("matched", I64, "units that the filter matches"),
    FACT("requeued", I64, "units that were requeued"),
    FACT("refused", I64, "units that could not be requeued"),
};
const struct hf_shape hf_redrive_shape = HF_SHAPE("redrive", redrive_fields);

/* ---- captured output ---------------------------------------------------------------- */

static const struct hf_field stream_fields[] = {
    COUNT(hf_output_view, attempt, "execution that wrote it; 0: nothing was captured"),
    COUNT(hf_output_view, bytes, "written by the command"),
    COUNT(hf_output_view, lost, "bytes in the middle that were not kept"),
    HF_FIELD(BYTES, hf_output_view, head, false, "the beginning"),
    HF_FIELD(BYTES, hf_output_view, tail, false, "the end, where bytes were lost"),
};
static const struct hf_shape stream_shape = HF_SHAPE("stream", stream_fields);

static const struct hf_field output_fields[] = {
    AS("stdout", ROW, hf_output_streams, of[HF_STDOUT], "standard output", .of = &stream_shape),
    AS("stderr", ROW, hf_output_streams, of[HF_STDERR], "standard error", .of = &stream_shape),
};
const struct hf_shape hf_output_shape = HF_SHAPE("output", output_fields);

/* ---- counts ------------------------------------------------------------------------- */

#define STATUS(word, status) AS(word, I64, hf_stats, by_status[status], "units in this status")
static const struct hf_field by_status_fields[] = {
    STATUS("queued", HF_QUEUED),
    STATUS("running", HF_RUNNING),
    STATUS("waiting_user", HF_WAITING_USER),
    STATUS("waiting_external", HF_WAITING_EXTERNAL),
    STATUS("retry_scheduled", HF_RETRY_SCHEDULED),
};
static const struct hf_shape by_status_shape = HF_SHAPE("by_status", by_status_fields);

#define X(name, word) AS(word, I64, hf_stats, by_source[HF_SOURCE_##name], "units from there"),
static const struct hf_field by_source_fields[] = { HF_SOURCES(X) };
#undef X
static const struct hf_shape by_source_shape = HF_SHAPE("by_source", by_source_fields);

static const struct hf_field stats_fields[] = {
    { .name = "by_status", .kind = HF_FIELD_ROW, .help = "by status", .of = &by_status_shape },
    { .name = "by_source", .kind = HF_FIELD_ROW, .help = "by source", .of = &by_source_shape },
    COUNT(hf_stats, gated, "queued, not claimable now"),
    COUNT(hf_stats, silent, "running, lease lapsed"),
    COUNT(hf_stats, lapsing, "running, less than a third of the term left"),
    MS(hf_stats, oldest_queued_ms, "age of the oldest claimable unit"),
    MS(hf_stats, oldest_running_ms, "age of the oldest running unit"),
    MS(hf_stats, next_wait_deadline_at, "when the next wait ends"),
    MS(hf_stats, next_retry_at, "when the next retry is due"),
};
const struct hf_shape hf_stats_shape = HF_SHAPE("stats", stats_fields);

/* ---- upkeep ------------------------------------------------------------------------- */

static const struct hf_field sweep_fields[] = {
    COUNT(hf_sweep_report, looked_at, "rows that were looked at"),
    COUNT(hf_sweep_report, requeued, "lapsed or dead, rerunnable"),
    COUNT(hf_sweep_report, timed_out, "ended by lease, start, execution or wait"),
    COUNT(hf_sweep_report, failed, "attempts exhausted"),
    COUNT(hf_sweep_report, abandoned, "left by their owners"),
    COUNT(hf_sweep_report, promoted, "due or retry time reached"),
    COUNT(hf_sweep_report, escalated, "waits that were escalated"),
    COUNT(hf_sweep_report, pushed, "live leases that are looked at again later"),
    COUNT(hf_sweep_report, silent, "owner_bound rows left alone"),
    COUNT(hf_sweep_report, proven_dead, "holders whose death was proven"),
    COUNT(hf_sweep_report, orphaned, "left alone while processes of the work run here"),
    COUNT(hf_sweep_report, held, "crashed too often: held for an operator"),
    BOOL(hf_sweep_report, more, "the bound was reached: sweep again"),
    MS(hf_sweep_report, next_at, "when there may be work for a sweep"),
};
const struct hf_shape hf_sweep_shape = HF_SHAPE("sweep", sweep_fields);
/* clang-format on */
