#!/usr/bin/env python3
"""The monitor as a program: what it does, what it says, and how it ends. Every wait here is
for a line of its log or for the end of a process."""

import json
import os
import select
import signal
import stat
import subprocess

from harness import HOLDFAST, Case, main


class Monitor(Case):
    def start(self, *args):
        monitor = subprocess.Popen(
            [HOLDFAST, "--json", "monitor", "--interval", "200ms", *args], env=self.env,
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(monitor.stdout.close)
        self.addCleanup(monitor.stderr.close)
        self.addCleanup(monitor.wait)
        self.addCleanup(monitor.kill)
        return monitor

    def line(self, monitor, event):
        """The next line of the log about this."""
        for text in monitor.stderr:
            if text.startswith("holdfast: "):
                continue
            entry = json.loads(text)
            self.assertEqual(list(entry)[:3], ["at", "event", "message"])
            if entry["event"] == event:
                return entry
        raise AssertionError(f"the monitor ended without {event}")

    def end(self, monitor, signum=signal.SIGTERM):
        monitor.send_signal(signum)
        self.line(monitor, "ended")
        answer = json.loads(monitor.stdout.read())
        self.assertEqual(monitor.wait(), 0)
        self.assertIs(answer["ok"], True)
        return answer

    def status(self, work_id):
        return self.ok("work", "show", work_id)["work"]["status"]

    def test_a_monitor_that_runs_commands_takes_up_what_lost_its_runner(self):
        os.mkfifo(self.path("begun"))
        process = self.ok("process", "start", "--disposition", "rerunnable", "--", "sh", "-c",
                          "echo $PPID > begun; [ $HOLDFAST_ATTEMPT = 2 ] || exec sleep 1000"
                          )["work"]["work_id"]
        with open(self.path("begun")) as begun:
            runner = int(begun.read())
        os.kill(runner, signal.SIGKILL)
        monitor = self.start("--run")
        with open(self.path("begun")) as begun:
            worker = os.pidfd_open(int(begun.read()))
        self.addCleanup(os.close, worker)
        self.ok("process", "await", process, "--wait", "30s")
        self.assertEqual(self.ok("work", "show", process)["work"]["attempt_count"], 2)
        self.end(monitor)
        self.assertTrue(select.select([worker], [], [], 0)[0], "the worker outlived its monitor")

    def test_a_monitor_runs_commands_only_when_it_goes_on(self):
        self.assertIn("--until-idle", self.refused(2, "invalid_argument", "monitor", "--run",
                                                   "--once"))
        self.assertIn("--run", self.refused(2, "invalid_argument", "monitor", "--jobs", "2"))

    def test_one_pass(self):
        work_id = self.create("a", "--start-timeout", "1ms")["work_id"]
        answer = self.ok("monitor", "--once")
        self.assertEqual(answer, {"ok": True, "passes": 1, "changed": 1, "scheduled": 0,
                                  "renewed": 0})
        work = self.ok("work", "show", work_id)["work"]
        self.assertEqual((work["status"], work["status_reason"]), ("timeout", "start_timeout"))

    def test_one_pass_for_people(self):
        self.create("a", "--start-timeout", "1ms")
        done = self.cli("monitor", "--once")
        self.assertRegex(done.err, r"^\d{4}-\d\d-\d\dT\S+Z swept: 1 timed out\n$")
        self.assertEqual(done.out, "")

    def test_it_ends_cleanly_by_term_and_by_int(self):
        for signum in (signal.SIGTERM, signal.SIGINT):
            self.create(f"a{signum}", "--start-timeout", "1ms")
            monitor = self.start()
            self.line(monitor, "swept")
            self.assertEqual(self.end(monitor, signum)["changed"], 1)

    def test_a_killed_holder_is_noticed_and_its_work_runs_again(self):
        work_id = self.create("a", "--disposition", "rerunnable")["work_id"]
        holder = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
        self.claim("--pid", str(holder.pid), "--ttl", "1h")
        monitor = self.start()
        holder.kill()
        holder.wait()
        holder.stdin.close()
        entry = self.line(monitor, "swept")
        self.assertEqual((entry["requeued"], entry["proven_dead"]), (1, 1))
        self.assertEqual(self.status(work_id), "queued")
        self.end(monitor)
        proof = [e["payload"] for e in self.ok("work", "events", work_id)["items"]
                 if e["to_status"] == "queued"][-1]
        self.assertIn("proof", json.dumps(proof))

    def test_what_falls_due_is_promoted(self):
        self.create("a", "--delay", "300ms")
        monitor = self.start()
        self.assertEqual(self.line(monitor, "swept")["promoted"], 1)
        self.end(monitor)
        self.claim()

    def test_it_renews_what_its_owner_runs(self):
        self.create("a", "--disposition", "rerunnable")
        first = self.claim("--ttl", "3s")
        monitor = self.start("--owner", "w1")
        self.line(monitor, "renewed")
        work = self.ok("work", "show", first["work_id"])["work"]
        self.assertEqual(work["status"], "running")
        self.assertGreater(work["lease_expires_at"], first["lease_expires_at"])
        self.assertGreaterEqual(self.end(monitor)["renewed"], 1)

    def test_it_renews_nothing_that_shows_no_activity(self):
        work_id = self.create("a", "--disposition", "rerunnable")["work_id"]
        self.claim("--ttl", "1s")
        monitor = self.start("--owner", "w1", "--fresh", "1ms")
        self.assertEqual(self.line(monitor, "swept")["requeued"], 1)
        self.assertEqual(self.status(work_id), "queued")
        self.assertEqual(self.end(monitor)["renewed"], 0)

    def test_it_renews_nothing_of_others(self):
        self.create("a", "--disposition", "rerunnable")
        self.claim("--ttl", "1s")
        monitor = self.start("--owner", "w2")
        self.assertEqual(self.line(monitor, "swept")["requeued"], 1)
        self.end(monitor)

    def test_more_than_a_page_is_renewed_when_it_is_time_and_not_at_every_pass(self):
        lines = [f'{{"source_system":"manual","source_id":"u{i}"}}' for i in range(1001)]
        self.file("many.jsonl", "\n".join(lines))
        self.ok("work", "reconcile", "--from", "many.jsonl")
        for limit in ("1000", "1"):
            self.ok("work", "claim", "--owner", "w1", "--limit", limit, "--ttl", "1h")
        self.assertEqual(self.ok("monitor", "--once", "--owner", "w1")["renewed"], 0)
        last = self.create("late", "--priority", "9", "--disposition", "owner_bound")["work_id"]
        self.ok("work", "claim", "--owner", "w1", "--id", last, "--ttl", "1s")
        monitor = self.start("--owner", "w1")  # wakes for the one on the second page
        self.line(monitor, "renewed")
        self.end(monitor)

    def test_the_pointer_follows_the_ledger(self):
        path = self.path("active-work.json")
        monitor = self.start("--owner", "w1", "--pointer", path)
        work_id, token = self.held()
        entry = self.line(monitor, "pointer")["pointer"]
        self.assertEqual((entry["action"], entry["names"]), ("wrote", work_id))
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        with open(path, encoding="utf-8") as file:
            pointer = json.load(file)
        self.assertEqual((pointer["work_id"], pointer["owner"], pointer["running"]),
                         (work_id, "w1", 1))
        self.ok("work", "close-out", work_id, "--token", token, "--status", "done")
        self.assertEqual(self.line(monitor, "pointer")["pointer"]["action"], "cleared")
        self.assertFalse(os.path.exists(path))
        self.end(monitor)

    def test_several_monitors_work_side_by_side(self):
        monitors = [self.start() for _ in range(3)]
        for name in "abcdef":
            self.create(name, "--start-timeout", "300ms")
        work_ids = [i["work_id"] for i in self.ok("work", "list", "--all")["items"]]
        while any(self.status(i) == "queued" for i in work_ids):
            pass
        self.assertEqual(sum(self.end(monitor)["changed"] for monitor in monitors), 6)
        for work_id in work_ids:
            events = self.ok("work", "events", work_id)["items"]
            self.assertEqual([e["to_status"] for e in events if e["to_status"]],
                             ["queued", "timeout"])


class Reconcile(Case):
    def test_the_file_is_written_kept_and_cleared(self):
        path = self.path("p.json")
        args = ["work", "reconcile", "--owner", "w1", "--pointer", path]
        self.assertEqual(self.ok(*args)["pointer"]["action"], "nothing")
        work_id, token = self.held()
        answer = self.ok(*args)
        self.assertEqual(list(answer), ["ok", "sweep", "pointer"])
        self.assertEqual(answer["pointer"], {
            "action": "wrote", "named": None, "names": work_id, "running": 1,
            "corrupt": False, "aside": None, "row_missing": False,
            "older_incarnation": False})
        self.assertEqual(self.ok(*args)["pointer"]["action"], "kept")
        self.ok("work", "release", work_id, "--token", token)
        self.assertEqual(self.ok(*args)["pointer"]["action"], "cleared")

    def test_a_corrupt_file_is_put_aside(self):
        path = self.file("p.json", "{ half of")
        answer = self.ok("work", "reconcile", "--owner", "w1", "--pointer", path)["pointer"]
        self.assertIs(answer["corrupt"], True)
        with open(answer["aside"], encoding="utf-8") as file:
            self.assertEqual(file.read(), "{ half of")
        self.assertFalse(os.path.exists(path))

    def test_without_a_pointer_it_sweeps(self):
        self.create("a", "--start-timeout", "1ms")
        answer = self.ok("work", "reconcile")
        self.assertEqual((answer["sweep"]["timed_out"], answer["pointer"]), (1, None))


class Worker(Case):
    """examples/shell-worker.sh: a worker in twenty lines of shell."""

    SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples",
                          "shell-worker.sh")

    SHELL = ["sh"]

    def start(self, command):
        os.mkfifo(self.path("said"))
        worker = subprocess.Popen(
            [*self.SHELL, self.SCRIPT, "q", "sh", "-c", command], env=self.env, cwd=self.folder,
            start_new_session=True, stderr=subprocess.PIPE, text=True)
        self.addCleanup(worker.stderr.close)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        return worker

    def said(self):
        """What the command says next; it waits until another process listens."""
        with open(self.path("said"), encoding="utf-8") as pipe:
            return pipe.read()

    def ended(self, work_id):
        while True:
            work = self.ok("work", "show", work_id)["work"]
            if work["status"] != "running":
                return work
            self.ok("work", "claim", "--owner", "x", "--queue", "none", "--wait", "20ms")

    def end(self, worker):
        os.killpg(worker.pid, signal.SIGTERM)
        return worker.wait()

    def test_it_is_twenty_lines(self):
        with open(self.SCRIPT, encoding="utf-8") as script:
            lines = [l for l in script if l.strip() and not l.startswith("#")]
        self.assertLessEqual(len(lines), 20)

    def test_it_does_units_one_after_the_other(self):
        nasty = "it's $(false) \\ \"quoted\""
        ids = [self.create(n, "--queue", "q", "--payload", json.dumps({"n": n, "x": nasty}))
               ["work_id"] for n in "ab"]
        worker = self.start("cat >said")
        for name, work_id in zip("ab", ids):
            self.assertEqual(json.loads(self.said()), {"n": name, "x": nasty})
            self.assertEqual(self.ended(work_id)["status"], "done")
        self.end(worker)

    def test_a_failing_command_is_a_failure_with_its_code(self):
        work_id = self.create("a", "--queue", "q", "--retry-policy",
                              '{"initial_backoff_ms":60000,"jitter":"none"}')["work_id"]
        worker = self.start("exit 7")
        while self.ok("work", "show", work_id)["work"]["status"] == "queued":
            self.ok("work", "claim", "--owner", "x", "--queue", "none", "--wait", "20ms")
        work = self.ended(work_id)
        self.assertEqual((work["status"], work["error_class"], work["status_reason"]),
                         ("retry_scheduled", "service_unavailable", "exit code 7"))
        self.end(worker)

    def test_a_stopped_worker_ends_its_command_and_gives_the_unit_back(self):
        work_id = self.create("a", "--queue", "q")["work_id"]
        os.mkfifo(self.path("never"))
        worker = self.start("echo up >said; exec cat never")
        self.assertEqual(self.said(), "up\n")
        worker.terminate()
        worker.wait()
        work = self.ok("work", "show", work_id)["work"]
        self.assertEqual((work["status"], work["failures"]), ("queued", 0))

    def test_what_a_claim_takes_after_the_signal_is_handed_back_and_not_run(self):
        self.ok("policy", "set", "default")  # makes the store
        worker = self.start("echo ran >said")
        self.claims(worker)
        worker.terminate()
        work_id = self.create("a", "--queue", "q")["work_id"]
        self.assertEqual(worker.wait(), 0)
        work = self.ok("work", "show", work_id)["work"]
        self.assertEqual((work["status"], work["status_reason"], work["attempt_count"]),
                         ("queued", "the worker was told to end", 1))

    def claims(self, worker):
        """Waits until the worker's `holdfast work claim` waits for a unit."""
        while True:
            found = subprocess.run(["ps", "-o", "args=", "-s", str(worker.pid)], check=False,
                                   capture_output=True, text=True).stdout
            if "work claim" in found:
                return

    def test_its_command_knows_its_unit(self):
        work_id = self.create("a", "--queue", "q")["work_id"]
        worker = self.start("holdfast work append-event --type progress --payload 1 --quiet && "
                            "echo $HOLDFAST_WORK_ID >said")
        self.assertEqual(self.said(), work_id + "\n")
        self.assertEqual(self.ended(work_id)["status"], "done")
        self.assertIn("progress", [event["event_type"] for event in
                                   self.ok("work", "events", work_id)["items"]])
        self.end(worker)

    def test_a_lost_lease_ends_the_command(self):
        work_id = self.create("a", "--queue", "q")["work_id"]
        self.ok("policy", "set", "kind:work", "--ttl", "3s")
        os.mkfifo(self.path("never"))
        worker = self.start("echo up >said; exec cat never")
        self.assertEqual(self.said(), "up\n")
        self.ok("work", "cancel", work_id, "--reason", "not wanted")
        said = iter(worker.stderr.readline, "")
        self.assertTrue(any("holdfast: " in line for line in said)) # the shell may say more
        self.assertEqual(self.ended(work_id)["status"], "cancelled")
        self.end(worker)


class WorkerInBash(Worker):
    SHELL = ["bash", "--posix"]


if __name__ == "__main__":
    main()
