/* A proxy before a PostgreSQL that breaks connections: it reads the protocol's messages, both
 * ways, and cuts at the n-th one that passes after it was armed, before or after that message
 * got through. */
#ifndef TESTS_PROC_WIRE_PROXY_H
#define TESTS_PROC_WIRE_PROXY_H

#include <stdbool.h>
#include <stdint.h>

struct wire_proxy;

enum wire_cut {
    WIRE_BEFORE, /* whom it was for does not get it */
    WIRE_AFTER   /* it does, and then the connection is gone on both sides */
};

/* Listens as `folder`/.s.PGSQL.`port` and passes on to the server's socket. Aborts the test
 * on a failure. */
struct wire_proxy *wire_proxy_start(const char *folder, int port, const char *server);
void wire_proxy_stop(struct wire_proxy *proxy);

/* Count from now on, and cut at message n (from 1); 0: only count. */
void wire_proxy_arm(struct wire_proxy *proxy, uint32_t n, enum wire_cut cut);
/* Stops counting. Gives how many passed; *ret_cut: whether it came to the cut, and whether
 * the message was the server's. */
uint32_t wire_proxy_disarm(struct wire_proxy *proxy, bool *ret_cut);

#endif
