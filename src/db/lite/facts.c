/* The facts of an SQLite store, as one JSON object, for doctor and for people: its files and their
 * sizes, the sidecar, versions, clocks, and counters of this handle. */
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/buf.h"
#include "base/json.h"
#include "db/lite/lite.h"

#define FACTS_BYTES_MAX 16384

static int64_t file_bytes(struct lite *lite, const char *suffix)
{
    struct hf_buf path;
    struct stat at;
    hf_buf_init(&path, lite->alloc, strlen(lite->path) + 8);
    hf_buf_text(&path, lite->path);
    hf_buf_text(&path, suffix);
    bool found = hf_buf_state(&path) == 0 && stat(hf_buf_str(&path), &at) == 0;
    hf_buf_fini(&path);
    return found ? (int64_t)at.st_size : 0;
}

static int64_t count(const _Atomic int64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

static void put_files(struct hf_json *json, struct lite *lite)
{
    hf_json_put_str(json, "path", lite->path);
    if (lite->memory)
        return;
    struct statvfs fs;
    hf_json_put_i64(json, "db_bytes", file_bytes(lite, ""));
    hf_json_put_i64(json, "wal_bytes", file_bytes(lite, "-wal"));
    if (statvfs(lite->path, &fs) == 0)
        hf_json_put_i64(json, "disk_free_bytes",
                        (int64_t)fs.f_bavail * (int64_t)fs.f_frsize);
    hf_json_put_str(json, "sidecar", lite->side.mapped ? "mapped" : "none");
    hf_json_put_bool(json, "sidecar_was_known", lite->side.known);
    hf_json_put_bool(json, "opened_alone", lite->side.alone);
}

static void put_clock(struct hf_json *json, const struct lite *lite)
{
    hf_json_put_str(json, "boot_id", lite->lease.boot_id);
    hf_json_put_str(json, "time_namespace", lite->lease.time_ns);
    hf_json_put_i64(json, "lease_offset_ms", lite->lease.offset_ms);
    hf_json_put_i64(json, "lease_now", lite_lease_now(lite));
}

static void put_counts(struct hf_json *json, const struct lite *lite)
{
    const struct lite_counts *counts = &lite->counts;
    const struct {
        const char *name;
        const _Atomic int64_t *value;
    } rows[] = {
        { "groups", &lite->group.groups },
        { "batches", &lite->group.members },
        { "largest_group", &lite->group.largest },
        { "late", &lite->group.late },
        { "replays", &counts->replays },
        { "failed_commits", &counts->failed_commits },
        { "turnstile_waits", &counts->turnstile_waits },
        { "turnstile_wait_ms", &counts->turnstile_wait_ms },
        { "checkpoints", &counts->checkpoints },
        { "checkpoints_in_turnstile", &counts->checkpoints_in_turnstile },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        hf_json_put_i64(json, rows[i].name, count(rows[i].value));
}

/* Facts that only the database has; read on a connection that no other process uses. */
struct asked {
    struct lite_store_facts store;
    int64_t page_size;
    int64_t page_count;
    int64_t free_pages;
    int64_t synchronous;
};

static int ask_on(struct lite_conn *conn, struct asked *ret_asked, struct hf_err *err)
{
    const struct {
        const char *sql;
        int64_t *value;
    } rows[] = {
        { "PRAGMA page_size", &ret_asked->page_size },
        { "PRAGMA page_count", &ret_asked->page_count },
        { "PRAGMA freelist_count", &ret_asked->free_pages },
        { "PRAGMA synchronous", &ret_asked->synchronous },
    };
    int rc = lite_store_read(conn, &ret_asked->store, err);
    for (size_t i = 0; rc == 0 && i < sizeof(rows) / sizeof(rows[0]); i++)
        rc = lite_pragma(conn, rows[i].sql, rows[i].value, err);
    return rc;
}

/* A memory store has only the writer, which belongs to the process that leads. */
static int ask(struct lite *lite, struct asked *ret_asked, struct hf_err *err)
{
    struct lite_conn *conn = &lite->writer;
    int rc = lite->memory ? lite_group_enter(lite, err)
                          : lite_conn_new(lite, LITE_READS, &conn, err);
    if (rc != 0)
        return rc;
    rc = ask_on(conn, ret_asked, err);
    if (lite->memory)
        lite_group_leave(lite);
    else
        lite_conn_free(conn);
    return rc;
}

static void put_asked(struct hf_json *json, const struct lite *lite,
                      const struct asked *asked)
{
    static const char *const levels[] = { "off", "normal", "full", "extra" };
    size_t level = (size_t)asked->synchronous;
    hf_json_put_str(json, "engine", "sqlite");
    hf_json_put_str(json, "engine_version", sqlite3_libversion());
    hf_json_put_str(json, "journal_mode", lite->memory ? "memory" : "wal");
    hf_json_put_str(json, "synchronous",
                    level < sizeof(levels) / sizeof(levels[0]) ? levels[level] : "?");
    hf_json_put_i64(json, "page_size", asked->page_size);
    hf_json_put_i64(json, "page_count", asked->page_count);
    hf_json_put_i64(json, "free_pages", asked->free_pages);
    hf_json_put_i64(json, "wal_pages", count(&lite->checkpoint.wal_pages));
    hf_json_put_str(json, "store_id", lite->store_id);
    hf_json_put_i64(json, "schema_version", lite->schema_version);
    hf_json_put_i64(json, "incarnation", asked->store.incarnation);
    hf_json_put_i64(json, "commit_seq", asked->store.commit_seq);
    hf_json_put_i64(json, "lease_high_water", asked->store.high_water);
}

int lite_facts(struct hf_sql *sql, struct hf_span *ret_json, struct hf_err *err)
{
    struct lite *lite = lite_of(sql);
    struct asked asked = { .store = { 0 } };
    int rc = ask(lite, &asked, err);
    if (rc != 0)
        return rc;
    struct hf_buf out;
    struct hf_json json;
    hf_buf_init(&out, lite->alloc, FACTS_BYTES_MAX);
    hf_json_begin(&json, &out);
    hf_json_object(&json);
    put_asked(&json, lite, &asked);
    put_files(&json, lite);
    put_clock(&json, lite);
    put_counts(&json, lite);
    hf_json_end(&json);
    rc = hf_buf_state(&out);
    if (rc != 0) {
        hf_buf_fini(&out);
        return hf_fail_plain(err, rc);
    }
    *ret_json = (struct hf_span){ .at = out.at, .len = out.len };
    return 0; /* the caller frees it */
}
