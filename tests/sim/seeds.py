#!/usr/bin/env python3
"""Schedules that once found something, or alarmed for nothing: each passes.

A seed decides the same schedule only while the calls stay the same. So a fault in our code that a
seed found has a test of its own too, named in docs/VERIFICATION.md.

HOLDFAST_SIM names the program."""

import os
import subprocess
import sys

SIM = os.environ["HOLDFAST_SIM"]

SEEDS = [
    ("sqlite", 1010215, "a renewal in the middle of a sweep kept a dead holder"),
    ("sqlite", 1023500, "leases of an incarnation that a lost bump had ended"),
    ("sqlite", 1071867, "the same"),
    ("sqlite", 1085701, "the same"),
    ("sqlite", 1055067, "claimed and handed back between two looks"),
    ("sqlite", 1082929, "amnesty, then a bump, then the look"),
    ("sqlite", 1086290, "cancelled and pruned between two looks"),
    ("sqlite", 1002261, "no memory to describe a proof of death"),
    ("model", 1585261, "a close-out of an earlier generation"),
    ("sqlite", 345, "a schedule resumed at a clock that went back"),
    ("disk", 25, "a lease that lapsed between a sweep and the look"),
    ("disk", 1104, "the power fails when the faults have stopped"),
    ("disk", 1120, "the same with one I/O"),
    ("model", 16, "the unit of an escalation"),
    ("model", 1395, "a unit under a rate, claimed by its id"),
    ("sqlite", 1201, "a debounced job and one that waits for its retry"),
    ("sqlite", 6, "a claim that raced itself"),
]


def main():
    failed = 0
    for store, seed, what in SEEDS:
        done = subprocess.run([SIM, "--quiet", "--store", store, "--seed", str(seed), "--schedules", "1"],
                              check=False, capture_output=True, text=True)
        print("ok" if done.returncode == 0 else "FAILED", store, seed, what)
        if done.returncode:
            failed += 1
            print(done.stdout, done.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
