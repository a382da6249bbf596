/* A whole host for the turn machine: a scripted model, two tools, and a save at every step.
 *
 *   turn_loop [FILE]          run the turn, or go on with the one that FILE holds
 *   turn_loop FILE STEPS      the same, but die without a word after so many effects
 *
 * Kill it where you like and start it again: it goes on with the effect that was out, under
 * the same id, and no tool that has answered runs a second time.
 *
 *   cc turn_loop.c $(pkg-config --cflags --libs holdfast)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <holdfast/turn.h>

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

/* Whole or not at all: a kill leaves the old save or the new one. */
static void save(const struct hf_turn *turn)
{
    char next[4096];
    struct hf_bytes bytes = { 0 };
    must(hf_turn_save(turn, &bytes, &err));
    snprintf(next, sizeof(next), "%s.next", path);
    FILE *file = fopen(next, "wb");
    if (!file || fwrite(bytes.at, 1, bytes.len, file) != bytes.len || fflush(NULL) ||
        fsync(fileno(file)) || fclose(file) || rename(next, path))
        die("the save cannot be written");
    hf_bytes_free(&bytes);
}

/* The tools that are not answered, one at a time, each followed by a save. The printed line
 * stands for what must not happen twice. */
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
    static char bytes[1 << 20];
    struct hf_part part = { .content = TEXT("What is 2 + 3, and what time is it?") };
    struct hf_message question = { .id = "q", .parts = &part, .part_count = 1 };
    struct hf_turn_start start = { sizeof(start), .session_id = "demo", .turn_id = "t1" };
    start.inputs = &(struct hf_record){ .message = &question };
    start.input_count = 1;
    FILE *file = fopen(path, "rb");
    struct hf_span old = { bytes, file ? fread(bytes, 1, sizeof(bytes), file) : 0 };
    must(file ? hf_turn_restore(setup, old, NULL, ret_turn, &err)
              : hf_turn_new(setup, &start, ret_turn, &err));
    if (file)
        fclose(file);
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
            printf("store records %d to %d\n", (int)effect.from, (int)effect.to);
        save(turn);
    }
    printf("done: %s\n", (const char *)hf_turn_outcome(turn)->text.at);
    hf_turn_free(turn);
    hf_setup_free(setup);
    hf_surface_free(surface);
}
