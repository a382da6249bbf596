#!/usr/bin/env python3
"""What was run to verify Holdfast, as a page.

    tools/verify.py run PART…        run, and note the figures in docs/verification.json
    tools/verify.py note PART FILE   note figures from the output of a run made elsewhere
    tools/verify.py page             print docs/VERIFICATION.md
    tools/verify.py page --check     exit 1 if the page is not as printed
    --schedules N, --kills N, --most SECONDS; of a fuzzer --seconds N

Parts: sim-model sim-sqlite sim-disk sim-turns fuzz-cell fuzz-bindings fuzz-mask plants model crash soak-sqlite soak-postgres.
`run` takes minutes to hours; it shows the tool's own progress."""

import argparse
import datetime
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NOTES = os.path.join(ROOT, "docs", "verification.json")
PAGE = os.path.join(ROOT, "docs", "VERIFICATION.md")

# part: what it is, which guarantees it is about, the command
PARTS = {
    "sim-model": ("simulation over the reference model", "G1 G2 G3 G4 G5 G7",
                  "build/holdfast-sim --store model --seed {seed} --schedules {schedules}"),
    "sim-sqlite": ("simulation over SQLite in memory", "G1 G2 G3 G4 G5 G7",
                   "build/holdfast-sim --store sqlite --seed {seed} --schedules {schedules}"),
    "sim-disk": ("simulation over SQLite on a failing disk", "G1 G2 G3 G4 G5 G7",
                 "build/holdfast-sim --store disk --seed {seed} --schedules {schedules}"),
    "sim-turns": ("simulation of turns with cells, beside nothing else, over the reference model",
                  "code turns", "build/holdfast-sim --store model --only turn --seed {seed} "
                  "--schedules {schedules}"),
    "fuzz-cell": ("any bytes as a cell, under ASan and UBSan, each also cut after every operation", "cells",
                  "tests/fuzz/run {seconds} cell"),
    "fuzz-bindings": ("any bytes as bindings, likewise", "cells", "tests/fuzz/run {seconds} bindings"),
    "fuzz-mask": ("any text through the stream mask, in any chunks, likewise", "code turns",
                  "tests/fuzz/run {seconds} mask"),
    "plants": ("planted bugs, each to be found within 10,000 schedules", "the simulator",
               "tests/sim/plants.py"),
    "model": ("models of leases and pinned claims, with mutants", "G2 G3", "model/check --full"),
    "crash": ("crash at every I/O, allocation and transaction", "G1 G2 G5",
              "env HF_CRASH_ALL=1 build/tests/test_store_crash"),
    "soak-sqlite": ("kill soak on SQLite", "G1 G2 G3 G4 G7",
                    "soak/soak.py --kills {kills} --most {most}"),
    "soak-postgres": ("kill soak on PostgreSQL", "G1 G2 G3 G4 G7",
                      "soak/soak.py --store postgres --kills {kills} --most {most}"),
}

BUGS = [
    ("2026-11-15", "`hf_lease_renew` into the struct that its token stood in gave an empty token back: "
     "the out-parameter was cleared before the token was copied",
     "the crash scenario, before any fault", "conformance `lease_renewal_may_be_told_into_its_own_lease`"),
]

# Alarms of the checkers themselves, and why they were wrong.
ALARMS = [
    ("model, seed 1585261", "a close-out of an earlier generation was refused after a requeue: rightly, a requeue "
     "forgets tokens"),
    ("sqlite, seed 1002261", "a sweep that had no memory to describe a proof of death passed over the row: the next "
     "one finds it"),
]

HEAD = """# Verification

Printed by `tools/verify.py page` from the figures of runs (`docs/verification.json`); how each works stands in
[internals/simulation.md](internals/simulation.md). The machine has 2 cores and was shared with other work. The test command runs
a small form of each; the figures here are of the long forms, or of as much of them as there was time for.
"""


def commit():
    """The newest commit here that main has too: others may yet be rebased."""
    base = subprocess.run(["git", "merge-base", "HEAD", "main"], cwd=ROOT, check=False,
                          capture_output=True, text=True).stdout.strip() or "HEAD"
    return subprocess.run(["git", "rev-parse", "--short", base], cwd=ROOT, check=True,
                          capture_output=True, text=True).stdout.strip()


def sums(text, names):
    """Of all lines `name=number …`: the totals."""
    total = dict.fromkeys(names, 0)
    lines = re.findall(r"^schedules=.*$", text, re.M)
    for line in lines:
        for name in names:
            total[name] += int(re.search(rf"{name}=(\d+)", line).group(1))
    return total, lines


def figures(part, text):
    """runs, faults, violations and a remark, from what the part printed."""
    if part.startswith("sim-"):
        total, lines = sums(text, ["schedules", "steps", "faults", "violations"])
        last = re.search(r"hash=(\w+)", lines[-1]).group(1) if lines else "-"
        return (f"{total['schedules']:,} schedules, {total['steps']:,} steps",
                f"{total['faults']:,}", total["violations"], f"last hash {last}")
    if part.startswith("fuzz-"):
        done = re.search(r"Done (\d+) runs in (\d+) second", text)
        seen = re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)", text)
        crashes = len(re.findall(r"^SUMMARY: ", text, re.M))
        return (f"{int(done.group(1)):,} inputs in {int(done.group(2)):,} s" if done else "-", "",
                crashes if done else max(crashes, 1),
                f"{int(seen[-1][0]):,} edges, {int(seen[-1][2]):,} inputs that add" if seen else "")
    if part == "plants":
        found = re.search(r"(\d+) of (\d+) found", text)
        most = max((int(n) for n in re.findall(r"(?:sqlite|disk|model)\s+(\d+)\s", text)), default=0)
        return (f"{found.group(2)} bugs", found.group(2), int(found.group(2)) - int(found.group(1)),
                f"{found.group(1)} found, the slowest after {most:,} schedules")
    if part == "model":
        states = [int(n) for n in re.findall(r"(\d+)\s+[\d.]+\s+(?:holds|found)", text)]
        mutants = len(re.findall(r"  found$", text, re.M))
        wrong = int(re.search(r"(\d+) wrong", text).group(1))
        return (f"{len(states)} searches, {sum(states):,} states", f"{mutants} mutants", wrong,
                "mutants all found" if not wrong else "")
    if part == "crash":
        notes = re.findall(r"^# (.*)$", text, re.M)
        failed = len(re.findall(r"^\[  FAILED  \] \w+$|^not ok", text, re.M))
        passed = len(re.findall(r"^\[       OK \]|^ok ", text, re.M))
        return f"{passed} cases", "; ".join(notes), failed, ""
    told = re.search(r"^(\d+ acknowledged.*)$", text, re.M)
    did = re.search(r"^(fleets .*)$", text, re.M)
    found = re.search(r"^(\d+) faults$", text, re.M)
    return (told.group(1) if told else "-", did.group(1) if did else "-",
            int(found.group(1)) if found else -1, "")


def note(part, text, command):
    runs, faults, violations, remark = figures(part, text)
    notes = read_notes()
    notes[part] = {"runs": runs, "faults": faults, "violations": violations, "remark": remark,
                   "command": command, "commit": commit(),
                   "date": datetime.date.today().isoformat()}
    if part == "plants":
        notes["plants"]["table"] = [line for line in text.splitlines()
                                    if re.match(r"\w+\s+(sqlite|disk|model)\s", line)]
    with open(NOTES, "w", encoding="utf-8") as file:
        json.dump(notes, file, indent=1, sort_keys=True)
        file.write("\n")
    print(f"{part}: {runs}; {faults}; {violations} violations")


def read_notes():
    if not os.path.exists(NOTES):
        return {}
    with open(NOTES, encoding="utf-8") as file:
        return json.load(file)


def run(parts, given):
    for part in parts:
        command = PARTS[part][2].format(seed=given.seed, schedules=given.schedules,
                                        kills=given.kills, most=given.most,
                                        seconds=given.seconds)
        done = subprocess.run(command.split(), cwd=ROOT, check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT if part.startswith("fuzz-") else None,
                              text=True)
        sys.stdout.write(done.stdout)
        note(part, done.stdout, command)


def page():
    notes = read_notes()
    lines = [HEAD, "## Runs", "",
             "| what | about | runs | faults injected | violations | command | commit, date |",
             "|---|---|---|---|---|---|---|"]
    for part, (what, about, _) in PARTS.items():
        n = notes.get(part)
        if not n:
            lines.append(f"| {what} | {about} | not run | | | `{part}` | |")
            continue
        remark = f" ({n['remark']})" if n["remark"] else ""
        lines.append(f"| {what} | {about} | {n['runs']}{remark} | {n['faults']} | "
                     f"{n['violations']} | `{n['command']}` | {n['commit']}, {n['date']} |")
    table = notes.get("plants", {}).get("table", [])
    if table:
        lines += ["", "## Planted bugs", "", "Bug, store, schedules until it was found, seconds, "
                  "what was seen.", "", "```text", *table, "```"]
    lines += ["", "## Bugs of ours that these tools found", "",
              "| date | what | found by | covered by now |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(bug)} |" for bug in BUGS]
    lines += ["", "Alarms that were the checker's own, mended there (seeds as of then):", ""]
    lines += [f"- {where}: {why}" for where, why in ALARMS]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("act", choices=["run", "note", "page"])
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--schedules", type=int, default=20000)
    parser.add_argument("--kills", type=int, default=10000)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--most", type=int, default=7200)
    given = parser.parse_args()
    if given.act == "run":
        run(given.parts, given)
    elif given.act == "note":
        with open(given.parts[1], encoding="utf-8") as file:
            note(given.parts[0], file.read(), " ".join(given.parts[2:]) or
                 PARTS[given.parts[0]][2])
    elif given.check:
        with open(PAGE, encoding="utf-8") as file:
            if file.read() != page():
                print("docs/VERIFICATION.md is not as `tools/verify.py page` prints it")
                return 1
    else:
        sys.stdout.write(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
