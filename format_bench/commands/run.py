"""`format-bench run`: measure suites and show the result."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_runner.clock import now_ns
from bench_runner.conditions import CONDITIONS, Conditions
from format_bench.errors import Interrupted
from format_bench.options import BETWEEN, HOW, READING, UNDER, WHERE, WHICH, read_options
from format_bench.terminal import FAILED, INTERRUPTED, console, errors_told, forget_output, with_flags

if TYPE_CHECKING:
    from bench_runner.results.records import Run


@click.command()
@click.argument("suites", nargs=-1, metavar="SUITE...")
@WHICH
@READING
@HOW
@UNDER
@BETWEEN
@WHERE
@click.pass_obj
def run(words: list[str], suites: tuple[str, ...], list_only: bool, no_fidelity: bool, **options: Any) -> int:
    """Measure one or more suites and show the result.

    'list suites' describes the suites. Every figure is from a verified round trip: what is saved is read back and
    compared. If something could not be measured, its row gives the reason. The result folder holds run.json,
    samples.jsonl, fidelity.jsonl and CSV files.

    \b
    Examples:
      format-bench run tabular --quick                            a first look, in three minutes
      format-bench run tabular --data my.csv --formats parquet    your table in Parquet variants
      format-bench run tabular --formats 'parquet[engine=polars,codec=zstd,level=9]'    this variant
      format-bench run access --operations 'take[rows=20,handle=reopened]'    this operation
      format-bench run access --formats parquet --list            which variants, and how long
      format-bench run tabular --cache cold --work-dir /mnt/disk  reads from this disk
      format-bench run tabular --out results/mine --resume        continue a run that was stopped

    \b
    In the tables:
      n            number of repetitions (rounds) that the figures are from
      *            best of its column
      =            tied with the best of its column: the rounds do not show that it is worse
      ±9%          the 95 % confidence interval of the median reaches about 9 % to each side of it
      not counted  rounds that enter no figure: the machine was busy, the file was not cached as
                   asked, Python collected garbage, or a save could not be verified. Up to two
                   more rounds replace them. If a note below the table still names many,
                   stop other programs; 'format-bench doctor' says which conditions are bad.
    """
    began_ns = now_ns()
    with errors_told():
        selection = selected(options)
        if list_only and not suites and _asks_for_nothing(selection):
            _print_suites()
            return 0
        if list_only:
            how = {name: options[name] for name in ("rounds", "quick", "budget_s", "machine")}
            _print_plan(suites, selection, how)
            return 0
        return _measure(suites, **selection, **options, fidelity=not no_fidelity, command=words, began_ns=began_ns)


def selected(options: dict[str, Any]) -> dict[str, Any]:
    """Remove from `options` the options that select what is measured, and under which conditions.

    Return the removed options as keyword arguments for format_bench.api.request.requested.
    """
    from typing import get_type_hints

    from format_bench.api.request import RequestFields

    webface = options.pop("webface")
    # --webface without a path has the value "".
    options |= {
        "options": read_options(options),
        "webface": Path(webface) if webface else None,
        "generated_webface": webface == "",
    }
    return {name: options.pop(name) for name in get_type_hints(RequestFields)}


def _measure(suites: tuple[str, ...], **keywords: Any) -> int:
    from format_bench.api.run import run as measured_run
    from format_bench.progress import watching

    def show_part(folder: Path) -> None:
        _show_part(folder, report=keywords["report"])

    try:
        with watching(show_part) as watcher:
            measured = measured_run(*suites, **keywords, watcher=watcher)
    except Interrupted as stopped:
        try:
            # A second Ctrl-C only stops printing the table.
            with suppress(KeyboardInterrupt):
                _show_partial(stopped.folder)
        finally:
            click.echo(with_flags(stopped.text), err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    click.echo(f"results: {measured.folder}", err=True)
    _show(*measured.runs)
    for host, reason in measured.incomplete.items():
        click.echo(
            f"not complete on {host}: {reason}\n  To measure the rest, add --out {measured.folder} --resume.", err=True
        )
    return FAILED if measured.failed else 0


def _show_partial(folder: Path) -> None:
    """Print the tables of a stopped run if standard output is a terminal. A pipe receives only complete runs."""
    from format_bench.api.report import stored_runs

    if not sys.stdout.isatty():
        return
    _show(*(run for run in stored_runs(folder) if any(sample.counted for sample in run.samples)))


def _show_part(folder: Path, *, report: bool) -> None:
    """Write the files of a partly measured run and print its tables. This happens before slow formats are measured.

    Tables are printed only if standard output is a terminal, because a pipe receives only complete runs.
    """
    from bench_runner.results.records import read_run
    from format_bench.api.report import files_of

    so_far = read_run(folder)
    files_of(so_far, folder, csv=True, pdf=report)
    click.echo(f"results so far: {folder}; slow formats follow (Ctrl-C stops and keeps the results)", err=True)
    if sys.stdout.isatty():
        _show(so_far)


def _show(*measured: Run) -> None:
    """Print the tables of each run. If several machines measured the same operations, also print their figures side by
    side.

    It is not an error if the reader closes the pipe, as `| head` does, because the result files exist already.
    """
    from reports.text import terminal as tables

    try:
        for run in measured:
            tables.show(run, console())
        tables.show_machines(measured, console())
        sys.stdout.flush()
    except BrokenPipeError:
        forget_output()


def _asks_for_nothing(selection: dict[str, Any]) -> bool:
    from format_bench.api.request import requested

    return requested(**selection) == requested()


def _print_suites() -> None:
    from format_bench.commands.listings import LISTINGS

    for line in LISTINGS["suites"]():
        click.echo(line)
    click.echo("'run SUITE --list' shows what a suite would measure", err=True)


def _print_plan(suites: tuple[str, ...], selection: dict[str, Any], how: dict[str, Any]) -> None:
    from bench_runner.results.records import changed
    from bench_runner.run.options import Options
    from format_bench.api.planning import planned, run_length
    from format_bench.api.request import requested
    from format_bench.length_text import length_text
    from format_bench.progress import watching

    request = changed(requested(**selection), quick=how["quick"])
    with watching() as watcher:
        plan = planned(suites, request, watcher)
    options = Options(**how)
    if told := length_text(run_length(plan, options), options.budget_s):
        click.echo(told, err=True)
    asked = [chain.conditions for chain in plan.chains]
    values = {name: {getattr(each, name) for each in asked} for name in Conditions.__struct_fields__}
    differs = [name for name, found in values.items() if len(found) > 1 or (name == "threads" and found == {"1"})]
    absent = {condition.name: condition.absent for condition in CONDITIONS}
    for chain in plan.chains:
        conditions = {name: getattr(chain.conditions, name) or absent[name] for name in ("track", *differs)}
        under = [f"{name}={value}" for name, value in conditions.items()]
        for operation in chain.operations:
            click.echo("  ".join([chain.label(operation), *under]))
    for excluded in plan.excluded:
        for operation in excluded.chain.operations:
            label = excluded.chain.label(operation)
            click.echo(f"{label}  {excluded.failure.kind}: {excluded.failure.reason}")
