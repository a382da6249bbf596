/* The inputs of operations on jobs. */
#include "core/inputs/inputs.h"

/* clang-format off */
#define END { .name = NULL }
#define ID(type, member)                                                                 \
    { "work_id", "ID", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE,                            \
      "the job: its id, or a unique part of it at either end", .option = "id",           \
      HF_IN_AT(type, member) }
#define TIMEOUT(member, option_, help)                                                   \
    { #member, "DURATION", HF_IN_MS, 0, help, .min = 1, .option = option_,               \
      HF_IN_AT(hf_job_spec, member) }
#define KEY(member, value, help)                                                         \
    { #member, value, HF_IN_TEXT, 0, help, HF_IN_AT(hf_job_spec, member) }

const struct hf_input hf_job_inputs[] = {
    { "kind", "K", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE, "kind of the job: the name "
                                                          "of the code that runs it",
      HF_IN_AT(hf_job_spec, kind) },
    { "payload", "JSON", HF_IN_JSON, 0, "input of the code, as JSON",
      .bound = HF_BOUND_PAYLOAD_BYTES, HF_IN_AT(hf_job_spec, payload) },
    KEY(queue, "Q", "queue of the job (default: default)"),
    { "delay_ms", "DURATION", HF_IN_MS, 0, "earliest start, as a time from now",
      .option = "delay", HF_IN_AT(hf_job_spec, delay_ms) },
    { "priority", "N", HF_IN_INT, 0, "priority from 0 (most urgent) to 9 (default: 3)",
      .bound = HF_BOUND_PRIORITY_MAX, HF_IN_AT(hf_job_spec, priority) },
    { "lane_key", "KEY", HF_IN_TEXT, 0, "at most one running job of this key",
      .option = "lane", HF_IN_AT(hf_job_spec, lane_key) },
    KEY(dedup_key, "KEY", "at most one unfinished job of this key"),
    { "debounce_ms", "DURATION", HF_IN_MS, 0,
      "due this long after the last call with the same --dedup-key",
      .option = "debounce", HF_IN_AT(hf_job_spec, debounce_ms) },
    KEY(idempotency_key, "KEY", "a repeated request with the same key returns the "
                                "same job"),
    { "max_attempts", "N", HF_IN_INT, 0, "executions before the job fails for good "
                                         "(default: policy)", .min = 1,
      .bound = HF_BOUND_ATTEMPTS_MAX, HF_IN_AT(hf_job_spec, max_attempts) },
    { "retry_policy", "JSON", HF_IN_JSON, 0, "delays and error classes of its "
                                             "retries, as JSON",
      .bound = HF_BOUND_POLICY_BYTES, HF_IN_AT(hf_job_spec, retry_policy) },
    TIMEOUT(start_timeout_ms, "start-timeout", "longest time in the queue"),
    TIMEOUT(exec_timeout_ms, "exec-timeout", "longest time of one execution"),
    KEY(limit_key, "KEY", "put the job under the limit key:KEY"),
    KEY(rate_key, "KEY", "put the job under the limit rate:KEY"),
    KEY(fair_key, "KEY", "jobs of one queue and priority start in turn, one key after "
                         "another"),
    { "fair_weight", "N", HF_IN_INT, 0, "share of the key in these turns (default: 1)", .min = 1,
      .bound = HF_BOUND_FAIR_WEIGHT_MAX, HF_IN_AT(hf_job_spec, fair_weight) },
    { "parent_work_id", "ID", HF_IN_TEXT, 0, "id of the unit that created the job", .option =
      "parent",
      HF_IN_AT(hf_job_spec, parent_work_id) },
    KEY(ref, "REF", "a reference that the caller chooses"),
    END,
};

#define FILTER(member, value, help)                                                      \
    { #member, value, HF_IN_TEXT, 0, help, HF_IN_AT(hf_filter, member) }

const struct hf_input hf_job_list_inputs[] = {
    { "statuses", "STATUS", HF_IN_WORDS, 0,
      "only jobs with this status (default: all that are not finished)", .words = hf_status_words,
      .min = 1, .option = "status", HF_IN_AT(hf_filter, statuses) },
    { "all", NULL, HF_IN_FLAG, 0, "list finished jobs too", HF_IN_AT(hf_list_request, all) },
    { "gate", "GATE", HF_IN_WORD, 0, "only jobs that wait behind this gate", .words = hf_gate_words,
      HF_IN_AT(hf_filter, gate) },
    { "source_system", "SOURCE", HF_IN_WORD, 0, "only jobs from this source",
      .words = hf_source_words, .min = 1, .option = "source", HF_IN_AT(hf_filter, source) },
    FILTER(queue, "Q", "only jobs of this queue"),
    FILTER(kind, "K", "only jobs of this kind"),
    FILTER(owner, "O", "only jobs that this owner holds"),
    { "waiting_ref", "REF", HF_IN_TEXT, 0, "only jobs that wait for this reference", .option =
      "ref",
      HF_IN_AT(hf_filter, ref) },
    { "older_than_ms", "DURATION", HF_IN_MS, 0, "only jobs that have not changed for "
                                                "this long",
      .option = "older-than", HF_IN_AT(hf_filter, older_than_ms) },
    { "silent", NULL, HF_IN_FLAG, 0, "only running jobs with a lapsed lease",
      HF_IN_AT(hf_filter, silent) },
    { "limit", "N", HF_IN_INT, 0, "rows per page (default: 100)", .min = 1,
      .bound = HF_BOUND_PAGE, HF_IN_AT(hf_filter, limit) },
    FILTER(after, "CURSOR", "continue after this cursor, from the previous page"),
    END,
};

const struct hf_input hf_job_id_inputs[] = { ID(hf_read_request, id), END };

#define REASON(flags)                                                                    \
    { "reason", "TEXT", HF_IN_TEXT, flags, "why", .bound = HF_BOUND_REASON_BYTES,        \
      HF_IN_AT(hf_change, reason) }
const struct hf_input hf_job_reason_inputs[] = { ID(hf_change, id), REASON(HF_IN_NEEDED), END };
const struct hf_input hf_job_release_inputs[] = {
    ID(hf_change, id),
    REASON(HF_IN_NEEDED),
    { "anew", NULL, HF_IN_FLAG, 0, "the turn of this input may call its tools again",
      HF_IN_AT(hf_change, anew) },
    END,
};
const struct hf_input hf_job_now_inputs[] = { ID(hf_change, id), REASON(0), END };
/* clang-format on */
