#!/usr/bin/env python3
"""A button as a channel: who presses it waits for what your program answers.

POST /press?id=ID is the button. Its answer is {"ack": …} of your program, as it is,
or {"working": true} when that comes later. The event has a follow-up address, to
which the later messages go: here they are printed. docs/exec.md is the protocol.

    [[installation]]
    id = "button"
    type = "exec"
    interactions = "sync"
    [installation.config]
    command = ["/path/to/button.py"]
    config = { port = 8090 }
"""

import http.server
import json
import queue
import sys
import threading
import time
import urllib.parse

lock = threading.Lock()
waiting = {}  # who waits for the answer, by the id of the event


def say(kind, body):
    with lock:
        print(json.dumps({kind: body}), flush=True)


class Button(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        query = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query)
        id = query.get("id", [f"press-{time.time_ns()}"])[0]
        answer = waiting[id] = queue.Queue(1)
        say("event", {
            "id": id, "type": "action", "action": {"id": "button"}, "conversation": {"id": "page"},
            "interaction": True, "follow_up": {"address": f"page-of-{id}"},
        })
        try:
            said = answer.get(timeout=10)
        except queue.Empty:
            said = {}  # Leasehold answers within 3 s of the ack; without an ack, never
        finally:
            waiting.pop(id, None)
        body = json.dumps(said["ack"] if "ack" in said else {"working": True}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass  # an address may be in it


def main():
    start = json.loads(sys.stdin.readline())["start"]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", start["config"].get("port", 0)), Button)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    say("hello", {"protocol": 1, "name": "button.py", "version": "1", "can": ["send"]})
    say("ready", {"identity": f"127.0.0.1:{server.server_port}"})
    for line in sys.stdin:
        message = json.loads(line)
        if "ping" in message:
            say("pong", {})
        elif "answer" in message:
            answer = waiting.get(message["answer"]["id"])
            if answer and answer.empty():
                answer.put(message["answer"])
        elif "send" in message:
            send = message["send"]
            way = "follow-up" if send.get("follow_up") else "page"
            say("log", {"level": "info", "text": f"to the {way}: {send['text']}"})
            say("send_result", {"id": send["id"], "message_id": send["id"]})
        elif "stop" in message:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
