"""library_cache=off is honoured: repeated reads read the file again, with the same result."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from adapters.contract import TabularFormat
from formats.registry import FORMATS
from tests.contracts.projection import rchar

ROWS, VALUE_BYTES = 5_000, 1_000
ENGINES = {"lance": "pylance", "vortex": "vortex-data"}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    random = np.random.default_rng(1)
    return pa.table({"value": pa.array([random.bytes(VALUE_BYTES) for _ in range(ROWS)])})


def read_by_the_second_take(name: str, cache: str, table: pa.Table, folder: Path) -> int:
    adapter = FORMATS.build(f"{name}[engine={ENGINES[name]},library_cache={cache}]")
    assert isinstance(adapter, TabularFormat)
    adapter.load_library()
    location = folder / f"{cache}{adapter.suffix}"
    adapter.save(table, location)
    adapter.stored(location)
    numbers = np.arange(0, ROWS, 500)
    handle = adapter.open_rows(location)
    assert handle.take is not None
    handle.take(numbers, ["value"])
    before = rchar()
    again = handle.take(numbers, ["value"])
    read = rchar() - before
    assert again.column("value").cast(pa.binary()).to_pylist() == table.take(pa.array(numbers)).column(0).to_pylist()
    handle.close()
    return read


@pytest.mark.parametrize("name", ENGINES)
def test_without_it_the_same_rows_are_read_again(name: str, table: pa.Table, tmp_path: Path) -> None:
    with_cache, without = (read_by_the_second_take(name, cache, table, tmp_path) for cache in ("on", "off"))
    assert without > 2 * with_cache + 10 * VALUE_BYTES


@pytest.mark.parametrize(
    ("name", "told"), [("lance", "metadata_cache_size_bytes=0"), ("vortex", "without_segment_cache")]
)
def test_it_is_spelled_where_it_is_not_the_default(name: str, told: str) -> None:
    on, off = (FORMATS.build(f"{name}[library_cache={cache}]") for cache in ("on", "off"))
    assert isinstance(on, TabularFormat)
    assert isinstance(off, TabularFormat)
    assert "library_cache" not in on.variant
    assert off.variant == f"{name}[engine={ENGINES[name]},library_cache=off]"
    assert on.calls is not None
    assert told not in on.calls.read
    assert off.calls is not None
    assert told in off.calls.read
