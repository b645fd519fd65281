"""Throughput of loopback and disk: all bytes arrive, losses are reported, and no files are left."""

from __future__ import annotations

from pathlib import Path

import pytest

from libraries.near_storage.benchmarks import transport
from libraries.near_storage.benchmarks.receiver import DISK, HTTP, TCP
from libraries.near_storage.benchmarks.transport import Moved, lines, main, over_loopback, read, written

SIZE_BYTES = 8 * (3 * 512 * 1024 + 17)
"""Each connection has whole pieces and a partial one."""


@pytest.mark.parametrize("kind", [TCP, DISK, HTTP])
def test_all_bytes_arrive_and_nothing_is_left_behind(kind: str, tmp_path: Path) -> None:
    moved = over_loopback(kind, SIZE_BYTES, tmp_path)
    assert moved.size_bytes == SIZE_BYTES
    assert 0 < moved.gb_per_s < 1_000
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_arrive_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = transport._stream
    monkeypatch.setattr(transport, "_stream", lambda *words: sent(*words) - 1)
    with pytest.raises(ConnectionError, match=r"of 12,583,048 bytes arrived"):
        over_loopback(TCP, SIZE_BYTES, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    assert written(SIZE_BYTES, tmp_path / "file").size_bytes == (tmp_path / "file").stat().st_size == SIZE_BYTES
    assert read(tmp_path / "file").size_bytes == SIZE_BYTES


def test_a_read_that_the_page_cache_answered_is_said_to_be_none_of_the_device() -> None:
    of_cache = {kind: [Moved(1_000, 1_000, 10, 20, device_bytes=500)] for kind in (TCP, "write", "read", DISK, HTTP)}
    told = lines(of_cache)
    assert "at least 50 %" in told[-1]
    assert "below 90 %" in told[-1]
    of_device = {**of_cache, "read": [Moved(1_000, 1_000, 10, device_bytes=1_000)]}
    assert "no figure" not in lines(of_device)[-1]


@pytest.mark.parametrize("words", [[], ["folder", "many"], ["folder", "0"]])
def test_a_wrong_request_is_explained(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert "usage" in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "nowhere"), "1"]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_a_folder_is_named_from_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The receiving processes run in another current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(transport, "ROUNDS", 1)
    assert main([".", "1"]) == 0, capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
