#!/usr/bin/env python3
"""Approvals that a configuration asks for: the question in the store, the answer from a shell, and what the
model is shown. The judges are outside: the tool's own log, files, and the model server's journal."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "agent"))
import agents  # noqa: E402 pylint: disable=wrong-import-position
import servers  # noqa: E402 pylint: disable=wrong-import-position
from harness import Case, main  # noqa: E402 pylint: disable=wrong-import-position

CONFIG = """
[provider.test]
kind = "openai-chat"
base_url = "http://127.0.0.1:{port}/v1"

[model.talk]
provider = "test"
context_tokens = 100_000
output_tokens = 1_000

[agent.payer]
model = "talk"
tools = ["pay", "write_file", "read_file"]
root = "."

[tool.pay]
description = "Pays."
command = ["sh", "-c", "cat >>paid && echo >>paid && echo paid"]
schema = '{{"type":"object","properties":{{"amount":{{"type":"integer"}}}},"required":["amount"]}}'
recovery = "keyed"
folder = "."
pass_env = ["PATH"]
approve = '{{"/amount":{{"minimum":100}}}}'
approve_question = "May this be paid?"
approve_by = "anna"

[tool.write_file]
approve = "always"
"""


class Configured(Case):
    def setUp(self):
        super().setUp()
        self.server = servers.Server(self.path("journal"))
        self.addCleanup(self.server.stop)
        self.file("h.toml", CONFIG.format(port=self.server.port))
        self.ok("session", "create", "s", "--agent", "payer")

    def turn(self, text):
        """Sends a message to a worker, and waits until the turn has ended or waits for a person."""
        self.ok("session", "send", "s", text)
        self.work()

    def work(self):
        worker = agents.Worker(self, "--config", self.path("h.toml"))
        worker.heard("away", "turn_ended")
        worker.end()

    def told(self):
        """What the model was shown last of a tool."""
        return [m["content"] for m in self.server.requests()[-1]["body"]["messages"] if m["role"] == "tool"][-1]

    def paid(self):
        if not os.path.exists(self.path("paid")):
            return []
        with open(self.path("paid"), encoding="utf-8") as f:
            return f.read().split()

    def test_a_rule_asks_for_the_calls_that_fit_and_no_others(self):
        self.turn('use pay {"amount":99}')
        self.assertEqual(self.paid(), ['{"amount":99}'])
        self.assertRegex(self.cli("session", "log", "s").out, r"assistant +calls pay\n")
        self.turn('use pay {"amount":100}')
        self.assertEqual(self.paid(), ['{"amount":99}'])
        wait, = self.ok("wait", "list")["items"]
        asked = json.loads(wait["asked"]) if isinstance(wait["asked"], str) else wait["asked"]
        self.assertEqual((asked["question"], asked["call"]), ("May this be paid?",
                                                             {"name": "pay", "arguments": {"amount": 100}}))
        self.assertIn("anna may answer this wait", self.refused(4, "not_the_answerer", "approve", wait["wait_id"]))
        self.assertIn("amount", self.refused(2, "invalid_argument", "approve", wait["wait_id"], "--actor",
                                             "human:anna", "--arguments", '{"amount":"all"}'))
        self.ok("approve", wait["wait_id"], "--actor", "human:anna", "--arguments", '{"amount":7}')
        self.work()
        self.assertEqual(self.paid(), ['{"amount":99}', '{"amount":7}'])
        self.assertIn('"approved_by":"anna"', self.told())

    def test_a_reply_and_a_resume_are_told_how_a_wait_of_a_turn_is_answered(self):
        self.turn('use pay {"amount":100}')
        wait, = self.ok("wait", "list")["items"]
        told = self.refused(2, "invalid_argument", "work", "create", "--source", "conversation", "--source-id",
                            "m1", "--reply-to", wait["wait_id"], "--payload", '"yes"')
        self.assertIn("holdfast wait resolve", told)
        self.assertIn("--reply-to", told)
        told = self.refused(2, "invalid_argument", "work", "resume", "--ref", wait["wait_id"])
        self.assertIn("holdfast approve", told)
        for part in (wait["wait_id"][:20], wait["wait_id"][-8:]):
            self.assertIn("--reply-to", self.refused(
                2, "invalid_argument", "work", "create", "--source", "conversation", "--source-id", "m1",
                "--reply-to", part, "--payload", '"yes"'))
            self.assertIn("holdfast approve", self.refused(2, "invalid_argument", "work", "resume", "--ref", part))
        self.file("export.jsonl", json.dumps({"source_system": "conversation", "source_id": "m1",
                                              "reply_ref": wait["wait_id"], "payload": "yes"}) + "\n")
        report = self.cli("work", "reconcile", "--from", "export.jsonl", "--json", code=2).json["from"]
        self.assertEqual((report["refused"], report["created"]), (1, 0))
        self.assertEqual(report["problems"][0]["field"], "reply_ref")
        self.assertEqual(len(self.ok("work", "list")["items"]), 1)
        self.assertEqual([one["wait_id"] for one in self.ok("wait", "list")["items"]], [wait["wait_id"]])

    def test_a_builtin_tool_asks_too_and_a_denial_runs_nothing(self):
        self.turn('use write_file {"path":"new.txt","content":"x"}')
        wait, = self.ok("wait", "list")["items"]
        self.assertRegex(self.cli("session", "list").out, r"s +- +payer +waiting +0")
        self.ok("deny", wait["wait_id"], "--reason", "not there")
        self.assertRegex(self.cli("session", "list").out, r"s +- +payer +ready +0")
        self.work()
        self.assertRegex(self.cli("session", "list").out, r"s +- +payer +idle +1")
        self.assertFalse(os.path.exists(self.path("new.txt")))
        self.assertIn("denied the call: not there", self.told())
        self.turn('use read_file {"path":"h.toml"}')
        self.assertEqual(self.ok("wait", "list")["items"], [])
        self.assertIn("approve_question", self.told())


if __name__ == "__main__":
    main()
