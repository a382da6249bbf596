/* Opening the store that a command works on, and the caller in whose name it does. */
#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <holdfast/bounds.h>

#include "base/conninfo.h"
#include "base/json_get.h"
#include "base/text.h"

/* ---- which store ------------------------------------------------------------------- */

/* An empty variable counts as unset, as the XDG rules and most shells have it. */
static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static int arena_join(struct cli *cli, const char *folder, const char *rest,
                      char **ret_path)
{
    struct hf_buf path;
    hf_buf_init(&path, hf_alloc_system(), PATH_MAX);
    hf_buf_text(&path, folder);
    hf_buf_text(&path, rest);
    int rc = hf_buf_state(&path);
    char *copy = rc ? NULL : hf_arena_text(&cli->arena, hf_buf_str(&path));
    hf_buf_fini(&path);
    if (rc == HF_ETOOBIG)
        return hf_fail(&cli->err, rc, "--db",
                       "the path of the state folder is too long: name a store with --db "
                       "or HOLDFAST_DB");
    if (!copy)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    *ret_path = copy;
    return 0;
}

/* Makes the folders of the path, for this user alone. */
static int make_folders(struct cli *cli, char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int failed = mkdir(path, 0700) != 0 && errno != EEXIST ? errno : 0;
        if (failed)
            return hf_fail(&cli->err, HF_EREADONLY, "--db",
                           "cannot create the folder %.120s: %s (name a store with --db "
                           "or HOLDFAST_DB)",
                           path, strerror(failed));
        *slash = '/';
    }
    return 0;
}

/* `name` in $XDG_STATE_HOME/holdfast, otherwise in ~/.local/state/holdfast; NULL where
 * neither is known. A relative XDG_STATE_HOME is to be ignored, by its specification. */
static int state_path(struct cli *cli, const char *name, char **ret_path)
{
    const char *state = variable("XDG_STATE_HOME");
    const char *home = variable("HOME");
    char *folder = NULL;
    int rc = 0;
    if (state && state[0] == '/')
        rc = arena_join(cli, state, "/holdfast/", &folder);
    else if (home && home[0] == '/')
        rc = arena_join(cli, home, "/.local/state/holdfast/", &folder);
    if (rc == 0 && folder)
        rc = arena_join(cli, folder, name, &folder);
    if (rc == 0)
        *ret_path = folder;
    return rc;
}

static int default_path(struct cli *cli, char **ret_path)
{
    int rc = state_path(cli, "holdfast.db", ret_path);
    if (rc || *ret_path)
        return rc;
    return hf_fail(
        &cli->err, HF_EINVAL, "--db",
        "no store is named, and HOME is not set: use --db PATH or set HOLDFAST_DB");
}

static bool is_postgres(const char *url)
{
    return strncmp(url, "postgres://", 11) == 0 || strncmp(url, "postgresql://", 13) == 0;
}

/* The file behind a URL, or NULL for one in memory or on a server. */
static const char *file_of(const char *url)
{
    if (is_postgres(url))
        return NULL;
    const char *path = strncmp(url, "sqlite:", 7) == 0 ? url + 7 : url;
    return strcmp(path, ":memory:") == 0 ? NULL : path;
}

static int check_url(struct cli *cli, const char *url)
{
    struct stat at;
    if (is_postgres(url))
        return 0;
    const char *rest = strstr(url, "://"); /* which may hold a password */
    if (rest)
        return hf_fail(&cli->err, HF_EINVAL, "--db",
                       "--db: \"%.*s://...\" is not an address of a store; use a path, "
                       "sqlite:PATH, sqlite::memory: or postgres://...",
                       (int)(rest - url < 60 ? rest - url : 60), url);
    char address[HF_CONNINFO_URL];
    if (strncmp(url, "sqlite:", 7) != 0 && hf_conninfo_url(url, address))
        return hf_fail(&cli->err, HF_EINVAL, "--db",
                       "--db: a connection string of PostgreSQL is written as %s (for a "
                       "file with this name: sqlite:PATH)",
                       address);
    const char *path = file_of(url);
    if (path && !*path)
        return hf_fail(&cli->err, HF_EINVAL, "--db", "--db: the path is empty");
    if (path && (strncmp(path, "file:", 5) == 0 || strncmp(url, "postgres:", 9) == 0 ||
                 strncmp(url, "postgresql:", 11) == 0))
        return hf_fail(
            &cli->err, HF_EINVAL, "--db",
            "--db: this is not an address of a store; use a path (./file:NAME for a file "
            "with this name), sqlite:PATH, sqlite::memory: or postgres://...");
    if (path && stat(path, &at) == 0 && S_ISDIR(at.st_mode))
        return hf_fail(&cli->err, HF_EINVAL, "--db",
                       "--db: %.120s is a folder: name a file in it", path);
    return 0;
}

const char *cli_store_named(const struct cli *cli)
{
    const char *url = cli_text(cli, "db");
    return url ? url : variable("HOLDFAST_DB");
}

static bool never_makes(const struct cli *cli)
{
    return (cli->op->flags & (OP_MUST_EXIST | OP_READS)) != 0;
}

static int choose_store(struct cli *cli, bool make, const char **ret_url)
{
    const char *url = cli_store_named(cli);
    char *path = NULL;
    if (url) {
        *ret_url = url;
        return check_url(cli, url);
    }
    int rc = default_path(cli, &path);
    if (rc == 0 && make && !never_makes(cli))
        rc = make_folders(cli, path);
    if (rc == 0)
        rc = check_url(cli, path);
    if (rc == 0)
        *ret_url = path;
    return rc;
}

int cli_store_url(struct cli *cli, const char **ret_url)
{
    return choose_store(cli, true, ret_url);
}

bool cli_store_absent(struct cli *cli)
{
    const char *url = NULL;
    struct stat at;
    struct hf_err before = cli->err;
    int rc = choose_store(cli, false, &url);
    cli->err = before; /* an address that is none is refused when it is opened */
    const char *path = rc == 0 ? file_of(url) : NULL;
    return path && stat(path, &at) != 0 && errno == ENOENT;
}

static const char check_address[] =
    "check --db and HOLDFAST_DB; the first command that writes, such as `holdfast work "
    "create`, creates a store";

/* A caller that only looks: a mistyped path must not become an empty ledger, in which
 * there is nothing to be seen. */
static int refuse_absent(struct cli *cli, const char *path)
{
    bool named = cli_store_named(cli);
    cli->action = named ? check_address
                        : "run `holdfast work create` or `holdfast run -- CMD`, which "
                          "create it, or name another store with --db or HOLDFAST_DB";
    return hf_fail(&cli->err, HF_ENOTSTORE, "--db", "there is no store at %.180s", path);
}

/* A server's store that is made is said to be, as a file is: its address may be mistyped too. */
static int open_server(struct cli *cli, const char *url, struct hf_store_options *options)
{
    bool makes = !options->must_exist;
    options->must_exist = true;
    options->read_only = (cli->op->flags & OP_READS) != 0; /* SELECT is enough */
    int rc = hf_store_open(url, options, &cli->store, &cli->err);
    if (rc == HF_ENOTSTORE && !makes)
        cli->action = check_address;
    if (rc != HF_ENOTSTORE || !makes)
        return rc;
    struct hf_err absent = cli->err;
    options->must_exist = false;
    rc = hf_store_open(url, options, &cli->store, &cli->err);
    if (rc == 0)
        cli_note(cli, "%s: made one", absent.message);
    return rc;
}

/* A command that reads waits for no writer. A file of an older schema is brought up to date
 * first, as by any other command, unless it cannot be written. */
static int open_file(struct cli *cli, const char *url, struct hf_store_options *options)
{
    options->read_only = (cli->op->flags & OP_READS) && file_of(url);
    int rc = hf_store_open(url, options, &cli->store, &cli->err);
    if (rc != HF_ESCHEMAOLD || !options->read_only)
        return rc;
    struct hf_err old = cli->err;
    options->read_only = false;
    rc = hf_store_open(url, options, &cli->store, &cli->err);
    if (rc != HF_EREADONLY)
        return rc;
    cli->err = old;
    return old.code;
}

static int open_named(struct cli *cli)
{
    const char *url = NULL;
    struct stat at;
    int rc = choose_store(cli, true, &url);
    if (rc)
        return rc;
    const char *path = file_of(url);
    bool absent = path && stat(path, &at) != 0 && errno == ENOENT;
    bool in_memory = !path && !is_postgres(url); /* nothing is left behind */
    if (absent && never_makes(cli))
        return refuse_absent(cli, path);
    struct hf_store_options options = { .size = sizeof(options),
                                        .must_exist = !in_memory && never_makes(cli) };
    if (hf_same(cli->op->name, "migrate"))
        options.migrate = HF_MIGRATE_UPGRADE;
    rc = is_postgres(url) ? open_server(cli, url, &options)
                          : open_file(cli, url, &options);
    cli->read_only = options.read_only;
    if (rc == 0 && absent && stat(path, &at) == 0)
        cli_note(cli, "created the store %s", path);
    return rc;
}

int cli_open_store(struct cli *cli)
{
    bool reads = cli->op->flags & OP_READS;
    if (cli->store && cli->read_only && !reads) { /* of an earlier line that only read */
        hf_store_close(cli->store);
        cli->store = NULL;
    }
    int rc = cli->store ? 0 : open_named(cli);
    cli->call.store = cli->store;
    return rc;
}

/* The store's own id: the same whichever way its address is written. */
static int store_id(struct cli *cli, const char **ret_id)
{
    char *facts = NULL;
    struct json_t *all = NULL;
    int rc = hf_store_facts(cli->store, &facts, &cli->err);
    if (rc)
        return rc;
    struct hf_span text = { facts, strlen(facts) };
    rc = hf_json_parse(text, text.len, "facts", &all, &cli->err);
    const char *id = rc ? NULL : hf_json_as_text(hf_json_member(all, "store_id"));
    *ret_id = id ? hf_arena_text(&cli->arena, id) : NULL;
    if (rc == 0 && !*ret_id)
        rc = hf_fail_plain(&cli->err, HF_ENOMEM);
    hf_json_free(all);
    hf_store_text_free(cli->store, facts);
    return rc;
}

/* Of a server's store: a folder of this user's state, of this machine's processes. NULL
 * where the user has none. */
static int server_locks(struct cli *cli, char **ret_folder)
{
    const char *id = NULL;
    char *folder = NULL;
    int rc = store_id(cli, &id);
    if (rc == 0)
        rc = state_path(cli, "run/", &folder);
    if (rc || !folder) {
        *ret_folder = NULL;
        return rc;
    }
    return arena_join(cli, folder, id, ret_folder);
}

static int file_locks(struct cli *cli, const char *path, struct cli_place *place,
                      char **ret_folder)
{
    char whole[PATH_MAX];
    if (!realpath(path, whole))
        return hf_fail(&cli->err, HF_EINTERNAL, "--db", "%.120s: %s", path,
                       strerror(errno));
    place->url = hf_arena_text(&cli->arena, whole);
    return place->url ? arena_join(cli, whole, "-run", ret_folder)
                      : hf_fail_plain(&cli->err, HF_ENOMEM);
}

/* As cli_store_place; `locks` is NULL where nothing can run under the store. */
static int find_place(struct cli *cli, struct cli_place *ret_place)
{
    const char *url = NULL;
    char *folder = NULL;
    int rc = choose_store(cli, false, &url);
    if (rc)
        return rc;
    const char *path = file_of(url);
    ret_place->url = url;
    if (is_postgres(url))
        rc = server_locks(cli, &folder);
    else if (path)
        rc = file_locks(cli, path, ret_place, &folder);
    ret_place->locks = folder;
    return rc;
}

int cli_store_place(struct cli *cli, struct cli_place *ret_place)
{
    int rc = find_place(cli, ret_place);
    if (rc == 0 && ret_place->locks && is_postgres(ret_place->url))
        rc = make_folders(cli, hf_arena_text(&cli->arena, ret_place->locks));
    if (rc || ret_place->locks)
        return rc;
    return is_postgres(ret_place->url)
               ? hf_fail(
                     &cli->err, HF_EINVAL, "HOME",
                     "commands need a folder for their locks: set HOME or XDG_STATE_HOME")
               : hf_fail(&cli->err, HF_EINVAL, "--db",
                         "--db: a store in memory cannot be shared with a command");
}

int cli_locks(struct op_call *call, const char **ret_folder)
{
    struct cli *cli = (struct cli *)(void *)((char *)call - offsetof(struct cli, call));
    struct cli_place place;
    int rc = find_place(cli, &place);
    if (rc == 0)
        *ret_folder = place.locks;
    return rc;
}

int cli_reaper_new(struct cli *cli, struct hf_reaper **ret_reaper)
{
    struct cli_place place;
    int rc = find_place(cli, &place);
    *ret_reaper = NULL;
    if (rc || !place.locks)
        return rc;
    return hf_reaper_new(cli->store, place.locks, ret_reaper, &cli->err);
}

/* ---- on whose behalf --------------------------------------------------------------- */

/* As the environment has it; a look into the user database would cost more than the rest of
 * the start. */
static const char *user_name(struct cli *cli)
{
    const char *name = variable("USER");
    name = name ? name : variable("LOGNAME");
    if (name)
        return name;
    if (getuid() == 0)
        return "root";
    char *number = hf_arena_take(&cli->arena, 24);
    if (number)
        (void)snprintf(number, 24, "uid-%u", (unsigned)getuid());
    return number ? number : "unknown";
}

/* "KIND:NAME"; the library knows the kinds. */
static int split_actor(struct cli *cli, const char *actor, struct hf_caller *who)
{
    const char *colon = strchr(actor, ':');
    if (!colon || colon == actor || !colon[1])
        return hf_fail(&cli->err, HF_EINVAL, "actor",
                       "%sactor must be KIND:NAME, as in human:ann, not \"%.60s\"",
                       cli->call.dashes ? "--" : "", actor);
    char *kind = hf_arena_copy(&cli->arena, actor, (size_t)(colon - actor));
    if (!kind)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    who->actor_kind = kind;
    who->actor = colon + 1;
    return 0;
}

struct cli_caller cli_caller_given(const struct cli *cli)
{
    return (struct cli_caller){ .tenant = cli_text(cli, "tenant"),
                                .actor = cli_text(cli, "actor"),
                                .operation_id = cli_text(cli, "operation-id"),
                                .correlation_id = cli_text(cli, "correlation-id") };
}

int cli_set_caller(struct cli *cli, const struct cli_caller *given, const char *owner,
                   struct hf_caller *ret_who)
{
    const char *actor = given->actor ? given->actor : variable("HOLDFAST_ACTOR");
    const char *kind = cli->op->actor_kind;
    *ret_who = (struct hf_caller){ .size = sizeof(*ret_who),
                                   .tenant = given->tenant,
                                   .operation_id = given->operation_id,
                                   .correlation_id = given->correlation_id };
    if (actor)
        return split_actor(cli, actor, ret_who);
    if (!kind)
        return 0;
    /* A worker goes by the owner that it names, where it names one. */
    bool as_owner = owner && strcmp(kind, "worker") == 0;
    ret_who->actor_kind = kind;
    ret_who->actor = as_owner ? owner : user_name(cli);
    return as_owner ? hf_check_key(owner, HF_MAX_KEY_BYTES, "owner", &cli->err) : 0;
}
