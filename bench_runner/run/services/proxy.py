"""A network line between two programs on this machine, which forwards TCP connections at a limited rate.

All connections of a proxy share one line, each direction separately, as they would share a network card. Apart from the
rate, the proxy imitates no effect of a real network, such as delay, loss or reordering. The proxy counts the forwarded
bytes, without headers, in a file that other processes map.

`python -m bench_runner.run.services.proxy MBIT COUNTERS NUMBER` listens on NUMBER ports and prints `ProxyReady`. Then
it reads a `Destination` for each of these ports from stdin (bench_runner.run.services.messages).
"""

from __future__ import annotations

import mmap
import socket
import struct
import sys
import threading
from contextlib import suppress
from pathlib import Path

import msgspec

from bench_runner.run.services.bucket import Bucket
from bench_runner.run.services.messages import Destination, ProxyReady, line_of

HOST = "127.0.0.1"
PIECE_S = 0.002
"""The proxy forwards data in pieces. Sending a piece takes about PIECE_S seconds at the limited rate, within the limits
LEAST_PIECE_BYTES and MOST_PIECE_BYTES."""
LEAST_PIECE_BYTES, MOST_PIECE_BYTES = 1 << 14, 1 << 18
"""Smallest and largest size of a piece. Small pieces cost CPU time, because each is handled by Python. Large pieces
delay callers that wait for a small response."""
COUNTERS = struct.Struct("<QQ")
"""Layout of the counters file: the bytes sent to services, and the bytes received from services."""
_COUNTER = struct.Struct("<Q")
LISTEN_BACKLOG = 512
"""Number of connections that may wait to be accepted."""


def counters_file(path: Path) -> None:
    """Create the file in which a proxy counts the forwarded bytes."""
    path.write_bytes(bytes(COUNTERS.size))


def passed_bytes(path: Path) -> int:
    """Return the number of bytes that a proxy has forwarded so far, in both directions together. `path` is the file
    with the proxy's counts."""
    return sum(COUNTERS.unpack(path.read_bytes()))


class Proxy:
    """Forwards connections that arrive at each of `ports`. `lead` starts the forwarding for one port. `close` ends the
    acceptance of new connections."""

    def __init__(self, bytes_per_s: float, counters: Path, number: int) -> None:
        """`counters` was made by `counters_file`, and `number` is the number of ports."""
        self._piece_bytes = int(min(max(bytes_per_s * PIECE_S, LEAST_PIECE_BYTES), MOST_PIECE_BYTES))
        self._buckets = (Bucket(bytes_per_s), Bucket(bytes_per_s))
        self._lock = threading.Lock()
        self._passed_bytes = [0, 0]
        with counters.open("r+b") as file:
            self._counters = mmap.mmap(file.fileno(), COUNTERS.size)
        self._listeners = [socket.create_server((HOST, 0), backlog=LISTEN_BACKLOG) for _ in range(number)]
        self.ports = tuple(listener.getsockname()[1] for listener in self._listeners)

    def lead(self, place: int, port: int) -> None:
        """Forward connections from the port at index `place` to `port`, in threads that end with the process."""
        threading.Thread(target=self._accept, args=(self._listeners[place], port), daemon=True).start()

    def close(self) -> None:
        """Accept no more connections."""
        for listener in self._listeners:
            # close() alone does not wake a thread that waits in accept().
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def _accept(self, listener: socket.socket, port: int) -> None:
        while True:
            try:
                caller, _ = listener.accept()
            except OSError:
                return
            try:
                service = socket.create_connection((HOST, port))
            except OSError:
                # As without a proxy, the caller sees a connection that ends.
                caller.close()
                continue
            for end in (caller, service):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for direction, (source, sink) in enumerate(((caller, service), (service, caller))):
                threading.Thread(target=self._pass_on, args=(source, sink, direction), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, direction: int) -> None:
        piece = bytearray(self._piece_bytes)
        view = memoryview(piece)
        bucket = self._buckets[direction]
        with suppress(OSError):
            while received := source.recv_into(piece):
                bucket.wait(received)
                # Count bytes before sending them, so that every byte that arrives has been counted.
                with self._lock:
                    self._passed_bytes[direction] += received
                    _COUNTER.pack_into(self._counters, direction * _COUNTER.size, self._passed_bytes[direction])
                sink.sendall(view[:received])
        # One direction may end before the other. The connection closes when both directions have ended.
        for end, how in ((sink, socket.SHUT_WR), (source, socket.SHUT_RD)):
            with suppress(OSError):
                end.shutdown(how)


def main() -> None:
    """Entry point of the process."""
    proxy = Proxy(float(sys.argv[1]) * 1e6 / 8, Path(sys.argv[2]), int(sys.argv[3]))
    sys.stdout.buffer.write(line_of(ProxyReady(proxy.ports)))
    sys.stdout.flush()
    for line in sys.stdin.buffer:
        found = msgspec.json.decode(line, type=Destination)
        proxy.lead(found.place, found.port)
    threading.Event().wait()


if __name__ == "__main__":
    main()
