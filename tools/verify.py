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
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NOTES = os.path.join(ROOT, "docs", "verification.json")
PAGE = os.path.join(ROOT, "docs", "VERIFICATION.md")
PROMISES = os.path.join(ROOT, "docs", "GUARANTEES.md")
PLANTS = os.path.join(ROOT, "kit", "sim", "plants")
SEEN_MAX = 90  # characters of a message, as tests/sim/plants.py prints them
COLUMNS = 100
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
    "fuzz-cell": ("any bytes as a cell, under ASan and UBSan", "cells",
                  "tests/fuzz/run {seconds} cell"),
    "fuzz-bindings": ("any bytes as bindings, under ASan and UBSan", "cells", "tests/fuzz/run {seconds} bindings"),
    "fuzz-mask": ("any text through the stream mask, in any chunks, under ASan and UBSan", "code turns",
                  "tests/fuzz/run {seconds} mask"),
    "plants": ("planted bugs, each to be found within 10,000 schedules", "the simulator",
               "tests/sim/plants.py"),
    "rare": ("rare paths of the library that the simulator takes", "the simulator",
             "build/holdfast-sim-planted --rare --store sqlite --seed {seed} --schedules {schedules}"),
    "model": ("models of leases, with mutants", "G2 G3", "model/check --full"),
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

# How the figures of a part are to be read, by the first part of its name.
READING = {
    "sim": "A *step* is one action of a simulated worker, sender or operator. The *hash* is over all that happened: the "
           "same seed must return the same hash.",
    "fuzz": "An *edge* is a branch of the code that an input took. *Inputs that add* are those that were kept, since each "
            "took an edge that no earlier input took, or an edge more often than every earlier one. "
            "A cell is also cut after every operation and run again from its journal.",
    "plants": "Violations are bugs that were not found. Each bug is in the [table below](#planted-bugs).",
    "rare": "A *mark* counts how often a path is taken. Violations are paths that this store can take and did not.",
    "model": "A *search* is one model with one set of bounds; all states that it can reach were visited. A *mutant* is a "
             "model with a deliberate fault, which must be found.",
    "crash": "*Deaths* are processes that were killed: before, in the middle of and after each transaction. Fewer died "
             "than were started, since a transaction that writes nothing has no middle. The power fails at each I/O of the "
             "scenario on disks of four kinds, so there are more power failures than I/Os.",
    "crash-calls": "*Driver calls* are transactions and reads; *messages* are those of PostgreSQL's protocol. This run "
                   "covers all calls and a sample of the messages. A process dies before each call, and after each except the "
                   "first two.",
    "wire": "The connection is cut before and after each message of a verb's exchange with the server. *Done*: the verb "
            "found out that its transaction was committed, or repeated it, and returned success. *Not written*: it "
            "returned an error that says that nothing was written. *Unknown*: it returned `HF_EUNCERTAIN`. Then the "
            "verb is called again until it succeeds. A violation is an answer that the rows contradict, or a change "
            "that is not there exactly once in the end. The table is of one case. The other four stop "
            "a holder past its lease and check that its late calls are refused.",
    "soak": "*Acknowledged*: creates that were answered with success; each must have its row. *Settles told*: reports "
            "of an end that were answered with success. *Late writes refused*: those of workers whose lease another "
            "worker had taken. *Effects begun again*: work that was repeated after its worker was killed. *Woken*: "
            "workers that were stopped past their lease and continued. *Fleets*: how often all processes were killed "
            "together. *Terminated*: ended by SIGTERM. *Drained*: how long after the last kill all work was done.",
    "outside": "*Calls* are `holdfast` processes. *Not known*: exit code 8. *Not answered*: killed before they answered. "
               "*Stopped*: SIGSTOP for a while. *Backends*: server processes of PostgreSQL.",
}

BUGS = [
    ("2026-11-15", "`hf_lease_renew`, called with the struct that holds its token as the place of the answer, returned an "
     "empty token: the place was cleared before the token was copied",
     "the crash scenario, before any fault", "conformance `lease_renewal_may_be_told_into_its_own_lease`"),
    ("2026-11-15", "a claim that was sent a second time while the first was being executed took twice as many rows. No "
     "worker ran the additional ones, and the renewals of a pool kept their leases alive. Cause: the search for the "
     "first claim was made before the second one's transaction, not in it",
     "simulation, sqlite, seed 6, with requests that are executed twice at the same time",
     "`claim_fresh`, a guard in the transaction; planted bug `nonce_raced`"),
    ("2026-11-15", "a unit under a rate that was claimed by its id returned to the bucket the time for which its token had "
     "been reserved: up to one start too many", "simulation, model, seed 1395",
     "conformance `rate_begins_to_fill_when_a_unit_is_claimed_by_its_id`"),
    ("2026-11-15", "a repeated request for a debounced job moved the start of a job that waited for its retry",
     "simulation, sqlite, seed 1201", "`run/pool`: `a_debounce_leaves_a_retry_its_time`"),
    ("2026-11-15", "after a failover the fate of a transaction was asked for by its id on the promoted standby, where that "
     "id may be another transaction's: a close-out that was lost was reported as done", "`soak/failover.py`, synchronous failover, "
     "one run of several", "`a_commit_that_a_failover_lost_is_not_taken_for_anothers`; `soak/failover.py`"),
    ("2026-11-15", "a server that crashed assigns the ids of transactions that were not in its log again, on the same "
     "timeline: a claim whose answer was lost in an immediate stop was reported as done (7 times in 88 stops under load)",
     "`soak/failover.py`, restart", "`soak/outcome.py`, `soak/failover.py`"),
    ("2026-11-15", "a ROLLBACK that cannot allocate memory does not begin, and the transaction stayed open; the library "
     "ended the process", "every allocation of SQLite's failed once, 4 of 46,307",
     "`store/crash`: `every_allocation_of_sqlite_may_fail_once`, by parts with those four"),
    ("2026-11-15", "a fault of the soak: a build during a run replaced the program, the fleet's workers ended one by one, "
     "and the work was never done", "kill soak on PostgreSQL",
     "the fleet runs a copy; a process that ends by itself is a fault (`soak/check.py`)"),
    ("2026-11-15", "a sweep that had proof of a holder's death left the row to the next sweep if another process renewed "
     "the lease for that holder between the sweep's reading and its write", "simulation, sqlite, seed 1010215",
     "`store/sweep_race`: `a_renewal_in_the_middle_of_a_sweep_does_not_keep_a_dead_holder`"),
    ("2026-11-16", "the first repair of the two faults with transaction ids (failover, and crash) was not enough: the age "
     "of a transaction was taken before the caller asked the server, so an id that was assigned again could still be "
     "taken for its own, and a requeue or close-out that never happened was reported as done",
     "an outside soak with ten restarts; `soak/outside.py` found it 2 times in 2,549 transitions with 60 restarts",
     "lost answers are decided by evidence: `soak/outcome.py`, `soak/outside.py`"),
    ("2026-11-16", "three planted bugs (of the 48 at that time) were not in the program and counted as found "
     "(`fence_kept_in_sql`, `limit_stuck`, `ack_before_sync`): the simulator refused to run, and `tests/sim/plants.py` "
     "took that for a crash",
     "a review", "an edit that does not match fails the build (`sim/edits.py`); exit code 2 is no find"),
    ("2026-11-16", "`doctor` reported a healthy store on PostgreSQL as corrupt: the event of a refused call is written "
     "without a lock on its unit, so it may be out of order, and `doctor` counted it in order",
     "`soak/outside.py`, three runs of three on the day of the change", "`cli/doctor_postgres.py`: "
     "`a_refused_call_that_was_written_late_is_no_fault`"),
]

# Found and not yet explained: each is a bug of ours or of the checker until the cause is known.
OPEN = []

# Alarms of the checkers themselves, and why they were wrong.
ALARMS = [
    ("model, seed 1585261", "a close-out of an earlier generation was refused after a requeue. A requeue clears the tokens "
     "of the row, so the refusal is right"),
    ("sqlite, seed 1002261", "a sweep could not allocate the memory to describe a proof of death and left the row. The "
     "next sweep acts on it, which is allowed"),
    ("sqlite, seed 345", "a schedule was resumed after the clock had been set back. It continues with the first slot after "
     "that time, which is right"),
    ("disk, seed 25", "the simulator's own reading of the rows advances the clock. A lease that ended between a sweep and "
     "that reading was counted as forgotten by the sweep"),
    ("sqlite, seeds 1023500, 1071867, 1085701", "an operator's call that raised the store's incarnation was executed, and "
     "its answer lost. A monitor that saw a stall rightly extended no lease of the former incarnation"),
    ("sqlite, seed 1055067", "a row was claimed and handed back between two readings, and then timed out by its new "
     "deadline. The checker compared with the old one"),
    ("sqlite, seed 1082929", "extensions of leases after a stall were judged by the incarnation at the time of the reading, "
     "which had risen after the extension"),
    ("sqlite, seed 1086290", "a row was cancelled under a clock that is behind, while `prune` ran, and was pruned with its "
     "events. The cancel's time was before the cutoff, so that is right"),
    ("disk, seeds 1104, 1120", "the simulator ended the run before the last fault had struck"),
    ("model, seed 16", "the unit that an escalation creates has the grace of the default policy, not that of its kind's; "
     "the checker expected the latter"),
]

HEAD = """# Verification

This page is for readers who want to judge how far the promises of [GUARANTEES.md](GUARANTEES.md) were tested. It lists the long runs of the
randomized and exhaustive checkers, with their figures, the faults that they found, and proof that they can find any. How each checker works is
in [internals/simulation.md](internals/simulation.md). The test command `./test` runs a short form of each.

`tools/verify.py write` prints the page from the recorded figures (`docs/verification.json`). All runs were made on a machine with 2 cores that other work
shared. If a command asks for more than the run has, the run was stopped when its time was over.
"""

WORDS = """| promise | in short |
|---|---|
| [G1](GUARANTEES.md#g1-no-loss) no loss | what was acknowledged survives a crash of any process |
| [G2](GUARANTEES.md#g2-one-terminal-outcome) one terminal outcome | a unit (one piece of work) ends once |
| [G3](GUARANTEES.md#g3-fence) fence | no write under an older lease is accepted after a newer lease was granted |
| [G4](GUARANTEES.md#g4-order) order | claims follow priority and age; of one lane at most one unit runs |
| [G5](GUARANTEES.md#g5-atomic-change) atomic change | a change of status, its event and its lease are one transaction |
| [G7](GUARANTEES.md#g7-progress) progress | work whose holder is lost is acted on in bounded time |
| [G9](GUARANTEES.md#g9-bounds) bounds | every input and page has a bound, and beyond it nothing is written |

No run of this page is counted for the promises that have no row here (G6, G8, G10, G11); their
tests are named in [GUARANTEES.md](GUARANTEES.md).

| word | meaning on this page |
|---|---|
| schedule | one simulated history of many workers; its seed, a number, decides everything that happens in it. (Where a message says \"schedule ticks\", it means a schedule of the product, by the name ticks) |
| reference model | a second, simple implementation of the store, in memory |
| faults | in the section of a run what the checker made go wrong: injected events such as crashes and lost answers, killed processes, planted bugs. Only the section "Faults of Holdfast" lists errors of the product |
| violation | something that a promise does not allow, or, in the rows of planted bugs and rare paths, something that should have been found and was not |
| planted bug | a deliberate fault in a copy of the code, which a checker must find |
| rare path | a path of the library that only a race or a failure takes |
| transition | a change of a unit's status |
| soak | a run of real processes that are killed and stopped at random. The *kill soak* uses the library; the *outside soak* uses only the program `holdfast` and judges with plain SQL |
| lapse, grace, amnesty | the end of a lease that was not renewed; the time after it until an `expire` row is ended; the extension of leases after the store had stalled |
| rerunnable, owner_bound (*bound*), expire row | a unit by what happens when its holder is lost: it runs again, never again, or ends as `timeout` |
| token of a rate | the right to start one unit under a limit per time; a start spends it |
| code turn, cell, bindings, mask | a turn of an agent whose model writes programs; one such program; the variables it leaves; the code that finds it in the model's reply |
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
            f"{len(found)} runs at the same time" if len(found) > 1 else "")


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


def wrapped(text, indent=""):
    return textwrap.fill(text, COLUMNS, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def of_wire(faults):
    """The cuts of each verb as a table; the rest of what was printed as it is."""
    rows = re.findall(r"(\w+) +(\d+) cuts: (\d+) answered as done, (\d+) as not written, (\d+) as unknown", faults)
    return ["| verb | cuts | done | not written | unknown |", "|---|---:|---:|---:|---:|",
            *("| `" + "` | ".join((row[0], " | ".join(row[1:]))) + " |" for row in rows)]


def details(part, note, told):
    """How a part was run, what it printed, and how that is to be read unless it was told before."""
    what = PARTS[part][0]
    family = part if part in READING else part.split("-")[0]
    reading = READING[family] if family not in told else ""
    told.add(family)
    faults = re.sub(r"  +", ", ", note["faults"])
    lines = ["", f"### {what[0].upper() + what[1:]}", "",
             wrapped(f"`{note['command']}` (commit {note['commit']}, {note['date']})"), "",
             wrapped(f"- Runs: {note['runs']}" + (f" ({note['remark']})" if note["remark"] else ""), "  ")]
    if part == "wire":
        return [*lines, "", wrapped(reading), "", *of_wire(note["faults"])]
    if faults:
        lines.append(wrapped(f"- Faults: {faults}", "  "))
    return [*lines, "", wrapped(reading)] if reading else lines


def planted(rows):
    """Each planted bug as a row: what it breaks is in its own file."""
    lines = ["| bug | what it breaks | store | schedules | seconds | seen as |", "|---|---|---|---:|---:|---|"]
    for row in rows:
        name, store, schedules, seconds, seen = re.match(r"(\w+)\s+(\S+)\s+(\S+)\s+([\d.]+)\s+(.*)", row).groups()
        path = os.path.join(PLANTS, name + ".edit")
        with open(path, encoding="utf-8") as file:
            what = re.search(r"^what:\s+(.*)$", file.read(), re.M).group(1)
        cut = " …" if len(seen) == SEEN_MAX else ""
        lines.append(f"| `{name}` | {what} | {store} | {schedules} | {seconds} | {seen}{cut} |".replace("R ((null))", "R"))
    return lines


def page():
    notes = read_notes()
    lines = [wrapped_head(), WORDS, "## Runs", "",
             "| checker | promises | runs | violations | date |", "|---|---|---|---:|---|"]
    for part, (what, about, _) in PARTS.items():
        n = notes.get(part)
        if not n:
            lines.append(f"| {what} | {about} | not run yet (`{part}`) | | |")
            continue
        size = n["runs"].split(", ")[0].replace(" acknowledged", " acknowledged creates")
        lines.append(f"| [{what}](#{anchor(what)}) | {about} | {size} | {n['violations']} | {n['date']} |")
    told = set()
    for part in PARTS:
        if part in notes:
            lines += details(part, notes[part], told)
    table = notes.get("plants", {}).get("table", [])
    if table:
        lines += ["", "## Planted bugs", "",
                  wrapped("How many schedules and seconds the checker needed to find each bug, and the beginning of the "
                          "message that it then printed. R is the id of a row, u2 the name of a unit. A message such as "
                          "`claim: internal` means that the verb returned `HF_EINTERNAL`: an assertion in the library "
                          "noticed the fault before the checker did, which counts as found. Where the store is the name "
                          "of a test (`run/spool`), that test finds the bug. Bugs that were added after the run are not "
                          "listed."), "", *planted(table)]
    if OPEN:
        lines += ["", "## Found and not yet explained", "",
                  "`build/holdfast-sim --store sqlite --seed N --schedules 1 --trace` shows each again.", ""]
        lines += [f"- {where}: {what}" for where, what in OPEN]
    lines += ["", "## Faults of Holdfast that these tools found", "", "All of them are repaired.", "",
              "| date | fault | found by | covered by now |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(bug)} |" for bug in BUGS]
    lines += ["", "## False alarms", "",
              wrapped("Reports of a checker that were its own fault, and why the library was right. The checkers were "
                      "repaired; the seeds are those of that time."), ""]
    lines += [wrapped(f"- {where}: {why}.", "  ") for where, why in ALARMS]
    return "\n".join(lines) + "\n"


def wrapped_head():
    title, *paragraphs = HEAD.strip().split("\n\n")
    return "\n\n".join([title, *(wrapped(" ".join(p.split())) for p in paragraphs)]) + "\n"


def anchor(heading):
    return re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")


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
