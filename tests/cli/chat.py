#!/usr/bin/env python3
"""holdfast chat in a real terminal (tmux, 80 x 24) and in pipes, with the scripted model."""

import json
import os
import re
import signal
import subprocess
import time

from harness import HOLDFAST, Case, main, need_terminals
from tmux import Terminal

SECONDS = 60


def timeless(screen):
    """A screen without what is another every time."""
    screen = re.sub(r"\d+ tokens in · \d+ out", "N tokens in · N out", screen)
    return re.sub(r"\b\d+(?:\.\d)?m?s\b", "TIME", screen)


class Chat(Case):
    def open(self, *args, columns=80, rows=24):
        self.cli("migrate")  # the store is there: nothing is said about making it
        terminal = Terminal(self.folder, self.env, [HOLDFAST, "chat", *args], columns, rows)
        self.addCleanup(terminal.close)
        return terminal

    def session(self, name):
        return self.ok("session", "show", name)["session"]

    def shows(self, terminal, *lines):
        """The whole screen becomes these lines. The end of a former turn can look like that of this one."""
        terminal.until(lambda seen: timeless(seen).split("\n") == list(lines))


class Screens(Chat):
    def test_a_conversation_looks_like_this(self):
        terminal = self.open("--scripted")
        self.shows(terminal,
                   "tester-scripted",
                   "agent scripted · model scripted · /help",
                   "",
                   "›")
        terminal.send("Good morning! This line is long enough to be broken at the right margin of it all.")
        terminal.prompt("tokens in")
        terminal.send('use wait {"seconds":0}')
        self.shows(terminal,
                   "agent scripted · model scripted · /help",
                   "",
                   "› Good morning! This line is long enough to be broken at the right margin of it",
                   "  all.",
                   "",
                   "You said: Good morning! This line is long enough to be broken at the right",
                   "margin of it all.",
                   "",
                   "I am a scripted model and understand nothing, but I remember what you said: 1",
                   'message so far. Write "use TOOL {arguments}", and I call that tool.',
                   "",
                   "  N tokens in · N out · TIME",
                   "",
                   '› use wait {"seconds":0}',
                   "",
                   "I will use wait.",
                   "",
                   '  ✓ wait {"seconds":0} → the time is over · TIME',
                   "",
                   "The tool answered: the time is over",
                   "",
                   "  N tokens in · N out · TIME",
                   "",
                   "›")

    def test_a_tool_is_named_while_it_runs_and_ctrl_c_cancels_the_turn(self):
        terminal = self.open("--scripted")
        terminal.prompt()
        terminal.send('use wait {"seconds":50}')
        terminal.until('\n  … wait {"seconds":50}')
        terminal.until("· 1s")
        terminal.key("C-c")
        screen = terminal.prompt("cancelled ·")
        self.assertRegex(screen, r"\n  \? wait .*\n\n  cancelled · \d+ tokens in · \d+ out · ")
        terminal.send("still there?")
        terminal.prompt("You said: still there?", "I call that tool.")
        terminal.key("C-d")
        self.assertEqual(terminal.ended(), 0)

    def test_a_second_ctrl_c_leaves_and_the_same_command_goes_on(self):
        terminal = self.open("--scripted")
        terminal.prompt()
        terminal.send('use wait {"seconds":2}')
        terminal.until("… wait")
        os.kill(terminal.pid(), signal.SIGTERM)  # as if the machine went down
        self.assertEqual(terminal.ended(), 0)
        self.assertIsNotNone(self.session("tester-scripted")["turn_id"])
        terminal.start(self.folder, [HOLDFAST, "chat", "--scripted"])
        screen = terminal.prompt("The tool answered: the time is over")
        self.assertEqual(screen.count('› use wait {"seconds":2}'), 1)
        self.assertIsNone(self.session("tester-scripted")["turn_id"])
        terminal.key("C-c")
        terminal.until("Ctrl-C again, or Ctrl-D, leaves")
        terminal.key("C-c")
        self.assertEqual(terminal.ended(), 0)

    def test_the_history_is_shown_when_it_is_opened(self):
        for text in ("first", 'use wait {"seconds":0}', "日本語のテキスト"):
            self.cli("chat", "s1", "--scripted", stdin=text.encode())
        terminal = self.open("s1", "--scripted", rows=40)
        self.shows(terminal,
                   "s1",
                   "agent scripted · model scripted · /help",
                   "",
                   "› first",
                   "",
                   "You said: first",
                   "",
                   "I am a scripted model and understand nothing, but I remember what you said: 1",
                   'message so far. Write "use TOOL {arguments}", and I call that tool.',
                   "",
                   '› use wait {"seconds":0}',
                   "",
                   "I will use wait.",
                   "",
                   '  • wait {"seconds":0} → the time is over',
                   "",
                   "The tool answered: the time is over",
                   "",
                   "› 日本語のテキスト",
                   "",
                   "You said: 日本語のテキスト",
                   "",
                   "I am a scripted model and understand nothing, but I remember what you said: 3",
                   'messages so far. Write "use TOOL {arguments}", and I call that tool.',
                   "",
                   "›")
        terminal.key("Up", "Up")
        terminal.until(lambda seen: seen.endswith('› use wait {"seconds":0}'))

    def test_what_is_typed_during_a_turn_is_at_the_next_prompt(self):
        terminal = self.open("--scripted")
        terminal.prompt()
        terminal.send('use wait {"seconds":1}')
        terminal.until("… wait")
        terminal.type("and then")
        terminal.until(lambda seen: seen.endswith("\n› and then"))
        terminal.key("C-u")
        terminal.send('use wait {"seconds":1}')
        terminal.until("… wait")
        terminal.send("queued")
        terminal.prompt("You said: queued")

    def test_a_pasted_text_is_one_message(self):
        terminal = self.open("--scripted")
        terminal.prompt()
        terminal.paste("def f():\n\treturn '日本'\n\nf()\x1b[2J")
        terminal.until("› def f():\n      return '日本'\n\n  f()[2J")
        terminal.key("Enter")
        terminal.prompt("You said: def f():\n    return '日本'\n\nf()[2J\n", "I call that tool.")
        self.assertEqual(self.ok("session", "inputs", "tester-scripted")["items"][0]["kind"], "message")
        self.assertEqual(len(self.ok("session", "inputs", "tester-scripted")["items"]), 1)

    def test_another_size_does_no_harm_at_the_prompt_or_in_a_turn(self):
        terminal = self.open("--scripted")
        terminal.prompt()
        terminal.type("a line that is longer than thirty columns 日本語日本語")
        terminal.until("日本語日本語")
        for columns, rows in ((30, 20), (100, 30), (20, 10), (80, 24)):
            terminal.resize(columns, rows)
            terminal.until(lambda seen: re.search(r"(^|\n)› a line that is[^›]*語$", seen))
        self.assertEqual(terminal.screen(history=True).count("› a line"), 1)
        terminal.key("Enter")
        terminal.until("You said")
        terminal.resize(40, 20)
        screen = terminal.prompt("call that tool.")
        self.assertTrue(all(len(line) <= 40 for line in screen.split("\n")), screen)

    def test_commands(self):
        terminal = self.open("--scripted")
        terminal.prompt()
        terminal.send("/help")
        self.shows(terminal,
                   "tester-scripted",
                   "agent scripted · model scripted · /help",
                   "",
                   "› /help",
                   "",
                   "  /help           list the commands",
                   "  /attach FILE    send a file with the next message",
                   "  /model [NAME]   show the models, or use another one",
                   "  /retry          send the last message again",
                   "  /quit           leave; the conversation is kept",
                   "  Enter           send; Alt-Enter or Ctrl-J begins a new line",
                   "  Ctrl-C          cancel the turn; again: leave",
                   "  Ctrl-D          leave",
                   "",
                   "›")
        terminal.send("/retry")
        terminal.until("there is no message to send again")
        terminal.send("/qiut")
        terminal.until("there is no /qiut; did you mean /quit?")
        terminal.send("hello")
        terminal.prompt("You said: hello", "I call that tool.")
        terminal.send("/retry")
        terminal.prompt("what you said: 2", "tokens in")
        terminal.send("/quit")
        self.assertEqual(terminal.ended(), 0)

    def test_ctrl_z_and_back(self):
        terminal = self.open("--scripted")
        terminal.prompt()
        terminal.type("half")
        terminal.until("› half")
        pid = terminal.pid()
        terminal.key("C-z")
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
                if stat.read().split()[2] == "T":
                    break
        os.kill(pid, signal.SIGCONT)
        terminal.until("› half")
        terminal.key("C-u", "C-d")
        self.assertEqual(terminal.ended(), 0)

    def test_a_terminal_that_goes_away_loses_nothing(self):
        terminal = self.open("--scripted")
        terminal.prompt()
        terminal.send('use wait {"seconds":2}')
        terminal.until("… wait")
        pid = terminal.pid()
        terminal.close()
        end = time.monotonic() + SECONDS
        while os.path.exists(f"/proc/{pid}"):
            self.assertLess(time.monotonic(), end)
        self.assertIsNotNone(self.session("tester-scripted")["turn_id"])
        out = self.cli("chat", "tester-scripted", "--scripted", stdin=b"and now?").out
        self.assertIn("The tool answered: the time is over", out)
        self.assertIn("You said: and now?", out)


class Pipes(Chat):
    def test_one_message_in_a_pipe(self):
        done = self.cli("chat", "-", "--scripted", stdin=b"hi\n")
        self.assertTrue(done.out.startswith("You said: hi\n\nI am a scripted model"), done.out)
        self.assertTrue(done.out.endswith("that tool.\n"))
        self.assertRegex(done.err, r"holdfast: session [0-9a-f-]{36}: \d+ tokens in · \d+ out · ")
        self.assertEqual(self.cli("chat", "-", "--scripted", "--quiet", stdin=b"hi\n").err, "")

    def test_a_store_in_memory_leaves_nothing_behind(self):
        before = sorted(os.listdir(self.folder))
        out = self.cli("chat", "-", "--scripted", "--db", "sqlite::memory:", stdin=b"hi").out
        self.assertIn("You said: hi", out)
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_tools_are_told_on_standard_error(self):
        done = self.cli("chat", "-", "--scripted", stdin=b'use wait {"seconds":0}')
        self.assertEqual(done.out, "I will use wait.\nThe tool answered: the time is over\n")
        self.assertIn('holdfast: tool wait {"seconds":0}: the time is over\n', done.err)

    def test_every_event_is_a_line_of_json(self):
        out = self.cli("chat", "s1", "--scripted", "--json", stdin=b'use wait {"seconds":0}').out
        lines = [json.loads(line) for line in out.splitlines()]
        kinds = [line["event"] for line in lines]
        self.assertEqual([k for i, k in enumerate(kinds) if i == 0 or k != kinds[i - 1]],
                         ["model_called", "text", "tool_started", "tool_ended", "model_called", "text", "turn"])
        ended = lines[kinds.index("tool_ended")]
        self.assertEqual((ended["tool"], ended["outcome"], ended["text"]), ("wait", "success", "the time is over"))
        turn = lines[-1]
        self.assertEqual((turn["session_id"], turn["outcome"], turn["answered"], turn["text"]),
                         ("s1", "assistant_message", True, "The tool answered: the time is over"))

    def test_sigint_cancels_the_turn_of_a_pipe(self):
        chat = subprocess.Popen([HOLDFAST, "chat", "s1", "--scripted", "--json"], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, env=self.env, cwd=self.folder, text=True)
        chat.stdin.write('use wait {"seconds":50}')
        chat.stdin.close()
        with chat.stdout:
            for line in chat.stdout:
                if json.loads(line)["event"] == "tool_started":
                    chat.send_signal(signal.SIGINT)
        self.assertEqual(json.loads(line)["outcome"], "cancelled")
        self.assertEqual(chat.wait(timeout=SECONDS), 13)

    def test_bad_input(self):
        self.assertIn("standard input is empty", self.refused(2, "invalid_argument", "chat", "-", "--scripted"))
        self.assertIn("UTF-8", self.refused(2, "invalid_argument", "chat", "-", "--scripted", stdin=b"\xff"))
        self.cli("session", "create", "other", "--agent", "another")
        self.assertIn("the session other belongs to the agent another, not to scripted",
                      self.refused(2, "invalid_argument", "chat", "other", "--scripted", "--agent", "scripted",
                                   stdin=b"hi"))
        self.refused(3, "not_found", "chat", "-", stdin=b"hi")
        done = self.cli("chat", "-", code=3, stdin=b"hi")
        self.assertIn("--scripted", done.err)


if __name__ == "__main__":
    need_terminals()
    main()
