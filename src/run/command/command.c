/* Commands as payloads. */
#include <holdfast/bounds.h>
#include <holdfast/run.h>

#include <jansson.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/json_get.h"
#include "base/sized.h"
#include "base/text.h"

#define TEXT_MAX ((size_t)131072) /* the kernel's bound on one argument */

static size_t count_of(const char *const *list)
{
    size_t n = 0;
    while (list && list[n])
        n++;
    return n;
}

static int check_text(const char *text, const char *field, struct hf_err *err)
{
    if (!hf_utf8_valid(text, strlen(text)))
        return hf_fail(err, HF_EINVAL, field, "%s must be UTF-8", field);
    if (strlen(text) >= TEXT_MAX)
        return hf_fail(err, HF_ETOOBIG, field, "%s: one is longer than %zu bytes", field,
                       TEXT_MAX);
    return 0;
}

static int check_list(const char *const *list, const char *field, struct hf_err *err)
{
    int rc = count_of(list) <= (size_t)HF_MAX_COMMAND_ARGS
                 ? 0
                 : hf_fail(err, HF_ETOOBIG, field, "%s: more than %lld", field,
                           (long long)HF_MAX_COMMAND_ARGS);
    for (size_t i = 0; rc == 0 && list && list[i]; i++)
        rc = check_text(list[i], field, err);
    return rc;
}

static bool is_name(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return len > 0;
}

static int check_names(const struct hf_command *command, struct hf_err *err)
{
    for (size_t i = 0; command->env && command->env[i]; i++) {
        const char *equals = strchr(command->env[i], '=');
        if (!equals || !is_name(command->env[i], (size_t)(equals - command->env[i])))
            return hf_fail(err, HF_EINVAL, "env", "env: \"%.60s\" is not NAME=value",
                           command->env[i]);
    }
    for (size_t i = 0; command->secrets && command->secrets[i]; i++)
        if (!is_name(command->secrets[i], strlen(command->secrets[i])))
            return hf_fail(err, HF_EINVAL, "secrets",
                           "secrets: a name of a variable is needed");
    return 0;
}

static int check(const struct hf_command *command, struct hf_err *err)
{
    if (count_of(command->argv) == 0)
        return hf_fail(err, HF_EINVAL, "command", "a command is needed");
    if (!command->cwd || command->cwd[0] != '/')
        return hf_fail(err, HF_EINVAL, "cwd", "cwd must be an absolute path");
    if (command->timeout_ms < 0 || command->timeout_ms > HF_MAX_DURATION_MAX_MS ||
        command->kill_after_ms < 0 || command->kill_after_ms > HF_MAX_DURATION_MAX_MS)
        return hf_fail(err, HF_EINVAL, "timeout_ms",
                       "a timeout must not be negative or beyond 100 years");
    int rc = check_text(command->cwd, "cwd", err);
    if (rc == 0)
        rc = check_list(command->argv, "command", err);
    if (rc == 0)
        rc = check_list(command->env, "env", err);
    if (rc == 0)
        rc = check_list(command->secrets, "secrets", err);
    if (rc == 0)
        rc = check_list(command->evidence, "evidence", err);
    if (rc == 0 && count_of(command->evidence) > (size_t)HF_MAX_REFS)
        rc = hf_fail(err, HF_ETOOBIG, "evidence", "evidence: more than %lld files",
                     (long long)HF_MAX_REFS);
    if (rc == 0 && command->input)
        rc = hf_json_check((struct hf_span){ command->input, strlen(command->input) },
                           (size_t)HF_MAX_PAYLOAD_BYTES, "input", err);
    return rc ? rc : check_names(command, err);
}

static void put_list(struct hf_json *json, const char *key, const char *const *list)
{
    hf_json_key(json, key);
    hf_json_array(json);
    for (size_t i = 0; list[i]; i++)
        hf_json_str(json, list[i]);
    hf_json_end(json);
}

int hf_command_write(const struct hf_command *wanted, char **ret_payload,
                     struct hf_err *err)
{
    struct hf_command command;
    int rc = hf_sized_copy(wanted, sizeof command, sizeof command, &command, err);
    if (rc == 0)
        rc = check(&command, err);
    if (rc)
        return rc;
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, hf_alloc_system(), (size_t)HF_MAX_PAYLOAD_BYTES);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    put_list(&json, "argv", command.argv);
    hf_json_put_str(&json, "cwd", command.cwd);
    if (count_of(command.env))
        put_list(&json, "env", command.env);
    if (count_of(command.evidence))
        put_list(&json, "evidence", command.evidence);
    if (command.input)
        hf_json_put_raw(&json, "input", command.input);
    hf_json_opt_i64(&json, "kill_after_ms", command.kill_after_ms);
    if (command.require_close_out)
        hf_json_put_bool(&json, "require_close_out", true);
    if (count_of(command.secrets))
        put_list(&json, "secrets", command.secrets);
    hf_json_opt_i64(&json, "timeout_ms", command.timeout_ms);
    hf_json_end(&json);
    rc = hf_buf_state(&text);
    if (rc) {
        hf_buf_fini(&text);
        return hf_fail(err, rc, "command", "the command is over %lld bytes",
                       (long long)HF_MAX_PAYLOAD_BYTES);
    }
    *ret_payload = text.at; /* the buffer's memory is the caller's from here */
    return 0;
}

/* ---- reading ----------------------------------------------------------------------- */

struct hf_command_text {
    struct hf_arena arena;
    struct hf_command command;
};

static const char *const known[] = {
    "argv",
    "cwd",
    "env",
    "evidence",
    "input",
    "kill_after_ms",
    "require_close_out",
    "secrets",
    "timeout_ms",
};

static int read_input(struct hf_command_text *text, const struct json_t *all,
                      struct hf_err *err)
{
    const struct json_t *value = hf_json_member(all, "input");
    struct hf_buf json;
    if (!value)
        return 0;
    hf_buf_init(&json, hf_alloc_system(), (size_t)HF_MAX_PAYLOAD_BYTES);
    int rc = hf_json_canonical(&json, value);
    text->command.input = rc ? NULL : hf_arena_text(&text->arena, hf_buf_str(&json));
    hf_buf_fini(&json);
    return text->command.input ? 0 : hf_fail_plain(err, rc ? rc : HF_ENOMEM);
}

static int read_list(struct hf_arena *arena, const struct json_t *all, const char *key,
                     const char *const **ret_list, struct hf_err *err)
{
    const struct json_t *value = hf_json_member(all, key);
    size_t n = value ? hf_json_items(value) : 0;
    if (value && hf_json_type_of(value) != HF_JSON_ARRAY)
        return hf_fail(err, HF_EINVAL, "payload", "payload: %s must be an array", key);
    const char **list = hf_arena_array(arena, n + 1, sizeof *list);
    if (!list)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; i < n; i++) {
        const char *text = hf_json_as_text(hf_json_item(value, i));
        if (!text)
            return hf_fail(err, HF_EINVAL, "payload", "payload: %s[%zu] must be a text",
                           key, i);
        list[i] = hf_arena_text(arena, text);
        if (!list[i])
            return hf_fail_plain(err, HF_ENOMEM);
    }
    *ret_list = list;
    return 0;
}

static int read_ms(const struct json_t *all, const char *key, hf_ms *ret_ms,
                   struct hf_err *err)
{
    const struct json_t *value = hf_json_member(all, key);
    if (value && hf_json_type_of(value) != HF_JSON_INT)
        return hf_fail(err, HF_EINVAL, "payload", "payload: %s must be a whole number",
                       key);
    *ret_ms = value ? hf_json_as_i64(value) : 0;
    return 0;
}

static int read_command(struct hf_command_text *text, const struct json_t *all,
                        struct hf_err *err)
{
    struct hf_command *command = &text->command;
    if (hf_json_type_of(all) != HF_JSON_OBJECT)
        return hf_fail(err, HF_EINVAL, "payload",
                       "the payload is not a command: an "
                       "object with argv and cwd is needed");
    const char *stranger = hf_json_stranger(all, known, sizeof known / sizeof known[0]);
    if (stranger)
        return hf_fail(err, HF_EINVAL, "payload", "payload: unknown key %.60s", stranger);
    const char *cwd = hf_json_as_text(hf_json_member(all, "cwd"));
    command->size = sizeof *command;
    command->cwd = cwd ? hf_arena_text(&text->arena, cwd) : NULL;
    command->require_close_out = json_is_true(
        (const json_t *)hf_json_member(all, "require_close_out"));
    int rc = read_list(&text->arena, all, "argv", &command->argv, err);
    if (rc == 0)
        rc = read_list(&text->arena, all, "env", &command->env, err);
    if (rc == 0)
        rc = read_list(&text->arena, all, "secrets", &command->secrets, err);
    if (rc == 0)
        rc = read_list(&text->arena, all, "evidence", &command->evidence, err);
    if (rc == 0)
        rc = read_ms(all, "timeout_ms", &command->timeout_ms, err);
    if (rc == 0)
        rc = read_ms(all, "kill_after_ms", &command->kill_after_ms, err);
    if (rc == 0)
        rc = read_input(text, all, err);
    return rc ? rc : check(command, err);
}

int hf_command_read(const char *payload, struct hf_command_text **ret_text,
                    struct hf_err *err)
{
    const struct hf_alloc *alloc = hf_alloc_system();
    struct json_t *value = NULL;
    struct hf_span span = { payload ? payload : "null",
                            strlen(payload ? payload : "null") };
    int rc = hf_json_parse(span, (size_t)HF_MAX_PAYLOAD_BYTES, "payload", &value, err);
    if (rc)
        return rc;
    struct hf_command_text *text = alloc->realloc(alloc->user, NULL, sizeof *text);
    if (text) {
        *text = (struct hf_command_text){ 0 };
        hf_arena_init(&text->arena, alloc);
    }
    rc = text ? read_command(text, value, err) : hf_fail_plain(err, HF_ENOMEM);
    json_decref(value);
    if (rc)
        hf_command_free(text);
    else
        *ret_text = text;
    return rc;
}

const struct hf_command *hf_command_of(const struct hf_command_text *text)
{
    return &text->command;
}

void hf_command_free(struct hf_command_text *text)
{
    if (!text)
        return;
    const struct hf_alloc *alloc = text->arena.alloc;
    hf_arena_fini(&text->arena);
    alloc->free(alloc->user, text);
}
