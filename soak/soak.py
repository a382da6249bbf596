#!/usr/bin/env python3
"""The kill soak: a fleet of real processes on one store, killed, stopped past their leases and
woken, terminated, and killed all together; then an outside judge.

    soak/soak.py                         the short form, as in the tests
    soak/soak.py --kills 10000           the long form; prints progress and a report
    --store sqlite|postgres              (default sqlite)
    --workers N, --submitters N, --ttl MS, --every MS (between two acts of the killer)
    --seed N, --folder DIR (kept), --disk (on a disk instead of memory)

Acts: 55 % SIGKILL of a worker, 35 % SIGSTOP until its lease has lapsed, then SIGCONT (a
zombie wakes), 9 % SIGTERM, 1 % SIGKILL of the whole fleet. The program is
build/soak-worker, or what SOAK_WORKER names."""

import argparse
import glob
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

import check

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORKER = os.environ.get("SOAK_WORKER", os.path.join(ROOT, "build", "soak-worker"))
PG = os.path.join(ROOT, "tests", "support", "pg")
ROWS = "SELECT work_id, source_id, status, lane_key FROM runtime_work"
EVENTS = ("SELECT event_id, work_id, from_status, to_status, fence, attempt"
          " FROM runtime_work_event WHERE to_status IS NOT NULL AND part = 0 ORDER BY event_id")
OPEN = "SELECT count(*) FROM runtime_work WHERE finished_at IS NULL"
LEFT = ("SELECT work_id, status, gate, owner, lease_remaining_ms, next_retry_at, due_at, status_reason"
        " FROM runtime_work WHERE finished_at IS NULL ORDER BY work_id LIMIT 20")
DRAIN_S = 120
EXPLAIN_S = 30


class Sqlite:
    def __init__(self, folder):
        self.path = os.path.join(folder, "soak.db")
        self.url = self.path

    def ask(self, sql):
        store = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=30)
        try:
            return store.execute(sql).fetchall()
        finally:
            store.close()

    def close(self):
        pass


class Postgres:
    def __init__(self, folder):
        self.folder = os.path.join(folder, "pg")
        self.url = subprocess.run([PG, "up", self.folder, "--durable"], check=True,
                                  capture_output=True, text=True).stdout.strip()

    def ask(self, sql):
        text = subprocess.run(
            ["psql", "-qAtX", self.url, "-c", "SET search_path = holdfast", "-c",
             f"SELECT json_agg(row_to_json(q)) FROM ({sql}) q"],
            check=True, capture_output=True, text=True).stdout
        return [list(row.values()) for row in json.loads(text.strip() or "[]") or []]

    def close(self):
        subprocess.run([PG, "down", self.folder], check=False)


def keep_program(folder, program):
    """The program and its library as they are now: a build meanwhile must not end the fleet."""
    libraries = glob.glob(os.path.join(os.path.dirname(program), "libholdfast.so.?"))
    program = shutil.copy2(program, folder)
    for library in libraries:
        shutil.copy2(library, folder)
    return program, {**os.environ, "LD_LIBRARY_PATH": folder}


class Fleet:
    """Worker processes, and what is done to them. What a worker is, subclasses say."""

    def __init__(self, folder, given, program):
        self.folder, self.given = folder, given
        self.program, self.environment = keep_program(folder, program)
        self.deserted = []
        self.dice = random.Random(given.seed)
        self.workers, self.asleep, self.born = {}, {}, 0
        self.did = {"killed": 0, "woken": 0, "terminated": 0, "fleets": 0}

    def worker_args(self, name):
        """The arguments of a worker of that name."""
        raise NotImplementedError

    def start(self, *args):
        return subprocess.Popen([self.program, *map(str, args)], env=self.environment)

    def hire(self):
        name = f"w{self.born}"
        self.born += 1
        self.workers[name] = self.start(*self.worker_args(name))

    def lose(self, name, how):
        process = self.workers.pop(name)
        self.asleep.pop(name, None)
        process.send_signal(how)
        if how == signal.SIGTERM:
            process.send_signal(signal.SIGCONT)
        self.await_end(process)
        self.hire()

    def await_end(self, process):
        """Meanwhile others are woken: one that sleeps in a write keeps every process out of a file, also
        the one that is to end."""
        until = time.monotonic() + 30
        while process.poll() is None and time.monotonic() < until:
            self.wake()
            time.sleep(0.002)
        if process.poll() is None:
            process.kill()
            process.wait()

    def wake(self):
        now = time.monotonic()
        for name in [n for n, until in self.asleep.items() if until <= now]:
            del self.asleep[name]
            self.workers[name].send_signal(signal.SIGCONT)
            self.did["woken"] += 1

    def act(self):
        """One act of the killer."""
        self.wake()
        self.muster()
        awake = [name for name in self.workers if name not in self.asleep]
        fate = self.dice.random()
        if fate < 0.01:
            for name in list(self.workers):
                self.lose(name, signal.SIGKILL)
                self.did["killed"] += 1
            self.did["fleets"] += 1
        elif not awake:
            return
        elif fate < 0.10:
            self.lose(self.dice.choice(awake), signal.SIGTERM)
            self.did["terminated"] += 1
        elif fate < 0.45:
            name = self.dice.choice(awake)
            self.workers[name].send_signal(signal.SIGSTOP)
            self.asleep[name] = time.monotonic() + self.given.ttl / 1000 + \
                self.dice.uniform(0.1, 1.0)
        else:
            self.lose(self.dice.choice(awake), signal.SIGKILL)
            self.did["killed"] += 1

    def wake_all(self):
        while self.asleep:
            self.wake()
            time.sleep(0.05)

    def muster(self):
        """A process that ended by itself is noted, and its place is filled: a fleet that
        is gone drains nothing, and must not look like a store that is stuck."""
        for name, process in list(self.workers.items()):
            if process.poll() is not None:
                self.deserted.append(f"{name} ({process.returncode})")
                del self.workers[name]
                self.asleep.pop(name, None)
                self.hire()

    def processes(self):
        return list(self.workers.values())

    def dismiss(self):
        for process in self.processes():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self.processes():
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class LedgerFleet(Fleet):
    """Workers, submitters and tenders of units."""

    def __init__(self, store, folder, given):
        super().__init__(folder, given, WORKER)
        self.store = store
        # Made and migrated before any process is killed: a schema that was begun by a process that
        # died is an operator's to finish (`holdfast migrate`).
        if self.start_as("submit", "first", 0).wait():
            raise SystemExit("no store")
        self.submitters = [self.start_as("submit", f"s{i}", given.units)
                           for i in range(given.submitters)]
        self.tenders = [self.start_as("tend", f"t{i}") for i in range(2)]
        for _ in range(given.workers):
            self.hire()

    def start_as(self, role, name, *args):
        return self.start(role, self.store.url, name, self.folder, *args)

    def worker_args(self, name):
        return "work", self.store.url, name, self.folder, self.given.ttl

    def processes(self):
        return [*self.workers.values(), *self.tenders, *self.submitters]

    def drain(self):
        """No more kills: everything must come to its end. Seconds it took."""
        began = time.monotonic()
        self.wake_all()
        for process in self.submitters:
            process.send_signal(signal.SIGTERM)
            process.wait()
        while self.store.ask(OPEN)[0][0] and time.monotonic() - began < DRAIN_S:
            self.muster()
            time.sleep(0.2)
        took = round(time.monotonic() - began, 1)
        if took > EXPLAIN_S:
            self.explain()
        return took

    def muster(self):
        super().muster()
        for i, process in enumerate(self.tenders):
            if process.poll() is not None:
                self.deserted.append(f"t{i} ({process.returncode})")
                self.tenders[i] = self.start_as("tend", f"t{i}-{len(self.deserted)}")

    def explain(self):
        """What a slow drain waits for: the rows, the fleet, the machine."""
        print(f"load {os.getloadavg()}; ended by themselves: {self.deserted or 'none'}; left:")
        for row in self.store.ask(LEFT):
            print("  ", *row)


def soak(folder, given):
    store = Sqlite(folder) if given.store == "sqlite" else Postgres(folder)
    fleet, began, told = LedgerFleet(store, folder, given), time.monotonic(), 0.0
    try:
        while fleet.did["killed"] < given.kills and time.monotonic() - began < given.most:
            time.sleep(given.every / 1000)
            fleet.act()
            if time.monotonic() - told > 10:
                told = time.monotonic()
                print(f"{told - began:6.0f} s  {fleet.did}", flush=True)
        drain_s = fleet.drain()
        rows = {"rows": store.ask(ROWS), "events": store.ask(EVENTS)}
    finally:
        fleet.dismiss()
        store.close()
    least = {"killed": min(given.kills, 10), "woken": min(given.kills // 8, 3)}
    # A short run says little about how long a drain takes on a busy machine.
    drain_most_s = 60 if given.kills >= 1000 else DRAIN_S
    plan = {"ended": fleet.deserted, "did": fleet.did, "drain_s": drain_s, "drain_most_s": drain_most_s, "least": least, "store": given.store,
            "seconds": round(time.monotonic() - began), "ttl_ms": given.ttl, "seed": given.seed}
    for name, what in (("rows", rows), ("soak", plan)):
        with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as file:
            json.dump(what, file)
    good = check.judge(folder)
    return check.selftest(folder) and good


def run(whole, given):
    """`whole` in a folder that is kept if it was given, or if not all is well. An exit code."""
    memory = "/dev/shm" if not given.disk and os.access("/dev/shm", os.W_OK) else None
    folder = given.folder or tempfile.mkdtemp(prefix="holdfast-soak-", dir=memory)
    os.makedirs(folder, exist_ok=True)
    if given.store == "postgres":
        os.chmod(folder, 0o755)  # the server is another user's
    good = whole(folder, given)
    if good and not given.folder:
        shutil.rmtree(folder)
    elif not good:
        print(f"kept: {folder}")
    return 0 if good else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--submitters", type=int, default=2)
    parser.add_argument("--units", type=int, default=1000000, help="of each submitter, at most")
    parser.add_argument("--ttl", type=int, default=750)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--most", type=float, default=1e9, help="seconds before the drain")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder")
    parser.add_argument("--disk", action="store_true")
    return run(soak, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
