/* Runs random cells and prints a digest of all that each did.
 *
 *     cell_twice FIRST COUNT [--cells] [PADDING]
 *     cell_twice --source TEXT PADDING
 *
 * The second form runs one cell and prints its transcript.
 *
 * One line for each hundred cells, or with --cells one for each. Each cell is run whole, at
 * addresses that depend on PADDING, and every tenth is cut after every operation, with the
 * same result. tests/exec/same_everywhere.py compares what processes print that differ in
 * their addresses, hash seeds, locales and environment. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ident.h"
#include "base/text.h"
#include "exec/gen.h"
#include "exec/kit.h"

/* Every block is a little larger than asked for, so that addresses differ. */
static void *padded_realloc(void *user, void *old, size_t bytes)
{
    const size_t *padding = user;
    return realloc(old, bytes + *padding);
}

static void padded_free(void *user, void *old)
{
    (void)user;
    free(old);
}

struct work {
    struct hf_alloc alloc;
    size_t padding;
    struct hf_buf code;
    struct hf_buf whole;
    struct hf_buf cut;
};

static void run_one(struct work *work, uint64_t seed)
{
    hf_buf_reset(&work->code);
    hf_buf_reset(&work->whole);
    hf_buf_reset(&work->cut);
    gen_cell(seed, &work->code);
    struct cellkit kit = { .code = hf_buf_str(&work->code),
                           .given = "{\"g\":{\"l\":[3,1,2,0.5],\"m\":{\"b\":1,\"a\":2}}}",
                           .given_refs = "{\"echo\":{\"m\":{\"zeta\":1,\"alpha\":2.5}}}",
                           .alloc = &work->alloc };
    enum hf_cell_end end = cellkit_run(&kit, &work->whole);
    if (end != HF_CELL_DONE && end != HF_CELL_FINISHED && end != HF_CELL_ERROR) {
        printf("%s\n%s\nseed %llu ended %s\n", kit.code, hf_buf_str(&work->whole),
               (unsigned long long)seed, hf_cell_end_name(end));
        exit(1);
    }
    if (seed % 10 != 0)
        return;
    cellkit_run_cut(&kit, &work->cut);
    if (!hf_same(hf_buf_str(&work->whole), hf_buf_str(&work->cut))) {
        printf("%s\n%s\n%s\nseed %llu differs when it is cut\n", kit.code,
               hf_buf_str(&work->whole), hf_buf_str(&work->cut),
               (unsigned long long)seed);
        exit(1);
    }
}

static void print_digest(uint64_t seed, struct hf_digest *digest)
{
    uint8_t bytes[HF_DIGEST_BYTES];
    char hex[2 * HF_DIGEST_BYTES + 1];
    if (hf_digest_end(digest, bytes))
        exit(1);
    hf_hex(bytes, sizeof(bytes), hex);
    printf("%llu %s\n", (unsigned long long)seed, hex);
}

static int print_transcript(struct work *work, const char *source)
{
    struct cellkit kit = { .code = source, .alloc = &work->alloc };
    (void)cellkit_run(&kit, &work->whole); /* the transcript says how it ended */
    fputs(hf_buf_str(&work->whole), stdout);
    return 0;
}

static void print_digests(struct work *work, uint64_t first, uint64_t count, bool each)
{
    struct hf_digest digest;
    for (uint64_t i = 0; i < count; i++) {
        if (each || i % 100 == 0)
            hf_digest_begin(&digest, "transcripts", 1);
        run_one(work, first + i);
        hf_digest_bytes(&digest, hf_buf_str(&work->whole), work->whole.len);
        if (each || i % 100 == 99 || i + 1 == count)
            print_digest(first + i, &digest);
    }
}

int main(int argc, char **argv)
{
    static struct work work;
    bool each = argc > 3 && hf_same(argv[3], "--cells");
    if (argc < 3) {
        fputs("usage: cell_twice FIRST COUNT [--cells] [PADDING]\n"
              "       cell_twice --source TEXT PADDING\n",
              stderr);
        return 2;
    }
    work.padding = argc > 3 ? strtoull(argv[argc - 1], NULL, 10) : 0;
    work.alloc = (struct hf_alloc){ &work.padding, padded_realloc, padded_free };
    const char *given = getenv("LC_ALL");
    if (!setlocale(LC_ALL, "") && given) {
        fprintf(stderr, "cell_twice: there is no locale %s\n", given);
        return 1;
    }
    hf_buf_init(&work.code, hf_alloc_system(), (size_t)1 << 20);
    hf_buf_init(&work.whole, hf_alloc_system(), (size_t)1 << 24);
    hf_buf_init(&work.cut, hf_alloc_system(), (size_t)1 << 24);
    if (hf_same(argv[1], "--source"))
        return print_transcript(&work, argv[2]);
    print_digests(&work, strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10), each);
    return 0;
}
