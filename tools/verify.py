#!/usr/bin/env python3
"""What was run to verify Holdfast, as a page.

    tools/verify.py run PART…        run, and note the figures in docs/verification.json
    tools/verify.py note PART FILE   note figures from the output of a run made elsewhere, with the
                                     options below as they were given there
    tools/verify.py write            write docs/VERIFICATION.md, and the figures in docs/GUARANTEES.md
    tools/verify.py page --check     exit 1 if they are not as written
    --seed N, --schedules N, --kills N, --most SECONDS, --commit ID (of a run made elsewhere);
    of a fuzzer --seconds N, of an outside soak --transitions N --restarts N

Parts: sim-model sim-sqlite sim-disk sim-turns fuzz-cell fuzz-bindings fuzz-mask plants rare model
crash crash-calls crash-messages wire soak-sqlite soak-postgres outside-sqlite outside-postgres. `run`
takes minutes to hours; it shows the tool's own progress. All figures are taken from what the parts print."""

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
PROMISES = os.path.join(ROOT, "docs", "GUARANTEES.md")
BEGIN, END = "<!-- figures: tools/verify.py write -->", "<!-- end of figures -->"

# part: what it is, which guarantees it is about, the command
PARTS = {
    "sim-model": ("simulation over the reference model", "G1 G2 G3 G4 G5 G7",
                  "build/holdfast-sim --store model --seed {seed} --schedules {schedules}"),
    "sim-sqlite": ("simulation over SQLite in memory", "G1 G2 G3 G4 G5 G7",
                   "build/holdfast-sim --store sqlite --seed {seed} --schedules {schedules}"),
    "sim-disk": ("simulation over SQLite on a failing disk", "G1 G2 G3 G4 G5 G7",
                 "build/holdfast-sim --store disk --seed {seed} --schedules {schedules}"),
    "sim-turns": ("simulation of turns with cells alone, over the reference model",
                  "code turns", "build/holdfast-sim --store model --only turn --seed {seed} "
                  "--schedules {schedules}"),
    "fuzz-cell": ("any bytes as a cell, under ASan and UBSan, each also cut after every operation", "cells",
                  "tests/fuzz/run {seconds} cell"),
    "fuzz-bindings": ("any bytes as bindings, likewise", "cells", "tests/fuzz/run {seconds} bindings"),
    "fuzz-mask": ("any text through the stream mask, in any chunks, likewise", "code turns",
                  "tests/fuzz/run {seconds} mask"),
    "plants": ("planted bugs, each to be found within 10,000 schedules", "the simulator",
               "tests/sim/plants.py"),
    "rare": ("rare paths of the library that the simulator takes", "the simulator",
             "build/holdfast-sim-planted --rare --store sqlite --seed {seed} --schedules {schedules}"),
    "model": ("models of leases and pinned claims, with mutants", "G2 G3", "model/check --full"),
    "crash": ("crash at every I/O, allocation (ours and SQLite's) and transaction, on SQLite", "G1 G2 G5 G9",
              "env HF_CRASH_ALL=1 build/tests/test_store_crash"),
    "crash-calls": ("killed before and after every call, on PostgreSQL", "G1 G2 G5",
                    "env HF_CRASH_ALL=calls build/tests/test_store_pg_crash"),
    "crash-messages": ("killed before and after messages of the wire, on PostgreSQL", "G1 G2 G5",
                       "env HF_CRASH_ALL=1 HF_CRASH_PART={part} build/tests/test_store_pg_crash"),
    "wire": ("the wire to PostgreSQL cut at every message", "G1 G2 G3 G5", "build/tests/test_proc_wire all"),
    "soak-sqlite": ("kill soak on SQLite", "G1 G2 G3 G4 G7",
                    "soak/soak.py --kills {kills} --every 30 --most {most}"),
    "soak-postgres": ("kill soak on PostgreSQL", "G1 G2 G3 G4 G7",
                      "soak/soak.py --store postgres --kills {kills} --most {most}"),
    "outside-sqlite": ("outside soak on SQLite", "G1 G2 G3 G4 G5",
                       "soak/outside.py --transitions {transitions} --seed {seed}"),
    "outside-postgres": ("outside soak on PostgreSQL, with restarts of the server", "G1 G2 G3 G4 G5",
                         "soak/outside.py --store postgres --transitions {transitions} --restarts {restarts} --seed {seed}"),
}

BUGS = [
    ("2026-11-15", "`hf_lease_renew` into the struct that its token stood in gave an empty token back: "
     "the out-parameter was cleared before the token was copied",
     "the crash scenario, before any fault", "conformance `lease_renewal_may_be_told_into_its_own_lease`"),
    ("2026-11-15", "the same claim, sent again while it was being executed, took as many rows once more, which nobody ran "
     "and a pool's renewals kept alive: the repeat was looked for before the claim's transaction, not in it",
     "simulation, sqlite, seed 6, once requests could race themselves",
     "`claim_fresh`, a guard in the transaction; planted bug `nonce_raced`"),
    ("2026-11-15", "a unit under a rate that was claimed by its id gave the bucket the time for which its token had been "
     "reserved: up to one start too many", "simulation, model, seed 1395",
     "conformance `rate_begins_to_fill_when_a_unit_is_claimed_by_its_id`"),
    ("2026-11-15", "a debounced job took its time from one that waited for its retry",
     "simulation, sqlite, seed 1201", "`run/pool`: `a_debounce_leaves_a_retry_its_time`"),
    ("2026-11-15", "an answer lost in a failover was asked for by its transaction's id on the promoted standby, where that "
     "id may be another transaction's: a close-out that was lost was told as done", "`soak/failover.py`, synchronous failover, "
     "one run of several", "`a_commit_that_a_failover_lost_is_not_taken_for_anothers`; `soak/failover.py`"),
    ("2026-11-15", "a server that crashed gives the ids of what was not in its log to others, on the same timeline: a claim "
     "whose answer was lost in an immediate stop was told as done (7 times in 88 stops under load)",
     "`soak/failover.py`, restart", "`soak/outcome.py`, `soak/failover.py`"),
    ("2026-11-15", "a ROLLBACK that found no memory may not have begun, and the transaction stayed open: the process ended "
     "itself", "every allocation of SQLite's failed once, 4 of 46,307",
     "`store/crash`: `every_allocation_of_sqlite_may_fail_once`, by parts with those four"),
    ("2026-11-15", "a build under a running soak ended the fleet's workers one by one, so nothing drained: it looked "
     "like a store that is stuck", "kill soak on PostgreSQL, ended undrained",
     "the fleet runs a copy; whoever ends by itself is a fault (`soak/check.py`)"),
    ("2026-11-15", "a sweep that had proof of a holder's death left the row to the next sweep when a sidecar's renewal came "
     "between its reading and its write", "simulation, sqlite, seed 1010215",
     "`store/sweep_race`: `a_renewal_in_the_middle_of_a_sweep_does_not_keep_a_dead_holder`"),
    ("2026-11-16", "the mend of the two above was none: the age of a transaction was taken before the caller looked for the "
     "server, so an id that was used again after a crash could still be taken for its own, and a requeue or close-out that "
     "never happened was answered as done", "an outside soak with ten restarts; `soak/outside.py` found it 2 times in 2,549 "
     "transitions with 60 restarts", "lost answers are decided by evidence: `soak/outcome.py`, `soak/outside.py`"),
    ("2026-11-16", "three of the 48 planted bugs were not planted (`fence_kept_in_sql`, `limit_stuck`, `ack_before_sync`) and "
     "counted as found: the simulator refused to run, and `tests/sim/plants.py` took that for a crash",
     "a review from outside", "an edit that does not match fails the build (`sim/edits.py`); exit 2 has found nothing"),
    ("2026-11-16", "`doctor` called a healthy store on PostgreSQL corrupt: the event of a refused call takes no lock of its "
     "unit, so its counts may be older than its place in the trail, and all events were folded",
     "`soak/outside.py`, three runs of three on the day of the change", "`cli/doctor_postgres.py`: "
     "`a_refused_call_that_was_written_late_is_no_fault`"),
]

# Found and not yet explained: each is a bug of ours or of the checker until the cause is known.
OPEN = []

# Alarms of the checkers themselves, and why they were wrong.
ALARMS = [
    ("model, seed 1585261", "a close-out of an earlier generation was refused after a requeue: rightly, a requeue "
     "forgets tokens"),
    ("sqlite, seed 1002261", "a sweep that had no memory to describe a proof of death passed over the row: the next "
     "one finds it"),
    ("sqlite, seed 345", "a schedule resumed at a clock that went back goes on with the first slot after that"),
    ("disk, seed 25", "a look reads the clock too: what lapsed between a sweep and the look was blamed on the sweep"),
    ("sqlite, seeds 1023500, 1071867, 1085701", "a bump whose answer was lost had ended the incarnation of a lease: a "
     "monitor that saw a stall rightly gave it no amnesty"),
    ("sqlite, seed 1055067", "a row was claimed and handed back between two looks, and timed out by its new time: it was "
     "held against the old one"),
    ("sqlite, seed 1082929", "amnesty was judged by the incarnation of the look, after a bump that came later"),
    ("sqlite, seed 1086290", "a row was cancelled, at a clock that is behind, while prune was at work, and went with its "
     "events"),
    ("disk, seeds 1104, 1120", "the last fault was still to come when the simulator itself stopped the schedules"),
    ("model, seed 16", "the unit of an escalation has the default's grace, not its kind's"),
]

HEAD = """# Verification

Printed by `tools/verify.py page` from the figures of runs (`docs/verification.json`); how each works is described in
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
        most = max((int(n) for n in re.findall(r"(?:sqlite|disk|model|run/\w+)\s+(\d+)\s", text)), default=0)
        return (f"{found.group(2)} bugs", found.group(2), int(found.group(2)) - int(found.group(1)),
                f"{found.group(1)} found, the slowest after {most:,} schedules")
    if part == "model":
        states = [int(n) for n in re.findall(r"(\d+)\s+[\d.]+\s+(?:holds|found)", text)]
        mutants = len(re.findall(r"  found$", text, re.M))
        wrong = int(re.search(r"(\d+) wrong", text).group(1))
        return (f"{len(states)} searches, {sum(states):,} states", f"{mutants} mutants", wrong,
                "mutants all found" if not wrong else "")
    if part == "rare":
        hits = [int(n) for n in re.findall(r"^rare +\S+ +(\d+) times", text, re.M)]
        missed = re.findall(r"^rare +(\S+) .*NEVER$", text, re.M)
        total, _ = sums(text, ["schedules", "faults"])
        return (f"{total['schedules']:,} schedules", f"{total['faults']:,}", len(missed),
                f"{sum(1 for n in hits if n)} of {len(hits)} marks reached; the others need a failing disk")
    if part == "crash-messages":
        tried = [(int(n), int(m)) for n, m in re.findall(r"^# (\d+) deaths at (\d+) messages", text, re.M)]
        failed = len(re.findall(r"^\[  FAILED  \] \w+$|^not ok", text, re.M))
        return (f"{sum(n for n, _ in tried):,} processes killed",
                f"of two deaths at each of {max((m for _, m in tried), default=0):,} messages", failed,
                f"{len(tried)} parts")
    if part.startswith("crash") or part == "wire":
        notes = re.findall(r"^# (.*)$", text, re.M)
        failed = len(re.findall(r"^\[  FAILED  \] \w+$|^not ok", text, re.M))
        passed = len(re.findall(r"^\[       OK \]|^ok ", text, re.M))
        return f"{passed} cases", "; ".join(notes), failed, ""
    if part.startswith("outside-"):
        told = re.findall(r"^\d+ transitions, \d+ units.*$", text, re.M)
        did = re.findall(r"^backends ended .*$", text, re.M)
        found = [int(n) for n in re.findall(r"^(\d+) violations$", text, re.M)]
        return added(told), added(did), sum(found) if found else -1, f"{len(found)} runs" if len(found) > 1 else ""
    told = re.findall(r"^\d+ acknowledged.*$", text, re.M)
    did = re.findall(r"^fleets .*$", text, re.M)
    found = [int(n) for n in re.findall(r"^(\d+) faults$", text, re.M)]
    return (added(told), added(did), sum(found) if found else -1,
            f"{len(found)} runs beside each other" if len(found) > 1 else "")


def added(lines):
    """Reports of one shape as one: their counts added, of their seconds the most."""
    if not lines:
        return "-"
    columns = zip(*(re.findall(r"\d+\.\d+|\d+", line) for line in lines))
    totals = iter([str(max(map(float, column)) if "." in column[0] else sum(map(int, column)))
                   for column in columns])
    return re.sub(r"\d+\.\d+|\d+", lambda _: next(totals), lines[0])


def note(part, text, command, at=None):
    runs, faults, violations, remark = figures(part, text)
    notes = read_notes()
    notes[part] = {"runs": runs, "faults": faults, "violations": violations, "remark": remark,
                   "command": command, "commit": at or commit(),
                   "date": datetime.date.today().isoformat()}
    if part == "plants":
        notes["plants"]["table"] = [line for line in text.splitlines()
                                    if re.match(r"\w+\s+(sqlite|disk|model|run/\w+)\s", line)]
    with open(NOTES, "w", encoding="utf-8") as file:
        json.dump(notes, file, indent=1, sort_keys=True)
        file.write("\n")
    print(f"{part}: {runs}; {faults}; {violations} violations")


def read_notes():
    if not os.path.exists(NOTES):
        return {}
    with open(NOTES, encoding="utf-8") as file:
        return json.load(file)


def command_of(part, given):
    return PARTS[part][2].format(seed=given.seed, schedules=given.schedules, kills=given.kills,
                                 most=given.most, part=given.part, seconds=given.seconds,
                                 transitions=given.transitions, restarts=given.restarts)


def run(parts, given):
    for part in parts:
        command = command_of(part, given)
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
    if OPEN:
        lines += ["", "## Found and not yet explained", "",
                  "`build/holdfast-sim --store sqlite --seed N --schedules 1 --trace` shows each again.", ""]
        lines += [f"- {where}: {what}" for where, what in OPEN]
    lines += ["", "## Bugs of ours that these tools found", "",
              "| date | what | found by | covered by now |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(bug)} |" for bug in BUGS]
    lines += ["", "Alarms that were the checker's own, mended there (seeds as of then):", ""]
    lines += [f"- {where}: {why}" for where, why in ALARMS]
    return "\n".join(lines) + "\n"


def promises():
    """docs/GUARANTEES.md with the last figures of each checker and the promises that it covers."""
    with open(PROMISES, encoding="utf-8") as file:
        text = file.read()
    notes = read_notes()
    all_of_them = [f"G{n}" for n in range(1, 11)]
    lines = ["", "| checker | " + " | ".join(all_of_them) + " | last run | violations |",
             "|---|" + "---|" * len(all_of_them) + "---|---|"]
    for part, (what, about, _) in PARTS.items():
        covers = about.split()
        if part in notes and any(g in covers for g in all_of_them):
            marks = " | ".join("x" if g in covers else "" for g in all_of_them)
            lines.append(f"| {what} | {marks} | {notes[part]['runs']} | {notes[part]['violations']} |")
    before, rest = text.split(BEGIN)
    return before + BEGIN + "\n".join(lines) + "\n\n" + END + rest.split(END)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("act", choices=["run", "note", "page", "write"])
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--part", default="1/1", help="K/N of the messages to die at")
    parser.add_argument("--commit")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--schedules", type=int, default=20000)
    parser.add_argument("--kills", type=int, default=10000)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--most", type=int, default=7200)
    parser.add_argument("--transitions", type=int, default=20000)
    parser.add_argument("--restarts", type=int, default=40)
    given = parser.parse_args()
    if given.act == "run":
        run(given.parts, given)
    elif given.act == "note":
        with open(given.parts[1], encoding="utf-8") as file:
            note(given.parts[0], file.read(), command_of(given.parts[0], given), given.commit)
    elif given.act == "write":
        for path, text in ((PAGE, page()), (PROMISES, promises())):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    elif given.check:
        for path, text in ((PAGE, page()), (PROMISES, promises())):
            with open(path, encoding="utf-8") as file:
                if file.read() != text:
                    print(f"{os.path.relpath(path, ROOT)} is not as `tools/verify.py write` writes it")
                    return 1
    else:
        sys.stdout.write(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
