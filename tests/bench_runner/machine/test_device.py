"""Reads that bypass the page cache return all requested bytes, compiled and in Python. The kernel's counters confirm
this."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from bench_runner.machine import linux
from bench_runner.machine.device import reads
from bench_runner.machine.device import roofline as device
from bench_runner.machine.device.reads import Reads, cached_reads, direct_reads
from bench_runner.machine.device.roofline import (
    CACHED,
    CACHED_SEQUENTIAL,
    DEPTHS,
    LARGE_BYTES,
    RANDOM,
    SEQUENTIAL,
    SEQUENTIAL_BYTES,
    SEQUENTIAL_DEPTHS,
    Line,
    NoRoofline,
    roofline,
)

PAGE = 4_096
SIZE = 8 * 1024 * 1024


@pytest.fixture(scope="module")
def stored(disk: Path) -> Path:
    """Eight megabytes, synced to the disk."""
    path = disk / "device"
    path.write_bytes(np.random.default_rng(1).bytes(SIZE))
    linux.fsync_all(path)
    os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    return path


def everywhere(count: int = SIZE // PAGE) -> np.ndarray:
    return np.random.default_rng(2).permutation(SIZE // PAGE)[:count].astype(np.uint64) * np.uint64(PAGE)


def test_the_loop_was_built() -> None:
    assert reads.library() is not None, "python -m bench_runner.build"


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("depth", [1, 3, 64, 1024])
@pytest.mark.rule(16)
def test_every_read_comes_from_the_device(stored: Path, depth: int, compiled: bool) -> None:
    before = linux.io_bytes().device_read
    found = direct_reads(stored, everywhere(), PAGE, depth, limit_s=30, compiled=compiled)
    fetched = linux.io_bytes().device_read - before
    assert found.count == SIZE // PAGE
    assert found.compiled == compiled
    assert SIZE <= fetched < 1.1 * SIZE
    assert found.wall_ns > 0
    assert found.bytes_per_second == pytest.approx(found.per_second * PAGE)


@pytest.mark.parametrize("compiled", [True, False])
def test_fewer_reads_than_the_depth_and_none_at_all(stored: Path, compiled: bool) -> None:
    assert direct_reads(stored, everywhere(3), PAGE, 16, limit_s=30, compiled=compiled).count == 3
    assert direct_reads(stored, everywhere(0), PAGE, 16, limit_s=30, compiled=compiled).count == 0


@pytest.mark.parametrize("compiled", [True, False])
def test_it_ends_when_its_time_is_over(stored: Path, compiled: bool) -> None:
    many = np.tile(everywhere(), 10_000)
    found = direct_reads(stored, many, PAGE, 4, limit_s=0.02, compiled=compiled)
    assert 0 < found.count < len(many)
    assert found.wall_ns < 10e9


@pytest.mark.parametrize("compiled", [True, False])
def test_a_read_behind_the_end_is_an_error(stored: Path, compiled: bool) -> None:
    with pytest.raises(OSError, match=r"Input/output error|fewer bytes than requested"):
        direct_reads(stored, np.array([SIZE + PAGE], np.uint64), PAGE, 1, limit_s=1, compiled=compiled)


@pytest.mark.parametrize("depth", [0, -1, 1025])
def test_a_depth_that_is_not_possible_is_refused(stored: Path, depth: int) -> None:
    with pytest.raises(ValueError, match="out of range"):
        direct_reads(stored, everywhere(), PAGE, depth, limit_s=1)


@pytest.mark.parametrize("compiled", [True, False])
def test_cached_reads_come_from_no_device(stored: Path, compiled: bool) -> None:
    linux.read_through(stored)
    before = linux.io_bytes()
    found = cached_reads(stored, everywhere(), PAGE, limit_s=30, compiled=compiled)
    after = linux.io_bytes()
    assert (found.count, found.depth, found.compiled) == (SIZE // PAGE, 1, compiled)
    assert after.asked_since(before) == pytest.approx(SIZE, rel=0.01)
    assert after.device_read - before.device_read < SIZE // 100
    many = np.tile(everywhere(), 1_000)
    assert 0 < cached_reads(stored, many, PAGE, limit_s=0.02, compiled=compiled).count < len(many)
    with pytest.raises(OSError, match=r"Input/output error|fewer bytes than requested"):
        cached_reads(stored, np.array([SIZE], np.uint64), PAGE, limit_s=1, compiled=compiled)


def test_a_roofline_has_each_size_and_depth(stored: Path) -> None:
    lines = roofline(stored, seed=1, seconds=0.02)
    assert [(line.kind, line.reads.size_bytes, line.reads.depth) for line in lines] == [
        *((RANDOM, size, depth) for size in (PAGE, LARGE_BYTES) for depth in DEPTHS),
        *((SEQUENTIAL, SEQUENTIAL_BYTES, depth) for depth in SEQUENTIAL_DEPTHS),
        *((CACHED, size, 1) for size in (PAGE, LARGE_BYTES)),
        (CACHED_SEQUENTIAL, SEQUENTIAL_BYTES, 1),
    ]
    assert all(line.reads.count > 0 for line in lines)


def test_a_small_file_has_no_roofline(tmp_path: Path) -> None:
    (tmp_path / "few").write_bytes(b"x" * 1_000_000)
    with pytest.raises(NoRoofline, match=r"a stored copy of 1\.0 MB is too small .* 8 MB"):
        roofline(tmp_path / "few", seed=1)


@pytest.mark.rule(16)
def test_reads_that_no_device_answers_give_no_roofline(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some file systems accept direct reads but answer them from memory."""
    linux.read_through(stored)

    def answered(path: Path, offsets: np.ndarray, size_bytes: int, depth: int, *, limit_s: float) -> Reads:
        return cached_reads(path, offsets, size_bytes, limit_s=limit_s)

    monkeypatch.setattr(device, "direct_reads", answered)
    with pytest.raises(NoRoofline, match="were read from a device"):
        roofline(stored, seed=1, seconds=0.01)


def test_a_file_system_without_direct_reads_has_no_roofline(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*asked: object, **limits: object) -> Reads:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(device, "direct_reads", refused)
    with pytest.raises(NoRoofline, match="direct reads are not supported here: Invalid argument"):
        roofline(stored, seed=1, seconds=0.01)


def test_rates_are_of_reads_and_of_their_bytes() -> None:
    found = Reads(SEQUENTIAL_BYTES, 4, 10, 2 * 10**9, 0, compiled=True)
    assert (found.per_second, found.bytes_per_second) == (5, 5 * SEQUENTIAL_BYTES)


@pytest.mark.parametrize(("cpu_ns", "at_least"), [(950, True), (850, False)])
def test_a_probe_bound_by_its_core_is_a_lower_bound(cpu_ns: int, at_least: bool) -> None:
    assert Line(RANDOM, Reads(PAGE, 16, 10, 1_000, cpu_ns, compiled=True)).at_least == at_least


@pytest.mark.parametrize("compiled", [True, False])
def test_reads_from_the_cache_are_a_lower_bound_only_in_python(compiled: bool) -> None:
    """Reads from the page cache are always CPU-bound. Only in Python does this make the figure a lower bound."""
    assert Line(CACHED, Reads(PAGE, 1, 10, 1_000, 1_000, compiled=compiled)).at_least == (not compiled)
