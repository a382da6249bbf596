#!/usr/bin/env python3
"""holdfast schedule: envelopes, exit codes, and what the monitor makes of schedules."""

import json
import os
import signal
import subprocess

from harness import HOLDFAST, Case, main


class Preview(Case):
    def preview(self, *args):
        return self.ok("schedule", "preview", *args)["items"]

    def test_the_envelope_that_scripts_rely_on(self):
        answer = self.cli("schedule", "preview", "--cron", "30 3 * * *", "--tz", "Europe/Berlin",
                          "--from", "2026-03-28T12:00:00Z", "--count", "2", "--json").out
        self.assertEqual(answer, '{"ok":true,"items":["2026-03-29T01:30:00Z",'
                                 '"2026-03-30T01:30:00Z"]}\n')
        self.assertFalse(os.path.exists(self.db))

    def test_gaps_and_folds(self):
        self.assertEqual(self.preview("--cron", "30 2 * * *", "--tz", "America/New_York",
                                      "--from", "2026-03-07T12:00:00Z", "--count", "2"),
                         ["2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"])
        self.assertEqual(self.preview("--cron", "30 1 * * *", "--tz", "America/New_York",
                                      "--from", "2026-11-01T00:00:00-04:00", "--count", "2"),
                         ["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"])
        self.assertEqual(self.preview("--cron", "*/30 * * * *", "--tz", "America/New_York",
                                      "--from", "2026-11-01T05:00:00Z", "--count", "4"),
                         ["2026-11-01T05:30:00Z", "2026-11-01T06:00:00Z",
                          "2026-11-01T06:30:00Z", "2026-11-01T07:00:00Z"])

    def test_every_kind_of_timing(self):
        self.assertEqual(self.preview("--cron", "@daily", "--from", "2026-01-01T00:00:00Z",
                                      "--count", "1"), ["2026-01-02T00:00:00Z"])
        self.assertEqual(self.preview("--cron", "0 0 29 2 1", "--days", "and", "--from",
                                      "2026-01-01T00:00:00Z", "--count", "1"),
                         ["2044-02-29T00:00:00Z"])
        self.assertEqual(self.preview("--every", "90s", "--from", "2026-01-01T00:00:00Z",
                                      "--count", "2"),
                         ["2026-01-01T00:01:30Z", "2026-01-01T00:03:00Z"])
        self.assertEqual(self.preview("--at", "2026-07-01T12:00:00", "--tz", "Asia/Kolkata",
                                      "--from", "2026-01-01T00:00:00Z"), ["2026-07-01T06:30:00Z"])
        self.assertEqual(self.preview("--at", "2026-07-01T12:00:00Z", "--from",
                                      "2027-01-01T00:00:00Z"), [])
        self.assertEqual(len(self.preview("--cron", "* * * * *")), 5)
        self.assertEqual(len(self.preview("--cron", "* * * * *", "--count", "1000")), 1000)

    def test_people_get_lines(self):
        out = self.cli("schedule", "preview", "--cron", "@yearly", "--from",
                       "2026-01-01T00:00:00Z", "--count", "2").out
        self.assertEqual(out, "2027-01-01T00:00:00Z\n2028-01-01T00:00:00Z\n")

    def test_bad_input_is_refused_and_makes_no_store(self):
        for says, *args in (
                ("never fires", "--cron", "0 0 30 2 *"),
                ("minute must be 0 to 59", "--cron", "61 * * * *"),
                ("it has 4", "--cron", "* * * *"),
                ("Mars/Olympus", "--cron", "@daily", "--tz", "Mars/Olympus"),
                ("../../etc/passwd", "--cron", "@daily", "--tz", "../../etc/passwd"),
                ("--from", "--cron", "@daily", "--from", "yesterday"),
                ("offset", "--cron", "@daily", "--from", "2026-01-01T00:00:00"),
                ("--count", "--cron", "@daily", "--count", "0"),
                ("--count", "--cron", "@daily", "--count", "1001"),
                ("one of", "--cron", "@daily", "--every", "5m"),
                ("every", "--every", "0s"),
                ("--cron", "--tz", "UTC"),
                ("--days", "--cron", "@daily", "--days", "xor"),
                ("exclude each other", "s", "--cron", "@daily")):
            self.assertIn(says, self.refused(2, "invalid_argument", "schedule", "preview", *args))
        self.assertIn("not a time zone",
                      self.refused(2, "invalid_argument", "schedule", "add", "s", "--cron",
                                   "@daily", "--tz", "Nowhere"))
        self.assertFalse(os.path.exists(self.db))


class Schedule(Case):
    def add(self, name, *args):
        kind = () if "--kind" in args else ("--kind", "work")
        return self.ok("schedule", "add", name, *args, *kind)

    def show(self, name):
        return self.ok("schedule", "show", name)

    def test_add_show_list(self):
        answer = self.add("nightly", "--cron", "0 2 * * *", "--tz", "Europe/Berlin", "--kind",
                          "backup", "--payload", '{"full": true}', "--overlap", "one_waiting",
                          "--catch-up", "all", "--miss-threshold", "5m", "--priority", "1")
        self.assertIs(answer["changed"], True)
        one = answer["schedule"]
        self.assertEqual((one["state"], one["timing"], one["zone"], one["overlap"],
                          one["catch_up"], one["miss_threshold_ms"], one["priority"],
                          one["payload"], one["disposition"], one["revision"]),
                         ("active", "cron", "Europe/Berlin", "one_waiting", "all", 300000, 1,
                          {"full": True}, "rerunnable", 1))
        self.assertIs(self.add("nightly", "--cron", "0 2 * * *", "--tz", "Europe/Berlin", "--kind",
                               "backup", "--payload", '{"full": true}', "--overlap",
                               "one_waiting", "--catch-up", "all", "--miss-threshold", "5m",
                               "--priority", "1")["changed"], False)
        self.assertIn("another definition",
                      self.refused(7, "conflict", "schedule", "add", "nightly", "--cron",
                                   "@daily", "--kind", "k"))
        shown = self.show("nightly")
        self.assertEqual(len(shown["upcoming"]), 5)
        self.assertEqual(shown["skips"], [])
        self.add("b", "--every", "10m", "--paused")
        items = self.ok("schedule", "list")["items"]
        self.assertEqual([i["name"] for i in items], ["b", "nightly"])
        items = self.ok("schedule", "list", "--state", "paused")
        self.assertEqual([i["name"] for i in items["items"]], ["b"])
        page = self.ok("schedule", "list", "--limit", "1")
        page = self.ok("schedule", "list", "--limit", "1", "--after", page["next"])
        self.assertEqual(([i["name"] for i in page["items"]], page["next"]), (["nightly"], None))
        self.add("a", "--every", "10m")
        page = self.ok("schedule", "list", "--newest", "--limit", "2")
        self.assertEqual([i["name"] for i in page["items"]], ["a", "b"])
        self.assertIn("other direction", self.refused(
            2, "invalid_argument", "schedule", "list", "--after", page["next"]))
        page = self.ok("schedule", "list", "--newest", "--after", page["next"])
        self.assertEqual(([i["name"] for i in page["items"]], page["next"]), (["nightly"], None))
        text = self.cli("schedule", "list").out
        self.assertIn("0 2 * * * (Europe/Berlin)", text)
        self.assertIn("every 10m", text)
        self.assertIn("upcoming", self.cli("schedule", "show", "nightly").out)
        self.assertEqual(len(self.ok("schedule", "preview", "nightly")["items"]), 5)

    def test_the_cursor_that_is_printed_works_when_it_is_pasted(self):
        names = ["a 'b' $(false) \"c\" \\ 1:x,2", "z", "é*?;&"]
        for name in names:
            self.add(name, "--every", "10m")
        shown, options = [], ""
        while options is not None:
            done = subprocess.run(["sh", "-c", f'"$0" schedule list --limit 1 --json{options}; '
                                   f'"$0" schedule list --limit 1{options} >/dev/null', HOLDFAST],
                                  env=self.env, capture_output=True, text=True, check=True)
            shown += [i["name"] for i in json.loads(done.stdout)["items"]]
            more = [line for line in done.stderr.splitlines() if "more rows: " in line]
            options = " " + more[0].split("more rows: ")[1] if more else None
        self.assertEqual(shown, names)

    def test_update_keeps_what_is_not_given(self):
        self.add("s", "--cron", "0 2 * * *", "--tz", "Asia/Kolkata", "--kind", "k", "--days",
                 "and", "--payload", "1")
        one = self.ok("schedule", "update", "s", "--payload", "2")["schedule"]
        self.assertEqual((one["cron"], one["zone"], one["days"], one["kind"], one["payload"],
                          one["revision"]), ("0 2 * * *", "Asia/Kolkata", "and", "k", 2, 2))
        one = self.ok("schedule", "update", "s", "--every", "1h", "--revision", "2")["schedule"]
        self.assertEqual((one["timing"], one["cron"], one["every_ms"]),
                         ("interval", None, 3600000))
        before = one["start_at"]
        one = self.ok("schedule", "update", "s", "--queue", "q")["schedule"]
        self.assertEqual((one["start_at"], one["queue"]), (before, "q"))
        self.assertIn("revision 4", self.refused(7, "conflict", "schedule", "update", "s",
                                                 "--queue", "r", "--revision", "2"))
        self.assertIn("never fires", self.refused(2, "invalid_argument", "schedule", "update",
                                                  "s", "--cron", "0 0 31 4 *"))
        self.refused(3, "not_found", "schedule", "update", "t", "--queue", "r")
        self.assertEqual(self.show("s")["schedule"]["queue"], "q")

    def test_pause_resume_remove_run_now(self):
        self.add("s", "--cron", "@yearly")
        one = self.ok("schedule", "pause", "s", "--reason", "a holiday")["schedule"]
        self.assertEqual((one["state"], one["state_reason"]), ("paused", "a holiday"))
        self.assertIs(self.ok("schedule", "pause", "s")["changed"], False)
        answer = self.ok("schedule", "run-now", "s")
        self.assertIs(answer["created"], True)
        work = answer["work"]
        self.assertEqual((work["source_system"], work["source_id"]), ("scheduler", "s"))
        self.assertTrue(work["source_run_id"].startswith("manual:"))
        self.assertIn("overlap", self.refused(7, "conflict", "schedule", "run-now", "s"))
        self.assertEqual(self.cli("schedule", "resume", "s").out.split(":")[0], "s resumed")
        self.assertEqual(self.ok("schedule", "remove", "s"), {"ok": True, "removed": "s"})
        self.refused(3, "not_found", "schedule", "show", "s")
        self.refused(3, "not_found", "schedule", "pause", "s")
        self.refused(3, "not_found", "schedule", "run-now", "s")
        self.assertEqual(self.rows(), 1)

    def test_a_pass_makes_what_is_due(self):
        self.add("s", "--at", "2026-01-01T00:00:00Z", "--kind", "k")
        self.assertEqual({k: v for k, v in self.ok("schedule", "run").items() if k != "next_at"},
                         {"ok": True, "looked_at": 1, "made": 1, "skipped": 0, "failed": 0,
                          "races": 0})
        self.assertEqual(self.ok("schedule", "run")["made"], 0)
        work = self.claim("--kind", "k")
        self.assertEqual(work["source_run_id"], "2026-01-01T00:00:00Z")
        self.assertEqual(self.show("s")["schedule"]["state"], "finished")
        self.refused(4, "illegal_transition", "schedule", "pause", "s")

    def test_a_set_of_a_file(self):
        path = self.file("set.json", json.dumps({"set": "crons", "schedules": [
            {"name": "a", "cron": "@daily"}, {"name": "b", "every": "5m", "kind": "poll"}]}))
        self.assertEqual(self.ok("schedule", "sync", path),
                         {"ok": True, "added": 2, "updated": 0, "unchanged": 0, "kept": 0,
                          "paused": 0, "removed": 0})
        path = self.file("set.json", json.dumps({"set": "crons", "orphans": "remove",
                                                 "schedules": [{"name": "a",
                                                                "cron": "@hourly"}]}))
        self.assertEqual(self.cli("schedule", "sync", path).out,
                         "0 added, 1 updated, 0 unchanged, 0 kept, 0 paused, 1 removed\n")
        bad = b'{"set":"crons","schedules":[{"name":"x","cron":"0 0 30 2 *"}]}'
        self.assertIn("schedules[0] (x)", self.refused(2, "invalid_argument", "schedule", "sync",
                                                       "-", stdin=bad))
        self.refused(3, "not_found", "schedule", "sync", "nowhere.json")
        self.assertEqual([i["name"] for i in self.ok("schedule", "list", "--set",
                                                     "crons")["items"]], ["a"])

    def test_the_example_is_a_set(self):
        root = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")
        answer = self.ok("schedule", "sync", os.path.join(root, "examples", "schedules.json"))
        self.assertEqual(answer["added"], 4)

    def test_the_monitor_makes_slots_as_they_come(self):
        self.add("s", "--cron", "* * * * * *", "--overlap", "allow")
        monitor = subprocess.Popen([HOLDFAST, "--json", "monitor"], env=self.env,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        made = 0
        while made < 3:  # the log is the event to wait for
            line = json.loads(monitor.stderr.readline())
            made += line.get("made", 0) if line["event"] == "scheduled" else 0
        monitor.send_signal(signal.SIGTERM)
        out, _ = monitor.communicate(timeout=20)
        self.assertGreaterEqual(json.loads(out)["scheduled"], 3)
        slots = [w["source_run_id"] for w in self.ok("work", "list", "--all")["items"]]
        self.assertEqual(len(slots), len(set(slots)))
        self.assertEqual(slots, sorted(slots))


if __name__ == "__main__":
    main()
