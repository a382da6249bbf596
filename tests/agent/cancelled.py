#!/usr/bin/env python3
"""A turn that is cancelled while it waits leaves a history that model servers take.

Both kinds of endpoints, over the model server of the tests, which refuses a call without its result. The
first call of each turn needs an approval: the first turn is cancelled there, the second one is approved."""
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import time

HOLDFAST, WORKER, SERVER = (os.environ[name] for name in ("HOLDFAST", "TURN_WORKER", "MODEL_SERVER"))
DEADLINE = 100  # seconds


def rows(db, sql):
    with sqlite3.connect(db, timeout=20) as connection:
        return connection.execute(sql).fetchall()


def wait_for(db, sql):
    end = time.monotonic() + DEADLINE
    while not rows(db, sql):
        assert time.monotonic() < end, sql
        time.sleep(0.02)
    return rows(db, sql)[0]


def holdfast(db, *args):
    subprocess.run([HOLDFAST, *args, "--db", db], check=True, stdout=subprocess.DEVNULL)


def check(kind, folder):
    db, journal, log = (str(folder / name) for name in ("turns.db", "journal", "log"))
    server = subprocess.Popen([SERVER, journal], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    port = server.stdout.readline().decode().strip()
    subprocess.run([WORKER, db, port, log, "send", "1", "2"], check=True)
    environment = dict(os.environ, TURN_KIND=kind, TURN_APPROVAL='{"/n":{"const":1}}')
    worker = subprocess.Popen([WORKER, db, port, log, "work"], stdout=subprocess.DEVNULL, env=environment)
    waits = "SELECT wait_id, turn_id FROM runtime_wait WHERE state = 'open'"
    _, turn = wait_for(db, waits)
    holdfast(db, "session", "cancel-turn", "s0", turn)
    wait, other = wait_for(db, f"{waits} AND turn_id <> '{turn}'")
    holdfast(db, "approve", wait)
    wait_for(db, f"SELECT 1 FROM runtime_turn WHERE turn_id = '{other}' AND finished_at IS NOT NULL")
    worker.terminate()
    assert worker.wait(30) == 0
    server.stdin.close()
    server.wait()
    ends = rows(db, "SELECT status FROM runtime_work WHERE source_system = 'conversation' ORDER BY work_id")
    assert ends == [("cancelled",), ("done",)], ends
    assert len(pathlib.Path(log).read_text().splitlines()) == 3  # of the second turn alone


def main():
    for kind in ("openai-chat", "anthropic-messages"):
        with tempfile.TemporaryDirectory() as folder:
            check(kind, pathlib.Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
