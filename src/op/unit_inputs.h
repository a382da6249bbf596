/* Options of a unit that is made later, as schedules and triggers make them. */
#ifndef HF_OP_UNIT_INPUTS_H
#define HF_OP_UNIT_INPUTS_H

#define OP_UNIT_INPUTS                                                                   \
    { "lane", "KEY", HF_IN_TEXT, 0, .help = "at most one running unit of this key" },    \
        { "priority",                                                                    \
          "N",                                                                           \
          HF_IN_INT,                                                                     \
          0,                                                                             \
          .help = "0, the most urgent, to 9 (default: 3)",                               \
          .min = 0,                                                                      \
          .limit = HF_LIMIT_PRIORITY_MAX },                                              \
        { "max-attempts",                                                                \
          "N",                                                                           \
          HF_IN_INT,                                                                     \
          0,                                                                             \
          .help = "executions (default: policy)",                                        \
          .min = 1,                                                                      \
          .limit = HF_LIMIT_ATTEMPTS_MAX },                                              \
        { "retry-policy",                                                                \
          "JSON",                                                                        \
          HF_IN_JSON,                                                                    \
          0,                                                                             \
          .help = "how failures are retried",                                            \
          .limit = HF_LIMIT_POLICY_BYTES },                                              \
        { "disposition",                                                                 \
          "WORD",                                                                        \
          HF_IN_WORD,                                                                    \
          0,                                                                             \
          .help = "what a lapsed lease does (default: rerunnable)",                      \
          .words = hf_disposition_words },                                               \
        { "start-timeout",                                                               \
          "DURATION",                                                                    \
          HF_IN_MS,                                                                      \
          0,                                                                             \
          .help = "longest time in the queue (default: policy)",                         \
          .min = 1 },                                                                    \
    {                                                                                    \
        "exec-timeout", "DURATION", HF_IN_MS, 0,                                         \
            .help = "longest time of one execution (default: policy)", .min = 1          \
    }

#endif
