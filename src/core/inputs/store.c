/* The inputs of operations on limits, policies and the store as a whole. */
#include "core/inputs/inputs.h"

/* clang-format off */
#define END { .name = NULL }
#define COUNT(member, option_, help)                                                     \
    { #member, "N", HF_IN_INT, 0, help, .min = 1, .bound = HF_BOUND_LIMIT_COUNT,         \
      .option = option_, HF_IN_AT(hf_limit, member) }

const struct hf_input hf_limit_inputs[] = {
    { "name", "NAME", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE,
      "key:K, rate:K (both of the tenant) or kind:K", HF_IN_AT(hf_limit, name) },
    COUNT(max_running, "max", "claimable or running at once"),
    COUNT(rate_count, "rate", "starts in the time of --per"),
    { "rate_ms", "DURATION", HF_IN_MS, 0, "the time of --rate, at most a day",
      .option = "per", HF_IN_AT(hf_limit, rate_ms) },
    COUNT(burst, NULL, "starts at once (default: --rate)"),
    { "none", NULL, HF_IN_FLAG, 0, "remove the limit", HF_IN_AT(hf_limit_request, none) },
    END,
};

#define TIMING(member, option_, help)                                                    \
    { #member, "DURATION", HF_IN_MS, 0, help, .min = 1, .option = option_,               \
      HF_IN_AT(hf_policy, member) }

const struct hf_input hf_policy_inputs[] = {
    { "scope", "SCOPE", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE,
      "default, source:NAME or kind:NAME", HF_IN_AT(hf_policy_request, scope) },
    TIMING(ttl_ms, "ttl", "term of a lease; at least three times --renew"),
    TIMING(renew_ms, "renew", "how often a lease is renewed (default: ttl / 3)"),
    { "grace_ms", "DURATION", HF_IN_MS, 0,
      "how long an expired lease is spared (expire only)", .option = "grace",
      HF_IN_AT(hf_policy, grace_ms) },
    TIMING(wait_user_ms, "wait-user", "budget of a wait for a person"),
    TIMING(wait_external_ms, "wait-external", "budget of a wait for an external system"),
    TIMING(start_timeout_ms, "start-timeout", "longest time in the queue"),
    TIMING(exec_timeout_ms, "exec-timeout", "longest time of one execution"),
    { "max_attempts", "N", HF_IN_INT, 0, "executions before it fails for good", .min = 1,
      .bound = HF_BOUND_ATTEMPTS_MAX, HF_IN_AT(hf_policy, max_attempts) },
    { "retry_policy", "JSON", HF_IN_JSON, 0, "how failures are retried",
      .bound = HF_BOUND_POLICY_BYTES, HF_IN_AT(hf_policy, retry_policy) },
    { "disposition", "WORD", HF_IN_WORD, 0, "disposition: what happens to a unit when "
                                            "its lease lapses",
      .words = hf_disposition_words, .min = 1, HF_IN_AT(hf_policy, disposition) },
    { "close_rule", "RULE", HF_IN_WORD, 0, "what a close-out must contain: evidence "
                                           "or reviewer",
      .words = hf_close_rule_words, HF_IN_AT(hf_policy, close_rule) },
    { "wait_rule", "RULE", HF_IN_WORD, 0, "what a wait must contain: escalation",
      .words = hf_wait_rule_words, HF_IN_AT(hf_policy, wait_rule) },
    END,
};

const struct hf_input hf_policy_show_inputs[] = {
    { "source_system", "SYSTEM", HF_IN_WORD, 0, "for units of this source",
      .words = hf_source_words, .min = 1, .option = "source", HF_IN_AT(hf_filter, source) },
    { "kind", "K", HF_IN_TEXT, 0, "for units of this kind", HF_IN_AT(hf_filter, kind) },
    END,
};

const struct hf_input hf_log_inputs[] = {
    { "limit", "N", HF_IN_INT, 0, "rows per page (default: 100)", .min = 1,
      .bound = HF_BOUND_PAGE, HF_IN_AT(hf_read_request, limit) },
    END,
};

const struct hf_input hf_attention_inputs[] = {
    { "unserved_ms", "DURATION", HF_IN_MS, 0,
      "report a queue whose units were claimable this long without a worker (default: "
      "5m)", .min = 1,
      .option = "unserved", HF_IN_AT(hf_attention_query, unserved_ms) },
    { "limit", "N", HF_IN_INT, 0, "most findings per kind (default: 200)", .min = 1, .max = 200,
      HF_IN_AT(hf_attention_query, limit) },
    { "watch", NULL, HF_IN_FLAG, HF_IN_LOCAL,
      .help = "repeat until ended, and print new findings and those that are gone",
      HF_IN_AT(hf_attention_request, watch) },
    { "interval_ms", "DURATION", HF_IN_MS, HF_IN_LOCAL,
      .help = "with --watch: time between two passes (default: 5s)", .min = 100, .max = 3600000,
      .option = "interval", HF_IN_AT(hf_attention_request, interval_ms) },
    { "exec", "CMD", HF_IN_TEXT, HF_IN_LOCAL,
      .help = "run this program for each new finding, with its JSON on standard input",
      HF_IN_AT(hf_attention_request, exec) },
    { "exec_timeout_ms", "DURATION", HF_IN_MS, HF_IN_LOCAL,
      .help = "with --exec: end the program after this time (default: 30s)", .min = 100,
      .max = 3600000, .option = "exec-timeout",
      HF_IN_AT(hf_attention_request, exec_timeout_ms) },
    END,
};

const struct hf_input hf_ack_inputs[] = {
    { "ids", "ID", HF_IN_TEXTS, HF_IN_BARE, "ids of the units", .option = "id",
      HF_IN_AT(hf_ack, ids) },
    { "kind", "K", HF_IN_TEXT, 0, "acknowledge all bad ends of units of this kind", HF_IN_AT(hf_ack, kind) },
    { "all", NULL, HF_IN_FLAG, 0, "acknowledge all bad ends", HF_IN_AT(hf_ack, all) },
    { "reason", "R", HF_IN_TEXT, 0, "reason, stored with the event", .bound = HF_BOUND_REASON_BYTES,
      HF_IN_AT(hf_ack, reason) },
    END,
};

const struct hf_input hf_holder_list_inputs[] = {
    { "owner", "O", HF_IN_TEXT, HF_IN_BARE, "only holders with this owner name", .bound = HF_BOUND_KEY_BYTES,
      HF_IN_AT(hf_filter, owner) },
    END,
};

const struct hf_input hf_occurrence_inputs[] = {
    { "source_type", "TYPE", HF_IN_TEXT, 0, "only occurrences of this source type",
      .bound = HF_BOUND_KEY_BYTES, HF_IN_AT(hf_occurrence_filter, source_type) },
    { "source_key", "KEY", HF_IN_TEXT, 0, "only occurrences of this source key", .bound = HF_BOUND_KEY_BYTES,
      HF_IN_AT(hf_occurrence_filter, source_key) },
    { "limit", "N", HF_IN_INT, 0, "rows per page (default: 100)", .min = 1,
      .bound = HF_BOUND_PAGE, HF_IN_AT(hf_occurrence_filter, limit) },
    { "after", "CURSOR", HF_IN_TEXT, 0, "continue after this cursor, from the "
                                        "previous page", .bound = HF_BOUND_KEY_BYTES,
      HF_IN_AT(hf_occurrence_filter, after) },
    END,
};
/* clang-format on */
