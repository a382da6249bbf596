#!/usr/bin/env python3
"""Commands on a schedule and on a trigger: typed after --, run by a worker, never from elsewhere."""

import json
import os

from harness import Case, main

SOON = ("--at", "2020-01-01T00:00:00Z", "--catch-up", "latest")


class Commands(Case):
    def run_due(self):
        self.ok("schedule", "run")
        return self.cli("run", "--worker", "--until-idle").err

    def only(self):
        items = self.ok("work", "list", "--all")["items"]
        self.assertEqual(len(items), 1)
        return items[0]

    def test_a_command_on_a_schedule_is_run_in_its_folder_with_its_variables(self):
        os.mkdir(self.path("there"))
        self.ok("schedule", "add", "nightly", *SOON, "--cwd", "there", "--env", "LEVEL=2",
                "--timeout", "1h", "--", "sh", "-c", "echo level $LEVEL > out; exit 3")
        self.assertIn("failed: ", self.run_due())
        with open(self.path("there/out"), encoding="utf-8") as out:
            self.assertEqual(out.read(), "level 2\n")
        unit = self.only()
        self.assertEqual((unit["kind"], unit["queue"], unit["source_id"], unit["disposition"],
                          unit["max_attempts"], unit["status_reason"]),
                         ("run", "run", "nightly", "owner_bound", 1, "exit code 3"))
        self.assertEqual(unit["payload"], {"argv": ["sh", "-c", "echo level $LEVEL > out; exit 3"],
                                           "cwd": self.path("there"), "env": ["LEVEL=2"],
                                           "timeout_ms": 3600000})
        self.assertIn(" nightly ", self.cli("work", "list", "--all").out)

    def test_schedule_list_shows_what_it_runs_and_no_next_time_while_paused(self):
        self.ok("schedule", "add", "nightly", "--cron", "0 3 * * *", "--", "echo", "a b")
        head, row = self.cli("schedule", "list").out.rstrip("\n").split("\n")
        self.assertIn("RUNS", head)
        self.assertIn("echo 'a b'", row)
        self.assertRegex(row, r"T03:00:00")
        self.assertNotIn("next", self.cli("schedule", "pause", "nightly").out)
        self.assertNotRegex(self.cli("schedule", "list").out, r"T03:00:00")
        self.assertIn("T03:00:00", self.cli("schedule", "resume", "nightly").out)

    def test_an_update_changes_the_command_and_keeps_the_rest(self):
        self.ok("schedule", "add", "s", "--cron", "0 3 * * *", "--disposition", "rerunnable",
                "--max-attempts", "4", "--queue", "gpu", "--", "true")
        changed = self.ok("schedule", "update", "s", "--", "echo", "new")["schedule"]
        self.assertEqual((changed["payload"]["argv"], changed["queue"], changed["disposition"],
                          changed["max_attempts"], changed["cron"]),
                         (["echo", "new"], "gpu", "rerunnable", 4, "0 3 * * *"))

    def test_a_schedule_that_begins_to_run_a_command_goes_to_its_workers(self):
        self.ok("schedule", "add", "s", "--cron", "0 3 * * *", "--kind", "report")
        changed = self.ok("schedule", "update", "s", "--", "true")["schedule"]
        self.assertEqual((changed["kind"], changed["queue"], changed["disposition"]),
                         ("run", "run", "owner_bound"))

    def test_bad_input_is_refused_with_the_fix_and_makes_no_store(self):
        add = ("schedule", "add", "s", "--cron", "0 3 * * *")
        for args, words in (
                (add, ("after --", "--kind")),
                ((*add, "--"), ("after --",)),
                ((*add, "--kind", "k", "--timeout", "1h"), ("--timeout", "after --")),
                ((*add, "--cwd", "nowhere", "--", "true"), ("--cwd", "nowhere", "No such file")),
                ((*add, "--", "no-such-command"), ("no-such-command",)),
                ((*add, "--payload", "1", "--", "true"), ("leave out", "--payload")),
                ((*add, "--kind", "k", "--", "true"), ("leave out", "--kind")),
                ((*add, "--max-attempts", "2", "--", "true"), ("--disposition rerunnable",)),
                ((*add, "--env", "NOT_SET_HERE", "--", "true"), ("NOT_SET_HERE", "NAME=VALUE"))):
            with self.subTest(args=args):
                done = self.run_raw("--json", *args)
                error = json.loads(done.stdout)["error"]
                self.assertIn(done.returncode, (2, 3))
                for word in words:
                    self.assertIn(word, error["message"])
        self.assertFalse(os.path.exists(self.db))

    def test_a_trigger_gives_its_command_what_happened(self):
        self.ok("trigger", "subscribe", "t", "--source-type", "up", "--source-key", "k", "--",
                "sh", "-c", 'printf %s "$HOLDFAST_INPUT" > got')
        self.ok("trigger", "emit", "--source-type", "up", "--source-key", "k",
                "--idempotency-key", "1", "--payload", '{"file":"a $(touch evil) b","argv":["evil"]}')
        self.cli("run", "--worker", "--until-idle")
        with open(self.path("got"), encoding="utf-8") as got:
            self.assertEqual(json.load(got), {"file": "a $(touch evil) b", "argv": ["evil"]})
        self.assertFalse(os.path.exists(self.path("evil")))
        self.assertIn("sh -c", self.cli("trigger", "list").out)

    def test_what_happened_is_never_a_part_of_a_command(self):
        base = ("trigger", "subscribe", "t", "--source-type", "up", "--source-key", "k", "--kind",
                "run")
        for template in (None, '{"$event":""}', '{"argv":[{"$event":"a"}],"cwd":"/"}',
                         '{"argv":["true"],"cwd":{"$event":"c"}}'):
            args = (*base, "--template", template) if template else base
            self.assertIn("never taken from an occurrence",
                          self.refused(2, "invalid_argument", *args))

    def test_a_command_is_not_taken_from_a_call(self):
        unit = {"kind": "run", "payload": {"argv": ["true"], "cwd": "/"}}
        source = {"source_system": "manual", "source_id": "x"}
        for op, inputs in (
                ("work.create", {**source, **unit}),
                ("job.enqueue", unit),
                ("schedule.add", {"name": "s", "cron": "0 3 * * *", **unit}),
                ("schedule.sync", {"set": {"set": "a", "schedules": [
                    {"name": "s", "cron": "0 3 * * *", **unit}]}}),
                ("trigger.subscribe", {"subscription_key": "t", "source_type": "a",
                                       "source_key": "b", "kind": "run",
                                       "template": unit["payload"]}),
                ("process.start", {"disposition": "rerunnable", "command": ["true"]})):
            with self.subTest(op=op):
                result = self.cli("call", op, json.dumps(inputs), code=2)
                self.assertIn("command", json.loads(result.out)["error"]["message"])
        self.assertEqual(self.rows(), 0)


if __name__ == "__main__":
    main()
