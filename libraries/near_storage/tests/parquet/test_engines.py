"""Files of pyarrow, DuckDB, Polars and fastparquet: our footers agree with theirs, and pruning never loses a row."""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from libraries.filters.binding import bind
from libraries.filters.codes import LOWEST
from libraries.filters.pruning import prune
from libraries.filters.tree import OPERATORS, And, Comparison, In, IsNull, Known, Literal, Not, Or, Predicate, Prefix
from libraries.near_storage.parquet.compact import from_footer
from libraries.near_storage.parquet.footer import Footer, has_false_bounds, read_footer
from libraries.near_storage.tests.parquet.rows import said
from libraries.near_storage.tests.parquet.tables import WRITERS, Row, literal_type, rows_of

SEED = 211
PREDICATES = 200
"""Per writer, of which there are eight."""


@pytest.fixture(scope="module", params=WRITERS)
def written(request, tmp_path_factory) -> tuple[Path, Footer]:
    path = tmp_path_factory.mktemp("files") / "file.parquet"
    WRITERS[request.param](path, random.Random(SEED))
    with path.open("rb") as file:
        return path, read_footer(file)


def test_the_footer_says_what_pyarrow_says(written):
    path, footer = written
    theirs = pq.read_metadata(path)
    assert (footer.rows, footer.length) == (theirs.num_rows, theirs.serialized_size)
    assert [".".join(column.path) for column in footer.columns] == [
        theirs.schema.column(number).path for number in range(theirs.num_columns)
    ]
    for number, column in enumerate(footer.columns):
        described = theirs.schema.column(number)
        assert column.physical == described.physical_type
        assert column.length == (described.length if column.physical == "FIXED_LEN_BYTE_ARRAY" else 0)
        assert (column.nulls, column.repeats) == (described.max_definition_level, described.max_repetition_level)
    for index, group in enumerate(footer.row_groups):
        assert group.rows == theirs.row_group(index).num_rows
        for number, chunk in enumerate(group.chunks):
            same_chunk(chunk, theirs.row_group(index).column(number), has_false_bounds(theirs.created_by.encode()))


def same_chunk(ours, theirs, without_bounds: bool) -> None:
    starts = [theirs.data_page_offset, theirs.dictionary_page_offset or theirs.data_page_offset]
    assert ours.start == (min(starts) if starts[1] else starts[0])
    assert (ours.length, ours.values) == (theirs.total_compressed_size, theirs.num_values)
    stats = theirs.statistics
    if stats is None:
        return
    assert ours.statistics is not None
    assert ours.statistics.nulls == (stats.null_count if stats.has_null_count else None)
    if without_bounds:
        assert (ours.statistics.minimum, ours.statistics.maximum) == (None, None)
    elif stats.has_min_max and theirs.physical_type in ("INT32", "INT64"):
        for bound, shown in ((ours.statistics.minimum, stats.min_raw), (ours.statistics.maximum, stats.max_raw)):
            assert int.from_bytes(bound, "little", signed=True) == shown
    elif stats.has_min_max and theirs.physical_type == "BYTE_ARRAY":
        assert (ours.statistics.minimum, ours.statistics.maximum) == (stats.min_raw, stats.max_raw)


def test_the_footer_says_what_duckdb_says(written):
    """DuckDB shows what pyarrow does not: whether bounds are exact, and NaN counts."""
    path, footer = written
    shown = (
        "row_group_id, column_id, min_is_exact, max_is_exact, stats_null_count, stats_nan_count, total_compressed_size"
    )
    with duckdb.connect(config={"threads": 1}) as connection:
        rows = connection.execute(f"select {shown} from parquet_metadata('{path}')").fetchall()
    assert len(rows) == len(footer.row_groups) * len(footer.columns)
    for group, column, low_exact, high_exact, nulls, nans, length in rows:
        chunk = footer.row_groups[group].chunks[column]
        assert chunk.length == length
        if chunk.statistics is not None and footer.columns[column].order != "undefined":
            stats = chunk.statistics
            assert (stats.minimum_exact, stats.maximum_exact) == (low_exact, high_exact)
            assert (stats.nulls, stats.nans) == (nulls, nans)


class Maker:
    """Makes random bound filters for a file: literals are values of the file or near them."""

    def __init__(self, rng: random.Random, schema: pa.Schema, rows: list[list[Row]]) -> None:
        self.rng = rng
        self.types = {field.name: literal_type(field.type) for field in schema}
        every = [row for group in rows for row in group]
        self.values = {name: usable([row[name] for row in every]) for name in self.types if name in every[0]}

    def predicate(self, depth: int = 2) -> Predicate:
        if depth and self.rng.random() < 0.5:
            parts = tuple(self.predicate(depth - 1) for _ in range(self.rng.randrange(1, 4)))
            return self.rng.choice([And(parts), Or(parts), Not(parts[0])])
        return self.leaf()[1]

    def leaf(self) -> tuple[str, Predicate]:
        column = self.rng.choice(list(self.values))
        if not self.values[column]:
            return "is null", IsNull(column)
        kind = self.rng.choice(["comparison"] * 6 + ["in", "is null", "known", "prefix"])
        if kind == "comparison":
            name = self.rng.choice(OPERATORS)
            return name, Comparison(name, column, self.literal(column))
        if kind == "in":
            return "in", In(column, tuple(self.literal(column) for _ in range(self.rng.randrange(1, 5))))
        value = self.rng.choice(self.values[column])
        if kind == "prefix" and isinstance(value, str):
            return "prefix", Prefix(column, value[: self.rng.randrange(12)])
        if kind == "known":
            return "known", Known(column, self.rng.random() < 0.5)
        return "is null", IsNull(column)

    def literal(self, column: str) -> Literal:
        value = self.rng.choice(self.values[column])
        type_ = self.types[column]
        if isinstance(value, int) and not isinstance(value, bool) and self.rng.random() < 0.3:
            beside = value + self.rng.choice([-1, 1])
            return Literal(beside if fits(beside, type_) else value, type_)
        if isinstance(value, str) and self.rng.random() < 0.2:
            return Literal(value + "\0", type_)
        return Literal(value, type_)


def usable(values: list) -> list:
    """Return the values that can be literals: neither null nor NaN nor nested."""
    simple = [
        value for value in values if isinstance(value, bool | int | float | str | bytes) or hasattr(value, "scaleb")
    ]
    return [value for value in simple if not (isinstance(value, float) and math.isnan(value))]


def fits(value: int, type_: pa.DataType) -> bool:
    try:
        return pa.scalar(value, type_).is_valid
    except (pa.ArrowInvalid, OverflowError):
        return False


def flat_columns(footer: Footer) -> list[str]:
    return [column.path[0] for column in footer.columns if column.flat]


def check_predicates(path: Path, footer: Footer, count: int, seed: int) -> None:
    """Check that the value of random filters on every row is allowed by the outcomes of its row group."""
    rows = rows_of(path, flat_columns(footer))
    metadata = from_footer(footer)
    maker = Maker(random.Random(seed), pq.read_schema(path), rows)
    pruned = 0
    for _ in range(count):
        predicate = maker.predicate()
        verdict = prune(metadata, predicate)
        for group, of_group in enumerate(rows):
            outcome = said(predicate, of_group)
            assert verdict.may_be_true[group] or True not in outcome, (predicate, group)
            assert verdict.may_be_false[group] or False not in outcome, (predicate, group)
            assert verdict.may_be_null[group] or None not in outcome, (predicate, group)
        pruned += int(np.count_nonzero(~verdict.may_be_true))
    has_bounds = (metadata.codes[0] != LOWEST).any()
    assert pruned > (count if has_bounds else 0)


def test_no_row_that_matches_is_pruned(written):
    check_predicates(*written, PREDICATES, SEED)


NEVER_PRUNED = {
    # Writers give no bounds for these, or bounds in an undefined order.
    "pyarrow": {"null"},
    "pyarrow 1.0": {"null"},
    "pyarrow, decimals as numbers": {"null"},
}


@pytest.mark.parametrize("writer", ["pyarrow", "pyarrow 1.0", "pyarrow, decimals as numbers", "polars", "duckdb"])
def test_every_type_is_pruned_by_something(writer, tmp_path):
    """For every type with bounds, equality with each of a column's values prunes a row group that has values."""
    path = tmp_path / "file.parquet"
    WRITERS[writer](path, random.Random(SEED))
    with path.open("rb") as file:
        footer = read_footer(file)
    metadata, schema = from_footer(footer), pq.read_schema(path)
    names = flat_columns(footer)
    rows = rows_of(path, names)
    pruned: Counter[str] = Counter()
    for name in names:
        holds = np.array([any(row[name] is not None for row in group) for group in rows])
        for value in usable([row[name] for group in rows for row in group])[:300:5]:
            # Bound like filters of clients: a literal of a type that codes do not support would silently prune nothing.
            filter_ = bind(Comparison("==", name, Literal(value, literal_type(schema.field(name).type))), schema)
            verdict = prune(metadata, filter_)
            pruned[name] += int(np.count_nonzero(holds & ~verdict.may_be_true))
    assert {name for name in names if not pruned[name]} == NEVER_PRUNED.get(writer, set())
