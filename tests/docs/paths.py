#!/usr/bin/env python3
"""The paths of docs/ARCHITECTURE.md are those of the code, and stay short; its tables have all rooms
and all public headers.

A path is a diagram and a table, with a mark `<!-- path: NAME, at most N files -->` between them. Each
row links a function to the file of src/ that defines it, and names what that file calls next. The
diagram names functions of the table only.
"""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
from tidy import ROOMS  # noqa: E402, pylint: disable=wrong-import-position

MARK = re.compile(r"```mermaid\nflowchart LR\n([^`]*)```\n\n<!-- path: (\w+), at most (\d+) files -->\n"
                  r"\|.*\n\|.*\n((?:\|.*\n)+)")
ROW = re.compile(r"\| \[`(\w+)`\]\(\.\./src/([\w/]+\.c)\) \| [^|]+ \| (.*)\|")
PATHS = ["claim", "close_out", "commit", "create", "model_call", "step", "sweep"]


def defines(text, name):
    return re.search(rf"(?m)^\w[^;\n]*\b{name}\([^;]*?\)\n{{", text) is not None


def problems_of(diagram, name, bound, rows):
    files, functions = set(), set()
    for line in rows.splitlines():
        row = ROW.match(line)
        if not row:
            yield f"{name}: this row is not [`function`](file) | does | calls: {line}"
            continue
        function, file, calls = row.groups()
        files.add(file)
        functions.add(function)
        try:
            with open(os.path.join(ROOT, "src", file), encoding="utf-8") as f:
                text = f.read()
        except FileNotFoundError:
            yield f"{name}: there is no src/{file}"
            continue
        if not defines(text, function):
            yield f"{name}: src/{file} does not define {function}"
        for call in re.findall(r"`([\w>-]+)`", calls):
            if f"{call}(" not in text:
                yield f"{name}: src/{file} does not call {call}"
    nodes = set(re.findall(r"\b[a-z]\w*_\w+|\blead\b", re.sub(r'"[^"]*"', "", diagram)))
    for node in sorted(nodes - functions):
        yield f"{name}: the diagram names {node}, and the table does not"
    if len(files) > bound:
        yield f"{name}: {len(files)} files, more than {bound}"


def table_problems(text):
    """Rooms and public headers that a table of the page lacks, or has and the tree has not."""
    inside, outside = text.split("\nOutside `src/`:\n")
    rows = re.findall(r"(?m)^\| (`[^|]*) \|", inside.split("\n| room |")[1])
    named = [room for row in rows for room in re.findall(r"`([\w/]+)`", row)]
    named += re.findall(r"`kit/(\w+)`", re.search(r"(?m)^\| `kit/[^|]*\|", outside).group())
    for room in sorted(set(ROOMS) ^ set(named)):
        yield f"the room {room} is " + ("in no row of the table" if room in ROOMS else "not in ROOMS of tools/tidy.py")
    for room in sorted(room for room in set(named) if named.count(room) > 1):
        yield f"the room {room} has two rows"
    for folder in ("", "sys/"):
        cells = re.findall(rf"(?m)^\| `include/holdfast/{folder}`[^|]*\|(.*)\|$", outside)
        listed = re.findall(r"`(\w+\.h)`", " ".join(cells))
        there = [os.path.basename(path) for path in glob.glob(os.path.join(ROOT, "include/holdfast", folder, "*.h"))]
        if sorted(listed) != sorted(there):
            yield f"include/holdfast/{folder}: the rows and the folder differ in {sorted(set(listed) ^ set(there))}"


def main():
    with open(os.path.join(ROOT, "docs/ARCHITECTURE.md"), encoding="utf-8") as f:
        text = f.read()
    paths = MARK.findall(text)
    problems = list(table_problems(text))
    problems += [p for diagram, name, bound, rows in paths
                for p in problems_of(diagram, name, int(bound), rows)]
    if sorted(name for _, name, _, _ in paths) != PATHS:
        problems.append(f"docs/ARCHITECTURE.md must show the paths {', '.join(PATHS)}")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
