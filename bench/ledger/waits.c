/* Waits of turns: answers next to a raw program that puts one fenced row, and what many turns
 * that wait cost a worker that claims others. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/wait.h>

#include "base/err.h"
#include "sessions.h"

#define SAVE_BYTES 1024
#define WAIT_NAME "1/c/1" /* of the only wait of each turn */

/* Puts a turn away until it is approved. */
static int put_away(struct bench_crew *crew, const char *id,
                    const struct bench_held *held)
{
    static const char save[SAVE_BYTES];
    static const char envelope[] = "{\"kind\":\"tool_call\",\"tool\":\"pay\"}";
    struct hf_session_stepped at;
    struct hf_effect_entry begun = { .key = WAIT_NAME,
                                     .kind = "tool_call",
                                     .recovery = HF_RECOVERY_KEYED,
                                     .attempt = 1,
                                     .envelope = { envelope, sizeof envelope - 1 } };
    struct hf_wait_spec wait = {
        .size = sizeof wait,
        .kind = HF_WAIT_APPROVAL,
        .name = WAIT_NAME,
        .asked = "{\"question\":\"May this be paid?\",\"call\":{\"name\":\"pay\","
                 "\"arguments\":{\"amount\":250}}}",
        .policy = HF_AT_DEADLINE_DENY,
    };
    struct hf_session_step step = { .size = sizeof step,
                                    .session_id = id,
                                    .token = held->token,
                                    .turn_id = held->turn_id,
                                    .chain = held->chain,
                                    .save = { save, sizeof save },
                                    .begun = &begun,
                                    .begun_count = 1,
                                    .waits = &wait,
                                    .wait_count = 1,
                                    .away = true };
    return hf_session_step(crew->store, NULL, &step, &at, &crew->err);
}

static int make_waiting(struct bench_crew *crew, size_t i)
{
    char id[32];
    struct bench_held fresh;
    struct bench_held *held = crew->held ? &crew->held[i] : &fresh;
    int rc = bench_make_held(crew, bench_session_name(id, "w", i), held);
    return rc ? rc : put_away(crew, id, held);
}

/* ---- answers -------------------------------------------------------------------------- */

static int approve(struct bench_crew *crew, size_t i)
{
    char wait_id[HF_WAIT_ID_TEXT];
    struct hf_wait_answer *answer = NULL;
    struct hf_wait_resolve request = { .size = sizeof request,
                                       .wait_id = wait_id,
                                       .word = HF_ANSWER_APPROVE };
    int rc = hf_wait_id(crew->held[i].turn_id, HF_WAIT_APPROVAL, WAIT_NAME, wait_id,
                        &crew->err);
    if (rc == 0)
        rc = hf_wait_resolve(crew->store, NULL, &request, &answer, &crew->err);
    if (rc == 0 && !answer->accepted)
        rc = hf_fail(&crew->err, HF_EINTERNAL, NULL, "an answer was not the first");
    hf_wait_answer_free(answer);
    return rc;
}

static int answer_rate(struct bench *bench, size_t callers, double *ret_rate)
{
    size_t count = bench->jobs / 10;
    struct hf_store *store = NULL;
    struct bench_held *held = calloc(count, sizeof *held);
    if (!held)
        return hf_fail_plain(&bench->err, HF_ENOMEM);
    int rc = bench_open_new(bench, BENCH_OURS, &store);
    if (rc == 0)
        rc = bench_do_all(bench, store, held, BENCH_CALLERS, count, make_waiting);
    double start = bench_seconds();
    if (rc == 0)
        rc = bench_do_all(bench, store, held, callers, count, approve);
    *ret_rate = (double)count / (bench_seconds() - start);
    hf_store_close(store);
    free(held);
    return rc;
}

int bench_answer_one(struct bench *bench, struct bench_pair *ret)
{
    int rc = bench_raw(bench)->put(bench, 1, &ret->raw);
    return rc ? rc : answer_rate(bench, 1, &ret->ours);
}

/* SQLite has one writer: raw is the single put. */
int bench_answer_many(struct bench *bench, struct bench_pair *ret)
{
    int rc = bench_raw(bench)->put(bench, bench->postgres ? BENCH_CALLERS : 1, &ret->raw);
    return rc ? rc : answer_rate(bench, BENCH_CALLERS, &ret->ours);
}

/* ---- many turns that wait --------------------------------------------------------------- */

/* The heap of this process. */
static double heap_kib(void)
{
    struct mallinfo2 now = mallinfo2();
    return (double)(now.uordblks + now.hblkhd) / 1024;
}

/* What a worker's store takes of the heap that is opened and has claimed BENCH_SAMPLES times. */
static int heap_of_claims(struct bench *bench, enum bench_place place, double *ret_kib)
{
    struct hf_store *store = NULL;
    struct bench_held held;
    double before = heap_kib();
    int rc = hf_store_open(bench->url[place], NULL, &store, &bench->err);
    for (size_t i = 0; rc == 0 && i < BENCH_SAMPLES; i++)
        rc = bench_claim_session(store, NULL, &held, &bench->err);
    *ret_kib = heap_kib() - before;
    hf_store_close(store);
    return rc;
}

static int fill_waiting(struct bench *bench, struct hf_store *store, size_t count)
{
    size_t made = bench->postgres ? 1 : count; /* the others are copies */
    int rc = bench_do_all(bench, store, NULL, BENCH_CALLERS, made, make_waiting);
    return rc || made == count ? rc : bench_pg_copy_waiting(bench, count - made);
}

int bench_claim_waiting(struct bench *bench, struct bench_pair *ret)
{
    struct hf_store *stores[2] = { NULL, NULL };
    int rc = bench_open_new(bench, BENCH_OURS, &stores[0]);
    if (rc == 0)
        rc = bench_open_new(bench, BENCH_LARGE, &stores[1]);
    if (rc == 0)
        rc = fill_waiting(bench, stores[1], bench->finished / 10);
    for (size_t s = 0; rc == 0 && s < 2; s++)
        rc = bench_make_ready(bench, stores[s]);
    if (rc == 0)
        rc = bench_claims(bench, stores, ret);
    hf_store_close(stores[0]);
    hf_store_close(stores[1]);
    if (rc == 0)
        rc = heap_of_claims(bench, BENCH_OURS, &bench->waiting_kib.raw);
    if (rc == 0)
        rc = heap_of_claims(bench, BENCH_LARGE, &bench->waiting_kib.ours);
    return rc;
}

int bench_claim_memory(struct bench *bench, struct bench_pair *ret)
{
    *ret = bench->waiting_kib;
    return 0;
}
