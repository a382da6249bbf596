#!/usr/bin/env python3
"""Keep the generated parts of a page as their generator prints them.

    tools/gendoc.py PAGE GENERATOR            rewrite the parts
    tools/gendoc.py --check PAGE GENERATOR    exit 1 if one differs

A part lies between `<!-- made by NAME ARGUMENT -->` and `<!-- end -->`; NAME is the name of
the generator's file, which is run with the argument.
"""

import os
import re
import subprocess
import sys


def main(arguments):
    check = arguments[:1] == ["--check"]
    page, generator = arguments[1:] if check else arguments
    with open(page, encoding="utf-8") as f:
        text = f.read()
    name = os.path.basename(generator)
    part = re.compile(rf"(<!-- made by {re.escape(name)} (\w+) -->\n).*?(<!-- end -->)", re.S)

    def fresh(match):
        done = subprocess.run([generator, match.group(2)], capture_output=True, text=True,
                              check=True)
        body = done.stdout
        if match.group(2) == "mermaid":
            body = f"```mermaid\n{body}```\n"
        return f"{match.group(1)}\n{body}\n{match.group(3)}"

    made, count = part.subn(fresh, text)
    if count == 0:
        sys.exit(f"{page}: no part is made by {name}")
    if made == text:
        return 0
    if check:
        print(f"{page} is not as {name} prints it: tools/gendoc.py {page} {generator}")
        return 1
    with open(page, "w", encoding="utf-8") as f:
        f.write(made)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
