"""So many at once, so many waiting, and the others come again."""

import threading
from contextlib import ExitStack

import pytest

from libraries.near_storage.errors import BusyError
from libraries.near_storage.serving.limits import Gate, Limits


def test_as_many_as_are_allowed_are_inside():
    gate = Gate(Limits(requests=2, waiting=0))
    with gate.admitting(), gate.admitting(), pytest.raises(BusyError, match="come again"), gate.admitting():
        pass
    with gate.admitting(), gate.admitting():
        assert gate.most_inside == 2


def test_who_waits_too_long_is_sent_away():
    gate = Gate(Limits(requests=1, waiting=1, wait_s=0.01))
    with gate.admitting(), pytest.raises(BusyError, match="waited"), gate.admitting():
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
