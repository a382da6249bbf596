/* The model server of tests (tests/support/model_server.py) as a child process, with its
 * journal, and what it takes to call it. The variable MODEL_SERVER names the program. */
#ifndef TESTS_AGENT_SERVER_H
#define TESTS_AGENT_SERVER_H

#include <sys/types.h>

#include <holdfast/model.h>

#include "agent/kit.h"

struct server {
    pid_t pid;
    int input;
    int port;
    char folder[64]; /* journal and certificates */
    char journal[96];
    char cert[96];
};

/* tls_name: the name in the certificate; NULL: plain HTTP. */
void server_start(struct server *server, const char *tls_name);
void server_kill(struct server *server); /* kill -9 */
void server_stop(struct server *server);
/* How often the text is in the journal. */
int server_saw(const struct server *server, const char *text);

/* A loop, and a provider of a server. */
struct client {
    struct hf_loop *loop;
    struct hf_provider *provider;
    struct hf_secret *key;
    char url[128];
};

/* config NULL: defaults. record NULL: none. */
void client_init(struct client *client, const struct server *server, const char *kind,
                 const struct hf_http_config *config, const char *record);
void client_fini(struct client *client);

/* Asks "hi" of the model and runs the loop until the call has ended. */
void client_ask(struct client *client, const char *model, struct heard *heard);
/* The same until `until` has been heard, the call then still running; its number. */
uint64_t client_begin(struct client *client, const char *model, const char *until,
                      struct heard *heard);

#endif
