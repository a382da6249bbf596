#!/usr/bin/env python3
"""holdfast process: envelopes and exit codes. What becomes of real processes: tests/proc/verdicts.py."""

import json
import os
import subprocess

from harness import HOLDFAST, Case, main

RAW_FACTS = {"disposition", "first_started", "lease_holder", "lease_expires_at", "abandon_request"}


class Process(Case):
    def start(self, disposition, *args):
        return self.ok("process", "start", "--disposition", disposition, *args)["work"]["work_id"]

    def one(self, process):
        return self.ok("process", "show", process)["process"]

    def types(self, process):
        return [e["event_type"] for e in self.ok("process", "events", process)["items"]]

    # ---- the table of commands

    def test_a_disposition_must_be_declared(self):
        for words in (("--", "true"), ("--input", "1"), ("--disposition", "expire")):
            message = self.refused(2, "invalid_argument", "process", "start", *words)
            self.assertIn("--disposition", message)
        self.assertFalse(os.path.exists(self.db))

    def test_an_empty_list_of_all_does_not_name_all(self):
        self.ok("migrate")
        self.assertIn("--all", self.cli("process", "list").err)
        self.assertNotIn("--all", self.cli("process", "list", "--all").err)

    def test_bad_starts_write_nothing(self):
        start = ("process", "start", "--disposition")
        self.refused(2, "invalid_argument", *start, "externally_owned", "--", "true")
        self.refused(2, "invalid_argument", *start, "owner_bound", "--max-attempts", "2", "--",
                     "true")
        self.refused(2, "invalid_argument", *start, "rerunnable", "--label", "x", "--", "true")
        self.refused(2, "invalid_argument", *start, "rerunnable", "--input", "1", "--", "true")
        self.refused(2, "invalid_argument", *start, "rerunnable", "--", "no-such-command-anywhere")
        self.refused(2, "invalid_argument", *start, "rerunnable", "--evidence", "report")
        self.assertFalse(os.path.exists(self.db))

    def test_its_runners_command_line_does_not_show_the_store(self):
        # The address of a server may hold a password, and any caller can read a command line.
        process = self.start("owner_bound", "--", "sh", "-c", "tr '\\0' ' ' < /proc/$PPID/cmdline")
        self.ok("process", "await", process, "--wait", "30s")
        line = self.ok("process", "show", process)["output"]["stdout"]["head"]
        self.assertIn(process, line)
        self.assertNotIn("work.db", line)

    def test_evidence_is_the_hash_of_a_file(self):
        self.ok("policy", "set", "default", "--close-rule", "evidence")
        process = self.start("owner_bound", "--evidence", "a", "--evidence", "b", "--", "sh", "-c",
                             "printf abc > a; : > b")
        self.ok("process", "await", process, "--wait", "30s")
        self.assertEqual(self.ok("work", "show", process)["work"]["result"], {
            "outputs": ["a", "b"], "evidence": [
                "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
                "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"]})

    def test_a_command_runs_in_the_background_and_is_awaited(self):
        process = self.start("owner_bound", "--name", "n", "--label", "a=b", "--wake", "s1",
                             "--observer", "o", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
        done = self.cli("--json", "process", "await", process, "--wait", "30s",
                        code=11).json["work"]
        self.assertEqual((done["status"], done["error_class"]), ("failed", "exit_3"))
        shown = self.ok("process", "show", process)
        self.assertEqual(shown["output"]["stdout"]["head"], "out\n")
        self.assertEqual(shown["output"]["stderr"]["head"], "err\n")
        facts = shown["process"]
        self.assertLessEqual(RAW_FACTS, set(facts))
        self.assertEqual((facts["identity_kind"], facts["identity_label"], facts["labels"],
                          facts["originator"], facts["wake_session"], facts["observers"]),
                         ("run", "n", {"a": "b"}, "host", "s1", ["o"]))
        wake = self.claim("--queue", "session:s1")
        self.assertEqual(wake["payload"]["work_id"], process)
        self.assertEqual(wake["payload"]["status"], "failed")
        listed = self.ok("process", "list", "--all", "--label", "a=b")["items"]
        self.assertEqual([p["process_id"] for p in listed], [process])
        self.assertEqual(self.ok("process", "list", "--all", "--label", "a=c")["items"], [])
        self.assertEqual(self.ok("process", "list")["items"], [])

    def test_a_command_can_be_left_to_a_worker(self):
        process = self.start("rerunnable", "--no-run", "--", "true")
        self.assertEqual(self.one(process)["status"], "queued")
        self.refused(6, "busy", "process", "await", process, "--wait", "20ms")
        self.cli("run", "--worker", "--until-idle")
        self.assertEqual(self.ok("process", "await", process)["work"]["status"], "done")

    def test_the_same_key_starts_it_once(self):
        key = ("--idempotency-key", "k", "--input", "1")
        first = self.ok("process", "start", "--disposition", "rerunnable", *key)
        again = self.ok("process", "start", "--disposition", "rerunnable", *key)
        self.assertEqual((first["created"], again["created"]), (True, False))
        self.assertEqual(first["work"]["work_id"], again["work"]["work_id"])
        self.refused(7, "conflict", "process", "start", "--disposition", "rerunnable", *key,
                     "--observer", "o")

    def test_only_an_authority_completes_what_is_owned_elsewhere(self):
        process = self.start("externally_owned", "--ref", "job-7")
        self.refused(2, "invalid_argument", "process", "complete", process, "--status", "done")
        self.ok("process", "complete", process, "--authority", "ci", "--status", "done")
        self.refused(4, "illegal_transition", "process", "complete", process, "--authority", "ci",
                     "--status", "failed")
        mine = self.start("rerunnable")
        self.refused(4, "illegal_transition", "process", "complete", mine, "--authority", "ci",
                     "--status", "done")
        end = [e for e in self.ok("process", "events", process)["items"]
               if e["to_status"] == "done"][0]
        self.assertEqual(end["payload"]["authority"], "ci")

    def test_a_signal_ends_a_wait_for_it(self):
        process = self.start("rerunnable")
        unit = self.claim()
        self.cli("work", "wait", unit["work_id"], "--token", unit["lease_token"], "--kind", "external",
                 "--ref", "signal.go")
        self.assertEqual(len(self.ok("process", "list", "--waiting")["items"]), 1)
        row = self.ok("process", "signal", process, "go", "--payload", '{"n":1}', "--key", "k")["work"]
        self.assertEqual((row["status"], row["resume_payload"]), ("queued", {"n": 1}))
        self.ok("process", "signal", process, "go", "--payload", '{"n":1}', "--key", "k")
        self.assertEqual(self.types(process).count("signal.go"), 1)
        self.refused(7, "conflict", "process", "signal", process, "go", "--key", "k")
        self.refused(2, "invalid_argument", "process", "signal", process, "a b")

    def test_a_bound_process_has_its_signal_under_its_own_lease(self):
        process = self.start("owner_bound")
        unit = self.claim()
        wait = ("work", "wait", unit["work_id"], "--token", unit["lease_token"], "--kind", "external",
                "--ref", "signal.go")
        self.ok("process", "signal", process, "go", "--payload", '{"n":1}')
        self.ok("process", "signal", process, "go", "--payload", '{"n":2}')
        for _ in range(2):
            row = self.ok(*wait)["work"]
            self.assertEqual((row["status"], row["resume_payload"]), ("running", {"n": 1}))
        for _ in range(2):
            row = self.ok(*wait, "--operation-id", "next")["work"]
            self.assertEqual((row["status"], row["resume_payload"]), ("running", {"n": 2}))
        self.assertEqual(self.types(process).count("signal_taken"), 2)
        row = self.ok(*wait, "--operation-id", "last")["work"]
        self.assertEqual(row["status"], "waiting_external")
        self.ok("process", "signal", process, "go", "--payload", '{"n":3}')
        row = self.ok("work", "resume", unit["work_id"], "--owner", row["owner"], "--incarnation",
                      row["owner_incarnation"])["work"]
        self.assertEqual((row["status"], row["resume_payload"]), ("running", {"n": 3}))

    def test_observers_come_and_go_and_say_so_once(self):
        process = self.start("rerunnable", "--observer", "s1")
        self.assertEqual(self.ok("process", "observe", process, "s2")["work"]["work_id"], process)
        self.assertIn("observed before", self.cli("process", "observe", process, "s2").out)
        self.assertEqual(self.one(process)["observers"], ["s1", "s2"])
        seen = self.ok("process", "granted", "s2")["items"]
        self.assertEqual([unit["work_id"] for unit in seen], [process])
        self.ok("process", "observe", process, "s1", "--end")
        self.assertIn("was not observed", self.cli("process", "observe", process, "s1", "--end").out)
        self.assertEqual(self.one(process)["observers"], ["s2"])
        self.assertEqual(self.ok("process", "granted", "s1")["items"], [])
        self.assertEqual(self.types(process)[2:], ["observer_added", "observer_removed"])
        self.refused(2, "invalid_argument", "process", "observe", process)
        self.refused(3, "not_found", "process", "observe", "no-such-process", "s2")
        self.ok("process", "cancel", process, "--reason", "over")
        self.refused(4, "illegal_transition", "process", "observe", process, "s3")

    def test_a_retargeted_end_wakes_the_new_session_alone(self):
        process = self.start("rerunnable", "--wake", "s1")
        silent = self.start("rerunnable", "--wake", "s1")
        self.ok("process", "retarget", process, "s2")
        self.assertIn("earlier", self.cli("process", "retarget", process, "s2").out)
        self.ok("process", "retarget", silent, "--none")
        self.assertEqual(self.one(process)["wake_session"], "s2")
        self.assertIsNone(self.one(silent)["wake_session"])
        for one in (process, silent):
            self.ok("process", "cancel", one, "--reason", "over")
        wakes = {session: [w["payload"]["work_id"] for w in
                           self.ok("work", "list", "--queue", f"session:{session}")["items"]]
                 for session in ("s1", "s2")}
        self.assertEqual(wakes, {"s1": [], "s2": [process]})
        for words in ((), ("s3", "--none")):
            message = self.refused(2, "invalid_argument", "process", "retarget", process, *words)
            self.assertIn("--none", message)

    def test_prune_reports_what_went_and_what_is_left_says_so(self):
        process = self.start("externally_owned", "--observer", "o")
        kept = self.start("externally_owned")
        self.ok("process", "complete", process, "--authority", "ci", "--status", "cancelled")
        report = self.ok("process", "prune", "--older-than", "0s")
        self.assertEqual((report["processes"], report["grants"]), (1, 1))
        message = self.refused(3, "not_found", "process", "show", process)
        self.assertIn("ended as cancelled", message)
        self.assertIn("no longer retained", self.refused(3, "not_found", "process", "await",
                                                         process))
        for args in (["events", process], ["cancel", process, "--reason", "r"],
                     ["request-abandon", process, "--reason", "r"],
                     ["complete", process, "--authority", "ci", "--status", "done"]):
            self.assertIn("ended as cancelled", self.refused(3, "not_found", "process", *args))
        self.assertEqual([p["process_id"] for p in self.ok("process", "list")["items"]], [kept])

    def test_a_drain_says_what_it_left(self):
        drain = ("process", "drain", "--owner", "w1", "--incarnation", "b")
        process = self.start("owner_bound")
        self.claim("--incarnation", "b")
        self.assertEqual(self.ok(*drain), {"ok": True, "ended": 1, "deferred": 0, "items": []})
        self.assertEqual(self.one(process)["work"]["status_reason"], "owner_drain")
        self.create("a", "--disposition", "owner_bound", "--lane", "l")
        waits = self.claim("--incarnation", "b")
        self.cli("work", "wait", waits["work_id"], "--token", waits["lease_token"], "--kind",
                 "user", "--ref", "x")
        self.create("b", "--lane", "l")
        self.claim("--incarnation", "b")  # has the lane meanwhile
        report = self.ok(*drain)
        self.assertEqual((report["ended"], report["deferred"]), (0, 1))
        self.assertEqual([(i["work_id"], i["code"]) for i in report["items"]],
                         [(waits["work_id"], "lease_held")])

    def test_an_await_is_woken_by_the_end(self):
        process = self.start("externally_owned")
        waiter = subprocess.Popen([HOLDFAST, "--json", "process", "await", process, "--wait",
                                   "40s"], env=self.env, stdout=subprocess.PIPE)
        self.ok("process", "complete", process, "--authority", "ci", "--status", "done")
        out, _ = waiter.communicate(timeout=40)
        self.assertEqual(json.loads(out)["work"]["status"], "done")

    def test_an_await_exits_with_the_outcome(self):
        for status, code in (("done", 0), ("failed", 11), ("cancelled", 13)):
            process = self.start("externally_owned")
            self.ok("process", "complete", process, "--authority", "ci", "--status", status)
            answer = self.cli("--json", "process", "await", process, code=code).json
            self.assertEqual((answer["ok"], answer["work"]["status"]), (True, status))

    def test_a_start_says_what_runs_it(self):
        start = ("process", "start", "--disposition")
        for words in (("rerunnable", "--", "true"), ("rerunnable", "--no-run", "--", "true")):
            self.assertIn("`holdfast monitor --run` or `holdfast run --worker`",
                          self.cli(*start, *words).err)
        self.assertNotIn("monitor", self.cli(*start, "owner_bound", "--", "true").err)


if __name__ == "__main__":
    main()
