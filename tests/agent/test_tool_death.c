/* Shell tools whose worker is killed before they start, while they run and after they acted, on
 * real stores. Another process takes the turn over. What it does is the rule of the class, and
 * the judge is the log of the tool itself: no second copy runs next to the first. */
#include "support/unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/store.h>
#include <holdfast/tools.h>

#include "agent/actor.h"
#include "agent/tool_kit.h"
#include "support/pg.h"

static struct pg_server server;
static char folder[64];
static bool on_postgres;

enum moment { BEFORE, RUNNING, ACTED };
static const char *const moments[] = { "before", "running", "acted" };

/* Each copy says in the log that it begins, acts and ends, and "two" when it finds another one.
 * MOMENT is where the first copy kills its worker. The pipes of a dead worker are not used. */
static const char tool_script[] =
    "exec 2>/dev/null\n"
    "mkdir alone || echo two >> log\n"
    "echo begin >> log\n"
    "trap 'trap \"\" TERM; rmdir alone; echo term >> log; exit 1' TERM\n"
    "if [ $MOMENT = running ] && mkdir killed; then\n"
    "  kill -9 $PPID; i=0\n"
    "  while [ $i -lt 1200 ] && [ -e log ]; do sleep 0.05; i=$((i+1)); done; exit 1\n"
    "fi\n"
    "echo act $HOLDFAST_CALL >> log\n"
    "if [ $MOMENT = acted ] && mkdir killed; then trap \"\" TERM; kill -9 $PPID; fi\n"
    "rmdir alone; echo end >> log; echo ok\n";

/* Whether the act is in the log; it asks for the copies too. */
static const char probe_script[] = "[ -d alone ] && echo two >> log\n"
                                   "echo probe >> log\n"
                                   "if grep -q ^act log; then echo ok; exit 0; fi\n"
                                   "exit 1\n";

static const char *const script[] = { "call act {}", "done" };

/* ---- lives ------------------------------------------------------------------------- */

static struct hf_store *open_store(void)
{
    char url[400];
    struct hf_store *store = NULL;
    struct hf_err err = { 0 };
    if (on_postgres)
        (void)pg_server_schema(server.url, "tools", url);
    else
        (void)snprintf(url, sizeof url, "%s/store.db", folder);
    if (hf_store_open(url, NULL, &store, &err)) {
        fprintf(stderr, "the store cannot be opened: %s\n", err.message);
        _exit(2);
    }
    return store;
}

static void die_before(const struct hf_worker_event *event)
{
    if (event->kind == HF_WORKER_TOOL_STARTED)
        (void)kill(getpid(), SIGKILL); /* the intent is stored */
}

/* What a person was asked; a call of the class ask whose outcome is not known is a question. */
static char question[4096];

static void note_question(const struct hf_worker_event *event)
{
    if (event->kind == HF_WORKER_ASKED)
        (void)snprintf(question, sizeof question, "%s", event->wait->asked);
}

static struct hf_tools *make_tools(enum hf_recovery class_, enum moment moment,
                                   const char *place, const char *locks)
{
    char variable[32];
    const char *const argv[] = { "/bin/sh", "-c", tool_script, NULL };
    const char *const probe[] = { "/bin/sh", "-c", probe_script, NULL };
    const char *const env[] = { "PATH=/usr/bin:/bin", variable, NULL };
    struct hf_shell_tool tool = { .size = sizeof tool,
                                  .name = "act",
                                  .recovery = class_,
                                  .argv = argv,
                                  .probe_argv = class_ == HF_RECOVERY_PROBE ? probe
                                                                            : NULL,
                                  .env = env,
                                  .folder = place };
    struct hf_tools_config config = {
        .size = sizeof config, .shell = &tool, .shell_count = 1, .lock_folder = locks
    };
    struct hf_tools *tools = NULL;
    struct hf_err err = { 0 };
    (void)snprintf(variable, sizeof variable, "MOMENT=%s", moments[moment]);
    if (hf_tools_new(&config, &tools, &err)) {
        fprintf(stderr, "%s\n", err.message);
        _exit(2);
    }
    return tools;
}

struct life {
    const char *session;
    const char *place;
    const char *locks;
    enum hf_recovery class_;
    enum moment moment;
    bool first;
};

static void work(const struct life *life, char *transcript, size_t room)
{
    struct actor actor;
    struct hf_err err = { 0 };
    struct hf_store *store = open_store();
    struct hf_tools *tools = make_tools(life->class_, life->moment, life->place,
                                        life->locks);
    struct hf_tool_source source = hf_tools_source(tools);
    if (life->first)
        actor_send(store, life->session, "hi");
    actor_open(&actor, store, script);
    if (hf_toolset_ask(actor.tools, &source, &err))
        _exit(2);
    if (life->first && life->moment == BEFORE)
        actor.on_event = die_before;
    bool asks = life->class_ == HF_RECOVERY_ASK && !life->first;
    if (asks)
        actor.on_event = note_question;
    actor.config.pid = getpid(); /* its death is proven at once */
    actor_start(&actor);
    actor_until(&actor, asks ? HF_WORKER_AWAY : HF_WORKER_TURN_ENDED, 1);
    actor_stop(&actor);
    while (hf_tools_running(tools) > 0)
        (void)hf_loop_step(actor.loop, 20);
    actor_close(&actor);
    hf_tools_free(tools);
    if (asks)
        (void)snprintf(transcript, room, "%s", question);
    else
        (void)actor_transcript(store, life->session, transcript, room);
    hf_store_close(store);
}

/* A process that works until the turn ends or it dies; its transcript is left in a file. */
static int live(const struct life *life)
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        static char transcript[32768];
        char path[128];
        work(life, transcript, sizeof transcript);
        (void)snprintf(path, sizeof path, "%s/transcript", life->place);
        FILE *file = fopen(path, "w");
        if (!file || fputs(transcript, file) < 0 || fclose(file))
            _exit(2);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* ---- judging ----------------------------------------------------------------------- */

static char *read_file(const char *place, const char *name)
{
    static char text[32768];
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", place, name);
    FILE *file = fopen(path, "r");
    size_t len = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        (void)fclose(file);
    text[len] = '\0';
    return text;
}

/* The log with the keys checked: all acts have one key. */
static void read_log(const char *place, char out[512])
{
    char key[256] = "";
    size_t to = 0;
    char *rest = NULL;
    for (char *line = strtok_r(read_file(place, "log"), "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, "act ", 4) == 0) {
            if (!key[0])
                (void)snprintf(key, sizeof key, "%s", line);
            assert_string_equal(line, key);
            line[3] = '\0';
        }
        to += (size_t)snprintf(out + to, 512 - to, "%s%s", to ? " " : "", line);
    }
    out[to] = '\0';
}

/* What must be in the tool's log, and in the transcript or the question. */
static void dies(const char *session, enum hf_recovery class_, enum moment moment,
                 const char *log, const char *result)
{
    char place[96], locks[96], found[512];
    struct life life = { .session = session,
                         .place = place,
                         .locks = locks,
                         .class_ = class_,
                         .moment = moment,
                         .first = true };
    (void)snprintf(place, sizeof place, "%s/%s", folder, session);
    (void)snprintf(locks, sizeof locks, "%s/%s.locks", folder, session);
    assert_int_equal(mkdir(place, 0700), 0);
    int status = live(&life);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    life.first = false;
    assert_int_equal(live(&life), 0);
    read_log(place, found);
    if (strcmp(found, log) != 0)
        fail_msg("%s: the log is \"%s\", not \"%s\"", session, found, log);
    if (!strstr(read_file(place, "transcript"), result))
        fail_msg("%s: %s", session, read_file(place, "transcript"));
}

static void a_repeatable_tool_runs_again_after_the_old_copy(void **state)
{
    (void)state;
    dies("safe-before", HF_RECOVERY_SAFE, BEFORE, "begin act end",
         "\"content\":\"ok\\n\"");
    dies("safe-running", HF_RECOVERY_SAFE, RUNNING, "begin term begin act end",
         "\"content\":\"ok\\n\"");
    dies("keyed-before", HF_RECOVERY_KEYED, BEFORE, "begin act end",
         "\"content\":\"ok\\n\"");
    dies("keyed-running", HF_RECOVERY_KEYED, RUNNING, "begin term begin act end",
         "\"content\":\"ok\\n\"");
}

static void a_repeatable_tool_that_acted_acts_again_under_its_key(void **state)
{
    (void)state;
    dies("keyed-acted", HF_RECOVERY_KEYED, ACTED, "begin act end begin act end",
         "\"content\":\"ok\\n\"");
}

static void a_tool_with_a_probe_acts_once(void **state)
{
    (void)state;
    dies("probe-before", HF_RECOVERY_PROBE, BEFORE, "probe begin act end",
         "\"content\":\"ok\\n\"");
    dies("probe-running", HF_RECOVERY_PROBE, RUNNING, "begin term probe begin act end",
         "\"content\":\"ok\\n\"");
    dies("probe-acted", HF_RECOVERY_PROBE, ACTED, "begin act end probe",
         "\"content\":\"ok\\n\"");
}

static void a_tool_of_the_class_ask_is_never_run_again(void **state)
{
    (void)state;
    const char *unknown = "happen? It is not known";
    dies("ask-before", HF_RECOVERY_ASK, BEFORE, "", unknown);
    dies("ask-running", HF_RECOVERY_ASK, RUNNING, "begin", unknown);
    dies("ask-acted", HF_RECOVERY_ASK, ACTED, "begin act end", unknown);
}

static int start(void **state)
{
    (void)state;
    tool_kit_folder(folder);
    if (on_postgres)
        pg_server_start(&server);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    if (on_postgres)
        pg_server_stop(&server);
    tool_kit_remove(folder);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_repeatable_tool_runs_again_after_the_old_copy),
        cmocka_unit_test(a_repeatable_tool_that_acted_acts_again_under_its_key),
        cmocka_unit_test(a_tool_with_a_probe_acts_once),
        cmocka_unit_test(a_tool_of_the_class_ask_is_never_run_again),
    };
    on_postgres = argc > 1 && strcmp(argv[1], "postgres") == 0;
    return cmocka_run_group_tests(tests, start, stop);
}
