#!/usr/bin/env python3
"""Turn sql/*.sql into the C tables of statements and migrations, one table per engine.

A statement file holds, for each statement:

    -- name: work_claim
    -- in:   $1 queue, $2 owner          (for people)
    -- out:  seq, work_id                (for people)
    -- sizes: 1 8 64                     (optional: one variant per size, {size} in the text)
    -- sets: text bigint bytea           (if it reads hf_args: the types of a1, a2, a3; of an UPDATE
                                          that does not: those of $1, $2, $3. See below)
    -- columns: seq, work_id             (what it returns, if SQLite cannot be asked: see below)
    -- many: work_claims [unless $3]     (optional: the form that takes such sets of many
                                          callers at once, each changing one row, if $3 is null)
    <one statement>

C names the columns of a result and has no numbers for them: of work_claim's seq HF_COL_WORK_CLAIM_SEQ,
and HF_COL_WORK_CLAIM_COUNT of how many there are. The names come from the statement itself: the build
runs it in an empty database and asks SQLite. So an expression that C reads needs a name (AS). What
SQLite does not have, or what the driver runs itself, lists its columns.

`-- fragment: NAME` begins a text that others splice in as {NAME}. A comment of the form
/*pg ...*/ is opened for PostgreSQL and stays a comment for SQLite; /*lite ...*/ the other
way round. Parameters are $1..$n without gaps; where PostgreSQL cannot tell a parameter's type
from its place ($3 IS NULL), it is written $3::text, and SQLite sees $3.

For PostgreSQL the rest is done here: the functions hf_now(), hf_lease_now() and
hf_incarnation() are asked once per statement and not once per row; hf_args becomes unnest() of
one array per column; an UPDATE that has sets and names its parameters becomes one of a row of hf_args
for each set, so that the driver can run it once for the calls of many callers; and each statement
that changes rows and returns none gets a second form that raises unless it changed as many as its
last parameter says. A statement of sets that reads may return `a.place AS place` last, the place of
the row's set, from 1: then it can be run once for many callers, too.

Files of sql/driver are the drivers' (--driver). A statement or fragment in sql/lite or sql/pg, or in
driver/lite.sql or driver/pg.sql, is of that engine. What differs between the engines by more than a
clause is in both folders; the build compares the parameters and columns of both. A fragment holds no
other fragment.

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
import sqlite3
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


def spliced(text):
    return [name for name in re.findall(r"\{([a-z_][a-z0-9_]*)\}", text) if name != "size"]


def splice(text, fragments, where):
    for name in spliced(text):
        if name not in fragments:
            fail(f"{where}: unknown fragment {{{name}}}")
        if spliced(fragments[name]):
            fail(f"fragment {name} holds {{{spliced(fragments[name])[0]}}}: name it in {where}")
        text = text.replace("{" + name + "}", fragments[name])
    return text


def parameters(text, where):
    numbers = sorted({int(n) for n in re.findall(r"\$(\d+)", text)})
    if numbers != list(range(1, len(numbers) + 1)):
        fail(f"{where}: parameters are not $1..$n without gaps: {numbers}")
    return len(numbers)


def header_line(body, key, pattern):
    match = re.search(rf"^-- {key}: *({pattern}) *$", body, flags=re.M)
    return match.group(1) if match else None


class Statement:
    """One statement: its text for each engine that has it, before marks and fragments."""

    def __init__(self, name, texts, sets=None, many=None):
        self.name = name
        self.base = name  # without its size
        self.columns = None  # not known
        self.texts = texts
        self.sets = sets
        self.many = many
        self.fragments = {engine: {} for engine in ENGINES}

    def opened(self, engine):
        """Marks first, then fragments, so that a mark may hold a fragment with marks."""
        parts = {name: for_engine(text, engine) for name, text in self.fragments[engine].items()}
        text = splice(for_engine(self.texts[engine], engine), parts, self.name)
        if "/*" in text:
            fail(f"statement {self.name}: a mark is /*pg ...*/ or /*lite ...*/, with a space")
        return text

    def width(self):
        return -1 if self.columns is None else len(self.columns)

    def lite(self):
        if "lite" not in self.texts:
            return None
        return re.sub(r"(\$\d+)::[a-z]+(\[\])?", r"\1", self.opened("lite"))

    def pg(self):
        if "pg" not in self.texts:
            return None
        try:
            return sqlpg.statement(self.opened("pg"), self.sets)
        except sqlpg.Untranslatable as why:
            fail(f"statement {self.name}: {why}")


def engines_of(path):
    for name in (path.stem, path.parent.name):
        if name in ENGINES:
            return (name,)
    return ENGINES


def read_statements(paths):
    fragments, statements = {engine: {} for engine in ENGINES}, {}
    for path in paths:
        engines = engines_of(path)
        parts = re.split(r"^-- (name|fragment): *([a-z0-9_]+) *$", path.read_text(), flags=re.M)
        for kind, name, body in zip(parts[1::3], parts[2::3], parts[3::3]):
            sizes = header_line(body, "sizes", "[0-9 ]+")
            sets = header_line(body, "sets", "[a-z ]+")
            many = header_line(body, "many", r"[a-z_]+( unless \$[0-9]+)?")
            columns = header_line(body, "columns", "[a-z0-9_, ]+")
            text = strip(body)
            if not text:
                fail(f"{path.name}: {name} is empty")
            if kind == "fragment":
                for engine in engines:
                    fragments[engine][name] = text
                continue
            for size in sizes.split() if sizes else [None]:
                full = f"{name}_{size}" if size else name
                one = statements.setdefault(full, Statement(full, {}))
                one.base = name
                listed = columns.replace(" ", "").split(",") if columns else None
                if listed and one.columns not in (None, listed):
                    fail(f"statement {full}: the engines have other columns")
                one.columns = listed or one.columns
                one.sets = sets.split() if sets else one.sets
                one.many = many.split() if many else one.many
                for engine in engines:
                    if engine in one.texts:
                        fail(f"statement {full} is there twice")
                    one.texts[engine] = text.replace("{size}", size) if size else text
    for one in statements.values():
        one.fragments = fragments
    return list(statements.values())


def check(statements):
    used = {name for one in statements for text in one.texts.values() for name in spliced(text)}
    for name in {**statements[0].fragments["lite"], **statements[0].fragments["pg"]}:
        if name not in used:
            fail(f"no statement has fragment {name}")
    for one in statements:  # callers know no engine: what both have takes the same parameters
        if len(one.texts) < 2:
            continue
        lite, pg = (parameters(text, one.name) for text in (one.lite(), one.pg()))
        if lite not in (pg, pg - len(one.sets or [])):
            fail(f"statement {one.name} has {lite} parameters on SQLite and {pg} on PostgreSQL")


def c_string(text, indent="        "):
    if text is None:
        return f"{indent}NULL"
    lines = []
    for line in text.splitlines():
        escaped = line.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'{indent}"{escaped}\\n"')
    return "\n".join(lines) if lines else f'{indent}""'


class Names:
    """What the tables are called in C: of the driver's own statements, or of the ledger's."""

    def __init__(self, driver):
        self.include = "db/own_gen.h" if driver else "store/batch/sql_gen.h"
        self.guard = "HF_" + re.sub(r"\W", "_", self.include.upper())
        self.prefix = "DB_OWN_" if driver else "HF_SQL_"
        self.table = "db_own_" if driver else "hf_sql_"
        self.column = "DB_COL_" if driver else "HF_COL_"
        self.id = "db_own" if driver else "hf_sql_id"

    def header(self, statements, more):
        ids = "\n".join(f"    {self.prefix}{one.name.upper()}," for one in statements)
        return f"""/* Made by tools/sqlgen.py from sql/. */
#ifndef {self.guard}
#define {self.guard}

#include "db/schema.h"

enum {self.id} {{
{ids}
    {self.prefix}COUNT
}};

/* The places of columns in what the statements return. */
{self.column_names(statements)}

extern const struct hf_sql_text {self.table}lite[{self.prefix}COUNT];
extern const struct hf_pg_text {self.table}pg[{self.prefix}COUNT];
{more}
#endif
"""

    def column_names(self, statements):
        known = {one.base: one.columns for one in statements if one.columns}
        out = []
        for base, columns in known.items():
            names = {column: place for place, column in enumerate(columns)
                     if column.isidentifier() and columns.count(column) == 1}
            lines = [f"    {self.column}{base.upper()}_{column.upper()} = {place},"
                     for column, place in names.items()]
            lines.append(f"    {self.column}{base.upper()}_COUNT = {len(columns)},")
            out.append("\n".join(["enum {", *lines, "};"]))
        return "\n".join(out)

    def lite_table(self, statements):
        out = [f"const struct hf_sql_text {self.table}lite[{self.prefix}COUNT] = {{"]
        for one in statements:
            body = one.lite()
            count = parameters(body, one.name) if body is not None else 0
            out.append(f"    [{self.prefix}{one.name.upper()}] = {{\n        \"{one.name}\",\n"
                       f"{c_string(body)},\n        {count}, {one.width()}}},")
        return out + ["};", ""]

    def pg_table(self, statements):
        out = [f"const struct hf_pg_text {self.table}pg[{self.prefix}COUNT] = {{"]
        for one in statements:
            body = one.pg()
            count = parameters(body, one.name) if body is not None else 0
            guarded = sqlpg.guarded(body, count) if body is not None else None
            sets = "".join({"text": "t", "bigint": "i", "bytea": "b"}[t] for t in one.sets or [])
            sets = f'"{sets}"' if sets else "NULL"
            many = f"{self.prefix}{one.many[0].upper()}" if one.many else "-1"
            unless = int(one.many[2][1:]) - 1 if one.many and len(one.many) > 1 else -1
            reads = "true" if body is not None and sqlpg.reads(body) else "false"
            before = "true" if reads == "true" and sqlpg.before(body) else "false"
            places = "true" if reads == "true" and (one.columns or [""])[-1] == "place" else "false"
            out.append(f"    [{self.prefix}{one.name.upper()}] = {{\n        \"{one.name}\",\n"
                       f"{c_string(body)},\n{c_string(guarded)},\n"
                       f"        {sets}, {count}, {one.width()}, {reads}, {before}, {places}, "
                       f"{many}, {unless}}},")
        return out + ["};", ""]

    def source(self, statements):
        return ["/* Made by tools/sqlgen.py from sql/. */", f'#include "{self.include}"', "",
                *self.lite_table(statements), *self.pg_table(statements)]


MIGRATIONS_HEADER = """
#define HF_MIGRATION_COUNT @count@
extern const struct hf_migration hf_migrations[HF_MIGRATION_COUNT];
/* All of them, one after the other. */
extern const char hf_schema_lite[];
extern const char hf_schema_pg[];
"""


def migrations_source(migrations):
    out = ["const struct hf_migration hf_migrations[HF_MIGRATION_COUNT] = {"]
    for version, name, lite, pg in migrations:
        out.append(f"    {{{version}, \"{name}\",\n{c_string(lite)},\n{c_string(pg)}}},")
    out.append("};")
    for engine, column in (("lite", 2), ("pg", 3)):
        whole = "\n".join(one[column] for one in migrations)
        out.append(f"const char hf_schema_{engine}[] =\n{c_string(whole)};")
    return out


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


def scratch_store(migrations):
    db = sqlite3.connect(":memory:", isolation_level=None)
    for text in migrations:
        db.executescript(text)
    for name in ("hf_now", "hf_lease_now", "hf_incarnation", "hf_next_id"):
        db.create_function(name, 0, lambda: 1)
    db.create_function("hf_expect", 2, lambda met, wanted: wanted)
    sets = ", ".join(f"a{i + 1}" for i in range(32))
    db.execute(f"CREATE TEMP TABLE hf_args ({sets}, made_id, new_id, place)")
    return db


def ask_columns(statements, migrations):
    """Of each statement that SQLite has and that returns rows: their names."""
    db = scratch_store(migrations)
    for one in statements:
        text = one.lite()
        if text is None or one.columns:
            continue
        if not re.match(r"SELECT|WITH", text) and "RETURNING" not in text:
            continue
        names = {name: 0 for name in re.findall(r"[$:](\w+)", sqlpg.blanked(text))}
        db.execute("BEGIN")
        try:
            told = db.execute(text, names).description
        except sqlite3.Error as why:
            fail(f"statement {one.name} cannot be asked for its columns ({why}): list them")
        db.execute("ROLLBACK")
        one.columns = [column for column, *_ in told or []]
        on_pg = sqlpg.columns(one.pg()) if "pg" in one.texts else 0
        if on_pg and on_pg != len(one.columns):
            fail(f"statement {one.name} returns {len(one.columns)} columns on SQLite and {on_pg} "
                 "on PostgreSQL")


def ledger(args, statements, paths):
    """Adds what the migrations make; returns what goes behind the tables of statements."""
    named = (piece.split("=", 1) for piece in args.piece)
    pieces = {name: pathlib.Path(path).read_text() for name, path in named}
    migrations = read_migrations([p for p in paths if p.parent.name == "migrations"], pieces)
    ask_columns(statements, [lite for _, _, lite, _ in migrations])
    copied, guards = sqlcopy.read([lite for _, _, lite, _ in migrations],
                                  [pg for _, _, _, pg in migrations])
    statements += [Statement(name, {"lite": text, "pg": text})
                   for name, text in sqlcopy.statements(copied, guards)]
    more = "\n".join(migrations_source(migrations)) + "\n" + sqlcopy.source(copied, guards)
    header = MIGRATIONS_HEADER.replace("@count@", str(len(migrations)))
    return header + sqlcopy.HEADER, more


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", action="store_true")
    parser.add_argument("--header", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--piece", action="append", default=[])
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    paths = [pathlib.Path(f) for f in args.files]
    statements = read_statements([p for p in paths if p.parent.name != "migrations"])
    check(statements)
    header, source = ("", "") if args.driver else ledger(args, statements, paths)
    names = Names(args.driver)
    pathlib.Path(args.header).write_text(names.header(statements, header))
    pathlib.Path(args.source).write_text("\n".join(names.source(statements)) + "\n" + source)


if __name__ == "__main__":
    main()
