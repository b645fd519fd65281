"""Collect the measurements along each parameter that has several values, while everything else is the same.

A parameter belongs to an operation (`take[rows=100]`), to a data set (`traits[nulls=0.5]`) or to a variant
(`f3[rows_per_unit=4096]`). The values are read from these names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench_runner.results.records import Conditions, Run
from bench_runner.results.statistics import CellSummary
from bench_runner.variants import Variant
from reports.analysis.columns import Column, Role
from reports.analysis.labels import short_labels
from reports.analysis.tables import Table
from reports.analysis.varied.charts import Axis, Owner

FEWEST_VALUES = 3
"""Smallest number of values of a data set's parameter, or of a variant's setting, that make a line. If the user asked
to vary something, FEWEST_OF_USE values of a data set's parameter are enough."""
FEWEST_OF_USE = 2
"""Smallest number of values of an operation's parameter that make a line. Two are enough, because all values use the
same stored copy."""
NAMED = {
    ("take", "rows"): "rows taken",
    ("take", "columns"): "columns taken",
    ("take", "streams"): "streams",
    ("scan", "selectivity"): "selectivity",
    ("scan", "columns"): "columns of the answer",
    ("project", "columns"): "columns read",
    ("append", "rows"): "rows appended",
    ("batches", "rows"): "rows of a batch",
}
"""Titles of parameters of operations. Other parameters are shown by their name."""
NAMED_OF_DATA = {
    "distinct": "distinct values",
    "run_length": "mean length of runs",
    "nulls": "share of missing values",
    "width": "bytes of a text",
    "bytes": "bytes of a value",
    "dimensions": "numbers of a vector",
    "columns": "columns of the table",
    "rows": "rows of the table",
}
"""Titles of parameters of data sets."""
ROWS_A_UNIT = ("row_group_rows", "rows_per_unit", "batch_rows", "chunk_rows", "stripe_rows")
"""Settings that determine the number of rows stored together. Each format has another name for this setting."""
IN_A_SECTION = (("query", "groups"),)
"""Pairs (operation, parameter) that are not drawn here, because the section on throughput shows them."""

Cells = Mapping[float, CellSummary]


@dataclass(frozen=True, eq=False)
class Series:
    """The measurements of all lines of a chart, before lines are selected or drawn."""

    table: Table
    axis: Axis
    column: Column
    title: str
    cells: Mapping[Variant, Cells]
    labels: Mapping[Variant, str]
    least: float
    dataset: str


def over_operations(table: Table) -> Iterator[Series]:
    """Yield a `Series` for each parameter of an operation that has at least FEWEST_OF_USE values."""
    groups: dict[tuple[str, str, str], dict[float, Column]] = {}
    for column in table.columns.times:
        name, parameters = column.operation.name, column.operation.parameters
        for key, value in _numbers(parameters):
            if (name, key) not in IN_A_SECTION:
                groups.setdefault((name, key, _rest(parameters, key)), {})[value] = column
    for (name, key, rest), columns in groups.items():
        if len(columns) < FEWEST_OF_USE:
            continue
        cells = _cells((value, table, column) for value, column in sorted(columns.items()))
        axis = Axis(Owner.OPERATION, NAMED.get((name, key), key.replace("_", " ")), rest, tuple(sorted(columns)))
        labels = {row.variant: row.label for row in table.rows}
        least = max(table.least(column) for column in columns.values())
        first = next(iter(columns.values()))
        yield Series(table, axis, first, f"{name} time", cells, labels, least, table.dataset)


def over_data(run: Run, tables: Sequence[Table], fewest: int) -> Iterator[Series]:
    """Yield a `Series` for each parameter of a data set that has at least `fewest` values, and for each figure."""
    groups: dict[tuple[tuple[str, str, Conditions], str, str, str], dict[float, Table]] = {}
    for table in tables:
        about = run.info.datasets.get(table.dataset)
        parameters = (about.parameters if about else {}) or table.dataset.parameters
        for key, value in _numbers(parameters):
            same = ((table.suite, table.machine, table.conditions), table.dataset.name, key, _rest(parameters, key))
            groups.setdefault(same, {})[value] = table
    for (_, name, key, _), found in groups.items():
        if len(found) < fewest:
            continue
        points = dict(sorted(found.items()))
        first = next(iter(points.values()))
        # A name leaves out parameters that have their default. The longest name therefore has most parameters for the
        # title.
        spelled = max((table.dataset for table in points.values()), key=len)
        rest = _rest(spelled.parameters, key)
        title = NAMED_OF_DATA.get(key, key.replace("_", " "))
        axis = Axis(Owner.DATA, title, f"{name}[{rest}]" if rest else name, tuple(points))
        for column in dict.fromkeys(column for table in points.values() for column in table.columns):
            if column.role is Role.MEMORY and column.operation not in first.columns.main:
                continue
            cells = _cells((value, table, column) for value, table in points.items())
            labels = {row.variant: row.label for table in reversed(points.values()) for row in table.rows}
            least = max(table.least(column) for table in points.values())
            yield Series(first, axis, column, column.title, cells, labels, least, "")


def over_settings(table: Table) -> Iterator[Series]:
    """Yield a `Series` for each setting of variants and each figure. A line consists of at least FEWEST_VALUES variants
    that differ only in this setting."""
    groups: dict[str, dict[Variant, dict[float, Variant]]] = {}
    for row in table.rows:
        for key, value in _numbers(row.variant.settings):
            title = "rows of a unit" if key in ROWS_A_UNIT else key.replace("_", " ")
            groups.setdefault(title, {}).setdefault(row.variant.without(key), {})[value] = row.variant
    rows = {row.variant: row for row in table.rows}
    for title, found in groups.items():
        lines = {base: variants for base, variants in found.items() if len(variants) >= FEWEST_VALUES}
        if not lines:
            continue
        values = tuple(sorted({value for variants in lines.values() for value in variants}))
        for column in table.columns:
            cells = {
                base: {
                    value: rows[variant].cells[column.operation]
                    for value, variant in variants.items()
                    if column.operation in rows[variant].cells
                }
                for base, variants in lines.items()
            }
            yield Series(
                table,
                Axis(Owner.VARIANT, title, "", values),
                column,
                column.title,
                cells,
                short_labels(lines),
                table.least(column),
                table.dataset,
            )


def _cells(points: Iterable[tuple[float, Table, Column]]) -> dict[Variant, dict[float, CellSummary]]:
    """Return the summaries of each variant by value of the parameter. `points` has each value with the table and the
    column where it was measured."""
    cells: dict[Variant, dict[float, CellSummary]] = {}
    for value, table, column in points:
        for row in table.rows:
            if column.operation in row.cells:
                cells.setdefault(row.variant, {})[value] = row.cells[column.operation]
    return cells


def _numbers(parameters: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    for key, text in parameters.items():
        try:
            value = float(text)
        except ValueError:
            continue
        if math.isfinite(value) and value >= 0:
            yield key, value


def _rest(parameters: Mapping[str, str], varied: str) -> str:
    return ",".join(f"{key}={value}" for key, value in parameters.items() if key != varied)
