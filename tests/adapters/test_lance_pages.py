"""Encodings of a Lance data set are read from the written files, not from the request."""

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileReader

from adapters.errors import RefusedData
from adapters.lance_pages import CODEC_KEY, check_layout, stored_of

ROWS = 20_000
NUMBERS = {"f": pa.array([row / 7 for row in range(ROWS)], pa.float64())}
WORDS = {"s": pa.array([f"word {row % 97} and what follows it" for row in range(ROWS)])}
VECTORS = {
    "v": pa.FixedSizeListArray.from_arrays(pa.array(np.random.default_rng(1).random(1_000 * 256), pa.float32()), 256)
}
BOOLEANS = {"b": pa.array([row % 3 == 0 for row in range(ROWS)])}


def stored(columns: dict[str, pa.Array], codec: str | None, location: Path):
    table = pa.table(columns)
    if codec:
        metadata = {CODEC_KEY: codec.encode()}
        table = table.cast(pa.schema([field.with_metadata(metadata) for field in table.schema]))
    lance.write_dataset(table, str(location))
    return stored_of(location, lance.dataset(str(location)), LanceFileReader)


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_the_codec_is_that_of_the_pages(codec: str, tmp_path: Path) -> None:
    found = stored(NUMBERS | BOOLEANS, codec, tmp_path / "t.lance")
    assert found.codec == codec
    assert ("Zstd" in found.encodings) == (codec == "zstd")


def test_without_a_codec_the_writers_choice_is_reported(tmp_path: Path) -> None:
    found = stored(NUMBERS, None, tmp_path / "t.lance")
    assert found.codec == "auto"
    assert "MiniBlockLayout" in found.encodings


def test_a_packed_dictionary_is_not_a_codec_of_the_values(tmp_path: Path) -> None:
    found = stored(WORDS, "none", tmp_path / "t.lance")
    assert found.codec == "none"
    assert "dictionary of Lz4" in found.encodings


def test_a_schema_that_claims_another_codec_is_found_out(tmp_path: Path) -> None:
    """If the pages have another codec than the schema requests, the check fails."""
    stored(NUMBERS, "lz4", tmp_path / "t.lance")

    class Claims:
        schema = pa.schema([pa.field("f", pa.float64(), metadata={CODEC_KEY: b"zstd"})])
        data_storage_version = "2.0"

    assert stored_of(tmp_path / "t.lance", Claims(), LanceFileReader).codec == "lz4"


def test_data_that_the_codec_leaves_alone_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedData, match="no page of this data with zstd"):
        stored(BOOLEANS, "zstd", tmp_path / "t.lance")


@pytest.mark.parametrize(
    ("columns", "plane", "other"), [(NUMBERS, "Chunked", "fullzip"), (VECTORS, "Zipped", "miniblock")]
)
def test_pages_of_the_next_version_name_the_layout_of_their_values(
    columns: dict[str, pa.Array], plane: str, other: str, tmp_path: Path
) -> None:
    """All pages have the layout `PlanarLayout`, which does not name the layout of their values."""
    location = tmp_path / "t.lance"
    lance.write_dataset(pa.table(columns), str(location), data_storage_version="2.3")
    found = stored_of(location, lance.dataset(str(location)), LanceFileReader).encodings
    assert {"PlanarLayout", plane} <= set(found)
    (own,) = {"miniblock", "fullzip"} - {other}
    check_layout(found, own)
    with pytest.raises(RefusedData, match=plane):
        check_layout(found, other)
