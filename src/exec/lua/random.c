/* random: the host passes 64 random bits once, as an operation; what the cell draws
 * follows from them (xoshiro256**, seeded by splitmix64). */
#include "exec/lua/run.h"

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t rotate(uint64_t x, int by)
{
    return (x << by) | (x >> (64 - by));
}

static uint64_t draw(uint64_t s[4])
{
    uint64_t result = rotate(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

/* A number from 0 to `most`, each as likely: what falls past the last whole range of them
 * is drawn again. */
static uint64_t draw_below(uint64_t s[4], uint64_t most)
{
    if (most == UINT64_MAX)
        return draw(s);
    uint64_t range = most + 1;
    uint64_t usable = UINT64_MAX - (UINT64_MAX % range + 1) % range;
    uint64_t drawn = draw(s);
    while (drawn > usable)
        drawn = draw(s);
    return drawn % range;
}

static int give(lua_State *L)
{
    struct hf_engine_run *run = hf_lua_run_of(L);
    int count = (int)lua_tointeger(L, 1); /* of arguments, which follow */
    if (count == 0) {
        lua_pushnumber(L, (lua_Number)(draw(run->random) >> 11) * 0x1p-53);
        return 1;
    }
    lua_Integer low = count > 1 ? luaL_checkinteger(L, 2) : 1;
    lua_Integer high = luaL_checkinteger(L, count > 1 ? 3 : 2);
    uint64_t drawn = draw_below(run->random, (uint64_t)high - (uint64_t)low);
    lua_pushinteger(L, (lua_Integer)((uint64_t)low + drawn));
    return 1;
}

static int seeded(lua_State *L, int status, lua_KContext ctx)
{
    struct hf_engine_run *run = hf_lua_run_of(L);
    (void)status;
    (void)ctx;
    hf_lua_read(L, run->answer->value, HF_LUA_PLAIN);
    uint64_t seed = (uint64_t)lua_tointeger(L, -1);
    lua_pop(L, 1);
    for (int i = 0; i < 4; i++)
        run->random[i] = splitmix(&seed);
    run->seeded = true;
    return give(L);
}

static int host_random(lua_State *L)
{
    struct hf_engine_run *run = hf_lua_run_of(L);
    int count = lua_gettop(L);
    lua_Integer low = count > 1 ? luaL_checkinteger(L, 1) : 1;
    if (count > 2)
        return luaL_error(L, "random takes at most two numbers");
    if (count > 0 && luaL_checkinteger(L, count) < low)
        return luaL_argerror(L, count, "interval is empty");
    lua_pushinteger(L, count);
    lua_insert(L, 1);
    if (run->seeded)
        return give(L);
    hf_buf_text(&hf_lua_begin(L)->out, "null");
    return hf_lua_suspend(L, HF_OP_RANDOM, NULL, seeded);
}

void hf_lua_open_random(lua_State *L)
{
    lua_pushcfunction(L, host_random);
}
