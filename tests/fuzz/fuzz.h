/* What the fuzz targets share. They are built with libFuzzer (tests/fuzz/run), and with
 * fuzz_main.c as plain programs that read files: that is how the corpus is part of every
 * test run. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdlib.h>

#include <holdfast/turn.h>

#include "turn/cells.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define fuzz_require(condition) ((condition) ? (void)0 : abort())

/* One setup with the standard protocol and one with cells; never freed. */
static inline void fuzz_setups(struct hf_surface **ret_surface,
                               struct hf_setup *setups[2])
{
    static const char tools[] = "[{\"name\":\"add\"},{\"name\":\"sub\"}]";
    struct hf_err err = { 0 };
    fuzz_require(hf_surface_new(NULL, (struct hf_span){ "You help.", 9 },
                                (struct hf_span){ tools, sizeof(tools) - 1 }, ret_surface,
                                &err) == 0);
    for (int i = 0; i < 2; i++) {
        struct hf_turn_config config = { .size = sizeof(config),
                                         .protocol = i ? cells_protocol()
                                                       : hf_protocol_standard(),
                                         .surface = *ret_surface,
                                         .model = "model-1",
                                         .route = "prov/model-1",
                                         .turn_budget = 8,
                                         .sync = i == 1 };
        fuzz_require(hf_setup_new(&config, &setups[i], &err) == 0);
    }
}

#endif
