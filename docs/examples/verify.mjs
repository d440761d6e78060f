// A program that takes only events that Leasehold signed: it prints the id of each.
//
//     node verify.mjs KEYFILE [ADDRESS:PORT]
//
// The official libraries of Standard Webhooks do what verify does, in many languages.

import { createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

const tolerance = 5 * 60; // seconds: an older request may be a recorded one

// verify reports whether a request, with its body as a Buffer, was signed with the key.
function verify(key, headers, body) {
  const timestamp = headers["webhook-timestamp"] ?? "";
  if (!/^\d+$/.test(timestamp) || Math.abs(Date.now() / 1000 - Number(timestamp)) > tolerance) return false;
  const secret = Buffer.from(key.replace(/^whsec_/, ""), "base64");
  const hmac = createHmac("sha256", secret).update(`${headers["webhook-id"]}.${timestamp}.`).update(body);
  const expected = Buffer.from("v1," + hmac.digest("base64"));
  return (headers["webhook-signature"] ?? "").split(" ").some((text) => {
    const signature = Buffer.from(text);
    return signature.length === expected.length && timingSafeEqual(signature, expected);
  });
}

const key = readFileSync(process.argv[2], "utf8").trim();
const [address, port] = (process.argv[3] ?? "127.0.0.1:3000").split(":");

createServer(async (request, response) => {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  const genuine = verify(key, request.headers, Buffer.concat(pieces));
  if (genuine) console.log("verified", request.headers["webhook-id"]);
  response.writeHead(genuine ? 204 : 401).end();
}).listen(Number(port), address);
