"""Turns of a run that `side-by-side` controls (bench_runner.run.side_by_side).

Between two turns the process of the run waits until the other environment has had its turn. Both processes hold an end
of a socket. After each turn the run sends DONE. The answer is the next `Turn`, as a line of JSON, or the end of the
connection, after which the run ends.
"""

from __future__ import annotations

import os
import socket
from io import BufferedRWPair

import msgspec

CONTROL_VARIABLE = "FORMAT_BENCH_TURNS"
"""Environment variable with the file descriptor of the socket. Versions of Format Bench that do not know this variable
end after one turn."""
PAUSED_VARIABLE = "FORMAT_BENCH_PAUSED"
"""Environment variable with the `paused` of the first turn, as a JSON list of pairs. Versions of Format Bench that do
not know this variable measure these pairs too."""
DONE = b"\n"


class Turn(msgspec.Struct, frozen=True):
    """What to measure until the next turn of the other environment."""

    rounds: int
    """Number of rounds after this turn, including those of earlier turns."""
    paused: tuple[tuple[str, str], ...]
    """Pairs (variant, operation) that need no more samples."""


def paused_at_first() -> tuple[tuple[str, str], ...]:
    """Return the pairs (variant, operation) that the first turn does not measure. Without `side-by-side`,
    there are none."""
    return msgspec.json.decode(os.environ.get(PAUSED_VARIABLE, "[]"), type=tuple[tuple[str, str], ...])


def control() -> BufferedRWPair | None:
    """Return this run's end of the socket, or None if `side-by-side` did not start this run."""
    descriptor = os.environ.get(CONTROL_VARIABLE)
    if descriptor is None:
        return None
    with socket.socket(fileno=int(descriptor)) as connected:
        return connected.makefile("rwb")


def next_turn(connected: BufferedRWPair) -> Turn | None:
    """Report that a turn is complete, wait, and return the next turn, or None if the run shall end."""
    connected.write(DONE)
    connected.flush()
    line = connected.readline()
    return msgspec.json.decode(line, type=Turn) if line else None
