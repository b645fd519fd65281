"""Byte ranges: which bytes are read, by how many calls, and how short reads are handled."""

import os

import numpy as np
import pytest

from libraries.near_storage.errors import DamagedError
from libraries.near_storage.reading import ranges

CONTENT = bytes(range(256)) * 40


@pytest.fixture
def fd(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    opened = os.open(path, os.O_RDONLY)
    yield opened
    os.close(opened)


@pytest.fixture
def calls(monkeypatch):
    """Record the system calls: (offset, bytes of each buffer) per call."""
    made = []
    real = os.preadv

    def preadv(fd, pieces, offset):
        made.append((offset, [len(piece) for piece in pieces]))
        return real(fd, pieces, offset)

    monkeypatch.setattr(os, "preadv", preadv)
    return made


def positions(*values):
    return np.array(values, np.int64)


def read(fd, offsets, lengths, gap_bytes=0):
    into = bytearray(sum(lengths))
    count = ranges.read(fd, positions(*offsets), positions(*lengths), memoryview(into), gap_bytes)
    return bytes(into), count


def expected(offsets, lengths):
    return b"".join(CONTENT[offset : offset + length] for offset, length in zip(offsets, lengths, strict=True))


def test_neighbours_are_merged_and_others_are_not():
    offsets, lengths = positions(0, 10, 20, 31, 20), positions(10, 10, 10, 5, 4)
    firsts, lasts = ranges.merged(offsets, lengths)
    assert list(zip(firsts, lasts, strict=True)) == [(0, 3), (3, 4), (4, 5)]
    firsts, lasts = ranges.merged(offsets, lengths, gap_bytes=1)
    assert list(zip(firsts, lasts, strict=True)) == [(0, 4), (4, 5)]
    assert [len(part) for part in ranges.merged(positions(), positions())] == [0, 0]


def test_ranges_that_overlap_are_read_each_by_itself(fd):
    offsets, lengths = (0, 5, 5), (10, 10, 10)
    for gap_bytes in (0, 100):
        assert read(fd, offsets, lengths, gap_bytes) == (expected(offsets, lengths), 30)


def test_exactly_the_bytes_asked_for_are_read_by_one_call_a_run(fd, calls):
    offsets, lengths = (100, 150, 400, 7), (50, 50, 9, 0)
    assert read(fd, offsets, lengths) == (expected(offsets, lengths), 109)
    assert calls == [(100, [100]), (400, [9])]


def test_gaps_are_read_over_and_dropped(fd, calls):
    offsets, lengths = (100, 160, 165, 400), (50, 5, 5, 9)
    assert read(fd, offsets, lengths, gap_bytes=10) == (expected(offsets, lengths), 79)
    assert calls == [(100, [50, 10, 10]), (400, [9])]


def test_more_ranges_than_one_call_takes(fd, calls):
    offsets = range(0, 4 * 2500, 4)
    lengths = [3] * 2500
    content, count = read(fd, offsets, lengths, gap_bytes=1)
    assert content == expected(offsets, lengths)
    assert count == 4 * 2500 - len(calls)
    assert max(len(pieces) for _, pieces in calls) <= ranges.MOST_VECTORS


@pytest.mark.parametrize("most", [1, 7, 63])
@pytest.mark.parametrize("gap_bytes", [0, 16])
def test_short_reads_are_continued(fd, monkeypatch, most, gap_bytes):
    real = os.preadv

    def short(fd, pieces, offset):
        left = most
        some = []
        for piece in pieces:
            some.append(piece[:left])
            left -= len(some[-1])
        return real(fd, some, offset)

    monkeypatch.setattr(os, "preadv", short)
    offsets, lengths = (0, 60, 110, 130, 1000), (50, 50, 5, 100, 333)
    assert read(fd, offsets, lengths, gap_bytes)[0] == expected(offsets, lengths)


@pytest.mark.parametrize("gap_bytes", [0, 16])
def test_a_file_that_ends_early_is_damaged(fd, gap_bytes):
    with pytest.raises(DamagedError, match=r"ends at byte 10240"):
        read(fd, (0, 12, len(CONTENT) - 5), (10, 10, 10), gap_bytes)


def test_an_error_of_the_disk_passes(tmp_path):
    folder = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(IsADirectoryError):
        read(folder, (0,), (1,))
    os.close(folder)


def test_memory_of_another_size_is_refused(fd):
    with pytest.raises(ValueError, match=r"30 bytes.* 29"):
        ranges.read(fd, positions(0), positions(30), memoryview(bytearray(29)))
