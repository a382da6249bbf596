/* A real worker with one agent, "a", whose model is a script: for tests that run turns on real
 * stores, in this process or in children. What the model says depends on the iteration alone, so
 * that every process that goes on with a turn hears the same.
 *
 * A line of the script per iteration: "call TOOL ARGS" with further calls after ";", or a text;
 * "silence" never ends.
 */
#ifndef TESTS_AGENT_ACTOR_H
#define TESTS_AGENT_ACTOR_H

#include <holdfast/worker.h>

#define ACTOR_TEXT(s) ((struct hf_span){ (s), strlen(s) })

struct actor {
    struct hf_store *store; /* the caller's */
    const char *const *script;
    struct hf_provider provider;
    struct hf_model_sink sink;
    uint64_t call;      /* that is out; 0: none */
    uint64_t iteration; /* of it */
    int model_calls;
    struct hf_loop *loop;
    struct hf_toolset *tools;
    struct hf_surface *surface;
    struct hf_setup *setup;
    struct hf_worker_agent agent;
    struct hf_worker_config config; /* may be changed between open and start */
    struct hf_worker *worker;
    bool stopped;
    int heard[16];                        /* events by their kind */
    void (*on_model)(uint64_t iteration); /* NULL: none; the same below */
    void (*on_event)(const struct hf_worker_event *event);
};

struct mortal_plan;

/* A store by its path, or by the URL of a PostgreSQL, whose driver dies by the plan. offset: added
 * to the clocks of the store, in memory that children share; NULL: the clocks of the system,
 * without which a PostgreSQL store does not listen. Exits on a failure. */
struct hf_store *actor_store(const char *url, struct mortal_plan *plan,
                             const hf_ms *offset);

/* Exits on a failure, since it runs in children. Tools are added between open and start. */
void actor_open(struct actor *actor, struct hf_store *store, const char *const *script);
void actor_add(struct actor *actor, const struct hf_tool *tool);
void actor_start(struct actor *actor);
/* Steps until so many events of that kind were heard. */
void actor_until(struct actor *actor, enum hf_worker_event_kind kind, int count);
void actor_stop(struct actor *actor);  /* the worker, gracefully */
void actor_close(struct actor *actor); /* all but the store; stops the worker */

/* Makes a session of agent "a" and sends a message to it. */
void actor_send(struct hf_store *store, const char *session_id, const char *text);

/* The committed history as lines of JSON, with turns and calls named by their order, so that two
 * runs can be compared. Returns its length; `room` must be enough. */
size_t actor_transcript(struct hf_store *store, const char *session_id, char *text,
                        size_t room);

#endif
