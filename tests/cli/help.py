#!/usr/bin/env python3
"""What is made from the table of commands: help, manual pages, completion."""

import re
import shutil
import subprocess

from harness import Case, main

# Written out by hand: the contract of the program.
COMMANDS = """work create|work claim|work renew|work touch|work release|work hand-back|work wait
work waiting|work resume|work close-out|work fail|work abandon|work append-event|work cancel
work requeue|work request-abandon|work list|work show|work events|work output|work stats|work sweep
work prune|work reconcile|policy set|policy show|store bump|monitor|migrate|doctor|limits
version|replay|turn inspect|cell run|schedule add|schedule update|schedule pause
schedule resume|schedule trigger|schedule remove|schedule list|schedule show|schedule preview
schedule sync|schedule run|trigger subscribe|trigger update|trigger enable|trigger disable
trigger remove|trigger revive|trigger list|trigger show|trigger emit|trigger deliveries
trigger granted""".replace("\n", "|").split("|")
PAGES = ["", "cell", "work", "policy", "schedule", "store", "trigger", "turn"]


class Help(Case):
    def test_every_command_explains_itself(self):
        for command in COMMANDS:
            text = self.cli(*command.split(), "--help").out
            self.assertIn(f"Usage: holdfast {command}", text)
            self.assertIn("Exit codes", text)
            self.assertIn("Examples", text, command)
            self.assertIn(command.split()[0], text.split("Examples")[1])
            self.assertEqual(text, self.cli("help", *command.split()).out)
            self.assertEqual(text, self.cli(*command.split(), "-h").out)

    def test_lines_fit_a_terminal_but_for_examples(self):
        for command in COMMANDS:
            text = self.cli(*command.split(), "--help").out.split("Examples")[0]
            for line in text.split("\n"):
                self.assertLessEqual(len(line), 80, line)

    def test_the_overview_names_every_command(self):
        text = self.cli("--help").out
        for command in COMMANDS:
            self.assertRegex(text, rf"(?m)^  {command} ")
        self.assertNotIn("__man", text)
        self.assertIn("close-out", self.cli("work", "--help").out)

    def test_help_and_version_need_no_store_and_exit_0(self):
        self.env["HOLDFAST_DB"] = "/nonexistent/x.db"
        self.cli("--help")
        self.assertRegex(self.cli("--version").out, r"^holdfast \d+\.\d+\.\d+ ")
        self.assertEqual(self.cli("--version").out, self.cli("version").out)
        self.cli("limits")

    def test_every_example_parses(self):
        """An example in --help must not be refused by the parser it documents."""
        for command in COMMANDS:
            text = self.cli(*command.split(), "--help").out.split("Examples")[1]
            for line in text.split("\n"):
                found = re.search(r"holdfast ((?:--\S+ \S+ )*\w.*)", line)
                if not found or line.strip().startswith("#"):
                    continue
                script = "set -- " + re.sub(r"\)( && .*)?$", "", found.group(1)) + \
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
    def test_pages_are_clean_roff_and_name_their_commands(self):
        groff = shutil.which("groff")
        for page in PAGES:
            text = self.cli("__man", *([page] if page else [])).out
            self.assertTrue(text.startswith(".TH HOLDFAST"))
            for command in COMMANDS:
                if (command.split()[0] if " " in command else "") == page:
                    self.assertIn(".SS holdfast " + command.replace("-", "\\-"), text)
            if groff:
                done = subprocess.run([groff, "-ww", "-man", "-Tutf8", "-z"], input=text,
                                      text=True, capture_output=True, check=True)
                self.assertEqual(done.stderr, "")
        self.cli("__man", "nonsense", code=3)

    def test_pages_list_every_option_of_help(self):
        for command in COMMANDS:
            page = [command.split()[0]] if " " in command else []
            text = self.cli("__man", *page).out.replace("\\-", "-")
            own = self.cli(*command.split(), "--help").out.split("Global options")[0]
            for option in re.findall(r"(?m)^  (--[a-z-]+)", own):
                self.assertIn(f"\\fB{option}\\fR", text)


class Completion(Case):
    def complete(self, *words):
        script = self.cli("__completion").out + """
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _holdfast; printf '%s\\n' "${COMPREPLY[@]}"
"""
        done = subprocess.run(["bash", "-c", script, "bash", "holdfast", *words], text=True,
                              capture_output=True, check=True, cwd=self.folder)
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
        self.file("active-work.json", "")
        self.assertEqual(self.complete("monitor", "--pointer", "act"), ["active-work.json"])
        self.assertEqual(self.complete("--db", "act"), ["active-work.json"])


if __name__ == "__main__":
    main()
