#!/usr/bin/env python3
"""The outside judge of a kill soak: the logs of the processes, and the public views. It shares
no code with the library.

    soak/check.py FOLDER                exit 1 and a line a fault, if there is any
    soak/check.py --selftest FOLDER     plant faults in what was read; each must be found

FOLDER has soak.json (what was done), *.log and *.sink, and rows.json: the views, as soak.py
read them when all was over.

  lost      every acknowledged unit is there
  ends      every unit ended once, and nothing came after its end
  trails    each transition begins where the one before ended; fences rise by one per claim
  lanes     at most one unit of a lane ran at a time
  told      what a worker was told is in the trail, under its fence
  stale     no process was told yes after one with a higher fence had claimed
  effects   each effect was begun by a claim that is in the trail, each attempt once;
            every unit that is done had one
  progress  the kills happened, and so did the work
"""

import collections
import copy
import glob
import json
import os
import sys

TERMINAL = {"done", "failed", "timeout", "cancelled", "abandoned"}
SHOWN = 20
DRAIN_MOST_S = 60


class Run:
    """All that is known of a run."""

    def __init__(self, folder):
        with open(os.path.join(folder, "soak.json"), encoding="utf-8") as file:
            self.plan = json.load(file)
        with open(os.path.join(folder, "rows.json"), encoding="utf-8") as file:
            data = json.load(file)
        self.rows = {row[0]: row[1:] for row in data["rows"]}  # source, status, lane
        self.trails = collections.defaultdict(list)
        self.moves = []
        for event_id, work, source, target, fence, attempt in data["events"]:
            self.trails[work].append((event_id, source, target, fence, attempt))
            self.moves.append((work, source, target))
        self.acked, self.taken, self.settled, self.lost, self.effects = [], [], [], [], []
        for path in sorted(glob.glob(os.path.join(folder, "*.log"))):
            self.read(path, self.read_log)
        for path in sorted(glob.glob(os.path.join(folder, "*.sink"))):
            self.read(path, self.read_sink)

    @staticmethod
    def read(path, line_reader):
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        for line in lines[:-1]:  # a last line without its end was cut short by a kill
            line_reader(line.split(" "))

    def read_log(self, parts):
        kind, *rest = parts
        if kind == "T":
            self.taken.append((rest[0], int(rest[1]), int(rest[2])))
        elif kind == "S":
            self.settled.append((rest[0], int(rest[1]), rest[2], rest[3]))
        elif kind == "L":
            self.lost.append((rest[0], int(rest[1]), rest[2]))

    def read_sink(self, parts):
        if parts[0] == "A":
            self.acked.append((parts[1], parts[2]))
        else:
            self.effects.append((parts[0], int(parts[1]), int(parts[2]), int(parts[3])))


def check_lost(run):
    for work, source in run.acked:
        if work not in run.rows or run.rows[work][0] != source:
            yield f"{work} was acknowledged as {source} and is not there"
    for source, count in collections.Counter(row[0] for row in run.rows.values()).items():
        if count > 1:
            yield f"{source} is there {count} times"


def check_ends(run):
    for work, (_, status, _) in run.rows.items():
        ends = [t for _, _, t, _, _ in run.trails[work] if t in TERMINAL]
        if ends != [status]:
            yield f"{work} is {status}, its trail ends as {ends}"
        elif run.trails[work][-1][2] != status:
            yield f"{work}: something came after its end"


def check_trails(run):
    for work in run.rows:
        at, fence = None, 0
        for event, source, target, its_fence, _ in run.trails[work]:
            if source != at:
                yield f"{work}: event {event} begins at {source}, not at {at}"
            if its_fence != fence + (target == "running"):
                yield f"{work}: event {event} has fence {its_fence} after {fence}"
            at, fence = target, its_fence


def check_lanes(run):
    running = {}
    for work, source, target in run.moves:
        lane = run.rows[work][2] if work in run.rows else None
        if not lane:
            continue
        if target == "running":
            if lane in running:
                yield f"lane {lane}: {work} runs at the same time as {running[lane]}"
            running[lane] = work
        elif source == "running":
            running.pop(lane, None)


AFTER = {"close_out": {"done"}, "hand_back": {"queued"}, "wait": {"waiting_user"},
         "fail": {"retry_scheduled", "failed"}}


def check_told(run):
    claims = {(w, f) for w in run.trails for _, _, t, f, _ in run.trails[w] if t == "running"}
    ends = {(w, f): t for w in run.trails for _, s, t, f, _ in run.trails[w] if s == "running"}
    for work, fence, _ in run.taken:
        if (work, fence) not in claims:
            yield f"{work}: a worker was told of fence {fence}, which the trail has not"
    for work, fence, verb, code in run.settled:
        if code == "ok" and ends.get((work, fence)) not in AFTER[verb]:
            yield f"{work}: {verb} of fence {fence} was told ok; the trail says " \
                  f"{ends.get((work, fence))}"


def check_stale(run):
    # A settle that was told ok ends its own fence's stay; by the trail no process came between.
    seen = collections.Counter((w, f) for w, f, _, code in run.settled if code == "ok")
    for (work, fence), count in seen.items():
        if count > 1:
            yield f"{work}: fence {fence} settled {count} times"
    twice = collections.Counter((w, f) for w, f, _ in run.taken)
    for (work, fence), count in twice.items():
        if count > 1:
            yield f"{work}: fence {fence} was given out {count} times"


def check_effects(run):
    claims = {(w, f, a) for w in run.trails for _, _, t, f, a in run.trails[w]
              if t == "running"}
    count = collections.Counter((w, f) for w, _, _, f in run.effects)
    for work, _, attempt, fence in run.effects:
        if (work, fence, attempt) not in claims:
            yield f"{work}: an effect of attempt {attempt} (fence {fence}) without a claim"
        if count[work, fence] > 1:
            yield f"{work}: {count[work, fence]} effects under fence {fence}"
    had = {w for w, *_ in run.effects}
    for work, (_, status, _) in run.rows.items():
        if status == "done" and work not in had:
            yield f"{work} is done, and nothing was done"


def check_progress(run):
    plan = run.plan
    if not run.acked or not run.settled:
        yield "nothing was done"
    for kind, least in plan["least"].items():
        if plan["did"].get(kind, 0) < least:
            yield f"only {plan['did'].get(kind, 0)} times {kind}, {least} were wanted"
    for name in plan.get("ended", []):
        yield f"{name} ended although no test ended it"
    if plan["drain_s"] > plan.get("drain_most_s", DRAIN_MOST_S):
        yield f"drained {plan['drain_s']} s after the last kill"
    done = sum(1 for _, status, _ in run.rows.values() if status == "done")
    if run.rows and done < 0.95 * len(run.rows):
        yield f"only {done} of {len(run.rows)} units are done"


CHECKS = [check_lost, check_ends, check_trails, check_lanes, check_told, check_stale,
          check_effects, check_progress]


def faults(run):
    return [f"{check.__name__[6:]}: {fault}" for check in CHECKS for fault in check(run)]


def report(run):
    refused = sum(1 for *_, code in run.settled if code != "ok") + len(run.lost)
    repeats = len(run.effects) - len({(w, g) for w, g, *_ in run.effects})
    print(f"{len(run.acked)} acknowledged, {len(run.rows)} rows, {len(run.taken)} claims, "
          f"{len(run.settled)} settles told, {refused} late writes refused, "
          f"{repeats} effects begun again, {len(run.moves)} transitions")
    print("  ".join(f"{kind} {count}" for kind, count in sorted(run.plan["did"].items())),
          f" drained {run.plan['drain_s']} s after the last")


def judge(folder):
    run = Run(folder)
    found = faults(run)
    report(run)
    for fault in found[:SHOWN]:
        print(fault)
    print(f"{len(found)} faults")
    return not found


def plants(run):
    """Each damages what was read, and names the check that must see it."""
    work = next(w for w, row in run.rows.items() if row[1] == "done")

    def lose(r):
        r.acked.append(("gone", "gone-1"))

    def end_twice(r):
        r.trails[work].append((10**9, "done", "done", r.trails[work][-1][3], 1))

    def jump(r):
        event = r.trails[work][-1]
        r.trails[work][-1] = (event[0], "queued", *event[2:])

    def lower_fence(r):
        event = r.trails[work][-1]
        r.trails[work][-1] = (*event[:3], event[3] - 1, event[4])

    def make_up(r):
        r.settled.append((work, 999, "close_out", "ok"))

    def settle_twice(r):
        r.settled.append(next(s for s in r.settled if s[3] == "ok"))

    def steal_effect(r):
        r.effects.append((work, 0, 77, 77))

    def two_in_a_lane(r):
        lanes = [w for w, row in r.rows.items() if row[2]]
        if len(lanes) > 1:
            r.rows[lanes[1]] = (*r.rows[lanes[1]][:2], r.rows[lanes[0]][2])
            r.moves[:0] = [(lanes[0], "queued", "running"), (lanes[1], "queued", "running")]

    return [(lose, "lost"), (end_twice, "ends"), (jump, "trails"), (lower_fence, "trails"),
            (make_up, "told"), (settle_twice, "stale"), (steal_effect, "effects"),
            (two_in_a_lane, "lanes")]


def selftest(folder):
    whole, good = Run(folder), True
    for damage, wanted in plants(whole):
        run = copy.deepcopy(whole)
        damage(run)
        if not any(fault.startswith(wanted + ":") for fault in faults(run)):
            print(f"the judge does not see {damage.__name__}")
            good = False
    return good


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--selftest":
        sys.exit(0 if selftest(sys.argv[2]) else 1)
    sys.exit(0 if judge(sys.argv[1]) else 1)
