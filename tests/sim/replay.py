#!/usr/bin/env python3
"""A schedule is its seed: the same again for the same seed, another for another.

HOLDFAST_SIM names the program."""

import os
import re
import subprocess
import sys

SIM = os.environ["HOLDFAST_SIM"]


def last_line(*args):
    done = subprocess.run([SIM, "--quiet", *args], check=False, capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines()[-1]


def main():
    wrong = []
    for store in ("model", "sqlite", "disk"):
        few = ("--store", store, "--schedules", "8")
        first, again = last_line(*few, "--seed", "7"), last_line(*few, "--seed", "7")
        other = last_line(*few, "--seed", "8")
        print(store, *first)
        if first != again:
            wrong.append(f"{store}: the same seed made {again}")
        if first[1].split()[-1] == other[1].split()[-1]:
            wrong.append(f"{store}: another seed made the same hash")
        if not re.fullmatch(r"schedules=8 steps=\d+ faults=\d+ violations=0 hash=[0-9a-f]{16}",
                            first[1]):
            wrong.append(f"{store}: the last line is {first[1]}")
    lines = [subprocess.run([SIM, "--seed", "3", "--schedules", "1", "--trace"], check=False,
                            capture_output=True, text=True).stdout for _ in range(2)]
    if lines[0] != lines[1] or lines[0].count("\n") < 50:
        wrong.append("the traces of one seed differ")
    if subprocess.run([SIM, "--schedules", "nine"], check=False,
                      capture_output=True).returncode != 2:
        wrong.append("a bad number is no usage error")
    helped = subprocess.run([SIM, "--help"], check=False, capture_output=True, text=True)
    if helped.returncode != 0 or "--schedules N" not in helped.stdout or helped.stderr:
        wrong.append("--help does not help")
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
