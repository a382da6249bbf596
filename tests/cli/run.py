#!/usr/bin/env python3
"""holdfast run: any command as leased work, and rule 6, dead_wrapper_is_not_dead_work.

Nothing here sleeps to wait for something: a command says that it has begun through a fifo,
and a process that must end is waited for by its pidfd."""

import os
import pty
import select
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

import harness
from harness import HOLDFAST


class RunCase(harness.Case):
    def setUp(self):
        super().setUp()
        self.fifo = self.path("begun")
        os.mkfifo(self.fifo)
        os.mkfifo(self.path("left"))
        os.mkfifo(self.path("never"))
        self.news = os.open(self.fifo, os.O_RDWR | os.O_NONBLOCK)
        self.addCleanup(os.close, self.news)
        self.started = []
        self.addCleanup(self.end_all)

    def end_all(self):
        """No process of a failed test stays behind."""
        for proc in self.started:
            if proc.poll() is None:
                proc.kill()
            proc.communicate()
        locks = self.db + "-run"
        names = os.listdir(locks) if os.path.isdir(locks) else []
        for pid in self.tree_of([os.path.join(locks, name) for name in names]):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    @staticmethod
    def tree_of(locks):
        """The processes that have one of these files open: an independent look."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                fds = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
            except OSError:
                continue
            if int(pid) != os.getpid() and any(lock in fds for lock in locks):
                found.append(int(pid))
        return found

    def start(self, *args):
        return self.start_as([HOLDFAST], *args)

    def start_as(self, program, *args):
        proc = subprocess.Popen([*program, *args], env=self.env, cwd=self.folder,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
        self.started.append(proc)
        return proc

    def begun(self):
        """What the next command wrote into the fifo: its pid."""
        ready, _, _ = select.select([self.news], [], [], PATIENCE)
        self.assertTrue(ready, "no command began")
        return int(os.read(self.news, 100).split()[0])

    def stop(self, proc):
        """SIGSTOP, but not in the middle of a write: who is stopped there keeps the store."""
        end = time.monotonic() + PATIENCE
        while not self.query("SELECT 1 FROM work_event WHERE event_type = 'process_started'"):
            self.assertLess(time.monotonic(), end)
        proc.send_signal(signal.SIGSTOP)

    @staticmethod
    def pidfd(pid):
        return os.pidfd_open(pid)

    def gone(self, fd):
        """Waits for the process behind a pidfd to end."""
        ready, _, _ = select.select([fd], [], [], PATIENCE)
        os.close(fd)
        self.assertTrue(ready, "the process did not end")

    def alive(self, fd):
        return not select.select([fd], [], [], 0)[0]

    def unit(self):
        items = self.ok("work", "list", "--all")["items"]
        self.assertEqual(len(items), 1)
        return items[0]

    def events(self, work_id, event_type):
        trail = self.ok("work", "events", work_id)["items"]
        return [event for event in trail if event["event_type"] == event_type]

    def leaves(self, status):
        """Waits until the one unit has this status no more."""
        end = time.monotonic() + PATIENCE
        while self.unit()["status"] == status:
            self.assertLess(time.monotonic(), end)

    def change(self, sql):
        with sqlite3.connect(self.db, timeout=PATIENCE) as db:
            db.execute(sql)
        db.close()

    def query(self, sql, *values):
        db = sqlite3.connect(self.db)
        try:
            return db.execute(sql, values).fetchall()
        finally:
            db.close()


PATIENCE = 20


def ends_when_told(code):
    """A command that says that it has begun, and exits with this code at SIGTERM. A shell's
    trap would not do: it may be told between two of its steps, and then wait for a child."""
    return [sys.executable, "-c", f"""
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
os.write(os.open("begun", os.O_RDWR), b"%d " % os.getpid())
signal.sigwait([signal.SIGTERM])
sys.exit({code})
"""]


SLOW = 'echo $$ > begun; exec sleep 1000'


class Outcome(RunCase):
    def test_exit_codes_are_passed_through_and_decide_the_status(self):
        for code, status in ((0, "done"), (1, "failed"), (255, "failed")):
            self.cli("run", "--", "sh", "-c", f"exit {code}", code=code)
        statuses = [row["status"] for row in self.ok("work", "list", "--all")["items"]]
        self.assertEqual(sorted(statuses), ["done", "failed", "failed"])

    def test_a_signal_is_128_and_its_number_and_is_recorded(self):
        self.cli("run", "--", "sh", "-c", "kill -9 $$", code=137)
        work = self.unit()
        self.assertEqual((work["status"], work["error_class"]), ("failed", "signal_9"))
        (exited,) = self.events(work["work_id"], "process_exited")
        self.assertEqual(exited["payload"]["signal"], 9)
        self.assertNotIn("exit_code", exited["payload"])

    def test_a_unit_is_owner_bound_and_tried_once_by_default(self):
        self.cli("run", "--", "true")
        work = self.unit()
        self.assertEqual((work["disposition"], work["max_attempts"], work["source_system"],
                          work["kind"]), ("owner_bound", 1, "manual", "run"))

    def test_its_lease_lasts_30_seconds_where_no_policy_says(self):
        self.cli("run", "--", "true")
        self.ok("policy", "set", "kind:run", "--ttl", "12s")
        self.cli("run", "--", "true")
        terms = [self.events(work["work_id"], "claimed")[0]["payload"]["lease"]["ttl_ms"]
                 for work in self.ok("work", "list", "--all")["items"]]
        self.assertEqual(terms, [30000, 12000])

    def test_a_command_that_does_not_exist_writes_nothing(self):
        for command in ("no-such-command", "./nothing-here", "/", self.folder):
            message = self.refused(125, "invalid_argument", "run", "--", command)
            self.assertIn("command", message)
        self.assertFalse(os.path.exists(self.db))

    def test_more_attempts_need_rerunnable(self):
        message = self.refused(125, "invalid_argument", "run", "--max-attempts", "2", "--", "true")
        self.assertIn("--disposition rerunnable", message)
        self.assertFalse(os.path.exists(self.db))

    def test_a_missing_secret_or_folder_or_command_writes_nothing(self):
        self.refused(125, "invalid_argument", "run", "--secret", "NOT_SET_HERE", "--", "true")
        self.refused(125, "invalid_argument", "run", "--env", "NOT_SET_HERE", "--", "true")
        self.refused(125, "invalid_argument", "run", "--cwd", "/no/such/folder", "--", "true")
        self.refused(125, "invalid_argument", "run")
        self.assertFalse(os.path.exists(self.db))

    def test_failures_are_tried_again_within_the_budget(self):
        script = "echo $HOLDFAST_ATTEMPT >> tries; [ $HOLDFAST_ATTEMPT = 3 ]"
        policy = '{"initial_backoff_ms":1}'
        self.cli("run", "--disposition", "rerunnable", "--max-attempts", "3",
                 "--retry-policy", policy, "--", "sh", "-c", script)
        with open(self.path("tries"), encoding="ascii") as tries:
            self.assertEqual(tries.read().split(), ["1", "2", "3"])
        self.assertEqual(self.unit()["status"], "done")

    def test_the_last_exit_code_is_passed_through_when_the_budget_is_spent(self):
        self.cli("run", "--disposition", "rerunnable", "--max-attempts", "2",
                 "--retry-policy", '{"initial_backoff_ms":1}', "--",
                 "sh", "-c", "exit $((40 + HOLDFAST_ATTEMPT))", code=42)
        work = self.unit()
        self.assertEqual((work["status"], work["status_reason"]), ("failed", "attempts_exhausted"))

    def test_a_timeout_is_term_and_then_kill(self):
        self.cli("run", "--timeout", "1s", "--", *ends_when_told(9), code=9)
        self.cli("run", "--timeout", "50ms", "--kill-after", "50ms", "--", "sh", "-c",
                 "trap '' TERM; cat never", code=137)
        rows = self.ok("work", "list", "--all")["items"]
        self.assertEqual([(row["status"], row["error_class"]) for row in rows],
                         [("timeout", "exec_timeout")] * 2)

    def test_a_repeated_key_has_the_outcome_of_the_first_run(self):
        for key, script, code in (
                ("a", "exit 3", 3), ("b", "kill -TERM $$", 143), ("c", "exit 0", 0)):
            for _ in range(2):
                self.cli("run", "--idempotency-key", key, "--", "sh", "-c", script, code=code)
        again = self.cli("--json", "run", "--idempotency-key", "a", "--", "sh", "-c", "exit 3",
                         code=3).json
        self.assertEqual((again["ran"], again["status"], again["exit_code"]), (False, "failed", 3))

    def test_a_repeated_key_exits_as_the_first_run_whatever_the_unit_says(self):
        done = "holdfast work close-out --status done; exit 7"
        failed = "holdfast work close-out --status failed --reason tried; exit 0"
        for key, options, script, code in (
                ("a", (), done, 7), ("b", (), failed, 0),
                ("c", ("--require-close-out",), "exit 0", 125),
                ("d", ("--evidence", "nowhere"), "exit 0", 125)):
            for _ in range(2):
                self.cli("run", *options, "--idempotency-key", key, "--", "sh", "-c", script, code=code)
        self.ok("policy", "set", "default", "--close-rule", "reviewer")
        for _ in range(2):
            self.cli("run", "--idempotency-key", "e", "--", "true", code=125)

    def test_a_repeated_key_waits_for_a_run_that_goes_on(self):
        words = ("run", "--idempotency-key", "k", "--", "sh", "-c",
                 "echo $$ > begun; read go < never; exit 7")
        first = self.start(*words)
        self.begun()
        second = self.start(*words)
        self.assertIn(b"waiting for its end", second.stderr.readline())
        with open(self.path("never"), "w", encoding="ascii") as never:
            never.write("go\n")
        self.assertEqual((first.wait(PATIENCE), second.wait(PATIENCE)), (7, 7))
        self.assertEqual(self.unit()["attempt_count"], 1)

    def test_an_idempotency_key_runs_a_command_once(self):
        for _ in range(2):
            self.cli("run", "--idempotency-key", "k", "--", "sh", "-c", "echo x >> ran")
        with open(self.path("ran"), encoding="ascii") as ran:
            self.assertEqual(ran.read(), "x\n")
        self.cli("run", "--idempotency-key", "k", "--", "sh", "-c", "echo y >> ran", code=125)

    def test_a_lane_is_waited_for(self):
        first = self.start("run", "--lane", "one", "--", *ends_when_told(0))
        self.begun()
        second = self.start("run", "--lane", "one", "--", "sh", "-c", "echo $$ > begun")
        while len(self.ok("work", "list", "--all")["items"]) < 2:
            pass
        self.assertFalse(select.select([self.news], [], [], 0)[0])
        first.send_signal(signal.SIGTERM)
        self.assertEqual(first.wait(PATIENCE), 0)
        self.begun()
        self.assertEqual(second.wait(PATIENCE), 0)

    def test_a_retry_whose_lane_is_taken_is_waited_for(self):
        first = self.start("run", "--lane", "one", "--disposition", "rerunnable",
                           "--max-attempts", "2", "--retry-policy",
                           '{"initial_backoff_ms":700,"jitter":"none"}', "--", "sh", "-c",
                           "echo $$ > begun; [ $HOLDFAST_ATTEMPT = 2 ]")
        self.begun()
        self.leaves("running")
        second = self.start("run", "--lane", "one", "--", *ends_when_told(0))
        self.begun()
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            self.assertIsNone(first.poll())
        second.send_signal(signal.SIGTERM)
        self.assertEqual(second.wait(PATIENCE), 0)
        self.begun()
        self.assertEqual(first.wait(PATIENCE), 0)

    def test_json_prints_one_envelope_and_shows_output_on_stderr(self):
        result = self.cli("--json", "run", "--", "sh", "-c", "echo out; exit 4", code=4)
        answer = result.json
        self.assertEqual((answer["ok"], answer["status"], answer["exit_code"], answer["signal"]),
                         (True, "failed", 4, None))
        self.assertEqual(result.err.splitlines()[-1], "out")


class CloseRules(RunCase):
    """What a unit asks for when it is closed as done."""

    def test_a_rule_that_a_run_cannot_meet_ends_as_a_wait_for_a_person(self):
        self.ok("policy", "set", "default", "--close-rule", "reviewer",
                "--wait-rule", "escalation")
        done = self.cli("run", "--", "true", code=125)
        self.assertIn("waits for a person: done needs a reviewer for this row", done.err)
        self.ok("work", "sweep")
        work = self.unit()
        self.assertEqual((work["status"], work["status_reason"]),
                         ("waiting_user", "done needs a reviewer for this row"))
        trail = self.ok("work", "events", work["work_id"])["items"]
        self.assertEqual([e["event_type"] for e in trail][-3:],
                         ["waiting_set", "lease_released", "escalated"])
        self.assertLess(len(trail), 10)
        # What the message says closes it, whatever has become of the runner.
        (line,) = [line for line in done.err.splitlines() if "to continue: " in line]
        words = line.split("to continue: holdfast ")[1].replace("NAME", "ann").split()
        self.assertEqual(words[:2] + words[3:], ["work", "close-out", "--status", "done",
                                                 "--authority", "ann", "--reviewer", "ann"])
        self.ok(*words)
        work = self.unit()
        self.assertEqual((work["status"], work["result"]), ("done", {"reviewer": "ann"}))

    def test_evidence_is_the_hash_of_a_file(self):
        self.ok("policy", "set", "default", "--close-rule", "evidence")
        self.cli("run", "--evidence", "report", "--", "sh", "-c", "printf abc > report")
        self.assertEqual(self.unit()["result"], {"outputs": ["report"], "evidence": [
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"]})

    def test_evidence_that_is_missing_is_a_failure(self):
        self.cli("run", "--evidence", "report", "--", "true", code=125)
        work = self.unit()
        self.assertEqual((work["status"], work["error_class"]), ("failed", "evidence_missing"))
        self.assertIn("report", work["status_reason"])

    def test_a_worker_reads_the_evidence_too(self):
        self.create("one", "--kind", "run", "--queue", "run", "--close-rule", "evidence",
                    "--payload", '{"argv":["true"],"cwd":"%s","evidence":["begun"]}' % self.folder)
        self.create("two", "--kind", "run", "--queue", "run", "--close-rule", "evidence",
                    "--payload", '{"argv":["true"],"cwd":"%s"}' % self.folder)
        self.cli("run", "--worker", "--until-idle")
        one, two = (self.ok("work", "list", "--all")["items"])
        self.assertEqual((one["error_class"], two["status"]), ("evidence_missing", "waiting_user"))


class Detach(RunCase):
    def test_a_detached_command_is_handed_over_and_its_unit_is_born_done(self):
        answer = self.ok("run", "--detach", "--env", "A=b", "--", "sh", "-c",
                         'echo $$ > begun; echo "$A $HOLDFAST_WORK_ID" > seen; exec cat never')
        pid = self.begun()
        fd = self.pidfd(pid)
        self.addCleanup(lambda: signal.pidfd_send_signal(fd, signal.SIGKILL))
        self.assertEqual((answer["pid"], answer["status"]), (pid, "done"))
        work = self.unit()
        self.assertEqual((work["status"], work["disposition"], work["status_reason"]),
                         ("done", "externally_owned", "detached"))
        (created,) = self.events(work["work_id"], "work_created")
        self.assertTrue(created["payload"]["detached"])
        self.assertTrue(created["actor"].endswith(f":{pid}"))
        while not os.path.exists(self.path("seen")) or not os.path.getsize(self.path("seen")):
            pass
        with open(self.path("seen"), encoding="ascii") as seen:
            self.assertEqual(seen.read(), f"b {work['work_id']}\n")
        self.assertEqual(os.getsid(pid), pid)
        self.ok("work", "sweep")
        self.assertTrue(self.alive(fd))

    def test_a_script_without_its_interpreter_is_refused_and_nothing_is_recorded(self):
        script = self.path("script")
        with open(script, "w", encoding="utf-8") as file:
            file.write("#! /nowhere/python -u\nprint(1)\n")
        os.chmod(script, 0o755)
        plain = self.path("plain")
        with open(plain, "w", encoding="utf-8") as file:
            file.write("echo hello\n")
        os.chmod(plain, 0o755)
        for option in ((), ("--detach",)):
            for command, says in ((script, "there is no interpreter /nowhere/python"),
                                  (plain, "it is no program, and does not begin with #!")):
                message = self.refused(125, "invalid_argument", "run", *option, "--idempotency-key",
                                       "k", "--", command)
                self.assertIn(says, message)
        self.assertFalse(os.path.exists(self.db))

    def test_what_the_kernel_refuses_is_not_recorded_as_handed_over(self):
        machine = 0xb7 if os.uname().machine != "aarch64" else 0x3e
        header = bytes([0x7f, *b"ELF", 2, 1, 1]) + bytes(9) + bytes([2, 0, machine, 0]) + bytes(200)
        os.chmod(self.file("foreign", header), 0o755)
        self.assertIn("Exec format error", self.refused(
            125, "invalid_argument", "run", "--detach", "--idempotency-key", "k", "--", "./foreign"))
        self.assertFalse(os.path.exists(self.db))
        self.file("foreign", "#!/bin/sh\necho $$ > begun\n")
        self.assertTrue(self.ok("run", "--detach", "--idempotency-key", "k", "--", "./foreign")["ran"])
        self.begun()
        self.assertEqual(os.read(self.news, 100) if select.select([self.news], [], [], 0)[0] else b"",
                         b"")  # once

    def test_a_detached_command_outlives_the_command_that_started_it(self):
        self.cli("run", "--", "holdfast", "run", "--detach", "--", "sh", "-c",
                 'echo $$ > begun; exec cat never')
        fd = self.pidfd(self.begun())
        outer, inner = self.ok("work", "list", "--all")["items"]
        self.assertEqual((inner["parent_work_id"], outer["status"]), (outer["work_id"], "done"))
        self.assertTrue(self.alive(fd))
        signal.pidfd_send_signal(fd, signal.SIGKILL)
        self.gone(fd)

    def test_an_idempotency_key_hands_over_once(self):
        for ran in (True, False):
            answer = self.ok("run", "--detach", "--idempotency-key", "k", "--", "sh", "-c",
                             "echo $$ > begun")
            self.assertEqual(answer["ran"], ran)
        self.begun()
        self.assertEqual(self.unit()["status"], "done")

    def test_what_needs_a_runner_is_refused(self):
        for option in (("--timeout", "1s"), ("--disposition", "rerunnable"), ("--ttl", "1s"),
                       ("--require-close-out",), ("--lane", "x")):
            message = self.refused(125, "invalid_argument", "run", "--detach", *option, "--",
                                   "true")
            self.assertIn(option[0], message)
        self.refused(125, "invalid_argument", "run", "--detach")
        self.refused(125, "invalid_argument", "run", "--detach", "--worker")
        self.assertFalse(os.path.exists(self.db))


class Output(RunCase):
    def captured(self, stream):
        return self.query("SELECT chunk, data FROM work_output WHERE stream = ? ORDER BY chunk",
                          stream)

    def test_output_is_shown_and_captured(self):
        result = self.cli("run", "--quiet", "--", "sh", "-c", "echo to out; echo to err >&2")
        self.assertEqual((result.out, result.err), ("to out\n", "to err\n"))
        self.assertEqual(self.captured("stdout"), [(0, b"to out\n")])
        self.assertEqual(self.captured("stderr"), [(0, b"to err\n")])

    def test_head_and_tail_are_kept_and_the_middle_is_counted(self):
        lines = 200000
        result = self.cli("run", "--quiet", "--", "seq", "-w", str(lines))
        whole = "".join(f"{n:06}\n" for n in range(1, lines + 1)).encode()
        self.assertEqual(result.out.encode(), whole)
        chunks = self.captured("stdout")
        self.assertEqual([chunk for chunk, _ in chunks][:4], [0, 1, 2, 3])
        self.assertEqual(b"".join(data for _, data in chunks[:4]), whole[:65536])
        tail = b"".join(data for _, data in chunks[4:])
        self.assertGreaterEqual(len(tail), 65536)
        self.assertLess(len(tail), 65536 + 16384)
        self.assertTrue(whole.endswith(tail))
        self.assertEqual(chunks[4][0] * 16384, len(whole) - len(tail))
        (exited,) = self.events(self.unit()["work_id"], "process_exited")
        self.assertEqual(exited["payload"]["stdout_bytes"], len(whole))

    def test_work_output_shows_what_was_kept(self):
        subprocess.run([HOLDFAST, "run", "--quiet", "--", "sh", "-c",
                        r"printf 'a\033[1m\377b\n'; printf 'plain\n' >&2"],
                       env=self.env, capture_output=True, check=True)
        work_id = self.unit()["work_id"]
        shown = self.cli("work", "output", work_id).out
        self.assertEqual(shown, "--- stdout of attempt 1, 8 bytes\na\ufffd[1m\ufffdb\n"
                         "--- stderr of attempt 1, 6 bytes\nplain\n")
        raw = subprocess.run([HOLDFAST, "work", "output", work_id, "--stream", "stdout"],
                             env=self.env, capture_output=True, check=True)
        self.assertEqual(raw.stdout, b"a\x1b[1m\xffb\n")
        told = self.ok("work", "output", work_id)["output"]
        self.assertEqual(told["stdout"], {"attempt": 1, "bytes": 8, "lost": 0,
                                          "head": "a\x1b[1m\ufffdb\n", "tail": ""})
        self.assertEqual(told["stderr"]["head"], "plain\n")

    def test_work_output_says_what_is_missing_in_the_middle(self):
        self.cli("run", "--quiet", "--", "seq", "-w", "200000")
        work_id = self.unit()["work_id"]
        told = self.ok("work", "output", work_id)["output"]["stdout"]
        self.assertEqual(told["bytes"], 1400000)
        self.assertEqual(told["lost"], 1400000 - len(told["head"]) - len(told["tail"]))
        self.assertTrue(told["head"].startswith("000001\n"))
        self.assertTrue(told["tail"].endswith("\n200000\n"))
        one = self.cli("work", "output", work_id, "--stream", "stdout")
        self.assertEqual(one.out, told["head"] + told["tail"])
        self.assertIn(f"{told['lost']} of 1400000 bytes were not kept", one.err)

    def test_work_output_of_a_unit_without_a_command_is_empty(self):
        work_id = self.ok("work", "create", "--source", "manual", "--source-id", "x")["work"]["work_id"]
        self.assertEqual(self.cli("work", "output", work_id).out, "")
        self.assertEqual(self.ok("work", "output", work_id)["output"]["stderr"]["attempt"], 0)
        self.cli("work", "output", "ffffffffffff", code=3)

    def test_a_reader_that_goes_away_does_not_end_the_command(self):
        proc = self.start("run", "--quiet", "--", "sh", "-c", "seq 1 100000; echo end > end")
        proc.stdout.read(10)
        proc.stdout.close()
        proc.stdout = None
        self.assertEqual(proc.wait(PATIENCE), 0)
        self.assertTrue(os.path.exists(self.path("end")))

    def test_a_slow_reader_neither_ends_the_command_nor_costs_output(self):
        proc = self.start("run", "--quiet", "--", "sh", "-c",
                          "seq -w 1 200000; echo $? > code; echo $$ > begun")
        end = time.monotonic() + 1.5  # long enough for three looks at the row
        while time.monotonic() < end:
            self.assertIsNone(proc.poll())
        self.assertEqual(len(proc.stdout.read()), 1400000)
        self.begun()
        self.assertEqual(proc.wait(PATIENCE), 0)
        with open(self.path("code"), encoding="ascii") as code:
            self.assertEqual(code.read(), "0\n")
        (exited,) = self.events(self.unit()["work_id"], "process_exited")
        self.assertEqual(exited["payload"]["stdout_bytes"], 1400000)

    def test_what_stands_in_the_pipe_at_the_end_is_kept_though_nobody_reads(self):
        proc = self.start("run", "--quiet", "--", "sh", "-c",
                          "echo $$ > begun; head -c 190000 /dev/zero")
        self.begun()
        self.leaves("running")
        (exited,) = self.events(self.unit()["work_id"], "process_exited")
        self.assertEqual(exited["payload"]["stdout_bytes"], 190000)
        self.assertIsNone(proc.poll())
        proc.send_signal(signal.SIGTERM)  # its unit is closed: nothing is lost by an end
        self.assertEqual(proc.wait(PATIENCE), 0)
        self.assertEqual(self.unit()["status"], "done")

    def deny_exits(self):
        """The store takes no process_exited until a caller drops this."""
        self.change("CREATE TRIGGER deny BEFORE INSERT ON work_event WHEN NEW.event_type = "
                    "'process_exited' BEGIN SELECT RAISE(ABORT, 'denied'); END")

    def last_words(self):
        """A command that ends while its exit cannot be stored."""
        proc = self.start("run", "--quiet", "--", "sh", "-c",
                          "echo $$ > begun; read go < never; echo last words")
        child = self.pidfd(self.begun())
        self.deny_exits()
        with open(self.path("never"), "w", encoding="ascii") as never:
            never.write("go\n")
        self.gone(child)
        end = time.monotonic() + 1
        while time.monotonic() < end:
            self.assertEqual(self.unit()["status"], "running")
        return proc

    def test_the_exit_and_the_last_output_are_stored_before_the_outcome(self):
        proc = self.last_words()
        self.change("DROP TRIGGER deny")
        self.assertEqual(proc.wait(PATIENCE), 0)
        work = self.unit()
        self.assertEqual(work["status"], "done")
        self.assertEqual(len(self.events(work["work_id"], "process_exited")), 1)
        self.assertEqual(self.captured("stdout"), [(0, b"last words\n")])

    def test_a_signal_after_the_end_does_not_change_how_it_ended(self):
        proc = self.last_words()
        proc.send_signal(signal.SIGINT)
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            self.assertIsNone(proc.poll())
        self.change("DROP TRIGGER deny")
        self.assertEqual(proc.wait(PATIENCE), 0)
        work = self.unit()
        self.assertEqual((work["status"], work["status_reason"]),
                         ("done", "exit code 0"))

    def test_prune_takes_the_output_with_the_unit(self):
        self.cli("run", "--quiet", "--", "echo", "x")
        self.ok("work", "prune", "--older-than", "0s")
        for table in ("work_output", "process", "work_spec", "work_state"):
            self.assertEqual(self.query(f"SELECT count(*) FROM {table}"), [(0,)], table)


class Inside(RunCase):
    """What the command itself can do."""

    def test_the_command_knows_its_unit_and_its_store_from_any_folder(self):
        self.env["HOLDFAST_DB"] = "work.db"
        os.mkdir(self.path("elsewhere"))
        self.cli("run", "--quiet", "--cwd", "elsewhere", "--", "sh", "-c",
                 'holdfast work append-event --type seen --payload "\\"$PWD\\""')
        work = self.unit()
        (seen,) = self.events(work["work_id"], "seen")
        self.assertEqual(seen["payload"], os.path.realpath(self.path("elsewhere")))

    def test_its_own_close_out_stands(self):
        self.cli("run", "--", "sh", "-c",
                 "holdfast work close-out --status done --summary mine; exit 7", code=7)
        work = self.unit()
        self.assertEqual((work["status"], work["result"]["summary"]), ("done", "mine"))

    def test_require_close_out_infers_nothing(self):
        self.cli("run", "--require-close-out", "--", "true", code=125)
        work = self.unit()
        self.assertEqual((work["status"], work["error_class"]), ("failed", "close_out_missing"))
        self.cli("run", "--require-close-out", "--", "sh", "-c",
                 "holdfast work close-out --status done")

    def test_a_wait_survives_the_command_and_a_worker_goes_on(self):
        script = ('if [ -z "$HOLDFAST_RESUME_PAYLOAD" ]; then '
                  'holdfast work wait --kind user --ref question; '
                  'else echo "$HOLDFAST_RESUME_PAYLOAD" > answer; fi')
        self.cli("run", "--disposition", "rerunnable", "--max-attempts", "2", "--",
                 "sh", "-c", script)
        self.assertEqual(self.unit()["status"], "waiting_user")
        self.ok("work", "resume", "--ref", "question", "--payload", '"yes"')
        self.cli("run", "--worker", "--until-idle")
        self.assertEqual(self.unit()["status"], "done")
        with open(self.path("answer"), encoding="ascii") as answer:
            self.assertEqual(answer.read(), '"yes"\n')

    def resumed_with(self, payload, script):
        """A unit whose second run, of this script, was resumed with the payload."""
        self.cli("run", "--disposition", "rerunnable", "--max-attempts", "2", "--retry-policy",
                 '{"initial_backoff_ms":1}', "--", "sh", "-c",
                 'if [ "$HOLDFAST_ATTEMPT" = 1 ]; then holdfast work wait --kind user --ref q; '
                 f"else {script}; fi")
        self.ok("work", "resume", "--ref", "q", "--payload", "-", stdin=payload)
        self.cli("run", "--worker", "--until-idle")

    def test_a_run_inside_a_resumed_command_has_not_its_answer(self):
        self.resumed_with(b'"yes"', 'holdfast run -- sh -c "env > seen"')
        with open(self.path("seen"), encoding="ascii") as seen:
            names = [line.split("=")[0] for line in seen]
        self.assertIn("HOLDFAST_WORK_ID", names)
        self.assertNotIn("HOLDFAST_RESUME_PAYLOAD", names)

    def test_an_answer_that_no_variable_can_hold_is_named(self):
        self.resumed_with(b'"%s"' % (b"x" * 131000), 'echo ${#HOLDFAST_RESUME_PAYLOAD} > seen')
        with open(self.path("seen"), encoding="ascii") as seen:
            self.assertEqual(seen.read(), "131002\n")
        self.ok("work", "prune", "--older-than", "0s")
        self.resumed_with(b'"%s"' % (b"x" * 131072), "true")
        work = self.unit()
        self.assertEqual((work["status"], work["error_class"]), ("failed", "spawn_failed"))
        failed = [event for event in self.ok("work", "events", work["work_id"])["items"]
                  if event["from_status"] == "running"][-1]
        self.assertIn("the resume_payload has 131074 bytes", failed["message"])

    def test_an_owner_bound_command_waits_and_resumes_itself(self):
        script = ('holdfast work wait --kind external --ref x && '
                  'holdfast work resume --id $HOLDFAST_WORK_ID --owner "$HOLDFAST_OWNER" '
                  '--incarnation "$HOLDFAST_INCARNATION" && exit 0')
        self.cli("run", "--", "sh", "-c", script)
        work = self.unit()
        self.assertEqual((work["status"], work["attempt_count"]), ("done", 2))

    def test_an_owner_bound_command_that_ends_in_its_wait_is_abandoned_with_a_proof(self):
        self.cli("run", "--", "holdfast", "work", "wait", "--kind", "user", "--ref", "x")
        self.assertEqual(self.unit()["status"], "waiting_user")
        self.ok("work", "sweep")
        work = self.unit()
        self.assertEqual((work["status"], work["status_reason"]), ("abandoned", "sweep"))
        self.ok("work", "sweep")
        self.assertEqual(os.listdir(self.db + "-run"), [])

    def test_named_variables_are_stored_and_secrets_never(self):
        self.env.update(NAMED="stored-value", HUSH="a-very-secret-value")
        self.cli("run", "--env", "NAMED", "--env", "GIVEN=here", "--secret", "HUSH",
                 "--disposition", "rerunnable", "--", "sh", "-c",
                 '[ ${#HUSH} = 19 ] && [ "$GIVEN" = here ]')
        payload = self.unit()["payload"]
        self.assertEqual(payload["env"], ["NAMED=stored-value", "GIVEN=here"])
        self.assertEqual(payload["secrets"], ["HUSH"])
        for name in os.listdir(self.folder):
            if name.startswith("work.db") and os.path.isfile(self.path(name)):
                with open(self.path(name), "rb") as file:
                    self.assertFalse(b"a-very-secret-value" in file.read(), name)

    def test_a_worker_runs_a_stored_command_in_its_folder_with_its_variables(self):
        os.mkdir(self.path("there"))
        payload = ('{"argv":["sh","-c","echo $A > made"],"cwd":"%s","env":["A=b c"]}'
                   % self.path("there"))
        self.create("stored", "--kind", "run", "--queue", "run", "--payload", payload,
                    "--disposition", "rerunnable")
        self.cli("run", "--worker", "--until-idle")
        with open(self.path("there/made"), encoding="ascii") as made:
            self.assertEqual(made.read(), "b c\n")

    def test_a_payload_that_is_no_command_fails_for_good(self):
        self.create("bad", "--kind", "run", "--queue", "run", "--payload", '{"argv":"x"}',
                    "--disposition", "rerunnable")
        self.cli("run", "--worker", "--until-idle")
        work = self.unit()
        self.assertEqual((work["status"], work["error_class"]), ("failed", "misconfigured"))

    def test_a_worker_that_can_take_nothing_more_stays_for_what_it_runs(self):
        payload = '{"argv":["sh","-c","echo $$ > begun; read go < never; exit 3"],"cwd":"%s"}'
        options = ("--kind", "run", "--queue", "run", "--disposition", "owner_bound")
        first = self.create("one", *options, "--payload", payload % self.folder)
        worker = self.start("run", "--worker", "--jobs", "2")
        self.begun()
        self.change("CREATE TRIGGER deny BEFORE UPDATE ON work_state WHEN NEW.status = 'running' "
                    "AND OLD.status = 'queued' BEGIN SELECT RAISE(ABORT, 'denied'); END")
        self.create("two", *options, "--payload", payload % self.folder)
        while b" ending: no more units are taken" not in worker.stderr.readline():
            self.assertIsNone(worker.poll())
        with open(self.path("never"), "w", encoding="ascii") as never:
            never.write("go\n")
        self.assertEqual(worker.wait(PATIENCE), 125)
        work = self.ok("work", "show", first["work_id"])["work"]
        self.assertEqual((work["status"], work["error_class"]), ("failed", "exit_3"))

    def test_a_worker_until_idle_does_not_wait_for_what_is_held(self):
        work = self.create("poison", "--kind", "run", "--queue", "run", "--disposition",
                           "rerunnable", "--max-attempts", "50", "--payload",
                           '{"argv":["true"],"cwd":"/"}')
        for i in range(5):
            holder = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
            self.ok("work", "claim", "--id", work["work_id"], "--owner", f"o{i}", "--pid",
                    str(holder.pid))
            holder.communicate()
            if i < 4:
                self.assertEqual(self.ok("work", "sweep")["held"], 0)
        self.assertIn("1 held after repeated crashes", self.cli("work", "sweep").out)
        self.cli("run", "--worker", "--until-idle")
        self.assertEqual((self.unit()["status"], self.unit()["gate"]), ("queued", "held"))

    def test_a_background_process_begun_inside_a_run_outlives_it(self):
        self.cli("run", "--", "sh", "-c", "holdfast process start --disposition owner_bound "
                 "--field work_id -- sh -c 'echo $$ > begun; read go < never; exit 3' > id; "
                 "until grep -q running state; do holdfast process show $(cat id) > state; done")
        child = self.pidfd(self.begun())
        self.assertTrue(self.alive(child))
        with open(self.path("never"), "w", encoding="ascii") as never:
            never.write("go\n")
        with open(self.path("id"), encoding="ascii") as process:
            done = self.cli("--json", "process", "await", process.read().strip(), "--wait",
                            "20s", code=11).json["work"]
        self.gone(child)
        self.assertEqual((done["status"], done["error_class"]), ("failed", "exit_3"))

    def test_a_run_inside_a_run_is_its_child(self):
        self.cli("run", "--", "holdfast", "run", "--", "true")
        outer, inner = self.ok("work", "list", "--all")["items"]
        self.assertEqual(inner["parent_work_id"], outer["work_id"])

    def test_an_empty_variable_names_no_parent(self):
        self.env["HOLDFAST_WORK_ID"] = ""
        self.cli("run", "--", "true")
        self.assertIsNone(self.unit()["parent_work_id"])


class Signals(RunCase):
    def signalled(self, sig, *options, code=None):
        proc = self.start("run", *options, "--", "sh", "-c", SLOW)
        fd = self.pidfd(self.begun())
        proc.send_signal(sig)
        self.gone(fd)
        self.assertEqual(proc.wait(PATIENCE), code if code is not None else 128 + sig)
        return self.unit()

    def test_sigint_cancels(self):
        self.assertEqual(self.signalled(signal.SIGINT)["status"], "cancelled")

    def test_sigterm_abandons_what_is_owner_bound_as_its_own_drain(self):
        work = self.signalled(signal.SIGTERM)
        self.assertEqual((work["status"], work["status_reason"]), ("abandoned", "owner_drain"))

    def test_sigterm_hands_back_what_is_rerunnable(self):
        work = self.signalled(signal.SIGTERM, "--disposition", "rerunnable", "--max-attempts", "2")
        self.assertEqual((work["status"], work["failures"]), ("queued", 0))

    def test_a_command_that_finishes_when_told_to_end_is_done(self):
        proc = self.start("run", "--", *ends_when_told(0))
        self.begun()
        proc.send_signal(signal.SIGTERM)
        self.assertEqual(proc.wait(PATIENCE), 0)
        self.assertEqual(self.unit()["status"], "done")

    def test_a_request_to_cancel_reaches_an_owner_bound_command(self):
        proc = self.start("run", "--", "sh", "-c", SLOW)
        fd = self.pidfd(self.begun())
        self.ok("work", "cancel", self.unit()["work_id"], "--reason", "enough")
        self.gone(fd)
        self.assertEqual(proc.wait(PATIENCE), 143)
        self.assertEqual(self.unit()["status"], "cancelled")

    def test_a_request_to_cancel_leaves_the_time_to_clean_up(self):
        proc = self.start("run", "--kill-after", "60s", "--", sys.executable, "-c", """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
os.write(os.open("begun", os.O_RDWR), b"%d " % os.getpid())
signal.sigwait([signal.SIGTERM])
signal.sigtimedwait([signal.SIGTERM], 1.5)  # three looks at the row
open("cleaned", "w").close()
""")
        self.begun()
        self.ok("work", "cancel", self.unit()["work_id"], "--reason", "enough")
        self.assertEqual(proc.wait(PATIENCE), 0)
        self.assertTrue(os.path.exists(self.path("cleaned")))
        self.assertEqual(self.unit()["status"], "cancelled")

    def interrupted_in_lane(self, sig):
        first = self.start("run", "--lane", "one", "--", "sh", "-c", SLOW)
        self.begun()
        second = self.start("run", "--lane", "one", "--", "true")
        while len(self.ok("work", "list", "--all")["items"]) < 2:
            pass
        second.send_signal(sig)
        self.assertEqual(second.wait(PATIENCE), 125)
        first.send_signal(signal.SIGTERM)
        self.assertEqual(first.wait(PATIENCE), 143)
        return self.ok("work", "list", "--all")["items"][1]["status"]

    def test_sigint_while_a_lane_is_waited_for_cancels(self):
        self.assertEqual(self.interrupted_in_lane(signal.SIGINT), "cancelled")

    def test_sigterm_while_a_lane_is_waited_for_leaves_the_unit_in_the_queue(self):
        self.assertEqual(self.interrupted_in_lane(signal.SIGTERM), "queued")

    def cancelled_in_lane(self):
        """A run that waits for its lane, and whose unit another caller has cancelled."""
        self.start("run", "--lane", "one", "--", "sh", "-c", SLOW)
        self.begun()
        second = self.start("run", "--lane", "one", "--", "true")
        while len(items := self.ok("work", "list", "--all")["items"]) < 2:
            pass
        waiting = [unit for unit in items if unit["status"] == "queued"]
        self.ok("work", "cancel", waiting[0]["work_id"], "--reason", "enough")
        return second

    def test_a_unit_that_another_caller_cancels_in_its_lane_ends_the_wait(self):
        second = self.cancelled_in_lane()
        self.assertEqual(second.wait(PATIENCE), 125)
        self.assertIn(b"cancelled", second.stderr.read())

    def test_sigint_does_not_claim_to_have_cancelled_what_another_caller_did(self):
        second = self.cancelled_in_lane()
        second.send_signal(signal.SIGINT)
        self.assertEqual(second.wait(PATIENCE), 125)
        self.assertNotIn(b"it was cancelled", second.stderr.read())

    def test_sigint_while_a_retry_is_waited_for_cancels(self):
        proc = self.start("run", "--json", "--disposition", "rerunnable", "--max-attempts", "2",
                          "--retry-policy", '{"initial_backoff_ms":200000,"jitter":"none"}', "--",
                          "sh", "-c", "echo $$ > begun; exit 3")
        self.begun()
        self.leaves("running")
        proc.send_signal(signal.SIGINT)
        self.assertEqual(proc.wait(PATIENCE), 3)
        self.assertIn(b'"status":"cancelled"', proc.stdout.read())
        self.assertEqual(self.unit()["status"], "cancelled")

    def at_terminal(self, script, typed):
        """What a command at a terminal of its own shows, and its exit code."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execve(HOLDFAST, [HOLDFAST, "run", "--quiet", "--", "sh", "-c", script], self.env)
        self.addCleanup(os.close, terminal)
        runner = self.pidfd(pid)
        try:
            self.begun()
            os.write(terminal, typed)
            self.gone(runner)
        finally:
            os.kill(pid, signal.SIGKILL)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return os.read(terminal, 4096), code

    def test_a_command_has_the_terminal(self):
        shown, code = self.at_terminal('echo $$ > begun; read x; echo "got $x"', b"this\n")
        self.assertEqual((code, shown), (0, b"this\r\ngot this\r\n"))
        self.assertEqual(self.unit()["status"], "done")

    def test_a_command_at_a_terminal_is_not_stopped_by_it(self):
        shown, code = self.at_terminal('echo $$ > begun; read x; echo "got $x"', b"\x1athis\n")
        self.assertEqual((code, shown[-10:]), (0, b"got this\r\n"))

    def test_nohup_keeps_a_hangup_away(self):
        proc = self.start_as(["nohup", HOLDFAST], "run", "--", "sh", "-c",
                             "echo $$ > begun; read go < never")
        child = self.pidfd(self.begun())
        proc.send_signal(signal.SIGHUP)
        with open(self.path("never"), "w", encoding="ascii") as never:
            never.write("go\n")
        self.gone(child)
        self.assertEqual(proc.wait(PATIENCE), 0)
        self.assertEqual(self.unit()["status"], "done")

    def test_interrupted_at_its_terminal_a_unit_is_cancelled(self):
        _, code = self.at_terminal(SLOW, b"\x03")
        self.assertEqual(code, 130)
        work = self.unit()
        self.assertEqual((work["status"], work["status_reason"]),
                         ("cancelled", "interrupted at its terminal"))

    def test_a_lost_lease_ends_the_command_and_says_nothing_of_the_unit(self):
        proc = self.start("run", "--disposition", "rerunnable", "--", "sh", "-c", SLOW)
        fd = self.pidfd(self.begun())
        self.ok("work", "cancel", self.unit()["work_id"], "--reason", "enough")
        self.gone(fd)
        self.assertEqual(proc.wait(PATIENCE), 125)
        work = self.unit()
        self.assertEqual((work["status"], work["status_reason"]), ("cancelled", "enough"))

    def test_what_a_command_leaves_behind_is_ended_with_it(self):
        self.cli("run", "--", "sh", "-c",
                 "(trap '' TERM; echo $$ > left; exec sleep 1000) & setsid sleep 1000 & "
                 "read begun < left")
        (exited,) = self.events(self.unit()["work_id"], "process_exited")
        self.assertEqual(exited["payload"]["left_behind"], 2)


if __name__ == "__main__":
    harness.need_terminals()
    unittest.main(verbosity=1)
