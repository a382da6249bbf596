#!/usr/bin/env python3
"""A fleet whose server is restarted, killed, failed over and cut off, and whose workers are
stopped past their leases. The judge is plain SQL and what the workers wrote down; it shares no
code with the library.

    tests/soak/failover.py               the short form: every fault once, little load
    tests/soak/failover.py --units 2000  the same, longer
    tests/soak/failover.py partition     in network namespaces of its own (root)

What must hold: what was acknowledged is there (G1), each unit ends once (G2), nothing is written
under a fence after a larger one was given (G3), each trail is a chain (G4, G5). A failover that
loses what was acknowledged must be noticed and said: the store is in a new incarnation, and
readers of the feed are told.
"""
import collections
import json
import os
import pwd
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HOLDFAST = os.environ["HOLDFAST"]
LOAD = os.environ["FLEET_LOAD"]
UNITS = 25
WORKERS = 3
SETTINGS = """
listen_addresses = '{listen}'
unix_socket_directories = '{folder}'
port = {port}
max_connections = 60
shared_buffers = 32MB
logging_collector = off
wal_level = replica
max_wal_senders = 5
hot_standby = on
wal_keep_size = 64MB
autovacuum_naptime = 1h
"""


def program(name):
    return f"/usr/lib/postgresql/15/bin/{name}"


def as_server(*command, check=True, space=None):
    if os.geteuid() == 0:
        command = ("runuser", "-u", "postgres", "--", *command)
    if space:
        command = ("ip", "netns", "exec", space, *command)
    done = subprocess.run(command, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if check and done.returncode:
        raise AssertionError(f"{command}: {done.stdout[-2000:]}")
    return done.stdout


class Server:
    """One PostgreSQL, in a folder of its own."""

    def __init__(self, folder, port=5432, listen="", space=None):
        self.folder, self.port, self.listen, self.space = folder, port, listen, space
        self.data = os.path.join(folder, "data")
        os.mkdir(folder)
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(folder, user.pw_uid, user.pw_gid)

    def configure(self):
        with open(os.path.join(self.data, "postgresql.conf"), "a", encoding="utf-8") as conf:
            conf.write(SETTINGS.format(folder=self.folder, port=self.port, listen=self.listen))

    def make(self):
        as_server(program("initdb"), "-D", self.data, "-U", "hf", "-A", "trust", "-E", "UTF8",
                  "--no-sync", "--no-instructions")
        self.configure()
        if self.listen:
            with open(os.path.join(self.data, "pg_hba.conf"), "a", encoding="utf-8") as hba:
                hba.write("host all all 10.0.0.0/8 trust\n")
        self.start()
        as_server(program("createdb"), "-h", self.folder, "-U", "hf", "hf")

    def start(self):
        as_server(program("pg_ctl"), "-D", self.data, "-l", os.path.join(self.folder, "log"), "-w",
                  "-s", "start", space=self.space)

    def stop(self, mode="immediate"):
        as_server(program("pg_ctl"), "-D", self.data, "-m", mode, "-s", "-w", "stop", check=False)

    def standby_of(self, primary):
        as_server(program("pg_basebackup"), "-h", primary.folder, "-U", "hf", "-D", self.data, "-R",
                  "-X", "stream", "-c", "fast", "--no-sync")
        self.configure()
        self.start()

    def promote(self):
        as_server(program("pg_ctl"), "-D", self.data, "-w", "-s", "promote")

    def sql(self, text):
        done = subprocess.run([program("psql"), "-qAtX", "-h", self.folder, "-U", "hf", "-d", "hf",
                               "-v", "ON_ERROR_STOP=1", "-c", text], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise AssertionError(f"{text}: {done.stderr}")
        return [line.split("|") for line in done.stdout.splitlines()]


class Fleet(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.mkdtemp(prefix="hf-failover-")
        os.chmod(self.scratch, 0o755)
        self.servers, self.workers, self.logs = [], [], []

    def tearDown(self):
        for worker in self.workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGCONT)
                worker.kill()
            worker.wait()
        for server in self.servers:
            server.stop()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def server(self, name, **kwargs):
        one = Server(os.path.join(self.scratch, name), **kwargs)
        self.servers.append(one)
        return one

    def url(self, *servers):
        hosts = ",".join(s.folder for s in servers)
        more = "&target_session_attrs=read-write" if len(servers) > 1 else ""
        return f"postgres:///hf?host={hosts}&user=hf&connect_timeout=3{more}"

    def cli(self, url, *words):
        done = subprocess.run([HOLDFAST, "--db", url, *words], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    def load(self, url, count=WORKERS, ttl=30000, before=()):
        self.cli(url, "migrate")
        for i in range(count):
            log = os.path.join(self.scratch, f"w{i}.log")
            self.logs.append(log)
            self.workers.append(subprocess.Popen(
                [*before, LOAD, "--url", url, "--name", f"w{i}", "--log", log, "--units",
                 str(UNITS), "--ttl", str(ttl)]))

    def lines(self):
        result = []
        for log in self.logs:
            try:
                with open(log, encoding="utf-8") as lines:
                    result += [line.split() for line in lines if line.endswith("\n")]
            except FileNotFoundError:
                pass
        return result

    def acknowledged(self):
        return sum(1 for line in self.lines() if line[0] == "D")

    def wait_for_progress(self, share):
        """Until that share of all units was finished, so that the fault falls into the work."""
        end = time.monotonic() + 120
        while self.acknowledged() < share * UNITS * len(self.logs):
            if time.monotonic() > end:
                self.fail("the workers do not get on")
            time.sleep(0.01)

    def wait_for_workers(self):
        for worker in self.workers:
            self.assertEqual(worker.wait(timeout=150), 0)

    # ---- the judge -----------------------------------------------------------------------

    def judge(self, server, may_lose=False):
        told = collections.defaultdict(set)
        for line in self.lines():
            self.assertNotEqual(line[0], "E", line)
            if line[0] == "C":
                told["created"].add(line[2])
            if line[0] == "D":
                told["done"].add((line[1], int(line[2])))
        rows = {work_id: status for work_id, status in
                server.sql("SELECT work_id, status FROM holdfast.runtime_work")}
        lost = {work_id for work_id in told["created"] if work_id not in rows}
        undone = {work_id for work_id, _ in told["done"] if rows.get(work_id) != "done"} - lost
        if not may_lose:
            self.assertEqual(lost, set())
            self.assertEqual(undone, set())
        self.judge_trails(server, {} if may_lose else dict(told["done"]))
        return lost | undone

    def judge_trails(self, server, done):
        trails = collections.defaultdict(list)
        for work_id, before, after, fence in server.sql(
                "SELECT work_id, coalesce(from_status, ''), coalesce(to_status, ''), fence "
                "FROM holdfast.runtime_work_event WHERE part = 0 ORDER BY event_id"):
            trails[work_id].append((before, after, int(fence)))
        for work_id, trail in trails.items():
            moves = [move for move in trail if move[1]]
            self.assertEqual([m[0] for m in moves[1:]], [m[1] for m in moves[:-1]], work_id)
            fences = [fence for _, _, fence in trail]
            self.assertEqual(fences, sorted(fences), f"{work_id}: a fence fell")
            ends = [m for m in moves if m[1] == "done"]
            self.assertLessEqual(len(ends), 1, work_id)
            if work_id in done:
                self.assertEqual(ends[0][2], done[work_id], f"{work_id}: ended by another")
            taken = [m[2] for m in moves if m[1] == "running"]
            self.assertEqual(taken, sorted(set(taken)), work_id)

    def incarnation(self, server):
        return int(server.sql("SELECT incarnation FROM holdfast.hf_store")[0][0])

    def until(self, held):
        end = time.monotonic() + 60
        while not held():
            if time.monotonic() > end:
                self.fail("it does not come about")
            time.sleep(0.05)


class Faults(Fleet):
    def test_backends_are_killed_and_the_server_is_restarted(self):
        server = self.server("a")
        server.make()
        self.load(self.url(server))
        for share in (0.1, 0.3, 0.5):
            self.wait_for_progress(share)
            server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                       "WHERE pid <> pg_backend_pid() AND datname = 'hf'")
        server.stop("immediate")
        server.start()
        self.wait_for_workers()
        self.judge(server)
        self.assertEqual(self.acknowledged(), UNITS * WORKERS)

    def pair(self, synchronous):
        primary, standby = self.server("a"), self.server("b")
        primary.make()
        standby.standby_of(primary)
        if synchronous:
            primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
            primary.sql("SELECT pg_reload_conf()")
            self.until(lambda: primary.sql("SELECT sync_state FROM pg_stat_replication") ==
                       [["sync"]])
        return primary, standby

    def test_a_synchronous_failover_loses_nothing(self):
        primary, standby = self.pair(True)
        url = self.url(primary, standby)
        self.load(url)
        self.wait_for_progress(0.3)
        before = self.incarnation(primary)
        primary.stop("immediate")
        standby.promote()
        self.wait_for_workers()
        self.assertEqual(self.judge(standby), set())
        self.assertGreater(self.incarnation(standby), before)

    def test_what_an_asynchronous_failover_loses_is_noticed_and_said(self):
        primary, standby = self.pair(False)
        url = self.url(primary, standby)
        self.load(url)
        self.wait_for_progress(0.2)
        # The last line; what happens while it looks comes before.
        told = self.cli(url, "work", "tail", "--no-follow", "--json").splitlines()
        cursor = json.loads(told[-1])["cursor"]
        standby.sql("ALTER SYSTEM SET primary_conninfo = 'host=/nowhere'")
        standby.sql("SELECT pg_reload_conf()")
        seen = self.acknowledged()
        self.until(lambda: self.acknowledged() > seen + 3 or
                   all(w.poll() is not None for w in self.workers))
        before = self.incarnation(primary)
        primary.stop("immediate")
        standby.promote()
        self.wait_for_workers()
        self.cli(url, "work", "create", "--source", "manual", "--source-id", "after", "--quiet")
        lost = self.judge(standby, may_lose=True)
        self.assertNotEqual(lost, set(), "the test lost nothing: it shows nothing")
        self.assertGreater(self.incarnation(standby), before)
        first = json.loads(self.cli(url, "work", "tail", "--after", cursor, "--no-follow",
                                    "--json").splitlines()[0])
        self.assertEqual(first.get("notice"), "history", first)
        print(f"# asynchronous: {len(lost)} acknowledged units were lost, and a new incarnation "
              "says so", file=sys.stderr)

    def test_a_worker_stopped_past_its_lease_writes_nothing_more(self):
        server = self.server("a")
        server.make()
        url = self.url(server)
        self.load(url, ttl=1000)
        monitor = subprocess.Popen([HOLDFAST, "--db", url, "monitor", "--interval", "100ms",
                                    "--quiet"])
        self.workers.append(monitor)
        taker = subprocess.Popen([sys.executable, __file__, "--take", url])
        self.workers.append(taker)
        chance = random.Random(7)
        for share in (0.1, 0.25, 0.4, 0.55):
            self.wait_for_progress(share)
            victim = self.workers[chance.randrange(WORKERS)]
            victim.send_signal(signal.SIGSTOP)
            time.sleep(1.6)
            victim.send_signal(signal.SIGCONT)
        for worker in self.workers[:WORKERS]:
            self.assertEqual(worker.wait(timeout=150), 0)
        monitor.terminate()
        taker.terminate()
        self.judge(server)


class Partition(Fleet):
    def test_a_partition_is_survived(self):
        server_space, client_space = f"hfs{os.getpid()}", f"hfc{os.getpid()}"
        ip = lambda *words: subprocess.run(["ip", *words], check=True)
        for space in (server_space, client_space):
            ip("netns", "add", space)
            self.addCleanup(ip, "netns", "del", space)
            ip("-n", space, "link", "set", "lo", "up")
        ip("link", "add", "hfv0", "netns", client_space, "type", "veth", "peer", "name", "hfv1",
           "netns", server_space)
        ip("-n", client_space, "addr", "add", "10.99.0.1/24", "dev", "hfv0")
        ip("-n", server_space, "addr", "add", "10.99.0.2/24", "dev", "hfv1")
        ip("-n", client_space, "link", "set", "hfv0", "up")
        ip("-n", server_space, "link", "set", "hfv1", "up")
        server = self.server("a", listen="10.99.0.2", space=server_space)
        server.make()
        self.cli(self.url(server), "migrate")
        url = ("postgres://hf@10.99.0.2:5432/hf?connect_timeout=2&tcp_user_timeout=2000"
               "&keepalives_idle=1&keepalives_interval=1&keepalives_count=2")
        inside = ("ip", "netns", "exec", client_space)
        for i in range(WORKERS):
            log = os.path.join(self.scratch, f"w{i}.log")
            self.logs.append(log)
            self.workers.append(subprocess.Popen(
                [*inside, LOAD, "--url", url, "--name", f"w{i}", "--log", log, "--units",
                 str(UNITS)]))
        for share in (0.2, 0.5):
            self.wait_for_progress(share)
            ip("-n", server_space, "route", "add", "blackhole", "10.99.0.1/32")
            time.sleep(4)
            ip("-n", server_space, "route", "del", "blackhole", "10.99.0.1/32")
        self.wait_for_workers()
        self.judge(server)


def take(url):
    """Takes what lapsed, finishes it, until it is ended."""
    while True:
        for queue in ("w0", "w1", "w2"):
            done = subprocess.run([HOLDFAST, "--db", url, "work", "claim", "--owner", "taker",
                                   "--queue", queue, "--json"], stdout=subprocess.PIPE, text=True,
                                  check=False)
            items = json.loads(done.stdout).get("items", []) if done.returncode == 0 else []
            for item in items:
                subprocess.run([HOLDFAST, "--db", url, "work", "close-out", item["work_id"],
                                "--token", item["lease_token"], "--status", "done", "--quiet"],
                               check=False)
        time.sleep(0.2)


def main():
    global UNITS
    words = sys.argv[1:]
    if words[:1] == ["--take"]:
        take(words[1])
    if "--units" in words:
        UNITS = int(words[words.index("--units") + 1])
    unittest.main(argv=[sys.argv[0], "Partition" if "partition" in words else "Faults"])


if __name__ == "__main__":
    main()
