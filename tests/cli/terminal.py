#!/usr/bin/env python3
"""Tables on a real terminal: what tmux shows at 80 x 24 and at 120 x 40, and in a pipe."""

import os
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
