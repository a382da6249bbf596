/* The SQL store as a whole: opening, closing, the table of its verbs. */
#include <holdfast/bounds.h>
#include <string.h>

#include "base/conninfo.h"
#include "base/err.h"
#include "base/ident.h"
#include "base/sized.h"
#include "base/text.h"
#include "store/schedule/schedule.h"
#include "store/session/session.h"
#include "store/trigger/trigger.h"
#include "store/wait/wait.h"

int sql_new_id(struct sql_store *store, hf_ms now, char ret_id[37], struct hf_err *err)
{
    hf_lock(&store->lock);
    int rc = hf_uuid7(now, &store->uuid_seq, store->handle.random, ret_id, err);
    hf_unlock(&store->lock);
    return rc;
}

int sql_answered(int rc, struct hf_err *err)
{
    if (rc == 0 || rc == HF_ECONFLICT || rc == HF_EINTERNAL || rc == HF_EUNCERTAIN)
        return rc;
    return hf_fail(err, HF_EUNCERTAIN, NULL,
                   "it was written, but the answer could not be read (%s): read the row "
                   "before you repeat the call",
                   hf_err_wire(rc));
}

int sql_env(struct sql_store *store, const struct hf_caller *who,
            const struct hf_batch *seen, struct hf_env *ret_env, struct hf_err *err)
{
    struct hf_env env = {
        .now = seen->now,
        .lease_now = seen->lease_now,
        .store = seen->incarnation,
        .actor_kind = who->actor_kind,
        .actor = who->actor,
        .correlation_id = who->correlation_id,
        .operation = who->operation_id != NULL,
    };
    const struct hf_random *random = store->handle.random;
    if (random->fill(random->user, &env.random, sizeof env.random))
        return hf_fail(err, HF_EINTERNAL, NULL, "the random source failed");
    *ret_env = env;
    return 0;
}

hf_ms sql_wall(const struct sql_store *store)
{
    const struct hf_clock *clock = store->handle.clock;
    hf_ms (*ahead)(struct hf_sql *) = store->sql->methods->ahead_ms;
    return clock->wall_ms(clock->user) + (ahead ? ahead(store->sql) : 0);
}

static hf_ms sql_now(const struct hf_store *handle)
{
    return sql_wall((const struct sql_store *)handle);
}

hf_ms sql_by_caller(const struct hf_store *handle, hf_ms at, hf_ms now)
{
    const struct hf_clock *clock = handle->clock;
    bool converts = at && ((const struct sql_store *)handle)->plan->own_clock;
    return converts ? at + (clock->wall_ms(clock->user) - now) : at;
}

int sql_item_token(struct hf_answer *answer, struct hf_item *item,
                   const struct hf_row *row)
{
    struct hf_buf buf;
    hf_buf_init(&buf, hf_alloc_system(), 512);
    int rc = hf_token_write(&buf, row->lease_incarnation, row->w.lease_fence,
                            row->claim_group);
    item->token = rc ? NULL : hf_answer_text(answer, hf_buf_str(&buf));
    hf_buf_fini(&buf);
    return item->token ? 0 : HF_ENOMEM;
}

static int sql_bump(struct hf_store *handle, int64_t *ret_incarnation, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_STORE_LOCK, HF_ANY_COUNT);
    size_t bump = hf_ops_call(&ops, HF_SQL_STORE_BUMP, 1);
    hf_ops_call(&ops, HF_SQL_STORE_LOG, 1);
    hf_ops_text(&ops, "bump");
    hf_ops_null(&ops);
    int rc = hf_ops_write(&ops, err);
    if (rc == 0)
        rc = hf_ops_counted(&ops, err);
    if (rc == 0)
        *ret_incarnation = hf_out_i64(hf_ops_result(&ops, bump), 0,
                                      HF_COL_STORE_BUMP_INCARNATION);
    hf_ops_fini(&ops);
    return rc;
}

static int sql_facts(struct hf_store *handle, char **ret_json, struct hf_err *err)
{
    struct hf_sql *sql = sql_store_of(handle)->sql;
    struct hf_span json;
    int rc = sql->methods->facts(sql, &json, err);
    if (rc)
        return rc;
    char *text = handle->alloc->realloc(handle->alloc->user, NULL, json.len + 1);
    if (text) {
        memcpy(text, json.at, json.len);
        text[json.len] = '\0';
        *ret_json = text;
    }
    handle->alloc->free(handle->alloc->user, (void *)(uintptr_t)json.at);
    return text ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

static uint32_t sql_bell_seen(struct hf_store *handle, uint32_t topic)
{
    struct hf_sql *sql = sql_store_of(handle)->sql;
    return sql->methods->bell_seen(sql, topic);
}

static bool sql_bell_wait(struct hf_store *handle, uint32_t topic, uint32_t seen,
                          hf_ms ms)
{
    struct hf_sql *sql = sql_store_of(handle)->sql;
    return sql->methods->bell_wait(sql, topic, seen, ms);
}

static bool sql_taken_here(struct hf_store *handle, uint32_t *ret_count)
{
    struct hf_sql *sql = sql_store_of(handle)->sql;
    return sql->methods->taken_here && sql->methods->taken_here(sql, ret_count);
}

static void sql_close(struct hf_store *handle)
{
    struct sql_store *store = sql_store_of(handle);
    const struct hf_alloc *alloc = handle->alloc;
    store->sql->methods->close(store->sql);
    sql_policies_forget(store);
    hf_lock_fini(&store->random.lock);
    hf_lock_fini(&store->lock);
    alloc->free(alloc->user, store);
}

static const struct hf_process_methods process_methods = {
    .register_process = sql_process_register,
    .output_add = sql_output_add,
    .output_read = sql_output_read,
    .list = sql_process_list,
    .tell = sql_process_tell,
    .records = sql_process_records,
    .prune = sql_process_prune,
};

static const struct hf_store_methods methods = {
    .name = "sql",
    .create = sql_create,
    .claim = sql_claim,
    .change = sql_change,
    .renew_all = sql_renew_all,
    .get = sql_get,
    .list = sql_list,
    .events = sql_events,
    .feed = sql_feed,
    .stats = sql_stats,
    .sweep = sql_sweep,
    .prune = sql_prune,
    .pulse = sql_pulse,
    .amnesty = sql_amnesty,
    .log = sql_log,
    .policy_set = sql_policy_set,
    .policy_get = sql_policy_get,
    .limit_set = sql_limit_set,
    .limit_list = sql_limit_list,
    .lease_take = sql_lease_take,
    .lease_renew = sql_lease_renew,
    .lease_release = sql_lease_release,
    .lease_look = sql_lease_look,
    .bump = sql_bump,
    .check = sql_check,
    .facts = sql_facts,
    .dump = sql_dump,
    .bell_seen = sql_bell_seen,
    .bell_wait = sql_bell_wait,
    .next_due = sql_next_due,
    .holders = sql_holders,
    .taken_here = sql_taken_here,
    .process = &process_methods,
    .close = sql_close,
    .schedules = &sql_schedule_methods,
    .triggers = &sql_trigger_methods,
    .sessions = &sql_session_methods,
    .waits = &sql_wait_methods,
    .watch = &sql_overview_methods,
    .journal = &sql_journal_methods,
    .known = sql_known,
    .now = sql_now,
};

static int draw(void *user, void *out, size_t len)
{
    struct sql_random *pool = user;
    const struct hf_random *source = hf_random_system();
    if (len > sizeof pool->bytes / 4)
        return source->fill(source->user, out, len);
    hf_lock(&pool->lock);
    int rc = 0;
    if (pool->left < len) {
        rc = source->fill(source->user, pool->bytes, sizeof pool->bytes);
        pool->left = rc == 0 ? sizeof pool->bytes : 0;
    }
    if (rc == 0) {
        pool->left -= len;
        memcpy(out, pool->bytes + pool->left, len);
        memset(pool->bytes + pool->left, 0, len); /* nonces are in it */
    }
    hf_unlock(&pool->lock);
    return rc;
}

int hf_sql_store_new(struct hf_sql *sql, const struct hf_store_options *options,
                     struct hf_store **ret_store, struct hf_err *err)
{
    const struct hf_alloc *alloc = options->alloc;
    struct sql_store *store = alloc->realloc(alloc->user, NULL, sizeof *store);
    if (!store)
        return hf_fail_plain(err, HF_ENOMEM);
    *store = (struct sql_store){
        .handle = { &methods, alloc, options->clock, options->random, { 0 } },
        .sql = sql,
        .plan = hf_plan_of(sql),
    };
    char id[HF_UUID_TEXT];
    uint64_t seq = 0;
    int rc = hf_uuid7(options->clock->wall_ms(options->clock->user), &seq,
                      options->random, id, err);
    if (rc) {
        alloc->free(alloc->user, store);
        return rc;
    }
    hf_lock_init(&store->lock);
    hf_lock_init(&store->random.lock);
    memcpy(store->handle.incarnation, id, sizeof id);
    store->random.handle = (struct hf_random){ &store->random, draw };
    if (options->random == hf_random_system())
        store->handle.random = &store->random.handle;
    *ret_store = &store->handle;
    return 0;
}

/* ---- opening by address ------------------------------------------------------------ */

static bool is_postgres(const char *url)
{
    return url &&
           (hf_starts_with(url, "postgres://") || hf_starts_with(url, "postgresql://"));
}

/* "PATH", "sqlite:PATH", "sqlite::memory:". */
static int path_of(const char *url, const char **ret_path, struct hf_err *err)
{
    static const char scheme[] = "sqlite:";
    const char *path = url;
    if (!url || !url[0])
        return hf_fail(err, HF_EINVAL, "db", "db must name a file");
    if (strlen(url) > 3000)
        return hf_fail(err, HF_ETOOBIG, "db", "db must be at most 3000 bytes");
    if (!hf_utf8_valid(url, strlen(url)))
        return hf_fail(err, HF_EINVAL, "db", "db must be UTF-8");
    bool named = hf_starts_with(url, scheme);
    if (named)
        path += sizeof scheme - 1;
    if (!*path)
        return hf_fail(err, HF_EINVAL, "db", "db must name a file");
    /* SQLite would read it as an address of its own, which may switch its locks off. */
    if (hf_starts_with(path, "file:"))
        return hf_fail(err, HF_EINVAL, "db",
                       "db must be a path: SQLite's file: addresses are not taken");
    char address[HF_CONNINFO_URL];
    if (!named && hf_conninfo_url(url, address))
        return hf_fail(
            err, HF_EINVAL, "db",
            "db is a connection string of PostgreSQL: use %s (sqlite:PATH for a "
            "file of such a name)",
            address);
    /* Not shown: it may hold a password. */
    if (!named && (strstr(url, "://") || hf_starts_with(url, "postgres:") ||
                   hf_starts_with(url, "postgresql:")))
        return hf_fail(err, HF_EINVAL, "db",
                       "db must be a path, sqlite:PATH, sqlite::memory: or postgres://");
    *ret_path = path;
    return 0;
}

int hf_sql_open(const char *url, const struct hf_sql_options *options,
                struct hf_sql **ret_sql, struct hf_err *err)
{
    const char *path = NULL;
    if (is_postgres(url))
        return hf_postgres_open(url, options, ret_sql, err);
    int rc = path_of(url, &path, err);
    return rc ? rc : hf_sqlite_open(path, options, ret_sql, err);
}

int hf_store_open(const char *url, const struct hf_store_options *options,
                  struct hf_store **ret_store, struct hf_err *err)
{
    struct hf_store_options use = { .size = sizeof use };
    struct hf_err why = { 0 };
    if (!url)
        return hf_fail(err, HF_EINVAL, "url", "the address of a store is needed");
    int rc = options ? hf_sized_copy(options, sizeof use, sizeof use, &use, &why) : 0;
    if (rc)
        return hf_fail_as(err, rc, &why);
    if (!use.alloc)
        use.alloc = hf_alloc_system();
    if (!use.clock)
        use.clock = hf_clock_system();
    if (!use.random)
        use.random = hf_random_system();
    struct hf_sql_options driver = {
        .size = sizeof driver,
        .alloc = use.alloc,
        .clock = use.clock,
        .random = use.random,
        .inline_mode = use.inline_mode,
        .must_exist = use.must_exist,
        .busy_ms = use.busy_ms,
        .migrate = use.migrate,
        .read_only = use.read_only,
    };
    struct hf_sql *sql = NULL;
    rc = hf_sql_open(url, &driver, &sql, &why);
    if (rc == 0) {
        rc = hf_sql_store_new(sql, &use, ret_store, &why);
        if (rc)
            sql->methods->close(sql);
    }
    return hf_fail_as(err, rc, &why);
}

const char *hf_store_schema_sql(const char *url)
{
    return is_postgres(url) ? hf_schema_pg : hf_schema_lite;
}
