"""`format-bench report`: make reports from stored runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from format_bench.terminal import console, errors_told

if TYPE_CHECKING:
    from bench_runner.results.records import Run


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=str))
@click.option(
    "--pdf",
    is_flag=True,
    help="Write report.pdf into the result folder; for 'reference', into a folder in results/reference.",
)
@click.option("--csv", "csv_files", is_flag=True, help="Write CSV files into the same folder as --pdf.")
@click.option("--fidelity", is_flag=True, help="Show what each format does to each kind of column.")
@click.option(
    "--against",
    type=click.Choice(["thesis", "lance", "f3", "near-storage", "documents"]),
    help="Compare the figures with those of a publication: the thesis from which this program grew, or the papers "
    "on Lance, on F3, on near-storage queries, and on document stores (docs/findings.md).",
)
@click.option("--markdown", is_flag=True, help="Print Markdown; needs --against or --fidelity.")
@click.option(
    "--html",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write an interactive site of all RUNs into this folder; open its index.html, no server needed.",
)
def report(
    runs: tuple[str, ...],
    pdf: bool,
    csv_files: bool,
    fidelity: bool,
    against: str | None,
    markdown: bool,
    html: Path | None,
) -> None:
    """Show stored runs again, or write PDF, CSV or a site.

    Without options the tables are printed. RUN is a result folder, or 'reference' for the runs that the package
    includes, which were measured on our machines. Nothing is measured.
    """
    if markdown and not (against or fidelity):
        raise click.UsageError("--markdown needs --against or --fidelity.")
    with errors_told():
        from bench_runner.run.cluster.division import incomplete, is_division
        from bench_runner.run.cluster.division import stored as stored_division
        from format_bench.api.report import report as written
        from format_bench.api.report import stored_runs
        from reports.text import terminal

        found = stored_runs(*runs)
        for folder in filter(is_division, map(Path, runs)):
            for host, reason in incomplete(stored_division(folder)).items():
                click.echo(f"{folder}: not complete on {host}: {reason}", err=True)
        if html is not None:
            click.echo(_site(found, html))
        for stored in found:
            for path in written(stored, pdf=pdf, csv=csv_files) if pdf or csv_files else ():
                click.echo(path)
            if fidelity:
                _show_fidelity(stored, markdown)
            if against == "thesis":
                _show_against_thesis(stored, markdown)
            if not (pdf or csv_files or fidelity or against or html):
                terminal.show(stored, console())
        if not (pdf or csv_files or fidelity or against or html):
            terminal.show_machines(found, console())
        if against and against != "thesis":
            _show_claims(found, against, markdown)


def _site(runs: list[Run], html: Path) -> Path:
    from format_bench.api.report import report as written
    from reports.site.pages import slow_pages

    front, *_ = written(*runs, html=html)
    for name, size_bytes in slow_pages(html).items():
        text = f"warning: {name} has {size_bytes / 1e6:.1f} MB and is slow to open; name fewer runs for one site"
        click.echo(text, err=True)
    return front


def _show_fidelity(run: Run, markdown: bool) -> None:
    from reports.text.fidelity import fidelity_markdown, show_fidelity

    if markdown:
        click.echo(fidelity_markdown(run))
    else:
        show_fidelity(run, console())


def _show_claims(runs: Sequence[Run], name: str, as_markdown: bool) -> None:
    """Print each published claim with the corresponding figures of a run."""
    from reports.sources import claims_shown

    if as_markdown:
        click.echo(claims_shown.markdown(runs, name))
    else:
        claims_shown.show(runs, name, console())


def _show_against_thesis(run: Run, markdown: bool) -> None:
    from reports.sources.reproduction import reproduction_markdown, show_reproduction

    if markdown:
        click.echo(reproduction_markdown(run))
    else:
        show_reproduction(run, console())
