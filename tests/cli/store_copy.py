#!/usr/bin/env python3
"""store copy: a judge outside (plain SQL, no code of ours) holds the copy against its source."""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "agent"))
import servers  # noqa: E402 pylint: disable=wrong-import-position
from harness import HOLDFAST, Case, Worker, main  # noqa: E402 pylint: disable=wrong-import-position

CONFIG = """
[provider.test]
kind = "openai-chat"
base_url = "http://127.0.0.1:{port}/v1"

[model.talk]
provider = "test"
context_tokens = 100_000
output_tokens = 1_000

[agent.payer]
model = "talk"
tools = ["pay", "mail", "slow"]

[tool.pay]
description = "Pays."
command = ["sh", "-c", "echo paid"]
recovery = "keyed"

[tool.mail]
description = "Sends mail."
command = ["sh", "-c", "echo sent"]
recovery = "ask"
approve = "always"

[tool.slow]
description = "Does not end."
command = ["sh", "-c", "exec sleep 60"]
recovery = "ask"
"""
TALKED = ("session", "session_meta", "session_turn", "session_input", "node", "blob", "usage", "effect", "wait")

OWN = {"hf_schema", "hf_store"}  # of each store alone
SCRATCH = {("work_state", "event_id")}  # SQLite's guards have it, PostgreSQL's need it not


def tables(db):
    rows = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' "
                      "AND name NOT LIKE 'sqlite%' ORDER BY name")
    return [name for (name,) in rows]


def guards(db):
    return db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' "
                      "ORDER BY name").fetchall()


class Filled(Case):
    def ok(self, *args, **kwargs):
        return self.cli(*args, "--json", **kwargs).json

    def fill(self):
        """Rows in every status that matters, policies, receipts, a session's lease."""
        self.file("units.jsonl", "".join(json.dumps(
            {"source_system": "manual", "source_id": f"u{i}", "disposition": "rerunnable",
             "payload": {"text": "x \u00e9 \"q\"", "n": i}}) + "\n" for i in range(300)))
        self.cli("work", "reconcile", "--from", "units.jsonl", "--quiet")
        got = self.ok("work", "claim", "--owner", "w", "--limit", "3", "--ttl", "1h")["items"]
        self.held = got[0]
        self.cli("work", "close-out", got[1]["work_id"], "--token", got[1]["lease_token"], "--status",
                 "done", "--summary", "s", "--output", "o")
        self.cli("work", "wait", got[2]["work_id"], "--token", got[2]["lease_token"], "--kind", "user",
                 "--ref", "r1")
        self.cli("work", "create", "--source", "control", "--source-id", "d", "--detached",
                 "--operation-id", "op-1", "--quiet")
        self.cli("policy", "set", "kind:k", "--ttl", "5m")
        self.cli("store", "bump")
        self.cli("work", "prune", "--older-than", "0s", "--limit", "1")

    def talk(self):
        """Sessions with turns that have ended, that wait for an approval, and that a dead worker holds."""
        server = servers.Server(self.path("journal"))
        self.addCleanup(server.stop)
        config = self.file("h.toml", CONFIG.format(port=server.port))
        self.file("note.txt", "a note \u00e9\n")
        for name in ("asked", "held"):
            self.ok("session", "create", name, "--agent", "payer", "--labels", '{"team":"x"}')
        self.ok("session", "send", "asked", "use pay {}", "--attach", self.path("note.txt"))
        self.ok("session", "send", "asked", "use mail {}", "--key", "k")
        self.ok("session", "send", "asked", "and this is queued")
        worker = Worker(self, "--config", config)
        worker.heard("turn_ended")
        worker.heard("away")
        self.ok("session", "send", "held", "use slow {}")
        worker.heard("tool_started")
        worker.kill()

    def same_rows(self, path, report, extra):
        """Every table of the source and of the SQLite file `path`, except for what each copy adds:
        `extra` rows of hf_store_log and hf_history."""
        old, new = sqlite3.connect(self.db), sqlite3.connect(path)
        self.addCleanup(old.close)
        self.addCleanup(new.close)
        names = tables(old)
        self.assertEqual(names, tables(new))
        self.assertEqual(guards(old), guards(new))
        # A table that a caller adds and that is not copied fails here.
        self.assertEqual({t["table"] for t in report["tables"]} | OWN, set(names))
        shifts = set()
        for name in sorted(set(names) - OWN):
            columns = [c[1] for c in old.execute(f"PRAGMA table_info({name})")]
            key = [c[1] for c in old.execute(f"PRAGMA table_info({name})") if c[5]]
            order = ", ".join(key)
            was = old.execute(f"SELECT * FROM {name} ORDER BY {order}").fetchall()
            now = new.execute(f"SELECT * FROM {name} ORDER BY {order}").fetchall()
            if name in ("hf_store_log", "hf_history"):
                now = now[:-extra]
            self.assertEqual(len(was), len(now), name)
            for a, b in zip(was, now):
                for column, x, y in zip(columns, a, b):
                    if (name, column) in SCRATCH:
                        continue
                    if column.startswith("lease_") and column.endswith("_at") and x is not None:
                        shifts.add(y - x)
                    else:
                        self.assertEqual(x, y, f"{name}.{column}")
        self.assertEqual(len(shifts), 1)  # one distance of the lease clocks for all
        return new


class Copy(Filled):
    def test_a_copy_has_every_row_of_every_table(self):
        self.fill()
        events = self.cli("work", "tail", "--after", "start", "--no-follow", "--json").out
        report = self.ok("store", "copy", "--from", self.db, "--to", self.path("new.db"))
        new = self.same_rows(self.path("new.db"), report, 1)
        for table in report["tables"]:
            self.assertEqual(len(table["sha256"]), 64)
        self.assertEqual(self.ok("--db", self.path("new.db"), "store", "log")["items"][0]["what"],
                         "copied")
        self.env["HOLDFAST_DB"] = self.path("new.db")
        self.assertTrue(self.ok("doctor")["ok"])
        # The feed reads the same; ids go on where they ended.
        lines = self.cli("work", "tail", "--after", "start", "--no-follow", "--json").out
        strip = [line.split(',"cursor"')[0] for line in events.splitlines()[:-1]]
        self.assertEqual([line.split(',"cursor"')[0] for line in lines.splitlines()[:-1]], strip)
        last = new.execute("SELECT max(event_id) FROM runtime_work_event").fetchone()[0]
        self.cli("work", "create", "--source", "manual", "--source-id", "next", "--quiet")
        self.assertGreater(
            new.execute("SELECT max(event_id) FROM runtime_work_event").fetchone()[0], last)

    def test_large_rows_are_copied_and_compared_few_at_a_time(self):
        line = json.dumps({"source_system": "manual", "payload": "x" * 400000})[:-1]
        with open(self.path("big.jsonl"), "w", encoding="ascii") as big:
            for i in range(200):
                big.write(f'{line},"source_id":"u{i}"}}\n')
        self.ok("work", "reconcile", "--from", "big.jsonl")
        copy = subprocess.Popen([HOLDFAST, "store", "copy", "--from", self.db, "--to",
                                 self.path("new.db")], env=self.env, cwd=self.folder,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(copy.pid, 0)
        copy.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(copy.returncode, 0)
        if not any("SAN_OPTIONS" in name for name in self.env):  # which have memory of their own
            self.assertLess(used.ru_maxrss, 80000)  # KiB; the rows are 80 MB on each side

    def test_no_token_of_the_source_is_good_in_the_copy_and_peers_wait(self):
        self.fill()
        self.ok("store", "copy", "--from", self.db, "--to", self.path("new.db"))
        self.env["HOLDFAST_DB"] = self.path("new.db")
        self.cli("work", "renew", self.held["work_id"], "--token", self.held["lease_token"], code=5)
        self.cli("work", "claim", self.held["work_id"], "--owner", "other", code=6)
        left = self.ok("work", "show", self.held["work_id"])["work"]["lease_remaining_ms"]
        self.assertTrue(3500000 < left <= 3600000 + 60000, left)

    def test_what_cannot_be_copied_is_refused(self):
        self.fill()
        self.cli("--db", self.path("full.db"), "work", "create", "--source", "manual",
                 "--source-id", "a", "--quiet")
        got = self.cli("store", "copy", "--from", self.db, "--to", self.path("full.db"), "--json",
                       code=7).json
        self.assertIn("not empty", got["error"]["message"])
        self.assertIn("name a target that is empty", got["error"]["action"])
        self.cli("store", "copy", "--from", self.path("none.db"), "--to", self.path("x.db"), code=9)
        self.assertFalse(os.path.exists(self.path("x.db")))
        self.cli("store", "copy", "--from", self.db, "--to", self.db, code=2)
        # An empty store may be a target.
        self.cli("--db", self.path("empty.db"), "migrate")
        self.cli("store", "copy", "--from", self.db, "--to", self.path("empty.db"))

    def test_an_unfinished_copy_is_opened_by_nobody(self):
        self.fill()
        self.ok("store", "copy", "--from", self.db, "--to", self.path("new.db"))
        raw = sqlite3.connect(self.path("new.db"))
        raw.execute("UPDATE hf_store SET incarnation = 0")
        raw.commit()
        raw.close()
        for words in (("work", "list"), ("store", "bump")):
            got = self.cli("--db", self.path("new.db"), *words, "--json", code=9).json
            self.assertIn("unfinished copy", got["error"]["message"])


class Postgres(Filled):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.mkdtemp(prefix="holdfast-copy-pg-")
        os.chmod(cls.scratch, 0o755)
        cls.server = os.path.join(cls.scratch, "pg")
        done = subprocess.run([os.environ["PG_SCRIPT"], "up", cls.server], check=True, text=True,
                              stdout=subprocess.PIPE)
        cls.url = done.stdout.strip()

    @classmethod
    def tearDownClass(cls):
        subprocess.run([os.environ["PG_SCRIPT"], "down", cls.server], check=True)
        os.rmdir(cls.scratch)

    def setUp(self):
        super().setUp()
        self.pg = f"{self.url}&schema={self.id().rsplit('.')[-1][:40]}"

    def test_there_and_back_again_nothing_has_changed(self):
        self.fill()
        self.ok("store", "copy", "--from", self.db, "--to", self.pg)
        report = self.ok("store", "copy", "--from", self.pg, "--to", self.path("back.db"))
        self.same_rows(self.path("back.db"), report, 2)
        self.assertTrue(self.ok("--db", self.path("back.db"), "doctor")["ok"])

    def test_a_server_goes_on_where_the_file_ended(self):
        self.fill()
        first, end = self.feed(self.db)
        self.ok("store", "copy", "--from", self.db, "--to", self.pg)
        self.assertTrue(self.ok("--db", self.pg, "doctor")["ok"])
        self.cli("--db", self.pg, "work", "renew", self.held["work_id"], "--token",
                 self.held["lease_token"], code=5)
        self.cli("--db", self.pg, "work", "create", "--source", "manual", "--source-id", "next",
                 "--quiet")
        again, _ = self.feed(self.pg)
        self.assertEqual([e["event_id"] for e in again[:-1]], [e["event_id"] for e in first])
        self.assertGreater(again[-1]["event_id"], first[-1]["event_id"])
        # A reader of the file goes on with its cursor, and is told of the new history.
        on, _ = self.feed(self.pg, end)
        self.assertEqual(on[0]["notice"], "history")
        self.assertEqual([e["event_id"] for e in on[1:]], [again[-1]["event_id"]])

    def test_sessions_go_on_in_the_copy(self):
        self.fill()
        self.ok("session", "create", "s1", "--agent", "helper")
        sent = self.ok("session", "send", "s1", "hello", "--key", "k")["work"]["work_id"]
        self.ok("store", "copy", "--from", self.db, "--to", self.pg)
        self.ok("store", "copy", "--from", self.pg, "--to", self.path("back.db"))
        for copy in (self.pg, self.path("back.db")):
            again = self.ok("--db", copy, "session", "send", "s1", "hello", "--key", "k")
            self.assertEqual((again["created"], again["work"]["work_id"]), (False, sent))
            self.ok("--db", copy, "session", "create", "s2", "--agent", "helper")
            self.assertEqual([s["session_id"] for s in self.ok("--db", copy, "session", "list")["items"]],
                             ["s1", "s2"])
            self.assertTrue(self.ok("--db", copy, "doctor")["ok"])

    def test_conversations_come_back_row_by_row(self):
        self.talk()
        self.ok("store", "copy", "--from", self.db, "--to", self.pg)
        report = self.ok("store", "copy", "--from", self.pg, "--to", self.path("back.db"))
        copied = {table["table"]: table["rows"] for table in report["tables"]}
        self.assertEqual([name for name in TALKED if not copied[name]], [])
        self.same_rows(self.path("back.db"), report, 2)
        for copy in (self.pg, self.path("back.db")):
            self.assertTrue(self.ok("--db", copy, "doctor")["ok"])
            for words in (("session", "log", "asked"), ("session", "inputs", "asked"), ("wait", "list"),
                          ("session", "turn", "asked"), ("session", "turn", "held")):
                self.assertEqual(self.ok("--db", copy, *words), self.ok(*words))
            # The turn that waits continues in the copy.
            wait, = self.ok("--db", copy, "wait", "list")["items"]
            self.assertFalse(self.ok("--db", copy, "session", "show", "asked")["session"]["ready_at"])
            self.ok("--db", copy, "approve", wait["wait_id"])
            self.assertTrue(self.ok("--db", copy, "session", "show", "asked")["session"]["ready_at"])

    def test_who_may_not_copy_spoils_no_target(self):
        self.fill()
        self.cli("--db", self.pg, "migrate")
        schema = self.pg.rsplit("=", 1)[-1]
        subprocess.run(["psql", "-q", "-d", self.url, "-c",
                        f"CREATE ROLE guest LOGIN; GRANT USAGE ON SCHEMA {schema} TO guest;"
                        f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO guest;"
                        f"GRANT ALL ON ALL SEQUENCES IN SCHEMA {schema} TO guest"], check=True)
        got = self.cli("store", "copy", "--from", self.db, "--to",
                       self.pg.replace("user=hf", "user=guest"), "--json", code=9).json
        self.assertIn("must be owner", got["error"]["message"])
        self.assertEqual(self.ok("--db", self.pg, "work", "list")["items"], [])
        self.ok("store", "copy", "--from", self.db, "--to", self.pg)

    def feed(self, store, after="start"):
        out = self.cli("--db", store, "work", "tail", "--after", after, "--no-follow", "--json").out
        lines = [json.loads(line) for line in out.splitlines()]
        return lines[:-1], lines[-1]["cursor"]

    def test_a_full_schema_and_an_unfinished_copy_are_refused(self):
        self.fill()
        self.ok("store", "copy", "--from", self.db, "--to", self.pg)
        self.cli("store", "copy", "--from", self.db, "--to", self.pg, code=7)
        schema = self.pg.rsplit("=", 1)[-1]
        subprocess.run(["psql", "-q", "-d", self.url, "-c",
                        f"UPDATE {schema}.hf_store SET incarnation = 0"], check=True)
        got = self.cli("--db", self.pg, "work", "list", "--json", code=9).json
        self.assertIn("unfinished copy", got["error"]["message"])


if __name__ == "__main__":
    main()
