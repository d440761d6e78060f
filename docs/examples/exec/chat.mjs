#!/usr/bin/env node
// A chat for who connects with telnet or nc: each line that somebody types is an
// event, what is sent is written to the conversation it is for, and a line is
// confirmed to its writer once it is stored. docs/exec.md is the protocol.
//
//   [[installation]]
//   id = "chat"
//   type = "exec"
//   [installation.config]
//   command = ["/path/to/chat.mjs"]
//   config = { port = 7000 }

import { createInterface } from "node:readline";
import { createServer } from "node:net";
import { randomUUID } from "node:crypto";

const say = (kind, body) => process.stdout.write(JSON.stringify({ [kind]: body }) + "\n");

const people = new Map(); // sockets, by conversation
const unacked = new Map(); // sockets whose lines are not stored yet, by event, in order

const server = createServer((socket) => {
  const conversation = randomUUID();
  people.set(conversation, socket);
  socket.on("error", () => {}); // close comes after it
  socket.on("close", () => people.delete(conversation));
  createInterface({ input: socket }).on("line", (text) => {
    const id = randomUUID();
    unacked.set(id, socket);
    say("event", {
      id,
      type: "message",
      time: new Date().toISOString(),
      conversation: { id: conversation, kind: "direct" },
      sender: { id: `${socket.remoteAddress}:${socket.remotePort}` },
      text,
      addressed: true,
    });
  });
});

const answers = {
  start({ config }) {
    say("hello", { protocol: 1, name: "chat.mjs", version: "1", can: ["send"] });
    server.on("error", (error) => {
      say("status", { state: "failed", text: error.message });
      process.exit(1); // run me again, later and later
    });
    server.listen(config.port ?? 7000, config.host ?? "127.0.0.1", () => {
      const { address, port } = server.address();
      say("ready", { identity: `${address}:${port}` });
    });
  },
  // One acknowledgement is one for all events before it, too.
  ack({ id }) {
    for (const [event, socket] of unacked) {
      unacked.delete(event);
      socket.write("(kept)\n");
      if (event === id) break;
    }
  },
  send({ id, conversation, text }) {
    const socket = people.get(conversation);
    if (!socket) {
      say("send_result", { id, error: "they have left", outcome: "refused" });
      return;
    }
    socket.write(text + "\n", (error) =>
      say("send_result", error ? { id, error: error.message, outcome: "unknown" } : { id, message_id: randomUUID() }),
    );
  },
  ping() {
    say("pong", {});
  },
  stop() {
    process.exit(0);
  },
};

createInterface({ input: process.stdin })
  .on("line", (line) => {
    for (const [kind, body] of Object.entries(JSON.parse(line))) answers[kind]?.(body);
  })
  .on("close", () => process.exit(0));
