"""Raw I/O keeps the contract, and its file has only the arrays."""

from pathlib import Path

import pytest

from adapters.errors import AdapterError
from image_storages.raw_io import RawIO
from tests.contracts.images import ImageStorageContract, mixed


class TestFloor(ImageStorageContract):
    variant = "image-raw-io[engine=readinto]"


@pytest.mark.slow
class TestFloorViews(ImageStorageContract):
    variant = "image-raw-io[engine=readinto,arrays=views]"


def saved(location: Path) -> RawIO:
    yardstick = RawIO()
    yardstick.load_library()
    yardstick.save(mixed(), location)
    return yardstick


def test_the_file_is_the_arrays_and_a_header(tmp_path: Path) -> None:
    saved(tmp_path / "t")
    pixels_bytes = sum(array.nbytes for array in mixed().arrays)
    assert (tmp_path / "t").stat().st_size == 32 + len(mixed().arrays) * (8 + 3 * 4) + pixels_bytes


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    yardstick = saved(tmp_path / "t")
    (tmp_path / "other").write_bytes(b"PAR1" * 40)
    with pytest.raises(AdapterError, match="not a raw I/O file"):
        yardstick.read(tmp_path / "other")


def test_shapes_that_tell_other_pixels_are_refused(tmp_path: Path) -> None:
    yardstick = saved(tmp_path / "t")
    stored = bytearray((tmp_path / "t").read_bytes())
    first_height = 32 + 8 * len(mixed().arrays)
    stored[first_height] += 1
    (tmp_path / "t").write_bytes(stored)
    with pytest.raises(AdapterError, match="is damaged"):
        yardstick.read(tmp_path / "t")


@pytest.mark.parametrize("cut", [1, 1_000])
def test_a_file_cut_short_is_refused(cut: int, tmp_path: Path) -> None:
    yardstick = saved(tmp_path / "t")
    whole = (tmp_path / "t").read_bytes()
    (tmp_path / "t").write_bytes(whole[:-cut])
    for look in (yardstick.read, yardstick.stored):
        with pytest.raises(AdapterError, match="the save did not finish"):
            look(tmp_path / "t")
