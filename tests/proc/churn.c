/* churn: makes, takes and finishes units in batches, in turn on two stores, and says how
 * many per second of each. Other load of the machine falls on both.
 *
 *   churn --urls URL URL --seconds N [--slice MS]
 *
 * One line per minute, and one at the end: seconds passed, units a second of the first
 * and of the second, their ratio. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/store.h>
#include <holdfast/work.h>

#define BATCH 100
#define LEASE_MS 3000

struct side {
    struct hf_store *store;
    long made;
    long finished;
    hf_ms took_ms;
};

static hf_ms now_ms(void)
{
    return hf_clock_system()->mono_ms(hf_clock_system()->user);
}

static void must(int rc, const char *what, const struct hf_err *err)
{
    if (rc == 0)
        return;
    (void)fprintf(stderr, "churn: %s: %s\n", what, err->message);
    exit(1);
}

static void make(struct side *side)
{
    struct hf_work_spec units[BATCH];
    char ids[BATCH][32];
    struct hf_answer *answer;
    struct hf_err err = { 0 };
    for (size_t i = 0; i < BATCH; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]), "u%ld", side->made++);
        units[i] = (struct hf_work_spec){ .size = sizeof(units[i]),
                                          .source = HF_SOURCE_MANUAL,
                                          .source_id = ids[i],
                                          .kind = "churn",
                                          .priority = -1,
                                          .disposition = HF_DISPOSITION_RERUNNABLE };
    }
    must(hf_work_create(side->store, NULL, units, BATCH, HF_BRIEF, &answer, &err),
         "create", &err);
    hf_answer_free(answer);
}

static void finish(struct side *side)
{
    struct hf_change changes[BATCH];
    struct hf_answer *taken, *closed;
    struct hf_err err = { 0 };
    struct hf_claim claim = {
        .size = sizeof(claim), .owner = "churn", .limit = BATCH, .ttl_ms = LEASE_MS
    };
    must(hf_work_claim(side->store, NULL, &claim, &taken, &err), "claim", &err);
    size_t n = hf_answer_count(taken);
    if (n != BATCH)
        must(HF_EINTERNAL, "claim came short", &err);
    for (size_t i = 0; i < n; i++) {
        const struct hf_item *item = hf_answer_at(taken, i);
        changes[i] = (struct hf_change){ .size = sizeof(changes[i]),
                                         .verb = HF_VERB_CLOSE_OUT,
                                         .id = item->work.work_id,
                                         .token = item->token,
                                         .status = HF_STATUS_DONE };
    }
    must(hf_work_change(side->store, NULL, changes, n, HF_BRIEF, &closed, &err),
         "close-out", &err);
    for (size_t i = 0; i < n; i++)
        must(hf_answer_at(closed, i)->code, "close-out", &err);
    hf_answer_free(closed);
    hf_answer_free(taken);
    side->finished += (long)n;
}

static void run_slice(struct side *side, hf_ms slice_ms)
{
    hf_ms start = now_ms();
    do {
        make(side);
        finish(side);
    } while (now_ms() - start < slice_ms);
    side->took_ms += now_ms() - start;
}

static double rate(const struct side *side)
{
    return side->took_ms ? 1e3 * (double)side->finished / (double)side->took_ms : 0;
}

/* What both did since the last line, and forget it. */
static void say(struct side *sides, hf_ms passed)
{
    printf("%4lld s  %8.1f  %8.1f  %.2f\n", (long long)(passed / 1000), rate(&sides[0]),
           rate(&sides[1]), rate(&sides[0]) / rate(&sides[1]));
    (void)fflush(stdout);
    for (int i = 0; i < 2; i++)
        sides[i].finished = sides[i].took_ms = 0;
}

int main(int argc, char **argv)
{
    struct side sides[2] = { 0 };
    struct hf_err err = { 0 };
    hf_ms seconds = 0, slice_ms = 1000;
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--urls") == 0 && i + 2 < argc)
            for (int k = 0; k < 2; k++)
                must(hf_store_open(argv[++i], NULL, &sides[k].store, &err), "open", &err);
        else if (strcmp(argv[i], "--seconds") == 0)
            seconds = strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--slice") == 0)
            slice_ms = strtol(argv[++i], NULL, 10);
    }
    hf_ms start = now_ms(), said = start;
    while (sides[1].store && now_ms() - start < seconds * 1000) {
        for (int i = 0; i < 2; i++)
            run_slice(&sides[i], slice_ms);
        if (now_ms() - said < 60000 && now_ms() - start < seconds * 1000)
            continue;
        said = now_ms();
        say(sides, said - start);
    }
    for (int i = 0; i < 2; i++)
        if (sides[i].store)
            hf_store_close(sides[i].store);
    return 0;
}
