/* Configuration files, read by one table of keys. */
#include <stddef.h>
#include <string.h>

#include <holdfast/config.h>
#include <holdfast/limits.h>

#include "agent/check.h"
#include "agent/wire/codec.h"
#include "base/err.h"
#include "base/near.h"
#include "base/text.h"
#include "base/toml.h"

#define KEY_SOURCES                                                                      \
    4 /* file, environment, command, credential: as enum hf_secret_source */

struct provider {
    const char *name;
    struct hf_endpoint endpoint;
    struct hf_http_config http;
    const char *key_from[KEY_SOURCES]; /* at most one */
    const char *key_text;              /* of it, for people */
    struct hf_secret *key;             /* once it has been read */
    struct provider *next;
};

struct model {
    const char *name;
    const char *provider;
    struct hf_model_config config;
    struct hf_toml_value options[HF_OPTION_COUNT]; /* line 0: not given */
    struct model *next;
};

struct hf_config {
    struct hf_arena arena; /* the configuration is in it */
    struct provider *providers;
    struct model *models;
};

/* ---- the keys ----------------------------------------------------------------------- */

enum field { TEXT, COUNT, FLAG, DURATION, OMIT, OPTION };

/* P and M: name, field, type, needed, member, meaning. O: name, type, option, meaning. */
#define PROVIDER_KEYS(P)                                                                 \
    P("kind", TEXT, "string", true, endpoint.kind, "openai-chat or anthropic-messages")  \
    P("base_url", TEXT, "string", true, endpoint.base_url,                               \
      "what comes before /chat/completions or /v1/messages")                             \
    P("key_file", TEXT, "string", false, key_from[HF_SECRET_FILE],                       \
      "the key is in this file, which only its owner may read")                          \
    P("key_env", TEXT, "string", false, key_from[HF_SECRET_ENV],                         \
      "the key is in this variable of the environment")                                  \
    P("key_command", TEXT, "string", false, key_from[HF_SECRET_COMMAND],                 \
      "this command prints the key; it is run without a shell")                          \
    P("key_credential", TEXT, "string", false, key_from[HF_SECRET_CREDENTIAL],           \
      "the key is this credential of systemd")                                           \
    P("ca_file", TEXT, "string", false, http.ca_file,                                    \
      "certificates to trust instead of the system's")                                   \
    P("start_timeout", DURATION, "duration", false, http.start_ms,                       \
      "until the head of a response (120s)")                                             \
    P("gap_timeout", DURATION, "duration", false, http.gap_ms,                           \
      "between two pieces of a response (120s)")                                         \
    P("whole_timeout", DURATION, "duration", false, http.whole_ms,                       \
      "for a whole call (300s); \"none\": no limit")                                     \
    P("token_field", TEXT, "string", false, endpoint.token_field,                        \
      "openai-chat: the name of the output cap (max_tokens)")                            \
    P("omit", OMIT, "array", false, endpoint.omit,                                       \
      "options that the endpoint does not have")                                         \
    P("no_stream_usage", FLAG, "boolean", false, endpoint.no_stream_usage,               \
      "openai-chat: the endpoint refuses stream_options (false)")                        \
    P("max_tokens", COUNT, "integer", false, endpoint.max_tokens,                        \
      "anthropic-messages: the cap of requests without one (32768)")

#define MODEL_KEYS(M, O)                                                                 \
    M("provider", TEXT, "string", true, provider, "the NAME of a [provider.NAME]")       \
    M("id", TEXT, "string", false, config.id,                                            \
      "as the endpoint names the model (the name of the table)")                         \
    M("context_tokens", COUNT, "integer", true, config.context_tokens,                   \
      "what fits into a request and its answer")                                         \
    M("output_tokens", COUNT, "integer", true, config.output_tokens,                     \
      "the most of an answer; below context_tokens")                                     \
    M("route", TEXT, "string", false, config.route,                                      \
      "where opaque data of this model may go back to (PROVIDER/ID)")                    \
    O("max_output_tokens", "integer", MAX_OUTPUT_TOKENS,                                 \
      "the cap of one request (output_tokens)")                                          \
    O("temperature", "number", TEMPERATURE, "0 or above")                                \
    O("seed", "integer", SEED, "for endpoints that take one")                            \
    O("stop", "array", STOP, "1 to 16 texts at which the model is to stop")              \
    O("reasoning", "string", REASONING, "none, minimal, low, medium or high")            \
    O("parallel_tools", "boolean", PARALLEL_TOOLS,                                       \
      "whether several tools may be called at once")                                     \
    O("stream", "boolean", STREAM, "whether the answer comes as a stream (true)")

#define P(name, field, type, needed, member, what)                                       \
    { "provider", (name), (type), (needed), (what) },
#define M(name, field, type, needed, member, what)                                       \
    { "model", (name), (type), (needed), (what) },
#define O(name, type, option, what) { "model", (name), (type), false, (what) },
static const struct hf_config_key keys[] = { PROVIDER_KEYS(P) MODEL_KEYS(M, O) };
#undef P
#undef M
#undef O

/* Where the value of each key goes. */
#define P(name, field, type, needed, member, what)                                       \
    { field, offsetof(struct provider, member) },
#define M(name, field, type, needed, member, what)                                       \
    { field, offsetof(struct model, member) },
#define O(name, type, option, what)                                                      \
    { OPTION, offsetof(struct model, options) +                                          \
                  HF_OPTION_##option * sizeof(struct hf_toml_value) },
static const struct {
    enum field field;
    size_t offset;
} places[] = { PROVIDER_KEYS(P) MODEL_KEYS(M, O) };
#undef P
#undef M
#undef O

#define KEY_COUNT (sizeof(keys) / sizeof(keys[0]))

static const char *const table_words[] = {
#define X(name, word) #word,
    HF_CONFIG_TABLES(X)
#undef X
};

const struct hf_config_key *hf_config_keys(size_t *ret_count)
{
    *ret_count = KEY_COUNT;
    return keys;
}

/* ---- one table ---------------------------------------------------------------------- */

/* A table of the file, and the struct that its values go to. */
struct reading {
    struct hf_config *config;
    const struct hf_toml_table *table;
    void *into;
    struct hf_err *err;
};

static int fail_at(const struct reading *reading, int line, const char *what)
{
    const struct hf_toml_table *table = reading->table;
    return hf_fail(reading->err, HF_EINVAL, "config", "line %d: [%s.%.60s]: %s", line,
                   table->path[0], table->path[1], what);
}

/* `what` with the name of a key, a kind or an option in it. */
static int fail_word(const struct reading *reading, int line, const char *what,
                     const char *word)
{
    struct hf_err said = { 0 };
    (void)hf_fail(&said, HF_EINVAL, NULL, "%s %.60s", what, word);
    return fail_at(reading, line, said.message);
}

static int fail_type(const struct reading *reading, int line, const char *key,
                     enum hf_toml_type type)
{
    struct hf_err said = { 0 };
    (void)hf_fail(&said, HF_EINVAL, NULL, "%s must be %s", key, hf_toml_type_name(type));
    return fail_at(reading, line, said.message);
}

/* An unknown word, and the nearest known one. */
static int fail_unknown(const struct reading *reading, int line, const char *what,
                        const struct hf_near *near)
{
    struct hf_err said = { 0 };
    (void)hf_fail(&said, HF_EINVAL, NULL,
                  near->best ? "unknown %s %.60s; did you mean %s?"
                             : "unknown %s %.60s%s (`holdfast config keys` lists them)",
                  what, near->typed, near->best ? near->best : "");
    return fail_at(reading, line, said.message);
}

static int read_duration(const struct reading *reading, const char *key,
                         const struct hf_toml_value *value, hf_ms *ret_ms)
{
    bool unlimited = hf_same(key, "whole_timeout") && hf_same(value->text, "none");
    if (unlimited)
        *ret_ms = -1;
    else if (hf_parse_duration(value->text, key, ret_ms, NULL) || *ret_ms <= 0)
        return fail_word(reading, value->line, "a duration such as \"90s\" is needed for",
                         key);
    return 0;
}

static int read_omit(const struct reading *reading, const struct hf_toml_value *value,
                     uint32_t *ret_bits)
{
    for (const struct hf_toml_value *item = value->items; item; item = item->next) {
        struct hf_near near;
        int option = 0;
        if (item->type != HF_TOML_STRING)
            return fail_at(reading, item->line, "the items of omit are strings");
        hf_near_begin(&near, item->text);
        for (; option < HF_OPTION_COUNT; option++) {
            const char *name = hf_model_option_name((enum hf_model_option)option);
            if (hf_same(name, item->text))
                break;
            hf_near_try(&near, name);
        }
        if (option == HF_OPTION_COUNT)
            return fail_unknown(reading, item->line, "option", &near);
        *ret_bits |= 1u << option;
    }
    return 0;
}

static int read_value(const struct reading *reading, size_t i,
                      const struct hf_toml_value *value)
{
    static const enum hf_toml_type types[] = {
        [TEXT] = HF_TOML_STRING,     [COUNT] = HF_TOML_INTEGER, [FLAG] = HF_TOML_BOOLEAN,
        [DURATION] = HF_TOML_STRING, [OMIT] = HF_TOML_ARRAY,
    };
    enum field field = places[i].field;
    const char *name = keys[i].name;
    void *place = (char *)reading->into + places[i].offset;
    if (field == OPTION) {
        *(struct hf_toml_value *)place = *value; /* the reader of options checks it */
        return 0;
    }
    if (value->type != types[field])
        return fail_type(reading, value->line, name, types[field]);
    switch (field) {
    case TEXT: *(const char **)place = value->text; break;
    case COUNT: *(int64_t *)place = value->integer; break;
    case FLAG: *(bool *)place = value->integer != 0; break;
    case DURATION: return read_duration(reading, name, value, place);
    case OMIT: return read_omit(reading, value, place);
    case OPTION: break;
    }
    return 0;
}

static int read_pair(const struct reading *reading, const struct hf_toml_pair *pair)
{
    struct hf_near near;
    hf_near_begin(&near, pair->key);
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (!hf_same(keys[i].table, reading->table->path[0]))
            continue;
        if (hf_same(keys[i].name, pair->key))
            return read_value(reading, i, &pair->value);
        hf_near_try(&near, keys[i].name);
    }
    return fail_unknown(reading, pair->value.line, "key", &near);
}

static bool has_pair(const struct hf_toml_table *table, const char *key)
{
    const struct hf_toml_pair *pair = table->pairs;
    while (pair && !hf_same(pair->key, key))
        pair = pair->next;
    return pair != NULL;
}

static int read_pairs(const struct reading *reading)
{
    int rc = 0;
    for (const struct hf_toml_pair *p = reading->table->pairs; p && rc == 0; p = p->next)
        rc = read_pair(reading, p);
    for (size_t i = 0; i < KEY_COUNT && rc == 0; i++)
        if (keys[i].needed && hf_same(keys[i].table, reading->table->path[0]) &&
            !has_pair(reading->table, keys[i].name))
            rc = fail_word(reading, reading->table->line, "this table needs the key",
                           keys[i].name);
    return rc;
}

/* ---- providers and models ----------------------------------------------------------- */

/* "env OPENAI_KEY": how people are told where a key is. */
static int name_source(const struct reading *reading, struct provider *provider)
{
    static const char *const words[] = { "file ", "env ", "command ", "credential " };
    struct hf_arena *arena = &reading->config->arena;
    provider->key_text = "none";
    int count = 0;
    for (int i = 0; i < KEY_SOURCES; i++)
        if (provider->key_from[i]) {
            provider->key_text = hf_arena_join(arena, words[i], provider->key_from[i]);
            count++;
        }
    if (count > 1)
        return fail_at(reading, reading->table->line,
                       "a provider has one key: keep one of key_file, key_env, "
                       "key_command and key_credential");
    return provider->key_text ? 0 : hf_fail_plain(reading->err, HF_ENOMEM);
}

static int read_provider(struct reading *reading)
{
    struct provider **tail = &reading->config->providers;
    struct provider *provider = hf_arena_new(&reading->config->arena, struct provider);
    struct hf_err why = { 0 };
    if (!provider)
        return hf_fail_plain(reading->err, HF_ENOMEM);
    provider->name = reading->table->path[1];
    provider->http.size = sizeof(provider->http);
    provider->endpoint.size = sizeof(provider->endpoint);
    provider->endpoint.name = provider->name;
    reading->into = provider;
    int rc = read_pairs(reading);
    if (rc == 0 && hf_endpoint_check(&provider->endpoint, &why))
        rc = fail_at(reading, reading->table->line, why.message);
    if (rc == 0)
        rc = name_source(reading, provider);
    while (*tail)
        tail = &(*tail)->next;
    *tail = provider;
    return rc;
}

static void put_value(struct hf_json *json, const struct hf_toml_value *value)
{
    if (value->type == HF_TOML_STRING)
        hf_json_str(json, value->text);
    else
        hf_json_raw(json, value->text);
}

/* The options as the JSON that hf_model_new takes. */
static int write_options(const struct reading *reading, struct model *model)
{
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, reading->config->arena.alloc, (size_t)HF_MAX_CONFIG_BYTES);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    for (int i = 0; i < HF_OPTION_COUNT; i++) {
        const struct hf_toml_value *value = &model->options[i];
        if (value->line == 0)
            continue;
        hf_json_key(&json, hf_model_option_name((enum hf_model_option)i));
        if (value->type != HF_TOML_ARRAY) {
            put_value(&json, value);
            continue;
        }
        hf_json_array(&json);
        for (const struct hf_toml_value *item = value->items; item; item = item->next)
            put_value(&json, item);
        hf_json_end(&json);
    }
    hf_json_end(&json);
    size_t len = text.len;
    char *kept = hf_buf_keep(&text, &reading->config->arena);
    model->config.options = (struct hf_span){ kept, len };
    return kept ? 0 : hf_fail_plain(reading->err, HF_ENOMEM);
}

static int read_model(struct reading *reading)
{
    struct model **tail = &reading->config->models;
    struct model *model = hf_arena_new(&reading->config->arena, struct model);
    struct hf_err why = { 0 };
    if (!model)
        return hf_fail_plain(reading->err, HF_ENOMEM);
    model->name = reading->table->path[1];
    model->config.size = sizeof(model->config);
    model->config.id = model->name;
    reading->into = model;
    int rc = read_pairs(reading);
    if (rc == 0)
        rc = write_options(reading, model);
    if (rc == 0 && hf_model_check(&model->config, &why))
        rc = fail_at(reading, reading->table->line, why.message);
    while (*tail)
        tail = &(*tail)->next;
    *tail = model;
    return rc;
}

static struct provider *find_provider(const struct hf_config *config, const char *name)
{
    struct provider *provider = config->providers;
    while (provider && !hf_same(provider->name, name))
        provider = provider->next;
    return provider;
}

/* ---- the file ----------------------------------------------------------------------- */

/* Models may be before their providers, so this waits until all tables were read. */
static int check_links(const struct hf_config *config, struct hf_err *err)
{
    for (const struct model *model = config->models; model; model = model->next) {
        struct hf_near near;
        if (find_provider(config, model->provider))
            continue;
        hf_near_begin(&near, model->provider);
        for (const struct provider *p = config->providers; p; p = p->next)
            hf_near_try(&near, p->name);
        return hf_fail(err, HF_EINVAL, "config",
                       near.best ? "[model.%.60s]: there is no [provider.%.60s]; did you "
                                   "mean %.60s?"
                                 : "[model.%.60s]: there is no [provider.%.60s]%s",
                       model->name, model->provider, near.best ? near.best : "");
    }
    return 0;
}

static int read_table(struct hf_config *config, const struct hf_toml_table *table,
                      struct hf_err *err)
{
    struct reading reading = { config, table, NULL, err };
    struct hf_near near;
    hf_near_begin(&near, table->path[0]);
    for (int i = 0; i < HF_CONFIG_TABLE_COUNT; i++) {
        hf_near_try(&near, table_words[i]);
        if (!hf_same(table->path[0], table_words[i]))
            continue;
        if (table->depth < HF_TOML_DEPTH)
            return hf_fail(err, HF_EINVAL, "config",
                           "line %d: write [%s.NAME]: a table of this kind has a name",
                           table->line, table_words[i]);
        return i == HF_CONFIG_PROVIDER ? read_provider(&reading) : read_model(&reading);
    }
    return hf_fail(err, HF_EINVAL, "config",
                   near.best
                       ? "line %d: unknown table [%.60s]; did you mean [%s.NAME]?"
                       : "line %d: unknown table [%.60s]; there are [provider.NAME] "
                         "and [model.NAME]%s",
                   table->line, table->path[0], near.best ? near.best : "");
}

static int read_tables(struct hf_config *config, struct hf_span text, struct hf_err *err)
{
    const struct hf_toml_table *table = NULL;
    int rc = hf_toml_read(&config->arena, text, &table, err);
    if (rc)
        return rc;
    if (table->pairs)
        return hf_fail(err, HF_EINVAL, "config",
                       "line %d: the key %.60s is in no table; write it below a "
                       "[provider.NAME] or [model.NAME]",
                       table->pairs->value.line, table->pairs->key);
    for (table = table->next; table && rc == 0; table = table->next)
        rc = read_table(config, table, err);
    return rc ? rc : check_links(config, err);
}

int hf_config_read(struct hf_span text, struct hf_config **ret_config, struct hf_err *err)
{
    struct hf_arena arena;
    if (text.len > (size_t)HF_MAX_CONFIG_BYTES)
        return hf_fail(err, HF_ETOOBIG, "config",
                       "a configuration has at most %lld bytes",
                       (long long)HF_MAX_CONFIG_BYTES);
    hf_arena_init(&arena, hf_alloc_system());
    struct hf_config *config = hf_arena_new(&arena, struct hf_config);
    if (!config)
        return hf_fail_plain(err, HF_ENOMEM);
    config->arena = arena;
    int rc = read_tables(config, text, err);
    if (rc)
        hf_config_free(config);
    else
        *ret_config = config;
    return rc;
}

void hf_config_free(struct hf_config *config)
{
    if (!config)
        return;
    for (struct provider *p = config->providers; p; p = p->next)
        hf_secret_free(p->key);
    struct hf_arena arena = config->arena;
    hf_arena_fini(&arena);
}

const char *hf_config_name(const struct hf_config *config, enum hf_config_table table,
                           size_t i)
{
    if (table == HF_CONFIG_PROVIDER) {
        const struct provider *provider = config->providers;
        for (; provider && i > 0; i--)
            provider = provider->next;
        return provider ? provider->name : NULL;
    }
    const struct model *model = config->models;
    for (; model && i > 0; i--)
        model = model->next;
    return model ? model->name : NULL;
}

static int no_such(const struct hf_config *config, enum hf_config_table table,
                   const char *name, struct hf_err *err)
{
    struct hf_near near;
    const char *other = NULL;
    hf_near_begin(&near, name);
    for (size_t i = 0; (other = hf_config_name(config, table, i)); i++)
        hf_near_try(&near, other);
    return hf_fail(err, HF_ENOTFOUND, table_words[table],
                   near.best ? "the configuration has no [%s.%.60s]; did you mean %.60s?"
                             : "the configuration has no [%s.%.60s]%s",
                   table_words[table], name, near.best ? near.best : "");
}

int hf_config_endpoint(struct hf_config *config, const char *name,
                       struct hf_http_config *ret_http, struct hf_endpoint *ret_endpoint,
                       struct hf_err *err)
{
    struct provider *provider = find_provider(config, name);
    if (!provider)
        return no_such(config, HF_CONFIG_PROVIDER, name, err);
    for (int i = 0; i < KEY_SOURCES; i++)
        if (provider->key_from[i] && !provider->key) {
            int rc = hf_secret_new(provider->name, (enum hf_secret_source)i,
                                   provider->key_from[i], &provider->key, err);
            if (rc)
                return rc;
        }
    provider->endpoint.key = provider->key;
    *ret_http = provider->http;
    *ret_endpoint = provider->endpoint;
    return 0;
}

bool hf_config_show(const struct hf_config *config, size_t i,
                    struct hf_config_shown *ret_shown)
{
    const struct provider *provider = config->providers;
    for (; provider && i > 0; i--)
        provider = provider->next;
    if (provider)
        *ret_shown = (struct hf_config_shown){ provider->name, provider->endpoint.kind,
                                               provider->endpoint.base_url,
                                               provider->key_text };
    return provider != NULL;
}

int hf_config_model(const struct hf_config *config, const char *name,
                    struct hf_model_config *ret_model, const char **ret_provider,
                    struct hf_err *err)
{
    const struct model *model = config->models;
    while (model && !hf_same(model->name, name))
        model = model->next;
    if (!model)
        return no_such(config, HF_CONFIG_MODEL, name, err);
    *ret_model = model->config;
    *ret_provider = model->provider;
    return 0;
}
