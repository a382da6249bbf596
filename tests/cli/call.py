#!/usr/bin/env python3
"""`holdfast call`: the table as data, bad input, lines, and lines under kill -9."""

import json
import os
import random
import re
import shlex
import signal
import subprocess
import threading
import time

from call_pairs import Lines, inputs_of
from harness import HOLDFAST, Case, main

CREATE = {"source_system": "manual", "source_id": "s1"}
KILL_SECONDS = 6


class Table(Case):
    def setUp(self):
        super().setUp()
        answer = self.ok("call", "--list")
        self.ops, self.shapes = answer["items"], {s["name"]: s for s in answer["shapes"]}

    def test_every_input_has_help_and_a_bound(self):
        for op in self.ops:
            for given in op["inputs"]:
                where = (op["name"], given["name"])
                self.assertTrue(given["help"], where)
                self.assertRegex(given["name"], r"^[a-z][a-z0-9_]*$", where)
                if given["type"] in ("integer", "milliseconds", "instant"):
                    self.assertLess(given["min"], given["max"], where)
                elif given["type"] in ("text", "texts", "json"):
                    self.assertGreater(given["max_bytes"], 0, where)
                elif given["type"] in ("word", "words"):
                    self.assertTrue(given["words"], where)
                else:
                    self.assertIn(given["type"], ("flag", "path"), where)
                self.assertTrue(given["type"] != "path" or given["local"], where)

    def test_every_operation_has_a_role_a_shape_and_a_route_of_its_own(self):
        routes = set()
        for op in self.ops:
            self.assertIn(op["role"], ("read", "worker", "operator"), op["name"])
            answer = op["answer"]
            self.assertTrue(answer["shape"] or answer["facts"], op["name"])
            for name in (answer["shape"], answer["facts"]):
                self.assertTrue(name is None or name in self.shapes, op["name"])
            self.assertIn(op["method"], ("GET", "POST", "PUT", "PATCH", "DELETE"))
            self.assertEqual(op["method"] == "GET", "reads" in op["flags"] or not op["errors"],
                             op["name"])
            self.assertRegex(op["path"], r"^/v1/[a-z]")
            route = op["method"] + re.sub(r"\{\w+\}", "{}", op["path"])
            self.assertNotIn(route, routes)
            routes.add(route)
            names = {given["name"] for given in op["inputs"] if given["required"]}
            self.assertLessEqual(set(re.findall(r"\{(\w+)\}", op["path"])), names, op["name"])

    def test_every_field_of_a_shape_has_help(self):
        for shape in self.shapes.values():
            for field in shape["fields"]:
                self.assertTrue(field["help"], (shape["name"], field["name"]))
                self.assertEqual(field["type"] == "row", "shape" in field)

    def test_every_operation_that_opens_a_store_says_how_it_can_fail(self):
        for op in self.ops:
            if op["name"] not in ("bounds", "version"):
                self.assertIn("unreachable", op["errors"], op["name"])

    def test_every_example_is_read_as_json_too(self):
        """Options that the table does not have would raise; inputs that are wrong are refused
        before the store, which is a folder here, is opened."""
        lines = Lines({**self.env, "HOLDFAST_DB": self.folder})
        for op in self.ops:
            self.assertTrue(op["examples"], op["name"])
            for example in op["examples"]:
                text = re.sub(r".*?\bholdfast (--db \S+ )?", "", example)
                words = shlex.split(text.rstrip(")"))
                words = words[len(op["name"].split(".")):]
                inputs = self.named(op, words)
                if inputs is None:
                    continue
                answer = lines.raw(f'{{"op":"{op["name"]}","in":{inputs}}}')
                error = answer.get("error", {"message": ""})
                self.assertTrue(answer["ok"] or "is a folder" in error["message"],
                                (example, answer))
        lines.close()

    def named(self, op, words):
        """The options of an example; bare words take the first inputs. None where it has parts
        of the shell alone."""
        known = {"--" + given["option"]: given for given in op["inputs"]}
        bare = [name for name in known if known[name]["bare"]]
        options, at = [], 0
        while at < len(words):
            word = words[at]
            if word in ("--json", "--shell", "&&", ">", "||", "|") or word.startswith("$("):
                break
            if word == "--":
                return None  # a command for this machine
            if word == "--field":
                at += 2
                continue
            if word in known:
                bare = [name for name in bare if name != word]
                if known[word]["local"] or words[at + 1:at + 2] == ["-"]:
                    return None
                flag = known[word]["type"] == "flag"
                options += words[at:at + (1 if flag else 2)]
                at += 1 if flag else 2
                continue
            name = bare.pop(0)
            if known[name]["type"] == "json" and word.endswith(".json"):
                return None  # a file
            options += [name, word]
            at += 1
        return inputs_of(op, options)


class BadInput(Case):
    def test_every_bad_line_is_answered_by_its_error_and_the_next_is_served(self):
        deep = "[" * 80 + "]" * 80
        bad = [
            ("", "line", "invalid_argument"),
            ("nonsense", "line", "invalid_argument"),
            ("[1]", "one JSON object", "invalid_argument"),
            ('"text"', "one JSON object", "invalid_argument"),
            ('{"op":"work.stats"} x', "line", "invalid_argument"),
            ('{"in":{}}', "op is required", "invalid_argument"),
            ('{"op":7}', "op must be a text", "invalid_argument"),
            ('{"op":"work.creat"}', "did you mean work.create?", "invalid_argument"),
            ('{"op":"nothing.like.it"}', "call --list", "invalid_argument"),
            ('{"op":"work.release"}', "no operation work.release", "invalid_argument"),
            ('{"op":"monitor"}', "command line only", "invalid_argument"),
            ('{"op":"run"}', "command line only", "invalid_argument"),
            ('{"op":"process.start","in":{"disposition":"owner_bound","command":["ls"]}}',
             "command is taken from the command line only", "invalid_argument"),
            ('{"op":"process.start","in":{"disposition":"owner_bound","labels":["a=b"]}}',
             "labels must be", "invalid_argument"),
            ('{"op":"schedule.add","in":{"name":"s","every_ms":5}}', "every_ms must be 1s to",
             "invalid_argument"),
            ('{"op":"schedule.add","in":{"name":"s"}}', "one of cron, every_ms and at",
             "invalid_argument"),
            ('{"op":"schedule.sync","in":{"set":"@/etc/passwd"}}', "only the shell reads @FILE",
             "invalid_argument"),
            ('{"op":"trigger.emit","in":{"source_type":"a","source_key":"b","idempotency_key":"c",'
             '"occurred_at":"yesterday"}}', "occurred_at must be a time", "invalid_argument"),
            ('{"op":"__man"}', "no operation __man", "invalid_argument"),
            ('{"op":"work.stats","colour":1}', "colour is not a member", "invalid_argument"),
            ('{"op":"work.stats","op":"work.stats"}', "duplicate", "invalid_argument"),
            ('{"op":"work.stats","in":[]}', "one JSON object", "invalid_argument"),
            ('{"op":"work.stats","in":{"limit":1}}', "limit is no input", "invalid_argument"),
            ('{"op":"work.stats","actor":"ann"}', "KIND:NAME", "invalid_argument"),
            ('{"op":"work.stats","actor":"alien:ann"}', "actor kind must be", "invalid_argument"),
        ]
        wrong = [
            ('"lane":"l"', "did you mean lane_key?"),
            ('"priority":"high"', "priority must be a whole number"),
            ('"priority":1.5', "priority must be a whole number"),
            ('"priority":10', "priority must be from 0 to 9"),
            ('"priority":-1', "priority must be from 0 to 9"),
            ('"priority":99999999999999999999', "line"),
            ('"detached":"yes"', "detached must be true or false"),
            ('"disposition":"never"', "disposition must be one of expire"),
            ('"kind":["a"]', "kind must be a text"),
            ('"kind":""', "kind"),
            ('"kind":"\\u0000"', "line"),
            ('"delay_ms":"5m"', "delay_ms must be a whole number"),
            ('"start_timeout_ms":0', "start_timeout_ms must be above 0"),
            ('"payload":"@/etc/passwd"', "payload must be JSON"),
            ('"payload":1,"payload_text":"1"', "other form"),
            ('"payload_text":"{"', "payload_text"),
            ('"payload_text":{}', "payload_text must be a text"),
            ('"payload":' + deep, "line"),
            ('"payload":"' + "x" * (1 << 20) + '"', "payload must be at most"),
            ('"spool":"/tmp/x"', "spool is taken from the command line only"),
            ('"retry_policy":{"no":1}', "retry_policy"),
        ]
        for part, said in wrong:
            code = "too_large" if "at most" in said or part.endswith(deep) else \
                "invalid_argument"
            bad.append(('{"op":"work.create","in":{"source_system":"manual","source_id":"s1",'
                        + part + "}}", said, code))
        bad.append(('{"op":"work.create","in":{"source_system":"manual"}}',
                    "source_id is required", "invalid_argument"))
        bad.append(('{"op":"work.claim","in":{"owner":"w","pid":1}}', "pid is taken",
                    "invalid_argument"))
        bad.append(('{"op":"work.claim","in":{"owner":"w","kinds":"mail"}}',
                    "kinds must be an array", "invalid_argument"))
        bad.append(('{"op":"work.list","in":{"statuses":["running","gone"]}}',
                    "statuses must be one of", "invalid_argument"))
        self.ok("migrate")
        lines = Lines(self.env)
        for line, said, code in bad:
            answer = lines.raw(line)
            self.assertIs(answer["ok"], False, line[:200])
            self.assertEqual(answer["error"]["code"], code, (line[:200], answer))
            self.assertIn(said, answer["error"]["message"], line[:200])
            self.assertIs(lines.call("work.stats", {})["ok"], True)
        lines.close()
        self.assertEqual(self.rows(), 0)

    def test_a_line_at_its_limit_is_served_and_one_past_it_is_refused(self):
        self.ok("migrate")
        most = 8388608
        line = '{"op":"work.stats","in":{}'
        lines = Lines(self.env)
        self.assertIs(lines.raw(line + " " * (most - len(line) - 1) + "}")["ok"], True)
        for more in (1, 70000, most):
            answer = lines.raw(line + " " * (most - len(line) - 1 + more) + "}")
            self.assertEqual(answer["error"]["code"], "too_large")
            self.assertIn("8388608", answer["error"]["message"])
            self.assertIs(lines.call("work.stats", {})["ok"], True)
        self.assertEqual(lines.close(), 0)

    def test_one_call_has_the_exit_code_and_envelope_of_the_shell(self):
        self.refused_call(2, "invalid_argument", "work.create", '{"source_system":"manual"}')
        self.refused_call(9, "not_a_store", "work.show", '{"work_id":"zzzz"}')
        self.ok("migrate")
        self.refused_call(3, "not_found", "work.show", '{"work_id":"zzzz"}')
        self.cli("call", code=2)
        self.cli("call", "--list", "--lines", code=2)
        self.cli("call", "work.stats", "--lines", code=2)
        self.cli("call", "--lines", "--operation-id", "x", code=2)
        self.cli("call", "work.stats", "nonsense", code=2)
        self.assertFalse(os.path.exists(self.path("x.db")))
        self.env["HOLDFAST_DB"] = self.path("x.db")
        self.refused_call(2, "invalid_argument", "work.create",
                          '{"source_system":"scheduler","source_id":"s"}')
        self.assertFalse(os.path.exists(self.path("x.db")), "a refused create makes no store")

    def refused_call(self, code, wire, *args):
        answer = self.cli("call", *args, code=code).json
        self.assertEqual(answer["error"]["code"], wire)


class Calls(Case):
    def test_the_same_request_by_shell_and_by_json_is_one_unit(self):
        payload = '{"b": 1.0,\n "a": "\\u00e9"}'
        first = self.create("s1", "--payload", payload)
        again = self.ok("call", "work.create", json.dumps(
            {"source_system": "manual", "source_id": "s1", "payload_text": payload}))
        self.assertEqual((again["created"], again["work"]["work_id"]), (False, first["work_id"]))
        raw = '{"source_system":"manual","source_id":"s1","payload":' + payload + "}"
        self.assertIs(self.ok("call", "work.create", raw)["created"], False)

    def test_inputs_come_from_a_file_and_from_standard_input(self):
        self.file("in.json", json.dumps(CREATE))
        self.assertIs(self.ok("call", "work.create", "@in.json")["created"], True)
        again = self.ok("call", "work.create", "-", stdin=json.dumps(CREATE).encode())
        self.assertIs(again["created"], False)

    def test_ids_tenants_actors_and_operation_ids_are_of_their_line(self):
        lines = Lines(self.env)
        one = lines.call("work.create", CREATE, id={"n": 1}, tenant="t", actor="webhook:bot",
                         operation_id="o1", correlation_id="c1")
        self.assertEqual((one["id"], one["work"]["tenant"], one["work"]["correlation_id"]),
                         ({"n": 1}, "t", "c1"))
        again = lines.call("work.create", CREATE, tenant="t", operation_id="o1")
        self.assertNotIn("id", again)
        self.assertEqual(again["work"]["work_id"], one["work"]["work_id"])
        events = lines.call("work.events", {"work_id": one["work"]["work_id"]}, tenant="t")
        self.assertEqual((events["items"][0]["actor_kind"], events["items"][0]["actor"]),
                         ("webhook", "bot"))
        claimed = lines.call("work.claim", {"owner": "w7", "work_id": one["work"]["work_id"]},
                             tenant="t")["items"][0]
        trail = lines.call("work.events", {"work_id": claimed["work_id"]}, tenant="t")["items"]
        self.assertEqual(trail[-1]["actor"], "w7", "a worker goes by its owner")
        lines.close()

    def test_a_last_line_without_its_end_is_served(self):
        done = self.run_raw("call", "--lines", stdin=b'{"op":"version"}\n{"op":"version","id":2}')
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([a.get("id") for a in answers], [None, 2])

    def test_reading_first_does_not_keep_a_file_from_being_written(self):
        self.ok("migrate")
        lines = Lines(self.env)
        self.assertIs(lines.call("work.stats", {})["ok"], True)
        self.assertIs(lines.call("work.create", CREATE)["created"], True)
        self.assertEqual(len(lines.call("work.list", {})["items"]), 1)
        lines.close()

    def test_a_store_in_memory_lives_as_long_as_the_lines(self):
        lines = Lines({**self.env, "HOLDFAST_DB": "sqlite::memory:"})
        self.assertIs(lines.call("work.create", CREATE)["created"], True)
        self.assertEqual(len(lines.call("work.list", {})["items"]), 1)
        lines.close()

    def test_an_answer_that_cannot_be_written_ends_it(self):
        done = subprocess.run(["sh", "-c", '"$0" call --lines | true', HOLDFAST], env=self.env,
                              input=b'{"op":"version"}\n' * 20000, check=False, timeout=30,
                              capture_output=True)
        self.assertEqual(done.returncode, 0)


class Killed(Case):
    def test_what_was_answered_is_in_the_ledger(self):
        """The judge is this process: it remembers what it read, and asks another program."""
        seen, chance, number = {}, random.Random(os.getpid()), 0
        end = time.monotonic() + KILL_SECONDS
        while time.monotonic() < end:
            process = subprocess.Popen([HOLDFAST, "call", "--lines"], env=self.env,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            killer = threading.Timer(chance.uniform(0.05, 0.4), process.send_signal,
                                     [signal.SIGKILL])
            killer.start()
            try:
                while True:
                    number += 1
                    line = {"op": "work.create", "id": number, "in": {
                        "source_system": "manual", "source_id": f"n{number}",
                        "payload": {"n": number}}}
                    process.stdin.write(json.dumps(line).encode() + b"\n")
                    process.stdin.flush()
                    text = process.stdout.readline()
                    if not text.endswith(b"\n"):
                        break  # killed: half an answer is none
                    answer = json.loads(text)
                    self.assertEqual((answer["ok"], answer["id"]), (True, number))
                    seen[f"n{number}"] = answer["work"]["work_id"]
            except BrokenPipeError:
                pass
            process.wait()
            killer.cancel()
            try:
                process.stdin.close()
            except BrokenPipeError:
                pass  # a line that nothing reads any more
            process.stdout.close()
        self.assertGreater(len(seen), 50)
        stored, after = {}, []
        while True:
            page = self.ok("work", "list", "--all", "--limit", "1000", *after)
            stored.update({w["source_id"]: w["work_id"] for w in page["items"]})
            if not page["next"]:
                break
            after = ["--after", page["next"]]
        self.assertEqual({key: stored.get(key) for key in seen}, seen)
        self.assertLessEqual(len(stored), number)
        self.ok("doctor")


if __name__ == "__main__":
    main()
