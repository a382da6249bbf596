#!/usr/bin/env python3
"""examples/c-worker.c: a worker against the public headers. Where its work must take a while,
it writes more to a pipe than the pipe holds."""

import json
import os
import signal
import subprocess

from harness import Case, main

C_WORKER = os.environ["C_WORKER"]
LONG = json.dumps("x" * 100000)


class Worker(Case):
    def start(self, stdout=subprocess.PIPE):
        self.ok("policy", "set", "default", "--ttl", "1500ms")
        worker = subprocess.Popen([C_WORKER, self.db, "q"], env=self.env, stdout=stdout,
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(worker.stderr.close)
        if worker.stdout:
            self.addCleanup(worker.stdout.close)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        return worker

    def unit(self, name, *args):
        return self.create(name, "--queue", "q", "--disposition", "rerunnable", *args)["work_id"]

    def row(self, work_id):
        return self.ok("work", "show", work_id)["work"]

    def until(self, work_id, holds):
        while not holds(work := self.row(work_id)):
            self.ok("work", "claim", "--owner", "x", "--queue", "none", "--wait", "20ms")
        return work

    def test_it_does_units_one_after_the_other_and_ends_by_a_signal(self):
        ids = [self.unit(n, "--payload", json.dumps({"n": n})) for n in "ab"]
        worker = self.start()
        for name, work_id in zip("ab", ids):
            self.assertEqual(worker.stdout.readline(), f'{work_id} attempt 1: {{"n": "{name}"}}\n')
            self.until(work_id, lambda work: work["status"] == "done")
        worker.terminate()
        self.assertEqual(worker.wait(), 0)
        self.assertEqual(worker.stderr.read(), "")

    def test_a_failure_is_told_with_its_class(self):
        # No jitter: with it the second try may be over before the test looks.
        work_id = self.unit("a", "--retry-policy", '{"initial_backoff_ms":60000,"jitter":"none"}')
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.start(stdout=full)
            work = self.until(work_id, lambda work: work["status"] == "retry_scheduled")
        self.assertEqual((work["error_class"], work["failures"]), ("service_unavailable", 1))

    def test_the_lease_is_renewed_while_it_works(self):
        work_id = self.unit("a", "--payload", LONG)
        worker = self.start()
        first = self.until(work_id, lambda work: work["status"] == "running")["lease_expires_at"]
        work = self.until(work_id, lambda work: work["lease_expires_at"] > first + 1500)
        self.assertEqual((work["status"], work["attempt_count"]), ("running", 1))
        worker.stdout.readline()
        self.assertEqual(self.until(work_id, lambda work: work["finished_at"])["status"], "done")

    def test_what_it_lost_it_does_not_settle(self):
        work_id = self.unit("a", "--payload", LONG)
        worker = self.start()
        self.until(work_id, lambda work: work["status"] == "running")
        self.ok("work", "cancel", work_id, "--reason", "not wanted")
        self.assertIn("renew", worker.stderr.readline())
        worker.stdout.readline()
        worker.terminate()
        self.assertEqual(worker.wait(), 0)
        self.assertEqual(self.row(work_id)["status"], "cancelled")
        self.assertEqual(worker.stderr.read(), "")

    def test_when_it_is_killed_another_goes_on_at_once(self):
        work_id = self.unit("a", "--payload", LONG)
        worker = self.start()
        self.until(work_id, lambda work: work["status"] == "running")
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        work = self.claim("--queue", "q", "--wait", "20s")
        self.assertEqual((work["work_id"], work["attempt_count"]), (work_id, 2))


if __name__ == "__main__":
    main()
