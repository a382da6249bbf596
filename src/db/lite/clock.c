/* The two clocks, and the SQL functions through which statements see them.
 *
 * The lease clock is CLOCK_MONOTONIC plus an offset that is in hf_store. The offset holds
 * for one boot and one time namespace; the first opener of a new boot sets it so that the
 * lease clock continues at or after everything it ever showed (lease_high_water). It
 * therefore never goes back, whatever is done to the wall clock. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text.h"
#include "db/lite/lite.h"

static void sql_now(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    (void)argv;
    const struct lite_conn *conn = sqlite3_user_data(context);
    sqlite3_result_int64(context, conn->instant.now);
}

static void sql_lease_now(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    (void)argv;
    const struct lite_conn *conn = sqlite3_user_data(context);
    sqlite3_result_int64(context, conn->instant.lease_now);
}

static void sql_incarnation(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    (void)argv;
    const struct lite_conn *conn = sqlite3_user_data(context);
    sqlite3_result_int64(context, conn->instant.incarnation);
}

/* hf_expect(n, m) is n if both are the same integer, and fails the statement otherwise. */
static void sql_expect(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    struct lite_conn *conn = sqlite3_user_data(context);
    bool integers = sqlite3_value_type(argv[0]) == SQLITE_INTEGER &&
                    sqlite3_value_type(argv[1]) == SQLITE_INTEGER;
    if (integers && sqlite3_value_int64(argv[0]) == sqlite3_value_int64(argv[1])) {
        sqlite3_result_int64(context, sqlite3_value_int64(argv[0]));
        return;
    }
    conn->expect_unmet = true;
    sqlite3_result_error(context, "guard unmet", -1);
}

/* SQLite's code of the step: SQLITE_ROW when there is an answer. */
static int read_last_id(struct lite_conn *conn, int64_t *ret_id)
{
    struct lite_stmt *stmt;
    if (lite_stmt_get(conn, conn->lite->schema->last_id, &stmt, NULL))
        return SQLITE_ERROR;
    int step = sqlite3_step(stmt->st);
    if (step == SQLITE_ROW)
        *ret_id = sqlite3_column_int64(stmt->st, 0);
    (void)sqlite3_reset(stmt->st); /* repeats the step's code */
    return step;
}

/* hf_next_id(): larger than every id in use, and by one more at each call of a
 * statement. What a statement's own triggers add in between is not seen, so a statement that
 * fires any uses it for no more than one row. */
int lite_next_id(struct lite_conn *conn, int64_t *ret_id)
{
    if (conn->last_id == 0) {
        int step = read_last_id(conn, &conn->last_id);
        if (step != SQLITE_ROW)
            return step == SQLITE_DONE ? SQLITE_ERROR : step;
    }
    conn->ids_given++;
    *ret_id = ++conn->last_id;
    return SQLITE_OK;
}

static void sql_next_id(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    (void)argv;
    int64_t id = 0;
    int rc = lite_next_id(sqlite3_user_data(context), &id);
    if (rc == SQLITE_OK)
        sqlite3_result_int64(context, id);
    else
        sqlite3_result_error_code(context, rc);
}

/* DIRECTONLY: never in views, triggers, CHECKs or indexes, since plain SQL tools read those
 * without our functions. DETERMINISTIC lets SQLite call the clocks once per statement,
 * which is right because they are fixed for the transaction; a guard must run for every
 * row. */
static const struct {
    const char *name;
    int args;
    int flags;
    void (*run)(sqlite3_context *, int, sqlite3_value **);
} functions[] = {
    { "hf_now", 0, SQLITE_DETERMINISTIC, sql_now },
    { "hf_lease_now", 0, SQLITE_DETERMINISTIC, sql_lease_now },
    { "hf_incarnation", 0, SQLITE_DETERMINISTIC, sql_incarnation },
    { "hf_expect", 2, 0, sql_expect },
    { "hf_next_id", 0, 0, sql_next_id },
};

int lite_functions(struct lite_conn *conn, struct hf_err *err)
{
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        int flags = SQLITE_UTF8 | SQLITE_DIRECTONLY | functions[i].flags;
        int rc = sqlite3_create_function_v2(conn->db, functions[i].name,
                                            functions[i].args, flags, conn,
                                            functions[i].run, NULL, NULL, NULL);
        if (rc != SQLITE_OK)
            return lite_fail(conn->db, rc, functions[i].name, err);
    }
    return 0;
}

hf_ms lite_lease_now(const struct lite *lite)
{
    return lite->clock->mono_ms(lite->clock->user) + lite->lease.offset_ms;
}

void lite_sample(struct lite_conn *conn, int64_t incarnation, hf_ms high_water)
{
    const struct lite *lite = conn->lite;
    hf_ms lease_now = lite_lease_now(lite);
    conn->instant.now = lite->clock->wall_ms(lite->clock->user);
    conn->instant.lease_now = lease_now > high_water ? lease_now : high_water;
    conn->instant.incarnation = incarnation;
}

void lite_stamp(const struct lite_conn *conn, struct hf_batch *batch)
{
    batch->now = conn->instant.now;
    batch->lease_now = conn->instant.lease_now;
    batch->incarnation = conn->instant.incarnation;
}

/* The first line of a small file of /proc, or "" where there is none. */
static void read_line(const char *path, char *out, size_t room)
{
    out[0] = '\0';
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t got;
    do
        got = read(fd, out, room - 1);
    while (got < 0 && errno == EINTR);
    (void)close(fd); /* nothing was written */
    out[got > 0 ? (size_t)got : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

static int copy_text(struct hf_buf *buf, char *out, size_t room, struct hf_err *err)
{
    int rc = hf_buf_state(buf);
    if (rc == 0 && buf->len >= room)
        rc = HF_ETOOBIG;
    if (rc == 0)
        memcpy(out, hf_buf_str(buf), buf->len + 1);
    return rc == 0 ? 0 : hf_fail_plain(err, rc);
}

/* Which machine's time this is. An injected clock is a machine of its own, and a kernel
 * without boot ids counts as one long boot: the high water keeps the clock from going back
 * there too. */
int lite_clock_identify(struct lite *lite, struct hf_err *err)
{
    struct hf_buf buf;
    hf_buf_init(&buf, lite->alloc, 256);
    if (lite->system_clock) {
        read_line("/proc/sys/kernel/random/boot_id", lite->lease.boot_id,
                  sizeof(lite->lease.boot_id));
        struct stat ns;
        if (stat("/proc/self/ns/time", &ns) == 0)
            hf_buf_i64(&buf, (int64_t)ns.st_ino);
    } else {
        memcpy(lite->lease.boot_id, "injected", sizeof("injected"));
    }
    int rc = copy_text(&buf, lite->lease.time_ns, sizeof(lite->lease.time_ns), err);
    hf_buf_fini(&buf);
    return rc;
}

int lite_clock_set(struct lite *lite, const struct lite_clock_row *row, bool *ret_changed,
                   struct hf_err *err)
{
    const struct lite_lease_clock *mine = &lite->lease;
    bool same_boot = hf_same(row->boot_id, mine->boot_id);
    if (same_boot && !hf_same(row->time_ns, mine->time_ns))
        return hf_fail(err, HF_ECLOCK, "db",
                       "the store is in use in time namespace %s of this boot, and this "
                       "process is in %s: run it in the same one",
                       row->time_ns, mine->time_ns);

    hf_ms mono = lite->clock->mono_ms(lite->clock->user);
    hf_ms wall = lite->clock->wall_ms(lite->clock->user);
    hf_ms offset = row->offset_ms;
    if (!same_boot)
        offset = (wall > row->high_water ? wall : row->high_water) - mono;
    /* Of one boot this cannot be; of an injected clock that began anew it can. */
    if (mono + offset < row->high_water)
        offset = row->high_water - mono;
    lite->lease.offset_ms = offset;
    *ret_changed = !same_boot || offset != row->offset_ms;
    return 0;
}
