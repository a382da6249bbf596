/* The inside of an agent: agent.c makes one; run.c drives sessions with it; report.c says what
 * became of a turn; scripted.c is a provider without a network. */
#ifndef HF_AGENT_AGENT_AGENT_H
#define HF_AGENT_AGENT_AGENT_H

#include <holdfast/agent.h>

#include "base/arena.h"

struct hf_agent {
    struct hf_arena arena; /* the agent is in it */
    struct hf_agent_config config;
    struct hf_toolset *tools;
    struct hf_surface *surface;
    struct hf_setup *setup;            /* NULL: no model */
    struct hf_worker_agent for_worker; /* lends all of the above */
    struct agent_work *work;           /* the run or serve that it is in; NULL: none */
};

/* A run or a serve: one worker on the agents' loop. */
struct agent_work {
    struct hf_agent *const *agents;
    size_t count;
    struct hf_worker *worker;
    bool stopping;
    bool stopped; /* the worker holds nothing any more */
    void *user;
    /* After the agent's own callback; NULL: none. */
    void (*heard)(void *user, const struct hf_worker_event *event);
};

/* Begins it; the worker's agents are in the arena. `config` has what differs: session_id, turns.
 * HF_EBUSY, HF_ENOTCONFIGURED, HF_EINVAL, HF_ENOMEM. */
HF_MUST_USE int agent_work_begin(struct agent_work *work, struct hf_arena *arena,
                                 struct hf_worker_config config, struct hf_err *err);
void agent_work_stop(struct agent_work *work, hf_ms grace_ms);
/* Steps the loop until the worker has stopped, and releases it. */
void agent_work_end(struct agent_work *work);

/* The state of a run. */
struct agent_ran {
    const char *session_id;
    const char *work_id; /* NULL: nothing was sent */
    const char *turn_id; /* that ended here last; NULL: none did */
    bool ended;
};
HF_MUST_USE int agent_report_run(struct hf_store *store, const struct agent_ran *ran,
                                 struct hf_agent_report **ret_report, struct hf_err *err);

#endif
