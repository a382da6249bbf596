#!/usr/bin/env python3
"""holdfast job and limit."""

from harness import Case, main


class Jobs(Case):
    def enqueue(self, *args):
        return self.ok("job", "enqueue", *args)["work"]

    def row(self, work_id):
        return self.ok("job", "show", work_id)["work"]

    def test_a_job_is_rerunnable_work(self):
        job = self.enqueue("mail", "--payload", '{"to":"ann"}', "--priority", "2")
        self.assertEqual((job["kind"], job["status"], job["disposition"], job["priority"]),
                         ("mail", "queued", "rerunnable", 2))
        self.assertEqual(job["payload"], {"to": "ann"})
        listed = self.ok("job", "list", "--kind", "mail")["items"]
        self.assertEqual([row["work_id"] for row in listed], [job["work_id"]])

    def test_whether_a_job_was_created_is_said(self):
        for created in (True, False):
            answer = self.ok("job", "enqueue", "mail", "--idempotency-key", "k")
            self.assertIs(answer["created"], created)

    def test_kinds_of_our_own_are_reserved(self):
        self.refused(2, "invalid_argument", "job", "enqueue", "hf.own")

    def test_a_debounce_puts_the_same_job_off(self):
        first = self.enqueue("index", "--dedup-key", "c7", "--debounce", "1m")
        second = self.enqueue("index", "--dedup-key", "c7", "--debounce", "1h")
        self.assertEqual(first["work_id"], second["work_id"])
        self.assertGreaterEqual(second["due_at"] - first["due_at"], 3500000)
        self.refused(2, "invalid_argument", "job", "enqueue", "index", "--debounce", "1m")

    def test_run_now_and_cancel(self):
        job = self.enqueue("mail", "--delay", "1h")["work_id"]
        self.assertEqual(self.row(job)["gate"], "due")
        self.ok("job", "run-now", job)
        self.assertIsNone(self.row(job)["gate"])
        self.refused(4, "illegal_transition", "job", "run-now", job)
        self.ok("job", "cancel", job, "--reason", "sent by hand")
        self.assertEqual(self.row(job)["status"], "cancelled")

    def test_a_limit_lets_one_run_at_a_time(self):
        self.ok("limit", "set", "key:acme", "--max", "1")
        one = self.enqueue("call", "--limit-key", "acme")
        two = self.enqueue("call", "--limit-key", "acme")
        self.assertEqual((one["gate"], two["gate"]), (None, "limit"))
        limit = self.ok("limit", "list")["items"][0]
        self.assertEqual((limit["name"], limit["max_running"], limit["used"], limit["waiting"]),
                         ("key:acme", 1, 1, 1))
        self.ok("job", "cancel", one["work_id"], "--reason", "x")
        self.assertIsNone(self.row(two["work_id"])["gate"])
        self.ok("limit", "set", "key:acme", "--none")

    def test_bad_limits_say_what_is_wrong(self):
        for args in (["acme", "--max", "1"], ["key:a"], ["key:a", "--rate", "5"],
                     ["key:a", "--max", "1", "--none"], ["key:a", "--max", "0"]):
            self.refused(2, "invalid_argument", "limit", "set", *args)


if __name__ == "__main__":
    main()
