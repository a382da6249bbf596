#!/usr/bin/env python3
"""holdfast-bench measures every figure next to the raw program of both engines. No rate is judged."""

import json
import os
import subprocess
import tempfile

from harness import Case, main

BENCH = os.environ["HOLDFAST_BENCH"]
PG = os.environ["PG_SCRIPT"]
if os.access("/dev/shm", os.W_OK):
    tempfile.tempdir = "/dev/shm"  # no rate is judged, so no sync has to reach a disk
SMALL = ["--json", "--jobs", "1000", "--rounds", "1", "--finished", "1000"]
# Figure: the bars on SQLite and on PostgreSQL.
BARS = {
    "create, 1 caller": ("at least 0.60", ""),
    "create, 16 callers": ("", "at least 0.60"),
    "process": ("at least 0.17", "at least 0.20"),
    "process, pool": ("", ""),
    "end to end, 16 callers": ("at least 0.12", "at least 0.12"),
    "end to end, pool": ("", ""),
    "pick-up, pool": ("at most 2 ms more", "at most 3.0"),
    "pick-up, waiting claim": ("", ""),
    "kill to reclaim": ("at most 50 ms", "at most 50 ms"),
    "kept per finished job": ("", ""),
    "claim of 100, large table": ("at most 1.3", "at most 1.3"),
    "commit, 1 session": ("at least 0.50", ""),
    "commit, 16 sessions": ("at least 2.00", "at least 0.50"),
    "step, 1 session": ("at least 0.40", ""),
    "step, 16 sessions": ("", "at least 0.40"),
    "head of a session": ("at least 0.50", "at least 0.50"),
    "commit on 10,000 nodes": ("at most 1.2", "at most 1.2"),
    "claim, many idle sessions": ("at most 1.3", "at most 1.3"),
    "answer, 1 caller": ("at least 0.40", ""),
    "answer, 16 callers": ("", "at least 0.40"),
    "claim, many waiting turns": ("at most 1.3", "at most 1.3"),
    "heap of 300 claims": ("at most 1.3", "at most 1.3"),
    "renewal of 10,000": ("", ""),
}
ALONE = ("kill to reclaim", "renewal of 10,000")  # figures without a raw side


def server(verb, folder):
    return subprocess.run([PG, verb, folder], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


class Runs(Case):
    def bench(self, *args, code=0):
        done = subprocess.run([BENCH, *args], env=self.env, cwd=self.folder, text=True,
                              capture_output=True, timeout=200, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr if code else [json.loads(line) for line in done.stdout.splitlines()]

    def judge(self, figures, engine):
        self.assertEqual([f["figure"] for f in figures], list(BARS))
        for figure in figures:
            bar = BARS[figure["figure"]][engine]
            self.assertEqual(figure["bar"], bar, figure)
            self.assertIn(figure["verdict"], ("met", "missed") if bar else ("",), figure)
            self.assertGreater(figure["ours"], 0, figure)
            alone = figure["figure"] in ALONE
            self.assertEqual(figure["raw"] > 0, not alone, figure)
            self.assertEqual(figure["share"] > 0, not alone, figure)


class Bench(Runs):
    def test_each_figure_has_its_raw_side_and_its_bar_on_a_file(self):
        self.judge(self.bench(*SMALL, "--folder", self.folder), 0)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_group_is_measured_alone(self):
        figures = self.bench(*SMALL, "kept")
        self.assertEqual([f["figure"] for f in figures], ["kept per finished job"])

    def test_what_cannot_be_measured_is_refused_by_name(self):
        self.assertIn("jobs: a number from 1000", self.bench("--jobs", "5", code=2))
        self.assertIn("there is no group \"nothing\"", self.bench("nothing", code=2))
        self.assertIn("folder: ", self.bench("--folder", "/nonexistent", code=2))
        self.assertIn("db: must be postgres://", self.bench("--db", "work.db", code=2))


class BenchOfAServer(Runs):
    @classmethod
    def setUpClass(cls):
        base = tempfile.TemporaryDirectory(prefix="hf-bench-")
        cls.addClassCleanup(base.cleanup)
        os.chmod(base.name, 0o755)
        cls.server = os.path.join(base.name, "pg")
        cls.url = server("up", cls.server)
        cls.addClassCleanup(server, "down", cls.server)

    def sql(self, text):
        return subprocess.run(["psql", self.url, "-qAtc", text], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.strip()

    def test_each_figure_has_its_raw_side_and_its_bar_on_a_server(self):
        self.judge(self.bench(*SMALL, "--db", self.url), 1)
        self.assertEqual(self.sql("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'holdfast%'"), "0")

    def test_a_missing_privilege_is_named_and_nothing_is_left(self):
        self.sql("CREATE ROLE guest LOGIN")
        text = self.bench(*SMALL, "--db", self.url.replace("user=hf", "user=guest"), code=9)
        self.assertIn("privilege missing: CREATE on database hf", text)
        self.assertIn("store_read_only", text)
        self.assertNotIn("retry", text)

    def test_two_runs_in_one_database_do_not_disturb_each_other(self):
        with subprocess.Popen(["psql", self.url, "-qAt"], text=True, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as other:
            other.stdin.write("SELECT pg_advisory_lock(hashtext('holdfast_bench'));\nSELECT 'has it';\n")
            other.stdin.flush()
            while "has it" not in other.stdout.readline():
                pass
            text = self.bench(*SMALL, "--db", self.url, code=6)
            self.assertIn("another holdfast-bench is at work in database hf", text)
            other.stdin.close()


if __name__ == "__main__":
    main()
