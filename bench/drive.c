/* What the driver of a turn costs: instructions per effect, and the memory of many turns.
 *
 *   bench_drive               all of it; needs valgrind for the instructions
 *   bench_drive effect COUNT  so many rounds of a model call and a tool call, to be counted
 *
 * The store answers at once and keeps nothing. Exits with 1 when a limit is passed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/sys/drive.h>

#include "count.h"

#define EFFECT_MAX 20000.0 /* instructions of the driver outside store and machine */
#define TURNS 10000
#define TURN_MAX 8192 /* bytes beyond the records */
#define REPLY_BYTES 2048

static struct hf_err err;
static struct hf_toolset *tools;
static struct hf_surface *surface;
static struct hf_setup *setup;
static char reply_text[REPLY_BYTES + 1];

static void must(int rc)
{
    if (rc == 0)
        return;
    fprintf(stderr, "bench_drive: %s\n", err.message);
    exit(1);
}

static struct hf_span span(const char *text)
{
    return (struct hf_span){ text, strlen(text) };
}

static void run_nothing(void *user, struct hf_invocation *call)
{
    (void)user;
    (void)call;
}

static void open_setup(void)
{
    struct hf_tool tool = { .size = sizeof(tool),
                            .name = "add",
                            .recovery = HF_RECOVERY_SAFE,
                            .run = run_nothing };
    memset(reply_text, 'x', REPLY_BYTES);
    tool.schema = span(
        "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}");
    must(hf_toolset_new(NULL, &tools, &err));
    must(hf_toolset_add(tools, &tool, &err));
    must(hf_surface_new(NULL, span("Be brief."), hf_toolset_json(tools), &surface, &err));
    struct hf_turn_config config = { .size = sizeof(config),
                                     .protocol = hf_protocol_standard(),
                                     .surface = surface,
                                     .model = "model-1",
                                     .turn_budget = HF_UNBOUNDED };
    must(hf_setup_new(&config, &setup, &err));
}

static struct hf_drive *new_drive(void)
{
    static const struct hf_base base = { .id = "0" };
    struct hf_drive *drive = NULL;
    struct hf_part part = { .content = span("Add the numbers, please.") };
    struct hf_message message = { .id = "m1", .parts = &part, .part_count = 1 };
    struct hf_record input = { .message = &message };
    struct hf_drive_config config = { .size = sizeof(config),
                                      .setup = setup,
                                      .tools = tools };
    struct hf_drive_turn turn = { .size = sizeof(turn),
                                  .session_id = "session-1",
                                  .turn_id = "turn-1",
                                  .base = &base,
                                  .inputs = &input,
                                  .input_count = 1,
                                  .fence = 1,
                                  .wall_ms = 1,
                                  .mono_ms = 1 };
    must(hf_drive_new(&config, &turn, &drive, &err));
    return drive;
}

/* Takes actions, answering STORE at once, until the driver waits for the world. Returns the last
 * action that must be answered. */
static struct hf_drive_action run_to_wait(struct hf_drive *drive)
{
    struct hf_drive_action action, last = { .kind = HF_DRIVE_END };
    while (hf_drive_next(drive, &action)) {
        if (action.kind == HF_DRIVE_STORE)
            hf_drive_feed(drive, &(struct hf_drive_event){ .kind = HF_DRIVEN_STORED,
                                                           .wall_ms = 1,
                                                           .mono_ms = 1 });
        else if (action.kind == HF_DRIVE_MODEL || action.kind == HF_DRIVE_TOOL)
            last = action;
        else if (action.kind != HF_DRIVE_EMIT) {
            fprintf(stderr, "bench_drive: unexpected %s: %s\n",
                    hf_drive_action_name(action.kind), action.message);
            exit(1);
        }
    }
    return last;
}

/* The counter of instructions finds the function by its name. */
#ifdef __clang__
#    define KEPT __attribute__((noinline))
#else
#    define KEPT __attribute__((noinline, noclone))
#endif

/* One effect: its answer, the step that stores it, and the next effect's start. */
KEPT static struct hf_drive_action one_effect(struct hf_drive *drive,
                                              const struct hf_drive_event *event)
{
    hf_drive_feed(drive, event);
    return run_to_wait(drive);
}

static struct hf_drive_action answer_model(struct hf_drive *drive, uint64_t id)
{
    struct hf_part parts[] = { { .content = span(reply_text) },
                               { .kind = HF_PART_TOOL_CALL,
                                 .call_id = "p1",
                                 .tool = "add",
                                 .content = span("{\"n\":1}") } };
    struct hf_llm_response response = { .size = sizeof(response),
                                        .parts = parts,
                                        .part_count = 2,
                                        .reason = HF_REASON_TOOL_USE,
                                        .usage = { .input = 10, .output = 5 } };
    struct hf_drive_event event = { .kind = HF_DRIVEN_REPLY,
                                    .wall_ms = 1,
                                    .mono_ms = 1,
                                    .id = id,
                                    .response = &response };
    return one_effect(drive, &event);
}

static struct hf_drive_action answer_tool(struct hf_drive *drive,
                                          const struct hf_drive_call *call)
{
    struct hf_tool_result value = { .value = span("1") };
    struct hf_invocation_result result = { .result = &value };
    struct hf_drive_event event = { .kind = HF_DRIVEN_ANSWER,
                                    .wall_ms = 1,
                                    .mono_ms = 1,
                                    .call_id = call->key.call_id,
                                    .result = &result };
    return one_effect(drive, &event);
}

static void run_effects(int rounds)
{
    struct hf_drive *drive = new_drive();
    struct hf_drive_action action = run_to_wait(drive);
    for (int i = 0; i < rounds; i++) {
        action = answer_model(drive, action.id);
        action = answer_tool(drive, action.call);
    }
    hf_drive_free(drive);
}

/* Instructions of one effect: the slope between two turns. Half of the effects are model calls. */
static double per_effect(const char *const *apart)
{
    const char *few[] = { "effect", "4", NULL }, *many[] = { "effect", "12", NULL };
    return (bench_instructions_apart("one_effect", apart, many) -
            bench_instructions_apart("one_effect", apart, few)) /
           16;
}

static void count_effects(void)
{
    /* The machine, and its codec of records and replies. */
    static const char *const machine[] = { "hf_turn_poll",
                                           "hf_turn_llm_done",
                                           "hf_turn_tool_results",
                                           "hf_turn_rebase",
                                           "hf_turn_save",
                                           "hf_turn_checkpoint_done",
                                           "hf_record_chain",
                                           "hf_record_encode",
                                           "hf_record_decode",
                                           "hf_record_is_step",
                                           "hf_llm_response_encode",
                                           "hf_tool_result_encode",
                                           NULL };
    double all = per_effect(NULL), each = per_effect(machine);
    printf("instructions per effect, replies of 2 KiB: %.0f, without the machine %.0f "
           "(limit %.0f)",
           all, each, EFFECT_MAX);
    bench_check(each <= EFFECT_MAX);
}

static void count_memory(void)
{
    struct hf_drive **drives = calloc(TURNS, sizeof(*drives));
    size_t records = 0, all = 0, bytes = 0;
    if (!drives)
        exit(1);
    long before = bench_resident_kb();
    for (int i = 0; i < TURNS; i++) {
        drives[i] = new_drive();
        (void)run_to_wait(drives[i]);
        bytes += hf_drive_bytes(drives[i], &records);
        all += records;
    }
    double held = (double)(bytes - all) / TURNS;
    double resident = ((double)(bench_resident_kb() - before) * 1024 - (double)all) /
                      TURNS;
    printf(
        "%d turns with a model call out: %.0f bytes each beyond records, %.0f resident "
        "(limit %d)",
        TURNS, held, resident, TURN_MAX);
    bench_check(held <= TURN_MAX && resident <= TURN_MAX);
    for (int i = 0; i < TURNS; i++)
        hf_drive_free(drives[i]);
    free(drives);
}

int main(int argc, char **argv)
{
    open_setup();
    if (argc == 3 && strcmp(argv[1], "effect") == 0) {
        run_effects((int)strtol(argv[2], NULL, 10));
    } else {
        count_effects();
        count_memory();
    }
    hf_setup_free(setup);
    hf_surface_free(surface);
    hf_toolset_unref(tools);
    return bench_passed() ? 0 : 1;
}
