"""The rule of tools/tidy.py for words (docs/STYLE.md): what is counted, and what to write instead.

Each file has a recorded count per entry (tools/words.json) that may only fall; a new file has none.
"""

import fnmatch
import io
import json
import os
import re
import tokenize

WORDS_FILE = "tools/words.json"
WORDS = [
    ("somebody", r"some(?:body|one)|any(?:body|one)|every(?:body|one)|nobody|no one|who(?:so)?ever|whom",
     "the thing in the code: thread, batch, row, caller"),
    ("gives", r"gives?|gave|given back", "\"returns\", or what the code does: stores, passes, assigns"),
    ("stands", r"stands?|stood", "\"is stored\", \"is in\", \"is written\""),
    ("else", r"(?-i:[Ee]lse)", "\"otherwise\""),
    ("but for", r"but for", "\"except\""),
    ("beside", r"besides?", "\"in addition to\" or \"next to\""),
    ("a for per", r"(?:one|once|twice|times|\d[\d,.]*)"
     r"(?: (?!(?:after|and|as|at|by|for|from|in|is|of|on|or|than|that|to|under|when|with) )\w+)? an? (?:batch|byte|call|caller|case|claim|column|commit"
     r"|connection|core|day|engine|event|file|fleet|function|group|handle|hour|key|line|message|minute|name|page"
     r"|program|queue|row|schedule|second|set|size|statement|step|store|table|thread|transaction|unit|word|worker)",
     "\"per\""),
    ("of", r"(?:tells?|told|says?|said|asks?|asked|hears?|heard|knows?|knew|known|learns?|learnt)"
     r" (?:(?:it|them|all|more|nothing|anything|something|one) )?of", "\"about\""),
    ("so long", r"so (?:long|many|much)\b(?! as| that)", "\"this long\", \"that many\""),
    ("born", r"born", "\"created as\", or the state that it has from the start"),
    ("goes on", r"(?:go(?:es)?|went|gone|going) on\b(?! (?:the|an?|stdout|stderr)\b)", "\"continues\", \"happens\""),
]
PROSE = (".c", ".h", ".py", ".sh", ".sql", ".md", ".build", ".edit", ".pml")
NOT_PROSE = ("docs/VERIFICATION.md", "docs/man/*", "tools/tidy.py", "tools/tidy_words.py", "tests/turn/golden/*")


def prose(f):
    """What a file says to people: comments and literals of C and Python, comments of other
    languages, what an edit plants, and Markdown without its code."""
    if f.is_c:
        return [text for _, _, text in f.comments] + [text for _, text in f.strings]
    if f.path.endswith(".md"):
        return re.split(r"(?s)```.*?```|`[^`\n]*`", f.text)
    if f.path.endswith(".sql"):
        return re.findall(r"--(.*)", f.text)
    if f.path.endswith(".pml"):
        return re.findall(r"(?s)/\*.*?\*/|//[^\n]*", f.text)
    if f.path.endswith(".edit"):
        return re.findall(r"(?m)^(?:what:|#)(.*(?:\n .*)*)", f.text)
    if is_python(f):
        return [re.sub(r"\{[^{}]*\}", "{}", token.string) for token in tokenize.generate_tokens(io.StringIO(f.text).readline)
                if token.type in (tokenize.COMMENT, tokenize.STRING)]
    return re.findall(r"(?<=#)[^\n]*", f.text)


def is_python(f):
    return f.path.endswith(".py") or f.lines[0].startswith("#!") and "python" in f.lines[0]


def word_counts(f):
    """entry: how often the file has it; nothing where it has none."""
    if f.generated or not (f.path.endswith(PROSE) or f.lines[0].startswith("#!")) or any(fnmatch.fnmatch(f.path, g) for g in NOT_PROSE):
        return {}
    text = re.sub(r"\s+[*#-]*\s*", " ", "\n".join(prose(f)))
    counts = {name: len(re.findall(rf"(?i)\b(?:{words})\b", text)) for name, words, _ in WORDS}
    return {name: count for name, count in counts.items() if count}


def read_words(tree):
    """The recorded counts by path. A file that moved has those of its old path: of the recorded
    files with its name that are not in the tree any more, the most of each word."""
    recorded = json.loads(next((f.text for f in tree if f.path == WORDS_FILE), "{}"))
    there = {f.path for f in tree}
    gone = {}
    for path in recorded.keys() - there:
        counts = gone.setdefault(os.path.basename(path), {})
        for name, count in recorded[path].items():
            counts[name] = max(count, counts.get(name, 0))
    for f in tree:
        if f.path not in recorded:
            recorded[f.path] = gone.get(os.path.basename(f.path), {})
    return recorded


def rule_words(tree):
    """of the words that docs/STYLE.md rules out a file has no more than its recorded count"""
    recorded = read_words(tree)
    for f in tree:
        had = recorded.get(f.path, {})
        for name, count in word_counts(f).items():
            if count > had.get(name, 0):
                words, instead = next((words, instead) for n, words, instead in WORDS if n == name)
                yield (f, word_line(f, words), f'"{name}" is here {count} times, and {had.get(name, 0)} are recorded: write '
                       f"{instead} (moved or split a file: tools/tidy.py --words)")


def word_line(f, words):
    """The last line with such a word, as far as lines go: new text is the more often below."""
    lines = [number for number, line in enumerate(f.lines, 1) if re.search(rf"(?i)\b(?:{words})\b", line)]
    return lines[-1] if lines else 1


def recorded_counts(f, exceptions):
    """The counts without those that an exception lets through."""
    excused = [what for rule, path, what, _ in exceptions if rule == "words" and fnmatch.fnmatch(f.path, path)]
    return {name: count for name, count in word_counts(f).items()
            if not any(re.fullmatch(what, f'"{name}" is') for what in excused)}


def lower_words(tree, exceptions, path):
    """Record what the tree has. Files may be moved, split and joined, but of no word may there be
    more than was recorded in all."""
    before = json.loads(next((f.text for f in tree if f.path == WORDS_FILE), "null"))
    now = {f.path: counts for f in tree if (counts := recorded_counts(f, exceptions))}
    for name, _, instead in WORDS:
        was = sum(counts.get(name, 0) for counts in (before or {}).values())
        is_now = sum(counts.get(name, 0) for counts in now.values())
        print(f"{name:10} {was:6} -> {is_now:6}")
        if before is not None and is_now > was:
            print(f'tidy: there is more of "{name}" than was recorded: write {instead}')
            return 1
    lines = [f"{json.dumps(path)}: {json.dumps(now[path], sort_keys=True)}" for path in sorted(now)]
    with open(path, "w", encoding="utf-8") as out:
        out.write("{\n" + ",\n".join(lines) + "\n}\n" if lines else "{}\n")
    return 0
