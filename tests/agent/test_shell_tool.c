/* Commands as tools: input, environment, limits, ends, and what a call does about processes that
 * an earlier execution left behind. */
#include "agent/tool_kit.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/child.h>
#include <holdfast/run.h>
#include <holdfast/store.h>

#include "support/fail_alloc.h"

static char folder[64];
static char locks[80];
static const char *const own_env[] = { "PATH=/usr/bin:/bin", "SECRET=hush", NULL };

static int make_folder(void **state)
{
    (void)state;
    tool_kit_folder(folder);
    (void)snprintf(locks, sizeof locks, "%s/locks", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    tool_kit_remove(folder);
    return 0;
}

#define SH(script) ((const char *const[]){ "/bin/sh", "-c", script, NULL })

static struct hf_shell_tool tool_of(const char *const *argv)
{
    return (struct hf_shell_tool){ .size = sizeof(struct hf_shell_tool),
                                   .name = "t",
                                   .recovery = HF_RECOVERY_SAFE,
                                   .argv = argv,
                                   .folder = folder };
}

static struct hf_tools_config config_of(const struct hf_shell_tool *tool)
{
    return (struct hf_tools_config){ .size = sizeof(struct hf_tools_config),
                                     .shell = tool,
                                     .shell_count = 1,
                                     .lock_folder = locks,
                                     .env = own_env };
}

static void open_one(struct tool_kit *kit, const struct hf_shell_tool *tool)
{
    struct hf_tools_config config = config_of(tool);
    tool_kit_open(kit, &config);
}

static void path_of(char out[128], const char *name)
{
    (void)snprintf(out, 128, "%s/%s", folder, name);
}

static size_t read_file(const char *name, char *text, size_t room)
{
    char path[128];
    path_of(path, name);
    FILE *file = fopen(path, "r");
    size_t len = file ? fread(text, 1, room - 1, file) : 0;
    if (file)
        (void)fclose(file);
    text[len] = '\0';
    return len;
}

/* What has ended may stay a zombie: its new parent is not ours. */
static bool runs(pid_t pid)
{
    char path[64], state[256] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    size_t len = fread(state, 1, sizeof state - 1, file);
    (void)fclose(file);
    const char *end = len ? strrchr(state, ')') : NULL;
    return end && end[2] != 'Z';
}

static int locks_left(void)
{
    char command[160];
    (void)snprintf(command, sizeof command, "ls -A %s | wc -l | grep -qx 0", locks);
    return system(command);
}

/* ---- what a command gets ----------------------------------------------------------- */

static void a_command_gets_its_arguments_as_json_and_nothing_else(void **state)
{
    (void)state;
    struct tool_kit kit;
    struct hf_shell_tool tool = tool_of(
        SH("cat; echo; pwd; env | grep -v -e ^PWD= -e ^_= "
           "-e ^SHLVL= -e ^OLDPWD= | sort | "
           "sed s/LOCK=.*/LOCK=./"));
    static const char *const env[] = { "A=1", NULL };
    static const char *const pass[] = { "PATH", NULL };
    char want[512];
    tool.env = env;
    tool.pass_env = pass;
    open_one(&kit, &tool);
    const struct tool_said *said = tool_kit_call(&kit, "t", "{\"x\":[1,\"\xc3\xa9\"]}");
    assert_int_equal(said->outcome, HF_TOOL_SUCCESS);
    (void)snprintf(want, sizeof want,
                   "\"{\\\"x\\\":[1,\\\"\xc3\xa9\\\"]}\\n%s\\nA=1\\n"
                   "HOLDFAST_CALL=session-1/turn-1/3/call-1/1\\nHOLDFAST_LOCK=.\\n"
                   "PATH=/usr/bin:/bin\\n\"",
                   folder);
    assert_string_equal(said->text, want);
    tool_kit_close(&kit);
    assert_int_equal(locks_left(), 0);
}

static void arguments_of_any_size_reach_standard_input(void **state)
{
    (void)state;
    struct tool_kit kit;
    struct hf_shell_tool tool = tool_of(SH("wc -c"));
    static char args[300000];
    memset(args, 'x', sizeof args);
    memcpy(args, "{\"x\":\"", 6);
    memcpy(args + sizeof args - 3, "\"}", 3);
    open_one(&kit, &tool);
    assert_string_equal(tool_kit_call(&kit, "t", args)->text, "\"299999\\n\"");
    tool_kit_close(&kit);
}

static void declared_flags_are_in_the_order_of_the_schema(void **state)
{
    (void)state;
    struct tool_kit kit;
    static const char *const argv[] = { "/bin/sh", "-c", "printf '%s\\n' \"$@\"", "sh",
                                        NULL };
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"b\":{},\"a\":{},\"on\":{},\"off\":{},"
        "\"many\":{},\"o\":{},\"n\":{}}}";
    struct hf_shell_tool tool = tool_of(argv);
    tool.flags = true;
    tool.schema = (struct hf_span){ schema, sizeof schema - 1 };
    open_one(&kit, &tool);
    assert_string_equal(tool_kit_call(&kit, "t",
                                      "{\"a\":\"x y; $HOME\",\"b\":1.5,\"on\":true,"
                                      "\"off\":false,\"n\":null,\"many\":[\"p\",\"-q\"],"
                                      "\"o\":{\"k\":1}}")
                            ->text,
                        "\"--b=1.5\\n--a=x y; $HOME\\n--on\\n--many=p\\n--many=-q\\n"
                        "--o={\\\"k\\\":1}\\n\"");
    const struct tool_said *said = tool_kit_call(&kit, "t", "{\"exec\":\"rm\"}");
    assert_int_equal(said->outcome, HF_TOOL_FAILURE);
    assert_string_equal(said->text, "there is no argument exec");
    tool_kit_close(&kit);
}

/* ---- what comes of it -------------------------------------------------------------- */

static void an_exit_code_is_a_failure_with_the_output(void **state)
{
    (void)state;
    struct tool_kit kit;
    struct hf_shell_tool tool = tool_of(SH("echo out; echo bad >&2; exit 3"));
    open_one(&kit, &tool);
    const struct tool_said *said = tool_kit_call(&kit, "t", "{}");
    assert_int_equal(said->outcome, HF_TOOL_FAILURE);
    assert_string_equal(said->code, "exit_code");
    assert_string_equal(said->text, "The command ended with exit code 3.\nout\n"
                                    "[standard error]\nbad\n");
    tool_kit_close(&kit);
}

static void the_beginning_and_the_end_of_the_output_are_kept(void **state)
{
    (void)state;
    struct tool_kit kit;
    struct hf_shell_tool tool = tool_of(SH("printf BEGIN; yes abcdefg | head -c 1000000; "
                                           "printf END"));
    tool.output_bytes = 400;
    open_one(&kit, &tool);
    const struct tool_said *said = tool_kit_call(&kit, "t", "{}");
    assert_int_equal(said->outcome, HF_TOOL_SUCCESS);
    /* 300 bytes are for standard output, 150 for each end. */
    assert_true(strncmp(said->text, "\"BEGINabcdefg\\n", 14) == 0);
    assert_non_null(
        strstr(said->text, "\\n[cut: 999708 of 1000008 bytes are left out]\\n"));
    assert_string_equal(said->text + strlen(said->text) - 4, "END\"");
    tool_kit_close(&kit);
}

static void output_that_is_no_text_is_repaired(void **state)
{
    (void)state;
    struct tool_kit kit;
    struct hf_shell_tool tool = tool_of(SH("printf 'a\\377b\\000c'"));
    open_one(&kit, &tool);
    assert_string_equal(tool_kit_call(&kit, "t", "{}")->text, "\"a\xef\xbf\xbd"
                                                              "b\xef\xbf\xbd"
                                                              "c\"");
    tool_kit_close(&kit);
}

/* A command that outstays its time, with a child in the background. */
static void out_of_time_all_processes_are_ended(enum hf_recovery class_, const char *trap,
                                                enum hf_tool_outcome outcome)
{
    char script[128];
    (void)snprintf(script, sizeof script,
                   "(%s; echo up > bg; sleep 100) & echo said; sleep 100", trap);
    struct tool_kit kit;
    struct hf_shell_tool tool = tool_of(SH(script));
    tool.timeout_ms = 300;
    tool.recovery = class_;
    open_one(&kit, &tool);
    const struct tool_said *said = tool_kit_call(&kit, "t", "{}");
    assert_int_equal(said->outcome, outcome);
    assert_string_equal(said->text, "The command was ended after its time limit of 300 "
                                    "ms.\nsaid\n");
    tool_kit_close(&kit);
    assert_int_equal(locks_left(), 0); /* the lock was free: nothing of the tree lives */
}

static void a_timeout_of_a_safe_tool_is_a_failure(void **state)
{
    (void)state;
    out_of_time_all_processes_are_ended(HF_RECOVERY_SAFE, "trap '' TERM",
                                        HF_TOOL_FAILURE);
}

static void a_timeout_of_an_ask_tool_is_unknown(void **state)
{
    (void)state;
    out_of_time_all_processes_are_ended(HF_RECOVERY_ASK, "true", HF_TOOL_UNKNOWN);
}

static void what_a_command_leaves_behind_is_ended(void **state)
{
    (void)state;
    struct tool_kit kit;
    struct hf_shell_tool tool = tool_of(SH("sleep 100 >/dev/null 2>&1 & echo $!"));
    open_one(&kit, &tool);
    const struct tool_said *said = tool_kit_call(&kit, "t", "{}");
    assert_int_equal(said->outcome, HF_TOOL_SUCCESS);
    pid_t left = (pid_t)strtol(said->text + 1, NULL, 10);
    assert_true(left > 1);
    assert_false(runs(left));
    tool_kit_close(&kit);
}

static void a_call_that_is_given_up_ends_its_processes(void **state)
{
    (void)state;
    struct tool_kit kit;
    char text[32];
    struct hf_shell_tool tool = tool_of(SH("echo $$ > pid; sleep 100"));
    open_one(&kit, &tool);
    struct hf_invocation *call = tool_kit_start(&kit, "t", "call-1", "{}", false);
    while (read_file("pid", text, sizeof text) < 2)
        (void)hf_loop_step(kit.loop, 5);
    hf_invocation_stop(call);
    assert_true(tool_kit_wait(&kit)->stopped);
    tool_kit_close(&kit); /* waits for the end of the tree */
    assert_false(runs((pid_t)strtol(text, NULL, 10)));
}

static void freeing_the_tools_kills_what_runs(void **state)
{
    (void)state;
    struct tool_kit kit;
    char text[32];
    struct hf_shell_tool tool = tool_of(SH("trap '' TERM; echo $$ > pid2; sleep 100"));
    open_one(&kit, &tool);
    (void)tool_kit_start(&kit, "t", "call-1", "{}", false);
    while (read_file("pid2", text, sizeof text) < 2)
        (void)hf_loop_step(kit.loop, 5);
    hf_tools_free(kit.tools);
    (void)tool_kit_wait(&kit);
    hf_toolset_unref(kit.set);
    hf_loop_free(kit.loop);
    free(kit.said.text);
    pid_t pid = (pid_t)strtol(text, NULL, 10);
    assert_int_equal(waitpid(pid, NULL, 0), pid); /* killed, and not reaped */
}

/* ---- executions of an earlier worker ----------------------------------------------- */

/* A worker that starts a call and then dies by -9. The command goes on. */
static void die_with_a_call(const struct hf_shell_tool *tool, const char *call_id,
                            const char *mark)
{
    pid_t worker = fork();
    assert_true(worker >= 0);
    if (worker == 0) {
        struct tool_kit kit;
        char text[8];
        open_one(&kit, tool);
        (void)tool_kit_start(&kit, "t", call_id, "{}", false);
        while (read_file(mark, text, sizeof text) == 0)
            (void)hf_loop_step(kit.loop, 5);
        (void)kill(getpid(), SIGKILL);
    }
    assert_int_equal(waitpid(worker, NULL, 0), worker);
}

/* Each copy notes its begin and its end, and whether another one was there. It writes nothing to
 * its pipes, which a dead worker does not read. */
static const char copy_script[] =
    "exec 2>/dev/null; mkdir alone || echo two >> log; echo begin >> log; "
    "trap 'trap \"\" TERM; rmdir alone; echo term >> log; exit 1' TERM; "
    "if [ ! -e first ]; then touch first; echo x > up; while :; do sleep 0.05; done; fi; "
    "rmdir alone; echo end >> log; echo done";

static void a_takeover_ends_the_old_copy_first(void **state)
{
    (void)state;
    struct tool_kit kit;
    char log[256];
    struct hf_shell_tool tool = tool_of(SH(copy_script));
    die_with_a_call(&tool, "call-1", "up");
    open_one(&kit, &tool);
    kit.fence = 2;
    assert_string_equal(tool_kit_call(&kit, "t", "{}")->text, "\"done\\n\"");
    tool_kit_close(&kit);
    (void)read_file("log", log, sizeof log);
    assert_string_equal(log, "begin\nterm\nbegin\nend\n");
    assert_int_equal(locks_left(), 0);
}

static void another_call_of_the_session_ends_what_a_dead_worker_left(void **state)
{
    (void)state;
    struct tool_kit kit;
    char log[256];
    struct hf_shell_tool tool = tool_of(SH(copy_script));
    tool.recovery = HF_RECOVERY_ASK;
    die_with_a_call(&tool, "call-1", "up");
    open_one(&kit, &tool);
    (void)tool_kit_start(&kit, "t", "call-2", "{}", false);
    assert_string_equal(tool_kit_wait(&kit)->text, "\"done\\n\"");
    tool_kit_close(&kit);
    (void)read_file("log", log, sizeof log);
    assert_string_equal(log, "begin\nterm\nbegin\nend\n");
}

static void a_probe_is_asked_after_the_old_copy_has_ended(void **state)
{
    (void)state;
    struct tool_kit kit;
    char log[256];
    struct hf_shell_tool tool = tool_of(SH(copy_script));
    tool.recovery = HF_RECOVERY_PROBE;
    tool.probe_argv = SH("[ -d alone ] && exit 3; echo probe >> log; "
                         "grep -q end log && echo found && exit 0; exit 1");
    die_with_a_call(&tool, "call-1", "up");
    open_one(&kit, &tool);
    (void)tool_kit_start(&kit, "t", "call-1", "{}", true);
    assert_int_equal(tool_kit_wait(&kit)->probe, HF_PROBE_NOT_HAPPENED);
    assert_string_equal(tool_kit_call(&kit, "t", "{}")->text, "\"done\\n\"");
    (void)tool_kit_start(&kit, "t", "call-1", "{}", true);
    assert_int_equal(tool_kit_wait(&kit)->probe, HF_PROBE_HAPPENED);
    assert_string_equal(kit.said.text, "\"found\\n\"");
    tool_kit_close(&kit);
    (void)read_file("log", log, sizeof log);
    assert_string_equal(log, "begin\nterm\nprobe\nbegin\nend\nprobe\n");
}

/* A worker whose lease a later claim took finds the later copy, and leaves it alone. */
static void an_earlier_claim_never_ends_a_later_copy(void **state)
{
    (void)state;
    struct tool_kit later, earlier;
    char log[256];
    struct hf_shell_tool tool = tool_of(SH("echo begin >> log; echo x > up3; "
                                           "while [ ! -e go ]; do sleep 0.02; done; "
                                           "echo end >> log"));
    open_one(&later, &tool);
    later.fence = 7;
    (void)tool_kit_start(&later, "t", "call-1", "{}", false);
    while (read_file("up3", log, sizeof log) == 0)
        (void)hf_loop_step(later.loop, 5);
    open_one(&earlier, &tool);
    earlier.fence = 6;
    const struct tool_said *said = tool_kit_call(&earlier, "t", "{}");
    assert_int_equal(said->outcome, HF_TOOL_UNKNOWN);
    assert_string_equal(said->text, "a later claim of the session executes this call");
    tool_kit_close(&earlier);
    char path[128];
    path_of(path, "go");
    assert_int_equal(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
    assert_int_equal(tool_kit_wait(&later)->outcome, HF_TOOL_SUCCESS);
    tool_kit_close(&later);
    (void)read_file("log", log, sizeof log);
    assert_string_equal(log, "begin\nend\n");
}

/* The same worker, two attempts: the first one is still being ended when the second begins. */
static void two_attempts_of_a_call_never_overlap(void **state)
{
    (void)state;
    struct tool_kit kit;
    char log[256];
    struct hf_shell_tool tool = tool_of(SH(
        "mkdir alone || echo two >> log; echo begin >> log; "
        "trap 'trap \"\" TERM; sleep 0.3; rmdir alone; echo term >> log; exit 1' TERM; "
        "if [ ! -e first ]; then touch first; echo x > up; "
        "while :; do sleep 0.05; done; fi; rmdir alone; echo end >> log"));
    open_one(&kit, &tool);
    struct hf_invocation *call = tool_kit_start(&kit, "t", "call-1", "{}", false);
    while (read_file("up", log, sizeof log) == 0)
        (void)hf_loop_step(kit.loop, 5);
    hf_invocation_stop(call);
    assert_true(tool_kit_wait(&kit)->stopped);
    assert_int_equal(tool_kit_call(&kit, "t", "{}")->outcome, HF_TOOL_SUCCESS);
    tool_kit_close(&kit);
    (void)read_file("log", log, sizeof log);
    assert_string_equal(log, "begin\nterm\nbegin\nend\n");
}

static void calls_of_other_sessions_are_left_alone(void **state)
{
    (void)state;
    struct hf_child_lock *lock = NULL;
    struct tool_kit kit;
    struct hf_err err = { 0 };
    size_t left = 9;
    struct hf_shell_tool tool = tool_of(SH("echo x > up5; while [ ! -e go5 ]; do sleep "
                                           "0.02; done; echo fine"));
    struct hf_child_lock_plan plan = { .size = sizeof plan,
                                       .folder = locks,
                                       .session = "session-2",
                                       .call = "session-2/turn-9/1/c",
                                       .fence = 99 };
    open_one(&kit, &tool);
    (void)tool_kit_start(&kit, "t", "call-1", "{}", false);
    char text[8];
    while (read_file("up5", text, sizeof text) == 0)
        (void)hf_loop_step(kit.loop, 5);
    assert_int_equal(hf_child_lock_new(hf_alloc_system(), &plan, &lock, &err), 0);
    assert_int_equal(hf_child_lock_clear(lock, SIGKILL, &left, &err), 0);
    assert_int_equal(left, 0);
    hf_child_lock_free(lock);
    char path[128];
    path_of(path, "go5");
    assert_int_equal(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
    assert_string_equal(tool_kit_wait(&kit)->text, "\"fine\\n\"");
    tool_kit_close(&kit);
}

/* `work sweep` and the monitor: what no worker takes over is ended all the same. */
static void a_reaper_ends_what_a_dead_worker_left(void **state)
{
    (void)state;
    struct hf_store *store = NULL;
    struct hf_reaper *reaper = NULL;
    struct hf_err err = { 0 };
    int64_t ending = 1;
    char log[256];
    struct hf_shell_tool tool = tool_of(SH(copy_script));
    die_with_a_call(&tool, "call-1", "up");
    assert_int_equal(hf_store_open("sqlite::memory:", NULL, &store, &err), 0);
    assert_int_equal(hf_reaper_new(store, locks, &reaper, &err), 0);
    assert_int_equal(hf_reaper_pass(reaper, NULL, 5000, NULL, NULL, &ending, &err), 0);
    assert_int_equal(ending, 1);
    while (ending > 0) {
        assert_int_equal(hf_reaper_pass(reaper, NULL, 5000, NULL, NULL, &ending, &err),
                         0);
        (void)poll(NULL, 0, 5);
    }
    (void)read_file("log", log, sizeof log);
    assert_string_equal(log, "begin\nterm\n");
    assert_int_equal(locks_left(), 0);
    hf_reaper_free(reaper);
    hf_store_close(store);
}

/* ---- memory ------------------------------------------------------------------------ */

static void every_allocation_of_a_declaration_may_fail(void **state)
{
    (void)state;
    static const char *const env[] = { "A=1", NULL };
    static const char *const pass[] = { "PATH", NULL };
    static const char schema[] = "{\"properties\":{\"a\":{\"type\":\"string\"}}}";
    struct hf_shell_tool tool = tool_of(SH("true"));
    struct hf_tools_config config = config_of(&tool);
    struct fail_alloc fail;
    int rc = HF_ENOMEM;
    tool.flags = true;
    tool.schema = (struct hf_span){ schema, sizeof schema - 1 };
    tool.env = env;
    tool.pass_env = pass;
    config.builtins = (1U << HF_BUILTIN_COUNT) - 1;
    config.root = folder;
    config.alloc = &fail.alloc;
    for (int64_t at = 1; rc == HF_ENOMEM; at++) {
        struct hf_tools *tools = NULL;
        struct hf_err err = { 0 };
        fail_alloc_init(&fail, at);
        rc = hf_tools_new(&config, &tools, &err);
        hf_tools_free(tools);
        assert_int_equal(fail.live, 0);
    }
    assert_int_equal(rc, 0);
}

/* ---- bad input --------------------------------------------------------------------- */

static void refused(const struct hf_tools_config *config, const char *field,
                    const char *message)
{
    struct hf_tools *tools = NULL;
    struct hf_err err = { 0 };
    assert_int_equal(hf_tools_new(config, &tools, &err), HF_EINVAL);
    assert_null(tools);
    assert_string_equal(err.field, field);
    assert_string_equal(err.message, message);
}

static void what_is_declared_badly_is_refused_with_its_field(void **state)
{
    (void)state;
    static const char *const nothing[] = { NULL };
    static const char *const missing[] = { "NOT_THERE", NULL };
    static const char *const bad_env[] = { "NOVALUE", NULL };
    struct hf_shell_tool tool = tool_of(nothing);
    struct hf_tools_config config = config_of(&tool);
    refused(&config, "command", "tool t has no command");
    tool = tool_of(SH("true"));
    tool.recovery = HF_RECOVERY_NONE;
    refused(&config, "recovery",
            "tool t must declare its class: safe, keyed, probe or ask");
    tool = tool_of(SH("true"));
    tool.recovery = HF_RECOVERY_PROBE;
    refused(&config, "probe",
            "tool t: the class probe, and only it, has a probe command");
    tool = tool_of(SH("true"));
    tool.probe_argv = SH("true");
    refused(&config, "probe",
            "tool t: the class probe, and only it, has a probe command");
    tool = tool_of(SH("true"));
    tool.flags = true;
    refused(&config, "schema", "tool t: flags need a schema");
    tool.schema = (struct hf_span){ "{\"properties\":{\"a b\":{}}}", 25 };
    refused(&config, "schema", "tool t: the property a b cannot be a flag");
    tool = tool_of(SH("true"));
    tool.pass_env = missing;
    refused(&config, "pass_env", "tool t: the variable NOT_THERE is not set here");
    tool = tool_of(SH("true"));
    tool.env = bad_env;
    refused(&config, "env", "tool t: NOVALUE is not NAME=VALUE");
    tool = tool_of(SH("true"));
    tool.folder = "here";
    refused(&config, "folder", "tool t: the folder must be an absolute path");
    tool = tool_of(SH("true"));
    config.lock_folder = NULL;
    refused(&config, "lock_folder", "commands need a lock_folder, an absolute path");
    config = config_of(&tool);
    config.builtins = 1U << HF_BUILTIN_READ_FILE;
    refused(&config, "root", "file tools and run_command need a root folder");
    config.root = "/no/such/folder";
    refused(&config, "root", "root: /no/such/folder is not a folder");
    config = config_of(&tool);
    tool.name = "run_command";
    config.builtins = 1U << HF_BUILTIN_RUN_COMMAND;
    config.root = folder;
    refused(&config, "name", "there are two tools named run_command");
}

static void a_command_that_is_not_there_is_told_to_the_model(void **state)
{
    (void)state;
    struct tool_kit kit;
    static const char *const argv[] = { "no-such-program", NULL };
    struct hf_shell_tool tool = tool_of(argv);
    open_one(&kit, &tool);
    const struct tool_said *said = tool_kit_call(&kit, "t", "{}");
    assert_int_equal(said->outcome, HF_TOOL_FAILURE);
    assert_string_equal(said->code, "cannot_start");
    assert_non_null(strstr(said->text, "no-such-program"));
    tool_kit_close(&kit);
    assert_int_equal(locks_left(), 0);
}

static void run_command_runs_a_line_in_the_root(void **state)
{
    (void)state;
    struct tool_kit kit;
    char want[128];
    struct hf_tools_config config = { .size = sizeof config,
                                      .builtins = 1U << HF_BUILTIN_RUN_COMMAND,
                                      .root = folder,
                                      .lock_folder = locks,
                                      .env = own_env };
    tool_kit_open(&kit, &config);
    assert_int_equal(hf_toolset_find(kit.set, "run_command")->recovery, HF_RECOVERY_ASK);
    (void)snprintf(want, sizeof want, "\"%s hush\\n\"", folder);
    assert_string_equal(
        tool_kit_call(&kit, "run_command", "{\"command\":\"echo $PWD $SECRET\"}")->text,
        want);
    assert_string_equal(
        tool_kit_call(&kit, "run_command", "{\"command\":\"exit 4\"}")->code,
        "exit_code");
    tool_kit_close(&kit);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_command_gets_its_arguments_as_json_and_nothing_else),
        CASE(arguments_of_any_size_reach_standard_input),
        CASE(declared_flags_are_in_the_order_of_the_schema),
        CASE(an_exit_code_is_a_failure_with_the_output),
        CASE(the_beginning_and_the_end_of_the_output_are_kept),
        CASE(output_that_is_no_text_is_repaired),
        CASE(a_timeout_of_a_safe_tool_is_a_failure),
        CASE(a_timeout_of_an_ask_tool_is_unknown),
        CASE(what_a_command_leaves_behind_is_ended),
        CASE(a_call_that_is_given_up_ends_its_processes),
        CASE(freeing_the_tools_kills_what_runs),
        CASE(a_takeover_ends_the_old_copy_first),
        CASE(another_call_of_the_session_ends_what_a_dead_worker_left),
        CASE(a_probe_is_asked_after_the_old_copy_has_ended),
        CASE(an_earlier_claim_never_ends_a_later_copy),
        CASE(two_attempts_of_a_call_never_overlap),
        CASE(calls_of_other_sessions_are_left_alone),
        CASE(a_reaper_ends_what_a_dead_worker_left),
        CASE(every_allocation_of_a_declaration_may_fail),
        CASE(what_is_declared_badly_is_refused_with_its_field),
        CASE(a_command_that_is_not_there_is_told_to_the_model),
        CASE(run_command_runs_a_line_in_the_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
