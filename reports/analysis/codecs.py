"""Compare each codec with the same format without a codec. Times of the same round are compared.

This module also finds two things: the variants on the Pareto frontier, which no other variant beats in both size and
time, and the storage bandwidth above which the smaller file no longer reads faster. All functions of this module are
pure functions of a table of stored samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bench_runner.results.records import Conditions
from bench_runner.results.statistics import Interval, median_interval
from bench_runner.variants import Variant
from reports.analysis.columns import READ_TIME, SAVE_TIME, SIZE, Column
from reports.analysis.tables import Row, Table
from reports.analysis.units import Unit, number_text

UNCHANGED_RATIO = 0.995
"""A codec saves nothing if its file has at least this share of the uncompressed size."""
_WARM = Conditions().cache
_NO_CODEC = (None, "none", "auto")


@dataclass(frozen=True)
class CodecEffect:
    """One codec of one format on one data set."""

    row: Row
    base: Row
    """The same format and settings without a codec."""
    codec: str
    """The codec, followed by its level if the variant sets one: 'zstd 1'."""
    save_delta_ns: Interval | None
    read_delta_ns: Interval | None
    ratio: float | None
    """Size with the codec divided by the size without it. Below 1, the codec saves space."""

    @property
    def saves_nothing(self) -> bool:
        """Whether the file has at least UNCHANGED_RATIO of the size without the codec. False if a size is missing."""
        return self.ratio is not None and self.ratio >= UNCHANGED_RATIO

    @property
    def break_even(self) -> BreakEven | None:
        """The bandwidth above which the smaller file no longer reads faster. None if the codec saves nothing, if a size
        or read time is missing, if the reads are not ranked, or if they were cold: their times already include the time
        of the device."""
        plain, packed = self.base.interval(SIZE), self.row.interval(SIZE)
        delta = self.read_delta_ns
        if plain is None or packed is None or delta is None or self.saves_nothing:
            return None
        reads = [row.cells[READ_TIME.operation] for row in (self.row, self.base)]
        if not all(read.is_ranked and read.cell.conditions.cache == _WARM for read in reads):
            return None
        saved_bytes = plain.median - packed.median
        if delta.spread[1] <= 0:
            return BreakEven(None, None)
        least = saved_bytes / (delta.spread[1] / 1e9)
        return BreakEven(least, saved_bytes / (delta.median / 1e9) if delta.spread[0] > 0 else None)


@dataclass(frozen=True)
class BreakEven:
    """The bandwidth below which the smaller file reads faster, in bytes per second.

    The time of a read is its measured time from the page cache plus size / bandwidth, so the limit is saved bytes /
    added time. `usual` is the limit for the median of the added time, and `least` for the upper end of its interval.
    Both are None if the smaller file is faster at any bandwidth. If the added time may be zero, only `usual` is None.
    """

    least: float | None
    usual: float | None


def codec_effects(table: Table) -> list[CodecEffect]:
    """Return the effect of each codec compared with the same format without a codec, in the order of the table."""
    bases = {_base(row.variant): row for row in table.rows if row.measured and _codec(row.variant) is None}
    found = []
    for row in table.rows:
        codec = _codec(row.variant)
        base = bases.get(_base(row.variant))
        if codec is None or base is None or not row.measured:
            continue
        sizes = row.interval(SIZE), base.interval(SIZE)
        ratio = sizes[0].median / sizes[1].median if sizes[0] and sizes[1] and sizes[1].median else None
        found.append(CodecEffect(row, base, codec, _delta(row, base, SAVE_TIME), _delta(row, base, READ_TIME), ratio))
    return found


def has_codecs(table: Table) -> bool:
    """Return whether the table is about codecs."""
    return table.conditions.track == "codecs"


def by_format(table: Table) -> list[Row]:
    """Return the rows grouped by format. A group begins with the row without a codec. The rows with a codec follow, the
    fastest read first. The groups are sorted by the read time of their first row."""
    places = {row.variant: place for place, row in enumerate(table.rows)}
    bases: dict[str, int] = {}
    for row in table.rows:
        if _codec(row.variant) is None:
            bases.setdefault(_base(row.variant), places[row.variant])

    def order(row: Row) -> tuple[int, str, bool, int]:
        base = _base(row.variant)
        return bases.get(base, len(places)), base, _codec(row.variant) is not None, places[row.variant]

    return sorted(table.rows, key=order)


def frontier(table: Table, time: Column) -> list[Row]:
    """Return the rows on the Pareto frontier, the smallest size first. For a row on the frontier, every smaller row
    takes longer (median `time`), and every faster row is larger.

    Figures that are not ranked are excluded (see `CellSummary.is_ranked`).
    """
    points = {row: found for row in table.rows if (found := point(row, time)) is not None}
    kept = [
        row
        for row, (size, duration) in points.items()
        if not any(
            other_size <= size and other_duration <= duration and (other_size, other_duration) != (size, duration)
            for other_size, other_duration in points.values()
        )
    ]
    return sorted(kept, key=lambda row: points[row])


def break_even_text(found: BreakEven | None) -> str:
    """Return the break-even bandwidth in MB/s: '850', 'any' if the smaller file always reads faster, '>3,200' if the
    added time may be zero, '-' if there is no break-even."""
    if found is None:
        return "-"
    if found.least is None:
        return "any"
    return number_text(found.usual / 1e6) if found.usual is not None else f">{number_text(found.least / 1e6)}"


def signed_text(value: float, unit: Unit) -> str:
    """Return a difference with its sign: '+12.3', '-0.041'."""
    return f"{'-' if value < 0 else '+'}{unit.text(abs(value))}"


def added_text(delta: Interval | None, unit: Unit) -> tuple[str, str]:
    """Return a difference with its sign, and its interval as a second string."""
    if delta is None:
        return "-", ""
    low, high = delta.spread
    around = "" if delta.rounds == 1 else f"{signed_text(low, unit)} to {signed_text(high, unit)}"
    return signed_text(delta.median, unit), around


def codec_notes(table: Table) -> Iterator[str]:
    """Yield a note for each codec that saves nothing, and a note if the table has no break-even bandwidths."""
    effects = codec_effects(table)
    for effect in effects:
        if effect.saves_nothing:
            yield f"{effect.row.label}: the codec does not reduce the size (size ratio {effect.ratio:.3f})"
    if effects and table.conditions.cache != _WARM:
        yield "the bandwidth below which a smaller file reads faster is computed only for warm reads"


def point(row: Row, time: Column) -> tuple[float, float] | None:
    """Return size and median time of a row for the chart of size against time. Return None if the chart does not show
    the row."""
    size, duration = row.interval(SIZE), row.interval(time)
    if size is None or duration is None:
        return None
    ranked = all(row.cells[column.operation].is_ranked for column in (SIZE, time))
    return (size.median, duration.median) if ranked else None


def _delta(row: Row, base: Row, column: Column) -> Interval | None:
    """Return the difference from `base` as an interval. Values of the same round are subtracted, so that disturbances
    of a whole round cancel out."""
    values, others = _by_round(row, column), _by_round(base, column)
    differences = [float(values[number] - others[number]) for number in sorted(values.keys() & others.keys())]
    return median_interval(differences) if differences else None


def _by_round(row: Row, column: Column) -> Mapping[int, int]:
    cell = row.cells.get(column.operation)
    return cell.by_round.get(column.figure, {}) if cell else {}


def _base(variant: Variant) -> str:
    others = sorted((key, value) for key, value in variant.settings.items() if key not in ("codec", "level"))
    return f"{variant.format_name}{others}"


def _codec(variant: Variant) -> str | None:
    settings = variant.settings
    codec = settings.get("codec")
    if codec in _NO_CODEC:
        return None
    return f"{codec} {settings['level']}" if "level" in settings else codec
