#!/usr/bin/env python3
"""The sweep's verdicts with real processes: killed -9, stopped, drained, restarted under the same
name; for each disposition, on SQLite and on PostgreSQL.

A holder is a process of its own, to which the lease is tied; the runner that `process start` makes is
one too. Nothing here sleeps to wait for something: what must end is waited for by its pidfd, what must
lapse by a claim that finds nothing until then."""

import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "cli"))
import harness  # noqa: E402

TTL = "750ms"  # the shortest
LAPSE = "900ms"
LEASE_LOST, ILLEGAL, BUSY = 5, 4, 6
PATIENCE = 20


class Verdicts(harness.Case):
    def setUp(self):
        super().setUp()
        self.holders = []
        self.addCleanup(self.end_all)

    def end_all(self):
        for holder in self.holders:
            holder.kill()
            holder.wait()

    def holder(self):
        """A process that does nothing but live."""
        proc = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL)
        self.holders.append(proc)
        return proc

    def process(self, disposition, *args):
        return self.ok("process", "start", "--disposition", disposition, *args)["work"]["work_id"]

    def take(self, process, pid=None, incarnation="boot-1", owner="host", code=0):
        words = ("work", "claim", "--id", process, "--owner", owner, "--incarnation", incarnation,
                 "--ttl", TTL) + (("--pid", str(pid)) if pid else ())
        done = self.cli("--json", *words, code=code)
        return done.json["items"][0]["lease_token"] if code == 0 else None

    def started(self, disposition):
        """A process that runs, the process that holds it, and its token."""
        process, holder = self.process(disposition), self.holder()
        return process, holder, self.take(process, holder.pid)

    def shown(self, process):
        return self.ok("process", "show", process)["process"]

    def verdict(self, process):
        work = self.shown(process)["work"]
        return work["status"], work["status_reason"]

    def end(self, process):
        trail = self.ok("process", "events", process)["items"]
        return [event for event in trail if event["to_status"]][-1]

    def sweep(self):
        return self.ok("work", "sweep")

    def let_lapse(self):
        """As long as a claim of nothing takes: longer than a term."""
        self.assertEqual(self.ok("work", "claim", "--owner", "x", "--queue", "nothing-here",
                                 "--wait", LAPSE)["items"], [])

    def late_write_is_refused(self, process, token):
        before = self.ok("process", "events", process)["items"]
        for verb in (("close-out", "--status", "done"), ("renew",)):
            self.cli("work", verb[0], process, "--token", token, *verb[1:], code=LEASE_LOST)
        after = self.ok("process", "events", process)["items"]
        changed = [e for e in after[len(before):] if e["event_type"] != "late_result"]
        self.assertEqual(changed, [])

    def kill(self, holder):
        holder.kill()
        holder.wait(PATIENCE)

    # ---- killed -9

    def test_killed_rerunnable_is_run_again_at_once(self):
        process, holder, token = self.started("rerunnable")
        self.kill(holder)
        self.assertEqual(self.sweep()["proven_dead"], 1)
        self.assertEqual(self.verdict(process), ("queued", "holder_dead"))
        self.assertEqual(self.end(process)["payload"]["proof"]["holder"]["pid"], holder.pid)
        self.take(process, owner="peer")
        self.assertEqual(self.shown(process)["work"]["attempt_count"], 2)
        self.late_write_is_refused(process, token)

    def test_killed_owner_bound_is_abandoned_and_never_run_again(self):
        process, holder, token = self.started("owner_bound")
        self.kill(holder)
        self.sweep()
        self.assertEqual(self.verdict(process), ("abandoned", "sweep"))
        end = self.end(process)["payload"]
        self.assertEqual((end["writer"], end["proof"]["holder"]["pid"]), ("sweep", holder.pid))
        self.take(process, owner="peer", code=ILLEGAL)
        self.late_write_is_refused(process, token)
        self.assertEqual(self.shown(process)["work"]["attempt_count"], 1)

    def test_killed_before_it_started_an_owner_bound_one_is_anybodys(self):
        process, holder = self.process("owner_bound"), self.holder()
        self.kill(holder)
        self.sweep()
        self.assertEqual(self.shown(process)["first_started"], None)
        self.take(process, owner="peer")
        self.assertIsNotNone(self.shown(process)["first_started"])

    def test_killed_or_not_what_is_owned_elsewhere_is_never_claimed(self):
        process = self.process("externally_owned")
        self.kill(self.holder())
        self.let_lapse()
        self.sweep()
        self.take(process, owner="peer", code=ILLEGAL)
        self.assertEqual(self.verdict(process)[0], "waiting_external")
        self.ok("process", "request-abandon", process, "--reason", "gone")
        self.sweep()
        self.assertEqual(self.verdict(process), ("abandoned", "reconciled_request"))

    # ---- stopped: silent, not dead

    def test_stopped_rerunnable_is_run_again_at_the_lapse(self):
        process, holder, token = self.started("rerunnable")
        holder.send_signal(signal.SIGSTOP)
        self.assertEqual(self.sweep()["requeued"], 0)
        self.let_lapse()
        self.sweep()
        self.assertEqual(self.verdict(process), ("queued", "heartbeat_timeout"))
        self.take(process, owner="peer")
        holder.send_signal(signal.SIGCONT)
        self.late_write_is_refused(process, token)
        self.assertEqual(self.verdict(process)[0], "running")

    def test_stopped_owner_bound_is_left_alone_until_somebody_says_otherwise(self):
        process, holder, token = self.started("owner_bound")
        holder.send_signal(signal.SIGSTOP)
        self.let_lapse()
        self.sweep()
        self.assertEqual([w["work_id"] for w in self.ok("work", "list", "--silent")["items"]],
                         [process])
        facts = self.shown(process)
        self.assertEqual((facts["status"], facts["abandon_request"]), ("running", None))
        self.assertEqual((facts["lease_holder"]["owner"], facts["lease_holder"]["process"]["pid"]),
                         ("host", holder.pid))
        self.assertLess(facts["lease_remaining_ms"], 0)
        self.ok("--actor", "human:ann", "process", "request-abandon", process, "--reason", "lost")
        self.ok("--actor", "human:ben", "process", "request-abandon", process, "--reason", "too")
        request = self.shown(process)["abandon_request"]
        self.assertEqual((request["by"], request["reason"]), ("human:ann", "lost"))
        self.sweep()
        self.assertEqual(self.verdict(process), ("abandoned", "reconciled_request"))
        holder.send_signal(signal.SIGCONT)
        self.late_write_is_refused(process, token)

    def test_stopped_owner_bound_that_comes_back_goes_on(self):
        process, holder, token = self.started("owner_bound")
        holder.send_signal(signal.SIGSTOP)
        self.let_lapse()
        self.sweep()
        holder.send_signal(signal.SIGCONT)
        self.ok("work", "close-out", process, "--token", token, "--status", "done")
        self.assertEqual(self.verdict(process)[0], "done")

    def test_a_request_waits_for_the_lapse_of_a_holder_that_lives(self):
        process, _, token = self.started("owner_bound")
        self.ok("process", "request-abandon", process, "--reason", "too long")
        self.ok("work", "renew", process, "--token", token, "--ttl", "30s")
        self.sweep()
        self.assertEqual(self.verdict(process)[0], "running")
        self.ok("work", "close-out", process, "--token", token, "--status", "done")
        self.assertEqual(self.verdict(process)[0], "done")

    # ---- drained

    def test_drained_ends_only_its_own_started_owner_bound_processes(self):
        bound, _, token = self.started("owner_bound")
        rerun, _, rerun_token = self.started("rerunnable")
        never, outside = self.process("owner_bound"), self.process("externally_owned")
        foreign = self.process("owner_bound")
        self.take(foreign, self.holder().pid, owner="other")
        drain = ("process", "drain", "--owner", "host", "--incarnation", "boot-1")
        report = self.ok(*drain)
        self.assertEqual((report["ended"], report["deferred"]), (1, 0))
        self.assertEqual(self.verdict(bound), ("abandoned", "owner_drain"))
        self.assertEqual(self.end(bound)["payload"]["writer"], "owner_drain")
        self.late_write_is_refused(bound, token)
        for process, status in ((rerun, "running"), (never, "queued"),
                                (outside, "waiting_external"), (foreign, "running")):
            self.assertEqual(self.verdict(process)[0], status)
        self.ok("work", "close-out", rerun, "--token", rerun_token, "--status", "done")
        self.assertEqual(self.ok(*drain)["ended"], 0)

    # ---- restarted under the same name

    def test_restarted_host_does_not_take_over_what_its_last_boot_had_by_name_alone(self):
        bound, _, bound_token = self.started("owner_bound")
        rerun, _, rerun_token = self.started("rerunnable")
        for process in (bound, rerun):
            self.take(process, incarnation="boot-2", code=BUSY)
        report = self.ok("process", "drain", "--owner", "host", "--incarnation", "boot-2")
        self.assertEqual(report["ended"], 0)
        for process, token in ((bound, bound_token), (rerun, rerun_token)):
            self.ok("work", "renew", process, "--token", token)

    def test_restarted_host_gets_the_verdicts_of_any_peer(self):
        bound, first, bound_token = self.started("owner_bound")
        rerun, second, rerun_token = self.started("rerunnable")
        self.kill(first)
        self.kill(second)
        self.sweep()
        self.assertEqual(self.verdict(bound), ("abandoned", "sweep"))
        self.take(bound, incarnation="boot-2", code=ILLEGAL)
        self.take(rerun, incarnation="boot-2")
        self.late_write_is_refused(bound, bound_token)
        self.late_write_is_refused(rerun, rerun_token)

    # ---- the runner of `process start`

    def runner(self, disposition):
        """A command in the background: its id, pidfds of its runner and of itself."""
        fifo = self.path("begun")
        os.mkfifo(fifo)
        news = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
        self.addCleanup(os.close, news)
        process = self.process(disposition, "--", "sh", "-c", "echo $PPID $$ > begun; exec sleep 1000")
        self.assertTrue(select.select([news], [], [], PATIENCE)[0], "no command began")
        fds = [os.pidfd_open(int(pid)) for pid in os.read(news, 100).split()]
        for fd in fds:
            self.addCleanup(os.close, fd)
        self.addCleanup(lambda: [self.signal(fd, signal.SIGKILL) for fd in fds])
        return process, fds[0], fds[1]

    @staticmethod
    def signal(fd, number):
        try:
            signal.pidfd_send_signal(fd, number)
        except ProcessLookupError:
            pass

    def gone(self, fd):
        self.assertTrue(select.select([fd], [], [], PATIENCE)[0], "the process did not end")

    def test_a_runner_that_is_killed_leaves_an_owner_bound_command_alone(self):
        process, runner, command = self.runner("owner_bound")
        self.signal(runner, signal.SIGKILL)
        self.gone(runner)
        self.sweep()
        self.assertEqual(select.select([command], [], [], 0)[0], [])
        self.assertEqual(self.verdict(process)[0], "running")
        self.signal(command, signal.SIGKILL)
        self.gone(command)
        self.sweep()
        self.assertEqual(self.verdict(process), ("abandoned", "sweep"))

    def test_a_runner_that_is_told_to_go_drains(self):
        process, runner, command = self.runner("owner_bound")
        self.signal(runner, signal.SIGTERM)
        self.gone(command)
        self.gone(runner)
        self.cli("process", "await", process, code=14)
        self.assertEqual(self.verdict(process), ("abandoned", "owner_drain"))

    def test_a_cancelled_command_ends(self):
        process, runner, command = self.runner("owner_bound")
        self.ok("process", "cancel", process, "--reason", "enough")
        self.gone(command)
        self.gone(runner)
        self.cli("process", "await", process, code=13)


class VerdictsOnPostgres(Verdicts):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.mkdtemp(prefix="holdfast-verdicts-pg-")
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
        schema = self.id().rsplit(".")[-1][len("test_"):][:40]
        self.env["HOLDFAST_DB"] = f"{self.url}&schema={schema}"
        self.cli("migrate", "--quiet")


if __name__ == "__main__":
    unittest.main(verbosity=1)
