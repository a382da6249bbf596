/* The pointer file: each row of the reconciliation table R34 under its name, the contents
 * of R31, and the crashes of R35. The store is real, its clock is the test's. */
#include "support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/store.h>

#include "base/json_get.h"
#include "run/monitor/pointer_file.h"

struct rig {
    char folder[64];
    char db[128];
    char path[128];
    hf_ms later; /* what the store's clocks are ahead of the machine's */
    struct hf_clock clock;
    struct hf_store *store;
    struct hf_pointer_report report;
    struct hf_err err;
    int made;
};

static hf_ms wall(void *user)
{
    const struct rig *rig = user;
    return hf_clock_system()->wall_ms(hf_clock_system()->user) + rig->later;
}

static hf_ms mono(void *user)
{
    const struct rig *rig = user;
    return hf_clock_system()->mono_ms(hf_clock_system()->user) + rig->later;
}

static void no_wait(void *user, hf_ms ms)
{
    struct rig *rig = user;
    rig->later += ms;
}

static void open_store(struct rig *rig)
{
    struct hf_store_options options = { .size = sizeof(options),
                                        .clock = &rig->clock,
                                        .inline_mode = true };
    assert_int_equal(hf_store_open(rig->db, &options, &rig->store, &rig->err), 0);
}

static int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    (void)snprintf(rig->folder, sizeof(rig->folder), "/tmp/holdfast-pointer-XXXXXX");
    assert_non_null(mkdtemp(rig->folder));
    (void)snprintf(rig->db, sizeof(rig->db), "%s/work.db", rig->folder);
    (void)snprintf(rig->path, sizeof(rig->path), "%s/active-work.json", rig->folder);
    rig->clock = (struct hf_clock){ rig, wall, mono, no_wait };
    open_store(rig);
    *state = rig;
    return 0;
}

static int remove_one(const char *path, const struct stat *facts, int kind,
                      struct FTW *walk)
{
    (void)facts;
    (void)kind;
    (void)walk;
    return remove(path);
}

static int teardown(void **state)
{
    struct rig *rig = *state;
    hf_store_close(rig->store);
    int rc = nftw(rig->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(rig);
    return rc;
}

/* ---- the ledger -------------------------------------------------------------------- */

struct unit {
    char id[64];
    char token[256];
};

static void take_unit(struct unit *out, struct hf_answer *answer)
{
    assert_int_equal(hf_answer_count(answer), 1);
    const struct hf_item *item = hf_answer_at(answer, 0);
    assert_int_equal(item->code, 0);
    (void)snprintf(out->id, sizeof(out->id), "%s", item->work.work_id);
    (void)snprintf(out->token, sizeof(out->token), "%s", item->token ? item->token : "");
    hf_answer_free(answer);
}

static struct unit create(struct rig *rig, enum hf_disposition disposition)
{
    char source_id[24];
    struct unit unit;
    struct hf_answer *answer = NULL;
    (void)snprintf(source_id, sizeof(source_id), "s%d", ++rig->made);
    struct hf_work_spec request = { .size = sizeof(request),
                                    .source = HF_SOURCE_SCHEDULER,
                                    .source_id = source_id,
                                    .source_run_id = "run",
                                    .disposition = disposition,
                                    .priority = -1 };
    assert_int_equal(hf_work_create(rig->store, NULL, &request, 1, 0, &answer, &rig->err),
                     0);
    take_unit(&unit, answer);
    return unit;
}

/* A new unit that main/incarnation runs; each begins a little later than the one before. */
static struct unit run(struct rig *rig, const char *incarnation, int pid)
{
    struct unit unit = create(rig, HF_DISPOSITION_RERUNNABLE);
    struct hf_answer *answer = NULL;
    rig->later += 5;
    struct hf_claim claim = { .size = sizeof(claim),
                              .owner = "main",
                              .incarnation = incarnation,
                              .pid = pid,
                              .id = unit.id };
    assert_int_equal(hf_work_claim(rig->store, NULL, &claim, &answer, &rig->err), 0);
    take_unit(&unit, answer);
    return unit;
}

static void change(struct rig *rig, const struct unit *unit, struct hf_change wanted)
{
    struct hf_answer *answer = NULL;
    wanted.size = sizeof(wanted);
    wanted.id = unit->id;
    int rc = hf_work_change(rig->store, NULL, &wanted, 1, HF_ALL_OR_NONE, &answer,
                            &rig->err);
    assert_int_equal(rc, 0);
    hf_answer_free(answer);
}

static void close_out(struct rig *rig, const struct unit *unit)
{
    change(rig, unit,
           (struct hf_change){ .verb = HF_VERB_CLOSE_OUT,
                               .token = unit->token,
                               .status = HF_STATUS_DONE });
}

static enum hf_status status_of(struct rig *rig, const struct unit *unit)
{
    struct hf_answer *answer = NULL;
    assert_int_equal(hf_work_get(rig->store, NULL, unit->id, &answer, &rig->err), 0);
    enum hf_status status = hf_status_of(hf_answer_at(answer, 0)->work.status);
    hf_answer_free(answer);
    return status;
}

/* ---- the file ---------------------------------------------------------------------- */

static int reconcile_as(struct rig *rig, const char *incarnation)
{
    struct hf_pointer_plan plan = { .size = sizeof(plan),
                                    .path = rig->path,
                                    .owner = "main",
                                    .incarnation = incarnation };
    memset(&rig->report, 0, sizeof(rig->report));
    return hf_pointer_reconcile(rig->store, NULL, &plan, &rig->report, &rig->err);
}

static enum hf_pointer_action reconcile(struct rig *rig)
{
    assert_int_equal(reconcile_as(rig, "i1"), 0);
    return rig->report.action;
}

static bool exists(const char *path)
{
    struct stat at;
    return lstat(path, &at) == 0;
}

static void put_file(const char *path, const void *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static size_t get_file(const char *path, char *out, size_t room)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t len = fread(out, 1, room - 1, file);
    assert_int_equal(fclose(file), 0);
    out[len] = '\0';
    return len;
}

/* The file is complete and names this unit. */
static void assert_names(struct rig *rig, const struct unit *unit, int64_t running)
{
    struct hf_arena arena;
    struct hf_pointer pointer;
    enum hf_pointer_state state = HF_POINTER_NONE;
    hf_arena_init(&arena, hf_alloc_system());
    assert_int_equal(hf_pointer_read(rig->path, &arena, &state, &pointer, &rig->err), 0);
    assert_int_equal(state, HF_POINTER_GOOD);
    assert_string_equal(pointer.work_id, unit->id);
    assert_int_equal(pointer.running, running);
    hf_arena_fini(&arena);
}

/* ---- R31 ---------------------------------------------------------------------------- */

static void r31_the_file_holds_what_is_running_and_nothing_secret(void **state)
{
    struct rig *rig = *state;
    char text[2048];
    struct stat at;
    struct json_t *object = NULL;
    struct unit unit = run(rig, "i1", 0);
    assert_int_equal(reconcile(rig), HF_POINTER_WROTE);
    size_t len = get_file(rig->path, text, sizeof(text));
    assert_null(strstr(text, strrchr(unit.token, '.') + 1));
    assert_int_equal(
        hf_json_parse((struct hf_span){ text, len }, 2048, "p", &object, NULL), 0);
    const char *const keys[] = { "version",           "work_id",          "source_system",
                                 "source_id",         "source_run_id",    "owner",
                                 "owner_incarnation", "lease_expires_at", "started_at",
                                 "updated_at",        "running" };
    assert_null(hf_json_stranger(object, keys, sizeof(keys) / sizeof(keys[0])));
    assert_int_equal(hf_json_as_i64(hf_json_member(object, "version")), 1);
    assert_string_equal(hf_json_as_text(hf_json_member(object, "work_id")), unit.id);
    assert_string_equal(hf_json_as_text(hf_json_member(object, "source_system")),
                        "scheduler");
    assert_string_equal(hf_json_as_text(hf_json_member(object, "source_id")), "s1");
    assert_string_equal(hf_json_as_text(hf_json_member(object, "source_run_id")), "run");
    assert_string_equal(hf_json_as_text(hf_json_member(object, "owner")), "main");
    assert_string_equal(hf_json_as_text(hf_json_member(object, "owner_incarnation")),
                        "i1");
    assert_true(hf_json_as_i64(hf_json_member(object, "lease_expires_at")) > 0);
    assert_true(hf_json_as_i64(hf_json_member(object, "started_at")) > 0);
    assert_true(hf_json_as_i64(hf_json_member(object, "updated_at")) > 0);
    assert_int_equal(hf_json_as_i64(hf_json_member(object, "running")), 1);
    hf_json_free(object);
    assert_int_equal(stat(rig->path, &at), 0);
    assert_int_equal(at.st_mode & 07777, 0600);
}

/* ---- R34, row by row ----------------------------------------------------------------- */

static void r34_none_and_nothing_runs_does_nothing(void **state)
{
    struct rig *rig = *state;
    (void)create(rig, HF_DISPOSITION_RERUNNABLE);
    assert_int_equal(reconcile(rig), HF_POINTER_NOTHING);
    assert_false(exists(rig->path));
}

static void r34_none_and_a_running_row_writes_it(void **state)
{
    struct rig *rig = *state;
    struct unit unit = run(rig, "i1", 0);
    assert_int_equal(reconcile(rig), HF_POINTER_WROTE);
    assert_names(rig, &unit, 1);
}

static void r34_none_and_a_running_row_of_an_older_incarnation_writes_nothing(
    void **state)
{
    struct rig *rig = *state;
    (void)run(rig, "i0", 0);
    assert_int_equal(reconcile(rig), HF_POINTER_NOTHING);
    assert_false(exists(rig->path));
}

static void r34_a_running_row_of_this_incarnation_keeps_or_refreshes_it(void **state)
{
    struct rig *rig = *state;
    struct unit unit = run(rig, "i1", 0);
    assert_int_equal(reconcile(rig), HF_POINTER_WROTE);
    assert_int_equal(reconcile(rig), HF_POINTER_KEPT);
    rig->later += 1000;
    change(rig, &unit, (struct hf_change){ .verb = HF_VERB_RENEW, .token = unit.token });
    assert_int_equal(reconcile(rig), HF_POINTER_REFRESHED);
    assert_int_equal(reconcile(rig), HF_POINTER_KEPT);
    assert_names(rig, &unit, 1);
}

static void r34_an_older_incarnation_without_proof_keeps_its_row_and_loses_the_pointer(
    void **state)
{
    struct rig *rig = *state;
    struct unit unit = run(rig, "i0", 0);
    assert_int_equal(reconcile_as(rig, "i0"), 0);
    assert_int_equal(reconcile(rig), HF_POINTER_CLEARED);
    assert_true(rig->report.older_incarnation);
    assert_string_equal(rig->report.named, unit.id);
    assert_int_equal(status_of(rig, &unit), HF_STATUS_RUNNING);
    assert_false(exists(rig->path));
}

static void r34_an_older_incarnation_whose_lease_lapsed_follows_its_disposition(
    void **state)
{
    struct rig *rig = *state;
    struct unit unit = run(rig, "i0", 0);
    assert_int_equal(reconcile_as(rig, "i0"), 0);
    rig->later += 120000;
    assert_int_equal(reconcile(rig), HF_POINTER_CLEARED);
    assert_true(rig->report.older_incarnation);
    assert_int_equal(status_of(rig, &unit), HF_STATUS_QUEUED);
}

static void r34_an_older_incarnation_proven_dead_follows_its_disposition(void **state)
{
    struct rig *rig = *state;
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) { /* lives until its end of the pipe is closed */
        char byte;
        (void)close(pipes[1]);
        _exit(read(pipes[0], &byte, 1) == 0 ? 0 : 1);
    }
    (void)close(pipes[0]);
    struct unit unit = run(rig, "i0", (int)child);
    assert_int_equal(reconcile_as(rig, "i0"), 0);
    (void)close(pipes[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(reconcile(rig), HF_POINTER_CLEARED);
    assert_true(rig->report.older_incarnation);
    assert_int_equal(status_of(rig, &unit), HF_STATUS_QUEUED);
}

static void r34_a_row_that_waits_clears_it(void **state)
{
    struct rig *rig = *state;
    struct unit unit = run(rig, "i1", 0);
    assert_int_equal(reconcile(rig), HF_POINTER_WROTE);
    change(rig, &unit,
           (struct hf_change){ .verb = HF_VERB_WAIT,
                               .token = unit.token,
                               .status = HF_STATUS_WAITING_USER,
                               .ref = "r" });
    assert_int_equal(reconcile(rig), HF_POINTER_CLEARED);
    assert_false(exists(rig->path));
}

static void r34_a_finished_row_clears_it(void **state)
{
    struct rig *rig = *state;
    struct unit unit = run(rig, "i1", 0);
    assert_int_equal(reconcile(rig), HF_POINTER_WROTE);
    close_out(rig, &unit);
    assert_int_equal(reconcile(rig), HF_POINTER_CLEARED);
    assert_false(exists(rig->path));
    assert_int_equal(reconcile(rig), HF_POINTER_NOTHING);
}

static void r34_a_row_handed_back_clears_it(void **state)
{
    struct rig *rig = *state;
    struct unit unit = run(rig, "i1", 0);
    assert_int_equal(reconcile(rig), HF_POINTER_WROTE);
    change(rig, &unit,
           (struct hf_change){ .verb = HF_VERB_HAND_BACK, .token = unit.token });
    assert_int_equal(reconcile(rig), HF_POINTER_CLEARED);
    assert_int_equal(status_of(rig, &unit), HF_STATUS_QUEUED);
}

static void r34_a_row_to_be_retried_clears_it(void **state)
{
    struct rig *rig = *state;
    struct unit unit = run(rig, "i1", 0);
    assert_int_equal(reconcile(rig), HF_POINTER_WROTE);
    change(rig, &unit,
           (struct hf_change){
               .verb = HF_VERB_FAIL, .token = unit.token, .error_class = "rate_limit" });
    assert_int_equal(status_of(rig, &unit), HF_STATUS_RETRY_SCHEDULED);
    assert_int_equal(reconcile(rig), HF_POINTER_CLEARED);
}

static void r34_a_missing_row_clears_it_and_is_told(void **state)
{
    struct rig *rig = *state;
    const char *const ids[] = { "00000000-0000-7000-8000-000000000000", "0000", "%" };
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        char text[256];
        int len = snprintf(text, sizeof(text),
                           "{\"version\":1,\"work_id\":\"%s\",\"owner\":\"main\"}",
                           ids[i]);
        put_file(rig->path, text, (size_t)len);
        assert_int_equal(reconcile(rig), HF_POINTER_CLEARED);
        assert_true(rig->report.row_missing);
        assert_false(rig->report.corrupt);
        assert_false(exists(rig->path));
    }
}

static void a_part_of_an_id_in_the_file_names_no_row(void **state)
{
    struct rig *rig = *state;
    char text[256];
    struct unit unit = run(rig, "i1", 0);
    int len = snprintf(text, sizeof(text),
                       "{\"version\":1,\"work_id\":\"%.13s\",\"owner\":\"main\"}",
                       unit.id);
    put_file(rig->path, text, (size_t)len);
    assert_int_equal(reconcile(rig), HF_POINTER_REPLACED);
    assert_true(rig->report.row_missing);
    assert_names(rig, &unit, 1);
}

static void r34_a_corrupt_file_is_renamed_aside_and_rebuilt(void **state)
{
    struct rig *rig = *state;
    static char huge[70000];
    memset(huge, ' ', sizeof(huge));
    const struct hf_span wrong[] = {
        { "", 0 },
        { "{\"version\":1,\"work_id\":\"w\",\"ow", 28 },
        { "\xff\xfe", 2 },
        { "[]", 2 },
        { "{\"version\":2,\"work_id\":\"w\",\"owner\":\"main\"}", 42 },
        { "{\"version\":1,\"work_id\":7,\"owner\":\"main\"}", 40 },
        { "{\"version\":1,\"work_id\":\"w\"}", 27 },
        { huge, sizeof(huge) },
    };
    struct unit unit = run(rig, "i1", 0);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char aside[70001];
        put_file(rig->path, wrong[i].at, wrong[i].len);
        assert_int_equal(reconcile(rig), HF_POINTER_WROTE);
        assert_true(rig->report.corrupt);
        assert_non_null(strstr(rig->report.aside, "active-work.json.corrupt-"));
        assert_int_equal(get_file(rig->report.aside, aside, sizeof(aside)), wrong[i].len);
        assert_memory_equal(aside, wrong[i].at, wrong[i].len);
        assert_names(rig, &unit, 1);
    }
    close_out(rig, &unit);
    put_file(rig->path, "{", 1);
    assert_int_equal(reconcile(rig), HF_POINTER_NOTHING);
    assert_true(rig->report.corrupt);
    assert_false(exists(rig->path));
}

static void r34_another_row_that_is_the_newest_replaces_it(void **state)
{
    struct rig *rig = *state;
    struct unit first = run(rig, "i1", 0);
    assert_int_equal(reconcile(rig), HF_POINTER_WROTE);
    struct unit second = run(rig, "i1", 0);
    assert_int_equal(reconcile(rig), HF_POINTER_REPLACED);
    assert_string_equal(rig->report.named, first.id);
    assert_string_equal(rig->report.names, second.id);
    assert_names(rig, &second, 2);
}

/* ---- more ---------------------------------------------------------------------------- */

static void a16_the_newest_by_its_start_and_how_many(void **state)
{
    struct rig *rig = *state;
    struct unit early = create(rig, HF_DISPOSITION_RERUNNABLE);
    struct unit first = run(rig, "i1", 0), second = run(rig, "i1", 0);
    assert_int_equal(reconcile(rig), HF_POINTER_WROTE);
    assert_names(rig, &second, 2);
    /* Created first, begun last. */
    struct hf_answer *answer = NULL;
    rig->later += 5;
    struct hf_claim claim = {
        .size = sizeof(claim), .owner = "main", .incarnation = "i1", .id = early.id
    };
    assert_int_equal(hf_work_claim(rig->store, NULL, &claim, &answer, &rig->err), 0);
    take_unit(&early, answer);
    assert_int_equal(reconcile(rig), HF_POINTER_REPLACED);
    assert_names(rig, &early, 3);
    close_out(rig, &early);
    assert_int_equal(reconcile(rig), HF_POINTER_REPLACED);
    assert_names(rig, &second, 2);
    close_out(rig, &first);
    assert_int_equal(reconcile(rig), HF_POINTER_REFRESHED);
    assert_names(rig, &second, 1);
}

static void r33_the_file_of_another_owner_gives_way(void **state)
{
    struct rig *rig = *state;
    struct unit unit = run(rig, "i1", 0);
    put_file(rig->path, "{\"version\":1,\"work_id\":\"x\",\"owner\":\"other\"}", 43);
    assert_int_equal(reconcile(rig), HF_POINTER_REPLACED);
    assert_names(rig, &unit, 1);
}

static void without_an_owner_the_file_says_whose_it_is(void **state)
{
    struct rig *rig = *state;
    struct hf_pointer_plan plan = { .size = sizeof(plan), .path = rig->path };
    struct unit unit = run(rig, "i1", 0);
    assert_int_equal(
        hf_pointer_reconcile(rig->store, NULL, &plan, &rig->report, &rig->err),
        HF_EINVAL);
    assert_int_equal(reconcile(rig), HF_POINTER_WROTE);
    assert_int_equal(
        hf_pointer_reconcile(rig->store, NULL, &plan, &rig->report, &rig->err), 0);
    assert_int_equal(rig->report.action, HF_POINTER_KEPT);
    assert_names(rig, &unit, 1);
}

static void what_is_no_file_is_refused_and_left_alone(void **state)
{
    struct rig *rig = *state;
    (void)run(rig, "i1", 0);
    assert_int_equal(mkdir(rig->path, 0700), 0);
    assert_int_equal(reconcile_as(rig, "i1"), HF_EINVAL);
    assert_int_equal(rmdir(rig->path), 0);
    assert_int_equal(symlink("/dev/null", rig->path), 0);
    assert_int_equal(reconcile_as(rig, "i1"), HF_EINVAL);
    assert_int_equal(unlink(rig->path), 0);
    assert_int_equal(mkfifo(rig->path, 0600), 0);
    assert_int_equal(reconcile_as(rig, "i1"), HF_EINVAL);
    assert_int_equal(unlink(rig->path), 0);
    (void)snprintf(rig->path, sizeof(rig->path), "%s/none/p.json", rig->folder);
    assert_int_equal(reconcile_as(rig, "i1"), HF_ESTOREIO);
    assert_string_equal(rig->err.field, "pointer");
}

static void two_writers_do_not_mix(void **state)
{
    struct rig *rig = *state;
    char temporary[160];
    struct unit unit = run(rig, "i1", 0);
    (void)snprintf(temporary, sizeof(temporary), "%s.tmp", rig->path);
    int fd = open(temporary, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(reconcile_as(rig, "i1"), HF_EBUSY);
    assert_false(exists(rig->path));
    assert_int_equal(close(fd), 0);
    assert_int_equal(reconcile(rig), HF_POINTER_WROTE);
    assert_names(rig, &unit, 1);
    assert_false(exists(temporary));
}

/* ---- R35 ----------------------------------------------------------------------------- */

static void die_at(void *user, enum hf_pointer_moment moment)
{
    if (moment == *(const enum hf_pointer_moment *)user)
        _exit(9); /* as a kill would: no handler runs, no buffer is written */
}

/* Another process reconciles and dies at the moment. */
static void crash(struct rig *rig, enum hf_pointer_moment moment)
{
    hf_store_close(rig->store);
    rig->store = NULL;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct hf_pointer_plan plan = {
            .size = sizeof(plan), .path = rig->path, .owner = "main", .incarnation = "i1"
        };
        struct hf_pointer_hook hook = { die_at, &moment };
        open_store(rig);
        int rc = hf_pointer_reconcile_at(rig->store, NULL, &plan, &hook, &rig->report,
                                         &rig->err);
        _exit(rc ? 2 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 9);
    open_store(rig);
}

/* First with no file before, then over one: the old one stays until the rename. */
static void crash_and_recover(struct rig *rig, enum hf_pointer_moment moment)
{
    char temporary[160];
    bool renamed = moment == HF_POINTER_RENAMED;
    (void)snprintf(temporary, sizeof(temporary), "%s.tmp", rig->path);
    struct unit first = run(rig, "i1", 0);
    crash(rig, moment);
    assert_int_equal(exists(rig->path), renamed);
    assert_int_equal(reconcile(rig), renamed ? HF_POINTER_KEPT : HF_POINTER_WROTE);
    assert_names(rig, &first, 1);
    assert_false(exists(temporary));

    struct unit second = run(rig, "i1", 0);
    crash(rig, moment);
    assert_names(rig, renamed ? &second : &first, renamed ? 2 : 1);
    assert_int_equal(reconcile(rig), renamed ? HF_POINTER_KEPT : HF_POINTER_REPLACED);
    assert_names(rig, &second, 2);
    assert_false(exists(temporary));
}

static void r35_a_crash_between_commit_and_pointer_write(void **state)
{
    crash_and_recover(*state, HF_POINTER_READ);
}

static void r35_a_crash_between_temporary_file_and_rename(void **state)
{
    crash_and_recover(*state, HF_POINTER_WRITTEN);
}

static void r35_a_crash_right_after_the_rename(void **state)
{
    crash_and_recover(*state, HF_POINTER_RENAMED);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(r31_the_file_holds_what_is_running_and_nothing_secret),
        CASE(r34_none_and_nothing_runs_does_nothing),
        CASE(r34_none_and_a_running_row_writes_it),
        CASE(r34_none_and_a_running_row_of_an_older_incarnation_writes_nothing),
        CASE(r34_a_running_row_of_this_incarnation_keeps_or_refreshes_it),
        CASE(r34_an_older_incarnation_without_proof_keeps_its_row_and_loses_the_pointer),
        CASE(r34_an_older_incarnation_whose_lease_lapsed_follows_its_disposition),
        CASE(r34_an_older_incarnation_proven_dead_follows_its_disposition),
        CASE(r34_a_row_that_waits_clears_it),
        CASE(r34_a_finished_row_clears_it),
        CASE(r34_a_row_handed_back_clears_it),
        CASE(r34_a_row_to_be_retried_clears_it),
        CASE(r34_a_missing_row_clears_it_and_is_told),
        CASE(a_part_of_an_id_in_the_file_names_no_row),
        CASE(r34_a_corrupt_file_is_renamed_aside_and_rebuilt),
        CASE(r34_another_row_that_is_the_newest_replaces_it),
        CASE(a16_the_newest_by_its_start_and_how_many),
        CASE(r33_the_file_of_another_owner_gives_way),
        CASE(without_an_owner_the_file_says_whose_it_is),
        CASE(what_is_no_file_is_refused_and_left_alone),
        CASE(two_writers_do_not_mix),
        CASE(r35_a_crash_between_commit_and_pointer_write),
        CASE(r35_a_crash_between_temporary_file_and_rename),
        CASE(r35_a_crash_right_after_the_rename),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
