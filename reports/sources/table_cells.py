"""Find the summaries in our tables by the thesis's names for formats and data sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bench_runner.results.statistics import CellSummary, Interval
from reports.analysis.columns import Column
from reports.analysis.tables import Table
from reports.sources.rows import Subject

Cells = Mapping[Subject, CellSummary]


def cells_of(table: Table, names: Mapping[str, str], columns: Iterable[Column], dataset: str) -> Cells:
    """Return the summary of every format and column that has a figure. `names` maps the thesis's names of formats to
    our names.

    A format is represented by the variant with the shortest name, which is the library's default.
    """
    found: dict[Subject, CellSummary] = {}
    for theirs, name in names.items():
        rows = [row for row in table.rows if row.variant.format_name == name and row.measured]
        row = min((each for each in rows if not each.variant.is_apart), key=lambda row: len(row.variant), default=None)
        if row is not None:
            of = {Subject(column, theirs, dataset): column for column in columns if row.interval(column) is not None}
            found |= {subject: row.cells[column.operation] for subject, column in of.items()}
    return found


def figures_of(cells: Cells) -> dict[Subject, tuple[Interval, Mapping[int, int]]]:
    """Return the figures by which findings are judged. As in every ranking, cells with a wrong answer are left out."""
    return {
        subject: (cell.figures[subject.column.figure], cell.by_round[subject.column.figure])
        for subject, cell in cells.items()
        if not cell.wrong
    }
