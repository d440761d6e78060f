#!/usr/bin/env python3
"""Each line that is added to a file as an event; what is sent is added to the file.

It has a cursor: lines that are added while it does not run are told when it runs
again, and no line is told twice. docs/exec.md is the protocol.

    [[installation]]
    id = "log"
    type = "exec"
    [installation.config]
    command = ["/path/to/tail.py"]
    config = { path = "/var/log/app.log" }
"""

import json
import os
import queue
import sys
import threading

lock = threading.Lock()


def say(kind, body):
    with lock:
        print(json.dumps({kind: body}), flush=True)


def listen(heard):
    for line in sys.stdin:
        heard.put(json.loads(line))
    heard.put({"stop": {}})  # nobody speaks to us any more


def main():
    heard = queue.Queue()
    threading.Thread(target=listen, args=(heard,), daemon=True).start()
    start = heard.get()["start"]
    path = start["config"].get("path")
    if not path:
        print("config.path is missing", file=sys.stderr)
        return 78  # the config is wrong: do not run me again before it changes
    say("hello", {"protocol": 1, "name": "tail.py", "version": "1", "can": ["send"]})

    with open(path, "ab+") as file:
        position = start["cursor"] or 0
        if os.fstat(file.fileno()).st_size < position:
            position = 0  # another file, or it was emptied
        inode = os.fstat(file.fileno()).st_ino
        file.seek(position)
        say("ready", {"identity": path})
        while True:
            line = file.readline()
            if line.endswith(b"\n"):
                say("event", {
                    "id": f"{inode}:{position}",
                    "text": line.decode("utf-8", "replace").rstrip("\r\n"),
                    "conversation": {"id": path},
                    "cursor": file.tell(),
                })
                position = file.tell()
                wait = 0
            else:
                file.seek(position)  # half a line is told when it is whole
                wait = 0.2
            try:
                message = heard.get(timeout=wait) if wait else heard.get_nowait()
            except queue.Empty:
                continue
            if "ping" in message:
                say("pong", {})
            elif "send" in message:
                send = message["send"]
                at = os.fstat(file.fileno()).st_size
                file.write(send["text"].encode() + b"\n")
                file.flush()
                file.seek(position)
                say("send_result", {"id": send["id"], "message_id": f"{inode}:{at}"})
            elif "stop" in message:
                return 0
            # An ack needs nothing here: what was not acknowledged is after the cursor
            # that comes with the next start, and is told again.


if __name__ == "__main__":
    sys.exit(main())
