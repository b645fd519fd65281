"""Separate two causes of a time: the format, and the library call that reads or writes the format.

The suite `engines` measures several calls for each format. For each operation, the slowest call of a format is compared
with the fastest call of the same format in the same rounds. The fastest call of each format is compared with the
fastest call of all formats, as in every ranking. There is no average over formats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench_runner.results.statistics import FEWEST_ROUNDS, Ratio, ratio_interval
from bench_runner.variants import Variant
from reports.analysis.columns import READ_TIME, SAVE_TIME, Column
from reports.analysis.tables import Row, Table
from reports.analysis.units import number_text

SUITE = "engines"
HEADERS = ("format", "fastest call", "slowest call", "call x", "format x")
_FEW = f"under {FEWEST_ROUNDS} rounds in common: may be chance"
EXPLANATION = (
    "call x: time of the format's slowest call / its fastest call; format x: time of its fastest call / the fastest "
    "call of all formats. Their product compares the slowest call of the format with the fastest call of all."
)


@dataclass(frozen=True)
class Calls:
    """The calls of one format for one operation in one table, compared by median time."""

    format: str
    fastest: Row
    slowest: Row
    by_call: Ratio | None
    """Time of the slowest call divided by the time of the fastest; None if only one call was measured."""
    by_format: Ratio
    """Time of this format's fastest call divided by the time of the fastest call of all formats."""


def is_about_calls(table: Table) -> bool:
    """Return whether the table compares the calls of each format."""
    return table.suite == SUITE


def has_calls(table: Table) -> bool:
    """Return whether the table compares calls and at least one call has a figure that can be ranked."""
    return is_about_calls(table) and any(table.counted(column).having for column in (SAVE_TIME, READ_TIME))


def calls_of(table: Table, column: Column) -> list[Calls]:
    """Return each format's calls, compared by the time of one operation. The fastest format comes first.

    Raw I/O and unranked variants are excluded. If most calls have no figure, none is ranked.
    """
    rows = {row.variant: row for row in table.rows}
    variants: dict[str, list[Variant]] = {}
    for variant in table.ranks(column):
        variants.setdefault(variant.format_name, []).append(variant)
    found = []
    for name, (first, *others) in variants.items():
        fastest, slowest = rows[first], rows[others[-1] if others else first]
        by_call = ratio_interval(_times(slowest, column), _times(fastest, column)) if others else None
        found.append(Calls(name, fastest, slowest, by_call, table.ranks(column)[first]))
    return found


def _times(row: Row, column: Column) -> Mapping[int, int]:
    return row.cells[column.operation].by_round[column.figure]


def answers(table: Table) -> Iterator[str]:
    """Yield a sentence for each operation that was measured with more than one call or format."""
    for column in (SAVE_TIME, READ_TIME):
        counted = table.counted(column)
        if counted.too_few:
            some = f"only {counted.having} of {counted.measured} calls have counted rounds"
            yield f"{column.operation}: {some}, so no fastest call is named."
        found = calls_of(table, column)
        parts = [part for part in (_of_calls(found), _of_formats(found)) if part]
        if parts:
            yield f"{column.operation}: {'; '.join(parts)}."


def _of_calls(found: Sequence[Calls]) -> str:
    ratios = {calls.format: calls.by_call for calls in found if calls.by_call is not None}
    # The order of two medians can differ from the order by ratios of the same rounds. Then neither call counts as
    # slower.
    tied = [name for name, ratio in ratios.items() if ratio.tied or ratio.ratio <= 1]
    apart = sorted((ratio.ratio, name) for name, ratio in ratios.items() if name not in tied)
    few = {name: f", {_FEW}" if ratio.tied is None else "" for name, ratio in ratios.items()}
    alike = " and ".join(f"{name} ({_FEW})" if few[name] else name for name in tied)
    same = f"no clear difference between the calls of {alike}" if tied else ""
    if not apart:
        return same
    (least, first), (most, last) = apart[0], apart[-1]
    size = f"{number_text(least)} times ({first}{few[first]})"
    if len(apart) > 1:
        size = f"from {size} to {number_text(most)} times ({last}{few[last]})"
    told = f"the slowest call of a format takes {size} as long as its fastest"
    return f"{told}, {same}" if same else told


def _of_formats(found: Sequence[Calls]) -> str:
    if len(found) < 2:
        return ""
    best, worst = found[0], found[-1]
    if worst.by_format.tied:
        return "with the fastest call of each, there is no clear difference between the formats"
    return (
        f"with the fastest call of each, {worst.format} takes {number_text(worst.by_format.ratio)} times as long as "
        f"{best.format}{f' ({_FEW})' if worst.by_format.tied is None else ''}"
    )


def texts(calls: Calls) -> tuple[str, ...]:
    """Return the row of one format as printed, with a value for each of HEADERS."""
    others = ("", "") if calls.by_call is None else (_call(calls.slowest), ratio_text(calls.by_call))
    return calls.format, _call(calls.fastest), *others, ratio_text(calls.by_format)


def _call(row: Row) -> str:
    """Return the name of a call without its format, such as 'pandas,parser=pyarrow' for
    'csv[engine=pandas,parser=pyarrow]'."""
    told = [f"{key}={value}" for key, value in row.variant.settings.items() if (key, value) != ("codec", "none")]
    return ",".join(told).removeprefix("engine=")


def ratio_text(ratio: Ratio) -> str:
    """Return a ratio with its 95 % interval, if there is one: '12.4 (11.9-13.0)'."""
    text = number_text(ratio.ratio)
    if ratio.low is None or ratio.high is None or ratio.low == ratio.high:
        return text
    return f"{text} ({number_text(ratio.low)}-{number_text(ratio.high)})"
