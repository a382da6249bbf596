#!/usr/bin/env python3
"""The paths of docs/ARCHITECTURE.md are those of the code, and stay short.

A path is a diagram and a table, with a mark `<!-- path: NAME, at most N files -->` between them. Each
row links a function to the file of src/ that defines it, and names what that file calls next. The
diagram names functions of the table only.
"""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
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


def main():
    with open(os.path.join(ROOT, "docs/ARCHITECTURE.md"), encoding="utf-8") as f:
        paths = MARK.findall(f.read())
    problems = [p for diagram, name, bound, rows in paths
                for p in problems_of(diagram, name, int(bound), rows)]
    if sorted(name for _, name, _, _ in paths) != PATHS:
        problems.append(f"docs/ARCHITECTURE.md must show the paths {', '.join(PATHS)}")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
