/* Memory for the many small blocks of a Lua state: blocks up to a size come from slabs and go back
 * to a list of their size; all slabs are freed together. Larger blocks are the allocator's
 * (pool.h). */
#include "exec/lua/pool.h"

#include <string.h>

#define SLAB_FIRST ((size_t)4096)
#define SLAB_LARGEST ((size_t)65536)

struct hf_lua_pool_slab {
    struct hf_lua_pool_slab *next;
    size_t bytes; /* keeps what follows aligned */
};

void hf_lua_pool_init(struct hf_lua_pool *pool, const struct hf_alloc *alloc)
{
    *pool = (struct hf_lua_pool){ .alloc = alloc };
}

void hf_lua_pool_fini(struct hf_lua_pool *pool)
{
    struct hf_lua_pool_slab *slab = pool->slabs;
    while (slab) {
        struct hf_lua_pool_slab *next = slab->next;
        pool->alloc->free(pool->alloc->user, slab);
        slab = next;
    }
    hf_lua_pool_init(pool, pool->alloc);
}

static size_t size_of(size_t bytes)
{
    return (bytes - 1) / HF_LUA_POOL_GRAIN;
}

static bool is_small(size_t bytes)
{
    return bytes > 0 && bytes <= HF_LUA_POOL_BLOCK_MAX;
}

/* What is left of the slab before is given up: less than one block. */
static bool add_slab(struct hf_lua_pool *pool)
{
    size_t bytes = pool->slab_bytes == 0             ? SLAB_FIRST
                   : pool->held < 4 * SLAB_FIRST     ? SLAB_FIRST
                   : pool->slab_bytes < SLAB_LARGEST ? pool->slab_bytes * 2
                                                     : SLAB_LARGEST;
    struct hf_lua_pool_slab *slab = pool->alloc->realloc(pool->alloc->user, NULL, bytes);
    if (!slab)
        return false;
    *slab = (struct hf_lua_pool_slab){ .next = pool->slabs, .bytes = bytes };
    pool->slabs = slab;
    pool->slab_bytes = bytes;
    pool->held += bytes;
    pool->at = (char *)(slab + 1);
    pool->end = (char *)slab + bytes;
    return true;
}

static void *take(struct hf_lua_pool *pool, size_t bytes)
{
    size_t size = size_of(bytes);
    void *block = pool->free[size];
    if (block) {
        memcpy(&pool->free[size], block, sizeof(void *));
        return block;
    }
    size_t whole = (size + 1) * HF_LUA_POOL_GRAIN;
    if ((size_t)(pool->end - pool->at) < whole && !add_slab(pool))
        return NULL;
    block = pool->at;
    pool->at += whole;
    return block;
}

void hf_lua_pool_release(struct hf_lua_pool *pool, void *old, size_t had)
{
    if (!is_small(had)) {
        pool->held -= had;
        pool->alloc->free(pool->alloc->user, old);
        return;
    }
    size_t size = size_of(had);
    memcpy(old, &pool->free[size], sizeof(void *));
    pool->free[size] = old;
}

static void *take_large(struct hf_lua_pool *pool, void *old, size_t had, size_t bytes)
{
    void *block = pool->alloc->realloc(pool->alloc->user, old, bytes);
    if (block)
        pool->held += bytes - had;
    return block;
}

void *hf_lua_pool_resize(struct hf_lua_pool *pool, void *old, size_t had, size_t bytes)
{
    bool small = is_small(bytes);
    if (!old || had == 0)
        return small ? take(pool, bytes) : take_large(pool, NULL, 0, bytes);
    if (!small && !is_small(had))
        return take_large(pool, old, had, bytes);
    if (small && is_small(had) && size_of(had) == size_of(bytes))
        return old;
    void *block = small ? take(pool, bytes) : take_large(pool, NULL, 0, bytes);
    if (!block)
        return NULL;
    memcpy(block, old, had < bytes ? had : bytes);
    hf_lua_pool_release(pool, old, had);
    return block;
}
