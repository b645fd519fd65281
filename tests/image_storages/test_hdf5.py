"""HDF5 keeps the contract; its files are what any HDF5 reader expects, and are read in bulk."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from adapters.errors import AdapterError
from image_storages.hdf5 import HdfImages
from tests.contracts.images import ImageStorageContract, colour, grey, mixed


class TestHdf5(ImageStorageContract):
    variant = "image-hdf5[engine=h5py]"


@pytest.mark.slow
class TestHdf5Views(ImageStorageContract):
    variant = "image-hdf5[engine=h5py,arrays=views]"


@pytest.fixture
def adapter() -> HdfImages:
    adapter = HdfImages()
    adapter.load_library()
    return adapter


@pytest.mark.parametrize("images", [colour, grey])
def test_images_of_one_shape_are_one_data_set(images: Any, adapter: HdfImages, tmp_path: Path) -> None:
    adapter.save(images(), tmp_path / "t")
    with h5py.File(tmp_path / "t") as file:
        assert set(file) == {"pixels", "labels"}
        assert np.array_equal(file["pixels"][()], np.stack(images().arrays))
        assert file["labels"][()].tolist() == images().labels


def test_images_of_several_shapes_are_one_flat_data_set(adapter: HdfImages, tmp_path: Path) -> None:
    adapter.save(mixed(), tmp_path / "t")
    with h5py.File(tmp_path / "t") as file:
        assert file["pixels"].shape == (sum(array.size for array in mixed().arrays),)
        assert file["shapes"][:3].tolist() == [[31, 37, 3], [1, 1, 0], [1, 1, 3]]
    assert adapter.stored(tmp_path / "t").details == {"layout": "flat"}


def test_images_are_not_read_one_by_one(adapter: HdfImages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    read_direct = h5py.Dataset.read_direct

    def spy(*arguments: Any, **named: Any) -> None:
        calls.append(named)
        read_direct(*arguments, **named)

    adapter.save(colour(), tmp_path / "t")
    monkeypatch.setattr(h5py.Dataset, "read_direct", spy)
    adapter.read(tmp_path / "t")
    assert len(calls) == 1


def test_more_than_a_group_of_images_comes_back(adapter: HdfImages, tmp_path: Path) -> None:
    images = colour()
    images.arrays[:] = [np.full((300, 401, 3), place, np.uint8) for place in range(len(images.arrays))]
    adapter.save(images, tmp_path / "t")
    found = adapter.read(tmp_path / "t")
    assert [array.item(-1) for array in found.arrays] == list(range(len(images.arrays)))
    assert all(np.array_equal(a, b) for a, b in zip(images.arrays, found.arrays, strict=True))


def test_a_file_of_something_else_is_refused(adapter: HdfImages, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "t", "w") as file:
        file["labels"] = [1]
    for look in (adapter.read, adapter.stored):
        with pytest.raises(AdapterError, match="has no data set pixels"):
            look(tmp_path / "t")


def test_shapes_that_do_not_fit_the_pixels_are_found(adapter: HdfImages, tmp_path: Path) -> None:
    adapter.save(mixed(), tmp_path / "t")
    with h5py.File(tmp_path / "t", "r+") as file:
        file["shapes"][-1, 0] += 1
    with pytest.raises(AdapterError, match="is damaged"):
        adapter.read(tmp_path / "t")
