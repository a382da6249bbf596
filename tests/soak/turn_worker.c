/* A worker with one agent and one tool, as a program that can be killed.
 *
 *   turn_worker STORE PORT LOG send SESSIONS MESSAGES    make sessions and send messages to them
 *   turn_worker STORE PORT LOG work                      say "ready", work until SIGTERM
 *
 * PORT is that of the model server (tests/support/model_server.py); its model `tools` asks for the
 * tool `add` three times. The tool writes the key of each call that it performs to LOG, a line at
 * a time, before it answers: the log is what an outsider knows of its effects.
 *
 * It says "asked WAIT TURN" and "ended TURN STATUS". TURN_KIND in the environment is the kind of
 * the endpoint (openai-chat), TURN_APPROVAL the rule for the tool's approvals (never).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <holdfast/http.h>
#include <holdfast/model.h>
#include <holdfast/secret.h>
#include <holdfast/worker.h>

#define TEXT(s) ((struct hf_span){ (s), strlen(s) })
#define must(rc) ((rc) ? die(err.message) : (void)0)

static struct hf_err err;
static int log_fd = -1;

static void die(const char *why)
{
    fprintf(stderr, "turn_worker: %s\n", why);
    exit(1);
}

static const char *from_env(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value ? value : otherwise;
}

static void add(void *user, struct hf_invocation *call)
{
    char line[512];
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now); /* this clock is always there */
    int len = snprintf(line, sizeof(line), "%s %lld\n", hf_invocation_key_text(call),
                       (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    struct hf_span args = hf_invocation_args(call);
    (void)user;
    if (write(log_fd, line, (size_t)len) != len)
        die("the log cannot be written");
    usleep(50000); /* done, and not recorded yet: a kill finds it here now and then */
    if (hf_invocation_value(call, args))
        die("there is no answer");
}

static void send_all(struct hf_store *store, int sessions, int messages)
{
    for (int s = 0; s < sessions; s++) {
        char id[32], key[32], message[128];
        struct hf_session_answer *made = NULL;
        snprintf(id, sizeof(id), "s%d", s);
        struct hf_session_spec fresh = { .size = sizeof(fresh),
                                         .session_id = id,
                                         .agent = "adder" };
        must(hf_session_create(store, NULL, &fresh, &made, &err));
        hf_session_answer_free(made);
        for (int m = 0; m < messages; m++) {
            struct hf_answer *sent = NULL;
            snprintf(key, sizeof(key), "m%d", m);
            snprintf(message, sizeof(message),
                     "{\"message\":{\"id\":\"u%d\",\"parts\":[{\"content\":\"question %s "
                     "%d\"}]}}",
                     m, id, m);
            struct hf_session_send send = { .size = sizeof(send),
                                            .session_id = id,
                                            .source_key = key,
                                            .message = message };
            must(hf_session_send(store, NULL, &send, &sent, &err));
            hf_answer_free(sent);
        }
    }
}

struct program {
    struct hf_loop *loop;
    struct hf_worker *worker;
    struct hf_watch *signals;
    int signal_fd;
};

static void on_stopped(void *user)
{
    struct program *program = user;
    hf_loop_stop(program->loop);
}

static void on_signal(void *user, int events)
{
    struct program *program = user;
    struct signalfd_siginfo info;
    struct hf_task stopped = { program, on_stopped };
    (void)events;
    if (read(program->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        hf_worker_stop(program->worker, 2000, &stopped);
}

static void on_heard(void *user, const struct hf_worker_event *event)
{
    (void)user;
    if (event->kind == HF_WORKER_ASKED)
        printf("asked %s %s\n", event->wait_id, event->turn_id);
    if (event->kind == HF_WORKER_TURN_ENDED)
        printf("ended %s %s\n", event->turn_id, hf_status_word(event->status));
    fflush(stdout);
    if (event->kind == HF_WORKER_FAULT || (event->kind == HF_WORKER_BACK && event->code))
        fprintf(stderr, "turn_worker: %s %s: %s\n", hf_worker_event_name(event->kind),
                event->session_id ? event->session_id : "-", event->message);
}

static void watch_signals(struct program *program)
{
    struct hf_watcher watcher = { program, on_signal };
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    program->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    must(hf_watch_new(program->loop, program->signal_fd, HF_READABLE, &watcher,
                      &program->signals, &err));
}

static void work(struct hf_store *store, const char *port)
{
    struct program program = { 0 };
    struct hf_transport *transport = NULL;
    struct hf_provider *provider = NULL;
    struct hf_secret *key = NULL;
    struct hf_toolset *tools = NULL;
    struct hf_surface *surface = NULL;
    struct hf_setup *setup = NULL;
    char url[64];
    snprintf(url, sizeof(url), "http://localhost:%s/v1", port);
    must(hf_loop_new(NULL, &program.loop, &err));
    must(hf_secret_new("demo", HF_SECRET_BYTES, "sk-demo", &key, &err));
    must(hf_http_new(program.loop, NULL, &transport, &err));
    struct hf_endpoint endpoint = { .size = sizeof(endpoint),
                                    .name = "demo",
                                    .kind = from_env("TURN_KIND", "openai-chat"),
                                    .base_url = url,
                                    .key = key };
    must(hf_endpoint_new(program.loop, &endpoint, transport, &provider, &err));
    struct hf_tool tool = {
        .size = sizeof(tool), .name = "add", .recovery = HF_RECOVERY_KEYED, .run = add
    };
    tool.approval.rule = from_env("TURN_APPROVAL", "never");
    must(hf_toolset_new(NULL, &tools, &err));
    must(hf_toolset_add(tools, &tool, &err));
    must(hf_surface_new(NULL, TEXT("Be brief."), hf_toolset_json(tools), &surface, &err));
    struct hf_turn_config config = { .size = sizeof(config),
                                     .protocol = hf_protocol_standard(),
                                     .surface = surface,
                                     .model = "tools",
                                     .turn_budget = 8 };
    must(hf_setup_new(&config, &setup, &err));
    struct hf_worker_agent agent = { .name = "adder",
                                     .setup = setup,
                                     .provider = provider,
                                     .model = "tools",
                                     .tools = tools };
    struct hf_worker_config settings = { .size = sizeof(settings),
                                         .loop = program.loop,
                                         .store = store,
                                         .agents = &agent,
                                         .agent_count = 1,
                                         .turns = 4,
                                         .ttl_ms = 1500,
                                         .poll_ms = 20,
                                         .pid = getpid(),
                                         .heard = on_heard };
    must(hf_worker_new(&settings, &program.worker, &err));
    watch_signals(&program);
    hf_loop_run(program.loop);
    hf_worker_free(program.worker);
    hf_watch_free(program.signals);
    close(program.signal_fd);
    hf_provider_free(provider);
    hf_setup_free(setup);
    hf_surface_free(surface);
    hf_toolset_unref(tools);
    hf_secret_free(key);
    hf_loop_free(program.loop);
}

int main(int argc, char **argv)
{
    struct hf_store *store = NULL;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL); /* before there are threads */
    if (argc != 5 && argc != 7)
        die("STORE PORT LOG send SESSIONS MESSAGES, or STORE PORT LOG work");
    log_fd = open(argv[3], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (log_fd < 0)
        die(strerror(errno));
    if (argc == 5 && (puts("ready") < 0 || fflush(stdout)))
        die("standard output is closed");
    must(hf_store_open(argv[1], NULL, &store, &err));
    if (argc == 7)
        send_all(store, (int)strtol(argv[5], NULL, 10), (int)strtol(argv[6], NULL, 10));
    else
        work(store, argv[2]);
    hf_store_close(store);
    close(log_fd);
    return 0;
}
