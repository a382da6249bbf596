/* Opening a store, and operations on it as a whole.
 *
 * The errors of a store, which any call may return that reads or writes one:
 *   HF_EBUSY         another process writes, or holds what the call needs, for too long
 *   HF_EUNREACHABLE  the server or its database does not answer
 *   HF_EUNCERTAIN    a write was sent, and its outcome could not be found out
 *   HF_EFULL, HF_EREADONLY, HF_ESTOREIO  the disk, or what this user may do
 *   HF_ENOTSTORE, HF_ECORRUPT, HF_ESCHEMA  another program changed or replaced the store
 *   HF_ENOMEM, HF_EOVERFLOW, HF_EINTERNAL
 * A comment that says "the errors of a store" means these, and lists only the others.
 */
#ifndef HOLDFAST_STORE_H
#define HOLDFAST_STORE_H

#include <holdfast/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_store;

/* What opening may do to the schema. A store of a newer schema is refused always. */
enum hf_migrate {
    HF_MIGRATE_DEFAULT, /* create it; an older one: upgraded on SQLite, refused elsewhere */
    HF_MIGRATE_NEVER,   /* neither create nor upgrade it */
    HF_MIGRATE_UPGRADE /* create it, and upgrade an older one on either engine */
};

struct hf_store_options {
    uint32_t size;
    const struct hf_alloc *alloc; /* NULL: the system's, for each of the three */
    const struct hf_clock *clock;
    const struct hf_random *random;
    bool inline_mode; /* no threads of the library's own */
    bool must_exist;  /* refuse to create the store */
    hf_ms busy_ms;    /* wait for a turn to write; 0: the limit's value */
    enum hf_migrate migrate;
    bool read_only; /* only read: waits for no writer, and works on a read-only mount */
};

/* Open "PATH", "sqlite:PATH", "sqlite::memory:" or "postgres://…" (what libpq takes, and
 * `schema`, `pooler` and `listen_url`: docs/fleet.md). `options` may be NULL. Each opened handle
 * is an owner incarnation of its own (hf_store_incarnation). HF_EINVAL for the address or an
 * option; HF_ENOTSTORE: the place holds other data, or nothing although `must_exist`;
 * HF_ESCHEMA, HF_ESCHEMAOLD: the schema is newer, or older and not to be upgraded; HF_ECLOCK:
 * the file belongs to another time namespace; and the errors of a store. */
HF_API HF_MUST_USE int hf_store_open(const char *url,
                                     const struct hf_store_options *options,
                                     struct hf_store **ret_store, struct hf_err *err);

/* No thread may be in a call. NULL is fine. */
HF_API void hf_store_close(struct hf_store *store);

/* This handle's own incarnation: fresh at each open, never reused. */
HF_API const char *hf_store_incarnation(const struct hf_store *store);

/* Wall time by the clock that the store's times were taken from: the server's on PostgreSQL, as
 * far apart from this machine's as the handle's last transaction showed; before its first one,
 * and on SQLite, this machine's. */
HF_API hf_ms hf_store_now(const struct hf_store *store);

/* Facts about the store for doctor and for people: one JSON object. The text is the
 * caller's to free with hf_store_text_free. The errors of a store. */
HF_API HF_MUST_USE int hf_store_facts(struct hf_store *store, char **ret_json,
                                      struct hf_err *err);
HF_API void hf_store_text_free(struct hf_store *store, char *text);

/* Begin a new history: every lease token given out before is refused from now on. For use
 * after a restore. Returns the new number. The errors of a store. */
HF_API HF_MUST_USE int hf_store_bump(struct hf_store *store, int64_t *ret_incarnation,
                                     struct hf_err *err);

/* One table of a copy, found equal row by row. */
struct hf_copied_table {
    const char *name;
    int64_t rows;
    char sha256[65]; /* of its rows in the order of its key, as the target has them */
};

struct hf_copy_progress {
    const char *table;
    bool verifying; /* false: copying */
    int64_t rows;
    int64_t of;
};

struct hf_copy_options {
    uint32_t size;
    const char *from; /* as for hf_store_open; its schema must be this version's */
    const char *to;   /* made where there is none */
    void *user;
    void (*progress)(void *user, const struct hf_copy_progress *progress); /* or NULL */
    void (*copied)(void *user, const struct hf_copied_table *table);       /* or NULL */
};

struct hf_copy_report {
    int64_t tables;
    int64_t rows;
    int64_t incarnation; /* of the copy */
};

/* Copy a store into an empty one, on the same engine or another, and compare both row by
 * row. Ids, numbers and fences are kept; times of leases are moved to the target's lease
 * clock; the copy begins a history of its own, in which no token of the source is good.
 * Nothing may write to the source meanwhile.
 *   HF_ECONFLICT  the target is not empty ("to"), or the source changed ("from")
 * After a failure the target is unfinished, and no program opens it: remove it. */
HF_API HF_MUST_USE int hf_store_copy(const struct hf_copy_options *options,
                                     struct hf_copy_report *ret_report,
                                     struct hf_err *err);

/* One entry of the store's log: bumps, amnesties, copies. */
struct hf_store_log_entry {
    int64_t log_id;
    hf_ms at;
    const char *what;
    const char *detail; /* JSON, or NULL */
};

/* Called for each entry, on the calling thread; the entry is borrowed. */
typedef void hf_logged(void *user, const struct hf_store_log_entry *entry);

/* Changes of the store as a whole, newest first: entries before `before` (0: from the
 * newest), at most `limit` (0: 100). HF_EINVAL without `each`, HF_ETOOBIG for `limit`, and the
 * errors of a store. */
HF_API HF_MUST_USE int hf_store_log(struct hf_store *store, int64_t before, size_t limit,
                                    hf_logged *each, void *user, struct hf_err *err);

/* The schema as one SQL script, static, for the engine that an address names (NULL:
 * SQLite's). In PostgreSQL's, @schema@ is the place of the schema's name. Nothing is
 * opened. */
HF_API const char *hf_store_schema_sql(const char *url);
HF_API int hf_store_schema_version(void);

/* One fault that a check found. */
struct hf_finding {
    const char *what; /* store, schema, clock, disk, effects, leases, chains, … */
    const char *detail;
    const char *advice;
    bool bad; /* false: a remark */
};

/* Called for each finding, in order, on the checking thread. */
typedef void hf_found(void *user, const struct hf_finding *finding);

/* Check the store and fold every event trail again. A bad finding is no
 * failure: the call returns 0. HF_EINVAL without `found`, and the errors of a store. */
HF_API HF_MUST_USE int hf_store_check(struct hf_store *store, hf_found *found, void *user,
                                      struct hf_err *err);

#ifdef __cplusplus
}
#endif
#endif
