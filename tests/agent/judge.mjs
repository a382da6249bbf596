// Judges from npm for tests/agent/judges.py, in one process: the stream readers of the official SDKs,
// a model server that others wrote (aimock), and HTTP/2 in front of our own.
//
//     node judge.mjs FOLDER-OF-NODE_MODULES CERT KEY PORT-OF-MODEL-SERVER
//
// The first line printed is {"aimock": port, "h2": port}. Then each line of input is answered by one:
//     {"kind": "openai-chat" | "anthropic-messages", "body": base64}  what the SDK makes of that stream
//     {"sessions": true}                                              how many HTTP/2 connections and streams came
// It ends with its input.
import { readFileSync } from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import { createRequire } from "node:module";
import readline from "node:readline";

const [folder, cert, key, upstream] = process.argv.slice(2);
const load = createRequire(folder + "/");
const { OpenAI } = load("openai");
const { Anthropic } = load("@anthropic-ai/sdk");
const { LLMock } = load("@copilotkit/aimock");

const readers = {
  "openai-chat": (fetch) =>
    new OpenAI({ apiKey: "x", baseURL: "http://127.0.0.1:1", maxRetries: 0, fetch })
      .chat.completions.stream({ model: "m", messages: [] }).finalChatCompletion(),
  "anthropic-messages": (fetch) =>
    new Anthropic({ apiKey: "x", baseURL: "http://127.0.0.1:1", maxRetries: 0, fetch })
      .messages.stream({ model: "m", max_tokens: 1, messages: [] }).finalMessage(),
};

async function judge({ kind, body }) {
  const bytes = Buffer.from(body, "base64");
  const reply = () => new Response(bytes, { headers: { "content-type": "text/event-stream" } });
  try {
    return { answer: await readers[kind](async () => reply()) };
  } catch (error) {
    return { error: String(error.message) };
  }
}

// Replies of aimock: by the number of assistant turns so far.
const mock = new LLMock({ port: 0, chunkSize: 3 });
for (const turn of [0, 1, 2])
  mock.on({ userMessage: "add them", turnIndex: turn },
          { toolCalls: [{ name: "add", arguments: JSON.stringify({ n: turn + 1 }) }] });
mock.on({ userMessage: "add them", turnIndex: 3 }, { content: "It is 6." });
mock.on({ userMessage: "think" }, { content: "Grüße 😀", reasoning: "first this, then that" });
mock.on({ userMessage: "both" }, { content: "On it.", toolCalls: [
  { name: "add", arguments: '{"n":1}' }, { name: "add", arguments: '{"text":"a\\"b\\u00e4"}' }] });
mock.on({ userMessage: "limit" }, { error: { message: "slow down", type: "rate_limit_error" }, status: 429,
                                    retryAfter: 1 });
mock.on({ userMessage: "hi" }, { content: "Hello from aimock." });
await mock.start();

// HTTP/2 in front of the model server. A connection that breaks there is a stream that is reset here.
let sessions = 0;
let streams = 0;
const front = http2.createSecureServer({ cert: readFileSync(cert), key: readFileSync(key) });
front.on("session", () => sessions++);
front.on("stream", (stream, headers) => {
  streams++;
  stream.on("error", () => {});
  const reset = () => stream.destroy(new Error("the connection to the model server broke"));
  const plain = Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith(":")));
  const request = http.request({ port: upstream, host: "127.0.0.1", method: headers[":method"],
                                 path: headers[":path"], headers: plain, agent: false });
  request.on("error", reset);
  request.on("response", (response) => {
    const { "transfer-encoding": _, connection: __, "keep-alive": ___, ...rest } = response.headers;
    stream.respond({ ":status": response.statusCode, ...rest });
    response.on("data", (bytes) => stream.write(bytes));
    response.on("end", () => stream.end());
    response.on("aborted", reset);
    response.on("error", reset);
  });
  stream.on("data", (bytes) => request.write(bytes));
  stream.on("end", () => request.end());
});
await new Promise((ready) => front.listen(0, "127.0.0.1", ready));

console.log(JSON.stringify({ aimock: Number(new URL(mock.url).port), h2: front.address().port }));
for await (const line of readline.createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  console.log(JSON.stringify(asked.sessions ? { sessions, streams } : await judge(asked)));
}
process.exit(0);
