"""LMDB keeps the contract; its file has only the stored data and comes without a lock file."""

from pathlib import Path

import lmdb
import numpy as np
import pytest

from adapters.contract import Images
from adapters.errors import AdapterError
from image_storages.lmdb import LmdbImages
from tests.contracts.images import ImageStorageContract, colour, mixed, same, with_labels


class TestLmdb(ImageStorageContract):
    variant = "lmdb[engine=lmdb]"


@pytest.mark.slow
class TestLmdbViews(ImageStorageContract):
    variant = "lmdb[engine=lmdb,arrays=views]"


@pytest.fixture
def adapter() -> LmdbImages:
    adapter = LmdbImages()
    adapter.load_library()
    return adapter


def test_pages_of_4_kib_make_small_images_a_third_larger(adapter: LmdbImages, tmp_path: Path) -> None:
    images = with_labels([np.full((32, 32, 3), place % 251, np.uint8) for place in range(1_000)])
    adapter.save(images, tmp_path / "t")
    assert 1.33 < (tmp_path / "t").stat().st_size / (1_000 * 3072) < 1.37


def test_an_entry_is_found_by_the_number_of_its_image(adapter: LmdbImages, tmp_path: Path) -> None:
    adapter.save(mixed(), tmp_path / "t")
    with (
        lmdb.open(str(tmp_path / "t"), subdir=False, readonly=True, lock=False) as environment,
        environment.begin() as transaction,
    ):
        entry = transaction.get((11).to_bytes(8, "big"))
    assert entry is not None
    assert entry[20:] == mixed().arrays[11].tobytes()


SIZES = [1, 100, 1_000, 2_000, 2_030, 2_050, 4_000, 4_056, 4_060, 4_096, 8_100, 8_192, 100_003]
"""Bytes of an image, around the sizes from which LMDB takes one more page."""


@pytest.mark.parametrize("size_bytes", SIZES)
def test_the_map_is_large_enough(size_bytes: int, adapter: LmdbImages, tmp_path: Path) -> None:
    count = min(20_000, 4_000_000 // size_bytes)
    images = Images([np.full((1, size_bytes), place % 251, np.uint8) for place in range(count)], [0] * count)
    adapter.save(images, tmp_path / "t")
    same(images, adapter.read(tmp_path / "t"), None)


@pytest.mark.parametrize("spelled", ["owned", "views"])
def test_images_of_one_size_but_several_shapes_come_back(spelled: str, tmp_path: Path) -> None:
    adapter = LmdbImages({"arrays": spelled})
    adapter.load_library()
    images = with_labels([np.full(shape, place, np.uint8) for place, shape in enumerate([(6, 4), (4, 6), (8, 1, 3)])])
    adapter.save(images, tmp_path / "t")
    same(images, adapter.read(tmp_path / "t"), None)


def test_a_file_of_something_else_is_refused(adapter: LmdbImages, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"PAR1" * 4_000)
    with pytest.raises(AdapterError, match="cannot be opened as LMDB"):
        adapter.read(tmp_path / "t")


def test_a_file_cut_short_is_refused(adapter: LmdbImages, tmp_path: Path) -> None:
    adapter.save(colour(), tmp_path / "t")
    whole = (tmp_path / "t").read_bytes()
    (tmp_path / "t").write_bytes(whole[:-4096])
    for look in (adapter.read, adapter.stored):
        with pytest.raises(AdapterError, match="the save did not finish"):
            look(tmp_path / "t")


def test_an_entry_that_is_not_an_image_is_found(adapter: LmdbImages, tmp_path: Path) -> None:
    adapter.save(colour(), tmp_path / "t")
    with (
        lmdb.open(str(tmp_path / "t"), subdir=False, lock=False, map_size=1 << 24) as environment,
        environment.begin(write=True) as transaction,
    ):
        transaction.put((3).to_bytes(8, "big"), b"short")
    with pytest.raises(AdapterError, match="is not an image"):
        adapter.read(tmp_path / "t")
