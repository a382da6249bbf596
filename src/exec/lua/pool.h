/* Memory for many small blocks: a Lua state makes and drops tables of a few dozen bytes all
 * the time, and the system's allocator takes ten times as many instructions for that. Blocks
 * up to HF_LUA_POOL_BLOCK_MAX bytes come from slabs and go back to a list of their size; all slabs
 * are freed together. One thread at a time. */
#ifndef HF_EXEC_LUA_POOL_H
#define HF_EXEC_LUA_POOL_H

#include <holdfast/types.h>

#define HF_LUA_POOL_GRAIN ((size_t)16)
#define HF_LUA_POOL_BLOCK_MAX ((size_t)256)
#define HF_LUA_POOL_SIZES (HF_LUA_POOL_BLOCK_MAX / HF_LUA_POOL_GRAIN)

struct hf_lua_pool_slab;

struct hf_lua_pool {
    const struct hf_alloc *alloc;
    void
        *free[HF_LUA_POOL_SIZES]; /* blocks of (i + 1) grains, each with the next in it */
    char *at;                     /* what is left of the newest slab */
    char *end;
    struct hf_lua_pool_slab *slabs;
    size_t slab_bytes; /* of the newest */
    size_t held;       /* of all slabs and large blocks */
};

void hf_lua_pool_init(struct hf_lua_pool *pool, const struct hf_alloc *alloc);
void hf_lua_pool_fini(struct hf_lua_pool *pool); /* large blocks must be free again */

/* As realloc and free, told what the block had; `had` is 0 for none. NULL when out of memory:
 * the block is then as it was. */
void *hf_lua_pool_resize(struct hf_lua_pool *pool, void *old, size_t had, size_t bytes);
void hf_lua_pool_release(struct hf_lua_pool *pool, void *old, size_t had);

#endif
