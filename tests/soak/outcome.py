#!/usr/bin/env python3
"""Lost answers on PostgreSQL: no outcome is made up, by any verb, directly and through PgBouncer.

    tests/soak/outcome.py              the sample of ./test: each race once
    tests/soak/outcome.py --runs 100   each race 50 times directly and 50 times through PgBouncer

One call of every verb is on its way when the server is stopped with -m immediate. In the race
`waits` each call waits for a lock, so that the crash undoes it; in the race `commits` each one is
committed and waits for a standby, so that its answer is lost. The callers notice the crash and look
for the server. They are paused while it starts again and 200 other transactions use the same
transaction ids, for so long that no clock could tell the one from the other. Then each caller must
exit with 0 if its effect is there, with 8, or with another code if its effect is not there. The
judge is plain SQL.
"""
import argparse
import collections
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HOLDFAST = os.environ["HOLDFAST"]
loader = importlib.machinery.SourceFileLoader(
    "pg", str(pathlib.Path(__file__).resolve().parent.parent / "support" / "pg"))
pg = importlib.util.module_from_spec(importlib.util.spec_from_loader("pg", loader))
loader.exec_module(pg)

LOCK_ALL = """
DO $$ DECLARE t text; BEGIN
  FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = 'holdfast'
              AND tablename NOT LIKE 'hf\\_%' ORDER BY 1 LOOP
    EXECUTE format('LOCK TABLE holdfast.%I IN SHARE MODE', t);
  END LOOP;
END $$"""
OTHERS = """
DO $$ BEGIN FOR i IN 1..200 LOOP PERFORM txid_current(); COMMIT; END LOOP; END $$"""
DEADLINE = 120  # of everything that is waited for, seconds


class Server:
    def __init__(self):
        # A socket's path is short.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hf-outcome-")) / "pg"
        os.chmod(self.folder.parent, 0o755)
        pg.POOLER = pg.POOLER.replace("default_pool_size = 4", "default_pool_size = 40\n"
                                      "server_login_retry = 0.5")  # by default it refuses for 15 s
        pg.up(self.folder, False)
        pg.pooler(self.folder)
        self.port = pg.port_of(self.folder)
        self.urls = {"direct": pg.url(self.folder, self.port),
                     "pooled": pg.url(self.folder, 6432) + "&pooler=transaction"}

    def psql(self, *words):
        return [pg.program("psql"), "-qAtX", "-h", str(self.folder), "-p", str(self.port), "-U",
                "hf", "-d", "hf", "-v", "ON_ERROR_STOP=1", *words]

    def sql(self, text):
        done = subprocess.run(self.psql("-c", text), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise AssertionError(f"{text}: {done.stderr}")
        return done.stdout.strip()

    def crash(self):
        pg.as_server(pg.program("pg_ctl"), "-D", str(self.folder / "data"), "-m", "immediate",
                     "-s", "-w", "stop")

    def start(self):
        pg.start(self.folder, "data")

    def close(self):
        pg.down(self.folder)
        shutil.rmtree(self.folder.parent, ignore_errors=True)


class Unit:
    """What one call acts on: a unit, and how its effect is found."""

    def __init__(self, verb, way, run):
        self.tag = f"{verb}-{way}-{run}"
        self.id = self.token = ""


def row(column, wanted):
    return lambda u: (f"SELECT count(*) FROM holdfast.runtime_work WHERE work_id = '{u.id}' "
                      f"AND {column} {wanted}")


def count(table, column):
    return lambda u: f"SELECT count(*) FROM holdfast.{table} WHERE {column} = '{u.tag}'"


def held(*words):
    return lambda u: [*words, "--id", u.id, "--token", u.token]


def named(*words):
    return lambda u: [*words, "--id", u.id]


# verb: what its unit must be before, the words of the call, SQL that counts its effects.
VERBS = {
    "create": ("", lambda u: ["work", "create", "--source", "manual", "--source-id", u.tag],
               count("work_spec", "source_id")),
    "reconcile": ("file", lambda u: ["work", "reconcile", "--from", u.file],
                  count("work_spec", "source_id")),
    "claim": ("queued", lambda u: ["work", "claim", "--owner", u.tag, "--queue", u.tag,
                                   "--ttl", "1h"], row("status", "= 'running'")),
    "claim-id": ("queued", lambda u: ["work", "claim", "--owner", u.tag, "--ttl", "1h", u.id],
                 row("status", "= 'running'")),
    "renew": ("held", held("work", "renew", "--ttl", "2h"),
              row("lease_expires_at - active_at", "> 5400000")),
    "renew-all": ("held", lambda u: ["work", "renew", "--owner", u.tag],
                  row("lease_expires_at - active_at", "> 3600100")),
    "touch": ("held", held("work", "touch"), row("active_at", "> started_at")),
    "hand-back": ("held", held("work", "hand-back"), row("status", "= 'queued'")),
    "wait": ("held", held("work", "wait", "--kind", "user", "--ref", "r"),
             row("status", "= 'waiting_user'")),
    "resume": ("waiting", named("work", "resume"), row("status", "= 'queued'")),
    "resume-into": ("waiting", named("work", "resume", "--owner", "o"),
                    row("status", "= 'running'")),
    "close-out": ("held", held("work", "close-out", "--status", "done"),
                  row("status", "= 'done'")),
    "complete": ("external", named("work", "close-out", "--status", "done", "--authority", "a"),
                 row("status", "= 'done'")),
    "fail": ("held", held("work", "fail", "--class", "transient_network"),
             row("status", "<> 'running'")),
    "abandon": ("bound", held("work", "abandon"), row("status", "<> 'running'")),
    "append-event": ("held", held("work", "append-event", "--type", "step"),
                     lambda u: ("SELECT count(*) FROM holdfast.runtime_work_event WHERE "
                                f"work_id = '{u.id}' AND event_type = 'step'")),
    "cancel": ("queued", named("work", "cancel", "--reason", "r"), row("status", "= 'cancelled'")),
    "requeue": ("done", named("work", "requeue", "--reason", "r"), row("status", "= 'queued'")),
    "sweep": ("lapsed", lambda u: ["work", "sweep"], row("status", "<> 'running'")),
    "policy": ("", lambda u: ["policy", "set", f"kind:{u.tag}", "--max-attempts", "2"],
               lambda u: f"SELECT count(*) FROM holdfast.work_policy WHERE scope = 'kind:{u.tag}'"),
    "limit": ("", lambda u: ["limit", "set", f"key:{u.tag}", "--max", "2"],
              lambda u: ("SELECT count(*) FROM holdfast.work_limit WHERE name LIKE "
                         f"'%{u.tag}' AND max_running = 2")),
    "schedule": ("", lambda u: ["schedule", "add", u.tag, "--cron", "@daily", "--kind", "k"],
                 count("work_schedule", "name")),
    "schedule-trigger": ("schedule", lambda u: ["schedule", "run-now", u.tag],
                         count("work_spec", "source_id")),
    "subscribe": ("", lambda u: ["trigger", "subscribe", u.tag, "--source-type", "mail",
                                 "--source-key", u.tag], count("subscription", "subscription_key")),
    "emit": ("subscribed", lambda u: ["trigger", "emit", "--source-type", "mail", "--source-key",
                                      u.tag, "--idempotency-key", "k"],
             lambda u: ("SELECT count(*) FROM holdfast.delivery d JOIN holdfast.occurrence o "
                        f"USING (occurrence_id) WHERE o.source_key = '{u.tag}'")),
    "process-start": ("", lambda u: ["process", "start", "--disposition", "externally_owned",
                                     "--ref", u.tag], count("work_spec", "ref")),
    "process-observe": ("process", lambda u: ["process", "observe", u.id, "s-" + u.tag],
                        lambda u: ("SELECT count(*) FROM holdfast.handle_grant WHERE session_id = "
                                   f"'s-{u.tag}'")),
    "process-signal": ("process", lambda u: ["process", "signal", u.id, "n"],
                       lambda u: ("SELECT count(*) FROM holdfast.runtime_work_event WHERE "
                                  f"work_id = '{u.id}' AND event_type = 'signal.n'")),
}
CLAIMED = ("held", "waiting", "bound", "lapsed")


class Race:
    def __init__(self, server, pause):
        self.server, self.pause = server, pause
        self.tally = collections.Counter()
        self.wrong = []

    def cli(self, *words):
        done = subprocess.run([HOLDFAST, "--db", self.server.urls["direct"], *words],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False)
        if done.returncode:
            raise AssertionError(f"{words}: {done.returncode} {done.stdout}{done.stderr}")
        return done.stdout

    # ---- units as the verbs need them --------------------------------------------------------

    def make(self, units, run):
        """All plain units by one call, and those that are to be held by one claim each."""
        path = self.server.folder.parent / f"units-{run}"
        with open(path, "w", encoding="utf-8") as lines:
            for unit in units:
                if unit.state in ("queued", "done", "external", *CLAIMED):
                    words = {"bound": "owner_bound", "external": "externally_owned"}
                    lines.write(json.dumps({
                        "source_system": "manual", "source_id": unit.tag, "queue": unit.tag,
                        "max_attempts": 5,
                        "disposition": words.get(unit.state, "rerunnable")}) + "\n")
        self.cli("work", "reconcile", "--from", str(path))
        ids = dict(line.split("|") for line in self.server.sql(
            "SELECT source_id, work_id FROM holdfast.work_spec").splitlines())
        for unit in units:
            unit.id = ids.get(unit.tag, "")
            self.prepare(unit)

    def prepare(self, unit):
        if unit.state in CLAIMED:
            ttl = "1s" if unit.state == "lapsed" else "1h"
            unit.token = self.cli("work", "claim", "--owner", unit.tag, "--queue", unit.tag, "--ttl",
                                  ttl, "--field", "lease_token").strip()
        if unit.state == "waiting":
            self.cli("work", "wait", "--id", unit.id, "--token", unit.token, "--kind", "external",
                     "--ref", unit.tag)
        if unit.state == "done":
            self.cli("work", "cancel", "--id", unit.id, "--reason", "r")
        if unit.state == "schedule":
            self.cli("schedule", "add", unit.tag, "--cron", "@yearly", "--kind", "k")
        if unit.state == "subscribed":
            self.cli("trigger", "subscribe", unit.tag, "--source-type", "mail", "--source-key",
                     unit.tag)
        if unit.state == "process":
            unit.id = self.cli("process", "start", "--disposition", "externally_owned", "--ref",
                               unit.tag, "--field", "work_id").strip()
        if unit.state == "file":
            unit.file = str(self.server.folder.parent / unit.tag)
            with open(unit.file, "w", encoding="utf-8") as lines:
                lines.write(json.dumps({"source_system": "manual", "source_id": unit.tag}) + "\n")

    # ---- the two races -----------------------------------------------------------------------

    def until(self, sql, held, seconds):
        end = time.monotonic() + seconds
        while not held(int(self.server.sql(sql))) and time.monotonic() < end:
            time.sleep(0.02)

    def block(self):
        """Every writer waits for a lock from now on."""
        holder = subprocess.Popen(self.server.psql("-f", "-"), stdin=subprocess.PIPE, text=True,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        holder.stdin.write(f"BEGIN;\n{LOCK_ALL};\n")
        holder.stdin.flush()
        self.until("SELECT count(*) FROM pg_locks WHERE mode = 'ShareLock' AND granted AND "
                   "relation = 'holdfast.work_state'::regclass", bool, DEADLINE)
        return holder

    def stick(self):
        """Every commit waits for a standby from now on."""
        self.server.sql("ALTER SYSTEM SET synchronous_standby_names = 'none'")
        self.server.sql("SELECT pg_reload_conf()")
        holder = subprocess.Popen(self.server.psql("-f", "-"), stdin=subprocess.PIPE, text=True,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):  # until the server has heard of it
            holder.stdin.write("SELECT txid_current();\n")
        holder.stdin.write("CREATE TABLE IF NOT EXISTS stuck (); DROP TABLE stuck;\n")
        holder.stdin.flush()
        self.until("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'", bool,
                   DEADLINE)
        return holder

    def unstick(self):
        conf = self.server.folder / "data" / "postgresql.auto.conf"
        lines = conf.read_text().splitlines(keepends=True)
        conf.write_text("".join(l for l in lines if "synchronous_standby_names" not in l))

    def run(self, race, run):
        units = []
        for i, (verb, (state, _, _)) in enumerate(VERBS.items()):
            way = ("direct", "pooled")[(i + run) % 2]
            unit = Unit(verb, f"{race}-{way}", run)
            unit.verb, unit.state, unit.way = verb, state, way
            units.append(unit)
        self.make(units, f"{race}-{run}")
        self.until("SELECT count(*) FROM holdfast.runtime_work WHERE status = 'running' AND "
                   "lease_expires_at - active_at < 2000 AND lease_expires_at > extract(epoch FROM "
                   "clock_timestamp()) * 1000", lambda n: n == 0, DEADLINE)
        holder = self.block() if race == "waits" else self.stick()
        callers = [subprocess.Popen([HOLDFAST, "--db", self.server.urls[u.way],
                                     *VERBS[u.verb][1](u)], stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True) for u in units]
        waiting = "Lock" if race == "waits" else "IPC"
        self.until("SELECT count(*) FROM pg_stat_activity WHERE application_name <> 'psql' AND "
                   f"wait_event_type = '{waiting}'", lambda n: n >= len(units), 1.5)
        self.server.crash()
        holder.kill()
        holder.wait()
        if race == "commits":
            self.unstick()
        time.sleep(0.15)  # they look for the server by now
        if self.pause:
            for caller in callers:
                caller.send_signal(signal.SIGSTOP)
        self.server.start()
        self.server.sql(OTHERS)
        if self.pause:
            time.sleep(self.pause)
            for caller in callers:
                caller.send_signal(signal.SIGCONT)
        self.judge(units, callers)

    def judge(self, units, callers):
        for unit, caller in zip(units, callers):
            try:
                said, _ = caller.communicate(timeout=DEADLINE)
            except subprocess.TimeoutExpired:
                caller.kill()
                said = "it did not end"
            unit.code, unit.said = caller.returncode, said
        for unit in units:
            effects = int(self.server.sql(VERBS[unit.verb][2](unit)))
            self.tally[unit.verb, unit.way, "done" if unit.code == 0 else
                       "uncertain" if unit.code == 8 else "not done"] += 1
            true = (effects == 1 if unit.code == 0 else
                    effects <= 1 if unit.code == 8 else
                    effects == 0 and unit.code in (4, 5, 6))
            if unit.code not in (0, 8):
                print(f"# {unit.tag}: exit {unit.code}: {unit.said.strip()}", file=sys.stderr)
            if not true:
                self.wrong.append(f"{unit.tag}: exit {unit.code}, {effects} effects: "
                                  f"{unit.said.strip()}")

    def report(self):
        for verb in VERBS:
            print(f"# {verb}: " + "; ".join(f"{way} " + ", ".join(
                f"{self.tally[verb, way, what]} {what}" for what in ("done", "uncertain", "not done"))
                for way in ("direct", "pooled")), file=sys.stderr)
        for line in self.wrong:
            print(f"not ok - {line}", file=sys.stderr)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--runs", type=int, default=1)
    options.add_argument("--pause", type=float, default=3.5, help="seconds, 0: none")
    options.add_argument("--race", choices=("waits", "commits"))
    args = options.parse_args()
    server = Server()
    try:
        race = Race(server, args.pause)
        race.cli("migrate")
        for run in range(args.runs):
            for name in (args.race,) if args.race else ("waits", "commits"):
                race.run(name, run)
        race.report()
    finally:
        server.close()
    sys.exit(1 if race.wrong else 0)


if __name__ == "__main__":
    main()
