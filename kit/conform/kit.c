/* The fixture: virtual time, seeded randomness, memory, checks, handles. */

#include "conform/kit.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define EPOCH_MS 1800000000000 /* where every case's wall clock starts */

/* ---- memory -------------------------------------------------------------------------- */

static void drop_memory(void *at)
{
    const struct hf_alloc *alloc = hf_alloc_system();
    alloc->free(alloc->user, at);
}

static void *take(struct hf_conform *t, size_t bytes)
{
    const struct hf_alloc *alloc = hf_alloc_system();
    void *at = alloc->realloc(alloc->user, NULL, bytes ? bytes : 1);
    if (at)
        memset(at, 0, bytes ? bytes : 1);
    else
        kit_fail(t, "out of memory");
    return at;
}

void kit_keep(struct hf_conform *t, void *at, kit_drop *drop)
{
    struct keep *keep = take(t, sizeof(*keep));
    if (!keep)
        return;
    *keep = (struct keep){ .next = t->kept, .at = at, .drop = drop };
    t->kept = keep;
}

void *kit_memory(struct hf_conform *t, size_t bytes)
{
    void *at = take(t, bytes);
    if (at)
        kit_keep(t, at, drop_memory);
    return at;
}

static void drop_all(struct hf_conform *t)
{
    while (t->kept) {
        struct keep *keep = t->kept;
        t->kept = keep->next;
        keep->drop(keep->at);
        drop_memory(keep);
    }
}

const char *kit_say(struct hf_conform *t, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    char *copy = len < 0 ? NULL : kit_memory(t, (size_t)len + 1);
    if (!copy || (size_t)len >= sizeof(text))
        return "";
    memcpy(copy, text, (size_t)len + 1);
    return copy;
}

const char *kit_filled(struct hf_conform *t, char c, size_t bytes)
{
    char *text = kit_memory(t, bytes + 1);
    if (!text)
        return "";
    memset(text, c, bytes);
    return text;
}

/* ---- checks -------------------------------------------------------------------------- */

struct hf_conform *kit_at(struct hf_conform *t, const char *file, int line)
{
    if (!t->failed) {
        const char *slash = strrchr(file, '/');
        t->file = slash ? slash + 1 : file;
        t->line = line;
    }
    return t;
}

void kit_fail(struct hf_conform *t, const char *format, ...)
{
    if (t->failed)
        return;
    t->failed = true;
    size_t room = sizeof(t->failure->text);
    int used = snprintf(t->failure->text, room, "%s:%d: ", t->file, t->line);
    va_list args;
    va_start(args, format);
    if (used > 0 && (size_t)used < room)
        (void)vsnprintf(t->failure->text + used, room - (size_t)used, format,
                        args); /* cut where it does not fit */
    va_end(args);
}

void kit_int(struct hf_conform *t, const char *what, int64_t expected, int64_t found)
{
    if (!t->failed && expected != found)
        kit_fail(t, "%s: expected %lld, found %lld", what, (long long)expected,
                 (long long)found);
}

void kit_text(struct hf_conform *t, const char *what, const char *expected,
              const char *found)
{
    if (!t->failed && !same(expected, found))
        kit_fail(t, "%s: expected %s, found %s", what, expected ? expected : "null",
                 found ? found : "null");
}

void kit_code(struct hf_conform *t, const char *what, int expected, int found)
{
    if (!t->failed && expected != found)
        kit_fail(t, "%s: expected %s, found %s (%s: %s)", what, hf_err_wire(expected),
                 hf_err_wire(found), t->err.field, t->err.message);
}

void kit_true(struct hf_conform *t, const char *what, bool found)
{
    if (!t->failed && !found)
        kit_fail(t, "expected %s", what);
}

/* The case fails unless the unit has that status. kit_row returns an empty row, never NULL, for a
 * unit that is not there. */
void kit_status(struct hf_conform *t, const char *expected, const char *id)
{
    const struct hf_work *work = kit_row(t, id);
    if (!t->failed && !same(expected, work->status))
        kit_fail(t, "status: expected %s, found %s (%s)", expected,
                 work->status ? work->status : "no row",
                 work->status_reason ? work->status_reason : "no reason");
}

bool same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool begins(const char *text, const char *prefix)
{
    return text && strstr(text, prefix) == text;
}

bool contains(const char *text, const char *part)
{
    return text && strstr(text, part);
}

/* ---- calls ---------------------------------------------------------------------------- */

static const struct hf_err untouched = { 4711, "kit", "left as it was" };

struct hf_err *kit_err(struct hf_conform *t)
{
    t->err = untouched;
    return &t->err;
}

int kit_called(struct hf_conform *t, int code)
{
    if (code)
        return code;
    if (memcmp(&t->err, &untouched, sizeof(untouched)) != 0)
        kit_fail(t, "the call succeeded and left %s in err (%s: %s)",
                 hf_err_wire(t->err.code), t->err.field, t->err.message);
    t->err = (struct hf_err){ 0 };
    return 0;
}

/* ---- time and chance ------------------------------------------------------------------ */

static hf_ms wall_ms(void *user)
{
    return ((struct hf_conform *)user)->wall;
}

static hf_ms mono_ms(void *user)
{
    return ((struct hf_conform *)user)->mono;
}

static void wait_ms(void *user, hf_ms ms)
{
    struct hf_conform *t = user;
    t->wall += ms;
    t->mono += ms;
}

/* SplitMix64: every run of a case draws the same. */
static int fill(void *user, void *out, size_t bytes)
{
    struct hf_conform *t = user;
    unsigned char *at = out;
    for (size_t i = 0; i < bytes; i++) {
        t->seed += 0x9e3779b97f4a7c15u;
        uint64_t z = t->seed;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        at[i] = (unsigned char)(z >> 56);
    }
    return 0;
}

void kit_advance(struct hf_conform *t, hf_ms ms)
{
    t->wall += ms;
    t->mono += ms;
}

/* ---- handles -------------------------------------------------------------------------- */

static void drop_store(void *at)
{
    hf_store_close(at);
}

static struct hf_store *another(struct hf_conform *t)
{
    struct hf_store *store = NULL;
    if (t->failed)
        return NULL;
    t->code = kit_called(
        t, t->factory->again(t->factory->user, &t->options, &store, kit_err(t)));
    if (t->code) {
        kit_code(t, "opening the store again", 0, t->code);
        return NULL;
    }
    return store;
}

void kit_reopen(struct hf_conform *t)
{
    if (t->failed)
        return;
    hf_store_close(t->store);
    t->store = NULL;
    t->store = another(t);
}

struct hf_store *kit_second(struct hf_conform *t)
{
    struct hf_store *store = another(t);
    if (store)
        kit_keep(t, store, drop_store);
    return store;
}

struct hf_store *kit_use(struct hf_conform *t, struct hf_store *store)
{
    struct hf_store *before = t->store;
    if (store)
        t->store = store;
    return before;
}

/* ---- running --------------------------------------------------------------------------- */

static void begin(struct hf_conform *t, const struct hf_conform_case *one)
{
    t->file = one->name;
    t->wall = EPOCH_MS;
    t->mono = 5000000;
    t->seed = 20260101;
    t->clock = (struct hf_clock){ t, wall_ms, mono_ms, wait_ms };
    t->random = (struct hf_random){ t, fill };
    t->who = (struct hf_caller){ .size = sizeof(t->who) };
    t->options = (struct hf_store_options){
        .size = sizeof(t->options),
        .alloc = hf_alloc_system(),
        .clock = &t->clock,
        .random = &t->random,
        .inline_mode = true,
    };
    if (t->factory->size != sizeof(*t->factory)) {
        kit_fail(t, "the factory's size is %lu, not %zu", (unsigned long)t->factory->size,
                 sizeof(*t->factory));
        return;
    }
    if ((one->needs & HF_CONFORM_AGAIN) && !t->factory->again) {
        kit_fail(t, "the factory cannot open a store again");
        return;
    }
    if (one->needs & t->factory->without) {
        kit_fail(t, "the factory's stores do not have what this needs");
        return;
    }
    t->code = kit_called(
        t, t->factory->open(t->factory->user, &t->options, &t->store, kit_err(t)));
    kit_code(t, "opening a fresh store", 0, t->code);
}

int hf_conform_run(const struct hf_conform_case *one,
                   const struct hf_conform_factory *factory,
                   struct hf_conform_failure *ret_failure)
{
    struct hf_conform t = { .factory = factory, .failure = ret_failure };
    *ret_failure = (struct hf_conform_failure){ { 0 } };
    begin(&t, one);
    if (!t.failed)
        one->body(&t);
    if (!t.failed && t.store) {
        t.file = "after the case";
        t.line = 0;
        kit_fold(&t);
    }
    drop_all(&t);
    hf_store_close(t.store);
    if (factory->discard)
        factory->discard(factory->user);
    return t.failed ? -1 : 0;
}
