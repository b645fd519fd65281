"""Throughput below near storage: TCP on loopback, the disk, both at once, and HTTP, with the CPU time of each.

These are the micro-benchmarks of section 3.2 of Weigand (TU Munich 2025), on one machine: `python -m
libraries.near_storage.benchmarks.transport FOLDER [MEGABYTES]`. Loopback is not a network: it has no network card and
no distance, and both ends share the cores. The results are upper limits for this machine. Sender and receiver are
Python threads; a program without an interpreter would need less CPU time.
"""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from adapters.services import Service
from bench_runner.clock import cpu_ns, now_ns
from bench_runner.errors import BenchError
from bench_runner.machine import linux
from bench_runner.machine.process_tree import cpu_of_ns
from bench_runner.run.services import service_start
from libraries.near_storage.benchmarks import receiver
from libraries.near_storage.benchmarks.receiver import DISK, HTTP, PIECE_BYTES, TCP

CONNECTIONS = 8
"""Parallel connections, as in the thesis."""
MEGABYTES = 512
"""Default size of each part, large enough that its start does not matter."""
MOST_MEGABYTES = 100_000
"""A larger value is probably a typing error: it would take minutes and add no information."""
ROUNDS = 3
"""Repetitions of each part. The parts alternate."""
_LABELS = {
    TCP: "TCP, thrown away",
    HTTP: "HTTP, thrown away",
    DISK: "TCP, written and synced",
    "write": "written and synced",
    "read": "read from the device",
}


@dataclass(frozen=True)
class Moved:
    """One run of one part. `device_bytes` is what the kernel read from the device, for parts that read."""

    size_bytes: int
    wall_ns: int
    sender_cpu_ns: int
    receiver_cpu_ns: int = 0
    device_bytes: int = 0

    @property
    def gb_per_s(self) -> float:
        """Throughput in 10^9 bytes per second."""
        return self.size_bytes / max(self.wall_ns, 1)


def over_loopback(kind: str, size_bytes: int, folder: Path) -> Moved:
    """Send `size_bytes` over CONNECTIONS connections to a receiver of this kind.

    Raises ConnectionError if fewer bytes arrived.
    """
    place = folder / "taken"
    place.mkdir()
    service = Service("receiver", ("-m", receiver.__name__, kind, str(place)))
    block = os.urandom(PIECE_BYTES)
    shares = [size_bytes // CONNECTIONS] * CONNECTIONS
    send = _post if kind == HTTP else _stream
    try:
        with service_start.running([service], "loopback", folder / "service") as found:
            host, _, port = found.served.addresses["receiver"].partition(":")
            process = found.process_ids[0]
            before_ns, own_ns, began_ns = cpu_of_ns(process), cpu_ns(), now_ns()
            with ThreadPoolExecutor(CONNECTIONS) as pool:
                taken = sum(pool.map(lambda share: send(host, int(port), block, share), shares))
            wall_ns = now_ns() - began_ns
            moved = Moved(sum(shares), wall_ns, cpu_ns() - own_ns, cpu_of_ns(process) - before_ns)
    finally:
        shutil.rmtree(place)
    if taken != moved.size_bytes:
        raise ConnectionError(
            f"{kind}: {taken:,} of {moved.size_bytes:,} bytes arrived\n  check the free space on the disk of {folder}"
        )
    return moved


def _stream(host: str, port: int, block: bytes, size_bytes: int) -> int:
    with socket.create_connection((host, port)) as line:
        _give(line.sendall, block, size_bytes)
        line.shutdown(socket.SHUT_WR)
        answer = b""
        while len(answer) < 8 and (received := line.recv(8 - len(answer))):
            answer += received
        return int.from_bytes(answer, "little")


def _post(host: str, port: int, block: bytes, size_bytes: int) -> int:
    connection = http.client.HTTPConnection(host, port)
    try:
        connection.putrequest("POST", "/")
        connection.putheader("Content-Length", str(size_bytes))
        connection.endheaders()
        _give(connection.send, block, size_bytes)
        return int(connection.getresponse().read())
    finally:
        connection.close()


def _give(give: Callable[[memoryview], object], block: bytes, size_bytes: int) -> None:
    view = memoryview(block)
    for start in range(0, size_bytes, len(block)):
        give(view[: size_bytes - start])


def written(size_bytes: int, path: Path) -> Moved:
    block = os.urandom(PIECE_BYTES)
    own_ns, began_ns = cpu_ns(), now_ns()
    with open(path, "wb") as file:
        _give(file.write, block, size_bytes)
        file.flush()
        os.fsync(file.fileno())
    return Moved(size_bytes, now_ns() - began_ns, cpu_ns() - own_ns)


def read(path: Path) -> Moved:
    """Read a synced file that was dropped from the page cache; `device_bytes` shows whether it was."""
    linux.evict_file(path)
    piece = bytearray(PIECE_BYTES)
    device_bytes, own_ns, began_ns = linux.io_bytes().device_read, cpu_ns(), now_ns()
    taken = 0
    with open(path, "rb", buffering=0) as file:
        while received := file.readinto(piece):
            taken += received
    wall_ns = now_ns() - began_ns
    return Moved(taken, wall_ns, cpu_ns() - own_ns, device_bytes=linux.io_bytes().device_read - device_bytes)


def measured(folder: Path, size_bytes: int) -> dict[str, list[Moved]]:
    """Run every part ROUNDS times, alternating, in a temporary folder inside `folder`."""
    found: dict[str, list[Moved]] = {kind: [] for kind in (TCP, "write", "read", DISK, HTTP)}
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(dir=folder, prefix="limits-") as place:
            own = Path(place)
            found[TCP].append(over_loopback(TCP, size_bytes, own))
            found["write"].append(written(size_bytes, own / "file"))
            found["read"].append(read(own / "file"))
            (own / "file").unlink()
            found[DISK].append(over_loopback(DISK, size_bytes, own))
            found[HTTP].append(over_loopback(HTTP, size_bytes, own))
    return found


def lines(found: dict[str, list[Moved]]) -> list[str]:
    """Return a readable table and notes on its limits."""
    told = [f"{'':26}{'GB/s':>7}{'from':>8}{'to':>8}{'sender':>9}{'receiver':>10}"]
    for kind, several in found.items():
        rates = sorted(each.gb_per_s for each in several)
        sender, receiver = (
            statistics.median(cores)
            for cores in zip(
                *((each.sender_cpu_ns / each.wall_ns, each.receiver_cpu_ns / each.wall_ns) for each in several),
                strict=True,
            )
        )
        taken = f"{receiver:10.2f}" if receiver else f"{'':>10}"
        told.append(
            f"{_LABELS[kind]:26}{statistics.median(rates):7.2f}{rates[0]:8.2f}{rates[-1]:8.2f}{sender:9.2f}{taken}"
        )
    size_mb = found[TCP][0].size_bytes / 1e6
    fetched = min(each.device_bytes / each.size_bytes for each in found["read"])
    told += [
        f"medians of {ROUNDS} rounds of {size_mb:,.0f} MB, with the slowest and the fastest; sender and receiver: "
        "busy cores",
        f"TCP and HTTP: {CONNECTIONS} connections on loopback, which is not a network: no network card, no distance, "
        "and both ends share the cores",
        f"read from the device: at least {100 * fetched:.0f} % of the bytes came from it, the rest from the page cache"
        + ("; below 90 %, do not use this as a figure of the device" if fetched < 0.9 else ""),
    ]
    return told


def main(words: Sequence[str]) -> int:
    """Run the program. Return exit code 2 for wrong arguments."""
    try:
        # Services run in another current folder.
        folder = Path(words[0]).resolve()
        size_bytes = int(words[1] if len(words) > 1 else MEGABYTES) * 10**6
        if not 0 < size_bytes <= MOST_MEGABYTES * 10**6:
            raise ValueError
    except (IndexError, ValueError):
        sys.stderr.write(
            f"usage: python -m libraries.near_storage.benchmarks.transport FOLDER [1 to {MOST_MEGABYTES} MEGABYTES]\n"
        )
        return 2
    try:
        found = measured(folder, size_bytes)
    except (OSError, BenchError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stdout.write("\n".join(lines(found)) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
