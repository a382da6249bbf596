/* Inputs of a unit that is made later, as schedules and triggers make them. */
#ifndef HF_CORE_INPUTS_UNIT_INPUTS_H
#define HF_CORE_INPUTS_UNIT_INPUTS_H

/* clang-format off */
#define HF_UNIT_INPUTS(type)                                                             \
    { "lane_key", "KEY", HF_IN_TEXT, 0, "at most one running unit of this key",          \
      .option = "lane", HF_IN_AT(type, lane_key) },                                      \
    { "priority", "N", HF_IN_INT, 0, "priority from 0 (most urgent) to 9 (default: 3)",  \
      .bound = HF_BOUND_PRIORITY_MAX, HF_IN_AT(type, priority) },                        \
    { "max_attempts", "N", HF_IN_INT, 0, "executions before it fails for good "          \
                                         "(default: policy)", .min = 1,                  \
      .bound = HF_BOUND_ATTEMPTS_MAX, HF_IN_AT(type, max_attempts) },                    \
    { "retry_policy", "JSON", HF_IN_JSON, 0, "how failures are retried",                 \
      .bound = HF_BOUND_POLICY_BYTES, HF_IN_AT(type, retry_policy) },                    \
    { "disposition", "WORD", HF_IN_WORD, 0,                                              \
      "what happens to the unit when its lease lapses (default: rerunnable)",            \
      .words = hf_disposition_words, .min = 1, HF_IN_AT(type, disposition) },            \
    { "start_timeout_ms", "DURATION", HF_IN_MS, 0,                                       \
      "longest time in the queue (default: policy)", .min = 1,                           \
      .option = "start-timeout", HF_IN_AT(type, start_timeout_ms) },                     \
    { "exec_timeout_ms", "DURATION", HF_IN_MS, 0,                                        \
      "longest time of one execution (default: policy)", .min = 1,                       \
      .option = "exec-timeout", HF_IN_AT(type, exec_timeout_ms) }
/* clang-format on */

#endif
