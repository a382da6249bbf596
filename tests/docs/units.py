#!/usr/bin/env python3
"""systemd-analyze accepts the units of data/ without a message, and the services that they start do their work.

No systemd need run here: their processes are started as it would, with the ledger in a folder of the test.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "agent"))
import servers  # noqa: E402 pylint: disable=wrong-import-position

DATA = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", "data"))
PROGRAM = "/usr/local/bin/holdfast"
HOLDFAST = os.environ["HOLDFAST"]
STATE = "/var/lib/holdfast"
SETTINGS = "/etc/holdfast"
SECONDS = 60


def unit(name):
    with open(os.path.join(DATA, name), encoding="utf-8") as f:
        return f.read()


class Units(unittest.TestCase):
    NAMES = ("holdfast-agents.service", "holdfast-monitor.service", "holdfast-worker.service")

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hf-units-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_systemd_takes_them(self):
        self.assertEqual(tuple(sorted(name for name in os.listdir(DATA) if name.endswith(".service"))), self.NAMES)
        for name in self.NAMES:
            copy = os.path.join(self.folder, name)
            with open(copy, "w", encoding="utf-8") as f:  # neither the program nor its user need be there
                f.write(unit(name).replace(PROGRAM, HOLDFAST).replace("User=holdfast", "User=root"))
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], capture_output=True, text=True,
                                  check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)

    def start(self, name):
        """As systemd would: its command, its environment, its working folder."""
        text = unit(name).replace(STATE, self.folder).replace(SETTINGS, self.folder)
        words = re.search(r"(?m)^ExecStart=(.*)$", text).group(1).split()
        self.assertEqual(words[0], PROGRAM)
        env = dict(re.findall(r"(?m)^Environment=(\w+)=(.*)$", text), PATH="/usr/local/bin:/usr/bin:/bin")
        self.assertEqual(env["HOLDFAST_DB"], self.folder + "/holdfast.db")
        with open(os.path.join(self.folder, name + ".log"), "wb") as log:
            process = subprocess.Popen([HOLDFAST, *words[1:]], env=env, cwd=self.folder, stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def cli(self, *words):
        return subprocess.run([HOLDFAST, "--db", self.folder + "/holdfast.db", *words], cwd=self.folder, text=True,
                              check=True, capture_output=True).stdout

    def log(self, name):
        with open(os.path.join(self.folder, name + ".log"), encoding="utf-8") as f:
            return f.read()

    def until(self, names, what):
        end = time.monotonic() + SECONDS
        while not what():
            self.assertLess(time.monotonic(), end, [self.log(name) for name in names])

    def stop(self, names, services):
        for name, service in zip(names, services):
            service.terminate()
            self.assertEqual(service.wait(timeout=SECONDS), 0, self.log(name))

    def test_together_they_run_what_is_scheduled(self):
        names = ("holdfast-monitor.service", "holdfast-worker.service")
        services = [self.start(name) for name in names]
        self.until(names, lambda: os.path.exists(self.folder + "/holdfast.db"))
        self.cli("schedule", "add", "tick", "--every", "1s", "--", "echo", "hello")
        self.until(names, lambda: "tick" in self.cli("work", "list", "--status", "done"))
        self.assertIn("hello", self.cli("work", "output", "tick"))
        self.stop(names, services)

    def test_the_agents_answer_what_is_sent(self):
        server = servers.Server(self.folder + "/journal")
        self.addCleanup(server.stop)
        self.cli("config", "init", "--config", self.folder + "/holdfast.toml", "--model", "talk", "--base-url",
                 f"http://127.0.0.1:{server.port}/v1")
        self.cli("session", "create", "s", "--agent", "helper")
        names = ("holdfast-agents.service",)
        services = [self.start(name) for name in names]
        self.cli("session", "send", "s", "hello")
        self.until(names, lambda: "You said: hello" in self.cli("session", "log", "s"))
        self.stop(names, services)


if __name__ == "__main__":
    unittest.main(verbosity=1, argv=sys.argv)
