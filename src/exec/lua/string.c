/* The table `string`, except for patterns. Functions of Lua's own library are taken where
 * they are linear and the same everywhere; they are charged by what they are given. Not
 * here:
 * dump, pack, packsize, unpack (machine-dependent), %p. */
#include "exec/lua/run.h"

#include <string.h>

#include <lualib.h>

/* upvalue 1: a function of Lua's, which has no upvalues of its own. */
static int charged(lua_State *L)
{
    size_t bytes = 0;
    int count = lua_gettop(L);
    for (int i = 1; i <= count; i++)
        bytes += lua_type(L, i) == LUA_TSTRING ? lua_rawlen(L, i) : 1;
    hf_lua_charge_bytes(L, bytes);
    return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

void hf_lua_take_charged(lua_State *L, const char *const *names)
{
    for (; *names; names++) {
        lua_getfield(L, -1, *names);
        lua_pushcclosure(L, charged, 1);
        lua_setfield(L, -3, *names);
    }
    lua_pop(L, 1);
}

/* string.rep: Lua's runs through n even for empty strings. */
static int string_rep(lua_State *L)
{
    size_t len = 0;
    size_t gap_len = 0;
    const char *text = luaL_checklstring(L, 1, &len);
    lua_Integer count = luaL_checkinteger(L, 2);
    const char *gap = luaL_optlstring(L, 3, "", &gap_len);
    if (count <= 0 || len + gap_len == 0) {
        lua_pushliteral(L, "");
        return 1;
    }
    if (len + gap_len > HF_LUA_STRING_MAX / (uint64_t)count)
        return luaL_error(L, "resulting string too large (at most %d bytes)",
                          (int)HF_LUA_STRING_MAX);
    size_t whole = (size_t)count * len + (size_t)(count - 1) * gap_len;
    hf_lua_charge_bytes(L, whole + (size_t)count);
    luaL_Buffer out;
    char *at = luaL_buffinitsize(L, &out, whole);
    for (lua_Integer i = 0; i < count; i++) {
        memcpy(at, text, len);
        at += len;
        if (i + 1 < count) {
            memcpy(at, gap, gap_len);
            at += gap_len;
        }
    }
    luaL_pushresultsize(&out, whole);
    return 1;
}

/* One conversion of a format: "%-5.2s". */
struct spec {
    const char *start;
    size_t len;
    bool left;
    int width;     /* -1: none */
    int precision; /* -1: none */
    char kind;     /* '%' for a literal one; NUL at the end of the format */
};

static int take_digits(const char **at, const char *end)
{
    int value = -1;
    for (int i = 0; i < 2 && *at < end && **at >= '0' && **at <= '9'; i++)
        value = (value < 0 ? 0 : value * 10) + (*(*at)++ - '0');
    return value;
}

/* The next conversion at or after *at, which moves past it. */
static struct spec next_spec(const char **at, const char *end)
{
    struct spec spec = { .width = -1, .precision = -1 };
    const char *found = memchr(*at, '%', (size_t)(end - *at));
    if (!found) {
        spec.start = end;
        *at = end;
        return spec;
    }
    const char *in = found + 1;
    while (in < end && *in && strchr("-+ #0", *in)) {
        spec.left |= *in == '-';
        in++;
    }
    spec.width = take_digits(&in, end);
    if (in < end && *in == '.') {
        in++;
        spec.precision = take_digits(&in, end);
        if (spec.precision < 0)
            spec.precision = 0;
    }
    spec.kind = in < end ? *in++ : '?';
    spec.start = found;
    spec.len = (size_t)(in - found);
    *at = in;
    return spec;
}

static void check_spec(lua_State *L, const struct spec *spec, int argument)
{
    const char *kinds = "acdeifgioqsxAEFGX";
    if (spec->kind == '%' && spec->len == 2)
        return;
    if (spec->kind == 'p')
        luaL_error(L, "'%%p' is not available: an address is not the same twice");
    if (!strchr(kinds, spec->kind) || spec->kind == '\0' || spec->len > 20)
        luaL_error(L,
                   "invalid conversion in the format; write '%%%%' for a percent sign");
    if (argument > lua_gettop(L))
        luaL_argerror(L, argument, "no value");
}

static void add_text(lua_State *L, luaL_Buffer *out, const struct spec *spec,
                     int argument)
{
    size_t len = 0;
    hf_lua_push_text(L, argument);
    const char *text = lua_tolstring(L, -1, &len);
    if (spec->precision >= 0 && len > (size_t)spec->precision)
        len = (size_t)spec->precision;
    size_t pad = spec->width > 0 && (size_t)spec->width > len ? (size_t)spec->width - len
                                                              : 0;
    if (pad > 0) {
        luaL_Buffer padded;
        char *at = luaL_buffinitsize(L, &padded, len + pad);
        memset(at, ' ', len + pad);
        memcpy(at + (spec->left ? 0 : pad), text, len);
        luaL_pushresultsize(&padded, len + pad);
    } else {
        lua_pushlstring(L, text, len);
    }
    lua_remove(L, -2);
    luaL_addvalue(out);
}

/* Nothing is left that could call the cell. */
static int format_now(lua_State *L)
{
    size_t len = 0;
    const char *at = lua_tolstring(L, 1, &len);
    const char *end = at + len;
    int argument = 1;
    luaL_Buffer out;
    luaL_buffinit(L, &out);
    for (;;) {
        const char *from = at;
        struct spec spec = next_spec(&at, end);
        luaL_addlstring(&out, from, (size_t)(spec.start - from));
        if (spec.kind == '\0')
            break;
        if (spec.kind == '%') {
            luaL_addchar(&out, '%');
            continue;
        }
        argument++;
        if (spec.kind == 's') {
            add_text(L, &out, &spec, argument);
            continue;
        }
        lua_pushvalue(L, lua_upvalueindex(1));
        lua_pushlstring(L, spec.start, spec.len);
        lua_pushvalue(L, argument);
        lua_call(L, 2, 1);
        luaL_addvalue(&out);
    }
    luaL_pushresult(&out);
    return 1;
}

static void put_back(lua_State *L, int argument)
{
    if (lua_type(L, -1) != LUA_TSTRING)
        luaL_error(L, "'__tostring' must return a string");
    lua_replace(L, argument);
}

static int format_next(lua_State *L, int status, lua_KContext ctx);

/* Converts what has a __tostring; arguments up to `done` are converted. */
static int format_from(lua_State *L, int done)
{
    size_t len = 0;
    const char *at = luaL_checklstring(L, 1, &len);
    const char *end = at + len;
    int argument = 1;
    struct spec spec = next_spec(&at, end);
    for (; spec.kind != '\0'; spec = next_spec(&at, end)) {
        check_spec(L, &spec, spec.kind == '%' ? 1 : argument + 1);
        if (spec.kind == '%')
            continue;
        argument++;
        if (spec.kind == 's' && argument > done &&
            hf_lua_text_method(L, argument, argument, format_next))
            put_back(L, argument);
    }
    return format_now(L);
}

static int format_next(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    put_back(L, (int)ctx);
    return format_from(L, (int)ctx);
}

static int string_format(lua_State *L)
{
    size_t len = 0;
    luaL_checklstring(L, 1, &len);
    hf_lua_charge_bytes(L, len + 16 * (size_t)lua_gettop(L));
    return format_from(L, 1);
}

/* What `s:upper()` and `"10" + 1` look into. Nothing hands it out. */
static void set_metatable(lua_State *L)
{
    static const char *const arithmetic[] = { "__add", "__sub", "__mul",  "__mod",
                                              "__pow", "__div", "__idiv", "__unm" };
    int functions = lua_gettop(L);
    lua_pushliteral(L, "");
    lua_getmetatable(L, -1); /* Lua's */
    lua_createtable(L, 0, 10);
    for (size_t i = 0; i < sizeof(arithmetic) / sizeof(arithmetic[0]); i++) {
        lua_getfield(L, -2, arithmetic[i]);
        lua_setfield(L, -2, arithmetic[i]);
    }
    lua_pushvalue(L, functions);
    lua_setfield(L, -2, "__index");
    lua_remove(L, -2);
    lua_setmetatable(L, -2);
    lua_settop(L, functions);
}

void hf_lua_open_string(lua_State *L)
{
    static const char *const stock[] = { "byte",    "char", "len",   "lower",
                                         "reverse", "sub",  "upper", NULL };
    lua_createtable(L, 0, 16);
    lua_pushcfunction(L, luaopen_string);
    lua_call(L, 0, 1);
    lua_getfield(L, -1, "format");
    lua_pushcclosure(L, string_format, 1);
    lua_setfield(L, -3, "format");
    hf_lua_take_charged(L, stock);
    lua_pushcfunction(L, string_rep);
    lua_setfield(L, -2, "rep");
    hf_lua_open_pattern(L);
    set_metatable(L);
    lua_setfield(L, -2, "string");
}
