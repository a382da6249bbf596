#!/usr/bin/env python3
"""examples/pool-worker.c: a pool in a process of its own, which is drained, and killed."""

import os
import signal
import subprocess

from harness import Case, main

WORKER = os.environ["POOL_WORKER"]


class PoolWorker(Case):
    def start(self):
        worker = subprocess.Popen([WORKER, self.db, "default"], stdout=subprocess.PIPE,
                                  cwd=self.folder, env=self.env, text=True)
        self.addCleanup(worker.stdout.close)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        return worker

    def enqueue(self, kind, payload):
        return self.ok("job", "enqueue", kind, "--payload", payload)["work"]["work_id"]

    def statuses(self, ids):
        return [self.ok("job", "show", i)["work"]["status"] for i in ids]

    def end(self, worker):
        worker.send_signal(signal.SIGTERM)
        return worker.wait(timeout=40)

    def test_jobs_run_fail_retry_and_the_worker_drains(self):
        prints = [self.enqueue("print", str(i)) for i in range(20)]
        shaky = self.enqueue("shaky", "null")
        worker = self.start()
        lines = [worker.stdout.readline().split() for _ in prints]
        self.assertEqual(sorted(line[1] for line in lines), sorted(prints))
        while self.ok("job", "show", shaky)["work"]["status"] != "done":
            self.ok("work", "claim", "--owner", "x", "--queue", "none", "--wait", "20ms")
        self.assertEqual(self.end(worker), 0)
        self.assertEqual(self.statuses(prints), ["done"] * 20)
        row = self.ok("job", "show", shaky)["work"]
        self.assertEqual((row["attempt_count"], row["failures"]), (2, 1))

    def test_a_drain_stops_what_sleeps_and_spends_no_attempt(self):
        job = self.enqueue("sleep", "600000")
        worker = self.start()
        self.assertEqual(worker.stdout.readline().split(), ["sleep", job])
        self.assertEqual(self.end(worker), 0)
        row = self.ok("job", "show", job)["work"]
        self.assertEqual((row["status"], row["failures"]), ("queued", 0))

    def test_what_a_killed_pool_ran_is_run_by_another(self):
        sleeping = self.enqueue("sleep", "600000")
        first = self.start()
        self.assertEqual(first.stdout.readline().split(), ["sleep", sleeping])
        second = self.start()
        prints = [self.enqueue("print", str(i)) for i in range(10)]
        first.send_signal(signal.SIGKILL)
        first.wait()
        # the other one goes on with it at once, not when the lease of 30 s lapses
        seen = set()
        while sleeping not in seen:
            seen.add(second.stdout.readline().split()[1])
        row = self.ok("job", "show", sleeping)["work"]
        self.assertEqual((row["attempt_count"], row["failures"]), (2, 1))
        trail = self.ok("work", "events", sleeping)["items"]
        lost = [e for e in trail if e["from_status"] == "running"][0]
        self.assertEqual(lost["payload"]["error_class"], "holder_dead")
        self.assertEqual(self.end(second), 0)
        self.assertLessEqual(set(self.statuses(prints)), {"done", "queued"})


if __name__ == "__main__":
    main()
