#!/usr/bin/env python3
"""A program that takes events from Leasehold: it prints each one once.

    python3 receiver.py [ADDRESS:PORT]

A delivery may come twice, always under the same webhook-id; whoever does work for
an event makes that the key under which the work is done once.
"""

import http.server
import json
import sys

seen = set()  # yours is a table with a unique column


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        envelope = json.loads(body)
        key = self.headers["webhook-id"]
        if key not in seen:
            data = envelope["data"]
            print(envelope["type"], data["installation"]["id"], data.get("text", ""), flush=True)
            seen.add(key)
        self.send_response(204)  # any 2xx takes it; anything else, and it comes again
        self.end_headers()

    def log_message(self, *args):
        pass  # what was taken is printed above


if __name__ == "__main__":
    address, port = (sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:3000").split(":")
    http.server.ThreadingHTTPServer((address, int(port)), Receiver).serve_forever()
