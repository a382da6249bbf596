#!/usr/bin/env python3
"""Random cells do the same in every process: other addresses and hash seeds, other locales, other
environments. One cell whose keys are tables and functions does so in 50 processes.

    tests/exec/same_everywhere.py [COUNT [FIRST]]    300 cells by default; the promise is 100,000
"""

import os
import subprocess
import sys
import tempfile

PROGRAM = os.environ.get("CELL_TWICE", "build/tests/cell_twice")
LOCALES = ["de_DE", "tr_TR", "sv_SE"]  # a decimal comma; dotless i; an order of its own

MIXED_RUNS = 50
MIXED_CELL = """
local t = {[1] = "one", a = "text", [2.5] = "real", [true] = "truth"}
for i = 1, 8 do
  t[{}] = i
  t[function() return i end] = i
end
t[print] = "print"
local fine, why = pcall(pairs, t)
print(fine, why)
fine, why = pcall(next, t)
print(fine, why)
fine, why = pcall(next, t, "a")
print(fine, why)
local seen = ""
fine = pcall(function() for k in pairs(t) do seen = seen .. tostring(k) end end)
print(fine, "seen [" .. seen .. "]")
for k in next, t do
  seen = seen .. tostring(k)
end
"""
NO_ORDER = ("a table or a function as a key has no order, so the table cannot be walked through; "
            "use texts or numbers as keys")
MIXED_EXPECTED = f"""\
1 print false\t{NO_ORDER}
2 print false\t{NO_ORDER}
3 print false\t{NO_ORDER}
4 print false\tseen []
error line 17: {NO_ORDER}. Nothing that this cell assigned was kept
bindings {{}}
delta {{}}
"""


def run(name, first, count, padding, env=None, before=()):
    done = subprocess.run([*before, PROGRAM, str(first), str(count), str(padding)],
                          env={**os.environ, **(env or {})}, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"{name}: exit {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-2000:]}")
    return name, done.stdout


def locale_env(folder, i):
    """The environment of a process under locale i, with its addresses shifted."""
    return {"LOCPATH": folder, "LC_ALL": f"{LOCALES[i]}.UTF-8", "SHIFT": "x" * (1 + 1000 * i)}


def run_mixed_keys(folder):
    for i in range(MIXED_RUNS):
        env = locale_env(folder, i % len(LOCALES))
        done = subprocess.run([PROGRAM, "--source", MIXED_CELL, str(16 * i)],
                              env={**os.environ, **env}, capture_output=True, text=True,
                              check=False)
        if done.returncode != 0 or done.stdout != MIXED_EXPECTED:
            sys.exit(f"mixed keys, run {i}: exit {done.returncode}\n{done.stdout}{done.stderr}\n"
                     f"expected:\n{MIXED_EXPECTED}")


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with tempfile.TemporaryDirectory(prefix="holdfast-locale-") as folder:
        runs = [run("as it is", first, count, 0),
                run("fixed addresses", first, count, 40, before=("setarch", "-R"))]
        for i, name in enumerate(LOCALES):
            subprocess.run(["localedef", "-i", name, "-f", "UTF-8", f"{folder}/{name}.UTF-8"],
                           check=True)
            runs.append(run(name, first, count, 8 + 16 * i, env=locale_env(folder, i)))
        run_mixed_keys(folder)
    lines = runs[0][1].splitlines()
    if not lines:
        sys.exit("no cell was run")
    for name, output in runs[1:]:
        for expected, got in zip(lines, output.splitlines()):
            if expected != got:
                sys.exit(f"{name}: differs up to cell {got.split()[0]}: {expected} / {got}")
        if output != runs[0][1]:
            sys.exit(f"{name}: another number of cells")
    print(f"{count} cells, the same in {len(runs)} processes; mixed keys in {MIXED_RUNS}")


if __name__ == "__main__":
    main()
