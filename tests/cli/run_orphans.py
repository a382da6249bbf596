#!/usr/bin/env python3
"""Rule 6, dead_wrapper_is_not_dead_work: commands whose runner was killed, stopped or replaced."""

import os
import select
import signal
import sys
import time
import unittest

from run import PATIENCE, SLOW, RunCase


class DeadWrapper(RunCase):
    """Rule 6: dead_wrapper_is_not_dead_work, with real processes."""

    def kill_wrapper(self, *options, script=SLOW):
        proc = self.start("run", *options, "--", "sh", "-c", script)
        child = self.pidfd(self.begun())
        proc.kill()
        proc.wait(PATIENCE)
        return child

    def test_an_owner_bound_orphan_is_left_alone_and_then_abandoned_with_a_proof(self):
        child = self.kill_wrapper("--ttl", "750ms")
        for _ in range(3):
            self.ok("work", "sweep")
        self.assertTrue(self.alive(child))
        work = self.unit()
        self.assertEqual(work["status"], "running")
        signal.pidfd_send_signal(child, signal.SIGKILL)
        self.gone(child)
        self.ok("work", "sweep")
        work = self.unit()
        self.assertEqual((work["status"], work["status_reason"]), ("abandoned", "sweep"))
        proof = [event for event in self.ok("work", "events", work["work_id"])["items"]
                 if event["to_status"] == "abandoned"][0]["payload"]["proof"]
        self.assertIn("lock", proof["holder"])
        self.assertTrue(proof["lock"].startswith("free"))

    def test_who_awaits_a_run_sees_its_end_without_a_monitor(self):
        words = ("run", "--idempotency-key", "k", "--", "sh", "-c", SLOW)
        first = self.start(*words)
        child = self.pidfd(self.begun())
        first.kill()
        first.wait(PATIENCE)
        signal.pidfd_send_signal(child, signal.SIGKILL)
        self.gone(child)
        self.assertEqual(self.start(*words).wait(PATIENCE), 125)
        self.assertEqual(self.unit()["status"], "abandoned")

    def test_who_awaits_a_process_sees_its_end_without_a_monitor(self):
        child = self.kill_wrapper()
        awaits = self.start("process", "await", self.unit()["work_id"], "--wait", "60s")
        signal.pidfd_send_signal(child, signal.SIGKILL)
        self.gone(child)
        self.assertEqual(awaits.wait(PATIENCE), 14)

    def test_output_is_shown_before_a_sweep_has_stored_it(self):
        child = self.kill_wrapper(script="echo $$ > begun; read go < never; seq 200; echo err >&2; "
                                         "echo $$ > begun; exec cat never")
        with open(self.path("never"), "w", encoding="ascii") as never:
            never.write("go\n")
        self.begun()  # all is printed, after the runner's death
        work = self.unit()["work_id"]
        lines = "".join(f"{n}\n" for n in range(1, 201))
        end = time.monotonic() + PATIENCE  # the keeper notices the runner's death
        while self.ok("work", "output", work)["output"]["stdout"]["head"] != lines:
            self.assertLess(time.monotonic(), end)
        self.assertEqual(self.ok("process", "show", work)["output"]["stdout"]["head"], lines)
        self.assertEqual(self.query("SELECT count(*) FROM work_output"), [(0,)])
        signal.pidfd_send_signal(child, signal.SIGKILL)
        self.gone(child)
        self.ok("work", "sweep")
        shown = self.ok("work", "output", work)["output"]
        self.assertEqual((shown["stdout"]["head"], shown["stderr"]["head"]), (lines, "err\n"))

    def test_an_owner_bound_command_writes_on_when_its_runner_is_killed(self):
        """Twenty runners, each killed at a moment of its own, while a monitor watches."""
        go = os.path.abspath(self.db) + ".go"  # made when all are killed; no command ends before
        script = f"go = {go!r}" + """
import os, select, sys
print(os.getpid(), file=open("begun", "w"))
for i in range(60):
    while i == 30 and not os.path.exists(go):
        select.select([], [], [], 0.01)
    os.system(f"echo out {sys.argv[1]} {i}; echo err {sys.argv[1]} {i} > /dev/stderr")
    select.select([], [], [], 0.01)
"""
        self.ok("policy", "set", "kind:run", "--ttl", "30s")  # makes the store
        monitor = self.start("monitor", "--interval", "100ms")
        runners = [self.start("--json", "run", "--", sys.executable, "-c", script, str(n))
                   for n in range(20)]
        begun = 0
        while begun < len(runners):
            self.assertTrue(select.select([self.news], [], [], PATIENCE)[0], "none began")
            begun += os.read(self.news, 1000).count(b"\n")
        for runner in runners:
            select.select([], [], [], 0.02)  # so that each is killed at another moment
            runner.kill()
            runner.wait(PATIENCE)
        with open(go, "w", encoding="utf-8"):
            pass
        over = self.over(len(runners))
        self.collected()
        for work in over:
            self.assertEqual((work["status"], work["status_reason"]), ("abandoned", "sweep"))
            n = work["payload"]["argv"][-1]
            for stream in "stdout", "stderr":
                text = self.ok("work", "output", work["work_id"])["output"][stream]["head"]
                self.assertEqual(text.splitlines(), [f"{stream[3:]} {n} {i}" for i in range(60)])
        monitor.terminate()
        self.assertEqual(monitor.wait(PATIENCE), 0)
        self.ok("work", "sweep")
        self.assertEqual(os.listdir(self.db + "-run"), [])

    def over(self, most):
        """Waits until no unit runs; returns all of them."""
        end = time.monotonic() + 3 * PATIENCE
        while True:
            items = self.ok("work", "list", "--all")["items"]
            self.assertLessEqual(len(items), most)
            if all(work["status"] != "running" for work in items):
                return items
            self.assertLess(time.monotonic(), end)

    def collected(self):
        """Waits until the rest of all output is stored: then its files are removed."""
        end = time.monotonic() + 3 * PATIENCE
        while any(".lock.std" in name for name in os.listdir(self.db + "-run")):
            self.assertLess(time.monotonic(), end)
            self.ok("work", "list")

    def test_what_a_command_writes_without_its_runner_is_bounded(self):
        child = self.kill_wrapper(script=(
            "echo head; echo $$ > begun; read go < never; yes | head -c 50000000; echo; echo tail"))
        with open(self.path("never"), "w") as go:
            go.write("go\n")
        most = 0
        while self.alive(child):
            held = [os.stat(os.path.join(self.db + "-run", name)).st_blocks * 512
                    for name in os.listdir(self.db + "-run")]
            most = max(most, *held)
        self.gone(child)
        self.assertLess(most, 8 << 20)
        self.ok("work", "sweep")
        work = self.unit()
        self.assertEqual(work["status"], "abandoned")
        stdout = self.ok("work", "output", work["work_id"])["output"]["stdout"]
        self.assertEqual(stdout["bytes"], 5 + 50000000 + 1 + 5)
        self.assertTrue(stdout["head"].startswith("head\ny\n"))
        self.assertTrue(stdout["tail"].endswith("y\n\ntail\n"))

    def test_a_rerunnable_tree_is_gone_before_a_second_copy_starts(self):
        script = ("exec 9>alone; flock -n 9 || echo two at once > twice; "
                  "echo $$ > begun; [ $HOLDFAST_ATTEMPT = 2 ] || exec sleep 1000")
        child = self.kill_wrapper("--disposition", "rerunnable", "--max-attempts", "2",
                                  script=script)
        worker = self.start("run", "--worker", "--until-idle")
        self.begun()
        self.gone(child)
        self.assertEqual(worker.wait(PATIENCE), 0)
        work = self.unit()
        self.assertEqual((work["status"], work["attempt_count"], work["failures"]),
                         ("done", 2, 1))
        self.assertFalse(os.path.exists(self.path("twice")))

    def test_a_tree_that_ignores_term_is_killed(self):
        child = self.kill_wrapper("--disposition", "rerunnable", "--max-attempts", "1", script=(
            "trap '' TERM; echo $$ > begun; cat never"))
        self.ok("work", "sweep")
        self.gone(child)
        work = self.unit()
        self.assertEqual((work["status"], work["status_reason"]), ("failed", "attempts_exhausted"))

    def test_a_claim_alone_never_takes_work_whose_processes_run(self):
        child = self.kill_wrapper("--disposition", "rerunnable", "--max-attempts", "3",
                                  "--ttl", "750ms")
        self.assertEqual(self.ok("work", "claim", "--owner", "w", "--queue", "run",
                                 "--wait", "1s")["items"], [])
        self.assertTrue(self.alive(child))
        self.ok("work", "sweep")
        self.gone(child)
        self.assertEqual(len(self.ok("work", "claim", "--owner", "w", "--queue",
                                     "run")["items"]), 1)

    def test_a_stopped_runner_loses_its_rerunnable_unit_at_the_lapse_and_its_tree_first(self):
        proc = self.start("run", "--disposition", "rerunnable", "--max-attempts", "2", "--ttl",
                          "750ms", "--", "sh", "-c",
                          "echo $$ > begun; [ $HOLDFAST_ATTEMPT = 2 ] || exec sleep 1000")
        child = self.pidfd(self.begun())
        self.stop(proc)
        worker = self.start("run", "--worker", "--until-idle")
        self.begun()
        self.gone(child)
        self.assertEqual(worker.wait(PATIENCE), 0)
        proc.send_signal(signal.SIGCONT)
        self.assertEqual(proc.wait(PATIENCE), 125)
        work = self.unit()
        self.assertEqual((work["status"], work["attempt_count"]), ("done", 2))

    def test_a_stopped_runner_keeps_its_owner_bound_unit(self):
        proc = self.start("run", "--ttl", "750ms", "--", "sh", "-c", SLOW)
        child = self.pidfd(self.begun())
        self.stop(proc)
        self.assertEqual(self.ok("work", "claim", "--owner", "w", "--queue", "run",
                                 "--wait", "1s")["items"], [])
        self.ok("work", "sweep")
        self.assertEqual(self.unit()["status"], "running")
        self.assertTrue(self.alive(child))
        proc.send_signal(signal.SIGCONT)
        signal.pidfd_send_signal(child, signal.SIGTERM)
        self.gone(child)
        self.assertEqual(proc.wait(PATIENCE), 143)
        self.assertEqual(self.unit()["status"], "failed")

    def test_a_stopped_runner_keeps_a_unit_that_expires_through_its_grace(self):
        self.ok("policy", "set", "kind:run", "--ttl", "750ms", "--grace", "1h")
        self.create("one", "--kind", "run", "--queue", "run", "--payload",
                    '{"argv":["sh","-c","%s"],"cwd":"%s"}' % (SLOW, self.folder))
        worker = self.start("run", "--worker")
        child = self.pidfd(self.begun())
        self.stop(worker)
        while self.unit()["lease_remaining_ms"] > 0:
            pass
        self.ok("work", "sweep")
        self.assertTrue(self.alive(child))
        self.ok("policy", "set", "kind:run", "--ttl", "750ms", "--grace", "0s")
        self.ok("work", "sweep")
        self.gone(child)

    def test_a_cancelled_units_orphan_is_ended_on_restart(self):
        child = self.kill_wrapper("--disposition", "rerunnable")
        self.ok("work", "cancel", self.unit()["work_id"], "--reason", "enough")
        self.assertTrue(self.alive(child))
        self.ok("work", "sweep")
        self.gone(child)
        self.ok("work", "sweep")
        self.assertEqual(os.listdir(self.db + "-run"), [])

    def test_a_cancelled_and_requeued_unit_never_runs_beside_its_old_copy(self):
        proc = self.start("run", "--disposition", "rerunnable", "--max-attempts", "2", "--",
                          "sh", "-c", "echo $$ > begun; [ $HOLDFAST_ATTEMPT = 2 ] || "
                          "exec sleep 1000")
        child = self.pidfd(self.begun())
        self.stop(proc)
        work_id = self.unit()["work_id"]
        self.ok("work", "cancel", work_id, "--reason", "again")
        self.ok("work", "requeue", work_id, "--reason", "again")
        worker = self.start("run", "--id", work_id)
        self.begun()
        self.gone(child)
        self.assertEqual(worker.wait(PATIENCE), 0)
        proc.send_signal(signal.SIGCONT)
        self.assertEqual(proc.wait(PATIENCE), 125)
        self.assertEqual(self.unit()["status"], "done")

    def test_a_tree_that_closed_its_descriptors_is_found_by_its_group(self):
        closes = "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; "
        child = self.kill_wrapper("--disposition", "rerunnable", "--max-attempts", "1",
                                  script="echo $$ > begun; (" + closes + SLOW.split(";")[1] + ")")
        self.ok("work", "sweep")
        self.gone(child)


if __name__ == "__main__":
    unittest.main(verbosity=1)
