/* Opening and closing a handle.
 *
 * Nothing is written before the file is known to be ours or empty. All that changes the
 * store at open (journal mode, migrations, clock, incarnation) happens inside the turnstile.
 */
#include "db/lite/open.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ident.h"
#include "base/sized.h"
#include "base/text.h"
#include "db/lite/lite.h"

/* A WAL that grew past this is cut when it starts over. Well above the size at which it
 * should start over, since cutting it makes it grow again, which syncs slowly. */
/* Of a new file. A commit writes whole pages, and a lone create's are five. */
#define PAGE_SIZE "PRAGMA page_size = 2048"
#define WAL_KEPT "PRAGMA journal_size_limit = 67108864"

int lite_usable(const struct lite *lite, struct hf_err *err)
{
    if (getpid() != lite->pid)
        return hf_fail(err, HF_EINVAL, NULL,
                       "the store was opened before a fork: open it again");
    int now = atomic_load_explicit(&lite->side.page->schema_version,
                                   memory_order_relaxed);
    if (now != lite->schema_version)
        return hf_fail(err, HF_ESCHEMA, "db",
                       "another program migrated the store from schema version %d to %d: "
                       "open it again",
                       lite->schema_version, now);
    return 0;
}

static int run(struct hf_sql *sql, struct hf_batch *batch, struct hf_err *err)
{
    struct lite *lite = lite_of(sql);
    if (batch->read_only && !lite->memory)
        return lite_read_run(lite, batch, err);
    if (lite->read_only)
        return hf_fail_plain(err, HF_EREADONLY);
    return db_group_run(&lite->group, batch, err);
}

static void close_handle(struct hf_sql *sql)
{
    struct lite *lite = lite_of(sql);
    const struct hf_alloc *alloc = lite->alloc;
    lite_checkpoint_fini(lite);
    db_group_fini(&lite->group);
    lite_readers_fini(lite);
    lite_conn_free(lite->watch.conn);
    hf_lock_fini(&lite->watch.lock);
    lite_conn_close(&lite->writer);
    lite_side_close(lite);
    alloc->free(alloc->user, lite->path);
    alloc->free(alloc->user, lite->vfs);
    alloc->free(alloc->user, lite);
}

static const struct hf_sql_methods methods = {
    .name = "sqlite",
    .run = run,
    .forget = lite_forget,
    .bell_seen = lite_bell_seen,
    .bell_wait = lite_bell_wait,
    .bell_ring = lite_bell_ring,
    .facts = lite_facts,
    .close = close_handle,
};

static struct lite *new_handle(const char *path, const struct hf_sql_options *options,
                               const struct lite_under *under)
{
    const struct hf_alloc *alloc = options->alloc;
    struct lite *lite = alloc->realloc(alloc->user, NULL, sizeof(*lite));
    if (!lite)
        return NULL;
    *lite = (struct lite){
        .sql.methods = &methods,
        .alloc = alloc,
        .clock = options->clock,
        .random = options->random,
        .schema = under->schema,
        .memory = hf_same(path, ":memory:"),
        .inline_mode = options->inline_mode,
        .busy_ms = options->busy_ms,
        .pid = getpid(),
        .side.fd = -1,
    };
    lite->read_only = options->read_only && !lite->memory;
    lite->system_clock = lite->clock == hf_clock_system();
    lite_group_init(lite);
    lite_readers_init(lite);
    lite_checkpoint_init(lite);
    hf_lock_init(&lite->watch.lock);
    lite->path = hf_text_copy(alloc, path);
    if (under->vfs)
        lite->vfs = hf_text_copy(alloc, under->vfs);
    if (!lite->path || (under->vfs && !lite->vfs)) {
        close_handle(&lite->sql);
        return NULL;
    }
    return lite;
}

static bool is_folder(const char *path)
{
    struct stat at;
    return stat(path, &at) == 0 && S_ISDIR(at.st_mode);
}

static bool folder_is_there(struct lite *lite)
{
    char *slash = strrchr(lite->path, '/');
    if (!slash || slash == lite->path)
        return true;
    *slash = '\0';
    bool there = is_folder(lite->path);
    *slash = '/';
    return there;
}

/* SQLite names the WAL by the path: two names of one file have two WALs over the same pages,
 * and each loses what was committed under the other. */
static int fail_linked(const struct lite *lite, nlink_t links, struct hf_err *err)
{
    return hf_fail(err, HF_ENOTSTORE, "db",
                   "%.100s has %lld hard links, and under each name commits of the other "
                   "would be lost: remove the other names (`find -samefile` lists them), "
                   "or use `holdfast store copy`",
                   lite->path, (long long)links);
}

static int fail_emptied(const struct lite *lite, struct hf_err *err)
{
    return hf_fail(err, HF_ECORRUPT, "db",
                   "%.60s is empty, but its sidecar (-hf) knows a store: the file or its "
                   "-wal was removed. Put both or a backup back; to begin a new store, "
                   "remove the file that ends in -hf",
                   lite->path);
}

/* Of a file that is absent or has no bytes, before SQLite opens it: SQLite deletes the WAL of
 * such a file. Who makes a store writes to the file first and to the sidecar last. */
static int check_never_was(struct lite *lite, struct hf_err *err)
{
    struct stat at;
    bool known = !lite->vfs && lite_side_knows(lite); /* a test's VFS has its own files */
    bool empty = stat(lite->path, &at) != 0 || at.st_size == 0;
    return known && empty ? fail_emptied(lite, err) : 0;
}

static int check_path(struct lite *lite, bool must_exist, struct hf_err *err)
{
    struct stat at;
    if (stat(lite->path, &at) == 0) {
        if (!S_ISREG(at.st_mode))
            return hf_fail(err, HF_ENOTSTORE, "db", "%s is not a regular file",
                           lite->path);
        if (at.st_nlink > 1)
            return fail_linked(lite, at.st_nlink, err);
        return at.st_size == 0 ? check_never_was(lite, err) : 0;
    }
    int error = errno;
    if (error == EACCES)
        return hf_fail(err, HF_EREADONLY, "db", "%s: no permission to read its folder",
                       lite->path);
    if (error == ENOENT && !folder_is_there(lite))
        return hf_fail(err, HF_ENOTSTORE, "db", "the folder of %s does not exist",
                       lite->path);
    if (error != ENOENT || must_exist)
        return hf_fail(err, HF_ENOTSTORE, "db", "there is no store at %s", lite->path);
    int rc = check_never_was(lite, err);
    if (rc != 0)
        return rc;
    /* For its owner alone: SQLite and the sidecar create their files with the same mode.
     * Made without a descriptor, since to close one would drop locks of this process.
     * Other obstacles show when SQLite opens it. */
    if (mknod(lite->path, S_IFREG | 0600, 0) != 0 && (errno == EACCES || errno == EROFS))
        return hf_fail(err, HF_EREADONLY, "db",
                       "%s cannot be created: no permission to write to its folder",
                       lite->path);
    return 0;
}

/* Later connections and the sidecar must be of the same file whatever the working directory
 * is by then, and whichever symbolic link led here. */
static int use_full_path(struct lite *lite, struct hf_err *err)
{
    const char *full = sqlite3_db_filename(lite->writer.db, "main");
    char *path = full ? hf_text_copy(lite->alloc, full) : NULL;
    if (!path)
        return hf_fail_plain(err, HF_ENOMEM);
    lite->alloc->free(lite->alloc->user, lite->path);
    lite->path = path;
    return 0;
}

static int open_writer(struct lite *lite, struct hf_err *err)
{
    int rc = lite_conn_open(lite, LITE_WRITES, &lite->writer, err);
    if (rc == HF_ENOTSTORE)
        return hf_fail(err, rc, "db", "%s is not a SQLite database", lite->path);
    if (rc == 0 && !lite->read_only && sqlite3_db_readonly(lite->writer.db, "main") == 1)
        rc = HF_EREADONLY;
    if (lite->read_only && (rc == HF_ESTOREIO || rc == HF_EREADONLY))
        return hf_fail(err, HF_EREADONLY, "db",
                       "SQLite cannot read %.80s here: its folder cannot be written, and "
                       "its -wal and -shm are missing. Copy it to a folder that can be "
                       "written",
                       lite->path);
    if (rc == HF_EREADONLY)
        return hf_fail(err, rc, "db", "%s cannot be written", lite->path);
    return rc == 0 && !lite->memory ? use_full_path(lite, err) : rc;
}

/* Needs the database for itself for a moment, once in its life. */
static int use_wal(struct lite *lite, struct hf_err *err)
{
    sqlite3_stmt *st = NULL;
    sqlite3 *db = lite->writer.db;
    int ours = lite_exec(&lite->writer, PAGE_SIZE, err);
    if (ours != 0)
        return ours;
    int rc = sqlite3_prepare_v2(db, "PRAGMA journal_mode = WAL", -1, &st, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    const unsigned char *mode = rc == SQLITE_ROW ? sqlite3_column_text(st, 0) : NULL;
    bool wal = mode && hf_same((const char *)mode, "wal");
    (void)sqlite3_finalize(st); /* repeats the step's code */
    if (rc != SQLITE_ROW)
        return lite_fail(db, rc, "switching to WAL", err);
    if (!wal)
        return hf_fail(err, HF_ESTOREIO, "db",
                       "the file system of %s cannot hold a write-ahead log", lite->path);
    return lite_exec(&lite->writer, WAL_KEPT, err);
}

/* A new history begins, later than every one that was seen; `store log` says why. */
static int raise_incarnation(struct lite *lite, struct lite_store_facts *facts,
                             int64_t seen, const char *why, struct hf_err *err)
{
    int64_t before = facts->incarnation;
    facts->incarnation = (seen > before ? seen : before) + 1;
    const struct hf_clock *clock = lite->clock;
    const struct hf_val args[] = { lite_i64(facts->incarnation) };
    const struct hf_val log[] = { lite_i64(clock->wall_ms(clock->user)), lite_i64(before),
                                  lite_i64(facts->incarnation), lite_text(why) };
    struct lite_own_run own;
    int rc = lite_run_own(&lite->writer, DB_OWN_STORE_RAISE, args, &own, err);
    lite_forget(NULL, &own.batch);
    if (rc != 0)
        return rc;
    rc = lite_run_own(&lite->writer, DB_OWN_STORE_RAISED, log, &own, err);
    lite_forget(NULL, &own.batch);
    return rc;
}

/* The incarnation is raised when history may have been taken back: the sidecar saw commits
 * that the file does not have, or there is no sidecar to tell. (Others whose sidecar was
 * deleted under them cannot be seen; it is raised then too, which refuses holders and loses
 * nothing.) While others are known to have the store open it is never raised. */
static int judge(struct lite *lite, struct lite_store_facts *facts, bool writes,
                 bool *ret_changed, struct hf_err *err)
{
    const struct lite_side *side = &lite->side;
    if (side->fd < 0)
        return 0;
    const struct lite_page *page = side->page;
    bool same = side->known &&
                memcmp(page->store_id, lite->store_id, sizeof(page->store_id)) == 0;
    bool behind = same && (atomic_load(&page->commit_seq) > facts->commit_seq ||
                           atomic_load(&page->incarnation) > facts->incarnation);
    if (!behind && same)
        return 0;
    if (!side->alone && (behind || side->known))
        return hf_fail(err, HF_EBUSY, "db",
                       "the file was replaced while other processes have the store open: "
                       "stop them, then open it again");
    if (!side->alone)
        return 0;
    *ret_changed = true;
    if (!writes)
        return 0;
    int64_t seen = same ? atomic_load(&page->incarnation) : 0;
    const char *why = behind        ? "sidecar_ahead"
                      : side->known ? "other_store"
                                    : "no_sidecar";
    return raise_incarnation(lite, facts, seen, why, err);
}

static int create_row(struct lite *lite, struct hf_err *err)
{
    const struct hf_clock *clock = lite->clock;
    hf_ms wall = clock->wall_ms(clock->user);
    uint64_t seq = 0;
    char id[HF_UUID_TEXT];
    int rc = hf_uuid7(wall, &seq, lite->random, id, err);
    if (rc != 0)
        return rc;
    memcpy(lite->store_id, id, sizeof(id));
    lite->lease.offset_ms = wall - clock->mono_ms(clock->user);
    const struct hf_val args[] = {
        lite_text(id),
        lite_text(lite->lease.boot_id),
        lite_text(lite->lease.time_ns),
        lite_i64(lite->lease.offset_ms),
        lite_i64(wall),
        lite_i64(wall),
    };
    struct lite_own_run own;
    rc = lite_run_own(&lite->writer, DB_OWN_STORE_CREATE, args, &own, err);
    lite_forget(NULL, &own.batch);
    return rc;
}

static int write_clock(struct lite *lite, hf_ms high_water, struct hf_err *err)
{
    const struct hf_val args[] = {
        lite_text(lite->lease.boot_id),
        lite_text(lite->lease.time_ns),
        lite_i64(lite->lease.offset_ms),
        lite_i64(high_water),
    };
    struct lite_own_run own;
    int rc = lite_run_own(&lite->writer, DB_OWN_STORE_CLOCK, args, &own, err);
    lite_forget(NULL, &own.batch);
    return rc;
}

static int read_row(struct lite *lite, const struct hf_val *row,
                    struct lite_store_facts *ret_facts, bool *ret_changed,
                    struct hf_err *err)
{
    if (row[DB_COL_STORE_ROW_STORE_ID].len >= sizeof(lite->store_id) ||
        row[DB_COL_STORE_ROW_BOOT_ID].type != HF_VAL_TEXT ||
        row[DB_COL_STORE_ROW_TIME_NS].type != HF_VAL_TEXT)
        return hf_fail(err, HF_ECORRUPT, "db", "the row of hf_store is damaged");
    if (row[DB_COL_STORE_ROW_INCARNATION].i <= 0)
        return hf_fail(err, HF_ENOTSTORE, "db",
                       "%.120s is an unfinished copy: remove it, and copy again",
                       lite->path);
    memcpy(lite->store_id, row[DB_COL_STORE_ROW_STORE_ID].at,
           row[DB_COL_STORE_ROW_STORE_ID].len);
    ret_facts->incarnation = row[DB_COL_STORE_ROW_INCARNATION].i;
    ret_facts->commit_seq = row[DB_COL_STORE_ROW_COMMIT_SEQ].i;
    ret_facts->high_water = row[DB_COL_STORE_ROW_LEASE_HIGH_WATER].i;
    const struct lite_clock_row clock = {
        .boot_id = row[DB_COL_STORE_ROW_BOOT_ID].at,
        .time_ns = row[DB_COL_STORE_ROW_TIME_NS].at,
        .offset_ms = row[DB_COL_STORE_ROW_LEASE_OFFSET_MS].i,
        .high_water = row[DB_COL_STORE_ROW_LEASE_HIGH_WATER].i
    };
    return lite_clock_set(lite, &clock, ret_changed, err);
}

/* In a transaction: reads the store's row, or makes it; brings clock and incarnation up to
 * date where the handle may write. One that does not write only tells what there is to do. */
static int update_row(struct lite *lite, struct lite_store_facts *facts, bool writes,
                      bool *ret_changed, struct hf_err *err)
{
    struct lite_own_run own;
    bool clock_changed = false;
    int rc = lite_run_own(&lite->writer, DB_OWN_STORE_ROW, NULL, &own, err);
    bool found = rc == 0 && own.call.out_count == 1;
    if (found)
        rc = read_row(lite, own.call.out, facts, &clock_changed, err);
    lite_forget(NULL, &own.batch);
    if (rc != 0 || lite->read_only)
        return rc;
    *ret_changed = clock_changed || !found;
    if (!found) {
        *facts = (struct lite_store_facts){ .incarnation = 1 };
        return writes ? create_row(lite, err) : 0;
    }
    if (clock_changed && writes)
        rc = write_clock(lite, facts->high_water, err);
    return rc == 0 ? judge(lite, facts, writes, ret_changed, err) : rc;
}

/* `ret_changed`: something was written, or is to be. */
static int update_once(struct lite *lite, bool writes, bool *ret_changed,
                       struct hf_err *err)
{
    struct lite_conn *conn = &lite->writer;
    struct lite_store_facts facts = { 0 };
    int rc = lite_begin(conn, writes ? LITE_BEGIN_WRITE : LITE_BEGIN_READ, err);
    if (rc != 0)
        return rc;
    rc = update_row(lite, &facts, writes, ret_changed, err);
    lite_sample(conn, facts.incarnation, facts.high_water);
    if (rc == 0 && writes && *ret_changed)
        rc = lite_txn_end(lite, &facts, err);
    lite_roll_back(conn); /* read only, or failed: nothing to keep */
    if (rc == 0 && !lite->read_only && (writes || !*ret_changed))
        lite_side_adopt(lite, &facts);
    return rc;
}

/* Mostly there is nothing to write, and then SQLite's write lock is not asked for. */
static int update_store(struct lite *lite, struct hf_err *err)
{
    bool changed = false;
    int rc = update_once(lite, false, &changed, err);
    if (rc == 0 && changed && !lite->read_only)
        rc = update_once(lite, true, &changed, err);
    return rc;
}

static int fail_absent(const struct lite *lite, struct hf_err *err)
{
    return hf_fail(err, HF_ENOTSTORE, "db", "there is no store at %s", lite->path);
}

static int open_in_turnstile(struct lite *lite, const struct hf_sql_options *options,
                             struct hf_err *err)
{
    bool empty = false;
    int rc = lite_check_kind(&lite->writer, &empty, err);
    if (rc == 0 && empty && options->must_exist)
        rc = fail_absent(lite, err);
    if (rc == 0)
        rc = lite_side_enter(lite, err);
    if (rc == 0 && empty && lite->side.known)
        rc = fail_emptied(lite, err);
    if (rc == 0 && !lite->memory)
        rc = use_wal(lite, err);
    if (rc == 0)
        rc = lite_migrate(lite, options->migrate != HF_MIGRATE_NEVER, err);
    return rc == 0 ? update_store(lite, err) : rc;
}

static int open_to_write(struct lite *lite, const struct hf_sql_options *options,
                         struct hf_err *err)
{
    int rc = lite_turnstile_enter(lite, err);
    if (rc != 0)
        return rc;
    rc = open_in_turnstile(lite, options, err);
    lite_turnstile_leave(lite);
    if (rc == 0)
        lite_checkpoint_watch(lite);
    lite->opened = rc == 0;
    return rc;
}

/* Passes no turnstile: a store can be read whatever became of the process that has it. */
static int open_to_read(struct lite *lite, struct hf_err *err)
{
    bool empty = false;
    int rc = lite_check_kind(&lite->writer, &empty, err);
    if (rc == 0 && empty)
        rc = fail_absent(lite, err);
    if (rc == 0)
        rc = lite_migrate(lite, false, err);
    if (rc == 0)
        rc = lite_side_for_reader(lite, err);
    return rc == 0 ? update_store(lite, err) : rc;
}

/* Before anything is written or waited for. One snapshot, since another process may be
 * making the store just now. */
static int check_first(struct lite *lite, struct hf_err *err)
{
    bool empty;
    struct lite_conn *conn = &lite->writer;
    int rc = lite_begin(conn, LITE_BEGIN_READ, err);
    if (rc != 0)
        return rc;
    rc = lite_check_kind(conn, &empty, err);
    lite_roll_back(conn);
    return rc == HF_EBUSY ? lite_fail_locked(lite, LITE_WAL_LOCK, err) : rc;
}

static int open_store(struct lite *lite, const struct hf_sql_options *options,
                      struct hf_err *err)
{
    int rc = lite_clock_identify(lite, err);
    if (rc == 0 && !lite->memory)
        rc = check_path(lite, options->must_exist || lite->read_only, err);
    if (rc == 0)
        rc = open_writer(lite, err);
    if (rc == 0)
        rc = check_first(lite, err);
    if (rc == 0)
        rc = lite_side_open(lite, err);
    if (rc != 0)
        return rc;
    return lite->read_only ? open_to_read(lite, err) : open_to_write(lite, options, err);
}

int lite_open(const char *path, const struct hf_sql_options *options,
              const struct lite_under *under, struct hf_sql **ret_sql, struct hf_err *err)
{
    struct hf_sql_options known;
    int rc = db_options_read(options, &known, err);
    if (rc != 0)
        return rc;
    if (!sqlite3_threadsafe())
        return hf_fail(err, HF_EINTERNAL, NULL,
                       "this SQLite library was built without threads: use one with "
                       "SQLITE_THREADSAFE=1");
    if (!path || !path[0])
        return hf_fail(err, HF_EINVAL, "db", "a path is needed");
    struct lite *lite = new_handle(path, &known, under);
    if (!lite)
        return hf_fail_plain(err, HF_ENOMEM);
    rc = open_store(lite, &known, err);
    if (rc != 0)
        close_handle(&lite->sql);
    else
        *ret_sql = &lite->sql;
    return rc;
}
