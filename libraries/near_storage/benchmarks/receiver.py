"""A service that receives bytes and drops them or writes them to a file.

`python -m libraries.near_storage.benchmarks.receiver tcp|disk|http FOLDER` listens, prints its port as a line of JSON,
and runs until it is terminated. It replies with the number of bytes once all have arrived and written bytes are synced.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HOST = "127.0.0.1"
TCP, DISK, HTTP = "tcp", "disk", "http"
PIECE_BYTES = 512 * 1024
"""Bytes per call: the block size of the disk measurements in the thesis (section 3.2.2)."""


def listen(folder: Path | None) -> None:
    """Serve each connection in a separate thread until the process ends; with a folder, write each one to a file."""
    with socket.create_server((HOST, 0), backlog=64) as listener:
        _say(listener.getsockname()[1])
        number = 0
        while True:
            caller, _ = listener.accept()
            number += 1
            path = folder / f"received-{number}" if folder is not None else None
            threading.Thread(target=_take, args=(caller, path), daemon=True).start()


def _take(caller: socket.socket, path: Path | None) -> None:
    piece = memoryview(bytearray(PIECE_BYTES))
    taken = 0
    with caller, suppress(OSError):
        with open(path or os.devnull, "wb") as file:
            while received := caller.recv_into(piece):
                if path is not None:
                    file.write(piece[:received])
                taken += received
            if path is not None:
                file.flush()
                os.fsync(file.fileno())
        caller.sendall(taken.to_bytes(8, "little"))


class _Taking(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Read a body and reply with its length."""
        left = int(self.headers["Content-Length"])
        piece = memoryview(bytearray(PIECE_BYTES))
        taken = 0
        while taken < left and (received := self.rfile.readinto(piece[: min(PIECE_BYTES, left - taken)])):
            taken += received
        answer = str(taken).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def _say(port: int) -> None:
    sys.stdout.write(json.dumps({"port": port}) + "\n")
    sys.stdout.flush()


def main() -> None:
    if sys.argv[1] == HTTP:
        server = ThreadingHTTPServer((HOST, 0), _Taking)
        _say(server.server_address[1])
        server.serve_forever()
    listen(Path(sys.argv[2]) if sys.argv[1] == DISK else None)


if __name__ == "__main__":
    main()
