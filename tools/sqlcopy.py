"""Statements that copy a store, made from its schema. For tools/sqlgen.py.

The migrations are run here, at build time, in a database in memory; what they make is what is
copied. So a table or column that a migration adds is copied without another line of code. Two
conventions carry over what cannot be copied as it is: columns lease_*_at are times of the lease
clock, which each store has of its own, and columns *xid are numbers of a server's own.
"""
import re
import sqlite3

# On PostgreSQL events are found by their units.
KEYS = {"work_event": ["seq", "event_id"]}
OWN = ("hf_schema", "hf_store")  # of each store alone


class Table:
    def __init__(self, db, name, on_pg):
        facts = db.execute(f"PRAGMA table_info({name})").fetchall()
        self.name = name
        # What only one engine has is of use to its guards alone, and has a default.
        self.columns = [column for _, column, _, _, _, _ in facts if column in on_pg]
        keys = sorted((place, column) for _, column, _, _, _, place in facts if place)
        self.keys = [column for _, column in keys]
        self.stamped = "xid" in on_pg  # its rows carry the id of their transaction on PostgreSQL
        self.numbered = len(keys) == 1 and any(
            place and kind == "INTEGER" for _, _, kind, _, _, place in facts)
        self.keys = KEYS.get(name, self.keys)
        if not self.keys:
            raise SystemExit(f"sqlgen: table {name} has no primary key: it cannot be copied")

    def statements(self):
        columns, keys = ", ".join(self.columns), ", ".join(self.keys)
        after = ", ".join(f"${i + 1}" for i in range(len(self.keys)))
        limit = len(self.keys) + 1
        values = ", ".join(f"${i + 1}" for i in range(len(self.columns)))
        stamp, zero = ("/*pg , xid*/", "/*pg , 0*/") if self.stamped else ("", "")
        yield f"copy_count_{self.name}", f"SELECT count(*) FROM {self.name}"
        page = f"SELECT {columns} FROM {self.name}"
        yield f"copy_first_{self.name}", f"{page}\n ORDER BY {keys} LIMIT $1"
        # The first key alone too: of more than one PostgreSQL would use no index of the first.
        start = f"{self.keys[0]} >= $1 AND " if len(self.keys) > 1 else ""
        yield (f"copy_next_{self.name}",
               f"{page}\n WHERE {start}({keys}) > ({after}) ORDER BY {keys} LIMIT ${limit}")
        yield (f"copy_write_{self.name}",
               f"INSERT INTO {self.name} ({columns}{stamp})\nVALUES ({values}{zero})")
        number = self.keys[0]
        on_pg = (f"SELECT setval(q.name, q.last) FROM (SELECT pg_get_serial_sequence("
                 f"'{self.name}', '{number}') AS name, max({number}) AS last FROM {self.name})"
                 f" AS q WHERE q.name IS NOT NULL AND q.last IS NOT NULL")
        yield (f"copy_sequence_{self.name}",
               f"/*lite SELECT 1*//*pg {on_pg if self.numbered else 'SELECT 1'}*/")


def pg_columns(pg):
    """The columns of each table as PostgreSQL has it."""
    found = {}
    for text in pg:
        for name, body in re.findall(r"CREATE TABLE (\w+) \((.*?)\n\)", text, flags=re.S):
            found[name] = set(re.findall(r"^\s*,?\s*([a-z]\w*)\s", body, flags=re.M))
        for name, column in re.findall(r"ALTER TABLE (\w+)\s+ADD (?:COLUMN )?(\w+)", text):
            found.setdefault(name, set()).add(column)
    return found


def read(lite, pg):
    """The tables to copy and the guards to switch off, from the migrations of each engine."""
    db = sqlite3.connect(":memory:")
    for text in lite:
        db.executescript(text)
    on_pg = pg_columns(pg)
    names = [name for (name,) in db.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' "
        "ESCAPE '\\' ORDER BY rowid")]
    tables = [Table(db, name, on_pg.get(name, set())) for name in names if name not in OWN]
    guards = db.execute("SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger' "
                        "ORDER BY rowid").fetchall()
    return tables, [(name, table, sql) for name, table, sql in guards if table not in OWN]


def statements(tables, guards):
    result = []
    for table in tables:
        result += table.statements()
    for name, table, sql in guards:  # on PostgreSQL all of a table at once, once more or less
        off, on = (f"ALTER TABLE {table} {way} TRIGGER USER" for way in ("DISABLE", "ENABLE"))
        made = re.sub(r"^CREATE TRIGGER", "CREATE TRIGGER IF NOT EXISTS", sql)
        result.append((f"copy_off_{name}", f"/*lite DROP TRIGGER {name}*//*pg {off}*/"))
        result.append((f"copy_on_{name}", f"/*lite {made}*//*pg {on}*/"))
    return result


HEADER = """
/* What is copied from one store to another: every table but those of a store alone. */
struct hf_copy_column {
    const char *name;
    bool lease_clock; /* a time of the lease clock */
    bool own;         /* a number of the server's own: 0 in a copy */
};
struct hf_copy_table {
    const char *name;
    const struct hf_copy_column *columns;
    size_t column_count;
    const size_t *keys; /* columns of the primary key, in its order */
    size_t key_count;
    enum hf_sql_id count;
    enum hf_sql_id first;
    enum hf_sql_id next;
    enum hf_sql_id write;
    enum hf_sql_id sequence;
};
extern const struct hf_copy_table hf_copy_tables[];
extern const size_t hf_copy_table_count;
/* Guards of the tables, switched off and on around what is written. */
extern const enum hf_sql_id hf_copy_off[];
extern const enum hf_sql_id hf_copy_on[];
extern const size_t hf_copy_guard_count;
"""


def flag(value):
    return "true" if value else "false"


def source(tables, guards):
    out = []
    for table in tables:
        out.append(f"static const struct hf_copy_column copy_{table.name}[] = {{")
        for column in table.columns:
            lease = re.fullmatch(r"lease_\w+_at", column)
            own = re.fullmatch(r"(\w+_)?xid", column)
            out.append(f"    {{ \"{column}\", {flag(lease)}, {flag(own)} }},")
        out.append("};")
        keys = ", ".join(str(table.columns.index(key)) for key in table.keys)
        out.append(f"static const size_t copy_keys_{table.name}[] = {{ {keys} }};")
    out.append("const struct hf_copy_table hf_copy_tables[] = {")
    for table in tables:
        upper = table.name.upper()
        ids = ", ".join(f"HF_SQL_COPY_{verb}_{upper}"
                        for verb in ("COUNT", "FIRST", "NEXT", "WRITE", "SEQUENCE"))
        out.append(f"    {{ \"{table.name}\", copy_{table.name}, {len(table.columns)}, "
                   f"copy_keys_{table.name},\n      {len(table.keys)}, {ids} }},")
    out.append("};")
    out.append(f"const size_t hf_copy_table_count = {len(tables)};")
    for way in ("off", "on"):
        ids = "".join(f"    HF_SQL_COPY_{way.upper()}_{name.upper()},\n" for name, _, _ in guards)
        out.append(f"const enum hf_sql_id hf_copy_{way}[] = {{\n{ids}}};")
    out.append(f"const size_t hf_copy_guard_count = {len(guards)};")
    return "\n".join(out) + "\n"
