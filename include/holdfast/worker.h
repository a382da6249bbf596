/* A worker: takes sessions that are ready and drives their turns, on one loop.
 *
 * It claims sessions of its agents, up to a number at once, loads them, and lets a drive
 * (holdfast/sys/drive.h) decide what is stored and performed. Store calls run on threads of
 * the worker, model calls on the loop, blocking tools on the loop's executor. No turn has a
 * thread of its own. One timer renews all leases. A worker whose lease is lost stops its local
 * work and stores nothing; the next claim of the session continues from the last step.
 *
 * Threads: all calls and callbacks happen on the loop's thread.
 */
#ifndef HOLDFAST_WORKER_H
#define HOLDFAST_WORKER_H

#include <holdfast/provider.h>
#include <holdfast/session.h>
#include <holdfast/store.h>
#include <holdfast/sys/drive.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_worker;

/* An agent that the worker runs; it is the `agent` of sessions. All is lent for as long as the
 * worker lives.
 *   setup     protocol, surface, model (holdfast/turn.h)
 *   provider  on the worker's loop
 *   model     name for usage rows
 *   tools     NULL: none. The tools that the surface of the setup was made with
 *   sources   asked again before each iteration, if the setup has sync; NULL: never
 *   prompt    of the surface, for one that is made anew */
struct hf_worker_agent {
    const char *name;
    const struct hf_setup *setup;
    struct hf_provider *provider;
    const char *model;
    struct hf_toolset *tools;
    const struct hf_tool_source *sources;
    size_t source_count;
    struct hf_span prompt;
};

/* Events of a worker. Texts are lent until the callback returns. */
#define HF_WORKER_EVENTS(X)                                                              \
    X(CLAIMED, claimed)           /* a turn begins or continues; `step` says where */    \
    X(TEXT, text)                 /* text: more of the model's answer */                 \
    X(REASONING, reasoning)       /* text: more of its reasoning */                      \
    X(RESET, reset)               /* forget text since the last model call began */      \
    X(EMIT, emit)                 /* any other live event of the turn machine */         \
    X(TOOL_STARTED, tool_started) /* call */                                             \
    X(TOOL_ENDED,                                                                        \
      tool_ended)   /* call without args; result, or message: why there is none */       \
    X(ASKED, asked) /* a wait was opened: wait, wait_id */                               \
    X(AWAY, away)   /* the turn was put away until a wait is answered */                 \
    X(TURN_ENDED, turn_ended) /* the turn is committed; status, usage */                 \
    X(BACK, back)             /* handed back; code and message say why, 0: stopped */    \
    X(LOST, lost)             /* the lease is gone; nothing was stored */                \
    X(FAULT, fault)           /* code, message: a store call failed and is repeated */

#define X(name, word) HF_WORKER_##name,
enum hf_worker_event_kind { HF_WORKER_EVENTS(X) };
#undef X
/* Its word; "?" for a value that is none. */
HF_API const char *hf_worker_event_name(enum hf_worker_event_kind kind);

struct hf_worker_event {
    enum hf_worker_event_kind kind;
    const char *agent;      /* of the session */
    const char *session_id; /* NULL: of no session */
    const char *turn_id;
    int64_t step;
    const struct hf_emit *emit;
    const struct hf_drive_call *call;
    const struct hf_tool_result *result;
    struct hf_span text;
    const struct hf_wait_spec *wait; /* ASKED: an approval, a question, a deferred call */
    const char *wait_id;             /* for hf_wait_resolve */
    enum hf_status status;
    const struct hf_usage *usage;
    int code;
    const char *message;
};

/* How a worker is made. The loop and the store outlive it.
 *   turns          sessions held at once; 0: 64
 *   ttl_ms, renew_ms  of the leases; 0: 30,000 and 10,000. ttl_ms >= 3 * renew_ms
 *   store_threads  0: 4
 *   poll_ms        how long one claim waits for a session, on a thread of the store's; stopping
 *                  may take this long. 0: 200
 *   pid            ties leases to this process, so that its death is proven at once; 0: not */
struct hf_worker_config {
    size_t size;
    struct hf_loop *loop;
    struct hf_store *store;
    const struct hf_worker_agent *agents;
    size_t agent_count;
    const char *session_id;            /* only this session; NULL: any of the agents */
    const struct hf_effect_host *host; /* NULL: journal */
    int64_t turns;
    hf_ms ttl_ms;
    hf_ms renew_ms;
    int64_t store_threads;
    hf_ms poll_ms;
    int pid;
    int64_t tool_limit;   /* as struct hf_drive_config */
    int64_t tool_retries; /* likewise */
    hf_ms away_ms; /* likewise; at most ttl_ms. 0: 30,000, or ttl_ms if that is less */
    void *user;
    void (*heard)(void *user, const struct hf_worker_event *event); /* NULL: none */
};

/* A worker that begins to claim in the next step of the loop. HF_EINVAL names the field: no
 * agents, two of one name, an agent without setup or provider, ttl_ms below three renewals.
 * HF_ENOMEM, HF_EINTERNAL (no threads left). */
HF_API HF_MUST_USE int hf_worker_new(const struct hf_worker_config *config,
                                     struct hf_worker **ret_worker, struct hf_err *err);

/* No new claims. A turn that runs may end within grace_ms; then it is stopped and handed back.
 * Nothing terminal is written for it. `stopped` is called once, when the worker holds nothing. */
HF_API void hf_worker_stop(struct hf_worker *worker, hf_ms grace_ms,
                           const struct hf_task *stopped);

/* Cancels the turn of a session that this worker drives: its calls are stopped, and the turn ends
 * as cancelled, with the facts that are known. The end of the turn is reported as any other.
 * HF_ENOTFOUND: the worker does not hold the session. */
HF_API int hf_worker_cancel(struct hf_worker *worker, const char *session_id,
                            const struct hf_evidence *evidence);

/* Sessions that the worker holds. */
HF_API size_t hf_worker_held(const struct hf_worker *worker);

/* Releases a worker, after `stopped` was called. NULL is fine. Not from inside a callback. */
HF_API void hf_worker_free(struct hf_worker *worker);

#ifdef __cplusplus
}
#endif
#endif
