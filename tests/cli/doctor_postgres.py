#!/usr/bin/env python3
"""What `holdfast doctor` says of a PostgreSQL server that is not as it should be."""

import os
import select
import signal
import subprocess
import tempfile
import urllib.parse

import doctor_edits
from harness import HOLDFAST, Case, main

PG = os.environ["PG_SCRIPT"]
SKEWED = os.environ["SKEWED_CLOCK"]


def ask(verb, folder):
    return subprocess.run([PG, verb, folder], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


class DoctorOfAServer(Case):
    @classmethod
    def setUpClass(cls):
        base = tempfile.TemporaryDirectory(prefix="hf-doctor-")
        cls.addClassCleanup(base.cleanup)
        os.chmod(base.name, 0o755)
        cls.server = os.path.join(base.name, "pg")
        cls.url = ask("up", cls.server)
        cls.addClassCleanup(ask, "down", cls.server)
        cls.pooled = ask("pooler", cls.server)

    def setUp(self):
        super().setUp()
        self.env["HOLDFAST_DB"] = self.url

    def sql(self, *statements):
        args = [part for text in statements for part in ("-c", text)]
        return subprocess.run(["psql", self.url, "-qAt", *args], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.strip()

    def backends(self):
        return self.sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' "
                        "AND pid <> pg_backend_pid()").split()

    def skew(self, seconds):
        """The program's clock, from now on in this test."""
        self.env.update(LD_PRELOAD=SKEWED, SKEW_SECONDS=seconds)
        if any("SAN_OPTIONS" in name for name in self.env):
            self.env["ASAN_OPTIONS"] = self.env.get("ASAN_OPTIONS", "") + \
                ":verify_asan_link_order=0"

    def commits(self, database):
        """Transactions in it so far: a connection tells of its own as it ends, before it is gone."""
        while self.sql(f"SELECT 1 FROM pg_stat_activity WHERE datname = '{database}'"):
            pass
        return int(self.sql(f"SELECT xact_commit FROM pg_stat_database WHERE datname = '{database}'"))

    def findings(self, what):
        answer = self.cli("--json", "doctor").json
        found = [f for f in answer["findings"] if f["what"] == what]
        self.assertTrue(found, answer["findings"])
        self.assertFalse(any(f["bad"] for f in answer["findings"]))
        return found

    def the(self, what):
        found = self.findings(what)
        self.assertEqual(len(found), 1, found)
        return found[0]

    def test_an_effect_of_a_scope_whose_columns_do_not_fit(self):
        self.create("effects")
        self.addCleanup(self.sql, "DELETE FROM holdfast.scope_effect")
        for columns, said in doctor_edits.SCOPE_EFFECTS:
            with self.subTest(columns):
                self.sql("SET search_path = holdfast", "DELETE FROM scope_effect",
                         doctor_edits.scope_effect(**columns))
                found = [f for f in self.cli("--json", "doctor", code=9).json["findings"] if f["bad"]]
                self.assertEqual([(f["what"], f["detail"]) for f in found],
                                 [("effects", "operation o, effect 1: " + said)])
        self.sql("SET search_path = holdfast", "DELETE FROM scope_effect",
                 doctor_edits.scope_effect(scope="process", scope_id="p"))
        self.assertEqual(self.the("effects")["detail"], "process p, effect 1: there is no such process")

    def test_the_connection_that_holds_back_vacuum_is_named(self):
        self.create("vacuum")
        self.assertIn("no snapshot holds it back", self.the("vacuum")["detail"])
        holder = subprocess.Popen(["psql", self.url, "-qAt"], stdin=subprocess.PIPE, text=True,
                                  stdout=subprocess.PIPE,
                                  env={**os.environ, "PGAPPNAME": "forgotten report"})
        try:
            holder.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ;\n"
                               "SELECT pg_backend_pid();\n")
            holder.stdin.flush()
            pid = holder.stdout.readline().strip()
            young = self.the("vacuum")
            self.assertIn("the oldest snapshot is", young["detail"])
            self.assertEqual(young["advice"], "")
            # Each block of its own is a transaction id of its own.
            self.sql("CREATE TEMP TABLE ids (n int)", "DO $$ BEGIN FOR i IN 1..100001 LOOP"
                     " BEGIN INSERT INTO ids VALUES (i); EXCEPTION WHEN others THEN NULL; END;"
                     " END LOOP; END $$")
            old = self.the("vacuum")
            self.assertIn(f"connection {pid} (hf forgotten report idle in transaction) holds"
                          " back vacuum", old["detail"])
            self.assertRegex(old["detail"], r"1000\d\d transactions")
            self.assertIn("pg_terminate_backend", old["advice"])
        finally:
            holder.communicate()
        self.assertIn("no snapshot holds it back", self.the("vacuum")["detail"])

    def begin(self, database, name):
        """A connection that has written, and stays in its transaction; with its process id."""
        holder = subprocess.Popen(["psql", self.url.replace("///hf?", f"///{database}?"), "-qAt"],
                                  stdin=subprocess.PIPE, text=True, stdout=subprocess.PIPE,
                                  env={**os.environ, "PGAPPNAME": name})
        self.addCleanup(holder.communicate)
        holder.stdin.write("BEGIN; SELECT txid_current() > 0; SELECT pg_backend_pid();\n")
        holder.stdin.flush()
        self.assertEqual(holder.stdout.readline(), "t\n")
        return holder, holder.stdout.readline().strip()

    def test_a_transaction_that_has_written_and_idles_is_named(self):
        self.sql("CREATE DATABASE elsewhere")
        self.assertEqual(self.the("feed")["detail"], "no event is held back")
        other, far = self.begin("elsewhere", "import")
        here, near = self.begin("hf", "shell")
        self.create("kept back")
        for _ in range(500):  # until it is a second old
            feed = self.the("feed")
            if feed["advice"]:
                break
        self.assertIn(f"connection {far} (hf import idle in transaction) keeps events back from"
                      " `work tail`", feed["detail"])
        self.assertIn("in whichever database of the server", feed["advice"])
        # It has no snapshot between two statements, and holds back vacuum all the same; not that
        # of another database.
        self.sql("CREATE TEMP TABLE ids (n int)", "DO $$ BEGIN FOR i IN 1..100001 LOOP"
                 " BEGIN INSERT INTO ids VALUES (i); EXCEPTION WHEN others THEN NULL; END;"
                 " END LOOP; END $$")
        self.assertIn(f"connection {near} (hf shell idle in transaction) holds back vacuum",
                      self.the("vacuum")["detail"])
        other.communicate()
        self.assertIn(f"connection {near} ", self.the("feed")["detail"])
        here.communicate()
        self.assertEqual(self.the("feed")["detail"], "no event is held back")

    def test_what_a_role_may_not_see_is_not_said_to_be_in_order(self):
        self.create("hidden")
        self.assertEqual(self.the("vacuum")["advice"], "")
        self.sql("CREATE ROLE plain LOGIN", "GRANT USAGE ON SCHEMA holdfast TO plain",
                 "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA holdfast TO plain",
                 "GRANT USAGE ON ALL SEQUENCES IN SCHEMA holdfast TO plain")
        self.env["HOLDFAST_DB"] = self.url.replace("user=hf", "user=plain")
        _, pid = self.begin("hf", "shell")
        self.create("behind")
        vacuum, feed = self.the("vacuum"), self.the("feed")
        self.assertIn(", and for how long is hidden from this role", vacuum["detail"])
        self.assertIn("GRANT pg_read_all_stats", vacuum["advice"])
        self.assertIn(f"connection {pid} (hf shell -) keeps events back", feed["detail"])
        self.assertIn("GRANT pg_read_all_stats", feed["advice"])
        self.sql("GRANT pg_read_all_stats TO plain")
        self.assertEqual(self.the("vacuum")["advice"], "")

    def test_dead_rows_are_counted(self):
        self.create("bloat")
        self.assertIn("no table has many dead rows", self.the("bloat")["detail"])
        self.sql("INSERT INTO holdfast.hf_store_log (at, what)"
                 " SELECT 1, 'filler' FROM generate_series(1, 20000)",
                 "DELETE FROM holdfast.hf_store_log WHERE what = 'filler'",
                 "SELECT pg_stat_force_next_flush()")
        found = self.the("bloat")
        self.assertIn("hf_store_log has 20000 dead rows, 100 % of all", found["detail"])
        self.assertIn("VACUUM", found["advice"])
        self.sql("VACUUM holdfast.hf_store_log")

    def test_settings_that_lose_what_was_acknowledged(self):
        said = [f["detail"] for f in self.findings("settings")]
        self.assertEqual(said, [
            "fsync is off: a crash of the server can lose committed changes",
            "full_page_writes is off: a crash of the server can lose committed changes"])
        self.sql("ALTER SYSTEM SET autovacuum = off", "SELECT pg_reload_conf()")
        try:
            for _ in range(500):  # until the server has read it
                if self.sql("SHOW autovacuum") == "off":
                    break
            self.assertIn("autovacuum is off: dead rows are never removed",
                          [f["detail"] for f in self.findings("settings")])
        finally:
            self.sql("ALTER SYSTEM RESET autovacuum", "SELECT pg_reload_conf()")

    def test_guards_that_are_gone_or_switched_off(self):
        self.env["HOLDFAST_DB"] = self.url + "&schema=unguarded"
        self.create("guarded")
        self.assertEqual(self.the("guards")["detail"], "all are in place")
        self.sql("DROP TRIGGER work_born ON unguarded.work_state",
                 "ALTER TABLE unguarded.work_state DISABLE TRIGGER work_moved")
        gone, trigger = self.findings("guards")
        self.assertEqual(gone["detail"], "the trigger work_born is missing: plain SQL can "
                         "write what the ledger would refuse")
        self.assertIn("migrate --dump-sql", gone["advice"])
        self.assertIn("the trigger work_moved is switched off", trigger["detail"])
        self.assertEqual(trigger["advice"], "ALTER TABLE work_state ENABLE TRIGGER work_moved")

    def test_a_schema_that_is_one_ahead_is_no_fault_and_an_older_one_asks_for_migrate(self):
        self.env["HOLDFAST_DB"] = self.url + "&schema=exchanged"
        self.create("both")
        self.sql("INSERT INTO exchanged.hf_schema SELECT max(version) + 1, 'next', 1, 'x'"
                 " FROM exchanged.hf_schema")
        ahead = int(self.sql("SELECT max(version) FROM exchanged.hf_schema"))
        found = self.the("schema")
        self.assertEqual(found["detail"],
                         f"version {ahead}, of the next program: this one has {ahead - 1}")
        self.assertIn("replace this holdfast by the newer one", found["advice"])
        self.assertEqual(self.ok("migrate")["schema_version"], ahead)
        self.sql(f"DELETE FROM exchanged.hf_schema WHERE version > {ahead - 2}")
        error = self.cli("--json", "work", "list", code=9).json["error"]
        self.assertEqual((error["code"], error["action"]),
                         ("schema_older", "run `holdfast migrate`"))

    def test_trails_are_folded_a_few_thousand_at_a_time(self):
        self.sql("CREATE DATABASE many")
        self.env["HOLDFAST_DB"] = self.url.replace("///hf?", "///many?")
        self.file("units.jsonl", "".join(f'{{"source_system":"manual","source_id":"u{i}"}}\n'
                                         for i in range(10500)))
        self.ok("migrate")
        before = self.commits("many")
        self.the("chains")
        of_none = self.commits("many") - before
        self.ok("work", "reconcile", "--from", "units.jsonl")
        before = self.commits("many")
        found = self.the("chains")["detail"]
        of_many = self.commits("many") - before
        self.assertIn("10500 units, 10500 events, every trail folds", found)
        self.assertGreaterEqual(of_many, of_none + 2)  # each time a transaction, at the least
        # What is wrong is found in each of them.
        self.env["PGOPTIONS"] = "-c session_replication_role=replica"
        for n in (1, 5001, 10500):
            subprocess.run(["psql", self.env["HOLDFAST_DB"], "-qc", "UPDATE holdfast.work_state SET "
                            "status = 'cancelled', finished_at = 1, gate = NULL WHERE seq = (SELECT seq"
                            f" FROM holdfast.work_spec WHERE source_id = 'u{n - 1}')"],
                           check=True, env=self.env)
        del self.env["PGOPTIONS"]
        answer = self.cli("--json", "doctor", code=9).json
        self.assertEqual(len([f for f in answer["findings"] if f["what"] == "chains"]), 3)

    def test_every_edit_that_no_guard_refuses_is_found(self):
        self.sql("CREATE DATABASE sound")
        sound = self.url.replace("///hf?", "///sound?")
        self.env["HOLDFAST_DB"] = sound
        self.ok("migrate")
        doctor_edits.prepare(self)
        self.the("chains")
        for name, (guarded, edit, said) in {**doctor_edits.BOTH, **doctor_edits.POSTGRES}.items():
            with self.subTest(name):
                self.sql("DROP DATABASE IF EXISTS edited", "CREATE DATABASE edited TEMPLATE sound")
                self.env["HOLDFAST_DB"] = self.url.replace("///hf?", "///edited?")
                role = "origin" if guarded else "replica"
                subprocess.run(["psql", self.env["HOLDFAST_DB"], "-qAt", "-v", "ON_ERROR_STOP=1", "-c",
                                "SET search_path = holdfast", "-c",
                                f"SET session_replication_role = {role}", "-c", edit], check=True)
                answer = self.cli("--json", "doctor", code=9).json
                self.assertIn(said, str([f["detail"] for f in answer["findings"] if f["bad"]]))

    def test_a_refused_call_that_was_written_late_is_no_fault(self):
        """It reads its unit without a lock, so a claim may commit before its event has an id."""
        self.create("overtaken")
        self.cli("work", "claim", "--owner", "w1")
        self.sql("INSERT INTO holdfast.work_event (event_id, seq, event_type, generation, attempt, fence, actor_kind,"
                 " actor, message, created_at) SELECT holdfast.hf_next_id(), seq, 'transition_rejected', 0, 0, 0,"
                 " 'human', 'late', 'refused', holdfast.hf_now() FROM holdfast.work_state"
                 " WHERE status = 'running' AND lease_fence = 1 LIMIT 1")
        self.assertIn("every trail folds", self.the("chains")["detail"])

    def test_clocks_that_are_apart(self):
        self.create("skew")
        self.assertEqual(self.the("skew")["advice"], "")
        self.skew("90")
        found = self.the("skew")
        self.assertRegex(found["detail"],
                         r"the server's clock is (89|90)\d\d\d ms behind this machine's")
        self.assertIn("set both clocks", found["advice"])

    def test_a_waiter_whose_clock_is_ahead_does_not_spin(self):
        self.sql("CREATE DATABASE quiet")
        self.env["HOLDFAST_DB"] = self.url.replace("///hf?", "///quiet?")
        self.ok("work", "create", "--source", "manual", "--source-id", "later", "--queue", "later",
                "--delay", "5m")
        self.skew("3600")
        before = self.commits("quiet")
        self.ok("work", "claim", "--owner", "w", "--queue", "later", "--wait", "2s")
        # It looks once per second; it asks which holders to watch when a caller here has taken a
        # lease.
        self.assertLess(self.commits("quiet") - before, 60)

    def test_times_of_a_new_unit_are_by_the_servers_clock(self):
        self.skew("-7200")
        soon = self.ok("work", "create", "--source", "manual", "--source-id", "soon", "--queue", "skewed",
                       "--start-timeout", "60s")["work"]["work_id"]
        late = self.ok("work", "create", "--source", "manual", "--source-id", "late", "--queue", "skewed",
                       "--delay", "100s")["work"]["work_id"]
        self.ok("work", "sweep")
        shown = [self.ok("work", "show", unit)["work"] for unit in (soon, late)]
        self.assertEqual([(row["status"], row["gate"]) for row in shown],
                         [("queued", None), ("queued", "due")])

    def test_what_is_young_or_fresh_is_so_by_the_servers_clock(self):
        self.create("young")
        self.create("fresh")
        young, fresh = self.ok("work", "claim", "--owner", "w", "--limit", "2")["items"]
        self.ok("work", "close-out", young["work_id"], "--token", young["lease_token"],
                "--status", "done")
        self.skew("864000")
        self.assertEqual(self.ok("work", "prune", "--older-than", "1d")["pruned"], 0)
        self.assertEqual(self.ok("work", "list", "--older-than", "1d")["items"], [])
        renewed = self.ok("work", "renew", "--owner", "w", "--fresh", "1d")["items"]
        self.assertEqual([row["work_id"] for row in renewed], [fresh["work_id"]])

    def test_ages_and_what_needs_you_are_by_the_servers_clock(self):
        self.create("aged", "--queue", "aged", "--disposition", "owner_bound")
        self.create("asks", "--queue", "asks")
        self.ok("work", "claim", "--owner", "aged", "--queue", "aged", "--ttl", "1h")
        asks = self.claim("--queue", "asks")
        self.ok("work", "wait", asks["work_id"], "--token", asks["lease_token"], "--kind", "user",
                "--ref", "aged-1", "--timeout", "30h")
        self.ok("schedule", "add", "aged", "--every", "1h", "--kind", "k")
        for seconds in ("864000", "-864000"):
            self.skew(seconds)
            found = self.cli("--json", "attention", code=10).json["items"]
            [item] = [one for one in found if one["what"] not in ("ended_badly", "unserved")]
            self.assertEqual((item["what"], item["id"]), ("question", asks["work_id"]))
            top = self.cli("top").out
            self.assertRegex(top, r" aged +\d+(ms|s)  +59m")
            self.assertRegex(top, r" aged-1 +\d+(ms|s)  +1d 5h")
            self.assertRegex(top, r"aged +k +in (59m|1h)")
            aged = [line for line in self.cli("work", "list").out.split("\n") if " aged " in line]
            self.assertRegex(aged[0], r" aged +work +\d+(ms|s)  lease (59m|1h)")
            self.assertRegex(self.cli("work", "show", asks["work_id"]).out,
                             r"created_at +\S+  \(\d+(ms|s) ago\)")
            self.assertNotRegex(self.cli("work", "stats").out, "next wait deadline in +-")

    def test_a_retry_of_a_run_comes_when_the_server_says(self):
        self.skew("-864000")
        done = self.cli("run", "--json", "--disposition", "rerunnable", "--max-attempts", "2", "--",
                        "false", code=1)
        self.assertEqual((done.json["status"], done.json["attempts"]), ("failed", 2))

    def test_a_monitor_whose_clock_is_ahead_ends_nobodys_command(self):
        self.ok("policy", "set", "kind:run", "--exec-timeout", "1h")
        os.mkfifo(self.path("go"))
        go = os.open(self.path("go"), os.O_RDWR)
        self.addCleanup(os.close, go)
        with subprocess.Popen([HOLDFAST, "run", "--disposition", "rerunnable", "--", "sh", "-c",
                               "echo begun; read answer < go; exit $answer"], env=self.env,
                              cwd=self.folder, text=True, stdout=subprocess.PIPE) as run:
            self.assertEqual(run.stdout.readline(), "begun\n")
            self.skew("864000")
            self.cli("monitor", "--once")
            os.write(go, b"3\n")
            run.communicate()
            self.assertEqual(run.returncode, 3)

    def test_a_server_that_hangs_holds_up_no_timeout_and_no_output(self):
        self.cli("migrate")
        os.mkfifo(self.path("go"))
        before = set(self.backends())
        with subprocess.Popen([HOLDFAST, "run", "--ttl", "1s", "--timeout", "2s", "--", "sh", "-c",
                               "trap 'echo told; exit 3' TERM; echo begun; cat go & wait"],
                              env=self.env, cwd=self.folder, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
            self.assertEqual(run.stdout.readline(), "begun\n")
            stopped = [int(pid) for pid in set(self.backends()) - before]
            self.assertTrue(stopped)
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            try:
                ready, _, _ = select.select([run.stdout], [], [], 30)
                self.assertTrue(ready, "no word of the command while the server hangs")
                self.assertEqual(run.stdout.readline(), "told\n")
            finally:
                for pid in stopped:
                    os.kill(pid, signal.SIGCONT)
            run.communicate(timeout=50)
        unit = self.ok("work", "list", "--all")["items"][-1]
        self.assertEqual((unit["kind"], unit["status"]), ("run", "timeout"))

    def test_a_dump_of_a_server_that_had_counted_further(self):
        other = os.path.join(os.path.dirname(self.server), "other")
        url = ask("up", other)
        self.addCleanup(ask, "down", other)
        self.sql("DO $$ BEGIN FOR i IN 1..5000 LOOP PERFORM txid_current(); COMMIT; END LOOP; END $$")
        self.create("dumped")
        self.assertEqual(self.the("feed"), {"what": "feed", "bad": False, "detail": "no event is held back",
                                            "advice": ""})
        dump = subprocess.run(["pg_dump", "-n", "holdfast", self.url], check=True, stdout=subprocess.PIPE).stdout
        subprocess.run(["psql", url, "-qAt", "-v", "ON_ERROR_STOP=1"], check=True, input=dump,
                       stdout=subprocess.DEVNULL)
        self.env["HOLDFAST_DB"] = url
        found = self.the("feed")
        self.assertRegex(found["detail"], r"events of another server are held back from `work tail` for "
                                          r"\d{4} transactions")
        self.assertIn("store copy", found["advice"])

    def test_a_store_that_is_made_is_said_to_be(self):
        self.env["HOLDFAST_DB"] = f"{self.url}&schema=mistyped"
        self.assertIn("no store in schema mistyped", self.refused(9, "not_a_store", "work", "list"))
        self.assertEqual(self.cli("migrate").err,
                         "holdfast: there is no store in schema mistyped yet: made one\n")
        self.assertEqual(self.cli("work", "create", "--source", "manual", "--source-id", "x").err, "")

    def test_a_standby_is_said_to_be_one(self):
        self.create("role")
        self.assertEqual(self.the("role"), {"what": "role", "bad": False, "advice": "",
                                            "detail": "the server takes writes"})
        self.env["HOLDFAST_DB"] = ask("standby", self.server)
        found = self.the("role")
        self.assertIn("the server is a standby: it can be read, and takes no writes",
                      found["detail"])
        self.assertIn("target_session_attrs=read-write", found["advice"])
        error = self.cli("--json", "work", "create", "--source", "manual", "--source-id", "x",
                         code=9).json["error"]
        self.assertEqual(error["code"], "store_read_only")
        self.assertIn("read-only standby", error["message"])
        self.assertIn("a server's schema", error["action"])

    def test_a_pooler_and_the_way_past_it(self):
        self.create("pooler")
        self.assertEqual(self.the("bell")["detail"], "wake-ups: listening; pooler: none")
        self.env["HOLDFAST_DB"] = self.pooled
        found = self.the("bell")
        self.assertEqual(found["detail"], "wake-ups: polling; pooler: transaction")
        self.assertIn("listen_url", found["advice"])
        past = urllib.parse.quote(self.url, safe="")
        self.env["HOLDFAST_DB"] = f"{self.pooled}&listen_url={past}"
        found = self.the("bell")
        self.assertEqual(found["detail"], "wake-ups: listening; pooler: transaction")
        self.assertEqual(found["advice"], "")


if __name__ == "__main__":
    main()
