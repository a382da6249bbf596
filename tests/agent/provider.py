#!/usr/bin/env python3
"""`holdfast provider` and `holdfast config` against the model server."""

import json
import os
import subprocess
import tempfile
import unittest

from servers import Server

HOLDFAST = os.environ["HOLDFAST"]
KEY = "sk-CANARY"

CONFIG = """
[provider.chat]
kind = "openai-chat"
base_url = "http://127.0.0.1:{port}/v1"
key_env = "CHAT_KEY"

[provider.messages]
kind = "anthropic-messages"
base_url = "http://127.0.0.1:{port}"
key_file = "{folder}/key"

[provider.idle]
kind = "openai-chat"
base_url = "http://127.0.0.1:1"

[model.text]
provider = "chat"
context_tokens = 1000
output_tokens = 100

[model.tools]
provider = "messages"
context_tokens = 1000
output_tokens = 100
temperature = 0.5

[model.nothing]
provider = "idle"
context_tokens = 1000
output_tokens = 100
"""


def models(names):
    return "".join(f'[model."{name}"]\nprovider = "chat"\ncontext_tokens = 1000\noutput_tokens = 100\n'
                   for name in names)


class Provider(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.folder = cls.place.name
        cls.server = Server(os.path.join(cls.folder, "journal"))
        os.mkdir(os.path.join(cls.folder, "holdfast"))
        cls.path = os.path.join(cls.folder, "holdfast", "holdfast.toml")
        with open(cls.path, "w", encoding="utf-8") as f:
            f.write(CONFIG.format(port=cls.server.port, folder=cls.folder)
                    + models(["whole", "echo", "500", "cut", "once-429", "unknown"]))
        key = os.path.join(cls.folder, "key")
        with open(os.open(key, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as f:
            f.write(KEY + "\n")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.place.cleanup()

    def run_it(self, *words, config=None, **env):
        env = {**os.environ, "CHAT_KEY": KEY, "XDG_CONFIG_HOME": self.folder, **env}
        where = ["--config", config] if config else []
        done = subprocess.run([HOLDFAST, *words, *where], capture_output=True, text=True, check=False, timeout=60,
                              env={k: v for k, v in env.items() if v is not None})
        self.assertNotIn("CANARY", done.stdout + done.stderr)
        return done

    def answer(self, *words):
        done = self.run_it(*words, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return json.loads(done.stdout)

    def test_the_configuration_is_found_and_checked(self):
        said = self.answer("config", "check")
        self.assertEqual((said["path"], said["providers"], said["models"]), (self.path, 3, 9))
        done = self.run_it("config", "check", config=self.path)
        self.assertEqual(done.stdout.split("\n")[0],
                         f"{self.path}: ok, 3 providers, 9 models, 0 agents, 0 tools")

    def test_providers_are_listed_with_where_their_key_is(self):
        said = self.answer("provider", "list")["providers"]
        self.assertEqual([(p["name"], p["kind"], p["key"], p["models"]) for p in said[1:]],
                         [("messages", "anthropic-messages", f"file {self.folder}/key", "tools"),
                          ("idle", "openai-chat", "none", "nothing")])
        done = self.run_it("provider", "list")
        self.assertEqual(done.stdout.split()[:6], ["provider", "kind", "base", "url", "key", "models"])

    def test_one_call_tells_model_streaming_tools_and_usage(self):
        said = self.answer("provider", "check", "chat")
        usage = {"input": 10, "output": 2, "cache_read": 0, "cache_write": 0, "reasoning": 0}
        self.assertEqual((said["model"], said["served"], said["streaming"], said["tools"], said["usage"]),
                         ("text", "served-1", True, False, usage))
        self.assertLessEqual(said["first_ms"], said["total_ms"])
        said = self.answer("provider", "check", "messages")
        self.assertEqual((said["model"], said["streaming"], said["tools"]), ("tools", True, True))
        said = self.answer("provider", "check", "chat", "--model", "whole")
        self.assertEqual((said["streaming"], said["tools"]), (False, False))

    def test_the_call_has_the_key_the_options_and_a_tool(self):
        before = self.server.requests()
        self.answer("provider", "check", "messages")
        sent = self.server.requests()[len(before):]
        self.assertEqual(len(sent), 1)
        self.assertEqual(sent[0]["headers"]["x-api-key"], KEY)
        self.assertEqual((sent[0]["body"]["temperature"], sent[0]["body"]["max_tokens"]), (0.5, 100))
        self.assertEqual([tool["name"] for tool in sent[0]["body"]["tools"]], ["ping"])
        self.assertIsNone(self.answer("provider", "check", "chat", "--no-tools")["tools"])
        self.assertNotIn("tools", self.server.requests()[-1]["body"])

    def test_a_failure_has_its_own_text_and_exit_code(self):
        rows = (("echo", 2, "the endpoint refused the key (auth_refused)"),
                ("unknown", 2, "(model_unsupported)"),
                ("500", 6, "(server_error)"),
                ("cut", 6, "(connection_lost)"),
                ("once-429", 6, "(rate_limited)"))
        for model, code, text in rows:
            before = len(self.server.requests())
            done = self.run_it("provider", "check", "chat", "--model", model)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(text, done.stderr)
            self.assertEqual(len(self.server.requests()), before + 1)  # never repeated
        done = self.run_it("provider", "check", "idle")
        self.assertEqual(done.returncode, 6)
        self.assertIn("(connect_failed)", done.stderr)

    def test_a_recording_has_the_answer_and_no_key(self):
        record = os.path.join(self.folder, "record")
        self.run_it("provider", "check", "chat", "--record", record)
        with open(record, encoding="utf-8") as f:
            text = f.read()
        self.assertIn("Hello", text)
        self.assertNotIn("CANARY", text)
        self.assertEqual(json.loads(text.splitlines()[0]), {"holdfast_script": 1})

    def test_what_is_missing_is_named(self):
        done = self.run_it("provider", "check", "caht")
        self.assertEqual(done.returncode, 3)
        self.assertIn("did you mean chat?", done.stderr)
        done = self.run_it("provider", "check", "chat", CHAT_KEY=None)
        self.assertEqual(done.returncode, 3)
        self.assertIn("[secret:chat]: the variable is not set", done.stderr)
        done = self.run_it("provider", "check", "chat", "--model", "tools")
        self.assertEqual(done.returncode, 2)
        self.assertIn("the provider of tools is messages, not chat", done.stderr)
        done = self.run_it("config", "check", config="/nowhere.toml")
        self.assertEqual(done.returncode, 3)
        self.assertIn("--config", done.stderr)

    def test_a_bad_file_is_named_by_path_and_line(self):
        bad = os.path.join(self.folder, "bad.toml")
        with open(bad, "w", encoding="utf-8") as f:
            f.write('[provider.a]\nkind = "openai-chat"\nbas_url = "http://CANARY"\n')
        done = self.run_it("config", "check", config=bad)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr,
                         f"holdfast: {bad}: line 3: [provider.a]: unknown key bas_url; did you mean base_url?\n")

    def test_every_key_is_listed(self):
        keys = self.answer("config", "keys")["keys"]
        self.assertEqual({key["table"] for key in keys}, {"provider", "model", "agent", "tool"})
        self.assertEqual([key["key"] for key in keys if key["required"]],
                         ["kind", "base_url", "provider", "context_tokens", "output_tokens", "model",
                          "command", "description", "recovery"])


if __name__ == "__main__":
    unittest.main()
