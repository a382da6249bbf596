#!/usr/bin/env python3
"""A model server for tests: chat completions and messages over HTTP, plain or TLS.

    model_server.py JOURNAL [CERT KEY]

It binds to a port of loopback (MODEL_PORT, otherwise a free one), prints the port, and serves until
its standard input ends.
What it does follows from the model that a request names:

    text      "Hello world" in two pieces, with usage     split     the same, byte by byte
    tools     a call of `add` until three results came    whole     not streamed
    cut       half of a stream, then a closed connection  badjson   an event that is no JSON
    hang      nothing at all                              silent    a head, then nothing
    stall     a head and one piece, then nothing          500       that status
    once-429  429 with Retry-After: 1, once; then text    redirect  302
    once-hang nothing at all, once; then text
    echo      401, with all headers and the body in the error message, and canaries in its own headers
    leak      200, the same as a stream that sends each byte by itself
    noimages  400 for a request with an image; otherwise as `talk`, or `text` of messages
    drop      a kept connection that closes after it has read the second request
    talk      what the user says last: `use TOOL {arguments}` calls a tool, one per line; `hold` sends half of an
              answer and then nothing, the first time; `timed N` writes the time of its first piece, in ns of the
              monotonic clock, to JOURNAL.times, and says first-N; `say TEXT` says it; any other text is repeated word by word

The journal has one JSON line for each request that arrived whole: connection, path, headers, body.
A server that is started with the journal of another one goes on counting from it.
"""

import json
import os
import socket
import ssl
import sys
import threading
import time

CANARIES = {"Set-Cookie": "session=CANARY-cookie", "X-Custom": "CANARY-custom",
            "WWW-Authenticate": "Bearer CANARY-challenge"}

lock = threading.Lock()
seen = {}


def chat_event(value):
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def chat_chunk(delta, finish=None):
    return chat_event({"id": "r1", "model": "served-1", "choices": [
        {"index": 0, "delta": delta, "finish_reason": finish}]})


def chat_text(texts):
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    return ([chat_chunk({"content": text}) for text in texts] + [chat_chunk({}, "stop")]
            + [chat_event({"id": "r1", "model": "served-1", "choices": [], "usage": usage}),
               b"data: [DONE]\n\n"])


def chat_call(number):
    call = {"index": 0, "id": f"call_{number}", "type": "function",
            "function": {"name": "add", "arguments": json.dumps({"n": number})}}
    return [chat_chunk({"tool_calls": [call]}), chat_chunk({}, "tool_calls"), b"data: [DONE]\n\n"]


def chat_whole(text):
    return {"id": "r1", "model": "served-1", "usage": {"prompt_tokens": 10, "completion_tokens": 2},
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text},
                         "finish_reason": "stop"}]}


def msg_event(value):
    return f"event: {value['type']}\n".encode() + chat_event(value)


def msg_frame(blocks, stop):
    start = {"id": "r1", "model": "served-1", "usage": {"input_tokens": 10, "output_tokens": 1}}
    end = [msg_event({"type": "message_delta", "delta": {"stop_reason": stop},
                      "usage": {"output_tokens": 2}}), msg_event({"type": "message_stop"})]
    return [msg_event({"type": "message_start", "message": start})] + blocks + end


def msg_block(block, deltas):
    return ([msg_event({"type": "content_block_start", "index": 0, "content_block": block})]
            + [msg_event({"type": "content_block_delta", "index": 0, "delta": d}) for d in deltas]
            + [msg_event({"type": "content_block_stop", "index": 0})])


def msg_text(texts):
    deltas = [{"type": "text_delta", "text": text} for text in texts]
    return msg_frame(msg_block({"type": "text", "text": ""}, deltas), "end_turn")


def msg_call(number):
    block = {"type": "tool_use", "id": f"toolu_{number}", "name": "add", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": json.dumps({"n": number})}
    return msg_frame(msg_block(block, [delta]), "tool_use")


def msg_whole(text):
    return {"type": "message", "id": "r1", "model": "served-1", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": text}],
            "usage": {"input_tokens": 10, "output_tokens": 2}}


def results(body):
    """How many results of tools came since the user last spoke."""
    count = 0
    for message in body["messages"]:
        parts = message["content"] if isinstance(message["content"], list) else []
        here = (message["role"] == "tool") + sum(part["type"] == "tool_result" for part in parts)
        count = 0 if message["role"] == "user" and here == 0 else count + here
    return count


def unanswered(messages):
    """Calls of the history without their results right behind them: real servers refuse those."""
    waiting = set()
    for message in messages:
        parts = message["content"] if isinstance(message["content"], list) else []
        answered = {part["tool_use_id"] for part in parts if part["type"] == "tool_result"}
        if message["role"] == "tool":
            answered.add(message["tool_call_id"])
        if waiting and not answered:
            return waiting
        waiting -= answered
        waiting |= {part["id"] for part in parts if part["type"] == "tool_use"}
        waiting |= {call["id"] for call in message.get("tool_calls") or []}
    return waiting


def said(body):
    """What the user said last, and what tools answered since."""
    text, answers = "", []
    for message in body["messages"]:
        content = message["content"]
        if isinstance(content, list):
            content = "".join(part.get("text", "") for part in content)
        if message["role"] == "user":
            text, answers = content, []
        elif message["role"] == "tool":
            answers.append(content)
    return text, answers


def talk_calls(uses):
    calls = []
    for number, use in enumerate(uses):
        name, _, arguments = use.partition(" ")
        calls.append({"index": number, "id": f"call_{number}", "type": "function",
                      "function": {"name": name, "arguments": arguments or "{}"}})
    return [chat_chunk({"tool_calls": calls}), chat_chunk({}, "tool_calls"), b"data: [DONE]\n\n"]


class Closed(Exception):
    pass


class Connection:
    def __init__(self, sock, number, journal):
        self.sock, self.number, self.journal = sock, number, journal
        self.bytes = b""
        self.requests = 0

    def read(self, until):
        while not until():
            more = self.sock.recv(65536)
            if not more:
                raise Closed
            self.bytes += more

    def request(self):
        self.read(lambda: b"\r\n\r\n" in self.bytes)
        head, self.bytes = self.bytes.split(b"\r\n\r\n", 1)
        lines = head.decode().split("\r\n")
        headers = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:])}
        length = int(headers.get("content-length", 0))
        self.read(lambda: len(self.bytes) >= length)
        body, self.bytes = self.bytes[:length], self.bytes[length:]
        self.requests += 1
        entry = {"connection": self.number, "path": lines[0].split(" ")[1], "headers": headers,
                 "body": json.loads(body)}
        with lock, open(self.journal, "a", encoding="utf-8") as out:
            out.write(json.dumps(entry) + "\n")
        return entry

    def head(self, status, headers):
        lines = [f"HTTP/1.1 {status} X"] + [f"{k}: {v}" for k, v in headers.items()]
        self.sock.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")

    def reply(self, status, value, **headers):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.head(status, {"Content-Type": "application/json", "Content-Length": len(body),
                           **{k.replace("_", "-"): v for k, v in headers.items()}})
        self.sock.sendall(body)

    def begin(self, **more):
        self.head(200, {"Content-Type": "text/event-stream", "x-request-id": "req-1",
                        "Transfer-Encoding": "chunked", **more})

    def piece(self, data):
        self.sock.sendall(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def stream(self, events, bytewise=False, **more):
        self.begin(**more)
        whole = b"".join(events)
        for part in [whole[i:i + 1] for i in range(len(whole))] if bytewise else events:
            self.piece(part)
        self.sock.sendall(b"0\r\n\r\n")

    def forever(self):
        self.read(lambda: False)

    def answer(self, entry):
        body = entry["body"]
        chat = entry["path"].endswith("/chat/completions")
        text, call, whole = (chat_text, chat_call, chat_whole) if chat \
            else (msg_text, msg_call, msg_whole)
        model = body["model"]
        missing = unanswered(body["messages"])
        if missing:
            self.reply(400, {"error": {"message": f"calls without results: {sorted(missing)}"}})
            return
        hello = ["Hello", " world"]
        with lock:
            seen[model] = seen.get(model, 0) + 1
            times = seen[model]
        if model in ("text", "split") or (model in ("once-429", "once-hang") and times > 1):
            self.stream(text(hello), model == "split")
        elif model == "tools":
            done = results(body)
            self.stream(text(["It is ", "6."]) if done == 3 else call(done + 1))
        elif model == "whole":
            self.reply(200, whole("Hello world"))
        elif model == "once-429":
            self.reply(429, {"error": {"message": "slow down"}}, Retry_After="1")
        elif model == "500":
            self.reply(500, {"error": {"message": "broken"}})
        elif model == "redirect":
            self.reply(302, b"", Location="http://127.0.0.1:1/")
        elif model == "echo":
            self.reply(401, {"error": {"message": json.dumps(entry) + " CANARY-answer"}}, x_request_id="req-1",
                       **CANARIES)
        elif model == "leak":
            self.stream(text([json.dumps(entry)]), True, **CANARIES)
        elif model == "badjson":
            self.begin()
            self.piece(b"data: {\n\n")
            self.forever()
        elif model == "cut":
            self.begin()
            self.piece(text(hello)[0] + text(hello)[1][:9] if chat
                       else b"".join(text(hello)[:3]))
            raise Closed
        elif model in ("hang", "once-hang"):
            self.forever()
        elif model == "silent":
            self.begin()
            self.forever()
        elif model == "stall":
            self.begin()
            self.piece(b"".join(text(hello)[:1 if chat else 3]))
            self.forever()
        elif model == "talk":
            self.talk(body)
        elif model == "noimages" and '"type": "image' in json.dumps(body["messages"]):
            self.reply(400, {"error": {"type": "invalid_request_error",
                                       "message": "this model does not support image input"}})
        elif model == "noimages":
            if chat:
                self.talk(body)
            else:
                self.stream(text(hello))
        elif model == "drop":
            if self.requests > 1:
                raise Closed
            self.stream(text(hello))
        else:
            self.reply(404, {"error": {"code": "model_not_found"}})

    def talk(self, body):
        text, answers = said(body)
        uses = [line[4:] for line in text.split("\n") if line.startswith("use ")]
        with lock:
            seen[text] = seen.get(text, 0) + 1
            first = seen[text] == 1
        if len(answers) < len(uses):
            self.stream(talk_calls(uses))
        elif uses:
            self.stream(chat_text(["The tools said: ", "; ".join(answers)]))
        elif text.startswith("hold") and first:
            self.begin()
            self.piece(chat_text(["Half of the"])[0])
            self.forever()
        elif text.startswith("timed"):
            self.begin()
            with open(self.journal + ".times", "a", encoding="ascii") as times:
                times.write(f"{time.monotonic_ns()}\n")
            for piece in chat_text([f"first-{text[6:]}", " and the rest"]):
                self.piece(piece)
            self.sock.sendall(b"0\r\n\r\n")
        elif text.startswith("say "):
            self.stream(chat_text([text[4:]]))
        else:
            words = text.split(" ")
            self.stream(chat_text(["You said:"] + [" " + word for word in words]))

    def serve(self):
        try:
            while True:
                self.answer(self.request())
        except (Closed, OSError):
            pass
        finally:
            self.sock.close()


def accept(listener, context, journal):
    number = 0
    while True:
        sock, _ = listener.accept()
        number += 1
        threading.Thread(target=begin, args=(sock, context, number, journal), daemon=True).start()


def begin(sock, context, number, journal):
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context:
            sock = context.wrap_socket(sock, server_side=True)
    except OSError:
        sock.close()
        return
    Connection(sock, number, journal).serve()


def main():
    journal = sys.argv[1]
    context = None
    if len(sys.argv) > 3:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[2], sys.argv[3])
    if os.path.exists(journal):
        with open(journal, encoding="utf-8") as lines:
            for line in lines:
                model = json.loads(line)["body"]["model"]
                seen[model] = seen.get(model, 0) + 1
    listener = socket.create_server(("127.0.0.1", int(os.environ.get("MODEL_PORT", 0))), backlog=4096)
    sys.stdout.write(f"{listener.getsockname()[1]}\n")  # in one piece
    sys.stdout.flush()
    threading.Thread(target=accept, args=(listener, context, journal), daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
