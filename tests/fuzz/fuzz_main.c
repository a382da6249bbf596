/* Without libFuzzer: every file that is named is an input, once as it is, and then a bounded
 * number of times with a few bytes changed, the same way each run. */
#include <stdio.h>
#include <string.h>

#include "fuzz/fuzz.h"

#define CHANGES 400
#define INPUT_MAX ((size_t)1 << 16)

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void change(uint8_t *bytes, size_t *len, uint64_t *state)
{
    uint64_t r = next_random(state);
    size_t at = *len ? (size_t)(r >> 8) % *len : 0;
    if (*len == 0)
        return;
    switch (r % 4) {
    case 0: bytes[at] ^= (uint8_t)(1 << (r >> 4) % 8); break;
    case 1: bytes[at] = (uint8_t)(r >> 40); break;
    case 2:
        memmove(bytes + at, bytes + at + 1, *len - at - 1);
        --*len;
        break;
    default:
        if (*len + 1 < INPUT_MAX) {
            memmove(bytes + at + 1, bytes + at, *len - at);
            bytes[at] = (uint8_t)(r >> 40);
            ++*len;
        }
    }
}

int main(int argc, char **argv)
{
    static uint8_t whole[1 << 16];
    static uint8_t bytes[1 << 16];
    uint64_t state = UINT64_C(88172645463325252);
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (!file) {
            perror(argv[i]);
            return 1;
        }
        size_t size = fread(whole, 1, sizeof(whole), file);
        fclose(file);
        LLVMFuzzerTestOneInput(whole, size);
        for (int n = 0; n < CHANGES; n++) {
            size_t len = size;
            memcpy(bytes, whole, size);
            for (uint64_t c = next_random(&state) % 4 + 1; c > 0; c--)
                change(bytes, &len, &state);
            LLVMFuzzerTestOneInput(bytes, len);
        }
    }
    printf("%d inputs\n", argc - 1);
    return argc > 1 ? 0 : 1;
}
