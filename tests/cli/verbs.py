#!/usr/bin/env python3
"""Every verb of the ledger, from the shell, with the shape of its answer."""

import json
import os
import sqlite3

from harness import Case, main

# The keys of a row, written out: scripts rely on them.
KEYS = """work_id tenant source_system source_id source_run_id kind queue lane_key dedup_key
limit_name fair_key
idempotency_key ref parent_work_id correlation_id session_id status status_reason gate
disposition priority generation attempt_count failures max_attempts due_at next_retry_at
deadline_at start_timeout_ms exec_timeout_ms owner owner_incarnation lease_fence lease_ttl_ms
lease_expires_at lease_remaining_ms holder waiting_kind waiting_ref escalate_at escalate
resume_payload error_class result payload payload_ref retry_policy close_rule cancel_request
abandon_request active_at first_started_at started_at finished_at acked_at created_at
updated_at""".split()
SHA = "sha256:" + "ab" * 32
EVENT_KEYS = """event_id work_id event_type from_status to_status generation attempt fence actor_kind
actor message payload correlation_id created_at""".split()


class Create(Case):
    def test_a_row_has_the_columns_as_keys(self):
        answer = self.ok("work", "create", "--source", "manual", "--source-id", "a")
        self.assertEqual(list(answer), ["ok", "work", "created"])
        self.assertEqual(list(answer["work"]), KEYS)
        self.assertIs(answer["created"], True)

    def test_what_is_typed_is_what_is_kept(self):
        work = self.create(
            "a", "--source-run-id", "r", "--kind", "build", "--queue", "q", "--lane", "l",
            "--dedup-key", "d", "--idempotency-key", "i", "--priority", "7", "--ref", "ref",
            "--disposition", "rerunnable", "--max-attempts", "9", "--delay", "1h",
            "--start-timeout", "2h", "--exec-timeout", "90s", "--close-rule", "evidence",
            "--retry-policy", '{"max_attempts": 9, "jitter": "none"}',
            "--payload", '{"a": [1, "x y", {"b": null}]}', "--tenant", "t1",
            "--correlation-id", "c1")
        expected = {
            "source_system": "manual", "source_id": "a", "source_run_id": "r",
            "kind": "build", "queue": "q", "lane_key": "l", "dedup_key": "d",
            "idempotency_key": "i", "priority": 7, "ref": "ref", "tenant": "t1",
            "disposition": "rerunnable", "max_attempts": 9, "status": "queued",
            "gate": "due", "start_timeout_ms": 7200000, "exec_timeout_ms": 90000,
            "close_rule": "evidence", "payload": {"a": [1, "x y", {"b": None}]},
            "correlation_id": "c1", "owner": None, "lease_expires_at": None,
            "lease_remaining_ms": None, "attempt_count": 0, "generation": 0,
        }
        self.assertEqual({k: work[k] for k in expected}, expected)
        self.assertEqual(work["due_at"], work["created_at"] + 3600000)
        self.assertEqual(work["retry_policy"]["jitter"], "none")

    def test_a_repeat_gives_the_same_row(self):
        first = self.create("a")
        again = self.ok("work", "create", "--source", "manual", "--source-id", "a")
        self.assertIs(again["created"], False)
        self.assertEqual(again["work"]["work_id"], first["work_id"])
        self.assertEqual(self.rows(), 1)

    def test_other_content_under_the_same_key_is_a_conflict(self):
        self.create("a", "--idempotency-key", "k")
        self.refused(7, "conflict", "work", "create", "--source", "manual", "--source-id",
                     "b", "--idempotency-key", "k")
        self.refused(7, "conflict", "work", "create", "--source", "manual", "--source-id",
                     "a", "--idempotency-key", "k", "--payload", "1")
        self.assertEqual(self.rows(), 1)

    def test_a_live_dedup_key_gives_the_row_that_has_it(self):
        first = self.create("a", "--dedup-key", "k")
        second = self.create("b", "--dedup-key", "k")
        self.assertEqual(first["work_id"], second["work_id"])

    def test_payload_from_a_file_and_from_stdin(self):
        self.file("p.json", ' {"from": "file",\n "n": 1.5} \n')
        self.assertEqual(self.create("a", "--payload", "@" + self.path("p.json"))["payload"],
                         {"from": "file", "n": 1.5})
        work = self.ok("work", "create", "--source", "manual", "--source-id", "b",
                       "--payload", "-", stdin='{"from":"stdin","ü":"€"}'.encode())["work"]
        self.assertEqual(work["payload"], {"from": "stdin", "ü": "€"})

    def test_the_largest_payload_fits(self):
        text = json.dumps("x" * (1048576 - 2))
        self.file("big.json", text)
        work = self.create("a", "--payload", "@" + self.path("big.json"))
        self.assertEqual(len(work["payload"]), 1048574)

    def test_a_detached_command_is_born_done(self):
        self.assertEqual(self.create("a", "--detached")["status"], "done")

    def test_an_externally_owned_unit_waits_and_is_closed_by_authority(self):
        work = self.create("a", "--disposition", "externally_owned", "--ref", "ci:9")
        self.assertEqual(work["status"], "waiting_external")
        closed = self.ok("work", "close-out", work["work_id"], "--authority", "ci",
                         "--status", "failed", "--reason", "exit 1")["work"]
        self.assertEqual((closed["status"], closed["status_reason"]), ("failed", "exit 1"))

    def test_children_name_their_parent_by_a_part_of_its_id(self):
        parent = self.create("a")["work_id"]
        self.assertEqual(self.create("b", "--parent", parent[-12:])["parent_work_id"], parent)


class Claim(Case):
    def test_items_carry_a_token_for_whoever_claimed_and_nobody_else(self):
        self.create("a")
        answer = self.ok("work", "claim", "--owner", "w1", "--incarnation", "i1")
        self.assertEqual(list(answer), ["ok", "items", "next"])
        self.assertIsNone(answer["next"])
        work = answer["items"][0]
        self.assertEqual(list(work), KEYS + ["lease_token"])
        self.assertEqual((work["status"], work["owner"], work["owner_incarnation"]),
                         ("running", "w1", "i1"))
        self.assertTrue(0 < work["lease_remaining_ms"] <= work["lease_ttl_ms"] == 45000)
        token = work["lease_token"]
        secret = token.rsplit(".", 1)[-1]
        for reader in (["work", "show", work["work_id"]], ["work", "list"],
                       ["work", "events", work["work_id"]], ["doctor"], ["work", "stats"]):
            for form in ([], ["--json"]):
                out = self.cli(*form, *reader)
                self.assertNotIn(token, out.out + out.err)
                self.assertNotIn(secret, out.out + out.err, reader)

    def test_an_owner_whose_name_json_escapes_is_in_the_event_as_it_is(self):
        self.create()
        owner = 'a "b" \\ c'
        token = self.cli("work", "claim", "--owner", owner, "--json").json["items"][0]
        events = self.cli("work", "events", token["work_id"], "--json").json["items"]
        claimed = [event for event in events if event["event_type"] == "claimed"]
        self.assertEqual(claimed[0]["payload"]["lease"]["owner"], owner)

    def test_nothing_to_claim_is_no_failure(self):
        answer = self.ok("work", "claim", "--owner", "w1")
        self.assertEqual(answer, {"ok": True, "items": [], "next": None})

    def test_by_queue_kind_limit_and_priority(self):
        self.create("a", "--queue", "q", "--kind", "x", "--priority", "5")
        self.create("b", "--queue", "q", "--kind", "y", "--priority", "1")
        self.create("c", "--queue", "q", "--kind", "z")
        self.create("d", "--kind", "x")
        items = self.ok("work", "claim", "--owner", "w1", "--queue", "q", "--kind", "x",
                        "--kind", "y", "--limit", "10")["items"]
        self.assertEqual([i["source_id"] for i in items], ["b", "a"])

    def test_one_given_row(self):
        self.create("a")
        wanted = self.create("b")["work_id"]
        self.assertEqual(self.claim("--id", wanted[-12:])["work_id"], wanted)

    def test_a_lane_runs_one_at_a_time(self):
        self.create("a", "--lane", "k")
        self.create("b", "--lane", "k")
        items = self.ok("work", "claim", "--owner", "w1", "--limit", "5")["items"]
        self.assertEqual([i["source_id"] for i in items], ["a"])

    def test_pid_ties_the_lease_to_a_process(self):
        self.create("a")
        holder = self.claim("--pid", str(os.getpid()))["holder"]
        self.assertEqual(holder["pid"], os.getpid())

    def test_the_same_nonce_gives_the_same_token(self):
        self.create("a")
        args = ["--incarnation", "i", "--nonce", "n1"]
        self.assertEqual(self.claim(*args)["lease_token"], self.claim(*args)["lease_token"])

    def test_wait_ends_when_there_is_work_or_the_time_is_up(self):
        self.assertEqual(self.ok("work", "claim", "--owner", "w", "--wait", "20ms")["items"],
                         [])
        self.create("a", "--delay", "200ms")
        self.assertEqual(self.claim("--wait", "30s")["source_id"], "a")

    def test_shell_assignments_survive_any_payload(self):
        nasty = {"q": "it's $(touch pwned) `x` \\ \"\n€"}
        self.create("a", "--payload", json.dumps(nasty))
        out = self.cli("work", "claim", "--owner", "w1", "--shell").out
        echo = self.run_shell(out + 'printf "%s" "$HF_PAYLOAD"; printf "\\n%s" "$HF_STATUS"')
        payload, status = echo.rsplit("\n", 1)
        self.assertEqual(json.loads(payload), nasty)
        self.assertEqual(status, "running")
        self.assertFalse(os.path.exists(self.path("pwned")))

    def test_shell_clears_every_variable_when_there_is_nothing(self):
        out = self.cli("work", "claim", "--owner", "w1", "--shell").out
        self.assertEqual(self.run_shell("HF_WORK_ID=old HF_LEASE_TOKEN=old\n" + out +
                                        'echo "[$HF_WORK_ID][$HF_LEASE_TOKEN]"'), "[][]\n")

    def run_shell(self, script):
        import subprocess
        return subprocess.run(["sh", "-eu"], input=script, capture_output=True, text=True,
                              cwd=self.folder, check=True).stdout


class Hold(Case):
    def test_renew_touch_and_release(self):
        work_id, token = self.held()
        args = ["--id", work_id, "--token", token]
        renewed = self.ok("work", "renew", *args)
        self.assertEqual(list(renewed), ["ok", "work"])
        self.assertNotIn("lease_token", renewed["work"])
        self.assertIsInstance(self.ok("work", "touch", *args)["work"]["active_at"], int)
        released = self.ok("work", "release", *args)["work"]
        self.assertEqual((released["status"], released["owner"]), ("queued", None))
        self.assertEqual(released["lease_expires_at"], None)

    def test_hand_back_costs_no_failure(self):
        work_id, token = self.held()
        work = self.ok("work", "hand-back", work_id, "--token", token, "--reason",
                       "shutdown")["work"]
        self.assertEqual((work["status"], work["failures"], work["attempt_count"]),
                         ("queued", 0, 1))

    def test_renew_all_of_an_owner(self):
        self.create("a")
        self.create("b")
        self.ok("work", "claim", "--owner", "w1", "--limit", "2")
        items = self.ok("work", "renew", "--owner", "w1")["items"]
        self.assertEqual([i["source_id"] for i in items], ["a", "b"])
        self.assertEqual(self.ok("work", "renew", "--owner", "w2")["items"], [])

    def test_a_stale_token_is_lease_lost_and_changes_nothing(self):
        self.create()
        old = self.claim("--incarnation", "i", "--nonce", "n1")
        work_id, token = old["work_id"], old["lease_token"]
        self.claim("--incarnation", "i", "--nonce", "n2", "--id", work_id)
        before = self.stored(work_id)
        for verb in (["renew"], ["touch"], ["close-out", "--status", "done"],
                     ["wait", "--kind", "user", "--ref", "r"],
                     ["fail", "--class", "rate_limit"],
                     ["append-event", "--type", "t"]):
            message = self.refused(5, "lease_lost", "work", verb[0], work_id, "--token",
                                   token, *verb[1:])
            self.assertNotIn(token, message)
        self.assertEqual(self.stored(work_id), before)

    def stored(self, work_id):
        work = self.ok("work", "show", work_id)["work"]
        work.pop("lease_remaining_ms")
        return work

    def test_a_close_out_tells_all_of_it(self):
        work_id, token = self.held()
        args = ["work", "close-out", work_id, "--token", token, "--status", "done",
                "--summary", "sent\ntwo mails", "--output", "mail:1", "--output", "mail:2",
                "--evidence", SHA, "--reviewer", "ann"]
        work = self.ok(*args)["work"]
        self.assertEqual(work["status"], "done")
        self.assertEqual(work["result"]["summary"], "sent\ntwo mails")
        self.assertEqual(work["result"]["outputs"], ["mail:1", "mail:2"])
        self.assertEqual(work["result"]["evidence"], [SHA])
        again = self.ok(*args)
        self.assertEqual(again["work"]["finished_at"], work["finished_at"])
        self.assertIs(again["repeated"], True)

    def test_a_row_can_ask_for_evidence_or_a_reviewer(self):
        work_id, token = self.held("a", "--close-rule", "evidence")
        args = ["work", "close-out", work_id, "--token", token, "--status", "done"]
        self.refused(4, "policy_unmet", *args)
        self.ok(*args, "--evidence", SHA)
        work_id, token = self.held("b", "--close-rule", "reviewer")
        args = ["work", "close-out", work_id, "--token", token, "--status", "done"]
        self.refused(4, "policy_unmet", *args)
        self.refused(4, "policy_unmet", *args, "--reviewer", "w1")
        self.ok(*args, "--reviewer", "ann")

    def test_fail_is_retried_or_final_by_its_class(self):
        work_id, token = self.held()
        work = self.ok("work", "fail", work_id, "--token", token, "--class",
                       "transient_network", "--reason", "down")["work"]
        self.assertEqual((work["status"], work["failures"], work["error_class"]),
                         ("retry_scheduled", 1, "transient_network"))
        self.assertIsInstance(work["next_retry_at"], int)
        work_id, token = self.held("b")
        work = self.ok("work", "fail", work_id, "--token", token, "--class",
                       "validation")["work"]
        self.assertEqual(work["status"], "failed")

    def test_append_event_stands_in_the_trail_and_forges_nothing(self):
        work_id, token = self.held()
        self.ok("work", "append-event", work_id, "--token", token, "--type", "step",
                "--payload", '{"n": 3}')
        last = self.ok("work", "events", work_id)["items"][-1]
        self.assertEqual((last["event_type"], last["payload"], last["from_status"],
                          last["to_status"]), ("step", {"n": 3}, None, None))
        for forged in ("transition", "close_out", "work_created", "claimed"):
            self.refused(2, "invalid_argument", "work", "append-event", work_id, "--token",
                         token, "--type", forged)

    def test_an_owner_abandons_what_only_it_can_run(self):
        work_id, token = self.held("a", "--disposition", "owner_bound")
        work = self.ok("work", "abandon", work_id, "--token", token)["work"]
        self.assertEqual(work["status"], "abandoned")


class Wait(Case):
    def waiting(self, *args):
        work_id, token = self.held()
        return self.ok("work", "wait", work_id, "--token", token, *args)["work"]

    def test_wait_and_resume_by_id(self):
        work = self.waiting("--kind", "user", "--ref", "chat-7")
        self.assertEqual((work["status"], work["waiting_kind"], work["waiting_ref"]),
                         ("waiting_user", "user", "chat-7"))
        self.assertEqual(work["deadline_at"] - work["updated_at"], 86400000)
        back = self.ok("work", "resume", "--id", work["work_id"], "--payload",
                       '{"text":"yes"}')["work"]
        self.assertEqual(back["status"], "queued")
        self.assertNotIn("lease_token", back)
        self.assertEqual(self.claim()["resume_payload"], {"text": "yes"})

    def test_waiting_is_another_name_and_external_waits_two_hours(self):
        work_id, token = self.held()
        work = self.ok("work", "waiting", "--id", work_id, "--token", token, "--kind",
                       "external", "--ref", "r")["work"]
        self.assertEqual(work["status"], "waiting_external")
        self.assertEqual(work["deadline_at"] - work["updated_at"], 7200000)

    def test_a_wait_without_an_escalation_is_refused_where_the_policy_asks_for_one(self):
        self.ok("policy", "set", "default", "--wait-rule", "escalation")
        work_id, token = self.held()
        wait = ("work", "wait", work_id, "--token", token, "--kind", "user", "--ref", "r")
        message = self.refused(4, "policy_unmet", *wait)
        self.assertIn("--escalate-after), at most 86400000 ms", message)
        self.assertEqual(self.ok(*wait, "--escalate-after", "1h")["work"]["status"],
                         "waiting_user")

    def test_resume_by_reference_straight_into_running(self):
        self.waiting("--kind", "external", "--ref", "job-1", "--timeout", "5m",
                     "--escalate-after", "1m", "--escalate", "work:remind")
        work = self.ok("work", "resume", "--ref", "job-1", "--owner", "w2", "--ttl", "9s",
                       "--pid", str(os.getpid()))["work"]
        self.assertEqual((work["status"], work["owner"], work["lease_ttl_ms"]),
                         ("running", "w2", 9000))
        self.assertTrue(work["lease_token"])
        self.ok("work", "close-out", work["work_id"], "--token", work["lease_token"],
                "--status", "done")

    def test_one_resume_wins(self):
        work = self.waiting("--kind", "user", "--ref", "r")
        self.ok("work", "resume", work["work_id"])
        self.refused(4, "illegal_transition", "work", "resume", work["work_id"])
        self.refused(3, "not_found", "work", "resume", "--ref", "r")

    def test_a_reference_that_several_wait_for_asks_for_an_id(self):
        for source_id in ("a", "b"):
            work_id, token = self.held(source_id)
            self.ok("work", "wait", work_id, "--token", token, "--kind", "user", "--ref", "both")
        answer = self.cli("--json", "work", "resume", "--ref", "both", code=3).json
        self.assertIn("--id", answer["error"]["action"])

    def test_only_a_resume_with_an_owner_takes_a_lease(self):
        work = self.waiting("--kind", "user", "--ref", "r")["work_id"]
        for option in (["--ttl", "9s"], ["--nonce", "n"], ["--incarnation", "i"]):
            self.assertIn("owner", self.refused(2, "invalid_argument", "work", "resume", work,
                                                *option))


class Operate(Case):
    def test_redrive_requeues_what_matches_and_says_so_first(self):
        units = {}
        for name, kind, error in (("a", "x", "rate_limit"), ("b", "x", "validation"),
                                  ("c", "y", "rate_limit")):
            work_id, token = self.held(name, "--kind", kind, "--max-attempts", "1")
            self.ok("work", "fail", "--id", work_id, "--token", token, "--class", error)
            units[name] = work_id
        redrive = ("work", "redrive", "--reason", "r", "--kind", "x", "--class", "rate_limit")
        self.assertEqual(self.ok(*redrive, "--dry-run"), {
            "ok": True, "dry_run": True, "matched": 1, "requeued": 0, "refused": 0})
        self.assertIn("would requeue " + units["a"], self.cli(*redrive, "--dry-run").out)
        self.assertEqual(self.ok(*redrive), {
            "ok": True, "dry_run": False, "matched": 1, "requeued": 1, "refused": 0})
        self.assertEqual([self.ok("work", "show", units[name])["work"]["status"] for name in "abc"],
                         ["queued", "failed", "failed"])
        self.assertEqual(self.ok("work", "redrive", "--reason", "r", "--status", "timeout")
                         ["matched"], 0)
        self.assertRegex(self.cli("work", "redrive", "--reason", "r", "--limit", "1").out,
                         r"^requeued [-0-9a-f]{36}\n1 match, 1 were requeued\n$")
        self.refused(2, "invalid_argument", "work", "redrive", "--reason", "r", "--status", "done")

    def test_cancel_and_requeue(self):
        work_id = self.create()["work_id"]
        work = self.ok("work", "cancel", work_id, "--reason", "not wanted")["work"]
        self.assertEqual((work["status"], work["status_reason"]), ("cancelled", "not wanted"))
        self.refused(4, "illegal_transition", "work", "cancel", work_id, "--reason", "again")
        work = self.ok("work", "requeue", work_id, "--reason", "wanted after all")["work"]
        self.assertEqual((work["status"], work["generation"]), ("queued", 1))

    def test_an_owner_bound_unit_is_only_asked(self):
        work_id, _ = self.held("a", "--disposition", "owner_bound")
        work = self.ok("work", "cancel", work_id, "--reason", "please")["work"]
        self.assertEqual(work["status"], "running")
        self.assertEqual(work["cancel_request"]["reason"], "please")
        work = self.ok("work", "request-abandon", work_id, "--reason", "scrapped")["work"]
        self.assertEqual(work["status"], "running")
        self.assertEqual(work["abandon_request"]["reason"], "scrapped")

    def test_an_operation_id_makes_a_command_repeatable(self):
        work_id = self.create()["work_id"]
        args = ["work", "cancel", work_id, "--reason", "r", "--operation-id", "op-1"]
        self.ok(*args)
        again = self.ok(*args)
        self.assertIs(again["repeated"], True)

    def test_the_actor_stands_in_the_trail(self):
        work_id = self.create("a", "--actor", "webhook:mail")["work_id"]
        self.claim()
        self.ok("work", "cancel", work_id, "--reason", "r")
        trail = self.ok("work", "events", work_id)["items"]
        self.assertEqual([(e["actor_kind"], e["actor"]) for e in trail if e["to_status"]],
                         [("webhook", "mail"), ("worker", "w1"), ("human", "tester")])

    def test_sweep_says_what_it_did(self):
        self.create("a", "--start-timeout", "1ms")
        self.create("b")
        answer = self.ok("work", "sweep")
        self.assertEqual(list(answer), [
            "ok", "looked_at", "requeued", "timed_out", "failed", "abandoned", "promoted",
            "escalated", "pushed", "silent", "proven_dead", "orphaned", "held", "more",
            "next_at"])
        self.assertEqual((answer["timed_out"], answer["more"]), (1, False))

    def test_prune_takes_only_what_is_finished_and_old(self):
        for name in "abc":
            work_id = self.create(name)["work_id"]
            if name != "c":
                self.ok("work", "cancel", work_id, "--reason", "r")
        self.assertEqual(self.ok("work", "prune", "--older-than", "1h"),
                         {"ok": True, "pruned": 0})
        self.assertEqual(self.ok("work", "prune", "--older-than", "0s", "--limit", "1"),
                         {"ok": True, "pruned": 1})
        self.assertEqual(self.ok("work", "prune", "--older-than", "0s"),
                         {"ok": True, "pruned": 1})
        self.assertEqual(self.rows(), 1)

    def test_policy_set_and_show(self):
        self.ok("policy", "set", "kind:build", "--ttl", "5m", "--max-attempts", "7",
                "--disposition", "rerunnable")
        policy = self.ok("policy", "show", "--source", "manual", "--kind", "build")["policy"]
        self.assertEqual(list(policy), [
            "ttl_ms", "renew_ms", "grace_ms", "wait_user_ms", "wait_external_ms",
            "start_timeout_ms", "exec_timeout_ms", "max_attempts", "retry_policy",
            "disposition", "close_rule", "wait_rule"])
        self.assertEqual((policy["grace_ms"], policy["start_timeout_ms"]), (30000, None))
        self.assertEqual((policy["ttl_ms"], policy["renew_ms"], policy["max_attempts"],
                          policy["disposition"]), (300000, 100000, 7, "rerunnable"))
        work = self.create("a", "--kind", "build")
        self.assertEqual((work["max_attempts"], work["disposition"]), (7, "rerunnable"))
        message = self.refused(2, "invalid_argument", "policy", "set", "default", "--ttl",
                               "10s", "--renew", "5s")
        self.assertIn("3", message)

    def test_store_bump_refuses_old_tokens(self):
        work_id, token = self.held()
        self.assertEqual(self.ok("store", "bump"), {"ok": True, "incarnation": 2})
        self.refused(5, "lease_lost", "work", "renew", work_id, "--token", token)


class Read(Case):
    def test_show_by_prefix_suffix_and_whole_id(self):
        work_id = self.create()["work_id"]
        for part in (work_id, work_id[:13], work_id[-12:], work_id[-4:]):
            self.assertEqual(self.ok("work", "show", "--id", part)["work"]["work_id"], work_id)
        self.assertEqual(self.ok("work", "show", work_id[-12:])["work"]["work_id"], work_id)

    def test_every_verb_takes_a_part_of_an_id(self):
        work_id, token = self.held()
        tail = work_id[-12:]
        self.ok("work", "renew", "--id", tail, "--token", token)
        self.ok("work", "wait", "--id", tail, "--token", token, "--kind", "user", "--ref", "r")
        self.ok("work", "resume", "--id", tail)
        self.ok("work", "cancel", "--id", tail, "--reason", "r")
        self.ok("work", "requeue", "--id", tail, "--reason", "r")
        trail = self.ok("work", "events", "--id", tail)["items"]
        self.assertEqual([e["to_status"] for e in trail if e["to_status"]],
                         ["queued", "running", "waiting_user", "queued", "cancelled",
                          "queued"])

    def test_ambiguous_and_unknown_ids(self):
        self.create("a")
        self.create("b")
        ids = [item["work_id"] for item in self.ok("work", "list")["items"]]
        prefix = os.path.commonprefix(ids)  # at least the hours; how much more, time decides
        self.refused(3, "ambiguous_id", "work", "show", prefix)
        self.refused(3, "not_found", "work", "show", "ffffffffffff")
        self.refused(3, "not_found", "work", "cancel", "ffffffffffff", "--reason", "r")
        self.refused(3, "not_found", "work", "events",
                     "00000000-0000-7000-8000-000000000000")

    def test_list_filters_and_pages(self):
        for name in "abcde":
            self.create(name, "--queue", "q" if name < "d" else "p", "--kind", "k" + name)
        gone = self.ok("work", "list", "--queue", "q")["items"][0]["work_id"]
        self.ok("work", "cancel", gone, "--reason", "r")
        names = lambda *args: [i["source_id"] for i in self.ok("work", "list", *args)["items"]]
        self.assertEqual(names(), list("bcde"))
        self.assertEqual(names("--all"), list("abcde"))
        self.assertEqual(names("--status", "cancelled"), ["a"])
        self.assertEqual(names("--status", "cancelled", "--status", "queued"), list("abcde"))
        self.assertEqual(names("--queue", "p"), list("de"))
        self.assertEqual(names("--kind", "kd"), ["d"])
        self.assertEqual(names("--source", "control"), [])
        self.assertEqual(names("--older-than", "1h"), [])
        self.assertEqual(names("--silent"), [])
        page = self.ok("work", "list", "--limit", "3")
        self.assertEqual([i["source_id"] for i in page["items"]], list("bcd"))
        last = self.ok("work", "list", "--limit", "3", "--after", page["next"])
        self.assertEqual([i["source_id"] for i in last["items"]], ["e"])
        self.assertIsNone(last["next"])

    def test_list_by_owner_and_reference(self):
        work_id, token = self.held()
        self.assertEqual(len(self.ok("work", "list", "--owner", "w1")["items"]), 1)
        self.assertEqual(len(self.ok("work", "list", "--owner", "w2")["items"]), 0)
        self.ok("work", "wait", work_id, "--token", token, "--kind", "user", "--ref", "r9")
        self.assertEqual(len(self.ok("work", "list", "--ref", "r9")["items"]), 1)

    def test_one_field_for_a_script(self):
        work_id = self.cli("work", "create", "--source", "manual", "--source-id", "a",
                           "--field", "work_id").out
        self.assertEqual(work_id, self.ok("work", "show", work_id.strip())["work"]["work_id"]
                         + "\n")
        self.create("b")
        self.assertEqual(self.cli("work", "list", "--field", "source_id").out, "a\nb\n")
        token = self.cli("work", "claim", "--owner", "w", "--field", "lease_token").out
        self.ok("work", "renew", work_id.strip(), "--token", token.strip())
        self.assertEqual(self.cli("work", "show", work_id.strip(), "--field", "finished_at").out,
                         "\n")
        self.assertEqual(self.cli("work", "show", work_id.strip(), "--field",
                                  "lease_token").out, "\n")

    def test_events_are_the_ordered_trail(self):
        work_id, token = self.held()
        self.ok("work", "close-out", work_id, "--token", token, "--status", "failed",
                "--reason", "why")
        answer = self.ok("work", "events", work_id)
        self.assertEqual(list(answer), ["ok", "items", "next"])
        self.assertEqual(list(answer["items"][0]), EVENT_KEYS)
        self.assertIsNone(answer["next"])
        self.assertEqual([(e["event_type"], e["from_status"], e["to_status"])
                          for e in answer["items"]],
                         [("work_created", None, "queued"), ("claimed", "queued", "running"),
                          ("lease_acquired", None, None), ("close_out", "running", "failed"),
                          ("lease_released", None, None)])

    def test_pages_of_events_lose_none_and_split_none(self):
        work_id, token = self.held()
        for n in range(4):
            self.ok("work", "append-event", work_id, "--token", token, "--type", f"t{n}")
        self.ok("work", "close-out", work_id, "--token", token, "--status", "done")
        whole = self.ok("work", "events", work_id)["items"]
        for limit in (1, 2, 3, 4, 9, 10):
            seen, after = [], 0
            while after is not None:
                page = self.ok("work", "events", work_id, "--limit", str(limit), "--after",
                               str(after))
                self.assertTrue(page["items"])
                seen += page["items"]
                after = page["next"]
            self.assertEqual(seen, whole, limit)

    def test_stats_of_a_tenant(self):
        for tenant in ("acme", "acme", "bravo"):
            self.n = getattr(self, "n", 0) + 1
            self.ok("--tenant", tenant, "work", "create", "--source", "manual",
                    "--source-id", f"tenant-{self.n}")
        self.assertEqual(self.ok("work", "stats")["by_status"]["queued"], 3)
        self.assertEqual(self.ok("--tenant", "acme", "work", "stats")["by_status"]["queued"], 2)
        self.assertEqual(self.ok("--tenant", "other", "work", "stats")["by_status"]["queued"], 0)

    def test_stats_count_what_is_open(self):
        self.create("a")
        self.create("b", "--delay", "1h")
        self.ok("work", "cancel", self.create("c")["work_id"], "--reason", "r")
        stats = self.ok("work", "stats")
        self.assertEqual(list(stats), [
            "ok", "by_status", "by_source", "gated", "silent", "lapsing", "oldest_queued_ms",
            "oldest_running_ms", "next_wait_deadline_at", "next_retry_at"])
        self.assertEqual(stats["by_status"], {
            "queued": 2, "running": 0, "waiting_user": 0, "waiting_external": 0,
            "retry_scheduled": 0})
        self.assertEqual((stats["by_source"]["manual"], stats["gated"]), (2, 1))

    def test_people_see_tables_and_are_told_when_there_is_nothing(self):
        self.cli("migrate")
        self.assertEqual(self.cli("work", "list").out, "no open work; --all lists ended units too\n")
        self.assertEqual(self.cli("work", "list", "--status", "done").out, "no such work\n")
        work_id = self.create()["work_id"]
        listed = self.cli("work", "list").out.split("\n")
        self.assertTrue(listed[0].startswith("ID        STATUS  WHAT  KIND"))
        self.assertTrue(listed[1].startswith(work_id[-8:] + "  queued  s1    work"))
        self.assertIn("source_id          s1\n", self.cli("work", "show", work_id).out)
        self.assertIn("human:tester", self.cli("work", "events", work_id).out)
        self.assertIn("queued", self.cli("work", "stats").out)
        self.assertEqual(self.cli("work", "claim", "--owner", "w", "--queue", "none").out,
                         "nothing to claim\n")
        self.assertNotIn("\x1b", self.cli("work", "list").out)

    def test_a_terminal_obeys_nothing_that_the_ledger_holds(self):
        self.create("a", "--payload", '"\\u001b[31m\\u009b"', "--ref", "x\u009b31m")
        work_id = self.ok("work", "list")["items"][0]["work_id"]
        for verb in ("show", "events"):
            out = self.cli("work", verb, work_id).out
            self.assertNotIn("\x1b", out)
            self.assertNotIn("\u009b", out)

    def test_views_of_the_database_hold_the_same_row(self):
        work = self.create("a", "--payload", '{"n":1}')
        with sqlite3.connect(f"file:{self.db}?mode=ro", uri=True) as db:
            db.row_factory = sqlite3.Row
            row = dict(db.execute("SELECT * FROM runtime_work").fetchone())
            events = db.execute("SELECT payload, payload_json FROM runtime_work_event").fetchall()
        work.pop("lease_remaining_ms")
        self.assertEqual(row["retry_policy"], row.pop("retry_policy_json"))
        self.assertTrue(events[0][0])
        self.assertEqual([event[0] for event in events], [event[1] for event in events])
        for key in ("payload", "retry_policy"):
            row[key] = json.loads(row[key])
        self.assertEqual(row, work)


class Whole(Case):
    def test_bounds_version_migrate_and_doctor(self):
        bounds = self.ok("bounds")
        self.assertIn({"name": "key_bytes", "value": 191, "unit": "bytes",
                       "what": "ids, keys, kinds, queues, lanes, references, owners"},
                      bounds["items"])
        version = self.ok("version")
        self.assertEqual(list(version), ["ok", "version", "schema_version", "sqlite"])
        self.assertEqual(self.ok("migrate")["schema_version"], version["schema_version"])
        lite = self.cli("migrate", "--dump-sql").out
        self.assertIn("CREATE TABLE", lite)
        server = self.cli("--db", "postgres://nowhere/db", "migrate", "--dump-sql").out
        self.assertIn("STRICT", lite)
        self.assertNotIn("STRICT", server)
        self.assertIn("bigint", server)
        self.create()
        health = self.ok("doctor")
        self.assertEqual(list(health), ["ok", "facts", "findings"])
        self.assertEqual(health["facts"]["engine"], "sqlite")
        self.assertIn("in order", self.cli("doctor").out)

    def test_memory_and_url_forms_of_a_store(self):
        self.assertEqual(self.ok("--db", "sqlite::memory:", "work", "list")["items"], [])
        self.ok("--db", "sqlite:" + self.path("u.db"), "work", "create", "--source", "manual",
                "--source-id", "a")
        self.assertEqual(len(self.ok("--db", "u.db", "work", "list")["items"]), 1)

    def test_the_default_store_is_named_when_it_is_made(self):
        del self.env["HOLDFAST_DB"]
        made = self.cli("work", "create", "--source", "manual", "--source-id", "a")
        default = self.path(".local/state/holdfast/holdfast.db")
        self.assertIn(default, made.err)
        self.assertEqual(os.stat(os.path.dirname(default)).st_mode & 0o777, 0o700)
        again = self.cli("work", "list")
        self.assertEqual(again.err, "")
        self.env["XDG_STATE_HOME"] = self.path("state")
        self.assertIn(self.path("state/holdfast/holdfast.db"),
                      self.cli("work", "create", "--source", "manual", "--source-id", "a").err)

    def test_global_options_stand_anywhere(self):
        self.create()
        for args in (["--json", "work", "list"], ["work", "--json", "list"],
                     ["work", "list", "--json"], ["work", "list", "--db", self.db, "--json"],
                     ["--db=" + self.db, "work", "list", "--json"]):
            self.assertEqual(len(self.cli(*args).json["items"]), 1)

    def test_tenants_have_keys_of_their_own(self):
        self.create("a")
        other = self.ok("--tenant", "t2", "work", "create", "--source", "manual",
                        "--source-id", "a")
        self.assertIs(other["created"], True)
        self.assertEqual(len(self.ok("--tenant", "t2", "work", "list")["items"]), 1)


if __name__ == "__main__":
    main()
