/* The last acts of the demonstration: an agent's turn whose worker is killed after its tool acted,
 * before anything about it was stored; and a turn that waits for an approval while no process
 * runs. The logs of the tools say how often they acted. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/agent.h>

#include "cli/demo/demo.h"

#define NOTES "tool.log"
#define PAYMENTS "payments.log"
#define MOST_MS 10000 /* one worker that takes longer has gone wrong */

/* What a worker does, in a process of its own. */
enum duty {
    DIES,     /* it stops in the tool, to be killed there */
    FINISHES, /* the turn of the worker that was killed */
    ASKS,     /* its turn is put away until it is approved */
    GOES_ON   /* with the turn that was approved */
};

static const struct {
    const char *session;
    const char *order; /* NULL: none is sent */
} duties[] = {
    [DIES] = { "note", "use note {\"text\":\"water the plants\"}" },
    [FINISHES] = { "note", NULL },
    [ASKS] = { "pay", "use pay {\"amount\":250}" },
    [GOES_ON] = { "pay", NULL },
};

/* What a worker needs; it is a process of its own. */
struct worker {
    const char *folder;
    int tell; /* to the director */
    enum duty duty;
    struct hf_store *store;
    struct hf_loop *loop;
    struct hf_provider *provider;
    struct hf_model *model;
    struct hf_agent *agent;
};

static void log_path(const char *folder, const char *name, char out[PATH_MAX_DEMO])
{
    (void)snprintf(out, PATH_MAX_DEMO, "%s/%s", folder, name);
}

/* ---- the tools ------------------------------------------------------------------------------ */

/* The effect of a call is one line with its key. */
static bool write_line(const struct worker *worker, const char *name,
                       const struct hf_invocation *call)
{
    char path[PATH_MAX_DEMO], line[400];
    log_path(worker->folder, name, path);
    (void)snprintf(line, sizeof(line), "%s\n", hf_invocation_key_text(call));
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    bool written = fd >= 0 && cli_write(fd, line, strlen(line)) == 0 && fsync(fd) == 0;
    if (fd >= 0)
        (void)close(fd); /* it is synced */
    return written;
}

static void note(void *user, struct hf_invocation *call)
{
    const struct worker *worker = user;
    bool written = write_line(worker, NOTES, call);
    while (worker->duty == DIES && written && cli_write(worker->tell, "x", 1) == 0)
        (void)pause(); /* until the director kills this process */
    int rc = written ? hf_invocation_text(call, (struct hf_span){ "noted", 5 }) : 0;
    (void)rc; /* without an answer the call fails, and the proof with it */
}

/* The probe of `note`: a worker calls it, instead of the tool, for a call that a lost worker had
 * started. The call happened if the log has its key; then it is answered as `note` answers, since
 * what the lost worker got is not known. No log: it was never written to. A log that cannot be
 * read tells nothing. */
static enum hf_probe probe_note(void *user, struct hf_invocation *call)
{
    const struct worker *worker = user;
    char path[PATH_MAX_DEMO], line[400];
    enum hf_probe found = HF_PROBE_NOT_HAPPENED;
    log_path(worker->folder, NOTES, path);
    FILE *file = fopen(path, "re");
    if (!file && errno != ENOENT)
        return HF_PROBE_CANNOT_TELL;
    while (file && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, hf_invocation_key_text(call)) == 0)
            found = HF_PROBE_HAPPENED;
    }
    if (file)
        (void)fclose(file); /* it was only read */
    int rc = found == HF_PROBE_HAPPENED
                 ? hf_invocation_text(call, (struct hf_span){ "noted", 5 })
                 : 0;
    return rc ? HF_PROBE_CANNOT_TELL : found;
}

static void pay(void *user, struct hf_invocation *call)
{
    int rc = write_line(user, PAYMENTS, call)
                 ? hf_invocation_text(call, (struct hf_span){ "paid", 4 })
                 : 0;
    (void)rc; /* as above */
}

static int list_tools(void *user, struct hf_toolset *into, struct hf_err *err)
{
    struct hf_tool tool = { .size = sizeof(tool),
                            .name = "note",
                            .description = "Writes a note.",
                            .recovery = HF_RECOVERY_PROBE,
                            .user = user,
                            .run = note,
                            .probe = probe_note };
    struct hf_tool asking = { .size = sizeof(asking),
                              .name = "pay",
                              .description = "Pays.",
                              .recovery = HF_RECOVERY_KEYED,
                              .user = user,
                              .run = pay,
                              .approval = { .rule = "always",
                                            .question = "May this be paid?" } };
    int rc = hf_toolset_add(into, &tool, err);
    return rc ? rc : hf_toolset_add(into, &asking, err);
}

/* ---- a worker ------------------------------------------------------------------------------- */

/* The director is told which wait is to be answered. When the turn is put away nothing is left to
 * do here. */
static void on_heard(void *user, const struct hf_worker_event *event)
{
    struct worker *worker = user;
    if (worker->duty != ASKS)
        return;
    if (event->kind == HF_WORKER_ASKED &&
        cli_write(worker->tell, event->wait_id, strlen(event->wait_id)))
        return; /* the director is gone */
    if (event->kind == HF_WORKER_AWAY)
        hf_agent_stop(worker->agent, 0);
}

static int open_worker(struct worker *worker, struct hf_err *err)
{
    char path[PATH_MAX_DEMO];
    struct hf_tool_source source = { worker, list_tools };
    (void)snprintf(path, sizeof(path), "%s/agent.db", worker->folder);
    int rc = hf_store_open(path, NULL, &worker->store, err);
    if (rc == 0)
        rc = hf_loop_new(NULL, &worker->loop, err);
    if (rc == 0)
        rc = hf_scripted_new(worker->loop, 0, &worker->provider, err);
    struct hf_model_config model = { .size = sizeof(model),
                                     .provider = worker->provider,
                                     .id = "scripted",
                                     .context_tokens = 100000,
                                     .output_tokens = 1000 };
    if (rc == 0)
        rc = hf_model_new(&model, &worker->model, err);
    struct hf_agent_config config = { .size = sizeof(config),
                                      .loop = worker->loop,
                                      .store = worker->store,
                                      .name = "helper",
                                      .model = worker->model,
                                      .sources = &source,
                                      .source_count = 1,
                                      .pid = (int)getpid(),
                                      .user = worker,
                                      .heard = on_heard };
    return rc ? rc : hf_agent_new(&config, &worker->agent, err);
}

static int run_worker(struct worker *worker)
{
    struct hf_err err = { 0 };
    struct hf_agent_report *report = NULL;
    struct hf_agent_run run = { .size = sizeof(run),
                                .session_id = duties[worker->duty].session,
                                .text = duties[worker->duty].order };
    int rc = open_worker(worker, &err);
    if (rc == 0)
        rc = hf_agent_run(worker->agent, &run, &report, &err);
    bool proven = rc == 0 && (worker->duty == ASKS ||
                              (report->answered && report->call_count == 1 &&
                               (worker->duty == GOES_ON || report->calls[0].taken_over)));
    if (proven && worker->duty != ASKS)
        proven = cli_write(worker->tell, report->text, strlen(report->text)) == 0;
    hf_agent_report_free(report);
    hf_agent_free(worker->agent);
    hf_model_free(worker->model);
    hf_provider_free(worker->provider);
    hf_loop_free(worker->loop);
    hf_store_close(worker->store);
    return proven ? 0 : 1;
}

/* ---- the director --------------------------------------------------------------------------- */

/* Starts a worker and waits until it has told something, which `ret_told` gets. It is killed
 * then, if it is to die; otherwise it ends by itself. */
static int play(struct demo_agent *act, enum duty duty, char ret_told[DEMO_TOLD])
{
    int fds[2];
    bool dies = duty == DIES;
    if (pipe2(fds, O_CLOEXEC))
        return HF_EINTERNAL;
    pid_t pid = fork();
    if (pid == 0) {
        struct worker worker = { .folder = act->folder, .tell = fds[1], .duty = duty };
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* no child outlives the demonstration */
        _exit(run_worker(&worker));
    }
    (void)close(fds[1]);
    struct pollfd ready = { .fd = fds[0], .events = POLLIN };
    ssize_t len = pid > 0 && poll(&ready, 1, MOST_MS) == 1
                      ? read(fds[0], ret_told, DEMO_TOLD - 1)
                      : 0;
    ret_told[len > 0 ? len : 0] = '\0';
    int status = 0;
    if (pid > 0 && (dies || len <= 0))
        (void)kill(pid, SIGKILL);
    (void)close(fds[0]);
    act->pid = pid;
    return pid > 0 && waitpid(pid, &status, 0) == pid && len > 0 ? 0 : HF_EINTERNAL;
}

static int64_t count_lines(const struct demo_agent *act, const char *name)
{
    char path[PATH_MAX_DEMO], line[400];
    int64_t count = 0;
    log_path(act->folder, name, path);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file))
        count++;
    if (file)
        (void)fclose(file); /* it was only read */
    return count;
}

int demo_agent_first(struct demo_agent *act)
{
    char told[DEMO_TOLD];
    return play(act, DIES, told);
}

int demo_agent_second(struct demo_agent *act)
{
    int rc = play(act, FINISHES, act->answer);
    act->effects = count_lines(act, NOTES);
    return rc;
}

int demo_agent_ask(struct demo_agent *act)
{
    int rc = play(act, ASKS, act->wait_id);
    act->asker = act->pid;
    return rc ? rc : count_lines(act, PAYMENTS) ? HF_EINTERNAL : 0;
}

int demo_agent_approve(const struct demo_agent *act)
{
    char store[PATH_MAX_DEMO];
    int status = 0;
    log_path(act->folder, "agent.db", store);
    pid_t pid = fork();
    if (pid == 0) {
        int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (nothing >= 0 && dup2(nothing, STDOUT_FILENO) >= 0)
            (void)execl("/proc/self/exe", "holdfast", "--db", store, "--actor",
                        "human:you", "approve", act->wait_id, (char *)NULL);
        _exit(1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : HF_EINTERNAL;
}

int demo_agent_go_on(struct demo_agent *act)
{
    int rc = play(act, GOES_ON, act->paid);
    act->payments = count_lines(act, PAYMENTS);
    return rc;
}
