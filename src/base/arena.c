/* Blocks in a list, newest first. Small requests are cut from the newest block. A large
 * request gets a block of its own behind the newest one, so that the room left there is
 * not lost.
 */
#include "base/arena.h"

#include <stdalign.h>
#include <string.h>

#define FIRST_BLOCK_BYTES ((size_t)4096)
#define LARGEST_BLOCK_BYTES ((size_t)65536)

struct hf_arena_block {
    struct hf_arena_block *older;
    size_t room;
    alignas(max_align_t) unsigned char bytes[];
};

void hf_arena_init(struct hf_arena *arena, const struct hf_alloc *alloc)
{
    *arena = (struct hf_arena){ .alloc = alloc };
}

void hf_arena_init_small(struct hf_arena *arena, const struct hf_alloc *alloc,
                         size_t first, size_t largest)
{
    *arena = (struct hf_arena){ .alloc = alloc, .first = first, .largest = largest };
}

static void free_blocks(struct hf_arena *arena, struct hf_arena_block *block)
{
    while (block) {
        struct hf_arena_block *older = block->older;
        arena->held -= sizeof(*block) + block->room;
        arena->alloc->free(arena->alloc->user, block);
        block = older;
    }
}

void hf_arena_fini(struct hf_arena *arena)
{
    free_blocks(arena, arena->blocks);
    arena->blocks = NULL;
    arena->used = 0;
    arena->taken = 0;
}

void hf_arena_trim(struct hf_arena *arena, size_t keep)
{
    if (arena->blocks && arena->blocks->room <= keep)
        hf_arena_reset(arena);
    else
        hf_arena_fini(arena);
}

void hf_arena_reset(struct hf_arena *arena)
{
    if (arena->blocks) {
        free_blocks(arena, arena->blocks->older);
        arena->blocks->older = NULL;
    }
    arena->used = 0;
    arena->taken = 0;
}

static struct hf_arena_block *new_block(struct hf_arena *arena, size_t room)
{
    if (room > SIZE_MAX - sizeof(struct hf_arena_block))
        return NULL;
    struct hf_arena_block *block = arena->alloc->realloc(arena->alloc->user, NULL,
                                                         sizeof(*block) + room);
    if (block) {
        block->older = NULL;
        block->room = room;
        arena->held += sizeof(*block) + room;
    }
    return block;
}

/* Each block is twice the one before, so that a big decode costs few allocations. */
static size_t next_room(const struct hf_arena *arena)
{
    size_t first = arena->first ? arena->first : FIRST_BLOCK_BYTES;
    size_t largest = arena->largest ? arena->largest : LARGEST_BLOCK_BYTES;
    size_t room = arena->blocks ? arena->blocks->room * 2 : first;
    return room < largest ? room : largest;
}

static void *take_own_block(struct hf_arena *arena, size_t bytes)
{
    struct hf_arena_block *block = new_block(arena, bytes);
    if (!block)
        return NULL;
    if (arena->blocks) {
        block->older = arena->blocks->older;
        arena->blocks->older = block;
    } else {
        arena->blocks = block;
        arena->used = bytes;
    }
    return block->bytes;
}

/* When the newest block has no room for it. */
static void *take_raw(struct hf_arena *arena, size_t bytes)
{
    size_t room = next_room(arena);
    if (bytes > room / 4)
        return take_own_block(arena, bytes);
    struct hf_arena_block *block = new_block(arena, room);
    if (!block)
        return NULL;
    block->older = arena->blocks;
    arena->blocks = block;
    arena->used = bytes;
    return block->bytes;
}

static inline void *take_rounded(struct hf_arena *arena, size_t bytes,
                                 size_t *ret_rounded)
{
    const size_t align = alignof(max_align_t);
    if (bytes > SIZE_MAX - align)
        return NULL;
    size_t rounded = bytes ? (bytes + align - 1) & ~(align - 1) : align;
    *ret_rounded = rounded;
    if (arena->blocks && rounded <= arena->blocks->room - arena->used) {
        void *at = arena->blocks->bytes + arena->used;
        arena->used += rounded;
        arena->taken += rounded;
        return at;
    }
    void *at = take_raw(arena, rounded);
    if (at)
        arena->taken += rounded;
    return at;
}

void *hf_arena_take(struct hf_arena *arena, size_t bytes)
{
    size_t rounded = 0;
    void *at = take_rounded(arena, bytes, &rounded);
    if (at)
        memset(at, 0, rounded); /* a block kept by hf_arena_reset is full of old data */
    return at;
}

void *hf_arena_array(struct hf_arena *arena, size_t count, size_t each)
{
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, each, &bytes))
        return NULL;
    return hf_arena_take(arena, bytes);
}

void *hf_arena_room(struct hf_arena *arena, size_t count, size_t each)
{
    size_t bytes = 0, rounded = 0;
    if (__builtin_mul_overflow(count, each, &bytes))
        return NULL;
    return take_rounded(arena, bytes, &rounded);
}

char *hf_arena_copy(struct hf_arena *arena, const void *bytes, size_t len)
{
    size_t rounded = 0;
    char *copy = len < SIZE_MAX ? take_rounded(arena, len + 1, &rounded) : NULL;
    if (!copy)
        return NULL;
    if (len > 0)
        memcpy(copy, bytes, len);
    copy[len] = '\0';
    return copy;
}

void *hf_arena_dup(struct hf_arena *arena, const void *bytes, size_t len)
{
    size_t rounded = 0;
    void *copy = take_rounded(arena, len, &rounded);
    return copy ? memcpy(copy, bytes, len) : NULL;
}

char *hf_arena_text(struct hf_arena *arena, const char *text)
{
    return text ? hf_arena_copy(arena, text, strlen(text)) : NULL;
}

char *hf_arena_join(struct hf_arena *arena, const char *a, const char *b)
{
    size_t first = strlen(a), second = strlen(b);
    char *whole = hf_arena_take(arena, first + second + 1);
    if (!whole)
        return NULL;
    memcpy(whole, a, first);
    memcpy(whole + first, b, second);
    return whole;
}
