"""Turns of a run that `side-by-side` controls (bench_runner.run.side_by_side).

Between two turns the process of the run waits, with its libraries loaded, until the other environment has had its turn.
Both processes hold an end of a Unix socket that preserves message boundaries. After each turn the run sends DONE. The
answer is the next `Turn`, or the end of the connection, after which the run ends.
"""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Iterator

import msgspec

from bench_runner.run.interruption import StopRequest

CONTROL_VARIABLE = "FORMAT_BENCH_TURNS"
"""Environment variable with the file descriptor of the socket. Versions of Format Bench that do not know this variable
end after one turn."""
PAUSED_VARIABLE = "FORMAT_BENCH_PAUSED"
"""Environment variable with the `paused` of the first turn, as a JSON list of pairs. Versions of Format Bench that do
not know this variable measure these pairs too."""
DONE = b"done"
MESSAGE_BYTES = 1 << 20
"""Size limit of a turn as a message."""
WAKE_S = 0.2
"""Interval in seconds at which a waiting run checks whether a signal asked it to end."""


class Turn(msgspec.Struct, frozen=True):
    """What to measure until the next turn of the other environment."""

    rounds: int
    """Number of rounds after this turn, including those of earlier turns."""
    paused: tuple[tuple[str, str], ...]
    """Pairs (variant, operation) that need no more samples."""


def paused_at_first() -> tuple[tuple[str, str], ...]:
    """Return the pairs (variant, operation) that the first turn does not measure; none for a run of its own."""
    return msgspec.json.decode(os.environ.get(PAUSED_VARIABLE, "[]"), type=tuple[tuple[str, str], ...])


def further_turns(stop: StopRequest) -> Iterator[Turn]:
    """Report that a turn is complete and yield the next turn, as often as `side-by-side` asks for one. Yield nothing if
    `side-by-side` did not start this run. Raises Stopped if a signal asks the run to end."""
    descriptor = os.environ.get(CONTROL_VARIABLE)
    if descriptor is None:
        return
    with socket.socket(fileno=int(descriptor)) as control:
        while True:
            control.send(DONE)
            while not select.select([control], [], [], WAKE_S)[0]:
                stop.check()
            message = control.recv(MESSAGE_BYTES)
            if not message:
                return
            yield msgspec.json.decode(message, type=Turn)
