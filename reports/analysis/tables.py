"""What every report shows: a run's samples as tables, one for each data set and set of conditions, with the
words and numbers for people. It knows nothing of where it is shown (terminal, CSV, PDF).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import cached_property

from bench_runner.results.records import Cell, Conditions, Failure, Run
from bench_runner.results.statistics import (
    FEWEST_ROUNDS,
    CellSummary,
    Effect,
    Interval,
    Ratio,
    format_name,
    is_apart,
    is_raw_io,
    position_effect,
    ranking,
    raw_io_cell,
    raw_io_drift,
    smallest_shown,
    summarise,
)


@dataclass(frozen=True)
class Column:
    """One figure that people compare: of which operation, under which title."""

    operation: str
    figure: str
    title: str

    @property
    def is_memory(self) -> bool:
        """Whether the figure comes from the memory probe."""
        return self.figure == "peak_private_bytes"


COLUMNS = (
    Column("save", "wall_ns", "save time"),
    Column("read", "wall_ns", "read time"),
    Column("save", "size_bytes", "size"),
    Column("save", "peak_private_bytes", "save peak memory"),
    Column("read", "peak_private_bytes", "read peak memory"),
)
"""The five metrics of the thesis (its tables 6.3 to 6.7)."""


@dataclass(frozen=True, eq=False)
class Row:
    """One variant in a table, with whatever of its save and read was tried."""

    variant: str
    label: str
    cells: Mapping[str, CellSummary]
    """By operation."""

    def interval(self, column: Column) -> Interval | None:
        """The figure of a column, None where nothing was counted."""
        summary = self.cells.get(column.operation)
        return summary.figures.get(column.figure) if summary else None

    @property
    def rounds(self) -> tuple[int, ...]:
        """Counted rounds of each operation."""
        return tuple(summary.rounds for summary in self.cells.values())

    @property
    def measured(self) -> bool:
        """Whether anything was counted."""
        return any(summary.figures for summary in self.cells.values())

    @property
    def fidelity(self) -> str | None:
        """'exact' or 'declared loss', as the reads found it; None when none passed."""
        verdicts = [summary.fidelity for summary in self.cells.values() if summary.fidelity]
        return max(verdicts, key=lambda verdict: verdict != "exact", default=None)

    @property
    def losses(self) -> tuple[str, ...]:
        """What was declared to be lost, and was."""
        return tuple(dict.fromkeys(loss for summary in self.cells.values() for loss in summary.losses))

    @property
    def failures(self) -> dict[Failure, tuple[str, ...]]:
        """Each reason with the operations that it stopped, without reasons that only repeat another one's."""
        found: dict[Failure, tuple[str, ...]] = {}
        for operation, summary in self.cells.items():
            for failure in summary.failures:
                found[failure] = (*found.get(failure, ()), operation)
        return {
            failure: operations
            for failure, operations in found.items()
            if not any(other is not failure and _repeats(failure, other) for other in found)
        }


def _repeats(failure: Failure, other: Failure) -> bool:
    """Whether `failure` is only the consequence of `other`: its reason ends with the other's."""
    return len(failure.reason) > len(other.reason) and failure.reason.endswith(other.reason)


@dataclass(frozen=True)
class Table:
    """All variants on one data set under one set of conditions on one machine."""

    suite: str
    dataset: str
    data_rows: int
    conditions: Conditions
    machine: str
    rows: tuple[Row, ...]
    """By read time (save time where nothing was read), then what stands apart, raw I/O, and what has no
    figure."""
    least_bytes: int
    """Memory under this is below what the run's probe can tell (method rule 13)."""

    @cached_property
    def ranks(self) -> Mapping[Column, Mapping[str, Ratio]]:
        """For each column, each ranked variant's ratio to the best, best first."""
        return {column: self._ranks(column) for column in COLUMNS}

    def _ranks(self, column: Column) -> dict[str, Ratio]:
        summaries = [row.cells[column.operation] for row in self.rows if column.operation in row.cells]
        least = self.least_bytes if column.is_memory else 0
        return {cell.variant: ratio for cell, ratio in ranking(summaries, column.figure, least=least).items()}

    def mark(self, column: Column, variant: str) -> str:
        """'*' for the best of a column, '=' for what is tied with it, '' for others and without a verdict."""
        ranks = self.ranks[column]
        ratio = ranks.get(variant)
        if ratio is None or not ratio.tied:
            return ""
        return "*" if variant == next(iter(ranks)) else "="

    @property
    def amount(self) -> str:
        """How much data it is about: '1,000,000 rows', '50,000 images'."""
        return f"{self.data_rows:,} {'images' if self.conditions.target == 'images' else 'rows'}"

    @property
    def few_rounds(self) -> bool:
        """Whether no variant has enough rounds for a verdict."""
        return all(number < FEWEST_ROUNDS for row in self.rows for number in row.rounds)


def amount_text(run: Run, table: Table) -> str:
    """How much data a table is about, and of how much it is a sample: 'a sample of 1,000,000 of 12,345,678 rows'."""
    facts = (run.info.get("datasets") or {}).get(table.dataset)
    whole = facts.get("input_rows") if isinstance(facts, dict) else None
    if not isinstance(whole, int) or whole <= table.data_rows:
        return table.amount
    return f"a sample of {table.data_rows:,} of {whole:,} rows"


def tables(run: Run, summaries: Mapping[Cell, CellSummary] | None = None) -> list[Table]:
    """The tables of a run, in the order in which it lists its data sets, and track by track."""
    summaries = summarise(run.samples) if summaries is None else summaries
    yardsticks: dict[Cell, CellSummary] = {}
    groups: dict[Cell, list[CellSummary]] = {}
    for cell, summary in summaries.items():
        if is_raw_io(cell.variant):
            yardsticks[raw_io_cell(cell)] = summary
        else:
            groups.setdefault(replace(cell, variant="", operation=""), []).append(summary)
    least = smallest_shown(run.info)
    found = [_table(group, yardsticks, least) for group in groups.values()]
    places = {name: place for place, name in enumerate(run.info.get("datasets") or ())}
    tracks = {"plain": 0, "default": 1, "equal": 2, "codecs": 3}
    found.sort(
        key=lambda table: (
            table.suite,
            table.machine,
            places.get(table.dataset, len(places)),
            tracks.get(table.conditions.track, len(tracks)),
        )
    )
    return found


def _table(group: Sequence[CellSummary], yardsticks: Mapping[Cell, CellSummary], least_bytes: int) -> Table:
    by_variant: dict[str, dict[str, CellSummary]] = {}
    for summary in group:
        by_variant.setdefault(summary.cell.variant, {})[summary.cell.operation] = summary
    for cell in dict.fromkeys(raw_io_cell(summary.cell) for summary in group):
        if cell in yardsticks:
            yardstick = yardsticks[cell]
            by_variant.setdefault(yardstick.cell.variant, {})[cell.operation] = yardstick
    labels = short_labels(by_variant)
    rows = [Row(variant, labels[variant], cells) for variant, cells in by_variant.items()]
    first = group[0].cell
    return Table(
        first.suite,
        first.dataset,
        first.rows,
        first.conditions,
        first.machine,
        tuple(sorted(rows, key=_order)),
        least_bytes,
    )


def _order(row: Row) -> tuple[bool, bool, bool, float, str]:
    shown = row.interval(COLUMNS[1]) or row.interval(COLUMNS[0])
    median = shown.median if shown else float("inf")
    return not row.measured, is_raw_io(row.variant), is_apart(row.variant), median, row.variant


def short_labels(variants: Iterable[str]) -> dict[str, str]:
    """The shortest names that tell these variants apart: the format, with a codec where there is one, and
    otherwise only those settings in which variants of one format differ; the engine by its name alone."""
    variants = tuple(variants)
    groups: dict[str, list[str]] = {}
    for variant in variants:
        groups.setdefault(format_name(variant), []).append(variant)
    labels = {}
    for group in groups.values():
        shared = set.intersection(*(set(_settings(variant)) for variant in group))
        for variant in group:
            told = [
                text.removeprefix("engine=")
                for text in _settings(variant)
                if text not in shared or (text.startswith("codec=") and text != "codec=none")
            ]
            name = format_name(variant)
            labels[variant] = f"{name}[{','.join(told)}]" if told else name
    return labels


def variant_parts(variant: str) -> tuple[str, dict[str, str]]:
    """The format of a spelled variant, and its settings: ('orc', {'engine': 'pyarrow', 'codec': 'lz4'})."""
    pairs = (text.partition("=") for text in _settings(variant))
    return format_name(variant), {key: value for key, _, value in pairs}


def _settings(variant: str) -> list[str]:
    inside = variant.partition("[")[2].removesuffix("]")
    return inside.split(",") if inside else []


def value_text(table: Table, row: Row, column: Column, unit: Unit) -> str | None:
    """A figure for people, without its unit: '< N' under what the probe can tell, None where there is
    none."""
    interval = row.interval(column)
    if interval is None:
        return None
    if column.is_memory and interval.median < table.least_bytes:
        return f"<{unit.text(table.least_bytes)}"
    return unit.text(interval.median)


def conditions_text(conditions: Conditions) -> str:
    """The conditions in words: 'track plain, cache warm, target pandas', and others where they are not the
    default."""
    parts = [f"track {conditions.track}", f"cache {conditions.cache}", f"target {conditions.target}"]
    usual = Conditions()
    if conditions.threads != usual.threads:
        parts.append("1 thread")
    if conditions.strings != usual.strings:
        parts.append(f"strings as {conditions.strings}")
    if conditions.work_dir != usual.work_dir:
        parts.append(f"in {conditions.work_dir}")
    return ", ".join(parts)


def distinguishing_names(found: Sequence[Table]) -> dict[int, str]:
    """For each table, by its place, a name that no other has: data set and track, and what else differs in
    the run."""
    names = {place: [table.dataset, table.conditions.track] for place, table in enumerate(found)}
    usual = ("dataset", "track")
    facts = [
        {
            "suite": table.suite,
            "machine": table.machine,
            **dict(zip((item.name for item in fields(Conditions)), astuple(table.conditions), strict=True)),
        }
        for table in found
    ]
    sizes = {(table.dataset, table.data_rows) for table in found}
    for place, table in enumerate(found):
        if len({rows for name, rows in sizes if name == table.dataset}) > 1:
            names[place].append(f"{table.data_rows}rows")
    for key in facts[0] if facts else ():
        if key in usual or len({fact[key] for fact in facts}) == 1:
            continue
        for place, fact in enumerate(facts):
            names[place].append(fact[key])
    return {place: "-".join(parts) for place, parts in names.items()}


@dataclass(frozen=True)
class Unit:
    """A unit for people: `scale` of the stored unit make one of it."""

    name: str
    scale: float

    def text(self, value: float) -> str:
        """`value`, in the stored unit, with three significant digits and at most three decimals."""
        return number_text(value / self.scale)


SECONDS, MILLISECONDS = Unit("s", 1e9), Unit("ms", 1e6)
MEGABYTES, KILOBYTES = Unit("MB", 1e6), Unit("kB", 1e3)
"""Decimal, as the thesis and file managers count: 1 MB = 1,000,000 bytes."""


def number_text(number: float) -> str:
    """Three significant digits, at most three decimals, no exponent: 0.041, 2.65, 81.8, 5,212."""
    if number >= 100:
        return f"{number:,.0f}"
    if number >= 10:
        return f"{number:.1f}"
    return f"{number:.2f}" if number >= 1 else f"{number:.3f}"


def unit_for(table: Table, figure: str) -> Unit:
    """The unit in which a table's smallest value of `figure` is still readable; one for the whole table."""
    small, large, limit = (MILLISECONDS, SECONDS, 1e8) if figure.endswith("_ns") else (KILOBYTES, MEGABYTES, 1e6)
    medians = [
        summary.figures[figure].median
        for row in table.rows
        for summary in row.cells.values()
        if figure in summary.figures and not is_raw_io(row.variant) and not is_apart(row.variant)
    ]
    return small if medians and min(medians) < limit else large


def spread_text(interval: Interval) -> str:
    """How far to believe a median: '±3%' is half of the 95 % interval; under five rounds '-2+4%' are the
    smallest and the largest value; '' for a single round."""
    if interval.median <= 0 or interval.rounds == 1:
        return ""
    low, high = ((value - interval.median) / interval.median * 100 for value in interval.spread)
    if interval.low is not None:
        return f"±{(high - low) / 2:.0f}%"
    return f"-{abs(low):.0f}+{high:.0f}%"


@dataclass(frozen=True)
class Remark:
    """Something that the reader of a run must know, and what to do about it ('' when nothing can be done)."""

    text: str
    remedy: str = ""


def remarks(run: Run, summaries: Mapping[Cell, CellSummary]) -> list[Remark]:
    """What a run says against itself: stored warnings, too few rounds, an unfinished run, drift, position."""
    info = run.info
    found = []
    if info.get("quick"):
        found.append(Remark("a quick run: one round, no intervals, no verdicts", "repeat it without --quick"))
    elif summaries and max(summary.rounds for summary in summaries.values()) < FEWEST_ROUNDS:
        found.append(
            Remark(
                f"under {FEWEST_ROUNDS} rounds: spreads are minimum and maximum, and there are no verdicts",
                f"--rounds {FEWEST_ROUNDS} or more",
            )
        )
    if info.get("partial"):
        found.append(Remark("the run did not finish", "run the same command with --resume"))
    found.extend(_stored_warnings(info.get("warnings")))
    found.extend(_effect_remark("raw-io", effect) for effect in raw_io_drift(summaries.values()) if effect.warns)
    found.extend(_effect_remark("position", effect) for effect in position_effect(run.samples) if effect.warns)
    unsettled = sum(sample.unsettled for sample in run.samples)
    if unsettled:
        found.append(
            Remark(
                f"{unsettled} of {len(run.samples)} samples are not counted: the machine was not at rest,"
                " or a warm read not warm",
                "stop other work on the machine",
            )
        )
    found.extend(_sample_warnings(summaries.values()))
    return found


def _stored_warnings(warnings: object) -> list[Remark]:
    if not isinstance(warnings, list):
        return []
    return [
        Remark(str(warning.get("text", "")), str(warning.get("remedy", "")))
        for warning in warnings
        if isinstance(warning, dict)
    ]


def _effect_remark(cause: str, effect: Effect) -> Remark:
    direction = "slower" if effect.change > 0 else "faster"
    amount = f"{abs(effect.change):.0%} {direction}"
    if cause == "raw-io":
        text = f"{effect.operation} of raw I/O became {amount} over the rounds on {effect.machine}"
        return Remark(text, "compare multiples of raw I/O, or repeat on a machine at rest")
    text = f"{effect.operation} late in a round is {amount} than early in it on {effect.machine}"
    return Remark(text, "see 'format-bench doctor'")


def _sample_warnings(summaries: Iterable[CellSummary]) -> list[Remark]:
    cells: dict[str, list[str]] = {}
    for summary in summaries:
        for warning in summary.warnings:
            if not warning.startswith("not counted"):
                cells.setdefault(warning, []).append(format_name(summary.cell.variant))
    return [Remark(f"{', '.join(dict.fromkeys(names))}: {warning}") for warning, names in cells.items()]
