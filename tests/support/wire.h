/* A proxy before a PostgreSQL that breaks connections or holds them up: it reads the protocol's
 * messages, both ways, and acts at the n-th one that passes after it was armed. */
#ifndef HF_TESTS_SUPPORT_WIRE_H
#define HF_TESTS_SUPPORT_WIRE_H

#include <stdbool.h>
#include <stdint.h>

struct wire_proxy;

enum wire_act {
    WIRE_BEFORE, /* cut: its receiver does not get it */
    WIRE_AFTER,  /* cut: it does, and then the connection is gone on both sides */
    WIRE_HOLD    /* nothing more passes on this connection, until it is let go */
};

/* Which messages count; the last: those that tell a client that its transaction is over. */
enum wire_way { WIRE_BOTH, WIRE_TO_SERVER, WIRE_TO_CLIENT, WIRE_READY };

/* Listens as `folder`/.s.PGSQL.`port` and passes on to the server's socket. Aborts the test
 * on a failure. */
struct wire_proxy *wire_proxy_start(const char *folder, int port, const char *server);
void wire_proxy_stop(struct wire_proxy *proxy);

/* Count from now on, and act at message n (from 1); 0: only count. */
void wire_proxy_arm(struct wire_proxy *proxy, uint32_t n, enum wire_act act,
                    enum wire_way way);
/* How many messages passed since it was armed. */
uint32_t wire_proxy_seen(struct wire_proxy *proxy);

/* From now on a cut also kills that process (0: none), with SIGKILL, and connections end only
 * when the server has: what it was asked to do it has done by then, or never will. */
void wire_proxy_kills(struct wire_proxy *proxy, int pid);
/* Waits until no connection is left. Aborts the test after 30 s. */
void wire_proxy_quiet(struct wire_proxy *proxy);

/* Until it has acted, or 10 s. False: it came to nothing. */
bool wire_proxy_await(struct wire_proxy *proxy);
/* Lets go what is held, and stops counting. True: it had acted. */
bool wire_proxy_disarm(struct wire_proxy *proxy);

#endif
