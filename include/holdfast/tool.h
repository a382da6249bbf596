/* Tools: functions of the host that a model may call.
 *
 * A tool declares its name, a JSON Schema of its arguments, a time and an output limit, and
 * its recovery class: what may be done about a call that was started by a worker that is
 * gone. The class is required. Every call has a key that stays the same when the call is
 * performed again, so that a service behind the tool can recognise it.
 *
 * A tool blocks (its function runs on a thread of the loop's executor), or it is asynchronous
 * (its function runs on the loop's thread, returns at once, and the call is ended later by
 * hf_invocation_end, from any thread).
 *
 * Threads: a toolset never changes after its tools were added, and may be shared. What a call
 * offers is used by the one function that performs it, and after an asynchronous start by
 * the one thread that ends it.
 */
#ifndef HOLDFAST_TOOL_H
#define HOLDFAST_TOOL_H

#include <holdfast/effect.h>
#include <holdfast/loop.h>
#include <holdfast/turn_types.h>
#include <holdfast/wait.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_invocation;

/* Whether a call that was started had its effect. */
enum hf_probe { HF_PROBE_CANNOT_TELL, HF_PROBE_HAPPENED, HF_PROBE_NOT_HAPPENED };

/* How long a wait lasts, and what happens then (holdfast/wait.h). Zero: any actor may answer,
 * within the time of the ledger's policy.
 *   at_deadline  NONE: deny, of an approval; result, of a deferred call
 *   escalate_ms  0: never */
struct hf_tool_wait_terms {
    const char *answerer;
    hf_ms within_ms;
    enum hf_wait_policy at_deadline;
    const char *next_answerer;
    hf_ms next_ms;
    enum hf_wait_policy next_policy;
    hf_ms escalate_ms;
    const char *escalate;
};

/* Which calls of a tool need an approval before they run.
 *   rule      NULL or "never"; "always"; or a JSON object of JSON pointers into the arguments,
 *             each with a JSON Schema: {"/amount":{"minimum":100}}. A call needs an approval if
 *             each of the values fits its schema; a value that is missing counts as one that fits
 *   question  for the person that answers; NULL: "May TOOL be called?"
 * The answer may be an approval, one with other arguments that fit the tool's schema, or a denial
 * with a reason. It is shown to the model with its actor. */
struct hf_approval {
    const char *rule;
    const char *question;
    struct hf_tool_wait_terms terms;
};

/* One tool.
 *   name          1 to 64 of [A-Za-z0-9_-]
 *   description   for the model; NULL: none
 *   schema        JSON Schema of the arguments; empty: any object. A $ref within it is
 *                 followed; keywords that the checker does not know are passed over, and
 *                 hf_toolset_notice names them
 *   recovery      required
 *   timeout_ms    0: 60,000
 *   output_bytes  most of the answer that is kept; 0: 16,384. More is cut, and the text says so
 *   run           performs a call
 *   asynchronous  run is called on the loop's thread and returns at once; hf_invocation_end follows
 *   stop          asynchronous tools: the call is out of time or given up; called on the
 *                 loop's thread, at most once. NULL: nothing to stop. hf_invocation_end must follow
 *   probe         required for the class probe and refused for others: tells whether a call
 *                 with this key happened. It runs on the executor. When it happened, the
 *                 function sets the answer as run does
 *   approval      which calls need one; zero: none
 * Texts are copied; user and the functions must outlive the toolset. */
struct hf_tool {
    size_t size;
    const char *name;
    const char *description;
    struct hf_span schema;
    enum hf_recovery recovery;
    hf_ms timeout_ms;
    int64_t output_bytes;
    void *user;
    void (*run)(void *user, struct hf_invocation *call);
    bool asynchronous;
    void (*stop)(void *user, struct hf_invocation *call);
    enum hf_probe (*probe)(void *user, struct hf_invocation *call);
    struct hf_approval approval;
};

struct hf_toolset;

/* Where tools come from. `list` adds the tools that the source has at the moment with
 * hf_toolset_add; it must not block. The source outlives the toolsets that asked it. */
struct hf_tool_source {
    void *user;
    int (*list)(void *user, struct hf_toolset *into, struct hf_err *err);
};

/* An empty toolset with one reference. alloc NULL: the system's. HF_ENOMEM. */
HF_API HF_MUST_USE int hf_toolset_new(const struct hf_alloc *alloc,
                                      struct hf_toolset **ret_tools, struct hf_err *err);
/* One reference more, or one less; the last one releases it. NULL is fine for unref. From any
 * thread. */
HF_API struct hf_toolset *hf_toolset_ref(struct hf_toolset *tools);
HF_API void hf_toolset_unref(struct hf_toolset *tools);

/* Adds a tool. HF_EINVAL names the field: a name that is taken or not well formed, no class, no
 * run, a schema that is none. HF_ETOOBIG, HF_ENOMEM. A tool that is refused is not added. */
HF_API HF_MUST_USE int hf_toolset_add(struct hf_toolset *tools,
                                      const struct hf_tool *tool, struct hf_err *err);
/* Adds all tools of a source. On failure some may have been added. The errors of the source, and
 * those of hf_toolset_add. */
HF_API HF_MUST_USE int hf_toolset_ask(struct hf_toolset *tools,
                                      const struct hf_tool_source *source,
                                      struct hf_err *err);

/* The tool of that name, or NULL. It lives as long as the toolset. */
HF_API const struct hf_tool *hf_toolset_find(const struct hf_toolset *tools,
                                             const char *name);

/* The tools as JSON, in the order in which they were added, as hf_surface_new takes them. The
 * text lives until the next hf_toolset_add. */
HF_API struct hf_span hf_toolset_json(const struct hf_toolset *tools);

/* The i-th thing that no schema check looks at, with the tool's name; NULL past the last. */
HF_API const char *hf_toolset_notice(const struct hf_toolset *tools, size_t i);

/* Whether a call may run: HF_ENOTFOUND for a tool that is not in the set, HF_EINVAL for
 * arguments that are no JSON or do not fit, with their place in the message. HF_ETOOBIG,
 * HF_ENOMEM. */
HF_API HF_MUST_USE int hf_toolset_check(const struct hf_toolset *tools, const char *name,
                                        struct hf_span args, struct hf_err *err);

/* Whether a call that may run needs an approval first. HF_ENOTFOUND for a tool that is not in the
 * set, HF_EINVAL for arguments that are no JSON, HF_ENOMEM. */
HF_API HF_MUST_USE int hf_toolset_approval(const struct hf_toolset *tools,
                                           const char *name, struct hf_span args,
                                           bool *ret_needed, struct hf_err *err);

/* Whose call it is. Together these name the call for ever. */
struct hf_invocation_key {
    const char *session_id;
    const char *turn_id;
    uint64_t effect;
    const char *call_id;
    int64_t attempt;
    int64_t fence; /* of the session's claim; no part of the name. 0: not known */
};

/* Facts about a call, for the function that performs it. Texts live as long as the call. */
HF_API const struct hf_invocation_key *hf_invocation_key(
    const struct hf_invocation *call);
/* The key as one text, "SESSION/TURN/EFFECT/CALL/ATTEMPT": the idempotency key for a service.
 * It is the same when the call is performed again. */
HF_API const char *hf_invocation_key_text(const struct hf_invocation *call);
HF_API struct hf_span hf_invocation_args(const struct hf_invocation *call); /* JSON */
/* The loop that the call was started on: for timers and watches of an asynchronous tool. */
HF_API struct hf_loop *hf_invocation_loop(const struct hf_invocation *call);
/* Milliseconds until the call is out of time, 0 when it is. From any thread. */
HF_API hf_ms hf_invocation_left_ms(const struct hf_invocation *call);
/* The call was given up or is out of time: end soon. From any thread. */
HF_API bool hf_invocation_stopped(const struct hf_invocation *call);

/* The answer; the last one counts. Without one the call fails with the code "no_answer"
 * where its class is safe or keyed, and is unknown where it is probe or ask.
 *   value    JSON
 *   text     UTF-8; the model sees it as it is
 *   fail     the call had no effect, or its effect is known to have failed. retry SAFE: it may
 *            be performed again, after after_ms
 *   unknown  whether it happened is not known
 * Data is copied. HF_EINVAL, HF_ETOOBIG, HF_ENOMEM: the answer is as it was. */
HF_API HF_MUST_USE int hf_invocation_value(struct hf_invocation *call,
                                           struct hf_span json);
HF_API HF_MUST_USE int hf_invocation_text(struct hf_invocation *call,
                                          struct hf_span text);
HF_API HF_MUST_USE int hf_invocation_fail(struct hf_invocation *call,
                                          const struct hf_failure *failure);
HF_API HF_MUST_USE int hf_invocation_unknown(struct hf_invocation *call, const char *why);

/* A deferred call: `run` starts something outside, takes the key under which its end can be
 * reported (hf_wait_resolve), and defers instead of answering. The turn is put away, and no worker
 * is needed until the answer comes. An answer that was set before is forgotten.
 *
 * The key is the same each time the call is performed. From the thread that performs the call; it
 * may ask the store. HF_EINVAL where the host has no waits, and the store's codes. */
HF_API HF_MUST_USE int hf_invocation_wait_key(struct hf_invocation *call,
                                              char ret_key[HF_WAIT_KEY_TEXT],
                                              struct hf_err *err);
/* question: the event that is awaited, for people; NULL: "TOOL has not ended yet". terms NULL:
 * zero. Data is copied. HF_ENOMEM. */
HF_API HF_MUST_USE int hf_invocation_defer(struct hf_invocation *call,
                                           const char *question,
                                           const struct hf_tool_wait_terms *terms);

/* Ends an asynchronous call, once. The call must not be used afterwards. From any thread. */
HF_API void hf_invocation_end(struct hf_invocation *call);

/* A call that was deferred. */
struct hf_deferred {
    const char *question;
    struct hf_tool_wait_terms terms;
};

/* For those who run tools: one call, and what came of it. */
struct hf_invocation_result {
    enum hf_probe probe; /* of a probe */
    bool timed_out;      /* the time was over before the call ended */
    bool stopped;        /* it was given up before it ended */
    const struct hf_tool_result
        *result; /* NULL: timed_out, stopped, deferred, or no answer of a probe */
    const struct hf_deferred *deferred;
};

/* Makes the key of a call's wait. It is called on threads of the executor, perhaps after the call
 * was reported; user lives as long as the loop. */
struct hf_tool_wait_keys {
    void *user;
    int (*make)(void *user, const struct hf_invocation_key *call,
                char ret_key[HF_WAIT_KEY_TEXT], struct hf_err *err);
};

struct hf_invocation_request {
    size_t size;
    struct hf_toolset *tools; /* the call holds a reference */
    const char *tool;
    struct hf_invocation_key key;
    struct hf_span args;
    bool probe;                    /* ask whether it happened, instead of performing it */
    struct hf_tool_wait_keys keys; /* make NULL: calls cannot be deferred */
    void *user;
    /* Called once, on the loop's thread, never before hf_invocation_start returns; the call
     * must not be used afterwards. The result is lent until it returns. A tool that overstays
     * its time may still run then: its answer is dropped. */
    void (*done)(void *user, const struct hf_invocation_result *result);
};

/* Begins a call. HF_ENOTFOUND for a tool that is not in the set, HF_EBUSY when the executor
 * takes no more, HF_ENOMEM: nothing was called. */
HF_API HF_MUST_USE int hf_invocation_start(struct hf_loop *loop,
                                           const struct hf_invocation_request *request,
                                           struct hf_invocation **ret_call,
                                           struct hf_err *err);
/* Stops a call: hf_invocation_stopped becomes true, an asynchronous tool's stop is called, and done
 * comes in the next step of the loop. On the loop's thread, before done. */
HF_API void hf_invocation_stop(struct hf_invocation *call);

#ifdef __cplusplus
}
#endif
#endif
