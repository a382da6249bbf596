#!/usr/bin/env python3
"""An edit of kit/sim that cannot be applied as it was meant fails, and says how to mend it."""

import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(ROOT, "tools", "plantgen.py")
SQL = [os.path.join(ROOT, "sql", name) for name in ("attention.sql", "work.sql")]
HEAD = "what:  a sample\nstore: sqlite\n\n"
THIS = "tools/gen_lifecycle.c"  # any C file

# name of the case, the edit, what the message must say
REFUSED = [
    ("an old text that is not there is refused",
     HEAD + f"file:  {THIS}\nold:   no such text\nnew:   PLANTED\n",
     [f"is in {THIS} 0 times", "tests/sim/plants.py sample", "a sample"]),
    ("an old text that is there more than once is refused",
     HEAD + f"file:  {THIS}\nold:   return\nnew:   PLANTED\n", ["times, not once"]),
    ("a file that is not there is refused",
     HEAD + "file:  src/none.c\nold:   a\nnew:   PLANTED\n", ["there is no src/none.c", "follow"]),
    ("a bug that would always be on is refused",
     HEAD + f"file:  {THIS}\nold:   int main(\nnew:   int main(\n", ["must say PLANTED"]),
    ("edits that overlap are refused",
     HEAD + f"file:  {THIS}\nold:   int main(int argc\nnew:   PLANTED\n\n"
     f"file:  {THIS}\nold:   main(int argc\nnew:   PLANTED\n", ["overlaps"]),
    ("an edit of a statement that SQLite does not have is refused",
     HEAD + "file:  sql/pg/claim.sql\nold:   -- name: work_claim_lone\nnew:   -- name: work_claim_lone\n",
     ["changes no statement of SQLite"]),
    ("an edit that changes nothing is refused", HEAD, ["it changes nothing"]),
    ("an unknown field is refused", HEAD + "files: a\n", ["not understood"]),
]


def make(text):
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "plants", "sample.edit")
        os.mkdir(os.path.dirname(path))
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return subprocess.run([sys.executable, TOOL, "make", "--out", scratch, "--sql", *SQL, "--", path],
                              check=False, capture_output=True, text=True)


def main():
    wrong = 0
    for case, text, says in REFUSED:
        done = make(text)
        missing = [part for part in says if part not in done.stderr]
        if done.returncode == 0 or missing or "sample.edit" not in done.stderr:
            wrong += 1
            print(f"{case}: exit {done.returncode}, without {missing}: {done.stderr}")
    done = make(HEAD + f"file:  {THIS}\nold:   int\n    main(int argc\nnew:   int PLANTED main(int argc\n")
    if done.returncode:
        wrong += 1
        print(f"blanks in the old text do not matter: {done.stderr}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
