"""Contract of tabular formats that read or save batch by batch.

`TabularFormatContract` inherits it and provides the fixtures. Tests of calls that the format does not offer are
removed. Batches are compared with the result of `read`, so both must change values in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from adapters.contract import Native, TabularFormat
from adapters.errors import RefusedData
from bench_runner.operations import targets
from bench_runner.operations.streams import pieces
from bench_runner.operations.targets import Target
from bench_runner.worker import verify
from tests.contracts.adapters import AdapterContract, left_open, only_for
from tests.contracts.projection import ODD_NAMES, mixed_table, of_names
from tests.contracts.selection import as_arrow

ARROW = Target("arrow")


LOSES_NO_ROWS = {
    ("csv", "duckdb"): "read_csv returns the header as a row",
    ("hdf5-table", "pandas"): "nothing is written, and read_hdf finds no table",
    ("json", "polars"): "read_ndjson finds no columns in a file without lines",
}
"""Format and engine -> the reason why a table without rows is not read back as such a table."""


class PlantedFault(Exception):
    """Raised by the source of batches in these tests."""


def nulls_table(rows: int = 700) -> pa.Table:
    """Return a table whose first nulls occur late, so that a reader must not infer nullability from the first batch."""
    some = range(rows)
    return pa.table(
        {
            "i": pa.array([None if row > 500 and row % 3 == 0 else row for row in some], pa.int64()),
            "f": pa.array([None if row > 300 and row % 5 == 0 else row * 0.25 + 0.125 for row in some], pa.float64()),
            "b": pa.array([None if row > 650 else row % 3 == 0 for row in some], pa.bool_()),
            "s": pa.array([None if row > 600 else f"word {row % 97}" for row in some], pa.string()),
        }
    )


def nested_table(rows: int = 700) -> pa.Table:
    """Return a table of lists, some null or empty, structs and integers."""
    lists = [None if row % 5 == 0 else [row, row + 1, row + 2][: row % 4] for row in range(rows)]
    structs = [{"a": row, "b": f"b{row % 31}"} for row in range(rows)]
    return pa.table(
        {
            "l": pa.array(lists, pa.list_(pa.int64())),
            "x": pa.array(structs, pa.struct({"a": pa.int64(), "b": pa.string()})),
            "i": pa.array(range(rows), pa.int64()),
        }
    )


TABLES = {
    "mixed": mixed_table(),
    "many rows": pa.concat_tables([mixed_table()] * 20),
    "nulls": nulls_table(),
    "nested": nested_table(),
    "one row": mixed_table().slice(7, 1),
}


def fed(adapter: TabularFormat, table: pa.Table, rows: int, raises_at: int | None = None) -> Iterator[Any]:
    """Yield the table in batches of the adapter's native type; raise PlantedFault instead of batch `raises_at`."""
    for number, batch in enumerate(table.to_batches(max_chunksize=rows)):
        if number == raises_at:
            raise PlantedFault("the source of the batches broke")
        if adapter.native in (Native.ARROW, Native.BUFFERS):
            yield batch
        else:
            yield targets.to_native(pa.Table.from_batches([batch]), ARROW, adapter.native)


def joined(adapter: TabularFormat, batches: list[Any]) -> pa.Table:
    """Return all batches as one Arrow table."""
    return pieces.joined([as_arrow(adapter, each) for each in batches])


gives_batches = only_for(lambda adapter: adapter.offers.batches)
saves_streams = only_for(lambda adapter: adapter.offers.save_stream)
keeps_no_rows = only_for(lambda adapter: (adapter.format, adapter.engine) not in LOSES_NO_ROWS)


class StreamContract(AdapterContract):
    """Part of `TabularFormatContract`; do not inherit it alone."""

    def saved_whole(self, adapter: TabularFormat, table: pa.Table, place: Path) -> tuple[Path, pa.Table]:
        """Save the table with one call; return its location and what `read` returns."""
        location = place / f"whole{adapter.suffix}"
        adapter.save(targets.to_native(targets.make(table, ARROW), ARROW, adapter.native), location)
        return location, as_arrow(adapter, adapter.read(location))

    def taken(self, adapter: TabularFormat, place: Path) -> dict[str, tuple[pa.Table, Path, pa.Table]]:
        """Return each table of TABLES that the format accepts, with its location and the result of `read`."""
        found = {}
        for name, table in TABLES.items():
            if adapter.refusal(table.schema, table.num_rows) or (name == "nulls" and not adapter.takes_masked):
                continue
            folder = place / name
            folder.mkdir()
            try:
                found[name] = (table, *self.saved_whole(adapter, table, folder))
            except RefusedData:
                assert name == "nested"
        return found

    def test_the_handle_has_batches_if_they_are_offered(self, adapter: TabularFormat, place: Path) -> None:
        location, _ = self.saved_whole(adapter, mixed_table(), place)
        handle = adapter.open(location)
        assert callable(handle.batches) == adapter.offers.batches
        handle.close()
        assert left_open(place) == []

    # --- reading --------------------------------------------------------------------------------------------------

    @gives_batches
    def test_batches_are_the_table_in_stored_order(
        self, adapter: TabularFormat, place: Path, subtests: pytest.Subtests
    ) -> None:
        for name, (_, location, read) in self.taken(adapter, place).items():
            names = read.column_names
            for columns, rows in ((names, 256), (names[::-1], 4_000), (names[:1], 33)):
                if read.num_rows > 100 * rows:
                    continue
                with subtests.test(f"{name}, {rows} rows"):
                    handle = adapter.open(location)
                    assert handle.batches is not None
                    batches = list(handle.batches(columns, rows))
                    handle.close()
                    assert left_open(place) == []
                    sizes = [len(as_arrow(adapter, each)) for each in batches]
                    assert 0 < min(sizes) <= max(sizes) <= rows
                    assert len(sizes) >= read.num_rows / rows
                    got = joined(adapter, batches)
                    assert verify.compare(read.select(columns), got, ARROW).problems == ()

    @gives_batches
    def test_a_batch_does_not_change_when_the_next_one_is_read(self, adapter: TabularFormat, place: Path) -> None:
        location, _ = self.saved_whole(adapter, TABLES["many rows"], place)
        handle = adapter.open(location)
        assert handle.batches is not None
        batches = handle.batches(["s", "i"], 1_500)
        first = next(batches)
        kept = as_arrow(adapter, first)
        kept = pa.table({name: kept.column(name).to_pylist() for name in kept.column_names})
        for _ in batches:
            pass
        handle.close()
        assert verify.compare(kept, as_arrow(adapter, first), ARROW).problems == ()

    @gives_batches
    def test_an_iterator_of_batches_may_be_closed_early(self, adapter: TabularFormat, place: Path) -> None:
        location, _ = self.saved_whole(adapter, TABLES["many rows"], place)
        handle = adapter.open(location)
        assert handle.batches is not None
        batches: Any = handle.batches(["i"], 100)
        assert len(as_arrow(adapter, next(batches))) <= 100
        batches.close()
        handle.close()
        del batches, handle
        assert left_open(place) == []

    @gives_batches
    @keeps_no_rows
    def test_a_table_without_rows_gives_no_batch(self, adapter: TabularFormat, place: Path) -> None:
        location, read = self.saved_whole(adapter, mixed_table().slice(0, 0), place)
        handle = adapter.open(location)
        assert handle.batches is not None
        assert list(handle.batches(read.column_names, 100)) == []
        handle.close()

    @gives_batches
    def test_batches_of_columns_with_odd_names(self, adapter: TabularFormat, place: Path) -> None:
        location, read = self.saved_whole(adapter, of_names(adapter, ODD_NAMES), place)
        names = read.column_names[::-1]
        handle = adapter.open(location)
        assert handle.batches is not None
        got = joined(adapter, list(handle.batches(names, 1)))
        handle.close()
        assert verify.compare(read.select(names), got, ARROW).problems == ()

    @gives_batches
    def test_batches_of_a_missing_column_raise_an_error_that_names_it(
        self, adapter: TabularFormat, place: Path, subtests: pytest.Subtests
    ) -> None:
        location, _ = self.saved_whole(adapter, mixed_table(), place)
        for columns in (["absent"], ["i", "absent"], ["I"]):
            handle = adapter.open(location)
            assert handle.batches is not None
            with subtests.test(",".join(columns)), pytest.raises(Exception, match=columns[-1]):
                list(handle.batches(columns, 100))
            handle.close()

    # --- saving ---------------------------------------------------------------------------------------------------

    @saves_streams
    def test_a_saved_stream_is_the_saved_table(
        self, adapter: TabularFormat, place: Path, subtests: pytest.Subtests
    ) -> None:
        for name, (table, whole, read) in self.taken(adapter, place).items():
            files = {whole.name}
            for rows in (100_000, 37 if table.num_rows < 1_000 else 500):
                with subtests.test(f"{name}, {rows} rows"):
                    location = whole.with_stem(f"stream-{rows}")
                    adapter.save_stream(table.schema, fed(adapter, table, rows), location)
                    assert left_open(place) == []
                    got = as_arrow(adapter, adapter.read(location))
                    assert verify.compare(read, got, ARROW).problems == ()
                    files.add(location.name)
                    assert {path.name for path in whole.parent.iterdir()} <= files

    @saves_streams
    def test_a_saved_stream_has_the_layout_of_the_saved_table(self, adapter: TabularFormat, place: Path) -> None:
        table = TABLES["many rows"]
        whole, _ = self.saved_whole(adapter, table, place)
        location = place / f"stream{adapter.suffix}"
        adapter.save_stream(table.schema, fed(adapter, table, 1_000), location)
        expected, got = adapter.stored(whole), adapter.stored(location)
        assert (got.codec, got.details) == (expected.codec, expected.details)

    @saves_streams
    @keeps_no_rows
    def test_a_stream_without_rows_is_a_table_without_rows(self, adapter: TabularFormat, place: Path) -> None:
        empty = mixed_table().slice(0, 0)
        _, read = self.saved_whole(adapter, empty, place)
        location = place / f"stream{adapter.suffix}"
        adapter.save_stream(empty.schema, iter(()), location)
        got = as_arrow(adapter, adapter.read(location))
        assert (got.column_names, got.num_rows) == (read.column_names, 0)

    @saves_streams
    def test_a_source_that_fails_raises_an_error_and_leaves_no_file(
        self, adapter: TabularFormat, place: Path, subtests: pytest.Subtests
    ) -> None:
        table = TABLES["many rows"]
        self.saved_whole(adapter, table, place)
        location = place / f"stream{adapter.suffix}"
        for broken_at in (0, 1, 15):
            with subtests.test(f"broken at {broken_at}"):
                with pytest.raises(Exception, match="the source of the batches broke"):
                    adapter.save_stream(table.schema, fed(adapter, table, 300, broken_at), location)
                assert left_open(place) == []
                assert [path.name for path in place.iterdir()] == [f"whole{adapter.suffix}"]
