#!/usr/bin/env python3
"""Workers of the configured agents: two of them over one store, killed in a tool and in a model call,
on SQLite and on PostgreSQL."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

from harness import HOLDFAST, Case, Worker, main

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "agent"))
import servers  # noqa: E402 pylint: disable=wrong-import-position

PG = os.environ["PG_SCRIPT"]

# The first execution is killed in its midst. The effect of a key happens once: the tool is keyed.
TOOL = """#!/bin/sh
cat > /dev/null
echo "$HOLDFAST_CALL" >> begun
if [ ! -e first ]; then
    echo $$ > first
    exec sleep 60
fi
grep -qx "$HOLDFAST_CALL" effects || echo "$HOLDFAST_CALL" >> effects
echo 1
"""


# The first execution ends when it is told to.
SLOW_TOOL = """#!/bin/sh
cat > /dev/null
echo "$HOLDFAST_CALL" >> begun
if [ ! -e first ]; then
    echo $$ > first
    read line < go
    echo "$HOLDFAST_CALL" >> ended
fi
echo 1
"""


# It does not end, nor does the process that it starts.
LINGERING_TOOL = """#!/bin/sh
cat > /dev/null
sh -c 'exec sleep 60' &
echo $$ $! > first
wait
"""


def pg(verb, folder):
    return subprocess.run([PG, verb, folder], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def alive(pid):
    """A process that ended and was not collected is not alive."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Agents(Case):
    """On SQLite."""

    def setUp(self):
        super().setUp()
        self.server = servers.Server(self.path("journal"))
        self.addCleanup(self.server.stop)
        self.cli("config", "init", "--config", self.path("h.toml"), "--base-url",
                 f"http://127.0.0.1:{self.server.port}/v1", "--model", "tools")
        self.env["XDG_CONFIG_HOME"] = self.folder
        os.chmod(self.file("add.sh", TOOL), 0o755)
        self.file("effects", "")
        with open(self.path("h.toml"), "a", encoding="utf-8") as f:
            f.write('[tool.add]\ncommand = ["./add.sh"]\ndescription = "Adds."\nrecovery = "keyed"\n'
                    'pass_env = ["PATH"]\nfolder = "."\n'
                    '[agent.adder]\nmodel = "main"\ntools = ["add"]\n'
                    '[model.once-hang]\nprovider = "main"\ncontext_tokens = 1000\noutput_tokens = 100\n'
                    '[agent.hanger]\nmodel = "once-hang"\n')

    def worker(self, *args):
        worker = Worker(self, "--config", self.path("h.toml"), *args)
        worker.heard("serving")
        return worker

    def send(self, session, agent):
        """`session send --wait` as a child."""
        self.ok("session", "create", session, "--agent", agent)
        child = subprocess.Popen([HOLDFAST, "--json", "session", "send", session, "add them", "--wait"], env=self.env,
                                 cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(child.stderr.close)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        return child

    def lines(self, name):
        with open(self.path(name), encoding="utf-8") as f:
            return f.read().split()

    def until(self, what):
        end = time.monotonic() + 60
        while not what():
            self.assertLess(time.monotonic(), end)
            threading.Event().wait(0.02)

    def test_a_worker_killed_in_a_tool_loses_nothing_and_does_nothing_twice(self):
        first = self.worker("--agent", "adder")
        sender = self.send("s", "adder")
        first.heard("tool_started")
        self.until(lambda: os.path.exists(self.path("first")) and self.lines("first"))
        second = self.worker("--agent", "adder")
        first.kill()
        self.assertGreater(second.heard("claimed")["held"], 0)
        answer = json.loads(sender.communicate(timeout=60)[0])
        self.assertEqual((answer["work"]["status"], answer["answer"]["outcome"]), ("done", "assistant_message"))
        self.assertFalse(alive(int(self.lines("first")[0])))  # what the first one left was ended
        effects = [e for e in self.ok("session", "effects", "s")["items"] if e["kind"] == "tool_call"]
        self.assertEqual([e["taken_over"] for e in effects], [True, False, False])
        self.assertEqual(len(self.lines("effects")), len(effects))
        self.assertEqual(len(set(self.lines("effects"))), len(effects))
        self.assertEqual(len(self.lines("begun")), len(effects) + 1)
        shown = self.cli("session", "turn", "s").out
        self.assertIn("done, again", shown)
        self.assertIn("assistant_message", shown)

    def sql(self, query):
        """Rows as an outsider reads them."""
        store = sqlite3.connect(self.db)
        try:
            return [list(map(str, row)) for row in store.execute(query)]
        finally:
            store.close()

    def stored(self):
        """All that a turn writes."""
        return {table: sorted(self.sql(f"SELECT * FROM {table}"))
                for table in ("session", "session_turn", "session_input", "node", "effect", "usage", "work_event")}

    def test_a_worker_stopped_past_its_lease_and_woken_commits_nothing(self):
        self.file("add.sh", SLOW_TOOL)
        os.mkfifo(self.path("go"))
        lease = ("--agent", "adder", "--ttl", "1s")
        first = self.worker(*lease)
        sender = self.send("s", "adder")
        first.heard("tool_started")
        self.until(lambda: os.path.exists(self.path("first")) and self.lines("first"))
        first.stop()
        with open(self.path("go"), "w", encoding="utf-8") as go:
            go.write("on\n")  # the tool ends, and its worker has an outcome to store
        self.until(lambda: os.path.exists(self.path("ended")) and self.lines("ended"))
        second = self.worker(*lease)
        second.heard("turn_ended")
        answer = json.loads(sender.communicate(timeout=60)[0])
        self.assertEqual((answer["work"]["status"], answer["answer"]["outcome"]), ("done", "assistant_message"))
        before, asked = self.stored(), len(self.server.requests())
        self.assertEqual(self.sql("SELECT head_revision, lease_fence FROM runtime_session"), [["1", "2"]])
        first.go_on()
        first.heard("lost")
        first.process.send_signal(signal.SIGTERM)
        self.assertEqual(first.process.wait(timeout=60), 0)
        self.assertEqual(self.stored(), before)
        self.assertEqual((asked, len(self.server.requests())), (4, 4))  # three calls of the tool, and the answer
        effects = [e for e in self.ok("session", "effects", "s")["items"] if e["kind"] == "tool_call"]
        self.assertEqual([(e["status"], e["taken_over"]) for e in effects],
                         [("done", True), ("done", False), ("done", False)])
        self.assertEqual(len(self.lines("begun")), 4)  # the first one again, under its key
        self.assertEqual(len(set(self.lines("begun"))), 3)
        self.ok("doctor")

    def test_a_worker_that_lost_its_lease_ends_its_tool_when_it_wakes(self):
        self.file("add.sh", LINGERING_TOOL)
        with open(self.path("h.toml"), encoding="utf-8") as f:
            config = f.read()
        self.file("h.toml", config.replace('recovery = "keyed"', 'recovery = "ask"'))
        lease = ("--agent", "adder", "--ttl", "1s")
        first = self.worker(*lease)
        self.ok("session", "create", "s", "--agent", "adder")
        self.ok("session", "send", "s", "add them")
        first.heard("tool_started")
        self.until(lambda: os.path.exists(self.path("first")) and len(self.lines("first")) == 2)
        pids = list(map(int, self.lines("first")))
        first.stop()
        self.worker(*lease).heard("asked")  # it has the session, and begins no call of this class again
        self.assertEqual([alive(pid) for pid in pids], [True, True])
        before = self.stored()
        first.go_on()
        first.heard("lost")
        self.until(lambda: not any(map(alive, pids)))
        first.process.send_signal(signal.SIGTERM)
        self.assertEqual(first.process.wait(timeout=60), 0)
        self.assertEqual(self.stored(), before)

    def test_a_worker_killed_in_a_model_call_loses_nothing(self):
        first = self.worker("--agent", "hanger")
        sender = self.send("s", "hanger")
        first.heard("claimed")
        self.until(lambda: len(self.server.requests()) == 1)
        first.kill()
        second = self.worker("--agent", "hanger")
        second.heard("turn_ended")
        answer = json.loads(sender.communicate(timeout=60)[0])
        self.assertEqual(answer["answer"]["text"], "Hello world")
        effects = self.ok("session", "effects", "s")["items"]
        self.assertEqual([(e["kind"], e["status"], e["taken_over"]) for e in effects], [("llm_call", "done", True)])

    def test_a_worker_drains_and_hands_back_what_does_not_end(self):
        first = self.worker("--agent", "hanger", "--grace", "200ms")
        sender = self.send("s", "hanger")
        first.heard("claimed")
        self.until(lambda: len(self.server.requests()) == 1)
        first.process.send_signal(signal.SIGTERM)
        self.assertEqual(first.heard("stopping")["held"], 1)
        first.heard("back")
        self.assertEqual(first.process.wait(timeout=60), 0)
        shown = self.ok("session", "show", "s")
        self.assertIsNone(shown["session"]["owner"])
        self.assertEqual(shown["turn"]["step"], 1)
        self.worker("--agent", "hanger").heard("turn_ended")
        self.assertEqual(json.loads(sender.communicate(timeout=60)[0])["answer"]["text"], "Hello world")

    def wait_for_turns(self, worker, count):
        for _ in range(count):
            worker.heard("turn_ended")
        return [json.dumps(n["record"]) for n in self.ok("session", "log", "s")["items"]]

    def test_a_schedule_wakes_an_agent_which_answers(self):
        self.assertIn("there is no session s",
                      self.cli("schedule", "add", "daily", "--every", "1h", "--wake-session", "s", code=3).err)
        worker = Worker(self, "--scripted")
        worker.heard("serving")
        self.ok("session", "create", "s", "--agent", "scripted")
        self.ok("schedule", "add", "once", "--at", "2020-01-01T00:00:00Z", "--catch-up", "all", "--payload",
                '{"task":"write the report"}', "--wake-session", "s")
        self.cli("monitor", "--once")
        told, said = self.wait_for_turns(worker, 1)
        self.assertIn("write the report", told)
        self.assertIn("2020-01-01T00:00:00", told)
        self.assertIn("write the report", said)
        self.ok("schedule", "add", "daily", "--every", "1h", "--wake-session", "s")
        unit = self.ok("schedule", "run-now", "daily")["work"]
        self.assertEqual((unit["session_id"], unit["queue"], unit["kind"]), ("s", "session", "wake"))
        self.assertEqual(len(self.wait_for_turns(worker, 1)), 4)
        self.assertEqual(self.ok("work", "show", unit["work_id"])["work"]["status"], "done")
        self.ok("doctor")
        for wrong in (["--overlap", "one_waiting"], ["--lane", "x"]):
            self.cli("schedule", "add", "bad", "--every", "1h", "--wake-session", "s", *wrong, code=2)

    def test_a_slot_is_skipped_while_the_agent_is_at_the_last_one(self):
        self.ok("session", "create", "s", "--agent", "scripted")
        self.ok("schedule", "add", "daily", "--every", "1h", "--wake-session", "s")
        self.ok("schedule", "run-now", "daily")
        self.cli("schedule", "run-now", "daily", code=7)
        worker = Worker(self, "--scripted")
        self.wait_for_turns(worker, 1)
        self.ok("schedule", "run-now", "daily")
        self.assertEqual(len(self.wait_for_turns(worker, 1)), 4)

    def test_a_trigger_wakes_an_agent_which_answers(self):
        worker = Worker(self, "--scripted")
        worker.heard("serving")
        self.ok("session", "create", "s", "--agent", "scripted")
        self.ok("trigger", "subscribe", "--key", "mail", "--owner-scope", "session:s", "--source-type", "mail",
                "--source-key", "in", "--wake-session", "s")
        self.ok("trigger", "emit", "--source-type", "mail", "--source-key", "in", "--payload", '{"from":"ann"}',
                "--idempotency-key", "m1")
        told, said = self.wait_for_turns(worker, 1)
        self.assertIn("mail", told)
        self.assertIn("You said", said)


class AgentsOnPostgres(Agents):
    @classmethod
    def setUpClass(cls):
        base = tempfile.TemporaryDirectory(prefix="hf-agents-")
        cls.addClassCleanup(base.cleanup)
        os.chmod(base.name, 0o755)
        cls.place = os.path.join(base.name, "pg")
        cls.url = pg("up", cls.place)
        cls.addClassCleanup(pg, "down", cls.place)
        cls.schemas = 0

    def setUp(self):
        super().setUp()
        type(self).schemas += 1
        joint = "&" if "?" in self.url else "?"
        self.env["HOLDFAST_DB"] = f"{self.url}{joint}schema=s{self.schemas}"

    def test_a_turn_whose_server_was_away_is_finished_and_nothing_is_made_up(self):
        self.file("add.sh", SLOW_TOOL)
        os.mkfifo(self.path("go"))
        worker = self.worker("--agent", "adder")
        self.ok("session", "create", "s", "--agent", "adder")
        self.ok("session", "send", "s", "add them")
        worker.heard("tool_started")
        self.until(lambda: os.path.exists(self.path("first")) and self.lines("first"))
        pg("crash", self.place)
        with open(self.path("go"), "w", encoding="utf-8") as go:
            go.write("on\n")  # the tool ends, and its outcome cannot be stored
        self.until(lambda: os.path.exists(self.path("ended")) and self.lines("ended"))
        self.assertEqual(len(self.server.requests()), 1)
        pg("start", self.place)
        worker.heard("turn_ended")
        effects = [(e["kind"], e["status"], e["taken_over"])
                   for e in self.ok("session", "effects", "s")["items"]]
        self.assertEqual(effects, 3 * [("llm_call", "done", False), ("tool_call", "done", False)] +
                         [("llm_call", "done", False)])
        self.assertEqual(len(self.lines("begun")), 3)
        self.assertEqual(len(set(self.lines("begun"))), 3)
        self.assertEqual(len(self.server.requests()), 4)
        self.assertEqual([i["status"] for i in self.ok("session", "inputs", "s")["items"]], ["done"])
        self.ok("doctor")

    def sql(self, query):
        env = {**os.environ, "PGOPTIONS": f"-c search_path=s{self.schemas}"}
        out = subprocess.run(["psql", self.url, "-AtF", "\x1f", "-c", query], check=True, text=True, env=env,
                             stdout=subprocess.PIPE).stdout
        return [line.split("\x1f") for line in out.splitlines()]


class WhatIsRefused(Case):
    def test_each_says_what_to_do(self):
        none = self.cli("worker", code=3)
        self.assertIn("holdfast config init", none.err)
        self.assertFalse(os.path.exists(self.db))
        self.cli("config", "init", "--config", "h.toml")
        key = self.cli("worker", "--config", "h.toml", code=3)
        self.assertIn("[secret:main]", key.err)
        checked = self.cli("config", "check", "--config", "h.toml").out
        self.assertIn("missing: [provider.main]: the variable OPENAI_API_KEY", checked)
        other = self.cli("worker", "--config", "h.toml", "--agent", "helpr", code=3)
        self.assertIn("did you mean helper?", other.err)
        self.assertIn("h.toml exists", self.cli("config", "init", "--config", "h.toml", code=7).err)
        self.file("bare.toml", "")
        bare = self.cli("worker", "--config", "bare.toml", code=2)
        self.assertIn("has no [agent.NAME]", bare.err)
        self.assertIn("[agent.helper]", self.cli("config", "check", "--config", "bare.toml").out)
        self.cli("config", "init", "--config", "own.toml", "--base-url", "http://127.0.0.1:9/v1")
        with open(self.path("own.toml"), "a", encoding="utf-8") as f:
            f.write('[agent.x]\nmodel = "main"\nprompt_file = "gone.md"\n')
        gone = self.cli("worker", "--config", "own.toml", "--agent", "x", code=3)
        self.assertIn("[agent.x]: prompt_file", gone.err)
        self.assertIn("gone.md", self.cli("config", "check", "--config", "own.toml").out)

    def test_keywords_that_no_check_looks_at_are_named_by_each(self):
        self.cli("config", "init", "--config", "h.toml", "--base-url", "http://127.0.0.1:9/v1")
        with open(self.path("h.toml"), "a", encoding="utf-8") as f:
            f.write("[tool.pay]\ncommand = [\"true\"]\ndescription = \"Pays.\"\nrecovery = \"ask\"\n"
                    "schema = '{\"properties\":{\"iban\":{\"pattern\":\"^DE\"}}}'\n"
                    '[agent.payer]\nmodel = "main"\ntools = ["pay"]\n')
        notice = "pay: #/iban/pattern is a keyword that is not checked"
        self.assertIn("notice: " + notice, self.cli("config", "check", "--config", "h.toml").out)
        self.assertEqual(self.ok("config", "check", "--config", "h.toml")["notices"], [notice])
        worker = Worker(self, "--config", "h.toml", "--agent", "payer")
        self.assertEqual(worker.heard("notice")["message"], notice)
        with subprocess.Popen([HOLDFAST, "chat", "--config", "h.toml", "--agent", "payer"], env=self.env, text=True,
                              cwd=self.folder, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as chat:
            chat.stdin.write("pay\n")
            chat.stdin.close()
            self.assertIn(f"holdfast: {notice}\n", iter(chat.stderr.readline, ""))
            chat.kill()

    def test_a_wait_that_ends_early_leaves_the_message(self):
        self.ok("session", "create", "s", "--agent", "no-worker-serves-it")
        late = self.cli("session", "send", "s", "hello", "--wait", "--timeout", "50ms", code=6)
        self.assertIn("stays in the session", late.err)
        self.assertEqual(len(self.ok("session", "inputs", "s")["items"]), 1)
        self.assertIn("has no turn", self.cli("session", "turn", "s", code=3).err)


if __name__ == "__main__":
    main()
