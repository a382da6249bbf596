#!/usr/bin/env python3
"""Turns whose workers are killed: any worker can finish them, and nothing is made up.

    tests/soak/kill_turns.py [--sessions 20] [--turns 5] [--engine file|postgres] [--seed N]

Two workers (tests/soak/turn_worker.c) serve sessions over the model server of the tests. Each turn
has four model calls and three calls of a tool of the class `keyed`. Until all is done, one of the two
is killed with -9 every 50 to 500 ms and started again. The judge is outside: the model server's
journal, the tool's own log, and plain SQL. It finds
  - each message that was acknowledged answered once;
  - transcripts that are those of a run without kills;
  - no effect with a recorded result performed again, and each repeated one declared repeatable, taken
    over, and under the same key;
  - one row of the journal per effect, all settled, each at its first attempt.
"""
import argparse
import collections
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


def judge_effects(store, turns, log):
    rows = store.rows("SELECT session_id, turn_id, effect_key, kind, recovery, status, attempt, taken_over"
                      " FROM runtime_effect")
    calls = {f"{r[0]}/{r[1]}/{r[2]}": r for r in rows if r[3] == "tool_call"}
    models = [r for r in rows if r[3] == "llm_call"]
    assert len(models) == turns * MODEL_CALLS, len(models)
    assert len(calls) == turns * TOOL_CALLS, len(calls)
    for row in rows:
        assert row[5] == "done", row
        assert row[3] == "llm_call" or int(row[6]) == 1, row
    performed = collections.Counter(log.read_text().splitlines())
    assert set(performed) == set(calls), set(performed) ^ set(calls)
    for key, count in performed.items():
        assert count == 1 or (int(calls[key][7]) == 1 and calls[key][4] in ("safe", "keyed")), (key, count)
    return sum(count - 1 for count in performed.values()), models


def judge_models(model, models):
    bodies = collections.Counter(json.dumps(json.loads(line)["body"], sort_keys=True)
                                 for line in model.journal.read_text().splitlines())
    assert len(bodies) == len(models), (len(bodies), len(models))
    again = sum(count > 1 for count in bodies.values())
    taken = sum(int(row[7]) for row in models)
    assert again <= taken, (again, taken)
    return sum(bodies.values()) - len(bodies)


def run(engine, folder, options, draw):
    folder.mkdir()
    os.chmod(folder, 0o755)
    store, model, log = engine(folder), Model(folder / "journal"), folder / "log"
    try:
        subprocess.run([WORKER, store.url, model.port, str(log), "send", str(options.sessions),
                        str(options.turns)], check=True)
        kills = serve(store, model, log, draw)
        turns = options.sessions * options.turns
        done = store.rows("SELECT count(*), count(DISTINCT turn_id) FROM runtime_turn WHERE finished_at IS NOT NULL")
        assert [int(n) for n in done[0]] == [turns, turns], done
        tools, models = judge_effects(store, turns, log)
        answers = judge_models(model, models)
        return transcripts(store), (kills, tools, answers)
    finally:
        model.close()
        store.close()


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
        want, _ = run(File, root / "calm", options, None)
        for name, engine in (("file", File), ("postgres", Postgres)):
            if options.engine in (None, name):
                got, (kills, tools, answers) = run(engine, root / name, options, random.Random(options.seed))
                assert got == want, next((s, got.get(s), want[s]) for s in want if got.get(s) != want[s])
                print(f"{name}: {kills} kills, {tools} tool calls and {answers} model calls made again")
    finally:
        shutil.rmtree(root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
