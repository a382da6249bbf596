#!/usr/bin/env python3
"""Run the examples of the documentation, as a reader would type them.

    run_examples.py [PAGE…]            exit 1 if a command's exit code is another
    run_examples.py --write [PAGE…]    also put what they print into the page

An example is a fenced block that begins with ```sh run. The blocks of a page run in order,
in one bash, in an empty folder, with the program in PATH. A command must exit with 0, or
with N where its line ends in `# exit N`. A ```text block right behind an example shows what
it printed; ids and times in it are those of the last --write.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
PAGES = ("README.md", "docs/cells.md", "docs/feed.md", "docs/ingress.md",
         "docs/jobs.md", "docs/ledger.md", "docs/moving.md", "docs/run.md",
         "docs/schedules.md", "docs/triggers.md")
SECONDS = 50
BLOCK = re.compile(r"^```sh run\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.S | re.M)
EXPECTED = re.compile(r"# exit (\d+)\s*$")


def complete(text):
    """Is this a whole command? A page's loops and quotes span lines."""
    if re.search(r"(?<!\\)(\\\\)*\\\n$", text):
        return False
    return subprocess.run(["bash", "-n"], input=text, text=True,
                          capture_output=True, check=False).returncode == 0


def commands(body, first_line):
    """(line number, text, expected exit code) of each command of a block."""
    pending, start = "", first_line
    for number, line in enumerate(body.splitlines(keepends=True), first_line):
        if not pending:
            start = number
        pending += line
        if not pending.strip() or pending.lstrip().startswith("#"):
            pending = ""
        elif complete(pending):
            expected = EXPECTED.search(pending)
            yield start, pending.rstrip("\n"), int(expected.group(1)) if expected else 0
            pending = ""
    if pending:
        sys.exit(f"line {start}: this is no whole command: {pending}")


def script(page, text, folder):
    """One bash script for a page; the output of block i goes to a file of its own."""
    lines = ["exec 8>&2"]
    for i, block in enumerate(BLOCK.finditer(text)):
        lines.append(f"exec >{shlex.quote(os.path.join(folder, f'out.{i}'))} 2>&1")
        first_line = text.count("\n", 0, block.start(1)) + 1
        for line, command, expected in commands(block.group(1), first_line):
            where = shlex.quote(f"{page}:{line}: exit %s, expected {expected}: %s\n")
            lines.append(f"eval {shlex.quote(command)}; hf_rc=$?")
            lines.append(f"if [ $hf_rc -ne {expected} ]; then printf {where} $hf_rc "
                         f"{shlex.quote(command)} >&8; exit 1; fi")
    return "\n".join(lines) + "\nexit 0\n"


def run(page, text, folder):
    """Whether all went as the page says. Ends what the examples left running."""
    program = os.path.dirname(os.path.realpath(os.environ["HOLDFAST"]))
    scratch = os.path.join(folder, "scratch")
    os.mkdir(scratch)
    environment = {"PATH": program + ":" + os.environ["PATH"], "HOME": scratch,
                   "USER": "ann", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
    environment.update((name, value) for name, value in os.environ.items()
                       if name.endswith("SAN_OPTIONS"))
    bash = subprocess.Popen(["bash", "-s"], stdin=subprocess.PIPE, text=True, cwd=scratch,
                            env=environment, start_new_session=True)
    try:
        bash.communicate(script(page, text, folder), timeout=SECONDS)
        good = bash.returncode == 0
    except subprocess.TimeoutExpired:
        print(f"{page}: not done after {SECONDS} s")
        good = False
    finally:
        try:
            os.killpg(bash.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        bash.wait()
    return good


def printed(folder, i):
    path = os.path.join(folder, f"out.{i}")
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def refill(text, folder):
    """The page with what its examples printed."""
    blocks = list(BLOCK.finditer(text))
    for i in reversed(range(len(blocks))):
        block = blocks[i]
        if block.group(2) is not None:
            text = text[:block.start(2)] + printed(folder, i) + text[block.end(2):]
    return text


def check(page, write):
    path = os.path.join(ROOT, page)
    with open(path, encoding="utf-8") as f:
        text = f.read()
    count = len(BLOCK.findall(text))
    with tempfile.TemporaryDirectory(prefix="hf-docs-") as folder:
        good = run(page, text, folder)
        if not good:
            for i in range(count):
                if not os.path.exists(os.path.join(folder, f"out.{i + 1}")):
                    print(printed(folder, i))
                    break
        elif write:
            with open(path, "w", encoding="utf-8") as f:
                f.write(refill(text, folder))
    if count == 0:
        print(f"{page}: no example was found")
    print(f"{page}: {count} examples: {'ok' if good else 'FAILED'}")
    return good and count > 0


def main(arguments):
    write = arguments[:1] == ["--write"]
    pages = arguments[1:] if write else arguments
    results = [check(page, write) for page in pages or PAGES]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
