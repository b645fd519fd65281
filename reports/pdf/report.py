"""Write the PDF report: the sections of each table as A4 pages, and the sections of the whole run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_runner.results.records import Run
from reports.analysis.sections import Contents, Elsewhere, RunSection, TableSection, sections_of, sections_of_run
from reports.analysis.tables import Table
from reports.pdf.charts import further_pages, table_pages
from reports.pdf.fidelity import fidelity_pages
from reports.pdf.lines import lines_pages, throughput_pages
from reports.pdf.page import FAINT, TEXT
from reports.pdf.pages import about, calls_pages, codecs_pages, figures_pages, means_pages, remarks_pages, uses_pages

if TYPE_CHECKING:
    from matplotlib.backends.backend_pdf import PdfPages
    from matplotlib.figure import Figure

OF_TABLE: Mapping[str, Callable[[Run, Table], Iterator[Figure]] | Elsewhere] = {
    "tables": table_pages,
    "further operations": further_pages,
    "uses": uses_pages,
    "codecs": codecs_pages,
    "calls": calls_pages,
}
"""The function that draws each section of a table. Sections that consist of `Figures` (tables of numbers) need no
entry."""
OF_RUN: Mapping[str, Callable[[Contents], Iterator[Figure]] | Elsewhere] = {
    "throughput": throughput_pages,
    "lines": lines_pages,
    "means": means_pages,
    "fidelity": fidelity_pages,
    "legend": Elsewhere("next to the charts of every page, in their colours and marks"),
    "remarks": remarks_pages,
}
"""The function that draws each section about a whole run. Sections that consist of `Figures` (tables of numbers) need
no entry."""


class ReportError(Exception):
    """Raised if the report cannot be written. The message names the missing libraries and the command that installs
    them."""


def write_pdf(run: Run, path: Path) -> Path:
    """Write the report and return its path. Raises ReportError if the libraries for PDF are missing, and OSError if the
    file cannot be written."""
    try:
        import matplotlib.backends.backend_pdf as backend
        import vl_convert  # noqa: F401  # Charts need it.
        from matplotlib import rc_context
    except ModuleNotFoundError as error:
        raise ReportError(f"The PDF report needs {error.name}. Run: pip install -e '.[pdf]'") from None
    style: dict[Any, Any] = {"font.family": "DejaVu Sans", "font.size": 7, "text.color": TEXT, "axes.edgecolor": FAINT}
    title = f"Format Bench {run.info.id}"
    with _whole(path) as place, rc_context(style), backend.PdfPages(place, metadata={"Title": title}) as written:
        for figure in pages(Contents(run)):
            _save(written, figure)
    return path


def pages(contents: Contents) -> Iterator[Figure]:
    """Yield all pages of the report."""
    yield from _of_run(contents, leads=True)
    for table in contents.tables:
        for section in sections_of(table):
            yield from pages_of_table(section, contents.run, table)
    yield from _of_run(contents, leads=False)


def _of_run(contents: Contents, *, leads: bool) -> Iterator[Figure]:
    for section in sections_of_run(contents):
        if section.leads == leads:
            yield from pages_of_run(section, contents)


def pages_of_table(section: TableSection, run: Run, table: Table) -> Iterator[Figure]:
    """Yield the pages of a section about a table."""
    if section.figures is not None:
        title = f"{table.suite}: {table.dataset}, {section.short_title}"
        yield from figures_pages(run, title, about(run, table), section.figures(run, table))
    elif not isinstance(renderer := OF_TABLE[section.name], Elsewhere):
        yield from renderer(run, table)


def pages_of_run(section: RunSection, contents: Contents) -> Iterator[Figure]:
    """Yield the pages of a section about a whole run."""
    if section.figures is not None:
        yield from figures_pages(contents.run, section.short_title, section.title, section.figures(contents))
    elif not isinstance(renderer := OF_RUN[section.name], Elsewhere):
        yield from renderer(contents)


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to. At the end, the temporary file replaces `path`. A failure therefore leaves an
    older report intact."""
    part = path.with_name(f".{path.name}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _save(pages: PdfPages, figure: Figure) -> None:
    pages.savefig(figure)
