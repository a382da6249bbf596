"""A real terminal for tests: a program in a tmux of its own, its keys and its screen."""

import os
import select
import signal
import subprocess
import time

SECONDS = 60
# The exit code goes to a file: tmux does not always notice the end of a program that reads signals.
WRAPPER = 'trap : INT TSTP; "$@"; echo $? >"$CODE_FILE"'


class Terminal:
    """One program in a window of the given size. The window stays when the program has ended."""

    def __init__(self, folder, env, command, columns=80, rows=24):
        self.socket = os.path.join(folder, "tmux.sock")
        self.code = os.path.join(folder, "tmux.code")
        self.env = {**env, "CODE_FILE": self.code, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), "cat")
        self.tmux("set-option", "-g", "remain-on-exit", "on")
        self.tmux("set-option", "-g", "status", "off")
        self.tmux("set-option", "-g", "default-terminal", "tmux-256color")
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))
        self.start(folder, command)

    def start(self, folder, command):
        """Starts a program in the window, in place of the one that is there."""
        if os.path.exists(self.code):
            os.remove(self.code)
        self.tmux("send-keys", "-R")
        self.tmux("clear-history")
        self.tmux("respawn-pane", "-k", "-c", folder, "sh", "-c", WRAPPER, "sh", *command)

    def tmux(self, *args):
        done = subprocess.run(["tmux", "-u", "-S", self.socket, *args], env=self.env, capture_output=True,
                              text=True, timeout=SECONDS, check=False)
        if done.returncode:
            raise AssertionError(f"tmux {args}: {done.stderr}")
        return done.stdout

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def key(self, *names):
        self.tmux("send-keys", *names)

    def send(self, text):
        self.type(text)
        self.key("Enter")

    def paste(self, text):
        """As a terminal does it: bracketed, if the program asked for that."""
        self.tmux("set-buffer", "-b", "p", text)
        self.tmux("paste-buffer", "-p", "-r", "-b", "p")

    def resize(self, columns, rows):
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def screen(self, history=False):
        """The rows up to the last one with text."""
        text = self.tmux("capture-pane", "-p", *(["-S", "-"] if history else []))
        return "\n".join(line.rstrip() for line in text.split("\n")).rstrip("\n")

    def until(self, wanted, history=False):
        """The screen, once `wanted` is on it: a text, or a function of the screen."""
        seen, end = "", time.monotonic() + SECONDS
        while time.monotonic() < end:
            seen = self.screen(history)
            if wanted(seen) if callable(wanted) else wanted in seen:
                return seen
        raise AssertionError(f"{wanted!r} never came:\n{seen}")

    def prompt(self, *wanted):
        """The screen, once all that is wanted is on it and the prompt is empty and waits."""
        return self.until(lambda seen: (seen.endswith("\n›") or seen == "›") and all(text in seen for text in wanted))

    def pid(self):
        """The program's, which is the shell's only child."""
        shell = self.tmux("display-message", "-p", "#{pane_pid}").strip()
        with open(f"/proc/{shell}/task/{shell}/children", encoding="ascii") as children:
            return int(children.read())

    def ended(self):
        """The exit code, once the program has ended."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            if os.path.exists(self.code) and os.path.getsize(self.code):
                with open(self.code, encoding="ascii") as code:
                    return int(code.read())
        raise AssertionError(f"it has not ended:\n{self.screen()}")

    def close(self):
        """Ends the program too. The leak check of a sanitizer, with which a program ends, spins for ever if
        the hang-up ends its helper."""
        program = None
        try:
            program = os.pidfd_open(self.pid())
        except (AssertionError, OSError, ValueError, subprocess.SubprocessError):
            pass  # it has ended
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], env=self.env, capture_output=True, check=False)
        if program is not None:
            if not select.select([program], [], [], 10)[0]:
                signal.pidfd_send_signal(program, signal.SIGKILL)
            os.close(program)
