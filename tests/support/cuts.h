/* A call whose exchange with a PostgreSQL is cut at every message, both ways, before and after
 * the message got through. What the caller is told must be true: success means done once,
 * a retryable refusal means that nothing was written, and an outcome that is not known is said
 * to be. The same call again must finish it. */
#ifndef HF_TESTS_SUPPORT_CUTS_H
#define HF_TESTS_SUPPORT_CUTS_H

#include <holdfast/store.h>
#include <libpq-fe.h>

#include "support/pg.h"
#include "support/wire.h"

/* A server, and ways to one store on it. */
struct cut_rig {
    struct pg_server server;
    struct wire_proxy *proxy;
    struct hf_store *cut;   /* through the proxy */
    struct hf_store *judge; /* past it */
    struct hf_store *late;  /* past it, and its clock is a day ahead */
    PGconn *outside;        /* plain SQL */
};

/* The proxy listens at `port` or one of the 400 after it. Both fail the test on a failure. */
void cut_rig_start(struct cut_rig *rig, const char *schema, int port);
void cut_rig_stop(struct cut_rig *rig);

struct cut_case {
    const char *name;
    /* Makes a new try of that number, past the proxy. */
    void (*prepare)(void *user, int number);
    /* Through the proxy. The same call each time, until the next prepare. */
    int (*call)(void *user);
    /* How often it happened, by plain SQL; -1: it leaves nothing that could be counted. */
    int64_t (*times)(void *user);
    int64_t once; /* what `times` says when it happened once */
    int done_as;  /* what the same call may answer, in addition to 0, once it is done */
};

/* Tries it with a cut at each message, and prints one line of counts. */
void cut_everywhere(struct wire_proxy *proxy, const struct cut_case *c, void *user);

#endif
