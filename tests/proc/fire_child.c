/* What `holdfast run` runs in the test of runners under fire: a real process that writes what
 * it does into a log of its own, so that another process can judge what the ledger says
 * of it.
 *
 *     fire_child KEY FOLDER MS MODE CODES
 *
 * MS is how long it works. CODES are the exit codes of its attempts, as in 3,3,0: the last one
 * means all that follow. MODE: plain; tree: a descendant in a session of its own outlives
 * it; stubborn: SIGTERM does not end it; itself: it closes its unit out by itself.
 *
 * FOLDER/logs/KEY.PID has a line a fact, each one write:
 *     begin KEY WORK ATTEMPT PID   next to (another of the key runs)   grown PID
 *     said CODE (of its own close-out)   end CODE */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

static int log_fd = -1;

static void fail(const char *what)
{
    (void)fprintf(stderr, "fire_child: %s: %s\n", what, strerror(errno));
    exit(99);
}

static void note(const char *line)
{
    size_t len = strlen(line);
    if (write(log_fd, line, len) != (ssize_t)len)
        fail("log");
}

static int open_in(const char *folder, const char *kind, const char *name, long number)
{
    char path[4096];
    int len = number ? snprintf(path, sizeof path, "%s/%s/%s.%ld", folder, kind, name,
                                number)
                     : snprintf(path, sizeof path, "%s/%s/%s", folder, kind, name);
    int fd = len < (int)sizeof path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600)
                                    : -1;
    if (fd < 0)
        fail("open");
    return fd;
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    if (!value)
        fail(name);
    return value;
}

/* Its exit code in this attempt. */
static int code_of(const char *codes, long attempt)
{
    for (; attempt > 1 && strchr(codes, ','); attempt--)
        codes = strchr(codes, ',') + 1;
    return (int)strtol(codes, NULL, 10);
}

/* A descendant that is in no group of ours; only the inherited lock leads to it. */
static void grow(int ms)
{
    char line[64];
    pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0) {
        (void)setsid(); /* a fresh child leads no group, so it cannot fail */
        (void)poll(NULL, 0, ms + 300);
        _exit(0);
    }
    (void)snprintf(line, sizeof line, "grown %d\n", (int)pid);
    note(line);
}

static void close_out(const char *key)
{
    char line[64];
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        (void)execlp("holdfast", "holdfast", "--quiet", "work", "close-out", "--status",
                     "done", "--summary", key, (char *)NULL);
        _exit(97);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        fail("holdfast");
    (void)snprintf(line, sizeof line, "said %d\n",
                   WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    note(line);
}

int main(int argc, char **argv)
{
    char line[512];
    if (argc != 6)
        return 98;
    const char *key = argv[1], *folder = argv[2], *mode = argv[4];
    int ms = (int)strtol(argv[3], NULL, 10);
    long attempt = strtol(variable("HOLDFAST_ATTEMPT"), NULL, 10);
    log_fd = open_in(folder, "logs", key, (long)getpid());
    (void)snprintf(line, sizeof line, "begin %s %s %ld %d\n", key,
                   variable("HOLDFAST_WORK_ID"), attempt, (int)getpid());
    note(line);
    /* Inherited by what it starts: held until the last of the tree has gone. */
    if (flock(open_in(folder, "alone", key, 0), LOCK_EX | LOCK_NB) != 0)
        note("overlap\n");
    if (strcmp(mode, "stubborn") == 0)
        (void)signal(SIGTERM, SIG_IGN);
    if (strcmp(mode, "tree") == 0)
        grow(ms);
    (void)poll(NULL, 0, ms);
    if (strcmp(mode, "itself") == 0)
        close_out(key);
    (void)snprintf(line, sizeof line, "end %d\n", code_of(argv[5], attempt));
    note(line);
    return code_of(argv[5], attempt);
}
