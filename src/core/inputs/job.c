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
      HF_IN_AT(hf_job_new, member) }
#define KEY(member, value, help)                                                         \
    { #member, value, HF_IN_TEXT, 0, help, HF_IN_AT(hf_job_new, member) }

const struct hf_input hf_job_inputs[] = {
    { "kind", "K", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE, "which code runs it",
      HF_IN_AT(hf_job_new, kind) },
    { "payload", "JSON", HF_IN_JSON, 0, "what it is given",
      .limit = HF_LIMIT_PAYLOAD_BYTES, HF_IN_AT(hf_job_new, payload) },
    KEY(queue, "Q", "its queue (default: default)"),
    { "delay_ms", "DURATION", HF_IN_MS, 0, "not before this time has passed",
      .option = "delay", HF_IN_AT(hf_job_new, delay_ms) },
    { "priority", "N", HF_IN_INT, 0, "0, the most urgent, to 9 (default: 3)",
      .limit = HF_LIMIT_PRIORITY_MAX, HF_IN_AT(hf_job_new, priority) },
    { "lane_key", "KEY", HF_IN_TEXT, 0, "at most one running job of this key",
      .option = "lane", HF_IN_AT(hf_job_new, lane_key) },
    KEY(dedup_key, "KEY", "at most one unfinished job of this key"),
    { "debounce_ms", "DURATION", HF_IN_MS, 0,
      "due so long after the last such call with the same --dedup-key",
      .option = "debounce", HF_IN_AT(hf_job_new, debounce_ms) },
    KEY(idempotency_key, "KEY", "the same request again is the same job"),
    { "max_attempts", "N", HF_IN_INT, 0, "executions (default: policy)", .min = 1,
      .limit = HF_LIMIT_ATTEMPTS_MAX, HF_IN_AT(hf_job_new, max_attempts) },
    { "retry_policy", "JSON", HF_IN_JSON, 0, "delays and classes of its retries",
      .limit = HF_LIMIT_POLICY_BYTES, HF_IN_AT(hf_job_new, retry_policy) },
    TIMEOUT(start_timeout_ms, "start-timeout", "it must start within"),
    TIMEOUT(exec_timeout_ms, "exec-timeout", "an execution may take"),
    KEY(limit_key, "KEY", "under the limit key:KEY"),
    KEY(rate_key, "KEY", "under the limit rate:KEY"),
    KEY(fair_key, "KEY", "keys of one queue and priority take turns"),
    { "fair_weight", "N", HF_IN_INT, 0, "its share of the turns (default: 1)", .min = 1,
      .limit = HF_LIMIT_FAIR_WEIGHT_MAX, HF_IN_AT(hf_job_new, fair_weight) },
    { "parent_work_id", "ID", HF_IN_TEXT, 0, "the unit that made it", .option = "parent",
      HF_IN_AT(hf_job_new, parent_work_id) },
    KEY(ref, "REF", "a reference of your own"),
    END,
};

#define FILTER(member, value, help)                                                      \
    { #member, value, HF_IN_TEXT, 0, help, HF_IN_AT(hf_filter, member) }

const struct hf_input hf_job_list_inputs[] = {
    { "statuses", "STATUS", HF_IN_WORDS, 0,
      "only these (default: all that are not finished)", .words = hf_status_words,
      .min = 1, .option = "status", HF_IN_AT(hf_filter, statuses) },
    { "all", NULL, HF_IN_FLAG, 0, "finished ones too", HF_IN_AT(hf_list_request, all) },
    { "gate", "GATE", HF_IN_WORD, 0, "only what waits behind it", .words = hf_gate_words,
      HF_IN_AT(hf_filter, gate) },
    { "source_system", "SOURCE", HF_IN_WORD, 0, "only of this source",
      .words = hf_source_words, .min = 1, .option = "source", HF_IN_AT(hf_filter, source) },
    FILTER(queue, "Q", "only of this queue"),
    FILTER(kind, "K", "only of this kind"),
    FILTER(owner, "O", "only what this owner holds"),
    { "waiting_ref", "REF", HF_IN_TEXT, 0, "only what waits for it", .option = "ref",
      HF_IN_AT(hf_filter, ref) },
    { "older_than_ms", "DURATION", HF_IN_MS, 0, "not changed for so long",
      .option = "older-than", HF_IN_AT(hf_filter, older_than_ms) },
    { "silent", NULL, HF_IN_FLAG, 0, "running with a lapsed lease",
      HF_IN_AT(hf_filter, silent) },
    { "limit", "N", HF_IN_INT, 0, "rows of a page (default: 100)", .min = 1,
      .limit = HF_LIMIT_PAGE, HF_IN_AT(hf_filter, limit) },
    FILTER(after, "CURSOR", "go on where the last page ended"),
    END,
};

const struct hf_input hf_job_id_inputs[] = { ID(hf_read_request, id), END };

#define REASON(flags)                                                                    \
    { "reason", "TEXT", HF_IN_TEXT, flags, "why", .limit = HF_LIMIT_REASON_BYTES,        \
      HF_IN_AT(hf_change, reason) }
const struct hf_input hf_job_reason_inputs[] = { ID(hf_change, id), REASON(HF_IN_NEEDED), END };
const struct hf_input hf_job_now_inputs[] = { ID(hf_change, id), REASON(0), END };
/* clang-format on */
