#!/usr/bin/env python3
"""A program that takes only events that Leasehold signed: it prints each one.

    python3 verify.py KEYFILE [ADDRESS:PORT]

The official libraries of Standard Webhooks do what verify does, in many languages.
"""

import base64
import hashlib
import hmac
import http.server
import sys
import time

TOLERANCE = 5 * 60  # seconds: an older request may be a recorded one


def verify(key, headers, body):
    """Reports whether a request, with its body as bytes, was signed with the key."""
    identity, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not timestamp.isascii() or not timestamp.isdigit() or abs(time.time() - int(timestamp)) > TOLERANCE:
        return False
    secret = base64.b64decode(key.removeprefix("whsec_"))
    signed = f"{identity}.{timestamp}.".encode() + body
    expected = b"v1," + base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest())
    signatures = headers.get("webhook-signature", "").encode().split(b" ")
    return any(hmac.compare_digest(s, expected) for s in signatures)


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        genuine = verify(key, self.headers, body)
        if genuine:
            names = ("webhook-id", "webhook-timestamp", "webhook-signature")
            print(*(self.headers[n] for n in names), body.decode(), sep="\t", flush=True)
        self.send_response(204 if genuine else 401)
        self.end_headers()

    def log_message(self, *args):
        pass  # what was taken is printed above


if __name__ == "__main__":
    with open(sys.argv[1]) as f:
        key = f.read().strip()
    address, port = (sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1:3000").split(":")
    http.server.ThreadingHTTPServer((address, int(port)), Receiver).serve_forever()
