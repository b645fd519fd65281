"""Limits on what a server does at once: computing requests, waiting requests, and the memory of all of them.

Flight has no limits: every call gets a thread and runs immediately.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from libraries.near_storage.errors import BusyError, TooLargeError, UnavailableError
from libraries.near_storage.serving import clock
from libraries.near_storage.serving.memory_limit import default_memory_bytes
from libraries.near_storage.words import number_of, size_of

CLAIMED_SHARE, FOOTERS_SHARE = 1 / 2, 1 / 8
"""Shares of a server's memory: what requests may claim, and what cached footers may take. The rest is for freed memory
that allocators keep: a crowd of hostile requests that claimed 340 MB took 580 (pyarrow 26, mimalloc)."""

SMALL_SHARE, LARGE_SHARE = 1 / 8, 3 / 4
"""A request that claims more than the first share of the claimable memory must stay within the second share unless it
runs alone, so that small requests continue next to it."""

OVERDUE_S = 5.0
"""A request that has waited this long gets the next turn, so that its client does not consider the server hung."""

TURN_S = 60.0
"""Maximum wait of a running request for its next turn. Turns are short."""

ItemT = TypeVar("ItemT")


@dataclass(frozen=True)
class Limits:
    """The limits of one server.

    `requests` requests compute at once, and the same number of uploads is accepted. `waiting` more are admitted,
    between two batches or waiting at most `wait_s` for their first turn; further ones are refused as busy. A batch of
    an answer has about `batch_bytes` (at least one row; larger batches leave the CPU caches on their way through
    Flight). All requests together hold at most `memory_bytes`, cached footers included, in addition to what the process
    takes at rest. An uploaded partition has at most `partition_bytes`.
    """

    requests: int = 8
    waiting: int = 64
    wait_s: float = 5.0
    batch_bytes: int = 2 << 20
    memory_bytes: int = field(default_factory=default_memory_bytes)
    partition_bytes: int = 64 << 30


class Gate:
    """Gives requests turns to compute, and memory. Thread-safe.

    The next turn goes to the request that has computed least, so that short requests pass long ones, or to an overdue
    one.
    """

    def __init__(self, limits: Limits, tidy: Callable[[], None] = lambda: None) -> None:
        """`tidy` is called often, before memory is claimed; it may return freed memory to the system."""
        self._limits = limits
        self._tidy = tidy
        self._memory_bytes = int(CLAIMED_SHARE * limits.memory_bytes)
        self._lock = threading.Lock()
        self._computing = 0
        self._under_way = 0
        self._held_bytes = 0
        self._for_turn: list[_Waiting] = []
        self._for_memory: list[_Waiting] = []
        self.most_inside = 0
        self.most_held_bytes = 0
        self.admitted = 0

    @contextmanager
    def admitting(self) -> Iterator[Request]:
        """Hold a turn while the block runs. Raises BusyError if none becomes free in time."""
        request = Request(self)
        with request.admitted():
            yield request

    # --- for requests ------------------------------------------------------------------------------------

    def enter(self, request: Request) -> None:
        """Admit the request and take a turn."""
        limits = self._limits
        with self._lock:
            if self._under_way >= limits.requests + limits.waiting:
                told = number_of(self._under_way, "request is", "requests are")
                raise BusyError(f"{told} under way, at most {limits.requests + limits.waiting}: retry later")
            self._under_way += 1
            self.admitted += 1
        try:
            self.take_turn(request, limits.wait_s)
        except BusyError:
            with self._lock:
                self._under_way -= 1
            raise

    def leave(self, request: Request) -> None:
        """Give back turn and memory."""
        with self._lock:
            self._under_way -= 1
            self._hold(request, 0)
        self.give_turn(request)

    def is_wanted(self) -> bool:
        """Return whether another request waits for a turn."""
        return bool(self._for_turn)

    def take_turn(self, request: Request, wait_s: float) -> None:
        """Wait for a turn. Raises BusyError if there is none within `wait_s` seconds."""

        def start() -> bool:
            if self._computing >= self._limits.requests:
                return False
            self._computing += 1
            self.most_inside = max(self.most_inside, self._computing)
            return True

        with self._lock:
            if not self._wait(self._for_turn, request, start, wait_s):
                raise BusyError(f"waited {wait_s:g} s behind {number_of(self._computing, 'request')}: retry later")
        request.began_s = clock.elapsed_s()

    def give_turn(self, request: Request) -> None:
        """Give the turn back, if the request has one."""
        if request.began_s is None:
            return
        request.computed_s += clock.elapsed_s() - request.began_s
        request.began_s = None
        with self._lock:
            self._computing -= 1
            _serve(self._for_turn)

    def claim(self, request: Request, needed: int, what: str) -> None:
        """Hold `needed` bytes from now on, instead of the previous claim.

        While others hold too much, the request gives up its turn and waits; raises BusyError if that takes too long,
        and TooLargeError for more than the total limit.
        """
        if needed > self._memory_bytes:
            raise TooLargeError(
                f"{what}: needs {size_of(needed)} of memory, limit {size_of(self._memory_bytes)} for all requests to a "
                "node; request fewer columns, or the way v2"
            )

        self._tidy()

        def fits() -> bool:
            others = self._held_bytes - request.held_bytes
            small = needed <= SMALL_SHARE * self._memory_bytes or not others
            if others + needed > (1 if small else LARGE_SHARE) * self._memory_bytes and needed > request.held_bytes:
                return False
            self._hold(request, needed)
            return True

        with self._lock:
            if fits():
                return
        self.give_turn(request)
        with self._lock:
            if not self._wait(self._for_memory, request, fits, self._limits.wait_s):
                raise BusyError(
                    f"{what}: needs {size_of(needed)} of memory, other requests hold {size_of(self._held_bytes)} of "
                    f"{size_of(self._memory_bytes)}: retry later"
                )
        self.take_turn(request, TURN_S)

    # --- inside, under the lock --------------------------------------------------------------------------

    def _hold(self, request: Request, nbytes: int) -> None:
        less = nbytes < request.held_bytes
        self._held_bytes += nbytes - request.held_bytes
        request.held_bytes = nbytes
        self.most_held_bytes = max(self.most_held_bytes, self._held_bytes)
        if less:
            _serve(self._for_memory)

    def _wait(self, line: list[_Waiting], request: Request, start: Callable[[], bool], wait_s: float) -> bool:
        """Return whether the request started in time, at once or when another request served the line."""
        if not line and start():
            return True
        waiting = _Waiting(request, start, threading.Condition(self._lock), clock.elapsed_s())
        line.append(waiting)
        _serve(line)
        waiting.changed.wait_for(lambda: waiting.started, wait_s)
        if not waiting.started:
            line.remove(waiting)
        return waiting.started


@dataclass(eq=False)
class _Waiting:
    request: Request
    start: Callable[[], bool]
    changed: threading.Condition
    since_s: float
    started: bool = False


def _serve(line: list[_Waiting]) -> None:
    """Start those of a line that can start: overdue ones first, then those that computed least. Call under the lock."""
    overdue_s = clock.elapsed_s() - OVERDUE_S
    for waiting in sorted(line, key=lambda each: (each.since_s > overdue_s, each.request.computed_s)):
        if not waiting.started and waiting.start():
            waiting.started = True
            line.remove(waiting)
            waiting.changed.notify()


class Request:
    """One request of a gate: its turns and its memory. For one thread at a time."""

    def __init__(self, gate: Gate, is_cancelled: Callable[[], bool] = bool) -> None:
        """`is_cancelled` returns whether the client is gone."""
        self._gate = gate
        self._is_cancelled = is_cancelled
        self.held_bytes = 0
        self.computed_s = 0.0
        self.began_s: float | None = None

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Admit the request while the block runs, starting with a turn; release its memory afterwards."""
        self._gate.enter(self)
        try:
            yield
        finally:
            self._gate.leave(self)

    def claim(self, nbytes: int, what: str) -> None:
        """Claim `nbytes` instead of the previous claim; see `Gate.claim`."""
        self._gate.claim(self, nbytes, what)

    def pause(self) -> None:
        """Let requests that computed less have a turn. Raises UnavailableError if the client is gone."""
        if self._is_cancelled():
            raise UnavailableError("the client is gone")
        if self._gate.is_wanted():
            self._gate.give_turn(self)
            self._gate.take_turn(self, TURN_S)

    def in_turns(self, items: Iterator[ItemT]) -> Iterator[ItemT]:
        """Yield the items, each computed in a turn; while the caller processes one, other requests have the turn."""
        for item in items:
            self._gate.give_turn(self)
            yield item
            self._gate.take_turn(self, TURN_S)
