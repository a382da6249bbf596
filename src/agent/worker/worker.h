/* The inside of a worker: worker.c claims, renews and stops; seat.c drives one session;
 * store.c has the store calls, which run on threads; tools.c performs calls. */
#ifndef HF_AGENT_WORKER_WORKER_H
#define HF_AGENT_WORKER_WORKER_H

#include <holdfast/worker.h>

#include "agent/worker/threads.h"
#include "base/arena.h"
#include "base/err.h"

struct seat;

/* A tool call that is performed. */
struct seat_call {
    struct seat_call *next;
    struct seat *seat;
    struct hf_invocation *invocation;
    bool probe;
    int64_t attempt;
    char call_id[32];
    char tool[65]; /* copies: a turn that fails forgets its calls while they run */
};

/* One page of a session's history, or its claim. */
struct seat_page {
    struct seat_page *next;
    struct hf_session_answer *answer;
};

/* A toolset and surface that replaced those of the setup; they live as long as the worker. */
struct worker_surface {
    struct worker_surface *next;
    const struct hf_worker_agent *agent;
    struct hf_toolset *tools;
    struct hf_surface *surface;
};

/* One session that is held. */
struct seat {
    struct seat *next;
    struct hf_worker *worker;
    const struct hf_worker_agent *agent;
    struct hf_session_answer *claim; /* token, session, turn */
    struct seat_page *pages;
    struct hf_arena arena;
    const struct hf_record **records; /* the history, in order */
    uint64_t record_count;
    const struct hf_session_answer *loaded; /* the first page */
    struct hf_drive *drive;

    struct worker_job job; /* at most one at a time */
    bool job_out;
    struct hf_drive_action action; /* of the job */
    int code;                      /* of the job */
    struct hf_err err;
    struct hf_session_answer *blob;
    bool cancel_requested; /* a step was told so */
    struct hf_err refusal; /* why the turn cannot be driven here */

    struct hf_timer timer;
    uint64_t model_call;      /* the provider's number; 0: none is out */
    uint64_t model_id;        /* the effect's */
    struct seat_fetch *fetch; /* attachments of the call that is about to be made */
    size_t fetches;           /* with those whose call was given up */
    struct seat_call *calls;
    hf_ms valid_until; /* monotonic: the lease is certainly held until then */
    bool ended;        /* the drive said END */
    bool pumping;
};

struct hf_worker {
    struct hf_worker_config config;
    const struct hf_alloc *alloc;
    const struct hf_clock *clock;
    struct worker_threads *threads;
    struct worker_surface *surfaces;
    struct seat *seats;
    size_t seat_count;

    struct seat *claiming; /* a claim that is out */
    bool none_ready;       /* the last claim found nothing: wait for the timer */
    struct hf_timer poll;
    struct hf_timer heartbeat;
    struct worker_job renewal;
    bool renewing;
    struct hf_session_renewal *renewals; /* with copies of ids and tokens */
    size_t renewal_count;
    struct hf_arena renewal_arena;
    hf_ms renewal_sent; /* monotonic */
    int renewal_code;
    struct hf_timer listen;
    uint32_t bell; /* of the sessions, when the last renewal was sent */

    struct hf_timer grace;
    int depth;       /* of calls into the worker that are not over */
    bool some_ended; /* seats of which nothing is out any more */
    bool stopping;
    bool stop_said;
    struct hf_task stopped;
};

static inline hf_ms worker_mono(const struct hf_worker *worker)
{
    return worker->clock->mono_ms(worker->clock->user);
}

static inline hf_ms worker_wall(const struct hf_worker *worker)
{
    return worker->clock->wall_ms(worker->clock->user);
}

void worker_tell(struct hf_worker *worker, const struct seat *seat,
                 struct hf_worker_event event);
void worker_claim(struct hf_worker *worker); /* if it may hold one more */
/* Around each call from outside: by the loop, a model, a tool, the host. Such calls nest, since the
 * host may stop or cancel while it is told something. A seat that has ended is released when the
 * outermost call ends, so that no caller is left with one that is gone. */
void worker_enter(struct hf_worker *worker);
void worker_leave(struct hf_worker *worker);

/* seat.c. Whether the drive has ended and nothing is out. */
bool seat_is_over(const struct seat *seat);
/* Takes actions of the drive until there are none. */
void seat_pump(struct seat *seat);
void seat_feed(struct seat *seat, struct hf_drive_event event);
int seat_begin(struct seat *seat, struct hf_err *err); /* after claim and load */
/* Begins to drive; cancels first what has ended already, or was asked to be cancelled. */
void seat_drive(struct seat *seat);
/* A cancel that was asked for by way of the session. */
struct hf_drive_event worker_cancel(void);
void seat_free(struct seat *seat);
/* Hands a store call to the threads. */
void seat_start_job(struct seat *seat, const struct hf_drive_action *action);
struct seat *seat_new(struct hf_worker *worker);
/* Whether the lease is certainly held; otherwise the drive is told that it is lost. */
bool seat_still_held(struct seat *seat);

/* store.c: blocking calls, on a thread. */
void seat_run_claim(void *user);
void seat_run_action(void *user);
void worker_run_renewal(void *user);
bool seat_is_lost(int code); /* the store refused because the session is not held */

/* tools.c */
void seat_start_model(struct seat *seat, const struct hf_drive_action *action);
void seat_stop_model(struct seat *seat, uint64_t id);
/* The call of a request that is rendered; attachments as struct hf_model_call. */
void seat_call_model(struct seat *seat, struct hf_model_call *call);
void seat_refuse_model(struct seat *seat, uint64_t id, const struct hf_err *why);
void seat_start_tool(struct seat *seat, const struct hf_drive_call *call);
void seat_stop_tool(struct seat *seat, const struct hf_drive_call *call);
void seat_sync(struct seat *seat);

/* attach.c: reads the attachments of a request on a store thread, then makes the call. Takes the
 * render over. */
void seat_fetch_start(struct seat *seat, const struct hf_drive_action *action,
                      struct hf_render *render);
void seat_fetch_stop(struct seat *seat, uint64_t id);

#endif
