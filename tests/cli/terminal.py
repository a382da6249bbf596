#!/usr/bin/env python3
"""Tables on a real terminal: what tmux shows at 80 x 24 and at 120 x 40, and in a pipe."""

import os
import sqlite3
import subprocess
import time

from harness import HOLDFAST, Case, main, need_terminals

SIZES = ((80, 24), (120, 40))
LONG = "import --from s3://bucket/of/a/customer/with/a/long/name --to warehouse --verbose"


class Terminal(Case):
    def tmux(self, *args):
        done = subprocess.run(["tmux", "-S", self.socket, "-f", "/dev/null", *args],
                              env=self.env, capture_output=True, text=True, check=False,
                              timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def screen(self, columns, rows, command, ready):
        """What a terminal of that size shows once `ready` is on it."""
        self.socket = self.path(f"tmux-{columns}-{command.split()[0]}")
        self.env["TERM"] = "xterm"
        self.env["LC_ALL"] = "C.UTF-8"
        self.tmux("new-session", "-d", "-s", "t", "-x", str(columns), "-y", str(rows),
                  f"{HOLDFAST} {command}; tmux -S {self.socket} wait-for done")
        end = time.monotonic() + 30
        while True:
            shown = self.tmux("capture-pane", "-p", "-t", "t")
            if ready in shown or time.monotonic() > end:
                break
        self.tmux("kill-server")
        self.assertIn(ready, shown)
        if os.environ.get("SHOW_SCREENS"):
            print(f"--- {columns} x {rows}: {command}\n{shown}")
        lines = shown.rstrip("\n").split("\n")
        self.assertLessEqual(len(lines), rows)
        self.assertLessEqual(max(map(len, lines)), columns)
        return lines

    def fill(self):
        """One unit of each sort that people look at."""
        self.cli("run", "--", "sh", "-c", f"exit 3 # {LONG}", code=3)
        self.cli("run", "--name", "nightly", "--disposition", "rerunnable", "--max-attempts", "2",
                 "--retry-policy", '{"initial_backoff_ms":10}', "--", "sh", "-c", "exit 4", code=4)
        self.create("msg-17", "--queue", "a-queue-with-a-long-name")
        self.create("job-1", "--kind", "a-kind-with-a-long-name")
        self.ok("work", "claim", "--owner", "a-worker-with-a-long-name:host:4711", "--ttl", "1h",
                "--kind", "a-kind-with-a-long-name")
        self.create("ask-1", "--kind", "approval")
        unit = self.claim("--kind", "approval")
        self.ok("work", "wait", unit["work_id"], "--token", unit["lease_token"], "--kind", "user",
                "--ref", "a-reference", "--timeout", "1h")
        self.ok("process", "start", "--disposition", "rerunnable", "--name", "indexer", "--queue",
                "other")

    def test_work_list_fits_and_shows_what_matters(self):
        self.fill()
        for columns, rows in SIZES:
            with self.subTest(columns=columns):
                lines = self.screen(columns, rows, "work list --all", "indexer")
                text = "\n".join(lines)
                for word in ("ID", "STATUS", "WHAT", "AGE", "REASON", "exit code 3",
                             "exit_4, 2 att", "nightly", "msg-17", "lease 59m",
                             "ends in 59m"):
                    self.assertIn(word, text)
                long = next(line for line in lines if "exit 3" in line)
                self.assertIn("…", long)
        self.assertIn("a-worker-with", text)  # 120 columns have room for the owner

    def test_process_list_fits(self):
        self.fill()
        for columns, rows in SIZES:
            with self.subTest(columns=columns):
                text = "\n".join(self.screen(columns, rows, "process list --all", "indexer"))
                for word in ("ID", "STATUS", "WHAT", "STARTED", "nightly", "indexer",
                             "owner_bound"):
                    self.assertIn(word, text)

    def test_events_fit(self):
        self.fill()
        failed = next(u for u in self.ok("work", "list", "--all")["items"] if u["attempt_count"] == 2)
        for columns, rows in SIZES:
            with self.subTest(columns=columns):
                text = "\n".join(self.screen(columns, rows, f"work events {failed['work_id']}",
                                             "running -> failed"))
                for word in ("WHEN", "TYPE", "CHANGE", "process_exited", "queued -> running"):
                    self.assertIn(word, text)

    def test_top_fits_and_names_its_keys(self):
        self.fill()
        self.ok("schedule", "add", "hourly", "--cron", "0 * * * *", "--kind", "report")
        for columns, rows in SIZES:
            with self.subTest(columns=columns):
                lines = self.screen(columns, rows, "top", "hourly")
                text = "\n".join(lines)
                for word in ("q quits", "running 1", "queued 2", "waiting 1",
                             "oldest queued: ", "msg-17", "job-1", "ask-1", "a person", "59m",
                             "NEXT SCHEDULE"):
                    self.assertIn(word, text)
                self.under(lines, "LEASE", "59m")

    def under(self, lines, title, value):
        """A value that is aligned to the right ends where its title ends."""
        head = next(i for i, line in enumerate(lines) if title in line)
        end = lines[head].index(title) + len(title)
        self.assertIn(value, lines[head + 1][:end])
        self.assertEqual(lines[head + 1][end:].strip(), "")

    def a_busy_store(self):
        """One unit of each state that asks for a look, a schedule and an input of a session."""
        silent = self.create("nightly-report", "--kind", "report", "--queue", "reports")["work_id"]
        self.claim("--queue", "reports", "--ttl", "750ms")
        waits = self.claim("--id", self.create("deploy", "--disposition", "owner_bound", "--kind", "deploy")["work_id"])
        self.ok("work", "wait", waits["work_id"], "--token", waits["lease_token"], "--kind", "external",
                "--ref", "ci:build-4711", "--timeout", "2h")
        retries = self.claim("--id", self.create("sync-crm", "--kind", "sync", "--max-attempts", "5", "--retry-policy",
                                                 '{"initial_backoff_ms":3600000,"jitter":"none"}')["work_id"])
        self.ok("work", "fail", retries["work_id"], "--token", retries["lease_token"], "--class", "network_timeout")
        later = self.create("later", "--delay", "3h", "--kind", "mail")["work_id"]
        failed = self.claim("--id", self.create("dead", "--kind", "mail")["work_id"])
        self.ok("work", "close-out", "--id", failed["work_id"], "--token", failed["lease_token"], "--status", "failed",
                "--reason", "no such mailbox")
        self.ok("process", "start", "--disposition", "rerunnable", "--name", "indexer", "--no-run", "--", "sleep", "9")
        runs = self.claim("--queue", "run", "--ttl", "1h", "--pid", str(os.getpid()))
        self.ok("session", "create", "support-17", "--agent", "helper")
        self.ok("session", "send", "support-17", "hello")
        self.ok("schedule", "add", "backup", "--cron", "0 3 * * *", "--", "sleep", "1")
        end = time.monotonic() + 30
        while not self.ok("work", "list", "--silent")["items"]:
            self.assertLess(time.monotonic(), end)
        said = next(unit for unit in self.ok("work", "list")["items"] if unit["session_id"] == "support-17")
        return [unit[-8:] for unit in (silent, waits["work_id"], retries["work_id"], later, failed["work_id"],
                                       runs["work_id"], said["work_id"])]

    def rows_by_id(self, lines):
        return {line[:8]: line for line in lines}

    def test_what_matters_of_a_busy_store_is_whole(self):
        silent, waits, retries, later, failed, runs, said = self.a_busy_store()
        age, left = r"\s+\d+m?s", r"\d+m( \d+s)?"
        for columns, rows in SIZES:
            with self.subTest(columns=columns):
                lines = self.screen(columns, rows, "work list --all", "support-")
                self.assertEqual(len(lines), 8)  # no row takes a second line
                shown = self.rows_by_id(lines)
                for unit, row in (
                        (silent, rf"running\s+nightly-rep\S+.*{age}\s+silent for \d+m?s\s"),
                        (waits, rf"waiting_external\s+deploy\s.*{age}\s+ends in 1h 59m\s"),
                        (retries, rf"retry_scheduled\s+sync-crm\s.*{age}\s+retry in {left}\s+network_\S+"),
                        (later, rf"queued\s+later\s.*{age}\s+gate: due\s"),
                        (failed, rf"failed\s+dead\s.*{age}\s+-\s+no such m"),
                        (runs, rf"running\s+indexer\s.*{age}\s+lease {left}\s"),
                        (said, rf"queued\s+support-17\s.*{age}\s+gate: lane\s")):
                    self.assertRegex(shown[unit], rf"^{unit}\s+{row}")
                lines = self.screen(columns, rows, "process list", "indexer")
                self.assertRegex(lines[0], r"^ID\s+STATUS\s+WHAT\s+KIND\s+STARTED\s+OWNER\s+LEASE\s+DISPOSITION")
                self.assertEqual(len(lines), 2)
                self.assertRegex(lines[1], rf"^{runs}\s+running\s+indexer\s+run{age}\s+w1\s+{left}\s+rerunnable")
                lines = self.screen(columns, rows, "top", "backup")
                shown = self.rows_by_id(lines)
                self.assertIn("running 2   queued 2 (2 cannot start now)   waiting 1   retry 1", lines)
                self.assertIn("silent 1   about to lapse 0   held 0", lines)
                self.assertIn("ended badly in the last hour: 1   (holdfast attention)", lines)
                self.assertRegex(shown[silent], rf"\snightly-report\s+report\s+reports\s+w1{age}\s+silent for \d+m?s$")
                self.assertRegex(shown[runs], rf"\sindexer\s+run\s+run\s+w1{age}\s+{left}$")
                self.assertRegex(shown[waits], rf"\sdeploy\s+deploy\s+elsewhere\s+ci:build-4711{age}\s+1h 59m$")
                self.assertRegex("\n".join(lines), r"\nHOLDER +PID  RUNNING  SILENT +LEASE\nw1 +- +1 +1 +lapsed\n"
                                                   rf"(w1 +{os.getpid()} +1 +- +{left}|\.\.\. and 1 more)\n")
                self.assertRegex(lines[-1], r"^backup\s+sleep 1\s+in \d+h( \d+m)?$")

    def test_the_next_moment_is_whole_beside_long_words_and_ages(self):
        waits = self.a_busy_store()[1]
        with sqlite3.connect(self.db) as store:  # as the rows are after an hour
            store.execute("DROP TRIGGER work_spec_frozen")
            store.execute("UPDATE work_spec SET created_at = created_at - 3320000")
        lines = self.screen(80, 24, "work list --all", "support-")
        self.assertEqual(len(lines), 8)
        self.assertRegex(lines[0], r"^ID +STATUS +WHAT +AGE +NEXT +REASON$")
        self.assertRegex(self.rows_by_id(lines)[waits], r"waiting_external  deploy +55m \d+s  ends in 1h 59m +-$")

    def test_a_full_screen_shows_some_of_every_section(self):
        lines = [f'{{"source_system":"manual","source_id":"u{i}"}}' for i in range(60)]
        self.file("many.jsonl", "\n".join(lines))
        self.ok("work", "reconcile", "--from", "many.jsonl")
        self.ok("work", "claim", "--owner", "w", "--limit", "50", "--ttl", "1h")
        self.ok("schedule", "add", "hourly", "--cron", "0 * * * *", "--kind", "report")
        text = "\n".join(self.screen(80, 24, "top", "hourly"))
        self.assertRegex(text, r"\.\.\. and \d+ more")
        self.assertIn("running 50   queued 10", text)

    def test_a_pipe_gets_all_columns_whole(self):
        self.fill()
        text = self.cli("work", "list", "--all").out
        for word in ("PRI", "SOURCE", "a-queue-with-a-long-name", LONG,
                     "a-worker-with-a-long-name:host:4711"):
            self.assertIn(word, text)

    def test_wide_asks_for_all_columns_on_a_terminal_too(self):
        self.fill()
        self.env["COLUMNS"] = "80"
        self.assertNotIn("PRI", self.cli("work", "list", "--all").out)
        self.assertIn("PRI", self.cli("work", "list", "--all", "--wide").out)

    def test_characters_that_are_two_columns_wide_are_counted_so(self):
        self.env["COLUMNS"] = "60"
        self.create("報告書を作成する長い名前の仕事です報告書を作成する長い名前の仕事です")
        self.create("plain")
        head, wide, plain = self.cli("work", "list").out.rstrip("\n").split("\n")
        at = head.index("KIND")
        self.assertEqual(plain[at:at + 4], "work")
        before = wide[:wide.index("work")]
        self.assertEqual(sum(2 if ord(c) > 0x2e80 else 1 for c in before), at)

    def test_a_unit_has_one_kind_and_one_short_id_in_every_list(self):
        self.cli("run", "--name", "agent", "--", "true")
        unit = self.ok("work", "list", "--all")["items"][0]
        for command in (("work", "list"), ("process", "list")):
            row = self.cli(*command, "--all").out.split("\n")[1].split()
            self.assertEqual(row[:4], [unit["work_id"][-8:], "done", "agent", "run"])

    def test_the_log_of_a_worker_names_its_units(self):
        self.ok("process", "start", "--disposition", "rerunnable", "--no-run", "--", "echo", "two words")
        log = self.cli("run", "--worker", "--until-idle").err
        self.assertRegex(log, r"running: [0-9a-f]{8} echo 'two words'\n")
        self.assertRegex(log, r"done: [0-9a-f]{8} echo 'two words', exit code 0\n")


if __name__ == "__main__":
    need_terminals()
    main()
