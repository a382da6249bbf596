/* TZif files: what is read is a row of spans without holes, and slots in it only go on. */
#include <stdint.h>
#include <stdlib.h>

#include "core/schedule/timing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define require(condition) ((condition) ? (void)0 : abort())

static void walk_spans(const struct hf_zone *zone)
{
    struct hf_zone_span span;
    int64_t utc = 0;
    for (int i = 0; i < 300 && utc < INT64_C(5000000000); i++) {
        hf_zone_at(zone, utc, &span);
        require(span.from <= utc && utc < span.until);
        require(span.offset > -HF_ZONE_OFFSET_MAX && span.offset < HF_ZONE_OFFSET_MAX);
        int64_t local = utc + span.offset;
        int64_t instant = hf_zone_instant(zone, local);
        require(instant <= utc); /* the first that shows it */
        utc = span.until;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const crons[] = { "30 2 * * *", "*/7 * * * *", "0 0 29 2 *" };
    struct hf_arena arena;
    const struct hf_zone *zone = NULL;
    struct hf_err err = { 0 };
    hf_arena_init(&arena, hf_alloc_system());
    if (hf_zone_read(&arena, (struct hf_span){ data, size }, &zone, &err) == 0) {
        walk_spans(zone);
        for (size_t i = 0; i < sizeof(crons) / sizeof(crons[0]); i++) {
            struct hf_timing timing = { .kind = HF_TIMING_CRON, .zone = zone };
            require(hf_cron_parse(crons[i], false, &timing.cron, &err) == 0);
            hf_ms at = 1700000000000;
            for (int k = 0; k < 10; k++) {
                hf_ms next = hf_timing_next(&timing, at);
                require(next > at);
                at = next;
            }
        }
    }
    hf_arena_fini(&arena);
    return 0;
}
