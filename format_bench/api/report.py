"""Make reports of stored runs again: CSV files, the PDF, the interactive site.

It only decides which files are wanted and where; what stands in them is that of reports. Nothing is shown here.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from bench_runner.results import reference
from bench_runner.results.records import Run, read_run
from format_bench.api.request import RESULTS
from format_bench.errors import RequestError


def report(
    *runs: Run | Path | str, csv: bool = False, pdf: bool = False, html: Path | str | None = None
) -> tuple[Path, ...]:
    """Write reports of runs, each a result folder, what was read of it, or 'reference'; the paths of what was written.

    `csv` and `pdf` go into each run's own folder, those of the reference below `results/reference`; `html` names the
    folder of one site of all of them, whose front page is the first path. Raises RequestError when nothing is asked
    for, when a library is missing, and when `html` holds something else than a site of ours; RecordError when a folder
    holds no run; OSError when the disk refuses.
    """
    if not runs or not (csv or pdf or html is not None):
        raise RequestError("Nothing to write.", "Name at least one run, and request `csv`, `pdf` or `html`.")
    stored = stored_runs(*runs)
    written = [] if html is None else [_site(stored, Path(html))]
    for each in stored:
        written += files_of(each, _place_for(each), csv=csv, pdf=pdf) if csv or pdf else []
    return tuple(written)


def stored_runs(*named: Run | Path | str) -> list[Run]:
    """Return runs: what was read already, result folders, or 'reference' for the runs that the package brings. A folder
    of that name is spelled with its place, as text: './reference'. Raises RecordError when a folder holds no run."""
    found: list[Run] = []
    for each in named:
        if isinstance(each, Run):
            found.append(each)
        elif str(each) == reference.NAME:
            found += reference.reference_runs()
        else:
            found.append(read_run(Path(each)))
    return found


def _place_for(run: Run) -> Path:
    """Return where the files of a run go: into its folder, those of the package's among the results here."""
    if not run.folder.resolve().is_relative_to(reference.PLACE.resolve()):
        return run.folder
    place = RESULTS / reference.NAME / run.folder.name
    place.mkdir(parents=True, exist_ok=True)
    return place


def files_of(run: Run, folder: Path, *, csv: bool, pdf: bool) -> list[Path]:
    """Write what is wanted of one run into a folder; their paths. Raises RequestError if the PDF lacks a
    library, OSError when the disk refuses."""
    from reports.pdf.report import write_pdf
    from reports.text.thesis_csv import write_csv

    if pdf:
        check_pdf()
    return [*([write_pdf(run, folder / "report.pdf")] if pdf else ()), *(write_csv(run, folder) if csv else ())]


def check_pdf() -> None:
    """Raise RequestError if a library of the PDF is missing: before an hour of measuring, not after it."""
    for module, name in (("matplotlib", "matplotlib"), ("vl_convert", "vl-convert-python")):
        if importlib.util.find_spec(module) is None:
            raise RequestError(f"The PDF needs {name}, which is not installed.", "Run: pip install -e '.[pdf]'")


def _site(runs: Sequence[Run], folder: Path) -> Path:
    from reports.site.pages import SiteError, write_site

    try:
        return write_site(runs, folder)
    except SiteError as error:
        raise RequestError(str(error)) from None
