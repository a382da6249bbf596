/* Options of a unit that is made later, as schedules and triggers make them. */
#ifndef HF_CLI_TABLE_UNIT_OPTIONS_H
#define HF_CLI_TABLE_UNIT_OPTIONS_H

#define CLI_UNIT_OPTIONS                                                                 \
    { "lane", "KEY", CLI_TEXT, 0, .help = "at most one running unit of this key" },      \
        { "priority",                                                                    \
          "N",                                                                           \
          CLI_INT,                                                                       \
          0,                                                                             \
          .help = "0, the most urgent, to 9 (default: 3)",                               \
          .min = 0,                                                                      \
          .limit = HF_LIMIT_PRIORITY_MAX },                                              \
        { "max-attempts",                                                                \
          "N",                                                                           \
          CLI_INT,                                                                       \
          0,                                                                             \
          .help = "executions (default: policy)",                                        \
          .min = 1,                                                                      \
          .limit = HF_LIMIT_ATTEMPTS_MAX },                                              \
        { "retry-policy",                                                                \
          "JSON",                                                                        \
          CLI_JSON,                                                                      \
          0,                                                                             \
          .help = "how failures are retried",                                            \
          .limit = HF_LIMIT_POLICY_BYTES },                                              \
        { "disposition",                                                                 \
          "WORD",                                                                        \
          CLI_WORD,                                                                      \
          0,                                                                             \
          .help = "what a lapsed lease does (default: rerunnable)",                      \
          .words = cli_disposition_words },                                              \
        { "start-timeout",                                                               \
          "DURATION",                                                                    \
          CLI_DURATION,                                                                  \
          0,                                                                             \
          .help = "longest time in the queue (default: policy)",                         \
          .min = 1 },                                                                    \
    {                                                                                    \
        "exec-timeout", "DURATION", CLI_DURATION, 0,                                     \
            .help = "longest time of one execution (default: policy)", .min = 1          \
    }

#endif
