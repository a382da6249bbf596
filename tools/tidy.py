#!/usr/bin/env python3
"""The tidy test: what docs/STYLE.md asks and a compiler does not check.

    tools/tidy.py               check the tree; one line a problem, exit 1 if there is any
    tools/tidy.py --selftest    feed every rule a sample that breaks it
    tools/tidy.py --list        name the rules
    tools/tidy.py --words       lower the recorded counts of words (tools/words.json) to what the
                                tree has, and follow files that moved

A rule is a function over the whole tree that yields (file, line, message). It sees C through
the views of class Source (tidy_source.py), where comments and literals are blanked but every line
is where it was. What a rule must let through by name is in EXCEPTIONS, with the reason.
"""

import fnmatch
import os
import re
import subprocess
import sys
import tempfile

from tidy_glossary import rule_not_used, rule_prefixes
from tidy_source import (Source, c_files, function_name, is_prototype, layer_of, matches_any, matching,
                         room_of, without_attributes)
from tidy_words import WORDS_FILE, lower_words, rule_words

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 1000
COLUMNS_MAX = 100
TABLE_COLUMNS_MAX = 120
PARAMETERS_MAX = 5
CLONE_LINES = 12

# rule, path (glob), what the rule would report (regular expression, whole match), why not
EXCEPTIONS = [
    ("layers", "src/base/err.c", r".*<stdio\.h>",
     "an error's message is formatted into the caller's record"),
    ("banned", "src/base/err.c", r"vsnprintf\(\).*", "as above"),
    ("banned", "src/base/err.c", r"(fprintf|abort)\(\).*",
     "hf_assert: a broken promise says where, and ends the process"),
    ("sql", "src/db/lite/args.c", r"SQL in a string literal.*",
     "a virtual table tells SQLite its columns by a CREATE TABLE"),
    ("banned", "src/os/child.c", r"_exit\(\).*",
     "a forked child that could not execute its command ends itself, not its host"),
    ("banned", "src/run/command/keeper.c", r"_exit\(\).*", "as above"),
    ("banned", "kit/conform/kit.c", r"(vsnprintf|snprintf|strcmp)\(\).*",
     "the suite links with the public library only: base/ is out of its reach"),
    ("errors", "include/holdfast/sys/conformance.h", ".*hf_conform_run.*",
     "it returns -1 with a text: a case that fails has no code"),
    ("errors", "include/holdfast/turn_json.h", ".*", "the first comment of the file lists them"),
    ("words", "*json_schema*", r"\"else\" is.*", "a keyword of JSON Schema"),
    ("words", "tests/cli/run.py", r"\"else\" is.*", "a keyword of the shell"),
    ("words", "tests/exec/gen.c", r"\"else\" is.*", "a keyword of Lua"),
    ("words", "tests/exec/escape_order.c", r"\"a for per\" is.*", "an output of two words that a test compares"),
    ("banned", "kit/sim/say.c", r"(vsnprintf|snprintf)\(\).*", "as above, of the simulator"),
]

# A room is a folder of src/ or kit/. It includes itself, base, and the rooms that its line names;
# `store/*` means all rooms below store/. Tests, bench and tools include anything.
ROOMS = {
    "base": "",
    "os": "",
    "core": "",  # the generated texts for models
    "core/effect": "",
    "core/ledger": "",
    "core/inputs": "core/*",
    "core/process": "core/ledger",
    "core/schedule": "core/ledger",
    "core/session": "core/ledger",
    "core/trigger": "core/ledger core/process",
    "core/wait": "core/ledger",
    "core/turn": "core core/turn/code",  # one part: the code protocol has a folder of its own
    "core/turn/code": "core/turn",
    "db": "os",
    "db/lite": "os db",
    "db/pg": "os db",
    "store/batch": "core/ledger db",
    "store": "os core/ledger core/wait db db/* store/*",  # store.h and store.c put the parts together
    **{"store/" + part: "os core/ledger core/wait db store store/batch"
       for part in ("work", "lease", "limit", "feed", "upkeep", "doctor")},
    "store/process": "core/ledger core/process store store/batch",
    "store/schedule": "core/ledger core/schedule store store/batch",
    "store/session": "os core/ledger core/session core/wait store store/batch",
    "store/wait": "core/ledger core/session core/wait store store/batch store/session",
    "store/trigger": "core/ledger core/trigger store store/batch store/process",
    "store/watch": "os core/ledger store store/batch",
    "store/api": "core/* store store/*",
    "exec/cell": "core/turn",
    "exec/lua": "core/turn exec/cell",
    **{"run/" + part: "os core/ledger core/inputs store/api store/batch"
       for part in ("attach", "command", "ingress", "monitor", "pool", "process", "wait")},
    "net": "",  # libholdfast-net: of the other library public headers only
    "agent": "agent/wire",  # likewise
    "agent/agent": "",
    "agent/config": "agent agent/wire",
    "agent/drive": "",
    "agent/tool": "",
    "agent/worker": "",
    "agent/wire": "",
    "op/shapes": "core/*",  # the answers as rows
    "op": "op/shapes core/*",  # what can be asked for; each transport reads its table
    "cli": "op op/shapes",  # of the library public headers only
    **{"cli/" + part: "cli op op/shapes" for part in ("cmd", "table")},
    "cli/demo": "cli op",
    "cli/model": "cli cli/cmd",
    "cli/chat": "cli cli/model op",
    "conform": "",  # public headers only: any store can be tested with it
    "sim": "",  # likewise
}
ANYWHERE = {"base"}
ROOM_FILES_MAX = 45
PURE_LAYERS = {"base", "core"}
PURE_FOLDERS = ("src/agent/wire/",)  # of a layer that is not pure
IMPURE_HEADERS = re.compile(r"time\.h|stdio\.h|sys/.*")
CORE_HEADERS = re.compile(
    r"assert|ctype|errno|float|inttypes|iso646|limits|math|setjmp|stdalign|stdarg|stdatomic"
    r"|stdbool|stddef|stdint|stdlib|stdnoreturn|string|strings"
)

UNSAFE = "unbounded, locale-bound or without an error: use base/"
PRINTS = "the library never prints: return the error"
STRINGLY = "compare enums: text is parsed once, at the edge"
HIDDEN = "hidden input: time and randomness come in as values"

# names, where banned (path prefixes), where allowed all the same (path globs), why
BANNED = [
    ("sprintf vsprintf strcpy strcat strncpy strncat strtok gets atoi atol atoll atof sscanf",
     ("src/", "kit/", "include/", "tests/", "bench/"), (), UNSAFE),
    ("alloca setjmp longjmp", ("src/", "kit/", "include/", "tests/", "bench/"), (), UNSAFE),
    ("system popen", ("src/", "kit/", "include/"), (), "no shell: use the process runner"),
    ("rand srand random srandom drand48", ("src/", "kit/", "include/", "tests/", "bench/"), (), HIDDEN),
    ("snprintf vsnprintf asprintf vasprintf dprintf", ("src/", "kit/", "include/"),
     ("src/cli/*", "src/op/*", "src/base/buf.c", "src/base/fmt.c"),
     "text is built with base/buf, SQL is bound, JSON has a writer"),
    ("strcmp strncmp strcasecmp strncasecmp", ("src/", "kit/", "include/"),
     ("src/cli/*", "src/base/*"), STRINGLY),
    ("printf fprintf vprintf vfprintf puts putchar fputs perror", ("src/", "kit/", "include/"),
     ("src/cli/*",), PRINTS),
    ("malloc calloc realloc reallocarray free strdup strndup", ("src/", "kit/", "include/"),
     ("src/cli/*", "src/os/system.c"), "memory comes from the handle's allocator"),
    ("exit _exit abort", ("src/", "kit/", "include/"), ("src/cli/*",),
     "a library ends nobody's process: return, or hf_assert"),
    ("assert", ("src/", "kit/", "include/"), (), "use hf_assert, which stays on in release"),
    ("time gettimeofday clock_gettime localtime gmtime mktime getrandom getentropy",
     ("src/base/", "src/core/", "src/db/", "src/store/", "src/agent/wire/", "include/"), (), HIDDEN),
]

TEST_PAUSES = re.compile(r"\b(?:u|nano|clock_nano)?sleep\s*\(")
SCRIPT_PAUSES = re.compile(r"(?:^|[;&|(]|\bdo|\bthen)\s*sleep\s|\btime\.sleep\s*\(")
SQL_TEXT = re.compile(
    r"\b(?:SELECT|INSERT|UPDATE|DELETE|REPLACE|CREATE|ALTER|DROP)\s(?!/)"  # "DELETE /v1/…" is a route
    r"|\b(?:insert\s+into|delete\s+from|update\s+\w+\s+set"
    r"|select\s.*\sfrom\s+\w+\s+(?:where|order|group|limit)"
    r"|create\s+(?:table|index|trigger|view))\s"
)
UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b")
LISTS_ERRORS = re.compile(r"\bHF_E[A-Z]|(?i:\berrors\s+(?:\*\s*)?(?:of|are|as)\b)|\bfails as\b")
TEXT_SUFFIXES = (".c", ".h", ".py", ".sh", ".sql", ".md", ".build", ".txt", ".yml", ".bash", ".edit", ".pml")


def may_include(room, other):
    if other == room or other in ANYWHERE:
        return True
    allowed = ROOMS[room].split()
    return other in allowed or any(a.endswith("/*") and other.startswith(a[:-1]) for a in allowed)


# The rules.


def rule_layers(tree):
    """a room includes only the rooms under it; base and core do no I/O and see no clock"""
    for f in c_files(tree, "src/", "kit/", "include/"):
        room, layer = room_of(f.path), layer_of(f.path)
        if not f.path.startswith("include/") and room not in ROOMS:
            yield f, 1, f"{f.path} lies in no room of tools/tidy.py"
            continue
        for line, target in f.includes():
            name = target[1:-1]
            if target[0] == "<":
                pure = layer in PURE_LAYERS or f.path.startswith(PURE_FOLDERS)
                if pure and IMPURE_HEADERS.fullmatch(name):
                    yield f, line, f"{layer}/ must not include {target}"
                elif (layer == "core" and not name.startswith("holdfast/")
                      and not CORE_HEADERS.fullmatch(name[:-2])):
                    yield f, line, f"core/ is plain C: it must not include {target}"
                continue
            other = name.rpartition("/")[0]
            if room is None:
                yield f, line, f"a public header must not include {target}"
            elif not other:
                yield f, line, f'{target} must name its room, as in "base/buf.h"'
            elif not may_include(room, other):
                yield f, line, f"{room}/ must not include {other}/: {target}"


def rule_rooms(tree):
    """a room has at most 45 files"""
    files = {}
    for f in c_files(tree, "src/"):
        files.setdefault(room_of(f.path), []).append(f)
    for room, inside in files.items():
        if len(inside) > ROOM_FILES_MAX:
            yield inside[0], 1, f"{room}/ has {len(inside)} files, more than {ROOM_FILES_MAX}"


def rule_banned(tree):
    """banned functions, each where it is banned"""
    for names, where, allowed, why in BANNED:
        call = re.compile(r"(?<![\w.>])(" + "|".join(names.split()) + r")\s*\(")
        for f in c_files(tree, *where):
            if matches_any(f.path, allowed):
                continue
            for m in call.finditer(f.code):
                yield f, f.line_of(m.start(1)), f"{m.group(1)}() is banned here: {why}"


def rule_function_length(tree):
    """a function has at most 70 lines"""
    for f in c_files(tree, ""):
        for start, end, head in f.functions():
            length = f.line_of(end - 1) - f.line_of(start) + 1
            if length > FUNCTION_LINES_MAX and not f.generated:
                yield (f, f.line_of(start),
                       f"{function_name(head)} has {length} lines, more than {FUNCTION_LINES_MAX}")


def rule_parameters(tree):
    """a function takes at most 5 parameters beside ret_* and err, else a struct"""
    for f in c_files(tree, "src/", "kit/", "include/"):
        for kind, start, _, head in f.items():
            if not is_prototype(kind, head):
                continue
            count = parameter_count(head)
            if count > PARAMETERS_MAX:
                yield (f, f.line_of(start), f"{function_name(head)} takes {count} parameters, "
                       f"more than {PARAMETERS_MAX}: pass a struct")


def parameter_count(head):
    bare = without_attributes(head)
    at = bare.index("(")
    inside, depth, parameters = bare[at + 1:matching(bare, at) - 1], 0, [""]
    for c in inside:
        depth += {"(": 1, ")": -1}.get(c, 0)
        if c == "," and depth == 0:
            parameters.append("")
        else:
            parameters[-1] += c
    return sum(not re.search(r"\bret_\w+\W*$|\*err$|^\s*(?:void)?\s*$", p) for p in parameters)


def rule_file_length(tree):
    """a file has at most 1000 lines"""
    for f in tree:
        length = f.text.count("\n")
        if f.path.endswith((".c", ".h", ".py", ".sql")) and not f.generated \
                and length > FILE_LINES_MAX:
            yield f, length, f"{length} lines, more than {FILE_LINES_MAX}"


def rule_columns(tree):
    """a comment has at most 100 columns, a hand-aligned table 120; clang-format holds code to 90"""
    for f in c_files(tree, ""):
        limit = COLUMNS_MAX
        for number, line in enumerate(f.lines, 1):
            if "clang-format off" in line:
                limit = TABLE_COLUMNS_MAX
            elif "clang-format on" in line:
                limit = COLUMNS_MAX
            if len(line) > limit and not f.generated:
                yield f, number, f"{len(line)} columns, more than {limit}"


def rule_wrap(tree):
    """a page has at most 100 columns, except tables, code, headings and generated parts; code is
    fenced and each row of a table is a line, so that wrapping a page cannot join them"""
    for f in tree:
        if not f.path.endswith(".md") or f.path == "docs/VERIFICATION.md":
            continue
        code = made = False
        before = ""
        for number, line in enumerate(f.lines, 1):
            code ^= line.lstrip().startswith("```")
            made = not line.startswith("<!-- end") and (made or line.startswith("<!-- made by"))
            free = code or made or line.lstrip().startswith("|") or line.startswith(("#", "<!--"))
            if not free and len(line) > COLUMNS_MAX and " " in line.strip():
                yield f, number, f"{len(line)} columns, more than {COLUMNS_MAX}"
            if not code and line.startswith("    ") and not before.strip() and not re.match(r" +(?:[-*]|\d+\.) ", line):
                yield f, number, "indented code: put it between ``` lines"
            if not code and re.search(r"\|[ -]*---[- |]*\|.*\w|\w.*\|[ -]*---", line):
                yield f, number, "rows of a table joined in one line"
            before = line


def rule_whitespace(tree):
    """no tabs in C, no blanks at line ends, one newline at the end"""
    for f in tree:
        for number, line in enumerate(f.lines, 1):
            if f.is_c and "\t" in line:
                yield f, number, "tab"
            if line != line.rstrip() and not f.path.endswith(".md"):
                yield f, number, "blanks at the end of the line"
        if f.text and (not f.text.endswith("\n") or f.text.endswith("\n\n")):
            yield f, len(f.lines), "the file must end in exactly one newline"


def rule_unfinished(tree):
    """no notes to self: open ends are issues"""
    for f in tree:
        for number, line in enumerate(f.lines, 1):
            m = UNFINISHED.search(line)
            if m:
                yield f, number, f"{m.group()}: open ends are issues, not comments"


def rule_globals(tree):
    """no changing data at file scope (or static in a function) outside cli/ and run/"""
    for f in c_files(tree, "src/", "kit/", "include/"):
        if layer_of(f.path) in ("cli", "run"):
            continue
        for kind, start, end, text in f.items():
            if kind == "declaration":
                name = changing_variable(text)
                if name:
                    yield f, f.line_of(start), f"{name} is changing data at file scope"
                continue
            body = f.plain[start:end]
            for m in re.finditer(r"(?:(?<=[;{}])|(?<=\n))\s*static\s[^;{]*[;{]", body):
                name = changing_variable(m.group().replace("{", "{};"))
                if name:
                    yield (f, f.line_of(start + m.end() - 1),
                           f"{name} is changing data that outlives its function")


def changing_variable(text):
    """The name of the variable that this declaration makes, if it can change; else None."""
    bare = without_attributes(text).strip()
    if re.match(r"(?:typedef|_Static_assert|static_assert)\b|;$", bare):
        return None
    bare = re.sub(r"=.*", "", bare, flags=re.S).rstrip("; \n")
    if re.fullmatch(r"(?:static\s+|const\s+)*(?:struct|union|enum)\s*\w*\s*(?:\{\})?", bare):
        return None
    pointer = re.search(r"\(\s*\*\s*(const\b)?\s*(\w+)\s*(?:\[[^]]*\]\s*)*\)\s*\(", bare)
    if pointer:
        return None if pointer.group(1) else pointer.group(2)
    if "(" in bare:
        return None
    bare = re.sub(r"\[[^]]*\]", "", bare).strip()
    m = re.search(r"(\w+)$", bare)
    if not m or " " not in bare.replace("\n", " ").replace("*", " "):
        return None
    of_value = bare.rsplit("*", 1)[-1] if "*" in bare else bare
    return None if re.search(r"\bconst\b", of_value) else m.group(1)


def rule_pauses(tree):
    """no test sleeps, but those in tests/soak: step the clock, or wait for the event"""
    for f in tree:
        if not f.path.startswith("tests/") or f.path.startswith("tests/soak/"):
            continue
        pattern = TEST_PAUSES if f.is_c else SCRIPT_PAUSES
        if not f.is_c and not f.path.endswith((".sh", ".py")):
            continue
        for number, line in enumerate((f.code if f.is_c else f.text).split("\n"), 1):
            if pattern.search(line):
                yield f, number, "a test must not sleep"


def rule_sql(tree):
    """SQL text lives in sql/"""
    for f in c_files(tree, "src/", "kit/", "include/"):
        if f.generated:
            continue
        for line, literal in f.strings:
            if SQL_TEXT.search(literal):
                yield f, line, "SQL in a string literal: it belongs in sql/"


def rule_tags(tree):
    """a tag that begins with hf_, or is in a header, names one type"""
    first, in_header = {}, set()
    places = [(f, m) for f in c_files(tree, "src/", "kit/", "include/")
              for m in re.finditer(r"\b(?:struct|enum|union)\s+(\w+)\s*\{", f.plain)]
    for f, m in sorted(places, key=lambda place: (not place[0].path.endswith(".h"), place[0].path)):
        tag = m.group(1)
        if f.path.endswith(".h"):
            in_header.add(tag)
        if tag not in first:
            first[tag] = f.path
        elif tag in in_header or tag.startswith("hf_"):
            yield f, f.line_of(m.start()), f"{tag} names another type in {first[tag]}"


def rule_public_comments(tree):
    """every function of a public header has a comment: alone, or over its unbroken group"""
    for f in c_files(tree, "include/"):
        comment_ends = {last for _, last, _ in f.comments}
        comment_starts = {first for first, _, _ in f.comments}
        covered_until = -1
        for kind, start, end, head in f.items():
            first, last = f.line_of(start), f.line_of(end - 1)
            if first - 1 in comment_ends or last in comment_starts or first - 1 == covered_until:
                covered_until = last
            elif is_prototype(kind, head):
                yield f, first, f"{function_name(head)} has no comment"


def rule_errors(tree):
    """the comment of a fallible public function lists its errors, or names whose they are"""
    for f in c_files(tree, "include/"):
        starts = {first: text for first, _, text in f.comments}
        ends = {last: text for _, last, text in f.comments}
        covered_until, covering = -1, ""
        for kind, start, end, head in f.items():
            first, last = f.line_of(start), f.line_of(end - 1)
            if first - 1 in ends:
                covering = ends[first - 1]
            elif first - 1 != covered_until:
                covering = ""
            covered_until = last
            if is_prototype(kind, head) and "HF_MUST_USE" in head \
                    and not LISTS_ERRORS.search(covering + starts.get(last, "")):
                yield f, first, f"the comment of {function_name(head)} lists no errors"


def rule_names(tree):
    """a comment in C names only those hf_* and HF_* that exist"""
    known = set()
    for f in tree:
        text = f.nocomment if f.is_c else "" if f.path.endswith(".md") else f.text
        known.update(re.findall(r"\b(?:HF|hf)_\w+", text))
        made = set(re.findall(r"\b((?:HF|hf)_\w*)##", text))  # by the rows of an X-macro
        known.update(prefix + row for prefix in made for row in re.findall(r"\bX\(\s*(\w+)", text))
    for f in c_files(tree, "include/", "src/", "kit/"):
        for first, _, text in f.comments:
            for m in re.finditer(r"\b(?:HF|hf)_\w*[^\W_]\b(?!\*|\u2026|\.h|\.c)", text):
                if m.group() not in known:
                    yield f, first + text.count("\n", 0, m.start()), f"there is no {m.group()}"


def rule_listed(tree):
    """every source is named in a meson.build, and the lists of names are sorted"""
    builds = {f.path: f for f in tree if f.path.endswith("meson.build")}
    for f in c_files(tree, "src/", "kit/", "include/", "tests/"):
        folder, name = os.path.split(f.path)
        if f.path.startswith(("src/", "kit/")) and name.endswith(".h"):
            continue
        if f.path.startswith("tests/") and name.endswith(".h"):
            continue
        if f.path.startswith("tests/"):
            kind = os.path.basename(folder)
            known = builds.get("tests/meson.build")
            short = re.sub(r"^test_|\.c$", "", name)
            wanted = rf"'{re.escape(short)}'|'{re.escape(kind)}/{re.escape(name)}'"
        else:
            while folder and folder + "/meson.build" not in builds:
                folder = os.path.dirname(folder)
            known = builds.get(folder + "/meson.build")
            wanted = rf"'{re.escape(os.path.relpath(f.path, folder))}'" if folder else ""
        if known is None or not re.search(wanted, known.text):
            yield f, 1, "named in no meson.build, so never built"
    for f in builds.values():
        before = None
        for number, line in enumerate(f.lines, 1):
            m = re.fullmatch(r"\s*'([\w./-]+)',", line)
            if re.search(r"(?:files\(|\[)$", line):
                before = ""
            elif not m:
                before = before if line.lstrip().startswith("#") else None
            elif before is not None:
                if m.group(1) < before:
                    yield f, number, f"'{m.group(1)}' is out of order"
                before = m.group(1)


def rule_clones(tree):
    """no twelve lines twice in src/ (blank lines, braces and includes not counted)"""
    seen, reported = {}, {}
    for f in c_files(tree, "src/"):
        if f.generated:
            continue
        kept = []
        for number, line in enumerate(f.nocomment.split("\n"), 1):
            line = " ".join(line.split())
            if line.strip("{}();, \\") and not line.startswith("#include"):
                kept.append((number, line))
        for i in range(len(kept) - CLONE_LINES + 1):
            window = tuple(line for _, line in kept[i:i + CLONE_LINES])
            if len(set(window)) < CLONE_LINES // 2:
                continue  # a table's rows are alike
            first = seen.setdefault(window, (f.path, kept[i][0], i))
            if first[:2] == (f.path, kept[i][0]):
                continue
            run = (f.path, first[0], i - first[2])
            if reported.get(run) != i - 1:
                yield (f, kept[i][0],
                       f"{CLONE_LINES} lines as at {first[0]}:{first[1]}: write them once")
            reported[run] = i


def rule_format(tree):
    """clang-format would change nothing"""
    paths = [f for f in c_files(tree, "") if not f.generated]
    if not paths:
        return
    with tempfile.TemporaryDirectory() as scratch:
        # The samples of the self test are on no disk; the tree's files are copied as they are.
        for f in paths:
            target = os.path.join(scratch, f.path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "w", encoding="utf-8") as out:
                out.write(f.text)
        with open(os.path.join(ROOT, ".clang-format"), encoding="utf-8") as style, \
                open(os.path.join(scratch, ".clang-format"), "w", encoding="utf-8") as out:
            out.write(style.read())
        try:
            done = subprocess.run(
                ["clang-format", "--dry-run", "-Werror", "--", *(f.path for f in paths)],
                cwd=scratch, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            yield paths[0], 1, "clang-format is not installed (scripts/setup test)"
            return
    wrong = {}
    for m in re.finditer(r"(?m)^(\S+?):(\d+):\d+: error: ", done.stderr):
        wrong.setdefault(m.group(1), set()).add(int(m.group(2)))
    for f in paths:
        if f.path in wrong:
            count = len(wrong[f.path])
            yield (f, min(wrong[f.path]), f"{count} line{'' if count == 1 else 's'} not as "
                   "clang-format has it (clang-format -i FILE)")
    if done.returncode != 0 and not wrong:
        yield paths[0], 1, "clang-format failed: " + done.stderr.strip()


RULES = {name[5:]: rule for name, rule in list(globals().items()) if name.startswith("rule_")}


def check(tree, exceptions, rules=tuple(RULES)):
    """All problems as sorted (path, line, rule, message), and the exceptions never needed."""
    problems, unused = [], set(range(len(exceptions)))
    for name in rules:
        for f, line, message in RULES[name](tree):
            for i, (of_rule, path, what, _) in enumerate(exceptions):
                if of_rule == name and fnmatch.fnmatch(f.path, path) \
                        and re.fullmatch(what, message, re.S):
                    unused.discard(i)
                    break
            else:
                problems.append((f.path, line, name, message))
    return sorted(problems), sorted(unused)


def read_tree():
    tree = []
    for folder, folders, names in os.walk(ROOT):
        relative = os.path.relpath(folder, ROOT)
        if relative == ".":
            folders[:] = [d for d in folders if not d.startswith("build") and d != ".git"]
        folders[:] = sorted(d for d in folders if d not in ("__pycache__", "corpus"))
        for name in sorted(names):
            path = os.path.normpath(os.path.join(relative, name))
            first = b""
            if "." not in name.lstrip("."):
                with open(os.path.join(folder, name), "rb") as f:
                    first = f.read(2)
            if name.endswith(TEXT_SUFFIXES) or first == b"#!" or path == WORDS_FILE:
                with open(os.path.join(folder, name), encoding="utf-8", newline="") as f:
                    tree.append(Source(path, f.read()))
    return tree


# The self test: for each rule, samples that break it once, and one that does not.

LONG = "".join(f"    x += {i};\n" for i in range(FUNCTION_LINES_MAX))
TWELVE = "".join(f"    y = call_{i}(y);\n" for i in range(CLONE_LINES))
GOOD_C = "/* Adds. */\n\n#include \"base/add.h\"\n\nint hf_add(int a)\n{\n    return a + 1;\n}\n"
BASE_BUILD = {"src/base/meson.build": "lib_sources += files(\n    'a.c',\n    'b.c',\n)\n"}


PART_ROWS = ("| turns | t | `turn.h` `core/turn` | `hf_turn` |\n"
             "| leases | l | `lease.h` `core/ledger` | `hf_lease` |\n"
             "| of all parts | a | `store/api` | |\n")


def glossary(parts):
    return {"docs/glossary.md": "## Parts and prefixes\n\n| a | b | c | d |\n|---|---|---|---|\n" + parts
            + "\n## Words that are not used\n\n| a | b | c |\n|---|---|---|\n"
            "| `turn` | `src/db/*` | turnstile |\n| `enrol\\w*` | | register |\n"}


PARTS = {"include/holdfast/turn.h": "/* A. */\nint hf_turn_a(void);\n",
         "include/holdfast/lease.h": "/* A. */\nint hf_lease_a(void);\n",
         "src/core/turn/a.h": "int hf_turn_b(void);\nint hf_inner(void);\n",
         "src/core/ledger/a.h": "int hf_lease_c(void);\nint returned(void);\n",
         "src/store/api/a.h": "int hf_lease_d(void);\nint hf_turn_d(void);\n", **glossary(PART_ROWS)}


def body(text):
    return f"static int f(int x)\n{{\n{text}    return x;\n}}\n"


BAD = [
    ("layers", {"src/base/a.c": '#include "core/ledger/edge.h"\n'}),
    ("layers", {"src/core/ledger/a.c": '#include "store/store.h"\n'}),
    ("layers", {"src/core/ledger/a.c": '#include "core/trigger/trigger.h"\n'}),
    ("layers", {"src/db/lite/a.c": '#include "core/ledger/lease.h"\n'}),
    ("layers", {"src/db/lite/a.c": '#include "db/pg/pg.h"\n'}),
    ("layers", {"src/store/work/a.c": '#include "run/wait/watch.h"\n'}),
    ("layers", {"src/run/pool/a.c": '#include "cli/cli.h"\n'}),
    ("layers", {"src/elsewhere/a.c": ""}),
    ("layers", {"kit/sim/a.c": '#include "store/store.h"\n'}),
    ("layers", {"src/core/ledger/a.c": "#include <time.h>\n"}),
    ("layers", {"src/core/ledger/a.c": "#include <stdio.h>\n"}),
    ("layers", {"src/core/ledger/a.c": "#  include <sys/stat.h>\n"}),
    ("layers", {"src/core/ledger/a.c": "#include <unistd.h>\n"}),
    ("layers", {"src/base/a.c": "#include <time.h>\n"}),
    ("layers", {"src/base/a.c": '#include "add.h"\n'}),
    ("layers", {"src/a.c": ""}),
    ("rooms", {f"src/base/a{i}.h": "" for i in range(ROOM_FILES_MAX + 1)}),
    ("layers", {"include/holdfast/a.h": '#include "base/buf.h"\n'}),
    *[("banned", {"src/cli/a.c": body(f"    {name}(x);\n")}) for name in (
        "sprintf", "strcpy", "strcat", "strtok", "atoi", "gets", "system", "popen", "alloca",
        "rand")],
    ("banned", {"tests/unit/test_a.c": body("    strcpy(a, b);\n")}),
    ("banned", {"src/core/a.c": body("    x = time(0);\n")}),
    ("banned", {"src/core/a.c": body("    x = (int)time (0);\n")}),
    ("banned", {"src/store/a.c": body("    snprintf(b, 9, f);\n")}),
    ("banned", {"src/store/a.c": body("    if (strcmp(a, b))\n        x++;\n")}),
    ("banned", {"src/run/a.c": body("    printf(a);\n")}),
    ("banned", {"src/run/a.c": body("    exit(1);\n")}),
    ("banned", {"src/store/a.c": body("    free(a);\n")}),
    ("banned", {"src/run/a.c": body("    assert(x);\n")}),
    ("function_length", {"src/base/a.c": body(LONG)}),
    ("function_length", {"tests/unit/test_a.c": "static void a(void **s)\n{\n" + LONG + "}\n"}),
    ("parameters", {"src/base/a.c": "int f(int a, int b, int c, int d, int e, int g)\n{\n}\n"}),
    ("parameters", {"src/base/a.h": "int f(int a, int b, int c, int d, int e, int g);\n"}),
    ("file_length", {"src/base/a.c": "\n" * FILE_LINES_MAX + "int a;\n"}),
    ("columns", {"src/base/a.c": "/* " + "x" * COLUMNS_MAX + " */\n"}),
    ("columns", {"src/base/a.c": "/* clang-format off */\n/* " + "x" * 120 + " */\n"}),
    ("wrap", {"docs/a.md": "word " * 21 + "\n"}),
    ("wrap", {"docs/a.md": "```\n" + "word " * 21 + "\n```\n- " + "word " * 21 + "\n"}),
    ("wrap", {"docs/a.md": "Build it:\n\n    meson setup build\n"}),
    ("wrap", {"docs/a.md": "1. Answers:\n\n   | entry | what it does | |---|---| | busy | ends |\n"}),
    ("whitespace", {"src/base/a.c": "int\ta;\n"}),
    ("whitespace", {"src/base/a.c": "/* a */ \n"}),
    ("whitespace", {"src/base/a.c": "/* a */"}),
    ("unfinished", {"src/base/a.c": "/* TO" "DO: later */\n"}),
    ("unfinished", {"sql/a.sql": "-- FIX" "ME\n"}),
    ("globals", {"src/base/a.c": "static int count;\n"}),
    ("globals", {"src/base/a.c": "int count = 3;\n"}),
    ("globals", {"src/store/a.c": "static const char *name = \"a\";\n"}),
    ("globals", {"src/store/a.c": "static const char *names[] = { \"a\", \"b\" };\n"}),
    ("globals", {"src/store/a.c": "static struct hf_x table[2] = { { 1 }, { 2 } };\n"}),
    ("globals", {"src/store/a.c": "static struct { int a; } only;\n"}),
    ("globals", {"src/store/a.c": "static int (*hook)(int);\n"}),
    ("globals", {"src/store/a.c": "_Thread_local int depth;\n"}),
    ("globals", {"src/core/a.c": body("    static int calls;\n")}),
    ("globals", {"src/core/a.c": body("    static int calls[] = { 1, 2 };\n")}),
    ("pauses", {"tests/unit/test_a.c": body("    sleep(1);\n")}),
    ("pauses", {"tests/unit/test_a.c": body("    usleep(1);\n")}),
    ("pauses", {"tests/cli/a.sh": "do sleep 1; done\n"}),
    ("sql", {"src/store/a.c": 'static const char q[] = "SELECT 1";\n'}),
    ("sql", {"src/store/a.c": 'static const char q[] = "INSERT INTO t VALUES ($1)";\n'}),
    ("sql", {"src/store/a.c": 'static const char q[] = "UPDATE t SET a = 1";\n'}),
    ("sql", {"src/store/a.c": 'static const char q[] = "delete from t where 1";\n'}),
    ("public_comments", {"include/holdfast/a.h": "int hf_a(void);\n"}),
    ("public_comments", {"include/holdfast/a.h": "/* A. */\nint hf_a(void);\n\nint hf_b(void);\n"}),
    ("tags", {"src/base/a.c": "struct hf_a {\n    int a;\n};\n", "src/os/a.c": "struct hf_a {\n    int b;\n};\n"}),
    ("tags", {"src/base/a.h": "struct a {\n    int a;\n};\n", "src/base/a.c": "enum a { B };\n"}),
    ("errors", {"include/holdfast/a.h": "/* A. */\nHF_API HF_MUST_USE int hf_a(void);\n"}),
    ("names", {"src/base/a.c": "/* As hf_b. */\nint hf_a(void);\n"}),
    ("names", {"include/holdfast/a.h": "/* A. HF_EB. */\n#define HF_ES(X) X(A)\n#define X(n) HF_E##n,\n"}),
    *[("prefixes", {**PARTS, **files}) for files in (
        {"include/holdfast/turn.h": "int hf_turn_a(void);\nint hf_lease_b(void);\n"},  # another part's
        {"include/holdfast/turn.h": "int hf_turn_a(void);\nstruct hf_lease_b {\n    int a;\n};\n"},
        {"include/holdfast/turn.h": "int hf_turn_a(void);\nint hf_act_a(void);\n"},  # no part's
        {"include/holdfast/turn.h": "int hf_turn_a(void);\nstruct hf_turn_new {\n    int a;\n};\n"},
        {"include/holdfast/act.h": "int hf_turn_b(void);\n"},  # a header of no part
        {"src/os/a.c": ""},  # a room of no part
        {"src/core/ledger/b.h": "int hf_turn_b(void);\n"},
        {"src/core/ledger/b.h": "int hf_inner_b(void);\n"},  # of two parts, and listed in none
        glossary(PART_ROWS + "| cells | c | `exec.h` | |\n"),
        glossary(PART_ROWS + "| cells | c | | `hf_cell` |\n"),
        glossary(PART_ROWS + "| cells | c | `turn.h` | |\n"))],
    *[("not_used", {**PARTS, **files}) for files in (
        {"src/db/a.c": "int turn;\n"}, {"src/db/a.c": "int the_turn;\n"},
        {"src/db/a.c": "/* Whose turn it is. */\n"}, {"docs/a.md": "To enroll a process.\n"},
        {"sql/a.sql": "-- enrolled\n"})],
    ("listed", {"src/base/c.c": "", **BASE_BUILD}),
    ("listed", {"tests/unit/test_c.c": "", "tests/meson.build": "c_tests = {\n}\n"}),
    ("listed", {"src/base/meson.build": "files(\n    'b.c',\n    'a.c',\n)\n"}),
    ("clones", {"src/base/a.c": body(TWELVE), "src/base/b.c": body("    x--;\n" + TWELVE)}),
    ("clones", {"src/base/a.c": body(TWELVE) + body("    x--;\n" + TWELVE)}),
    ("format", {"src/base/a.c": "int  a;\n"}),
    *[("words", {"src/base/a.c": f"/* {text} */\n"}) for text in (
        "Somebody waits.", "It gives the row back.", "It stands there.", "Or else it fails.",
        "All but for one.", "The row beside it.", "One row a claim.", "Twice a second.",
        "It is told of the end.", "It says nothing of rows.", "Waits so long.", "A row born done.", "The turn goes on.")],
    ("words", {"docs/a.md": "Nobody waits.\n"}),
    ("words", {"sql/a.sql": "-- whoever claims\n"}),
    ("words", {"tools/a.py": "x = 1  # stands alone\n"}),
    ("words", {"tests/cli/a.py": "self.assertIn('nobody waits', x)\n"}),
    ("words", {"tests/support/a": "#!/usr/bin/env python3\n# nobody\n"}),
    ("words", {"kit/sim/plants/a.edit": "what:  a row that nobody\n       has\n"}),
    ("words", {"model/a.pml": "// nobody\n"}),
    ("words", {"src/base/a.c": "/* Nobody, nobody. */\n",
               WORDS_FILE: '{"src/base/a.c": {"somebody": 1}}\n'}),
    ("words", {"src/b/a.c": "/* Nobody, nobody. */\n",
               WORDS_FILE: '{"src/base/a.c": {"somebody": 1}}\n'}),
]

GOOD = [
    {"src/base/a.c": GOOD_C, "src/base/b.c": "", **BASE_BUILD},
    PARTS,
    {"src/core/a.c": '#include "base/buf.h"\n#include "core/edge.h"\n#include <stdint.h>\n'},
    {"src/cli/cmd/a.c": '#include "op/op.h"\n#include "cli/cli.h"\n#include <stdio.h>\n'},
    {"src/core/a.c": "/* strcpy() and time(0) in prose, SELECT too */\n"},
    {"docs/a.md": "```\n" + "word " * 21 + "\n```\n| " + "word " * 21 + "|\n"},
    {"src/core/a.c": body('    x = say("strcpy(a)");\n    x += s->time(1);\n    x += s.time(1);\n')},
    {"src/cli/a.c": body("    snprintf(b, 9, f);\n    x = strcmp(a, b);\n")},
    {"src/base/a.c": body(LONG[:LONG.index("x += 60")].rstrip(" "))},
    {"src/base/a.c": "/* clang-format off */\n/* " + "x" * 100 + " */\n/* clang-format on */\n"},
    {"src/store/a.c": 'static const char *const names[] = { "a", "b" };\n'
                      "static const struct hf_x table[] = { { 1 }, { 2 } };\n"
                      "struct hf_y {\n    int a;\n};\nenum hf_z { HF_A, HF_B };\n"
                      "extern const int hf_version_number;\nstruct hf_w;\n"
                      '_Static_assert(sizeof(int) == 4, "int");\n'
                      "typedef int (*hf_fn)(int);\n"
                      "int hf_a(const struct hf_x *x) __attribute__((warn_unused_result));\n"
                      "static int (*const hooks[])(int) = { f, g };\n"},
    {"src/base/a.c": "struct a {\n    int a;\n};\n", "src/os/a.c": "struct a {\n    int b;\n};\n"},
    {"include/holdfast/a.h": "/* hf_a, hf_*, hf_b_* and HF_EINVAL. */\nint hf_a(void);\n"
                             "#define HF_ES(X) X(INVAL)\n#define X(n) HF_E##n,\n"},
    {"include/holdfast/b.h": "enum hf_b { HF_EINVAL };\n",
     "include/holdfast/a.h": "/* A. HF_EINVAL. */\nHF_MUST_USE int hf_a(void);\nHF_MUST_USE int hf_b(void);\n"},
    {"src/run/pool/a.c": "static int count;\n"},
    {"src/core/a.c": body("    static const int steps[] = { 1, 2 };\n    x += steps[0];\n")},
    {"tests/soak/test_a.c": body("    sleep(1);\n")},
    {"src/cli/a.c": 'static const char help[] = "update a policy; select one from the list";\n'},
    {"bench/ledger/raw_lite.c": 'static const char q[] = "SELECT 1";\n'},
    {"tests/unit/test_a.c": 'static const char q[] = "SELECT 1";\n'},
    {"include/holdfast/a.h": "#ifdef __cplusplus\nextern \"C\" {\n#endif\n/* A. */\n"
                             "int hf_a(void);\nint hf_b(int a,\n         int b);\n\n"
                             "int hf_c(void); /* C. */\n\n/* S. */\nstruct hf_s {\n"
                             "    int a;\n    int (*open)(int);\n};\nint hf_d(void);\n\n"
                             "HF_BOUNDS(X)\n\nstruct hf_i {\n    int a;\n};\n"
                             "#ifdef __cplusplus\n}\n#endif\n"},
    {"src/base/a.c": body(TWELVE), "src/base/b.c": body(TWELVE.replace("y = call_6", "z = f"))},
    {"src/base/a.h": "int f(int a, int b, int c, int d, int e, int *ret_x, struct hf_err *err);\n"},
    {"src/base/a.c": body("    x = 0;\n" * 3 * CLONE_LINES)},
    {"src/base/a.c": body("    if (x)\n        x = 1;\n    else\n        x = 2;\n")},
    {"kit/sim/plants/a.edit": "what:  a row is lost\nold:   else\n", "tools/b.py": "if a:\n    b()\nelse:\n    c()\n"},
    {"src/base/a.c": "/* One row per claim. */\n", "docs/a.md": "A `nobody` in code.\n"},
    {"src/base/a.c": "/* Nobody. */\n", WORDS_FILE: '{"src/base/a.c": {"somebody": 1}}\n'},
    {"src/base/a.c": "/* Nobody. */\n", WORDS_FILE: '{"src/a.c": {"somebody": 1}}\n'},
]


def selftest():
    failed = 0
    proven = set()
    for rule, files in BAD:
        tree = [Source(path, text) for path, text in files.items()]
        if not check(tree, [], [rule])[0]:
            failed += 1
            print(f"tidy: rule {rule} let this through: {files}")
        proven.add(rule)
    for name in RULES.keys() - proven:
        failed += 1
        print(f"tidy: rule {name} has no sample that breaks it")
    for files in GOOD:
        tree = [Source(path, text) for path, text in files.items()]
        # Most samples are listed nowhere; the first is a whole tree, and well formed.
        rules = RULES if files is GOOD[0] else RULES.keys() - {"format", "listed"}
        for path, line, name, message in check(tree, [], rules)[0]:
            failed += 1
            print(f"tidy: a good sample fails: {path}:{line}: {message} [{name}]: {files[path]}")
    sample = [Source("src/core/ledger/a.c", "#include <time.h>\n")]
    excused = [("layers", "src/core/ledger/a.c", ".*<time.h>", "a sample")]
    if check(sample, excused, ["layers"]) != ([], []) or not check([], excused)[1]:
        failed += 1
        print("tidy: exceptions do not work")
    print(f"tidy selftest: {len(BAD)} bad and {len(GOOD)} good samples, {failed} wrong")
    return 1 if failed else 0


def main(arguments):
    if arguments == ["--selftest"]:
        return selftest()
    if arguments == ["--list"]:
        for name, rule in RULES.items():
            print(f"{name:16} {rule.__doc__}")
        return 0
    if arguments == ["--words"]:
        return lower_words(read_tree(), EXCEPTIONS, os.path.join(ROOT, WORDS_FILE))
    if arguments:
        print("usage: tools/tidy.py [--selftest | --list | --words]", file=sys.stderr)
        return 2
    tree = read_tree()
    problems, unused = check(tree, EXCEPTIONS)
    for path, line, name, message in problems:
        print(f"{path}:{line}: {message} [{name}]")
    for i in unused:
        print(f"tools/tidy.py: an exception is not needed any more: {EXCEPTIONS[i][:3]}")
    count = len(problems) + len(unused)
    print(f"tidy: {len(tree)} files, {count} problem{'' if count == 1 else 's'}")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
