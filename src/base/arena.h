/* Arena: memory that is released all at once. One thread at a time. */
#ifndef HF_BASE_ARENA_H
#define HF_BASE_ARENA_H

#include <holdfast/types.h>

struct hf_arena_block;

struct hf_arena {
    const struct hf_alloc *alloc;
    struct hf_arena_block *blocks; /* newest first */
    size_t used;                   /* of the newest block */
    size_t first;                  /* bytes of the first block; 0: 4096 */
    size_t largest;                /* bytes of the largest shared block; 0: 65536 */
    size_t held;                   /* bytes of all blocks */
    size_t taken;                  /* bytes given out since the last reset */
};

void hf_arena_init(struct hf_arena *arena, const struct hf_alloc *alloc);
/* For many small arenas: shared blocks of `first` up to `largest` bytes, so that little
 * is held beyond what was taken. */
void hf_arena_init_small(struct hf_arena *arena, const struct hf_alloc *alloc,
                         size_t first, size_t largest);
void hf_arena_fini(struct hf_arena *arena); /* it may be used again, empty */

/* Forget everything but keep one block for reuse. */
void hf_arena_reset(struct hf_arena *arena);
/* As hf_arena_reset, but a block of more than `keep` bytes is not kept. */
void hf_arena_trim(struct hf_arena *arena, size_t keep);

/* Zeroed memory aligned for any type, or NULL. `bytes` may be 0. */
void *hf_arena_take(struct hf_arena *arena, size_t bytes);
/* As hf_arena_take, and NULL where the product overflows. */
void *hf_arena_array(struct hf_arena *arena, size_t count, size_t each);
/* As hf_arena_array, but not zeroed: for what is written before it is read. */
void *hf_arena_room(struct hf_arena *arena, size_t count, size_t each);

/* Copies end in a NUL that is not counted. NULL when out of memory; hf_arena_text(NULL)
 * is NULL too, so test the input first where it matters. */
char *hf_arena_copy(struct hf_arena *arena, const void *bytes, size_t len);
char *hf_arena_text(struct hf_arena *arena, const char *text);
/* Both texts as one; NULL when out of memory. */
char *hf_arena_join(struct hf_arena *arena, const char *a, const char *b);

/* A copy of `len` > 0 bytes without a NUL, for structs and arrays; NULL when out of memory. */
void *hf_arena_dup(struct hf_arena *arena, const void *bytes, size_t len);

#define hf_arena_new(arena, type) ((type *)hf_arena_take((arena), sizeof(type)))

#endif
