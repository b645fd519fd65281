"""Compare a run with the thesis's tables 6.10 and 6.11 (six image storages) and the findings of table 6.2 and section
6.3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from bench_runner.conditions import conditions_text
from bench_runner.results.statistics import CellSummary
from reports.analysis.columns import READ_TIME, SAVE_TIME, SIZE
from reports.analysis.near_storage.workloads import published_rows
from reports.analysis.tables import Table
from reports.analysis.units import MEGABYTES, SECONDS
from reports.sources import findings
from reports.sources.judgement import Judgement, Ours, judge
from reports.sources.rows import Subject
from reports.sources.side_by_side import Entry, SideBySide
from reports.sources.table_cells import cells_of, figures_of

STORAGES = {
    "PNG": "png",
    "Base64": "base64",
    "HDF5": "image-hdf5",
    "Parquet": "image-parquet",
    "SQLite": "sqlite",
    "LMDB": "lmdb",
}
"""Our names of image storages by the names in the thesis."""
DATASETS = {"CIFAR-10": ("cifar10", "cifar-like"), "ImageNet-100": ("imagenet100",)}
"""Our data sets by the names in the thesis. The generated images `cifar-like` have the shapes and sizes of CIFAR-10.
Our generated images that resemble ImageNet-100 are too few to be compared."""
IMAGES = {"CIFAR-10": (50_000,), "ImageNet-100": (126_689, 131_689)}
"""Numbers of images that can be compared. For ImageNet-100 these are the training images, with or without validation
images."""
_METRICS = {"save_time_s": SAVE_TIME, "read_time_s": READ_TIME, "size_mb": SIZE}


@cache
def thesis_figures() -> Mapping[Subject, float]:
    """Return the thesis's tables 6.10 and 6.11, in seconds and megabytes."""
    return {
        Subject(column, row["storage"], row["dataset"]): float(row[metric])
        for row in published_rows("thesis_image.csv")
        for metric, column in _METRICS.items()
    }


def tables_of(found: Sequence[Table]) -> tuple[dict[str, Table], dict[str, str]]:
    """Return the run's tables by data set of the thesis. For each data set without a table, also return the reason."""
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
    """Return a verdict on each finding (statement of the thesis) about images. `left_out` has the reason for each data
    set without a table."""
    cells: dict[Subject, CellSummary] = {}
    for dataset, table in chosen.items():
        cells |= cells_of(table, STORAGES, _METRICS.values(), dataset)
    ours = Ours(figures_of(cells), 0)
    generated = [theirs for theirs, table in chosen.items() if is_generated(table)]
    return tuple(judge(finding, ours, thesis_figures(), left_out, generated) for finding in findings.IMAGES)


def is_generated(table: Table) -> bool:
    """Return whether the images of a table are generated to resemble photographs."""
    return table.dataset.endswith("-like")


def grid(dataset: str, table: Table) -> SideBySide:
    """Return a table of our figures next to those of the thesis, in seconds and megabytes."""
    title = f"{table.dataset} / {dataset}: ours / thesis ({conditions_text(table.conditions)})"
    columns = ((SAVE_TIME, SECONDS), (READ_TIME, SECONDS), (SIZE, MEGABYTES))
    head = ("storage", *(f"{column.title}, {unit.name}" for column, unit in columns))
    cells = cells_of(table, STORAGES, _METRICS.values(), dataset)
    lines = []
    for theirs in dict.fromkeys(subject.format for subject in cells):
        entries = [Entry(theirs)]
        for column, unit in columns:
            subject = Subject(column, theirs, dataset)
            cell = cells.get(subject)
            ours = unit.text(cell.figures[column.figure].median) if cell else "-"
            entries.append(Entry(f"{ours} / {thesis_figures()[subject]:,g}", cell.cell if cell else None))
        lines.append(tuple(entries))
    return SideBySide(title, head, tuple(lines))
