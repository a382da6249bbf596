#!/usr/bin/env python3
"""Sessions from the shell: create, send, list, show, log, inputs."""

import hashlib
import os

from harness import Case, main

NOT_FOUND, BAD, CONFLICT = 3, 2, 7


class Sessions(Case):
    def setUp(self):
        super().setUp()
        self.made = self.ok("session", "create", "s1", "--agent", "helper",
                            "--labels", '{"customer":"17"}')

    def send(self, text, *args, code=0):
        return self.cli("--json", "session", "send", "s1", text, *args, code=code).json

    def test_a_session_is_created_once(self):
        self.assertTrue(self.made["created"])
        again = self.ok("session", "create", "s1", "--agent", "helper",
                        "--labels", '{"customer":"17"}')
        self.assertFalse(again["created"])
        self.assertEqual(again["session"], self.made["session"])
        other = self.cli("--json", "session", "create", "s1", "--agent", "other", code=CONFLICT)
        self.assertIn("session show", other.json["error"]["action"])
        self.assertEqual(len(self.ok("session", "list")["items"]), 1)

    def test_a_message_is_a_unit_that_no_queue_offers(self):
        unit = self.send("Where is my parcel?", "--key", "mail-1")["work"]
        self.assertEqual((unit["queue"], unit["status"], unit["gate"]), ("session", "queued", "lane"))
        self.assertEqual(unit["session_id"], "s1")
        self.assertEqual(self.ok("work", "claim", "--queue", "session", "--owner", "w")["items"], [])
        shown = self.ok("session", "show", "s1")
        self.assertGreaterEqual(shown["session"]["ready_at"], unit["created_at"])
        self.assertEqual(shown["usage"], [])
        self.assertEqual((shown["session"]["record_count"], shown["session"]["chain"]), (0, "0" * 64))

    def test_a_message_with_a_key_is_sent_once(self):
        first = self.send("hello", "--key", "k")
        again = self.send("hello", "--key", "k")
        self.assertEqual((first["created"], again["created"]), (True, False))
        self.assertEqual(first["work"]["work_id"], again["work"]["work_id"])
        self.assertEqual(self.send("other", "--key", "k", code=CONFLICT)["error"]["code"], "conflict")
        self.assertEqual(len(self.ok("session", "inputs", "s1")["items"]), 1)

    def test_inputs_come_in_order_and_in_pages(self):
        sent = [self.send(text)["work"]["work_id"] for text in ("a", "b", "c")]
        page = self.ok("session", "inputs", "s1", "--limit", "2")
        rest = self.ok("session", "inputs", "s1", "--after", page["next"])
        self.assertEqual([i["work_id"] for i in page["items"] + rest["items"]], sent)
        self.assertEqual([i["payload"]["message"]["parts"][0]["content"]
                          for i in page["items"] + rest["items"]], ["a", "b", "c"])
        self.assertIsNone(rest["next"])
        self.assertEqual(self.ok("session", "inputs", "s1", "--after", sent[2])["items"], [])
        wrong = self.cli("--json", "session", "inputs", "s1", "--after", "absent", code=BAD)
        self.assertIn("session s1 has no input absent", wrong.json["error"]["message"])
        self.assertIn("the input with this work_id", self.cli("session", "inputs", "--help").out)

    def test_behind_the_last_record_there_are_none(self):
        for after in ("0", "9"):
            page = self.ok("session", "log", "s1", "--after", after)
            self.assertEqual((page["items"], page["next"]), ([], None))
        self.assertIn("no records", self.cli("session", "log", "s1", "--after", "0").out)
        self.cli("session", "log", "absent", "--after", "0", code=NOT_FOUND)

    def test_an_empty_message_is_refused(self):
        self.assertIn("text or files", self.cli("session", "send", "s1", "", code=BAD).err)
        blank = self.send(" ", code=BAD)["error"]
        self.assertIn("the message is empty", blank["message"])
        with open(os.path.join(self.folder, "n.txt"), "wb") as file:
            file.write(b"note")
        sent = self.send("", "--attach", os.path.join(self.folder, "n.txt"))
        self.assertEqual([p["kind"] for p in sent["work"]["payload"]["message"]["parts"]], ["attachment"])
        self.assertEqual(len(self.ok("session", "inputs", "s1")["items"]), 1)

    def test_files_go_with_a_message(self):
        image = b"\x89PNG\r\n\x1a\n\x00pixels"
        for name, content in (("p.png", image), ("n.txt", "caf\u00e9".encode()), ("b.bin", b"\xff\x00"), ("e", b"")):
            with open(os.path.join(self.folder, name), "wb") as file:
                file.write(content)
        path = lambda name: os.path.join(self.folder, name)  # noqa: E731
        first = self.send("look", "--key", "k", "--attach", path("p.png"), "--attach", path("n.txt"))
        again = self.send("look", "--key", "k", "--attach", path("p.png"), "--attach", path("n.txt"))
        self.assertEqual((first["created"], again["created"]), (True, False))
        parts = first["work"]["payload"]["message"]["parts"]
        self.assertEqual([p.get("attachment") for p in parts],
                         [{"ref": "sha256:" + hashlib.sha256(image).hexdigest(), "media_type": "image/png",
                           "name": "p.png", "bytes": len(image)},
                          {"ref": "sha256:" + hashlib.sha256("caf\u00e9".encode()).hexdigest(),
                           "media_type": "text/plain", "name": "n.txt", "bytes": 5}, None])
        self.assertEqual(parts[2]["content"], "look")
        alone = self.cli("--json", "session", "send", "s1", "--attach", path("n.txt")).json
        self.assertEqual(len(alone["work"]["payload"]["message"]["parts"]), 1)
        with open(path("p.png"), "ab") as file:
            file.truncate(3670017)
        for name, message in (("p.png", "is over 3670016 bytes"),
                                    ("b.bin", "neither an image (PNG, JPEG, GIF, WebP) nor UTF-8 text"),
                                    ("e", "is empty"), ("none", "No such file or directory")):
            error = self.send("x", "--attach", path(name), code=BAD)["error"]
            self.assertIn(message, error["message"])
        self.assertEqual(len(self.ok("session", "inputs", "s1")["items"]), 2)
        self.cli("call", "session.send", '{"session_id":"s1","text":"x","attach":["n.txt"]}', code=BAD)

    def test_a_whole_message_can_be_sent(self):
        message = ('{"kind":"message","message":{"id":"m1","role":"user","parts":'
                   '[{"kind":"text","content":"x"}]}}')
        unit = self.ok("session", "send", "s1", "--message", message)["work"]
        self.assertEqual(unit["payload"]["message"]["id"], "m1")
        wrong = self.cli("--json", "session", "send", "s1", "--message", '{"kind":"event"}', code=BAD)
        self.assertIn("message", wrong.json["error"]["message"])
        self.assertEqual(len(self.ok("session", "inputs", "s1")["items"]), 1)

    def test_bad_input_is_named_and_writes_nothing(self):
        both = self.cli("session", "send", "s1", code=BAD)
        self.assertIn("--text and --message", both.err)
        self.cli("session", "create", "s2", code=BAD)  # no agent
        self.cli("session", "create", "s2", "--agent", "a", "--relation", "child", code=BAD)
        self.cli("session", "create", "s2", "--agent", "a", "--relation", "cousin", code=BAD)
        gone = self.cli("session", "send", "absent", "hi", code=NOT_FOUND)
        self.assertIn("session create", gone.err)
        for verb in ("show", "log", "inputs"):
            self.cli("session", verb, "absent", code=NOT_FOUND)
        self.assertEqual(len(self.ok("session", "list")["items"]), 1)

    def test_lists_name_the_state_for_people(self):
        self.assertRegex(self.cli("session", "list").out, r"s1 +- +helper +idle +0 +0")
        self.send("hello")
        self.assertRegex(self.cli("session", "list").out, r"s1 +- +helper +ready")
        self.assertIn("no records", self.cli("session", "log", "s1").out)
        self.assertEqual(self.ok("session", "list", "--agent", "other")["items"], [])
        self.assertEqual(self.ok("session", "list", "--open")["items"], [])


if __name__ == "__main__":
    main()
