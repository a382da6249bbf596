#!/usr/bin/env python3
"""Plant mutants of restoring a turn, one after the other: the random turns must find each.

    tests/turn/plants.py [NAME…]     all of them, or these; each within 300 turns

TURN_PROPERTY names the program with the mutants (default build/tests/turn-property-planted).
Exit 1 if one was not found, or if the program fails without any."""

import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("TURN_PROPERTY",
                         os.path.join(ROOT, "build", "tests", "turn-property-planted"))
EDITS = os.path.join(ROOT, "tests", "turn", "plants")
TURNS = "300"


def run(*args):
    done = subprocess.run([PROGRAM, *args], check=False, capture_output=True, text=True, timeout=100)
    return done.returncode, done.stdout + done.stderr


def main():
    names = sys.argv[1:] or sorted(name[:-5] for name in os.listdir(EDITS)
                                   if name.endswith(".edit"))
    code, said = run("--turns", "8")
    if code:
        print("without a mutant it fails:", said, sep="\n")
        return 1
    missed = 0
    for name in names:
        began = time.monotonic()
        code, said = run("--plant", name, TURNS)
        seed = re.search(r"differs at seed (\d+)", said)
        found = code != 0 and code != 2 and (seed or code < 0)
        missed += not found
        where = "NOT FOUND" if not found else f"seed {seed.group(1)}" if seed else "a signal"
        print(f"{name:20} {where:12} {time.monotonic() - began:5.1f} s", flush=True)
    print(f"{len(names) - missed} of {len(names)} found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
