/* Making agents, and the worker that a run or a serve has. */
#include "agent/agent/agent.h"

#include <string.h>

#include "base/err.h"
#include "base/sized.h"
#include "base/text.h"

#define NAME_MAX_BYTES 191
#define TURN_BUDGET 50

/* ---- making ------------------------------------------------------------------------ */

static int check_config(const struct hf_agent_config *config, struct hf_err *err)
{
    int rc = hf_sized_check(config->size, sizeof(*config), sizeof(*config), err);
    if (rc == 0 && (!config->loop || !config->store))
        rc = hf_fail(err, HF_EINVAL, config->loop ? "store" : "loop",
                     "an agent needs a loop and a store");
    return rc ? rc : hf_check_key(config->name, NAME_MAX_BYTES, "name", err);
}

static int copy_texts(struct hf_agent *agent, struct hf_err *err)
{
    struct hf_agent_config *config = &agent->config;
    config->name = hf_arena_text(&agent->arena, config->name);
    config->prompt.at = hf_arena_copy(&agent->arena, config->prompt.at,
                                      config->prompt.len);
    return config->name && config->prompt.at ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

static int make_tools(struct hf_agent *agent, struct hf_err *err)
{
    const struct hf_agent_config *config = &agent->config;
    int rc = hf_sized_array(config->sources, config->source_count, "sources", err);
    if (rc == 0)
        rc = hf_toolset_new(NULL, &agent->tools, err);
    for (size_t i = 0; rc == 0 && i < config->source_count; i++)
        rc = hf_toolset_ask(agent->tools, &config->sources[i], err);
    if (rc == 0)
        rc = hf_surface_new(NULL, config->prompt, hf_toolset_json(agent->tools),
                            &agent->surface, err);
    return rc;
}

static int make_setup(struct hf_agent *agent, struct hf_err *err)
{
    const struct hf_agent_config *config = &agent->config;
    struct hf_turn_config turn = { .size = sizeof(turn),
                                   .protocol = config->protocol,
                                   .surface = agent->surface,
                                   .turn_budget = config->turn_budget,
                                   .no_progress_budget = config->no_progress_budget,
                                   .sync = config->sync,
                                   .retry = config->retry };
    if (!config->model)
        return 0;
    if (!turn.protocol)
        turn.protocol = hf_protocol_standard();
    if (turn.turn_budget == 0)
        turn.turn_budget = TURN_BUDGET;
    hf_model_apply(config->model, &turn);
    int rc = hf_setup_new(&turn, &agent->setup, err);
    agent->for_worker =
        (struct hf_worker_agent){ .name = config->name,
                                  .setup = agent->setup,
                                  .provider = hf_model_provider(config->model),
                                  .model = hf_arena_text(&agent->arena, turn.model),
                                  .tools = agent->tools,
                                  .sources = config->sync ? config->sources : NULL,
                                  .source_count = config->sync ? config->source_count : 0,
                                  .prompt = config->prompt };
    if (rc == 0 && !agent->for_worker.model)
        rc = hf_fail_plain(err, HF_ENOMEM);
    return rc;
}

int hf_agent_new(const struct hf_agent_config *config, struct hf_agent **ret_agent,
                 struct hf_err *err)
{
    struct hf_arena arena;
    int rc = check_config(config, err);
    if (rc)
        return rc;
    hf_arena_init_small(&arena, hf_loop_alloc(config->loop), 1024, 16384);
    struct hf_agent *agent = hf_arena_new(&arena, struct hf_agent);
    if (!agent)
        return hf_fail_plain(err, HF_ENOMEM);
    agent->arena = arena;
    agent->config = *config;
    rc = copy_texts(agent, err);
    if (rc == 0)
        rc = make_tools(agent, err);
    if (rc == 0)
        rc = make_setup(agent, err);
    if (rc)
        hf_agent_free(agent);
    else
        *ret_agent = agent;
    return rc;
}

void hf_agent_free(struct hf_agent *agent)
{
    if (!agent)
        return;
    hf_assert(!agent->work); /* not from inside a run */
    hf_setup_free(agent->setup);
    hf_surface_free(agent->surface);
    hf_toolset_unref(agent->tools);
    struct hf_arena arena = agent->arena;
    hf_arena_fini(&arena);
}

const char *hf_agent_name(const struct hf_agent *agent)
{
    return agent->config.name;
}

/* ---- a worker on the agents' loop --------------------------------------------------- */

/* Events go to the agent of their session; those of no session to the first one. */
static void on_heard(void *user, const struct hf_worker_event *event)
{
    struct agent_work *work = user;
    const struct hf_agent *agent = work->agents[0];
    for (size_t i = 1; event->agent && i < work->count; i++)
        if (hf_same(event->agent, work->agents[i]->config.name))
            agent = work->agents[i];
    if (agent->config.heard)
        agent->config.heard(agent->config.user, event);
    if (work->heard)
        work->heard(work->user, event);
}

static int check_agents(const struct agent_work *work, struct hf_err *err)
{
    const struct hf_agent_config *first = &work->agents[0]->config;
    for (size_t i = 0; i < work->count; i++) {
        const struct hf_agent *agent = work->agents[i];
        if (agent->work)
            return hf_fail(err, HF_EBUSY, "agent", "agent %.100s runs already",
                           agent->config.name);
        if (!agent->setup)
            return hf_fail(err, HF_ENOTCONFIGURED, "model", "agent %.100s has no model",
                           agent->config.name);
        if (agent->config.loop != first->loop || agent->config.store != first->store)
            return hf_fail(err, HF_EINVAL, "agents",
                           "agents that serve together share a loop and a store");
    }
    return 0;
}

int agent_work_begin(struct agent_work *work, struct hf_arena *arena,
                     struct hf_worker_config config, struct hf_err *err)
{
    const struct hf_agent_config *first = &work->agents[0]->config;
    int rc = check_agents(work, err);
    if (rc)
        return rc;
    struct hf_worker_agent *lent = hf_arena_array(arena, work->count, sizeof(*lent));
    if (!lent)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; i < work->count; i++)
        lent[i] = work->agents[i]->for_worker;
    config.size = sizeof(config);
    config.loop = first->loop;
    config.store = first->store;
    config.agents = lent;
    config.agent_count = work->count;
    config.host = first->host;
    config.ttl_ms = first->ttl_ms;
    config.renew_ms = first->renew_ms;
    config.poll_ms = first->poll_ms;
    config.pid = first->pid;
    config.tool_limit = first->tool_limit;
    config.tool_retries = first->tool_retries;
    config.user = work;
    config.heard = on_heard;
    rc = hf_worker_new(&config, &work->worker, err);
    for (size_t i = 0; rc == 0 && i < work->count; i++)
        work->agents[i]->work = work;
    return rc;
}

static void on_stopped(void *user)
{
    struct agent_work *work = user;
    work->stopped = true;
}

void agent_work_stop(struct agent_work *work, hf_ms grace_ms)
{
    struct hf_task stopped = { work, on_stopped };
    if (work->stopped)
        return;
    work->stopping = true; /* again: with another grace */
    hf_worker_stop(work->worker, grace_ms, &stopped);
}

void agent_work_end(struct agent_work *work)
{
    struct hf_loop *loop = work->agents[0]->config.loop;
    while (!work->stopped)
        (void)hf_loop_step(loop, -1); /* the worker is on it: something is always due */
    /* Before the worker is freed: tasks of the host on the loop may ask for it in the last step. */
    for (size_t i = 0; i < work->count; i++)
        work->agents[i]->work = NULL;
    hf_worker_free(work->worker);
    work->worker = NULL;
    (void)hf_loop_step(loop, 0); /* the last message of its threads releases them */
}

int hf_agent_serve(struct hf_agent *const *agents, size_t count, int64_t turns,
                   struct hf_err *err)
{
    struct agent_work work = { .agents = agents, .count = count };
    struct hf_worker_config config = { .turns = turns };
    struct hf_arena arena;
    if (count == 0 || !agents)
        return hf_fail(err, HF_EINVAL, "agents", "name at least one agent");
    hf_arena_init_small(&arena, hf_loop_alloc(agents[0]->config.loop), 512, 4096);
    int rc = agent_work_begin(&work, &arena, config, err);
    if (rc == 0)
        agent_work_end(&work);
    hf_arena_fini(&arena);
    return rc;
}

void hf_agent_stop(struct hf_agent *agent, hf_ms grace_ms)
{
    if (agent->work)
        agent_work_stop(agent->work, grace_ms);
}

size_t hf_agent_held(const struct hf_agent *agent)
{
    return agent->work ? hf_worker_held(agent->work->worker) : 0;
}
