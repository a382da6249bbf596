#!/usr/bin/env python3
"""The examples that other tests do not run: a set of crons, a webhook's trigger, a worker by calls. (The
shell worker is run by monitor.py, the C workers by c_worker.py and pool_worker.py.)"""

import os
import subprocess
import textwrap

from harness import Case, main

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")


class Crons(Case):
    SET = os.path.join(EXAMPLES, "schedules.json")

    def test_the_set_is_added_once_and_fires_as_it_says(self):
        first = self.ok("schedule", "sync", self.SET)
        self.assertEqual((first["added"], first["updated"]), (4, 0))
        again = self.ok("schedule", "sync", self.SET)
        self.assertEqual((again["added"], again["updated"], again["unchanged"]), (0, 0, 4))
        names = {item["name"]: item for item in self.ok("schedule", "list")["items"]}
        self.assertEqual(set(names), {"morning-report", "month-end", "poll-inbox", "friday-13th"})

    def test_what_the_set_names_is_previewed(self):
        report = self.ok("schedule", "preview", "--cron", "0 9 * * MON-FRI", "--tz",
                         "Europe/Berlin", "--from", "2026-03-27T12:00:00Z", "--count", "2")
        self.assertEqual(report["items"], ["2026-03-30T07:00:00Z", "2026-03-31T07:00:00Z"])
        books = self.ok("schedule", "preview", "--cron", "0 18 LW * *", "--tz",
                        "America/New_York", "--from", "2026-01-01T00:00:00Z", "--count", "2")
        self.assertEqual(books["items"], ["2026-01-30T23:00:00Z", "2026-02-27T23:00:00Z"])


class Monitor(Case):
    def test_a_host_runs_what_the_monitor_runs(self):
        self.ok("schedule", "add", "tick", "--every", "1s", "--kind", "tick")
        with subprocess.Popen([os.environ["MONITOR_EXAMPLE"], self.env["HOLDFAST_DB"]], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as monitor:
            self.assertEqual(monitor.stdout.readline(), "made 1 units\n")
            monitor.terminate()
            self.assertEqual((monitor.wait(30), monitor.stderr.read()), (0, ""))
        made = self.ok("work", "list", "--kind", "tick")["items"]
        self.assertEqual({unit["status"] for unit in made}, {"queued"})

    def test_a_store_that_is_none_is_refused(self):
        path = self.file("text", "no store")
        done = subprocess.run([os.environ["MONITOR_EXAMPLE"], path], text=True, capture_output=True,
                              timeout=50, check=False)
        self.assertEqual(done.returncode, 9)


class Journal(Case):
    def pay(self, process):
        done = subprocess.run([os.environ["JOURNAL_EXAMPLE"], self.env["HOLDFAST_DB"], process], text=True,
                              capture_output=True, timeout=50, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_an_effect_of_a_process_happens_once(self):
        process = self.ok("process", "start", "--disposition", "rerunnable")["work"]["work_id"]
        self.assertEqual(self.pay(process), "paid invoice 17: 1200 cents\n")
        self.assertEqual(self.pay(process), 'done before: {"paid":true}\n')

    def test_the_page_shows_what_the_example_does(self):
        with open(os.path.join(EXAMPLES, "journal.c"), encoding="utf-8") as text:
            example = text.read()
        with open(os.path.join(EXAMPLES, "..", "docs", "effects.md"), encoding="utf-8") as text:
            page = text.read()
        shown = page[page.index("struct hf_journal_begin begin"):]
        shown = shown[:shown.index("```")]
        self.assertIn(textwrap.indent(shown, "    "), example)


class Call(Case):
    def run_worker(self):
        done = subprocess.run([os.path.join(EXAMPLES, "call.py"), "py1"], env=self.env, text=True,
                              capture_output=True, cwd=self.folder, timeout=50, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()

    def test_the_worker_closes_what_it_takes(self):
        units = [self.create(f"s{i}", "--payload", '{"n":%d}' % i) for i in range(3)]
        self.assertEqual(len(self.run_worker()), 3)
        for unit in units:
            row = self.ok("work", "show", unit["work_id"])["work"]
            self.assertEqual((row["status"], row["result"]["summary"]),
                             ("done", "8 bytes were counted"))

    def test_it_renews_while_it_works(self):
        """A term of 750 ms, renewed every 250: work of 1.2 s ends under its lease."""
        self.ok("policy", "set", "default", "--ttl", "750ms", "--max-attempts", "1")
        unit = self.create()
        with open(os.path.join(EXAMPLES, "call.py"), encoding="utf-8") as text:
            slow = text.read().replace("def work_on(unit):\n", "def work_on(unit):\n"
                                       "    threading.Event().wait(1.2)\n")
        path = self.file("slow.py", slow)
        done = subprocess.run(["python3", path, "py1"], env=self.env, text=True,
                              capture_output=True, cwd=self.folder, timeout=50, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.ok("work", "show", unit["work_id"])["work"]["status"], "done")
        types = [e["event_type"] for e in self.ok("work", "events", unit["work_id"])["items"]]
        self.assertNotIn("lease_expired", types)


class Webhook(Case):
    def emit(self, delivery, payload, code):
        done = subprocess.run([os.path.join(EXAMPLES, "trigger.sh"), "github", "repo", delivery],
                              input=payload, capture_output=True, env=self.env, text=True,
                              cwd=self.folder, timeout=50, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)

    def test_a_delivery_that_is_repeated_starts_its_target_once(self):
        self.ok("trigger", "subscribe", "build", "--source-type", "github", "--source-key", "repo",
                "--kind", "build", "--template", '{"sha":{"$event":"after"}}')
        for _ in range(2):
            self.emit("d1", '{"after":"abc"}', 0)
        (unit,) = self.ok("work", "list")["items"]
        self.assertEqual((unit["kind"], unit["payload"]), ("build", {"sha": "abc"}))
        self.emit("d1", '{"after":"other"}', 7)
        self.emit("d2", '{"after":"def"}', 0)
        self.assertEqual(len(self.ok("work", "list")["items"]), 2)

    def test_what_is_missing_is_said(self):
        done = subprocess.run([os.path.join(EXAMPLES, "trigger.sh"), "github"], env=self.env,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("usage:", done.stderr)


class Agents(Case):
    def agent(self, *args):
        done = subprocess.run([os.environ["AGENT_EXAMPLE"], "agent.db", *args], env=self.env, text=True,
                              capture_output=True, cwd=self.folder, timeout=50, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr

    def test_the_host_answers_with_its_tool(self):
        out, err = self.agent("use roll {}")
        self.assertEqual(out, 'I will use roll.The tool answered: {"eyes":4}\nassistant_message, 1 tool call\n')
        self.assertRegex(err, r"^roll table-1/[0-9a-f-]{36}/\d+/c[a-z0-5]{24}/1\n$")
        self.assertEqual(self.agent(), ("\nnothing to do, 0 tool calls\n", ""))

    def test_each_configuration_is_one(self):
        self.env["PATH"] = os.environ["PATH"]
        folder = os.path.join(EXAMPLES, "agents")
        names = sorted(name for name in os.listdir(folder) if name.endswith(".toml"))
        self.assertEqual(names, ["operator.toml", "reporter.toml", "reviewer.toml", "shell-helper.toml"])
        for name in names:
            self.cli("config", "check", "--config", os.path.join(folder, name))


if __name__ == "__main__":
    main()
