#!/usr/bin/env python3
"""Eight processes hammer one file; an outside program judges what they left.

    tests/proc/hammer.py                            as in the test suite: 8,000 units
    tests/proc/hammer.py --units 100000             the soak
    tests/proc/hammer.py --kills 40                 and kill them while they do
    --folder DIR    where (default: a folder in memory where there is one; a disk's syncs make
                    the run longer and prove no more about processes that die)
    --processes N, --threads N (of each process), --seed N

The program is build/tests/hammer, or what HAMMER names. The folder is kept when there are
faults, or when it was given."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import check_hammer

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KILLS_LEAST = 0.75
HAMMER = os.environ.get("HAMMER", os.path.join(ROOT, "build", "tests", "hammer"))


def run(folder, postgres=None, **options):
    """One run into an empty folder, and the judgement. `postgres`: where the judge looks."""
    args = [str(part) for name, value in options.items() for part in (f"--{name}", value)]
    if subprocess.run([HAMMER, "--folder", folder, *args], check=False).returncode:
        return False
    good = check_hammer.judge(folder, postgres)
    with open(os.path.join(folder, "hammer.json"), encoding="utf-8") as file:
        kills = json.load(file)["kills"]
    if kills < options.get("kills", 0) * KILLS_LEAST:
        print(f"only {kills} processes were killed before all was done")
        good = False
    return good


def scratch():
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return tempfile.mkdtemp(prefix="holdfast-hammer-", dir=base)


def in_scratch(act, *args, **options):
    """Runs in a folder of its own, which stays only if something was wrong."""
    folder = scratch()
    good = act(folder, *args, **options)
    if good:
        shutil.rmtree(folder)
    else:
        print(f"kept: {folder}")
    return good


def judge_the_judge(folder):
    """The judge finds what is planted in a small run."""
    return run(folder, units=400) and check_hammer.selftest(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=8000)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder")
    given = parser.parse_args()
    options = {k: v for k, v in vars(given).items() if k != "folder"}
    if given.folder:
        os.makedirs(given.folder)
        return 0 if run(given.folder, **options) else 1
    good = in_scratch(run, **options)
    if len(sys.argv) == 1:
        good = in_scratch(judge_the_judge) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
