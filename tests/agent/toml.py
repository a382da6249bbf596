#!/usr/bin/env python3
"""The configuration's subset of TOML against Python's own reader of TOML.

Documents are made from a few by random edits. What ours reads, Python's must read, as the same
values; the originals must be read by both.
"""

import json
import os
import random
import subprocess
import sys
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
CORPUS = os.path.join(HERE, "..", "fuzz", "corpus", "toml")
EDITS = 6000
PIECES = ['"', "'", "\\", "=", "[", "]", ".", ",", "#", "\n", "\r\n", "\r", " ", "\t", "_", "-", "+", "0", "1",
          "e5", ".5", "true", "a", "[a]\n", "[t.u]\n", "b = 1\n", "\\u00e4", "\\x41", "'''", '"""', "{", "}", "\x7f",
          "1979-05-27", "inf", "0x1", "é"]


def originals():
    for name in sorted(os.listdir(CORPUS)):
        with open(os.path.join(CORPUS, name), encoding="utf-8", newline="") as f:
            yield f.read()
    yield "a = 1\n\n[b]\nc = [\n1,\n2]\n[b.d]\ne = ''\n"
    yield "x = 0\ny = -0\nz = 1e3\nw = 0.0\r\n\"\" = \"\"\n"


def edited(text, dice):
    for _ in range(dice.randint(1, 3)):
        at, to = sorted((dice.randint(0, len(text)), dice.randint(0, len(text))))
        kind = dice.randint(0, 3)
        middle, rest = dice.choice(PIECES), at + 1
        if kind == 0:
            rest = at
        elif kind == 1:
            middle = ""
        elif kind == 2 and to - at < 40:
            middle, rest = text[at:to] * 2, to
        text = text[:at] + middle + text[rest:]
    return text


def tables(dump):
    """The dump as Python's reader would have it."""
    whole = {}
    for path, pairs in dump:
        table = whole
        for part in path:
            table = table.setdefault(part, {})
        table.update(pairs)
    return whole


def main():
    dice = random.Random(23)
    first = list(originals())
    texts = first + [edited(dice.choice(first), dice) for _ in range(EDITS)]
    frames = b"".join(b"%d\n%s" % (len(t.encode()), t.encode()) for t in texts)
    done = subprocess.run([os.environ["TOML_DUMP"]], input=frames, capture_output=True, check=True, timeout=100)
    lines = done.stdout.decode().splitlines()
    assert len(lines) == len(texts), (len(lines), len(texts))
    read = 0
    for i, (text, line) in enumerate(zip(texts, lines)):
        ours = json.loads(line)
        if ours is None:
            assert i >= len(first), f"an original is refused: {text!r}"
            continue
        read += 1
        theirs = tomllib.loads(text)  # raises for what is no TOML
        # repr tells 1, 1.0 and True apart
        assert repr(sorted(tables(ours).items())) == repr(sorted(theirs.items())), (text, ours, theirs)
    assert read > EDITS // 10, read
    print(f"{read} of {len(texts)} documents are read, with the values of tomllib")
    return 0


sys.exit(main())
