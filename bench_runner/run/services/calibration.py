"""Measure the actual rate of a simulated network. Bytes are sent through the proxy and timed from the first byte to the
last."""

from __future__ import annotations

import socket
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from adapters.services import Service
from bench_runner.clock import now_ns
from bench_runner.errors import RunError
from bench_runner.networks import rate_mbit
from bench_runner.run.services import service_start
from bench_runner.run.services.messages import Ready, line_of
from bench_runner.run.services.proxy import HOST, MOST_PIECE_BYTES, passed_bytes

LENGTH_S = 1.0
"""Duration of a calibration in seconds if the rate is correct."""
MOST_OFF = 0.05
"""Largest allowed relative error of the rate."""


@dataclass(frozen=True)
class Calibration:
    """Nominal and measured rate in bits per second, of bytes that go from the service to the program that calls it."""

    asked_bits_per_s: float
    found_bits_per_s: float
    counted_bytes: int
    """Number of sent bytes according to the proxy."""
    sent_bytes: int

    @property
    def off(self) -> float:
        """Relative error of the rate. For example, 0.02 means 2 % too fast."""
        return self.found_bits_per_s / self.asked_bits_per_s - 1


def calibrate(network: str, folder: Path, length_s: float = LENGTH_S) -> Calibration:
    """Send bytes through the proxy of `network` for about `length_s` seconds, and return the measured rate. `folder`,
    which must not exist yet, is created for temporary files and removed at the end."""
    bits_per_s = rate_mbit(network) * 1e6
    size_bytes = int(bits_per_s / 8 * length_s)
    source = Service("source", ("-m", __name__, str(size_bytes)))
    with service_start.running([source], network, folder) as found:
        host, _, port = found.served.addresses["source"].partition(":")
        with socket.create_connection((host, int(port))) as line:
            piece = bytearray(1 << 20)
            # Once the first byte has arrived, the connection exists on both sides of the proxy.
            received = line.recv_into(piece)
            began_ns, first_bytes = now_ns(), received
            while got := line.recv_into(piece):
                received += got
            passed_ns = now_ns() - began_ns
        assert found.counters is not None
        counted = passed_bytes(found.counters)
    rate = (received - first_bytes) * 8 / (passed_ns / 1e9)
    return Calibration(bits_per_s, rate, counted, received)


def checked(network: str, folder: Path) -> Calibration:
    """Return the calibration of a network. If the rate is wrong by more than MOST_OFF, calibrate once more. Raises
    RunError if the second rate is wrong too."""
    found = calibrate(network, folder)
    if abs(found.off) > MOST_OFF:
        found = calibrate(network, folder)
    if abs(found.off) > MOST_OFF:
        raise RunError(
            f"`networks={network!r}` is not possible: the proxy transfers {found.found_bits_per_s / 1e6:,.0f} Mbit/s, "
            f"not {found.asked_bits_per_s / 1e6:,.0f}.",
            "Stop other work on the machine and try again, or choose another network.",
            parameter="networks",
            given=network,
        )
    return found


def _send(size_bytes: int) -> None:
    """Send `size_bytes` bytes to the first caller, then wait until the parent ends this process."""
    with socket.create_server((HOST, 0)) as listener:
        sys.stdout.buffer.write(line_of(Ready(listener.getsockname()[1])))
        sys.stdout.flush()
        caller, _ = listener.accept()
        with caller, suppress(BrokenPipeError):
            piece = bytes(MOST_PIECE_BYTES)
            for start in range(0, size_bytes, MOST_PIECE_BYTES):
                caller.sendall(piece[: size_bytes - start])
    # Wait until the parent process ends this process.
    threading.Event().wait()


if __name__ == "__main__":
    _send(int(sys.argv[1]))
