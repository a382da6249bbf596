/* See count.h. */
#include "count.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGS_MAX 8

static bool passed = true;

/* The total of a file of callgrind's; -1 when it has none. */
static double read_total(const char *path)
{
    char line[256];
    double total = -1;
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, "summary: ", 9) == 0 || strncmp(line, "totals: ", 8) == 0)
            total = strtod(strchr(line, ' '), NULL);
    if (file)
        fclose(file);
    return total;
}

#define APART_MAX 16

/* Collection is toggled when a function is entered and when it is left. */
static void run_valgrind(const char *function, const char *const *apart, const char *out,
                         const char *const *args)
{
    char self[4096] = { 0 };
    char collect[1 + APART_MAX][128];
    char file[128];
    const char *argv[ARGS_MAX + APART_MAX + 7] = { "valgrind", "-q", "--tool=callgrind",
                                                   file };
    size_t count = 4;
    for (size_t i = 0; i == 0 || (apart && i <= APART_MAX && apart[i - 1]); i++) {
        snprintf(collect[i], sizeof(collect[i]), "--toggle-collect=%s",
                 i == 0 ? function : apart[i - 1]);
        argv[count++] = collect[i];
    }
    snprintf(file, sizeof(file), "--callgrind-out-file=%s", out);
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        _exit(127);
    argv[count++] = self;
    for (size_t i = 0; i < ARGS_MAX && args[i]; i++)
        argv[count++] = args[i];
    execvp("valgrind", (char *const *)(void *)argv);
    _exit(127);
}

double bench_instructions(const char *function, const char *const *args)
{
    return bench_instructions_apart(function, NULL, args);
}

double bench_instructions_apart(const char *function, const char *const *apart,
                                const char *const *args)
{
    char out[64];
    int status = 0;
    snprintf(out, sizeof(out), "/tmp/holdfast-bench.%d", (int)getpid());
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        run_valgrind(function, apart, out, args);
    if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0) {
        fprintf(stderr, "bench: valgrind does not run\n");
        exit(1);
    }
    double total = read_total(out);
    unlink(out);
    return total;
}

long bench_resident_kb(void)
{
    long pages = 0;
    long resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%ld %ld", &pages, &resident) != 2)
        resident = 0;
    if (file)
        fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

void bench_check(bool fine)
{
    passed = passed && fine;
    printf("  %s\n", fine ? "ok" : "OVER THE LIMIT");
}

bool bench_passed(void)
{
    return passed;
}
