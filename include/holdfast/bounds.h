/* Every bound of an input, in one place, readable at run time (`holdfast bounds`). What an operator
 * sets for units of a key is a limit (`holdfast limit`, work.h). */
#ifndef HOLDFAST_BOUNDS_H
#define HOLDFAST_BOUNDS_H

#include <holdfast/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* name, name shown to people, value, unit, what it bounds */
#define HF_BOUNDS(X)                                                                     \
    X(KEY_BYTES, key_bytes, 191, "bytes",                                                \
      "ids, keys, kinds, queues, lanes, references, owners")                             \
    X(REASON_BYTES, reason_bytes, 1024, "bytes", "reasons")                              \
    X(SUMMARY_BYTES, summary_bytes, 8192, "bytes", "summaries of a close-out")           \
    X(PAYLOAD_BYTES, payload_bytes, 1048576, "bytes",                                    \
      "payloads, results and resume payloads")                                           \
    X(POLICY_BYTES, policy_bytes, 4096, "bytes", "retry policies")                       \
    X(EVENT_BYTES, event_bytes, 65536, "bytes", "payload of an appended event")          \
    X(REFS, refs, 64, "items",                                                           \
      "output references, and evidence references, of a close-out")                      \
    X(JSON_DEPTH, json_depth, 64, "levels", "nesting of JSON input")                     \
    X(BATCH, batch, 1000, "items", "units of one create, claim or change")               \
    X(KINDS, kinds, 32, "items", "kinds named by one claim")                             \
    X(PAGE, page, 1000, "items", "rows of one page of a list")                           \
    X(SWEEP, sweep, 1000, "rows", "rows that one sweep acts on")                         \
    X(PRIORITY_MAX, priority_max, 9, "", "least urgent priority; 0 is the most urgent")  \
    X(ATTEMPTS_MAX, attempts_max, 1000000, "executions",                                 \
      "max_attempts of a unit of work")                                                  \
    X(DURATION_MAX_MS, duration_max_ms, 3155760000000, "ms", "any duration (100 years)") \
    X(TTL_MIN_MS, ttl_min_ms, 750, "ms", "least lease term (three renewals of 250 ms)")  \
    X(TTL_MAX_MS, ttl_max_ms, 86400000, "ms", "longest lease term (one day)")            \
    X(SCHEDULE_NAME_BYTES, schedule_name_bytes, 160, "bytes", "names of schedules")      \
    X(CRON_BYTES, cron_bytes, 256, "bytes", "cron expressions")                          \
    X(EVERY_MIN_MS, every_min_ms, 1000, "ms", "least interval of a schedule")            \
    X(SCHEDULE_SLOTS, schedule_slots, 100, "slots",                                      \
      "slots of one schedule that one transaction makes")                                \
    X(POISON_CRASHES, poison_crashes, 5, "crashes",                                      \
      "executions lost in a row within the window, then a unit is held")                 \
    X(POISON_WINDOW_MS, poison_window_ms, 3600000, "ms", "window of the above")          \
    X(LIMIT_COUNT, limit_count, 1000000, "units", "most, rate and burst of a limit")     \
    X(FAIR_WEIGHT_MAX, fair_weight_max, 1000, "", "largest weight of a fair key")        \
    X(FANOUT, fanout, 10000, "deliveries", "subscriptions that one occurrence reaches")  \
    X(STORE_WAIT_MS, store_wait_ms, 10000, "ms",                                         \
      "wait for the store's turnstile before exit 6")                                    \
    X(SPOOL_BYTES, spool_bytes, 67108864, "bytes", "a spool of an ingress")              \
    X(SPOOL_LINE_BYTES, spool_line_bytes, 8388608, "bytes",                              \
      "one request of a spool or export")                                                \
    X(CALL_LINE_BYTES, call_line_bytes, 8388608, "bytes", "a line of `call --lines`")    \
    X(OUTPUT_HEAD_BYTES, output_head_bytes, 65536, "bytes",                              \
      "the beginning of a command's output that is kept, a stream")                      \
    X(OUTPUT_TAIL_BYTES, output_tail_bytes, 65536, "bytes",                              \
      "the end of a command's output that is kept, a stream (at least)")                 \
    X(COMMAND_ARGS, command_args, 1024, "items", "arguments of a command that is run")   \
    X(TURN_TEXT_BYTES, turn_text_bytes, 8388608, "bytes",                                \
      "one text, value or block of a turn")                                              \
    X(TURN_CALLS, turn_calls, 128, "items", "tool calls of one reply")                   \
    X(TURN_PARTS, turn_parts, 1024, "items", "parts of one reply or of one result")      \
    X(TURN_LIST, turn_list, 1024, "items", "messages or causes given in one call")       \
    X(COMMIT_BYTES, commit_bytes, 1048576, "bytes",                                      \
      "all texts and blobs of one commit of a session; of a step, records and blobs")    \
    X(COMMIT_ROWS, commit_rows, 512, "rows",                                             \
      "records, blobs, usage entries and units of one commit or step")                   \
    X(INPUT_BYTES, input_bytes, 1048576, "bytes", "a message that is sent to a session") \
    X(ATTACHMENT_BYTES, attachment_bytes, 3670016, "bytes",                              \
      "a file that is attached to a message (under 5 MB as base64)")                     \
    X(ATTACHMENTS, attachments, 16, "items", "files that are attached to one message")   \
    X(CODE_OPTIONS_BYTES, code_options_bytes, 65536, "bytes",                            \
      "options of the code protocol, with the schema")                                   \
    X(CELL_BYTES, cell_bytes, 262144, "bytes", "source of a cell")                       \
    X(CELL_OUTPUT_BYTES, cell_output_bytes, 524288, "bytes", "output of a cell, kept")   \
    X(CELL_SHOWN_BYTES, cell_shown_bytes, 4096, "bytes",                                 \
      "one output of a cell that the model is shown at once; four times that for all")   \
    X(CODE_VARIABLES_BYTES, code_variables_bytes, 4096, "bytes",                         \
      "what a request shows of variables, and as much of what is given")                 \
    X(TURN_GIVEN_BYTES, turn_given_bytes, 65536, "bytes",                                \
      "what a host passes to the cells of a turn; more by reference")                    \
    X(TURN_SAVE_BYTES, turn_save_bytes, 268435456, "bytes", "a turn's save")             \
    X(CELL_VALUE_BYTES, cell_value_bytes, 1048576, "bytes",                              \
      "arguments, answer or final value of a cell")                                      \
    X(CELL_BINDINGS_BYTES, cell_bindings_bytes, 1048576, "bytes",                        \
      "all that lasts from one cell to the next")                                        \
    X(CELL_STEPS, cell_steps, 10000000000, "steps", "what a cell can be allowed")        \
    X(CELL_MEMORY_BYTES, cell_memory_bytes, 1073741824, "bytes",                         \
      "what a cell can be allowed")                                                      \
    X(CELL_OPS, cell_ops, 65536, "items", "operations that a cell can be allowed")       \
    X(MODEL_REQUEST_BYTES, model_request_bytes, 67108864, "bytes",                       \
      "a request to a model, as it is sent")                                             \
    X(MODEL_RESPONSE_BYTES, model_response_bytes, 67108864, "bytes",                     \
      "a response of a model, as it is received")                                        \
    X(MODEL_EVENT_BYTES, model_event_bytes, 8388608, "bytes",                            \
      "one event of a streamed response")                                                \
    X(MODEL_STOPS, model_stops, 16, "items", "texts at which a model is to stop")        \
    X(CONFIG_BYTES, config_bytes, 262144, "bytes", "a configuration file")

#define X(name, lower, value, unit, what) HF_BOUND_##name,
enum hf_bound { HF_BOUNDS(X) HF_BOUND_COUNT };
#undef X

/* Each bound as a constant: HF_MAX_KEY_BYTES and so on. */
#define X(name, lower, value, unit, what) static const int64_t HF_MAX_##name = (value);
HF_BOUNDS(X)
#undef X

struct hf_bound_info {
    const char *name; /* lower case */
    int64_t value;
    const char *unit;
    const char *what;
};

/* The i-th bound, or NULL past the last. The record is static. */
HF_API const struct hf_bound_info *hf_bound_at(size_t i);

#ifdef __cplusplus
}
#endif
#endif
