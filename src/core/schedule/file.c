/* See core/schedule/file.h.
 *
 * {"set":"crons", "orphans":"keep|pause|remove", "existing":"update|keep",
 *  "schedules":[{"name":…, "cron":…, …}]}                                            */
#include "core/schedule/file.h"

#include <string.h>

#include "base/err.h"
#include "base/json_get.h"
#include "base/text.h"
#include "core/schedule/schedule.h"

#define FILE_BYTES_MAX (8u << 20)

struct reader {
    struct hf_arena *arena;
    const struct json_t *entry;
    struct hf_err *err;
    int rc; /* the first fault; after it nothing is read */
};

static void fault(struct reader *in, const char *key, const char *rule)
{
    if (in->rc == 0)
        in->rc = hf_fail(in->err, HF_EINVAL, key, "%s must be %s", key, rule);
}

static const struct json_t *member(struct reader *in, const char *key)
{
    const struct json_t *value = in->rc ? NULL : hf_json_member(in->entry, key);
    return hf_json_type_of(value) == HF_JSON_NULL ? NULL : value;
}

static const char *text(struct reader *in, const char *key)
{
    const struct json_t *value = member(in, key);
    if (!value)
        return NULL;
    const char *found = hf_json_as_text(value);
    if (!found) {
        fault(in, key, "a text");
        return NULL;
    }
    const char *copy = hf_arena_text(in->arena, found);
    if (!copy)
        in->rc = hf_fail_plain(in->err, HF_ENOMEM);
    return copy;
}

/* Any value, as canonical JSON. */
static const char *json(struct reader *in, const char *key)
{
    const struct json_t *value = member(in, key);
    struct hf_buf out;
    if (!value)
        return NULL;
    hf_buf_init(&out, in->arena->alloc, FILE_BYTES_MAX);
    int rc = hf_json_canonical(&out, value);
    const char *copy = rc == 0 ? hf_buf_keep(&out, in->arena) : NULL;
    if (rc != 0)
        hf_buf_fini(&out);
    if (!copy)
        in->rc = hf_fail_plain(in->err, rc ? rc : HF_ENOMEM);
    return copy;
}

static int64_t number(struct reader *in, const char *key, int64_t fallback)
{
    const struct json_t *value = member(in, key);
    if (!value)
        return fallback;
    if (hf_json_type_of(value) != HF_JSON_INT)
        fault(in, key, "a whole number");
    int64_t found = hf_json_as_i64(value);
    if (found < 0 || found > HF_MAX_ATTEMPTS_MAX)
        fault(in, key, "0 to 1000000");
    return found;
}

static bool flag(struct reader *in, const char *key)
{
    const struct json_t *value = member(in, key);
    if (value && hf_json_type_of(value) != HF_JSON_BOOL)
        fault(in, key, "true or false");
    return hf_json_as_bool(value);
}

static hf_ms duration(struct reader *in, const char *key)
{
    const char *found = text(in, key);
    hf_ms ms = 0;
    if (found)
        in->rc = hf_parse_duration(found, key, &ms, in->err);
    return ms;
}

/* One of the words, by its place; 0 when it is not there. */
static int word(struct reader *in, const char *key, const char *const *words,
                const char *rule)
{
    const char *found = text(in, key);
    for (int i = 0; found && words[i]; i++)
        if (hf_same(found, words[i]))
            return i + 1;
    if (found)
        fault(in, key, rule);
    return 0;
}

#define WORD(name, word) (word),
static const char *const overlaps[] = { HF_OVERLAPS(WORD) NULL };
static const char *const catch_ups[] = { HF_CATCH_UPS(WORD) NULL };
static const char *const dispositions[] = { HF_DISPOSITIONS(WORD) NULL };
#undef WORD

static void read_entry(struct reader *in, struct hf_schedule_spec *ret_new)
{
    static const char *const days[] = { "or", "and", NULL };
    *ret_new = (struct hf_schedule_spec){
        .size = sizeof(*ret_new),
        .name = text(in, "name"),
        .cron = text(in, "cron"),
        .every_ms = duration(in, "every"),
        .start = text(in, "start"),
        .at = text(in, "at"),
        .zone = text(in, "zone"),
        .both_days = word(in, "days", days, "or | and") == 2,
        .overlap = (enum hf_overlap)word(in, "overlap", overlaps,
                                         "skip, one_waiting or allow"),
        .catch_up = (enum hf_catch_up)word(in, "catch_up", catch_ups,
                                           "latest, all or none"),
        .miss_threshold_ms = duration(in, "miss_threshold"),
        .kind = text(in, "kind"),
        .queue = text(in, "queue"),
        .lane_key = text(in, "lane"),
        .payload = json(in, "payload"),
        .priority = (int)number(in, "priority", -1),
        .max_attempts = (int)number(in, "max_attempts", 0),
        .retry_policy = json(in, "retry_policy"),
        .disposition = (enum hf_disposition)word(
            in, "disposition", dispositions,
            "expire, rerunnable, owner_bound or externally_owned"),
        .start_timeout_ms = duration(in, "start_timeout"),
        .exec_timeout_ms = duration(in, "exec_timeout"),
        .wake_session = text(in, "wake_session"),
        .paused = flag(in, "paused"),
    };
}

static int check_keys(const struct json_t *object, const char *const *keys, size_t count,
                      struct hf_err *err)
{
    if (hf_json_type_of(object) != HF_JSON_OBJECT)
        return hf_fail(err, HF_EINVAL, "file", "it must be an object");
    const char *stranger = hf_json_stranger(object, keys, count);
    return stranger ? hf_fail(err, HF_EINVAL, "file", "there is no key %s", stranger) : 0;
}

static int read_item(struct hf_arena *arena, const struct json_t *entry,
                     struct hf_schedule_spec *ret_new, struct hf_err *err)
{
    static const char *const keys[] = {
        "name",         "cron",         "every",        "start",       "at",
        "zone",         "days",         "overlap",      "catch_up",    "miss_threshold",
        "kind",         "queue",        "lane",         "payload",     "priority",
        "paused",       "max_attempts", "retry_policy", "disposition", "start_timeout",
        "exec_timeout", "wake_session",
    };
    struct reader in = { .arena = arena, .entry = entry, .err = err };
    int rc = check_keys(entry, keys, sizeof(keys) / sizeof(keys[0]), err);
    if (rc)
        return rc;
    read_entry(&in, ret_new);
    return in.rc ? in.rc : hf_schedule_check(ret_new, true, err);
}

/* "schedules[2] (nightly): …": which entry it is. */
static int in_entry(struct hf_err *err, const struct hf_err *why, size_t i,
                    const char *name)
{
    return hf_fail(err, why->code, why->field, "schedules[%zu]%s%.80s%s: %s", i,
                   name ? " (" : "", name ? name : "", name ? ")" : "", why->message);
}

static int read_items(struct hf_arena *arena, const struct json_t *list,
                      struct hf_schedule_set *set, struct hf_err *err)
{
    size_t count = hf_json_items(list);
    struct hf_schedule_spec *items = hf_arena_array(arena, count, sizeof(*items));
    if (!items)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; i < count; i++) {
        struct hf_err why = { 0 };
        const struct json_t *entry = hf_json_item(list, i);
        if (read_item(arena, entry, &items[i], &why))
            return in_entry(err, &why, i, hf_json_as_text(hf_json_member(entry, "name")));
        for (size_t k = 0; k < i; k++)
            if (hf_same(items[k].name, items[i].name))
                return hf_fail(err, HF_EINVAL, "name",
                               "schedules[%zu] and schedules[%zu] have the same name", k,
                               i);
    }
    set->items = items;
    set->count = count;
    return 0;
}

static int read_set(struct hf_arena *arena, const struct json_t *file,
                    struct hf_schedule_set *ret_set, struct hf_err *err)
{
    static const char *const keys[] = { "set", "orphans", "existing", "schedules" };
    static const char *const orphans[] = { "pause", "keep", "remove", NULL };
    static const char *const existing[] = { "update", "keep", NULL };
    struct reader in = { .arena = arena, .entry = file, .err = err };
    int rc = check_keys(file, keys, sizeof(keys) / sizeof(keys[0]), err);
    if (rc)
        return rc;
    struct hf_schedule_set set = { .name = text(&in, "set") };
    int rule = word(&in, "orphans", orphans, "keep, pause or remove");
    set.orphans = rule ? (enum hf_orphans)(rule - 1) : HF_ORPHANS_PAUSE;
    set.keep_existing = word(&in, "existing", existing, "update or keep") == 2;
    rc = in.rc;
    if (rc == 0)
        rc = hf_check_key(set.name, (size_t)HF_MAX_KEY_BYTES, "set", err);
    const struct json_t *list = hf_json_member(file, "schedules");
    if (rc == 0 && hf_json_type_of(list) != HF_JSON_ARRAY)
        rc = hf_fail(err, HF_EINVAL, "schedules", "schedules must be a list");
    if (rc == 0 && hf_json_items(list) > (size_t)HF_MAX_BATCH)
        rc = hf_fail(err, HF_ETOOBIG, "schedules", "a set holds at most %lld schedules",
                     (long long)HF_MAX_BATCH);
    if (rc == 0)
        rc = read_items(arena, list, &set, err);
    if (rc == 0)
        *ret_set = set;
    return rc;
}

int hf_schedule_file_read(struct hf_arena *arena, const char *json_text,
                          struct hf_schedule_set *ret_set, struct hf_err *err)
{
    struct json_t *file = NULL;
    if (!json_text)
        return hf_fail(err, HF_EINVAL, "file", "the file is missing");
    int rc = hf_json_parse((struct hf_span){ json_text, strlen(json_text) },
                           FILE_BYTES_MAX, "file", &file, err);
    if (rc)
        return rc;
    rc = read_set(arena, file, ret_set, err);
    hf_json_free(file);
    return rc;
}
