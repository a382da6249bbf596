/* What the stream mask costs: 1 MB of model text in chunks of 1 byte to 64 KB, against a
 * copy-and-scan with the same chunking: each chunk appended to a buffer and looked through for
 * "<". The mask's side appends too, since a host keeps the text. Time of one thread, best of
 * many rounds, both in one run.
 */
#include "mask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <holdfast/code.h>

#define BYTES ((size_t)1 << 20)
#define ROUNDS 30
#define RATIO_MAX 3.0

static char *text;
static char *copy;

static double now_s(void)
{
    struct timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

/* Prose of lines of some 70 bytes, with a "<" now and then; then a cell of short lines. */
static void make_text(void)
{
    static const char prose[] =
        "The harbour lay quiet under a thin fog, and the crew spoke of x < y.\n";
    static const char source[] = "  local hits = call(\"search\", { query = name })\n";
    size_t at = 0;
    text = malloc(BYTES + 128);
    copy = malloc(BYTES + 128);
    while (at < BYTES / 2) {
        memcpy(text + at, prose, sizeof(prose) - 1);
        at += sizeof(prose) - 1;
    }
    memcpy(text + at, "<lua>\n", 6);
    at += 6;
    while (at < BYTES) {
        memcpy(text + at, source, sizeof(source) - 1);
        at += sizeof(source) - 1;
    }
}

static volatile size_t sink;

static double scan(size_t chunk)
{
    size_t found = 0;
    double begin = now_s();
    for (size_t at = 0; at < BYTES; at += chunk) {
        size_t len = chunk < BYTES - at ? chunk : BYTES - at;
        memcpy(copy + at, text + at, len);
        for (const char *p = copy + at;
             (p = memchr(p, '<', (size_t)(copy + at + len - p))); p++)
            found++;
    }
    sink = found;
    return now_s() - begin;
}

static double mask(size_t chunk)
{
    struct hf_mask mask;
    double begin = now_s();
    hf_mask_init(&mask);
    for (size_t at = 0; at < BYTES; at += chunk) {
        size_t len = chunk < BYTES - at ? chunk : BYTES - at;
        memcpy(copy + at, text + at, len);
        if (hf_mask_feed(&mask, copy + at, len))
            break;
    }
    hf_mask_end(&mask);
    sink = (size_t)mask.visible;
    return now_s() - begin;
}

bool bench_mask(void)
{
    static const size_t chunks[] = { 1, 2, 4, 16, 64, 256, 1024, 4096, 16384, 65536 };
    bool passed = true;
    make_text();
    printf("1 MB through the mask, against copy and scan (limit %.1f times)\n",
           RATIO_MAX);
    for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
        double best[2] = { 1e9, 1e9 };
        for (int round = 0; round < ROUNDS; round++) {
            double took[2] = { scan(chunks[i]), mask(chunks[i]) };
            for (int k = 0; k < 2; k++)
                best[k] = took[k] < best[k] ? took[k] : best[k];
        }
        bool fine = best[1] <= RATIO_MAX * best[0];
        passed = passed && fine;
        printf("  chunks of %5zu  %8.1f us  %8.1f us  %.2f times  %s\n", chunks[i],
               best[1] * 1e6, best[0] * 1e6, best[1] / best[0],
               fine ? "ok" : "OVER THE LIMIT");
    }
    free(text);
    free(copy);
    return passed;
}
