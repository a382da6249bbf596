/* Agents as the configuration has them, ready to run: for `chat` and `worker`. */
#ifndef HF_CLI_MODEL_AGENT_H
#define HF_CLI_MODEL_AGENT_H

#include <holdfast/agent.h>
#include <holdfast/config.h>

#include "cli/cli.h"

/* Which agents, and where they run.
 *   names     as in the configuration; none: all of it. Scripted: the name of the one agent, or
 *             none for "scripted"
 *   scripted  the model that needs no configuration; no file is read
 *   model     a [model.NAME] instead of the agents' own; NULL: theirs
 *   loop      outlives the agents, as the store of the cli does
 *   ttl_ms    of the leases of sessions; 0: 30 s */
struct cli_agents_request {
    const char *const *names;
    size_t count;
    bool scripted;
    const char *model;
    struct hf_loop *loop;
    struct hf_store *store;
    hf_ms ttl_ms;
    void *user;
    void (*heard)(void *user, const struct hf_worker_event *event);
};

struct cli_agents;

/* HF_ENOTFOUND: no configuration file, no such agent, a key or a prompt file that is missing.
 * HF_ENOTCONFIGURED: the file has no agent. HF_EINVAL. cli->err and cli->action say what to do. */
HF_MUST_USE int cli_agents_open(struct cli *cli, const struct cli_agents_request *request,
                                struct cli_agents **ret_agents);
void cli_agents_close(struct cli_agents *agents); /* NULL is fine */

size_t cli_agents_count(const struct cli_agents *agents);
/* All of them, for hf_agent_serve. */
struct hf_agent *const *cli_agents_all(const struct cli_agents *agents);
struct hf_agent *cli_agents_at(const struct cli_agents *agents, size_t i);
/* The name of its model. */
const char *cli_agents_model(const struct cli_agents *agents, size_t i);
/* What no check of its tools' arguments looks at, one line each; NULL past the last. */
const char *cli_agents_notice(const struct cli_agents *agents, size_t i, size_t number);
/* NULL: scripted. */
const struct hf_config *cli_agents_config(const struct cli_agents *agents);

#endif
