#!/usr/bin/env python3
"""The lines of docs/fleet.md and of README.md, and the roles of docs/operate.md, as they are, against one server.

The pages' server is db.example. libpq takes PGHOSTADDR for the address of any host, and PGPORT where an
address names no port; so the lines themselves need not be changed. README names a SQLite file: its examples
run once more as the role `worker` of fleet.md.
"""

import json
import os
import re
import shlex
import subprocess
import tempfile
import unittest

import run_examples

PG = os.environ["PG_SCRIPT"]
BLOCK = re.compile(r"^```sh fleet\n(.*?)^```\n", re.S | re.M)
WORKER = "postgres://worker@db.example/holdfast"


def page(name):
    with open(os.path.join(run_examples.ROOT, name), encoding="utf-8") as text:
        return text.read()


class Fleet(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        base = tempfile.TemporaryDirectory(prefix="hf-fleet-")
        cls.addClassCleanup(base.cleanup)
        os.chmod(base.name, 0o755)
        server = os.path.join(base.name, "pg")
        subprocess.run([PG, "up", server], check=True, stdout=subprocess.DEVNULL)
        cls.addClassCleanup(subprocess.run, [PG, "down", server], check=True)
        with open(os.path.join(server, "port"), encoding="ascii") as port:
            cls.port = port.read().strip()
        cls.folder = os.path.join(base.name, "work")
        os.mkdir(cls.folder)

    def run_lines(self, name, block, change=lambda text: text):
        """Runs every command of the page's blocks in one bash: each exits as its line says."""
        programs = [os.path.dirname(os.path.realpath(os.environ[name]))
                    for name in ("HOLDFAST", "HOLDFAST_BENCH")]
        text, lines = page(name), []
        for found in block.finditer(text):
            first = text.count("\n", 0, found.start(1)) + 1
            for line, command, wanted in run_examples.commands(found.group(1), first):
                command = change(command)
                lines += [f"eval {shlex.quote(command)}; rc=$?",
                          f"[ $rc -eq {wanted} ] || {{ echo {name}:{line}: exit $rc; exit 1; }}"]
        self.assertGreater(len(lines), 8)
        env = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        env.update(PATH=":".join([*programs, env["PATH"]]), PGHOSTADDR="127.0.0.1", PGPORT=self.port,
                   PGUSER="hf", NO_COLOR="1", HOME=self.folder)
        done = subprocess.run(["bash", "-s"], input="\n".join(lines) + "\nexit 0\n", text=True,
                              cwd=self.folder, env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_1_the_lines_of_the_fleets_page(self):
        out = self.run_lines("docs/fleet.md", BLOCK)
        self.assertIn("role reader lacks privileges; GRANT it USAGE on all sequences; INSERT,"
                      " UPDATE, DELETE on all tables", out)
        self.assertNotIn("ERROR", out)
        self.assertIn("kept per finished job", out)
        for shell in re.findall(r"(?m)^```sh.*$", page("docs/fleet.md")):
            self.assertEqual(shell, "```sh fleet")  # no line is left out

    def test_2_readmes_lines_as_a_worker(self):
        out = self.run_lines("README.md", run_examples.BLOCK,
                             lambda text: text.replace("HOLDFAST_DB=$PWD/work.db",
                                                       f"HOLDFAST_DB={WORKER}"))
        self.assertNotIn("work.db", out)
        self.assertIn("20 pages", out)
        self.assertIn('"how":"pidfd', out)

    def make_rows(self, env):
        """One of each thing that the reader is to show, and their ids as variables."""
        script = """set -e
            $HOLDFAST session create s1 --agent a --quiet
            $APPROVAL $HOLDFAST_DB send 250 >&2; $APPROVAL $HOLDFAST_DB work 250 >&2
            $HOLDFAST process start --disposition externally_owned --ref job-1 --json
            $HOLDFAST schedule add nightly --cron '0 3 * * *' --kind report --quiet
            $HOLDFAST trigger subscribe mails --kind triage --source-type mail --source-key in --wake-session s1 --quiet
            $HOLDFAST trigger emit --source-type mail --source-key in --idempotency-key m1 --quiet
            $HOLDFAST wait list --json; $HOLDFAST trigger occurrences --json"""
        done = subprocess.run(["sh", "-c", script], env=env, text=True, capture_output=True,
                              check=False, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        process, waits, occurrences = [json.loads(line) for line in done.stdout.splitlines()]
        return {"WAIT": waits["items"][0]["wait_id"], "PROCESS": process["work"]["work_id"],
                "OCCURRENCE": occurrences["items"][0]["occurrence_id"]}

    def test_3_all_that_reads_needs_select_only(self):
        env = {**os.environ, "PGHOSTADDR": "127.0.0.1", "PGPORT": self.port, "HOLDFAST_DB": WORKER}
        env.update(self.make_rows(env))
        env["HOLDFAST_DB"] = WORKER.replace("worker", "reader")
        for words in ("work list --all", "work show $ID", "work events $ID", "work output $ID",
                      "work stats", "work tail --no-follow", "job list", "limit list",
                      "process list", "process granted s1", "schedule list", "trigger list",
                      "trigger granted s1", "policy show", "store log", "attention", "top --once",
                      "doctor", "session list", "session show s1", "session log s1", "session inputs s1",
                      "session effects payments", "session turn payments", "wait list", "wait show $WAIT",
                      "effect list", "queue list", "holder list", "work ages",
                      "trigger occurrences", "trigger deliveries $OCCURRENCE", "schedule show nightly",
                      "process show $PROCESS", "process events $PROCESS", "store facts"):
            done = subprocess.run(["sh", "-c", "ID=$($HOLDFAST work list --all --limit 1 "
                                   f"--field work_id 2>&1 | head -1) && $HOLDFAST {words}"], env=env, text=True,
                                  capture_output=True, check=False, timeout=60)
            self.assertEqual(done.returncode, 10 if words == "attention" else 0,
                             f"{words}: {done.stderr}")

    def test_4_the_roles_of_the_operators_page(self):
        grants = re.search(r"(?ms)^```sql\n(.*?)^```\n", page("docs/operate.md")).group(1)
        owner = "postgres://holdfast@db.example/operated"
        env = {**os.environ, "PGHOSTADDR": "127.0.0.1", "PGPORT": self.port, "PGUSER": "hf"}

        def run(*words, code=0):
            done = subprocess.run(words, env=env, text=True, capture_output=True, check=False, timeout=60)
            self.assertEqual(done.returncode, code, f"{words}: {done.stdout}{done.stderr}")
            return done.stdout

        def sql(role, text, code=0):
            return run("psql", "-qAt", owner.replace("holdfast@", role + "@"), "-v", "ON_ERROR_STOP=1", "-c", text,
                       code=code)

        run("createdb", "--owner", "holdfast", "--encoding", "UTF8", "--template", "template0", "operated")
        run(os.environ["HOLDFAST"], "--db", owner, "migrate")
        sql("holdfast", grants)
        # as a later version would
        sql("holdfast", "CREATE TABLE holdfast.later (id bigserial, text text)")
        sql("worker", "INSERT INTO holdfast.later (text) VALUES ('x')")
        self.assertEqual(sql("reader", "SELECT text FROM holdfast.later"), "x\n")
        sql("reader", "DELETE FROM holdfast.later", code=1)
        run(os.environ["HOLDFAST"], "--db", owner.replace("holdfast@", "worker@"), "run", "--", "true")
        run(os.environ["HOLDFAST"], "--db", owner.replace("holdfast@", "reader@"), "work", "list", "--all")


if __name__ == "__main__":
    unittest.main(verbosity=1)
