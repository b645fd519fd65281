"""Compare a run with the thesis's tables 6.8 and 6.9 (LZ4 and ZSTD in four formats) and the findings of section 6.2.

Each figure is divided by the figure of the same format without a codec. Such ratios do not depend on the number of
rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from bench_runner.conditions import conditions_text
from bench_runner.results.statistics import Interval, median_interval
from reports.analysis.codecs import CodecEffect, codec_effects, has_codecs
from reports.analysis.columns import READ_TIME, SAVE_TIME, SIZE, Column, Role
from reports.analysis.near_storage.workloads import published_rows
from reports.analysis.tables import Row, Table
from reports.sources import findings
from reports.sources.findings import FORMATS
from reports.sources.judgement import Judgement, Ours, judge
from reports.sources.rows import Subject
from reports.sources.side_by_side import Entry, SideBySide

NAMES = ("H5 table", "Parquet", "Feather", "ORC")
"""The thesis's names of the formats that support both codecs."""
CODECS = {"lz4": ("lz4", "blosc:lz4"), "zstd": ("zstd", "blosc:zstd")}
DATASET = "webface"
RATIO = Column(SAVE_TIME.operation, "size_ratio", Role.SIZE, "compression ratio")


@cache
def thesis_figures() -> Mapping[Subject, float]:
    """Return the thesis's figures for the data set webface, with each codec and without a codec, in seconds, megabytes
    and ratios. The figures come from tables 6.3 to 6.5, 6.8 and 6.9."""
    base = {
        (row["metric"], row["format"]): float(row["value"])
        for row in published_rows("thesis_tabular.csv")
        if row["dataset"] == DATASET
    }
    found: dict[Subject, float] = {}
    for row in published_rows("thesis_compression.csv"):
        name, codec = row["format"], f"{row['format']} {row['codec']}"
        for column, metric in ((SAVE_TIME, "save_time"), (READ_TIME, "read_time")):
            found[Subject(column, name, DATASET)] = base[f"{metric}_s", name]
            found[Subject(column, codec, DATASET)] = base[f"{metric}_s", name] + float(row[f"{metric}_delta_s"])
        ratio = float(row["compression_ratio"])
        found[Subject(RATIO, codec, DATASET)] = ratio
        found[Subject(SIZE, name, DATASET)] = base["size_mb", name]
        found[Subject(SIZE, codec, DATASET)] = base["size_mb", name] * ratio
    return found | _sums(found)


def _sums(figures: Mapping[Subject, float]) -> dict[Subject, float]:
    found = {}
    for (one, codec), other in itertools.product(itertools.product(NAMES, CODECS), NAMES):
        subjects = Subject(SAVE_TIME, f"{one} {codec}", DATASET), Subject(SAVE_TIME, other, DATASET)
        if one != other and all(subject in figures for subject in subjects):
            found[Subject(SAVE_TIME, f"{one} {codec} + {other}", DATASET)] = sum(
                figures[subject] for subject in subjects
            )
    return found


def table_of(found: Sequence[Table]) -> Table | None:
    """Return the run's table that compares codecs on the data set webface with a warm cache, or None if there is none.
    If there are several, prefer a table with the default number of threads."""
    fitting = [
        table for table in found if has_codecs(table) and table.dataset == DATASET and table.conditions.cache == "warm"
    ]
    return min(fitting, key=lambda table: table.conditions.threads != "default", default=None)


def judgements(table: Table | None, generated: bool) -> tuple[Judgement, ...]:
    """Return a verdict on each finding (statement of the thesis) about codecs. If `table` is None, the run has no such
    measurements, so no finding can be tested.

    `generated` is true if the data set webface is generated instead of read from the thesis's file.
    """
    left_out = {} if table else {DATASET: "not in this run"}
    ours = Ours(_figures(table) if table else {}, 0)
    made = (DATASET,) if generated else ()
    return tuple(judge(finding, ours, thesis_figures(), left_out, made) for finding in findings.CODECS)


def grid(table: Table) -> SideBySide:
    """Return a table of our ratios next to the ratios of the thesis."""
    title = (
        f"{table.dataset}, {table.amount}: with a codec, as a multiple of the same format without, ours / thesis "
        f"({conditions_text(table.conditions)})"
    )
    head = ("format", *(f"{codec}: {what}" for codec in CODECS for what in ("save", "read", "size")))
    lines = []
    effects = {(name, codec): effect for name, codec, effect in _known_effects(table)}
    for name in NAMES:
        if any((name, codec) in effects for codec in CODECS):
            pairs = itertools.product(CODECS, (SAVE_TIME, READ_TIME, SIZE))
            entries = (_both(effects.get((name, codec)), name, codec, column) for codec, column in pairs)
            lines.append((Entry(name), *entries))
    return SideBySide(title, head, tuple(lines))


def _both(effect: CodecEffect | None, name: str, codec: str, column: Column) -> Entry:
    theirs = thesis_figures()
    multiple = theirs[Subject(column, f"{name} {codec}", DATASET)] / theirs[Subject(column, name, DATASET)]
    one = effect.row.interval(column) if effect else None
    other = effect.base.interval(column) if effect else None
    if not (effect and one and other and other.median):
        return Entry(f"- / {multiple:.2f}")
    return Entry(f"{one.median / other.median:.2f} / {multiple:.2f}", effect.row.cells[column.operation].cell)


def _known_effects(table: Table) -> Iterator[tuple[str, str, CodecEffect]]:
    """Yield (format's name in the thesis, codec, our effect) for each codec of the thesis."""
    ours = {FORMATS[name]: name for name in NAMES}
    for effect in codec_effects(table):
        name = ours.get(effect.row.variant.format_name)
        codec = next((codec for codec, spelled in CODECS.items() if effect.codec.split()[0] in spelled), None)
        if name is not None and codec is not None:
            yield name, codec, effect


def _figures(table: Table) -> dict[Subject, tuple[Interval, Mapping[int, int]]]:
    """Return every figure that the findings compare, with its values by round."""
    rounds: dict[Subject, dict[int, int]] = {}
    for name, codec, effect in _known_effects(table):
        for column in (SAVE_TIME, READ_TIME, SIZE):
            rounds[Subject(column, name, DATASET)] = _by_round(effect.base, column)
            rounds[Subject(column, f"{name} {codec}", DATASET)] = _by_round(effect.row, column)
        packed, plain = rounds[Subject(SIZE, f"{name} {codec}", DATASET)], rounds[Subject(SIZE, name, DATASET)]
        common = packed.keys() & plain.keys()
        ratios = {number: round(1_000_000 * packed[number] / plain[number]) for number in common}
        rounds[Subject(RATIO, f"{name} {codec}", DATASET)] = ratios
    for (one, codec), other in itertools.product(itertools.product(NAMES, CODECS), NAMES):
        first, second = (rounds.get(Subject(SAVE_TIME, text, DATASET), {}) for text in (f"{one} {codec}", other))
        if one != other and first and second:
            both = {number: first[number] + second[number] for number in first.keys() & second.keys()}
            rounds[Subject(SAVE_TIME, f"{one} {codec} + {other}", DATASET)] = both
    return {subject: (median_interval(list(values.values())), values) for subject, values in rounds.items() if values}


def _by_round(row: Row, column: Column) -> dict[int, int]:
    cell = row.cells.get(column.operation)
    return dict(cell.by_round.get(column.figure, {})) if cell and not cell.wrong else {}
