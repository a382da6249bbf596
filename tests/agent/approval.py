#!/usr/bin/env python3
"""examples/approval.c: nothing runs between its commands, and the rows alone carry the turn."""
import os
import re
import subprocess
import sys
import tempfile

APPROVAL = os.environ["APPROVAL"]
HOLDFAST = os.environ["HOLDFAST"]


def run(*args, code=0):
    done = subprocess.run(args, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100)
    assert done.returncode == code, (args, done.returncode, done.stdout)
    return done.stdout


def put_away(store, amount):
    run(APPROVAL, store, "send", amount)
    out = run(APPROVAL, store, "work", amount)
    assert "the turn is put away" in out and "paid {" not in out, out
    assert '"question":"May this be paid?"' in out and f'"amount":{amount}' in out, out
    return re.search(r"asked (\S+)", out).group(1)


def log(store):
    return run(HOLDFAST, "session", "log", "payments", "--db", store, "--json")


def main():
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "pay.db")
        run(APPROVAL, store, "send", "20")  # below the rule: no approval
        out = run(APPROVAL, store, "work", "20")
        assert 'paid {"amount":20}' in out and "ended: done" in out, out

        wait = put_away(store, "250")
        assert "answered: " in run(APPROVAL, store, "approve", wait, '{"amount":150}')
        assert "answered before" in run(APPROVAL, store, "deny", wait, "too late")
        out = run(APPROVAL, store, "work", "250")
        assert 'paid {"amount":150}' in out and "ended: done" in out, out
        assert "approved_by" in log(store) and "anna" in log(store)

        wait = put_away(store, "300")
        out = run(APPROVAL, store, "approve", wait, '{"amount":"much"}', code=1)
        assert "amount" in out, out  # edited arguments that do not fit
        run(APPROVAL, store, "deny", wait, "too dear")
        out = run(APPROVAL, store, "work", "300")
        assert "paid {" not in out and "ended: done" in out, out
        assert "anna denied the call: too dear" in log(store), log(store)
    return 0


if __name__ == "__main__":
    sys.exit(main())
