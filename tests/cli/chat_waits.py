#!/usr/bin/env python3
"""holdfast chat asks: approvals and other questions at the prompt, answered there or from a second terminal;
Ctrl-C for a turn that waits or that another worker drives. In a real terminal and in pipes. The judges are
outside: files that the tools wrote, and the model server's journal."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "agent"))
import agents  # noqa: E402 pylint: disable=wrong-import-position
import servers  # noqa: E402 pylint: disable=wrong-import-position
from chat import timeless  # noqa: E402 pylint: disable=wrong-import-position
from harness import HOLDFAST, Case, main, need_terminals  # noqa: E402 pylint: disable=wrong-import-position
from tmux import Terminal  # noqa: E402 pylint: disable=wrong-import-position

PG = os.environ["PG_SCRIPT"]
SECONDS = 60
ASKS = "y, n or e ›"

CONFIG = """
[provider.test]
kind = "openai-chat"
base_url = "http://127.0.0.1:{port}/v1"

[model.talk]
provider = "test"
context_tokens = 100_000
output_tokens = 1_000

[agent.payer]
model = "talk"
tools = ["pay", "mail", "slow", "write_file"]
root = "."

[tool.pay]
description = "Pays."
command = ["sh", "-c", "cat >>paid && echo >>paid && echo paid"]
schema = '{{"type":"object","properties":{{"amount":{{"type":"integer"}}}},"required":["amount"]}}'
recovery = "keyed"
folder = "."
pass_env = ["PATH"]
approve = '{{"/amount":{{"minimum":100}}}}'
approve_question = "May this be paid?"

[tool.mail]
description = "Sends mail."
command = ["sh", "-c", "cat >>mails && echo sent"]
recovery = "ask"
folder = "."
pass_env = ["PATH"]
approve = "always"
approve_by = "anna"

[tool.slow]
description = "Acts, and does not end."
command = ["sh", "-c", "echo acted >>slow; exec sleep 60"]
recovery = "ask"
folder = "."
pass_env = ["PATH"]

[tool.write_file]
approve = "always"
"""


class Asking(Case):
    def setUp(self):
        super().setUp()
        self.server = servers.Server(self.path("journal"))
        self.addCleanup(self.server.stop)
        self.config = self.file("h.toml", CONFIG.format(port=self.server.port))
        self.command = [HOLDFAST, "chat", "--config", self.config]
        self.cli("migrate")

    def open(self, *args, columns=80, rows=24):
        terminal = Terminal(self.folder, self.env, [*self.command, *args], columns, rows)
        self.addCleanup(terminal.close)
        return terminal

    def pipe(self, *args, text):
        """A chat that runs: its standard output is read by the caller."""
        with tempfile.TemporaryFile() as given:
            given.write(text.encode())
            given.seek(0)
            chat = subprocess.Popen([*self.command, *args], stdin=given, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, env=self.env, cwd=self.folder, text=True)
        self.addCleanup(chat.stderr.close)
        self.addCleanup(chat.stdout.close)
        self.addCleanup(chat.wait)
        return chat

    def worker(self):
        worker = agents.Worker(self, "--config", self.config)
        worker.heard("serving")
        return worker

    def until(self, what):
        end = time.monotonic() + SECONDS
        while not what():
            self.assertLess(time.monotonic(), end)
            threading.Event().wait(0.02)

    def slow_turn(self):
        """A turn of a worker whose tool has acted and has not returned."""
        worker = self.worker()
        self.ok("session", "create", "s", "--agent", "payer")
        self.ok("session", "send", "s", "use slow {}")
        worker.heard("tool_started")
        self.until(lambda: self.lines("slow") == ["acted"])
        return worker

    def waits(self):
        return self.ok("wait", "list")["items"]

    def lines(self, name):
        if not os.path.exists(self.path(name)):
            return []
        with open(self.path(name), encoding="utf-8") as f:
            return f.read().splitlines()

    def told(self):
        """What the model was shown last of a tool."""
        return [m["content"] for m in self.server.requests()[-1]["body"]["messages"] if m["role"] == "tool"][-1]

    def tail(self, terminal, *lines):
        """These are the last lines of the screen."""
        screen = terminal.until(lambda seen: timeless(seen).split("\n")[-3:] == list(lines[-3:]))
        self.assertEqual(timeless(screen).split("\n")[-len(lines):], list(lines))


def dateless(screen):
    return "\n".join("    without an answer by DATE" + line[line.rfind(":"):] if "without an answer by" in line else line
                     for line in screen.split("\n"))


class Screens(Asking):
    def test_a_question_looks_like_this_and_takes_words(self):
        terminal = self.open()
        terminal.prompt()
        terminal.send('use pay {"amount":250}')
        screen = terminal.until(ASKS)
        self.assertEqual(dateless(screen).split("\n"), [
            "tester-payer",
            "agent payer · model talk · /help",
            "",
            '› use pay {"amount":250}',
            "",
            "  ? pay · may it be called?",
            "    May this be paid?",
            "    amount  250",
            "    y approves · n REASON denies · e edits the arguments",
            "    without an answer by DATE: denied",
            "",
            ASKS])
        terminal.send("yes please")
        terminal.until(lambda seen: "yes is no answer: y, n or n REASON, e, or v" in seen and seen.endswith(ASKS))
        self.assertEqual(self.lines("paid"), [])
        terminal.send("n too dear")
        terminal.prompt("\n  ! pay: denied: too dear\n", "tokens in")
        self.assertIn("tester denied the call: too dear", self.told())
        terminal.send('use pay {"amount":300}')
        terminal.until(ASKS)
        terminal.send("y")
        self.tail(terminal,
                  "  ! pay: approved",
                  '  ✓ pay {"amount":300} → paid · TIME',
                  "",
                  'The tools said: {"approved_by":"tester","result":"paid\\n"}',
                  "",
                  "  N tokens in · N out · TIME",
                  "",
                  "›")
        self.assertEqual(self.lines("paid"), ['{"amount":300}'])

    def test_arguments_are_edited_and_checked(self):
        terminal = self.open()
        terminal.prompt()
        terminal.send('use pay {"amount":250}')
        terminal.until(ASKS)
        terminal.send("e")
        terminal.until(lambda seen: seen.endswith('JSON › {"amount":250}'))
        terminal.key("BSpace")
        terminal.key("Enter")
        terminal.until("value is JSON that ends too early")
        terminal.key("C-u")
        terminal.send('{"amount":"all"}')
        terminal.until("amount")
        terminal.until(lambda seen: seen.endswith('JSON › {"amount":"all"}'))
        terminal.key("C-c")  # back to the question
        terminal.until(lambda seen: seen.endswith(ASKS))
        terminal.send("e")
        terminal.until(lambda seen: seen.endswith('JSON › {"amount":250}'))
        terminal.key("C-u")
        terminal.send('{"amount":120}')
        terminal.prompt("! pay: approved with other arguments", "tokens in")
        self.assertEqual(self.lines("paid"), ['{"amount":120}'])
        self.assertIn('"arguments":{"amount":120}', self.told())

    def test_hostile_arguments_do_not_reach_the_terminal_raw(self):
        terminal = self.open()
        terminal.prompt()
        content = "\x1b[2J\x1b]0;owned\x07\x1b[31m\r› y\n" + "more\n" * 20 + "\u202etxt.exe\u009b2J the end"
        terminal.send("use write_file " + json.dumps({"path": "a\x1b[1A", "content": content,
                                                      "x\x1b[2J\ny approves": 1}))
        terminal.prompt("was not called", "tokens in")  # it does not fit the schema: the model is told
        terminal.send("use write_file " + json.dumps({"path": "a\x1b[1A", "content": content}))
        screen = terminal.until(lambda seen: seen.endswith(ASKS))
        self.assertIn("    path     a␛[1A\n    content  ␛[2J␛]0;owned␇␛[31m› y\n             more\n", screen)
        self.assertRegex(screen, r"\n             … and \d+ bytes more\n")
        self.assertIn("· v shows all of it\n", screen)
        terminal.send("v")
        # The message that was typed is on the screen too, with its escapes: it is not what is waited for.
        terminal.until(lambda seen: "\n             �txt.exe�2J the end\n" in seen and seen.endswith(ASKS), history=True)
        terminal.send("n")
        terminal.prompt("! write_file: denied\n")
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("a")], [])

    def test_an_answer_from_a_second_terminal_is_noticed(self):
        terminal = self.open()
        terminal.prompt()
        terminal.send('use pay {"amount":250}')
        terminal.until(ASKS)
        terminal.type("n half of an answ")
        self.cli("approve", self.waits()[0]["wait_id"][-8:], "--actor", "human:bob")
        screen = terminal.prompt("\n  ! pay: approved by bob\n", "tokens in")
        self.assertNotIn(ASKS, screen)
        self.assertEqual(self.lines("paid"), ['{"amount":250}'])

    def test_several_questions_are_asked_one_after_the_other(self):
        terminal = self.open(rows=40)
        terminal.prompt()
        terminal.paste('use pay {"amount":101}\nuse pay {"amount":102}\nuse pay {"amount":3}')
        terminal.key("Enter")
        screen = terminal.until(ASKS)
        self.assertEqual(screen.count("  ? pay"), 1)
        terminal.type("y")
        terminal.key("Enter", "y", "Enter")  # keys behind an answer are no answer to the next question
        terminal.until(lambda seen: seen.count("  ? pay") == 2 and seen.endswith(ASKS))
        self.assertEqual(len(self.waits()), 1)
        terminal.send("n")
        terminal.until("tokens in")
        self.assertEqual(len(self.lines("paid")), 2)

    def test_a_question_of_another_is_told_with_its_command(self):
        terminal = self.open()
        terminal.prompt()
        terminal.send('use mail {"to":"x"}')
        wait = []
        self.until(lambda: wait.extend(self.waits()) or wait)
        short = wait[0]["wait_id"][-8:]
        screen = terminal.until(f"anna is to answer: holdfast approve {short} --actor human:anna\n"
                                f"    holdfast deny {short} --reason TEXT --actor human:anna")
        self.assertNotIn(ASKS, screen)
        self.cli("approve", short, "--actor", "human:anna")
        terminal.prompt("! mail: approved by anna", "✓ mail", "tokens in")

    def test_a_turn_that_waits_is_shown_with_its_question_when_the_chat_is_opened(self):
        terminal = self.open()
        terminal.prompt()
        terminal.send('use pay {"amount":250}')
        terminal.until(ASKS)
        terminal.key("C-d")
        self.assertEqual(terminal.ended(), 0)
        terminal.start(self.folder, self.command)
        screen = terminal.until(ASKS)
        self.assertEqual(screen.count("  ? pay · may it be called?"), 1)
        terminal.send("y")
        terminal.prompt("✓ pay")
        self.assertEqual(self.lines("paid"), ['{"amount":250}'])

    def test_whether_a_call_happened_is_asked(self):
        terminal = self.open()
        terminal.prompt()
        terminal.send("use slow {}")
        self.until(lambda: self.lines("slow") == ["acted"])
        os.kill(terminal.pid(), signal.SIGKILL)
        self.assertEqual(terminal.ended(), 137)
        terminal.start(self.folder, self.command)
        screen = terminal.until(lambda seen: seen.endswith(ASKS))
        self.assertIn("\n  ? slow · did it happen?\n    Did slow happen? It is not known: ", screen)
        self.assertIn("\n    y it happened · n REASON it did not · e it happened, with a result\n", screen)
        terminal.send("e")
        terminal.until(lambda seen: seen.endswith("JSON ›"))
        terminal.send('{"rows":3}')
        terminal.prompt("\n  ! slow: it happened\n", "The tools said:")
        self.assertIn('{"happened":true,"said_by":"tester","result":{"rows":3}}', self.told())
        self.assertEqual(self.lines("slow"), ["acted"])

    def test_ctrl_c_at_a_question_empties_it_and_then_cancels_the_turn(self):
        terminal = self.open()
        terminal.prompt()
        terminal.send('use pay {"amount":250}')
        terminal.until(ASKS)
        terminal.type("n because")
        terminal.until("n because")
        terminal.key("C-c")
        terminal.until(lambda seen: seen.endswith(ASKS))
        terminal.key("C-c")
        terminal.prompt("! pay: withdrawn", "\n  cancelled · ")
        self.assertEqual(self.waits(), [])
        terminal.send("and now?")
        terminal.prompt("You said: and now?")
        self.assertEqual(self.lines("paid"), [])

    def test_another_size_does_no_harm_to_a_question(self):
        terminal = self.open()
        terminal.prompt()
        terminal.send('use pay {"amount":250}')
        terminal.until(ASKS)
        terminal.type("n a reason")
        for columns, rows in ((30, 20), (20, 10), (100, 30), (80, 24)):
            terminal.resize(columns, rows)
            terminal.until(lambda seen: re.search(r"\ny, n or e › n a rea\s*son$", seen))
        self.assertEqual(terminal.screen(history=True).count("y, n or e ›"), 1)
        terminal.key("Enter")
        terminal.until(lambda seen: re.search(r"denied: a\s+reason", seen))


class Elsewhere(Asking):
    """The turn is another worker's."""

    def test_ctrl_c_cancels_a_turn_that_another_worker_drives(self):
        worker = self.slow_turn()
        terminal = self.open("s")
        terminal.until("use slow")
        terminal.until("…")
        terminal.key("C-c")
        terminal.prompt("\n  cancelled · ")
        self.assertIn("cancelled", worker.heard("turn_ended")["message"])
        terminal.send("and now?")
        terminal.prompt("You said: and now?")

    def test_a_second_ctrl_c_leaves_the_turn_to_its_worker(self):
        worker = self.slow_turn()
        terminal = self.open("s")
        terminal.until("use slow")
        worker.stop()  # it cannot hear of the first
        terminal.key("C-c")
        terminal.until("Ctrl-C again leaves at once")
        terminal.key("C-c")
        self.assertEqual(terminal.ended(), 0)
        worker.go_on()
        self.assertIn("cancelled", worker.heard("turn_ended")["message"])

    def test_a_question_of_another_workers_turn_is_asked_here(self):
        worker = self.worker()
        self.ok("session", "create", "s", "--agent", "payer")
        self.ok("session", "send", "s", 'use pay {"amount":250}')
        worker.heard("away")
        terminal = self.open("s")
        terminal.until(ASKS)
        terminal.send("y")
        terminal.prompt("! pay: approved", "The tools said:")
        self.assertEqual(self.lines("paid"), ['{"amount":250}'])


class Locked(Asking):
    """Another process writes to the SQLite file for longer than a command waits."""

    def test_a_cancel_that_cannot_be_recorded_is_said(self):
        self.slow_turn()
        terminal = self.open("s")
        terminal.until("use slow")
        writer = sqlite3.connect(self.db, isolation_level=None)
        writer.execute("BEGIN IMMEDIATE")
        terminal.key("C-c")
        terminal.until("Ctrl-C again leaves at once")
        terminal.key("C-c")
        self.assertEqual(terminal.ended(), 6)
        writer.execute("ROLLBACK")
        writer.close()
        terminal.until("the turn continues, its cancel could not be recorded: ")


class Pipes(Asking):
    def test_a_pipe_says_which_command_answers_and_goes_on(self):
        chat = self.pipe("s", text='use pay {"amount":250}')
        said = [chat.stderr.readline() for _ in range(3)]
        short = self.waits()[0]["wait_id"][-8:]
        self.assertEqual(said, [
            'holdfast: pay {"amount":250} needs an approval: May this be paid?\n',
            f"holdfast: it is answered by: holdfast approve {short}, or: holdfast deny {short} --reason TEXT\n",
            "holdfast: the turn continues when that is done: here, in a worker, or when session s is opened again\n"])
        self.cli("approve", short, "--actor", "human:bob")
        out, err = chat.communicate(timeout=SECONDS)
        self.assertEqual(out, 'The tools said: {"approved_by":"bob","result":"paid\\n"}\n')
        self.assertIn("holdfast: pay: approved by bob\n", err)
        self.assertEqual(chat.returncode, 0)

    def test_questions_and_answers_are_lines_of_json(self):
        chat = self.pipe("s", "--json", text='use pay {"amount":250}')
        events = {}
        for line in chat.stdout:
            event = json.loads(line)
            events[event["event"]] = event
            if event["event"] == "asked":
                self.cli("deny", event["wait_id"], "--reason", "no")
        asked, answered = events["asked"], events["answered"]
        self.assertEqual((asked["about"], asked["tool"], asked["arguments"], asked["edits"], asked["policy"]),
                         ("approval", "pay", {"amount": 250}, True, "deny"))
        self.assertEqual((answered["wait_id"], answered["outcome"], answered["actor"]),
                         (asked["wait_id"], {"kind": "deny", "reason": "no"}, "tester"))
        self.assertEqual(events["turn"]["outcome"], "assistant_message")

    def test_sigint_cancels_a_turn_that_waits(self):
        chat = self.pipe("s", "--json", text='use pay {"amount":250}')
        for line in chat.stdout:
            event = json.loads(line)
            if event["event"] == "asked":
                chat.send_signal(signal.SIGINT)
        self.assertEqual((event["event"], event["outcome"]), ("turn", "cancelled"))
        self.assertEqual(chat.wait(timeout=SECONDS), 13)


class Postgres(Elsewhere):
    """The same over PostgreSQL."""

    def setUp(self):
        super().setUp()
        base = tempfile.TemporaryDirectory(prefix="hf-ask-")
        self.addCleanup(base.cleanup)
        os.chmod(base.name, 0o755)  # the server runs as another user
        folder = os.path.join(base.name, "pg")
        up = subprocess.run([PG, "up", folder], check=True, text=True, stdout=subprocess.PIPE)
        self.env["HOLDFAST_DB"] = up.stdout.strip()
        self.addCleanup(subprocess.run, [PG, "down", folder], check=True)
        self.cli("migrate")


if __name__ == "__main__":
    need_terminals()
    main()
