#include "exec/gen.h"

#include <stdarg.h>
#include <stdio.h>

/* Names by what they hold: numbers n1…, texts s1…, lists of numbers l1…, maps from texts to
 * numbers m1…. Odd ones are globals, and so bindings. */
#define NAMES 6

struct gen {
    uint64_t state;
    struct hf_buf *out;
    int depth;
};

static unsigned pick(struct gen *gen, unsigned below)
{
    gen->state ^= gen->state << 13;
    gen->state ^= gen->state >> 7;
    gen->state ^= gen->state << 17;
    return (unsigned)((gen->state >> 20) % below);
}

__attribute__((format(printf, 2, 3))) static void put(struct gen *gen, const char *format,
                                                      ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    hf_buf_bytes(gen->out, text, (size_t)len);
}

static unsigned name(struct gen *gen)
{
    return pick(gen, NAMES) + 1;
}

static const char *word(struct gen *gen)
{
    static const char *const words[] = { "alpha", "Beta", "gamma", "ä", "été", "zeta",
                                         "10",    "2",    "",      "_", "Z",   "a b",
                                         "1.5",   "x=1",  "(p)",   "%d" };
    return words[pick(gen, sizeof(words) / sizeof(words[0]))];
}

static void put_number(struct gen *gen)
{
    switch (pick(gen, 14)) {
    case 0: put(gen, "%u", pick(gen, 100)); break;
    case 1: put(gen, "%u.%u", pick(gen, 100), pick(gen, 1000)); break;
    case 2: put(gen, "-%ue%u", pick(gen, 9) + 1, pick(gen, 30)); break;
    case 3: put(gen, "(n%u + n%u)", name(gen), name(gen)); break;
    case 4: put(gen, "(n%u * 0.1)", name(gen)); break;
    case 5: put(gen, "#l%u", name(gen)); break;
    case 6: put(gen, "#s%u", name(gen)); break;
    case 7: put(gen, "(tonumber('%s') or %u)", word(gen), pick(gen, 9)); break;
    case 8: put(gen, "math.floor(n%u / 3)", name(gen)); break;
    case 9: put(gen, "random(%u)", pick(gen, 1000) + 1); break;
    case 10: put(gen, "(l%u[%u] or 7)", name(gen), pick(gen, 5) + 1); break;
    case 11: put(gen, "(g.l[%u] or #g.l)", pick(gen, 5) + 1); break;
    case 12: put(gen, "(echo.m['%s'] or 5)", word(gen)); break;
    default: put(gen, "(m%u['%s'] or 3)", name(gen), word(gen)); break;
    }
}

static void put_text(struct gen *gen)
{
    switch (pick(gen, 14)) {
    case 0: put(gen, "'%s'", word(gen)); break;
    case 1: put(gen, "(s%u .. '%s')", name(gen), word(gen)); break;
    case 2: put(gen, "tostring(n%u)", name(gen)); break;
    case 3: put(gen, "('%%5.2f|%%s'):format(n%u, s%u)", name(gen), name(gen)); break;
    case 4: put(gen, "s%u:upper():sub(1, 40)", name(gen)); break;
    case 5: put(gen, "(s%u:gsub('%%a', '<%%0>')):sub(1, 60)", name(gen)); break;
    case 6: put(gen, "table.concat(l%u, ',')", name(gen)); break;
    case 7: put(gen, "json.encode(m%u)", name(gen)); break;
    case 8: put(gen, "(s%u:match('(%%w+).-$') or 'none')", name(gen)); break;
    case 9: put(gen, "tostring(m%u)", name(gen)); break;
    case 10: put(gen, "s%u:rep(%u):sub(-30)", name(gen), pick(gen, 4)); break;
    case 11: put(gen, "json.encode({echo, next(g)}):sub(1, 40)"); break;
    case 12: put(gen, "tostring(select(2, pcall(table.sort, g.l)))"); break;
    default: put(gen, "('%%q'):format(s%u):sub(1, 60)", name(gen)); break;
    }
}

static void put_block(struct gen *gen, unsigned count);

static void put_list_change(struct gen *gen)
{
    unsigned l = name(gen);
    switch (pick(gen, 7)) {
    case 0:
        put(gen, "table.insert(l%u, ", l);
        put_number(gen);
        put(gen, ")\n");
        break;
    case 1: put(gen, "if #l%u > 2 then table.remove(l%u, 1) end\n", l, l); break;
    case 2: put(gen, "table.sort(l%u)\n", l); break;
    case 3:
        put(gen, "table.sort(l%u, function(a, b) return a %% 3 < b %% 3 end)\n", l);
        break;
    case 4:
        put(gen, "l%u = {table.unpack(l%u, 1, %u)}\n", l, name(gen), pick(gen, 4));
        break;
    case 5: put(gen, "l%u = {3, 1, 2, 10, %u}\n", l, pick(gen, 50)); break;
    default:
        put(gen, "if #l%u < 40 then table.move(l%u, 1, #l%u, 2) end\n", l, l, l);
        break;
    }
}

static void put_map_change(struct gen *gen)
{
    unsigned m = name(gen);
    switch (pick(gen, 7)) {
    case 0:
        put(gen, "m%u['%s'] = ", m, word(gen));
        put_number(gen);
        put(gen, "\n");
        break;
    case 1: put(gen, "m%u['%s'] = nil\n", m, word(gen)); break;
    case 2:
        put(gen, "for k, v in pairs(m%u) do s%u = (s%u .. k):sub(-50) n%u = v end\n", m,
            name(gen), name(gen), name(gen));
        break;
    case 3:
        put(gen,
            "for i = 1, %u do m%u['k' .. i] = i end for i = 1, %u do m%u['k' .. i] = nil "
            "end\n",
            pick(gen, 60) + 1, m, pick(gen, 60), m);
        break;
    case 4: put(gen, "s%u = tostring(next(m%u))\n", name(gen), m); break;
    case 5:
        put(gen,
            "do local t = {[{}] = 1, [print] = 2, [m%u] = 3, [function() end] = 4} "
            "s%u = tostring(select(2, pcall(%s, t))) end\n",
            m, name(gen), pick(gen, 2) ? "next" : "pairs");
        break;
    default: put(gen, "for k in pairs(m%u) do m%u[k] = nil break end\n", m, m); break;
    }
}

static void put_operation(struct gen *gen)
{
    switch (pick(gen, 9)) {
    case 0: put(gen, "print(s%u, n%u, m%u)\n", name(gen), name(gen), name(gen)); break;
    case 1:
        put(gen, "n%u = call('echo', {n = n%u ~= n%u and 1 or 2, l = list(l%u)}).n\n",
            name(gen), name(gen), name(gen), name(gen));
        break;
    case 2:
        put(gen,
            "for i, r in ipairs(call_batch{{'echo', {s = 'b'}}, {'fail'}}) do "
            "s%u = tostring(r.ok) .. i end\n",
            name(gen));
        break;
    case 3: put(gen, "n%u = now() %% 1000\n", name(gen)); break;
    case 4:
        put(gen, "local ok, e = pcall(call, 'fail') s%u = tostring(e)\n", name(gen));
        break;
    case 5: put(gen, "print(pcall(error, {code = n%u}))\n", name(gen)); break;
    case 6: put(gen, "sleep(%u)\n", pick(gen, 5)); break;
    case 7:
        put(gen,
            "s%u = (s%u:gsub('%%w', function(c) return call('echo', {c = c}).c end, "
            "2))\n",
            name(gen), name(gen));
        break;
    default: put(gen, "print(table.unpack(l%u))\n", name(gen)); break;
    }
}

static void put_flow(struct gen *gen)
{
    if (gen->depth >= 3)
        return;
    gen->depth++;
    switch (pick(gen, 5)) {
    case 0:
        put(gen, "for i = 1, %u do\n", pick(gen, 5));
        put_block(gen, 2);
        put(gen, "end\n");
        break;
    case 1:
        put(gen, "if n%u < n%u then\n", name(gen), name(gen));
        put_block(gen, 2);
        put(gen, "else\n");
        put_block(gen, 1);
        put(gen, "end\n");
        break;
    case 2:
        put(gen, "pcall(function()\n");
        put_block(gen, 2);
        put(gen, "error('e' .. s%u)\nend)\n", name(gen));
        break;
    case 3:
        put(gen, "for w in s%u:gmatch('[%%w.]+') do\n", name(gen));
        put_block(gen, 1);
        put(gen, "end\n");
        break;
    default:
        put(gen,
            "do local c = setmetatable({}, {__index = function(t, k) return k .. s%u "
            "end, __tostring = function() return 'obj' end})\ns%u = (c.x .. "
            "tostring(c)):sub(1, 20) end\n",
            name(gen), name(gen));
        break;
    }
    gen->depth--;
}

static void put_statement(struct gen *gen)
{
    switch (pick(gen, 12)) {
    case 0:
    case 1:
    case 2:
        put(gen, "n%u = ", name(gen));
        put_number(gen);
        put(gen, "\n");
        break;
    case 3:
    case 4:
    case 5:
        put(gen, "s%u = ", name(gen));
        put_text(gen);
        put(gen, "\n");
        break;
    case 6: put_list_change(gen); break;
    case 7:
    case 8: put_map_change(gen); break;
    case 9: put_flow(gen); break;
    default: put_operation(gen); break;
    }
}

static void put_block(struct gen *gen, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        put_statement(gen);
}

void gen_cell(uint64_t seed, struct hf_buf *out)
{
    struct gen gen = { .state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1, .out = out };
    for (unsigned i = 1; i <= NAMES; i++) {
        const char *where = i % 2 ? "" : "local ";
        put(&gen, "%sn%u = %u ", where, i, pick(&gen, 1000));
        put(&gen, "%ss%u = '%s' ", where, i, word(&gen));
        put(&gen, "%sl%u = {5, 3, 8, %u} ", where, i, pick(&gen, 20));
        put(&gen, "%sm%u = {b = 2, a = 1, ['%s'] = %u}\n", where, i, word(&gen),
            pick(&gen, 9));
    }
    put_block(&gen, 12 + pick(&gen, 20));
    if (pick(&gen, 6) == 0)
        put(&gen, "finish({l%u, m%u})\n", name(&gen), name(&gen));
}
