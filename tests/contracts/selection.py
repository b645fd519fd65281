"""Contract of tabular formats that take rows by number, scan with a predicate, or append.

`TabularFormatContract` inherits it and provides the fixtures. Tests of calls that the format does not offer are
removed. Results of `take` and `scan` are compared with the result of `read`, so all three must change values in the
same way.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from adapters.contract import TabularFormat
from adapters.offers import Handle, Reach, Sharing
from adapters.predicate import Kind, Predicate
from bench_runner.machine.linux import file_mappings, files_below
from bench_runner.operations import targets
from bench_runner.operations.tables import predicates
from bench_runner.operations.targets import Target
from bench_runner.worker import verify
from tests.contracts.adapters import AdapterContract, left_open, only_for
from tests.contracts.projection import ODD_NAMES, mixed_table, of_names, rchar

ARROW = Target("arrow")
PLAIN = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
ROWS = 5_000
STREAMS = 8

NUMBERS = {
    "one": [7],
    "ascending": [0, 3, 4, 250, 299],
    "unsorted": [250, 3, 299, 0, 4],
    "repeated": [5, 5, 2, 5, 2],
    "repeated and ascending": [2, 5, 5, 9],
    "none": [],
    "all backwards": list(range(299, -1, -1)),
}

WRONG_NUMBERS = {"too large": [0, 300], "far too large": [2**40], "negative": [5, -1]}


def odd_table() -> pa.Table:
    """Return values at which engines differ: nulls, NaN, both zeros, infinities, non-Latin letters, empty text."""
    numbers = [math.nan, -0.0, 0.0, 1.5, None, -math.inf, math.inf, -2.5]
    words = ["", "Größe", "列車", "列", None, "a%b", "a_b", "a\\b", "A", "abc", "ab", "žluť"]
    return pa.table(
        {
            "f": pa.array([numbers[row % len(numbers)] for row in range(ROWS)], pa.float64()),
            "i": pa.array([None if row % 7 == 0 else row % 50 - 25 for row in range(ROWS)], pa.int64()),
            "s": pa.array([words[row % len(words)] for row in range(ROWS)], pa.string()),
            "row": pa.array(range(ROWS), pa.int64()),
            "of": pa.array([row * 0.5 for row in range(ROWS)], pa.float64()),
        }
    )


PREDICATES = {
    "range of integers": Predicate("i", Kind.RANGE, (-3, 4)),
    "range of rows": Predicate("row", Kind.RANGE, (1_000, 1_010)),
    "range beyond all": Predicate("row", Kind.RANGE, (10_000, 20_000)),
    "range over zeros": Predicate("f", Kind.RANGE, (0.0, 2.0)),
    "range below zero": Predicate("f", Kind.RANGE, (-3.0, 0.0)),
    "range to infinity": Predicate("f", Kind.RANGE, (1.0, math.inf)),
    "range to NaN": Predicate("f", Kind.RANGE, (1.0, math.nan)),
    "range from NaN": Predicate("f", Kind.RANGE, (math.nan, 2.0)),
    "range of floats": Predicate("of", Kind.RANGE, (100.0, 110.0)),
    "equal integer": Predicate("i", Kind.EQUAL, (3,)),
    "equal zero": Predicate("f", Kind.EQUAL, (0.0,)),
    "equal minus zero": Predicate("f", Kind.EQUAL, (-0.0,)),
    "equal NaN": Predicate("f", Kind.EQUAL, (math.nan,)),
    "equal text": Predicate("s", Kind.EQUAL, ("a%b",)),
    "equal empty text": Predicate("s", Kind.EQUAL, ("",)),
    "equal quoted text": Predicate("s", Kind.EQUAL, ('it\'s "so"',)),
    "in integers": Predicate("i", Kind.IN, (1, 5, 400)),
    "in with a null": Predicate("i", Kind.IN, (1, None)),
    "in a list of one null": Predicate("i", Kind.IN, (None,)),
    "in floats": Predicate("f", Kind.IN, (0.0, 1.5, math.nan)),
    "in texts": Predicate("s", Kind.IN, ("列", "A", None)),
    "null integer": Predicate("i", Kind.NULL),
    "null float": Predicate("f", Kind.NULL),
    "null text": Predicate("s", Kind.NULL),
    "null nowhere": Predicate("row", Kind.NULL),
    "prefix": Predicate("s", Kind.PREFIX, ("ab",)),
    "prefix of other letters": Predicate("s", Kind.PREFIX, ("列",)),
    "prefix with a percent sign": Predicate("s", Kind.PREFIX, ("a%",)),
    "prefix with an underscore": Predicate("s", Kind.PREFIX, ("a_",)),
    "prefix with a backslash": Predicate("s", Kind.PREFIX, ("a\\",)),
    "prefix of all": Predicate("s", Kind.PREFIX, ("",)),
}


@contextmanager
def opened_rows(adapter: TabularFormat, location: Path) -> Iterator[Any]:
    """Open the stored copy for taking rows, yield its `take`, and close it afterwards."""
    handle = adapter.open_rows(location)
    try:
        yield handle.take
    finally:
        handle.close()


def as_arrow(adapter: TabularFormat, native: Any) -> pa.Table:
    """Convert a native result to an Arrow table, as the harness does."""
    if isinstance(native, pd.DataFrame):
        native = native.reset_index(drop=True)
    table = targets.from_native(native, ARROW, adapter.native_read)
    # pyarrow cannot take rows of string views. Verification treats views and plain text as equal.
    plain = [pa.field(each.name, PLAIN.get(each.type, each.type)) for each in table.schema]
    return table.cast(pa.schema(plain))


def _taken(adapter: TabularFormat, location: Path, numbers: np.ndarray) -> None:
    with opened_rows(adapter, location) as take:
        as_arrow(adapter, take(numbers, ["c0", "c1"]))


def _scanned(adapter: TabularFormat, location: Path, predicate: Predicate) -> None:
    handle = adapter.open(location)
    assert handle.scan is not None
    assert as_arrow(adapter, handle.scan(predicate, ["c0", "c1"])).num_rows == 6_000
    handle.close()


takes_rows = only_for(lambda adapter: adapter.offers.take is not None)
scans = only_for(lambda adapter: bool(adapter.offers.scan))


class SelectionContract(AdapterContract):
    """Part of `TabularFormatContract`; do not inherit it alone."""

    def stored_copy(self, adapter: TabularFormat, table: pa.Table, place: Path) -> Path:
        """Save the table with the target Arrow; return its location."""
        location = place / f"t{adapter.suffix}"
        adapter.save(targets.to_native(targets.make(table, ARROW), ARROW, adapter.native), location)
        return location

    def test_the_handles_have_the_calls_that_are_offered(self, adapter: TabularFormat, place: Path) -> None:
        location = self.stored_copy(adapter, mixed_table(), place)
        for handle, call, named in (
            (adapter.open_rows(location), "take", adapter.offers.take is not None),
            (adapter.open(location), "scan", bool(adapter.offers.scan)),
        ):
            assert isinstance(handle, Handle)
            assert callable(getattr(handle, call)) == named
            handle.close()
        assert left_open(place) == []

    # --- rows by their numbers ------------------------------------------------------------------------------------

    @takes_rows
    def test_rows_come_in_the_order_asked(self, adapter: TabularFormat, place: Path, subtests: pytest.Subtests) -> None:
        location = self.stored_copy(adapter, mixed_table(), place)
        read = as_arrow(adapter, adapter.read(location))
        for name, numbers in NUMBERS.items():
            asked = np.array(numbers, np.int64)
            with subtests.test(name), opened_rows(adapter, location) as take:
                for columns in (["i", "f", "b", "s"], ["s", "i"]):
                    got = as_arrow(adapter, take(asked, columns))
                    assert verify.compare(read.select(columns), got, ARROW, rows=asked).problems == ()

    @takes_rows
    def test_rows_of_columns_with_any_name(self, adapter: TabularFormat, place: Path) -> None:
        location = self.stored_copy(adapter, of_names(adapter, (*ODD_NAMES, "number", "place", "rows")), place)
        read = as_arrow(adapter, adapter.read(location))
        asked = np.array([1, 0, 1], np.int64)
        with opened_rows(adapter, location) as take:
            got = as_arrow(adapter, take(asked, read.column_names))
        assert verify.compare(read, got, ARROW, rows=asked).problems == ()

    @takes_rows
    def test_a_row_number_out_of_range_raises_an_error_that_names_it(
        self, adapter: TabularFormat, place: Path, subtests: pytest.Subtests
    ) -> None:
        location = self.stored_copy(adapter, mixed_table(), place)
        for name, numbers in WRONG_NUMBERS.items():
            refused = pytest.raises(IndexError, match=str(numbers[-1]))
            with subtests.test(name), opened_rows(adapter, location) as take, refused:
                take(np.array(numbers, np.int64), ["i"])

    @takes_rows
    def test_rows_of_several_batches(self, adapter: TabularFormat, place: Path) -> None:
        table = odd_table() if adapter.takes_masked else odd_table().drop_columns(["i"])
        parts = pa.concat_tables([table.slice(0, 0), table.slice(0, 17), table.slice(17)])
        location = self.stored_copy(adapter, parts, place)
        asked = np.random.default_rng(3).permutation(ROWS)[:500]
        read = as_arrow(adapter, adapter.read(location))
        with opened_rows(adapter, location) as take:
            for _ in range(2):
                got = as_arrow(adapter, take(asked, read.column_names))
                assert verify.compare(read, got, ARROW, rows=asked).problems == ()

    @takes_rows
    def test_rows_outlive_the_handle_and_the_files(self, adapter: TabularFormat, place: Path) -> None:
        location = self.stored_copy(adapter, mixed_table(), place)
        read = as_arrow(adapter, adapter.read(location))
        asked = np.array([5, 200, 3], np.int64)
        with opened_rows(adapter, location) as take:
            got = as_arrow(adapter, take(asked, ["s", "f"]))
        del take
        assert left_open(place) == []
        if adapter.values.get("mapped") != "true":
            stored = [(start, end) for start, end, path in file_mappings() if path.startswith(str(place))]
            assert not any(
                address < end and start < address + size_bytes
                for address, size_bytes in targets.buffers(got)
                for start, end in stored
            )
            shutil.rmtree(place)
        assert verify.compare(read.select(["s", "f"]), got, ARROW, rows=asked).problems == ()

    @only_for(lambda adapter: adapter.offers.take is Reach.ROWS)
    def test_rows_without_groups_are_not_read_whole(self, adapter: TabularFormat, place: Path) -> None:
        numbers = np.random.default_rng(1)
        table = pa.table({f"c{place}": numbers.random(200_000) for place in range(5)})
        location = self.stored_copy(adapter, table, place)
        with opened_rows(adapter, location) as take:
            take(np.array([3], np.int64), ["c1"])
            before = rchar()
            take(np.array([100_000, 150_000], np.int64), ["c1"])
            asked = rchar() - before
        assert asked < table.nbytes / 5 / 2

    @only_for(lambda adapter: adapter.offers.sharing is not None)
    def test_streams_each_get_their_own_rows(self, adapter: TabularFormat, place: Path) -> None:
        """The streams share one handle or have one handle each, as the adapter declares."""
        location = self.stored_copy(adapter, mixed_table(), place)
        read = as_arrow(adapter, adapter.read(location))
        shared = adapter.open_rows(location) if adapter.offers.sharing is Sharing.ONE else None
        handles = [shared or adapter.open_rows(location) for _ in range(STREAMS)]
        asked = [np.random.default_rng(number).permutation(300)[:40] for number in range(STREAMS * 8)]

        def stream(number: int) -> list[Any]:
            take = handles[number].take
            assert take is not None
            return [as_arrow(adapter, take(asked[each], ["i", "s"])) for each in range(number, len(asked), STREAMS)]

        with ThreadPoolExecutor(STREAMS) as pool:
            given = list(pool.map(stream, range(STREAMS)))
        for number, results in enumerate(given):
            for place_in, got in enumerate(results):
                rows = asked[number + place_in * STREAMS]
                assert verify.compare(read.select(["i", "s"]), got, ARROW, rows=rows).problems == ()
        for handle in handles:
            handle.close()

    @pytest.mark.rule(16)
    def test_reads_unseen_is_declared_if_and_only_if_read_calls_miss_bytes(
        self, adapter: TabularFormat, place: Path
    ) -> None:
        """The calls need every byte. Otherwise a memory-mapped file would look like a call that reads little."""
        numbers = np.random.default_rng(5)
        table = pa.table({f"c{column}": numbers.random(6_000) for column in range(2)})
        location = self.stored_copy(adapter, table, place)
        calls = [partial(adapter.read, location)]
        if adapter.offers.take is not None:
            calls.append(partial(_taken, adapter, location, np.arange(6_000)))
        if Kind.RANGE in adapter.offers.scan:
            calls.append(partial(_scanned, adapter, location, Predicate("c0", Kind.RANGE, (-1.0, 2.0))))
        seen = []
        for call in calls:
            call()
            before = rchar()
            call()
            seen.append(rchar() - before)
        # The call reads at least the values, or the files if these are smaller. An index need not be read. Half of this
        # is accepted, because the library may keep some bytes of the first call.
        least = min(table.nbytes, sum(path.stat().st_size for path in files_below(location))) / 2
        assert all(asked > least for asked in seen) != adapter.reads_unseen, (seen, least)

    # --- predicates -----------------------------------------------------------------------------------------------

    @scans
    def test_a_scan_returns_the_rows_that_match_the_predicate(
        self, adapter: TabularFormat, place: Path, subtests: pytest.Subtests
    ) -> None:
        table = odd_table()
        location = self.stored_copy(adapter, table, place)
        read = as_arrow(adapter, adapter.read(location))
        changed = {
            name
            for name in table.column_names
            for loss in adapter.losses
            if loss.holds_for("arrow", "str", "masked") and loss.relation.expect(table.column(name)) is not None
        }
        asked = {
            name: each
            for name, each in PREDICATES.items()
            if each.kind in adapter.offers.scan and each.column not in changed
        }
        assert asked
        for name, predicate in asked.items():
            met = np.flatnonzero(predicates.mask(table.column(predicate.column), predicate).to_numpy())
            with subtests.test(name):
                handle = adapter.open(location)
                assert handle.scan is not None
                for columns in (["row"], ["row", predicate.column] if predicate.column != "row" else ["s", "row"]):
                    got = as_arrow(adapter, handle.scan(predicate, columns))
                    if not adapter.offers.ordered:
                        got = got.sort_by("row")
                    assert verify.compare(read.select(columns), got, ARROW, rows=met).problems == ()
                handle.close()
        assert left_open(place) == []

    # --- appends --------------------------------------------------------------------------------------------------

    @only_for(lambda adapter: adapter.offers.append)
    def test_appended_rows_follow_the_stored_ones(self, adapter: TabularFormat, place: Path) -> None:
        location = self.stored_copy(adapter, mixed_table(), place)
        more = mixed_table().slice(100, 50)
        for _ in range(2):
            adapter.append(targets.to_native(targets.make(more, ARROW), ARROW, adapter.native), location)
        got = as_arrow(adapter, adapter.read(location))
        both = pa.concat_tables([mixed_table(), more, more])
        assert verify.compare(both, got, ARROW, adapter.losses).problems == ()
        assert left_open(place) == []
        assert [path.name for path in place.iterdir()] == [location.name]
