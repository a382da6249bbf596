/* A relay before a PostgreSQL server that breaks one connection at a chosen message. */
#ifndef HF_TESTS_SUPPORT_CUTTER_H
#define HF_TESTS_SUPPORT_CUTTER_H

#include <stdbool.h>
#include <stddef.h>

struct cutter;

/* Listens in `folder` (as port 7000 of libpq) and passes everything on to the
 * server that listens there at `port`. */
struct cutter *cutter_start(const char *folder, int port);
void cutter_stop(struct cutter *cutter);

/* Break the connection that next carries a message, when it has passed `after` messages to
 * the client (or, with `to_server`, to the server) from now on. Connections made later pass. */
void cutter_arm(struct cutter *cutter, size_t after, bool to_server);
/* Did it break one? Disarms it. */
bool cutter_disarm(struct cutter *cutter);

#endif
