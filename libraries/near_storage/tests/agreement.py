"""Random queries on random files: every way of reading returns the same rows as an evaluation in memory.

`python -m libraries.near_storage.tests.agreement` runs 20,000 filters and 5,000 aggregates, the tests run few. The
expected answer comes from plain Python over all rows (`predicates.oracle`), never from a dataset's filter, which loses
rows with NaN. Each case is identified by its seed.
"""

from __future__ import annotations

import itertools
import math
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.types as pat

from libraries.filters.tests.oracle import truths
from libraries.filters.tests.random_filters import predicate
from libraries.filters.tests.random_tables import python_values
from libraries.near_storage import aggregates
from libraries.near_storage.errors import RequestError
from libraries.near_storage.local import LocalFiles
from libraries.near_storage.query import FUNCTIONS, Aggregate, Query
from libraries.near_storage.tests import random_files

WAYS = list(itertools.product(("v1", "v2", "all"), ("cached", "parsed")))
ASKED_OF_A_FILE = 20


@dataclass(frozen=True)
class Case:
    """Files, their rows, one query, and the rows that match in memory."""

    seed: int
    paths: list[Path]
    query: Query
    matching: pa.Table


def cases(seed: int, count: int, folder: Path, aggregated: bool = False) -> Iterator[Case]:
    """Yield `count` cases; files are made in `folder`, new ones for every twenty cases."""
    for number in range(count):
        if number % ASKED_OF_A_FILE == 0:
            files_seed = seed + number
            paths, rows = random_files.write(random.Random(files_seed), folder)
        rng = random.Random(f"{files_seed} {number}")
        where = predicate(rng, rows) if rows.num_columns and rng.random() < 0.95 else None
        matching = rows if where is None else _taken(rows, truths(where, rows))
        query = _aggregates(rng, rows, where) if aggregated else _rows(rng, rows, where)
        yield Case(files_seed + number, paths, query, matching)


def _taken(rows: pa.Table, found: list[bool | None]) -> pa.Table:
    """Select row by row, because Arrow cannot filter views."""
    kept = [rows.slice(row, 1) for row, truth in enumerate(found) if truth is True]
    return pa.concat_tables([rows.slice(0, 0), *kept])


def _rows(rng: random.Random, rows: pa.Table, where: object) -> Query:
    names = rng.sample(rows.column_names, rng.randint(0, rows.num_columns))
    columns = None if rng.random() < 0.3 else tuple(names)
    return Query("t", columns, where, limit=rng.choice((None, None, None, 0, 1, 7)))


def _aggregates(rng: random.Random, rows: pa.Table, where: object) -> Query:
    """Return random valid aggregates for the columns' types, with groups by no column, one or two."""
    asked: list[Aggregate] = [Aggregate("count", None, "a0")]
    for number in range(1, rng.randint(1, 4)):
        name = rng.choice(rows.column_names)
        type = rows.schema.field(name).type
        summed = pat.is_integer(type) or pat.is_decimal(type) or pat.is_floating(type)
        functions = FUNCTIONS if summed else ("min", "max", "count")
        asked.append(Aggregate(rng.choice(functions), name, f"a{number}"))
    groups = tuple(rng.sample(rows.column_names, min(rng.choice((0, 1, 1, 2)), rows.num_columns)))
    return Query("t", groups, where, tuple(asked), groups)


def check(case: Case, files: LocalFiles, ways: list[tuple[str, str]]) -> None:
    """Raise AssertionError, which names the case, if one of the ways differs from memory."""
    for way, footers in ways:
        what = f"seed {case.seed}, {way} with footers {footers}: {case.query}"
        if case.query.aggregated:
            _check_aggregates(case, files, way, footers, what)
            continue
        found, report = files.query(case.query, way, footers)
        # In this order, because a slice of a table without columns may have more rows than that (pyarrow 26).
        expected = case.matching.slice(0, case.query.limit)
        expected = expected if case.query.columns is None else expected.select(list(case.query.columns))
        assert found.num_rows == expected.num_rows, what
        assert found.schema.equals(expected.schema.remove_metadata()), what
        assert _values(found) == _values(expected), what
        assert report.row_groups_chosen <= report.row_groups, what


def _check_aggregates(case: Case, files: LocalFiles, way: str, footers: str, what: str) -> None:
    plan = aggregates.plan(case.query, files.schema)
    try:
        expected = aggregates.finish(plan, aggregates.merged(plan, [aggregates.part(plan, case.matching)]))
    except RequestError:
        try:
            files.query(case.query, way, footers)
        except RequestError:
            return
        raise AssertionError(f"{what}: was answered, but is refused in memory") from None
    found, _ = files.query(case.query, way, footers)
    assert found.schema == expected.schema, what
    assert found.num_rows == expected.num_rows, what
    for asked, (mine, theirs) in zip(
        [None] * len(case.query.group_by) + list(case.query.aggregates),
        zip(found.columns, expected.columns, strict=True),
        strict=True,
    ):
        for one, other in zip(python_values(mine), python_values(theirs), strict=True):
            assert repr(one) == repr(other) or _near(asked, one, other, case.matching), f"{what}: {one} is not {other}"


def _near(asked: Aggregate | None, one: object, other: object, rows: pa.Table) -> bool:
    """Compare sums of floats up to rounding, because they depend on the order; accept any that overflow on the way."""
    if asked is None or asked.function not in ("sum", "avg") or not isinstance(one, float):
        return False
    sizes = [abs(each) for each in python_values(rows[asked.column]) if each is not None and math.isfinite(each)]
    total = math.fsum(sizes) if max(sizes, default=0) < 1e300 else math.inf
    return total == math.inf or abs(one - other) <= 1e-12 * total


def _values(table: pa.Table) -> list[str]:
    """Return columns as text, so that NaN equals NaN and -0.0 differs from 0.0."""
    return [repr(python_values(column)) for column in table.columns]


def run(seed: int, count: int, aggregated: bool, every_way: bool) -> int:
    """Check `count` cases; return how many of their rows matched in total."""
    matched = 0
    with tempfile.TemporaryDirectory() as name:
        last: list[Path] = []
        for number, case in enumerate(cases(seed, count, Path(name), aggregated)):
            if number % ASKED_OF_A_FILE == 0:
                last = case.paths
                files = LocalFiles.prepare(last)
            check(case, files, WAYS if every_way else [WAYS[number % 2], WAYS[2 + number // 2 % 4]])
            matched += case.matching.num_rows
    return matched


@click.command()
@click.option("--predicates", default=20_000, show_default=True)
@click.option("--asked-aggregates", default=5_000, show_default=True)
@click.option("--seed", default=1, show_default=True)
def main(predicates: int, asked_aggregates: int, seed: int) -> None:
    """Query by every way of reading; stop at the first disagreement, which is identified by its seed."""
    for what, count, aggregated in (("filters", predicates, False), ("aggregates", asked_aggregates, True)):
        matched = 0
        for start in range(0, count, 1_000):
            matched += run(seed + start, min(1_000, count - start), aggregated, every_way=True)
            click.echo(f"{min(start + 1_000, count):,} of {count:,} {what} agree in {len(WAYS)} ways, {matched:,} rows")


if __name__ == "__main__":
    main()
