/* A worker whose model is a script. */
#include "agent/actor.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <holdfast/sys/driver.h>

#include "store/store.h"
#include "support/mortal.h"

#define CALLS 16

static struct hf_err err;

static void must(int rc, const char *what)
{
    if (rc == 0)
        return;
    fprintf(stderr, "actor: %s: %s\n", what, err.message);
    _exit(3);
}

/* ---- the store ------------------------------------------------------------------------ */

static const hf_ms *clock_offset;

static hf_ms ahead(void)
{
    return clock_offset ? *clock_offset : 0;
}

static hf_ms wall_ms(void *user)
{
    const struct hf_clock *clock = hf_clock_system();
    (void)user;
    return clock->wall_ms(clock->user) + ahead();
}

static hf_ms mono_ms(void *user)
{
    const struct hf_clock *clock = hf_clock_system();
    (void)user;
    return clock->mono_ms(clock->user) + ahead();
}

static void wait_ms(void *user, hf_ms ms)
{
    const struct hf_clock *clock = hf_clock_system();
    (void)user;
    clock->wait_ms(clock->user, ms);
}

static const struct hf_clock moved_clock = { NULL, wall_ms, mono_ms, wait_ms };

struct hf_store *actor_store(const char *url, struct mortal_plan *plan,
                             const hf_ms *offset)
{
    struct hf_sql_options driver = { .size = sizeof(driver),
                                     .alloc = hf_alloc_system(),
                                     .clock = offset ? &moved_clock : hf_clock_system(),
                                     .random = hf_random_system() };
    struct hf_store_options options = { .size = sizeof(options),
                                        .alloc = driver.alloc,
                                        .clock = driver.clock,
                                        .random = driver.random };
    struct hf_sql *real = NULL;
    struct hf_store *store = NULL;
    clock_offset = offset;
    must(strncmp(url, "postgres", 8) == 0 ? hf_postgres_open(url, &driver, &real, &err)
                                          : hf_sqlite_open(url, &driver, &real, &err),
         url);
    must(hf_sql_store_new(mortal_over(real, plan), &options, &store, &err), url);
    return store;
}

/* ---- the model ------------------------------------------------------------------------ */

static struct actor *actor_of(struct hf_provider *provider)
{
    return (struct actor *)(void *)((char *)provider - offsetof(struct actor, provider));
}

static const char *model_name(const struct hf_provider *provider)
{
    (void)provider;
    return "script";
}

static void end_call(struct actor *actor, const struct hf_part *parts, size_t count)
{
    struct hf_llm_response response = { .size = sizeof(response),
                                        .parts = parts,
                                        .part_count = count,
                                        .reason = parts[0].kind == HF_PART_TOOL_CALL
                                                      ? HF_REASON_TOOL_USE
                                                      : HF_REASON_STOP,
                                        .usage = { .input = 3, .output = 2 } };
    struct hf_model_event event = { .kind = HF_MODEL_END, .response = &response };
    actor->call = 0;
    actor->sink.event(actor->sink.user, &event);
}

/* "call TOOL ARGS; TOOL ARGS": cuts the line, which is the caller's. */
static size_t read_calls(char *line, struct hf_part *parts, char (*ids)[8])
{
    size_t count = 0;
    char *rest = NULL;
    for (char *one = strtok_r(line, ";", &rest); one; one = strtok_r(NULL, ";", &rest)) {
        while (*one == ' ')
            one++;
        char *args = strchr(one, ' ');
        if (!args || count == CALLS)
            _exit(4);
        *args++ = '\0';
        snprintf(ids[count], sizeof(ids[0]), "p%u", (unsigned)count & 15);
        parts[count] = (struct hf_part){ .kind = HF_PART_TOOL_CALL,
                                         .call_id = ids[count],
                                         .tool = one,
                                         .content = ACTOR_TEXT(args) };
        count++;
    }
    return count;
}

static void speak(void *user)
{
    struct actor *actor = user;
    struct hf_part parts[CALLS] = { { 0 } };
    char ids[CALLS][8], line[4096];
    size_t count = 1;
    if (actor->call == 0)
        return; /* it was cancelled */
    snprintf(line, sizeof(line), "%s", actor->script[actor->iteration]);
    if (strcmp(line, "silence") == 0)
        return; /* the model thinks for ever */
    if (strncmp(line, "call ", 5) == 0)
        count = read_calls(line + 5, parts, ids);
    else
        parts[0].content = ACTOR_TEXT(line);
    end_call(actor, parts, count);
}

static int model_start(struct hf_provider *provider, const struct hf_model_call *call,
                       const struct hf_model_sink *sink, uint64_t *ret_call,
                       struct hf_err *why)
{
    struct actor *actor = actor_of(provider);
    struct hf_task task = { actor, speak };
    (void)why;
    actor->sink = *sink;
    actor->iteration = call->request->iteration;
    actor->call = *ret_call = (uint64_t)++actor->model_calls;
    if (actor->on_model)
        actor->on_model(actor->iteration);
    return hf_loop_post(actor->loop, &task);
}

static int model_cancel(struct hf_provider *provider, uint64_t call)
{
    struct actor *actor = actor_of(provider);
    bool there = actor->call == call;
    actor->call = there ? 0 : actor->call;
    return there ? 0 : HF_ENOTFOUND;
}

static int model_close(struct hf_provider *provider, const struct hf_closed *closed)
{
    (void)provider;
    (void)closed;
    return 0;
}

static void model_free(struct hf_provider *provider)
{
    (void)provider;
}

static const struct hf_provider_methods model_methods = { model_name, model_start,
                                                          model_cancel, model_close,
                                                          model_free };

/* ---- the worker ----------------------------------------------------------------------- */

static void on_heard(void *user, const struct hf_worker_event *event)
{
    struct actor *actor = user;
    actor->heard[event->kind]++;
    if (actor->on_event)
        actor->on_event(event);
    if (event->kind == HF_WORKER_FAULT || (event->kind == HF_WORKER_BACK && event->code))
        fprintf(stderr, "actor: %s: %s\n", hf_worker_event_name(event->kind),
                event->message);
}

void actor_open(struct actor *actor, struct hf_store *store, const char *const *script)
{
    *actor = (struct actor){ .store = store, .script = script };
    actor->provider.methods = &model_methods;
    must(hf_loop_new(NULL, &actor->loop, &err), "loop");
    must(hf_toolset_new(NULL, &actor->tools, &err), "tools");
    actor->agent = (struct hf_worker_agent){ .name = "a",
                                             .provider = &actor->provider,
                                             .model = "model-1",
                                             .tools = actor->tools,
                                             .prompt = ACTOR_TEXT("Be brief.") };
    actor->config = (struct hf_worker_config){ .size = sizeof(actor->config),
                                               .loop = actor->loop,
                                               .store = store,
                                               .agents = &actor->agent,
                                               .agent_count = 1,
                                               .turns = 1,
                                               .poll_ms = 5,
                                               .user = actor,
                                               .heard = on_heard };
}

void actor_add(struct actor *actor, const struct hf_tool *tool)
{
    must(hf_toolset_add(actor->tools, tool, &err), tool->name);
}

void actor_start(struct actor *actor)
{
    if (!actor->setup) {
        must(hf_surface_new(NULL, actor->agent.prompt, hf_toolset_json(actor->tools),
                            &actor->surface, &err),
             "surface");
        struct hf_turn_config config = { .size = sizeof(config),
                                         .protocol = hf_protocol_standard(),
                                         .surface = actor->surface,
                                         .model = "model-1",
                                         .turn_budget = 16 };
        must(hf_setup_new(&config, &actor->setup, &err), "setup");
        actor->agent.setup = actor->setup;
    }
    must(hf_worker_new(&actor->config, &actor->worker, &err), "worker");
}

void actor_until(struct actor *actor, enum hf_worker_event_kind kind, int count)
{
    while (actor->heard[kind] < count)
        (void)hf_loop_step(actor->loop, -1);
}

static void on_stopped(void *user)
{
    struct actor *actor = user;
    actor->stopped = true;
}

void actor_stop(struct actor *actor)
{
    struct hf_task stopped = { actor, on_stopped };
    if (!actor->worker)
        return;
    actor->stopped = false;
    hf_worker_stop(actor->worker, 0, &stopped);
    while (!actor->stopped)
        (void)hf_loop_step(actor->loop, -1);
    hf_worker_free(actor->worker);
    actor->worker = NULL;
    while (hf_loop_step(actor->loop, 0)) /* messages that are still on their way */
        ;
}

void actor_close(struct actor *actor)
{
    actor_stop(actor);
    hf_setup_free(actor->setup);
    hf_surface_free(actor->surface);
    hf_toolset_unref(actor->tools);
    hf_loop_free(actor->loop);
}

/* ---- sessions ------------------------------------------------------------------------- */

void actor_send(struct hf_store *store, const char *session_id, const char *text)
{
    char message[512];
    struct hf_session_answer *made = NULL;
    struct hf_answer *sent = NULL;
    struct hf_session_spec fresh = { .size = sizeof(fresh),
                                     .session_id = session_id,
                                     .agent = "a" };
    must(hf_session_create(store, NULL, &fresh, &made, &err), "create");
    hf_session_answer_free(made);
    snprintf(message, sizeof(message),
             "{\"message\":{\"id\":\"u1\",\"parts\":[{\"content\":\"%s\"}]}}", text);
    struct hf_session_send send = { .size = sizeof(send),
                                    .session_id = session_id,
                                    .message = message };
    must(hf_session_send(store, NULL, &send, &sent, &err), "send");
    hf_answer_free(sent);
}

/* How many bytes of a name that differs from run to run begin here: a UUID, or a call's id,
 * "c" and 24 of [a-z0-9]; 0: none. */
static size_t name_at(const char *at)
{
    static const char uuid[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    size_t len = 0;
    while (uuid[len] &&
           (uuid[len] == '-' ? at[len] == '-' : isxdigit((unsigned char)at[len])))
        len++;
    if (uuid[len] == '\0')
        return len;
    for (len = *at == 'c' ? 1 : 0; len > 0 && len < 25; len++)
        if (!islower((unsigned char)at[len]) && !isdigit((unsigned char)at[len]))
            return 0;
    return len;
}

struct names {
    char name[32][40];
    size_t count;
};

static size_t order_of(struct names *names, const char *at, size_t len)
{
    for (size_t i = 0; i < names->count; i++)
        if (strlen(names->name[i]) == len && memcmp(names->name[i], at, len) == 0)
            return i;
    if (names->count == 32)
        _exit(5);
    memcpy(names->name[names->count], at, len);
    return names->count++;
}

static size_t add_line(struct names *names, const char *json, char *text, size_t room)
{
    size_t used = 0;
    while (*json && used + 8 < room) {
        size_t len = name_at(json);
        if (len > 0)
            used += (size_t)snprintf(text + used, room - used, "#%zu",
                                     order_of(names, json, len));
        else
            text[used++] = *json;
        json += len > 0 ? len : 1;
    }
    text[used++] = '\n';
    text[used] = '\0';
    return used;
}

size_t actor_transcript(struct hf_store *store, const char *session_id, char *text,
                        size_t room)
{
    struct hf_session_answer *answer = NULL;
    struct hf_session_load load = { .size = sizeof(load), .session_id = session_id };
    struct names names = { .count = 0 };
    size_t used = 0;
    must(hf_session_load(store, &load, &answer, &err), "load");
    text[0] = '\0';
    for (size_t i = 0; i < answer->node_count; i++)
        used += add_line(&names, answer->nodes[i].json, text + used, room - used);
    hf_session_answer_free(answer);
    return used;
}
