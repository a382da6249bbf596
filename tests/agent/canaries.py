#!/usr/bin/env python3
"""Ten canaries: what must not get into an error text, a recording or the list of processes.

A server sends back everything that it received. Four keys (one per source), three headers of its
response, the text of the request, the text of its error, and a password in an address.
"""

import glob
import json
import os
import subprocess
import tempfile
import unittest

from servers import KINDS, Server, configure

HOLDFAST = os.environ["HOLDFAST"]
SOURCES = ("env", "file", "command", "credential")
KEYS = {source: f"sk-CANARY-{source}" for source in SOURCES}
HEADERS = ("CANARY-cookie", "CANARY-custom", "CANARY-challenge")
REQUEST = "Say OK, then call the tool"
ANSWER = "CANARY-answer"
PASSWORD = "CANARY-password"


class Canaries(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = place.name
        self.server = Server(self.path("journal"))
        self.addCleanup(self.server.stop)
        for source in SOURCES[1:]:
            with open(os.open(self.path(source), os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as f:
                f.write(KEYS[source] + "\n")
        self.env = {**os.environ, "KEY": KEYS["env"], "CREDENTIALS_DIRECTORY": self.folder}

    def path(self, name):
        return os.path.join(self.folder, name)

    def configure(self, source, kind, path, model):
        where = {"env": "KEY", "file": self.path("file"), "command": "cat " + self.path("command"),
                 "credential": "credential"}[source]
        return configure(self.path("config.toml"), kind, f"http://127.0.0.1:{self.server.port}{path}", [model],
                         **{"key_" + source: where})

    def check(self, config, *more):
        return subprocess.run([HOLDFAST, "provider", "check", "p", "--config", config, *more], capture_output=True,
                              text=True, env=self.env, check=False, timeout=60)

    def each_way(self):
        for source in SOURCES:
            for kind, path in KINDS:
                yield source, kind, path

    def test_none_is_in_an_error(self):
        for source, kind, path in self.each_way():
            for more in ((), ("--json",)):
                done = self.check(self.configure(source, kind, path, "echo"), *more)
                said = done.stdout + done.stderr
                self.assertEqual(done.returncode, 2, said)
                self.assertIn("auth_refused", said)
                for canary in (KEYS[source], *HEADERS, REQUEST, ANSWER, "CANARY"):
                    self.assertNotIn(canary, said)
            sent = self.server.requests()[-1]  # it was there to be told
            self.assertIn(KEYS[source], json.dumps(sent["headers"]))
            self.assertIn(REQUEST, json.dumps(sent["body"]))

    def test_no_key_and_no_header_is_in_a_recording(self):
        record = self.path("record")
        for source, kind, path in self.each_way():
            for model in ("echo", "leak"):
                self.check(self.configure(source, kind, path, model), "--record", record)
                with open(record, encoding="utf-8") as f:
                    text = f.read()
                for canary in (KEYS[source], *HEADERS):
                    self.assertNotIn(canary, text)
                self.assertIn("[secret:p]", text)  # where the server had sent it back
                for line in map(json.loads, text.splitlines()):
                    self.assertLessEqual(set(line.get("headers", {})),
                                         {"content-type", "retry-after", "x-request-id", "request-id"})

    def test_a_recording_of_an_answer_has_nothing_of_the_request(self):
        record = self.path("record")
        self.check(self.configure("env", *KINDS[0], "text"), "--record", record)
        with open(record, encoding="utf-8") as f:
            text = f.read()
        self.assertIn("Hello", text)
        self.assertNotIn(REQUEST, text)

    def test_none_is_in_the_list_of_processes_while_a_call_runs(self):
        for source, kind, path in self.each_way():
            before = len(self.server.requests())
            config = self.configure(source, kind, path, "hang")
            child = subprocess.Popen([HOLDFAST, "provider", "check", "p", "--config", config], env=self.env,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                while len(self.server.requests()) == before:
                    self.assertIsNone(child.poll())
                lines = b""
                for name in glob.glob("/proc/[0-9]*/cmdline"):
                    try:
                        with open(name, "rb") as f:
                            lines += f.read() + b"\n"
                    except OSError:  # it has ended
                        continue
                self.assertIn(config.encode(), lines)
                for canary in (KEYS[source], REQUEST):
                    self.assertNotIn(canary.encode(), lines)
            finally:
                child.kill()
                child.wait()

    def test_a_password_in_an_address_is_refused_and_not_shown(self):
        config = configure(self.path("config.toml"), KINDS[0][0], f"http://me:{PASSWORD}@127.0.0.1/v1", ["text"])
        for words in (("config", "check"), ("provider", "list"), ("provider", "check", "p")):
            done = subprocess.run([HOLDFAST, *words, "--config", config], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("no user or password", done.stderr)
            self.assertNotIn(PASSWORD, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
