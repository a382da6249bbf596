#!/usr/bin/env python3
"""The systemd units of data/ are what systemd-analyze takes without a word, and start the program."""

import os
import re
import subprocess
import tempfile

DATA = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", "data"))
PROGRAM = "/usr/local/bin/holdfast"


def main():
    units = sorted(name for name in os.listdir(DATA) if name.endswith(".service"))
    assert units == ["holdfast-monitor.service", "holdfast-worker.service"], units
    for name in units:
        with open(os.path.join(DATA, name), encoding="utf-8") as f:
            text = f.read()
        start = re.search(r"(?m)^ExecStart=(\S+) (.*)$", text)
        assert start and start.group(1) == PROGRAM, name
        words = [word for word in start.group(2).split() if not word.isdigit()]
        subprocess.run([os.environ["HOLDFAST"], "--help", *start.group(2).split()], check=True,
                       stdout=subprocess.DEVNULL)
        assert words, name
        with tempfile.TemporaryDirectory() as folder:
            copy = os.path.join(folder, name)
            with open(copy, "w", encoding="utf-8") as f:  # the program need not be installed
                f.write(text.replace(PROGRAM, os.environ["HOLDFAST"]).replace(
                    "User=holdfast", "User=root"))
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", copy],
                                  capture_output=True, text=True, check=False)
        assert done.returncode == 0 and done.stderr == "", name + ": " + done.stderr
        print(name + ": ok")


if __name__ == "__main__":
    main()
