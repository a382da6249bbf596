#!/usr/bin/env python3
"""The outside soak: workers in Python and shell that use the program alone, and a judge that shares
nothing with the library (judge.py).

    soak/outside.py                                       the short form, as in the tests
    soak/outside.py --store postgres --transitions 20000 --restarts 40    the long form
    --store sqlite|postgres (default sqlite), --workers N, --ttl MS, --every MS, --most SECONDS
    --seed N, --folder DIR (kept)

While the workers work, the driver kills and stops them, single calls of theirs, and monitors. On
PostgreSQL it also restarts the server as a crash does, half of the time with calls stopped across the
restart, and ends backends; half of the workers go through PgBouncer. Then everything must come to
its end. HOLDFAST names the program (default build/holdfast)."""

import argparse
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

import judge

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
HOLDFAST = os.environ.get("HOLDFAST", os.path.join(ROOT, "build", "holdfast"))
PG = os.path.join(ROOT, "tests", "support", "pg")
WORKERS = (os.path.join(HERE, "outside_worker.py"), os.path.join(HERE, "outside_worker.sh"))
ROWS = "SELECT work_id, source_id, status, lease_fence, generation FROM runtime_work"
EVENTS = ("SELECT event_id, work_id, event_type, from_status, to_status, fence, generation, actor, message,"
          " payload, correlation_id, created_at FROM runtime_work_event"
          " WHERE to_status IS NOT NULL AND part = 0 ORDER BY event_id")
COUNT = "SELECT count(*) FROM runtime_work_event WHERE to_status IS NOT NULL AND part = 0"
LEFT = "SELECT count(*) FROM runtime_work WHERE finished_at IS NULL"
DRAIN_S = 120


class Sqlite:
    """A file. Nothing can be restarted; readers use the sqlite3 of Python."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "outside.db")
        self.urls = [self.path]

    def ask(self, sql):
        for _ in range(100):
            store = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=30)
            try:
                return [list(row) for row in store.execute(sql)]
            except sqlite3.OperationalError:
                time.sleep(0.1)  # a stopped process recovers the log; it is woken soon
            finally:
                store.close()
        raise SystemExit("outside: the store cannot be read")

    def close(self):
        pass


class Postgres:
    """A server of its own, with a PgBouncer before it; readers use psql."""

    def __init__(self, folder):
        self.folder = os.path.join(folder, "pg")
        self.urls = [self.run("up", "--durable"), self.run("pooler")]

    def run(self, verb, *args):
        return subprocess.run([PG, verb, self.folder, *args], check=True, capture_output=True,
                              text=True).stdout.strip()

    def ask(self, sql):
        text = self.psql("SET search_path = holdfast",
                         f"SELECT json_agg(row_to_json(q)) FROM ({sql}) q").stdout
        return [list(row.values()) for row in json.loads(text.strip() or "[]") or []]

    def psql(self, *statements, check=True):
        return subprocess.run(["psql", "-qAtX", self.urls[0], *(word for sql in statements for word in ("-c", sql))],
                              check=check, capture_output=True, text=True)

    def lock(self, seconds):
        """Writers wait, and have begun."""
        return subprocess.Popen(
            ["psql", "-qAtX", self.urls[0], "-c", "BEGIN; LOCK TABLE holdfast.work_state IN SHARE ROW EXCLUSIVE MODE;"
             f" SELECT pg_sleep({seconds}); COMMIT"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end_backends(self, count):
        self.psql("SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity WHERE backend_type ="
                  f" 'client backend' AND pid <> pg_backend_pid() ORDER BY random() LIMIT {count}) q", check=False)

    def close(self):
        subprocess.run([PG, "down", self.folder], check=False)


def calls_of(pid):
    """The processes of the program under a worker; a shell may have one of its own between."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            below = [int(word) for word in file.read().split()]
        with open(f"/proc/{pid}/comm", encoding="ascii") as file:
            own = [pid] if file.read().strip() == "holdfast" else []
    except OSError:
        return []
    return own + [call for child in below for call in calls_of(child)]


class Fleet:
    """Workers and monitors, and what is done to them."""

    def __init__(self, store, folder, given):
        self.store, self.folder, self.given = store, folder, given
        self.program = shutil.copy2(HOLDFAST, os.path.join(folder, "holdfast"))  # a build meanwhile must not end the fleet
        self.dice = random.Random(given.seed)
        self.workers, self.monitors, self.asleep, self.born = {}, [], {}, 0
        self.did = dict.fromkeys(("workers killed", "workers stopped", "calls killed", "calls stopped",
                                  "monitors killed", "monitors stopped", "restarts", "backends ended"), 0)
        self.died, self.ended = {}, []
        subprocess.run([self.program, "--db", store.urls[0], "migrate"], check=True, capture_output=True)
        for _ in range(2):
            self.hire_monitor()
        for _ in range(given.workers):
            self.hire()

    def hire(self, *mode):
        name = f"w{self.born}"
        self.born += 1
        url = self.store.urls[self.born % len(self.store.urls)]
        script = WORKERS[self.born // 2 % 2]
        self.workers[name] = subprocess.Popen(
            [script, self.program, url, name, self.folder, str(self.given.ttl), *mode], start_new_session=True)

    def hire_monitor(self):
        self.monitors.append(subprocess.Popen(
            [self.program, "--db", self.store.urls[0], "--quiet", "monitor", "--interval", "100ms"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def send(self, pid, what):
        try:
            os.kill(pid, what)
        except ProcessLookupError:
            return False
        return True

    def stop(self, pid, seconds):
        if self.send(pid, signal.SIGSTOP):
            self.asleep[pid] = time.monotonic() + seconds

    def wake(self, everyone=False):
        now = time.monotonic()
        for pid in [pid for pid, until in self.asleep.items() if everyone or until <= now]:
            del self.asleep[pid]
            self.send(pid, signal.SIGCONT)

    def kill(self, name):
        process = self.workers.pop(name)
        self.died[name] = time.time()
        process.kill()
        process.wait()

    def muster(self):
        """A worker or monitor that ended by itself is a violation, except a monitor of a server that
        was restarted; both are replaced."""
        for name, process in list(self.workers.items()):
            if process.poll() is not None:
                self.ended.append(f"{name} ({process.returncode})")
                self.died[name] = time.time()
                del self.workers[name]
                self.hire()
        for process in [one for one in self.monitors if one.poll() is not None]:
            self.monitors.remove(process)
            self.hire_monitor()

    def act(self):
        self.wake()
        self.muster()
        fate = self.dice.random()
        name = self.dice.choice(list(self.workers))
        process = self.workers[name]
        calls = calls_of(process.pid)
        past_lease = self.given.ttl / 1000 + self.dice.uniform(0.1, 0.6)
        if fate < 0.20:
            self.kill(name)
            self.hire()
            self.did["workers killed"] += 1
        elif fate < 0.35:
            self.stop(process.pid, past_lease)
            self.did["workers stopped"] += 1
        elif fate < 0.60 and calls:
            self.send(calls[0], signal.SIGKILL)
            self.did["calls killed"] += 1
        elif fate < 0.80 and calls:
            self.stop(calls[0], self.dice.uniform(0.05, past_lease))
            self.did["calls stopped"] += 1
        elif fate < 0.84:
            self.dice.choice(self.monitors).kill()
            self.did["monitors killed"] += 1
        elif fate < 0.88:
            self.stop(self.dice.choice(self.monitors).pid, past_lease)
            self.did["monitors stopped"] += 1
        elif fate < 0.95 and self.given.store == "postgres":
            self.store.end_backends(self.dice.randint(1, 4))
            self.did["backends ended"] += 1

    def restart(self):
        """The server crashes and comes back. At times writers wait for a lock when that happens, and
        some calls do not see it at once: they are stopped before it or while the server is down,
        and go on when others have written."""
        locking = self.store.lock(2) if self.dice.random() < 0.6 else None
        if locking:
            time.sleep(self.dice.uniform(0.2, 0.8))
        moment, stopped = self.dice.choice(("before", "down", "down", "never")), []
        if moment == "before":
            stopped = self.stop_calls()
        self.store.run("crash")
        if moment == "down":
            stopped = self.stop_calls()
        self.store.run("start")
        for call in stopped:
            self.asleep[call] = time.monotonic() + self.dice.uniform(0.3, 2.0)
        if locking:
            locking.wait()
        self.did["restarts"] += 1

    def stop_calls(self):
        """Half of the calls that are under way, until they are woken."""
        calls = [call for process in self.workers.values() for call in calls_of(process.pid)
                 if self.dice.random() < 0.5]
        for call in calls:
            self.stop(call, 60)
        self.did["calls stopped"] += len(calls)
        return calls

    def drain(self):
        """No more faults, no new units: everything must come to its end."""
        self.wake(everyone=True)
        for name in list(self.workers):
            self.kill(name)
        for _ in range(2 * len(self.store.urls)):
            self.hire("drain")
        until = time.monotonic() + DRAIN_S
        while self.store.ask(LEFT)[0][0] and time.monotonic() < until:
            self.muster()
            time.sleep(0.2)

    def dismiss(self):
        self.wake(everyone=True)
        for name in list(self.workers):
            self.kill(name)
        for process in self.monitors:
            process.kill()
            process.wait()


def soak(store, folder, given):
    fleet, began, last = Fleet(store, folder, given), time.monotonic(), 0.0
    each = given.transitions / (given.restarts + 1)  # a restart per so many transitions
    try:
        made = 0
        while (made < given.transitions or fleet.did["restarts"] < given.restarts) \
                and time.monotonic() - began < given.most:
            time.sleep(given.every / 1000)
            fleet.act()
            if time.monotonic() - last > 1:
                last = time.monotonic()
                made = store.ask(COUNT)[0][0]
                print(f"{last - began:6.0f} s  {made} transitions, {fleet.did}", flush=True)
                if fleet.did["restarts"] < given.restarts and made > each * (fleet.did["restarts"] + 1):
                    fleet.restart()
        fleet.drain()
        rows = {"rows": store.ask(ROWS), "events": store.ask(EVENTS)}
        doctor = subprocess.run([fleet.program, "--db", store.urls[0], "doctor"], check=False,
                                capture_output=True, text=True)
        if doctor.returncode:  # for those who look into it: the judge needs no more than transitions
            rows["all"] = store.ask("SELECT * FROM runtime_work_event ORDER BY event_id, part")
    finally:
        fleet.dismiss()
    complaints = "\n".join(line for line in doctor.stdout.splitlines() if not line.startswith(("ok ", "fact ")))
    least = {"workers killed": 1, "workers stopped": 1, "calls killed": 1, "restarts": given.restarts}
    acts = {"did": fleet.did, "died": fleet.died, "ended": fleet.ended, "least": least,
            "least_transitions": given.transitions,
            "doctor": complaints if doctor.returncode else None}
    for name, what in (("rows", rows), ("acts", acts)):
        with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as file:
            json.dump(what, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--transitions", type=int, default=300)
    parser.add_argument("--restarts", type=int, default=0, help="of PostgreSQL, as a crash")
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--ttl", type=int, default=1000)
    parser.add_argument("--every", type=int, default=100, help="milliseconds between two faults")
    parser.add_argument("--most", type=float, default=1e9, help="seconds; what is not reached by then is a violation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder")
    given = parser.parse_args()
    if given.restarts and given.store != "postgres":
        parser.error("--restarts: only a server can be restarted (--store postgres)")
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = given.folder or tempfile.mkdtemp(prefix="holdfast-outside-", dir=memory)
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o755)  # the server is another user's
    store = Sqlite(folder) if given.store == "sqlite" else Postgres(folder)
    try:
        soak(store, folder, given)
    finally:
        store.close()
    good = judge.judge(folder)
    good = judge.selftest(folder) and good
    if good and not given.folder:
        shutil.rmtree(folder)
    elif not good:
        print(f"kept: {folder}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
