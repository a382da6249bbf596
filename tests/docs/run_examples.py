#!/usr/bin/env python3
"""Run the examples of the documentation, as a reader would type them.

    run_examples.py [PAGE…]            exit 1 if a command's exit code is another
    run_examples.py --write [PAGE…]    also put what they print into the page

An example is a fenced block that begins with ```sh run. The blocks of a page run in order,
in one bash, in an empty folder, with the program in PATH. A command must exit with 0, or
with N where its line ends in `# exit N`. A ```text block right behind an example shows what
it printed, and must show it: except for ids and times, which are those of the last --write.
"""

import difflib
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
SECONDS = 50
HOME = "/home/ann"  # what a page shows for the folder that its examples run in
BLOCK = re.compile(r"^```sh run\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.S | re.M)
EXPECTED = re.compile(r"# exit (\d+)\s*$")
# What is another every time: ids, times, durations, pids and the widths that follow from them.
VARIES = ((re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+Z?"), "TIME"),
          (re.compile(r"(?:[0-9a-f]{8}-)(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"), "ID"),
          (re.compile(r"\b[0-9a-f]{8,}\b"), "ID"),
          (re.compile(r"\bc[0-9a-z]{24}\b"), "CALL"),
          (re.compile(r"\b\d+(?:\.\d+)?(?:ms|[smhd])\b"), "SPAN"),
          (re.compile(r"\b\d{4,}\b"), "N"),
          (re.compile(r"-{3,}|[ \t]+"), " "))


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
        return f.read().replace(os.path.join(folder, "scratch"), HOME)


def refill(text, folder):
    """The page with what its examples printed."""
    blocks = list(BLOCK.finditer(text))
    for i in reversed(range(len(blocks))):
        block = blocks[i]
        if block.group(2) is not None:
            text = text[:block.start(2)] + printed(folder, i) + text[block.end(2):]
    return text


def shape(text):
    """The lines of a text without what is another every time."""
    for pattern, word in VARIES:
        text = pattern.sub(word, text)
    return [line.strip() for line in text.splitlines()]


def differences(page, text, folder):
    """Lines that the page shows and the example did not print, or the other way round."""
    found = []
    for i, block in enumerate(BLOCK.finditer(text)):
        shown = block.group(2)
        if shown is not None and shape(shown) != shape(printed(folder, i)):
            line = text.count("\n", 0, block.start(2)) + 1
            found += [f"{page}:{line}: the example does not print this (--write renews it)"]
            found += list(difflib.unified_diff(shape(shown), shape(printed(folder, i)), "page",
                                               "printed", lineterm="", n=0))
    return found


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
        elif not write:
            other = differences(page, text, folder)
            print("\n".join(other), end="\n" if other else "")
            good = not other
        else:
            with open(path, "w", encoding="utf-8") as f:
                f.write(refill(text, folder))
    if count == 0:
        print(f"{page}: no example was found")
    print(f"{page}: {count} examples: {'ok' if good else 'FAILED'}")
    return good and count > 0


def all_pages():
    """README and the pages of docs/ that have an example."""
    pages = ["README.md"] + sorted("docs/" + name for name in os.listdir(os.path.join(ROOT, "docs"))
                                   if name.endswith(".md"))
    texts = [open(os.path.join(ROOT, page), encoding="utf-8").read() for page in pages]
    return [page for page, text in zip(pages, texts) if BLOCK.search(text)]


def main(arguments):
    write = arguments[:1] == ["--write"]
    pages = arguments[1:] if write else arguments
    results = [check(page, write) for page in pages or all_pages()]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
