"""Return the text of PDF pages without writing a PDF, because drawing all pages of a run takes seconds."""

from __future__ import annotations

from collections.abc import Iterable

from matplotlib.figure import Figure
from matplotlib.text import Text

from bench_runner.results.records import Run
from reports.analysis.sections import Contents, sections_of, sections_of_run
from reports.pdf.report import pages_of_run, pages_of_table


def section_pages(run: Run, name: str) -> list[Figure]:
    """Return the pages of one section, either for each table of a run or for the whole run."""
    contents = Contents(run)
    tables = [(section, table) for table in contents.tables for section in sections_of(table) if section.name == name]
    of_run = [section for section in sections_of_run(contents) if section.name == name]
    found = [page for section, table in tables for page in pages_of_table(section, run, table)]
    return [*found, *(page for section in of_run for page in pages_of_run(section, contents))]


def written_on(figures: Iterable[Figure]) -> str:
    """Return all texts of some pages, one text per line."""
    return "\n".join(text.get_text() for figure in figures for text in figure.findobj(Text))


def drawn(figures: Iterable[Figure]) -> str:
    """Return all texts of some pages after drawing them, because some faults appear only then."""
    pages = list(figures)
    for figure in pages:
        figure.draw_without_rendering()
    return written_on(pages)
