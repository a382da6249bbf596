#!/usr/bin/env python3
"""holdfast attention: each kind of finding by real means, seen, acted on by the very command that
was printed, and gone."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse

from harness import HOLDFAST, Case, Worker, main

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "agent"))
from servers import Server  # noqa: E402 pylint: disable=wrong-import-position

PG = os.environ["PG_SCRIPT"]
APPROVAL = os.environ["APPROVAL"]  # examples/approval.c
EFFECT_HOLDER = os.environ["EFFECT_HOLDER"]  # proc/effect_holder.c: its leases last 750 ms
TURN_WORKER = os.environ["TURN_WORKER"]  # soak/turn_worker.c: its leases last 1.5 s

# A tool that may not be called twice, and does not end.
PAYER = """
[provider.test]
kind = "openai-chat"
base_url = "http://127.0.0.1:{port}/v1"

[model.talk]
provider = "test"
context_tokens = 100_000
output_tokens = 1_000

[agent.payer]
model = "talk"
tools = ["pay"]

[tool.pay]
description = "Pays, and does not end."
command = ["sh", "-c", "echo paid >>paid; exec sleep 60"]
recovery = "ask"
folder = "."
pass_env = ["PATH"]
"""


class Attention(Case):
    def look(self, *args):
        done = self.run_raw("--json", "attention", *args)
        self.assertIn(done.returncode, (0, 10), done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(done.returncode, 10 if answer["items"] else 0)
        return answer["items"]

    def wait_for(self, what, *args):
        """The first finding of the kind, when it is there."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            found = [item for item in self.look(*args) if item["what"] == what]
            if found:
                return found[0]
        self.fail(f"no finding {what}: {self.look(*args)}")
        return None

    def until(self, what):
        end = time.monotonic() + 30
        while not what():
            self.assertLess(time.monotonic(), end)

    def monitor_until(self, what):
        self.until(lambda: self.cli("monitor", "--once") and what())

    def paste(self, item):
        """Runs the command as a shell reads it."""
        done = subprocess.run(["sh", "-c", item["command"]], env=self.env, cwd=self.folder,
                              capture_output=True, text=True, timeout=50, check=False)
        self.assertEqual(done.returncode, 0, f"{item['command']}: {done.stderr}")
        return done.stdout

    def kinds(self, *args):
        return [item["what"] for item in self.look(*args)]

    def status(self, work_id):
        return self.ok("work", "show", work_id)["work"]["status"]

    # ---- leases ------------------------------------------------------------------------------

    def test_nothing_needs_a_person(self):
        self.ok("job", "enqueue", "mail")
        self.assertEqual(self.kinds(), [])
        self.assertEqual(self.cli("attention").out, "nothing needs you\n")

    def test_a_stopped_holder_is_silent_until_it_is_given_up_and_seen(self):
        with subprocess.Popen(["sleep", "600"]) as holder:
            self.addCleanup(holder.kill)
            holder.send_signal(signal.SIGSTOP)
            self.create("deploy", "--disposition", "owner_bound")
            unit = self.claim("--ttl", "750ms", "--pid", str(holder.pid))["work_id"]
            item = self.wait_for("silent")
            self.assertEqual((item["id"], item["name"], item["severity"], item["subject"]),
                             (unit, "deploy", "now", "unit"))
            self.assertEqual(item["facts"]["missing_proof"], "process_alive")
            self.assertIn("its process is alive", item["detail"])
            self.paste(item)
            again = self.wait_for("silent")
            self.assertEqual(again["act"], {"op": "work.sweep", "in": {}})
            self.paste(again)
            self.assertEqual(self.status(unit), "abandoned")
            self.paste(self.wait_for("ended_badly"))
            self.assertEqual(self.kinds(), [])
            holder.kill()

    def test_a_lease_that_lapses_soon_is_told_until_it_is_renewed(self):
        unit, token = self.held("s1")
        self.ok("work", "hand-back", "--id", unit, "--token", token)
        token = self.claim("--ttl", "6s")["lease_token"]
        item = self.wait_for("lapsing")
        self.assertEqual(item["severity"], "soon")
        self.assertLess(item["facts"]["left_ms"], 2000)
        self.assertIn(unit, self.paste(item))
        self.ok("work", "renew", "--id", unit, "--token", token)
        self.assertEqual(self.kinds(), [])

    # ---- waits -------------------------------------------------------------------------------

    def waits(self, kind, source_id, *args, create=()):
        self.create(source_id, *create)
        held = self.claim()
        self.ok("work", "wait", "--id", held["work_id"], "--token", held["lease_token"],
                "--kind", kind, "--ref", source_id, *args)
        return held["work_id"]

    def test_a_question_is_told_at_once_and_answered(self):
        unit = self.waits("user", "deploy", "--reason", "may I 'deploy'?", "--timeout", "2h")
        [item] = self.look()
        self.assertEqual((item["what"], item["id"], item["name"]), ("question", unit, "deploy"))
        self.assertEqual(item["facts"]["asked"], "may I 'deploy'?")
        self.assertEqual(item["facts"]["asked_by"], "worker:tester")
        self.assertEqual(item["facts"]["then"], "timeout")
        self.assertGreater(item["until"], item["since"])
        self.paste(item)
        self.assertEqual(self.ok("work", "show", unit)["work"]["resume_payload"], "yes")
        self.assertEqual(self.kinds(), [])

    def approval(self, *args):
        subprocess.run([APPROVAL, self.db, *args], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=60)

    def test_an_approval_of_a_turn_is_told_at_once_and_given(self):
        self.approval("send", "250")
        self.approval("work", "250")
        [item] = self.look()
        self.assertEqual((item["what"], item["subject"], item["kind"]), ("question", "wait", "approval"))
        self.assertEqual(item["facts"]["asked"], "May this be paid?")
        self.assertEqual(item["facts"]["call"]["arguments"], {"amount": 250})
        self.assertEqual(item["facts"]["session_id"], "payments")
        self.assertRegex(item["detail"], r'^"May this be paid\?" \{.*"amount":250.*\} asked by agent:\w+ .* ago, denied in ')
        self.assertEqual(item["command"], f"holdfast approve {item['id']}")
        self.assertIn(item["id"][-8:], self.cli("attention", code=10).out)
        self.paste(item)
        self.assertEqual(self.kinds(), [])
        wait = self.ok("wait", "show", item["id"])["wait"]
        self.assertEqual(wait["state"], "resolved")

    def test_a_question_with_choices_is_answered_with_one_of_them(self):
        self.ok("job", "enqueue", "mail")  # the store is there
        with subprocess.Popen([HOLDFAST, "ask", "Deploy?", "--choices", "ship,hold"], env=self.env, cwd=self.folder,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as ask:
            self.addCleanup(ask.kill)
            item = self.wait_for("question")
            self.assertEqual((item["facts"]["asked"], item["facts"]["choices"]), ("Deploy?", ["ship", "hold"]))
            self.assertEqual(item["command"], f"holdfast answer {item['id']} ship")
            self.paste(item)
            self.assertEqual(ask.communicate(timeout=30)[0], "ship\n")
        self.assertEqual(self.kinds(), [])

    def test_a_question_of_work_that_is_bound_to_its_owner_is_answered_in_its_name(self):
        unit = self.waits("user", "bound", create=("--disposition", "owner_bound"))
        [item] = self.look()
        self.assertEqual(item["facts"]["then"], "overdue")
        self.paste(item)
        self.assertEqual(self.status(unit), "running")

    def rule(self, rule, *options):
        """A run whose close rule it cannot meet, and the finding."""
        self.ok("policy", "set", "default", "--close-rule", rule)
        self.cli("run", *options, "--", "sh", "-c", "echo x >> ran", code=125)
        item = self.wait_for("question")
        with open(self.path("ran"), encoding="ascii") as ran:
            self.assertEqual(ran.read(), "x\n")
        os.remove(self.path("ran"))
        return item

    def test_a_unit_that_waits_for_its_close_rule_is_ended_by_what_is_pasted(self):
        for options in ((), ("--disposition", "rerunnable")):
            item = self.rule("reviewer", *options)
            self.assertEqual(item["command"], f"holdfast work close-out {item['id']} --authority "
                                              "tester --status done --reviewer tester")
            self.paste(item)
            work = self.ok("work", "show", item["id"])["work"]
            self.assertEqual((work["status"], work["result"]), ("done", {"reviewer": "tester"}))
            item = self.rule("evidence", *options)
            with self.assertRaises(AssertionError):
                self.paste(item)  # the hash is for a person to fill in
            item["command"] = item["command"].replace("HASH", 64 * "a")
            self.paste(item)
            self.assertEqual(self.status(item["id"]), "done")
            self.assertEqual(self.kinds(), [])
            self.cli("run", "--worker", "--until-idle")
            self.assertFalse(os.path.exists(self.path("ran")))

    def test_an_overdue_wait_of_work_that_is_bound_is_ended_in_the_name_of_its_owner(self):
        unit = self.waits("external", "ci", "--timeout", "100ms", create=("--disposition", "owner_bound"))
        self.monitor_until(lambda: self.ok("work", "show", unit)["work"]["status_reason"] == "wait_overdue")
        [item] = self.look()
        self.assertEqual((item["what"], item["id"], item["severity"], item["facts"]["state"]),
                         ("wait", unit, "now", "overdue"))
        self.paste(item)
        self.assertEqual(self.status(unit), "running")
        self.assertEqual(self.kinds(), [])

    def test_another_wait_is_told_past_half_of_its_time(self):
        unit = self.waits("external", "ci", "--timeout", "1h")
        self.assertEqual(self.kinds(), [])
        self.ok("work", "resume", "--ref", "ci")
        held = self.claim()
        self.ok("work", "wait", "--id", unit, "--token", held["lease_token"], "--kind", "external",
                "--ref", "ci", "--timeout", "1s")
        item = self.wait_for("wait")
        self.assertEqual(item["id"], unit)
        self.paste(item)
        self.assertEqual(self.kinds(), [])

    # ---- ends --------------------------------------------------------------------------------

    def test_a_command_that_fails_is_told_until_it_is_acknowledged(self):
        self.cli("run", "--quiet", "--", "false", code=1)
        [item] = self.look()
        self.assertEqual((item["what"], item["facts"]["status"], item["kind"]),
                         ("ended_badly", "failed", "run"))
        self.paste(item)
        self.assertEqual(self.kinds(), [])
        trail = self.ok("work", "events", item["id"])["items"]
        [seen] = [event for event in trail if event["event_type"] == "work_acknowledged"]
        self.assertEqual((seen["actor_kind"], seen["actor"]), ("human", "tester"))
        self.ok("work", "requeue", item["id"], "--reason", "once more")
        self.assertEqual(self.kinds(), [])

    def test_what_does_not_fit_is_counted_and_listed(self):
        for number in range(5):
            unit, token = self.held(f"s{number}", "--kind", "mail", "--max-attempts", "1")
            self.ok("work", "fail", "--id", unit, "--token", token, "--class", "net")
        answer = self.cli("--json", "attention", "--limit", "2", code=10).json
        self.assertEqual(len(answer["items"]), 2)
        [more] = answer["more"]
        self.assertEqual((more["what"], more["kind"], more["error_class"], more["count"]),
                         ("ended_badly", "mail", "net", 3))
        self.assertEqual(self.paste(more).count("mail"), 5)
        self.ok("attention", "ack", answer["items"][0]["id"])
        self.assertEqual(self.paste(more).count("mail"), 4)
        self.assertIn("and 2 more of kind mail, net", self.cli("attention", "--limit", "2", code=10).out)
        self.assertEqual(self.ok("attention", "ack", "--kind", "mail")["acknowledged"], 4)
        self.assertEqual(self.kinds(), [])

    def test_bad_acknowledgements_say_what_is_wrong(self):
        unit = self.create("s1")["work_id"]
        for args in ([], ["--all", "--kind", "k"], [unit, "--all"]):
            self.assertIn("and only one", self.refused(2, "invalid_argument", "attention", "ack", *args))
        self.assertIn(unit, self.refused(4, "illegal_transition", "attention", "ack", unit))
        self.refused(3, "not_found", "attention", "ack", "ffffffff")

    # ---- workers and schedules -------------------------------------------------------------------

    def crash(self, work_id):
        """A worker that takes the unit and is killed."""
        with subprocess.Popen(["sleep", "600"]) as worker:
            self.ok("work", "claim", "--id", work_id, "--owner", "w", "--pid", str(worker.pid))
            worker.kill()
            worker.wait()
        self.ok("work", "sweep")

    def test_a_unit_that_kills_its_workers_is_held_until_it_is_released(self):
        job = self.ok("job", "enqueue", "bad", "--max-attempts", "100")["work"]["work_id"]
        for _ in range(5):
            self.crash(job)
        [item] = self.look()
        self.assertEqual((item["what"], item["id"], item["kind"]), ("held", job, "bad"))
        self.paste(item)
        self.assertIsNone(self.ok("work", "show", job)["work"]["gate"])
        self.assertEqual(self.kinds(), [])

    def test_a_queue_without_a_worker_is_told_until_a_worker_claims(self):
        self.create("s1", "--queue", "o'q", "--kind", "report")
        self.create("s2", "--queue", "o'q", "--kind", "report")
        self.assertEqual(self.kinds(), [])
        item = self.wait_for("unserved", "--unserved", "1ms")
        self.assertEqual((item["id"], item["kind"], item["facts"]["units"]), ("o'q", "report", 2))
        self.assertEqual(self.paste(item).count("report"), 2)
        self.claim("--queue", "o'q")
        self.assertEqual(self.kinds("--unserved", "1ms"), [])

    def test_sessions_without_a_worker_are_told_until_one_is_there(self):
        self.file("talker.toml", PAYER.format(port=self.model().port))
        self.ok("--tenant", "o'b", "session", "create", "s1", "--agent", "payer")
        self.ok("--tenant", "o'b", "session", "send", "s1", "hello")
        self.assertEqual(self.kinds(), [])
        item = self.wait_for("unserved", "--unserved", "1ms")
        self.assertEqual((item["subject"], item["id"], item["tenant"], item["facts"]),
                         ("agent", "payer", "o'b", {"sessions": 1}))
        self.assertIn("s1", self.paste(item))
        worker = Worker(self, "--config", "talker.toml")
        worker.heard("turn_ended")
        self.assertEqual(self.kinds("--unserved", "1ms"), [])

    def test_what_does_not_fit_is_in_the_list_that_is_printed(self):
        for number in range(3):
            self.create(f"s{number}", "--queue", f"q{number}", "--kind", "k")
        answer = self.cli("--json", "attention", "--unserved", "1ms", "--limit", "1", code=10).json
        more, = answer["more"]
        self.assertEqual((more["what"], more["count"], more["command"]), ("unserved", 2, "holdfast queue list"))
        self.assertIn("q2", self.paste(more))

    def test_two_workers_of_one_name_are_told(self):
        one = self.create("s1")["work_id"]
        two = self.create("s2")["work_id"]
        first = self.claim("--id", one, "--incarnation", "a", "--ttl", "1h")
        self.claim("--id", two, "--incarnation", "b", "--ttl", "1h")
        self.assertEqual(self.kinds(), [])  # the first may be gone
        self.ok("work", "renew", "--id", one, "--token", first["lease_token"])
        item = self.wait_for("twins")
        self.assertEqual((item["id"], item["facts"]["incarnations"]), ("w1", 2))
        self.paste(item)
        self.ok("work", "close-out", "--id", one, "--token", first["lease_token"], "--status", "done")
        self.assertEqual(self.kinds(), [])

    def test_a_limit_whose_holders_are_silent_is_told(self):
        self.ok("limit", "set", "kind:slow", "--max", "1")
        self.create("s1", "--kind", "slow", "--disposition", "owner_bound")
        self.create("s2", "--kind", "slow")
        unit = self.claim("--ttl", "750ms")["work_id"]
        item = self.wait_for("limit_stuck")
        self.assertEqual((item["id"], item["facts"]), ("kind:slow", {"max_running": 1, "waiting": 1}))
        self.create("s3", "--disposition", "owner_bound")
        other = self.claim("--ttl", "1h")["work_id"]
        self.assertEqual(item["command"], "holdfast work list --silent --limit-name kind:slow")
        self.assertIn(unit[-8:], self.paste(item))
        self.assertNotIn(other[-8:], self.paste(item))
        self.paste(self.wait_for("silent"))
        self.paste(self.wait_for("silent"))
        self.ok("attention", "ack", "--all")
        self.assertEqual(self.kinds(), [])

    def test_a_schedule_that_no_monitor_makes_is_late(self):
        self.ok("schedule", "add", "backup", "--every", "1s", "--kind", "k", "--miss-threshold", "1ms")
        item = self.wait_for("schedule_late")
        self.assertEqual((item["subject"], item["id"]), ("schedule", "backup"))
        self.paste(item)
        self.ok("schedule", "pause", "backup")
        self.assertEqual(self.kinds(), [])

    def failing_schedule(self, tenant, name):
        """A schedule whose slot cannot be made: it would end work that is bound to its owner."""
        of = ("--tenant", tenant, "schedule")
        self.ok(*of, "add", name, "--every", "1s", "--kind", "k", "--disposition", "owner_bound")
        self.monitor_until(lambda: self.ok(*of, "show", name)["schedule"]["made"])
        unit = self.ok("--tenant", tenant, "work", "claim", "--owner", "w1", "--ttl", "1h")["items"][0]["work_id"]
        self.ok(*of, "update", name, "--overlap", "replace", "--disposition", "rerunnable")
        self.monitor_until(lambda: self.ok(*of, "show", name)["schedule"]["failures"])
        return unit

    def test_a_schedule_of_any_tenant_that_fails_is_named_as_a_shell_reads_it(self):
        names = {"": "it's; 'x'", "o'b": "n"}
        units = [self.failing_schedule(tenant, name) for tenant, name in names.items()]
        items = [item for item in self.look() if item["what"] == "schedule_failing"]
        self.assertEqual([(item["tenant"], item["id"], item["severity"]) for item in items],
                         [("", "it's; 'x'", "now"), ("o'b", "n", "now")])
        for item, unit in zip(items, units):
            why = f"unit {unit} is owner_bound and cannot be replaced at once"
            self.assertTrue(item["detail"].startswith(f"fails: {why}: "), item)
            self.assertIn(why, self.paste(item))
        for tenant, name in names.items():
            self.ok("--tenant", tenant, "schedule", "update", name, "--overlap", "skip")
        self.assertNotIn("schedule_failing", self.kinds())

    # ---- sessions ------------------------------------------------------------------------------

    def model(self):
        server = Server(self.path("journal"))
        self.addCleanup(server.stop)
        return server

    def until_written(self, name):
        """Another process has written the file."""
        self.until(lambda: os.path.exists(self.path(name)) and os.path.getsize(self.path(name)))

    def pays(self):
        """A worker of the payer, killed with -9 after the payment and before its outcome was stored."""
        self.file("payer.toml", PAYER.format(port=self.model().port))
        worker = Worker(self, "--config", "payer.toml")
        worker.heard("serving")
        self.ok("session", "create", "s1", "--agent", "payer")
        self.ok("session", "send", "s1", "use pay {}")
        self.until_written("paid")
        worker.kill()

    def test_whether_a_call_happened_is_asked_and_answered(self):
        self.pays()
        worker = Worker(self, "--config", "payer.toml")
        item = self.wait_for("question")
        self.assertEqual((item["subject"], item["facts"]["session_id"]), ("wait", "s1"))
        self.assertTrue(item["facts"]["asked"].startswith("Did pay happen? It is not known: "), item)
        self.paste(item)
        worker.heard("turn_ended")
        self.assertEqual(self.kinds(), [])
        with open(self.path("paid"), encoding="utf-8") as paid:
            self.assertEqual(paid.read(), "paid\n")

    def test_an_effect_that_is_unknown_is_told_until_the_session_goes_on(self):
        self.pays()
        self.ok("session", "cancel-turn", "s1", "--reason", "enough")
        worker = Worker(self, "--config", "payer.toml")
        worker.heard("turn_ended")
        [item] = self.look()
        self.assertEqual((item["what"], item["subject"], item["kind"], item["severity"]),
                         ("unknown_effect", "effect", "tool_call", "now"))
        reason = "an earlier worker started the call; whether it happened is not known"
        self.assertRegex(item["facts"].pop("key"), r"^2/\w+/1$")
        self.assertEqual(item["facts"], {"session_id": "s1", "recovery": "ask", "reason": reason,
                                         "tool": "pay", "arguments": {}})
        self.assertRegex(item["detail"], r"^\S+ of session s1, begun \S+ ago: pay {}; " + reason +
                         r"; did it happen\?$")
        self.assertEqual(item["command"], f"holdfast session turn s1 {item['id']}")
        self.assertRegex(self.paste(item), r"pay .*unknown")
        self.ok("session", "send", "s1", "hello")
        worker.heard("turn_ended")
        self.assertEqual(self.kinds(), [])
        with open(self.path("paid"), encoding="utf-8") as paid:
            self.assertEqual(paid.read(), "paid\n")

    # ---- effects outside a turn ----------------------------------------------------------------

    def begin_effect(self, *args, said=""):
        """What a host is told that begins the effect."""
        done = subprocess.run([EFFECT_HOLDER, self.db, *args], env=self.env, cwd=self.folder, input=said,
                              capture_output=True, text=True, timeout=50, check=True)
        return done.stdout

    def test_an_effect_of_a_process_that_died_is_told_until_a_person_resolves_it(self):
        command = f'exec "{EFFECT_HOLDER}" "{self.db}" process "$HOLDFAST_WORK_ID" pay/17 keyed >begun <&3'
        os.mkfifo(self.path("hold"))
        unit = self.ok("process", "start", "--disposition", "owner_bound", "--name", "biller", "--", "sh", "-c",
                       f"echo $$ >pid; exec 3<>hold; {command}")["work"]["work_id"]
        self.until_written("begun")
        self.assertEqual(self.kinds(), [])
        with open(self.path("pid"), encoding="utf-8") as pid:
            os.kill(int(pid.read()), signal.SIGKILL)
        item = self.wait_for("unknown_effect")
        self.assertEqual((item["subject"], item["id"], item["kind"], item["severity"]),
                         ("effect", unit + "/pay/17", "pay", "now"))
        self.assertRegex(item["detail"], rf"^pay/17 of process {unit}, begun \S+ ago by billing: did it happen\?$")
        self.assertEqual({key: item["facts"][key] for key in ("status", "recovery", "envelope")},
                         {"status": "started", "recovery": "keyed", "envelope": {"cents": 1200}})
        self.assertIn("resolved process", self.paste(item))
        self.assertNotIn("unknown_effect", self.kinds())
        self.paste(self.wait_for("ended_badly"))
        self.assertEqual(self.kinds(), [])
        self.assertEqual(self.begin_effect("process", unit, "pay/17", "keyed"),
                         'replay unknown {"reason":"it cannot be found out"}\n')

    def test_an_effect_that_its_host_calls_unknown_is_told_until_a_person_says_what_became_of_it(self):
        effect = ("operation", "june's bills", "17")
        self.assertEqual(self.begin_effect(*effect, "ask", said="unknown\n"), "absent -\n")
        [item] = self.look()
        self.assertEqual((item["what"], item["id"]), ("unknown_effect", "june's bills/17"))
        self.assertEqual(item["facts"]["outcome"], {"sent": True, "answered": False})
        shown, = self.ok("effect", "list")["items"]
        self.assertEqual((shown["scope"], shown["scope_id"], shown["key"], shown["status"], shown["actor"]),
                         (*effect, "unknown", None))
        self.assertIn("june's bills", self.cli("effect", "list").out)
        done = self.ok("--actor", "human:anna", "effect", "resolve", *effect, "--status", "done", "--outcome",
                       '{"paid":true}')["effect"]
        self.assertEqual((done["status"], done["outcome"], done["known"], done["actor_kind"], done["actor"]),
                         ("done", {"paid": True}, {"sent": True, "answered": False}, "human", "anna"))
        self.assertEqual(self.kinds(), [])
        self.assertEqual(self.cli("effect", "list").out, "the outcome of each effect is known\n")
        self.assertEqual(self.begin_effect(*effect, "ask"), 'replay done {"paid":true}\n')
        said = self.refused(7, "conflict", "effect", "resolve", *effect, "--status", "failed", "--reason", "no")
        self.assertIn("resolved as done by anna", said)

    def test_effects_that_are_not_shown_are_counted(self):
        for key in "abc":
            self.begin_effect("operation", "bills", key, "ask", said="unknown\n")
        done = self.run_raw("--json", "attention", "--limit", "2")
        more, = json.loads(done.stdout)["more"]
        self.assertEqual((more["what"], more["at_least"], more["command"]),
                         ("unknown_effect", True, "holdfast effect list"))
        items = self.look()
        self.assertEqual([item["facts"]["key"] for item in items], ["a", "b", "c"])
        for item in items:
            self.paste(item)
        self.assertEqual(self.kinds(), [])

    def test_a_session_of_a_stopped_worker_is_silent_until_it_goes_on(self):
        port = str(self.model().port)
        command = [TURN_WORKER, self.db, port, self.path("calls")]
        subprocess.run([*command, "send", "1", "1"], env=self.env, check=True, timeout=60)
        with subprocess.Popen([*command, "work"], env=self.env, stdout=subprocess.DEVNULL) as worker:
            self.addCleanup(worker.kill)
            self.until_written("calls")
            worker.send_signal(signal.SIGSTOP)
            item = self.wait_for("silent")
            self.assertEqual((item["subject"], item["id"], item["severity"]), ("session", "s0", "now"))
            self.assertEqual(item["facts"]["ttl_ms"], 1500)
            self.assertIn("s0", self.paste(item))
            worker.send_signal(signal.SIGCONT)
            self.until(lambda: not self.ok("work", "list")["items"])
            self.assertEqual(self.kinds(), [])
            worker.terminate()
            self.assertEqual(worker.wait(timeout=30), 0)

    def test_a_disk_that_is_nearly_full_is_told(self):
        folder = self.path("small")
        os.mkdir(folder)
        script = (f"mount -t tmpfs -o size=32m none {folder} && export HOLDFAST_DB={folder}/work.db && "
                  "holdfast job enqueue mail --quiet && holdfast --json attention; "
                  f"mount -o remount,size=300m {folder} && holdfast --json attention; "
                  f"code=$?; umount {folder}; exit $code")
        done = None
        # In a root folder that is no mount point (chroot) the propagation cannot be changed.
        for flags in (["-m", "--propagation", "unchanged"], ["-rm"]):
            done = subprocess.run(["unshare", *flags, "sh", "-c", script], env=self.env,
                                  capture_output=True, text=True, check=False)
            if done.returncode == 0:
                break
        self.assertEqual(done.returncode, 0, done.stderr)
        full, large = [json.loads(line)["items"] for line in done.stdout.splitlines()]
        [item] = full
        self.assertEqual((item["what"], item["subject"], item["id"]), ("store", "store", "disk"))
        self.assertRegex(item["detail"], r"^\d+ MB are left.*free disk space")
        self.assertEqual(item["command"], "holdfast doctor")
        self.assertEqual(large, [])

    # ---- one store of many -----------------------------------------------------------------------

    def test_a_printed_command_names_the_store_that_was_named(self):
        other = self.path("it's another.db")
        self.run_raw("--db", other, "run", "--quiet", "--", "false")
        done = self.run_raw("--json", "--db", other, "attention")
        self.paste(json.loads(done.stdout)["items"][0])
        self.assertEqual(self.run_raw("--db", other, "attention").returncode, 0)

    def test_findings_are_of_the_tenant_that_asks(self):
        unit = self.ok("--tenant", "t1", "work", "create", "--source", "manual", "--source-id",
                       "s1")["work"]["work_id"]
        held = self.claim("--id", unit)
        self.ok("work", "close-out", "--id", unit, "--token", held["lease_token"], "--status", "failed")
        self.assertEqual(self.run_raw("--tenant", "t2", "attention").returncode, 0)
        self.assertEqual(self.run_raw("--tenant", "t1", "attention").returncode, 10)

    # ---- watch and exec ----------------------------------------------------------------------------

    def watch(self, *args):
        watch = subprocess.Popen([HOLDFAST, "attention", "--watch", "--interval", "100ms", *args],
                                 env=self.env, cwd=self.folder, text=True, bufsize=1,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: (watch.kill(), watch.communicate()))
        return watch

    def end(self, watch):
        watch.send_signal(signal.SIGTERM)
        out, err = watch.communicate(timeout=30)
        self.assertEqual(watch.returncode, 0, err)
        return out, err

    def test_a_watch_prints_what_is_new_and_what_is_gone(self):
        self.create("s1")
        watch = self.watch("--json")
        unit = self.waits("user", "ask")
        new = json.loads(watch.stdout.readline())
        self.assertEqual((new["change"], new["item"]["what"], new["item"]["id"]), ("new", "question", unit))
        self.ok("work", "resume", unit, "--payload", "1")
        gone = json.loads(watch.stdout.readline())
        self.assertEqual((gone["change"], gone["item"]["id"]), ("gone", unit))
        self.assertEqual(self.end(watch), ("", ""))

    def pager(self, body):
        path = self.file("page.sh", f"#!/bin/sh\n{body}\n")
        os.chmod(path, 0o755)
        return path

    def told(self):
        try:
            with open(self.path("told"), encoding="utf-8") as lines:
                return [json.loads(line)["id"] for line in lines]
        except FileNotFoundError:
            return []

    def test_a_pager_gets_each_finding_once(self):
        self.ok("job", "enqueue", "mail")
        watch = self.watch("--exec", self.pager("cat >> told"))
        units = []
        for name in ("a", "b"):
            units.append(self.waits("user", name))
            end = time.monotonic() + 30
            while len(self.told()) < len(units) and time.monotonic() < end:
                pass
        out, err = self.end(watch)
        self.assertEqual(self.told(), units)
        self.assertEqual(out.count("new "), 2)
        self.assertEqual(err, "")

    def test_a_pager_outlives_a_file_that_goes_away_and_comes_back(self):
        first = self.waits("user", "a")
        watch = self.watch("--exec", self.pager("cat >> told"))
        self.until(lambda: len(self.told()) == 1)
        os.mkdir(self.path("away"))
        names = [name for name in os.listdir(self.folder) if name.startswith("work.db")]
        for name in names:
            os.rename(self.path(name), self.path("away/" + name))
        self.assertIn("the pass is repeated", watch.stderr.readline())
        for name in names:
            os.rename(self.path("away/" + name), self.path(name))
        self.assertEqual(watch.stderr.readline(), "holdfast: the store can be read again\n")
        second = self.waits("user", "b")
        self.until(lambda: len(self.told()) == 2)
        self.assertEqual(self.end(watch)[1], "")
        self.assertEqual(self.told(), [first, second])

    def test_a_pager_that_hangs_is_ended_and_that_is_said(self):
        self.waits("user", "a")
        done = self.run_raw("attention", "--exec", self.pager("exec sleep 600"), "--exec-timeout", "300ms")
        self.assertEqual(done.returncode, 10)
        self.assertIn(b"ended after 300ms", done.stderr)

    def test_bad_watches_say_what_is_wrong(self):
        for args, what in ((["--exec", "no-such-program"], "no command"),
                           (["--interval", "1s"], "--watch"),
                           (["--exec-timeout", "1s"], "--exec"),
                           (["--watch", "--interval", "1ms"], "100")):
            self.assertIn(what, self.refused(2, "invalid_argument", "attention", *args))


class OfAServer(Attention):
    """The same on PostgreSQL for what is about the server; cases of the file are not repeated."""

    @classmethod
    def setUpClass(cls):
        base = tempfile.TemporaryDirectory(prefix="hf-attention-")
        cls.addClassCleanup(base.cleanup)
        os.chmod(base.name, 0o755)
        cls.server = os.path.join(base.name, "pg")
        cls.url = cls.ask("up")
        cls.addClassCleanup(cls.ask, "down")

    @classmethod
    def ask(cls, verb):
        return subprocess.run([PG, verb, cls.server], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.strip()

    def setUp(self):
        super().setUp()
        self.env["HOLDFAST_DB"] = self.url

    def test_an_open_transaction_that_holds_the_feed_back_is_told(self):
        self.ok("job", "enqueue", "mail", "--delay", "1h")
        holder = subprocess.Popen(["psql", self.url, "-qAt"], stdin=subprocess.PIPE, text=True,
                                  stdout=subprocess.PIPE)
        self.addCleanup(holder.communicate)
        holder.stdin.write("BEGIN; SELECT txid_current() > 0;\n")
        holder.stdin.flush()
        holder.stdout.readline()
        self.ok("job", "enqueue", "mail", "--delay", "1h")
        item = self.wait_for("store")
        self.assertEqual(item["id"], "feed")
        self.assertIn("keeps events back", item["detail"])
        self.paste(item)
        holder.communicate()
        self.assertEqual(self.kinds(), [])

    def test_wake_ups_that_do_not_travel_are_told_until_they_have_a_way(self):
        self.ok("job", "enqueue", "mail", "--delay", "1h")
        pooled = self.ask("pooler")
        self.env["HOLDFAST_DB"] = pooled
        item = self.wait_for("store")
        self.assertEqual(item["id"], "bell")
        self.assertIn("listen_url=", item["detail"])
        self.assertIn("listen_url=", self.paste(item))
        self.env["HOLDFAST_DB"] = f"{pooled}&listen_url={urllib.parse.quote(self.url, safe='')}"
        self.assertEqual(self.kinds(), [])

    def test_a_guard_that_is_switched_off_is_told(self):
        self.ok("job", "enqueue", "mail", "--delay", "1h")
        table = "ALTER TABLE holdfast.work_event {} TRIGGER work_event_frozen"
        subprocess.run(["psql", self.url, "-qc", table.format("DISABLE")], check=True)
        try:
            item = self.wait_for("store")
            self.assertEqual(item["id"], "guards")
        finally:
            subprocess.run(["psql", self.url, "-qc", table.format("ENABLE")], check=True)
        self.assertEqual(self.kinds(), [])

    def test_a_pager_tells_each_finding_once_while_the_server_comes_and_goes(self):
        watch = self.watch("--exec", self.pager("cat >> told"))
        unit = self.waits("user", "ask")
        end = time.monotonic() + 30
        while not self.told() and time.monotonic() < end:
            pass
        self.ask("crash")
        self.assertIn("the pass is repeated", watch.stderr.readline())
        self.ask("start")
        other = self.waits("user", "another")
        while len(self.told()) < 2 and time.monotonic() < end + 30:
            pass
        self.end(watch)
        self.assertEqual(self.told(), [unit, other])
        for one in (unit, other):
            self.ok("work", "cancel", one, "--reason", "enough")


# Only the server's own cases are run there.
for name in list(vars(Attention)):
    if name.startswith("test_") and name not in vars(OfAServer):
        setattr(OfAServer, name, None)

if __name__ == "__main__":
    main()
