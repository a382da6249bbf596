/* What a turn costs: instructions an effect, bytes a waiting turn, 100,000 live turns, and
 * a save and restore over a long history against a short one.
 *
 *   bench_turn              all of it; needs valgrind for the instructions
 *   bench_turn history      effects over a long history, and a long turn
 *   bench_turn effect KIND BYTES COUNT BASE only that, to be counted by callgrind; over a
 *                                           base of so many messages
 *
 * Instructions are counted by callgrind, inside round_trip() alone, so they are the same
 * every time on one machine. The cost of a byte is the slope between two payloads. Exits
 * with 1 when a limit of the project is passed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <holdfast/code.h>

#include "count.h"

#define MANY_CALLS 5
#define FIXED_MAX 6000.0 /* an effect; of a batch, a call */
#define PER_BYTE_MAX 20.0
#define WAITING_MAX 4096
#define RATIO_MAX 1.2
#define LIVE 100000

/* The last four are of the code protocol; those with MANY are of a batch of MANY_CALLS. */
enum kind {
    TEXT,
    CALLS,
    CALLS_MANY,
    RESULT,
    RESULT_MANY,
    CHECKPOINT,
    SYNC,
    SLEEP,
    CODE_TEXT,
    CODE_CELL,
    CODE_FIX,
    CODE_DONE,
    KINDS
};
static const char *const kind_names[] = { "llm_text",    "llm_call",   "llm_5_calls",
                                          "tool_result", "5_results",  "checkpoint",
                                          "sync",        "llm_failed", "code_text",
                                          "code_cell",   "code_fix",   "code_done" };

static struct hf_surface *surface;
static struct hf_setup *setup;

static void must(int rc, const struct hf_err *err)
{
    if (rc == 0)
        return;
    fprintf(stderr, "bench_turn: %s\n", err->message);
    exit(1);
}

static struct hf_span span(const char *text)
{
    return (struct hf_span){ text, strlen(text) };
}

static void open_setup(enum kind kind)
{
    struct hf_err err = { 0 };
    must(hf_surface_new(NULL, span("You help."),
                        span("[{\"name\":\"add\"},{\"name\":\"sub\"}]"), &surface, &err),
         &err);
    struct hf_turn_config config = { .size = sizeof(config),
                                     .protocol = kind < CODE_TEXT ? hf_protocol_standard()
                                                                  : hf_protocol_code(),
                                     .surface = surface,
                                     .model = "model",
                                     .turn_budget = HF_UNBOUNDED,
                                     .sync = kind == SYNC };
    must(hf_setup_new(&config, &setup, &err), &err);
}

static struct hf_turn *new_turn(const struct hf_base *base)
{
    struct hf_err err = { 0 };
    struct hf_turn *turn = NULL;
    struct hf_part part = { .content = span("Add the numbers, please.") };
    struct hf_message message = { .id = "m1", .parts = &part, .part_count = 1 };
    struct hf_record input = { .message = &message };
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = "session-1",
                                   .turn_id = "turn-1",
                                   .base = base,
                                   .inputs = &input,
                                   .input_count = 1 };
    must(hf_turn_new(setup, &start, &turn, &err), &err);
    return turn;
}

static uint64_t next(struct hf_turn *turn, struct hf_effect *effect)
{
    struct hf_err err = { 0 };
    do
        must(hf_turn_poll(turn, effect, &err), &err);
    while (effect->id == 0 && effect->kind != HF_EFFECT_DONE &&
           effect->kind != HF_EFFECT_NONE);
    return effect->id;
}

/* Polls what goes out before the effect: emits and progress, which the tables of
 * docs/internals/turn.md name. */
static void drain(struct hf_turn *turn, enum kind kind)
{
    static const int before[] = {
        [TEXT] = 2,        [CALLS] = 2,      [CALLS_MANY] = 2, [RESULT] = 3,
        [RESULT_MANY] = 3, [CHECKPOINT] = 2, [SYNC] = 0,       [SLEEP] = 2,
        [CODE_TEXT] = 2,   [CODE_CELL] = 2,  [CODE_FIX] = 2,   [CODE_DONE] = 4
    };
    struct hf_effect effect;
    struct hf_err err = { 0 };
    for (int i = 0; i < before[kind]; i++)
        must(hf_turn_poll(turn, &effect, &err), &err);
}

/* What the host answers with; made before the count begins. */
struct answer {
    struct hf_part part; /* of one call or text */
    struct hf_part parts[MANY_CALLS];
    struct hf_tool_result result;
    struct hf_llm_response response;
    struct hf_llm_error error;
    struct hf_observation output;
    struct hf_exec_result cell;
};

static void make_answer(enum kind kind, struct hf_span payload, struct answer *ret_answer)
{
    *ret_answer = (struct answer){
        .part = { .content = payload },
        .result = { .value = payload },
        .response = { .size = sizeof(ret_answer->response),
                      .parts = &ret_answer->part,
                      .part_count = 1,
                      .reason = HF_REASON_STOP },
        .error = { .size = sizeof(ret_answer->error),
                   .transient = true,
                   .charge_safe = true },
        .output = { .text = payload },
        .cell = { .size = sizeof(ret_answer->cell),
                  .observations = &ret_answer->output,
                  .observation_count = 1 },
    };
    if (kind == CALLS || kind == CALLS_MANY) {
        ret_answer->part.kind = HF_PART_TOOL_CALL;
        ret_answer->part.call_id = "c1";
        ret_answer->part.tool = "add";
    }
    if (kind == CALLS_MANY) {
        for (size_t i = 0; i < MANY_CALLS; i++)
            ret_answer->parts[i] = ret_answer->part;
        ret_answer->response.parts = ret_answer->parts;
        ret_answer->response.part_count = MANY_CALLS;
    }
}

/* One effect: the poll that yields it, to the accepted response. */
__attribute__((noinline)) static int round_trip(struct hf_turn *turn, enum kind kind,
                                                const struct answer *answer,
                                                struct hf_err *err)
{
    struct hf_effect effect;
    int rc = hf_turn_poll(turn, &effect, err);
    if (rc)
        return rc;
    switch (kind) {
    case TEXT:
    case CALLS:
    case CALLS_MANY:
    case CODE_TEXT:
    case CODE_CELL:
    case CODE_FIX: return hf_turn_llm_done(turn, effect.id, &answer->response, err);
    case RESULT:
    case RESULT_MANY: {
        struct hf_tool_result results[MANY_CALLS];
        for (size_t i = 0; i < effect.call_count; i++) {
            results[i] = answer->result;
            results[i].call_id = effect.calls[i].call_id;
        }
        return hf_turn_tool_results(turn, effect.id, results, effect.call_count, err);
    }
    case CHECKPOINT: return hf_turn_checkpoint_done(turn, effect.id, NULL, err);
    case SYNC: return hf_turn_synced(turn, effect.id, NULL, err);
    case SLEEP: return hf_turn_llm_failed(turn, effect.id, &answer->error, err);
    case CODE_DONE: return hf_turn_exec_done(turn, effect.id, &answer->cell, err);
    case KINDS: break;
    }
    return HF_EINTERNAL;
}

static void answer(struct hf_turn *turn, enum kind kind, struct hf_span payload)
{
    struct hf_err err = { 0 };
    struct answer made;
    make_answer(kind, payload, &made);
    must(round_trip(turn, kind, &made, &err), &err);
}

/* To where the effect in question is next. */
static void lead_to(struct hf_turn *turn, enum kind kind)
{
    if (kind == RESULT || kind == CHECKPOINT) {
        drain(turn, CALLS);
        answer(turn, CALLS, span("{\"n\":1}"));
    }
    if (kind == RESULT_MANY) {
        drain(turn, CALLS_MANY);
        answer(turn, CALLS_MANY, span("{\"n\":1}"));
    }
    if (kind == CHECKPOINT) {
        drain(turn, RESULT);
        answer(turn, RESULT, span("1"));
    }
    if (kind == CODE_DONE) {
        drain(turn, CODE_CELL);
        answer(turn, CODE_CELL, span("<lua>\nf()\n</lua>"));
    }
    drain(turn, kind);
}

/* What is around the payload: JSON, or what the model writes for a cell, closed or
 * not. */
struct around {
    const char *before;
    const char *after;
    bool counts; /* it is more than the bytes that were asked for */
};

static struct around around_of(enum kind kind)
{
    switch (kind) {
    case CODE_CELL: return (struct around){ "<lua>\n", "\n</lua>", true };
    case CODE_FIX: return (struct around){ "x\n<lua>\n", "\n", true };
    case CODE_TEXT:
    case CODE_DONE: return (struct around){ "", "", false };
    case TEXT:
    case CALLS:
    case CALLS_MANY:
    case RESULT:
    case RESULT_MANY:
    case CHECKPOINT:
    case SYNC:
    case SLEEP:
    case KINDS: break;
    }
    return (struct around){ "{\"t\":\"", "\"}", false };
}

static size_t payload_bytes(enum kind kind, size_t bytes)
{
    struct around around = around_of(kind);
    return bytes + (around.counts ? strlen(around.before) + strlen(around.after) : 0);
}

static char *make_payload(enum kind kind, size_t bytes)
{
    struct around around = around_of(kind);
    size_t len = payload_bytes(kind, bytes);
    size_t after = strlen(around.after);
    char *text = malloc(len + 1);
    memset(text, 'x', len);
    memcpy(text, around.before, strlen(around.before));
    memcpy(text + len - after, around.after, after + 1);
    return text;
}

/* A history of one step, and of one message many times; only its count and digest differ. */
static const struct hf_record *lend(void *user, uint64_t i)
{
    (void)user;
    static const struct hf_record step = { .kind = HF_RECORD_EVENT,
                                           .name = "hf.code.step",
                                           .data = { "{\"step\":1,\"cell\":\"c\"}",
                                                     21 } };
    static const struct hf_part part = { .content = { "A message of the past.", 22 } };
    static const struct hf_message message = { .id = "h",
                                               .parts = &part,
                                               .part_count = 1 };
    static const struct hf_record record = { .message = &message };
    return i == 0 ? &step : &record;
}

static struct hf_base base_of(uint64_t count)
{
    struct hf_base base = { .id = "h",
                            .count = count,
                            .last_step_known = true,
                            .last_step = count > 0,
                            .get = lend };
    for (uint64_t n = 0; n < count; n++)
        must(hf_record_chain(base.digest, lend(NULL, n), base.digest, NULL),
             &(struct hf_err){ 0 });
    return base;
}

static int run_effect(const char *name, size_t bytes, long count, uint64_t messages)
{
    struct hf_base base = base_of(messages);
    enum kind kind = TEXT;
    while (kind < KINDS && strcmp(kind_names[kind], name) != 0)
        kind++;
    char *text = make_payload(kind, bytes);
    open_setup(kind);
    for (long i = 0; i < count; i++) {
        struct hf_turn *turn = new_turn(messages ? &base : NULL);
        lead_to(turn, kind);
        answer(turn, kind, (struct hf_span){ text, payload_bytes(kind, bytes) });
        hf_turn_free(turn);
    }
    free(text);
    hf_setup_free(setup);
    hf_surface_free(surface);
    return 0;
}

/* Instructions of `count` runs over a base of so many messages. */
static double counted_over(enum kind kind, size_t bytes, long count, uint64_t messages)
{
    char bytes_text[24];
    char count_text[24];
    char base_text[24];
    snprintf(bytes_text, sizeof(bytes_text), "%zu", bytes);
    snprintf(count_text, sizeof(count_text), "%ld", count);
    snprintf(base_text, sizeof(base_text), "%llu", (unsigned long long)messages);
    const char *const args[] = { "effect",   kind_names[kind], bytes_text,
                                 count_text, base_text,        NULL };
    return bench_instructions("round_trip", args);
}

static double counted(enum kind kind, size_t bytes, long count)
{
    return counted_over(kind, bytes, count, 0);
}

static void effects_over_history(void)
{
    printf("effects, 10,000 against 10 messages of history (limit %.1f)\n", RATIO_MAX);
    for (enum kind kind = TEXT; kind < KINDS; kind++) {
        double few = counted_over(kind, 64, 20, 10);
        double many = counted_over(kind, 64, 20, 10000);
        printf("  %-12s %.3f", kind_names[kind], many / few);
        bench_check(many / few <= RATIO_MAX);
    }
}

static void instructions(void)
{
    const size_t small = 64;
    const size_t large = 65536;
    printf(
        "instructions an effect, poll to accepted response (limit %.0f + %.0f a byte)\n",
        FIXED_MAX, PER_BYTE_MAX);
    for (enum kind kind = TEXT; kind < KINDS; kind++) {
        /* The path to a result or checkpoint runs round_trip too: it is taken away. */
        double lead = kind == RESULT        ? counted(CALLS, 8, 20)
                      : kind == RESULT_MANY ? counted(CALLS_MANY, 8, 20)
                      : kind == CHECKPOINT  ? counted(RESULT, 8, 20)
                      : kind == CODE_DONE   ? counted(CODE_CELL, 3, 20)
                                            : 0;
        bool carries = kind <= RESULT_MANY || kind >= CODE_TEXT;
        double calls = kind == CALLS_MANY || kind == RESULT_MANY ? MANY_CALLS : 1;
        double low = (counted(kind, small, 20) - lead) / 20;
        double per_byte = 0;
        if (carries)
            per_byte = ((counted(kind, large, 20) - lead) / 20 - low) /
                       (double)(large - small) / calls;
        double fixed = low - per_byte * (double)small * calls;
        printf("  %-12s %6.0f + %5.2f a byte", kind_names[kind], fixed, per_byte);
        bool fine = per_byte <= PER_BYTE_MAX;
        for (size_t bytes = 8; bytes <= small; bytes *= 8)
            fine = fine && (counted(kind, bytes, 20) - lead) / 20 <=
                               calls * (FIXED_MAX + PER_BYTE_MAX * (double)payload_bytes(
                                                                       kind, bytes));
        bench_check(fine);
    }
}

static void waiting_bytes(void)
{
    printf("bytes of a waiting turn without its records (limit %d)\n", WAITING_MAX);
    for (enum kind kind = TEXT; kind < KINDS; kind++) {
        struct hf_effect effect;
        size_t records = 0;
        open_setup(kind);
        struct hf_turn *turn = new_turn(NULL);
        lead_to(turn, kind);
        if (kind == SLEEP)
            answer(turn, SLEEP, span(""));
        (void)next(turn, &effect);
        size_t bytes = hf_turn_bytes(turn, &records);
        printf("  %-24s %5zu + %zu of records", hf_turn_state_name(hf_turn_state(turn)),
               bytes - records, records);
        bench_check(bytes - records <= WAITING_MAX);
        hf_turn_free(turn);
        hf_setup_free(setup);
        hf_surface_free(surface);
    }
}

static void live(void)
{
    struct hf_turn **turns = malloc(LIVE * sizeof(*turns));
    struct hf_effect effect;
    size_t answered = 0;
    open_setup(TEXT);
    long before = bench_resident_kb();
    for (size_t i = 0; i < LIVE; i++) {
        turns[i] = new_turn(NULL);
        (void)next(turns[i], &effect);
    }
    long after = bench_resident_kb();
    for (size_t i = 0; i < LIVE; i++) {
        struct hf_err err = { 0 };
        must(hf_turn_cancel(turns[i], &(struct hf_evidence){ .request_id = "r" }, &err),
             &err);
        answered += hf_turn_state(turns[i]) == HF_TURN_FINISHED;
        hf_turn_free(turns[i]);
    }
    printf("%d live turns: %ld MB resident, %ld bytes each", LIVE,
           (after - before) / 1024, (after - before) * 1024 / LIVE);
    bench_check(answered == LIVE);
    free(turns);
    hf_setup_free(setup);
    hf_surface_free(surface);
}

static double now_s(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static double save_and_restore(struct hf_turn *turn, const struct hf_base *base,
                               size_t *ret_bytes)
{
    struct hf_err err = { 0 };
    double begin = now_s();
    for (int i = 0; i < 500; i++) {
        struct hf_bytes save = { 0 };
        struct hf_turn *again = NULL;
        struct hf_restore with = { .size = sizeof(with), .base = base };
        must(hf_turn_save(turn, &save, &err), &err);
        must(hf_turn_restore(setup, (struct hf_span){ save.at, save.len }, &with, &again,
                             &err),
             &err);
        *ret_bytes = save.len;
        hf_turn_free(again);
        hf_bytes_free(&save);
    }
    return now_s() - begin;
}

static void history(void)
{
    static const uint64_t counts[] = { 10, 10000 };
    double best[2] = { 1e9, 1e9 };
    size_t bytes[2] = { 0 };
    struct hf_turn *turns[2];
    struct hf_base bases[2];
    struct hf_effect effect;
    open_setup(TEXT);
    for (int i = 0; i < 2; i++) {
        bases[i] = base_of(counts[i]);
        turns[i] = new_turn(&bases[i]);
        lead_to(turns[i], RESULT);
        (void)next(turns[i], &effect);
    }
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 2; i++) {
            double took = save_and_restore(turns[i], &bases[i], &bytes[i]);
            best[i] = took < best[i] ? took : best[i];
        }
    }
    printf("save and restore, 10,000 against 10 messages of history (limit %.1f)\n",
           RATIO_MAX);
    printf("  time  %.2f us / %.2f us = %.3f", best[1] * 2000, best[0] * 2000,
           best[1] / best[0]);
    bench_check(best[1] / best[0] <= RATIO_MAX);
    printf("  bytes %zu / %zu = %.3f", bytes[1], bytes[0],
           (double)bytes[1] / (double)bytes[0]);
    bench_check((double)bytes[1] / (double)bytes[0] <= RATIO_MAX);
    for (int i = 0; i < 2; i++)
        hf_turn_free(turns[i]);
    hf_setup_free(setup);
    hf_surface_free(surface);
}

#define REBASED 5000
#define REBASED_MAX ((size_t)4096)

/* Moves all that was reported to the base. */
static void rebase(struct hf_turn *turn, struct hf_base *base)
{
    struct hf_err err = { 0 };
    uint64_t count = hf_turn_record_count(turn);
    for (; base->count < count; base->count++)
        must(hf_record_chain(base->digest, hf_turn_record(turn, base->count),
                             base->digest, &err),
             &err);
    must(hf_turn_rebase(turn, base, &err), &err);
}

static void long_turn(void)
{
    struct hf_err err = { 0 };
    struct hf_effect effect;
    struct hf_bytes save = { 0 };
    struct hf_base base = base_of(10);
    open_setup(TEXT);
    struct hf_turn *turn = new_turn(&base);
    for (int i = 0; i < REBASED; i++) {
        struct answer made;
        uint64_t id = next(turn, &effect);
        make_answer(CALLS, span("{\"n\":1}"), &made);
        must(hf_turn_llm_done(turn, id, &made.response, &err), &err);
        id = next(turn, &effect);
        make_answer(RESULT, span("1"), &made);
        made.result.call_id = effect.calls[0].call_id;
        must(hf_turn_tool_results(turn, id, &made.result, 1, &err), &err);
        id = next(turn, &effect);
        must(hf_turn_checkpoint_done(turn, id, NULL, &err), &err);
        rebase(turn, &base);
    }
    must(hf_turn_save(turn, &save, &err), &err);
    printf("a save after %d rebased iterations: %zu bytes (limit %zu)", REBASED, save.len,
           REBASED_MAX);
    bench_check(save.len <= REBASED_MAX);
    hf_bytes_free(&save);
    hf_turn_free(turn);
    hf_setup_free(setup);
    hf_surface_free(surface);
}

int main(int argc, char **argv)
{
    if (argc == 6 && strcmp(argv[1], "effect") == 0)
        return run_effect(argv[2], strtoul(argv[3], NULL, 10), strtol(argv[4], NULL, 10),
                          strtoull(argv[5], NULL, 10));
    if (argc == 2 && strcmp(argv[1], "history") == 0) {
        effects_over_history();
        long_turn();
        return bench_passed() ? 0 : 1;
    }
    instructions();
    waiting_bytes();
    live();
    history();
    effects_over_history();
    long_turn();
    return bench_passed() ? 0 : 1;
}
