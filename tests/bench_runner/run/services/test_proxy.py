"""The proxy between two programs passes all bytes, counts them, and limits the common rate of all connections."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench_runner.run.services.calibration import MOST_OFF, calibrate
from bench_runner.run.services.proxy import HOST, Proxy, counters_file, passed_bytes


@contextmanager
def echo() -> Iterator[int]:
    """A port that returns the bytes it receives."""
    with socket.create_server((HOST, 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    caller, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=_give_back, args=(caller,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def _give_back(caller: socket.socket) -> None:
    with caller:
        while got := caller.recv(1 << 16):
            caller.sendall(got)


@pytest.fixture
def counters(tmp_path: Path) -> Path:
    counters_file(tmp_path / "passed")
    return tmp_path / "passed"


def sent_through(port: int, data: bytes) -> bytes:
    with socket.create_connection((HOST, port)) as line:
        threading.Thread(target=lambda: (line.sendall(data), line.shutdown(socket.SHUT_WR)), daemon=True).start()
        got = bytearray()
        while piece := line.recv(1 << 16):
            got += piece
        return bytes(got)


def test_bytes_pass_whole_in_both_directions_and_are_counted(counters: Path) -> None:
    data = os.urandom(3_000_001)
    with echo() as target:
        proxy = Proxy(1e9, counters, 1)
        proxy.lead(0, target)
        assert sent_through(proxy.ports[0], data) == data
        proxy.close()
    assert passed_bytes(counters) == 2 * len(data)


def test_all_connections_share_one_line(counters: Path) -> None:
    """Two concurrent transfers of 400 kB over 1 MB/s take 0.8 s. Each of them alone would take 0.4 s."""
    with echo() as target:
        proxy = Proxy(1e6, counters, 2)
        for place in (0, 1):
            proxy.lead(place, target)
        began = time.monotonic()
        threads = [threading.Thread(target=sent_through, args=(port, bytes(400_000))) for port in proxy.ports]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took_s = time.monotonic() - began
        proxy.close()
    assert took_s > 0.75


def test_without_a_listener_the_connection_ends(counters: Path) -> None:
    with socket.create_server((HOST, 0)) as listener:
        free = listener.getsockname()[1]
    proxy = Proxy(1e6, counters, 1)
    proxy.lead(0, free)
    with socket.create_connection((HOST, proxy.ports[0])) as line:
        line.settimeout(10)
        assert line.recv(1) == b""
    proxy.close()


def test_a_line_has_its_nominal_rate(tmp_path: Path) -> None:
    """The test uses a rate that any machine can handle. On a busy machine a try may fail."""
    for number in range(3):
        found = calibrate("20mbit", tmp_path / f"line-{number}", length_s=0.5)
        assert found.counted_bytes == found.sent_bytes == int(20e6 / 8 * 0.5)
        if abs(found.off) < MOST_OFF:
            return
    pytest.fail(f"of three tries the last one is off by {found.off:.1%}")
