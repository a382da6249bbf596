/* Child processes: started without the rest of the caller's descriptors, awaited by a pidfd,
 * signalled, and ended with their process group (contracts: holdfast/child.h). */
#include <holdfast/child.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/sized.h"
#include "base/text.h"

struct hf_child {
    const struct hf_alloc *alloc;
    pid_t pid;
    int pidfd;
    int out[HF_STREAM_COUNT];
    bool exited;
    struct hf_child_exit how;
};

/* ---- finding ----------------------------------------------------------------------- */

static const char *variable(const char *const *env, const char *name)
{
    size_t len = strlen(name);
    for (; *env; env++)
        if (hf_starts_with(*env, name) && (*env)[len] == '=')
            return *env + len + 1;
    return NULL;
}

static bool runs(const char *path)
{
    struct stat at;
    return stat(path, &at) == 0 && S_ISREG(at.st_mode) && access(path, X_OK) == 0;
}

/* FOLDER/NAME, below cwd where the folder is relative; false when it does not fit. */
static bool put_path(char *out, size_t room, const char *cwd, struct hf_span folder,
                     const char *name)
{
    const char *first = folder.at;
    bool relative = folder.len == 0 || first[0] != '/';
    size_t cwd_len = relative ? strlen(cwd) : 0, name_len = strlen(name), at = 0;
    if (cwd_len + 1 + folder.len + 1 + name_len + 1 > room)
        return false;
    if (relative) {
        memcpy(out, cwd, cwd_len);
        at = cwd_len;
        out[at++] = '/';
    }
    if (folder.len > 0) {
        memcpy(out + at, folder.at, folder.len);
        at += folder.len;
        out[at++] = '/';
    }
    memcpy(out + at, name, name_len + 1);
    return true;
}

static int not_found(const char *name, const char *path, struct hf_err *err)
{
    struct stat at;
    if (path && stat(path, &at) == 0)
        return hf_fail(err, HF_EINVAL, "command", "the command %.120s cannot be run: %s",
                       name, S_ISDIR(at.st_mode) ? "it is a folder" : "not executable");
    return hf_fail(err, HF_EINVAL, "command", "there is no command %.120s", name);
}

/* Whether the kernel may run a file that is neither an ELF program nor a script. It does so if a
 * handler for the file's format is registered in binfmt_misc. `head` is the beginning of the file.
 * Any handler that is registered may be one for this file. In many containers the handlers cannot
 * be seen: then a file of plain text is taken to have none, and any other file may have one. */
static bool may_have_handler(const char *head)
{
    DIR *formats = opendir("/proc/sys/fs/binfmt_misc");
    bool seen = false, registered = false;
    for (struct dirent *one = formats ? readdir(formats) : NULL; one;
         one = readdir(formats)) {
        bool status = hf_same(one->d_name, "status");
        seen |= status;
        registered |= !status && one->d_name[0] != '.' &&
                      !hf_same(one->d_name, "register");
    }
    if (formats)
        (void)closedir(formats);
    for (; *head; head++)
        if (!(*head >= ' ' && *head <= '~') && !strchr("\t\r\n", *head))
            return !seen || registered;
    return registered;
}

/* Checks that the interpreter of a script exists. `line` is what follows "#!" in its first line. */
static int check_interpreter(const char *name, char *line, struct hf_err *err)
{
    char *first = line + strspn(line, " \t");
    first[strcspn(first, " \t\r\n")] = '\0';
    if (first[0] != '/' || runs(first)) /* a relative one depends on the folder */
        return 0;
    return hf_fail(err, HF_EINVAL, "command",
                   "the command %.120s cannot be run: there is no interpreter %.120s",
                   name, first);
}

/* Refuses a file that the kernel would refuse to run, before anything about the command is
 * recorded. A file that cannot be read passes: it may still be run. */
static int check_begin(const char *name, const char *path, struct hf_err *err)
{
    char head[256] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, head, sizeof head - 1);
    (void)close(fd);
    if (got < 0 || hf_starts_with(head, "\177ELF"))
        return 0;
    if (hf_starts_with(head, "#!"))
        return check_interpreter(name, head + 2, err);
    if (may_have_handler(head))
        return 0;
    return hf_fail(
        err, HF_EINVAL, "command",
        "the command %.120s cannot be run: it is no program, and does not begin "
        "with #!",
        name);
}

int hf_child_find(const char *name, const char *const *env, const char *cwd, size_t room,
                  char *ret_path, struct hf_err *err)
{
    char path[PATH_MAX];
    if (!name || !*name)
        return hf_fail(err, HF_EINVAL, "command", "a command is needed");
    const char *search = strchr(name, '/') ? "" : variable(env, "PATH");
    if (strchr(name, '/')) {
        struct hf_span none = { "", 0 };
        bool fits = name[0] == '/' ? strlen(name) < sizeof path &&
                                         memcpy(path, name, strlen(name) + 1)
                                   : put_path(path, sizeof path, cwd, none, name);
        if (!fits || !runs(path))
            return not_found(name, fits ? path : NULL, err);
    } else {
        bool found = false;
        for (const char *at = search ? search : "/usr/bin:/bin"; !found;) {
            size_t len = strcspn(at, ":");
            found = put_path(path, sizeof path, cwd, (struct hf_span){ at, len }, name) &&
                    runs(path);
            if (!at[len])
                break;
            at += len + 1;
        }
        if (!found)
            return not_found(name, NULL, err);
    }
    if (strlen(path) >= room)
        return hf_fail(err, HF_ETOOBIG, "command", "the command's path is too long");
    memcpy(ret_path, path, strlen(path) + 1);
    return check_begin(name, path, err);
}

/* ---- starting ---------------------------------------------------------------------- */

struct birth {
    const struct hf_child_plan *plan;
    const char *path;
    int out[HF_STREAM_COUNT][2];
    int failure[2]; /* closed by a successful exec; otherwise it brings what failed */
    int null;
};

struct failure {
    int error;
    bool folder;
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

static void birth_fini(struct birth *birth)
{
    for (int s = 0; s < HF_STREAM_COUNT; s++) {
        close_fd(&birth->out[s][0]);
        close_fd(&birth->out[s][1]);
    }
    close_fd(&birth->failure[0]);
    close_fd(&birth->failure[1]);
    close_fd(&birth->null);
}

static bool make_output(struct birth *birth, int stream)
{
    int *ends = birth->out[stream];
    if (birth->plan->output_fds) {
        ends[1] = fcntl(birth->plan->output_fds[stream], F_DUPFD_CLOEXEC, 0);
        return ends[1] >= 0;
    }
    return pipe2(ends, O_CLOEXEC) == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

static int birth_init(struct birth *birth, struct hf_err *err)
{
    bool good = pipe2(birth->failure, O_CLOEXEC) == 0;
    for (int s = 0; s < HF_STREAM_COUNT; s++)
        good = good && make_output(birth, s);
    birth->null = good ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
    if (birth->null >= 0)
        return 0;
    int rc = hf_fail(err, HF_EINTERNAL, NULL, "cannot start a process: %s",
                     strerror(errno));
    birth_fini(birth);
    return rc;
}

/* In the child, between fork and exec: only what a signal handler may do. The caller's
 * ignored signals would be inherited, so all are put back to their defaults. */
static void become_ordinary(const struct hf_child_plan *plan)
{
    sigset_t none, stops;
    (void)setpgid(0, 0);
    if (plan->terminal) { /* whose group is in the background is stopped for asking */
        sigemptyset(&stops);
        sigaddset(&stops, SIGTTOU);
        (void)sigprocmask(SIG_BLOCK, &stops, NULL);
        (void)tcsetpgrp(plan->stdin_fd, getpid());
    }
    for (int i = 1; i < NSIG; i++)
        (void)signal(i, SIG_DFL); /* KILL and STOP refuse, and need nothing */
    if (plan->terminal) /* ^Z: no process would take the terminal back from what is
    stopped */
        (void)signal(SIGTSTP, SIG_IGN);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool take_streams(const struct birth *birth)
{
    int input = birth->plan->stdin_fd >= 0 ? birth->plan->stdin_fd : birth->null;
    bool good = dup2(input, STDIN_FILENO) >= 0 &&
                dup2(birth->out[HF_STDOUT][1], STDOUT_FILENO) >= 0 &&
                dup2(birth->out[HF_STDERR][1], STDERR_FILENO) >= 0;
    /* What this process opened without care is not the child's business. */
    (void)syscall(SYS_close_range, 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */);
    if (good && birth->plan->inherit_fd >= 0)
        good = fcntl(birth->plan->inherit_fd, F_SETFD, 0) == 0;
    return good;
}

/* Returns only when it cannot be done. */
static struct failure become(const struct birth *birth)
{
    struct failure failure = { 0 };
    become_ordinary(birth->plan);
    bool ready = take_streams(birth);
    if (ready && chdir(birth->plan->cwd) != 0) {
        ready = false;
        failure.folder = true;
    }
    if (ready)
        (void)execve(birth->path, (char *const *)(uintptr_t)birth->plan->argv,
                     (char *const *)(uintptr_t)birth->plan->env);
    failure.error = errno;
    return failure;
}

static _Noreturn void be_born(const struct birth *birth)
{
    struct failure failure = become(birth);
    ssize_t told = write(birth->failure[1], &failure, sizeof failure);
    _exit(told == (ssize_t)sizeof failure ? 127 : 126);
}

static int say_failure(const struct birth *birth, const struct failure *failure,
                       struct hf_err *err)
{
    if (failure->folder)
        return hf_fail(err, HF_EINVAL, "cwd", "cannot go to the folder %.120s: %s",
                       birth->plan->cwd, strerror(failure->error));
    return hf_fail(err, HF_EINVAL, "command", "cannot run %.120s: %s", birth->path,
                   strerror(failure->error));
}

/* What became of the exec: the pipe is closed by it. */
static int await_exec(struct birth *birth, pid_t pid, struct hf_err *err)
{
    struct failure failure;
    ssize_t got;
    close_fd(&birth->failure[1]);
    do
        got = read(birth->failure[0], &failure, sizeof failure);
    while (got < 0 && errno == EINTR);
    if (got == 0)
        return 0;
    (void)waitpid(pid, NULL, 0); /* it ends by itself */
    if (got != (ssize_t)sizeof failure)
        return hf_fail(err, HF_EINTERNAL, NULL, "the child ended before its command");
    return say_failure(birth, &failure, err);
}

static int start(struct birth *birth, struct hf_child *child, struct hf_err *err)
{
    pid_t pid = fork();
    if (pid == 0)
        be_born(birth);
    if (pid < 0)
        return hf_fail(err, HF_EBUSY, NULL, "cannot start a process: %s",
                       strerror(errno));
    (void)setpgid(pid, pid); /* whichever of the two is first; too late after the exec */
    int rc = await_exec(birth, pid, err);
    if (rc)
        return rc;
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0) {
        rc = hf_fail(err, HF_EINTERNAL, NULL,
                     "cannot watch the process that was started: %s", strerror(errno));
        (void)kill(-pid, SIGKILL); /* unreaped, so it is still that process */
        (void)waitpid(pid, NULL, 0);
        return rc;
    }
    child->pid = pid;
    child->pidfd = pidfd;
    for (int s = 0; s < HF_STREAM_COUNT; s++) {
        child->out[s] = birth->out[s][0];
        birth->out[s][0] = -1;
    }
    return 0;
}

static int check_plan(const struct hf_child_plan *plan, struct hf_err *err)
{
    if (!plan->argv || !plan->argv[0] || !plan->env)
        return hf_fail(err, HF_EINVAL, "command",
                       "a command and its environment are "
                       "needed");
    if (!plan->cwd || plan->cwd[0] != '/')
        return hf_fail(err, HF_EINVAL, "cwd", "cwd must be an absolute path");
    return 0;
}

/* The whole plan, and where its command is. */
static int read_plan(const struct hf_child_plan *wanted, struct hf_child_plan *ret_plan,
                     char ret_path[PATH_MAX], struct hf_err *err)
{
    int rc = hf_sized_copy(wanted, sizeof *ret_plan, sizeof *ret_plan, ret_plan, err);
    if (rc == 0)
        rc = check_plan(ret_plan, err);
    if (rc == 0)
        rc = hf_child_find(ret_plan->argv[0], ret_plan->env, ret_plan->cwd, PATH_MAX,
                           ret_path, err);
    return rc;
}

int hf_child_become(const struct hf_child_plan *wanted, struct hf_err *err)
{
    struct hf_child_plan plan;
    char path[PATH_MAX];
    int rc = read_plan(wanted, &plan, path, err);
    int null = rc ? -1 : open("/dev/null", O_RDWR | O_CLOEXEC);
    if (rc == 0 && null < 0)
        rc = hf_fail(err, HF_EINTERNAL, NULL, "/dev/null: %s", strerror(errno));
    if (rc)
        return rc;
    plan.stdin_fd = plan.inherit_fd = -1;
    plan.terminal = false;
    struct birth birth = {
        .plan = &plan, .path = path, .out = { { -1, null }, { -1, null } }, .null = null
    };
    (void)setsid(); /* a leader of a group stays in its session: the caller's choice */
    struct failure failure = become(&birth);
    (void)close(null);
    return say_failure(&birth, &failure, err);
}

int hf_child_start(const struct hf_alloc *alloc, const struct hf_child_plan *wanted,
                   struct hf_child **ret_child, struct hf_err *err)
{
    struct hf_child_plan plan;
    char path[PATH_MAX];
    int rc = read_plan(wanted, &plan, path, err);
    if (rc)
        return rc;
    struct hf_child *child = alloc->realloc(alloc->user, NULL, sizeof *child);
    if (!child)
        return hf_fail_plain(err, HF_ENOMEM);
    *child = (struct hf_child){ .alloc = alloc };
    struct birth birth = { .plan = &plan,
                           .path = path,
                           .out = { { -1, -1 }, { -1, -1 } },
                           .failure = { -1, -1 },
                           .null = -1 };
    rc = birth_init(&birth, err);
    if (rc == 0)
        rc = start(&birth, child, err);
    birth_fini(&birth);
    if (rc)
        alloc->free(alloc->user, child);
    else
        *ret_child = child;
    return rc;
}

/* ---- trying ------------------------------------------------------------------------ */

#define UNTRACED 99 /* exit code of a child that may not be traced: nothing was tried */

/* In the child: stops, so that it is held before it can become anything, then the exec. */
static _Noreturn void pretend(const struct birth *birth)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0 || raise(SIGSTOP) != 0)
        _exit(UNTRACED);
    be_born(birth);
}

static bool stops(pid_t pid)
{
    int status = 0;
    pid_t got;
    do
        got = waitpid(pid, &status, 0);
    while (got < 0 && errno == EINTR);
    return got == pid && WIFSTOPPED(status);
}

/* Lets it continue to its exec, and ends it there: before the first instruction of the command.
 * Should this process die meanwhile, so does the child. */
static void hold(pid_t pid)
{
    const long options = PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC;
    bool held = stops(pid);
    if (held && ptrace(PTRACE_SETOPTIONS, pid, NULL, options) == 0 &&
        ptrace(PTRACE_CONT, pid, NULL, NULL) == 0)
        held = stops(pid); /* at its exec, or at a signal: the end of it either way */
    if (!held)
        return;
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

int hf_child_try(const struct hf_child_plan *wanted, struct hf_err *err)
{
    struct hf_child_plan plan;
    struct failure failure;
    char path[PATH_MAX];
    struct birth birth = { .plan = &plan,
                           .path = path,
                           .out = { { -1, -1 }, { -1, -1 } },
                           .failure = { -1, -1 },
                           .null = -1 };
    int rc = read_plan(wanted, &plan, path, err);
    if (rc)
        return rc;
    plan.stdin_fd = plan.inherit_fd = -1;
    plan.terminal = false;
    rc = birth_init(&birth, err);
    pid_t pid = rc ? -1 : fork();
    if (pid == 0)
        pretend(&birth);
    if (rc == 0 && pid < 0)
        rc = hf_fail(err, HF_EBUSY, NULL, "cannot start a process: %s", strerror(errno));
    if (pid > 0)
        hold(pid);
    close_fd(&birth.failure[1]);
    if (pid > 0 && read(birth.failure[0], &failure, sizeof failure) == sizeof failure)
        rc = say_failure(&birth, &failure, err);
    birth_fini(&birth);
    return rc;
}

/* ---- following --------------------------------------------------------------------- */

void hf_child_free(struct hf_child *child)
{
    if (!child)
        return;
    close_fd(&child->pidfd);
    for (int s = 0; s < HF_STREAM_COUNT; s++)
        close_fd(&child->out[s]);
    child->alloc->free(child->alloc->user, child);
}

int hf_child_pid(const struct hf_child *child)
{
    return child->pid;
}

int hf_child_pidfd(const struct hf_child *child)
{
    return child->exited ? -1 : child->pidfd;
}

int hf_child_output_fd(const struct hf_child *child, enum hf_stream stream)
{
    return child->out[stream];
}

size_t hf_child_read(struct hf_child *child, enum hf_stream stream, void *ret_bytes,
                     size_t room)
{
    if (child->out[stream] < 0 || room == 0)
        return 0; /* a read of nothing would look like the end */
    ssize_t got = read(child->out[stream], ret_bytes, room);
    if (got > 0)
        return (size_t)got;
    if (got == 0 || (errno != EAGAIN && errno != EINTR))
        close_fd(&child->out[stream]);
    return 0;
}

void hf_child_hang_up(struct hf_child *child, enum hf_stream stream)
{
    close_fd(&child->out[stream]);
}

bool hf_child_exited(struct hf_child *child, struct hf_child_exit *ret_exit)
{
    siginfo_t info = { 0 };
    if (!child->exited) {
        int rc = waitid((idtype_t)3 /* P_PIDFD */, (id_t)child->pidfd, &info,
                        WEXITED | WNOHANG);
        if (rc != 0 && errno == ECHILD)
            child->exited = true; /* a host that ignores SIGCHLD reaps all by itself */
        if (rc != 0 || info.si_pid == 0) {
            *ret_exit = child->how;
            return child->exited;
        }
        bool by_itself = info.si_code == CLD_EXITED;
        child->exited = true;
        child->how = (struct hf_child_exit){ .known = true,
                                             .exit_code = by_itself ? info.si_status : 0,
                                             .signal = by_itself ? 0 : info.si_status };
    }
    *ret_exit = child->how;
    return true;
}

/* A group's number stays taken while anything is in it, or its leader is not reaped. */
void hf_child_signal(const struct hf_child *child, int signal)
{
    if (!child->exited)
        (void)kill(-child->pid, signal); /* gone already: it needs no signal */
}
