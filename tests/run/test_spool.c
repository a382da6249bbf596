/* Spool and ingress: what a source hands over is in the ledger or in the spool, whatever the
 * ledger does, and becomes one unit. The ledger is real; it is made to hang by a lock that a
 * foreign program holds, and to be away by a path that leads nowhere. */
#include "support/unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <holdfast/bounds.h>
#include <holdfast/ingress.h>

#include "base/text.h"
#include "run/ingress/spool.h"
#include "run/ingress/spool_line.h"

struct rig {
    char folder[64];
    char db[128];
    char spool[128];
    struct hf_store *store;
    struct hf_spool_report report;
    struct hf_spool_problem problems[8]; /* without their texts */
    char fields[8][40];
    size_t problem_count;
    struct hf_err err;
};

static int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    (void)snprintf(rig->folder, sizeof(rig->folder), "/tmp/holdfast-spool-XXXXXX");
    assert_non_null(mkdtemp(rig->folder));
    (void)snprintf(rig->db, sizeof(rig->db), "%s/work.db", rig->folder);
    (void)snprintf(rig->spool, sizeof(rig->spool), "%s/ingress.spool", rig->folder);
    *state = rig;
    return 0;
}

static int teardown(void **state)
{
    static const char *const names[] = { "work.db",       "work.db-wal",
                                         "work.db-shm",   "work.db-hf",
                                         "ingress.spool", "ingress.spool.tmp",
                                         "other",         "store" };
    struct rig *rig = *state;
    hf_store_close(rig->store);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[192];
        (void)snprintf(path, sizeof(path), "%s/%s", rig->folder, names[i]);
        (void)remove(path); /* most are not there */
    }
    assert_int_equal(rmdir(rig->folder), 0);
    free(rig);
    return 0;
}

static void open_store(struct rig *rig)
{
    struct hf_store_options options = { .size = sizeof(options), .inline_mode = true };
    assert_int_equal(hf_store_open(rig->db, &options, &rig->store, &rig->err), 0);
}

static struct hf_work_spec message(const char *id)
{
    return (struct hf_work_spec){ .size = sizeof(struct hf_work_spec),
                                  .source = HF_SOURCE_CONVERSATION,
                                  .source_id = id,
                                  .payload = "{ \"n\": 1.0 }",
                                  .priority = -1 };
}

static void spool_one(struct rig *rig, const char *id)
{
    struct hf_spool spool = { .size = sizeof(spool),
                              .path = rig->spool,
                              .wait_ms = 1000 };
    struct hf_work_spec request = message(id);
    assert_int_equal(hf_spool_append(&spool, NULL, &request, &rig->err), 0);
}

static void write_file(const char *path, const char *text, size_t len, int flags)
{
    int fd = open(path, O_WRONLY | O_CREAT | flags, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), (ssize_t)len);
    assert_int_equal(close(fd), 0);
}

static off_t size_of(const char *path)
{
    struct stat at;
    return stat(path, &at) == 0 ? at.st_size : -1;
}

static void found(void *user, const struct hf_spool_problem *problem)
{
    struct rig *rig = user;
    assert_true(rig->problem_count < 8);
    rig->problems[rig->problem_count] = *problem;
    (void)snprintf(rig->fields[rig->problem_count++], 40, "%s", problem->field);
}

static int reconcile(struct rig *rig, const char *path)
{
    rig->problem_count = 0;
    return hf_spool_reconcile(rig->store, NULL, path, found, rig, &rig->report,
                              &rig->err);
}

static int64_t events_of(struct rig *rig, const char *source_id, char ret_payload[64])
{
    struct hf_filter filter = { .size = sizeof(filter), .limit = 1000 };
    struct hf_answer *page = NULL;
    int64_t units = 0;
    assert_int_equal(hf_work_list(rig->store, NULL, &filter, &page, &rig->err), 0);
    for (size_t i = 0; i < hf_answer_count(page); i++) {
        const struct hf_work *work = &hf_answer_at(page, i)->work;
        if (!hf_same(work->source_id, source_id))
            continue;
        units++;
        if (ret_payload)
            (void)snprintf(ret_payload, 64, "%s", work->payload);
    }
    hf_answer_free(page);
    return units;
}

/* ---- the line ------------------------------------------------------------------------ */

static void a_line_keeps_every_field_of_a_request(void **state)
{
    (void)state;
    struct hf_work_spec all = { .size = sizeof(all),
                                .source = HF_SOURCE_SCHEDULER,
                                .source_id = "a\"b",
                                .source_run_id = "r1",
                                .kind = "k",
                                .queue = "q",
                                .lane_key = "l",
                                .dedup_key = "d",
                                .idempotency_key = "i",
                                .ref = "ref",
                                .reply_ref = "ann@chat",
                                .parent_work_id = "p",
                                .payload = "{\n \"x\" : [1.50, \"\\u0001\"] }",
                                .disposition = HF_DISPOSITION_RERUNNABLE,
                                .priority = 0,
                                .max_attempts = 7,
                                .retry_policy = "{ \"initial_ms\": 5 }",
                                .due_at = 1700000000000,
                                .start_timeout_ms = 1,
                                .exec_timeout_ms = 2,
                                .close_rule = "evidence" };
    struct hf_caller who = { .size = sizeof(who),
                             .actor_kind = "webhook",
                             .actor = "bot",
                             .tenant = "t",
                             .operation_id = "op",
                             .correlation_id = "c" };
    struct hf_buf text;
    struct hf_arena arena;
    struct hf_spool_line line;
    struct hf_err err;
    hf_buf_init(&text, hf_alloc_system(), 4096);
    hf_arena_init(&arena, hf_alloc_system());
    hf_spool_encode(&who, &all, 5, &text);
    assert_string_equal(
        hf_buf_str(&text),
        "{\"source_system\":\"scheduler\",\"source_id\":\"a\\\"b\",\"source_run_id\":"
        "\"r1\","
        "\"kind\":\"k\",\"queue\":\"q\",\"lane_key\":\"l\",\"dedup_key\":\"d\","
        "\"idempotency_key\":\"i\",\"priority\":0,"
        "\"payload_text\":\"{\\n \\\"x\\\" : [1.50, \\\"\\\\u0001\\\"] }\","
        "\"disposition\":\"rerunnable\",\"ref\":\"ref\",\"parent_work_id\":\"p\","
        "\"max_attempts\":7,\"retry_policy_text\":\"{ \\\"initial_ms\\\": 5 }\","
        "\"due_at\":1700000000000,\"start_timeout_ms\":1,\"exec_timeout_ms\":2,"
        "\"close_rule\":\"evidence\",\"reply_ref\":\"ann@chat\","
        "\"tenant\":\"t\",\"actor_kind\":\"webhook\",\"actor\":\"bot\","
        "\"operation_id\":\"op\",\"correlation_id\":\"c\",\"spooled_at\":5}\n");
    assert_int_equal(hf_spool_decode((struct hf_span){ hf_buf_str(&text), text.len - 1 },
                                     &arena, &line, &err),
                     0);
    assert_int_equal(line.request.source, HF_SOURCE_SCHEDULER);
    assert_string_equal(line.request.source_id, "a\"b");
    assert_string_equal(line.request.payload, all.payload);
    assert_string_equal(line.request.retry_policy, all.retry_policy);
    assert_int_equal(line.request.disposition, HF_DISPOSITION_RERUNNABLE);
    assert_int_equal(line.request.priority, 0);
    assert_int_equal(line.request.max_attempts, 7);
    assert_int_equal(line.request.due_at, 1700000000000);
    assert_int_equal(line.request.exec_timeout_ms, 2);
    assert_string_equal(line.request.close_rule, "evidence");
    assert_string_equal(line.request.reply_ref, "ann@chat");
    assert_string_equal(line.who.operation_id, "op");
    assert_string_equal(line.who.tenant, "t");
    hf_arena_fini(&arena);
    hf_buf_fini(&text);
}

/* ---- appending ------------------------------------------------------------------------ */

static void what_a_spool_call_lacks_is_named(void **state)
{
    struct rig *rig = *state;
    struct hf_work_spec request = message("m1");
    struct hf_spool_report report;
    struct hf_copy_report copied;
    struct hf_spool spool = { .size = sizeof(spool),
                              .path = rig->spool,
                              .bytes_max = -1 };
    assert_int_equal(hf_spool_append(&spool, NULL, &request, &rig->err), HF_EINVAL);
    assert_string_equal(rig->err.field, "bytes_max");
    assert_int_equal(
        hf_spool_reconcile(rig->store, NULL, NULL, NULL, NULL, &report, &rig->err),
        HF_EINVAL);
    assert_string_equal(rig->err.field, "path");
    struct hf_copy_options copy = { .size = sizeof(copy) };
    assert_int_equal(hf_store_copy(&copy, &copied, &rig->err), HF_EINVAL);
    assert_string_equal(rig->err.field, "from");
    copy.from = "sqlite::memory:";
    assert_int_equal(hf_store_copy(&copy, &copied, &rig->err), HF_EINVAL);
    assert_string_equal(rig->err.field, "to");
}

static void a_spool_that_is_full_takes_nothing_more(void **state)
{
    struct rig *rig = *state;
    struct hf_work_spec request = message("m1");
    spool_one(rig, "m1");
    off_t one = size_of(rig->spool);
    struct hf_spool spool = { .size = sizeof(spool),
                              .path = rig->spool,
                              .bytes_max = one };
    assert_int_equal(hf_spool_append(&spool, NULL, &request, &rig->err), HF_EFULL);
    assert_string_equal(rig->err.field, "spool");
    assert_int_equal(size_of(rig->spool), one);
    /* At the limit there is room, a byte under it there is not. */
    off_t two = one + (one - (off_t)strlen(HF_SPOOL_FIRST));
    spool.bytes_max = two - 1;
    assert_int_equal(hf_spool_append(&spool, NULL, &request, &rig->err), HF_EFULL);
    spool.bytes_max = two;
    assert_int_equal(hf_spool_append(&spool, NULL, &request, &rig->err), 0);
    assert_int_equal(size_of(rig->spool), two);
}

static void a_file_of_somebody_else_is_no_spool(void **state)
{
    struct rig *rig = *state;
    struct hf_spool spool = { .size = sizeof(spool), .path = rig->spool };
    struct hf_work_spec request = message("m1");
    write_file(rig->spool, "dear diary\n", 11, 0);
    assert_int_equal(hf_spool_append(&spool, NULL, &request, &rig->err), HF_EINVAL);
    assert_int_equal(size_of(rig->spool), 11);
    spool.path = rig->folder;
    assert_int_equal(hf_spool_append(&spool, NULL, &request, &rig->err), HF_EINVAL);
    spool.path = "/nowhere/at/all";
    assert_int_equal(hf_spool_append(&spool, NULL, &request, &rig->err), HF_EINVAL);
}

static void a_torn_line_spoils_no_other(void **state)
{
    struct rig *rig = *state;
    open_store(rig);
    spool_one(rig, "m1");
    write_file(rig->spool, "{\"source_sys", 12, O_APPEND);
    spool_one(rig, "m2");
    write_file(rig->spool, "{\"source_system\":\"manual\"", 25, O_APPEND);
    assert_int_equal(reconcile(rig, rig->spool), 0);
    assert_int_equal(rig->report.lines, 4);
    assert_int_equal(rig->report.created, 2);
    assert_int_equal(rig->report.malformed, 2);
    assert_int_equal(rig->problem_count, 2);
    assert_int_equal(rig->problems[0].line, 3);
    assert_false(rig->problems[0].torn);
    assert_int_equal(rig->problems[1].line, 5);
    assert_true(rig->problems[1].torn);
    /* Both stay, whole lines now, and are named again. */
    assert_int_equal(rig->report.left, 2);
    assert_int_equal(reconcile(rig, rig->spool), 0);
    assert_int_equal(rig->report.created + rig->report.existing, 0);
    assert_int_equal(rig->report.malformed, 2);
    assert_false(rig->problems[1].torn);
}

/* ---- reconciling ------------------------------------------------------------------------ */

static void reconciling_is_idempotent_and_keeps_bytes(void **state)
{
    struct rig *rig = *state;
    struct hf_work_spec request = message("m2");
    struct hf_answer *answer = NULL;
    char payload[64];
    open_store(rig);
    assert_int_equal(hf_work_create(rig->store, NULL, &request, 1, 0, &answer, &rig->err),
                     0);
    hf_answer_free(answer);
    for (int i = 0; i < 2; i++) {
        spool_one(rig, "m1");
        spool_one(rig, "m2");
        assert_int_equal(reconcile(rig, rig->spool), 0);
        assert_int_equal(rig->report.created, i == 0 ? 1 : 0);
        assert_int_equal(rig->report.existing, i == 0 ? 1 : 2);
        assert_true(rig->report.spool);
        assert_true(rig->report.trimmed);
        assert_int_equal(rig->report.left, 0);
        assert_int_equal(size_of(rig->spool), -1);
    }
    assert_int_equal(events_of(rig, "m1", payload), 1);
    assert_string_equal(payload, "{ \"n\": 1.0 }");
    assert_int_equal(events_of(rig, "m2", NULL), 1);
}

/* What only the ledger refuses, and under an operation id as a whole. */
static void a_request_that_is_refused_keeps_no_other_back(void **state)
{
    struct rig *rig = *state;
    struct hf_spool spool = { .size = sizeof(spool),
                              .path = rig->spool,
                              .wait_ms = 1000 };
    struct hf_caller who = { .size = sizeof(who), .operation_id = "once" };
    struct hf_work_spec never = message("m1");
    never.disposition = HF_DISPOSITION_EXTERNALLY_OWNED;
    never.delay_ms = 5;
    open_store(rig);
    assert_int_equal(hf_spool_append(&spool, &who, &never, &rig->err), 0);
    spool_one(rig, "m2");
    assert_int_equal(reconcile(rig, rig->spool), 0);
    assert_int_equal(rig->report.created, 1);
    assert_int_equal(rig->report.refused, 1);
    assert_int_equal(rig->report.left, 1);
    assert_int_equal(rig->problem_count, 1);
    assert_int_equal(rig->problems[0].code, HF_EINVAL);
    assert_string_equal(rig->fields[0], "delay_ms");
    assert_int_equal(events_of(rig, "m2", NULL), 1);
}

static void a_spool_that_a_link_names_is_read_and_left(void **state)
{
    struct rig *rig = *state;
    char link[192];
    struct stat at;
    (void)snprintf(link, sizeof(link), "%s/other", rig->folder);
    open_store(rig);
    spool_one(rig, "m1");
    off_t size = size_of(rig->spool);
    assert_int_equal(symlink(rig->spool, link), 0);
    assert_int_equal(reconcile(rig, link), 0);
    assert_int_equal(rig->report.created, 1);
    assert_true(rig->report.spool);
    assert_false(rig->report.trimmed);
    assert_int_equal(lstat(link, &at), 0);
    assert_true(S_ISLNK(at.st_mode));
    assert_int_equal(size_of(rig->spool), size);
}

/* Who reconciles may be another user than who spools. */
static void what_stays_in_a_spool_stays_its_writers(void **state)
{
    struct rig *rig = *state;
    const uid_t owner = geteuid() == 0 ? 65534 : geteuid();
    struct stat at;
    open_store(rig);
    spool_one(rig, "m1");
    write_file(rig->spool, "no request\n", 11, O_APPEND);
    assert_int_equal(chmod(rig->spool, 0640), 0);
    assert_int_equal(chown(rig->spool, owner, (gid_t)-1), 0);
    assert_int_equal(reconcile(rig, rig->spool), 0);
    assert_true(rig->report.trimmed);
    assert_int_equal(rig->report.left, 1);
    assert_int_equal(stat(rig->spool, &at), 0);
    assert_int_equal(at.st_mode & 0777, 0640);
    assert_int_equal(at.st_uid, owner);
}

/* What the library syncs and renames while a case watches. The functions below are called in
 * place of the C library's, since the library is linked into this program. */
static struct {
    bool watching;
    ino_t synced_file;
    off_t synced_size;
    bool whole;  /* the file that was renamed had been synced with all that it has */
    bool folder; /* a folder was synced after the rename */
} disk;

int fsync(int fd)
{
    struct stat at;
    if (disk.watching && fstat(fd, &at) == 0) {
        if (S_ISDIR(at.st_mode)) {
            disk.folder = true;
        } else {
            disk.synced_file = at.st_ino;
            disk.synced_size = at.st_size;
        }
    }
    return (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to)
{
    struct stat at;
    if (disk.watching && stat(from, &at) == 0) {
        disk.whole = at.st_ino == disk.synced_file && at.st_size == disk.synced_size;
        disk.folder = false;
    }
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

/* A power failure after the rename must not leave an empty file where requests were. */
static void what_stays_is_synced_before_it_replaces_the_spool(void **state)
{
    struct rig *rig = *state;
    open_store(rig);
    spool_one(rig, "m1");
    write_file(rig->spool, "no request\n", 11, O_APPEND);
    memset(&disk, 0, sizeof(disk));
    disk.watching = true;
    int rc = reconcile(rig, rig->spool);
    disk.watching = false;
    assert_int_equal(rc, 0);
    assert_true(rig->report.trimmed);
    assert_int_equal(rig->report.left, 1);
    assert_true(disk.whole);
    assert_true(disk.folder);
}

static void an_export_is_judged_line_by_line_and_never_touched(void **state)
{
    static const char export[] =
        "{\"source_system\":\"control\",\"source_id\":\"c1\",\"payload\":{\"b\":1, "
        "\"a\":2.0}}\n"
        "\n"
        "{\"source_system\":\"control\",\"source_id\":\"c1\",\"payload\":3}\n"
        "{\"source_system\":\"elsewhere\",\"source_id\":\"c2\"}\n"
        "{\"source_system\":\"manual\",\"source_id\":\"c3\",\"colour\":\"red\"}\n"
        "{\"source_system\":\"manual\",\"source_id\":\"\\ud800\"}\n"
        "{\"source_system\":\"scheduler\",\"source_id\":\"c4\"}\n"
        "{\"source_system\":\"manual\",\"source_id\":\"c5\",\"priority\":\"high\"}\n"
        "{\"source_system\":\"manual\",\"source_id\":\"c6\",\"payload\":1,\"payload_"
        "text\":\"1\"}\n"
        "{\"source_system\":\"scheduler\",\"source_id\":\"c4\",\"source_run_id\":\"r\"}";
    static const struct {
        int64_t line;
        int code;
        const char *field;
    } expected[] = {
        { 4, HF_EINVAL, "source_system" }, { 5, HF_EINVAL, "colour" },
        { 6, HF_EINVAL, "line" },          { 7, HF_EINVAL, "source_run_id" },
        { 8, HF_EINVAL, "priority" },      { 9, HF_EINVAL, "payload_text" },
        { 3, HF_ECONFLICT, "" },
    };
    struct rig *rig = *state;
    char path[192], payload[64];
    open_store(rig);
    (void)snprintf(path, sizeof(path), "%s/other", rig->folder);
    write_file(path, export, sizeof(export) - 1, 0);
    assert_int_equal(reconcile(rig, path), 0);
    assert_int_equal(rig->report.lines, 9);
    assert_int_equal(rig->report.created, 2);
    assert_int_equal(rig->report.conflicting, 1);
    assert_int_equal(rig->report.malformed, 6);
    assert_false(rig->report.spool);
    assert_false(rig->report.trimmed);
    assert_int_equal(rig->problem_count, 7);
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(rig->problems[i].line, expected[i].line);
        assert_int_equal(rig->problems[i].code, expected[i].code);
        if (expected[i].code != HF_ECONFLICT)
            assert_string_equal(rig->fields[i], expected[i].field);
    }
    assert_int_equal(size_of(path), (off_t)sizeof(export) - 1);
    assert_int_equal(events_of(rig, "c1", payload), 1);
    assert_string_equal(payload, "{\"a\":2,\"b\":1}");
}

static void a_line_over_its_limit_is_named_and_the_next_one_read(void **state)
{
    struct rig *rig = *state;
    size_t most = (size_t)HF_MAX_SPOOL_LINE_BYTES;
    char *line = malloc(most + 2);
    static const char tail[] = "{\"source_system\":\"manual\",\"source_id\":\"after\"}\n";
    char path[192];
    open_store(rig);
    (void)snprintf(path, sizeof(path), "%s/other", rig->folder);
    assert_non_null(line);
    memset(line, ' ', most + 1);
    line[0] = '7';
    line[most + 1] = '\n';
    write_file(path, line, most + 2, 0); /* one byte over */
    line[1] = '7';
    write_file(path, line + 1, most + 1,
               O_APPEND); /* at the limit: read, and no request */
    write_file(path, tail, sizeof(tail) - 1, O_APPEND);
    assert_int_equal(reconcile(rig, path), 0);
    assert_int_equal(rig->report.created, 1);
    assert_int_equal(rig->problem_count, 2);
    assert_int_equal(rig->problems[0].line, 1);
    assert_int_equal(rig->problems[0].code, HF_ETOOBIG);
    assert_int_equal(rig->problems[1].code, HF_EINVAL);
    free(line);
}

static void a_ledger_that_fails_leaves_the_spool_whole(void **state)
{
    struct rig *rig = *state;
    sqlite3 *foreign = NULL;
    struct hf_store_options options = { .size = sizeof(options),
                                        .inline_mode = true,
                                        .busy_ms = 10 };
    assert_int_equal(hf_store_open(rig->db, &options, &rig->store, &rig->err), 0);
    spool_one(rig, "m1");
    off_t before = size_of(rig->spool);
    assert_int_equal(sqlite3_open(rig->db, &foreign), SQLITE_OK);
    assert_int_equal(sqlite3_exec(foreign,
                                  "CREATE TRIGGER no_more "
                                  "BEFORE INSERT ON work_spec BEGIN SELECT "
                                  "RAISE(ROLLBACK, 'holdfast: no'); END",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_close(foreign), SQLITE_OK);
    assert_true(reconcile(rig, rig->spool) != 0);
    assert_int_equal(size_of(rig->spool), before);
}

/* Appends while the spool is brought in: nothing is lost, whichever wins. */
struct appender {
    struct rig *rig;
    int done;
};

static void *append_many(void *user)
{
    struct appender *appender = user;
    for (int i = 0; i < 50; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "x%d", i);
        struct hf_spool spool = { .size = sizeof(spool),
                                  .path = appender->rig->spool,
                                  .wait_ms = 10000 };
        struct hf_work_spec request = message(id);
        appender->done += hf_spool_append(&spool, NULL, &request, NULL) == 0;
    }
    return NULL;
}

static void lines_appended_meanwhile_are_never_lost(void **state)
{
    struct rig *rig = *state;
    struct appender appender = { .rig = rig };
    pthread_t thread;
    int64_t created = 0;
    open_store(rig);
    assert_int_equal(pthread_create(&thread, NULL, append_many, &appender), 0);
    for (int i = 0; i < 20; i++) {
        int rc = reconcile(rig, rig->spool);
        assert_true(rc == 0 || rc == HF_ENOTFOUND);
        created += rc == 0 ? rig->report.created : 0;
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    int rc = reconcile(rig, rig->spool);
    created += rc == 0 ? rig->report.created : 0;
    assert_int_equal(appender.done, 50);
    assert_int_equal(created, 50);
}

/* ---- ingress ------------------------------------------------------------------------------ */

static struct hf_ingress *open_ingress(struct rig *rig, const char *url)
{
    struct hf_ingress *in = NULL;
    struct hf_ingress_options options = {
        .size = sizeof(options), .url = url, .spool = rig->spool, .budget_ms = 400
    }; /* of a busy machine */
    assert_int_equal(hf_ingress_open(&options, &in, &rig->err), 0);
    return in;
}

static hf_ms now(void)
{
    return hf_clock_system()->mono_ms(hf_clock_system()->user);
}

static void ingress_puts_into_the_ledger_and_refuses_what_it_would(void **state)
{
    struct rig *rig = *state;
    struct hf_ingress_result result;
    open_store(rig); /* made before, so that the first request need not wait for it */
    struct hf_ingress *in = open_ingress(rig, rig->db);
    struct hf_work_spec request = message("m1"), other = message("m1");
    int rc = 0;
    /* On a slow machine the first may find its ledger still being opened. */
    for (int i = 0; i < 100; i++) {
        rc = hf_ingress_put(in, NULL, &request, &result, &rig->err);
        assert_int_equal(rc, 0);
        if (result.place == HF_INGRESS_LEDGER)
            break;
    }
    assert_int_equal(result.place, HF_INGRESS_LEDGER);
    assert_string_equal(hf_answer_at(result.answer, 0)->work.source_id, "m1");
    hf_answer_free(result.answer);
    other.payload = "2";
    do {
        rc = hf_ingress_put(in, NULL, &other, &result, &rig->err);
    } while (rc == 0 && result.place == HF_INGRESS_SPOOL);
    assert_int_equal(rc, HF_ECONFLICT);
    other.payload = "{";
    assert_int_equal(hf_ingress_put(in, NULL, &other, &result, &rig->err), HF_EINVAL);
    assert_string_equal(rig->err.field, "payload");
    hf_ingress_close(in);
    assert_int_equal(events_of(rig, "m1", NULL), 1);
}

static void a_ledger_that_hangs_holds_nobody_up(void **state)
{
    struct rig *rig = *state;
    sqlite3 *foreign = NULL;
    struct hf_ingress_result result;
    open_store(rig);
    assert_int_equal(sqlite3_open(rig->db, &foreign), SQLITE_OK);
    assert_int_equal(sqlite3_exec(foreign, "BEGIN IMMEDIATE", NULL, NULL, NULL),
                     SQLITE_OK);
    struct hf_ingress *in = open_ingress(rig, rig->db);
    hf_ms begun = now();
    for (int i = 0; i < 10; i++) {
        char id[8];
        (void)snprintf(id, sizeof(id), "m%d", i);
        struct hf_work_spec request = message(id);
        assert_int_equal(hf_ingress_put(in, NULL, &request, &result, &rig->err), 0);
        assert_int_equal(result.place, HF_INGRESS_SPOOL);
        assert_true(result.why.code != 0);
    }
    hf_ingress_close(in);
    /* 4,400 ms by its promise, while the ledger waits 5 s for a foreign writer each time. */
    assert_true(now() - begun < 4500);
    assert_int_equal(sqlite3_exec(foreign, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(foreign), SQLITE_OK);
    assert_int_equal(reconcile(rig, rig->spool), 0);
    assert_int_equal(rig->report.created + rig->report.existing, 10);
    assert_int_equal(events_of(rig, "m0", NULL), 1);
}

static void a_ledger_that_is_away_is_spooled_and_a_full_spool_is_said(void **state)
{
    struct rig *rig = *state;
    struct hf_ingress_result result;
    struct hf_work_spec request = message("m1");
    struct hf_ingress *in = open_ingress(rig, "/nowhere/at/all.db");
    assert_int_equal(hf_ingress_put(in, NULL, &request, &result, &rig->err), 0);
    assert_int_equal(result.place, HF_INGRESS_SPOOL);
    hf_ingress_close(in);
    struct hf_ingress_options options = { .size = sizeof(options),
                                          .url = "/nowhere/at/all.db",
                                          .spool = rig->spool,
                                          .spool_bytes = 1,
                                          .budget_ms = 2000 };
    assert_int_equal(hf_ingress_open(&options, &in, &rig->err), 0);
    assert_int_equal(hf_ingress_put(in, NULL, &request, &result, &rig->err), HF_EFULL);
    assert_non_null(strstr(rig->err.message, "; and the ledger: "));
    hf_ingress_close(in);
    options.spool = NULL;
    assert_int_equal(hf_ingress_open(&options, &in, &rig->err), 0);
    assert_true(hf_ingress_put(in, NULL, &request, &result, &rig->err) != 0);
    hf_ingress_close(in);
}

/* A request that the ledger has in hand is not said to be nowhere. */
static void a_ledger_that_hangs_without_a_spool_is_uncertain(void **state)
{
    struct rig *rig = *state;
    sqlite3 *foreign = NULL;
    struct hf_ingress *in = NULL;
    struct hf_ingress_result result;
    const struct hf_store_options patient = { .size = sizeof(patient), .busy_ms = 5000 };
    struct hf_ingress_options options = {
        .size = sizeof(options), .url = rig->db, .store = &patient, .budget_ms = 1000
    };
    static const char *const ids[] = { "m0", "m1" };
    open_store(rig);
    assert_int_equal(sqlite3_open(rig->db, &foreign), SQLITE_OK);
    for (int full = 0; full < 2; full++) {
        struct hf_work_spec request = message(ids[full]);
        options.spool = full ? rig->spool : NULL;
        options.spool_bytes = full ? 1 : 0; /* nothing fits */
        assert_int_equal(sqlite3_exec(foreign, "BEGIN IMMEDIATE", NULL, NULL, NULL),
                         SQLITE_OK);
        assert_int_equal(hf_ingress_open(&options, &in, &rig->err), 0);
        assert_int_equal(hf_ingress_put(in, NULL, &request, &result, &rig->err),
                         HF_EUNCERTAIN);
        assert_non_null(strstr(rig->err.message, "it may have it"));
        assert_int_equal(sqlite3_exec(foreign, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
        hf_ingress_close(in); /* which waits for what is in hand */
        assert_int_equal(events_of(rig, ids[full], NULL), 1);
    }
    assert_int_equal(sqlite3_close(foreign), SQLITE_OK);
}

struct source {
    struct hf_ingress *in;
    char prefix;
    int kept;
};

static void *put_many(void *user)
{
    struct source *source = user;
    for (int i = 0; i < 25; i++) {
        char id[16];
        struct hf_ingress_result result = { 0 };
        (void)snprintf(id, sizeof(id), "%c%d", source->prefix, i);
        struct hf_work_spec request = message(id);
        source->kept += hf_ingress_put(source->in, NULL, &request, &result, NULL) == 0;
        hf_answer_free(result.answer);
    }
    return NULL;
}

static void many_threads_may_hand_over_at_once(void **state)
{
    struct rig *rig = *state;
    struct source sources[4];
    pthread_t threads[4];
    open_store(rig);
    struct hf_ingress *in = NULL;
    struct hf_ingress_options options = {
        .size = sizeof(options), .url = rig->db, .spool = rig->spool, .budget_ms = 5000
    };
    assert_int_equal(hf_ingress_open(&options, &in, &rig->err), 0);
    for (int i = 0; i < 4; i++) {
        sources[i] = (struct source){ in, (char)('a' + i), 0 };
        assert_int_equal(pthread_create(&threads[i], NULL, put_many, &sources[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(sources[i].kept, 25);
    }
    hf_ingress_close(in);
    int rc = reconcile(rig, rig->spool);
    assert_true(rc == 0 || rc == HF_ENOTFOUND);
    struct hf_stats stats;
    assert_int_equal(hf_work_stats(rig->store, NULL, &stats, &rig->err), 0);
    assert_int_equal(stats.by_status[HF_STATUS_QUEUED], 100);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_keeps_every_field_of_a_request),
        CASE(what_a_spool_call_lacks_is_named),
        CASE(a_spool_that_is_full_takes_nothing_more),
        CASE(a_file_of_somebody_else_is_no_spool),
        CASE(a_torn_line_spoils_no_other),
        CASE(reconciling_is_idempotent_and_keeps_bytes),
        CASE(a_request_that_is_refused_keeps_no_other_back),
        CASE(a_spool_that_a_link_names_is_read_and_left),
        CASE(what_stays_in_a_spool_stays_its_writers),
        CASE(what_stays_is_synced_before_it_replaces_the_spool),
        CASE(an_export_is_judged_line_by_line_and_never_touched),
        CASE(a_line_over_its_limit_is_named_and_the_next_one_read),
        CASE(a_ledger_that_fails_leaves_the_spool_whole),
        CASE(lines_appended_meanwhile_are_never_lost),
        CASE(ingress_puts_into_the_ledger_and_refuses_what_it_would),
        CASE(a_ledger_that_hangs_holds_nobody_up),
        CASE(a_ledger_that_is_away_is_spooled_and_a_full_spool_is_said),
        CASE(a_ledger_that_hangs_without_a_spool_is_uncertain),
        CASE(many_threads_may_hand_over_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
