#!/usr/bin/env python3
"""A newcomer's walk with a model over HTTP: `config init`, two tools, chat in a terminal, killed with -9 in
the middle of a tool and of a stream, continued; then the same with `session send --wait` and two workers. On
SQLite and on PostgreSQL. The judges are outside: the tool's own log, the model server's journal, and plain SQL."""

import base64
import json
import os
import pty
import select
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "agent"))
from servers import Server, configure

from harness import HOLDFAST, Case, Worker, main, need_terminals
from tmux import Terminal

PG = os.environ["PG_SCRIPT"]
PNG = b"\x89PNG\r\n\x1a\n\x00pixels"
SECONDS = 60
TURNS_TIMED = 15
CHOICE = ("--config", "walk.toml", "--agent", "walker")
BOUND_MS = 250  # loose, for a machine under load; what is printed is the figure

# What is added to the file that `config init` wrote: its model is `main`.
CONFIG = """
[model.whole]
provider = "main"
context_tokens = 100_000
output_tokens = 1_000

[model.broken]
provider = "main"
id = "500"
context_tokens = 100_000
output_tokens = 1_000

[provider.locked]
kind = "openai-chat"
base_url = "http://127.0.0.1:{port}/v1"
key_env = "WALK_KEY"

[model.locked]
provider = "locked"
context_tokens = 100_000
output_tokens = 1_000

[agent.walker]
model = "main"
prompt = "You are brief."
tools = ["note", "slow"]

[tool.note]
description = "Writes a note."
command = ["{folder}/note"]
recovery = "keyed"
pass_env = ["PATH"]

[tool.slow]
description = "Writes a note, slowly."
command = ["{folder}/note", "slow"]
recovery = "keyed"
pass_env = ["PATH"]
"""

# One line per key in `log`, regardless of how often it is called; one per start in `starts`. The slow one
# waits at a gate until the test has opened it.
NOTE = """#!/bin/sh
cd {folder} || exit 1
echo "$HOLDFAST_CALL" >>starts
[ "$1" = slow ] && [ ! -e open ] && read line <gate
grep -qxF "$HOLDFAST_CALL" log 2>/dev/null || echo "$HOLDFAST_CALL" >>log
echo "noted $(sed 's/[^0-9]//g')"
"""


class File:
    def __init__(self, case):
        self.url = case.db

    def rows(self, sql):
        with sqlite3.connect(self.url, timeout=20) as db:
            return [tuple(map(str, row)) for row in db.execute(sql)]


class Postgres:
    def __init__(self, case):
        base = tempfile.TemporaryDirectory(prefix="hf-walk-")
        case.addCleanup(base.cleanup)
        os.chmod(base.name, 0o755)  # the server runs as another user
        folder = os.path.join(base.name, "pg")
        self.url = subprocess.run([PG, "up", folder], check=True, text=True,
                                  stdout=subprocess.PIPE).stdout.strip()
        case.addCleanup(subprocess.run, [PG, "down", folder], check=True)

    def rows(self, sql):
        out = subprocess.run(["psql", self.url.split("&schema")[0], "-qAt", "-F", "|", "-c",
                              "SET search_path = holdfast", "-c", sql],
                             check=True, text=True, stdout=subprocess.PIPE).stdout
        return [tuple(line.split("|")) for line in out.splitlines()]


class Walk(Case):
    def begin(self, engine=File):
        self.server = Server(self.path("journal"))
        self.addCleanup(lambda: self.server.stop())
        self.store = engine(self)
        self.env["HOLDFAST_DB"] = self.store.url
        os.mkfifo(self.path("gate"))
        self.file("note", NOTE.format(folder=self.folder))
        os.chmod(self.path("note"), 0o755)
        self.cli("config", "init", "--config", "walk.toml", "--base-url",
                 f"http://127.0.0.1:{self.server.port}/v1", "--model", "talk")
        with open(self.path("walk.toml"), "a", encoding="utf-8") as out:
            out.write(CONFIG.format(port=self.server.port, folder=self.folder))
        self.command = [HOLDFAST, "chat", *CHOICE]
        self.cli("migrate")

    def open(self, *args):
        terminal = Terminal(self.folder, self.env, [*self.command, *args])
        self.addCleanup(terminal.close)
        terminal.prompt()
        return terminal

    def lines(self, name):
        if not os.path.exists(self.path(name)):
            return []
        with open(self.path(name), encoding="utf-8") as f:
            return f.read().splitlines()

    def wait(self, what):
        end = time.monotonic() + SECONDS
        while not what():
            self.assertLess(time.monotonic(), end)

    def kill(self, terminal, opened=False):
        """opened: the tool that waits for the file may end, but not before the chat has died."""
        os.kill(terminal.pid(), signal.SIGKILL)
        self.assertEqual(terminal.ended(), 137)
        if opened:
            self.file("open", "")
        terminal.start(self.folder, self.command)

    def walk(self, engine):
        self.begin(engine)
        terminal = self.open()
        # two tools
        terminal.paste('use note {"n":1}\nuse note {"n":2}')
        terminal.key("Enter")
        terminal.prompt('\n  ✓ note {"n":1} → noted 1 · ', '\n  ✓ note {"n":2} → noted 2 · ',
                        "\n\nThe tools said: noted 1")
        # killed in the middle of a tool
        terminal.send('use slow {"n":3}')
        self.wait(lambda: len(self.lines("starts")) == 3)
        self.kill(terminal, opened=True)
        screen = terminal.prompt('✓ slow {"n":3} → noted 3', "The tools said: noted 3")
        self.assertEqual(screen.count('› use slow {"n":3}'), 1, screen)
        # killed in the middle of a stream
        terminal.send("hold on")
        terminal.until("Half of the")
        self.kill(terminal)
        screen = terminal.prompt("You said: hold on")
        self.assertNotIn("Half of the", screen)
        self.assertEqual(screen.count("› hold on"), 1, screen)
        terminal.send("bye")
        terminal.prompt("You said: bye")
        terminal.key("C-d")
        self.assertEqual(terminal.ended(), 0)
        self.judge("tester-walker", ['use note {"n":1}\nuse note {"n":2}', 'use slow {"n":3}', "hold on", "bye"])
        self.walk_with_workers()
        self.cli("doctor")

    def walk_with_workers(self):
        """The same from scripts: the worker that has the session is killed, the other one goes on."""
        for name in ("log", "starts", "open"):
            os.remove(self.path(name))
        workers = [Worker(self, *CHOICE) for _ in range(2)]
        self.ok("session", "create", "s", "--agent", "walker")
        said = ['use note {"n":1}\nuse note {"n":2}', 'use slow {"n":3}', "hold fast"]
        self.assertEqual(json.loads(self.send(said[0], workers).communicate(timeout=SECONDS)[0])["answer"]["outcome"],
                         "assistant_message")
        # killed in the middle of a tool
        sender = self.send(said[1], workers)
        self.wait(lambda: len(self.lines("starts")) == 3)
        self.kill_holder(workers)
        self.file("open", "")
        self.assertIn("The tools said: noted 3", sender.communicate(timeout=SECONDS)[0])
        # killed in the middle of a stream
        before = len(self.server.requests())
        sender = self.send(said[2], workers)
        self.wait(lambda: len(self.server.requests()) > before)
        self.kill_holder(workers)
        self.assertIn("You said: hold fast", sender.communicate(timeout=SECONDS)[0])
        self.judge("s", said)
        for worker in workers:
            worker.process.terminate()
            self.assertEqual(worker.process.wait(timeout=SECONDS), 0)

    def send(self, text, workers):
        for worker in workers:
            worker.so_far()
        child = subprocess.Popen([HOLDFAST, "--json", "session", "send", "s", text, "--wait"], env=self.env,
                                 cwd=self.folder, stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def kill_holder(self, workers):
        """Kills the worker that claimed since the last message, and starts another one in its place."""
        def claimed():
            return [worker for worker in workers if "claimed" in [event["event"] for event in worker.so_far()]]
        holders = []
        self.wait(lambda: holders or holders.extend(claimed()) or holders)
        (holder,) = holders
        holder.kill()
        workers.remove(holder)
        workers.append(Worker(self, *CHOICE))

    def judge(self, session, texts):
        # one entry per recorded effect in the tool's log, and none that is not recorded
        effects = self.store.rows("SELECT status, COUNT(*) FROM runtime_effect WHERE kind = 'tool_call'"
                                  f" AND session_id = '{session}' GROUP BY status")
        self.assertEqual(effects, [("done", "3")])
        self.assertEqual(len(self.lines("log")), 3)
        self.assertEqual(len(set(self.lines("log"))), 3)
        self.assertEqual(sorted(set(self.lines("starts"))), sorted(self.lines("log")))
        self.assertEqual(len(self.lines("starts")), 4)  # the slow one, twice, under one key
        # the model was told the same story to the end
        last = self.server.requests()[-1]["body"]["messages"]
        self.assertEqual([m["content"] for m in last if m["role"] == "user"], texts)
        self.assertEqual(len([m for m in last if m["role"] == "tool"]), 3)

    def test_the_walk_on_sqlite(self):
        self.walk(File)

    def test_the_walk_on_postgresql(self):
        self.walk(Postgres)

    def test_the_first_piece_is_shown_at_once(self):
        """From the moment before the server writes it to the moment at which it is read from the terminal."""
        self.begin()
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        chat = subprocess.Popen(self.command, stdin=slave, stdout=slave, stderr=slave, cwd=self.folder,
                                env={**self.env, "TERM": "xterm"}, start_new_session=True)
        os.close(slave)
        self.addCleanup(chat.wait)
        self.addCleanup(chat.kill)
        shown, seen = [], b""
        while b"\xe2\x80\xba" not in seen:  # the prompt
            seen += os.read(master, 65536)
        for i in range(TURNS_TIMED):
            os.write(master, f"timed {i}\r".encode())
            while f"first-{i}".encode() not in seen:
                self.assertTrue(select.select([master], [], [], SECONDS)[0], seen)
                seen += os.read(master, 65536)
            shown.append(time.monotonic_ns())
            seen = b""
        sent = [int(line) for line in self.lines("journal.times")]
        took = [(a - b) / 1e6 for a, b in zip(shown, sent)]
        print(f"# from the server's first piece to the terminal: median {statistics.median(took):.2f} ms, "
              f"best {min(took):.2f}, worst {max(took):.2f}", file=sys.stderr)
        self.assertLess(statistics.median(took), BOUND_MS)

    def test_a_long_history_begins_with_a_message_and_says_what_is_left_out(self):
        self.begin()
        for i in range(25):
            self.cli("chat", "tester-walker", *CHOICE, "--quiet", stdin=f"message {i}".encode())
        terminal = self.open()
        whole = terminal.screen(history=True)
        self.assertIn("  10 earlier records: holdfast session log tester-walker\n\n› message 5\n", whole)
        self.assertNotIn("message 4\n", whole)
        self.assertEqual(whole.count("You said"), 20)

    def test_an_unknown_tool_is_told_to_the_model(self):
        self.begin()
        done = self.cli("chat", "-", *CHOICE, stdin=b"use nothing {}")
        self.assertIn("there is no tool named nothing", done.out)
        self.assertIn("tool nothing  failed: was not called", done.err)

    def test_a_missing_key_is_named_and_a_key_is_never_shown(self):
        self.begin()
        message = self.refused(3, "not_found", "chat", "-", *CHOICE, "--model", "locked", stdin=b"hi")
        self.assertIn("the key of provider locked (env WALK_KEY) is missing", message)
        self.env["WALK_KEY"] = "CANARY-key"
        done = self.cli("chat", "-", *CHOICE, "--model", "locked", code=11, stdin=b"hi")
        self.assertNotIn("CANARY-key", done.out + done.err)
        with open(self.db, "rb") as store:
            self.assertNotIn(b"CANARY-key", store.read())

    def test_a_turn_that_fails_says_why_and_can_be_sent_again(self):
        self.begin()
        terminal = self.open("--model", "broken")
        terminal.send("hello")
        terminal.prompt("\n  provider_error: ", "\n  /retry sends the message again\n")
        terminal.send("/model main")
        terminal.send("/retry")
        terminal.until("You said: hello")
        self.assertEqual(self.cli("chat", "-", *CHOICE, "--model", "broken", code=11,
                                  stdin=b"hi").out, "")

    def test_another_model_is_taken_from_the_next_message_on(self):
        self.begin()
        terminal = self.open()
        terminal.send("/model")
        terminal.until("model main; there are main, whole, broken, locked")
        terminal.send("/model none")
        terminal.prompt("the configuration has no [model.none]")
        terminal.send("/model whole")
        terminal.until("model whole from the next message on")
        terminal.send("hi")
        terminal.prompt("\n\nHello world\n")  # an answer that is not streamed

    def test_config_init_is_all_that_a_chat_needs(self):
        self.begin()
        self.cli("config", "init", "--base-url", f"http://127.0.0.1:{self.server.port}/v1", "--model", "talk")
        out = self.cli("chat", "-", stdin=b"hello").out
        self.assertEqual(out, "You said: hello\n")
        self.file("seen.txt", "fresh")
        out = self.cli("chat", "-", stdin=b'use read_file {"path":"seen.txt"}').out
        self.assertIn("fresh", out)

    def attach_image(self, kind, model, **more):
        """Sends an image and then another message in a terminal; the requests that came, and the screen."""
        self.server = Server(self.path("journal"))
        self.addCleanup(self.server.stop)
        self.file("photo.png", PNG)
        url = f"http://127.0.0.1:{self.server.port}" + ("/v1" if kind == "openai-chat" else "")
        config = configure(self.path("image.toml"), kind, url, [model])
        with open(config, "a", encoding="utf-8") as f:
            f.writelines(f"{key} = {json.dumps(value)}\n" for key, value in more.items())
            f.write(f'[agent.viewer]\nmodel = "{model}"\n')
        self.command = [HOLDFAST, "chat", "--config", config]
        self.cli("migrate")
        terminal = self.open()
        terminal.send("/attach photo.png")
        terminal.prompt("photo.png goes with the next message")
        terminal.send("what is this?")
        terminal.prompt(" in · ")
        terminal.send("say done")
        screen = terminal.until(lambda seen: seen.endswith("\n›") and seen.count(" in · ") == 2)
        terminal.key("C-d")
        self.assertEqual(terminal.ended(), 0)
        blobs = sqlite3.connect(self.db).execute("SELECT bytes FROM blob").fetchall()
        self.assertIn(PNG, [bytes(row[0]) for row in blobs])
        return self.server.requests(), screen

    def test_an_image_goes_to_a_model_that_takes_images(self):
        requests, screen = self.attach_image("openai-chat", "talk")
        for request in requests:  # the history has it too
            parts = request["body"]["messages"][0]["content"]
            self.assertEqual([p["type"] for p in parts], ["image_url", "text"])
            self.assertEqual(parts[0]["image_url"]["url"], "data:image/png;base64," + base64.b64encode(PNG).decode())
        self.assertEqual(len(requests), 2)
        self.assertIn("\n\ndone\n", screen)

    def test_an_image_goes_to_messages_too(self):
        requests, screen = self.attach_image("anthropic-messages", "text")
        for request in requests:
            parts = request["body"]["messages"][0]["content"]
            self.assertEqual([p["type"] for p in parts], ["image", "text"])
            self.assertEqual({k: parts[0]["source"][k] for k in ("type", "media_type", "data")},
                             {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()})
        self.assertEqual(len(requests), 2)
        self.assertEqual(screen.count("Hello world"), 2)

    def test_a_model_that_takes_no_images_is_told_of_them(self):
        for kind, model in (("openai-chat", "noimages"), ("anthropic-messages", "noimages")):
            with self.subTest(kind):
                requests, screen = self.attach_image(kind, model, images=False)
                self.assertEqual(len(requests), 2)
                self.assertNotIn(base64.b64encode(PNG).decode(), json.dumps(requests))
                self.assertIn("File photo.png:\\n(an image; it cannot be shown to this model)", json.dumps(requests))
                self.assertNotIn("failed", screen)
            self.doCleanups()
            self.setUp()

    def test_a_refused_image_is_said_with_what_to_do(self):
        requests, screen = self.attach_image("openai-chat", "noimages")
        self.assertIn("provider_error: the endpoint refused the request as invalid", screen)
        self.assertIn("write images = false into its table\n  [model.noimages]", screen)
        self.assertEqual(len(requests), 2)

    def test_a_file_goes_with_the_next_message(self):
        self.begin()
        self.file("notes.txt", "the word is xylophone\n")
        terminal = self.open()
        terminal.send("/attach nowhere.txt")
        terminal.prompt("nowhere.txt: No such file or directory")
        terminal.send("/attach notes.txt")
        terminal.prompt("notes.txt goes with the next message")
        terminal.send("what is the word?")
        terminal.prompt("You said:", "tokens in")
        terminal.send("and again?")
        terminal.prompt("You said:", "again?\n\n  ")
        said = [json.dumps([m for m in request["body"]["messages"] if m["role"] == "user"])
                for request in self.server.requests()]
        self.assertEqual([text.count("xylophone") for text in said], [1, 1])
        terminal.key("C-d")
        self.assertEqual(terminal.ended(), 0)
        terminal.start(self.folder, self.command)
        terminal.prompt("› what is the word?")

    def test_what_a_model_says_controls_no_terminal(self):
        self.begin()
        evil = "\x1b[2J\x1b]0;owned\x07\x9b2J\x08 \x1b[31mred"
        done = self.run_raw("chat", "tester-walker", *CHOICE, stdin=("say " + evil).encode())
        self.assertNotIn(b"\x1b", done.stdout + done.stderr)
        terminal = self.open()
        self.assertIn("␛[2J␛]0;owned␇", terminal.prompt())
        self.assertNotEqual(terminal.tmux("display-message", "-p", "#{pane_title}").strip(), "owned")


if __name__ == "__main__":
    need_terminals()
    main()
