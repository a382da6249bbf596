/* A whole host for the turn machine: a scripted model, two tools, and a save at every step.
 *
 *   turn_loop FILE            run the turn, or go on with the one that FILE holds
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

static struct hf_err err;

static void must(int rc)
{
    if (rc == 0)
        return;
    fprintf(stderr, "turn_loop: %s: %s\n", hf_err_wire(rc), err.message);
    exit(1);
}

/* The model: first it asks for both tools, then it answers. */
static void call_model(struct hf_turn *turn, const struct hf_effect *effect)
{
    struct hf_part calls[] = {
        { .kind = HF_PART_TOOL_CALL,
          .call_id = "a",
          .tool = "add",
          .content = TEXT("[2,3]") },
        { .kind = HF_PART_TOOL_CALL,
          .call_id = "b",
          .tool = "now",
          .content = TEXT("{}") },
    };
    struct hf_part answer = { .content = TEXT("2 + 3 is 5, and it is noon.") };
    bool first = effect->iteration == 0;
    struct hf_llm_response reply = { .size = sizeof(reply),
                                     .parts = first ? calls : &answer,
                                     .part_count = first ? 2 : 1,
                                     .reason = first ? HF_REASON_TOOL_USE
                                                     : HF_REASON_STOP,
                                     .usage = { .input = 20, .output = 10 } };
    must(hf_turn_llm_done(turn, effect->id, &reply, &err));
}

/* Both tools. The printed line stands for what must not happen twice. */
static struct hf_tool_result run_tool(const struct hf_tool_call *call)
{
    bool add = strcmp(call->tool, "add") == 0;
    printf("tool %s(%s)\n", call->tool, (const char *)call->args.at);
    return (struct hf_tool_result){ .call_id = call->call_id,
                                    .value = add ? TEXT("5") : TEXT("\"12:00\"") };
}

/* Whole or not at all: a kill leaves the old save or the new one. */
static void save(const struct hf_turn *turn, const char *path)
{
    char next[4096];
    struct hf_bytes bytes = { 0 };
    must(hf_turn_save(turn, &bytes, &err));
    snprintf(next, sizeof(next), "%s.next", path);
    FILE *file = fopen(next, "wb");
    if (!file || fwrite(bytes.at, 1, bytes.len, file) != bytes.len || fflush(file) ||
        fsync(fileno(file)) || fclose(file) || rename(next, path)) {
        perror(path);
        exit(1);
    }
    hf_bytes_free(&bytes);
}

/* Does what the effect asks; one tool at a time, each followed by a save. */
static void perform(struct hf_turn *turn, const struct hf_effect *effect,
                    const char *path)
{
    if (effect->kind == HF_EFFECT_LLM_CALL)
        call_model(turn, effect);
    for (size_t i = 0; i < effect->call_count; i++) {
        if (effect->calls[i].answered)
            continue;
        struct hf_tool_result result = run_tool(&effect->calls[i]);
        must(hf_turn_tool_results(turn, effect->id, &result, 1, &err));
        save(turn, path);
        if (hf_turn_outstanding(turn) != effect->id)
            break; /* all are answered: what the effect points to is gone */
    }
    if (effect->kind == HF_EFFECT_CHECKPOINT)
        must(hf_turn_checkpoint_done(turn, effect->id, NULL, &err));
    if (effect->kind == HF_EFFECT_PROGRESS)
        printf("store records %d to %d\n", (int)effect->from, (int)effect->to);
    if (effect->kind == HF_EFFECT_DONE)
        printf("done: %s\n", (const char *)effect->outcome->text.at);
    save(turn, path);
}

static struct hf_turn *open_turn(const struct hf_setup *setup, const char *path)
{
    static char bytes[1 << 20];
    struct hf_turn *turn = NULL;
    FILE *file = fopen(path, "rb");
    if (file) {
        struct hf_span old = { bytes, fread(bytes, 1, sizeof(bytes), file) };
        fclose(file);
        must(hf_turn_restore(setup, old, NULL, &turn, &err));
        return turn;
    }
    struct hf_part part = { .content = TEXT("What is 2 + 3, and what time is it?") };
    struct hf_message question = { .id = "q", .parts = &part, .part_count = 1 };
    struct hf_record input = { .message = &question };
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = "demo",
                                   .turn_id = "turn-1",
                                   .inputs = &input,
                                   .input_count = 1 };
    must(hf_turn_new(setup, &start, &turn, &err));
    return turn;
}

int main(int argc, char **argv)
{
    struct hf_surface *surface = NULL;
    struct hf_setup *setup = NULL;
    struct hf_effect effect;
    long steps = argc > 2 ? strtol(argv[2], NULL, 10) : -1;
    if (argc < 2)
        return 2;
    must(hf_surface_new(NULL, TEXT("You are brief."),
                        TEXT("[{\"name\":\"add\"},{\"name\":\"now\"}]"), &surface, &err));
    struct hf_turn_config config = { .size = sizeof(config),
                                     .surface = surface,
                                     .protocol = hf_protocol_standard(),
                                     .model = "scripted",
                                     .turn_budget = 5 };
    must(hf_setup_new(&config, &setup, &err));
    struct hf_turn *turn = open_turn(setup, argv[1]);
    for (; !hf_turn_is_done(turn); steps--) {
        must(hf_turn_poll(turn, &effect, &err));
        if (steps == 0)
            _exit(9); /* as if the machine had lost its power */
        perform(turn, &effect, argv[1]);
        fflush(stdout);
    }
    hf_turn_free(turn);
    hf_setup_free(setup);
    hf_surface_free(surface);
    return 0;
}
