/* A whole host for the code protocol: a scripted model writes two cells with parallel calls.
 *
 *   cell_loop [FILE]         run the turn, or go on with the one that FILE holds
 *   cell_loop FILE CALLS     the same, but die without a word after so many tool calls
 *
 * In addition to FILE, where the turn is saved, FILE.journal has a line for every call
 * that was answered, written before the cell sees the answer, and FILE.<hash> the
 * bindings. Kill it in the middle of the second cell and start it again: the cell is run
 * from its first line over what the journal has, asks only for the calls that have no
 * answer, and goes on.
 *
 *   cc cell_loop.c $(pkg-config --cflags --libs holdfast) */
#define _POSIX_C_SOURCE 200809L /* also under -std=c11 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <holdfast/code.h>
#include <holdfast/exec.h>

#define TEXT(s) ((struct hf_span){ (s), strlen(s) })
#define must(rc) ((rc) ? die(err.message) : (void)0)
#define FILE_MAX (1 << 20)
#define OPS_MAX 64
#define CALLS_MAX 256

static struct hf_err err;
static const char *path;
static long calls_left = -1;

static void die(const char *why)
{
    fprintf(stderr, "cell_loop: %s\n", why);
    exit(1);
}

static const char *file_name(const char *suffix)
{
    static char name[4096];
    snprintf(name, sizeof(name), "%s%s", path, suffix);
    return name;
}

/* All of a file, NUL-terminated; empty when there is none. The caller frees it. */
static struct hf_span read_file(const char *suffix)
{
    char *bytes = calloc(1, FILE_MAX);
    FILE *file = fopen(file_name(suffix), "rb");
    size_t len = file && bytes ? fread(bytes, 1, FILE_MAX - 1, file) : 0;
    if (file)
        fclose(file);
    return (struct hf_span){ bytes, len };
}

/* Whole or not at all: a kill leaves the old file or the new one. */
static void write_file(const char *suffix, struct hf_span bytes)
{
    char next[4096];
    snprintf(next, sizeof(next), "%s.next", path);
    FILE *file = fopen(next, "wb");
    if (!file || fwrite(bytes.at, 1, bytes.len, file) != bytes.len || fflush(file) ||
        fsync(fileno(file)) || fclose(file) || rename(next, file_name(suffix)))
        die("a file cannot be written");
}

static void save(const struct hf_turn *turn)
{
    struct hf_bytes bytes = { 0 };
    must(hf_turn_save(turn, &bytes, &err));
    write_file("", (struct hf_span){ bytes.at, bytes.len });
    hf_bytes_free(&bytes);
}

/* The model: two cells, then it is told what they printed and answers. */
static void call_model(struct hf_turn *turn, const struct hf_effect *effect)
{
    static const char *const replies[] = {
        "I look up both harbours.\n<lua>\n"
        "local r = call_batch{{\"tide\", {harbour = \"Brest\"}}, "
        "{\"tide\", {harbour = \"Saint-Malo\"}}}\n"
        "heights = {Brest = r[1].value.height, [\"Saint-Malo\"] = r[2].value.height}\n"
        "print(heights)\n</lua>\n",
        "Now the boats there.\n<lua>\n"
        "local asked = {}\n"
        "for name in pairs(heights) do asked[#asked + 1] = {\"boats\", {harbour = name}} "
        "end\n"
        "local total = 0\n"
        "for i, r in ipairs(call_batch(asked)) do total = total + r.value.count end\n"
        "local best = call(\"boats\", {harbour = \"Brest\", afloat = true})\n"
        "finish({boats = total, afloat = best.count})\n</lua>\n",
    };
    struct hf_part part = { .content = TEXT(replies[effect->iteration > 0]) };
    struct hf_llm_response reply = {
        .size = sizeof(reply), .parts = &part, .part_count = 1, .reason = HF_REASON_STOP
    };
    must(hf_turn_llm_done(turn, effect->id, &reply, &err));
}

/* What was written down of this cell: one record for each operation, with its answers. The
 * texts stay in the file's bytes. */
struct journal {
    struct hf_span bytes;
    struct hf_op_record records[OPS_MAX];
    struct hf_tool_result results[CALLS_MAX];
    size_t count;
};

static char *cut(char **at)
{
    char *field = *at;
    *at += strcspn(*at, "\t");
    if (**at)
        *(*at)++ = '\0';
    return field;
}

/* A line: effect, ordinal, tool (none of a batch), arguments, call id, value. JSON has no
 * tabs. */
static void read_journal(struct journal *journal, uint64_t effect)
{
    size_t calls = 0;
    *journal = (struct journal){ .bytes = read_file(".journal") };
    char *next = (char *)(uintptr_t)journal->bytes.at;
    while (*next && calls < CALLS_MAX && journal->count < OPS_MAX) {
        char *line = next;
        next += strcspn(next, "\n");
        if (!*next)
            return; /* torn by a kill: that call has no answer */
        *next++ = '\0';
        if (strtoull(cut(&line), NULL, 10) != effect)
            continue;
        uint64_t ordinal = strtoull(cut(&line), NULL, 10);
        struct hf_op_record *record = &journal->records[journal->count];
        if (journal->count > 0 && record[-1].ordinal == ordinal)
            record--;
        else
            journal->count++;
        if (record->result_count == 0)
            record->results = &journal->results[calls];
        record->ordinal = ordinal;
        const char *tool = cut(&line);
        record->kind = *tool ? HF_OP_CALL : HF_OP_CALL_BATCH;
        record->name = *tool ? tool : NULL;
        const char *args = cut(&line);
        record->args = TEXT(args);
        journal->results[calls].call_id = cut(&line);
        journal->results[calls++].value = TEXT(line);
        record->result_count++;
    }
}

/* Before the cell sees an answer it is on the disk. */
static void write_journal(uint64_t effect, const struct hf_op *op,
                          const struct hf_op_call *call, const char *value)
{
    FILE *file = fopen(file_name(".journal"), "ab");
    if (!file ||
        fprintf(file, "%llu\t%llu\t%s\t%.*s\t%s\t%s\n", (unsigned long long)effect,
                (unsigned long long)op->ordinal, op->name ? op->name : "",
                (int)op->args.len, (const char *)op->args.at, call->id, value) < 0 ||
        fflush(file) || fsync(fileno(file)) || fclose(file))
        die("the journal cannot be written");
}

/* The calls that have no answer, one at a time; a real host runs them at once. The printed
 * line represents an effect that must not happen twice. */
static void run_calls(struct hf_cell *cell, uint64_t effect, const struct hf_op *op)
{
    size_t count = op->call_count;
    uint64_t ordinal = op->ordinal;
    for (size_t i = 0; i < count; i++) {
        const struct hf_op_call *call = &op->calls[i];
        if (call->answered)
            continue;
        if (calls_left-- == 0)
            _exit(9); /* as if the machine had lost its power */
        printf("call %s %s(%.*s)\n", call->id, call->tool, (int)call->args.len,
               (const char *)call->args.at);
        fflush(stdout);
        bool tide = strcmp(call->tool, "tide") == 0;
        const char *value = tide ? "{\"height\":7.5}" : "{\"count\":12}";
        struct hf_tool_result result = { .call_id = call->id, .value = TEXT(value) };
        write_journal(effect, op, call, value);
        must(hf_cell_results(cell, ordinal, &result, 1, &err));
    }
}

/* Bindings are kept under their hash; the text is freed once the cell has ended. */
static int find_bindings(void *user, const char *hash, struct hf_span *ret_sealed)
{
    char suffix[80];
    struct hf_span *stored = user;
    snprintf(suffix, sizeof(suffix), ".%s", hash);
    *stored = *ret_sealed = read_file(suffix);
    return stored->len > 0 ? 0 : HF_EBLOB;
}

static void run_cell(struct hf_turn *turn, const struct hf_effect *effect)
{
    static const char *const tools[] = { "tide", "boats" };
    static struct journal journal;
    struct hf_cell *cell = NULL;
    const struct hf_op *op = NULL;
    char id[24];
    char suffix[80];
    struct hf_span stored = { 0 };
    struct hf_bytes sealed = { 0 };
    read_journal(&journal, effect->id);
    snprintf(id, sizeof(id), "%llu", (unsigned long long)effect->id);
    struct hf_cell_start start = { .size = sizeof(start),
                                   .id = id,
                                   .code = effect->code,
                                   .bindings_hash = effect->bindings,
                                   .user = &stored,
                                   .resolve = find_bindings,
                                   .given = effect->given,
                                   .tools = tools,
                                   .tool_count = 2,
                                   .clock = hf_clock_system(),
                                   .journal = journal.records,
                                   .journal_count = journal.count };
    must(hf_cell_new(hf_engine_lua(), &start, &cell, &err));
    for (must(hf_cell_poll(cell, &op, &err)); op; must(hf_cell_poll(cell, &op, &err))) {
        if (op->kind == HF_OP_PRINT)
            printf("print %.*s\n", (int)op->args.len, (const char *)op->args.at);
        else if (op->call_count > 0)
            run_calls(cell, effect->id, op);
        else
            die("this host has only tools");
    }
    const struct hf_exec_result *result = hf_cell_result(cell);
    snprintf(suffix, sizeof(suffix), ".%s", result->bindings_after);
    must(hf_bindings_seal(NULL, hf_engine_lua(), hf_cell_bindings(cell), &sealed, &err));
    write_file(suffix, (struct hf_span){ sealed.at, sealed.len });
    hf_bytes_free(&sealed);
    must(hf_turn_exec_done(turn, effect->id, result, &err));
    hf_cell_free(cell);
    free((void *)(uintptr_t)stored.at);
    free((void *)(uintptr_t)journal.bytes.at);
}

static void open_turn(const struct hf_setup *setup, struct hf_turn **ret_turn)
{
    struct hf_part part = { .content = TEXT("How many boats are there, and afloat?") };
    struct hf_message question = { .id = "q", .parts = &part, .part_count = 1 };
    struct hf_turn_start start = { sizeof(start), .session_id = "demo", .turn_id = "t1" };
    start.inputs = &(struct hf_record){ .message = &question };
    start.input_count = 1;
    struct hf_span old = read_file("");
    must(old.len ? hf_turn_restore(setup, old, NULL, ret_turn, &err)
                 : hf_turn_new(setup, &start, ret_turn, &err));
    free((void *)(uintptr_t)old.at);
}

int main(int argc, char **argv)
{
    struct hf_surface *surface = NULL;
    struct hf_setup *setup = NULL;
    struct hf_turn *turn = NULL;
    struct hf_effect effect;
    const char *tools = "[{\"name\":\"tide\"},{\"name\":\"boats\"}]";
    path = argc > 1 ? argv[1] : "cells.save";
    if (argc > 2)
        calls_left = strtol(argv[2], NULL, 10);
    must(hf_code_surface(NULL, hf_protocol_code(), TEXT("You know harbours."),
                         TEXT(tools), &surface, &err));
    struct hf_turn_config config = { sizeof(config), .model = "demo", .turn_budget = 5 };
    config.surface = surface;
    config.protocol = hf_protocol_code();
    must(hf_setup_new(&config, &setup, &err));
    for (open_turn(setup, &turn); !hf_turn_is_done(turn); save(turn)) {
        must(hf_turn_poll(turn, &effect, &err));
        if (effect.kind == HF_EFFECT_LLM_CALL)
            call_model(turn, &effect);
        if (effect.kind == HF_EFFECT_EXEC_CODE) {
            save(turn); /* so that a kill in the cell comes back to it */
            run_cell(turn, &effect);
        }
        if (effect.kind == HF_EFFECT_CHECKPOINT)
            must(hf_turn_checkpoint_done(turn, effect.id, NULL, &err));
    }
    printf("done: %s\n", (const char *)hf_turn_outcome(turn)->value.at);
    hf_turn_free(turn);
    hf_setup_free(setup);
    hf_surface_free(surface);
}
