"""The PDF report: the sections of a report as A4 pages, those of each table behind one another, then those of the run.

A pure function of stored samples. What stands on the pages is in its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_runner.results.records import Run
from reports.analysis.sections import Contents, Elsewhere, sections_of, sections_of_run
from reports.analysis.tables import Table
from reports.pdf.charts import further_pages, table_pages
from reports.pdf.fidelity import fidelity_pages
from reports.pdf.lines import lines_pages, throughput_pages
from reports.pdf.page import FAINT, TEXT
from reports.pdf.pages import (
    calls_pages,
    codecs_pages,
    cold_start_pages,
    curves_pages,
    documents_pages,
    handles_pages,
    loaders_pages,
    means_pages,
    near_storage_pages,
    remarks_pages,
    roofline_pages,
    uses_pages,
)

if TYPE_CHECKING:
    from matplotlib.backends.backend_pdf import PdfPages
    from matplotlib.figure import Figure

OF_TABLE: Mapping[str, Callable[[Run, Table], Iterator[Figure]] | Elsewhere] = {
    "tables": table_pages,
    "further operations": further_pages,
    "loaders": loaders_pages,
    "uses": uses_pages,
    "handles": handles_pages,
    "roofline": roofline_pages,
    "near storage": near_storage_pages,
    "documents": documents_pages,
    "codecs": codecs_pages,
    "calls": calls_pages,
}
"""How each section of a table is shown."""
OF_RUN: Mapping[str, Callable[[Contents], Iterator[Figure]] | Elsewhere] = {
    "throughput": throughput_pages,
    "curves": curves_pages,
    "lines": lines_pages,
    "means": means_pages,
    "fidelity": fidelity_pages,
    "cold start": cold_start_pages,
    "legend": Elsewhere("stands beside the charts of every page, in their colours and marks"),
    "remarks": remarks_pages,
}
"""How each section of a run is shown."""


class ReportError(Exception):
    """The report cannot be made: what is missing, and the command that installs it."""


def write_pdf(run: Run, path: Path) -> Path:
    """Write the report and return its path. Raises ReportError without matplotlib, OSError when the disk
    refuses."""
    try:
        import matplotlib.backends.backend_pdf as backend
        from matplotlib import rc_context
    except ModuleNotFoundError as error:
        raise ReportError(f"the PDF report needs {error.name}; pip install -e '.[pdf]'") from None
    style: dict[Any, Any] = {
        "font.family": "DejaVu Sans",
        "font.size": 7,
        "text.color": TEXT,
        "axes.edgecolor": FAINT,
    }
    title = f"Format Bench {run.info.id}"
    with _whole(path) as place, rc_context(style), backend.PdfPages(place, metadata={"Title": title}) as pages:
        for figure in _figures(Contents(run)):
            _save(pages, figure)
    return path


def _figures(contents: Contents) -> Iterator[Figure]:
    yield from _of_run(contents, leads=True)
    for table in contents.tables:
        for section in sections_of(table):
            of_table = OF_TABLE[section.name]
            if not isinstance(of_table, Elsewhere):
                yield from of_table(contents.run, table)
    yield from _of_run(contents, leads=False)


def _of_run(contents: Contents, *, leads: bool) -> Iterator[Figure]:
    for section in sections_of_run(contents):
        of_run = OF_RUN[section.name]
        if section.leads == leads and not isinstance(of_run, Elsewhere):
            yield from of_run(contents)


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A place to write to that becomes `path` at the end: a full disk or Ctrl-C leaves an older report as it was."""
    part = path.with_name(f".{path.name}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _save(pages: PdfPages, figure: Figure) -> None:
    pages.savefig(figure)
