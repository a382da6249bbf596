#!/usr/bin/env python3
"""Several schedulers on one store, killed in the middle again and again: each slot is made
once, none is left out without a record, and the schedules come to where the clock is.

    schedulers.py [--schedules N] [--seconds S] [--workers N]
"""

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

HOLDFAST = os.environ["HOLDFAST"]


def cli(db, *args):
    done = subprocess.run([HOLDFAST, "--db", db, "--json", *args], capture_output=True,
                          text=True, check=False)
    if done.returncode:
        sys.exit(f"{args}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def start(db):
    return subprocess.Popen([HOLDFAST, "--db", db, "--quiet", "monitor", "--interval", "50ms"],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def instant(text):
    return int(time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))) * 1000


def judge(db, begun, ended):
    """Plain SQL, read only, no code of ours."""
    file = sqlite3.connect(f"file:{db}?mode=ro", uri=True)
    runs = {}
    for name, run in file.execute("SELECT source_id, source_run_id FROM work_spec"
                                  " WHERE source_system = 'scheduler'"):
        runs.setdefault(name, []).append(instant(run))
    skips = {}
    for name, first, last, slots in file.execute(
            "SELECT name, first_at, last_at, slots FROM work_schedule_skip"):
        skips.setdefault(name, []).append((first, last, slots))
    total = 0
    for name, created, made, skipped, next_at in file.execute(
            "SELECT name, created_at, made, skipped, next_at FROM work_schedule"):
        slots = sorted(runs.get(name, []))
        total += len(slots)
        if len(set(slots)) != len(slots):
            sys.exit(f"{name}: a slot was made twice")
        covered = set(slots)
        for first, last, count in skips.get(name, []):
            stretch = set(range(first, last + 1, 1000))
            if len(stretch) != count or stretch & covered:
                sys.exit(f"{name}: the record {first} to {last} is wrong")
            covered |= stretch
        first = created // 1000 * 1000 + 1000
        expected = set(range(first, next_at, 1000))
        if covered != expected:
            sys.exit(f"{name}: {len(expected - covered)} slots are missing, "
                     f"{len(covered - expected)} are too many")
        if (made, skipped) != (len(slots), len(expected) - len(slots)):
            sys.exit(f"{name}: it counts {made} and {skipped}")
        if next_at < ended - 2000:
            sys.exit(f"{name}: it creates no more units")
    if total == 0:
        sys.exit("nothing was made")
    return total, sum(map(len, skips.values())), ended - begun


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--schedules", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--workers", type=int, default=3)
    args = parser.parse_args()
    os.environ["TZ"] = "UTC"
    time.tzset()
    chance = random.Random(7)
    with tempfile.TemporaryDirectory(prefix="holdfast-schedulers-") as folder:
        db = os.path.join(folder, "work.db")
        entries = [{"name": f"n{i}", "cron": "* * * * * *", "overlap": ("allow", "skip")[i % 2],
                    "catch_up": "all"} for i in range(args.schedules)]
        declared = os.path.join(folder, "set.json")
        with open(declared, "w", encoding="utf-8") as out:
            json.dump({"set": "all", "schedules": entries}, out)
        cli(db, "schedule", "sync", declared)
        begun = time.time() * 1000
        monitors = [start(db) for _ in range(args.workers)]
        kills = 0
        while time.time() * 1000 < begun + args.seconds * 1000:
            one = chance.randrange(len(monitors))
            try:  # a monitor ends only when it is killed: this is the pause between kills
                monitors[one].wait(timeout=chance.uniform(0.05, 0.4))
                sys.exit("a monitor ended by itself")
            except subprocess.TimeoutExpired:
                monitors[one].kill()
                monitors[one].wait()
                kills += 1
            monitors[one] = start(db)
        for monitor in monitors:
            monitor.send_signal(signal.SIGTERM)
            monitor.wait(timeout=20)
        cli(db, "schedule", "run")
        made, records, lasted = judge(db, begun, time.time() * 1000)
        print(f"{args.schedules} schedules, {kills} kills in {lasted / 1000:.1f} s: "
              f"{made} units, {records} records of skipped slots")


main()
