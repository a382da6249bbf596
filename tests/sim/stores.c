/* See stores.h. */
#include "sim/stores.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/monitor.h>

#include "base/err.h"
#include "db/lite/lite.h"
#include "model/model.h"
#include "sim/disk.h"
#include "sim/plants.h"
#include "store/schema.h"
#include "store/store.h"

/* ---- the reference model --------------------------------------------------------- */

static struct model_disk *model;

static int model_again(void *user, const struct hf_store_options *options,
                       const struct hf_sim_hooks *hooks, struct hf_store **ret_store,
                       struct hf_err *err)
{
    (void)user;
    (void)hooks;
    return model_open(model, options, ret_store, err);
}

static int model_first(void *user, const struct hf_store_options *options,
                       const struct hf_sim_hooks *hooks, struct hf_store **ret_store,
                       struct hf_err *err)
{
    model = model_disk_new();
    return model ? model_again(user, options, hooks, ret_store, err) : HF_ENOMEM;
}

static void model_discard(void *user)
{
    (void)user;
    model_disk_free(model);
    model = NULL;
}

static const struct hf_sim_factory over_model = {
    .size = sizeof(struct hf_sim_factory),
    .name = "model",
    .look_every = 1,
    .open = model_first,
    .again = model_again,
    .discard = model_discard,
};

/* ---- SQLite, with the simulator between the verbs and the driver ----------------- */

/* For the next transaction that writes. */
static struct disk_fault next_fault;
static uint64_t next_chance;

/* The driver of the handle that was opened last; groups are made on it. */
static struct lite *driver_in_use;

struct between {
    struct hf_sql sql; /* first */
    struct hf_sql *real;
    const struct hf_sim_hooks *hooks;
};

static struct hf_sql *real_of(struct hf_sql *sql)
{
    return ((struct between *)sql)->real;
}

static int between_run(struct hf_sql *sql, struct hf_batch *batch, struct hf_err *err)
{
    struct between *b = (struct between *)sql;
    bool writes = !batch->read_only;
    int rc = b->hooks->before(b->hooks->user, writes);
    if (rc)
        return hf_fail_plain(err, rc);
    bool strikes = writes && next_fault.at;
    if (strikes) {
        disk_set_fault(next_fault, next_chance);
        next_fault.at = 0;
    }
    rc = b->real->methods->run(b->real, batch, err);
    if (strikes)
        disk_set_fault((struct disk_fault){ 0 }, 0);
    if (strikes && disk_is_cut()) {
        b->hooks->power_failed(b->hooks->user);
        return hf_fail_plain(err, HF_EUNCERTAIN);
    }
    int lie = rc ? 0 : b->hooks->after(b->hooks->user, writes);
    return lie ? hf_fail_plain(err, lie) : rc;
}

static void between_forget(struct hf_sql *sql, struct hf_batch *batch)
{
    real_of(sql)->methods->forget(real_of(sql), batch);
}

static uint32_t between_seen(struct hf_sql *sql, uint32_t topic)
{
    return real_of(sql)->methods->bell_seen(real_of(sql), topic);
}

static bool between_wait(struct hf_sql *sql, uint32_t topic, uint32_t seen, hf_ms ms)
{
    return real_of(sql)->methods->bell_wait(real_of(sql), topic, seen, ms);
}

static void between_ring(struct hf_sql *sql, uint32_t topic, uint32_t count)
{
    real_of(sql)->methods->bell_ring(real_of(sql), topic, count);
}

static int between_facts(struct hf_sql *sql, struct hf_span *ret_json, struct hf_err *err)
{
    return real_of(sql)->methods->facts(real_of(sql), ret_json, err);
}

static void between_close(struct hf_sql *sql)
{
    if (driver_in_use == lite_of(real_of(sql)))
        driver_in_use = NULL;
    real_of(sql)->methods->close(real_of(sql));
    free(sql);
}

static const struct hf_sql_methods between_methods = {
    .name = "sqlite", /* as what is under it: the store asks what it can */
    .run = between_run,
    .forget = between_forget,
    .bell_seen = between_seen,
    .bell_wait = between_wait,
    .bell_ring = between_ring,
    .facts = between_facts,
    .close = between_close,
};

const struct sim_plant *sim_planted(void)
{
    return hf_planted ? &sim_plants[hf_planted - 1] : NULL;
}

static void plant_in_schema(struct lite *lite)
{
    const struct sim_plant *plant = sim_planted();
    if (plant && plant->schema &&
        sqlite3_exec(lite->writer.db, plant->schema, NULL, NULL, NULL) != SQLITE_OK)
        abort();
}

/* The ledger's schema; with a plant, those statements of SQLite have the mistake in them. */
static const struct db_schema *planted_schema(void)
{
    static struct hf_sql_text texts[HF_SQL_COUNT];
    static struct db_schema planted;
    const struct sim_plant *plant = sim_planted();
    if (!plant)
        return &hf_ledger_schema;
    memcpy(texts, hf_sql_lite, sizeof(texts));
    for (const struct sim_statement *s = plant->statements; s->name; s++) {
        for (size_t i = 0; i < HF_SQL_COUNT; i++) {
            if (strcmp(texts[i].name, s->name) == 0)
                texts[i].text = s->text;
        }
    }
    planted = hf_ledger_schema;
    planted.lite = texts;
    return &planted;
}

static int open_path(const char *path, const char *vfs,
                     const struct hf_store_options *options,
                     const struct hf_sim_hooks *hooks, struct hf_store **ret_store,
                     struct hf_err *err)
{
    const struct lite_under under = { planted_schema(), vfs };
    struct hf_sql_options driver = {
        .size = sizeof(driver),
        .alloc = options->alloc,
        .clock = options->clock,
        .random = options->random,
        .inline_mode = true,
    };
    struct between *b = calloc(1, sizeof(*b));
    if (!b)
        return hf_fail_plain(err, HF_ENOMEM);
    b->sql.methods = &between_methods;
    b->hooks = hooks;
    int rc = lite_open(path, &driver, &under, &b->real, err);
    if (rc) {
        free(b);
        return rc;
    }
    driver_in_use = lite_of(b->real);
    plant_in_schema(driver_in_use);
    rc = hf_sql_store_new(&b->sql, options, ret_store, err);
    if (rc)
        between_close(&b->sql);
    return rc;
}

/* ---- processes ------------------------------------------------------------------- */

static int spawn(void *user)
{
    (void)user;
    pid_t pid = fork();
    if (pid != 0)
        return pid > 0 ? (int)pid : 0;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        (void)pause();
}

static void end(void *user, int pid)
{
    int status = 0;
    (void)user;
    (void)kill((pid_t)pid, SIGKILL);
    (void)waitpid((pid_t)pid, &status, 0);
}

/* ---- a monitor that keeps running ------------------------------------------------- */

static int monitor(void *user, struct hf_store *store, hf_ms *io_since,
                   struct hf_err *err)
{
    struct hf_monitor_witness witness = { .since = *io_since };
    struct hf_monitor_plan plan = { .size = sizeof(plan), .witness = &witness };
    struct hf_monitor_report report;
    struct hf_caller who = { .size = sizeof(who), .actor_kind = "system" };
    (void)user;
    who.actor = "monitor";
    int rc = hf_monitor_pass(store, &who, &plan, &report, err);
    *io_since = witness.since;
    return rc;
}

/* ---- groups: several batches in one transaction, one of them perhaps refused ----- */

#define MEMBERS 4
#define KEYS 256

struct group {
    struct hf_batch batches[MEMBERS];
    struct hf_call calls[MEMBERS][3];
    struct hf_val args[MEMBERS][5];
    struct hf_val meta[MEMBERS][6];
    struct db_member members[MEMBERS];
    char keys[MEMBERS][24];
};

/* Rows that a member was told of since the store was made. */
static char kept_keys[KEYS][24];
static size_t kept_count;
static unsigned key_count;

/* One session; and, to be refused after that was done, the same once more. */
static void fill_member(struct group *g, int i, bool refused)
{
    int len = snprintf(g->keys[i], sizeof(g->keys[i]), "group-%u", key_count++);
    g->args[i][0] =
        (struct hf_val){ .type = HF_VAL_TEXT, .at = g->keys[i], .len = (size_t)len };
    static const uint8_t chain[32];
    for (int k = 1; k < 4; k++) /* tenant, agent, config */
        g->args[i][k] = (struct hf_val){ .type = HF_VAL_TEXT, .at = "" };
    g->args[i][4] = (struct hf_val){ .type = HF_VAL_BYTES, .at = chain, .len = 32 };
    memset(g->meta[i], 0, sizeof(g->meta[i])); /* no parent, cause, labels */
    g->meta[i][0] = g->args[i][0];
    g->meta[i][1] = (struct hf_val){ .type = HF_VAL_TEXT, .at = "root", .len = 4 };
    g->meta[i][5] = g->args[i][4];
    for (int k = 0; k < 3; k++)
        g->calls[i][k] = (struct hf_call){ .statement = HF_SQL_SESSION_INSERT,
                                           .width = 5,
                                           .rows = 1,
                                           .args = g->args[i],
                                           .expect = 1 };
    g->calls[i][1] = (struct hf_call){ .statement = HF_SQL_SESSION_INSERT_META,
                                       .width = 6,
                                       .rows = 1,
                                       .args = g->meta[i],
                                       .expect = 1 };
    g->batches[i] = (struct hf_batch){ .alloc = hf_alloc_system(),
                                       .calls = g->calls[i],
                                       .call_count = refused ? 3 : 2 };
    g->members[i] = (struct db_member){ .batch = &g->batches[i] };
}

static bool is_there(const char *key)
{
    struct hf_val arg = { .type = HF_VAL_TEXT, .at = key, .len = strlen(key) };
    struct hf_call call = { .statement = HF_SQL_LEASE_READ_SESSION,
                            .width = 1,
                            .rows = 1,
                            .args = &arg,
                            .expect = HF_ANY_COUNT };
    struct hf_batch batch = {
        .alloc = hf_alloc_system(), .calls = &call, .call_count = 1, .read_only = true
    };
    struct hf_sql *sql = &driver_in_use->sql;
    bool there = sql->methods->run(sql, &batch, NULL) == 0 && call.out_count == 1;
    sql->methods->forget(sql, &batch);
    return there;
}

static const char *judge_group(struct group *g, int count)
{
    for (int i = 0; i < count; i++) {
        bool there = is_there(g->keys[i]);
        if (g->members[i].rc == 0 && !there)
            return "a member of a group was told that it is done, and is not there";
        if (g->members[i].rc && g->members[i].rc != HF_EUNCERTAIN && there)
            return "a member of a group was refused, and is there";
        if (there && kept_count < KEYS)
            memcpy(kept_keys[kept_count++], g->keys[i], sizeof(g->keys[i]));
    }
    return NULL;
}

static const char *act_in_group(uint64_t chance)
{
    struct group g;
    struct db_member *members[MEMBERS];
    int count = 2 + (int)(chance % 3);
    int refused = (int)(chance / 3 % 5); /* none where it is not below count */
    if (!driver_in_use)
        return NULL;
    for (int i = 0; i < count; i++) {
        fill_member(&g, i, i == refused);
        members[i] = &g.members[i];
    }
    if (lite_group_enter(driver_in_use, NULL))
        return NULL;
    lite_txn_run(driver_in_use, members, (size_t)count);
    lite_group_leave(driver_in_use);
    const char *wrong = judge_group(&g, count);
    for (int i = 0; i < count; i++)
        driver_in_use->sql.methods->forget(&driver_in_use->sql, &g.batches[i]);
    return wrong;
}

static const char *sqlite_extra(void *user, uint64_t chance)
{
    (void)user;
    for (size_t i = 0; driver_in_use && i < kept_count; i++) {
        if (!is_there(kept_keys[i]))
            return "a row of a group that was there is lost";
    }
    return act_in_group(chance);
}

static void forget_groups(void)
{
    kept_count = 0;
    key_count = 0;
    next_fault.at = 0;
}

static int memory_first(void *user, const struct hf_store_options *options,
                        const struct hf_sim_hooks *hooks, struct hf_store **ret_store,
                        struct hf_err *err)
{
    (void)user;
    forget_groups();
    return open_path(":memory:", NULL, options, hooks, ret_store, err);
}

static const struct hf_sim_factory over_sqlite = {
    .size = sizeof(struct hf_sim_factory),
    .name = "sqlite",
    .hooked = true,
    .whole = true,
    .memory = true,
    .look_every = 6,
    .open = memory_first,
    .monitor = monitor,
    .extra = sqlite_extra,
    .spawn = spawn,
    .kill = end,
};

/* ---- SQLite on a disk whose power fails ------------------------------------------ */

#define DISK "holdfast-sim"

static char folder[64];
static char disk_path[80];

static void remove_files(void)
{
    char side[96];
    (void)snprintf(side, sizeof(side), "%s-hf", disk_path);
    (void)unlink(disk_path);
    (void)unlink(side);
}

static void remove_folder(void)
{
    remove_files();
    (void)rmdir(folder);
}

/* Where the sidecar is a real file; the database is in memory. */
static bool have_folder(void)
{
    if (folder[0])
        return true;
    bool shm = access("/dev/shm", W_OK) == 0;
    (void)snprintf(folder, sizeof(folder), "%s/holdfast-sim-XXXXXX",
                   shm ? "/dev/shm" : "/tmp");
    if (!mkdtemp(folder)) {
        folder[0] = '\0';
        return false;
    }
    (void)snprintf(disk_path, sizeof(disk_path), "%s/db", folder);
    (void)atexit(remove_folder);
    return disk_register(DISK) == SQLITE_OK;
}

static int disk_again(void *user, const struct hf_store_options *options,
                      const struct hf_sim_hooks *hooks, struct hf_store **ret_store,
                      struct hf_err *err)
{
    (void)user;
    return open_path(disk_path, DISK, options, hooks, ret_store, err);
}

static int disk_first(void *user, const struct hf_store_options *options,
                      const struct hf_sim_hooks *hooks, struct hf_store **ret_store,
                      struct hf_err *err)
{
    if (!have_folder())
        return hf_fail(err, HF_ESTOREIO, NULL, "no folder for the sidecar");
    unsigned char device = 0;
    int rc = options->random->fill(options->random->user, &device, 1);
    if (rc)
        return rc;
    remove_files();
    disk_format(device);
    forget_groups();
    return disk_again(user, options, hooks, ret_store, err);
}

static void disk_discard(void *user)
{
    (void)user;
    remove_files();
    disk_format(0);
}

static bool disk_power(void *user, uint64_t chance)
{
    (void)user;
    next_chance = chance;
    if (chance % 3 == 0) {
        disk_cut(chance);
        return true;
    }
    next_fault = (struct disk_fault){ .at = 1 + (int64_t)(chance / 3 % 24),
                                      .is_power = true };
    return false;
}

static const char *disk_extra(void *user, uint64_t chance)
{
    static const int codes[] = { SQLITE_IOERR_WRITE, SQLITE_IOERR_FSYNC, SQLITE_FULL };
    if (chance % 2)
        return sqlite_extra(user, chance / 2);
    if (!next_fault.at) /* one I/O of the next transaction that writes fails */
        next_fault = (struct disk_fault){ .at = 1 + (int64_t)(chance / 2 % 24),
                                          .code = codes[chance / 64 % 3] };
    return NULL;
}

static const struct hf_sim_factory over_disk = {
    .size = sizeof(struct hf_sim_factory),
    .name = "disk",
    .hooked = true,
    .whole = true,
    .memory = true,
    .look_every = 6,
    .open = disk_first,
    .again = disk_again,
    .discard = disk_discard,
    .power = disk_power,
    .monitor = monitor,
    .extra = disk_extra,
};

const struct hf_sim_factory *sim_store(const char *name)
{
    static const struct hf_sim_factory *const all[] = { &over_model, &over_sqlite,
                                                        &over_disk };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    }
    return NULL;
}
