#!/usr/bin/env python3
"""Random cells do the same in every process: other addresses and hash seeds, other locales, other
environments.

    tests/exec/same_everywhere.py [COUNT [FIRST]]    300 cells by default; the promise is 100,000
"""

import os
import subprocess
import sys
import tempfile

PROGRAM = os.environ.get("CELL_TWICE", "build/tests/cell_twice")
LOCALES = ["de_DE", "tr_TR", "sv_SE"]  # a decimal comma; dotless i; an order of its own


def run(name, first, count, padding, env=None, before=()):
    done = subprocess.run([*before, PROGRAM, str(first), str(count), str(padding)],
                          env={**os.environ, **(env or {})}, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"{name}: exit {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-2000:]}")
    return name, done.stdout


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with tempfile.TemporaryDirectory(prefix="holdfast-locale-") as folder:
        runs = [run("as it is", first, count, 0),
                run("fixed addresses", first, count, 40, before=("setarch", "-R"))]
        for i, name in enumerate(LOCALES):
            subprocess.run(["localedef", "-i", name, "-f", "UTF-8", f"{folder}/{name}.UTF-8"],
                           check=True)
            runs.append(run(name, first, count, 8 + 16 * i,
                            env={"LOCPATH": folder, "LC_ALL": f"{name}.UTF-8",
                                 "SHIFT": "x" * (1 + 1000 * i)}))
    lines = runs[0][1].splitlines()
    if not lines:
        sys.exit("no cell was run")
    for name, output in runs[1:]:
        for expected, got in zip(lines, output.splitlines()):
            if expected != got:
                sys.exit(f"{name}: differs up to cell {got.split()[0]}: {expected} / {got}")
        if output != runs[0][1]:
            sys.exit(f"{name}: another number of cells")
    print(f"{count} cells, the same in {len(runs)} processes")


if __name__ == "__main__":
    main()
