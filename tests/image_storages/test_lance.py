"""Lance keeps the contract."""

from pathlib import Path

import lance
import numpy as np
import pytest

from image_storages import arrow_rows
from image_storages.registry import STORAGES
from tests.contracts.images import ImageStorageContract, mixed, same, with_labels


class TestLance(ImageStorageContract):
    variant = "image-lance[engine=pylance]"


@pytest.mark.slow
class TestLanceViews(ImageStorageContract):
    variant = "image-lance[engine=pylance,arrays=views]"


def test_an_image_is_a_row(tmp_path: Path) -> None:
    adapter = STORAGES.build("image-lance")
    adapter.load_library()
    adapter.save(mixed(), tmp_path / "t.lance")
    rows = lance.dataset(str(tmp_path / "t.lance")).to_table()
    assert rows.column("label").to_pylist() == mixed().labels
    assert rows.column("pixels")[4].as_py() == mixed().arrays[4].tobytes()


@pytest.mark.parametrize("arrays", ["owned", "views"])
def test_more_than_a_batch_comes_back_in_order(arrays: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_rows, "BATCH_BYTES", 100_000)
    images = with_labels([np.full((50, 60, 3), place % 251, np.uint8) for place in range(500)])
    adapter = STORAGES.build(f"image-lance[arrays={arrays}]")
    adapter.load_library()
    adapter.save(images, tmp_path / "t.lance")
    same(images, adapter.read(tmp_path / "t.lance"), None)
