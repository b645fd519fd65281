"""A run beside the thesis's tables 6.10 and 6.11: six image storages, and the findings of table 6.2 and chapter 6.3.

A pure function of tables and of the thesis's figures.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from bench_runner.conditions import conditions_text
from bench_runner.results.statistics import Interval
from reports.analysis.columns import READ_TIME, SAVE_TIME, SIZE, Column
from reports.analysis.tables import Row, Table
from reports.analysis.units import MEGABYTES, SECONDS
from reports.sources.findings import Finding, Pair, Subject
from reports.sources.judging import Judgement, Ours, judge
from reports.sources.side_by_side import Entry, SideBySide

STORAGES = {
    "PNG": "png",
    "Base64": "base64",
    "HDF5": "image-hdf5",
    "Parquet": "image-parquet",
    "SQLite": "sqlite",
    "LMDB": "lmdb",
}
"""The thesis's names, and ours."""
DATASETS = {"CIFAR-10": ("cifar10", "cifar-like"), "ImageNet-100": ("imagenet100",)}
"""The thesis's data sets, and which of ours stand for them: the generated images have CIFAR-10's shapes and sizes;
those like ImageNet-100 are too few."""
IMAGES = {"CIFAR-10": (50_000,), "ImageNet-100": (126_689, 131_689)}
"""How many images a run must have to be compared: of ImageNet-100 the training images, with or without validation."""
_METRICS = {"save_time_s": SAVE_TIME, "read_time_s": READ_TIME, "size_mb": SIZE}
_RAW = ("HDF5", "Parquet", "SQLite", "LMDB")


def _lowest(column: Column, name: str, among: Sequence[str] = tuple(STORAGES)) -> tuple[Pair, ...]:
    return tuple(Pair(Subject(column, name), Subject(column, other)) for other in among if other != name)


FINDINGS = (
    Finding(
        "table 6.2", "SQLite has the shortest save time", _lowest(SAVE_TIME, "SQLite"), ("SQLite",), tuple(DATASETS)
    ),
    Finding("table 6.2", "LMDB has the shortest read time", _lowest(READ_TIME, "LMDB"), ("LMDB",), tuple(DATASETS)),
    Finding(
        "table 6.2",
        "PNG is the smallest",
        _lowest(SIZE, "PNG"),
        ("PNG",),
        tuple(DATASETS),
        rests_on_data=True,
    ),
    Finding(
        "6.3 save time",
        "on CIFAR-10 Parquet saves the fastest",
        _lowest(SAVE_TIME, "Parquet"),
        ("Parquet",),
        ("CIFAR-10",),
    ),
    Finding(
        "6.3 save time",
        "PNG saves the slowest, Base64 next",
        (
            *(Pair(Subject(SAVE_TIME, name), Subject(SAVE_TIME, "PNG")) for name in STORAGES if name != "PNG"),
            *(Pair(Subject(SAVE_TIME, name), Subject(SAVE_TIME, "Base64")) for name in _RAW),
        ),
        ("PNG", "Base64"),
        tuple(DATASETS),
    ),
    Finding(
        "6.3 save time",
        "PNG takes about 34 times as long to save as HDF5, Parquet, SQLite and LMDB (17 times or more)",
        tuple(Pair(Subject(SAVE_TIME, name), Subject(SAVE_TIME, "PNG"), 17.0) for name in _RAW),
        ("PNG",),
        tuple(DATASETS),
    ),
    Finding(
        "6.3 read time",
        "on CIFAR-10 SQLite reads the fastest",
        _lowest(READ_TIME, "SQLite"),
        ("SQLite",),
        ("CIFAR-10",),
    ),
    Finding(
        "6.3 read time",
        "PNG, Base64 and HDF5 read the slowest",
        tuple(
            Pair(Subject(READ_TIME, quick), Subject(READ_TIME, slow))
            for quick in ("Parquet", "SQLite", "LMDB")
            for slow in ("PNG", "Base64", "HDF5")
        ),
        ("PNG", "Base64", "HDF5"),
        tuple(DATASETS),
    ),
    Finding(
        "6.3 read time",
        "PNG takes about 5 times as long to read as HDF5, Parquet, SQLite and LMDB (2.5 times or more)",
        tuple(Pair(Subject(READ_TIME, name), Subject(READ_TIME, "PNG"), 2.5) for name in _RAW),
        ("PNG",),
        tuple(DATASETS),
    ),
    Finding(
        "6.3 total size",
        "PNG is about 40 % smaller than HDF5, Parquet, SQLite and LMDB (20 % or more)",
        tuple(Pair(Subject(SIZE, "PNG"), Subject(SIZE, name), 1 / 0.8) for name in _RAW),
        ("PNG",),
        tuple(DATASETS),
        rests_on_data=True,
    ),
    Finding(
        "6.3 total size",
        "SQLite and LMDB take a third more than Parquet on CIFAR-10, through pages of 4 KiB (25 to 42 %)",
        tuple(
            pair
            for name in ("SQLite", "LMDB")
            for pair in (
                Pair(Subject(SIZE, "Parquet"), Subject(SIZE, name), 1.25),
                Pair(Subject(SIZE, name), Subject(SIZE, "Parquet"), 1 / 1.42),
            )
        ),
        ("SQLite", "LMDB", "Parquet"),
        ("CIFAR-10",),
    ),
)
"""M. Tarageľ, Brno University of Technology, 2024: table 6.2 and section 6.3."""


@cache
def thesis_figures() -> Mapping[Subject, float]:
    """The thesis's tables 6.10 and 6.11, in seconds and megabytes."""
    text = resources.files("reports.sources").joinpath("published/thesis_image.csv").read_text(encoding="utf-8")
    return {
        Subject(column, row["storage"], row["dataset"]): float(row[metric])
        for row in csv.DictReader(text.splitlines())
        for metric, column in _METRICS.items()
    }


def tables_of(found: Sequence[Table]) -> tuple[dict[str, Table], dict[str, str]]:
    """The run's table for each data set of the thesis, and why there is none for the others."""
    chosen: dict[str, Table] = {}
    left_out: dict[str, str] = {}
    for theirs, ours in DATASETS.items():
        fitting = [table for table in found if table.dataset in ours and table.conditions.cache == "warm"]
        fitting.sort(key=lambda table: (table.conditions.threads != "default", ours.index(table.dataset)))
        alike = [table for table in fitting if table.data_rows in IMAGES[theirs]]
        if alike:
            chosen[theirs] = alike[0]
        elif fitting:
            left_out[theirs] = f"{fitting[0].data_rows:,} images here, {IMAGES[theirs][0]:,} in the thesis"
        else:
            left_out[theirs] = "not in this run"
    return chosen, left_out


def judgements(chosen: Mapping[str, Table], left_out: Mapping[str, str]) -> tuple[Judgement, ...]:
    """What the run says of each finding."""
    figures: dict[Subject, tuple[Interval, Mapping[int, int]]] = {}
    for dataset, table in chosen.items():
        for theirs in STORAGES:
            row = _row(table, theirs)
            for column in (SAVE_TIME, READ_TIME, SIZE):
                interval = row.interval(column) if row else None
                if row is not None and interval is not None:
                    by_round = row.cells[column.operation].by_round[column.figure]
                    figures[Subject(column, theirs, dataset)] = (interval, by_round)
    ours = Ours(figures, 0)
    generated = [theirs for theirs, table in chosen.items() if is_generated(table)]
    return tuple(judge(finding, ours, thesis_figures(), left_out, generated) for finding in FINDINGS)


def is_generated(table: Table) -> bool:
    """Whether its images were made by us to be like photographs."""
    return table.dataset.endswith("-like")


def grid(dataset: str, table: Table) -> SideBySide:
    """Our figures beside the thesis's, in seconds and megabytes."""
    title = f"{table.dataset} / {dataset}: ours / the thesis's ({conditions_text(table.conditions)})"
    columns = ((SAVE_TIME, SECONDS), (READ_TIME, SECONDS), (SIZE, MEGABYTES))
    head = ("storage", *(f"{column.title}, {unit.name}" for column, unit in columns))
    lines = []
    for theirs in STORAGES:
        row = _row(table, theirs)
        if row is None:
            continue
        entries = [Entry(theirs)]
        for column, unit in columns:
            interval, summary = row.interval(column), row.cells.get(column.operation)
            ours = unit.text(interval.median) if interval else "-"
            text = f"{ours} / {thesis_figures()[Subject(column, theirs, dataset)]:,g}"
            entries.append(Entry(text, summary.cell if summary and interval else None))
        lines.append(tuple(entries))
    return SideBySide(title, head, tuple(lines))


def _row(table: Table, theirs: str) -> Row | None:
    """The row of a storage as the thesis has it: arrays of their own, no codec."""
    rows = [
        row
        for row in table.rows
        if row.variant.format_name == STORAGES[theirs] and row.measured and not row.variant.is_apart
    ]
    return min(rows, key=lambda row: len(row.variant), default=None)
