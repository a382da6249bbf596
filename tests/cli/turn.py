#!/usr/bin/env python3
"""Saved and recorded turns: `turn inspect`, `replay`, and examples/turn_loop.c, which is killed
after every effect."""

import json
import os
import re
import subprocess

from harness import Case, main

GOLDEN = os.environ["HF_GOLDEN"]
TURN_LOOP = os.environ["TURN_LOOP"]


def golden(name):
    return os.path.join(GOLDEN, name)


class Inspect(Case):
    def test_a_save_is_shown_line_by_line(self):
        text = self.cli("turn", "inspect", golden("v1-tools-partial.save")).out
        for line in ("session_id: s1", "turn_id: t1", "body.state: waiting_tools",
                     "body.wait.id: 5", "body.wait.calls[1].answered: true",
                     "body.usage.input: 10", "body.own[0].message.parts[0].content: hi"):
            self.assertIn(line + "\n", text)
        save = self.cli("--json", "turn", "inspect", golden("v1-tools-partial.save")).json["save"]
        self.assertEqual(save["body.state"], "waiting_tools")

    def test_the_cells_of_a_turn_are_shown(self):
        text = self.cli("turn", "inspect", golden("v1-code-finished.save")).out
        self.assertIn("""cell 1: error
    | x = 1
    | print(x)
    op 2:1: add: success, 4 ms
    op 2:2: sub: failure, disk, 0 ms
    output 1:
      1
      "two"
    output 2 (cut):
      …
    error:
      line 2: no
    bindings: h0
cell 2: finished
    | finish({n = 1.50})
    final: {"n":1.5}
    bindings changed: {"y":2}
    bindings: h1
""", text)
        self.assertTrue(self.cli("turn", "inspect", golden("v1-code-exec.save")).out.endswith(
            "cell: running\n    | x = 1\n    | print(x)\n"))
        cells = self.cli("--json", "turn", "inspect", golden("v1-code-step.save")).json["cells"]
        self.assertEqual([cell["step"] for cell in cells], [1])
        self.assertEqual(cells[0]["calls"][1]["outcome"], "failure")
        self.assertNotIn("cell ", self.cli("turn", "inspect", golden("v1-llm.save")).out)

    def test_two_saves_are_compared(self):
        a, b = golden("v1-llm.save"), golden("v1-sleep.save")
        text = self.cli("turn", "inspect", a, b).out
        self.assertIn("- body.state: waiting_llm\n+ body.state: waiting_sleep\n", text)
        self.assertIn("+ body.wait.due_ms: 1700000000000\n", text)
        self.assertNotIn("session_id", text)
        self.assertEqual(self.cli("turn", "inspect", a, a).out, "no difference\n")
        parts = self.cli("--json", "turn", "inspect", a, b).json["differences"]
        self.assertIn({"side": "second", "path": "body.state", "value": "waiting_sleep"}, parts)

    def test_bad_saves_are_told_apart(self):
        with open(golden("v1-llm.save"), "rb") as f:
            save = f.read()
        self.cli("turn", "inspect", self.file("text", "hello, this is no save"), code=9)
        self.cli("turn", "inspect", self.file("cut", save[:-1]), code=9)
        self.cli("turn", "inspect", self.path("none"), code=3)
        self.cli("turn", "inspect", code=2)


class Replay(Case):
    def test_the_golden_recording_replays(self):
        self.assertEqual(self.cli("replay", golden("v1-turn.jsonl")).out,
                         "the same: 23 effects, 8 responses\n")
        self.assertEqual(self.cli("--json", "replay", golden("v1-turn.jsonl")).json["responses"], 8)

    def test_a_recorded_code_turn_replays_with_its_options(self):
        self.assertEqual(self.cli("replay", golden("v1-code.jsonl")).out,
                         "the same: 40 effects, 11 responses\n")
        with open(golden("v1-code.jsonl"), encoding="utf-8") as f:
            lines = f.read().split("\n")
        head = json.loads(lines[0])
        del head["protocol_options"]
        changed = "\n".join([json.dumps(head)] + lines[1:])
        self.cli("replay", self.file("natural", changed), code=7)

    def test_the_first_divergence_is_shown_and_exits_with_7(self):
        with open(golden("v1-turn.jsonl"), encoding="utf-8") as f:
            lines = f.read().split("\n")
        changed = [i for i, line in enumerate(lines) if '"effect":"tool_calls"' in line][0]
        line = json.loads(lines[changed])
        line["calls"][0]["call_id"] = "c9"
        lines[changed] = json.dumps(line)
        done = self.cli("replay", self.file("changed", "\n".join(lines)), code=7)
        self.assertIn(f"line {changed + 1}:", done.err)
        self.assertIn("c9", done.err)

    def test_a_recording_that_ends_early_or_is_none_is_refused(self):
        with open(golden("v1-turn.jsonl"), encoding="utf-8") as f:
            lines = f.read().split("\n")
        self.cli("replay", self.file("early", "\n".join(lines[:-2])), code=7)
        self.cli("replay", self.file("none", "{}\n"), code=2)
        self.cli("replay", self.file("empty", ""), code=2)


class Loop(Case):
    def loop(self, *args):
        return subprocess.run([TURN_LOOP, *args], capture_output=True, text=True, timeout=50,
                              check=False, env=self.env)

    def test_its_source_has_at_most_160_lines_of_code(self):
        here = os.path.dirname(os.path.abspath(__file__))
        with open(os.path.join(here, "../../examples/turn_loop.c"), encoding="utf-8") as f:
            code = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.DOTALL)
        self.assertLessEqual(len([line for line in code.split("\n") if line.strip()]), 160)

    def test_killed_after_any_number_of_effects_it_goes_on(self):
        whole = self.loop(self.path("whole"))
        self.assertEqual(whole.returncode, 0, whole.stderr)
        self.assertEqual(whole.stdout.split("\n")[-2], "done: 2 + 3 is 5, and it is noon.")
        with open(self.path("whole.0"), encoding="utf-8") as f:
            self.assertEqual(json.load(f)["message"]["id"], "q")
        for steps in range(2, 25):  # a restored model call comes after its attempt_reset
            path, lines, runs = self.path(f"save-{steps}"), [], 0
            while True:
                done = self.loop(path, str(steps))
                lines += done.stdout.split("\n")
                runs += 1
                self.assertLess(runs, 60)
                if done.returncode == 0:
                    break
                self.assertEqual(done.returncode, 9, done.stderr)
            self.assertEqual(lines.count("tool add([2,3])"), 1)
            self.assertEqual(lines.count("tool now({})"), 1)
            self.assertEqual(lines[-2], "done: 2 + 3 is 5, and it is noon.")
            with open(path, "rb") as a, open(self.path("whole"), "rb") as b:
                self.assertEqual(a.read(), b.read())


if __name__ == "__main__":
    main()
