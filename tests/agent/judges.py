#!/usr/bin/env python3
"""Our codecs and client against what others wrote: the stream readers of the official SDKs, the model
server aimock, and an HTTP/2 server. scripts/setup has put them into a folder; without it this fails.
"""

import base64
import json
import os
import random
import subprocess
import tempfile
import unittest

from servers import KINDS, Server, certificate, configure

HERE = os.path.dirname(os.path.abspath(__file__))
TURN = os.environ["MODEL_TURN"]
CALL = os.environ["MODEL_CALL"]
CHAT, MESSAGES = (kind for kind, _ in KINDS)
PIECES = (1, 7, 1 << 20)
RANDOM_STREAMS = int(os.environ.get("RANDOM_STREAMS", 40))


def events(*values, end="\n\n"):
    return "".join("data: " + (v if isinstance(v, str) else json.dumps(v)) + end for v in values)


def chunk(delta, finish=None, **more):
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", **more,
            "choices": [{"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish}]}


def call(index, text, **more):
    return {"tool_calls": [{"index": index, **more, "function": {"arguments": text}}]}


def first_call(index, name, ident, text=""):
    return {"tool_calls": [{"index": index, "id": ident, "type": "function",
                            "function": {"name": name, "arguments": text}}]}


USAGE = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [],
         "usage": {"prompt_tokens": 20, "completion_tokens": 9, "total_tokens": 29,
                   "prompt_tokens_details": {"cached_tokens": 12},
                   "completion_tokens_details": {"reasoning_tokens": 4}}}

CHAT_STREAMS = {
    "text": events(chunk({"role": "assistant", "content": ""}), chunk({"content": "Hel"}), chunk({"content": "lo"}),
                   chunk({}, "stop"), USAGE, "[DONE]"),
    "characters": events(chunk({"content": "Grüße 😀 "}), chunk({"content": "\n\"\\\t\u2028"}), chunk({}, "stop"),
                         "[DONE]"),
    "crlf and comments": ": hello\r\n\r\n" + events(chunk({"content": "a"}), chunk({}, "stop"), "[DONE]",
                                                    end="\r\n\r\n"),
    "other fields": "event: x\nid: 1\nretry: 5\n" + events(chunk({"content": "a"}), chunk({}, "stop"), "[DONE]"),
    "capped": events(chunk({"content": "a"}), chunk({}, "length"), "[DONE]"),
    "filtered": events(chunk({"content": "a"}), chunk({}, "content_filter"), "[DONE]"),
    "one call": events(chunk(first_call(0, "add", "call_1")), chunk(call(0, '{"a"')), chunk(call(0, ":1}")),
                       chunk({}, "tool_calls"), USAGE, "[DONE]"),
    "text and two calls": events(chunk({"content": "On it."}), chunk(first_call(0, "add", "call_1", "{}")),
                                 chunk(first_call(1, "sub", "call_2")), chunk(call(1, '{"x":"\\u00e4"}')),
                                 chunk({}, "tool_calls"), "[DONE]"),
    "empty": events(chunk({"role": "assistant", "content": ""}), chunk({}, "stop"), "[DONE]"),
}

CHAT_FAILURES = {
    "an error": events(chunk({"content": "a"}), {"error": {"message": "no", "type": "server_error"}}),
    "no json": events(chunk({"content": "a"}), "{", "[DONE]"),
    "no finish": events(chunk({"content": "a"}), "[DONE]")[:-len("data: [DONE]\n\n")],
    "nothing": "",
}


def start(**more):
    return {"type": "message_start", "message": {
        "id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 20, "output_tokens": 1, **more}}}


def block(index, value, *deltas):
    return [{"type": "content_block_start", "index": index, "content_block": value},
            *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
            {"type": "content_block_stop", "index": index}]


def text_block(index, *texts):
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": t} for t in texts))


def tool_block(index, ident, name, *texts):
    return block(index, {"type": "tool_use", "id": ident, "name": name, "input": {}},
                 *({"type": "input_json_delta", "partial_json": t} for t in texts))


def messages(*parts, end="\n\n"):
    return "".join(f"event: {p['type']}{end[:len(end) // 2]}data: {json.dumps(p)}{end}" for p in parts)


def stop(reason, tokens=9):
    return [{"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None},
             "usage": {"output_tokens": tokens}}, {"type": "message_stop"}]


PING = {"type": "ping"}
SIGNED = block(0, {"type": "thinking", "thinking": "", "signature": ""}, {"type": "thinking_delta", "thinking": "hm, "},
               {"type": "thinking_delta", "thinking": "so"}, {"type": "signature_delta", "signature": "c2ln"})
REDACTED = block(1, {"type": "redacted_thinking", "data": "ZGF0YQ=="})

MESSAGE_STREAMS = {
    "text": messages(start(), PING, *text_block(0, "Hel", "lo"), *stop("end_turn")),
    "characters": messages(start(), *text_block(0, "Grüße 😀 ", "\n\"\\\t"), *stop("end_turn")),
    "crlf": messages(start(), *text_block(0, "a"), *stop("end_turn"), end="\r\n\r\n"),
    "capped": messages(start(), *text_block(0, "a"), *stop("max_tokens")),
    "stop sequence": messages(start(), *text_block(0, "a"), *stop("stop_sequence")),
    "refused": messages(start(), *text_block(0, "a"), *stop("refusal")),
    "a call": messages(start(), *tool_block(0, "t1", "add", '{"a"', ":1}"), *stop("tool_use")),
    "two calls": messages(start(), *text_block(0, "On it."), *tool_block(1, "t1", "add", '{"n":1}'),
                          *tool_block(2, "t2", "sub", '{"x":"\\u00e4"}'), *stop("tool_use")),
    "a call without arguments": messages(start(), *tool_block(0, "t1", "now"), *stop("tool_use")),
    "thinking": messages(start(), *SIGNED, *REDACTED, *text_block(2, "a"), *stop("end_turn")),
    "cache": messages(start(cache_read_input_tokens=7, cache_creation_input_tokens=5), *text_block(0, "a"),
                      *stop("end_turn")),
}

MESSAGE_FAILURES = {
    "an error": messages(start(), *text_block(0, "a"),
                         {"type": "error", "error": {"type": "overloaded_error", "message": "no"}}),
    "no json": messages(start()) + "event: ping\ndata: {\n\n",
    "no message_stop": messages(start(), *text_block(0, "a"), *stop("end_turn")[:1]),
    "nothing": "",
}


ALPHABET = ["a", "Z", " ", "\n", "\r", "\t", '"', "\\", "/", "é", "\u2028", "😀", "\x7f", "{", "data: ", "\x01"]
ENDS = ("\n", "\r\n", "\r")


def random_text(dice, most=12):
    return "".join(dice.choice(ALPHABET) for _ in range(dice.randint(1, most)))


def random_cuts(dice, text):
    """The text in one to four pieces."""
    places = sorted(dice.randint(0, len(text)) for _ in range(dice.randint(0, 3)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)])]


def framed(dice, values):
    """The events in one of the ways that a stream may be written."""
    end, escape, out = dice.choice(ENDS), dice.random() < 0.5, ""
    for value in values:
        out += dice.choice(["", "", ": comment" + end, "id: 7" + end])
        out += f"event: {value['type']}" + end if "type" in value else ""
        out += "data:" + dice.choice(["", " "]) + (value["raw"] if "raw" in value else
                                                   json.dumps(value, ensure_ascii=escape)) + end + end
    return out


def random_chat(dice):
    values = [chunk({"content": piece}) for piece in random_cuts(dice, random_text(dice))]
    calls = dice.randint(0, 3)
    for i in range(calls):
        text = json.dumps({random_text(dice, 3): random_text(dice)})
        values.append(chunk(first_call(i, f"tool_{i}", f"call_{i}")))
        values += [chunk(call(i, piece)) for piece in random_cuts(dice, text)]
    values.append(chunk({}, "tool_calls" if calls else dice.choice(["stop", "length", "content_filter"])))
    return framed(dice, values + [USAGE] * dice.randint(0, 1) + [{"raw": "[DONE]"}])


def random_messages(dice):
    values, calls = [start(cache_read_input_tokens=dice.randint(0, 9))], 0
    for i in range(dice.randint(1, 4)):
        kind = dice.randint(0, 2)
        if kind == 0:
            values += text_block(i, *random_cuts(dice, "x" + random_text(dice)))
        elif kind == 1:
            calls += 1
            values += tool_block(i, f"t{i}", "add", *random_cuts(dice, json.dumps({"v": random_text(dice)})))
        else:
            deltas = [{"type": "thinking_delta", "thinking": t} for t in random_cuts(dice, random_text(dice))]
            values += block(i, {"type": "thinking", "thinking": "", "signature": ""}, *deltas,
                            {"type": "signature_delta", "signature": "c2ln"})
        values += [PING] * dice.randint(0, 1)
    return framed(dice, values + stop("tool_use" if calls else dice.choice(["end_turn", "max_tokens"])))


def chat_view(answer):
    """What an answer of the SDK is in our terms: parts, finish, usage, id and model."""
    choice = answer["choices"][0]
    message, usage = choice["message"], answer.get("usage") or {}
    parts = [("text", message["content"])] if message.get("content") else []
    parts += [("tool_call", c["id"], c["function"]["name"], c["function"]["arguments"])
              for c in message.get("tool_calls") or []]
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
    thought = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens", 0)
    counts = [usage.get("prompt_tokens", 0) - cached, usage.get("completion_tokens", 0), cached, 0, thought]
    return parts, choice["finish_reason"], counts, answer["id"], answer["model"]


def message_view(answer):
    parts = []
    for b in answer["content"]:
        if b["type"] == "text":
            parts.append(("text", b["text"]))
        elif b["type"] == "tool_use":
            parts.append(("tool_call", b["id"], b["name"], b["input"]))
        elif b["type"] == "thinking":
            parts.append(("reasoning", b["thinking"], b["signature"]))
        elif b["type"] == "redacted_thinking":
            parts.append(("reasoning", "", b["data"]))
    usage = answer["usage"]
    counts = [usage["input_tokens"], usage["output_tokens"], usage.get("cache_read_input_tokens") or 0,
              usage.get("cache_creation_input_tokens") or 0, 0]
    return parts, answer["stop_reason"], counts, answer["id"], answer["model"]


def our_view(kind, dump):
    parts = []
    for part in dump["parts"]:
        if part["kind"] == "text":
            parts.append(("text", part["content"]))
        elif part["kind"] == "tool_call":
            arguments = part["content"] if kind == CHAT else json.loads(part["content"] or "{}")
            parts.append(("tool_call", part["id"], part["tool"], arguments))
        elif kind == MESSAGES:  # the chat SDK has no reasoning
            replay = json.loads(part.get("replay", "{}"))
            parts.append(("reasoning", part["content"], replay.get("signature") or replay.get("data") or ""))
    return parts, dump["finish"], dump["usage"], dump["id"], dump["model"]


def recorded(path):
    """The bodies of the streams in a recording."""
    bodies = []
    with open(path, encoding="utf-8") as f:
        for line in map(json.loads, f):
            if "status" in line:
                bodies.append(b"")
            elif "body" in line:
                bodies[-1] += line["body"].encode()
            elif "base64" in line:
                bodies[-1] += base64.b64decode(line["base64"])
    return bodies


class Judges(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.folder = cls.place.name
        cls.server = Server(os.path.join(cls.folder, "journal"))
        cls.cert, key = certificate(cls.folder, "localhost")
        modules = subprocess.run([os.path.join(HERE, "../../scripts/npm"), "--where"], capture_output=True, text=True,
                                 check=True).stdout.strip()
        node = os.path.join(modules, "node_modules", "node", "bin", "node")
        if not os.path.exists(node):
            raise RuntimeError("the judges are missing: run scripts/npm")
        cls.judge = subprocess.Popen([node, os.path.join(HERE, "judge.mjs"), modules, cls.cert, key,
                                      str(cls.server.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cls.ports = json.loads(cls.judge.stdout.readline())

    @classmethod
    def tearDownClass(cls):
        cls.judge.stdin.close()
        cls.judge.stdout.close()
        cls.judge.wait()
        cls.server.stop()
        cls.place.cleanup()

    def path(self, name):
        return os.path.join(self.folder, name)

    def ask(self, **question):
        self.judge.stdin.write(json.dumps(question) + "\n")
        self.judge.stdin.flush()
        return json.loads(self.judge.stdout.readline())

    def theirs(self, kind, body):
        return self.ask(kind=kind, body=base64.b64encode(body).decode())

    def ours(self, kind, body):
        frames = b"".join(b"%s %d %d\n%s" % (kind.encode(), piece, len(body), body) for piece in PIECES)
        done = subprocess.run([os.environ["WIRE_DUMP"]], input=frames, capture_output=True, check=True)
        dumps = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(dumps, dumps[:1] * len(PIECES))
        return dumps[0]

    def agree(self, kind, body, what):
        theirs, ours = self.theirs(kind, body), self.ours(kind, body)
        self.assertNotIn("error", theirs, what)
        self.assertIsNone(ours["error"], what)
        view = chat_view if kind == CHAT else message_view
        self.assertEqual(our_view(kind, ours), view(theirs["answer"]), what)

    def test_the_sdks_read_the_same_from_every_stream(self):
        for kind, streams in ((CHAT, CHAT_STREAMS), (MESSAGES, MESSAGE_STREAMS)):
            for name, stream in streams.items():
                self.agree(kind, stream.encode(), f"{kind}: {name}")

    def test_the_sdks_read_the_same_from_random_streams(self):
        dice = random.Random(23)
        for number in range(RANDOM_STREAMS):
            for kind, make in ((CHAT, random_chat), (MESSAGES, random_messages)):
                stream = make(dice)
                self.agree(kind, stream.encode(), f"{kind} {number}: {stream!r}")

    def test_what_the_sdks_refuse_is_no_answer_to_us_either(self):
        for kind, streams in ((CHAT, CHAT_FAILURES), (MESSAGES, MESSAGE_FAILURES)):
            for name, stream in streams.items():
                self.assertIn("error", self.theirs(kind, stream.encode()), f"{kind}: {name}")
                self.assertIsNotNone(self.ours(kind, stream.encode())["error"], f"{kind}: {name}")

    def turn(self, config, model, question, *more):
        done = subprocess.run([TURN, config, model, question, *more], capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def aimock(self, kind, path):
        return configure(self.path("aimock.toml"), kind, f"http://127.0.0.1:{self.ports['aimock']}{path}", ["m"])

    def test_a_turn_of_three_rounds_with_aimock_is_the_same_by_script_and_its_streams_are_read_alike(self):
        for kind, path in KINDS:
            config, record = self.aimock(kind, path), self.path("record")
            live = self.turn(config, "m", "add them", "--record", record)
            for n in (1, 2, 3):
                self.assertIn(f'tool add({{"n":{n}}})\n', live)
            self.assertIn("assistant_message: It is 6.\n", live)
            self.assertEqual(self.turn(config, "m", "add them", "--script", record), live)
            bodies = recorded(record)
            self.assertEqual(len(bodies), 4)
            for body in bodies:
                self.agree(kind, body, kind)

    def test_reasoning_and_parallel_calls_of_aimock_are_read_alike(self):
        for kind, path in KINDS:
            config, record = self.aimock(kind, path), self.path("record")
            self.assertIn("assistant_message: Grüße 😀\n", self.turn(config, "m", "think", "--record", record))
            for body in recorded(record):
                self.agree(kind, body, kind)
            if kind == CHAT:
                self.assertIn("first this", json.dumps(self.ours(kind, recorded(record)[0])["parts"]))

    def test_one_call_to_aimock_is_answered_or_refused_as_what_it_is(self):
        for kind, path in KINDS:
            url = f"http://127.0.0.1:{self.ports['aimock']}{path}"
            done = subprocess.run([CALL, kind, url, "m", "hi"], capture_output=True, text=True, check=False,
                                  env={**os.environ, "MODEL_KEY": "k"})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.splitlines()[0], "Hello from aimock.")
            done = subprocess.run([CALL, kind, url, "m", "limit"], capture_output=True, text=True, check=False)
            self.assertIn("(rate_limited, safe to repeat)", done.stderr)

    def test_http_2_carries_a_turn_on_one_connection(self):
        config = configure(self.path("h2.toml"), CHAT, f"https://localhost:{self.ports['h2']}/v1",
                           ["tools", "cut", "echo"], ca_file=self.cert)
        before = self.ask(sessions=True)
        printed = self.turn(config, "tools", "add them")
        self.assertIn("assistant_message: It is 6.\n", printed)
        after = self.ask(sessions=True)
        self.assertEqual((after["sessions"] - before["sessions"], after["streams"] - before["streams"]), (1, 4))
        plain = configure(self.path("h1.toml"), CHAT, f"http://127.0.0.1:{self.server.port}/v1", ["tools"])
        self.assertEqual(self.turn(plain, "tools", "add them"), printed)  # the same records as over HTTP/1.1

    def test_a_stream_of_http_2_that_is_reset_is_a_lost_connection(self):
        config = configure(self.path("h2.toml"), CHAT, f"https://localhost:{self.ports['h2']}/v1", ["cut", "echo"],
                           ca_file=self.cert)
        printed = self.turn(config, "cut", "x")
        self.assertEqual(printed.splitlines()[:4], ["model call, attempt 1", "text Hello", "failed: connection_lost",
                                                    "provider_error: the connection was lost"])
        self.assertIn("failed: auth_refused\n", self.turn(config, "echo", "x"))


if __name__ == "__main__":
    unittest.main()
