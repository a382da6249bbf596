#!/usr/bin/env python3
"""work create --spool and work reconcile --from, from outside."""

import json
import os
import sqlite3
import threading

from harness import Case, Result, main

FIRST = '{"holdfast_spool":1}\n'


class Spool(Case):
    def create(self, source_id, *more, code=0):
        words = ("work", "create", "--source", "conversation", "--source-id", source_id,
                 "--spool", self.path("in.spool"), "--budget", "2s", *more)
        return self.until_kept(words) if code == 0 else self.cli(*words, code=code)

    def until_kept(self, words):
        """A disk that takes longer than the budget is exit 8, and one that others keep busy is
        exit 6: do it again, it is one unit."""
        for _ in range(100):
            done = self.run_raw(*words)
            if done.returncode not in (6, 8):
                break
        done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
        self.assertEqual(done.returncode, 0, done.stderr)
        return Result(done)

    def units(self):
        return [w["source_id"] for w in self.cli("work", "list", "--json").json["items"]]

    def test_a_ledger_that_answers_gets_the_unit_and_no_spool_is_made(self):
        self.cli("migrate")
        got = self.create("m1", "--json").json
        self.assertEqual(got["work"]["source_id"], "m1")
        self.assertFalse(os.path.exists(self.path("in.spool")))

    def test_a_ledger_that_hangs_is_spooled_and_reconciled_once(self):
        self.cli("migrate")
        holder = sqlite3.connect(self.db, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        got = self.create("m1", "--payload", '{"a": 1.0}', "--json").json
        self.assertEqual((got["ok"], got["spooled"]), (True, True))
        self.assertEqual(got["spool"], self.path("in.spool"))
        said = self.create("m2")
        self.assertEqual(said.out, f"spooled in {self.path('in.spool')}\n")
        self.assertIn("conversation m2 is not in the ledger yet: ", said.err)
        self.assertEqual(self.create("m3", "--field", "work_id").out, "")
        holder.execute("ROLLBACK")
        holder.close()
        with open(self.path("in.spool"), encoding="utf-8") as lines:
            self.assertEqual(lines.readline(), FIRST)
            self.assertEqual(json.loads(lines.readline())["payload_text"], '{"a": 1.0}')
        got = self.cli("work", "reconcile", "--from", "in.spool", "--json").json
        self.assertGreaterEqual(got["from"]["created"] + got["from"]["existing"], 3)
        self.assertEqual(got["from"]["problems"], [])
        self.assertFalse(os.path.exists(self.path("in.spool")))
        self.assertEqual(sorted(self.units()), ["m1", "m2", "m3"])

    def test_a_ledger_that_cannot_be_opened_is_spooled(self):
        self.file("work.db", "this is no database, and long enough to be read as one" * 40)
        self.assertTrue(self.create("m1", "--json").json["spooled"])
        self.env["HOLDFAST_DB"] = ""
        self.env["HOME"] = "/proc/nowhere"
        self.assertTrue(self.create("m2", "--json").json["spooled"])

    # ---- A14: an answer to a question

    def ask(self, source_id, ref="ann@chat", kind="user"):
        """A unit that waits for a caller's answer."""
        self.cli("work", "create", "--source", "manual", "--source-id", source_id)
        unit = self.claim()
        self.ok("work", "wait", unit["work_id"], "--token", unit["lease_token"], "--kind", kind,
                "--ref", ref)
        return unit["work_id"]

    def reply(self, source_id, *more, payload='"yes"'):
        return self.cli("work", "create", "--source", "conversation", "--source-id", source_id,
                        "--reply-to", "ann@chat", "--payload", payload, *more)

    def test_a_reply_resumes_the_one_unit_that_waits_and_makes_none(self):
        unit = self.ask("q1")
        self.assertIn(f"resumed {unit}: queued", self.reply("m1").out)
        work = self.ok("work", "show", unit)["work"]
        self.assertEqual((work["status"], work["resume_payload"]), ("queued", "yes"))
        self.assertIn(f"resumed before: {unit}", self.reply("m1").out)
        again = self.reply("m1", "--json").json
        self.assertEqual((again["created"], again["resumed"], again["repeated"]),
                         (False, True, True))
        self.assertEqual(self.units(), ["q1"])
        got = self.cli("--json", "work", "create", "--source", "conversation", "--source-id", "m1",
                       "--reply-to", "ann@chat", "--payload", '"no"', code=7).json
        self.assertEqual(got["error"]["code"], "conflict")
        self.assertIn("source id", got["error"]["message"])

    def test_a_reply_that_nobody_or_several_wait_for_is_a_unit(self):
        self.assertNotIn("resumed", self.reply("m1", "--json").json)
        self.cli("work", "cancel", self.ok("work", "list")["items"][0]["work_id"], "--reason", "x")
        for_others = self.ask("q0", kind="external")
        one = self.ask("q1")
        # Delivered again, it stays what it was, though a caller waits by now.
        self.assertIn("exists already", self.reply("m1").out)
        other = self.ask("q2")
        self.assertIn("created", self.reply("m2").out)
        waiting = {w["work_id"] for w in self.ok("work", "list")["items"]
                   if w["status"].startswith("waiting")}
        self.assertEqual(waiting, {for_others, one, other})
        self.cli("work", "create", "--source", "conversation", "--source-id", "m3", "--reply-to",
                 "r", "--payload-ref", "file:1", code=2)

    def test_a_spooled_reply_finds_who_waits_when_it_is_reconciled(self):
        unit = self.ask("q1")
        holder = sqlite3.connect(self.db, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        got = self.create("m1", "--reply-to", "ann@chat", "--payload", '"yes"', "--json").json
        self.assertTrue(got["spooled"])
        holder.execute("ROLLBACK")
        holder.close()
        report = self.cli("work", "reconcile", "--from", "in.spool", "--json").json["from"]
        self.assertEqual(report["resumed"] + report["existing"], 1) # the ledger may have it too
        self.assertEqual(report["problems"], [])
        self.assertEqual(self.ok("work", "show", unit)["work"]["resume_payload"], "yes")
        self.assertEqual(self.units(), ["q1"])
        self.file("export.jsonl", json.dumps({
            "source_system": "conversation", "source_id": "m1", "reply_ref": "ann@chat",
            "payload_text": '"yes"'}) + "\n")
        report = self.cli("work", "reconcile", "--from", "export.jsonl", "--json").json["from"]
        self.assertEqual((report["resumed"], report["existing"]), (0, 1))

    def test_bad_input_is_refused_and_not_spooled(self):
        self.create("m1", "--parent", "abcd", code=2)
        self.create("", code=2)
        self.cli("work", "create", "--source", "manual", "--source-id", "a", "--budget", "1s",
                 code=2)
        self.assertFalse(os.path.exists(self.path("in.spool")))

    def test_a_spool_that_cannot_be_written_is_said(self):
        self.file("work.db", "this is no database, and long enough to be read as one" * 40)
        self.file("in.spool", "mine\n")
        got = self.create("m1", "--json", code=2).json
        self.assertEqual(got["error"]["code"], "invalid_argument")
        self.assertIn("is not a spool", got["error"]["message"])
        self.assertIn("and the ledger", got["error"]["message"])
        with open(self.path("in.spool"), encoding="utf-8") as kept:
            self.assertEqual(kept.read(), "mine\n")

    def test_problems_are_named_and_the_rest_is_brought_in(self):
        lines = ['{"source_system":"manual","source_id":"a"}', '{"source_id":"b"}', "nonsense",
                 '{"source_system":"manual","source_id":"a","kind":"other"}']
        self.file("export.jsonl", "\n".join(lines).encode() + b"\n\xff\xfe\n")
        got = self.cli("work", "reconcile", "--from", "export.jsonl", "--json", code=2).json
        self.assertFalse(got["ok"])
        report = got["from"]
        self.assertEqual([report[k] for k in ("lines", "created", "conflicting", "malformed")],
                         [5, 1, 1, 3])
        self.assertEqual(sorted((p["line"], p["code"], p["field"]) for p in report["problems"]),
                         [(2, "invalid_argument", "source_system"), (3, "invalid_argument", "line"),
                          (4, "conflict", "source_id"), (5, "invalid_argument", "line")])
        said = self.cli("work", "reconcile", "--from", "export.jsonl", code=2)
        self.assertIn("read 5: 0 created, 1 already there, 1 conflicting, 3 malformed", said.out)
        self.assertIn("line 3: ", said.out)
        self.assertIn("line 4: source_id: the same source id and run id", said.out)
        self.file("conflict.jsonl", lines[3] + "\n")
        self.cli("work", "reconcile", "--from", "conflict.jsonl", code=7)
        self.cli("work", "reconcile", "--from", "missing.jsonl", code=3)
        self.cli("work", "reconcile", "--from", self.folder, code=2)

    def test_limits_and_shares_of_an_export_are_kept(self):
        self.cli("limit", "set", "key:acme", "--max", "1", "--quiet")
        line = {"source_system": "manual", "limit_key": "acme"}
        lines = [json.dumps({**line, "source_id": name}) for name in ("a", "b")]
        lines.append(json.dumps({"source_system": "manual", "source_id": "c", "fair_key": "f",
                                 "fair_weight": 5}))
        lines.append(json.dumps({"source_system": "manual", "source_id": "d", "rate_key": "r"}))
        self.file("export.jsonl", "\n".join(lines) + "\n")
        self.cli("work", "reconcile", "--from", "export.jsonl", "--quiet")
        units = self.cli("work", "list", "--json").json["items"]
        self.assertEqual([(u["source_id"], u["limit_name"], u["gate"], u["fair_key"])
                          for u in units],
                         [("a", "key:acme", None, None), ("b", "key:acme", "limit", None),
                          ("c", None, None, "f"), ("d", "rate:r", None, None)])

    def test_processes_append_at_once_and_no_line_is_mixed(self):
        self.env["HOLDFAST_DB"] = "/nowhere/at/all.db"

        def source(name):
            for i in range(5):
                self.until_kept(("work", "create", "--source", "manual", "--source-id",
                                 f"{name}{i}", "--spool", self.path("in.spool"), "--quiet",
                                 "--budget", "9s",
                                 "--payload", json.dumps("x" * 9000)))

        threads = [threading.Thread(target=source, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.env["HOLDFAST_DB"] = self.db
        got = self.cli("work", "reconcile", "--from", "in.spool", "--json").json
        self.assertEqual(got["from"]["created"], 20)
        self.assertEqual(got["from"]["malformed"], 0)


if __name__ == "__main__":
    main()
