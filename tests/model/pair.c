/* Opening two stores, and comparing what they say and hold. */

#include "model/pair.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/ledger/fields.h"

#define WALL_MS 1800000000000
#define MONO_MS 7000000

void pair_say(struct pair *pair, const char *format, ...)
{
    size_t used = strlen(pair->did);
    va_list args;
    va_start(args, format);
    if (used < sizeof(pair->did))
        (void)vsnprintf(pair->did + used, sizeof(pair->did) - used, format, args);
    va_end(args);
}

void pair_differ(struct pair *pair, const char *format, ...)
{
    va_list args;
    if (pair->complaint[0])
        return; /* the first difference is the one to look at */
    va_start(args, format);
    (void)vsnprintf(pair->complaint, sizeof(pair->complaint), format, args);
    va_end(args);
}

const char *pair_text(struct pair *pair, const char *text)
{
    const char *copy = text ? hf_arena_text(&pair->arena, text) : NULL;
    if (text && !copy)
        abort();
    return copy;
}

/* ---- one clock, two sources of chance ------------------------------------------------- */

static hf_ms wall_ms(void *user)
{
    return ((struct pair *)user)->wall;
}

static hf_ms mono_ms(void *user)
{
    return ((struct pair *)user)->mono;
}

static void wait_ms(void *user, hf_ms ms)
{
    struct pair *pair = user;
    pair->wall += ms;
    pair->mono += ms;
}

static uint64_t mixed(uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Eight bytes are jitter (or the tail of an id, which a counter tells apart): both stores
 * get the same whenever they ask in one step. Longer draws are nonces. */
static int fill(void *user, void *out, size_t bytes)
{
    struct pair_random *source = user;
    uint64_t value = mixed(source->pair->seed ^ mixed(source->pair->step));
    if (bytes == sizeof(value)) {
        memcpy(out, &value, sizeof(value));
        return 0;
    }
    unsigned char *at = out;
    for (size_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)mixed(source->state++);
    return 0;
}

/* ---- opening -------------------------------------------------------------------------- */

static void set_up(struct pair *pair, uint64_t seed)
{
    pair->seed = seed;
    pair->wall = WALL_MS;
    pair->mono = MONO_MS;
    pair->clock = (struct hf_clock){ pair, wall_ms, mono_ms, wait_ms };
    hf_arena_init(&pair->arena, hf_alloc_system());
    for (int side = 0; side < SIDES; side++) {
        pair->source[side] = (struct pair_random){ pair, seed };
        pair->random[side] = (struct hf_random){ &pair->source[side], fill };
        pair->options[side] = (struct hf_store_options){
            .size = sizeof(pair->options[side]),
            .alloc = hf_alloc_system(),
            .clock = &pair->clock,
            .random = &pair->random[side],
            .inline_mode = true,
        };
    }
}

static void opened(struct pair *pair, int rc, const struct hf_err *err)
{
    if (rc)
        pair_differ(pair, "a store cannot be opened: %s", err->message);
    /* Ids of the handle and of its first unit must not meet. */
    wait_ms(pair, 1);
}

bool pair_open(struct pair *pair, const struct pair_factory *factory, uint64_t seed)
{
    struct hf_err err = { 0 };
    *pair = (struct pair){ .factory = factory };
    set_up(pair, seed);
    pair->disk = model_disk_new();
    int rc = pair->disk ? model_open(pair->disk, &pair->options[MODEL],
                                     &pair->store[MODEL], &err)
                        : HF_ENOMEM;
    if (rc == 0)
        rc = factory->open(factory->user, &pair->options[OTHER], &pair->store[OTHER],
                           &err);
    opened(pair, rc, &err);
    return rc == 0;
}

void pair_close(struct pair *pair)
{
    hf_store_close(pair->store[MODEL]);
    hf_store_close(pair->store[OTHER]);
    model_disk_free(pair->disk);
    if (pair->factory->discard)
        pair->factory->discard(pair->factory->user);
    hf_arena_fini(&pair->arena);
}

void pair_reopen(struct pair *pair)
{
    struct hf_err err = { 0 };
    const struct pair_factory *factory = pair->factory;
    for (int side = 0; side < SIDES; side++) {
        hf_store_close(pair->store[side]);
        pair->store[side] = NULL;
    }
    int rc = model_open(pair->disk, &pair->options[MODEL], &pair->store[MODEL], &err);
    if (rc == 0)
        rc = factory->again(factory->user, &pair->options[OTHER], &pair->store[OTHER],
                            &err);
    opened(pair, rc, &err);
}

/* ---- the same except ids ----------------------------------------------------------- */

/* Bytes of the id (UUID) or nonce (32 digits) at this place, 0 where there is none. */
static size_t name_at(const char *text)
{
    size_t len = 0;
    while (len < 36 && (isxdigit((unsigned char)text[len]) || text[len] == '-'))
        len++;
    if (len == 36 && text[8] == '-' && text[13] == '-' && text[23] == '-')
        return 36;
    for (size_t i = 0; i < 32; i++) {
        if (i >= len || text[i] == '-')
            return 0;
    }
    return 32;
}

static size_t bucket_of(const char *name, size_t len)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    return hash % PAIR_BUCKETS;
}

static size_t known(const struct pair *pair, int side, const char *name, size_t len)
{
    size_t at = pair->buckets[bucket_of(name, len)][side];
    while (at && (strlen(pair->names[at].of[side]) != len ||
                  memcmp(pair->names[at].of[side], name, len) != 0))
        at = pair->names[at].next[side];
    return at;
}

/* One name of each side for one thing, for ever. */
static bool matched(struct pair *pair, const char *model, const char *other, size_t len)
{
    const char *const names[SIDES] = { model, other };
    size_t left = known(pair, MODEL, model, len);
    size_t right = known(pair, OTHER, other, len);
    if (left || right)
        return left == right;
    if (pair->name_count + 1 == PAIR_NAMES)
        abort();
    size_t at = ++pair->name_count;
    for (int side = 0; side < SIDES; side++) {
        size_t *bucket = &pair->buckets[bucket_of(names[side], len)][side];
        pair->names[at].of[side] = hf_arena_copy(&pair->arena, names[side], len);
        if (!pair->names[at].of[side])
            abort();
        pair->names[at].next[side] = *bucket;
        *bucket = at;
    }
    return true;
}

bool pair_same(struct pair *pair, const char *model, const char *other)
{
    if (!model || !other)
        return model == other;
    if (strcmp(model, other) == 0) {
        size_t len = name_at(model);
        return len == 0 || model[len] || matched(pair, model, other, len);
    }
    while (*model && *other) {
        size_t len = name_at(model);
        if (len && len == name_at(other)) {
            if (!matched(pair, model, other, len))
                return false;
            model += len;
            other += len;
        } else if (*model++ != *other++) {
            return false;
        }
    }
    return *model == *other;
}

void pair_codes(struct pair *pair, const char *what, int model, int other)
{
    if (model != other)
        pair_differ(pair, "%s: the model answers %s, the store %s", what,
                    hf_err_wire(model), hf_err_wire(other));
}

/* ---- rows ----------------------------------------------------------------------------- */

static const char *shown(const char *text)
{
    return text ? text : "null";
}

static void compare_work(struct pair *pair, const char *where,
                         const struct hf_work *model, const struct hf_work *other,
                         bool remaining)
{
    for (size_t f = 0; f < hf_work_field_count; f++) {
        const struct hf_field *field = &hf_work_fields[f];
        if (field->kind == HF_FIELD_I64) {
            int64_t a = hf_field_i64(field, model);
            int64_t b = hf_field_i64(field, other);
            if (a != b && (remaining || strcmp(field->name, "lease_remaining_ms") != 0))
                pair_differ(pair, "%s, %s: the model has %lld, the store %lld", where,
                            field->name, (long long)a, (long long)b);
            continue;
        }
        const char *a = hf_field_text(field, model);
        const char *b = hf_field_text(field, other);
        if (remaining && pair->gate_may_move && strcmp(field->name, "gate") == 0)
            continue;
        if (!pair_same(pair, a, b))
            pair_differ(pair, "%s, %s: the model has %.120s, the store %.120s", where,
                        field->name, shown(a), shown(b));
    }
}

static struct pair_unit *unit_of(struct pair *pair, const char *id)
{
    for (size_t i = 0; i < pair->unit_count; i++) {
        if (strcmp(pair->units[i].id[MODEL], id) == 0)
            return &pair->units[i];
    }
    return pair->unit_count < PAIR_UNITS ? &pair->units[pair->unit_count++] : NULL;
}

static void learn(struct pair *pair, const struct hf_item *model,
                  const struct hf_item *other)
{
    if (!model->work.work_id || !other->work.work_id || pair->complaint[0])
        return;
    struct pair_unit *unit = unit_of(pair, model->work.work_id);
    if (!unit)
        return;
    unit->id[MODEL] = pair_text(pair, model->work.work_id);
    unit->id[OTHER] = pair_text(pair, other->work.work_id);
    if (!model->token || !other->token)
        return;
    memmove(unit->token[1], unit->token[0], sizeof(unit->token) - sizeof(unit->token[0]));
    unit->token[0][MODEL] = pair_text(pair, model->token);
    unit->token[0][OTHER] = pair_text(pair, other->token);
}

static void compare_item(struct pair *pair, size_t i,
                         const struct hf_item *const items[2], bool brief)
{
    const struct hf_item *model = items[MODEL];
    const struct hf_item *other = items[OTHER];
    char where[40];
    (void)snprintf(where, sizeof(where), "answer %zu", i);
    pair_codes(pair, where, model->code, other->code);
    if (model->created != other->created)
        pair_differ(pair, "%s, created: the model says %d, the store %d", where,
                    model->created, other->created);
    if (model->repeated != other->repeated)
        pair_differ(pair, "%s, repeated: the model says %d, the store %d", where,
                    model->repeated, other->repeated);
    if (!pair_same(pair, model->token, other->token))
        pair_differ(pair, "%s, token: the model returns %s, the store %s", where,
                    shown(model->token), shown(other->token));
    if (brief) {
        if (!pair_same(pair, model->work.work_id, other->work.work_id) ||
            !pair_same(pair, model->work.status, other->work.status))
            pair_differ(pair, "%s: the model has %s %s, the store %s %s", where,
                        shown(model->work.work_id), shown(model->work.status),
                        shown(other->work.work_id), shown(other->work.status));
    } else if (model->code == 0) {
        compare_work(pair, where, &model->work, &other->work, true);
    }
    learn(pair, model, other);
}

/* Of several refusals in a batch that is refused whole, any may speak for it. */
static bool refused_whole(const int codes[SIDES], unsigned flags)
{
    return (flags & HF_ALL_OR_NONE) && codes[MODEL] && codes[OTHER];
}

void pair_answers(struct pair *pair, const int codes[SIDES],
                  struct hf_answer *const answers[SIDES], unsigned flags)
{
    bool brief = (flags & HF_BRIEF) != 0;
    if (!refused_whole(codes, flags))
        pair_codes(pair, "the call", codes[MODEL], codes[OTHER]);
    size_t n[SIDES] = { 0, 0 };
    for (int side = 0; side < SIDES; side++)
        n[side] = codes[side] == 0 ? hf_answer_count(answers[side]) : 0;
    if (n[MODEL] != n[OTHER])
        pair_differ(pair, "the model answers with %zu items, the store with %zu",
                    n[MODEL], n[OTHER]);
    for (size_t i = 0; i < n[MODEL] && !pair->complaint[0]; i++) {
        const struct hf_item *const items[] = { hf_answer_at(answers[MODEL], i),
                                                hf_answer_at(answers[OTHER], i) };
        compare_item(pair, i, items, brief);
    }
    for (int side = 0; side < SIDES; side++) {
        if (codes[side] == 0)
            hf_answer_free(answers[side]);
    }
}

/* ---- everything, raw ------------------------------------------------------------------ */

#define ROWS 1024
#define EVENTS 8192

struct raw_row {
    struct hf_work work;
    const char *settled_verb;
    hf_ms check_at;
    int64_t store;
};

/* The model's half, then a place in it that the other store's half has reached. The model's
 * texts live as long as its disk. */
struct raw {
    struct pair *pair;
    struct raw_row *rows;
    struct hf_event *events;
    size_t row_count;
    size_t event_count;
    size_t row_at;
    size_t event_low; /* all before it were met */
    bool *met;
};

static void keep_row(void *user, const struct hf_work *work, const char *settled_verb,
                     hf_ms check_at, int64_t store)
{
    struct raw *raw = user;
    if (raw->row_count == ROWS)
        abort();
    raw->rows[raw->row_count++] = (struct raw_row){ *work, settled_verb, check_at,
                                                    store };
}

/* Rule 14 allows a diagnostic, and does not ask for it. */
static bool diagnostic(const struct hf_event *event)
{
    return strcmp(event->event_type, "transition_rejected") == 0 ||
           strcmp(event->event_type, "late_result") == 0;
}

static void keep_event(void *user, const struct hf_event *event)
{
    struct raw *raw = user;
    if (raw->event_count == EVENTS)
        abort();
    raw->events[raw->event_count++] = *event;
}

static void check_row(void *user, const struct hf_work *work, const char *settled_verb,
                      hf_ms check_at, int64_t store)
{
    struct raw *raw = user;
    char where[40];
    size_t i = raw->row_at++;
    (void)snprintf(where, sizeof(where), "row %zu", i);
    if (i >= raw->row_count) {
        pair_differ(raw->pair, "%s: only the store has it", where);
        return;
    }
    const struct raw_row *row = &raw->rows[i];
    compare_work(raw->pair, where, &row->work, work, false);
    if (!pair_same(raw->pair, row->settled_verb, settled_verb))
        pair_differ(raw->pair, "%s, settled_verb: the model has %s, the store %s", where,
                    shown(row->settled_verb), shown(settled_verb));
    if (row->check_at != check_at)
        pair_differ(raw->pair, "%s, lease_check_at: the model has %lld, the store %lld",
                    where, (long long)row->check_at, (long long)check_at);
    if (row->store != store)
        pair_differ(raw->pair,
                    "%s, lease_incarnation: the model has %lld, the store %lld", where,
                    (long long)row->store, (long long)store);
}

/* What the model states of a payload: the whole of it after "=", otherwise lines that are
 * in it. It need not know all that a store writes. */
static void check_facts(struct pair *pair, const char *where, const char *facts,
                        const char *payload)
{
    char line[600];
    if (facts && facts[0] == '=') {
        if (!pair_same(pair, facts + 1, payload))
            pair_differ(pair, "%s, payload: the model has %.200s, the store %.200s",
                        where, facts + 1, shown(payload));
        return;
    }
    while (facts && *facts) {
        size_t len = strcspn(facts, "\n");
        (void)snprintf(line, sizeof(line), "%.*s", (int)len, facts);
        if (!payload || !strstr(payload, line))
            pair_differ(pair, "%s, payload: %s is missing in %.300s", where, line,
                        shown(payload));
        facts += len + (facts[len] == '\n');
    }
}

/* The model's next event of the same row: between rows, what one call did to many has no
 * order. */
static const struct hf_event *next_of(struct raw *raw, const char *work_id,
                                      size_t *ret_at)
{
    for (size_t i = raw->event_low; i < raw->event_count; i++) {
        if (raw->met[i] || !pair_same(raw->pair, raw->events[i].work_id, work_id))
            continue;
        raw->met[i] = true;
        while (raw->event_low < raw->event_count && raw->met[raw->event_low])
            raw->event_low++;
        *ret_at = i;
        return &raw->events[i];
    }
    return NULL;
}

static void check_event(void *user, const struct hf_event *event)
{
    struct raw *raw = user;
    struct pair *pair = raw->pair;
    char where[60];
    size_t i = 0;
    if (diagnostic(event) || pair->complaint[0])
        return;
    const struct hf_event *model = next_of(raw, event->work_id, &i);
    (void)snprintf(where, sizeof(where), "event %zu (%.30s)", i, event->event_type);
    if (!model) {
        pair_differ(pair, "event %s of %s: only the store has it", event->event_type,
                    event->work_id);
        return;
    }
    for (size_t f = 0; f < hf_event_field_count; f++) {
        const struct hf_field *field = &hf_event_fields[f];
        if (strcmp(field->name, "event_id") == 0 || strcmp(field->name, "payload") == 0)
            continue;
        bool number = field->kind == HF_FIELD_I64;
        bool agree = number ? hf_field_i64(field, model) == hf_field_i64(field, event)
                            : pair_same(pair, hf_field_text(field, model),
                                        hf_field_text(field, event));
        if (!agree && number)
            pair_differ(pair, "%s, %s: the model has %lld, the store %lld", where,
                        field->name, (long long)hf_field_i64(field, model),
                        (long long)hf_field_i64(field, event));
        else if (!agree)
            pair_differ(pair, "%s, %s: the model has %.120s, the store %.120s", where,
                        field->name, shown(hf_field_text(field, model)),
                        shown(hf_field_text(field, event)));
    }
    check_facts(pair, where, model->payload, event->payload);
}

void pair_everything(struct pair *pair)
{
    struct raw raw = { .pair = pair };
    struct hf_err err = { 0 };
    raw.rows = malloc(ROWS * sizeof(*raw.rows));
    raw.events = malloc(EVENTS * sizeof(*raw.events));
    raw.met = calloc(EVENTS, sizeof(*raw.met));
    if (!raw.rows || !raw.events || !raw.met)
        abort();
    struct hf_dump keeps = { &raw, keep_row, keep_event };
    struct hf_dump checks = { &raw, check_row, check_event };
    struct hf_store *model = pair->store[MODEL];
    struct hf_store *other = pair->store[OTHER];
    int rc = model->methods->dump(model, &keeps, &err);
    if (rc == 0)
        rc = other->methods->dump(other, &checks, &err);
    if (rc)
        pair_differ(pair, "a dump failed: %s", err.message);
    if (raw.row_at < raw.row_count)
        pair_differ(pair, "the model has %zu rows, the store %zu", raw.row_count,
                    raw.row_at);
    if (raw.event_low < raw.event_count && !pair->complaint[0])
        pair_differ(pair, "event %zu (%s): only the model has it", raw.event_low,
                    raw.events[raw.event_low].event_type);
    free(raw.met);
    free(raw.events);
    free(raw.rows);
}
