/* One execution of a command: starting it, showing and capturing what it writes, timing it
 * out, and waiting until all it started has gone. See holdfast/run.h. */
#include "run/command/execute.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/sized.h"
#include "base/text.h"

#define VARIABLE_MAX ((size_t)131072) /* the kernel's bound, with the name and the NUL */
#define ROUNDS 16       /* reads of a stream before the other gets its turn */
#define LAST_ROUNDS 128 /* of 16 KiB: more than a plain user's pipe can hold */
#define PIPE_WRITE 4096 /* a pipe that is ready takes this much without blocking */

hf_ms hf_run_mono(const struct hf_run *run)
{
    return run->store->clock->mono_ms(run->store->clock->user);
}

/* ---- preparing --------------------------------------------------------------------- */

int hf_run_new(struct hf_store *store, const char *lock_folder, struct hf_run **ret_run,
               struct hf_err *err)
{
    const struct hf_alloc *alloc = store->alloc;
    struct hf_run *run = alloc->realloc(alloc->user, NULL, sizeof *run);
    if (!run)
        return hf_fail_plain(err, HF_ENOMEM);
    memset(run, 0, sizeof *run);
    run->store = store;
    run->alloc = alloc;
    run->lock.fd = -1;
    hf_arena_init(&run->arena, alloc);
    int rc = lock_folder ? hf_lock_new(lock_folder, store->random, &run->lock, err)
                         : hf_fail(err, HF_EINVAL, "lock_folder", "a folder is needed");
    for (int s = 0; s < HF_STREAM_COUNT; s++) {
        run->relay[s].fd = -1;
        if (rc == 0)
            rc = hf_capture_init(&run->capture[s], alloc, err);
    }
    if (rc)
        hf_run_free(run);
    else
        *ret_run = run;
    return rc;
}

const char *hf_run_lock(const struct hf_run *run)
{
    hf_lock_touch(&run->lock);
    return run->lock.path;
}

void hf_run_free(struct hf_run *run)
{
    if (!run)
        return;
    bool open = run->child && !run->over;
    bool waits = run->grip == HF_GRIP_WAITS &&
                 run->disposition == HF_DISPOSITION_OWNER_BOUND;
    bool unstored = hf_capture_dirty(&run->capture[HF_STDOUT]) ||
                    hf_capture_dirty(&run->capture[HF_STDERR]);
    bool kept = run->keeper.started && (open || unstored);
    hf_keeper_end(&run->keeper);
    if (!kept)
        hf_keeper_remove(run->lock.path);
    if (open || waits || kept || run->left || run->result.end == HF_RUN_UNRECORDED)
        hf_lock_close(&run->lock); /* the row names it: a proof of death will need it */
    else
        hf_lock_remove(&run->lock);
    hf_asker_end(run);
    hf_child_free(run->child);
    for (int s = 0; s < HF_STREAM_COUNT; s++)
        hf_capture_fini(&run->capture[s], run->alloc);
    hf_arena_fini(&run->arena);
    run->alloc->free(run->alloc->user, run);
}

void hf_run_leave(struct hf_run *run)
{
    if (run)
        run->left = true;
    hf_run_free(run);
}

const struct hf_run_result *hf_run_result(const struct hf_run *run)
{
    return &run->result;
}

/* ---- the environment --------------------------------------------------------------- */

/* A list of "NAME=value" in which a later one replaces an earlier one of its name. */
struct env {
    struct hf_arena *arena;
    const char **list;
    size_t count, room;
    bool failed;
};

static size_t name_length(const char *entry)
{
    return strcspn(entry, "=");
}

static void env_put(struct env *env, const char *entry)
{
    size_t len = name_length(entry);
    for (size_t i = 0; i < env->count; i++) {
        if (name_length(env->list[i]) == len && memcmp(env->list[i], entry, len) == 0) {
            env->list[i] = entry;
            return;
        }
    }
    if (env->count + 2 > env->room) {
        size_t room = env->room ? 2 * env->room : 64;
        const char **list = hf_arena_array(env->arena, room, sizeof *list);
        if (!list) {
            env->failed = true;
            return;
        }
        if (env->count)
            memcpy(list, env->list, env->count * sizeof *list);
        env->list = list;
        env->room = room;
    }
    env->list[env->count++] = entry;
    env->list[env->count] = NULL;
}

static void env_set(struct env *env, const char *name, const char *value)
{
    struct hf_buf text;
    if (!value)
        return;
    hf_buf_init(&text, env->arena->alloc, (size_t)2 << 20);
    hf_buf_text(&text, name);
    hf_buf_char(&text, '=');
    hf_buf_text(&text, value);
    const char *entry = hf_buf_keep(&text, env->arena);
    if (entry)
        env_put(env, entry);
    else
        env->failed = true;
}

static void env_drop(struct env *env, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < env->count; i++) {
        if (name_length(env->list[i]) == len && memcmp(env->list[i], name, len) == 0) {
            env->list[i] = env->list[--env->count];
            env->list[env->count] = NULL;
            return;
        }
    }
}

/* A value of this unit, as JSON. That of an outer unit, in whose command this runs, is dropped. */
static int env_json(struct env *env, const char *name, const char *field,
                    const char *json, struct hf_err *err)
{
    size_t most = VARIABLE_MAX - strlen(name) - 2;
    if (json && strlen(json) > most)
        return hf_fail(err, HF_ETOOBIG, field,
                       "the %s has %zu bytes, and a command's variable holds "
                       "at most %zu: store a reference to it",
                       field, strlen(json), most);
    if (json)
        env_set(env, name, json);
    else
        env_drop(env, name);
    return 0;
}

static const char *find(const char *const *env, const char *name)
{
    size_t len = strlen(name);
    for (; *env; env++)
        if (name_length(*env) == len && memcmp(*env, name, len) == 0)
            return *env;
    return NULL;
}

static int make_env(struct hf_run *run, const struct hf_run_plan *plan,
                    const char *const **ret_env, struct hf_err *err)
{
    static const char *const nothing[] = { NULL };
    const char *const *base = plan->base_env ? plan->base_env : nothing;
    const struct hf_command *command = plan->command;
    struct hf_buf number;
    struct env env = { .arena = &run->arena };
    for (size_t i = 0; base[i]; i++)
        env_put(&env, base[i]);
    for (size_t i = 0; command->env && command->env[i]; i++)
        env_put(&env, command->env[i]);
    for (size_t i = 0; command->secrets && command->secrets[i]; i++)
        if (!find(base, command->secrets[i]))
            return hf_fail(err, HF_EINVAL, "secrets",
                           "the secret %.80s is not in this process's environment",
                           command->secrets[i]);
    hf_buf_init(&number, run->alloc, 32);
    hf_buf_i64(&number, run->attempt);
    env_set(&env, "HOLDFAST_DB", plan->db);
    env_set(&env, "HOLDFAST_WORK_ID", run->work_id);
    env_set(&env, "HOLDFAST_LEASE_TOKEN", run->token);
    env_set(&env, "HOLDFAST_OWNER", run->owner);
    env_set(&env, "HOLDFAST_INCARNATION", run->incarnation);
    env_set(&env, "HOLDFAST_ATTEMPT", hf_buf_str(&number));
    env_set(&env, HF_LOCK_VARIABLE, run->lock.path);
    hf_buf_fini(&number);
    int rc = env_json(&env, "HOLDFAST_RESUME_PAYLOAD", "resume_payload",
                      plan->item->work.resume_payload, err);
    if (rc == 0)
        rc = env_json(&env, "HOLDFAST_INPUT", "input", command->input, err);
    if (rc == 0 && env.failed)
        rc = hf_fail_plain(err, HF_ENOMEM);
    *ret_env = env.list;
    return rc;
}

/* ---- starting ---------------------------------------------------------------------- */

static int copy_plan(struct hf_run *run, const struct hf_run_plan *plan,
                     struct hf_err *err)
{
    const struct hf_work *work = &plan->item->work;
    run->command = plan->command;
    if (plan->who)
        run->who = *plan->who;
    run->who.size = sizeof run->who;
    run->work_id = hf_arena_text(&run->arena, work->work_id);
    run->token = hf_arena_text(&run->arena, plan->item->token);
    run->owner = hf_arena_text(&run->arena, work->owner);
    run->incarnation = hf_arena_text(&run->arena, work->owner_incarnation);
    run->disposition = hf_disposition_of(work->disposition);
    run->attempt = run->grip_attempt = work->attempt_count;
    run->failures = work->failures;
    run->max_attempts = work->max_attempts;
    run->ttl_ms = work->lease_ttl_ms;
    for (int s = 0; s < HF_STREAM_COUNT; s++)
        run->relay[s].fd = plan->show[s];
    run->result.status = hf_status_word(HF_STATUS_RUNNING);
    hf_ms now = hf_run_mono(run);
    run->renew_at = now + run->ttl_ms / 3;
    run->look_at = now + HF_RUN_LOOK_MS;
    if (!run->work_id || !run->token || !run->owner || !run->incarnation)
        return hf_fail_plain(err, HF_ENOMEM);
    return hf_life_describe(&run->arena, getpid(), NULL, &run->holder, err);
}

static int write_lock(struct hf_run *run, struct hf_err *err)
{
    return hf_lock_write(
        &run->lock,
        &(struct hf_lock_facts){ .work_id = run->work_id,
                                 .attempt = run->attempt,
                                 .disposition = hf_disposition_word(run->disposition),
                                 .holder = run->holder,
                                 .group = run->child ? hf_child_pid(run->child) : 0 },
        run->alloc, err);
}

/* A command that is never run again must survive its runner, so its output does too. */
static int start_child(struct hf_run *run, struct hf_child_plan *child,
                       struct hf_err *err)
{
    int write_ends[HF_STREAM_COUNT];
    if (run->disposition != HF_DISPOSITION_OWNER_BOUND)
        return hf_child_start(run->alloc, child, &run->child, err);
    int rc = hf_keeper_start(&run->keeper, &run->lock, write_ends, err);
    if (rc)
        return rc;
    child->output_fds = write_ends;
    rc = hf_child_start(run->alloc, child, &run->child, err);
    for (int s = 0; s < HF_STREAM_COUNT; s++)
        (void)close(write_ends[s]); /* the command has them, or there is none */
    return rc;
}

static int start(struct hf_run *run, const struct hf_run_plan *plan, struct hf_err *err)
{
    const char *const *env = NULL;
    int rc = make_env(run, plan, &env, err);
    if (rc == 0)
        rc = hf_run_clear_way(run, 2 * HF_RUN_KILL_MS, err);
    if (rc == 0)
        rc = write_lock(run, err);
    struct hf_child_plan child = { .size = sizeof child,
                                   .argv = plan->command->argv,
                                   .env = env,
                                   .cwd = plan->command->cwd,
                                   .stdin_fd = plan->stdin_fd,
                                   .inherit_fd = run->lock.fd,
                                   .terminal = plan->terminal };
    return rc ? rc : start_child(run, &child, err);
}

/* From here on the lock is the command's alone, so that it tells whether anything runs. */
static void let_go(struct hf_run *run)
{
    struct hf_lock_facts facts;
    struct hf_err ignored;
    (void)write_lock(run, &ignored); /* the group only helps to find more of the tree */
    hf_lock_close(&run->lock);
    if (hf_lock_look(&run->arena, run->lock.path, &facts, &run->tree) == HF_LOCK_GONE)
        run->tree = (struct hf_tree){ .path = run->lock.path };
    run->tree.path = run->lock.path;
    run->tree.group = hf_child_pid(run->child);
}

int hf_run_begin(struct hf_run *run, const struct hf_run_plan *wanted, struct hf_err *err)
{
    struct hf_run_plan plan;
    struct hf_err why = { 0 };
    int rc = hf_sized_copy(wanted, sizeof plan, sizeof plan, &plan, &why);
    if (rc == 0 && (!plan.item || !plan.item->token || !plan.command || run->child))
        rc = hf_fail(&why, HF_EINVAL, "item",
                     "a claimed unit and its command are needed");
    if (rc == 0)
        rc = copy_plan(run, &plan, &why);
    if (rc == 0)
        rc = hf_asker_start(run, &why);
    if (rc)
        return hf_fail_as(err, rc, &why);
    rc = start(run, &plan, &why);
    if (rc) {
        hf_run_fail_start(run, &why);
        return hf_fail_as(err, rc, &why);
    }
    let_go(run);
    hf_ms now = hf_run_mono(run);
    run->started = now;
    run->terminal = plan.terminal;
    run->flush_at = now + HF_RUN_FLUSH_MS;
    run->timeout_at = plan.command->timeout_ms ? now + plan.command->timeout_ms : 0;
    hf_run_note_start(run);
    return 0;
}

/* ---- stopping ---------------------------------------------------------------------- */

static hf_ms kill_after(const struct hf_run *run)
{
    return run->command->kill_after_ms ? run->command->kill_after_ms : HF_RUN_KILL_MS;
}

/* The command has ended, and how is known: nothing changes that. What it left behind is ended
 * at once, and a reader who does not read is waited for no longer. */
static void stop_rest(struct hf_run *run)
{
    run->kill_at = hf_run_mono(run);
    for (int s = 0; run->settled && s < HF_STREAM_COUNT; s++) {
        run->relay[s].fd = -1;
        run->relay[s].from = run->relay[s].to = 0;
    }
}

void hf_run_stop(struct hf_run *run, enum hf_run_stop why)
{
    if (!run->child || run->over)
        return;
    if (run->exited) {
        stop_rest(run);
        return;
    }
    if (run->result.stop != HF_RUN_GOES_ON) {
        run->kill_at = hf_run_mono(run); /* asked twice: no more patience */
        return;
    }
    run->result.stop = why;
    run->kill_at = hf_run_mono(run) + kill_after(run);
    /* To the group first: the terminal's way, and what a command expects of ^C. */
    if (why == HF_RUN_INTERRUPT)
        hf_child_signal(run->child, SIGINT);
    else
        (void)hf_tree_signal(&run->tree, SIGTERM);
    hf_child_signal(run->child, SIGCONT); /* what is stopped hears nothing */
}

static void tend_timers(struct hf_run *run, hf_ms now)
{
    if (run->timeout_at && now >= run->timeout_at && !run->exited &&
        run->result.stop == HF_RUN_GOES_ON)
        hf_run_stop(run, HF_RUN_TIMEOUT);
    if (run->grip == HF_GRIP_LOST && !run->exited && run->result.stop == HF_RUN_GOES_ON)
        hf_run_stop(run, HF_RUN_LOST);
    if (run->kill_at && now >= run->kill_at) {
        hf_child_signal(run->child, SIGKILL);
        (void)hf_tree_signal(&run->tree, SIGKILL);
        run->kill_at = now + 1000;
    }
}

/* ---- output ------------------------------------------------------------------------ */

static bool relay_full(const struct hf_relay *relay)
{
    return relay->fd >= 0 && relay->to >= HF_RELAY_BYTES;
}

static void relay_add(struct hf_relay *relay, const char *bytes, size_t len)
{
    if (relay->fd < 0)
        return;
    hf_assert(len <= HF_RELAY_ROOM - relay->to);
    memcpy(relay->bytes + relay->to, bytes, len);
    relay->to += len;
}

/* Writes what the descriptor takes without blocking. A reader that has gone away ends the
 * showing, not the command. */
static void relay_write(struct hf_relay *relay)
{
    while (relay->fd >= 0 && relay->from < relay->to) {
        struct pollfd ready = { .fd = relay->fd, .events = POLLOUT };
        if (poll(&ready, 1, 0) != 1)
            break;
        size_t len = relay->to - relay->from;
        ssize_t put = write(relay->fd, relay->bytes + relay->from,
                            len < PIPE_WRITE ? len : PIPE_WRITE);
        if (put > 0)
            relay->from += (size_t)put;
        else if (errno != EINTR && errno != EAGAIN)
            relay->fd = -1;
        else if (errno == EAGAIN)
            break;
    }
    if (relay->from == relay->to || relay->fd < 0)
        relay->from = relay->to = 0;
    if (relay->from > 0) {
        memmove(relay->bytes, relay->bytes + relay->from, relay->to - relay->from);
        relay->to -= relay->from;
        relay->from = 0;
    }
}

static int output_fd(const struct hf_run *run, enum hf_stream stream)
{
    return run->keeper.started ? run->keeper.kept[stream].pipe
                               : hf_child_output_fd(run->child, stream);
}

static size_t read_output(struct hf_run *run, enum hf_stream stream, char *bytes,
                          size_t room)
{
    return run->keeper.started ? hf_keeper_read(&run->keeper, stream, bytes, room)
                               : hf_child_read(run->child, stream, bytes, room);
}

/* Reads what is in the pipe, as long as the relay holds less than `most`. False when that
 * was not all. */
static bool pump(struct hf_run *run, enum hf_stream stream, size_t most, int rounds)
{
    struct hf_relay *relay = &run->relay[stream];
    char bytes[16384];
    relay_write(relay);
    for (; rounds > 0; rounds--) {
        if (relay->fd >= 0 && relay->to >= most)
            return false;
        size_t room = relay->fd >= 0 ? most - relay->to : sizeof bytes;
        size_t got = read_output(run, stream, bytes,
                                 room < sizeof bytes ? room : sizeof bytes);
        if (got == 0)
            break;
        hf_capture_add(&run->capture[stream], bytes, got);
        relay_add(relay, bytes, got);
        relay_write(relay);
    }
    return true;
}

/* All writers have gone: the rest, so that what is stored at the end is the whole. A pipe that its
 * command made larger than ours waits for the reader. */
static bool pump_rest(struct hf_run *run)
{
    bool all = true;
    for (int s = 0; s < HF_STREAM_COUNT; s++)
        all = pump(run, (enum hf_stream)s, HF_RELAY_ROOM, LAST_ROUNDS) && all;
    return all;
}

/* ---- stepping ---------------------------------------------------------------------- */

static hf_ms sooner(hf_ms wait, hf_ms at, hf_ms now)
{
    hf_ms left = at > now ? at - now : 0;
    return at && left < wait ? left : wait;
}

size_t hf_run_poll(struct hf_run *run, struct pollfd fds[HF_RUN_FDS], hf_ms *ret_wait_ms)
{
    hf_ms now = hf_run_mono(run), wait = 1000;
    size_t n = 0;
    if (run->over || !run->child) {
        *ret_wait_ms = 0;
        return 0;
    }
    if (hf_child_pidfd(run->child) >= 0)
        fds[n++] = (struct pollfd){ .fd = hf_child_pidfd(run->child), .events = POLLIN };
    for (int s = 0; s < HF_STREAM_COUNT; s++) {
        const struct hf_relay *relay = &run->relay[s];
        int fd = output_fd(run, (enum hf_stream)s);
        if (fd >= 0 && !relay_full(relay))
            fds[n++] = (struct pollfd){ .fd = fd, .events = POLLIN };
        if (relay->fd >= 0 && relay->to > relay->from)
            fds[n++] = (struct pollfd){ .fd = relay->fd, .events = POLLOUT };
    }
    bool asks = !run->asker.busy;
    if (!asks && run->asker.started)
        fds[n++] = (struct pollfd){ .fd = run->asker.bell, .events = POLLIN };
    if (asks && run->grip == HF_GRIP_HOLDS)
        wait = sooner(wait, run->renew_at, now);
    if (asks && run->grip != HF_GRIP_SETTLED && run->grip != HF_GRIP_LOST)
        wait = sooner(wait, run->look_at, now);
    wait = sooner(wait, run->exited ? 0 : run->timeout_at, now);
    wait = sooner(wait, run->kill_at, now);
    if (asks &&
        (hf_capture_dirty(&run->capture[0]) || hf_capture_dirty(&run->capture[1])))
        wait = sooner(wait, run->flush_at, now);
    if (run->exited)
        wait = wait < 20 ? wait
                         : 20; /* what it left behind has no descriptor to wait for */
    *ret_wait_ms = wait;
    return n;
}

/* Does anything of the tree run? The lock and the group tell cheaply that nothing does. */
static size_t left_of(struct hf_run *run)
{
    struct hf_arena arena;
    struct hf_lock_facts facts;
    struct hf_tree tree;
    hf_arena_init(&arena, run->alloc);
    bool held = hf_lock_look(&arena, run->lock.path, &facts, &tree) == HF_LOCK_HELD;
    hf_arena_fini(&arena);
    bool grouped = kill(-(pid_t)run->tree.group, 0) == 0 || errno == EPERM;
    return held || grouped ? hf_tree_signal(&run->tree, 0) : 0;
}

/* The command has ended: what it left behind is ended too, so that nothing continues under a
 * unit that is closed. True when nothing is left. */
static bool clean_up(struct hf_run *run, hf_ms now)
{
    size_t left = left_of(run);
    if (left == 0)
        return true;
    if (run->result.left_behind == 0) {
        run->result.left_behind = (int64_t)left;
        (void)hf_tree_signal(&run->tree, SIGTERM);
        if (!run->kill_at)
            run->kill_at = now + kill_after(run);
    }
    return false;
}

static void note_exit(struct hf_run *run, hf_ms now)
{
    struct hf_child_exit *how = &run->result.exit;
    if (run->exited || !hf_child_exited(run->child, how))
        return;
    run->exited = true;
    run->ended = now;
    run->kill_at = 0;
    if (run->terminal && how->signal == SIGINT && run->result.stop == HF_RUN_GOES_ON)
        run->result.stop = HF_RUN_INTERRUPT; /* ^C */
    run->result.exit_code = !how->known   ? 125
                            : how->signal ? 128 + how->signal
                                          : how->exit_code;
}

static bool drained(const struct hf_run *run)
{
    for (int s = 0; s < HF_STREAM_COUNT; s++)
        if (run->relay[s].to > run->relay[s].from)
            return false;
    return true;
}

bool hf_run_step(struct hf_run *run)
{
    if (run->over || !run->child)
        return true;
    hf_ms now = hf_run_mono(run);
    note_exit(run, now);
    for (int s = 0; s < HF_STREAM_COUNT; s++)
        (void)pump(run, (enum hf_stream)s, HF_RELAY_BYTES, ROUNDS);
    hf_asker_take(run);
    tend_timers(run, now);
    bool ended = run->exited && clean_up(run, now);
    if (ended && !run->settled && !run->asker.busy && pump_rest(run))
        run->settled = hf_run_settle(run, now);
    run->over = run->settled && drained(run);
    if (!run->settled)
        hf_asker_ask(run, now);
    return run->over;
}
