/* Many streams on one loop, against a bare program over libcurl's multi interface that holds
 * the same streams, in the same run.
 *
 *   bench_streams [COUNT]            both in turn, with a server of their own; figures, verdicts
 *   bench_streams sessions [COUNT]   one worker with so many sessions, each in a model call of 200
 *                                    pieces, against the bare program with the same streams
 *
 * A child serves: every stream gets its head and ten events, one round after the other, then
 * its end. Memory is what the process has private when all streams have their head; CPU is that
 * of the whole process up to the end. Exits with 1 when a limit of the project is passed. */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/agent.h>

#include "count.h"

#define COUNT_MAX 4000
#define ROUNDS 10
#define SESSION_ROUNDS 200

static int rounds = ROUNDS; /* pieces of a stream */

static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                           "Connection: close\r\n\r\n";
static const char event[] =
    "data: "
    "{\"id\":\"chatcmpl-9f2c41d07\",\"object\":\"chat.completion.chunk\",\"created\":"
    "1763308800,\"model\":\"gpt-test-2026-01-01\",\"choices\":[{\"index\":0,\"delta\":{"
    "\"content\":\" the tide tables\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n";
static const char last[] =
    "data: {\"id\":\"chatcmpl-9f2c41d07\",\"choices\":[{\"index\":0,"
    "\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/* What a run reports to its parent. */
struct figures {
    long private_kb;
    double cpu_s;
    long threads;
    long ended;
};

static void die(const char *why)
{
    fprintf(stderr, "bench_streams: %s\n", why);
    exit(1);
}

static long status_kb(const char *name)
{
    char line[256];
    long value = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, name, strlen(name)) == 0)
            value = strtol(line + strlen(name), NULL, 10);
    if (file)
        fclose(file);
    return value;
}

static double cpu_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* The request need not be understood: its end is enough. */
static void read_request(int fd)
{
    char bytes[4096];
    size_t used = 0;
    char *body = NULL;
    while (used < sizeof(bytes) - 1) {
        ssize_t got = read(fd, bytes + used, sizeof(bytes) - 1 - used);
        if (got <= 0)
            die("a request ended early");
        used += (size_t)got;
        bytes[used] = '\0';
        body = strstr(bytes, "\r\n\r\n");
        const char *length = strstr(bytes, "ontent-Length: ");
        if (body && length &&
            used >= (size_t)(body + 4 - bytes) + strtoul(length + 15, NULL, 10))
            return;
    }
}

static void send_all(int fd, const char *text)
{
    if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        die("a stream cannot be written");
}

/* Serves `count` streams; waits for a byte of `go` once all have their head. */
static void serve(int listener, long count, int go)
{
    static int fds[COUNT_MAX];
    char byte = 0;
    for (long i = 0; i < count; i++) {
        fds[i] = accept(listener, NULL, NULL);
        read_request(fds[i]);
        send_all(fds[i], head);
        send_all(fds[i], event);
    }
    if (read(go, &byte, 1) != 1)
        die("the client is gone");
    for (int round = 1; round < rounds; round++)
        for (long i = 0; i < count; i++)
            send_all(fds[i], event);
    for (long i = 0; i < count; i++) {
        send_all(fds[i], last);
        close(fds[i]);
    }
}

struct client {
    long heads;
    long ended;
    long count;
    int go;
    struct figures figures;
};

static void on_head(struct client *client)
{
    if (++client->heads < client->count)
        return;
    client->figures.private_kb = status_kb("RssAnon:");
    client->figures.threads = status_kb("Threads:");
    if (write(client->go, "x", 1) != 1)
        die("the server is gone");
}

static void on_event(void *user, const struct hf_model_event *heard)
{
    struct client *client = user;
    if (heard->kind == HF_MODEL_END) {
        client->ended++;
        if (heard->error)
            die(heard->error->code);
    }
}

/* The first text of each stream counts as its head. */
struct stream {
    struct client *client;
    bool begun;
};

static void on_stream(void *user, const struct hf_model_event *heard)
{
    struct stream *stream = user;
    if (heard->kind == HF_MODEL_TEXT && !stream->begun) {
        stream->begun = true;
        on_head(stream->client);
    }
    on_event(stream->client, heard);
}

static struct hf_turn *ask(struct hf_surface **surface, struct hf_setup **setup,
                           struct hf_effect *ret_effect)
{
    struct hf_err err = { 0 };
    struct hf_turn *turn = NULL;
    struct hf_part part = { .content = { "hi", 2 } };
    struct hf_message message = { .id = "m", .parts = &part, .part_count = 1 };
    struct hf_record record = { .message = &message };
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = "s",
                                   .turn_id = "t",
                                   .inputs = &record,
                                   .input_count = 1 };
    struct hf_turn_config config = { .size = sizeof(config),
                                     .protocol = hf_protocol_standard(),
                                     .model = "m",
                                     .turn_budget = 1 };
    struct hf_span none = { "", 0 };
    if (hf_surface_new(NULL, none, none, surface, &err))
        die(err.message);
    config.surface = *surface;
    if (hf_setup_new(&config, setup, &err) || hf_turn_new(*setup, &start, &turn, &err))
        die(err.message);
    while (ret_effect->kind != HF_EFFECT_LLM_CALL)
        if (hf_turn_poll(turn, ret_effect, &err))
            die(err.message);
    return turn;
}

static void run_ours(struct client *client, const char *url)
{
    static struct stream streams[COUNT_MAX];
    struct hf_err err = { 0 };
    struct hf_loop *loop = NULL;
    struct hf_transport *http = NULL;
    struct hf_provider *provider = NULL;
    struct hf_surface *surface = NULL;
    struct hf_setup *setup = NULL;
    struct hf_render *render = NULL;
    struct hf_effect effect = { 0 };
    uint64_t id = 0;
    struct hf_endpoint endpoint = {
        .size = sizeof(endpoint), .name = "bench", .kind = "openai-chat", .base_url = url
    };
    if (hf_loop_new(NULL, &loop, &err) || hf_http_new(loop, NULL, &http, &err) ||
        hf_endpoint_new(loop, &endpoint, http, &provider, &err))
        die(err.message);
    struct hf_turn *turn = ask(&surface, &setup, &effect);
    if (hf_render_new(turn, effect.request, &render, &err))
        die(err.message);
    struct hf_model_call call = { .size = sizeof(call),
                                  .request = effect.request,
                                  .render = render };
    for (long i = 0; i < client->count; i++) {
        streams[i].client = client;
        struct hf_model_sink sink = { &streams[i], on_stream };
        if (hf_provider_start(provider, &call, &sink, &id, &err))
            die(err.message);
    }
    while (client->ended < client->count)
        (void)hf_loop_step(loop, -1);
}

static size_t on_bare(char *bytes, size_t size, size_t count, void *user)
{
    struct stream *stream = user;
    (void)bytes;
    if (!stream->begun) {
        stream->begun = true;
        on_head(stream->client);
    }
    return size * count;
}

/* The same receive buffer as ours, so that what is compared is what we add. */
static CURL *bare_stream(const char *url, struct stream *stream)
{
    static const char body[] = "{\"model\":\"m\",\"messages\":[],\"stream\":true}";
    char whole[256];
    CURL *easy = curl_easy_init();
    snprintf(whole, sizeof(whole), "%s/chat/completions", url);
    curl_easy_setopt(easy, CURLOPT_URL, whole);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 4096L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bare);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, stream);
    return easy;
}

static void run_bare(struct client *client, const char *url)
{
    static struct stream streams[COUNT_MAX];
    CURLM *multi = curl_multi_init();
    int running = 1;
    for (long i = 0; i < client->count; i++) {
        streams[i].client = client;
        curl_multi_add_handle(multi, bare_stream(url, &streams[i]));
    }
    while (running > 0) {
        curl_multi_perform(multi, &running);
        if (running > 0)
            curl_multi_poll(multi, NULL, 0, 1000, NULL);
    }
    client->ended = client->count;
}

/* ---- sessions on one worker ---- */

struct crowd {
    struct client *client;
    struct hf_agent *agent;
    bool begun[COUNT_MAX];
};

static void on_heard(void *user, const struct hf_worker_event *heard)
{
    struct crowd *crowd = user;
    long i = heard->session_id ? strtol(heard->session_id + 1, NULL, 10) : 0;
    if (heard->kind == HF_WORKER_TEXT && !crowd->begun[i]) {
        crowd->begun[i] = true;
        on_head(crowd->client);
    }
    if (heard->kind == HF_WORKER_TURN_ENDED &&
        ++crowd->client->ended == crowd->client->count)
        hf_agent_stop(crowd->agent, 0);
}

static void send_all_messages(struct hf_store *store, long count)
{
    for (long i = 0; i < count; i++) {
        char id[32];
        struct hf_err err = { 0 };
        struct hf_session_answer *made = NULL;
        struct hf_answer *sent = NULL;
        struct hf_session_spec fresh = { .size = sizeof(fresh),
                                         .session_id = id,
                                         .agent = "bench" };
        struct hf_session_send send = {
            .size = sizeof(send),
            .session_id = id,
            .message = "{\"message\":{\"id\":\"m\",\"parts\":[{\"content\":\"hi\"}]}}"
        };
        snprintf(id, sizeof(id), "s%ld", i);
        if (hf_session_create(store, NULL, &fresh, &made, &err) ||
            hf_session_send(store, NULL, &send, &sent, &err))
            die(err.message);
        hf_session_answer_free(made);
        hf_answer_free(sent);
    }
}

static void run_sessions(struct client *client, const char *url)
{
    static struct crowd crowd;
    struct hf_err err = { 0 };
    struct hf_store *store = NULL;
    struct hf_loop *loop = NULL;
    struct hf_transport *http = NULL;
    struct hf_provider *provider = NULL;
    struct hf_model *model = NULL;
    struct hf_endpoint endpoint = {
        .size = sizeof(endpoint), .name = "bench", .kind = "openai-chat", .base_url = url
    };
    crowd.client = client;
    if (hf_store_open("sqlite::memory:", NULL, &store, &err) ||
        hf_loop_new(NULL, &loop, &err) || hf_http_new(loop, NULL, &http, &err) ||
        hf_endpoint_new(loop, &endpoint, http, &provider, &err))
        die(err.message);
    struct hf_model_config entry = { .size = sizeof(entry),
                                     .provider = provider,
                                     .id = "m",
                                     .context_tokens = 100000,
                                     .output_tokens = 1000 };
    if (hf_model_new(&entry, &model, &err))
        die(err.message);
    struct hf_agent_config config = { .size = sizeof(config),
                                      .loop = loop,
                                      .store = store,
                                      .name = "bench",
                                      .model = model,
                                      .user = &crowd,
                                      .heard = on_heard };
    if (hf_agent_new(&config, &crowd.agent, &err))
        die(err.message);
    send_all_messages(store, client->count);
    double before = cpu_s();
    if (hf_agent_serve(&crowd.agent, 1, client->count, &err))
        die(err.message);
    client->figures.cpu_s = -before; /* what was spent before is not counted */
}

/* ---- both ---- */

typedef void run_client(struct client *client, const char *url);

/* A client in a process of its own, so that neither has what the other left. */
static struct figures measure(run_client *run, long count)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t len = sizeof(address);
    int go[2];
    int report[2];
    char url[64];
    struct figures figures = { 0 };
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (listener < 0 || bind(listener, (void *)&address, sizeof(address)) ||
        listen(listener, COUNT_MAX) || getsockname(listener, (void *)&address, &len) ||
        pipe(go) || pipe(report))
        die("no sockets");
    snprintf(url, sizeof(url), "http://127.0.0.1:%d", ntohs(address.sin_port));
    pid_t child = fork();
    if (child == 0) {
        struct client client = { .count = count, .go = go[1] };
        close(listener);
        run(&client, url);
        client.figures.cpu_s += cpu_s();
        client.figures.ended = client.ended;
        if (write(report[1], &client.figures, sizeof(figures)) != sizeof(figures))
            die("no report");
        _exit(0);
    }
    close(report[1]); /* a client that dies is noticed */
    serve(listener, count, go[0]);
    close(listener);
    if (read(report[0], &figures, sizeof(figures)) != sizeof(figures))
        die("no report");
    waitpid(child, NULL, 0);
    return figures;
}

static int bench_sessions(long count)
{
    rounds = SESSION_ROUNDS;
    struct figures bare = measure(run_bare, count);
    struct figures ours = measure(run_sessions, count);
    printf("%ld sessions   bare %.2f s    one worker %ld KB, %.2f s, %ld threads\n",
           count, bare.cpu_s, ours.private_kb, ours.cpu_s, ours.threads);
    printf("CPU     %.2f times the bare program's (at most 3)", ours.cpu_s / bare.cpu_s);
    bench_check(ours.cpu_s <= 3 * bare.cpu_s);
    printf("threads %ld (at most 12)", ours.threads);
    bench_check(ours.threads <= 12);
    return bench_passed() ? 0 : 1;
}

int main(int argc, char **argv)
{
    bool sessions = argc > 1 && strcmp(argv[1], "sessions") == 0;
    const char *given = argc > 1 + sessions ? argv[1 + sessions] : NULL;
    long count = given ? strtol(given, NULL, 10) : sessions ? 200 : 2000;
    struct rlimit files;
    if (count < 1 || count > COUNT_MAX)
        die("COUNT is 1 to 4000");
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (sessions)
        return bench_sessions(count);
    struct figures bare = measure(run_bare, count);
    struct figures ours = measure(run_ours, count);
    printf("%ld streams    bare %ld KB, %.2f s    ours %ld KB, %.2f s, %ld thread(s)\n",
           count, bare.private_kb, bare.cpu_s, ours.private_kb, ours.cpu_s, ours.threads);
    printf("memory  %.2f times the bare program's (at most 1.5)",
           (double)ours.private_kb / (double)bare.private_kb);
    bench_check((double)ours.private_kb <= 1.5 * (double)bare.private_kb);
    printf("CPU     %.2f times the bare program's (at most 2)", ours.cpu_s / bare.cpu_s);
    bench_check(ours.cpu_s <= 2 * bare.cpu_s);
    printf("threads %ld (at most 2)", ours.threads);
    bench_check(ours.threads <= 2);
    struct figures idle = measure(run_ours, 1);
    printf("idle    %ld KB private with a provider and one stream (at most 8,192)",
           idle.private_kb);
    bench_check(idle.private_kb <= 8192);
    return bench_passed() ? 0 : 1;
}
