/* The values of a turn: messages, tool calls and their results, usage, outcomes.
 *
 * They are plain data. What a host passes in is borrowed until the call returns; what the
 * machine hands out is borrowed from the machine, for as long as the call says. In a
 * struct hf_span of text or JSON the bytes need not end in a NUL when passed in; what the
 * machine hands out does, except blobs and records that a host lends. Enums begin at 0,
 * which is what a zeroed struct means.
 */
#ifndef HOLDFAST_TURN_TYPES_H
#define HOLDFAST_TURN_TYPES_H

#include <holdfast/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Enums with their words, which JSON and people see. */
#define HF_ROLES(X)                                                                      \
    X(USER, user)                                                                        \
    X(ASSISTANT, assistant)                                                              \
    X(SYSTEM, system)                                                                    \
    X(EVENT, event)

#define HF_PARTS(X)                                                                      \
    X(TEXT, text)                                                                        \
    X(ATTACHMENT, attachment)                                                            \
    X(CODE, code)                                                                        \
    X(OUTPUT, output)                                                                    \
    X(ERROR, error)                                                                      \
    X(PROSE, prose)                                                                      \
    X(TOOL_CALL, tool_call)                                                              \
    X(TOOL_RESULT, tool_result)                                                          \
    X(REASONING, reasoning)

#define HF_PHASES(X)                                                                     \
    X(NONE, none)                                                                        \
    X(COMMENTARY, commentary)                                                            \
    X(FINAL, final_answer)

#define HF_ORIGINS(X)                                                                    \
    X(PLUGIN, plugin)                                                                    \
    X(PROCESS, process)                                                                  \
    X(INPUT, turn_input)

#define HF_RECORDS(X)                                                                    \
    X(MESSAGE, message)                                                                  \
    X(EVENT, event)

#define HF_TOOL_OUTCOMES(X)                                                              \
    X(SUCCESS, success)                                                                  \
    X(FAILURE, failure)                                                                  \
    X(CANCELLED, cancelled)                                                              \
    X(UNKNOWN, unknown)

#define HF_CONTROLS(X)                                                                   \
    X(NONE, none)                                                                        \
    X(FINISH, finish)                                                                    \
    X(FAIL, fail)                                                                        \
    X(SWITCH_FRAME, switch_frame)

#define HF_FAILURE_CLASSES(X)                                                            \
    X(INTERNAL, internal)                                                                \
    X(INVALID_REQUEST, invalid_request)                                                  \
    X(IO, io)                                                                            \
    X(UNAVAILABLE, unavailable)                                                          \
    X(PERMISSION_DENIED, permission_denied)                                              \
    X(TIMEOUT, timeout)                                                                  \
    X(EXECUTION, execution)                                                              \
    X(EXTERNAL, external)                                                                \
    X(RESOURCE_LIMIT, resource_limit)

#define HF_FAILURE_SOURCES(X)                                                            \
    X(TOOL, tool)                                                                        \
    X(RUNTIME, runtime)

#define HF_FAILURE_RETRIES(X)                                                            \
    X(NEVER, never)                                                                      \
    X(SAFE, safe)                                                                        \
    X(EXHAUSTED, exhausted)

#define HF_REASONS(X)                                                                    \
    X(UNKNOWN, unknown)                                                                  \
    X(STOP, stop)                                                                        \
    X(TOOL_USE, tool_use)                                                                \
    X(OUTPUT_LIMIT, output_limit)                                                        \
    X(CONTEXT_OVERFLOW, context_overflow)                                                \
    X(CONTENT_FILTER, content_filter)                                                    \
    X(PROVIDER_ERROR, provider_error)                                                    \
    X(CANCELLED, cancelled)

#define HF_LLM_FAILURES(X)                                                               \
    X(UNKNOWN, unknown)                                                                  \
    X(TRANSPORT, transport)                                                              \
    X(TIMEOUT, timeout)                                                                  \
    X(HTTP, http)                                                                        \
    X(QUOTA, quota)                                                                      \
    X(AUTH, auth)                                                                        \
    X(VALIDATION, validation)                                                            \
    X(UNSUPPORTED, unsupported)                                                          \
    X(STREAM, stream)

/* How far a model call came before it failed. */
#define HF_LLM_POSITIONS(X)                                                              \
    X(UNKNOWN, unknown)                                                                  \
    X(NO_RESPONSE, no_response)                                                          \
    X(RESPONSE_OBSERVED, response_observed)                                              \
    X(OUTPUT_STARTED, output_started)                                                    \
    X(TERMINAL_OBSERVED, terminal_observed)

/* The first four end a turn well; the rest stop it. */
#define HF_OUTCOMES(X)                                                                   \
    X(ASSISTANT_MESSAGE, assistant_message)                                              \
    X(FINAL_VALUE, final_value)                                                          \
    X(TOOL_VALUE, tool_value)                                                            \
    X(FRAME_SWITCH, frame_switch)                                                        \
    X(CANCELLED, cancelled)                                                              \
    X(INCOMPLETE, incomplete)                                                            \
    X(INVALID_INPUT, invalid_input)                                                      \
    X(MAX_TURNS, max_turns)                                                              \
    X(NO_PROGRESS, no_progress)                                                          \
    X(TOOL_FAILURE, tool_failure)                                                        \
    X(PROVIDER_ERROR, provider_error)                                                    \
    X(PLUGIN_ABORT, plugin_abort)                                                        \
    X(RUNTIME_ERROR, runtime_error)                                                      \
    X(SUBMITTED_ERROR, submitted_error)                                                  \
    X(TOOL_ERROR, tool_error)

#define HF_CHECKPOINTS(X)                                                                \
    X(AFTER_WORK, after_work)                                                            \
    X(BEFORE_COMPLETION, before_completion)

#define HF_TOOL_CHOICES(X)                                                               \
    X(AUTO, auto)                                                                        \
    X(NONE, none)

#define HF_EMITS(X)                                                                      \
    X(TEXT_DELTA, text_delta)                                                            \
    X(LLM_REQUEST, llm_request)                                                          \
    X(LLM_RESPONSE, llm_response)                                                        \
    X(ATTEMPT_RESET, attempt_reset)                                                      \
    X(TOKEN_USAGE, token_usage)                                                          \
    X(TOOL_CALL, tool_call)                                                              \
    X(ERROR, error)                                                                      \
    X(TURN_OUTCOME, turn_outcome)                                                        \
    X(DONE, done)                                                                        \
    X(CUSTOM, custom)

#define HF_LOGS(X)                                                                       \
    X(LLM_DEBUG, llm_debug)                                                              \
    X(LLM_ERROR, llm_error)

#define HF_EFFECTS(X)                                                                    \
    X(NONE, none)                                                                        \
    X(SYNC, sync_execution_surface)                                                      \
    X(LLM_CALL, llm_call)                                                                \
    X(TOOL_CALLS, tool_calls)                                                            \
    X(EXEC_CODE, exec_code)                                                              \
    X(CHECKPOINT, checkpoint)                                                            \
    X(SLEEP, sleep)                                                                      \
    X(CANCEL_LLM, cancel_llm)                                                            \
    X(CANCEL_TOOLS, cancel_tools)                                                        \
    X(CANCEL_EXEC, cancel_exec)                                                          \
    X(LOG, log)                                                                          \
    X(EMIT, emit)                                                                        \
    X(PROGRESS, progress)                                                                \
    X(DONE, done)

#define HF_TURN_STATES(X)                                                                \
    X(PREPARING, preparing)                                                              \
    X(PREPARE_ITERATION, prepare_iteration)                                              \
    X(WAITING_SURFACE, waiting_execution_surface)                                        \
    X(WAITING_LLM, waiting_llm)                                                          \
    X(WAITING_TOOLS, waiting_tools)                                                      \
    X(WAITING_EXEC, waiting_exec)                                                        \
    X(WAITING_CHECKPOINT, waiting_checkpoint)                                            \
    X(WAITING_SLEEP, waiting_sleep)                                                      \
    X(FINISHED, finished)

#define X(name, word) HF_ROLE_##name,
enum hf_role { HF_ROLES(X) };
#undef X
#define X(name, word) HF_PART_##name,
enum hf_part_kind { HF_PARTS(X) };
#undef X
#define X(name, word) HF_PHASE_##name,
enum hf_phase { HF_PHASES(X) };
#undef X
#define X(name, word) HF_ORIGIN_##name,
enum hf_origin_kind { HF_ORIGINS(X) };
#undef X
#define X(name, word) HF_RECORD_##name,
enum hf_record_kind { HF_RECORDS(X) };
#undef X
#define X(name, word) HF_TOOL_##name,
enum hf_tool_outcome { HF_TOOL_OUTCOMES(X) };
#undef X
#define X(name, word) HF_CONTROL_##name,
enum hf_control { HF_CONTROLS(X) };
#undef X
#define X(name, word) HF_FAILURE_##name,
enum hf_failure_class { HF_FAILURE_CLASSES(X) };
#undef X
#define X(name, word) HF_FROM_##name,
enum hf_failure_source { HF_FAILURE_SOURCES(X) };
#undef X
#define X(name, word) HF_RETRY_##name,
enum hf_failure_retry { HF_FAILURE_RETRIES(X) };
#undef X
#define X(name, word) HF_REASON_##name,
enum hf_reason { HF_REASONS(X) };
#undef X
#define X(name, word) HF_LLM_##name,
enum hf_llm_failure { HF_LLM_FAILURES(X) };
#undef X
#define X(name, word) HF_LLM_AT_##name,
enum hf_llm_position { HF_LLM_POSITIONS(X) };
#undef X
#define X(name, word) HF_OUTCOME_##name,
enum hf_outcome_kind { HF_OUTCOMES(X) };
#undef X
#define X(name, word) HF_CHECKPOINT_##name,
enum hf_checkpoint_kind { HF_CHECKPOINTS(X) };
#undef X
#define X(name, word) HF_TOOLS_##name,
enum hf_tool_choice { HF_TOOL_CHOICES(X) };
#undef X
#define X(name, word) HF_EMIT_##name,
enum hf_emit_kind { HF_EMITS(X) };
#undef X
#define X(name, word) HF_LOG_##name,
enum hf_log_kind { HF_LOGS(X) };
#undef X
#define X(name, word) HF_EFFECT_##name,
enum hf_effect_kind { HF_EFFECTS(X) };
#undef X
#define X(name, word) HF_TURN_##name,
enum hf_turn_state { HF_TURN_STATES(X) };
#undef X

/* Bytes kept elsewhere, by name. The machine never looks inside. */
struct hf_attachment {
    const char *ref; /* required */
    const char *media_type;
    const char *name;
    int64_t bytes;
};

/* One piece of a message or of a model's reply. Its public id is "<message>.p<number>",
 * so it is not stored.
 *   content  text; for a tool call the raw argument text as the model wrote it
 *   call_id  of a call and its result: the machine's own, whatever the provider said
 *   replay, provider_id
 *            opaque data of a provider (a signature, an item id), and its own id of a call,
 *            valid only on `route`; with another route, or none, they are not shown to a
 *            provider again                                                             */
struct hf_part {
    enum hf_part_kind kind;
    enum hf_phase phase;
    bool pruned;
    struct hf_span content;
    const char *call_id;
    const char *tool;
    const char *route;
    struct hf_span replay;
    const char *provider_id;
    const struct hf_attachment *attachment;
};

/* Where a message came from, if not from the conversation itself. */
struct hf_origin {
    enum hf_origin_kind kind;
    bool transient; /* for this turn only: hosts do not keep it */
    const char *id; /* required */
    const char *event_type;
    const char *cause;
    int64_t sequence;
};

struct hf_message {
    const char *id; /* required but in a delivery's new messages, which get one */
    enum hf_role role;
    const struct hf_part *parts;
    size_t part_count;
    const struct hf_origin *origin;
    const char *response_id; /* of a reply: what the provider called it, */
    const char *model;       /* and the model that it says wrote it */
};

/* One line of the durable history: a message, or an event of a protocol. */
struct hf_record {
    enum hf_record_kind kind;
    const struct hf_message *message; /* of a message */
    const char *name;                 /* of an event */
    struct hf_span data;              /* of an event: JSON */
};

/* Why a turn runs, or an event that reached it while it ran. Shown to the model once. */
struct hf_cause {
    const char *id; /* required */
    const char *event_type;
    const char *origin;
    struct hf_span text;
};

/* Tokens. Reasoning is a part of output and not added to totals. */
struct hf_usage {
    int64_t input; /* uncached */
    int64_t output;
    int64_t cache_read;
    int64_t cache_write;
    int64_t reasoning;
};

/* Who asked for a cancellation. */
struct hf_evidence {
    const char *request_id; /* required */
    const char *origin;
    const char *reason;
};

struct hf_failure {
    enum hf_failure_class class_;
    enum hf_failure_source source;
    enum hf_failure_retry retry;
    hf_ms after_ms;
    int64_t attempts;
    const char *code; /* required */
    struct hf_span message;
    struct hf_span raw; /* JSON */
};

/* The side effects of a tool on the host; each is shown to the model. */
struct hf_intent {
    const char *name; /* required */
    bool failed;
    struct hf_span text;
};

/* The answer to one call.
 *   value    JSON of a success; an object {"$attachment": {...}} in it is an attachment
 *            (hf_value_escape)
 *   parts    what the model will see, when that is not simply the value: text and
 *            attachment parts
 *   control  with a success only. FINISH and FAIL end the turn with control_value (JSON);
 *            SWITCH_FRAME with a non-blank task ends it too                              */
struct hf_tool_result {
    const char *call_id; /* required */
    const char *tool;    /* filled in by the machine */
    enum hf_tool_outcome outcome;
    enum hf_control control;
    struct hf_span value;
    const struct hf_failure *failure; /* of a failure */
    struct hf_span reason;            /* of a cancellation, or why it is unknown */
    struct hf_span control_value;
    const char *frame_key;
    struct hf_span task;
    const struct hf_part *parts;
    size_t part_count;
    const struct hf_intent *intents;
    size_t intent_count;
    hf_ms duration_ms;
};

/* One call of a batch. `call_id` is "c" and 24 characters of [a-z0-5]; no other call has
 * the same. `args` is the raw text, valid JSON unless the call came with an answer. An
 * answered call must not be run again: `result` is its answer. */
struct hf_tool_call {
    const char *call_id;
    const char *tool;
    struct hf_span args;
    const char *route;
    struct hf_span replay;
    bool answered;
    const struct hf_tool_result *result;
};

/* How a turn ended.
 *   message  of assistant_message: the final answer as it belongs into the history, with the
 *            reasoning that came with it. No record of the turn holds it: the host appends it
 *            once, when it commits the turn. Of a turn that ended in a failed model call: the part
 *            of the reply that came, if the host passed it on; appending it is the host's choice */
struct hf_outcome {
    enum hf_outcome_kind kind;
    struct hf_span text; /* assistant_message; or an explanation, if there is one */
    struct hf_span
        value;        /* JSON: final_value, tool_value, *_error, frame_switch's nodes */
    const char *tool; /* tool_value, tool_error */
    const char *frame_key;
    struct hf_span task;
    const struct hf_evidence *evidence; /* cancelled */
    const struct hf_message *message;
};

/* A protocol's own state, carried through a wait. */
struct hf_driver_state {
    const char *owner; /* required: the protocol's id */
    struct hf_span data;
};

/* A model call, as a view: records [0, records) and causes [0, causes) of the turn, and
 * three blobs named by their SHA-256. hf_render shows it as a provider needs it. */
struct hf_request {
    const char *model;
    const char *route;
    struct hf_span prompt;
    struct hf_span tools;   /* JSON array */
    struct hf_span options; /* JSON object */
    uint8_t prompt_hash[32];
    uint8_t tools_hash[32];
    uint8_t options_hash[32];
    uint64_t records;
    uint64_t causes;
    uint64_t iteration;
    enum hf_tool_choice tool_choice;
    uint32_t render_version;
    uint32_t attempt; /* from 1 */
    const struct hf_driver_state *driver;
};

/* A model's reply. Parts are text, reasoning and tool calls, in the model's order. Faults
 * in it (bad UTF-8, oversize, bad call ids or arguments) are repaired or answered; they
 * never fail the call. */
struct hf_llm_response {
    size_t size;
    const struct hf_part *parts;
    size_t part_count;
    enum hf_reason reason;
    bool text_streamed; /* the host showed the text already */
    struct hf_usage usage;
    const char *response_id;
    const char *model;
    struct hf_span raw; /* text, for the log */
};

/* Why there is no reply. Two separate facts decide a retry: would it likely help
 * (transient), and can it not buy a second generation (charge_safe).
 *   parts       the part of the reply that came, if any. Its calls are never run
 *   position    how far the call came
 *   request_id  what the provider called the request, for its support                    */
struct hf_llm_error {
    size_t size;
    enum hf_llm_failure kind;
    bool transient;
    bool charge_safe;
    bool cancelled;
    bool text_streamed; /* some text was shown already and must be retracted */
    hf_ms retry_after_ms;
    const char *code;
    struct hf_span message;
    struct hf_span raw; /* text, for the log */
    struct hf_usage usage;
    const struct hf_part *parts;
    size_t part_count;
    enum hf_llm_position position;
    const char *request_id;
};

/* One thing that a cell printed. */
struct hf_observation {
    struct hf_span text;
    bool truncated;
};

/* The outcome of a code cell. `failed` with a message: the host could not run it. `error`:
 * it ran and raised. `unknown`: a forced end; only the machine sets it. `cancelled`: the
 * host stopped it; it has no final value. `variables`: what
 * the model is to be shown of the bindings after it (hf_code_variables makes it). */
struct hf_exec_result {
    size_t size;
    bool failed;
    bool unknown;
    bool cancelled;
    struct hf_span message;
    struct hf_span error;
    const struct hf_observation *observations;
    size_t observation_count;
    const struct hf_tool_result *calls;
    size_t call_count;
    const struct hf_attachment *images;
    size_t image_count;
    struct hf_span finish;         /* JSON: the cell's final value */
    struct hf_span bindings_delta; /* JSON */
    const char *bindings_before;   /* hash */
    const char *bindings_after;
    hf_ms duration_ms;
    struct hf_span variables;
};

/* Messages and causes that the host adds to a running turn at a checkpoint, and only there. */
struct hf_turn_delivery {
    size_t size;
    const struct hf_message *committed; /* user messages, kept as they are */
    size_t committed_count;
    const struct hf_message *messages; /* user and system; ids are given to them */
    size_t message_count;
    const struct hf_message *transient; /* as messages, for this turn only */
    size_t transient_count;
    const struct hf_cause *causes; /* each id counts once */
    size_t cause_count;
};

/* A live event, for watchers. It is not durable. Which members are set follows from the
 * kind; see docs/internals/turn.md. */
struct hf_emit {
    enum hf_emit_kind kind;
    uint64_t iteration;
    struct hf_span text;
    const char *name;                      /* of an error: its kind; custom: its name */
    const char *code;                      /* of an error */
    const char *failure;                   /* of an error: the provider's failure kind */
    const char *call_id;                   /* tool_call */
    const char *tool;                      /* tool_call */
    struct hf_span tools;                  /* llm_request: names, comma-separated */
    struct hf_span data;                   /* custom: JSON */
    uint64_t records;                      /* llm_request: how many it shows */
    uint64_t attempt;                      /* attempt_reset */
    hf_ms duration_ms;                     /* tool_call */
    bool retryable;                        /* error */
    enum hf_tool_outcome outcome;          /* tool_call */
    const struct hf_usage *usage;          /* token_usage */
    const struct hf_usage *cumulative;     /* token_usage */
    const struct hf_outcome *turn_outcome; /* turn_outcome */
    enum hf_llm_position position;         /* of an error: of the model call */
    const char *request_id;                /* of an error: the provider's */
};

/* For the log, only with a trace asked for. */
struct hf_log {
    enum hf_log_kind kind;
    uint64_t iteration;
    uint64_t effect_id;
    struct hf_span text;
};

/* What the host must do next.
 *   id    of SYNC, LLM_CALL, TOOL_CALLS, EXEC_CODE, CHECKPOINT and SLEEP: the number that
 *         the response must carry, counted from 1 in each turn. Of CANCEL_LLM, CANCEL_TOOLS
 *         and CANCEL_EXEC: that of the effect to stop. Otherwise 0.
 * Everything it points to lives until the effect is answered, or for effects that take no
 * answer until the next call on the handle. Effects that take no answer must be handled
 * before the turn is saved: a save does not hold what was already polled. */
struct hf_effect {
    enum hf_effect_kind kind;
    uint64_t id;
    uint64_t iteration;
    bool update;                          /* SYNC: the machine wants the new surface */
    const struct hf_request *request;     /* LLM_CALL */
    const struct hf_tool_call *calls;     /* TOOL_CALLS, in the model's order */
    size_t call_count;                    /* TOOL_CALLS */
    const char *language;                 /* EXEC_CODE */
    struct hf_span code;                  /* EXEC_CODE */
    const char *bindings;                 /* EXEC_CODE: hash of what it starts from */
    const struct hf_driver_state *driver; /* EXEC_CODE */
    struct hf_span given;                 /* EXEC_CODE: as the turn was started with, */
    struct hf_span given_refs;            /* in canonical form */
    enum hf_checkpoint_kind checkpoint;   /* CHECKPOINT */
    hf_ms duration_ms;                    /* SLEEP */
    hf_ms due_ms;                         /* SLEEP: noted before, or 0 */
    uint64_t from;                        /* PROGRESS, DONE: records [from, to) are new */
    uint64_t to;
    const struct hf_emit *emit; /* EMIT */
    const struct hf_log *log;   /* LOG */
    /* DONE; CHECKPOINT: how the turn ends if nothing is delivered, NULL: it continues */
    const struct hf_outcome *outcome;
};

#ifdef __cplusplus
}
#endif
#endif
