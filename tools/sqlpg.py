"""SQL in the words of SQLite, as PostgreSQL takes it. For tools/sqlgen.py.

Only the subset that sql/ uses is known. What cannot be translated is refused here, at build
time, with the words to write instead; it is not left to the server to find.
"""
import re

# Each is asked once per statement, and not once per row. But every subquery is a plan of its own, which
# is started at each execution: a statement of one row names a clock, `hf_now() AS now`, and that
# stays.
ONCE = {
    "hf_now()": "(SELECT hf_now())",
    "hf_lease_now()": "(SELECT hf_lease_now())",
    "hf_incarnation()": "(SELECT incarnation FROM hf_store WHERE id = 1)",
}

# What SQLite takes and PostgreSQL does not, and what to write for both.
FOREIGN = [
    (r"\bjson_each\s*\(", "json_each is SQLite's: put it into /*lite ...*/, and "
     "/*pg SELECT jsonb_array_elements_text(...)*/ next to it"),
    (r"\bOR\s+(?:ROLLBACK|REPLACE|IGNORE|ABORT|FAIL)\s+INTO\b|\bUPDATE\s+OR\b|\bINSERT\s+OR\b",
     "conflict clauses are SQLite's: write /*lite OR ROLLBACK*/"),
    (r"\bIS\s+NOT\s+(?!NULL\b|DISTINCT\b|TRUE\b|FALSE\b)",
     "x IS NOT y is SQLite's: write IS DISTINCT FROM"),
    (r"\bIS\s+(?!NULL\b|NOT\b|DISTINCT\b|TRUE\b|FALSE\b)",
     "x IS y is SQLite's: write IS NOT DISTINCT FROM"),
    (r"\b(?:max|min)\s*\([^()]*(?:\([^()]*\)[^()]*)*,",
     "max and min of two values are SQLite's: write /*lite max*//*pg greatest*/(...)"),
    (r"\b(?:ifnull|iif|strftime|datetime|julianday|printf|group_concat|last_insert_rowid"
     r"|changes|total_changes|instr|char|hex|typeof|unixepoch|json_extract|json_object"
     r"|json_array|json_group_array|json_valid|randomblob|total)\s*\(",
     "this function is SQLite's: make the value in C, or mark both ways"),
    (r"\b(?:rowid|sqlite_\w+|pragma_\w+|GLOB|AUTOINCREMENT|INDEXED\s+BY)\b",
     "this word is SQLite's: mark it /*lite ...*/"),
]


class Untranslatable(Exception):
    pass


def blanked(text):
    """Literals emptied, so that no pattern finds anything in them."""
    return re.sub(r"'(?:[^']|'')*'", lambda m: "'" + " " * (len(m.group(0)) - 2) + "'", text)


def refuse_foreign(text):
    plain = blanked(text)
    for pattern, advice in FOREIGN:
        found = re.search(pattern, plain, flags=re.I)
        if found:
            line = text[text.rfind("\n", 0, found.start()) + 1:].splitlines()[0].strip()
            raise Untranslatable(f"PostgreSQL cannot take `{line}`: {advice}")


def refuse_untyped(text):
    """PostgreSQL assigns a parameter the type of its first place, and $3 IS NULL has none."""
    seen = set()
    for found in re.finditer(r"\$(\d+)(::\w+)?(\s+IS\s+(?:NOT\s+)?NULL)?", blanked(text), re.I):
        number, cast, asks = found.groups()
        if asks and not cast and number not in seen:
            raise Untranslatable(f"PostgreSQL cannot tell the type of ${number} from "
                                 f"`{found.group(0)}`: write ${number}::text (or ::bigint)")
        seen.add(number)


def each_set(text, sets):
    """An UPDATE that names its parameters, run once for many sets of them, each in a row."""
    at, verb = main_verb(text)
    top = top_where(text, at)
    if verb != "UPDATE" or top is None:
        raise Untranslatable("-- sets: of a statement without hf_args is for an UPDATE with a WHERE")
    opened = f"{text[:top]}FROM hf_args a\n {text[top:]}"
    return re.sub(r"\$(\d+)", r"a.a\1", opened)


def top_where(text, at):
    depth = 0
    for found in re.finditer(r"[()]|\bWHERE\b", blanked(text)[at:], re.I):
        word = found.group(0)
        depth += (word == "(") - (word == ")")
        if depth == 0 and word.upper() == "WHERE":
            return at + found.start()
    return None


def open_sets(text, sets):
    if sets and not re.search(r"\bhf_args\b", text):
        text = each_set(text, sets)
    if not re.search(r"\bhf_args\b", text):
        return text
    if not sets:
        raise Untranslatable("it reads hf_args: say the types of its columns in a line "
                             "`-- sets: text bigint ...`")
    found = re.search(r"\bhf_args\s+(\w+)\b", text)
    if not found:
        raise Untranslatable("hf_args needs an alias: hf_args a")
    once = max((int(n) for n in re.findall(r"\$(\d+)", blanked(text))), default=0)
    arrays = ", ".join(f"${once + i + 1}::{kind}[]" for i, kind in enumerate(sets))
    names = ", ".join(f"a{i + 1}" for i in range(len(sets)))
    unnest = f"unnest({arrays})"
    if f"{found.group(1)}.place" in text:
        unnest, names = f"{unnest} WITH ORDINALITY", f"{names}, place"
    return text.replace(found.group(0), f"{unnest} AS {found.group(1)}({names})")


def once(text):
    for call, subquery in ONCE.items():
        text = re.sub(rf"(?<!SELECT )\b{re.escape(call)}(?! AS (?:lease_)?now\b)", subquery, text)
    return text


def statement(text, sets):
    refuse_foreign(text)
    refuse_untyped(text)
    return once(open_sets(text, sets))


def main_verb(text):
    """Where the statement proper begins, after its WITH, and its first word."""
    plain = blanked(text)
    depth = 0
    for found in re.finditer(r"[()]|\b(?:SELECT|INSERT|UPDATE|DELETE|LOCK|CREATE)\b", plain, re.I):
        word = found.group(0).upper()
        depth += (word == "(") - (word == ")")
        if depth == 0 and word not in "()":
            return found.start(), word
    return 0, ""


def columns(text):
    """How many columns the statement returns."""
    plain = blanked(text)
    at, verb = main_verb(text)
    returning = [m.end() for m in re.finditer(r"\bRETURNING\b", plain, re.I) if m.start() > at]
    if verb == "SELECT":
        start = at + len(verb)
    elif returning:
        start = returning[-1]
    else:
        return 0
    depth, count = 0, 1
    for found in re.finditer(r"[(),]|\b(?:FROM|WHERE|ORDER|UNION|LIMIT)\b", plain[start:], re.I):
        word = found.group(0).upper()
        if depth == 0 and word.isalpha() or depth == 0 and word == ")":
            break
        depth += (word == "(") - (word == ")")
        count += depth == 0 and word == ","
    return count


def reads(text):
    changes = re.search(r"\b(?:INSERT\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM)\b", blanked(text), re.I)
    return main_verb(text)[1] == "SELECT" and not changes


def before(text):
    """Of one that reads: whether it asserts or locks, for what is written after it."""
    return re.search(r"\bhf_expect\(|\bFOR\s+(?:NO\s+KEY\s+)?UPDATE\b|_advisory_", blanked(text),
                     re.I) is not None


def guarded(text, count):
    """What changes rows may not be in a WITH of a WITH, so all goes into one."""
    at, verb = main_verb(text)
    if verb not in ("INSERT", "UPDATE", "DELETE", "SELECT") or reads(text):
        return None
    if re.search(r"\bRETURNING\b", blanked(text[at:]), re.I):
        return None
    before = text[:at].rstrip()
    before = before + "," if before else "WITH"
    each = "" if verb == "SELECT" else "\nRETURNING 1"
    return (f"{before} hf_met AS (\n{text[at:]}{each})\n"
            f"SELECT CASE WHEN n = ${count + 1} THEN n ELSE hf_expect(n, ${count + 1}) END\n"
            f"  FROM (SELECT count(*) AS n FROM hf_met) AS hf_count")


# ---- migrations ---------------------------------------------------------------------------


def tables(text):
    return set(re.findall(r"\bCREATE\s+TABLE\s+(\w+)", text, re.I))


def types(text):
    text = re.sub(r"\bINTEGER PRIMARY KEY\b",
                  "bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY", text)
    text = re.sub(r"\bINTEGER\b", "bigint", text)
    text = re.sub(r"\bTEXT\b", 'text COLLATE "C"', text)
    text = re.sub(r"\bBLOB\b", "bytea", text)
    return re.sub(r"\)\s*STRICT(?:\s*,\s*WITHOUT\s+ROWID)?\s*;", ");", text)


def qualify(text, names):
    """A guard's body runs under any caller's search_path, so it names the schema."""
    def put(match):
        word, name = match.groups()
        return f"{word} @schema@.{name}" if name in names else match.group(0)
    return re.sub(r"\b(FROM|JOIN|INTO|UPDATE)\s+(\w+)\b", put, text)


TRIGGER = re.compile(
    r"CREATE\s+TRIGGER\s+(?P<name>\w+)\s+(?P<time>BEFORE|AFTER)\s+"
    r"(?P<event>INSERT|DELETE|UPDATE(?:\s+OF\s+[\w\s,]+?)?)\s+ON\s+(?P<table>\w+)\s+"
    r"(?:WHEN\s+(?P<when>.*?)\s+)?BEGIN\b(?P<body>.*?)\bEND;", re.S)
RAISE = re.compile(
    r"SELECT\s+RAISE\s*\(\s*(?:ROLLBACK|ABORT|FAIL)\s*,\s*(?P<what>'(?:[^']|'')*')\s*\)"
    r"(?:\s+WHERE\s+(?P<where>.*))?$", re.S)


def raising(what):
    return f"RAISE EXCEPTION USING MESSAGE = {what}, ERRCODE = 'HF002';"


def steps_of(body):
    plain = blanked(body)
    ends = [at for at, char in enumerate(plain) if char == ";"]
    steps = [body[a:b].strip() for a, b in zip([0] + [at + 1 for at in ends], ends)]
    return [step for step in steps if step]


def guard_step(step):
    found = RAISE.match(step)
    if found and found.group("where"):
        return f"    IF {found.group('where').strip()} THEN {raising(found.group('what'))} END IF;"
    if found:
        return f"    {raising(found.group('what'))}"
    if re.search(r"\bRAISE\s*\(", step):
        raise Untranslatable("a guard may say SELECT RAISE(ROLLBACK, '...') [WHERE ...]; any "
                             "other RAISE needs /*lite ...*/ and a hand-written /*pg ...*/")
    refuse_foreign(step)
    return f"    {step};"


# Characters. PostgreSQL reads the condition of a trigger from its text in every statement that may
# fire it; a function is compiled once for a connection.
LONG_CONDITION = 200


def guard(match, names):
    """A trigger with a body becomes a function and a trigger. A short condition without a
    subquery stays in the trigger, where it costs no call."""
    name, time, table = match.group("name", "time", "table")
    when = match.group("when")
    event = re.sub(r"\s+", " ", match.group("event"))
    row = "OLD" if event == "DELETE" else "NEW"
    lines = []
    condition = ""
    if when and (re.search(r"\bSELECT\b", when) or len(when) > LONG_CONDITION):
        lines.append(f"    IF NOT ({when}) THEN RETURN {row}; END IF;")
    elif when:
        condition = f" WHEN ({when})"
    steps = steps_of(match.group("body"))
    alone = RAISE.match(steps[0]) if len(steps) == 1 and not when else None
    if alone and alone.group("where") and not re.search(r"\bSELECT\b", alone.group("where")):
        condition = f" WHEN ({alone.group('where').strip()})"
        steps = [f"SELECT RAISE(ROLLBACK, {alone.group('what')})"]
    lines += [guard_step(step) for step in steps]
    # Before an update PostgreSQL would lock the row, in the log, for any such guard.
    if event.startswith("UPDATE") and all(RAISE.match(step) for step in steps):
        time = "AFTER"
    lines.append(f"    RETURN {row};")
    body = qualify("\n".join(lines), names)
    return (f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $guard$\nBEGIN\n"
            f"{body}\nEND $guard$;\n"
            f"CREATE TRIGGER {name} {time} {event} ON {table}\n"
            f"    FOR EACH ROW{condition} EXECUTE FUNCTION {name}();")


def migration(text, names):
    text = TRIGGER.sub(lambda match: guard(match, names), text)
    if re.search(r"\bRAISE\s*\(", text):
        raise Untranslatable("a guard could not be read: CREATE TRIGGER name BEFORE|AFTER "
                             "INSERT|UPDATE [OF ...]|DELETE ON table [WHEN ...] BEGIN ... END;")
    return types(text)
