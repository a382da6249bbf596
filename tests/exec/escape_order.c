/* What must be the same in every process, at every address, in every locale. */
#include "exec/escape.h"

const struct escape escape_order[] = {
    { "pairs_goes_by_value", HF_CELL_DONE, "1 print -3 -1.5 0 1 2 10 a b z false true\n",
      "local t = {z = 1, b = 1, a = 1, [10] = 1, [2] = 1, [1] = 1, [0] = 1, [-3] = 1, "
      "[-1.5] = 1, [true] = 1, [false] = 1} "
      "local r = {} for k in pairs(t) do r[#r + 1] = tostring(k) end "
      "print(table.concat(r, ' '))" },
    { "pairs_goes_by_value_after_removals", HF_CELL_DONE,
      "1 print k100k102k104k106k108\n",
      "local t = {} for i = 110, 1, -1 do t['k' .. i] = i end for i = 1, 99 do t['k' .. "
      "i] = nil end "
      "for i = 101, 110, 2 do t['k' .. i] = nil end t.k110 = nil local s = '' for k in "
      "pairs(t) do s = s .. k end print(s)" },
    { "pairs_skips_what_is_removed_meanwhile", HF_CELL_DONE, "1 print ac\n",
      "local t = {a = 1, b = 2, c = 3} local s = '' for k in pairs(t) do s = s .. k t.b "
      "= nil end print(s)" },
    { "pairs_does_not_see_what_is_added_meanwhile", HF_CELL_DONE, "1 print ab\n",
      "local t = {a = 1, b = 2} local s = '' for k in pairs(t) do s = s .. k t[k .. 'x'] "
      "= 1 end print(s)" },
    { "pairs_survives_removals_under_memory_pressure", HF_CELL_DONE, "1 print 500\n",
      "local t = {} for i = 1, 500 do t[('long'):rep(20) .. i] = i end local n = 0 "
      "for k in pairs(t) do n = n + 1 t[k] = nil if n % 50 == 1 then for j = 1, 20 do "
      "local s = ('y'):rep(50000 + j) end end end print(n)" },
    { "next_goes_by_value", HF_CELL_DONE, "1 print 1 2 a b nil\n",
      "local t = {b = 1, a = 1, [2] = 1, [1] = 1} local k, r = next(t), {} "
      "while k ~= nil do r[#r + 1] = tostring(k) k = next(t, k) end r[#r + 1] = 'nil' "
      "print(table.concat(r, ' '))" },
    { "next_and_pairs_say_the_same_of_keys_without_an_order", HF_CELL_DONE,
      "1 print a table or a function as a key has no order, so the table cannot be "
      "walked "
      "through; use texts or numbers as keys\n2 print true true\n",
      "local t = {} for i = 1, 8 do t[{}] = i t[function() return i end] = i end "
      "t[print] "
      "= 1 "
      "local _, e = pcall(next, t) local _, f = pcall(pairs, t) local _, g = pcall(next, "
      "t, "
      "{}) print(e) print(tostring(e == f) .. ' ' .. tostring(e == g))" },
    { "sort_keeps_equals_in_order", HF_CELL_DONE, "1 print a1 b1 c1 a2 b2 c2\n",
      "local t = {{'a', 2}, {'a', 1}, {'b', 1}, {'b', 2}, {'c', 2}, {'c', 1}} "
      "table.sort(t, function(x, y) return x[2] < y[2] end) local r = {} for i, v in "
      "ipairs(t) do r[i] = v[1] .. v[2] end "
      "print(table.concat(r, ' '))" },
    { "text_is_ordered_by_bytes", HF_CELL_DONE,
      "1 print A B Z _ a b z \xc3\xa4 \xc3\xb6\n",
      "local t = {'z', 'ö', 'b', 'A', 'ä', '_', 'Z', 'a', 'B'} table.sort(t) "
      "print(table.concat(t, ' '))" },
    { "comparison_of_text_goes_by_bytes", HF_CELL_DONE, "1 print true\ttrue\tfalse\n",
      "print('Z' < 'a', 'a' < 'ä', 'é' < 'e')" },
    { "numbers_have_a_point", HF_CELL_DONE, "1 print 1.5\t0.1\t1e+15\t1.0\t-0.0\n",
      "print(1.5, 0.1, 1e15, 1.0, -0.0)" },
    { "numbers_in_text_have_a_point", HF_CELL_DONE, "1 print 1.5 2.50 1.5\t3.5\n",
      "print(1.5 .. (' %.2f %g'):format(2.5, 1.5), '1.5' + 2)" },
    { "numbers_are_read_with_a_point", HF_CELL_DONE, "1 print 1.5\tnil\n",
      "print(tonumber('1.5'), tonumber('1,5'))" },
    { "numbers_that_are_none_look_the_same", HF_CELL_DONE, "1 print inf\t-inf\ttrue\n",
      "print(math.huge, -math.huge, (0/0) ~= (0/0))" },
    { "letters_are_those_of_ascii", HF_CELL_DONE, "1 print ABC\xc3\xa4\tnil\n",
      "print(('abcä'):upper(), ('ä'):match('%a'))" },
    { "classes_are_those_of_ascii", HF_CELL_DONE, "1 print 0\n",
      "local n = 0 for i = 128, 255 do if string.char(i):find('[%w%s%p%c]') then n = n + "
      "1 end end print(n)" },
    { "drawn_numbers_follow_from_the_answer", HF_CELL_DONE,
      "1 random null\n2 print 1 1 6 6\n",
      "local r = {} for i = 1, 4 do r[i] = random(6) end print(table.concat(r, ' '))" },
    { "json_is_written_in_order", HF_CELL_DONE,
      "1 print {\"a\":[],\"b\":{\"x\":1.5,\"y\":2},\"c\":null}\n",
      "print(json.encode({c = null, b = {y = 2, x = 1.5}, a = list()}))" },
    { "json_comes_back", HF_CELL_DONE, "1 print {\"a\":[1,2.5,\"x\",null,true,{}]}\n",
      "print(json.encode(json.decode('{ \"a\" : [1, 2.5, \"x\", null, true, {}] }')))" },
    { "tables_are_shown_in_order", HF_CELL_DONE,
      "1 print {[1]:\"x\",\"a\":1,\"b\":2,[true]:0}\n",
      "print({b = 2, a = 1, 'x', [true] = 0})" },
    { "integers_and_reals_keep_their_kind", HF_CELL_DONE, "1 print 3\t3.0\t1\t1.0\n",
      "print(6 // 2, 6 / 2, 2^53 == 2^53 and 1, 1e0)" },
    { "integers_wrap_around", HF_CELL_DONE, "1 print true\t0\n",
      "print(math.maxinteger + 1 == math.mininteger, 1 << 64)" },
    { "a_hexadecimal_real_is_read_alike", HF_CELL_DONE, "1 print 0.5\t0x1p-1\n",
      "print(0x.8, ('%a'):format(0.5))" },
    { "quoted_text_is_the_same_everywhere", HF_CELL_DONE,
      "1 print \"a\\\n\\0\"\t0x1.8p+0\n",
      "print(('%q'):format('a\\n\\0'), ('%q'):format(1.5))" },
    { "a_table_with_a_class_works", HF_CELL_DONE, "1 print 7\tP(7)\ttrue\n",
      "local P = {} P.__index = P P.__tostring = function(p) return 'P(' .. p.x .. ')' "
      "end P.__eq = function(a, b) return a.x == b.x end "
      "function P.new(x) return setmetatable({x = x}, P) end function P:get() return "
      "self.x end "
      "print(P.new(7):get(), tostring(P.new(7)), P.new(1) == P.new(1))" },
    { "patterns_are_those_of_lua", HF_CELL_DONE,
      "1 print key value 3 5 [in] THE 2024-05 x,y,\n",
      "local k, v = ('  key = value'):match('^%s*(%w+)%s*=%s*(%w+)') local a, b = "
      "('abcde'):find('c.-e') local l = '' "
      "for w in ('x;y'):gmatch('%a') do l = l .. w .. ',' end "
      "local r = {k, v, a, b, ('f[in]g'):match('%b[]'), ('(THE)'):match('%f[%a]%a+'), "
      "(('05/2024'):gsub('(%d+)/(%d+)', '%2-%1')), l} "
      "print(table.concat(r, ' '))" },
};
const size_t escape_order_count = sizeof(escape_order) / sizeof(escape_order[0]);
