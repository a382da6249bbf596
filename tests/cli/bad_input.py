#!/usr/bin/env python3
"""What is typed wrongly: a typed error that names the field, the exit code, no row written."""

import os
import resource
import shutil
import sqlite3
import subprocess
import sys

from harness import HOLDFAST, Case, main

# Takes the turn to write as Holdfast does, and SQLite's write lock; then it is stopped.
STOPS_IN_ITS_TURN = """
import fcntl, os, signal, sqlite3, struct, sys
side = os.open(sys.argv[1] + "-hf", os.O_RDWR)
write_byte = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, (1 << 30) + 1, 1, 0)
fcntl.fcntl(side, fcntl.F_OFD_SETLK, write_byte)
sqlite3.connect(sys.argv[1], isolation_level=None).execute("BEGIN IMMEDIATE")
os.kill(os.getpid(), signal.SIGSTOP)
"""

CREATE = ["work", "create", "--source", "manual", "--source-id"]
GOOD_ID = "00000000-0000-7000-8000-000000000000"


class Usage(Case):
    def usage(self, *args, stdin=b""):
        message = self.refused(2, "invalid_argument", *args, stdin=stdin)
        self.assertFalse(os.path.exists(self.db), args)
        return message

    def test_without_a_command_the_overview_and_exit_2(self):
        alone = self.cli(code=2)
        self.assertEqual(alone.out, "")
        self.assertIn("Usage: holdfast", alone.err)
        self.assertIn("work", self.cli("work", code=2).err)
        self.usage_envelope("--json")
        self.usage_envelope("--json", "work")

    def usage_envelope(self, *args):
        answer = self.cli(*args, code=2).json
        self.assertEqual((answer["ok"], answer["error"]["code"]), (False, "invalid_argument"))

    def test_unknown_commands_with_a_hint(self):
        self.assertIn('did you mean "work"', self.usage("wrok"))
        self.assertIn('did you mean "work create"', self.usage("work", "craete"))
        self.assertIn('did you mean "doctor"', self.usage("docter"))
        self.assertNotIn("did you mean", self.usage("xyzzy"))
        self.assertNotIn("did you mean", self.usage("work", "xyzzy"))
        self.assertIn('did you mean "work output"', self.usage("work", "logs"))
        self.assertIn('did you mean "schedule list"', self.usage("schedule", "ls"))
        self.assertIn('did you mean "holdfast work output"', self.usage("process", "logs"))

    def test_unknown_options_with_a_hint(self):
        self.assertIn("did you mean --source-id", self.usage("work", "create", "--source_id"))
        self.assertIn("did you mean --owner", self.usage("work", "claim", "--ownr", "x"))
        self.assertIn("--bogus", self.usage("work", "list", "--bogus"))
        self.assertIn("before the command", self.usage("--limit", "3", "work", "list"))
        self.usage("work", "list", "-l")
        self.usage("work", "stats", "extra")

    def test_missing_values_and_missing_options(self):
        self.assertIn("--owner", self.usage("work", "claim", "--owner"))
        self.assertIn("--owner", self.usage("work", "claim", "--owner", "--limit", "1"))
        self.assertIn("--owner", self.usage("work", "claim"))
        self.assertIn("--source-id", self.usage("work", "create", "--source", "manual"))
        self.assertIn("--token", self.usage("work", "touch", GOOD_ID))
        self.assertIn("--id", self.usage("work", "show"))
        self.assertIn("--status", self.usage("work", "close-out", GOOD_ID, "--token", "t"))
        self.assertIn("--class", self.usage("work", "fail", GOOD_ID, "--token", "t"))
        self.assertIn("--reason", self.usage("work", "request-abandon", GOOD_ID))
        self.assertIn("--disposition WORD is required: one of rerunnable, owner_bound, externally_owned",
                      self.usage("process", "start", "--", "true"))
        self.assertIn("--name NAME is required", self.usage("schedule", "add", "--every", "1h", "--", "true"))
        self.assertIn("--ref", self.usage("work", "wait", GOOD_ID, "--token", "t", "--kind",
                                          "user"))
        self.assertIn("--older-than", self.usage("work", "prune"))

    def test_an_option_given_twice(self):
        self.assertIn("--queue was given more than once",
                      self.usage(*CREATE, "a", "--queue", "q", "--queue", "q"))
        self.assertIn("--id", self.usage("work", "show", GOOD_ID, "--id", GOOD_ID))
        self.assertIn("--db", self.usage("--db", "a", "--db", "b", "bounds"))

    def test_values_for_flags(self):
        self.assertIn("--detached takes no value", self.usage(*CREATE, "a", "--detached=1"))

    def test_numbers(self):
        for bad in ("x", "", "1.5", "10", "-1", "99999999999999999999", "0x3", " 3"):
            self.assertIn("--priority", self.usage(*CREATE, "a", f"--priority={bad}"))
        for bad in ("0", "1001", "many"):
            self.assertIn("--limit", self.usage("work", "list", "--limit", bad))
        self.assertIn("--pid", self.usage("work", "claim", "--owner", "w", "--pid", "0"))
        self.assertIn("--max-attempts", self.usage(*CREATE, "a", "--max-attempts", "0"))

    def test_durations(self):
        for bad in ("-5s", "x", "", "5 s", "5y", "1e3s", "0.1ms", "999999999999d",
                    "99999999999999999999s"):
            self.assertIn("--delay", self.usage(*CREATE, "a", f"--delay={bad}"))
            self.assertIn("--ttl", self.usage("work", "claim", "--owner", "w",
                                              f"--ttl={bad}"))

    def test_a_duration_of_0_is_not_passed_over(self):
        id_token = [GOOD_ID, "--token", "t"]
        for args in (["work", "claim", "--owner", "w", "--ttl"], [*CREATE, "a", "--exec-timeout"],
                     [*CREATE, "a", "--start-timeout"], [*CREATE, "a", "--spool", "s", "--budget"],
                     ["work", "wait", *id_token, "--kind", "user", "--ref", "r", "--timeout"],
                     ["work", "wait", *id_token, "--kind", "user", "--ref", "r",
                      "--escalate-after"],
                     ["work", "renew", "--owner", "w", "--fresh"],
                     ["monitor", "--once", "--owner", "w", "--fresh"],
                     ["policy", "set", "default", "--exec-timeout"],
                     ["policy", "set", "default", "--wait-user"],
                     ["schedule", "add", "s", "--every", "1m", "--kind", "k",
                      "--miss-threshold"],
                     ["job", "enqueue", "k", "--exec-timeout"]):
            message = self.usage(*args, "0s")
            self.assertIn(f"{args[-1]} must be above 0", message)
        self.assertIn("--interval must be at least 100ms", self.usage("top", "--interval", "0"))
        self.assertIn("--interval must be at most 1h", self.usage("top", "--interval", "2h"))

    def test_an_option_given_very_often_costs_no_more_than_its_texts(self):
        child = subprocess.Popen([HOLDFAST, "work", "list", *["--status=done"] * 20000,
                                  "--status=bad"], env=self.env, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(child.returncode, 2)
        self.assertLess(used.ru_maxrss, 400 << 10)

    def test_a_prune_is_of_all_tenants(self):
        for group in ("work", "process"):
            self.assertIn("all tenants", self.usage("--tenant", "a", group, "prune",
                                                    "--older-than", "1d"))

    def test_an_owner_is_named_as_one(self):
        for bad, wire in (("", "invalid_argument"), ("x" * 192, "too_large"),
                          ("a\nb", "invalid_argument")):
            message = self.refused(2, wire, "work", "claim", f"--owner={bad}")
            self.assertIn("owner must", message)

    def test_words_name_the_legal_ones(self):
        message = self.usage("work", "list", "--status", "dnoe")
        for word in ("queued", "waiting_external", "abandoned"):
            self.assertIn(word, message)
        self.assertIn("conversation, control, scheduler, manual",
                      self.usage("work", "create", "--source", "mail", "--source-id", "a"))
        self.assertIn("expire, rerunnable, owner_bound, externally_owned",
                      self.usage(*CREATE, "a", "--disposition", "forever"))
        self.assertIn("done, failed, timeout, cancelled",
                      self.usage("work", "close-out", GOOD_ID, "--token", "t", "--status",
                                 "running"))
        self.assertIn("user, external", self.usage("work", "wait", GOOD_ID, "--token", "t",
                                                   "--kind", "me", "--ref", "r"))
        self.usage("work", "close-out", GOOD_ID, "--token", "t", "--status", "abandoned")

    def test_json_names_the_place(self):
        for bad in ("{", "", "{'a':1}", '{"a":1}x', '{"a":1,"a":2}', "nul", '"\\ud800"',
                    '"a\nb"', "[1,]", "99999999999999999999"):
            message = self.usage(*CREATE, "a", f"--payload={bad}")
            self.assertIn("--payload", message)
            self.assertRegex(message, r"byte \d+")

    def test_json_from_elsewhere(self):
        self.assertIn("--payload", self.usage(*CREATE, "a", "--payload", "@missing.json"))
        self.assertIn("--payload", self.usage(*CREATE, "a", "--payload", "@" + self.folder))
        self.assertIn("--payload", self.usage(*CREATE, "a", "--payload", "@"))
        for bad in (b"\xff\xfe", b'"\xc3\x28"', b"", b'{"a":\x00}', b'"\xed\xa0\x80"'):
            self.assertIn("--payload", self.usage(*CREATE, "a", "--payload", "-", stdin=bad))
        self.assertIn("standard input", self.usage(
            *CREATE, "a", "--payload", "-", "--retry-policy", "-", stdin=b"{}"))

    def test_arguments_that_are_not_utf8(self):
        for option in ("--kind", "--payload", "--lane"):
            done = self.run_raw(*CREATE, "a", option, b"\xff\xfe")
            self.assertEqual(done.returncode, 2)
            self.assertIn(option.encode(), done.stderr)
        done = self.run_raw("work", "create", "--source", "manual", b"--source-id=\xc0\x80")
        self.assertEqual(done.returncode, 2)

    def test_choices_that_exclude_each_other(self):
        self.usage("work", "resume")
        self.usage("work", "resume", GOOD_ID, "--ref", "r")
        self.usage("work", "close-out", GOOD_ID, "--status", "done")
        self.usage("work", "close-out", GOOD_ID, "--status", "done", "--token", "t",
                   "--authority", "a")
        self.usage("work", "renew", GOOD_ID)
        self.usage("work", "renew", "--owner", "w", "--token", "t")
        self.usage_envelope("work", "list", "--field", "work_id", "--json")
        self.usage("work", "claim", "--owner", "w", "--shell", "--limit", "2")
        self.usage("work", "list", "--field", "work_idd")
        self.usage("monitor", "--pointer", "p.json")
        self.usage("work", "reconcile", "--owner", "w")

    def test_actors(self):
        for bad in ("ann", ":ann", "human:"):
            self.assertIn("--actor", self.usage("--actor", bad, *CREATE, "a"))
        self.cli("migrate")
        self.assertIn("actor_kind", self.refused(2, "invalid_argument", "--actor",
                                                 "robot:x", *CREATE, "a"))
        self.assertEqual(self.rows(), 0)

    def test_stores_that_are_none(self):
        self.assertIn("schema", self.refused(2, "invalid_argument", "--db",
                                             "postgres://h/db?schema=A", "work", "list"))
        self.assertIn("pooler", self.refused(2, "invalid_argument", "--db",
                                             "postgresql://h/db?pooler=x", "work", "list"))
        for torn in ("u:seZ%zzcret@h/db", "u:seZcret@[::1/db", "u:seZcret@[::1]x/db",
                     "u:seZ@cret@h/db", "u:seZ/cret@h/db", "u:%00seZ@h/db",
                     "u:seZcret@h/db?a", "u:seZcret@h/db?foo=bar", "h/db?password=seZ%zz"):
            message = self.usage("--db", f"postgres://{torn}", "work", "list")
            self.assertIn("address", message)
            self.assertNotRegex(message, "seZ|cret")
        for scheme in ("mysql", "Postgres"):
            message = self.usage("--db", f"{scheme}://u:secret@h/db", "work", "list")
            self.assertIn(scheme, message)
            self.assertNotIn("secret", message)
            message = self.refused(2, "invalid_argument", "store", "copy", "--to",
                                   self.db, "--from", f"{scheme}://u:secret@h/db")
            self.assertNotIn("secret", message)
        for other in ("postgres:u:secret@h", "file:work.db", "sqlite:file:work.db",
                      "file:work.db?mode=memory"):
            for args in (["work", "list"], [*CREATE, "a"]):
                self.assertNotIn("secret", self.usage("--db", other, *args))
        for args in (["work", "list"], [*CREATE, "a"]):
            message = self.usage("--db", "host=h dbname=d password=secret", *args)
            self.assertIn("postgres://h/d", message)
            self.assertNotIn("secret", message)
            self.assertIn("postgres://db.example:5432/DATABASE", self.usage("--db", "db.example:5432", *args))
            self.assertNotIn("secret", self.usage("--db", "u:secret@h:5432/db", *args))
        self.assertEqual(os.listdir(self.folder), [])
        self.cli("--db", "sqlite:db.example:5432", "migrate")
        self.assertEqual(self.ok("--db", "./db.example:5432", "work", "list")["items"], [])
        self.usage("--db", "", "work", "list")
        self.assertIn("folder", self.usage("--db", self.folder, "work", "list"))


class Input(Case):
    """Input that only the library can judge."""

    def setUp(self):
        super().setUp()
        self.cli("migrate")

    def nothing_written(self, code, wire, *args):
        message = self.refused(code, wire, *args)
        self.assertEqual(self.rows(), 0, args)
        return message

    def test_keys_are_bounded(self):
        good, bad = "k" * 191, "k" * 192
        for option in ("--kind", "--queue", "--lane", "--dedup-key", "--idempotency-key",
                       "--ref", "--source-run-id", "--payload-ref"):
            self.assertRegex(self.nothing_written(2, "too_large", *CREATE, "a", option, bad),
                             "191")
            self.nothing_written(2, "invalid_argument", *CREATE, "a", option + "=")
        self.nothing_written(2, "too_large", *CREATE, bad)
        self.nothing_written(2, "too_large", *CREATE, "a", "--tenant", bad)
        self.nothing_written(2, "invalid_argument", *CREATE, "a\tb")
        self.ok(*CREATE, good, "--kind", good, "--queue", good, "--lane", good)

    def test_payloads_are_bounded(self):
        big = '"' + "x" * 1048575 + '"'
        self.file("big.json", big)
        self.assertIn("1048576", self.nothing_written(2, "too_large", *CREATE, "a",
                                                      "--payload", "@big.json"))
        deep = "[" * 65 + "]" * 65
        self.nothing_written(2, "too_large", *CREATE, "a", "--payload", deep)
        self.ok(*CREATE, "a", "--payload", deep[1:-1])

    def test_what_the_ledger_does_not_allow(self):
        self.assertIn("source_run_id", self.nothing_written(
            2, "invalid_argument", "work", "create", "--source", "scheduler", "--source-id",
            "a"))
        self.assertIn("hf.", self.nothing_written(2, "invalid_argument", *CREATE, "a",
                                                  "--kind", "hf.x"))
        self.nothing_written(2, "invalid_argument", *CREATE, "a", "--payload", "1",
                             "--payload-ref", "r")
        self.nothing_written(2, "invalid_argument", *CREATE, "a", "--retry-policy",
                             '{"bogus":1}')
        self.nothing_written(2, "invalid_argument", "work", "claim", "--owner", "w", "--ttl",
                             "749ms")
        self.nothing_written(2, "invalid_argument", "work", "claim", "--owner", "w", "--ttl",
                             "25h")
        self.nothing_written(2, "invalid_argument", "policy", "set", "nonsense", "--ttl",
                             "45s")

    def test_a_pid_that_does_not_exist(self):
        child = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, check=True)
        pid = child.stdout.decode().strip()
        self.ok(*CREATE, "a")
        self.assertIn("--pid", self.refused(2, "invalid_argument", "work", "claim", "--owner",
                                            "w", "--pid", pid))
        self.assertEqual(self.ok("work", "list")["items"][0]["status"], "queued")

    def test_tokens_that_no_claim_gave(self):
        work_id, token = self.held()
        for bad in ("", "x", "hf1", "hf9" + token[3:], "hf1.x.1.0", token.replace(".", "")):
            self.assertIn("token", self.refused(2, "invalid_argument", "work", "renew",
                                                work_id, f"--token={bad}"))
        for bad in (token[:-1], token[:-4] + "0000"):
            self.refused(5, "lease_lost", "work", "renew", work_id, "--token", bad)

    def test_reasons_and_summaries_are_bounded(self):
        work_id, token = self.held()
        close = ["work", "close-out", work_id, "--token", token, "--status", "failed"]
        self.refused(2, "too_large", *close, "--reason", "r" * 1025)
        self.refused(2, "too_large", *close, "--summary", "s" * 8193)
        outputs = [arg for i in range(65) for arg in ("--output", f"o{i}")]
        self.refused(2, "too_large", *close, *outputs)
        self.refused(2, "invalid_argument", *close, "--evidence", "sha256:short")
        self.file("event.json", '"' + "x" * 65535 + '"')
        self.refused(2, "too_large", "work", "append-event", work_id, "--token", token,
                     "--type", "t", "--payload", "@event.json")
        self.assertEqual(self.ok("work", "show", work_id)["work"]["status"], "running")


class Store(Case):
    """Files that cannot be used."""

    def test_a_refused_create_makes_no_store(self):
        create = ("work", "create", "--source", "manual", "--source-id")
        self.refused(2, "too_large", *create, "x" * 192)
        self.refused(2, "invalid_argument", *create, "a", "--payload", "1",
                     "--payload-ref", "r")
        self.refused(2, "invalid_argument", *create, "a", "--disposition", "externally_owned",
                     "--lane", "l")
        self.refused(3, "not_found", *create, "a", "--parent", "0123")
        self.refused(2, "invalid_argument", "--actor", "robot:x", *create, "a")
        self.refused(2, "too_large", "--tenant", "x" * 192, *create, "a")
        self.assertEqual(os.listdir(self.folder), [])
        del self.env["HOLDFAST_DB"]
        self.refused(2, "too_large", *create, "x" * 192)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_new_store_is_for_its_owner_alone(self):
        self.addCleanup(os.umask, os.umask(0))
        self.create()
        names = os.listdir(self.folder)
        self.assertIn("work.db", names)
        self.assertEqual({os.stat(self.path(name)).st_mode & 0o777 for name in names}, {0o600})
        os.chmod(self.db, 0o640)
        self.create("s2")
        self.assertEqual(os.stat(self.db).st_mode & 0o777, 0o640)

    def test_a_file_that_is_no_database(self):
        self.file("x.db", b"this is not a database, but it is long enough to be read\n" * 99)
        self.refused(9, "not_a_store", "--db", self.path("x.db"), "work", "list")

    def test_a_database_of_somebody_else(self):
        with sqlite3.connect(self.path("other.db")) as db:
            db.execute("CREATE TABLE t (a)")
        self.refused(9, "not_a_store", "--db", self.path("other.db"), "work", "list")
        with sqlite3.connect(self.path("other.db")) as db:
            names = [name for (name,) in db.execute("SELECT name FROM sqlite_master")]
        self.assertEqual(names, ["t"])

    def test_a_newer_schema(self):
        self.create()
        with sqlite3.connect(self.db) as db:
            columns = [row[1] for row in db.execute("PRAGMA table_info(hf_schema)")]
            self.assertIn("version", columns)
            newest = db.execute("SELECT max(version) FROM hf_schema").fetchone()[0]
            row = dict(zip(columns, db.execute("SELECT * FROM hf_schema").fetchone()))
            row["version"] = newest + 1
            db.execute(f"INSERT INTO hf_schema VALUES ({','.join('?' * len(row))})",
                       list(row.values()))
        self.refused(9, "schema_newer", "work", "list")

    def test_a_folder_that_is_not_there(self):
        done = self.cli("--db", self.path("no/such/folder.db"), "work", "list", code=9)
        self.assertIn("holdfast: ", done.err)

    def test_no_store_yet_for_what_needs_one(self):
        for args in (["work", "show", GOOD_ID], ["work", "events", GOOD_ID], ["doctor"],
                     ["store", "bump"], ["work", "prune", "--older-than", "1d"],
                     ["work", "cancel", GOOD_ID, "--reason", "r"]):
            self.assertIn(self.db, self.refused(9, "not_a_store", *args))
        self.assertFalse(os.path.exists(self.db))

    def test_an_option_of_the_shorter_command_before_a_second_word(self):
        self.assertIn("write --watch behind the words of the command: attention ack --watch",
                      self.refused(2, "invalid_argument", "attention", "--watch", "ack", GOOD_ID))

    def test_who_only_looks_makes_no_store(self):
        looks = (["work", "list"], ["work", "stats"], ["work", "sweep"],
                 ["work", "tail", "--no-follow"], ["job", "list"], ["limit", "list"],
                 ["policy", "show"], ["schedule", "list"], ["schedule", "run"],
                 ["schedule", "preview", "x"], ["process", "list"], ["trigger", "list"], ["store", "log"], ["attention"],
                 ["top", "--once"], ["doctor"])
        for args in looks:
            self.assertEqual(self.refused(9, "not_a_store", *args),
                             f"there is no store at {self.db}")
        done = self.cli("work", "list", code=9)
        self.assertIn("check --db and HOLDFAST_DB", done.err)
        self.refused(3, "not_found", "work", "reconcile", "--from", self.path("none.jsonl"))
        self.assertEqual(os.listdir(self.folder), [])
        del self.env["HOLDFAST_DB"]
        for args in looks:
            self.assertEqual(
                self.refused(9, "not_a_store", *args),
                f"there is no store at {self.path('.local/state/holdfast/holdfast.db')}")
        self.assertIn("`holdfast work create` or `holdfast run -- CMD`, which create it",
                      self.cli("attention", code=9).err)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_read_only_file(self):
        if os.getuid() == 0:
            self.skip_as_root()
            return
        self.create()
        os.chmod(self.db, 0o400)
        self.refused(9, "store_read_only", *CREATE, "b")

    def skip_as_root(self):
        """Permissions do not bind root: run the same as another user, if that can be."""
        self.create()
        for name in os.listdir(self.folder):
            os.chmod(self.path(name), 0o444)
        os.chmod(self.folder, 0o555)
        self.addCleanup(os.chmod, self.folder, 0o755)
        program = shutil.copy(HOLDFAST, "/tmp/holdfast-ro-test-%d" % os.getpid())
        self.addCleanup(os.unlink, program)
        done = subprocess.run([program, "--json", *CREATE, "b"], env=self.env, user=65534,
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, "store_read_only" in done.stdout), (9, True),
                         done.stdout + done.stderr)
        done = subprocess.run([program, "--json", "--db", self.path("new.db"), *CREATE, "b"],
                              env=self.env, user=65534, capture_output=True, text=True,
                              check=False)
        self.assertEqual((done.returncode, "store_read_only" in done.stdout), (9, True),
                         done.stdout + done.stderr)

    def on_read_only_mount(self, *args):
        """Root in a mount namespace of its own; another user by the modes of the files.

        The propagation cannot be changed in a root folder that is no mount point (chroot).
        """
        if os.getuid() == 0:
            mount = ('mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" || exit 99; '
                     '"$@"; code=$?; umount "$0"; exit $code')
            return subprocess.run(["unshare", "-m", "--propagation", "unchanged", "sh", "-c",
                                   mount, self.folder, HOLDFAST, *args],
                                  env=self.env, capture_output=True, text=True, check=False)
        for name in os.listdir(self.folder):
            os.chmod(self.path(name), 0o444)
        os.chmod(self.folder, 0o555)
        try:
            return subprocess.run([HOLDFAST, *args], env=self.env, capture_output=True,
                                  text=True, check=False)
        finally:
            os.chmod(self.folder, 0o755)

    def test_a_read_only_mount_can_be_read(self):
        self.create()
        for args in (["work", "list"], ["work", "stats"], ["attention"], ["doctor"],
                     ["store", "log"]):
            done = self.on_read_only_mount(*args)
            self.assertEqual(done.returncode, 0, (args, done.stderr))
        done = self.on_read_only_mount("--json", *CREATE, "b")
        self.assertEqual((done.returncode, "store_read_only" in done.stdout), (9, True),
                         done.stdout + done.stderr)
        shutil.copy(self.db, self.path("bare.db"))
        done = self.on_read_only_mount("--db", self.path("bare.db"), "work", "list")
        self.assertEqual(done.returncode, 9)
        self.assertIn("Copy it to a folder that can be written", done.stderr)

    def test_a_stopped_writer_blocks_no_command_that_reads(self):
        self.create()
        stopped = subprocess.Popen([sys.executable, "-c", STOPS_IN_ITS_TURN, self.db])
        try:
            os.waitid(os.P_PID, stopped.pid, os.WSTOPPED | os.WNOWAIT)
            for args in (["work", "list"], ["work", "stats"], ["attention"], ["doctor"],
                         ["store", "log"], ["top", "--once"]):
                self.cli(*args)
        finally:
            stopped.kill()
            stopped.wait()

    def test_a_hard_link_and_a_vanished_wal(self):
        self.create()
        os.link(self.db, self.path("second.db"))
        for db in (self.db, self.path("second.db")):
            self.assertIn("has 2 hard links", self.refused(
                9, "not_a_store", "--db", db, "work", "list"))
        os.unlink(self.path("second.db"))
        os.truncate(self.db, 0)
        self.assertIn("its sidecar (-hf) knows a store",
                      self.refused(9, "corrupt", *CREATE, "b"))
        self.assertEqual(os.path.getsize(self.db), 0)

    def test_a_full_disk(self):
        self.create()
        size = os.path.getsize(self.db) + os.path.getsize(self.db + "-wal") \
            if os.path.exists(self.db + "-wal") else os.path.getsize(self.db)
        self.file("big.json", '"' + "x" * 900000 + '"')
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size + 65536,) * 2)
        done = self.run_raw("--json", *CREATE, "b", "--payload", "@big.json",
                            preexec_fn=limit)
        self.assertEqual(done.returncode, 9, done.stdout + done.stderr)
        self.assertEqual(self.rows(), 1)


class Output(Case):
    """An answer that cannot be written is a failure, and told."""

    def test_a_full_device(self):
        self.create()
        with open("/dev/full", "wb") as full:
            done = subprocess.run([HOLDFAST, "work", "list"], env=self.env, stdout=full,
                                  stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"standard output", done.stderr)
        with open("/dev/full", "wb") as full:
            done = subprocess.run([HOLDFAST, "--json", "work", "list"], env=self.env,
                                  stdout=full, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 1)

    def test_a_closed_pipe(self):
        self.create()
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([HOLDFAST, "work", "list"], env=self.env, stdout=write,
                              stderr=subprocess.PIPE, check=False)
        os.close(write)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"standard output", done.stderr)

    def test_descriptors_that_were_never_open(self):
        script = '"$HOLDFAST" work create --source manual --source-id a <&- >&- 2>&-'
        env = {**self.env, "HOLDFAST": HOLDFAST}
        done = subprocess.run(["sh", "-c", script], env=env, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.rows(), 1)
        self.ok("doctor")


if __name__ == "__main__":
    main()
