#!/usr/bin/env python3
"""The session soak: eight processes send to 50 sessions and commit their turns, while they are
killed, stopped past their leases and woken, and terminated; then an outside judge.

    soak/sessions.py                     the short form, as in the tests
    soak/sessions.py --kills 2000        the long form; prints progress and a report
    --store sqlite|postgres              (default sqlite)
    --workers N, --sessions N, --ttl MS, --every MS (between two acts of the killer)
    --seed N, --folder DIR (kept), --disk (on a disk instead of memory)

The acts are those of soak.py. The program is build/soak-sessions, or what SOAK_SESSIONS names."""

import argparse
import json
import os
import signal
import sys
import time

import check_sessions
from soak import DRAIN_S, ROOT, Fleet, Postgres, Sqlite, run

PROGRAM = os.environ.get("SOAK_SESSIONS", os.path.join(ROOT, "build", "soak-sessions"))
OPEN = ("SELECT count(*) FROM runtime_work WHERE source_system = 'conversation'"
        " AND finished_at IS NULL AND coalesce(gate, '') <> 'held'")
COMMITTED = "SELECT count(*) FROM runtime_turn WHERE result IS NOT NULL"
TABLES = {
    "sessions": "SELECT session_id, head_revision, record_count, chain, lease_fence, turn_id"
                " FROM runtime_session ORDER BY session_id",
    "turns": "SELECT session_id, turn_id, base_revision, step, node_count, finished_at, result"
             " FROM runtime_turn ORDER BY session_id, base_revision",
    "nodes": "SELECT s.session_id, n.ordinal, t.turn_id, n.chain, n.record FROM node n"
             " JOIN session s ON s.session_key = n.session_key"
             " LEFT JOIN session_turn t ON t.turn_key = n.turn_key"
             " ORDER BY s.session_id, n.ordinal",
    "inputs": "SELECT s.session_id, i.seq, w.work_id, w.status, w.gate, w.payload"
              " FROM session_input i JOIN session s ON s.session_key = i.session_key"
              " JOIN work_spec u ON u.seq = i.seq JOIN runtime_work w ON w.work_id = u.work_id"
              " ORDER BY i.seq",
    "events": "SELECT event_id, work_id, event_type, from_status, to_status, payload"
              " FROM runtime_work_event WHERE part = 0 ORDER BY event_id",
}


class SessionFleet(Fleet):
    """Each process sends, claims and commits."""

    def __init__(self, store, folder, given):
        super().__init__(folder, given, PROGRAM)
        self.store = store
        self.make_store()
        for _ in range(given.workers):
            self.hire()

    def worker_args(self, name):
        return self.store.url, name, self.folder, self.given.ttl, self.given.sessions

    def make_store(self):
        """By one process that is not killed: a schema that was begun by a process that died is an
        operator's to finish."""
        first, until = self.start(*self.worker_args("first")), time.monotonic() + DRAIN_S
        log = os.path.join(self.folder, "first.log")
        while time.monotonic() < until and first.poll() is None:
            if os.path.exists(log) and "A " in open(log, encoding="utf-8").read():
                break
            time.sleep(0.05)
        first.send_signal(signal.SIGTERM)
        if first.wait():
            raise SystemExit("no store")

    def await_commits(self, wanted):
        """A slow machine gets the time that it needs: what is judged is not its speed."""
        until = time.monotonic() + DRAIN_S
        self.wake_all()
        while self.store.ask(COMMITTED)[0][0] < wanted and time.monotonic() < until:
            self.muster()
            time.sleep(0.1)

    def drain(self):
        """Nothing is sent any more, and every message must come to its turn. Seconds it took."""
        began = time.monotonic()
        with open(os.path.join(self.folder, "drain"), "w", encoding="utf-8"):
            pass
        self.wake_all()
        while self.store.ask(OPEN)[0][0] and time.monotonic() - began < DRAIN_S:
            self.muster()
            time.sleep(0.1)
        return round(time.monotonic() - began, 1)


def plain(value):
    """Bytes as hexadecimal digits, on both engines."""
    if isinstance(value, bytes):
        return value.hex()
    return value[2:] if isinstance(value, str) and value.startswith("\\x") else value


def wakes(kills):
    """How many processes that were stopped past their leases must have gone on."""
    return min(kills // 8, 3)


def soak(folder, given):
    store = Sqlite(folder) if given.store == "sqlite" else Postgres(folder)
    fleet, began, told = None, time.monotonic(), 0.0
    try:
        fleet = SessionFleet(store, folder, given)
        while fleet.did["killed"] < given.kills or fleet.did["woken"] < wakes(given.kills):
            time.sleep(given.every / 1000)
            fleet.act()
            if time.monotonic() - told > 10:
                told = time.monotonic()
                print(f"{told - began:6.0f} s  {fleet.did}", flush=True)
        fleet.await_commits(2 * given.kills)
        drain_s = fleet.drain()
        fleet.dismiss()
        rows = {name: [[plain(value) for value in row] for row in store.ask(sql)]
                for name, sql in TABLES.items()}
    finally:
        if fleet:
            fleet.dismiss()
        store.close()
    rows["plan"] = {"did": fleet.did, "ended": fleet.deserted, "drain_s": drain_s,
                    "kills": given.kills, "wakes": wakes(given.kills), "store": given.store, "seed": given.seed,
                    "seconds": round(time.monotonic() - began)}
    with open(os.path.join(folder, "rows.json"), "w", encoding="utf-8") as file:
        json.dump(rows, file)
    good = check_sessions.judge(folder)
    return check_sessions.selftest(folder) and good


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--ttl", type=int, default=750)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder")
    parser.add_argument("--disk", action="store_true")
    return run(soak, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
