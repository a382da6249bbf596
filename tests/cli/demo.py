#!/usr/bin/env python3
"""holdfast demo: the facts it ends with, what it leaves behind, and how it is interrupted."""

import json
import os
import re
import shlex
import signal
import subprocess

from harness import HOLDFAST, Case, main


class Demo(Case):
    def setUp(self):
        super().setUp()
        self.env["TMPDIR"] = self.folder

    def left(self):
        return [n for n in os.listdir(self.folder) if n.startswith("holdfast-demo-")]

    def test_the_facts_hold_and_nothing_is_left(self):
        answer = self.ok("demo", "--remove")
        self.assertEqual({k: answer[k] for k in ("units", "done", "attempts", "steps", "resumes",
                                                 "retries", "evidence", "faults", "kept")},
                         {"units": 6, "done": 6, "attempts": 8, "steps": 3, "resumes": 1,
                          "retries": 1, "evidence": 1, "faults": 0, "kept": False})
        self.assertEqual((answer["agent_effects"], answer["agent_answer"]), (1, "The tool answered: noted"))
        self.assertEqual(answer["unit_kinds"].split(", "), ["crawl", "index", "kill", "approve", "fetch", "publish"])
        self.assertEqual((answer["agent_payments"], json.loads(answer["agent_paid"].split(": ", 1)[1])),
                         (1, {"approved_by": "you", "result": "paid"}))
        reclaim = answer["reclaim"]
        self.assertEqual(reclaim["killed_pid"], reclaim["proven_pid"])
        self.assertTrue(0 <= reclaim["ms"] < reclaim["lease_ttl_ms"])
        self.assertEqual(self.left(), [])

    def test_the_story_is_plain_text_and_its_commands_work(self):
        result = self.cli("demo")
        self.assertEqual(result.err, "")
        self.assertNotIn("\033", result.out)
        for words in ("kill -9 of worker-", "proof stored in event", "attempt 2",
                      "waits for a user", 'answered with {"approved":true}',
                      "transient_network", "without evidence refused", "sha256:",
                      "between the effect and its commit", "tool.log has 1 line",
                      "crawl, index, kill, approve, fetch, publish (the kill itself is one)",
                      "its worker, pid", "runs that command itself", "payments.log has 1 line"):
            self.assertIn(words, result.out)
        commands = result.out.split("Try next\n")[1].split("\n\n")[0].splitlines()
        self.assertEqual(len(commands), 3)
        for command in commands:
            subprocess.run(["sh", "-ec", command], cwd=self.folder, check=True,
                           env={"PATH": "/usr/bin:/bin"}, stdout=subprocess.DEVNULL)
        self.assertEqual(len(self.left()), 1)
        subprocess.run(["sh", "-ec", result.out.split("remove it with: ")[1]], check=True)
        self.assertEqual(self.left(), [])

    def test_the_commands_work_where_the_folder_has_an_awkward_name(self):
        name = self.path("it's a $HOME")
        result = self.cli("demo", "--folder", name)
        command = result.out.split("Try next\n")[1].splitlines()[0].strip()
        self.assertIn(os.path.join(name, "ledger.db"), shlex.split(command))
        shown = subprocess.run(["sh", "-ec", command], cwd=self.folder, check=True,
                               capture_output=True, text=True)
        self.assertIn("holder_dead", shown.stdout)

    def test_a_folder_that_is_not_empty_is_refused_and_left_alone(self):
        os.mkdir(self.path("full"))
        kept = self.file("full/mine", "x")
        message = self.refused(2, "invalid_argument", "demo", "--remove", "--folder",
                               self.path("full"))
        self.assertIn("empty", message)
        self.assertTrue(os.path.exists(kept))

    def test_a_folder_that_cannot_be_made_is_refused(self):
        self.refused(2, "invalid_argument", "demo", "--folder", self.path("no/such/place"))
        self.env["TMPDIR"] = self.path("no-such-folder")
        self.assertIn("no-such-folder", self.refused(2, "invalid_argument", "demo"))

    def test_a_reader_that_leaves_leaves_no_process(self):
        demo = subprocess.Popen([HOLDFAST, "demo", "--remove"], env=self.env, cwd=self.folder,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        demo.stdout.readline()
        demo.stdout.close()
        self.assertEqual(demo.wait(), 1)
        self.assertEqual(self.left(), [])

    def test_it_uses_no_store_of_the_user(self):
        self.refused(2, "invalid_argument", "--db", self.path("x.db"), "demo")
        self.ok("demo", "--remove")
        self.assertFalse(os.path.exists(self.db))

    def test_an_interrupt_ends_every_process(self):
        for signum in (signal.SIGINT, signal.SIGTERM):
            demo = subprocess.Popen([HOLDFAST, "demo", "--remove"], env=self.env,
                                    cwd=self.folder, stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL, text=True)
            self.assertIn("A ledger in", demo.stdout.readline())
            pids = [int(n) for n in re.findall(r"(?:submitter|worker-\d|monitor) (\d+)",
                                               demo.stdout.readline())]
            self.assertEqual(len(pids), 4)
            for line in demo.stdout:
                if "in the middle" in line:
                    break
            demo.send_signal(signum)
            demo.stdout.read()
            demo.stdout.close()
            self.assertEqual(demo.wait(), -signum)
            for pid in pids:
                self.assertRaises(ProcessLookupError, os.kill, pid, 0)
            self.assertEqual(self.left(), [])

    def test_a_director_that_is_killed_leaves_no_process(self):
        demo = subprocess.Popen([HOLDFAST, "demo"], env=self.env, cwd=self.folder,
                                stdout=subprocess.PIPE, text=True)
        demo.stdout.readline()
        demo.kill()
        demo.wait()
        # All children have the pipe to this test open: its end is their end.
        demo.stdout.read()
        demo.stdout.close()


if __name__ == "__main__":
    main()
