/* One thread, poll, and a pair of sockets a connection. A message goes on whole or not at all,
 * so each cut is between two messages. */
#include "support/wire.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PAIRS 32
#define BUFFER (4u << 20)
#define SERVER_MS 10000

struct flow {
    int from;
    int to;
    bool typed; /* messages begin with a letter; a client's first one does not */
    unsigned char *bytes;
    size_t len;
};

struct pair {
    bool used;
    bool held;
    struct flow flows[2]; /* of the client, of the server */
    uint32_t open;        /* exchanges that the server has not ended */
    uint32_t open_before; /* of these, the ones that were open when the proxy was armed */
    uint32_t armed;       /* the number of that arming */
};

struct wire_proxy {
    char path[108];
    char server[108];
    int listener;
    int wake[2];
    pthread_t thread;
    struct pair pairs[PAIRS];
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t acts;
    bool armed;
    uint32_t armed_times;
    uint32_t seen;
    uint32_t act_at;
    enum wire_act act;
    enum wire_way way;
    bool acted;
    bool let_go; /* what is held */
    bool ends;
    int victim; /* killed by a cut */
    size_t open_pairs;
    pthread_cond_t calm; /* there are none */
};

static void must(bool held, const char *what)
{
    if (held)
        return;
    (void)fprintf(stderr, "wire proxy: %s: %s\n", what, strerror(errno));
    abort();
}

static struct sockaddr_un address_of(const char *path)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    must(strlen(path) < sizeof(at.sun_path), "path");
    memcpy(at.sun_path, path, strlen(path) + 1);
    return at;
}

/* The server reads to the end of what it was sent, does it, and closes its side. */
static void await_server(const struct pair *pair)
{
    char rest[4096];
    int server = pair->flows[1].from;
    (void)shutdown(server, SHUT_WR);
    struct pollfd fd = { .fd = server, .events = POLLIN };
    while (poll(&fd, 1, SERVER_MS) > 0 && read(server, rest, sizeof(rest)) > 0)
        continue;
}

static void drop(struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        (void)close(
            pair->flows[i].from); /* whatever was in it is lost: that is the test */
        free(pair->flows[i].bytes);
    }
    *pair = (struct pair){ 0 };
}

static void accept_one(struct wire_proxy *proxy)
{
    struct sockaddr_un at = address_of(proxy->server);
    int client = accept(proxy->listener, NULL, NULL);
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t i = 0;
    while (i < PAIRS && proxy->pairs[i].used)
        i++;
    must(i < PAIRS, "too many connections");
    if (client < 0 || connect(server, (struct sockaddr *)&at, sizeof(at)) != 0) {
        (void)close(client); /* the server is away: so are we */
        (void)close(server);
        return;
    }
    struct pair *pair = &proxy->pairs[i];
    *pair = (struct pair){ .used = true,
                           .flows = { { client, server, false, malloc(BUFFER), 0 },
                                      { server, client, true, malloc(BUFFER), 0 } } };
    must(pair->flows[0].bytes && pair->flows[1].bytes, "memory");
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->open_pairs++;
    (void)pthread_mutex_unlock(&proxy->lock);
}

static void end_pair(struct wire_proxy *proxy, struct pair *pair)
{
    (void)pthread_mutex_lock(&proxy->lock);
    bool waits = proxy->victim != 0;
    (void)pthread_mutex_unlock(&proxy->lock);
    if (waits)
        await_server(pair);
    drop(pair);
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->open_pairs--;
    (void)pthread_cond_broadcast(&proxy->calm);
    (void)pthread_mutex_unlock(&proxy->lock);
}

/* Bytes of the message at the front, or 0 while a part of it is still to come. */
static size_t whole(const struct flow *flow)
{
    size_t head = flow->typed ? 1 : 0;
    const unsigned char *at = flow->bytes + head;
    if (flow->len < head + 4)
        return 0;
    size_t len = head +
                 ((size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3]);
    must(len <= BUFFER, "a message is too long");
    return flow->len >= len ? len : 0;
}

static bool send_all(int to, const unsigned char *bytes, size_t len)
{
    while (len) {
        ssize_t sent = send(to, bytes, len, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return false;
        bytes += sent;
        len -= (size_t)sent;
    }
    return true;
}

/* Exchanges that were open when the proxy was armed do not count: a ring may be behind a commit
 * that was answered before. */
static bool counts(enum wire_way armed, bool to_client, const struct pair *pair)
{
    const struct flow *flow = &pair->flows[to_client];
    if (armed == WIRE_BOTH)
        return true;
    return to_client ? armed == WIRE_TO_CLIENT ||
                           (armed == WIRE_READY && flow->bytes[0] == 'Z' &&
                            flow->bytes[5] == 'I' && pair->open_before == 0)
                     : armed == WIRE_TO_SERVER;
}

/* Counts the exchanges of a connection: from the client's start, Sync or Query until the server
 * is ready. */
static void follow(struct pair *pair, bool to_client)
{
    const struct flow *flow = &pair->flows[to_client];
    char type = (char)flow->bytes[0];
    if (!to_client)
        pair->open += !flow->typed || type == 'S' || type == 'Q';
    else if (type == 'Z') {
        pair->open -= pair->open > 0;
        pair->open_before -= pair->open_before > 0;
    }
}

static void kill_victim(struct wire_proxy *proxy)
{
    (void)pthread_mutex_lock(&proxy->lock);
    if (proxy->victim)
        (void)kill(proxy->victim, SIGKILL);
    (void)pthread_mutex_unlock(&proxy->lock);
}

/* Whether this message is the one. */
static bool is_it(struct wire_proxy *proxy, struct pair *pair, bool to_client,
                  enum wire_act *ret_act)
{
    (void)pthread_mutex_lock(&proxy->lock);
    if (pair->armed != proxy->armed_times) {
        pair->armed = proxy->armed_times;
        pair->open_before = pair->open;
    }
    bool now = proxy->armed && counts(proxy->way, to_client, pair) &&
               ++proxy->seen == proxy->act_at;
    *ret_act = proxy->act;
    if (now) {
        proxy->acted = true;
        (void)pthread_cond_signal(&proxy->acts);
    }
    (void)pthread_mutex_unlock(&proxy->lock);
    return now;
}

/* Passes the whole messages on that are there; false: the connection is over. */
static bool pass_whole(struct wire_proxy *proxy, struct pair *pair, int f)
{
    struct flow *flow = &pair->flows[f];
    for (size_t len; (len = whole(flow)) > 0;) {
        enum wire_act act = WIRE_BEFORE;
        bool now = is_it(proxy, pair, f == 1, &act);
        pair->held = now && act == WIRE_HOLD;
        if (pair->held)
            return true;
        if ((!now || act == WIRE_AFTER) && !send_all(flow->to, flow->bytes, len))
            return false;
        if (now) {
            kill_victim(proxy);
            return false;
        }
        follow(pair, f == 1);
        flow->typed = true;
        flow->len -= len;
        memmove(flow->bytes, flow->bytes + len, flow->len);
    }
    return true;
}

static bool pass(struct wire_proxy *proxy, struct pair *pair, int f)
{
    struct flow *flow = &pair->flows[f];
    ssize_t got = read(flow->from, flow->bytes + flow->len, BUFFER - flow->len);
    if (got <= 0)
        return false;
    flow->len += (size_t)got;
    return pass_whole(proxy, pair, f);
}

/* A caller spoke to this thread. */
static void hear(struct wire_proxy *proxy)
{
    char word;
    must(read(proxy->wake[0], &word, 1) == 1, "wake");
    (void)pthread_mutex_lock(&proxy->lock);
    bool let_go = proxy->let_go;
    proxy->let_go = false;
    (void)pthread_mutex_unlock(&proxy->lock);
    for (size_t i = 0; let_go && i < PAIRS; i++) {
        struct pair *pair = &proxy->pairs[i];
        if (!pair->held)
            continue;
        pair->held = false;
        if (!pass_whole(proxy, pair, 0) || !pass_whole(proxy, pair, 1))
            end_pair(proxy, pair);
    }
}

static void serve(struct wire_proxy *proxy)
{
    struct pollfd fds[2 + 2 * PAIRS];
    nfds_t n = 2;
    fds[0] = (struct pollfd){ .fd = proxy->listener, .events = POLLIN };
    fds[1] = (struct pollfd){ .fd = proxy->wake[0], .events = POLLIN };
    struct pair *of[PAIRS];
    for (size_t i = 0; i < PAIRS; i++) {
        if (!proxy->pairs[i].used || proxy->pairs[i].held)
            continue;
        of[(n - 2) / 2] = &proxy->pairs[i];
        for (int f = 0; f < 2; f++)
            fds[n++] = (struct pollfd){ .fd = proxy->pairs[i].flows[f].from,
                                        .events = POLLIN };
    }
    if (poll(fds, n, -1) < 0)
        return;
    for (nfds_t i = 2; i < n; i += 2) {
        struct pair *pair = of[(i - 2) / 2];
        bool lives = true;
        for (int f = 0; lives && f < 2; f++)
            lives = pair->held || !fds[i + (nfds_t)f].revents || pass(proxy, pair, f);
        if (!lives)
            end_pair(proxy, pair);
    }
    if (fds[1].revents)
        hear(proxy);
    if (fds[0].revents)
        accept_one(proxy);
}

static void *run(void *user)
{
    struct wire_proxy *proxy = user;
    bool ends = false;
    while (!ends) {
        serve(proxy);
        (void)pthread_mutex_lock(&proxy->lock);
        ends = proxy->ends;
        (void)pthread_mutex_unlock(&proxy->lock);
    }
    return NULL;
}

struct wire_proxy *wire_proxy_start(const char *folder, int port, const char *server)
{
    struct wire_proxy *proxy = calloc(1, sizeof(*proxy));
    must(proxy != NULL, "memory");
    (void)snprintf(proxy->path, sizeof(proxy->path), "%s/.s.PGSQL.%d", folder, port);
    (void)snprintf(proxy->server, sizeof(proxy->server), "%s", server);
    struct sockaddr_un at = address_of(proxy->path);
    proxy->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(bind(proxy->listener, (struct sockaddr *)&at, sizeof(at)) == 0, "bind");
    must(listen(proxy->listener, PAIRS) == 0, "listen");
    must(pipe(proxy->wake) == 0, "pipe");
    must(pthread_mutex_init(&proxy->lock, NULL) == 0, "mutex");
    must(pthread_cond_init(&proxy->acts, NULL) == 0, "condition");
    must(pthread_cond_init(&proxy->calm, NULL) == 0, "condition");
    must(pthread_create(&proxy->thread, NULL, run, proxy) == 0, "thread");
    return proxy;
}

static void speak(struct wire_proxy *proxy)
{
    must(write(proxy->wake[1], "x", 1) == 1, "wake");
}

void wire_proxy_stop(struct wire_proxy *proxy)
{
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->ends = true;
    (void)pthread_mutex_unlock(&proxy->lock);
    speak(proxy);
    must(pthread_join(proxy->thread, NULL) == 0, "join");
    for (size_t i = 0; i < PAIRS; i++)
        if (proxy->pairs[i].used)
            drop(&proxy->pairs[i]);
    (void)close(proxy->listener);
    (void)close(proxy->wake[0]);
    (void)close(proxy->wake[1]);
    (void)unlink(proxy->path);
    (void)pthread_cond_destroy(&proxy->acts);
    (void)pthread_cond_destroy(&proxy->calm);
    (void)pthread_mutex_destroy(&proxy->lock);
    free(proxy);
}

void wire_proxy_arm(struct wire_proxy *proxy, uint32_t n, enum wire_act act,
                    enum wire_way way)
{
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->armed = true;
    proxy->armed_times++;
    proxy->seen = 0;
    proxy->act_at = n;
    proxy->act = act;
    proxy->way = way;
    proxy->acted = false;
    (void)pthread_mutex_unlock(&proxy->lock);
}

bool wire_proxy_await(struct wire_proxy *proxy)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 10;
    int rc = 0;
    (void)pthread_mutex_lock(&proxy->lock);
    while (!proxy->acted && rc == 0)
        rc = pthread_cond_timedwait(&proxy->acts, &proxy->lock, &until);
    bool acted = proxy->acted;
    (void)pthread_mutex_unlock(&proxy->lock);
    return acted;
}

bool wire_proxy_disarm(struct wire_proxy *proxy)
{
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->armed = false;
    proxy->let_go = true;
    bool acted = proxy->acted;
    (void)pthread_mutex_unlock(&proxy->lock);
    speak(proxy);
    return acted;
}

uint32_t wire_proxy_seen(struct wire_proxy *proxy)
{
    (void)pthread_mutex_lock(&proxy->lock);
    uint32_t seen = proxy->seen;
    (void)pthread_mutex_unlock(&proxy->lock);
    return seen;
}

void wire_proxy_kills(struct wire_proxy *proxy, int pid)
{
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->victim = pid;
    (void)pthread_mutex_unlock(&proxy->lock);
}

void wire_proxy_quiet(struct wire_proxy *proxy)
{
    struct timespec end;
    (void)clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 30;
    (void)pthread_mutex_lock(&proxy->lock);
    while (proxy->open_pairs > 0)
        must(pthread_cond_timedwait(&proxy->calm, &proxy->lock, &end) == 0,
             "connections are left");
    (void)pthread_mutex_unlock(&proxy->lock);
}
