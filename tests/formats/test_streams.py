"""A stream is stored completely or not at all, even if a writer's thread is late."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from formats.shared.streams import apart_until_whole, until_it_breaks, whole_or_nothing


def test_what_is_whole_lies_where_it_was_asked_for_and_alone(tmp_path: Path) -> None:
    with apart_until_whole(tmp_path / "stream.csv") as begun:
        begun.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["stream.csv"]


def test_a_writer_that_opens_its_file_after_the_error_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed = shutil.rmtree
    late: list[Path] = []

    def raced(folder: Path) -> None:
        if late:
            removed(folder)
            return
        late.append(folder / "stream.csv")
        late[0].write_text("late")
        folder.rmdir()

    monkeypatch.setattr(shutil, "rmtree", raced)
    with pytest.raises(ValueError, match="broke"), apart_until_whole(tmp_path / "stream.csv") as begun:
        raise ValueError("the source broke")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        begun.write_text("too late")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit])
@pytest.mark.parametrize("is_folder", [False, True])
def test_what_is_not_whole_is_removed(error: type[BaseException], is_folder: bool, tmp_path: Path) -> None:
    location = tmp_path / "stream"

    @whole_or_nothing(location)
    def save() -> None:
        if is_folder:
            location.mkdir()
        (location / "part" if is_folder else location).write_text("begun")
        raise error

    with pytest.raises(error):
        save()
    assert list(tmp_path.iterdir()) == []


def test_batches_end_where_their_source_raises_and_what_it_raised_is_there() -> None:
    def source() -> Iterator[int]:
        yield from (1, 2)
        raise ValueError("the source broke")

    broken: list[Exception] = []
    assert list(until_it_breaks(source(), broken)) == [1, 2]
    assert [str(error) for error in broken] == ["the source broke"]
    assert list(until_it_breaks(iter((1, 2)), broken := [])) == [1, 2]
    assert broken == []
