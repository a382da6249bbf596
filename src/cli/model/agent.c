/* Agents made from the configuration: providers, models, tools and prompts put together. */
#include "cli/model/agent.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_walk.h"
#include "base/text.h"
#include "cli/model/config.h"

#define SCRIPTED_WORD_MS 30

/* A provider that one or more agents use. */
struct opened {
    struct opened *next;
    const char *name;
    struct hf_provider *provider;
};

struct one {
    struct hf_agent *agent;
    struct hf_model *model;
    const char *model_name;
    struct hf_tools *tools;
    struct hf_toolset *listed; /* the same tools, for their notices; NULL: scripted */
    struct hf_tool_source source;
};

struct cli_agents {
    struct cli *cli;
    struct cli_agents_request request;
    struct cli_place place;
    const char *own_locks; /* a folder that is removed at the end; NULL: none */
    struct hf_config *config;
    const char *folder; /* of the configuration */
    struct opened *providers;
    struct one *ones;
    struct hf_agent **all;
    size_t count;
};

/* ---- the scripted agent ----------------------------------------------------------------- */

/* A tool of the scripted agent: it takes its time, so that one can kill the worker meanwhile. */
static void wait_some(void *user, struct hf_invocation *call)
{
    int64_t seconds = 3;
    struct hf_walk walk;
    (void)user;
    hf_walk_begin(&walk, hf_invocation_args(call));
    if (hf_walk_enter(&walk, '{'))
        while (hf_walk_more(&walk)) {
            bool it = hf_walk_is(hf_walk_key(&walk), "seconds");
            struct hf_span value = hf_walk_value(&walk);
            if (it)
                (void)hf_walk_i64(value, &seconds); /* the schema has checked it */
        }
    for (int64_t left = seconds * 20; left > 0 && !hf_invocation_stopped(call); left--)
        (void)poll(NULL, 0, 50);
    int rc = hf_invocation_text(call, (struct hf_span){ "the time is over", 16 });
    (void)rc; /* without memory the call has no answer, and the model is told */
}

/* The other one needs an approval from an amount on, so that one can see what an approval is. */
static void pretend_to_pay(void *user, struct hf_invocation *call)
{
    static const char text[] = "paid, but only in play";
    (void)user;
    int rc = hf_invocation_text(call, (struct hf_span){ text, sizeof(text) - 1 });
    (void)rc; /* as above */
}

static int list_scripted(void *user, struct hf_toolset *into, struct hf_err *err)
{
    static const char seconds[] =
        "{\"type\":\"object\",\"properties\":{\"seconds\":{\"type\":\"integer\","
        "\"minimum\":0,\"maximum\":50}},\"additionalProperties\":false}";
    static const char amount[] =
        "{\"type\":\"object\",\"properties\":{\"amount\":{\"type\":\"integer\","
        "\"minimum\":1}},\"required\":[\"amount\"],\"additionalProperties\":false}";
    struct hf_tool wait = { .size = sizeof(wait),
                            .name = "wait",
                            .description = "Waits for some seconds.",
                            .schema = { seconds, sizeof(seconds) - 1 },
                            .recovery = HF_RECOVERY_SAFE,
                            .run = wait_some };
    struct hf_tool pay = { .size = sizeof(pay),
                           .name = "pay",
                           .description = "Pretends to pay; from 100 on it asks.",
                           .schema = { amount, sizeof(amount) - 1 },
                           .recovery = HF_RECOVERY_SAFE,
                           .run = pretend_to_pay,
                           .approval = { .rule = "{\"/amount\":{\"minimum\":100}}",
                                         .question = "May this be paid?" } };
    (void)user;
    int rc = hf_toolset_add(into, &wait, err);
    return rc ? rc : hf_toolset_add(into, &pay, err);
}

static int open_scripted(struct cli_agents *agents, struct one *one,
                         struct hf_model_config *model)
{
    struct cli *cli = agents->cli;
    struct opened *opened = hf_arena_new(&cli->arena, struct opened);
    if (!opened)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    int rc = hf_scripted_new(agents->request.loop, SCRIPTED_WORD_MS, &opened->provider,
                             &cli->err);
    if (rc)
        return rc;
    opened->name = "scripted";
    agents->providers = opened;
    one->source = (struct hf_tool_source){ NULL, list_scripted };
    one->model_name = "scripted";
    *model = (struct hf_model_config){ .size = sizeof(*model),
                                       .provider = opened->provider,
                                       .id = "scripted",
                                       .context_tokens = 200000,
                                       .output_tokens = 4000 };
    return 0;
}

/* ---- what the configuration names ---------------------------------------------------------- */

/* Where the missing key of a provider should have come from. */
static int say_key(struct cli_agents *agents, const char *name)
{
    struct cli *cli = agents->cli;
    struct hf_config_shown shown;
    struct hf_err why = cli->err;
    for (size_t i = 0; hf_config_show(agents->config, i, &shown); i++)
        if (hf_same(shown.name, name))
            (void)hf_fail(&cli->err, HF_ENOTFOUND, NULL,
                          "the key of provider %.60s (%.100s) is missing: %s", name,
                          shown.key, why.message);
    cli->action =
        "set it; `holdfast provider list` shows the source of each provider's key";
    return HF_ENOTFOUND;
}

/* The provider of that name, which is opened once. */
static int open_provider(struct cli_agents *agents, const char *name,
                         struct hf_provider **ret_provider)
{
    struct cli *cli = agents->cli;
    struct hf_http_config http;
    struct hf_endpoint endpoint;
    struct hf_transport *transport = NULL;
    for (struct opened *at = agents->providers; at; at = at->next)
        if (hf_same(at->name, name)) {
            *ret_provider = at->provider;
            return 0;
        }
    struct opened *opened = hf_arena_new(&cli->arena, struct opened);
    if (!opened)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    int rc = hf_config_endpoint(agents->config, name, &http, &endpoint, &cli->err);
    if (rc == HF_ENOTFOUND)
        rc = say_key(agents, name);
    if (rc == 0)
        rc = hf_http_new(agents->request.loop, &http, &transport, &cli->err);
    if (rc == 0)
        rc = hf_endpoint_new(agents->request.loop, &endpoint, transport,
                             &opened->provider, &cli->err);
    if (rc)
        return rc;
    opened->name = name;
    opened->next = agents->providers;
    agents->providers = opened;
    *ret_provider = opened->provider;
    return 0;
}

static int open_model(struct cli_agents *agents, struct one *one, const char *name,
                      struct hf_model_config *model)
{
    const char *provider = NULL;
    int rc = hf_config_model(agents->config, name, model, &provider, &agents->cli->err);
    one->model_name = name;
    return rc ? rc : open_provider(agents, provider, &model->provider);
}

static int open_tools(struct cli_agents *agents, struct one *one,
                      const struct hf_agent_entry *entry)
{
    const struct cli_config_place place = { agents->config, agents->folder,
                                            agents->place.locks };
    int rc = cli_config_tools(agents->cli, &place, entry, &one->tools);
    if (rc == 0)
        rc = cli_config_toolset(agents->cli, one->tools, &one->listed);
    if (rc == 0)
        one->source = hf_tools_source(one->tools);
    return rc;
}

/* ---- one agent ----------------------------------------------------------------------------- */

static int open_one(struct cli_agents *agents, struct one *one, const char *name)
{
    struct cli *cli = agents->cli;
    const struct cli_agents_request *request = &agents->request;
    struct hf_agent_entry entry = { .name = name };
    struct hf_model_config model = { 0 };
    struct hf_agent_config config = { .size = sizeof(config),
                                      .loop = request->loop,
                                      .store = request->store,
                                      .name = name,
                                      .sources = &one->source,
                                      .source_count = 1,
                                      .pid = (int)getpid(),
                                      .ttl_ms = request->ttl_ms,
                                      .user = request->user,
                                      .heard = request->heard };
    int rc = 0;
    if (request->scripted)
        rc = open_scripted(agents, one, &model);
    else {
        rc = hf_config_agent(agents->config, name, &entry, &cli->err);
        if (rc == 0)
            rc = open_model(agents, one, request->model ? request->model : entry.model,
                            &model);
        if (rc == 0)
            rc = cli_config_prompt(cli, agents->folder, &entry, &config.prompt);
        if (rc == 0)
            rc = open_tools(agents, one, &entry);
    }
    if (rc == 0)
        rc = hf_model_new(&model, &one->model, &cli->err);
    config.model = one->model;
    config.turn_budget = entry.turn_budget;
    config.no_progress_budget = entry.no_progress_budget;
    return rc ? rc : hf_agent_new(&config, &one->agent, &cli->err);
}

/* ---- all ------------------------------------------------------------------------------------ */

/* The configuration, its folder and the names of the agents. */
static int read_config(struct cli_agents *agents)
{
    struct cli *cli = agents->cli;
    const char *path = NULL;
    int rc = cli_config_read(cli, &path, &agents->config);
    if (rc == HF_ENOTFOUND)
        cli->action = "write one with `holdfast config init`, or try --scripted, which "
                      "needs none";
    if (rc)
        return rc;
    rc = cli_config_folder(cli, path, &agents->folder);
    if (rc || agents->count > 0)
        return rc;
    while (hf_config_name(agents->config, HF_CONFIG_AGENT, agents->count))
        agents->count++;
    if (agents->count > 0)
        return 0;
    cli->action = "add one: `holdfast config check` shows an example";
    return hf_fail(&cli->err, HF_ENOTCONFIGURED, "agent", "%.150s has no [agent.NAME]",
                   path);
}

static const char *name_of(const struct cli_agents *agents, size_t i)
{
    if (i < agents->request.count)
        return agents->request.names[i];
    return agents->config ? hf_config_name(agents->config, HF_CONFIG_AGENT, i)
                          : "scripted";
}

/* Where the processes of tools hold their locks: with the store, or for a store in memory, which
 * no other process can share, in a folder that ends with this process. */
static int find_locks(struct cli_agents *agents)
{
    struct cli *cli = agents->cli;
    const char *store = cli_store_named(cli);
    if (!hf_same(store, "sqlite::memory:") && !hf_same(store, ":memory:"))
        return cli_store_place(cli, &agents->place);
    char *folder = hf_arena_text(&cli->arena, "/tmp/holdfast-XXXXXX");
    if (!folder)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    if (!mkdtemp(folder))
        return hf_fail(&cli->err, HF_EINTERNAL, NULL, "cannot make a folder in /tmp: %s",
                       strerror(errno));
    agents->place.locks = agents->own_locks = folder;
    return 0;
}

static void remove_locks(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry = NULL;
    while (dir && (entry = readdir(dir)))
        (void)unlinkat(dirfd(dir), entry->d_name, 0); /* not "." and ".." */
    if (dir)
        (void)closedir(dir); /* only read */
    (void)rmdir(folder);     /* what is left in /tmp harms nothing */
}

static int open_all(struct cli_agents *agents)
{
    struct cli *cli = agents->cli;
    int rc = 0;
    if (agents->request.scripted)
        agents->count = 1;
    else
        rc = read_config(agents);
    if (rc == 0 && !agents->request.scripted)
        rc = find_locks(agents);
    if (rc)
        return rc;
    agents->ones = hf_arena_array(&cli->arena, agents->count, sizeof(*agents->ones));
    agents->all = hf_arena_array(&cli->arena, agents->count, sizeof(struct hf_agent *));
    if (!agents->ones || !agents->all)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    for (size_t i = 0; rc == 0 && i < agents->count; i++) {
        rc = open_one(agents, &agents->ones[i], name_of(agents, i));
        agents->all[i] = agents->ones[i].agent;
    }
    return rc;
}

int cli_agents_open(struct cli *cli, const struct cli_agents_request *request,
                    struct cli_agents **ret_agents)
{
    struct cli_agents *agents = hf_arena_new(&cli->arena, struct cli_agents);
    if (!agents)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    agents->cli = cli;
    agents->request = *request;
    agents->count = request->count;
    int rc = open_all(agents);
    if (rc)
        cli_agents_close(agents);
    else
        *ret_agents = agents;
    return rc;
}

void cli_agents_close(struct cli_agents *agents)
{
    if (!agents)
        return;
    for (size_t i = 0; agents->ones && i < agents->count; i++) {
        struct one *one = &agents->ones[i];
        hf_agent_free(one->agent);
        hf_model_free(one->model);
        while (one->tools && hf_tools_running(one->tools) > 0 &&
               hf_loop_step(agents->request.loop, -1))
            ; /* they were told to end, and are killed when they do not */
        hf_toolset_unref(one->listed);
        hf_tools_free(one->tools);
    }
    for (struct opened *at = agents->providers; at; at = at->next)
        hf_provider_free(at->provider);
    if (agents->own_locks)
        remove_locks(agents->own_locks);
    hf_config_free(agents->config);
}

size_t cli_agents_count(const struct cli_agents *agents)
{
    return agents->count;
}

struct hf_agent *const *cli_agents_all(const struct cli_agents *agents)
{
    return agents->all;
}

struct hf_agent *cli_agents_at(const struct cli_agents *agents, size_t i)
{
    return agents->all[i];
}

const char *cli_agents_model(const struct cli_agents *agents, size_t i)
{
    return agents->ones[i].model_name;
}

const char *cli_agents_notice(const struct cli_agents *agents, size_t i, size_t number)
{
    const struct hf_toolset *listed = agents->ones[i].listed;
    return listed ? hf_toolset_notice(listed, number) : NULL;
}

const struct hf_config *cli_agents_config(const struct cli_agents *agents)
{
    return agents->config;
}
