#!/usr/bin/env python3
"""Each operation by the shell and by `holdfast call`: the same answer, rows and events.

The requests are those of pairs.py; JSON inputs are made from their options by the table that
`holdfast call --list` prints. An operation without a pair fails, and so does an input that no
pair names. Both engines.
"""

import json
import os
import re
import subprocess
import tempfile

from harness import HOLDFAST, Case, main
from pairs import PAIRS

PG = os.environ["PG_SCRIPT"]
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
HASHED = re.compile(r"\b(occ|sub|dlv):v1:[0-9a-f]{64}\b")  # of the tenant too
UNITS = {"ms": 1, "s": 1000, "m": 60000, "h": 3600000, "d": 86400000}
# What differs between two calls by nature: times, numbers that the store assigns, tokens.
CHANGING = re.compile(r"(_at|_ms|^at|^now|_fence|^fence|token|_id|^next|tenant|"
                      r"^incarnation|^first_started)$")
ABOUT_NOW = ("facts", "findings")  # of the store as it is at the moment: only what they name
# Passes over all tenants: what is due among the rows of other pairs depends on the time. Their
# effect on the pair's own tenant is compared with its rows.
PASSES = ("work.sweep", "schedule.run")


class Lines:
    """One `holdfast call --lines`."""

    def __init__(self, env):
        self.process = subprocess.Popen([HOLDFAST, "call", "--lines"], env=env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def call(self, op, inputs, **more):
        self.process.stdin.write(json.dumps({"op": op, "in": inputs, **more}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def raw(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(timeout=30)


def duration(text):
    number, unit = re.fullmatch(r"([\d.]+)([a-z]+)", text).groups()
    return int(float(number) * UNITS[unit])


def member(spec, texts):
    """A member of the object: raw JSON, since the bytes of JSON inputs matter."""
    kind = spec["type"]
    if kind == "flag":
        return "true"
    if kind == "json" and spec.get("pairs"):
        return json.dumps(dict(text.split("=", 1) for text in texts))
    if kind in ("texts", "words"):
        return json.dumps(texts)
    if kind == "json" and os.path.isfile(texts[0]):  # the shell names it
        with open(texts[0], encoding="utf-8") as file:
            return file.read()
    if kind == "json":
        return texts[0]
    if kind == "integer":
        return str(int(texts[0]))
    if kind == "milliseconds":
        return str(duration(texts[0]))
    return json.dumps(texts[0])


def inputs_of(op, options):
    """The options as one JSON object, by the table."""
    specs = {"--" + spec["option"]: spec for spec in op["inputs"]}
    given, at = {}, 0
    while at < len(options):
        spec = specs[options[at]]
        at += 1
        if spec["type"] == "flag":
            given.setdefault(spec["name"], [])
        else:
            given.setdefault(spec["name"], []).append(options[at])
            at += 1
    named = {spec["name"]: spec for spec in op["inputs"]}
    return "{" + ",".join(f'"{name}":{member(named[name], texts)}'
                          for name, texts in given.items()) + "}"


def plain(value, ids, key=""):
    """Without what differs by nature; ids are numbered in the order in which they appear."""
    if key in ABOUT_NOW:
        return sorted(value) if isinstance(value, dict) else [f["what"] for f in value]
    if isinstance(value, dict):
        return {k: plain(v, ids, k) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v, ids, key) for v in value]
    if isinstance(value, str):
        value = UUID.sub(lambda m: f"<{ids.setdefault(m.group(0), len(ids))}>", value)
        value = HASHED.sub(r"\1", value)
        value = re.sub(r"\b(shell|call)-\d+\b", "<tenant>", value)
    if key.startswith("oldest_"):
        return "<age>"  # null within the first millisecond
    if value is not None and not isinstance(value, bool) and CHANGING.search(key):
        return "<given>"
    return value


def own(answer, tenant):
    """A list of all tenants, without those of other pairs."""
    items = answer.get("items", [])
    if any("tenant" in item for item in items):
        answer["items"] = [item for item in items if item["tenant"] in (tenant, "")]
    return answer


def uncounted(op, answer):
    """A pass without its counts."""
    if op not in PASSES:
        return answer
    return {k: "<count>" if type(v) is int else v for k, v in answer.items()}


def fill(value, unit):
    if isinstance(value, dict):
        return {k: fill(v, unit) for k, v in value.items()}
    if isinstance(value, list):
        return [fill(v, unit) for v in value]
    if isinstance(value, str):
        for name, field in (("$ID", "work_id"), ("$TOKEN", "lease_token"),
                            ("$TENANT", "tenant"), ("$OCCURRENCE", "occurrence_id"),
                            ("$FOLDER", "folder")):
            value = value.replace(name, unit.get(field, ""))
    return value


class Pairs:
    def setUp(self):
        super().setUp()
        self.file("set.json", '{"set":"pairs","schedules":[{"name":"one","cron":"0 9 * * *"}]}')
        self.table = {op["name"]: op for op in self.ok("call", "--list")["items"]}

    def prepare(self, lines, tenant, steps):
        unit = {"tenant": tenant, "folder": self.folder}
        for op, inputs in steps:
            answer = lines.call(op, fill(inputs, unit), tenant=tenant, actor="human:ann")
            self.assertIs(answer["ok"], True, (op, answer))
            found = answer.get("work") or (answer.get("items") or [None])[0]
            unit = {**unit, **{k: v for k, v in (found or {}).items() if v is not None}}
            unit["occurrence_id"] = answer.get("occurrence_id", "")
        return unit

    def rows(self, lines, tenant):
        """All units of the tenant with their trails, its schedules, triggers and processes."""
        units = lines.call("work.list", {"all": True, "limit": 1000}, tenant=tenant)["items"]
        trails = [lines.call("work.events", {"work_id": unit["work_id"]}, tenant=tenant)["items"]
                  for unit in units]
        return [units, trails] + [lines.call(op, {}, tenant=tenant)["items"] for op in
                                  ("schedule.list", "trigger.list", "process.list")]

    def by_shell(self, op, tenant, options):
        words = op.replace(".", " ").replace("_", "-").split()
        named = [] if op.endswith(".prune") else ["--tenant", tenant]
        done = self.run_raw("--json", "--actor", "human:bob", "--correlation-id", "c1", *named,
                            *words, *options)
        answer = json.loads(done.stdout)
        for given in sorted(self.table[op]["inputs"], key=lambda i: -len(i["option"])):
            if "error" in answer:  # the same words, but each caller's own names of inputs
                answer["error"]["message"] = answer["error"]["message"].replace(
                    "--" + given["option"], given["name"])
        return answer

    def by_call(self, lines, op, tenant, options):
        named = "" if op.endswith(".prune") else f',"tenant":"{tenant}"'
        return lines.raw(f'{{"op":"{op}","in":{inputs_of(self.table[op], options)},'
                         f'"actor":"human:bob","correlation_id":"c1"{named}}}')

    def test_both_ways_answer_and_write_the_same(self):
        lines = Lines(self.env)
        for number, (op, steps, options) in enumerate(PAIRS):
            with self.subTest(op=op, options=options):
                seen = []
                for side in ("shell", "call"):
                    tenant = f"{side}-{number}"
                    unit = self.prepare(lines, tenant, steps)
                    filled = fill(options, unit)
                    answer = (self.by_shell(op, tenant, filled) if side == "shell"
                              else self.by_call(lines, op, tenant, filled))
                    ids = {}
                    rows = plain(self.rows(lines, tenant), ids)
                    answer = uncounted(op, own(answer, tenant))
                    seen.append((plain(answer, ids), rows))
                self.assertEqual(seen[0], seen[1])
        self.assertEqual(lines.close(), 0)


class OnSqlite(Pairs, Case):
    def test_every_operation_has_a_pair_and_every_input_is_given(self):
        paired = {op for op, _, _ in PAIRS}
        self.assertEqual(set(self.table) - paired, set())
        for name, op in self.table.items():
            given = {text for pair, _, options in PAIRS if pair == name for text in options}
            wanted = {"--" + i["option"] for i in op["inputs"] if not i["local"]}
            # A cursor is of one tenant and a reference to a payload of no use here: both are
            # texts as any other.
            self.assertEqual(wanted - given - {"--after", "--payload-ref"}, set(), name)


class OnPostgres(Pairs, Case):
    @classmethod
    def setUpClass(cls):
        base = tempfile.TemporaryDirectory(prefix="hf-pairs-")
        cls.addClassCleanup(base.cleanup)
        os.chmod(base.name, 0o755)
        server = os.path.join(base.name, "pg")
        cls.url = cls.ask("up", server)
        cls.addClassCleanup(cls.ask, "down", server)

    @staticmethod
    def ask(verb, folder):
        return subprocess.run([PG, verb, folder], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.strip()

    def setUp(self):
        self.env = {}
        super().setUp()
        self.env["HOLDFAST_DB"] = self.url


if __name__ == "__main__":
    main()
