/* Cron expressions: what is read has a next slot, later ones after it, each at a time that
 * matches. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/schedule/timing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define require(condition) ((condition) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[300];
    struct hf_timing timing = { .kind = HF_TIMING_CRON, .zone = &hf_zone_utc };
    struct hf_err err = { 0 };
    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (hf_cron_parse(text, size % 2 == 1, &timing.cron, &err)) {
        require(err.message[0] != '\0');
        return 0;
    }
    hf_ms at = 1700000000000;
    for (int i = 0; i < 20; i++) {
        hf_ms next = hf_timing_next(&timing, at);
        require(next > at);
        require(hf_cron_match(&timing.cron, next / 1000) == next / 1000);
        require(hf_timing_next(&timing, next - 1) == next);
        at = next;
    }
    return 0;
}
