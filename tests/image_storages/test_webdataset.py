"""WebDataset keeps the contract; the package itself reads its archive."""

import tarfile
from pathlib import Path

import numpy as np
import pytest
import webdataset

from adapters.errors import AdapterError
from image_storages.webdataset import WebDatasetTar
from tests.contracts.images import ImageStorageContract, colour, mixed


class TestWebDataset(ImageStorageContract):
    variant = "webdataset[engine=webdataset]"


@pytest.fixture
def adapter() -> WebDatasetTar:
    adapter = WebDatasetTar()
    adapter.load_library()
    return adapter


def test_the_package_reads_the_archive_by_itself(adapter: WebDatasetTar, tmp_path: Path) -> None:
    adapter.save(mixed(), tmp_path / "t.tar")
    samples = list(webdataset.WebDataset(str(tmp_path / "t.tar"), shardshuffle=False).decode())
    assert [sample["cls"] for sample in samples] == mixed().labels
    assert all(np.array_equal(sample["npy"], array) for sample, array in zip(samples, mixed().arrays, strict=True))


def test_equal_images_make_equal_archives(adapter: WebDatasetTar, tmp_path: Path) -> None:
    adapter.save(colour(), tmp_path / "first.tar")
    adapter.save(colour(), tmp_path / "second.tar")
    assert (tmp_path / "first.tar").read_bytes() == (tmp_path / "second.tar").read_bytes()
    assert adapter.stored(tmp_path / "first.tar").details == {"first member": "00000000.cls"}


def test_a_sample_without_a_label_is_found(adapter: WebDatasetTar, tmp_path: Path) -> None:
    (tmp_path / "00000000.npy").write_bytes(b"")
    with tarfile.open(tmp_path / "t.tar", "w") as archive:
        archive.add(tmp_path / "00000000.npy", "00000000.txt")
    with pytest.raises(AdapterError, match="image 0 cannot be read"):
        adapter.read(tmp_path / "t.tar")


def test_an_array_of_objects_is_not_unpickled(adapter: WebDatasetTar, tmp_path: Path) -> None:
    np.save(tmp_path / "00000000.npy", np.array([{"a": 1}], object), allow_pickle=True)
    (tmp_path / "00000000.cls").write_text("1")
    with tarfile.open(tmp_path / "t.tar", "w") as archive:
        for ending in ("cls", "npy"):
            archive.add(tmp_path / f"00000000.{ending}", f"00000000.{ending}")
    with pytest.raises(AdapterError, match="Object arrays cannot be loaded"):
        adapter.read(tmp_path / "t.tar")


def test_a_file_of_something_else_is_refused(adapter: WebDatasetTar, tmp_path: Path) -> None:
    (tmp_path / "t.tar").write_bytes(b"PAR1" * 4_000 + bytes(1024))
    with pytest.raises(AdapterError, match="cannot be read"):
        adapter.read(tmp_path / "t.tar")
    with pytest.raises(AdapterError, match="not a tar archive"):
        adapter.stored(tmp_path / "t.tar")


@pytest.mark.parametrize("kept_bytes", [0, 1, 512, 5_120, 5_120 * 2, 5_120 * 2 + 7])
def test_an_archive_cut_short_is_refused(kept_bytes: int, adapter: WebDatasetTar, tmp_path: Path) -> None:
    """Also after a member, where tarfile would accept what is left as complete."""
    adapter.save(colour(), tmp_path / "t.tar")
    (tmp_path / "t.tar").write_bytes((tmp_path / "t.tar").read_bytes()[:kept_bytes])
    with pytest.raises(AdapterError, match="the save did not finish"):
        adapter.read(tmp_path / "t.tar")
