#!/usr/bin/env python3
"""`holdfast run` under fire: commands by the hundred while their wrappers, the workers that
take over from them and the monitors are killed -9 at random. check_fire.py judges.

    tests/proc/fire.py                       as in the test suite: 200 commands on SQLite
    tests/proc/fire.py --engine postgres     on a server of its own
    --runs N, --seed N (0: a fresh one), --folder DIR (kept; default: one that stays only if
    something was wrong)

What is killed when depends on the seed, which is printed, and on the machine."""

import argparse
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import check_fire

HOLDFAST = os.environ["HOLDFAST"]
FIRE_CHILD = os.environ["FIRE_CHILD"]
SIDE_BY_SIDE = 8
WORKERS = 3
MONITORS = 2
PAUSE_S = (0.01, 0.08)  # between two kills
DRAIN_S = 60
MODES = ("plain", "plain", "plain", "tree", "stubborn", "itself")


def make_plan(chance, runs):
    """What each command is and does."""
    plan = []
    for i in range(runs):
        rerunnable = i % 2 == 1
        mode = chance.choice(MODES)
        codes = "7" if mode == "itself" else chance.choice(
            ["0", "0", "0", "3"] + (["3,0"] if rerunnable else []))
        plan.append({"key": f"k{i:03}", "mode": mode, "codes": codes,
                     "ms": chance.randrange(20, 400),
                     "disposition": "rerunnable" if rerunnable else "owner_bound",
                     "max_attempts": chance.choice((2, 20)) if rerunnable else 1,
                     "once": chance.random() < 0.5})
    return plan


class Fire:
    def __init__(self, folder, db, seed, runs):
        self.folder, self.chance = folder, random.Random(seed)
        self.plan = make_plan(self.chance, runs)
        self.log = open(os.path.join(folder, "fire.log"), "a", encoding="utf-8")
        self.env = {"PATH": os.path.dirname(HOLDFAST) + ":/usr/bin:/bin", "HOME": folder,
                    "HOLDFAST_DB": db, "USER": "fire", check_fire.MARK: folder,
                    **{k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}}
        self.waiting = list(self.plan)
        self.wrappers, self.workers, self.monitors = {}, {}, {}
        self.kills = {"wrapper": 0, "worker": 0, "monitor": 0}
        for name in ("logs", "alone", "answers"):
            os.mkdir(os.path.join(folder, name))
        with open(os.path.join(folder, "plan.json"), "w", encoding="utf-8") as out:
            json.dump({"seed": seed, "db": db, "commands": self.plan}, out)

    def note(self, *parts):
        self.log.write(" ".join(map(str, parts)) + "\n")
        self.log.flush()

    def start(self, args, answer=None):
        """A program of ours, and the descriptor that tells its end."""
        out = open(os.path.join(self.folder, "answers", answer), "wb") if answer else None
        proc = subprocess.Popen([HOLDFAST, *args], env=self.env, cwd=self.folder,
                                stdin=subprocess.DEVNULL, stdout=out or subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        if out:
            out.close()
        return os.pidfd_open(proc.pid), proc

    def start_wrapper(self, command, again=False):
        key = command["key"]
        args = ["--json", "run", "--ttl", "2s", "--disposition", command["disposition"],
                "--max-attempts", str(command["max_attempts"]),
                "--retry-policy", '{"initial_backoff_ms":10,"max_backoff_ms":50}']
        if command["once"]:
            args += ["--idempotency-key", key]
        args += ["--", FIRE_CHILD, key, self.folder, str(command["ms"]), command["mode"],
                 command["codes"]]
        fd, proc = self.start(args, f"{key}.{2 if again else 1}")
        self.note("began", key, proc.pid)
        self.wrappers[fd] = (proc, command, again)

    def keep_up(self):
        while len(self.workers) < WORKERS:
            fd, proc = self.start(["run", "--worker", "--jobs", "3", "--ttl", "2s"])
            self.workers[fd] = (proc, None, None)
        while len(self.monitors) < MONITORS:
            fd, proc = self.start(["monitor", "--interval", "50ms"])
            self.monitors[fd] = (proc, None, None)
        while self.waiting and len(self.wrappers) < SIDE_BY_SIDE:
            self.start_wrapper(self.waiting.pop(0))

    def ended(self, fd):
        for kind, group in (("wrapper", self.wrappers), ("worker", self.workers),
                            ("monitor", self.monitors)):
            if fd not in group:
                continue
            proc, command, again = group.pop(fd)
            code = proc.wait()
            os.close(fd)
            self.note("ended", kind, command["key"] if command else "-", proc.pid, code)
            if kind != "wrapper" and code != -signal.SIGKILL:
                sys.exit(f"a {kind} ended by itself: {code}")
            if command and code == -signal.SIGKILL and command["once"] and not again:
                self.start_wrapper(command, again=True)

    def rest(self, seconds):
        """Until something ends, or so long."""
        everyone = [*self.wrappers, *self.workers, *self.monitors]
        for fd in select.select(everyone, [], [], seconds)[0]:
            self.ended(fd)

    def kill_one(self):
        kind, group = self.chance.choice((("wrapper", self.wrappers), ("wrapper", self.wrappers),
                                          ("worker", self.workers), ("monitor", self.monitors)))
        if not group:
            return
        fd = sorted(group)[self.chance.randrange(len(group))]
        proc = group[fd][0]
        self.note("kill", kind, proc.pid)
        proc.kill()
        self.kills[kind] += 1
        proc.wait()
        self.ended(fd)

    def ask(self, *args):
        done = subprocess.run([HOLDFAST, "--json", *args], env=self.env, cwd=self.folder,
                              capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{args}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout)

    def release_held(self):
        """Work that lost five runners in a row waits for a person's word: here it is."""
        for work in self.ask("work", "list", "--gate", "held")["items"]:
            self.ask("job", "release", work["work_id"], "--reason", "the runners were shot")

    def drain(self):
        end = time.monotonic() + DRAIN_S
        while self.wrappers or self.ask("work", "list", "--limit", "1")["items"]:
            if time.monotonic() > end:
                print("not all ended in time")
                for work in self.ask("work", "list", "--limit", "3")["items"]:
                    print(json.dumps(work))
                    for event in self.ask("work", "events", work["work_id"])["items"][-6:]:
                        print(json.dumps(event))
                break
            self.release_held()
            self.rest(0.1)
        for proc, _, _ in (*self.workers.values(), *self.monitors.values()):
            proc.send_signal(signal.SIGTERM)
        for proc, _, _ in (*self.workers.values(), *self.monitors.values()):
            proc.wait(timeout=20)
        self.ask("work", "sweep")

    def run(self):
        self.ask("work", "stats")  # the store is there before eight make it at once
        next_kill = time.monotonic()
        while self.waiting or self.wrappers:
            self.keep_up()
            now = time.monotonic()
            if now >= next_kill:
                self.kill_one()
                next_kill = now + self.chance.uniform(*PAUSE_S)
            self.rest(max(0, next_kill - time.monotonic()))
        self.keep_up()
        self.drain()
        self.log.close()


def server(folder):
    done = subprocess.run([os.environ["PG_SCRIPT"], "up", folder], check=True, text=True,
                          stdout=subprocess.PIPE)
    return done.stdout.strip()


def run(folder, engine, seed, runs):
    begun = time.monotonic()
    place = os.path.join(folder, "pg")
    db = server(place) if engine == "postgres" else os.path.join(folder, "work.db")
    try:
        subprocess.run([HOLDFAST, "--db", db, "--quiet", "migrate"], check=True)
        fire = Fire(folder, db, seed, runs)
        fire.run()
        said = ", ".join(f"{n} {kind}s" for kind, n in fire.kills.items())
        print(f"{engine}, seed {seed}: {runs} commands, killed {said}, "
              f"{time.monotonic() - begun:.1f} s")
        good = check_fire.judge(folder) and check_fire.selftest(folder)
        if fire.kills["wrapper"] < runs / 8 or min(fire.kills.values()) < runs / 40:
            print("too few were killed to show anything")
            good = False
        return good
    finally:
        if engine == "postgres":
            subprocess.run([os.environ["PG_SCRIPT"], "down", place], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder")
    given = parser.parse_args()
    seed = given.seed or random.SystemRandom().randrange(1, 1 << 30)
    if given.folder:
        os.makedirs(given.folder)
        return 0 if run(given.folder, given.engine, seed, given.runs) else 1
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = tempfile.mkdtemp(prefix="holdfast-fire-", dir=base)
    os.chmod(folder, 0o755)  # the server's user must come through
    good = run(folder, given.engine, seed, given.runs)
    if good:
        shutil.rmtree(folder)
    else:
        print(f"kept: {folder}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
