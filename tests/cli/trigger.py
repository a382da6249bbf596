#!/usr/bin/env python3
"""holdfast trigger: envelopes, exit codes, and emitters that race."""

import json
import os
import subprocess

from harness import HOLDFAST, Case, main

MAIL = ("--source-type", "mail", "--source-key", "inbox")


class Trigger(Case):
    def subscribe(self, key, *args):
        return self.ok("trigger", "subscribe", key, *MAIL, *args)

    def emit(self, key, *args):
        return self.ok("trigger", "emit", *MAIL, "--idempotency-key", key, *args)

    def test_what_is_emitted_becomes_work_once(self):
        answer = self.subscribe("new-mail", "--kind", "triage", "--template",
                                '{"from":{"$event":"from"},"n":[1]}')
        self.assertIs(answer["changed"], True)
        self.assertEqual(answer["subscription"]["template"], {"from": {"$event": "from"}, "n": [1]})
        first = self.emit("m1", "--payload", '{"from":"ann","x":1}')
        self.assertEqual((first["created"], len(first["items"])), (True, 1))
        again = self.emit("m1", "--payload", '{"x": 1, "from": "ann"}')
        self.assertEqual((again["created"], again["items"]), (False, first["items"]))
        work = self.claim("--kind", "triage")
        self.assertEqual(work["work_id"], first["items"][0]["work_id"])
        self.assertEqual((work["source_system"], work["source_id"], work["source_run_id"]),
                         ("control", first["items"][0]["subscription_id"],
                          first["occurrence_id"]))
        self.assertEqual(work["payload"], {"from": "ann", "n": [1]})
        self.assertEqual(self.ok("trigger", "deliveries", first["occurrence_id"])["items"],
                         first["items"])
        self.assertEqual(self.rows(), 1)
        self.assertIn("other content", self.refused(7, "conflict", "trigger", "emit", *MAIL,
                                                    "--idempotency-key", "m1"))

    def test_occurrences_are_listed_the_newest_first(self):
        self.subscribe("a", "--kind", "k")
        for key in ("m1", "m2", "m3"):
            self.emit(key)
        work = self.claim()
        self.ok("work", "close-out", "--id", work["work_id"], "--token", work["lease_token"], "--status", "done")
        seen, after = [], []
        while True:
            page = self.ok("trigger", "occurrences", "--limit", "2", *after)
            seen += page["items"]
            if not page["next"]:
                break
            after = ["--after", page["next"]]
        self.assertEqual([one["idempotency_key"] for one in seen], ["m3", "m2", "m1"])
        self.assertEqual(seen[2]["deliveries"], [{"subscription_key": "a", "work_id": work["work_id"],
                                                  "status": "done"}])
        self.assertEqual(self.ok("trigger", "occurrences", "--source-type", "none")["items"], [])
        first = self.ok("trigger", "occurrences", "--limit", "2")["next"]
        self.assertIn("no cursor of a list of occurrences",
                      self.refused(2, "invalid_argument", "trigger", "occurrences", "--after", "999 x"))
        self.assertIn("another filter", self.refused(2, "invalid_argument", "trigger", "occurrences", "--after",
                                                     first, "--source-key", "k"))

    def test_an_occurrence_with_many_deliveries_shows_a_hundred(self):
        for number in range(101):
            self.subscribe(f"s{number}", "--kind", "k")
        self.emit("m1")
        [one] = self.ok("trigger", "occurrences")["items"]
        self.assertEqual((len(one["deliveries"]), one["deliveries_more"]), (100, True))
        self.assertEqual(len(self.ok("trigger", "deliveries", one["occurrence_id"])["items"]), 101)

    def test_a_missing_member_writes_nothing(self):
        self.subscribe("a")
        self.subscribe("b", "--template", '{"s":{"$event":"mail.subject"}}')
        message = self.refused(2, "invalid_argument", "trigger", "emit", *MAIL,
                               "--idempotency-key", "m1", "--payload", '{"mail":{}}')
        self.assertIn("mail.subject", message)
        self.assertIn("subscription b", message)
        self.assertEqual(self.rows(), 0)
        self.refused(3, "not_found", "trigger", "deliveries", "occ:v1:none")

    def test_a_target_can_be_a_process(self):
        self.subscribe("a", "--process", "agent", "--name", "n", "--wake-session", "s1")
        item = self.emit("m1")["items"][0]
        self.emit("m1")
        (process,) = self.ok("process", "list", "--observer", "s1")["items"]
        self.assertEqual((process["process_id"], process["identity_kind"],
                          process["identity_label"], process["disposition"]),
                         (item["work_id"], "agent", "n", "rerunnable"))
        self.assertEqual(self.claim("--queue", "session:s1")["work_id"], item["wake_work_id"])
        self.refused(2, "invalid_argument", "trigger", "subscribe", "b", *MAIL, "--process",
                     "agent", "--disposition", "expire")

    def test_a_session_is_woken_and_may_see_the_unit(self):
        self.subscribe("a", "--wake-session", "s1")
        item = self.emit("m1")["items"][0]
        wake = self.claim("--queue", "session:s1")
        self.assertEqual(wake["work_id"], item["wake_work_id"])
        self.assertEqual(wake["payload"]["work_id"], item["work_id"])
        self.assertEqual([w["work_id"] for w in self.ok("trigger", "granted", "s1")["items"]],
                         [item["work_id"]])
        self.assertEqual(self.cli("trigger", "granted", "s1", "--field", "work_id").out,
                         item["work_id"] + "\n")

    def test_changes(self):
        self.subscribe("a")
        self.assertIs(self.subscribe("a")["changed"], False)
        self.assertIn("another definition", self.refused(
            7, "conflict", "trigger", "subscribe", "a", *MAIL, "--kind", "other"))
        one = self.ok("trigger", "update", "a", "--revision", "1", *MAIL, "--kind", "k")
        self.assertEqual((one["subscription"]["kind"], one["subscription"]["revision"]), ("k", 2))
        self.assertIn("revision 2", self.refused(7, "conflict", "trigger", "update", "a",
                                                 "--revision", "1", *MAIL))
        self.assertEqual(self.ok("trigger", "disable", "a")["subscription"]["state"], "disabled")
        self.assertEqual(self.emit("m1")["items"], [])
        self.assertEqual(self.ok("trigger", "enable", "a", "--revision", "3")
                         ["subscription"]["revision"], 4)
        self.assertEqual(self.cli("trigger", "remove", "a").out,
                         "a of host removed: deleted, revision 5\n")
        self.assertEqual(self.ok("trigger", "list")["items"], [])
        self.assertEqual(len(self.ok("trigger", "list", "--state", "deleted")["items"]), 1)
        self.refused(4, "illegal_transition", "trigger", "enable", "a")
        self.assertIn("`trigger show`", self.cli("trigger", "enable", "a", code=4).err)
        self.assertIn("revive", self.refused(7, "conflict", "trigger", "subscribe", "a", *MAIL))
        self.ok("trigger", "revive", "a")
        self.assertIn("mail inbox", self.cli("trigger", "list").out)
        self.assertIn("revision           6", self.cli("trigger", "show", "a").out)
        self.refused(3, "not_found", "trigger", "show", "b")

    def test_a_page_goes_on_after_its_cursor(self):
        for key in "abc":
            self.subscribe(key)
        after, seen = [], []
        while after is not None:
            page = self.ok("trigger", "list", "--limit", "2", *after)
            seen += [i["subscription_key"] for i in page["items"]]
            after = ["--after", page["next"]] if page["next"] else None
        self.assertEqual(seen, ["a", "b", "c"])
        page = self.ok("trigger", "list", "--newest", "--limit", "2")
        self.assertEqual([i["subscription_key"] for i in page["items"]], ["c", "b"])
        self.assertIn("another filter", self.refused(
            2, "invalid_argument", "trigger", "list", "--newest", "--state", "enabled",
            "--after", page["next"]))

    def test_bad_input_makes_no_store(self):
        for args in (("subscribe", "a", *MAIL, "--template", "{"),
                     ("subscribe", "a", "--source-type", "mail"),
                     ("subscribe", *MAIL), ("emit", *MAIL),
                     ("emit", *MAIL, "--idempotency-key", "1", "--payload", "{"),
                     ("emit", *MAIL, "--idempotency-key", "1", "--occurred-at", "now")):
            self.refused(2, "invalid_argument", "trigger", *args)
        self.assertFalse(os.path.exists(self.db))
        self.refused(2, "invalid_argument", "trigger", "subscribe", "a", *MAIL, "--template",
                     '{"$event":1}')

    def test_emitters_that_race_start_each_target_once(self):
        for i in range(20):
            self.subscribe(f"k{i}", "--kind", f"k{i}")
        emitters = [subprocess.Popen([HOLDFAST, "--json", "trigger", "emit", *MAIL,
                                      "--idempotency-key", f"m{n % 3}"], env=self.env,
                                     stdout=subprocess.PIPE, text=True) for n in range(9)]
        answers = [json.loads(e.communicate(timeout=50)[0]) for e in emitters]
        self.assertEqual([len(a["items"]) for a in answers], [20] * 9)
        self.assertEqual(sum(a["created"] for a in answers), 3)
        self.assertEqual(self.rows(), 60)


if __name__ == "__main__":
    main()
