#!/usr/bin/env python3
"""Throughput next to a transaction that stays open: nothing that ended since can be vacuumed.

    tests/soak/pinned.py [SECONDS]      default 600; needs PG_SCRIPT and CHURN (see tests/meson.build)

One server, two databases, the same load on both in turn, a second each. In the first a caller has
a snapshot open all the time; PostgreSQL keeps dead rows for the snapshots of their own database, so the
second is the first without it. Prints what both did in each minute and fails if the last minute's ratio is
below 0.7.
"""
import os
import subprocess
import sys
import tempfile

PG = os.environ["PG_SCRIPT"]
CHURN = os.environ["CHURN"]
BAR = 0.7


def main():
    seconds = sys.argv[1] if len(sys.argv) > 1 else "600"
    folder = os.path.join(tempfile.mkdtemp(prefix="hf-pinned-"), "pg")
    os.chmod(os.path.dirname(folder), 0o755)
    try:
        pinned = subprocess.run([PG, "up", folder], check=True, text=True,
                                stdout=subprocess.PIPE).stdout.strip()
        free = pinned.replace("/hf?", "/free?")

        def sql(url, text):
            subprocess.run(["psql", url, "-qAtc", text], check=True, stdout=subprocess.DEVNULL)

        for setting in ("autovacuum_naptime = '5s'", "shared_buffers = '128MB'"):
            sql(pinned, f"ALTER SYSTEM SET {setting}")
        sql(pinned, "SELECT pg_reload_conf()")
        sql(pinned, "CREATE DATABASE free")
        holder = subprocess.Popen(["psql", pinned, "-qAt"], stdin=subprocess.PIPE, text=True,
                                  stdout=subprocess.PIPE)
        holder.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT 'pinned';\n")
        holder.stdin.flush()
        assert holder.stdout.readline().strip() == "pinned"
        print("         pinned      free  ratio", flush=True)
        run = subprocess.Popen([CHURN, "--seconds", seconds, "--urls", pinned, free],
                               stdout=subprocess.PIPE, text=True)
        ratio = 0.0
        for line in run.stdout:
            print(line, end="", flush=True)
            ratio = float(line.split()[-1])
        holder.stdin.close()
        holder.wait()
        if run.wait() != 0 or ratio < BAR:
            sys.exit(f"the ratio is {ratio}, and {BAR} is asked for")
    finally:
        subprocess.run([PG, "down", folder], check=False)
        os.rmdir(os.path.dirname(folder))


if __name__ == "__main__":
    main()
