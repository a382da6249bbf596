"""The model server, certificates and configurations for tests of programs."""

import json
import os
import subprocess

SERVER = os.environ["MODEL_SERVER"]
KINDS = (("openai-chat", "/v1"), ("anthropic-messages", ""))


class Server:
    """tests/support/model_server.py as a child; `port` 0 is any."""

    def __init__(self, journal, *cert, port=0):
        self.journal = journal
        self.process = subprocess.Popen([SERVER, journal, *cert], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env={**os.environ, "MODEL_PORT": str(port)})
        self.port = int(self.process.stdout.readline())

    def stop(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def kill(self):
        self.process.kill()
        self.stop()

    def requests(self):
        if not os.path.exists(self.journal):
            return []
        with open(self.journal, encoding="utf-8") as f:
            return [json.loads(line) for line in f]


def certificate(folder, name):
    """A certificate of that name, and its key: paths."""
    cert, key = os.path.join(folder, name + ".pem"), os.path.join(folder, name + ".key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "2", "-subj", "/CN=test", "-addext", f"subjectAltName=DNS:{name}", "-keyout", key,
                    "-out", cert], check=True, capture_output=True)
    return cert, key


def configure(path, kind, base_url, models, **more):
    """Writes a configuration with one provider and these models; returns its path."""
    lines = ["[provider.p]", f'kind = "{kind}"', f'base_url = "{base_url}"']
    lines += [f"{key} = {json.dumps(value)}" for key, value in more.items()]
    for model in models:
        lines += [f'[model."{model}"]', 'provider = "p"', "context_tokens = 1000", "output_tokens = 100"]
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    return path
