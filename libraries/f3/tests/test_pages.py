"""Memory that is taken by moving its pages is complete and private, whatever happens at the old address."""

import ctypes
import mmap
import sys

import numpy as np
import pyarrow as pa
import pytest

from libraries.f3.decoders import pages
from libraries.f3.decoders.pages import LARGE_BYTES

ROOM_BYTES = 4 * LARGE_BYTES
PATTERN = (np.arange(ROOM_BYTES) % 251).astype(np.uint8)
on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pages are moved only on Linux")


def memory() -> np.ndarray:
    """Return numbers in private memory whose start is aligned to large pages."""
    place = mmap.mmap(-1, ROOM_BYTES + LARGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    numbers = np.frombuffer(place, np.uint8)
    numbers = numbers[-numbers.ctypes.data % LARGE_BYTES :][:ROOM_BYTES]
    pages.prefer_large(numbers.ctypes.data, ROOM_BYTES)
    numbers[:] = PATTERN
    return numbers


def taken(
    numbers: np.ndarray, size_bytes: int, offset: int = 0, room_bytes: int | None = None, pool: pages.Pool | None = None
) -> pa.Buffer:
    room_bytes = ROOM_BYTES - offset if room_bytes is None else room_bytes
    return pages.take(numbers.ctypes.data + offset, size_bytes, room_bytes, pages.Pool(0) if pool is None else pool)


@pytest.mark.parametrize("size_bytes", [0, 1, 100_000, LARGE_BYTES, LARGE_BYTES + 1, 3 * LARGE_BYTES - 5000])
@pytest.mark.parametrize("offset", [0, 64, LARGE_BYTES])
def test_what_is_taken_is_what_lay_there_and_stays_so(size_bytes, offset):
    numbers = memory()
    expected = numbers[offset : offset + size_bytes].copy()
    result = taken(numbers, size_bytes, offset)
    numbers[:] = 255
    assert result.size == size_bytes
    assert np.array_equal(np.frombuffer(result, np.uint8), expected)


@on_linux
def test_large_results_are_moved_and_leave_an_empty_place_that_can_be_written():
    numbers = memory()
    result = taken(numbers, LARGE_BYTES + 1)
    assert not numbers[: LARGE_BYTES + 1].any()
    assert np.array_equal(numbers[2 * LARGE_BYTES :], PATTERN[2 * LARGE_BYTES :])
    numbers[:] = 1
    assert np.frombuffer(result, np.uint8).max() == 250


def test_what_lies_behind_the_room_is_left_alone():
    numbers = memory()
    result = taken(numbers, LARGE_BYTES + 1, room_bytes=LARGE_BYTES + 1)
    assert np.array_equal(numbers, np.arange(ROOM_BYTES) % 251)
    assert np.array_equal(np.frombuffer(result, np.uint8), numbers[: LARGE_BYTES + 1])


def test_where_pages_cannot_be_moved_they_are_copied(monkeypatch):
    numbers = memory()
    monkeypatch.setattr(pages, "_calls", lambda: None)
    result = taken(numbers, ROOM_BYTES)
    assert np.array_equal(np.frombuffer(result, np.uint8), numbers)


@on_linux
def test_pages_are_given_back_with_their_buffer(monkeypatch):
    given_back = []
    calls = pages._calls()
    unmap = calls.unmap
    numbers = memory()
    monkeypatch.setattr(
        pages, "_calls", lambda: calls._replace(unmap=lambda *place: given_back.append(place) or unmap(*place))
    )
    result = taken(numbers, LARGE_BYTES + 1)
    given_back.clear()
    address, part = result.address, result.slice(10, 20)
    del result
    assert given_back == []
    del part
    assert given_back == [(ctypes.c_void_p(address).value, LARGE_BYTES + mmap.PAGESIZE)]


@on_linux
def test_pages_of_freed_results_take_the_place_of_later_ones():
    numbers, pool = memory(), pages.Pool(3 * LARGE_BYTES)
    first = taken(numbers, 2 * LARGE_BYTES, pool=pool)
    assert pool.size_bytes == 0
    del first
    assert pool.size_bytes == 2 * LARGE_BYTES
    numbers[:] = 7
    second = taken(numbers, 4 * LARGE_BYTES, pool=pool)
    # Two of the four places have the pages of the first result, and the others are empty.
    assert pool.size_bytes == 0
    assert np.array_equal(np.frombuffer(second, np.uint8), np.full(4 * LARGE_BYTES, 7))
    assert sorted(numbers[::LARGE_BYTES].tolist()) == sorted([0, 0, PATTERN[0], PATTERN[LARGE_BYTES]])
    numbers[:] = 9
    third = taken(numbers, 3 * LARGE_BYTES, offset=LARGE_BYTES, pool=pool)
    assert np.array_equal(np.frombuffer(third, np.uint8), np.full(3 * LARGE_BYTES, 9))
    assert second[0] == 7
    del second, third
    assert pool.size_bytes == 3 * LARGE_BYTES


@on_linux
def test_a_closed_pool_keeps_nothing():
    numbers, pool = memory(), pages.Pool(8 * LARGE_BYTES)
    first, second = taken(numbers, LARGE_BYTES, pool=pool), taken(numbers, LARGE_BYTES, LARGE_BYTES, pool=pool)
    del first
    pool.close()
    assert pool.size_bytes == 0
    del second
    assert pool.size_bytes == 0


@on_linux
def test_pages_that_cannot_be_moved_are_copied_and_nothing_is_lost(monkeypatch):
    numbers, calls, moved = memory(), pages._calls(), []

    def move(*arguments):
        moved.append(arguments)
        return calls.move(*arguments) if len(moved) < 3 else pages._FAILED

    monkeypatch.setattr(pages, "_calls", lambda: calls._replace(move=move))
    result = taken(numbers, ROOM_BYTES)
    assert len(moved) == 3
    assert np.array_equal(np.frombuffer(result, np.uint8), PATTERN)
    assert np.array_equal(numbers, PATTERN)
