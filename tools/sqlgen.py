#!/usr/bin/env python3
"""Turn sql/*.sql into the C tables of statements and migrations, one table an engine.

A statement file holds, for each statement:

    -- name: work_claim
    -- in:   $1 queue, $2 owner          (for people)
    -- out:  seq, work_id                (for people)
    -- sizes: 1 8 64                     (optional: one variant a size, {size} in the text)
    -- sets: text bigint bytea           (if it reads hf_args: the types of a1, a2, a3)
    -- engine: pg                        (optional: only this engine has it)
    -- many: work_claims [unless $3]     (optional: the form that takes such sets of many
                                          callers at once, each changing one row, if $3 is null)
    <one statement>

`-- fragment: NAME` begins a text that others splice in as {NAME}. A comment of the form
/*pg ...*/ is opened for PostgreSQL and stays a comment for SQLite; /*lite ...*/ the other
way round. Parameters are $1..$n without gaps; where PostgreSQL cannot tell a parameter's type
from its place ($3 IS NULL), it is written $3::text, and SQLite sees $3.

For PostgreSQL the rest is done here: the functions hf_now(), hf_lease_now() and
hf_incarnation() are asked once a statement and not once a row; hf_args becomes unnest() of
one array a column; and each statement that changes rows and returns none gets a second form
that raises unless it changed as many as its last parameter says.

Migrations are whole scripts, numbered NNNN_name.sql, with the same marks; {NAME} in them is
replaced by the contents of the file given with --piece NAME=FILE. They are written in SQLite's
words (INTEGER, TEXT, BLOB, STRICT; guards that SELECT RAISE) and translated for PostgreSQL by
tools/sqlpg.py.

Nothing of this happens at run time, but that @schema@ in a migration is replaced by the name
of the schema it makes.
"""
import argparse
import pathlib
import re
import sys

import sqlcopy
import sqlpg

ENGINES = ("lite", "pg")


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
        found = re.findall(r"\{([a-z_][a-z0-9_]*)\}", text)
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


def header_line(body, key, pattern):
    match = re.search(rf"^-- {key}: *({pattern}) *$", body, flags=re.M)
    return match.group(1) if match else None


class Statement:
    """One statement, and its text for each engine; None where an engine has it not."""

    def __init__(self, name, text, headers):
        self.name = name
        self.text = text
        self.engine, self.sets, self.many = headers
        self.fragments = {}

    def opened(self, engine):
        """Marks first, then fragments, so that a mark may hold a fragment with marks."""
        parts = {name: for_engine(text, engine) for name, text in self.fragments.items()}
        text = splice(for_engine(self.text, engine), parts, self.name)
        if "/*" in text:
            fail(f"statement {self.name}: a mark is /*pg ...*/ or /*lite ...*/, with a space")
        return text

    def lite(self):
        if self.engine == "pg":
            return None
        return re.sub(r"(\$\d+)::[a-z]+(\[\])?", r"\1", self.opened("lite"))

    def pg(self):
        if self.engine == "lite":
            return None
        try:
            return sqlpg.statement(self.opened("pg"), self.sets)
        except sqlpg.Untranslatable as why:
            fail(f"statement {self.name}: {why}")


def read_statements(paths):
    fragments, statements = {}, []
    for path in paths:
        parts = re.split(r"^-- (name|fragment): *([a-z0-9_]+) *$", path.read_text(), flags=re.M)
        for kind, name, body in zip(parts[1::3], parts[2::3], parts[3::3]):
            sizes = header_line(body, "sizes", "[0-9 ]+")
            sets = header_line(body, "sets", "[a-z ]+")
            engine = header_line(body, "engine", "lite|pg")
            many = header_line(body, "many", r"[a-z_]+( unless \$[0-9]+)?")
            text = strip(body)
            if not text:
                fail(f"{path.name}: {name} is empty")
            if kind == "fragment":
                fragments[name] = text
                continue
            for size in sizes.split() if sizes else [None]:
                statements.append(Statement(
                    f"{name}_{size}" if size else name,
                    text.replace("{size}", size) if size else text,
                    (engine, sets.split() if sets else None, many.split() if many else None)))
    names = [one.name for one in statements]
    for one in statements:
        if names.count(one.name) > 1:
            fail(f"statement {one.name} stands twice")
        one.fragments = fragments
    return statements


def c_string(text, indent="        "):
    if text is None:
        return f"{indent}NULL"
    lines = []
    for line in text.splitlines():
        escaped = line.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'{indent}"{escaped}\\n"')
    return "\n".join(lines) if lines else f'{indent}""'


def header(statements):
    ids = "\n".join(f"    HF_SQL_{one.name.upper()}," for one in statements)
    return f"""/* Made by tools/sqlgen.py from sql/. */
#ifndef HF_DB_SQL_GEN_H
#define HF_DB_SQL_GEN_H

#include <holdfast/sys/driver.h>

enum hf_sql_id {{
{ids}
    HF_SQL_COUNT
}};

/* Of PostgreSQL. `guarded` has one parameter more, the number of rows it must change; NULL
 * where there is no such form. `sets` is a letter for each column of hf_args: t, i or b.
 * `many` is the form for many callers, -1: none; not for sets whose argument `unless` (from 0)
 * is given (-1: for all). */
struct hf_pg_text {{
    const char *name;
    const char *text; /* NULL: not of this engine */
    const char *guarded;
    const char *sets;
    int params;
    bool reads;
    bool before; /* it reads in order to assert or to lock, for what its batch writes after it */
    int many;
    int unless;
}};

struct hf_migration {{
    int version;
    const char *name;
    const char *lite;
    const char *pg;
}};

extern const struct hf_sql_text hf_sql_lite[HF_SQL_COUNT]; /* text NULL: as above */
extern const struct hf_pg_text hf_sql_pg[HF_SQL_COUNT];
extern const struct hf_migration hf_migrations[];
extern const size_t hf_migration_count;
/* All of them, one after the other. */
extern const char hf_schema_lite[];
extern const char hf_schema_pg[];
{sqlcopy.HEADER}
#endif
"""


def lite_table(statements):
    out = ["const struct hf_sql_text hf_sql_lite[HF_SQL_COUNT] = {"]
    for one in statements:
        body = one.lite()
        count = parameters(body, one.name) if body is not None else 0
        out.append(f"    [HF_SQL_{one.name.upper()}] = {{\n        \"{one.name}\",\n"
                   f"{c_string(body)},\n        {count}, -1}},")
    return out + ["};", ""]


def pg_table(statements):
    out = ["const struct hf_pg_text hf_sql_pg[HF_SQL_COUNT] = {"]
    for one in statements:
        body = one.pg()
        count = parameters(body, one.name) if body is not None else 0
        guarded = sqlpg.guarded(body, count) if body is not None else None
        sets = "".join({"text": "t", "bigint": "i", "bytea": "b"}[t] for t in one.sets or [])
        sets = f'"{sets}"' if sets else "NULL"
        many = f"HF_SQL_{one.many[0].upper()}" if one.many else "-1"
        unless = int(one.many[2][1:]) - 1 if one.many and len(one.many) > 1 else -1
        reads = "true" if body is not None and sqlpg.reads(body) else "false"
        before = "true" if reads == "true" and sqlpg.before(body) else "false"
        out.append(f"    [HF_SQL_{one.name.upper()}] = {{\n        \"{one.name}\",\n"
                   f"{c_string(body)},\n{c_string(guarded)},\n"
                   f"        {sets}, {count}, {reads}, {before}, {many}, {unless}}},")
    return out + ["};", ""]


def source(statements, migrations):
    out = ["/* Made by tools/sqlgen.py from sql/. */", '#include "db/sql_gen.h"', ""]
    out += lite_table(statements)
    out += pg_table(statements)
    out.append("const struct hf_migration hf_migrations[] = {")
    for version, name, lite, pg in migrations:
        out.append(f"    {{{version}, \"{name}\",\n{c_string(lite)},\n{c_string(pg)}}},")
    out.append("};")
    out.append("const size_t hf_migration_count = sizeof(hf_migrations) / sizeof(hf_migrations[0]);")
    for engine, column in (("lite", 2), ("pg", 3)):
        whole = "\n".join(one[column] for one in migrations)
        out.append(f"const char hf_schema_{engine}[] =\n{c_string(whole)};")
    return "\n".join(out) + "\n"


def read_migrations(paths, pieces):
    result = []
    tables = set()
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
        text = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
        lite = for_engine(text, "lite")
        opened = for_engine(text, "pg")
        tables |= sqlpg.tables(opened)
        try:
            pg = sqlpg.migration(opened, tables)
        except sqlpg.Untranslatable as why:
            fail(f"{path.name}: {why}")
        result.append((int(match.group(1)), match.group(2), lite, pg))
    versions = [version for version, _, _, _ in result]
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
    migrations = read_migrations(migrations, pieces)
    copied, guards = sqlcopy.read([lite for _, _, lite, _ in migrations],
                                  [pg for _, _, _, pg in migrations])
    statements += [Statement(name, text, (None, None, None))
                   for name, text in sqlcopy.statements(copied, guards)]
    pathlib.Path(args.header).write_text(header(statements))
    pathlib.Path(args.source).write_text(source(statements, migrations)
                                         + sqlcopy.source(copied, guards))


if __name__ == "__main__":
    main()
