"""The ways in which the command line shows a run. It only names them: what they do is in their own
modules, which are loaded when they are needed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from bench_runner.results.records import Run
    from reports.analysis.compare import Comparison
    from reports.text.recommendation import Answer


def show(run: Run, console: Console) -> None:
    """Print the tables of a run."""
    from reports.text import terminal

    terminal.show(run, console)


def show_fidelity(run: Run, console: Console) -> None:
    """Print what each variant does to each kind of column."""
    from reports.analysis import fidelity

    fidelity.show_fidelity(run, console)


def show_against_thesis(run: Run, console: Console) -> None:
    """Print the run beside the thesis's tables 6.3 to 6.7, and what becomes of its findings."""
    from reports.sources.reproduction import show_reproduction

    show_reproduction(run, console)


def fidelity_markdown(run: Run) -> str:
    """What `show_fidelity` prints, as Markdown."""
    from reports.analysis import fidelity

    return fidelity.fidelity_markdown(run)


def against_thesis_markdown(run: Run) -> str:
    """What `show_against_thesis` prints, as Markdown."""
    from reports.sources.reproduction import reproduction_markdown

    return reproduction_markdown(run)


def compare_runs(before: Run, after: Run, *, least_change: float, anyway: bool) -> Comparison:
    """What changed from one run to another. Raises CompareError when they cannot be compared."""
    from reports.analysis.compare import compare

    return compare(before, after, least_change=least_change, anyway=anyway)


def show_comparison(found: Comparison, console: Console) -> None:
    """Print what changed."""
    from reports.text import comparison as compare_text

    compare_text.show(found, console)


def comparison_text(found: Comparison, form: str) -> str:
    """What changed, as 'markdown' or 'json'."""
    from reports.text import comparison as compare_text

    return compare_text.markdown(found) if form == "markdown" else compare_text.as_json(found)


def show_answer(answer: Answer, console: Console) -> None:
    """Print a recommendation."""
    from reports.text import recommendation as recommend_text

    recommend_text.show(answer, console)


def answer_json(answer: Answer) -> str:
    """A recommendation as JSON."""
    from reports.text import recommendation as recommend_text

    return recommend_text.as_json(answer)


def write_csv(run: Run, folder: Path) -> list[Path]:
    """Write CSV files in the thesis's shape into `folder`; returns their paths."""
    from reports.text import thesis_csv

    return thesis_csv.write_csv(run, folder)


def write_pdf(run: Run, path: Path) -> Path:
    """Write the PDF report; returns its path. Raises ReportError when matplotlib is missing."""
    from reports.pdf.report import write_pdf as write

    return write(run, path)


def write_site(runs: Sequence[Run], folder: Path) -> Path:
    """Write the interactive site of all runs into a folder; returns its front page. Raises SiteError when a library is
    missing, or something else lies there."""
    from reports.site.pages import write_site as write

    return write(runs, folder)
