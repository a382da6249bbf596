/* A whole host for the turn machine: a scripted model, two tools, and a save at every step.
 *
 *   turn_loop [FILE]          run the turn, or go on with the one that FILE holds
 *   turn_loop FILE STEPS      the same, but die without a word after so many effects
 *
 * Kill it where you like and start it again: it goes on with the effect that was out, under
 * the same id, and no tool that has answered runs a second time.
 *
 * FILE holds the save, FILE.0, FILE.1, … the records of the history, one JSON text per file.
 * A record is in memory only while the turn looks at it; a save only refers to them.
 *
 *   cc turn_loop.c $(pkg-config --cflags --libs holdfast) */
#define _POSIX_C_SOURCE 200809L /* also under -std=c11 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <holdfast/turn_json.h>

#define TEXT(s) ((struct hf_span){ (s), strlen(s) })
#define CALL(i, t, a)                                                                    \
    ((struct hf_part){ HF_PART_TOOL_CALL, .call_id = (i), .tool = (t),                   \
                       .content = TEXT(a) })
#define must(rc) ((rc) ? die(err.message) : (void)0)

static struct hf_err err;
static const char *path;

static void die(const char *why)
{
    fprintf(stderr, "turn_loop: %s\n", why);
    exit(1);
}

/* The model: first it asks for both tools, then it answers. */
static void call_model(struct hf_turn *turn, const struct hf_effect *effect)
{
    struct hf_part calls[] = { CALL("a", "add", "[2,3]"), CALL("b", "now", "{}") };
    struct hf_part answer = { .content = TEXT("2 + 3 is 5, and it is noon.") };
    bool first = effect->iteration == 0;
    struct hf_llm_response reply = { .size = sizeof(reply), .part_count = first ? 2 : 1 };
    reply.parts = first ? calls : &answer;
    reply.reason = first ? HF_REASON_TOOL_USE : HF_REASON_STOP;
    must(hf_turn_llm_done(turn, effect->id, &reply, &err));
}

/* Whole or not at all: a kill leaves the old file or the new one. */
static void write_file(const char *name, const struct hf_bytes *bytes)
{
    char next[4096];
    snprintf(next, sizeof(next), "%s.next", name);
    FILE *file = fopen(next, "wb");
    if (!file || fwrite(bytes->at, 1, bytes->len, file) != bytes->len || fflush(NULL) ||
        fsync(fileno(file)) || fclose(file) || rename(next, name))
        die("a file cannot be written");
}

static void save(const struct hf_turn *turn)
{
    struct hf_bytes bytes = { 0 };
    must(hf_turn_save(turn, &bytes, &err));
    write_file(path, &bytes);
    hf_bytes_free(&bytes);
}

static struct hf_span read_file(const char *name)
{
    static char bytes[1 << 20];
    FILE *file = fopen(name, "rb");
    size_t len = file ? fread(bytes, 1, sizeof(bytes), file) : 0;
    (void)(file && fclose(file)); /* it was only read */
    return (struct hf_span){ bytes, len };
}

/* The history: a page is one record, read when it is pinned and freed when it is put. */
static struct page {
    struct hf_decoded *owner;
    const struct hf_record *record;
    int pins;
} pages[64];

static const char *page_name(uint64_t i)
{
    static char name[4096];
    snprintf(name, sizeof(name), "%s.%d", path, (int)i);
    return name;
}

static const struct hf_record *get_page(void *user, uint64_t i)
{
    struct page *page = &pages[i];
    (void)user;
    if (page->pins == 0 && hf_record_decode(NULL, read_file(page_name(i)), &page->owner,
                                            &page->record, &err))
        return NULL; /* the call that needed it fails with HF_EBASE */
    page->pins++;
    return page->record;
}

static void put_page(void *user, uint64_t i, const struct hf_record *record)
{
    (void)user;
    (void)record;
    if (--pages[i].pins == 0)
        hf_decoded_free(pages[i].owner);
}

static struct hf_base base = { .id = "demo", .get = get_page, .put = put_page };

/* Stores the records of a PROGRESS and moves them to the base. Storing them again after a
 * kill writes the same bytes. */
static void store_records(struct hf_turn *turn, const struct hf_effect *effect)
{
    for (; base.count < effect->to; base.count++) {
        struct hf_bytes json = { 0 };
        const struct hf_record *record = hf_turn_record(turn, base.count);
        must(hf_record_encode(NULL, record, &json, &err));
        must(hf_record_chain(base.digest, record, base.digest, &err));
        write_file(page_name(base.count), &json);
        hf_bytes_free(&json);
    }
    must(hf_turn_rebase(turn, &base, &err));
    printf("stored records %d to %d\n", (int)effect->from, (int)effect->to);
}

/* The tools that are not answered, one at a time, each followed by a save. The printed line
 * represents an effect that must not happen twice. */
static void run_tools(struct hf_turn *turn, const struct hf_effect *effect)
{
    for (size_t i = 0; hf_turn_outstanding(turn) == effect->id; i++) {
        const struct hf_tool_call *call = &effect->calls[i];
        if (call->answered)
            continue;
        printf("tool %s(%s)\n", call->tool, (const char *)call->args.at);
        struct hf_tool_result result = { .call_id = call->call_id };
        result.value = strcmp(call->tool, "add") ? TEXT("\"12:00\"") : TEXT("5");
        must(hf_turn_tool_results(turn, effect->id, &result, 1, &err));
        save(turn);
    }
}

static void open_turn(const struct hf_setup *setup, struct hf_turn **ret_turn)
{
    struct hf_part part = { .content = TEXT("What is 2 + 3, and what time is it?") };
    struct hf_message question = { .id = "q", .parts = &part, .part_count = 1 };
    struct hf_turn_start start = { sizeof(start), .session_id = "demo", .turn_id = "t1" };
    struct hf_restore restore = { sizeof(restore), .base = &base };
    struct hf_save_info info;
    struct hf_span old = read_file(path);
    start.base = &base;
    start.inputs = &(struct hf_record){ .message = &question };
    start.input_count = 1;
    if (old.len == 0) {
        must(hf_turn_new(setup, &start, ret_turn, &err));
        return;
    }
    must(hf_turn_peek(old, &info, &err));
    base.count = info.base_count;
    memcpy(base.digest, info.base_digest, sizeof(base.digest));
    must(hf_turn_restore(setup, old, &restore, ret_turn, &err));
}

int main(int argc, char **argv)
{
    struct hf_surface *surface = NULL;
    struct hf_setup *setup = NULL;
    struct hf_turn *turn = NULL;
    struct hf_effect effect;
    const char *tools = "[{\"name\":\"add\"},{\"name\":\"now\"}]";
    long steps = argc > 2 ? strtol(argv[2], NULL, 10) : -1;
    path = argc > 1 ? argv[1] : "turn.save";
    must(hf_surface_new(NULL, TEXT("You are brief."), TEXT(tools), &surface, &err));
    struct hf_turn_config config = { sizeof(config), .model = "demo", .turn_budget = 5 };
    config.surface = surface;
    config.protocol = hf_protocol_standard();
    must(hf_setup_new(&config, &setup, &err));
    for (open_turn(setup, &turn); !hf_turn_is_done(turn); steps--) {
        must(hf_turn_poll(turn, &effect, &err));
        if (steps == 0)
            _exit(9); /* as if the machine had lost its power */
        if (effect.kind == HF_EFFECT_LLM_CALL)
            call_model(turn, &effect);
        if (effect.kind == HF_EFFECT_TOOL_CALLS)
            run_tools(turn, &effect);
        if (effect.kind == HF_EFFECT_CHECKPOINT)
            must(hf_turn_checkpoint_done(turn, effect.id, NULL, &err));
        if (effect.kind == HF_EFFECT_PROGRESS)
            store_records(turn, &effect);
        save(turn);
    }
    printf("done: %s\n", (const char *)hf_turn_outcome(turn)->text.at);
    hf_turn_free(turn);
    hf_setup_free(setup);
    hf_surface_free(surface);
}
