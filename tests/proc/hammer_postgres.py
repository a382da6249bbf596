#!/usr/bin/env python3
"""The hammer on PostgreSQL: eight processes on one schema, directly and through PgBouncer, and with
kill -9. The judge asks the server with psql.

    tests/proc/hammer_postgres.py [UNITS]     as in the test suite: 1,000 units a run

A server of its own comes from tests/support/pg (or what PG_SCRIPT names)."""

import os
import shutil
import subprocess
import sys
import tempfile

import hammer

PG = os.environ.get("PG_SCRIPT", os.path.join(hammer.ROOT, "tests", "support", "pg"))
RUNS = [
    ("direct", {}),
    ("direct", {"kills": 12}),
    ("direct", {"processes": 2, "threads": 8}),  # they share transactions
    ("pooled", {}),
    ("pooled", {"kills": 12}),
]


def ask(verb, folder):
    return subprocess.run([PG, verb, folder], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


def finds_a_lost_end(folder, postgres, **options):
    """The judge sees what is there: an end that is taken away is missed."""
    url, schema = postgres
    if not hammer.run(folder, postgres=postgres, **options):
        return False
    subprocess.run(["psql", url, "-qAt", "-c", f"SET search_path = {schema};"
                    " ALTER TABLE work_event DISABLE TRIGGER USER;"
                    " DELETE FROM work_event WHERE to_status = 'done' AND seq ="
                    " (SELECT min(seq) FROM work_state WHERE status = 'done')"], check=True)
    return not hammer.check_hammer.judge(folder, postgres)


def main():
    units = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    base = tempfile.mkdtemp(prefix="hf-hammer-pg-")
    os.chmod(base, 0o755)
    folder = os.path.join(base, "pg")
    good = True
    try:
        urls = {"direct": ask("up", folder)}
        urls["pooled"] = ask("pooler", folder)
        for i, (way, options) in enumerate(RUNS):
            schema = f"hammer{i}"
            print(f"{way} {options}:", flush=True)
            good = hammer.in_scratch(hammer.run, postgres=(urls["direct"], schema), units=units,
                                     url=f"{urls[way]}&schema={schema}", **options) and good
        good = hammer.in_scratch(finds_a_lost_end, postgres=(urls["direct"], "planted"),
                                 units=100, url=urls["direct"] + "&schema=planted") and good
    finally:
        ask("down", folder)
        shutil.rmtree(base, ignore_errors=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
