#!/usr/bin/env python3
"""Turns whose workers are killed: any worker can finish them, and nothing is made up.

    tests/soak/kill_turns.py [--sessions 20] [--turns 5] [--engine file|postgres] [--seed N]

Two workers (tests/soak/turn_worker.c) serve sessions over the model server of the tests. Each turn
has four model calls and three calls of a tool of the class `keyed`. Until all is done, one of the two
is killed with -9 every 50 to 500 ms and started again. The judge is outside: the model server's
journal, the tool's own log, and plain SQL. It finds
  - each message that was acknowledged answered once;
  - transcripts that are those of a run without kills;
  - no call of the tool performed after the time at which its result was recorded (the log of the tool
    has times), and each repeated one declared repeatable, taken over, and under the same key;
  - one row of the journal per effect, all settled, each at its first attempt.
Before that, faults are planted into what was read of a run without kills: the judge must find each.
"""
import argparse
import collections
import copy
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

WORKER = os.environ["TURN_WORKER"]
SERVER = os.environ["MODEL_SERVER"]
DEADLINE = 170  # seconds
MODEL_CALLS, TOOL_CALLS = 4, 3  # of a turn
loader = importlib.machinery.SourceFileLoader(
    "pg", str(pathlib.Path(__file__).resolve().parent.parent / "support" / "pg"))
pg = importlib.util.module_from_spec(importlib.util.spec_from_loader("pg", loader))
loader.exec_module(pg)


class File:
    def __init__(self, folder):
        self.url = str(folder / "turns.db")

    def rows(self, sql):
        with sqlite3.connect(self.url, timeout=20) as db:
            return db.execute(sql).fetchall()

    def close(self):
        pass


class Postgres:
    def __init__(self, folder):
        self.folder = folder / "pg"
        pg.up(self.folder, False)
        self.url = pg.url(self.folder, pg.port_of(self.folder))

    def rows(self, sql):
        out = subprocess.run(["psql", self.url.split("&schema")[0], "-At", "-F", "\x1f", "-R", "\x1e", "-c",
                              "SET search_path = holdfast", "-c", sql],
                             check=True, text=True, stdout=subprocess.PIPE).stdout
        lines = out.split("\n", 1)[1].rstrip("\n").split("\x1e")
        return [tuple(line.split("\x1f")) for line in lines if line]

    def close(self):
        pg.down(self.folder)


class Model:
    def __init__(self, journal):
        self.journal = journal
        self.process = subprocess.Popen([SERVER, str(journal)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = self.process.stdout.readline().decode().strip()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def start(store, model, log):
    worker = subprocess.Popen([WORKER, store.url, model.port, str(log), "work"], stdout=subprocess.PIPE)
    assert worker.stdout.readline() == b"ready\n"
    return worker


def stop(workers):
    for worker in workers:
        worker.send_signal(signal.SIGTERM)
    codes = [worker.wait(30) for worker in workers]
    assert codes == [0] * len(workers), codes


def left(store):
    return int(store.rows("SELECT count(*) FROM runtime_work WHERE source_system = 'conversation'"
                          " AND status <> 'done'")[0][0])


def serve(store, model, log, draw):
    """Two workers until all is done; killed at random where `draw` is given. Returns the kills."""
    workers = [start(store, model, log) for _ in range(2)]
    kills, end = 0, time.monotonic() + DEADLINE
    while left(store) > 0:
        assert time.monotonic() < end, f"{left(store)} messages are not answered after {kills} kills"
        time.sleep(draw.uniform(0.05, 0.5) if draw else 0.1)
        if draw:
            victim = draw.randrange(2)
            workers[victim].kill()
            workers[victim].wait()
            workers[victim] = start(store, model, log)
            kills += 1
    stop(workers)
    return kills


def transcripts(store):
    """Per session its records, with turns and calls named by their order."""
    found = collections.defaultdict(list)
    for session, record in store.rows(
            "SELECT s.session_id, n.record FROM node n JOIN session s ON s.session_key = n.session_key"
            " WHERE n.ordinal < s.record_count ORDER BY n.session_key, n.ordinal"):
        found[session].append(record)
    result = {}
    for session, records in found.items():
        names = {}
        result[session] = re.sub(
            r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\bc[a-z0-9]{24}\b",
            lambda m, names=names: names.setdefault(m.group(), f"#{len(names)}"), "\n".join(records))
    return result


def read(store, model, log):
    """What outsiders know of a run: plain SQL, the tool's own log, the model server's journal."""
    turns = store.rows("SELECT count(*), count(DISTINCT turn_id) FROM runtime_turn WHERE finished_at IS NOT NULL")
    effects = store.rows("SELECT session_id, turn_id, effect_key, kind, recovery, status, attempt, taken_over,"
                         " coalesce(settled_at, 0) FROM runtime_effect ORDER BY session_id, turn_id, effect_key")
    names = ("session", "turn", "key", "kind", "recovery", "status", "attempt", "taken_over", "settled_at")
    return {"turns": [int(n) for n in turns[0]],
            "effects": [dict(zip(names, row[:6] + tuple(map(int, row[6:])))) for row in effects],
            "performed": [(key, int(at)) for key, at in map(str.split, log.read_text().splitlines())],
            "asked": [json.dumps(json.loads(line)["body"], sort_keys=True)
                      for line in model.journal.read_text().splitlines()],
            "transcripts": transcripts(store)}


def tool_faults(effects, log):
    performed = collections.Counter(key for key, _ in log)
    calls = {f"{e['session']}/{e['turn']}/{e['key']}": e for e in effects if e["kind"] == "tool_call"}
    for key in set(performed) ^ set(calls):
        yield f"{key} is in the log or in the journal, not in both"
    for key, count in performed.items():
        if count > 1 and key in calls:
            if not calls[key]["taken_over"]:
                yield f"{key} was performed again, and no worker had lost it"
            if calls[key]["recovery"] not in ("safe", "keyed"):
                yield f"{key} was performed again, and its class forbids that"
    for key, at in log:
        if key in calls and at > calls[key]["settled_at"]:
            yield f"{key} was performed at {at}, after its result was recorded at {calls[key]['settled_at']}"


def model_faults(effects, asked):
    calls = [e for e in effects if e["kind"] == "llm_call"]
    if len(asked) != len(calls):
        yield f"{len(asked)} requests were made, the journal has {len(calls)}"
    if sum(count > 1 for count in asked.values()) > sum(e["taken_over"] for e in calls):
        yield "a request was made again, and no worker had lost it"


def faults(run, turns, want):
    """Everything that is wrong with a run of so many turns."""
    effects = run["effects"]
    if run["turns"] != [turns, turns]:
        yield f"{run['turns']} turns have ended, not {turns}"
    for kind, per_turn in (("llm_call", MODEL_CALLS), ("tool_call", TOOL_CALLS)):
        count = sum(e["kind"] == kind for e in effects)
        if count != turns * per_turn:
            yield f"{count} effects of kind {kind}, not {turns * per_turn}"
    for effect in effects:
        if effect["status"] != "done":
            yield f"{effect} has no result"
        if effect["attempt"] > 1:
            yield f"{effect} was tried again, and nothing had failed"
    yield from tool_faults(effects, run["performed"])
    yield from model_faults(effects, collections.Counter(run["asked"]))
    for session in set(want) | set(run["transcripts"]):
        if run["transcripts"].get(session) != want.get(session):
            yield f"the transcript of {session} is {run['transcripts'].get(session)}, not {want.get(session)}"


# ---- planted faults ----------------------------------------------------------------------------

def of_kind(run, kind):
    return next(e for e in run["effects"] if e["kind"] == kind)


def change(kind, **fields):
    return lambda run: of_kind(run, kind).update(fields)


def perform_again(run, late_ms=0, **fields):
    """One more line in the log for a call that was performed once, `late_ms` after its result was recorded."""
    effect = next(e for e in run["effects"] if e["kind"] == "tool_call" and not e["taken_over"])
    effect.update(fields)
    key = f"{effect['session']}/{effect['turn']}/{effect['key']}"
    run["performed"].append((key, effect["settled_at"] + late_ms))


def ask_again(run):
    for effect in run["effects"]:
        effect["taken_over"] = 0
    run["asked"].append(run["asked"][0])


def change_transcript(run):
    session = next(iter(run["transcripts"]))
    run["transcripts"][session] = run["transcripts"][session].replace("question", "another", 1)


def double_transcript(run):
    session = next(iter(run["transcripts"]))
    run["transcripts"][session] += "\n" + run["transcripts"][session]


PLANTED = {
    "a message is not answered": lambda run: run["turns"].__setitem__(slice(None), [n - 1 for n in run["turns"]]),
    "a message is answered twice": lambda run: run["turns"].__setitem__(0, run["turns"][0] + 1),
    "an intent is missing": lambda run: run["effects"].remove(of_kind(run, "llm_call")),
    "a model call is open": change("llm_call", status="started"),
    "a tool call is open": change("tool_call", status="started"),
    "an outcome was made unknown": change("tool_call", status="unknown"),
    "a call has another attempt": change("tool_call", attempt=2),
    "a recorded call was performed again": perform_again,
    "a call that was taken over was performed again after its result was recorded":
        lambda run: perform_again(run, late_ms=1, taken_over=1),
    "a call that asks was performed again": lambda run: perform_again(run, taken_over=1, recovery="ask"),
    "a call under another key": lambda run: run["performed"].append(("s0/t/9/c/1", 0)),
    "a recorded call was never performed": lambda run: run.update(performed=run["performed"][:0]),
    "a model call without an intent": lambda run: run["asked"].append("{}"),
    "a recorded model call was never made": lambda run: run.update(asked=run["asked"][:0]),
    "a recorded model call was made again": ask_again,
    "a record is another": change_transcript,
    "a history is there twice": double_transcript,
    "a history is missing": lambda run: run["transcripts"].popitem(),
}


def selftest(run, turns, want):
    """Every planted fault must be found."""
    missed = []
    for name, plant in PLANTED.items():
        planted = copy.deepcopy(run)
        plant(planted)
        if not list(faults(planted, turns, want)):
            missed.append(name)
            print(f"planted, and not found: {name}")
    print(f"{len(PLANTED)} faults planted, {len(PLANTED) - len(missed)} found")
    assert not missed
    sound = copy.deepcopy(run)
    perform_again(sound, taken_over=1)  # by the next worker, before there was a result
    assert not list(faults(sound, turns, want))


# ---- runs --------------------------------------------------------------------------------------

def run(engine, folder, options, draw):
    """Sends, serves until all is answered, and returns what outsiders know, and the kills."""
    folder.mkdir()
    os.chmod(folder, 0o755)
    store, model, log = engine(folder), Model(folder / "journal"), folder / "log"
    try:
        subprocess.run([WORKER, store.url, model.port, str(log), "send", str(options.sessions),
                        str(options.turns)], check=True)
        kills = serve(store, model, log, draw)
        return read(store, model, log), kills
    finally:
        model.close()
        store.close()


def again(lines):
    return len(lines) - len(set(lines))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--sessions", type=int, default=20)
    options.add_argument("--turns", type=int, default=5)
    options.add_argument("--engine", choices=["file", "postgres"])
    options.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = options.parse_args()
    print(f"seed {options.seed}")
    root = pathlib.Path(tempfile.mkdtemp(prefix="hf-turns-"))
    os.chmod(root, 0o755)
    try:
        turns = options.sessions * options.turns
        calm, _ = run(File, root / "calm", options, None)
        want = calm["transcripts"]
        wrong = list(faults(calm, turns, want))
        assert not wrong, wrong[:5]
        selftest(calm, turns, want)
        for name, engine in (("file", File), ("postgres", Postgres)):
            if options.engine in (None, name):
                got, kills = run(engine, root / name, options, random.Random(options.seed))
                wrong = list(faults(got, turns, want))
                assert not wrong, wrong[:5]
                print(f"{name}: {kills} kills, {again(got['performed'])} tool calls and"
                      f" {again(got['asked'])} model calls made again")
    finally:
        shutil.rmtree(root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
