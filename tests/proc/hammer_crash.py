#!/usr/bin/env python3
"""The hammer with kill -9: what was acknowledged is never lost, and every unit comes to its
end though the processes that held it did not."""

import sys

import hammer

RUNS = [
    {"units": 4000, "kills": 40},
    {"units": 2000, "kills": 10, "processes": 3, "threads": 4},  # they commit in groups
]

if __name__ == "__main__":
    sys.exit(0 if all([hammer.in_scratch(hammer.run, **run) for run in RUNS]) else 1)
