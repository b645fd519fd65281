"""Some requests run, some wait, and all others are refused as busy."""

import threading
from contextlib import ExitStack

import pytest

from libraries.near_storage.errors import BusyError, TooLargeError, UnavailableError
from libraries.near_storage.serving import clock
from libraries.near_storage.serving.limits import OVERDUE_S, Gate, Limits, Request


def test_as_many_as_are_allowed_are_inside():
    gate = Gate(Limits(requests=2, waiting=0))
    with gate.admitting(), gate.admitting(), pytest.raises(BusyError, match="retry later"), gate.admitting():
        pass
    with gate.admitting(), gate.admitting():
        assert gate.most_inside == 2


def test_who_waits_too_long_is_sent_away():
    gate = Gate(Limits(requests=1, waiting=1, wait_s=0.01))
    with gate.admitting():
        # And gives its place to the next waiting request.
        for _ in range(3):
            with pytest.raises(BusyError, match="waited"), gate.admitting():
                pass


def test_a_place_is_given_back_after_an_error():
    gate = Gate(Limits(requests=1, waiting=0))
    for _ in range(3):
        with pytest.raises(ValueError, match="x"), gate.admitting():
            raise ValueError("x")


def test_only_so_many_wait():
    gate = Gate(Limits(requests=1, waiting=2, wait_s=10))
    entered, busy = [], []

    def enter() -> None:
        try:
            with gate.admitting():
                entered.append(1)
        except BusyError:
            busy.append(1)

    with ExitStack() as held:
        held.enter_context(gate.admitting())
        threads = [threading.Thread(target=enter) for _ in range(6)]
        for thread in threads:
            thread.start()
        while len(busy) < 4:
            threading.Event().wait(0.001)
        assert entered == []
    for thread in threads:
        thread.join()
    assert (len(entered), len(busy), gate.most_inside, gate.admitted) == (2, 4, 1, 3)


# --- memory ----------------------------------------------------------------------------------------------

MEMORY = Limits(requests=2, memory_bytes=2_000, wait_s=0.05)
"""Requests may claim half of it."""


def test_what_is_too_much_for_all_is_named_with_its_limit():
    gate = Gate(Limits(memory_bytes=2_000_000_000))
    with gate.admitting() as request, pytest.raises(TooLargeError, match=r"x: needs 4 GB of memory, but .* get 1 GB"):
        request.claim(4_000_000_000, "x")
    assert gate.most_held_bytes == 0


def test_claims_are_of_all_requests_together():
    gate = Gate(MEMORY)
    with gate.admitting() as one, gate.admitting() as other:
        one.claim(700, "one")
        with pytest.raises(
            BusyError, match="other: needs 600 bytes of memory, but other requests hold 700 bytes of 1 kB"
        ):
            other.claim(600, "other")
        one.claim(300, "one")
        other.claim(400, "other")
    with gate.admitting() as one:
        one.claim(1_000, "alone")
    assert gate.most_held_bytes == 1_000


def test_a_last_part_is_for_small_claims():
    gate = Gate(MEMORY)
    with gate.admitting() as one, gate.admitting() as other:
        one.claim(700, "one")
        with pytest.raises(BusyError):
            other.claim(200, "large")
        other.claim(100, "small")


def test_who_waits_for_memory_has_no_turn():
    """Otherwise the requests that hold the memory could not continue."""
    gate = Gate(Limits(requests=1, memory_bytes=2_000, wait_s=10))
    got = threading.Event()

    def second() -> None:
        with gate.admitting() as request:
            request.claim(800, "second")
            got.set()

    with gate.admitting() as first:
        first.claim(800, "first")
        thread = threading.Thread(target=second)
        thread.start()
        for _ in first.in_turns(iter([1])):
            while not gate._for_memory:
                threading.Event().wait(0.001)
        # The first has its turn again, and the second still waits.
        assert not got.is_set()
    thread.join(10)
    assert got.is_set()
    assert gate._held_bytes == 0


def test_memory_is_given_back_after_an_error():
    gate = Gate(MEMORY)
    request = Request(gate)

    def more() -> None:
        with request.admitted():
            request.claim(900, "one")
            request.claim(2_000, "more")

    with pytest.raises(TooLargeError):
        more()
    assert (gate._held_bytes, gate._under_way, gate._computing) == (0, 0, 0)


def test_a_request_claims_more_for_a_while():
    gate = Gate(MEMORY)
    with gate.admitting() as request:
        request.claim(300, "one")
        with request.claiming_more(400, "more"):
            assert gate._held_bytes == 700
        assert gate._held_bytes == 300
        with request.claiming_more(10**9, "all that there is"):
            assert gate._held_bytes == gate.memory_bytes
        with gate.admitting() as other:
            other.claim(100, "other")
            with pytest.raises(BusyError, match="too much now"), request.claiming_more(900, "too much now"):
                pass
            assert gate._held_bytes == 400
    assert (gate._held_bytes, gate._under_way, gate._computing) == (0, 0, 0)


# --- turns -----------------------------------------------------------------------------------------------


def test_a_short_request_passes_long_ones(monkeypatch: pytest.MonkeyPatch):
    now_s = [0.0]
    monkeypatch.setattr(clock, "elapsed_s", lambda: now_s[0])
    gate = Gate(Limits(requests=1, wait_s=10))
    order: list[str] = []

    def ask(name: str, computed_s: float) -> threading.Thread:
        def run() -> None:
            request = Request(gate)
            request.computed_s = computed_s
            with request.admitted():
                order.append(name)

        waiting = len(gate._for_turn)
        thread = threading.Thread(target=run)
        thread.start()
        while len(gate._for_turn) == waiting:
            threading.Event().wait(0.001)
        return thread

    with gate.admitting():
        threads = [ask("long", 9.0)]
        now_s[0] = OVERDUE_S - 1
        threads += [ask("middle", 2.0), ask("short", 0.0)]
    for thread in threads:
        thread.join(10)
    assert order == ["short", "middle", "long"]
    order.clear()
    with gate.admitting():
        threads = [ask("long", 9.0)]
        now_s[0] += OVERDUE_S + 1
        threads.append(ask("short", 0.0))
    for thread in threads:
        thread.join(10)
    assert order == ["long", "short"]


def test_a_client_that_reads_slowly_keeps_no_turn():
    gate = Gate(Limits(requests=1, wait_s=0.01))
    slow = Request(gate)
    with slow.admitted():
        for _ in slow.in_turns(iter([1, 2])):
            with gate.admitting():
                pass


def test_who_has_gone_is_not_worked_for():
    gate = Gate(Limits())
    request = Request(gate, lambda: True)
    with pytest.raises(UnavailableError, match="gone"), request.admitted():
        request.pause()
