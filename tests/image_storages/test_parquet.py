"""Parquet keeps the contract, with and without a codec, and its pixels take only their bytes."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapters.contract import Images
from adapters.errors import AdapterError
from image_storages import arrow_rows
from image_storages.parquet import ParquetImages
from image_storages.registry import STORAGES
from tests.contracts.images import ImageStorageContract, colour, mixed, photograph, same, with_labels


class TestParquet(ImageStorageContract):
    variant = "image-parquet[engine=pyarrow,codec=none]"


@pytest.mark.slow
class TestParquetViews(ImageStorageContract):
    variant = "image-parquet[engine=pyarrow,codec=none,arrays=views]"


@pytest.mark.slow
class TestParquetZstd(ImageStorageContract):
    variant = "image-parquet[engine=pyarrow,codec=zstd,level=3]"


def build(spelled: str = "image-parquet[codec=none]") -> ParquetImages:
    adapter = STORAGES.build(spelled)
    adapter.load_library()
    assert isinstance(adapter, ParquetImages)
    return adapter


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "brotli", "lz4", "zstd"])
def test_the_codec_is_read_back_from_the_file(codec: str, tmp_path: Path) -> None:
    adapter = build(f"image-parquet[codec={codec}]")
    adapter.save(colour(), tmp_path / "t")
    assert adapter.stored(tmp_path / "t").codec == codec


def test_the_level_reaches_the_codec(tmp_path: Path) -> None:
    # Without the noise, which is incompressible.
    images = with_labels([array // 16 for array in colour().arrays])
    for level in (1, 22):
        build(f"image-parquet[codec=zstd,level={level}]").save(images, tmp_path / str(level))
    assert (tmp_path / "22").stat().st_size < (tmp_path / "1").stat().st_size * 0.98


@pytest.mark.parametrize(("images", "kind"), [(colour, pa.binary(3072)), (mixed, pa.large_binary())])
def test_only_images_of_one_shape_are_of_fixed_size(images: Any, kind: pa.DataType, tmp_path: Path) -> None:
    build().save(images(), tmp_path / "t")
    assert pq.read_schema(tmp_path / "t").field("pixels").type == kind


@pytest.mark.parametrize("images", [colour, mixed])
def test_pixels_are_plain_and_not_in_the_footer(images: Any, tmp_path: Path) -> None:
    build().save(images(), tmp_path / "t")
    chunk = pq.read_metadata(tmp_path / "t").row_group(0).column(0)
    assert chunk.path_in_schema == "pixels"
    assert set(chunk.encodings) <= {"PLAIN", "RLE"}
    assert not chunk.is_stats_set
    raw_bytes = sum(array.nbytes for array in images().arrays)
    assert (tmp_path / "t").stat().st_size < raw_bytes + 16_384


def test_large_images_get_pages_and_row_groups_of_their_own(tmp_path: Path) -> None:
    images = with_labels([np.full((1_500, 1_500, 3), place, np.uint8) for place in range(6)])
    adapter = build()
    adapter.save(images, tmp_path / "t")
    metadata = pq.read_metadata(tmp_path / "t")
    assert metadata.num_row_groups == 3
    assert metadata.row_group(0).total_byte_size < arrow_rows.BATCH_BYTES + 4_096
    same(images, adapter.read(tmp_path / "t"), None)


def test_views_of_several_row_groups_stay_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_rows, "BATCH_BYTES", 20_000)
    adapter = build("image-parquet[codec=none,arrays=views]")
    adapter.save(mixed(), tmp_path / "t")
    assert pq.read_metadata(tmp_path / "t").num_row_groups > 5
    same(mixed(), adapter.read(tmp_path / "t"), None)


def test_images_of_row_groups_of_several_lengths_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_rows, "BATCH_BYTES", 20_000)
    adapter, images = build(), mixed()
    adapter.save(images, tmp_path / "t")
    footer = pq.read_metadata(tmp_path / "t")
    assert len({footer.row_group(group).num_rows for group in range(footer.num_row_groups)}) > 2
    handle = adapter.open(tmp_path / "t")
    assert handle.take is not None
    for numbers in ([29, 5], [12, 28, 19, 12], list(range(29, 3, -2))):
        wanted = Images([images.arrays[number] for number in numbers], [images.labels[number] for number in numbers])
        same(wanted, handle.take(np.array(numbers, np.int64)), None)
    handle.close()


def test_shapes_that_do_not_fit_the_pixels_are_found(tmp_path: Path) -> None:
    adapter = build()
    adapter.save(Images([photograph((4, 5, 3), 1)], [0]), tmp_path / "t")
    table = pq.read_table(tmp_path / "t")
    wrong = table.set_column(1, table.schema.field("height"), pa.array([3], pa.int32()))
    pq.write_table(wrong, tmp_path / "t")
    with pytest.raises(AdapterError, match="is damaged"):
        adapter.read(tmp_path / "t")
