#!/usr/bin/env python3
"""holdfast ask and answer: a question to a person as one thing."""

import json
import signal
import subprocess
import time

from harness import HOLDFAST, Case, main


class Ask(Case):
    def ask(self, *args):
        asker = subprocess.Popen([HOLDFAST, "ask", *args], cwd=self.folder, env=self.env,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(asker.stderr.close)
        self.addCleanup(asker.stdout.close)
        self.addCleanup(asker.wait)
        self.addCleanup(asker.kill)
        return asker

    def waiting(self, count=1):
        """The questions, once so many wait."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            done = self.run_raw("--json", "work", "list", "--status", "waiting_user")
            items = json.loads(done.stdout)["items"] if done.returncode == 0 else []
            if len(items) == count:
                return items
        self.fail("no question came")

    def heard(self, asker):
        out, err = asker.communicate(timeout=30)
        return asker.returncode, out, err

    def test_the_answer_is_printed_and_its_place_is_the_exit_code(self):
        for word, code in (("yes", 0), ("no", 1)):
            asker = self.ask("Deploy?")
            question = self.waiting()[0]
            self.assertEqual(question["payload"], {"choices": ["yes", "no"], "question": "Deploy?"})
            self.assertIn("Deploy?", self.cli("work", "list").out)
            self.cli("answer", question["work_id"][-8:], word)
            got, out, err = self.heard(asker)
            self.assertEqual((got, out), (code, word + "\n"))
            self.assertIn(f"holdfast answer {question['work_id'][-8:]} yes|no", err)
            unit = self.ok("work", "show", question["work_id"])["work"]
            self.assertEqual((unit["status"], unit["result"]["summary"]), ("done", word))

    def test_choices_are_what_was_said_and_text_takes_anything(self):
        asker = self.ask("What now?", "--choices", "retry,skip,stop")
        self.cli("answer", self.waiting()[0]["work_id"], "stop")
        self.assertEqual(self.heard(asker)[:2], (2, "stop\n"))
        asker = self.ask("Which version?", "--text")
        self.cli("answer", self.waiting()[0]["work_id"], "v1.2 'beta'")
        self.assertEqual(self.heard(asker)[:2], (0, "v1.2 'beta'\n"))

    def test_an_unknown_word_is_refused_with_the_choices_and_the_question_stays(self):
        asker = self.ask("Deploy?")
        question = self.waiting()[0]["work_id"]
        message = self.refused(2, "invalid_argument", "answer", question, "maybe")
        self.assertIn('"maybe" is none of: yes, no', message)
        self.assertEqual(len(self.waiting()), 1)
        self.cli("answer", question, "yes")
        self.assertEqual(self.heard(asker)[0], 0)

    def test_the_first_answer_counts_and_a_second_one_is_told_so(self):
        asker = self.ask("Deploy?")
        question = self.waiting()[0]["work_id"]
        self.cli("answer", question, "no")
        self.assertEqual(self.heard(asker)[0], 1)
        self.assertIn('answered earlier with "no"',
                      self.refused(7, "conflict", "answer", question, "yes"))
        self.assertIn("earlier", self.cli("answer", question, "no").out)
        self.assertEqual(self.ok("work", "show", question)["work"]["result"]["summary"], "no")

    def test_no_answer_in_time_is_124(self):
        asker = self.ask("Deploy?", "--timeout", "200ms")
        got, out, err = self.heard(asker)
        self.assertEqual((got, out), (124, ""))
        self.assertIn("no answer came in time", err)

    def test_a_stopped_asker_takes_its_question_back(self):
        asker = self.ask("Deploy?")
        question = self.waiting()[0]["work_id"]
        asker.send_signal(signal.SIGTERM)
        self.assertEqual(self.heard(asker)[0], 125)
        self.assertEqual(self.ok("work", "show", question)["work"]["status"], "cancelled")

    def test_under_a_key_a_killed_asker_is_followed_by_one_that_hears_the_answer(self):
        asker = self.ask("Deploy?", "--idempotency-key", "release-7")
        question = self.waiting()[0]["work_id"]
        asker.kill()
        asker.wait()
        self.cli("answer", question, "yes")
        for _ in range(2):  # the answer stays
            again = self.ask("Deploy?", "--idempotency-key", "release-7")
            self.assertEqual(self.heard(again)[:2], (0, "yes\n"))
        self.assertEqual(len(self.ok("work", "list", "--all")["items"]), 1)

    def test_bad_questions_make_no_store(self):
        for args, words in ((("Q?", "--choices", "yes"), "--choices yes,no"),
                            (("Q?", "--choices", "a,,b"), "a choice is empty"),
                            (("Q?", "--choices", "a,b", "--text"), "exclude each other"),
                            ((), "--question TEXT is required")):
            done = self.run_raw("ask", *args)
            self.assertEqual(done.returncode, 125)
            self.assertIn(words, done.stderr.decode())
        self.assertEqual(self.rows(), 0)

    def test_any_unit_that_waits_for_a_person_can_be_answered(self):
        work_id, token = self.held("s1", "--disposition", "rerunnable")
        self.assertIn("does not wait", self.refused(4, "illegal_transition", "answer", work_id, "yes"))
        self.ok("work", "wait", work_id, "--token", token, "--kind", "user", "--ref", "r")
        self.assertEqual(self.ok("answer", work_id, "go on")["work"]["resume_payload"], "go on")


if __name__ == "__main__":
    main()
