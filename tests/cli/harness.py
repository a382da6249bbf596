"""What the tests of the program share: a scratch folder, and running the program in it."""

import json
import os
import pty
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HOLDFAST = os.environ["HOLDFAST"]


class Result:
    def __init__(self, done):
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr

    @property
    def json(self):
        """The one object that an invocation prints."""
        if not self.out.endswith("\n") or self.out.count("\n") != 1:
            raise AssertionError(f"not one line: {self.out!r} {self.err!r}")
        return json.loads(self.out)


class Case(unittest.TestCase):
    maxDiff = None

    def remove_folder(self):
        """A runner in the background closes its store after its unit has ended: until then it may
        make a file in the folder that is being removed."""
        end = time.monotonic() + 20
        while True:
            try:
                shutil.rmtree(self.folder)
                return
            except OSError:
                if time.monotonic() > end:
                    raise

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="holdfast-cli-")
        self.addCleanup(self.remove_folder)
        self.db = os.path.join(self.folder, "work.db")
        self.env = {
            "PATH": os.path.dirname(HOLDFAST) + ":/usr/bin:/bin",
            "HOME": self.folder,
            "HOLDFAST_DB": self.db,
            "USER": "tester",
            **{k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")},
        }

    def path(self, name):
        return os.path.join(self.folder, name)

    def file(self, name, content):
        with open(self.path(name), "wb") as out:
            out.write(content if isinstance(content, bytes) else content.encode())
        return self.path(name)

    def run_raw(self, *args, stdin=b"", **kwargs):
        kwargs.setdefault("env", self.env)
        return subprocess.run([HOLDFAST, *args], input=stdin, capture_output=True,
                              cwd=self.folder, timeout=50, check=False, **kwargs)

    def cli(self, *args, code=0, stdin=b""):
        done = self.run_raw(*args, stdin=stdin)
        done.stdout = done.stdout.decode()
        done.stderr = done.stderr.decode()
        result = Result(done)
        self.assertEqual(result.code, code, f"{args}: {result.out}{result.err}")
        return result

    def ok(self, *args, stdin=b""):
        """The envelope of a success."""
        answer = self.cli("--json", *args, stdin=stdin).json
        self.assertIs(answer["ok"], True)
        return answer

    def refused(self, code, wire, *args, stdin=b""):
        """The message of a refusal, after a look at the whole envelope."""
        result = self.cli("--json", *args, code=code, stdin=stdin)
        answer = result.json
        self.assertEqual(set(answer), {"ok", "error"})
        self.assertIs(answer["ok"], False)
        error = answer["error"]
        self.assertEqual(set(error), {"code", "message", "class", "action", "retryable"})
        self.assertEqual(error["code"], wire, error)
        self.assertIn(error["class"], ("retryable", "terminal", "unknown"))
        self.assertEqual(error["retryable"], error["class"] == "retryable")
        self.assertTrue(error["message"] and error["action"])
        self.assertEqual(result.err, "")
        plain = self.cli(*args, code=code, stdin=stdin)
        self.assertEqual(plain.out, "")
        self.assertIn("holdfast: ", plain.err)
        return error["message"]

    def create(self, source_id="s1", *args):
        return self.ok("work", "create", "--source", "manual", "--source-id", source_id,
                       *args)["work"]

    def claim(self, *args):
        """The one unit that this claim takes."""
        items = self.ok("work", "claim", "--owner", "w1", *args)["items"]
        self.assertEqual(len(items), 1)
        return items[0]

    def held(self, source_id="s1", *args):
        self.create(source_id, *args)
        work = self.claim()
        return work["work_id"], work["lease_token"]

    def rows(self):
        """How many rows there are, of any status."""
        if not os.path.exists(self.db):
            return 0
        return len(self.ok("work", "list", "--all")["items"])


class Worker:
    """`holdfast worker` as a child; its log lines come as they are written."""

    def __init__(self, case, *args):
        self.case = case
        self.lines = queue.Queue()
        self.process = subprocess.Popen([HOLDFAST, "--json", "worker", *args], env=case.env, cwd=case.folder,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        case.addCleanup(self.end)

    def read(self):
        for line in self.process.stderr:
            self.lines.put(json.loads(line) if line.startswith("{") else {"event": line})
        self.lines.put(None)

    def heard(self, *events):
        """The next line of one of these events; others are passed over."""
        while True:
            line = self.lines.get(timeout=60)
            if line is None:
                raise AssertionError(f"the worker ended before {events}")
            if line["event"] in events:
                return line

    def so_far(self):
        """The lines that have come and were not heard."""
        lines = []
        while not self.lines.empty():
            lines.append(self.lines.get())
        return lines

    def stop(self):
        """Stops it between its writes: in the middle of one it would keep all others from writing."""
        while True:
            self.process.send_signal(signal.SIGSTOP)
            probe = self.case.run_raw("work", "create", "--source", "manual", "--source-id", "probe")
            if probe.returncode == 0:
                return
            self.case.assertEqual(probe.returncode, 6, probe.stderr)
            self.go_on()

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()
        self.process.stderr.close()


def need_terminals():
    """A root without /dev/pts, as a bare chroot is, gets one in a mount namespace of its own."""
    try:
        for end in pty.openpty():
            os.close(end)
    except OSError:
        if "OWN_PTS" in os.environ:
            raise
        os.environ["OWN_PTS"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "unchanged", "sh", "-c",
                              "mount --make-rprivate /dev && "
                              "mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts && "
                              "mount --bind /dev/pts/ptmx /dev/ptmx && exec \"$@\"",
                              "sh", sys.executable, *sys.argv])


def main():
    unittest.main(verbosity=1, argv=sys.argv)
