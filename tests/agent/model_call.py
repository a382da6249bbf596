#!/usr/bin/env python3
"""examples/model_call.c against the model server, plain and over TLS, by both kinds."""

import os
import subprocess
import tempfile
import unittest

from servers import KINDS, Server, certificate

CALL = os.environ["MODEL_CALL"]
KEY = "sk-CANARY"


class ModelCall(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.cert, key = certificate(cls.folder.name, "localhost")
        cls.plain = Server(os.path.join(cls.folder.name, "plain"))
        cls.tls = Server(os.path.join(cls.folder.name, "tls"), cls.cert, key)

    @classmethod
    def tearDownClass(cls):
        cls.plain.stop()
        cls.tls.stop()
        cls.folder.cleanup()

    def call(self, kind, url, model, **env):
        return subprocess.run([CALL, kind, url, model, "hi"], capture_output=True, text=True, check=False,
                              env={**os.environ, "MODEL_KEY": KEY, **env}, timeout=60)

    def test_both_kinds_are_answered(self):
        for kind, path in KINDS:
            for server, scheme in ((self.plain, "http"), (self.tls, "https")):
                env = {"SSL_CERT_FILE": self.cert} if scheme == "https" else {}
                done = self.call(kind, f"{scheme}://localhost:{server.port}{path}", "text", **env)
                self.assertEqual((done.returncode, done.stdout, done.stderr),
                                 (0, "Hello world\nserved-1: 10 tokens in, 2 out\n", ""))

    def test_a_failure_is_named_and_shows_no_key(self):
        for model, text in (("echo", "the endpoint refused the key (auth_refused, not to repeat)"),
                            ("cut", "the connection was lost (connection_lost, not to repeat)"),
                            ("once-429", "the endpoint's rate limit is reached (rate_limited, safe to repeat)")):
            done = self.call("openai-chat", f"http://127.0.0.1:{self.plain.port}/v1", model)
            self.assertEqual(done.returncode, 1)
            self.assertIn(text, done.stderr)
            self.assertNotIn("CANARY", done.stdout + done.stderr)

    def test_a_certificate_that_is_not_trusted_is_refused(self):
        done = self.call("openai-chat", f"https://localhost:{self.tls.port}/v1", "text")
        self.assertEqual(done.returncode, 1)
        self.assertIn("tls_untrusted", done.stderr)

    def test_an_address_with_a_password_is_refused(self):
        done = self.call("openai-chat", "http://me:CANARY@127.0.0.1/v1", "text")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no user or password", done.stderr)
        self.assertNotIn("CANARY", done.stderr)


if __name__ == "__main__":
    unittest.main()
