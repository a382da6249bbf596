#!/usr/bin/env python3
"""Turn sql/*.sql into the C tables of statements and migrations.

A statement file holds, for each statement:

    -- name: work_claim
    -- in:   $1 queue, $2 owner          (for people)
    -- out:  seq, work_id                (for people)
    -- sizes: 1 8 64                     (optional: one variant a size, {size} in the text)
    <one statement>

`-- fragment: NAME` begins a text that others splice in as {NAME}. A comment of the form
/*pg ...*/ is opened for PostgreSQL and stays a comment for SQLite; /*lite ...*/ the other
way round. Parameters are $1..$n without gaps. Migrations are whole scripts, numbered
NNNN_name.sql, with the same marks; {NAME} in them is replaced by the contents of the file
given with --piece NAME=FILE.

Nothing of this happens at run time.
"""
import argparse
import pathlib
import re
import sys

ENGINES = ("lite",)


def fail(message):
    sys.exit(f"sqlgen: {message}")


def for_engine(text, engine):
    def mark(match):
        return match.group(2) if match.group(1) == engine else ""
    return re.sub(r"/\*(pg|lite)\s(.*?)\*/", mark, text, flags=re.S)


def strip(text):
    lines = [re.sub(r"\s+--\s.*$", "", line) for line in text.splitlines()]
    lines = [line for line in lines if line.strip() and not line.strip().startswith("--")]
    return "\n".join(line.rstrip() for line in lines).strip().rstrip(";").strip()


def splice(text, fragments, where):
    for _ in range(8):
        found = re.findall(r"\{([a-z_]+)\}", text)
        todo = [name for name in found if name != "size"]
        if not todo:
            return text
        for name in todo:
            if name not in fragments:
                fail(f"{where}: unknown fragment {{{name}}}")
            text = text.replace("{" + name + "}", fragments[name])
    fail(f"{where}: fragments nest too deep")


def parameters(text, where):
    numbers = sorted({int(n) for n in re.findall(r"\$(\d+)", text)})
    if numbers != list(range(1, len(numbers) + 1)):
        fail(f"{where}: parameters are not $1..$n without gaps: {numbers}")
    return len(numbers)


def read_statements(paths):
    fragments, statements = {}, []
    for path in paths:
        parts = re.split(r"^-- (name|fragment): *([a-z0-9_]+) *$", path.read_text(), flags=re.M)
        for kind, name, body in zip(parts[1::3], parts[2::3], parts[3::3]):
            sizes = re.search(r"^-- sizes: *([0-9 ]+)$", body, flags=re.M)
            text = strip(body)
            if not text:
                fail(f"{path.name}: {name} is empty")
            if kind == "fragment":
                fragments[name] = text
            elif sizes:
                for size in sizes.group(1).split():
                    statements.append((f"{name}_{size}", text.replace("{size}", size)))
            else:
                statements.append((name, text))
    names = [name for name, _ in statements]
    for name in names:
        if names.count(name) > 1:
            fail(f"statement {name} stands twice")
    return [(name, splice(text, fragments, name)) for name, text in statements]


def c_string(text):
    lines = []
    for line in text.splitlines():
        escaped = line.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'        "{escaped}\\n"')
    return "\n".join(lines) if lines else '        ""'


def header(statements):
    ids = "\n".join(f"    HF_SQL_{name.upper()}," for name, _ in statements)
    return f"""/* Made by tools/sqlgen.py from sql/. */
#ifndef HF_STORE_SQL_GEN_H
#define HF_STORE_SQL_GEN_H

#include <holdfast/sys/driver.h>

enum hf_sql_id {{
{ids}
    HF_SQL_COUNT
}};

struct hf_migration {{
    int version;
    const char *name;
    const char *lite;
}};

extern const struct hf_sql_text hf_sql_lite[HF_SQL_COUNT];
extern const struct hf_migration hf_migrations[];
extern const size_t hf_migration_count;
extern const char hf_schema_lite[]; /* all of them, one after the other */

#endif
"""


def source(statements, migrations):
    out = ["/* Made by tools/sqlgen.py from sql/. */", '#include "store/sql_gen.h"', ""]
    for engine in ENGINES:
        out.append(f"const struct hf_sql_text hf_sql_{engine}[HF_SQL_COUNT] = {{")
        for name, text in statements:
            body = for_engine(text, engine)
            count = parameters(body, name)
            out.append(f"    [HF_SQL_{name.upper()}] = {{\n        \"{name}\",\n{c_string(body)},\n"
                       f"        {count}, -1}},")
        out.append("};")
        out.append("")
    out.append("const struct hf_migration hf_migrations[] = {")
    for version, name, text in migrations:
        out.append(f"    {{{version}, \"{name}\",\n{c_string(for_engine(text, 'lite'))}}},")
    out.append("};")
    out.append("const size_t hf_migration_count = sizeof(hf_migrations) / sizeof(hf_migrations[0]);")
    whole = "\n".join(for_engine(text, "lite") for _, _, text in migrations)
    out.append(f"const char hf_schema_lite[] =\n{c_string(whole)};")
    return "\n".join(out) + "\n"


def read_migrations(paths, pieces):
    result = []
    for path in sorted(paths):
        match = re.fullmatch(r"(\d{4})_([a-z0-9_]+)\.sql", path.name)
        if not match:
            fail(f"migration {path.name}: the name must be NNNN_name.sql")
        text = path.read_text()
        for name, piece in pieces.items():
            text = text.replace("{" + name + "}", piece.rstrip())
        left = re.search(r"\{[a-z_]+\}", text)
        if left:
            fail(f"{path.name}: no piece for {left.group(0)}")
        lines = [line for line in text.splitlines() if not line.startswith("--")]
        result.append((int(match.group(1)), match.group(2), "\n".join(lines)))
    versions = [version for version, _, _ in result]
    if versions != list(range(1, len(versions) + 1)):
        fail(f"migrations must be numbered 1..n, found {versions}")
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--header", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--piece", action="append", default=[])
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    paths = [pathlib.Path(f) for f in args.files]
    migrations = [p for p in paths if p.parent.name == "migrations"]
    statements = read_statements([p for p in paths if p.parent.name != "migrations"])
    named = (piece.split("=", 1) for piece in args.piece)
    pieces = {name: pathlib.Path(path).read_text() for name, path in named}
    pathlib.Path(args.header).write_text(header(statements))
    pathlib.Path(args.source).write_text(source(statements, read_migrations(migrations, pieces)))


if __name__ == "__main__":
    main()
