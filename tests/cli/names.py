#!/usr/bin/env python3
"""Names where ids are asked for, output that is followed, and commands that say what happened."""

import os
import subprocess

from harness import HOLDFAST, Case, main


class Names(Case):
    def test_a_name_is_the_open_unit_of_that_name_otherwise_the_newest(self):
        self.cli("run", "--name", "agent", "--", "echo", "one")
        self.cli("run", "--name", "agent", "--", "echo", "two")
        self.assertEqual(self.cli("work", "output", "agent", "--stream", "stdout").out, "two\n")
        open_one = self.ok("process", "start", "--disposition", "rerunnable", "--name", "agent")["work"]
        self.assertEqual(self.ok("work", "show", "agent")["work"]["work_id"], open_one["work_id"])
        self.assertEqual(self.ok("process", "show", "agent")["process"]["process_id"],
                         open_one["work_id"])
        self.assertIn("work_created", self.cli("work", "events", "agent").out)
        self.cli("work", "cancel", "agent", "--reason", "r")
        self.assertEqual(self.ok("work", "show", open_one["work_id"])["work"]["status"], "cancelled")

    def test_the_name_of_a_schedule_is_its_newest_unit(self):
        self.ok("schedule", "add", "nightly", "--cron", "0 3 * * *", "--", "echo", "dark")
        self.refused(3, "not_found", "work", "show", "nightly")
        self.ok("schedule", "run-now", "nightly")
        self.cli("run", "--worker", "--until-idle")
        self.assertEqual(self.cli("work", "output", "nightly", "--stream", "stdout").out, "dark\n")

    def test_a_bad_end_is_acknowledged_run_again_and_cancelled_by_name(self):
        self.cli("schedule", "add", "nightly", "--every", "1h", "--", "false")
        self.cli("schedule", "run-now", "nightly")
        self.assertIn("nothing was printed so far", self.cli("work", "output", "nightly").err)
        self.cli("run", "--worker", "--until-idle")
        self.assertEqual(self.ok("attention", "ack", "nightly")["acknowledged"], 1)
        self.assertIn("no reason given", self.cli("work", "requeue", "nightly").out)
        work = self.ok("work", "cancel", "nightly")["work"]
        self.assertEqual((work["status"], work["status_reason"]), ("cancelled", "no reason given"))
        listed = self.ok("work", "list", "--all", "--status", "cancelled", "--source-id", "nightly")["items"]
        self.assertEqual([item["work_id"] for item in listed], [work["work_id"]])

    def test_two_open_units_of_a_name_are_told_apart_by_id(self):
        ends = [self.ok("process", "start", "--disposition", "rerunnable", "--name", "twin")["work"]["work_id"][-8:]
                for _ in range(2)]
        for end in ends:
            self.assertRegex(self.cli("process", "list").out, rf"{end} +queued +twin")
        self.assertIn("use the id of one: " + ", ".join(ends) + " (",
                      self.refused(3, "ambiguous_id", "work", "show", "twin"))

    def test_a_name_that_is_no_ones_is_not_found(self):
        self.cli("migrate")
        self.refused(3, "not_found", "work", "show", "missing")


class Follow(Case):
    def test_follow_shows_what_comes_until_the_unit_ends(self):
        os.mkfifo(self.path("go"))
        self.ok("process", "start", "--disposition", "owner_bound", "--name", "talker", "--", "sh", "-c",
                "echo one; read line < go; echo two; echo bad >&2")
        follower = subprocess.Popen([HOLDFAST, "work", "output", "talker", "--follow"],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                    cwd=self.folder, env=self.env)
        self.addCleanup(follower.kill)
        self.assertEqual(follower.stdout.readline(), "one\n")  # while it runs
        with open(self.path("go"), "w", encoding="utf-8") as go:
            go.write("on\n")
        out, err = follower.communicate(timeout=40)
        self.assertEqual((out, err, follower.returncode), ("two\n", "bad\n", 0))

    def test_follow_of_what_was_pruned_is_not_found(self):
        self.cli("run", "--name", "older", "--", "true")
        unit = self.ok("work", "list", "--all")["items"][0]["work_id"]
        self.ok("work", "prune", "--older-than", "1ms")
        for name in (unit, "older"):
            err = self.cli("work", "output", name, "--follow", code=3).err
            self.assertIn("no unit", err)

    def test_follow_excludes_what_it_cannot_do(self):
        self.cli("run", "--name", "n", "--", "true")
        self.refused(2, "invalid_argument", "work", "output", "n", "--follow", "--attempt", "1")


class Said(Case):
    def test_a_cancel_says_whether_it_ended_the_unit_or_only_asked(self):
        unit = self.create()["work_id"]
        self.assertIn(f"cancelled {unit}", self.cli("work", "cancel", unit, "--reason", "r").out)
        bound, _ = self.held("s2", "--disposition", "owner_bound")
        self.assertIn(f"asked its owner to end {bound}: running",
                      self.cli("work", "cancel", bound, "--reason", "r").out)

    def test_process_start_says_how_to_see_what_it_prints(self):
        err = self.cli("process", "start", "--disposition", "owner_bound", "--", "true").err
        self.assertRegex(err, r"runs in the background; holdfast work output [0-9a-f]{8} --follow")

    def test_root_without_a_user_variable_is_called_root(self):
        del self.env["USER"]
        unit = self.create()["work_id"]
        actor = self.ok("work", "events", unit)["items"][0]["actor"]
        self.assertRegex(actor, r"^(root|uid-[1-9]\d*)$")


if __name__ == "__main__":
    main()
