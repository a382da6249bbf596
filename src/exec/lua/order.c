/* The order of keys. Lua's own follows addresses and a hash seed; ours follows values. */
#include "exec/lua/run.h"

#include <stdlib.h>
#include <string.h>

void hf_lua_key_of(lua_State *L, int index, struct hf_lua_key *ret_key)
{
    struct hf_lua_key key = { .kind = HF_LUA_KEY_OTHER };
    switch (lua_type(L, index)) {
    case LUA_TNUMBER:
        key.kind = HF_LUA_KEY_NUMBER;
        key.whole = lua_isinteger(L, index);
        if (key.whole)
            key.integer = lua_tointeger(L, index);
        else
            key.number = lua_tonumber(L, index);
        break;
    case LUA_TSTRING:
        key.kind = HF_LUA_KEY_TEXT;
        key.text = lua_tolstring(L, index, &key.len);
        break;
    case LUA_TBOOLEAN:
        key.kind = HF_LUA_KEY_BOOLEAN;
        key.flag = lua_toboolean(L, index);
        break;
    case LUA_TLIGHTUSERDATA: key.kind = HF_LUA_KEY_NULL; break;
    default: break;
    }
    *ret_key = key;
}

/* A real that is whole is never a key: Lua makes it an integer. So a real that is equal to
 * an integer as far as a double can tell lies outside of all integers. */
static int compare_mixed(lua_Integer integer, lua_Number number)
{
    const lua_Number two_63 = 9223372036854775808.0;
    if (number >= two_63)
        return -1;
    if (number < -two_63)
        return 1;
    lua_Integer below = (lua_Integer)number; /* towards zero */
    if (integer != below)
        return integer < below ? -1 : 1;
    return number > (lua_Number)below ? -1 : 1;
}

static int compare_numbers(const struct hf_lua_key *a, const struct hf_lua_key *b)
{
    if (a->whole && b->whole)
        return (a->integer > b->integer) - (a->integer < b->integer);
    if (!a->whole && !b->whole)
        return (a->number > b->number) - (a->number < b->number);
    return a->whole ? compare_mixed(a->integer, b->number)
                    : -compare_mixed(b->integer, a->number);
}

int hf_lua_key_compare(const void *left, const void *right)
{
    const struct hf_lua_key *a = left;
    const struct hf_lua_key *b = right;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->kind == HF_LUA_KEY_NUMBER)
        return compare_numbers(a, b);
    if (a->kind == HF_LUA_KEY_BOOLEAN)
        return (int)a->flag - (int)b->flag;
    if (a->kind != HF_LUA_KEY_TEXT)
        return 0;
    size_t common = a->len < b->len ? a->len : b->len;
    int order = memcmp(a->text, b->text, common);
    return order ? order : (a->len > b->len) - (a->len < b->len);
}

void hf_lua_push_key(lua_State *L, const struct hf_lua_key *key)
{
    switch (key->kind) {
    case HF_LUA_KEY_NUMBER:
        if (key->whole)
            lua_pushinteger(L, key->integer);
        else
            lua_pushnumber(L, key->number);
        break;
    case HF_LUA_KEY_TEXT: lua_pushlstring(L, key->text, key->len); break;
    case HF_LUA_KEY_BOOLEAN: lua_pushboolean(L, key->flag); break;
    case HF_LUA_KEY_NULL: lua_pushlightuserdata(L, NULL); break;
    case HF_LUA_KEY_OTHER: lua_pushnil(L); break;
    }
}

static size_t count_keys(lua_State *L, int index)
{
    size_t count = 0;
    lua_pushnil(L);
    while (lua_next(L, index)) {
        count++;
        lua_pop(L, 1);
    }
    return count;
}

/* Most tables that are written or walked through are lists or were made in order. */
static bool in_order(const struct hf_lua_key *keys, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (hf_lua_key_compare(&keys[i - 1], &keys[i]) > 0)
            return false;
    return true;
}

/* Heap sort: qsort may take memory that no caller counts. */
static void sift(struct hf_lua_key *keys, size_t at, size_t count)
{
    struct hf_lua_key key = keys[at];
    for (size_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && hf_lua_key_compare(&keys[child], &keys[child + 1]) < 0)
            child++;
        if (hf_lua_key_compare(&key, &keys[child]) >= 0)
            break;
        keys[at] = keys[child];
        at = child;
    }
    keys[at] = key;
}

static void sort_keys(struct hf_lua_key *keys, size_t count)
{
    if (in_order(keys, count))
        return;
    for (size_t i = count / 2; i > 0; i--)
        sift(keys, i - 1, count);
    for (size_t last = count - 1; last > 0; last--) {
        struct hf_lua_key key = keys[last];
        keys[last] = keys[0];
        keys[0] = key;
        sift(keys, 0, last);
    }
}

/* One text for all of them: which such key is met first follows addresses, and pcall can
 * read what an error says. */
void hf_lua_refuse_key(lua_State *L)
{
    luaL_error(L, "a table or a function as a key has no order, so the table cannot be "
                  "walked through; use texts or numbers as keys");
    __builtin_unreachable();
}

const struct hf_lua_key *hf_lua_keys(lua_State *L, int index, bool any, size_t *ret_count)
{
    index = lua_absindex(L, index);
    luaL_checkstack(L, 6, NULL);
    size_t count = count_keys(L, index);
    hf_lua_charge(L, 1 + count);
    struct hf_lua_key *keys = lua_newuserdatauv(L, count * sizeof(*keys), 0);
    size_t i = 0;
    lua_pushnil(L);
    while (lua_next(L, index)) {
        hf_lua_key_of(L, -2, &keys[i]);
        if (keys[i].kind == HF_LUA_KEY_OTHER && !any)
            hf_lua_refuse_key(L);
        keys[i].at = (uint32_t)i + 1;
        i++;
        lua_pop(L, 1);
    }
    sort_keys(keys, count);
    *ret_count = count;
    return keys;
}

size_t hf_lua_key_order(lua_State *L, int index, int list)
{
    size_t count = 0;
    const struct hf_lua_key *keys = hf_lua_keys(L, index, false, &count);
    uint32_t *order = lua_newuserdatauv(L, count * sizeof(*order) + 1, 0);
    for (size_t i = 0; i < count; i++)
        order[i] = keys[i].at;
    lua_Integer at = 1;
    lua_pushnil(L);
    while (lua_next(L, index)) { /* the same order as above: nothing changed */
        lua_pop(L, 1);
        lua_pushvalue(L, -1);
        lua_rawseti(L, list, at++);
    }
    lua_remove(L, -2); /* the keys */
    return count;
}
