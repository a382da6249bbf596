#include "agent/server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void make_cert(struct server *server, const char *name, char *key, size_t room)
{
    char command[512];
    snprintf(key, room, "%s/key.pem", server->folder);
    snprintf(server->cert, sizeof(server->cert), "%s/cert.pem", server->folder);
    snprintf(
        command, sizeof(command),
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
        "-subj /CN=test -addext subjectAltName=%s -keyout %s -out %s 2>/dev/null",
        name, key, server->cert);
    assert_int_equal(system(command), 0);
}

void server_start(struct server *server, const char *tls_name)
{
    char key[96] = "";
    char line[32] = "";
    int in[2];
    int out[2];
    memset(server, 0, sizeof(*server));
    snprintf(server->folder, sizeof(server->folder), "/tmp/holdfast-model.XXXXXX");
    assert_non_null(mkdtemp(server->folder));
    snprintf(server->journal, sizeof(server->journal), "%s/journal", server->folder);
    if (tls_name)
        make_cert(server, tls_name, key, sizeof(key));
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    server->pid = fork();
    assert_true(server->pid >= 0);
    if (server->pid == 0) {
        const char *program = getenv("MODEL_SERVER");
        dup2(in[0], 0);
        dup2(out[1], 1);
        execl(program ? program : "", "model_server", server->journal,
              tls_name ? server->cert : NULL, key, NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    server->input = in[1];
    assert_true(read(out[0], line, sizeof(line) - 1) > 0);
    close(out[0]);
    server->port = (int)strtol(line, NULL, 10);
    assert_true(server->port > 0);
}

static void reap(struct server *server)
{
    char command[128];
    int status = 0;
    close(server->input);
    assert_int_equal(waitpid(server->pid, &status, 0), server->pid);
    snprintf(command, sizeof(command), "rm -rf %s", server->folder);
    assert_int_equal(system(command), 0);
}

void server_kill(struct server *server)
{
    assert_int_equal(kill(server->pid, SIGKILL), 0);
    reap(server);
}

void server_stop(struct server *server)
{
    reap(server);
}

int server_saw(const struct server *server, const char *text)
{
    static char bytes[1 << 20];
    FILE *file = fopen(server->journal, "r");
    size_t len = file ? fread(bytes, 1, sizeof(bytes) - 1, file) : 0;
    int count = 0;
    bytes[len] = '\0';
    if (file)
        fclose(file);
    for (const char *at = strstr(bytes, text); at; at = strstr(at + 1, text))
        count++;
    return count;
}

void client_init(struct client *client, const struct server *server, const char *kind,
                 const struct hf_http_config *config, const char *record)
{
    struct hf_err err = { 0 };
    struct hf_transport *transport = NULL;
    memset(client, 0, sizeof(*client));
    snprintf(client->url, sizeof(client->url), "%s://localhost:%d/v1",
             server->cert[0] ? "https" : "http", server->port);
    if (strcmp(kind, "openai-chat") != 0)
        client->url[strlen(client->url) - 3] = '\0';
    assert_int_equal(hf_loop_new(NULL, &client->loop, &err), 0);
    assert_int_equal(
        hf_secret_new("demo", HF_SECRET_BYTES, "sk-CANARY", &client->key, &err), 0);
    assert_int_equal(hf_http_new(client->loop, config, &transport, &err), 0);
    if (record)
        assert_int_equal(
            hf_recorder_new(client->loop, transport, record, &transport, &err), 0);
    struct hf_endpoint endpoint = { .size = sizeof(endpoint),
                                    .name = "demo",
                                    .kind = kind,
                                    .base_url = client->url,
                                    .key = client->key };
    if (hf_endpoint_new(client->loop, &endpoint, transport, &client->provider, &err))
        fail_msg("%s", err.message);
}

void client_fini(struct client *client)
{
    hf_provider_free(client->provider);
    hf_secret_free(client->key);
    hf_loop_free(client->loop);
}

static uint64_t start(struct client *client, const char *model, struct heard *heard)
{
    struct asked asked;
    struct hf_err err = { 0 };
    struct hf_model_sink sink = { heard, heard_event };
    uint64_t id = 0;
    memset(heard, 0, sizeof(*heard));
    asked_simply(&asked, "", "");
    struct hf_request request = *asked.effect.request;
    request.model = model;
    asked.call.request = &request;
    if (hf_provider_start(client->provider, &asked.call, &sink, &id, &err))
        fail_msg("%s", err.message);
    asked_fini(&asked); /* nothing of it is needed any more */
    return id;
}

void client_ask(struct client *client, const char *model, struct heard *heard)
{
    (void)start(client, model, heard);
    while (heard->ends == 0)
        (void)hf_loop_step(client->loop, -1);
}

uint64_t client_begin(struct client *client, const char *model, const char *until,
                      struct heard *heard)
{
    uint64_t id = start(client, model, heard);
    while (heard->ends == 0 && !strstr(heard->used ? heard->text : "", until))
        (void)hf_loop_step(client->loop, -1);
    return id;
}
