#!/usr/bin/env python3
"""The outside judge of runners under fire: the logs that the commands wrote themselves, what the
driver noted, /proc, and the program's public --json. It shares no code with the library.

    tests/proc/check_fire.py FOLDER              a line a fault, and exit 1 if there is any
    tests/proc/check_fire.py --selftest FOLDER   plant faults in what was read; each must be found

  lost      what ran, and what a wrapper told of, is one unit; every unit has ended
  twice     an owner_bound command ran once at most; a rerunnable one once per attempt,
            never while another runs, and not again once its unit had ended
  made_up   an outcome is what the command's own log, its own close-out or the kill says
  trails    each transition begins where the last one ended, each claim raises the fence by one
  told      what a wrapper answered is what the ledger says
  left      no process and no lock of the run is left
"""

import collections
import copy
import json
import os
import subprocess
import sys

MARK = "HOLDFAST_FIRE"  # in the environment of all that the driver starts
TERMINAL = {"done", "failed", "timeout", "cancelled", "abandoned"}
SHOWN = 20
HOLDFAST = os.environ.get("HOLDFAST", "holdfast")


def ask(db, *args):
    done = subprocess.run([HOLDFAST, "--db", db, "--json", *args], capture_output=True,
                          text=True, check=False)
    if done.returncode:
        sys.exit(f"{args}: {done.stdout}{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def read_rows(db):
    rows, after = {}, []
    while True:
        (page,) = ask(db, "work", "list", "--all", "--limit", "500", *after)
        rows.update({row["work_id"]: row for row in page["items"]})
        if not page.get("next"):
            return rows
        after = ["--after", page["next"]]


def read_trails(db):
    trails = collections.defaultdict(list)
    for event in ask(db, "work", "tail", "--after", "start", "--no-follow")[:-1]:
        trails[event["work_id"]].append(event)
    for trail in trails.values():
        trail.sort(key=lambda event: event["event_id"])  # the feed's order is that of transactions
    return trails


def read_log(path):
    """One execution, or None: it was ended before it did anything."""
    run = {"overlap": False, "said": None, "end": None, "grown": []}
    with open(path, encoding="utf-8") as file:
        for line in file.read().split("\n")[:-1]:
            word, *rest = line.split(" ")
            if word == "begin":
                run.update(key=rest[0], work=rest[1], attempt=int(rest[2]), pid=int(rest[3]))
            elif word == "overlap":
                run["overlap"] = True
            elif word == "grown":
                run["grown"].append(int(rest[0]))
            else:
                run[word] = int(rest[0])
    return run if "key" in run else None


def processes_of(folder):
    """Everything that carries the run's mark, as /proc has it."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                marked = f"{MARK}={folder}".encode() in file.read().split(b"\0")
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                command = file.read().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if marked:
            found.append(f"{pid} {command}")
    return found


def locks_of(folder):
    """The lock files under which something was started. One of a runner that died before that
    says nothing, and stays for a minute."""
    found = []
    for at, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "pg"]  # the server's own
        paths = [os.path.join(at, name) for name in names if name.endswith(".lock")]
        found += [path for path in paths if os.path.getsize(path) > 0]
    return found


class Run:
    """All that is known of a run."""

    def __init__(self, folder):
        with open(os.path.join(folder, "plan.json"), encoding="utf-8") as file:
            plan = json.load(file)
        self.plan = {command["key"]: command for command in plan["commands"]}
        self.rows = read_rows(plan["db"])
        self.trails = read_trails(plan["db"])
        logs = os.path.join(folder, "logs")
        runs = [read_log(os.path.join(logs, name)) for name in sorted(os.listdir(logs))]
        self.runs = [run for run in runs if run]
        self.killed = {}  # pid: kind
        self.codes = collections.defaultdict(list)  # key: exit codes of its wrappers
        with open(os.path.join(folder, "fire.log"), encoding="utf-8") as file:
            for line in file.read().splitlines():
                self.read_fire(*line.split(" "))
        self.answers = {}
        for name in os.listdir(os.path.join(folder, "answers")):
            with open(os.path.join(folder, "answers", name), encoding="utf-8") as file:
                text = file.read()
            if text.endswith("\n"):
                self.answers[name] = json.loads(text)
        self.left = processes_of(folder)
        self.locks = locks_of(folder)

    def read_fire(self, word, *rest):
        if word == "kill":
            self.killed[int(rest[1])] = rest[0]
        elif word == "ended" and rest[0] == "wrapper":
            self.codes[rest[1]].append(int(rest[3]))

    def key_of(self, row):
        return row["payload"]["argv"][1]

    def of_attempt(self, work, attempt):
        return [run for run in self.runs if run["work"] == work and run["attempt"] == attempt]

    def end_of(self, work):
        """The transition that ended a unit."""
        return next((e for e in self.trails[work] if e["to_status"] in TERMINAL), None)

    def spared(self, key):
        """None of its wrappers was killed."""
        return all(code >= 0 for code in self.codes[key])


# ---- the checks ------------------------------------------------------------------------------

def check_lost(run):
    units = collections.Counter(run.key_of(row) for row in run.rows.values())
    for key, count in units.items():
        if count > 1:
            yield f"{key} has {count} units"
    for one in run.runs:
        row = run.rows.get(one["work"])
        if not row or run.key_of(row) != one["key"]:
            yield f"{one['key']} ran as {one['work']}, which is not its unit"
    for name, answer in run.answers.items():
        if answer["ok"] and answer["work_id"] not in run.rows:
            yield f"{name}: its wrapper told of {answer['work_id']}, which is not there"
    for key in run.plan:
        if run.spared(key) and not units[key]:
            yield f"{key} was never made, though its wrapper was not killed"
    for work, row in run.rows.items():
        if row["status"] not in TERMINAL:
            yield f"{work} is {row['status']}"


def check_twice(run):
    executions = collections.Counter((one["key"], one["attempt"]) for one in run.runs)
    for (key, attempt), count in executions.items():
        if count > 1:
            yield f"{key} ran {count} times in attempt {attempt}"
    for key, count in collections.Counter(one["key"] for one in run.runs).items():
        if count > 1 and run.plan[key]["disposition"] != "rerunnable":
            yield f"{key} is {run.plan[key]['disposition']} and ran {count} times"
    for one in run.runs:
        if one["overlap"]:
            yield f"{one['key']} ran twice at the same time"
        claims = [e for e in run.trails[one["work"]]
                  if e["to_status"] == "running" and e["attempt"] == one["attempt"]]
        if len(claims) != 1:
            yield f"{one['key']} ran in attempt {one['attempt']}, which no worker claimed"
        end = run.end_of(one["work"])
        if end and one["attempt"] > end["attempt"]:
            yield f"{one['key']} ran after its unit had ended"


def true_end(run, work, row, end):
    """What is wrong with a unit's outcome, or None."""
    command = run.plan[run.key_of(row)]
    status, runs = row["status"], run.of_attempt(work, end["attempt"])
    codes = [one["end"] for one in runs]
    error = row["error_class"] or ""
    if status == "done" and command["mode"] == "itself":
        return None if runs and row["result"]["summary"] == command["key"] else "its command did not report that"
    if status == "done":
        return None if codes == [0] else f"the command's log says {codes}"
    if status == "abandoned":
        return abandoned_rightly(run, command, runs, end)
    if status != "failed":
        return "no call asked for that"
    if row["failures"] < row["max_attempts"]:
        return f"only {row['failures']} of {row['max_attempts']} failures"
    if error.startswith("exit_"):
        return None if codes == [int(error[5:])] else f"{error}, and the log says {codes}"
    if error.startswith("signal_"):
        return None if codes == [None] else f"{error}, and the log says {codes}"
    if error == "holder_dead":
        return None if command["disposition"] == "rerunnable" else "it is owner_bound"
    return None if error == "lease_lost" else f"of class {error}"


def abandoned_rightly(run, command, runs, end):
    if command["disposition"] != "owner_bound":
        return "it is not owner_bound"
    proof = (end["payload"] or {}).get("proof")
    if not proof:
        return "without a proof"
    if run.killed.get(proof["holder"]["pid"]) != "wrapper":
        return f"its runner {proof['holder']['pid']} was not killed"
    if any(one["said"] == 0 for one in runs):
        return "it had closed itself out"
    return None


def check_made_up(run):
    for work, row in run.rows.items():
        end = run.end_of(work)
        wrong = true_end(run, work, row, end) if end else None
        if wrong:
            yield f"{run.key_of(row)} is {row['status']}: {wrong}"
    for work, trail in run.trails.items():
        for event in trail:
            yield from check_event(run, work, event)


def check_event(run, work, event):
    payload = event["payload"] or {}
    runs = run.of_attempt(work, event["attempt"])
    if event["event_type"] == "process_exited" and "exit_code" in payload:
        if [one["end"] for one in runs] != [payload["exit_code"]]:
            yield f"{work}: exit code {payload['exit_code']} is not what the command logged"
    if event["event_type"] == "process_started" and runs:
        if [one["pid"] for one in runs] != [payload["pid"]]:
            yield f"{work}: process {payload['pid']} is not what ran"
    proof = payload.get("proof")
    if proof and proof["holder"]["pid"] not in run.killed:
        yield f"{work}: {proof['holder']['pid']} was taken for dead, and the test did not kill it"


def check_trails(run):
    for work, row in run.rows.items():
        at, fence, ended = None, 0, False
        for event in run.trails[work]:
            target = event["to_status"]
            if target is None:
                continue
            if ended:
                yield f"{work}: {event['event_type']} after its end"
            if event["from_status"] != at:
                yield f"{work}: event {event['event_id']} begins at {event['from_status']}, not {at}"
            if event["fence"] != fence + (target == "running"):
                yield f"{work}: event {event['event_id']} has fence {event['fence']} after {fence}"
            at, fence, ended = target, event["fence"], target in TERMINAL
        if at != row["status"]:
            yield f"{work} is {row['status']}, its trail ends at {at}"


def check_told(run):
    by_key = {run.key_of(row): row for row in run.rows.values()}
    for key, command in run.plan.items():
        row = by_key.get(key)
        if not row:
            continue
        codes, answer = run.codes[key], run.answers.get(f"{key}.1")
        if not run.spared(key):
            continue
        if not answer or not answer["ok"]:
            yield f"{key}: its wrapper failed with {codes}: {answer}"
        elif command["disposition"] == "owner_bound":
            runs = run.of_attempt(row["work_id"], 1)
            if answer["status"] != row["status"]:
                yield f"{key}: its wrapper told of {answer['status']}, it is {row['status']}"
            if [one["end"] for one in runs] != codes:
                yield f"{key}: its wrapper ended with {codes}, its log says otherwise"
        elif answer["status"] in TERMINAL and answer["status"] != row["status"]:
            yield f"{key}: its wrapper told of {answer['status']}, it is {row['status']}"


def check_left(run):
    for process in run.left:
        yield f"process {process} is left"
    for lock in run.locks:
        yield f"lock {lock} is left"


CHECKS = {"lost": check_lost, "twice": check_twice, "made_up": check_made_up,
          "trails": check_trails, "told": check_told, "left": check_left}


def faults(run):
    return [f"{name}: {fault}" for name, check in CHECKS.items() for fault in check(run)]


def judge(folder):
    run = Run(folder)
    found = faults(run)
    for fault in found[:SHOWN]:
        print(fault)
    ends = collections.Counter(row["status"] for row in run.rows.values())
    again = sum(row["attempt_count"] > 1 for row in run.rows.values())
    print(f"{len(run.rows)} units ({', '.join(f'{n} {s}' for s, n in sorted(ends.items()))}), "
          f"{len(run.runs)} executions, {again} units ran again; {len(found)} faults")
    return not found


# ---- the judge, judged -----------------------------------------------------------------------

def first(items, suits):
    return next(item for item in items if suits(item))


def unit(run, **wanted):
    """The first unit like that whose command's log is whole."""
    def suits(row):
        runs = run.of_attempt(row["work_id"], row["attempt_count"])
        return runs and all(row.get(name, run.plan[run.key_of(row)].get(name)) == value
                            for name, value in wanted.items())
    return first(run.rows.values(), suits)


def drop_unit(run):
    del run.rows[run.runs[0]["work"]]


def unit_twice(run):
    row = unit(run, status="done")
    run.rows["another"] = {**row, "work_id": "another"}


def left_running(run):
    unit(run, status="done")["status"] = "running"


def run_twice(run, disposition):
    row = unit(run, disposition=disposition)
    (one,) = run.of_attempt(row["work_id"], row["attempt_count"])
    run.runs.append({**one, "pid": one["pid"] + 1})


def run_again_later(run):
    row = unit(run, disposition="owner_bound")
    run.runs.append({**run.of_attempt(row["work_id"], 1)[0], "attempt": 2})


def overlap(run):
    run.runs[0]["overlap"] = True


def done_without_end(run):
    row = unit(run, status="done", mode="plain")
    run.of_attempt(row["work_id"], row["attempt_count"])[0]["end"] = None


def other_code(run):
    row = unit(run, status="failed", error_class="exit_3")
    run.of_attempt(row["work_id"], row["attempt_count"])[0]["end"] = 0


def done_from_abandoned(run):
    row = unit(run, status="abandoned", mode="plain")
    row["status"] = run.end_of(row["work_id"])["to_status"] = "done"
    run.of_attempt(row["work_id"], 1)[0]["end"] = None


def abandoned_unkilled(run):
    row = unit(run, status="abandoned")
    del run.killed[run.end_of(row["work_id"])["payload"]["proof"]["holder"]["pid"]]


def abandoned_without_proof(run):
    row = unit(run, status="abandoned")
    del run.end_of(row["work_id"])["payload"]["proof"]


def too_few_failures(run):
    unit(run, status="failed", max_attempts=2)["failures"] = 1


def timed_out(run):
    row = unit(run, status="done")
    row["status"] = run.end_of(row["work_id"])["to_status"] = "timeout"


def event_gone(run):
    row = unit(run, status="done")
    trail = run.trails[row["work_id"]]
    trail.remove(first(trail, lambda e: e["to_status"] == "running"))


def fence_falls(run):
    row = unit(run, status="done")
    first(run.trails[row["work_id"]], lambda e: e["to_status"] == "running")["fence"] = 0


def after_the_end(run):
    row = unit(run, status="done")
    trail = run.trails[row["work_id"]]
    trail.append({**trail[-1], "from_status": "done", "to_status": "queued"})


def told_wrong(run):
    key = first(run.plan, lambda k: run.plan[k]["disposition"] == "owner_bound" and
                run.codes[k] == [0])
    run.answers[f"{key}.1"]["status"] = "failed"


def wrapper_failed(run):
    key = first(run.plan, lambda k: run.codes[k] == [0])
    run.answers[f"{key}.1"] = {"ok": False, "error": {}}


def process_left(run):
    run.left.append("1 fire_child")


def lock_left(run):
    run.locks.append("x.lock")


PLANTED = {
    "lost": (drop_unit, unit_twice, left_running),
    "twice": (lambda run: run_twice(run, "owner_bound"), lambda run: run_twice(run, "rerunnable"),
              run_again_later, overlap),
    "made_up": (done_without_end, other_code, done_from_abandoned, abandoned_unkilled,
                abandoned_without_proof, too_few_failures, timed_out),
    "trails": (event_gone, fence_falls, after_the_end),
    "told": (told_wrong, wrapper_failed),
    "left": (process_left, lock_left),
}


def selftest(folder):
    """Every planted fault is found by the check that is for it."""
    run, good, count = Run(folder), True, 0
    for name, plants in PLANTED.items():
        for plant in plants:
            changed = copy.deepcopy(run)
            plant(changed)
            count += 1
            if not list(CHECKS[name](changed)):
                print(f"not found by {name}: {getattr(plant, '__name__', plant)}")
                good = False
    print(f"{count} planted faults" + (", all found" if good else ""))
    return good


def main(args):
    if len(args) == 2 and args[0] == "--selftest":
        return 0 if selftest(args[1]) else 1
    if len(args) == 1 and not args[0].startswith("-"):
        return 0 if judge(args[0]) else 1
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
