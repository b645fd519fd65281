"""Limit what a server does at once: the number of computing and waiting requests, and the memory of all requests.

Flight has no limits. Every call gets a thread and runs immediately.
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
"""Share of a server's memory that all requests may claim, and share that cached footers may take. The remaining memory
is for freed memory that allocators keep. In a test, many hostile requests claimed 340 MB and took 580 MB (pyarrow 26,
mimalloc)."""

SMALL_SHARE, LARGE_SHARE = 1 / 8, 3 / 4
"""Shares of the claimable memory. A claim above the first share is granted only if all claims together stay within the
second share, or if no other request holds memory. Small requests can therefore continue next to large ones."""

OVERDUE_S = 5.0
"""A request that has waited this long gets the next turn (permission to compute), so that its client does not consider
the server hung."""

TURN_S = 60.0
"""Maximum wait of a running request for its next turn. Turns are short."""

ItemT = TypeVar("ItemT")


@dataclass(frozen=True)
class Limits:
    """The limits of one server.

    At most `requests` requests compute at once, and the same number of uploads is accepted. Up to `waiting` further
    requests are admitted. Each of them is between two batches of its answer, or waits at most `wait_s` seconds for its
    first turn. Other requests are refused as busy. A batch of an answer has about `batch_bytes`, and at least one row;
    larger batches do not fit in the CPU caches. All requests and cached footers together hold at most `memory_bytes`,
    in addition to the memory of the idle process. An uploaded partition has at most `partition_bytes`.
    """

    requests: int = 8
    waiting: int = 64
    wait_s: float = 5.0
    batch_bytes: int = 2 << 20
    memory_bytes: int = field(default_factory=default_memory_bytes)
    partition_bytes: int = 64 << 30


class Gate:
    """Grants requests memory, and turns, which are permissions to compute. Thread-safe.

    The next turn goes to an overdue request if there is one, else to the request that has computed least. Short
    requests therefore overtake long requests.
    """

    def __init__(self, limits: Limits, tidy: Callable[[], None] = lambda: None) -> None:
        """`tidy` is called before each claim of memory, i.e. often. It may return freed memory to the operating
        system."""
        self._limits = limits
        self._tidy = tidy
        self.memory_bytes = int(CLAIMED_SHARE * limits.memory_bytes)
        """The memory that all requests together may claim, and thus the largest claim."""
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
        """Hold a turn while the block runs. Raises BusyError if no turn becomes free in time."""
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
                raise BusyError(
                    f"{told} under way, at most {limits.requests + limits.waiting} are allowed: retry later"
                )
            self._under_way += 1
            self.admitted += 1
        try:
            self.take_turn(request, limits.wait_s)
        except BusyError:
            with self._lock:
                self._under_way -= 1
            raise

    def leave(self, request: Request) -> None:
        """Give back the request's turn and its memory."""
        with self._lock:
            self._under_way -= 1
            self._hold(request, 0)
        self.give_turn(request)

    def is_wanted(self) -> bool:
        """Return whether another request waits for a turn."""
        return bool(self._for_turn)

    def take_turn(self, request: Request, wait_s: float) -> None:
        """Wait for a turn. Raises BusyError if no turn becomes free within `wait_s` seconds."""

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
        """Set the memory that the request claims to `needed` bytes.

        While other requests hold too much memory, the request gives up its turn and waits. Raises BusyError if the wait
        takes too long, and TooLargeError if `needed` exceeds the memory for all requests. `what` begins the error
        message.
        """
        if needed > self.memory_bytes:
            raise TooLargeError(
                f"{what}: needs {size_of(needed)} of memory, but all requests to a node together get "
                f"{size_of(self.memory_bytes)}; request fewer columns, or choose the way 'v2'"
            )

        self._tidy()

        def fits() -> bool:
            others = self._held_bytes - request.held_bytes
            small = needed <= SMALL_SHARE * self.memory_bytes or not others
            if others + needed > (1 if small else LARGE_SHARE) * self.memory_bytes and needed > request.held_bytes:
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
                    f"{what}: needs {size_of(needed)} of memory, but other requests hold {size_of(self._held_bytes)} "
                    f"of {size_of(self.memory_bytes)}: retry later"
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
        """Call `start` until it succeeds, for at most `wait_s` seconds: at once, and whenever another request serves
        the queue `line`. Return whether `start` succeeded."""
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
    """Start those requests of a queue that can start: overdue requests first, then by least computing time. The caller
    must hold the lock."""
    overdue_s = clock.elapsed_s() - OVERDUE_S
    for waiting in sorted(line, key=lambda each: (each.since_s > overdue_s, each.request.computed_s)):
        if not waiting.started and waiting.start():
            waiting.started = True
            line.remove(waiting)
            waiting.changed.notify()


class Request:
    """One request of a gate, with its turns and its memory. For use by one thread at a time."""

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
        """Set the memory that the request claims to `nbytes` bytes; see `Gate.claim`."""
        self._gate.claim(self, nbytes, what)

    @contextmanager
    def claiming_more(self, nbytes: int, what: str) -> Iterator[None]:
        """Claim further `nbytes` bytes while the block runs, or as many as the gate has. See `Gate.claim`."""
        before = self.held_bytes
        self.claim(min(before + nbytes, self._gate.memory_bytes), what)
        try:
            yield
        finally:
            self.claim(before, what)

    def pause(self) -> None:
        """If other requests wait for a turn, give up this turn and wait for the next. Raises UnavailableError if the
        client is gone."""
        if self._is_cancelled():
            raise UnavailableError("the client is gone")
        if self._gate.is_wanted():
            self._gate.give_turn(self)
            self._gate.take_turn(self, TURN_S)

    def in_turns(self, items: Iterator[ItemT]) -> Iterator[ItemT]:
        """Yield the items. Each item is computed during a turn. Other requests can take the turn while the caller
        processes the item."""
        for item in items:
            self._gate.give_turn(self)
            yield item
            self._gate.take_turn(self, TURN_S)
