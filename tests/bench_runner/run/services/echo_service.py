"""A service for tests. It returns the bytes it receives, or misbehaves as its first argument states.

To 'who' it answers with its process id, the token in its environment, and its arguments after the first.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time

from adapters.services import TOKEN


def answer(caller: socket.socket) -> None:
    with caller:
        while got := caller.recv(1 << 16):
            if got == b"who":
                caller.sendall(json.dumps([os.getpid(), os.environ[TOKEN], sys.argv[2:]]).encode())
            elif got == b"end":
                os._exit(3)
            elif got.startswith(b"take "):
                held.append(bytearray(os.urandom(1)) * int(got[5:]))
                caller.sendall(b"taken")
            elif got.startswith(b"work "):
                until = time.process_time() + float(got[5:])
                while time.process_time() < until:
                    pass
                caller.sendall(b"worked")
            else:
                caller.sendall(got)


held: list[bytearray] = []

if __name__ == "__main__":
    how = sys.argv[1]
    if how == "fails":
        sys.exit("the disk is on fire")
    if how == "silent":
        threading.Event().wait()
    if how == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print("a word of welcome", flush=True)
        print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
        while True:
            threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()
