#!/usr/bin/env python3
"""holdfast job, limit and attention."""

import json
import shlex
import sqlite3
import subprocess

from harness import Case, main


class Jobs(Case):
    def enqueue(self, *args):
        return self.ok("job", "enqueue", *args)["work"]

    def row(self, work_id):
        return self.ok("job", "show", work_id)["work"]

    def test_a_job_is_rerunnable_work(self):
        job = self.enqueue("mail", "--payload", '{"to":"ann"}', "--priority", "2")
        self.assertEqual((job["kind"], job["status"], job["disposition"], job["priority"]),
                         ("mail", "queued", "rerunnable", 2))
        self.assertEqual(job["payload"], {"to": "ann"})
        listed = self.ok("job", "list", "--kind", "mail")["items"]
        self.assertEqual([row["work_id"] for row in listed], [job["work_id"]])

    def test_whether_a_job_was_created_is_said(self):
        for created in (True, False):
            answer = self.ok("job", "enqueue", "mail", "--idempotency-key", "k")
            self.assertIs(answer["created"], created)

    def test_kinds_of_our_own_are_reserved(self):
        self.refused(2, "invalid_argument", "job", "enqueue", "hf.own")

    def test_a_debounce_puts_the_same_job_off(self):
        first = self.enqueue("index", "--dedup-key", "c7", "--debounce", "1m")
        second = self.enqueue("index", "--dedup-key", "c7", "--debounce", "1h")
        self.assertEqual(first["work_id"], second["work_id"])
        self.assertGreaterEqual(second["due_at"] - first["due_at"], 3500000)
        self.refused(2, "invalid_argument", "job", "enqueue", "index", "--debounce", "1m")

    def test_run_now_and_cancel(self):
        job = self.enqueue("mail", "--delay", "1h")["work_id"]
        self.assertEqual(self.row(job)["gate"], "due")
        self.ok("job", "run-now", job)
        self.assertIsNone(self.row(job)["gate"])
        self.refused(4, "illegal_transition", "job", "run-now", job)
        self.ok("job", "cancel", job, "--reason", "sent by hand")
        self.assertEqual(self.row(job)["status"], "cancelled")

    def test_a_limit_lets_one_run_at_a_time(self):
        self.ok("limit", "set", "key:acme", "--max", "1")
        one = self.enqueue("call", "--limit-key", "acme")
        two = self.enqueue("call", "--limit-key", "acme")
        self.assertEqual((one["gate"], two["gate"]), (None, "limit"))
        limit = self.ok("limit", "list")["items"][0]
        self.assertEqual((limit["name"], limit["max_running"], limit["used"], limit["waiting"]),
                         ("key:acme", 1, 1, 1))
        self.ok("job", "cancel", one["work_id"], "--reason", "x")
        self.assertIsNone(self.row(two["work_id"])["gate"])
        self.ok("limit", "set", "key:acme", "--none")

    def test_bad_limits_say_what_is_wrong(self):
        for args in (["acme", "--max", "1"], ["key:a"], ["key:a", "--rate", "5"],
                     ["key:a", "--max", "1", "--none"], ["key:a", "--max", "0"]):
            self.refused(2, "invalid_argument", "limit", "set", *args)

    # ---- attention ------------------------------------------------------------------------

    def attention(self, code):
        return self.cli("--json", "attention", code=code).json["items"]

    def any_attention(self):
        done = self.run_raw("--json", "attention")
        return json.loads(done.stdout)["items"]

    def crash(self, work_id):
        """A worker that takes the job and is killed."""
        with subprocess.Popen(["sleep", "600"]) as worker:
            self.ok("work", "claim", "--id", work_id, "--owner", "w", "--pid", str(worker.pid))
            worker.kill()
            worker.wait()
        self.ok("work", "sweep")

    def test_nothing_needs_a_human(self):
        self.enqueue("mail")
        self.assertEqual(self.attention(0), [])
        self.assertEqual(self.cli("attention").out, "nothing needs you\n")

    def test_an_effect_that_is_unknown_is_told_until_the_session_goes_on(self):
        turn = self.enqueue("input")["work_id"]
        with sqlite3.connect(self.db) as db:
            [seq] = db.execute("SELECT seq FROM work_spec WHERE work_id = ?", (turn,)).fetchone()
            db.execute("INSERT INTO session (session_id, tenant, agent, created_at, updated_at, chain)"
                       " VALUES ('s1', '', 'a', 1, 1, zeroblob(32))")
            db.execute("INSERT INTO session_meta (session_key, relation, request_hash)"
                       " SELECT session_key, 'root', zeroblob(32) FROM session")
            add = ("INSERT INTO session_turn (turn_key, session_key, base_revision, base_count, started_at, turn_id,"
                   " chain, step) SELECT ?, session_key, 0, 0, 1, ?, zeroblob(32), 1 FROM session")
            db.execute(add, (seq, turn))
            db.execute("INSERT INTO effect (turn_key, effect_key, attempt, fence, started_at, settled_at, kind,"
                       " recovery, status, envelope, outcome) VALUES (?, '2/c1/1', 1, 0, 1, 2, 'tool_call', 'ask',"
                       " 'unknown', '{}', '{}')", (seq,))
        [item] = self.attention(10)
        self.assertEqual((item["what"], item["id"], item["kind"]), ("unknown_effect", turn, "tool_call"))
        self.assertTrue(item["detail"].startswith("2/c1/1 of session s1, begun "), item)
        self.assertEqual(item["command"], "holdfast session log 's1'")
        with sqlite3.connect(self.db) as db:
            db.execute(add, (seq + 1, "next"))
        self.assertEqual(self.attention(0), [])

    def test_poison_is_held_and_the_command_it_names_releases_it(self):
        job = self.enqueue("bad", "--max-attempts", "100")["work_id"]
        for _ in range(5):
            self.crash(job)
        self.assertEqual(self.row(job)["gate"], "held")
        self.assertEqual([r["work_id"] for r in self.ok("job", "list", "--gate", "held")["items"]],
                         [job])
        [item] = self.attention(10)
        self.assertEqual((item["what"], item["id"], item["kind"]), ("held", job, "bad"))
        self.ok(*shlex.split(item["command"])[1:])
        self.assertIsNone(self.row(job)["gate"])
        self.assertEqual(self.attention(0), [])

    def test_a_wait_past_half_of_its_time_is_told_and_so_is_who_can_end_it(self):
        self.ok("work", "create", "--source", "manual", "--source-id", "a")
        held = self.ok("work", "claim", "--owner", "w")["items"][0]
        self.ok("work", "wait", held["work_id"], "--token", held["lease_token"], "--kind", "user", "--ref",
                "ask-1", "--timeout", "1ms")
        while not (items := self.any_attention()):
            pass
        self.assertEqual((items[0]["what"], items[0]["id"]), ("wait", held["work_id"]))
        self.assertIn("ask-1", items[0]["detail"])
        self.assertIn("holdfast work resume " + held["work_id"], items[0]["command"])

    def waits(self, source_id, *args, timeout):
        self.ok("work", "create", "--source", "manual", "--source-id", source_id, *args)
        held = self.ok("work", "claim", "--owner", "w")["items"][0]
        self.ok("work", "wait", held["work_id"], "--token", held["lease_token"], "--kind",
                "user", "--ref", source_id, "--timeout", timeout)
        return held["work_id"]

    def test_nothing_is_left_out_however_much_waits(self):
        lines = [json.dumps({"source_system": "manual", "source_id": f"s{i}",
                             "disposition": "externally_owned"}) for i in range(1100)]
        with open(self.path("in.jsonl"), "w", encoding="utf-8") as out:
            out.write("\n".join(lines))
        self.cli("work", "reconcile", "--from", self.path("in.jsonl"))
        last = self.waits("last", timeout="1ms")
        while not (items := self.any_attention()):
            pass
        self.assertEqual([item["id"] for item in items], [last])

    def test_an_owner_bound_wait_names_what_can_end_it(self):
        unit = self.waits("bound", "--disposition", "owner_bound", timeout="1ms")
        while not (items := self.any_attention()):
            pass
        self.ok(*shlex.split(items[0]["command"])[1:])
        self.ok("work", "sweep")
        self.assertEqual(self.row(unit)["status"], "abandoned")

    def test_a_schedule_of_any_tenant_is_named_as_a_shell_reads_it(self):
        for tenant, name in (("", "it's; 'x'"), ("o'b", "n")):
            self.ok("--tenant", tenant, "schedule", "add", name, "--every", "1h", "--kind", "k")
        with sqlite3.connect(self.db) as store:
            store.execute("UPDATE work_schedule SET last_error = 'no such zone'")
        items = self.attention(10)
        self.assertEqual([item["id"] for item in items], ["it's; 'x'", "n"])
        for item in items:
            shown = self.ok(*shlex.split(item["command"])[1:])
            self.assertEqual(shown["schedule"]["name"], item["id"])

    def test_a_silent_owner_bound_unit_names_its_abandonment(self):
        self.ok("work", "create", "--source", "manual", "--source-id", "a", "--disposition",
                "owner_bound")
        held = self.ok("work", "claim", "--owner", "shell-7", "--ttl", "750ms")["items"][0]
        while not (items := self.any_attention()):
            pass
        self.assertEqual(items[0]["what"], "silent")
        self.assertIn("shell-7", items[0]["detail"])
        self.ok(*shlex.split(items[0]["command"])[1:])
        self.ok("work", "sweep")
        self.assertEqual(self.row(held["work_id"])["status"], "abandoned")


if __name__ == "__main__":
    main()
