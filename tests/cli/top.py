#!/usr/bin/env python3
"""holdfast top: once, as JSON, and live on a pseudo-terminal that changes its size."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios

from harness import HOLDFAST, Case, main, need_terminals


class Top(Case):
    def fill(self):
        self.ok("job", "enqueue", "mail", "--priority", "1")
        self.ok("job", "enqueue", "index")
        self.ok("work", "claim", "--owner", "a-worker", "--ttl", "1h")
        self.ok("work", "create", "--source", "manual", "--source-id", "w")
        held = self.ok("work", "claim", "--owner", "b", "--ttl", "1h")["items"][0]
        held = held if held["kind"] == "work" else \
            self.ok("work", "claim", "--owner", "b", "--ttl", "1h")["items"][0]
        self.ok("work", "wait", held["work_id"], "--token", held["lease_token"], "--kind", "user", "--ref",
                "ask-1")

    def test_once_is_plain_text(self):
        self.fill()
        out = self.cli("top", "--once").out
        self.assertIn("RUNNING", out)
        self.assertIn("a-worker", out)
        self.assertIn("ask-1", out)
        self.assertNotIn("\x1b", out)

    def test_without_a_terminal_it_is_printed_once(self):
        self.fill()
        self.assertIn("RUNNING", self.cli("top").out)

    def test_json_has_the_rows(self):
        self.fill()
        top = self.ok("top")
        self.assertEqual(top["by_status"]["waiting_user"], 1)
        self.assertIn("a-worker", [row["owner"] for row in top["running"]])
        self.assertEqual(top["waiting"][0]["waiting_ref"], "ask-1")
        self.assertEqual((top["silent"], top["held"], top["schedules"]), ([], [], []))
        self.assertEqual(set(top["more"].values()), {False})
        self.assertNotIn("more", self.cli("top").out)

    def test_beyond_a_page_it_says_how_many_there_are(self):
        lines = [f'{{"source_system":"manual","source_id":"u{i}"}}' for i in range(203)]
        self.file("many.jsonl", "\n".join(lines))
        self.ok("work", "reconcile", "--from", "many.jsonl")
        self.ok("work", "claim", "--owner", "w", "--limit", "203", "--ttl", "1h")
        top = self.ok("top")
        self.assertEqual((len(top["running"]), top["by_status"]["running"]), (200, 203))
        self.assertEqual(top["more"], {"running": True, "silent": False, "waiting": False,
                                       "held": False, "schedules": False})
        self.assertIn("... and 3 more", self.cli("top").out)

    def start(self, rows, columns):
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        self.resize(master, rows, columns)
        before = termios.tcgetattr(slave)
        top = subprocess.Popen([HOLDFAST, "top", "--interval", "100ms"], stdin=slave,
                               stdout=slave, stderr=slave, cwd=self.folder,
                               env={**self.env, "TERM": "xterm"})
        self.addCleanup(top.wait)
        self.addCleanup(top.kill)
        self.addCleanup(os.close, slave)
        return top, master, slave, before

    def resize(self, master, rows, columns):
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_until(self, master, pattern, seen=b""):
        while not re.search(pattern, seen):
            ready, _, _ = select.select([master], [], [], 30)
            self.assertTrue(ready, seen)
            seen += os.read(master, 65536)
        return seen

    def test_live_it_draws_follows_the_ledger_and_the_size_and_leaves_by_q(self):
        self.fill()
        top, master, slave, before = self.start(40, 120)
        seen = self.read_until(master, rb"a-worker")
        self.assertIn(b"\x1b[?1049h", seen)
        self.ok("job", "enqueue", "late", "--queue", "z")
        self.ok("work", "claim", "--owner", "late-worker", "--queue", "z", "--ttl", "1h")
        self.read_until(master, rb"late-worker")
        self.resize(master, 10, 40)
        top.send_signal(signal.SIGWINCH)
        # the first whole frame that fits; those before it may still be on their way
        lines = ["x" * 99]
        while max(map(len, lines)) > 40 or len(lines) > 10:
            seen = self.read_until(master, rb"\x1b\[H[^\x00]*?\x1b\[J")
            frame = re.search(rb"\x1b\[H([^\x00]*?)\x1b\[J", seen).group(1).decode()
            lines = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", frame).split("\r\n")
        os.write(master, b"q")
        seen = self.read_until(master, rb"\x1b\[\?1049l")
        self.assertEqual(top.wait(timeout=30), 0)
        self.assertEqual(termios.tcgetattr(slave), before)

    def test_a_signal_puts_the_terminal_back(self):
        self.fill()
        top, master, slave, before = self.start(24, 80)
        self.read_until(master, rb"RUNNING")
        top.send_signal(signal.SIGTERM)
        self.read_until(master, rb"\x1b\[\?25h\x1b\[\?1049l")
        self.assertEqual(top.wait(timeout=30), 0)
        self.assertEqual(termios.tcgetattr(slave), before)


if __name__ == "__main__":
    need_terminals()
    main()
