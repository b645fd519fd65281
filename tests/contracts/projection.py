"""Contract of tabular formats that offer `project`: the requested columns, in the requested order, equal those of
`read`.

`TabularFormatContract` inherits it and provides the fixtures. Tests of calls that the format does not offer are
removed.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from adapters.contract import TabularFormat
from adapters.offers import Handle
from bench_runner.machine.linux import file_mappings
from bench_runner.operations import targets
from bench_runner.operations.targets import Target
from bench_runner.results.records import Fidelity
from bench_runner.worker import fidelity, verify
from data_generator.generated.kinds import KINDS
from tests.contracts.adapters import AdapterContract, left_open, only_for

ODD_NAMES = ("with blank", 'quo"ted', "apo'strophe", "com,ma", "[bracket]", "Größe", "列", "SELECT")
"""Column names that are keywords or syntax of some language, or that use non-Latin letters."""

ROW_BY_ROW = frozenset({"avro", "csv", "excel", "hdf5-pytables", "hdf5-table", "json", "sqlite-table"})
"""Formats that store tables by rows. Reading one column reads the whole file."""

LARGE_COLUMNS, LARGE_ROWS = 20, 50_000


def mixed_table() -> pa.Table:
    """Return 300 rows of an integer, a float, a boolean and a text column, without nulls."""
    return pa.table(
        {
            "i": pa.array(range(300), pa.int64()),
            "f": pa.array([row * 0.25 for row in range(300)], pa.float64()),
            "b": pa.array([row % 3 == 0 for row in range(300)], pa.bool_()),
            "s": pa.array([f"word {row % 97}" for row in range(300)], pa.string()),
        }
    )


def of_names(adapter: TabularFormat, names: Sequence[str]) -> pa.Table:
    """Return two rows of integers in columns of these names. Names that the format refuses are left out."""
    table = pa.table({"plain": [0, 1]})
    for number, name in enumerate(names, start=1):
        wider = table.append_column(name, [[number, number + 1]])
        if adapter.refusal(wider.schema, 2) is None:
            table = wider
    return table


@contextmanager
def opened(adapter: TabularFormat, location: Path) -> Iterator[Any]:
    """Open the stored copy, give its `project`, and close it afterwards."""
    handle = adapter.open(location)
    try:
        yield handle.project
    finally:
        handle.close()


def assert_same(read: Any, projected: Any, columns: Sequence[str]) -> None:
    """Assert that these columns of `read` equal the result of `project` in names, types, values and order."""
    if isinstance(read, pd.DataFrame):
        pd.testing.assert_frame_equal(read[list(columns)], projected, check_exact=True)
        return
    wanted = read.select(columns)
    assert projected.schema.types == wanted.schema.types
    assert verify.compare(wanted, projected, Target("arrow")).problems == ()


def rchar() -> int:
    """Return the number of bytes that this process has requested in read calls so far."""
    return int(Path("/proc/self/io").read_text().split()[1])


projects = only_for(lambda adapter: adapter.offers.project)


class ProjectionContract(AdapterContract):
    """Part of `TabularFormatContract`; do not inherit it alone."""

    def stored_table(self, adapter: TabularFormat, target: Target, table: pa.Table, location: Path) -> None:
        """Convert the table for the target, then save it."""
        adapter.save(targets.to_native(targets.make(table, target), target, adapter.native), location)

    def given(self, adapter: TabularFormat, target: Target, native: Any) -> Any:
        return targets.from_native(native, target, adapter.native_read)

    def test_the_handle_has_project_if_it_is_offered(self, adapter: TabularFormat, place: Path) -> None:
        location = place / f"t{adapter.suffix}"
        self.stored_table(adapter, Target("arrow"), mixed_table(), location)
        handle = adapter.open(location)
        assert isinstance(handle, Handle)
        assert callable(handle.project) == adapter.offers.project
        handle.close()
        assert left_open(place) == []

    @projects
    def test_columns_come_in_the_order_asked(
        self, adapter: TabularFormat, target: Target, place: Path, subtests: pytest.Subtests
    ) -> None:
        location = place / f"t{adapter.suffix}"
        self.stored_table(adapter, target, mixed_table(), location)
        for columns in (["s", "i"], ["b"], ["i", "f", "b", "s"], ["s", "b", "f", "i"]):
            with subtests.test(",".join(columns)):
                with opened(adapter, location) as project:
                    got = self.given(adapter, target, project(columns))
                    again = self.given(adapter, target, project(tuple(columns)))
                for each in (got, again):
                    assert verify.compare(mixed_table().select(columns), each, target, adapter.losses).problems == ()

    @only_for(lambda adapter: adapter.offers.keeps_columns)
    def test_an_open_handle_returns_the_columns_of_each_request(self, adapter: TabularFormat, place: Path) -> None:
        location, target = place / f"t{adapter.suffix}", Target("arrow")
        self.stored_table(adapter, target, mixed_table(), location)
        handle = adapter.open_columns(location)
        assert handle.project is not None
        results = [
            (columns, self.given(adapter, target, handle.project(columns)))
            for columns in (["s", "i"], ["b"], ["f", "s"], ["s", "i"], mixed_table().column_names)
        ]
        handle.close()
        del handle
        assert left_open(place) == []
        for columns, got in results:
            assert verify.compare(mixed_table().select(columns), got, target, adapter.losses).problems == ()

    @projects
    def test_columns_with_odd_names(self, adapter: TabularFormat, target: Target, place: Path) -> None:
        location = place / f"t{adapter.suffix}"
        table = of_names(adapter, ODD_NAMES)
        self.stored_table(adapter, target, table, location)
        read = self.given(adapter, target, adapter.read(location))
        # A reader may return a different name than the stored one. The test then requests the returned name.
        names = list(read.columns) if isinstance(read, pd.DataFrame) else read.column_names
        assert len(names) == table.num_columns
        with opened(adapter, location) as project:
            for asked in (names[::-1], *([name] for name in names)):
                assert_same(read, self.given(adapter, target, project(asked)), asked)

    @projects
    def test_a_missing_column_raises_an_error_that_names_it(
        self, adapter: TabularFormat, place: Path, subtests: pytest.Subtests
    ) -> None:
        location = place / f"t{adapter.suffix}"
        self.stored_table(adapter, Target("arrow"), mixed_table(), location)
        for columns in (["absent"], ["i", "absent"], ["I"]):
            refused = pytest.raises(Exception, match=columns[-1])
            with subtests.test(",".join(columns)), opened(adapter, location) as project, refused:
                project(columns)

    @projects
    @pytest.mark.slow
    def test_every_kind_comes_back_as_from_read(
        self, adapter: TabularFormat, target: Target, place: Path, outcomes: dict[str, list[Fidelity]]
    ) -> None:
        taken = [record for record in outcomes[target.kind] if record.outcome in (fidelity.EXACT, fidelity.LOSSY)]
        table = pa.table(
            {f"{record.kind}-{record.nulls}": KINDS[record.kind].table(record.nulls)["value"] for record in taken}
        )
        location = place / f"t{adapter.suffix}"
        self.stored_table(adapter, target, table, location)
        read = self.given(adapter, target, adapter.read(location))
        with opened(adapter, location) as project:
            # Some readers ignore the requested order and keep the file's order if the requested names are alphabetical.
            thirds = [table.column_names[start::3] for start in range(3)]
            for columns in (thirds[0], sorted(thirds[1]), sorted(thirds[2], reverse=True)):
                assert_same(read, self.given(adapter, target, project(columns)), columns)

    @projects
    def test_columns_outlive_the_handle_and_the_files(
        self, adapter: TabularFormat, target: Target, place: Path
    ) -> None:
        location = place / f"t{adapter.suffix}"
        self.stored_table(adapter, target, mixed_table(), location)
        with opened(adapter, location) as project:
            got = self.given(adapter, target, project(["s", "f"]))
        del project
        assert left_open(place) == []
        stored = [(start, end) for start, end, path in file_mappings() if path.startswith(str(place))]
        mapped = any(
            address < end and start < address + size_bytes
            for address, size_bytes in targets.buffers(got)
            for start, end in stored
        )
        assert mapped == (adapter.values.get("mapped") == "true" and adapter.values["codec"] == "none")
        shutil.rmtree(place)
        assert verify.compare(mixed_table().select(["s", "f"]), got, target, adapter.losses).problems == ()

    @only_for(lambda adapter: adapter.offers.project and adapter.format not in ROW_BY_ROW)
    @only_for(lambda adapter: not adapter.reads_unseen and adapter.values.get("mapped") != "true")
    def test_one_column_of_many_reads_less_than_half_of_the_file(self, adapter: TabularFormat, place: Path) -> None:
        location = place / f"t{adapter.suffix}"
        numbers = np.random.default_rng(1)
        table = pa.table({f"c{place}": numbers.random(LARGE_ROWS) for place in range(LARGE_COLUMNS)})
        self.stored_table(adapter, Target("arrow"), table, location)
        before = rchar()
        adapter.read(location)
        whole = rchar() - before
        assert whole > table.nbytes / 2
        before = rchar()
        with opened(adapter, location) as project:
            project(["c7"])
        assert rchar() - before < whole / 2
