"""How long a client waits for a node, and how it retries when the server is busy."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from libraries.near_storage.errors import BusyError
from libraries.near_storage.serving import clock

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 1.0

ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Patience:
    """Time limits in seconds. A node that sends nothing for `idle_s` counts as hung. While a server is busy, the client
    retries for `busy_s`."""

    idle_s: float = 20.0
    busy_s: float = 60.0


class ComingAgain:
    """Growing pauses between retries, until `patience.busy_s` has passed since the first pause."""

    def __init__(self, patience: Patience, closed: threading.Event) -> None:
        self._patience = patience
        self._closed = closed
        self._since_s: float | None = None
        self._pause_s = FIRST_PAUSE_S

    def wait(self, error: BusyError) -> None:
        """Pause, or raise the error if the time limit is reached."""
        now_s = clock.elapsed_s()
        if self._since_s is None:
            self._since_s = now_s
        if now_s - self._since_s > self._patience.busy_s:
            raise error
        # Random pauses spread the retries of clients that were refused together.
        self._closed.wait(self._pause_s * random.uniform(0.5, 1.5))
        self._pause_s = min(LONGEST_PAUSE_S, 2 * self._pause_s)


def coming_again(work: Callable[[], ResultT], patience: Patience, closed: threading.Event) -> ResultT:
    """Return the result of `work`. Retry it while the server is busy, until the time limit is reached."""
    again = ComingAgain(patience, closed)
    while True:
        try:
            return work()
        except BusyError as error:
            again.wait(error)
