#!/usr/bin/env python3
"""Make the manual pages of the library from the comments of its public headers.

    tools/manual.py VERSION FOLDER HEADER...

HEADER work.h becomes FOLDER/holdfast_work.3, and holdfast.h, which must be among the headers, the
index FOLDER/holdfast.3. A header is read as groups: a comment, and the declarations up to the next
blank line or comment. Nothing here knows a header by its name except holdfast.h and err.h.
"""

import os
import re
import sys
import textwrap

COMMENT = re.compile(r"/\*.*?\*/", re.S)
WIDTH = 72


def roff(text):
    """Text that troff takes as it is."""
    named = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"}
    text = "".join(named.get(c, c if c < "\x7f" else f"\\[u{ord(c):04X}]") for c in text)
    return re.sub(r"(?m)^(?=\.)", r"\\&", text)


def verbatim(text):
    return f".PP\n.nf\n{roff(text)}\n.fi\n"


def indent_of(line):
    return len(line) - len(line.lstrip())


def listed(lines):
    """Indented lines: a list of terms where each row is `term  text`, otherwise an example."""
    base = min(map(indent_of, lines))
    rows = []
    for line in lines:
        if indent_of(line) > base and rows:
            rows[-1].append(line.strip())
        else:
            rows.append([line.strip()])
    found = [re.fullmatch(r"(\S.*?)\s{2,}(\S.*)", row[0]) for row in rows]
    if not all(m or len(row) > 1 for m, row in zip(found, rows)):
        return verbatim(textwrap.indent(textwrap.dedent("\n".join(lines)), "    "))
    made = ""
    for m, row in zip(found, rows):
        term, first = (m.group(1), [m.group(2)]) if m else (row[0], [])
        made += f".TP\n\\fB{roff(term)}\\fR\n{roff(chr(10).join(first + row[1:]))}\n"
    return made


def prose(text):
    """The text of a comment: paragraphs, and between them what is indented."""
    made, run = "", []

    def end():
        nonlocal made, run
        if run:
            made += listed(run) if indent_of(run[0]) else f".PP\n{roff(chr(10).join(run))}\n"
        run = []

    for line in text.split("\n"):
        line = "" if not line.strip() else line
        if not line or (run and bool(indent_of(line)) != bool(indent_of(run[0]))):
            end()
        if line:
            run.append(line)
    end()
    return made


def comment_text(comment):
    lines = comment[2:-2].split("\n")
    lines = [lines[0].strip()] + [re.sub(r"^ \*? ?", "", line).rstrip() for line in lines[1:]]
    return "\n".join(lines).strip("\n")


def signature(text):
    """A prototype without attributes, wrapped; its comment stays behind it."""
    note = " ".join(" ".join(COMMENT.findall(text)).split())
    bare = " ".join(re.sub(r"\bHF_(?:API|MUST_USE)\b", "", COMMENT.sub("", text)).split())
    bare = bare.replace("( ", "(")
    bare = re.sub(r"(?<!,) ", "\xA0", bare)  # broken after commas only
    lines = textwrap.wrap(bare, WIDTH, subsequent_indent=" " * 4, break_long_words=False)
    lines = [line.replace("\xA0", " ") for line in lines]
    if note and len(lines[-1]) + len(note) < WIDTH:
        lines[-1] += " " + note
    elif note:
        lines += textwrap.wrap(note, WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 7)
    return "\n".join(lines)


def function_of(code):
    """The name that a declaration exports, or None."""
    m = re.match(r"HF_API\b(?!\s*__)[^;]*?(\w+)\s*[(;\[]", COMMENT.sub("", code))
    return m and m.group(1)


def ended(unit):
    """Whether these lines are a whole comment, directive or declaration."""
    if unit.startswith("#"):
        return not unit.endswith("\\")
    code = COMMENT.sub("", unit)
    if "/*" in code:
        return False
    return not code.strip() or (code.count("{") == code.count("}") and code.rstrip().endswith(";")
                                or re.fullmatch(r"[A-Z_]+\(X\)\s*", code) is not None)


class Group:
    def __init__(self, comment=""):
        self.comment, self.codes = comment, []
        self.functions = []

    def add(self, code):
        self.codes.append(code)
        self.functions += filter(None, [function_of(code)])

    def errors(self):
        """Fallible functions, and the codes that their comments name."""
        notes = " ".join([self.comment, *COMMENT.findall(" ".join(self.codes))])
        fallible = [function_of(code) for code in self.codes
                    if function_of(code) and "HF_MUST_USE" in code]
        return fallible, set(re.findall(r"\bHF_E[A-Z]+\b", notes))

    def code(self):
        return "\n".join(signature(code) if function_of(code) else
                         re.sub(r"(?m)\s*\\$", r" \\", code) for code in self.codes)

    def section(self):
        title = ", ".join(name + "()" for name in self.functions)
        if not title:
            text = "\n".join(self.codes)
            names = re.findall(r"(?m)^((?:struct|enum|union) \w+) ?[{;]|^#define (HF_\w+)"
                               r"|^typedef [^;{]*?\b(hf_\w+)\s*[(;]|^static const \w+ (HF_\w+)", text)
            names = ["".join(found) for found in names if "HF_MAX_" not in "".join(found)]
            title = ", ".join(dict.fromkeys(names)) or "Constants"
        return f".SS {roff(title)}\n{verbatim(self.code())}{prose(self.comment)}"


class Header:
    def __init__(self, path):
        self.stem = os.path.splitext(os.path.basename(path))[0]
        self.page = "holdfast" if self.stem == "holdfast" else "holdfast_" + self.stem
        with open(path, encoding="utf-8") as f:
            self.text = f.read()
        self.comment = comment_text(COMMENT.match(self.text).group())
        self.summary = " ".join(re.split(r"\.(?:\s|$)", self.comment)[0].split())
        self.includes = re.findall(r"(?m)^#include <holdfast/(\w+)\.h>", self.text)
        self.groups = self.read()

    def read(self):
        text = self.text[COMMENT.match(self.text).end():]
        text = re.sub(r"(?ms)^#ifdef __cplusplus\n.*?^#endif\n", "", text)
        text = re.sub(r"(?m)^(?:#include .*|#(?:ifndef|define) HOLDFAST_\w+_H|/\* clang-format \w+ \*/)\n",
                      "", text)
        text = re.sub(r"#endif\s*$", "", text)
        groups, unit, group = [], "", None
        for line in text.split("\n"):
            if not unit and not line:
                group = None
                continue
            unit = unit + "\n" + line if unit else line
            if not ended(unit):
                continue
            if unit.startswith("/*"):
                group = None if unit.startswith("/* --") else Group(comment_text(unit))
            elif group is not None or not re.fullmatch(r"struct \w+;", unit):
                group = group or Group()
                group.add(unit)
            if group and len(group.codes) == 1 and group not in groups:
                groups.append(group)
            unit = ""
        if unit:
            sys.exit(f"{self.stem}.h: no end of the declaration: {unit[:80]}")
        return groups

    def functions(self):
        return [name for group in self.groups for name in group.functions]


def title(page, version, summary):
    return (f".TH {page.upper()} 3 \"\" \"holdfast {version}\" \"Library Functions\"\n"
            f".nh\n.ad l\n.SH NAME\n{page} \\- {roff(summary)}\n")


def synopsis(name, library, code):
    return (f".SH SYNOPSIS\n.nf\n#include <holdfast/{name}.h>\n\n"
            f"cc \\&... $(pkg\\-config \\-\\-cflags \\-\\-libs {roff(library)})\n.fi\n"
            + (verbatim(code) if code else ""))


def see_also(pages):
    return ".SH SEE ALSO\n" + ",\n".join(f"\\fB{p}\\fR({s})" for p, s in pages) + "\n"


def errors(header, table):
    named = [group.errors() for group in header.groups]
    made = ""
    for code, text in table:
        by = [name for functions, codes in named for name in functions if code in codes]
        if by:
            made += f".TP\n\\fB{code}\\fR\n{roff(text)}: {', '.join(n + '()' for n in by)}\n"
    if not made:
        return ""
    return (".SH ERRORS\nThe codes that the sections of functions name, with their general meaning. Class and "
            "remedy of each are in \\fBholdfast_err\\fR(3), the errors of a store in "
            "\\fBholdfast_store\\fR(3).\n" + made)


def page_of(header, version, library, table, stems):
    codes = [code for group in header.groups for code in group.codes if function_of(code)]
    made = title(header.page, version, header.summary)
    made += synopsis(header.stem, library, "\n".join(map(signature, (COMMENT.sub("", c) for c in codes))))
    made += ".SH DESCRIPTION\n" + prose(header.comment)
    for heading, wanted in (("FUNCTIONS", True), ("TYPES AND CONSTANTS", False)):
        groups = [group for group in header.groups if bool(group.functions) == wanted]
        made += f".SH {heading}\n" * bool(groups) + "".join(group.section() for group in groups)
    mentioned = header.includes + re.findall(r"\bholdfast/(\w+)\.h\b", header.text)
    others = sorted({stem for stem in mentioned if stem in stems} - {header.stem, "holdfast"})
    return made + errors(header, table) + see_also([("holdfast", 3)] + [("holdfast_" + o, 3) for o in others])


def index_of(header, others, version):
    made = title("holdfast", version, "the C library: all its pages, and where each function is")
    made += synopsis("holdfast", "holdfast", "") + ".SH DESCRIPTION\n" + prose(header.comment)
    made += ".SH PAGES\n"
    for other in others:
        made += f".TP\n\\fB{other.page}\\fR(3)\n{roff(other.summary)}.\n"
        made += f".br\n{', '.join(other.functions())}\n" * bool(other.functions())
    return made + see_also([("holdfast", 1)])


def main(version, folder, *paths):
    headers = {h.stem: h for h in map(Header, paths)}
    umbrella = headers["holdfast"]
    table = [("HF_E" + name, text) for name, text in
             re.findall(r'(?s)X\((\w+), -\d+,[\s\\]*"\w+",[\s\\]*"([^"]*)"', headers["err"].text)]
    for stem, header in headers.items():
        library = "holdfast" if stem in umbrella.includes else "holdfast-net"
        others = [h for h in headers.values() if h is not umbrella]
        text = index_of(header, others, version) if header is umbrella else \
            page_of(header, version, library, table, headers)
        with open(os.path.join(folder, header.page + ".3"), "w", encoding="ascii") as out:
            out.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
