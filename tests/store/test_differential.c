/* Random operations on the model and on SQLite or PostgreSQL in lockstep: after every one the
 * answers, all raw rows and all events must agree.
 *
 *     HF_DIFF_SEED=n   begin with this seed (default 1)
 *     HF_DIFF_RUNS=n   this many sequences (default 200)
 *     HF_DIFF_ONLY=pg  all of them on PostgreSQL
 *
 * A difference is shown with its seed, step and operation, and with the shortest sequence
 * that was found to show one too.
 */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/pair.h"
#include "support/pg.h"
#include "support/unit.h"

#define STEPS 200
#define RUNS 200
#define FILE_EVERY 20     /* of the sequences one runs on a file, and reopens it */
#define POSTGRES_EVERY 25 /* and one on a server */

static struct pg_server server;

/* ---- the other store --------------------------------------------------------------------- */

struct place {
    char folder[64];
    char path[80];
};

static int open_memory(void *user, const struct hf_store_options *options,
                       struct hf_store **ret_store, struct hf_err *err)
{
    (void)user;
    return hf_store_open("sqlite::memory:", options, ret_store, err);
}

static int open_again(void *user, const struct hf_store_options *options,
                      struct hf_store **ret_store, struct hf_err *err)
{
    const struct place *place = user;
    return hf_store_open(place->path, options, ret_store, err);
}

static int open_file(void *user, const struct hf_store_options *options,
                     struct hf_store **ret_store, struct hf_err *err)
{
    struct place *place = user;
    (void)snprintf(place->folder, sizeof(place->folder), "/tmp/hf-differ-XXXXXX");
    if (!mkdtemp(place->folder))
        return HF_EINTERNAL;
    (void)snprintf(place->path, sizeof(place->path), "%s/db", place->folder);
    return open_again(user, options, ret_store, err);
}

static void discard(void *user)
{
    const struct place *place = user;
    DIR *folder = opendir(place->folder);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[400];
        (void)snprintf(path, sizeof(path), "%s/%s", place->folder, entry->d_name);
        (void)unlink(path); /* "." and ".." stay, and go with the folder */
    }
    if (folder)
        (void)closedir(folder); /* read only: nothing to lose */
    (void)rmdir(place->folder); /* a folder left behind harms no test */
}

/* ---- a sequence ---------------------------------------------------------------------------- */

/* Edges that were taken, and what came of operations on sessions, over all sequences. */
struct taken {
    uint64_t reached;
    uint64_t edges[HF_STATUS_COUNT][HF_STATUS_COUNT];
};

struct sequence {
    struct taken *taken;
    uint64_t seed;
    uint64_t chances[STEPS];
    bool dropped[STEPS];
    bool on_file;
    bool on_server;
    bool trace;
    size_t failed_at;
    char did[1024];
    char complaint[1024];
};

static uint64_t next(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void no_row(void *user, const struct hf_work *work, const char *settled_verb,
                   hf_ms check_at, int64_t store)
{
    (void)user;
    (void)work;
    (void)settled_verb;
    (void)check_at;
    (void)store;
}

static void count_edge(void *user, const struct hf_event *event)
{
    struct taken *taken = user;
    if (event->to_status)
        taken->edges[hf_status_of(event->from_status)][hf_status_of(event->to_status)]++;
}

/* True if the stores agree to the end. */
static bool agrees(struct sequence *sequence)
{
    struct place place = { { 0 }, { 0 } };
    const struct pair_factory memory = { NULL, open_memory, NULL, NULL };
    const struct pair_factory file = { &place, open_file, open_again, discard };
    struct pg_place there = { .server = &server, .base = server.url, .schema = "differ" };
    const struct pair_factory postgres = { &there, pg_place_open, pg_place_again,
                                           pg_place_discard };
    struct pair *pair = malloc(sizeof(*pair));
    if (!pair)
        abort();
    bool open = pair_open(pair,
                          sequence->on_server ? &postgres
                          : sequence->on_file ? &file
                                              : &memory,
                          sequence->seed);
    size_t i = 0;
    for (; open && i < STEPS && !pair->complaint[0]; i++) {
        if (sequence->dropped[i])
            continue;
        pair_step(pair, sequence->chances[i]);
        if (sequence->trace)
            print_message("    %3zu %s\n", i, pair->did);
    }
    struct hf_dump counts = { sequence->taken, no_row, count_edge };
    if (open && sequence->taken)
        (void)pair->store[MODEL]->methods->dump(pair->store[MODEL], &counts, NULL);
    if (sequence->taken)
        sequence->taken->reached |= pair->reached;
    sequence->failed_at = i ? i - 1 : 0;
    (void)snprintf(sequence->did, sizeof(sequence->did), "%s", pair->did);
    (void)snprintf(sequence->complaint, sizeof(sequence->complaint), "%s",
                   pair->complaint);
    pair_close(pair);
    free(pair);
    return sequence->complaint[0] == 0;
}

/* Leave out more and more of what does not matter. */
static void shrink(struct sequence *sequence)
{
    for (size_t i = sequence->failed_at + 1; i < STEPS; i++)
        sequence->dropped[i] = true;
    for (size_t width = STEPS / 2; width > 0; width /= 2) {
        for (size_t from = 0; from < STEPS; from += width) {
            struct sequence tried = *sequence;
            bool any = false;
            for (size_t i = from; i < from + width && i < STEPS; i++) {
                any |= !tried.dropped[i];
                tried.dropped[i] = true;
            }
            if (any && !agrees(&tried))
                *sequence = tried;
        }
    }
}

static void tell(struct sequence *sequence, size_t run)
{
    print_message(
        "the model and the store disagree\n  HF_DIFF_SEED=%llu (sequence %zu, on "
        "a %s), step %zu\n  %s\n  %s\n",
        (unsigned long long)sequence->seed, run,
        sequence->on_server ? "server"
        : sequence->on_file ? "file"
                            : "memory",
        sequence->failed_at, sequence->did, sequence->complaint);
    shrink(sequence);
    sequence->trace = true;
    print_message("  the shortest found:\n");
    (void)agrees(sequence); /* for the trace */
    print_message("  %s\n", sequence->complaint);
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

/* Every edge of the lifecycle's table, by hand. */
static const enum hf_status edges[][2] = {
    { HF_STATUS_NONE, HF_STATUS_QUEUED },
    { HF_STATUS_NONE, HF_STATUS_WAITING_EXTERNAL },
    { HF_STATUS_NONE, HF_STATUS_DONE },
    { HF_STATUS_QUEUED, HF_STATUS_RUNNING },
    { HF_STATUS_QUEUED, HF_STATUS_CANCELLED },
    { HF_STATUS_QUEUED, HF_STATUS_TIMEOUT },
    { HF_STATUS_RUNNING, HF_STATUS_WAITING_USER },
    { HF_STATUS_RUNNING, HF_STATUS_WAITING_EXTERNAL },
    { HF_STATUS_RUNNING, HF_STATUS_DONE },
    { HF_STATUS_RUNNING, HF_STATUS_FAILED },
    { HF_STATUS_RUNNING, HF_STATUS_TIMEOUT },
    { HF_STATUS_RUNNING, HF_STATUS_CANCELLED },
    { HF_STATUS_RUNNING, HF_STATUS_RETRY_SCHEDULED },
    { HF_STATUS_RUNNING, HF_STATUS_QUEUED },
    { HF_STATUS_RUNNING, HF_STATUS_ABANDONED },
    { HF_STATUS_WAITING_USER, HF_STATUS_QUEUED },
    { HF_STATUS_WAITING_USER, HF_STATUS_RUNNING },
    { HF_STATUS_WAITING_USER, HF_STATUS_TIMEOUT },
    { HF_STATUS_WAITING_USER, HF_STATUS_CANCELLED },
    { HF_STATUS_WAITING_USER, HF_STATUS_ABANDONED },
    { HF_STATUS_WAITING_USER, HF_STATUS_DONE },
    { HF_STATUS_WAITING_USER, HF_STATUS_FAILED },
    { HF_STATUS_WAITING_EXTERNAL, HF_STATUS_QUEUED },
    { HF_STATUS_WAITING_EXTERNAL, HF_STATUS_RUNNING },
    { HF_STATUS_WAITING_EXTERNAL, HF_STATUS_TIMEOUT },
    { HF_STATUS_WAITING_EXTERNAL, HF_STATUS_CANCELLED },
    { HF_STATUS_WAITING_EXTERNAL, HF_STATUS_ABANDONED },
    { HF_STATUS_WAITING_EXTERNAL, HF_STATUS_DONE },
    { HF_STATUS_WAITING_EXTERNAL, HF_STATUS_FAILED },
    { HF_STATUS_RETRY_SCHEDULED, HF_STATUS_QUEUED },
    { HF_STATUS_RETRY_SCHEDULED, HF_STATUS_CANCELLED },
    { HF_STATUS_DONE, HF_STATUS_QUEUED },
    { HF_STATUS_FAILED, HF_STATUS_QUEUED },
    { HF_STATUS_TIMEOUT, HF_STATUS_QUEUED },
    { HF_STATUS_CANCELLED, HF_STATUS_QUEUED },
    { HF_STATUS_ABANDONED, HF_STATUS_QUEUED },
};

#define X(name, text) text,
static const char *const reaches[] = { PAIR_REACHES(X) };
#undef X

/* A generator that reaches little proves little. */
static void check_reach(const struct taken *taken)
{
    for (unsigned i = 0; i < PAIR_REACH_COUNT; i++) {
        if (!(taken->reached & (1ull << i)))
            fail_msg("no sequence had: %s", reaches[i]);
    }
    for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
        const char *from = hf_status_word(edges[i][0]);
        if (taken->edges[edges[i][0]][edges[i][1]] == 0)
            fail_msg("no sequence went from %s to %s", from ? from : "nothing",
                     hf_status_word(edges[i][1]));
    }
}

static void random_sequences_agree(void **state)
{
    (void)state;
    struct taken taken = { .reached = 0 };
    uint64_t seed = setting("HF_DIFF_SEED", 1);
    uint64_t runs = setting("HF_DIFF_RUNS", RUNS);
    bool only_server = getenv("HF_DIFF_ONLY") != NULL;
    for (size_t run = 0; run < runs; run++) {
        struct sequence sequence = { .seed = seed + run, .taken = &taken };
        uint64_t chance = sequence.seed;
        for (size_t i = 0; i < STEPS; i++)
            sequence.chances[i] = next(&chance);
        sequence.on_file = sequence.seed % FILE_EVERY == 0;
        sequence.on_server = only_server || sequence.seed % POSTGRES_EVERY == 1;
        if (!agrees(&sequence)) {
            sequence.taken = NULL;
            tell(&sequence, run);
            fail_msg("seed %llu", (unsigned long long)sequence.seed);
        }
    }
    if (runs >= RUNS)
        check_reach(&taken);
    print_message("# %llu sequences of %d operations from seed %llu agree\n",
                  (unsigned long long)runs, STEPS, (unsigned long long)seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_sequences_agree),
    };
    pg_server_start(&server);
    return cmocka_run_group_tests_name("differential", tests, NULL, NULL);
}
