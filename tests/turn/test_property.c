/* Whole turns with random models, tools, failures, cancels and levers, cut at every effect:
 * effects, ids, messages, events and the final bytes are those of the uncut turn, and of a
 * twin that is driven through JSON.
 *
 *   test_turn_property                    a sample, as cases of the test command
 *   test_turn_property --turns N [SEED]   the same checks over N turns, from that seed on
 *   … --plant NAME N                      with a planted mutant of the library (plants.py) */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/fail_alloc.h"
#include "support/unit.h"
#include "turn/world.h"

#ifdef WITH_PLANTS
#    include "sim/plants.h"
#endif

#define SEEDS 200
#define SEEN_SEEDS 300 /* until each kind of thing has happened */
#define PROCESS_SEEDS 4
#define MEMORY_SEEDS 16

/* What the long run does with each turn, and how often it did it. */
static struct {
    uint64_t first;
    uint64_t turns;
    uint64_t process_each; /* of every so many turns, the cuts are other processes */
    uint64_t effects;
    uint64_t restores;
    uint64_t processes;
    uint64_t rebases;
} run = { .first = 1, .turns = SEEDS, .process_each = 0 };
static uint64_t at_seed; /* for the report of a failure */

struct whole {
    char *log;
    char *end;
    size_t end_len;
    size_t effects;
};

static void keep_whole(struct world *world, struct whole *ret_whole)
{
    ret_whole->log = strdup(hf_buf_str(&world->log));
    ret_whole->end = malloc(world->end.len);
    memcpy(ret_whole->end, world->end.at, world->end.len);
    ret_whole->end_len = world->end.len;
    ret_whole->effects = world->effects;
}

static void drop_whole(struct whole *whole)
{
    free(whole->log);
    free(whole->end);
}

static void run_whole(uint64_t seed, struct whole *ret_whole)
{
    static struct world world;
    at_seed = seed;
    world_open(&world, seed, hf_alloc_system());
    world.twinned = true;
    assert_int_equal(world_begin(&world), 0);
    assert_int_equal(world_run(&world, WORLD_WHOLE, 0, 1), 0);
    keep_whole(&world, ret_whole);
    world_close(&world);
}

static void check_against(const struct world *world, const struct whole *whole)
{
    assert_string_equal(hf_buf_str(&world->log), whole->log);
    assert_int_equal(world->end.len, whole->end_len);
    assert_memory_equal(world->end.at, whole->end, whole->end_len);
}

static void run_cut(uint64_t seed, enum world_cut cut, size_t at,
                    const struct whole *whole)
{
    static struct world world;
    world_open(&world, seed, hf_alloc_system());
    world.twinned = at == SIZE_MAX;
    assert_int_equal(world_begin(&world), 0);
    assert_int_equal(world_run(&world, cut, at, 1), 0);
    check_against(&world, whole);
    run.restores += world.restores;
    world_close(&world);
}

static void cut_everywhere(uint64_t seed)
{
    struct whole whole;
    run_whole(seed, &whole);
    run.effects += whole.effects;
    for (size_t at = 1; at <= whole.effects; at++) {
        run_cut(seed, WORLD_CUT_POLLED, at, &whole);
        run_cut(seed, WORLD_CUT_ANSWERED, at, &whole);
        run_cut(seed, WORLD_CUT_PARTLY, at, &whole);
    }
    run_cut(seed, WORLD_CUT_POLLED, SIZE_MAX, &whole);
    run_cut(seed, WORLD_CUT_ANSWERED, SIZE_MAX, &whole);
    run_cut(seed, WORLD_CUT_PARTLY, SIZE_MAX, &whole);
    drop_whole(&whole);
}

static void a_turn_cut_at_any_and_at_every_effect_comes_out_the_same(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        cut_everywhere(seed);
    assert_true(run.effects > (uint64_t)SEEDS * 10); /* they were turns, not just ends */
}

/* The log, and the final state with one and the same base; how often it was rebased. */
static size_t run_rebased(uint64_t seed, enum world_rebase rebase, uint64_t salt,
                          enum world_cut cut, struct whole *ret_whole)
{
    static struct world world;
    struct hf_bytes bare = { 0 };
    world_open(&world, seed, hf_alloc_system());
    world.rebase = rebase;
    world.salt = salt;
    assert_int_equal(world_begin(&world), 0);
    assert_int_equal(world_run(&world, cut, SIZE_MAX, 1), 0);
    world_save_bare(&world, &bare);
    hf_bytes_free(&world.end);
    world.end = bare;
    keep_whole(&world, ret_whole);
    size_t rebased = world.rebased;
    world_close(&world);
    return rebased;
}

/* The final bytes are compared with all reported records moved to the base: its digest then
 * means them, and nothing more depends on where the base began. */
static void rebase_variously(uint64_t seed)
{
    struct whole plain;
    assert_int_equal(run_rebased(seed, WORLD_REBASE_NEVER, 0, WORLD_WHOLE, &plain), 0);
    for (uint64_t salt = 0; salt < 4; salt++) {
        struct whole other;
        run.rebases += run_rebased(seed, salt ? WORLD_REBASE_SALT : WORLD_REBASE_ALWAYS,
                                   salt, salt % 2 ? WORLD_CUT_ANSWERED : WORLD_WHOLE,
                                   &other);
        assert_string_equal(other.log, plain.log);
        assert_int_equal(other.end_len, plain.end_len);
        assert_memory_equal(other.end, plain.end, plain.end_len);
        drop_whole(&other);
    }
    drop_whole(&plain);
}

static void a_rebase_changes_neither_effects_nor_ids_nor_the_end(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        rebase_variously(seed);
    assert_true(run.rebases > SEEDS);
}

/* The next line of a log that is a model call; NULL when there is none. */
static const char *next_request(const char *at)
{
    static const char mark[] = "{\"effect\":\"llm_call\"";
    while (at && strncmp(at, mark, sizeof(mark) - 1) != 0) {
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    return at;
}

/* Of a request in a log: the messages up to the breakpoint. */
static void cached_part(const char *line, const char **ret_from, size_t *ret_len)
{
    const char *from = strstr(line, "\"messages\":[");
    const char *to = strstr(line, ",\"cache_breakpoint\":true");
    assert_non_null(from);
    assert_non_null(to);
    assert_true(from < to);
    *ret_from = from;
    *ret_len = (size_t)(to - from);
}

/* What is before the prompt cache's breakpoint is the beginning of the next request,
 * unless the host changed the prompt; and it grows as the turn goes on. */
static void what_a_request_caches_begins_the_next_one(void **state)
{
    (void)state;
    size_t pairs = 0;
    size_t grew = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct whole whole;
        run_whole(seed, &whole);
        const char *line = next_request(whole.log);
        const char *next = line ? next_request(line + 1) : NULL;
        for (; next; line = next, next = next_request(line + 1)) {
            const char *cached = NULL;
            const char *then = NULL;
            size_t len = 0;
            size_t then_len = 0;
            cached_part(line, &cached, &len);
            cached_part(next, &then, &then_len);
            if (strncmp(strstr(line, "\"prompt_hash\""), strstr(next, "\"prompt_hash\""),
                        80) != 0)
                continue;
            assert_true(then_len >= len);
            assert_memory_equal(then, cached, len);
            pairs++;
            grew += then_len > len;
        }
        drop_whole(&whole);
    }
    assert_true(pairs > SEEDS / 2);
    assert_true(grew > pairs / 3);
}

/* Every kind of thing must have happened, or the test proves little. */
static void the_random_turns_show_these_effects_and_outcomes(void **state)
{
    (void)state;
    static const char *const wanted[] = {
        "\"effect\":\"sync_execution_surface\"",
        "\"effect\":\"llm_call\"",
        "\"effect\":\"tool_calls\"",
        "\"effect\":\"exec_code\"",
        "\"effect\":\"checkpoint\"",
        "\"effect\":\"sleep\"",
        "\"effect\":\"cancel_llm\"",
        "\"effect\":\"log\"",
        "\"effect\":\"progress\"",
        "\"answered\":true",
        "\"kind\":\"attempt_reset\"",
        "\"kind\":\"assistant_message\"",
        "\"kind\":\"final_value\"",
        "\"kind\":\"tool_value\"",
        "\"kind\":\"cancelled\"",
        "\"kind\":\"incomplete\"",
        "\"kind\":\"max_turns\"",
        "\"kind\":\"no_progress\"",
        "\"kind\":\"provider_error\"",
        "\"kind\":\"plugin_abort\"",
        "\"kind\":\"runtime_error\"",
        "\"outcome\":\"unknown\"",
        "\"event_type\":\"unclosed\"",
        "\"event_type\":\"unclosed_cut\"",
        "\"event_type\":\"language\"",
        "\"event_type\":\"malformed\"",
        "\"event_type\":\"no_finish\"",
        "native_tool_call",
        "\"data\":{\"step\":6", /* the base ends with step 3 */
        "\"unknown\":true",
        "does not fit",
        "there is no tool",
        "\"given\":{\"env\":{\"user\":\"ada\"}}",
        "- doc: a text (fetched when a cell first reads it)",
        "Variables that cells have set",
        "ada\\tfalse\\tthis table is given by the host",
        "it raised",
        "\"bindings\":\"1e26c59390f67b3d5b1afe3c", /* {"t":[1],"x":1} */
        "\"bindings\":\"hash-2\"",
    };
    bool seen[sizeof(wanted) / sizeof(wanted[0])] = { 0 };
    for (uint64_t seed = 1; seed <= SEEN_SEEDS; seed++) {
        struct whole whole;
        run_whole(seed, &whole);
        for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
            seen[i] = seen[i] || strstr(whole.log, wanted[i]);
        drop_whole(&whole);
    }
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        if (!seen[i])
            print_error("never seen: %s\n", wanted[i]);
        assert_true(seen[i]);
    }
}

/* Another process */

static void write_all(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len > 0) {
        ssize_t n = write(fd, at, len);
        assert_true(n > 0);
        at += n;
        len -= (size_t)n;
    }
}

static char *read_all(int fd, size_t *ret_len)
{
    off_t size = lseek(fd, 0, SEEK_END);
    char *text = malloc((size_t)size + 1);
    assert_int_equal(pread(fd, text, (size_t)size, 0), size);
    text[size] = '\0';
    *ret_len = (size_t)size;
    return text;
}

/* The child: goes on from the save on descriptor 3, writes log and final save to 4 and 5. */
static int resume_here(uint64_t seed)
{
    static struct world world;
    size_t len = 0;
    char *save = read_all(3, &len);
    world_open(&world, seed, hf_alloc_system());
    world_resume(&world, (struct hf_span){ save, len });
    assert_int_equal(world_run(&world, WORLD_WHOLE, 0, 1), 0);
    write_all(4, world.log.at ? world.log.at : "", world.log.len);
    write_all(5, world.end.at, world.end.len);
    world_close(&world);
    free(save);
    return 0;
}

static void run_elsewhere(uint64_t seed, const int fds[3])
{
    char text[32];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)seed);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int high[3];
        for (int i = 0; i < 3; i++)
            high[i] = fcntl(fds[i], F_DUPFD, 20);
        for (int i = 0; i < 3; i++)
            dup2(high[i], 3 + i);
        execl("/proc/self/exe", "test_turn_property", "--resume", text, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* The whole log is what both processes saw. */
static void go_on_elsewhere(uint64_t seed, size_t at, const struct whole *whole)
{
    static struct world world;
    int fds[3];
    struct hf_bytes save = { 0 };
    size_t log_len = 0;
    size_t end_len = 0;
    for (int i = 0; i < 3; i++)
        fds[i] = memfd_create("turn", 0);
    world_open(&world, seed, hf_alloc_system());
    assert_int_equal(world_begin(&world), 0);
    world_export_at(&world, at, &save);
    write_all(fds[0], save.at, save.len);
    run_elsewhere(seed, fds);
    char *log = read_all(fds[1], &log_len);
    char *end = read_all(fds[2], &end_len);
    assert_memory_equal(hf_buf_str(&world.log), whole->log, world.log.len);
    if (log_len > 0)
        assert_string_equal(log, whole->log + world.log.len);
    assert_int_equal(end_len, whole->end_len);
    assert_memory_equal(end, whole->end, end_len);
    run.processes++;
    free(log);
    free(end);
    hf_bytes_free(&save);
    world_close(&world);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
}

static void cut_into_processes(uint64_t seed)
{
    struct whole whole;
    run_whole(seed, &whole);
    for (size_t at = 1; at < whole.effects; at++)
        go_on_elsewhere(seed, at, &whole);
    drop_whole(&whole);
}

static void a_turn_cut_at_any_effect_goes_on_in_another_process(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= PROCESS_SEEDS; seed++)
        cut_into_processes(seed);
}

/* Memory */

static void each_allocation_of_turn_save_and_restore_may_fail_once(void **state)
{
    (void)state;
    static struct world world;
    int64_t refused = 0;
    for (uint64_t seed = 1; seed <= MEMORY_SEEDS; seed++) {
        struct whole whole;
        bool reached = true;
        run_whole(seed, &whole);
        for (int64_t fail_at = 1; reached; fail_at++) {
            struct fail_alloc memory;
            int rc = 0;
            fail_alloc_init(&memory, fail_at);
            world_open(&world, seed, &memory.alloc);
            do
                rc = world_begin(&world);
            while (rc == HF_ENOMEM);
            assert_int_equal(world_run(&world, WORLD_CUT_POLLED, SIZE_MAX, 2), 0);
            check_against(&world, &whole);
            refused += world.refused;
            reached = memory.calls >= fail_at;
            world_close(&world);
            assert_int_equal(memory.live, 0);
        }
        drop_whole(&whole);
    }
    assert_true(refused > 1000);
}

/* Each allocation of an export over base and own records fails, once and for ever after;
 * then it is as it was. */
static void export_without_memory(struct world *world, struct fail_alloc *memory)
{
    struct hf_err err = { 0 };
    struct hf_bytes whole = { 0 };
    struct hf_bytes save = { 0 };
    int64_t start = memory->calls;
    assert_int_equal(hf_turn_export(world->turn, &whole, &err), 0);
    int64_t all = memory->calls - start;
    for (int64_t i = 0; i < 2 * all; i++) {
        memory->stays = i >= all;
        memory->fail_at = memory->calls + 1 + i % all;
        assert_int_equal(hf_turn_export(world->turn, &save, &err), HF_ENOMEM);
    }
    memory->stays = false;
    memory->fail_at = 0;
    assert_int_equal(hf_turn_export(world->turn, &save, &err), 0);
    assert_int_equal(save.len, whole.len);
    assert_memory_equal(save.at, whole.at, whole.len);
    hf_bytes_free(&save);
    hf_bytes_free(&whole);
}

/* No memory at all after the n-th effect: the next call that needs some says so, and the
 * handle can be freed. */
static void memory_that_stays_away_is_reported_and_nothing_leaks(void **state)
{
    (void)state;
    static struct world world;
    size_t refused = 0;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct whole whole;
        run_whole(seed, &whole);
        for (size_t at = 0; at < whole.effects; at++) {
            struct fail_alloc memory;
            struct hf_bytes save = { 0 };
            fail_alloc_init(&memory, 0);
            world_open(&world, seed, &memory.alloc);
            assert_int_equal(world_begin(&world), 0);
            world_export_at(&world, at, &save);
            hf_bytes_free(&save);
            export_without_memory(&world, &memory);
            memory.stays = true;
            memory.fail_at = memory.calls + 1;
            assert_int_equal(world_run(&world, WORLD_WHOLE, 0, 3), HF_ENOMEM);
            refused += (size_t)world.refused;
            world_close(&world);
            assert_int_equal(memory.live, 0);
        }
        drop_whole(&whole);
    }
    assert_true(refused > 0);
}

/* The long run */

static void no_turn_differs_from_its_uncut_run(void **state)
{
    (void)state;
    for (uint64_t seed = run.first; seed < run.first + run.turns; seed++) {
        cut_everywhere(seed);
        rebase_variously(seed);
        if (run.process_each > 0 && seed % run.process_each == 0)
            cut_into_processes(seed);
    }
}

static int long_run(uint64_t turns, uint64_t first)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_turn_differs_from_its_uncut_run),
    };
    run.turns = turns;
    run.first = first;
    run.process_each = 40;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (failed)
        printf("differs at seed %llu\n", (unsigned long long)at_seed);
    printf("turns=%llu effects=%llu restores=%llu rebases=%llu processes=%llu\n",
           (unsigned long long)run.turns, (unsigned long long)run.effects,
           (unsigned long long)run.restores, (unsigned long long)run.rebases,
           (unsigned long long)run.processes);
    return failed;
}

/* Switches the mutant on; false when there is none of that name. */
static bool plant(const char *name)
{
#ifdef WITH_PLANTS
    for (size_t i = 0; i < sim_plant_count; i++)
        if (strcmp(sim_plants[i].name, name) == 0)
            hf_planted = (int)i + 1;
    return hf_planted != 0;
#else
    (void)name;
    return false;
#endif
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--resume") == 0)
        return resume_here(strtoull(argv[2], NULL, 10));
    if (argc == 4 && strcmp(argv[1], "--plant") == 0)
        return plant(argv[2]) ? long_run(strtoull(argv[3], NULL, 10), 1) : 2;
    if (argc >= 3 && strcmp(argv[1], "--turns") == 0)
        return long_run(strtoull(argv[2], NULL, 10),
                        argc > 3 ? strtoull(argv[3], NULL, 10) : 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_cut_at_any_and_at_every_effect_comes_out_the_same),
        cmocka_unit_test(a_rebase_changes_neither_effects_nor_ids_nor_the_end),
        cmocka_unit_test(what_a_request_caches_begins_the_next_one),
        cmocka_unit_test(the_random_turns_show_these_effects_and_outcomes),
        cmocka_unit_test(a_turn_cut_at_any_effect_goes_on_in_another_process),
        cmocka_unit_test(each_allocation_of_turn_save_and_restore_may_fail_once),
        cmocka_unit_test(memory_that_stays_away_is_reported_and_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
