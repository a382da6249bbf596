#!/usr/bin/env python3
"""Faults that are planted with plain SQL, and what `holdfast doctor` says of each."""

import os
import sqlite3
import time

import doctor_edits
from harness import Case, main


class Doctor(Case):
    def sql(self, *statements, guards=True):
        db = sqlite3.connect(self.db, isolation_level=None)
        try:
            if not guards:
                for (name,) in db.execute(
                        "SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
                    db.execute(f"DROP TRIGGER {name}")
            for statement in statements:
                db.execute(statement)
        finally:
            db.close()

    def findings(self, what, code=0):
        answer = self.cli("--json", "doctor", code=code).json
        self.assertEqual(answer["ok"], code == 0)
        self.answer = answer
        self.assertEqual({f["what"] for f in answer["findings"]} -
                         {"store", "schema", "clock", "disk", "leases", "chains", "guards"}, set())
        return [f for f in answer["findings"] if f["what"] == what]

    def bad(self, what):
        """The faults of one kind, of a store that has some."""
        found = [f for f in self.findings(what, code=9) if f["bad"]]
        self.assertTrue(found, self.answer["findings"])
        error = self.answer["error"]
        self.assertEqual(error["code"], "corrupt")
        self.assertIn("backup", error["action"])
        self.assertIn("store bump", error["action"])
        self.assertNotIn("doctor", error["action"])
        for finding in found:
            self.assertTrue(finding["advice"])
        self.assertNotIn("every trail folds", str(self.answer["findings"]))
        people = self.cli("doctor", code=9)
        self.assertIn("BAD   " + what, people.out)
        self.assertNotIn("every trail folds", people.out)
        self.assertNotIn("in order", people.out)
        return found

    def test_a_sound_store_has_one_word_of_each_kind(self):
        self.create()
        self.findings("store")
        self.assertEqual([f["what"] for f in self.answer["findings"]],
                         ["store", "schema", "clock", "disk", "chains", "leases"])
        self.assertFalse(any(f["bad"] for f in self.answer["findings"]))
        self.assertIn("every trail folds", self.findings("chains")[0]["detail"])

    def test_a_forged_status(self):
        work_id = self.create()["work_id"]
        self.sql("UPDATE work_state SET status = 'done', finished_at = 1, gate = NULL",
                 guards=False)
        self.assertIn(work_id, self.bad("chains")[0]["detail"])
        self.assertIn("store bump", self.bad("chains")[0]["advice"])

    def test_every_edit_that_no_guard_refuses_is_found(self):
        edits = {**doctor_edits.BOTH, **doctor_edits.SQLITE}
        doctor_edits.prepare(self)
        self.assertEqual([f for f in self.findings("chains") if f["bad"]], [])
        sound = self.db
        for number, (name, (guarded, edit, said)) in enumerate(edits.items()):
            with self.subTest(name):
                copy = self.path(f"edited-{number}.db")
                self.db = sound
                self.sql(f"VACUUM INTO '{copy}'")
                self.db = self.env["HOLDFAST_DB"] = copy
                self.sql(*edit.split(";"), guards=guarded)
                self.assertIn(said, str([f["detail"] for f in self.bad("chains")]))

    def test_a_guard_that_is_missing_or_changed_is_told_until_it_is_there_again(self):
        self.create()
        db = sqlite3.connect(self.db, isolation_level=None)
        self.addCleanup(db.close)
        (made,) = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'work_state_delete'").fetchone()
        self.assertEqual(self.findings("guards"), [])
        db.execute("DROP TRIGGER work_state_delete")
        [finding] = self.findings("guards")
        self.assertTrue(finding["detail"].startswith("the trigger work_state_delete is missing: "), finding)
        [item] = self.cli("--json", "attention", code=10).json["items"]
        self.assertEqual((item["what"], item["id"]), ("store", "guards"))
        db.execute("CREATE TRIGGER work_state_delete BEFORE DELETE ON work_state BEGIN SELECT 1; END")
        self.assertIn("work_state_delete was changed", self.findings("guards")[0]["detail"])
        db.execute("DROP TRIGGER work_state_delete")
        db.execute(made)
        self.assertEqual(self.findings("guards"), [])
        self.cli("attention")

    def test_a_check_that_was_not_reached_is_named(self):
        for number in range(3):
            self.create(f"u{number}")
        self.sql("DROP TABLE work_limit", guards=False)
        error = self.cli("--json", "doctor", code=1).json["error"]
        self.assertIn("not checked: limits, sessions, effects, waits, leases, guards, server", error["message"])

    def test_what_lies_after_a_hundred_faults_is_said_to_be_unseen(self):
        self.file("units.jsonl", "".join(f'{{"source_system":"manual","source_id":"u{i}"}}\n'
                                         for i in range(120)))
        self.ok("work", "reconcile", "--from", "units.jsonl")
        self.sql("UPDATE work_state SET lease_fence = 9", guards=False)
        found = self.bad("chains")
        self.assertEqual(len(found), 101)
        self.assertIn("100 faults are enough", found[-1]["detail"])

    def test_an_event_that_was_rewritten_around_the_guards(self):
        work = self.create()
        self.ok("work", "cancel", work["work_id"], "--reason", "not wanted")
        self.sql("INSERT OR REPLACE INTO work_event (event_id, seq, event_type, from_status, "
                 "to_status, generation, attempt, fence, actor_kind, actor, created_at) "
                 "SELECT event_id, seq, event_type, 'running', to_status, generation, attempt, "
                 "fence, actor_kind, actor, created_at FROM work_event "
                 "WHERE to_status = 'cancelled'")
        self.assertIn("does not follow", self.bad("chains")[0]["detail"])

    def test_an_event_that_is_gone(self):
        self.ok("work", "cancel", self.create()["work_id"], "--reason", "not wanted")
        self.sql("DELETE FROM work_event", guards=False)
        self.bad("chains")

    def test_a_row_that_is_gone(self):
        self.create()
        self.sql("PRAGMA foreign_keys = OFF", "DELETE FROM work_state", guards=False)
        self.bad("chains")

    def test_an_effect_that_does_not_fit_its_turn(self):
        self.create()
        self.sql("INSERT INTO effect (turn_key, effect_key, attempt, fence, started_at, kind, recovery, status,"
                 " envelope) VALUES (99, '1', 0, 1, 1, 'llm_call', 'keyed', 'started', '{}')")
        found = [f for f in self.cli("--json", "doctor", code=9).json["findings"] if f["bad"]]
        self.assertEqual([(f["what"], f["detail"]) for f in found],
                         [("effects", "no session, effect 1: there is no such turn")])

    def effects(self, code=0):
        return [(f["bad"], f["detail"]) for f in self.cli("--json", "doctor", code=code).json["findings"]
                if f["what"] == "effects"]

    def test_effects_of_processes_and_operations_that_fit_are_not_told(self):
        unit = self.ok("process", "start", "--disposition", "rerunnable")["work"]["work_id"]
        self.sql(doctor_edits.scope_effect(),
                 doctor_edits.scope_effect(effect_key="2", status="unknown", settled_at=2, outcome="{}"),
                 doctor_edits.scope_effect(effect_key="3", taken_over=1, lease_fence=2),
                 doctor_edits.scope_effect(scope="process", scope_id=unit))
        self.assertEqual(self.effects(), [])

    def test_an_effect_of_a_scope_whose_columns_do_not_fit(self):
        self.create()
        for columns, said in doctor_edits.SCOPE_EFFECTS + doctor_edits.SCOPE_EFFECTS_AROUND:
            with self.subTest(columns):
                self.sql("DELETE FROM scope_effect", "PRAGMA ignore_check_constraints = ON",
                         doctor_edits.scope_effect(**columns))
                self.assertEqual(self.effects(code=9), [(True, "operation o, effect 1: " + said)])

    def test_an_effect_of_a_process_that_is_not_there_is_a_note(self):
        unit = self.create()["work_id"]  # a unit that is no process
        self.sql(doctor_edits.scope_effect(scope="process", scope_id="p"),
                 doctor_edits.scope_effect(scope="process", scope_id=unit))
        self.assertEqual(sorted(self.effects()),
                         sorted((False, f"process {name}, effect 1: there is no such process")
                                for name in ("p", unit)))

    def test_a_wrong_checksum_of_the_schema(self):
        self.create()
        self.sql("UPDATE hf_schema SET checksum = replace(checksum, substr(checksum, 1, 1), "
                 "'z')")
        found = self.bad("schema")
        self.assertIn("another text", found[0]["detail"])

    def test_a_damaged_index(self):
        self.create()
        self.sql("PRAGMA writable_schema = ON",
                 "UPDATE sqlite_schema SET sql = replace(sql, 'IS NOT NULL', 'IS NULL') "
                 "WHERE name = 'work_waiting'")
        self.bad("store")

    def test_a_lapsed_lease_names_the_sweep(self):
        self.create()
        self.ok("work", "claim", "--owner", "w", "--ttl", "750ms")
        end = time.monotonic() + 30
        while not any(f["advice"] for f in self.findings("leases")):
            self.assertLess(time.monotonic(), end)
        found = self.findings("leases")
        self.assertFalse(found[0]["bad"])
        self.assertIn("1 running with a lapsed lease", found[0]["detail"])
        self.assertIn("work sweep", found[0]["advice"])
        people = self.cli("doctor")
        self.assertIn("note  leases", people.out)
        self.assertIn("in order", people.out)

    def test_a_silent_row_names_what_an_operator_can_do(self):
        self.create("b", "--disposition", "owner_bound")
        self.ok("work", "claim", "--owner", "w", "--ttl", "750ms")
        end = time.monotonic() + 30
        while not any(f["advice"] for f in self.findings("leases")):
            self.assertLess(time.monotonic(), end)
        found = self.findings("leases")
        self.assertIn("silent", found[0]["detail"])
        self.assertIn("work list --silent", found[0]["advice"])
        self.assertIn("request-abandon", found[0]["advice"])

    def test_a_lease_clock_far_from_the_wall_clock(self):
        self.create()
        self.sql("UPDATE hf_store SET lease_offset_ms = lease_offset_ms + 7300000")
        found = self.findings("clock")
        self.assertIn("ahead of the wall clock", found[0]["detail"])
        self.assertTrue(found[0]["advice"])

    def test_a_wall_clock_before_the_newest_event(self):
        self.create()
        self.sql("UPDATE work_spec SET created_at = created_at + 86400000", guards=False)
        found = self.findings("clock")
        self.assertIn("before the newest event", found[0]["detail"])
        self.assertTrue(found[0]["advice"])

    def test_a_disk_with_little_more_than_the_store(self):
        self.create()
        left = os.statvfs(self.folder)
        size = left.f_bavail * left.f_frsize
        try:
            os.truncate(self.db, size // 4096 * 4096)  # a hole: nothing is used
        except OSError:
            return  # no files with holes of that size here
        found = self.findings("disk")
        self.assertFalse(found[0]["bad"])
        self.assertIn("less than twice", found[0]["detail"])
        self.assertTrue(found[0]["advice"])


if __name__ == "__main__":
    main()
