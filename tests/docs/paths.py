#!/usr/bin/env python3
"""The paths of docs/ARCHITECTURE.md are those of the code, and stay short.

A path is a table behind a mark `<!-- path: NAME, at most N files -->`. Each row names a file of
src/, a function that it defines, and what that function's file calls next.
"""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MARK = re.compile(r"<!-- path: (\w+), at most (\d+) files -->\n\|.*\n\|.*\n((?:\|.*\n)+)")
ROW = re.compile(r"\| `([\w/]+\.c)` \| `(\w+)` \| (.*)\|")


def defines(text, name):
    return re.search(rf"(?m)^\w[^;\n]*\b{name}\([^;]*?\)\n{{", text) is not None


def problems_of(name, bound, rows):
    files = set()
    for line in rows.splitlines():
        row = ROW.match(line)
        if not row:
            yield f"{name}: this row is not `file` | `function` | calls: {line}"
            continue
        file, function, calls = row.groups()
        files.add(file)
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
    if len(files) > bound:
        yield f"{name}: {len(files)} files, more than {bound}"


def main():
    with open(os.path.join(ROOT, "docs/ARCHITECTURE.md"), encoding="utf-8") as f:
        paths = MARK.findall(f.read())
    problems = [p for name, bound, rows in paths for p in problems_of(name, int(bound), rows)]
    if sorted(name for name, _, _ in paths) != ["claim", "create"]:
        problems.append("docs/ARCHITECTURE.md must show the paths claim and create")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
