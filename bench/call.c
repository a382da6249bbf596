/* What `holdfast call` costs: decoding and encoding, calls per second, memory.
 *
 *   bench_call HOLDFAST       prints the figures and a verdict on each
 *   bench_call codec TIMES    the work that is counted
 *
 * Rates are ratios within one run: creates by `call --lines` against hf_work_create in a loop,
 * in turns, each on a file of its own with full sync. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "count.h"
#include "op/op.h"

#define INSTRUCTIONS_MAX 40000.0
#define RATIO_MIN 0.70
#define TURNS 6
#define CREATES 300 /* of one turn */
#define CALLS 100000
#define MEMORY_SLACK_KB 256 /* pages that the allocator had not touched before */

static const char line[] =
    "{\"op\":\"work.create\",\"in\":{\"source_system\":\"manual\",\"source_id\":\"n%d\","
    "\"payload\":{\"text\":\"%0180d\"}}}";

/* ---- decoding and encoding ----------------------------------------------------------- */

/* Counted: the bytes of a request to struct hf_work_spec, and struct hf_work to its envelope. */
__attribute__((noinline)) static void codec(struct hf_arena *arena, struct hf_buf *out,
                                            const char *text, const struct hf_item *item)
{
    struct hf_err err = { 0 };
    struct op_line given = { 0 };
    struct op_json_out json;
    struct op_call call = { .arena = arena, .err = &err, .out = &json.out };
    op_json_init(&json, &call, out);
    if (op_line_read(&call, (struct hf_span){ text, strlen(text) }, &given) ||
        op_line_begin(&call, &given) || op_unit(&call, item, "created"))
        abort();
    op_json_end(&json);
    hf_buf_reset(out);
    hf_arena_reset(arena);
}

static struct hf_item one_unit(void)
{
    struct hf_item item = { .created = true };
    static char payload[256];
    (void)snprintf(payload, sizeof(payload), "{\"text\":\"%0180d\"}", 7);
    item.work =
        (struct hf_work){ .work_id = "01a1e5c6-0986-7000-9f2f-e9c2024cf137",
                          .tenant = "",
                          .source_system = "manual",
                          .source_id = "n1",
                          .kind = "work",
                          .queue = "default",
                          .status = "queued",
                          .disposition = "expire",
                          .priority = 3,
                          .max_attempts = 3,
                          .due_at = 1794856323462,
                          .payload = payload,
                          .retry_policy = "{\"backoff_multiplier\":2,\"initial_"
                                          "backoff_ms\":5000,\"jitter\":\"full\"}",
                          .created_at = 1794856323462,
                          .updated_at = 1794856323462 };
    return item;
}

static int run_codec(int times)
{
    struct hf_arena arena;
    struct hf_buf out;
    struct hf_item item = one_unit();
    char text[512];
    (void)snprintf(text, sizeof(text), line, 1, 7);
    hf_arena_init(&arena, hf_alloc_system());
    hf_buf_init(&out, hf_alloc_system(), (size_t)1 << 20);
    for (int i = 0; i < times; i++)
        codec(&arena, &out, text, &item);
    hf_buf_fini(&out);
    hf_arena_fini(&arena);
    return 0;
}

/* ---- a program that is called -------------------------------------------------------- */

struct child {
    pid_t pid;
    FILE *to;
    FILE *from;
    char *answer;
    size_t room;
};

static struct child start(const char *program, const char *db)
{
    int in[2], out[2];
    struct child child = { 0 };
    if (pipe(in) || pipe(out))
        abort();
    child.pid = fork();
    if (child.pid < 0)
        abort();
    if (child.pid == 0) {
        (void)dup2(in[0], STDIN_FILENO);
        (void)dup2(out[1], STDOUT_FILENO);
        (void)close(in[1]);
        (void)close(out[0]);
        (void)execl(program, "holdfast", "--quiet", "--db", db, "call", "--lines", NULL);
        _exit(127);
    }
    (void)close(in[0]);
    (void)close(out[1]);
    child.to = fdopen(in[1], "w");
    child.from = fdopen(out[0], "r");
    return child;
}

static void ask(struct child *child, const char *text)
{
    if (fputs(text, child->to) < 0 || fputc('\n', child->to) < 0 || fflush(child->to) ||
        getline(&child->answer, &child->room, child->from) < 0 ||
        strncmp(child->answer, "{\"ok\":true", 10) != 0) {
        (void)fprintf(stderr, "%s -> %s\n", text, child->answer ? child->answer : "");
        exit(1);
    }
}

static void stop(struct child *child)
{
    int status = 0;
    (void)fclose(child->to);
    (void)fclose(child->from);
    free(child->answer);
    if (waitpid(child->pid, &status, 0) != child->pid || status != 0)
        abort();
}

static long resident_kb(pid_t pid)
{
    char path[64], text[256];
    long pages = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "r");
    if (file && fgets(text, sizeof(text), file) && strchr(text, ' '))
        pages = strtol(strchr(text, ' '), NULL, 10);
    if (file)
        (void)fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* ---- rates and memory ---------------------------------------------------------------- */

static double now(void)
{
    struct timespec at;
    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static double by_call(struct child *child, int from)
{
    char text[512];
    double began = now();
    for (int i = from; i < from + CREATES; i++) {
        (void)snprintf(text, sizeof(text), line, i, i);
        ask(child, text);
    }
    return now() - began;
}

static double by_library(struct hf_store *store, int from)
{
    char payload[256], id[24];
    double began = now();
    for (int i = from; i < from + CREATES; i++) {
        struct hf_answer *answer = NULL;
        struct hf_err err = { 0 };
        (void)snprintf(payload, sizeof(payload), "{\"text\":\"%0180d\"}", i);
        (void)snprintf(id, sizeof(id), "n%d", i);
        struct hf_work_spec unit = { .size = sizeof(unit),
                                     .source = HF_SOURCE_MANUAL,
                                     .source_id = id,
                                     .priority = -1,
                                     .payload = payload };
        if (hf_work_create(store, NULL, &unit, 1, 0, &answer, &err))
            abort();
        hf_answer_free(answer);
    }
    return now() - began;
}

static void rates(const char *program, const char *folder)
{
    char ours[256], theirs[256];
    struct hf_store *store = NULL;
    struct hf_err err = { 0 };
    double called = 0, looped = 0;
    (void)snprintf(ours, sizeof(ours), "%s/call.db", folder);
    (void)snprintf(theirs, sizeof(theirs), "%s/loop.db", folder);
    struct child child = start(program, ours);
    if (hf_store_open(theirs, NULL, &store, &err))
        abort();
    for (int turn = 0; turn < TURNS; turn++) {
        called += by_call(&child, turn * CREATES);
        looped += by_library(store, turn * CREATES);
    }
    stop(&child);
    hf_store_close(store);
    (void)printf(
        "creates/s       call --lines %8.0f   hf_work_create %8.0f   ratio %.2f, "
        "at least %.2f",
        TURNS * CREATES / called, TURNS * CREATES / looped, looped / called, RATIO_MIN);
    bench_check(looped / called >= RATIO_MIN);
}

static void memory(const char *program, const char *folder)
{
    char db[256];
    long early = 0;
    (void)snprintf(db, sizeof(db), "%s/call.db", folder);
    struct child child = start(program, db);
    for (int i = 1; i <= CALLS; i++) {
        ask(&child, "{\"op\":\"work.list\",\"in\":{\"limit\":1}}");
        if (i == 1000)
            early = resident_kb(child.pid);
    }
    long late = resident_kb(child.pid);
    stop(&child);
    (void)printf("memory          after 1,000 calls %ld kB, after %d %ld kB", early,
                 CALLS, late);
    bench_check(late <= early + MEMORY_SLACK_KB);
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/bench-call-XXXXXX", command[64];
    static const char *const once[] = { "codec", "1", NULL };
    static const char *const often[] = { "codec", "101", NULL };
    if (argc == 3 && strcmp(argv[1], "codec") == 0)
        return run_codec((int)strtol(argv[2], NULL, 10));
    if (argc != 2 || !mkdtemp(folder)) {
        (void)fprintf(stderr, "usage: bench_call HOLDFAST\n");
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    double each =
        (bench_instructions("codec", often) - bench_instructions("codec", once)) / 100;
    (void)printf("instructions    request and answer %.0f, at most %.0f", each,
                 INSTRUCTIONS_MAX);
    bench_check(each <= INSTRUCTIONS_MAX);
    rates(argv[1], folder);
    memory(argv[1], folder);
    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    if (system(command) != 0)
        return 1;
    return bench_passed() ? 0 : 1;
}
