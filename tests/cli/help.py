#!/usr/bin/env python3
"""What is made from the table of commands: help, manual pages, completion."""

import os
import re
import shutil
import subprocess

from harness import Case, main

# Written out by hand: the contract of the program.
COMMANDS = """work create|work claim|work renew|work touch|work release|work hand-back|work wait|work waiting
work resume|work close-out|work fail|work abandon|work append-event|work cancel|work requeue
work redrive|work request-abandon|work list|work show|work events|work output|work tail
work stats|work sweep|work ages|work prune|work reconcile|job enqueue|job list|job show
job cancel|job run-now|job release|queue list|holder list|limit set|limit list|policy set
policy show|schedule add|schedule update|schedule pause|schedule resume|schedule run-now
schedule remove|schedule list|schedule show|schedule preview|schedule sync|schedule run
process start|process list|process show|process events|process signal|process observe
process granted|process retarget|process cancel|process request-abandon|process complete
process await|process prune|process drain|store bump|store copy|store log|store facts
trigger subscribe|trigger update|trigger enable|trigger disable|trigger remove|trigger revive
trigger list|trigger show|trigger emit|trigger deliveries|trigger occurrences|trigger granted
session create|session send|session list|session show|session turn|session effects|session log
session inputs|session cancel-turn|effect list|effect resolve|wait list|wait show|wait resolve
wait revoke|wait key|wait rotate|turn inspect|cell run|provider list|provider check
config check|config init|config keys|ask|answer|run|monitor|chat|worker|top|attention|approve
deny|attention ack|migrate|doctor|demo|replay|bounds|version|call""".replace("\n", "|").split("|")
PAGES = ["", "cell", "config", "effect", "holder", "job", "limit", "policy", "process", "provider", "queue",
         "schedule", "session", "store", "trigger", "turn", "wait", "work"]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def page_of(command):
    """The group of a command, `""` for those that have none."""
    return command.split()[0] if command.split()[0] in PAGES else ""


class Help(Case):
    def test_every_command_explains_itself(self):
        for command in COMMANDS:
            text = self.cli(*command.split(), "--help").out
            self.assertIn(f"Usage: holdfast {command}", text)
            self.assertIn("\nExamples\n  # ", text, command)
            self.assertNotIn("--correlation-id", text)
            self.assertIn("holdfast help all", text)
            self.assertEqual(text, self.cli("help", *command.split()).out)
            self.assertEqual(text, self.cli(*command.split(), "-h").out)

    def test_lines_fit_a_terminal_but_for_examples(self):
        for command in COMMANDS:
            text = self.cli(*command.split(), "--help").out
            for line in text.split("\n"):
                if not line.startswith(("  #", "  holdfast", "  out=", "  id=", "  case ", "  make-")):
                    self.assertLessEqual(len(line), 80, line)

    def test_the_overview_names_every_command(self):
        text = self.cli("help", "all").out
        self.assertIn("Exit codes", text)
        self.assertIn("--correlation-id", text)
        for command in COMMANDS:
            self.assertRegex(text, rf"(?m)^  {command}(?: |$)")
        self.assertEqual(COMMANDS, re.findall(r"(?m)^  ([a-z][a-z-]+(?: [a-z-]+)?)(?:  |$)",
                                              "work: " + text.split("\n\nwork: ")[1].split("\nGlobal options")[0]))
        self.assertNotIn("__man", text)
        self.assertIn("close-out", self.cli("work", "--help").out)

    def test_the_short_overview_fits_a_screen(self):
        text = self.cli("--help").out
        self.assertLessEqual(text.count("\n"), 40)
        for word in ("run -- CMD", "schedule add", "attention", "help all", "\n  work ", "\n  session "):
            self.assertIn(word, text)

    def test_usage_is_as_people_write_it(self):
        for command, usage in (("run", "run [options] -- CMD [ARG...]"),
                               ("work show", "work show ID [options]"),
                               ("schedule add", "schedule add NAME [options] [-- CMD [ARG...]]"),
                               ("answer", "answer ID WORD [options]")):
            self.assertIn(f"Usage: holdfast {usage}\n", self.cli(*command.split(), "--help").out)

    def test_near_misses_name_the_command(self):
        for word, meant in (("list", "work list"), ("status", "top"), ("logs", "work output"),
                            ("cancel", "work cancel"), ("atention", "attention")):
            self.assertIn(f'did you mean "{"" if word[0] == "a" else "holdfast "}{meant}"',
                          self.cli(word, code=2).err)
        self.assertIn("holdfast run -- ls -l", self.cli("run", "ls", "-l", code=125).err)
        self.assertIn("holdfast run -- ls --all", self.cli("run", "ls", "--all", code=125).err)

    def test_what_to_do_is_concrete_or_nothing(self):
        self.cli("migrate")
        err = self.cli("work", "resume", "abcd", "--payload", "yes", code=2).err
        self.assertIn("what to do: use '\"yes\"'", err)
        self.assertNotIn("what to do", self.cli("work", "list", "--limit", "0", code=2).err)

    def test_help_and_version_need_no_store_and_exit_0(self):
        self.env["HOLDFAST_DB"] = "/nonexistent/x.db"
        self.cli("--help")
        self.assertRegex(self.cli("--version").out, r"^holdfast \d+\.\d+\.\d+ ")
        self.assertEqual(self.cli("--version").out, self.cli("version").out)
        self.cli("bounds")

    def test_every_example_parses(self):
        """An example in --help must not be refused by the parser it documents."""
        for command in COMMANDS:
            text = self.cli(*command.split(), "--help").out.split("Examples")[1].split("\n\nOptions")[0]
            for line in text.split("\n"):
                found = re.search(r"holdfast ((?:--\S+ \S+ )*\w.*)", line)
                if not found or not line.startswith("  ") or line.strip().startswith("#"):
                    continue
                script = "set -- " + re.sub(r"\)( && .*| in .*)?$| < \S+$", "", found.group(1)) + \
                    '\n"$HOLDFAST" --help "$@"'
                script = script.replace(" -h\n", "\n")
                env = {**self.env, "HOLDFAST": shutil.which("holdfast", path=self.env["PATH"]),
                       "HF_WORK_ID": "w", "HF_LEASE_TOKEN": "t"}
                done = subprocess.run(["sh", "-c", script], env=env, capture_output=True,
                                      text=True, stdin=subprocess.DEVNULL, check=False,
                                      cwd=self.folder)
                expected = 2 if "--payload -" in line else 0
                self.assertEqual(done.returncode, expected, line + done.stderr)


class Pages(Case):
    def test_every_group_has_a_page_that_is_built(self):
        groups = self.cli("help", "all").out.split("\n\nwork: ")[1]
        self.assertEqual(PAGES, sorted(["", "work", *re.findall(r"(?m)^([a-z]+): ", groups)]))
        with open(os.path.join(ROOT, "docs/man/meson.build"), encoding="utf-8") as build:
            built = re.search(r"foreach group : \[(.*?)\]", build.read(), re.S).group(1)
        self.assertEqual(PAGES, re.findall(r"'(\w*)'", built))

    def test_pages_are_clean_roff_and_name_their_commands(self):
        groff = shutil.which("groff")
        for page in PAGES:
            text = self.cli("__man", *([page] if page else [])).out
            self.assertTrue(text.startswith(".TH HOLDFAST"))
            for command in COMMANDS:
                if page_of(command) == page:
                    self.assertIn(".SS holdfast " + command.replace("-", "\\-"), text)
            if groff:
                done = subprocess.run([groff, "-ww", "-man", "-Tutf8", "-z"], input=text,
                                      text=True, capture_output=True, check=True)
                self.assertEqual(done.stderr, "")
        self.cli("__man", "nonsense", code=3)

    def test_pages_list_every_option_of_help(self):
        for command in COMMANDS:
            page = page_of(command)
            text = self.cli("__man", *([page] if page else [])).out.replace("\\-", "-")
            own = self.cli(*command.split(), "--help").out
            for option in re.findall(r"(?m)^  (--[a-z-]+)", own):
                self.assertIn(f"\\fB{option}\\fR", text)


class Completion(Case):
    def complete(self, *words):
        script = self.cli("__completion").out + """
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _holdfast; printf '%s\\n' "${COMPREPLY[@]}"
"""
        done = subprocess.run(["bash", "-c", script, "bash", "holdfast", *words], text=True,
                              capture_output=True, check=True, cwd=self.folder, env=self.env)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_words_options_and_values(self):
        self.assertEqual(self.complete("wo"), ["work", "worker"])
        self.assertIn("doctor", self.complete(""))
        self.assertNotIn("__man", self.complete(""))
        self.assertEqual(self.complete("work", "cl"), ["claim", "close-out"])
        self.assertEqual(self.complete("work", "create", "--source-"),
                         ["--source-id", "--source-run-id"])
        self.assertEqual(self.complete("work", "list", "--status", "wait"),
                         ["waiting_user", "waiting_external"])
        self.assertEqual(self.complete("--db", "x", "--json", "policy", "sh"), ["show"])
        self.assertIn("--older-than", self.complete("work", "prune", "--"))

    def test_files_where_files_are_wanted(self):
        self.file("payload.json", "1")
        self.assertEqual(self.complete("--db", "pay"), ["payload.json"])
        self.assertEqual(self.complete("run", "--", "pay"), ["payload.json"])

    def test_ids_and_names_of_the_store(self):
        self.assertEqual(self.complete("work", "show", ""), [])
        unit = self.create("s1")["work_id"]
        self.ok("schedule", "add", "nightly", "--cron", "0 3 * * *", "--", "true")
        self.ok("process", "start", "--disposition", "rerunnable", "--name", "indexer")
        self.assertIn(unit[-8:], self.complete("work", "show", ""))
        self.assertEqual(self.complete("work", "show", "ind"), ["indexer"])
        self.assertEqual(self.complete("schedule", "pause", "n"), ["nightly"])
        self.assertEqual(self.complete("work", "events", "--id", unit[-8:-2]), [unit[-8:]])

    def test_each_shell_has_a_script_that_asks_the_program(self):
        for shell in ("bash", "zsh", "fish"):
            self.assertIn("__complete --", self.cli("__completion", shell).out)
            if shutil.which(shell):
                script = self.file("script", self.cli("__completion", shell).out)
                subprocess.run([shell, "-n", script], check=True)


if __name__ == "__main__":
    main()
