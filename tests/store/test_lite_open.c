/* Opening: what is refused, what is left alone, schema versions, store incarnations. */
#include <holdfast/store.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/json.h"
#include "lite_kit.h"

#define CASE(name) cmocka_unit_test_setup_teardown(name, kit_setup_closed, kit_teardown)

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void copy_file(const char *from, const char *to)
{
    char bytes[65536];
    size_t got;
    FILE *in = fopen(from, "r");
    FILE *out = fopen(to, "w");
    assert_non_null(in);
    assert_non_null(out);
    while ((got = fread(bytes, 1, sizeof(bytes), in)) > 0)
        assert_int_equal(fwrite(bytes, 1, got, out), got);
    assert_int_equal(fclose(in), 0);
    assert_int_equal(fclose(out), 0);
}

static const char *side_path(const struct kit *kit, const char *suffix, char out[160])
{
    int n = snprintf(out, 160, "%s%s", kit->path, suffix);
    assert_true(n > 0 && n < 160);
    return out;
}

static bool there(const struct kit *kit, const char *suffix)
{
    char path[160];
    return access(side_path(kit, suffix, path), F_OK) == 0;
}

static int open_rc(struct kit *kit, const struct hf_sql_options *options)
{
    struct hf_sql *sql = NULL;
    int rc = kit_try(kit, kit->path, options, &sql);
    if (rc == 0)
        sql->methods->close(sql);
    return rc;
}

static int64_t incarnation(struct kit *kit)
{
    struct kit_batch b;
    kit_begin(&b);
    b.batch.read_only = true;
    assert_int_equal(kit_run(kit->sql, &b, NULL), 0);
    return b.batch.incarnation;
}

static void a_new_file_becomes_a_store(void **state)
{
    struct kit *kit = *state;
    kit_open(kit);
    assert_int_equal(kit_sql_int(kit->path, "PRAGMA application_id"),
                     LITE_APPLICATION_ID);
    assert_int_equal(kit_sql_int(kit->path, "SELECT count(*) FROM hf_schema"), 2);
    assert_int_equal(
        kit_sql_int(kit->path, "SELECT min(length(checksum)) = 64 FROM hf_schema"), 1);
    assert_int_equal(kit_sql_int(kit->path, "SELECT count(*) FROM hf_store"), 1);
    assert_int_equal(incarnation(kit), 1);
    assert_true(there(kit, "-hf"));
}

static void an_empty_file_becomes_a_store(void **state)
{
    struct kit *kit = *state;
    write_file(kit->path, "");
    kit_open(kit);
    assert_int_equal(kit_put_one(kit->sql, 1, "ann", 1), 0);
}

static void a_file_that_is_not_sqlite_is_refused_and_left_alone(void **state)
{
    struct kit *kit = *state;
    const char *text =
        "this file holds a reader's notes, and they are longer than a header "
        "of SQLite, which has one hundred bytes\n";
    write_file(kit->path, text);
    assert_int_equal(open_rc(kit, NULL), HF_ENOTSTORE);
    char now[200] = "";
    FILE *file = fopen(kit->path, "r");
    assert_non_null(file);
    assert_true(fread(now, 1, sizeof(now) - 1, file) > 0);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(now, text);
    assert_false(there(kit, "-hf"));
}

static void somebody_elses_database_is_refused_and_left_alone(void **state)
{
    struct kit *kit = *state;
    kit_sql(kit->path, "CREATE TABLE notes (t TEXT)");
    assert_int_equal(open_rc(kit, NULL), HF_ENOTSTORE);
    assert_int_equal(kit_sql_int(kit->path, "SELECT count(*) FROM sqlite_schema"), 1);
    assert_false(there(kit, "-hf"));
    assert_false(there(kit, "-wal"));
}

static void another_application_id_is_refused(void **state)
{
    struct kit *kit = *state;
    kit_sql(kit->path, "PRAGMA application_id = 7");
    assert_int_equal(open_rc(kit, NULL), HF_ENOTSTORE);
}

static void our_application_id_without_our_schema_is_refused(void **state)
{
    struct kit *kit = *state;
    kit_sql(kit->path, "PRAGMA application_id = 1212566596; CREATE TABLE notes (t TEXT)");
    assert_int_equal(open_rc(kit, NULL), HF_ENOTSTORE);
}

static void a_newer_schema_is_refused(void **state)
{
    struct kit *kit = *state;
    kit_open(kit);
    kit_close(kit);
    kit->tables.migration_count = 1;
    assert_int_equal(open_rc(kit, NULL), HF_ESCHEMA);
    assert_non_null(strstr(kit->err.message, "version 2"));
}

static void an_older_schema_is_migrated_unless_told_not_to(void **state)
{
    struct kit *kit = *state;
    struct hf_sql_options options = { .size = sizeof(options),
                                      .migrate = HF_MIGRATE_NEVER };
    assert_int_equal(open_rc(kit, &options), HF_ENOTSTORE);
    kit->tables.migration_count = 1;
    kit_open(kit);
    assert_int_equal(kit_put_one(kit->sql, 1, "ann", 1), 0);
    kit_close(kit);
    kit->tables.migration_count = 2;
    assert_int_equal(open_rc(kit, &options), HF_ESCHEMAOLD);
    assert_int_equal(kit_sql_int(kit->path, "SELECT max(version) FROM hf_schema"), 1);
    assert_int_equal(open_rc(kit, NULL), 0);
    assert_int_equal(open_rc(kit, &options), 0);
    assert_int_equal(kit_sql_int(kit->path, "SELECT max(version) FROM hf_schema"), 2);
    assert_int_equal(kit_sql_int(kit->path, "SELECT count(*) FROM item"), 1);
}

static void a_migration_that_fails_leaves_the_version_before(void **state)
{
    struct kit *kit = *state;
    kit->tables.migration_count = 4;
    assert_int_equal(open_rc(kit, NULL), HF_EINTERNAL);
    assert_non_null(strstr(kit->err.message, "third"));
    assert_int_equal(kit_sql_int(kit->path, "SELECT max(version) FROM hf_schema"), 2);
    kit->tables.migration_count = 2;
    assert_int_equal(open_rc(kit, NULL), 0);
}

static void paths_that_cannot_be_stores_are_refused(void **state)
{
    struct kit *kit = *state;
    struct hf_sql *sql = NULL;
    struct hf_sql_options options = { .size = sizeof(options), .must_exist = true };
    assert_int_equal(open_rc(kit, &options), HF_ENOTSTORE);
    assert_false(there(kit, ""));
    write_file(kit->path, "");
    assert_int_equal(open_rc(kit, &options), HF_ENOTSTORE);
    assert_int_equal(kit_try(kit, kit->folder, NULL, &sql), HF_ENOTSTORE);
    assert_int_equal(kit_try(kit, "/nonexistent/folder/a.db", NULL, &sql), HF_ENOTSTORE);
    assert_non_null(strstr(kit->err.message, "folder"));
    assert_int_equal(kit_try(kit, "", NULL, &sql), HF_EINVAL);
    assert_null(sql);
}

/* Root may write everything, so the case is tried as another user. */
static int rc_as_nobody(struct kit *kit)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
            _exit(100);
        struct hf_sql *sql = NULL;
        int rc = kit_try(kit, kit->path, NULL, &sql);
        if (rc == 0)
            sql->methods->close(sql);
        _exit(-rc);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return -WEXITSTATUS(status);
}

static void a_write_protected_file_is_refused(void **state)
{
    struct kit *kit = *state;
    kit_open(kit);
    kit_close(kit);
    assert_int_equal(chmod(kit->folder, 0755), 0);
    assert_int_equal(chmod(kit->path, 0444), 0);
    assert_int_equal(rc_as_nobody(kit), HF_EREADONLY);
}

static void a_write_protected_folder_is_refused(void **state)
{
    struct kit *kit = *state;
    kit_open(kit);
    kit_close(kit);
    char path[160];
    assert_int_equal(unlink(side_path(kit, "-hf", path)), 0);
    assert_int_equal(chmod(kit->path, 0666), 0);
    assert_int_equal(chmod(kit->folder, 0555), 0);
    assert_int_equal(rc_as_nobody(kit), HF_EREADONLY);
    assert_int_equal(chmod(kit->folder, 0755), 0);
}

static void a_read_only_handle_reads_and_refuses_to_write(void **state)
{
    struct kit *kit = *state;
    struct hf_sql *reader = NULL;
    struct hf_sql_options options = { .size = sizeof(options), .read_only = true };
    assert_int_equal(kit_try(kit, kit->path, &options, &reader), HF_ENOTSTORE);
    kit_open(kit);
    assert_int_equal(kit_put_one(kit->sql, 1, "ann", 1), 0);
    assert_int_equal(kit_try(kit, kit->path, &options, &reader), 0);
    assert_int_equal(kit_rows(reader), 1);
    assert_int_equal(kit_put_one(reader, 2, "bob", 1), HF_EREADONLY);
    assert_int_equal(kit_put_one(kit->sql, 2, "bob", 1), 0);
    assert_int_equal(kit_rows(reader), 2);
    reader->methods->close(reader);
}

/* The caller that only looks must be able to, above all when something is wrong. */
static void a_store_opens_while_another_program_writes(void **state)
{
    struct kit *kit = *state;
    struct kit_batch b;
    struct hf_err err = { 0 };
    sqlite3 *other = NULL;
    struct hf_sql_options options = { .size = sizeof(options), .busy_ms = 100 };
    kit_open(kit);
    kit_close(kit);
    assert_int_equal(sqlite3_open(kit->path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(kit_try(kit, kit->path, &options, &kit->sql), 0);
    assert_int_equal(incarnation(kit), 1);
    kit_begin(&b);
    kit_put(&b, 1, "ann", 1);
    assert_int_equal(kit_run(kit->sql, &b, &err), HF_EBUSY);
    assert_non_null(
        strstr(err.message, "SQLite's write lock without the store's turnstile"));
    assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(kit_run(kit->sql, &b, NULL), 0);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
}

/* ---- links and files that went missing ------------------------------------------------- */

static void a_second_hard_link_is_refused_with_the_reason(void **state)
{
    struct kit *kit = *state;
    struct hf_sql *sql = NULL;
    struct hf_sql_options reads = { .size = sizeof(reads), .read_only = true };
    char other[160];
    kit_name(other, sizeof(other), kit->folder, "other.db");
    kit_open(kit);
    assert_int_equal(kit_put_one(kit->sql, 1, "ann", 1), 0);
    kit_close(kit);
    assert_int_equal(link(kit->path, other), 0);
    assert_int_equal(kit_try(kit, other, NULL, &sql), HF_ENOTSTORE);
    assert_non_null(strstr(kit->err.message, "has 2 hard links"));
    assert_int_equal(kit_try(kit, other, &reads, &sql), HF_ENOTSTORE);
    assert_int_equal(open_rc(kit, NULL), HF_ENOTSTORE); /* nor under its first name */
    kit_name(other, sizeof(other), kit->folder, "other.db-hf");
    assert_int_not_equal(access(other, F_OK), 0);
    kit_name(other, sizeof(other), kit->folder, "other.db");
    assert_int_equal(unlink(other), 0);
    kit_open(kit);
    assert_int_equal(kit_rows(kit->sql), 1);
}

/* Ends without a close: what was committed is in the WAL alone. */
static void make_and_die(struct kit *kit)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct hf_sql *sql = NULL;
        if (kit_try(kit, kit->path, NULL, &sql) != 0 ||
            kit_put_one(sql, 1, "ann", 1) != 0)
            _exit(1);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_store_whose_wal_was_deleted_is_not_made_anew(void **state)
{
    struct kit *kit = *state;
    char path[160];
    struct stat before;
    struct stat after;
    make_and_die(kit);
    assert_int_equal(unlink(side_path(kit, "-wal", path)), 0);
    assert_int_equal(stat(kit->path, &before), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(open_rc(kit, NULL), HF_ECORRUPT);
        assert_non_null(strstr(kit->err.message, "its sidecar (-hf) knows a store"));
    }
    assert_int_equal(stat(kit->path, &after), 0);
    assert_int_equal(after.st_size, before.st_size);
    assert_int_equal(unlink(side_path(kit, "-hf", path)), 0); /* as the error says */
    kit_open(kit);
    assert_int_equal(kit_rows(kit->sql), 0);
}

static void a_store_whose_file_was_deleted_is_not_made_anew(void **state)
{
    struct kit *kit = *state;
    char path[160];
    struct stat wal;
    make_and_die(kit);
    assert_int_equal(unlink(kit->path), 0);
    assert_int_equal(open_rc(kit, NULL), HF_ECORRUPT);
    assert_false(there(kit, ""));
    assert_int_equal(stat(side_path(kit, "-wal", path), &wal), 0);
    assert_true(wal.st_size > 0); /* SQLite deletes the WAL of a file that it makes */
    write_file(kit->path, "");
    assert_int_equal(open_rc(kit, NULL), HF_ECORRUPT);
    assert_true(there(kit, "-wal"));
}

static void the_last_to_close_leaves_the_whole_store_in_its_file(void **state)
{
    struct kit *kit = *state;
    char path[160];
    struct stat wal;
    struct hf_sql *other = NULL;
    kit_open(kit);
    assert_int_equal(kit_put_one(kit->sql, 1, "ann", 1), 0);
    assert_int_equal(kit_try(kit, kit->path, NULL, &other), 0);
    other->methods->close(other); /* not the last */
    assert_int_equal(stat(side_path(kit, "-wal", path), &wal), 0);
    assert_true(wal.st_size > 0);
    kit_close(kit);
    assert_int_equal(stat(side_path(kit, "-wal", path), &wal), 0);
    assert_int_equal(wal.st_size, 0);
    assert_int_equal(unlink(side_path(kit, "-wal", path)), 0);
    kit_open(kit);
    assert_int_equal(kit_rows(kit->sql), 1);
    assert_int_equal(incarnation(kit), 1);
}

static void reopening_keeps_the_incarnation(void **state)
{
    struct kit *kit = *state;
    for (int i = 0; i < 3; i++) {
        kit_open(kit);
        assert_int_equal(incarnation(kit), 1);
        assert_int_equal(kit_put_one(kit->sql, i, "ann", 1), 0);
        kit_close(kit);
    }
}

/* Makes `to` the database as it is now, WAL and all. */
static void back_up(struct kit *kit, const char *to)
{
    char wal[160];
    char copy[200];
    copy_file(kit->path, to);
    assert_true(snprintf(copy, sizeof(copy), "%s-wal", to) > 0);
    copy_file(side_path(kit, "-wal", wal), copy);
}

/* As an operator would: the old files moved into place. */
static void restore(struct kit *kit, const char *from)
{
    char path[160];
    char copy[200];
    (void)unlink(side_path(kit, "-shm", path));
    assert_int_equal(rename(from, kit->path), 0);
    assert_true(snprintf(copy, sizeof(copy), "%s-wal", from) > 0);
    assert_int_equal(rename(copy, side_path(kit, "-wal", path)), 0);
}

static void a_restored_older_copy_raises_the_incarnation(void **state)
{
    struct kit *kit = *state;
    char copy[160];
    kit_name(copy, sizeof(copy), kit->folder, "copy");
    kit_open(kit);
    assert_int_equal(kit_put_one(kit->sql, 1, "ann", 1), 0);
    kit_close(kit);
    back_up(kit, copy);
    kit_open(kit);
    assert_int_equal(kit_put_one(kit->sql, 2, "ann", 1), 0);
    kit_close(kit);
    restore(kit, copy);
    kit_open(kit);
    assert_int_equal(kit_rows(kit->sql), 1);
    assert_int_equal(incarnation(kit), 2);
    assert_int_equal(
        kit_sql_int(
            kit->path,
            "SELECT what = 'raised' AND detail = "
            "'{\"from\":1,\"to\":2,\"why\":\"sidecar_ahead\"}' FROM hf_store_log"),
        1);
    kit_close(kit);
    kit_open(kit); /* once is enough */
    assert_int_equal(incarnation(kit), 2);
}

static void each_restore_raises_past_every_incarnation_seen(void **state)
{
    struct kit *kit = *state;
    char copy[160];
    char again[160];
    kit_name(copy, sizeof(copy), kit->folder, "copy");
    kit_name(again, sizeof(again), kit->folder, "again");
    kit_open(kit);
    kit_close(kit);
    back_up(kit, copy);
    back_up(kit, again);
    for (int i = 0; i < 2; i++) {
        kit_open(kit);
        for (int j = 0; j < 5; j++)
            assert_int_equal(kit_put_one(kit->sql, j, "ann", 1), 0);
        kit_close(kit);
        restore(kit, i == 0 ? copy : again);
        kit_open(kit);
        assert_int_equal(incarnation(kit), i + 2);
        kit_close(kit);
    }
}

static void a_deleted_sidecar_raises_the_incarnation(void **state)
{
    struct kit *kit = *state;
    char path[160];
    kit_open(kit);
    kit_close(kit);
    assert_int_equal(unlink(side_path(kit, "-hf", path)), 0);
    kit_open(kit);
    assert_int_equal(incarnation(kit), 2);
}

static void another_stores_sidecar_raises_the_incarnation(void **state)
{
    struct kit *kit = *state;
    struct kit other;
    char mine[160];
    char theirs[160];
    kit_make(&other);
    kit_open(&other);
    kit_close(&other);
    kit_open(kit);
    kit_close(kit);
    copy_file(side_path(&other, "-hf", theirs), side_path(kit, "-hf", mine));
    kit_open(kit);
    assert_int_equal(incarnation(kit), 2);
    kit_drop(&other);
}

static void a_second_opener_raises_nothing(void **state)
{
    struct kit *kit = *state;
    struct hf_sql *second = NULL;
    kit_open(kit);
    assert_int_equal(kit_put_one(kit->sql, 1, "ann", 1), 0);
    assert_int_equal(kit_try(kit, kit->path, NULL, &second), 0);
    assert_int_equal(kit_put_one(second, 2, "ann", 1), 0);
    assert_int_equal(kit_put_one(kit->sql, 3, "ann", 1), 0);
    assert_int_equal(incarnation(kit), 1);
    second->methods->close(second);
}

static void a_file_replaced_under_others_is_refused(void **state)
{
    struct kit *kit = *state;
    char copy[160];
    kit_name(copy, sizeof(copy), kit->folder, "copy");
    kit_open(kit);
    kit_close(kit);
    back_up(kit, copy);
    kit_open(kit);
    assert_int_equal(kit_put_one(kit->sql, 1, "ann", 1), 0);
    restore(kit, copy);
    assert_int_equal(open_rc(kit, NULL), HF_EBUSY);
    /* And the caller that still has the old one must not believe that it writes. */
    assert_int_equal(kit_put_one(kit->sql, 2, "ann", 1), HF_ESTOREIO);
}

static void a_large_file_in_the_sidecars_place_is_left_alone(void **state)
{
    struct kit *kit = *state;
    char path[160];
    FILE *file = fopen(side_path(kit, "-hf", path), "w");
    assert_non_null(file);
    for (int i = 0; i < 1000; i++)
        assert_true(fputs("not yours\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(open_rc(kit, NULL), HF_ENOTSTORE);
    struct stat at;
    assert_int_equal(stat(path, &at), 0);
    assert_int_equal(at.st_size, 10000);
}

static void a_store_migrated_by_another_program_is_left_alone(void **state)
{
    struct kit *kit = *state;
    struct hf_sql *newer = NULL;
    kit->tables.migration_count = 1;
    kit_open(kit);
    assert_int_equal(kit_put_one(kit->sql, 1, "ann", 1), 0);
    kit->tables.migration_count = 2;
    assert_int_equal(kit_try(kit, kit->path, NULL, &newer), 0);
    assert_int_equal(kit_put_one(kit->sql, 2, "ann", 1), HF_ESCHEMA);
    assert_int_equal(kit_put_one(newer, 2, "ann", 1), 0);
    newer->methods->close(newer);
}

static void a_handle_does_not_survive_a_fork(void **state)
{
    struct kit *kit = *state;
    kit_open(kit);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(-kit_put_one(kit->sql, 1, "ann", 1));
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), -HF_EINVAL);
    assert_int_equal(kit_put_one(kit->sql, 1, "ann", 1), 0);
}

static void links_and_folders_lead_to_one_store(void **state)
{
    struct kit *kit = *state;
    struct hf_sql *second = NULL;
    char link[160];
    char before[400];
    kit_name(link, sizeof(link), kit->folder, "link.db");
    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(chdir(kit->folder), 0);
    int rc = kit_try(kit, "test.db", NULL, &kit->sql);
    assert_int_equal(chdir(before), 0);
    assert_int_equal(rc, 0);
    assert_int_equal(symlink(kit->path, link), 0);
    assert_int_equal(kit_try(kit, link, NULL, &second), 0);
    assert_int_equal(kit_put_one(kit->sql, 1, "ann", 1), 0);
    assert_int_equal(kit_put_one(second, 2, "ann", 1), 0);
    assert_int_equal(kit_rows(kit->sql), 2); /* a connection opened after the chdir */
    assert_ptr_not_equal(lite_of(kit->sql)->side.page, lite_of(second)->side.page);
    uint32_t seen = second->methods->bell_seen(second, 9);
    kit->sql->methods->bell_ring(kit->sql, 9, 1);
    assert_int_not_equal(second->methods->bell_seen(second, 9), seen);
    second->methods->close(second);
}

static void facts_are_one_json_object(void **state)
{
    struct kit *kit = *state;
    struct hf_span facts = { 0 };
    kit_open(kit);
    assert_int_equal(kit_put_one(kit->sql, 1, "ann", 1), 0);
    assert_int_equal(kit->sql->methods->facts(kit->sql, &facts, NULL), 0);
    assert_int_equal(hf_json_check(facts, 65536, "facts", NULL), 0);
    assert_non_null(strstr(facts.at, "\"synchronous\":\"full\""));
    assert_non_null(strstr(facts.at, "\"journal_mode\":\"wal\""));
    assert_non_null(strstr(facts.at, "\"schema_version\":2"));
    assert_non_null(strstr(facts.at, "\"commit_seq\":2"));
    assert_non_null(strstr(facts.at, "\"batches\":1"));
    free((void *)(uintptr_t)facts.at);
}

static mode_t mode_of(const struct kit *kit, const char *suffix)
{
    char path[160];
    struct stat at;
    assert_int_equal(stat(side_path(kit, suffix, path), &at), 0);
    return at.st_mode & 0777;
}

static void a_new_store_is_for_its_owner_alone(void **state)
{
    struct kit *kit = *state;
    static const char *const files[] = { "", "-wal", "-shm", "-hf" };
    mode_t before = umask(0);
    assert_int_equal(open_rc(kit, NULL), 0);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        assert_int_equal(mode_of(kit, files[i]), 0600);
    kit_close(kit);
    /* A mode that was chosen stays. */
    assert_int_equal(chmod(kit->path, 0660), 0);
    assert_int_equal(open_rc(kit, NULL), 0);
    assert_int_equal(mode_of(kit, ""), 0660);
    kit_close(kit);
    (void)umask(before);
}

static void options_tell_their_size(void **state)
{
    struct kit *kit = *state;
    static const uint32_t wrong[] = { 0, sizeof(struct hf_store_options) - 1,
                                      sizeof(struct hf_store_options) + 1, UINT32_MAX };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct hf_store_options options = { .size = wrong[i], .inline_mode = true };
        struct hf_sql_options driver = { .size = wrong[i], .inline_mode = true };
        struct hf_store *store = NULL;
        struct hf_err err = { 0 };
        assert_int_equal(hf_store_open(kit->path, &options, &store, &err), HF_EINVAL);
        assert_string_equal(err.field, "size");
        assert_null(store);
        driver.size = driver.size == sizeof(driver) ? 0 : driver.size;
        assert_int_equal(open_rc(kit, &driver), HF_EINVAL);
        assert_string_equal(kit->err.field, "size");
        assert_false(there(kit, ""));
    }
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        CASE(a_new_file_becomes_a_store),
        CASE(an_empty_file_becomes_a_store),
        CASE(a_file_that_is_not_sqlite_is_refused_and_left_alone),
        CASE(somebody_elses_database_is_refused_and_left_alone),
        CASE(another_application_id_is_refused),
        CASE(our_application_id_without_our_schema_is_refused),
        CASE(a_newer_schema_is_refused),
        CASE(an_older_schema_is_migrated_unless_told_not_to),
        CASE(a_migration_that_fails_leaves_the_version_before),
        CASE(paths_that_cannot_be_stores_are_refused),
        CASE(a_write_protected_file_is_refused),
        CASE(a_write_protected_folder_is_refused),
        CASE(a_read_only_handle_reads_and_refuses_to_write),
        CASE(a_store_opens_while_another_program_writes),
        CASE(a_second_hard_link_is_refused_with_the_reason),
        CASE(a_store_whose_wal_was_deleted_is_not_made_anew),
        CASE(a_store_whose_file_was_deleted_is_not_made_anew),
        CASE(the_last_to_close_leaves_the_whole_store_in_its_file),
        CASE(reopening_keeps_the_incarnation),
        CASE(a_restored_older_copy_raises_the_incarnation),
        CASE(each_restore_raises_past_every_incarnation_seen),
        CASE(a_deleted_sidecar_raises_the_incarnation),
        CASE(another_stores_sidecar_raises_the_incarnation),
        CASE(a_second_opener_raises_nothing),
        CASE(a_file_replaced_under_others_is_refused),
        CASE(a_large_file_in_the_sidecars_place_is_left_alone),
        CASE(a_store_migrated_by_another_program_is_left_alone),
        CASE(a_handle_does_not_survive_a_fork),
        CASE(links_and_folders_lead_to_one_store),
        CASE(a_new_store_is_for_its_owner_alone),
        CASE(options_tell_their_size),
        CASE(facts_are_one_json_object),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
