"""The floor keeps the contract, and its file is its arrays and nothing else."""

from pathlib import Path

import numpy as np
import pytest

from adapters.contract import Block
from adapters.errors import AdapterError
from image_storages.floor import Floor
from tests.contracts.images import ImageStorageContract, mixed, to_native


class TestFloor(ImageStorageContract):
    variant = "image-floor"


def saved(location: Path) -> tuple[Floor, Block]:
    floor = Floor()
    floor.load_library()
    block = to_native(floor, mixed())
    assert isinstance(block, Block)
    floor.save(block, location)
    return floor, block


def test_the_file_is_the_arrays_and_a_header(tmp_path: Path) -> None:
    _, block = saved(tmp_path / "t")
    assert (tmp_path / "t").stat().st_size == 32 + block.labels.nbytes + block.shapes.nbytes + block.pixels.nbytes


def test_a_block_comes_back_in_arrays_that_can_be_written_to(tmp_path: Path) -> None:
    floor, block = saved(tmp_path / "t")
    result = floor.read(tmp_path / "t")
    for found, stored in ((result.pixels, block.pixels), (result.shapes, block.shapes), (result.labels, block.labels)):
        assert (found.dtype, found.shape) == (stored.dtype, stored.shape)
        assert np.array_equal(found, stored)
        assert found.flags.writeable


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    floor, _ = saved(tmp_path / "t")
    (tmp_path / "other").write_bytes(b"PAR1" * 40)
    with pytest.raises(AdapterError, match="not a floor file"):
        floor.read(tmp_path / "other")


@pytest.mark.parametrize("cut", [1, 1_000])
def test_a_file_cut_short_is_refused(cut: int, tmp_path: Path) -> None:
    floor, _ = saved(tmp_path / "t")
    whole = (tmp_path / "t").read_bytes()
    (tmp_path / "t").write_bytes(whole[:-cut])
    for look in (floor.read, floor.stored):
        with pytest.raises(AdapterError, match="the save did not finish"):
            look(tmp_path / "t")
