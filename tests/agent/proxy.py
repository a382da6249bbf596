#!/usr/bin/env python3
"""Model calls through a proxy of the environment: what it is asked for, and what it never sees."""

import os
import socket
import subprocess
import tempfile
import threading
import unittest

from servers import Server, certificate

CALL = os.environ["MODEL_CALL"]
KEY = "sk-CANARY"
HELLO = "Hello world\nserved-1: 10 tokens in, 2 out\n"


class Proxy:
    """Forwards every request to one port of loopback. `lines` has the first line of each, `bytes` all that came."""

    def __init__(self, refuse=False):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.refuse, self.to = refuse, 0
        self.lines, self.bytes = [], b""
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        with sock:
            self.forward(sock)

    def forward(self, sock):
        head = b""
        while b"\r\n\r\n" not in head:
            more = sock.recv(65536)
            if not more:
                return
            head += more
        self.bytes += head
        self.lines.append(head.split(b"\r\n")[0].decode())
        if self.refuse:
            sock.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return
        tunnel = self.lines[-1].startswith("CONNECT ")
        with socket.create_connection(("127.0.0.1", self.to)) as other:
            sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n" if tunnel else b"")
            other.sendall(b"" if tunnel else head)
            back = threading.Thread(target=self.copy, args=(other, sock, False), daemon=True)
            back.start()
            self.copy(sock, other, True)
            back.join()

    def copy(self, one, other, keep):
        try:
            while more := one.recv(65536):
                self.bytes += more if keep else b""
                other.sendall(more)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def stop(self):
        self.listener.close()


class ThroughProxy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        folder = cls.place.name
        cls.cert, key = certificate(folder, "model.test")
        cls.plain = Server(os.path.join(folder, "plain"))
        cls.tls = Server(os.path.join(folder, "tls"), cls.cert, key)

    @classmethod
    def tearDownClass(cls):
        cls.plain.stop()
        cls.tls.stop()
        cls.place.cleanup()

    def proxy(self, **more):
        proxy = Proxy(**more)
        self.addCleanup(proxy.stop)
        return proxy

    def call(self, url, **env):
        clean = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        return subprocess.run([CALL, "openai-chat", url, "text", "hi"], capture_output=True, text=True, check=False,
                              env={**clean, **env}, timeout=60)

    def test_tls_goes_through_a_tunnel_that_sees_no_key(self):
        proxy = self.proxy()
        proxy.to = self.tls.port
        done = self.call("https://model.test/v1", https_proxy=f"http://127.0.0.1:{proxy.port}", MODEL_KEY=KEY,
                         SSL_CERT_FILE=self.cert)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, HELLO, ""))
        self.assertEqual(proxy.lines, ["CONNECT model.test:443 HTTP/1.1"])
        self.assertNotIn(KEY.encode(), proxy.bytes)
        self.assertEqual(self.tls.requests()[-1]["headers"]["authorization"], "Bearer " + KEY)

    def test_the_name_is_checked_behind_a_tunnel_too(self):
        proxy = self.proxy()
        proxy.to = self.tls.port
        before = len(self.tls.requests())
        done = self.call("https://other.test/v1", https_proxy=f"http://127.0.0.1:{proxy.port}", MODEL_KEY=KEY,
                         SSL_CERT_FILE=self.cert)
        self.assertIn("tls_untrusted", done.stderr)
        self.assertEqual(len(self.tls.requests()), before)

    def test_plain_http_without_a_key_is_forwarded(self):
        proxy = self.proxy()
        proxy.to = self.plain.port
        done = self.call("http://model.test/v1", http_proxy=f"http://127.0.0.1:{proxy.port}")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, HELLO, ""))
        self.assertEqual(proxy.lines, ["POST http://model.test/v1/chat/completions HTTP/1.1"])

    def test_a_key_is_not_sent_in_plain_to_a_proxy(self):
        proxy = self.proxy()
        done = self.call("http://model.test/v1", http_proxy=f"http://127.0.0.1:{proxy.port}", MODEL_KEY=KEY)
        self.assertEqual(done.returncode, 1)
        self.assertIn("[secret:model] is sent over plain http to loopback only", done.stderr)
        self.assertEqual(proxy.lines, [])

    def test_loopback_is_never_asked_of_a_proxy(self):
        proxy = self.proxy()
        url = f"http://127.0.0.1:{proxy.port}"
        done = self.call(f"http://127.0.0.1:{self.plain.port}/v1", http_proxy=url, all_proxy=url, MODEL_KEY=KEY)
        self.assertEqual((done.returncode, done.stdout), (0, HELLO))
        self.assertEqual(proxy.lines, [])

    def test_no_proxy_excludes_a_host(self):
        proxy = self.proxy()
        done = self.call("https://model.test/v1", https_proxy=f"http://127.0.0.1:{proxy.port}", no_proxy="model.test")
        self.assertIn("connect_failed", done.stderr)
        self.assertEqual(proxy.lines, [])

    def test_a_proxy_that_refuses_or_is_gone_leaves_the_call_safe_to_repeat(self):
        proxy = self.proxy(refuse=True)
        for url, code in ((f"http://127.0.0.1:{proxy.port}", "connection_lost"),
                          ("http://127.0.0.1:1", "connect_failed")):
            done = self.call("https://model.test/v1", https_proxy=url, MODEL_KEY=KEY)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"({code}, safe to repeat)", done.stderr)
            self.assertNotIn(KEY, done.stderr)


if __name__ == "__main__":
    unittest.main()
