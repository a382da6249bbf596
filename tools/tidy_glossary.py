"""The rules of tools/tidy.py for docs/glossary.md: which prefix belongs to which part, and which words
are not used where.

The page is the source: its table of parts names the headers and rooms of each part and the public
prefixes that it owns; its last table names words that have another name here.
"""

import re

from tidy_source import c_files, function_name, is_prototype, matches_any, room_of

GLOSSARY = "docs/glossary.md"
PARTS = "Parts and prefixes"
NOT_USED = "Words that are not used"
OF_ALL_PARTS = "of all parts"
TAG = re.compile(r"\b(?:struct|enum|union)\s+(hf_\w+)\s*\{")
RECORDS = ("docs/VERIFICATION.md", "docs/verification.json", "CHANGELOG.md", "docs/measurements/*",
           "tests/fuzz/*", "tools/tidy*.py", GLOSSARY)


def table(tree, heading):
    """The rows of the first table below a heading of the glossary: (file, line, cells)."""
    for f in tree:
        if f.path != GLOSSARY:
            continue
        below, rows = False, 0
        for number, line in enumerate(f.lines, 1):
            if line.startswith("#"):
                below, rows = line.lstrip("# ") == heading, 0
            elif below and line.startswith("|"):
                rows += 1
                if rows > 2:
                    yield f, number, [cell.strip() for cell in line.strip("|").split("|")]


def place_of(path):
    """The header of a public header, the room of any other."""
    return path.removeprefix("include/holdfast/") if path.startswith("include/") else room_of(path)


def family_of(name):
    m = re.match(r"hf_[a-z0-9]+", name)
    return m.group() if m else None


def declared(f):
    """The functions and tags that a header declares: (line, name, whether it is a tag)."""
    for kind, start, _, head in f.items():
        if is_prototype(kind, head):
            yield f.line_of(start), function_name(head), False
    for m in TAG.finditer(f.plain):
        yield f.line_of(m.start()), m.group(1), True


def rule_prefixes(tree):
    """a prefix belongs to one part, as the glossary's table says; a tag is no *_new"""
    rows = [(f, line, part, re.findall(r"`([^`]+)`", places), re.findall(r"`([^`]+)`", prefixes))
            for f, line, (part, _, places, prefixes) in table(tree, PARTS)]
    if not rows:
        return
    part_of, used = {}, set()
    for f, line, part, places, prefixes in rows:
        for word in places + prefixes:
            if part_of.setdefault(word, part) != part:
                yield f, line, f"{word} belongs to {part_of[word]} already"
    listed = set(part_of)
    for f in c_files(tree, "include/", "src/", "kit/"):
        place, public = place_of(f.path), f.path.startswith("include/")
        part = part_of.get(place)
        used.add(place)
        if part is None:
            yield f, 1, f"{place} is in no row of {GLOSSARY}, \"{PARTS}\""
        for line, name, tag in declared(f) if f.path.endswith(".h") and part else ():
            prefix = family_of(name)
            if tag and name.endswith("_new"):
                yield f, line, f"struct {name}: what a caller asks to be made is a _spec"
            if public and prefix and prefix not in listed:
                yield f, line, f"{name}: {prefix} is in no row of {GLOSSARY}, \"{PARTS}\""
            elif prefix and part != OF_ALL_PARTS and part_of.setdefault(prefix, part) != part:
                yield f, line, f"{name}: {prefix} belongs to {part_of[prefix]}, and {place} to {part}"
            used.add(prefix)
    for f, line, _, places, prefixes in rows:
        for word in places + prefixes:
            if word not in used:
                yield f, line, f"{word} is declared nowhere"


def rule_not_used(tree):
    """words that the glossary rules out, in names and prose, where it rules them out"""
    for _, _, (words, where, instead) in table(tree, NOT_USED):
        globs = re.findall(r"`([^`]+)`", where) or ["*"]
        for word in re.findall(r"`([^`]+)`", words):
            found = re.compile(rf"(?<![a-z]){word}(?![a-z])", re.I)
            for f in tree:
                if not matches_any(f.path, globs) or matches_any(f.path, RECORDS):
                    continue
                for number, line in enumerate(f.lines, 1):
                    m = found.search(line)
                    if m:
                        yield f, number, f"\"{m.group()}\" is not used here: write {instead}"
