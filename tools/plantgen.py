#!/usr/bin/env python3
"""Plant bugs and marks in copies of the sources: the edits of kit/sim/plants and kit/sim/rare.

    plantgen.py list EDIT…                      the C files that are edited, one per line
    plantgen.py make --out DIR --sql FILE… -- EDIT…   the copies, and plants.c with the tables
    plantgen.py follow EDIT…                    after files moved: mend the `file:` lines

An edit is a text file. Lines that begin with a blank continue the line before them, lines that
begin with # are comments:

    what:  tokens of an old store incarnation are accepted
    store: sqlite                     the store of the simulator on which it shows, or `drives`:
                                      the simulator of drives (holdfast-sim --drives), or `turns`:
                                      the random turns of tests/turn (tests/turn/plants.py), or
                                      the test that finds it: run/spool

    file:  src/core/ledger/lease.c           one or more of these three
    old:   if (token->store != store)
    new:   if (token->store != store && !PLANTED)

    schema: DROP TRIGGER …            or, in addition: SQL that runs when the store is opened

The old text must be in the file exactly once; runs of blanks and line ends count as one blank.
In C, PLANTED is true while the bug of this name is switched on; a mark says REACHED instead,
which counts. The edit of a statement (sql/*.sql) is the statement with the mistake in it.
Edits are applied to the file as it is, so two of them must not overlap."""

import argparse
import difflib
import os
import pathlib
import re
import sys

import sqlgen

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KEYS = ("what", "store", "file", "old", "new", "schema")
STORES = ("model", "sqlite", "disk", "drives", "turns", "run/spool")


def fail(edit, message):
    sys.exit(f"plantgen: {os.path.relpath(edit.path, ROOT)}: {message}")


class Change:
    """One replacement in one file."""

    def __init__(self, file):
        self.file = file
        self.old = self.new = None

    def pattern(self):
        return re.compile(r"\s+".join(re.escape(word) for word in self.old.split()))


class Edit:
    """One planted bug, or one mark."""

    def __init__(self, path):
        self.path = os.path.abspath(path)
        self.name = os.path.splitext(os.path.basename(path))[0]
        self.is_mark = os.path.basename(os.path.dirname(self.path)) == "rare"
        self.what = self.store = self.schema = None
        self.changes = []
        with open(path, encoding="utf-8") as file:
            for key, value in fields(file.read(), self):
                self.take(key, value)
        self.check()

    def take(self, key, value):
        if key == "file":
            self.changes.append(Change(value))
        elif key in ("old", "new") and self.changes:
            setattr(self.changes[-1], key, value)
        elif key in ("what", "store", "schema"):
            setattr(self, key, value)
        else:
            fail(self, f"`{key}:` before any `file:`")

    def check(self):
        word = "REACHED" if self.is_mark else "PLANTED"
        if not self.what or self.store not in STORES:
            fail(self, f"it needs `what:` and `store:`, which is one of {', '.join(STORES)}")
        if not self.changes and not self.schema:
            fail(self, "it changes nothing: write `file:`, `old:` and `new:`")
        for change in self.changes:
            if not change.old or change.new is None:
                fail(self, f"{change.file}: it needs `old:` and `new:`")
            if change.file.endswith(".c") and not re.search(rf"\b{word}\b", change.new):
                fail(self, f"{change.file}: `new:` must say {word}, or it is always on")


def fields(text, edit):
    """(key, value) of each field; the indentation of continued lines goes."""
    text = re.sub(r"(?m)^#.*\n", "", text)
    for part in re.split(r"(?m)^(?=[a-z])", text):
        if not part.strip():
            continue
        key, found, value = part.partition(":")
        if not found or key not in KEYS:
            fail(edit, f"not understood: {part.splitlines()[0]!r}; fields are {', '.join(KEYS)}")
        first, *more = value.rstrip().split("\n")
        yield key, "\n".join([first.strip()] + [line[4:] for line in more]).strip()


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def nearest(text, old):
    """The line of the file that is most like the first line of the old text."""
    lines = text.splitlines()
    close = difflib.get_close_matches(old.splitlines()[0].strip(), [line.strip() for line in lines], 1, 0.5)
    if not close:
        return ""
    number = [line.strip() for line in lines].index(close[0]) + 1
    return f"\n  most like it is line {number}: {close[0]}"


def place(edit, change, text):
    """Where the old text is in the file: (begin, end)."""
    found = list(change.pattern().finditer(text))
    if len(found) == 1:
        return found[0].span()
    kind = "rare mark" if edit.is_mark else "planted bug"
    again = ("meson test -C build sim/rare_sqlite" if edit.is_mark
             else f"tests/sim/plants.py {edit.name}")
    fail(edit, f"its old text is in {change.file} {len(found)} times, not once:\n"
         f"  {change.old.splitlines()[0].strip()}{nearest(text, change.old)}\n"
         f"  The {kind} is: {edit.what}.\n"
         "  You changed the code that it edits. Make `old:` and `new:` the code as it is now, with the\n"
         "  same mistake (if the code moved to another file: tools/plantgen.py follow kit/sim/*/*.edit),\n"
         f"  then run: {again}")


def source(edit, change):
    path = os.path.join(ROOT, change.file)
    if not os.path.exists(path):
        fail(edit, f"there is no {change.file}; if it moved: tools/plantgen.py follow kit/sim/*/*.edit")
    return read(path)


def apply(text, replacements, where):
    """The text with each (begin, end, new, edit) replaced."""
    out, at, last = [], 0, None
    for begin, end, new, edit in sorted(replacements, key=lambda one: one[:2]):
        if begin < at:
            fail(edit, f"its old text in {where} overlaps that of {last.name}")
        out += [text[at:begin], new]
        at, last = end, edit
    return "".join(out) + text[at:]


def c_files(edits):
    return sorted({change.file for edit in edits for change in edit.changes
                   if change.file.endswith(".c")})


def copy_name(file):
    return "planted_" + file.replace("/", "_")


def indented(new, text, begin):
    """The new text with its lines as far in as the line that it begins in."""
    line = text[text.rfind("\n", 0, begin) + 1:begin]
    return new.replace("\n", "\n" + re.match(r"\s*", line).group())


def c_copy(file, plants, marks):
    replacements, text = [], ""
    for edits, word in ((plants, "PLANTED"), (marks, "REACHED")):
        for number, edit in enumerate(edits):
            says = f"hf_plant_is_on({number + 1})" if word == "PLANTED" else f"hf_rare_reached({number})"
            for change in edit.changes:
                if change.file == file:
                    text = source(edit, change)
                    begin, end = place(edit, change, text)
                    new = re.sub(rf"\b{word}\b", says, indented(change.new, text, begin))
                    replacements.append((begin, end, new, edit))
    return (f"/* {file} with the edits of kit/sim/plants and kit/sim/rare: tools/plantgen.py. */\n"
            "_Bool hf_plant_is_on(int number);\nvoid hf_rare_reached(int number);\n"
            + apply(text, replacements, file))


def sqlite_texts(paths, changed):
    """name: text of every statement of SQLite; `changed` are texts instead of files."""
    Instead.changed = changed
    statements = sqlgen.read_statements([Instead(path) for path in paths])
    return {one.name: one.lite() for one in statements}


class Instead(type(pathlib.Path())):
    """A path whose text may be another than the file's."""

    changed = {}

    def read_text(self):
        return self.changed.get(os.path.abspath(self)) or read(self)


def statements(edit, paths, right):
    """name: text of each statement that the edit changes."""
    changed = {}
    for change in edit.changes:
        if change.file.endswith(".sql"):
            path = os.path.join(ROOT, change.file)
            text = changed.get(path) or source(edit, change)
            begin, end = place(edit, change, text)
            changed[path] = text[:begin] + change.new + text[end:]
    if not changed:
        return {}
    wrong = {name: text for name, text in sqlite_texts(paths, changed).items() if text != right[name]}
    if not wrong:
        fail(edit, "it changes no statement of SQLite, where the simulator runs")
    return wrong


def quoted(text):
    return "NULL" if text is None else "\n" + sqlgen.c_string(text)


def tables(plants, marks, paths):
    right = sqlite_texts(paths, {})
    out = ["/* Made by tools/plantgen.py from kit/sim/plants and kit/sim/rare. */",
           '#include "sim/plants.h"', "", "#include <stdlib.h>", "#include <string.h>", "", "int hf_planted;",
           f"unsigned long long hf_rare_hits[{len(marks) or 1}];", "",
           "/* A test has no option for it. */",
           "__attribute__((constructor)) static void plant_by_variable(void)\n{",
           '    const char *name = getenv("HF_PLANT");',
           "    for (size_t i = 0; name && i < sim_plant_count; i++)",
           "        if (strcmp(sim_plants[i].name, name) == 0)",
           "            hf_planted = (int)i + 1;\n}", "",
           "bool hf_plant_is_on(int number)\n{\n    return hf_planted == number;\n}", "",
           "void hf_rare_reached(int number)\n{\n    hf_rare_hits[number]++;\n}", ""]
    for edit in plants:
        out.append(f"static const struct sim_statement of_{edit.name}[] = {{")
        out += [f'    {{ "{name}",{quoted(text)} }},'
                for name, text in statements(edit, paths, right).items()]
        out += ["    { NULL, NULL },", "};"]
    out.append("static const struct sim_plant plants[] = {")
    out += [f'    {{ "{edit.name}", "{edit.store}", "{edit.what}",{quoted(edit.schema)}, of_{edit.name} }},'
            for edit in plants]
    out += ["};", "static const struct sim_rare rares[] = {"]
    out += [f'    {{ "{edit.name}", "{edit.store}" }},' for edit in marks]
    out += ["};", "const struct sim_plant *const sim_plants = plants;",
            f"const size_t sim_plant_count = {len(plants)};",
            "const struct sim_rare *const sim_rares = rares;",
            f"const size_t sim_rare_count = {len(marks)};"]
    return "\n".join(out) + "\n"


def write(path, text):
    """Only what changed, so that only that is compiled again."""
    if not os.path.exists(path) or read(path) != text:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def make(edits, out, paths):
    plants = [edit for edit in edits if not edit.is_mark]
    marks = [edit for edit in edits if edit.is_mark]
    for file in c_files(edits):
        write(os.path.join(out, copy_name(file)), c_copy(file, plants, marks))
    write(os.path.join(out, "plants.c"), tables(plants, marks, paths))


def follow(edits):
    """Set each `file:` whose old text is not there to the one file that has it once."""
    files = [os.path.join(folder, name) for top in ("src", "sql")
             for folder, _, names in os.walk(os.path.join(ROOT, top)) for name in names
             if name.endswith((".c", ".sql"))]
    texts = {os.path.relpath(path, ROOT): read(path) for path in files}
    for edit in edits:
        text = read(edit.path)
        for change in edit.changes:
            pattern = change.pattern()
            if len(pattern.findall(texts.get(change.file, ""))) == 1:
                continue
            having = [path for path, code in texts.items() if len(pattern.findall(code)) == 1]
            if len(having) != 1:
                print(f"{edit.name}: {len(having)} files have its old text once, not 1: {' '.join(having)}")
                continue
            print(f"{edit.name}: {change.file} -> {having[0]}")
            text = re.sub(rf"(?m)^(file: +){re.escape(change.file)}$", rf"\g<1>{having[0]}", text)
        write(edit.path, text)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("act", choices=["list", "make", "follow"])
    parser.add_argument("--out")
    parser.add_argument("--sql", nargs="+", default=[])
    parser.add_argument("edits", nargs="+")
    given = parser.parse_args()
    edits = [Edit(path) for path in given.edits]
    if given.act == "list":
        print("\n".join(c_files(edits)))
    elif given.act == "make":
        make(edits, given.out, given.sql)
    else:
        follow(edits)


if __name__ == "__main__":
    main()
