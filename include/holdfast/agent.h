/* An agent: a model, a prompt and tools, over one store.
 *
 * hf_agent_run is the direct way: it stores the input, drives the session until the input's turn
 * has ended, and returns a report. hf_agent_serve takes sessions of its agents as they become
 * ready, until it is asked to stop. Both may run in many processes over one store. A session has a
 * single owner at a time, and a run whose session is driven by another process waits for the
 * outcome. A process that is killed loses nothing: the next run or worker continues from the last
 * step.
 *
 * A model call or a tool that fails is no error of the call: the report says what became of the
 * turn. The library prints nothing; all that could be logged goes to one callback.
 *
 * Threads: an agent belongs to the thread of its loop. hf_agent_run and hf_agent_serve block and
 * step that loop, so that watches and timers of the host work meanwhile; hf_agent_cancel and
 * hf_agent_stop are for callbacks of that loop.
 */
#ifndef HOLDFAST_AGENT_H
#define HOLDFAST_AGENT_H

#include <holdfast/model.h>
#include <holdfast/worker.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_agent;

/* How an agent is made. Texts are copied; the rest is lent for as long as the agent lives.
 *   name                1 to 191 bytes: the `agent` of its sessions
 *   model               NULL: it can be made, and hf_agent_run and hf_agent_serve return
 *                       HF_ENOTCONFIGURED
 *   sources             asked for tools when the agent is made
 *   sync                they are asked again before each model call
 *   protocol            NULL: standard
 *   turn_budget         model calls of a turn; 0: 50; or HF_UNBOUNDED
 *   no_progress_budget  as struct hf_turn_config; 0: its default
 *   retry, host         NULL: the defaults
 *   ttl_ms … tool_retries  as struct hf_worker_config
 *   heard               the callback for all events while it runs or serves; NULL: none */
struct hf_agent_config {
    size_t size;
    struct hf_loop *loop;
    struct hf_store *store;
    const char *name;
    const struct hf_model *model;
    struct hf_span prompt;
    const struct hf_tool_source *sources;
    size_t source_count;
    bool sync;
    const struct hf_protocol *protocol;
    int64_t turn_budget;
    int64_t no_progress_budget;
    const struct hf_llm_retry *retry;
    const struct hf_effect_host *host;
    hf_ms ttl_ms;
    hf_ms renew_ms;
    hf_ms poll_ms;
    int pid;
    int64_t tool_limit;
    int64_t tool_retries;
    void *user;
    void (*heard)(void *user, const struct hf_worker_event *event);
};

/* HF_EINVAL names the field: no name, two tools of one name, a prompt that is no text. HF_ETOOBIG,
 * HF_ENOMEM, and the errors of a source. */
HF_API HF_MUST_USE int hf_agent_new(const struct hf_agent_config *config,
                                    struct hf_agent **ret_agent, struct hf_err *err);
HF_API void hf_agent_free(struct hf_agent *agent); /* NULL is fine */
HF_API const char *hf_agent_name(const struct hf_agent *agent);

/* One input.
 *   session_id  made as a session of this agent if it is not there; NULL: a new session
 *   text        a message of the user; or
 *   message     JSON of a record that is a message (holdfast/turn_json.h)
 *               neither: nothing is sent; the inputs that the session has are processed
 *   source_key  names the message in its session, so that a repeat is the same input */
struct hf_agent_run {
    size_t size;
    const char *session_id;
    const char *text;
    const char *message;
    const char *source_key;
};

/* A tool call of the turn, as it is recorded: one per attempt. */
struct hf_agent_call {
    const char *tool;
    const char *call_id;
    int64_t attempt;
    const char *status; /* started, done, failed or unknown */
    const char *text;   /* the answer, or why there is none */
    hf_ms started_at;
    hf_ms ended_at;  /* 0: it has not ended */
    bool taken_over; /* performed again after a worker was lost */
};

/* A failure in the turn, whether or not the turn continued. */
struct hf_agent_issue {
    const char *source;  /* "model", or the name of a tool */
    const char *code;    /* NULL: none is known */
    const char *failure; /* of a model: transport, timeout, quota, … (HF_LLM_FAILURES) */
    const char *message;
    bool retryable; /* the same call may succeed later */
};

/* The outcome of an input. It owns all that it shows; texts are NULL where there is none. */
struct hf_agent_report {
    const char *session_id;
    const char *turn_id; /* NULL: there was nothing to do, or no turn has begun */
    const char *work_id; /* of the input; NULL: none was sent */
    bool ended;          /* false: hf_agent_stop came first */
    bool driven_here;
    const char *outcome;         /* a word of HF_OUTCOMES */
    bool answered;               /* the outcome is one that ends a turn well */
    const char *text;            /* the answer, or why there is none */
    const struct hf_node *nodes; /* the records of the turn */
    size_t node_count;
    struct hf_usage usage;
    const struct hf_agent_call *calls;
    size_t call_count;
    const struct hf_agent_issue *issues;
    size_t issue_count;
    hf_ms queued_ms; /* from the send to the first claim */
    hf_ms active_ms; /* that owners spent on it */
    hf_ms whole_ms;  /* from the send to the end */
};

/* Stores the input, then drives its session or waits for the worker that does, until the input's
 * turn has ended. 0 also for a turn that failed, and after hf_agent_stop: the report says so.
 * HF_ENOTCONFIGURED: no model; nothing was sent. HF_ECONFLICT: the session belongs to another
 * agent, or source_key was used with other content. HF_EBUSY: the agent runs or serves already.
 * HF_EINVAL, HF_ESESSIONDELETED, HF_ENOMEM, and the errors of a store. */
HF_API HF_MUST_USE int hf_agent_run(struct hf_agent *agent,
                                    const struct hf_agent_run *run,
                                    struct hf_agent_report **ret_report,
                                    struct hf_err *err);

/* The report about a turn as the store has it: about the input or turn `name`, or of the last turn
 * where it is NULL. HF_ENOTFOUND. */
HF_API HF_MUST_USE int hf_agent_report(struct hf_store *store, const char *session_id,
                                       const char *name,
                                       struct hf_agent_report **ret_report,
                                       struct hf_err *err);
HF_API void hf_agent_report_free(struct hf_agent_report *report); /* NULL is fine */

/* Takes ready sessions of these agents, which share a loop and a store, at most `turns` at once
 * (0: 64), until hf_agent_stop on one of them. HF_ENOTCONFIGURED names the agent without a model.
 * HF_EBUSY, HF_EINVAL, HF_ENOMEM. */
HF_API HF_MUST_USE int hf_agent_serve(struct hf_agent *const *agents, size_t count,
                                      int64_t turns, struct hf_err *err);

/* Cancels the turn of the input that this agent's run is about: at once if it is driven here,
 * otherwise by hf_session_cancel_turn, which is repeated until the store has taken it. The run
 * returns when the turn has ended. A run that is stopped before that returns the store's error if
 * the cancel could not be recorded. false: the agent is in no run, or was stopped. */
HF_API bool hf_agent_cancel(struct hf_agent *agent);

/* The run or serve that the agent is in returns soon: turns that run may end within grace_ms, and
 * are then handed back. Nothing is lost. */
HF_API void hf_agent_stop(struct hf_agent *agent, hf_ms grace_ms);

/* Sessions that the agent's run or serve holds now. */
HF_API size_t hf_agent_held(const struct hf_agent *agent);

/* A tool's answer in one line for people: control characters become blanks, and text that is over
 * `room` bytes is cut at a whole character. */
HF_API void hf_tool_result_line(const struct hf_tool_result *result, size_t room,
                                char *ret_line);

/* A provider that needs no network: it streams an answer to the last message, and calls the tool
 * that a message names ("use TOOL {arguments}"). For trying things out, and for demonstrations.
 * word_ms: between two words; 0: none. HF_ENOMEM. */
HF_API HF_MUST_USE int hf_scripted_new(struct hf_loop *loop, hf_ms word_ms,
                                       struct hf_provider **ret_provider,
                                       struct hf_err *err);

#ifdef __cplusplus
}
#endif
#endif
