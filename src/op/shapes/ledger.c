/* The shapes of answers that are no rows of the ledger: counts, reports, captured output. A shape
 * says which fields are shown, in their order, with the text that documents each. JSON and tables
 * are made from it. */
#include "op/shapes/ledger.h"

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
    FACT("created", BOOL, "false: the unit existed already"),
    FACT("resumed", BOOL, "true: a waiting unit was resumed; otherwise left out"),
    FACT("repeated", BOOL, "true: the same call was applied earlier; otherwise left out"),
};
const struct hf_shape hf_created_shape = HF_SHAPE("created", created_fields);

static const struct hf_field changed_fields[] = {
    FACT("changed", BOOL, "false: nothing had to be changed"),
};
const struct hf_shape hf_changed_shape = HF_SHAPE("changed", changed_fields);

static const struct hf_field pruned_fields[] = {
    FACT("pruned", I64, "units that were deleted"),
};
const struct hf_shape hf_pruned_shape = HF_SHAPE("pruned", pruned_fields);

static const struct hf_field redrive_fields[] = {
    FACT("dry_run", BOOL, "true: a dry run, nothing was changed"),
    FACT("matched", I64, "units that the filter matches"),
    FACT("requeued", I64, "units that were requeued"),
    FACT("refused", I64, "units that could not be requeued"),
};
const struct hf_shape hf_redrive_shape = HF_SHAPE("redrive", redrive_fields);

static const struct hf_field name_fields[] = { FACT("name", TEXT, "the limit") };
const struct hf_shape hf_name_shape = HF_SHAPE("name", name_fields);
static const struct hf_field scope_fields[] = { FACT("scope", TEXT,
"scope of the policy") };
const struct hf_shape hf_scope_shape = HF_SHAPE("scope", scope_fields);

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

static const struct hf_field output_facts_fields[] = {
    { .name = "output", .kind = HF_FIELD_ROW, .help = "bytes of the stream", .of = &hf_output_shape },
};
const struct hf_shape hf_output_facts_shape = HF_SHAPE("shown_output", output_facts_fields);

/* ---- counts ------------------------------------------------------------------------- */

#define STATUS(word, status)                                                             \
    AS(word, I64, hf_stats, by_status[status], "units in this status")
static const struct hf_field by_status_fields[] = {
    STATUS("queued", HF_STATUS_QUEUED),
    STATUS("running", HF_STATUS_RUNNING),
    STATUS("waiting_user", HF_STATUS_WAITING_USER),
    STATUS("waiting_external", HF_STATUS_WAITING_EXTERNAL),
    STATUS("retry_scheduled", HF_STATUS_RETRY_SCHEDULED),
};
static const struct hf_shape by_status_shape = HF_SHAPE("by_status", by_status_fields);

#define X(name, word)                                                                    \
    AS(word, I64, hf_stats, by_source[HF_SOURCE_##name], "units from this source"),
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
    MS(hf_stats, next_wait_deadline_at, "deadline of the next wait"),
    MS(hf_stats, next_retry_at, "time of the next retry"),
};
const struct hf_shape hf_stats_shape = HF_SHAPE("stats", stats_fields);

/* ---- upkeep ------------------------------------------------------------------------- */

static const struct hf_field sweep_fields[] = {
    COUNT(hf_sweep_report, looked_at, "rows that were read"),
    COUNT(hf_sweep_report, requeued, "lapsed or dead, rerunnable"),
    COUNT(hf_sweep_report, timed_out, "units that the end of a lease, start deadline, "
                                      "execution deadline or wait ended"),
    COUNT(hf_sweep_report, failed, "attempts exhausted"),
    COUNT(hf_sweep_report, abandoned, "units that their owners left"),
    COUNT(hf_sweep_report, promoted, "due or retry time reached"),
    COUNT(hf_sweep_report, escalated, "waits that were escalated"),
    COUNT(hf_sweep_report, pushed, "live leases that a later sweep checks again"),
    COUNT(hf_sweep_report, silent, "owner_bound units that are left as they are"),
    COUNT(hf_sweep_report, proven_dead, "holders whose death was proven"),
    COUNT(hf_sweep_report, orphaned, "units that are left as they are while their "
                                     "processes run on this machine"),
    COUNT(hf_sweep_report, held, "units that crashed too often and are held for an "
                                 "operator"),
    BOOL(hf_sweep_report, more, "the sweep reached its bound and has to be repeated"),
    MS(hf_sweep_report, next_at, "earliest time of the next change that a sweep makes"),
};
const struct hf_shape hf_sweep_shape = HF_SHAPE("sweep", sweep_fields);
/* ---- limits and policies ------------------------------------------------------------- */

#define TEXT(type, member, ...) HF_FIELD(TEXT, type, member, false, __VA_ARGS__)
#define LIMIT(name, member, help) AS(name, I64, hf_limit_state, limit.member, help)

static const struct hf_field limit_fields[] = {
    AS("name", TEXT, hf_limit_state, limit.name, "key:K, rate:K or kind:K"),
    TEXT(hf_limit_state, tenant, "tenant"),
    LIMIT("max_running", max_running, "claimable or running at once; 0: any number"),
    LIMIT("rate_count", rate_count, "starts in rate_ms; 0: at any rate"),
    LIMIT("rate_ms", rate_ms, "time in which rate_count starts are allowed"),
    LIMIT("burst", burst, "starts at once; 0: rate_count"),
    COUNT(hf_limit_state, used, "claimable or running"),
    COUNT(hf_limit_state, open, "claimable units, if the limit has a rate"),
    COUNT(hf_limit_state, waiting, "units behind the gate"),
    COUNT(hf_limit_state, next_at, "time at which the rate allows the next start; 0: "
                                   "no unit waits for the rate"),
};
const struct hf_shape hf_limit_shape = HF_SHAPE("limit", limit_fields);

static const struct hf_field policy_fields[] = {
    MS(hf_policy, ttl_ms, "term of a lease"),
    MS(hf_policy, renew_ms, "how often a lease is renewed"),
    COUNT(hf_policy, grace_ms, "grace after the end of a lease"),
    MS(hf_policy, wait_user_ms, "longest wait for a person"),
    MS(hf_policy, wait_external_ms, "longest wait for another reason"),
    MS(hf_policy, start_timeout_ms, "longest time in the queue"),
    MS(hf_policy, exec_timeout_ms, "longest time of one execution"),
    HF_FIELD(INT, hf_policy, max_attempts, false, "executions before it fails for good"),
    HF_FIELD(JSON, hf_policy, retry_policy, false, "how failures are retried"),
    HF_FIELD(WORD, hf_policy, disposition, false, "what happens when a lease lapses",
             .words = hf_disposition_words),
    TEXT(hf_policy, close_rule, "what a close-out must contain", .words = hf_close_rule_words),
    TEXT(hf_policy, wait_rule, "what a wait must contain", .words = hf_wait_rule_words),
};
const struct hf_shape hf_policy_shape = HF_SHAPE("policy", policy_fields);

/* ---- the store ----------------------------------------------------------------------- */

static const struct hf_field log_fields[] = {
    COUNT(hf_store_log_entry, log_id, "number of the entry"),
    COUNT(hf_store_log_entry, at, "time of the entry or occurrence"),
    TEXT(hf_store_log_entry, what, "bump, amnesty or copy"),
    HF_FIELD(JSON, hf_store_log_entry, detail, false, "data of the entry"),
};
const struct hf_shape hf_log_shape = HF_SHAPE("log_entry", log_fields);

static const struct hf_field finding_fields[] = {
    TEXT(hf_finding, what, "store, schema, clock, disk, leases or chains"),
    TEXT(hf_finding, detail, "finding"),
    TEXT(hf_finding, advice, "remedy"),
    BOOL(hf_finding, bad, "false: a remark"),
};
const struct hf_shape hf_finding_shape = HF_SHAPE("finding", finding_fields);

static const struct hf_field store_facts_fields[] = {
    HF_FIELD(JSON, hf_store_facts_row, facts, false, "one flat object"),
};
const struct hf_shape hf_store_facts_shape = HF_SHAPE("facts", store_facts_fields);

static const struct hf_field doctor_fields[] = {
    { .name = "findings", .kind = HF_FIELD_ROW, .help = "an array of them", .of = &hf_finding_shape },
};
const struct hf_shape hf_doctor_shape = HF_SHAPE("findings", doctor_fields);

static const struct hf_field bound_fields[] = {
    TEXT(hf_bound_info, name, "name of the bound"),
    COUNT(hf_bound_info, value, "the most, or the least"),
    TEXT(hf_bound_info, unit, "unit of the value"),
    TEXT(hf_bound_info, what, "what is bounded"),
};
const struct hf_shape hf_bound_shape = HF_SHAPE("bound", bound_fields);

static const struct hf_field version_fields[] = {
    TEXT(hf_version_row, version, "version of the program"),
    HF_FIELD(INT, hf_version_row, schema_version, false, "schema version that it "
                                                         "creates"),
    TEXT(hf_version_row, sqlite, "version of SQLite"),
};
const struct hf_shape hf_version_shape = HF_SHAPE("version", version_fields);

/* ---- what an operator looks at -------------------------------------------------------- */

static const char *const need_words[] = {
#define X(name, word, severity, when) #word,
    HF_NEEDS(X)
#undef X
    NULL
};
static const char *const severity_words[] = { "now", "soon", "note", NULL };
static const char *const subject_words[] = { "unit",  "session", "schedule", "queue",
"owner",
                                             "limit", "effect",  "store",    NULL };

static const struct hf_field attention_fields[] = {
    TEXT(hf_attention_row, what, "the kind of finding", .words = need_words),
    TEXT(hf_attention_row, severity, "urgency", .words = severity_words),
    TEXT(hf_attention_row, subject, "type of the subject", .words = subject_words),
    TEXT(hf_attention_row, id, "id or name of the subject"),
    TEXT(hf_attention_row, tenant, "tenant"),
    TEXT(hf_attention_row, name, "name that its user chose"),
    TEXT(hf_attention_row, kind, "kind of the unit or effect"),
    MS(hf_attention_row, since, "since when"),
    MS(hf_attention_row, until, "time at which it ends by itself"),
    TEXT(hf_attention_row, detail, "what is wrong, as text"),
    HF_FIELD(JSON, hf_attention_row, facts, false, "what is wrong, as data"),
    HF_FIELD(JSON, hf_attention_row, act, false, "operation that resolves it: op and in"),
    TEXT(hf_attention_row, command, "the same operation as a shell command"),
};
const struct hf_shape hf_attention_shape = HF_SHAPE("attention", attention_fields);

static const struct hf_field attention_more_fields[] = {
    TEXT(hf_attention_more_row, what, "the kind of finding", .words = need_words),
    TEXT(hf_attention_more_row, kind, "kind of these units; null: all"),
    TEXT(hf_attention_more_row, error_class, "queue of these units; null: all, or none"),
    COUNT(hf_attention_more_row, count, "number of findings that are not shown"),
    BOOL(hf_attention_more_row, at_least, "counting stopped at this number"),
    HF_FIELD(JSON, hf_attention_more_row, act, false, "operation that lists them"),
    TEXT(hf_attention_more_row, command, "the same operation as a shell command"),
};
const struct hf_shape hf_attention_more_shape = HF_SHAPE("attention_more", attention_more_fields);

static const struct hf_field attention_facts_fields[] = {
    FACT("more", JSON, "findings that are not shown, by kind"),
};
const struct hf_shape hf_attention_facts_shape = HF_SHAPE("attention_facts",
                                                          attention_facts_fields);

static const struct hf_field acked_fields[] = {
    FACT("acknowledged", I64, "units that were marked now"),
};
const struct hf_shape hf_acked_shape = HF_SHAPE("acknowledged", acked_fields);

static const struct hf_field queue_fields[] = {
    TEXT(hf_queue, queue, "its name"),
    COUNT(hf_queue, claimable, "units that can be claimed now"),
    COUNT(hf_queue, due, "units whose start is in the future"),
    COUNT(hf_queue, lane, "units that wait for another unit of their lane"),
    COUNT(hf_queue, limit, "units that wait for a limit"),
    COUNT(hf_queue, rate, "units that wait for a rate"),
    COUNT(hf_queue, held, "units that lost their worker too often"),
    COUNT(hf_queue, running, "running units"),
    COUNT(hf_queue, waiting, "waiting units"),
    COUNT(hf_queue, retry, "failed units that wait for their retry"),
    COUNT(hf_queue, silent, "units that run under a lapsed lease"),
    MS(hf_queue, oldest_claimable_ms, "how long the oldest claimable unit has waited"),
    MS(hf_queue, next_due_at, "when the next unit falls due"),
    HF_FIELD(JSON, hf_queue, kinds, false, "the kinds of its units"),
};
const struct hf_shape hf_queue_shape = HF_SHAPE("queue", queue_fields);

static const struct hf_field holder_fields[] = {
    TEXT(hf_holder, owner, "its name"),
    TEXT(hf_holder, incarnation, "incarnation of the owner"),
    COUNT(hf_holder, running, "units that it holds"),
    COUNT(hf_holder, silent, "held units whose lease has lapsed"),
    MS(hf_holder, started_at, "start of the oldest held unit"),
    COUNT(hf_holder, least_left_ms, "least time left on a lease; negative when lapsed"),
    COUNT(hf_holder, most_left_ms, "most time left on a lease"),
    MS(hf_holder, active_at, "last reported activity"),
    TEXT(hf_holder, boot, "boot id of the host of its process; no host name is stored"),
    HF_FIELD(I64, hf_holder, pid, true, "process id on that machine"),
    BOOL(hf_holder, twin, "another incarnation of the owner holds work at once"),
};
const struct hf_shape hf_holder_shape = HF_SHAPE("holder", holder_fields);

static const struct hf_field age_fields[] = {
    TEXT(hf_age_row, status, "of the units", .words = hf_status_words),
    COUNT(hf_age_row, under_1m, "created less than a minute ago"),
    COUNT(hf_age_row, under_10m, "created less than ten minutes ago"),
    COUNT(hf_age_row, under_1h, "created less than an hour ago"),
    COUNT(hf_age_row, under_1d, "created less than a day ago"),
    COUNT(hf_age_row, under_1w, "created less than a week ago"),
    COUNT(hf_age_row, older, "longer"),
};
const struct hf_shape hf_age_shape = HF_SHAPE("ages", age_fields);

static const struct hf_field lease_parts_fields[] = {
    AS("leases_over_two_thirds", I64, hf_lease_parts, over_two_thirds,
    "leases with over two thirds left"),
    AS("leases_over_one_third", I64, hf_lease_parts, over_one_third,
    "leases with over one third left"),
    AS("leases_less", I64, hf_lease_parts, less, "leases with less left"),
    AS("leases_lapsed", I64, hf_lease_parts, lapsed, "leases that have lapsed"),
};
const struct hf_shape hf_lease_parts_shape = HF_SHAPE("lease_parts", lease_parts_fields);

static const struct hf_field occurrence_fields[] = {
    TEXT(hf_occurrence, occurrence_id, "its id"),
    TEXT(hf_occurrence, tenant, "tenant"),
    TEXT(hf_occurrence, source_type, "type of the source"),
    TEXT(hf_occurrence, source_key, "which source"),
    TEXT(hf_occurrence, idempotency_key, "the same key is the same occurrence"),
    MS(hf_occurrence, occurred_at, "time of the entry or occurrence"),
    MS(hf_occurrence, created_at, "time at which it was emitted"),
    HF_FIELD(JSON, hf_occurrence, deliveries, false, "an array of subscription_key, "
                                                     "work_id and status"),
    BOOL(hf_occurrence, deliveries_more, "only 100 of the deliveries are shown"),
};
const struct hf_shape hf_occurrence_shape = HF_SHAPE("occurrence", occurrence_fields);

static const struct hf_field overview_fields[] = {
    COUNT(hf_overview, now, "time at which it was read"),
    AS("by_status", ROW, hf_overview, stats, "by status", .of = &by_status_shape),
    AS("gated", I64, hf_overview, stats.gated, "queued, not claimable now"),
    AS("lapsing", I64, hf_overview, stats.lapsing, "running, lease about to lapse"),
    AS("ended_badly", I64, hf_overview, stats.ended_badly,
       "ended badly within the last hour, not acknowledged"),
};
const struct hf_shape hf_overview_shape = HF_SHAPE("overview", overview_fields);

static const struct hf_field goes_on_fields[] = {
    BOOL(hf_overview_more, running, "there are more running units"),
    BOOL(hf_overview_more, silent, "there are more silent units"),
    BOOL(hf_overview_more, waiting, "there are more waiting units"),
    BOOL(hf_overview_more, held, "there are more held units"),
    BOOL(hf_overview_more, schedules, "there are more schedules"),
};
static const struct hf_shape goes_on_shape = HF_SHAPE("goes_on", goes_on_fields);
static const struct hf_field more_fields[] = {
    { .name = "more", .kind = HF_FIELD_ROW, .help = "lists that have more rows", .of = &goes_on_shape },
};
const struct hf_shape hf_overview_more_shape = HF_SHAPE("more", more_fields);

static const struct hf_field next_slot_fields[] = {
    TEXT(hf_schedule, name, "name of the schedule"),
    COUNT(hf_schedule, next_at, "time of its next slot"),
};
const struct hf_shape hf_next_slot_shape = HF_SHAPE("next_slot", next_slot_fields);

#define UNITS(list) { .name = list, .kind = HF_FIELD_ROW, .help = "an array of units", .of = &hf_work_shape }
static const struct hf_field overview_facts_fields[] = {
    UNITS("running"), UNITS("silent"), UNITS("waiting"), UNITS("held"),
    { .name = "more", .kind = HF_FIELD_ROW, .help = "lists that have more rows", .of = &goes_on_shape },
    { .name = "schedules", .kind = HF_FIELD_ROW, .help = "an array of the next slots",
      .of = &hf_next_slot_shape },
    { .name = "sessions", .kind = HF_FIELD_JSON, .help = "an array of sessions with "
                                                         "an open turn" },
    { .name = "queues", .kind = HF_FIELD_ROW, .help = "an array of queues", .of = &hf_queue_shape },
    { .name = "holders", .kind = HF_FIELD_ROW, .help = "an array of holders",
      .of = &hf_holder_shape },
};
const struct hf_shape hf_overview_facts_shape = HF_SHAPE("overview_lists", overview_facts_fields);
/* clang-format on */
