"""Write reports of stored runs: CSV files, a PDF, an interactive site.

This module decides which files to write and where. The package `reports` makes the contents.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from bench_runner.results import reference
from bench_runner.results.records import Run, read_run
from bench_runner.run.cluster.division import host_folders, is_division
from format_bench.api.request import RESULTS
from format_bench.errors import RequestError


def report(
    *runs: Run | Path | str, csv: bool = False, pdf: bool = False, html: Path | str | None = None
) -> tuple[Path, ...]:
    """Write reports of runs and return the paths of the files.

    Each run is a Run, a result folder, or 'reference' for the runs that the package includes. CSV and PDF files are
    written into the run's folder, or below `results/reference` for the included runs. `html` is the folder for one site
    of all runs; the first returned path is then the front page of the site.

    Raises RequestError if no report is requested, a library is missing, or the folder `html` holds anything other than
    such a site. Raises RecordError if a folder holds no run, and OSError if a file cannot be written.
    """
    if not runs or not (csv or pdf or html is not None):
        fault = "No report was requested." if runs else "No run was named."
        raise RequestError(fault, "Name at least one run, and request `csv`, `pdf` or `html`.")
    stored = stored_runs(*runs)
    written = [] if html is None else [_site(stored, Path(html))]
    for each in stored:
        written += files_of(each, _place_for(each), csv=csv, pdf=pdf) if csv or pdf else []
    return tuple(written)


def stored_runs(*named: Run | Path | str) -> list[Run]:
    """Return the runs that the arguments name: a Run, a result folder, or 'reference' for the included runs.

    The folder of a run over a cluster names the runs of its hosts. To name a folder called reference, pass
    './reference'. Raises RecordError if a folder holds no run, and RunError if the file that lists the hosts of a run
    is damaged.
    """
    found: list[Run] = []
    for each in named:
        if isinstance(each, Run):
            found.append(each)
        elif str(each) == reference.NAME:
            found += reference.reference_runs()
        else:
            folder = Path(each)
            found += [read_run(one) for one in (host_folders(folder) if is_division(folder) else [folder])]
    return found


def _place_for(run: Run) -> Path:
    """Return the folder for a run's reports: the run's folder, or a folder below `results` if the package includes the
    run.

    The folder below `results` is created if it is missing.
    """
    if not run.folder.resolve().is_relative_to(reference.PLACE.resolve()):
        return run.folder
    place = RESULTS / reference.NAME / run.folder.name
    place.mkdir(parents=True, exist_ok=True)
    return place


def files_of(run: Run, folder: Path, *, csv: bool, pdf: bool) -> list[Path]:
    """Write the requested reports of one run into a folder and return their paths.

    Raises RequestError if a library for the PDF is missing, and OSError if a file cannot be written.
    """
    written: list[Path] = []
    if pdf:
        from reports.pdf.report import write_pdf

        check_pdf()
        written.append(write_pdf(run, folder / "report.pdf"))
    if csv:
        from reports.text.thesis_csv import write_csv

        written += write_csv(run, folder)
    return written


def check_pdf() -> None:
    """Raise RequestError if a library for the PDF is missing.

    A run calls this before measuring, so that a missing library is reported at once and not after an hour.
    """
    for module, name in (("matplotlib", "matplotlib"), ("vl_convert", "vl-convert-python")):
        if importlib.util.find_spec(module) is None:
            raise RequestError(f"The PDF needs {name}, which is not installed.", "Run: pip install -e '.[pdf]'")


def _site(runs: Sequence[Run], folder: Path) -> Path:
    from reports.site.pages import SiteError, write_site

    try:
        return write_site(runs, folder)
    except SiteError as error:
        raise RequestError(str(error)) from None
