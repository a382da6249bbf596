/* Secrets. Each has a mapping of its own, so that locking and unlocking touches nothing of
 * other memory. */
#include "net/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/bounds.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"

#define SECRET_MAX 8192
#define WORDS_MAX 32
#define COMMAND_MS 10000
#define TEXT_MAX (sizeof("[secret:]") + 191)

struct hf_secret {
    size_t mapped;
    size_t len;
    char text[TEXT_MAX];
    char bytes[SECRET_MAX + 2]; /* a newline more than it may have, and a NUL */
};

struct hf_span hf_secret_bytes(const struct hf_secret *secret)
{
    return (struct hf_span){ secret->bytes, secret->len };
}

const char *hf_secret_text(const struct hf_secret *secret)
{
    return secret->text;
}

void hf_secret_free(struct hf_secret *secret)
{
    if (!secret)
        return;
    size_t mapped = secret->mapped;
    explicit_bzero(secret, mapped);
    munmap(secret, mapped);
}

static struct hf_secret *map_secret(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = (sizeof(struct hf_secret) + page - 1) / page * page;
    struct hf_secret *secret = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (secret == MAP_FAILED)
        return NULL;
    (void)mlock(secret, bytes); /* best effort: a limit of 0 must not refuse a key */
    (void)madvise(secret, bytes, MADV_DONTDUMP);
    (void)madvise(secret, bytes, MADV_DONTFORK);
    secret->mapped = bytes;
    return secret;
}

static int missing(const struct hf_secret *secret, const char *why, struct hf_err *err)
{
    return hf_fail(err, HF_ENOTFOUND, "secret", "%s: %s", secret->text, why);
}

static int refused(const struct hf_secret *secret, const char *why, struct hf_err *err)
{
    return hf_fail(err, HF_EINVAL, "secret", "%s: %s", secret->text, why);
}

/* Reads to the end, at most one byte more than a secret may have. */
static int read_all(int fd, struct hf_secret *secret, struct hf_err *err)
{
    size_t room = sizeof(secret->bytes) - 1;
    while (secret->len < room) {
        ssize_t got = read(fd, secret->bytes + secret->len, room - secret->len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return missing(secret, "it cannot be read", err);
        if (got == 0)
            break;
        secret->len += (size_t)got;
    }
    return 0;
}

static int from_file(struct hf_secret *secret, const char *path, bool strict,
                     struct hf_err *err)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return missing(
            secret,
            errno == ENOENT ? "there is no such file" : "the file cannot be opened", err);
    int rc = 0;
    if (fstat(fd, &about) || !S_ISREG(about.st_mode))
        rc = refused(secret, "it is no regular file", err);
    else if (strict && (about.st_mode & (S_IRGRP | S_IROTH)))
        rc = refused(secret, "other users can read the file: use mode 0600", err);
    if (rc == 0)
        rc = read_all(fd, secret, err);
    close(fd);
    return rc;
}

static int from_env(struct hf_secret *secret, const char *name, struct hf_err *err)
{
    const char *value = getenv(name);
    if (!value || !value[0])
        return missing(secret, "the variable is not set", err);
    size_t len = strlen(value);
    if (len >= sizeof(secret->bytes))
        return refused(secret, "it is longer than 8192 bytes", err);
    memcpy(secret->bytes, value, len);
    secret->len = len;
    return 0;
}

static int from_credential(struct hf_secret *secret, const char *name, struct hf_err *err)
{
    const char *folder = getenv("CREDENTIALS_DIRECTORY");
    struct hf_buf path;
    if (!folder)
        return missing(secret, "CREDENTIALS_DIRECTORY is not set", err);
    if (strchr(name, '/'))
        return refused(secret, "the name of a credential has no slash", err);
    hf_buf_init(&path, hf_alloc_system(), 4096);
    hf_buf_text(&path, folder);
    hf_buf_char(&path, '/');
    hf_buf_text(&path, name);
    int rc = hf_buf_state(&path) ? hf_fail_plain(err, hf_buf_state(&path))
                                 : from_file(secret, hf_buf_str(&path), false, err);
    hf_buf_fini(&path);
    return rc;
}

/* The words of a command, in place. */
static size_t split(char *text, char *words[WORDS_MAX + 1])
{
    size_t count = 0;
    while (*text && count < WORDS_MAX) {
        while (*text == ' ')
            *text++ = '\0';
        if (*text)
            words[count++] = text;
        while (*text && *text != ' ')
            text++;
    }
    words[count] = NULL;
    return count;
}

/* What the command prints, until it closes its output or its time is over. */
static int collect(struct hf_secret *secret, int fd, struct hf_err *err)
{
    const struct hf_clock *clock = hf_clock_system();
    hf_ms end = clock->mono_ms(clock->user) + COMMAND_MS;
    while (secret->len < sizeof(secret->bytes) - 1) {
        hf_ms left = end - clock->mono_ms(clock->user);
        struct pollfd wait = { .fd = fd, .events = POLLIN };
        int ready = left > 0 ? poll(&wait, 1, (int)left) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return missing(secret, "the command did not end within ten seconds", err);
        ssize_t got = read(fd, secret->bytes + secret->len,
                           sizeof(secret->bytes) - 1 - secret->len);
        if (got < 0)
            return missing(secret, "the command's output cannot be read", err);
        if (got == 0)
            return 0;
        secret->len += (size_t)got;
    }
    return 0;
}

static int spawn(char *const *words, int out, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions))
        return -1;
    int rc = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    if (rc == 0)
        rc = posix_spawnp(ret_pid, words[0], &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

static int from_command(struct hf_secret *secret, const char *command, struct hf_err *err)
{
    char text[4096];
    char *words[WORDS_MAX + 1];
    int ends[2] = { -1, -1 };
    pid_t pid = -1;
    int status = 0;
    size_t len = strlen(command);
    if (len >= sizeof(text))
        return refused(secret, "the command is too long", err);
    memcpy(text, command, len + 1);
    if (split(text, words) == 0)
        return refused(secret, "the command is empty", err);
    if (pipe2(ends, O_CLOEXEC))
        return missing(secret, "no pipe", err);
    int rc = spawn(words, ends[1], &pid);
    close(ends[1]);
    rc = rc ? missing(secret, "the command cannot be started", err)
            : collect(secret, ends[0], err);
    close(ends[0]);
    if (pid > 0 && rc)
        kill(pid, SIGKILL);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (rc == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
        rc = missing(secret, "the command failed", err);
    return rc;
}

static int from_bytes(struct hf_secret *secret, const char *bytes, struct hf_err *err)
{
    size_t len = strlen(bytes);
    if (len >= sizeof(secret->bytes))
        return refused(secret, "it is longer than 8192 bytes", err);
    memcpy(secret->bytes, bytes, len);
    secret->len = len;
    return 0;
}

static int read_from(struct hf_secret *secret, enum hf_secret_source source,
                     const char *from, struct hf_err *err)
{
    switch (source) {
    case HF_SECRET_FILE: return from_file(secret, from, true, err);
    case HF_SECRET_ENV: return from_env(secret, from, err);
    case HF_SECRET_COMMAND: return from_command(secret, from, err);
    case HF_SECRET_CREDENTIAL: return from_credential(secret, from, err);
    case HF_SECRET_BYTES: return from_bytes(secret, from, err);
    }
    return hf_fail(err, HF_EINVAL, "source", "a secret has no such source");
}

/* A secret goes into a header: no control bytes. */
static int check(struct hf_secret *secret, struct hf_err *err)
{
    if (secret->len > 0 && secret->bytes[secret->len - 1] == '\n')
        secret->len--;
    secret->bytes[secret->len] = '\0';
    if (secret->len == 0)
        return missing(secret, "it is empty", err);
    if (secret->len > SECRET_MAX)
        return refused(secret, "it is longer than 8192 bytes", err);
    for (size_t i = 0; i < secret->len; i++)
        if ((unsigned char)secret->bytes[i] < 0x20 || secret->bytes[i] == 0x7f)
            return refused(secret, "it has control bytes", err);
    return 0;
}

int hf_secret_new(const char *name, enum hf_secret_source source, const char *from,
                  struct hf_secret **ret_secret, struct hf_err *err)
{
    int rc = hf_check_key(name, (size_t)HF_MAX_KEY_BYTES, "name", err);
    if (rc == 0 && !from)
        rc = hf_fail(err, HF_EINVAL, "from", "a secret needs a source");
    if (rc)
        return rc;
    struct hf_secret *secret = map_secret();
    if (!secret)
        return hf_fail_plain(err, HF_ENOMEM);
    memcpy(secret->text, "[secret:", 8);
    memcpy(secret->text + 8, name, strlen(name));
    memcpy(secret->text + 8 + strlen(name), "]", 2);
    rc = read_from(secret, source, from, err);
    if (rc == 0)
        rc = check(secret, err);
    if (rc)
        hf_secret_free(secret);
    else
        *ret_secret = secret;
    return rc;
}
