/* Lua's values as JSON. Three forms, see exec/lua/run.h; the form BINDINGS is stored, so it may
 * never change. It is described in docs/internals/cells.md. */
#include "exec/lua/run.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/json_get.h"
#include "core/turn/schema.h"
#include "exec/cell/bindings.h"

#define FEW_KEYS 8

struct step {
    const char *text; /* NULL: a number */
    lua_Integer number;
};

struct writer {
    lua_State *L;
    struct hf_buf *out;
    enum hf_lua_form form;
    const char *root;
    int levels; /* of JSON, open now */
    int depth;  /* tables open now */
    const void *open[HF_LUA_LEVELS];
    struct step path[HF_LUA_LEVELS];
};

static void put_path(const struct writer *w, struct hf_buf *to)
{
    hf_buf_text(to, w->root);
    for (int i = 0; i < w->depth; i++) {
        if (w->path[i].text) {
            hf_buf_char(to, '.');
            hf_buf_text(to, w->path[i].text);
        } else {
            hf_buf_char(to, '[');
            hf_buf_i64(to, w->path[i].number);
            hf_buf_char(to, ']');
        }
    }
}

/* The message: where, and what is wrong. */
static int refuse(const struct writer *w, const char *problem)
{
    struct hf_buf *message = &hf_lua_run_of(w->L)->message;
    hf_buf_reset(message);
    hf_buf_char(message, '`');
    put_path(w, message);
    hf_buf_text(message, "` ");
    hf_buf_text(message, problem);
    return HF_EINVAL;
}

/* The same of a table whose items are being written. */
static int refuse_table(struct writer *w, const char *problem)
{
    w->depth--;
    int rc = refuse(w, problem);
    w->depth++;
    return rc;
}

static void put_quoted(struct hf_buf *out, const char *text, size_t len)
{
    struct hf_json json;
    hf_json_begin(&json, out);
    hf_json_strn(&json, text, len);
}

static void put_json_real(struct hf_buf *out, double value)
{
    struct hf_json json;
    hf_json_begin(&json, out);
    hf_json_f64(&json, value);
}

static int write_real(struct writer *w, double value)
{
    if (isfinite(value)) {
        if (w->form == HF_LUA_PLAIN)
            put_json_real(w->out, value);
        else
            hf_bindings_put_real(w->out, value);
        return 0;
    }
    const char *word = isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    if (w->form == HF_LUA_PLAIN)
        return refuse(w, "is a number that JSON does not have (nan or inf)");
    if (w->form == HF_LUA_BINDINGS)
        hf_buf_text(w->out, "{\"$num\":\"");
    hf_buf_text(w->out, word);
    if (w->form == HF_LUA_BINDINGS)
        hf_buf_text(w->out, "\"}");
    return 0;
}

static int write_text(struct writer *w, int index)
{
    size_t len = 0;
    const char *text = lua_tolstring(w->L, index, &len);
    if (w->form == HF_LUA_VIEW || hf_text_clean(text, len)) {
        put_quoted(w->out, text, len);
        return 0;
    }
    if (w->form == HF_LUA_PLAIN)
        return refuse(w, "is a string of bytes that are not UTF-8 text");
    hf_buf_text(w->out, "{\"$hex\":\"");
    hf_buf_hex(w->out, text, len);
    hf_buf_text(w->out, "\"}");
    return 0;
}

static int write_value(struct writer *w, int index);

static int write_list(struct writer *w, int index, size_t count)
{
    int rc = 0;
    hf_buf_char(w->out, '[');
    for (size_t i = 1; i <= count && rc == 0; i++) {
        if (i > 1)
            hf_buf_char(w->out, ',');
        w->path[w->depth - 1] = (struct step){ .number = (lua_Integer)i };
        lua_rawgeti(w->L, index, (lua_Integer)i);
        rc = write_value(w, -1);
        lua_pop(w->L, 1);
    }
    hf_buf_char(w->out, ']');
    return rc;
}

static void put_key_view(struct writer *w, const struct hf_lua_key *key)
{
    if (key->kind == HF_LUA_KEY_TEXT) {
        put_quoted(w->out, key->text, key->len);
        return;
    }
    hf_buf_char(w->out, '[');
    if (key->kind == HF_LUA_KEY_NUMBER && key->whole)
        hf_buf_i64(w->out, key->integer);
    else if (key->kind == HF_LUA_KEY_NUMBER && isfinite(key->number))
        hf_bindings_put_real(w->out, key->number);
    else
        hf_buf_text(w->out, key->kind == HF_LUA_KEY_BOOLEAN && key->flag ? "true"
                            : key->kind == HF_LUA_KEY_BOOLEAN            ? "false"
                                                                         : "?");
    hf_buf_char(w->out, ']');
}

static void step_to(struct writer *w, const struct hf_lua_key *key)
{
    bool text = key->kind == HF_LUA_KEY_TEXT;
    bool whole = key->kind == HF_LUA_KEY_NUMBER && key->whole;
    w->path[w->depth - 1] = (struct step){ .text = text    ? key->text
                                                   : whole ? NULL
                                                           : "?",
                                           .number = whole ? key->integer : 0 };
}

/* What kind of keys a table has. */
struct shape {
    size_t count;
    size_t list; /* integers from 1 */
    size_t text; /* that a JSON key can be */
    lua_Integer last;
    bool tag;                        /* one of the keys is the name of a tag */
    struct hf_lua_key few[FEW_KEYS]; /* the texts, by their bytes, if they are all */
};

/* Keeps the keys in order: most tables are small, and need no second look. */
static void add_key(struct shape *shape, const struct hf_lua_key *key)
{
    size_t at = shape->text;
    for (; at > 0 && hf_lua_key_compare(&shape->few[at - 1], key) > 0; at--)
        shape->few[at] = shape->few[at - 1];
    shape->few[at] = *key;
}

static void look_at_keys(lua_State *L, int index, struct shape *ret_shape)
{
    struct shape *shape = ret_shape;
    shape->count = shape->list = shape->text = 0;
    shape->last = 0;
    shape->tag = false;
    lua_pushnil(L);
    while (lua_next(L, index)) {
        shape->count++;
        if (lua_isinteger(L, -2)) {
            lua_Integer key = lua_tointeger(L, -2);
            shape->list += key > 0 ? 1 : 0;
            shape->last = key > shape->last ? key : shape->last;
        } else if (lua_type(L, -2) == LUA_TSTRING) {
            size_t len = 0;
            const char *key = lua_tolstring(L, -2, &len);
            bool clean = hf_text_clean(key, len);
            if (clean && shape->text < FEW_KEYS)
                add_key(shape, &(struct hf_lua_key){
                                   .kind = HF_LUA_KEY_TEXT, .text = key, .len = len });
            shape->text += clean ? 1 : 0;
            shape->tag |= hf_bindings_is_tag(key, len);
        }
        lua_pop(L, 1);
    }
}

/* The keys are pushed, unless they are few; the value of each is found again by its key. */
static int write_object(struct writer *w, int index, const struct shape *shape)
{
    size_t count = shape->count;
    int rc = 0;
    bool first = true;
    bool few = count <= FEW_KEYS && shape->text == count;
    const struct hf_lua_key *keys = shape->few;
    if (few)
        hf_lua_charge(w->L, 1 + count); /* as hf_lua_keys does */
    else
        keys = hf_lua_keys(w->L, index, true, &count);
    hf_buf_char(w->out, '{');
    for (size_t i = 0; i < count && rc == 0; i++) {
        if (keys[i].kind == HF_LUA_KEY_OTHER)
            continue; /* only in views */
        step_to(w, &keys[i]);
        if (!first)
            hf_buf_char(w->out, ',');
        first = false;
        put_key_view(w, &keys[i]);
        hf_buf_char(w->out, ':');
        hf_lua_push_key(w->L, &keys[i]);
        lua_rawget(w->L, index);
        rc = write_value(w, -1);
        lua_pop(w->L, 1);
    }
    hf_buf_char(w->out, '}');
    lua_pop(w->L, few ? 0 : 1);
    return rc;
}

/* {"$map":[[key,value],…]}: for tables that neither a list nor an object can show. */
static int write_map(struct writer *w, int index)
{
    size_t count = 0;
    int rc = 0;
    const struct hf_lua_key *keys = hf_lua_keys(w->L, index, true, &count);
    hf_buf_text(w->out, "{\"$map\":[");
    for (size_t i = 0; i < count && rc == 0; i++) {
        step_to(w, &keys[i]);
        if (keys[i].kind == HF_LUA_KEY_OTHER) {
            rc = refuse(w, "has a table or a function as its key");
            break;
        }
        hf_buf_text(w->out, i > 0 ? ",[" : "[");
        hf_lua_push_key(w->L, &keys[i]);
        rc = write_value(w, -1);
        hf_buf_char(w->out, ',');
        lua_rawget(w->L, index);
        if (rc == 0)
            rc = write_value(w, -1);
        lua_pop(w->L, 1);
        hf_buf_char(w->out, ']');
    }
    hf_buf_text(w->out, "]}");
    lua_pop(w->L, 1);
    return rc;
}

static bool is_list(lua_State *L, int index)
{
    if (!lua_getmetatable(L, index))
        return false;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &hf_lua_list_key);
    bool list = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return list;
}

/* A class is no data: without its metatable it would come back as something different. */
static bool has_own_metatable(lua_State *L, int index)
{
    if (!lua_getmetatable(L, index))
        return false;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &hf_lua_list_key);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &hf_lua_failure_key);
    bool ours = lua_rawequal(L, -1, -3) || lua_rawequal(L, -2, -3);
    lua_pop(L, 3);
    return !ours;
}

static int write_table_body(struct writer *w, int index)
{
    struct shape shape;
    look_at_keys(w->L, index, &shape);
    if (shape.count == 0) {
        hf_buf_text(w->out, is_list(w->L, index) ? "[]" : "{}");
        return 0;
    }
    if (shape.list == shape.count && (size_t)shape.last == shape.count)
        return write_list(w, index, shape.count);
    bool object = shape.text == shape.count;
    if (w->form == HF_LUA_VIEW || (object && w->form == HF_LUA_PLAIN) ||
        (object && !(shape.count == 1 && shape.tag)))
        return write_object(w, index, &shape);
    if (w->form == HF_LUA_BINDINGS) {
        w->levels += 2;
        int rc = w->levels > HF_LUA_LEVELS ? refuse_table(w, "is nested too deeply")
                                           : write_map(w, index);
        w->levels -= 2;
        return rc;
    }
    if (shape.list == shape.count)
        return refuse_table(w, "is a list with holes; put `null` where there is nothing");
    return refuse_table(
        w, "mixes list items and named fields, or has keys that are not text; "
           "JSON has lists and objects only");
}

static int write_own_table(struct writer *w, int index)
{
    bool view = w->form == HF_LUA_VIEW;
    const void *self = lua_topointer(w->L, index);
    for (int i = 0; i < w->depth; i++) {
        if (w->open[i] == self && view) {
            hf_buf_text(w->out, "<cycle>");
            return 0;
        }
        if (w->open[i] == self)
            return refuse(w, "contains itself; only data without cycles can be written");
    }
    if (w->levels == HF_LUA_LEVELS && view) {
        hf_buf_text(w->out, "<deeper>");
        return 0;
    }
    if (w->levels == HF_LUA_LEVELS)
        return refuse(w, "is nested too deeply; at most 48 levels");
    if (w->form == HF_LUA_BINDINGS && has_own_metatable(w->L, index))
        return refuse(w, "has a metatable and cannot be kept; keep plain data in it");
    luaL_checkstack(w->L, 8, NULL);
    w->open[w->depth++] = self;
    w->levels++;
    int rc = write_table_body(w, index);
    w->levels--;
    w->depth--;
    return rc;
}

static int write_table(struct writer *w, int index)
{
    luaL_checkstack(w->L, 4, NULL);
    if (!hf_lua_push_inner(w->L, index))
        return write_own_table(w, index);
    int rc = write_own_table(w, lua_gettop(w->L));
    lua_pop(w->L, 1);
    return rc;
}

static int write_other(struct writer *w, int type)
{
    if (w->form == HF_LUA_VIEW) {
        hf_buf_char(w->out, '<');
        hf_buf_text(w->out, lua_typename(w->L, type));
        hf_buf_char(w->out, '>');
        return 0;
    }
    return refuse(w, w->form == HF_LUA_BINDINGS
                         ? "is a function and cannot be kept; only data lasts until the "
                           "next cell"
                         : "is a function, which JSON does not have");
}

static int write_value(struct writer *w, int index)
{
    lua_State *L = w->L;
    int type = lua_type(L, index);
    int rc = 0;
    index = lua_absindex(L, index);
    switch (type) {
    case LUA_TNIL:
    case LUA_TLIGHTUSERDATA: hf_buf_text(w->out, "null"); break;
    case LUA_TBOOLEAN:
        hf_buf_text(w->out, lua_toboolean(L, index) ? "true" : "false");
        break;
    case LUA_TNUMBER:
        if (lua_isinteger(L, index))
            hf_buf_i64(w->out, lua_tointeger(L, index));
        else
            rc = write_real(w, lua_tonumber(L, index));
        break;
    case LUA_TSTRING: rc = write_text(w, index); break;
    case LUA_TTABLE: rc = write_table(w, index); break;
    default: rc = write_other(w, type); break;
    }
    return rc ? rc : hf_buf_state(w->out);
}

int hf_lua_write(lua_State *L, int index, enum hf_lua_form form, const char *root,
                 struct hf_buf *out)
{
    struct writer w = { .L = L, .out = out, .form = form, .root = root };
    size_t before = out->len;
    int rc = write_value(&w, index);
    if (rc == 0)
        hf_lua_charge_bytes(L, out->len - before);
    return rc;
}
