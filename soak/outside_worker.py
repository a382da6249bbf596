#!/usr/bin/env python3
"""A worker of the outside soak: it uses the program `holdfast` alone, one process per call.

    outside_worker.py HOLDFAST URL NAME FOLDER TTL_MS [drain]

Every call has an id of its own, which is its reason and its correlation id. FOLDER/NAME.calls
gets one JSON line before a call and one after it, so the judge knows what was asked and what was
answered. An answer of 6 (busy) or 8 (not known) is followed by the same call, with the same id,
where the call is repeatable; otherwise the outcome stays open. With `drain` it creates nothing and
ends every unit that it gets."""

import json
import os
import random
import subprocess
import sys
import time

PROGRAM, URL, NAME, FOLDER, TTL_MS = sys.argv[1:6]
DRAIN = "drain" in sys.argv[6:]
RETRY = '{"initial_backoff_ms":50,"max_backoff_ms":200,"max_attempts":4}'
AGAIN = (6, 8)
TRIES = 3


class Worker:
    def __init__(self):
        self.dice = random.Random(NAME)
        self.calls = 0
        self.made, self.ended, self.waiting = [], [], []
        # One write per line: a kill leaves whole lines, or a last one that is cut short.
        self.log = open(os.path.join(FOLDER, NAME + ".calls"), "ab", buffering=0)

    def note(self, **what):
        self.log.write(json.dumps(what).encode() + b"\n")

    def call(self, verb, *args, work=None, fence=None, repeatable=True, **more):
        """The answer as JSON, or None where there is no certain one. The call is noted."""
        self.calls += 1
        call = f"{NAME}-{self.calls}"
        words = [word.replace("CALL", call) for word in args]
        if verb not in ("create", "claim", "renew", "resume"):
            words += ["--reason", call]
        for _ in range(TRIES):
            self.note(call=call, verb=verb, work=work, fence=fence, begin=time.time(), **more)
            done = subprocess.run([PROGRAM, "--db", URL, "--json", "--correlation-id", call, "work", verb,
                                   *words], check=False, capture_output=True, text=True)
            answer = parsed(done.stdout)
            self.note(call=call, end=time.time(), rc=done.returncode, told=told(verb, answer),
                      error=(answer or {}).get("error", {}).get("message"))
            if done.returncode == 0:
                return answer
            if done.returncode not in AGAIN or (done.returncode == 8 and not repeatable):
                return None
            time.sleep(self.dice.uniform(0.01, 0.2))
        return None

    def operation(self):
        """Half of the calls without a token say that they are one operation: these are repeatable."""
        return ["--operation-id", "CALL"] if self.dice.random() < 0.5 else []

    def create(self):
        answer = self.call("create", "--source", "manual", "--source-id", "CALL", "--disposition",
                           "rerunnable", "--retry-policy", RETRY)
        if answer:
            self.made.append(answer["work"]["work_id"])

    def claim(self):
        pid = self.dice.random() < 0.5
        answer = self.call("claim", "--owner", NAME, "--incarnation", NAME, "--nonce", "CALL", "--ttl",
                           f"{TTL_MS}ms", "--limit", str(self.dice.choice((1, 2, 4, 8))),
                           *(["--pid", str(os.getpid())] if pid else []), pid=pid)
        return answer["items"] if answer else []

    def plain(self, verb, units):
        """A change by an id, without a token."""
        if units:
            operation = self.operation()
            self.call(verb, units.pop(self.dice.randrange(len(units))), *operation,
                      repeatable=bool(operation))

    def settle(self, unit):
        work, fence = unit["work_id"], unit["lease_fence"]
        with_token = [work, "--token", unit["lease_token"]]
        fate = 1.0 if DRAIN else self.dice.random()
        if fate < 0.25:
            self.call("renew", *with_token, work=work, fence=fence)
            fate = self.dice.random()
        if fate < 0.10:
            return  # forgotten: its lease must lapse
        if fate < 0.18:
            self.call("fail", *with_token, "--class", "transient_network", work=work, fence=fence)
        elif fate < 0.28:
            self.call("hand-back", *with_token, work=work, fence=fence)
        elif fate < 0.38:
            self.call("wait", *with_token, "--kind", "user", "--ref", "CALL", "--timeout", "3s", work=work,
                      fence=fence)
            self.waiting.append(work)
        else:
            self.call("close-out", *with_token, "--status", "done", work=work, fence=fence, wants="done")
            self.ended.append(work)

    def act(self):
        fate = 1.0 if DRAIN else self.dice.random()
        if fate < 0.30:
            self.create()
        elif fate < 0.34:
            self.plain("cancel", self.made)
        elif fate < 0.46:
            self.plain("requeue", self.ended)
        elif fate < 0.52:
            self.plain("resume", self.waiting)
        else:
            units = self.claim()
            for unit in units:
                self.settle(unit)
            if DRAIN and not units:
                time.sleep(0.05)


def parsed(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


def told(verb, answer):
    """What the judge needs of an answer."""
    if not answer or not answer.get("ok"):
        return None
    units = answer["items"] if verb == "claim" else [answer["work"]]
    return [{"work": unit["work_id"], "status": unit["status"], "fence": unit["lease_fence"],
             "expires": unit["lease_expires_at"], "generation": unit["generation"]} for unit in units]


def main():
    worker, driver = Worker(), os.getppid()
    while os.getppid() == driver:
        worker.act()


if __name__ == "__main__":
    main()
