#!/usr/bin/env python3
"""`holdfast cell run`: cells from the shell, with a scripted host."""

import json
import os
import subprocess

from harness import Case, main

CELL_LOOP = os.environ["CELL_LOOP"]

SCRIPT = json.dumps({
    "tools": {"search": {"result": [1, 2, 3]},
              "fetch": [{"args": {"id": 1}, "result": {"title": "one"}},
                        {"error": {"code": "not_found", "message": "no such page"}}]},
    "now": 1700000000000, "random": 42, "signals": {"go": {"by": "ann"}},
    "processes": {"index": {"id": "p1"}}})


class Run(Case):
    def cell(self, code, *args, code_=0):
        return self.cli("cell", "run", self.file("cell.lua", code), *args, code=code_)

    def cell_json(self, code, *args, code_=0):
        return self.cli("--json", "cell", "run", self.file("cell.lua", code), *args, code=code_).json

    def test_operations_output_delta_and_cost_are_shown(self):
        text = self.cell("local r = call('search', {q = 'x'})\nprint(#r)\ncount = #r\n",
                         "--tools", SCRIPT).out
        lines = text.splitlines()
        self.assertEqual(lines[:5], ['1  call search {"q":"x"}', "    -> [1,2,3]", "2  print 3",
                                     "done", 'delta  {"set":{"count":3}}'])
        self.assertRegex(lines[5], r"^cost  \d+ steps, \d+ ms, \d+ bytes of memory, 2 operations, "
                                   r"1 bytes of output$")

    def test_the_envelope_has_everything(self):
        answer = self.cell_json(
            "local b = call_batch{{'fetch', {id = 1}}, {'fetch', {id = 2}}}\n"
            "print(b[1].value.title, b[2].error.code, now(), random(6))\n"
            "print(wait_signal('go').by, start_process('index').id)\nsleep(2)\n"
            "old = nil function f() end finish({n = 1})", "--tools", SCRIPT,
            "--bindings", '{"old": 1, "kept": [1.0]}')
        self.assertIs(answer["ok"], True)
        self.assertEqual(answer["end"], "finished")
        self.assertEqual(answer["finish"], {"n": 1})
        ops = answer["operations"]
        self.assertEqual([op["kind"] for op in ops],
                         ["call_batch", "now", "random", "print", "wait_signal", "start_process",
                          "print", "sleep"])
        self.assertEqual(ops[0]["calls"], [{"id": "cell:1:1", "result": {"title": "one"}},
                                           {"id": "cell:1:2", "error": "not_found"}])
        self.assertEqual(ops[3]["args"], "one\tnot_found\t1700000000.0\t1")
        self.assertEqual(answer["delta"], {"unset": ["old"]})
        self.assertEqual(answer["bindings"], {"kept": [1.0]})
        self.assertEqual(len(answer["notes"]), 1)
        self.assertEqual(len(answer["bindings_after"]), 64)
        self.assertEqual(answer["cost"]["ops"], 9)

    def test_bindings_go_from_one_cell_to_the_next(self):
        first = self.cell_json("x = {1, [5] = 'five', f = 2.0, b = '\\xff'}")
        text = json.dumps(first["bindings"], separators=(",", ":"))
        second = self.cell_json("print(x[5], x.f, #x.b)", "--bindings", text)
        self.assertEqual(second["operations"][0]["args"], "five\t2.0\t1")
        self.assertEqual(second["delta"], {})
        self.assertEqual(second["bindings_before"], first["bindings_after"])

    def test_a_cell_that_ends_badly_is_exit_2_and_still_shown(self):
        done = self.cell("print('before')\nlocal t = os.time()\n", code_=2)
        self.assertIn("1  print before\nerror\nline 2: attempt to index a nil value", done.out)
        answer = self.cell_json("x = 1 while true do end", "--limit", "steps=5000", code_=2)
        self.assertIs(answer["ok"], False)
        self.assertEqual(answer["error"]["code"], "cell_failed")
        self.assertEqual(answer["end"], "over_steps")
        self.assertEqual(answer["line"], 1)
        self.assertEqual(answer["delta"], {})

    def test_an_unknown_tool_is_told_before_anything_runs(self):
        answer = self.cell_json("print(1) call('other')", "--tools", SCRIPT, code_=2)
        self.assertEqual(answer["end"], "unknown_tool")
        self.assertEqual(answer["operations"], [])
        answer = self.cell_json("print(pcall(call, 'other'))")
        self.assertIn("not_scripted", answer["operations"][1]["args"])

    def test_given_values_can_be_read(self):
        answer = self.cell_json("print(history[1].output)", "--given",
                                '{"history":[{"output":"o"}]}')
        self.assertEqual(answer["operations"][0]["args"], "o")

    def test_given_references_are_read_once_by_the_script(self):
        answer = self.cell_json(
            "print(r.n, r.n) print(select(2, pcall(function() return gone end)).code) x = r",
            "--given-refs", '{"r": {"id": 1}, "gone": 2}', "--bindings", '{"r": 5}', "--tools",
            '{"reads": {"r": {"args": {"id": 1}, "result": {"n": 7}}, '
            '"gone": {"error": {"code": "deleted"}}}}')
        ops = answer["operations"]
        self.assertEqual([(op["kind"], op.get("name")) for op in ops],
                         [("read", "r"), ("print", None), ("read", "gone"), ("print", None)])
        self.assertEqual((ops[0]["id"], ops[0]["args"], ops[0]["result"]),
                         ("cell:1", {"id": 1}, {"n": 7}))
        self.assertEqual((ops[1]["args"], ops[3]["args"]), ("7\t7", "deleted"))
        self.assertEqual(answer["bindings"], {"r": 5, "x": {"n": 7}})
        answer = self.cell_json("\nr.n = 1", "--given", '{"r": {}}', code_=2)
        self.assertEqual((answer["end"], answer["line"], answer["delta"]), ("error", 2, {}))
        self.assertIn("can only be read", answer["message"])

    def test_bad_input_is_refused(self):
        path = self.file("cell.lua", "x = 1")
        for args, code in ((("cell", "run", "/no/such/file"), 3),
                           (("cell", "run", path, "--limit", "steps"), 2),
                           (("cell", "run", path, "--limit", "speed=1"), 2),
                           (("cell", "run", path, "--limit", "steps=0"), 2),
                           (("cell", "run", path, "--limit", "steps=99999999999999"), 2),
                           (("cell", "run", path, "--limit", "memory_bytes=1000"), 2),
                           (("cell", "run", path, "--bindings", "[1]"), 2),
                           (("cell", "run", path, "--bindings", '{"a b":1}'), 2),
                           (("cell", "run", path, "--given", "1"), 2),
                           (("cell", "run", path, "--given", '{"print": 1}'), 2),
                           (("cell", "run", path, "--given", '{"a b": 1}'), 2),
                           (("cell", "run", path, "--given", '{"a": 1}', "--given-refs", '{"a": 1}'), 2),
                           (("cell", "run", path, "--given-refs", "[]"), 2),
                           (("cell", "run", path, "--tools", '{"tools":[]}'), 2),
                           (("cell", "run", path, "--tools", '{"reads":{"a":1}}'), 2),
                           (("cell", "run", path, "--tools", '{"tools":{"a":1}}'), 2),
                           (("cell", "run", path, "--tools", '{"tool":{}}'), 2),
                           (("cell", "run", path, "--tools", "[]"), 2)):
            done = self.cli("--json", *args, code=code)
            self.assertIs(done.json["ok"], False, args)

    def test_code_can_come_from_standard_input(self):
        self.assertIn("1  print 5\n", self.cli("cell", "run", "-", stdin=b"print(5)").out)

    def test_standard_input_is_read_by_one_option(self):
        done = self.cli("cell", "run", "-", "--bindings", "-", stdin=b"{}", code=2)
        self.assertIn("standard input is read by another option: use @FILE for one of the two", done.err)


class Example(Case):
    """examples/cell_loop.c: two cells with parallel calls, killed before each of its calls."""

    def loop(self, *args):
        return subprocess.run([CELL_LOOP, self.path("turn.save"), *args], capture_output=True,
                              text=True, timeout=50, check=False)

    def test_killed_anywhere_it_is_finished_without_repeating_a_call(self):
        for calls in range(6):
            for name in os.listdir(self.folder):
                os.unlink(self.path(name))
            first = self.loop(str(calls))
            self.assertEqual(first.returncode, 9 if calls < 5 else 0, first.stderr)
            second = self.loop()
            self.assertEqual(second.returncode, 0, second.stderr)
            made = [line for line in (first.stdout + second.stdout).splitlines()
                    if line.startswith("call ")]
            self.assertEqual([line.split()[1] for line in made],
                             ["2:1:1", "2:1:2", "5:1:1", "5:1:2", "5:2"])
            self.assertIn('done: {"afloat":12,"boats":24}\n', second.stdout)


if __name__ == "__main__":
    main()
