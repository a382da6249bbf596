#!/usr/bin/env python3
"""The outside judge of a hammer run: plain SQL on a read-only connection, and the logs of the
processes. It shares no code with the library.

    tests/proc/check_hammer.py FOLDER               exit 1 and a line a fault, if there is any
    tests/proc/check_hammer.py --selftest FOLDER    plant faults in copies; each must be found

What it holds against the store:
  units    every unit that was asked for is there once, and so is every acknowledged one
  ends     every unit has one terminal status, entered once, and nothing after it
  trails   each status follows from the one before; the last is the row's; counts agree
  holders  fences rise by one per claim; no process takes what is held; one running unit a lane
  told     what a process was told is in the trail as it was told, under its name and fence;
           without kills the trail holds nothing more
  times    a holder's time, as it saw it itself, overlaps no other's
  errors   no process was refused anything but a resume that another had won
  shares   without kills: no thread waited longer than 5 s for a call; and where an even share
           is at least 200 transactions, none had less than half or more than twice of it
"""

import collections
import glob
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

TERMINAL = {"done", "failed", "timeout", "cancelled", "abandoned"}
EDGES = {
    (None, "queued"), ("queued", "running"), ("running", "queued"),
    ("running", "waiting_user"), ("running", "retry_scheduled"), ("running", "done"),
    ("running", "failed"), ("running", "cancelled"), ("waiting_user", "queued"),
    ("retry_scheduled", "queued"),
}
SHARE_LEAST, SHARE_MOST = 0.5, 2.0
SHARE_COUNTS = 200
WAIT_MOST_NS = 5 * 10**9
SHOWN = 20

Event = collections.namedtuple("Event", "id type source target attempt fence actor payload")
Taken = collections.namedtuple("Taken", "who work fence attempt before after")
Settled = collections.namedtuple("Settled", "who work fence verb status before after")


ROWS_SQL = ("SELECT work_id, source_id, status, attempt_count, lease_fence, lane_key, owner,"
            " finished_at FROM runtime_work")
EVENTS_SQL = ("SELECT work_id, event_id, event_type, from_status, to_status, attempt, fence,"
              " actor, payload FROM runtime_work_event WHERE part = 0 ORDER BY event_id")


def ask_postgres(url, schema):
    """What the file says, from a schema; of its soundness the server knows best."""
    def ask(sql):
        plain = re.sub(r"SELECT (.*) FROM", r"SELECT json_build_array(\1) FROM", sql)
        done = subprocess.run(["psql", url, "-qAt", "-v", "ON_ERROR_STOP=1", "-c",
                               f"SET search_path = {schema}", "-c", plain],
                              check=True, text=True, stdout=subprocess.PIPE)
        return [json.loads(line) for line in done.stdout.splitlines()]
    return ["ok"], ask(ROWS_SQL), ask(EVENTS_SQL)


class Run:
    """All that is known of a run."""

    def __init__(self, folder, postgres=None):
        with open(os.path.join(folder, "hammer.json"), encoding="utf-8") as file:
            self.plan = json.load(file)
        self.hands = self.plan["processes"] * self.plan["threads"]
        if postgres:
            self.read_rows(*ask_postgres(*postgres))
        else:
            self.read_store(os.path.join(folder, "ledger.db"))
        self.created, self.taken, self.settled, self.resumed, self.errors = [], [], [], [], []
        self.calls = collections.defaultdict(set)  # of each thread: (before, after)
        for path in sorted(glob.glob(os.path.join(folder, "p*.log"))):
            self.read_log(os.path.basename(path)[:-4], path)

    def read_store(self, path):
        store = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
        store.execute("BEGIN")
        self.read_rows([row[0] for row in store.execute("PRAGMA integrity_check")],
                       store.execute(ROWS_SQL), store.execute(EVENTS_SQL))
        store.close()

    def read_rows(self, integrity, rows, events):
        self.integrity = integrity
        self.rows = {row[0]: tuple(row[1:]) for row in rows}
        self.trails = collections.defaultdict(list)
        self.moves = []
        for work, *rest in events:
            event = Event(*rest)
            if event.target:
                self.trails[work].append(event)
                self.moves.append((work, event))

    def read_log(self, who, path):
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        for line in lines[:-1]:  # a last line without its end was cut short by a kill
            kind, *rest = line.split(" ")
            if rest and rest[-1] == "~":  # so was this one, and its process came back
                continue
            if kind == "C":
                self.created.append((rest[0], rest[1], rest[2] == "1"))
            elif kind == "T":
                self.taken.append(Taken(who, rest[0], fence_of(rest[1]), *map(int, rest[2:])))
                self.calls[who].add((int(rest[3]), int(rest[4])))
            elif kind == "S":
                self.settled.append(Settled(who, rest[0], fence_of(rest[1]), rest[2], rest[3],
                                            int(rest[4]), int(rest[5])))
                self.calls[who].add((int(rest[4]), int(rest[5])))
            elif kind == "U":
                self.resumed.append(rest[0])
                self.calls[who].add((int(rest[1]), int(rest[2])))
            elif kind == "E":
                self.errors.append(f"{who}: {line[2:]}")


def fence_of(token):
    return int(token.split(".")[2])


def check_units(run):
    units = run.plan["units"]
    wanted = {f"p{p}-{n:06}" for p in range(run.hands)
              for n in range(units // run.hands + (p < units % run.hands))}
    there = collections.Counter(row[0] for row in run.rows.values())
    for source in sorted(wanted - set(there)):
        yield f"unit {source} is lost"
    for source, count in there.items():
        if count != 1 or source not in wanted:
            yield f"unit {source} is there {count} times"
    for work, source, _ in run.created:
        if work not in run.rows or run.rows[work][0] != source:
            yield f"{work} was acknowledged as {source} and is not there"
    first = collections.Counter(work for work, _, created in run.created if created)
    for work, count in first.items():
        if count > 1:
            yield f"{work} was created {count} times"


def check_ends(run):
    for work, (_, status, _, _, _, owner, finished_at) in run.rows.items():
        ends = [e.target for e in run.trails[work] if e.target in TERMINAL]
        if status not in TERMINAL or not finished_at or owner:
            yield f"{work} has not ended: {status}"
        if ends != [status]:
            yield f"{work} is {status}, its trail ends as {ends}"


def check_trails(run):
    for work in run.trails:
        if work not in run.rows:
            yield f"{work} has a trail and no row"
    for work, (_, status, attempts, _, _, _, _) in run.rows.items():
        at = None
        for event in run.trails[work]:
            if event.source != at:
                yield f"{work}: event {event.id} begins at {event.source}, not at {at}"
            if (event.source, event.target) not in EDGES:
                yield f"{work}: event {event.id} goes from {event.source} to {event.target}"
            at = event.target
        if at != status:
            yield f"{work} is {status}, its trail folds to {at}"
        claims = [e.attempt for e in run.trails[work] if e.target == "running"]
        if claims != list(range(1, attempts + 1)):
            yield f"{work} counts {attempts} attempts, its trail {claims}"
    if run.integrity != ["ok"]:
        yield f"integrity_check: {run.integrity[:3]}"


def check_holders(run):
    for work, trail in run.trails.items():
        fences = [e.fence for e in trail if e.target == "running"]
        if fences != list(range(1, len(fences) + 1)):
            yield f"{work}: the fences of its claims are {fences}"
        if work in run.rows and run.rows[work][3] != len(fences):
            yield f"{work}: its fence is {run.rows[work][3]} after {len(fences)} claims"
    lanes, held = {}, {}
    for work, event in run.moves:
        lane = run.rows[work][4] if work in run.rows else None
        if event.target == "running":
            if work in held:
                yield f"{work}: event {event.id} takes what {held[work]} holds"
            if lane and lane in lanes:
                yield f"{lane}: event {event.id} takes it while {lanes[lane]} runs"
            held[work] = event.actor
            if lane:
                lanes[lane] = work
        elif event.source == "running":
            held.pop(work, None)
            lanes.pop(lane, None)


def check_told(run):
    exact = run.plan["kills"] == 0
    claims = {(w, e.fence): e for w, e in run.moves if e.target == "running"}
    seen = collections.Counter((t.work, t.fence) for t in run.taken)
    for taken in run.taken:
        event = claims.get((taken.work, taken.fence))
        if seen[taken.work, taken.fence] > 1:
            yield f"{taken.work}: fence {taken.fence} was given out more than once"
        if not event or event.actor != taken.who or event.attempt != taken.attempt:
            yield f"{taken.who} was told of a claim of {taken.work} that the trail has not"
    ends = {(w, e.fence, e.target): e for w, e in run.moves if e.source == "running"}
    for settled in run.settled:
        event = ends.get((settled.work, settled.fence, settled.status))
        if not event or event.actor != settled.who:
            yield (f"{settled.who} was told that {settled.work} is {settled.status} by its "
                   f"{settled.verb}; the trail has it not")
    resumes = collections.Counter(w for w, e in run.moves if e.source == "waiting_user")
    told = collections.Counter(run.resumed)
    for work in told:
        if told[work] > resumes[work]:
            yield f"{work} was resumed {resumes[work]} times, {told[work]} were told of it"
    # A holder's own ends; the others are reclaims of the dead, each with its proof.
    own = [e for _, e in run.moves if e.source == "running" and
           "proof" not in json.loads(e.payload or "{}")]
    proofs = sum(1 for _, e in run.moves if e.source == "running") - len(own)
    if exact and proofs:
        yield f"{proofs} reclaims although no worker died"
    for name, told_of, stored in (("claims", len(run.taken), len(claims)),
                                  ("settlements", len(run.settled), len(own)),
                                  ("resumes", len(run.resumed), sum(resumes.values())),
                                  ("units", sum(c for *_, c in run.created), len(run.rows))):
        if told_of > stored or (exact and told_of != stored):
            yield f"{told_of} {name} were acknowledged, {stored} are stored"


def check_times(run):
    ends = {(s.work, s.fence): s.before for s in run.settled}
    by_work = collections.defaultdict(list)
    for taken in run.taken:
        by_work[taken.work].append(taken)
    for work, held in by_work.items():
        held.sort(key=lambda t: t.fence)
        for first, second in zip(held, held[1:]):
            until = ends.get((work, first.fence), first.after)
            if second.after < until:
                yield (f"{work}: {second.who} had it (fence {second.fence}) while {first.who} "
                       f"still did (fence {first.fence})")


def check_errors(run):
    yield from run.errors


def check_shares(run):
    if run.plan["kills"]:
        return
    counts = {who: len(calls) for who, calls in run.calls.items()}
    even = sum(counts.values()) / run.hands
    for who in (f"p{n}" for n in range(run.hands)):
        fair = SHARE_LEAST * even <= counts.get(who, 0) <= SHARE_MOST * even
        if even >= SHARE_COUNTS and not fair:
            yield f"{who} had {counts.get(who, 0)} transactions of {even:.0f}"
        longest = max((after - before for before, after in run.calls[who]), default=0)
        if longest > WAIT_MOST_NS:
            yield f"{who} waited {longest / 1e9:.1f} s for one call"


CHECKS = [check_units, check_ends, check_trails, check_holders, check_told, check_times,
          check_errors, check_shares]


def faults(run):
    return [f"{check.__name__[6:]}: {fault}" for check in CHECKS for fault in check(run)]


def describe(run):
    counts = sorted(len(calls) for calls in run.calls.values())
    waits = sorted(after - before for calls in run.calls.values() for before, after in calls)
    proofs = sum("proof" in (e.payload or "") for _, e in run.moves if e.source == "running")
    plan = run.plan
    return (f"{plan['units']} units, {plan['processes']} processes of {plan['threads']} threads, "
            f"{plan['kills']} kills, {plan['seconds']:.1f} s: {sum(counts)} transactions "
            f"({sum(counts) / plan['seconds']:.0f} a second; {counts[0]} to {counts[-1]} a "
            f"thread), {len(run.moves)} events, {proofs} reclaims; "
            f"a call p50 {waits[len(waits) // 2] / 1e6:.1f} ms, "
            f"p99 {waits[len(waits) * 99 // 100] / 1e6:.1f} ms, most {waits[-1] / 1e6:.0f} ms")


def judge(folder, postgres=None, out=sys.stdout):
    """`postgres`: the address and the schema, where the store is no file in the folder."""
    run = Run(folder, postgres)
    found = faults(run)
    for fault in found[:SHOWN]:
        print(fault, file=out)
    if len(found) > SHOWN:
        print(f"and {len(found) - SHOWN} more", file=out)
    print(describe(run) + f": {len(found)} faults", file=out)
    return not found


# Faults to plant. Each is SQL for the copy of the store, or a change of a copied log; {done}
# and {again} are the keys of a unit that is done and of one that was claimed twice.

PLANTED_SQL = {
    "a unit is lost": "DELETE FROM work_event WHERE seq = {done};"
                      "DELETE FROM work_state WHERE seq = {done};"
                      "DELETE FROM work_spec WHERE seq = {done}",
    "an event is lost": "DELETE FROM work_event WHERE event_id = (SELECT max(event_id)"
                        " FROM work_event WHERE seq = {done} AND to_status = 'running')",
    "the end is lost": "DELETE FROM work_event WHERE seq = {done} AND to_status = 'done'",
    "another end": "UPDATE work_state SET status = 'failed' WHERE seq = {done}",
    "no end": "UPDATE work_state SET status = 'queued', finished_at = NULL WHERE seq = {done}",
    "a second end": "INSERT INTO work_event (seq, event_type, from_status, to_status,"
                    " generation, attempt, fence, actor_kind, actor, created_at)"
                    " SELECT seq, event_type, 'done', 'failed', generation, attempt, fence,"
                    " actor_kind, actor, created_at FROM work_event"
                    " WHERE seq = {done} AND to_status = 'done'",
    "a fence twice": "UPDATE work_event SET fence = 1 WHERE seq = {again} AND fence = 2",
    "two holders": "UPDATE work_event SET from_status = 'queued', to_status = 'running'"
                   " WHERE event_id = (SELECT min(event_id) FROM work_event WHERE seq = {again}"
                   " AND from_status = 'running')",
    "another's claim": "UPDATE work_event SET actor = 'p99' WHERE seq = {done}"
                       " AND to_status = 'running'",
    "a unit that no call created": "UPDATE work_spec SET source_id = 'stranger' WHERE seq = {done}",
    "a lane runs twice": "UPDATE work_state SET lane_key = 'lane-x' WHERE seq IN ({overlap})",
}


def edit_log(folder, edit):
    for path in sorted(glob.glob(os.path.join(folder, "p*.log"))):
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        if edit(lines):
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
            return
    raise AssertionError("there is no line to change")


def first_line(kind, suits=lambda fields: True):
    """A change of the first line of that kind in a log, by a function of the line."""
    def planter(change):
        def edit(lines):
            for i, line in enumerate(lines):
                if line.startswith(kind + " ") and suits(line.split(" ")):
                    lines[i:i + 1] = change(line)
                    return True
            return False
        return edit
    return planter


def other_fence(line):
    fields = line.split(" ")
    token = fields[2].split(".")
    token[2] = str(int(token[2]) + 50)
    fields[2] = ".".join(token)
    return [" ".join(fields)]


def with_field(i, value):
    def change(line):
        fields = line.split(" ")
        fields[i] = value
        return [" ".join(fields)]
    return change


PLANTED_LOGS = {
    "a busy store": first_line("C")(lambda line: [line, "E claim busy the store is busy"]),
    "a claim that was not stored": first_line("T")(other_fence),
    "a claim twice": first_line("T")(lambda line: [line, line]),
    "a claim that no worker was told about": first_line("T")(lambda line: []),
    "an end that was not stored": first_line("S")(with_field(4, "timeout")),
    "a claim before the last holder's end":
        first_line("T", lambda fields: fields[3] == "2")(with_field(5, "1")),
    "a call that took too long": first_line("T")(with_field(4, "0")),
    "an end that no worker was told about": first_line("S")(lambda line: []),
}


def plant_sql(folder, sql):
    store = sqlite3.connect(os.path.join(folder, "ledger.db"), isolation_level=None)
    store.execute("PRAGMA ignore_check_constraints = 1")
    for name, in store.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        store.execute(f'DROP TRIGGER "{name}"')
    done, = store.execute("SELECT seq FROM work_state WHERE status = 'done' AND lane_key IS NULL"
                          " AND attempt_count = 1 ORDER BY seq LIMIT 1").fetchone()
    again, = store.execute("SELECT seq FROM work_state WHERE status = 'done' AND lane_key IS NULL"
                           " AND lease_fence = 2 ORDER BY seq LIMIT 1").fetchone()
    pair = store.execute(
        "SELECT a.seq, b.seq FROM work_event a JOIN work_event b ON b.event_id > a.event_id"
        " AND b.seq <> a.seq AND b.to_status = 'running' AND b.event_id < (SELECT min(c.event_id)"
        " FROM work_event c WHERE c.seq = a.seq AND c.event_id > a.event_id"
        " AND c.from_status = 'running') WHERE a.to_status = 'running' LIMIT 1").fetchone()
    overlap = ", ".join(map(str, pair))
    for statement in sql.format(done=done, again=again, overlap=overlap).split(";"):
        store.execute(statement)
    store.close()


def selftest(folder):
    """Every planted fault must be found, and a copy without one must pass."""
    missed = []
    cases = {**{n: (plant_sql, s) for n, s in PLANTED_SQL.items()},
             **{n: (edit_log, e) for n, e in PLANTED_LOGS.items()},
             None: (lambda folder, nothing: None, None)}
    for name, (plant, what) in cases.items():
        with tempfile.TemporaryDirectory(prefix="check-hammer-") as scratch:
            copy = os.path.join(scratch, "run")
            shutil.copytree(folder, copy)
            plant(copy, what)
            found = faults(Run(copy))
        print(f"{name or 'nothing planted'}: {len(found)} faults"
              + (f", the first {found[0]}" if found else ""))
        if bool(found) != bool(name):
            missed.append(name or "nothing planted")
    for name in missed:
        print(f"not judged rightly: {name}")
    return not missed


def main(args):
    if len(args) == 2 and args[0] == "--selftest":
        return 0 if selftest(args[1]) else 1
    if len(args) == 1 and not args[0].startswith("-"):
        return 0 if judge(args[0]) else 1
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
