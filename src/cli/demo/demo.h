/* holdfast demo: what its files share.
 *
 * The director (cli/demo/demo.c) starts a submitter, two workers and a monitor as processes of
 * their own and tells the story. The parts (cli/demo/part.c) know nothing about each other: they
 * meet in the ledger, and report to the director through one pipe. The ending
 * (cli/demo/facts.c) is told by the ledger alone.
 */
#ifndef HF_CLI_DEMO_DEMO_H
#define HF_CLI_DEMO_DEMO_H

#include <sys/types.h>

#include "cli/cli.h"

#define DEMO_QUEUE "demo"
#define DEMO_STEPS 3 /* of the unit whose worker is killed, in its third */
#define DEMO_TASKS 5
#define DEMO_APPROVAL "demo-approval"
#define DEMO_KILL "kill" /* kind of the unit that notes the kill itself */

enum demo_who { DEMO_SUBMITTER, DEMO_WORKER_1, DEMO_WORKER_2, DEMO_MONITOR, DEMO_PARTS };

/* The reports of a part, and the words of the director for them. The order is the enum's. */
#define DEMO_REPORTS(X)                                                                  \
    X(CREATED, "created %s%s")                                                           \
    X(CLAIMED, "claimed %s, %s")                                                         \
    X(STEP, "%s: %s")                                                                    \
    X(MIDDLE, "%s: %s")                                                                  \
    X(WAITING, "%s waits for a user under the reference %s; no lease is held")           \
    X(RETRY, "%s failed: transient_network; %s")                                         \
    X(REFUSED, "%s: close-out without evidence refused: %s; nothing was written")        \
    X(DONE, "%s is done%s")                                                              \
    X(BROKEN, "%s: %s")

#define X(name, text) DEMO_##name,
enum demo_report { DEMO_REPORTS(X) DEMO_REPORT_COUNT };
#undef X

/* One write to the pipe, so never torn. */
struct demo_message {
    enum demo_who who;
    enum demo_report report;
    int64_t attempt;
    char work_id[40];
    char task[16];
    char text[200];
};

/* The state of a part in its own process. */
struct demo_stage {
    const char *ledger; /* path */
    const char *folder;
    const char *name; /* of the part */
    enum demo_who who;
    int hear; /* one byte: continue; its end: finish */
    int say;
    hf_ms step_ms; /* how long a step takes */
    struct hf_store *store;
    struct hf_caller caller;
    struct hf_err err;
};

/* Plays the part to its end; the exit code of its process. */
int demo_play(struct demo_stage *stage);

/* Facts about the run, from the ledger's events. */
struct demo_facts {
    int64_t units;
    char names[120]; /* of all of them */
    int64_t done;
    int64_t attempts; /* claims */
    int64_t transitions;
    int64_t steps; /* noted in trails */
    int64_t reclaims;
    int64_t resumes;
    int64_t retries;
    int64_t evidence;
    int64_t killed_pid;
    int64_t proven_pid; /* of the proof in the reclaim's event */
    hf_ms killed_at;
    hf_ms reclaimed_at; /* claimed again */
    hf_ms ttl_ms;       /* of the lease that was cut short */
    int64_t bad;        /* trails and other things that the check found wrong */
    char how[96];       /* the proof's */
    char reclaimed_id[40];
};

HF_MUST_USE int demo_gather(struct cli *cli, struct demo_facts *ret_facts);
/* The first thing that does not hold, or NULL. */
const char *demo_objection(const struct demo_facts *facts);
void demo_print_facts(struct cli *cli, const struct demo_facts *facts);
void demo_json_facts(struct hf_json *json, const struct demo_facts *facts);

/* ---- agent.c: a turn whose worker is killed between the effect and its commit --------------- */

#define PATH_MAX_DEMO 600
#define DEMO_TOLD 200

struct demo_agent {
    const char *folder;
    int pid;                /* of the worker that was started last */
    int64_t effects;        /* lines of the tool's own log */
    char answer[DEMO_TOLD]; /* of the model, after the tool's */
    char wait_id[DEMO_TOLD];
    int asker;            /* the worker that asked; it has ended */
    char paid[DEMO_TOLD]; /* the model's answer after the approval */
    int64_t payments;     /* lines of that tool's log */
};

/* A worker that is killed in its tool, after the tool acted; then another one, which finishes the
 * turn. HF_EINTERNAL: it went wrong. No child is left. No store may be open in this process. */
HF_MUST_USE int demo_agent_first(struct demo_agent *act);
HF_MUST_USE int demo_agent_second(struct demo_agent *act);
/* A worker whose turn waits for an approval, and which has ended. */
HF_MUST_USE int demo_agent_ask(struct demo_agent *act);
/* `holdfast approve`, as a second terminal would run it. */
HF_MUST_USE int demo_agent_approve(const struct demo_agent *act);
/* Another worker, which finishes the turn. */
HF_MUST_USE int demo_agent_go_on(struct demo_agent *act);

#endif
