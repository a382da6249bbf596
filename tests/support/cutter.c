#include "support/cutter.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/unit.h"

#define PIPES_MAX 1024

struct cutter {
    char server[100];
    char here[100];
    int listener;
    pthread_t acceptor;
    pthread_t pipes[PIPES_MAX];
    size_t pipe_count;
    atomic_bool stopping;
    atomic_bool armed;
    atomic_bool to_server;
    atomic_long left;
    atomic_bool cut;
};

struct pipe {
    struct cutter *cutter;
    int client;
    int server;
};

/* One direction: how much of the message that is passing is still to come. */
struct way {
    uint64_t body; /* bytes left of it */
    unsigned char head[5];
    size_t have;  /* of head */
    bool started; /* past the first packet, which has no type */
};

static int local(const char *path, bool listening)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    const struct sockaddr *where = (const struct sockaddr *)(const void *)&at;
    int rc = listening ? bind(fd, where, sizeof(at)) || listen(fd, 16)
                       : connect(fd, where, sizeof(at));
    if (fd >= 0 && rc) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* Counts the messages that begin in these bytes; gives how many bytes may pass before the cut,
 * or `len`. */
static size_t passing(struct cutter *cutter, struct way *way, bool to_server,
                      const unsigned char *bytes, size_t len)
{
    size_t at = 0;
    while (at < len) {
        if (way->body > 0) {
            size_t step = way->body < len - at ? (size_t)way->body : len - at;
            way->body -= step;
            at += step;
            continue;
        }
        size_t need = way->started ? 5 : 4;
        if (way->have == 0 && way->started && atomic_load(&cutter->armed) &&
            atomic_load(&cutter->to_server) == to_server &&
            atomic_fetch_sub(&cutter->left, 1) <= 0) {
            atomic_store(&cutter->armed, false);
            atomic_store(&cutter->cut, true);
            return at;
        }
        way->head[way->have++] = bytes[at++];
        if (way->have < need)
            continue;
        const unsigned char *size = way->head + need - 4;
        way->body = ((uint64_t)size[0] << 24 | (uint64_t)size[1] << 16 |
                     (uint64_t)size[2] << 8 | size[3]) -
                    4;
        way->have = 0;
        way->started = true;
    }
    return len;
}

static bool send_all(int fd, const unsigned char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t done = send(fd, bytes, len, MSG_NOSIGNAL);
        if (done <= 0)
            return false;
        bytes += done;
        len -= (size_t)done;
    }
    return true;
}

static bool pass(struct pipe *pipe, struct way *way, bool to_server)
{
    unsigned char bytes[8192];
    ssize_t got = recv(to_server ? pipe->client : pipe->server, bytes, sizeof(bytes), 0);
    if (got <= 0)
        return false;
    size_t may = passing(pipe->cutter, way, to_server, bytes, (size_t)got);
    return send_all(to_server ? pipe->server : pipe->client, bytes, may) &&
           may == (size_t)got;
}

static void *carry(void *arg)
{
    struct pipe *pipe = arg;
    /* A server's first message has a type already. */
    struct way up = { 0 }, down = { .started = true };
    bool going = pipe->server >= 0;
    while (going && !atomic_load(&pipe->cutter->stopping)) {
        struct pollfd at[] = { { .fd = pipe->client, .events = POLLIN },
                               { .fd = pipe->server, .events = POLLIN } };
        int ready = poll(at, 2, 50);
        if (ready < 0 && errno != EINTR)
            break;
        if (ready > 0 && at[0].revents)
            going = pass(pipe, &up, true);
        if (going && ready > 0 && at[1].revents)
            going = pass(pipe, &down, false);
    }
    (void)close(pipe->client);
    if (pipe->server >= 0)
        (void)close(pipe->server);
    free(pipe);
    return NULL;
}

static void *accept_all(void *arg)
{
    struct cutter *cutter = arg;
    while (!atomic_load(&cutter->stopping)) {
        struct pollfd at = { .fd = cutter->listener, .events = POLLIN };
        if (poll(&at, 1, 50) <= 0)
            continue;
        struct pipe *pipe = calloc(1, sizeof(*pipe));
        if (!pipe || cutter->pipe_count == PIPES_MAX)
            abort();
        pipe->cutter = cutter;
        pipe->client = accept(cutter->listener, NULL, NULL);
        pipe->server = local(cutter->server, false);
        if (pthread_create(&cutter->pipes[cutter->pipe_count++], NULL, carry, pipe))
            abort();
    }
    return NULL;
}

struct cutter *cutter_start(const char *folder, int port)
{
    struct cutter *cutter = calloc(1, sizeof(*cutter));
    if (!cutter)
        abort();
    (void)snprintf(cutter->server, sizeof(cutter->server), "%s/.s.PGSQL.%d", folder,
                   port);
    (void)snprintf(cutter->here, sizeof(cutter->here), "%s/.s.PGSQL.7000", folder);
    cutter->listener = local(cutter->here, true);
    if (cutter->listener < 0 ||
        pthread_create(&cutter->acceptor, NULL, accept_all, cutter) != 0)
        abort();
    return cutter;
}

void cutter_stop(struct cutter *cutter)
{
    atomic_store(&cutter->stopping, true);
    (void)pthread_join(cutter->acceptor, NULL);
    for (size_t i = 0; i < cutter->pipe_count; i++)
        (void)pthread_join(cutter->pipes[i], NULL);
    (void)close(cutter->listener);
    (void)unlink(cutter->here);
    free(cutter);
}

void cutter_arm(struct cutter *cutter, size_t after, bool to_server)
{
    atomic_store(&cutter->cut, false);
    atomic_store(&cutter->left, (long)after);
    atomic_store(&cutter->to_server, to_server);
    atomic_store(&cutter->armed, true);
}

bool cutter_disarm(struct cutter *cutter)
{
    atomic_store(&cutter->armed, false);
    return atomic_exchange(&cutter->cut, false);
}
