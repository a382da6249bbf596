/* What the fuzz targets share. They are built with libFuzzer (tests/fuzz/run), and with
 * fuzz_main.c as plain programs that read files: that is how the corpus is part of every
 * test run. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdlib.h>

#include <holdfast/code.h>

#include "turn/cells.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define fuzz_require(condition) ((condition) ? (void)0 : abort())

#define FUZZ_SETUPS 3

/* One setup with the standard protocol, one with cells, one with code; never freed. */
static inline void fuzz_setups(struct hf_surface **ret_surface,
                               struct hf_setup *setups[FUZZ_SETUPS])
{
    static const char tools[] = "[{\"name\":\"add\"},{\"name\":\"sub\"}]";
    struct hf_err err = { 0 };
    fuzz_require(hf_surface_new(NULL, (struct hf_span){ "You help.", 9 },
                                (struct hf_span){ tools, sizeof(tools) - 1 }, ret_surface,
                                &err) == 0);
    const struct hf_protocol *protocols[FUZZ_SETUPS] = { hf_protocol_standard(),
                                                         cells_protocol(),
                                                         hf_protocol_code() };
    for (int i = 0; i < FUZZ_SETUPS; i++) {
        struct hf_turn_config config = { .size = sizeof(config),
                                         .protocol = protocols[i],
                                         .surface = *ret_surface,
                                         .model = "model-1",
                                         .route = "prov/model-1",
                                         .turn_budget = 8,
                                         .sync = i == 1 };
        fuzz_require(hf_setup_new(&config, &setups[i], &err) == 0);
    }
}

#endif
