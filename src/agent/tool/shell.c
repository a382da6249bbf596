/* Commands as tools: what a call becomes as a command, and what the command's end means as an
 * answer. A call runs on the loop; a probe blocks a thread of the executor. */
#include <poll.h>
#include <string.h>

#include <holdfast/bounds.h>

#include "agent/tool/execution.h"
#include "agent/tool/tools.h"
#include "base/err.h"
#include "base/json_get.h"
#include "base/text.h"

#define PROBE_MS 20

/* ---- a call as a command ----------------------------------------------------------- */

/* One call, or one probe. */
struct shell_call {
    struct tool_live live;
    const struct shell *shell;
    struct hf_invocation *call;
    struct hf_arena arena;
    struct tool_command command;
    struct tool_execution run;
    struct hf_timer timer;
    struct hf_watch *exit_watch;
    struct hf_watch *watches[HF_STREAM_COUNT];
};

/* The arguments of a command in the making. */
struct words {
    struct hf_arena *arena;
    const char **list;
    size_t count;
    int rc;
};

static void add_word(struct words *words, const char *word)
{
    if (words->count >= (size_t)HF_MAX_COMMAND_ARGS)
        words->rc = HF_ETOOBIG;
    else if (!word)
        words->rc = HF_ENOMEM;
    if (words->rc == 0)
        words->list[words->count++] = word;
}

/* --NAME or --NAME=VALUE. */
static void add_flag(struct words *words, const char *name, const struct json_t *value)
{
    enum hf_json_type type = hf_json_type_of(value);
    struct hf_buf text;
    if (type == HF_JSON_ARRAY) {
        for (size_t i = 0; i < hf_json_items(value); i++)
            add_flag(words, name, hf_json_item(value, i));
        return;
    }
    if (type == HF_JSON_NULL || (type == HF_JSON_BOOL && !hf_json_as_bool(value)))
        return;
    hf_buf_init(&text, words->arena->alloc, (size_t)HF_MAX_PAYLOAD_BYTES);
    hf_buf_text(&text, "--");
    hf_buf_text(&text, name);
    if (type != HF_JSON_BOOL)
        hf_buf_char(&text, '=');
    int rc = 0;
    if (type == HF_JSON_TEXT)
        hf_buf_text(&text, hf_json_as_text(value));
    else if (type != HF_JSON_BOOL)
        rc = hf_json_canonical(&text, value);
    words->rc = words->rc ? words->rc : rc;
    add_word(words, hf_buf_keep(&text, words->arena));
}

static bool is_declared(const struct shell *shell, const char *name)
{
    for (const char *const *at = shell->flags; *at; at++)
        if (hf_same(*at, name))
            return true;
    return false;
}

static int add_flags(struct words *words, const struct shell *shell,
                     const struct json_t *args, struct hf_err *err)
{
    const char *key = NULL;
    const struct json_t *value = NULL;
    for (void *at = NULL; hf_json_next(args, &at, &key, &value);)
        if (!is_declared(shell, key))
            return hf_fail(err, HF_EINVAL, "args", "there is no argument %.80s", key);
    for (const char *const *name = shell->flags; *name; name++)
        add_flag(words, *name, hf_json_member(args, *name));
    return 0;
}

static int make_words(struct shell_call *c, const char *const *argv, struct hf_err *err)
{
    struct hf_span args = hf_invocation_args(c->call);
    struct words words = { .arena = &c->arena };
    struct json_t *value = NULL;
    words.list = hf_arena_array(&c->arena, (size_t)HF_MAX_COMMAND_ARGS + 1,
                                sizeof(*words.list));
    if (!words.list)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; argv[i]; i++)
        add_word(&words, argv[i]);
    int rc = 0;
    if (c->shell->flags || c->shell->line)
        rc = hf_json_parse(args, (size_t)HF_MAX_TURN_TEXT_BYTES, "args", &value, err);
    if (rc == 0 && c->shell->flags)
        rc = add_flags(&words, c->shell, value, err);
    if (rc == 0 && c->shell->line)
        add_word(&words, hf_arena_text(&c->arena, hf_json_as_text(
                                                      hf_json_member(value, "command"))));
    hf_json_free(value);
    if (rc == 0 && words.rc)
        rc = hf_fail_plain(err, words.rc);
    c->command.argv = words.list;
    return rc;
}

static const char *const *make_call_env(struct shell_call *c)
{
    const char *const *from = c->shell->tool.env;
    size_t count = 0;
    while (from[count])
        count++;
    const char **env = hf_arena_array(&c->arena, count + 2, sizeof(*env));
    const char *mark = hf_arena_join(&c->arena,
                                     "HOLDFAST_CALL=", hf_invocation_key_text(c->call));
    if (!env || !mark)
        return NULL;
    memcpy(env, from, count * sizeof(*env));
    env[count] = mark;
    return env;
}

/* The key without its attempt: a retry is the same call. */
static const char *call_name(struct shell_call *c)
{
    const char *key = hf_invocation_key_text(c->call);
    const char *slash = strrchr(key, '/');
    return hf_arena_copy(&c->arena, key, slash ? (size_t)(slash - key) : strlen(key));
}

/* Fills `c`, which is zeroed, and takes the lock of the call. */
static int prepare(struct shell_call *c, const char *const *argv, struct hf_err *err)
{
    const struct shell *shell = c->shell;
    const struct hf_invocation_key *key = hf_invocation_key(c->call);
    struct hf_loop *loop = hf_invocation_loop(c->call);
    hf_arena_init_small(&c->arena, shell->tools->alloc, 1024, 8192);
    c->command = (struct tool_command){
        .env = make_call_env(c),
        .folder = shell->tool.folder,
        .timeout_ms = shell->tool.timeout_ms,
        .output_bytes = (size_t)shell->tool.output_bytes,
        .lock = { .size = sizeof c->command.lock,
                  .folder = shell->tools->config.lock_folder,
                  .session = key->session_id,
                  .call = call_name(c),
                  .fence = key->fence },
    };
    if (!shell->flags && !shell->line)
        c->command.input = hf_invocation_args(c->call);
    if (!c->command.env || !c->command.lock.call)
        return hf_fail_plain(err, HF_ENOMEM);
    int rc = make_words(c, argv, err);
    if (rc == 0)
        rc = tool_begin(&c->run, shell->tools->alloc, hf_loop_clock(loop), &c->command,
                        err);
    return rc;
}

/* ---- its end as an answer ---------------------------------------------------------- */

static void say_unstarted(struct hf_invocation *call, int code, const struct hf_err *err)
{
    if (code == HF_EHELD)
        tool_unknown(call, err->message);
    else if (code == HF_EINVAL || code == HF_ETOOBIG)
        tool_fail(call, HF_FAILURE_INVALID_REQUEST, "cannot_start", err->message);
    else
        tool_fail_again(call, "cannot_start", err->message);
}

/* A failure of a class that may be performed again; of others it is not known what the command
 * did before it was ended. */
static void say_broken(const struct shell_call *c, const char *code, const char *text)
{
    if (c->shell->tool.recovery == HF_RECOVERY_SAFE ||
        c->shell->tool.recovery == HF_RECOVERY_KEYED)
        tool_fail(c->call, c->run.timed_out ? HF_FAILURE_TIMEOUT : HF_FAILURE_EXECUTION,
                  code, text);
    else
        tool_unknown(c->call, text);
}

static void put_end(const struct shell_call *c, struct hf_buf *text)
{
    const struct tool_execution *run = &c->run;
    if (run->timed_out) {
        hf_buf_text(text, "The command was ended after its time limit of ");
        hf_buf_i64(text, c->command.timeout_ms);
        hf_buf_text(text, " ms.\n");
    } else if (run->stopped) {
        hf_buf_text(text, "The command was stopped.\n");
    } else if (!run->exit.known) {
        hf_buf_text(text, "How the command ended is not known.\n");
    } else if (run->exit.signal) {
        hf_buf_text(text, "The command was ended by signal ");
        hf_buf_i64(text, run->exit.signal);
        hf_buf_text(text, ".\n");
    } else if (run->exit.exit_code) {
        hf_buf_text(text, "The command ended with exit code ");
        hf_buf_i64(text, run->exit.exit_code);
        hf_buf_text(text, ".\n");
    }
}

static void answer(const struct shell_call *c)
{
    const struct tool_execution *run = &c->run;
    struct hf_buf text;
    if (run->code) {
        say_unstarted(c->call, run->code, &run->err);
        return;
    }
    hf_buf_init(&text, c->shell->tools->alloc, 2 * (size_t)HF_MAX_PAYLOAD_BYTES);
    put_end(c, &text);
    tool_put_output(run, &text);
    if (hf_buf_state(&text))
        ; /* no memory: the call has no answer */
    else if (run->timed_out)
        say_broken(c, "timeout", hf_buf_str(&text));
    else if (run->stopped || !run->exit.known || run->exit.signal)
        say_broken(c, run->stopped ? "stopped" : "signal", hf_buf_str(&text));
    else if (run->exit.exit_code)
        tool_fail(c->call, HF_FAILURE_EXECUTION, "exit_code", hf_buf_str(&text));
    else
        tool_say(c->call, (struct hf_span){ hf_buf_str(&text), text.len });
    hf_buf_fini(&text);
}

/* ---- on the loop ------------------------------------------------------------------- */

static void release(struct shell_call *c)
{
    struct hf_invocation *call = c->call;
    struct hf_tools *tools = c->shell->tools;
    hf_timer_stop(hf_invocation_loop(call), &c->timer);
    hf_watch_free(c->exit_watch);
    for (int s = 0; s < HF_STREAM_COUNT; s++)
        hf_watch_free(c->watches[s]);
    tool_fini(&c->run);
    hf_arena_fini(&c->arena);
    tool_live_remove(tools, &c->live);
    tools->alloc->free(tools->alloc->user, c);
    hf_invocation_end(call);
}

static void tend(struct shell_call *c);

static void on_ready(void *user, int events)
{
    (void)events;
    tend(user);
}

static void on_timer(void *user)
{
    tend(user);
}

/* Watches a descriptor while it can say something. Without memory the timer looks. */
static bool watch(struct shell_call *c, struct hf_watch **watch, int fd)
{
    struct hf_watcher watcher = { c, on_ready };
    if (fd < 0) {
        hf_watch_free(*watch);
        *watch = NULL;
        return true;
    }
    return *watch || hf_watch_new(hf_invocation_loop(c->call), fd, HF_READABLE, &watcher,
                                  watch, NULL) == 0;
}

static bool watch_all(struct shell_call *c)
{
    struct tool_execution *run = &c->run;
    bool all = !run->child || watch(c, &c->exit_watch, hf_child_pidfd(run->child));
    for (int s = 0; s < HF_STREAM_COUNT; s++)
        all = watch(c, &c->watches[s], run->at_end[s] ? -1 : run->output[s]) && all;
    return all;
}

/* The timer runs since run_call, and moving it needs no memory. */
static void look_after(struct shell_call *c, hf_ms wait)
{
    struct hf_task task = { c, on_timer };
    int rc = hf_timer_start(hf_invocation_loop(c->call), &c->timer, wait, &task);
    hf_assert(rc == 0);
}

static void tend(struct shell_call *c)
{
    if (tool_step(&c->run)) {
        answer(c);
        release(c);
        return;
    }
    hf_ms wait = tool_wait(&c->run);
    if (!watch_all(c) && wait > PROBE_MS)
        wait = PROBE_MS;
    look_after(c, wait);
}

static void kill_call(struct tool_live *live)
{
    struct shell_call *c = (struct shell_call *)(void *)live;
    release(c);
}

static void run_call(void *user, struct hf_invocation *call)
{
    struct shell *shell = user;
    const struct hf_alloc *alloc = shell->tools->alloc;
    struct hf_task task = { NULL, on_timer };
    struct hf_err err = { 0 };
    struct shell_call *c = alloc->realloc(alloc->user, NULL, sizeof *c);
    if (!c) {
        tool_fail_again(call, "cannot_start", "no memory");
        hf_invocation_end(call);
        return;
    }
    *c = (struct shell_call){ .shell = shell, .call = call, .live.kill = kill_call };
    task.user = c;
    int rc = hf_timer_start(hf_invocation_loop(call), &c->timer, 0, &task);
    if (rc == 0)
        rc = prepare(c, shell->tool.argv, &err);
    if (rc == 0) {
        tool_live_add(shell->tools, &c->live);
        return; /* the timer begins it */
    }
    say_unstarted(call, rc, &err);
    hf_timer_stop(hf_invocation_loop(call), &c->timer);
    hf_arena_fini(&c->arena);
    alloc->free(alloc->user, c);
    hf_invocation_end(call);
}

static void stop_call(void *user, struct hf_invocation *call)
{
    struct shell *shell = user;
    for (struct tool_live *at = shell->tools->live; at; at = at->next) {
        struct shell_call *c = (struct shell_call *)(void *)at;
        if (at->kill != kill_call || c->call != call)
            continue;
        tool_stop(&c->run);
        look_after(c, 0);
        return;
    }
}

/* ---- probes ------------------------------------------------------------------------ */

static void wait_for(const struct tool_execution *run)
{
    struct pollfd fds[1 + HF_STREAM_COUNT];
    hf_ms wait = tool_wait(run);
    nfds_t n = 0;
    if (run->child && hf_child_pidfd(run->child) >= 0)
        fds[n++] = (struct pollfd){ .fd = hf_child_pidfd(run->child), .events = POLLIN };
    for (int s = 0; s < HF_STREAM_COUNT; s++)
        if (run->output[s] >= 0 && !run->at_end[s])
            fds[n++] = (struct pollfd){ .fd = run->output[s], .events = POLLIN };
    (void)poll(fds, n, wait < 10 * PROBE_MS ? (int)wait : 10 * PROBE_MS);
}

static enum hf_probe ask(void *user, struct hf_invocation *call)
{
    struct shell *shell = user;
    struct shell_call c = { .shell = shell, .call = call };
    struct hf_err err = { 0 };
    enum hf_probe happened = HF_PROBE_CANNOT_TELL;
    if (prepare(&c, shell->tool.probe_argv, &err)) {
        hf_arena_fini(&c.arena);
        return happened;
    }
    while (!tool_step(&c.run)) {
        if (hf_invocation_stopped(call) && !c.run.stopped)
            tool_stop(&c.run);
        wait_for(&c.run);
    }
    const struct tool_execution *run = &c.run;
    bool exited = !run->code && !run->timed_out && !run->stopped && run->exit.known &&
                  !run->exit.signal;
    if (exited && run->exit.exit_code == 0) {
        answer(&c);
        happened = HF_PROBE_HAPPENED;
    } else if (exited && run->exit.exit_code == 1) {
        happened = HF_PROBE_NOT_HAPPENED;
    }
    tool_fini(&c.run);
    hf_arena_fini(&c.arena);
    return happened;
}

int shell_add(struct shell *shell, struct hf_toolset *into, struct hf_err *err)
{
    const struct hf_shell_tool *tool = &shell->tool;
    struct hf_tool made = {
        .size = sizeof made,
        .name = tool->name,
        .description = tool->description,
        .schema = tool->schema,
        .recovery = tool->recovery,
        .timeout_ms = tool->timeout_ms + SHELL_SPARE_MS,
        .output_bytes = tool->output_bytes + SHELL_SPARE_BYTES,
        .user = shell,
        .run = run_call,
        .asynchronous = true,
        .stop = stop_call,
        .probe = tool->recovery == HF_RECOVERY_PROBE ? ask : NULL,
        .approval = tool->approval,
    };
    return hf_toolset_add(into, &made, err);
}
