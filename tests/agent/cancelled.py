#!/usr/bin/env python3
"""A turn that is cancelled while it waits leaves a history that model servers take.

Both kinds of endpoints, over the model server of the tests, which refuses a call without its result. All
calls need approvals: the first turn is cancelled while it waits for one, those of the second are given."""
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

HOLDFAST, WORKER, SERVER = (os.environ[name] for name in ("HOLDFAST", "TURN_WORKER", "MODEL_SERVER"))


def rows(db, sql):
    with sqlite3.connect(db, timeout=20) as connection:
        return connection.execute(sql).fetchall()


def check(kind, folder):
    db, journal, log = (str(folder / name) for name in ("turns.db", "journal", "log"))
    server = subprocess.Popen([SERVER, journal], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    port = server.stdout.readline().decode().strip()
    subprocess.run([WORKER, db, port, log, "send", "1", "2"], check=True)
    environment = dict(os.environ, TURN_KIND=kind, TURN_APPROVAL="always")
    worker = subprocess.Popen([WORKER, db, port, log, "work"], stdout=subprocess.PIPE, text=True, env=environment)
    cancelled, turn = None, None
    for line in worker.stdout:  # "asked WAIT TURN", "ended TURN STATUS"
        word, *told = line.split()
        turn = told[1] if word == "asked" else turn
        if word == "asked" and cancelled in (None, turn):
            cancelled = turn
            act = ["session", "cancel-turn", "s0", turn]
        elif word == "asked":
            act = ["approve", told[0]]
        elif word == "ended" and told[1] == "done":
            break
        else:
            continue
        subprocess.run([HOLDFAST, *act, "--db", db], check=True, stdout=subprocess.DEVNULL)
    worker.terminate()
    assert worker.wait(30) == 0
    server.stdin.close()
    server.wait()
    ends = rows(db, "SELECT status FROM runtime_work WHERE source_system = 'conversation' ORDER BY work_id")
    assert ends == [("cancelled",), ("done",)], ends
    performed = pathlib.Path(log).read_text().splitlines()
    assert performed and all(turn in line for line in performed), performed


def main():
    for kind in ("openai-chat", "anthropic-messages"):
        with tempfile.TemporaryDirectory() as folder:
            check(kind, pathlib.Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
