#!/usr/bin/env python3
"""work tail and store log, from outside: with writers, restarts, prune and signals."""

import json
import signal
import subprocess
import threading

from harness import HOLDFAST, Case, main


class Tail(Case):
    def create(self, source_id, *more):
        return self.cli("work", "create", "--source", "manual", "--source-id", source_id,
                        "--json", *more).json["work"]["work_id"]

    def tail(self, *args, code=0):
        done = self.cli("work", "tail", "--no-follow", "--json", *args, code=code)
        lines = [json.loads(line) for line in done.out.splitlines()]
        return lines[:-1], lines[-1]

    def follow(self, *args):
        return subprocess.Popen([HOLDFAST, "work", "tail", "--json", *args], env=self.env,
                                cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)

    def test_a_cursor_goes_on_where_the_last_reader_ended(self):
        first = self.create("a")
        events, end = self.tail("--after", "start")
        self.assertEqual([e["work_id"] for e in events], [first])
        self.assertEqual((end["ok"], end["events"]), (True, 1))
        self.assertEqual(events[-1]["cursor"], end["cursor"])
        second = self.create("b")
        events, end = self.tail("--after", end["cursor"])
        self.assertEqual([e["work_id"] for e in events], [second])
        self.assertEqual(self.tail()[0], [])
        self.assertEqual(self.tail(end["cursor"])[1]["cursor"], end["cursor"])

    def test_a_follower_gets_every_event_of_many_writers_once(self):
        self.cli("migrate")
        reader = self.follow("--after", "start")

        def write(name):
            for i in range(10):
                subprocess.run([HOLDFAST, "work", "create", "--source", "manual", "--source-id",
                                f"{name}{i}", "--quiet"], env=self.env, check=True)

        threads = [threading.Thread(target=write, args=(name,)) for name in "abc"]
        for thread in threads:
            thread.start()
        got = [json.loads(reader.stdout.readline()) for _ in range(30)]
        for thread in threads:
            thread.join()
        reader.send_signal(signal.SIGINT)
        rest, said = reader.communicate(timeout=20)
        self.assertEqual(reader.returncode, 0, said)
        self.assertEqual(json.loads(rest)["events"], 30)
        ids = [e["event_id"] for e in got]
        self.assertEqual(ids, sorted(set(ids)))
        units = {w["work_id"] for w in self.cli("work", "list", "--json").json["items"]}
        self.assertEqual({e["work_id"] for e in got}, units)

    def test_a_reader_that_leaves_ends_it_quietly(self):
        self.create("a")
        reader = self.follow("--after", "start")
        reader.stdout.readline()
        reader.stdout.close()
        self.create("b")
        self.create("c")
        self.assertEqual(reader.wait(timeout=20), 0)
        self.assertEqual(reader.stderr.read(), "")
        reader.stderr.close()

    def test_a_reader_that_leaves_ends_it_though_nothing_more_comes(self):
        self.create("a")
        tail = self.follow("--after", "start")
        tail.stdout.readline()
        tail.stdout.close()
        self.assertEqual(tail.wait(20), 0)
        self.assertEqual(tail.stderr.read(), "")
        tail.stderr.close()

    def test_prune_and_new_histories_are_said(self):
        self.create("a")
        start = self.tail()[1]["cursor"]
        self.create("b", "--detached")
        self.cli("work", "prune", "--older-than", "0s")
        lines, end = self.tail("--after", start)
        self.assertEqual([line.get("notice") for line in lines], ["gap"])
        self.assertEqual(self.tail("--after", end["cursor"])[0], [])
        self.create("all", "--detached")  # the newest event, read and then pruned
        end = self.tail("--after", end["cursor"])[1]
        self.cli("work", "prune", "--older-than", "0s")
        self.assertEqual(self.tail("--after", end["cursor"])[0], [])
        self.cli("store", "bump")
        self.create("c")
        lines, _ = self.tail("--after", end["cursor"])
        self.assertEqual([line.get("notice") for line in lines], ["history", None])
        self.assertEqual(lines[0]["incarnation"], 2)
        log = self.cli("store", "log", "--json").json["items"]
        self.assertEqual([entry["what"] for entry in log], ["bump"])
        self.assertIn("bump", self.cli("store", "log").out)

    def test_filters(self):
        one = self.create("a", "--queue", "q1", "--kind", "k1")
        self.create("b", "--queue", "q2")
        for filters in (["--queue", "q1"], ["--kind", "k1"]):
            events, _ = self.tail("--after", "start", *filters)
            self.assertEqual([e["work_id"] for e in events], [one])
        self.assertEqual(self.tail("--after", "start", "--type", "nothing")[0], [])
        self.assertEqual(len(self.tail("--after", "start", "--type", "work_created")[0]), 2)

    def test_bad_cursors_are_refused(self):
        self.create("a")
        for bad in ("nonsense", "hf1.9.0.1.0.0", "hf1.1.0.1.0"):
            got = self.cli("work", "tail", "--after", bad, "--json", code=2).json
            self.assertEqual(got["error"]["code"], "invalid_argument")
            self.assertIn("after", got["error"]["message"])
        message = self.refused(2, "invalid_argument", "work", "tail", "--after", "hf1.1.0.2.0.0")
        self.assertIn("past the end", message)
        self.env["HOLDFAST_DB"] = "/nowhere/at/all.db"
        self.cli("work", "tail", code=9)


if __name__ == "__main__":
    main()
