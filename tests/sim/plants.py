#!/usr/bin/env python3
"""Plant bugs in the library, one after the other: the simulator must find each.

    tests/sim/plants.py                  all of them, each within 10,000 schedules
    tests/sim/plants.py NAME…            these
    tests/sim/plants.py --sample         some, as in the test command
    --seed N, --most N (schedules), --json FILE

HOLDFAST_SIM names the program with the bugs (default build/holdfast-sim-planted); next to it are
the tests that find what the simulator cannot (test_run_spool_planted). Prints a table. Exit 1 if one was not found: the simulator ran to its end without a violation, or it did
not run. A process that the bug ended by a signal (a failed assertion, a bad address) is found."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SIM = os.environ.get("HOLDFAST_SIM", os.path.join(ROOT, "build", "holdfast-sim-planted"))
SAMPLE = ["fence_ignored", "old_store", "early_lapse", "bound_by_time", "group_lost",
          "event_lost", "ack_before_sync", "spool_unsynced", "nonce_ignored", "paused_is_dead", "retry_early",
          "effect_armed_early", "effect_settled_twice", "drive_lease_ignored", "wait_answered_twice",
          "waiting_turn_swept", "wake_not_entered"]


def known():
    lines = subprocess.run([SIM, "--plants"], check=True, capture_output=True, text=True).stdout
    return {line.split()[0]: line.split(None, 2)[1:] for line in lines.splitlines()}


def find_by_test(name, test):
    """The same, where a test finds it: 1 and the cases that fail."""
    began = time.monotonic()
    program = os.path.join(os.path.dirname(SIM), f"test_{test.replace('/', '_')}_planted")
    done = subprocess.run([program], check=False, capture_output=True, text=True,
                          env={**os.environ, "HF_PLANT": name, "CMOCKA_MESSAGE_OUTPUT": "TAP"})
    failed = re.findall(r"(?m)^not ok \d+ - (\w+)", done.stdout)
    return int(bool(failed)), " ".join(failed) or f"exit {done.returncode}", time.monotonic() - began


def find(name, store, seed, most):
    """Schedules until it was found (0: not), what was seen, seconds."""
    if "/" in store:
        return find_by_test(name, store)
    began = time.monotonic()
    where = ["--drives"] if store == "drives" else ["--store", store]
    done = subprocess.run([SIM, "--plant", name, *where, "--seed", str(seed),
                           "--schedules", str(most), "--quiet", "--no-shrink"], check=False,
                          capture_output=True, text=True)
    took = time.monotonic() - began
    said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    if done.returncode < 0:
        return 1, f"ended by {signal.Signals(-done.returncode).name}: {said}", took
    seen = re.search(r"violation, seed (\d+), step \d+: (.*)", done.stdout)
    last = re.search(r"schedules=(\d+) .*violations=(\d+)", done.stdout)
    if done.returncode == 1 and seen and last:
        return int(last.group(1)), seen.group(2), took
    return 0, "no violation" if done.returncode == 0 else f"exit {done.returncode}: {said}", took


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, default=10000)
    parser.add_argument("--json")
    given = parser.parse_args()
    plants = known()
    names = given.names or (SAMPLE if given.sample else list(plants))
    missed, rows = [], []
    print(f"{'bug':20} {'store':9} {'schedules':>9} {'s':>6}  seen as")
    for name in names:
        store, what = plants[name]
        found, seen, seconds = find(name, store, given.seed, given.most)
        seen = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]+", "R", seen)
        rows.append({"bug": name, "what": what, "store": store, "schedules": found,
                     "seconds": round(seconds, 1), "seen": seen})
        print(f"{name:20} {store:9} {found or 'NOT FOUND':>9} {seconds:6.1f}  {seen[:90]}",
              flush=True)
        if not found:
            missed.append(name)
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    print(f"{len(names) - len(missed)} of {len(names)} found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
