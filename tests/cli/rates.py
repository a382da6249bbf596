#!/usr/bin/env python3
"""Limits with a rate: never more starts than burst + rate x time, on both engines."""

import json
import os
import subprocess
import tempfile
import threading
import time

from harness import HOLDFAST, Case, main

PG = os.environ["PG_SCRIPT"]
RATE, BURST, SECONDS, WORKERS = 20, 3, 2.0, 4


def ask(verb, folder):
    return subprocess.run([PG, verb, folder], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


class Rates(Case):
    def fill(self, count):
        self.ok("limit", "set", "rate:api", "--rate", str(RATE), "--per", "1s", "--burst", str(BURST))
        for i in range(count):
            self.ok("job", "enqueue", "call", "--queue", "q", "--rate-key", "api", "--idempotency-key",
                    f"u{i}")

    def work(self, owner, end):
        while time.monotonic() < end:
            claimed = subprocess.run([HOLDFAST, "--json", "work", "claim", "--owner", owner, "--queue", "q",
                                      "--wait", "200ms"], env=self.env, cwd=self.folder, check=True,
                                     stdout=subprocess.PIPE)
            for item in json.loads(claimed.stdout)["items"]:
                subprocess.run([HOLDFAST, "--json", "work", "close-out", item["work_id"], "--token",
                                item["lease_token"], "--status", "done"], env=self.env, cwd=self.folder,
                               check=True, stdout=subprocess.DEVNULL)

    def never_more_than_burst_and_rate(self):
        self.fill(int(BURST + RATE * SECONDS) + 20)
        end = time.monotonic() + SECONDS
        workers = [threading.Thread(target=self.work, args=(f"w{i}", end)) for i in range(WORKERS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        starts = sorted(row["started_at"] for row in self.ok("work", "list", "--all", "--limit", "500")["items"]
                        if row["started_at"])
        self.assertGreater(len(starts), BURST)
        for i, first in enumerate(starts):
            for j in range(i, len(starts)):
                self.assertLessEqual(j - i, BURST + RATE * (starts[j] - first) / 1000,
                                     (starts[i:j + 1], i, j))


class Lite(Rates):
    def test_starts_are_never_more_than_burst_and_rate(self):
        self.never_more_than_burst_and_rate()


class Postgres(Rates):
    @classmethod
    def setUpClass(cls):
        base = tempfile.TemporaryDirectory(prefix="hf-rates-")
        cls.addClassCleanup(base.cleanup)
        os.chmod(base.name, 0o755)
        server = os.path.join(base.name, "pg")
        cls.url = ask("up", server)
        cls.addClassCleanup(ask, "down", server)

    def test_starts_are_never_more_than_burst_and_rate(self):
        self.env["HOLDFAST_DB"] = self.url + "&schema=rates"
        self.ok("migrate")
        self.never_more_than_burst_and_rate()

    def test_a_claim_that_waited_for_the_limit_does_not_set_its_clock_back(self):
        self.env["HOLDFAST_DB"] = self.url + "&schema=waited"
        self.ok("migrate")
        self.fill(1)
        with subprocess.Popen(["psql", self.url, "-qAt"], stdin=subprocess.PIPE, text=True,
                              stdout=subprocess.PIPE) as other:
            def say(text):
                other.stdin.write(text + "\n")
                other.stdin.flush()
            say("SET search_path = waited; CREATE TABLE set_back (at bigint); CREATE FUNCTION set_back()"
                " RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO waited.set_back VALUES"
                " (NEW.level_at); RETURN NEW; END $$; CREATE TRIGGER set_back BEFORE UPDATE ON work_limit"
                " FOR EACH ROW WHEN (NEW.level_at < OLD.level_at) EXECUTE FUNCTION set_back();")
            say("BEGIN; SELECT name FROM work_limit FOR UPDATE;")
            self.assertEqual(other.stdout.readline(), "rate:api\n")
            with subprocess.Popen([HOLDFAST, "--json", "work", "claim", "--owner", "w", "--queue", "q"],
                                  env=self.env, cwd=self.folder, stdout=subprocess.PIPE) as claim:
                while True:  # until it waits for the row
                    say("SELECT pg_stat_clear_snapshot() IS NULL; SELECT count(*) FROM pg_stat_activity"
                        " WHERE wait_event_type = 'Lock';")
                    self.assertEqual(other.stdout.readline(), "f\n")
                    if other.stdout.readline() != "0\n":
                        break
                say("SELECT pg_sleep(0.2) IS NULL; UPDATE work_limit SET level_at = hf_now() RETURNING level_at;")
                self.assertEqual(other.stdout.readline(), "f\n")
                filled = int(other.stdout.readline())
                say("COMMIT;")
                claimed, _ = claim.communicate()
            self.assertEqual(len(json.loads(claimed)["items"]), 1)
            say("SELECT count(*) FROM set_back;")
            self.assertEqual(other.stdout.readline(), "0\n", f"after {filled}")
            other.stdin.close()


if __name__ == "__main__":
    main()
