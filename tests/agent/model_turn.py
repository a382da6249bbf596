#!/usr/bin/env python3
"""examples/model_turn.c: whole turns over the model server, and over what goes wrong with it."""

import os
import re
import signal
import subprocess
import tempfile
import unittest

from servers import KINDS, Server, configure

TURN = os.environ["MODEL_TURN"]

ROUNDS = """model call, attempt 1
tool add({"n": 1})
model call, attempt 1
tool add({"n": 2})
model call, attempt 1
tool add({"n": 3})
model call, attempt 1
text It is \ntext 6.
assistant_message: It is 6.
"""


class ModelTurn(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = place.name
        self.server = Server(self.path("journal"))
        self.addCleanup(lambda: self.server.stop())

    def path(self, name):
        return os.path.join(self.folder, name)

    def configure(self, model, kind="openai-chat", path="/v1", **more):
        return configure(self.path("config.toml"), kind, f"http://127.0.0.1:{self.server.port}{path}", [model], **more)

    def turn(self, config, model, *more):
        done = subprocess.run([TURN, config, model, "add them", *more], capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def effects(self, printed):
        """Without the records, and with a sleep's length only as far as it is promised."""
        lines = [line for line in printed.splitlines() if not line.startswith("{")]
        for i, line in enumerate(lines):
            if slept := re.fullmatch(r"sleep (\d+) ms", line):
                self.assertTrue(1000 <= int(slept.group(1)) <= 4000, line)
                lines[i] = "sleep"
        return lines

    def test_three_tool_rounds_leave_the_same_records_over_http_and_by_script(self):
        for kind, path in KINDS:
            config, record = self.configure("tools", kind, path), self.path("record")
            live = self.turn(config, "tools", "--record", record)
            self.assertEqual(live[:len(ROUNDS)], ROUNDS)
            self.assertEqual(live.count('{"kind":"message"'), 7)
            self.assertEqual(self.turn(config, "tools", "--script", record), live)
        self.assertEqual(len(self.server.requests()), 8)

    def test_a_rate_limit_is_slept_over(self):
        printed = self.turn(self.configure("once-429"), "once-429")
        self.assertEqual(self.effects(printed), ["model call, attempt 1", "failed: rate_limited", "sleep",
                                                 "model call, attempt 2", "text Hello", "text  world",
                                                 "assistant_message: Hello world"])

    def test_a_server_that_is_too_slow_is_asked_again(self):
        printed = self.turn(self.configure("once-hang", start_timeout="1500ms"), "once-hang")
        self.assertEqual(self.effects(printed), ["model call, attempt 1", "failed: start_timeout", "sleep",
                                                 "model call, attempt 2", "text Hello", "text  world",
                                                 "assistant_message: Hello world"])

    def begin(self, config, model):
        child = subprocess.Popen([TURN, config, model, "add them"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def read_until(self, child, start):
        lines = []
        while not lines or not lines[-1].startswith(start):
            lines.append(child.stdout.readline())
            self.assertTrue(lines[-1], lines)
        return "".join(lines)

    def test_a_server_that_is_killed_before_it_answers_is_asked_again_once_it_is_back(self):
        child = self.begin(self.configure("once-hang"), "once-hang")
        printed = self.read_until(child, "model call")
        while not self.server.requests():
            self.assertIsNone(child.poll())
        self.server.kill()
        printed += self.read_until(child, "sleep")
        child.send_signal(signal.SIGSTOP)  # however long the server takes to start
        self.server = Server(self.server.journal, port=self.server.port)
        child.send_signal(signal.SIGCONT)
        printed += child.stdout.read()
        self.assertEqual(self.effects(printed), ["model call, attempt 1", "failed: connection_lost", "sleep",
                                                 "model call, attempt 2", "text Hello", "text  world",
                                                 "assistant_message: Hello world"])
        self.assertEqual(len(self.server.requests()), 2)

    def test_what_a_server_had_begun_to_say_when_it_was_killed_is_not_bought_twice(self):
        child = self.begin(self.configure("stall"), "stall")
        printed = self.read_until(child, "text")
        self.server.kill()
        self.server = Server(self.server.journal, port=self.server.port)
        printed += child.stdout.read()
        self.assertEqual(self.effects(printed), ["model call, attempt 1", "text Hello", "failed: connection_lost",
                                                 "provider_error: the connection was lost"])
        self.assertEqual(len(self.server.requests()), 1)


if __name__ == "__main__":
    unittest.main()
