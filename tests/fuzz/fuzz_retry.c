/* Retry policies: what is read is written in its one form and read again as the same, and no
 * delay leaves its bounds. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/ledger/retry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define require(condition) ((condition) ? (void)0 : abort())

static void check_delays(const struct hf_retry *retry)
{
    static const int64_t failures[] = { 1, 2, 3, 60, 1000, INT64_MAX };
    for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
        hf_ms most = hf_retry_delay(retry, failures[i], UINT64_MAX);
        hf_ms least = hf_retry_delay(retry, failures[i], 0);
        require(least >= 0 && most >= least && most <= retry->max_ms);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[2000];
    struct hf_retry retry, again;
    struct hf_err err = { 0 };
    struct hf_buf once, twice;
    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (hf_retry_read(text, &retry, &err)) {
        require(err.message[0] != '\0');
        return 0;
    }
    check_delays(&retry);
    hf_buf_init(&once, hf_alloc_system(), 1 << 16);
    hf_buf_init(&twice, hf_alloc_system(), 1 << 16);
    require(hf_retry_write(&once, &retry) == 0);
    require(hf_retry_read(hf_buf_str(&once), &again, &err) == 0);
    require(hf_retry_write(&twice, &again) == 0);
    require(strcmp(hf_buf_str(&once), hf_buf_str(&twice)) == 0);
    require(again.max_ms == retry.max_ms && again.initial_ms == retry.initial_ms);
    hf_buf_fini(&once);
    hf_buf_fini(&twice);
    return 0;
}
